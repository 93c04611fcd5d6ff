"""Values that hash once: plans, keys and domains are looked up by themselves again and again, and are deep."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T", bound="type[Hashed]")


class Hashed:
    """Room for the hash of a frozen value. Copies and pickles of a dataclass with slots leave it behind."""

    __slots__ = ("_hash",)
    _hash: int


def hashed_once(kind: T) -> T:
    """The frozen dataclass `kind`, whose values keep their hash from when it was first asked for."""
    whole = kind.__hash__

    def known(self: Hashed) -> int:
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", whole(self))
            return self._hash

    kind.__hash__ = known  # type: ignore[method-assign,assignment]
    return kind
