"""The reader: exact numbers of private rows, for measurements while the door has them read.

It is held by the kernel, handed to `Measurement.read` and to nothing else. Its answers are those of an engine, or
of what says the same faster (`speed.fast`); the cells of cubes are in the vault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jostle.engine.lru import LruCache
from jostle.plan.plan import Key, Plan, RowExpr, Term
from jostle.privacy.kernel.handles import Cube, Table, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.engine.base import Answers, Work
    from jostle.privacy.mechanisms.cuts import Line
    from jostle.privacy.reading.vault import Vault

    Ints = NDArray[np.int64]

LINES = 16 * 2**20


class Reader:
    def __init__(self, answers: Answers, vault: Vault) -> None:
        self._answers, self._vault = answers, vault
        self.lines: LruCache[Line] = LruCache(LINES)  # of `scores.candidates`, by cells and grain
        self.split_scores: LruCache[int] = LruCache(0)  # exact scores of `scores.splits`, by what is split

    def check(self, question: object) -> None:
        """Refuses, before anything is charged, what the engine cannot answer as every engine does."""
        self._answers.check(question)

    def cells(self, cube: Cube) -> Ints:
        """The exact counts of a cube, in its shape. Sums of weights are no counts."""
        return self._vault.cells(cube)

    def units(self, cube: Cube) -> Ints:
        """The exact cells of a cube in units of 2^-`cube.bits`, in its shape."""
        return self._vault.units(cube)

    def all_units(self, cubes: Sequence[Cube]) -> list[Ints]:
        """The cells of several cubes, of one table together."""
        self._vault.gather(cubes)
        return [self._vault.units(cube) for cube in cubes]

    def group(self, plan: Plan, keys: tuple[Key, ...], terms: tuple[Term, ...]) -> list[Ints]:
        """The terms, whole numbers, of every group of the keys' public values."""
        return self._answers.group(plan, keys, terms) if terms else []

    def splits(self, table: Table, keys: Sequence[Key], classes: Key) -> list[Ints]:
        """For each key a table of counts, its values by the classes."""
        return self._answers.crossed(table.plan, keys, classes)

    def tally(self, plan: Plan, expr: RowExpr) -> tuple[Any, Any]:
        """The different values of an expression in order, and how many rows have each."""
        return self._answers.tally(plan, expr)

    def tuples(self, plan: Plan, exprs: tuple[RowExpr, ...]) -> tuple[list[tuple[Any, ...]], Ints]:
        """The different combinations of values of several expressions, and how many rows have each."""
        return self._answers.tuples(plan, exprs)

    def codes(self, plan: Plan, keys: tuple[Key, ...]) -> list[NDArray[Any]]:
        """For each key where every row stands among its values, −1 where it is none of them."""
        return self._answers.codes(plan, keys)

    def coded(self, plan: Plan, keys: tuple[Key, ...], work: Work) -> list[Any]:
        """What `work` makes of where each row stands among the keys' values, −1 where it is none of them."""
        return self._answers.fold_codes(plan, keys, work)

    def folded(self, rows: Vectors, work: Work) -> list[Any]:
        """What `work` makes of rows (`privacy.rows.folds.AtRows`)."""
        return self._answers.fold(rows.plan, rows.exprs, work)
