"""Boxes of a cube as the leaves of a kd-tree; a function decides where a box is cut."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jostle.kernels.arrays import Ints

Box = tuple[slice, ...]
Cut = Callable[[Box], tuple[int, int]]
"""Maps a box to the axis of its cut and the number of places before it; 0 places: no cut."""


def leaves(shape: tuple[int, ...], cut: Cut) -> Ints:
    """A box, 0 … b − 1, for every cell (flat)."""
    labels = np.zeros(shape, dtype=np.int64)
    waiting, boxes = [tuple(slice(0, side) for side in shape)], 0
    while waiting:
        box = waiting.pop()
        axis, before = cut(box)
        if before == 0:
            labels[box] = boxes
            boxes += 1
            continue
        middle = box[axis].start + before
        for half in (slice(middle, box[axis].stop), slice(box[axis].start, middle)):
            waiting.append((*box[:axis], half, *box[axis + 1 :]))
    return labels.ravel()
