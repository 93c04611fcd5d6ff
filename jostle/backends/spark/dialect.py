"""Spark's dialect: templates that raise nothing on a row, on Apache Spark in its ANSI mode and on Sail alike.

ANSI mode is Spark's default and belongs to the cluster, so nothing here rests on it: casts, `floor` to 64 bits and
divisions have their operand tested inside them. Where the two servers answer otherwise (`rint`, `isnan`, `weekday`,
casts of large doubles, parts of dates) the template takes a way on which they agree; `tests/engines` holds them to the
plain meaning in Python. The session's time zone is UTC, which the connection sees to.

A text is written in the bytes of its UTF-8 unless it is made of letters, digits and blanks: what a backslash or a
doubled quote means in a literal is a setting of the cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from jostle.backends.spark.patterns import spelling
from jostle.engine.sql.dialect import Dialect
from jostle.language.moments import FIRST_DAY, LAST_DAY
from jostle.language.operations.texts import upper

_PLAIN = re.compile(r"[A-Za-z0-9 .,:_-]*")
_LARGEST = "1.7976931348623157e308D"
_SMALLEST = "2.2250738585072014e-308D"  # of the doubles with 53 bits
_WHOLE = f"CASE WHEN abs({{0}}) < {2**52}e0D THEN {{0}} END"  # what is larger has no fraction
_NEAREST = f"(({{0}} + {1.5 * 2**52!r}e0D) - {1.5 * 2**52!r}e0D)"  # added to so large a double, none keeps a fraction
_LONG = f"CASE WHEN {{0}} >= -{2**63}e0D AND {{0}} < {2**63}e0D THEN {{0}} END"
_WIDE = f"CASE WHEN abs({{0}}) < {2**81}e0D THEN {{0}} END"
_HIGH = f"floor({_WIDE} / {2**40}e0D)"
_LOW = f"({_WIDE} - CAST({_HIGH} AS DOUBLE) * {2**40}e0D)"


def quoted(text: str) -> str:
    """A text as a literal."""
    return f"'{text}'" if _PLAIN.fullmatch(text) else f"CAST(X'{text.encode().hex().upper()}' AS STRING)"


def _bits() -> str:
    """The 64 bits of a double. As a function of its size they are the lowest of the lines through the pieces on which
    the exponent does not change, so of two exponents near the logarithm the smaller line is right, whatever the last
    digits of the logarithm are. Dividing by a power of two is exact."""
    exponent = "floor(greatest(log2(abs({0})), -1022e0D) + 0.5e0D)"
    size = f"(abs({{0}}) / pow(2e0D, CAST({exponent} - 52 AS DOUBLE)))"
    line = f"least({size}, CASE WHEN abs({{0}}) >= {_SMALLEST} THEN 2e0D * {size} - {2**52}e0D END)"
    sign = f"CASE WHEN {{0}} < 0e0D THEN CAST('-{2**63}' AS BIGINT) ELSE CAST(0 AS BIGINT) END"
    return f"(({exponent} + 1022) * {2**52} + CAST({line} AS BIGINT) + {sign})"


def _upper() -> str:
    """Letters whose capital is several by Unicode's full mapping pass the function as signs of nobody's."""
    ranges: Iterable[int] = (0xDF, 0x149, 0x1F0, 0x390, 0x3B0, 0x587, *range(0x1E96, 0x1E9B), *range(0x1F50, 0x1FFD),
                             *range(0xFB00, 0xFB18))  # fmt: skip
    letters = [chr(code) for code in ranges if len(chr(code).upper()) > 1]
    signs = "".join(chr(0x10FE00 + place) for place in range(len(letters)))
    marked = f"translate({{0}}, {quoted(''.join(letters))}, {quoted(signs)})"
    return f"translate(upper({marked}), {quoted(signs)}, {quoted(''.join(map(upper, letters)))})"


_DAYS = f"CASE WHEN {{0}} BETWEEN {FIRST_DAY} AND {LAST_DAY} THEN {{0}} END"
_DAY = f"date_from_unix_date(CAST({_DAYS} AS INT))"
_ISO = f"(pmod(CAST({_DAYS} AS INT) + 3, 7) + 1)"  # 1 January 1970 was a Thursday
_THURSDAY = f"date_from_unix_date(CAST({_DAYS} AS INT) + 4 - {_ISO})"
_MIDDLE = "date_from_unix_date(unix_date({0}) + 4 - (pmod(unix_date({0}) + 3, 7) + 1))"

SPARK = Dialect(
    name="Spark",
    double="DOUBLE", text="STRING", wide="DECIMAL(38,0)", tiny="TINYINT",
    digits="({0}D)", quoted=quoted,
    finite=f"(abs({{0}}) <= {_LARGEST})", known_finite="NOT isnan({0} - {0})",
    whole=f"CAST({_LONG} AS BIGINT)",
    whole_wide=f"(CAST({_HIGH} AS DECIMAL(38,0)) * {2**40} + CAST(CAST({_LOW} AS BIGINT) AS DECIMAL(38,0)))",
    floor=f"coalesce(CAST(floor({_WHOLE}) AS DOUBLE), {{0}})",
    even="bround({0}, 0)", nearest="CAST(bround({0}, 0) AS BIGINT)",
    grid="(({0} + {1}) - {1})", near_nearest=f"CAST({_NEAREST} AS BIGINT)",
    near_floor="CAST(floor({0}) AS DOUBLE)", near_whole="CAST({0} AS BIGINT)",
    remainder="({0} % {1})", unsigned="({0} + 0e0D)", bits=_bits(),
    quotient="(({0}) div ({1}))", xor="(({0}) ^ ({1}))", right="shiftright({0}, {1})",
    total="coalesce(CAST(sum(CAST({0} AS DECIMAL(38,0))) AS STRING), '0')",
    double_of="try_cast(btrim({0}, ' \t') AS DOUBLE)", whole_of="try_cast({0} AS BIGINT)",
    digest="CAST(conv(CAST(left(sha2({0}, 256), 12) AS STRING), 16, 10) AS BIGINT)", size="octet_length({0})",
    place="array_position(array({1}), {0})",
    pattern=spelling, matches="rlike({0}, {1})", part="regexp_extract({0}, {1}, {2})",
    day=_DAY, days="unix_date({0})",
    first_day="CASE '{1}' WHEN 'year' THEN make_date(year({0}), 1, 1) "
              "WHEN 'quarter' THEN make_date(year({0}), 3 * quarter({0}) - 2, 1) "
              "ELSE make_date(year({0}), month({0}), 1) END",
    stamp="CAST(timestamp_micros({0}) AS TIMESTAMP_NTZ)",
    micros="unix_micros(try_cast({0} AS TIMESTAMP))",
    shared="WITH {0} AS ({1}) {2}", groups_cells=True,
    lists=True, orders=False,  # Sail looks up nothing in a CASE, and plans no order of some unions
    quantile="percentile({0}, {1})",
    operations={
        "contains": "contains({0}, {1})", "starts_with": "startswith({0}, {1})", "ends_with": "endswith({0}, {1})",
        "position": "CAST(instr({0}, {1}) AS DOUBLE)",
        "lower": f"lower(translate({{0}}, {quoted('İΣ')}, {quoted('iσ')}))", "upper": _upper(),
        "weekday": f"CAST({_ISO} AS DOUBLE)",
        "week": f"CAST((dayofyear({_THURSDAY}) - 1) div 7 + 1 AS DOUBLE)",
        "week_year": f"CAST(year({_THURSDAY}) AS DOUBLE)",
        "day_of_year": f"CAST(dayofyear({_DAY}) AS DOUBLE)",
    },
)  # fmt: skip
