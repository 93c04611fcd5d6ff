"""The operations on dates and times, which are whole numbers in rows: days and microseconds since 1 January 1970.

An engine calculates with numbers; what it knows of the calendar is tested on every day of the years 1 to 9999.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime
from functools import partial

from jostle.language import moments
from jostle.language.intervals import Interval
from jostle.language.moments import (
    DAY,
    DAYS,
    FIRST_DAY,
    FIRST_TIME,
    LAST_DAY,
    LAST_TIME,
    SPANS,
    Zone,
    moment_of,
    number_of,
    zone_of,
)
from jostle.language.operations.operation import DATE, NUMBER, NUMBERS, TEXT, TIME, Operation, Whole, unbounded

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


def _truncated(moment: date, unit: str) -> date:
    kind = moments.kind_of_moment(moment)
    return moment_of(kind, moments.truncated(kind, number_of(moment), unit))


def _check_unit(unit: str, units: tuple[str, ...]) -> None:
    if unit not in units:
        raise ValueError(f"`trunc` takes down to one of {', '.join(units)}")


def _time_of(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)


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


def _check_format(kind: str, form: str) -> None:
    moments.parse(form, kind)


def _check_zone(name: str) -> None:
    zone_of(name)


def _in_zone(time: datetime, name: str) -> date | None:
    micros = number_of(time)
    ahead = zone_of(name).ahead(micros)
    return None if ahead is None or micros + ahead < FIRST_TIME else moment_of(TIME, micros + ahead)


def _zone_bounds(time: Interval, name: str) -> Interval:
    zone: Zone = zone_of(name)
    low, high = time[0] + min(zone.offsets), min(time[1], zone.end) + max(zone.offsets)
    return max(low, FIRST_TIME), max(high, FIRST_TIME)


def _like_numbers(name: str, kind: str, value: Callable[..., object]) -> Operation:
    """An operation on numbers, of dates or times, which are compared by the numbers that stand for them."""
    numbers = next(operation for operation in NUMBERS if operation.name == name)
    return Operation(
        f"{name} {kind}", numbers.arity, numbers.bounds,
        takes=(kind,) * numbers.arity, gives=kind, whole=Whole.ALWAYS, value=value, rises=True,
    )  # fmt: skip


def _clamped(moment: date, low: date, high: date) -> date:
    return max(low, min(high, moment))


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
              whole=Whole.ALWAYS, value=_time_of, signature="value, format = none", optional=1,
              about='The beginning of a date, or the time that a text spells: as ISO, or as "%I:%M %p".'),
    Operation("date of text", 1, unbounded, takes=(TEXT,), gives=DATE,
              whole=Whole.ALWAYS, value=lambda text: moments.read(text, DATE)),
    Operation("time of text", 1, unbounded, takes=(TEXT,), gives=TIME,
              whole=Whole.ALWAYS, value=lambda text: moments.read(text, TIME)),
    *(Operation(f"{kind} by format", 2, unbounded, takes=(TEXT, TEXT), gives=TEXT, constants=1,
                check=partial(_check_format, kind),
                value=lambda text, form, kind=kind: moments.as_iso(text, form, kind)) for kind in (DATE, TIME)),
    Operation("in_zone", 2, _zone_bounds, takes=(TIME, TEXT), gives=TIME,
              constants=1, check=_check_zone, whole=Whole.ALWAYS, value=_in_zone,
              signature="value, zone",
              about='What a clock in a zone, "Europe/Berlin", shows at a time of UTC, up to the year 2099.'),
    Operation("trunc", 2, _truncations(DATE), takes=(DATE, TEXT), gives=DATE, constants=1,
              check=lambda unit: _check_unit(unit, DAYS), whole=Whole.ALWAYS, value=_truncated, signature="value, unit",
              about='The first day or moment of the "year", "quarter", "month", "week", … of a date or time.'),
    Operation("trunc time", 2, _truncations(TIME), takes=(TIME, TEXT), gives=TIME, constants=1,
              check=lambda unit: _check_unit(unit, (*DAYS, *SPANS)), whole=Whole.ALWAYS, value=_truncated),
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
      for name, value in (("clamp", _clamped), ("min", min), ("max", max))),
)  # fmt: skip
