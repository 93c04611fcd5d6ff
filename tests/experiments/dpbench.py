"""DPBench's data and protocol (Hay et al., SIGMOD 2016): shapes, scales, coarser domains, its error.

A data set gives a shape p = x/Σx; an instance of scale m is m draws from it. The public vectors are read from the
shared folder beside the repository, which is not part of it.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "dpbench"
SIX = ("ADULT", "HEPTH", "INCOME", "MEDCOST", "NETTRACE", "MDSALARY")
"""The one-dimensional sets that results are reported on; the anchor numbers in the design are over these."""
SHAPES = {1: (1024,), 2: (64, 64)}


def names(dimension: int) -> tuple[str, ...]:
    """All data sets of one or two dimensions."""
    return tuple(sorted(path.stem for path in (DATA / f"{dimension}d").glob("*.npy")))


@lru_cache(maxsize=64)
def coarse(name: str, dimension: int, shape: tuple[int, ...] | None = None) -> NDArray[np.int64]:
    """A data set summed to 1024 cells or 64×64 rectangles, at the size it has."""
    x = np.load(DATA / f"{dimension}d" / f"{name}.npy").astype(np.int64)
    for axis, cells in enumerate(shape or SHAPES[dimension]):
        x = x.reshape(*x.shape[:axis], cells, -1, *x.shape[axis + 1 :]).sum(axis=axis + 1)
    return x


def geometric_mean(values: object) -> float:
    return float(np.exp(np.mean(np.log(np.asarray(values, dtype=float)))))
