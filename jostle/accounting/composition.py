"""Planning: the total loss of many equal measurements, by each rule of composition.

Nothing is charged or read here. `accounting(…)` converts a budget in one measure to others. For `times` runs of one
mechanism, each with sensitivity 1, the least ε at `delta` by

* `linear`: ε's and δ's add (Dwork et al. 2006);
* `advanced`: the better of `linear` and Dwork, Rothblum & Vadhan 2010, Thm. III.3;
* `rdp`: Rényi DP of the mechanism, added up and converted at the best order (Mironov 2017; Canonne et al. 2020);
* `zcdp`: ρ's add, converted tightly (Bun & Steinke 2016; Canonne et al. 2020, Cor. 13);
* `exact`: for Gaussian noise the exact curve (Balle & Wang 2018, Thm. 8); for pure ε the best possible bound
  (Kairouz, Oh & Viswanath 2015, Thm. 3.3), which randomised response attains.

Also here: reading requested amounts, parts of amounts, and a default sampling rate. Charges are checked by the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_DOWN, Decimal
from fractions import Fraction
from functools import lru_cache

from jostle.accounting.amounts import QUANTA
from jostle.accounting.definitions import epsilon_of
from jostle.accounting.subsampled_gaussian import epsilon_of_steps, exact_gaussian, least_epsilon, noise_for
from jostle.diagnostics import refuse

WAYS = ("linear", "advanced", "rdp", "zcdp", "exact")
_ORDERS = [1 + x / 10 for x in range(1, 100)] + [float(a) for a in range(11, 64)] + [2.0**k for k in range(6, 21)]


def of_gaussian(sigma: float, times: int, delta: float) -> dict[str, float]:
    """ε of `times` Gaussian measurements of deviation `sigma` and ℓ₂-sensitivity 1."""
    _check(sigma, "sigma", times, delta)
    each, rho = delta / (2 * times), times / (2 * sigma * sigma)
    once = exact_gaussian(1 / sigma, each)
    linear = times * exact_gaussian(1 / sigma, delta / times)
    return {
        "linear": linear,
        "advanced": min(linear, advanced(once, times, delta / 2)),
        "rdp": from_rdp(lambda alpha: rho * alpha, delta),
        "zcdp": epsilon_of(rho, delta),
        "exact": exact_gaussian(math.sqrt(times) / sigma, delta),
    }


def of_pure(epsilon: float, times: int, delta: float) -> dict[str, float]:
    """ε of `times` measurements that are `epsilon`-DP each."""
    _check(epsilon, "epsilon", times, delta)
    linear = times * epsilon
    return {
        "linear": linear,
        "advanced": min(linear, advanced(epsilon, times, delta)),
        "rdp": min(linear, from_rdp(lambda alpha: times * rdp_of_pure(epsilon, alpha), delta)),
        "zcdp": min(linear, epsilon_of(times * epsilon * epsilon / 2, delta)),
        "exact": exact_pure(epsilon, times, delta),
    }


def advanced(epsilon: float, times: int, delta: float) -> float:
    """ε√(2k ln(1/δ)) + kε(e^ε − 1)/(e^ε + 1) (Dwork, Rothblum & Vadhan, with the tighter mean of Kairouz et al.)."""
    return epsilon * math.sqrt(2 * times * math.log(1 / delta)) + times * epsilon * math.tanh(epsilon / 2)


def from_rdp(curve: Callable[[float], float], delta: float) -> float:
    """The least ε over orders: R(α) + ln(1 − 1/α) − (ln δ + ln α)/(α − 1) (Canonne et al. 2020, Prop. 12)."""
    return max(0.0, min(
        curve(a) + math.log1p(-1 / a) - (math.log(delta) + math.log(a)) / (a - 1) for a in _ORDERS
    ))  # fmt: skip


def rdp_of_pure(epsilon: float, alpha: float) -> float:
    """The Rényi divergence of randomised response at ε, the worst of all ε-DP mechanisms."""
    low = -epsilon - math.log1p(math.exp(-epsilon))  # ln 1/(1 + e^ε)
    high = -math.log1p(math.exp(-epsilon))
    a, b = alpha * high + (1 - alpha) * low, alpha * low + (1 - alpha) * high
    top = max(a, b)
    return (top + math.log(math.exp(a - top) + math.exp(b - top))) / (alpha - 1)


def _check(value: float, name: str, times: int, delta: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise refuse("ValueError", f"`{name}` is a positive number")
    if times < 1:
        raise refuse("ValueError", "`times` is a whole number, at least 1")
    if not 0 < delta < 1:
        raise refuse("ValueError", "`delta` lies between 0 and 1", help="something like `delta = 1e-6`")


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

    return least_epsilon(lost, delta, times * epsilon)


def quanta(value: object, what: str = "epsilon") -> int:
    """`value` in quanta. Raises `BadAmount` unless it is a finite number of at least one quantum."""
    number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    whole = _rounded_down(number) if 0 < number < math.inf else 0
    if whole == 0:
        wrong = f"is above zero, not {number:g}" if number <= 0 else f"is at least {1 / QUANTA:g}, not {number:g}"
        wrong = "is a number" if math.isnan(number) else "is finite" if math.isinf(number) else wrong
        example = "`delta 1e-6`" if what == "delta" else f"a positive number, such as `{what} 0.1`"
        raise refuse("BadAmount", f"an amount of {what} {wrong}", label="no amount", help=f"write {example}")
    return whole


@lru_cache(maxsize=256)
def _rounded_down(value: float) -> int:
    return int((Decimal(repr(value)) * QUANTA).to_integral_value(ROUND_DOWN))


def part_of(quanta: int, share: float) -> int:
    """A share of an amount, where `share` is the simplest fraction within its rounding: three times `1/3` is all."""
    return math.floor(quanta * _simplest(float(share)))


@lru_cache(maxsize=256)
def _simplest(share: float) -> Fraction:
    exact = Fraction(repr(share))
    simple = exact.limit_denominator(1_000_000)
    return simple if math.isclose(float(simple), share, rel_tol=1e-15) else exact


@lru_cache(maxsize=256)
def rate_for(epsilon: float, delta: float, steps: int) -> float:
    """The default sampling rate: a power of ½ at which the mean of all steps has nearly its smallest error.

    The mean of `steps` batches has noise σ/(q√steps), which is least for batches of all rows. As q falls, it stays
    nearly the same while σ is above 1, and then grows. The result is the least q within a tenth of the least noise, and
    at least 4/steps, so that each row is sampled about four times.
    """
    best, rate = min(noise_for(epsilon, delta, 1.0, steps), 2.0**99), 1.0
    while rate * steps >= 8 and epsilon_of_steps(rate / 2, 1.1 * best * rate / 2, steps, delta) <= epsilon:
        rate /= 2
    return rate
