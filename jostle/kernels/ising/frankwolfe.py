"""Frank–Wolfe over an ℓ₁ ball, a vertex at a time, and the sparse logistic model that it ends in.

A step goes to a vertex ±R·e_j of the ball {w: ‖w‖₁ ≤ R}; which one is chosen outside, with noise, from the sum of
gradients over private rows. What is here knows the chosen vertices only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.errors import KernelError

Facts = Mapping[str, Any]

PACE = 0.5
"""The factor of (R·n·√ρ/2)^(2/3) steps, at which the errors of optimisation and of noise are of one order. The theory
leaves it open; a half was best on rings with chords (docs/experiments/ising.md)."""
LEAST = 8


def fw_start(size: int) -> Floats:
    """Zero: no vertex has been seen."""
    return np.zeros(int(size))


def fw_rounds(rows: float, radius: float, rho: float, most: int) -> int:
    """The number of steps for about `rows` rows at `rho`, between LEAST and `most`; all of it is public.

    `rho` is infinite for rows that are public, which gives `most`.
    """
    if not (radius > 0 and rho > 0):
        raise KernelError("a radius and an amount are positive")
    steps = PACE * (max(float(rows), 1.0) * float(radius) / 2 * float(np.sqrt(rho))) ** (2 / 3)
    return round(min(max(float(LEAST), float(steps)), float(most)))


def fw_step(weights: object, vertex: int, radius: float, step: int) -> Floats:
    """w ← (1 − μ)w + μs with μ = 2/(t + 2), t = 0, 1, …: the first step forgets the start.

    `chosen` is the largest of the gradient's coordinates, then of their negatives: the vertex lies against it.
    """
    w = np.array(weights, dtype=float)
    mu = 2.0 / (int(step) + 2)
    place, sign = (int(vertex), -1.0) if vertex < w.size else (int(vertex) - w.size, 1.0)
    w *= 1.0 - mu
    w.flat[place] += mu * sign * float(radius)
    return w


def column_place(rows: Facts, column: object) -> int:
    """The position of a column, given by its name or its position; refused where rows are not bounded one by one."""
    if rows["norm"] != "sup" or rows["radius"] != 1:
        raise KernelError('rows are `vectors(…, norm = "sup")` here, each coordinate within −1 and 1')
    names = list(rows["columns"])
    if column in names:
        return names.index(column)
    if isinstance(column, int | float) and 0 <= int(column) < len(names):
        return int(column)
    raise KernelError(f"there is no column `{column}` among {', '.join(names)}")


@dataclass(frozen=True)
class LogisticModel:
    """P(y = 1 | x) = σ(w·x + c), y the sign of column `target` and x the others, scaled by their public bounds."""

    names: tuple[str, ...]
    target: str
    weights: Floats
    constant: float
    centres: Floats
    scales: Floats

    jostle_kind = "a logistic model"

    @property
    def jostle_fields(self) -> dict[str, object]:
        return {
            "names": list(self.names), "target": self.target, "weights": self.weights.tolist(),
            "constant": self.constant, "probability": self.probability, "loss": self.loss,
        }  # fmt: skip

    def probability(self, row: Mapping[str, float]) -> float:
        """That the target is positive: its upper half, for a row of the other columns, in the units of the data."""
        x = np.array([[float(row[name]) for name in self.names]])
        return float(1 / (1 + np.exp(-self._margins(x)[0])))

    def loss(self, rows: object) -> float:
        """The mean logistic loss over public rows of all columns but the target, then the target as −1 or 1."""
        table = np.asarray(rows, dtype=float)
        return float(np.logaddexp(0, -table[:, -1] * self._margins(table[:, :-1])).mean())

    def _margins(self, x: Floats) -> Floats:
        scaled = np.clip((x - self.centres) / self.scales, -1.0, 1.0)
        return np.asarray(scaled @ self.weights + self.constant)

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": "logistic", "names": list(self.names), "target": self.target, "weights": self.weights.tolist(),
            "constant": self.constant, "centres": self.centres.tolist(), "scales": self.scales.tolist(),
        }  # fmt: skip

    def __str__(self) -> str:
        terms = [f"{w:+.3g} {name}" for name, w in zip(self.names, self.weights, strict=True) if w]
        return f"logistic model of {self.target}: {self.constant:.3g} {' '.join(terms)}"


def logistic_model(rows: Facts, place: int, weights: object) -> LogisticModel:
    """The logistic model of node regression `weights`, whose constant stands in the target's place."""
    w = np.asarray(weights, dtype=float)
    others = [i for i in range(w.size) if i != int(place)]
    names = list(rows["columns"])
    return LogisticModel(
        tuple(names[i] for i in others), names[int(place)], w[others], float(w[int(place)]),
        np.array([rows["centres"][i] for i in others]), np.array([rows["scales"][i] for i in others]),
    )  # fmt: skip
