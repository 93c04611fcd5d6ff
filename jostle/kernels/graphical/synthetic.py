"""Synthetic ground-truth models (Bernstein et al., ICML 2017, section 4.1), intervals, and bins turned back into
values.

*Intervals* for the marginals of a learned model, by parametric bootstrap: a replicate is a population of as many
independent rows of it; their tables have noise of the same law and scale as was measured, and a model learned from
these in the same way. How replicates scatter about the model tells how the model scatters about the truth; what is
systematic shows as their mean's distance from it and is taken off. Basic intervals: 2p − (the quantiles of the
replicates), within [0, 1] (Davison & Hinkley 1997, section 5.2; for private releases Ferrando, Wang & Sheldon, AISTATS
2022).

*Bins*: of all laws on a bin with a given mean, that of largest entropy has a density proportional to exp(λx); λ = 0 is
uniform.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jostle.kernels import KernelError
from jostle.kernels.arrays import Floats, Ints
from jostle.kernels.graphical.domain import MOST_VALUES, Domain
from jostle.kernels.graphical.learn import cgm_fit, naive_fit
from jostle.kernels.graphical.model import MOST_ROWS, GraphicalModel, SyntheticRows, sample
from jostle.kernels.graphical.shrunken import shrunken_fit
from jostle.kernels.noisy_array import NoiseModel, with_noise
from jostle.noise_laws import ADDITIVE, Laplace


def random_model(model: GraphicalModel, seed: float = 0, concentration: float = 1.0) -> GraphicalModel:
    """Draws a model over the same cliques; the exponentials of each clique's potentials are Dirichlet."""
    rng = np.random.default_rng(int(seed))
    shares = [rng.dirichlet(np.full(cells, float(concentration))) for cells in model.structure.lengths]
    return GraphicalModel(model.structure, np.log(np.maximum(np.concatenate(shares), 1e-300)))


def population(model: GraphicalModel, rows: float, seed: float = 0) -> SyntheticRows:
    """Independent rows of a model, with the sampling error that real rows have (`model.sample` has next to none)."""
    if not 1 <= rows <= MOST_ROWS:
        raise KernelError(f"a population has 1 to {MOST_ROWS:,} rows, not {rows}")
    return _population(model, int(rows), int(seed))


def _population(model: GraphicalModel, rows: int, seed: int) -> SyntheticRows:
    return SyntheticRows(model.domain, sample(model.calibrated, rows, np.random.default_rng(seed), stratified=False))


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


MOST_TRIES = 10_000


def random_graph(names: Sequence[str], edges: float, seed: float = 0) -> list[list[str]]:
    """A connected Erdős–Rényi graph with so many edges, as pairs of names."""
    names, many = list(names), int(edges)
    pairs = [[a, b] for i, a in enumerate(names) for b in names[i + 1 :]]
    if not len(names) - 1 <= many <= len(pairs):
        raise KernelError(f"a connected graph of {len(names)} variables has {len(names) - 1} to {len(pairs)} edges")
    rng = np.random.default_rng(int(seed))
    for _ in range(MOST_TRIES):
        selected_edges = [pairs[i] for i in sorted(rng.choice(len(pairs), many, replace=False))]
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
        flat = joined_tables(model, _population(model, rows, 2 * seed))
    else:
        flat = rows * np.concatenate([t.ravel() for t in model.tables])
    learning = model.learning
    exact = learning.split(flat if model.ties is None else model.ties.means(flat))
    tables: list[object] = []
    for i, (table, noise) in enumerate(zip(exact, model.notes["measured"], strict=True)):
        law, rng = ADDITIVE[noise["mechanism"]](noise["scale"]), np.random.default_rng([2 * seed + 1, i])
        draw = rng.laplace if isinstance(law, Laplace) else rng.normal
        tables.append(with_noise(table + draw(0.0, law.scale, table.shape), NoiseModel(law)) if law.scale else table)
    plain = GraphicalModel(model.structure, ties=model.ties)
    return ESTIMATORS[model.notes["learned"]](plain, tables, model.notes["rows"])


STEEPEST = 500.0
"""Of λ times the width of a bin: a mean nearer to an end of the bin than a 500th of it is taken for that end."""

TURNS = 5

MOST_LISTED = 1024
"""Whole numbers of a bin that are drawn among one by one; of more, their law is taken as continuous."""


def unbinned_rows(
    rows: object, cuts: Mapping[str, Any], columns: Mapping[str, Any], seed: int = 0,
    means: Mapping[str, Any] | None = None,
) -> SyntheticRows:  # fmt: skip
    """`rows`, synthetic, with the columns of `cuts` as numbers again.

    `cuts`: for each cut column the edges of its bins, of which value b says how many a number reaches. `columns`: for
    each of these its public bounds and whether it holds whole numbers, [low, high, whole]. A bin is a range from an
    edge to below the next, within the bounds; one that holds no number of the column stands for the nearest bound or
    edge. `means`: for some columns a record with the mean of each bin in `bins`, which the numbers drawn from it have
    (a mean outside its bin is the nearest end); others are drawn uniformly. Seeded: the rows are a model's, and nothing
    private is left to hide.
    """
    if not isinstance(rows, SyntheticRows):
        raise KernelError("only synthetic rows, as a model samples them, can be spread over their bins")
    rng = np.random.default_rng(int(seed))
    values, codes = list(rows.domain.values), rows.codes.copy()
    for name, edges in cuts.items():
        if name not in columns:
            raise KernelError(f"there is no numeric column `{name}` in the table")
        place = rows.domain.place(name)
        bins = np.array(rows.domain.values[place], dtype=float)[codes[:, place]].astype(np.int64)
        low, high, whole = columns[name]
        first, last = _ends(np.unique(np.asarray(list(edges), dtype=float)), float(low), float(high), bool(whole))
        bin_means = (first + last) / 2
        if means is not None and name in means:
            bin_means = np.asarray(list(means[name]["bins"]), dtype=float)
            if bin_means.shape != first.shape or not np.isfinite(bin_means).all():
                raise KernelError(f"`{name}` has {len(first)} bins, and `means.{name}.bins` a number for each")
        numbers = _from_bins(bins, first, last, bin_means, bool(whole), rng)
        values[place], codes[:, place] = _encode(numbers, float(low), float(high), bool(whole))
    return SyntheticRows(Domain(rows.domain.names, tuple(values)), codes)


def model_of_means(model: GraphicalModel, means: Mapping[str, Any]) -> GraphicalModel:
    """The model nearest to `model` in which each column of `means` has its `mean`, each bin counting as its `bins` say.

    Nearest in the divergence D(· ‖ model): the potentials of such a column grow by λ times the means of its bins.
    Columns take turns, as in iterative proportional fitting. A mean beyond those of the bins is brought within them.
    """
    if not isinstance(model, GraphicalModel) or model.ties is not None:
        raise KernelError("means are kept in a graphical model of its own cliques")
    places = {name: model.domain.clique([name]) for name in means}
    for name, place in places.items():
        if place not in model.structure.cliques:
            raise KernelError(f"`{name}` is no clique of the model by itself")
    ends = np.cumsum([0, *model.structure.lengths])
    for _ in range(TURNS):
        for name, place in places.items():
            at = np.asarray(list(means[name]["bins"]), dtype=float)
            law = model.marginal(name)
            if at.shape != law.shape:
                raise KernelError(f"`{name}` has {len(law)} bins, and `means.{name}.bins` a number for each")
            low, high = float(at.min()), float(at.max())
            if high > low:
                unit = (at - low) / (high - low)
                share = min(max((float(means[name]["mean"]) - low) / (high - low), 0.0), 1.0)
                tilt = _tilt(lambda t, law=law, unit=unit: _mean_under(law, unit, t), share)  # type: ignore[misc]
                theta, clique = model.theta.copy(), model.structure.cliques.index(place)
                theta[ends[clique] : ends[clique + 1]] += tilt * unit
                model = GraphicalModel(model.structure, theta, model.notes)
    return model


def _mean_under(law: Floats, unit: Floats, tilt: float) -> float:
    weights = law * np.exp(tilt * unit - max(tilt, 0.0))
    return float(weights @ unit / weights.sum()) if weights.sum() > 0 else float(tilt > 0)


def _ends(edges: Floats, low: float, high: float, whole: bool) -> tuple[Floats, Floats]:
    """The least and the largest number of each bin within the bounds."""
    first, last = np.concatenate([[low], edges]), np.concatenate([edges, [high]])
    if whole:  # the last bin ends with the bound, the others before an edge
        first, last = np.ceil(first), np.append(np.ceil(last[:-1]) - 1, np.floor(high))
    first = np.clip(first, low, high)
    return first, np.clip(last, first, high)


def _from_bins(bins: Ints, first: Floats, last: Floats, means: Floats, whole: bool, rng: np.random.Generator) -> Floats:
    """One number for each bin number, of the law of largest entropy with the mean of its bin."""
    numbers = np.empty(len(bins))
    for b in np.unique(bins):
        rows = np.flatnonzero(bins == b)
        numbers[rows] = _samples(float(first[b]), float(last[b]), float(means[b]), whole, rng.random(len(rows)))
    return numbers


def _samples(first: float, last: float, mean: float, whole: bool, chances: Floats) -> Floats:
    """Numbers of [first, last], or whole ones, whose law has this mean, at these chances."""
    many = last - first + 1
    if whole and many <= MOST_LISTED:
        unit = np.arange(int(many)) / max(many - 1, 1.0)
        share = (mean - first) / max(last - first, 1.0)
        law = _tilted(unit, _tilt(lambda t: float(_tilted(unit, t) @ unit), share))
        return np.asarray(first + np.minimum(np.searchsorted(np.cumsum(law), chances, side="right"), int(many) - 1))
    width = many if whole else last - first
    if width <= 0:
        return np.full(len(chances), first)
    tilt = _tilt(_mean_of_tilt, (mean + (0.5 if whole else 0.0) - first) / width)
    spread = chances if abs(tilt) < 1e-9 else np.log1p(chances * math.expm1(tilt)) / tilt
    return np.asarray(first + (np.minimum(np.floor(spread * width), many - 1) if whole else spread * width))


def _tilted(places: Floats, tilt: float) -> Floats:
    """Probabilities proportional to exp(tilt · place), of places in [0, 1]."""
    weights = np.exp(tilt * places - max(tilt, 0.0))
    return np.asarray(weights / weights.sum())


def _mean_of_tilt(tilt: float) -> float:
    """The mean of the density proportional to exp(tilt · x) on [0, 1]."""
    if abs(tilt) < 1e-4:
        return 0.5 + tilt / 12
    return 1 / -math.expm1(-tilt) - 1 / tilt


def _tilt(mean_of: Callable[[float], float], share: float) -> float:
    """The tilt whose mean is `share`, which lies in [0, 1], by bisection; the steepest where there is none."""
    low, high = -STEEPEST, STEEPEST
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if mean_of(middle) < share else (low, middle)
    return (low + high) / 2


def _encode(numbers: Floats, low: float, high: float, whole: bool) -> tuple[tuple[float, ...], Ints]:
    """The values of a column and a code for each row; a range that is too wide to list has those that were drawn."""
    if whole and high - low < MOST_VALUES:
        return tuple(low + i for i in range(int(high - low) + 1)), (numbers - low).astype(np.int64)
    distinct, codes = np.unique(numbers, return_inverse=True)
    return tuple(float(v) for v in distinct), codes.astype(np.int64).ravel()
