"""What noise was given, and what it lost: from two records of neighbouring inputs, without any stated sensitivity.

For Laplace noise ‖x − x′‖₁ over the scale, for noise in a cube the largest |xᵢ − xᵢ′| over it, for Gaussian noise
‖x − x′‖₂² over 2σ², for a noisy max with exponential noise the range of the differences of the scores over the scale,
and with Gumbel noise an eighth of that squared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Draw:
    """One use of noise: what it was given, which must show nowhere, and its scale, which is public."""

    kind: str  # "laplace" | "gaussian" | "cube" | "selection" | "gumbel"
    values: np.ndarray
    scale: float

    def loss(self, other: Draw) -> float:
        """Pure ε of Laplace noise or of a selection with exponential noise; ρ of Gaussian and of Gumbel noise."""
        assert (self.kind, self.scale, self.values.shape) == (other.kind, other.scale, other.values.shape)
        gap = self.values.astype(float) - other.values.astype(float)
        if not np.any(gap):
            return 0.0
        if self.kind == "laplace":
            return float(np.abs(gap).sum()) / self.scale
        if self.kind == "cube":
            return float(np.abs(gap).max()) / self.scale
        if self.kind == "gaussian":
            return float(((gap / self.scale) ** 2).sum()) / 2
        moved = float(gap.max() - gap.min()) / self.scale
        return moved**2 / 8 if self.kind == "gumbel" else moved

    def logarithm(self) -> float:
        """Of the probability that a selection takes the first place."""
        let = np.exp((self.values - self.values.max()).astype(float) / self.scale).ravel()
        if self.kind == "gumbel":
            return float(np.log(let[0] / let.sum()))
        times, weights = np.polynomial.legendre.leggauss(len(let))  # exact: a product of so many over even times
        return float(np.log(let[0] * weights @ (1 - (times[:, None] + 1) / 2 * let[1:]).prod(axis=1) / 2))


def lost_by(one: list[Draw], other: list[Draw]) -> float:
    """What the draws of one charge lost together. Where a selection is followed by others, which take back what it has
    lost (a tree drawn whole), that is by the probability of the places that were taken, the first of each."""
    if len(one) > 1 and {x.kind for x in one[1:]} == {"gumbel"} and one[0].kind == "selection":
        return abs(sum(x.logarithm() - y.logarithm() for x, y in zip(one, other, strict=True)))
    return sum(x.loss(y) for x, y in zip(one, other, strict=True))
