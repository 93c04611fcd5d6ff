"""Shrinks the counts of measured blocks that look alike towards their common density.

A walk that finds what is uneven cuts what is even as well: a cell in an empty corner leaves three empty blocks a level.
So the measured blocks are gathered into boxes, by a kd-tree that asks of each cut whether it is more than noise. Within
a box each count is drawn towards the box's density: by the ratio of the noise to what is left of the differences
once noise is taken off (an empirical Bayes estimate; Efron and Morris, *Data analysis using Stein's estimator and its
generalizations*, JASA 1975). Where blocks do differ, they stay as they are.

Counts that were measured one by one have posterior means (`posterior`). Noise that is large only now and then
(Laplace's) and counts that are whole and never negative are far from normal: within a box counts follow a mixture of
negative binomial laws about the box's density. These range from no dispersion or Poisson's to cells of which nearly all
are empty and a few are full; how much of each kind a box has is learned from the noisy counts themselves, by
expectation and maximisation (Robbins, *An empirical Bayes approach to statistics*, Third Berkeley Symposium, 1956).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jostle.kernels.arrays import Floats, Ints, Strategy, with_sum
from jostle.kernels.histograms import grids, strategies
from jostle.kernels.histograms.grams import on_buckets
from jostle.kernels.histograms.strategies import estimate
from jostle.kernels.linear_algebra import on_one_thread
from jostle.kernels.noisy_array import is_gaussian, log_likelihood
from jostle.kernels.workloads.boxes import Workload
from jostle.kernels.workloads.marginals import is_marginal

DISPERSIONS = (0.0, 1 / 64, 1 / 4, 4.0, 64.0, 1024.0, 16384.0)
"""A law's variance is mean + dispersion · mean²; 0 is Poisson's. None at all is a kind of its own, and just the mean.

The largest let a spike of thousands of rows stay where all else is empty: with 64 the largest, it was taken for noise.
"""

EVEN, FEWEST = 1, 16
"""The kind that is just the mean, and the blocks of a box that can tell it: the mean of few is near each of them."""

ROUNDS = 15
"""Rounds of learning, of the whole and then of every box."""

KNOWN = 3.0
"""So many blocks, of the kinds that all boxes together have, are added to those of a box."""

LEAST = 0.3
"""The least density of a box, in standard errors of its mean: a law of mean 0 could learn nothing from its cells."""

PIECE = 2**11
"""Blocks whose integrals are held at once."""

BOXES, ALIKE = 2**12, 2**17
"""About the most boxes of cells that were measured one by one, and the most pairs of a box and a noisy count in them.

Integrals are of such pairs: of a million cells most have one of a few noisy counts."""

_NOISE = np.array([0.15, 0.3, 0.5, 0.75, 1, 1.4, 2, 2.7, 3.5, 4.5, 6, 8, 10, 13, 16])
_AWAY = np.concatenate([-_NOISE[::-1], [0.0], _NOISE])
"""Where a count is looked at, in scales of the noise from what was seen."""

_NEAR = np.array([-4, -3, -2, -1.4, -0.8, -0.3, 0.3, 0.8, 1.4, 2, 3, 4])
"""And in Poisson's deviations from what its box says."""

_FEW = np.array([0.0, 1, 2, 3, 4, 6, 9, 13, 19, 28, 42, 64, 96, 144, 216])
"""And where laws of large dispersion are steep."""


def posterior_means(noisy: Floats, scale: Floats, sizes: Floats, boxes: Ints, gaussian: bool = False) -> Floats:
    """The expected counts, (b,), of blocks of so many cells, seen under noise as wide as Laplace's of `scale`, (b,).

    `boxes`, (b,), holds the box, 0 … j − 1, of every block.
    """
    cells = np.bincount(boxes, weights=sizes)
    noise = np.sqrt(2 * np.bincount(boxes, weights=scale**2)) / cells
    density = np.maximum(np.bincount(boxes, weights=noisy) / cells, np.maximum(LEAST * noise, 1e-9))
    blocks, alike = np.bincount(boxes), boxes
    for part in (noisy, scale, sizes):
        values, places = np.unique(part, return_inverse=True)
        alike = np.unique(alike * len(values) + places, return_inverse=True)[1]
    first, many = np.unique(alike, return_index=True, return_counts=True)[1:]
    noisy, scale, boxes = noisy[first], scale[first], boxes[first]
    mean = density[boxes] * sizes[first]
    pieces = [slice(start, start + PIECE) for start in range(0, len(noisy), PIECE)]
    results = [_by_kind(noisy[some], scale[some], mean[some], gaussian) for some in pieces]
    likely, expected = (np.concatenate(part) for part in zip(*results, strict=True))
    likely[blocks[boxes] < FEWEST, EVEN] = 0
    kinds = likely * _kinds(likely, many, boxes, len(cells))[boxes]
    return np.asarray(((kinds * expected).sum(axis=1) / kinds.sum(axis=1))[alike])


def _by_kind(noisy: Floats, scale: Floats, mean: Floats, gaussian: bool = False) -> tuple[Floats, Floats]:
    """The likelihood, up to a factor a block, and the expected count of every block under each kind, (b, k) each."""
    from scipy.special import gammaln

    counts = np.concatenate([
        noisy[:, None] + scale[:, None] * _AWAY, mean[:, None] + np.sqrt(mean)[:, None] * _NEAR,
        np.broadcast_to(_FEW, (len(noisy), len(_FEW))),
    ], axis=1)  # fmt: skip
    counts = np.sort(np.maximum(np.rint(counts), 0.0), axis=1)
    between = (counts[:, 1:] + counts[:, :-1]) / 2
    many = np.diff(between, axis=1, prepend=-0.5, append=counts[:, -1:] + 0.5)  # counts that each stands for
    noise = log_likelihood((counts - noisy[:, None]) / scale[:, None], gaussian)
    weight = many * np.exp(noise - noise.max(axis=1, keepdims=True))
    factorial, log_mean = gammaln(counts + 1), np.log(mean)[:, None]
    none = weight[:, 0] / many[:, 0]  # the first stands for 0
    even = np.exp(log_likelihood((mean - noisy) / scale, gaussian) - noise.max(axis=1))
    likely, expected = [none, even], [np.zeros(len(noisy)), mean]
    for dispersion in DISPERSIONS:
        if dispersion == 0:
            law = counts * log_mean - mean[:, None]
        else:
            shape = 1 / dispersion
            full = np.log(mean + shape)[:, None]
            law = gammaln(counts + shape) - gammaln(shape) + shape * (np.log(shape) - full) + counts * (log_mean - full)
        law = weight * np.exp(law - factorial)
        total = law.sum(axis=1)
        likely.append(np.maximum(total, 1e-300))
        sums = (law * counts).sum(axis=1)
        expected.append(np.where(total > 0, sums / np.maximum(total, 1e-300), np.maximum(noisy, 0)))
    return np.stack(likely, axis=1), np.stack(expected, axis=1)


def _kinds(likely: Floats, alike: Ints, boxes: Ints, many: int) -> Floats:
    """The share of every kind in each of so many boxes, (j, k). Rows of `likely` stand for so many blocks, `alike`."""
    whole = np.full(likely.shape[1], 1 / likely.shape[1])
    for _ in range(ROUNDS):
        part = likely * whole
        part /= part.sum(axis=1, keepdims=True)
        whole = (alike @ part + 1 / len(whole)) / (alike.sum() + 1)
    each = np.tile(whole, (many, 1))
    for _ in range(ROUNDS):
        part = likely * each[boxes]
        part *= (alike / part.sum(axis=1))[:, None]
        blocks = np.stack([np.bincount(boxes, weights=kind, minlength=many) for kind in part.T], axis=1)
        each = (blocks + KNOWN * whole) / (blocks.sum(axis=1, keepdims=True) + KNOWN)
    return each


WORK = 2**23
"""The most numbers that the cuts of the whole cube may hold: beyond it nothing is smoothed beside sums."""


@dataclass(frozen=True)
class BlockEstimate:
    """Least-squares counts `z`, (b,), of blocks under a p-identity strategy or none but the blocks themselves.

    Their covariance is 2s²(AᵀA)⁻¹ with AᵀA = diag(`own`) + MᵀM, where M, (p, b), holds the weighted sums.
    """

    z: Floats
    own: Floats
    matrix: Floats
    scale: float

    def diagonal(self) -> Floats:
        """The variance of every count."""
        variance = 1 / self.own
        variance = variance - ((self.half / self.own) ** 2).sum(axis=0)
        return np.asarray(2 * self.scale**2 * np.maximum(variance, 1e-12 / self.own))

    @cached_property
    def half(self) -> Floats:
        """L⁻¹M, (p, b), where L is Cholesky's factor of I + M diag(1/own) Mᵀ."""
        inner = np.eye(len(self.matrix)) + (self.matrix / self.own) @ self.matrix.T
        return np.asarray(np.linalg.solve(np.linalg.cholesky(inner), self.matrix), dtype=np.float64)


@on_one_thread
def smoothed(strategy: Strategy, answers: list[Floats], scale: float, workload: Workload) -> Floats:
    """The cube of counts, of the workload's shape, from noisy answers under noise of `scale` to a `bucket_strategy`.

    Least squares on the blocks, drawn together where they look alike, then nowhere negative in the workload's metric.
    Where every block was measured once and nothing else, the counts are `posterior_means`, moved towards the noisy sum.
    Hierarchies, marginals, exact answers and very many blocks beside sums are only estimated.
    """
    if is_marginal(strategy):
        return estimate(strategy, answers, workload)
    labels = np.asarray(strategy[0]["labels"])
    blocks = int(strategy[0]["size"])
    fitted = len(strategy) > 1 and strategy[1]["kind"] == "matrix"
    if scale <= 0 or not (fitted or len(strategy) == 1) or blocks < 3:
        return estimate(strategy, answers, workload)
    measured = block_estimate(strategy, answers, scale)
    values = 1 if fitted else len(np.unique(measured.z))
    if values > ALIKE or (fitted and sum(workload.shape) * blocks > WORK):
        return estimate(strategy, answers, workload)
    least = 1 if fitted else max(1, len(labels) // min(BOXES, ALIKE // values))
    boxes = boxes_of(measured, labels, workload.shape, least)
    gram = on_buckets(workload, labels)
    if fitted:
        return gram.spread(strategies.project(shrunk_counts(measured, labels, boxes), gram))
    scales = scale / np.sqrt(measured.own)
    counts = posterior_means(measured.z, scales, gram.sizes, _owners(labels, boxes), is_gaussian(answers[0]))
    return gram.spread(_towards_sum(counts, measured.z, scales, gram.sizes))


def _towards_sum(counts: Floats, noisy: Floats, scales: Floats, sizes: Floats) -> Floats:
    """Expected counts, (b,), moved so that their sum is nearer to that of the noisy ones, as far as noise does not
    explain what it is more or less."""
    gap = float(noisy.sum() - counts.sum())
    gap *= max(0.0, 1 - 2 * float((scales**2).sum()) / max(gap**2, 1e-300))
    return with_sum(counts, sizes, float(counts.sum()) + gap) if gap else counts


def block_estimate(strategy: Strategy, answers: list[Floats], scale: float) -> BlockEstimate:
    """Estimates the counts of the blocks from the answers to a `bucket_strategy`."""
    weight = np.broadcast_to(np.asarray(strategy[0]["weight"], dtype=np.float64), (strategy[0]["size"],))
    matrix = np.asarray(strategy[1]["matrix"]) if len(strategy) > 1 else np.zeros((0, len(weight)))
    z = strategies.reconstruct(strategy, answers) if len(matrix) else answers[0] / weight
    return BlockEstimate(np.asarray(z), weight**2, matrix, float(scale))


def boxes_of(measured: BlockEstimate, labels: Ints, shape: tuple[int, ...], least: int = 1) -> Ints:
    """A box, 0 … j − 1, for every cell (flat): the leaves of a kd-tree whose every cut is more than noise.

    Of the cuts whose squared gap is above 1 + 2·ln(cuts) times its variance the one is taken that saves most of the
    squares about the mean density. A cut may go through a block, whose count is then shared by cells. Boxes of at most
    `least` cells are not cut.
    """
    sizes = np.bincount(labels).astype(np.float64)
    density, block = (measured.z / sizes)[labels].reshape(shape), labels.reshape(shape)
    one, sums = 1 / (sizes**2 * measured.own), measured.half / (sizes * measured.own)
    by_cells = len(sizes) == len(labels) and not len(sums) and one.min() == one.max()

    def cut(box: grids.Box) -> tuple[int, int]:
        here = block[box]
        if here.size <= least or (not by_cells and (here == here.flat[0]).all()):
            return 0, 0
        bar = 2 * measured.scale**2 * (1 + 2 * np.log(sum(side - 1 for side in here.shape)))

        def noise(axis: int, share: Floats) -> Floats:
            alone = one[0] * here.size * share * (1 - share)
            return np.asarray(bar * (alone if by_cells else _variances(np.moveaxis(here, axis, 0), share, one, sums)))

        gain, axis, before = grids.best_cut(grids.sums_along(density[box]), noise)
        return (axis, before) if gain > 0 else (0, 0)

    return grids.leaves(shape, cut)


def shrunk_counts(measured: BlockEstimate, labels: Ints, boxes: Ints) -> Floats:
    """The blocks' counts, (b,), given that those in one box of `boxes` have like densities; the posterior mean.

    Within a box the counts are n·ρ plus a normal of variance n·τ², n being cells, ρ unknown, and τ² what the squared
    differences are more than their noise. A block belongs to the box that has most of it.
    """
    own = _owners(labels, boxes)
    n = np.bincount(labels).astype(np.float64)
    cells, many = np.bincount(own, weights=n), np.bincount(own)
    variance = measured.diagonal()
    gap = measured.z - n * (np.bincount(own, weights=measured.z) / cells)[own]
    noise = np.bincount(own, weights=variance * (1 - n / cells[own]) / n)
    tau = np.maximum(np.bincount(own, weights=gap**2 / n) - noise, 0.0) / np.maximum(many - 1, 1)
    prior = np.where(many[own] > 1, 1 / np.maximum(tau[own] * n, 1e-4 * variance), 0.0)

    precision = 1 / (2 * measured.scale**2)
    base = measured.own * precision + prior
    pull = prior * n / base
    room = np.bincount(own, weights=prior * n**2 * (1 - prior / base))

    def without_sums(v: Floats) -> Floats:
        """(diag(base) − Σ_boxes u uᵀ/uᵀn)⁻¹ v with u = prior·n, by Sherman and Morrison box by box; v is (k, b)."""
        shared = np.stack([np.bincount(own, weights=row * pull, minlength=len(many)) for row in v])
        return np.asarray(v / base + (shared / np.where(room > 0, room, np.inf))[:, own] * pull)

    right = measured.own * precision * measured.z
    if not len(measured.matrix):
        return np.asarray(without_sums(right[None])[0])
    right = right + measured.matrix.T @ (measured.matrix @ measured.z) * precision
    rows = without_sums(np.concatenate([right[None], measured.matrix]))
    plain, sums = rows[0], rows[1:]
    inner = np.eye(len(sums)) / precision + measured.matrix @ sums.T
    return np.asarray(plain - sums.T @ np.linalg.solve(inner, measured.matrix @ plain))


def _variances(block: Ints, share: Floats, one: Floats, sums: Floats) -> Floats:
    """For each cut across the first axis the variance, in units of the noise, of what is before it less its `share`.

    A cut that has k of a block's c cells before it weighs the block by k − share·c. Σ k² grows by 2k + 1 with a cell,
    and all the rest is linear, so that cells are gone through once.
    """
    line, side = block.ravel(), len(block)
    place, many = _places_in_groups(line)
    squares, crossed = (np.cumsum((n * one[line]).reshape(side, -1).sum(axis=1)) for n in (2 * place + 1, many))
    own = squares[:-1] - 2 * share * crossed[:-1] + share**2 * crossed[-1]
    slabs = np.cumsum(sums[:, line].reshape(len(sums), side, len(line) // side).sum(axis=2), axis=1)
    less = ((slabs[:, :-1] - share * slabs[:, -1:]) ** 2).sum(axis=0)
    return np.asarray(np.maximum(own - less, 1e-12 * own))


def _places_in_groups(names: Ints) -> tuple[Ints, Ints]:
    """For each element how many of its name stand before it, and how many there are in all."""
    order = np.argsort(names, kind="stable")
    starts = np.flatnonzero(np.diff(names[order], prepend=-1))
    lengths = np.diff(starts, append=len(names))
    place, many = np.empty((2, len(names)), dtype=np.int64)
    place[order] = np.arange(len(names)) - np.repeat(starts, lengths)
    many[order] = np.repeat(lengths, lengths)
    return place, many


def _owners(labels: Ints, boxes: Ints) -> Ints:
    """The box, renumbered 0 … j − 1, that has most cells of each block."""
    many = int(boxes.max()) + 1
    pairs, cells = np.unique(labels * many + boxes, return_counts=True)
    pairs = pairs[np.argsort(cells, kind="stable")]
    own = np.empty(int(labels.max()) + 1, dtype=np.int64)
    own[pairs // many] = pairs % many
    return np.asarray(np.unique(own, return_inverse=True)[1], dtype=np.int64)
