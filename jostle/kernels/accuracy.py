"""The variance of least-squares answers of a strategy, in closed form and before anything is measured.

For a strategy A under noise of deviation 1 on every answer, a query q has variance q(AᵀA)⁺qᵀ. Hierarchies are taken
apart by Sherman and Morrison, node by node from the leaves: Y⁻¹ = diag(1/w²) − Σ_v κ_v t_v t_vᵀ, where t_v is Y⁻¹1 of
the node's part before its own sum is counted, h = 1ᵀt_v and κ_v = w_v²/(1 + w_v²h). A p-identity strategy needs one
product with p vectors, marginals a sum over sets of axes, wavelets one of coefficients along each axis. What buckets
smooth away is not in it: only strategies whose buckets no query cuts through are covered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from jostle.kernels import KernelError
from jostle.kernels.arrays import Floats, Ints, Strategy
from jostle.kernels.histograms.greedy import box_variances
from jostle.kernels.noisy_array import common_noise, noise_of, with_noise
from jostle.kernels.workloads import marginals
from jostle.kernels.workloads.boxes import Workload, identity
from jostle.kernels.workloads.marginals import Predicates, Union

MOST_PRODUCTS = 2**31
"""Queries times entries of a hierarchy that are multiplied out; beyond, a sample of queries can be asked."""

MOST_AT_ZERO, TO_EMPTY = 0.5, "what full cells lose where others are 0"
"""The share of cells at 0 above which errors are marked: with 0.55 one full cell in a hundred more lies outside of its
error, with 0.8 six."""

PIECE = 2**22
SAMPLE = 200


def lossless(strategy: Strategy, workload: Workload) -> bool:
    """Whether every query is a union of whole buckets of the strategy, so that its estimate is unbiased."""
    if _is_wavelet(strategy):
        return workload.boxes
    if any(block["kind"] == "boxes" or "labels" not in block for block in strategy):
        return False
    if isinstance(workload, Union):
        return all(lossless(strategy, part) for part in workload.parts)
    if marginals.is_marginal(strategy):
        every = tuple(range(len(workload.shape)))
        sets = workload.sets if isinstance(workload, marginals.Marginals) else (every,)
        return all(any(set(s) <= set(b["marginal"]) for b in strategy) for s in sets)
    labels = _finest(strategy)
    if labels.min() < 0:
        return False
    buckets = int(labels.max()) + 1
    if buckets == workload.cells:
        return True
    if not isinstance(workload, Predicates):
        return False
    first = np.zeros(buckets, dtype=np.int64)
    first[labels] = workload.labels
    return bool((first[labels] == workload.labels).all())


def variances(strategy: Strategy, workload: Workload) -> Floats:
    """q(AᵀA)⁺qᵀ of every query, (m,), for a hierarchy, a p-identity strategy, wavelets or marginals.

    A `ValueError` where a query cuts through buckets, or a hierarchy and a workload of many dimensions are too large.
    """
    if not lossless(strategy, workload):
        raise KernelError("queries cut through this strategy's buckets: their error depends on the data")
    if isinstance(workload, Union):
        return np.concatenate([variances(strategy, part) for part in workload.parts])
    if _is_wavelet(strategy):
        return box_variances(workload.shape, *workload.bounds())
    if marginals.is_marginal(strategy):
        return _of_marginals(strategy, workload)
    labels = _finest(strategy)
    if len(strategy) > 1 and strategy[1]["kind"] == "matrix":
        return _of_p_identity(strategy, workload, labels)
    return _of_hierarchy(strategy, workload, labels)


def root_mean_square(strategy: Strategy, workload: Workload, deviation: float = 1.0) -> float:
    """The root of the mean of the squared standard errors of all queries.

    Where there are too many of them for a large hierarchy, of `SAMPLE` queries at even steps.
    """
    try:
        squares = variances(strategy, workload)
    except OverflowError:
        if not workload.boxes:
            raise
        squares = variances(strategy, sample_queries(workload, SAMPLE))
    return float(np.sqrt(squares.mean())) * deviation


def estimate_with_noise(cells: Floats, strategy: Strategy, answers: Sequence[object], workload: Workload) -> Floats:
    """The cells as least squares over a strategy; carrying nothing where the strategy's buckets hide cells.

    Where many were brought to 0, others gave what keeps the sum, and errors do not cover that.
    """
    noise = common_noise(answers)
    if noise is None or not lossless(strategy, workload):
        return cells
    moved = noise.law.scale and cells.min() >= 0 and np.mean(cells == 0) > MOST_AT_ZERO
    cut = (*noise.cut, TO_EMPTY) if moved else noise.cut
    return with_noise(cells, replace(noise, strategy=strategy, shape=tuple(workload.shape), cut=cut))


def answers_with_noise(queries: Workload, cells: Floats) -> Floats:
    """The answers of a workload on estimated cells; carrying nothing where queries cut through buckets."""
    noise = noise_of(cells)
    values = queries.answers(np.asarray(cells, dtype=np.float64))
    if noise is None or noise.strategy is None or noise.shape != tuple(queries.shape):
        return values
    if not lossless(noise.strategy, queries):
        return values
    return with_noise(values, replace(noise, workload=queries))


def standard_errors(value: Floats) -> NDArray[np.float64]:
    """The standard error of every element, of the array's shape, before cells are made nowhere negative.

    A `ValueError` where the array carries no noise, or its queries cut through buckets.
    """
    noise = noise_of(value)
    if noise is None:
        raise KernelError("nothing is known of how these numbers were measured")
    if noise.strategy is None:
        return np.full(np.shape(value), noise.law.deviation)
    queries = noise.workload if noise.workload is not None else identity(noise.shape)
    return noise.law.deviation * np.sqrt(variances(noise.strategy, queries)).reshape(np.shape(value))


def sample_queries(workload: Workload, count: int) -> Workload:
    """At most `count` queries of a workload of boxes, at even steps."""
    places = np.unique(np.linspace(0, workload.size - 1, count).astype(np.int64))
    lows, highs = (np.stack(bound) for bound in zip(*(workload.box(int(at)) for at in places), strict=True))
    return Workload("boxes", workload.shape, lows, highs)


def _is_wavelet(strategy: Strategy) -> bool:
    return all(block["kind"] == "signed" for block in strategy)


def _finest(strategy: Strategy) -> Ints:
    last = strategy[0] if len(strategy) > 1 and strategy[1]["kind"] == "matrix" else strategy[-1]
    return np.asarray(last["labels"], dtype=np.int64).ravel()


def _sums(workload: Workload, labels: Ints, values: Floats) -> Floats:
    """For each query the sum of bucket values over its buckets."""
    sizes = np.bincount(labels)
    return workload.answers((values / sizes)[labels])


def _of_marginals(strategy: Strategy, workload: Workload) -> Floats:
    if isinstance(workload, marginals.Marginals):
        return marginals.variances(strategy, workload.shape, workload.sets)
    result = np.empty(workload.size)
    _within_reach(workload.size * workload.cells)
    for at in range(workload.size):
        q = workload.member(at).astype(np.float64).reshape(workload.shape)
        result[at] = float(np.vdot(q, marginals.inverted(q, strategy)))
    return result


def _of_p_identity(strategy: Strategy, workload: Workload, labels: Ints) -> Floats:
    """(AᵀA)⁻¹ = S(I − Θᵀ(I + ΘΘᵀ)⁻¹Θ)S with S = 1/w and Θ = matrix/w."""
    weight = np.broadcast_to(np.asarray(strategy[0]["weight"], dtype=np.float64), (int(labels.max()) + 1,))
    theta = np.asarray(strategy[1]["matrix"]) / weight
    root = np.linalg.cholesky(np.eye(len(theta)) + theta @ theta.T)
    inner = np.linalg.solve(root, theta / weight)
    result = _sums(workload, labels, 1 / weight**2)
    for row in inner:
        result -= _sums(workload, labels, row) ** 2
    return np.maximum(result, 0.0)


def _of_hierarchy(strategy: Strategy, workload: Workload, labels: Ints) -> Floats:
    """Each level as (node of every bucket, κ of every node, t of every bucket)."""
    buckets = int(labels.max()) + 1
    weights = [np.broadcast_to(np.asarray(b["weight"], dtype=np.float64), (int(b["size"]),)) for b in strategy]
    t = 1 / weights[-1] ** 2
    own = t
    levels = []
    for block, weight in zip(strategy[-2::-1], weights[-2::-1], strict=True):
        node = np.zeros(buckets, dtype=np.int64)
        node[labels] = np.asarray(block["labels"], dtype=np.int64).ravel()
        squared = weight**2
        grown = 1 + squared * np.bincount(node, weights=t, minlength=len(weight))
        levels.append((node, squared / grown, t))
        t = t / grown[node]
    if not levels:
        return _sums(workload, labels, own)
    in_order = buckets == workload.cells and bool((labels == np.arange(buckets)).all())
    if in_order and workload.kind == "identity":
        result = own.copy()
        for node, kappa, part in levels:
            result -= kappa[node] * part**2
        return np.maximum(result, 0.0)
    if in_order and len(workload.shape) == 1 and workload.boxes and all((np.diff(n) >= 0).all() for n, _, _ in levels):
        return _of_intervals(own, levels, workload)
    return _of_rows(own, levels, workload, labels)


def _of_intervals(own: Floats, levels: list[tuple[Ints, Floats, Floats]], workload: Workload) -> Floats:
    """In one dimension: whole nodes by their prefix sums, and the two at the ends of a range."""
    lows, highs = (bound[:, 0] for bound in workload.bounds())
    total = np.concatenate([[0.0], np.cumsum(own)])
    result = total[highs + 1] - total[lows]
    for node, kappa, part in levels:
        upto = np.concatenate([[0.0], np.cumsum(part)])
        starts = np.searchsorted(node, np.arange(len(kappa) + 1))
        whole = np.concatenate([[0.0], np.cumsum(kappa * np.diff(upto[starts]) ** 2)])
        first, last = node[lows], node[highs]
        alone = first == last
        left = np.where(alone, upto[highs + 1], upto[starts[first + 1]]) - upto[lows]
        right = np.where(alone, 0.0, upto[highs + 1] - upto[starts[last]])
        between = np.where(alone, 0.0, whole[last] - whole[np.minimum(first + 1, last)])
        result -= kappa[first] * left**2 + kappa[last] * right**2 + between
    return np.asarray(np.maximum(result, 0.0))


def _of_rows(own: Floats, levels: list[tuple[Ints, Floats, Floats]], workload: Workload, labels: Ints) -> Floats:
    """For any workload: every query as a row over buckets, times one sparse matrix of all nodes."""
    from scipy.sparse import csr_matrix, hstack

    buckets = len(own)
    _within_reach(workload.size * buckets * (len(levels) + 1))
    place = np.arange(buckets)
    parts = [csr_matrix((np.sqrt(kappa)[node] * t, (place, node)), (buckets, len(kappa))) for node, kappa, t in levels]
    nodes = hstack(parts).tocsr() if parts else csr_matrix((buckets, 1))
    first = np.zeros(buckets, dtype=np.int64)
    first[labels] = np.arange(len(labels))
    result = np.empty(workload.size)
    step = max(1, PIECE // max(buckets, nodes.shape[1]))
    for start in range(0, workload.size, step):
        places = range(start, min(start + step, workload.size))
        rows = np.stack([workload.member(at)[first] for at in places]).astype(np.float64)
        result[start : start + step] = rows @ own - (np.asarray(rows @ nodes) ** 2).sum(axis=1)
    return np.maximum(result, 0.0)


def _within_reach(products: int) -> None:
    if products > MOST_PRODUCTS:
        raise OverflowError("this strategy and workload are too large for the error of every query")
