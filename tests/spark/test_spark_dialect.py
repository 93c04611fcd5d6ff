"""Every primitive of Spark's dialect over hostile values is what Python says, and no row fails."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jostle.backends.spark.connection import Connection
from jostle.backends.spark.dialect import SPARK
from jostle.engine.sql import functions
from jostle.language import patterns
from jostle.language.moments import moment_of
from jostle.language.row_functions import lower, upper

LARGEST = 1.7976931348623157e308
ENDS = [0.0, 5e-324, 2.2250738585072009e-308, 2.2250738585072014e-308, 1e-300, 0.1, 0.49999999999999994, 0.5, 1.5, 2.5,
        7.999999999999999, 8.0, 2.0**51 + 0.5, 2.0**52 - 0.5, 2.0**53, 2.0**63, 2.0**64, 2.0**80, 1e25 / 3, 1e300,
        LARGEST]  # fmt: skip
POWERS = [math.ldexp(1, k) for k in range(-1074, 1024, 97)]
FINITE = [sign * x for x in (*ENDS, *POWERS, *(math.nextafter(p, 0) for p in POWERS[11:])) for sign in (1, -1)]
WILD = [*FINITE, math.nan, math.inf, -math.inf]
WHOLE = [float(math.floor(x)) for x in FINITE]
DAYS = [*range(-719162, -719100), *range(-370, 400), *range(2932800, 2932897), *range(-719162, 2932896, 9973)]
TEXTS = ["", "a", "it's", "back\\slash", 'ä😀\0\n\t"`', "a{b}", "ΑΣ İß ŉ ﬁ ᾳ ᾼ ǅ", " ١"]


@pytest.fixture(scope="module")
def ask(url: str) -> Iterator[Any]:
    connection = Connection(url)

    def ask(template: str, values: list[float]) -> list[Any]:
        spelled = [repr(v).replace("nan", "NaN").replace("inf", "Infinity") for v in values]
        rows = ", ".join(f"({i}, CAST('{text}' AS DOUBLE))" for i, text in enumerate(spelled))
        query = f"SELECT {template.format('x')} AS v FROM (SELECT * FROM VALUES {rows} AS t(i, x)) ORDER BY i"
        return connection.table(query)["v"].to_pylist()

    ask.connection = connection
    yield ask
    connection.close()


def bits(x: float) -> int:
    return struct.unpack("<q", struct.pack("<d", x + 0.0))[0]


PRIMITIVES: list[tuple[str, list[float], Callable[[float], Any]]] = [
    (SPARK.bits, FINITE, bits),
    (SPARK.finite, WILD, math.isfinite),
    (SPARK.whole, [*WHOLE, math.nan, math.inf], lambda x: int(x) if -(2.0**63) <= x < 2.0**63 else None),
    (SPARK.whole_wide, [x for x in WHOLE if abs(x) < 2**81], int),
    (SPARK.floor, WILD, lambda x: float(math.floor(x)) if math.isfinite(x) else x),
    (SPARK.even, WILD, lambda x: float(round(x)) if math.isfinite(x) else x),
    (SPARK.nearest, [x for x in FINITE if abs(x) < 2**62], round),
]


@pytest.mark.parametrize(("template", "values", "meaning"), PRIMITIVES)
def test_doubles(ask: Any, template: str, values: list[float], meaning: Callable[[float], Any]) -> None:
    given, meant = ask(template, values), [*map(meaning, values)]
    assert [str(v) for v in given if v != 0] == [str(v) for v in meant if v != 0]
    assert [v == 0 for v in given] == [v == 0 for v in meant]


def test_literals(ask: Any) -> None:
    items = [f"{SPARK.number(x)} AS a{i}" for i, x in enumerate(FINITE)]
    items += [f"{SPARK.literal(text)} AS b{i}" for i, text in enumerate(TEXTS)]
    (row,) = ask.connection.table(f"SELECT {', '.join(items)}").to_pylist()
    assert list(row.values()) == [*FINITE, *TEXTS]


@pytest.mark.parametrize(
    ("template", "meaning"),
    [
        (SPARK.digest, lambda text: int(hashlib.sha256(text.encode()).hexdigest()[:12], 16)),
        (SPARK.size, lambda text: len(text.encode())),
        (SPARK.operations["lower"], lower),
        (SPARK.operations["upper"], upper),
        (SPARK.double_of, lambda text: None),
        (SPARK.whole_of, lambda text: None),
    ],
)
def test_texts(ask: Any, template: str, meaning: Callable[[str], Any]) -> None:
    items = [f"{template.format(SPARK.literal(text))} AS b{i}" for i, text in enumerate(TEXTS)]
    (row,) = ask.connection.table(f"SELECT {', '.join(items)}").to_pylist()
    assert list(row.values()) == [*map(meaning, TEXTS)]


def test_dates_by_the_names_of_months(ask: Any) -> None:
    texts = ["7 Mar 2024", "31 DEC 1999", "1 Mai 2000"]
    template = functions.template(SPARK, "date by format", ("%d %b %Y",))
    items = [f"{template.format(SPARK.literal(text))} AS b{i}" for i, text in enumerate(texts)]
    (row,) = ask.connection.table(f"SELECT {', '.join(items)}").to_pylist()
    assert [text and text[:10] for text in row.values()] == ["2024-03-07", "1999-12-31", None]


PARTS: dict[str, Callable[[Any], float]] = {
    "year": lambda day: day.year, "quarter": lambda day: (day.month + 2) // 3, "month": lambda day: day.month,
    "day": lambda day: day.day, "weekday": lambda day: day.isoweekday(), "week": lambda day: day.isocalendar().week,
    "week_year": lambda day: day.isocalendar().year, "day_of_year": lambda day: day.timetuple().tm_yday,
}  # fmt: skip


def test_days(ask: Any) -> None:
    days = [float(day) for day in DAYS]
    for name, part in PARTS.items():
        assert ask(functions.template(SPARK, name, ()), days) == [part(moment_of("date", day)) for day in DAYS], name
    for unit in ("year", "quarter", "month", "week"):
        template = functions.truncation(SPARK, "date", unit, "{0}")
        assert ask(template, days) == [patterns.truncated("date", day, unit) for day in DAYS], unit


def test_sums_beyond_64_bits(ask: Any) -> None:
    rows = "SELECT CAST(9223372036854775807 AS BIGINT) AS v UNION ALL SELECT CAST(9223372036854775807 AS BIGINT)"
    (row,) = ask.connection.table(f"SELECT {SPARK.total.format('v')} AS v FROM ({rows}) AS s").to_pylist()
    assert row["v"] == str(2 * (2**63 - 1))


def test_a_planner_does_not_write_a_long_value_again_wherever_its_name_stands(ask: Any) -> None:
    """The month of a text's time was copied into each mention: plans grew with each step, one to more than a server's
    memory, and took minutes here."""
    moment = functions.template(SPARK, "time of text", ()).format("c0")
    local = functions.template(SPARK, "in_zone", ("Europe/Berlin",)).format("t0")
    month = functions.truncation(SPARK, "time", "month", "t1")
    query = f"SELECT {SPARK.named(moment, 't0')} FROM (SELECT CAST(id AS STRING) AS c0 FROM range(3)) AS s"
    query = f"SELECT {month} AS k FROM (SELECT {SPARK.named(local, 't1')} FROM ({query}) AS s) AS s"
    query = f"SELECT count(*) FROM ({query}) AS s WHERE k IN (1e0D, 2e0D) AND k IS NOT NULL"
    plans = ask.connection.table(f"EXPLAIN {query}").to_pylist()
    assert sum(len(str(row)) for row in plans) < 10 * len(query)
