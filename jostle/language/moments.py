"""Days and times as whole numbers: days since 1 January 1970, microseconds since its beginning.

Dates are those of the Gregorian calendar, also before it was made, in the years 1 to 9999; times have no zone. Of times
outside the years 1685 to 2254, whose microseconds a double does not hold, seconds are kept.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

Moment = date  # a time is a `datetime`, which Python takes for a date too

FIRST_DAY, LAST_DAY = -719_162, 2_932_896
DAY = 86_400_000_000
FIRST_TIME, LAST_TIME = FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1_000_000
EXACT = 2**53
DAYS = ("year", "quarter", "month", "week", "day")
"""The units that a date can be taken down to."""
SPANS = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
"""Those that a time can be taken down to as well, in microseconds."""

_BLANK = "[ \t]*"
_DATE = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
_TIME = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]+)?)?"
OFFSET = "[+-][0-9][0-9]:[0-5][0-9]"
"""How far the clock of a text is ahead of UTC."""
TEXT = f"^{_BLANK}{_DATE}([T ]{_TIME}(Z|{OFFSET})?)?{_BLANK}$"
"""How dates and times are written in texts, as a pattern of SQL and of Python alike."""
BARE = f"^{_DATE}([T ]{_TIME})?$"
"""How most of them are: without blanks and offset."""

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
    offset such as `+02:00`, by which it is taken back to UTC."""
    if not re.fullmatch(TEXT[1:-1], text):
        return None
    bare, ahead = text.strip(" \t"), 0
    if re.search(f"{OFFSET}$", bare):
        ahead = (1 if bare[-6] == "+" else -1) * (int(bare[-5:-3]) * 60 + int(bare[-2:])) * 60_000_000
        bare = bare[:-6]
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


def truncated(kind: str, number: int, unit: str) -> int:
    """The first day or microsecond of the year, quarter, month, week (from Monday), day, … that a moment lies in."""
    if unit in SPANS:
        return number // SPANS[unit] * SPANS[unit]
    if kind == "time":
        return truncated("date", number // DAY, unit) * DAY
    if unit == "week":
        return number - (number - FIRST_DAY) % 7  # the first of January of the year 1 was a Monday
    day = moment_of("date", number)
    months = {"year": 1, "quarter": day.month - (day.month - 1) % 3, "month": day.month}
    return number if unit == "day" else number_of(day.replace(month=months[unit], day=1))


def starts(kind: str, low: int, high: int, unit: str) -> list[int]:
    """The first moments of all units that overlap with low to high, in order."""
    at, found = truncated(kind, low, unit), []
    step = SPANS.get(unit) or (1 if kind == "date" else DAY)
    reach = {"year": 366, "quarter": 92, "month": 31, "week": 7}.get(unit, 1)
    while at <= high:
        found.append(at)
        at = truncated(kind, at + step * reach, unit)
    return found
