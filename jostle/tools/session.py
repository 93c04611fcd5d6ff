"""A session: programs, names, budgets and events that live together. What the command line, the REPL and Python use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jostle.diagnostics import Diagnostic, Refusal, refuse
from jostle.events import Event, Stream
from jostle.source import Source
from jostle.syntax import nodes as n

DEEP = 200_000  # frames: 1,000 nested calls of a program take about 20 each


@dataclass
class Result:
    """What a run left: `released` by name, the budget of every source, diagnostics, events, printed lines."""

    ok: bool
    released: dict[str, Any]
    budget: dict[str, dict[str, dict[str, str]]]
    diagnostics: tuple[Diagnostic, ...]
    events: list[Event] = field(repr=False)
    output: list[str] = field(repr=False)

    @property
    def trace(self) -> list[Event]:
        return self.events

    def released_json(self) -> dict[str, Any]:
        from jostle.run.values import plain

        return {name: plain(value) for name, value in self.released.items()}

    def __getitem__(self, name: str) -> Any:
        return self.released[name]


class Session:
    """Runs programs. Sources that programs of one session declare share their budgets."""

    def __init__(
        self,
        *,
        listeners: Sequence[Callable[[Event], None]] = (),
        progress: Callable[[str, int, int], None] | None = None,
        out: Callable[[str], None] | None = None,
        simulate: int | None = None,
        cwd: Path | None = None,
    ) -> None:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), DEEP))
        from jostle.choice.maker import constructors, maker
        from jostle.engine.duck import Engine
        from jostle.privacy.kernel import Kernel
        from jostle.run.builtins import base_scope
        from jostle.run.interpreter import Interpreter
        from jostle.run.modules import Modules
        from jostle.run.scope import Scope

        self._events: list[Event] = []
        self._output: list[str] = []
        self._out = out
        self._stream = Stream([self._events.append, *listeners])
        self._modules = Modules()
        base = base_scope()
        base.names.update(constructors(progress))
        self._interp = Interpreter(
            Kernel(Engine(), self._stream), base,
            load_module=lambda path, span: self._modules.load(self._interp, path, span),
            choose=maker(progress), out=self._print,
        )  # fmt: skip
        self._interp.simulate = simulate
        self._cwd = Path(cwd) if cwd is not None else Path.cwd()
        self._scope = Scope(base)

    # Public ----------------------------------------------------------------------------------------

    def bind(self, name: str, value: object) -> None:
        """Hands data over: a program reads them with `bound("name")`. A path, or a table or array in memory."""
        self._interp.bound[name] = str(value) if isinstance(value, Path) else value

    def run(self, program: str | Path | Source, **params: Any) -> Result:
        """Runs a program; raises `Refusal` where it is refused."""
        source = program if isinstance(program, Source) else read_source(Path(program))
        result = self.attempt(source, params)
        if not result.ok:
            raise Refusal(*result.diagnostics)
        return result

    def attempt(self, source: Source, settings: Mapping[str, Any] | None = None) -> Result:
        """Runs a program in a scope of its own; its faults come back in the result."""
        from jostle.run.scope import Scope

        first_event, first_line = len(self._events), len(self._output)
        self._interp.released, self._interp.params = {}, set()
        self._interp.settings = dict(settings or {})
        self._interp.folders = [Path(source.name).resolve().parent, self._cwd]
        found: tuple[Diagnostic, ...] = ()
        try:
            with self._stream.within("run", source.name):
                tree = self._checked(source)
                self._declared_settings(tree)
                self._interp.block(tree.body, Scope(self._interp.base))
        except Refusal as refusal:
            found = refusal.diagnostics
            for diagnostic in found:
                self._stream.emit("error", diagnostic.kind, diagnostic.span, message=diagnostic.message)
        return Result(
            not found, dict(self._interp.released), self.budget(), found,
            self._events[first_event:], self._output[first_line:],
        )  # fmt: skip

    def check(self, source: Source) -> list[Diagnostic]:
        """Every error that can be found before anything runs."""
        from jostle.syntax import parse

        self._interp.folders = [Path(source.name).resolve().parent, self._cwd]
        try:
            return self._check(parse(source))
        except Refusal as refusal:
            return list(refusal.diagnostics)

    def execute(self, source: Source) -> Any:
        """One entry of a REPL: keeps its names; gives the value of a last bare expression."""
        from jostle.syntax import parse

        self._interp.folders = [self._cwd]
        tree = parse(source, interactive=True)
        found = self._check(tree, self._scope.names)
        if found:
            raise Refusal(*found)
        value = None
        for statement in tree.body:
            value = None
            if isinstance(statement, n.Bare):
                value = self._interp.eval(statement.value, self._scope)
            else:
                self._interp.statement(statement, self._scope)
        return value

    def names(self) -> dict[str, Any]:
        return dict(self._scope.names)

    def budget(self) -> dict[str, dict[str, dict[str, str]]]:
        """For each declared name, what it may lose and has lost, as exact decimals."""
        from jostle.privacy.amounts import as_text, rounded_up

        out: dict[str, dict[str, dict[str, str]]] = {}
        for name, source in self._interp.kernel.register.names.items():
            limit, spent = source.measure.limit, source.measure.spent(source.meter.spent)
            lines = {limit.unit: {"total": as_text(limit.value), "spent": as_text(_quanta(spent[limit.unit]))}}
            if limit.delta:
                lines["delta"] = {"total": as_text(limit.delta), "spent": as_text(rounded_up(spent["delta"]))}
            out[name] = lines
        return out

    def show(self, value: object) -> str:
        from jostle.privacy.handles import Handle
        from jostle.run.values import kind_name, show

        return kind_name(value) if isinstance(value, Handle) and value.private else show(value)

    @property
    def events(self) -> list[Event]:
        return self._events

    # Inside ----------------------------------------------------------------------------------------

    def _print(self, line: str) -> None:
        self._output.append(line)
        if self._out is not None:
            self._out(line)

    def _checked(self, source: Source) -> n.Program:
        from jostle.syntax import parse

        tree = parse(source)
        found = self._check(tree)
        if found:
            raise Refusal(*found)
        return tree

    def _check(self, tree: n.Program, predefined: Mapping[str, Any] | None = None) -> list[Diagnostic]:
        from jostle.check import check

        return check(
            tree, builtins=list(self._interp.base.names), modules=self._modules.known(),
            load_module=lambda path: self._modules.tree(path, self._interp.folders),
            predefined=list(predefined or ()),
        )  # fmt: skip

    def _declared_settings(self, tree: n.Program) -> None:
        declared = [s.name for s in tree.body if isinstance(s, n.ParamDecl)]
        for name in self._interp.settings:
            if name not in declared:
                from jostle.diagnostics import did_you_mean

                raise refuse(
                    "NameError", f"the program has no `param {name}`",
                    help=did_you_mean(name, declared) or (f"it has {', '.join(declared)}" if declared else ""),
                )  # fmt: skip


def _quanta(value: float) -> int:
    return round(value * 10**12)


def read_source(path: Path) -> Source:
    """A program's text; refused in one diagnostic where it cannot be read."""
    try:
        return Source(str(path), path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        raise refuse("DataError", f"there is no file `{path}`") from None
    except UnicodeDecodeError:
        raise refuse("SyntaxError", f"`{path}` is not UTF-8 text", help="save the program as UTF-8") from None
    except OSError as error:
        raise refuse("DataError", f"`{path}` cannot be read: {error.strerror}") from None
