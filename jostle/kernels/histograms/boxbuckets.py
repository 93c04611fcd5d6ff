"""Gram matrices of workloads of boxes on buckets that are boxes, for large cubes of more than one axis.

There an overlap of a query with a bucket is a product of overlaps along the axes, so that neither the Gram matrix nor
its diagonal needs anything over cells: b² numbers instead of p·n for every product (`grams`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from jostle.kernels.arrays import Floats, Ints, along
from jostle.kernels.workloads.boxes import Workload
from jostle.kernels.workloads.marginals import Marginals

MANY_CELLS = 2**16
"""Below this many cells, products by prefix sums are quick enough."""

MOST_BUCKETS = 3000
"""Up to this many buckets the (b, b) matrix is made."""

PIECE = 2**22

Axis = tuple[Ints, Ints]
"""Intervals along an axis: lows and highs, both included."""


def box_extents(shape: tuple[int, ...], labels: Ints, sizes: Floats) -> tuple[Ints, Ints] | None:
    """The lowest and highest cell, (b, d) each, of every bucket; None where one is no box."""
    n = len(labels)
    first, last = np.full((2, len(sizes)), -1, dtype=np.int64)
    last[labels] = np.arange(n)
    first[labels[::-1]] = np.arange(n)[::-1]
    lows, highs = (np.stack(np.unravel_index(at, shape), axis=1).astype(np.int64) for at in (first, last))
    if (np.prod(highs - lows + 1.0, axis=1) != sizes).any():
        return None
    for axis, side in enumerate(shape):
        place = np.broadcast_to(along(np.arange(side), axis, len(shape)), shape)
        if (place.ravel() < lows[labels, axis]).any() or (place.ravel() > highs[labels, axis]).any():
            return None
    return lows, highs


def gram(workload: Workload, lows: Ints, highs: Ints) -> Floats:
    """G on box buckets, (b, b)."""
    matrix = np.zeros((len(lows), len(lows)))
    terms = products(workload)
    if terms is not None:
        for axes in terms:
            term = np.ones_like(matrix)
            for axis, queries in enumerate(axes):
                share = _shares(queries, (lows[:, axis], highs[:, axis]))
                term *= share.T @ share
            matrix += term
        return matrix
    for share in _pieces(workload, lows, highs):
        matrix += share.T @ share
    return matrix


def diagonal(workload: Workload, lows: Ints, highs: Ints) -> Floats:
    """The diagonal of G, (b,)."""
    total = np.zeros(len(lows))
    terms = products(workload)
    if terms is not None:
        for axes in terms:
            term = np.ones(len(lows))
            for axis, queries in enumerate(axes):
                ends, which = np.unique(np.stack([lows[:, axis], highs[:, axis]]), axis=1, return_inverse=True)
                term *= (_shares(queries, (ends[0], ends[1])) ** 2).sum(axis=0)[which.ravel()]
            total += term
        return total
    for share in _pieces(workload, lows, highs):
        total += (share**2).sum(axis=0)
    return total


def products(workload: Workload) -> list[list[Axis]] | None:
    """A workload as products of intervals along the axes, one list of axes a term; None for other lists of boxes."""
    singles = [(np.arange(side), np.arange(side)) for side in workload.shape]
    if workload.kind == "identity":
        return [singles]
    if workload.kind == "prefixes":
        return [[(np.zeros_like(at), at) for _, at in singles]]
    if isinstance(workload, Marginals):
        whole = [(np.array([0]), np.array([side - 1])) for side in workload.shape]
        return [[singles[a] if a in s else whole[a] for a in range(len(whole))] for s in workload.sets]
    return None


def _pieces(workload: Workload, lows: Ints, highs: Ints) -> Iterator[Floats]:
    """Shares of every bucket in some of the queries, (some, b), piece by piece."""
    bounds = workload.bounds()
    step = max(1, PIECE // len(lows))
    edges = [*range(0, workload.size, step), workload.size]
    for start, end in pairwise(edges):
        share = np.ones((end - start, len(lows)))
        for axis in range(lows.shape[1]):
            part = (bounds[0][start:end, axis], bounds[1][start:end, axis])
            share *= _shares(part, (lows[:, axis], highs[:, axis]))
        yield share


def _shares(queries: Axis, buckets: Axis) -> Floats:
    """The share of each of b intervals that lies in each of m queries, (m, b)."""
    starts, ends = buckets
    shared = np.minimum(queries[1][:, None], ends) - np.maximum(queries[0][:, None], starts) + 1.0
    return np.asarray(np.maximum(shared, 0.0) / (ends - starts + 1))
