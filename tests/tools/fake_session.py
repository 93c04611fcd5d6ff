"""A stand-in for `jostle.tools.session`, so that the faces are tested apart from the interpreter behind them.

A program for it is a few lines of orders: `print W`, `release N JSON`, `spend SOURCE AMOUNT`, `choose`, `refuse KIND`,
`crash`, `interrupt`, `value JSON`, `name N`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from jostle.diagnostics import Diagnostic, Refusal, refuse
from jostle.events import Event, Stream
from jostle.source import Source, Span
from jostle.tools import result


@dataclass
class Result:
    ok: bool = True
    released: dict[str, object] = field(default_factory=dict)
    budget: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()
    events: list[Event] = field(default_factory=list)
    output: list[str] = field(default_factory=list)
    unreleased: dict[str, object] = field(default_factory=dict)
    warnings: tuple[Diagnostic, ...] = ()
    document, document_parts, choices = result.Result.document, result.Result.document_parts, result.Result.choices

    def measured_json(self, long: object = None) -> dict[str, object]:
        return self.unreleased

    def face(self, name: str) -> str:
        return ""

    def released_json(self, long: object = None) -> dict[str, object]:
        return self.released

    def margins(self) -> dict[str, object]:
        return {}


class Session:
    def __init__(
        self,
        *,
        listeners: Sequence[Callable[[Event], None]] = (),
        progress: Callable[[str, int, int], None] | None = None,
        out: Callable[[str], None] | None = None,
        simulate: int | None = None,
        ledger: str | Path | None = None,
        memory: str | None = None,
        engine: str | None = None,
        cwd: Path | None = None,
        allow: Sequence[str] = (),
        look: bool = False,
        rehearse: bool = False,
    ) -> None:
        self.result = Result()
        self.stream = Stream(listeners=[*listeners, self.result.events.append])
        self.out, self.simulate = out, simulate
        self.known: dict[str, object] = {}
        self.bound: dict[str, object] = {}
        self.warnings: list[Diagnostic] = []

    def bind(self, name: str, value: object) -> None:
        self.bound[name] = value

    def attempt(self, source: Source, settings: Mapping[str, str] = {}) -> Result:
        with self.stream.within("run", source.name):
            try:
                for name, value in [*settings.items(), *self.bound.items()]:
                    self._say(f"{name} is {value}")
                self.execute(source)
            except Refusal as refusal:
                self.result.ok, self.result.diagnostics = False, refusal.diagnostics
        return self.result

    def hold_stops(self) -> AbstractContextManager[None]:
        return nullcontext()

    def so_far(self) -> Result:
        self.result.ok = False
        return self.result

    def check(self, source: Source, settings: object = None) -> list[Diagnostic]:
        found = []
        for n, line in enumerate(source.text.splitlines(), 1):
            if line.startswith("refuse "):
                found.append(Diagnostic(line.split()[1], "as ordered", Span(source, n, 1, n, len(line) + 1)))
        return found

    def checked(self, source: Source, settings: object = None) -> tuple[list[Diagnostic], list[object]]:
        return self.check(source), []

    def execute(self, source: Source) -> object:
        value = None
        for n, line in enumerate(source.text.splitlines(), 1):
            value = self._order(line, Span(source, n, 1, n, len(line) + 1))
        return value

    def _order(self, line: str, span: Span) -> object:
        word, _, rest = line.partition(" ")
        if word == "print":
            self._say(rest)
        elif word == "release":
            name, _, value = rest.partition(" ")
            self.result.released[name] = json.loads(value)
            self.stream.emit("release", name, span, value=json.loads(value))
        elif word == "spend":
            name, amount = rest.split()
            known = self.result.budget.setdefault(name, {"epsilon": {"total": "1", "spent": "0"}})["epsilon"]
            known["spent"] = str(Decimal(known["spent"]) + Decimal(amount))
        elif word == "choose":
            told = {"chosen": "A", "predictions": {"A": 2.0, "B": 1.0}, "margin": 1.0, "epsilon": 0.5}
            with self.stream.within("choice", "pick", span, **told):
                price = {"mechanism": "laplace", "epsilon": 0.4, "sources": ["people"], "scale": 2.5}
                self.stream.emit("measure", "count", span, **price)
        elif word == "refuse":
            raise refuse(rest, "as ordered", span, help="order something else")
        elif word == "crash":
            raise ZeroDivisionError("secret 4711")
        elif word == "interrupt":
            raise KeyboardInterrupt
        elif word == "name":
            self.known[rest] = 1
        elif word == "value":
            return json.loads(rest)
        return None

    def _say(self, line: str) -> None:
        self.result.output.append(line)
        if self.out is not None:
            self.out(line)

    def define(self, name: str, value: object) -> None:
        self.known[name] = value

    def names(self) -> dict[str, object]:
        return self.known

    def budget(self) -> dict[str, dict[str, dict[str, str]]]:
        return self.result.budget

    def show(self, value: object) -> str:
        return str(value)
