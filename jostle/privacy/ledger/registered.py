"""What an owner said when a dataset was registered, and what is known of its file since.

`Terms` never change: schema, protected unit, budget and file. A `State` is what a charge or an update moves. Both
are stored as JSON; what cannot be read back exactly is a damaged ledger. Nothing here decides about spending.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zlib
from collections.abc import Hashable, Mapping
from typing import Any

from msgspec import Struct

from jostle.accounting.amounts import Amount, Unit
from jostle.accounting.definitions import Measure
from jostle.diagnostics import refuse
from jostle.engine.files import OpenFile
from jostle.plan.plan import Categories, Domain, Integer, Moments, Open, Real
from jostle.records import as_dict

Schema = tuple[tuple[str, Domain], ...]
_WORDS = ("within", "until", "per_program", "per_week", "each", "decimal", "encoding")
"""Of terms, those that are written down where they say something."""


class ServerTable(Struct, frozen=True):
    """Data of a server as its owner named them: `source` is the function by which a program does. `place` is what is
    shown of the server's address: host, port and database."""

    source: str
    names: tuple[str, ...]
    place: str

    def __str__(self) -> str:
        return f"{self.source}({', '.join(map(json.dumps, self.names))})"


class Terms(Struct, frozen=True):
    """A registered dataset: `kind` is `table` or `counts`, `path` the file's real path, `sheet` that of a workbook,
    `header` the line of its names where that is not the first, `decimal` a decimal comma, `encoding` what is not told
    by its header. Of data of a `server` the path is empty.

    One whose unit is `linked` has the measure of the dataset of its persons, which is charged in its place. A grant has
    no data of its own: it is a part of the budget of the dataset `within`, to be spent `until` a day (`ledger.grants`),
    at most `per_program` and `per_week` of its epsilon or rho, in quanta, where these are not 0. The rows with each
    value of the column `each` have the whole budget, also between runs (`ledger.parts`).
    """

    name: str
    kind: str
    path: str
    schema: Schema
    unit: Unit
    measure: Measure
    sheet: str | int | None = None
    header: int | None = None
    server: ServerTable | None = None
    filled: tuple[str, ...] = ()
    within: str = ""
    until: str = ""
    per_program: int = 0
    per_week: int = 0
    each: str = ""
    decimal: str | None = None
    encoding: str | None = None

    @property
    def persons(self) -> str:
        """The dataset whose persons, or whose rows of persons, those of a linked one are found in; else empty."""
        return self.unit.linked.partition(".")[0]

    def as_json(self) -> dict[str, object]:
        """As it stands in the ledger, whose digest of it may be older than these words are."""
        server = None if self.server is None else {**as_dict(self.server), "names": list(self.server.names)}
        fields = {"sheet": self.sheet, "header": self.header, "server": server, "filled": self.filled or None}
        fields |= {name: getattr(self, name) or None for name in _WORDS}
        return {
            "name": self.name, "kind": self.kind, "path": self.path,
            "schema": [[name, _domain_json(domain)] for name, domain in self.schema],
            "unit": {name: value for name, value in as_dict(self.unit).items() if value or name not in LATER},
            "measure": {"kind": self.measure.kind, "limit": as_dict(self.measure.limit),
                        **({"for_ever": self.measure.for_ever} if self.measure.for_ever else {})},
            **{word: value for word, value in fields.items() if value is not None},
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Terms:
        """Raises KeyError, TypeError or ValueError where `data` is something else."""
        unit, measure = dict(data["unit"]), data["measure"]
        unit["columns"] = tuple(unit["columns"])
        unit["groups"] = tuple(unit.get("groups", ()))
        schema = tuple((str(name), _domain(domain)) for name, domain in data["schema"])
        counted = Measure(measure["kind"], Amount(**measure["limit"]), measure.get("for_ever", 0))
        fields, server = (data.get("sheet"), data.get("header")), data.get("server")
        if server is not None:
            server = ServerTable(server["source"], tuple(server["names"]), server["place"])
        filled, words = tuple(data.get("filled", ())), {word: data[word] for word in _WORDS if word in data}
        own = (data["name"], data["kind"], data["path"], schema, Unit(**unit), counted)
        return cls(*own, *fields, server, filled, **words)


class FileMark(Struct, frozen=True):
    """What tells a file from another without reading it: device, inode, size in bytes, time of change in ns."""

    device: int
    inode: int
    size: int
    changed: int

    @classmethod
    def from_status(cls, status: os.stat_result) -> FileMark:
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)

    @property
    def parts(self) -> frozenset[Hashable]:
        return frozenset({("file", self.device, self.inode)})

    def as_json(self) -> dict[str, object]:
        return as_dict(self)


class TableMark(Struct, frozen=True):
    """What a server knows data by: `own` are its marks of them alone, all of which are to be found again. `parts` are
    those and the marks of all that was ever read with them: parts and heirs of a table, files."""

    own: frozenset[Hashable]
    parts: frozenset[Hashable]

    def as_json(self) -> dict[str, object]:
        return {"own": sorted(self.own, key=json.dumps), "parts": sorted(self.parts, key=json.dumps)}


Mark = FileMark | TableMark


def _mark(data: Mapping[str, Any]) -> Mark:
    if "own" not in data:
        return FileMark(**data)
    return TableMark(frozenset(map(tuple, data["own"])), frozenset(map(tuple, data["parts"])))


class State(Struct, frozen=True):
    """Moved by charges (`spent`, `entries`, `head`) and by the owner's updates (the rest).

    `code` is the keyed code of the file's bytes or of a table's rows, `version` counts the owner's updates from 1.
    `status` is empty where it may be charged (`ledger.grants`).
    """

    mark: Mark
    version: int
    code: str
    spent: tuple[int, ...]
    entries: int
    head: str
    status: str = ""

    def as_json(self) -> dict[str, object]:
        return {
            "mark": self.mark.as_json(), "version": self.version, "code": self.code, "spent": list(self.spent),
            "entries": self.entries, "head": self.head, **({"status": self.status} if self.status else {}),
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> State:
        """Raises KeyError, TypeError or ValueError where `data` is something else."""
        spent = tuple(data["spent"])
        if not all(type(n) is int and n >= 0 for n in (*spent, data["entries"], data["version"])):
            raise ValueError("no state")
        chain = (data["entries"], data["head"], str(data.get("status", "")))
        return cls(_mark(data["mark"]), data["version"], data["code"], spent, *chain)


def file_digest(file: OpenFile) -> str:
    """SHA-256 of a file's bytes, of gzip's of what it holds. Only its keyed code may be stored or shown."""
    try:
        digest, at = hashlib.sha256(), 0
        packed = os.pread(file.descriptor, 2, 0) == b"\x1f\x8b"
        stream = zlib.decompressobj(31)
        most = 1 << (16 if packed else 20)  # which may hold a thousand times as much
        while block := os.pread(file.descriptor, min(most, file.status.st_size - at), at):
            at += len(block)
            with contextlib.suppress(zlib.error):  # from where on it is taken as it is
                while packed and block:
                    digest.update(stream.decompress(block))
                    block, stream = stream.unused_data, zlib.decompressobj(31) if stream.eof else stream
            digest.update(block)
    except OSError as error:
        reason = (error.strerror or "the system refused").lower()
        raise refuse("DataError", f"`{file.path}` cannot be read: {reason}") from None
    file.check()
    return digest.hexdigest()


LATER = ("weighted", "linked", "groups", "each")
"""Facts of a unit that older ledgers do not have: written down where there is something to say."""


def _domain_json(domain: Domain) -> dict[str, object]:
    if isinstance(domain, Integer):
        return {"integer": [domain.low, domain.high]}
    if isinstance(domain, Real):
        return {"real": [domain.low, domain.high]}
    if isinstance(domain, Categories):
        return {"categories": list(domain.values)}
    if isinstance(domain, Moments):
        return {domain.kind: [domain.low, domain.high, domain.unit]}
    return {"open": domain.kind}


def _domain(data: Mapping[str, Any]) -> Domain:
    ((kind, value),) = data.items()
    if kind == "integer":
        return Integer(*map(int, value))
    if kind == "real":
        return Real(*map(float, value))
    if kind == "categories":
        return Categories(tuple(value))
    if kind in ("date", "time"):
        return Moments(kind, int(value[0]), int(value[1]), str(value[2]))
    if kind == "open":
        return Open(value)
    raise ValueError(kind)
