"""Where exact cells are: counted arrays, and the counts of rows made from plans.

Only `privacy` asks it anything. Counts of plans are kept while they fit in `LIMIT` bytes, oldest out first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from jostle.engine.lru import LruCache
from jostle.engine.sql.narrow import names_in
from jostle.integers import fixed_width
from jostle.plan.plan import Count, RowExpr
from jostle.privacy.kernel.exposures import Exposures
from jostle.privacy.kernel.handles import VALUES, Cells, Counted, Cube, Restricted, Summed, Tallied, need_counts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.engine.base import Answers

LIMIT = 512 * 2**20


class Vault:
    def __init__(self, answers: Answers, need_open: Callable[[Exposures], None] = lambda exposures: None) -> None:
        """`need_open` refuses private cells where nothing private may be measured (`Register.need_open`)."""
        self._answers, self._need_open = answers, need_open
        self._arrays: WeakKeyDictionary[Counted, NDArray[np.int64]] = WeakKeyDictionary()
        self._kept: LruCache[NDArray[np.int64]] = LruCache(LIMIT)

    def keep(self, array: NDArray[np.int64]) -> Counted:
        """Holds a counted array for as long as the returned key lives."""
        key = Counted()
        self._arrays[key] = array
        return key

    def cells(self, cube: Cube) -> NDArray[np.int64]:
        """The exact counts of a cube, int64, in its shape. Do not write to it. Sums of weights are no counts."""
        need_counts(cube)
        return self.units(cube)

    def units(self, cube: Cube) -> NDArray[np.int64]:
        """The exact cells of a cube in units of 2^-`cube.bits`, int64, in its shape. Do not write to it."""
        self._need_open(cube.exposures)
        return self._cells(cube.cells, cube)

    def gather(self, cubes: Sequence[Cube]) -> None:
        """Counts what several cubes of one table ask in one pass, where it can be done together."""
        for cube in cubes:
            self._need_open(cube.exposures)
        histograms = [c.cells for c in cubes if isinstance(c.cells, Tallied) and not c.weighted]
        missing = [cells for cells in histograms if self._kept.get(cells) is None]
        if len(missing) < 2 or any(cells.plan is not missing[0].plan for cells in missing):
            return
        tables = self._answers.counts(missing[0].plan, [cells.keys for cells in missing])
        for cells, counts in zip(missing, tables, strict=True):
            self._kept.put(cells, counts, counts.nbytes)

    def _cells(self, cells: Cells, cube: Cube) -> NDArray[np.int64]:
        import numpy as np

        if isinstance(cells, Counted):
            return self._arrays[cells]
        if isinstance(cells, Restricted):
            holds, valid = on_cells(cube, cells.condition)
            return np.where(holds.astype(bool) & valid, self._cells(cells.base, cube), 0)
        counts = self._kept.get(cells)
        if counts is None:
            if isinstance(cells, Summed):
                sums = cells.sums(self._answers)
            else:
                (sums,) = self._answers.group(cells.plan, cells.keys, (Count(weighted=cube.weighted),))
            shaped = fixed_width(sums).reshape(cube.shape)
            counts = self._kept.put(cells, shaped, shaped.nbytes)
        return counts


def on_cells(
    cube: Cube, expr: RowExpr, values: NDArray[np.int64] | None = None
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """What an expression of the positions (and of `values`, where given) is for every cell, and whether it is not none.

    Both broadcast to the cube's shape: an expression of one dimension is worked out along that one only.
    """
    import numpy as np

    from jostle.engine.dense import evaluate

    names = names_in([expr])
    used = [i for i, name in enumerate(cube.names) if name in names]
    whole = len(used) > 1 or (values is not None and VALUES in names)
    shape = [side if whole or i in used else 1 for i, side in enumerate(cube.shape)]
    columns: dict[str, NDArray[Any]] = {}
    for i in used:
        positions = np.arange(cube.shape[i], dtype=float).reshape([-1 if j == i else 1 for j in range(len(shape))])
        columns[cube.names[i]] = np.broadcast_to(positions, shape).ravel()
    if values is not None and VALUES in names:
        columns[VALUES] = values.ravel().astype(float)
    numbers, valid = evaluate(expr, columns, private=() if values is None else (VALUES,))
    return numbers.reshape(shape), valid.reshape(shape)
