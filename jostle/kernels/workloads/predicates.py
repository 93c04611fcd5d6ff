"""Workloads of predicates: each query counts the cells for which a condition holds, whatever their place.

Cells that satisfy the same predicates are alike to the workload, so they are kept as one region: `labels` gives every
cell its region and `inside` says which predicates hold there. Answers are products with the regions' sums, and a
strategy on regions loses nothing (the workload-based domain reduction of Zhang, McKenna, Kotsogiannis, Bissias, Hay,
Machanavajjhala and Miklau, *Ektelo: a framework for defining differentially-private computations*, SIGMOD 2018).

Several workloads as one, each with the weight that an error in its answers has.

The answers are those of the parts, one after another and unchanged; the weights enter the Gram matrix alone,
Σ wᵢ² WᵢᵀWᵢ, and so what strategies are fitted to and estimates projected by: an error of 1 in a part of weight 2
counts as much as one of 2 in a part of weight 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.kernels.arrays import Floats, Ints, axes_of
from jostle.kernels.errors import KernelError
from jostle.kernels.workloads.boxes import Workload
from jostle.kernels.workloads.marginals import Marginals, Spectrum

Flags = NDArray[np.bool_]

PRODUCTS = 2**22
"""Products with `inside` are made in pieces of this size."""


@dataclass(frozen=True, eq=False)
class Predicates(Workload):
    """`labels`, (n,), the region 0 … r − 1 of each flat cell; `inside`, (m, r), the predicates that hold there."""

    labels: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False)
    inside: Flags = field(default_factory=lambda: np.zeros((0, 0), dtype=bool), repr=False)

    @property
    def size(self) -> int:
        return len(self.inside)

    @property
    def boxes(self) -> bool:
        return False

    @property
    def regions(self) -> int:
        """The number r of regions."""
        return int(self.inside.shape[1])

    @property
    def mean_length(self) -> float:
        return float(self.over(self._sizes()[:, None]).mean())

    def bounds(self) -> tuple[Ints, Ints]:
        raise KernelError("queries of predicates have no bounds; this takes ranges, rectangles or marginals")

    def box(self, at: int) -> tuple[Ints, Ints]:
        return self.bounds()

    def member(self, at: int) -> Ints:
        return np.asarray(self.inside[at][self.labels], dtype=np.int64)

    def answers(self, x: Floats) -> Floats:
        return self.over(self._sums(np.asarray(x, dtype=np.float64).reshape(1, -1)).T)[:, 0]

    def adjoint(self, r: Floats) -> Floats:
        return self.under(np.asarray(r, dtype=np.float64)[:, None])[:, 0][self.labels].reshape(self.shape)

    def gram_diagonal(self) -> Floats:
        return np.asarray(self.inside.sum(axis=0).astype(np.float64)[self.labels].reshape(self.shape))

    def _gram(self, n: int) -> Floats:
        return self.dot(np.eye(n))

    def dot(self, rows: Floats) -> Floats:
        """`rows @ WᵀW` for `rows` of shape (k, n)."""
        return np.asarray(self.under(self.over(self._sums(rows).T)).T[:, self.labels])

    def sums(self) -> list[dict[str, Any]]:
        return [{"kind": "sets", "labels": self.labels, "inside": self.inside}]

    def over(self, columns: Floats) -> Floats:
        """`inside @ columns`, (m, k), for `columns` of shape (r, k)."""
        product = np.empty((len(self.inside), columns.shape[1]))
        step = max(1, PRODUCTS // max(1, self.regions))
        for start in range(0, len(product), step):
            product[start : start + step] = self.inside[start : start + step].astype(np.float64) @ columns
        return product

    def under(self, columns: Floats) -> Floats:
        """`insideᵀ @ columns`, (r, k), for `columns` of shape (m, k)."""
        product = np.zeros((self.regions, columns.shape[1]))
        step = max(1, PRODUCTS // max(1, self.regions))
        for start in range(0, len(columns), step):
            product += self.inside[start : start + step].astype(np.float64).T @ columns[start : start + step]
        return product

    def _sums(self, rows: Floats) -> Floats:
        """Sums of `rows`, (k, n), over the regions: (k, r)."""
        return np.stack([np.bincount(self.labels, weights=row, minlength=self.regions) for row in rows])

    def _sizes(self) -> Floats:
        return np.bincount(self.labels, minlength=self.regions).astype(np.float64)


def predicates(shape: int | tuple[int, ...], holds: Sequence[Any]) -> Predicates:
    """One query for each array of `holds`, booleans of `shape` (or flat): the cells where it is true.

    A `ValueError` where there is none, or one does not fit the shape. Time and memory are O(n) a predicate.
    """
    axes = axes_of(shape)
    n = int(np.prod(axes))
    if not len(holds):
        raise KernelError("a workload needs at least one query")
    region, inside = np.zeros(n, dtype=np.int64), np.zeros((0, 1), dtype=bool)
    for one in holds:
        flags = np.asarray(one, dtype=bool).ravel()
        if len(flags) != n:
            raise KernelError(f"a predicate over {len(flags)} cells does not fit a cube of {n}")
        used, region = np.unique(2 * region + flags, return_inverse=True)
        region = region.astype(np.int64)
        inside = np.concatenate([inside[:, used // 2], (used % 2 == 1)[None]])
    return Predicates("predicates", axes, labels=region, inside=inside)


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
