"""Arrays that carry the law of their noise, so that their standard error can be computed.

What a measurement returns is an array like any other, which also carries its `noise`. The estimate that is made of it
and the answers computed from that carry theirs; anything else that is done with such an array gives one that carries
nothing, since what was known of its error would no longer hold. All of it is public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.kernels.arrays import Floats, Strategy
from jostle.kernels.errors import KernelError
from jostle.kernels.workloads.boxes import Workload, identity


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


def estimate_with_noise(cells: Floats, strategy: Strategy, answers: Sequence[object], workload: Workload) -> Floats:
    """The cells as least squares over a strategy; carrying nothing where the strategy's buckets hide cells."""
    from jostle.kernels.accuracy import lossless

    noise = common_noise(answers)
    if noise is None or not lossless(strategy, workload):
        return cells
    return with_noise(cells, replace(noise, strategy=strategy, shape=tuple(workload.shape)))


def answers_with_noise(queries: Workload, cells: Floats) -> Floats:
    """The answers of a workload on estimated cells; carrying nothing where queries cut through buckets."""
    from jostle.kernels.accuracy import lossless

    noise = noise_of(cells)
    values = queries.answers(np.asarray(cells, dtype=np.float64))
    if noise is None or noise.strategy is None or noise.shape != tuple(queries.shape):
        return values
    if not lossless(noise.strategy, queries):
        return values
    return with_noise(values, replace(noise, workload=queries))


def standard_errors(value: Floats) -> NDArray[np.float64]:
    """The standard error of every element, of the array's shape, before cells are made nowhere negative.

    A `ValueError` where the array carries no noise, or its queries cut through buckets.
    """
    from jostle.kernels.accuracy import variances

    noise = noise_of(value)
    if noise is None:
        raise KernelError("nothing is known of how these numbers were measured")
    if noise.strategy is None:
        return np.full(np.shape(value), noise.deviation)
    queries = noise.workload if noise.workload is not None else identity(noise.shape)
    return noise.deviation * np.sqrt(variances(noise.strategy, queries)).reshape(np.shape(value))
