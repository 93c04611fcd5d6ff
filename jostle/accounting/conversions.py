"""Conversions between ε, ρ and (ε, δ): each from the safe side, in doubles.

* ρ-zCDP implies (ε, δ) with δ = inf_α exp((α−1)(αρ−ε)) / (α−1) · (1−1/α)^α (Canonne, Kamath & Steinke 2020, Cor. 13);
* an ε-DP mechanism is ε·tanh(ε/2)-zCDP (`definitions.pure_price` has the argument);
* Gaussian noise of deviation 1/μ on a sensitivity of 1 has the exact curve δ(ε) of Balle & Wang (2018, Thm. 8).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from jostle.accounting.amounts import QUANTA

ROUNDING = 1 + 2.0**-45
"""More than what floating point may lose in ε·tanh(ε/2)."""
MOST = 1e290
"""The most ρ that anything is given; in quanta it is still a float."""


@lru_cache(maxsize=4096)
def epsilon_of(rho: float, delta: float) -> float:
    """The least ε for which ρ-zCDP gives (ε, δ), by ternary search over α; an upper bound at any α it stops at."""
    if rho == 0:
        return 0.0
    if not 0 < delta < 1:
        return math.inf

    def bound(alpha: float) -> float:
        return alpha * rho + math.log1p(-1 / alpha) + (math.log(1 / delta) - math.log(alpha)) / (alpha - 1)

    def at(t: float) -> float:
        return 1.0 + math.exp(t - 20.0)

    low, high = 0.0, 60.0  # of log(α − 1), shifted; the bound is quasi-convex in α
    for _ in range(200):
        third = (high - low) / 3
        a, b = low + third, high - third
        if bound(at(a)) < bound(at(b)):
            high = b
        else:
            low = a
    return max(0.0, bound(at((low + high) / 2)))


def root_two_rho(rho: float) -> float:
    """√(2ρ), the inverse of Gaussian noise's deviation; the same to the bit where 2ρ is no float any more."""
    return 2 * math.sqrt(rho / 2)


@lru_cache(maxsize=1024)
def pure_epsilon(rho: float) -> float:
    """The most ε that costs at most ρ in zCDP, from below: the inverse of ε·tanh(ε/2), and no less than √(2ρ)."""
    low = root_two_rho(rho)
    high = max(2 * low, 2 * rho)  # ε·tanh(ε/2) is at least ε²/4 up to ε = 2, and ε/2 beyond
    for _ in range(100):
        middle = low + (high - low) / 2
        if middle * math.tanh(middle / 2) * ROUNDING <= rho:
            low = middle
        else:
            high = middle
    return low


@lru_cache(maxsize=1024)
def rho_of(epsilon: float, delta: float) -> float:
    """The most ρ that stays within (ε, δ): the inverse of `epsilon_of`, from below."""
    low, high = 0.0, min(max(1.0, 2 * epsilon), MOST)
    for _ in range(100):
        middle = (low + high) / 2
        if epsilon_of(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return float(math.floor(low * QUANTA) / QUANTA)


def exact_gaussian(mu: float, delta: float) -> float:
    """The least ε with Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) ≤ δ, by bisection from above."""

    def lost(epsilon: float) -> float:
        first = _tail(epsilon / mu - mu / 2)
        second = math.exp(epsilon + _log_tail(epsilon / mu + mu / 2))
        return first - second

    return _bisect(lost, delta, mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1)


@lru_cache(maxsize=1024)
def mu_of(epsilon: float, delta: float) -> float:
    """The largest μ whose exact Gaussian curve passes within (ε, δ), from below."""
    low, high = 0.0, 1.0
    while exact_gaussian(high, delta) <= epsilon and high < 1e6:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        if exact_gaussian(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low * (1 - 2.0**-40)


def exact_pure(epsilon: float, times: int, delta: float) -> float:
    """The best bound for k-fold composition of ε-DP: over j, ε_j = (k − 2j)ε and its δ_j."""

    def lost(total: float) -> float:
        scale = -times * math.log1p(math.exp(epsilon))  # of ln(1 + e^ε)^−k
        terms = []
        for j in range(times + 1):
            gain, other = (times - j) * epsilon, total + j * epsilon
            if gain <= other:
                break
            ways = math.lgamma(times + 1) - math.lgamma(j + 1) - math.lgamma(times - j + 1)
            terms.append(math.exp(ways + scale + gain) * -math.expm1(other - gain))
        return math.fsum(terms)

    return _bisect(lost, delta, times * epsilon)


def _bisect(lost: Callable[[float], float], delta: float, high: float) -> float:
    low = 0.0
    if lost(low) <= delta:
        return 0.0
    for _ in range(100):
        middle = (low + high) / 2
        if lost(middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def _tail(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2


def _log_tail(x: float) -> float:
    """ln of the Gaussian tail; far out by its asymptotic series, where erfc underflows."""
    if x < 30:
        return math.log(_tail(x))
    square = 1 / (x * x)
    return -x * x / 2 - math.log(x * math.sqrt(2 * math.pi)) + math.log1p(-square * (1 - 3 * square * (1 - 5 * square)))
