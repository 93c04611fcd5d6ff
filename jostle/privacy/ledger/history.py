"""The history of a registered dataset: a chain of entries in which nothing can be changed unnoticed.

Every charge is an entry. An entry's `digest` is SHA-256 over the canonical JSON of what it says, and its `hash` is
SHA-256 over the previous entry's hash and that digest: whoever holds one hash holds all that came before it. A stretch
can be shown to others with foreign entries as digests alone, and still be checked.

The *seal* binds the end of the chain to the dataset: HMAC-SHA256, under a random key of the dataset, over what was
registered, the total, the data's code and the last hash. The data's *code* is an HMAC of the file's digest under the
same key, since a bare digest would let anybody test a guess of the data. The key stands in the ledger and is never
shown; who can copy the ledger file has it.

Nothing here reads or writes a file or a database.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.jsontext import canonical, digest

FIRST = hashlib.sha256(b"jostle history 1").hexdigest()  # stands before the first entry


def chained(previous: str, entry_digest: str) -> str:
    """The hash of an entry whose digest is `entry_digest`."""
    return digest({"previous": previous, "digest": entry_digest})


class Entry(Struct, frozen=True):
    """One row of a history. `content` says what happened; numbers count from 1, which is the registration."""

    number: int
    content: Mapping[str, Any]
    previous: str
    hash: str

    @classmethod
    def after(cls, number: int, previous: str, content: Mapping[str, Any]) -> Entry:
        return cls(number, content, previous, chained(previous, digest(content)))

    @property
    def growth(self) -> tuple[int, ...]:
        """By how much it moved the total, place by place."""
        return tuple(self.content.get("grows", ()))


class Verified(Struct, frozen=True):
    """What a chain that holds says: how many entries, the last hash, and the total of all charges.

    `older`: some were counted by an earlier rule, in fewer places.
    """

    entries: int
    head: str
    spent: tuple[int, ...]
    older: bool


def verify(
    name: str, entries: Iterable[Entry], width: int, completed: Callable[[tuple[int, ...], int], tuple[int, ...]]
) -> Verified:
    """Follows a chain from its first entry. `LedgerError` names the first entry that does not hold.

    `completed` takes a total of an earlier rule into so many places.
    """
    number, head, older = 0, FIRST, False
    total: tuple[int, ...] = ()
    for entry in entries:
        number += 1
        good = entry.number == number and entry.previous == head
        if not good or entry.hash != chained(head, digest(entry.content)):
            raise broken(name, f"entry {number} does not follow from what stands before it")
        grown = entry.growth
        if grown:
            before = completed(total, len(grown)) if total else (0,) * len(grown)
            if not len(before) == len(grown) <= width or min(grown) < 0:
                raise broken(name, f"entry {number} counts something else than this budget")
            total = tuple(a + b for a, b in zip(before, grown, strict=True))
            older = older or len(grown) < width
        head = entry.hash
    total = completed(total, width) if total else (0,) * width
    if len(total) != width:
        raise broken(name, "its charges count something else than this budget")
    return Verified(number, head, total, older)


def broken(name: str, why: str) -> Exception:
    return refuse(
        "LedgerError",
        f"the history of `{name}` is damaged: {why}",
        help="the owner restores the ledger; nothing is read",
    )


# Under the key -----------------------------------------------------------------------------------


def new_key() -> bytes:
    """32 bytes of the operating system's generator. They key a code; no noise is made of them."""
    return os.urandom(32)


def sealed(key: bytes, what: str, value: Any) -> str:
    """HMAC-SHA256 over a value; `what` keeps codes of different purposes apart."""
    return hmac.new(key, canonical({"what": what, "value": value}), hashlib.sha256).hexdigest()


def holds(key: bytes, what: str, value: Any, seal: object) -> bool:
    return isinstance(seal, str) and hmac.compare_digest(sealed(key, what, value).encode(), seal.encode())
