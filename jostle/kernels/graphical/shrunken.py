"""A model of noisy tables, each drawn by empirical Bayes towards what was expected of it.

Columns are drawn towards even, as all of them together are. A wider table is first made to agree with its columns,
which takes away much of its noise. Then it is drawn towards what a model without it expected, so that one which noise
explains changes nothing. Maximum likelihood with a light ridge makes one model of what is left of them. In a search,
which has a model already, the next one is that near to all noisy tables, in squares by precision.

A cell holds r times what is expected of it: what an even table has, or a product of margins. The law of r is the one
that makes all noisy cells together likeliest (Kiefer and Wolfowitz 1956, by expectation–maximisation on a grid), beside
a prior worth a few cells. Each table has its own, beside that of all, worth a few cells again: one of nearly empty
cells tells what its empty cells hold. A cell's estimate is its posterior median, which has the least absolute error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.error_laws import laplace_scale
from jostle.kernels import KernelError
from jostle.kernels.arrays import Floats, along
from jostle.kernels.graphical.domain import Clique, Domain, Structure
from jostle.kernels.graphical.learn import maximum_likelihood, notes_of, public_ridge, rows_in
from jostle.kernels.graphical.model import GraphicalModel
from jostle.kernels.noisy_array import NoiseModel, law_of, with_noise
from jostle.noise_laws import Gaussian, Laplace

LEAST = 0.01  # a share of what is expected: what is less counts as none
STEPS = 240
ROUNDS = 40
MOST_CELLS = 8192
"""Cells that the law of r is learned from; of more, so many, evenly spaced."""
CHUNK = 4096
"""Cells that are worked on at once; so many cells of a larger table have a law of their own."""
OWN, OWN_ROUNDS = 6.0, 20
"""Cells that the law of all tables is worth beside those of one, and steps from it to the table's own."""


def posterior_medians(
    tables: Sequence[Floats], expected: Sequence[Floats], laws: Sequence[Laplace | Gaussian], *,
    most: float, wide: float, weight: float,
) -> list[Floats]:  # fmt: skip
    """The posterior median of every cell, each table's in its shape, in counts.

    `expected`: positive counts for every cell; `laws`: the noise of each table. `most`: the largest r of the grid;
    the prior is log-normal about 1 of deviation `wide`, with 0 beside it as likely as 1, and weighs as much as `weight`
    cells.
    """
    noisy = np.concatenate([np.ravel(t) for t in tables])
    usual = np.concatenate([np.ravel(e) for e in expected])
    scale = np.concatenate([np.full(np.size(t), max(law.scale, 1e-9)) for t, law in zip(tables, laws, strict=True)])
    squared = np.concatenate(
        [np.full(np.size(t), isinstance(law, Gaussian)) for t, law in zip(tables, laws, strict=True)]
    )
    grid = np.append(0.0, np.geomspace(LEAST, max(most, 2.0), STEPS))
    prior = np.append(1.0, np.exp(-((np.log(grid[1:]) / wide) ** 2) / 2))
    prior /= prior.sum()
    some = np.unique(np.linspace(0, len(noisy) - 1, min(len(noisy), MOST_CELLS)).astype(int))
    likely = _likelihoods(noisy[some], usual[some], scale[some], squared[some], grid)
    law = _likeliest(likely, prior, weight, ROUNDS)
    medians = np.empty_like(noisy)
    ends = np.cumsum([np.size(t) for t in tables])
    for first, end in zip([0, *ends[:-1]], ends, strict=True):
        for start in range(first, end, CHUNK):
            part = slice(start, min(start + CHUNK, end))
            likely = _likelihoods(noisy[part], usual[part], scale[part], squared[part], grid)
            own = _likeliest(likely, law, OWN, OWN_ROUNDS)
            medians[part] = usual[part] * _medians(likely * own, grid)
    step = np.log(grid[2] / grid[1])
    exact = np.maximum(noisy, 0.0)
    medians = np.where(scale < step * exact, exact, medians)  # the grid is coarser than the noise
    return [part.reshape(np.shape(t)) for part, t in zip(np.split(medians, ends[:-1]), tables, strict=True)]


def _likeliest(likely: Floats, prior: Floats, weight: float, rounds: int) -> Floats:
    """The law on the grid under which cells are likeliest, beside a prior worth `weight` cells."""
    law = prior
    for _ in range(rounds):
        fit = likely.T @ (1 / np.maximum(likely @ law, 1e-300))
        law = (law * fit + weight * prior) / (len(likely) + weight)
        law = law / law.sum()
    return law


def _medians(weights: Floats, grid: Floats) -> Floats:
    """(cells,): the median of each cell's law on the grid, between two of its places."""
    below = np.cumsum(weights, axis=1)
    half = below[:, -1:] / 2
    at = np.maximum((below >= half).argmax(axis=1), 1)
    cells = np.arange(len(at))
    part = (half[:, 0] - below[cells, at - 1]) / np.maximum(weights[cells, at], 1e-300)
    return np.asarray(grid[at - 1] + np.clip(part, 0.0, 1.0) * (grid[at] - grid[at - 1]))


def _likelihoods(noisy: Floats, usual: Floats, scale: Floats, squared: NDArray[np.bool_], grid: Floats) -> Floats:
    """(cells, grid): how likely each noisy count is where the cell holds r times what is usual; the largest is 1."""
    away = np.abs(noisy[:, None] - usual[:, None] * grid) / scale[:, None]
    away = np.where(squared[:, None], away**2 / 2, away)
    return np.asarray(np.exp(away.min(axis=1, keepdims=True) - away))


OF_COLUMNS = {"wide": 2.0, "weight": 3.0}
OF_TABLES = {"wide": 3.0, "weight": 6.0, "most": 100.0}
OF_PUBLIC = OF_TABLES | {"wide": 1.0}
"""The priors of what a cell holds, beside even ones and beside what was expected, of private rows or of public ones."""
BALANCED = 4  # rounds of proportional fitting
RIDGE = 0.1
"""Of `fit.public_ridge`: what is fitted is drawn together already, and needs little of it."""
LEAST_NOISE = 0.2  # of the noise at least is left when a table agrees with its columns
WORK = 3e7  # cells, times the most steps of a fit
MOST_NEAR = 24
"""Columns up to which a search moves towards all tables at once: of 24 with 50,000 rows that took 52 s of CPU."""
DESCENTS, TOLERANCE = (60, 200), 1e-4
"""The least and the most steps of mirror descent after a batch, and the part of the loss that one gains at least."""
UNMEASURED = 1e9
"""The scale of a column's noise where it is known from wider tables alone: what it says weighs nothing."""


@dataclass(frozen=True, eq=False)
class Table:
    """A noisy table of counts over a clique, the law of its noise, and the counts that were expected of it before."""

    clique: Clique
    cells: Floats
    law: Laplace | Gaussian
    expected: Floats | None = None

    @property
    def noisy(self) -> Floats:
        return with_noise(np.asarray(self.cells, dtype=float), NoiseModel(self.law))

    def with_more(self, other: Table) -> Table:
        """This table and another measurement of it, by precision; what was expected is what was before both."""
        first, second = (max(t.law.scale, 1e-9) ** -2 for t in (self, other))
        noisy = (first * np.asarray(self.cells) + second * np.asarray(other.cells)) / (first + second)
        return Table(self.clique, noisy, type(self.law)((first + second) ** -0.5), self.expected)


def shrunken_model(
    domain: Domain, tables: Sequence[Table], rows: float, before: GraphicalModel | None = None,
    prior: GraphicalModel | None = None, last: bool = False,
) -> GraphicalModel:  # fmt: skip
    """The model of tables, those of single columns first, in order. Potentials start from those of `before`.

    Of many columns the `last` model of a search alone moves towards all tables at once, for its seconds.

    `prior`: a model of public rows. Columns are drawn towards its columns, and its wider tables that none is measured
    of stand as they are, but for the columns that are their margins.
    """
    many = len(domain.names)
    columns, precision = columns_of(domain, tables, rows, prior)
    public = _of_prior(prior, {t.clique for t in tables}, columns)
    structure = Structure(domain, (*(t.clique for t in tables), *public))
    laws = [*(t.law for t in tables), *(Laplace(0.0) for _ in public)]
    notes = notes_of("shrunken", GraphicalModel(structure), laws, rows)
    notes["noise"] = max(laplace_scale(law) for law in laws if law.scale < UNMEASURED)
    if len(structure.cliques) == many:
        return GraphicalModel(structure, _start(structure, columns, None), notes)
    start = _start(structure, columns, prior if before is None else before)
    if before is not None and prior is None and (last or many <= MOST_NEAR):
        return GraphicalModel(structure, nearest(structure, tables, rows, start), notes)
    targets, scales = [*columns], [*(1 / math.sqrt(p) for p in precision), *map(laplace_scale, laws[many:])]
    if len(tables) > many:
        targets += _posterior_tables(tables[many:], columns, rows, OF_TABLES if prior is None else OF_PUBLIC)
    targets += public.values()
    counted = [rows] * len(tables) + [rows if prior is None else float(prior.notes["rows"])] * len(public)
    ridges = [_ridge(scale, n, k) for scale, n, k in zip(scales, counted, structure.lengths, strict=True)]
    theta = maximum_likelihood(
        structure, np.concatenate([t.ravel() for t in targets]), np.repeat(ridges, structure.lengths), start,
        steps=int(np.clip(WORK / structure.plan.cells, 60, 300)), tolerance=1e-6,
    )  # fmt: skip
    return GraphicalModel(structure, theta, notes)


def _start(structure: Structure, columns: Sequence[Floats], model: GraphicalModel | None) -> Floats:
    """Potentials to begin with: those of a model, where it has them, and else those of the columns alone."""
    start = [np.log(c) for c in columns] + [np.zeros(shape) for shape in structure.shapes[len(columns) :]]
    if model is not None:
        thetas = dict(zip(model.structure.cliques, model.structure.split(model.theta), strict=True))
        start = [thetas.get(c, s) for c, s in zip(structure.cliques, start, strict=True)]
    return np.concatenate([s.ravel() for s in start])


def nearest(structure: Structure, tables: Sequence[Table], rows: float, theta: Floats) -> Floats:
    """Potentials of a model near to noisy tables, in squares by precision, by mirror descent from potentials before.

    McKenna, Sheldon and Miklau, *Graphical-model based estimation and inference for differential privacy*, ICML 2019.
    The steps end when they gain little: a model that goes on follows the noise.
    """
    precise = np.array([max(t.law.scale, 1e-9) for t in tables]) ** -2.0
    weights = np.repeat(precise / precise.max(), structure.lengths)
    target, pace = structure.joined([np.asarray(t.cells) / rows for t in tables]), 2.0
    mu = structure.infer(theta)[1]
    for _ in range(int(np.clip(3 * WORK / structure.plan.cells, *DESCENTS))):
        slope = weights * (mu - target)
        loss, less, other = float(slope @ (mu - target)), -math.inf, mu
        while less < slope @ (mu - other) and pace > 1e-9:
            after = theta - pace * slope
            other = structure.infer(after)[1]
            less, pace = loss - float(weights @ (other - target) ** 2), pace / 2
        theta, mu, pace = after, other, 3 * pace
        if less <= TOLERANCE * loss:
            break
    return theta


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
    return shrunken_model(domain, expected_of_columns(domain, measured, n), n)


def expected_of_columns(
    domain: Domain, tables: Sequence[Table], rows: float, prior: GraphicalModel | None = None
) -> list[Table]:
    """The tables with what is expected of them: the product of their columns, or what a `prior` has."""
    columns, _ = columns_of(domain, tables, rows, prior)
    apart = (reduce(np.multiply.outer, [columns[v] for v in t.clique]) for t in tables)
    shares = apart if prior is None else (prior.marginal(domain.names_of(t.clique)) for t in tables)
    return [replace(t, expected=rows * e) for t, e in zip(tables, shares, strict=True)]


def _ridge(scale: float, rows: float, cells: int) -> float:
    return max(RIDGE * public_ridge(scale, rows, cells), 0.1 / rows)


def columns_measured(domain: Domain, tables: Sequence[Table]) -> tuple[list[Floats], Floats]:
    """(the noisy counts of each column's values, by all tables; the precision of a cell, for Laplace noise of scale 1
    it is 1)."""
    total, precision = [np.zeros(size) for size in domain.sizes], np.zeros(len(domain.sizes))
    for t in tables:
        for axis, v in enumerate(t.clique):
            sums = np.asarray(t.cells).sum(axis=tuple(a for a in range(t.cells.ndim) if a != axis))
            weight = len(sums) / (max(laplace_scale(t.law), 1e-9) ** 2 * t.cells.size)
            total[v], precision[v] = total[v] + weight * sums, precision[v] + weight
    return [t / p for t, p in zip(total, precision, strict=True)], precision


def columns_of(
    domain: Domain, tables: Sequence[Table], rows: float, prior: GraphicalModel | None = None
) -> tuple[list[Floats], Floats]:
    """(the shares of each column's values, above 0; the precision of a cell), of what was measured.

    Drawn towards even, or towards the columns of a `prior` of public rows.
    """
    means, precision = columns_measured(domain, tables)
    usual = [np.full(len(t), rows / len(t)) for t in means]
    how = {"most": float(max(domain.sizes)), **OF_COLUMNS}
    if prior is not None:
        usual, how = [_positive(rows * prior.marginal(name), rows) * rows for name in domain.names], OF_PUBLIC
    laws = [_law(tables[0].law, 1 / math.sqrt(p)) for p in precision]
    posterior = posterior_medians(means, usual, laws, **how)
    return [_positive(t, rows) for t in posterior], precision


def _of_prior(prior: GraphicalModel | None, without: set[Clique], columns: Sequence[Floats]) -> dict[Clique, Floats]:
    """The wider tables of a prior of which none was measured, with the columns as their margins."""
    if prior is None:
        return {}
    tables = zip(prior.structure.cliques, prior.tables, strict=True)
    return {c: _balanced(np.maximum(t, 1e-9), c, columns, 1.0) for c, t in tables if len(c) > 1 and c not in without}


def _law(like: Laplace | Gaussian, scale: float) -> Laplace | Gaussian:
    return Gaussian(scale * math.sqrt(2)) if isinstance(like, Gaussian) else Laplace(scale)


def _positive(counts: Floats, rows: float) -> Floats:
    """Shares, with a fifth of a row spread over them."""
    shares = (counts + 1e-9) / (counts + 1e-9).sum()
    return (shares + 0.2 / rows / len(shares)) / (1 + 0.2 / rows)  # type: ignore[no-any-return]


def _posterior_tables(
    tables: Sequence[Table], columns: Sequence[Floats], rows: float, how: Mapping[str, float]
) -> list[Floats]:
    """The shares of wider tables, drawn towards what was expected of them, with the columns as their margins."""
    noisy, expected, laws = [], [], []
    for t in tables:
        table = np.asarray(t.cells, dtype=float)
        table = table + (rows - table.sum()) / table.size
        for axis, v in enumerate(t.clique):
            gap = rows * columns[v] - table.sum(axis=tuple(a for a in range(table.ndim) if a != axis))
            table = table + along(gap * (table.shape[axis] / table.size), axis, table.ndim)
        free = 1 - (1 + sum(len(columns[v]) - 1 for v in t.clique)) / table.size
        noisy.append(table)
        expected.append(_balanced(np.maximum(np.asarray(t.expected), 1e-9 * rows), t.clique, columns, rows))
        laws.append(Gaussian(laplace_scale(t.law) * math.sqrt(2) * max(math.sqrt(max(free, 0.0)), LEAST_NOISE)))
    posterior = posterior_medians(noisy, expected, laws, **how)
    return [
        _balanced(np.maximum(d, 1e-9 * e), t.clique, columns, 1.0)
        for d, e, t in zip(posterior, expected, tables, strict=True)
    ]


def _balanced(table: Floats, clique: Clique, columns: Sequence[Floats], total: float) -> Floats:
    """The table with the columns' shares of `total` as its margins, by proportional fitting."""
    for _ in range(BALANCED):
        for axis, v in enumerate(clique):
            sums = table.sum(axis=tuple(a for a in range(table.ndim) if a != axis))
            table = table * along(total * columns[v] / np.maximum(sums, 1e-300), axis, table.ndim)
    return table
