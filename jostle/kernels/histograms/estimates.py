"""Estimates from released cells and answers: averages, projections, and multiplicative weights.

Those are the estimate of greatest entropy that agrees with noisy answers: Hardt, Ligett and McSherry, *A simple and
practical algorithm for differentially private data release*, NIPS 2012. The private steps (choosing a query, measuring
it, measuring the total) are the caller's; here is the update, with many passes over the history a round, which is what
makes few rounds suffice. They run over the few regions that the boxes cut out, however many cells there are.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from jostle.kernels.arrays import Floats, Ints, Strategy, labels_of
from jostle.kernels.histograms import strategies
from jostle.kernels.histograms.grams import on_cells
from jostle.kernels.linear_algebra import on_one_thread
from jostle.kernels.noisy_array import noise_of, with_noise
from jostle.kernels.workloads.boxes import Workload
from jostle.kernels.workloads.marginals import predicates


@on_one_thread
def nonnegative(cells: Floats, workload: Workload) -> Floats:
    """The estimate `cells`, projected onto nowhere-negative cells in the workload's metric; of the workload's shape.
    Where the cells remember what noise they have, so does the result: its error is reported as before."""
    noise = noise_of(cells)
    z = strategies.project(np.asarray(cells, dtype=np.float64).ravel(), on_cells(workload))
    return z.reshape(workload.shape) if noise is None else with_noise(z.reshape(workload.shape), noise)


def pooled(strategy: Strategy, answers: list[Floats], scale: float, cells: Floats, cell_scale: float) -> list[Floats]:
    """The counts of a strategy's groups, measured under noise of `scale`, averaged with sums of noisy cells. Each is
    weighted by its precision: a sum of k cells has k times the variance of one."""
    labels = np.asarray(strategy[0]["labels"])
    sizes = np.bincount(labels, minlength=strategy[0]["size"])
    sums = np.bincount(labels, weights=np.asarray(cells).ravel(), minlength=strategy[0]["size"])
    if scale <= 0 or cell_scale <= 0:
        return [np.asarray(answers[0])]
    own, theirs = 1 / scale**2, 1 / (sizes * cell_scale**2)
    return [np.asarray((own * np.asarray(answers[0]) + theirs * sums) / (own + theirs))]


def mwem_start(shape: int | tuple[int, ...], cells: Floats, total: float, evenly: float) -> Floats:
    """A start of multiplicative weights: `cells` scaled to the given total, mixed with the uniform distribution. A cell
    of 0 would stay 0 whatever is measured later, hence the mixture; `evenly` is its share."""
    total = max(float(total), 1.0)
    cells = np.maximum(np.asarray(cells, dtype=np.float64).reshape(shape), 0.0)
    even = np.full(cells.shape, 1 / cells.size)
    shape_of = cells / cells.sum() if cells.sum() > 0 else even
    return np.asarray(total * ((1 - evenly) * shape_of + evenly * even))


def uniform_estimate(shape: int | tuple[int, ...], total: float) -> Floats:
    """`total` spread evenly; the start of the rounds. A total below 1 counts as 1."""
    return np.full(shape, max(float(total), 1.0) / float(np.prod(shape)))


def mwem_update(estimate: Floats, lows: Ints, highs: Ints, answers: Floats, total: float, passes: int = 100) -> Floats:
    """`estimate` after `passes` passes over a history of measured boxes, of the same shape and the same total.

    `lows`, `highs`: (t, d) integers, both ends included ((t,) in one dimension); `answers`: (t,), noisy. A pass takes
    the boxes in turn and multiplies the cells inside by exp((answer − current answer)/(2·total)). `total` is a
    noisy or a public number of rows; below 1 it counts as 1.
    """
    estimate = np.asarray(estimate, dtype=np.float64)
    lows, highs = (np.asarray(bound, dtype=np.int64).reshape(-1, estimate.ndim) for bound in (lows, highs))
    return _updated(estimate, *_regions(estimate.shape, lows, highs), answers, total, passes)


def mwem_learn(
    estimate: Floats, queries: Workload, query_numbers: Floats, answers: Floats, total: float, passes: int = 100
) -> Floats:
    """`mwem_update` by the numbers `asked`, (t,), of the queries of a workload, which may be any sets of cells."""
    places = [int(at) for at in np.atleast_1d(query_numbers)]
    if queries.boxes:
        lows, highs = (np.stack(bound) for bound in zip(*(queries.box(at) for at in places), strict=True))
        return mwem_update(estimate, lows, highs, answers, total, passes)
    some = predicates(queries.shape, [queries.member(at) for at in places])
    return _updated(np.asarray(estimate, dtype=np.float64), some.labels, some.inside, answers, total, passes)


def _updated(
    estimate: Floats, region: Ints, inside: NDArray[np.bool_], answers: Floats, total: float, passes: int
) -> Floats:
    """`region` gives every flat cell its region, `inside`, (t, regions), what each query holds."""
    total = max(float(total), 1.0)
    start: Floats = np.bincount(region, weights=estimate.ravel(), minlength=inside.shape[1]).astype(np.float64)
    start = start * (total / start.sum())
    mass = start.copy()
    indicators = inside.astype(np.float64)
    targets = [float(answer) for answer in answers]
    whole = total  # what `mass` adds up to; it is scaled back to `total` where it strays, and once a pass
    for _ in range(passes):
        for row, where, target in zip(indicators, inside, targets, strict=True):
            part = float(row.dot(mass))
            gap = target - part * (total / whole)
            factor = math.exp(min(max(gap / (2 * total), -50.0), 50.0))
            np.multiply(mass, factor, out=mass, where=where)
            whole += (factor - 1) * part
            if not total / 2 < whole < total * 2:
                mass, whole = mass * (total / float(mass.sum())), total
        mass, whole = mass * (total / float(mass.sum())), total
    factors = np.divide(mass, start, out=np.zeros_like(mass), where=start > 0)
    updated = estimate.ravel() * factors[region]
    return np.asarray((updated * (total / updated.sum())).reshape(estimate.shape))


def _regions(shape: tuple[int, ...], lows: Ints, highs: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """The region of each flat cell, and for every box (a row) whether it holds each region, (t, regions)."""
    places: list[Ints] = []
    middles: list[Ints] = []
    for axis, cells in enumerate(shape):
        cuts = np.unique(np.concatenate([[0], lows[:, axis], highs[:, axis] + 1]))
        cuts = cuts[cuts < cells]
        places.append(np.searchsorted(cuts, np.arange(cells), side="right") - 1)
        middles.append(cuts)
    inside = np.ones((len(lows), 1), dtype=bool)
    for axis, cuts in enumerate(middles):
        within = (lows[:, axis, None] <= cuts) & (cuts <= highs[:, axis, None])
        inside = (inside[:, :, None] & within[:, None, :]).reshape(len(lows), -1)
    return labels_of(places), inside
