"""A domain with cliques, over which inference is exact or by loopy belief propagation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.errors import KernelError
from jostle.kernels.graphical.calibrate import calibrate
from jostle.kernels.graphical.domain import Clique, Domain
from jostle.kernels.graphical.junction import JunctionTree, plan
from jostle.kernels.graphical.loopy import propagate

WAYS = ("exact", "loopy")


def split(flat: Floats, lengths: Sequence[int], shapes: Sequence[tuple[int, ...]]) -> list[Floats]:
    """A flat vector as tables of these shapes, which have so many cells."""
    ends = np.cumsum(lengths)
    return [flat[e - n : e].reshape(s) for e, n, s in zip(ends, lengths, shapes, strict=True)]


@dataclass(frozen=True)
class Structure:
    """Cliques over a domain. Potentials of all cliques together are one flat vector θ, a clique after the other."""

    domain: Domain
    cliques: tuple[Clique, ...]
    inference: str = "exact"

    def __post_init__(self) -> None:
        if self.inference not in WAYS:
            raise KernelError(f"inference is `exact` or `loopy`, not {self.inference}")
        if self.inference == "exact":
            plan(self.domain.sizes, self.cliques)

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        sizes = self.domain.sizes
        return tuple(tuple(sizes[v] for v in clique) for clique in self.cliques)

    @property
    def plan(self) -> JunctionTree:
        return plan(self.domain.sizes, self.cliques)

    @cached_property
    def lengths(self) -> list[int]:
        """The number of cells of each clique's table."""
        return [int(np.prod(shape)) for shape in self.shapes]

    @property
    def margins(self) -> tuple[Clique, ...]:
        """The variable of each axis of every table, on whose margins tables can be made to agree."""
        return self.cliques

    def potentials(self, theta: Floats) -> Floats:
        """Returns `theta`: untied potentials are learned as they are (`parameter_tying` expands them)."""
        return theta

    def split(self, flat: Floats) -> list[Floats]:
        """A flat vector as tables."""
        return split(flat, self.lengths, self.shapes)

    def joined(self, tables: Sequence[Floats]) -> Floats:
        """Tables, one a clique, as a flat vector; refused where a shape is another."""
        if len(tables) != len(self.cliques):
            raise KernelError(f"{len(tables)} tables for {len(self.cliques)} cliques")
        for clique, shape, table in zip(self.cliques, self.shapes, tables, strict=True):
            if np.size(table) != int(np.prod(shape)):
                names = ", ".join(self.domain.names_of(clique))
                raise KernelError(f"the table over {names} has {np.size(table)} cells and needs {np.prod(shape)}")
        return np.concatenate([np.asarray(t, dtype=float).ravel() for t in tables]) if tables else np.zeros(0)

    def infer(self, theta: Floats) -> tuple[float, Floats]:
        """(log-partition, the flat vector of clique marginals)."""
        if self.inference == "loopy":
            log_partition, tables = propagate(self.domain.sizes, self.cliques, self.split(theta))
        else:
            calibrated = calibrate(self.plan, self.split(theta))
            log_partition, tables = calibrated.log_partition, calibrated.marginals()
        return log_partition, np.concatenate([t.ravel() for t in tables]) if tables else np.zeros(0)
