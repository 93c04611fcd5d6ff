"""Exact aggregates of public relations, as SQL."""

from __future__ import annotations

from jostle.diagnostics import refuse
from jostle.engine.sql.dialect import subquery
from jostle.engine.sql.keys import aggregate, key_test, key_value
from jostle.engine.sql.relations import Relation
from jostle.engine.sql.rows import RowSql
from jostle.engine.sql.terms import check_number
from jostle.plan.kinds import Schema, kind_of
from jostle.plan.plan import STATISTICS, Exact, Key, RowExpr

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
            test = key_test(rows, f"k{i}", key, schema)
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
