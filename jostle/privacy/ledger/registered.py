"""The terms of a registered dataset, and its state.

`Terms` never change: schema, protected unit, budget and file. Charges and updates change a `State`. Both are stored as
JSON; one that cannot be read back exactly means a damaged ledger. Nothing here decides about spending.
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
"""Terms that are stored only if they are set."""


class ServerTable(Struct, frozen=True):
    """Data of a server by the owner's names. `source` is the function that names them in programs. `place` is the
    displayed address of the server: host, port and database."""

    source: str
    names: tuple[str, ...]
    place: str

    def __str__(self) -> str:
        return f"{self.source}({', '.join(map(json.dumps, self.names))})"


class Terms(Struct, frozen=True):
    """A registered dataset: `kind` is `table` or `counts`, `path` the file's real path, `sheet` that of a workbook,
    `header` the line of column names if not the first, `decimal` a decimal comma, `encoding` the encoding if the file
    does not show it. For data of a `server` the path is empty.

    A dataset with a `linked` unit has the measure of the dataset of its persons, which is charged instead. A grant has
    no data of its own: it is a part of the budget of the dataset `within`, until the day `until` (`ledger.grants`),
    with limits `per_program` and `per_week` in quanta of epsilon or rho, 0 for none. The rows with each value of the
    column `each` have the whole budget, also between runs.
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
        """The dataset of the persons of a linked one; empty for others."""
        return self.unit.linked.partition(".")[0]

    def as_json(self) -> dict[str, object]:
        """The JSON in the ledger. Newer fields are omitted unless set, so that digests of older entries stay valid."""
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
    """The identity of a file without reading it: device, inode, size in bytes, time of change in ns."""

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
    """The identity of data on a server. `own` are the marks of the data alone, all of which must be present again.
    `parts` also has the marks of everything that was ever read with them: partitions and heirs of a table, files."""

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
    """Changed by charges (`spent`, `entries`, `head`) and by the owner's updates (the rest).

    `code` is the keyed code of the file's bytes or of a table's rows, and `version` counts the owner's updates from 1.
    `status` is empty if it may be charged (`ledger.grants`).
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
    """SHA-256 of a file's bytes, for gzip of its content. Only its keyed code may be stored or shown."""
    try:
        digest, at = hashlib.sha256(), 0
        packed = os.pread(file.descriptor, 2, 0) == b"\x1f\x8b"
        stream = zlib.decompressobj(31)
        most = 1 << (16 if packed else 20)  # compressed data may expand by a factor of a thousand
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
"""Facts of a unit that older ledgers do not have; stored only if they are set."""


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
