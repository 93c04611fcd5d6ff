"""Keys of an open domain, under δ: a key is shown only when its noisy count passes a threshold.

One protected unit has at most k rows, at most r of them with one key. Discrete Laplace noise has the scale k/ε and the
threshold T = r + (k/ε)·ln(k/δ); discrete Gaussian noise the deviation σ = √(kr)/μ and T = r + 1 + σ·z(δ/k), z the upper
quantile of a normal law, with half of δ for its ρ where that is counted by (ε, δ). The noise with the lower threshold
is taken, by ε, δ, k and r alone. docs/privacy/mechanisms.md has the argument ("Keys of an open domain").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

from jostle.accounting.amounts import Amount
from jostle.accounting.definitions import Measure, Price, gaussian_price, stability_price
from jostle.noise_laws import Gaussian, Laplace
from jostle.privacy.mechanisms.additive import Additive, Linear
from jostle.privacy.mechanisms.noise import Noise
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
    scale, part = _linear(how, rows, each).scale, how.delta / rows
    if how.kind is Laplace:
        return each - scale * math.log(part)
    return each + 1 - scale * SAFE * NormalDist().inv_cdf(part)


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
