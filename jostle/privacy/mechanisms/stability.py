"""Keys of an open domain, under δ: a key is shown only when its noisy count passes a threshold.

*Argument.* One protected unit has at most k rows, hence touches at most k keys and moves the vector of counts by
at most k in ℓ₁. For keys that both neighbours have, noise Lap(k/ε) and a threshold are ε-DP. A key that only one of
them has holds at most k rows, all of that unit; it is shown only if the noise exceeds T − k, with probability at
most exp(−(T − k)ε/k). T = k + (k/ε)·ln(k/δ) makes this δ/k a key, and δ for the at most k of them (Korolova et al.
2009; Wilson et al. 2020).
"""

from __future__ import annotations

import math
from typing import Any

from jostle.noise_laws import Gaussian, Laplace
from jostle.privacy.mechanisms.additive import Additive, Linear
from jostle.privacy.mechanisms.noise import Noise


def select_keys(
    tally: tuple[Any, Any], how: Additive, noise: Noise, stability: int
) -> tuple[list[Any], list[float], Laplace | Gaussian]:
    """Keys in order with their noisy counts, and the law of these, from all values and how many rows have each."""
    values, counts = tally
    linear = Linear.of(how, stability, stability)
    threshold, law = stability + linear.scale * math.log(stability / how.delta), linear.law
    noisy = linear.release(counts, noise).tolist()
    keys = [(v, n) for v, n in zip(values, noisy, strict=True) if n > threshold]
    return [v for v, _ in keys], [n for _, n in keys], law
