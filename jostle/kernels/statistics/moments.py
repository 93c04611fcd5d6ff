"""Second moments of a few columns with the deviation of the noise in each, and what least squares makes of them.

A *design* says what the coordinates of the measured vectors are, in order: `name`, `centre` and `scale`, a column x
standing as (x − centre)/scale; a category that is told from the first of its column has centre 0 and scale 1.

*Noise.* The matrix M of sums of products of (1, z₁, …, z_d) was released as M + E, E symmetric, its entries on and
above the diagonal independent with known deviations D. For A = M over some coordinates and b = M between them and
another, the coefficients β = A⁻¹b move by A⁻¹(e_b − Eβ) to first order, and the covariance of e_b − Eβ is written down
exactly. First order is enough where E is small beside A in every direction, which is looked at: where an eigenvalue of
A is less than `CLEAR` deviations of its own noise, the rows may not determine the coefficients at all, and intervals
are infinite.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.error_laws import sum_quantile
from jostle.kernels.arrays import Floats
from jostle.noise_laws import Gaussian, Laplace

CLEAR = 5.0
"""Deviations of the noise that an eigenvalue of a matrix of moments has to have."""

SAMPLING = 1.959963984540054
"""Of the normal law, for 95 %."""


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """`sums` (d + 1, d + 1) of products of (1, z), `noise` the deviation of each, and the 95 % `quantile` of noise."""

    names: tuple[str, ...]
    centres: Floats
    scales: Floats
    sums: Floats
    noise: Floats
    quantile: float

    @property
    def rows(self) -> float:
        return float(self.sums[0, 0])


def second_moments(design: Sequence[Mapping[str, Any]], moments: Mapping[str, Any], radius: float) -> SecondMoments:
    """The moments that `noisy_moments` released of vectors as `design` describes them, clipped to `radius`."""
    d = len(design)
    sums, noise = np.empty((d + 1, d + 1)), np.empty((d + 1, d + 1))
    sums[0, 0], noise[0, 0] = moments["count"][0], moments["count_noise"]
    sums[0, 1:] = sums[1:, 0] = np.asarray(moments["first"])[0] * radius
    noise[0, 1:] = noise[1:, 0] = moments["first_noise"] * radius
    sums[1:, 1:] = np.asarray(moments["second"])[0] * radius**2
    beside = math.sqrt(2) if moments["mechanism"] == "gaussian" else 1.0  # off the diagonal Gaussian noise is less
    noise[1:, 1:] = moments["second_noise"] * radius**2 / beside
    noise[range(1, d + 1), range(1, d + 1)] = moments["second_noise"] * radius**2
    return SecondMoments(
        tuple(str(term["name"]) for term in design), np.array([float(term["centre"]) for term in design]),
        np.array([float(term["scale"]) for term in design]), sums, noise, quantile_of(moments["mechanism"]),
    )  # fmt: skip


def quantile_of(mechanism: str) -> float:
    """Half of the 95 % interval of a sum of such noises, in its deviations."""
    return sum_quantile(Gaussian if mechanism == "gaussian" else Laplace)


def hidden(matrix: Floats, noise: Floats) -> bool:
    """Whether a symmetric matrix has a direction in which it is not clear of its noise."""
    values, vectors = np.linalg.eigh(matrix)
    squares = vectors**2
    twice = 2.0 - np.eye(len(matrix))  # an entry off the diagonal stands in two places
    deviations = np.sqrt(np.einsum("ik,ij,jk->k", squares, noise**2 * twice, squares))
    return bool((values <= np.maximum(CLEAR * deviations, 1e-12 * np.abs(values).max(initial=0.0))).any())


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients β of the coordinates `of`, and the covariance of what noise and sampling add to them."""

    coefficients: Floats
    noise: Floats
    sampling: Floats
    hidden: bool
    explained: float


def least_squares(m: SecondMoments, of: Sequence[int], target: int) -> Fit:
    """Coordinate `target` by the coordinates `of` (0 is the constant), in the coordinates' own units.

    Sampling is that of independent rows whose errors are of one size.
    """
    places = list(of)
    matrix, right = m.sums[np.ix_(places, places)], m.sums[places, target]
    unsure = m.noise[np.ix_(places, places)]
    inverse = np.linalg.pinv(matrix, hermitian=True)
    beta = inverse @ right
    moved = unsure**2 * np.outer(beta, beta)
    np.fill_diagonal(moved, 0.0)
    moved += np.diag(m.noise[places, target] ** 2 + unsure**2 @ beta**2)
    whole = np.append(beta, -1.0)
    joint = np.ix_([*places, target], [*places, target])
    residual = float(whole @ m.sums[joint] @ whole)
    twice = 2.0 - np.eye(len(whole))
    wobble = math.sqrt(float((whole**2) @ (m.noise[joint] ** 2 * twice) @ (whole**2)))
    spread = float(m.sums[target, target] - m.sums[0, target] ** 2 / max(m.rows, 1.0))
    variance = max(residual, wobble, 0.0) / max(m.rows - len(places), 1.0)
    explained = min(max(1.0 - residual / spread, 0.0), 1.0) if spread > 0 else 0.0
    noise: Floats = inverse @ moved @ inverse
    return Fit(beta, noise, np.asarray(variance * inverse), hidden(matrix, unsure), explained)
