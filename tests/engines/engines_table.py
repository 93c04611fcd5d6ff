"""One hostile table, which every engine is asked about, and how it may be described."""

from __future__ import annotations

import random
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from jostle.plan.plan import Categories, Domain, Integer, Moments, Open, Real

ROWS = 120
DOUBLES = [
    None, float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1e300, -1e300, 1e-300, -1e-300, 5e-324, -5e-324,
    2.2250738585072014e-308, 1.7976931348623157e308, 2.0**53, 2.0**53 + 2, -(2.0**53), 2.0**63, 0.1, 0.5, 1.5, 2.5,
    -0.5, -2.5, 1.0, 3.0, -7.0, 12.25, 0.49999999999999994, 4503599627370497.5, 1e15, 1e16, 123456789.125,
]  # fmt: skip
LONG = [None, 0, 1, -1, 7, 2**31, -(2**31), 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 10**15]
TEXTS = [
    None, "", " ", "\t ", "a", "A", "ab", "abc", "it's", '"', "\\", "a\\b", "%", "_", "é", "e\u0301", "É", "\u212b",
    "Å", "\U0001f600",
    "a\U0001f600b", "\u65e5\u672c", "\u05d0", "ß", "I", "i", "zz", "Z", "a b ", " a", "aa", "aaa",
    "null", "NULL", "-1", "b\nc", "{0}", "a,b",
]  # fmt: skip
LONG_TEXTS = [
    "x" * 1_500, "ab" * 10_000, "\u00e9" * 65_535, "a" * 65_536, "\U0001f600" * 65_536, "\U0001f600a" * 32_768,
    "e\u0301" * 10_000, " " * 65_535 + "a", "a" * 65_537, "\u00e9" * 65_537, "ab" * 100_000, "\U0001f600" * 200_000,
]  # fmt: skip
LONG_SPELLED = [
    "1" + " " * 65_535, " " * 65_536 + "1", "0" * 65_535 + "7", "0" * 65_536 + "7", "9" * 65_536, "1" * 65_535 + "x",
    "1e" + "0" * 65_533 + "1", "true" + " " * 65_532, "no" + "\t" * 65_535, "2024-02-29" + " " * 65_526,
    "2024-02-29" + " " * 65_527, "2024-02-29 12:30:00." + "5" * 60_000, "x" * 200_000,
]  # fmt: skip
"""Texts about as long as texts are, and longer ones: none on every engine."""
SPELLED = [
    None, "", "0", "-0", "12",
    " 12 ", "\t1.5\t", "+3", ".5", "5.", "1e3", "1E-3", "1e400", "-1e400", "1e-400", "inf", "nan", "0x10",
    "1_0", "1 2", "12a", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "007", "true", "T", "no",
    "2024-02-29", "2023-02-29", "0001-01-01", "9999-12-31", "2024-13-01", "2024-02-29T12:30:00.5+02:00",
    "2024-02-29T12:30:00-0330", "2024-02-29 12:30+02", "2024-02-29 12:30:00.5+020",
    "2024-02-29 23:59:59.999999Z", "1969-12-31 23:59", " 2024-01-01 ", "2024-1-1", "31/12/1999", "1/2/2003",
    "1112024", "11112024", "3022003", "112", "2359", "235959", "12345",
]  # fmt: skip
DAYS = [None, date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29),
        date(2020, 12, 31),
        date(2021, 1, 3), date(1600, 2, 29), date(1900, 3, 1)]  # fmt: skip
TIMES = [None, datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59), datetime(1970, 1, 1),
         datetime(1969, 12, 31, 23, 59, 59, 999999),
         datetime(2024, 2, 29, 12, 30, 0, 500000), datetime(2024, 3, 31, 1, 30), datetime(2024, 10, 27, 1)]  # fmt: skip
MONEY = [None, *map(Decimal, ("0", "0.5", "-0.5", "2.5", "2", "100", "-7.125", "123456789.125", "0.001", "-0.001"))]
BEYOND = ("nan", "-nan", "inf", "-inf")
WORDS = ("red", "green", "blue", "it's", "Red")


def table(with_nul: bool = False) -> pa.Table:
    """The rows, the same at every call; a text with NUL only where an engine has such."""
    draw = random.Random(17)
    texts = [*TEXTS, *LONG_TEXTS, "a\0b"] if with_nul else [*TEXTS, *LONG_TEXTS]

    def column(values: list[Any], kind: pa.DataType) -> pa.Array:
        every = [*values, *(draw.choice(values) for _ in range(ROWS - len(values)))]
        draw.shuffle(every)
        return pa.array(every[:ROWS], kind)

    return pa.table({
        "r": column(DOUBLES, pa.float64()), "q": column([None, 0.25, 0.5, -1.0, 2.0, 3.75], pa.float64()),
        "f": column([None, 0.5, -0.0, 1.5, 3.0, 16777216.0, *map(float, BEYOND)], pa.float32()),
        "i": column([None, 0, 1, 127, -128, 5], pa.int8()), "h": column([None, 3, 32767, -32768], pa.int16()),
        "k": column([None, 3, -4, 2**31 - 1, -(2**31)], pa.int32()), "l": column(LONG, pa.int64()),
        "b": column([None, True, False], pa.bool_()), "s": column(texts, pa.string()),
        "m": column([*SPELLED, *LONG_SPELLED], pa.string()), "w": column([None, *WORDS, "grey"], pa.string()),
        "n": column(MONEY, pa.decimal128(12, 3)),
        "d": column(DAYS, pa.date32()), "t": column(TIMES, pa.timestamp("us")),
        "z": column(TIMES, pa.timestamp("us", "UTC")),
        "who": column([1, 2, 3, 4, 5, 6, 7, 8, None], pa.int64()),
    })  # fmt: skip


DOMAINS: dict[str, tuple[Domain, ...]] = {
    "r": (Open("real"), Real(-3.5, 100.25), Real(-1e300, 1e300), Integer(-10, 10), Open("integer")),
    "q": (Open("real"), Real(-1.0, 4.0), Categories((0.5, 2.0))),
    "f": (Open("real"), Real(0.0, 3.5), Integer(0, 3)),
    "i": (Integer(-128, 127), Integer(0, 5), Real(-1.5, 1.5), Open("real"), Open("text")),
    "h": (Integer(-32768, 32767), Open("integer")),
    "k": (Integer(-(2**31), 2**31), Real(-4.0, 4.0)),
    "l": (Open("integer"), Integer(-5, 5), Integer(-(2**53), 2**53), Open("text")),
    "b": (Open("boolean"), Integer(0, 1), Open("text")),
    "s": (Open("text"), Categories(("a", "A", "é", "it's", "zz"))),
    "m": (Open("text"), Open("real"), Open("integer"), Integer(-20, 20), Open("boolean"), Open("date"), Open("time")),
    "w": (Categories(WORDS), Open("text"), Categories(WORDS[:2])),
    "n": (Open("text"), Open("real"), Real(-4.0, 100.5), Integer(-5, 5), Open("integer")),
    "d": (Open("date"), Moments("date", 0, 19_800), Open("text")),
    "t": (Open("time"), Moments("time", 0, 1_709_251_200_000_000, "hour"), Open("date")),
    "z": (Open("time"), Open("date"), Open("text"), Moments("time", 0, 1_709_251_200_000_000, "day")),
    "who": (Integer(0, 9),),
}
"""What each column may be described as."""
