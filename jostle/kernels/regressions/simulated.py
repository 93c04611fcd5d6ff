"""Simulated tables with a number to predict, to train choices on: seeded draws from many kinds of dependence.

Real tables differ in their rows and columns, in how many columns speak and whether alone or together, in how much of
the number they account for, in how skewed numbers are and how much wider their described bounds are than where rows
lie. A draw takes a kind at random, and then some of these habits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.kernels.arrays import Floats

Rng = np.random.Generator
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
    hidden = _hidden(n, many, rng)
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


def _hidden(n: int, many: int, rng: Rng) -> Floats:
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


def _together(x: Floats, rng: Rng) -> Floats:
    """Products of pairs of columns, and a straight line."""
    total = rng.uniform(0, 1.5) * _standard(_linear(x, rng))
    for _ in range(int(rng.integers(1, 4))):
        one, other = rng.integers(x.shape[1], size=2)
        total = total + rng.normal() * x[:, one] * x[:, other]
    return np.asarray(total)


_KINDS: tuple[Callable[[Floats, Rng], Floats], ...] = (_linear, _linear, _curves, _tree, _together)
