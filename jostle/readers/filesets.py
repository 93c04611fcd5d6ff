"""Open files that are read as one table: what a program's `table(…)` names.

Every file is opened once. A set of files is recognised by its parts, so that no file has two budgets by standing in
two lists; a file and its compressed copy beside it (`people.csv`, `people.csv.gz`) count as one. How many files there
are and what they are called is public, as are their headers and types; nothing else of them is asked here.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.engine.files import OpenFile, Reading, identities

_MOST = 1000  # files of a table; each is an open descriptor


class FileSet(Struct, frozen=True, eq=False):
    """One open file or several. `identity` has what each is known by, with the part that is read of a database: its
    names are the same in any case."""

    parts: tuple[OpenFile, ...]
    reading: Reading
    identity: frozenset[tuple[object, ...]]

    @classmethod
    def of(cls, parts: Sequence[OpenFile], reading: Reading | None = None) -> FileSet:
        """Refuses with `DataError` one file that is named twice, also where one is a compressed copy beside it."""
        reading = reading or Reading()
        owners: dict[tuple[object, ...], int] = {}
        for place, file in enumerate(parts):
            for name in _names(file):
                part = () if reading.part is None else (reading.part.casefold(),)
                first = owners.setdefault((*name, *part), place)
                if first != place:
                    other = parts[first]
                    message = f"`{other.path}` and `{file.path}` are one file, or one is the other compressed"
                    raise refuse("DataError", message, help="name each file of a table once")
        return cls(tuple(parts), reading, frozenset(owners))

    @property
    def label(self) -> str:
        """What messages call it."""
        more = len(self.parts) - 1
        return f"`{self.parts[0].path}`" + (f" and {more} other file{'s' * (more > 1)}" if more else "")

    @property
    def place(self) -> tuple[object, ...]:
        """Equal for two sets that give the same rows in the same order."""
        return (*(file.identity for file in self.parts), self.reading)

    def check(self) -> None:
        """Refuses files that changed since they were opened."""
        for file in self.parts:
            file.check()


def paths(text: str, folders: Sequence[Path]) -> list[Path | str]:
    """The files that a path or a pattern (`part*.csv`, `**/*.parquet`) names, in the order of their names.

    They are those of the first folder that has any. A `DataError` where a pattern matches none, or more than 1,000.
    """
    place = next((folder / text for folder in folders if _exists(folder / text)), None)
    if place is not None:
        return [place]
    if not glob.has_magic(text) or "\0" in text:
        return [text]
    for folder in folders:
        names = sorted(glob.glob(text, root_dir=folder, recursive=True))
        places = [folder / name for name in names if not (folder / name).is_dir()]
        if len(places) > _MOST:
            raise refuse("DataError", f"`{text}` matches {len(places):,} files; a table has at most {_MOST:,}")
        if places:
            return [*places]
    raise refuse("DataError", f"no file matches `{text}`", help="paths in a program start at its folder")


def _names(file: OpenFile) -> set[tuple[object, ...]]:
    return {file.identity, *identities(file.real)}


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
