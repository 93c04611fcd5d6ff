"""Groups cells whose first noisy counts are alike: AHP's clusters, DPCube's boxes, and boxes from sums along the axes.

Zhang, Chen, Xu, Meng and Xie, *Towards accurate histogram publication under differential privacy*, SDM 2014, sort the
noisy counts and cut them into clusters; Xiao, Xiong, Fan and Goryczka, *DPCube: differentially private histogram
release through multidimensional partitioning*, TDP 2014, split the cube by a kd-tree over them. Both then measure the
groups anew.

The noisy sums along each axis are made piecewise even. A kd-tree over their product, which is never made, gives few
boxes where rows lie on lines or in one place, and one box where the sums show nothing. Within each box the tree goes on
by halves. Everything here sees released numbers and the scale of their noise.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import numpy as np

from jostle.kernels.arrays import Floats, Ints, Strategy, axes_of, groups
from jostle.kernels.histograms import grids


def ahp_labels(cells: Floats, scale: float, next_scale: float) -> Ints:
    """A cluster, 0 … c − 1, for each of `cells` (any shape; the labels are flat), whose noise has `scale`. Cells below
    scale·√ln n count as 0. Down the sorted counts, a cell joins the open cluster where that costs less than a cluster
    of its own: squares about the mean, and the noise of `next_scale` of a cluster's total."""
    flat = np.asarray(cells, dtype=np.float64).ravel()
    flat = np.where(flat < scale * math.sqrt(math.log(max(flat.size, 2))), 0.0, flat)
    order = np.argsort(-flat, kind="stable")
    noise = 2 * float(next_scale) ** 2
    values = flat[order].tolist()
    cluster, clusters = 0, [0] * len(values)
    count, mean, squares = 0, 0.0, 0.0
    for i, value in enumerate(values):
        gap = value - mean
        merged = squares + gap * gap * count / (count + 1)
        if count and merged + noise / (count + 1) > squares + noise / count + noise:
            cluster, count, mean, squares = cluster + 1, 0, 0.0, 0.0
            gap, merged = value, 0.0
        count += 1
        mean += gap / count
        squares = merged
        clusters[i] = cluster
    labels = np.empty(flat.size, dtype=np.int64)
    labels[order] = clusters
    return labels


def kd_labels(shape: int | tuple[int, ...], cells: Floats, scale: float) -> Ints:
    """A box, 0 … b − 1, for each of the noisy `cells` of a cube (the labels are flat), whose noise has `scale`. A box
    is cut across the axis and at the place where the squares about the means of the halves are least. It is cut as long
    as that saves more than the best of its cuts would save on noise alone."""
    cube = np.asarray(cells, dtype=np.float64).reshape(shape)

    def cut(box: grids.Box) -> tuple[int, int]:
        gain, axis, before = grids.best_cut(grids.sums_along(cube[box]))
        cuts = max(1, sum(side - 1 for side in cube[box].shape))
        return (0, 0) if gain <= max(2 * scale**2 * (1 + 2 * math.log(cuts)), 1e-9) else (axis, before)

    return grids.leaves(cube.shape, cut)


Ranges = tuple[tuple[int, int], ...]
"""The first place along every axis, and the one after the last."""

BOLD = 0.3
"""A cut of an axis must save this share of the squares that chance alone could save; a wrong cut costs little."""

WORTH = 5.0
"""The squares that a cut of the product saves, in units of 1/ε², must be more than a count costs to measure."""

MOST_BOXES = 128

FULL = 20.0
"""Boxes of more than this many rows, times ε, are always halved once."""


def axis_sums(shape: int | tuple[int, ...]) -> Strategy:
    """The sums along every axis, each with an equal share: every column has L1 norm 1."""
    axes = axes_of(shape)
    return [groups(place, 1 / len(axes)) for place in np.indices(axes)]


def box_tree(
    shape: int | tuple[int, ...], answers: Sequence[Floats], scale: float, epsilon: float
) -> tuple[Ints, Ints]:
    """A tree for `least_cost_partition` from the answers to `axis_sums`, whose noise has `scale`. The cells in order,
    and the level of the place before each: −1 between boxes, and within a box the halvings of its longest axes from 0
    (from −1 where the sums say that it holds many rows). `epsilon`: of the whole answer."""
    axes = axes_of(shape)
    many = len(axes)
    even = [_evened(np.asarray(a, dtype=np.float64) * many, scale * many) for a in answers]
    total = max(1.0, float(np.mean([line.sum() for line in even])))
    boxes = _boxes([line / max(float(line.sum()), 1e-9) for line in even], total, WORTH / epsilon**2)
    orders, levels = zip(*(_halved(axes, box, rows * epsilon > FULL) for box, rows in boxes), strict=True)
    return np.concatenate(orders), np.concatenate(levels)


def _evened(sums: Floats, scale: float) -> Floats:
    """The sums with the mean of its segment, at least 0, in place of each."""
    labels = kd_labels(len(sums), sums, scale * BOLD**0.5)
    means = np.bincount(labels, weights=sums) / np.bincount(labels)
    return np.asarray(np.maximum(means, 0.0)[labels])


def _boxes(shares: list[Floats], total: float, worth: float) -> list[tuple[Ranges, float]]:
    """The leaves of a kd-tree over the product of `shares` times `total`, and the rows in each; the best cuts first."""
    whole: Ranges = tuple((0, len(share)) for share in shares)
    waiting = [(*_cut(shares, whole), 0, whole)]
    done: list[Ranges] = []
    while waiting:
        gain, axis, at, number, box = heapq.heappop(waiting)
        if -gain * total**2 <= worth or len(waiting) + len(done) + 1 >= MOST_BOXES:
            done.append(box)
            continue
        for turn, half in enumerate(((box[axis][0], at), (at, box[axis][1])), start=1):
            part = (*box[:axis], half, *box[axis + 1 :])
            heapq.heappush(waiting, (*_cut(shares, part), 2 * number + turn, part))
    masses = [float(np.prod([share[low:high].sum() for share, (low, high) in zip(shares, box, strict=True)]))
            for box in done]  # fmt: skip
    return [(box, total * rows) for box, rows in zip(done, masses, strict=True)]


def _cut(shares: list[Floats], box: Ranges) -> tuple[float, int, int]:
    """Minus what the best cut of a box saves of the squares about the mean, its axis, and the place after it."""
    inside = [share[low:high] for share, (low, high) in zip(shares, box, strict=True)]
    mass = float(np.prod([part.sum() for part in inside]))
    gain, axis, before = grids.best_cut([part * (mass / max(float(part.sum()), 1e-300)) for part in inside])
    return -gain, axis, box[axis][0] + before


def _halved(shape: tuple[int, ...], box: Ranges, at_once: bool) -> tuple[Ints, Ints]:
    """The cells of a box in the order of its halvings, and the level of the place before each, −1 for the first. The
    level before a cell is that of the first halving that separates it from the cell before it; those of all axes that
    are as long have one level."""
    sides = [high - low for low, high in box]
    bits = [(side - 1).bit_length() for side in sides]
    order, path = grids.halving_order(tuple(sides))
    depths = np.repeat(np.arange(max(bits)), [sum(most >= left for most in bits) for left in range(max(bits), 0, -1)])
    differing = path[1:] ^ path[:-1]
    high = differing >> 31
    highest = np.where(high > 0, np.frexp(high)[1] + 31, np.frexp(differing & (2**31 - 1))[1]) - 1
    levels = np.append(-1, depths[len(depths) - 1 - highest] - at_once)
    places = np.ix_(*(np.arange(low, high) for low, high in box))
    cells = np.broadcast_arrays(*places) if len(places) > 1 else places
    return np.ravel_multi_index(tuple(c.ravel()[order] for c in cells), shape).astype(np.int64), levels
