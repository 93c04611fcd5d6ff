"""Amounts of budget, the protected unit, and the tree in which spending is counted.

An amount is an integer multiple of 1e-12, so that sums are exact: the shortest decimal that reads back as the double,
truncated after the twelfth place. Ten times `0.1` fits in `1.0`, an eleventh does not. Noise is scaled by `as_float` of
the charged amount, never by the requested double. The protected unit is the difference between neighbouring data.

A node of the tree has spent what was charged to it and, for each of its partitions, the maximum over its parts. Parts
are disjoint, so a row is in one of them (parallel composition), and everything else adds up. A cost is a tuple of
integers, which are counted separately; this can only over-count. A `Meter` is a tree with a limit. Testing and adding
are separate, so that a charge is tested on every open meter before it is added to any.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from decimal import ROUND_CEILING, Decimal

from msgspec import Struct, field

PLACES = 12
QUANTA = 10**PLACES


class Amount(Struct, frozen=True):
    """An amount that a program requests: integer quanta of `epsilon` or `rho`, and of `delta`."""

    unit: str
    value: int
    delta: int = 0

    def __str__(self) -> str:
        tail = f", delta {as_text(self.delta)}" if self.delta else ""
        return f"{self.unit} {as_text(self.value)}{tail}"


def rounded_up(value: float) -> int:
    """A computed cost, such as ε·tanh(ε/2), in quanta, rounded up."""
    return int((Decimal(value) * QUANTA).to_integral_value(ROUND_CEILING))


def as_float(amount: int) -> float:
    return float(amount / QUANTA)


def as_text(amount: int) -> str:
    """The exact decimal: `1`, `0.3`, `0.333333333333`."""
    sign, amount = ("-", -amount) if amount < 0 else ("", amount)
    whole, part = divmod(amount, QUANTA)
    return f"{sign}{whole}.{part:0{PLACES}d}".rstrip("0").rstrip(".")


ANY_ROWS = "a person may have any number of rows {}, and one person must not decide an answer"
"""The message for persons' rows without a bound; `{}` is the place."""
BOUNDS = "say how many count: `… up to 3 rows`, `… up to 5 groups, 2 rows each`; or make one, `per person`"


class Unit(Struct, frozen=True):
    """The difference of neighbours: one row, one replaced row, or all (up to `rows`) rows of one value of `columns`.

    A value of `columns` is one person, also in several tables. `rows` is None if a person may have any number of rows.
    `weighted`: the rows of one person have weights with a sum of 1. `linked` names the column of another table,
    `people.id`, whose persons these are, by the value of `columns`. With `groups`, a replaced row and its replacement
    have the same cells in these columns, as stored: the number of rows of each group is public. With `at_most` the
    owner states that there are no more rows, or with `columns` no more rows of a person; privacy does not depend on it.
    `each`, such as `7 days of day`: neighbours differ by the rows of one period.
    """

    columns: tuple[str, ...] = ()
    rows: int | None = 1
    public_size: bool = False
    at_most: int | None = None
    weighted: bool = False
    linked: str = ""
    groups: tuple[str, ...] = ()
    each: str = ""

    @property
    def distance(self) -> int | None:
        """The distance of neighbours in added and removed rows, the initial stability; None without a bound."""
        return 2 if self.public_size else self.rows

    def __str__(self) -> str:
        if self.columns:
            bound = "" if self.rows is None else f" up to {self.rows} rows{' weighted' if self.weighted else ''}"
            bound = f", at most {self.at_most} rows" if self.at_most else bound
            each = f" each {self.each}" if self.each and self.each.split()[-1] not in self.columns else ""
            return (f"{self.linked} on " if self.linked else "") + ", ".join(self.columns) + each + bound
        by = f" by {', '.join(self.groups)}" if self.groups else ""
        tail = f", public size{by}" if self.public_size else f", at most {self.at_most} rows" if self.at_most else ""
        return f"rows{tail}"


Cost = tuple[int, ...]
Path = tuple[tuple[Hashable, Hashable], ...]  # (partition, part) from the root down


class Node(Struct):
    spent: list[int]
    partitions: dict[Hashable, Partition] = field(default_factory=dict)


class Partition(Struct):
    most: list[int]  # the largest `spent` of its parts
    parts: dict[Hashable, Node] = field(default_factory=dict)


class Meter:
    """Counts costs of `width` places, the last `added` by sums alone. `admits` decides whether a total fits."""

    def __init__(self, width: int, admits: Callable[[Cost], bool], added: int = 0) -> None:
        self._width, self._in_parts = width, width - added
        self._admits = admits
        self._root = self._new()

    @property
    def spent(self) -> Cost:
        return tuple(self._root.spent)

    def after(self, path: Path, cost: Cost) -> Cost:
        """The root's total if `cost` were spent at `path`."""
        slack = self.slack(path) if path else (0,) * self._width
        return tuple([a + max(0, b - s) for a, b, s in zip(self._root.spent, cost, slack, strict=True)])

    def admits(self, path: Path, cost: Cost) -> bool:
        return self._admits(self.after(path, cost))

    def slack(self, path: Path) -> Cost:
        """What can be spent at `path` before the root's total grows at all."""
        slack, node = [0] * self._width, self._root
        for name, part in path:
            partition = node.partitions.get(name)
            if partition is None:  # nothing was charged there
                break
            below = partition.parts.get(part)
            for place in range(self._in_parts):
                slack[place] += partition.most[place] - (below.spent[place] if below is not None else 0)
            if below is None:
                break
            node = below
        return tuple(slack)

    def add(self, path: Path, cost: Cost) -> None:
        """Adds a cost without a test. Call `admits` on every meter first."""
        node, way = self._root, []
        for name, part in path:
            partition = node.partitions.get(name)
            if partition is None:
                partition = node.partitions[name] = Partition([0] * self._width)
            below = partition.parts.get(part)
            if below is None:
                below = partition.parts[part] = self._new()
            way.append((partition, below))
            node = below
        for place, growth in enumerate(cost):
            for partition, below in reversed(way if place < self._in_parts else []):
                below.spent[place] += growth
                # totals only grow, so other parts need not be compared
                before = partition.most[place]
                partition.most[place] = max(before, below.spent[place])
                growth = partition.most[place] - before
            self._root.spent[place] += growth

    def _new(self) -> Node:
        return Node([0] * self._width)
