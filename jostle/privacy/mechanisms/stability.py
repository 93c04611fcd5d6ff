"""Keys of an open domain, under δ: a key is shown only when its noisy count passes a threshold.

*Argument.* One protected unit has at most k rows, at most r of them with one key. So it touches at most k keys, and
moves the vector of counts by at most k in ℓ₁ and √(kr) in ℓ₂. For keys that both neighbours have, discrete Laplace
noise of scale k/ε and a threshold are ε-DP, and discrete Gaussian noise of deviation √(kr)/μ is μ²/2-zCDP. A key that
only one of them has holds at most r rows, all of that unit; it is shown only if the noise exceeds T − r. Of Laplace
noise this has a probability of at most exp(−(T − r)ε/k), which T = r + (k/ε)·ln(k/δ) makes δ/k (Korolova et al. 2009;
Wilson et al. 2020). Discrete Gaussian noise is above t with at most the probability that continuous noise is above
t − 1 (Canonne, Kamath and Steinke 2020, Prop. 25), which T = r + 1 + σ·z(δ/k) makes δ/k, z the upper quantile of a
normal law. So δ bounds the at most k of them. Gaussian noise that is counted by (ε, δ) has half of δ for its ρ, and
half for the keys. The noise with the lower threshold is taken, by ε, δ, k and r alone.
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
