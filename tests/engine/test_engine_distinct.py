"""Counts of different integers, as bits."""

from __future__ import annotations

import pandas as pd
import pytest

from jostle.plan.plan import Apply, Column, Constant, Count, Filter, Integer, Real, Scan
from jostle.readers.duckdb import LocalDuckDb


@pytest.fixture
def engine() -> LocalDuckDb:
    return LocalDuckDb()


@pytest.mark.parametrize("low", [0, -70_000])
def test_different_integers_are_counted_as_bits(engine: LocalDuckDb, low: int) -> None:
    """In a range that is neither short nor too long; missing cells are none, and those beyond it the nearest end."""
    high = low + 2**17
    cells = [None, low, low - 5, high, high + 9, low + 70_001, low + 70_001, *range(low + 10, low + 4_000, 7)]
    frame = pd.DataFrame({"n": pd.array(cells, "Int64"), "x": [float(i % 3) for i in range(len(cells))]})
    scan = Scan(engine.open(frame, public=True).key, (("n", Integer(low, high)), ("x", Real(0.0, 2.0))))
    some = Filter(scan, Apply(">", (Column("x"), Constant(0.5))))
    empty = Filter(scan, Apply(">", (Column("x"), Constant(1.9)))), Filter(scan, Constant(False))
    for plan, rows in ((scan, cells), (some, [c for i, c in enumerate(cells) if i % 3]), (empty[0], cells[2::3])):
        values = {min(max(cell, low), high) for cell in rows if cell is not None}
        for terms in ((Count(Column("n"), distinct=True),), (Count(Column("n"), distinct=True), Count())):
            assert engine.group(plan, (), terms)[0] == len(values)
    assert engine.group(empty[1], (), (Count(Column("n"), distinct=True),))[0] == 0
    relation = engine.relation(scan, (Column("n"),))
    assert "bitstring_agg" in engine.grouped(relation, (), (Count(Column("n"), distinct=True),)).sql
