"""The table of operations on the values of a row: what a row of it says, and numbers, texts, dates and times.

Everything that any pass needs stands in the row. Operations are total on rows: what has no value is missing there, and
a refusal in a program. All but those on missing values pass them on. Texts are sequences of code points: no engine's
locale or normal form has a say, and what grows a text is none beyond `LONGEST`, so that no row can fill the memory.
Dates and times are integers in rows; what an engine knows of the calendar is tested on every day of 1 to 9999.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, datetime
from enum import Enum
from functools import partial
from typing import Any

from msgspec import Struct

from jostle.language import intervals, moments, patterns
from jostle.language.intervals import Interval
from jostle.language.moments import DAY, FIRST_DAY, FIRST_TIME, LAST_DAY, LAST_TIME, moment_of, number_of, zone_of

NUMBER, TEXT, BOOLEAN, DATE, TIME, ANY = "number", "text", "boolean", "date", "time", "any"
"""The kinds of values in a row; `ANY` is any of them."""


class Whole(Enum):
    """When a result is a whole number."""

    ALWAYS = "always"
    FROM_WHOLE = "where all operands are"
    NEVER = "not known to be"


class Operation(Struct, frozen=True, eq=False):
    """An operation on the values of a row.

    `takes`: the kinds of its operands, numbers where nothing is said; `gives`: the kind of what it gives. The last
    `constants` operands are public constants, which `check` may refuse before anything runs. What it is: for numbers
    `columns`, on columns of doubles, given NumPy first, and in a program `number`, which may raise ValueError or
    OverflowError; for other kinds `value`, on values that are not missing, where None is missing. `bounds`: of numbers
    that it gives for operands within bounds; None where there are none. `rises`: it grows with each operand. `about` is
    for people, and only functions have it: what a program calls by name.
    """

    name: str
    arity: int
    bounds: Callable[..., Interval | None]
    columns: Callable[..., Any] | None = None
    whole: Whole = Whole.NEVER
    number: Callable[..., float] | None = None
    rises: bool = False
    about: str = ""
    signature: str = "value"
    each: bool = False  # a program may apply it to each number of a list
    many: bool = False  # a program may apply it to several numbers, or to a list
    takes: tuple[str, ...] = ()
    gives: str = NUMBER
    constants: int = 0
    optional: int = 0  # further operands that a program may give, which make it another operation
    check: Callable[..., object] | None = None  # raises ValueError with what is wrong
    value: Callable[..., Any] | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its operands."""
        return self.takes or (NUMBER,) * self.arity


def unbounded(*_: object) -> None:
    """No bounds, whatever the operands are."""


NUMBERS = (
    Operation("+", 2, intervals.add, lambda np, x, y: np.add(x, y), whole=Whole.FROM_WHOLE),
    Operation("-", 2, intervals.subtract, lambda np, x, y: np.subtract(x, y), whole=Whole.FROM_WHOLE),
    Operation("*", 2, intervals.multiply, lambda np, x, y: np.multiply(x, y), whole=Whole.FROM_WHOLE),
    Operation("/", 2, intervals.divide, lambda np, x, y: np.divide(x, y)),
    Operation("%", 2, intervals.remainder, lambda np, x, y: _remainder(np, x, y), whole=Whole.FROM_WHOLE),
    Operation("^", 2, intervals.power, lambda np, x, y: np.float_power(x, y)),
    Operation("neg", 1, intervals.negative, lambda np, x: np.negative(x), whole=Whole.FROM_WHOLE),
    Operation("abs", 1, intervals.absolute, lambda np, x: np.abs(x), whole=Whole.FROM_WHOLE, number=abs,
              about="The absolute value, also of each of a list.", each=True),
    Operation("floor", 1, intervals.rounded(math.floor), lambda np, x: np.floor(x), whole=Whole.ALWAYS,
              number=math.floor, rises=True, about="The largest whole number below, also of each of a list.",
              each=True),
    Operation("ceil", 1, intervals.rounded(math.ceil), lambda np, x: np.ceil(x), whole=Whole.ALWAYS,
              number=math.ceil, rises=True, about="The smallest whole number above, also of each of a list.",
              each=True),
    Operation("sqrt", 1, intervals.root, lambda np, x: np.sqrt(x), number=math.sqrt, rises=True,
              about="The square root, also of each of a list.", each=True),
    Operation("log", 1, intervals.logarithm, lambda np, x: np.log(x), number=math.log, rises=True,
              about="The natural logarithm, also of each of a list.", each=True),
    Operation("exp", 1, intervals.exponential, lambda np, x: np.exp(x), number=math.exp, rises=True,
              about="The exponential, also of each of a list.", each=True),
    Operation("round", 1, intervals.rounded(round), lambda np, x: np.rint(x),
              whole=Whole.ALWAYS, number=lambda x, digits=0.0: float(round(x, int(digits))), rises=True,
              about="Rounded to so many digits.", signature="value, digits = 0", optional=1),
    Operation("clamp", 3, intervals.clamped, lambda np, x, low, high: np.maximum(low, np.minimum(high, x)),
              Whole.FROM_WHOLE, number=lambda x, low, high: max(low, min(high, x)), rises=True,
              about="The nearest number between `low` and `high`.", signature="value, low, high"),
    Operation("min", 2, intervals.smaller, lambda np, x, y: np.minimum(x, y), Whole.FROM_WHOLE,
              number=lambda *numbers: min(numbers), rises=True,
              about="The smallest of a list, or of several numbers.", signature="*values", many=True),
    Operation("max", 2, intervals.larger, lambda np, x, y: np.maximum(x, y), Whole.FROM_WHOLE,
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
    Operation("missing", 1, unbounded, takes=(ANY,), gives=BOOLEAN,
              value=lambda value: value is None),
    Operation("coalesce", 1, unbounded, takes=(ANY,), gives=ANY, value=first, signature="value, *others",
              about="The first of several values that is not none."),
)  # fmt: skip


LONGEST = 2**16
"""Code points of a text that was made by joining or replacing."""
FARTHEST = 10**6
"""The last place in a text, or part of one, that can be asked for."""

BLANKS = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
"""The white space of Unicode, which is cut from the ends of texts."""
DECIMAL = r"^[ \t]*[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?[ \t]*$"
EXACT = 2**53
"""Whole numbers up to it have all their digits."""
MOST_PART = 10**9
"""Below it numbers that are not whole have six decimals."""


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
    if value == int(value):
        return str(int(value)) if abs(value) <= EXACT else None
    if abs(value) >= MOST_PART:
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


def _check_part(separator: str, place: float) -> None:
    if not separator:
        raise ValueError("`part` cuts at a text that is not empty")
    _check_place("part", place)


def _check_substring(start: float, count: float) -> None:
    _check_place("substring", start)
    if not (0 <= count <= FARTHEST and float(count).is_integer()):
        raise ValueError(f"`substring` takes a whole number of characters, up to {FARTHEST:,}")


def _check_place(name: str, place: float) -> None:
    if not (1 <= place <= FARTHEST and float(place).is_integer()):
        raise ValueError(f"`{name}` counts whole places from 1, as SQL does, up to {FARTHEST:,}")


def _check_pattern(pattern: str) -> None:
    try:
        patterns.parse(pattern)
    except ValueError as error:
        raise ValueError(f"this is no pattern: {error}") from None


TEXTS = (
    Operation("lower", 1, unbounded, takes=(TEXT,), gives=TEXT, value=lower,
              about="The text with each letter as its small letter."),
    Operation("upper", 1, unbounded, takes=(TEXT,), gives=TEXT, value=upper,
              about="The text with each letter as its capital letter."),
    Operation("trim", 1, unbounded, takes=(TEXT,), gives=TEXT, value=lambda text: text.strip(BLANKS),
              about="The text without blanks at its ends."),
    Operation("length", 1, unbounded, takes=(TEXT,), whole=Whole.ALWAYS, value=lambda text: float(len(text)),
              about="How many characters a text has (Unicode's code points)."),
    Operation("contains", 2, unbounded, takes=(TEXT, TEXT), gives=BOOLEAN, value=lambda text, inside: inside in text,
              signature="value, inside", about="Whether a text stands in another."),
    Operation("starts_with", 2, unbounded, takes=(TEXT, TEXT), gives=BOOLEAN,
              value=lambda text, start: text.startswith(start), signature="value, start",
              about="Whether a text begins with another."),
    Operation("ends_with", 2, unbounded, takes=(TEXT, TEXT), gives=BOOLEAN,
              value=lambda text, end: text.endswith(end), signature="value, end",
              about="Whether a text ends with another."),
    Operation("replace", 3, unbounded, takes=(TEXT, TEXT, TEXT), gives=TEXT, value=replace,
              signature="value, old, new", about="The text with another one in each place where `old` stands."),
    Operation("substring", 2, unbounded, takes=(TEXT, NUMBER), gives=TEXT,
              constants=1, optional=1, check=partial(_check_place, "substring"),
              value=lambda text, start: text[int(start) - 1 :], signature="value, start, count = none",
              about="A text from a place on, the first one is 1; only so many characters with `count`."),
    Operation("substring of count", 3, unbounded, takes=(TEXT, NUMBER, NUMBER), gives=TEXT, constants=2,
              check=_check_substring,
              value=lambda text, start, count: text[int(start) - 1 : int(start) - 1 + int(count)],
              signature="value, start, count"),
    Operation("position", 2, unbounded, takes=(TEXT, TEXT), whole=Whole.ALWAYS,
              value=lambda text, inside: text.find(inside) + 1.0, signature="value, inside",
              about="The place, from 1, at which a text first stands in another; 0 where it does not."),
    Operation("part", 3, unbounded, takes=(TEXT, TEXT, NUMBER), gives=TEXT, constants=2, check=_check_part, value=part,
              signature="value, separator, place",
              about="A part of a text that a separator divides; the first one's place is 1."),
    Operation("matches", 2, unbounded, takes=(TEXT, TEXT), gives=BOOLEAN, constants=1,
              check=_check_pattern, value=patterns.matches, signature="value, pattern",
              about="Whether a pattern matches somewhere in a text: `^` and `$` hold it at the ends."),
    Operation("number", 1, unbounded, takes=(TEXT,), value=number, about="The number that a text spells."),
    Operation("text", 1, unbounded, takes=(NUMBER,), gives=TEXT, value=spelled,
              about="The number as a text, with six decimals at most."),
    Operation("concat", 2, unbounded, takes=(TEXT, TEXT), gives=TEXT, value=joined),
    Operation("pair", 2, unbounded, takes=(ANY, ANY), gives=TEXT, value=pair),
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
    return moment_of(kind, moments.truncated(kind, number_of(moment), unit))


def _check_unit(unit: str, units: tuple[str, ...]) -> None:
    if unit not in units and not moments.days_in(unit):
        raise ValueError(f"`trunc` takes down to one of {', '.join(units)}")


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
        low, high = (moments.truncated(kind, int(end), unit) for end in moment)
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


def _like_numbers(name: str, kind: str, value: Callable[..., object]) -> Operation:
    """An operation on numbers, of dates or times, which are compared by the numbers that stand for them."""
    numbers = next(operation for operation in NUMBERS if operation.name == name)
    return Operation(
        f"{name} {kind}", numbers.arity, numbers.bounds,
        takes=(kind,) * numbers.arity, gives=kind, whole=Whole.ALWAYS, value=value, rises=True,
    )  # fmt: skip


MOMENTS = (
    Operation("year", 1, _years, takes=(DATE,), whole=Whole.ALWAYS,
              value=lambda day: float(day.year), about="The year of a date or time."),
    Operation("quarter", 1, _of_days(lambda day: (day.month + 2) // 3, 4), takes=(DATE,),
              whole=Whole.ALWAYS, value=lambda day: float((day.month + 2) // 3),
              about="The quarter of the year, 1 to 4, of a date or time."),
    Operation("month", 1, _of_days(lambda day: day.month, 12), takes=(DATE,), whole=Whole.ALWAYS,
              value=lambda day: float(day.month), about="The month, 1 to 12, of a date or time."),
    Operation("week", 1, _of_days(lambda day: day.isocalendar().week, 53), takes=(DATE,),
              whole=Whole.ALWAYS, value=lambda day: float(day.isocalendar().week),
              about="The week of the year, 1 to 53, of a date or time, as ISO counts them."),
    Operation("day", 1, _of_days(lambda day: day.day, 31), takes=(DATE,), whole=Whole.ALWAYS,
              value=lambda day: float(day.day), about="The day of the month, 1 to 31, of a date or time."),
    Operation("weekday", 1, _of_days(lambda day: day.isoweekday(), 7), takes=(DATE,),
              whole=Whole.ALWAYS, value=lambda day: float(day.isoweekday()),
              about="The day of the week of a date or time, 1 for Monday to 7 for Sunday."),
    Operation("day_of_year", 1, _of_days(lambda day: day.timetuple().tm_yday, 366), takes=(DATE,),
              whole=Whole.ALWAYS, value=lambda day: float(day.timetuple().tm_yday),
              about="The day of the year, 1 to 366, of a date or time."),
    Operation("week_year", 1, lambda days: _years(days, lambda day: day.isocalendar().year),
              takes=(DATE,), whole=Whole.ALWAYS, value=lambda day: float(day.isocalendar().year),
              about="The year to which the week of a date or time belongs, as ISO counts them."),
    Operation("hour", 1, _between(0, 23), takes=(TIME,),
              whole=Whole.ALWAYS, value=lambda time: float(time.hour), about="The hour, 0 to 23, of a time."),
    Operation("minute", 1, _between(0, 59), takes=(TIME,),
              whole=Whole.ALWAYS, value=lambda time: float(time.minute), about="The minute, 0 to 59, of a time."),
    Operation("second", 1, _between(0, 59), takes=(TIME,),
              whole=Whole.ALWAYS, value=lambda time: float(time.second), about="The whole second, 0 to 59, of a time."),
    Operation("date", 1, lambda time: (time[0] // DAY, time[1] // DAY), takes=(TIME,),
              gives=DATE, whole=Whole.ALWAYS, value=lambda time: time.date(), signature="value, format = none",
              optional=1, about='The date of a time, or the one that a text spells: as ISO, or as "%d/%m/%Y".'),
    Operation("time", 1, lambda day: (day[0] * DAY, day[1] * DAY), takes=(DATE,), gives=TIME,
              whole=Whole.ALWAYS, value=lambda day: datetime(day.year, day.month, day.day), optional=1,
              signature="value, format = none",
              about='The beginning of a date, or the time that a text spells: as ISO, or as "%I:%M %p".'),
    Operation("date of text", 1, unbounded, takes=(TEXT,), gives=DATE,
              whole=Whole.ALWAYS, value=lambda text: moments.read(text, DATE)),
    Operation("time of text", 1, unbounded, takes=(TEXT,), gives=TIME,
              whole=Whole.ALWAYS, value=lambda text: moments.read(text, TIME)),
    *(Operation(f"{kind} by format", 2, unbounded, takes=(TEXT, TEXT), gives=TEXT, constants=1,
                check=partial(moments.parse, kind=kind),
                value=lambda text, form, kind=kind: moments.as_iso(text, form, kind)) for kind in (DATE, TIME)),
    Operation("in_zone", 2, _zone_bounds, takes=(TIME, TEXT), gives=TIME,
              constants=1, check=zone_of, whole=Whole.ALWAYS, value=_in_zone,
              signature="value, zone",
              about='What a clock in a zone, "Europe/Berlin", shows at a time of UTC, up to the year 2099.'),
    Operation("trunc", 2, _truncations(DATE), takes=(DATE, TEXT), gives=DATE, constants=1,
              check=lambda unit: _check_unit(unit, moments.DAYS), whole=Whole.ALWAYS, value=start_of,
              signature="value, unit",
              about='The first day or moment of the "year", "quarter", "month", "week", … of a date or time.'),
    Operation("trunc time", 2, _truncations(TIME), takes=(TIME, TEXT), gives=TIME, constants=1,
              check=lambda unit: _check_unit(unit, (*moments.DAYS, *moments.SPANS)), whole=Whole.ALWAYS,
              value=start_of),
    Operation("shift", 2, _days(DATE), takes=(DATE, NUMBER), gives=DATE, whole=Whole.ALWAYS, value=_shifted),
    Operation("shift time", 2, _days(TIME), takes=(TIME, NUMBER), gives=TIME, whole=Whole.ALWAYS, value=_shifted_time),
    Operation("apart", 2, _apart(1), takes=(DATE, DATE), whole=Whole.ALWAYS,
              value=lambda x, y: float((x - y).days)),
    Operation("time apart", 2, _apart(DAY), takes=(TIME, TIME),
              value=lambda x, y: (float(number_of(x)) - float(number_of(y))) / DAY),
    Operation("days_between", 2, lambda x, y: _apart(1)(y, x), takes=(DATE, DATE), whole=Whole.ALWAYS,
              value=lambda x, y: float((y - x).days), signature="first, last",
              about="How many days the second date is after the first."),
    Operation("seconds_between", 2, lambda x, y: _apart(10**6)(y, x), takes=(TIME, TIME),
              value=lambda x, y: (float(number_of(y)) - float(number_of(x))) / 1e6, signature="first, last",
              about="How many seconds the second time is after the first."),
    *(_like_numbers(name, kind, value) for kind in (DATE, TIME)
      for name, value in (("clamp", lambda at, low, high: max(low, min(high, at))), ("min", min), ("max", max))),
)  # fmt: skip


# All of them ------------------------------------------------------------------------------------

COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
LOGIC = frozenset({"and", "or", "not"})
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
