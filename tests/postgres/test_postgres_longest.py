"""A row with the longest text that the server has: every kind of question is answered as if the cell were empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jostle.backends.postgres.engine import Postgres
from jostle.backends.remote import RemoteData
from jostle.plan.plan import (
    Apply,
    Bound,
    Categories,
    Column,
    Constant,
    Count,
    Domain,
    Filter,
    GroupRows,
    Integer,
    Join,
    Key,
    Moments,
    Open,
    Owners,
    Plan,
    Real,
    RowExpr,
    Scan,
    Truncate,
)  # fmt: skip

TEXTS = ["a", "b", "1", "0", "true", "2024-02-29", "31/12/1999", " x ", "a,b", "", None]


@pytest.fixture(scope="module")
def tables(url: str) -> dict[str, int]:
    """The sizes of texts that two tables have in their last rows; `long_plain` has none there."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for name in ("plain", "wide", "narrow"):
            connection.execute(f"DROP TABLE IF EXISTS long_{name}; CREATE TABLE long_{name} (x text, y int)")  # type: ignore[arg-type]
            for i, text in enumerate(TEXTS):
                connection.execute(f"INSERT INTO long_{name} VALUES (%s, %s)", (text, i % 3))  # type: ignore[arg-type]
        connection.execute("INSERT INTO long_plain VALUES (NULL, 1), (NULL, 1)")
        connection.execute("INSERT INTO long_wide SELECT repeat('ä', 134217727) || 'x', 1 FROM generate_series(1, 2)")
        connection.execute("INSERT INTO long_narrow SELECT repeat('7', 268435455), 1 FROM generate_series(1, 2)")
    return {"wide": 268_435_455, "narrow": 268_435_455}


@pytest.fixture
def engine(url: str) -> Iterator[Postgres]:
    engine = Postgres(url)
    yield engine
    engine.close()


X = Column("x")
Question = Callable[[Any, str], Any]


def described(domain: Domain) -> Question:
    return lambda engine, key: _tally(engine, Scan(key, (("x", domain),)), X)


def calculated(op: str, *constants: Any) -> Question:
    expr = Apply(op, (X, *map(Constant, constants)))
    return lambda engine, key: _tally(engine, Scan(key, (("x", Open("text")),)), expr)


def relation(plan: Callable[[Scan], Plan]) -> Question:
    def ask(engine: Any, key: str) -> Any:
        made = plan(Scan(key, (("x", Open("text")), ("y", Integer(0, 2)))))
        return [
            cells.tolist() for cells in engine.group(made, (Key(Column("y"), range(3)),), (Count(), Count(X, True)))
        ]

    return ask


def _tally(engine: Any, plan: Plan, expr: RowExpr) -> Any:
    values, counts = engine.tally(plan, expr)
    return dict(zip(map(str, values.tolist()), counts.tolist(), strict=True))


QUESTIONS: dict[str, Question] = {
    "text": described(Open("text")), "category": described(Categories(("a", "b"))), "real": described(Real(0.0, 9.0)),
    "integer": described(Integer(0, 9)), "open real": described(Open("real")), "truth": described(Open("boolean")),
    "date": described(Open("date")), "dates": described(Moments("date", 0, 20_000)), "time": described(Open("time")),
    **{op: calculated(op) for op in ("trim", "lower", "upper", "length", "number", "date of text", "time of text")},
    "matches": calculated("matches", "^(a|b)+$"), "contains": calculated("contains", "a"),
    "starts_with": calculated("starts_with", "a"), "ends_with": calculated("ends_with", "x"),
    "position": calculated("position", "b"), "replace": calculated("replace", "a", "bb"),
    "substring": calculated("substring", 2.0), "part": calculated("part", ",", 2.0),
    "concat": calculated("concat", "z"), "date by format": calculated("date by format", "%d/%m/%Y"),
    "compared": calculated("==", "a"), "set": calculated("in", "a", "b"), "missing": calculated("missing"),
    "persons": relation(lambda scan: Bound(scan, ("x",), 1)),
    "persons by two": relation(lambda scan: Bound(scan, ("x", "y"), 2)),
    "persons of others": relation(lambda scan: Bound(scan, (), 2, owners=Owners(Bound(scan, ("y",), None), "x", "x"))),
    "persons and a text": relation(lambda scan: Bound(scan, ("y",), 3)),
    "weights": lambda engine, key: engine.group(
        Bound(Scan(key, (("x", Open("text")),)), ("x",), 2, weighted=True), (), (Count(weighted=True),)
    )[0].tolist(),
    "groups of persons": relation(lambda scan: Truncate(Bound(scan, ("y",), 9), (X,), None, 2)),
    "a row a person": lambda engine, key: engine.rows(
        GroupRows(Bound(Scan(key, (("x", Open("text")),)), ("x",), 2), True, (("x", X),), (("n", Count()),))
    ),
    "join": relation(lambda scan: Join(scan, Scan(scan.data, (("x", Open("text")),)), ("x",))),
    "condition": relation(lambda scan: Filter(scan, Apply("contains", (X, Constant("a"))))),
    "codes": lambda engine, key: sorted(
        engine.codes(Scan(key, (("x", Categories(("a", "b"))),)), (Key(X, ("a", "b")),))[0].tolist()
    ),
    "rows": lambda engine, key: engine.tuples(Scan(key, (("x", Open("text")),)), (X,))[1].tolist(),
    "stamp": lambda engine, key: engine.stamp(key),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
def test_the_longest_text_is_as_no_text(name: str, tables: dict[str, int], engine: Postgres) -> None:
    def ask(table: str) -> Any:
        key = engine.open(RemoteData("postgres", (f"long_{table}",)), public=True).key
        return QUESTIONS[name](engine, key)

    expected = ask("plain")
    for table in tables:
        assert ask(table) == expected
