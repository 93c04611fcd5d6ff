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
