"""HDMM's p-identity strategies: each bucket on its own, and p weighted sums that suit the workload.

The strategy is A = [I; Θ]D with Θ ≥ 0 of shape (p, b) and D the diagonal that makes every column's L1 norm 1, so one
row more or less moves the true answers by at most 1 in all. The expected squared error of a workload answered
through A under Laplace noise of scale s is 2s²·f with f = tr(G (AᵀA)⁻¹), which is minimised over Θ by L-BFGS-B
(McKenna, Miklau, Hay, Machanavajjhala, *Optimizing error of high-dimensional statistical queries under differential
privacy*, VLDB 2018, section 5). With S = D⁻¹, R = I + ΘΘᵀ, Q = R⁻¹Θ, H = ΘSG and Y = QSGS,
f = Σ Gᵢᵢsᵢ² − ⟨Q, HS⟩ and df/dΘ = −2(Y − YΘᵀQ) + 2·1(G·s − colsum(H∘Q))ᵀ: one product with G a step.

The start matters more than the number of steps: tiles of equal numbers of buckets are already within a fifth of the
optimum for ranges, and ten steps from there within a twentieth.
"""

from __future__ import annotations

import numpy as np

from jostle.kernels.arrays import Floats, Ints, Strategy
from jostle.kernels.histograms.bounded import minimise
from jostle.kernels.histograms.grams import Gram


def objective(theta: Floats, gram: Gram, diagonal: Floats) -> tuple[float, Floats]:
    """f = ‖WA⁺‖²_F and its gradient, shape (p, b), at `theta`, shape (p, b); `diagonal` is that of G."""
    s = 1 + theta.sum(axis=0)
    h = gram.dot(theta * s)
    r = np.eye(len(theta)) + theta @ theta.T
    q = np.linalg.solve(r, theta)
    hs = h * s
    value = float(diagonal @ (s * s) - np.vdot(q, hs))
    y = np.linalg.solve(r, hs)
    gradient = -2 * (y - (y @ theta.T) @ q) + 2 * (diagonal * s - np.einsum("pb,pb->b", h, q))
    return value, gradient


def tiles(labels: Ints, shape: tuple[int, ...], counts: tuple[int, ...]) -> Floats:
    """Θ of shape (Σ tiles, b) with entries 0 and 1: for each of `counts`, about that many tiles of the buckets.

    In one dimension a tile is a run of equally many buckets; in two, the buckets whose middle lies in a square of
    a regular grid.
    """
    b = int(labels.max()) + 1
    blocks = []
    sizes = np.bincount(labels, minlength=b)
    for count in counts:
        if len(shape) == 1:
            tile = np.arange(b) * min(count, b) // b
        else:
            side = max(1, round(count ** (1 / len(shape))))
            tile = np.zeros(b, dtype=np.int64)
            for axis, place in zip(shape, np.indices(shape), strict=True):
                middle = np.bincount(labels, weights=place.ravel() + 0.5, minlength=b) / sizes
                tile = tile * side + np.minimum((middle * side / axis).astype(np.int64), side - 1)
        used, tile = np.unique(tile, return_inverse=True)
        rows = np.zeros((len(used), b))
        rows[tile, np.arange(b)] = 1
        blocks.append(rows)
    return np.concatenate(blocks)


def optimise(gram: Gram, start: Floats, iterations: int, tolerance: float = 1e-4) -> tuple[Floats, float]:
    """Θ after at most `iterations` steps from `start`, and f = ‖WA⁺‖²_F there."""
    diagonal = gram.diagonal()
    return minimise(lambda theta: objective(theta, gram, diagonal), start, iterations, tolerance)


def strategy(labels: Ints, theta: Floats) -> Strategy:
    """The blocks to measure for A = [I; Θ]D on the buckets of `labels`: every column's L1 norm is 1."""
    weight = 1 / (1 + theta.sum(axis=0))
    labels = np.asarray(labels, dtype=np.int64).ravel()
    return [
        {"kind": "groups", "labels": labels, "size": len(weight), "weight": weight},
        {"kind": "matrix", "labels": labels, "matrix": theta * weight},
    ]


def starting_point(gram: Gram, most: int = 32) -> Floats:
    """Tiles in two sizes, at most `most` and an eighth of that, and the total, under the best of a few weights."""
    fine = int(np.clip(gram.buckets // 16, 1, most))
    ones = tiles(gram.labels, gram.workload.shape, (fine, fine // 8, 1) if fine >= 8 else (fine,))
    diagonal = gram.diagonal()
    starts = [weight * ones for weight in (0.1, 0.2, 0.35, 0.7)]
    return min(starts, key=lambda theta: objective(theta, gram, diagonal)[0])


def reconstruct(blocks: Strategy, answers: list[Floats]) -> Floats:
    """The least-squares bucket counts, shape (b,), from noisy answers to a `strategy`; by Woodbury in O(b p²).

    The covariance of the estimate is 2s²(AᵀA)⁻¹ for Laplace noise of scale s.
    """
    weight, matrix = blocks[0]["weight"], blocks[1]["matrix"]
    normal = (weight * answers[0] + matrix.T @ answers[1]) / weight**2
    inner = np.eye(len(matrix)) + (matrix / weight**2) @ matrix.T
    return np.asarray(normal - (matrix.T @ np.linalg.solve(inner, matrix @ normal)) / weight**2)
