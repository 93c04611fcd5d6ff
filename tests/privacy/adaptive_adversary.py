"""The most that an adaptive program can lose: its exact hockey-stick divergence, by dynamic programming.

A mechanism is the law of its privacy loss under the first of two neighbours, on a grid; the second gives each outcome
e^-loss of its probability (what is lacking to 1 are outcomes that the first never has). After each answer the adversary
knows the loss so far and the total charged, and picks the next mechanism among all that the filter still admits, or
stops. The value of stopping is (1 − e^(e − loss))₊, that of the start max P(A) − e^e·Q(A): it must not pass δ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from operator import mul

import numpy as np

from jostle.accounting.amounts import QUANTA, Amount
from jostle.accounting.definitions import Measure, Price, epsilon_of, pure_price

GRID = 0.25
"""Of losses."""


@dataclass(frozen=True)
class Move:
    """A mechanism: probabilities of losses in steps of the grid, what fails outright, and its price."""

    law: tuple[tuple[float, int], ...]
    failure: float
    price: Price


def randomised_response(steps: int) -> Move:
    """The worst of all ε-DP mechanisms."""
    epsilon = steps * GRID
    law = ((1 / (1 + math.exp(-epsilon)), steps), (1 / (1 + math.exp(epsilon)), -steps))
    return Move(law, 0.0, pure_price(Amount("epsilon", round(epsilon * QUANTA))))


def lone_key(asked: float, used: float) -> Move:
    """Nothing, but with probability `used` all is told; its ε is next to nothing."""
    amount = Amount("epsilon", QUANTA // 1000, round(asked * QUANTA))
    return Move(((1 - used, 0),), used, Price(amount, pure_price(amount).rho, amount.delta, pure=True))


def gaussian(rho: float, asked: float, used: float) -> Move:
    """Gaussian noise of about `rho`, its losses rounded up to the grid; charged by the exact divergence of that law.

    Asked for as the ε that its ρ means at `used`, with the δ `asked`.
    """
    from scipy.stats import norm

    spread = math.sqrt(2 * rho)
    steps = np.arange(math.floor((rho - 8 * spread) / GRID), math.ceil((rho + 8 * spread) / GRID) + 1)
    chances = np.diff(norm.cdf((np.append(steps[0] - 1, steps) * GRID - rho) / spread))
    steps, chances = steps[chances > 0], chances[chances > 0] / chances.sum()
    assert float((chances * np.exp(-steps * GRID)).sum()) <= 1
    charged = 0.0
    for order in 1 + np.logspace(-3, 2.5, 300):
        terms = np.log(chances) + (order - 1) * steps * GRID
        charged = max(charged, float(np.logaddexp.reduce(terms)) / (order - 1) / order)
    charged *= 1 + 1e-3  # orders between those tried
    quanta = math.ceil(charged * QUANTA)
    amount = Amount("epsilon", math.ceil(epsilon_of(charged, used) * QUANTA), round(asked * QUANTA))
    return Move(tuple(zip(map(float, chances), map(int, steps), strict=True)), 0.0, Price(amount, quanta))


def together(moves: Sequence[Move], asked: float, used: float) -> Move:
    """Several moves that were paid for at once, as the (ε, `asked`) that the sum of their ρ means at `used`."""
    law, rho = {0: 1.0}, sum(move.price.rho for move in moves)
    for move in moves:
        longer: dict[int, float] = {}
        for (chance, step), (before, at) in product(move.law, [(c, s) for s, c in law.items()]):
            longer[at + step] = longer.get(at + step, 0.0) + before * chance
        law = longer
    amount = Amount("epsilon", math.ceil(epsilon_of(rho / QUANTA, used) * QUANTA), round(asked * QUANTA))
    return Move(tuple((chance, step) for step, chance in law.items()), 0.0, Price(amount, rho))


Totals = tuple[int, ...]


def lost(
    epsilon: float, moves: Sequence[Move], cost: Callable[[Price], Totals], admits: Callable[[Totals], bool], most: int
) -> float:
    """The largest δ at `epsilon` of any adaptive program of up to `most` of these moves."""
    costs = [cost(move.price) for move in moves]

    @cache
    def admitted(counts: tuple[int, ...]) -> bool:
        return admits(tuple(sum(map(mul, counts, place)) for place in zip(*costs, strict=True)))

    @cache
    def value(counts: tuple[int, ...], low: int, high: int) -> np.ndarray:
        """At each loss from `low` to `high` steps."""
        left = epsilon - np.arange(low, high + 1) * GRID
        best = np.maximum(0.0, -np.expm1(np.minimum(0.0, left)))
        for at, move in enumerate(moves):
            after = tuple(n + (i == at) for i, n in enumerate(counts))
            if sum(counts) == most or not admitted(after):
                continue
            least, largest = min(s for _, s in move.law), max(s for _, s in move.law)
            below = value(after, low + least, high + largest)
            gain = np.full(best.size, move.failure)
            for chance, step in move.law:
                gain += chance * below[step - least : step - least + best.size]
            best = np.maximum(best, gain)
        return best

    return float(value((0,) * len(moves), 0, 0)[0])


def lost_under(measure: Measure, moves: Sequence[Move], most: int) -> float:
    """The same by the charges that a budget admits."""
    return lost(measure.limit.value / QUANTA, moves, measure.cost, measure.admits, most)
