"""Row kernels: functions of one row and public parameters, summed over private rows by `privacy.rowsums`.

A kernel is given a batch of rows as whole numbers, an array (d, n) of doubles in units of 1/GRID of the unit ball
(`privacy.mechanisms.rows`), and gives an array with a column for each row. Two kinds:

* *weights* (m, n), in [0, 1] and at most 1 in all for a row: how much of the row goes to each of m sums of moments.
  Beside them a kernel may give *frames* (m, d, n): the row as each of the m sums is to see it, itself a vector that
  should lie within the unit ball;
* *contributions* (m, n): m numbers a row, which are summed.

Parameters come from programs and are brought to arrays of exact shapes by `rowparameters.fitted`, before a charge: no
kernel may fail on a row. What comes back is clipped and rounded by the caller, so a wrong formula costs accuracy only.
One thing is asked of every kernel here and held by a test: **column j is a function of row j alone, to the last bit**,
wherever the row stands in a batch and whatever stands beside it. Linear algebra in doubles is not like that, since the
order of additions depends on the place in the array. Hence products are made of whole numbers below 2^53, which are
exact in any order; all else is one correctly rounded operation at a time, or a look into a table of public numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.kernels.rowparameters import MOST

Array = NDArray[np.float64]

GRID = 2**14
"""Units of a coordinate: rows are whole multiples of 1/GRID within the unit ball."""

STEPS = 2**10  # of the tables of exp and of the logistic function, to one unit of their argument
FAR = 18  # exp(−FAR) is below what weights are kept to


def one(units: Array) -> Array:
    """Weight 1 for every row: plain moments of all rows."""
    return np.ones((1, units.shape[1]))


def responsibilities(units: Array, *, means: Array, factors: Array, offsets: Array) -> Array:
    """The E-step of a mixture of Gaussians: P(component k | row).

    `means` (K, d) in units of the ball; `factors` (K, d, d) with Σ_k^-1 = F_k F_kᵀ; `offsets` (K,) ln π_k + ln|F_k|.
    """
    return _e_step(units, means, factors, offsets)[0]


def framed(units: Array, *, means: Array, factors: Array, offsets: Array, radius: float) -> tuple[Array, Array]:
    """The same, and each component's own view of the row: F_kᵀ(x − μ_k) / radius, which is whitened and centred.

    Rows of a component then have a length of about √d / radius, however small its covariance is.
    """
    weights, seen = _e_step(units, means, factors, offsets)
    seen *= 1 / float(radius)
    return weights, seen


def _e_step(units: Array, means: Any, factors: Any, offsets: Any) -> tuple[Array, Array]:
    means, factors, offsets = (np.asarray(a, dtype=float) for a in (means, factors, offsets))
    count, d = means.shape
    columns = factors.transpose(0, 2, 1).reshape(count * d, d)
    shifts = np.einsum("kj,kjl->kl", means, factors).reshape(-1, 1)
    moved = _exact_product(columns, units)
    moved -= shifts
    seen = moved.reshape(count, d, -1)
    distance = squared_lengths(seen)
    distance *= -0.5
    distance += offsets[:, None]
    return normalised(distance), seen


def squared_lengths(vectors: Array) -> Array:
    """Σ v² over the second axis of (m, d, n), in one order for every column."""
    total = vectors[:, 0] * vectors[:, 0]
    square = np.empty_like(total)
    for axis in range(1, vectors.shape[1]):
        np.multiply(vectors[:, axis], vectors[:, axis], out=square)
        total += square
    return total


def nearest(units: Array, *, centres: Array) -> Array:
    """k-means: 1 for the nearest of `centres` (K, d), in units of the ball; the first of equals."""
    centres = np.asarray(centres, dtype=float)
    score = _exact_product(centres, units)
    score -= (0.5 * np.einsum("kd,kd->k", centres, centres))[:, None]
    chosen = np.argmax(score, axis=0)
    return np.asarray(chosen == np.arange(len(centres))[:, None], dtype=float)


def nearest_from(units: Array, *, centres: Array, radius: float) -> tuple[Array, Array]:
    """The same, and how the row lies from each centre, in units of `radius`."""
    seen = (units / GRID)[None, :, :] - np.asarray(centres, dtype=float)[:, :, None]
    seen *= 1 / float(radius)
    return nearest(units, centres=centres), seen


def within(units: Array, *, radii: Array) -> Array:
    """Shares a row out by its length: 1 in the first of the shells |row| ≤ radii[0], ≤ radii[1], …, else nowhere."""
    edges = (np.asarray(radii, dtype=float) * GRID) ** 2
    inside = _squared_length(units) <= edges[:, None]  # compared with every edge: a search rests on sorted ones
    shell = np.argmax(inside, axis=0)
    return np.asarray(inside & (shell == np.arange(len(edges))[:, None]), dtype=float)


def logistic_gradient(units: Array, *, target: int, weights: Array) -> Array:
    """The gradient of ln(1 + exp(−y·w·x)) in w: −y·x/(1 + exp(y·w·x)), y the sign of coordinate `target`.

    `weights` (d,): that of `target` belongs to a constant 1, which stands in the target's place. Shape (d, n).
    """
    w = np.asarray(weights, dtype=float)
    y = np.where(units[int(target)] >= 0, 1.0, -1.0)
    x = units / GRID
    x[int(target)] = 1.0
    constant = w[int(target)]
    others = w.copy()
    others[int(target)] = 0.0
    margin = _exact_product(others[None, :], units)[0]
    margin += constant
    margin *= y
    at = np.rint(np.clip(margin, -FAR, FAR) * STEPS).astype(np.int64) + FAR * STEPS
    slope = logistic_table()[at]
    slope *= -y
    return np.asarray(x * slope)


def pair_products(units: Array) -> Array:
    """1, the row, and the products x_i x_j for i < j in order: the statistics of an Ising model. Each within ±1."""
    d = len(units)
    first, second = np.triu_indices(d, 1)
    products = units[first] * units[second]  # whole numbers up to 2^28: exact
    return np.concatenate([np.ones((1, units.shape[1])), units / GRID, products / GRID**2])


def indicators(units: Array, *, values: Any, pairs: bool = True) -> Array:
    """1, then [x_i = a] for each column and value, then, if `pairs`, [x_i = a, x_j = b] for i < j: which cell of each
    table of one and two columns the row is in. Coordinate i stands for one of `values[i]` values, evenly spread.

    As many of them are 1 as there are tables, and one more; the others are 0.
    """
    held = []
    for x, many in zip(units, values, strict=True):
        code = np.clip(np.rint((x / GRID + 1) * (0.5 * (int(many) - 1))), 0, int(many) - 1)
        held.append(code == np.arange(int(many))[:, None])
    made = [np.ones((1, units.shape[1])), *held]
    if pairs:
        first, second = np.triu_indices(len(held), 1)
        for i, j in zip(first, second, strict=True):
            made.append((held[i][:, None] & held[j][None]).reshape(-1, units.shape[1]))
    return np.concatenate(made).astype(np.float64)


def coordinates(units: Array) -> Array:
    """The row itself."""
    return units / GRID


WEIGHTS: Mapping[str, Callable[..., Array | tuple[Array, Array]]] = {
    "one": one, "responsibilities": responsibilities, "framed": framed, "nearest": nearest,
    "nearest_from": nearest_from, "within": within,
}  # fmt: skip
FRAMED = ("framed", "nearest_from")
CONTRIBUTIONS: Mapping[str, Callable[..., Array]] = {
    "coordinates": coordinates, "indicators": indicators, "logistic_gradient": logistic_gradient,
    "pair_products": pair_products,
}  # fmt: skip
"""The closed list: what a program may name."""


def weigh(name: str, units: Array, parameters: Mapping[str, Any]) -> tuple[Array, Array | None]:
    """The weights of kernel `name` for a batch, and the frames where it gives any."""
    made = WEIGHTS[name](units, **parameters)
    return made if isinstance(made, tuple) else (made, None)


def contribute(name: str, units: Array, parameters: Mapping[str, Any]) -> Array:
    """The contributions of kernel `name` for a batch."""
    return CONTRIBUTIONS[name](units, **parameters)


def _exact_product(matrix: Array, units: Array) -> Array:
    """matrix · units / GRID, exactly, for the matrix rounded to a grid on which no sum reaches 2^52.

    A matrix with an entry beyond MOST, or that is no number, gives no numbers at all.
    """
    if not (np.abs(matrix) <= MOST).all():
        return np.full((len(matrix), units.shape[1]), np.nan)
    most = float(np.abs(matrix).sum(axis=1).max(initial=0.0)) * GRID
    bits = 50 - math.frexp(most)[1] if most > 0 else 0
    product = np.rint(np.ldexp(matrix, bits)) @ units
    return np.ldexp(product, -bits - GRID.bit_length() + 1)


def normalised(logs: Array) -> Array:
    """exp(logs) with columns that sum to one, by a table of exp at steps of 1/STEPS."""
    logs -= logs.max(axis=0)
    logs *= -STEPS
    np.minimum(logs, float(FAR * STEPS), out=logs)
    # what is no number (a parameter was none) takes no weight
    at = np.rint(np.nan_to_num(logs, nan=float(FAR * STEPS), posinf=float(FAR * STEPS))).astype(np.int32)
    weights = _exp_table()[at]
    total = weights[0].copy()
    for row in weights[1:]:
        total += row
    weights /= total
    return weights


def _squared_length(units: Array) -> Array:
    return np.asarray(squared_lengths(units[None])[0])


_TABLES: dict[str, Array] = {}


def _exp_table() -> Array:
    if "exp" not in _TABLES:
        made = np.exp(-np.arange(FAR * STEPS + 1) / STEPS)
        made[-1] = 0.0
        _TABLES["exp"] = made
    return _TABLES["exp"]


def logistic_table() -> Array:
    if "logistic" not in _TABLES:
        at = np.arange(-FAR * STEPS, FAR * STEPS + 1) / STEPS
        _TABLES["logistic"] = 1 / (1 + np.exp(at))
    return _TABLES["logistic"]
