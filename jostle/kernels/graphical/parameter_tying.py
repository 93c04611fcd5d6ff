"""Parameter tying: cliques that share one potential, such as a stationary chain learned from one table of steps.

Group g of E_g cliques of one shape has one potential θ_g and one table, the mean of its cliques' tables. With M the
size of the largest group, a clique of g holds θ_g·M/E_g, and inference gives A/M: its slope in θ_g is the mean of the
group's marginals. So learning from tables sees what it sees of one clique a table, and the ridge means the same.

A person with K steps gives each of them the weight 1/K: the table of all steps is then worth one row a person.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.errors import KernelError
from jostle.kernels.graphical.domain import Clique
from jostle.kernels.graphical.structure import Structure, split

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class TiedStructure:
    """A structure seen through `groups` of its cliques, which it has the face of: a table and a potential a group."""

    base: Structure
    groups: Groups

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(self.base.shapes[group[0]] for group in self.groups)

    @cached_property
    def lengths(self) -> list[int]:
        return [int(np.prod(shape)) for shape in self.shapes]

    @cached_property
    def margins(self) -> tuple[Clique, ...]:
        """A mean over several places in time has no one variable's margin: no two tables need agree."""
        ends = np.cumsum([len(shape) for shape in self.shapes])
        return tuple(tuple(range(int(e) - len(s), int(e))) for e, s in zip(ends, self.shapes, strict=True))

    def split(self, flat: Floats) -> list[Floats]:
        return split(flat, self.lengths, self.shapes)

    def joined(self, tables: Sequence[Floats]) -> Floats:
        if len(tables) != len(self.groups):
            raise KernelError(f"{len(tables)} tables for {len(self.groups)} groups of cliques")
        for shape, table in zip(self.shapes, tables, strict=True):
            if np.size(table) != int(np.prod(shape)):
                raise KernelError(f"a group's table has {np.size(table)} cells and needs {np.prod(shape)}")
        return np.concatenate([np.asarray(t, dtype=float).ravel() for t in tables])

    def potentials(self, theta: Floats) -> Floats:
        """The flat potentials of all cliques."""
        parts: list[Floats] = [np.empty(0)] * len(self.base.cliques)
        for group, shared in zip(self.groups, self.split(theta), strict=True):
            for clique in group:
                parts[clique] = shared.ravel() * (self._largest / len(group))
        return np.concatenate(parts)

    def infer(self, theta: Floats) -> tuple[float, Floats]:
        """(log-partition over M, the flat mean marginals of the groups)."""
        log_partition, flat = self.base.infer(self.potentials(theta))
        return log_partition / self._largest, self.means(flat)

    def means(self, flat: Floats) -> Floats:
        """The flat vector of the groups' mean tables, of that of all cliques."""
        tables = self.base.split(flat)
        return np.concatenate([sum(tables[c].ravel() for c in group) / len(group) for group in self.groups])

    def spread(self, tables: Sequence[Floats]) -> list[Floats]:
        """Tables of the groups as tables of all cliques."""
        spread_out: dict[int, Floats] = {}
        for group, table in zip(self.groups, self.split(self.joined(tables)), strict=True):
            spread_out |= dict.fromkeys(group, table)
        return [spread_out[c] for c in range(len(self.base.cliques))]

    @property
    def _largest(self) -> int:
        return max(len(group) for group in self.groups)


def tie_cliques(structure: Structure, groups: Any) -> TiedStructure:
    """ValueError unless `groups` hold each clique once, those of a group over tables of one shape."""
    places: Groups = tuple(tuple(int(c) for c in group) for group in groups)
    if sorted(c for group in places for c in group) != list(range(len(structure.cliques))) or not all(places):
        raise KernelError(f"groups hold each of the {len(structure.cliques)} cliques once, by its place from 0")
    if any(structure.shapes[c] != structure.shapes[group[0]] for group in places for c in group):
        raise KernelError("cliques that share a potential have tables of one shape")
    return TiedStructure(structure, places)
