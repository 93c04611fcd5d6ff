"""Contributions of a row: the row itself, gradients of logistic regressions, and which cells of tables it is in.

Gradients of regressions on columns of a few values each, in two factors (`jostle.privacy.rows.factored`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jostle.kernels import KernelError
from jostle.kernels.arrays import Floats
from jostle.kernels.rowprograms.mixtures import normalised
from jostle.kernels.rowprograms.scales import FAR, STEPS, affine, bits_for, logistic, numbers, rounded, row
from jostle.privacy.rows import expressions as xp
from jostle.privacy.rows.factored import FactoredGradient, grouped, patterns
from jostle.privacy.rows.norms import GRID, GRID_BITS, Contributions, Weights
from jostle.privacy.rows.program import program

SLOPE_BITS = 30
NEAR = 4
"""Units that a coordinate may be off by and still be the one that a test asks for."""


def coordinates(d: int) -> Contributions:
    """The row itself."""
    units = row(d)
    return Contributions("coordinates", program([units], units), GRID_BITS)


def logistic_gradient(d: int, *, target: object, weights: object) -> Contributions:
    """The gradient of ln(1 + exp(−y·w·x)) in w: −y·x/(1 + exp(y·w·x)), y the sign of coordinate `target`.

    `weights` (d,): that of `target` belongs to a constant 1, which stands in the target's place. Shape (d, n).
    """
    w, place = numbers(weights, (d,), "weights"), place_of(target, d)
    units = row(d)
    sign = xp.comparison(xp.constant(-1), "<", xp.part(units, [place])) * 2 - 1
    others = np.where(np.arange(d) == place, 0.0, w)
    margin, bits = affine(others[None, :] / GRID, w[[place]], units, 50)
    slope = falling_slope(margin * sign, bits) * sign
    before, behind = ([xp.part(units, places)] if places else [] for places in (range(place), range(place + 1, d)))
    x = xp.concatenate([*before, xp.constant([GRID]), *behind])
    return Contributions("logistic_gradient", program([units], x * slope), SLOPE_BITS + GRID_BITS)


def softmax_gradient(d: int, *, weights: object) -> Contributions:
    """The gradient of −ln of the share that `weights` (K, d − K + 1) give a row's class: (share − 1 for it)·(x, 1).

    The last K coordinates say the class, of which the row's own is above 0. Shape (K·(d − K + 1), n).
    """
    w = numbers(weights, (None, None), "weights")
    classes, terms = w.shape
    if classes < 2 or terms != d - classes + 1 or terms < 2:
        raise KernelError(f"`weights` are lists of numbers, a list for each of K classes, of {d} - K + 1 numbers")
    units = row(d)
    x, own = (
        xp.part(units, range(terms - 1)),
        xp.comparison(xp.constant([0] * classes), "<", xp.part(units, range(terms - 1, d))),
    )
    logs, bits = affine(w[:, :-1] / GRID, w[:, -1], x, 50)
    one = 1 << SLOPE_BITS
    off = xp.clamp(normalised(logs, bits, 20, one), 0, one) - own * one
    numbers_of = xp.reshape(off, (classes, 1)) * xp.reshape(xp.concatenate([x, xp.constant([GRID])]), (1, terms))
    flat = xp.reshape(numbers_of, (classes * terms,))
    return Contributions("softmax_gradient", program([units], flat), SLOPE_BITS + GRID_BITS)


def logistic_curvature(d: int, *, target: object, weights: object) -> Weights:
    """How much a row says of a logistic regression: 4p(1 − p) for the probability p that `weights` give its class.

    `weights` as in `logistic_gradient`. A quarter of the second moments under these is the second derivative.
    """
    w, place = numbers(weights, (d,), "weights"), place_of(target, d)
    units = row(d)
    others = np.where(np.arange(d) == place, 0.0, w)
    margin, bits = affine(others[None, :] / GRID, w[[place]], units, 50)
    places = rounded(margin, bits - STEPS.bit_length() + 1, -FAR * STEPS, FAR * STEPS)
    share = logistic(SLOPE_BITS) / 2.0**SLOPE_BITS
    table = np.floor(4.0 * share * (1.0 - share) * GRID)
    return Weights("logistic_curvature", program([units], xp.lookup(table, places + FAR * STEPS)))


def falling_slope(margin: xp.Expression, bits: int) -> xp.Expression:
    """−1/(1 + exp(margin)) in units of 2^-SLOPE_BITS, of a margin in units of 2^-bits."""
    places = rounded(margin, bits - STEPS.bit_length() + 1, -FAR * STEPS, FAR * STEPS)
    return xp.lookup(-logistic(SLOPE_BITS), places + FAR * STEPS)


def pair_products(d: int) -> Contributions:
    """1, the row, and the products x_i x_j for i < j in order: the statistics of an Ising model. Each within ±1."""
    return _products("pair_products", d, 1)


def products(d: int) -> Contributions:
    """1, the row, and the products x_i x_j for i ≤ j in order: what least squares needs. Each within ±1."""
    return _products("products", d, 0)


def _products(name: str, d: int, apart: int) -> Contributions:
    units, (first, second) = row(d), np.triu_indices(d, apart)
    parts = [xp.constant([GRID * GRID]), xp.shift(units, -GRID_BITS)]
    if len(first):
        parts.append(xp.part(units, first.tolist()) * xp.part(units, second.tolist()))
    return Contributions(name, program([units], xp.concatenate(parts)), 2 * GRID_BITS)


FORM_BITS = 24


def squared_products(d: int, *, left: object, right: object, times: object) -> Contributions:
    """f² and f⁴ of k products f of two forms of a row and a constant 1: both forms within ±1, and f · `times` too.

    `left` and `right` (k, d + 1), the constant last; `times` (k,), from 1 to 2^18. Shape (2k, n): all f², then all f⁴.
    """
    forms = numbers(left, (None, d + 1), "left")
    others, factors = numbers(right, forms.shape, "right"), np.trunc(numbers(times, forms.shape[:1], "times"))
    if factors.min() < 1 or factors.max() > 2**18:
        raise KernelError("`times` are whole numbers from 1 to 2^18")
    units, parts, most = row(d), [], 2**FORM_BITS
    for form in (forms, others):
        value, bits = affine(form[:, :-1] / GRID, form[:, -1], units, 50)
        parts.append(rounded(value, bits - FORM_BITS, -most, most))
    product = rounded(parts[0] * parts[1], 14, -(2**34), 2**34) * xp.constant(factors)
    f = rounded(product, 10, -most, most)
    square = f * f
    short = rounded(square, FORM_BITS, 0, most)
    return Contributions("squared_products", program([units], xp.concatenate([square, short * short])), 2 * FORM_BITS)


def told_apart(d: int, *, columns: object, at: object, same: object, expected: object = 0.0) -> Contributions:
    """How far the last coordinate is from what is `expected`, halved, where a test holds, and 0 elsewhere.

    Test i is that coordinate `columns[i]` is `at[i]` or more, or with `same[i]` is it, to a few units of the grid.
    Shape (tests, n), each within ±1.
    """
    middle = float(np.clip(np.rint(float(numbers(expected, (), "expected")) * GRID), -GRID, GRID))
    units = row(d)
    off = xp.part(units, [d - 1]) - xp.constant([middle])
    return Contributions("told_apart", program([units], holding(units, d, columns, at, same) * off), GRID_BITS + 1)


def holding(units: xp.Expression, d: int, columns: object, at: object, same: object) -> xp.Expression:
    """1 where a test of the coordinates before the last holds, else 0, (tests,): as `told_apart` has them."""
    places = columns_of(columns, d)
    edges = np.rint(numbers(at, places.shape, "at") * GRID)
    alike = numbers(same, places.shape, "same") != 0
    here = xp.part(units, places.tolist())
    reached = xp.comparison(xp.constant(edges - NEAR * alike), "<=", here)
    if not alike.any():
        return reached
    return reached * xp.comparison(here, "<", xp.constant(np.where(alike, edges + NEAR + 1, 2.0 * GRID)))


def columns_of(columns: object, d: int) -> NDArray[np.int64]:
    """A parameter as numbers of coordinates before the last."""
    places = numbers(columns, (None,), "columns")
    if (places != np.trunc(places)).any() or places.min() < 0 or places.max() >= d - 1:
        raise KernelError(f"`columns` are numbers of columns, 0 to {d - 2}")
    return places.astype(int)


def indicators(d: int, *, values: object, pairs: object = True) -> Contributions:
    """1, then [x_i = a] for each column and value, then, if `pairs`, [x_i = a, x_j = b] for i < j: which cell of each
    table of one and two columns the row is in. Coordinate i stands for one of `values[i]` values, evenly spread.

    As many of them are 1 as there are tables, and one more; the others are 0.
    """
    sizes = numbers(values, (d,), "values")
    if (sizes < 1).any() or (sizes != np.trunc(sizes)).any() or sizes.max() > 2**20 or not isinstance(pairs, bool):
        raise KernelError("`values` say how many values each column has")
    units = row(d)
    cells = []
    for i, size in enumerate(sizes.astype(int).tolist()):
        above = (xp.part(units, [i]) + GRID) * (size - 1) + GRID  # to the nearest of `size` numbers from −GRID to GRID
        cells.append(xp.one_hot(xp.reshape(xp.shift(above, GRID_BITS + 1), ()), size))
    tables: list[xp.Expression] = [xp.constant([1]), *cells]
    if pairs:
        for i, one in enumerate(cells):
            for other in cells[i + 1 :]:
                (m,), (n,) = one.shape, other.shape
                tables.append(xp.reshape(xp.reshape(one, (m, 1)) * xp.reshape(other, (1, n)), (m * n,)))
    return Contributions("indicators", program([units], xp.concatenate(tables)), 0)


def place_of(target: object, d: int) -> int:
    place = float(numbers(target, (), "target"))
    if not place.is_integer() or not 0 <= place < d:
        raise KernelError(f"`target` is the number of a column, 0 to {d - 1}")
    return int(place)


SHARE_BITS = 26


def ising_gradient(d: int, *, target: object, weights: object) -> FactoredGradient:
    """Of ln(1 + exp(−y·w·x)) in w, rows of −1 and 1 (codes 0 and 1): −y/(1 + exp(y·w·x)) times x.

    y is the sign of `target`, in whose place a constant 1 stands; `weights` (d,). Of a column that lies between its
    bounds the nearer one counts.
    """
    w, place = numbers(weights, (d,), "weights"), place_of(target, d)
    values = (2,) * d
    signs = []
    for (first, last), codes in zip(grouped(values), patterns(values), strict=True):
        sign = 2.0 * codes - 1.0
        if first <= place < last:
            sign[place - first] = 1.0
        signs.append(sign)
    pulls = [w[first:last] @ sign for (first, last), sign in zip(grouped(values), signs, strict=True)]
    tables, reach, bits = _fixed([pull[None] for pull in pulls])
    margin, own = xp.columns((1,), -reach, reach), xp.columns((), 0, 1)
    y = own * 2 - 1
    slopes = falling_slope(xp.reshape(margin, ()) * y, bits) * y
    return FactoredGradient(
        "ising_gradient", values, place, np.ones((1, 1), dtype=np.int64), tables,
        tuple(sign.astype(np.int64) for sign in signs), program([margin, own], xp.reshape(slopes, (1,))), SLOPE_BITS,
    )  # fmt: skip


def sign_gradient(d: int, *, target: object, values: object, weights: object) -> FactoredGradient:
    """Of −ln P(x_target | others) against sign patterns, for P(u | others) ∝ exp(c_u + Σ_j w[u, j, x_j]).

    `values` are the alphabets, `weights` (k, d, K), k the values of the target and K the largest alphabet; the
    constants c stand at w[:, target, 0]. Slopes are ½(P(u) − [u is the value]), of which Σ_u |·| = 1 − P(value).
    Scored are Σ_u s_u·slope_u·r(x_j) for each pattern s of `sign_patterns(k)` but the first, each column j and each
    pattern r of `sign_patterns(K)`: half of the gradient towards s⊗r.
    """
    place = place_of(target, d)
    sizes = tuple(int(v) for v in numbers(values, (d,), "values"))
    if min(sizes) < 2 or max(sizes) > 64:
        raise KernelError("columns have 2 to 64 values")
    k, largest = sizes[place], max(sizes)
    w = numbers(weights, (k, d, largest), "weights")
    inner = sign_patterns(largest).astype(np.int64)
    pulls, features = [], []
    for (first, last), codes in zip(grouped(sizes), patterns(sizes), strict=True):
        placed = codes.copy()
        if first <= place < last:
            placed[place - first] = 0  # where the target's constants stand
        pulls.append(np.sum([w[:, j][:, code] for j, code in enumerate(placed, first)], axis=0))
        features.append(np.concatenate([inner[:, code] for code in placed]))
    tables, reach, bits = _fixed(pulls)
    logs, own = xp.columns((k,), -reach, reach), xp.columns((), 0, k - 1)
    slopes = normalised(logs, bits, SHARE_BITS, 2**SHARE_BITS) - xp.one_hot(own, k) * 2**SHARE_BITS
    return FactoredGradient(
        "sign_gradient", sizes, place, sign_patterns(k)[1:].astype(np.int64), tables, tuple(features),
        program([logs, own], slopes), SHARE_BITS + 1,
    )  # fmt: skip


def sign_patterns(size: int) -> Floats:
    """Patterns of −1 and 1, of which −s is not given beside s, all ones first: all of them up to 5 places; beyond, each
    place against the rest."""
    if size <= 5:
        patterns = 1.0 - 2.0 * ((np.arange(2 ** (size - 1))[:, None] << 1 >> np.arange(size)) & 1)
    else:
        patterns = np.concatenate([np.ones((1, size)), 1.0 - 2.0 * np.eye(size)])
    return np.asarray(patterns)


def _fixed(tables: list[Floats]) -> tuple[tuple[Floats, ...], int, int]:
    """Tables, one a group of columns, as whole numbers of 2^-b, the reach of their sum, and b."""
    reach = float(np.sum([np.abs(t).max(axis=1) for t in tables], axis=0).max())
    bits = bits_for(reach * (1 + 2.0**-20), 49, finest=40)
    whole = tuple(np.rint(np.ldexp(t, bits)) for t in tables)
    return whole, max(1, int(np.sum([np.abs(t).max(axis=1) for t in whole], axis=0).max())), bits
