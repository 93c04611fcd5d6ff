"""Several linear answers about one table in one measurement: counts and sums in groups by public keys.

A *block* is a term (a count, or a bounded sum) in all groups by some axes, each at one of its levels, or the residuals
of these groups: b times a group less the sum of its b siblings, along every axis.

Rows that match none of a key's values have a cell of their own, so a row is in at most one group of a block. It changes
the term there by at most Δ, in ℓ₁ and ℓ₂, and residuals, in units of their noise, by Δ·√Π(1 − 1/b) in ℓ₂. With shares
sᵢ, Σsᵢ ≤ 1, all blocks are one measurement of the whole amount (docs/privacy/joint.md). Groups are clamped first, which
increases no distance and prevents overflow. The strategy is not trusted: a wrong one gives wrong answers at the same
price.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from msgspec import Struct

from jostle.accounting.amounts import Amount
from jostle.diagnostics import refuse
from jostle.integers import LIMIT, fixed_width
from jostle.lazy import Floats, Ints, np
from jostle.noise_laws import Gaussian
from jostle.plan.plan import Count, Key, Term
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.measurement import LinearMeasurement, Measured, stability_of
from jostle.privacy.measurements.aggregates.aggregate import grid_of, sensitivity_of
from jostle.privacy.mechanisms.additive import Additive, Linear
from jostle.privacy.reading.vault import Reader

MOST_CELLS = 2**25
"""The largest number of cells of the axes of one block."""
MOST_SPREAD = 2**40
"""The largest Δ·Π2b of residuals. Cells of up to 2^22 times Δ are not clamped."""


@dataclass(frozen=True)
class KeyAxis:
    """A key, or several keys that follow from it. Its cells are its values and, unless `complete`, a last one for all
    other rows. `levels` has for each level, from coarse to fine, the group of every cell, numbered from 0.
    """

    key: Key
    complete: bool
    levels: tuple[tuple[int, ...], ...]

    @property
    def cells(self) -> int:
        return len(self.key.values) + (not self.complete)

    def __post_init__(self) -> None:
        above = (0,) * self.cells
        for labels in self.levels:
            if len(labels) != self.cells or len(set(zip(labels, above, strict=True))) != len(set(labels)):
                raise refuse("ValueError", "the levels of a key do not divide one another")
            if set(labels) != set(range(max(labels) + 1)):
                raise refuse("ValueError", "the groups of a level are not numbered from 0")
            above = labels

    @cached_property
    def families(self) -> list[tuple[Ints, Ints]]:
        """For each level the parent of every group, and the number of its siblings including itself."""
        result, above = [], np.zeros(self.cells, dtype=np.int64)
        for level in self.levels:
            labels = np.asarray(level)
            parent = np.zeros(int(labels.max()) + 1, dtype=np.int64)
            parent[labels] = above
            result.append((parent, np.bincount(parent)[parent]))
            above = labels
        return result


class Block(Struct, frozen=True):
    """A term by axes at levels from 1, measured with a `share` of the amount."""

    term: Term
    levels: tuple[tuple[int, int], ...]
    residual: bool
    share: float


@dataclass(frozen=True, eq=False)
class JointBlocks(LinearMeasurement["list[Floats]"]):
    """An array for each block, in the shape of its groups and in the units of its term."""

    table: Table
    axes: tuple[KeyAxis, ...]
    blocks: tuple[Block, ...]

    @classmethod
    def of(
        cls, table: Table, axes: Sequence[KeyAxis], blocks: Sequence[Block], amount: Amount, via: str | None
    ) -> JointBlocks:
        apart = [block for block in blocks if isinstance(block.term, Count) and block.term.distinct]
        if table.weighted or apart or not blocks or not all(block.share > 0 for block in blocks):
            raise refuse("ValueError", "a joint measurement is of sums of whole rows, with shares above 0")
        how = Additive.of(amount, via, table.measures)
        for block in blocks:
            if math.prod(axes[axis].cells for axis, _ in block.levels) > MOST_CELLS:
                raise refuse("ValueError", "groups by these keys together are too many to hold")
            spread = _growth(axes, block) * max(1, sensitivity_of(block.term, table))
            if block.residual and (how.kind is not Gaussian or spread > MOST_SPREAD):
                raise refuse("ValueError", "residuals need Gaussian noise, and groups that are not too many")
        shares = math.fsum(one.share for one in blocks) * (1 + 2.0**-40)
        linear = tuple(cls.vector(table, axes, block, how, block.share / shares) for block in blocks)
        subject = (table, tuple(axes), tuple(blocks))
        return cls(table.exposures, "joint answers", how, linear, *subject, subject=subject)

    @staticmethod
    def vector(table: Table, axes: Sequence[KeyAxis], block: Block, how: Additive, share: float) -> Linear:
        """The linear measurement of a block, whose numbers are divided by their widths (Πb for a residual)."""
        reach, factor = sensitivity_of(block.term, table) * stability_of(table), 1.0 + 2.0**-40
        if block.residual:
            factor *= math.sqrt(math.prod(float((1 - 1 / b).max()) for _, b in _families(axes, block)))
        return Linear.of(how, reach, reach * factor, grid_of(block.term)).part(share)

    def read(self, reader: Reader) -> list[Ints]:
        tallies: dict[tuple[Term, tuple[int, ...]], Ints] = {}

        def grouped(term: Term, axes: tuple[int, ...]) -> Ints:
            """The term in all groups of these keys, without rows that match no value."""
            if (term, axes) not in tallies:
                (numbers,) = reader.answers.group(self.table.plan, tuple(self.axes[axis].key for axis in axes), (term,))
                shape = [len(self.axes[axis].key.values) for axis in axes]
                tallies[term, axes] = np.asarray(numbers).reshape(shape)
            return tallies[term, axes]

        def cells(term: Term, ready: tuple[int, ...], axes: tuple[int, ...]) -> Ints:
            """The same with a last cell for all other rows along each of `axes`."""
            if not axes:
                return grouped(term, ready)
            inside = cells(term, (*ready, axes[0]), axes[1:])
            if self.axes[axes[0]].complete:
                return inside
            others = cells(term, ready, axes[1:]) - inside.sum(axis=len(ready))
            return np.concatenate([inside, np.expand_dims(others, len(ready))], axis=len(ready))

        return [
            self._exact(block, cells(block.term, (), tuple(axis for axis, _ in block.levels))) for block in self.blocks
        ]

    def _exact(self, block: Block, cells: Ints) -> Ints:
        """A block's numbers from the cells of its axes."""
        values = cells
        for dimension, (axis, level) in enumerate(block.levels):
            values = _summed(values, np.asarray(self.axes[axis].levels[level - 1]), dimension)
        values = fixed_width(values, LIMIT // _growth(self.axes, block) if block.residual else LIMIT)
        if block.residual:
            for dimension, (parent, siblings) in enumerate(_families(self.axes, block)):
                sums = _summed(values, parent, dimension).take(parent, axis=dimension)
                values = values * _along(siblings, dimension, values.ndim) - sums
        return values

    @property
    def shapes(self) -> list[list[int]]:
        """The shape of each block's answers."""
        return [[len(parent) for parent, _ in _families(self.axes, block)] for block in self.blocks]

    def widths(self) -> list[Ints]:
        """The factors of each block's numbers, in its shape."""
        widths = [np.ones(shape, dtype=np.int64) for shape in self.shapes]
        for at, block in enumerate(self.blocks):
            for dimension, (_, siblings) in enumerate(_families(self.axes, block) if block.residual else ()):
                widths[at] = widths[at] * _along(siblings, dimension, len(block.levels))
        return widths

    def measured(self) -> tuple[Measured, ...]:
        least = min((linear.law.scale for linear in self.linear if linear.scale), default=0.0)
        return (Measured(self.title, self.how.kind(least), self.how, 1.0, stability_of(self.table)),)

    def finish(self, released: list[Floats]) -> list[Floats]:
        return [numbers / factors for numbers, factors in zip(released, self.widths(), strict=True)]


def _families(axes: Sequence[KeyAxis], block: Block) -> list[tuple[Ints, Ints]]:
    """`KeyAxis.families` of a block's groups along each of its axes."""
    return [axes[axis].families[level - 1] for axis, level in block.levels]


def _growth(axes: Sequence[KeyAxis], block: Block) -> int:
    """Π2b, the largest factor by which residuals exceed the cells."""
    return math.prod(2 * int(siblings.max()) for _, siblings in _families(axes, block))


def _summed(values: Ints, labels: Ints, dimension: int) -> Ints:
    """Sums of the entries with the same label along a dimension, with their dtype."""
    lines = np.moveaxis(values, dimension, 0)
    sums = np.zeros((int(labels.max()) + 1, *lines.shape[1:]), dtype=lines.dtype)
    np.add.at(sums, labels, lines)
    return np.moveaxis(sums, 0, dimension)


def _along(values: Ints, dimension: int, dimensions: int) -> Ints:
    return values.reshape([-1 if at == dimension else 1 for at in range(dimensions)])
