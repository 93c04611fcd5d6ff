"""Gradients of regressions on columns of a few values each, in two factors (`jostle.privacy.rows.factored`)."""

from __future__ import annotations

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.errors import KernelError
from jostle.kernels.rowprograms.contributions import SLOPE_BITS, falling_slope, place_of
from jostle.kernels.rowprograms.mixtures import normalised
from jostle.kernels.rowprograms.scales import bits_for, numbers
from jostle.privacy.rows.arrays import one_hot, reshape
from jostle.privacy.rows.expressions import columns
from jostle.privacy.rows.factored import FactoredGradient, grouped, patterns
from jostle.privacy.rows.program import program

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
    margin, own = columns((1,), -reach, reach), columns((), 0, 1)
    y = own * 2 - 1
    slopes = falling_slope(reshape(margin, ()) * y, bits) * y
    return FactoredGradient(
        "ising_gradient", values, place, np.ones((1, 1), dtype=np.int64), tables,
        tuple(sign.astype(np.int64) for sign in signs), program([margin, own], reshape(slopes, (1,))), SLOPE_BITS,
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
    logs, own = columns((k,), -reach, reach), columns((), 0, k - 1)
    slopes = normalised(logs, bits, SHARE_BITS, 2**SHARE_BITS) - one_hot(own, k) * 2**SHARE_BITS
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
