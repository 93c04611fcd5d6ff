"""Selects on a table: noisy aggregates and selections in groups of public keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import Any

from msgspec import Struct

from jostle.accounting.amounts import Amount
from jostle.accounting.definitions import Price
from jostle.diagnostics import refuse
from jostle.engine.base import CELLS
from jostle.lazy import Floats, np
from jostle.noise_laws import Bracketed, Gaussian, Laplace, Selected
from jostle.plan.plan import Count as Counted
from jostle.plan.plan import Key
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.measurement import Measured, Measurement, Release
from jostle.privacy.measurements.aggregates.aggregate import Chosen, GroupAggregate, Mechanism
from jostle.privacy.measurements.aggregates.quantile import Quantile
from jostle.privacy.measurements.aggregates.terms import terms_of
from jostle.privacy.measurements.purchases import Layout, Purchases
from jostle.privacy.measurements.query import Answer, Request, key_columns
from jostle.privacy.mechanisms.additive import share, sum_prices
from jostle.privacy.mechanisms.noise import Noise, needed_noise
from jostle.privacy.reading.vault import Reader

OF_QUANTILES = (Bracketed.name, Selected.name)
"""Mechanisms that quantiles alone are asked by: beside them other aggregates are as ever."""


def select(request: Request, amount: Amount, via: str | None) -> Select:
    """A prepared select at an amount, of which each aggregate has an equal share."""
    purchases = shared_purchases(request, amount, via)
    how = Several.of(purchases.mechanisms, sum_prices(amount, purchases.prices))
    return Select(request.table.exposures, request.title, how, request, purchases, request.keys, subject=request)


def shared_purchases(request: Request, amount: Amount, via: str | None) -> Purchases:
    """What the aggregates buy, with an equal share of an amount each."""
    aggregates, part = request.aggregates, share(amount, max(1, len(request.aggregates)))
    if via in OF_QUANTILES and not any(isinstance(a, Quantile) for a in aggregates):
        raise refuse("TypeError", f"`via {via}` is for quantiles, and here is none", help="leave it out")
    vias = [via] * len(aggregates)
    if via in OF_QUANTILES:  # beside a quantile's interval are others
        vias = [via if isinstance(aggregate, Quantile) else None for aggregate in aggregates]
    return Purchases.of(aggregates, request.table, part, vias, request.undivided)


class Numbers(Struct, frozen=True):
    """What a select releases, of which its answers are calculated (`run.answers`).

    `measured`: of each purchase an array of noisy numbers, a row for each of its terms, and their law. `chosen`: of
    each aggregate that has no terms, the answers of all groups and their laws, and None of others.
    """

    keys: list[list[Any]]
    table: Table
    layout: Layout
    measured: list[tuple[Floats, Laplace | Gaussian]]
    chosen: list[list[Chosen] | None]


class Several(Struct, frozen=True):
    """What measures by several mechanisms, for the price of all together."""

    mechanism: str
    price: Price

    @classmethod
    def of(cls, mechanisms: Sequence[Mechanism], price: Price) -> Several:
        return cls(", ".join(dict.fromkeys(map(attrgetter("mechanism"), mechanisms))), price)


@dataclass(frozen=True, eq=False)
class Select(Measurement["tuple[list[Any], list[Any]]", "Answer | Numbers"]):
    """A select with public keys: the exact terms over the groups, and for each aggregate that has no terms the counts
    at its places in each group (for others nothing)."""

    request: Request
    purchases: Purchases
    keys: tuple[Key, ...]

    def read(self, reader: Reader) -> tuple[list[Any], list[Any]]:
        table = self.request.table
        terms = tuple([t for one in self.purchases.bought for t in terms_of(one.term)])
        exact = reader.answers.group(table.plan, self.keys, terms) if terms else []
        counts: dict[Key, Any] = {}  # at places that several aggregates may have in common
        columns = []
        for aggregate in self.purchases.layout.aggregates:
            key = aggregate.places(table) if isinstance(aggregate, GroupAggregate) else None
            if key is not None and key not in counts:
                counts[key] = self._counts(reader, key)
            columns.append(None if key is None else counts[key])
        return list(exact), columns

    def _counts(self, reader: Reader, places: Key) -> Any:
        """How many rows of each group are at each place; where one key has more values than fit, of some at a time."""
        table, blocks = self.request.table, [self.keys]
        if len(self.keys) == 1:
            ((key,), most) = self.keys, max(1, CELLS // len(places.values))
            blocks = [(Key(key.expr, key.values[i : i + most]),) for i in range(0, len(key.values) or 1, most)]
        term = Counted(weighted=table.weighted)
        counts = [reader.answers.group(table.plan, (*keys, places), (term,))[0].ravel() for keys in blocks]
        return np.concatenate(counts).reshape(self._groups, len(places.values))

    @property
    def _groups(self) -> int:
        return math.prod(len(key.values) for key in self.keys)

    def release(self, exact: tuple[list[Any], list[Any]], noise: Noise | None) -> Release[Answer | Numbers]:
        """What was measured, and of each aggregate by groups what was chosen in each."""
        table, undivided, source = self.request.table, self.request.undivided, needed_noise(noise)
        terms, counts = iter(exact[0]), exact[1]
        events: list[Measured] = []
        measured: list[Any] = []
        for purchase in self.purchases.bought:
            numbers, reported = purchase.release(list(islice(terms, len(terms_of(purchase.term)))), source, table)
            measured.append(numbers)
            events.append(reported)
        columns: list[Any] = []
        for aggregate, mechanism, numbers in zip(
            self.purchases.layout.aggregates, self.purchases.mechanisms, counts, strict=True
        ):
            column: Any = None
            measurements: list[Measured] = []
            if isinstance(aggregate, GroupAggregate):
                column, measurements = aggregate.release(mechanism, numbers, source, table, undivided)
            columns.append(column)
            events += measurements
        keys = self.request.key_columns(key_columns([list(k.values) for k in self.keys])) if self.keys else []
        return Release(Numbers(keys, table, self.purchases.layout, measured, columns), tuple(events))
