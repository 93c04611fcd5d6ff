"""Workloads: sets of linear counting queries over a cube of counts, held as boxes and never as dense matrices.

A query is an axis-parallel box of cells and its answer is the sum of the counts inside. A workload is public: it
depends on the shape of a cube and on a seed, never on counts. `answers` works by prefix sums, so that a
million cells are no burden. What a workload is worth on a coarser set of buckets (its
Gram matrix there) is in `grams`. Workloads that are more than a list of boxes have the same face: `marginals`,
`predicates`, `unions`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jostle.kernels import KernelError
from jostle.kernels.arrays import Floats, Ints, axes_of


@dataclass(frozen=True, eq=False)
class Workload:
    """Boxes over a cube of `shape`.

    `lows` and `highs` are (m, d) integer arrays, both ends included; they are `None` for `identity` (every cell)
    and `prefixes` (every box that starts at the origin), which need no bounds. Answers are in C order of cells.
    """

    kind: str
    shape: tuple[int, ...]
    lows: Ints | None = field(default=None, repr=False)
    highs: Ints | None = field(default=None, repr=False)

    @property
    def cells(self) -> int:
        return int(np.prod(self.shape))

    @property
    def size(self) -> int:
        """The number |W| of queries."""
        return self.cells if self.lows is None else len(self.lows)

    @property
    def mean_length(self) -> float:
        """The mean number of cells in a query, from 1 to n; for a range, its mean length."""
        if self.kind == "identity":
            return 1.0
        if self.lows is None or self.highs is None:
            return float(np.prod([(s + 1) / 2 for s in self.shape]))
        return float(np.prod(self.highs - self.lows + 1.0, axis=1).mean())

    @property
    def boxes(self) -> bool:
        """Whether every query is a box, so that there are `bounds`."""
        return True

    def bounds(self) -> tuple[Ints, Ints]:
        """All boxes as (m, d) arrays of lows and highs, made where they are implicit."""
        if self.lows is not None and self.highs is not None:
            return self.lows, self.highs
        highs = np.stack([axis.ravel() for axis in np.indices(self.shape)], axis=1).astype(np.int64)
        return (highs if self.kind == "identity" else np.zeros_like(highs)), highs

    def box(self, at: int) -> tuple[Ints, Ints]:
        """The lowest and the highest cell of one query, (d,) each, both included."""
        if self.lows is not None and self.highs is not None:
            return self.lows[at], self.highs[at]
        high = np.array(np.unravel_index(at, self.shape), dtype=np.int64)
        return (high if self.kind == "identity" else np.zeros_like(high)), high

    def member(self, at: int) -> Ints:
        """1 for every flat cell that one query holds and 0 for the others."""
        low, high = self.box(at)
        inside = np.zeros(self.shape, dtype=np.int64)
        inside[tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))] = 1
        return inside.ravel()

    def answers(self, x: Floats) -> Floats:
        """Wx, shape (m,); `x` has the workload's shape or is its flat form."""
        cube = np.asarray(x, dtype=np.float64).reshape(self.shape)
        if self.kind == "identity":
            return cube.ravel().copy()
        sums = prefix_sums(cube)
        if self.lows is None or self.highs is None:
            return sums.ravel()
        padded = np.pad(sums, [(1, 0)] * len(self.shape)).ravel()
        total = np.zeros(len(self.lows))
        for sign, corner in self._corners():
            total += sign * padded[corner]
        return total

    def sums(self) -> list[dict[str, Any]]:
        """The queries in order, as plain data: `boxes` (lows, highs), `groups` (labels, size), `sets` (labels, inside).

        Of `groups` every group is a query; of `sets` every row of `inside`, (m, r) booleans, over the regions that
        `labels` number.
        """
        lows, highs = self.bounds()
        return [{"kind": "boxes", "lows": lows, "highs": highs}]

    def gram_diagonal(self) -> Floats:
        """How many queries hold each cell, of the workload's shape: the diagonal of WᵀW, in unions by their weights."""
        if self.lows is None or self.highs is None:
            cells = np.ones(self.shape)
            return cells if self.kind == "identity" else suffix_sums(cells)
        wide = tuple(s + 1 for s in self.shape)
        steps = np.zeros(int(np.prod(wide)))
        for sign, corner in self._corners():
            steps += sign * np.bincount(corner, minlength=len(steps))
        return suffix_sums(steps.reshape(wide)[(slice(1, None),) * len(wide)])

    def _corners(self) -> list[tuple[int, Ints]]:
        """Each corner's sign and its flat places, shape (m,), in the prefix sums padded by a leading zero."""
        lows, highs = self.bounds()
        wide = tuple(s + 1 for s in self.shape)
        corners = []
        for choice in np.ndindex(*(2,) * len(wide)):
            place = [highs[:, d] + 1 if up else lows[:, d] for d, up in enumerate(choice)]
            sign = (-1) ** (len(wide) - sum(choice))
            corners.append((sign, np.asarray(np.ravel_multi_index(tuple(place), wide), dtype=np.int64)))
        return corners


def prefix_sums(x: Floats) -> Floats:
    """Sums over all cells that are at or before each cell in every axis."""
    for axis in range(x.ndim):
        x = np.cumsum(x, axis=axis)
    return x


def suffix_sums(x: Floats) -> Floats:
    """Sums over all cells that are at or after each cell in every axis."""
    return np.ascontiguousarray(np.flip(prefix_sums(np.flip(x))))


def identity(shape: int | tuple[int, ...]) -> Workload:
    """One query a cell."""
    return Workload("identity", _shape(shape))


def prefixes(shape: int | tuple[int, ...]) -> Workload:
    """All boxes that start at the origin: the cumulative distribution; in 2-D every lower-left rectangle."""
    return Workload("prefixes", _shape(shape))


def ranges(shape: int | tuple[int, ...], count: int = 2000, seed: int = 0) -> Workload:
    """`count` random boxes; along each axis the length is uniform from 1 to its size, then the place is."""
    return _random("ranges", _shape(shape), count, seed)


def rectangles(shape: int | tuple[int, ...], count: int = 2000, seed: int = 0) -> Workload:
    """`ranges`, by the name it has in two dimensions."""
    return _random("rectangles", _shape(shape), count, seed)


def boxes(shape: int | tuple[int, ...], lows: Ints, highs: Ints) -> Workload:
    """The given boxes, both ends included; (m, d) arrays, or (m,) in one dimension.

    A `ValueError` where a box is empty or leaves the cube.
    """
    shape = _shape(shape)
    lows, highs = (np.asarray(b, dtype=np.int64).reshape(-1, len(shape)) for b in (lows, highs))
    if lows.shape != highs.shape or (lows < 0).any() or (lows > highs).any() or (highs >= np.array(shape)).any():
        raise KernelError("a box of the workload is empty or leaves the cube")
    return Workload("boxes", shape, lows, highs)


def _shape(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    axes = axes_of(shape)
    if not axes or min(axes) < 1:
        raise KernelError("a workload needs at least one axis, each of at least one cell")
    return axes


def _random(kind: str, shape: tuple[int, ...], count: int, seed: int) -> Workload:
    if count < 1:
        raise KernelError("a workload needs at least one query")
    rng = np.random.default_rng(seed)
    lows, highs = np.empty((2, count, len(shape)), dtype=np.int64)
    for axis, cells in enumerate(shape):
        length = rng.integers(1, cells + 1, count)
        lows[:, axis] = rng.integers(0, cells - length + 1)
        highs[:, axis] = lows[:, axis] + length - 1
    return Workload(kind, shape, lows, highs)


def query_strategy(queries: Workload, at: int) -> list[dict[str, object]]:
    """The strategy that measures one query of a workload alone."""
    if queries.boxes:
        low, high = queries.box(int(at))
        return [{"kind": "boxes", "lows": low[None], "highs": high[None], "weight": 1}]
    return [{"kind": "groups", "labels": queries.member(int(at)) - 1, "size": 1, "weight": 1}]
