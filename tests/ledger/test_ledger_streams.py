"""Running answers that go on: one charge, each step drawn once, whatever is run again, comes late or runs at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from ledger_place import Place

from jostle.privacy.ledger.ledger import Ledger

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


def _register(place: Place, protecting: str, budget: str) -> None:
    words = ("--schema", '{day: 1..40, page: {"A", "B"}, seconds: 0..9}', "--protecting", protecting)
    path = str(place.folder / "visits.csv")
    status, _, said = place.data("register", "visits", path, *words, "--budget", budget)
    assert status == 0, said


def _arrive(place: Place, day: int, late: int = 0) -> None:
    (place.folder / "visits.csv").write_text(rows_until(day, late))
    status, _, said = place.data("update", "visits")
    assert status == 0, said


def _on(place: Place, day: int, program: str = COUNT):
    from jostle.source import Source

    made = place.session().attempt(Source(str(place.folder / "p.jst"), program), {"today": str(day)})
    assert made.ok, made.diagnostics
    return made


def test_a_stream_goes_on_from_run_to_run(visits: Place) -> None:
    """One charge; what was shown of a step is shown of it ever after; the errors are those of all noise."""
    shown: list[float] = []
    for day in range(1, 13):
        if day > 1:
            _arrive(visits, day)
        made = _on(visits, day)
        n = [float(value) for value in made.values["g"].columns["n"]]
        assert len(n) == 2 * day and n[: len(shown)] == shown and made.values["gone"] == 1
        exact = sum(20 + d for d in range(1, day + 1))
        assert abs(sum(n[-2:]) - exact) < 40
        shown = n
    history = Ledger(visits.path)
    verified = history.verify("visits")
    assert verified.entries == 1 + 11 + 12  # registered, updated and charged, of which one cost something
    again = _on(visits, 5)
    assert [float(value) for value in again.values["g"].columns["n"]] == shown[:10]
    assert history.verify("visits").entries == verified.entries
