"""An engine's answers about private rows, faster: the same integers, from codes and rows that were read before.

It is asked in place of the engine, and what it does not know how to answer faster the engine answers. That both say
the same is tested for plans that are made at random (`tests/engine/test_engine_parts.py`).

Rows as vectors, read once and kept as 16-bit whole numbers while they fit in LIMIT bytes.

Ten columns of ten million rows take 200 MB. What does not fit is read again for every sum, block by block, so that
memory does not grow with the number of rows. Exact rows: for the reader of `privacy` alone, which says how a block
becomes whole numbers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from jostle.plan.plan import Count, Key, Plan, RowExpr, Term
from jostle.speed.parts import Parts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.engine.base import Engine, Here, Work
    from jostle.privacy.rows.factored import CodedRows
    from jostle.privacy.rows.folds import BallRows

    Block = NDArray[np.int16]

LIMIT = 2**29
BLOCK = 2**16  # rows read at a time
TALLIES = 4  # sets of vectors of which something is kept beside the rows
FEW = 2**11  # different rows in a block, below which it is worth to count equal ones

Vectors = tuple[Plan, tuple[RowExpr, ...], float, str]
"""A plan, the coordinates of its rows, and the radius and norm of the ball that they are brought into."""


class RowStore:
    """`encode` makes whole numbers (d, n) of rows (n, d), with a radius and a norm; it leaves incomplete rows out."""

    def __init__(self, engine: Engine, encode: Callable[[NDArray[np.float64], float, str], Block]) -> None:
        self._engine, self._encode = engine, encode
        self._blocks: OrderedDict[Vectors, list[Block]] = OrderedDict()
        self._derived: OrderedDict[tuple[Vectors, object], Any] = OrderedDict()

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
            block = self._encode(read, radius, norm)
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

    def derived(self, rows: Vectors, what: object, make: Callable[[Iterator[Block]], Any]) -> Any:
        """What `make` makes of the rows' blocks, kept under `what`."""
        if (rows, what) not in self._derived:
            self._derived[rows, what] = make(self.blocks(rows))
            while len(self._derived) > 2 * TALLIES:
                self._derived.popitem(last=False)
        return self._derived[rows, what]

    def tallied(self, rows: Vectors) -> tuple[Block, NDArray[np.int64]] | None:
        """The different rows (d, m) and how often each is there; None where they are more than a quarter of a block."""
        return self.derived(rows, "tallied", _tallied)  # type: ignore[no-any-return]


def _tallied(blocks: Iterator[Block]) -> tuple[Block, NDArray[np.int64]] | None:
    import numpy as np

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


class FastAnswers:
    """`engine.base.Answers` of an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.parts = Parts(engine)

    @property
    def here(self) -> Here:
        return self._engine.here

    def check(self, question: object) -> None:
        self._engine.check(question)

    def group(self, plan: Plan, keys: tuple[Key, ...], terms: tuple[Term, ...]) -> list[NDArray[Any]]:
        """Of a part that is only counted, from the codes of its rows."""
        if terms and all(term == Count() for term in terms):
            counts = self.parts.counts(plan, keys)
            if counts is not None:
                return [counts] * len(terms)
        return self.parts.group(plan, keys, terms)

    def counts(self, plan: Plan, tables: Sequence[tuple[Key, ...]]) -> list[NDArray[Any]]:
        """In one pass over the rows, where their columns are coded."""
        together = self.parts.several(plan, tables) if len(tables) > 1 else None
        return [self.group(plan, keys, (Count(),))[0] for keys in tables] if together is None else list(together)

    def crossed(self, plan: Plan, keys: Sequence[Key], by: Key) -> list[NDArray[Any]]:
        """In one pass over the rows, where they are numbered."""
        from jostle.privacy.rows.leaves import LeafFold, one_leaf

        tree = one_leaf(tuple(len(key.values) for key in keys))
        fold = LeafFold(tree, tree.level, len(by.values), tuple(range(len(keys))))
        together = self.parts.folded(plan, (*keys, by), fold)
        if together is not None:
            return [counts[0] for counts in together]
        return [self.group(plan, (key, by), (Count(),))[0] for key in keys]

    def codes(self, plan: Plan, keys: tuple[Key, ...]) -> list[NDArray[Any]]:
        coded = self.parts.codes(plan, keys)
        return self._engine.codes(plan, keys) if coded is None else coded

    def fold_codes(self, plan: Plan, keys: tuple[Key, ...], work: Work) -> list[object]:
        folded = self.parts.folded(plan, keys, work)
        return self._engine.fold_codes(plan, keys, work) if folded is None else folded

    def fold(self, plan: Plan, exprs: tuple[RowExpr, ...], work: Work) -> list[Any]:
        """Of rows in a ball beside those that were read before, unless the rows are elsewhere."""
        from jostle.privacy.rows.folds import AtRows

        if self._engine.capabilities.folds or not isinstance(work, AtRows):
            return self._engine.fold(plan, exprs, work)
        return work.fold.over(_stored_rows()(self._store, (plan, exprs, work.radius, work.norm)))

    def tally(self, plan: Plan, expr: RowExpr) -> tuple[NDArray[Any], NDArray[Any]]:
        return self._engine.tally(plan, expr)

    def tuples(self, plan: Plan, exprs: tuple[RowExpr, ...]) -> tuple[list[tuple[object, ...]], NDArray[Any]]:
        return self._engine.tuples(plan, exprs)

    @cached_property
    def _store(self) -> RowStore:
        from jostle.privacy.rows.norms import within_ball

        return RowStore(self._engine, within_ball)


@cache
def _stored_rows() -> Callable[[RowStore, Vectors], BallRows]:
    """The class of rows that a store has; what it rests on is loaded when rows are first added up as vectors."""
    from jostle.privacy.rows.factored import BATCH
    from jostle.privacy.rows.folds import BallRows

    class StoredRows(BallRows):
        """Rows that a store has under a place; equal rows stand once where there are few different ones."""

        def __init__(self, store: RowStore, place: Vectors) -> None:
            super().__init__(lambda: store.blocks(place))
            self._store, self._place = store, place

        def tallied(self) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
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

    return StoredRows
