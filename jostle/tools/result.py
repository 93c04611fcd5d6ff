"""What a run gives back: released values, budgets, diagnostics, events and printed lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jostle.diagnostics import Diagnostic
from jostle.events import Event
from jostle.tools.pythonic import to_python

if TYPE_CHECKING:
    from jostle.trace.pictures import Picture


@dataclass
class Result:
    """The result of a run: released values, the budget of every source, diagnostics, events, printed lines, and what
    was warned of and stopped nothing.

    `unreleased`, of a run that failed: values of names that rest on private data and were not released.
    """

    ok: bool
    values: dict[str, Any] = field(repr=False)
    budget: dict[str, dict[str, dict[str, str]]]
    diagnostics: tuple[Diagnostic, ...]
    events: list[Event] = field(repr=False)
    output: list[str] = field(repr=False)
    unreleased: dict[str, Any] = field(default_factory=dict, repr=False)
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def trace(self) -> list[Event]:
        return self.events

    @property
    def released(self) -> dict[str, Any]:
        """The released values by name: numbers, arrays for vectors and lists of numbers, pandas frames for groups."""
        return {name: to_python(value) for name, value in self.values.items()}

    @property
    def measured(self) -> dict[str, Any]:
        """What a run that failed had measured and not released, by name (`f.name` in a function), as `released`."""
        return {name: to_python(value) for name, value in self.unreleased.items()}

    def released_json(self) -> dict[str, Any]:
        return _json(self.values)

    def measured_json(self) -> dict[str, Any]:
        return _json(self.unreleased)

    def margins(self) -> dict[str, Any]:
        """For each such value whose noise is known, its 95 % `error`, `low` and `high`, in the value's form."""
        from jostle.run.margins import margins

        told = {name: margins(value) for name, value in {**self.unreleased, **self.values}.items()}
        return {name: one for name, one in told.items() if one is not None}

    def __getitem__(self, name: str) -> Any:
        return to_python(self.values[name])

    @property
    def pictures(self) -> list[Picture]:
        """The pictures of the program, in order; each shows itself in a notebook, and `save`s itself as a file."""
        from jostle.trace.pictures import pictures

        return pictures(self.events)

    def document(self, simulate: int | None = None, unsaved: Sequence[Diagnostic] = ()) -> str:
        """A run as one JSON object."""
        from jostle.trace.jsonl import plain

        wrong = [*self.diagnostics, *unsaved]
        document: dict[str, Any] = {"ok": self.ok and not unsaved}
        if wrong:
            document["error"] = wrong[0].as_json()
            if len(wrong) > 1:
                document["errors"] = [d.as_json() for d in wrong]
        elif not self.ok:
            document["error"] = {"kind": "Stopped", "message": "the run was stopped; what was charged stays charged"}
        if simulate is not None:
            document["simulated"] = simulate
        document["released"] = self.released_json()
        if self.unreleased:
            document["measured"] = self.measured_json()
        document["margins"] = self.margins()
        document |= {"budget": self.budget, "output": self.output}
        if self.warnings:
            document["warnings"] = [d.as_json() for d in self.warnings]
        return json.dumps(plain(document), ensure_ascii=False, allow_nan=False)


def _json(values: dict[str, Any]) -> dict[str, Any]:
    from jostle.run.values import plain

    return {name: plain(value) for name, value in values.items()}
