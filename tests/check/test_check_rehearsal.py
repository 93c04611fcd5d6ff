"""What simulated rows of any number fail on after a payment is refused before it is paid."""

from __future__ import annotations

from pathlib import Path

import pytest

from jostle.source import Source
from jostle.tools import rehearsal
from jostle.tools.session import Session

pytestmark = pytest.mark.rehearses
BEFORE = (
    "use pinq\nuse histograms\nuse learning\n"
    'private t = table("t.csv") described by {age: 0..79, kind: {"a", "b", "c"}, y: 0.0..1.0} protecting rows '
    "budget epsilon 8, delta 1e-5\n"
    "n = {{ select count(*) from t with epsilon 1 }}\n"
)
LATE = {
    'guest = agent(t, 0.3)\nm = noisyAvg(guest, "age", 0.3)\nprint(noisyAvg(guest, "age", 0.2))': "BudgetExceeded",
    "high = 80\nwith epsilon 0.5:\n    run with epsilon 0.1 until budget of t or high <= 8:\n        high = high / 2\n"
    "        k = {{ select count(*) from t where age <= high with epsilon 0.5 }}": "BudgetExceeded",
    "c = histogram(t, x = age)\nh = dawa(c, prefixes(c)) with epsilon 1\nprint(h[300])": "ValueError",
    "c = histogram(t, x = age)\nh = dawa(c, prefixes(c)) with epsilon 1\n"
    "print(bootstrap(h, dawa, prefixes(c), runs = 5) with epsilon 0.5)": "NoEpsilon",
    "def off(w, row) = (row.y - w.base)^2\na = fit(t, off, {base: 0}, steps = 5) with epsilon 1 delta 1e-6\n"
    "b = fit(t, off, a, steps = 5) with epsilon 1 delta 1e-6": "ValueError",
    "assert left(t).epsilon > 7.5": "AssertionFailed",
}
FINE = (
    "assert n > 1e6 or left(t).epsilon > 0",
    'g = {{ select count(*) as n from t groupby kind having n > 500 with epsilon 1 }}\nm = noisyAvg(t, "age", 0.1)\n'
    "print(g[0].n)",
    'if n < 100 { print([1][2], noisyAvg(t, "age", 0.1)) }',
    'm = noisyAvg(t, "age", 0.1)\nprint(list(enumerate([n]))[0])',
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    rows = "".join(f"{k % 80},{'abc'[k % 3]},{k % 10 / 10}\n" for k in range(3000))
    (tmp_path / "t.csv").write_text("age,kind,y\n" + rows, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("lines", LATE)
def test_what_fails_after_a_payment_is_refused_before_it(lines: str, place: Path) -> None:
    program = Source("p.jst", BEFORE + lines + "\n")
    (fault,) = Session(cwd=place).check(program)
    assert fault.kind == LATE[lines] and rehearsal.FAILS in fault.help
    result = Session(cwd=place).attempt(program)
    assert [(one.kind, one.span) for one in result.diagnostics] == [(fault.kind, fault.span)] and result.budget == {}
    late = Session(cwd=place, rehearse=False).attempt(program)  # the same at the same place, and paid for
    assert (late.diagnostics[0].kind, late.diagnostics[0].span) == (fault.kind, fault.span)
    assert float(late.budget["t"]["epsilon"]["spent"]) >= 1 and rehearsal.FAILS not in late.diagnostics[0].help


@pytest.mark.parametrize("lines", FINE)
def test_what_depends_on_the_rows_passes(lines: str, place: Path) -> None:
    assert [fault.message for fault in Session(cwd=place).check(Source("p.jst", BEFORE + lines + "\n"))] == []


def test_nothing_private_is_opened(tmp_path: Path) -> None:
    """There are no data: a check of the program finds the mistake all the same."""
    lines = 'guest = agent(t, 0.1)\nprint(noisyAvg(guest, "age", 0.2))'
    (fault,) = Session(cwd=tmp_path).check(Source("p.jst", BEFORE + lines + "\n"))
    assert fault.kind == "BudgetExceeded" and rehearsal.FAILS in fault.help


def test_a_rehearsal_ends_in_time_and_then_says_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Source("p.jst", BEFORE + next(iter(LATE)) + "\n")
    assert Session(cwd=place).check(program) != []
    monkeypatch.setattr(rehearsal, "SECONDS", 0.0)
    assert Session(cwd=place).check(program) == []


PLAIN = (
    "n = {{ select count(*) from people with epsilon 1 }}\n"
    "m = {{ select count(*) from people where age > kind with epsilon 1 }}"
)
OF_OPTION = "use histograms\nc = histogram(people, x = age)\nh = dawa(c, prefixes(c)) with epsilon 1\nprint(h[300])"


@pytest.mark.parametrize("lines, kind", [(PLAIN, "TypeError"), (OF_OPTION, "ValueError")])
def test_registered_data_are_rehearsed_by_what_the_ledger_says(lines: str, kind: str, place: Path) -> None:
    from jostle.tools.entry import main

    ledger = place / "ledger"
    schema, file = '{age: 0..79, kind: {"a", "b", "c"}}', str(place / "t.csv")
    registered = ["data", "register", "people", file, "--schema", schema, "--protecting", "rows"]
    assert main([*registered, "--budget", "epsilon 4", "--ledger", str(ledger)]) == 0
    text = f'private people = dataset("people")\n{lines}\n'
    session = Session(ledger=ledger, cwd=place)
    result = session.attempt(text)
    assert [fault.kind for fault in result.diagnostics] == [kind] and result.budget == {}
    assert len(session._own_ledger().history("people")) == 1  # that of the registration
    simulated = Session(ledger=ledger, cwd=place, simulate=1).attempt(text)
    assert simulated.budget["people"]["epsilon"] == {"total": "4", "spent": "1"}
    assert len(session._own_ledger().history("people")) == 1
