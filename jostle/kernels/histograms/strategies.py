"""Strategies fitted to a workload, and the estimate that their noisy answers give.

A strategy is plain data: a list of blocks that the trusted core measures, computing its sensitivity itself, so that
a mistake here costs accuracy and never privacy. All of them have columns of L1 norm 1: the noise that the core adds
has scale 1/ε.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from jostle.kernels.accuracy import estimate_with_noise
from jostle.kernels.arrays import Floats, Ints, Strategy
from jostle.kernels.histograms import hierarchy, p_identity, projection
from jostle.kernels.histograms.grams import Gram, on_buckets, on_cells
from jostle.kernels.workloads import marginals
from jostle.kernels.workloads.boxes import Workload
from jostle.kernels.workloads.predicates import Predicates
from jostle.kernels.workloads.unions import spectrum
from jostle.threads import on_one_thread

MOST_SCATTERED = 2**18
"""The largest cube of more than one dimension whose buckets get a fitted strategy: each step spreads p rows over it."""

MOST_BUCKETS = 16384
"""Beyond this many buckets p weighted sums over all of them cost too much: a hierarchy is measured instead."""


@on_one_thread
@lru_cache(maxsize=8)
def hdmm_strategy(workload: Workload, iterations: int = 100, most: int = 128) -> Strategy:
    """The p-identity strategy for a workload on cells, with p about n/16 and at most `most` plus an eighth.

    0.7 s for 1024 cells, 2 s for 4096 and more, which get fewer sums and steps; it depends on public things only, so a
    caller may keep it. More than `MOST_BUCKETS` cells get `hb_strategy`. Marginals get weights on marginals, however
    many cells there are; predicates are fitted on the regions that they cut out, which loses nothing.
    """
    target = spectrum(workload)
    if target is not None:
        return marginals.marginal_strategy(workload.shape, target)
    if isinstance(workload, Predicates) and workload.regions <= MOST_BUCKETS:
        regions = on_buckets(workload, workload.labels)
        return _p_identity(regions, *_room(regions.buckets, iterations, most))
    if workload.cells > MOST_BUCKETS:
        return hierarchy.hb_strategy(workload.shape)
    gram = on_cells(workload)
    return _p_identity(gram, *_room(gram.buckets, iterations, most))


@on_one_thread
def bucket_strategy(labels: Ints, workload: Workload) -> Strategy:
    """A p-identity strategy for the workload on the buckets of `labels`, quickly: a few steps from tiles.

    `labels` has the workload's shape or is flat, and holds 0 … b − 1. Takes 1 ms to 60 ms for b from 10 to 4096.
    Many buckets, or buckets of a very large cube, get a hierarchy over them in their order.
    """
    flat = np.asarray(labels, dtype=np.int64).ravel()
    if int(flat.max()) >= MOST_BUCKETS or (len(workload.shape) > 1 and workload.cells > MOST_SCATTERED):
        return hierarchy.bucket_tree(flat)
    gram = on_buckets(workload, flat)
    return _p_identity(gram, 32, int(np.clip(8000 // gram.buckets, 3, 30)))


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
            cells = projection.project(cells.ravel(), on_cells(workload)).reshape(cells.shape)
        return estimate_with_noise(cells, strategy, answers, workload)
    finest = strategy[-1]["labels"] if len(strategy) < 2 or strategy[1]["kind"] == "groups" else strategy[0]["labels"]
    gram = on_buckets(workload, finest)
    z = _least_squares(strategy, answers)
    cells = gram.spread(projection.project(z, gram) if nonnegative else z)
    return estimate_with_noise(cells, strategy, answers, workload)


def _room(buckets: int, iterations: int, most: int) -> tuple[int, int]:
    """How many sums and steps take two seconds: half as many of 4096 buckets lose a hundredth of the error."""
    if buckets <= 2048:
        return most, iterations
    return (min(most, 64), min(iterations, 50)) if buckets <= 4096 else (min(most, 32), min(iterations, 10))


def _p_identity(gram: Gram, most: int, iterations: int) -> Strategy:
    if gram.metric is None or gram.buckets < 4:
        return hierarchy.identity_buckets(gram.labels)
    theta, _ = p_identity.optimise(gram, p_identity.starting_point(gram, most), iterations)
    return p_identity.strategy(gram.labels, theta)


def _least_squares(strategy: Strategy, answers: list[Floats]) -> Floats:
    if len(strategy) > 1 and strategy[1]["kind"] == "matrix":
        return p_identity.reconstruct(strategy, answers)
    return hierarchy.tree_least_squares(strategy, answers)
