"""Registered tables of the persons of another dataset: one budget, whichever is opened, and in whatever order."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from ledger_place import Place, kind

from jostle.accounting.amounts import QUANTA, Amount
from jostle.check.costs import table
from jostle.diagnostics import Refusal
from jostle.privacy.ledger.ledger import Ledger
from jostle.readers.duckdb import LocalDuckDb
from jostle.source import Source
from jostle.tools.data import verify

FILES = {
    "folk": "id,age\n" + "".join(f"p{i},{20 + i}\n" for i in range(40)),
    "orders": "number,customer,amount\n" + "".join(f"{i},p{i % 30},{i}\n" for i in range(60)),
    "items": "order,price\n" + "".join(f"{i % 70},{i % 9}\n" for i in range(200)),
}
OPENED = {name: f'private {name} = dataset("{name}")\n' for name in FILES}
ASKED = {
    "folk": "a = {{ select count(*) from folk with epsilon 0.5 }}\n",
    "orders": "b = {{ select count(*) from orders up to 2 rows with epsilon 0.25 }}\n",
    "items": "c = {{ select count(*) from items up to 2 rows with epsilon 0.125 }}\n",
}


def register(place: Place, name: str, schema: str, protecting: str, *more: str) -> tuple[int, str, str]:
    path = place.folder / f"{name}.csv"
    path.write_text(FILES.get(name, "id,n\np1,1\n"))
    return place.data("register", name, str(path), "--schema", schema, "--protecting", protecting, *more)


@pytest.fixture
def shop(place: Place) -> Place:
    """People, their orders, and the items of these, under ε = 3."""
    for words in (
        ("folk", "{age: 0..99}", "id up to 1 row", "--budget", "epsilon 3"),
        ("orders", "{number: 0..999, amount: 0..99}", "folk.id on customer"),
        ("items", "{price: 0..9}", "orders.number on order"),
    ):
        status, _, said = register(place, *words)
        assert status == 0, said
    return place


def total(place: Place, name: str = "folk") -> float:
    return sum(Ledger(place.path).dataset(name).state.spent) / 1e12


@pytest.mark.parametrize("order", list(itertools.permutations(FILES)))
def test_one_budget_in_any_order_of_opening(shop: Place, order: tuple[str, ...]) -> None:
    result = shop.run("".join(OPENED[name] + ASKED[name] for name in order))
    assert result.ok, result.diagnostics
    assert total(shop) == 0.875 and total(shop, "orders") == total(shop, "items") == 0
    assert {spending["epsilon"]["spent"] for spending in result.budget.values()} == {"0.875"}
    assert verify(Ledger(shop.path), "folk").entries == 4


def test_a_check_adds_up_what_tables_of_the_same_persons_cost(shop: Place) -> None:
    text = "".join(OPENED[name] + ASKED[name] for name in FILES)
    costs = shop.session().costs(Source("p.jst", text))
    assert [cost.most for cost in costs] == [0.875 * QUANTA] * 3
    _, *lines = table(costs).splitlines()
    assert [" ".join(line.split()) for line in lines] == [f"{name} the same budget as folk" for name in list(FILES)[1:]]


def test_each_by_itself_spends_of_the_same(shop: Place) -> None:
    for name in FILES:
        assert kind(shop.run(OPENED[name] + ASKED[name])) == "fine"
    assert total(shop) == 0.875
    assert kind(shop.run(OPENED["items"] + ASKED["items"].replace("0.125", "2.126"))) == "BudgetExceeded"


def test_the_tables_are_of_the_same_persons(shop: Place) -> None:
    result = shop.run(
        OPENED["items"] + OPENED["folk"] + "spent = {{ select sum(price) as total from items per person }}\n"
        "n = {{ select count(*) from folk join spent on person with epsilon 3 }}\n"
        "m = {{ select count(*) from items join folk on person up to 9 rows with epsilon 3 }}\n"
    )  # fmt: skip
    assert kind(result) == "BudgetExceeded" and total(shop) == 3


def test_what_is_read_was_charged_on_disk_before(shop: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    read = LocalDuckDb.group

    def watched(engine: LocalDuckDb, *asked: Any) -> Any:
        seen.append(total(shop))
        return read(engine, *asked)

    monkeypatch.setattr(LocalDuckDb, "group", watched)
    assert shop.run(OPENED["items"] + ASKED["items"] + OPENED["orders"] + ASKED["orders"]).ok
    assert seen == [0.125, 0.375]


@pytest.mark.parametrize("changed", ["folk", "orders", "items"])
def test_a_file_that_changed_is_refused_before_a_charge(shop: Place, changed: str, never_read: Any) -> None:
    with (shop.folder / f"{changed}.csv").open("a") as file:
        file.write("p1,2,3\n")
    assert kind(shop.run(OPENED["items"] + ASKED["items"])) == "LedgerError" and total(shop) == 0
    never_read()


def test_a_file_that_changes_in_a_session_is_refused_before_a_charge(shop: Place) -> None:
    session = shop.session()
    assert kind(shop.run(OPENED["orders"] + OPENED["folk"] + ASKED["folk"], session)) == "fine"
    with (shop.folder / "orders.csv").open("a") as file:
        file.write("99,p1,3\n")
    again = shop.run(OPENED["folk"] + ASKED["folk"].replace("0.5", "0.6"), session)
    assert kind(again) == "LedgerError" and total(shop) == 0.5
    status, _, said = shop.data("update", "orders")
    assert status == 0, said
    assert kind(shop.run(OPENED["orders"] + ASKED["orders"])) == "fine" and total(shop) == 0.75


def test_answers_of_linked_tables_are_not_given_again(shop: Place) -> None:
    """Their request does not name the version of every file that decides them."""
    for times in (1, 2):
        assert shop.run(OPENED["orders"] + ASKED["orders"]).ok
        assert total(shop) == 0.25 * times


def test_what_an_owner_sees(shop: Place) -> None:
    shown = shop.data("show", "items")[1]
    assert "orders.number on order" in shown and "that of `orders`" in shown
    assert "that of `folk`" in shop.data("list")[1]


@pytest.mark.parametrize(
    ("protecting", "more", "message"),
    [
        ("folk.id on id", ("--budget", "epsilon 1"), "has the budget of `folk`"),
        ("folk.height on id", (), "no described column"),
        ("people.id on id", (), "no dataset `people`"),
        ("alone.n on id", (), "no described column"),
        ("id", (), "has no `budget`"),
        ("folk.id on nothing", (), "no column `nothing`"),
    ],
)
def test_what_cannot_be_linked(shop: Place, protecting: str, more: tuple[str, ...], message: str) -> None:
    if protecting.startswith("alone"):
        assert register(shop, "alone", "{n: 0..9}", "rows", "--budget", "epsilon 1")[0] == 0
    status, _, said = register(shop, "visits", "{n: 0..9}", protecting, *more)
    assert status == 1 and message in said, said


@pytest.mark.parametrize("source", ['table("orders.csv")', 'table("items.csv")'])
def test_a_linked_file_has_no_other_name(shop: Place, source: str) -> None:
    program = OPENED["folk"] + f"private x = {source} described by {{amount: 0..9}} protecting folk.id on customer\n"
    assert kind(shop.run(program)) == "PrivateValue"


EPSILON = Amount("epsilon", QUANTA)


@pytest.fixture
def granted(shop: Place) -> Place:
    """The shop, of which `ana` has ε = 1, and may open orders and items."""
    for name in FILES:
        Ledger(shop.path).grant(name, "ana", EPSILON if name == "folk" else None)
    return shop


def run_for(place: Place, analyst: str, program: str) -> Any:
    session = place.session()
    session._ledger = Ledger(place.path, grantee=analyst)
    return place.run(program, session)


@pytest.mark.parametrize("order", [tuple(FILES), tuple(FILES)[::-1]])
def test_a_grant_on_the_persons_pays_for_all_their_tables(granted: Place, order: tuple[str, ...]) -> None:
    result = run_for(granted, "ana", "".join(OPENED[name] + ASKED[name] for name in order))
    assert result.ok, result.diagnostics
    assert total(granted) == total(granted, "folk@ana") == 0.875
    assert total(granted, "orders@ana") == total(granted, "items@ana") == total(granted, "orders") == 0
    assert verify(Ledger(granted.path), "folk@ana").entries == 4
    more = run_for(granted, "ana", OPENED["items"] + ASKED["items"].replace("0.125", "0.2"))
    assert kind(more) == "BudgetExceeded" and total(granted) == 0.875


def test_a_linked_table_is_opened_by_its_own_grant_alone(shop: Place, never_read: Any) -> None:
    Ledger(shop.path).grant("folk", "ana", EPSILON)
    result = run_for(shop, "ana", OPENED["orders"] + ASKED["orders"])
    assert kind(result) == "LedgerError" and "no grant on `orders`" in result.diagnostics[0].message
    never_read()


@pytest.mark.parametrize(
    ("name", "amount", "more", "message"),
    [
        ("orders", None, {}, "no grant on `folk`"),
        ("items", None, {}, "no grant on `orders`"),
        ("folk", None, {}, "has an amount"),
        ("visits", EPSILON, {}, "has the budget of `folk`"),
        ("visits", None, {"per_week": EPSILON}, "has the budget of `folk`"),
    ],
)
def test_what_cannot_be_granted_of_linked_tables(
    shop: Place, name: str, amount: Amount | None, more: dict[str, Any], message: str
) -> None:
    ledger = Ledger(shop.path)
    if name == "visits":
        assert register(shop, "visits", "{n: 0..9}", "folk.id on id")[0] == 0
        ledger.grant("folk", "ana", EPSILON)
    with pytest.raises(Refusal, match=message):
        ledger.grant(name, "ana", amount, **more)
    assert f"{name}@ana" not in [one.terms.name for one in ledger.datasets()]


@pytest.mark.parametrize("name", ["orders", "orders@ana", "folk@ana", "folk"])
def test_a_linked_table_is_frozen_for_itself(granted: Place, name: str) -> None:
    ledger = Ledger(granted.path)
    ledger.set_status(name, "frozen", "owner")
    result = run_for(granted, "ana", OPENED["items"] + ASKED["items"])
    assert kind(result) == "LedgerError" and "is frozen" in result.diagnostics[0].message and total(granted) == 0
    ledger.set_status(name, "", "owner")
    assert run_for(granted, "ana", OPENED["items"] + ASKED["items"]).ok and total(granted) == 0.125


@pytest.mark.parametrize("grantee", ["ana", ""])
def test_a_table_that_is_frozen_while_a_program_runs_is_not_charged_for(
    granted: Place, grantee: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The charge, on the persons, is refused before anything is read, and nothing of it stands."""
    charge = Ledger.charge

    def frozen(ledger: Ledger, growths: Any) -> Any:
        assert growths[0].name == ("folk@ana" if grantee else "folk")
        Ledger(granted.path).set_status("orders", "frozen", "owner")
        return charge(ledger, growths)

    monkeypatch.setattr(Ledger, "charge", frozen)
    result = run_for(granted, grantee, OPENED["items"] + ASKED["items"])
    assert kind(result) == "LedgerError" and "`orders` is frozen" in result.diagnostics[0].message
    assert total(granted) == total(granted, "folk@ana") == 0
