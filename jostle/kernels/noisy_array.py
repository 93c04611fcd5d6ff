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

from jostle.kernels.arrays import Floats, Strategy
from jostle.kernels.workloads.boxes import Workload


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """Laplace's b or Gaussian's σ on every answer of a strategy; with a strategy and shape, of the estimate by it."""

    mechanism: str
    scale: float
    strategy: Strategy | None = None
    shape: tuple[int, ...] = ()
    epsilon: float = 0.0
    """The amount that was spent on it, in the unit of its mechanism; 0 where there was none."""
    workload: Workload | None = None

    @property
    def deviation(self) -> float:
        """The standard deviation of one answer of the strategy."""
        return self.scale * (2**0.5 if self.mechanism == "laplace" else 1.0)


class NoisyArray(np.ndarray[Any, np.dtype[np.float64]]):
    """An array with `noise`, which views, slices and results of arithmetic do not inherit."""

    jostle_vector = True
    noise: NoiseModel | None

    def __array_finalize__(self, other: object) -> None:
        self.noise = None


def with_noise(values: Floats, noise: NoiseModel) -> Floats:
    """The values, and where they come from."""
    array = np.asarray(values, dtype=np.float64).view(NoisyArray)
    array.noise = noise
    return array


def noise_of(value: object) -> NoiseModel | None:
    return getattr(value, "noise", None) if isinstance(value, NoisyArray) else None


def common_noise(answers: Sequence[object]) -> NoiseModel | None:
    """The noise that all blocks of answers were measured under; None where they differ or it is not known."""
    noises = [noise_of(a) for a in answers]
    first = noises[0] if noises else None
    if first is None or any(n is None or (n.mechanism, n.scale) != (first.mechanism, first.scale) for n in noises):
        return None
    return first
