"""Exact answers about public relations, from the SQL of a dialect: rows as they are, and statistics in doubles."""

from __future__ import annotations

import itertools
from abc import ABC
from collections.abc import Sequence
from typing import Any

from jostle.engine import groups
from jostle.engine.sql import relations
from jostle.engine.sql.dialect import subquery
from jostle.engine.sql.engine import SqlEngine
from jostle.engine.sql.relations import Relation
from jostle.language.moments import moment_of
from jostle.plan.kinds import domain_kind, kind_of
from jostle.plan.plan import Column, Exact, Key, Plan, RowExpr
from jostle.readers import exact


class PublicSql(SqlEngine, ABC):
    """A `SqlEngine` that answers about public relations too: what a backend derives from."""

    def records(self, plan: Plan) -> list[tuple[Any, ...]]:
        """The rows of a **public** relation: numbers as doubles, texts, booleans, dates, times, None. In the order of
        their numbers, where they have some, else of their values."""
        relation = self.relation(plan)
        rows = self.fetch(_records(relation))
        if not relation.numbered and not self.dialect.orders:
            rows.sort(key=lambda row: [(cell is None, 0 if cell is None else cell) for cell in row])
        cells = zip(*rows, strict=True)
        kinds = map(domain_kind, relation.schema.values())
        columns = [_shown(list(map(groups.plain, column)), kind) for column, kind in zip(cells, kinds, strict=False)]
        return list(zip(*columns, strict=True))

    def different(self, plan: Plan, names: Sequence[str]) -> tuple[list[list[Any]], list[float]]:
        """The different rows of these columns of a **public** relation, a list a column, and how often each occurs.

        Cells are as they are: numbers are not taken down to integers, and missing ones are None.
        """
        relation, exprs = self.relation(plan), tuple(Column(name) for name in names)
        rows = self.fetch(relations.tuples(relation, exprs))
        *cells, counts = zip(*rows, strict=True) if rows else [()] * (len(names) + 1)
        kinds = [kind_of(expr, relation.schema) for expr in exprs]
        columns = [_shown(list(map(groups.plain, column)), kind) for column, kind in zip(cells, kinds, strict=True)]
        return columns, [float(count) for count in counts]

    def exact(
        self, plan: Plan, keys: tuple[Key | RowExpr, ...], terms: tuple[Exact, ...]
    ) -> tuple[list[list[Any]], list[list[Any]]]:
        """Exact aggregates of a **public** relation, in doubles: the columns of the keys and of the terms.

        A `Key` gives all its values in order, also those without rows; a bare expression gives the values that
        occur, sorted, numbers taken down to integers. Without keys there is one row. Empty groups count and sum to 0
        and are None otherwise; `var` is the sample's; of several modes the smallest.
        """
        groups.shape(tuple(key for key in keys if isinstance(key, Key)))
        relation = self.relation(plan)
        by_place: dict[tuple[Any, ...], list[Any]] = {}
        for row in self.fetch(exact.exact(relation, keys, terms)):
            by_place[tuple(map(groups.plain, row[: len(keys)]))] = [groups.plain(value) for value in row[len(keys) :]]
        for i, term in enumerate(terms):
            if term.function == "mode" and term.expr is not None:
                for row in self.fetch(exact.mode(relation, keys, term.expr)):
                    by_place[tuple(map(groups.plain, row[:-1]))][i] = groups.plain(row[-1])
        empty = [0.0 if term.function in ("count", "count_distinct", "sum") else None for term in terms]
        rows = [(*place, *by_place.get(place, empty)) for place in _order(keys, by_place)]
        exprs = [*(key.expr if isinstance(key, Key) else key for key in keys), *(term.expr for term in terms)]
        kinds = [None if expr is None else kind_of(expr, relation.schema) for expr in exprs]
        kinds[len(keys) :] = [
            kind if term.function in ("min", "max", "mode") else None
            for term, kind in zip(terms, kinds[len(keys) :], strict=True)
        ]
        columns = [_shown([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
        return columns[: len(keys)], columns[len(keys) :]


def _shown(values: list[Any], kind: str | None) -> list[Any]:
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


def _order(keys: tuple[Key | RowExpr, ...], by_place: dict[tuple[Any, ...], list[Any]]) -> list[tuple[Any, ...]]:
    """The groups to report: what occurs of the bare keys, times all values of the listed ones, in key order."""
    listed = [i for i, key in enumerate(keys) if isinstance(key, Key)]
    if not listed:
        return sorted(by_place) if keys else [()]
    values = [[groups.plain(value) for value in key.values] for key in keys if isinstance(key, Key)]
    bare = [i for i in range(len(keys)) if i not in listed]
    occurring = sorted({tuple(place[i] for i in bare) for place in by_place}) if bare else [()]
    ranks = {i: {value: n for n, value in enumerate(values[j])} for j, i in enumerate(listed)}
    order = []
    for some in occurring:
        for rest in itertools.product(*values):
            place = dict(zip(bare, some, strict=True)) | dict(zip(listed, rest, strict=True))
            order.append(tuple(place[i] for i in range(len(keys))))
    return sorted(order, key=lambda place: tuple(ranks[i][v] if i in ranks else v for i, v in enumerate(place)))
