"""Factor analysis from one noisy covariance: the EM iterations look at nothing else, and cost nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jostle.kernels.arrays import Floats
from jostle.kernels.errors import KernelError
from jostle.kernels.mixtures.gaussians import GaussianMixture, Space


class FactorAnalysis:
    """x = W z + mean + noise, z ~ N(0, I), noise ~ N(0, diag): a public value with scikit-learn's face.

    `components_` (factors, d), `noise_variance_` and `mean_` (d,) are in the units of the data.
    """

    def __init__(self, space: Space, mean: Floats, loadings: Floats, noise: Floats) -> None:
        self.space, self.mean, self.loadings, self.noise = space, mean, loadings, noise

    @property
    def components_(self) -> Floats:
        return (self.loadings * self.space.scales[:, None]).T

    @property
    def noise_variance_(self) -> Floats:
        return self.noise * self.space.scales**2

    @property
    def mean_(self) -> Floats:
        return self.space.outside(self.mean)

    def get_covariance(self) -> Floats:
        return self.components_.T @ self.components_ + np.diag(self.noise_variance_)

    def transform(self, rows: ArrayLike) -> Floats:
        """The expected factors of each row, (n, factors)."""
        u = self.space.inside(rows) - self.mean
        weighted = self.loadings / self.noise[:, None]
        inner = np.eye(self.loadings.shape[1]) + self.loadings.T @ weighted
        return np.asarray(np.linalg.solve(inner, (u @ weighted).T).T, dtype=np.float64)

    def score_samples(self, rows: ArrayLike) -> Floats:
        """The log of the density at each row, in the units of the data."""
        u = self.space.inside(rows) - self.mean
        lower = np.linalg.cholesky(self.loadings @ self.loadings.T + np.diag(self.noise))
        y = np.linalg.solve(lower, u.T)
        constant = np.log(np.diag(lower)).sum() + np.log(np.abs(self.space.scales)).sum()
        return np.asarray(-0.5 * (y * y).sum(axis=0) - constant - self.space.size / 2 * math.log(2 * math.pi))

    def score(self, rows: ArrayLike, y: object = None) -> float:
        """The mean log-likelihood of rows."""
        return float(self.score_samples(rows).mean())

    def angle(self, other: ArrayLike) -> float:
        """The largest principal angle, in degrees, between the loadings and the rows of `other` (factors, d)."""
        mine = np.linalg.qr(self.components_.T)[0]
        theirs = np.linalg.qr(np.asarray(other, dtype=float).T)[0]
        cosines = np.linalg.svd(mine.T @ theirs, compute_uv=False)
        return float(np.degrees(np.arccos(np.clip(cosines.min(), -1, 1))))

    jostle_kind = "a factor analysis"

    @property
    def jostle_fields(self) -> dict[str, object]:
        return {
            "columns": list(self.space.columns), "loadings": self.components_, "noise": self.noise_variance_,
            "mean": self.mean_, "log_likelihood": self.score, "transform": self.transform, "angle": self.angle,
        }  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": "factor analysis", "columns": list(self.space.columns), "loadings": self.components_.tolist(),
            "noise": self.noise_variance_.tolist(), "mean": self.mean_.tolist(),
        }  # fmt: skip

    def __str__(self) -> str:
        return f"{self.loadings.shape[1]} factors of {self.space.size} columns"

    __repr__ = __str__


def factor_model(pooled: GaussianMixture, factors: int, steps: int = 200) -> FactorAnalysis:
    """EM of factor analysis on a released covariance (Rubin & Thayer 1982), from its leading eigenvectors."""
    d = pooled.space.size
    if not 1 <= factors < d:
        raise KernelError(f"there are 1 to {d - 1} factors of {d} columns")
    covariance = pooled.covariances[0]
    values, vectors = np.linalg.eigh(covariance)
    rest = max(float(values[: d - factors].mean()), 1e-12)
    loadings = vectors[:, -factors:] * np.sqrt(np.maximum(values[-factors:] - rest, rest * 1e-3))
    noise = np.maximum(np.diag(covariance) - (loadings**2).sum(axis=1), 1e-3 * np.diag(covariance))
    for _ in range(int(steps)):
        weighted = loadings / noise[:, None]
        inverse = np.linalg.inv(np.eye(factors) + loadings.T @ weighted)
        beta = inverse @ weighted.T
        crossed = covariance @ beta.T
        loadings = crossed @ np.linalg.inv(inverse + beta @ crossed)
        noise = np.maximum(np.diag(covariance - loadings @ crossed.T), 1e-3 * np.diag(covariance))
    return FactorAnalysis(pooled.space, pooled.means[0], loadings, noise)
