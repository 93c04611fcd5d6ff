"""Synthetic ground-truth models and samples for experiments.

Bernstein et al. (ICML 2017, section 4.1): potentials drawn from a Dirichlet distribution, independent rows of the
model they make, the rows' clique tables.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.errors import KernelError
from jostle.kernels.graphical.model import MOST_ROWS, GraphicalModel
from jostle.kernels.graphical.rows import SyntheticRows
from jostle.kernels.graphical.sampling import dirichlet, independent_sample
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
    from jostle.kernels.graphical.sampling import subsets

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
