"""Graphs fitted to released measurements by a random walk over the graphs with the same degrees.

A step takes two edges a–b and c–d and makes them a–d and c–b. It is accepted with the probability min(1,
e^(−power·ΔE)), E the sum of |Q(G) − m| over what was measured, each in units of the scale of its noise: with `power` =
1 the walk is at home in the posterior of a graph given these numbers and all graphs alike before. With a large one,
as in the paper (10,000), it looks for a graph that fits (Proserpio, Goldberg and McSherry 2014, section 4).

The weight of a triangle is what the wPINQ query of triangles by intersection gives it: with paths a–b–c of weight
1/(2d_b) in either direction, the three rotations of both have 1/max(d, d′) for each two of its nodes (section 3.5).
Degrees are those that the graph began with: swaps of edges keep them.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from jostle.kernels import KernelError
from jostle.kernels.arrays import Floats, whole_number


@dataclass(slots=True)
class Weights:
    """How far the weights of cells are from measured ones, Σ|Q − m|, kept while they change. `aim` has the measured
    ones; other cells count nowhere."""

    aim: dict[tuple[int, ...], float]
    counts: dict[tuple[int, ...], float] = field(default_factory=dict)
    distance: float = 0.0

    @classmethod
    def of(cls, measured: Floats) -> Weights:
        aim = {cell: float(weight) for cell, weight in np.ndenumerate(measured)}
        return cls(aim, distance=sum(map(abs, aim.values())))

    def change(self, cell: tuple[int, ...], step: float) -> None:
        aim = self.aim.get(cell)
        if aim is None:
            return
        before = self.counts.get(cell, 0.0)
        self.counts[cell] = after = before + step
        self.distance += abs(after - aim) - abs(before - aim)


@dataclass(slots=True)
class Network:
    """Nodes 0 … n − 1 with their neighbours.

    An edge between nodes of degrees d and d′ gives the cells (d, d′) and (d′, d) of `joint` the weight 1/(2 + 2d + 2d′)
    each. A triangle of the degrees d ≤ e ≤ f gives 3/(d² + e² + f²) to the cell of their bins, of `wide` degrees each,
    in `by_degree`: three paths around it, each in two directions, weigh 1/(2d²), 1/(2e²) and 1/(2f²), and joined
    1/(2(d² + e² + f²)) each. Cells are numbered from 0, which is the degree 1.
    """

    near: list[set[int]]
    degrees: list[int]
    joint: Weights | None = None
    by_degree: Weights | None = None
    wide: int = 1
    triangles: int = 0
    weight: float = 0.0

    @classmethod
    def of(
        cls, edges: Iterable[tuple[int, int]], nodes: int, joint: Floats | None = None, by_degree: Floats | None = None,
        wide: int = 1,
    ) -> Network:  # fmt: skip
        """`joint` (k, k), `by_degree` (k, k, k): measured weights, which those of the graph are compared with."""
        pairs = list(edges)
        degrees = [0] * nodes
        for a, b in pairs:
            degrees[a] += 1
            degrees[b] += 1
        of_joint, of_triangles = (None if cells is None else Weights.of(cells) for cells in (joint, by_degree))
        network = cls([set() for _ in range(nodes)], degrees, of_joint, of_triangles, wide)
        for a, b in pairs:
            network.add(a, b)
        return network

    def add(self, a: int, b: int) -> None:
        self._count(a, b, 1)
        self.near[a].add(b)
        self.near[b].add(a)

    def remove(self, a: int, b: int) -> None:
        self.near[a].remove(b)
        self.near[b].remove(a)
        self._count(a, b, -1)

    def _count(self, a: int, b: int, sign: int) -> None:
        degrees = self.degrees
        mine, theirs = degrees[a], degrees[b]
        if self.joint is not None:
            step = sign / (2 + 2 * mine + 2 * theirs)
            self.joint.change((mine - 1, theirs - 1), step)
            self.joint.change((theirs - 1, mine - 1), step)
        common = self.near[a] & self.near[b]
        if not common:
            return
        weight = len(common) / max(mine, theirs)
        for node in common:
            degree = degrees[node]
            weight += 1 / (mine if mine > degree else degree) + 1 / (theirs if theirs > degree else degree)
        self.triangles += sign * len(common)
        self.weight += sign * weight
        if self.by_degree is not None:
            for node in common:
                d, e, f = sorted((mine, theirs, degrees[node]))
                cell = ((d - 1) // self.wide, (e - 1) // self.wide, (f - 1) // self.wide)
                self.by_degree.change(cell, sign * 3 / (d**2 + e**2 + f**2))


MOST_EDGES = 10**6


def degrees_of(counts: object) -> Floats:
    """The degrees of a graph, the largest first, of which about `counts`[i] nodes have more than i edges.

    The counts never rise: they are replaced by the nearest such numbers (least squares) and rounded. An odd sum of
    degrees, which no graph has, loses one.
    """
    from scipy.optimize import isotonic_regression

    noisy = np.asarray(counts, dtype=float).ravel()
    if not noisy.size or not np.isfinite(noisy).all():
        raise KernelError("degrees are made of counts, of nodes that have more than 0, 1, 2, … edges")
    falling = np.rint(np.clip(isotonic_regression(noisy, increasing=False).x, 0, MOST_EDGES)).astype(np.int64)
    _room(falling.sum())
    ends = np.bincount(falling, minlength=int(falling[0]) + 1)  # how many levels have so many nodes
    degrees = np.cumsum(ends[::-1])[::-1][1:]
    if degrees.sum() % 2:
        degrees[-1] -= 1
    return np.asarray(degrees[degrees > 0], dtype=float)


def realised(degrees: object) -> list[tuple[int, int]]:
    """The edges of a simple graph with these degrees, or of one that lacks few of them where there is none.

    After Havel (1955) and Hakimi (1962): the node with the most edges to find is joined to those with the next most.
    """
    values = np.asarray(degrees, dtype=float).ravel()
    if not np.isfinite(values).all() or (values != np.floor(values)).any() or (values < 0).any():
        raise KernelError("degrees are whole numbers of at least 0")
    _room(values.sum())
    waiting = [(-int(degree), node) for node, degree in enumerate(values) if degree]
    heapq.heapify(waiting)
    edges: list[tuple[int, int]] = []
    while waiting:
        lacking, node = heapq.heappop(waiting)
        partners = [heapq.heappop(waiting) for _ in range(min(-lacking, len(waiting)))]
        edges += [(node, partner) for _, partner in partners]
        for left, partner in partners:
            if left + 1:
                heapq.heappush(waiting, (left + 1, partner))
    return edges


def edges_of(edges: object) -> list[tuple[int, int]]:
    """Pairs of whole numbers, each pair once, without loops; refused where they are none."""
    pairs = np.asarray(edges, dtype=float)
    if pairs.size == 0:
        return []
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.isfinite(pairs).all() or (pairs != np.floor(pairs)).any():
        raise KernelError("the edges of a graph are pairs of whole numbers")
    whole_number(len(pairs), 0, 2 * MOST_EDGES, "edges")
    return sorted({(int(min(a, b)), int(max(a, b))) for a, b in pairs if a != b})


def _room(ends: float) -> None:
    if ends > 2 * MOST_EDGES:
        raise KernelError(f"a graph has at most {MOST_EDGES:,} edges here, and these degrees need more")


MOST_STEPS = 10**8
MIXING = 10
"""Swaps for each edge that make a graph of given degrees random."""
SHOWN = 100
"""Points of the trace of a walk."""
DRAWN = 2**14


def seeded_graph(degrees: object, seed: int = 0) -> dict[str, object]:
    """A random graph with these degrees: one that has them, after ten swaps for each edge."""
    edges = realised(degrees)
    return _walk(edges, MIXING * len(edges), seed)


def fitted_graph(
    edges: object, triangles: Any = None, joint: object = None, scales: object = None, steps: int = 100_000,
    power: float = 10_000.0, seed: int = 0, by_degree: object = None, wide: int = 1,
) -> dict[str, object]:  # fmt: skip
    """The graph to which `steps` swaps from `edges` lead, fitted to the weight of all `triangles`, to the `joint`
    degrees, (k, k) weights of the degrees 1 to k; and to triangles `by_degree`, (k, k, k) weights in bins of `wide`
    degrees, each if it is given. `scales` are those of their noise (1).

    `edges` (m, 2), how many swaps were `accepted`, and of about a hundred `steps` on the way the numbers of
    `triangles`, their `weights` and the `misfits` E.
    """
    whole_number(steps, 0, MOST_STEPS, "steps")
    pairs = edges_of(edges)
    whole_number(wide, 1, 1000, "degrees of a bin")
    noise = np.ones(3) if scales is None else np.append(np.asarray(scales, dtype=float).ravel(), 1.0)[:3]
    if noise.shape != (3,) or not np.isfinite(noise).all() or (noise <= 0).any() or not 0 < power < math.inf:
        raise KernelError("a graph is fitted with two or three scales of noise and a power, all above 0")
    table = None if joint is None else np.asarray(joint, dtype=float)
    if table is not None and (table.ndim != 2 or table.shape[0] != table.shape[1] or not np.isfinite(table).all()):
        raise KernelError("joint degrees are a square of weights, of the degrees 1, 2, … by themselves")
    cube = None if by_degree is None else np.asarray(by_degree, dtype=float)
    if cube is not None and (cube.ndim != 3 or len(set(cube.shape)) != 1 or not np.isfinite(cube).all()):
        raise KernelError("triangles by degree are a cube of weights, of bins of the degrees from 1 on")
    aim = None if triangles is None else float(triangles)
    return _walk(pairs, steps, seed, aim, table, noise.tolist(), float(power), cube, wide)


def graph_facts(edges: object) -> dict[str, float]:
    """What a graph is like: its numbers of nodes, edges and triangles, what these weigh, its largest degree, and the
    correlation of degrees along edges (0 where all are equal)."""
    edges = edges_of(edges)
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


def _walk(
    edges: list[tuple[int, int]], steps: int, seed: int, aim: float | None = None, joint: Floats | None = None,
    scales: Sequence[float] = (1.0, 1.0, 1.0), power: float = 1.0, by_degree: Floats | None = None, wide: int = 1,
) -> dict[str, object]:  # fmt: skip
    names = sorted({node for edge in edges for node in edge})
    place = {node: i for i, node in enumerate(names)}
    pairs = [(place[a], place[b]) for a, b in edges]
    network = Network.of(pairs, len(names), joint, by_degree, wide)
    energy = partial(_misfit, network, aim, scales)
    near, now, every, accepted = network.near, energy(), max(1, steps // SHOWN), 0
    trace = {"steps": [0.0], "triangles": [float(network.triangles)], "weights": [network.weight], "misfits": [now]}
    for step, (i, j), turn, chance in _draws(seed, len(pairs), steps):
        a, b = pairs[i] if turn & 1 else pairs[i][::-1]
        c, d = pairs[j] if turn & 2 else pairs[j][::-1]
        if a != d and b != c and d not in near[a] and b not in near[c]:  # so a is not c, and b not d
            _swap(network, a, b, c, d)
            later = energy()
            if later <= now or chance < math.exp(-power * (later - now)):
                pairs[i], pairs[j], now = (a, d), (c, b), later
                accepted += 1
            else:
                _swap(network, a, d, c, b)
        if step % every == 0:
            for name, value in zip(trace, (step, network.triangles, network.weight, now), strict=True):
                trace[name].append(float(value))
    ends = np.array(sorted((min(names[a], names[b]), max(names[a], names[b])) for a, b in pairs), dtype=float)
    return {"edges": ends.reshape(-1, 2), "accepted": float(accepted), **trace}


def _misfit(network: Network, aim: float | None, scales: Sequence[float]) -> float:
    """E, of what was measured."""
    misfit = 0.0 if aim is None else abs(network.weight - aim) / scales[0]
    for cells, scale in ((network.joint, scales[1]), (network.by_degree, scales[2])):
        misfit += 0.0 if cells is None else cells.distance / scale
    return misfit


def _draws(seed: int, edges: int, steps: int) -> Iterator[tuple[int, list[int], int, float]]:
    """For each step two edges, which way round each is taken, and what decides whether the swap is accepted."""
    rng = np.random.default_rng(seed)
    for begun in range(0, steps if edges > 1 else 0, DRAWN):
        some = min(DRAWN, steps - begun)
        pairs = rng.integers(edges, size=(some, 2)).tolist()
        turns, chances = rng.integers(4, size=some).tolist(), rng.random(some).tolist()
        yield from zip(range(begun + 1, begun + some + 1), pairs, turns, chances, strict=True)


def _swap(network: Network, a: int, b: int, c: int, d: int) -> None:
    network.remove(a, b)
    network.remove(c, d)
    network.add(a, d)
    network.add(c, b)
