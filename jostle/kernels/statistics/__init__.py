"""Everyday statistics from released sums and counts: correlation, regression, comparison, tables, summaries.

What is calculated here has been paid for. Every number comes with the error that the noise leaves in it, in closed form
from the deviations of what was measured. Where rows are a sample of more, the error of sampling stands beside it.

What they answer with: a table that prints, whose numbers and rows a program reads by name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jostle.kernels import KernelError, Model, members

DIGITS = 6
INTERVAL = ("error", "low", "high")


@dataclass(frozen=True, eq=False)
class Report(Model):
    """`title`, `rows` of equal fields, `notes` below them; `facts` are further fields. All of it is public.

    `mark` is printed in the place of errors and intervals that are not known.
    """

    title: str
    rows: Sequence[Mapping[str, object]]
    notes: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    mark: str = ""

    jostle_kind = "a report"
    jostle_members = members("rows notes title columns column")

    @property
    def jostle_fields(self) -> Mapping[str, object]:
        return {**self.facts, **super().jostle_fields}

    @property
    def columns(self) -> list[str]:
        return list(self.rows[0]) if self.rows else []

    def __getattr__(self, name: str) -> object:
        """A further field, as a program reads it too: `report.difference`."""
        if name.startswith("__") or name not in self.facts:
            raise AttributeError(f"the report has no field `{name}`: {', '.join((*self.facts, 'rows'))}")
        return self.facts[name]

    def column(self, name: str) -> list[object]:
        if not self.rows or name not in self.rows[0]:
            raise KernelError(f"the report has no column `{name}`: its columns are {', '.join(self.columns)}")
        return [row[name] for row in self.rows]

    def without_errors(self, mark: str, notes: Sequence[str]) -> Report:
        """The same numbers, how far they are off being none and shown by a mark, which the notes explain."""
        none = dict.fromkeys((*INTERVAL, "chance"))
        rows = [{**row, **{name: None for name in none if name in row}} for row in self.rows]
        facts = {**self.facts, **{name: None for name in none if name in self.facts}}
        return Report(self.title, rows, [*self.notes, *notes], facts, mark)

    def as_json(self) -> object:
        rows = [{k: _plain(v) for k, v in row.items()} for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": list(self.notes)} | {
            k: _plain(v) for k, v in self.facts.items() if not callable(v) and k != "rows"
        }

    def __str__(self) -> str:
        names = list(self.rows[0]) if self.rows else []
        marked = INTERVAL if self.mark else ()
        cells = [names, *([self.mark if k in marked else text(row[k]) for k in names] for row in self.rows)]
        widths = [max(len(line[k]) for line in cells) for k in range(len(names))]
        left = [any(isinstance(row[name], str) for row in self.rows) for name in names]
        padded = [
            [c.ljust(w) if at else c.rjust(w) for c, w, at in zip(line, widths, left, strict=True)] for line in cells
        ]
        lines = ["  " + "  ".join(line).rstrip() for line in padded]
        return "\n".join([self.title, *lines, *self.notes])


def text(value: object) -> str:
    """A cell as it prints: numbers with six figures, large ones whole, none as a dash."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        if not math.isfinite(value):
            return "∞" if value > 0 else "−∞" if value < 0 else "–"
        return f"{value:.0f}" if abs(value) >= 10 ** (DIGITS - 1) else f"{value:.{DIGITS}g}".replace("e-0", "e-")
    return str(value)


def _plain(value: object) -> object:
    """As JSON knows it: numbers that are not finite are none."""
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return value
