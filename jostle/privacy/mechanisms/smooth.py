"""Counts with noise as wide as the data need it: discrete Laplace noise whose scale is a private number.

Let `smooth`, S(D), be a positive number with |f(D) − f(D′)|₁ ≤ S(D) and S(D′) ≤ e^β·S(D) for all neighbours D, D′. A
count f(D) gets discrete Laplace noise of scale b = S(D)/α, and so that its error can be told, ⌈ln S(D)/u⌉ gets such
noise too, of a public scale. Half of ε is α; of the other half 4β pays for the scale that is released, and β is as
large as δ allows. After Nissim, Raskhodnikova and Smith (2007), proved for the law that is drawn in
docs/privacy/elastic.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from jostle.accounting.amounts import Amount, as_float
from jostle.accounting.definitions import Measure, Price, stability_price, used_delta
from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.lazy import Ints
from jostle.noise_laws import SmoothLaplace
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.mechanisms.selection import Selection

SLACK = 2.0**-28  # of ln b: more than rounding a scale up to a fraction (2^-30), and all doubles before it, amount to
UP = 1 + 2.0**-40  # more than the doubles of which S is made may take from it
LEAST, WIDEST = 2.0**-20, 2.0**90  # of β; and of S, which no difference of clamped counts exceeds
STEPS = 64  # of ln S in a β
ONE_SIDE = 1 / (1 + math.exp(-1))  # P(z ≥ n) is at most so many times e^(−n/b), b ≥ 1


class Smooth(Selection, frozen=True):
    """Smooth noise for `groups` counts together within one amount; `delta` is the δ that it uses of the amount's."""

    delta: float = 0.0
    groups: int = 1

    @classmethod
    def within(cls, amount: Amount, measures: Sequence[Measure], groups: int) -> Smooth:
        """Raises `BadAmount` without a δ, and where ε is too little."""
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
    def price(self) -> Price:
        """On two neighbours an (ε, δ)-DP mechanism is ε-DP outside an event of δ (Kairouz, Oh & Viswanath 2015)."""
        return stability_price(self.amount)

    @property
    def alpha(self) -> float:
        """What of ε hides how far a count moves."""
        return as_float(self.amount.value) / 2

    @property
    def beta(self) -> float:
        """How fast S may change from one data set to its neighbours: ln S by so much."""
        return largest_beta(as_float(self.amount.value), self.delta, self.groups)

    def draw(self, noise: Noise, exact: Ints, smooth: float) -> tuple[Ints, float]:
        """The counts with noise, and the scale of that noise as it is released; `smooth` is S, before it is rounded
        up."""

        scale = min(max(smooth * UP, self.alpha), WIDEST) / self.alpha
        unit = self.beta / STEPS
        place = fixed_width([math.ceil(math.log(scale) / unit)])
        noisy = int(noise.laplace(place, (STEPS + 1) / told_epsilon(self.beta)).item())
        values = fixed_width(exact)
        return noise.laplace(values, scale), math.exp(min(max(noisy * unit, 0.0), math.log(WIDEST)))


def told_epsilon(beta: float) -> float:
    """What tells the scale: its ln has Laplace noise of SPREAD."""
    return beta / SmoothLaplace.SPREAD * (STEPS + 1) / STEPS


def peak(factors: Sequence[tuple[int, int]], beta: float) -> float:
    """max over k = 0, 1, 2, … of e^(−βk)·Π(m + gk), of factors (m, g).

    Its ln is concave in k and falls from (number of factors)/β on: the last k at which it still rises is searched for.
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
    """The largest β, nearly, at which noise for so many counts is (ε, δ)-DP, the scale that is released included."""
    low, high = 0.0, epsilon
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if needed_delta(epsilon, middle, groups) <= delta * (1 - 1e-9) else (low, middle)
    return low


def needed_delta(epsilon: float, beta: float, groups: int) -> float:
    """The δ of smooth noise for so many counts: 1 where ε is too little for any."""
    steep = beta + SLACK
    room = epsilon / 2 - told_epsilon(beta)
    if room <= groups * steep:
        return 1.0
    c = math.expm1(steep)
    if groups == 1:
        return ONE_SIDE * (math.exp(-room / c) + math.exp(-(room + epsilon) / c)) * c / (1 + c)
    return math.exp(min(_by_moments(room, c, groups, part / 200) for part in range(1, 200)))


def _by_moments(room: float, c: float, groups: int, part: float) -> float:
    """ln of C·e^(−r·room)·(1 − rc)^(−d), r = part/c, where (1 − e^(−y))₊ ≤ C·e^(ry)."""
    r = part / c
    return r * math.log(r) - (1 + r) * math.log1p(r) - r * room - groups * math.log1p(-part)
