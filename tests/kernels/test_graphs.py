"""Graphs: degrees from counts, graphs that have them, what is known of a graph while it changes, and fitted ones."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from jostle.kernels import KernelError
from jostle.kernels.graphs import (
    Network,
    degrees_of,
    fitted_graph,
    graph_facts,
    realised,
    seeded_graph,
)

DATA = Path(__file__).resolve().parents[2] / "programs" / "data"


def edges_in(name: str) -> np.ndarray:
    return np.loadtxt(DATA / f"{name}.csv", delimiter=",", skiprows=1)


def degrees_in(edges: np.ndarray) -> list[int]:
    return sorted(np.bincount(np.asarray(edges, dtype=int).ravel()).tolist(), reverse=True)


def counts_of(edges: np.ndarray) -> list[int]:
    return [sum(degree > i for degree in degrees_in(edges)) for i in range(100)]


def by_definition(edges: np.ndarray) -> tuple[int, float]:
    """The number of triangles, and the weight of the query's records, path by path."""
    near: dict[int, set[int]] = {}
    for a, b in edges.astype(int).tolist():
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    paths = {(a, b, c): 1 / (2 * len(near[b])) for b in near for a in near[b] for c in near[b] if a != c}
    weights = [min(weight, paths[b, c, a]) for (a, b, c), weight in paths.items() if (b, c, a) in paths]
    return len(weights) // 6, sum(weights)


def test_degrees_of_exact_counts_are_those() -> None:
    edges = edges_in("karate")
    assert degrees_of(counts_of(edges)).tolist() == [d for d in degrees_in(edges) if d]


def test_degrees_of_noisy_counts() -> None:
    rng = np.random.default_rng(1)
    exact = np.array(counts_of(edges_in("authors")))
    found = degrees_of(exact + rng.laplace(0, 4, exact.size))
    assert (np.diff(found) <= 0).all() and found.sum() % 2 == 0 and (found > 0).all()
    assert abs(found.sum() - exact.sum()) < 200
    assert degrees_of([-3.0, -5.0]).size == 0 and degrees_of([3.0, 0.0]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", ["karate", "authors"])
def test_a_graph_has_its_degrees(name: str) -> None:
    degrees = [d for d in degrees_in(edges_in(name)) if d]
    for edges in (np.array(realised(degrees)), seeded_graph(degrees, 3)["edges"]):
        assert degrees_in(edges)[: len(degrees)] == degrees
        assert len({tuple(sorted(edge)) for edge in edges.tolist()}) == len(edges)
        assert all(a != b for a, b in edges)


def test_degrees_that_no_graph_has() -> None:
    """Three edges for one node among two others: it gets what there is."""
    assert sorted(realised([3, 1, 1])) == [(0, 1), (0, 2)]
    assert realised([]) == [] and seeded_graph([1, 1])["edges"].tolist() == [[0, 1]]


@pytest.mark.parametrize("name", ["karate", "authors"])
def test_facts(name: str) -> None:
    edges = edges_in(name)
    triangles, weight = by_definition(edges)
    facts = graph_facts(edges)
    assert facts["triangles"] == triangles and facts["weight"] == pytest.approx(weight)
    assert facts["edges"] == len(edges) and facts["largest_degree"] == degrees_in(edges)[0]
    assert graph_facts([])["triangles"] == 0
    assert graph_facts([[0, 1], [1, 0], [2, 2]])["edges"] == 1


def test_a_ring_of_cliques_is_regular() -> None:
    clique = [list(pair) for pair in combinations(range(5), 2)]
    assert graph_facts(clique) == {
        "nodes": 5, "edges": 10, "triangles": 10, "weight": pytest.approx(10 * 3 / 4), "largest_degree": 4,
        "assortativity": 0,
    }  # fmt: skip


def test_what_is_kept_while_edges_change_is_what_is_counted_anew() -> None:
    edges = edges_in("karate")
    fit = fitted_graph(edges, 2.0, np.zeros((17, 17)), (1.0, 3.0), steps=3000, power=2.0, seed=4)
    triangles, weight = by_definition(fit["edges"])
    assert fit["triangles"][-1] == triangles and fit["weights"][-1] == pytest.approx(weight)
    degrees = np.bincount(fit["edges"].astype(int).ravel())
    assert Network.of([], 0).triangles == 0
    joint = Network.of(fit["edges"].astype(int).tolist(), len(degrees), np.zeros((17, 17))).joint
    ends = degrees[fit["edges"].astype(int)]
    assert joint is not None and joint.distance == pytest.approx((2 / (2 + 2 * ends.sum(axis=1))).sum())
    assert fit["misfits"][-1] == pytest.approx(abs(weight - 2) + joint.distance / 3)
    assert degrees_in(fit["edges"]) == degrees_in(edges)


@pytest.mark.slow
def test_the_fit_finds_the_weight_of_the_triangles() -> None:
    edges = edges_in("authors")
    truth = graph_facts(edges)
    start = seeded_graph([d for d in degrees_in(edges) if d], 1)["edges"]
    assert graph_facts(start)["weight"] < 0.25 * truth["weight"]
    fit = fitted_graph(start, truth["weight"], steps=60_000, seed=2)
    assert abs(graph_facts(fit["edges"])["weight"] - truth["weight"]) < 0.01 * truth["weight"]
    again = fitted_graph(start, truth["weight"], steps=60_000, seed=2)
    assert again["edges"].tolist() == fit["edges"].tolist()
    assert len(fit["steps"]) == len(fit["triangles"]) == 101 and fit["steps"][-1] == 60_000


def test_the_walk_is_at_home_in_the_posterior() -> None:
    """Over the simple graphs with degrees 2, 2, 2, 1, 1, by their misfits: as often as e^(-power·E) says."""
    pairs = list(combinations(range(5), 2))
    wanted = [2, 2, 2, 1, 1]
    graphs = [
        some for some in combinations(pairs, 4) if [sum(node in pair for pair in some) for node in range(5)] == wanted
    ]
    energy = [abs(Network.of(list(some), 5).weight - 1.5) / 2 for some in graphs]
    weights = np.exp(-1.5 * np.array(energy))
    fit_counts = dict.fromkeys(graphs, 0)
    state = np.array(graphs[0], dtype=float)
    for seed in range(4000):
        state = fitted_graph(state, 1.5, None, (2.0, 1.0), steps=6, power=1.5, seed=seed)["edges"]
        fit_counts[tuple(map(tuple, state.astype(int).tolist()))] += 1
    shares = np.array(list(fit_counts.values())) / 4000
    assert len(graphs) == 7 and np.abs(shares - weights / weights.sum()).max() < 0.05


@pytest.mark.parametrize(
    "call",
    [
        lambda: degrees_of([]), lambda: degrees_of([np.nan]), lambda: degrees_of([1e6] * 3),
        lambda: seeded_graph([1.5]), lambda: seeded_graph([-1]), lambda: seeded_graph([2e6 + 2]),
        lambda: graph_facts([[1, 2, 3]]), lambda: graph_facts([[0.5, 1]]),
        lambda: fitted_graph([[0, 1]], 1.0, steps=-1), lambda: fitted_graph([[0, 1]], 1.0, scales=(0, 1)),
        lambda: fitted_graph([[0, 1]], 1.0, power=0), lambda: fitted_graph([[0, 1]], 1.0, joint=[[1, 2]]),
    ],
)  # fmt: skip
def test_wrong_arguments(call: object) -> None:
    with pytest.raises(KernelError):
        call()  # type: ignore[operator]
