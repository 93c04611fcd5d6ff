"""A data set's raw cells, as the database can be asked for them: what is common to files and frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct


class Irregular(Struct):
    """What does not fit in a CSV file: lines with too many or too few cells, or with bytes that are no UTF-8.

    The line numbers count from 1, the header included, and are those of the first such line (0 where there is none).
    """

    ragged: int = 0
    first_ragged: int = 0
    undecodable: int = 0
    first_undecodable: int = 0


@dataclass(slots=True)
class Raw(ABC):
    """Columns by their names, each of a kind that `clean` reads; `label` is what messages call the data set."""

    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    label: str
    size: int | None = field(default=None, init=False)  # rows, when they were counted
    irregular: Irregular = field(default_factory=Irregular, init=False)
    arrays: Any = field(default=None, init=False)  # of a table in memory, its `readers.arrays.Arrays`
    unread: tuple[tuple[str, str], ...] = field(default=(), init=False)  # columns of no kind, with their types

    def cell(self, name: str) -> tuple[str, str]:
        """The column `cN` that a name stands for, and its kind."""
        at = self.columns.index(name)
        return f"c{at}", self.kinds[at]

    @abstractmethod
    def table(self, needed: Collection[int]) -> str:
        """A table or view that has the columns `cN` of these numbers, and `n`, which numbers its rows in every query
        alike, where they are `numbered`. What others it has is none of anybody's."""

    @property
    def numbered(self) -> bool:
        """Whether `table` has `n`; else its rows are copied, and numbered so."""
        return True

    def look(self) -> None:
        """Counts what is irregular: nothing, where a format has no irregular rows."""
        self.irregular = Irregular()

    @abstractmethod
    def stale(self) -> bool:
        """Whether what is still to be read is not what was opened."""
