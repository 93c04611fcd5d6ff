"""The reader: exact numbers of private rows, for measurements while the door has them read.

It is made by the kernel, handed to `Measurement.read` and to nothing else. What it gives is what the engine would
answer: counts that were made before are kept (`vault`, `engine.parts`), and rows that are summed often too
(`engine.rowstore`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jostle.plan.plan import Key, Plan, RowExpr, Term
from jostle.privacy.kernel.handles import Cube, Table, Vectors
from jostle.privacy.rows.sums import BATCH

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.engine.base import Engine
    from jostle.engine.rowstore import RowStore
    from jostle.privacy.kernel.vault import Vault
    from jostle.privacy.rows.factored import CodedRows

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


class Reader:
    def __init__(self, engine: Engine, vault: Vault) -> None:
        self._engine, self.vault = engine, vault

    def cells(self, cube: Cube) -> Ints:
        """The exact counts of a cube, in its shape. Sums of weights are no counts."""
        return self.vault.cells(cube)

    def units(self, cube: Cube) -> Ints:
        """The exact cells of a cube in units of 2^-`cube.bits`, in its shape."""
        return self.vault.units(cube)

    def all_units(self, cubes: Sequence[Cube]) -> list[Ints]:
        """The cells of several cubes, of one table in one pass over its rows."""
        self.vault.gather(cubes)
        return [self.vault.units(cube) for cube in cubes]

    def group(self, plan: Plan, keys: tuple[Key, ...], terms: tuple[Term, ...]) -> list[Ints]:
        """The terms, whole numbers, of every group of the keys' public values."""
        return self.vault.group(plan, keys, terms) if terms else []

    def splits(self, table: Table, keys: Sequence[Key], classes: Key) -> list[Ints]:
        """For each key a table of counts, its values by the classes."""
        from jostle.plan.plan import Count

        together: list[Ints] | None = self.vault.parts.crossed(table.plan, list(keys), classes)
        if together is not None:
            return together
        return [self.group(table.plan, (key, classes), (Count(),))[0] for key in keys]

    def tally(self, plan: Plan, expr: RowExpr) -> tuple[Any, Any]:
        """The different values of an expression in order, and how many rows have each."""
        return self._engine.tally(plan, expr)

    def tuples(self, plan: Plan, exprs: tuple[RowExpr, ...]) -> tuple[list[tuple[Any, ...]], Ints]:
        """The different combinations of values of several expressions, and how many rows have each."""
        return self._engine.tuples(plan, exprs)

    def codes(self, plan: Plan, keys: tuple[Key, ...]) -> list[NDArray[Any]]:
        """For each key where every row stands among its values, −1 where it is none of them."""
        coded: list[NDArray[Any]] | None = self.vault.parts.codes(plan, keys)
        return self._engine.codes(plan, keys) if coded is None else coded

    def batches(self, rows: Vectors) -> Iterator[Floats]:
        """Rows as whole numbers in units of the ball, (d, at most `BATCH`) each."""
        for block in self._store.blocks(rows.place):
            for start in range(0, block.shape[1], BATCH):
                yield block[:, start : start + BATCH].astype(float)

    def tallied(self, rows: Vectors) -> Iterator[tuple[Floats, Ints]]:
        """The same, equal rows once, and how many rows each stands for; where there are few different ones.

        A sum over rows of a function of each row alone, in whole numbers, is the same to the last bit.
        """
        import numpy as np

        tally = self._store.tallied(rows.place)
        if tally is None:
            for units in self.batches(rows):
                yield units, np.ones(units.shape[1], dtype=np.int64)
            return
        different, times = tally
        for start in range(0, len(times), BATCH):
            yield different[:, start : start + BATCH].astype(float), times[start : start + BATCH]

    def coded(self, rows: Vectors, values: tuple[int, ...]) -> CodedRows:
        """The different rows as codes, column j one of `values[j]` numbers evenly spread over ±1."""
        from jostle.privacy.rows.factored import coded

        codes: CodedRows = self._store.derived(
            rows.place, values, lambda blocks: coded((block.astype(float) for block in blocks), values)
        )
        return codes

    @cached_property
    def _store(self) -> RowStore:
        from jostle.engine.rowstore import RowStore
        from jostle.privacy.rows.norms import within_ball

        return RowStore(self._engine, within_ball)
