"""Counts of joins of private tables without a bound, with smooth noise (docs/privacy/elastic.md).

It reads the counts, and the frequencies whose products bound the rows that one unit changes (`transformations.joins`).
The smooth bound of a product of frequencies m_i, each of which one unit raises by at most g_i, is the maximum over k of
e^(−βk)·Π(m_i + g_i·k). One k is used for all frequencies of the same source.

*The mechanism.* S(D) bounds the change of counts, and differs by at most a factor e^β between neighbours. A count gets
discrete Laplace noise of scale S/α. To report the error, ⌈ln S/u⌉ is released with such noise too, of a public scale.
Half of ε is α. Of the other half 4β pays for the scale, and β is as large as δ allows (after Nissim, Raskhodnikova and
Smith 2007).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from jostle.accounting.amounts import Amount, as_float
from jostle.accounting.definitions import Measure, used_delta
from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.lazy import Ints
from jostle.noise_laws import SmoothLaplace
from jostle.privacy.kernel.measurement import Measured, Measurement, Release
from jostle.privacy.measurements.aggregates.sums import Count
from jostle.privacy.measurements.selects import Answer, Request, key_columns
from jostle.privacy.mechanisms.margin import Approximate
from jostle.privacy.mechanisms.noise import Noise, needed_noise
from jostle.privacy.reading.vault import Reader
from jostle.privacy.transformations.joins import FreeJoin, Frequency, Product


@dataclass(frozen=True, eq=False)
class SmoothCount(Measurement["tuple[Ints, list[int]]", Answer]):
    """A count by public keys of a join without a bound."""

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
    """The exact frequency, of rows with a value in every column, since only these match others."""
    if len(frequency.columns) == 1:
        _, counts = reader.answers.tally(frequency.plan, frequency.columns[0])
    else:
        _, counts = reader.answers.tuples(frequency.plan, frequency.columns)
    return int(max(counts, default=0))


def smoothed(
    moves: Sequence[Sequence[Product]], sizes: Sequence[int], grows: Sequence[Sequence[int]], beta: float
) -> float:
    """S, a bound on the rows that one unit of a source changes, which differs by at most e^β between neighbours."""
    return max(math.fsum(_smooth(product, sizes, grows, beta) for product in products) for products in moves)


def _smooth(product: Product, sizes: Sequence[int], grows: Sequence[Sequence[int]], beta: float) -> float:
    parts = [peak([(sizes[i], max(grows[i])) for i in part], beta) for part in _in_common(product.factors, grows)]
    return product.times * math.prod(parts)


def _in_common(factors: Sequence[int], grows: Sequence[Sequence[int]]) -> list[list[int]]:
    """Divides factors into parts without a common source."""
    parts: list[tuple[set[int], list[int]]] = []
    for factor in factors:
        sources, members = {at for at, rows in enumerate(grows[factor]) if rows}, [factor]
        for part in [part for part in parts if part[0] & sources]:
            parts.remove(part)
            sources, members = sources | part[0], part[1] + members
        parts.append((sources, members))
    return [members for _, members in parts]


# The mechanism -------------------------------------------------------------------------------------


SLACK = 2.0**-28  # for ln b: exceeds the rounding of a scale up to a fraction (2^-30) and of doubles
UP = 1 + 2.0**-40  # exceeds the rounding of doubles in S
LEAST, WIDEST = 2.0**-20, 2.0**90  # the least β; the largest S, above any difference of clamped counts
STEPS = 64  # steps of ln S per β
ONE_SIDE = 1 / (1 + math.exp(-1))  # P(z ≥ n) ≤ ONE_SIDE·e^(−n/b) for b ≥ 1


class Smooth(Approximate, frozen=True):
    """Smooth noise for `groups` counts together within one amount."""

    groups: int = 1

    @classmethod
    def within(cls, amount: Amount, measures: Sequence[Measure], groups: int) -> Smooth:
        """Raises `BadAmount` without a δ, or if ε is too small."""
        if amount.unit != "epsilon" or not amount.delta:
            raise refuse("BadAmount", f"`via {SmoothLaplace.name}` needs a delta", help="`with epsilon 1 delta 1e-6`")
        how = cls(amount, False, delta=used_delta(amount, measures), groups=groups)
        if how.beta < LEAST:
            raise refuse("BadAmount", f"too little epsilon for noise `via {SmoothLaplace.name}`", help="allot more")
        return how

    @property
    def mechanism(self) -> str:
        return SmoothLaplace.name

    @property
    def alpha(self) -> float:
        """The part of ε for the noise of counts."""
        return as_float(self.amount.value) / 2

    @property
    def beta(self) -> float:
        """The bound on the change of ln S between neighbours."""
        return largest_beta(as_float(self.amount.value), self.delta, self.groups)

    def draw(self, noise: Noise, exact: Ints, smooth: float) -> tuple[Ints, float]:
        """The noisy counts, and the released scale of their noise. `smooth` is S before it is rounded up."""

        scale = min(max(smooth * UP, self.alpha), WIDEST) / self.alpha
        unit = self.beta / STEPS
        place = fixed_width([math.ceil(math.log(scale) / unit)])
        noisy = int(noise.laplace(place, (STEPS + 1) / told_epsilon(self.beta)).item())
        values = fixed_width(exact)
        return noise.laplace(values, scale), math.exp(min(max(noisy * unit, 0.0), math.log(WIDEST)))


def told_epsilon(beta: float) -> float:
    """The ε of releasing the scale, whose logarithm has Laplace noise of scale `SPREAD`."""
    return beta / SmoothLaplace.SPREAD * (STEPS + 1) / STEPS


def peak(factors: Sequence[tuple[int, int]], beta: float) -> float:
    """The maximum over k = 0, 1, 2, … of e^(−βk)·Π(m + gk) for factors (m, g).

    Its logarithm is concave in k and falls from (number of factors)/β on, so the last k at which it rises is searched.
    """
    growing = [(m, g) for m, g in factors if g]

    def rises(k: int) -> bool:
        if any(m + g * k == 0 for m, g in growing):
            return True
        return math.fsum(math.log1p(g / (m + g * k)) for m, g in growing) > beta

    low, high = 0, math.ceil(len(growing) / beta) + 2
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if rises(middle) else (low, middle)
    values = [m + g * low for m, g in factors]
    return math.exp(math.fsum(map(math.log, values)) - beta * low) if all(values) else 0.0


@lru_cache(maxsize=256)
def largest_beta(epsilon: float, delta: float, groups: int) -> float:
    """Nearly the largest β for which the noise of `groups` counts and the released scale are (ε, δ)-DP."""
    low, high = 0.0, epsilon
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if needed_delta(epsilon, middle, groups) <= delta * (1 - 1e-9) else (low, middle)
    return low


def needed_delta(epsilon: float, beta: float, groups: int) -> float:
    """The δ of smooth noise for `groups` counts; 1 if ε is too small."""
    steep = beta + SLACK
    room = epsilon / 2 - told_epsilon(beta)
    if room <= groups * steep:
        return 1.0
    c = math.expm1(steep)
    if groups == 1:
        return ONE_SIDE * (math.exp(-room / c) + math.exp(-(room + epsilon) / c)) * c / (1 + c)
    return math.exp(min(_by_moments(room, c, groups, part / 200) for part in range(1, 200)))


def _by_moments(room: float, c: float, groups: int, part: float) -> float:
    """ln(C·e^(−r·room)·(1 − rc)^(−d)) with r = part/c, where (1 − e^(−y))₊ ≤ C·e^(ry)."""
    r = part / c
    return r * math.log(r) - (1 + r) * math.log1p(r) - r * room - groups * math.log1p(-part)
