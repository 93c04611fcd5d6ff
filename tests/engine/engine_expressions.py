"""Random row expressions over one small table, for the suites that run them on SQL and on NumPy alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from jostle.plan.kinds import Schema
from jostle.plan.plan import Apply, Categories, Column, Constant, Derive, Integer, Open, Real, RowExpr, Scan
from jostle.readers.duckdb import LocalDuckDb

NAN = float("nan")
HUGE = 1.7976931348623157e308
DOMAINS = (
    ("n", Integer(0, 99)),
    ("i", Integer(-7, 9)),
    ("r", Real(-3.5, 4.25)),
    ("o", Open("real")),
    ("c", Categories(("red", "green", "it's; --"))),
    ("t", Open("text")),
)
SCHEMA = dict(DOMAINS)
COLUMNS: dict[str, np.ndarray[Any, Any]] = {
    "n": np.arange(14),
    "i": np.array([0, 1, -1, 2, -7, 9, 3, NAN, 5, 0, -2, 4, 7, NAN]),
    "r": np.array([0.0, -0.0, 4.25, -3.5, NAN, 0.1, 0.5, 1.5, 2.5, -0.5, 1e-9, NAN, 3.999, -1.0]),
    "o": np.array([0.0, HUGE, -HUGE, 5e-324, -5e-324, 1e16, -1e300, NAN, 709.9, -745.2, 0.3, 2.0**53, 1.0, -1.0]),
    "c": np.array(["red", "green", None, "it's; --", "red", None, "green"] * 2, dtype=object),
    "t": np.array([None, "a", "red", "é", "A", "zz", "green"] * 2, dtype=object),
}
NUMBERS = [0.0, 1.0, -1.0, 2.0, 3.0, 0.5, -0.1, 10.0, 1e308, -1e308, 1e-308, 7.25, float("inf"), NAN]
EXACT_OPS = ["+", "-", "*", "/", "%", "min", "max"]


def _leaf() -> st.SearchStrategy[RowExpr]:
    constants = st.sampled_from([*map(Constant, NUMBERS), Constant(None)])
    return st.one_of(st.sampled_from([Column("i"), Column("r"), Column("o"), Column("n")]), constants)


def _texts() -> st.SearchStrategy[RowExpr]:
    words = st.sampled_from([Constant("red"), Constant("it's; --"), Constant("\0'"), Constant(None), Constant("")])
    return st.one_of(st.sampled_from([Column("c"), Column("t")]), words)


def _apply(op: str, *args: st.SearchStrategy[Any]) -> st.SearchStrategy[RowExpr]:
    return st.tuples(*args).map(lambda found: Apply(op, found))


def _wider(numbers: st.SearchStrategy[RowExpr]) -> st.SearchStrategy[RowExpr]:
    tests = conditions(numbers)
    return st.one_of(
        *(_apply(op, numbers, numbers) for op in EXACT_OPS),
        *(_apply(op, numbers) for op in ("neg", "abs", "floor", "ceil", "round", "sqrt")),
        _apply("clamp", numbers, numbers, numbers),
        _apply("if", tests, numbers, numbers),
    )


def conditions(numbers: st.SearchStrategy[RowExpr]) -> st.SearchStrategy[RowExpr]:
    orders = ["==", "!=", "<", "<=", ">", ">="]
    simple = st.one_of(
        *(_apply(op, numbers, numbers) for op in orders),
        *(_apply(op, _texts(), _texts()) for op in orders),
        st.tuples(numbers, st.lists(st.sampled_from([*map(Constant, NUMBERS), Constant(None)]), max_size=3)).map(
            lambda pair: Apply("in", (pair[0], *pair[1]))
        ),
        st.tuples(_texts(), st.lists(_texts(), max_size=3)).map(lambda pair: Apply("in", (pair[0], *pair[1]))),
        _apply("missing", numbers),
        _apply("missing", _texts()),
    )
    return st.one_of(simple, _apply("and", simple, simple), _apply("or", simple, simple, simple), _apply("not", simple))


def numbers(leaves: int = 8) -> st.SearchStrategy[RowExpr]:
    """Expressions of operations that every library rounds alike."""
    return st.recursive(_leaf(), _wider, max_leaves=leaves)


def smooth() -> st.SearchStrategy[RowExpr]:
    """One operation of a mathematics library over those."""
    inner = numbers(5)
    return st.one_of(_apply("log", inner), _apply("exp", inner), _apply("^", inner, inner))


def on_sql(engine: LocalDuckDb, expressions: list[RowExpr]) -> list[list[Any]]:
    """For each expression its value on each row of the table, in the order of the rows, from DuckDB."""
    return on_rows(engine, COLUMNS, SCHEMA, expressions)


def on_rows(engine: LocalDuckDb, arrays: dict[str, Any], domains: Schema, exprs: list[RowExpr]) -> list[list[Any]]:
    """For each expression its value on each row of these arrays, in the order of the rows, from DuckDB."""
    numbered = {"row": np.arange(len(next(iter(arrays.values())))), **arrays}
    source = Scan(engine.open(numbered, public=False).key, (("row", Open("integer")), *domains.items()))
    columns = (("row", Column("row")), *((f"e{i}", expr) for i, expr in enumerate(exprs)))
    derived = engine.relation(Derive(source, columns))
    rows = engine.fetch(f"SELECT {', '.join(f'c{i}' for i in range(len(columns)))} FROM ({derived.sql}) ORDER BY 1")
    return [[row[i + 1] for row in rows] for i in range(len(exprs))]
