"""A budget for each period of the calendar, beside an amount for ever: what a person loses in each, and in all."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ledger_place import Place, kind

from jostle.accounting.amounts import QUANTA, Meter
from jostle.language.moments import FIRST_DAY, LAST_DAY, number_of
from jostle.language.patterns import starts, truncated
from jostle.plan.digest import plan_digest
from jostle.plan.plan import Apply, Column, Constant, Derive, Listed, Open, Scan
from jostle.privacy.ledger.ledger import Ledger
from jostle.privacy.mechanisms.additive import Linear
from jostle.source import Source
from jostle.tools.data import verify
from jostle.tools.session import Session
from jostle.trace.budget import line

FIRST = date(2026, 1, 5)
WEEKS = [FIRST + timedelta(7 * week) for week in range(6)]
VISITS = 'private visits = dataset("visits")\n'
COUNT = VISITS + "release n = {{{{ select count(*) from visits[period = {}] where day >= {} with rho {} }}}}\n"


def _write(place: Place, until: int, late: int = 0, gap: int = -1) -> None:
    """Rows of the days before `until`, none on the day `gap`, and `late` ones of the first day at the end."""
    days = [FIRST + timedelta(day) for day in range(until) if day != gap]
    rows = [f"{day},{'AB'[k % 2]},u{k}" for day in days for k in range(10)]
    rows += [f"{FIRST},A,u1"] * late + ["not a day,A,u2", ",B,u3"]
    (place.folder / "visits.csv").write_text("\n".join(["day,page,user", *rows]) + "\n")


def _register(place: Place, protecting: str, budget: str, name: str = "visits", day: str = "date") -> tuple[int, str]:
    words = ("--schema", f'{{day: {day}, page: {{"A", "B"}}}}', "--protecting", protecting)
    status, out, said = place.data("register", name, str(place.folder / "visits.csv"), *words, "--budget", budget)
    return status, out + said


@pytest.fixture
def visits(place: Place) -> Place:
    _write(place, 8)
    status, said = _register(place, "user up to 3 rows", "rho 1 each 7 days of day, rho 2 for ever")
    assert status == 0 and "rho 1 each 7 days of day, rho 2 for ever" in said
    return place


def test_each_period_has_the_whole_budget_and_all_have_an_end(visits: Place) -> None:
    """Over versions of the data: a week that is spent is spent for ever, the next is new, and the sum is bounded."""
    runs = [(0, 0.7, "fine"), (0, 0.4, "BudgetExceeded"), (0, 0.3, "fine"), (1, 0.6, "fine"),
            (2, 0.5, "BudgetExceeded"), (2, 0.3, "fine"), (1, 0.2, "BudgetExceeded"), (5, 0.1, "fine"),
            (5, 0.05, "BudgetExceeded")]  # fmt: skip
    for number, (week, amount, wanted) in enumerate(runs):
        assert kind(visits.run(COUNT.format(WEEKS[week], FIRST + timedelta(number), amount))) == wanted, number
        if number == 2:
            _write(visits, 9 + number)
            assert visits.data("update", "visits")[0] == 0
    ledger = Ledger(visits.path)
    assert ledger.dataset("visits").state.spent == (QUANTA, 2 * QUANTA)
    verify(ledger, "visits")
    left = visits.run(VISITS + f"release a = left(visits[period = {WEEKS[0]}])\nrelease c = left(visits)\n")
    assert left.values == {"a": 0, "c": 0}
    told = visits.data("show", "visits")[1]
    assert "rho 1 each 7 days of day, rho 2 for ever" in told and "user each 7 days of day up to 3 rows" in told
    assert [line.split() for line in told.splitlines()[-5:]] == [
        ["2026-01-05", "1", "0"], ["2026-01-12", "0.6", "0"], ["2026-01-19", "0.3", "0"],
        ["2026-02-09", "0.1", "0"], ["for", "ever", "2", "0"],
    ]  # fmt: skip
    assert left.budget == {"visits": {"rho": {"total": "1", "spent": "1", "for_ever": "2", "all_periods": "2"}}}
    assert line("visits", left.budget["visits"]).endswith("ρ 1 of 1 spent, 2 of 2 for ever, 0 left")


def test_a_late_row_does_not_open_a_week_again(visits: Place) -> None:
    """The same data answer again for nothing; where a row came late the question is paid anew, from what is left."""
    program = COUNT.format(WEEKS[0], FIRST, 0.6)
    first, again = visits.run(program), visits.run(program)
    assert first.values == again.values and Ledger(visits.path).dataset("visits").state.spent[1] == 0.6 * QUANTA
    _write(visits, 8, late=50)
    assert kind(visits.run(program)) == "LedgerError" and visits.data("update", "visits")[0] == 0
    assert kind(visits.run(program)) == "BudgetExceeded"
    made = visits.run(COUNT.format(WEEKS[0], FIRST, 0.4))
    assert kind(made) == "fine" and Ledger(visits.path).dataset("visits").state.spent == (QUANTA, QUANTA)


def test_weeks_and_days_without_rows_are_answered_like_others(place: Place) -> None:
    """A gap is no refusal; and rows without a day that can be read are in no week."""
    _write(place, 8, gap=3)
    assert _register(place, "rows", "rho 1000000 each week of day")[0] == 0
    days = f"day over {FIRST}..{FIRST + timedelta(6)}"
    asked = f"select count(*) as n from visits[period = {FIRST}] groupby {days} with rho 900000"
    program = VISITS + f"release g = {{{{ {asked} }}}}\n"
    program += "release all = {{ select count(*) from visits with rho 90000 }}\n"
    program += f"release empty = {{{{ select count(*) from visits[period = {WEEKS[4]}] with rho 900000 }}}}\n"
    made = place.run(program)
    assert made.ok, made.diagnostics
    assert [round(float(n)) for n in made.values["g"].columns["n"]] == [10, 10, 10, 0, 10, 10, 10]
    assert round(float(made.values["all"])) == 72 and round(float(made.values["empty"])) == 0


UNIT = {0: ["A", "A"], 1: ["B"], 6: ["A", "B", "B"], 8: ["A"], 9: ["B", "B", "B", "B"], 13: ["A"]}
"""Of one person what is asked for on each day; that of day 1 arrives in the second week."""
ASKED = VISITS + (
    "w = visits[period = {week}]\n"
    "release a = {{{{ select count(*) as n from w where day <= {day} groupby page {limit} with {unit} 0.1 }}}}\n"
    "release b = {{{{ select count(*) as n from w groupby page,"
    " running(day, until = {day}) over {week}..{last} {order} with {unit} 0.2 }}}}\n"
)
Told = list[tuple[date, Linear, np.ndarray]]


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["rho", "epsilon"])
@pytest.mark.parametrize(
    ("protecting", "limit", "order", "days"),
    [
        ("user", "up to 3 rows", "up to 3 rows by day", {0, 1, 6}),
        ("user", "up to 3 rows", "up to 3 rows by day", {*UNIT}),
        ("user, day up to 2 rows", "", "", {9}),
        ("user, day up to 2 rows", "", "", {1}),
    ],
)
def test_no_history_says_more_of_a_person_than_was_charged(
    place: Place, measured: list[tuple[Linear, np.ndarray]], protecting: str, limit: str, order: str, days: set[int],
    unit: str,
) -> None:  # fmt: skip
    """Brute force: runs on data that grow, with rows of a person and without. What noise lets through of the difference
    is within what the ledger has of that week; of a person in two weeks, in all within what is counted for ever."""
    ever = f", {unit} 99 for ever" if protecting == "user" else ""

    def history(own: set[int]) -> tuple[Told, Ledger]:
        """All that is measured, each with its week."""
        told: Told = []
        place.ledger = place.folder / f"ledger{len(own)}.db"
        for today in (0, 8, 13):
            rows = [(day, page, "u1") for day in own if day <= today and (day != 1 or today >= 8) for page in UNIT[day]]
            rows += [(day, "AB"[k % 2], f"u{k + 2}") for day in range(today + 1) for k in range(3)]
            lines = [f"{FIRST + timedelta(day)},{page},{user}" for day, page, user in rows]
            (place.folder / "visits.csv").write_text("\n".join(["day,page,user", *lines]) + "\n")
            if today == 0:
                assert _register(place, protecting, f"{unit} 20 each week of day{ever}")[0] == 0
            else:
                assert place.data("update", "visits")[0] == 0
            for first in WEEKS[: today // 7 + 1]:  # the first week is asked again in the second
                measured.clear()
                last = first + timedelta(6)
                words = {"week": first, "last": last, "day": min(FIRST + timedelta(today), last)}
                made = place.run(ASKED.format(**words, limit=limit, order=order, unit=unit))
                assert made.ok, made.diagnostics
                told += [(first, linear, exact) for linear, exact in measured]
        return told, Ledger(place.ledger)

    (without, _), (there, ledger) = history(set()), history(days)
    through: dict[date, float] = {}
    for (week, linear, exact), (_, _, other) in zip(there, without, strict=True):
        moved = np.abs(exact - other)
        root = np.sqrt((moved**2).sum()) * linear.strength / linear.l2
        lost = root**2 / 2 if unit == "rho" else moved.sum() * linear.strength / linear.l1
        through[week] = through.get(week, 0) + lost
    charged: dict[date, float] = {}
    for entry in ledger.history("visits"):
        if cost := entry.content.get("cost"):
            week = date.fromisoformat(entry.content["part"][0])
            charged[week] = charged.get(week, 0) + cost[0] / QUANTA
    assert any(through.values()) and all(through[week] <= charged[week] * (1 + 1e-9) for week in through)
    assert all(lost == 0 for week, lost in through.items() if not any(FIRST + timedelta(d) >= week for d in days))
    if ever:
        total = ledger.dataset("visits").state.spent
        assert total == (round(max(charged.values()) * QUANTA), round(sum(charged.values()) * QUANTA))
    verify(ledger, "visits")


def test_what_adds_up_over_parts_adds_up() -> None:
    """A tree with a place that adds up, against sums by hand: charges on parts, on parts of these, and on all."""
    draw = random.Random(3)
    for _ in range(50):
        meter, most, all_of_it = Meter(2, lambda total: True, 1), {}, [0, 0]
        for _ in range(30):
            path = draw.choice([(), (("period", 1),), (("period", 2),), (("period", 2), ("page", "A"))])
            cost, before = (draw.randrange(9), draw.randrange(9)), meter.spent
            wanted = meter.after(path, cost)
            meter.add(path, cost)
            assert meter.spent == wanted and wanted[1] == before[1] + cost[1]
            all_of_it[0] += cost[0] * (not path)
            if path:
                key = (path[0][1], len(path))
                most[key] = most.get(key, 0) + cost[0]
            weeks = [most.get((week, 1), 0) + most.get((week, 2), 0) for week in (1, 2)]
            assert meter.spent[0] == all_of_it[0] + max(weeks)


@pytest.mark.parametrize(
    ("protecting", "budget", "day", "said"),
    [
        ("user up to 3 rows", "rho 1 each fortnight of day", "date", "there is no period `fortnight`"),
        ("user up to 3 rows", "rho 1 each 0 days of day", "date", "there is no period `0 days`"),
        ("user up to 3 rows", "rho 1 each week of page", "date", "periods are of a column of dates"),
        ("user up to 3 rows", "rho 1 each week of other", "date", "`other` is not described"),
        ("rows, public size", "rho 1 each week of day", "date", "may be in another period"),
        ("user up to 3 rows", "rho 1 each week of day", "from 2026-01-01 to 2026-12-31 by month", "in two of them"),
        ("user up to 3 rows", "rho 1 each 10 days of day", "from 2026-01-05 to 2026-12-28 by week", "in two of them"),
        ("rows", "rho 1 each week of day, rho 9 for ever", "date", "is of persons"),
        ("user, day up to 3 rows", "rho 1 each week of day, rho 9 for ever", "date", "is of persons"),
        ("user up to 3 rows", "rho 1 each week of day, epsilon 9 for ever", "date", "in the unit of the other"),
        ("user up to 3 rows", "epsilon 1, delta 1e-6 each week of day, epsilon 9 for ever", "date", "has no delta"),
        ("user up to 3 rows", "rho 1 each week of day, rho 9 for ever", "text", "periods are of a column of dates"),
    ],
)  # fmt: skip
def test_what_is_no_period_is_refused(place: Place, protecting: str, budget: str, day: str, said: str) -> None:
    _write(place, 8)
    status, told = _register(place, protecting, budget, "others", day)
    assert status == 1 and said in told, told


def test_what_is_asked_of_all_periods_counts_in_each(place: Place) -> None:
    """Without an amount for ever; with one it is refused, before anything runs."""
    _write(place, 20)
    assert _register(place, "user up to 3 rows", "rho 1 each 7 days of day")[0] == 0
    assert place.run(VISITS + "release n = {{ select count(*) from visits with rho 0.4 }}\n").ok
    assert kind(place.run(COUNT.format(WEEKS[0], FIRST, 0.7))) == "BudgetExceeded"
    assert kind(place.run(COUNT.format(WEEKS[0], FIRST, 0.6))) == kind(place.run(COUNT.format(WEEKS[1], FIRST, 0.6)))
    assert Ledger(place.path).dataset("visits").state.spent == (QUANTA,)
    source = f'table("{place.folder}/visits.csv") described by {{day: date}} protecting user'
    source += " budget rho 1 each week of day"
    asked = "{{ select count(*) from t up to 3 rows with rho 0.1 }}"
    place.ledger = place.folder / "none.db"
    made = place.run(f"private t = {source}, rho 3 for ever\nprint(1)\nrelease n = {asked}\n")
    assert kind(made) == "UnboundedSum" and "in its periods" in str(made.diagnostics[0])
    assert not any(event.kind == "print" for event in made.events)
    wrong = place.run(f"private t = {source}\nn = t[period = 2026-01-06]\n")
    assert kind(wrong) == "ValueError" and "that is in 2026-01-05" in str(wrong.diagnostics[0])


WAYS = {
    "groupby period over from 2026-01-05 to 2026-03-04 by day": 9,
    "groupby trunc(period, 'day') as w over from 2026-01-05 to 2026-03-04 by day": 9,
    "groupby trunc(day, 'month') as w over from 2026-01-05 to 2026-02-04 by day": 2,
    "groupby trunc(trunc(day, 'year'), 'month') as w over from 2026-01-05 to 2026-02-04 by month": 1,
    "groupby period over [2026-01-05, 2026-01-14]": "that is in 2026-01-12",
    "groupby trunc(period, 'day') as w over [2026-01-06]": "that is in 2026-01-05",
    "groupby coalesce(period, 2026-01-05) as w over [2026-01-06]": "that is in 2026-01-05",
}


@pytest.mark.parametrize("keys", WAYS)
def test_groups_by_periods_are_the_periods(place: Place, keys: str) -> None:
    """An open date that was taken down had a group for each day; and days that begin no period were answered with 0."""
    _write(place, 70)
    source = f'table("{place.folder}/visits.csv") described by {{day: date}} protecting rows'
    opening = f"private t = {source} budget rho 1 each week of day\n"
    made = place.run(f"{opening}g = {{{{ select count(*) as n from t {keys} with rho 0.1 }}}}\nrelease many = len(g)\n")
    wanted = WAYS[keys]
    if isinstance(wanted, int):
        assert made.values["many"] == wanted
    else:
        assert kind(made) == "ValueError" and wanted in str(made.diagnostics[0])
    parts = place.run(f"{opening}x = partition(t, period, over = [2026-01-05, 2026-01-07])\n")
    assert kind(parts) == "ValueError" and "that is in 2026-01-05" in str(parts.diagnostics[0])


def test_weeks_of_months_that_were_registered_before_are_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of one week of a person could be in two weeks, whose budgets both paid."""
    _write(place, 8)
    with monkeypatch.context() as before:
        before.setattr("jostle.run.clauses.need_whole_periods", lambda *_: None)
        by_month = "from 2026-01-01 to 2026-12-31 by month"
        assert _register(place, "user up to 3 rows", "rho 1 each week of day", day=by_month)[0] == 0
    (one,) = place.run(f"{VISITS}release n = {{{{ select count(*) from visits with rho 0.1 }}}}\n").diagnostics
    assert one.kind == "DataError" and "in two of them" in one.message


QUESTIONS = {"where n == 1": 1.0, "groupby n": [0.0, 1.0], "groupby n, c": [0.0, 1.0], "groupby c, n over [1]": [1.0]}


@pytest.mark.parametrize("each", ["day of d", "quarter of d", "10 days of m", "year of m"])
@pytest.mark.parametrize("described", ["d: date, m: time", "d: from 2005-01-01 to 2035-01-01 by month, m: time"])
def test_one_column_of_a_file_is_of_the_rows_of_a_period(tmp_path: Path, each: str, described: str) -> None:
    """Counts of few different cells read the day as text: all were 0, or whether a row had a day decided a failure."""
    moments = [datetime(1990, 1, 1, 0, k) for k in range(40)]
    columns = {"id": ["u"] * 40, "n": [1] * 40, "c": ["a"] * 40, "m": moments, "d": [m.date() for m in moments]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    opening = f'private t = table("t.parquet") described by {{n: 0..1, c: {{"a"}}, {described}}} '
    for asked, wanted in QUESTIONS.items():
        answer = f"{{{{ select count(*) as v from t {asked} with epsilon 900 }}}}"
        program = f"{opening}protecting id up to 1 row budget epsilon 900 each {each}\nrelease v = {answer}\n"
        made = Session(cwd=tmp_path).attempt(Source("p.jst", program))
        assert made.ok, made.diagnostics
        seen = made.values["v"]
        assert seen == wanted if isinstance(wanted, float) else list(seen.columns["v"]) == wanted, asked


def test_plans_without_units_are_known_as_before() -> None:
    """By histories and stored answers of older ledgers."""
    days = (("x", Open("date")), ("t", Open("text")))
    weeks = Derive(Scan("d", days), (("w", Apply("trunc", (Column("x"), Constant("week")))),))
    assert plan_digest(weeks, {"d": "n"}).digest.startswith("36e749d9fa568e28fe8b7a5bea9a62464e118c49")
    digests = {plan_digest(Listed((("x", Open("date", unit)),), ()), {}).digest for unit in ("", "week", "month")}
    assert len(digests) == 3 and "bf451818d27e8f43498948e34189bda5ebfe004ddea6dc9ce8cbf8ed1795a73e" in digests


@pytest.mark.parametrize("unit", ["week", "7 days", "10 days", "1 days", "3660 days", "month"])
def test_periods_follow_each_other(unit: str) -> None:
    """Each day is in one, which begins on it or before."""
    for number in [FIRST_DAY, -1, 0, 1, number_of(FIRST), LAST_DAY]:
        low = truncated("date", number, unit)
        assert low <= number and truncated("date", low, unit) == low
    days = starts("date", number_of(FIRST), number_of(FIRST) + 400, unit)
    if unit.endswith("days"):
        assert {b - a for a, b in pairwise(days)} <= {int(unit.split()[0])}
    assert unit != "7 days" or days == starts("date", number_of(FIRST), number_of(FIRST) + 400, "week")


def test_an_engine_reads_periods_as_python_does(place: Place) -> None:
    days = [FIRST + timedelta(17 * k - 9000) for k in range(400)]
    (place.folder / "days.csv").write_text("\n".join(["day", *map(str, days)]) + "\n")
    for unit in ("10 days", "7 days", "365 days"):
        program = 't = table("days.csv") described by {day: date}\n'
        program += f'release g = {{{{ select count(*) as n from t groupby trunc(day, "{unit}") as d }}}}\n'
        made = place.run(program)
        assert made.ok, made.diagnostics
        wanted: dict[int, int] = {}
        for day in days:
            start = truncated("date", number_of(day), unit)
            wanted[start] = wanted.get(start, 0) + 1
        columns = made.values["g"].columns
        assert {number_of(d): n for d, n in zip(columns["d"], columns["n"], strict=True)} == wanted


def test_an_editor_offers_the_period_and_the_check_knows_every_name(place: Place) -> None:
    from jostle.tools.editors.document import Document

    text = 'private t = table("v.csv") described by {day: date} protecting user budget rho 1 each week of day\n'
    document, asked = Document("a.jst"), "n = {{ select count(*) from t where peri"
    document.change(text)
    document.text += asked
    assert "period" in [one.word for one in document.completions(1, len(asked))[1]]
    made = place.run(text.replace("of day", "of day, rho most for ever"))
    assert kind(made) == "NameError" and "most" in str(made.diagnostics[0])


@pytest.mark.parametrize("last", ["2026-01-10", "2026-12-31"])
@pytest.mark.parametrize(("protecting", "rows"), [("rows", 4), ("user up to 1 rows", 1)])
def test_the_same_data_have_the_periods_of_one_description(place: Place, protecting: str, rows: int, last: str) -> None:
    """Where all days are read as days of one week, all rows of a person are the protected unit, of which one is kept;
    read as they stand four are, of noise for one. So that is refused in a session, and the same words are not."""
    days = [f"{FIRST + timedelta(7 * week)},u1" for week in range(4)]
    (place.folder / "visits.csv").write_text("\n".join(["day,user", *days]) + "\n")
    place.ledger, program = place.folder / "none.db", ""
    for name, end in (("a", "2026-01-10"), ("b", last)):
        program += f'private {name} = table("visits.csv") described by {{day: from 2026-01-01 to {end} by day}}'
        program += f" protecting {protecting} budget rho 10000000 each week of day\n"
        program += f"release n_{name} = {{{{ select count(*) from {name} with rho 1000000 }}}}\n"
    made = place.run(program)
    assert round(float(made.values["n_a"])) == rows
    if last == "2026-12-31":
        assert kind(made) == "DataError" and "alike" in str(made.diagnostics[0].help)
        made = place.run("".join(program.splitlines(keepends=True)[2:]))
        rows = 4
    assert made.ok and round(float(made.values["n_b"])) == rows


@pytest.mark.parametrize("part", ["t[at = a]", "partition(t, at, over = [a])[0][1]"])
def test_times_that_engines_take_for_the_same_are_one_part(place: Place, part: str) -> None:
    """An offset, and what is finer than a microsecond, are of Python alone: each would be a part with the same rows."""
    (place.folder / "at.csv").write_text("at\n2026-01-05 10:30:00\n")
    moment, east = datetime(2026, 1, 5, 10, 30), timezone(timedelta(hours=1))
    session = place.session()
    for number, at in enumerate([moment, pd.Timestamp(moment) + pd.Timedelta(1, "ns"), moment.replace(tzinfo=east)]):
        program = 'param a = time("2026-01-01")\nprivate t = table("at.csv") described by {at: time} protecting rows'
        program += f" budget rho 9\nrelease n = {{{{ select count(*) from {part} with rho 1 }}}}\n"
        spent = session.run_text(program + "release s = spent(t)\n", a=at).values["s"]
        assert spent == number + 1
