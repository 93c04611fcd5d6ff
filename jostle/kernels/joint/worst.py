"""Shares of an amount by which the worst answer is as good as can be: for a wanted error of every answer.

An answer's variance is a sum over residuals, its row of `rows`, in units of what is wanted; the largest of them is made
least. With Gaussian noise that is convex. Weights λ ≥ 0 of the answers, Σλ = 1, give shares in closed form, those of
the least weighted sum, and with them a bound: no shares have a worst answer below (Σ √(v·c))², v what the weighted
answers take of each residual and c its cost. The weights are multiplied by how bad their answers are until both meet
(the multiplicative algorithm for optimal designs: Silvey, Titterington and Torsney 1978). With Laplace noise the
largest is replaced by norms of higher and higher powers, and a local optimum is found.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats

ROUNDS, CLOSE = 3000, 1.002
POWERS, STEPS = (4, 16, 64, 256), 150


def even_residuals(rows: Any, costs: Floats) -> tuple[Floats, float]:
    """Shares for Gaussian noise, and the bound on the worst answer; `rows` is sparse, of shape (answers, residuals)."""
    weights = np.full(rows.shape[0], 1 / rows.shape[0])
    best, least, bound = np.full(len(costs), 1 / len(costs)), np.inf, 0.0
    for _ in range(ROUNDS):
        roots = np.sqrt((rows.T @ weights) * costs)
        shares = roots / roots.sum()
        answers = rows @ (costs / shares)
        worst, bound = float(answers.max()), max(bound, float(roots.sum()) ** 2)
        if worst < least:
            best, least = shares, worst
        if least <= CLOSE * bound:
            break
        weights = np.maximum(weights * answers, 1e-12 * float(answers @ weights))
        weights /= weights.sum()
    return best, bound


def even_groups(rows: Any, tells: Floats, starts: list[Floats]) -> Floats:
    """Shares for Laplace noise: `tells` is what a block, with share 1, tells of each residual, as a precision."""
    from scipy.optimize import minimize

    def objective(logs: Floats, power: float) -> tuple[float, Floats]:
        shares = np.exp(logs - logs.max())
        shares /= shares.sum()
        known = np.maximum(shares**2 @ tells, 1e-300)
        answers = np.log(rows @ (1 / known))
        top = answers.max()
        parts = np.exp(power * (answers - top))
        slopes = -(rows.T @ (parts / parts.sum() / np.exp(answers))) / known**2
        own = 2 * shares * (tells @ slopes)
        return float(top + np.log(parts.sum()) / power), shares * (own - shares @ own)

    found = []
    for start in starts:
        logs = np.log(start)
        for power in POWERS:
            logs = minimize(objective, logs, args=(power,), jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x
        shares = np.exp(logs - logs.max())
        shares /= shares.sum()
        sparse = np.where(shares > 1e-4, shares, 0.0)
        found += [shares, sparse / sparse.sum()]
    return min(found, key=lambda one: float((rows @ (1 / np.maximum(one**2 @ tells, 1e-300))).max()))
