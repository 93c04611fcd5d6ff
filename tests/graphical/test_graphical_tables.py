"""Cells and models drawn together by empirical Bayes, the tables of all pairs, and the search for tables."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from jostle.kernels import KernelError
from jostle.kernels.graphical.adaptive import (
    MOST_ROUNDS,
    OF_CHOOSING,
    OF_COLUMNS,
    OF_ROWS,
    TO_CHOOSE,
    PairTables,
    TableSearch,
    chosen_cliques,
    search_begun,
    search_continued,
    search_plan,
)
from jostle.kernels.graphical.learn import on_simplex
from jostle.kernels.graphical.model import GraphicalModel, graphical_model
from jostle.kernels.graphical.shrunken import Table, columns_of, posterior_medians, shrunken_fit, shrunken_model
from jostle.kernels.graphical.synthetic import population, random_model
from jostle.kernels.noisy_array import NoiseModel, with_noise
from jostle.noise_laws import Gaussian, Laplace

LAWS = [Laplace(40.0), Gaussian(40.0 * 2**0.5)]
PRIOR = {"most": 50.0, "wide": 2.5, "weight": 3.0}
SINGLES = [["a"], ["b"], ["c"], ["d"]]
CHAIN = graphical_model(dict.fromkeys("abcd", 4), [*SINGLES, ["a", "b"], ["b", "c"], ["c", "d"]])


def with_law(table: np.ndarray, law: Laplace | Gaussian, rng: np.random.Generator) -> np.ndarray:
    draw = rng.laplace if isinstance(law, Laplace) else rng.normal
    return with_noise(table + draw(0.0, law.scale, table.shape), NoiseModel(law))


def exact_tables(truth: GraphicalModel, rows: int) -> list[np.ndarray]:
    drawn = population(truth, rows, 1)
    return [drawn.table(*truth.domain.names_of(c)) for c in truth.structure.cliques]


@pytest.mark.parametrize("law", LAWS, ids=["laplace", "gaussian"])
def test_cells_are_their_posterior_medians_under_a_law_that_is_learned(law: Laplace | Gaussian) -> None:
    """Of twenty cells nineteen are empty and one holds 400: cells as they are have three times that error."""
    rng = np.random.default_rng(4)
    truth = np.where(rng.random(1000) < 0.05, 400.0, 0.0)
    seen = np.asarray(with_law(truth, law, rng))
    drawn = posterior_medians([seen], [np.full(1000, truth.mean())], [law], **PRIOR)[0]
    assert np.abs(drawn - truth).mean() < np.abs(np.maximum(seen, 0) - truth).mean() / 3


def test_a_table_of_empty_cells_is_no_guess_at_the_others() -> None:
    """A diagonal beside full tables: 43 % of its rows were off where one law stood for all, and cells were means."""
    rng = np.random.default_rng(6)
    sparse, full = np.diag(np.full(13, 60.0)), [np.full((4, 13), 15.0) for _ in range(6)]
    usual = [np.full((13, 13), sparse.mean()), *full]
    law = Gaussian(6.0)
    drawn = posterior_medians([rng.normal(t, 6.0) for t in (sparse, *full)], usual, [law] * 7, **PRIOR)
    assert np.abs(drawn[0] - sparse).sum() / 2 < 0.15 * sparse.sum()
    assert all(np.abs(t - 15).mean() < 2 for t in drawn[1:])


def test_quiet_cells_stay_and_loud_ones_are_what_is_usual() -> None:
    truth = np.array([[0.0, 3.0, 900.0], [20.0, 70.0, 7.0]])
    even = np.full((2, 3), truth.mean())
    same = posterior_medians([truth], [even], [Laplace(0.0)], **PRIOR)[0]
    np.testing.assert_allclose(same, truth)
    drowned = posterior_medians([truth], [even], [Laplace(1e7)], **PRIOR)[0]
    assert np.ptp(drowned) < 1e-3 * drowned.mean()


def test_what_many_cells_show_is_learned_from_some_of_them() -> None:
    """More cells than the law is learned from, in more than one chunk: each is estimated, in its table's shape."""
    rng = np.random.default_rng(5)
    truth = np.where(rng.random((120, 100)) < 0.1, 500.0, 0.0)
    seen = truth + rng.laplace(0.0, 40.0, truth.shape)
    drawn = posterior_medians([seen], [np.full(truth.shape, truth.mean())], [Laplace(40.0)], **PRIOR)[0]
    assert drawn.shape == truth.shape
    assert np.abs(drawn - truth).mean() < np.abs(np.maximum(seen, 0) - truth).mean() / 3


def test_exact_tables_come_back() -> None:
    tables = exact_tables(random_model(CHAIN, 3), 50_000)
    learned = shrunken_fit(CHAIN, tables)
    assert learned.notes["rows"] == 50_000
    for seen, fitted in zip(tables, learned.tables, strict=True):
        np.testing.assert_allclose(fitted, seen / 50_000, atol=2e-4)


@pytest.mark.parametrize("law", LAWS, ids=["laplace", "gaussian"])
def test_a_pair_that_noise_explains_joins_nothing(law: Laplace | Gaussian) -> None:
    """Columns that are independent: the model of noisy pairs is nearer to them than projected tables, three times."""
    rng, apart = np.random.default_rng(6), random_model(graphical_model(dict.fromkeys("abcd", 4), SINGLES), 2)
    truth = [1000 * apart.marginal(CHAIN.domain.names_of(c)) for c in CHAIN.structure.cliques]
    noisy = [with_law(t, law, rng) for t in truth]
    learned = shrunken_fit(CHAIN, noisy)
    pairs = range(len(SINGLES), len(truth))
    far = sum(np.abs(learned.tables[i] - np.outer(*(learned.marginal(v) for v in CHAIN.domain.names_of(
        CHAIN.structure.cliques[i])))).sum() for i in pairs)  # fmt: skip
    raw = sum(np.abs(on_simplex(np.asarray(noisy[i]) / 1000) - truth[i] / 1000).sum() for i in pairs)
    assert far < raw / 3


def test_pairs_tell_of_columns() -> None:
    """Where columns are loud and pairs quiet, a column is what its pairs say."""
    rng, truth = np.random.default_rng(7), random_model(CHAIN, 3)
    tables = exact_tables(truth, 5000)
    noisy = [with_law(t, Laplace(2000.0 if t.ndim == 1 else 1.0), rng) for t in tables]
    learned = shrunken_fit(CHAIN, noisy, 5000)
    np.testing.assert_allclose(learned.marginal("b"), tables[1] / 5000, atol=0.01)


def test_tables_count_by_their_precision_where_a_search_goes_on() -> None:
    """Columns and a pair that noise drowns change nothing of what quiet pairs say, all of which comes back."""
    rng, truth, rows = np.random.default_rng(8), random_model(CHAIN, 3), 50_000.0
    scales = [1e5 if i < len(SINGLES) else 1.0 for i in range(len(CHAIN.structure.cliques))]
    laws = [Gaussian(scale) for scale in scales]
    cells = [rows * t + rng.normal(0, s, t.shape) for t, s in zip(truth.tables, scales, strict=True)]
    tables = [Table(c, t, law) for c, t, law in zip(CHAIN.structure.cliques, cells, laws, strict=True)]
    learned = shrunken_model(CHAIN.domain, tables, rows, CHAIN)
    for real, near in zip(truth.tables, learned.tables, strict=True):
        assert np.abs(real - near).sum() / 2 < 0.003


@pytest.mark.parametrize("cliques", [[["a"], ["b"], ["a", "b"]], [["a", "b"], ["b", "c"]], [["b"], ["a"], ["c"]]])
def test_columns_that_are_missing_or_elsewhere_are_refused(cliques: list[list[str]]) -> None:
    model = graphical_model(dict.fromkeys("abc", 2), cliques)
    with pytest.raises(KernelError, match="one of each column"):
        shrunken_fit(model, [np.ones([2] * len(c)) for c in cliques])


def test_pairs_that_make_a_circle_and_a_triple_come_back() -> None:
    wide = graphical_model(dict.fromkeys("abcd", 3), [*SINGLES, ["a", "b"], ["b", "c"], ["a", "c"], ["b", "c", "d"]])
    tables = exact_tables(random_model(wide, 5), 50_000)
    for seen, fitted in zip(tables, shrunken_fit(wide, tables).tables, strict=True):
        np.testing.assert_allclose(fitted, seen / 50_000, atol=2e-3)


# The tables of all pairs ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_tables_of_all_pairs_and_triples_are_those_of_the_joint_distribution(seed: int) -> None:
    """Two parts, a circle of pairs, a triple, bags three edges apart: against the sum over all states."""
    names = "abcdefgh"
    cliques = [["a", "b"], ["b", "c"], ["c", "d"], ["d", "a"], ["d", "e"], ["e", "f", "g"], ["h"]]
    sizes = {name: 2 + i % 3 for i, name in enumerate(names)}
    model = random_model(graphical_model(sizes, cliques), seed)
    logs = np.zeros([sizes[n] for n in names])
    for clique, theta in zip(cliques, model.structure.split(model.theta), strict=True):
        logs = logs + theta.transpose(np.argsort(np.argsort([names.index(n) for n in clique]))).reshape(
            [sizes[n] if n in clique else 1 for n in names]
        )
    joint = np.exp(logs) / np.exp(logs).sum()
    tables = PairTables(model.calibrated)
    for clique in [c for k in (1, 2, 3) for c in combinations(range(8), k)]:
        exact = joint.sum(axis=tuple(v for v in range(8) if v not in clique))
        np.testing.assert_allclose(tables.table(clique), exact, rtol=1e-9)


# The search ----------------------------------------------------------------------------------------


def apart_of(sizes: list[int]) -> GraphicalModel:
    """The uniform model of single columns."""
    names = [f"c{i}" for i in range(len(sizes))]
    return graphical_model(dict(zip(names, sizes, strict=True)), [[n] for n in names])


def searched(truth: GraphicalModel, rows: int, epsilon: float, seed: int = 0) -> TableSearch:
    """The search on rows of `truth` with Laplace noise; tables are chosen without noise."""
    rng, drawn = np.random.default_rng(seed), population(truth, rows, seed)
    names = list(truth.domain.names)
    apart = graphical_model(dict(zip(names, truth.domain.sizes, strict=True)), [[n] for n in names])

    def measured(cliques: list[list[str]], share: float) -> list[np.ndarray]:
        return [with_law(drawn.table(*c), Laplace(len(cliques) / (epsilon * share)), rng) for c in cliques]

    plan = search_plan(rows * epsilon / len(names), apart, 1.0)
    search = search_begun(apart, measured([[n] for n in names], plan["columns"]), plan, 10_000)
    spent = plan["columns"]
    while search.next_batch[0]:
        many, share = search.next_batch
        each = zip(*search.candidates.values(), strict=True)
        worth = [np.abs(drawn.table(*names) - expected).sum() - penalty for names, expected, penalty in each]
        chosen = chosen_cliques(search, np.argsort(worth)[::-1][:many])
        tables = measured(chosen["cliques"], share * chosen["share"])
        spent += share * (search.of_choosing + chosen["share"])
        search = search_continued(search, chosen["cliques"], tables)
    assert spent == pytest.approx(1 - OF_ROWS)
    return search


@pytest.mark.parametrize("seed", range(3))
def test_the_search_finds_a_circle_and_a_triple(seed: int) -> None:
    """Six columns, of which four stand in a circle and three hang together by threes alone.

    No pair shows the triple, and noise seldom makes a bag of it. Of 60 seeds the divergence was at most 0.0018.
    """
    truth = graphical_model(
        dict.fromkeys("abcdef", 2), [["a", "b"], ["b", "c"], ["c", "d"], ["d", "a"], ["d", "e", "f"]]
    )
    theta = np.concatenate([np.array([1.0, -1.0, -1.0, 1.0])] * 4 + [np.array([1.0, -1, -1, 1, -1, 1, 1, -1])])
    truth = truth.with_potentials(theta)
    search = searched(truth, 20_000, 3.0, seed)
    assert truth.kl(search.model) < 0.01
    assert {frozenset("ab"), frozenset("bc"), frozenset("cd"), frozenset("ad"), frozenset("def")} <= set(
        map(frozenset, search.model.jostle_fields["cliques"])
    )


def test_where_noise_is_all_there_is_columns_alone_are_measured() -> None:
    plan = search_plan(3.0, apart_of(10 * [2]), 1.0)
    assert plan["columns"] == 1 - OF_ROWS and plan["left"] == 0
    search = searched(random_model(CHAIN, 3), 50, 0.5)
    assert all(len(clique) == 1 for clique in search.model.structure.cliques)


def test_under_pure_epsilon_it_is_by_the_values_of_columns_whether_pairs_pay() -> None:
    """Where noise grows with the tables; beside a column to predict, whose pairs are measured anyway, more is asked."""
    few, many = apart_of(9 * [2]), apart_of(9 * [16])
    assert search_plan(20.0, few, 1.0)["left"] > 0 == search_plan(20.0, many, 1.0)["left"]
    assert search_plan(20.0, few, 1.0)["left"] > 0 == search_plan(20.0, few, 1.0, "c8")["left"]
    shares = [search_plan(s, few, 1.0)["columns"] for s in (2.0, 6.0, 20.0, 40.0, 80.0, 1e5)]
    pairs = [search_plan(s, many, 1.0)["left"] / search_plan(s, many, 1.0)["unit"] for s in (40.0, 60.0, 80.0, 1e5)]
    assert pairs == sorted(pairs) and pairs[0] == pytest.approx(2)
    assert shares == sorted(shares, reverse=True) and shares[-1] == pytest.approx(OF_COLUMNS * (1 - OF_ROWS))


def test_the_more_rows_the_less_of_the_amount_a_table_gets() -> None:
    units = [search_plan(s, apart_of(20 * [3]), 0.5)["unit"] for s in (40.0, 100.0, 1000.0, 1e5, np.inf)]
    assert units == sorted(units, reverse=True) and units[-1] == pytest.approx(0.75 * 0.98 / 160)
    assert search_plan(1e4, apart_of([3]), 1.0)["left"] == 0


def test_tables_that_would_make_inference_too_large_are_no_candidates() -> None:
    names = [f"c{i}" for i in range(12)]
    truth = random_model(graphical_model(dict.fromkeys(names, 6), list(map(list, combinations(names[:4], 2)))), 1)
    search = searched(truth, 30_000, 10.0)
    assert search.model.structure.plan.cells <= 10_000


def test_two_measurements_of_a_table_count_by_their_precision() -> None:
    one = Table((0,), np.array([10.0, 0.0]), Laplace(3.0))
    both = one.with_more(Table((0,), np.array([0.0, 10.0]), Laplace(4.0)))
    assert both.law.scale == pytest.approx(2.4)
    np.testing.assert_allclose(both.cells, [6.4, 3.6])


def test_what_does_not_fit_is_left_for_later() -> None:
    """Of a batch of eight three pairs fit: they get three eighths of it, in the last round all of it.

    A pair whose columns the ones before connect is left for later as well.
    """
    names = [f"c{i}" for i in range(8)]
    apart = graphical_model(dict.fromkeys(names, 10), [[n] for n in names])
    tables = [with_noise(np.full(10, 500.0), NoiseModel(Laplace(8.0))) for _ in names]
    plan = {"columns": 0.1, "unit": 0.1, "left": 0.9, "rounds": 12, "power": 1.0}
    search = replace(search_begun(apart, tables, plan, 400), left=0.9)
    many, share = search.next_batch
    path = [search.cliques.index(pair) for pair in [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)]]
    chosen = chosen_cliques(search, path)
    assert chosen["cliques"] == [["c0", "c1"], ["c1", "c2"], ["c2", "c3"]]
    assert chosen["share"] == pytest.approx((1 - search.of_choosing) * len(chosen["cliques"]) / many)
    seen = [with_noise(np.full((10, 10), 50.0), NoiseModel(Laplace(8.0))) for _ in chosen["cliques"]]
    after = search_continued(search, chosen["cliques"], seen)
    assert after.left == pytest.approx(0.9 - share * (search.of_choosing + chosen["share"]))
    assert chosen_cliques(replace(search, round=MOST_ROUNDS), path)["share"] == 1 - search.of_choosing
    assert replace(search, round=MOST_ROUNDS + 1).next_batch == (0, 0.0)


@pytest.mark.parametrize("size", [2, 5, 16])
def test_what_chooses_and_what_measures_have_the_least_noise_together(size: int) -> None:
    """Under pure ε: of a choice once, of a table in each of its cells."""
    apart = apart_of(4 * [size])
    tables = [with_noise(np.full(size, 500.0), NoiseModel(Laplace(8.0))) for _ in range(4)]
    begun = search_begun(apart, tables, {"columns": 0.1, "unit": 0.1, "left": 0.9, "rounds": 12, "power": 1.0}, 1e6)
    parts = np.linspace(0.001, 0.999, 999)
    assert begun.of_choosing == pytest.approx(parts[np.argmin(TO_CHOOSE**2 / parts + size**2 / (1 - parts))], abs=0.001)


def test_of_public_rows_six_times_as_many_tables_are_taken_at_once() -> None:
    names = [f"c{i}" for i in range(20)]
    apart, exact = graphical_model(dict.fromkeys(names, 2), [[n] for n in names]), np.array([3e4, 2e4])
    tables = [with_noise(exact, NoiseModel(Gaussian(40.0))) for _ in names]
    begun = search_begun(apart, tables, search_plan(1e4, apart, 0.5), 1e6)
    many, share = begun.next_batch
    assert many == 7 and share == pytest.approx(begun.left * 7 / 160)
    many, share = replace(begun, left=0.3).next_batch
    assert many == 20 and share == pytest.approx(begun.left / 8)
    assert search_begun(apart, [exact] * 20, search_plan(1e300, apart, 0.5), 1e6).next_batch[0] == 42


def test_columns_are_measured_again_where_pairs_moved_little() -> None:
    """Nothing is chosen then, and nothing is paid for choosing; where pairs said much, more of them come first."""
    names = [f"c{i}" for i in range(6)]
    apart = graphical_model(dict.fromkeys(names, 4), [[n] for n in names])
    tables = [with_noise(np.full(4, 250.0), NoiseModel(Gaussian(20.0))) for _ in names]
    begun = search_begun(apart, tables, search_plan(100, apart, 0.5), 1e6)
    chosen = chosen_cliques(begun, range(begun.next_batch[0]))
    assert not begun.again and begun.of_choosing == OF_CHOOSING

    def after(table: np.ndarray) -> TableSearch:
        seen = [with_noise(table, NoiseModel(Gaussian(20.0))) for _ in chosen["cliques"]]
        return search_continued(begun, chosen["cliques"], seen)

    assert not after(250.0 * np.eye(4)).again
    search = after(np.full((4, 4), 62.5))
    fields = search.jostle_fields
    assert search.again and not any(fields["candidates"].values()) and fields["of_choosing"] == 0
    assert chosen_cliques(search, []) == {"cliques": [[n] for n in names], "share": 1.0}
    more = search_continued(search, [[n] for n in names], tables)
    assert more.left == pytest.approx(search.left - search.next_batch[1]) and more.gain == search.gain
    assert [t.law.scale for t in more.tables[:6]] == pytest.approx([20 / np.sqrt(2)] * 6)


def test_columns_of_many_values_are_measured_several_times_in_one() -> None:
    """Under ρ as often as they have times the least values, at most eight times; under ε once."""
    apart = apart_of([2, 5, 40, 1])
    plan = search_plan(1e3, apart, 0.5)
    assert plan["measured"] == [0, 1, 1, *([2] * 8), 3] and search_plan(1e3, apart, 1.0)["measured"] == [0, 1, 2, 3]
    tables = [with_noise(np.full(apart.domain.sizes[v], 600.0 / apart.domain.sizes[v]), NoiseModel(Gaussian(24.0)))
              for v in plan["measured"]]  # fmt: skip
    search = search_begun(apart, tables, plan, 1e6)
    assert [t.law.scale for t in search.tables] == pytest.approx([24 / np.sqrt(n) for n in (1, 2, 8, 1)])
    np.testing.assert_allclose(search.tables[2].cells, 15.0)
    assert search.rows == pytest.approx(600.0)
    again = search_continued(
        replace(search, gain=0.0), chosen_cliques(replace(search, gain=0.0), [])["cliques"], tables
    )
    assert [t.law.scale for t in again.tables] == pytest.approx([24 / np.sqrt(2 * n) for n in (1, 2, 8, 1)])


def test_pairs_of_the_column_to_predict_are_measured_in_place_of_columns() -> None:
    """The columns follow from them; pairs that are independent change nothing, others are in the model as measured."""
    names = [f"c{i}" for i in range(6)]
    apart = graphical_model(dict.fromkeys(names, 2), [[n] for n in names])
    plan = search_plan(20.0, apart, 1.0, "c4")
    assert plan["cliques"] == [["c0", "c4"], ["c1", "c4"], ["c2", "c4"], ["c3", "c4"], ["c4", "c5"]]
    assert plan["measured"] == [0, 1, 2, 3, 4] and plan["left"] == 0 and plan["columns"] == 1 - OF_ROWS
    near, far = np.full((2, 2), 250.0), np.array([[400.0, 100.0], [100.0, 400.0]])
    seen = [with_noise(near if i else far, NoiseModel(Laplace(8.0))) for i in range(5)]
    search = search_begun(apart, seen, plan, 1e6)
    assert search.next_batch == (0, 0.0) and search.rows == pytest.approx(1000)
    np.testing.assert_allclose(search.model.marginal(["c0", "c4"]), far / 1000, atol=0.02)
    np.testing.assert_allclose(search.model.marginal(["c1", "c4"]), near / 1000, atol=0.01)
    np.testing.assert_allclose(search.model.marginal("c2"), [0.5, 0.5], atol=0.01)
    assert search.model.notes["noise"] == 8.0
    _, precision = columns_of(apart.domain, search.tables, 1000.0)
    assert precision[[0, 4]] == pytest.approx([1 / 128, 5 / 128])


def test_a_column_of_many_classes_is_measured_by_itself_too() -> None:
    plan = search_plan(100.0, apart_of([2, 9, 3]), 1.0, "c1")
    assert [plan["cliques"][v] for v in plan["measured"]] == [["c0"], ["c1"], ["c2"], ["c0", "c1"], ["c1", "c2"]]
    assert search_plan(100.0, apart_of([3]), 1.0, "c0")["cliques"] == [["c0"]]
    wide = search_plan(100.0, apart_of([2, 20_000, 3]), 1.0, "c0")
    assert wide["cliques"] == [["c1"], ["c0", "c2"]]
