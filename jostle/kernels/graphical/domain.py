"""The domain of a model, its variables with their values, and cliques over it, some of which may share one potential.

A domain comes as a record, `{age: 0..9, sex: {"Female", "Male"}, ward: 12}`: a range, a set or list of values, or a
number of values 0 … k − 1.

*Tying*, such as of a stationary chain learned from one table of steps: group g of E_g cliques of one shape has one
potential θ_g and one table, the mean of its cliques' tables. With M the size of the largest group, a clique of g holds
θ_g·M/E_g, and inference gives A/M: its slope in θ_g is the mean of the group's marginals, so that learning sees what it
sees of one clique a table. A person with K steps gives each of them the weight 1/K.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jostle.kernels import KernelError
from jostle.kernels.arrays import Floats
from jostle.kernels.graphical.junction import JunctionTree, calibrate, plan, propagate

MOST_VALUES = 2**20
Clique = tuple[int, ...]


@dataclass(frozen=True)
class Domain:
    """Variables in order, each with its values.

    >>> Domain.of({"a": 2, "b": ["x", "y", "z"]}).sizes
    (2, 3)
    """

    names: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, description: object) -> Domain:
        if isinstance(description, Domain):
            return description
        if not isinstance(description, Mapping) or not description:
            raise KernelError("a domain is a record of variables, such as {age: 0..9, sex: {'Female', 'Male'}}")
        return cls(tuple(description), tuple(_values(name, values) for name, values in description.items()))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(values) for values in self.values)

    @property
    def states(self) -> float:
        """The number of joint states, a double, since it may be beyond 2^63."""
        return math.prod(float(size) for size in self.sizes)

    def place(self, name: object) -> int:
        if not isinstance(name, str):
            raise KernelError(f'a variable is named by a text, such as "{self.names[0]}"')
        if name not in self.names:
            raise KernelError(f"there is no variable `{name}`: the variables are {', '.join(self.names)}")
        return self.names.index(name)

    def clique(self, names: Any) -> Clique:
        """The places of a clique's variables, in the order of the clique."""
        members = [names] if isinstance(names, str) else list(names)
        places = tuple(self.place(name) for name in members)
        if not places:
            raise KernelError("a clique has at least one variable")
        if len(set(places)) < len(places):
            raise KernelError(f"a clique has each variable once, and this is {', '.join(members)}")
        return places

    def cliques(self, lists: object) -> tuple[Clique, ...]:
        """Cliques as places; two over the same variables are refused, since their potentials would be one."""
        if isinstance(lists, (str, Mapping)) or not isinstance(lists, Iterable):
            raise KernelError("cliques are a list of lists of variables, such as [['age', 'sex'], ['sex', 'ward']]")
        places = tuple(self.clique(names) for names in lists)
        if len({frozenset(c) for c in places}) < len(places):
            raise KernelError("two cliques are over the same variables")
        return places

    def names_of(self, clique: Sequence[int]) -> list[str]:
        return [self.names[v] for v in clique]

    def code(self, variable: int, value: object) -> int:
        """The position of a value; numbers are found as doubles."""
        values = self.values[variable]
        if value not in values:
            examples = ", ".join(str(v) for v in values[:8])
            raise KernelError(f"`{self.names[variable]}` has no value {value}: it has {examples}")
        return values.index(value)


def _values(name: str, description: object) -> tuple[object, ...]:
    if isinstance(description, (bool, str)):
        raise KernelError(f"`{name}` needs a range, a set of values, or a number of them")
    if isinstance(description, (int, float)):
        if not float(description).is_integer() or not 1 <= description <= MOST_VALUES:
            raise KernelError(f"`{name}` has a whole number of values from 1 to {MOST_VALUES:,}, not {description}")
        return tuple(float(i) for i in range(int(description)))
    if hasattr(description, "low") and hasattr(description, "high"):
        low, high = float(description.low), float(description.high)
        if not (low.is_integer() and high.is_integer()) or high - low >= MOST_VALUES:
            raise KernelError(f"`{name}` needs a range of whole numbers, at most {MOST_VALUES:,} of them")
        description = range(int(low), int(high) + 1)
    if not isinstance(description, Iterable):
        raise KernelError(f"`{name}` needs a range, a set of values, or a number of them")
    values = tuple(float(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in description)
    if not values or len(set(values)) < len(values):
        raise KernelError(f"`{name}` needs at least one value, and each once")
    return values


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
