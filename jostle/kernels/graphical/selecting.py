"""The candidate cliques of a structure search; the language selects among them privately."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

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


def expected_counts(model: GraphicalModel, names: object, rows: float) -> Any:
    """The table that a model expects of `rows` rows."""
    return max(float(rows), 0.0) * model.marginal(names)
