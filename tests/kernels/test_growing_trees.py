"""Trees that grow a level at a time, from one leaf to a tree that predicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jostle.kernels import KernelError
from jostle.kernels.classifiers import growing
from jostle.kernels.classifiers.growing import (
    GrowingTree,
    tree_counted,
    tree_drawn,
    tree_end,
    tree_split,
    tree_start,
)
from jostle.kernels.classifiers.treemodel import Trees, tree_model

ATTRIBUTES = [{"name": "a", "values": ["x", "y"]}, {"name": "b", "values": [0, 1, 2]}, {"name": "d", "values": [True]}]


def grown() -> GrowingTree:
    """`a` at the root, `d` at x; y has ended."""
    halves = tree_end(tree_split(tree_start(ATTRIBUTES), [0]), [True, False], [7, 5])
    return tree_split(halves, [1])


def test_a_level_says_what_may_be_asked() -> None:
    fields = grown().jostle_fields
    assert fields["level"] == [{"attributes": ["b"], "branches": [3.0], "cells": 2.0}]
    assert (fields["nodes"], fields["leaves"]) == (4, 2) and grown().as_json() == {"nodes": 4, "leaves": 2}
    assert str(grown()) == "a tree of 4 nodes, 2 of them leaves, that grows"
    assert [node["cells"] for node in tree_split(grown(), [0]).jostle_fields["level"]] == [6.0] * 3
    assert tree_start([]).jostle_fields["level"] == [{"attributes": [], "branches": [], "cells": 1.0}]


def test_the_place_after_the_last_ends_a_leaf() -> None:
    thirds = tree_split(tree_start(ATTRIBUTES), [1])
    some = tree_split(thirds, [2, 1, 2])
    assert [node["attributes"] for node in some.jostle_fields["level"]] == [["a"]]
    assert some.jostle_fields["leaves"] == 3 and tree_split(thirds, [2, 2, 2]).jostle_fields["level"] == []
    assert tree_counted(some, [[1], [2], [3]]).counts.tolist() == [6]


def test_counts_make_it_a_tree_that_predicts() -> None:
    root = tree_counted(grown(), [[1, 2], [3, 4]])
    assert root.attribute == "a" and root.values == ("x", "y") and root.size is None
    x, y = root.children
    assert (y.counts.tolist(), y.size) == ([1, 2], 5) and (x.attribute, x.size) == ("d", 7), "leaves in their order"
    assert x.children[0].counts.tolist() == [3, 4] and root.counts.tolist() == [4, 6]


def test_of_a_drawn_tree_no_shares_are_shown_since_nothing_was_counted() -> None:
    tree = tree_start([{"name": "a", "values": ["x", "y"]}])
    drawn = tree_model(["n", "p"], tree_drawn(tree, ["n", "p"], [0, 0, 0, 1, 0], 2))
    counted = tree_model(["n", "p"], tree_counted(tree_split(tree, [0]), [[1, 3], [3, 1]]))
    for model, ends in ((drawn, ["a?", "    x: p", "    y: n"]),
                        (counted, ["a?  (50 % n)", "    x: p  (75 % p)", "    y: n  (75 % n)"])):  # fmt: skip
        for one in (model, Trees.from_json(model.as_json())):
            assert str(one).splitlines()[1:] == ends


@pytest.mark.parametrize(
    "make",
    [lambda: tree_start([*ATTRIBUTES, ATTRIBUTES[0]]), lambda: tree_end(grown(), [True, True]),
     lambda: tree_split(grown(), [2]), lambda: tree_split(grown(), [0.5]), lambda: tree_split(grown(), [0, 0]),
     lambda: tree_split(grown(), [-1]), lambda: tree_counted(grown(), [1, 2, 3]), lambda: tree_counted(grown(), [])],
)  # fmt: skip
def test_what_does_not_fit_is_refused(make: Any) -> None:
    with pytest.raises(KernelError):
        make()


def test_a_tree_has_so_many_nodes_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "MOST_NODES", 4)
    with pytest.raises(KernelError, match="at most 4 nodes"):
        tree_split(grown(), [0])
    assert np.isnan(grown().sizes).tolist() == [True, False, False, True]
