"""Noisy linear measurements of a cube under a public strategy: `laplace(cube, strategy)`.

A strategy is public data, a list of blocks; each maps the cells x to answers:

* `groups`: `labels` (the group of every flattened cell, −1 for none) and `weight` (one number, or one per group);
  answers[g] = weight[g] · Σ_{labels = g} x;
* `matrix`: `labels` map cells to b buckets; answers = matrix · (bucket counts);
* `boxes`: `lows`, `highs` (m × d, inclusive) and `weight`; weighted sums over boxes;
* `signed`: `axes`, with `labels` and `signs` (±1) for the positions of each dimension and a `size`, and `weight`. The
  sums are like those of `groups`, with one group for each product of the axes' groups and the product of the signs as
  a factor. No array has the size of the cube, so that all wavelets of a million cells are one short list.

*Argument.* Weights are rounded to a grid of 2^-bits, and everything after that is exact integer arithmetic. So a row
in cell c changes the answers by exactly the c-th column of an integer matrix. The largest ℓ₁ (ℓ₂) norm of a column,
computed here and not taken from the strategy, times the stability is the sensitivity. Counts are first clamped to
2^31, which is 1-Lipschitz, and the grid is coarse enough that no sum reaches 2^62. The strategy is not trusted: a wrong
one costs accuracy only. Cells that are sums of weights change by at most the changed weight in ℓ₁, possibly spread over
several cells. Norms are convex, so the largest column bounds this too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.lazy import Array, Ints, np

MOST_COUNT = 2**31 - 1
MOST_GROUPS = 2**26
"""The largest number of groups in a block, equal to the cells of the largest cube; it bounds memory."""
KEPT = 2**12
"""The largest number of cells for which the strategy of every cell is cached."""
Block = Mapping[str, Any]


class Strategy:
    """A checked strategy over cells of `shape`, with integer weights in units of 2^-bits.

    If cells are sums of weights, in units of 2^-`cell_bits`, answers are in units of 2^-(bits + cell_bits).
    """

    def __init__(self, blocks: Sequence[Block], shape: tuple[int, ...], cell_bits: int = 0) -> None:
        if not blocks:
            raise refuse("ValueError", "an empty strategy measures nothing")
        self.shape, self.cells = shape, int(np.prod(shape))
        try:
            weights = [_largest_weight(block) for block in blocks]
        except (KeyError, TypeError, ValueError):
            raise refuse("ValueError", "a strategy has a block that cannot be read") from None
        # Each weight is tested alone: `max` ignores a NaN, which would become −2^63 on the grid.
        if not all(math.isfinite(w) for w in weights) or not 2.0**-500 < max(weights) < 2.0**500:
            raise refuse("ValueError", "a strategy needs finite weights that are not all zero")
        most = max(weights)
        # whole · 2^31 · cells < 2^62; a grid finer than 2^-30 of the largest weight has no use
        whole = all(b["kind"] != "matrix" and bool(np.all(np.asarray(b.get("weight", 1.0)) == 1.0)) for b in blocks)
        fine = max(0, min(20 if cell_bits else 30, 30 - math.ceil(math.log2(self.cells))))
        self.bits = 0 if whole else fine - math.frexp(most)[1]
        self._most_cell = MOST_COUNT << cell_bits
        self._most_weight = math.ldexp(most, self.bits) + 1
        self._small = cell_bits == 0
        try:
            self.blocks = [self._integers(block) for block in blocks]
        except (KeyError, TypeError, ValueError, OverflowError):
            raise refuse("ValueError", "a strategy has a block that cannot be read") from None

    def _integers(self, block: Block) -> dict[str, Any]:
        kind = block["kind"]
        scale = 2.0**self.bits
        if kind == "boxes":
            lows, highs = (_integers(block[k]).reshape(-1, len(self.shape)) for k in ("lows", "highs"))
            if lows.shape != highs.shape or (lows < 0).any() or (highs >= np.array(self.shape)).any():
                raise refuse("ValueError", "a box of the strategy lies outside the cube")
            if (lows > highs).any():
                raise refuse("ValueError", "a box of the strategy is empty")
            return {"kind": kind, "lows": lows, "highs": highs, **_rounded(float(block.get("weight", 1.0)) * scale)}
        if kind == "signed":
            axes = [_axis(axis, side) for axis, side in zip(block["axes"], self.shape, strict=True)]
            _check_size(math.prod(size for _, _, size in axes))
            return {"kind": kind, "axes": axes, **_rounded(float(block.get("weight", 1.0)) * scale)}
        labels = _integers(block["labels"]).ravel()
        if labels.shape != (self.cells,):
            raise refuse("ValueError", f"a strategy for {labels.size} cells cannot measure a cube of {self.cells}")
        if kind == "groups":
            size = int(block["size"])
            _check_labels(labels, size)
            weight = np.broadcast_to(np.asarray(block.get("weight", 1.0), float), (size,)) * scale
            return {"kind": kind, "labels": labels, "size": size, **_rounded(weight)}
        if kind == "matrix":
            matrix = fixed_width(np.rint(np.asarray(block["matrix"], dtype=float) * scale))
            if matrix.ndim != 2:
                raise refuse("ValueError", "the matrix of a strategy has two dimensions")
            _check_labels(labels, matrix.shape[1])
            return {"kind": kind, "labels": labels, "matrix": matrix, "ratio": 1.0}
        raise refuse("ValueError", f"unknown kind of block `{kind}` in a strategy")

    def ratios(self) -> list[Any]:
        """For each block the requested weights divided by the rounded ones.

        Released answers are multiplied by it, so that the grid, coarse for a million cells, does not bias them.
        """
        return [block["ratio"] for block in self.blocks]

    @property
    def sizes(self) -> list[int]:
        """The number of answers of each block."""
        return [
            math.prod(size for _, _, size in block["axes"]) if block["kind"] == "signed"
            else block["size"] if block["kind"] == "groups"
            else len(block["lows"] if block["kind"] == "boxes" else block["matrix"])
            for block in self.blocks
        ]  # fmt: skip

    @cached_property
    def norms(self) -> tuple[int, float]:
        """The largest ℓ₁ norm and the largest ℓ₂ norm of a column, in units of 2^-bits."""
        l1, l2 = np.zeros(self.cells, dtype=np.int64), np.zeros(self.cells)
        for block in self.blocks:
            if block["kind"] == "boxes":
                cover = _coverage(block, self.shape).ravel()
                l1 += cover * abs(block["weight"])
                l2 += cover * float(block["weight"]) ** 2
                continue
            if block["kind"] == "signed":
                real: Any = True
                for axis, (labels, _, _) in enumerate(block["axes"]):
                    if (labels < 0).any():
                        real = real & (labels >= 0).reshape([-1 if a == axis else 1 for a in range(len(self.shape))])
                l1.reshape(self.shape)[...] += abs(block["weight"]) * real
                l2.reshape(self.shape)[...] += float(block["weight"]) ** 2 * real
                continue
            labels, weights = block["labels"], block.get("weight")
            if weights is None:
                a = np.abs(block["matrix"])
                by_bucket, squared = a.sum(axis=0), (a.astype(float) ** 2).sum(axis=0)
            else:
                by_bucket, squared = np.abs(weights), weights.astype(float) ** 2
            covered = labels >= 0
            l1[covered] += by_bucket[labels[covered]]
            l2[covered] += squared[labels[covered]]
        # ℓ₂ is computed in doubles; a relative 2^-40 covers its rounding
        return int(l1.max()), math.sqrt(float(l2.max())) * (1 + 2**-40)

    def answers(self, counts: Ints) -> list[Ints]:
        """The exact answers of every block to cells `counts`, in units of 2^-bits."""
        cells = np.minimum(counts, self._most_cell)
        # sums of weights may exceed 64 bits before they are clamped: Python integers then
        kind = np.int64 if self._small or cells.sum(dtype=float) * self._most_weight < 2.0**61 else object
        cells = cells.astype(kind, copy=False)
        flat = cells.ravel()
        out = []
        for block in self.blocks:
            if block["kind"] == "boxes":
                out.append(block["weight"] * box_sums(cells, block["lows"], block["highs"]))
                continue
            if block["kind"] == "signed":
                out.append(block["weight"] * _signed_sums(cells, block["axes"]))
                continue
            size = block["size"] if block["kind"] == "groups" else block["matrix"].shape[1]
            covered = block["labels"] >= 0
            sums = np.zeros(size, dtype=kind)
            np.add.at(sums, block["labels"][covered], flat[covered])
            out.append(block["weight"] * sums if block["kind"] == "groups" else self._product(block["matrix"], sums))
        return out

    def _product(self, matrix: Ints, sums: Array) -> Array:
        """An exact integer product; buckets are clamped as cells are."""
        product: Array = matrix @ np.minimum(sums, self._most_cell)
        return product


def every_cell(size: int) -> list[Block]:
    """The strategy that measures each of `size` cells."""
    return _every_cell(size) if size <= KEPT else _every_cell.__wrapped__(size)


def checked(blocks: Sequence[Block], shape: tuple[int, ...], cell_bits: int = 0) -> Strategy:
    """`blocks` as a strategy. The read-only `every_cell` of few cells is checked once."""
    size = math.prod(shape)
    alone = size <= KEPT and blocks is _every_cell(size)
    return _every_cell_checked(shape, cell_bits) if alone else Strategy(blocks, shape, cell_bits)


@lru_cache(maxsize=2**7)
def _every_cell(size: int) -> list[Block]:
    labels = np.arange(size)
    labels.setflags(write=False)
    return [{"kind": "groups", "labels": labels, "size": size, "weight": 1.0}]


@lru_cache(maxsize=2**7)
def _every_cell_checked(shape: tuple[int, ...], cell_bits: int) -> Strategy:
    return Strategy(_every_cell(math.prod(shape)), shape, cell_bits)


def _rounded(weight: Any) -> dict[str, Any]:
    """Integer weights, where only 0 becomes 0, and the ratio of the given weights to them."""
    near = fixed_width(np.where(np.abs(weight) < 0.5, np.sign(weight), np.rint(weight)))
    ratio = np.divide(weight, near, out=np.ones(np.shape(weight)), where=near != 0)
    return {"weight": near if near.ndim else int(near), "ratio": ratio}


def _integers(values: Any) -> Ints:
    """The integers of a strategy; refused if one is NaN or infinite."""
    array = np.asarray(values)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise refuse("ValueError", "a strategy has a number without a value")
    return fixed_width(array)


def _axis(axis: Mapping[str, Any], side: int) -> tuple[Ints, Ints, int]:
    """The labels, signs and number of groups of one axis of a `signed` block, checked."""
    labels = _integers(axis["labels"]).ravel()
    signs = _integers(axis["signs"]).ravel()
    if labels.shape != (side,) or signs.shape != (side,):
        raise refuse("ValueError", f"a strategy for {labels.size} positions cannot measure an axis of {side}")
    if not (np.abs(signs) == 1).all():
        raise refuse("ValueError", "the signs of a strategy are 1 and -1")
    _check_labels(labels, int(axis["size"]))
    return labels, signs, int(axis["size"])


def _signed_sums(cells: Ints, axes: list[Any]) -> Ints:
    """Sums of cells times the product of their signs, one axis after another; flat, in the order of the groups."""
    for axis, (labels, signs, size) in enumerate(axes):
        lines = np.moveaxis(cells, axis, 0)
        covered = labels >= 0
        sums = np.zeros((size, *lines.shape[1:]), dtype=cells.dtype)
        inner = math.prod(lines.shape[1:])
        at = labels[covered][:, None] * inner + np.arange(inner)
        signed = lines[covered] * signs[covered].reshape(-1, *[1] * (lines.ndim - 1))
        np.add.at(sums.reshape(-1), at.ravel(), signed.ravel())
        cells = np.moveaxis(sums, 0, axis)
    return cells.ravel()


def _largest_weight(block: Block) -> float:
    weights = np.abs(np.asarray(block["matrix"] if block.get("kind") == "matrix" else block.get("weight", 1.0), float))
    return float(weights.max(initial=0.0))


def _check_labels(labels: Ints, size: int) -> None:
    _check_size(size)
    if labels.size and (int(labels.max()) >= size or int(labels.min()) < -1):
        raise refuse("ValueError", "a strategy labels a cell with a group that it does not have")


def _check_size(groups: int) -> None:
    if not 0 <= groups <= MOST_GROUPS:
        raise refuse("ValueError", f"a block of a strategy has at most {MOST_GROUPS:,} groups")


def _coverage(block: dict[str, Any], shape: tuple[int, ...]) -> Ints:
    """The number of boxes that contain each cell, by a difference array."""
    marks = np.zeros(tuple(s + 1 for s in shape), dtype=np.int64)
    lows, ends = block["lows"], block["highs"] + 1
    for corner in np.ndindex(*(2,) * len(shape)):
        at = tuple(np.where(c, ends[:, i], lows[:, i]) for i, c in enumerate(corner))
        np.add.at(marks, at, (-1) ** sum(corner))
    for axis in range(len(shape)):
        marks = np.cumsum(marks, axis=axis)
    return marks[tuple(slice(0, s) for s in shape)]


def box_sums(cells: Array, lows: Ints, highs: Ints) -> Array:
    """Sums over boxes by prefix sums, with the dtype of `cells`: exact for integers."""
    prefix = cells
    for axis in range(cells.ndim):
        prefix = np.cumsum(prefix, axis=axis)
    padded = np.zeros([side + 1 for side in cells.shape], dtype=cells.dtype)
    padded[(slice(1, None),) * cells.ndim] = prefix
    total = np.zeros(len(lows), dtype=cells.dtype)
    for corner in np.ndindex(*(2,) * cells.ndim):
        at = tuple(np.where(c, lows[:, i], highs[:, i] + 1) for i, c in enumerate(corner))
        total += (-1) ** sum(corner) * padded[at]
    return total
