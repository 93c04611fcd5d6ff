"""The candidate cliques of a structure search; the language selects among them privately."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from jostle.kernels.graphical.junction import cells_needed
from jostle.kernels.graphical.model import GraphicalModel


def joining_pairs(names: Sequence[str], chosen: Sequence[Sequence[str]]) -> list[list[str]]:
    """The pairs of `names` that join two parts of the forest that `chosen` pairs make so far, in order."""
    part = {name: i for i, name in enumerate(names)}
    for a, b in chosen:
        old, new = part[a], part[b]
        part = {name: new if at == old else at for name, at in part.items()}
    return [[a, b] for a, b in combinations(names, 2) if part[a] != part[b]]


def joining_places(
    names: Sequence[str], chosen: Sequence[Sequence[str]], pairs: Sequence[Sequence[str]]
) -> list[float]:
    """The places in `pairs` of those that `joining_pairs` lists."""
    joining = {(a, b) for a, b in joining_pairs(names, chosen)}
    return [float(place) for place, (a, b) in enumerate(pairs) if (a, b) in joining]


def fitting_pairs(model: GraphicalModel, most: float = 2e6, largest: float = 1e5) -> list[list[str]]:
    """The pairs that are no clique yet and leave exact inference `most` cells at most when added, in order.

    No pair of more than `largest` values is among them: its noise would drown what it tells.
    """
    domain, cliques = model.domain, model.structure.cliques
    present = {frozenset(clique) for clique in cliques}
    pairs: list[list[str]] = []
    for a, b in combinations(range(len(domain.names)), 2):
        if any({a, b} <= clique for clique in present) or domain.sizes[a] * domain.sizes[b] > largest:
            continue
        if cells_needed(domain.sizes, (*cliques, (a, b))) <= most:
            pairs.append(domain.names_of((a, b)))
    return pairs


def expected_counts(model: GraphicalModel, names: Any, rows: float) -> Any:
    """The table that a model expects of `rows` rows."""
    return max(float(rows), 0.0) * model.marginal(names)
