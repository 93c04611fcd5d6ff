"""A certificate: what a release was charged, and the stretch of the dataset's history that says so.

It is one JSON document that can go out with the numbers. Of the entries in the stretch, the run's own are shown in
full and those of other programs as digests, which is enough to follow the chain. Released values stand as digests,
so that a reader can tell whether the numbers at hand are those. It holds no total, no limit, nothing of other runs,
and no code of the data. `check` needs nothing but the document; the owner's `code`, an HMAC under the dataset's key,
can be tested by the owner alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jostle.diagnostics import Refusal, refuse
from jostle.events import Event
from jostle.jsontext import digest
from jostle.privacy.ledger import history
from jostle.privacy.ledger.history import Entry
from jostle.privacy.ledger.ledger import Ledger

VERSION = 1


def certificate_of(ledger: Ledger, name: str, events: Sequence[Event]) -> dict[str, Any]:
    """The certificate of one run. The whole history is verified first.

    Raises `LedgerError` where it does not hold or does not know the run's charges, `DataError` where the run has none.
    """
    ledger.verify(name)
    dataset, entries = ledger.dataset(name), ledger.history(name)
    own = _own(name, events, entries)
    stretch = entries[min(own) - 1 : max(own)]
    body: dict[str, Any] = {
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
    return {**body, "code": history.sealed(dataset.key, "certificate", body)}


def check(document: Mapping[str, Any]) -> int:
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
            head = history.chained(head, seal)
            if "content" in link:
                sealed.append(_charge(Entry(number, link["content"], "", head)))
        if head != document["history"]["hash"] or sealed != document["charges"]:
            raise _bad("its entries do not lead to its hash")
    except (KeyError, TypeError, ValueError):
        raise _bad("a part of it is missing") from None
    return len(sealed)


def is_ours(ledger: Ledger, document: Mapping[str, Any]) -> bool:
    """Whether this ledger made it, unchanged: for the owner."""
    dataset = ledger.dataset(str(document.get("dataset")))
    body = {key: value for key, value in document.items() if key != "code"}
    return history.holds(dataset.key, "certificate", body, document.get("code"))


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


def _charge(entry: Entry) -> dict[str, Any]:
    fields = ("asked", "mechanism", "amount", "protects", "program", "line")
    return {"number": entry.number, **{key: entry.content.get(key) for key in fields}}


def _link(entry: Entry, own: bool) -> dict[str, Any]:
    if own:
        return {"number": entry.number, "content": dict(entry.content)}
    return {"number": entry.number, "digest": digest(entry.content)}


def _bad(why: str) -> Refusal:
    return refuse("LedgerError", f"this certificate does not hold: {why}")
