"""Running answers that go on: one charge, each step drawn once, whatever is run again, comes late or runs at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ledger_place import Place

from jostle.accounting.amounts import QUANTA
from jostle.noise_laws import Gaussian
from jostle.privacy.ledger.ledger import Account, Ledger
from jostle.privacy.mechanisms.additive import Linear
from jostle.source import Source
from jostle.tools.data import verify
from jostle.tools.session import Result

DAY = 'param today = 1\nprivate visits = dataset("visits")\n'
COUNT = (
    DAY
    + "g = {{ select count(*) as n from visits groupby running(day, until = today), page with rho 1 }}\n"
    + "release g\nrelease gone = spent(visits)\n"
)


def rows_until(day: int, late: int = 0) -> str:
    rows = [f"{d},{'AB'[k % 2]},u{k % 9},{k % 7}" for d in range(1, day + 1) for k in range(20 + d)]
    return "\n".join(["day,page,user,seconds", *rows, *["1,A,u1,3"] * late]) + "\n"


@pytest.fixture
def visits(place: Place) -> Place:
    (place.folder / "visits.csv").write_text(rows_until(1))
    _register(place, "rows", "rho 2")
    return place


def goes_on(place: Place) -> None:
    """A stream on three days, on the last of them twice, wherever the ledger of the place is."""
    (place.folder / "visits.csv").write_text(rows_until(1))
    _register(place, "rows", "rho 2")
    shown: list[float] = []
    for day in (1, 2, 3, 3):
        if shown and len(shown) < 2 * day:
            _arrive(place, day)
        made = _on(place, day)
        n = [float(value) for value in made.values["g"].columns["n"]]
        assert len(n) == 2 * day and n[: len(shown)] == shown and made.values["gone"] == 1
        shown = n
    assert verify(Ledger(place.ledger), "visits").entries == 1 + 2 + 3


def _register(place: Place, protecting: str, budget: str) -> None:
    words = ("--schema", '{day: 1..40, page: {"A", "B"}, seconds: 0..9}', "--protecting", protecting)
    path = str(place.folder / "visits.csv")
    status, _, said = place.data("register", "visits", path, *words, "--budget", budget)
    assert status == 0, said


def _arrive(place: Place, day: int, late: int = 0) -> None:
    (place.folder / "visits.csv").write_text(rows_until(day, late))
    status, _, said = place.data("update", "visits")
    assert status == 0, said


def _on(place: Place, day: int, program: str = COUNT) -> Result:
    made = place.session().attempt(Source(str(place.folder / "p.jst"), program), {"today": str(day)})
    assert made.ok, made.diagnostics
    return made


def test_a_stream_goes_on_from_run_to_run(visits: Place) -> None:
    """One charge; what was shown of a step is shown of it ever after; the errors are those of all noise."""
    shown: list[float] = []
    for day in range(1, 7):
        if day > 1:
            _arrive(visits, day)
        made = _on(visits, day)
        n = [float(value) for value in made.values["g"].columns["n"]]
        assert len(n) == 2 * day and n[: len(shown)] == shown and made.values["gone"] == 1
        exact = sum(20 + d for d in range(1, day + 1))
        assert abs(sum(n[-2:]) - exact) < 40
        shown = n
    history = Ledger(visits.path)
    verified = verify(history, "visits")
    assert verified.entries == 1 + 5 + 6  # registered, updated and charged, of which one cost something
    again = _on(visits, 5)
    assert [float(value) for value in again.values["g"].columns["n"]] == shown[:10]
    assert verify(history, "visits").entries == verified.entries


CODES = 'table([{page: "A", day: 1}, {page: "B", day: 2}])'
"""Public rows that say of each page a day of their own."""
ARRIVALS = {1: [(1, "A")], 2: [], 3: [(2, "A"), (3, "B")], 4: [(1, "B")], 5: [(5, "A"), (3, "A")]}
"""Of one person the rows that arrive on each day, some of them late."""


@pytest.mark.parametrize(
    ("protecting", "limit", "last", "amount"),
    [
        ("rows", "", 1, "rho 1"),
        ("user", "up to 2 rows by day", 5, "rho 1"),
        ("user", "up to 2 rows by day", 5, "epsilon 1"),
        ("user, day up to 2 rows", "", 1, "epsilon 1"),
    ],
)
def test_a_person_moves_all_steps_together_no_further_than_is_said(
    place: Place, measured: list[tuple[Linear, np.ndarray]], protecting: str, limit: str, last: int, amount: str
) -> None:
    """Brute force over histories: all that five runs measure, with and without a unit whose rows come also late."""
    program = COUNT.replace("with rho 1", f"{limit} with {amount}")
    whole = []
    for unit in ({}, {day: rows for day, rows in ARRIVALS.items() if day <= last}):
        measured.clear()
        name = f"ledger{len(whole)}.db"
        place.ledger, lines = place.folder / name, ["day,page,user,seconds", "1,A,u2,4", "1,B,u3,1"]
        for day in range(1, 6):
            lines += [f"{day},B,u{day % 3 + 2},5", *(f"{at},{page},u1,2" for at, page in unit.get(day, []))]
            (place.folder / "visits.csv").write_text("\n".join(lines) + "\n")
            if day == 1:
                _register(place, protecting, amount)
            else:
                assert place.data("update", "visits")[0] == 0
            _on(place, day, program)
        whole.append(np.concatenate([exact for _, exact in measured]))
        (linear,) = {linear for linear, _ in measured}
    moved = np.abs(whole[0] - whole[1])
    assert moved.any()
    if linear.kind is Gaussian:
        assert np.sqrt((moved**2).sum()) <= linear.l2
    else:
        assert moved.sum() <= linear.l1


OF_A = COUNT.replace("from visits", 'from visits[page = "A"]').replace(", page with rho 1", " with epsilon 1")
OF_BOTH = OF_A + 'n = {{ select count(*) from visits[page = "B"] with epsilon 1 }}\n'


@pytest.mark.slow
def test_a_stream_of_a_part_is_paid_beside_other_parts(place: Place, measured: list[tuple[Linear, np.ndarray]]) -> None:
    """A row whose page is corrected loses what was asked of the page of before, and the later steps of its own."""
    losses = []
    for unit in ((), ("1,B,u1,2", *["1,A,u1,2"] * 4)):
        measured.clear()
        place.ledger, lines = place.folder / f"ledger{len(losses)}.db", ["day,page,user,seconds"]
        for day in range(1, 6):
            lines.append(f"{day},A,u4,1")
            (place.folder / "visits.csv").write_text("\n".join([*lines, *unit[day - 1 : day]]) + "\n")
            if day == 1:
                _register(place, "rows", "epsilon 10")
            else:
                assert place.data("update", "visits")[0] == 0
            _on(place, day, OF_BOTH if day == 1 else OF_A)
        losses.append(np.concatenate([exact / linear.law.scale for linear, exact in measured]))
    moved = float(np.abs(losses[0] - losses[1]).sum())
    spent = Ledger(place.ledger).dataset("visits").state.spent[0] / QUANTA
    assert 1 < moved <= spent == 2


def test_what_two_runs_do_at_once_is_one_stream(visits: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program releases the steps while this one has drawn them: what stands in the ledger is shown, by both."""
    _on(visits, 1)
    _arrive(visits, 2)
    keep, others = Account.keep_steps, []

    def late(account: Account, *rest: Any) -> None:
        if not others:
            monkeypatch.setattr(Account, "keep_steps", keep)
            others.append(_on(visits, 2).values["g"].columns["n"])
        keep(account, *rest)

    monkeypatch.setattr(Account, "keep_steps", late)
    mine = _on(visits, 2).values["g"].columns["n"]
    assert list(map(float, mine)) == list(map(float, others[0]))
    assert Ledger(visits.path).dataset("visits").state.spent == (10**12,)


def test_what_is_not_kept_is_not_shown(visits: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that cannot hold a step ends the program; it is drawn when it can, and nothing is paid for twice."""
    _on(visits, 1)
    with monkeypatch.context() as patch:
        patch.setattr(Account, "keep_steps", lambda *_: None)
        made = visits.session().attempt(Source(str(visits.folder / "p.jst"), COUNT), {"today": "3"})
        assert [one.kind for one in made.diagnostics] == ["LedgerError"] and "g" not in made.values
    assert len(_on(visits, 3).values["g"].columns["n"]) == 6
    assert Ledger(visits.path).dataset("visits").state.spent == (10**12,)


@pytest.mark.parametrize("amount", ["rho 1", "epsilon 1"])
def test_many_numbers_are_kept_in_several_entries(place: Place, monkeypatch: pytest.MonkeyPatch, amount: str) -> None:
    """What is shown at once is given again from as many stored answers as it takes."""
    (place.folder / "visits.csv").write_text(rows_until(1))
    _register(place, "rows", amount)
    monkeypatch.setattr("jostle.privacy.measurements.running.MOST_NUMBERS", 16)
    program = COUNT.replace("rho 1", amount)
    first, again = (_on(place, 40, program).values["g"].columns["n"] for _ in range(2))
    assert len(first) == 80 and list(map(float, first)) == list(map(float, again))
    monkeypatch.setattr("jostle.privacy.measurements.running.MOST_NUMBERS", 1)
    made = place.session().attempt(Source(str(place.folder / "p.jst"), program), {"today": "40"})
    assert [one.kind for one in made.diagnostics] == ["ValueError"]


@pytest.mark.parametrize(
    ("protecting", "query", "kind", "said"),
    [
        ("user up to 3 rows", COUNT, "TypeError", "which rows of a person"),
        ("user", COUNT.replace("with rho", "up to 3 rows with rho"), "TypeError", "which rows of a person"),
        ("user", COUNT.replace("with rho", "up to 3 rows by day desc with rho"), "TypeError", "which rows of a person"),
        ("user", COUNT.replace("today), page", "today) over [3, 2, 1] up to 1 row by day"),
         "TypeError", "which rows of a person"),
        ("user", COUNT.replace("day, until = today), page", 'page) over ["B", "A"] up to 1 row by page'),
         "TypeError", "which rows of a person"),
        ("user", COUNT.replace("today), page", "today) over [1, 2, 3] up to 1 row by day"), "fine", ""),
        ("user", COUNT.replace("from visits", "from derive(visits, day = 41 - day)").replace(
            "with rho", "up to 3 rows by 41 - day with rho"), "TypeError", "which rows of a person"),
        ("user", COUNT.replace("from visits", "from (select count(*) as c from visits per person, day, page)"),
         "TypeError", "several rows make one"),
        ("rows", COUNT.replace("count(*)", "median(seconds)"), "TypeError", "counts and sums"),
        ("rows", COUNT.replace("until = today", "until = 41"), "ValueError", "no value of `day`"),
        ("rows", COUNT.replace("page with", "running(page) with"), "TypeError", "one running key"),
        ("rows", COUNT.replace("with rho 1", "with error 30"), "TypeError", "an amount of their own"),
        ("rows", COUNT.replace("visits groupby", 'visits join table([{page: "A", w: 1}]) on page groupby'),
         "fine", ""),
        ("user, day up to 1 row", COUNT.replace("visits groupby", f"visits join {CODES} on page groupby"), "fine", ""),
        ("user, day up to 1 row", COUNT.replace("from visits", f"from {CODES} join visits on page"),
         "TypeError", "which rows of a person"),
        ("user, day up to 1 row", COUNT.replace("from visits", f"from pick(visits, page) join {CODES} on page"),
         "TypeError", "which rows of a person"),
        ("user, seconds up to 1 row", COUNT.replace("from visits", f"from {CODES} as c join visits on page").replace(
            "running(day", "running(visits.day"), "TypeError", "which rows of a person"),
        ("user", COUNT.replace("from visits", f"from {CODES} join (select * from visits) on page").replace(
            "with rho", "up to 1 row by day with rho"), "fine", ""),
    ],
)  # fmt: skip
def test_what_is_refused_is_refused_before_a_charge(
    place: Place, protecting: str, query: str, kind: str, said: str
) -> None:
    (place.folder / "visits.csv").write_text(rows_until(1))
    _register(place, protecting, "rho 2")
    made = place.session().attempt(Source(str(place.folder / "p.jst"), query), {"today": "1"})
    assert [one.kind for one in made.diagnostics] == ([kind] if kind != "fine" else []), made.diagnostics
    if kind != "fine":
        assert said in made.diagnostics[0].message
        assert Ledger(place.path).dataset("visits").state.spent == (0,)
