"""The protocol of engines, and the capabilities of a backend.

An engine returns exact integers and public structure. It decides nothing about privacy: its callers have been charged,
or hold public data. No answer depends on the order of rows that a database returns, and no cell of any type makes a
question fail. Databases return only the groups that occur, in any order; they are put at the positions of their public
keys here. `docs/contributing/add-an-engine.md` describes how to add one; `tests/engines` asks all the same plans.
"""

from __future__ import annotations

import math
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import date
from operator import eq
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.engine.sql.dialect import Dialect
from jostle.integers import fixed_width
from jostle.language.moments import number_of
from jostle.lazy import Array, np
from jostle.plan.plan import Domain, Exact, Key, Plan, RowExpr, Term

if TYPE_CHECKING:
    from jostle.engine.files import OpenFile


class Capabilities(Struct, frozen=True):
    """`numbered_rows`: rows of a table without joins have the same numbers in every query, so that columns from several
    queries can be combined. `folds`: rows are remote, and folds are sent to them. `forks`: a forked process may ask
    about public data."""

    numbered_rows: bool = False
    folds: bool = False
    forks: bool = False


Work = Callable[[Iterable["Array"]], list[Any]]
"""A computation on rows of numbers, (n, d) each, that returns arrays of integers that add up over parts of the rows. It
can be pickled, and uses only its own content."""


class Opened(Struct, frozen=True):
    """An opened data set. `identity` is equal for two names of one file, and a frozenset for several files. `unread`
    has the columns that no engine reads. `header` is the line of column names, 0 if the format stores them, else
    None."""

    key: str
    columns: tuple[str, ...]
    identity: Hashable
    unread: tuple[tuple[str, str], ...] = ()
    header: int | None = None


class Here(Protocol):
    """A database in this process, for questions about records in memory."""

    @property
    def dialect(self) -> Dialect: ...

    def registered(self, rows: object, name: str = "") -> AbstractContextManager[str]: ...

    def columns(self, query: str) -> list[Any]: ...


class Answers(Protocol):
    """Questions about private rows, answered by exact integers. Engines implement it, and faster equivalents (`speed`).
    The methods are documented in `sql.engine.SqlEngine`."""

    @property
    def here(self) -> Here: ...

    def check(self, question: object) -> None: ...

    def group(self, plan: Plan, keys: tuple[Key, ...], terms: tuple[Term, ...]) -> list[Array]: ...

    def counts(self, plan: Plan, tables: Sequence[tuple[Key, ...]]) -> list[Array]: ...

    def crossed(self, plan: Plan, keys: Sequence[Key], by: Key) -> list[Array]: ...

    def codes(self, plan: Plan, keys: tuple[Key, ...]) -> list[Array]: ...

    def fold(self, plan: Plan, exprs: tuple[RowExpr, ...], work: Work) -> list[object]: ...

    def fold_codes(self, plan: Plan, keys: tuple[Key, ...], work: Work) -> list[object]: ...

    def tally(self, plan: Plan, expr: RowExpr) -> tuple[Array, Array]: ...

    def tuples(self, plan: Plan, exprs: tuple[RowExpr, ...]) -> tuple[list[tuple[object, ...]], Array]: ...


class Engine(Answers, Protocol):
    """Opens data sets and answers plans about them. `objects` has the opened data in memory (`readers.filesets`), and
    `remote` is the kind of source that names data of its server (`backends/remote`)."""

    objects: Any
    remote: ClassVar[str]

    @property
    def capabilities(self) -> Capabilities: ...

    def file(self, path: str | os.PathLike[str]) -> OpenFile: ...

    def open(self, origin: Any, *, public: bool, names: tuple[str, ...] = ()) -> Opened: ...

    def guess(self, key: str) -> tuple[tuple[str, Domain], ...]: ...

    def stamp(self, key: str) -> str: ...

    def code_blocks(self, plan: Plan, keys: tuple[Key, ...], size: int) -> Iterator[list[Array]]: ...

    def rows(self, plan: Plan) -> int: ...

    def vectors(self, plan: Plan, exprs: tuple[RowExpr, ...], size: int) -> Iterator[Array]: ...

    def records(self, plan: Plan) -> list[tuple[Any, ...]]: ...

    def different(self, plan: Plan, names: Sequence[str]) -> tuple[list[list[object]], list[float]]: ...

    def exact(
        self, plan: Plan, keys: tuple[Key | RowExpr, ...], terms: tuple[Exact, ...]
    ) -> tuple[list[list[object]], list[list[object]]]: ...

    def rest(self) -> None: ...

    def close(self) -> None: ...


V = TypeVar("V")
ENTRIES = 2**12


class LruCache(Generic[V]):
    """A cache of values that can be recomputed. The least recently used are dropped; the newest is always kept."""

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


CELLS = 2**26  # the largest number of cells of a grouped result


def shape(keys: tuple[Key, ...]) -> tuple[int, ...]:
    sizes = [key.values[-1] - key.values[0] + 1 if isinstance(key.values, range) and key.values else len(key.values)
             for key in keys]  # fmt: skip
    if math.prod(sizes) > CELLS:
        message = f"the group keys have {' × '.join(f'{size:,}' for size in sizes)} combinations; {CELLS:,} can be held"
        raise refuse("ValueError", message, help="group by something coarser, such as `x / 1000`")
    return tuple(sizes)


def positions(keys: tuple[Key, ...], columns: list[Any], shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The position of each returned group in the flattened result, and a mask of those with a position."""
    if not keys:
        return np.zeros(1, dtype=np.int64), slice(None)
    inside = np.ones(len(columns[0]), dtype=bool)
    codes = []
    for key, column in zip(keys, columns, strict=True):
        if hasattr(column, "mask"):  # `numpy.ma` is slow to load, and few columns need it
            inside &= ~np.ma.getmaskarray(column)
            column = column.data
        if isinstance(key.values, range):
            code = fixed_width(column) - (key.values[0] if key.values else 0)
        else:
            place = {plain(value): i for i, value in reversed(list(enumerate(key.values)))}
            cells = np.asarray(column).tolist()
            code = fixed_width([place.get(value, -1) for value in cells])
        inside &= (code >= 0) & (code < len(key.values))
        codes.append(code)
    return np.ravel_multi_index([code[inside] for code in codes], shape), inside


_EXACT = 2**53  # smaller integers are exact doubles


def consecutive(key: Key) -> Key:
    """The key with a range in place of a list of consecutive integers, which needs only one comparison."""
    values = key.values
    if isinstance(values, range) or not values or type(values[0]) not in (int, float):
        return key
    first: Any = values[0]
    if abs(first) >= _EXACT or first % 1 or values[-1] != first + len(values) - 1:
        return key
    whole = range(int(first), int(first) + len(values))
    return Key(key.expr, whole) if all(map(eq, values, whole)) else key


def plain(value: Any) -> Any:
    """A double (also for dates and times), a text, a boolean, or None for missing or infinite values."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if type(value) is int:  # nearly always
        return float(value)
    number = float(number_of(value) if isinstance(value, date) else value)
    return number + 0.0 if math.isfinite(number) else None
