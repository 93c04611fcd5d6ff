"""Degrees from noisy counts, and a graph that has them: all of released numbers."""

from __future__ import annotations

import heapq

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.checks import whole_number
from jostle.kernels.errors import KernelError

MOST_EDGES = 10**6


def degrees_of(counts: object) -> Floats:
    """The degrees of a graph, the largest first, of which about `counts`[i] nodes have more than i edges.

    The counts never rise: they are replaced by the nearest such numbers (least squares) and rounded. An odd sum of
    degrees, which no graph has, loses one.
    """
    from scipy.optimize import isotonic_regression

    noisy = np.asarray(counts, dtype=float).ravel()
    if not noisy.size or not np.isfinite(noisy).all():
        raise KernelError("degrees are made of counts, of nodes that have more than 0, 1, 2, … edges")
    falling = np.rint(np.clip(isotonic_regression(noisy, increasing=False).x, 0, MOST_EDGES)).astype(np.int64)
    _room(falling.sum())
    ends = np.bincount(falling, minlength=int(falling[0]) + 1)  # how many levels have so many nodes
    degrees = np.cumsum(ends[::-1])[::-1][1:]
    if degrees.sum() % 2:
        degrees[-1] -= 1
    return np.asarray(degrees[degrees > 0], dtype=float)


def realised(degrees: object) -> list[tuple[int, int]]:
    """The edges of a simple graph with these degrees, or of one that lacks few of them where there is none.

    After Havel (1955) and Hakimi (1962): the node with the most edges to find is joined to those with the next most.
    """
    values = np.asarray(degrees, dtype=float).ravel()
    if not np.isfinite(values).all() or (values != np.floor(values)).any() or (values < 0).any():
        raise KernelError("degrees are whole numbers of at least 0")
    _room(values.sum())
    waiting = [(-int(degree), node) for node, degree in enumerate(values) if degree]
    heapq.heapify(waiting)
    edges: list[tuple[int, int]] = []
    while waiting:
        lacking, node = heapq.heappop(waiting)
        partners = [heapq.heappop(waiting) for _ in range(min(-lacking, len(waiting)))]
        edges += [(node, partner) for _, partner in partners]
        for left, partner in partners:
            if left + 1:
                heapq.heappush(waiting, (left + 1, partner))
    return edges


def edges_of(edges: object) -> list[tuple[int, int]]:
    """Pairs of whole numbers, each pair once, without loops; refused where they are none."""
    pairs = np.asarray(edges, dtype=float)
    if pairs.size == 0:
        return []
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.isfinite(pairs).all() or (pairs != np.floor(pairs)).any():
        raise KernelError("the edges of a graph are pairs of whole numbers")
    whole_number(len(pairs), 0, 2 * MOST_EDGES, "edges")
    return sorted({(int(min(a, b)), int(max(a, b))) for a, b in pairs if a != b})


def _room(ends: float) -> None:
    if ends > 2 * MOST_EDGES:
        raise KernelError(f"a graph has at most {MOST_EDGES:,} edges here, and these degrees need more")
