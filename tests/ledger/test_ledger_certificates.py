"""Certificates: they hold by themselves, say nothing of other programs, and cannot be changed."""

from __future__ import annotations

import copy
import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from ledger_place import DATASET, Place

from jostle.diagnostics import Refusal
from jostle.events import Event
from jostle.plan.digest import digest
from jostle.privacy.ledger.ledger import Ledger
from jostle.tools.data import certificate_of, check, is_ours

MINE = DATASET + (
    "n = {{ select count(*) from people where age > 40 with epsilon 0.25 }}\n"
    "h = laplace(histogram(people, x = age)) with epsilon 0.5\nrelease n\nrelease h\n"
)
OTHER = DATASET + "secret_interest = {{ select count(*) from people where age == 77 with epsilon 0.125 }}\n"


def runs(place: Place) -> tuple[Ledger, list[Event]]:
    """Mine, with another program's charge between its two."""
    session = place.session()
    other_ran: list[bool] = []

    def between(event: Event) -> None:
        if event.kind == "query" and not other_ran:
            other_ran.append(place.run(OTHER).ok)

    session._listeners.append(between)
    result = place.run(MINE, session)
    assert result.ok and other_ran == [True]
    return Ledger(place.path), result.events


def holds(document: Any) -> bool:
    try:
        check(document)
    except Refusal as refusal:
        assert refusal.first.kind == "LedgerError"
        return False
    return True


def test_a_certificate_shows_its_own_charges_and_holds(owned: Place) -> None:
    ledger, events = runs(owned)
    document = json.loads(json.dumps(certificate_of(ledger, "people", events)))
    assert check(document) == 2 and is_ours(ledger, document)
    assert [(c["asked"], c["amount"], c["mechanism"], c["line"]) for c in document["charges"]] == [
        ("count", "epsilon 0.25", "laplace", 2), ("vector", "epsilon 0.5", "laplace", 3),
    ]  # fmt: skip
    assert document["protects"] == "rows" and document["counted"] == "epsilon (pure)"
    assert [link["number"] for link in document["history"]["entries"]] == [2, 3, 4]
    values = {e.name: e.fields["value"] for e in events if e.kind == "release"}
    assert document["released"] == {name: digest(value) for name, value in values.items()}


def test_it_holds_nothing_of_others_and_no_code_of_the_data(owned: Place) -> None:
    ledger, events = runs(owned)
    text = json.dumps(certificate_of(ledger, "people", events))
    dataset = ledger.dataset("people")
    foreign = ledger.history("people")[2].content
    assert foreign["amount"] == "epsilon 0.125"
    for hidden in (
        dataset.key.hex(), dataset.state.code, dataset.terms.path, foreign["amount"], foreign["digest"],
        foreign["plan"], "secret_interest", "0.875", '"3"', "epsilon 3",
    ):  # fmt: skip
        assert hidden not in text


@pytest.mark.parametrize(
    "path",
    [
        ("charges", 0, "amount"), ("charges", 1, "mechanism"), ("history", "previous"), ("history", "hash"),
        ("history", "entries", 0, "content", "amount"), ("history", "entries", 0, "content", "time"),
        ("history", "entries", 1, "digest"), ("history", "entries", 2, "number"), ("certificate",),
    ],
)  # fmt: skip
def test_a_changed_certificate_does_not_hold(owned: Place, path: tuple[Any, ...]) -> None:
    ledger, events = runs(owned)
    document = copy.deepcopy(certificate_of(ledger, "people", events))
    at: Any = document
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = 7 if isinstance(at[path[-1]], int) else "epsilon 0.1"
    assert not holds(document) and not is_ours(ledger, document)


def test_a_cut_certificate_does_not_hold(owned: Place) -> None:
    ledger, events = runs(owned)
    document = certificate_of(ledger, "people", events)
    for name in document:
        if name not in ("code", "released", "dataset", "protects", "counted"):
            assert not holds({k: v for k, v in document.items() if k != name})
    short = copy.deepcopy(document)
    short["history"]["entries"].pop()
    assert not holds(short)
    assert holds({**document, "released": {}}) and not is_ours(ledger, {**document, "released": {}})


def test_a_certificate_is_not_of_a_ledger_that_was_restored_from_before(owned: Place) -> None:
    """It was said to be made by this ledger as it stands, whose history had none of its charges."""
    with closing(sqlite3.connect(owned.path)) as now, closing(sqlite3.connect(owned.folder / "old.db")) as old:
        now.backup(old)
    ledger, events = runs(owned)
    document = certificate_of(ledger, "people", events)
    (owned.folder / "old.db").chmod(0o600)
    assert is_ours(ledger, document) and not is_ours(Ledger(owned.folder / "old.db"), document)


def test_a_run_that_the_ledger_does_not_know_gets_none(owned: Place) -> None:
    ledger, events = runs(owned)
    run = next(e for e in events if e.kind == "run")
    number, hash = run.fields["ledger"]["people"][0]
    for told in ([[number, "0" * 64]], [[99, hash]], [[0, hash]]):
        run.fields["ledger"] = {"people": told}
        with pytest.raises(Refusal) as caught:
            certificate_of(ledger, "people", events)
        assert caught.value.first.kind == "LedgerError"
    for told in ([], [["x", hash]], 7):
        run.fields["ledger"] = {"people": told}
        with pytest.raises(Refusal) as caught:
            certificate_of(ledger, "people", events)
        assert caught.value.first.kind == "DataError"


def test_a_replayed_run_is_certified_by_the_charges_that_paid(owned: Place) -> None:
    program = MINE.replace("h = laplace(histogram(people, x = age)) with epsilon 0.5\n", "").replace("release h\n", "")
    first, second = owned.run(program), owned.run(program)
    ledger = Ledger(owned.path)
    assert certificate_of(ledger, "people", first.events) == certificate_of(ledger, "people", second.events)
