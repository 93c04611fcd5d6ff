"""Noisy cells of one cube or several, noisy answers of a public strategy, and private partitions of a cube."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jostle.accounting.amounts import Amount, as_float
from jostle.accounting.definitions import Price, pure_epsilon, pure_price
from jostle.diagnostics import refuse
from jostle.integers import shifted
from jostle.lazy import Floats, Ints, np
from jostle.noise_laws import Gaussian, Laplace
from jostle.privacy.kernel import measurement as meas
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.handles import Cube, need_counts
from jostle.privacy.mechanisms import least_cost
from jostle.privacy.mechanisms.additive import Additive, Linear
from jostle.privacy.mechanisms.least_cost import DECAY, GRID, constants
from jostle.privacy.mechanisms.linear import Block, Strategy, checked
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.reading.vault import Reader
from jostle.privacy.transformations.joins import join_exposures

Answers = tuple[list["Floats"], Laplace | Gaussian | None]
"""One array per block or cube, and the law of the noise, which is None for public data."""


@dataclass(frozen=True, eq=False)
class _Vector(meas.LinearMeasurement[Answers]):
    """A measurement of one vector, the concatenation of all blocks or cubes."""

    cubes: tuple[Cube, ...]
    moved: float
    """The ℓ₁ sensitivity to one row, in units of the released numbers."""
    stability: int

    def measured(self) -> tuple[meas.Measured, ...]:
        return (meas.Measured(self.title, self.linear[0].law, self.how, self.moved, self.stability),)

    def split(self, numbers: Floats, sizes: Sequence[int]) -> tuple[list[Floats], Laplace | Gaussian | None]:
        """The parts of the vector, and the law of the noise."""
        return np.split(numbers, np.cumsum(sizes)[:-1]), self.linear[0].law if self.how else None


@dataclass(frozen=True, eq=False)
class StrategyAnswers(_Vector):
    """The answers of a strategy on a cube (`mechanisms.linear`)."""

    strategy: Strategy

    @classmethod
    def of(cls, cube: Cube, blocks: Sequence[Block], amount: Amount | None, via: str | None) -> StrategyAnswers:
        strategy, how = checked(blocks, cube.shape, cube.bits), None
        l1, l2 = strategy.norms if cube.private else (0, 0.0)
        if cube.private:
            if not l1:
                raise refuse("ValueError", "a strategy that counts no cell measures nothing")
            how = Additive.fitted(meas.needed(amount), via, cube.measures, l1, l2)
        stability, moved = meas.weighted_stability_of(cube), l1 * 2.0**-strategy.bits
        reach = stability << cube.bits
        linear = (Linear.of(how, l1 * reach, l2 * reach, strategy.bits + cube.bits),)
        return cls(cube.exposures, "vector", how, linear, (cube,), moved, stability, strategy, subject=(cube, blocks))

    def read(self, reader: Reader) -> list[Ints]:
        return [np.concatenate(self.strategy.answers(reader.units(self.cubes[0])))]

    def finish(self, released: list[Floats]) -> Answers:
        parts, law = self.split(released[0], self.strategy.sizes)
        return [part * ratio for part, ratio in zip(parts, self.strategy.ratios(), strict=True)], law


@dataclass(frozen=True, eq=False)
class JointCells(_Vector):
    """The cells of several cubes in one measurement, a float array each, in its shape.

    *Argument.* The cubes are one vector. One unit changes cube i by at most its stability sᵢ in ℓ₁ (one cell by one, sᵢ
    times). So it changes the vector by at most Σsᵢ in ℓ₁ and, since cubes are disjoint coordinates, √Σsᵢ² in ℓ₂.
    `join_exposures` charges the common prefix of their paths, on which each of them is exposed.
    """

    @classmethod
    def of(cls, cubes: Sequence[Cube], amount: Amount | None, via: str | None) -> JointCells:
        private = [c for c in cubes if c.private]
        if private and len(private) < len(cubes):
            raise refuse("TypeError", "private and public cubes are not measured together")
        together = Handle(join_exposures([c.exposures for c in cubes], [1] * len(cubes)))
        bits, stability, how = max(c.bits for c in cubes), meas.weighted_stability_of(together), None
        l1, l2 = stability << bits, 0.0
        sides = [
            [e.weighted_stability for c in cubes for e in c.exposures if e.source is one.source]
            for one in together.exposures
        ]
        if private:
            l2 = math.ldexp(max(math.nextafter(math.hypot(*side), math.inf) for side in sides), bits)
            how = Additive.fitted(meas.needed(amount), via, together.measures, l1, l2)
        linear = (Linear.of(how, l1, l2, bits),)
        return cls(together.exposures, "vector", how, linear, tuple(cubes), 1, stability, subject=tuple(cubes))

    def read(self, reader: Reader) -> list[Ints]:
        cells = zip(reader.all_units(self.cubes), self.cubes, strict=True)
        return [np.concatenate([shifted(units, self.linear[0].bits - c.bits).ravel() for units, c in cells])]

    def finish(self, released: list[Floats]) -> Answers:
        parts, law = self.split(released[0], [c.size for c in self.cubes])
        return [part.reshape(c.shape) for part, c in zip(parts, self.cubes, strict=True)], law


# Partitions ----------------------------------------------------------------------------------------


Tuning = Any
"""A number, or a public tree: an order of the cells and their levels."""


@dataclass(frozen=True, eq=False)
class CellPartition(meas.Measurement["Ints", "Ints"]):
    """DAWA's first stage or (`by = "count"`) PrivTree.

    `axis` partitions the sums along one axis, and labels its positions. `tree` is a public tree, an order of the cells
    and their levels (`mechanisms.least_cost`), used instead of the one that halves the axes.
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
            total = meas.needed(amount)
            _check_tuning(tuning)
            need_counts(cube)
            how = Additive(Amount(total.unit, total.value), Laplace)
        subject = facts[:3] if axis is None and tree is None else facts
        partition = cls(cube.exposures, "partition", how, *facts, subject=subject)
        if how is not None:
            constants(partition.epsilon, partition.decay)  # refuses amounts that are too small for integers
        return partition

    @property
    def price(self) -> Price:
        amount = meas.needed(self.how.amount if self.how else None)
        return Price(amount, amount.value) if amount.unit == "rho" else pure_price(amount)

    @property
    def epsilon(self) -> float:
        """The ε of the walk for one changed row; for ρ the largest ε whose ε-DP mechanisms cost at most ρ."""
        if self.how is None:
            return 0.0
        value = as_float(self.how.amount.value)
        return (pure_epsilon(value) if self.how.amount.unit == "rho" else value) / meas.stability_of(self.cube)

    @property
    def decay(self) -> float:
        return float(self.tuning.get("decay", DECAY))

    def read(self, reader: Reader) -> Ints:
        return reader.cells(self.cube)

    def release(self, exact: Ints, noise: Noise | None) -> meas.Release[Ints]:
        if noise is None or self.how is None:
            return meas.Release(np.arange(self.cube.size if self.axis is None else self.cube.shape[self.axis]))

        def draw(scale: float, size: int) -> Ints:
            return np.asarray(noise.laplace(np.zeros(size, dtype=np.int64), scale))

        if self.tree is not None:
            labels = least_cost.walk_tree(exact, self.epsilon, draw, *self.tree)
        else:
            counts = exact if self.axis is None else least_cost.along(exact, self.axis)
            labels = least_cost.walk(counts, self.epsilon, draw, by=self.by, **self.tuning)
        law = Laplace(constants(self.epsilon, self.decay).scale * GRID)
        return meas.Release(labels, (meas.Measured("partition", law, self.how, 1, meas.stability_of(self.cube)),))


def cost_partition(cube: Cube, amount: Amount | None, **tuning: Tuning) -> CellPartition:
    """The walk of DAWA: blocks are split while they are uneven."""
    return CellPartition.of(cube, amount, **tuning)


def count_partition(cube: Cube, amount: Amount | None, **tuning: Tuning) -> CellPartition:
    """The walk of PrivTree: blocks are split while they hold many rows."""
    return CellPartition.of(cube, amount, by="count", **tuning)


def _check_tuning(tuning: Mapping[str, Any]) -> None:
    """Refuses levels that are not integers, since decisions of the walk must not involve rounded doubles."""
    splits, theta, decay = (tuning.get(name) for name in ("public_splits", "theta", "decay"))
    if set(tuning) - {"public_splits", "theta", "decay"}:
        raise refuse("TypeError", "a partition is tuned by `theta`, `public_splits` and `decay`")
    if splits is not None and not (float(splits).is_integer() and 0 <= splits <= 64):
        raise refuse("ValueError", "`public_splits` is a whole number from 0 to 64")
    if theta is not None and not -1e3 <= theta <= 1e3:
        raise refuse("ValueError", "`theta` is between -1000 and 1000")
    if decay is not None and not 0.1 <= decay <= 10:
        raise refuse("ValueError", "`decay` is between 0.1 and 10")
