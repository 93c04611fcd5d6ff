"""The ledger: registered datasets, what each has lost for ever, and the history of every charge.

A charge is one transaction that tests every dataset it meets against its limit and writes all of them down, or none;
it is on disk before anything is read. Between runs everything adds: what a run hands in is by how much its own tree
of budgets grew at the root, so parallel parts count as their maximum within one run only. Nothing is given back.

What stands in the ledger is tested whenever it is used: a state whose seal does not hold is damage, and damage is
refused. Only an owner's commands register and update; a program can charge and look.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.diagnostics import did_you_mean, refuse
from jostle.privacy import history
from jostle.privacy.budget import Cost
from jostle.privacy.history import Entry, Verified
from jostle.privacy.ledgerfile import LedgerFile, default_path
from jostle.privacy.registered import FileMark, State, Terms, file_digest

if TYPE_CHECKING:
    import sqlite3

MOST_ANSWER = 2**20  # characters of a stored answer


@dataclass(frozen=True, slots=True)
class Dataset:
    """A registered dataset as it stands. `key` codes and seals; it is not to be shown."""

    terms: Terms
    state: State
    key: bytes

    def __repr__(self) -> str:
        return f"Dataset({self.terms.name!r})"


@dataclass(frozen=True, slots=True)
class Growth:
    """What one charge adds to one dataset's total, for data of `version`; `content` goes into the history."""

    name: str
    version: int
    amount: Cost
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where a charge stands in a history."""

    dataset: str
    number: int
    hash: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """Receipts for a charge that was written down; none where it did not fit. `before`: each total before it."""

    receipts: tuple[Receipt, ...]
    before: tuple[Cost, ...]
    refused: int | None = None  # the first that did not fit


class Ledger:
    """The verbs on a ledger file. Every one raises `LedgerError` where the file cannot be used."""

    def __init__(self, path: str | Path | None = None, timeout: float = 30.0) -> None:
        self.file = LedgerFile(path if path is not None else default_path(), timeout)

    # For programs ----------------------------------------------------------------------------------

    def open(self, name: str) -> Dataset:
        """A dataset, after its file was found to be the one that was registered; its `mark` is that of this moment."""
        with self.file.reading() as connection:
            found = self._find(connection, name)
        now = _mark(found.terms.path)
        if now is None:
            raise refuse("LedgerError", f"the file of `{name}` is not where it was registered", help="ask its owner")
        if now == found.state.mark:
            return found
        if history.sealed(found.key, "data", file_digest(found.terms.path)) != found.state.code:
            raise refuse(
                "LedgerError", f"the file of `{name}` has changed since it was registered",
                help=f"its owner looks at it and runs: jostle data update {name}",
            )  # fmt: skip
        return replace(found, state=replace(found.state, mark=now))

    def same_file(self, dataset: Dataset) -> None:
        """Refuses where the file is not as it was when `dataset` was opened: before data are read, and by `stat`."""
        if _mark(dataset.terms.path) != dataset.state.mark:
            raise refuse(
                "LedgerError", f"the file of `{dataset.terms.name}` changed while this program ran", help="run it again"
            )

    def named(self, path: str | Path) -> str | None:
        """The dataset whose file this is, by whatever path; the ledger's own files are refused."""
        if not self.file.exists():
            return None
        if self.file.is_part(path):
            raise refuse("DataError", f"`{path}` is the ledger itself, which no program reads")
        here, real = _mark(path), os.path.realpath(path)
        for dataset in self.datasets():
            mark = dataset.state.mark
            moved = _mark(dataset.terms.path)
            marks = [(m.device, m.inode) for m in (mark, moved) if m is not None]
            if dataset.terms.path == real or (here is not None and (here.device, here.inode) in marks):
                return dataset.terms.name
        return None

    def charge(self, growths: Sequence[Growth]) -> Outcome:
        """Writes all of these down, or none of them where one does not fit or anything is wrong."""
        with self.file.writing() as connection:
            found = [self._find(connection, growth.name) for growth in growths]
            before = tuple(dataset.state.spent for dataset in found)
            for at, (dataset, growth) in enumerate(zip(found, growths, strict=True)):
                _check(dataset, growth)
                if not dataset.terms.measure.admits(_sum(dataset.state.spent, growth.amount)):
                    return Outcome((), before, at)
            receipts = tuple(self._append(connection, *pair) for pair in zip(found, growths, strict=True))
        return Outcome(receipts, before)

    def answer(self, name: str, request: str) -> tuple[Any, Receipt] | None:
        """The stored answer to a request, and the charge that paid for it."""
        with self.file.reading() as connection:
            row = connection.execute(
                "SELECT a.number, a.answer, a.code, h.hash FROM answers a JOIN history h USING (dataset, number) "
                "WHERE a.dataset = ? AND a.request = ?", (name, request),
            ).fetchone()  # fmt: skip
            if row is None:
                return None
            key = self._find(connection, name).key
        if not history.holds(key, "answer", [name, request, row[0], row[1]], row[2]):
            raise history.broken(name, "a stored answer was changed")
        return json.loads(row[1]), Receipt(name, row[0], row[3])

    def remember(self, receipt: Receipt, request: str, answer: Any) -> None:
        """Stores a released answer beside its charge; the first one for a request stays."""
        text = json.dumps(answer)
        if len(text) > MOST_ANSWER:
            return
        name, number = receipt.dataset, receipt.number
        with self.file.writing() as connection:
            key = self._find(connection, name).key
            code = history.sealed(key, "answer", [name, request, number, text])
            connection.execute(
                "INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?)", (name, request, number, text, code)
            )

    # For owners ------------------------------------------------------------------------------------

    def register(self, terms: Terms) -> Dataset:
        """Adds a dataset; its file may stand under one name only. `DataError` where it cannot."""
        self.file.create()
        mark, bytes_digest, key = FileMark.of(terms.path), file_digest(terms.path), history.new_key()
        code = history.sealed(key, "data", bytes_digest)
        with self.file.writing() as connection:
            for other in self._all(connection):
                if other.terms.name == terms.name:
                    raise refuse("DataError", f"`{terms.name}` is registered already", help="give another name")
                same = (other.state.mark.device, other.state.mark.inode) == (mark.device, mark.inode)
                if same or other.terms.path == terms.path:
                    raise refuse(
                        "DataError", f"this file is registered already, as `{other.terms.name}`",
                        help="one file has one budget",
                    )  # fmt: skip
            said = terms.as_json()
            content = {"did": "registered", "time": now(), "version": 1, "data": code, "terms": history.digest(said)}
            entry = Entry.after(1, history.FIRST, content)
            state = State(mark, 1, code, (0,) * terms.measure.width, 1, entry.hash)
            made = Dataset(terms, state, key)
            connection.execute(
                "INSERT INTO datasets VALUES (?, ?, ?, ?, ?)",
                (terms.name, json.dumps(said), json.dumps(state.as_json()), _seal(made), key),
            )
            _insert(connection, terms.name, entry)
        return made

    def update(self, name: str, check: Callable[[Terms], None]) -> Dataset:
        """Takes the file as it is now for the dataset's data; what was spent stays spent. `check` looks at it first."""
        with self.file.reading() as connection:
            terms = self._find(connection, name).terms
        check(terms)
        with self.file.writing() as connection:
            found = self._find(connection, name)
            mark, code = FileMark.of(terms.path), history.sealed(found.key, "data", file_digest(terms.path))
            version = found.state.version + (code != found.state.code)
            content = {"did": "updated", "time": now(), "version": version, "data": code}
            made = replace(found, state=replace(found.state, mark=mark, version=version, code=code))
            return self._moved(connection, made, content, ())[0]

    def datasets(self) -> list[Dataset]:
        with self.file.reading() as connection:
            return self._all(connection)

    def dataset(self, name: str) -> Dataset:
        with self.file.reading() as connection:
            return self._find(connection, name)

    def history(self, name: str) -> list[Entry]:
        with self.file.reading() as connection:
            self._find(connection, name)
            return _entries(connection, name)

    def verify(self, name: str) -> Verified:
        """Follows the whole chain to the sealed end. Raises `LedgerError` where anything does not hold."""
        with self.file.reading() as connection:
            found = self._find(connection, name)
            entries = _entries(connection, name)
        held = history.verify(name, entries, found.terms.measure.width)
        if (held.entries, held.head) != (found.state.entries, found.state.head):
            raise history.broken(name, f"it ends after entry {held.entries} of {found.state.entries}")
        if held.spent != found.state.spent or not found.terms.measure.admits(held.spent):
            raise history.broken(name, "its charges do not add up to the total")
        if entries[0].content.get("terms") != history.digest(found.terms.as_json()):
            raise history.broken(name, "what was registered is not what stands there now")
        return held

    # Inside ----------------------------------------------------------------------------------------

    def _all(self, connection: sqlite3.Connection) -> list[Dataset]:
        rows = connection.execute("SELECT name, terms, state, seal, key FROM datasets ORDER BY name").fetchall()
        return [self._read(*row) for row in rows]

    def _find(self, connection: sqlite3.Connection, name: str) -> Dataset:
        row = connection.execute(
            "SELECT name, terms, state, seal, key FROM datasets WHERE name = ?", (name,)
        ).fetchone()
        if row is None:
            known = [str(other) for (other,) in connection.execute("SELECT name FROM datasets")]
            raise refuse(
                "LedgerError", f"no dataset `{name}` is registered",
                help=did_you_mean(name, known) or f"its owner registers it: jostle data register {name} FILE …",
            )  # fmt: skip
        return self._read(*row)

    def _read(self, name: str, terms: str, state: str, seal: str, key: bytes) -> Dataset:
        try:
            found = Dataset(Terms.from_json(json.loads(terms)), State.from_json(json.loads(state)), key)
            good = found.terms.name == name and len(found.state.spent) == found.terms.measure.width
            if good and history.holds(key, "state", [found.terms.as_json(), found.state.as_json()], seal):
                return found
        except (KeyError, TypeError, ValueError, AttributeError):
            pass
        raise self.file.refusal(f"is damaged: what it says of `{name}` does not hold", "its owner restores it")

    def _append(self, connection: sqlite3.Connection, dataset: Dataset, growth: Growth) -> Receipt:
        content = {"did": "charged", "time": now(), "version": growth.version, **growth.content}
        _, entry = self._moved(connection, dataset, content, growth.amount)
        return Receipt(growth.name, entry.number, entry.hash)

    def _moved(
        self, connection: sqlite3.Connection, dataset: Dataset, content: dict[str, Any], amount: Cost
    ) -> tuple[Dataset, Entry]:
        """The dataset with one entry more."""
        name, state = dataset.terms.name, dataset.state
        if amount:
            content = {**content, "grows": list(amount)}
        entry = Entry.after(state.entries + 1, state.head, content)
        spent = _sum(state.spent, amount) if amount else state.spent
        made = replace(dataset, state=replace(state, spent=spent, entries=entry.number, head=entry.hash))
        changed = connection.execute(
            "UPDATE datasets SET state = ?, seal = ? WHERE name = ?",
            (json.dumps(made.state.as_json()), _seal(made), name),
        )
        if changed.rowcount != 1:
            raise self.file.refusal("cannot be written")
        _insert(connection, name, entry)
        return made, entry


def now() -> str:
    """The time to the minute: a history is no clock for private work."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")


def _check(dataset: Dataset, growth: Growth) -> None:
    if dataset.state.version != growth.version:
        raise refuse(
            "LedgerError", f"the data of `{growth.name}` were updated while this program ran", help="run it again"
        )
    if len(growth.amount) != dataset.terms.measure.width or min(growth.amount) < 0:
        raise refuse("LedgerError", f"this charge on `{growth.name}` is no charge", help="nothing was charged")


def _seal(dataset: Dataset) -> str:
    return history.sealed(dataset.key, "state", [dataset.terms.as_json(), dataset.state.as_json()])


def _sum(a: Cost, b: Cost) -> Cost:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _mark(path: str | Path) -> FileMark | None:
    try:
        return FileMark.of(path)
    except (OSError, ValueError):
        return None


def _insert(connection: sqlite3.Connection, name: str, entry: Entry) -> None:
    connection.execute(
        "INSERT INTO history VALUES (?, ?, ?, ?, ?)",
        (name, entry.number, history.canonical(entry.content).decode(), entry.previous, entry.hash),
    )


def _entries(connection: sqlite3.Connection, name: str) -> list[Entry]:
    rows = connection.execute(
        "SELECT number, content, previous, hash FROM history WHERE dataset = ? ORDER BY number", (name,)
    ).fetchall()
    try:
        return [Entry(number, dict(json.loads(content)), previous, hash) for number, content, previous, hash in rows]
    except (TypeError, ValueError):
        raise history.broken(name, "an entry cannot be read") from None
