"""Strategies fitted to a workload, and the estimate that their noisy answers give.

A strategy is plain data: a list of blocks that the trusted core measures, computing its sensitivity itself, so that a
mistake here costs accuracy and never privacy. Columns have L1 norm 1, and Laplace noise scale 1/ε; or, with `power` 2,
L2 norm 1, which is what Gaussian noise goes by: the same amount of ρ then leaves half the error of ranges of 1,024
cells.

HDMM's p-identity strategy is A = [I; Θ]D with Θ ≥ 0 of shape (p, b) and D the diagonal that makes every column's L1
norm 1. The expected squared error of a workload answered through A under Laplace noise of scale s is 2s²·f with f =
tr(G (AᵀA)⁻¹). It is minimised over Θ by L-BFGS-B (McKenna, Miklau, Hay, Machanavajjhala, *Optimizing error of
high-dimensional statistical queries under differential privacy*, VLDB 2018, section 5). With S = D⁻¹, R = I + ΘΘᵀ, Q =
R⁻¹Θ, H = ΘSG and Y = QSGS, f = Σ Gᵢᵢsᵢ² − ⟨Q, HS⟩ and df/dΘ = −2(Y − YΘᵀQ) + 2·1(G·s − colsum(H∘Q))ᵀ: one product with
G a step. With columns of L2 norm 1 the last part is times ds/dΘ = Θ/s. The start matters more than the number of steps:
tiles of equal numbers of buckets are already within a fifth of the optimum for ranges, and ten steps from there within
a twentieth.

Clipping at zero adds up to a bias on long ranges; the projection in the workload's own metric, min (z − z₀)ᵀG(z − z₀)
over z ≥ 0 with G = WᵀW, moves the answers as little as it can. It cannot increase the workload's squared error. In the
metrics of single cells and of margins, of sparse planes, the sum of all cells was many times too high. So the sum stays
as it was measured, but for ranges on a line, which hold it by themselves.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from jostle.kernels.accuracy import estimate_with_noise
from jostle.kernels.arrays import Floats, Ints, Strategy, along, minimise, with_sum
from jostle.kernels.histograms import grids
from jostle.kernels.histograms.grams import Gram, on_buckets, on_cells
from jostle.kernels.linear_algebra import on_one_thread
from jostle.kernels.workloads import marginals
from jostle.kernels.workloads.boxes import Workload
from jostle.kernels.workloads.marginals import Predicates, spectrum


def _lengths(theta: Floats, power: int) -> Floats:
    """The norms, (b,), of the columns of [I; Θ]."""
    return np.asarray(1 + theta.sum(axis=0) if power == 1 else np.sqrt(1 + (theta**2).sum(axis=0)))


def objective(theta: Floats, gram: Gram, diagonal: Floats, power: int = 1) -> tuple[float, Floats]:
    """f = ‖WA⁺‖²_F and its gradient, shape (p, b), at `theta`, shape (p, b); `diagonal` is that of G."""
    s = _lengths(theta, power)
    h = gram.dot(theta * s)
    inverse = np.linalg.inv(np.eye(len(theta)) + theta @ theta.T)  # well conditioned, and small beside what is solved
    q = inverse @ theta
    hs = h * s
    value = float(diagonal @ (s * s) - np.vdot(q, hs))
    y = inverse @ hs
    longer = 1.0 if power == 1 else theta / s
    gradient = -2 * (y - (y @ theta.T) @ q) + 2 * (diagonal * s - np.einsum("pb,pb->b", h, q)) * longer
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


def p_identity_strategy(labels: Ints, theta: Floats, power: int = 1) -> Strategy:
    """The blocks to measure for A = [I; Θ]D on the buckets of `labels`: every column's norm is 1.

    The core puts weights on a grid, a coarser one of more cells. Sums are put on one here that is coarser yet, so that
    what is measured is what estimates and errors are of: of many rows the last digit of a weight is more than noise.
    """
    labels = np.asarray(labels, dtype=np.int64).ravel()
    grid = 2.0 ** max(0, min(20, 30 - math.ceil(math.log2(labels.size))) - 1)
    matrix = np.floor(theta / _lengths(theta, power) * grid) / grid
    rest = 1 - (matrix**power).sum(axis=0)
    weight = rest if power == 1 else np.ceil(np.sqrt(rest) * grid) / grid  # never 0
    return [
        {"kind": "groups", "labels": labels, "size": len(weight), "weight": weight},
        {"kind": "matrix", "labels": labels, "matrix": matrix},
    ]


def starting_point(gram: Gram, most: int = 32, power: int = 1) -> Floats:
    """Tiles in two sizes, at most `most` and an eighth of that, and the total, under the best of a few weights."""
    fine = int(np.clip(gram.buckets // 16, 1, most))
    ones = tiles(gram.labels, gram.workload.shape, (fine, fine // 8, 1) if fine >= 8 else (fine,))
    diagonal = gram.diagonal()
    starts = [weight * ones for weight in (0.1, 0.2, 0.35, 0.7)]
    return min(starts, key=lambda theta: objective(theta, gram, diagonal, power)[0])


SPARSE, MOST_SPARSE = 2.0, 4.0
"""How much more sums count at one row for each cell, in scales of the noise, and at most (`for_few_rows`)."""


def for_few_rows(strategy: Strategy, signal: float, power: int = 1) -> Strategy:
    """An `hdmm_strategy` in which sums count more where rows are few for each cell.

    `signal`: the rows, in scales of the noise, as they were measured. Least squares needs every cell, but an estimate
    that draws cells together (`adaptive.halved_cells`) learns little from a cell that is mostly noise. So sums count
    `SPARSE` over the root of the rows for each cell as much; columns keep their norm, of which `power` is the power.
    Others than cells and sums stay as they are.
    """
    if len(strategy) < 2 or strategy[1]["kind"] != "matrix":
        return strategy
    weight, matrix = (np.asarray(part, dtype=np.float64) for part in (strategy[0]["weight"], strategy[1]["matrix"]))
    factor = float(np.clip(SPARSE * np.sqrt(weight.size / max(float(signal), 1.0)), 1.0, MOST_SPARSE))
    if factor == 1.0:
        return strategy
    return p_identity_strategy(strategy[0]["labels"], factor * matrix / weight, power)


def reconstruct(blocks: Strategy, answers: list[Floats]) -> Floats:
    """The least-squares bucket counts, shape (b,), from noisy answers to a `strategy`; by Woodbury in O(b p²).

    The covariance of the estimate is 2s²(AᵀA)⁻¹ for Laplace noise of scale s.
    """
    weight, matrix = blocks[0]["weight"], blocks[1]["matrix"]
    normal = (weight * answers[0] + matrix.T @ answers[1]) / weight**2
    inner = np.eye(len(matrix)) + (matrix / weight**2) @ matrix.T
    return np.asarray(normal - (matrix.T @ np.linalg.solve(inner, matrix @ normal)) / weight**2)


def project(z0: Floats, gram: Gram, iterations: int = 60, tolerance: float = 1e-3) -> Floats:
    """The nearest z ≥ 0 to `z0`, both (b,), in the metric of `gram`; but on a line of ranges, of those with its sum.

    In one dimension the unknowns are the cumulative sums c, in which a range is a difference of two and z ≥ 0 says
    that c never falls: each accelerated step ends in an isotonic regression, and the metric is well conditioned.
    Elsewhere a third of the steps is enough, since they begin where the sums of a tree of halves are (`_in_halves`), or
    those along the axes for margins.
    """
    z0 = np.asarray(z0, dtype=np.float64)
    if (z0 >= 0).all():
        return z0.copy()
    if gram.metric is None:
        return with_sum(z0, gram.sizes, float(z0.sum()))
    if gram.contiguous:
        return _rising(np.cumsum(z0), gram.metric, iterations, tolerance)
    if marginals.spectrum(gram.workload) is None:
        return _descend(z0, gram, _in_halves(z0, gram), -(-iterations // 3), tolerance)
    start = np.bincount(gram.labels, weights=_independent(gram.spread(z0)).ravel(), minlength=gram.buckets)
    return _descend(z0, gram, np.asarray(start, dtype=np.float64), iterations, tolerance)


def _independent(cube: Floats) -> Floats:
    """The cube of independent axes that has the sums of `cube` along each, from 0 on, so that these margins fit."""
    total = max(float(cube.sum()), 0.0)
    product = np.full(cube.shape, total)
    for axis, sums in enumerate(grids.sums_along(cube)):
        product *= along(with_sum(sums, np.ones(len(sums)), total) / max(total, 1e-300), axis, cube.ndim)
    return product


def _in_halves(z0: Floats, gram: Gram) -> Floats:
    """Counts from 0 on with the sum of `z0`, both (b,), whose halves, from the whole on, are as near as can be to those
    of `z0`: buckets by the places of their first cells in a tree that halves the cube."""
    order = grids.halving_order(gram.workload.shape)[0]
    first = np.empty(gram.buckets, dtype=np.int64)
    first[gram.labels[order[::-1]]] = np.arange(len(order))[::-1]
    order = np.argsort(first)
    there = np.zeros((2, 1 << (gram.buckets - 1).bit_length()))
    there[0, : gram.buckets], there[1, : gram.buckets] = z0[order], 1.0  # beyond them there is nothing
    levels = [there]
    while levels[-1].shape[1] > 1:
        levels.append(levels[-1].reshape(2, -1, 2).sum(axis=2))
    counts = np.maximum(levels.pop()[0], 0.0)
    for values, buckets in reversed(levels):
        left = np.clip((values[::2] - values[1::2] + counts) / 2, 0.0, counts)
        left = np.where(buckets[1::2] > 0, left, counts)
        counts = np.stack([left, counts - left], axis=1).ravel()
    result = np.empty(gram.buckets)
    result[order] = counts[: gram.buckets]
    return result


def _rising(c0: Floats, metric: Any, iterations: int, tolerance: float) -> Floats:
    """Differences of the c, 0 ≤ c₁ ≤ c₂ ≤ …, that minimises (c − c₀)ᵀM(c − c₀).

    FISTA with restarts in the metric of the row sums of |M|, which dominate M. Cumulative sums that no query uses
    get a small weight: they stay where they are unless a neighbour moves them.
    """
    from scipy.optimize import isotonic_regression

    weights = np.asarray(abs(metric).sum(axis=1)).ravel()
    weights = weights + 1e-6 * weights.mean()
    c = momentum = c0
    pace, scale = 1.0, max(float(c0.max() - c0.min()), 1e-300)
    for _ in range(iterations):
        aim = momentum - (metric @ (momentum - c0)) / weights
        candidate = np.maximum(isotonic_regression(aim, weights=weights).x, 0.0)
        if np.vdot(weights * (momentum - candidate), candidate - c) > 0:
            pace = 1.0
        faster = (1 + (1 + 4 * pace**2) ** 0.5) / 2
        momentum = candidate + (pace - 1) / faster * (candidate - c)
        still = float(np.abs(candidate - c).max()) < 1e-6 * tolerance * scale
        c, pace = candidate, faster
        if still:
            break
    return np.diff(c, prepend=0.0)


def _descend(z0: Floats, gram: Gram, start: Floats, iterations: int, tolerance: float) -> Floats:
    """By FISTA with restarts from `start`, in the metric of the diagonal, which is made as much longer as steps ask."""
    sizes, total = 1 / np.maximum(gram.diagonal(), 1e-12), float(z0.sum())
    point, pull = start, gram.dot((start - z0)[None])[0]
    momentum, ahead = point, pull
    pace, longer, scale = 1.0, 1.0, max(float(np.abs(z0).max()), 1e-300)
    for _ in range(iterations):
        while True:
            candidate = with_sum(momentum - ahead * sizes / longer, sizes, total)
            step, there = candidate - momentum, gram.dot((candidate - z0)[None])[0]
            if step @ (there - ahead) <= longer * (1 + 1e-9) * float(step @ (step / sizes)) + 1e-300:
                break
            longer *= 2
        if -float((step / sizes) @ (candidate - point)) > 0:
            pace = 1.0
        faster = (1 + (1 + 4 * pace**2) ** 0.5) / 2
        share, still = (pace - 1) / faster, float(np.abs(candidate - point).max()) < 1e-6 * tolerance * scale
        momentum, ahead = candidate + share * (candidate - point), there + share * (there - pull)
        point, pull, pace = candidate, there, faster
        if still:
            break
    return point


MOST_SCATTERED = 2**18
"""The largest cube of more than one dimension whose buckets get a fitted strategy: each step spreads p rows over it."""

MOST_BUCKETS = 16384
"""Beyond this many buckets p weighted sums over all of them cost too much: a hierarchy is measured instead."""


@on_one_thread
@lru_cache(maxsize=8)
def hdmm_strategy(workload: Workload, power: int = 1, iterations: int = 100, most: int = 128) -> Strategy:
    """The p-identity strategy for a workload on cells, with p about n/16 and at most `most` plus an eighth; `power` is
    that of the norm.

    0.6 s for 1024 cells, 1.2 s for 4096, which get fewer sums and steps; it depends on public things only, so a
    caller may keep it. More than `MOST_BUCKETS` cells get `hb_strategy`. Marginals get weights on marginals, however
    many cells there are; predicates are fitted on the regions that they cut out, which loses nothing.
    """
    if workload.kind == "identity":
        return grids.identity_strategy(workload.shape)
    target = spectrum(workload)
    if target is not None:
        return marginals.marginal_strategy(workload.shape, target)
    if isinstance(workload, Predicates) and workload.regions <= MOST_BUCKETS:
        regions = on_buckets(workload, workload.labels)
        return _p_identity(regions, power, *_room(regions.buckets, iterations, most))
    if workload.cells > MOST_BUCKETS:
        return grids.hb_strategy(workload.shape)
    gram = on_cells(workload)
    return _p_identity(gram, power, *_room(gram.buckets, iterations, most))


@on_one_thread
def bucket_strategy(labels: Ints, workload: Workload, power: int = 1) -> Strategy:
    """A p-identity strategy for the workload on the buckets of `labels`, quickly: a few steps from tiles.

    `labels` has the workload's shape or is flat, and holds 0 … b − 1. Takes 1 ms to 60 ms for b from 10 to 4096.
    Many buckets, or buckets of a very large cube, get a hierarchy over them in their order.
    """
    flat = np.asarray(labels, dtype=np.int64).ravel()
    if workload.kind == "identity":
        return grids.group_strategy(flat)
    if int(flat.max()) >= MOST_BUCKETS or (len(workload.shape) > 1 and workload.cells > MOST_SCATTERED):
        return grids.bucket_tree(flat)
    gram = on_buckets(workload, flat)
    return _p_identity(gram, power, 32, int(np.clip(8000 // gram.buckets, 3, 30)))


@on_one_thread
def estimate(strategy: Strategy, answers: list[Floats], workload: Workload, nonnegative: bool = True) -> Floats:
    """The cube of counts, of the workload's shape, from noisy answers to any strategy of this folder.

    Least squares on the strategy's buckets, then (`nonnegative`) the projection onto z ≥ 0 in the workload's
    metric; a bucket's count is shared evenly among its cells. Without the projection the estimate is unbiased on
    the buckets, and `accuracy.root_mean_square` is its error; where no query cuts through a bucket, the cells carry
    their noise (`noisy_array`).
    """
    if marginals.is_marginal(strategy):
        cells = marginals.reconstruct(strategy, answers, workload.shape)
        if nonnegative:
            cells = project(cells.ravel(), on_cells(workload)).reshape(cells.shape)
        return estimate_with_noise(cells, strategy, answers, workload)
    finest = strategy[-1]["labels"] if len(strategy) < 2 or strategy[1]["kind"] == "groups" else strategy[0]["labels"]
    gram = on_buckets(workload, finest)
    fitted = len(strategy) > 1 and strategy[1]["kind"] == "matrix"
    z = reconstruct(strategy, answers) if fitted else grids.tree_least_squares(strategy, answers)
    cells = gram.spread(project(z, gram) if nonnegative else z)
    return estimate_with_noise(cells, strategy, answers, workload)


def _room(buckets: int, iterations: int, most: int) -> tuple[int, int]:
    """How many sums and steps take two seconds: half as many of 4096 buckets lose a hundredth of the error."""
    if buckets <= 2048:
        return most, iterations
    return (min(most, 64), min(iterations, 50)) if buckets <= 4096 else (min(most, 32), min(iterations, 10))


def _p_identity(gram: Gram, power: int, most: int, iterations: int) -> Strategy:
    if gram.metric is None or gram.buckets < 4:
        return grids.group_strategy(gram.labels)
    diagonal, start = gram.diagonal(), starting_point(gram, most, power)
    theta, _ = minimise(lambda theta: objective(theta, gram, diagonal, power), start, iterations)
    return p_identity_strategy(gram.labels, theta, power)
