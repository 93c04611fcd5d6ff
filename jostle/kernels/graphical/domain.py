"""The domain of a model: its variables with their values, and the cliques whose tables it holds.

A domain comes as a record, `{age: 0..9, sex: {"Female", "Male"}, ward: 12}`: a range, a set or list of values, or a
number of values 0 … k − 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jostle.kernels.errors import KernelError

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

    @property
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


def _values(name: str, description: object) -> tuple[Any, ...]:
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
