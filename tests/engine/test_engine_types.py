"""Kinds, bounds, key values and schemas: what is public of a plan."""

from __future__ import annotations

from typing import Any

import pytest

from jostle.diagnostics import Refusal
from jostle.language.moments import FIRST_TIME, LAST_DAY, LAST_TIME
from jostle.plan.facts import bounds_of, derived_domain, key_values, schema_of
from jostle.plan.kinds import is_integral, kind_of
from jostle.plan.plan import (
    Apply,
    Bound,
    Categories,
    Column,
    Constant,
    Derive,
    Domain,
    Filter,
    Integer,
    Join,
    Moments,
    Open,
    Real,
    RowExpr,
    Scan,
)  # fmt: skip

SCHEMA = {
    "age": Integer(0, 99),
    "gain": Real(-1.5, 10.0),
    "city": Categories(("Ames", "Bergen")),
    "size": Categories((0.5, 2.0)),
    "note": Open("text"),
    "far": Open("real"),
}
AGE, GAIN, CITY, FAR = Column("age"), Column("gain"), Column("city"), Column("far")


def call(op: str, *args: Any) -> RowExpr:
    return Apply(op, tuple(arg if isinstance(arg, Column | Apply | Constant) else Constant(arg) for arg in args))


@pytest.mark.parametrize(
    ("expr", "kind"),
    [
        (call("+", AGE, 1.0), "number"),
        (call("==", CITY, "Ames"), "boolean"),
        (call("if", call(">", AGE, 1.0), "a", None), "text"),
        (call("in", CITY, "a", None), "boolean"),
        (Constant(None), "number"),
        (Column("size"), "number"),
    ],
)
def test_kinds(expr: RowExpr, kind: str) -> None:
    assert kind_of(expr, SCHEMA) == kind


@pytest.mark.parametrize(
    ("expr", "kind"),
    [
        (call("+", AGE, "1"), "TypeError"),
        (call("==", CITY, 1.0), "TypeError"),
        (call("<", call(">", AGE, 1.0), True), "TypeError"),
        (call("and", AGE, True), "TypeError"),
        (call("if", AGE, 1.0, 2.0), "TypeError"),
        (call("if", True, 1.0, "a"), "TypeError"),
        (call("in", AGE, 1.0, "a"), "TypeError"),
        (call("sqrt", AGE, AGE), "TypeError"),
        (call("eval", AGE), "TypeError"),
        (call("+", Column("agee"), 1.0), "NameError"),
    ],
)
def test_what_does_not_fit_is_refused(expr: RowExpr, kind: str) -> None:
    with pytest.raises(Refusal) as refusal:
        kind_of(expr, SCHEMA)
    assert refusal.value.first.kind == kind


@pytest.mark.parametrize(
    ("expr", "bounds"),
    [
        (call("/", AGE, 10.0), (0.0, 9.9)),
        (call("*", AGE, GAIN), (-148.5, 990.0)),
        (call("/", 1.0, AGE), None),
        (call("/", 1.0, call("+", AGE, 1.0)), (0.01, 1.0)),
        (call("%", AGE, 7.0), (0.0, 6.0)),
        (call("%", call("neg", AGE), -7.0), (-6.0, 0.0)),
        (call("^", GAIN, 2.0), (0.0, 100.0)),
        (call("abs", GAIN), (0.0, 10.0)),
        (call("if", call(">", AGE, 3.0), 1.0, GAIN), (-1.5, 10.0)),
        (call("if", call(">", AGE, 3.0), AGE, None), (0.0, 99.0)),
        (call("clamp", FAR, 0.0, 10.0), (0.0, 10.0)),
        (call("clamp", AGE, 50.0, 200.0), (50.0, 99.0)),
        (call("clamp", FAR, 50.0, AGE), (50.0, 99.0)),
        (call("clamp", FAR, 50.0, 10.0), (50.0, 50.0)),
        (call("+", FAR, 1.0), None),
        (call("exp", call("*", AGE, 100.0)), None),
        (call("sqrt", call("+", AGE, 1.0)), (1.0, 10.0)),
        (call("*", call("*", 1e200, AGE), 1e200), None),
        (call("min", AGE, GAIN), (-1.5, 10.0)),
        (Column("size"), (0.5, 2.0)),
    ],
)
def test_bounds(expr: RowExpr, bounds: tuple[float, float] | None) -> None:
    assert bounds_of(expr, SCHEMA) == bounds


@pytest.mark.parametrize(
    ("expr", "values"),
    [
        (AGE, range(100)),
        (call("/", AGE, 10.0), range(10)),
        (GAIN, range(-2, 11)),
        (call(">", AGE, 10.0), (False, True)),
        (CITY, ("Ames", "Bergen")),
        (Column("size"), (0.5, 2.0)),
        (call("*", Column("size"), 2.0), range(1, 5)),
        (Column("note"), None),
        (FAR, None),
        (call("if", call(">", AGE, 10.0), "old", CITY), ("old", "Ames", "Bergen")),
        (call("if", call(">", AGE, 10.0), "old", Column("note")), None),
    ],
)
def test_key_values(expr: RowExpr, values: Any) -> None:
    assert key_values(expr, SCHEMA, 1000) == values


@pytest.mark.parametrize("high", [10**12, 10**400])
def test_too_many_keys_are_refused(high: int) -> None:
    with pytest.raises(Refusal) as refusal:
        key_values(Column("x"), {"x": Integer(0, high)}, 2**26)
    assert refusal.value.first.kind == "ValueError"


def test_a_redefined_column_loses_its_bounds() -> None:
    scan = Scan("d0", tuple(SCHEMA.items()))
    bounded = Derive(scan, (("far", call("clamp", FAR, 0.0, 1.0)),))
    again = Derive(bounded, (("far", call("/", 1.0, FAR)),))
    assert schema_of(bounded) == {"far": Real(0.0, 1.0)}
    assert schema_of(again) == {"far": Open("real")}


def test_schemas_of_plans() -> None:
    scan = Scan("d0", (("age", Integer(0, 99)), ("city", Open("text"))))
    other = Scan("d1", (("city", Categories(("Ames",))), ("age", Real(0.0, 1.0)), ("rain", Real(0.0, 9.0))))
    assert schema_of(Filter(Bound(scan, ("city",), 2), call(">", AGE, 3.0))) == dict(scan.columns)
    assert schema_of(Join(scan, other, ("city",))) == dict(scan.columns) | {"rain": Real(0.0, 9.0)}
    made = Derive(scan, (("half", call("floor", call("/", AGE, 2.0))), ("old", call(">", AGE, 60.0))))
    assert schema_of(made) == {"half": Integer(0, 49), "old": Open("boolean")}
    with pytest.raises(Refusal):
        schema_of(Join(scan, other, ("age", "rain")))


def test_whole_numbers() -> None:
    assert is_integral(call("+", call("*", AGE, 2.0), call("floor", GAIN)), SCHEMA)
    assert not is_integral(call("/", AGE, 2.0), SCHEMA)
    assert not is_integral(GAIN, SCHEMA)


def test_a_text_that_is_never_there_is_a_text_and_a_date_moved_far_is_none() -> None:
    """Found by plans that were drawn at random: no kind without a value, and no infinity as a whole number."""
    schema: dict[str, Domain] = {"w": Categories(("red", "blue")), "d": Open("date"), "x": Real(-1e308, 1e308)}
    assert derived_domain(Apply("date by format", (Column("w"), Constant("%Y-%m-%d"))), schema) == Open("text")
    moved = Apply("shift time", (Apply("time", (Column("d"),)), Column("x")))
    assert bounds_of(moved, {**schema, "d": Moments("date", 0, 9)}) == (FIRST_TIME, LAST_TIME)
    beyond = Apply("shift", (Column("d"), Constant(1e9)))
    week = Apply("trunc", (beyond, Constant("week")))
    assert bounds_of(week, {"d": Moments("date", 0, 9)}) == (LAST_DAY - 4, LAST_DAY - 4)
