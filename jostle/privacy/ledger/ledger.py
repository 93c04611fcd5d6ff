"""The ledger: registered datasets, the total that each has spent for ever, and the history of every charge.

A charge is one transaction that tests every dataset of a measurement against its limit and writes all charges or none.
It is on disk before anything is read. Between runs all charges add up: a run reports the growth of its own budget tree
at the root, so parallel parts count as their maximum within one run only. Charges are never refunded. A state with an
invalid seal is damaged, and refused. Only commands of an owner register and update datasets; programs can charge and
read the state.

`Account` is the session's side, and a charge calls only `settle`. Charges of other programs are added to the session's
own meters, so that `left` and `spent` include them. The ledger reads no data.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from datetime import date, datetime
from pathlib import Path, PurePath
from typing import Any

from msgspec import Struct, field

from jostle.accounting.amounts import Amount, Cost, Meter
from jostle.accounting.amounts import Path as TreePath
from jostle.accounting.definitions import Charge, ChargePurpose, Price, parts_of
from jostle.diagnostics import refuse
from jostle.engine.files import OpenFile, identities, open_file, stem
from jostle.plan.digest import digest, plan_digest
from jostle.privacy.ledger import grants, store
from jostle.privacy.ledger.file import default_place, store_at
from jostle.privacy.ledger.registered import FileMark, Mark, State, TableMark, Terms, file_digest
from jostle.privacy.ledger.store import Dataset, Entry, Rows, now, plus
from jostle.records import replace
from jostle.source import Source as Text
from jostle.source import Span

Check = Callable[[Terms, OpenFile], None]
"""Refuses a file that does not match its terms."""

COPY = "--copy"  # the owner's option for a file with the bytes of another one
MOST_ANSWER = 2**20  # the largest number of characters of a stored answer


class Contents(Struct, frozen=True):
    """The identity of data, and a digest of their rows or bytes."""

    mark: Mark
    digest: str


class Growth(Struct, frozen=True):
    """What one charge adds to one dataset's total, for data of `version`; `content` goes into the history. `parts` are
    added to the identity of a server's data. `so_far` is the growth by earlier charges of this program. `beside` are
    the opened tables of the same persons: if one is frozen, charges are refused."""

    name: str
    version: int
    amount: Cost
    content: Mapping[str, Any]
    parts: frozenset[Hashable] = frozenset()
    so_far: int = 0
    beside: tuple[str, ...] = ()
    entries: int | None = None  # for a budget of each part: the length of the history that it was computed from


class Receipt(Struct, frozen=True):
    """The position of a charge in a history."""

    dataset: str
    number: int
    hash: str


class Outcome(Struct, frozen=True):
    """Receipts of a charge; empty if it did not fit. `before` has each total before it."""

    receipts: tuple[Receipt, ...]
    before: tuple[Cost, ...]
    refused: int | None = None  # the index of the first growth that did not fit
    late: bool = False  # whether a history has grown meanwhile, so that an amount must be computed again


class Ledger:
    """The operations on a ledger at a path or a URL. Each raises `LedgerError` if the ledger cannot be used.

    For a `grantee`, programs can open only datasets on which that analyst has grants (only those in `granted`, the
    grants when their run was accepted, if given), and count in these grants. Charges have the time at which their run
    `began`, in histories and for `per_week` and `until`, since the time of a charge depends on rows. If `within` is
    given, programs open files in that folder only."""

    def __init__(
        self, path: str | Path | None = None, timeout: float = 30.0, grantee: str = "", began: str = "",
        within: str = "", granted: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        self.store, self.grantee = store_at(path if path is not None else default_place(), timeout), grantee
        self.began, self.within, self.granted = began, within, granted

    # For programs ----------------------------------------------------------------------------------

    def open(self, name: str) -> tuple[Dataset, OpenFile | None]:
        """A dataset with its current `mark`, and its open file, which was verified to be the registered one. Data of a
        server are opened by an engine, by their `mark`."""
        dataset = self.stated(name)
        store.need_seen(self.store, dataset)
        if dataset.terms.server is not None:
            return dataset, None
        if _mark(dataset.terms.path) is None:
            raise refuse("LedgerError", f"the file of `{name}` is not where it was registered", help="ask its owner")
        file = open_file(dataset.terms.path)
        here = FileMark.from_status(file.status)
        if here == dataset.state.mark:
            return dataset, file
        key = self.dataset(dataset.terms.within).key if dataset.terms.within else dataset.key
        if store.sealed(key, "data", file_digest(file)) != dataset.state.code:
            raise refuse(
                "LedgerError", f"the file of `{name}` has changed since it was registered",
                help=f"its owner looks at it and runs: jostle data update {name}",
            )  # fmt: skip
        return replace(dataset, state=replace(dataset.state, mark=here)), file

    def stated(self, name: str) -> Dataset:
        """A dataset for a program, with the grantee's limit. The refusal is the same without a dataset or grant."""
        if not self.grantee:
            if within := (dataset := self.dataset(name)).terms.within:
                raise refuse("LedgerError", f"`{name}` is a grant, not data", help=f'`dataset("{within}")`')
            return dataset
        with self.store.reading() as connection:
            datasets = {dataset.terms.name: dataset for dataset in Rows(self.store, connection).all()}
        grant = datasets.get(grants.grant_name(name, self.grantee))
        if grant is None or grant.terms.within != name or (self.granted is not None and name not in self.granted):
            raise grants.no_grant(name)
        for one in (datasets[name], grant):
            grants.need_open(one, self.began or now())
        return grants.with_grant(datasets[name], grant)

    def same_file(self, dataset: Dataset) -> None:
        """Refuses a file that has changed since `dataset` was opened, by `stat`, before data are read. The engine tests
        data of a server."""
        if dataset.terms.server is None and _mark(dataset.terms.path) != dataset.state.mark:
            raise refuse(
                "LedgerError", f"the file of `{dataset.terms.name}` changed while this program ran", help="run it again"
            )

    def named(self, file: OpenFile) -> str | None:
        """The dataset of a file, under any path, or of its compressed copy. The ledger's own files are refused. Bytes
        are not compared, since a refusal would confirm a guess of the file's content."""
        if not self.store.exists():
            return None
        if self.store.is_part(file.name):
            raise refuse("DataError", f"`{file.path}` is the ledger itself, which no program reads")
        here = {file.identity, *identities(file.real)}
        for dataset in self.datasets():
            if _same_stem(dataset.terms.path, file.real) or here & _marks(dataset):
                return dataset.terms.name
        return None

    def known_as(self, identity: Hashable) -> str | None:
        """The dataset whose file is part of the identity of data of a server or in memory."""
        if all(isinstance(part, int) for part in parts_of(identity)) or not self.store.exists():
            return None
        return next((dataset.terms.name for dataset in self.datasets() if parts_of(identity) & _marks(dataset)), None)

    def charge(self, growths: Sequence[Growth]) -> Outcome:
        """Writes all charges, or none if one does not fit or an error occurs."""
        began = self.began or now()
        with self.store.writing() as connection:
            rows = Rows(self.store, connection)
            datasets = [rows.find(growth.name) for growth in growths]
            before = tuple(dataset.state.spent for dataset in datasets)
            for name in {name for growth in growths for name in growth.beside}:
                grants.need_open(rows.find(name), began)
            for at, (dataset, growth) in enumerate(zip(datasets, growths, strict=True)):
                whole = rows.find(dataset.terms.within) if dataset.terms.within else dataset
                _check(whole, growth)
                for one in {dataset.terms.name: dataset, whole.terms.name: whole}.values():
                    grants.need_open(one, began)
                    if growth.entries not in (None, one.state.entries):
                        return Outcome((), before, late=True)
                    by_grants = one is not dataset and one.terms.measure.kind == "approximate"
                    if not by_grants and not one.terms.measure.admits(plus(one.state.spent, growth.amount)):
                        return Outcome((), before, at)
                if whole is dataset:
                    grants.beside_grants(rows, dataset, growth.amount)
                else:
                    grants.within_limits(rows, dataset, growth.amount, growth.so_far, began)
            for dataset, growth in zip(datasets, growths, strict=True):
                if dataset.terms.within:  # the dataset of a grant is charged the same
                    content = {**growth.content, "grant": growth.name}
                    _charged(rows, rows.find(dataset.terms.within), replace(growth, content=content))
            receipts = tuple(_charged(rows, *pair) for pair in zip(datasets, growths, strict=True))
        return Outcome(receipts, before)

    def answer(self, name: str, request: str) -> tuple[Any, Receipt] | None:
        """The stored answer to a request, and the charge that paid for it."""
        with self.store.reading() as connection:
            row = connection.execute(
                "SELECT a.number, a.answer, a.code, h.hash FROM answers a JOIN history h USING (dataset, number) "
                "WHERE a.dataset = ? AND a.request = ?", (name, request),
            ).fetchone()  # fmt: skip
            if row is None:
                return None
            key = Rows(self.store, connection).find(name).key
        if not store.holds(key, "answer", [name, request, row[0], row[1]], row[2]):
            raise store.broken(name, "a stored answer was changed")
        return json.loads(row[1]), Receipt(name, row[0], row[3])

    def remember(self, receipt: Receipt, request: str, answer: Any) -> None:
        """Stores a released answer with its charge. The first answer to a request is kept."""
        text = json.dumps(answer)
        if len(text) > MOST_ANSWER:
            return
        name, number = receipt.dataset, receipt.number
        with self.store.writing() as connection:
            key = Rows(self.store, connection).find(name).key
            code = store.sealed(key, "answer", [name, request, number, text])
            connection.execute(
                "INSERT INTO answers VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", (name, request, number, text, code)
            )

    # For owners ------------------------------------------------------------------------------------

    def register(
        self, terms: Terms, check: Check | None = None, *, copy: bool = False, contents: Contents | None = None
    ) -> Dataset:
        """Adds a dataset. Data, a file's compressed copy, and data with the same bytes or rows (unless `copy` allows
        it) can have one name only; otherwise `DataError`. `check` tests the file before it is registered. For data of a
        server an engine has computed their `contents`."""
        contents = contents or _contents(terms, check)
        here = {*contents.mark.parts, *identities(terms.path)}
        self.store.create()
        key = store.new_key()
        code = store.sealed(key, "data", contents.digest)
        with self.store.writing() as connection:
            rows = Rows(self.store, connection)
            for other in rows.all():
                if other.terms.name == terms.name:
                    raise refuse("DataError", f"`{terms.name}` is registered already", help="give another name")
                _need_other_data(rows, other, terms, here, None if copy else contents.digest)
            terms_digest = digest(terms.as_json())
            content = {"did": "registered", "time": now(), "version": 1, "data": code, "terms": terms_digest}
            entry = Entry.after(1, store.FIRST, content)
            state = State(contents.mark, 1, code, (0,) * terms.measure.width, 1, entry.hash)
            return rows.add(terms, state, key, entry)

    def update(
        self, name: str, check: Check | None = None, *, copy: bool = False, contents: Contents | None = None
    ) -> Dataset:
        """Takes the current data for the dataset's; the spent total is kept. `check` tests a file first. The data may
        not belong to another dataset, nor have its bytes or rows unless `copy` allows it."""
        contents = contents or _contents(self.dataset(name).terms, check)
        with self.store.writing() as connection:
            rows = Rows(self.store, connection)
            dataset = rows.find(name)
            mark = contents.mark
            here = mark.parts if isinstance(mark, TableMark) else frozenset[Hashable]()
            for other in rows.all():
                if other.terms.name != name:
                    _need_other_data(rows, other, None, here, None if copy else contents.digest)
            if isinstance(mark, TableMark):  # earlier identities are kept
                mark = replace(mark, parts=mark.parts | dataset.state.mark.parts)
            code = store.sealed(dataset.key, "data", contents.digest)
            elsewhere = here and here.isdisjoint(dataset.state.mark.parts)  # a restored copy: stored answers are kept
            version = dataset.state.version + (not elsewhere or code != dataset.state.code)
            content = {"did": "updated", "time": now(), "version": version, "data": code}
            rows.move(replace(dataset, state=replace(dataset.state, mark=mark, version=version, code=code)), content)
            return rows.find(name)

    def grant(
        self, name: str, analyst: str, amount: Amount | None, until: str = "", per_program: Amount | None = None,
        per_week: Amount | None = None,
    ) -> Dataset:  # fmt: skip
        """Grants an analyst a part of a dataset's budget. `until` is its last day, such as `2027-01-31`; `per_program`
        and `per_week` limit one program, and all programs of seven days. A linked table has no `amount`."""
        with self.store.writing() as connection:
            rows = Rows(self.store, connection)
            return grants.add_grant(rows, rows.find(name), analyst, amount, until, per_program, per_week)

    def set_status(self, name: str, status: str, who: str) -> None:
        """Freezes (`frozen`) or opens (``) a dataset or a grant, or closes (`closed`) a grant; `who` is recorded."""
        with self.store.writing() as connection:
            rows = Rows(self.store, connection)
            grants.set_status(rows, rows.find(name), status, who)

    def datasets(self) -> list[Dataset]:
        with self.store.reading() as connection:
            return Rows(self.store, connection).all()

    def dataset(self, name: str) -> Dataset:
        with self.store.reading() as connection:
            return Rows(self.store, connection).find(name)

    def history(self, name: str) -> list[Entry]:
        with self.store.reading() as connection:
            rows = Rows(self.store, connection)
            rows.find(name)
            return rows.entries(name)


def _contents(terms: Terms, check: Check | None) -> Contents:
    """The mark and the digest of one open file, which `check` has tested."""
    file = open_file(terms.path)
    if check is not None:
        check(terms, file)
    return Contents(FileMark.from_status(file.status), file_digest(file))


def _need_other_data(rows: Rows, other: Dataset, terms: Terms | None, here: Set[Hashable], digest: str | None) -> None:
    """Refuses data with the identity of another dataset, a file at the path of another's, and the bytes or rows of
    `digest` if another dataset has them, or had them before an update."""
    what = "file" if other.terms.server is None else "table"
    if here & other.state.mark.parts or (terms is not None and _same_stem(other.terms.path, terms.path)):
        message = f"this {what} is registered already, as `{other.terms.name}`"
        raise refuse("DataError", message, help=f"one {what} has one budget")
    if digest is None:
        return
    code = store.sealed(other.key, "data", digest)
    if code == other.state.code or any(entry.content.get("data") == code for entry in rows.entries(other.terms.name)):
        bytes = "bytes" if other.terms.server is None else "rows"
        message = f"this {what} has the {bytes} of the {what} of `{other.terms.name}`, which has a budget already"
        help = f"use that dataset, or say that the same people are meant to have another budget: `{COPY}`"
        raise refuse("DataError", message, help=help)


def _charged(rows: Rows, dataset: Dataset, growth: Growth) -> Receipt:
    content = {"did": "charged", "time": now(), "version": growth.version, **growth.content}
    mark = dataset.state.mark
    if isinstance(mark, TableMark) and mark.own and not growth.parts <= mark.parts:  # a table has new parts
        dataset = replace(dataset, state=replace(dataset.state, mark=replace(mark, parts=mark.parts | growth.parts)))
    entry = rows.move(dataset, content, growth.amount)
    return Receipt(growth.name, entry.number, entry.hash)


def _check(dataset: Dataset, growth: Growth) -> None:
    if dataset.state.version != growth.version:
        raise refuse(
            "LedgerError", f"the data of `{growth.name}` were updated while this program ran", help="run it again"
        )
    if len(growth.amount) != dataset.terms.measure.width or min(growth.amount) < 0:
        raise refuse("LedgerError", f"this charge on `{growth.name}` is no charge", help="nothing was charged")


def seen(dataset: Dataset, identity: Hashable) -> Dataset:
    """A dataset of a server's table with its current identity: its parts and heirs may have changed."""
    mark = dataset.state.mark
    if not isinstance(mark, TableMark):
        return dataset
    return replace(dataset, state=replace(dataset.state, mark=replace(mark, parts=parts_of(identity))))


def _marks(dataset: Dataset) -> set[Hashable]:
    """The identities of a dataset's file, when it was registered and now."""
    return {part for m in (dataset.state.mark, _mark(dataset.terms.path)) if m is not None for part in m.parts}


def _same_stem(one: str, other: str) -> bool:
    return bool(one and other) and stem(one) == stem(other)


def _mark(path: str | Path) -> FileMark | None:
    try:
        return FileMark.from_status(os.stat(path)) if path else None
    except (OSError, ValueError):
        return None


class Account(Struct, eq=False):
    """A registered dataset as one session has opened it. `data` is the engine's key of its file.

    `linked` are the opened tables of its persons: charges are refused if the file of one has changed.
    """

    ledger: Ledger
    dataset: Dataset
    data: str = ""
    receipts: list[Receipt] = field(default_factory=list)
    requests: dict[str, int] = field(default_factory=dict)  # how often each request was made in this run
    linked: dict[str, Dataset] = field(default_factory=dict)
    so_far: int = 0  # the requested amounts of this run's charges
    label: object = None  # the partition by the column `each`, if the dataset has one
    entries: int = 0  # then the number of history entries in the session's meter

    def begin(self) -> None:
        """Another program of the session begins."""
        self.receipts.clear()
        self.requests.clear()
        self.so_far = 0

    @property
    def name(self) -> str:
        return self.dataset.terms.name

    @property
    def version(self) -> int:
        return self.dataset.state.version

    @property
    def spent(self) -> Cost:
        return self.dataset.state.spent

    def released_steps(self, stream: str) -> list[dict[str, Any]]:
        """The releases of a stream in the order of its steps: parts with the `numbers` of the steps up to `until`."""
        parts: list[dict[str, Any]] = []
        while answer := self.ledger.answer(self.name, digest([stream, parts[-1]["until"] if parts else 0])):
            parts.append(answer[0])
            if answer[1] not in self.receipts:
                self.receipts.append(answer[1])
        return parts

    def keep_steps(self, stream: str, after: int, until: int, numbers: object) -> None:
        """Stores the releases of the steps after `after`. Those that another program stored are kept."""
        self.ledger.remember(self.receipts[-1], digest([stream, after]), {"until": until, "numbers": numbers})

    def counted(self, path: TreePath) -> TreePath:
        """The path of a charge between runs: its part, for a budget of each part; else the whole."""
        if not self.dataset.terms.each:
            return path
        return path[:1] if path and path[0][0] == self.label else ()

    def _replay(self, meter: Meter) -> None:
        """Adds new entries of the history to the meter, each charge on its part."""
        history = self.ledger.history(self.name)
        for entry in history[self.entries :]:
            if "cost" in entry.content:
                part = entry.content.get("part")
                if part is not None and self.dataset.terms.unit.each:  # a date, or a time
                    part = [(date if len(part[0]) == len("2026-01-05") else datetime).fromisoformat(part[0])]
                meter.add(() if part is None else ((self.label, part[0]),), tuple(entry.content["cost"]))
        self.entries = len(history)

    def catch_up(self, meter: Meter, total: Cost) -> None:
        """Adds at the root what others have spent since. A smaller total belongs to an older ledger, and is refused."""
        if self.dataset.terms.each:
            self._replay(meter)
            state = self.ledger.dataset(self.name).state
            if self.entries == state.entries and meter.spent != state.spent:
                raise store.broken(self.name, "its parts do not add up to the total")
            return
        behind = tuple(there - here for there, here in zip(total, meter.spent, strict=True))
        if min(behind) < 0:
            raise refuse(
                "LedgerError", f"the ledger knows less of `{self.name}` than this program has spent",
                help="was an older copy put in its place? Its owner looks at it: jostle data history --verify",
            )  # fmt: skip
        if any(behind):
            meter.add((), behind)

    def _growth(self, charge: Charge, content: dict[str, Any]) -> Growth:
        """The growth of the total by a charge, and its history entry."""
        meter, entries = charge.meter, None
        growth = tuple(a - b for a, b in zip(meter.after(charge.path, charge.cost), meter.spent, strict=True))
        if self.dataset.terms.each:
            entries, content["cost"] = self.entries, list(charge.cost)
            part = charge.path[0][1] if charge.path else None
            content |= {"part": [part.isoformat() if isinstance(part, date) else part]} if charge.path else {}
        parts = self.dataset.state.mark.parts
        beside = [name for one in self.linked.values() for name in (one.terms.name, one.terms.within) if name]
        return Growth(self.name, self.version, growth, content, parts, self.so_far, tuple(beside), entries)

    def _note(self, receipt: Receipt, charged: Growth) -> None:
        """Records a charge and, for a grant, the amount requested in this run."""
        self.receipts.append(receipt)
        self.entries += 1
        store.note_seen(self.dataset.key, receipt.number, receipt.hash)
        if self.dataset.terms.within:
            self.so_far += charged.amount[grants.asked_place(self.dataset.terms.measure)]

    def settle(
        self, charges: Sequence[Charge], price: Price, what: str, span: Span | None, program: Text | None,
        purpose: ChargePurpose,
    ) -> int | None:  # fmt: skip
        """Writes every charge into the ledger, or none (`accounting.definitions`). All accounts are of one ledger."""
        mine = [(charge, account) for charge in charges if isinstance(account := charge.account, Account)]
        plan = plan_digest(purpose.plan, {account.data: account.name for _, account in mine})
        content = {
            "program": PurePath(program.name).name if program is not None else "",
            "digest": digest(program.text) if program is not None else "",
            "line": span.line if span is not None and program is not None and span.source == program else 0,
            "plan": plan.digest, "mechanism": purpose.mechanism, "asked": what,
            "amount": str(price.amount) if any(any(charge.cost) for charge, _ in mine) else "",
            **({"time": self.ledger.began} if self.ledger.began else {}),
        }  # fmt: skip
        growths = []
        for charge, account in mine:
            growths.append(account._growth(charge, {**content, "protects": charge.protects}))
            for dataset in (account.dataset, *account.linked.values()):
                self.ledger.same_file(dataset)
        outcome = self.ledger.charge(growths)
        for (charge, account), before in zip(mine, outcome.before, strict=True):
            if not (account.dataset.terms.each and outcome.receipts):
                account.catch_up(charge.meter, before)
        if outcome.late:
            full = next((at for at, (c, _) in enumerate(mine) if not c.meter.admits(c.path, c.cost)), None)
            return full if full is not None else self.settle(charges, price, what, span, program, purpose)
        for (_, account), receipt, charged in zip(mine, outcome.receipts, growths, strict=False):
            account._note(receipt, charged)
        return outcome.refused
