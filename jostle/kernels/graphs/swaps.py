"""Graphs fitted to released measurements by a random walk over the graphs with the same degrees.

A step takes two edges a–b and c–d and makes them a–d and c–b. It is accepted with the probability min(1,
e^(−power·ΔE)), E the sum of |Q(G) − m| over what was measured, each in units of the scale of its noise: with `power`
= 1 the walk is at home in the posterior of a graph given these numbers and all graphs alike before, and with a large
one, as in the paper (10,000), it looks for a graph that fits (Proserpio, Goldberg and McSherry 2014, section 4). All
is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from jostle.kernels.checks import whole_number
from jostle.kernels.errors import KernelError
from jostle.kernels.graphs.degrees import edges_of, realised
from jostle.kernels.graphs.network import JointDegrees, Network, facts

MOST_STEPS = 10**8
MIXING = 10
"""Swaps for each edge that make a graph of given degrees random."""
SHOWN = 100
"""Points of the trace of a walk."""
DRAWN = 2**14


def seeded_graph(degrees: object, seed: int = 0) -> dict[str, Any]:
    """A random graph with these degrees: one that has them, after ten swaps for each edge."""
    edges = realised(degrees)
    return _walk(edges, MIXING * len(edges), seed)


def fitted_graph(
    edges: Any, triangles: Any = None, joint: Any = None, scales: Any = None, steps: int = 100_000,
    power: float = 10_000.0, seed: int = 0, by_degree: Any = None, wide: int = 1,
) -> dict[str, Any]:  # fmt: skip
    """The graph to which `steps` swaps from `edges` lead, fitted to the weight of all `triangles`, to the `joint`
    degrees, (k, k) weights of the degrees 1 to k, and to triangles `by_degree`, (k, k, k) weights in bins of `wide`
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
    """Numbers of nodes, edges and triangles, their weight, the largest degree and the correlation of degrees."""
    return facts(edges_of(edges))


def _walk(
    edges: list[tuple[int, int]], steps: int, seed: int, aim: float | None = None, table: Any = None,
    scales: Sequence[float] = (1.0, 1.0, 1.0), power: float = 1.0, cube: Any = None, wide: int = 1,
) -> dict[str, Any]:  # fmt: skip
    names = sorted({node for edge in edges for node in edge})
    place = {node: i for i, node in enumerate(names)}
    pairs = [(place[a], place[b]) for a, b in edges]
    network = Network.of(pairs, len(names), cube, wide)
    joint = None if table is None else JointDegrees(table.tolist(), network.degrees)
    if joint is not None:
        for a, b in pairs:
            joint.change(a, b, 1)

    energy = partial(_misfit, network, joint, aim, scales)
    near, now, every, accepted = network.near, energy(), max(1, steps // SHOWN), 0
    trace = {"steps": [0.0], "triangles": [float(network.triangles)], "weights": [network.weight], "misfits": [now]}
    for step, (i, j), turn, chance in _draws(seed, len(pairs), steps):
        a, b = pairs[i] if turn & 1 else pairs[i][::-1]
        c, d = pairs[j] if turn & 2 else pairs[j][::-1]
        if a != d and b != c and d not in near[a] and b not in near[c]:  # so a is not c, and b not d
            _swap(network, joint, a, b, c, d)
            later = energy()
            if later <= now or chance < math.exp(-power * (later - now)):
                pairs[i], pairs[j], now = (a, d), (c, b), later
                accepted += 1
            else:
                _swap(network, joint, a, d, c, b)
        if step % every == 0:
            for name, value in zip(trace, (step, network.triangles, network.weight, now), strict=True):
                trace[name].append(float(value))
    made = np.array(sorted((min(names[a], names[b]), max(names[a], names[b])) for a, b in pairs), dtype=float)
    return {"edges": made.reshape(-1, 2), "accepted": float(accepted), **trace}


def _misfit(network: Network, joint: JointDegrees | None, aim: float | None, scales: Sequence[float]) -> float:
    """E, of what was measured."""
    cells = network.by_degree
    misfit = 0.0 if aim is None else abs(network.weight - aim) / scales[0]
    misfit += 0.0 if joint is None else joint.distance / scales[1]
    return misfit + (0.0 if cells is None else cells.distance / scales[2])


def _draws(seed: int, edges: int, steps: int) -> Iterator[tuple[int, list[int], int, float]]:
    """For each step two edges, which way round each is taken, and what decides whether the swap is accepted."""
    rng = np.random.default_rng(seed)
    for begun in range(0, steps if edges > 1 else 0, DRAWN):
        some = min(DRAWN, steps - begun)
        chosen = rng.integers(edges, size=(some, 2)).tolist()
        turns, chances = rng.integers(4, size=some).tolist(), rng.random(some).tolist()
        yield from zip(range(begun + 1, begun + some + 1), chosen, turns, chances, strict=True)


def _swap(network: Network, joint: JointDegrees | None, a: int, b: int, c: int, d: int) -> None:
    network.remove(a, b)
    network.remove(c, d)
    network.add(a, d)
    network.add(c, b)
    if joint is not None:
        for x, y, sign in ((a, b, -1), (c, d, -1), (a, d, 1), (c, b, 1)):
            joint.change(x, y, sign)
