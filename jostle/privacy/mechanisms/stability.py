"""Keys of an open domain, under δ: a key is shown only when its noisy count passes a threshold.

One protected unit has at most k rows, at most r of them with one key. Laplace noise has the scale k/ε and the threshold
T = r + (k/ε)·ln(k/δ); Gaussian noise the deviation σ = √(kr)/μ and T = r + 1 + σ·z(δ/k), with half of δ for its ρ where
that is counted by (ε, δ). The noise with the lower threshold is taken. Keys alone are found in rounds, and the keys
with the most rows are chosen one after the other, in however many groups a person is. docs/privacy/mechanisms.md has
the arguments ("Keys of an open domain").
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

SAFE = 1 + 2.0**-30  # what quantiles and roots are calculated to


def key_mechanism(amount: Amount, measures: Sequence[Measure], rows: int, each: int) -> tuple[Additive, Price]:
    """The noise for keys of which a unit has at most `rows` rows, `each` of one key: the one with the lower threshold,
    and its price."""
    laplace = Additive.of(amount, Laplace.name, measures)
    gaussian = replace(laplace, kind=Gaussian, delta=laplace.delta / 2)
    price = replace(gaussian_price(amount, gaussian.delta), delta0=amount.delta)
    if price.rho and threshold(gaussian, rows, each) < threshold(laplace, rows, each):
        return replace(gaussian, because="its threshold for keys is the lower one"), price
    return laplace, stability_price(amount)


def threshold(how: Additive, rows: int, each: int) -> float:
    """What the noisy count of a key has to pass."""
    scale, part = SAFE * largest_scale(_linear(how, rows, each).scale), how.delta / rows
    if how.kind is Laplace:
        return each - scale * math.log(part)
    return each + 1 - scale * NormalDist().inv_cdf(part)


def _linear(how: Additive, rows: int, each: int) -> Linear:
    return Linear.of(how, rows, math.sqrt(rows * each) * SAFE)


def select_keys(
    tally: tuple[Any, Any], how: Additive, noise: Noise, rows: int, each: int
) -> tuple[list[Any], list[float], Laplace | Gaussian]:
    """Keys in order with their noisy counts, and the law of these, from all values and how many rows have each.

    A unit has at most `rows` rows, and `each` of one key.
    """
    values, counts = tally
    linear, least = _linear(how, rows, each), threshold(how, rows, each)
    noisy = linear.release(counts, noise).tolist()
    keys = [(v, n) for v, n in zip(values, noisy, strict=True) if n > least]
    return [v for v, _ in keys], [n for _, n in keys], linear.law


LOOK, SHARES = 0.15, (0.05, 0.1, 0.7)
"""Of an amount, what the look at buckets of keys has, and what each round has, and of δ in proportion. So ordered since
what the first rounds find is left out of the last."""
LEVELS = (8.0, 4.0, 1.0)
"""How far above 0 the weight of a bucket has to be, in scales of its noise, for its keys to count in each round."""
BUCKETS = 2**14
Tally = tuple[Sequence[tuple[Any, ...]], Any]  # different values, and how many rows have each
WEIGHT_BITS = 20
LARGEST = 4096  # of how many groups a threshold looks at each number


class KeyLook(Struct, frozen=True):
    """Noisy weights of public buckets of keys, of persons who give 1 in all to their buckets, however many."""

    how: Additive
    share: float

    @property
    def linear(self) -> Linear:
        """The noise of weights: a person moves them by 1 in all, in the norm of the noise."""
        one = (1 << WEIGHT_BITS) * SAFE
        return Linear.of(self.how, one, one, WEIGHT_BITS).part(self.share)

    def weight(self, groups: int) -> int:
        """What a person with so many groups gives each of them, in steps: rounded down, 1 in all at most."""
        if self.how.kind is Laplace:
            return (1 << WEIGHT_BITS) // groups
        return math.isqrt((1 << 2 * WEIGHT_BITS) // groups)

    def weights(self, tally: Tally) -> dict[tuple[Any, ...], int]:
        """The weight of each key in steps, of how many persons have a key and, last in the tuple, how many groups."""
        weights: Counter[tuple[object, ...]] = Counter()
        for (*key, groups), persons in zip(tally[0], np.asarray(tally[1]).tolist(), strict=True):
            weights[tuple(key)] += persons * self.weight(max(1, int(groups)))
        return weights

    def scores(self, tally: Tally, noise: Noise) -> Floats:
        """The noisy weight of every bucket, also of those that nobody has, in scales of the noise."""
        exact = np.zeros(BUCKETS, dtype=np.int64)
        for (bucket,), weight in self.weights(tally).items():
            exact[int(bucket)] = weight
        return self.linear.release(exact, noise) / self.linear.law.scale


class KeyRound(KeyLook, frozen=True):
    """One of the rounds in which keys are found, of persons with at most `groups` groups each, in buckets whose scores
    are above a level."""

    groups: int
    level: float

    @property
    def threshold(self) -> float:
        """What a noisy weight has to pass, so that keys of one person alone do with a probability of at most δ."""
        several = range(1, min(self.groups, LARGEST) + 1)
        above = max([self._passes(t, t) for t in several])
        return above if self.groups <= LARGEST else max(above, self._passes(LARGEST, self.groups))

    def _passes(self, groups: int, keys: int) -> float:
        """What `keys` weights of a person with `groups` groups pass with a probability of δ, in all."""
        scale, part = SAFE * largest_scale(self.linear.scale), self.how.delta * (self.share / sum(SHARES)) / SAFE / keys
        above = scale * (-math.log(part) if self.how.kind is Laplace else -NormalDist().inv_cdf(part))
        return math.ldexp(self.weight(groups) + 1 + above, -WEIGHT_BITS)

    def select(self, tally: Tally, noise: Noise, earlier: Collection[Any]) -> list[Any]:
        """The keys whose noisy weights pass; what was shown before is not shown again."""
        weights, least, gone = self.weights(tally), self.threshold, set(earlier)
        noisy = self.linear.release(list(weights.values()), noise).tolist()
        return [key for key, weight in zip(weights, noisy, strict=True) if weight > least and key not in gone]


def key_rounds(amount: Amount, measures: Sequence[Measure], groups: int) -> tuple[KeyLook, tuple[KeyRound, ...], Price]:
    """The look and the rounds for keys of persons with at most `groups` groups each, and their price: with the noise by
    which fewer persons, with twice so many groups each, make a key known, since the look is at all that they have."""
    laplace = Additive.of(amount, Laplace.name, measures)
    gaussian = replace(laplace, kind=Gaussian, delta=laplace.delta / 2, because="fewer persons make a key known by it")
    price = replace(gaussian_price(amount, gaussian.delta), delta0=amount.delta)
    rounds = tuple([KeyRound(laplace, *each) for each in zip(SHARES, (groups,) * len(SHARES), LEVELS, strict=True)])
    others = tuple([replace(one, how=gaussian) for one in rounds])
    if price.rho and others[-1].threshold < rounds[-1].threshold * math.sqrt(2 * groups):
        return KeyLook(gaussian, LOOK), others, price
    return KeyLook(laplace, LOOK), rounds, stability_price(amount)


CANDIDATES = 2**12
"""Among how many keys the largest are chosen: those that have more rows than the next one after so many."""
MOST_LARGEST = 2**10


class LargestKeys(Selection, frozen=True):
    """The `count` keys with the most rows, one after the other, or as many as come before a threshold.

    A person has any number of keys, and at most `each` rows of one. Keys that one of two neighbours alone chooses
    among come before the threshold with a probability of at most `delta`; outside of that they are so many choices.
    """

    each: int = 1
    delta: float = 0.0

    @property
    def width(self) -> float:
        """The scale of the noise, in rows."""
        return self.scale(self.each, True)

    @property
    def threshold(self) -> int:
        """The rows above the least that are as good as ending: CANDIDATES keys of `each` rows pass with δ/`count`."""
        return math.ceil(self.each + SAFE * largest_scale(self.width) * math.log(CANDIDATES * self.count / self.delta))

    @property
    def law(self) -> Selected:
        return Selected(self.width, CANDIDATES, "rows")

    def select(self, tally: tuple[Any, Any], noise: Noise) -> list[Any]:
        """The keys in the order in which they are chosen, from all values and how many rows have each."""
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
    """The choice of keys with half of an amount, and the other half, which is for their aggregates: of ε, or of the ρ
    that it means with half of δ, by which the threshold is the lower one."""
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
