"""Long lists of keys, and truths in hashes: what is asked in another way has the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from engines_table import DOMAINS, table

from jostle.engine.base import consecutive
from jostle.engine.duckdb.engine import DUCKDB
from jostle.engine.sql.cells import whole_or_text
from jostle.engine.sql.engine import SqlEngine
from jostle.engine.sql.persons import counted_as
from jostle.engine.sql.rows import Physical
from jostle.language.patterns import READERS
from jostle.plan.plan import (
    Apply,
    Bound,
    Column,
    Constant,
    Count,
    Derive,
    Filter,
    FixedSum,
    Integer,
    Key,
    Open,
    Plan,
    Real,
    Scan,
)
from jostle.readers.duckdb import LocalDuckDb
from jostle.records import replace
from jostle.run.groups import by_value, public_keys
from jostle.run.misfits import cell_state, state_of_row
from jostle.run.values import Interval
from jostle.source import Source, Span


@pytest.fixture
def engine() -> Iterator[LocalDuckDb]:
    engine = LocalDuckDb()
    yield engine
    engine.close()


def scan_of(engine: LocalDuckDb, cells: list[Any], kind: str) -> Scan:
    return Scan(engine.open({"x": np.array(cells, dtype=object)}, public=False).key, (("x", Open(kind)),))


def test_truths_count_in_hashes_as_their_texts_do(engine: LocalDuckDb) -> None:
    text = Physical("t")
    truth = whole_or_text(engine.dialect, "b", "BOOLEAN")
    numbers = ", ".join(counted_as(cell, engine.dialect) for cell in (truth, text))
    rows = "SELECT b, CAST(b AS VARCHAR) AS t FROM (VALUES (true), (false), (NULL)) AS v(b)"
    counted = engine.fetch(f"SELECT {numbers} FROM ({rows})")
    assert len({one for one, _ in counted}) == 3
    assert all(one == other for one, other in counted)


@pytest.mark.parametrize("values", [[float(i) for i in range(-3, 3)], [0.5, 2.0], ["a", "it's", "", "ü\0", "b,c"]])
def test_a_long_list_of_keys_has_the_groups_of_a_short_one(engine: LocalDuckDb, values: list[Any]) -> None:
    cells = [
        [value, 0.5, 7.25, -0.0, None] if isinstance(value, float) else [value, "z", "A", None] for value in values
    ]
    number = isinstance(values[0], float)
    scan, column = scan_of(engine, [cell for some in cells for cell in some], "real" if number else "text"), Column("x")
    others = [1000.0 + 2 * i if number else f"other{i}" for i in range(2000)]
    (few,) = engine.group(scan, (Key(column, tuple(values)),), (Count(),))
    (many,) = engine.group(scan, (Key(column, (*others, *values)),), (Count(),))
    assert many[: len(others)].sum() == 0
    assert many[len(others) :].tolist() == few.tolist()
    assert few.sum() >= len(values) - 1  # an empty text is none


@pytest.mark.parametrize("first", [-2.0, 0.0, 3.0])
def test_consecutive_keys_are_counted_as_a_range_and_as_a_list(engine: LocalDuckDb, first: float) -> None:
    cells = [-2.0, -1.5, -0.0, 0.0, 0.999, 3.5, 4.0, 1e300, -1e300, float("nan"), None, 8.0]
    scan, listed = scan_of(engine, cells, "real"), tuple(first + i for i in range(6))
    key, terms = Key(Column("x"), listed), (Count(), Count(Column("x")), FixedSum(Column("x"), -5.0, 5.0, 4))
    assert isinstance(consecutive(key).values, range)
    mixed = Key(key.expr, (listed[1], listed[0], *listed[2:]))
    assert consecutive(mixed) is mixed
    order = [1, 0, *range(2, 6)]
    for one, other in zip(engine.group(scan, (key,), terms), engine.group(scan, (mixed,), terms), strict=True):
        assert one[order].tolist() == other.tolist()


@pytest.mark.parametrize(
    ("low", "high"), [(-3, 4), (0, 0), (5, 2), (-(2**53) - 4, -(2**53) + 4), (2**53 - 4, 2**53 + 4)]
)
def test_a_range_of_keys_is_the_list_of_its_numbers(low: int, high: int) -> None:
    """Beyond 2⁵³ several whole numbers are one double, which stands once."""
    span = Span(Source("p.jst", ""), 1, 1, 1, 1)
    keys = public_keys(Interval(float(low), float(high)), span)
    assert keys == public_keys([float(k) for k in range(int(float(low)), int(float(high)) + 1)], span)
    assert len(set(keys)) == len(keys) and set(map(type, keys)) <= {float}


class Plain(LocalDuckDb):
    """The same files, asked by the plain SQL."""

    dialect = replace(DUCKDB, **READERS)
    group = SqlEngine.group
    grouped = SqlEngine.grouped


@pytest.mark.parametrize("name", DOMAINS)
def test_looks_at_hostile_cells_find_what_plain_sql_finds(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jostle.readers.duckdb.OFTEN", 10**9)  # no cell is stored as it was read
    pq.write_table(table(with_nul=True), tmp_path / "t.parquet")
    texts, engines = {each: Open("text") for each in DOMAINS}, (LocalDuckDb(), Plain())
    scans = [Scan(e.open(tmp_path / "t.parquet", public=False).key, tuple(texts.items())) for e in engines]
    beside = cell_state(Column("q"), DOMAINS["q"][1], texts, None)
    assert beside is not None
    found = 0
    for domain in DOMAINS[name]:
        for empty in (None, "empty"):
            state = cell_state(Column(name), domain, texts, empty)
            for states in [{name: state}, {name: state, "": beside}, {"": beside, name: state}] if state else []:
                row, says = state_of_row(states)
                key = Key(row, range(len(says)))
                quick, plain = (e.group(scan, (key,), (Count(),))[0] for e, scan in zip(engines, scans, strict=True))
                assert quick.tolist() == plain.tolist(), (domain, states)
                found += np.count_nonzero(plain) > 1
    assert found or name in ("s", "who")
    for engine in engines:
        engine.close()


def test_many_keys_are_not_looked_at_where_an_expression_goes_in_no_steps() -> None:
    class Keys(tuple[float, ...]):
        def __iter__(self) -> Iterator[float]:
            raise AssertionError

    assert by_value(Column("x"), Keys((1.0, 2.0)), None) == Column("x")


@pytest.mark.parametrize("bits", [0, 3, 20])
@pytest.mark.parametrize("ends", [(0.0, 200.0), (-3.7, 11.3), (5.1, 5.2), (-1e6, -1e-3)])
def test_a_sum_on_a_grid_brings_each_number_between_the_ends(
    engine: LocalDuckDb, ends: tuple[float, float], bits: int
) -> None:
    low, high = ends
    near = [np.nextafter(end, to) for end in ends for to in (-np.inf, np.inf)]
    grid = [end + side * 2.0**-at for end in ends for side in (-1, 1) for at in (bits, bits + 1, bits + 2)]
    far = [sign * 2.0**at for sign in (-1, 1) for at in (-1074, 30, 51, 52, 53, 54, 300, 1023)]
    numbers = [*ends, *near, *grid, *far, np.inf, -np.inf, np.nan, -0.0, *np.random.default_rng(bits).normal(5, 9, 40)]
    table = {"k": np.arange(len(numbers)), "x": np.array(numbers)}
    scan = Scan(engine.open(table, public=False).key, (("k", Integer(0, len(numbers))), ("x", Real(low, high))))
    (sums,) = engine.group(scan, (Key(Column("k"), range(len(numbers))),), (FixedSum(Column("x"), low, high, bits),))
    for number, total in zip(numbers, sums.tolist(), strict=True):
        right = round(Fraction(float(min(max(number, low), high))) * 2**bits) if np.isfinite(number) else 0
        assert total == right


def test_what_few_values_lie_beyond_a_range_of_keys_is_in_no_group(
    engine: LocalDuckDb, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(engine, "columns", lambda query, own=engine.columns: asked.append(query) or own(query))
    y = np.array([*np.linspace(0.0, 1.0, 129), 7.0, -1.0, np.nan, np.inf])
    scan = Scan(engine.open({"y": y, "k": np.arange(len(y)) % 3}, public=False).key,
                (("y", Real(0.0, 1.0)), ("k", Integer(0, 2))))  # fmt: skip
    cells = Apply("floor", (Apply("*", (Column("y"), Constant(32.0))),))
    keys = Key(cells, range(32)), Key(Column("k"), range(3))
    right = np.zeros((32, 3), dtype=int)
    for i, value in enumerate(y):
        if np.isfinite(value) and 32 * min(max(value, 0.0), 1.0) < 32:
            right[int(32 * max(value, 0.0)), i % 3] += 1
    (counts,) = engine.group(scan, keys, (Count(),))
    (halves,) = engine.group(scan, (Key(cells, range(8, 24)), keys[1]), (Count(),))
    assert counts.tolist() == right.tolist() and halves.tolist() == right[8:24].tolist()
    assert "BETWEEN 0 AND 31" not in asked[0] and "BETWEEN 8 AND 23" in asked[1]


@pytest.mark.parametrize("high", [90, 2**14 - 4, 2**14, 2**22 - 4, 2**22, 2**61])
@pytest.mark.parametrize("ending", ["", "csv", "parquet"])
def test_different_whole_numbers_are_as_many_as_the_database_counts(
    engine: LocalDuckDb, tmp_path: Path, ending: str, high: int
) -> None:
    """Numbers at both ends and beyond them, and none; of a file, of memory, of filters, of no rows and of persons."""
    rng = np.random.default_rng(5)
    numbers = np.concatenate([rng.integers(-9, high + 9, 600), [-3, high, -(2**62), 2**62]])
    data = pd.DataFrame({"k": pd.array(numbers, "Int64"), "who": rng.integers(0, 90, 604)})
    data.loc[::7, "k"] = None
    path = tmp_path / f"x.{ending}"
    if ending:
        getattr(data, f"to_{ending}")(path, index=False)
    opened = engine.open(path if ending else data, public=False)
    scan = Scan(opened.key, (("k", Integer(-3, high)), ("who", Integer(0, 99))))
    k, who, different = Column("k"), Column("who"), (Count(Column("k"), distinct=True),)
    plans: list[Plan] = [scan, *(Filter(scan, Apply(op, (who, Constant(v)))) for op, v in (("<", 9.0), (">", 99.0)))]
    plans += [Derive(scan, (("k", Apply("-", (k, Constant(5.0)))),)), Bound(scan, ("who",), 2)]
    for plan in plans:
        (many,), (same,) = engine.group(plan, (), different), SqlEngine.group(engine, plan, (), different)
        assert many.tolist() == same.tolist() and many.dtype == same.dtype and many.shape == ()
    there = {max(-3, min(high, int(number))) for number in data["k"].dropna()}
    assert engine.group(scan, (), different)[0] == len(there) > 80
