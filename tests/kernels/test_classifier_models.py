"""Classifiers as values: what they say of rows, against scikit-learn where it can say the same, and their JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import CategoricalNB

from jostle.kernels.classifiers.codes import Coded, Cuts, coded, plain, plain_values, positions
from jostle.kernels.classifiers.fits import (
    binned_model,
    branched_model,
    class_counts,
    linear_model,
    majority_model,
    naive_bayes_model,
    softmax_model,
)
from jostle.kernels.classifiers.shrink import classifier_from_json
from jostle.kernels.classifiers.treemodel import tree_leaf, tree_model, tree_node
from jostle.kernels.noisy_array import NoiseModel, with_noise
from jostle.kernels.simulated_tables import KINDS, synthetic_table
from jostle.noise_laws import Laplace

SIZES = (3, 4, 2)
NAMES = ("a", "b", "c")
ATTRIBUTES = [{"name": n, "values": [float(v) for v in range(s)]} for n, s in zip(NAMES, SIZES, strict=True)]
CLASSES = ["no", "yes", "maybe"]


def rows(many: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    cells = np.stack([rng.integers(0, s, many) for s in SIZES], axis=1)
    labels = (cells[:, 0] + (rng.random(many) < 0.3)) % 3
    return cells, labels


def table(first: np.ndarray, second: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    counts = np.zeros(shape)
    np.add.at(counts, (first, second), 1)
    return counts


def columns(cells: np.ndarray) -> dict[str, np.ndarray]:
    return {name: cells[:, i] for i, name in enumerate(NAMES)}


def tables(cells: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
    return [table(labels, cells[:, i], (3, s)) for i, s in enumerate(SIZES)]


def test_naive_bayes_on_exact_tables_is_scikit_learns() -> None:
    cells, labels = rows()
    model = naive_bayes_model(CLASSES, ATTRIBUTES, tables(cells, labels))
    theirs = CategoricalNB(alpha=1, min_categories=list(SIZES)).fit(cells, labels)
    np.testing.assert_allclose(model.probabilities(columns(cells)), theirs.predict_proba(cells), atol=1e-12)


def test_tempered_bayes_trusts_attributes_less() -> None:
    cells, labels = rows()
    whole, half = (naive_bayes_model(CLASSES, ATTRIBUTES, tables(cells, labels), w) for w in (1, 0.5))
    assert (half.probabilities(columns(cells)).max(axis=1) < whole.probabilities(columns(cells)).max(axis=1)).all()


def test_linear_on_exact_tables_is_ridge_regression() -> None:
    cells, labels = rows()
    pairs = [table(cells[:, i], cells[:, j], (SIZES[i], SIZES[j])) for i, j in ((0, 1), (0, 2), (1, 2))]
    model = linear_model(CLASSES, ATTRIBUTES, [*tables(cells, labels), *pairs])
    indicators = np.hstack([np.eye(s)[cells[:, i]] for i, s in enumerate(SIZES)])
    theirs = Ridge(alpha=1.0).fit(indicators, np.eye(3)[labels])
    scores = model.base + sum(
        model.weights[n][1][:, cells[:, i]].T for i, n in enumerate(NAMES)
    )  # fmt: skip
    np.testing.assert_allclose(scores, theirs.predict(indicators), atol=1e-9)


def test_linear_with_noise_only_says_next_to_nothing() -> None:
    """The ridge is as large as the noise: pure noise gives the majority, not an overflow."""
    rng = np.random.default_rng(1)
    shapes = [*((3, s) for s in SIZES), (3, 4), (3, 2), (4, 2)]
    noise = [with_noise(rng.laplace(0, 1000, shape), NoiseModel(Laplace(1000.0))) for shape in shapes]
    model = linear_model(CLASSES, ATTRIBUTES, noise)
    assert all(np.abs(w).max() < 3 for _, w in model.weights.values())


def test_the_class_counts_weigh_tables_by_their_noise() -> None:
    rng = np.random.default_rng(2)
    wide, narrow = np.zeros((2, 50)), np.zeros((2, 2))
    found = np.array([class_counts([t + rng.normal(size=t.shape) for t in (wide, narrow)]) for _ in range(4000)])
    assert found.std() == pytest.approx((1 / (1 / 50 + 1 / 2)) ** 0.5, rel=0.1)  # the least that a mean can have


def test_majority_and_unknown_cells() -> None:
    model = majority_model(CLASSES, [3, 7, -2])
    assert model.jostle_fields["predict"]({"a": 1.0}) == "yes"
    assert "always yes" in str(model)
    cells, labels = rows()
    bayes = naive_bayes_model(CLASSES, ATTRIBUTES, tables(cells, labels))
    nothing = bayes.probabilities({"a": [None, 99], "b": ["?", float("nan")]})
    prior = np.bincount(labels) / len(labels)
    np.testing.assert_allclose(nothing, [prior, prior], atol=1e-12)


def test_a_branch_answers_its_own_rows_and_all_branches_the_others() -> None:
    cells, labels = rows()
    rest = ATTRIBUTES[1:]
    branches = [
        naive_bayes_model(CLASSES, rest, tables(cells[cells[:, 0] == v], labels[cells[:, 0] == v])[1:])
        for v in range(3)
    ]
    model = branched_model(ATTRIBUTES[0], branches)
    found = model.probabilities(columns(cells))
    for v, branch in enumerate(branches):
        mine = cells[:, 0] == v
        np.testing.assert_allclose(found[mine], branch.probabilities(columns(cells[mine])))
    lost = model.probabilities({"a": [7.0], "b": [1], "c": [0]})
    np.testing.assert_allclose(lost, np.mean([b.probabilities({"b": [1], "c": [0]}) for b in branches], axis=0))
    assert model.attributes == {n: tuple(a["values"]) for n, a in zip(NAMES, ATTRIBUTES, strict=True)}


def test_json_there_and_back() -> None:
    cells, labels = rows()
    bayes = naive_bayes_model(CLASSES, ATTRIBUTES, tables(cells, labels))
    branched = branched_model(ATTRIBUTES[0], [bayes, majority_model(CLASSES, [1, 2, 3]), bayes])
    for model in (bayes, branched, binned_model(branched, {"a": [1.5, 2.5]})):
        again = classifier_from_json(json.loads(json.dumps(model.as_json())))
        np.testing.assert_allclose(again.probabilities(columns(cells)), model.probabilities(columns(cells)), atol=1e-5)
        assert str(again) == str(model)
    with pytest.raises(ValueError, match="no classifier"):
        classifier_from_json({"model": "something"})


def test_bins_of_raw_numbers() -> None:
    cells, labels = rows()
    model = binned_model(naive_bayes_model(CLASSES, ATTRIBUTES, tables(cells, labels)), {"b": [10.0, 20.0, 30.0]})
    raw = model.probabilities({"a": [0, 0], "b": [9.9, 20.0], "c": [1, 1]})
    binned = model.inner.probabilities({"a": [0, 0], "b": [0, 2], "c": [1, 1]})
    np.testing.assert_array_equal(raw, binned)
    assert Cuts((10.0, 20.0)).place(float("inf")) == 2
    assert Cuts((10.0,)).place("10") is None


@pytest.mark.parametrize("column", [[1, 2.0, True, None], np.array([1, 2, 5, 7]), np.array([1.0, np.nan, 2.0, 3.0])])
def test_codes_know_a_value_by_what_it_is(column: object) -> None:
    known = coded(column)  # type: ignore[arg-type]
    assert known == coded(known) and isinstance(known, Coded)
    assert positions(known, [2.0, 1.0])[0] == 1
    assert (positions(column, ["1"]) == -1).all()  # type: ignore[arg-type]


@pytest.mark.parametrize("number", range(10))
def test_made_up_tables_are_seeded_and_within_their_domains(number: int) -> None:
    made = synthetic_table(number, 3, 100, 300, 50)
    again = synthetic_table(number, 3, 100, 300, 50)
    np.testing.assert_array_equal(made.cells, again.cells)
    np.testing.assert_array_equal(made.labels, again.labels)
    assert made.kind == KINDS[number % len(KINDS)]
    assert 150 <= len(made.labels) <= 350
    assert (made.cells >= 0).all() and (made.cells < np.array(made.sizes)).all()
    assert (made.labels >= 0).all() and (made.labels < made.classes).all()
    assert not np.array_equal(made.labels[:100], synthetic_table(number, 4, 100, 300, 50).labels[:100])


def test_in_a_network_the_class_is_any_column() -> None:
    for number in (1, 4, 7):
        made = synthetic_table(number, 3, 100, 300, 50, wide=True)
        again = synthetic_table(number, 3, 100, 300, 50, wide=True)
        np.testing.assert_array_equal(made.cells, again.cells)
        assert made.kind == "network" and made.cells.shape == (len(made.labels), len(made.sizes))
        assert (made.cells >= 0).all() and (made.cells < np.array(made.sizes)).all()
        assert 0 <= made.labels.min() < made.labels.max() < made.classes
    assert synthetic_table(2, 3, 100, 300, 50, wide=True).kind == "wide"


def test_bins_are_called_by_the_numbers_in_them() -> None:
    """In a table, in a branch and in a tree; of a column that was not cut, by its own values."""
    tables = [np.array([[60.0, 20.0, 20.0], [2.0, 49.0, 49.0]]), np.array([[50.0, 50.0], [5.0, 95.0]])]
    attributes = [{"name": "age", "values": [0.0, 1.0, 2.0]}, {"name": "sex", "values": ["F", "M"]}]
    inner = naive_bayes_model(["no", "yes"], attributes, tables)
    cuts = {"age": [30.0, 45.5]}
    assert "age: below 30 speaks most, for no" in str(binned_model(inner, cuts))
    assert "age: 0 speaks most, for no" in str(inner) and "sex: F speaks most, for no" in str(inner)
    branches = [majority_model(["no", "yes"], [1, 2]) for _ in range(3)]
    asked = str(binned_model(branched_model(attributes[0], branches), cuts))
    assert [line.partition(":")[0] for line in asked.splitlines()[:3]] == [
        "age below 30", "age 30 up to 45.5", "age 45.5 or more",
    ]  # fmt: skip
    leaves = [tree_leaf([1, 0]), tree_leaf([0, 1]), tree_leaf([3, 1])]
    tree = tree_model(["no", "yes"], [tree_node("age", [0.0, 1.0, 2.0], leaves)])
    assert "30 up to 45.5: yes" in str(binned_model(tree, cuts))
    drawn = binned_model(tree, cuts).jostle_fields["dot"]()
    assert '[label = "30 up to 45.5"]' in drawn and '[label = "1"]' in tree.dot()


def test_a_model_of_bins_knows_their_edges() -> None:
    """Without the table's cuts at hand, and after it was written and read."""
    age = {"name": "age", "values": [0.0, 1.0, 2.0], "edges": [30.0, 45.5]}
    leaves = [tree_leaf([1, 0]), tree_leaf([0, 1]), tree_leaf([3, 1])]
    tree = tree_model(["no", "yes"], [tree_node("age", age["values"], leaves, edges=age["edges"])])
    bayes = naive_bayes_model(["no", "yes"], [age], [np.array([[9.0, 1.0, 1.0], [1.0, 9.0, 9.0]])])
    branched = branched_model(age, [majority_model(["no", "yes"], [1, 2]) for _ in range(3)])
    for model in (tree, bayes, branched):
        assert "below 30" in str(model) and str(classifier_from_json(model.as_json())) == str(model)
    assert '[label = "45.5 or more"]' in tree.dot()


def test_values_that_are_noise_are_not_named() -> None:
    """Counts of 4 under noise of deviation 14 say nothing, however far apart they are; counts of 900 do."""
    noise = NoiseModel(Laplace(10.0))
    loud = with_noise(np.array([[900.0, 30.0, 40.0], [100.0, 900.0, 20.0]]), noise)
    quiet = with_noise(np.array([[500.0, 470.0, 0.0], [510.0, 500.0, 10.0]]), noise)
    attributes = [{"name": "a", "values": [0.0, 1.0, 2.0]}, {"name": "b", "values": [7.0, 8.0, 9.0]}]
    said = str(naive_bayes_model(["no", "yes"], attributes, [loud, quiet]))
    assert "a: 1 speaks most, for yes" in said and "nothing beyond the noise: b" in said and "9 speaks" not in said
    alone = str(naive_bayes_model(["no", "yes"], attributes[1:], [quiet]))
    assert alone == "naive Bayes: 2 classes by 1 attributes, which say nothing beyond the noise; most are yes"
    exact = str(naive_bayes_model(["no", "yes"], attributes[1:], [np.asarray(quiet)]))
    assert "b: 9 speaks most, for yes" in exact


@pytest.mark.parametrize(
    "values",
    [["x", "y"], [1.0, 2.0], [1.0, float("nan")], range(3), [True, 1.0], ["x", None, 2], [], [np.float64(2), 3]],
)
def test_many_values_are_made_plain_as_each_is(values: list[object]) -> None:
    assert plain_values(values) == tuple(plain(v) for v in values)
    assert list(map(type, plain_values(values))) == [type(plain(v)) for v in values]


def test_places_are_the_same_where_a_column_lists_the_values_as_asked() -> None:
    column = Coded((0.0, 1.0, 2.0), np.array([2, 0, 1, 1]))
    assert positions(column, [0, 1, 2]).tolist() == [2, 0, 1, 1]
    assert positions(column, [1.0, 0.0]).tolist() == [-1, 1, 0, 0]
    assert positions(column, [False, True, 2.0]).tolist() == [2, -1, -1, -1]


def test_a_softmax_regression_has_a_slope_for_a_number_and_a_weight_for_each_other_value() -> None:
    lines = [
        {"class": one, "column": column, "of": of, "value": value}
        for one, own in (("u", (1.0, 0.5, 2.0)), ("v", (0.0, -0.5, 0.0)))
        for (column, of), value in zip((("intercept", ""), ("x", ""), ("a", "q")), own, strict=True)
    ]
    attributes = [{"name": "x", "values": [0, 1, 2]}, {"name": "a", "values": ["p", "q"]}]
    model = softmax_model(["u", "v"], attributes, lines)
    shares = model.probabilities({"x": [0, 2, 1], "a": ["p", "p", "q"]})[:, 0]
    np.testing.assert_allclose(np.log(shares / (1 - shares)), [1.0, 3.0, 4.0])
