"""The reader: exact numbers of private rows, for measurements while the door has them read.

It is held by the kernel, handed to `Measurement.read` and to nothing else. Its answers are those of the engine: counts
that were computed before are stored (`vault`, `engine.parts`), and so are rows that are often summed
(`engine.rowstore`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jostle.engine.lru import LruCache
from jostle.plan.plan import Count, Key, Plan, RowExpr, Term
from jostle.privacy.kernel.handles import Cube, Table, Vectors
from jostle.privacy.rows.folds import AtRows, Fold, KeptRows
from jostle.privacy.rows.leaves import LeafFold, one_leaf

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.engine.base import Engine, Work
    from jostle.engine.rowstore import RowStore
    from jostle.privacy.mechanisms.cuts import Line
    from jostle.privacy.reading.vault import Vault

    Ints = NDArray[np.int64]

LINES = 16 * 2**20


class Reader:
    def __init__(self, engine: Engine, vault: Vault) -> None:
        self._engine, self._vault = engine, vault
        self.lines: LruCache[Line] = LruCache(LINES)  # of `scores.candidates`, by cells and grain
        self.split_scores: LruCache[int] = LruCache(0)  # exact scores of `scores.splits`, by what is split

    def check(self, question: object) -> None:
        """Refuses, before anything is charged, what the engine cannot answer as every engine does."""
        self._engine.check(question)

    def cells(self, cube: Cube) -> Ints:
        """The exact counts of a cube, in its shape. Sums of weights are no counts."""
        return self._vault.cells(cube)

    def units(self, cube: Cube) -> Ints:
        """The exact cells of a cube in units of 2^-`cube.bits`, in its shape."""
        return self._vault.units(cube)

    def all_units(self, cubes: Sequence[Cube]) -> list[Ints]:
        """The cells of several cubes, of one table in one pass over its rows."""
        self._vault.gather(cubes)
        return [self._vault.units(cube) for cube in cubes]

    def group(self, plan: Plan, keys: tuple[Key, ...], terms: tuple[Term, ...]) -> list[Ints]:
        """The terms, whole numbers, of every group of the keys' public values."""
        return self._vault.group(plan, keys, terms) if terms else []

    def splits(self, table: Table, keys: Sequence[Key], classes: Key) -> list[Ints]:
        """For each key a table of counts, its values by the classes."""
        tree = one_leaf(tuple(len(key.values) for key in keys))
        fold = LeafFold(tree, tree.level, len(classes.values), tuple(range(len(keys))))
        together = self._vault.parts.folded(table.plan, (*keys, classes), fold)
        if together is not None:
            return [counts[0] for counts in together]
        return [self.group(table.plan, (key, classes), (Count(),))[0] for key in keys]

    def tally(self, plan: Plan, expr: RowExpr) -> tuple[Any, Any]:
        """The different values of an expression in order, and how many rows have each."""
        return self._engine.tally(plan, expr)

    def tuples(self, plan: Plan, exprs: tuple[RowExpr, ...]) -> tuple[list[tuple[Any, ...]], Ints]:
        """The different combinations of values of several expressions, and how many rows have each."""
        return self._engine.tuples(plan, exprs)

    def codes(self, plan: Plan, keys: tuple[Key, ...]) -> list[NDArray[Any]]:
        """For each key where every row stands among its values, −1 where it is none of them."""
        coded: list[NDArray[Any]] | None = self._vault.parts.codes(plan, keys)
        return self._engine.codes(plan, keys) if coded is None else coded

    def coded(self, plan: Plan, keys: tuple[Key, ...], work: Work) -> list[Any]:
        """What `work` makes of where each row stands among the keys' values, −1 where it is none of them."""
        made: list[Any] | None = self._vault.parts.folded(plan, keys, work)
        return self._engine.fold_codes(plan, keys, work) if made is None else made

    def folded(self, rows: Vectors, fold: Fold) -> list[Any]:
        """The whole numbers of a fold over rows: worked out by the engine where it can, else beside rows kept here."""
        if self._engine.capabilities.folds:
            return self._engine.fold(rows.plan, rows.exprs, AtRows(fold, rows.radius, rows.norm))
        return fold.over(KeptRows(self._store, rows.place))

    @cached_property
    def _store(self) -> RowStore:
        from jostle.engine.rowstore import RowStore
        from jostle.privacy.rows.norms import within_ball

        return RowStore(self._engine, within_ball)
