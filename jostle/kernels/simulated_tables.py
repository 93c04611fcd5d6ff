"""Synthetic tables with a class, or a number, to predict, to train choices on: seeded draws from many kinds of
dependence.

Real tables differ in their number of rows, attributes, values and classes, and in how even the classes are. They differ
in how many attributes speak of the class, and in whether they speak alone, repeat each other or only together:

* `alone`: attributes are independent given the class (naive Bayes is right);
* `sum`: the class is the largest of weighted sums of the attributes' values, with noise;
* `cluster`: as `sum`, over attributes that repeat each other, since a hidden cluster decides them;
* `tree`: a random tree of tests decides, with a share of wrong labels;
* `scale`: ordered values add up, an attribute may veto, and thresholds cut the sum into classes;
* `hidden`: a hidden type decides all attributes and nearly the class, so that each speaks of it and all say the same;
* `together`: a class is where one of some patterns of two or three attributes is met, none of which says much alone.

Where wide tables are asked for, every third has 16 to 60 attributes of which few speak, as in `alone` or in `sum`, and
every third is a `network`: columns lean on one before them, and any one of them is the class, so that its neighbours
say nearly all. Tables with a number differ also in how much of it the columns account for, and how skewed numbers are.
They differ in how much wider their described bounds are than where rows lie.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.kernels.arrays import Floats, Ints

Rng = np.random.Generator

KINDS = ("alone", "hidden", "sum", "together", "cluster", "hidden", "tree", "together", "scale")
"""The kinds in turn; those of which real tables showed most and the others least come twice."""
WIDE = 3  # of so many tables one is wide and one a network, where wide ones are asked for
SKEWED = 0.95  # tables in which one class has more than this are drawn again


@dataclass(frozen=True)
class SyntheticTable:
    """`cells` (rows, attributes) and `labels` (rows,), positions in domains of `sizes` values and `classes` classes."""

    kind: str
    cells: Ints
    labels: Ints
    sizes: tuple[int, ...]
    classes: int


def synthetic_table(number: int, seed: int, least: int, most: int, extra: int, wide: bool = False) -> SyntheticTable:
    """Table `number` of a seed: `least` to `most` rows, evenly on the log scale, and `extra` more of the same law."""
    kind = KINDS[number % len(KINDS)]
    if wide:
        kind = (KINDS[number // WIDE % len(KINDS)], "network", "wide")[number % WIDE]
    rng = np.random.default_rng([seed, number])
    while True:
        rows = int(np.exp(rng.uniform(np.log(least), np.log(most)))) + extra
        table = _draw(kind, rows, rng)
        if np.bincount(table.labels, minlength=table.classes).max() <= SKEWED * rows:
            return table


def _draw(kind: str, rows: int, rng: Rng) -> SyntheticTable:
    if kind in ("hidden", "together"):
        return (_hidden if kind == "hidden" else _together)(rows, rng)
    if kind in ("wide", "network"):
        return (_wide if kind == "wide" else _network)(rows, rng)
    classes = int(rng.choice([2, 2, 2, 3, 4, 5]))
    low, high = [(2, 5), (3, 8), (2, 17), (8, 21)][int(rng.integers(4))]
    sizes = tuple(int(v) for v in rng.integers(low, high, int(rng.integers(4, 16))))
    speaks = rng.random(len(sizes)) < rng.uniform(0.3, 1)
    speaks[rng.integers(len(sizes))] = True
    prior = rng.dirichlet(np.full(classes, rng.uniform(0.7, 6)))
    if kind == "alone":
        labels = rng.choice(classes, rows, p=prior).astype(np.int64)
        return SyntheticTable(kind, _cells_given_class(labels, classes, sizes, speaks, rng), labels, sizes, classes)
    cells = _clustered(rows, sizes, rng) if kind == "cluster" else _independent(rows, sizes, rng)
    if kind == "tree":
        labels = _by_tree(cells, sizes, speaks, prior, rng)
    elif kind == "scale":
        labels = _by_scale(cells, sizes, speaks, prior, rng)
    else:
        labels = _by_sum(cells, sizes, speaks, prior, rng)
    return SyntheticTable(kind, cells, labels, sizes, classes)


def _pick(shares: NDArray[np.float64], rng: Rng) -> Ints:
    """One position a row from `shares` (rows, values), whose rows sum to 1."""
    above = rng.random(len(shares))[:, None] > np.cumsum(shares, axis=1)
    place: Ints = np.minimum(above.sum(axis=1), shares.shape[1] - 1).astype(np.int64)
    return place


def _hidden(rows: int, rng: Rng) -> SyntheticTable:
    classes = int(rng.choice([2, 2, 2, 3, 3, 4, 5, 8, 10]))
    low, high = [(2, 5), (3, 8), (4, 6), (8, 21)][int(rng.integers(4))]
    sizes = tuple(int(v) for v in rng.integers(low, high, int(rng.integers(4, 21))))
    types = int(classes * rng.integers(1, 4))
    each = rng.choice(types, rows, p=rng.dirichlet(np.full(types, rng.uniform(2, 8))))
    of_type, spread = rng.permutation(types) % classes, np.exp(rng.uniform(np.log(0.15), np.log(2)))
    cells = np.stack([_pick(rng.dirichlet(np.full(v, spread), types)[each], rng) for v in sizes], axis=1)
    return SyntheticTable(
        "hidden", cells, _with_wrong_labels(of_type[each].astype(np.int64), classes, 0.3, rng), sizes, classes
    )


def _together(rows: int, rng: Rng) -> SyntheticTable:
    classes = 2 if rng.random() < 0.6 else int(rng.integers(3, 5))
    low, high = [(2, 4), (3, 6)][int(rng.integers(2))]
    sizes = tuple(int(v) for v in rng.integers(low, high, int(rng.integers(4, 12))))
    cells, labels = _independent(rows, sizes, rng), np.zeros(rows, dtype=np.int64)
    for label in range(1, classes):
        for _ in range(int(rng.integers(1, 9))):
            matches = np.ones(rows, dtype=bool)
            for place in rng.choice(len(sizes), int(rng.integers(2, 4)), replace=False):
                some = max(1, int(sizes[place] * rng.uniform(0.3, 0.7)))
                matches &= np.isin(cells[:, place], rng.choice(sizes[place], some, replace=False))
            labels[matches] = label
    return SyntheticTable("together", cells, _with_wrong_labels(labels, classes, 0.2, rng), sizes, classes)


def _wide(rows: int, rng: Rng) -> SyntheticTable:
    """Many attributes, of which few speak of the class, alone or in a sum; they may repeat each other."""
    classes = int(rng.choice([2, 2, 2, 3, 4]))
    low, high = [(2, 3), (2, 6), (3, 12), (5, 6)][int(rng.integers(4))]
    sizes = tuple(int(v) for v in rng.integers(low, high, int(np.exp(rng.uniform(np.log(16), np.log(61))))))
    speaks = rng.random(len(sizes)) < rng.uniform(0.03, 0.5)
    speaks[rng.integers(len(sizes))] = True
    prior = rng.dirichlet(np.full(classes, rng.uniform(0.7, 6)))
    if rng.random() < 0.5:
        labels = rng.choice(classes, rows, p=prior).astype(np.int64)
        return SyntheticTable("wide", _cells_given_class(labels, classes, sizes, speaks, rng), labels, sizes, classes)
    cells = (_clustered if rng.random() < 0.5 else _independent)(rows, sizes, rng)
    return SyntheticTable("wide", cells, _by_sum(cells, sizes, speaks, prior, rng), sizes, classes)


def _network(rows: int, rng: Rng) -> SyntheticTable:
    """Columns that may each lean on one before it, by steps or by lists; the class is one of those that vary."""
    many, leans = int(np.exp(rng.uniform(np.log(6), np.log(31)))), rng.uniform(0.5, 1)
    sizes = tuple(int(v) for v in rng.choice([2, 2, 3, 4, 6, 10, 10, 10], many))
    columns: list[Ints] = []
    for place, size in enumerate(sizes):
        shares = _hump(size, rng) if size == 10 else rng.dirichlet(np.full(size, rng.uniform(0.3, 3)))
        if place and rng.random() < leans:
            above = int(rng.integers(place))
            if rng.random() < 0.5:
                tilt = rng.choice([-4, 4]) * np.exp(rng.uniform(np.log(0.5), np.log(6)))
                logits = tilt * np.outer(np.arange(sizes[above]) / sizes[above] - 0.5, np.arange(size) / size - 0.5)
            else:
                logits = np.exp(rng.uniform(np.log(0.15), np.log(2))) * rng.normal(size=(sizes[above], size))
            odds = shares * np.exp(logits)
            columns.append(_pick((odds / odds.sum(axis=1, keepdims=True))[columns[above]], rng))
        else:
            columns.append(rng.choice(size, rows, p=shares).astype(np.int64))
    largest = [np.bincount(column).max() for column in columns]
    varied = np.flatnonzero(np.array(largest) <= SKEWED * rows)
    label = int(rng.choice(varied)) if len(varied) else int(np.argmin(largest))
    cells = np.stack([column for place, column in enumerate(columns) if place != label], axis=1)
    return SyntheticTable("network", cells, columns[label], sizes[:label] + sizes[label + 1 :], sizes[label])


def _hump(size: int, rng: Rng) -> NDArray[np.float64]:
    """Shares of the bins of a number, most of which are near each other."""
    shares = np.exp(-(((np.arange(size) - rng.uniform(-1, 8)) / rng.uniform(1, 4)) ** 2))
    total: NDArray[np.float64] = shares / shares.sum()
    return total


def _with_wrong_labels(labels: Ints, classes: int, most: float, rng: Rng) -> Ints:
    """The labels, of which a share up to `most` is drawn anew."""
    wrong = rng.random(len(labels)) < rng.uniform(0, most)
    return np.where(wrong, rng.integers(0, classes, len(labels)), labels)


def _cells_given_class(labels: Ints, classes: int, sizes: tuple[int, ...], speaks: NDArray[np.bool_], rng: Rng) -> Ints:
    strength, columns = rng.uniform(0.2, 1.2), []
    for size, says in zip(sizes, speaks, strict=True):
        shares = rng.dirichlet(np.full(size, 2.0)) * np.exp(strength * says * rng.normal(size=(classes, size)))
        columns.append(_pick((shares / shares.sum(axis=1, keepdims=True))[labels], rng))
    return np.stack(columns, axis=1)


def _independent(rows: int, sizes: tuple[int, ...], rng: Rng) -> Ints:
    even, columns = rng.random() < 0.4, []
    for size in sizes:
        shares = np.full(size, 1 / size) if even else rng.dirichlet(np.full(size, rng.uniform(0.5, 3)))
        columns.append(rng.choice(size, rows, p=shares))
    return np.stack(columns, axis=1).astype(np.int64)


def _clustered(rows: int, sizes: tuple[int, ...], rng: Rng) -> Ints:
    many, spread = int(rng.integers(3, 9)), rng.uniform(0.3, 2)
    cluster = rng.choice(many, rows, p=rng.dirichlet(np.full(many, 1.5)))
    return np.stack([_pick(rng.dirichlet(np.full(size, spread), many)[cluster], rng) for size in sizes], axis=1)


def _by_sum(
    cells: Ints, sizes: tuple[int, ...], speaks: NDArray[np.bool_], prior: NDArray[np.float64], rng: Rng
) -> Ints:
    strength, blur = rng.uniform(0.4, 2), rng.uniform(0, 1.5)
    scores = np.log(prior + 1e-3) * rng.uniform(0, 1.5) + blur * rng.gumbel(size=(len(cells), len(prior)))
    for place in np.flatnonzero(speaks):
        scores += strength * rng.normal(size=(sizes[place], len(prior)))[cells[:, place]]
    labels: Ints = np.argmax(scores, axis=1).astype(np.int64)
    return labels


def _by_tree(
    cells: Ints, sizes: tuple[int, ...], speaks: NDArray[np.bool_], prior: NDArray[np.float64], rng: Rng
) -> Ints:
    labels = np.zeros(len(cells), dtype=np.int64)

    def grow(rows: Ints, depth: int, left: list[int]) -> None:
        if depth == 0 or not left:
            labels[rows] = rng.choice(len(prior), p=prior)
            return
        place = left[int(rng.integers(len(left)))]
        group = rng.integers(0, max(2, min(sizes[place], 3)), sizes[place])[cells[rows, place]]
        for value in np.unique(group):
            grow(rows[group == value], depth - 1, [q for q in left if q != place])

    grow(np.arange(len(cells)), int(rng.integers(2, 5)), np.flatnonzero(speaks).tolist())
    wrong = rng.random(len(cells)) < rng.uniform(0, 0.25)
    labels[wrong] = rng.choice(len(prior), int(wrong.sum()), p=prior)
    return labels


def _by_scale(
    cells: Ints, sizes: tuple[int, ...], speaks: NDArray[np.bool_], prior: NDArray[np.float64], rng: Rng
) -> Ints:
    steps = cells / np.maximum(np.array(sizes) - 1, 1)
    total = steps @ (rng.uniform(0, 1, len(sizes)) * speaks)
    if rng.random() < 0.5:  # one attribute may veto
        place = int(rng.integers(len(sizes)))
        total = np.minimum(total, total.max() * (1 - rng.uniform(0.3, 1) * steps[:, place]))
    total = total + rng.uniform(0, 0.15) * rng.normal(size=len(total))
    edges = np.quantile(total, np.cumsum(prior)[:-1])
    labels: Ints = np.searchsorted(edges, total).astype(np.int64)
    return labels


TARGET = "y"
LEAST = 0.01  # of its range that the target has to differ by; tables in which it does not are drawn again


Bounds = tuple[float, float, bool]


@dataclass(frozen=True)
class RegressionTable:
    """`columns` by name, numbers or texts, `TARGET` among them; `domains`: (low, high, whole) or the values."""

    columns: dict[str, NDArray[Any]]
    domains: dict[str, Bounds | tuple[str, ...]]


def regression_table(number: int, seed: int, least: int, most: int, extra: int) -> RegressionTable:
    """Table `number` of a seed: `least` to `most` rows, evenly on the log scale, and `extra` more of the same law."""
    rng = np.random.default_rng([seed, number])
    while True:
        table = _table(least, most, extra, rng)
        low, high, _ = table.domains[TARGET]
        if float(table.columns[TARGET].std()) >= LEAST * (float(high) - float(low)):
            return table


def _table(least: int, most: int, extra: int, rng: Rng) -> RegressionTable:
    n = int(np.exp(rng.uniform(np.log(least), np.log(most)))) + extra
    many = int(np.rint(np.exp(rng.uniform(np.log(2), np.log(20)))))
    hidden = _common_causes(n, many, rng)
    columns: dict[str, NDArray[Any]] = {}
    domains: dict[str, Bounds | tuple[str, ...]] = {}
    texts = rng.uniform(0, 1) ** 2  # how often a column is a text
    inputs = []  # what each column says, standardised
    for i in range(many):
        name = f"x{i + 1}"
        if rng.random() < texts:
            values = int(np.rint(np.exp(rng.uniform(np.log(2), np.log(12)))))
            places = _levels(hidden[:, i], values, rng)
            domains[name] = tuple(f"v{v + 1}" for v in range(values))
            columns[name] = np.array(domains[name], dtype=object)[places]
            inputs.append(_standard(rng.normal(size=values)[places]))
        else:
            columns[name], domains[name] = _described(_shaped(hidden[:, i], rng), rng)
            inputs.append(_standard(columns[name]))
    signal = _standard(_KINDS[int(rng.integers(len(_KINDS)))](np.stack(inputs, axis=1), rng))
    explained = rng.beta(0.7, 0.5)
    noise = _noise(n, rng)
    if rng.random() < 0.3:  # larger where the number is
        noise = _standard(noise * np.exp(0.5 * signal))
    y = np.sqrt(explained) * signal + np.sqrt(1 - explained) * noise
    columns[TARGET], domains[TARGET] = _described(_skewed(y, rng), rng)
    return RegressionTable(columns, domains)


# Columns -----------------------------------------------------------------------------------------


def _common_causes(n: int, many: int, rng: Rng) -> Floats:
    """Normal numbers (n, many), of which some go together."""
    inner = int(rng.integers(0, 4))
    common = rng.normal(size=(n, inner)) @ rng.normal(size=(inner, many)) if inner else np.zeros((n, many))
    return np.asarray(rng.uniform(0, 1.5) * common / max(1, inner) ** 0.5 + rng.normal(size=(n, many)))


def _levels(z: Floats, values: int, rng: Rng) -> NDArray[np.int64]:
    """Texts by where z lies, in an order of no meaning."""
    shares = rng.dirichlet(np.full(values, rng.uniform(0.7, 4)))
    edges = np.quantile(z, np.clip(np.cumsum(shares)[:-1], 0, 1))
    return np.asarray(rng.permutation(values)[np.searchsorted(edges, z)])


def _shaped(z: Floats, rng: Rng) -> Floats:
    z = _standard(z)
    kind = int(rng.integers(6))
    if kind == 0:
        return np.asarray(np.exp(rng.uniform(0.3, 1.3) * z))
    if kind == 1:
        return np.argsort(np.argsort(z)) / len(z)
    if kind == 2:
        return np.where(z > rng.normal(0, 0.7), 1.0, 0.0)
    if kind == 3:  # mostly nothing
        return np.asarray(np.maximum(z - rng.uniform(0, 1.5), 0) ** rng.uniform(1, 2))
    return z


def _skewed(y: Floats, rng: Rng) -> Floats:
    kind = int(rng.integers(5))
    if kind == 0:
        return np.asarray(np.exp(rng.uniform(0.3, 1.2) * y))
    return np.asarray(np.maximum(y - rng.uniform(-1, 1), 0)) if kind == 1 else y


def _described(x: Floats, rng: Rng) -> tuple[Floats, Bounds]:
    """The numbers and their public bounds: tight, or with room; some are whole, some beyond the bounds are clamped."""
    low, high = float(x.min()), float(x.max())
    if rng.random() < 0.3:
        low, high = (float(q) for q in np.quantile(x, [0.002, 0.998]))
    wide = max(high - low, 1e-9)
    room = wide * (np.exp(rng.uniform(0, np.log(6))) - 1 if rng.random() < 0.35 else rng.uniform(0, 0.3))
    start = low if rng.random() < 0.4 else low - room * rng.random()
    x = np.clip(x, low, high)
    if len(set(x[:100])) == 2 and rng.random() < 0.9:
        return np.rint((x - low) / wide), (0.0, 1.0, True)
    if rng.random() < 0.6:
        steps = float(np.rint(np.exp(rng.uniform(np.log(8), np.log(2000)))))
        scaled = np.rint((x - start) / (wide + room) * steps)
        return np.asarray(scaled), (0.0, steps, True)
    return x, (start, start + wide + room, False)


def _noise(n: int, rng: Rng) -> Floats:
    kind = int(rng.integers(3))
    return _standard(rng.standard_t(4, size=n) if kind == 0 else rng.normal(size=n))


def _standard(x: Floats) -> Floats:
    return np.asarray((x - x.mean()) / max(float(x.std()), 1e-9))


# What columns say of the target --------------------------------------------------------------------


def _weights(many: int, rng: Rng) -> Floats:
    """Few or many columns that speak, some louder."""
    speaks = rng.random(many) < np.exp(rng.uniform(np.log(0.1), 0))
    speaks[rng.integers(many)] = True
    return np.asarray(speaks * rng.normal(size=many) * np.exp(rng.normal(0, rng.uniform(0, 1), many)))


def _linear(x: Floats, rng: Rng) -> Floats:
    return np.asarray(x @ _weights(x.shape[1], rng))


def _curves(x: Floats, rng: Rng) -> Floats:
    """Sums of steps, parabolas and waves, beside straight lines."""
    total = np.zeros(len(x))
    for column, weight in zip(x.T, _weights(x.shape[1], rng), strict=True):
        kind = int(rng.integers(4))
        bent = (column, (column - rng.normal()) ** 2, column > rng.normal(), np.sin(rng.uniform(1, 3) * column))[kind]
        total += weight * _standard(np.asarray(bent, dtype=float))
    return total


def _tree(x: Floats, rng: Rng) -> Floats:
    place = np.zeros(len(x), dtype=np.int64)
    for _ in range(int(rng.integers(1, 5))):
        at = rng.integers(x.shape[1])
        place = 2 * place + (x[:, at] > rng.normal(0, 0.7))
    return np.asarray(rng.normal(size=2**5)[place])


def _products(x: Floats, rng: Rng) -> Floats:
    """Products of pairs of columns, and a straight line."""
    total = rng.uniform(0, 1.5) * _standard(_linear(x, rng))
    for _ in range(int(rng.integers(1, 4))):
        one, other = rng.integers(x.shape[1], size=2)
        total = total + rng.normal() * x[:, one] * x[:, other]
    return np.asarray(total)


_KINDS: tuple[Callable[[Floats, Rng], Floats], ...] = (_linear, _linear, _curves, _tree, _products)
