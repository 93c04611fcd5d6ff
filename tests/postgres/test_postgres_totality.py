"""Every primitive of the dialect over hostile values against what it means, in plain Python: no row raises."""

from __future__ import annotations

import hashlib
import itertools
import math
import random
import re
import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from jostle.backends.postgres.dialect import POSTGRES as D
from jostle.language import row_functions
from jostle.language.moments import FIRST_DAY, FIRST_TIME, LAST_DAY, LAST_TIME

LARGEST = 1.7976931348623157e308
NUMBERS = [
    0.0, -0.0, 1.0, -1.0, 2.0, 3.0, 0.5, 0.1, -0.3, 5e-324, -5e-324, 1e-323, 2.2250738585072014e-308, 1e-300, 1.5e-154,
    1.4e154, 1e160, 1e300, LARGEST, -LARGEST, 8.98846567431158e307, 2.0**53, 2.0**53 + 2, 2.0**63, -(2.0**63), 7.25,
    709.782712893384, 709.7827128933841, -745.13, -745.1332191019411, -745.1332191019412, 2.0**-537, 2.0**-538,
    2.0**-500, 2.0**-600, 2.0**900, 2.0**970, 2.0**1023, 2.0**971, 1 - 2**-53, 1 + 2**-52, 2.0**-100, 2.0**512,
    2.0**-512, 2.0**1000, 1e15, 1e15 + 0.125, 1e16, 0.49999999999999994, 2.5, -2.5, 4503599627370497.5, 1e-5,
]  # fmt: skip
OTHERS = [math.inf, -math.inf, math.nan, None]
RANDOM = random.Random(5)


def double() -> float:
    while True:
        (value,) = struct.unpack("d", RANDOM.getrandbits(64).to_bytes(8, "little"))
        if math.isfinite(value):
            return float(value)


def near() -> tuple[float, float]:
    """Two doubles whose product is near the largest double or the smallest."""
    x = double()
    y = RANDOM.choice([LARGEST, 5e-324, 3e-324, 1e-320]) / x if abs(x) > 1e-10 else 2.0
    return (x, y) if math.isfinite(y) else (x, 1.5)


PAIRS = [*itertools.product(NUMBERS + OTHERS, repeat=2), *((double(), double()) for _ in range(1500)),
         *(near() for _ in range(1500))]  # fmt: skip


def finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def power(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except (OverflowError, ValueError):
        return math.inf


MEANINGS: dict[str, tuple[str, Callable[[float, float], float]]] = {
    "add": (D.add, lambda x, y: x + y), "multiply": (D.multiply, lambda x, y: x * y),
    "remainder": (D.remainder, math.fmod), "power": (D.power, power),
}  # fmt: skip


def divided(x: float, y: float) -> float:
    import numpy as np

    with np.errstate(all="ignore"):
        return float(np.float64(x) / np.float64(y))


@pytest.mark.parametrize("name", [*MEANINGS, "divide"])
def test_arithmetic_is_pythons_and_raises_nothing(name: str, load: Any, execute: Any) -> None:
    template, meaning = MEANINGS.get(name, (D.divide, divided))
    plain = name in ("remainder", "power")  # of finite numbers
    pairs = [(x, y) for x, y in PAIRS if not plain or None in (x, y) or (math.isfinite(x) and math.isfinite(y))]
    pairs = [(x, y) for x, y in pairs if name not in ("divide", "remainder") or y != 0]
    load("pairs", {"i": ("int", [*range(len(pairs))]), "x": ("float8", [x for x, _ in pairs]),
                   "y": ("float8", [y for _, y in pairs])})  # fmt: skip
    for i, answer in execute(f"SELECT i, {template.format('x', 'y')} FROM pairs"):
        x, y = pairs[i]
        meant = None if x is None or y is None else finite(meaning(x, y))
        if name == "power" and meant is not None and abs(meant) > LARGEST * (1 - 1e-9) and answer is None:
            continue
        close = 1e-12 * abs(meant or 0.0) + 1e-323 if name == "power" else 0.0
        said = finite(answer)
        assert (said is None) == (meant is None) and (said is None or abs(said - meant) <= close), (x, y, said, meant)


def test_constants_are_not_calculated_where_they_would_raise(load: Any, execute: Any) -> None:
    load("pairs", {"x": ("float8", [0.5, 1e300, 5e-324, None]), "y": ("float8", [2.0, -1e300, 5e-324, 1.0])})
    some = [n for n in NUMBERS if n in (0.0, 1.0, -0.3, 5e-324, LARGEST, 1e300, 2.0**-600, 1.5e-154, -LARGEST)]
    for name, (template, _) in {**MEANINGS, "divide": (D.divide, divided)}.items():
        plain = [n for n in some if n or name not in ("divide", "remainder")]
        queries = [template.format("x", D.number(n)) for n in plain] + [template.format(D.number(n), "y") for n in some]
        queries += [template.format(D.number(n), D.number(m)) for n in some for m in plain]
        rows = execute(f"SELECT {', '.join(queries)} FROM pairs")
        assert [len(row) for row in rows] == [len(queries)] * 4


def whole(value: float) -> int | None:
    return int(value) if -(2**63) <= value < 2**63 else None


def exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


ONE: dict[str, tuple[str, Callable[[float], Any]]] = {
    "even": (D.even, lambda v: float(round(v))), "floor": (D.floor, lambda v: math.floor(v)),
    "bits": (D.bits, lambda v: struct.unpack(">q", struct.pack(">d", v + 0.0))[0]), "spelled": (D.spelled, repr),
    "whole": (D.whole.format("floor({0})"), lambda v: whole(math.floor(v))),
    "nearest": (f"CASE WHEN abs({{0}}) < {2**62} THEN {D.nearest} END", lambda v: round(v) if abs(v) < 2**62 else None),
    "exp": (D.exp, lambda v: finite(exponential(v))),
    "wide": (D.whole_wide.format("floor({0})"), lambda v: math.floor(v) if abs(math.floor(v)) < 2**81 else None),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_one_number(name: str, load: Any, execute: Any) -> None:
    template, meaning = ONE[name]
    values = [*NUMBERS, *(double() for _ in range(300)), *(RANDOM.uniform(-2.0, 2.0) * 2.0**80 for _ in range(50))]
    load("numbers", {"i": ("int", [*range(len(values))]), "x": ("float8", values)})
    for i, answer in execute(f"SELECT i, {template.format('x')} FROM numbers"):
        meant = meaning(values[i])
        exact = answer == meant if name != "wide" or answer is None else int(answer) == meant
        rounded = name == "exp" and answer is not None and abs(answer - meant) <= 1e-15 * meant
        assert exact or rounded, (values[i], answer, meant)
    load("numbers", {"x": ("float8", OTHERS)})
    execute(f"SELECT {template.format('x')} FROM numbers WHERE x IS NULL OR {name in ('even', 'floor')}")
    assert execute(f"SELECT count(*) FROM numbers WHERE {D.finite.format('x')}") == [(0,)]


TIE = str(5**1075)
DIGITS = str(2**1024 - 2**970)
SPELLED = [
    "", "1", "-0", " 1.5 ", "\t2e3", "1e400", "-1e400", "1e-400", "1e308", f"{LARGEST!r}", "1.7976931348623159e308",
    DIGITS, str(int(DIGITS) - 1), DIGITS + "000e-3", "5e-324", "2.4703282292062327e-324", "2.4703282292062328e-324",
    "0e99999999999999999999", "1e99999999999999999999", "1e-99999999999999999999", "0" * 500 + "1", "1" + "0" * 400,
    "1" + "0" * 400 + "e-400", "0." + "0" * 400 + "1e400", "0." + "0" * 400 + "1", ".5", "5.", ".", "+", "inf", "nan",
    "Infinity", "0x10", "1_0", "1e", "e5", "1e5.0", "１２", "1 2", "1\n", "--1", "1e+05", "1E5", "9" * 310, "9" * 308,
    "2" + "0" * 308, "0." + "9" * 5000, f"{TIE}e-1075", f"{TIE}1e-1076", f"{TIE[:-1]}4e-1075", f"{TIE}000e-1078",
    "1e0000000000000000000000005", "-1e-0000000000000000000400",
    *(f"{RANDOM.choice(['', '-'])}{RANDOM.randrange(10 ** RANDOM.randrange(1, 30))}.{RANDOM.randrange(10**20)}"
      f"e{RANDOM.choice(['', '+', '-'])}{RANDOM.randrange(RANDOM.choice([9, 40, 360]))}" for _ in range(300)),
]  # fmt: skip
WHOLES = ["", "5", "-5", "+5", "007", f"{2**63 - 1}", f"{2**63}", f"{-(2**63)}", f"{-(2**63) - 1}", "9" * 19, "9" * 20,
          "0" * 30 + "5", " 5 ", "5.0", "1e3", "-", "abc", "-0", "００"]  # fmt: skip
CLOCKS = ["2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "0001-01-01", "0000-01-01", "2024-04-31",
          "9999-12-31 23:59:59.999999", "2024-13-01", "2024-00-01", "2024-01-00", "2024-03-01 12:30", "2024-1-1",
          "2024-03-01 24:00", "2024-03-01 12:30:05.5", "2024-03-01 12:30:05.1234567", "2024-03-01 12:60", "", "x",
          "99999-01-01", "1969-12-31 23:59:59.000001", "infinity", "2024-03-01 12"]  # fmt: skip


def whole_of(text: str) -> int | None:
    return whole(int(text)) if re.fullmatch("[ \t]*[+-]?[0-9]+[ \t]*", text) else None


def micros(text: str) -> int | None:
    written = re.fullmatch(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?: ([0-9]{2}:[0-9]{2}(?::[0-9]{2})?))?([.][0-9]+)?", text)
    try:
        moment = datetime.fromisoformat(f"{written[1]} {written[2] or '00:00'}") if written else None
    except ValueError:
        return None
    fraction = int((written[3] or ".")[1:7].ljust(6, "0")) if written else 0
    return None if moment is None else (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1) + fraction


LETTERS = ["", "abc", "É", "ß", "İ", "ŒΣσς", "ǅ", "\U00010400", "A\u0301", "ﬀ", "ᾳᾼ", *map(chr, range(1, 0xD800, 7))]
TEXTS: dict[str, tuple[str, list[str], Callable[[str], Any]]] = {
    "double_of": (D.double_of, SPELLED, row_functions.number), "whole_of": (D.whole_of, WHOLES, whole_of),
    "micros": (D.micros, CLOCKS, micros), "size": (D.size, LETTERS, lambda text: len(text.encode())),
    "lower": (D.operations["lower"], LETTERS, row_functions.lower),
    "upper": (D.operations["upper"], LETTERS, row_functions.upper),
    "digest": (D.digest, LETTERS[:20], lambda text: int(hashlib.sha256(text.encode()).hexdigest()[:12], 16)),
    "place": (D.place.format("{0}", "'abc', 'É'"), LETTERS, lambda text: {"abc": 1, "É": 2}.get(text)),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str, load: Any, execute: Any) -> None:
    template, values, meaning = TEXTS[name]
    load("words", {"i": ("int", [*range(len(values))]), "x": ('text COLLATE "C"', values)})
    for i, answer in execute(f"SELECT i, {template.format('x')} FROM words"):
        assert answer == meaning(values[i]), (values[i][:80], answer)
    assert execute(f"SELECT {template.format('CAST(NULL AS TEXT)')}")[0][0] is None


def test_moments(load: Any, execute: Any) -> None:
    units = [0, -1, FIRST_TIME, LAST_TIME + 999_999, FIRST_TIME - 1, 2**63 - 1, -(2**63), -8_640_000_000_001]
    days = [0, -1, FIRST_DAY, LAST_DAY, LAST_DAY + 1, FIRST_DAY - 1, 2**40, -(2**40)]
    load("moments", {"i": ("int", [*range(8)]), "m": ("bigint", units), "d": ("float8", days)})
    for i, stamp, day in execute(f"SELECT i, {D.stamp.format('m')}, {D.day.format('d')} FROM moments"):
        inside = FIRST_TIME <= units[i] < LAST_TIME + 1_000_000
        assert stamp == (datetime(1970, 1, 1) + timedelta(microseconds=units[i]) if inside else None)
        assert day == (date(1970, 1, 1) + timedelta(days[i]) if FIRST_DAY <= days[i] <= LAST_DAY else None)


def test_sums_do_not_overflow(load: Any, execute: Any) -> None:
    load("sums", {"x": ("bigint", [2**63 - 1] * 5)})
    assert execute(f"SELECT {D.total.format('x')} FROM sums") == [(str(5 * (2**63 - 1)),)]
    assert Decimal(execute(f"SELECT {D.total.format('x')} FROM sums WHERE FALSE")[0][0]) == 0
