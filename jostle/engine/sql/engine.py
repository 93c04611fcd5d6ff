"""What every engine that speaks SQL has in common: plans are emitted, run, and put into arrays.

A backend says how a scan is read (`base`) and how a query is run, in three shapes: `fetch`, `columns` and `batches`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from jostle.engine import base
from jostle.engine.base import Capabilities, Work
from jostle.engine.sql import relations
from jostle.engine.sql.dialect import Dialect
from jostle.integers import fixed_width
from jostle.language.moments import moment_of
from jostle.lazy import Array, np
from jostle.plan.kinds import kind_of
from jostle.plan.plan import Bound, Count, Key, Plan, RowExpr, Scan, Term

BLOCK = 2**16  # rows that a fold is given at a time


class SqlEngine(ABC):
    """Answers of `jostle.engine.base.Engine` from the SQL of a dialect."""

    capabilities: ClassVar[Capabilities]
    dialect: Dialect
    remote: ClassVar[str] = ""

    @abstractmethod
    def base(self, plan: Scan | Bound) -> relations.Relation:
        """The cleaned columns of a scan as a SELECT, rows numbered where the data set has a number for each."""

    @abstractmethod
    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query of our own making. Here and below, what fails is a `DataError` that quotes no cell."""

    @abstractmethod
    def columns(self, query: str) -> list[Any]:
        """The columns of a query as NumPy arrays, masked where cells are NULL."""

    @abstractmethod
    def batches(self, query: str, size: int) -> Iterator[list[Array]]:
        """The columns of a query whose cells are numbers, none of them NULL, some rows at a time, as they come."""

    def check(self, question: object) -> None:
        """Refuses with `DataError`, before anything is charged, what the database cannot do as the others do."""
        return

    def rest(self) -> None:
        """Nothing is asked for a while: no program of the session runs."""
        return

    def relation(self, plan: Plan, requested: Iterable[RowExpr] | None = None) -> relations.Relation:
        """A plan as a SELECT. A backend may omit columns that no expression in `requested` uses."""
        return relations.relation(plan, self.base, self.dialect)

    def group(self, plan: Plan, keys: tuple[Key, ...], terms: tuple[Term, ...]) -> list[Array]:
        """Exact integers: for each term an array over the keys' values, shape (len(key.values), …), () without keys.

        int64 where every result provably fits, else object (Python integers). Rows whose key is none or not listed
        are in no group. More than 2^26 groups are a `DataError`, before anything is read or allocated.
        """
        shape, keys = base.shape(keys) if keys else (), tuple(map(base.consecutive, keys))
        if not terms:
            return []
        exprs = [part.expr for part in (*keys, *terms) if part.expr is not None]
        query = self.grouped(self.relation(plan, exprs), keys, terms)
        columns = self.columns(query.sql)
        at, inside = base.positions(keys, columns[: len(keys)], shape)
        results = []
        for column, wide in zip(columns[len(keys) :], query.as_text, strict=True):
            cells = np.zeros(shape, dtype=object if wide else np.int64)
            values = np.asarray(column)[inside] if keys else np.asarray(column)
            cells.reshape(-1)[at] = [int(value) for value in values] if wide else values
            results.append(cells)
        return results

    def grouped(
        self, source: relations.Relation, keys: tuple[Key, ...], terms: tuple[Term, ...]
    ) -> relations.Grouped:  # fmt: skip
        """The query for groups. A backend may add up groups of raw cells first (`speed.fast`)."""
        return relations.group(source, keys, terms)

    def counts(self, plan: Plan, tables: Sequence[tuple[Key, ...]]) -> list[Array]:
        """For each list of keys the numbers of rows, as `group` gives them."""
        return [self.group(plan, keys, (Count(),))[0] for keys in tables]

    def crossed(self, plan: Plan, keys: Sequence[Key], by: Key) -> list[Array]:
        """For each key a table of the numbers of rows, its values by those of `by`."""
        return self.counts(plan, [(key, by) for key in keys])

    def codes(self, plan: Plan, keys: tuple[Key, ...]) -> list[Array]:
        """For each key an array over the rows of a relation: where the row stands among the key's values, as `group`
        reads them, and −1 where it is none or not listed. int8, int16 or int32.

        Without joins rows have numbers, and stand in the order of these in every call, however DuckDB returns them.
        """
        if not keys:
            return []
        source = self.relation(plan, (key.expr for key in keys))
        columns = [np.asarray(column) for column in self.columns(relations.codes(source, keys))]
        if not source.numbered:
            return columns
        numbers, *codes = columns
        if np.all(numbers[1:] > numbers[:-1]):
            return codes
        order = np.argsort(numbers)
        return [column[order] for column in codes]

    def rows(self, plan: Plan) -> int:
        """The exact number of rows."""
        return int(self.group(plan, (), (Count(),))[0])

    def vectors(self, plan: Plan, exprs: tuple[RowExpr, ...], size: int) -> Iterator[Array]:
        """Rows of a relation as doubles, shape (at most `size`, len(exprs)), in batches as they come.

        Rows where an expression is none are left out. Nothing else may be asked of the engine in between.
        """
        query = relations.vectors(self.relation(plan, exprs), exprs)

        def batches() -> Iterator[Array]:
            for batch in self.batches(query, size):
                yield np.stack([column.astype(np.float64, copy=False) for column in batch], axis=1)

        return batches()

    def fold(self, plan: Plan, exprs: tuple[RowExpr, ...], work: Work) -> list[Any]:
        """What `work` makes of the rows of a relation, as `vectors` reads them: arrays of whole numbers."""
        return work(self.vectors(plan, exprs, BLOCK))

    def fold_codes(self, plan: Plan, keys: tuple[Key, ...], work: Work) -> list[object]:
        """What `work` makes of where each row stands among the values of keys, as `codes` has it, in any order."""
        source = self.relation(plan, (key.expr for key in keys))
        batches = self.batches(relations.codes(source, keys), BLOCK)
        return work(np.stack(batch[source.numbered :], axis=1) for batch in batches)

    def tally(self, plan: Plan, expr: RowExpr) -> tuple[Array, Array]:
        """The distinct values of an expression that are not none, in order, and how many rows have each (int64)."""
        relation = self.relation(plan, (expr,))
        values, counts = self.columns(relations.tally(relation, expr))
        there = np.asarray(counts) > 0
        values = _cells(np.ma.getdata(values)[there], kind_of(expr, relation.schema))
        return values, fixed_width(np.asarray(counts)[there])

    def tuples(self, plan: Plan, exprs: tuple[RowExpr, ...]) -> tuple[list[tuple[Any, ...]], Array]:
        """The different combinations of values of several expressions, none of them missing, and how many rows have
        each (int64), in order."""
        relation = self.relation(plan, exprs)
        *values, counts = self.columns(relations.tuples(relation, exprs))
        there = ~np.any([np.zeros(len(counts), dtype=bool), *map(np.ma.getmaskarray, values)], axis=0)
        kinds = [kind_of(expr, relation.schema) for expr in exprs]
        cells = [_cells(np.ma.getdata(v)[there], kind).tolist() for v, kind in zip(values, kinds, strict=True)]
        rows = list(zip(*cells, strict=True))
        return rows, fixed_width(np.ma.getdata(counts)[there])


def _cells(values: Array, kind: str) -> Array:
    """Values of a kind, as the language has them."""
    if kind == "number":
        return np.asarray(values, dtype=np.float64) + 0.0
    cells = [moment_of(kind, v) for v in np.asarray(values).tolist()] if kind in ("date", "time") else values
    return np.asarray(cells, dtype=bool if kind == "boolean" else object)
