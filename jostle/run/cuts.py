"""What the answers of handles leave out beside their noise, from public facts (`plan.cuts`)."""

from __future__ import annotations

from jostle.plan.cuts import cuts
from jostle.privacy.kernel.handles import Cube, Restricted, Table, Tallied
from jostle.privacy.measurements.aggregates.aggregate import Aggregate


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
