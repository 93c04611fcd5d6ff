"""Counts of joins of private tables without a bound, with smooth noise: docs/privacy/elastic.md.

What is read are the counts, and the frequencies of which the number of rows that one unit may change is made up
(`transformations.elastic`). A product of frequencies m_i, of which one unit raises each by at most g_i, is made smooth
as max over k of e^(−βk)·Π(m_i + g_i·k), where one k stands for all frequencies that a source has in common. Sums and
the maximum of what is smooth are smooth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jostle.accounting.amounts import Amount
from jostle.diagnostics import refuse
from jostle.lazy import Ints
from jostle.noise_laws import SmoothLaplace
from jostle.privacy.kernel.measurement import Measured, Measurement, Release
from jostle.privacy.measurements.aggregates.sums import Count
from jostle.privacy.measurements.selects import Answer, Request, key_columns
from jostle.privacy.mechanisms.noise import Noise, needed_noise
from jostle.privacy.mechanisms.smooth import Smooth, peak
from jostle.privacy.reading.vault import Reader
from jostle.privacy.transformations.joins import FreeJoin, Frequency, Product


@dataclass(frozen=True, eq=False)
class SmoothCount(Measurement["tuple[Ints, list[int]]", Answer]):
    """A count in groups of public keys, of a join without a bound."""

    request: Request
    table: FreeJoin
    frequencies: Sequence[Frequency]
    moves: Sequence[Sequence[Product]]

    @classmethod
    def of(cls, request: Request, amount: Amount) -> SmoothCount:
        table = request.table
        if not isinstance(table, FreeJoin):
            raise refuse("TypeError", f"`via {SmoothLaplace.name}` is for joins of private tables without `up to`")
        if len(request.aggregates) != 1 or not isinstance(request.aggregates[0], Count):
            raise refuse("TypeError", f"`via {SmoothLaplace.name}` counts rows, and nothing else", help="`count(*)`")
        if not table.filtered:
            help = "leave out the rest, or give the joins a bound, `up to 3`"
            raise refuse("TypeError", "rows that met without a bound are filtered, grouped and counted", help=help)
        if request.open_keys:
            raise refuse(
                "OpenKeys", f"the values that the key `{request.group_keys[0].name}` can have are not public, and "
                f"`via {SmoothLaplace.name}` finds none",
                help="list them, `groupby E over {…}`, or describe its column with a range or categories",
            )  # fmt: skip
        groups = math.prod(len(key.values) for key in request.keys)
        how = Smooth.within(amount, [e.source.measure for e in table.paid], groups)
        return cls(table.paid, request.title, how, request, table, *table.moves(), subject=request)

    def read(self, reader: Reader) -> tuple[Ints, list[int]]:
        (term,) = self.request.aggregates[0].terms(self.table)
        (counts,) = reader.answers.group(self.table.plan, self.request.keys, (term,))
        return counts.ravel(), [_most(reader, frequency) for frequency in self.frequencies]

    def release(self, exact: tuple[Ints, list[int]], noise: Noise | None) -> Release[Answer]:
        counts, sizes = exact
        grows = [frequency.grows for frequency in self.frequencies]
        noisy, scale = self.how.draw(needed_noise(noise), counts, smoothed(self.moves, sizes, grows, self.how.beta))
        law = SmoothLaplace(scale, step=1.0)
        keys = self.request.key_columns(key_columns([list(key.values) for key in self.request.keys]))
        measured = Measured(self.request.aggregates[0].name, law, self.how, scale * self.how.alpha, 1)
        return Release(Answer(keys, [noisy.astype(float).tolist()], law), (measured,))


def _most(reader: Reader, frequency: Frequency) -> int:
    """Of rows that have a value in every column: only these meet others."""
    if len(frequency.columns) == 1:
        _, counts = reader.answers.tally(frequency.plan, frequency.columns[0])
    else:
        _, counts = reader.answers.tuples(frequency.plan, frequency.columns)
    return int(max(counts, default=0))


def smoothed(
    moves: Sequence[Sequence[Product]], sizes: Sequence[int], grows: Sequence[Sequence[int]], beta: float
) -> float:
    """S: of the rows that one unit of some source may change, a bound that changes by e^β at most with each unit."""
    return max(math.fsum(_smooth(product, sizes, grows, beta) for product in products) for products in moves)


def _smooth(product: Product, sizes: Sequence[int], grows: Sequence[Sequence[int]], beta: float) -> float:
    parts = [peak([(sizes[i], max(grows[i])) for i in part], beta) for part in _in_common(product.factors, grows)]
    return product.times * math.prod(parts)


def _in_common(factors: Sequence[int], grows: Sequence[Sequence[int]]) -> list[list[int]]:
    """The factors in parts: those of two parts have no source in common."""
    parts: list[tuple[set[int], list[int]]] = []
    for factor in factors:
        sources, members = {at for at, rows in enumerate(grows[factor]) if rows}, [factor]
        for part in [part for part in parts if part[0] & sources]:
            parts.remove(part)
            sources, members = sources | part[0], part[1] + members
        parts.append((sources, members))
    return [members for _, members in parts]
