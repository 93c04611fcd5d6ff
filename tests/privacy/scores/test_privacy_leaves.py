"""A level of a tree is its nodes at once: the same whole numbers, of which each is noised as it would be by itself."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from recorded_noise import Draw
from recording import Recorder

from jostle.diagnostics import Refusal
from jostle.privacy.kernel import exposures
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.rows.folds import LeafFold, PublicTree
from jostle.privacy.scores import splits
from jostle.privacy.scores.cells import BITS
from jostle.records import replace
from jostle.source import Source
from jostle.tools.session import Session

DECLARED = """
use trees
private t = bound("t") described by {a: {"x", "y"}, b: 0..2, d: {1, 2}, c: {"no", "yes"}} protecting UNIT
    budget epsilon 100
atts = [x for x in columns(t) if x.name != "c"]
label = [x for x in columns(t) if x.name == "c"][0]
tree = tree_split(one_leaf(atts), [0])
deep = tree_split(tree, [0, 1])
ended = tree_end(tree, [false, false])
halves = [part for v, part in partition(t, a)]
parts = [u for part in [partition(halves[0], b), partition(halves[1], d)] for v, u in part]
by_nine = lambda t, by, of: entropy(t, @by, @of, most = 9)
"""
LEVEL = """
n = laplace(level_sizes(t, deep)) with epsilon 1
for f in [gini, max_class, by_nine] { s = noisy_max(f(t, tree, label)) with epsilon 1 }
l = laplace(leaf_counts(t, deep, "c")) with epsilon 1
"""
NODES = """
n = [laplace(size(part)) with epsilon 1 for part in parts]
for f in [gini, max_class, by_nine]:
    s = [noisy_max([f(part, o, label) for o in ["b", "d"]]) with epsilon 1 for part in halves]
l = [laplace(histogram(part, c)) with epsilon 1 for part in parts]
"""
PRICED = """
s = noisy_max(max_class(t, tree, label, prices = [[2, 1.4, 0.3], [-3, 0]])) with epsilon 1
s = noisy_max(gini(t, tree, label, prices = [[2, 1.4, 0.3], [-3, 0]])) with epsilon 1
"""
PLAIN = """
s = noisy_max(max_class(t, tree, label)) with epsilon 1
s = noisy_max(gini(t, tree, label)) with epsilon 1
alone = derive(t, one = 1)
for f in [max_class, gini]:
    for part in [alone[a = "x"], alone[a = "y"]]:
        x = noisy_max([f(part, o, label) for o in ["one", "one"]]) with epsilon 1
"""
SOME = np.random.default_rng(5)
ROWS = {
    "a": SOME.choice(np.array(["x", "y", "z", None], dtype=object), 500), "b": SOME.integers(-1, 5, 500) * 1.0,
    "d": SOME.integers(0, 4, 500), "c": SOME.choice(np.array(["no", "yes", "?"], dtype=object), 500),
    "who": SOME.integers(0, 90, 500),
}  # fmt: skip


def drawn(program: str, unit: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Draw], float]:
    noise = Recorder()
    monkeypatch.setattr(exposures, "SecureNoise", lambda: noise)
    charge = Kernel._charge

    def noted(kernel: Kernel, *asked: Any) -> None:
        charge(kernel, *asked)
        noise.charges += [type("Of", (), {"draws": []})()]

    with monkeypatch.context() as patch:
        patch.setattr(Kernel, "_charge", noted)
        session = Session()
        session.bind("t", ROWS)
        session.execute(Source("p.jst", DECLARED.replace("UNIT", unit) + program))
        session.execute(Source("p.jst", "used = spent(t)\n"))
    return [draw for one in noise.charges for draw in one.draws], session.names()["used"]


@pytest.mark.parametrize("unit", ["rows", "rows, public size", "who up to 3 rows", "who up to 3 rows weighted"])
def test_a_level_is_measured_as_its_nodes_would_be(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    together, spent = drawn(LEVEL, unit, monkeypatch)
    apart, same = drawn(NODES, unit, monkeypatch)
    assert spent == pytest.approx(5) and same == pytest.approx(5), "parts count as their largest"
    numbers = [np.concatenate([draw.values.ravel() for draw in draws]) for draws in (together, apart)]
    assert numbers[0].tolist() == numbers[1].tolist() and len(set(numbers[0].tolist())) > 20
    scales = [[draw.scale for draw in draws for _ in draw.values.ravel()] for draws in (together, apart)]
    assert scales[0] == scales[1] and {d.kind for d in together} == {d.kind for d in apart}


@pytest.mark.parametrize("unit", ["rows", "rows, public size"])
def test_prices_are_taken_off_and_no_split_is_one_score_more(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the noise of before. A leaf that may stay as it is has the score of a column of one value."""
    found, plain = drawn(PRICED, unit, monkeypatch)[0], drawn(PLAIN, unit, monkeypatch)[0]
    assert [draw.scale for draw in found] == [draw.scale for draw in plain[:4]]
    scores = [draw.values.ravel().tolist() for draw in plain]
    for at, (step, prices) in enumerate(itertools.product((1, 2**BITS), ([2, 1.4, 0.3], [-3, 0]))):
        stay = scores[4 + at][:1] if len(prices) == 3 else []
        taken = [score - round(price * step) for score, price in zip(scores[at] + stay, prices, strict=True)]
        assert found[at].values.ravel().tolist() == taken and all(taken)


def test_many_leaves_are_read_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = drawn(LEVEL + PRICED, "rows", monkeypatch)[0]
    monkeypatch.setattr(splits, "TOGETHER", 1)
    again = drawn(LEVEL + PRICED, "rows", monkeypatch)[0]
    assert [d.values.tolist() for d in again] == [d.values.tolist() for d in whole]


def test_a_fold_adds_up_over_rows_in_parts() -> None:
    level = np.array([1, 2, 3])
    tree = PublicTree(("a", "b"), (3, 2), np.array([0, -1, -1, -1]), np.array([1, -1, -1, -1]), level)
    rows = np.random.default_rng(1).integers(-1, 2, (300, 3)).astype(np.int8)
    for crossed in ((), (1,), (0, 1)):
        fold = LeafFold(tree, level, 2, crossed)
        parts = [fold(iter([rows[:100]])), fold(iter([rows[100:101], rows[101:]])), fold(iter(()))]
        whole = replace(fold, whole=True)(iter([rows]))
        assert len(whole) == (len(crossed) + 1 if crossed else 1)
        assert np.array_equal(whole[-1], LeafFold(tree, level, 2)(iter([rows]))[0])
        for together, *several in zip(fold(iter([rows])), *parts, strict=True):
            assert (
                np.array_equal(together, sum(several))
                and together.sum()
                == (
                    (rows[:, 0] >= 0) & (rows[:, 2] >= 0) & (not crossed or together.shape[1] == 3 or rows[:, 1] >= 0)
                ).sum()
            )


@pytest.mark.parametrize(
    "asks, first, level",
    [([0, -1], [1, -1], [1]), ([-1], [-1], [1]), ([0, -1, -1], [0, -1, -1], [1]), ([1, -1], [1, -1], []),
     ([0, 0, -1, -1], [1, 2, -1, -1], [3]), ([0, -1, -1], [1, -1, -1], [2, 1])],
)  # fmt: skip
def test_what_is_no_tree_is_no_public_tree(asks: list[int], first: list[int], level: list[int]) -> None:
    """A child that is not there, or stands before its parent, or has two; a level that is no list of leaves."""
    with pytest.raises(ValueError, match="no tree of tests"):
        PublicTree(("a",), (2,), np.array(asks), np.array(first), np.array(level, dtype=np.int64))


REFUSED = {
    'x = noisy_max(gini(t, ended, c)) with epsilon 1': "nothing can be asked",
    'x = noisy_max(gini(t, tree_end(tree, [false, false]), c)) with epsilon 1': "cannot stand in an expression on rows",
    'x = laplace(level_sizes(t, tree_end(tree, [false, false]))) with epsilon 1': "0 counts of leaves",
    'x = noisy_max(gini(t, tree, c, prices = [[1, 1]])) with epsilon 1': "a list for each leaf of the level",
    'x = noisy_max(gini(t, tree, c, prices = [[1], [1, 1]])) with epsilon 1': "for each of its splits",
    'x = noisy_max(gini(t, tree, c, prices = [[1, 2], [1, 2^41]])) with epsilon 1': "for each of its splits",
    'x = noisy_max(gini(t, tree, c, prices = 3)) with epsilon 1': "a list for each leaf of the level",
    'x = noisy_max(gini(t, tree, c, prices = [[1, size(t)], [1, 1]])) with epsilon 1': "cannot be a price",
    'x = noisy_max([gini(t, a, c, prices = [[1]])]) with epsilon 1': "by a column have no prices",
    'x = laplace(gini(t, tree, c)) with epsilon 1': "can only be selected from",
    'x = laplace(level_sizes(pick(t, b, c), tree)) with epsilon 1': "`a` is no column",
    'x = laplace(level_sizes(derive(t, b = b / 2), tree)) with epsilon 1': "as many values",
    'x = laplace(leaf_counts(t, tree, "z")) with epsilon 1': "class as a column",
    'x = laplace(leaf_counts(t, 3, "c")) with epsilon 1': "a table and a tree that grows, not",
    'x = laplace(level_sizes(histogram(t, a), tree)) with epsilon 1': "a table and a tree that grows, not",
    'x = laplace(level_sizes(t, t)) with epsilon 1': "no tree",
}  # fmt: skip


@pytest.mark.parametrize("line", REFUSED)
def test_what_a_level_cannot_be_is_refused_before_the_charge(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refusal, match=REFUSED[line]):
        drawn(line.replace("x = ", "assert spent(t) == 0\nx = ") + "\n", "rows", monkeypatch)
