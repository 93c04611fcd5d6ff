"""Synthetic ground-truth models and samples for experiments.

Bernstein et al. (ICML 2017, section 4.1): potentials drawn from a Dirichlet distribution, independent rows of the
model they make, the rows' clique tables.

Intervals for the marginals of a learned model, by parametric bootstrap from the model alone; they cost nothing.

The learned model stands for the truth. A replicate is a population of as many independent rows of it, their tables with
noise of the same law and scale as was measured, and a model learned from these in the same way. How replicates scatter
about the model tells how the model scatters about the truth; what is systematic (the ridge draws towards uniform) shows
as their mean's distance from it and is taken off. Basic intervals: 2p − (the quantiles of the replicates), within
[0, 1] (Davison & Hinkley 1997, section 5.2; for private releases Ferrando, Wang & Sheldon, AISTATS 2022).

Beyond MOST_ROWS rows are not drawn: tables then are the model's own, as sampling is little beside the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.errors import KernelError
from jostle.kernels.graphical.learn import cgm_fit, naive_fit
from jostle.kernels.graphical.model import (
    MOST_ROWS,
    GraphicalModel,
    SyntheticRows,
    dirichlet,
    independent_sample,
    noise_array,
    subsets,
)
from jostle.kernels.graphical.shrunken import shrunken_fit
from jostle.kernels.noisy_array import NoiseModel, with_noise
from jostle.noise_laws import ADDITIVE


def random_model(model: GraphicalModel, seed: float = 0, concentration: float = 1.0) -> GraphicalModel:
    """Draws a model over the same cliques; the exponentials of each clique's potentials are Dirichlet."""
    potentials = [np.log(np.maximum(p, 1e-300)) for p in dirichlet(model.structure.lengths, concentration, int(seed))]
    return GraphicalModel(model.structure, np.concatenate(potentials))


def population(model: GraphicalModel, rows: float, seed: float = 0) -> SyntheticRows:
    """Independent rows of a model, with the sampling error that real rows have (`model.sample` has next to none)."""
    if not 1 <= rows <= MOST_ROWS:
        raise KernelError(f"a population has 1 to {MOST_ROWS:,} rows, not {rows}")
    return SyntheticRows(model.domain, independent_sample(model.calibrated, int(rows), int(seed)))


def joined_tables(model: GraphicalModel, rows: SyntheticRows) -> Floats:
    """The clique tables of some rows, one after the other in one flat vector of counts."""
    return model.structure.joined([rows.table(*model.domain.names_of(c)) for c in model.structure.cliques])


def tables_with_noise(model: GraphicalModel, flat: object, scale: float, kind: str = "laplace") -> list[Floats]:
    """A flat vector as clique tables whose noise is known to have this scale; of scale 0, exact."""
    vector = np.asarray(flat, dtype=float).ravel()
    if vector.size != sum(model.structure.lengths):
        raise KernelError(f"{vector.size} cells for tables of {sum(model.structure.lengths)}")
    split = model.structure.split(vector)
    return [with_noise(t, NoiseModel(ADDITIVE[kind](float(scale)))) for t in split] if scale > 0 else split


def random_graph(names: Sequence[str], edges: float, seed: float = 0) -> list[list[str]]:
    """A connected Erdős–Rényi graph with so many edges, as pairs of names."""
    names, many = list(names), int(edges)
    pairs = [[a, b] for i, a in enumerate(names) for b in names[i + 1 :]]
    if not len(names) - 1 <= many <= len(pairs):
        raise KernelError(f"a connected graph of {len(names)} variables has {len(names) - 1} to {len(pairs)} edges")
    for selection in subsets(len(pairs), many, int(seed)):
        selected_edges = [pairs[i] for i in selection]
        component = {names[0]}
        for _ in names:
            component |= {v for pair in selected_edges if component & set(pair) for v in pair}
        if len(component) == len(names):
            return selected_edges
    raise KernelError("no connected graph was found")


def chain_cliques(names: Sequence[str], order: float = 1) -> list[list[str]]:
    """The pairs at most `order` apart: a chain of that order."""
    names = list(names)
    return [[a, b] for i, a in enumerate(names) for b in names[i + 1 : i + 1 + int(order)]]


ESTIMATORS = {"naive": naive_fit, "cgm": cgm_fit, "shrunken": shrunken_fit}
MOST_RESAMPLED_ROWS = 10**6


def intervals(
    model: GraphicalModel, names: Sequence[str], coverage: float = 0.9, replicates: float = 100, seed: float = 0
) -> dict[str, Floats]:
    """`low` and `high` for `model.marginal(names)`, of its shape, and the `estimate` in between.

    Each cell's interval by itself covers the truth with a probability of about `coverage`. Takes as long as learning
    the model `replicates` times. ValueError for models that output perturbation or gradients learned.
    """
    if model.notes.get("learned") not in ESTIMATORS or "measured" not in model.notes:
        raise KernelError("intervals are of models that `naive_mle`, `cgm` or `learn_tables` learned from noisy tables")
    if not 0 < coverage < 1 or not 2 <= replicates <= 10_000:
        raise KernelError("a coverage lies between 0 and 1, and there are 2 to 10,000 replicates")
    names = [names] if isinstance(names, str) else list(names)
    replicas = np.stack([_replicate(model, int(seed) + i).marginal(names) for i in range(int(replicates))])
    estimate, tail = model.marginal(names), (1 - coverage) / 2
    high, low = (2 * estimate - np.quantile(replicas, q, axis=0) for q in (tail, 1 - tail))
    return {"low": np.clip(low, 0.0, 1.0), "high": np.clip(high, 0.0, 1.0), "estimate": estimate}


def _replicate(model: GraphicalModel, seed: int) -> GraphicalModel:
    rows = max(1, round(model.notes["rows"]))
    if rows <= MOST_RESAMPLED_ROWS:
        replica = SyntheticRows(model.domain, independent_sample(model.calibrated, rows, 2 * seed))
        flat = model.structure.joined([replica.table(*model.domain.names_of(c)) for c in model.structure.cliques])
    else:
        flat = rows * np.concatenate([t.ravel() for t in model.tables])
    learning = model.learning
    exact = learning.split(flat if model.ties is None else model.ties.means(flat))
    tables: list[Any] = []
    for i, (table, noise) in enumerate(zip(exact, model.notes["measured"], strict=True)):
        law = ADDITIVE[noise["mechanism"]](noise["scale"])
        noisy = table + noise_array(table.shape, law, 2 * seed + 1, i) if law.scale > 0 else table
        tables.append(with_noise(noisy, NoiseModel(law)) if law.scale > 0 else table)
    plain = GraphicalModel(model.structure, ties=model.ties)
    return ESTIMATORS[model.notes["learned"]](plain, tables, model.notes["rows"])
