"""A budget for each value of a column: parts of one dataset count as their largest between runs too."""

from __future__ import annotations

import random
from typing import Any

import pytest
from ledger_place import Place, kind

from jostle.privacy.ledger.ledger import Ledger
from jostle.tools.data import verify

VISITS = 'private visits = dataset("visits")\n'
COUNT = VISITS + "release n = {{{{ select count(*) from visits{} where day >= {} with rho {} }}}}\n"


@pytest.fixture
def weekly(place: Place) -> Place:
    rows = [f"{day},{1 + (day - 1) // 7},u{k}" for day in range(1, 29) for k in range(10)]
    (place.folder / "visits.csv").write_text("\n".join(["day,week,user", *rows]) + "\n")
    assert _register(place, "user, week up to 3 rows", "rho 1 each week")[0] == 0
    return place


def _register(place: Place, protecting: str, budget: str, name: str = "visits") -> tuple[int, str, str]:
    words = ("--schema", "{day: 1..365, week: 1..52}", "--protecting", protecting, "--budget", budget)
    return place.data("register", name, str(place.folder / "visits.csv"), *words)


def test_each_week_has_the_whole_budget(weekly: Place) -> None:
    """A week that is spent is spent for ever; the next has all of it; what is asked of all weeks counts in each."""
    runs = [("[week = 1]", 1, 0.7), ("[week = 1]", 2, 0.4), ("[week = 1]", 3, 0.3), ("[week = 2]", 4, 0.6),
            ("", 5, 0.1), ("[week = 2]", 6, 0.4), ("[week = 3]", 7, 1.0)]  # fmt: skip
    assert [kind(weekly.run(COUNT.format(*one))) for one in runs] == [
        "fine", "BudgetExceeded", "fine", "fine", "BudgetExceeded", "fine", "fine",
    ]  # fmt: skip
    ledger = Ledger(weekly.path)
    assert ledger.dataset("visits").state.spent == (10**12,) and verify(ledger, "visits").entries == 6
    again = weekly.run(VISITS + "release a = left(visits[week = 3])\nrelease b = left(visits[week = 9])\n"
                                "release c = left(visits)\n")  # fmt: skip
    assert again.values == {"a": 0, "b": 1, "c": 0}
    assert "rho 1 each week" in weekly.data("show", "visits")[1]


def test_other_parts_and_parts_of_parts_count_as_the_whole_or_the_part(weekly: Place) -> None:
    program = VISITS + "x = {{ select count(*) from visits[day = 3] with rho 0.25 }}\n"
    program += "for d in [1, 2]: print({{ select count(*) from visits[week = 1, day = d] with rho 0.25 }})\n"
    assert kind(weekly.run(program)) == "fine"
    left = weekly.run(VISITS + "release a = left(visits[week = 1])\nrelease b = left(visits[week = 2])\n")
    assert left.values == {"a": 0.25, "b": 0.75}


def test_sessions_that_are_open_at_once_spend_no_more(weekly: Place) -> None:
    """Random charges of four open sessions on parts and on all: by the history never above a part's budget."""
    draw = random.Random(5)
    sessions = [weekly.session() for _ in range(4)]
    for session in sessions:
        assert kind(weekly.run(VISITS + "release a = left(visits)\n", session)) == "fine"
    refused = 0
    for k in range(24):
        part = draw.choice(["[week = 1]", "[week = 2]", "[week = 3]", ""])
        made = weekly.run(COUNT.format(part, k + 1, 0.15), draw.choice(sessions))
        refused += kind(made) == "BudgetExceeded"
        assert kind(made) in ("fine", "BudgetExceeded")
    spent: dict[Any, int] = {}
    for entry in Ledger(weekly.path).history("visits"):
        part = (entry.content.get("part") or [None])[0]
        spent[part] = spent.get(part, 0) + sum(entry.content.get("cost", [0]))
    whole = spent.pop(None)
    assert refused and max(spent.values()) + whole <= 10**12 and len(spent) == 3
    assert Ledger(weekly.path).dataset("visits").state.spent == (max(spent.values()) + whole,)
    verify(Ledger(weekly.path), "visits")


def test_a_stream_in_each_week(weekly: Place) -> None:
    """Two capabilities together: a dashboard whose budget is there anew each week."""
    weekly.ledger = weekly.folder / "other.db"
    assert _register(weekly, "user, day, week up to 3 rows", "rho 1 each week")[0] == 0
    program = VISITS + (
        "g = {{{{ select count(*) as n from visits[week = {}] where day >= {} groupby running(day, until = {})"
        " with rho 1 }}}}\nrelease g\n"
    )
    for week, first in ((1, 1), (2, 8)):
        shown: list[float] = []
        for day in (first, first + 3):
            made = weekly.run(program.format(week, first, day))
            assert made.ok, made.diagnostics
            now = list(map(float, made.values["g"].columns["n"]))
            assert len(now) == day - first + 1 and now[: len(shown)] == shown
            shown = now
    assert Ledger(weekly.ledger).dataset("visits").state.spent == (10**12,)


@pytest.mark.parametrize(
    ("protecting", "budget", "said"),
    [
        ("user up to 3 rows", "rho 1 each week", "`user, week up to 3 rows`"),
        ("rows", "rho 1 each month", "`month` has no listed values"),
        ("rows", "rho 1 each user", "`user` has no listed values"),
    ],
)
def test_a_person_in_several_weeks_is_refused(weekly: Place, protecting: str, budget: str, said: str) -> None:
    status, _, told = _register(weekly, protecting, budget, "others")
    assert status == 1 and said in told


def test_no_grants_are_given_of_parts(weekly: Place) -> None:
    with pytest.raises(Exception, match="has its budget each week"):
        from jostle.accounting.amounts import QUANTA, Amount

        Ledger(weekly.path).grant("visits", "ann", Amount("rho", QUANTA // 2))
