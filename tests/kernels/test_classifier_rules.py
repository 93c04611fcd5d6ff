"""Scores of classifiers over private rows: row programs that say what the model would."""

from __future__ import annotations

import itertools
from typing import Any

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
from jostle.kernels.classifiers.models import AdditiveClassifier, Classifier
from jostle.kernels.classifiers.shrink import blended_model, shrunk_bayes_model
from jostle.kernels.classifiers.treemodel import tree_leaf, tree_model, tree_node
from jostle.kernels.rowprograms.decisions import Cell, sums
from jostle.privacy.rows.expressions import columns as input_columns
from jostle.privacy.rows.expressions import first_largest
from jostle.privacy.rows.program import program

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
        "blended": blended_model([tree_model(CLASSES, [grown([0, 1])]), bayes], [0.5, 1]),
        "blended in leaves": blended_model(
            [
                branched_model(ATTRIBUTES[0], [bayes, majority_model(CLASSES, [1, 1, 0]), bayes]),
                tree_model(CLASSES, [grown([0, 1])]),
            ],
            [1, 0.35],
        ),
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


def decided(model: Classifier, columns: dict[str, Coded], many: int) -> np.ndarray:
    """The class that the model's row program decides on, for each row; the last value of a column is none."""
    places = {name: input_columns((), -1, len(c.values) - 2) for name, c in columns.items()}
    cells = {name: Cell(c.values[:-1], places[name]) for name, c in columns.items()}
    run = program(list(places.values()), first_largest(model.scores(cells)))
    codes = [np.where(c.codes == len(c.values) - 1, -1, c.codes) for c in columns.values()]
    (classes,) = run(*codes) if codes else run(np.zeros(many))
    return classes.astype(int)


@pytest.mark.parametrize("kind", KINDS)
def test_it_decides_as_the_model_does(kind: str) -> None:
    """But where two classes are as probable, to a millionth; and where a branch has no answer, which models mix."""
    seen = 0
    for seed in range(20):
        model, columns = made(seed)[kind], rows(seed, missing=kind not in ("branched", "blended in leaves"))
        likely = np.sort(model.probabilities(columns), axis=1)
        clear = likely[:, -1] - likely[:, -2] > 1e-5
        np.testing.assert_array_equal(decided(model, columns, 300)[clear], model.places(columns)[clear])
        seen += int(clear.sum())
    assert seen > 1000


def test_scores_become_whole_numbers_whatever_they_are() -> None:
    total = sums(np.array([0.5, -1.0, np.nan, np.inf, -np.inf, 1e300]), [])
    (scores,) = program([], total)()
    assert (scores[:, 0] / scores[3, 0] * 2.0**32).tolist() == [0.5, -1.0, 0.0, 2.0**32, -(2.0**32), 2.0**32]


def test_a_branch_without_an_answer_is_answered_by_all() -> None:
    no, yes = (majority_model(["no", "yes"], c) for c in ([5, 1], [1, 5]))
    model = branched_model({"name": "a", "values": ["x", "y", "z"]}, [no, yes, yes])
    columns = {"a": Coded(("x", "y", None), np.array([0, 1, 2]))}
    assert decided(model, columns, 3).tolist() == [0, 1, 1]
    (mean,) = program([], model.scores({}))()
    assert mean[0, 0] - mean[1, 0] == pytest.approx(2.0**20 * float((no.base + 2 * yes.base) @ [1, -1]) / 3, abs=2)
    # A score without bounds stays where it is.
    wild = AdditiveClassifier("wild", ("no", "yes"), np.array([-np.inf, np.nan]), {})
    kept = branched_model({"name": "a", "values": ["x", "y", "z"]}, [no, yes, wild])
    assert decided(kept, {"a": Coded(("x", "y", "z", None), np.arange(3))}, 3).tolist() == [0, 1, 1]
    # Of branches that are no sums, whose scores have no scale in common, the votes count.
    leaf = tree_model(["no", "yes"], tree_leaf([1.0, 5.0]))
    other = branched_model({"name": "a", "values": ["x", "y", "z"]}, [no, yes, leaf])
    assert decided(other, columns, 3).tolist() == [0, 1, 1]
    (votes,) = program([], other.scores({}))()
    assert votes[:, 0].tolist() == [1, 2]


def test_branches_within_branches_are_read_at_their_ends() -> None:
    """Three by two branches of their own attributes and sums; a missing cell at either level has the mean of what is
    below."""
    draw = np.random.default_rng(5)

    def leaf() -> Any:
        attribute = {"name": "c", "values": ["k", "l", "m"]}
        return naive_bayes_model(CLASSES, [attribute], [draw.integers(1, 50, (len(CLASSES), 3))])

    inner = [branched_model({"name": "b", "values": ["p", "q"]}, [leaf(), leaf()]) for _ in range(3)]
    model = branched_model({"name": "a", "values": ["x", "y", "z"]}, inner)
    places = np.array(list(itertools.product(range(-1, 3), range(-1, 2), range(-1, 3)))).T
    values = {"a": ("x", "y", "z"), "b": ("p", "q"), "c": ("k", "l", "m")}
    codes = [np.where(c < 0, len(v), c) for v, c in zip(values.values(), places, strict=True)]
    columns = {n: Coded((*v, None), c) for (n, v), c in zip(values.items(), codes, strict=True)}

    def score(one: Any, a: int, b: int, c: int) -> Any:
        if isinstance(one, AdditiveClassifier):
            return one.base + (one.weights["c"][1][:, c] if c >= 0 else 0.0)
        place = {"a": a, "b": b}[one.attribute]
        if place >= 0:
            return score(one.branches[place], a, b, c)
        below = [one] if one.attribute == "b" else one.branches
        return np.mean([score(end, a, b, c) for branch in below for end in branch.branches], axis=0)

    expected = [int(np.argmax(score(model, *row))) for row in places.T.tolist()]
    assert decided(model, columns, places.shape[1]).tolist() == expected
