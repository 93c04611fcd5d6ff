"""Post-processes released cells and counts: projects them onto z ≥ 0, averages them, starts multiplicative weights.

Post-processing of public numbers, shared by the options of the standard library; nothing here sees counts.
"""

from __future__ import annotations

import numpy as np

from jostle.kernels.arrays import Floats, Strategy
from jostle.kernels.histograms import projection
from jostle.kernels.histograms.grams import on_cells
from jostle.kernels.noisy_array import noise_of, with_noise
from jostle.kernels.workloads.boxes import Workload
from jostle.threads import on_one_thread


@on_one_thread
def nonnegative(cells: Floats, workload: Workload) -> Floats:
    """The estimate `cells`, projected onto nowhere-negative cells in the workload's metric; of the workload's shape.

    Where the cells remember what noise they have, so does the result: its error is told as it was before.
    """
    noise = noise_of(cells)
    z = projection.project(np.asarray(cells, dtype=np.float64).ravel(), on_cells(workload))
    return z.reshape(workload.shape) if noise is None else with_noise(z.reshape(workload.shape), noise)


def pooled(strategy: Strategy, answers: list[Floats], scale: float, cells: Floats, cell_scale: float) -> list[Floats]:
    """The counts of a strategy's groups, measured under noise of `scale`, averaged with sums of noisy cells.

    Each is weighted by its precision: a sum of k cells has k times the variance of one.
    """
    labels = np.asarray(strategy[0]["labels"])
    sizes = np.bincount(labels, minlength=strategy[0]["size"])
    sums = np.bincount(labels, weights=np.asarray(cells).ravel(), minlength=strategy[0]["size"])
    if scale <= 0 or cell_scale <= 0:
        return [np.asarray(answers[0])]
    own, theirs = 1 / scale**2, 1 / (sizes * cell_scale**2)
    return [np.asarray((own * np.asarray(answers[0]) + theirs * sums) / (own + theirs))]


def mwem_start(shape: int | tuple[int, ...], cells: Floats, total: float, evenly: float) -> Floats:
    """A start of multiplicative weights: `cells` scaled to the given total, mixed with the uniform distribution.

    A cell of 0 would stay 0 whatever is measured later, hence the mixture; `evenly` is its share.
    """
    total = max(float(total), 1.0)
    cells = np.maximum(np.asarray(cells, dtype=np.float64).reshape(shape), 0.0)
    even = np.full(cells.shape, 1 / cells.size)
    shape_of = cells / cells.sum() if cells.sum() > 0 else even
    return np.asarray(total * ((1 - evenly) * shape_of + evenly * even))
