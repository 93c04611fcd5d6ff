"""What tables and arrays in memory are known by, so that the same data have one budget under several names.

An object is known by itself, by the names that it was bound to, by the tables and files that a query reads, and by the
memory in which its columns lie. Data that have one of these in common have an identity in common, whoever came first:
names, tables and addresses are public, and no cell is looked at. A copy has nothing in common with its original.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from jostle.diagnostics import refuse

Span = tuple[int, int]  # addresses of bytes, the end excluded
_NOTHING: frozenset[Hashable] = frozenset()


@dataclass(slots=True)
class _Known:
    """What is known of an object. It is held, and so are its columns, so that nothing else gets their addresses."""

    origin: Any
    marks: set[Hashable]
    reads: frozenset[Hashable] | None = _NOTHING
    columns: tuple[Any, ...] = ()
    spans: list[Span] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Group:
    """Data that have something in common with the first of them."""

    marks: set[Hashable] = field(default_factory=set)
    spans: list[Span] = field(default_factory=list)

    def has(self, known: _Known, starts: list[int], ends: list[int]) -> bool:
        """Whether it has a mark of these, or lies in part where they do: from `starts` to `ends`, rising and apart."""
        if self.marks & known.marks:
            return True
        return any((i := bisect_left(starts, b)) and ends[i - 1] > a for a, b in self.spans)


class Objects:
    """The objects of a session."""

    def __init__(self) -> None:
        self._groups: list[_Group] = []
        self._known: dict[int, _Known] = {}

    def _of(self, origin: Any) -> _Known:
        return self._known.setdefault(id(origin), _Known(origin, {("object", id(origin))}))

    def bind(self, origin: Any, name: str) -> None:
        """Remembers a name of an object: whatever is bound to it later has something in common with it."""
        self._of(origin).marks.add(("name", name))

    def lies_in(self, origin: Any, columns: Iterable[Any]) -> None:
        """Remembers the arrays, of NumPy or Arrow, in which the columns of an object lie."""
        known = self._of(origin)
        known.columns = tuple(columns)
        known.spans = [span for column in known.columns for span in _spans(column)]

    def reads(self, origin: Any, marks: frozenset[Hashable] | None) -> None:
        """Remembers the tables and files that a query reads, None where that cannot be told.

        Where it cannot, of this query or of one before, the later one is refused with `DataError`.
        """
        others = [known.reads for known in self._known.values() if known.origin is not origin]
        if marks != _NOTHING and any(other != _NOTHING and None in (marks, other) for other in others):
            raise refuse(
                "DataError", "it cannot be told whether two queries that are bound from Python read the same rows",
                help="bind tables, `connection.table(…)`, or once what a query gives, `query.to_arrow_table()`",
            )  # fmt: skip
        known = self._of(origin)
        known.reads = marks
        known.marks |= marks or _NOTHING

    def identity(self, origin: Any) -> frozenset[Hashable]:
        """What an object is known by, with a part in common with that of all data that it has something in common
        with, and with that of a file that it reads."""
        known = self._of(origin)
        fresh = known.marks.difference(*(group.marks for group in self._groups))
        starts, ends = _apart(known.spans)
        met = [group for group in self._groups if group.has(known, starts, ends)] or [_Group()]
        for group in met:
            group.marks |= fresh
            group.spans += [span for span in known.spans if span not in group.spans]
        self._groups += [group for group in met if group not in self._groups]
        return frozenset([*map(id, met), *(mark for mark in known.reads or () if _is_file(mark))])


def _is_file(mark: Hashable) -> bool:
    return isinstance(mark, tuple) and mark[0] == "file"


def _apart(spans: list[Span]) -> tuple[list[int], list[int]]:
    """Where spans start and end, those that overlap taken together."""
    starts, ends = list[int](), list[int]()
    for start, end in sorted(spans):
        if ends and start < ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            starts.append(start)
            ends.append(end)
    return starts, ends


def _spans(column: Any) -> list[Span]:
    """Where a column lies: an array of NumPy, and perhaps what is between its cells, or the numbers or the offsets of
    texts of a column of Arrow. An array without rows lies somewhere too, so that no row decides whether it does."""
    if not hasattr(column, "chunks"):
        start = end = column.__array_interface__["data"][0]
        for many, step in zip(column.shape, column.strides, strict=True):
            whole = (max(many, 1) - 1) * step
            start, end = start + min(0, whole), end + max(0, whole)
        return [(start, end + column.itemsize)]
    spans = []
    for chunk in column.chunks:
        width, buffers = _bits(chunk.type), chunk.buffers()
        if width and buffers[1] is not None:
            first, last = -(-chunk.offset * width // 8), (chunk.offset + len(chunk)) * width // 8
            spans.append((buffers[1].address + first, buffers[1].address + last))
    return spans


def _bits(type_: Any) -> int:
    """How many bits of the second buffer of a column of Arrow are of one row."""
    import pyarrow as pa

    types = pa.types
    if types.is_string(type_) or types.is_binary(type_):
        return 32
    if types.is_large_string(type_) or types.is_large_binary(type_):
        return 64
    return int(type_.bit_width) if types.is_primitive(type_) else 0
