"""The exact answers to the programs of dates, times and what is made of texts."""

from __future__ import annotations

import itertools
from typing import Any

import pandas as pd
from answers import Groups, InDays, Moment, Near, Noisy, Rank, kept, ratio

Frames = dict[str, pd.DataFrame]
EPOCH = pd.Timestamp(1970, 1, 1)
CLOCK = "%I:%M:%S %p"


def days_of(dates: Any) -> Any:
    """Days since 1970 of texts or dates, in a series."""
    return (pd.to_datetime(dates) - EPOCH).dt.days


def _months(year: int) -> pd.DatetimeIndex:
    return pd.date_range(f"{year}-01-01", periods=12, freq="MS")


def opendp_calendar(frames: Frames) -> dict[str, Any]:
    survey = frames["labour"]
    date = pd.to_datetime(survey.date)
    months = date[date.dt.year == 2019].dt.to_period("M").dt.to_timestamp()
    jobs = survey.job.str.strip()
    named = survey.year.astype(str) + "-" + survey.quarter.astype(str)
    quarters = [f"{year}-{quarter}" for year in (2018, 2019, 2020) for quarter in range(1, 5)]
    statuses = survey.status.replace("unemployed", "idle")
    hours = survey.hours.clip(0, 98).groupby(named).sum()
    steps = sum((survey.age >= edge).astype(int) for edge in (25, 35, 50, 65))
    part = (date.dt.day <= 10).map({True: "begin", False: "end"})
    return {
        "weeks": Groups(("week",), {"n": Noisy(date.dt.isocalendar().week.value_counts(), 4)}, range(1, 54)),
        "months": Groups(("date",), {"n": Noisy(months.value_counts(), 4)}, _months(2019)),
        "parts": Groups(("part",), {"n": Noisy(part.value_counts(), 4)}, ["begin", "end"]),
        "old": Noisy(((pd.Timestamp(2020, 12, 31) - date).dt.days > 365).sum(), 4),
        "lengths": Groups(("length",), {"n": Noisy(jobs.str.len().value_counts(), 4)}, range(5, 8)),
        "ea": Noisy(jobs.str.lower().str.contains("ea").sum(), 4),
        "statuses": Groups(("status",), {"n": Noisy(statuses.value_counts(), 4)}, ["idle", "employed"]),
        "extra": Noisy((survey.hours - 40).clip(0, 58).sum(), 4 * 58),
        "named": Groups(("quarter",), {"hours": Noisy(hours, 4 * 98)}, quarters),
        "middle": InDays(Rank(days_of(survey.date), 0.5, 4, 4)),
        "steps": Groups(("step",), {"n": Noisy(steps.value_counts(), 4)}, range(5)),
    }


def tumult_dates(frames: Frames) -> dict[str, Any]:
    members = frames["members"]
    joined = days_of(members.joined)
    low, high = (int((pd.Timestamp(day) - EPOCH).days) for day in ("2015-01-01", "2023-12-31"))
    day = pd.to_datetime(members.joined)
    months = day[day.dt.year == 2020].dt.to_period("M").dt.to_timestamp()
    bins = members.borrowed.map(lambda many: "few" if many <= 10 else "some" if many <= 20 else "many")
    zips = members.zip.value_counts()
    assert all(abs(n - 376) > 14 for n in zips)
    surely = [zip for zip, n in zips.items() if n > 376 + 23]
    readers = members.genres.fillna("").str.contains("Fantasy|History").sum()
    share = ratio(readers, len(members), 23, 23)
    average = Moment("avg", joined.groupby(members.gender), low, high, 1, 4)
    letters = members.borrowed.groupby(members.name.str[0].str.lower()).sum()
    return {
        "half": InDays(Rank(joined, 0.5, 1, 2)),
        "average": Groups(("gender",), {"day": InDays(average, 1)}, ["female", "male"]),
        "membership": Moment("avg", int((pd.Timestamp(2024, 1, 1) - EPOCH).days) - joined, 1, 3287, 1, 2),
        "months": Groups(("joined",), {"n": Noisy(months.value_counts(), 1)}, _months(2020)),
        "bins": Groups(("bin",), {"n": Noisy(bins.value_counts(), 1)}, ["few", "some", "many"]),
        "zips": Groups(("zip",), {"n": Noisy(zips, 1)}, surely=surely),
        "readers": Noisy(readers, 1),
        "share": Near(100 * share.exact, 100 * share.width),
        "letters": Groups(("letter",), {"books": Noisy(letters, 60)}, ["a", "b", "c"]),
    }


def pipelinedp_clock(frames: Frames) -> dict[str, Any]:
    visits = frames["visits"]
    at = pd.to_datetime(visits.entered, format=CLOCK)
    half = (at.dt.hour < 12).map({True: "before noon", False: "after noon"})
    firsts = at.dt.hour.groupby(visits.visitor).min().value_counts()
    days = visits.assign(day=visits.day.astype(str))
    return {
        "halves": Groups(("half",), {"n": Noisy(half.value_counts(), 6)}, ["before noon", "after noon"]),
        "vector": {
            "minutes": Noisy(visits.minutes.clip(0, 120).sum(), 6 * 120),
            "euros": Noisy(visits.euros.clip(0, 60).sum(), 6 * 60),
        },
        "days": Groups(("day",), {"n": kept(days, "visitor", ["day"], 6, 1, 6)}, [str(day) for day in range(1, 8)]),
        "early": Noisy((at.dt.minute < 30).sum(), 6),
        "noon": Rank(60 * at.dt.hour + at.dt.minute, 0.5, 6, 6),
        "birds": Noisy(visits.visitor[at.dt.hour < 11].nunique(), 1),
        "firsts": Groups(("first",), {"n": Noisy(firsts, 1)}, range(9, 21)),
    }


def chorus_cohorts(frames: Frames) -> dict[str, Any]:
    views = frames["views"].assign(seen=pd.to_datetime(frames["views"].seen))
    by = views.groupby("viewer").seen
    first, last, many = by.min(), by.max(), by.size()
    quarters = pd.date_range("2003-01-01", periods=12, freq="QS")
    cohort = first.dt.to_period("Q").dt.to_timestamp().value_counts()
    years = pd.DataFrame({"joined": first.dt.year, "left_in": last.dt.year}).value_counts()
    pairs = list(itertools.product(range(2003, 2006), repeat=2))
    weekend = views[views.seen.dt.isocalendar().day > 5].seen.dt.year.value_counts()
    opening = views.sort_values("seen", kind="stable")
    ends = [opening.groupby(["viewer", "seen"]).stars.agg(how).groupby("viewer").first() for how in ("min", "max")]
    month = views.seen.dt.month.value_counts()
    off = 23 * 2 / 2 / len(first) * 4
    return {
        "cohorts": Groups(("quarter",), {"n": Noisy(cohort, 1)}, quarters),
        "retention": Groups(("joined", "left_in"), {"n": Noisy(years, 1)}, pairs),
        "span": Rank((last - first).dt.days[many > 1], 0.5, 1, 2),
        "start": InDays(Rank(days_of(first), 0.5, 1, 2)),
        "loyal": Noisy(((many >= 3) & (last >= "2005-01-01")).sum(), 1),
        "weekends": Groups(("year",), {"n": Noisy(weekend, 8)}, range(2003, 2006)),
        "top": Groups(("month",), {"n": Noisy(month, 2)}, order="n"),
        "opening": Near(sum(end.mean() for end in ends) / 2, (ends[1] - ends[0]).mean() / 2 + off),
    }


def zetasql_clock(frames: Frames) -> dict[str, Any]:
    visits, survey = frames["visits"], frames["labour"]
    at = pd.to_datetime(visits.entered, format=CLOCK)
    york = (at.dt.hour - 5).value_counts()  # in January
    noon = visits[at.dt.hour == 12].euros.clip(0, 60).groupby(at.dt.minute // 15).sum()
    date = pd.to_datetime(survey.date)
    days = days_of(survey.date)
    months = date[date.dt.year == 2018].dt.to_period("M").dt.to_timestamp().value_counts()
    hours = survey.hours.clip(0, 98)
    n, off = len(hours), 23 * 4 * 2 / 8
    width = 2 * off * (49 + abs(hours.mean() - 49)) / (n - off)
    return {
        "york": Groups(("hour",), {"n": Noisy(york, 6)}, range(4, 17)),
        "quarters": Groups(("quarter",), {"euros": Noisy(noon, 6 * 60)}, range(4)),
        "days": {"first": InDays(Rank(days, 0.0, 4, 4)), "last": InDays(Rank(days, 1.0, 4, 4))},
        "months": Groups(("month",), {"n": Noisy(months, 4)}, _months(2018)),
        "late": Groups(("sex",), {"day": InDays(Rank(days.groupby(survey.sex), 0.9, 4, 8))}, [1, 2]),
        "between": [Near(hours.mean(), width)] * 2,
    }
