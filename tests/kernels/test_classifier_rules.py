"""Rules of classifiers, which run over private rows: of one row each, to the last bit, and what the model would say."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.kernels.classifiers.codes import Coded
from jostle.kernels.classifiers.fits import (
    binned_model,
    branched_model,
    linear_model,
    majority_model,
    naive_bayes_model,
)
from jostle.kernels.classifiers.models import Classifier
from jostle.kernels.classifiers.rules import MOST, UNIT, decided, scores, whole
from jostle.kernels.classifiers.shrink import shrunk_attribute_model, shrunk_bayes_model
from jostle.kernels.classifiers.treemodel import tree_leaf, tree_model, tree_node

SIZES = (3, 4, 2)
NAMES = ("a", "b", "c")
ATTRIBUTES = [{"name": n, "values": [float(v) for v in range(s)]} for n, s in zip(NAMES, SIZES, strict=True)]
CLASSES = ["no", "yes", "maybe"]


def made(seed: int) -> dict[str, Classifier]:
    """A model of each kind from random tables, so that ties are as likely as anything."""
    rng = np.random.default_rng(seed)
    tables = [rng.integers(-1, 4, (3, s)).astype(float) for s in SIZES]
    pairs = [rng.integers(-1, 4, (SIZES[i], SIZES[j])).astype(float) for i, j in ((0, 1), (0, 2), (1, 2))]
    bayes = naive_bayes_model(CLASSES, ATTRIBUTES, tables)

    def grown(left: list[int]) -> object:
        if not left:
            return tree_leaf(rng.integers(-2, 4, 3).astype(float))
        name, size = NAMES[left[0]], SIZES[left[0]]
        return tree_node(name, [float(v) for v in range(size)], [grown(left[1:]) for _ in range(size)])

    roots = [grown([0, 1]), grown([2, 0])]
    return {
        "majority": majority_model(CLASSES, rng.integers(0, 3, 3)),
        "naive bayes": bayes,
        "shrunk": shrunk_bayes_model(CLASSES, ATTRIBUTES, tables),
        "one attribute": shrunk_attribute_model(CLASSES, ATTRIBUTES[1], rng.integers(0, 9, 3), tables[1]),
        "linear": linear_model(CLASSES, ATTRIBUTES, [*tables, *pairs]),
        "branched": branched_model(ATTRIBUTES[0], [bayes, majority_model(CLASSES, [1, 1, 0]), bayes]),
        "binned": binned_model(bayes, {"b": [0.5, 1.5, 2.5]}),
        **{
            f"trees by {answer}, {votes}": tree_model(CLASSES, roots, answer, 1.0, votes)
            for answer in ("leaf", "margin", "confident")
            for votes in ("counts", "votes", "shares")
        },
    }


KINDS = tuple(made(0))


def rows(seed: int, many: int = 300, missing: bool = True) -> dict[str, Coded]:
    rng = np.random.default_rng(seed)
    return {
        name: Coded((*(float(v) for v in range(size)), None), rng.integers(0, size + missing, many))
        for name, size in zip(NAMES, SIZES, strict=True)
    }


def some(columns: dict[str, Coded], which: np.ndarray) -> dict[str, Coded]:
    return {name: Coded(c.values, c.codes[which]) for name, c in columns.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_rows_scores_are_its_own(kind: str) -> None:
    """In any batch, at any place, beside any other rows: equal whole numbers."""
    for seed in range(5):
        rule, columns = made(seed)[kind].rule(), rows(seed)
        together = scores(rule, columns, 300)
        assert together.dtype == np.int64
        order = np.random.default_rng(seed).permutation(300)
        np.testing.assert_array_equal(scores(rule, some(columns, order), 300), together[order])
        for at in (0, 7, 150, 299):
            alone = scores(rule, some(columns, np.array([at])), 1)
            np.testing.assert_array_equal(alone[0], together[at])
        half = np.arange(0, 300, 2)
        np.testing.assert_array_equal(scores(rule, some(columns, half), 150), together[half])


@pytest.mark.parametrize("kind", KINDS)
def test_it_decides_as_the_model_does(kind: str) -> None:
    """But where two classes are as probable, to a millionth; and where a branch has no answer, which models mix."""
    seen = 0
    for seed in range(20):
        model, columns = made(seed)[kind], rows(seed, missing=kind != "branched")
        likely = np.sort(model.probabilities(columns), axis=1)
        clear = likely[:, -1] - likely[:, -2] > 1e-5
        np.testing.assert_array_equal(decided(model.rule(), columns, 300)[clear], model.predict(columns)[clear])
        seen += int(clear.sum())
    assert seen > 1000


def test_scores_become_whole_numbers_whatever_they_are() -> None:
    found = whole(np.array([0.5, -1.0, np.nan, np.inf, -np.inf, 1e300]))
    assert found.tolist() == [UNIT // 2, -UNIT, 0, MOST * UNIT, -MOST * UNIT, MOST * UNIT]


def test_a_branch_without_an_answer_is_answered_by_all() -> None:
    no, yes = (majority_model(["no", "yes"], c) for c in ([5, 1], [1, 5]))
    rule = branched_model({"name": "a", "values": ["x", "y", "z"]}, [no, yes, yes]).rule()
    columns = {"a": Coded(("x", "y", None), np.array([0, 1, 2]))}
    assert decided(rule, columns, 3).tolist() == [0, 1, 1]
    assert decided(rule, {}, 2).tolist() == [1, 1]
