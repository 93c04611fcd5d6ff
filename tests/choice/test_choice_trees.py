"""The splitter against brute force, and trees as data."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from msgspec import convert, to_builtins

from jostle.choice.models import Tree, grow, rows


def numbers(shape: tuple[int, ...], start: int) -> np.ndarray:
    rng = np.random.default_rng(start)
    return np.round(rng.normal(size=shape), 1)


def squared(y: np.ndarray) -> float:
    return float(((y - y.mean(axis=0)) ** 2).sum())


def lost(y: np.ndarray) -> float:
    return float((y.max(axis=1, keepdims=True) - y).sum(axis=0).min())


def spread(y: np.ndarray) -> float:
    return squared(y.max(axis=1, keepdims=True) - y)


def test_two_splits_that_only_together_change_the_best_are_found_by_losses() -> None:
    """Where both numbers are above 0 the second option is better by 2; beside that it is worse by 1."""
    x = np.array([[a, b] for a in (-1.0, 1.0) for b in (-1.0, 1.0) for _ in range(10)])
    y = np.stack([np.zeros(40), np.where((x > 0).all(axis=1), 2.0, -3.0)], axis=1)
    for by, right in (("regret", 0), ("losses", 10)):
        tree = grow(x, y, 2, 5, by)
        assert (rows(tree, x)[:, 1] > rows(tree, x)[:, 0]).sum() == right


@pytest.mark.parametrize("by", ["variance", "regret", "losses"])
@pytest.mark.parametrize("start", range(12))
def test_the_first_split_is_the_best_of_all(by: str, start: int) -> None:
    x, y = numbers((30, 3), start), numbers((30, 1 if by == "variance" else 3), 100 + start)
    cost, least = {"variance": squared, "regret": lost, "losses": spread}[by], 4
    best = cost(y)
    for f, t in itertools.product(range(3), np.unique(x)):
        left = x[:, f] <= t
        if left.sum() >= least and (~left).sum() >= least:
            best = min(best, cost(y[left]) + cost(y[~left]))
    tree = grow(x, y, 1, least, by)
    parts = [y] if tree.feature[0] < 0 else [y[x[:, tree.feature[0]] <= tree.threshold[0]],
                                            y[x[:, tree.feature[0]] > tree.threshold[0]]]  # fmt: skip
    slack = (0.01 if by == "regret" else 1e-4) * cost(y)
    assert sum(map(cost, parts)) <= best + slack + 1e-9
    assert min(map(len, parts)) >= least


def test_depth_leaf_size_and_means_hold_everywhere() -> None:
    x, y = numbers((200, 2), 1), numbers((200, 1), 2)
    tree = grow(x, y, 3, 7)
    leaves = [tree.leaf(row) for row in x.tolist()]
    for leaf in set(leaves):
        mine = y[np.array(leaves) == leaf]
        assert len(mine) == tree.n[leaf] >= 7
        assert tree.value[leaf] == pytest.approx(mine.mean(axis=0))
        assert tree.spread[leaf] == pytest.approx(mine.std(axis=0))
    assert max(len(tree.path(row, "ab")) for row in x.tolist()) == 3
    assert rows(tree, x)[:, 0].tolist() == [tree.value[leaf][0] for leaf in leaves]


def test_it_agrees_with_scikit_learn() -> None:
    sklearn_tree = pytest.importorskip("sklearn.tree")
    rng = np.random.default_rng(3)
    x = rng.normal(size=(300, 4))
    y = np.sin(2 * x[:, 0]) + (x[:, 1] > 0.3) + 0.1 * rng.normal(size=300)
    theirs = sklearn_tree.DecisionTreeRegressor(max_depth=3, min_samples_leaf=5, random_state=0).fit(x, y)
    assert rows(grow(x, y[:, None], 3, 5), x)[:, 0] == pytest.approx(theirs.predict(x))


def test_equal_values_are_never_split_and_nothing_gained_is_no_split() -> None:
    assert grow(np.ones((10, 1)), np.arange(10.0)[:, None], 3, 1).feature == (-1,)
    assert grow(np.arange(10.0)[:, None], np.ones((10, 1)), 3, 1).feature == (-1,)
    assert grow(np.zeros((10, 0)), np.arange(10.0)[:, None], 3, 1).feature == (-1,)
    near = np.array([[1.0], [np.nextafter(1.0, 2.0)]])
    assert rows(grow(near, np.array([[0.0], [1.0]]), 1, 1), near).tolist() == [[0.0], [1.0]]
    far = np.array([[-1e300], [1e300]])
    assert grow(far, np.array([[0.0], [1.0]]), 1, 1).threshold[0] == 0.0


def test_a_tree_is_json_and_text() -> None:
    x, y = np.arange(8.0)[:, None], np.array([0.0] * 4 + [1.0] * 2 + [5.0] * 2)[:, None]
    tree = grow(x, y, 2, 1)
    assert convert(json.loads(json.dumps(to_builtins(tree))), Tree) == tree
    assert tree.lines(["n"], lambda at: f"{tree.value[at][0]:g} ({tree.n[at]})") == [
        "n <= 5.5",
        "    n <= 3.5: 0 (4)",
        "    n > 3.5: 1 (2)",
        "n > 5.5: 5 (2)",
    ]
