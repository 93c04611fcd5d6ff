"""The rows of a ledger: reading a dataset and testing its seal, and adding an entry to its history.

A dataset and the entry that moved it are always written together, within a transaction that the caller has opened;
nothing is decided here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from jostle.accounting.budget_tree import Cost
from jostle.diagnostics import did_you_mean, refuse
from jostle.jsontext import canonical
from jostle.privacy.ledger import history
from jostle.privacy.ledger.history import Entry
from jostle.privacy.ledger.registered import State, Terms
from jostle.privacy.ledger.store import Connection, Store
from jostle.records import replace


class Dataset(Struct, frozen=True):
    """A registered dataset as it stands. `key` codes and seals; it is not to be shown."""

    terms: Terms
    state: State
    key: bytes

    def __repr__(self) -> str:
        return f"Dataset({self.terms.name!r})"


class Rows(Struct, frozen=True):
    """The rows that one open transaction sees."""

    store: Store
    connection: Connection

    def all(self) -> list[Dataset]:
        rows = self.connection.execute("SELECT name, terms, state, seal, key FROM datasets").fetchall()
        return [self._read(*row) for row in sorted(rows, key=lambda row: str(row[0]))]

    def find(self, name: str) -> Dataset:
        row = self.connection.execute(
            "SELECT name, terms, state, seal, key FROM datasets WHERE name = ?", (name,)
        ).fetchone()
        if row is None:
            names = [str(other) for (other,) in self.connection.execute("SELECT name FROM datasets").fetchall()]
            raise refuse(
                "LedgerError", f"no dataset `{name}` is registered",
                help=did_you_mean(name, names) or f"its owner registers it: jostle data register {name} FILE …",
            )  # fmt: skip
        return self._read(*row)

    def entries(self, name: str) -> list[Entry]:
        stored = self.connection.execute(
            "SELECT number, content, previous, hash FROM history WHERE dataset = ? ORDER BY number", (name,)
        ).fetchall()
        try:
            return [Entry(number, dict(json.loads(text)), previous, hash) for number, text, previous, hash in stored]
        except (TypeError, ValueError):
            raise history.broken(name, "an entry cannot be read") from None

    def add(self, terms: Terms, state: State, key: bytes, entry: Entry) -> Dataset:
        """A dataset that was not there, with its first entry."""
        dataset = Dataset(terms, state, key)
        self.connection.execute(
            "INSERT INTO datasets VALUES (?, ?, ?, ?, ?)",
            (terms.name, json.dumps(terms.as_json()), json.dumps(state.as_json()), _seal(dataset), key),
        )
        self._insert(terms.name, entry)
        return dataset

    def move(self, dataset: Dataset, content: Mapping[str, Any], amount: Cost = ()) -> Entry:
        """Writes `dataset` with one entry more, which grew its total by `amount`."""
        name, state = dataset.terms.name, dataset.state
        grown_content = {**content, "grows": list(amount)} if amount else dict(content)
        entry = Entry.after(state.entries + 1, state.head, grown_content)
        spent = plus(state.spent, amount) if amount else state.spent
        moved = replace(dataset, state=replace(state, spent=spent, entries=entry.number, head=entry.hash))
        changed = self.connection.execute(
            "UPDATE datasets SET state = ?, seal = ? WHERE name = ?",
            (json.dumps(moved.state.as_json()), _seal(moved), name),
        )
        if changed.rowcount != 1:
            raise self.store.refusal("cannot be written")
        self._insert(name, entry)
        return entry

    def _read(self, name: str, terms: str, state: str, seal: str, key: bytes) -> Dataset:
        try:
            dataset = Dataset(Terms.from_json(json.loads(terms)), State.from_json(json.loads(state)), key)
            measure = dataset.terms.measure
            spent = measure.completed(dataset.state.spent, measure.width)
            good = dataset.terms.name == name and len(spent) == measure.width
            if good and history.holds(key, "state", [dataset.terms.as_json(), dataset.state.as_json()], seal):
                return replace(dataset, state=replace(dataset.state, spent=spent))
        except (KeyError, TypeError, ValueError, AttributeError):
            pass
        raise self.store.refusal(f"is damaged: what it says of `{name}` does not hold", "its owner restores it")

    def _insert(self, name: str, entry: Entry) -> None:
        self.connection.execute(
            "INSERT INTO history VALUES (?, ?, ?, ?, ?)",
            (name, entry.number, canonical(entry.content).decode(), entry.previous, entry.hash),
        )


def now() -> str:
    """The time to the minute: a history is no clock for private work."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")


def plus(a: Cost, b: Cost) -> Cost:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _seal(dataset: Dataset) -> str:
    return history.sealed(dataset.key, "state", [dataset.terms.as_json(), dataset.state.as_json()])
