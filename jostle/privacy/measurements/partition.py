"""A private partition of a cube: the walk of `mechanisms.least_cost`, a label a cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jostle.accounting.amounts import Amount, as_float
from jostle.accounting.definitions import Price, pure_epsilon, pure_price
from jostle.diagnostics import refuse
from jostle.lazy import Ints, np
from jostle.noise_laws import Laplace
from jostle.privacy.kernel.handles import Cube, need_counts
from jostle.privacy.kernel.measurement import Measured, Measurement, Release, needed, stability_of
from jostle.privacy.mechanisms import least_cost
from jostle.privacy.mechanisms.additive import Additive
from jostle.privacy.mechanisms.least_cost import DECAY, GRID, constants
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.reading.vault import Reader

Tuning = Any
"""A number, or a public tree: an order of the cells and their levels."""


@dataclass(frozen=True, eq=False)
class CellPartition(Measurement["Ints", "Ints"]):
    """DAWA's first stage or (`by = "count"`) PrivTree.

    `axis` walks over the sums along one axis, whose places then get the labels; `tree` walks down a public tree, an
    order of the cells and their levels (`mechanisms.along_axes`), in place of the one that halves the axes.
    """

    cube: Cube
    by: str
    tuning: Mapping[str, Any]
    axis: int | None
    tree: tuple[Any, Any] | None

    @classmethod
    def of(cls, cube: Cube, amount: Amount | None, by: str = "deviation", **tuning: Any) -> CellPartition:
        axis, public = tuning.pop("along", None), tuning.pop("tree", None)
        if axis is not None and not (isinstance(axis, int) and 0 <= axis < len(cube.shape)):
            raise refuse("ValueError", f"`along` is an axis of the cube, from 0 to {len(cube.shape) - 1}")
        if public is not None and (tuning or axis is not None or by != "deviation" or len(public) != 2):
            raise refuse("TypeError", "`tree` is an order and levels, for a partition that is not tuned otherwise")
        tree = None if public is None else least_cost.public_tree(public[0], public[1], cube.size)
        how, facts = None, (cube, by, tuning, axis, tree)
        if cube.private:
            total = needed(amount)
            _check_tuning(tuning)
            need_counts(cube)
            how = Additive(Amount(total.unit, total.value), Laplace)
        subject = facts[:3] if axis is None and tree is None else facts
        partition = cls(cube.exposures, "partition", how, *facts, subject=subject)
        if how is not None:
            constants(partition.epsilon, partition.decay)  # refuses what is too small for whole numbers
        return partition

    @property
    def price(self) -> Price:
        amount = needed(self.how.amount if self.how else None)
        return Price(amount, amount.value) if amount.unit == "rho" else pure_price(amount)

    @property
    def epsilon(self) -> float:
        """Of the walk, for one changed row; in ρ, the ε of which every ε-DP mechanism costs at most that."""
        if self.how is None:
            return 0.0
        value = as_float(self.how.amount.value)
        return (pure_epsilon(value) if self.how.amount.unit == "rho" else value) / stability_of(self.cube)

    @property
    def decay(self) -> float:
        return float(self.tuning.get("decay", DECAY))

    def read(self, reader: Reader) -> Ints:
        return reader.cells(self.cube)

    def release(self, exact: Ints, noise: Noise | None) -> Release[Ints]:
        if noise is None or self.how is None:
            return Release(np.arange(self.cube.size if self.axis is None else self.cube.shape[self.axis]))

        def draw(scale: float, size: int) -> Ints:
            return np.asarray(noise.laplace(np.zeros(size, dtype=np.int64), scale))

        if self.tree is not None:
            labels = least_cost.walk_tree(exact, self.epsilon, draw, *self.tree)
        else:
            counts = exact if self.axis is None else least_cost.along(exact, self.axis)
            labels = least_cost.walk(counts, self.epsilon, draw, by=self.by, **self.tuning)
        law = Laplace(constants(self.epsilon, self.decay).scale * GRID)
        return Release(labels, (Measured("partition", law, self.how, 1, stability_of(self.cube)),))


def cost_partition(cube: Cube, amount: Amount | None, **tuning: Tuning) -> CellPartition:
    """The walk of DAWA: blocks are split while they are uneven."""
    return CellPartition.of(cube, amount, **tuning)


def count_partition(cube: Cube, amount: Amount | None, **tuning: Tuning) -> CellPartition:
    """The walk of PrivTree: blocks are split while they hold many rows."""
    return CellPartition.of(cube, amount, by="count", **tuning)


def _check_tuning(tuning: Mapping[str, Any]) -> None:
    """The walk counts levels in whole numbers: a half one would bring doubles, which round, into its decisions."""
    splits, theta, decay = (tuning.get(name) for name in ("public_splits", "theta", "decay"))
    if set(tuning) - {"public_splits", "theta", "decay"}:
        raise refuse("TypeError", "a partition is tuned by `theta`, `public_splits` and `decay`")
    if splits is not None and not (float(splits).is_integer() and 0 <= splits <= 64):
        raise refuse("ValueError", "`public_splits` is a whole number from 0 to 64")
    if theta is not None and not -1e3 <= theta <= 1e3:
        raise refuse("ValueError", "`theta` is between -1000 and 1000")
    if decay is not None and not 0.1 <= decay <= 10:
        raise refuse("ValueError", "`decay` is between 0.1 and 10")
