"""A cache of what can be worked out again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

V = TypeVar("V")
ENTRIES = 2**12


class LruCache(Generic[V]):
    """What can be worked out again, the least lately used out first; the newest always stays."""

    def __init__(self, limit: int, most: int = ENTRIES) -> None:
        self._limit, self._most, self._bytes = limit, most, 0
        self._entries: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: Hashable, value: V, size: int = 0) -> V:
        self._bytes += size - self._entries.pop(key, (value, 0))[1]
        self._entries[key] = (value, size)
        while (self._bytes > self._limit or len(self._entries) > self._most) and len(self._entries) > 1:
            self._bytes -= self._entries.popitem(last=False)[1][1]
        return value
