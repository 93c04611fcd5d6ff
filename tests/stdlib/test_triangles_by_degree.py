"""Triangles by degree: what they weigh, and how far one edge moves them, over all graphs of four nodes and some of six.

The plan is that of the library's function, worked out as the engine does for a table of edges.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import pytest

from jostle.engine.records import sums_of
from jostle.kernels.graphs import Network
from jostle.plan.records import CELL_BITS, Weights
from jostle.readers.duckdb import LocalDuckDb
from jostle.source import Source
from jostle.tools.session import Session

Edges = frozenset[tuple[int, int]]
USES, MOST = 9, 5
PROGRAM = f"""use graphs
private t = bound("pairs") described by {{a: 0..9, b: 0..9}} protecting rows budget epsilon 1000
edges = undirected(t)
cells = triangles_by_degree(edges, {MOST})
loud = laplace(cells) with epsilon 1
scale = standard_error(loud)[0][0][0]
"""


class OfEdges:
    """An engine of one table of edges, of which the program asks for the two ends in order."""

    here = LocalDuckDb()

    def __init__(self, edges: Edges) -> None:
        self.edges = edges

    def tuples(self, plan: Any, exprs: Any) -> tuple[list[tuple[Any, ...]], np.ndarray]:
        return sorted(self.edges), np.ones(len(self.edges), dtype=np.int64)


@cache
def program() -> tuple[Weights, float]:
    """The plan, and the deviation of the noise that a cell is released with at ε = 1."""
    session = Session()
    session.bind("pairs", {"a": [1, 2], "b": [2, 3]})
    session.execute(Source("triangles.jst", PROGRAM))
    names = session.names()
    return names["cells"].cells.weights, float(names["scale"])


@cache
def weights(edges: Edges) -> tuple[int, ...]:
    return tuple(sums_of(OfEdges(edges), program()[0]).tolist())  # type: ignore[arg-type]


def moved(edges: Edges, edge: tuple[int, int]) -> float:
    """How far all cells together move, in units of a row, when this edge comes."""
    pairs = zip(weights(edges), weights(edges | {edge}), strict=True)
    return sum(abs(one - other) for one, other in pairs) / 2**CELL_BITS


def steps(nodes: int, graphs: Iterable[Edges]) -> Iterable[tuple[Edges, tuple[int, int]]]:
    pairs = list(itertools.combinations(range(nodes), 2))
    return ((edges, pair) for edges in graphs for pair in pairs if pair not in edges)


def test_an_edge_moves_less_than_it_is_charged_for() -> None:
    """Every edge of every graph of four nodes, and of random ones of six: the edges are read nine times, both ways."""
    assert program()[1] == pytest.approx(2 * USES * 2**0.5, rel=1e-6)
    pairs = list(itertools.combinations(range(4), 2))
    every = [frozenset(itertools.compress(pairs, some)) for some in itertools.product((0, 1), repeat=6)]
    rng, six = np.random.default_rng(3), list(itertools.combinations(range(6), 2))
    some = [frozenset(pair for pair in six if rng.random() < share) for share in (0.6, 0.9)]
    found = [moved(edges, edge) for edges, edge in [*steps(4, every), *steps(6, some)]]
    assert 0.1 < max(found) <= 2 * USES


def test_a_triangle_weighs_what_is_said() -> None:
    rng, six = np.random.default_rng(5), list(itertools.combinations(range(6), 2))
    for share in (0.5, 0.7, 1.0):
        edges = frozenset(pair for pair in six if rng.random() < share)
        degree = Counter(node for edge in edges for node in edge)
        meant = np.zeros((MOST, MOST, MOST))
        for trio in itertools.combinations(range(6), 3):
            if all(pair in edges for pair in itertools.combinations(trio, 2)):
                d, e, f = sorted(degree[node] for node in trio)
                meant[d - 1, e - 1, f - 1] += 3 / (d * d + e * e + f * f)
        found = np.array(weights(edges), dtype=float).reshape(meant.shape) / 2**CELL_BITS
        assert found == pytest.approx(meant, abs=1e-4) and found.sum() > 0
        assert Network.of(edges, 6, by_degree=meant).by_degree.distance == pytest.approx(0, abs=1e-9)  # type: ignore[union-attr]
