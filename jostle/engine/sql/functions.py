"""The operations of `jostle/language/operations.py` in SQL, composed of a dialect's primitives.

Each is a template of its operands, `{0}`, `{1}`, …, that cannot fail on any row; braces of constants are doubled. The
public constants of an operation are arguments of the function that returns its template. Operations in `FINITE` need
finite or missing operands; others propagate NaN and infinities. Operations in `WILD` may return these for finite ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from jostle.engine.sql.dialect import Dialect, need
from jostle.language import moments
from jostle.language.moments import DAY, FIRST_DAY, FIRST_TIME, LAST_DAY, LAST_TIME, SPANS, days_in, zone_of
from jostle.language.operations import BLANKS, DECIMAL, EXACT, LONGEST, MOST_PART

FINITE = frozenset({"%", "^", "exp", "clamp", "min", "max", "text", "shift", "shift time"})
_MICROS = len("2024-03-01 12:30:00.000000")
WILD = frozenset({"+", "-", "*", "/", "%", "^", "exp"})


def template(dialect: Dialect, name: str, constants: tuple[object, ...]) -> str:
    """The SQL template of an operation. `DataError` if the database cannot compute it as others do."""
    need(name, dialect)
    return dialect.operations.get(name) or _FUNCTIONS[name](dialect, *constants)


def _plain(sql: str) -> Callable[[Dialect], str]:
    return lambda _: sql


def _literal(dialect: Dialect, text: str) -> str:
    """A text as a literal in a template."""
    return dialect.literal(text).replace("{", "{{").replace("}", "}}")


def pattern_literal(dialect: Dialect, pattern: str) -> str:
    """A pattern in the syntax of RE2 as a literal in a template."""
    spelled = pattern.replace("\\A", dialect.start).replace("\\z", dialect.end)
    return _literal(
        dialect, re.sub(r"\\x\{([0-9A-F]+)\}", lambda code: dialect.character.format(int(code[1], 16)), spelled)
    )


def whole_text(pattern: str) -> str:
    """A Python pattern `^…$` as a pattern for the whole text."""
    return f"\\A{pattern[1:-1]}\\z"


# Texts ---------------------------------------------------------------------------------------------


_OCCURRENCES = "(length({0}) - length(replace({0}, {1}, '')))", "nullif(length({1}), 0)"


def decimal(d: Dialect) -> str:
    """The finite decimal number in a text, NULL for texts longer than `LONGEST`."""
    value = d.double_of.format("{0}")
    condition, finite = d.matches.format("{0}", pattern_literal(d, whole_text(DECIMAL))), d.finite.format(value)
    short = f" AND {d.short}" if d.short else ""
    if d.decimal:
        return f"CASE WHEN {finite} AND ({d.decimal} OR {condition}){short} THEN {value} END"
    return f"CASE WHEN {condition} AND {finite}{short} THEN {value} END"


def _spelled(d: Dialect) -> str:
    million = 10**6
    many = d.whole.format(d.even.format(d.multiply.format("abs({0})", d.number(million))))
    decimals = f"lpad({d.as_text(f'({many}) % {million}')}, 6, '0')"
    number = f"{d.as_text(d.quotient.format(many, million))} || '.' || {decimals}"
    return (
        f"CASE WHEN {{0}} = {d.floor.format('{0}')} THEN CASE WHEN abs({{0}}) <= {EXACT} THEN "
        f"{d.as_text(d.whole.format('{0}'))} END WHEN abs({{0}}) < {MOST_PART} THEN "
        f"CASE WHEN {{0}} < 0 AND {many} > 0 THEN '-' ELSE '' END || "
        f"trim(TRAILING '.' FROM trim(TRAILING '0' FROM {number})) END"
    )


def _replace(d: Dialect) -> str:
    longer = f"length({{0}}) + {d.quotient.format(*_OCCURRENCES)} * (length({{2}}) - length({{1}}))"
    return (
        "CASE WHEN {1} = '' AND {2} IS NOT NULL THEN {0} WHEN length({2}) <= length({1}) OR "
        f"{longer} <= greatest({LONGEST}, length({{0}})) THEN replace({{0}}, {{1}}, {{2}}) END"
    )


def _part(d: Dialect, _: str, place: float) -> str:
    enough = f"{d.quotient.format(*_OCCURRENCES)} >= {int(place) - 1}"
    return f"CASE WHEN {enough} THEN split_part({{0}}, {{1}}, {int(place)}) END"


# Dates and times -----------------------------------------------------------------------------------


def known_time(d: Dialect, micros: str) -> str:
    """Microseconds, a BIGINT, as an exact double."""
    seconds = f"{micros} - ({micros} % 1000000 + 1000000) % 1000000"
    inside = f"{micros} BETWEEN {-moments.EXACT} AND {moments.EXACT}"
    return d.as_double(f"CASE WHEN {inside} THEN {micros} ELSE {seconds} END")


def day_of(d: Dialect, micros: str) -> str:
    """The day of microseconds, a BIGINT, as a double."""
    return d.as_double(f"({d.quotient.format(f'({micros} - ({FIRST_TIME}))', DAY)} + ({FIRST_DAY}))")


def truncation(d: Dialect, kind: str, unit: str, number: str) -> str:
    """The first day or microsecond of a moment's unit."""
    if unit in SPANS:
        span = d.number(SPANS[unit])
        return f"({_floor(d, number, SPANS[unit])} * {span})"
    if kind == "time":
        return f"({truncation(d, 'date', unit, _floor(d, number, DAY))} * {d.number(DAY)})"
    if unit == "day":
        return number
    if days := days_in(unit):
        return f"({days} * {_floor(d, f'({number} - ({FIRST_DAY}))', days)} + ({FIRST_DAY}))"
    return d.as_double(d.days.format(d.first_day.format(d.day.format(number), unit)))


def _floor(d: Dialect, number: str, unit: float) -> str:
    """The number of whole units up to a day or a moment of the years 1 to 9999."""
    return (d.near_floor or d.floor).format(f"({number} / {d.number(unit)})")


def _extract(name: str) -> Callable[[Dialect], str]:
    return lambda d: d.as_double(d.extract.format(d.day.format("{0}"), name))


def _clock(large: int, small: int) -> Callable[[Dialect], str]:
    """The number of `small` units since the start of the current `large` unit."""
    return lambda d: f"({_floor(d, '{0}', small)} - {large // small} * {_floor(d, '{0}', large)})"


def of_text(kind: str) -> Callable[[Dialect], str]:
    """The date or time in a text."""

    def sql(d: Dialect) -> str:
        read = "trim(BOTH ' \t' FROM {0})"
        pattern = pattern_literal(d, f"{moments.AHEAD}[ \t]*\\z")
        ahead, zone = d.matches.format("{0}", pattern), d.part.format("{0}", pattern, 2)
        hours, rest = d.whole_of.format(f"substring({zone}, 2, 2)"), d.whole_of.format(f"right({zone}, 2)")
        minutes = f"({hours} * 60 + CASE WHEN length({zone}) > 3 THEN {rest} ELSE 0 END) * 60000000"
        offset = f"CASE WHEN NOT {ahead} THEN 0 WHEN left({zone}, 1) = '-' THEN -{minutes} ELSE {minutes} END"
        bare = f"CASE WHEN {ahead} THEN left({read}, length({read}) - length({zone})) ELSE {read} END"
        clock = f"replace(replace(substring({bare}, 1, {_MICROS}), 'T', ' '), 'Z', '')"
        micros = f"({d.micros.format(clock)} - {offset})"
        value = day_of(d, micros) if kind == "date" else known_time(d, micros)
        condition = d.matches.format("{0}", pattern_literal(d, whole_text(moments.TEXT)))
        inside = f"{micros} BETWEEN {FIRST_TIME} AND {LAST_TIME + 999_999}"
        return f"CASE WHEN {condition} AND {inside} THEN {value} END"

    return sql


def _by_format(kind: str, d: Dialect, form: str) -> str:
    """A text in a given format as an ISO text."""
    spelling, fields = d.format(form, kind)
    pattern = pattern_literal(d, whole_text(f"{spelling[:-1]}{'()' * len(fields)}$"))  # with as many groups
    parts = [d.part.format("{0}", pattern, i + 1) for i in range(len(fields))]
    of = {moments.PLACES[field]: _field(d, field, part) for field, part in zip(fields, parts, strict=True)}
    if "half" in of:
        half = f"CASE WHEN {of['half']} = 'PM' THEN 12 ELSE 0 END"
        hour = f"({d.whole_of.format(of['hour'])} % 12 + {half})"
        of["hour"] = f"lpad({d.as_text(hour)}, 2, '0')"
    pieces = [of.get("year", "'1970'"), "'-'", of.get("month", "'01'"), "'-'", of.get("day", "'01'"), "' '"]
    pieces += [of.get("hour", "'00'"), "':'", of.get("minute", "'00'"), "':'", of.get("second", "'00'")]
    pieces += ["'.'", of["fraction"]] if "fraction" in of else []
    return f"CASE WHEN {d.matches.format('{0}', pattern)} THEN {' || '.join(pieces)} END"


def _field(d: Dialect, field: str, text: str) -> str:
    if field == "y":
        return f"CASE WHEN {text} >= '69' THEN '19' ELSE '20' END || {text}"
    if field in ("b", "B"):
        at = d.quotient.format(f"(position(lower(left({text}, 3)) IN '{moments.INITIALS}') + 2)", 3)
        return f"lpad({d.as_text(at)}, 2, '0')"
    return f"upper({text})" if field == "p" else text if field in ("Y", "f") else f"lpad({text}, 2, '0')"


def _zoned(d: Dialect, name: str) -> str:
    """A binary search over the transitions of a zone, so that few are compared for a row."""
    zone = zone_of(name)

    def ahead(first: int, last: int) -> str:
        if first == last:
            return d.number(zone.offsets[first])
        middle = (first + last) // 2
        before, after = ahead(first, middle), ahead(middle + 1, last)
        return f"CASE WHEN {{0}} < {d.number(zone.starts[middle])} THEN {before} ELSE {after} END"

    local = f"({{0}} + {ahead(0, len(zone.offsets) - 1)})"
    earliest = d.number(FIRST_TIME - zone.offsets[0])
    return f"CASE WHEN {{0}} < {d.number(zone.end)} AND {{0}} >= {earliest} THEN {local} END"


def _shift(d: Dialect) -> str:
    day = f"({{0}} + {d.floor.format('{1}')})"
    return f"CASE WHEN {day} BETWEEN {FIRST_DAY} AND {LAST_DAY} THEN {day} END"


def _shift_time(d: Dialect) -> str:
    micros = f"({{0}} + {d.even.format(d.multiply.format('{1}', d.number(DAY)))})"
    return f"CASE WHEN {micros} BETWEEN {FIRST_TIME} AND {LAST_TIME} THEN {known_time(d, d.whole.format(micros))} END"


# All -----------------------------------------------------------------------------------------------

_CLAMP = (
    "CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL WHEN {0} < {1} OR {2} < {1} THEN {1} "
    "WHEN {0} > {2} THEN {2} ELSE {0} END"
)
_ORDERED: dict[str, Callable[..., str]] = {
    "clamp": _plain(_CLAMP),
    "min": _plain("CASE WHEN {0} <= {1} THEN {0} WHEN {1} < {0} THEN {1} END"),
    "max": _plain("CASE WHEN {0} >= {1} THEN {0} WHEN {1} > {0} THEN {1} END"),
}
_FUNCTIONS: dict[str, Callable[..., str]] = {
    "+": lambda d: d.add,
    "-": lambda d: d.add.format("{0}", "(-{1})"),
    "*": lambda d: d.multiply,
    "neg": _plain("(-{0})"),
    "abs": _plain("abs({0})"),
    "floor": lambda d: d.floor,
    "ceil": lambda d: f"(-{d.floor.format('(-{0})')})",
    "sqrt": _plain("sqrt(CASE WHEN {0} >= 0 THEN {0} END)"),
    "log": _plain("ln(CASE WHEN {0} > 0 THEN {0} END)"),
    "exp": lambda d: d.exp.format("CASE WHEN {0} < 710 THEN {0} END"),
    "round": lambda d: d.even,
    **_ORDERED,
    **{f"{name} {kind}": sql for name, sql in _ORDERED.items() for kind in ("date", "time")},
    "missing": _plain("({0} IS NULL)"),
    "lower": _plain("lower({0})"),
    "upper": _plain("upper({0})"),
    "trim": lambda d: f"trim(BOTH {_literal(d, BLANKS)} FROM {{0}})",
    "length": lambda d: d.as_double("length({0})"),
    "contains": _plain("(position({1} IN {0}) > 0)"),
    "starts_with": _plain("(left({0}, length({1})) = {1})"),
    "ends_with": _plain("(right({0}, length({1})) = {1})"),
    "replace": _replace,
    "substring": lambda _, start: f"substring({{0}}, {int(start)})",
    "substring of count": lambda _, start, count: f"substring({{0}}, {int(start)}, {int(count)})",
    "position": lambda d: (
        f"CASE WHEN {{1}} = '' AND {{0}} IS NOT NULL THEN {d.number(1.0)} "
        f"ELSE {d.as_double('position({1} IN {0})')} END"
    ),
    "part": _part,
    "matches": lambda d, pattern: d.matches.format("{0}", pattern_literal(d, d.pattern(pattern))),
    "number": decimal,
    "text": _spelled,
    "concat": _plain(f"CASE WHEN length({{0}}) + length({{1}}) <= {LONGEST} THEN {{0}} || {{1}} END"),
    **{name: _extract(name) for name in ("year", "quarter", "month", "week", "day")},
    "weekday": _extract("isodow"),
    "day_of_year": _extract("doy"),
    "week_year": _extract("isoyear"),
    "hour": _clock(DAY, SPANS["hour"]),
    "minute": _clock(SPANS["hour"], SPANS["minute"]),
    "second": _clock(SPANS["minute"], SPANS["second"]),
    "date": lambda d: _floor(d, "{0}", DAY),
    "time": lambda d: f"({{0}} * {d.number(DAY)})",
    **{f"{kind} of text": of_text(kind) for kind in ("date", "time")},
    **{f"{kind} by format": partial(_by_format, kind) for kind in ("date", "time")},
    "in_zone": _zoned,
    "trunc": lambda d, unit: truncation(d, "date", unit, "{0}"),
    "trunc time": lambda d, unit: truncation(d, "time", unit, "{0}"),
    "shift": _shift,
    "shift time": _shift_time,
    "apart": _plain("({0} - {1})"),
    "time apart": lambda d: f"(({{0}} - {{1}}) / {d.number(DAY)})",
    "days_between": _plain("({1} - {0})"),
    "seconds_between": lambda d: f"(({{1}} - {{0}}) / {d.number(10**6)})",
}
