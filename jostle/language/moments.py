"""Days and times as whole numbers: days since 1 January 1970, microseconds since its beginning.

Dates are those of the Gregorian calendar, also before it was made, in the years 1 to 9999; times have no zone. Of times
outside the years 1685 to 2254, whose microseconds a double does not hold, seconds are kept.

*Formats* are a small part of what strptime reads: `%Y %m %d %H %I %M %S %p %y %b %B %f %%`, blanks for any number of
them, all else for itself. Numbers may lack their first zero, `%y` is a year from 1969 to 2068, `%b` and `%B` are
English names, and a time without a day is one of 1 January 1970. A text is rewritten as ISO writes it, so that nothing
else knows of formats.

*Zones* are tables of their transitions for the years 1800 to 2099, from what Python knows of them (the operating
system's or the package `tzdata`), which every engine reads alike. A zone's later rules are not known.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from msgspec import Struct

from jostle.diagnostics import did_you_mean

Moment = date  # a time is a `datetime`, which Python takes for a date too

FIRST_DAY, LAST_DAY = -719_162, 2_932_896
DAY = 86_400_000_000
FIRST_TIME, LAST_TIME = FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1_000_000
EXACT = 2**53
DAYS = ("year", "quarter", "month", "week", "day")
"""The units that a date can be taken down to."""
PERIOD = "period"  # the column that says in which period of the calendar a row is
SPANS = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
"""Those that a time can be taken down to as well, in microseconds."""

_BLANK = "[ \t]*"
_DATE = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
_TIME = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]+)?)?"
OFFSET = "[+-][0-9][0-9](:?[0-5][0-9])?"  # how far the clock of a text is ahead of UTC
AHEAD = f":[0-5][0-9]([.][0-9]+)?({OFFSET})"  # the end of a text with an offset, which is the second group
TEXT = f"^{_BLANK}{_DATE}([T ]{_TIME}(Z|{OFFSET})?)?{_BLANK}$"
"""How dates and times are written in texts, as a pattern of SQL and of Python alike."""
BARE = f"^{_DATE}([T ]{_TIME})?$"  # how most of them are: without blanks and offset

_EPOCH_DAY, _EPOCH = date(1970, 1, 1), datetime(1970, 1, 1)


def kind_of_moment(value: Moment) -> str:
    return "time" if isinstance(value, datetime) else "date"


def number_of(value: Moment) -> int:
    """The whole number that stands for a date or a time."""
    if not isinstance(value, datetime):
        return (value - _EPOCH_DAY).days
    return rounded_time((value.replace(tzinfo=None) - _EPOCH) // timedelta(microseconds=1))


def rounded_time(number: int) -> int:
    """Microseconds that a double holds."""
    return number if abs(number) <= EXACT else number // 1_000_000 * 1_000_000


def moment_of(kind: str, number: float) -> Moment:
    """The date or the time that a number stands for."""
    if kind == "date":
        return _EPOCH_DAY + timedelta(days=int(number))
    return _EPOCH + timedelta(microseconds=int(number))


def read(text: str, kind: str) -> Moment | None:
    """The date or time that a text spells: `2024-03-01`, with `T12:30:00.5` or ` 12:30` after it, and a `Z`, or an
    offset such as `+02:00`, `+0200` or `+02`, by which it is taken back to UTC."""
    if not re.fullmatch(TEXT[1:-1], text):
        return None
    bare, ahead = text.strip(" \t"), 0
    if offset := re.search(f"{AHEAD}$", bare):
        many = int(offset[2][1:3]) * 60 + int(offset[2][3:].strip(":") or 0)
        ahead = many * (60_000_000 if offset[2][0] == "+" else -60_000_000)
        bare = bare[: offset.start(2)]
    day, _, rest = bare.rstrip("Z").replace("T", " ").partition(" ")
    try:
        read_day = date.fromisoformat(day)
    except ValueError:
        return None
    hours, minutes, seconds, *_ = [*(rest or "0:0").split(":"), "0"]
    whole, _, fraction = seconds.partition(".")
    clock = (int(hours) * 60 + int(minutes)) * 60 + int(whole)
    micros = number_of(read_day) * DAY + clock * 1_000_000 + int((fraction + "000000")[:6]) - ahead
    if not FIRST_TIME <= micros < LAST_TIME + 1_000_000:
        return None
    return moment_of(kind, micros // DAY if kind == "date" else rounded_time(micros))


def days_in(unit: str) -> int:
    """How many days `week` and `10 days` have; 0 of other units."""
    many, _, rest = unit.partition(" ")
    return 7 if unit == "week" else int(many) if rest == "days" and many.isdecimal() else 0


def truncated(kind: str, number: int, unit: str) -> int:
    """The first day or microsecond of the year, quarter, month, week (from Monday), `9 days`, … a moment lies in."""
    if unit in SPANS:
        return number // SPANS[unit] * SPANS[unit]
    if kind == "time":
        return truncated("date", number // DAY, unit) * DAY
    if days := days_in(unit):
        return number - (number - FIRST_DAY) % days  # the year 1 began with a Monday
    day = moment_of("date", number)
    months = {"year": 1, "quarter": day.month - (day.month - 1) % 3, "month": day.month}
    return number if unit == "day" else number_of(day.replace(month=months[unit], day=1))


def starts(kind: str, low: int, high: int, unit: str) -> list[int]:
    """The first moments of all units that overlap with low to high, in order."""
    at, places = truncated(kind, low, unit), []
    step = SPANS.get(unit) or (1 if kind == "date" else DAY)
    reach = {"year": 366, "quarter": 92, "month": 31}.get(unit) or days_in(unit) or 1
    while at <= high:
        places.append(at)
        at = truncated(kind, at + step * reach, unit)
    return places


MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
          "november", "december")  # fmt: skip
_NUMBERS = {  # of two digits first: whether an engine takes the first that fits or the longest, it takes the same
    "Y": "[0-9]{4}", "y": "[0-9]{2}", "m": "1[0-2]|0?[1-9]", "d": "[12][0-9]|3[01]|0?[1-9]",
    "H": "2[0-3]|[01]?[0-9]", "I": "1[0-2]|0?[1-9]", "M": "[0-5]?[0-9]", "S": "[0-5]?[0-9]", "f": "[0-9]{1,6}",
    "p": "[AaPp][Mm]",
}  # fmt: skip
PLACES = {"Y": "year", "y": "year", "m": "month", "b": "month", "B": "month", "d": "day", "H": "hour", "I": "hour",
           "M": "minute", "S": "second", "f": "fraction", "p": "half"}  # fmt: skip
_BLANKS = "[ \t\\x{A0}\\x{202F}]"
INITIALS = "".join(month[:3] for month in MONTHS)


class Format(Struct, frozen=True):
    """`pattern`: in the syntax of RE2, with a group for each of `fields`, the letters of the format in their order."""

    pattern: str
    fields: tuple[str, ...]


@lru_cache(256)
def parse(text: str, kind: str) -> Format:
    """What a format says; `ValueError` where it is none, or leaves open which date or time (`kind`) is meant."""
    parts, fields = [], []
    for directive, blank, plain in re.findall(r"(%.?)|([ \t]+)|(.)", text, re.DOTALL):
        letter = directive[1:]
        if blank:
            parts.append(f"{_BLANKS}+")
        elif plain or letter == "%":
            parts.append(f"\\x{{{ord(plain or letter):X}}}")
        elif letter in ("b", "B"):
            names = (month[:3] if letter == "b" else month for month in MONTHS)
            parts.append(f"({'|'.join(''.join(f'[{c.upper()}{c}]' for c in name) for name in names)})")
            fields.append(letter)
        elif letter in _NUMBERS:
            parts.append(f"({_NUMBERS[letter]})")
            fields.append(letter)
        else:
            raise ValueError(f"`{directive}` is not known in a format: there are {' '.join(f'%{c}' for c in PLACES)}")
    _check({PLACES[field] for field in fields}, len(fields), fields, kind)
    return Format(f"^{_BLANKS}*{''.join(parts)}{_BLANKS}*$", tuple(fields))


def _check(places: set[str], many: int, fields: list[str], kind: str) -> None:
    if len(places) < many:
        raise ValueError("a format names each part once: the year, month, day, hour, minute, second")
    day = {"year", "month", "day"} & places
    if len(day) < (3 if kind == "date" or day else 0):
        raise ValueError("a format of days has the year, the month and the day, as `%d/%m/%Y`")
    if kind == "time" and not day and "hour" not in places:
        raise ValueError("a format of times has an hour, as `%H:%M`")
    if ("I" in fields) != ("half" in places):
        raise ValueError("hours of half a day come with AM or PM, `%I:%M %p`; `%H` are those of a day")
    for finer, coarser in (("minute", "hour"), ("second", "minute"), ("fraction", "second")):
        if finer in places and coarser not in places:
            raise ValueError(f"a format with the {finer} has the {coarser} too")


def as_iso(text: str, form: str, kind: str) -> str | None:
    """A text as ISO writes it; None where it is not written so. That there is such a day is not looked at."""
    layout = parse(form, kind)
    pattern = re.sub(r"\\x\{([0-9A-F]+)\}", lambda code: re.escape(chr(int(code[1], 16))), layout.pattern)
    match = re.fullmatch(pattern[1:-1], text)
    if match is None:
        return None
    of = {PLACES[field]: _value(field, value) for field, value in zip(layout.fields, match.groups(), strict=True)}
    hour = int(of.get("hour", "0"))
    if "half" in of:
        hour = hour % 12 + (12 if of["half"] == "PM" else 0)
    day = f"{of.get('year', '1970')}-{of.get('month', '01')}-{of.get('day', '01')}"
    clock = f"{hour:02d}:{of.get('minute', '00')}:{of.get('second', '00')}"
    return f"{day} {clock}" + (f".{of['fraction']}" if "fraction" in of else "")


def _value(field: str, text: str) -> str:
    if field == "y":
        return ("19" if text >= "69" else "20") + text
    if field in ("b", "B"):
        return f"{INITIALS.index(text[:3].lower()) // 3 + 1:02d}"
    return text.upper() if field == "p" else text if field in ("Y", "f") else text.zfill(2)


FIRST, LAST = datetime(1800, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
_ZONE_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Zone(Struct, frozen=True):
    """`offsets[i]` microseconds are added to UTC from `starts[i - 1]` on, before `starts[i]`; `end`: none is known."""

    starts: tuple[int, ...]
    offsets: tuple[int, ...]
    end: int

    def ahead(self, micros: int) -> int | None:
        """How far the zone's clock is ahead of UTC, in microseconds."""
        return self.offsets[bisect_right(self.starts, micros)] if micros < self.end else None


@lru_cache(64)
def zone_of(name: str) -> Zone:
    """The table of a zone such as `Europe/Berlin`; `ValueError` where there is none of that name."""
    from zoneinfo import ZoneInfo, available_timezones

    if name not in available_timezones():
        hint = did_you_mean(name, available_timezones())
        raise ValueError(f"there is no time zone `{name}`" + (f": {hint}" if hint else ", as `Europe/Berlin` is one"))
    zone = ZoneInfo(name)

    def offset(second: int) -> int:
        ahead = (_ZONE_EPOCH + timedelta(seconds=second)).astimezone(zone).utcoffset()
        return round(ahead.total_seconds()) if ahead is not None else 0

    first, last = (int((end - _ZONE_EPOCH).total_seconds()) for end in (FIRST, LAST))
    starts, offsets = [], [offset(first)]
    for day in range(first, last, 86_400):
        before, after = day, day + 86_400
        if offset(after) == offsets[-1]:
            continue
        while after - before > 1:
            middle = (before + after) // 2
            before, after = (middle, after) if offset(middle) == offsets[-1] else (before, middle)
        starts.append(after)
        offsets.append(offset(after))
    return Zone(tuple(s * 1_000_000 for s in starts), tuple(o * 1_000_000 for o in offsets), last * 1_000_000)
