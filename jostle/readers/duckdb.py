"""The engine of this process: data sets are opened, and some questions are answered faster than by SQL.

Files are open from the moment they are named, and read when they are first asked about. What is answered here rather
than by `DuckDb` are the same integers: counts of tables in memory from their arrays (`arrays`), of a whole file from
its size, of many groups from the rows' places, and which rows of a person stay (`speed.bounded`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jostle.engine import groups
from jostle.engine.base import Opened
from jostle.engine.duckdb.engine import DuckDb
from jostle.engine.duckdb.raw import Raw
from jostle.engine.files import OpenFile, open_file
from jostle.engine.filesets import FileSet
from jostle.engine.spill import SpillFolder
from jostle.engine.sql import relations
from jostle.engine.sql.cells import number, text
from jostle.plan.domains import Domain, Open
from jostle.plan.plan import Bound, Count, Key, Plan, Scan, Term
from jostle.readers.arrays import Arrays
from jostle.readers.formats import has_names, opened_file
from jostle.readers.memory import memory_limit
from jostle.readers.objects import Objects
from jostle.readers.public_sql import PublicSql
from jostle.readers.reads import reads_of
from jostle.readers.stopping import beside
from jostle.readers.union import Union
from jostle.records import replace
from jostle.speed.bounded import Bounding

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MANY_GROUPS, _BATCH = range(2**14, 2**22), 2**20  # of counts that are made here, of so many rows at a time


class LocalDuckDb(PublicSql, DuckDb):
    """The plans of `DuckDb` over files, tables in memory and lists of both."""

    def __init__(self, memory: str | None = None) -> None:
        super().__init__(memory_limit(memory), SpillFolder(), beside)
        self._opened: dict[object, tuple[Opened, Any]] = {}  # by what gives the same rows, with the origin itself
        self.objects = Objects()
        self._private: dict[str, OpenFile] = {}  # by where they were

    def file(self, path: str | os.PathLike[str]) -> OpenFile:
        """The file at a path, opened to be asked about; where a private one was opened before, that one."""
        file = open_file(path)
        return self._private.get(file.real, file)

    def open(self, origin: object, *, public: bool, names: tuple[str, ...] = ()) -> Opened:
        """Makes a data set known: files, open or by their path, or a table in memory.

        `names` are the columns that are described, which files without a header are asked for. A public text file is
        read and checked at once; a private one is read when something is first asked of it, and no row of it is ever
        an error. Refuses with `DataError`, without a place. A private file that was written to before it was read is
        refused too: its budget is that of what it held.
        """
        if isinstance(origin, str | os.PathLike):
            origin = self.file(origin)
        if isinstance(origin, OpenFile):
            origin = FileSet.of([origin])
        if not isinstance(origin, FileSet):
            return self._open_object(origin)
        place = origin.place, None if all(map(has_names, origin.parts)) else names
        opened, before = self._opened.get(place, (None, origin))
        if opened is not None:
            if not self._known(opened.key).stale():
                return opened
            if not public:
                before.check()
        opened = self._add(lambda: self._open_files(origin, public, names), origin.identity)
        self._opened[place] = opened, origin
        if not public:
            self._private.update((file.real, file) for file in origin.parts)
        return opened

    def _open_object(self, origin: object) -> Opened:
        """A table in memory; asked again since it may have got another name."""
        from jostle.readers.frames import Frame

        opened, _ = self._opened.get(id(origin), (None, origin))
        if opened is None:
            self.objects.reads(origin, reads_of(origin, self.connection))
            frame = Frame(origin, self._next())
            self.objects.lies_in(origin, frame.lies_in)
            opened = self._add(lambda: frame.named_by(self.name_rows), None)
            self._opened[id(origin)] = opened, origin
        return replace(opened, identity=self.objects.identity(origin))

    def _open_files(self, files: FileSet, public: bool, names: tuple[str, ...]) -> Raw:
        parts = [opened_file(self, f, self._next(), files.reading, names, public=public) for f in files.parts]
        return parts[0] if len(parts) == 1 else Union(parts, files.label)

    def guess(self, key: str) -> tuple[tuple[str, Domain], ...]:
        """Domains for a public source without a description: `real` where every cell that is not empty is a finite
        number, `text` elsewhere. Reads the data."""
        raw, table = self.raw(key)
        names = [name for name in raw.columns if name not in dict(raw.unread)]
        cells = map(raw.cell, names)
        tests = [f"count({text(self.dialect, c, kind)}) = count({number(self.dialect, c, kind)})" for c, kind in cells]
        (row,) = self.fetch(f"SELECT {', '.join(tests) or 'count(*)'} FROM {table}", raw.label)
        return tuple((name, Open("real" if real else "text")) for name, real in zip(names, row, strict=False))

    def stamp(self, key: str) -> str:
        """A text that changes when the cells of a public data set do, whatever the order of rows."""
        arrays = self._raw[key].arrays if key in self._raw else None
        mixed = arrays.stamp() if arrays is not None else None
        if mixed is not None:
            return f"{self._raw[key].columns}:{mixed}"
        raw, table = self.raw(key)
        cells = ", ".join(f"c{i}" for i in range(len(raw.columns)))
        (row,) = self.fetch(f"SELECT count(*), sum(hash({cells})::HUGEINT) FROM {table}", raw.label)
        return f"{raw.columns}:{row[0]}:{row[1]}"

    def group(self, plan: Plan, keys: tuple[Key, ...], terms: tuple[Term, ...]) -> list[NDArray[Any]]:
        """What every engine gives. Counts of many groups are added up of the rows' places as these come: so many groups
        cost a database more than the rows do."""
        import numpy as np

        shape = groups.shape(keys)
        arrays = self._arrays(plan) if set(terms) == {Count()} else None
        cells = arrays.counts(plan, keys, shape) if arrays is not None else None
        if cells is not None:
            return [cells.copy() for _ in terms]
        if isinstance(plan, Scan) and not keys and set(terms) == {Count()}:
            source = self.base(plan)
            if self._check_files(source.sql):  # which have as many rows as before
                return [np.array(source.most_rows) for _ in terms]
        ranges = keys and all(isinstance(key.values, range) for key in keys)
        if terms != (Count(),) or not ranges or math.prod(shape) not in _MANY_GROUPS:
            return super().group(plan, keys, terms)
        cells = np.zeros(math.prod(shape), dtype=np.int64)
        for batch in self.batches(relations.places(self.relation(plan), keys), _BATCH):
            cells += np.bincount(np.asarray(batch.column(0).drop_null()), minlength=len(cells))
        return [cells.reshape(shape)]

    def at_most(self, plan: Bound, most: int, raw: Raw, items: list[str], source: str, size: int) -> str:
        """Chosen in arrays, part by part, where these can decide."""
        return Bounding(self, plan, most, raw, items).table(source, size)

    def codes(self, plan: Plan, keys: tuple[Key, ...]) -> list[NDArray[Any]]:
        arrays = self._arrays(plan)
        codes = arrays.codes(plan, keys) if arrays is not None else None
        return super().codes(plan, keys) if codes is None else codes

    def different(self, plan: Plan, names: Sequence[str]) -> tuple[list[list[Any]], list[float]]:
        arrays = self._arrays(plan)
        rows = arrays.different(plan, names) if arrays is not None else None
        return super().different(plan, names) if rows is None else rows

    def _arrays(self, plan: Plan) -> Arrays | None:
        """The arrays of a table in memory, which a fork has too."""
        raw = self._raw.get(plan.data) if isinstance(plan, Scan) else None
        return None if raw is None else raw.arrays
