"""Rows as doubles, in batches: what is none is left out, and every row comes once."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from jostle.diagnostics import Refusal
from jostle.plan.plan import Apply, Categories, Column, Constant, Filter, Integer, Plan, Real, Scan
from jostle.readers.duckdb import LocalDuckDb

SCHEMA = (("a", Real(-2.0, 2.0)), ("b", Integer(0, 9)), ("c", Categories(("x", "y"))))
CELLS = "a,b,c\n0.5,3,x\n,4,x\n7,-5,y\nnan,1,x\n-0.25,2.9,none\n"


def read(engine: LocalDuckDb, plan: Plan, *exprs: object, size: int = 2) -> np.ndarray:
    batches = list(engine.vectors(plan, exprs, size))  # type: ignore[arg-type]
    assert all(len(batch) for batch in batches)
    return np.concatenate(batches) if batches else np.zeros((0, len(exprs)))


def of_file(engine: LocalDuckDb, folder: Path) -> Scan:
    (folder / "t.csv").write_text(CELLS)
    return Scan(engine.open(folder / "t.csv", public=False).key, SCHEMA)


def test_rows_are_clamped_and_what_is_none_is_left_out(tmp_path: Path) -> None:
    engine = LocalDuckDb()
    found = read(engine, of_file(engine, tmp_path), Column("a"), Column("b"))
    assert sorted(map(tuple, found.tolist())) == [(-0.25, 2.0), (0.5, 3.0), (2.0, 0.0)]


def test_expressions_and_conditions_are_those_of_plans(tmp_path: Path) -> None:
    engine = LocalDuckDb()
    plan = Filter(of_file(engine, tmp_path), Apply(">", (Column("b"), Constant(0.0))))
    doubled = Apply("/", (Apply("-", (Column("a"), Constant(1.0))), Constant(2.0)))
    assert sorted(read(engine, plan, doubled).ravel()) == [-0.625, -0.25]
    nothing = Filter(plan, Apply(">", (Column("b"), Constant(100.0))))
    assert read(engine, nothing, doubled).shape == (0, 1)


def test_a_text_is_no_coordinate(tmp_path: Path) -> None:
    engine = LocalDuckDb()
    with pytest.raises(Refusal):
        engine.vectors(of_file(engine, tmp_path), (Column("c"),), 10)


def test_many_rows_come_once_each(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    many = 300_000
    pq.write_table(pa.table({"a": np.arange(many) / many}), tmp_path / "t.parquet")
    engine = LocalDuckDb()
    plan = Scan(engine.open(tmp_path / "t.parquet", public=False).key, (("a", Real(0.0, 1.0)),))
    found = read(engine, plan, Column("a"), size=50_000)
    assert math.isclose(found.sum(), (many - 1) / 2, rel_tol=1e-9) and len(np.unique(found)) == many
