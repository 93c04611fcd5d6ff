"""Lower bounds on privacy loss by experiment: choose an event on half of the runs, test it on the rest.

A mechanism is audited through a statistic of its output, one number or one label a run. On the first half of the runs
the event is chosen that looks worst (a threshold, either side, or a set of labels); on the other half its probability
under both inputs is bounded by Clopper and Pearson, and ln((p − δ)/p′) of the bounds is, but for a chance of `FAILURE`,
no more than the true loss. A lower bound above the charge convicts; one below it proves nothing, it only failed to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jostle.privacy.kernel.exposures import Counter

FAILURE = 1e-9
"""That a lower bound is wrong, for one audit of both directions."""

SMALL = 1e-4
"""Events rarer than this on the first half are not tried: there would be too little to see on the second."""

Pair = tuple[np.ndarray, np.ndarray]
Runs = Callable[[int, np.random.Generator], Pair]
"""A statistic of the output on one database and on its neighbour, each of shape (runs,)."""


@dataclass(frozen=True)
class Case:
    """A mechanism on two neighbours. `broken` ones are specimens: the audit must convict them.

    `at`: the same at another ε, where it is a program that says which.
    """

    name: str
    epsilon: float
    draw: Runs
    runs: int
    delta: float = 0.0
    broken: bool = False
    at: Callable[[float], Case] | None = None


@dataclass(frozen=True)
class Finding:
    case: Case
    runs: int
    bound: float
    event: str

    @property
    def convicted(self) -> bool:
        return self.bound > self.case.epsilon

    @property
    def right(self) -> bool:
        return self.convicted == self.case.broken


def audit(case: Case, share: float = 1.0, seed: int = 0) -> Finding:
    """Audits with `share` of the runs that the case asks for, and never fewer than 2,000."""
    runs = max(2000, int(case.runs * share))
    rng = np.random.default_rng(seed)
    faults = Counter.faults
    one, other = case.draw(runs, rng)
    if Counter.faults != faults:
        raise AssertionError(f"{case.name}: {Counter.faults - faults} faults after a charge")
    half = runs // 2
    best, event = 0.0, "none"
    for first, second, name in ((one, other, "first over second"), (other, one, "second over first")):
        holds, described = _worst(first[:half], second[:half], case.delta)
        if holds is None:
            continue
        low = lower(int(holds(first[half:]).sum()), runs - half, FAILURE / 4)
        high = upper(int(holds(second[half:]).sum()), runs - half, FAILURE / 4)
        bound = math.log(max(low - case.delta, 1e-300) / high)
        if bound > best:
            best, event = bound, f"{described}, {name}"
    return Finding(case, runs, best, event)


def lower(hits: int, runs: int, failure: float) -> float:
    """Clopper and Pearson's lower end for a probability."""
    from scipy.stats import beta

    return float(beta.ppf(failure, hits, runs - hits + 1)) if hits else 0.0


def upper(hits: int, runs: int, failure: float) -> float:
    from scipy.stats import beta

    return float(beta.ppf(1 - failure, hits + 1, runs - hits)) if hits < runs else 1.0


Event = Callable[[np.ndarray], np.ndarray]


def _worst(first: np.ndarray, second: np.ndarray, delta: float) -> tuple[Event | None, str]:
    """The event with the largest estimated loss, with a penalty for rarity as the second half will see it."""
    values, at = np.unique(np.concatenate([first, second]), return_inverse=True)
    n = len(first)
    a = np.bincount(at[:n], minlength=len(values))
    b = np.bincount(at[n:], minlength=len(values))
    candidates: list[tuple[float, Event, str]] = []
    if len(values) <= 64:  # labels: those whose own ratio is at least some level, from the worst down
        order = np.argsort(-np.log((a + 1) / (b + 1)), kind="stable")
        for size in range(1, len(values)):
            some = values[order[:size]]
            candidates.append(
                (_score(a[order[:size]].sum(), b[order[:size]].sum(), n, delta), _among(some), f"{size} labels")
            )
    for up in (True, False):
        one = np.cumsum(a[::-1])[::-1] if up else np.cumsum(a)
        two = np.cumsum(b[::-1])[::-1] if up else np.cumsum(b)
        for i in np.unique(np.linspace(0, len(values) - 1, 400).astype(int)):
            sign = "≥" if up else "≤"
            holds = _above(values[i]) if up else _below(values[i])
            candidates.append((_score(one[i], two[i], n, delta), holds, f"{sign} {values[i]:g}"))
    score, event, name = max(candidates, key=lambda c: c[0], default=(0.0, None, "none"))
    return (event, name) if score > 0 else (None, "none")


def _score(a: int, b: int, n: int, delta: float) -> float:
    """A rough lower bound at six standard errors, so that the choice favours what can be shown."""
    if a < max(10.0, SMALL * n):
        return 0.0
    p, q = (a - 6 * math.sqrt(a)) / n - delta, (b + 6 * math.sqrt(b) + 18) / n
    return math.log(p / q) if p > 0 else 0.0


def _above(value: float) -> Event:
    return lambda x: x >= value


def _below(value: float) -> Event:
    return lambda x: x <= value


def _among(values: np.ndarray) -> Event:
    return lambda x: np.isin(x, values)
