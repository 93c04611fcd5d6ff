"""A graph that is changed an edge at a time, and knows its triangles and what they weigh while it is.

The weight of a triangle is what the wPINQ query of triangles by intersection gives it: with paths a–b–c of weight
1/(2d_b) in either direction, the three rotations of both have 1/max(d, d′) for each two of its nodes (Proserpio,
Goldberg and McSherry 2014, section 3.5). Degrees are those that the graph began with: swaps of edges keep them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(slots=True)
class Network:
    """Nodes 0 … n − 1 with their neighbours."""

    near: list[set[int]]
    degrees: list[int]
    triangles: int = 0
    weight: float = 0.0
    by_degree: TriangleDegrees | None = None

    @classmethod
    def of(cls, edges: Iterable[tuple[int, int]], nodes: int, by_degree: object = None, wide: int = 1) -> Network:
        """`by_degree` (k, k, k): measured weights, in bins of `wide` degrees, which the triangles are compared with."""
        pairs = list(edges)
        degrees = [0] * nodes
        for a, b in pairs:
            degrees[a] += 1
            degrees[b] += 1
        cells = None if by_degree is None else TriangleDegrees(np.asarray(by_degree, dtype=float), degrees, wide)
        network = cls([set() for _ in range(nodes)], degrees, by_degree=cells)
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
        if self.by_degree is not None:
            for node in common:
                self.by_degree.change(a, b, node, sign)


@dataclass(slots=True)
class TriangleDegrees:
    """How far triangles by the degrees of their nodes are from measured weights: Σ|Q(x, y, z) − m(x, y, z)|.

    A triangle of the degrees d ≤ e ≤ f gives 3/(d² + e² + f²) to the cell of their bins, of `wide` degrees each: three
    paths around it, each in two directions, weigh 1/(2d²), 1/(2e²) and 1/(2f²), and joined 1/(2(d² + e² + f²)) each.
    Triangles with a degree beyond the bins count nowhere.
    """

    aim: NDArray[np.float64]
    degrees: list[int]
    wide: int
    made: dict[tuple[int, ...], float] = field(default_factory=dict)
    distance: float = 0.0

    def __post_init__(self) -> None:
        self.distance = float(np.abs(self.aim).sum())

    def change(self, a: int, b: int, c: int, sign: int) -> None:
        around = sorted((self.degrees[a], self.degrees[b], self.degrees[c]))
        cell = tuple((degree - 1) // self.wide for degree in around)
        if cell[2] >= len(self.aim):
            return
        before = self.made.get(cell, 0.0)
        after = before + sign * 3 / (around[0] ** 2 + around[1] ** 2 + around[2] ** 2)
        aim = float(self.aim[cell])
        self.made[cell] = after
        self.distance += abs(after - aim) - abs(before - aim)


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
