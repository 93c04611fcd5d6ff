"""Groups cells whose first noisy counts are alike: AHP's clusters and DPCube's boxes.

Zhang, Chen, Xu, Meng and Xie, *Towards accurate histogram publication under differential privacy*, SDM 2014, sort the
noisy counts and cut them into clusters; Xiao, Xiong, Fan and Goryczka, *DPCube: differentially private histogram
release through multidimensional partitioning*, TDP 2014, split the cube by a kd-tree over them. Both then measure the
groups anew. Everything here sees released numbers and the scale of their noise, and no true total.
"""

from __future__ import annotations

import math

import numpy as np

from jostle.kernels.arrays import Floats, Ints, Strategy, groups
from jostle.kernels.histograms import kdtree


def ahp_labels(cells: Floats, scale: float, next_scale: float) -> Ints:
    """A cluster, 0 … c − 1, for each of `cells` (any shape; the labels are flat), whose noise has `scale`.

    Cells below scale·√ln n count as 0. Down the sorted counts, a cell joins the open cluster where that costs less
    than a cluster of its own: squares about the mean, and the noise of `next_scale` of a cluster's total.
    """
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
    """A box, 0 … b − 1, for each of the noisy `cells` of a cube (the labels are flat), whose noise has `scale`.

    A box is cut across the axis and at the place where the squares about the means of the halves are least, as
    long as that saves more than the best of its cuts would save on noise alone.
    """
    cube = np.asarray(cells, dtype=np.float64).reshape(shape)

    def cut(box: kdtree.Box) -> tuple[int, int]:
        gain, axis, before = _best_cut(cube[box])
        cuts = max(1, sum(side - 1 for side in cube[box].shape))
        return (0, 0) if gain <= max(2 * scale**2 * (1 + 2 * math.log(cuts)), 1e-9) else (axis, before)

    return kdtree.leaves(cube.shape, cut)


def group_strategy(labels: Ints) -> Strategy:
    """Each group of `labels`, 0 … c − 1, once."""
    return [groups(labels, 1.0)]


def _best_cut(cube: Floats) -> tuple[float, int, int]:
    """The best cut of a box: the squares about the mean that it saves, its axis, and the number of cells before it."""
    best = (0.0, 0, 0)
    total = float(cube.sum())
    for axis, side in enumerate(cube.shape):
        if side < 2:
            continue
        others = tuple(a for a in range(cube.ndim) if a != axis)
        first = np.cumsum(cube.sum(axis=others))[:-1]
        before = np.arange(1, side) * (cube.size / side)
        gains = (first - total * before / cube.size) ** 2 * cube.size / (before * (cube.size - before))
        at = int(np.argmax(gains))
        best = max(best, (float(gains[at]), axis, at + 1))
    return best
