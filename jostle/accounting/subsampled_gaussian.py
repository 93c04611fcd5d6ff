"""The exact privacy curve of Gaussian noise, and of Gaussian noise on secret Poisson samples.

*The exact curve.* Gaussian noise of deviation 1/μ on a sensitivity of 1 has the δ(ε) of Balle & Wang (2018, Thm. 8).

*Samples*: Rényi DP at integer orders, added up over steps and converted to (ε, δ).

A step keeps every protected unit with probability q, independently of other units and steps, and in secret. It adds
Gaussian noise of deviation σ·Δ to a sum that one added or removed unit changes by at most Δ in ℓ₂. For integer α ≥ 2

    (α − 1)·R(α) = ln Σ_k C(α, k) (1 − q)^(α − k) q^k exp((k² − k) / 2σ²)    (Mironov, Talwar & Zhang 2019, sect. 3.3)

*Argument, also for the discrete Gaussian.* The sample of the other units has the same law on both sides and is
independent of the noise. Rényi divergence is quasi-convex in pairs, so let it be fixed. After translation to the
origin, compare P = D(x) with M = (1 − q)·D(x) + q·D(x − v), with D ∝ exp(−‖x‖²/2s²) on ℝⁿ, or on ℤⁿ with integer v;
s = σΔ and ‖v‖ ≤ Δ. Let r(x) = D(x − v)/D(x) and g = 1 − q + q·r = M/P.

* E_P r^k = exp((k² − k)‖v‖²/2s²)·Σ D(x − kv)/Σ D(x). The last ratio is 1 on ℤⁿ as on ℝⁿ, since kv is an integer. So
  E_P g^α is the sum above, with equality, and it grows with ‖v‖ (Canonne, Kamath & Steinke 2020, for q = 1).
* The other direction is no larger: E_P g^(1−α) ≤ E_P g^α. The map x → v − x exchanges D and D(· − v) (and maps ℤⁿ to
  itself), so E_P f(r) = E_P r·f(1/r). With a = 1 − q + q·r and b = 1 − q + q/r it is enough that for each r ≥ 1
  a^α − a^(1−α) + r(b^α − b^(1−α)) ≥ 0 (r < 1 is the same with r and 1/r exchanged). With c = α − ½ this means
  √a·sinh(c·ln a) ≥ r√b·sinh(c·ln 1/b). At c = ½ both sides are q(r − 1)/2. Since ab = 1 + q(1 − q)(√r − 1/√r)² ≥ 1,
  ln a ≥ ln 1/b, and sinh(cx)/sinh(cy) grows with c if x ≥ y. So it holds for every c ≥ ½.

Steps may depend on earlier results; divergences add up (Mironov 2017). (ε, δ) follows by Canonne, Kamath & Steinke
2020, Prop. 12, at the best order. The sum has positive terms, Σ B(k)·expm1(…), so doubles keep nine digits of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from jostle.accounting.definitions import last
from jostle.lazy import Floats, Ints, np

ORDERS = (*range(2, 64), *(round(64 * 1.25**i) for i in range(26)))
"""Integer orders up to 17,000: small ε at small δ need orders of ln(1/δ)/ε."""

MARGIN = 1 + 1e-8
"""More than the rounding error of a divergence."""


@lru_cache(maxsize=1)
def _terms() -> tuple[Floats, Floats, Floats, Ints]:
    """For all orders, concatenated: α, k = 2 … α, ln C(α, k), and the start of each order."""
    logs = np.array([math.lgamma(i + 1) for i in range(ORDERS[-1] + 1)])
    alphas = np.concatenate([np.full(a - 1, a) for a in ORDERS])
    ks = np.concatenate([np.arange(2, a + 1) for a in ORDERS])
    starts = np.concatenate([[0], np.cumsum([a - 1 for a in ORDERS])[:-1]])
    return alphas.astype(float), ks.astype(float), logs[alphas] - logs[ks] - logs[alphas - ks], starts


def divergences(rate: float, sigma: float) -> Floats:
    """R(α) of one step at each of `ORDERS`, rounded up: q = `rate` in (0, 1], noise of `sigma` sensitivities."""
    orders = np.array(ORDERS, dtype=float)
    if rate >= 1:
        return orders / (2 * sigma * sigma) * MARGIN
    alphas, ks, ways, starts = _terms()
    grown = (ks * ks - ks) / (2 * sigma * sigma)
    logs = ways + (alphas - ks) * math.log1p(-rate) + ks * math.log(rate) + grown + np.log(-np.expm1(-grown))
    top = np.maximum.reduceat(logs, starts)
    spread = np.diff(np.append(starts, logs.size))
    total = top + np.log(np.add.reduceat(np.exp(logs - np.repeat(top, spread)), starts))
    divergences: Floats = np.logaddexp(0.0, total) / (orders - 1) * MARGIN
    return divergences


def epsilon_of_steps(rate: float, sigma: float, steps: int, delta: float) -> float:
    """The least ε at `delta` of `steps` steps, over `ORDERS`."""
    orders = np.array(ORDERS, dtype=float)
    bound = steps * divergences(rate, sigma) + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    return max(0.0, float(bound.min()))


@lru_cache(maxsize=1024)
def noise_for(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """The least σ, in sensitivities, for which `steps` steps stay within (ε, δ), rounded up; infinite without one."""
    low, high = 2.0**-6, 1.0
    while epsilon_of_steps(rate, high, steps, delta) > epsilon:
        low, high = high, 2 * high
        if high > 2.0**40:
            return math.inf
    while high > low * (1 + 1e-5):
        middle = math.sqrt(low * high)
        if epsilon_of_steps(rate, middle, steps, delta) <= epsilon:
            high = middle
        else:
            low = middle
    return high


def exact_gaussian(mu: float, delta: float) -> float:
    """The least ε with Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) ≤ δ, by bisection from above."""

    def lost(epsilon: float) -> float:
        first = _tail(epsilon / mu - mu / 2)
        second = math.exp(epsilon + _log_tail(epsilon / mu + mu / 2))
        return first - second

    return least_epsilon(lost, delta, mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1)


@lru_cache(maxsize=1024)
def mu_of(epsilon: float, delta: float) -> float:
    """The largest μ whose exact Gaussian curve stays within (ε, δ), from below."""
    high = 1.0
    while exact_gaussian(high, delta) <= epsilon and high < 1e6:
        high *= 2
    return last(0.0, high, lambda mu: exact_gaussian(mu, delta) <= epsilon) * (1 - 2.0**-40)


def least_epsilon(lost: Callable[[float], float], delta: float, high: float) -> float:
    """The least ε from 0 to `high` at which `lost(ε)` is at most `delta`, from above."""
    return 0.0 if lost(0.0) <= delta else -last(-high, 0.0, lambda epsilon: lost(-epsilon) <= delta)


def _tail(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2


def _log_tail(x: float) -> float:
    """ln of the Gaussian tail, by its asymptotic series if erfc underflows."""
    if x < 30:
        return math.log(_tail(x))
    square = 1 / (x * x)
    return -x * x / 2 - math.log(x * math.sqrt(2 * math.pi)) + math.log1p(-square * (1 - 3 * square * (1 - 5 * square)))
