"""Where exact cells are: counted arrays, and the counts of rows made from plans.

Only `privacy` asks it anything. Counts of plans are kept while they fit in `LIMIT` bytes, oldest out first.

The reader: exact numbers of private rows, for measurements while the door has them read.

It is held by the kernel, handed to `Measurement.read` and to nothing else. Its answers are those of an engine, or
of what says the same faster (`speed.fast`); the cells of cubes are in the vault.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from jostle.engine.base import Answers, LruCache, Work
from jostle.engine.sql.persons import names_in
from jostle.integers import fixed_width
from jostle.lazy import Array, Bools, Ints, np
from jostle.plan.plan import Count, Key, Plan, RowExpr, Term
from jostle.privacy.kernel.exposures import Exposures
from jostle.privacy.kernel.handles import (
    VALUES,
    Cells,
    Counted,
    Cube,
    Restricted,
    Summed,
    Table,
    Tallied,
    Vectors,
    need_counts,
)

if TYPE_CHECKING:
    from jostle.privacy.mechanisms.least_cost import Line


LIMIT = 512 * 2**20


class Vault:
    def __init__(self, answers: Answers, need_open: Callable[[Exposures], None] = lambda exposures: None) -> None:
        """`need_open` refuses private cells where nothing private may be measured (`Register.need_open`)."""
        self._answers, self._need_open = answers, need_open
        self._arrays: WeakKeyDictionary[Counted, Ints] = WeakKeyDictionary()
        self._kept: LruCache[Ints] = LruCache(LIMIT)

    def keep(self, array: Ints) -> Counted:
        """Holds a counted array for as long as the returned key lives."""
        key = Counted()
        self._arrays[key] = array
        return key

    def cells(self, cube: Cube) -> Ints:
        """The exact counts of a cube, int64, in its shape. Do not write to it. Sums of weights are no counts."""
        need_counts(cube)
        return self.units(cube)

    def units(self, cube: Cube) -> Ints:
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

    def _cells(self, cells: Cells, cube: Cube) -> Ints:
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


def on_cells(cube: Cube, expr: RowExpr, values: Ints | None = None) -> tuple[Array, Bools]:
    """What an expression of the positions (and of `values`, where given) is for every cell, and whether it is not none.

    Both broadcast to the cube's shape: an expression of one dimension is worked out along that one only.
    """
    from jostle.engine.dense import evaluate

    names = names_in([expr])
    used = [i for i, name in enumerate(cube.names) if name in names]
    whole = len(used) > 1 or (values is not None and VALUES in names)
    shape = [side if whole or i in used else 1 for i, side in enumerate(cube.shape)]
    columns: dict[str, Array] = {}
    for i in used:
        positions = np.arange(cube.shape[i], dtype=float).reshape([-1 if j == i else 1 for j in range(len(shape))])
        columns[cube.names[i]] = np.broadcast_to(positions, shape).ravel()
    if values is not None and VALUES in names:
        columns[VALUES] = values.ravel().astype(float)
    numbers, valid = evaluate(expr, columns, private=() if values is None else (VALUES,))
    return numbers.reshape(shape), valid.reshape(shape)


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

    def tuples(self, plan: Plan, exprs: tuple[RowExpr, ...]) -> tuple[list[tuple[object, ...]], Ints]:
        """The different combinations of values of several expressions, and how many rows have each."""
        return self._answers.tuples(plan, exprs)

    def codes(self, plan: Plan, keys: tuple[Key, ...]) -> list[Array]:
        """For each key where every row stands among its values, −1 where it is none of them."""
        return self._answers.codes(plan, keys)

    def coded(self, plan: Plan, keys: tuple[Key, ...], work: Work) -> list[Any]:
        """What `work` makes of where each row stands among the keys' values, −1 where it is none of them."""
        return self._answers.fold_codes(plan, keys, work)

    def folded(self, rows: Vectors, work: Work) -> list[Any]:
        """What `work` makes of rows (`privacy.rows.folds.AtRows`)."""
        return self._answers.fold(rows.plan, rows.exprs, work)
