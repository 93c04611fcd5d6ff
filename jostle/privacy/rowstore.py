"""Where rows are held as vectors: read from the engine once, as 16-bit whole numbers, while they fit in LIMIT bytes.

Ten columns of ten million rows take 200 MB. What does not fit is read again for every sum, batch by batch, so that
memory does not grow with the number of rows. Only `privacy.rowsums` asks it anything.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from jostle.engine.plan import Plan, RowExpr
from jostle.privacy.mechanisms.rows import BATCH, within_ball

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.engine.duck import Engine
    from jostle.privacy.handles import Vectors

LIMIT = 2**29
BLOCK = 2**16  # rows read at a time

Place = tuple[Plan, tuple[RowExpr, ...], float, str]


class RowStore:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kept: OrderedDict[Place, list[NDArray[np.int16]]] = OrderedDict()

    def batches(self, rows: Vectors) -> Iterator[NDArray[np.float64]]:
        """The rows as whole numbers in units of the ball, (d, at most BATCH) each."""
        import numpy as np

        for block in self._blocks(rows):
            for start in range(0, block.shape[1], BATCH):
                yield block[:, start : start + BATCH].astype(np.float64)

    def _blocks(self, rows: Vectors) -> Iterator[NDArray[np.int16]]:
        place = (rows.plan, rows.exprs, rows.radius, rows.norm)
        if place in self._kept:
            self._kept.move_to_end(place)
            yield from self._kept[place]
            return
        made: list[NDArray[np.int16]] | None = []
        size = 0
        for read in self._engine.vectors(rows.plan, rows.exprs, BLOCK):
            block = within_ball(read, rows.radius, rows.norm)
            size += block.nbytes
            if made is not None and size <= LIMIT:
                made.append(block)
            else:
                made = None
            yield block
        if made is not None:
            self._kept[place] = made
            while sum(b.nbytes for blocks in self._kept.values() for b in blocks) > LIMIT:
                self._kept.popitem(last=False)


_STORES: WeakKeyDictionary[Engine, RowStore] = WeakKeyDictionary()


def store_of(engine: Engine) -> RowStore:
    """The one store beside an engine, gone with it."""
    if engine not in _STORES:
        _STORES[engine] = RowStore(engine)
    return _STORES[engine]
