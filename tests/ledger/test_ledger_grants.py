"""Grants: an analyst counts in a part of a budget, the dataset loses the same, and nobody takes what is another's."""

from __future__ import annotations

import pytest
from ledger_place import DATASET, Place, kind

from jostle.accounting.amounts import QUANTA, Amount
from jostle.diagnostics import Refusal
from jostle.privacy.ledger.ledger import Growth, Ledger
from jostle.tools.data import verify
from jostle.tools.session import Result

E = QUANTA


def epsilon(value: float) -> Amount:
    return Amount("epsilon", round(value * QUANTA))


def count(amount: float, name: str = "people") -> str:
    return f'private t = dataset("{name}")\nn = {{{{ select count(*) from t with epsilon {amount} }}}}\nrelease n\n'


def run_for(place: Place, analyst: str, program: str) -> Result:
    with place.session() as session:
        session._ledger = Ledger(place.path, grantee=analyst)
        return place.run(program, session)


def spent(place: Place, name: str) -> tuple[int, ...]:
    return Ledger(place.path).dataset(name).state.spent


def refusal(action: object, *words: object) -> str:
    with pytest.raises(Refusal) as caught:
        action(*words)  # type: ignore[operator]
    return f"{caught.value.first.kind}: {caught.value.first.message}"


def test_a_charge_counts_in_the_grant_and_in_the_dataset(owned: Place) -> None:
    ledger = Ledger(owned.path)
    ledger.grant("people", "ana", epsilon(1))
    made = run_for(owned, "ana", count(0.75) + "release rest = left(t)\n")
    assert made.ok and made.values["rest"] == 0.25
    assert made.budget == {"t": {"epsilon": {"total": "1", "spent": "0.75"}}}
    assert spent(owned, "people") == spent(owned, "people@ana") == (E * 3 // 4,)
    through = [entry.content.get("grant") for entry in ledger.history("people")]
    assert through == [None, "people@ana"]
    for name in ("people", "people@ana"):
        assert verify(ledger, name).spent == (E * 3 // 4,)
    assert run_for(owned, "ana", count(0.75)).ok and spent(owned, "people") == (E * 3 // 4,)  # it was answered before


def test_a_grant_that_is_used_up_is_refused_and_charges_nothing(owned: Place) -> None:
    Ledger(owned.path).grant("people", "ana", epsilon(1))
    assert run_for(owned, "ana", count(1)).ok
    made = run_for(owned, "ana", DATASET + "release n = {{ select count(*) from people with epsilon 0.1 }}\n")
    assert kind(made) == "BudgetExceeded" and spent(owned, "people") == (E,)


def test_what_is_granted_is_there_whatever_others_do(owned: Place) -> None:
    ledger = Ledger(owned.path)
    ledger.grant("people", "ana", epsilon(1))
    ledger.grant("people", "ben", epsilon(1.5))
    assert "BadAmount: epsilon 0.6" in refusal(ledger.grant, "people", "eve", epsilon(0.6))
    assert kind(owned.run(count(0.6))) == "BudgetExceeded" and spent(owned, "people") == (0,)
    assert owned.run(count(0.5)).ok
    assert run_for(owned, "ana", count(1)).ok and run_for(owned, "ben", count(1.5)).ok
    assert spent(owned, "people") == (3 * E,)


def test_an_analyst_opens_nothing_without_a_grant(owned: Place) -> None:
    Ledger(owned.path).grant("people", "ana", epsilon(1))
    said = {run_for(owned, "ben", count(1, name)).diagnostics[0].message for name in ("people", "nobodys")}
    assert said == {"you have no grant on `people`", "you have no grant on `nobodys`"}
    assert kind(run_for(owned, "ana", count(1, "people@ana"))) == "LedgerError"
    assert kind(owned.run(count(1, "people@ana"))) == "LedgerError"
    file = str(owned.folder / "people.csv")
    for source in (f'table("{file}")', f'counts("{file}")', 'postgres("a.b")'):
        assert not run_for(owned, "ana", f"t = {source}\nrelease n = {{{{ select count(*) from t }}}}\n").ok
    assert spent(owned, "people") == (0,)


def test_frozen_closed_and_expired_grants_are_refused_at_the_charge(owned: Place) -> None:
    ledger = Ledger(owned.path)
    ledger.grant("people", "ana", epsilon(1))
    growth = Growth("people@ana", 1, (E // 4,), {"did": "charged"})
    for name, said in (("people", "`people`"), ("people@ana", "your grant on `people`")):
        ledger.set_status(name, "frozen", "olga")
        assert refusal(ledger.charge, [growth]) == f"LedgerError: {said} is frozen"
        assert kind(run_for(owned, "ana", count(0.25))) == "LedgerError"
        ledger.set_status(name, "", "olga")
    assert ledger.charge([growth]).refused is None
    ledger.set_status("people@ana", "closed", "olga")
    assert "is closed" in refusal(ledger.charge, [growth])
    assert "cannot be opened" in refusal(ledger.set_status, "people@ana", "", "olga")
    assert "cannot be closed" in refusal(ledger.set_status, "people", "closed", "olga")
    assert [e.content["did"] for e in ledger.history("people@ana")] == [
        "granted", "frozen", "opened", "charged", "closed",
    ]  # fmt: skip
    ledger.grant("people", "ben", epsilon(2.75), "2020-01-31")  # what was closed is free again
    assert "is expired" in refusal(ledger.charge, [Growth("people@ben", 1, (E // 4,), {})])
    ledger.grant("people", "eve", epsilon(2.75))  # and so is what has expired
    assert verify(ledger, "people").spent == (E // 4,)


@pytest.mark.parametrize(("analyst", "amount", "until", "said"), [
    ("Ana", epsilon(1), "", "no name"), ("a@b", epsilon(1), "", "no name"), ("", epsilon(1), "", "no name"),
    ("ana", epsilon(4), "", "does not fit"), ("ana", Amount("rho", E), "", "counted in epsilon"),
    ("ana", epsilon(1), "tomorrow", "no date"), ("ana", Amount("epsilon", E, 5), "", "counted in epsilon"),
])  # fmt: skip
def test_what_is_no_grant_is_refused(owned: Place, analyst: str, amount: Amount, until: str, said: str) -> None:
    assert said in refusal(Ledger(owned.path).grant, "people", analyst, amount, until)
    assert [dataset.terms.name for dataset in Ledger(owned.path).datasets()] == ["people"]


def test_parts_of_basic_and_zcdp_budgets(place: Place) -> None:
    place.register("rho 1")
    ledger = Ledger(place.path)
    ledger.grant("people", "ana", Amount("rho", E // 2))
    program = DATASET + "release n = {{ select count(*) from people with rho 0.25 }}\n"
    assert run_for(place, "ana", program).ok and spent(place, "people") == spent(place, "people@ana") == (E // 4,)
    assert "already" in refusal(ledger.grant, "people", "ana", Amount("rho", 5))
    assert "is a grant" in refusal(ledger.grant, "people@ana", "ben", Amount("rho", 5))


def test_the_file_may_be_renewed_by_its_owner(owned: Place) -> None:
    Ledger(owned.path).grant("people", "ana", epsilon(1))
    (owned.folder / "people.csv").write_text("age,sex\n30,F\n")
    assert "has changed" in run_for(owned, "ana", count(0.5)).diagnostics[0].message
    assert owned.data("update", "people")[0] == 0
    made = run_for(owned, "ana", count(0.5))
    assert made.ok and owned.data("list")[0] == 0
    (owned.folder / "people.csv").touch()
    assert run_for(owned, "ana", count(0.25)).ok  # the same bytes


# Of an (ε, δ) budget that is counted in zCDP -----------------------------------------------------------------

HALF = Amount("epsilon", QUANTA // 2, QUANTA // 10**6)


@pytest.fixture
def zcdp(place: Place) -> Place:
    """`people` under (1, 2e-6), in zCDP."""
    place.register("epsilon 1, delta 2e-6")
    return place


def gaussian(turn: int, each: str = "epsilon 0.1 delta 2e-7") -> str:
    select = f"select sum(age) as n from t where age > {turn % 60} with {each} via gaussian"
    return f'private t = dataset("people")\nn = {{{{ {select} }}}}\nrelease n\n'


def used_up(place: Place, analyst: str, each: str = "epsilon 0.1 delta 2e-7") -> int:
    """How often an analyst is answered until the grant is used up."""
    turn = 0
    while run_for(place, analyst, gaussian(turn, each)).ok:
        turn += 1
        assert turn < 60
    return turn


def test_grants_of_zcdp_are_budgets_of_their_own(zcdp: Place) -> None:
    ledger = Ledger(zcdp.path)
    for analyst in ("ana", "ben"):
        ledger.grant("people", analyst, HALF)
    assert "BadAmount" in refusal(ledger.grant, "people", "eve", Amount("epsilon", 1, 1))  # all of it is granted
    turns = used_up(zcdp, "ana")
    assert turns > 10  # by plain sums, five
    assert used_up(zcdp, "ben") == turns  # whatever the other has spent
    totals = [spent(zcdp, name) for name in ("people@ana", "people@ben")]
    assert spent(zcdp, "people") == tuple(a + b for a, b in zip(*totals, strict=True))
    for name in ("people", "people@ana", "people@ben"):
        assert verify(ledger, name).spent == spent(zcdp, name)


def test_beside_grants_of_zcdp_the_dataset_itself_is_not_charged(zcdp: Place) -> None:
    ledger = Ledger(zcdp.path)
    assert zcdp.run(count(0.25)).ok  # before the first grant: by its plain sum
    assert "BadAmount" in refusal(ledger.grant, "people", "ana", Amount("epsilon", QUANTA * 4 // 5, 1))
    ledger.grant("people", "ana", HALF)
    assert kind(zcdp.run(count(0.125))) == "BudgetExceeded" and spent(zcdp, "people")[2] == E // 4
    ledger.set_status("people@ana", "closed", "olga")  # of which nothing was charged
    assert zcdp.run(count(0.125)).ok
    ledger.grant("people", "ben", HALF)
    assert run_for(zcdp, "ben", count(0.125)).ok
    ledger.set_status("people@ben", "closed", "olga")  # what was charged on counts as a whole
    assert "BadAmount" in refusal(ledger.grant, "people", "eve", HALF)
    assert verify(ledger, "people").entries == 4


def test_gaussian_noise_beyond_plain_sums_leaves_nothing_to_grant(zcdp: Place) -> None:
    """What zCDP has left of a budget when somebody stops is not given away."""
    for turn in range(4):
        assert zcdp.run(gaussian(turn, "epsilon 0.3 delta 2e-7")).ok
    assert "BadAmount" in refusal(Ledger(zcdp.path).grant, "people", "ana", HALF)


def test_of_zcdp_what_has_expired_is_free_when_it_is_closed(zcdp: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that was ahead gave it away a second time; set back, both grants were charged, 1.8 of 1."""
    ledger, whole = Ledger(zcdp.path), Amount("epsilon", QUANTA, 2 * QUANTA // 10**6)
    ledger.grant("people", "ana", whole, "2090-01-31")
    monkeypatch.setattr("jostle.privacy.ledger.grants.now", lambda *_: "2091-01-01T00:00Z")
    assert "does not fit" in refusal(ledger.grant, "people", "ben", whole)
    ledger.set_status("people@ana", "closed", "olga")
    ledger.grant("people", "ben", whole)
    monkeypatch.undo()
    assert "is closed" in refusal(run_charge, ledger, "people@ana") and run_for(zcdp, "ben", gaussian(1)).ok


def run_charge(ledger: Ledger, name: str) -> object:
    return ledger.charge([Growth(name, 1, (E // 4, 0, E // 4, 0), {"did": "charged"})])


@pytest.mark.parametrize("amount", [epsilon(0.5), Amount("rho", QUANTA), Amount("epsilon", QUANTA, QUANTA)])
def test_a_grant_of_zcdp_has_a_delta_that_fits(zcdp: Place, amount: Amount) -> None:
    assert "BadAmount" in refusal(Ledger(zcdp.path).grant, "people", "ana", amount)


def test_limits_of_a_grant_of_zcdp_count_what_is_asked_for(zcdp: Place) -> None:
    Ledger(zcdp.path).grant("people", "ana", HALF, "", epsilon(0.125), epsilon(0.25))
    assert kind(run_for(zcdp, "ana", count(0.25))) == "BudgetExceeded" and not any(spent(zcdp, "people"))
    assert run_for(zcdp, "ana", count(0.125)).ok
    assert run_for(zcdp, "ana", count(0.0625)).ok
    assert kind(run_for(zcdp, "ana", count(0.1))) == "BudgetExceeded"
