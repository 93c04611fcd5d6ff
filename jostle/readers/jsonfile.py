"""JSON lines: an object a line, whose columns are those that a description names.

There is no header, and a first record is a row like the others; so of a private file nothing is known but what is
described, and a name that no record has is none throughout. A line that is no object is a row of none. Texts, numbers
and truths are cells, as they are written; objects and lists are none, as is a number's name (`NaN`). Where an object
has a name twice, the last one counts.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from jostle.diagnostics import refuse
from jostle.engine.files import OpenFile
from jostle.readers.compression import FAULTS, content, damaged
from jostle.readers.textcells import lists
from jostle.readers.textfile import BOM, TextFile, blocks, decoded

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

_DEEPEST = 100  # brackets within brackets in a line; what is deeper is no record, whatever stack this runs on
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?$)')  # or to the end, so that no line is gone through again and again
_BRACKETS = re.compile(r"[\[\]{}]")


class JsonFile(TextFile):
    """A file of JSON lines under the table name `name`, with the columns `names`."""

    __slots__ = ()

    def __init__(
        self, file: OpenFile, names: tuple[str, ...], name: str, label: str, connection: DuckDBPyConnection
    ) -> None:
        super().__init__(file, names, name, label, connection, "utf-8")

    def fits(self, line: str) -> bool:
        return record(line) is not None

    def check(self) -> None:
        """Reads a public file, whose lines are objects in UTF-8, or is refused."""
        self.check_regular("is no JSON object", "a record is one line: {…}")

    def cells(self, lines: bytes) -> pa.ListArray:
        full = [line for line in decoded(lines, "utf-8").split("\n") if line.rstrip("\r")]
        return lists([[cell(found.get(name)) or "" for name in self.columns] for found in map(_any_record, full)])


def names_of(file: OpenFile, label: str) -> tuple[str, ...]:
    """The names that the records of a **public** file have, in the order in which they first stand there."""
    names: dict[str, None] = {}
    try:
        with content(file) as source:
            for block in blocks(source):
                for line in decoded(block, "utf-8").split("\n"):
                    names.update(dict.fromkeys(record(line) or {}))
    except FAULTS:
        raise damaged(label) from None
    if not names:
        raise refuse("DataError", f"{label} has no JSON objects, one a line", help="a record is one line: {…}")
    return tuple(names)


def record(line: str) -> dict[str, Any] | None:
    """The object that a line spells, numbers as texts; None where it spells none."""
    text = line.removeprefix(BOM.decode()).strip()
    if not text.startswith("{") or _depth(text) > _DEEPEST:
        return None
    try:
        value = json.loads(text, parse_int=str, parse_float=str, parse_constant=_none)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def cell(value: object) -> str | None:
    """A cell as a text of the database."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str) or not value:
        return None
    return value.encode("utf-8", "replace").decode("utf-8")


def _any_record(line: str) -> dict[str, Any]:
    return record(line) or {}


def _none(name: str) -> None:
    return None


def _depth(text: str) -> int:
    """How deep a reader of the text may come: the brackets outside of quotes."""
    if text.count("{") + text.count("[") <= _DEEPEST:
        return 0
    depth = deepest = 0
    for sign in _BRACKETS.findall(_QUOTED.sub("", text)):
        depth += 1 if sign in "{[" else -1
        deepest = max(deepest, depth)
    return deepest
