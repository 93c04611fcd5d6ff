"""Types of the arrays that kernels work on, and helpers for the axes of a cube and the groups of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Strategy = list[dict[str, Any]]
"""Linear queries to measure, as plain data: a list of blocks, each with its `kind` and what that kind needs."""


def axes_of(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    """The lengths of a cube's axes; a single number is a line of so many cells."""
    return (int(shape),) if isinstance(shape, int | np.integer) else tuple(int(side) for side in shape)


def along(values: Any, axis: int, axes: int) -> Any:
    """A vector as an array of `axes` dimensions that varies along one of them."""
    return values.reshape([-1 if a == axis else 1 for a in range(axes)])


def labels_of(places: Sequence[Ints]) -> Ints:
    """The group of every flat cell of a cube, in C order of the groups along its axes.

    `places[a]` says in which group, 0 … g − 1, each place of axis a lies.
    """
    label: Any = np.zeros((1,) * len(places), dtype=np.int64)
    for axis, place in enumerate(places):
        label = label * (int(place.max()) + 1) + along(place, axis, len(places))
    return np.ascontiguousarray(label).ravel()


def groups(labels: Ints, weight: object) -> dict[str, Any]:
    """The block of a strategy that measures each group of `labels`, 0 … g − 1, once."""
    labels = np.asarray(labels, dtype=np.int64).ravel()
    return {"kind": "groups", "labels": labels, "size": int(labels.max()) + 1, "weight": weight}
