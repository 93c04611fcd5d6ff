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
from dataclasses import dataclass, field

Cost = tuple[int, ...]
Path = tuple[tuple[Hashable, Hashable], ...]  # (partition, part) from the root down


@dataclass(slots=True)
class Node:
    own: list[int]
    spent: list[int]
    partitions: dict[Hashable, dict[Hashable, Node]] = field(default_factory=dict)
    most: dict[Hashable, list[int]] = field(default_factory=dict)  # the largest `spent` of each partition's parts


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
        return tuple(a + b for a, b in zip(self._root.spent, self._growth(path, cost), strict=True))

    def admits(self, path: Path, cost: Cost) -> bool:
        return self._admits(self.after(path, cost))

    def slack(self, path: Path) -> Cost:
        """What can be spent at `path` before the root's total grows at all."""
        nodes, slack = self._walk(path), [0] * self._width
        for (partition, _), above, node in zip(path, nodes, nodes[1:], strict=False):
            most = self._most(above, partition)
            for place in range(self._width):
                below = node.spent[place] if node is not None else 0
                slack[place] += most[place] - below
        return tuple(slack)

    def add(self, path: Path, cost: Cost) -> None:
        """Adds without a test: call `admits` on every meter first."""
        nodes = [self._root]
        for partition, part in path:
            parts = nodes[-1].partitions.setdefault(partition, {})
            nodes.append(parts.setdefault(part, self._new()))
        leaf = nodes[-1]
        for place, amount in enumerate(cost):
            leaf.own[place] += amount
        growth = list(cost)
        for level in range(len(nodes) - 1, -1, -1):
            node = nodes[level]
            for place in range(self._width):
                node.spent[place] += growth[place]
            if level:
                above, partition = nodes[level - 1], path[level - 1][0]
                before = self._most(above, partition)
                # what is spent only grows, so no other part needs to be looked at
                after = [max(a, s) for a, s in zip(before, node.spent, strict=True)]
                above.most[partition] = after
                growth = [b - a for a, b in zip(before, after, strict=True)]

    def _growth(self, path: Path, cost: Cost) -> Cost:
        return tuple(max(0, c - s) for c, s in zip(cost, self.slack(path), strict=True))

    def _walk(self, path: Path) -> list[Node | None]:
        nodes: list[Node | None] = [self._root]
        for partition, part in path:
            above = nodes[-1]
            nodes.append(above.partitions.get(partition, {}).get(part) if above is not None else None)
        return nodes

    def _most(self, node: Node | None, partition: Hashable) -> list[int]:
        spent_below = node.most.get(partition) if node is not None else None
        return spent_below if spent_below is not None else [0] * self._width

    def _new(self) -> Node:
        return Node([0] * self._width, [0] * self._width)
