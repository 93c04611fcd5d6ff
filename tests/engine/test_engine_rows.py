"""One suite of row expressions, run on DuckDB and on NumPy: the same values, the same missing ones, never an error."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import numpy as np
import pytest
from engine_expressions import COLUMNS, NAN, SCHEMA, conditions, numbers, on_sql, smooth
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jostle.diagnostics import Refusal
from jostle.language.row_functions import OPERATIONS
from jostle.plan.facts import bounds_of
from jostle.plan.kinds import is_integral, kind_of
from jostle.plan.plan import Apply, Column, Constant, RowExpr
from jostle.privacy.kernel.handles import Counted, Cube
from jostle.readers.duckdb import LocalDuckDb
from jostle.run.positions import cell_test, evaluate

SETTINGS = settings(
    max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@pytest.fixture(scope="module")
def engine() -> Iterator[LocalDuckDb]:
    engine = LocalDuckDb()
    yield engine
    engine.close()


def on_numpy(expr: RowExpr) -> list[Any]:
    values, valid = evaluate(expr, COLUMNS)
    return [value if known else None for value, known in zip(values.tolist(), valid.tolist(), strict=True)]


@SETTINGS
@given(st.lists(numbers(), min_size=15, max_size=25))
def test_arithmetic_agrees_to_the_last_bit(engine: LocalDuckDb, expressions: list[RowExpr]) -> None:
    for expr, found in zip(expressions, on_sql(engine, expressions), strict=True):
        assert found == on_numpy(expr), expr


@SETTINGS
@given(st.lists(conditions(numbers(4)), min_size=15, max_size=25))
def test_conditions_agree(engine: LocalDuckDb, expressions: list[RowExpr]) -> None:
    for expr, found in zip(expressions, on_sql(engine, expressions), strict=True):
        assert found == on_numpy(expr), expr


@settings(SETTINGS, max_examples=30)
@given(st.lists(smooth(), min_size=10, max_size=20))
def test_mathematics_agrees_nearly(engine: LocalDuckDb, expressions: list[RowExpr]) -> None:
    for expr, found in zip(expressions, on_sql(engine, expressions), strict=True):
        for left, right in zip(found, on_numpy(expr), strict=True):
            assert (left is None) == (right is None), expr
            assert left is None or math.isclose(left, right, rel_tol=1e-12), expr


@SETTINGS
@given(st.lists(st.one_of(numbers(), smooth()), min_size=10, max_size=20))
def test_bounds_hold_and_whole_numbers_are_whole(engine: LocalDuckDb, expressions: list[RowExpr]) -> None:
    for expr in expressions:
        values, valid = evaluate(expr, COLUMNS)
        present = values[valid]
        bounds = bounds_of(expr, SCHEMA)
        if bounds is not None:
            assert np.all((present >= bounds[0]) & (present <= bounds[1])), (expr, bounds)
        if is_integral(expr, SCHEMA):
            assert np.all(present == np.floor(present)), expr


@settings(SETTINGS, max_examples=20)
@given(st.lists(st.one_of(numbers(40), smooth()), min_size=5, max_size=10))
def test_whatever_is_not_finite_is_missing(engine: LocalDuckDb, expressions: list[RowExpr]) -> None:
    for found in on_sql(engine, expressions):
        assert all(value is None or math.isfinite(value) for value in found)


@pytest.mark.parametrize(
    ("op", "args", "value"),
    [
        ("%", (-7.0, 4.0), 1.0),
        ("%", (7.0, -4.0), -1.0),
        ("%", (7.0, 0.0), None),
        ("/", (1.0, 0.0), None),
        ("^", (0.0, -1.0), None),
        ("^", (-8.0, 3.0), -512.0),
        ("^", (-8.0, 0.5), None),
        ("round", (2.5,), 2.0),
        ("round", (-0.5,), 0.0),
        ("sqrt", (-1.0,), None),
        ("log", (0.0,), None),
        ("exp", (1000.0,), None),
        ("*", (1e308, 10.0), None),
        ("clamp", (float("inf"), 0.0, 1.0), None),
        ("clamp", (5.0, 3.0, 1.0), 3.0),
        ("min", (1.0, None), None),
        ("in", (2.0, 1.0, 2.0), True),
        ("in", (None, 1.0), None),
        ("in", (3.0, None), False),
        ("in", (None, None, 3.0), True),
        ("in", (2.0, None, 3.0, 2.0), True),
        ("in", (None, None), True),
        ("in", ("a", None), False),
        ("missing", (None,), True),
        ("missing", ("",), False),
        ("missing", (NAN,), True),
        ("missing", (False,), False),
        ("if", (None, 1.0, 2.0), 2.0),
        ("if", (None, 1.0, None), None),
        ("and", (False, None), False),
        ("and", (True, None), None),
        ("or", (True, None), True),
        ("==", (None, 1.0), None),
        ("<", ("Z", "a"), True),
    ],
)
def test_single_values(engine: LocalDuckDb, op: str, args: tuple[Any, ...], value: Any) -> None:
    expr = Apply(op, tuple(Constant(arg) for arg in args))
    assert on_sql(engine, [expr])[0] == [value] * 14
    assert on_numpy(expr) == [value] * 14


def test_deep_nesting_is_linear_in_text_and_time(engine: LocalDuckDb) -> None:
    expr: RowExpr = Column("o")
    for _ in range(60):
        expr = Apply("/", (Constant(1.0), Apply("%", (expr, Constant(3.0)))))
    assert on_sql(engine, [expr])[0] == on_numpy(expr)
    for _ in range(200):
        expr = Apply("neg", (expr,))
    with pytest.raises(Refusal) as refusal:
        kind_of(expr, SCHEMA)
    assert refusal.value.first.kind == "RecursionLimit"


OPERANDS = {
    "number": (Column("i"), Column("o")),
    "text": (Apply("text", (Column("i"),)), Column("t")),
    "any": (Column("t"), Column("c")),
    "boolean": (Apply("<", (Column("i"), Column("r"))),),
    "date": (Apply("shift", (Constant(date(2020, 1, 28)), Column("i"))), Constant(date(9999, 12, 31))),
    "time": (Apply("shift time", (Constant(datetime(2020, 1, 28, 23, 59)), Column("o"))), Constant(datetime(1, 1, 1))),
}
CONSTANTS = {
    "date by format": ("%d/%m/%Y",), "time by format": ("%I:%M %p",), "in_zone": ("Europe/Berlin",), "trunc": ("week",),
    "trunc time": ("hour",), "substring": (1.0,), "substring of count": (1.0, 2.0), "part": ("e", 2.0),
    "matches": ("^r",),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(OPERATIONS.keys() - {"pair", "log", "exp", "^"}))
def test_every_operation_agrees_on_public_values(engine: LocalDuckDb, name: str) -> None:
    """Dates and times are the numbers that stand for them; nothing fails, whatever the numbers are."""
    constants = CONSTANTS.get(name, ())
    kinds = OPERATIONS[name].kinds[: len(OPERATIONS[name].kinds) - len(constants)]
    several = itertools.product(*(OPERANDS[kind] for kind in kinds))
    exprs: list[RowExpr] = [Apply(name, (*args, *map(Constant, constants))) for args in several]
    for expr, found in zip(exprs, on_sql(engine, exprs), strict=True):
        assert found == on_numpy(expr), expr


def condition_on_counts(rng: random.Random, depth: int) -> RowExpr:
    """A condition on `values` and on positions, as the language allows it of a cube."""
    if depth and rng.random() < 0.6:
        op = rng.choice(("and", "or", "not"))
        return Apply(op, tuple(condition_on_counts(rng, depth - 1) for _ in range(1 if op == "not" else 2)))
    x: RowExpr = Column("x")
    numbers = [Constant(2.0), Constant(0.5), Constant(None), x, Apply("/", (Constant(6.0), x)), Column("values")]
    if rng.random() < 0.3:
        return Apply(
            "in", tuple(rng.choice((Column("values"), x)) if i == 0 else rng.choice(numbers) for i in range(3))
        )
    sides = [rng.choice((Column("values"), *numbers)), rng.choice(numbers)]
    return Apply(rng.choice(("==", "!=", "<", "<=", ">", ">=")), tuple(sides))


def test_conditions_on_counts_are_what_the_language_says() -> None:
    """Exact cells are looked up in public arrays, which say what the language does of every count."""
    rng, counts = random.Random(33), np.arange(12).reshape(3, 4) % 5
    cube = Cube((), Counted(), ("x", "y"), counts.shape)
    columns = {
        "x": np.repeat(np.arange(3.0), 4),
        "y": np.tile(np.arange(4.0), 3),
        "values": counts.ravel().astype(float),
    }
    for _ in range(400):
        condition = condition_on_counts(rng, 3)
        holds, valid = evaluate(condition, columns)
        true, false = (np.broadcast_to(one, counts.shape).ravel() for one in cell_test(cube, condition).of(counts))
        assert true.tolist() == (holds & valid).tolist(), condition
        assert false.tolist() == (~holds.astype(bool) & valid).tolist(), condition
