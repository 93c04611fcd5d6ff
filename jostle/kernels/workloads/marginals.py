"""Marginals of a cube: as a workload, and as HDMM's strategies for them. Predicates, and several workloads as one.

A marginal over a set S of axes is the cube summed over all other axes; its queries are boxes of one cell along S and of
everything else. With Pᵢ = J/nᵢ the mean along an axis, 1ᵀ1 = nᵢPᵢ and I = Pᵢ + (I − Pᵢ). So every Gram matrix of
weighted marginals is Σ_T λ_T P_T over the sets T of axes, P_T = ⊗_{i∈T}(I − Pᵢ) ⊗_{i∉T} Pᵢ, with λ_T = Σ_{S⊇T} w_S²
Π_{i∉S} nᵢ: products, inverses and errors are sums over 2^d sets, however many cells there are.

The strategies are OPT_M of McKenna, Miklau, Hay and Machanavajjhala, *Optimizing error of high-dimensional statistical
queries under differential privacy*, VLDB 2018, section 6.3: weights θ_S ≥ 0 on all marginals, which minimise (Σθ)² Σ_T
g_T dim(P_T)/λ_T(θ), g the workload's spectrum. Every cell is in one group of each marginal, so a column's L1 norm is Σθ
= 1.

Cells that satisfy the same *predicates* are alike to a workload of them, so they are kept as one region: `labels` gives
every cell its region and `inside` says which predicates hold there. A strategy on regions loses nothing (the
workload-based domain reduction of Zhang, McKenna, Kotsogiannis, Bissias, Hay, Machanavajjhala and Miklau, *Ektelo: a
framework for defining differentially-private computations*, SIGMOD 2018).

Of a *union* the answers are those of the parts, one after another; weights enter the Gram matrix alone, Σ wᵢ² WᵢᵀWᵢ: an
error of 1 in a part of weight 2 counts as much as one of 2 in a part of weight 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.kernels import KernelError
from jostle.kernels.arrays import Floats, Ints, Strategy, axes_of, groups, labels_of, minimise
from jostle.kernels.workloads.boxes import Workload

Axes = tuple[int, ...]
Spectrum = dict[Axes, float]

MOST_AXES = 12
"""Sums over all sets of axes are made up to this many."""


@dataclass(frozen=True, eq=False)
class Marginals(Workload):
    """The cells of every marginal of `sets`, one after another, each in C order of its axes."""

    sets: tuple[Axes, ...] = field(default=())

    @property
    def size(self) -> int:
        return sum(self._count(axes) for axes in self.sets)

    @property
    def mean_length(self) -> float:
        return self.cells * len(self.sets) / self.size

    def bounds(self) -> tuple[Ints, Ints]:
        lows, highs = [], []
        for axes in self.sets:
            places = np.indices([self.shape[a] for a in axes], dtype=np.int64).reshape(len(axes), self._count(axes)).T
            low, high = np.zeros((2, len(places), len(self.shape)), dtype=np.int64)
            high[:] = np.array(self.shape) - 1
            low[:, axes] = high[:, axes] = places
            lows.append(low)
            highs.append(high)
        return np.concatenate(lows), np.concatenate(highs)

    def box(self, at: int) -> tuple[Ints, Ints]:
        low = np.zeros(len(self.shape), dtype=np.int64)
        high = np.array(self.shape, dtype=np.int64) - 1
        for axes in self.sets:
            if at < self._count(axes):
                place = np.unravel_index(at, [self.shape[a] for a in axes]) if axes else ()
                low[list(axes)] = high[list(axes)] = place
                return low, high
            at -= self._count(axes)
        raise IndexError("the marginals have no such query")

    def answers(self, x: Floats) -> Floats:
        cube = np.asarray(x, dtype=np.float64).reshape(self.shape)
        return np.concatenate([cube.sum(axis=self._others(axes)).ravel() for axes in self.sets])

    def gram_diagonal(self) -> Floats:
        return np.full(self.shape, float(len(self.sets)))

    def dot(self, rows: Floats) -> Floats:
        """`rows @ WᵀW` for `rows` of shape (k, n)."""
        cubes = rows.reshape(-1, *self.shape)
        product = np.zeros_like(cubes)
        for axes in self.sets:
            product += cubes.sum(axis=tuple(a + 1 for a in self._others(axes)), keepdims=True)
        return product.reshape(rows.shape)

    def sums(self) -> list[dict[str, Any]]:
        return [{"kind": "groups", "labels": _labels(self.shape, s), "size": self._count(s)} for s in self.sets]

    def spectrum(self) -> Spectrum:
        """g_T of WᵀW = Σ g_T P_T, for every set T of axes."""
        return _spectrum(self.shape, dict.fromkeys(self.sets, 1.0))

    def _count(self, axes: Axes) -> int:
        return int(np.prod([self.shape[a] for a in axes], dtype=np.int64))

    def _others(self, axes: Axes) -> Axes:
        return tuple(a for a in range(len(self.shape)) if a not in axes)


def marginals(shape: int | tuple[int, ...], sets: int | Iterable[Sequence[int]]) -> Marginals:
    """All marginals over `sets` axes (a number), or those over the listed sets of axes; the empty set is the total.

    A `ValueError` where a set is listed twice, names an axis twice, or one that there is not.
    """
    axes = axes_of(shape)
    if isinstance(sets, int | np.integer):
        if not 0 <= sets <= len(axes):
            raise KernelError(f"a cube of {len(axes)} dimensions has no marginals over {sets} of them")
        sets = combinations(range(len(axes)), int(sets))
    axis_sets = tuple(tuple(sorted(int(a) for a in one)) for one in sets)
    if any(len(set(one)) < len(one) or any(not 0 <= a < len(axes) for a in one) for one in axis_sets):
        raise KernelError("a marginal names each of its dimensions once")
    if not axis_sets or len(set(axis_sets)) < len(axis_sets):
        raise KernelError("marginals are a list of different sets of dimensions")
    return Marginals("marginals", axes, sets=axis_sets)


# Strategies -----------------------------------------------------------------------------------------------


def marginal_strategy(shape: tuple[int, ...], target: Spectrum) -> Strategy:
    """OPT_M for a workload with this spectrum: `groups` blocks, one a marginal, that carry their axes as `marginal`.

    A marginal of less than a thousandth of the weight is left out where the workload does not need it.
    """
    sets = _subsets(len(shape))
    theta = _optimised(shape, target, sets)
    needed = [t for t in sets if target[t] > 0]
    selection = [s for s, w in zip(sets, theta, strict=True) if w > 1e-3]
    selection += [t for t in needed if not any(set(t) <= set(s) for s in selection)]
    weights = {s: max(float(theta[sets.index(s)]), 1e-3) for s in selection}
    whole = sum(weights.values())
    return [groups(_labels(shape, s), w / whole) | {"marginal": s} for s, w in weights.items()]


def is_marginal(strategy: Strategy) -> bool:
    """Whether a strategy was made here."""
    return all("marginal" in block for block in strategy)


def reconstruct(strategy: Strategy, answers: list[Floats], shape: tuple[int, ...]) -> Floats:
    """The least-squares cells of least norm, of `shape`, from noisy answers to a `marginal_strategy`."""
    weights = _weights(strategy)
    normal = np.zeros(shape)
    for axes, weight, answer in zip(weights, weights.values(), answers, strict=True):
        sides = tuple(side if a in axes else 1 for a, side in enumerate(shape))
        normal += weight * np.asarray(answer).reshape(sides)
    return _inverted(normal, _spectrum(shape, weights))


def inverted(cube: Floats, strategy: Strategy) -> Floats:
    """(AᵀA)⁺ of a cube, A a `marginal_strategy`."""
    return _inverted(cube, _spectrum(cube.shape, _weights(strategy)))


def variances(strategy: Strategy, shape: tuple[int, ...], sets: Sequence[Axes]) -> Floats:
    """q(AᵀA)⁺qᵀ of every query of the marginals `sets`, one after another: the same within a marginal."""
    spectrum = _spectrum(shape, _weights(strategy))
    parts = []
    for axes in sets:
        value = 0.0
        for inside in _subsets(len(axes)):
            t = tuple(axes[i] for i in inside)
            part = [1 - 1 / shape[a] if a in t else 1 / shape[a] for a in axes]
            whole = [float(side) for a, side in enumerate(shape) if a not in axes]
            if any(p == 0 for p in part):
                continue
            value += float(np.prod([*part, *whole])) / spectrum[t]
        parts.append(np.full(int(np.prod([shape[a] for a in axes], dtype=np.int64)), value))
    return np.concatenate(parts)


def _weights(strategy: Strategy) -> dict[Axes, float]:
    return {tuple(block["marginal"]): float(block["weight"]) for block in strategy}


def _optimised(shape: tuple[int, ...], target: Spectrum, sets: list[Axes]) -> Floats:
    """θ ≥ 0 of sum 1, the best found from three starts; the objective does not change with the length of θ."""
    dims = np.array([np.prod([shape[a] - 1.0 for a in t]) for t in sets])
    demand = np.array([target[t] for t in sets]) * dims
    inside = np.array([[set(t) <= set(s) for s in sets] for t in sets], dtype=float)
    rest = np.array([np.prod([side for a, side in enumerate(shape) if a not in s], dtype=float) for s in sets])
    used = demand > 0

    def at(theta: Floats) -> tuple[float, Floats]:
        whole = theta.sum()
        spectrum = inside @ (theta**2 * rest)
        if spectrum[used].min() < 1e-100:  # the workload does not follow from what these weights measure
            return np.inf, np.zeros_like(theta)
        error = float((demand[used] / spectrum[used]).sum())
        slope = -inside.T @ np.where(used, demand / np.where(used, spectrum, 1.0) ** 2, 0.0) * 2 * theta * rest
        return whole**2 * error, 2 * whole * error + whole**2 * slope

    starts = [np.ones(len(sets)), np.where(used, 1.0, 1e-3), _leading(sets, used)]
    best = min((minimise(at, start, 500, 1e-9) for start in starts), key=lambda optimum: optimum[1])[0]
    return np.asarray(best / best.sum())


def _leading(sets: list[Axes], used: Any) -> Floats:
    """The largest sets that the workload needs, and little else."""
    needed = [set(t) for t, u in zip(sets, used, strict=True) if u]
    return np.array([1.0 if set(s) in needed and not any(set(s) < t for t in needed) else 1e-2 for s in sets])


def _spectrum(shape: tuple[int, ...], weights: dict[Axes, float]) -> Spectrum:
    """λ_T of Σ_S w_S² (⊗_{i∈S} I ⊗_{i∉S} 11ᵀ), for every set T of axes."""
    rest = {s: float(np.prod([side for a, side in enumerate(shape) if a not in s], dtype=float)) for s in weights}
    return {t: sum(w * w * rest[s] for s, w in weights.items() if set(t) <= set(s)) for t in _subsets(len(shape))}


def _inverted(cube: Floats, spectrum: Spectrum) -> Floats:
    """Σ_T P_T cube / λ_T over the T with λ_T > 0: one axis after another, each part split into mean and the rest."""
    parts: list[tuple[Axes, Floats]] = [((), cube)]
    for axis in range(cube.ndim):
        split = []
        for axes, part in parts:
            mean = part.mean(axis=axis, keepdims=True)
            split.append((axes, mean))
            if cube.shape[axis] > 1:
                split.append(((*axes, axis), part - mean))
        parts = split
    inverse = np.zeros(cube.shape)
    for axes, part in parts:
        if spectrum[axes] > 0:
            inverse += part / spectrum[axes]
    return inverse


def _labels(shape: tuple[int, ...], axes: Axes) -> Ints:
    """The group of every flat cell in the marginal over `axes`, in C order of them."""
    return labels_of([np.arange(side) if a in axes else np.zeros(side, np.int64) for a, side in enumerate(shape)])


def _subsets(axes: int) -> list[Axes]:
    if axes > MOST_AXES:
        raise KernelError(f"marginals are planned for cubes of at most {MOST_AXES} dimensions, and this has {axes}")
    return [t for k in range(axes + 1) for t in combinations(range(axes), k)]


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
        return int(self.inside.shape[1])

    @property
    def mean_length(self) -> float:
        return float(self.answers(np.ones(self.cells)).mean())

    def bounds(self) -> tuple[Ints, Ints]:
        raise KernelError("queries of predicates have no bounds; this takes ranges, rectangles or marginals")

    def box(self, at: int) -> tuple[Ints, Ints]:
        return self.bounds()

    def member(self, at: int) -> Ints:
        return np.asarray(self.inside[at][self.labels], dtype=np.int64)

    def answers(self, x: Floats) -> Floats:
        cells = np.asarray(x, dtype=np.float64).ravel()
        sums: Floats = np.bincount(self.labels, weights=cells, minlength=self.regions).astype(np.float64)
        return self.over(sums[:, None])[:, 0]

    def gram_diagonal(self) -> Floats:
        return np.asarray(self.inside.sum(axis=0).astype(np.float64)[self.labels].reshape(self.shape))

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


def predicates(shape: int | tuple[int, ...], holds: Sequence[object]) -> Predicates:
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

    def gram_diagonal(self) -> Floats:
        return np.asarray(sum(w**2 * part.gram_diagonal() for part, w in zip(self.parts, self.weights, strict=True)))

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
