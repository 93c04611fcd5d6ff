"""Gram operators on buckets for workloads that are more than boxes: marginals, predicates and unions.

The same face as `grams.Gram`, whose `on_buckets` makes these; none holds a matrix over cells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats, Ints
from jostle.kernels.histograms.grams import DENSE_BUCKETS, Gram, on_buckets
from jostle.kernels.workloads.boxes import Workload
from jostle.kernels.workloads.marginals import Marginals
from jostle.kernels.workloads.predicates import Predicates
from jostle.kernels.workloads.unions import Union

PIECE = 2**22
"""Arrays over rows and cells are made in pieces of about this size."""


@dataclass(frozen=True, eq=False)
class MarginalGram(Gram):
    """The operator of a `Marginals` workload, by sums along axes."""

    def _product(self, rows: Floats) -> Floats:
        return _by_rows(self._some, rows, self.workload.cells)

    def _some(self, rows: Floats) -> Floats:
        cells = self._marginals.dot((rows / self.sizes)[:, self.labels])
        if self.buckets == len(self.labels):
            products = np.empty_like(cells)
            products[:, self.labels] = cells
            return products
        return np.stack([np.bincount(self.labels, weights=row, minlength=self.buckets) for row in cells]) / self.sizes

    def diagonal(self) -> Floats:
        if self.buckets == len(self.labels):
            return np.full(self.buckets, float(len(self._marginals.sets)))
        values = np.zeros(self.buckets)
        for block in self._marginals.sums():
            pairs, counts = np.unique(self.labels * block["size"] + block["labels"], return_counts=True)
            bucket = pairs // block["size"]
            values += np.bincount(bucket, (counts / self.sizes[bucket]) ** 2, self.buckets)
        return values

    @property
    def _marginals(self) -> Marginals:
        if not isinstance(self.workload, Marginals):
            raise TypeError("this operator is for marginals")
        return self.workload


@dataclass(frozen=True, eq=False)
class RegionGram(Gram):
    """The operator of a `Predicates` workload, by sums over regions."""

    def _product(self, rows: Floats) -> Floats:
        return _by_rows(self._some, rows, max(self.workload.size, self._predicates.regions, self.buckets))

    def _some(self, rows: Floats) -> Floats:
        predicates = self._predicates
        return np.asarray((self._shares.T @ predicates.under(predicates.over(self._shares @ rows.T))).T)

    def diagonal(self) -> Floats:
        shares, predicates = self._shares, self._predicates
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

        pairs, counts = np.unique(self.labels * self._predicates.regions + self._predicates.labels, return_counts=True)
        bucket, region = np.divmod(pairs, self._predicates.regions)
        return csc_matrix((counts / self.sizes[bucket], (region, bucket)), (self._predicates.regions, self.buckets))

    @property
    def _predicates(self) -> Predicates:
        if not isinstance(self.workload, Predicates):
            raise TypeError("this operator is for predicates")
        return self.workload


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


def other_gram(workload: Workload, labels: Ints, sizes: Floats, contiguous: bool) -> Gram:
    """The operator of a workload that is not one list of boxes; `grams.on_buckets` has checked the labels."""
    operator: Gram
    if isinstance(workload, Union):
        operator = _sum_gram(workload, labels, sizes, contiguous)
    elif isinstance(workload, Predicates):
        operator = RegionGram(workload, labels, sizes, False, None, True)
    else:
        operator = MarginalGram(workload, labels, sizes, False, None, True)
    return replace(operator, small=operator.dense()) if operator.buckets <= DENSE_BUCKETS else operator


def _sum_gram(workload: Union, labels: Ints, sizes: Floats, contiguous: bool) -> Gram:
    """In one dimension, over intervals, also with the metric of the cumulative sums, which the projection wants."""
    in_order = contiguous and workload.boxes
    parts = tuple((on_buckets(_as_boxes(p) if in_order else p, labels), w) for p, w in
                  zip(workload.parts, workload.weights, strict=True))  # fmt: skip
    metric: Any = sum(w**2 * g.metric for g, w in parts) if in_order else True
    return SumGram(workload, labels, sizes, in_order, None, metric, parts=parts)


def _as_boxes(workload: Workload) -> Workload:
    """Lists the queries as boxes, which have a metric of cumulative sums."""
    return Workload("boxes", workload.shape, *workload.bounds())


def _by_rows(product: Callable[[Floats], Floats], rows: Floats, width: int) -> Floats:
    step = max(1, PIECE // max(1, width))
    if len(rows) <= step:
        return product(rows)
    return np.concatenate([product(rows[start : start + step]) for start in range(0, len(rows), step)])
