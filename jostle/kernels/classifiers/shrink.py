"""Naive Bayes whose noisy tables are shrunk towards independence by empirical Bayes.

Plain naive Bayes takes noisy counts for counts. Here cell (c, v) of an attribute's table is N_c·p_v + d. That is
what class counts and value counts alone would give and a difference d ~ N(0, τ²·N_c·p_v·n/(C·V)), measured with noise
of a known law. How strongly an attribute speaks, τ, is one of `SPREADS`, in shares that the attributes of the table
at hand find by expectation and maximisation (empirical Bayes). A cell also varies by chance as Poisson counts do.
The weights are those of the posterior means of d.

Laplace noise makes the posterior mean of a cell level off: far from what is expected it says no more than near by.
So an attribute without a voice is nearly silent, and where all is noise the most frequent class answers.

Where values are numbers, neighbours mostly speak alike. Half of the prior then says that d over √(N_c·p_v·n/(C·V)) is
a walk along the values: the variance of its cosine of frequency f falls with 1/f². Its noise is a sum over cells, and
counts as normal.

Where attributes together gain no evidence over none that speaks, all of them are drawn towards silence, alike.

All of it is post-processing of what was released. Shapes: C classes, V values of an attribute, G = `len(SPREADS)`.

Several classifiers as one: the product of their probabilities, each to the power of a weight.

A tree says what a few attributes show together, and sums of one number an attribute what each shows by itself. Their
product ranks rows within a leaf, and trusts each as far as its weight goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle.kernels import KernelError
from jostle.kernels.arrays import Floats
from jostle.kernels.classifiers.codes import Cuts, Value, value_tuple
from jostle.kernels.classifiers.fits import (
    Attribute,
    bins_of,
    branched_model,
    class_counts,
    has_order,
    prior_counts,
    value_shares,
    values_of,
)
from jostle.kernels.classifiers.growing import GrowingTree
from jostle.kernels.classifiers.models import (
    AdditiveClassifier,
    Binned,
    Branched,
    Classifier,
    Columns,
    Words,
    ends_of,
    rows_of,
    tables_at,
)
from jostle.kernels.classifiers.treemodel import Trees
from jostle.kernels.noisy_array import law_of
from jostle.kernels.rowprograms.decisions import Cell, Cells, Logs, scaled_sums
from jostle.noise_laws import Gaussian, Laplace
from jostle.privacy.rows.expressions import Expression
from jostle.privacy.rows.folds import PublicTree

SPREADS = np.array([0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6])
SHARES = np.array([0.05, 0.05, 0.1, 0.2, 0.3, 0.25, 0.05])
"""The prior shares of attributes of each strength: those of public tables are mostly between 0.1 and 1."""
STRENGTH = 10.0
"""The weight of the prior `SHARES`, in attributes."""
SPEAKS = 0.75
"""How probable it is, before they are seen, that attributes say anything at all: else every one of them is silent."""
ROUNDS = 30
SMALLEST = 1e-9
"""The least variance, for an attribute without influence."""
ALIKE = 0.5
"""The prior share of attributes with an order of which neighbours speak alike."""
ABOVE, EACH = 4.0, 0.05
"""Rows of each class that a leaf is given with the shares of all rows, and of each of its cells."""
NONE = 0.01
"""Noise below this scale counts as none."""
HALF = 0.5
"""The power by which a class's weights are made to be shares of it. In full, a class keeps nothing of what all its
tables say of its size; not at all, the tables' noise speaks for or against the whole class."""


def shrunk_bayes_model(
    classes: Sequence[Value], attributes: Sequence[Attribute], tables: Sequence[Floats]
) -> AdditiveClassifier:
    """The model from tables (C, V), one an attribute, of one measurement, whose noise they carry (none: exact)."""
    noise = law_of(tables[0])
    plain = [np.asarray(t, dtype=float) for t in tables]
    class_sizes = prior_counts(plain, noise.deviation)
    weights = {}
    for attribute, (e, d) in zip(attributes, _estimates(plain, class_sizes, noise, attributes), strict=True):
        cells = np.maximum(e + d, 0) + 1
        own = np.log(cells.sum(axis=1, keepdims=True) / (e + 1).sum(axis=1, keepdims=True))
        weights[str(attribute["name"])] = (values_of(attribute), np.log(cells / (e + 1)) - HALF * own)
    return AdditiveClassifier(
        "shrunk naive Bayes", value_tuple(classes), np.log(class_sizes), weights, bins=bins_of(attributes)
    )


def bayes_tree_model(
    classes: Sequence[Value], attributes: Sequence[Attribute], tree: GrowingTree, counts: Sequence[Sequence[float]]
) -> Classifier:
    """Naive Bayes in each leaf of a tree, whose tables are drawn towards those of all rows, and these as above.

    `counts` are of each attribute those at the leaves of the tree that `tree_split_by` makes of it, of each leaf its
    classes one after the other; all have noise of one law. Where leaves say no more than noise, the model is that of
    all rows.
    """
    noise, public = law_of(counts[0]), tree.tree
    places = _places(public)
    at = [places[leaf] for leaf in public.leaves.tolist()]  # of each leaf the values that are asked on the way there
    tables = [_at_leaves(vector, name, at, len(classes)) for vector, name in zip(counts, public.names, strict=True)]
    among = replace(noise, scale=noise.scale * np.sqrt(len(at)))
    whole = [np.sum([t if t.ndim > 1 else np.outer(t, np.arange(wide) == there[name])
                     for t, there in zip(some, at, strict=True)], axis=0)
             for some, name, wide in zip(tables, public.names, public.branches, strict=True)]  # fmt: skip
    sizes = prior_counts(whole, among.deviation)
    cells = [np.maximum(e + d, 0) + 1 for e, d in _estimates(whole, sizes, among, attributes)]
    shares = [c / c.sum(axis=1, keepdims=True) for c in cells]
    # How many rows of each class a leaf has, drawn towards as many of each as all rows have.
    leaf_tables = [[t[leaf].reshape(len(classes), -1) for t in tables] for leaf in range(len(at))]
    many = np.mean([sum(1 / t.shape[1] for t in some) for some in leaf_tables])
    fewer = replace(noise, scale=noise.scale / np.sqrt(many))
    ((even, gap),) = _estimates([np.stack([class_counts(some) for some in leaf_tables], axis=1)], sizes, fewer)
    rows = np.maximum(even + gap, 1.0).T
    pairs = [(leaf, j) for leaf in range(len(at)) for j, t in enumerate(tables) if t[leaf].ndim > 1]
    expected = [rows[leaf][:, None] * shares[j] for leaf, j in pairs]
    gaps = differences([tables[j][leaf] - e for (leaf, j), e in zip(pairs, expected, strict=True)], expected, noise)
    logs: list[dict[str, tuple[tuple[Value, ...], Floats]]] = [{} for _ in at]
    for (leaf, j), e, gap in zip(pairs, expected, gaps, strict=True):
        logs[leaf][public.names[j]] = values_of(attributes[j]), _weights(e, gap, shares[j])
    kind, labels, bins = "shrunk naive Bayes", value_tuple(classes), bins_of(attributes)
    models = [AdditiveClassifier(kind, labels, np.log(n), w, bins=bins) for n, w in zip(rows, logs, strict=True)]
    return _branched(public, attributes, 0, dict(zip(public.leaves.tolist(), models, strict=True)))


VARIES = 0.7
"""The variance of a column within its bounds, over that of an even spread, or of as many rows at either end."""


def contrast_model(
    classes: Sequence[Value], attributes: Sequence[Attribute], codes: Sequence[Sequence[Floats]], sums: Sequence[float],
    noise: float, sizes: Sequence[float],
) -> AdditiveClassifier:  # fmt: skip
    """Scores of two classes from how far their means are apart, by each attribute's `codes`: functions of its values
    within ±1. `sums`, of deviation `noise`, are such differences times the rows of the smaller class; `sizes` (2,) how
    many rows each has. A difference is drawn towards 0 as `SPREADS` and `SHARES` say, which attributes find together.
    """
    smaller, rows = min(sizes), 1 / sizes[0] + 1 / sizes[1]
    apart = iter(np.asarray(sums, dtype=float) / smaller)
    evidence, means = [], []
    for some in codes:
        gaps = np.array([next(apart) for _ in some])
        variance = VARIES * np.var(np.asarray(some[0], dtype=float))
        prior, error = 2 * variance * SPREADS[:, None] ** 2, (noise / smaller) ** 2
        chance = prior + error + variance * rows
        evidence.append((-(gaps**2) / (2 * chance) - np.log(chance) / 2).sum(axis=1))
        means.append(prior / (prior + error + 0.3 * variance * rows) * gaps / variance)
    weights = {}
    for attribute, some, belief, mean in zip(attributes, codes, _beliefs(np.array(evidence)), means, strict=True):
        odds = (belief @ mean) @ np.array(some, dtype=float)
        odds = (odds - odds.mean()) / 2
        weights[str(attribute["name"])] = values_of(attribute), np.stack([-odds, odds])
    return AdditiveClassifier("contrasts", value_tuple(classes), np.zeros(2), weights, bins=bins_of(attributes))


def class_means_model(
    classes: Sequence[Value], attributes: Sequence[Attribute], codes: Sequence[Sequence[Floats]],
    sums: Sequence[Floats], noise: float, others: AdditiveClassifier | None = None,
) -> AdditiveClassifier:  # fmt: skip
    """Scores of classes from how far their means are from those of all rows, by each attribute's `codes`: functions of
    its values within ±1. Of each class the `sums` (C, 1 + codes) have its rows and the codes added up over these, with
    noise of deviation `noise`. A difference is drawn towards 0 as `SPREADS` and `SHARES` say, which attributes find
    together. `others`: what the attributes without codes say.
    """
    seen, error = np.asarray(sums, dtype=float), max(noise, NONE) ** 2
    sizes = prior_counts([seen[:, :1]], np.sqrt(error))
    means = seen[:, 1:].sum(axis=0) / sizes.sum()
    means /= 1 + 3 * len(sizes) * error / sizes.sum() ** 2
    gaps = iter((seen[:, 1:] / sizes[:, None] - means).T)
    errors, chances = error / sizes**2, 1 / sizes
    evidence, shifts = [], []
    for some in codes:
        variance = VARIES * np.var(np.asarray(some[0], dtype=float))
        gap, prior = np.stack([next(gaps) for _ in some], axis=1), variance * SPREADS[:, None, None] ** 2
        chance = prior + (errors + variance * chances)[:, None]
        logs = -(gap**2) / (2 * chance) - np.log(chance) / 2
        evidence.append((1 - 1 / len(sizes)) * logs.sum(axis=(1, 2)))
        shifts.append(prior / (prior + (errors + 0.3 * variance * chances)[:, None]) * gap / variance)
    weights, middles = {}, iter(means)
    for attribute, some, belief, shift in zip(attributes, codes, _beliefs(np.array(evidence)), shifts, strict=True):
        slopes, variance = np.einsum("g,gck->ck", belief, shift), VARIES * np.var(np.asarray(some[0], dtype=float))
        middle = np.array([next(middles) for _ in some])
        scores = slopes @ np.array(some, dtype=float) - (slopes * (middle + variance * slopes / 2)).sum(axis=1)[:, None]
        weights[str(attribute["name"])] = values_of(attribute), scores
    bins = bins_of(attributes) | ({} if others is None else dict(others.bins))
    weights |= {} if others is None else others.weights
    return AdditiveClassifier("class means", value_tuple(classes), np.log(sizes), weights, bins=bins)


def _estimates(
    tables: Sequence[Floats], sizes: Floats, noise: Laplace | Gaussian, attributes: Sequence[Attribute] = ()
) -> list[tuple[Floats, Floats]]:
    """Of each table (C, V) what class and value counts alone would give, and by how much its cells differ from that."""
    expected = [sizes[:, None] * value_shares(t, float(sizes.sum()), noise.deviation) for t in tables]
    apart = [t - e for t, e in zip(tables, expected, strict=True)]
    order = [has_order(values_of(one)) for one in attributes]
    return list(zip(expected, differences(apart, expected, noise, order), strict=True))


def _weights(expected: Floats, gap: Floats, shares: Floats) -> Floats:
    """The logarithms of what the values' shares are in each class of a leaf, and of half of what its size gains."""
    prior = ABOVE * shares + EACH
    cells = np.maximum(expected + gap, 0) + prior
    size = cells.sum(axis=1, keepdims=True)
    own: Floats = np.log(cells / size) + HALF * np.log(size / (expected + prior).sum(axis=1, keepdims=True))
    return own


def _places(tree: PublicTree) -> dict[int, dict[str, int]]:
    """Of each node the places of the values that rows there have, by the name of their column."""
    places: dict[int, dict[str, int]] = {0: {}}
    for node in np.flatnonzero(tree.asks >= 0).tolist():
        column, first = int(tree.asks[node]), int(tree.first[node])
        for value in range(tree.branches[column]):
            places[first + value] = {**places[node], tree.names[column]: value}
    return places


def _at_leaves(counts: Sequence[float], name: str, at: Sequence[Mapping[str, int]], classes: int) -> list[Floats]:
    """Of each leaf its table (C, V), or the counts of its classes (C,) where the column is asked on the way there."""
    vector, many = np.asarray(counts, dtype=float), sum(name in there for there in at)
    class_counts = iter(vector[: many * classes].reshape(many, classes))
    split = iter(vector[many * classes :].reshape(max(len(at) - many, 1), -1, classes))
    return [next(class_counts) if name in there else next(split).T for there in at]


def _branched(
    tree: PublicTree, attributes: Sequence[Attribute], node: int, models: Mapping[int, AdditiveClassifier]
) -> Classifier:
    if (column := int(tree.asks[node])) < 0:
        return models[node]
    first = int(tree.first[node])
    below = [_branched(tree, attributes, first + value, models) for value in range(tree.branches[column])]
    return branched_model(attributes[column], below)


def differences(
    gaps: Sequence[Floats], expected: Sequence[Floats], law: Laplace | Gaussian, ordered: Sequence[bool] = ()
) -> list[Floats]:
    """The posterior means of what cells differ by, from what they were measured to (each (C, V)); of each table
    whether its values are `ordered` (none said: not)."""
    if law.scale < NONE:
        return list(gaps)
    sizes = [e.size for e in expected]
    level = np.repeat([e.sum() / e.size for e in expected], sizes)  # of all attributes side by side, as all below
    variances = np.maximum(SPREADS[:, None] ** 2 * _flat(expected) * level, SMALLEST)
    posterior, gap = _POSTERIORS[type(law)], _flat(gaps)
    logs, means = posterior(gap, variances + _flat(expected), law.scale)[0], posterior(gap, variances, law.scale)[1]
    ends = np.cumsum(sizes)[:-1]
    evidence = np.array([
        ((c - 1) * (v - 1) / (c * v) if v > 1 else 1.0) * part.sum(axis=1)
        for (c, v), part in zip((e.shape for e in expected), np.split(logs, ends, axis=1), strict=True)
    ])  # fmt: skip
    prior = SHARES
    if any(ordered):  # attributes without an order have the same hypotheses twice
        prior = np.concatenate([SHARES[:1], (1 - ALIKE) * SHARES[1:], ALIKE * SHARES[1:]])
        evidence, means = np.hstack([evidence, evidence[:, 1:]]), np.vstack([means, means[1:]])
        for i in np.flatnonzero(ordered).tolist():
            more, smooth = _alike(gaps[i], expected[i], law.deviation)
            evidence[i, len(SPREADS) :] = evidence[i, 0] + more
            start = int(sum(sizes[:i]))
            means[len(SPREADS) :, start : start + sizes[i]] = smooth
    whole = (np.repeat(_beliefs(evidence, prior).T, sizes, axis=1) * means).sum(axis=0)
    return [part.reshape(e.shape) for part, e in zip(np.split(whole, ends), expected, strict=True)]


def _alike(gap: Floats, expected: Floats, deviation: float) -> tuple[Floats, Floats]:
    """Where neighbours speak alike, for each of `SPREADS` above 0: the log evidence above that of no difference, and
    the posterior means of the cells, (G − 1, C·V)."""
    classes, values = expected.shape
    frequencies = np.arange(1, values)
    weights = frequencies**-2.0 / np.mean(frequencies**-2.0)
    waves = np.sqrt(2 / values * weights) * np.cos(np.pi / values * np.outer(np.arange(values) + 0.5, frequencies))
    tilted = np.sqrt(np.maximum(expected, SMALLEST) * expected.mean())[:, :, None] * waves  # (C, V, V − 1)
    sizes, axes = np.linalg.eigh(tilted @ tilted.transpose(0, 2, 1))
    projections = np.einsum("cvq,cv->cq", axes, gap)
    variances = SPREADS[1:, None, None] ** 2 * np.maximum(sizes, 0)
    chance = deviation**2 + np.einsum("cvq,cv->cq", axes**2, expected)
    logs = projections**2 * (1 / chance - 1 / (chance + variances)) - np.log1p(variances / chance)
    means = np.einsum("cvq,gcq->gcv", axes, variances / (variances + deviation**2) * projections)
    return (classes - 1) / classes / 2 * logs.sum(axis=(1, 2)), means.reshape(len(means), -1)


def _flat(tables: Sequence[Floats]) -> Floats:
    return np.concatenate([table.ravel() for table in tables])


def _beliefs(evidence: Floats, prior: Floats = SHARES) -> Floats:
    """For each attribute the probabilities of its hypotheses, whose shares among the attributes are found with them."""
    shares = prior
    for _ in range(ROUNDS):
        logs = np.log(shares) + evidence
        belief: Floats = np.exp(logs - np.maximum.reduce(logs, axis=1, keepdims=True))  # thrice as quick as `max`
        belief /= np.add.reduce(belief, axis=1, keepdims=True)
        shares = np.add.reduce(belief, axis=0) + STRENGTH * prior
        shares = shares / np.add.reduce(shares)
    gained = (np.logaddexp.reduce(logs, axis=1) - evidence[:, 0]).sum()  # over all attributes without a voice
    belief /= 1 + (1 / SPEAKS - 1) * np.exp(min(-gained, 700))
    return belief


def laplace_posterior(y: Floats, variance: Floats, scale: float) -> tuple[Floats, Floats]:
    """The log density of y = d + noise, and the mean of d given y, for d ~ N(0, variance) and Laplace noise.

    Below y the exponent of the noise tilts the normal density by variance/scale upwards, above it by as much
    downwards: the posterior is two pieces of normal densities, and its mean that of theirs.
    """
    from scipy.special import log_ndtr

    deviation, tilt = np.sqrt(variance), variance / scale
    below, above = (y - tilt) / deviation, (-y - tilt) / deviation
    log_below, log_above = log_ndtr(below), log_ndtr(above)
    low, high = -y / scale + log_below, y / scale + log_above
    log = np.logaddexp(low, high)
    share = np.exp(low - log)
    down, up = _hazard(below, log_below), _hazard(above, log_above)
    mean = share * (tilt - deviation * down) + (1 - share) * (deviation * up - tilt)
    return log + tilt / (2 * scale) - np.log(2 * scale), mean


def gaussian_posterior(y: Floats, variance: Floats, scale: float) -> tuple[Floats, Floats]:
    """The log density and posterior mean under Gaussian noise of deviation `scale`, as in `laplace_posterior`."""
    whole = variance + scale**2
    return -(y**2) / (2 * whole) - np.log(2 * np.pi * whole) / 2, variance / whole * y


_POSTERIORS = {Laplace: laplace_posterior, Gaussian: gaussian_posterior}


def _hazard(z: Floats, log: Floats) -> Floats:
    """φ(z)/Φ(z), which far below 0 is −z − 1/z; `log` is that of Φ(z)."""
    near, far, beyond = np.maximum(z, -50.0), np.minimum(z, -50.0), z < -50
    exact = np.exp(-near * near / 2 - 0.5 * np.log(2 * np.pi) - np.where(beyond, 0.0, log))
    ratio: Floats = np.where(beyond, -far - 1 / far, exact)
    return ratio


LEAST = 1e-6
"""The least share of a class in a leaf that counts, of which there is a logarithm."""


@dataclass(frozen=True, eq=False)
class Blended(Classifier):
    """`parts`: sums of logarithms, also in leaves, or single trees, of the same classes; `weights`: from 0, of each."""

    parts: tuple[Classifier, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.parts or len(self.parts) != len(self.weights) or not all(0 <= w <= 100 for w in self.weights):
            raise KernelError("a blend has a weight of 0 to 100 for each of its classifiers")
        if len({tuple(part.classes) for part in self.parts}) != 1:
            raise KernelError("the classifiers of a blend have the same classes")
        for part in self.parts:
            tree = isinstance(part, Trees) and len(part.roots) == 1 and part.votes == "shares"
            ends = ends_of(part, {})[1]
            if not tree and not (ends and all(one.link == "softmax" for end in ends for one in end)):
                raise KernelError("a blend is of naive Bayes, or the like, also in leaves, and of single trees")

    @property
    def classes(self) -> tuple[Value, ...]:  # type: ignore[override]
        return self.parts[0].classes

    @property
    def attributes(self) -> dict[str, tuple[Value, ...] | Cuts]:  # type: ignore[override]
        union: dict[str, tuple[Value, ...] | Cuts] = {}
        for part in self.parts:
            union |= part.attributes
        return union

    def probabilities(self, columns: Columns) -> Floats:
        total = np.zeros((rows_of(columns), len(self.classes)))
        for part, weight in zip(self.parts, self.weights, strict=True):
            least = LEAST if isinstance(part, Trees) else np.finfo(float).tiny
            total += weight * np.log(np.maximum(part.probabilities(columns), least))
        shares = np.exp(total - total.max(axis=1, keepdims=True))
        result: Floats = shares / shares.sum(axis=1, keepdims=True)
        return result

    def scores(self, cells: Cells) -> Expression:
        return self.logs(cells)[0]

    def logs(self, cells: Cells) -> tuple[Expression, int]:
        """Logarithms of the classes' probabilities, less the same for all, and the bits of their units."""
        base, tables = np.zeros(len(self.classes)), list[tuple[Cell, Floats]]()
        for part, weight in zip(self.parts, self.weights, strict=True):
            if isinstance(part, AdditiveClassifier):
                base = base + weight * part.base
                tables += [
                    (cells[name], weight * cells[name].table_of(values, table))
                    for name, (values, table) in part.weights.items() if name in cells
                ]  # fmt: skip
            elif isinstance(part, Trees):
                tables += [(end, weight * np.log(np.maximum(answers, LEAST)).T) for end, answers in part.ends(cells)]
            else:
                tables += [(cell, weight * table) for cell, table in tables_at(*ends_of(part, cells), cells)]
        return scaled_sums(base, tables)

    def as_json(self) -> dict[str, object]:
        parts = [part.as_json() for part in self.parts]
        return {"model": "blended", "classes": list(self.classes), "weights": list(self.weights), "parts": parts}

    def summary(self, words: Words) -> str:
        lines = [f"a blend of {len(self.parts)} classifiers"]
        for part, weight in zip(self.parts, self.weights, strict=True):
            first, *rest = part.summary(words).splitlines()
            lines += [f"    weight {weight:g}: {first}", *(f"    {line}" for line in rest[:LINES])]
            lines += [f"    … {len(rest) - LINES} more lines"] if len(rest) > LINES else []
        return "\n".join(lines)


LINES = 12
"""Of each part of a blend that are printed; its JSON has all."""


def blended_model(models: Sequence[Classifier], weights: Sequence[float]) -> Blended:
    """The classifier whose class probabilities are the product of those of `models`, each to the power of a weight. Of
    a blend among `models` the parts are taken, to the power of both weights."""
    if len(models) != len(weights):
        raise KernelError("a blend has a weight of 0 to 100 for each of its classifiers")
    parts = [(part, float(weight * own)) for model, weight in zip(models, weights, strict=True)
             for part, own in (zip(model.parts, model.weights, strict=True) if isinstance(model, Blended)
                               else [(model, 1.0)])]  # fmt: skip
    return Blended(tuple(part for part, _ in parts), tuple(weight for _, weight in parts))


def class_logs(model: Classifier) -> Logs:
    """The logarithms of the class probabilities of a row, of a classifier that may be part of a blend, or is one."""
    return (model if isinstance(model, Blended) else blended_model([model], [1])).logs


def classifier_from_json(data: Mapping[str, object]) -> Any:
    """The classifier that `as_json` wrote; `ValueError` where this is none."""
    kind = data.get("model") if isinstance(data, Mapping) else None
    if str(kind) not in _READERS:
        raise KernelError(f"`{kind}` is no classifier")
    try:
        return _READERS[str(kind)](data)
    except (LookupError, TypeError, AttributeError, ValueError) as fault:
        raise KernelError(f"`{kind}` is not as it was written") from fault


def _read_additive(data: Mapping[str, Any]) -> AdditiveClassifier:
    weights = {str(w["attribute"]): (tuple(w["values"]), np.array(w["weights"], dtype=float)) for w in data["weights"]}
    return AdditiveClassifier(
        data["kind"], tuple(data["classes"]), np.array(data["base"], dtype=float), weights, data["link"],
        bins=_read_bins(data),
    )  # fmt: skip


def _read_branched(data: Mapping[str, Any]) -> Branched:
    branches = tuple(classifier_from_json(b) for b in data["branches"])
    return Branched(data["attribute"], tuple(data["values"]), branches, _read_bins(data))


def _read_bins(data: Mapping[str, Any]) -> dict[str, Cuts]:
    return {name: Cuts(tuple(map(float, edges))) for name, edges in data.get("bins", {}).items()}


def _read_binned(data: Mapping[str, Any]) -> Binned:
    cuts = {name: Cuts(tuple(map(float, edges))) for name, edges in data["cuts"].items()}
    return Binned(classifier_from_json(data["inner"]), cuts)


def _read_blended(data: Mapping[str, Any]) -> Blended:
    return blended_model([classifier_from_json(part) for part in data["parts"]], data["weights"])


_READERS: dict[str, Any] = {
    "additive": _read_additive, "blended": _read_blended, "branched": _read_branched, "binned": _read_binned,
    "trees": Trees.from_json,
}  # fmt: skip
