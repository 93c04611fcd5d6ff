"""Where exact cells are: counted arrays, and the counts of rows made from plans.

Only `privacy` asks it anything. Counts of plans are kept while they fit in `LIMIT` bytes, oldest out first.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from jostle.privacy.handles import Cells, Counted, Cube, Restricted, Tallied

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.engine.duck import Engine

LIMIT = 512 * 2**20


class Vault:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._arrays: WeakKeyDictionary[Counted, NDArray[np.int64]] = WeakKeyDictionary()
        self._kept: OrderedDict[Tallied, NDArray[np.int64]] = OrderedDict()

    def keep(self, array: NDArray[np.int64]) -> Counted:
        """Holds a counted array for as long as the returned key lives."""
        key = Counted()
        self._arrays[key] = array
        return key

    def cells(self, cube: Cube) -> NDArray[np.int64]:
        """The exact counts of a cube, int64, in its shape. Do not write to it."""
        return self._cells(cube.cells, cube)

    def _cells(self, cells: Cells, cube: Cube) -> NDArray[np.int64]:
        import numpy as np

        if isinstance(cells, Counted):
            return self._arrays[cells]
        if isinstance(cells, Restricted):
            from jostle.engine.dense import evaluate

            base = self._cells(cells.base, cube)
            holds, valid = evaluate(cells.condition, dimension_columns(cube))
            return np.where((holds & valid).reshape(cube.shape), base, 0)
        found = self._kept.get(cells)
        if found is None:
            from jostle.engine.plan import Count

            (made,) = self._engine.group(cells.plan, cells.keys, (Count(),))
            found = self._kept[cells] = np.asarray(made, dtype=np.int64).reshape(cube.shape)
            while sum(a.nbytes for a in self._kept.values()) > LIMIT and len(self._kept) > 1:
                self._kept.popitem(last=False)
        self._kept.move_to_end(cells)
        return found


def dimension_columns(cube: Cube) -> dict[str, NDArray[np.float64]]:
    """The positions of every cell, flattened, one column a dimension: what conditions and keys are evaluated on."""
    import numpy as np

    grids = np.indices(cube.shape, dtype=float).reshape(len(cube.shape), -1)
    return dict(zip(cube.names, grids, strict=True))
