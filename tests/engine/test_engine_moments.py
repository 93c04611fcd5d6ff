"""Operations on dates and times: what the engine gives is what Python's calendar says, on every day of 1 to 9999."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine_expressions import on_rows

from jostle.language import moments, patterns
from jostle.language.moments import (
    DAY,
    DAYS,
    EXACT,
    FIRST_DAY,
    FIRST_TIME,
    LAST_DAY,
    LAST_TIME,
    SPANS,
    moment_of,
    number_of,
    zone_of,
)
from jostle.language.row_functions import MOMENTS, OPERATIONS
from jostle.plan.facts import bounds_of, derived_domain, key_values
from jostle.plan.kinds import kind_of
from jostle.plan.plan import Apply, Column, Constant, Count, Derive, Domain, Integer, Key, Moments, Open, RowExpr, Scan
from jostle.readers.duckdb import LocalDuckDb
from jostle.run.operators import applied

EDGES = [
    datetime(1, 1, 1), datetime(1, 1, 1, 0, 0, 59), datetime(9999, 12, 31, 23, 59, 59), datetime(1684, 7, 28),
    datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1), datetime(1970, 1, 1, 0, 0, 0, 1),
    datetime(2000, 2, 29, 12), datetime(2024, 2, 29, 23, 59, 59, 999999), datetime(2024, 3, 1), datetime(2255, 6, 5),
    datetime(2024, 12, 30, 1, 2, 3, 4), datetime(2020, 12, 31, 23), datetime(2021, 1, 3, 0, 59, 59, 500000),
]  # fmt: skip
TEXTS = [
    None, "", "2024-03-01", " 2024-03-01\t", "2024-02-30", "2024-02-29", "2023-02-29", "1900-02-29",
    "2000-02-29", "0000-01-01", "0001-01-01",
    "9999-12-31", "10000-01-01", "2024-3-1", "2024-13-01", "2024-00-10", "2024-01-00", "20240301", "2024/03/01",
    "01.03.2024", "-2024-03-01",
    "2024-03-01T12:30:00", "2024-03-01 12:30", "2024-03-01T12:30:00Z", "2024-03-01 12:30:00.5",
    "2024-03-01 12:30:00.123456789", "2024-03-01T24:00:00",
    "2024-03-01T23:60:00", "2024-03-01T23:59:60", "2024-03-01T23:59:59.999999Z", "2024-03-01T1:00:00",
    "2024-03-01T12", "2024-03-01T12:30:00+02:00",
    "2024-03-01  12:30", "2024-03-01T12:30Z", "2024-03-01Z", "2024-03-01T12:30:00.", "0001-01-01T00:00:00.000001",
    "9999-12-31T23:59:59.999999",
    "2024-02-30T12:00:00", "٢٠٢٤-03-01", "2024-03-01\n", "2024-03-01\0", "today", "infinity", "epoch",
    "2024-03-01 (BC)", "2024-03-01'", "1684-01-01 00:00:00.75",
    "2024-03-01T12:30:00.1Z", "2024-03-01 00:30:00-05:30", "2024-03-01T23:30+01:00", "0001-01-01T00:30:00+01:00",
    "2024-03-01T12:30:00.123456789+00:00", "9999-12-31T23:30:00-01:00", "2024-03-01 12:30:00+2:00",
    "2024-03-01 12:30:00+02", "2024-03-01T12:30:00.25-0330", "2024-03-01 12:30-11", "2024-03-01 12:30:00+020",
    "2024-03-01 12:30:00+02:0", "2024-03-01 12:30:00+2", "2024-03-01+02", "2024-03-01T12+02", "2024-03-01 12:30+0260",
    "2024-03-01+02:00", "2024-03-01t12:30:00", "2024-03-01T12:30:00z", "2024-03-01 12:30:00 Z",
]  # fmt: skip


@pytest.fixture(scope="module")
def engine() -> Iterator[LocalDuckDb]:
    engine = LocalDuckDb()
    yield engine
    engine.close()


def meaning(name: str, *operands: Any) -> Any:
    value = OPERATIONS[name].value
    assert value is not None
    result = None if any(operand is None for operand in operands) else value(*operands)
    return float(number_of(result)) if isinstance(result, date) else result


def times(many: int) -> list[datetime | None]:
    rng = random.Random(3)
    some = [moment_of("time", moments.rounded_time(rng.randrange(FIRST_TIME, LAST_TIME))) for _ in range(many)]
    near = [moment_of("time", rng.randrange(-EXACT, EXACT)) for _ in range(many)]
    return [None, *(t for t in [*EDGES, *some, *near] if isinstance(t, datetime))]


def test_days_are_numbered_as_python_numbers_them() -> None:
    assert number_of(date(1, 1, 1)) == FIRST_DAY and number_of(date(9999, 12, 31)) == LAST_DAY
    assert number_of(datetime(1, 1, 1)) == FIRST_TIME and number_of(datetime(9999, 12, 31, 23, 59, 59)) == LAST_TIME
    for time in times(2000):
        assert time is None or moment_of("time", float(number_of(time))) == moment_of("time", number_of(time))


def test_parts_of_every_day(engine: LocalDuckDb) -> None:
    """3,652,059 days, of which every 53rd, and all of sixty years around a leap year that is none, are compared."""
    first, last = number_of(date(1869, 1, 1)), number_of(date(1929, 1, 1))
    days = sorted({*range(FIRST_DAY, LAST_DAY + 1, 53), *range(first, last), FIRST_DAY, LAST_DAY})
    names = [op.name for op in MOMENTS if op.kinds == ("date",)]
    exprs: list[RowExpr] = [Apply(name, (Column("d"),)) for name in names]
    exprs += [Apply("trunc", (Column("d"), Constant(unit))) for unit in DAYS]
    array = pa.array(days, pa.int32()).cast(pa.date32())
    got = on_rows(engine, {"d": array}, {"d": Open("date")}, [Column("d"), *exprs])
    assert got[0] == days
    python = [moment_of("date", day) for day in days]
    for name, values in zip(names, got[1:], strict=False):
        assert values == [meaning(name, day) for day in python], name
    for unit, values in zip(DAYS, got[1 + len(names) :], strict=True):
        assert values == [meaning("trunc", day, unit) for day in python], unit


def test_the_calendar_agrees_with_itself_on_all_days(engine: LocalDuckDb) -> None:
    """A day is the one that its year, month and day make; the first days of units are never later and never far."""
    columns = {"n": np.arange(FIRST_DAY, LAST_DAY + 1)}
    day: RowExpr = Apply("shift", (Constant(date(1970, 1, 1)), Column("n")))
    parts = [Apply(name, (day,)) for name in ("year", "month", "day", "weekday")]
    starts = [Apply("trunc", (day, Constant(unit))) for unit in DAYS]
    key = engine.open(columns, public=False).key
    scan = Scan(key, (("n", Integer(FIRST_DAY, LAST_DAY)),))
    derived = engine.relation(Derive(scan, tuple((f"e{i}", e) for i, e in enumerate([day, *parts, *starts]))))
    made = "CAST(make_date(c1::BIGINT, c2::BIGINT, c3::BIGINT) - DATE '1970-01-01' AS DOUBLE)"
    tests = f"c0 = {made} AND c4 = (c0 + 719162) % 7 + 1 AND c5 <= c6 AND c6 <= c7 AND c7 <= c0 AND c8 > c0 - 7"
    ((many, good),) = engine.fetch(f"SELECT count(*), count(*) FILTER (WHERE {tests}) FROM ({derived.sql})")
    assert many == good == LAST_DAY - FIRST_DAY + 1


def test_times(engine: LocalDuckDb) -> None:
    some = times(3000)
    array = pa.array(some, pa.timestamp("us"))
    names = [op.name for op in MOMENTS if op.kinds == ("time",)]
    exprs: list[RowExpr] = [Apply(name, (Column("t"),)) for name in names]
    units = [*DAYS, *SPANS]
    exprs += [Apply("trunc time", (Column("t"), Constant(unit))) for unit in units]
    exprs += [applied(name, (Column("t"),), {"t": Open("time")}) for name in ("year", "week", "day")]
    got = on_rows(engine, {"t": array}, {"t": Open("time")}, [Column("t"), *exprs])
    assert got[0] == [None if time is None else float(number_of(time)) for time in some]
    for name, values in zip(names, got[1:], strict=False):
        assert values == [meaning(name, time) for time in some], name
    for unit, values in zip(units, got[1 + len(names) :], strict=False):
        assert values == [meaning("trunc time", time, unit) for time in some], unit
    for name, values in zip(("year", "week", "day"), got[-3:], strict=True):
        assert values == [meaning(name, time) for time in some], name


def test_moving_and_differences(engine: LocalDuckDb) -> None:
    some = times(20)
    many = [None, 0.0, 1.0, -1.0, 0.5, -0.5, 1e-6, 365.25, -1e6, 4e6, 1e9, 1e300, -1e300, 1 / 3, math.inf, math.nan]
    rows = list(itertools.product(some, many))
    arrays = {
        "t": pa.array([t for t, _ in rows], pa.timestamp("us")),
        "d": pa.array([t and t.date() for t, _ in rows], pa.date32()),
        "x": np.array([math.nan if x is None else x for _, x in rows]),
    }
    domains: dict[str, Domain] = {"t": Open("time"), "d": Open("date"), "x": Open("real")}
    finite = [(t, x if x is not None and math.isfinite(x) else None) for t, x in rows]
    back = applied("-", (Column("d"), Column("x")), domains)
    moved = on_rows(engine, arrays, domains, [
        applied("+", (Column("t"), Column("x")), domains), applied("+", (Column("d"), Column("x")), domains), back,
    ])  # fmt: skip
    assert moved[0] == [meaning("shift time", t, x) for t, x in finite]
    assert moved[1] == [meaning("shift", t and t.date(), x) for t, x in finite]
    assert moved[2] == [meaning("shift", t and t.date(), None if x is None else -x) for t, x in finite]
    pairs = list(itertools.product(some, some))
    arrays = {"t": pa.array([a for a, _ in pairs], pa.timestamp("us")),
              "u": pa.array([b for _, b in pairs], pa.timestamp("us"))}  # fmt: skip
    domains = {"t": Open("time"), "u": Open("time")}
    exprs = [
        applied(name, (Column("t"), Column("u")), domains) for name in ("-", "days_between", "seconds_between", "<")
    ]
    got = on_rows(engine, arrays, domains, exprs)
    assert got[0] == [meaning("time apart", a, b) for a, b in pairs]
    assert got[1] == [meaning("days_between", a and a.date(), b and b.date()) for a, b in pairs]
    assert got[2] == [meaning("seconds_between", a, b) for a, b in pairs]
    for kind, cut in (("date", lambda t: t and t.date()), ("time", lambda t: t)):
        low, high = (Constant(cut(end)) for end in (datetime(1999, 5, 5, 12), datetime(2030, 1, 1)))
        a, b = (Apply("date", (Column(c),)) if kind == "date" else Column(c) for c in "tu")
        calls = (("clamp", (a, low, high)), ("clamp", (a, high, low)), ("min", (a, b)), ("max", (a, b)))
        values = on_rows(engine, arrays, domains, [applied(name, args, domains) for name, args in calls])
        ends = [(low.value, high.value), (high.value, low.value)]
        for (name, _), column, more in zip(calls, values, [*ends, None, None], strict=True):
            operands = [(cut(x), *more) if more else (cut(x), cut(y)) for x, y in pairs]
            assert column == [meaning(f"{name} {kind}", *some) for some in operands], (name, kind)
    assert got[3] == [None if a is None or b is None else number_of(a) < number_of(b) for a, b in pairs]


def test_texts_that_spell_moments(engine: LocalDuckDb) -> None:
    rng = random.Random(4)
    spelled = "2024-12-31T23:59:59.5Z"
    more = ["".join(rng.choice([c] * 8 + ["0", "9", "-", " "]) for c in spelled) for _ in range(3000)]
    texts = [*TEXTS, *more]
    array = np.array(texts, dtype=object)
    for kind in ("date", "time"):
        (values,) = on_rows(engine, {"t": array}, {"t": Open("text")}, [Apply(f"{kind} of text", (Column("t"),))])
        assert values == [meaning(f"{kind} of text", text or None) for text in texts]
        (cells,) = on_rows(engine, {"t": array}, {"t": Open(kind)}, [Column("t")])  # the same as a described column
        assert cells == values


def test_what_clocks_of_zones_show(engine: LocalDuckDb) -> None:
    """As Python's zoneinfo has it, near every transition of some hard zones and at any other time, until 2099."""
    rng = random.Random(6)
    names = ["Europe/Berlin", "America/St_Johns", "Africa/Casablanca", "Pacific/Apia", "UTC"]
    some = [t for t in times(300) if t is not None]
    some += [datetime(1800, 1, 1) + timedelta(microseconds=rng.randrange(300 * 365 * DAY)) for _ in range(500)]
    for name in names:
        near = [moment_of("time", start + off) for start in zone_of(name).starts for off in (-1, 0, 1_000_000)]
        rows = [moment_of("time", moments.rounded_time(number_of(t))) for t in [*some, *near]]
        array = pa.array(rows, pa.timestamp("us"))
        expr = applied("in_zone", (Column("t"), Constant(name)), {"t": Open("time")})
        (values,) = on_rows(engine, {"t": array}, {"t": Open("time")}, [expr])
        zone = ZoneInfo(name)
        for time, value in zip(rows, values, strict=True):
            assert value == meaning("in_zone", time, name)
            if 1800 <= time.year < 2100:
                shown = time.replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None)
                assert value == float(number_of(shown)), (name, time)
    schema: dict[str, Domain] = {"t": Moments("time", number_of(datetime(2020, 1, 1)), number_of(datetime(2020, 1, 2)))}
    assert bounds_of(Apply("in_zone", (Column("t"), Constant("UTC"))), schema) == bounds_of(Column("t"), schema)


def test_texts_by_format(engine: LocalDuckDb) -> None:
    rng = random.Random(7)
    cases = {
        "%d/%m/%Y": "3/11/2024", "%m/%d/%y": "03/11/68", "%d %b %Y": "3 Nov 2024", "%B %d, %Y": "february 29, 2024",
        "%Y%m%d": "20240229", "%d%m%Y": "1112024", "%Y-%m-%d %H:%M:%S.%f": "2024-02-29 23:59:59.25",
        "%d.%m.%Y %I:%M %p": "1.1.1999 12:05 am",
        "%Y%%%m|%d {%H}": "2024%2|9 {7}", "'%Y'%m'%d": "'2024'5'6",
    }  # fmt: skip
    clocks = {"%I:%M:%S %p": "4:42:00 PM", "%H:%M": "23:59", "%I%p": "12AM", "%H%M": "111", "%H%M%S": "12345"}
    for written, text in (cases | clocks).items():
        texts = [text, text.upper(), f" {text}\t", text + "x", "", text.replace(" ", "\u202f"), None]
        texts += ["".join(rng.choice([c] * 9 + ["0", "9", " "]) for c in text) for _ in range(200)]
        for kind in ("date", "time") if written in cases else ("time",):
            expr = applied(kind, (Column("t"), Constant(written)), {"t": Open("text")})
            (values,) = on_rows(engine, {"t": np.array(texts, dtype=object)}, {"t": Open("text")}, [expr])
            expected = [text and patterns.as_iso(text, written, kind) for text in texts]
            assert values == [meaning(f"{kind} of text", iso or None) for iso in expected], written
            bounds = bounds_of(expr, {"t": Open("text")})  # a clock's are those of a day, so that nothing is to clamp
            assert bounds == (None if written in cases else (0.0, DAY)), written
            assert bounds is None or all(v is None or bounds[0] <= v <= bounds[1] for v in values)
            assert values[0] is not None and (written == "%Y%m%d" or values[3] is None)
            if " " not in written and "%f" not in written:
                first = datetime.strptime(text, written)
                day = first if written in cases else first.replace(year=1970)
                assert values[0] == number_of(day.date() if kind == "date" else day), written


def test_formats_that_say_too_little() -> None:
    days = ("%d/%m", "%Q", "%Y-%m-%d %M", "%Y %y %m %d", "%Y-%m-%d %I:%M", "%", "%d/%m/%Y %p")
    for written in ("%H:%M", "%I:%M %p", *days):
        with pytest.raises(ValueError):
            patterns.parse_format(written, "date")
    with pytest.raises(ValueError):
        patterns.parse_format("%M", "time")
    with pytest.raises(ValueError, match="Europe/Berlin"):
        zone_of("Europe/Berlim")


@pytest.mark.parametrize("unit", ["", "day", "week", "month", "quarter", "year"])
def test_cells_of_a_described_column_lie_in_its_domain(engine: LocalDuckDb, unit: str, tmp_path: Path) -> None:
    low, high = date(2019, 11, 30), date(2021, 2, 14)
    ends = [patterns.truncated("date", number_of(end), unit) if unit else number_of(end) for end in (low, high)]
    domain = Moments("date", ends[0], ends[1], unit)
    days = [None, *(low + timedelta(days=i) for i in range(-40, 500)), date(1, 1, 1), date(9999, 12, 31)]
    text = "d\n" + "\n".join("" if day is None else day.isoformat() for day in days) + "\n"
    (tmp_path / "days.csv").write_text(text.replace("d\n\n", 'd\n""\n'), encoding="utf-8")
    pq.write_table(pa.table({"d": pa.array(days, pa.date32())}), tmp_path / "days.parquet")

    def cleaned(day: date | None) -> int | None:
        if day is None:
            return None
        number = min(max(number_of(day), ends[0]), ends[1])
        return patterns.truncated("date", number, unit) if unit else number

    expected = sorted(value for day in days if (value := cleaned(day)) is not None)
    for name in ("days.csv", "days.parquet"):
        scan = Scan(engine.open(str(tmp_path / name), public=False).key, (("d", domain),))
        values, counts = engine.tally(scan, Column("d"))
        assert sorted(itertools.chain(*([number_of(v)] * n for v, n in zip(values, counts, strict=True)))) == expected
        listed = key_values(Column("d"), {"d": domain}, 10_000)
        assert listed is not None and set(values) <= set(listed) and list(listed) == sorted(listed)
        (cells,) = engine.group(scan, (Key(Column("d"), listed),), (Count(),))
        assert cells.sum() == len(expected) and [v for v, n in zip(listed, cells, strict=True) if n] == list(values)


def test_keys_of_truncated_days_are_the_ones_that_occur(engine: LocalDuckDb) -> None:
    domain = Moments("date", number_of(date(2019, 11, 30)), number_of(date(2021, 2, 14)))
    days = pa.array([date(2019, 11, 30) + timedelta(days=i) for i in range(443)], pa.date32())
    for unit in DAYS:
        expr = Apply("trunc", (Column("d"), Constant(unit)))
        (values,) = on_rows(engine, {"d": days}, {"d": domain}, [expr])
        listed = key_values(expr, {"d": domain}, 10_000)
        assert listed is not None and {moment_of("date", v) for v in values} <= set(listed)
        assert len(listed) <= len(set(values)) + {"year": 1, "quarter": 4, "month": 12, "week": 53, "day": 366}[unit]
    for name in ("year", "month", "week", "weekday", "day", "quarter"):
        (values,) = on_rows(engine, {"d": days}, {"d": domain}, [Apply(name, (Column("d"),))])
        bounds = bounds_of(Apply(name, (Column("d"),)), {"d": domain})
        assert bounds == (min(values), max(values)), name


def test_bounds_hold(engine: LocalDuckDb) -> None:
    rng = random.Random(8)
    for _ in range(40):
        low = rng.randrange(FIRST_DAY, LAST_DAY - 3000)
        high = low + rng.choice([0, 1, 5, 40, 400, 2999])
        schema: dict[str, Domain] = {"d": Moments("date", low, high), "x": Integer(-50, 50)}
        days = [rng.randrange(low, high + 1) for _ in range(60)] + [low, high]
        arrays = {
            "d": pa.array(days, pa.int32()).cast(pa.date32()),
            "x": np.array([rng.randrange(-50, 51) for _ in days]),
        }
        d, x = Column("d"), Column("x")
        exprs = [Apply(op.name, (d,)) for op in MOMENTS if op.kinds == ("date",)]
        exprs += [Apply("trunc", (d, Constant(unit))) for unit in DAYS]
        exprs += [
            applied("+", (d, x), schema),
            applied("-", (d, x), schema),
            applied("-", (d, Constant(date(2000, 1, 1))), schema),
        ]
        exprs += [
            applied("trunc", (Apply("time", (d,)), Constant("hour")), schema),
            Apply("hour", (Apply("time", (d,)),)),
        ]
        exprs += [applied("seconds_between", (Constant(date(2000, 1, 1)), d), schema)]
        for expr, values in zip(exprs, on_rows(engine, arrays, schema, exprs), strict=True):
            bounds = bounds_of(expr, schema)
            assert bounds is not None and all(v is None or bounds[0] <= v <= bounds[1] for v in values), (expr, bounds)
            if kind_of(expr, schema) in ("date", "time"):
                assert isinstance(derived_domain(expr, schema), Moments)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_files(engine: LocalDuckDb, unit: str, tmp_path: Path) -> None:
    near = [t for t in times(50) if t is None or unit != "ns" or 1700 < t.year < 2200]
    near = [t if t is None or unit in ("us", "ns") else t.replace(microsecond=0) for t in near]
    for zone in (None, "UTC"):
        table = pa.table({"t": pa.array(near, pa.timestamp(unit, zone)), "row": np.arange(len(near))})
        pq.write_table(table, tmp_path / f"{unit}{zone}.parquet")
        key = engine.open(str(tmp_path / f"{unit}{zone}.parquet"), public=False).key
        scan = Scan(key, (("row", Open("integer")), ("t", Open("time"))))
        made = engine.relation(Derive(scan, (("row", Column("row")), ("t", Column("t")))))
        rows = engine.fetch(f"SELECT c1 FROM ({made.sql}) ORDER BY c0")
        assert [value for (value,) in rows] == [None if t is None else float(number_of(t)) for t in near]
