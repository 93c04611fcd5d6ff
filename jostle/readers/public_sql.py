"""Exact answers about public relations, from the SQL of a dialect: rows as they are, and statistics in doubles.

Exact aggregates of public relations, as SQL.
"""

from __future__ import annotations

import itertools
from abc import ABC
from collections.abc import Iterator, Sequence
from typing import Any

from jostle.diagnostics import refuse
from jostle.engine import base
from jostle.engine.sql import relations
from jostle.engine.sql.dialect import subquery
from jostle.engine.sql.engine import SqlEngine
from jostle.engine.sql.relations import Relation
from jostle.engine.sql.rows import RowSql, aggregate, check_number, key_test, key_value
from jostle.language.moments import moment_of
from jostle.lazy import Array
from jostle.plan.kinds import Schema, domain_kind, kind_of
from jostle.plan.plan import STATISTICS, Column, Exact, Key, Plan, RowExpr
from jostle.speed.fast import grouped

_EXACT = {
    "count": "count({v})", "count_distinct": "count(DISTINCT {v})", "sum": "coalesce(sum({v}), 0)", "avg": "avg({v})",
    "var": "var_samp({v})", "min": "min({v})", "max": "max({v})", "mode": "min({v})",
}  # fmt: skip
_OF_TRUTHS = {"min": "bool_and", "max": "bool_or", "mode": "bool_and"}  # not every database orders them
_ANY_KIND = frozenset({"min", "max", "count_distinct", "mode", "count"})


def exact(source: Relation, keys: tuple[Key | RowExpr, ...], terms: tuple[Exact, ...]) -> str:
    """Key columns, then a column a term; groups of listed keys that have no rows are left out."""
    rows = source.rows()
    inner, tests, names = _exact_keys(rows, source.schema, keys)
    outer = []
    for i, term in enumerate(terms):
        if term.expr is not None:
            inner.append(f"{rows.value(term.expr)} AS v{i}")
        outer.append(f"{_exact_term(source, term, f'v{i}')} AS a{i}")
    return aggregate(names, outer, inner, tests, rows.over(source.sql))


def _exact_keys(
    rows: RowSql, schema: Schema, keys: tuple[Key | RowExpr, ...]
) -> tuple[list[str], list[str], list[str]]:
    inner, tests = [], []
    for i, key in enumerate(keys):
        if isinstance(key, Key):
            inner.append(f"{key_value(rows, key, schema)} AS k{i}")
            ends = isinstance(key.values, range) and key.values and (key.values[0], key.values[-1])
            test = f"k{i} BETWEEN {ends[0]} AND {ends[1]}" if ends else key_test(rows, f"k{i}", key, schema)
            tests += [test] if test else []
        else:
            value = rows.floor(key) if kind_of(key, schema) == "number" else rows.value(key)
            inner.append(f"{value} AS k{i}")
        tests.append(f"k{i} IS NOT NULL")
    return inner, tests, [f"k{i}" for i in range(len(keys))]


def _exact_term(source: Relation, term: Exact, value: str) -> str:
    if term.function == "count" and term.expr is None:
        return "count(*)"
    if term.expr is None or term.function not in STATISTICS:
        raise refuse("TypeError", f"`{term.function}` needs a value to aggregate")
    if term.function not in _ANY_KIND:
        check_number(term.function, term.expr, source.schema)
    if term.function == "quantile":
        q = term.argument
        if q is None or not 0 <= q <= 1:
            raise refuse("ValueError", "a quantile lies between 0 and 1", help="quantile(x, 0.9)")
        return source.dialect.quantile.format(value, source.dialect.number(q))
    if kind_of(term.expr, source.schema) == "boolean" and term.function in _OF_TRUTHS:
        return f"{_OF_TRUTHS[term.function]}({value})"
    return _EXACT[term.function].format(v=value)


def mode(source: Relation, keys: tuple[Key | RowExpr, ...], expr: RowExpr) -> str:
    """Key columns, then the most frequent value, the smallest of those that tie; NULL where all are missing."""
    rows = source.rows()
    inner, tests, names = _exact_keys(rows, source.schema, keys)
    inner.append(f"{rows.value(expr)} AS v")
    counted = aggregate([*names, "v"], ["count(v) AS n"], inner, tests, rows.over(source.sql))
    part = f"PARTITION BY {', '.join(names)} " if names else ""
    ranked = f"SELECT *, row_number() OVER ({part}ORDER BY n DESC, v) AS place FROM {subquery(counted)}"
    return f"SELECT {', '.join([*names, 'v'])} FROM {subquery(ranked)} WHERE place = 1"


class PublicSql(SqlEngine, ABC):
    """A `SqlEngine` that answers about public relations too: what a backend derives from."""

    grouped = staticmethod(grouped)

    def code_blocks(self, plan: Plan, keys: tuple[Key, ...], size: int) -> Iterator[list[Array]]:
        """The numbers of rows and their codes, of at most `size` rows at a time, as they come (`speed.parts`)."""
        source = self.relation(plan, (key.expr for key in keys))
        yield from self.batches(relations.codes(source, keys), size)

    def records(self, plan: Plan) -> list[tuple[object, ...]]:
        """The rows of a **public** relation: numbers as doubles, texts, booleans, dates, times, None. In the order of
        their numbers, where they have some, else of their values."""
        relation = self.relation(plan)
        rows = self.fetch(_records(relation))
        if not relation.numbered and not self.dialect.orders:
            rows.sort(key=lambda row: [(cell is None, 0 if cell is None else cell) for cell in row])
        cells = zip(*rows, strict=True)
        kinds = map(domain_kind, relation.schema.values())
        columns = [_cells(list(map(base.plain, column)), kind) for column, kind in zip(cells, kinds, strict=False)]
        return list(zip(*columns, strict=True))

    def different(self, plan: Plan, names: Sequence[str]) -> tuple[list[list[object]], list[float]]:
        """The different rows of these columns of a **public** relation, a list a column, and how often each occurs.

        Cells are as they are: numbers are not taken down to integers, and missing ones are None.
        """
        relation, exprs = self.relation(plan), tuple(Column(name) for name in names)
        rows = self.fetch(relations.tuples(relation, exprs))
        *cells, counts = zip(*rows, strict=True) if rows else [()] * (len(names) + 1)
        kinds = [kind_of(expr, relation.schema) for expr in exprs]
        columns = [_cells(list(map(base.plain, column)), kind) for column, kind in zip(cells, kinds, strict=True)]
        return columns, [float(count) for count in counts]

    def exact(
        self, plan: Plan, keys: tuple[Key | RowExpr, ...], terms: tuple[Exact, ...]
    ) -> tuple[list[list[object]], list[list[object]]]:
        """Exact aggregates of a **public** relation, in doubles: the columns of the keys and of the terms.

        A `Key` gives all its values in order, also those without rows; a bare expression gives the values that
        occur, sorted, numbers taken down to integers. Without keys there is one row. Empty groups count and sum to 0
        and are None otherwise; `var` is the sample's; of several modes the smallest.
        """
        base.shape(tuple(key for key in keys if isinstance(key, Key)))
        relation = self.relation(plan)
        by_place: dict[tuple[object, ...], list[object]] = {}
        for row in self.fetch(exact(relation, keys, terms)):
            by_place[tuple(map(base.plain, row[: len(keys)]))] = [base.plain(value) for value in row[len(keys) :]]
        for i, term in enumerate(terms):
            if term.function == "mode" and term.expr is not None:
                for row in self.fetch(mode(relation, keys, term.expr)):
                    by_place[tuple(map(base.plain, row[:-1]))][i] = base.plain(row[-1])
        empty = [0.0 if term.function in ("count", "count_distinct", "sum") else None for term in terms]
        rows = [(*place, *by_place.get(place, empty)) for place in _order(keys, by_place)]
        exprs = [*(key.expr if isinstance(key, Key) else key for key in keys), *(term.expr for term in terms)]
        kinds = [None if expr is None else kind_of(expr, relation.schema) for expr in exprs]
        kinds[len(keys) :] = [
            kind if term.function in ("min", "max", "mode") else None
            for term, kind in zip(terms, kinds[len(keys) :], strict=True)
        ]
        columns = [_cells([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
        return columns[: len(keys)], columns[len(keys) :]


def _cells(values: list[Any], kind: str | None) -> list[Any]:
    """Dates and times for the numbers that stand for them."""
    if kind not in ("date", "time"):
        return values
    return [None if value is None else moment_of(kind, value) for value in values]


def _records(source: Relation) -> str:
    """The rows of a relation in the order of their numbers, else of their values, where the database may be asked."""
    names = [physical.alias for physical in source.columns.values()]
    double = source.dialect.as_double
    items = [f"{double(p.alias)} AS {p.alias}" if p.whole else p.alias for p in source.columns.values()]
    order = "n" if source.numbered else ", ".join(f"{name} NULLS LAST" for name in names)
    inner = f"SELECT {', '.join([*items, *['n'] * source.numbered])} FROM {subquery(source.sql)}"
    ordered = f" ORDER BY {order}" if source.numbered or source.dialect.orders else ""
    return f"SELECT {', '.join(names)} FROM {subquery(inner)}{ordered}"


def _order(
    keys: tuple[Key | RowExpr, ...], by_place: dict[tuple[object, ...], list[object]]
) -> list[tuple[object, ...]]:
    """The groups to report: what occurs of the bare keys, times all values of the listed ones, in key order."""
    places = [i for i, key in enumerate(keys) if isinstance(key, Key)]
    if not places:
        return sorted(by_place) if keys else [()]
    values = [[base.plain(value) for value in key.values] for key in keys if isinstance(key, Key)]
    bare = [i for i in range(len(keys)) if i not in places]
    occurring = sorted({tuple(place[i] for i in bare) for place in by_place}) if bare else [()]
    ranks = {i: {value: n for n, value in enumerate(values[j])} for j, i in enumerate(places)}
    order = []
    for some in occurring:
        for rest in itertools.product(*values):
            place = dict(zip(bare, some, strict=True)) | dict(zip(places, rest, strict=True))
            order.append(tuple(place[i] for i in range(len(keys))))
    return sorted(order, key=lambda place: tuple(ranks[i][v] if i in ranks else v for i, v in enumerate(place)))
