"""What the operations of a row are on public values, between which bounds they lie, and how a program calls them.

It is calculated with what a program states, with constants and with what is publicly known of a column; never with a
private row, which an engine answers about. `language.operations` says which kinds each takes. Rules for bounds are
interval arithmetic in doubles: the basic operations round monotonically, so the operation applied to the ends of its
operands bounds it without widening; `log`, `exp` and `^` come from a mathematics library that promises no such thing
and are widened. A rule gives None where there is no bound, and may give an infinite one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, datetime
from functools import partial
from typing import Any

from jostle.language import moments, operations, patterns
from jostle.language.moments import DAY, FIRST_DAY, FIRST_TIME, LAST_DAY, LAST_TIME, moment_of, number_of, zone_of
from jostle.language.operations import BLANKS, DATE, DECIMAL, EXACT, LONGEST, MOST_PART, NUMBER, TEXT, TIME, Operation

Interval = tuple[float, float]


def unbounded(*_: object) -> None:
    """No bounds, whatever the operands are."""


def add(x: Interval, y: Interval) -> Interval:
    return x[0] + y[0], x[1] + y[1]


def subtract(x: Interval, y: Interval) -> Interval:
    return x[0] - y[1], x[1] - y[0]


def multiply(x: Interval, y: Interval) -> Interval:
    return _corners(lambda a, b: a * b, x, y)


def divide(x: Interval, y: Interval) -> Interval | None:
    return None if y[0] <= 0 <= y[1] else _corners(lambda a, b: a / b, x, y)


def remainder(x: Interval, y: Interval, whole: bool = False) -> Interval | None:
    """The remainder has the divisor's sign and stays below it, but for rounding up to it from a tiny negative."""
    if y[0] <= 0 <= y[1]:
        return None
    if y[1] < 0:
        mirrored = remainder(negative(x), negative(y), whole)
        return None if mirrored is None else negative(mirrored)
    if x[0] >= 0 and x[1] < y[0]:
        return x
    if whole and y[1] < EXACT and max(-x[0], x[1]) < EXACT:
        return 0.0, y[1] - 1
    return (0.0, min(x[1], math.nextafter(y[1], 0.0))) if x[0] >= 0 else (0.0, y[1])


def power(x: Interval, y: Interval) -> Interval | None:
    if y[0] == y[1] and y[0].is_integer() and y[0] >= 0:
        ends = [_pow(end, y[0]) for end in x] + ([0.0] if x[0] <= 0 <= x[1] and y[0] > 0 else [])
    elif x[0] > 0 or (x[0] == 0 and y[0] >= 0):
        ends = [_pow(a, b) for a in x for b in y] + ([0.0, 1.0] if x[0] == 0 else [])
    else:
        return None
    return _widened(min(ends), max(ends))


def negative(x: Interval) -> Interval:
    return -x[1], -x[0]


def absolute(x: Interval) -> Interval:
    low = 0.0 if x[0] <= 0 <= x[1] else min(abs(x[0]), abs(x[1]))
    return low, max(abs(x[0]), abs(x[1]))


def rounded(rounding: Callable[[float], int]) -> Callable[[Interval], Interval]:
    return lambda x: (float(rounding(x[0])), float(rounding(x[1])))


def root(x: Interval) -> Interval | None:
    return None if x[1] < 0 else (math.sqrt(max(x[0], 0.0)), math.sqrt(x[1]))


def logarithm(x: Interval) -> Interval | None:
    """Only positive values have one; a lower end at or below zero gives that of the smallest double."""
    return None if x[1] <= 0 else _widened(math.log(max(x[0], 5e-324)), math.log(x[1]))


def exponential(x: Interval) -> Interval | None:
    return None if x[1] > 709 else _widened(math.exp(x[0]), math.exp(x[1]))


def clamped(x: Interval, low: Interval, high: Interval) -> Interval:
    """max(low, min(high, x)): never above max of the two upper ends, whatever x is."""
    return max(low[0], min(high[0], x[0])), max(low[1], min(high[1], x[1]))


def smaller(x: Interval, y: Interval) -> Interval:
    return min(x[0], y[0]), min(x[1], y[1])


def larger(x: Interval, y: Interval) -> Interval:
    return max(x[0], y[0]), max(x[1], y[1])


def _corners(operation: Callable[[float, float], float], x: Interval, y: Interval) -> Interval:
    ends = [operation(a, b) for a in x for b in y]
    return min(ends), max(ends)


def _pow(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except (OverflowError, ValueError):
        return math.inf


def _widened(low: float, high: float) -> Interval:
    def out(value: float, towards: float) -> float:
        if not math.isfinite(value) or (value.is_integer() and abs(value) < EXACT):
            return value  # exact in every library we know, and a wider key would be an idle one
        for _ in range(4):
            value = math.nextafter(value, towards)
        return value

    return out(low, -math.inf), out(high, math.inf)


class Function(Operation, frozen=True, eq=False):
    """An operation with what it is on public values.

    For numbers `columns`, on columns of doubles, given NumPy first, and in a program `number`, which may raise
    ValueError or OverflowError; for other kinds `value`, on values that are not missing, where None is missing.
    `bounds`: of numbers that it gives for operands within bounds; None where there are none. `rises`: it grows with
    each operand. `about` is for people, and only what a program calls by name has it.
    """

    bounds: Callable[..., Interval | None] = unbounded
    columns: Callable[..., Any] | None = None
    value: Callable[..., Any] | None = None
    number: Callable[..., float] | None = None
    rises: bool = False
    about: str = ""
    signature: str = "value"
    each: bool = False  # a program may apply it to each number of a list
    many: bool = False  # a program may apply it to several numbers, or to a list
    optional: int = 0  # further operands that a program may give, which make it another operation


def _function(name: str, bounds: Callable[..., Interval | None] = unbounded, *columns: Any, **more: Any) -> Function:
    base = operations.OPERATIONS[name]
    facts = (base.name, base.kinds, base.gives, base.whole, base.constants, more.pop("check", base.check))
    return Function(*facts, bounds, *columns, **more)


def _check_pattern(pattern: str) -> None:
    try:
        patterns.parse(pattern)
    except ValueError as error:
        raise ValueError(f"this is no pattern: {error}") from None


NUMBERS = (
    _function("+", add, lambda np, x, y: np.add(x, y)),
    _function("-", subtract, lambda np, x, y: np.subtract(x, y)),
    _function("*", multiply, lambda np, x, y: np.multiply(x, y)),
    _function("/", divide, lambda np, x, y: np.divide(x, y)),
    _function("%", remainder, lambda np, x, y: _remainder(np, x, y)),
    _function("^", power, lambda np, x, y: np.float_power(x, y)),
    _function("neg", negative, lambda np, x: np.negative(x)),
    _function("abs", absolute, lambda np, x: np.abs(x), number=abs,
              about="The absolute value, also of each of a list.", each=True),
    _function("floor", rounded(math.floor), lambda np, x: np.floor(x),
              number=math.floor, rises=True, about="The largest whole number below, also of each of a list.",
              each=True),
    _function("ceil", rounded(math.ceil), lambda np, x: np.ceil(x),
              number=math.ceil, rises=True, about="The smallest whole number above, also of each of a list.",
              each=True),
    _function("sqrt", root, lambda np, x: np.sqrt(x), number=math.sqrt, rises=True,
              about="The square root, also of each of a list.", each=True),
    _function("log", logarithm, lambda np, x: np.log(x), number=math.log, rises=True,
              about="The natural logarithm, also of each of a list.", each=True),
    _function("exp", exponential, lambda np, x: np.exp(x), number=math.exp, rises=True,
              about="The exponential, also of each of a list.", each=True),
    _function("round", rounded(round), lambda np, x: np.rint(x), rises=True,
              number=lambda x, digits=0.0: float(round(x, int(digits))),
              about="Rounded to so many digits.", signature="value, digits = 0", optional=1),
    _function("clamp", clamped, lambda np, x, low, high: np.maximum(low, np.minimum(high, x)),
              number=lambda x, low, high: max(low, min(high, x)), rises=True,
              about="The nearest number between `low` and `high`.", signature="value, low, high"),
    _function("min", smaller, lambda np, x, y: np.minimum(x, y),
              number=lambda *numbers: min(numbers), rises=True,
              about="The smallest of a list, or of several numbers.", signature="*values", many=True),
    _function("max", larger, lambda np, x, y: np.maximum(x, y),
              number=lambda *numbers: max(numbers), rises=True,
              about="The largest of a list, or of several numbers.", signature="*values", many=True),
)  # fmt: skip


def _remainder(np: Any, x: Any, y: Any) -> object:
    """With the sign of the divisor."""
    rest = np.fmod(x, y)
    return np.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)


def first(*values: object) -> object:
    """The first of several values that is not missing."""
    return next((value for value in values if value is not None), None)


ABSENCE = (
    _function("missing", value=lambda value: value is None),
    _function("coalesce", value=first, signature="value, *others",
              about="The first of several values that is not none."),
)  # fmt: skip


def lower(text: str) -> str:
    """Each letter by its one small letter, so that the length stays: Unicode's simple mapping."""
    return "".join(map(_small, text))


def upper(text: str) -> str:
    """Each letter by its one capital letter, so that the length stays."""
    return "".join(map(_capital, text))


def _small(letter: str) -> str:
    small = letter.lower()
    return small if len(small) == 1 else "i"  # the dotted I alone has two


def _capital(letter: str) -> str:
    capital = letter.upper()
    if len(capital) == 1:
        return capital
    title = letter.title()  # Greek letters with a subscript have one sign as a title's, and several as capitals
    return "\u1e9e" if letter == "\xdf" else title if len(title) == 1 else letter


def replace(text: str, old: str, new: str) -> str | None:
    """All places of `old`, from the left, none of them twice; of an empty `old` there is none."""
    if not old:
        return text
    many = text.count(old)
    return text.replace(old, new) if len(text) + many * (len(new) - len(old)) <= max(LONGEST, len(text)) else None


def part(text: str, separator: str, place: float) -> str | None:
    parts = text.split(separator)
    return parts[int(place) - 1] if place <= len(parts) else None


def number(text: str) -> float | None:
    """A finite decimal with blanks around it at most."""
    if not re.fullmatch(DECIMAL[1:-1], text):
        return None
    value = float(text)
    return value if abs(value) != float("inf") else None


def spelled(value: float) -> str | None:
    """A number as a text: all digits of a whole one up to 2^53, else six decimals at most, below 10^9."""
    if abs(value) < math.inf and value == int(value):
        return str(int(value)) if abs(value) <= EXACT else None
    if not abs(value) < MOST_PART:
        return None
    many = round(abs(value) * 10**6)
    digits = f"{many // 10**6}.{many % 10**6:06d}".rstrip("0").rstrip(".")
    return ("-" if value < 0 and many else "") + digits


def joined(left: str, right: str) -> str | None:
    return left + right if len(left) + len(right) <= LONGEST else None


def pair(first: object, second: object) -> str:
    """A text for two values, which no other two have: it says first how long the first one is."""
    start = str(first)
    return f"{len(start)}:{start}{second}"


TEXTS = (
    _function("lower", value=lower, about="The text with each letter as its small letter."),
    _function("upper", value=upper, about="The text with each letter as its capital letter."),
    _function("trim", value=lambda text: text.strip(BLANKS),
              about="The text without blanks at its ends."),
    _function("length", value=lambda text: float(len(text)),
              about="How many characters a text has (Unicode's code points)."),
    _function("contains", value=lambda text, inside: inside in text,
              signature="value, inside", about="Whether a text stands in another."),
    _function("starts_with", value=lambda text, start: text.startswith(start), signature="value, start",
              about="Whether a text begins with another."),
    _function("ends_with", value=lambda text, end: text.endswith(end), signature="value, end",
              about="Whether a text ends with another."),
    _function("replace", value=replace,
              signature="value, old, new", about="The text with another one in each place where `old` stands."),
    _function("substring", optional=1,
              value=lambda text, start: text[int(start) - 1 :], signature="value, start, count = none",
              about="A text from a place on, the first one is 1; only so many characters with `count`."),
    _function("substring of count", value=lambda text, start, count: text[int(start) - 1 : int(start) - 1 + int(count)],
              signature="value, start, count"),
    _function("position", value=lambda text, inside: text.find(inside) + 1.0, signature="value, inside",
              about="The place, from 1, at which a text first stands in another; 0 where it does not."),
    _function("part", value=part, signature="value, separator, place",
              about="A part of a text that a separator divides; the first one's place is 1."),
    _function("matches", value=patterns.matches, check=_check_pattern, signature="value, pattern",
              about="Whether a pattern matches somewhere in a text: `^` and `$` hold it at the ends."),
    _function("number", value=number, about="The number that a text spells."),
    _function("text", value=spelled, about="The number as a text, with six decimals at most."),
    _function("concat", value=joined),
    _function("pair", value=pair),
)  # fmt: skip


_FARTHEST = 10**8  # days that lead from every date beyond the years 1 to 9999


def _of_days(part: Callable[[date], int], most: int) -> Callable[[Interval], Interval]:
    """The bounds of a part of the days between two: 1 to `most` where there is a year of them."""

    def bounds(days: Interval) -> Interval:
        low, high = (int(min(max(end, FIRST_DAY), LAST_DAY)) for end in days)
        if high - low >= 366:
            return 1.0, float(most)
        values = [float(part(moment_of(DATE, day))) for day in range(low, high + 1)]
        return min(values), max(values)

    return bounds


def _years(days: Interval, year: Callable[[date], int] = lambda day: day.year) -> Interval:
    low, high = (int(min(max(end, FIRST_DAY), LAST_DAY)) for end in days)
    return float(year(moment_of(DATE, low))), float(year(moment_of(DATE, high)))


def _between(low: float, high: float) -> Callable[..., Interval]:
    return lambda *_: (low, high)


def _shifted(day: date, many: float) -> date | None:
    number = number_of(day) + math.floor(many)
    return moment_of(DATE, number) if FIRST_DAY <= number <= LAST_DAY else None


def _shifted_time(time: datetime, many: float) -> date | None:
    number = float(number_of(time)) + float(round(many * DAY) if abs(many) < 1e8 else math.copysign(1e300, many))
    if not FIRST_TIME <= number <= LAST_TIME:
        return None
    return moment_of(TIME, moments.rounded_time(int(number)))


def start_of(moment: date, unit: str) -> date:
    kind = moments.kind_of_moment(moment)
    return moment_of(kind, patterns.truncated(kind, number_of(moment), unit))


def _days(kind: str) -> Callable[..., Interval]:
    """The bounds of a moment that was moved by so many days."""
    unit, first, last = (1, FIRST_DAY, LAST_DAY) if kind == DATE else (DAY, FIRST_TIME, LAST_TIME)

    def bounds(moment: Interval, many: Interval) -> Interval:
        few, most = (max(-_FARTHEST, min(_FARTHEST, end)) for end in many)
        low, high = moment[0] + math.floor(few * unit), moment[1] + math.ceil(most * unit)
        return max(min(low, last), first), min(max(high, first), last)  # of none at all, an end of the calendar

    return bounds


def _truncations(kind: str) -> Callable[[Interval, str], Interval]:
    def bounds(moment: Interval, unit: str) -> Interval:
        low, high = (patterns.truncated(kind, int(end), unit) for end in moment)
        return low, high

    return bounds


def _apart(unit: float) -> Callable[[Interval, Interval], Interval]:
    return lambda x, y: ((x[0] - y[1]) / unit, (x[1] - y[0]) / unit)


def _in_zone(time: datetime, name: str) -> date | None:
    micros = number_of(time)
    ahead = zone_of(name).ahead(micros)
    return None if ahead is None or micros + ahead < FIRST_TIME else moment_of(TIME, micros + ahead)


def _zone_bounds(time: Interval, name: str) -> Interval:
    zone: moments.Zone = zone_of(name)
    low, high = time[0] + min(zone.offsets), min(time[1], zone.end) + max(zone.offsets)
    return max(low, FIRST_TIME), max(high, FIRST_TIME)


def _like_numbers(name: str, kind: str, value: Callable[..., object]) -> Function:
    """An operation on numbers, of dates or times, which are compared by the numbers that stand for them."""
    numbers = next(operation for operation in NUMBERS if operation.name == name)
    return _function(f"{name} {kind}", numbers.bounds, value=value, rises=True)


def _of_day(name: str, part: Callable[[date], int], most: int, about: str) -> Function:
    """A part of a date, a whole number from 1 to `most`."""
    return _function(name, _of_days(part, most), value=lambda day: float(part(day)), about=about)


MOMENTS = (
    _function("year", _years, value=lambda day: float(day.year), about="The year of a date or time."),
    _of_day("quarter", lambda day: (day.month + 2) // 3, 4, "The quarter of the year, 1 to 4, of a date or time."),
    _of_day("month", lambda day: day.month, 12, "The month, 1 to 12, of a date or time."),
    _of_day("week", lambda day: day.isocalendar().week, 53,
            "The week of the year, 1 to 53, of a date or time, as ISO counts them."),
    _of_day("day", lambda day: day.day, 31, "The day of the month, 1 to 31, of a date or time."),
    _of_day("weekday", lambda day: day.isoweekday(), 7,
            "The day of the week of a date or time, 1 for Monday to 7 for Sunday."),
    _of_day("day_of_year", lambda day: day.timetuple().tm_yday, 366,
            "The day of the year, 1 to 366, of a date or time."),
    _function("week_year", lambda days: _years(days, lambda day: day.isocalendar().year),
              value=lambda day: float(day.isocalendar().year),
              about="The year to which the week of a date or time belongs, as ISO counts them."),
    _function("hour", _between(0, 23), value=lambda time: float(time.hour), about="The hour, 0 to 23, of a time."),
    _function("minute", _between(0, 59), value=lambda time: float(time.minute),
              about="The minute, 0 to 59, of a time."),
    _function("second", _between(0, 59), value=lambda time: float(time.second),
              about="The whole second, 0 to 59, of a time."),
    _function("date", lambda time: (time[0] // DAY, time[1] // DAY), value=lambda time: time.date(),
              signature="value, format = none", optional=1,
              about='The date of a time, or the one that a text spells: as ISO, or as "%d/%m/%Y".'),
    _function("time", lambda day: (day[0] * DAY, day[1] * DAY),
              value=lambda day: datetime(day.year, day.month, day.day), signature="value, format = none", optional=1,
              about='The beginning of a date, or the time that a text spells: as ISO, or as "%I:%M %p".'),
    _function("date of text", value=lambda text: patterns.read_moment(text, DATE)),
    _function("time of text", value=lambda text: patterns.read_moment(text, TIME)),
    *(_function(f"{kind} by format", value=lambda text, form, kind=kind: patterns.as_iso(text, form, kind),
                 check=partial(patterns.parse_format, kind=kind))
      for kind in (DATE, TIME)),
    _function("in_zone", _zone_bounds, value=_in_zone, signature="value, zone",
              about='What a clock in a zone, "Europe/Berlin", shows at a time of UTC, up to the year 2099.'),
    _function("trunc", _truncations(DATE), value=start_of, signature="value, unit",
              about='The first day or moment of the "year", "quarter", "month", "week", … of a date or time.'),
    _function("trunc time", _truncations(TIME), value=start_of),
    _function("shift", _days(DATE), value=_shifted),
    _function("shift time", _days(TIME), value=_shifted_time),
    _function("apart", _apart(1), value=lambda x, y: float((x - y).days)),
    _function("time apart", _apart(DAY),
              value=lambda x, y: (float(number_of(x)) - float(number_of(y))) / DAY),
    _function("days_between", lambda x, y: _apart(1)(y, x),
              value=lambda x, y: float((y - x).days), signature="first, last",
              about="How many days the second date is after the first."),
    _function("seconds_between", lambda x, y: _apart(10**6)(y, x),
              value=lambda x, y: (float(number_of(y)) - float(number_of(x))) / 1e6, signature="first, last",
              about="How many seconds the second time is after the first."),
    *(_like_numbers(name, kind, value) for kind in (DATE, TIME)
      for name, value in (("clamp", lambda at, low, high: max(low, min(high, at))), ("min", min), ("max", max))),
)  # fmt: skip


# All of them ------------------------------------------------------------------------------------

FOLDS = ("max", "min", "sum", "argmax", "argmin")
"""What may stand before `over`."""

OPERATIONS = {operation.name: operation for operation in (*NUMBERS, *TEXTS, *MOMENTS, *ABSENCE)}
ROW_FUNCTIONS = {name: operation for name, operation in OPERATIONS.items() if operation.about}
"""Those that a program calls by name."""
PARTS = frozenset(op.name for op in MOMENTS if op.gives == NUMBER and len(op.kinds) == 1 and "year" not in op.name[-4:])
"""Parts of dates and times that have few values, whatever the date is."""
OVERLOADS: dict[tuple[str | None, ...], str] = {
    ("+", TEXT, TEXT): "concat",
    ("+", DATE, NUMBER): "shift",
    ("+", TIME, NUMBER): "shift time",
    ("-", DATE, DATE): "apart",
    ("-", TIME, TIME): "time apart",
    ("trunc", TIME, TEXT): "trunc time",
    ("date", TEXT): "date of text",
    ("time", TEXT): "time of text",
    **{
        (name, *(kind,) * many): f"{name} {kind}"
        for name, many in (("clamp", 3), ("min", 2), ("max", 2))
        for kind in (DATE, TIME)
    },
}
"""Operations that a program spells with the name of another one, by the kinds of their operands."""
