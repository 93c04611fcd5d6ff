"""A model of noisy tables, each drawn by empirical Bayes towards what was expected of it.

Columns are drawn towards even, as all of them together are. A wider table is first made to agree with its columns,
which takes away much of its noise, and then drawn towards what a model without it expected, so that one which noise
explains changes nothing. Maximum likelihood with a light ridge makes one model of what is left of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from jostle.error_laws import laplace_scale
from jostle.kernels.arrays import Floats, along
from jostle.kernels.errors import KernelError
from jostle.kernels.graphical.domain import Clique, Domain
from jostle.kernels.graphical.empirical_bayes import posterior_means
from jostle.kernels.graphical.fit import maximum_likelihood, public_ridge
from jostle.kernels.graphical.learn import notes_of, rows_in
from jostle.kernels.graphical.model import GraphicalModel
from jostle.kernels.graphical.structure import Structure
from jostle.kernels.noisy_array import NoiseModel, law_of, with_noise
from jostle.noise_laws import Gaussian, Laplace

OF_COLUMNS = {"wide": 2.0, "weight": 3.0}
OF_TABLES = {"wide": 1.0, "weight": 6.0, "most": 100.0}
"""The priors of what a cell holds, beside even ones and beside what was expected."""
BALANCED = 4  # rounds of proportional fitting
RIDGE = 0.1
"""Of `fit.public_ridge`: what is fitted is drawn together already, and needs little of it."""
LEAST_NOISE = 0.2  # of the noise at least is left when a table agrees with its columns
WORK = 3e7  # cells, times the most steps of a fit


@dataclass(frozen=True, eq=False)
class Table:
    """A noisy table of counts over a clique, the law of its noise, and the counts that were expected of it before."""

    clique: Clique
    seen: Floats
    law: Laplace | Gaussian
    expected: Floats | None = None

    @property
    def noisy(self) -> Floats:
        return with_noise(np.asarray(self.seen, dtype=float), NoiseModel(self.law))

    def with_more(self, other: Table) -> Table:
        """This table and another measurement of it, by precision; what was expected is what was before both."""
        first, second = (max(t.law.scale, 1e-9) ** -2 for t in (self, other))
        seen = (first * np.asarray(self.seen) + second * np.asarray(other.seen)) / (first + second)
        return Table(self.clique, seen, type(self.law)((first + second) ** -0.5), self.expected)


def shrunken_model(
    domain: Domain, tables: Sequence[Table], rows: float, before: GraphicalModel | None = None
) -> GraphicalModel:
    """The model of tables, those of single columns first, in order. Potentials start from those of `before`."""
    many = len(domain.names)
    structure = Structure(domain, tuple(t.clique for t in tables))
    columns, precision = _columns(domain, tables, rows)
    targets = [*columns]
    ridges = [_ridge(1 / math.sqrt(p), rows, len(c)) for p, c in zip(precision, columns, strict=True)]
    if len(tables) > many:
        targets += _drawn(tables[many:], columns, rows)
        ridges += [_ridge(laplace_scale(t.law), rows, t.seen.size) for t in tables[many:]]
    notes = notes_of("shrunken", GraphicalModel(structure), [t.law for t in tables], rows)
    start = [np.log(c) for c in columns] + [np.zeros(shape) for shape in structure.shapes[many:]]
    if len(tables) == many:
        return GraphicalModel(structure, np.concatenate(start), notes)
    if before is not None:
        known = dict(zip(before.structure.cliques, before.structure.split(before.theta), strict=True))
        start = [known.get(t.clique, s) for t, s in zip(tables, start, strict=True)]
    theta = maximum_likelihood(
        structure, np.concatenate([t.ravel() for t in targets]),
        np.concatenate([np.full(k, r) for k, r in zip(structure.lengths, ridges, strict=True)]),
        np.concatenate([s.ravel() for s in start]),
        steps=int(np.clip(WORK / structure.plan.cells, 60, 300)), tolerance=1e-6,
    )  # fmt: skip
    return GraphicalModel(structure, theta, notes)


def shrunken_fit(model: GraphicalModel, tables: Sequence[Any], rows: object = None) -> GraphicalModel:
    """The model of noisy tables, one a clique: of each column, in order, and of wider ones, in any number.

    A wider table is drawn towards the product of its columns. Post-processing: it costs nothing.
    """
    domain, cliques = model.domain, model.structure.cliques
    many = len(domain.names)
    if cliques[:many] != tuple((v,) for v in range(many)) or model.ties is not None:
        raise KernelError("tables are drawn together where there is one of each column, in order, before wider ones")
    model.structure.joined(tables)
    n = rows_in(tables, rows)
    shaped = [np.asarray(t, dtype=float).reshape(s) for t, s in zip(tables, model.structure.shapes, strict=True)]
    measured = [Table(c, t, law_of(y)) for c, t, y in zip(cliques, shaped, tables, strict=True)]
    columns, _ = _columns(domain, measured, n)
    apart = [n * reduce(np.multiply.outer, [columns[v] for v in c]) for c in cliques]
    return shrunken_model(domain, [replace(t, expected=e) for t, e in zip(measured, apart, strict=True)], n)


def _ridge(scale: float, rows: float, cells: int) -> float:
    return max(RIDGE * public_ridge(scale, rows, cells), 0.1 / rows)


def _columns(domain: Domain, tables: Sequence[Table], rows: float) -> tuple[list[Floats], Floats]:
    """(the shares of each column's values, above 0; the precision of a cell, for Laplace noise of scale 1 it is 1)."""
    many = len(domain.names)
    total, precision = [np.zeros(size) for size in domain.sizes], np.zeros(many)
    for t in tables:
        for axis, v in enumerate(t.clique):
            sums = np.asarray(t.seen).sum(axis=tuple(a for a in range(t.seen.ndim) if a != axis))
            weight = len(sums) / (max(laplace_scale(t.law), 1e-9) ** 2 * t.seen.size)
            total[v], precision[v] = total[v] + weight * sums, precision[v] + weight
    means = [t / p for t, p in zip(total, precision, strict=True)]
    even = [np.full(len(t), rows / len(t)) for t in means]
    laws = [_law(tables[0].law, 1 / math.sqrt(p)) for p in precision]
    drawn = posterior_means(means, even, laws, most=float(max(domain.sizes)), **OF_COLUMNS)
    return [_positive(t, rows) for t in drawn], precision


def _law(like: Laplace | Gaussian, scale: float) -> Laplace | Gaussian:
    return Gaussian(scale * math.sqrt(2)) if isinstance(like, Gaussian) else Laplace(scale)


def _positive(counts: Floats, rows: float) -> Floats:
    """Shares, with a fifth of a row spread over them."""
    shares = (counts + 1e-9) / (counts + 1e-9).sum()
    return (shares + 0.2 / rows / len(shares)) / (1 + 0.2 / rows)  # type: ignore[no-any-return]


def _drawn(tables: Sequence[Table], columns: Sequence[Floats], rows: float) -> list[Floats]:
    """The shares of wider tables, drawn towards what was expected of them, with the columns as their margins."""
    seen, expected, laws = [], [], []
    for t in tables:
        table = np.asarray(t.seen, dtype=float)
        table = table + (rows - table.sum()) / table.size
        for axis, v in enumerate(t.clique):
            gap = rows * columns[v] - table.sum(axis=tuple(a for a in range(table.ndim) if a != axis))
            table = table + along(gap * (table.shape[axis] / table.size), axis, table.ndim)
        free = 1 - (1 + sum(len(columns[v]) - 1 for v in t.clique)) / table.size
        seen.append(table)
        expected.append(_balanced(np.maximum(np.asarray(t.expected), 1e-9 * rows), t.clique, columns, rows))
        laws.append(Gaussian(laplace_scale(t.law) * math.sqrt(2) * max(math.sqrt(max(free, 0.0)), LEAST_NOISE)))
    drawn = posterior_means(seen, expected, laws, **OF_TABLES)
    return [
        _balanced(np.maximum(d, 1e-9 * e), t.clique, columns, 1.0)
        for d, e, t in zip(drawn, expected, tables, strict=True)
    ]


def _balanced(table: Floats, clique: Clique, columns: Sequence[Floats], total: float) -> Floats:
    """The table with the columns' shares of `total` as its margins, by proportional fitting."""
    for _ in range(BALANCED):
        for axis, v in enumerate(clique):
            sums = table.sum(axis=tuple(a for a in range(table.ndim) if a != axis))
            table = table * along(total * columns[v] / np.maximum(sums, 1e-300), axis, table.ndim)
    return table
