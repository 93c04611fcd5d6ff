"""Blends of a tree and naive Bayes: what they say is the product of what their parts say, and reads back from JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

from jostle.kernels import KernelError
from jostle.kernels.classifiers.fits import branched_model, linear_model, majority_model, naive_bayes_model
from jostle.kernels.classifiers.shrink import Blended, blended_model, classifier_from_json
from jostle.kernels.classifiers.treemodel import tree_leaf, tree_model, tree_node

CLASSES = ["no", "yes"]
TABLE = np.array([[30.0, 10.0, 5.0], [5.0, 10.0, 40.0]])
BAYES = naive_bayes_model(CLASSES, [{"name": "b", "values": ["u", "v", "w"]}], [TABLE])
TREE = tree_model(CLASSES, tree_node("a", ["p", "q"], [tree_leaf([8, 2]), tree_leaf([0, 10])]))
ROWS = {"a": ["p", "p", "q", "p", None], "b": ["u", "w", "u", None, "v"]}


@pytest.mark.parametrize("weights", [(1, 0.15), (0.5, 0.5), (0, 1)])
def test_its_probabilities_are_the_product_of_its_parts(weights: tuple[float, float]) -> None:
    tree, bayes = np.maximum(TREE.probabilities(ROWS), 1e-6), BAYES.probabilities(ROWS)
    product = tree ** weights[0] * bayes ** weights[1]
    shares = blended_model([TREE, BAYES], weights).probabilities(ROWS)
    np.testing.assert_allclose(shares, product / product.sum(axis=1, keepdims=True), atol=1e-12)


def test_naive_bayes_in_leaves_is_blended_too() -> None:
    other = naive_bayes_model(CLASSES, [{"name": "b", "values": ["u", "v", "w"]}], [TABLE[::-1]])
    leaves = branched_model({"name": "a", "values": ["p", "q"]}, [BAYES, other])
    model = blended_model([TREE, leaves], [0.4, 1])
    product = np.maximum(TREE.probabilities(ROWS), 1e-6) ** 0.4 * leaves.probabilities(ROWS)
    np.testing.assert_allclose(model.probabilities(ROWS), product / product.sum(axis=1, keepdims=True), atol=1e-12)
    again = classifier_from_json(json.loads(json.dumps(model.as_json())))
    np.testing.assert_allclose(again.probabilities(ROWS), model.probabilities(ROWS), atol=1e-6)


def test_a_blend_in_a_blend_is_one_of_all_their_parts() -> None:
    """A blend of a blend was refused."""
    within = blended_model([TREE, BAYES], [0.5, 1])
    model = blended_model([within, BAYES], [0.6, 0.25])
    assert model.parts == (TREE, BAYES, BAYES) and model.weights == (0.3, 0.6, 0.25)
    product = within.probabilities(ROWS) ** 0.6 * BAYES.probabilities(ROWS) ** 0.25
    np.testing.assert_allclose(model.probabilities(ROWS), product / product.sum(axis=1, keepdims=True), atol=1e-12)


def test_a_leaf_that_decides_is_ranked_within_by_the_other() -> None:
    shares = blended_model([TREE, BAYES], [1, 0.15]).probabilities({"a": ["p"] * 3, "b": ["u", "v", "w"]})[:, 1]
    assert (np.diff(shares) > 0).all() and shares.max() < 0.5


def test_it_reads_back_and_says_what_it_is_of() -> None:
    model = blended_model([TREE, BAYES], [1, 0.5])
    again = classifier_from_json(json.loads(json.dumps(model.as_json())))
    np.testing.assert_allclose(again.probabilities(ROWS), model.probabilities(ROWS), atol=1e-6)
    assert set(model.attributes) == {"a", "b"}
    lines = str(model).splitlines()
    assert lines[0] == "a blend of 2 classifiers"
    assert lines[1].startswith("    weight 1: a tree of depth 1")
    assert any(line.startswith("    weight 0.5: naive Bayes") for line in lines)


@pytest.mark.parametrize(("models", "weights"), [
    ([], []), ([TREE], [1, 2]), ([TREE, BAYES], [1, -1]), ([TREE, BAYES], [1, float("nan")]),
    ([TREE, majority_model(["no", "maybe"], [1, 2])], [1, 1]),
    ([linear_model(CLASSES, [{"name": "b", "values": ["u", "v", "w"]}], [TABLE])], [1]),
    ([tree_model(CLASSES, [tree_leaf([1, 2]), tree_leaf([2, 1])])], [1]),
])  # fmt: skip
def test_what_it_is_not_of_is_refused(models: list[object], weights: list[float]) -> None:
    with pytest.raises(KernelError):
        Blended(tuple(models), tuple(weights))  # type: ignore[arg-type]
