"""Arrays that carry the law of their noise, so that their standard error can be computed.

What a measurement returns is an array like any other, which also carries its `noise`. The estimate that is made of it
and the answers computed from that carry theirs; anything else that is done with such an array gives one that carries
nothing, since what was known of its error would no longer hold. All of it is public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.formulas import Formula, Vector
from jostle.kernels.arrays import Floats, Strategy
from jostle.kernels.workloads.boxes import Workload
from jostle.noise_laws import Gaussian, Laplace

MOST_FOLLOWED = 2**14
"""The most elements of a vector whose calculations are followed."""


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """The law of the noise on every answer of a strategy; with a strategy and shape, of the estimate by it."""

    law: Laplace | Gaussian
    strategy: Strategy | None = None
    shape: tuple[int, ...] = ()
    epsilon: float = 0.0
    """The amount that was spent on it, in the unit of its budget; 0 where there was none."""
    workload: Workload | None = None
    cut: tuple[str, ...] = ()
    """What its errors do not cover (`formulas.Noised`)."""


class NoisyArray(np.ndarray[Any, np.dtype[np.float64]]):
    """An array with `noise`, which views, slices and results of arithmetic do not inherit."""

    jostle_vector = True
    noise: NoiseModel | None
    origin: Formula | None
    """What a program calculated it from, where it is no estimate."""
    _cut: tuple[str, ...]

    def __array_finalize__(self, other: object) -> None:
        self._rows: dict[int, Floats] = {}
        self.noise = None
        self.origin = None
        self._cut = ()

    @property
    def cut(self) -> tuple[str, ...]:
        """What the errors of its elements do not cover (`formulas.Noised`)."""
        return self._cut if self.noise is None else self.noise.cut


def with_noise(values: Floats, noise: NoiseModel) -> Floats:
    """The values, and where they come from."""
    array = np.asarray(values, dtype=np.float64).view(NoisyArray)
    array.noise = noise
    return array


def with_origin(values: Floats, origin: Formula, cut: tuple[str, ...] = ()) -> Floats:
    """The values, and what they were calculated from."""
    array = np.asarray(values, dtype=np.float64).view(NoisyArray)
    array.origin, array._cut = origin, cut
    return array


def origin_of(value: object) -> Formula | None:
    """What the elements of a vector come from; None where their noise is not known, or not independent."""
    if not isinstance(value, NoisyArray) or value.ndim != 1 or value.size > MOST_FOLLOWED:
        return None
    if value.origin is None and value.noise is not None and is_direct(value.noise, value.size):
        value.origin = Vector(np.asarray(value), value.noise.law)
    return value.origin


def row_of(value: Floats, place: int) -> Floats:
    """A row of a matrix; of noisy cells always the same one, which knows its noise, so that what is calculated of its
    elements is followed."""
    noise, at = noise_of(value), place % len(value)
    if noise is None or not isinstance(value, NoisyArray) or not is_direct(noise, value.size):
        row: Floats = value[place]
        return row
    if at not in value._rows:
        value._rows[at] = with_noise(value[at], NoiseModel(noise.law, epsilon=noise.epsilon, cut=noise.cut))
    return value._rows[at]


def is_direct(noise: NoiseModel, size: int) -> bool:
    """Whether every element was measured by itself, with noise of the law itself."""
    if noise.strategy is None:
        return noise.workload is None
    first = noise.strategy[0]
    alone = len(noise.strategy) == 1 and first["kind"] == "groups" and noise.workload is None
    return alone and first["size"] == size and np.ndim(first["weight"]) == 0 and float(first["weight"]) == 1.0


def noise_of(value: object) -> NoiseModel | None:
    return getattr(value, "noise", None) if isinstance(value, NoisyArray) else None


def is_gaussian(value: object) -> bool:
    return isinstance(law_of(value), Gaussian)


def log_likelihood(away: Floats, gaussian: bool) -> Floats:
    """Up to a constant, of noise of so many scales of Laplace noise; Gaussian noise is as wide as that."""
    return np.asarray(-(away**2) / 4 if gaussian else -np.abs(away))


def law_of(value: object) -> Laplace | Gaussian:
    """The law of the noise of an array; of one that carries none, noise of scale 0."""
    noise = noise_of(value)
    return Laplace(0.0) if noise is None else noise.law


def common_noise(answers: Sequence[object]) -> NoiseModel | None:
    """The noise that all blocks of answers were measured under; None where they differ or it is not known."""
    noises = [noise_of(a) for a in answers]
    first = noises[0] if noises else None
    if first is None or any(n is None or n.law != first.law for n in noises):
        return None
    return first
