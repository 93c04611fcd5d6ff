"""Mixtures of Gaussians as public values: density, responsibilities, samples, and what an E-step needs of them.

A model lives in the units of the ball its rows were clipped to (`Space`); what it is asked and answers is in the units
of the data. A single Gaussian is a mixture of one. Random numbers are seeded. Factor analysis takes one noisy
covariance: its EM iterations look at nothing else, and cost nothing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jostle.kernels import KernelError, Model, members
from jostle.kernels.arrays import Floats, Rows

Rng = np.random.Generator


def generator(seed: int) -> Rng:
    return np.random.default_rng(int(seed))


def dispersed_points(count: int, d: int, seed: int) -> NDArray[np.float64]:
    """`count` normal points of d coordinates: of 64 draws that whose nearest two are farthest apart."""
    rng = generator(seed)
    best, points = -1.0, np.zeros((count, d))
    for _ in range(64):
        candidate = rng.standard_normal((count, d))
        gaps = np.linalg.norm(candidate[:, None] - candidate[None], axis=2)[np.triu_indices(count, 1)]
        if gaps.min(initial=1e9) > best:
            best, points = float(gaps.min(initial=1e9)), candidate
    return points


def inside_ball(means: Floats) -> Floats:
    """Places (K, d) of which none lies out of the ball, as no mean of rows in it does."""
    return means / np.maximum(1.0, np.linalg.norm(means, axis=1, keepdims=True))  # type: ignore[no-any-return]


def need_rows(rows: object) -> None:
    """Refuses what holds no rows of numbers; also before anything is paid for the model."""
    _numbers_of(rows)


def _numbers_of(rows: object, columns: Sequence[str] = ()) -> Floats:
    """Rows as numbers (n, d), of records those of `columns`, or all that they have."""
    many = [rows] if isinstance(rows, Mapping) else rows
    if isinstance(many, list):
        many = [
            [row.get(name, math.nan) for name in columns or row] if isinstance(row, Mapping) else row for row in many
        ]
    with suppress(TypeError, ValueError):
        numbers = np.asarray(many, dtype=np.float64)
        if numbers.ndim:
            return np.atleast_2d(numbers)
    raise KernelError("a row is a list of numbers, or a record such as {age: 40, income: 20000}")


VectorRows = Annotated[Any, need_rows]
"""Rows (n, d) in the units of the data, as an array, lists or records by column; or one of them."""


@dataclass(frozen=True, eq=False)
class Space:
    """The coordinates of rows: u = (x − centres) / (scales · radius), in units of the ball."""

    columns: tuple[str, ...]
    centres: Floats
    scales: Floats  # already times the radius
    reach: float = np.inf
    """The largest coordinate of a row, where columns are scaled by their bounds."""

    @classmethod
    def of(cls, facts: Rows) -> Space:
        """From the public facts of `vectors(…)`."""
        centres, scales = np.asarray(facts["centres"], dtype=float), np.asarray(facts["scales"], dtype=float)
        reach = 1 / float(facts["radius"]) if centres.any() or (scales != 1).any() else np.inf
        return cls(tuple(facts["columns"]), centres, scales * float(facts["radius"]), reach)

    @property
    def size(self) -> int:
        return len(self.columns)

    def numbers(self, rows: VectorRows) -> Floats:
        """Rows (n, d) of the data, or one row (d,), each a list of numbers or a record of them by column, as (n, d)."""
        x = _numbers_of(rows, self.columns)
        if x.ndim != 2 or x.shape[1] != self.size or np.isnan(x).any():
            raise KernelError(f"a row has a number for each of {', '.join(self.columns)}")
        return x

    def inside(self, rows: VectorRows) -> Floats:
        """The same in units of the ball."""
        return (self.numbers(rows) - self.centres) / self.scales

    def outside(self, units: Floats) -> Floats:
        return units * self.scales + self.centres


class OfVectors(Model):
    """A public value that was made of rows in a space: what all such have in scikit-learn's face."""

    space: Space

    @property
    def columns(self) -> tuple[str, ...]:
        return self.space.columns

    @property
    def n_features_in_(self) -> int:
        return self.space.size

    def __repr__(self) -> str:
        return str(self)


class Density(OfVectors, ABC):
    @abstractmethod
    def score_samples(self, rows: VectorRows) -> Floats:
        """The log of the density at each row, in the units of the data."""

    def score(self, rows: VectorRows, y: object = None) -> float:
        """The mean log-likelihood of rows."""
        return float(self.score_samples(rows).mean())

    def _likelihood(self, rows: VectorRows) -> float:
        return self.score(rows)


class GaussianMixture(Density):
    """A mixture of Gaussians that was paid for: a public value, and of scikit-learn's shape in Python.

    `weights_` (K,), `means_` (K, d) and `covariances_` (K, d, d) are in the units of the data; `means`, `covariances`
    inside are in those of the ball. `predict`, `predict_proba`, `score_samples`, `score` take rows (n, d).
    """

    def __init__(self, space: Space, weights: Floats, means: Floats, covariances: Floats) -> None:
        self.space = space
        self.weights, self.means, self.covariances = weights, means, covariances
        lower = np.linalg.cholesky(covariances)
        identity = np.broadcast_to(np.eye(space.size), covariances.shape)
        self.factors = np.linalg.solve(lower, identity).transpose(0, 2, 1)
        self._log_dets = np.log(np.einsum("kii->ki", lower)).sum(axis=1)

    # As scikit-learn has it -------------------------------------------------------------------------

    @property
    def n_components(self) -> int:
        return len(self.weights)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        return np.array(self.space.columns, dtype=object)

    @property
    def weights_(self) -> Floats:
        return self.weights

    @property
    def means_(self) -> Floats:
        return self.space.outside(self.means)

    @property
    def covariances_(self) -> Floats:
        return self.covariances * np.outer(self.space.scales, self.space.scales)

    def _logs(self, rows: VectorRows) -> Floats:
        """ln π_k + ln N(x | k) in the units of the data, (n, K)."""
        u = self.space.inside(rows)
        logs = np.empty((len(u), len(self.weights)))
        constant = self.space.size / 2 * math.log(2 * math.pi) + np.log(np.abs(self.space.scales)).sum()
        for k in range(len(self.weights)):
            y = (u - self.means[k]) @ self.factors[k]
            logs[:, k] = np.log(self.weights[k]) - 0.5 * (y * y).sum(axis=1) - self._log_dets[k] - constant
        return logs

    def score_samples(self, rows: VectorRows) -> Floats:
        """The log of the density at each row."""
        logs = self._logs(rows)
        top = logs.max(axis=1)
        return top + np.log(np.exp(logs - top[:, None]).sum(axis=1))  # type: ignore[no-any-return]

    def predict_proba(self, rows: VectorRows) -> Floats:
        """The responsibilities of the components, (n, K)."""
        logs = self._logs(rows)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]

    def predict(self, rows: VectorRows) -> NDArray[np.int64]:
        """The likeliest component of each row."""
        return np.asarray(np.argmax(self._logs(rows), axis=1))

    def sample(self, n_samples: int = 1, seed: int = 0) -> tuple[Floats, NDArray[np.int64]]:
        """Simulated rows and their components: drawn from the model, so that they cost nothing."""
        rng = generator(seed)
        labels = np.sort(rng.choice(len(self.weights), int(n_samples), p=self.weights / self.weights.sum()))
        normal = rng.standard_normal((int(n_samples), self.space.size))
        lower = np.linalg.cholesky(self.covariances)
        rows = self.means[labels] + np.einsum("nij,nj->ni", lower[labels], normal)
        return self.space.outside(rows), labels

    # As the language has it -------------------------------------------------------------------------

    jostle_kind = "a mixture of Gaussians"
    jostle_members = members(
        "columns weights density ellipse", size="n_components", means="means_", covariances="covariances_",
        log_likelihood="_likelihood", responsibilities="predict_proba", predict="likeliest", sample="rows",
    )  # fmt: skip

    def density(self, rows: VectorRows) -> Floats:
        return np.asarray(np.exp(self.score_samples(rows)))

    def likeliest(self, rows: VectorRows) -> Floats:
        """The likeliest component of each row, as numbers of the language."""
        return self.predict(rows).astype(float)

    def rows(self, rows: int, seed: int = 0) -> Floats:
        """Synthetic rows, without their components."""
        return self.sample(rows, seed)[0]

    def ellipse(self, component: int, deviations: float = 2.0, points: int = 64) -> Floats:
        """The outline of a component in its first two columns, (points, 2), at so many standard deviations."""
        if self.space.size < 2:
            raise KernelError("an ellipse needs two columns")
        angle = np.linspace(0, 2 * np.pi, int(points))
        around = np.stack([np.cos(angle), np.sin(angle)], axis=1) * deviations
        k = int(component)
        return self.means_[k, :2] + around @ np.linalg.cholesky(self.covariances_[k][:2, :2]).T

    def as_json(self) -> dict[str, object]:
        return {
            "kind": "gaussian mixture", "columns": list(self.space.columns), "weights": self.weights.tolist(),
            "means": self.means_.tolist(), "covariances": self.covariances_.tolist(),
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> GaussianMixture:
        """The model that `as_json` wrote."""
        d = len(data["columns"])
        space = Space(tuple(data["columns"]), np.zeros(d), np.ones(d))
        return cls(space, *(np.asarray(data[name], dtype=float) for name in ("weights", "means", "covariances")))

    def __str__(self) -> str:
        lines = [f"mixture of {len(self.weights)} Gaussians over {', '.join(self.space.columns[:8])}"]
        spread = np.sqrt(np.einsum("kii->ki", self.covariances_))
        for k in np.argsort(-self.weights, kind="stable")[:8]:
            columns = ", ".join(f"{m:.4g} ± {s:.3g}" for m, s in zip(self.means_[k, :6], spread[k, :6], strict=True))
            lines.append(f"  {self.weights[k]:.3f}  {columns}{', …' if self.space.size > 6 else ''}")
        return "\n".join(lines + (["  …"] if len(self.weights) > 8 else []))


class FactorAnalysis(Density):
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

    def transform(self, rows: VectorRows) -> Floats:
        """The expected factors of each row, (n, factors)."""
        u = self.space.inside(rows) - self.mean
        weighted = self.loadings / self.noise[:, None]
        inner = np.eye(self.loadings.shape[1]) + self.loadings.T @ weighted
        return np.asarray(np.linalg.solve(inner, (u @ weighted).T).T, dtype=np.float64)

    def score_samples(self, rows: VectorRows) -> Floats:
        """The log of the density at each row, in the units of the data."""
        covariance = self.loadings @ self.loadings.T + np.diag(self.noise)
        return GaussianMixture(self.space, np.ones(1), self.mean[None], covariance[None]).score_samples(rows)

    def angle(self, other: ArrayLike) -> float:
        """The largest principal angle, in degrees, between the loadings and the rows of `other` (factors, d)."""
        mine = np.linalg.qr(self.components_.T)[0]
        theirs = np.linalg.qr(np.asarray(other, dtype=float).T)[0]
        cosines = np.linalg.svd(mine.T @ theirs, compute_uv=False)
        return float(np.degrees(np.arccos(np.clip(cosines.min(), -1, 1))))

    jostle_kind = "a factor analysis"
    jostle_members = members(
        "columns transform angle", loadings="components_", noise="noise_variance_", mean="mean_",
        log_likelihood="_likelihood",
    )  # fmt: skip

    def as_json(self) -> dict[str, object]:
        return {
            "kind": "factor analysis", "columns": list(self.space.columns), "loadings": self.components_.tolist(),
            "noise": self.noise_variance_.tolist(), "mean": self.mean_.tolist(),
        }  # fmt: skip

    def __str__(self) -> str:
        return f"{self.loadings.shape[1]} factors of {self.space.size} columns"


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
