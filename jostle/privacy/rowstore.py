"""Where rows are held as vectors: read from the engine once, as 16-bit whole numbers, while they fit in LIMIT bytes.

Ten columns of ten million rows take 200 MB. What does not fit is read again for every sum, batch by batch, so that
memory does not grow with the number of rows. Only `privacy.reader` asks it for rows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from jostle.plan.plan import Plan, RowExpr
from jostle.privacy.rows.factored import CodedRows, coded
from jostle.privacy.rows.norms import within_ball
from jostle.privacy.rows.sums import BATCH

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.engine.base import Engine
    from jostle.privacy.handles import Vectors

LIMIT = 2**29
BLOCK = 2**16  # rows read at a time
TALLIES = 4  # sets of vectors of which the different rows are kept, with how many there are of each

Place = tuple[Plan, tuple[RowExpr, ...], float, str]


class RowStore:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kept: OrderedDict[Place, list[NDArray[np.int16]]] = OrderedDict()
        self._tallies: OrderedDict[Place, tuple[NDArray[np.int16], NDArray[np.int64]] | None] = OrderedDict()
        self._coded: OrderedDict[tuple[Place, tuple[int, ...]], CodedRows] = OrderedDict()

    def batches(self, rows: Vectors) -> Iterator[NDArray[np.float64]]:
        """The rows as whole numbers in units of the ball, (d, at most BATCH) each."""
        import numpy as np

        for block in self._blocks(rows):
            for start in range(0, block.shape[1], BATCH):
                yield block[:, start : start + BATCH].astype(np.float64)

    def tallied(self, rows: Vectors) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
        """The same, equal rows once, and how many rows each stands for; where there are few different ones.

        A sum over rows of a function of each row alone, in whole numbers, is the same to the last bit.
        """
        import numpy as np

        place = (rows.plan, rows.exprs, rows.radius, rows.norm)
        if place not in self._tallies:
            self._tallies[place] = self._counted(rows)
            while len(self._tallies) > TALLIES:
                self._tallies.popitem(last=False)
        found = self._tallies[place]
        if found is None:
            for units in self.batches(rows):
                yield units, np.ones(units.shape[1], dtype=np.int64)
            return
        different, times = found
        for start in range(0, len(times), BATCH):
            part = different[:, start : start + BATCH]
            yield part.astype(np.float64), times[start : start + BATCH]

    def coded(self, rows: Vectors, values: tuple[int, ...]) -> CodedRows:
        """The different rows as codes, column j one of `values[j]` numbers evenly spread over ±1."""
        place = ((rows.plan, rows.exprs, rows.radius, rows.norm), values)
        if place not in self._coded:
            self._coded[place] = coded((block.astype(float) for block in self._blocks(rows)), values)
            while len(self._coded) > TALLIES:
                self._coded.popitem(last=False)
        return self._coded[place]

    def _counted(self, rows: Vectors) -> tuple[NDArray[np.int16], NDArray[np.int64]] | None:
        """The different rows (d, m) and how often each is there; None where they are more than a quarter of a block."""
        import numpy as np

        kept: NDArray[np.int16] = np.zeros((0, len(rows.names)), dtype=np.int16)
        times = np.zeros(0, dtype=np.int64)
        for block in self._blocks(rows):
            read, many = np.unique(block.T, axis=0, return_counts=True)
            if len(read) > max(BATCH, block.shape[1] // 4) or len(kept) > 2**20:
                return None
            kept, back = np.unique(np.concatenate([kept, read]), axis=0, return_inverse=True)
            summed = np.zeros(len(kept), dtype=np.int64)
            np.add.at(summed, back.ravel(), np.concatenate([times, many]))
            times = summed
        return np.ascontiguousarray(kept.T), times

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
