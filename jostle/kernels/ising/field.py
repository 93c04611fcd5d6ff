"""The common base of Ising models and pairwise fields: parameters for pairs of variables.

An Ising model is the pairwise field of two values whose centred tables are ±A_ij, so that how wide a model is, which
pairs are its edges, how far two models are apart and how rows are drawn mean the same for both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.errors import KernelError


@dataclass(frozen=True)
class Field(ABC):
    """A field over named variables; what it is made of is for its kind to say."""

    names: tuple[str, ...]

    @property
    @abstractmethod
    def pulls(self) -> Floats:
        """All parameters of pairs, (p, p) or (p, p, k, k), symmetric."""

    @property
    @abstractmethod
    def widths(self) -> Floats:
        """For each variable the most that its neighbours and its own parameter can pull at it together."""

    @abstractmethod
    def sample_array(self, rows: int, seed: int = 0) -> Floats:
        """(rows, p): independent rows, as the model has its values."""

    @abstractmethod
    def log_likelihood(self, rows: Any) -> float:
        """The mean log-probability of public rows, as the model has its values."""

    @property
    def shared_fields(self) -> dict[str, Any]:
        """The fields that a program can read of both kinds of model."""
        methods: dict[str, Callable[..., Any]] = {
            "edges": self.edges, "error": self.error, "sample": self.sample, "log_likelihood": self.log_likelihood,
        }  # fmt: skip
        return {"names": list(self.names), "width": self.width, **methods}

    @property
    def width(self) -> float:
        """λ, the largest of `widths`."""
        return float(self.widths.max())

    def edges(self, threshold: float) -> list[list[str]]:
        """The pairs of which some parameter reaches `threshold`: the structure, right where none is off by half of the
        smallest true one and that half is the threshold."""
        p = len(self.names)
        strongest = np.abs(self.pulls).reshape(p, p, -1).max(axis=2)
        pairs = zip(*np.triu_indices(p, 1), strict=True)
        return [[self.names[i], self.names[j]] for i, j in pairs if strongest[i, j] >= threshold]

    def error(self, other: Any) -> float:
        """The largest difference of a parameter of a pair."""
        if not isinstance(other, Field) or other.pulls.shape != self.pulls.shape:
            raise KernelError("only models of one kind over as many variables and values can be compared")
        return float(np.abs(self.pulls - other.pulls).max())

    def sample(self, rows: int, seed: int = 0) -> list[list[float]]:
        """Rows as lists: synthetic, and free."""
        return self.sample_array(rows, seed).tolist()  # type: ignore[no-any-return]
