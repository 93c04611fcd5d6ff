"""Days and times as whole numbers: days since 1 January 1970, microseconds since its beginning.

Dates are those of the Gregorian calendar, also before it was made, in the years 1 to 9999; times have no zone. Of times
outside the years 1685 to 2254, whose microseconds a double does not hold, seconds are kept.

*Zones* are tables of their transitions for the years 1800 to 2099, from what Python knows of them (the operating
system's or the package `tzdata`), which every engine reads alike. A zone's later rules are not known.
"""

from __future__ import annotations

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


def days_in(unit: str) -> int:
    """How many days `week` and `10 days` have; 0 of other units."""
    many, _, rest = unit.partition(" ")
    return 7 if unit == "week" else int(many) if rest == "days" and many.isdecimal() else 0


PLACES = {"Y": "year", "y": "year", "m": "month", "b": "month", "B": "month", "d": "day", "H": "hour", "I": "hour",
           "M": "minute", "S": "second", "f": "fraction", "p": "half"}  # fmt: skip
"""The parts of a format, by its letters: year and so on."""
INITIALS = "janfebmaraprmayjunjulaugsepoctnovdec"

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
