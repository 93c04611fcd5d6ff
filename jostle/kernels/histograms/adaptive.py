"""Blocks that are refined where a first look finds rows, and the counts that all that was measured gives together.

A count says how many equal parts pay, and a look measures each of them. A posterior over the tree of halves
(`blocktree`) says where halves differ by more than they would be measured to: there parts are halved again, and
elsewhere joined. A strategy fitted to the workload measures those. No look is thrown away: it and the last measurement
are drawn together by the same laws. Of few rows nothing is looked at, and a mean of examples of columns, by how likely
each makes what was measured, tells the counts. Post-processing of released numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.kernels.arrays import Floats, Ints, Strategy
from jostle.kernels.histograms import blocktree, grids, smoothing, strategies
from jostle.kernels.histograms.blocktree import Posterior, Seen, Sums, Tree, leaves_of
from jostle.kernels.histograms.grams import on_buckets
from jostle.kernels.linear_algebra import on_one_thread
from jostle.kernels.noisy_array import is_gaussian, log_likelihood
from jostle.kernels.simulated_points import example_cubes
from jostle.kernels.workloads.boxes import Workload

MOST = 4096
"""The most blocks that a tree is drawn over: 0.4 s and 150 MB for so many."""

WORTH = 2.0
"""Halves of a line are treated separately where half their difference squared is above this, in the noise of a count.

Of a smaller block that is more, since fewer queries end within it: one in (n/k)^(1/d) or so of them, of a block of k of
n cells in d dimensions.
"""

HALF = 0.4
"""The rows for each cell, in scales of the noise, at which the tree of halves is half of the mean of all cells."""

CLEAR = 2.0**27
"""The rows, in scales of the noise, from which on laws add nothing to least squares, and doubles do not hold them."""

MOST_HALVINGS = 10
"""The most halvings, from the whole, of the parts that a look measures."""

HEARD = 10.0
"""The rows of a line, in scales of the noise, at which the normal posterior is half of the mean of both."""

EXAMPLES, PARTS = 2000, 64
"""The examples of a line or a plane, and the parts that they tell apart."""

TELLING = 60.0
"""Where fewer examples than this in effect agree with what was measured, they tell a mean and covariances."""

TOTALS, REACH = 64, 8.0
"""The numbers of rows that are weighed, and how many deviations of what was measured they reach to both sides."""

LOOK, LAST = 0.1, 0.9
"""The shares, of what is left, of the look and of the last measurement (`adaptive` in `stdlib/histograms.jst`)."""


@dataclass(frozen=True)
class _Line:
    """Cells in the order of a tree that is public, `order`, at `places` of 0 … 2^`bits` − 1; of a cube of `axes`."""

    order: Ints
    places: Ints
    bits: int
    axes: int

    def blocks(self, labels: Ints) -> Ints:
        """Where a block starts, as places in the order, of a partition into blocks of the tree."""
        return np.flatnonzero(np.diff(np.asarray(labels).ravel()[self.order], prepend=-1))

    def labels(self, starts: Ints) -> Ints:
        """The number, rising along the order, of the block that each cell lies in."""
        flags = np.zeros(len(self.order), dtype=np.int64)
        flags[starts] = 1
        labels = np.empty_like(flags)
        labels[self.order] = np.cumsum(flags) - 1
        return labels

    def tree(self, starts: Ints) -> Tree:
        cells = np.diff(np.append(starts, len(self.order))).astype(np.float64)
        return blocktree.tree_over(self.places[starts], cells, self.bits)


def equal_parts(shape: int | tuple[int, ...], number: float) -> Ints:
    """The number of the part that each cell, flat, lies in: the tree of halves, halved into about `number` parts."""
    line = _line((shape,) if isinstance(shape, int) else tuple(shape))
    halvings = round(float(np.log2(np.clip(number, 1.0, 2.0**MOST_HALVINGS))))
    part = line.places >> max(0, line.bits - halvings)
    labels = np.empty_like(part)
    labels[line.order] = np.cumsum(np.diff(part, prepend=part[0]) != 0)
    return labels


@on_one_thread
def refined_strategy(labels: Ints, look: Floats, look_scale: float, workload: Workload, power: int = 1) -> Strategy:
    """A strategy fitted to the workload on blocks that suit what was seen.

    `labels`: a partition into blocks of the tree of halves; `look` and `look_scale`: noisy counts of them, and their
    noise. `power`: that of the norm which the noise goes by.
    """
    line = _line(workload.shape)
    starts = line.blocks(labels)
    if len(starts) > MOST or look_scale <= 0:
        return strategies.bucket_strategy(labels, workload, power)
    halves = line.tree(starts)
    posterior = blocktree.posterior(
        halves, [_of_blocks(line, halves, starts, labels, look, look_scale, is_gaussian(look))], look_scale
    )
    again = _refined(line, halves, starts, posterior, look_scale * (LOOK / LAST) ** (1 / power))
    return strategies.bucket_strategy(line.labels(again), workload, power)


@on_one_thread
def drawn_together(
    labels: Ints, look: Floats, look_scale: float, strategy: Strategy, answers: list[Floats], scale: float,
    workload: Workload,
) -> Floats:  # fmt: skip
    """The cube of counts, of the workload's shape, of a look (`refined_strategy`) and of answers to a strategy."""
    line, fine = _line(workload.shape), np.asarray(strategy[0]["labels"])
    fitted = len(strategy) == 1 or strategy[1]["kind"] == "matrix"
    starts = np.unique(np.concatenate([line.blocks(one) for one in (labels, fine)]))
    if min(scale, look_scale) * CLEAR <= max(answers[0].sum(), 0.0) or not fitted or len(starts) > MOST:
        return strategies.estimate(strategy, answers, workload)
    halves, gaussian = line.tree(starts), is_gaussian(answers[0])
    weight = np.broadcast_to(np.asarray(strategy[0]["weight"], dtype=np.float64), (strategy[0]["size"],))
    measurements = [
        _of_blocks(line, halves, starts, fine, answers[0] / weight, scale / weight, gaussian),
        _of_blocks(line, halves, starts, labels, look, look_scale, gaussian),
    ]
    posterior = blocktree.posterior(halves, measurements, scale)
    counts = posterior.mean[leaves_of(halves)]
    if len(strategy) > 1:
        matrix = np.asarray(strategy[1]["matrix"])[:, fine[line.order[starts]]]
        counts = _with_sums(halves, posterior, counts, matrix, answers[1], scale)
        if line.axes == 1:
            sums = Sums(matrix, answers[1], scale, gaussian)
            normal = blocktree.normal_posterior(halves, measurements, scale, sums).mean[leaves_of(halves)]
            share = 1 / (1 + (scale * HEARD / max(float(counts.sum()), scale)) ** 2)
            counts = share * normal + (1 - share) * counts
    gram = on_buckets(workload, line.labels(starts))
    return gram.spread(strategies.project(counts, gram))


@on_one_thread
def like_examples(strategy: Strategy, answers: list[Floats], scale: float, workload: Workload) -> Floats:
    """The cube of counts from answers to a `bucket_strategy` on at most `PARTS` equal parts.

    The mean of examples and numbers of rows, each as likely before as any other (of numbers, any order of magnitude),
    by how likely they make what was measured. Where few examples agree, what they tell is taken from a part of the
    likelihood, by which `TELLING` of them agree. The rest corrects it linearly, by their mean and covariances
    (as an ensemble Kalman filter does; Evensen 2003).
    """
    places = equal_parts(workload.shape, PARTS)
    first = np.unique(places, return_index=True)[1]
    examples = _examples(workload.shape, places)
    blocks = int(strategy[0]["size"])
    lies_in = np.eye(blocks)[np.asarray(strategy[0]["labels"]).ravel()[first]]  # (parts, blocks)
    own = np.diag(np.broadcast_to(np.asarray(strategy[0]["weight"], dtype=np.float64), (blocks,)))
    sums_of, values = (
        np.concatenate([own, *(np.asarray(more["matrix"]) for more in strategy[1:])]),
        np.concatenate(answers),
    )

    spread = np.linalg.inv(sums_of.T @ sums_of)
    total = float((spread @ sums_of.T @ values).sum())
    reach = REACH * scale * np.sqrt(2 * spread.sum())
    edges = np.linspace(max(total - reach, 0.0), max(total, 0.0) + reach, TOTALS + 1)
    totals = (edges[1:] + edges[:-1]) / 2
    shares = sums_of @ (examples @ lies_in).T
    away, gaussian = [(values[:, None] - rows * shares) / scale for rows in totals], is_gaussian(answers[0])
    log = np.stack([log_likelihood(one, gaussian).sum(axis=0) for one in away])
    log -= np.log(totals + scale)[:, None]
    log -= log.max()

    def by(part: float) -> tuple[Floats, float]:
        """The weights of numbers of rows and examples by a part of the likelihood, and how many agree in effect."""
        weights = np.exp(part * log)
        weights /= weights.sum()
        return weights, float(1 / (weights.sum(axis=0) ** 2).sum())

    part, most = 1.0, 1.0
    weights, agree = by(part)
    if agree < TELLING:
        part = 0.0
        for _ in range(12):
            middle = (part + most) / 2
            part, most = (middle, most) if by(middle)[1] >= TELLING else (part, middle)
        weights, _ = by(part)
    mean = (totals @ weights) @ examples
    if part < 1:
        cells = lies_in @ sums_of.T  # (parts, measurements)
        covariance = (examples.T * (totals**2 @ weights)) @ examples - np.outer(mean, mean)
        inner = cells.T @ covariance @ cells + 2 * scale**2 / (1 - part) * np.eye(len(values))
        mean = mean + covariance @ cells @ np.linalg.solve(inner, values - cells.T @ mean)
    gram = on_buckets(workload, places)
    return gram.spread(strategies.project(mean, gram))


def _examples(shape: tuple[int, ...], places: Ints) -> Floats:
    """The shares, (`EXAMPLES`, parts), that examples have of the parts of a cube whose cells, flat, lie at `places`."""
    left, sides = [max(0, (cells - 1).bit_length()) for cells in shape], [1] * len(shape)
    for _ in range(min(sum(left), PARTS.bit_length() - 1)):
        axis = max(range(len(shape)), key=lambda a: left[a])
        left[axis], sides[axis] = left[axis] - 1, 2 * sides[axis]
    cells = [-(-np.arange(1, side + 1) * n // side) - 1 for side, n in zip(sides, shape, strict=True)]
    part = places.reshape(shape)[np.ix_(*cells)].ravel()
    return np.asarray(example_cubes(EXAMPLES, tuple(sides)) @ np.eye(int(places.max()) + 1)[part])


@on_one_thread
def expected_cells(answers: list[Floats], scale: float, workload: Workload) -> Floats:
    """The cube of counts, of the workload's shape, each cell having been measured once under noise of `scale`.

    The mean, by `HALF`, of the posterior of the tree of halves and of that of boxes of like cells (`smoothing`). The
    latter is nearly all of it where rows are many; of more than `MOST` cells the latter alone.
    """
    line = _line(workload.shape)
    cells, gaussian = np.asarray(answers[0], dtype=np.float64).ravel(), is_gaussian(answers[0])
    boxes = smoothing.smoothed(grids.identity_strategy(workload.shape), answers, scale, workload)
    if scale * CLEAR <= max(cells.sum(), 0.0) or len(cells) > MOST:
        return boxes
    tree = line.tree(np.arange(len(cells)))
    measurements = [Seen(leaves_of(tree), cells[line.order], np.full(len(cells), scale), gaussian)]
    expected = np.empty(len(cells))
    expected[line.order] = blocktree.posterior(tree, measurements, scale).mean[leaves_of(tree)]
    share = 1 / (1 + (max(float(cells.mean()), 0.0) / (scale * HALF)) ** 2)
    return np.asarray(share * expected.reshape(workload.shape) + (1 - share) * boxes)


@on_one_thread
def halved_cells(strategy: Strategy, answers: list[Floats], scale: float, workload: Workload) -> Floats:
    """The cube of counts, of the workload's shape, from noisy answers to an `hdmm_strategy`.

    Of a cube that was measured by cells and sums the mean of estimates: like cells drawn together (`smoothing`), and
    the normal posterior of trees of halves, of which one begins a third of the way later. Of a line that counts twice,
    and the posterior of what the cells alone say, which then takes the sums in, once. In more dimensions there is one
    more, in which halves are expected to part as the product of the sums along the axes. Of more than `MOST` cells
    there is one tree, and on a line no posterior of the cells. Else the first alone.
    """
    boxes = smoothing.smoothed(strategy, answers, scale, workload)
    cells = workload.cells
    if scale * CLEAR <= boxes.sum() or len(strategy) < 2 or strategy[1]["kind"] != "matrix" or cells < 2:
        return boxes
    if strategy[0]["size"] < cells:
        return boxes
    weight = np.broadcast_to(np.asarray(strategy[0]["weight"], dtype=np.float64), (cells,))
    gaussian = is_gaussian(answers[0])
    own = np.asarray(strategy[0]["labels"]).ravel()
    values, scales = (answers[0] / weight)[own], (scale / weight)[own]
    matrix = np.asarray(strategy[1]["matrix"])[:, own]
    turns = (0, 1) if len(workload.shape) == 1 or cells <= MOST else (0,)
    lines = [_line(workload.shape, turn=turn) for turn in turns]

    def over_trees(shares: Floats) -> Floats:
        """The mean over the trees; the rows of a block are expected to part between its halves by `shares`, flat."""
        expected = np.zeros(cells)
        for line in lines:
            tree, at = blocktree.tree_over(line.places, shares[line.order], line.bits), line.order
            counts = Seen(leaves_of(tree), values[at], scales[at], gaussian)
            sums = Sums(matrix[:, at], answers[1], scale, gaussian)
            expected[at] += blocktree.normal_posterior(tree, [counts], scale, sums).mean[counts.nodes] / len(lines)
        return expected

    estimates = [over_trees(np.ones(cells))]
    if len(workload.shape) > 1:
        estimates.append(over_trees(_product(estimates[0].reshape(workload.shape), scale / 2).ravel()))
    elif cells <= MOST:
        tree = lines[0].tree(np.arange(cells))
        posterior = blocktree.posterior(tree, [Seen(leaves_of(tree), values, scales, gaussian)], scale)
        counts = posterior.mean[leaves_of(tree)]
        estimates += [estimates[0], _with_sums(tree, posterior, counts, matrix, answers[1], scale)]
    mean = np.mean(estimates, axis=0)
    if not np.isfinite(mean).all():
        return boxes
    gram, share = on_buckets(workload, own), 1 / (1 + len(estimates))
    return np.asarray(share * boxes + (1 - share) * gram.spread(strategies.project(mean, gram)))


def _product(cube: Floats, least: float) -> Floats:
    """What the cells would be if the axes were independent, in units of their mean; sums are `least` above 0."""
    product = np.ones(cube.shape)
    for axis in range(cube.ndim):
        others = tuple(a for a in range(cube.ndim) if a != axis)
        product = product * (np.maximum(cube.sum(axis=others, keepdims=True), 0.0) + least)
    return np.asarray(product / product.mean())


def _line(shape: tuple[int, ...], turn: int = 0) -> _Line:
    """The cells along a tree that halves the longest axis first.

    With a `turn` of 1 it begins a third of each axis later, and of equal axes the last is halved first.
    """
    order, places = grids.halving_order(shape, turn)
    bits = sum((cells + turn * (cells // 3) - 1).bit_length() for cells in shape)
    return _Line(order, places, bits, len(shape))


def _of_blocks(
    line: _Line, tree: Tree, starts: Ints, labels: Ints, values: Floats, scales: Floats | float, gaussian: bool = False
) -> Seen:
    """What was seen of each block of `labels`, of nodes of the tree over finer blocks that begin at `starts`."""
    own = line.blocks(labels)
    low = np.searchsorted(starts, own)
    number = np.asarray(labels).ravel()[line.order[own]]
    nodes = tree.node_of(low, np.append(low[1:], len(starts)))
    return Seen(nodes, np.asarray(values)[number], np.broadcast_to(scales, len(own))[number], gaussian)


def _refined(line: _Line, tree: Tree, starts: Ints, law: Posterior, scale: float) -> Ints:
    """Where blocks start that are halved as long as their halves are expected to differ by more than their noise."""
    whole = float(len(line.order))
    bounds = np.append(starts, len(line.order))
    leaves = leaves_of(tree)
    squares = law.mean[leaves] ** 2 + law.variance[leaves]
    ends = line.places[bounds[1:] - 1]
    spread = line.places[starts] ^ ends
    shared = line.bits - np.where(spread > 0, np.floor(np.log2(np.maximum(spread, 1))) + 1, 0).astype(np.int64)
    sizes, finer = np.diff(bounds).astype(np.float64), np.zeros(len(starts), dtype=np.int64)
    going = sizes > 1
    for deeper in range(line.bits):
        cells = np.maximum(sizes / 2**deeper, 1.0)
        rate = blocktree.unevenness((shared + deeper).astype(np.float64), cells)
        gap = squares * rate + np.sqrt(squares) / 4
        going &= (shared + deeper < line.bits) & (gap > _worth(cells / whole, line.axes) * scale**2)
        if not going.any():
            break
        finer[going] += 1
        squares = squares * (0.25 + rate)
    refines = np.zeros(len(tree.low), dtype=bool)
    refines[leaves] = finer > 0
    is_start = np.zeros(len(starts) + 1, dtype=bool)
    is_start[0] = True
    for level in reversed(tree.levels):
        worth = _worth(tree.cells[level.nodes] / whole, line.axes) * scale**2
        refines[level.nodes] = (
            (law.square[level.nodes] + law.mean[level.nodes] / 4 > worth) | refines[level.left] | refines[level.right]
        )
        is_start[tree.low[level.right]] = refines[level.nodes]
    leaf = np.searchsorted(starts, np.arange(len(line.order)), side="right") - 1
    part = line.places >> (line.bits - np.minimum(shared + finer, line.bits))[leaf]
    inside = np.diff(part, prepend=-1) != 0
    at_start = np.zeros(len(line.order), dtype=bool)
    at_start[starts] = True
    return np.flatnonzero(np.where(at_start, is_start[leaf], inside))


def _worth(share: Floats, axes: int) -> Floats:
    """What the difference of the halves of a block that has this share of the cells must be worth, (k,)."""
    return np.asarray(WORTH / axes * share ** (-0.5 / axes))


def _with_sums(tree: Tree, posterior: Posterior, counts: Floats, matrix: Floats, sums: Floats, scale: float) -> Floats:
    """The blocks' counts, (b,), given noisy `sums` of them with the weights `matrix`, (p, b), as well.

    Before that the gaps of halves are taken to be normal and to know nothing of each other.
    """
    run = np.concatenate([np.zeros((len(matrix), 1)), np.cumsum(matrix * counts, axis=1)], axis=1)
    cumulative = np.append(0.0, np.cumsum(counts))
    mass = np.maximum(cumulative[tree.high] - cumulative[tree.low], 1e-9)
    rates = (run[:, tree.high] - run[:, tree.low]) / mass
    deviation = np.sqrt(np.maximum(posterior.square - posterior.gap**2, 0.0))
    whole = rates[:, :1] * np.sqrt(posterior.variance[0])
    parts = [(rates[:, level.left] - rates[:, level.right]) * deviation[level.nodes] for level in tree.levels]
    all_parts = np.concatenate([whole, *parts], axis=1)
    inner = all_parts @ all_parts.T + 2 * scale**2 * np.eye(len(matrix))
    pull = np.linalg.solve(inner, sums - matrix @ counts)
    shifts = np.zeros(len(mass))
    shifts[0] = np.sqrt(posterior.variance[0]) * float(whole[:, 0] @ pull)
    for level, part in zip(tree.levels, parts, strict=True):
        gap = deviation[level.nodes] * (part.T @ pull)
        for half, sign in ((level.left, 1), (level.right, -1)):
            shifts[half] = shifts[level.nodes] * mass[half] / mass[level.nodes] + sign * gap
    return counts + shifts[leaves_of(tree)]
