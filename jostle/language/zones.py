"""Time zones as tables of their transitions, which every engine reads alike: what the clock of a zone shows at a time.

The tables are worked out from the zones that Python knows (the operating system's or the package `tzdata`), for the
years 1800 to 2099. Later clocks are not known: a zone's rules change by law.
"""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from msgspec import Struct

from jostle.diagnostics import did_you_mean

FIRST, LAST = datetime(1800, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
_SECOND = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
        ahead = (_EPOCH + timedelta(seconds=second)).astimezone(zone).utcoffset()
        return round(ahead.total_seconds()) if ahead is not None else 0

    first, last = (int((end - _EPOCH).total_seconds()) for end in (FIRST, LAST))
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
    return Zone(tuple(s * _SECOND for s in starts), tuple(o * _SECOND for o in offsets), last * _SECOND)
