"""Lines cut into segments: the public side of PHP and StructureFirst, which measure the segments that they find.

Ács, Castelluccia and Chen, *Differentially private histogram publishing through lossy compression*, ICDM 2012; Xu,
Zhang, Xiao, Yang, Yu and Winslett, *Differentially private histogram publication*, ICDE 2012. The cuts are selected by
the trusted core; here are the candidates, and labels for what was chosen. Places count blocks of `grain` cells.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats, Ints, axes_of, groups


def grain_for(shape: int | tuple[int, ...], most: int) -> int:
    """The least number of cells a block along every axis has, so that there are at most `most` blocks."""
    axes = axes_of(shape)
    grain = 1
    while np.prod([-(-side // grain) for side in axes], dtype=float) > most:
        grain *= 2
    return grain


def cut_places(shape: int | tuple[int, ...], starts: Floats, grain: int, most: int = 64) -> list[Ints]:
    """The places where each segment may be cut: its own start (no cut), and at most `most` − 1 evenly spaced ones."""
    edges = [*np.asarray(starts, dtype=np.int64), _blocks(shape, grain)]
    return [
        low + np.unique(np.arange(min(high - low, most)) * (high - low) // min(high - low, most))
        for low, high in pairwise(edges)
    ]


def cut(starts: Floats, places: list[Ints], selection: Floats) -> Ints:
    """The starts of the segments after each was cut at the chosen one of its places."""
    cuts = [some[int(at)] for some, at in zip(places, np.atleast_1d(selection), strict=True)]
    return np.union1d(np.asarray(starts, dtype=np.int64), np.array(cuts, dtype=np.int64))


def segment_labels(shape: int | tuple[int, ...], starts: Floats, grain: int) -> Ints:
    """The segment, 0 … s − 1, of every cell."""
    cells = shape if isinstance(shape, int) else int(np.prod(shape))
    firsts = np.asarray(starts, dtype=np.int64) * grain
    return np.asarray(np.searchsorted(firsts, np.arange(cells), side="right") - 1, dtype=np.int64)


def two_levels(labels: Ints) -> list[dict[str, Any]]:
    """Each group of `labels`, 0 … s − 1, and each cell, by halves of what there is."""
    labels = np.asarray(labels, dtype=np.int64).ravel()
    cells = np.arange(len(labels), dtype=np.int64)
    return [groups(at, 0.5) for at in (labels, cells)]


def _blocks(shape: int | tuple[int, ...], grain: int) -> Any:
    cells = shape if isinstance(shape, int) else int(np.prod(shape))
    return -(-cells // grain)
