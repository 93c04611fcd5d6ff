"""Brute force of stabilities: how many rows of what is made from small tables change when one of their rows does.

Every multiset of at most `most` rows is tried, with each of its neighbours, through an engine and its SQL; nothing
here reads how a transformation argues.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from jostle.accounting.amounts import Amount, Unit
from jostle.accounting.definitions import Measure
from jostle.plan.facts import FACTS
from jostle.plan.plan import Domain, Plan, Scan
from jostle.privacy.kernel.exposures import Exposure, Source
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.reading.public_data import PublicData
from jostle.readers.duckdb import LocalDuckDb

Row = tuple[Any, ...]
Schema = tuple[tuple[str, Domain], ...]
Make = Callable[..., Table]


def sizes(kinds: Sequence[Row], most: int) -> list[tuple[Row, ...]]:
    """All multisets of at most `most` rows of these kinds."""
    return [some for n in range(most + 1) for some in itertools.combinations_with_replacement(kinds, n)]


def neighbours(contents: Sequence[tuple[Row, ...]]) -> Iterator[tuple[int, int]]:
    """Places of contents of which the second has one row more."""
    for i, j in itertools.permutations(range(len(contents)), 2):
        more, fewer = Counter(contents[j]), Counter(contents[i])
        if len(contents[j]) == len(contents[i]) + 1 and not fewer - more:
            yield i, j


class Tables:
    """Tables of an engine, private ones each of a source of its own name."""

    def __init__(self, kernel: Kernel, data: PublicData, engine: LocalDuckDb) -> None:
        self.kernel, self.data, self.engine = kernel, data, engine
        self._sources: dict[str, Source] = {}
        self._rows: dict[Plan, Counter[Row]] = {}

    def source(self, name: str, unit: Unit | None = None) -> Source:
        if name not in self._sources:
            measure = Measure("pure", Amount("epsilon", 10**15))
            self._sources[name] = Source(name, measure, unit or Unit(), None, None)  # type: ignore[arg-type]
        return self._sources[name]

    def table(self, rows: Sequence[Row], schema: Schema, source: str = "") -> Table:
        """A table with these rows, private to a source where one is named."""
        columns = {name: np.array([row[i] for row in rows], dtype=object) for i, (name, _) in enumerate(schema)}
        plan = Scan(self.engine.open(columns, public=not source).key, schema)
        exposures = (Exposure.of(self.source(source), self.source(source).unit),) if source else ()
        return Table(exposures, plan, schema, facts=FACTS)

    def rows(self, table: Table) -> Counter[Row]:
        """The rows of a table, with their columns and hidden weights, and how often each occurs."""
        if table.plan not in self._rows:
            made = self.engine.relation(table.plan)
            names = [*(physical.alias for physical in made.columns.values()), *(["w"] if made.weighted else [])]
            assert list(made.columns) == list(table.domains)
            self._rows[table.plan] = Counter(self.engine.fetch(f"SELECT {', '.join(names)} FROM ({made.sql})"))
        return self._rows[table.plan]

    def changed(self, one: Table, other: Table) -> int:
        """The rows that have to be added and removed to make one table of the other."""
        a, b = self.rows(one), self.rows(other)
        return sum(((a - b) + (b - a)).values())


def worst(bench: Tables, tables: Sequence[Sequence[Table]], contents: Sequence[Sequence[tuple[Row, ...]]], side: int,
          make: Make) -> tuple[int, int]:  # fmt: skip
    """Over all tables and neighbours on one side: the most rows that change, and the least stability that is claimed.

    Asserts that no pair changes by more than its own claim.
    """
    most, least = 0, 10**9
    pairs = list(neighbours(contents[side]))
    others = [range(len(some)) if i != side else [0] for i, some in enumerate(contents)]
    name = tables[side][0].exposures[0].source.name
    for places in itertools.product(*others):
        made: dict[int, Table] = {}
        for i, j in pairs:
            for k in (i, j):
                if k not in made:
                    made[k] = make(*(some[k if at == side else places[at]] for at, some in enumerate(tables)))
            claims = {e.source.name: e.stability for k in (i, j) for e in made[k].exposures}
            moved = bench.changed(made[i], made[j])
            assert moved <= claims[name], (contents[side][i], contents[side][j], places, moved, claims)
            most, least = max(most, moved), min(least, claims[name])
    return most, least
