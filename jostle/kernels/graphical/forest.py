"""Forests of pairs: how many pairs rows can show, and the model, in closed form.

Tables are drawn by empirical Bayes towards what a model without them expects: single columns towards even, as all
columns together are, pairs towards the product of their columns. So a pair that noise explains joins nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.errors import KernelError
from jostle.kernels.graphical.empirical_bayes import posterior_means
from jostle.kernels.graphical.learn import notes_of, rows_in
from jostle.kernels.graphical.model import GraphicalModel
from jostle.kernels.noisy_array import law_of
from jostle.noise_laws import Gaussian, Laplace

NO_PAIRS, ALL_PAIRS = 60.0, 200.0
"""Rows in units of a column's noise: up to which no pair is worth its price, and from which a whole tree is."""
OF_SINGLES = {"wide": 2.0, "weight": 3.0}
OF_PAIRS = {"wide": 1.0, "weight": 6.0, "most": 100.0}
"""The priors of what a cell holds, beside even ones and beside a product."""
BALANCED = 12  # rounds of proportional fitting


def pairs_worth(strength: float) -> float:
    """The part of a tree, 0 to 1, that pays: `strength` is the rows in units of a column's noise, ε n / columns.

    Settled on made-up tables and on public ones (docs/experiments/advisors.md).
    """
    return float(np.clip(np.log(max(strength, 1.0) / NO_PAIRS) / np.log(ALL_PAIRS / NO_PAIRS), 0.0, 1.0))


def forest_fit(model: GraphicalModel, tables: Sequence[Any], rows: Any = None) -> GraphicalModel:
    """The model of noisy tables, one a clique: of each column, in order, and of pairs that make no circle.

    What pairs tell of a column is averaged with its own table by precision. Post-processing: it costs nothing.
    """
    domain, cliques = model.domain, model.structure.cliques
    many = len(domain.names)
    if cliques[:many] != tuple((v,) for v in range(many)) or not _is_forest(many, cliques[many:]):
        raise KernelError("a forest has a table of each column, in order, and pairs of columns that make no circle")
    n = rows_in(tables, rows)
    noises = [law_of(t) for t in tables]
    seen = [np.asarray(t, dtype=float) for t in tables]
    margins = _columns(cliques, seen, noises, n)
    pairs, expected = cliques[many:], [n * np.outer(margins[a], margins[b]) for a, b in cliques[many:]]
    theta = [np.log(p) for p in margins]
    if pairs:
        drawn = posterior_means(seen[many:], expected, noises[many:], **OF_PAIRS)
        theta += [
            _interaction(t, margins[a], margins[b], e) for t, e, (a, b) in zip(drawn, expected, pairs, strict=True)
        ]
    notes = notes_of("forest", model, noises, n)
    return model.with_potentials(np.concatenate([t.ravel() for t in theta]), notes)


def _is_forest(many: int, pairs: Sequence[Sequence[int]]) -> bool:
    part = list(range(many))
    for pair in pairs:
        if len(pair) != 2 or part[pair[0]] == part[pair[1]]:
            return False
        old, new = part[pair[0]], part[pair[1]]
        part = [new if at == old else at for at in part]
    return True


def _columns(
    cliques: Sequence[Sequence[int]], seen: Sequence[Floats], noises: Sequence[Laplace | Gaussian], rows: float
) -> list[Floats]:
    """The shares of each column's values, above 0."""
    many = sum(len(clique) == 1 for clique in cliques)
    total, precision = [np.zeros(1)] * many, np.zeros(many)
    for clique, table, noise in zip(cliques, seen, noises, strict=True):
        for axis, v in enumerate(clique):
            sums = table if table.ndim == 1 else table.sum(axis=1 - axis)
            weight = len(sums) / (max(noise.laplace_scale, 1e-9) ** 2 * table.size)
            total[v], precision[v] = total[v] + weight * sums, precision[v] + weight
    tables = [t / p for t, p in zip(total, precision, strict=True)]
    even = [np.full(len(t), rows / len(t)) for t in tables]
    laws = [type(noises[v])(1 / np.sqrt(precision[v])) for v in range(many)]
    laws = [law if isinstance(law, Laplace) else Gaussian(law.scale * np.sqrt(2)) for law in laws]
    drawn = posterior_means(tables, even, laws, most=float(max(map(len, tables))), **OF_SINGLES)
    return [_positive(t, rows) for t in drawn]


def _positive(counts: Floats, rows: float) -> Floats:
    """Shares, with a fifth of a row spread over them."""
    kept = counts + 1e-9
    shares = kept / kept.sum()
    return (shares + 0.2 / rows / len(shares)) / (1 + 0.2 / rows)  # type: ignore[no-any-return]


def _interaction(table: Floats, first: Floats, second: Floats, expected: Floats) -> Floats:
    """The log of a pair's table over the product of its columns, once it has their shares as its margins."""
    fitted = np.maximum(table, 1e-9 * expected)
    for _ in range(BALANCED):
        fitted = fitted * (first / fitted.sum(axis=1))[:, None]
        fitted = fitted * (second / fitted.sum(axis=0))
    return np.log(fitted / np.outer(first, second))
