"""What an engine is to the rest of the system: one protocol, and what a backend says that it can do.

An engine answers with exact integers and public structure. It decides nothing about privacy: whoever calls it has been
charged, or holds public data. No answer rests on the order in which a database returns rows, and no cell of any type
makes a question fail. `docs/contributing/add-an-engine.md` says how to add one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from msgspec import Struct

from jostle.diagnostics import refuse

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from jostle.engine.files import OpenFile
    from jostle.plan.domains import Domain
    from jostle.plan.plan import Exact, Key, Plan, RowExpr, Term


class Capabilities(Struct, frozen=True):
    """`numbered_rows`: the rows of a table without joins have numbers, alike in every query, so that columns that were
    read apart belong together. `spill`: what does not fit in memory goes to the disk. `folds`: the rows are elsewhere,
    and a fold is to go there. `forks`: a forked process may ask about public data."""

    numbered_rows: bool = False
    folds: bool = False
    spill: bool = False
    forks: bool = False


Work = Callable[[Iterable["NDArray[Any]"]], list[Any]]
"""What is done with rows of numbers, (n, d) each: arrays of whole numbers that add up over rows in parts. It can be
pickled, and knows nothing but what is in it."""


class Opened(Struct, frozen=True):
    """A data set that an engine knows. `identity` is equal for two names of one file or object; of several files it is
    a frozenset of what each is known by. `unread` has the columns whose types no engine reads, with these."""

    key: str
    columns: tuple[str, ...]
    identity: Hashable
    unread: tuple[tuple[str, str], ...] = ()


def check_read(name: str, unread: Iterable[tuple[str, str]]) -> None:
    """Refuses with `DataError` a column of a type that is not read: all of it would be none."""
    for column, kind in unread:
        if column == name:
            message = f"the column `{name}` is of the type `{kind}`, which is not read"
            help = "store it as numbers, texts, dates or times in a column of its own, and describe that one"
            raise refuse("DataError", message, help=help)


class Here(Protocol):
    """A database of this process, which is asked about records that are held in it."""

    def registered(self, rows: Any, name: str = "") -> AbstractContextManager[str]: ...

    def columns(self, query: str) -> list[Any]: ...


class Answers(Protocol):
    """What private rows are asked: exact integers. An engine gives them, and so does what is faster and says the same
    (`speed`). The methods are described where `sql.engine.SqlEngine` has them."""

    @property
    def here(self) -> Here: ...

    def check(self, question: object) -> None: ...

    def group(self, plan: Plan, keys: tuple[Key, ...], terms: tuple[Term, ...]) -> list[NDArray[Any]]: ...

    def counts(self, plan: Plan, tables: Sequence[tuple[Key, ...]]) -> list[NDArray[Any]]: ...

    def crossed(self, plan: Plan, keys: Sequence[Key], by: Key) -> list[NDArray[Any]]: ...

    def codes(self, plan: Plan, keys: tuple[Key, ...]) -> list[NDArray[Any]]: ...

    def fold(self, plan: Plan, exprs: tuple[RowExpr, ...], work: Work) -> list[Any]: ...

    def fold_codes(self, plan: Plan, keys: tuple[Key, ...], work: Work) -> list[Any]: ...

    def tally(self, plan: Plan, expr: RowExpr) -> tuple[NDArray[Any], NDArray[Any]]: ...

    def tuples(self, plan: Plan, exprs: tuple[RowExpr, ...]) -> tuple[list[tuple[Any, ...]], NDArray[Any]]: ...


class Engine(Answers, Protocol):
    """Data sets are opened, then asked about by plans. `objects` knows what was opened in memory (`readers.objects`);
    `remote` is the source by which a program names data of its server (`backends/remote`)."""

    objects: Any
    remote: ClassVar[str]

    @property
    def capabilities(self) -> Capabilities: ...

    def file(self, path: str | os.PathLike[str]) -> OpenFile: ...

    def open(self, origin: Any, *, public: bool, names: tuple[str, ...] = ()) -> Opened: ...

    def guess(self, key: str) -> tuple[tuple[str, Domain], ...]: ...

    def stamp(self, key: str) -> str: ...

    def code_blocks(self, plan: Plan, keys: tuple[Key, ...], size: int) -> Iterator[list[NDArray[Any]]]: ...

    def rows(self, plan: Plan) -> int: ...

    def vectors(self, plan: Plan, exprs: tuple[RowExpr, ...], size: int) -> Iterator[NDArray[Any]]: ...

    def records(self, plan: Plan) -> list[tuple[Any, ...]]: ...

    def different(self, plan: Plan, names: Sequence[str]) -> tuple[list[list[Any]], list[float]]: ...

    def exact(
        self, plan: Plan, keys: tuple[Key | RowExpr, ...], terms: tuple[Exact, ...]
    ) -> tuple[list[list[Any]], list[list[Any]]]: ...

    def close(self) -> None: ...
