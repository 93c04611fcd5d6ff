"""How much noise a strategy may have for the answers to be as close as wanted: half-widths that hold 95 %."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from jostle.error_laws import sum_quantile, widest
from jostle.kernels.arrays import Floats
from jostle.kernels.joint.strategy import Query, Strategy
from jostle.kernels.joint.widths import SAFE, grid_step, laplace_half_width, whole_width
from jostle.noise_laws import Gaussian, Laplace

MOST = 200  # answers whose law is calculated; of others its half-width from above


@dataclass(frozen=True, slots=True)
class Wish:
    """The half-width that is wanted of every answer of a query, and the grid of what is measured.

    Both are in deviations of the noise of a count that has the whole amount.
    """

    query: Query
    wanted: float
    step: float


def allowed_noise(strategy: Strategy, wishes: Sequence[Wish], kind: type[Laplace | Gaussian]) -> float:
    """By what all noise may be multiplied, at most, so that every answer is within its wish with 95 %.

    Answers are looked at from the worst on, one for all that are alike; those that are far from the worst are as far
    from it under any law.
    """
    waiting: list[tuple[float, int, int]] = []
    for at, wish in enumerate(wishes):
        axes = sorted(wish.query.factors)
        shape = [wish.query.factors[axis].size for axis in axes]
        deviations = np.sqrt(strategy.variances(wish.query))
        least = max(wish.wanted - wish.step / 2, wish.step / 2) / sum_quantile(kind)
        for where in product(*(wish.query.factors[axis].alike[0].tolist() for axis in axes)):
            if deviations[where]:
                waiting.append((least / float(deviations[where]), at, int(np.ravel_multi_index(where, shape))))
    waiting.sort()
    most = np.inf
    for n, (bound, at, place) in enumerate(waiting):
        if bound >= most:
            break
        most = min(most, _allowed(strategy, wishes[at], place, kind) if n < MOST else bound)
    return float(most)


def _allowed(strategy: Strategy, wish: Wish, place: int, kind: type[Laplace | Gaussian]) -> float:
    """The same for one answer."""
    deviations, grid = [], []
    for at, weights in strategy.coefficients(wish.query, place):
        block = strategy.blocks[at]
        deviations.append(np.abs(weights[weights != 0]) * block.variance**0.5)
        whole = not (block.residual and block.levels)
        grid.append(np.abs(weights[weights != 0]) * (wish.step if whole else 0.0))
    each: Floats = np.concatenate(deviations)
    steps: Floats = np.concatenate(grid)
    if len(each) == 1 and steps[0]:
        law = kind(float(each[0]) / kind(1.0).deviation, float(steps[0]))
        return widest(law, wish.wanted).scale / law.scale
    width = laplace_half_width(each) if kind is Laplace else kind(float(np.sqrt(each @ each))).half_width()
    return whole_width(wish.wanted, grid_step(steps) if steps.all() else 0.0) / (width * SAFE)
