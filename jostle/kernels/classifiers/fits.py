"""Fits classifiers to noisy counts. All of it is post-processing of what a program has measured.

Attributes come as records {name, values, edges}, where the edges are of the bins that the values number, if they do;
tables as arrays (classes, values of the attribute).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.classifiers.codes import Cuts, Value, value_tuple
from jostle.kernels.classifiers.models import AdditiveClassifier, Binned, Branched, Classifier
from jostle.kernels.linear_algebra import on_one_thread
from jostle.kernels.noisy_array import law_of

Attribute = Mapping[str, Any]


def majority_model(classes: Sequence[Value], counts: Sequence[float]) -> AdditiveClassifier:
    """Always the class with the largest noisy count (C,)."""
    return AdditiveClassifier(
        "majority", value_tuple(classes), np.log(np.maximum(np.asarray(counts, dtype=float), 0) + 1), {}
    )


def naive_bayes_model(
    classes: Sequence[Value], attributes: Sequence[Attribute], tables: Sequence[Floats], weight: float = 1.0
) -> AdditiveClassifier:
    """Naive Bayes from one noisy table (C, V) an attribute.

    Counts below 0 are 0, and one is added to each cell. Every table's rows sum to the class counts, with noise in
    proportion to V: their mean weighted by 1/V is the prior. `weight`, in (0, 1], multiplies what attributes say: less
    than 1 where they repeat each other, which naive Bayes counts twice.
    """
    deviation = law_of(tables[0]).deviation if len(tables) else 0.0
    tables = [np.asarray(table, dtype=float) for table in tables]
    prior = class_counts(tables)
    weights, cells = {}, {}
    for attribute, table in zip(attributes, tables, strict=True):
        name = str(attribute["name"])
        shares = cells[name] = np.maximum(table, 0) + 1.0
        weights[name] = (values_of(attribute), weight * np.log(shares / np.add.reduce(shares, axis=1, keepdims=True)))
    unsure = partial(_unsure, cells, deviation, weight)
    kind = "naive Bayes" if weight == 1 else f"naive Bayes tempered by {weight:g}"
    return AdditiveClassifier(kind, value_tuple(classes), np.log(np.maximum(prior, 1)), weights, unsure=unsure,
                              bins=bins_of(attributes))  # fmt: skip


def _unsure(cells: Mapping[str, Floats], deviation: float, weight: float) -> dict[str, Floats]:
    """By attribute what `AdditiveClassifier.unsure` says, of cells with noise of this deviation."""
    return {name: weight * _apart(deviation / shares) for name, shares in cells.items()}


def _apart(deviations: Floats) -> Floats:
    """The deviation of each of several independent numbers less the mean over the first axis."""
    squares, many = deviations**2, len(deviations)
    variance: Floats = squares * (1 - 2 / many) + squares.sum(axis=0) / many**2
    return np.sqrt(variance)


def ranked_area(counts: Sequence[float]) -> dict[str, float]:
    """The area under the ROC curve, from noisy counts of rows by what a classifier says of a class: from its least to
    its largest those of other classes and those of this. A pair in one bin counts half.

    With the 95 % half-width `error` of the noise, from 0 to 1/2, and `rows`, the noisy number of rows of the class. As
    counts are not brought above 0, their noise cancels in the sums.
    """
    others, own = np.asarray(counts, dtype=float).reshape(-1, 2).T
    if min(others.sum(), own.sum()) < 1:  # no pairs
        return {"auc": 0.5, "error": 0.5, "rows": float(own.sum())}
    many = float(others.sum()), float(own.sum())
    below = np.clip((np.cumsum(others) - others / 2) / many[0], 0, 1)  # the share of other rows below each bin
    above = 1 - np.clip((np.cumsum(own) - own / 2) / many[1], 0, 1)
    area = float(np.clip((own * (np.cumsum(others) - others / 2)).sum() / (many[0] * many[1]), 0, 1))
    noise = law_of(counts).deviation
    terms = ((below - area) ** 2).sum() / many[1] ** 2, ((above - area) ** 2).sum() / many[0] ** 2
    both = noise**2 * len(own) ** 2 / 2 / (many[0] * many[1]) ** 2
    return {"auc": area, "error": min(0.5, 1.96 * noise * float(np.sqrt(sum(terms) + both))), "rows": float(own.sum())}


def class_counts(tables: Sequence[Floats]) -> Floats:
    """The noisy number of rows of each class (C,), from all tables."""
    each = np.array([1 / table.shape[1] for table in tables])
    sums = np.array([np.add.reduce(table, axis=1) for table in tables])
    counts: Floats = (each[:, None] * sums).sum(axis=0) / each.sum()
    return counts


@on_one_thread
def linear_model(
    classes: Sequence[Value], attributes: Sequence[Attribute], tables: Sequence[Floats]
) -> AdditiveClassifier:
    """Least squares on indicators of values and classes, from noisy moments.

    `tables`: first (C, V) for each attribute, then (Vᵢ, Vⱼ) for each pair i < j in order. Indicators are centred by
    their noisy means; the second moments are made positive semidefinite. A ridge as large as the spectral norm of
    the noise that tables carry (its deviation times √dimension) keeps it out of the solution.
    """
    k = len(attributes)
    first, pairs = [np.asarray(t) for t in tables[:k]], tables[k:]
    sizes = [t.shape[1] for t in first]
    ends = np.concatenate([[0], np.cumsum(sizes)])
    place = [slice(ends[i], ends[i + 1]) for i in range(k)]
    counts = np.maximum(class_counts(first), 1.0)
    n = float(counts.sum())
    moments = np.zeros((ends[-1], ends[-1]))
    cross = np.vstack([t.T for t in first])
    for (i, j), table in zip(combinations(range(k), 2), pairs, strict=True):
        moments[place[i], place[j]] = table
        moments[place[j], place[i]] = np.asarray(table).T
    means = np.zeros(ends[-1])
    for i, table in enumerate(first):
        values = np.maximum(table.sum(axis=0), 1.0)
        means[place[i]] = values * n / values.sum()
        moments[place[i], place[i]] = np.diag(means[place[i]])
    moments -= np.outer(means, means) / n
    cross = cross - np.outer(means, counts) / n
    size, vectors = np.linalg.eigh(moments)
    ridge = law_of(tables[0]).deviation * np.sqrt(ends[-1]) + 1.0
    solved = vectors @ ((vectors.T @ cross) / (np.maximum(size, 0) + ridge)[:, None])
    base = counts / n - (means / n) @ solved
    weights = {str(a["name"]): (values_of(a), solved[place[i]].T) for i, a in enumerate(attributes)}
    return AdditiveClassifier("linear", value_tuple(classes), base, weights, "share", bins=bins_of(attributes))


def softmax_model(
    classes: Sequence[Value], attributes: Sequence[Attribute], lines: Sequence[Attribute]
) -> AdditiveClassifier:
    """The classifier of a softmax regression, from its `lines`: numbers have slopes, other attributes their values."""
    odds = {(line["column"], str(line["of"]), line["class"]): float(line["value"]) for line in lines}
    weights = {}
    for attribute in attributes:
        name, values = str(attribute["name"]), values_of(attribute)
        numbers = (name, "", classes[0]) in odds
        slopes = [[odds.get((name, "" if numbers else str(v), one), 0.0) for v in values] for one in classes]
        weights[name] = values, np.array(slopes) * (np.array(values, dtype=float) if numbers else 1.0)
    base = np.array([odds["intercept", "", one] for one in classes])
    return AdditiveClassifier("softmax", value_tuple(classes), base, weights, bins=bins_of(attributes))


def branched_model(attribute: Attribute, branches: Sequence[Classifier]) -> Branched:
    """The classifier that asks `attribute` and hands over to one branch a value."""
    return Branched(str(attribute["name"]), values_of(attribute), tuple(branches), bins_of([attribute]))


def binned_model(model: Classifier, cuts: Mapping[str, Sequence[float]]) -> Classifier:
    """Wraps a classifier of bins so that it takes raw columns, which it cuts at the edges `cuts`."""
    if not cuts:
        return model
    return Binned(model, {name: Cuts(tuple(float(e) for e in edges)) for name, edges in cuts.items()})


def values_of(attribute: Attribute) -> tuple[Value, ...]:
    return value_tuple(attribute["values"])


def bins_of(attributes: Sequence[Attribute]) -> dict[str, Cuts]:
    """The edges of the attributes whose values number bins."""
    return {str(a["name"]): Cuts(tuple(map(float, a["edges"]))) for a in attributes if a.get("edges")}


def value_shares(table: Floats, size: float, deviation: float) -> Floats:
    """Shares of an attribute's values (V,), drawn towards even ones as far as noise accounts for their differences."""
    classes, values = table.shape
    counts, even = table.sum(axis=0), size / values
    variance = classes * deviation**2
    spread = max(float(((counts - even) ** 2).mean()) - variance * (values - 1) / values, 0.0)
    shrinkage = spread / (spread + variance) if spread + variance > 0 else 0.0
    cells = np.maximum(even + shrinkage * (counts - even), 0) + 1
    shares: Floats = cells / cells.sum()
    return shares


def has_order(values: Sequence[Value]) -> bool:
    """Whether neighbours among the values of an attribute may speak alike: three numbers or more."""
    return len(values) > 2 and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)


def prior_counts(tables: Sequence[Floats], deviation: float) -> Floats:
    """Class counts (C,), drawn towards even ones as far as they differ no more than noise does (James and Stein).

    A table's row sums carry the noise of V cells, so each table weighs 1/V. None is below half of a deviation.
    """
    classes = tables[0].shape[0]
    each = np.array([1 / table.shape[1] for table in tables])
    counts = class_counts(tables)
    variance = deviation**2 / each.sum()
    size = max(float(counts.sum()), float(classes))
    even = counts.mean()
    spread = float(((counts - even) ** 2).sum()) / max(1, classes - 1)
    shrunken = np.maximum(even + max(0.0, 1 - variance / max(spread, 1e-9)) * (counts - even), 1.0)
    result: Floats = np.maximum(shrunken * size / shrunken.sum(), 1 + 0.5 * np.sqrt(variance))
    return result
