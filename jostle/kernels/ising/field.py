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

SHOWN = 12  # pairs of a printed model


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
    def log_likelihood(self, rows: object) -> float:
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

    def told(self, what: str, of_pairs: str) -> str:
        """What people read: `what` it is, then the strongest pairs and, of each, the largest number, `of_pairs`."""
        p = len(self.names)
        pulls = self.pulls.reshape(p, p, -1)
        single = pulls.shape[2] == 1  # else the sign is that of one entry of many, and is left out
        largest = pulls[:, :, 0] if single else np.abs(pulls).max(axis=2)
        pairs = [(i, j) for i, j in zip(*np.triu_indices(p, 1), strict=True) if largest[i, j] != 0]
        if not pairs:
            return f"{what}, no pairs"
        pairs.sort(key=lambda pair: -abs(largest[pair]))
        long, form = max(map(len, self.names)), "+.3f" if single else ".3f"
        lines = [f"    {self.names[i]:<{long}}  {self.names[j]:<{long}}  {largest[i, j]:{form}}" for i, j in pairs]
        more = [f"    … and {len(pairs) - SHOWN} weaker pairs"] if len(pairs) > SHOWN else []
        return "\n".join([f"{what}; {of_pairs}:", *lines[:SHOWN], *more])

    def error(self, other: object) -> float:
        """The largest difference of a parameter of a pair."""
        if not isinstance(other, Field) or other.pulls.shape != self.pulls.shape:
            raise KernelError("only models of one kind over as many variables and values can be compared")
        return float(np.abs(self.pulls - other.pulls).max())

    def sample(self, rows: int, seed: int = 0) -> list[list[float]]:
        """Rows as lists: synthetic, and free."""
        return self.sample_array(rows, seed).tolist()  # type: ignore[no-any-return]
