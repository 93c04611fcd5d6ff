"""A graph that is changed an edge at a time, and knows its triangles and what they weigh while it is.

The weight of a triangle is what the wPINQ query of triangles by intersection gives it: with paths a–b–c of weight
1/(2d_b) in either direction, the three rotations of both have 1/max(d, d′) for each two of its nodes (Proserpio,
Goldberg and McSherry 2014, section 3.5). Degrees are those that the graph began with: swaps of edges keep them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np


@dataclass(slots=True)
class Network:
    """Nodes 0 … n − 1 with their neighbours."""

    near: list[set[int]]
    degrees: list[int]
    triangles: int = 0
    weight: float = 0.0

    @classmethod
    def of(cls, edges: Iterable[tuple[int, int]], nodes: int) -> Network:
        pairs = list(edges)
        degrees = [0] * nodes
        for a, b in pairs:
            degrees[a] += 1
            degrees[b] += 1
        network = cls([set() for _ in range(nodes)], degrees)
        for a, b in pairs:
            network.add(a, b)
        return network

    def add(self, a: int, b: int) -> None:
        """An edge that is not there."""
        self._count(a, b, 1)
        self.near[a].add(b)
        self.near[b].add(a)

    def remove(self, a: int, b: int) -> None:
        """An edge that is there."""
        self.near[a].remove(b)
        self.near[b].remove(a)
        self._count(a, b, -1)

    def _count(self, a: int, b: int, sign: int) -> None:
        common = self.near[a] & self.near[b]
        if not common:
            return
        degrees = self.degrees
        mine, theirs = degrees[a], degrees[b]
        weight = len(common) / max(mine, theirs)
        for node in common:
            degree = degrees[node]
            weight += 1 / (mine if mine > degree else degree) + 1 / (theirs if theirs > degree else degree)
        self.triangles += sign * len(common)
        self.weight += sign * weight


@dataclass(slots=True)
class JointDegrees:
    """How far the joint degrees of a graph are from measured weights: Σ|Q(d, d′) − m(d, d′)|, kept while edges change.

    An edge between nodes of degrees d and d′ gives the cells (d, d′) and (d′, d) the weight 1/(2 + 2d + 2d′) each;
    `aim` (k, k) has those of degrees 1 to k.
    """

    aim: list[list[float]]
    degrees: list[int]
    made: list[list[float]] = field(default_factory=list)
    distance: float = 0.0

    def __post_init__(self) -> None:
        self.made = [[0.0] * len(self.aim) for _ in self.aim]
        self.distance = float(np.abs(np.asarray(self.aim)).sum())

    def change(self, a: int, b: int, sign: int) -> None:
        one, other = self.degrees[a] - 1, self.degrees[b] - 1
        if max(one, other) >= len(self.aim):
            return
        step = sign / (6 + 2 * one + 2 * other)
        for x, y in ((one, other), (other, one)):
            before = self.made[x][y]
            self.made[x][y] = before + step
            self.distance += abs(before + step - self.aim[x][y]) - abs(before - self.aim[x][y])


def facts(edges: list[tuple[int, int]]) -> dict[str, float]:
    """What a graph is like: its numbers of nodes, edges and triangles, what these weigh, its largest degree, and the
    correlation of degrees along edges (0 where all are equal)."""
    names = {node: i for i, node in enumerate(sorted({node for edge in edges for node in edge}))}
    network = Network.of([(names[a], names[b]) for a, b in edges], len(names))
    ends = np.array([(network.degrees[names[a]], network.degrees[names[b]]) for a, b in edges], dtype=float)
    both = np.concatenate([ends, ends[:, ::-1]]) if edges else np.zeros((1, 2))
    spread = both[:, 0].std()
    centred = both - both.mean(axis=0)
    along = float((centred[:, 0] * centred[:, 1]).mean() / spread**2) if spread > 0 else 0.0
    return {
        "nodes": float(len(names)), "edges": float(len(edges)), "triangles": float(network.triangles),
        "weight": network.weight, "largest_degree": float(max(network.degrees, default=0)), "assortativity": along,
    }  # fmt: skip
