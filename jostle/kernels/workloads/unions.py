"""Several workloads as one, each with the weight that an error in its answers has.

The answers are those of the parts, one after another and unchanged; the weights enter the Gram matrix alone,
Σ wᵢ² WᵢᵀWᵢ, and so what strategies are fitted to and estimates projected by: an error of 1 in a part of weight 2
counts as much as one of 2 in a part of weight 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats, Ints
from jostle.kernels.errors import KernelError
from jostle.kernels.workloads.boxes import Workload
from jostle.kernels.workloads.marginals import Marginals, Spectrum


@dataclass(frozen=True, eq=False)
class Union(Workload):
    """`parts`, none of them a union, and a positive weight for each."""

    parts: tuple[Workload, ...] = field(default=())
    weights: tuple[float, ...] = field(default=())

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    @property
    def boxes(self) -> bool:
        return all(part.boxes for part in self.parts)

    @property
    def mean_length(self) -> float:
        return sum(part.mean_length * part.size for part in self.parts) / self.size

    def bounds(self) -> tuple[Ints, Ints]:
        lows, highs = zip(*(part.bounds() for part in self.parts), strict=True)
        return np.concatenate(lows), np.concatenate(highs)

    def box(self, at: int) -> tuple[Ints, Ints]:
        part, inner = self._part(at)
        return part.box(inner)

    def member(self, at: int) -> Ints:
        part, inner = self._part(at)
        return part.member(inner)

    def _part(self, at: int) -> tuple[Workload, int]:
        """The part that a query stands in, and its number there."""
        for part in self.parts:
            if at < part.size:
                return part, at
            at -= part.size
        raise IndexError("a union has no such query")

    def answers(self, x: Floats) -> Floats:
        return np.concatenate([part.answers(x) for part in self.parts])

    def adjoint(self, r: Floats) -> Floats:
        cube, start = np.zeros(self.shape), 0
        for part in self.parts:
            cube += part.adjoint(r[start : start + part.size])
            start += part.size
        return cube

    def gram_diagonal(self) -> Floats:
        return np.asarray(sum(w**2 * part.gram_diagonal() for part, w in zip(self.parts, self.weights, strict=True)))

    def _gram(self, n: int) -> Floats:
        return np.asarray(sum(w**2 * part.gram() for part, w in zip(self.parts, self.weights, strict=True)))

    def importance(self) -> Floats:
        return np.repeat(self.weights, [part.size for part in self.parts])

    def sums(self) -> list[dict[str, Any]]:
        return [block for part in self.parts for block in part.sums()]


def union(parts: Sequence[Workload], weights: Sequence[float] | None = None) -> Union:
    """The union of workloads over one shape; weights are positive numbers, 1 each where they are left out.

    Unions among the parts are opened, their weights multiplied. A `ValueError` where shapes or weights do not fit.
    """
    if not len(parts) or any(part.shape != parts[0].shape for part in parts):
        raise KernelError("a union is of workloads over cubes of one shape")
    factors = [1.0] * len(parts) if weights is None else [float(w) for w in weights]
    if len(factors) != len(parts) or not all(np.isfinite(w) and w > 0 for w in factors):
        raise KernelError("a union takes one positive weight for each of its workloads")
    flat: list[tuple[Workload, float]] = []
    for part, weight in zip(parts, factors, strict=True):
        if isinstance(part, Union):
            flat += [(one, w * weight) for one, w in zip(part.parts, part.weights, strict=True)]
        else:
            flat.append((part, weight))
    return Union("union", parts[0].shape, parts=tuple(p for p, _ in flat), weights=tuple(w for _, w in flat))


def spectrum(workload: Workload) -> Spectrum | None:
    """The spectrum of marginals and of unions of them (`Marginals.spectrum`); None for any other workload."""
    if isinstance(workload, Marginals):
        return workload.spectrum()
    if not isinstance(workload, Union) or not all(isinstance(part, Marginals) for part in workload.parts):
        return None
    total: Spectrum = {}
    for part, weight in zip(workload.parts, workload.weights, strict=True):
        for axes, value in (spectrum(part) or {}).items():
            total[axes] = total.get(axes, 0.0) + weight**2 * value
    return total
