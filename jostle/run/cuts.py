"""What the answers of handles leave out beside their noise, from public facts (`plan.cuts`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from jostle.formulas import Formula, Noised
from jostle.noise_laws import AdditiveLaw
from jostle.plan.cuts import cuts
from jostle.privacy.kernel.handles import Cube, Restricted, Table, Tallied
from jostle.privacy.measurements.aggregates.aggregate import Aggregate, Estimate


def cut_of(handle: Table | Cube, aggregate: Aggregate | None = None) -> tuple[str, ...]:
    """What is cut from the cells of a cube, or from an aggregate of a table; nothing of public data."""
    if not handle.private:
        return ()
    stated = all(e.unit.at_most for e in handle.exposures)
    if isinstance(handle, Table):  # clamped values count all the same
        values = () if aggregate is None or aggregate.name.startswith("count") else aggregate.expressions
        return cuts(handle.plan, values, stated)
    cells = handle.cells
    while isinstance(cells, Restricted):
        cells = cells.base
    return cuts(cells.plan, stated=stated) if isinstance(cells, Tallied) else ()


def marked(column: list[Any], cut: tuple[str, ...], hidden: Sequence[bool]) -> list[Any]:
    """The answers of all groups, whose errors do not cover what was cut, and those marked whose rows are hidden."""
    if not cut and not any(hidden):
        return column
    doubts = hidden or [False] * len(column)
    return [
        value.without(cut, doubt) if type(value) is Noised else value
        for value, doubt in zip(column, doubts, strict=True)
    ]


def hidden_groups(
    table: Table | Cube, aggregates: Sequence[Aggregate], columns: Sequence[list[Any]]
) -> list[list[bool]]:
    """For each aggregate the groups whose count of rows, as the select measured it, is no larger than its error."""
    if isinstance(table, Cube) or not table.private:
        return [[]] * len(aggregates)
    counted: dict[tuple[Any, ...], list[bool]] = {}
    widths: dict[Any, float] = {}

    def hides(count: object) -> bool:
        law, number = getattr(count, "law", None), getattr(count, "value", count)
        if not isinstance(law, AdditiveLaw) or not isinstance(number, float):
            return False
        if law not in widths:
            widths[law] = law.half_width()
        return widths[law] >= abs(number)

    for aggregate, column in zip(aggregates, columns, strict=True):
        counts: list[Any] = []
        if aggregate.name == "count":
            counts = column
        elif isinstance(aggregate, Estimate):
            place = aggregate.estimator(table).count
            origins = [getattr(value, "origin", None) for value in column]
            counts = [origin.inputs[place] if isinstance(origin, Formula) else None for origin in origins]
        if counts:
            doubts = counted.setdefault(aggregate.expressions, [False] * len(column))
            counted[aggregate.expressions] = [one or hides(count) for one, count in zip(doubts, counts, strict=True)]
    of_all = counted.get((), [])
    each = [counted.get(aggregate.expressions, []) for aggregate in aggregates]
    return [[one or other for one, other in zip_longest(of_all, own, fillvalue=False)] for own in each]
