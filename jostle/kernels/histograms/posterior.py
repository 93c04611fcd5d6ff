"""Posterior means of counts of which each was measured once, given that those in one box have like densities.

Noise that is large only now and then (Laplace's) and counts that are whole and never negative are far from normal: a
cell that stands out is either a cell of many rows, which is to stay, or one of few with much noise, which is to go. So
within a box counts follow a mixture of negative binomial laws about the box's density, from no dispersion or Poisson's
to cells of which nearly all are empty and a few are full; how much of each kind a box has is learned from the noisy
counts themselves, by expectation and maximisation (empirical Bayes; Robbins, *An empirical Bayes approach to
statistics*, Third Berkeley Symposium, 1956). Post-processing of released numbers.
"""

from __future__ import annotations

import numpy as np

from jostle.kernels.arrays import Floats, Ints

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

_NOISE = np.array([0.15, 0.3, 0.5, 0.75, 1, 1.4, 2, 2.7, 3.5, 4.5, 6, 8, 10, 13, 16])
_AWAY = np.concatenate([-_NOISE[::-1], [0.0], _NOISE])
"""Where a count is looked at, in scales of the noise from what was seen."""

_NEAR = np.array([-4, -3, -2, -1.4, -0.8, -0.3, 0.3, 0.8, 1.4, 2, 3, 4])
"""And in Poisson's deviations from what its box says."""

_FEW = np.array([0.0, 1, 2, 3, 4, 6, 9, 13, 19, 28, 42, 64, 96, 144, 216])
"""And where laws of large dispersion are steep."""


def posterior_means(seen: Floats, scale: Floats, sizes: Floats, boxes: Ints) -> Floats:
    """The expected counts, (b,), of blocks of so many cells, seen under Laplace noise of `scale`, (b,).

    `boxes`, (b,), holds the box, 0 … j − 1, of every block.
    """
    cells = np.bincount(boxes, weights=sizes)
    noise = np.sqrt(2 * np.bincount(boxes, weights=scale**2)) / cells
    density = np.maximum(np.bincount(boxes, weights=seen) / cells, np.maximum(LEAST * noise, 1e-9))
    mean = density[boxes] * sizes
    pieces = [slice(start, start + PIECE) for start in range(0, len(seen), PIECE)]
    found = [_by_kind(seen[some], scale[some], mean[some]) for some in pieces]
    likely, expected = (np.concatenate(part) for part in zip(*found, strict=True))
    likely[np.bincount(boxes)[boxes] < FEWEST, EVEN] = 0
    kinds = likely * _kinds(likely, boxes, len(cells))[boxes]
    return np.asarray((kinds * expected).sum(axis=1) / kinds.sum(axis=1))


def _by_kind(seen: Floats, scale: Floats, mean: Floats) -> tuple[Floats, Floats]:
    """The likelihood, up to a factor a block, and the expected count of every block under each kind, (b, k) each."""
    from scipy.special import gammaln

    counts = np.concatenate([
        seen[:, None] + scale[:, None] * _AWAY, mean[:, None] + np.sqrt(mean)[:, None] * _NEAR,
        np.broadcast_to(_FEW, (len(seen), len(_FEW))),
    ], axis=1)  # fmt: skip
    counts = np.sort(np.maximum(np.rint(counts), 0.0), axis=1)
    between = (counts[:, 1:] + counts[:, :-1]) / 2
    many = np.diff(between, axis=1, prepend=-0.5, append=counts[:, -1:] + 0.5)  # counts that each stands for
    noise = -np.abs(counts - seen[:, None]) / scale[:, None]
    weight = many * np.exp(noise - noise.max(axis=1, keepdims=True))
    factorial, log_mean = gammaln(counts + 1), np.log(mean)[:, None]
    none = weight[:, 0] / many[:, 0]  # the first stands for 0
    even = np.exp(-np.abs(mean - seen) / scale - noise.max(axis=1))
    likely, expected = [none, even], [np.zeros(len(seen)), mean]
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
        expected.append(np.where(total > 0, sums / np.maximum(total, 1e-300), np.maximum(seen, 0)))
    return np.stack(likely, axis=1), np.stack(expected, axis=1)


def _kinds(likely: Floats, boxes: Ints, many: int) -> Floats:
    """The share of every kind in each of so many boxes, (j, k)."""
    whole = np.full(likely.shape[1], 1 / likely.shape[1])
    for _ in range(ROUNDS):
        part = likely * whole
        part /= part.sum(axis=1, keepdims=True)
        whole = (part.sum(axis=0) + 1 / len(whole)) / (len(likely) + 1)
    each = np.tile(whole, (many, 1))
    for _ in range(ROUNDS):
        part = likely * each[boxes]
        part /= part.sum(axis=1, keepdims=True)
        blocks = np.stack([np.bincount(boxes, weights=kind, minlength=many) for kind in part.T], axis=1)
        each = (blocks + KNOWN * whole) / (blocks.sum(axis=1, keepdims=True) + KNOWN)
    return each
