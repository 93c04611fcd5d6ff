"""The Gram matrix of a workload on buckets, as an operator.

A labelling puts every cell into a bucket whose cells share its count evenly; with E the map from bucket counts to
cells, the Gram matrix on buckets is G = EᵀWᵀWE. Everything that chooses a strategy or projects an estimate needs G only
through products, its diagonal and, in one dimension, through cumulative sums. So the (b, b) matrix is made where it is
small alone. Where queries and buckets are boxes of a large cube of several axes, an overlap is a product of
overlaps along the axes: b² numbers instead of p·n for every product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, cast

import numpy as np

from jostle.kernels import KernelError
from jostle.kernels.arrays import Floats, Ints, along
from jostle.kernels.histograms.grids import extents
from jostle.kernels.workloads.boxes import Workload, prefix_sums, suffix_sums
from jostle.kernels.workloads.marginals import Marginals, Predicates, Union

MANY_CELLS = 2**16
"""Below this many cells, products by prefix sums are quick enough."""

MOST_BUCKETS = 3000
"""Up to this many buckets the (b, b) matrix is made."""

PIECE = 2**22
"""Arrays over rows and cells are made in pieces of about this size."""

Axis = tuple[Ints, Ints]
"""Intervals along an axis: lows and highs, both included."""


def box_extents(shape: tuple[int, ...], labels: Ints, sizes: Floats) -> tuple[Ints, Ints] | None:
    """The lowest and highest cell, (b, d) each, of every bucket; None where one is no box."""
    lows, highs = extents(shape, labels)
    if (np.prod(highs - lows + 1.0, axis=1) != sizes).any():
        return None
    for axis, side in enumerate(shape):
        place = np.broadcast_to(along(np.arange(side), axis, len(shape)), shape)
        if (place.ravel() < lows[labels, axis]).any() or (place.ravel() > highs[labels, axis]).any():
            return None
    return lows, highs


def gram(workload: Workload, lows: Ints, highs: Ints) -> Floats:
    """G on box buckets, (b, b)."""
    matrix = np.zeros((len(lows), len(lows)))
    terms = products(workload)
    if terms is not None:
        for axes in terms:
            term = np.ones_like(matrix)
            for axis, queries in enumerate(axes):
                share = _shares(queries, (lows[:, axis], highs[:, axis]))
                term *= share.T @ share
            matrix += term
        return matrix
    for share in _pieces(workload, lows, highs):
        matrix += share.T @ share
    return matrix


def diagonal(workload: Workload, lows: Ints, highs: Ints) -> Floats:
    """The diagonal of G, (b,)."""
    total = np.zeros(len(lows))
    terms = products(workload)
    if terms is not None:
        for axes in terms:
            term = np.ones(len(lows))
            for axis, queries in enumerate(axes):
                ends, which = np.unique(np.stack([lows[:, axis], highs[:, axis]]), axis=1, return_inverse=True)
                term *= (_shares(queries, (ends[0], ends[1])) ** 2).sum(axis=0)[which.ravel()]
            total += term
        return total
    for share in _pieces(workload, lows, highs):
        total += (share**2).sum(axis=0)
    return total


def products(workload: Workload) -> list[list[Axis]] | None:
    """A workload as products of intervals along the axes, one list of axes a term; None for other lists of boxes."""
    singles = [(np.arange(side), np.arange(side)) for side in workload.shape]
    if workload.kind == "identity":
        return [singles]
    if workload.kind == "prefixes":
        return [[(np.zeros_like(at), at) for _, at in singles]]
    if isinstance(workload, Marginals):
        whole = [(np.array([0]), np.array([side - 1])) for side in workload.shape]
        return [[singles[a] if a in s else whole[a] for a in range(len(whole))] for s in workload.sets]
    return None


def _pieces(workload: Workload, lows: Ints, highs: Ints) -> Iterator[Floats]:
    """Shares of every bucket in some of the queries, (some, b), piece by piece."""
    bounds = workload.bounds()
    step = max(1, PIECE // len(lows))
    edges = [*range(0, workload.size, step), workload.size]
    for start, end in pairwise(edges):
        share = np.ones((end - start, len(lows)))
        for axis in range(lows.shape[1]):
            part = (bounds[0][start:end, axis], bounds[1][start:end, axis])
            share *= _shares(part, (lows[:, axis], highs[:, axis]))
        yield share


def _shares(queries: Axis, buckets: Axis) -> Floats:
    """The share of each of b intervals that lies in each of m queries, (m, b)."""
    starts, ends = buckets
    shared = np.minimum(queries[1][:, None], ends) - np.maximum(queries[0][:, None], starts) + 1.0
    return np.asarray(np.maximum(shared, 0.0) / (ends - starts + 1))


WORK = 2**24
"""The most numbers that a product holds at once where a bucket is not a run of cells."""

DENSE_BUCKETS = 160
"""Up to this many buckets a dense Gram matrix is quicker than prefix sums."""


@dataclass(frozen=True, eq=False)
class Gram:
    """G on b buckets. `labels` is flat, (n,), from 0 to b − 1; `sizes` is (b,), in cells."""

    workload: Workload
    labels: Ints
    sizes: Floats
    contiguous: bool
    corners: Any = field(repr=False)
    """Sparse (m, N): queries as signed sums of prefix sums; `None` for the identity workload."""
    metric: Any = field(repr=False)
    """Sparse (N, N), the corners' own Gram matrix; `None` for the identity workload, `True` where there is none."""
    small: Floats | None = field(default=None, repr=False)
    extents: tuple[Ints, Ints] | None = field(default=None, repr=False)
    """The lowest and highest cells, (b, d) each, of buckets that are boxes, where products use them."""

    @property
    def buckets(self) -> int:
        return len(self.sizes)

    def dot(self, rows: Floats) -> Floats:
        """`rows @ G` for `rows` of shape (k, b)."""
        if self.metric is None:
            return rows / self.sizes
        return rows @ self.small if self.small is not None else self._product(rows)

    def _product(self, rows: Floats) -> Floats:
        if len(rows) == 1 and not self.contiguous:
            return self._of_one(rows[0])[None]
        return self._back(self.metric @ self._forth(rows))

    def _of_one(self, row: Floats) -> Floats:
        """The product of one row, (b,): sums along a cube without a last axis are several times as quick."""
        cells = prefix_sums((row / self.sizes)[self.labels].reshape(self.workload.shape))
        cells = suffix_sums((self.metric @ cells.ravel()).reshape(self.workload.shape))
        return np.asarray(np.bincount(self.labels, weights=cells.ravel(), minlength=self.buckets) / self.sizes)

    def diagonal(self) -> Floats:
        """The diagonal of G, shape (b,)."""
        if self.metric is None:
            return 1 / self.sizes
        if self.small is not None:
            return np.diag(self.small).copy()
        if self.contiguous:
            return self._contiguous_diagonal()
        if self.extents is not None:
            return diagonal(self.workload, *self.extents)
        values = np.empty(self.buckets)
        alone = self.sizes == 1
        values[self.labels[alone[self.labels]]] = self.workload.gram_diagonal().ravel()[alone[self.labels]]
        wide = np.flatnonzero(~alone)
        for block in (wide[i : i + 128] for i in range(0, len(wide), 128)):
            units = np.zeros((len(block), self.buckets))
            units[np.arange(len(block)), block] = 1
            values[block] = ((self.corners @ self._forth(units)) ** 2).sum(axis=0)
        return values

    def dense(self) -> Floats:
        """G as a (b, b) array."""
        if self.small is not None:
            return self.small.copy()
        units = np.eye(self.buckets)
        some = max(1, WORK // self.workload.cells)
        return np.concatenate([self.dot(units[i : i + some]) for i in range(0, self.buckets, some)])

    def spread(self, z: Floats) -> Floats:
        """Ez: bucket counts `z` shared evenly among cells; of the workload's shape."""
        return np.asarray((z / self.sizes)[self.labels].reshape(self.workload.shape))

    def _forth(self, rows: Floats) -> Floats:
        """Prefix sums, (N, k), of the bucket counts in `rows`, (k, b)."""
        if self.contiguous:
            return np.cumsum(rows, axis=1).T
        cells = np.ascontiguousarray((rows / self.sizes).T)[self.labels]
        return _accumulate(cells.reshape(*self.workload.shape, -1)).reshape(cells.shape)

    def _back(self, columns: Floats) -> Floats:
        """The transpose of `_forth`: (N, k) to (k, b)."""
        if self.contiguous:
            return np.ascontiguousarray(np.cumsum(columns.T[:, ::-1], axis=1)[:, ::-1])
        axes = tuple(range(len(self.workload.shape)))
        cubes = np.flip(columns.reshape(*self.workload.shape, -1), axes)
        cells = np.flip(_accumulate(cubes.copy()), axes).reshape(columns.shape)
        order = np.argsort(self.labels, kind="stable")
        first = np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)
        sums = cells[order] if self.buckets == len(order) else np.add.reduceat(cells[order], first, axis=0)
        return np.ascontiguousarray(sums.T) / self.sizes

    def _contiguous_diagonal(self) -> Floats:
        """Σ over queries of the squared share of each bucket: 1 inside a query, a fraction at its ends."""
        starts = np.concatenate([[0.0], np.cumsum(self.sizes)])
        lows, highs = (bound[:, 0] for bound in self.workload.bounds())
        first, last = self.labels[lows], self.labels[highs]
        left = (starts[first + 1] - lows) / self.sizes[first]
        right = (highs + 1 - starts[last]) / self.sizes[last]
        one = first == last
        left = np.where(one, left + right - 1, left)
        b = self.buckets
        ends = np.bincount(first, left**2, b) + np.bincount(last, np.where(one, 0, right**2), b)
        steps = np.bincount(first + 1, ~one, b + 1) - np.bincount(last, ~one, b + 1)
        return np.asarray(ends + np.cumsum(steps)[:b])


def _accumulate(cubes: Floats) -> Floats:
    """Prefix sums along all axes but the last, in place: by slices, which is thrice as quick as `cumsum` here."""
    for axis in range(cubes.ndim - 1):
        slices = np.moveaxis(cubes, axis, 0)
        if len(slices) > 512:
            np.cumsum(slices, axis=0, out=slices)
            continue
        for i in range(1, len(slices)):
            slices[i] += slices[i - 1]
    return cubes


@dataclass(frozen=True, eq=False)
class MarginalGram(Gram):
    """The operator of a `Marginals` workload, by sums along axes."""

    workload: Marginals

    def _product(self, rows: Floats) -> Floats:
        return _by_rows(self._some, rows, self.workload.cells)

    def _some(self, rows: Floats) -> Floats:
        cells = self.workload.dot((rows / self.sizes)[:, self.labels])
        if self.buckets == len(self.labels):
            products = np.empty_like(cells)
            products[:, self.labels] = cells
            return products
        return np.stack([np.bincount(self.labels, weights=row, minlength=self.buckets) for row in cells]) / self.sizes

    def diagonal(self) -> Floats:
        if self.buckets == len(self.labels):
            return np.full(self.buckets, float(len(self.workload.sets)))
        values = np.zeros(self.buckets)
        for block in self.workload.sums():
            pairs, counts = np.unique(self.labels * block["size"] + block["labels"], return_counts=True)
            bucket = pairs // block["size"]
            values += np.bincount(bucket, (counts / self.sizes[bucket]) ** 2, self.buckets)
        return values


@dataclass(frozen=True, eq=False)
class RegionGram(Gram):
    """The operator of a `Predicates` workload, by sums over regions."""

    workload: Predicates

    def _product(self, rows: Floats) -> Floats:
        return _by_rows(self._some, rows, max(self.workload.size, self.workload.regions, self.buckets))

    def _some(self, rows: Floats) -> Floats:
        predicates = self.workload
        return np.asarray((self._shares.T @ predicates.under(predicates.over(self._shares @ rows.T))).T)

    def diagonal(self) -> Floats:
        shares, predicates = self._shares, self.workload
        if shares.nnz == self.buckets:  # every bucket within one region
            counts = predicates.inside.sum(axis=0).astype(np.float64)
            return np.asarray(shares.T @ counts)
        values = np.empty(self.buckets)
        step = max(1, PIECE // max(predicates.regions, predicates.size))
        for start in range(0, self.buckets, step):
            part = np.asarray(shares[:, start : start + step].todense())
            values[start : start + step] = (predicates.over(part) ** 2).sum(axis=0)
        return values

    @cached_property
    def _shares(self) -> Any:
        """Sparse (r, b): which share of each bucket's cells lies in each region."""
        from scipy.sparse import csc_matrix

        pairs, counts = np.unique(self.labels * self.workload.regions + self.workload.labels, return_counts=True)
        bucket, region = np.divmod(pairs, self.workload.regions)
        return csc_matrix((counts / self.sizes[bucket], (region, bucket)), (self.workload.regions, self.buckets))


@dataclass(frozen=True, eq=False)
class SumGram(Gram):
    """The weighted sum of the operators of a union's parts."""

    parts: tuple[tuple[Gram, float], ...] = field(default=(), repr=False)

    def _product(self, rows: Floats) -> Floats:
        return np.asarray(sum(weight**2 * part.dot(rows) for part, weight in self.parts))

    def diagonal(self) -> Floats:
        if self.small is not None:
            return np.diag(self.small).copy()
        return np.asarray(sum(weight**2 * part.diagonal() for part, weight in self.parts))


def on_cells(workload: Workload) -> Gram:
    """The workload's Gram operator where every cell is its own bucket."""
    return on_buckets(workload, np.arange(workload.cells, dtype=np.int64))


def on_buckets(workload: Workload, labels: Ints) -> Gram:
    """The workload's Gram operator on the buckets of `labels`, which hold 0 … b − 1 and every one of them.

    A `ValueError` where the labels do not fit the workload's cells.
    """
    return _on_buckets(workload, np.asarray(labels, dtype=np.int64).tobytes())


@lru_cache(maxsize=4)
def _on_buckets(workload: Workload, flat: bytes) -> Gram:
    """The strategy and the estimate of one measurement ask for the same operator, and so do its other draws."""
    labels: Ints = np.frombuffer(flat, dtype=np.int64)
    if len(labels) != workload.cells or labels.min() < 0:
        raise KernelError("the labels do not cover the workload's cells")
    sizes = np.bincount(labels).astype(np.float64)
    if (sizes == 0).any():
        raise KernelError("a bucket without cells")
    contiguous = len(workload.shape) == 1 and bool((np.diff(labels) >= 0).all())
    if workload.kind == "identity":
        return Gram(workload, labels, sizes, contiguous, None, None)
    extents = None
    if not contiguous and workload.boxes and MANY_CELLS <= workload.cells > len(sizes):
        extents = box_extents(workload.shape, labels, sizes)
    if extents is not None and len(sizes) <= MOST_BUCKETS and workload.kind != "union":
        return Gram(workload, labels, sizes, False, None, True, gram(workload, *extents), extents)
    if workload.kind in ("marginals", "predicates", "union"):
        return other_gram(workload, labels, sizes, contiguous)
    corners, metric = _with_metric(_steps(workload, labels, sizes)) if contiguous else _of_cells(workload)
    operator = Gram(workload, labels, sizes, contiguous, corners, metric, None, extents)
    return operator if operator.buckets > DENSE_BUCKETS else replace(operator, small=operator.dense())


def _with_metric(corners: Any) -> tuple[object, object]:
    """The corners of a workload, and their own Gram matrix."""
    return corners, (corners.T @ corners).tocsr()


@lru_cache(maxsize=2)
def _of_cells(workload: Workload) -> tuple[object, object]:
    """The same in the cube's own prefix sums, whatever the buckets are."""
    return _with_metric(_corners(workload))


def _corners(workload: Workload) -> object:
    """Sparse (m, n): each query as a signed sum of the cube's prefix sums."""
    from scipy.sparse import csr_matrix

    lows, highs = workload.bounds()
    m, d = lows.shape
    values, columns, rows = [], [], []
    for choice in np.ndindex(*(2,) * d):
        place = np.where(np.array(choice, dtype=bool), highs, lows - 1)
        inside = np.flatnonzero((place >= 0).all(axis=1))
        rows.append(inside)
        columns.append(np.ravel_multi_index(tuple(place[inside].T), workload.shape))
        values.append(np.full(len(inside), (-1.0) ** (d - sum(choice))))
    data = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return csr_matrix(data, shape=(m, workload.cells))


def _steps(workload: Workload, labels: Ints, sizes: Floats) -> object:
    """Sparse (m, b): each range as a signed sum of the buckets' cumulative sums.

    The cumulative sum at a place inside bucket k, a share f of its cells in, is (1 − f)·c_{k−1} + f·c_k.
    """
    from scipy.sparse import csr_matrix

    lows, highs = (bound[:, 0] for bound in workload.bounds())
    m, b = len(lows), len(sizes)
    starts = np.concatenate([[0.0], np.cumsum(sizes)[:-1]])
    values, columns, rows = [], [], []
    for sign, last in ((1.0, highs), (-1.0, lows - 1)):
        at = np.flatnonzero(last >= 0)
        k = labels[last[at]]
        share = (last[at] + 1 - starts[k]) / sizes[k]
        values += [sign * share, sign * (1 - share[k > 0])]
        columns += [k, k[k > 0] - 1]
        rows += [at, at[k > 0]]
    data = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    matrix = csr_matrix(data, shape=(m, b))
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def other_gram(workload: Workload, labels: Ints, sizes: Floats, contiguous: bool) -> Gram:
    """The operator of a workload that is not one list of boxes; `on_buckets` has checked the labels."""
    operator: Gram
    if isinstance(workload, Union):
        operator = _sum_gram(workload, labels, sizes, contiguous)
    elif isinstance(workload, Predicates):
        operator = RegionGram(workload, labels, sizes, False, None, True)
    else:
        operator = MarginalGram(cast(Marginals, workload), labels, sizes, False, None, True)
    return replace(operator, small=operator.dense()) if operator.buckets <= DENSE_BUCKETS else operator


def _sum_gram(workload: Union, labels: Ints, sizes: Floats, contiguous: bool) -> Gram:
    """In one dimension, over intervals, also with the metric of the cumulative sums, which the projection wants."""
    in_order = contiguous and workload.boxes
    each = (Workload("boxes", p.shape, *p.bounds()) if in_order else p for p in workload.parts)  # boxes have a metric
    parts = tuple((on_buckets(p, labels), w) for p, w in zip(each, workload.weights, strict=True))
    metric: Any = sum(w**2 * g.metric for g, w in parts) if in_order else True
    return SumGram(workload, labels, sizes, in_order, None, metric, parts=parts)


def _by_rows(product: Callable[[Floats], Floats], rows: Floats, width: int) -> Floats:
    step = max(1, PIECE // max(1, width))
    if len(rows) <= step:
        return product(rows)
    return np.concatenate([product(rows[start : start + step]) for start in range(0, len(rows), step)])
