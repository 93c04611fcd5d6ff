"""Inference on graphical models against enumeration of all states."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from jostle.kernels.graphical.junction import calibrate, cells_needed, plan, propagate
from jostle.kernels.graphical.model import GraphicalModel, SyntheticRows, graphical_model, sample

FIVE = dict.fromkeys("abcde", 3)
GRAPHS = {
    "none": [],
    "a chain": ["ab", "bc", "cd", "de"],
    "a ring": ["ab", "bc", "cd", "de", "ea"],
    "a star of larger cliques": ["acb", "cd", "be", "c"],
    "all pairs": ["".join(p) for p in itertools.combinations("abcde", 2)],
    "two parts": ["ab", "dec"],
    "a square with a tail": ["ab", "bc", "cd", "da", "de"],
}


def drawn(cliques: list[str], sizes: dict[str, int] = FIVE, seed: int = 0, wide: float = 3.0) -> GraphicalModel:
    model = graphical_model(sizes, [list(c) for c in cliques])
    rng = np.random.default_rng(seed)
    return GraphicalModel(model.structure, rng.normal(0, wide, sum(model.structure.lengths)))


def joint(model: GraphicalModel) -> tuple[float, np.ndarray]:
    """Log-partition and probabilities by enumeration."""
    sizes = model.domain.sizes
    logs = np.zeros(sizes)
    for state in itertools.product(*map(range, sizes)):
        for clique, table in zip(model.structure.cliques, model.structure.split(model.theta), strict=True):
            logs[state] += table[tuple(state[v] for v in clique)]
    top = logs.max()
    whole = top + np.log(np.exp(logs - top).sum())
    return whole, np.exp(logs - whole)


def over(p: np.ndarray, clique: tuple[int, ...]) -> np.ndarray:
    return np.einsum(p, range(p.ndim), clique)


@pytest.mark.parametrize("cliques", GRAPHS.values(), ids=GRAPHS.keys())
def test_three_to_the_fifth_states(cliques: list[str]) -> None:
    model = drawn(cliques)
    log_partition, p = joint(model)
    assert abs(model.log_partition - log_partition) < 1e-12 * max(1, abs(log_partition))
    for clique, table in zip(model.structure.cliques, model.tables, strict=True):
        np.testing.assert_allclose(table, over(p, clique), atol=1e-12)
    for names in ("e", "da", "ace", "ebd", "abcde"):
        np.testing.assert_allclose(model.marginal(*names), over(p, tuple(map("abcde".index, names))), atol=1e-12)


def test_many_shapes() -> None:
    rng = np.random.default_rng(5)
    for seed in range(60):
        sizes = {name: int(rng.integers(1, 5)) for name in "abcde"}
        cliques = {frozenset(rng.choice(list("abcde"), rng.integers(1, 4), replace=False)) for _ in range(5)}
        model = drawn(["".join(rng.permutation(sorted(c))) for c in cliques], sizes, seed)
        log_partition, p = joint(model)
        assert abs(model.log_partition - log_partition) < 1e-11
        for clique, table in zip(model.structure.cliques, model.tables, strict=True):
            np.testing.assert_allclose(table, over(p, clique), atol=1e-12)


def test_nothing_underflows() -> None:
    """Potentials that differ by thousands: a probability may be 0, a log-partition function is exact."""
    model = drawn(GRAPHS["a ring"], wide=2000.0)
    log_partition, p = joint(model)
    assert abs(model.log_partition - log_partition) < 1e-9
    for clique, table in zip(model.structure.cliques, model.tables, strict=True):
        np.testing.assert_allclose(table, over(p, clique), atol=1e-9)


def test_conditional_queries() -> None:
    model = drawn(GRAPHS["a ring"])
    _, p = joint(model)
    given = p[:, 1, :, [0, 2], :].sum(axis=0)  # b = 1, d in {0, 2}; left over: a, c, e
    assert model.probability({"b": 1, "d": [0, 2]}) == pytest.approx(given.sum(), abs=1e-13)
    assert model.probability({"a": 2}, {"b": 1, "d": [0, 2]}) == pytest.approx(given[2].sum() / given.sum(), abs=1e-13)
    assert model.probability({"a": 2, "b": 0}, {"b": 1}) == 0
    table = model.conditional(["e", "a"], {"b": 1, "d": [0, 2]})
    np.testing.assert_allclose(table, given.sum(axis=1).T / given.sum(), atol=1e-13)


def test_divergence_and_likelihood() -> None:
    one, other, elsewhere = drawn(GRAPHS["a ring"], wide=1), drawn(GRAPHS["a ring"], seed=1), drawn(["abc", "de"])
    _, p = joint(one)
    for model in (other, elsewhere):
        _, q = joint(model)
        assert one.kl(model) == pytest.approx(float((p * np.log(p / q)).sum()), abs=1e-10)
    assert one.kl(one) == pytest.approx(0, abs=1e-12)
    rows = one.sample(500)
    states = tuple(rows.codes.T)
    _, q = joint(other)
    assert other.log_likelihood(rows) == pytest.approx(float(np.log(q[states]).mean()), abs=1e-10)
    assert other.log_likelihood(rows.frame()) == pytest.approx(other.log_likelihood(rows), abs=1e-12)


def stratified_rows(model: GraphicalModel, rows: int, seed: int) -> SyntheticRows:
    return SyntheticRows(model.domain, sample(model.calibrated, rows, np.random.default_rng(seed), stratified=True))


def test_samples_are_as_expected() -> None:
    """Randomised rounding: every count of a bag lies within 1 of what its parent's counts make it, at any size."""
    model = drawn(GRAPHS["a chain"], wide=1)
    stratified = stratified_rows(model, 20_000, 3)
    rows = model.sample(20_000, 3)
    assert rows.codes.shape == (20_000, 5)
    for clique in GRAPHS["a chain"]:
        # Each of the four steps down the chain can be off by 1 a cell, spread over 3 values.
        np.testing.assert_allclose(stratified.table(*clique), 20_000 * model.marginal(*clique), atol=15)
        np.testing.assert_allclose(rows.table(*clique), 20_000 * model.marginal(*clique), atol=40)
    again = model.sample(20_000, 3)
    assert (again.codes == rows.codes).all()
    assert not (model.sample(20_000, 4).codes == rows.codes).all()
    assert len(model.sample(1)) == 1


@pytest.mark.parametrize(("many", "least"), [(300, 0.5), (20_000, 0.3)])
def test_samples_have_the_pairs_of_the_model(many: int, least: float) -> None:
    """Of all pairs of columns, also those that no clique holds together: squares off, over those of rounding alone."""
    for seed in range(3):
        model = drawn(GRAPHS["a chain"], seed=seed, wide=1)
        first = stratified_rows(model, many, seed)

        def off(rows: SyntheticRows, model: GraphicalModel = model) -> float:
            pairs = list(itertools.combinations(model.domain.names, 2))
            return float(sum(((rows.table(*p) - many * model.marginal(*p)) ** 2).sum() for p in pairs))

        assert off(model.sample(many, seed)) < least * off(first)


def test_no_row_is_made_that_the_model_rules_out() -> None:
    same = np.where(np.eye(3) > 0, 0.0, -np.inf).ravel()
    model = graphical_model({"a": 3, "b": 3, "c": 2, "d": 4}, [["a", "b"], ["b", "c"], ["c", "d"]])
    model = GraphicalModel(model.structure, np.concatenate([same, np.linspace(0, 2, 6), np.linspace(0, 3, 8)]))
    rows = model.sample(101, 2)
    assert (rows.codes[:, 0] == rows.codes[:, 1]).all()


def test_a_chain_of_independent_rows_is_shuffled() -> None:
    """Rows come in no order: neighbours in the file share nothing (a sorted file would have correlation near 1)."""
    column = np.array(drawn(GRAPHS["a chain"], wide=1).sample(5000).codes[:, 0], dtype=float)
    assert abs(np.corrcoef(column[1:], column[:-1])[0, 1]) < 0.1  # 7 standard errors


def test_loopy_propagation_is_exact_on_a_tree() -> None:
    model = drawn(["ab", "bc", "cde", "d"], wide=1)
    log_partition, tables = propagate(model.domain.sizes, model.structure.cliques, model.structure.split(model.theta))
    assert log_partition == pytest.approx(model.log_partition, abs=1e-6)
    for found, table in zip(tables, model.tables, strict=True):
        np.testing.assert_allclose(found, table, atol=1e-6)


def test_loopy_propagation_is_close_on_a_weak_ring() -> None:
    exact = drawn(GRAPHS["a ring"], wide=0.5)
    loopy = graphical_model(FIVE, [list(c) for c in GRAPHS["a ring"]], "loopy")
    near = GraphicalModel(loopy.structure, exact.theta)
    assert near.jostle_fields["inference"] == "loopy"
    for found, table in zip(near.tables, exact.tables, strict=True):
        np.testing.assert_allclose(found, table, atol=0.01)


def test_a_width_that_cannot_fit_is_refused_with_its_size() -> None:
    pairs = list(itertools.combinations([f"v{i}" for i in range(12)], 2))
    domain = {f"v{i}": 10 for i in range(12)}
    with pytest.raises(ValueError, match=r"1,000,000,000,000 cells, the largest over 12 variables"):
        graphical_model(domain, pairs)
    assert cells_needed((10,) * 12, tuple(itertools.combinations(range(12), 2))) == 1e12
    loopy = graphical_model(domain, pairs, "loopy")
    assert loopy.tables[0].sum() == pytest.approx(1)


def test_a_plan_is_kept() -> None:
    assert plan((2, 3), ((0, 1),)) is plan((2, 3), ((0, 1),))


def test_a_thousand_variables() -> None:
    names = [f"v{i}" for i in range(300)]
    model = graphical_model(dict.fromkeys(names, 4), list(itertools.pairwise(names)))
    assert model.structure.plan.treewidth == 1
    assert model.log_partition == pytest.approx(300 * np.log(4))


def test_evidence_of_probability_nought() -> None:
    found = calibrate(plan((2, 2), ((0, 1),)), [np.full((2, 2), -np.inf)])
    assert found.log_partition == -np.inf
    assert np.isfinite(found.marginals()[0]).all()


BAD = [
    (({}, []), "a domain is a record"),
    (({"a": 0}, []), "whole number of values"),
    (({"a": 2.5}, []), "whole number of values"),
    (({"a": "xy"}, []), "needs a range"),
    (({"a": ["x", "x"]}, []), "each once"),
    (({"a": []}, []), "at least one value"),
    (({"a": 2}, [["b"]]), "there is no variable `b`: the variables are a"),
    (({"a": 2, "b": 2}, [["a", "a"]]), "each variable once"),
    (({"a": 2, "b": 2}, [["a", "b"], ["b", "a"]]), "two cliques"),
    (({"a": 2}, [[]]), "at least one variable"),
    (({"a": 2}, "a"), "a list of lists"),
    (({"a": 2}, [["a"]], "guess"), "`exact` or `loopy`"),
]


@pytest.mark.parametrize(("given", "message"), BAD, ids=[m for _, m in BAD])
def test_bad_domains_and_cliques(given: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        graphical_model(*given)


def test_bad_questions() -> None:
    model = drawn(GRAPHS["a chain"])
    for ask, message in [
        (lambda: model.probability({"z": 1}), "no variable `z`"),
        (lambda: model.probability({"a": 7}), "`a` has no value 7"),
        (lambda: model.probability(3), "an event is a record"),
        (lambda: model.conditional(["a"], {"b": []}), "probability 0"),
        (lambda: model.sample(0), "from 1 to"),
        (lambda: model.sample(1e9), "from 1 to"),
        (lambda: model.kl(drawn(["ab"], {"a": 2, "b": 2})), "same variables"),
        (lambda: model.log_likelihood([np.zeros((3, 3))] * 4), "no rows"),
        (lambda: model.log_likelihood([np.ones(3)] * 4), "has 3 cells and needs 9"),
    ]:
        with pytest.raises(ValueError, match=message):
            ask()
