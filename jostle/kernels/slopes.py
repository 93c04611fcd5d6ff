"""Slope kernels: gradients of regressions on columns of a few values each, in two factors.

A row of codes, code c of column j one of `values[j]` values, contributes s·v(row)·f(row): its *slopes* v, one or a few
numbers that depend on the whole row, and *features* f, of one column each and public for each code. Slopes depend on
a sum of *pulls*, one a column. So a group of columns has a table of pulls and a table of features over its patterns of
codes, both public, and a row is looked at once, whatever the number of coordinates (`privacy.mechanisms.crossed`).

What comes back is clipped and rounded by the caller, so a wrong formula costs accuracy only. As of `rowkernels` one
thing is asked and held by a test: slopes of a row depend on that row alone, to the last bit. Nothing may fail on a row,
so parameters are brought to arrays of exact shapes when a kernel is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from jostle.kernels.errors import KernelError
from jostle.kernels.rowkernels import FAR, STEPS, logistic_table, normalised
from jostle.kernels.rowparameters import numbers, whole_number

Array = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]


class SlopeKernel(Protocol):
    """A kernel with its public parameters.

    `values`: how many values each column has. `target`: the column whose codes the slopes are told. `outer` (S, k):
    the combinations s of slopes that are scored, of numbers within ±1.
    """

    values: tuple[int, ...]
    target: int
    outer: Array

    def pulls(self, codes: Codes, first: int) -> Array:
        """What columns `first` and on, of codes (c, m), add to the pulls: (k', m)."""

    def features(self, codes: Codes, first: int) -> Array:
        """The features of these columns, each with as many: (·, m), within ±1."""

    def slopes(self, pulls: Array, own: Codes) -> Array:
        """(k, n) from whole pulls (k', n) and the target's codes (n,); absolute values of a row sum to at most 1."""


class IsingGradient:
    """Of ln(1 + exp(−y·w·x)) in w, rows of −1 and 1 (codes 0 and 1): −y/(1 + exp(y·w·x)) times x.

    y is the sign of `target`, in whose place a constant 1 stands; `weights` (d,). Of a column that lies between its
    bounds the nearer one counts.
    """

    def __init__(self, *, target: int, weights: Any) -> None:
        self._weights = numbers(weights, 1)
        self.target = whole_number(target)
        self.values = (2,) * len(self._weights)
        self.outer = np.ones((1, 1))

    def pulls(self, codes: Codes, first: int) -> Array:
        total = np.zeros((1, codes.shape[1]))
        for sign, weight in zip(self.features(codes, first), self._weights[first:], strict=False):
            total += sign * (weight * STEPS)
        return total

    def features(self, codes: Codes, first: int) -> Array:
        signs = np.asarray(2.0 * codes - 1.0, dtype=np.float64)
        if first <= self.target < first + len(codes):
            signs[self.target - first] = 1.0
        return signs

    def slopes(self, pulls: Array, own: Codes) -> Array:
        y = 2.0 * own - 1.0
        at = pulls[0] * y
        np.rint(at, out=at)
        np.clip(at, -FAR * STEPS, FAR * STEPS, out=at)
        at += FAR * STEPS
        np.nan_to_num(at, copy=False)
        slope = logistic_table()[at.astype(np.intp)]
        slope *= -y
        return np.asarray(slope[None])


class SignGradient:
    """Of −ln P(x_target | others) against sign patterns, for P(u | others) ∝ exp(c_u + Σ_j w[u, j, x_j]).

    `values` are the alphabets, `weights` (k, d, K), k the values of the target and K the largest alphabet; the
    constants c stand at w[:, target, 0]. Slopes are ½(P(u) − [u is the value]), of which Σ_u |·| = 1 − P(value).
    Scored are Σ_u s_u·slope_u·r(x_j) for each pattern s of `sign_patterns(k)` but the first, each column j and each
    pattern r of `sign_patterns(K)`: half of the gradient towards s⊗r.
    """

    def __init__(self, *, target: int, values: Any, weights: Any) -> None:
        self._weights = numbers(weights, 3)
        self.target = whole_number(target)
        self.values = tuple(map(whole_number, values))
        k, d, largest = self._weights.shape
        own = self.values[self.target] if self.target < len(self.values) else 0
        if (k, d, largest) != (own, len(self.values), max(self.values)):
            raise KernelError("weights are (values of the target, columns, the largest alphabet)")
        self.outer = sign_patterns(k)[1:]
        self._inner = sign_patterns(largest)

    def _seen(self, codes: Codes, first: int) -> Codes:
        """The codes with the target's as 0, where its constants stand."""
        if not first <= self.target < first + len(codes):
            return codes
        seen = codes.copy()
        seen[self.target - first] = 0
        return seen

    def pulls(self, codes: Codes, first: int) -> Array:
        total = np.zeros((len(self._weights), codes.shape[1]))
        for j, code in enumerate(self._seen(codes, first), first):
            total += self._weights[:, j][:, code]
        return total

    def features(self, codes: Codes, first: int) -> Array:
        return np.concatenate([self._inner[:, code] for code in self._seen(codes, first)])

    def slopes(self, pulls: Array, own: Codes) -> Array:
        made = normalised(pulls)
        made -= np.arange(len(made))[:, None] == own
        made *= 0.5
        return made


def sign_patterns(size: int) -> Array:
    """Patterns of −1 and 1, of which −s is not given beside s, all ones first: all of them up to 5 places; beyond, each
    place against the rest."""
    if size <= 5:
        found = 1.0 - 2.0 * ((np.arange(2 ** (size - 1))[:, None] << 1 >> np.arange(size)) & 1)
    else:
        found = np.concatenate([np.ones((1, size)), 1.0 - 2.0 * np.eye(size)])
    return np.asarray(found)


SLOPES: Mapping[str, Any] = {"ising_gradient": IsingGradient, "sign_gradient": SignGradient}
"""The closed list: what a program may name in `coordinate_scores`."""
