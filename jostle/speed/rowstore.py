"""Rows as vectors, read once and kept as 16-bit whole numbers while they fit in LIMIT bytes.

Ten columns of ten million rows take 200 MB. What does not fit is read again for every sum, block by block, so that
memory does not grow with the number of rows. Exact rows: for the reader of `privacy` alone. It is loaded when rows are
first added up as vectors.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from jostle.lazy import Floats, Ints, NDArray, np
from jostle.plan.plan import Plan, RowExpr
from jostle.privacy.rows.factored import BATCH, CodedRows
from jostle.privacy.rows.folds import BallRows
from jostle.privacy.rows.norms import within_ball

if TYPE_CHECKING:
    from jostle.engine.base import Engine

    Block = NDArray[np.int16]

LIMIT = 2**29
BLOCK = 2**16  # rows read at a time
TALLIES = 4  # sets of vectors of which something is kept beside the rows
FEW = 2**11  # different rows in a block, below which it is worth to count equal ones

Vectors = tuple[Plan, tuple[RowExpr, ...], float, str]
"""A plan, the coordinates of its rows, and the radius and norm of the ball that they are brought into."""


class RowStore:
    """The rows of an engine, of which incomplete ones are left out."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._blocks: OrderedDict[Vectors, list[Block]] = OrderedDict()
        self._derived: OrderedDict[tuple[Vectors, object], object] = OrderedDict()

    def blocks(self, rows: Vectors) -> Iterator[Block]:
        """The rows in whole numbers, (d, at most BLOCK) each."""
        if rows in self._blocks:
            self._blocks.move_to_end(rows)
            yield from self._blocks[rows]
            return
        plan, exprs, radius, norm = rows
        fitting: list[Block] | None = []
        size = 0
        for read in self._engine.vectors(plan, exprs, BLOCK):
            block = within_ball(read, radius, norm)
            size += block.nbytes
            if fitting is not None and size <= LIMIT:
                fitting.append(block)
            else:
                fitting = None
            yield block
        if fitting is not None:
            self._blocks[rows] = fitting
            while sum(b.nbytes for blocks in self._blocks.values() for b in blocks) > LIMIT:
                self._blocks.popitem(last=False)

    def derived(self, rows: Vectors, what: object, make: Callable[[Iterator[Block]], object]) -> Any:
        """What `make` makes of the rows' blocks, kept under `what`."""
        if (rows, what) not in self._derived:
            blocks, size = self.blocks(rows), 0
            self._derived[rows, what] = make(blocks)
            for block in blocks:  # that `make` gave up on: read to their end they are there for the next sum
                size += block.nbytes
                if size > LIMIT:
                    break
            while len(self._derived) > 2 * TALLIES:
                self._derived.popitem(last=False)
        return self._derived[rows, what]

    def tallied(self, rows: Vectors) -> tuple[Block, Ints] | None:
        """The different rows (d, m) and how often each is there; None where they are more than a quarter of a block."""
        return self.derived(rows, "tallied", _tallied)  # type: ignore[no-any-return]


def _tallied(blocks: Iterator[Block]) -> tuple[Block, Ints] | None:
    different: NDArray[np.int16] | None = None
    times = np.zeros(0, dtype=np.int64)
    for block in blocks:
        read, many = np.unique(block.T, axis=0, return_counts=True)
        if len(read) > max(FEW, block.shape[1] // 4) or (different is not None and len(different) > 2**20):
            return None
        before = read[:0] if different is None else different
        different, back = np.unique(np.concatenate([before, read]), axis=0, return_inverse=True)
        summed = np.zeros(len(different), dtype=np.int64)
        np.add.at(summed, back.ravel(), np.concatenate([times, many]))
        times = summed
    return None if different is None else (np.ascontiguousarray(different.T), times)


class StoredRows(BallRows):
    """Rows that a store has under a place; equal rows stand once where there are few different ones."""

    def __init__(self, store: RowStore, place: Vectors) -> None:
        super().__init__(lambda: store.blocks(place))
        self._store, self._place = store, place

    def tallied(self) -> Iterator[tuple[Floats, Ints]]:
        tally = self._store.tallied(self._place)
        if tally is None:
            yield from super().tallied()
            return
        different, times = tally
        for start in range(0, len(times), BATCH):
            yield different[:, start : start + BATCH].astype(float), times[start : start + BATCH]

    def coded(self, values: tuple[int, ...]) -> CodedRows:
        codes: CodedRows = self._store.derived(self._place, values, lambda _: super(StoredRows, self).coded(values))
        return codes
