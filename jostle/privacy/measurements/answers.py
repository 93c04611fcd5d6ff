"""Noisy cells and noisy answers: the vector of a cube, or of several, under a public strategy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostle.accounting.amounts import Amount
from jostle.accounting.definitions import ChargePurpose
from jostle.diagnostics import refuse
from jostle.integers import shifted
from jostle.noise_laws import Gaussian, Laplace
from jostle.privacy.kernel.exposures import Exposures, Handle, join_exposures
from jostle.privacy.kernel.handles import Cube
from jostle.privacy.kernel.measurement import Measured, Measurement, Release, needed, weighted_stability_of
from jostle.privacy.mechanisms.additive import Additive
from jostle.privacy.mechanisms.linear import Block, Strategy, checked
from jostle.privacy.mechanisms.noise import Noise

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.privacy.reading.reader import Reader

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

Answers = tuple[list["Floats"], Laplace | Gaussian | None]
"""An array a block or a cube, and the law of the noise; none of public data."""


@dataclass(frozen=True, eq=False)
class StrategyAnswers(Measurement["list[Ints]", Answers]):
    """The answers of a strategy on a cube (`mechanisms.linear`)."""

    cube: Cube
    blocks: Sequence[Block]
    strategy: Strategy
    how: Additive | None
    title = "vector"

    @classmethod
    def of(cls, cube: Cube, blocks: Sequence[Block], amount: Amount | None, via: str | None) -> StrategyAnswers:
        strategy = checked(blocks, cube.shape, cube.bits)
        if not cube.private:
            return cls(cube, blocks, strategy, None)
        l1, l2 = strategy.norms
        if not l1:
            raise refuse("ValueError", "a strategy that counts no cell measures nothing")
        return cls(cube, blocks, strategy, Additive.fitted(needed(amount), via, cube.measures, l1, l2))

    @property
    def exposures(self) -> Exposures:
        return self.cube.exposures

    @property
    def purpose(self) -> ChargePurpose:
        return ChargePurpose(self.how.mechanism if self.how else "", (self.cube, self.blocks))

    def read(self, reader: Reader) -> list[Ints]:
        return self.strategy.answers(reader.units(self.cube))

    def release(self, exact: list[Ints], noise: Noise | None) -> Release[Answers]:
        import numpy as np

        strategy, bits, law = self.strategy, self.strategy.bits + self.cube.bits, None
        measured: tuple[Measured, ...] = ()
        if noise is not None and self.how is not None:
            l1, l2 = strategy.norms
            stability = weighted_stability_of(self.cube)
            reach = stability << self.cube.bits
            ends = np.cumsum([len(a) for a in exact])[:-1]
            exact = np.split(self.how.draw(noise, np.concatenate(exact), l1 * reach, l2 * reach), ends)
            law = self.how.law(l1 * reach, l2 * reach).times(2.0**-bits)
            measured = (Measured("vector", law, self.how, l1 * 2.0**-strategy.bits, stability),)
        pairs = zip(exact, strategy.ratios(), strict=True)
        return Release(([np.ldexp(part.astype(float), -bits) * ratio for part, ratio in pairs], law), measured)


@dataclass(frozen=True, eq=False)
class JointCells(Measurement["list[Ints]", Answers]):
    """The cells of several cubes in one measurement, a float array each, in its shape.

    *Argument.* The cubes are one vector. A row moves cube i by at most sᵢ in the ℓ₁ norm, sᵢ its stability (one cell
    by one, sᵢ times), so the vector by Σsᵢ in ℓ₁ and, since the cubes are different coordinates, by √Σsᵢ² in ℓ₂; and
    `join_exposures` charges the common prefix of their paths, on which each of them is exposed.
    """

    cubes: tuple[Cube, ...]
    together: Handle
    bits: int
    l1: int
    l2: float
    how: Additive | None
    title = "vector"

    @classmethod
    def of(cls, cubes: Sequence[Cube], amount: Amount | None, via: str | None) -> JointCells:
        private = [c for c in cubes if c.private]
        if private and len(private) < len(cubes):
            raise refuse("TypeError", "private and public cubes are not measured together")
        together = Handle(join_exposures([c.exposures for c in cubes], [1] * len(cubes)))
        bits = max(c.bits for c in cubes)
        if not private:
            return cls(tuple(cubes), together, bits, 0, 0.0, None)
        l1 = weighted_stability_of(together) << bits
        sides = [
            [e.weighted_stability for c in cubes for e in c.exposures if e.source is one.source]
            for one in together.exposures
        ]
        l2 = math.ldexp(max(math.nextafter(math.hypot(*side), math.inf) for side in sides), bits)
        how = Additive.fitted(needed(amount), via, together.measures, l1, l2)
        return cls(tuple(cubes), together, bits, l1, l2, how)

    @property
    def exposures(self) -> Exposures:
        return self.together.exposures

    @property
    def purpose(self) -> ChargePurpose:
        return ChargePurpose(self.how.mechanism if self.how else "", self.cubes)

    def read(self, reader: Reader) -> list[Ints]:
        return reader.all_units(self.cubes)

    def release(self, exact: list[Ints], noise: Noise | None) -> Release[Answers]:
        import numpy as np

        units, law = [shifted(e, self.bits - c.bits) for e, c in zip(exact, self.cubes, strict=True)], None
        measured: tuple[Measured, ...] = ()
        if noise is not None and self.how is not None:
            drawn = self.how.draw(noise, np.concatenate([e.ravel() for e in units]), self.l1, self.l2)
            law = self.how.law(self.l1, self.l2).times(2.0**-self.bits)
            measured = (Measured("vector", law, self.how, 1, weighted_stability_of(self.together)),)
            whole = np.ldexp(drawn.astype(float), -self.bits)
            parts = np.split(whole, np.cumsum([e.size for e in units])[:-1])
        else:
            parts = [np.ldexp(part.astype(float), -self.bits) for part in units]
        return Release(([p.reshape(c.shape) for p, c in zip(parts, self.cubes, strict=True)], law), measured)
