"""`jostle data register | update | list | show | history | certificate`: an owner's commands on the ledger.

Registration is where promises are tested: the file opens, every described and protected column is there, and `at most N
rows` holds. A certificate says what a release was charged: one JSON document with the stretch of the dataset's history
that says so, the run's own entries in full and those of other programs as digests. That is enough to follow the chain.
Released values stand as digests. It holds no total, no limit, nothing of other runs, and no code of the data. `check`
needs nothing but the document; the owner's `code`, an HMAC under the dataset's key, can be tested by the owner alone.
"""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from jostle.accounting.amounts import Amount, Cost, Unit, as_text
from jostle.accounting.definitions import Measure, parts_of
from jostle.backends import server_at
from jostle.backends.postgres.ledger import address
from jostle.backends.remote import VARIABLE, RemoteData, remote_data
from jostle.diagnostics import Refusal, refuse
from jostle.engine.files import OpenFile
from jostle.events import Event
from jostle.plan.digest import digest
from jostle.plan.plan import Open, Scan
from jostle.privacy.ledger import store
from jostle.privacy.ledger.grants import granted_total, limits_of
from jostle.privacy.ledger.ledger import Contents, Ledger
from jostle.privacy.ledger.registered import ServerTable, TableMark, Terms
from jostle.privacy.ledger.store import Dataset, Entry
from jostle.readers.filesets import FileSet, Reading
from jostle.readers.survey import most_rows, survey
from jostle.records import replace
from jostle.resources import Json, loads
from jostle.source import Source
from jostle.tools.datacheck import braced, misfits, read_clauses
from jostle.tools.draft.columns import domain_text
from jostle.tools.draft.init import reading_of
from jostle.trace.text import align, clean, plural

if TYPE_CHECKING:
    from jostle.run.clauses import Clauses

VERSION = 1


class Verified(Struct, frozen=True):
    """What a chain that holds says: how many entries, the last hash, and the total of all charges.

    `older`: some were counted by an earlier rule, in fewer places.
    """

    entries: int
    head: str
    spent: tuple[int, ...]
    older: bool


def verify_chain(
    name: str, entries: Iterable[Entry], width: int, completed: Callable[[tuple[int, ...], int], tuple[int, ...]]
) -> Verified:
    """Follows a chain from its first entry. `LedgerError` names the first entry that does not hold.

    `completed` takes a total of an earlier rule into so many places.
    """
    number, head, older = 0, store.FIRST, False
    total: tuple[int, ...] = ()
    for entry in entries:
        number += 1
        good = entry.number == number and entry.previous == head
        if not good or entry.hash != store.chained(head, digest(entry.content)):
            raise store.broken(name, f"entry {number} does not follow from what stands before it")
        grown = entry.growth
        if grown:
            before = completed(total, len(grown)) if total else (0,) * len(grown)
            if not len(before) == len(grown) <= width or min(grown) < 0:
                raise store.broken(name, f"entry {number} counts something else than this budget")
            total = tuple(a + b for a, b in zip(before, grown, strict=True))
            older = older or len(grown) < width
        head = entry.hash
    total = completed(total, width) if total else (0,) * width
    if len(total) != width:
        raise store.broken(name, "its charges count something else than this budget")
    return Verified(number, head, total, older)


def verify(ledger: Ledger, name: str) -> Verified:
    """Follows the whole chain to the sealed end. Raises `LedgerError` where anything does not hold.

    Every charge tests the seal; this is for people, who ask of all that stands before it.
    """
    with ledger.store.reading() as connection:
        rows = store.Rows(ledger.store, connection)
        dataset, entries, every = rows.find(name), rows.entries(name), rows.all()
    measure = dataset.terms.measure
    chain = verify_chain(name, entries, measure.width, partial(store.completed, measure))
    if (chain.entries, chain.head) != (dataset.state.entries, dataset.state.head):
        raise store.broken(name, f"it ends after entry {chain.entries} of {dataset.state.entries}")
    if chain.spent != dataset.state.spent or not (chain.older or admits(every, dataset, chain.spent)):
        raise store.broken(name, "its charges do not add up to the total")
    if entries[0].content.get("terms") != digest(dataset.terms.as_json()):
        raise store.broken(name, "what was registered is not what stands there now")
    return chain


def certificate_of(ledger: Ledger, name: str, events: Sequence[Event]) -> dict[str, Json]:
    """The certificate of one run. The whole history is verified first.

    Raises `LedgerError` where it does not hold or does not know the run's charges, `DataError` where the run has none.
    """
    verify(ledger, name)
    dataset, entries = ledger.dataset(name), ledger.history(name)
    own = _own(name, events, entries)
    stretch = entries[min(own) - 1 : max(own)]
    body: dict[str, object] = {
        "certificate": VERSION,
        "dataset": name,
        "protects": str(dataset.terms.unit),
        "counted": f"{dataset.terms.measure.unit} ({dataset.terms.measure.kind})",
        "charges": [_charge(entries[number - 1]) for number in sorted(own)],
        "released": {e.name: digest(e.fields.get("value")) for e in events if e.kind == "release"},
        "history": {
            "previous": stretch[0].previous,
            "entries": [_link(entry, entry.number in own) for entry in stretch],
            "hash": stretch[-1].hash,
        },
    }
    return {**body, "code": store.sealed(dataset.key, "certificate", body)}


def check(document: Mapping[str, Json]) -> int:
    """Follows a certificate's stretch; gives the number of charges it shows. `LedgerError` where it does not hold."""
    try:
        if document["certificate"] != VERSION:
            raise _bad("it is of another version")
        head, number, sealed = document["history"]["previous"], None, []
        for link in document["history"]["entries"]:
            if number is not None and link["number"] != number + 1:
                raise _bad("an entry is missing")
            number = link["number"]
            seal = digest(link["content"]) if "content" in link else link["digest"]
            head = store.chained(head, seal)
            if "content" in link:
                sealed.append(_charge(Entry(number, link["content"], "", head)))
        if head != document["history"]["hash"] or sealed != document["charges"]:
            raise _bad("its entries do not lead to its hash")
    except (KeyError, TypeError, ValueError):
        raise _bad("a part of it is missing") from None
    return len(sealed)


def is_ours(ledger: Ledger, document: Mapping[str, object]) -> bool:
    """Whether this ledger made it, unchanged, and still has what it shows: for the owner."""
    dataset = ledger.dataset(name := str(document.get("dataset")))
    body = {key: value for key, value in document.items() if key != "code"}
    stretch, hashes = document.get("history"), {entry.hash for entry in ledger.history(name)}
    there = isinstance(stretch, Mapping) and stretch.get("hash") in hashes  # of one that was restored it is not
    return there and store.holds(dataset.key, "certificate", body, document.get("code"))


def _own(name: str, events: Sequence[Event], entries: Sequence[Entry]) -> set[int]:
    numbers: set[int] = set()
    for event in events:
        if event.kind != "run":
            continue
        try:
            links = [(int(number), str(hash)) for number, hash in event.fields.get("ledger", {}).get(name, [])]
        except (AttributeError, TypeError, ValueError):
            raise refuse("DataError", "the trace is damaged: `ledger` is no list of charges") from None
        for number, hash in links:
            if not 0 < number <= len(entries) or entries[number - 1].hash != hash:
                raise refuse("LedgerError", f"a charge of this run is not in the history of `{name}`")
            numbers.add(number)
    if not numbers:
        raise refuse("DataError", f"this run charged nothing to `{name}` that the ledger knows")
    return numbers


def _charge(entry: Entry) -> dict[str, object]:
    fields = ("asked", "mechanism", "amount", "protects", "program", "line")
    return {"number": entry.number, **{key: entry.content.get(key) for key in fields}}


def _link(entry: Entry, own: bool) -> dict[str, object]:
    if own:
        return {"number": entry.number, "content": dict(entry.content)}
    return {"number": entry.number, "digest": digest(entry.content)}


def _bad(why: str) -> Refusal:
    return refuse("LedgerError", f"this certificate does not hold: {why}")


def register(options: Namespace) -> str:
    """Puts a dataset into the ledger, which is made where there is none."""
    path, data = Path(options.file), remote_data(options.file)
    kind = "counts" if path.suffix == ".npy" and data is None else "table"
    reading = reading_of(options)
    if (kind == "counts" or data is not None) and reading != Reading():
        message = f"`{options.file}` has no sheets, header, decimal comma or encoding"
        raise refuse("DataError", message, help="leave --sheet, --header, --decimal and --encoding out")
    clauses = parse_clauses(options.name, kind, options.schema, options.protecting, options.budget or None)
    ledger = Ledger(options.ledger)
    measure = _measure(ledger, clauses)
    place = os.path.realpath(path) if data is None else ""
    terms = Terms(
        options.name, kind, place, clauses.schema, clauses.unit, measure, reading.sheet, reading.header,
        filled=clauses.filled, each=clauses.each, decimal=reading.decimal, encoding=reading.encoding,
    )  # fmt: skip
    if data is None:
        ledger.register(terms, check_promises, copy=options.copy)
        notes = misfits(place, terms.schema, reading, filled=terms.filled) if kind == "table" else ""
    else:
        place = address(options.engine or os.environ.get(VARIABLE, ""))
        terms = replace(terms, server=ServerTable(data.source, data.names, place))
        ledger.register(terms, copy=options.copy, contents=contents_of(terms, data, options.engine))
        notes = misfits(options.file, terms.schema, engine=options.engine, filled=terms.filled)
    whose = f", that of `{terms.persons}`" if terms.unit.linked else ""
    return (
        f"registered `{options.name}` with budget {measure.limit}{_each(terms)}{whose}, "
        f"in {clean(ledger.store.place)}\n"
        f'a program says: private {options.name} = dataset("{options.name}")\n{notes}'
    )


def _measure(ledger: Ledger, clauses: Clauses) -> Measure:
    """How a dataset is counted: by its budget, or by that of the dataset of its persons, where it fits that."""
    if clauses.measure is not None:
        return clauses.measure
    name, _, key = clauses.unit.linked.partition(".")
    owner = ledger.dataset(name).terms
    if owner.each:
        raise refuse("DataError", f"`{name}` has its budget each {owner.each}, which rows of other tables have not")
    if owner.unit.columns != (key,) and (not owner.unit.columns or key not in dict(owner.schema)):
        raise refuse(
            "DataError", f"`{key}` is no described column of the rows of persons of `{name}`",
            help=f"it is registered `protecting {owner.unit}`",
        )  # fmt: skip
    return owner.measure


def update(options: Namespace) -> str:
    """The data as they are now become the dataset's; what was spent stays spent."""
    ledger = Ledger(options.ledger)
    dataset = ledger.dataset(options.name)
    terms, contents = dataset.terms, None
    if terms.server is not None:
        data = RemoteData(terms.server.source, terms.server.names)
        own: frozenset[Hashable] = getattr(dataset.state.mark, "own", frozenset())
        try:
            contents = contents_of(terms, replace(data, own=own), options.engine)
        except Refusal as refusal:
            if refusal.first.kind != "LedgerError":
                raise
            contents = contents_of(terms, data, options.engine)  # another table has the name, perhaps on another server
    dataset = ledger.update(options.name, check_promises, copy=options.copy, contents=contents)
    return f"`{options.name}` is at version {dataset.state.version}\n"


def list_datasets(options: Namespace) -> str:
    """One line a dataset."""
    rows = [["dataset", "budget", "spent", "charges", "version"]]
    every = Ledger(options.ledger).datasets()
    for dataset in every:
        state = dataset.state
        rows.append([dataset.terms.name, *_budget(dataset, every), str(state.entries - 1), str(state.version)])
    return _lines(rows, [False, False, False, True, True])


def show(options: Namespace) -> str:
    ledger = Ledger(options.ledger)
    dataset = ledger.dataset(options.name)
    terms, (budget, of_it) = dataset.terms, _budget(dataset, ledger.datasets())
    rows = [
        ["file", clean(terms.path)] if terms.server is None else ["table", clean(str(terms.server))],
        *([["server", clean(terms.server.place)]] if terms.server is not None else []),
        *([["sheet", clean(str(terms.sheet))]] if terms.sheet is not None else []),
        *([["header", f"line {terms.header}"]] if terms.header is not None else []),
        ["protecting", str(terms.unit)],
        ["budget", f"{budget}, counted {terms.measure.kind}"],
        ["spent", of_it],
        ["version", str(dataset.state.version)],
        ["history", f"{plural(dataset.state.entries, 'entry')}, the last {dataset.state.head[:16]}"],
        *(
            [f"  {clean(name)}", domain_text(domain) + ", never missing" * (name in terms.filled)]
            for name, domain in terms.schema
        ),
    ]
    text = _lines([[terms.name, terms.kind], *rows], [False, False])
    return text + (_parts(ledger.history(options.name), terms) if terms.each else "")


def _parts(entries: Sequence[Entry], terms: Terms) -> str:
    """What was spent on each part with a budget of its own, and on all of them."""
    spent: dict[object, int] = {}
    for entry in entries:
        if cost := entry.content.get("cost"):
            part = entry.content.get("part", [None])[0]
            spent[part] = spent.get(part, 0) + cost[0]
    whole = spent.pop(None, 0)
    each, ever, added = terms.measure.limit.value - whole, terms.measure.for_ever, whole + sum(spent.values())
    most = min(each, ever - added) if ever else each  # of a part of which nothing was asked
    rows = [[str(part), as_text(own), as_text(min(most, each - own))] for part, own in spent.items()]
    last = ("for ever", added, ever - added) if ever else ("all of them", whole, each)
    rows = [*sorted(rows), [last[0], *map(as_text, last[1:])]]
    return "\n" + _lines([[terms.each, "spent", "left"], *rows], [False, True, True])


def history(options: Namespace) -> str:
    """The entries of a history, the oldest first; with `--verify`, whether the chain holds."""
    ledger = Ledger(options.ledger)
    parts = bool(ledger.dataset(options.name).terms.each)
    rows = [["", "time", "what", *["part"] * parts, "amount", "mechanism", "program", "line", "hash"]]
    for entry in ledger.history(options.name):
        content = entry.content
        what = content.get("asked") or content.get("did")
        what = [what, *[content.get("part", [""])[0]] * parts]
        more = [content.get(key) or "" for key in ("amount", "mechanism", "program", "line")]
        rows.append([str(entry.number), *(clean(str(v)) for v in (content.get("time"), *what, *more)), entry.hash[:12]])
    text = _lines(rows, [True, *[False] * (5 + parts), True, False])
    if options.verify:
        chain = verify(ledger, options.name)
        text += f"\nthe chain holds: {plural(chain.entries, 'entry')}, up to {chain.head}\n"
    return text


def certificate(options: Namespace) -> str:
    """Writes the certificate of a run; with `--check`, reads one again."""
    if options.check is not None:
        document = _read(Path(options.check))
        charges = check(document)
        ours = is_ours(Ledger(options.ledger), document)
        whose = f"{'' if ours else 'not '}made by this ledger as it stands"
        return f"the certificate holds: {plural(charges, 'charge')}, {whose}\n"
    from jostle.trace import jsonl

    if options.run is None or options.out is None:
        raise refuse(
            "DataError", "a certificate is of a run", help="jostle data certificate NAME --run RUN.jsonl -o FILE"
        )
    document = certificate_of(Ledger(options.ledger), options.name, jsonl.read(Path(options.run)))
    text = json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    jsonl.write_own(Path(options.out), text)
    return f"{clean(options.out)}: {plural(len(document['charges']), 'charge')} on `{options.name}`\n"


VERBS = {
    "register": register,
    "update": update,
    "list": list_datasets,
    "show": show,
    "history": history,
    "certificate": certificate,
}


def parse_clauses(name: str, kind: str, schema: str | None, protecting: str, budget: str | None) -> Clauses:
    """The clauses as the language reads them, which checks them as in a program."""
    described = f"    described by {braced(schema)}\n" if schema is not None else ""
    budgeted = f"    budget {budget}\n" if budget is not None else ""
    text = f'private {name} = {kind}("file")\n{described}    protecting {protecting}\n{budgeted}'
    return read_clauses(Source("jostle data register", text))


def contents_of(terms: Terms, data: RemoteData, url: str | None) -> Contents:
    """What data of a server are known by, and a digest of their rows; refused where they are not as was said."""
    with closing(server_at(data, url)) as engine:
        opened = engine.open(data, public=False)
        described = {name for name, _ in terms.schema}
        extra = tuple((column, Open("text")) for column in terms.unit.columns if column not in described)
        engine.check_source(Scan(opened.key, (*terms.schema, *extra)))
        if terms.unit.at_most is not None:
            rows = engine.survey(opened.key, ()).rows
            _need_at_most(terms.unit, rows, lambda column: engine.most_alike(opened.key, column))
        mark = TableMark(engine.own(opened.key), parts_of(opened.identity))
        return Contents(mark, digest(engine.stamp(opened.key)))


def check_promises(terms: Terms, file: OpenFile) -> None:
    """Whether the file is as was said: readable, with these columns, and with no more rows than promised."""
    from jostle.readers.databases import load_counts

    files = FileSet.of([file], reading_of(terms))
    if terms.kind == "counts":
        rows = int(load_counts(file, private=True).sum())
    else:
        described = {name for name, _ in terms.schema}
        extra = tuple((column, Open("text")) for column in terms.unit.columns if column not in described)
        rows = survey(files, (*terms.schema, *extra)).rows
    _need_at_most(terms.unit, rows, lambda column: most_rows(files, column))


def _need_at_most(unit: Unit, rows: int, of_one: Callable[[str], int]) -> None:
    """Refuses more rows than were promised, in all or of one person."""
    most = unit.at_most
    if most is not None and unit.columns:
        many = of_one(unit.columns[0])
        if many > most:
            message = f"a person has {many:,} rows, and at most {most:,} were promised"
            raise refuse("DataError", message, help=f"write `{unit.columns[0]} up to {most} rows`: more are cut")
    elif most is not None and rows > most:
        raise refuse("DataError", f"there are {rows:,} rows, and at most {most:,} were promised")


def _budget(dataset: Dataset, every: Sequence[Dataset]) -> tuple[str, str]:
    """A dataset's budget and what was spent of it; of a linked one, only whose budget it has."""
    if dataset.terms.unit.linked:
        return f"that of `{dataset.terms.persons}`", f"see `{dataset.terms.persons}`"
    return f"{dataset.terms.measure.limit}{_each(dataset.terms)}", spent(dataset, every)


def _each(terms: Terms) -> str:
    ever = f", {Amount(terms.measure.unit, terms.measure.for_ever)} for ever" if terms.measure.for_ever else ""
    return f" each {terms.each}{ever}" if terms.each else ""


def spent_exactly(rows: Iterable[Dataset], dataset: Dataset) -> tuple[int, int]:
    """What was spent of a dataset, or is granted where grants count as their limits."""
    total = granted_total(rows, dataset)
    return dataset.terms.measure.spent_exactly(dataset.state.spent) if total is None else (total[0], total[1])


def admits(rows: Iterable[Dataset], dataset: Dataset, spent: Cost) -> bool:
    """Whether a total of a dataset is within its limit."""
    total = granted_total(rows, dataset)
    return dataset.terms.measure.admits(spent) if total is None else limits_of(dataset.terms.measure).admits(total)


def spent(dataset: Dataset, every: Sequence[Dataset] = ()) -> str:
    """Of a dataset, among the others of its ledger."""
    value, delta = spent_exactly(every, dataset)
    return f"{dataset.terms.measure.unit} {as_text(value)}" + (f", delta {as_text(delta)}" if delta else "")


def _lines(rows: list[list[str]], right: list[bool]) -> str:
    return "\n".join(align(rows, right)) + "\n"


def _read(path: Path) -> Json:
    try:
        return loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise refuse("DataError", f"`{path}` cannot be read as a certificate") from None
