"""A select, from names to aggregates: `prepare` finds all that is wrong from public facts.

The terms of a private table's aggregates are exact integers, asked of the engine in one pass; selections choose among
public candidates. A public table is asked for exact statistics, for nothing. How far a row moves each aggregate is
argued in its file in `aggregates`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from itertools import islice
from operator import attrgetter
from typing import Any

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.engine.base import CELLS
from jostle.noise_laws import Gaussian, Laplace
from jostle.plan.plan import Column, Filter, GroupRows, Key, RowExpr, Truncate, rows_below
from jostle.plan.schemas import MOST_KEYS, key_of, need_unicode
from jostle.plan.schemas import open_keys as refuse_open_keys
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.measurements.aggregates.aggregate import Aggregate, GroupAggregate
from jostle.privacy.measurements.aggregates.sums import Count
from jostle.privacy.reading.public_data import PublicData, sizes_are_public
from jostle.records import replace

MOST_SELECTED = 1000  # groups of a selection: each is chosen by itself


class GroupKey(Struct, frozen=True):
    """A group key as the program wrote it; `over` are its public values where it gives them.

    Of a key that stands for several, `names` are what these are called, and `rows` their values at each place of
    `over`.
    """

    name: str
    expr: RowExpr
    over: tuple[Any, ...] | range | None = None
    names: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    running: Any = None
    """Of a key whose groups hold all rows up to its value, the last value that is answered; `...` for all of them."""

    def spread(self, column: list[Any]) -> list[list[Any]]:
        """The columns of what the key stands for."""
        return [[self.rows[int(v)][i] for v in column] for i in range(len(self.names))] if self.names else [column]


class Answer(Struct, frozen=True):
    """Key columns and value columns, each a sequence over groups; without keys, of one value.

    `law`: that of the noise in all values, where all have the same.
    """

    keys: list[list[Any]]
    values: Sequence[Sequence[Any]]
    law: Laplace | Gaussian | None = None


class Request(Struct, frozen=True):
    """A prepared select on a table."""

    table: Table
    keys: tuple[Key, ...]
    open_keys: tuple[RowExpr, ...]
    group_keys: tuple[GroupKey, ...]
    aggregates: tuple[Aggregate, ...]

    @property
    def title(self) -> str:
        return ", ".join(map(attrgetter("name"), self.aggregates))

    @property
    def running(self) -> bool:
        return not set(map(attrgetter("running"), self.group_keys)) <= {None}

    @property
    def undivided(self) -> bool:
        """Whether it has no groups."""
        return not self.keys and not self.open_keys

    # Public ----------------------------------------------------------------------------------------

    def exact(self, kernel: Kernel, data: PublicData) -> Answer:
        statistics = [a.statistics() for a in self.aggregates]
        keys = tuple(key_of(k.expr, k.over, self.table.domains, MOST_KEYS) or k.expr for k in self.group_keys)
        columns, values = data.exact(self.table, keys, tuple(s for some in statistics for s in some))
        rest = iter(values)
        groups = [zip(*islice(rest, len(some)), strict=True) for some in statistics]
        pairs = zip(self.aggregates, groups, strict=True)
        return Answer(self.key_columns(columns), [[a.of_statistics(group) for group in some] for a, some in pairs])

    def key_columns(self, columns: list[list[Any]]) -> list[list[Any]]:
        """The key columns of an answer, a column for each that a key stands for."""
        return [part for key, column in zip(self.group_keys, columns, strict=True) for part in key.spread(column)]

    @property
    def free(self) -> bool:
        """Whether this counts the rows of a source whose size is public, all of them or by columns whose groups are
        (`reading.public_data`)."""
        plain = self.aggregates == (Count(),) and not self.open_keys
        plain = plain and not (self.group_keys and (self.running or any(map(attrgetter("names"), self.group_keys))))
        return plain and sizes_are_public(self.table, list(map(attrgetter("expr"), self.group_keys)))

    def size(self, data: PublicData) -> Answer:
        counts = data.group_sizes(self.table, self.keys)
        return Answer(key_columns([list(k.values) for k in self.keys]), [[float(n) for n in counts.ravel()]])


def prepare(table: Table, group_keys: Sequence[GroupKey], aggregates: Sequence[Aggregate]) -> Request:
    """Types, keys and bounds of a select, in that order; refuses before any amount is looked at."""
    for aggregate in aggregates:
        aggregate.check(table)
    if not table.private:
        return Request(table, (), (), tuple(group_keys), tuple(aggregates))
    keys: list[Key] = []
    open_keys: tuple[RowExpr, ...] = ()
    for group_key in group_keys:
        key = key_of(group_key.expr, group_key.over, table.domains, MOST_KEYS)
        if key is None:
            if not any(e.source.measure.width > 1 for e in table.exposures):
                raise refuse_open_keys(group_key.name)
            open_keys = tuple(k.expr for k in group_keys)
            break
        if not isinstance(key.values, range):
            for value in key.values if isinstance(next(iter(key.values), None), str) else ():
                need_unicode(value)
        keys.append(key)
    keys = [] if open_keys else keys
    if len(group_keys) > 1 and open_keys:
        _check_together(group_keys)
    groups = math.prod([len(key.values) for key in keys]) if keys else 1
    if groups > MOST_KEYS:
        raise refuse("DataError", f"{groups:,} groups are too many", help=f"at most {MOST_KEYS:,}: group more coarsely")
    for aggregate in aggregates:
        aggregate.check_private(table)
        if isinstance(aggregate, GroupAggregate):
            most = min(MOST_SELECTED, CELLS // max(1, len(aggregate.places(table).values)))
            if groups > most:
                raise refuse(
                    "DataError", f"a {aggregate.name} in each of {groups:,} groups is too much to choose",
                    help=f"at most {most:,} groups: group more coarsely",
                )  # fmt: skip
    return Request(in_groups(table, keys, open_keys), tuple(keys), open_keys, tuple(group_keys), tuple(aggregates))


def in_groups(table: Table, keys: Sequence[Key], open_keys: Sequence[RowExpr]) -> Table:
    """The same rows; how many of a person's are in one group is known where groups by these keys are no larger than
    those that were bounded, by what the plan says, and else left out."""
    if set(map(attrgetter("each"), table.exposures)) <= {None}:
        return table
    exprs = {*open_keys, *(key.expr for key in keys)}
    match rows_below(table.plan, (Filter,)):
        case Truncate(keys=bounded) if set(bounded) <= exprs:
            return table
        case GroupRows(keys=bounded) if {Column(name) for name, _ in bounded} <= exprs:
            return table
    return replace(table, exposures=tuple(replace(e, each=None) for e in table.exposures))


def _check_together(group_keys: Sequence[GroupKey]) -> None:
    """Where one of several keys is open, their combinations are measured: none of them may be listed."""
    for key in group_keys:
        if key.over is not None:
            raise refuse(
                "OpenKeys", f"the key `{key.name}` is listed and another is not: their combinations are not public",
                help="list all keys, or their combinations, `groupby (a, b) over [(1, 2), …]`; or none: those with "
                "enough rows are then found, with a delta",
            )  # fmt: skip


def key_columns(columns: list[list[Any]]) -> list[list[object]]:
    """Key columns of the full cross product, the last key moving fastest."""
    if not columns:
        return []
    total = reduce(lambda a, b: a * len(b), columns, 1)
    out, inner = [], total
    for column in columns:
        inner //= max(1, len(column))
        repeated = column if inner == 1 else [v for v in column for _ in range(inner)]
        out.append(repeated * (total // max(1, len(repeated))) if repeated else [])
    return out
