"""Noisy cells and noisy answers: the vector of a cube, or of several, under a public strategy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jostle.accounting.amounts import Amount
from jostle.diagnostics import refuse
from jostle.integers import shifted
from jostle.lazy import Floats, Ints, np
from jostle.noise_laws import Gaussian, Laplace
from jostle.privacy.kernel.exposures import Handle, join_exposures
from jostle.privacy.kernel.handles import Cube
from jostle.privacy.kernel.measurement import LinearMeasurement, Measured, needed, weighted_stability_of
from jostle.privacy.mechanisms.additive import Additive, Linear
from jostle.privacy.mechanisms.linear import Block, Strategy, checked
from jostle.privacy.reading.vault import Reader

Answers = tuple[list["Floats"], Laplace | Gaussian | None]
"""An array a block or a cube, and the law of the noise; none of public data."""


@dataclass(frozen=True, eq=False)
class _Vector(LinearMeasurement[Answers]):
    """One vector, of all blocks or of all cubes one after the other."""

    cubes: tuple[Cube, ...]
    moved: float
    """How far a row moves it in ℓ₁, in units of what is released."""
    stability: int

    def measured(self) -> tuple[Measured, ...]:
        return (Measured(self.title, self.linear[0].law, self.how, self.moved, self.stability),)

    def split(self, numbers: Floats, sizes: Sequence[int]) -> tuple[list[Floats], Laplace | Gaussian | None]:
        """Its parts, and the law of the noise."""
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
            how = Additive.fitted(needed(amount), via, cube.measures, l1, l2)
        stability, moved = weighted_stability_of(cube), l1 * 2.0**-strategy.bits
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

    *Argument.* The cubes are one vector. A row moves cube i by at most sᵢ in the ℓ₁ norm, sᵢ its stability (one cell
    by one, sᵢ times), so the vector by Σsᵢ in ℓ₁ and, since the cubes are different coordinates, by √Σsᵢ² in ℓ₂; and
    `join_exposures` charges the common prefix of their paths, on which each of them is exposed.
    """

    @classmethod
    def of(cls, cubes: Sequence[Cube], amount: Amount | None, via: str | None) -> JointCells:
        private = [c for c in cubes if c.private]
        if private and len(private) < len(cubes):
            raise refuse("TypeError", "private and public cubes are not measured together")
        together = Handle(join_exposures([c.exposures for c in cubes], [1] * len(cubes)))
        bits, stability, how = max(c.bits for c in cubes), weighted_stability_of(together), None
        l1, l2 = stability << bits, 0.0
        sides = [
            [e.weighted_stability for c in cubes for e in c.exposures if e.source is one.source]
            for one in together.exposures
        ]
        if private:
            l2 = math.ldexp(max(math.nextafter(math.hypot(*side), math.inf) for side in sides), bits)
            how = Additive.fitted(needed(amount), via, together.measures, l1, l2)
        linear = (Linear.of(how, l1, l2, bits),)
        return cls(together.exposures, "vector", how, linear, tuple(cubes), 1, stability, subject=tuple(cubes))

    def read(self, reader: Reader) -> list[Ints]:
        cells = zip(reader.all_units(self.cubes), self.cubes, strict=True)
        return [np.concatenate([shifted(units, self.linear[0].bits - c.bits).ravel() for units, c in cells])]

    def finish(self, released: list[Floats]) -> Answers:
        parts, law = self.split(released[0], [c.size for c in self.cubes])
        return [part.reshape(c.shape) for part, c in zip(parts, self.cubes, strict=True)], law
