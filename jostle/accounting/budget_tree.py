"""The tree in which spending is counted, for sources and for allotments alike.

A node has what was spent on it itself, and its partitions; what it has spent in all is its own plus, for each
partition, the most that any one part has spent (parallel composition: parts are disjoint, a row is in one of them;
sequential composition: everything else adds). A cost is a tuple of whole numbers (for a pure budget just ε in
quanta, for an approximate one ρ and δ₀) and each place of the tuple is counted for itself, which can only
over-count.

A `Meter` is a tree with a limit. Testing and adding are apart, so that a charge can be tested on every meter that
is open before it is added to any.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from msgspec import Struct, field

Cost = tuple[int, ...]
Path = tuple[tuple[Hashable, Hashable], ...]  # (partition, part) from the root down


class Node(Struct):
    spent: list[int]
    partitions: dict[Hashable, Partition] = field(default_factory=dict)


class Partition(Struct):
    most: list[int]  # the largest `spent` of its parts
    parts: dict[Hashable, Node] = field(default_factory=dict)


class Meter:
    """Counts costs of `width` places under a limit, which `admits` decides on the root's total."""

    def __init__(self, width: int, admits: Callable[[Cost], bool]) -> None:
        self._width = width
        self._admits = admits
        self._root = self._new()

    @property
    def spent(self) -> Cost:
        return tuple(self._root.spent)

    def after(self, path: Path, cost: Cost) -> Cost:
        """The root's total if `cost` were spent at `path`."""
        return tuple([a + b for a, b in zip(self._root.spent, self._growth(path, cost), strict=True)])

    def admits(self, path: Path, cost: Cost) -> bool:
        return self._admits(self.after(path, cost))

    def slack(self, path: Path) -> Cost:
        """What can be spent at `path` before the root's total grows at all."""
        slack, node = [0] * self._width, self._root
        for name, part in path:
            partition = node.partitions.get(name)
            if partition is None:  # nothing was spent in it
                break
            below = partition.parts.get(part)
            for place in range(self._width):
                slack[place] += partition.most[place] - (below.spent[place] if below is not None else 0)
            if below is None:
                break
            node = below
        return tuple(slack)

    def add(self, path: Path, cost: Cost) -> None:
        """Adds without a test: call `admits` on every meter first."""
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
            for partition, below in reversed(way):
                below.spent[place] += growth
                # what is spent only grows, so no other part needs to be looked at
                before = partition.most[place]
                partition.most[place] = max(before, below.spent[place])
                growth = partition.most[place] - before
            self._root.spent[place] += growth

    def _growth(self, path: Path, cost: Cost) -> Cost:
        return tuple([max(0, c - s) for c, s in zip(cost, self.slack(path), strict=True)])

    def _new(self) -> Node:
        return Node([0] * self._width)
