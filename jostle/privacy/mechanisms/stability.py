"""Keys of an open domain, under δ: a key is released only if its noisy count passes a threshold.

A protected unit has at most k rows, at most r of them with one key. Laplace noise has scale k/ε and the threshold is
T = r + (k/ε)·ln(k/δ). Gaussian noise has deviation σ = √(kr)/μ and T = r + 1 + σ·z(δ/k), with half of δ for its ρ if
the budget is counted by (ε, δ). The noise with the lower threshold is used. Keys alone are searched in rounds. The keys
with the most rows are selected one after the other, whatever the number of a person's groups. The arguments are in
docs/privacy/mechanisms.md ("Keys of an open domain").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from statistics import NormalDist
from typing import Any

from msgspec import Struct

from jostle.accounting.amounts import Amount
from jostle.accounting.definitions import Measure, Price, gaussian_price, used_delta
from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.lazy import Floats, np
from jostle.noise_laws import Gaussian, Laplace, Selected
from jostle.privacy.mechanisms.additive import Additive, Linear
from jostle.privacy.mechanisms.margin import check_scale, largest_scale, stability_price
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.mechanisms.selection import Selection
from jostle.records import replace

SAFE = 1 + 2.0**-30  # more than the rounding of quantiles and roots


def key_mechanism(amount: Amount, measures: Sequence[Measure], rows: int, each: int) -> tuple[Additive, Price]:
    """The noise with the lower threshold, and its price, for units of at most `rows` rows, `each` of one key."""
    laplace = Additive.of(amount, Laplace.name, measures)
    gaussian = replace(laplace, kind=Gaussian, delta=laplace.delta / 2)
    price = replace(gaussian_price(amount, gaussian.delta), delta0=amount.delta)
    if price.rho and threshold(gaussian, rows, each) < threshold(laplace, rows, each):
        return replace(gaussian, because="its threshold for keys is the lower one"), price
    return laplace, stability_price(amount)


def threshold(how: Additive, rows: int, each: int) -> float:
    """The threshold for the noisy count of a key."""
    scale, part = SAFE * largest_scale(_linear(how, rows, each).scale), how.delta / rows
    if how.kind is Laplace:
        return each - scale * math.log(part)
    return each + 1 - scale * NormalDist().inv_cdf(part)


def _linear(how: Additive, rows: int, each: int) -> Linear:
    return Linear.of(how, rows, math.sqrt(rows * each) * SAFE)


def select_keys(
    tally: tuple[Any, Any], how: Additive, noise: Noise, rows: int, each: int
) -> tuple[list[Any], list[float], Laplace | Gaussian]:
    """Selected keys in order, their noisy counts, and the law of these. `tally` has all values and their counts.

    A unit has at most `rows` rows, and at most `each` of one key.
    """
    values, counts = tally
    linear, least = _linear(how, rows, each), threshold(how, rows, each)
    noisy = linear.release(counts, noise).tolist()
    keys = [(v, n) for v, n in zip(values, noisy, strict=True) if n > least]
    return [v for v, _ in keys], [n for _, n in keys], linear.law


LOOK, SHARES = 0.15, (0.05, 0.1, 0.7)
"""The shares of the amount for the first measurement of buckets and for each round; δ is divided in proportion. The
last round is the largest, since it leaves out what earlier rounds released."""
LEVELS = (8.0, 4.0, 1.0)
"""The least weight of a bucket, in scales of its noise, for its keys to take part in each round."""
BUCKETS = 2**14
Tally = tuple[Sequence[tuple[Any, ...]], Any]  # distinct values, and the number of rows of each
WEIGHT_BITS = 20
LARGEST = 4096  # up to this number of groups a threshold is computed for each number


class KeyLook(Struct, frozen=True):
    """Noisy weights of public buckets of keys. Each person distributes a total weight of 1 over their buckets."""

    how: Additive
    share: float

    @property
    def linear(self) -> Linear:
        """The noise of weights. A person changes them by 1 in all, in the norm of the noise."""
        one = (1 << WEIGHT_BITS) * SAFE
        return Linear.of(self.how, one, one, WEIGHT_BITS).part(self.share)

    def weight(self, groups: int) -> int:
        """The weight of each of a person's `groups`, in steps, rounded down so that the total is at most 1."""
        if self.how.kind is Laplace:
            return (1 << WEIGHT_BITS) // groups
        return math.isqrt((1 << 2 * WEIGHT_BITS) // groups)

    def weights(self, tally: Tally) -> dict[tuple[Any, ...], int]:
        """The weight of each key in steps. Values of `tally` are a key and, last, the number of a person's groups."""
        weights: Counter[tuple[object, ...]] = Counter()
        for (*key, groups), persons in zip(tally[0], np.asarray(tally[1]).tolist(), strict=True):
            weights[tuple(key)] += persons * self.weight(max(1, int(groups)))
        return weights

    def scores(self, tally: Tally, noise: Noise) -> Floats:
        """The noisy weight of every bucket, also of empty ones, in scales of the noise."""
        exact = np.zeros(BUCKETS, dtype=np.int64)
        for (bucket,), weight in self.weights(tally).items():
            exact[int(bucket)] = weight
        return self.linear.release(exact, noise) / self.linear.law.scale


class KeyRound(KeyLook, frozen=True):
    """One round of the search for keys of persons with at most `groups` groups each, in buckets whose scores are above
    `level`."""

    groups: int
    level: float

    @property
    def threshold(self) -> float:
        """The threshold for noisy weights. Keys of a single person pass it with a probability of at most δ."""
        several = range(1, min(self.groups, LARGEST) + 1)
        above = max([self._passes(t, t) for t in several])
        return above if self.groups <= LARGEST else max(above, self._passes(LARGEST, self.groups))

    def _passes(self, groups: int, keys: int) -> float:
        """The number that `keys` weights of a person with `groups` groups pass with a total probability of δ."""
        scale, part = SAFE * largest_scale(self.linear.scale), self.how.delta * (self.share / sum(SHARES)) / SAFE / keys
        above = scale * (-math.log(part) if self.how.kind is Laplace else -NormalDist().inv_cdf(part))
        return math.ldexp(self.weight(groups) + 1 + above, -WEIGHT_BITS)

    def select(self, tally: Tally, noise: Noise, earlier: Collection[Any]) -> list[Any]:
        """The keys whose noisy weights pass the threshold, without those of `earlier` rounds."""
        weights, least, gone = self.weights(tally), self.threshold, set(earlier)
        noisy = self.linear.release(list(weights.values()), noise).tolist()
        return [key for key, weight in zip(weights, noisy, strict=True) if weight > least and key not in gone]


def key_rounds(amount: Amount, measures: Sequence[Measure], groups: int) -> tuple[KeyLook, tuple[KeyRound, ...], Price]:
    """The look and the rounds for persons with at most `groups` groups each, and their price. The noise is the one that
    needs fewer persons per key, if each had twice as many groups, since the look counts all of them."""
    laplace = Additive.of(amount, Laplace.name, measures)
    gaussian = replace(laplace, kind=Gaussian, delta=laplace.delta / 2, because="fewer persons make a key known by it")
    price = replace(gaussian_price(amount, gaussian.delta), delta0=amount.delta)
    rounds = tuple([KeyRound(laplace, *each) for each in zip(SHARES, (groups,) * len(SHARES), LEVELS, strict=True)])
    others = tuple([replace(one, how=gaussian) for one in rounds])
    if price.rho and others[-1].threshold < rounds[-1].threshold * math.sqrt(2 * groups):
        return KeyLook(gaussian, LOOK), others, price
    return KeyLook(laplace, LOOK), rounds, stability_price(amount)


CANDIDATES = 2**12
"""The largest are selected among this many keys: those with more rows than the next key after them."""
MOST_LARGEST = 2**10


class LargestKeys(Selection, frozen=True):
    """Selects the `count` keys with the most rows, one after the other, or fewer if a threshold is selected first.

    A person has any number of keys, and at most `each` rows of one. A key that is a candidate in only one of two
    neighbours is selected before the threshold with probability at most `delta`; else these are `count` selections.
    """

    each: int = 1
    delta: float = 0.0

    @property
    def width(self) -> float:
        """The scale of the noise, in rows."""
        return self.scale(self.each, True)

    @property
    def threshold(self) -> int:
        """The score of ending, in rows above the least: CANDIDATES keys of `each` rows exceed it with δ/`count`."""
        return math.ceil(self.each + SAFE * largest_scale(self.width) * math.log(CANDIDATES * self.count / self.delta))

    @property
    def law(self) -> Selected:
        return Selected(self.width, CANDIDATES, "rows")

    def select(self, tally: tuple[Any, Any], noise: Noise) -> list[Any]:
        """The keys in the order of selection. `tally` has all values and their counts."""
        values, counts = tally[0], fixed_width(tally[1])
        least = int(np.sort(counts)[-CANDIDATES - 1]) if counts.size > CANDIDATES else 0
        left = np.append(np.flatnonzero(counts > least), -1)
        scores = np.append(counts[left[:-1]] - least, self.threshold)
        chosen: list[Any] = []
        while left.size > 1 and len(chosen) < self.count:
            at = noise.gumbel_max(scores, self.width)
            if left[at] < 0:  # the threshold
                break
            chosen.append(values[left[at]])
            left, scores = np.delete(left, at), np.delete(scores, at)
        return chosen


def largest_keys(amount: Amount, measures: Sequence[Measure], count: int, each: int) -> tuple[LargestKeys, Amount]:
    """The selection of keys with half of an amount, and the other half, for their aggregates. Halves are of ε, or of
    the ρ that ε means with half of δ, whichever has the lower threshold."""
    delta, ways = used_delta(amount, measures), []
    rho = gaussian_price(amount, delta / 2).rho
    for unit, value, part in ((amount.unit, amount.value, delta), ("rho", rho, delta / 2)):
        if value > 1:
            keys = LargestKeys(Amount(unit, value // 2), True, count, each, part)
            ways.append((keys, Amount(unit, value - value // 2)))
    if not ways:
        raise refuse("BadAmount", "too little to share among the parts of this measurement")
    check_scale(ways[-1][0].width)
    return min(ways, key=lambda way: way[0].threshold)
