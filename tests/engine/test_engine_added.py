"""docs/contributing/add-an-engine.md: an engine with a dialect of its own answers as DuckDB does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pytest

from jostle.engine.base import Capabilities, Engine, Opened
from jostle.engine.duckdb.engine import DUCKDB
from jostle.engine.files import OpenFile, open_file
from jostle.engine.sql.cells import clean, whole_or_text
from jostle.engine.sql.persons import rows_per_key
from jostle.engine.sql.relations import Relation
from jostle.plan.plan import (
    Apply,
    Bound,
    Categories,
    Column,
    Constant,
    Count,
    Derive,
    Domain,
    Exact,
    Filter,
    FixedSum,
    Integer,
    Join,
    Key,
    Open,
    Owners,
    Plan,
    Real,
    Scan,
    Union,
)  # fmt: skip
from jostle.readers.duckdb import LocalDuckDb
from jostle.readers.public_sql import PublicSql
from jostle.records import replace
from jostle.speed.fast import FastAnswers

SPELLED = ("finite_", "place_", "digest_", "many_bytes", "nearest_")
DIALECT = replace(
    DUCKDB, name="Toy", finite="finite_({0})", place="place_([{1}], {0})", digest="digest_({0})",
    size="many_bytes({0})", operations={"round": "nearest_({0})"},
)  # fmt: skip


class Toy(PublicSql):
    """Tables of texts and doubles in a database that has other names for its functions, and no numbers of rows."""

    capabilities = Capabilities()
    dialect = DIALECT

    def __init__(self) -> None:
        self._database = duckdb.connect()
        self._tables: dict[str, tuple[str, ...]] = {}
        digest = "('0x' || left(sha256(x), 12))::BIGINT"
        bodies = ("isfinite(x)", "list_position(x, y)", digest, "strlen(x)", "round_even(x, 0)")
        for name, body in zip(SPELLED, bodies, strict=True):
            self._database.execute(f"CREATE MACRO {name}({'x, y' if ', y' in body else 'x'}) AS {body}")

    def file(self, path: Any) -> OpenFile:
        return open_file(path)

    def open(self, origin: Any, *, public: bool) -> Opened:
        key = f"t{len(self._tables)}"
        names = tuple(origin)
        rows = list(zip(*(column.tolist() for column in origin.values()), strict=True))
        kinds = ["DOUBLE" if origin[name].dtype.kind == "f" else "VARCHAR" for name in names]
        self._database.execute(f"CREATE TABLE {key} ({', '.join(f'c{i} {kind}' for i, kind in enumerate(kinds))})")
        self._database.executemany(f"INSERT INTO {key} VALUES ({', '.join('?' * len(names))})", rows)
        self._tables[key] = names
        return Opened(key, names, key)

    def guess(self, key: str) -> tuple[tuple[str, Domain], ...]:
        return tuple((name, Open("text")) for name in self._tables[key])

    def stamp(self, key: str) -> str:
        return key

    def close(self) -> None:
        self._database.close()

    def base(self, plan: Scan | Bound) -> Relation:
        scan = plan.scan if isinstance(plan, Bound) else plan
        names = self._tables[scan.data]
        kinds = dict(self._database.execute(f"SELECT column_name, column_type FROM (DESCRIBE {scan.data})").fetchall())
        source = f"SELECT * FROM {scan.data}"
        if isinstance(plan, Bound):
            hashed = [f"c{names.index(name)}" for name in sorted(dict(scan.columns))]
            hashed = [whole_or_text(DIALECT, column, kinds[column]) for column in hashed]
            by = [f"c{names.index(name)}" for name in plan.by]
            if plan.owners is not None:
                wanted = (*plan.owners.table.by, plan.owners.key, plan.owners.on)
                who, key, on = (f"c{names.index(name)}" for name in wanted)
                claims = f"SELECT DISTINCT {who} AS q, {key} AS k FROM {plan.owners.table.scan.data}"
                source, by = f"SELECT t.*, o.q FROM {scan.data} t JOIN ({claims}) o ON t.{on} = o.k", ["q"]
            source = rows_per_key("*", source, by, hashed, plan.most, dialect=DIALECT)
        raw = [(f"c{names.index(name)}", domain) for name, domain in scan.columns]
        cells = [clean(DIALECT, cell, kinds[cell], domain) for cell, domain in raw]
        items = ", ".join(f"{cell.alias} AS c{i}" for i, cell in enumerate(cells))
        columns = {name: replace(cells[i], alias=f"c{i}") for i, (name, _) in enumerate(scan.columns)}
        return Relation(f"SELECT {items} FROM ({source})", columns, dict(scan.columns), 10**6, DIALECT)

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        return self._database.execute(query).fetchall()

    def columns(self, query: str) -> list[Any]:
        return list(self._database.execute(query).fetchnumpy().values())

    def batches(self, query: str, size: int) -> Iterator[Any]:
        yield [*self._database.execute(query).fetchnumpy().values()]


ROWS = {
    "who": np.array([f"p{i % 40}" for i in range(300)], object),
    "c": np.array([["red", "green", None, "blue"][i % 4] for i in range(300)], object),
    "x": np.array([(i * 37 % 101) / 7 for i in range(299)] + [np.nan]),
}
DESCRIBED = (("who", Open("text")), ("c", Categories(("red", "green"))), ("x", Real(0.0, 12.0)))


def plans(key: str) -> list[Plan]:
    scan = Scan(key, DESCRIBED)
    high = Filter(scan, Apply(">", (Column("x"), Constant(3.0))))
    half = Apply("round", (Apply("/", (Column("x"), Constant(2.0))),))
    few = Bound(scan, ("who",), 3)
    sorts = Derive(scan, (("part", Apply("bucket", (Constant(5.0), Constant(7.0), Column("who")))), ("x", Column("x"))))
    both = Union((high, Derive(high, (("who", Column("who")), ("c", Column("c")), ("x", half)))))
    owned = Bound(scan, (), 2, owners=Owners(Bound(scan, ("who",), None), "c", "c"))
    halves = Derive(high, (("h", half), ("x", Column("x"))))
    return [scan, high, halves, few, sorts, Join(few, high, ("who",), 2), both, owned]


@pytest.mark.parametrize("at", range(8))
def test_an_added_engine_answers_as_the_first(at: int) -> None:
    answers = []
    engines: list[Engine] = [LocalDuckDb(), Toy()]
    for engine in engines:
        plan = plans(engine.open(ROWS, public=True).key)[at]
        said: list[Any] = [engine.rows(plan), engine.group(plan, (), (Count(Column("x")),))[0].tolist()]
        said += [cells.tolist() for cells in engine.tally(plan, Column("x"))]
        keys = {2: ("h", range(7)), 4: ("part", range(5))}.get(at, ("c", ("red", "green")))
        key = Key(Column(keys[0]), keys[1])
        terms = (Count(), FixedSum(Column("x"), 0.0, 12.0, 30), Count(Column("x"), distinct=True))
        said += [cells.tolist() for cells in engine.group(plan, (key,), terms)]
        said += sorted(engine.codes(plan, (key,))[0].tolist())
        said += sorted(row for block in engine.vectors(plan, (Column("x"),), 64) for row in block[:, 0].tolist())
        said.append(engine.exact(plan, (key,), (Exact("count"), Exact("max", Column("x")))))
        answers.append(said)
        engine.close()
    assert answers[0] == answers[1]


def test_without_numbers_of_rows_parts_are_counted_by_queries() -> None:
    toy = Toy()
    scan = Scan(toy.open(ROWS, public=True).key, (*DESCRIBED, ("n", Integer(0, 9)))[:3])
    part = Filter(scan, Apply("==", (Column("c"), Constant("red"))))
    fast = FastAnswers(toy)
    assert fast.parts.counts(part, ()) is None
    assert fast.group(part, (), (Count(),))[0] == toy.rows(part) == 75
