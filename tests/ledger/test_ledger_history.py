"""The history's chain: whatever is changed in a ledger behind its back is found, and nothing is charged on it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from ledger_charge import charge
from storm import opened, registered

from jostle.accounting.amounts import QUANTA, Amount
from jostle.accounting.definitions import pure_price
from jostle.diagnostics import Refusal
from jostle.plan.digest import canonical, digest
from jostle.privacy.kernel.exposures import Exposure
from jostle.privacy.ledger import store
from jostle.privacy.ledger.ledger import Ledger
from jostle.privacy.ledger.store import Entry
from jostle.tools.data import verify, verify_chain

GROWN = "number = 2"
TAMPERED = {
    "an amount": f"""UPDATE history SET content = replace(content, '"grows":[500', '"grows":[400') WHERE {GROWN}""",
    "what was asked": f"UPDATE history SET content = replace(content, 'count', 'other') WHERE {GROWN}",
    "a hash": f"UPDATE history SET hash = previous WHERE {GROWN}",
    "an entry gone": f"DELETE FROM history WHERE {GROWN}",
    "the last entry gone": "DELETE FROM history WHERE number = 4",
    "all gone": "DELETE FROM history",
    "two changed places": "UPDATE history SET number = 9 - number WHERE number > 2",
    "no JSON": f"UPDATE history SET content = '{{' WHERE {GROWN}",
}
UNSEALED = {
    "the total": "UPDATE datasets SET state = replace(state, '\"spent\": [1500', '\"spent\": [0500')",
    "less spent": "UPDATE datasets SET state = json_set(state, '$.spent[0]', 0)",
    "the limit": "UPDATE datasets SET terms = json_set(terms, '$.measure.limit.value', 9000000000000000)",
    "the unit": "UPDATE datasets SET terms = json_set(terms, '$.unit.rows', 2)",
    "the file": "UPDATE datasets SET terms = json_set(terms, '$.path', 'elsewhere.csv')",
    "the data's code": "UPDATE datasets SET state = json_set(state, '$.code', 'beef')",
    "the last hash": "UPDATE datasets SET state = json_set(state, '$.head', 'beef')",
    "the seal": "UPDATE datasets SET seal = 'beef'",
    "a strange seal": "UPDATE datasets SET seal = 'é'",
    "the key": "UPDATE datasets SET key = x'00'",
    "no state": "UPDATE datasets SET state = '[]'",
    "another name": "UPDATE datasets SET name = 'people' || '', terms = json_set(terms, '$.name', 'others')",
}


@pytest.fixture
def charged(tmp_path: Path) -> Ledger:
    """A ledger with three charges of 0.5."""
    ledger = registered(tmp_path, Amount("epsilon", 3 * QUANTA))
    for _ in range(3):
        charge_half(ledger)
    return ledger


def charge_half(ledger: Ledger) -> None:
    kernel, source = opened(ledger)
    charge(kernel, (Exposure(source),), pure_price(Amount("epsilon", QUANTA // 2)), "count")


def tamper(ledger: Ledger, statement: str) -> None:
    ledger.store.close()
    with sqlite3.connect(ledger.store.path) as connection:
        connection.executescript("DROP TRIGGER history_stays; DROP TRIGGER history_is_fixed;")
        before = connection.total_changes
        connection.execute(statement)
        assert connection.total_changes > before, "the test changes nothing"
    connection.close()


def refused(action: Callable[[], object]) -> str:
    with pytest.raises(Refusal) as caught:
        action()
    assert caught.value.first.kind == "LedgerError"
    return caught.value.first.message


def test_a_good_chain_holds(charged: Ledger) -> None:
    held = verify(charged, "people")
    assert (held.entries, held.spent) == (4, (3 * QUANTA // 2,))
    assert held.head == charged.history("people")[-1].hash


@pytest.mark.parametrize("what", TAMPERED)
def test_a_changed_history_does_not_verify(charged: Ledger, what: str) -> None:
    tamper(charged, TAMPERED[what])
    refused(lambda: verify(charged, "people"))


@pytest.mark.parametrize("what", UNSEALED)
def test_a_changed_state_is_neither_verified_nor_charged(charged: Ledger, what: str) -> None:
    tamper(charged, UNSEALED[what])
    refused(lambda: verify(charged, "people"))
    refused(lambda: charge_half(charged))
    refused(lambda: charge_half(Ledger(charged.store.path)))


def test_the_ledger_itself_only_appends(charged: Ledger) -> None:
    for statement in ("UPDATE history SET hash = ''", "DELETE FROM history"):

        def change(statement: str = statement) -> None:
            with charged.store.writing() as connection:
                connection.execute(statement)

        refused(change)
    assert verify(charged, "people").entries == 4


def test_a_stored_answer_that_was_changed_is_not_given(charged: Ledger) -> None:
    kernel, source = opened(charged)
    charge(kernel, (Exposure(source),), pure_price(Amount("epsilon", QUANTA // 2)), "count")
    assert source.account is not None
    charged.remember(source.account.receipts[-1], "request", {"keys": [], "values": [[12.0]]})
    found = charged.answer("people", "request")
    assert found is not None and found[0]["values"] == [[12.0]]
    tamper(charged, "UPDATE answers SET answer = replace(answer, '12.0', '13.0')")
    refused(lambda: charged.answer("people", "request"))


def test_canonical_text_is_one_text_for_one_value() -> None:
    assert canonical({"b": 1, "a": [1.5, None, "ε"]}) == '{"a":[1.5,null,"ε"],"b":1}'.encode()
    with pytest.raises(ValueError):
        canonical(float("nan"))


def same(total: tuple[int, ...], places: int) -> tuple[int, ...]:
    """A budget that was never counted otherwise."""
    return total


def test_a_chain_is_followed_link_by_link() -> None:
    first = Entry.after(1, store.FIRST, {"did": "registered"})
    second = Entry.after(2, first.hash, {"did": "charged", "grows": [5]})
    assert verify_chain("people", [first, second], 1, same).spent == (5,)
    for wrong in ([second], [first, first], [first, Entry.after(3, first.hash, {})]):
        refused(lambda wrong=wrong: verify_chain("people", wrong, 1, same))
    refused(lambda: verify_chain("people", [first, Entry.after(2, first.hash, {"grows": [-5]})], 1, same))


def test_the_codes_tell_nothing_without_the_key(charged: Ledger) -> None:
    """A guess of the data cannot be tested with what a history shows."""
    from jostle.engine.files import open_file
    from jostle.privacy.ledger.registered import file_digest

    dataset = charged.dataset("people")
    guess = file_digest(open_file(dataset.terms.path))
    shown = json.dumps([dict(e.content) for e in charged.history("people")])
    assert guess not in shown and digest(guess) not in shown and dataset.key.hex() not in shown
    assert store.sealed(store.new_key(), "data", guess) != dataset.state.code
    assert dataset.key.hex() not in repr(dataset) and repr(dataset.key) not in repr(dataset)
