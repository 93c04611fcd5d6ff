"""The common part of SQL engines: plans are translated, run, and their results put into arrays.

A backend implements how a scan is read (`base`) and how a query is run, in three forms: `fetch`, `columns`, `batches`.
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

BLOCK = 2**16  # rows per block of a fold


class SqlEngine(ABC):
    """`jostle.engine.base.Answers` from the SQL of a dialect."""

    capabilities: ClassVar[Capabilities]
    dialect: Dialect
    remote: ClassVar[str] = ""

    @abstractmethod
    def base(self, plan: Scan | Bound) -> relations.Relation:
        """The cleaned columns of a scan as a SELECT, with row numbers if the data set has them."""

    @abstractmethod
    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a generated query. Here and below, failures are a `DataError` that quotes no cell."""

    @abstractmethod
    def columns(self, query: str) -> list[Any]:
        """The columns of a query as NumPy arrays, masked for NULL."""

    @abstractmethod
    def batches(self, query: str, size: int) -> Iterator[list[Array]]:
        """The columns of a query of numbers without NULL, in batches of rows, in any order."""

    def check(self, question: object) -> None:
        """Refuses questions that the database cannot answer as others do, by `DataError`, before the charge."""
        return

    def rest(self) -> None:
        """Called when no program of the session is running."""
        return

    def relation(self, plan: Plan, requested: Iterable[RowExpr] | None = None) -> relations.Relation:
        """A plan as a SELECT. A backend may omit columns that no expression in `requested` uses."""
        return relations.relation(plan, self.base, self.dialect)

    def group(self, plan: Plan, keys: tuple[Key, ...], terms: tuple[Term, ...]) -> list[Array]:
        """Exact integers: for each term an array over the keys' values, shape (len(key.values), …), () without keys.

        int64 if every result provably fits, else object (Python integers). Rows whose key is none or not listed are in
        no group. More than 2^26 groups raise `DataError` before anything is read or allocated.
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
        """For each list of keys the numbers of rows, as returned by `group`."""
        return [self.group(plan, keys, (Count(),))[0] for keys in tables]

    def crossed(self, plan: Plan, keys: Sequence[Key], by: Key) -> list[Array]:
        """For each key a table of the numbers of rows, by its values and those of `by`."""
        return self.counts(plan, [(key, by) for key in keys])

    def codes(self, plan: Plan, keys: tuple[Key, ...]) -> list[Array]:
        """For each key an array over the rows of a relation: the index of the row's value in the key's, as in `group`,
        −1 if it is none or not listed. int8, int16 or int32.

        Rows of plans without joins are numbered, and returned in the order of their numbers in every call.
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
        """Rows of a relation as doubles, in batches of shape (at most `size`, len(exprs)), in any order.

        Rows with a missing value are dropped. No other question may be asked in between.
        """
        query = relations.vectors(self.relation(plan, exprs), exprs)

        def batches() -> Iterator[Array]:
            for batch in self.batches(query, size):
                yield np.stack([column.astype(np.float64, copy=False) for column in batch], axis=1)

        return batches()

    def fold(self, plan: Plan, exprs: tuple[RowExpr, ...], work: Work) -> list[Any]:
        """The result of `work` on the rows of a relation, as in `vectors`: arrays of integers."""
        return work(self.vectors(plan, exprs, BLOCK))

    def fold_codes(self, plan: Plan, keys: tuple[Key, ...], work: Work) -> list[object]:
        """The result of `work` on the codes of rows, as in `codes`, in any order."""
        source = self.relation(plan, (key.expr for key in keys))
        batches = self.batches(relations.codes(source, keys), BLOCK)
        return work(np.stack(batch[source.numbered :], axis=1) for batch in batches)

    def tally(self, plan: Plan, expr: RowExpr) -> tuple[Array, Array]:
        """The distinct values of an expression, without none, in order, and their numbers of rows (int64)."""
        relation = self.relation(plan, (expr,))
        values, counts = self.columns(relations.tally(relation, expr))
        there = np.asarray(counts) > 0
        values = _cells(np.ma.getdata(values)[there], kind_of(expr, relation.schema))
        return values, fixed_width(np.asarray(counts)[there])

    def tuples(self, plan: Plan, exprs: tuple[RowExpr, ...]) -> tuple[list[tuple[Any, ...]], Array]:
        """The distinct combinations of values of several expressions, without missing ones, in order, and their numbers
        of rows (int64)."""
        relation = self.relation(plan, exprs)
        *values, counts = self.columns(relations.tuples(relation, exprs))
        there = ~np.any([np.zeros(len(counts), dtype=bool), *map(np.ma.getmaskarray, values)], axis=0)
        kinds = [kind_of(expr, relation.schema) for expr in exprs]
        cells = [_cells(np.ma.getdata(v)[there], kind).tolist() for v, kind in zip(values, kinds, strict=True)]
        rows = list(zip(*cells, strict=True))
        return rows, fixed_width(np.ma.getdata(counts)[there])


def _cells(values: Array, kind: str) -> Array:
    """Values of a kind in the representation of the language."""
    if kind == "number":
        return np.asarray(values, dtype=np.float64) + 0.0
    cells = [moment_of(kind, v) for v in np.asarray(values).tolist()] if kind in ("date", "time") else values
    return np.asarray(cells, dtype=bool if kind == "boolean" else object)
