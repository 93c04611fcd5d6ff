"""Rows that stand in for private ones are drawn from the described domains, dates and times among them."""

from __future__ import annotations

from datetime import date

from jostle.source import Source
from jostle.tools.session import Session

PROGRAM = """
private t = table("a.csv") described by {day: 2020-01-01..2020-12-31, at: time, since: date,
    b: 2024-01-01T06:00:00..2024-01-01T08:00:00} protecting rows budget epsilon 1e9
private u = table("b.csv") described by {who: text, day: date} protecting who budget epsilon 1e9
private v = table("c.csv") described by {n: 0..5} protecting u.who
days = {{ select count(*) as n from t groupby trunc(day, "quarter") as q with epsilon 1e7 }}
hours = {{ select count(*) as n from t groupby hour(b) as h with epsilon 1e7 }}
known = {{ select count(*) as n from t where since >= 2020-01-01 and year(at) <= 2024 with epsilon 1e7 }}
firsts = {{ select count(*) from u where year(day) > 2000 up to 1 row by day with epsilon 1e7 }}
both = {{ select count(distinct person) from v with epsilon 1e7 }}
"""


def test_dates_and_persons_are_simulated() -> None:
    session = Session(simulate=3)
    session.execute(Source("p.jst", PROGRAM))
    names = session.names()
    assert names["days"].columns["q"] == [date(2020, month, 1) for month in (1, 4, 7, 10)]
    assert min(names["days"].columns["n"]) > 150 and sum(names["days"].columns["n"]) == names["known"] == 1000
    assert names["hours"].columns["n"][:6] == [0] * 6 and sum(names["hours"].columns["n"][6:9]) == 1000
    assert names["firsts"] == names["both"] == 20
