"""Scores of all leaves of a public tree at once: how many rows each has, of each class, and how well they would split.

Where a row ends in a public tree follows from that row alone (`privacy.rows.leaves`), and it is at one leaf or at none.
So leaves are parts of a partition under public keys, and one vector has the numbers of all:

* `leaf_counts`, `level_sizes`: the rows of each leaf, of each class or all. A row moves one of the numbers by 1.
* `level_splits`: for each leaf of the level a group of scores of a split (`splits`), by each column not asked on the
  way there. A row moves the scores of one group, each as a split of that leaf's rows by itself. Public
  prices may be taken off, and a group may end with the score of no split, which is that of a column of one value.

k changed rows move numbers that add up to k at most, and cost each group what of them is in it: what all leaves
cost together is no more than one of them that has all k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostle.diagnostics import refuse
from jostle.engine.groups import CELLS
from jostle.integers import fixed_width
from jostle.plan.keys import holds
from jostle.plan.plan import WEIGHT_BITS, Column, Count, Filter, Key, Plan, Summands
from jostle.privacy.kernel.handles import Table
from jostle.privacy.rows.leaves import LeafFold, PublicTree
from jostle.privacy.scores.rule import Rule, Score, Scores
from jostle.privacy.scores.splits import SPLITS, Split, key_of_column, moved_by, table_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.privacy.reading.public_data import PublicData
    from jostle.privacy.reading.reader import Reader

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

DEAREST = 2**40
TOGETHER = 2**24  # counts of a level that are in memory at once: where there are more, rows are read more than once


@dataclass(frozen=True, eq=False)
class LeafCounts(Rule, Summands):
    """Rows at leaves, of each class; where rows have weights, their weights."""

    def exact(self, reader: Reader, score: Score) -> list[int]:
        tree, keys, label, nodes = score.arguments
        table = table_of(score)
        if table.weighted or not (keys or label):
            counts = _weights(reader, table, tree, keys, label, nodes)
        else:
            fold = LeafFold(tree, nodes, len(label[0].values) if label else 0)
            counts = reader.coded(table.plan, (*keys, *label), fold)[0].ravel().tolist()
        return counts


@dataclass(frozen=True, eq=False)
class LevelSplits(Rule, Summands):
    """Scores of splitting each leaf of a level by each column that may be asked there, as `split` scores one."""

    split: Split

    def exact(self, reader: Reader, score: Score) -> list[int]:
        import numpy as np

        tree, keys, bound, prices = score.arguments
        unasked, classes = tree.unasked, len(keys[-1].values)
        stays = np.array(score.groups if isinstance(score, Scores) else ()) > unasked.sum(axis=1)
        crossed = tuple(np.flatnonzero(unasked.any(axis=0)).tolist())
        step = max(1, TOGETHER // sum((tree.branches[column] + 1) * classes for column in crossed))
        values = np.zeros((len(unasked), unasked.shape[1] + 1), dtype=np.int64)
        for start in range(0, len(tree.level), step):
            some = slice(start, start + step)
            fold = LeafFold(tree, tree.level[some], classes, crossed, bool(stays.any()))
            tables = reader.coded(table_of(score).plan, keys, fold)
            for column, counts in zip((*crossed, -1), tables, strict=False):
                split = fixed_width(counts)
                values[some, column] = self.split.value(split[:, None] if column < 0 else split, bound)
        scores: list[int] = (values[np.column_stack([unasked, stays])] - prices).tolist()
        return scores


LEAF_COUNTS, LEVEL_SIZES = LeafCounts("leaf_counts", True), LeafCounts("level_sizes", True)
LEVEL_SPLITS = {name: LevelSplits(f"{name} of a level", False, split) for name, split in SPLITS.items()}


def leaf_counts(table: Table, tree: PublicTree, label: str) -> Scores:
    """How many rows of each class are at each leaf of a tree, one leaf after the other."""
    classes = key_of_column(Column(label), table)
    return _counts(LEAF_COUNTS, table, tree, (classes,), tree.leaves)


def level_sizes(table: Table, tree: PublicTree) -> Scores:
    """How many rows are at each leaf of the level of a tree."""
    return _counts(LEVEL_SIZES, table, tree, (), tree.level)


def _counts(rule: LeafCounts, table: Table, tree: PublicTree, label: tuple[Key, ...], nodes: Ints) -> Scores:
    length = len(nodes) * (len(label[0].values) if label else 1)
    if not 0 < length <= CELLS:
        raise refuse("ValueError", f"{length:,} counts of leaves are measured at once", help=f"from 1 to {CELLS:,}")
    bits = WEIGHT_BITS if table.weighted else 0
    arguments = (tree, _keys(table, tree), label, nodes)
    return Scores(table.exposures, rule, table, 1 << bits, True, bits, arguments, length=length, groups=(1,) * length)


def level_splits(
    data: PublicData, of: str, table: Table, tree: PublicTree, label: Key, most: int | None,
    prices: Sequence[Floats] | None = None,
) -> Scores:  # fmt: skip
    """Of each leaf of the level a group of scores `of` splits, by each column not asked on the way there, in order.

    `prices`, for each leaf of a number for each of them, are taken off, rounded to the grid of the scores. A leaf with
    one price more may stay as it is: its group has one score more, the last.
    """
    groups = tuple(tree.unasked.sum(axis=1).tolist())
    if not groups or not all(groups):
        raise refuse(
            "ValueError", "nothing can be asked at a leaf of this tree's level, or the level has no leaf",
            help="end such leaves by `tree_end(tree, …)`, and stop where `len(tree.level)` is 0",
        )  # fmt: skip
    bits, sensitivity, falls, bound = moved_by(data, of, table, most)
    taken: Ints | int = 0
    if prices is not None:
        groups, taken = _priced(groups, prices, bits)
    arguments = (tree, (*_keys(table, tree), label), bound, taken)
    return Scores(
        table.exposures, LEVEL_SPLITS[of], table, sensitivity, True, bits, arguments, falls, sum(groups), groups
    )  # fmt: skip


def _priced(groups: tuple[int, ...], prices: Sequence[Floats], bits: int) -> tuple[tuple[int, ...], Ints]:
    """How many scores each group has, and what is taken off each, in steps of 2^-bits."""
    import numpy as np

    every = np.concatenate([np.zeros(0), *prices])
    longer = [len(some) - many for many, some in zip(groups, prices, strict=False)]
    if len(prices) != len(groups) or not {0, 1}.issuperset(longer) or not np.all(np.abs(every) <= DEAREST):
        raise refuse(
            "ValueError", "prices are a list for each leaf of the level, of a number for each of its splits",
            help=f"as many as its `attributes`, or one more, for no split; none beyond {DEAREST:,}",
        )  # fmt: skip
    return tuple(map(len, prices)), fixed_width(np.rint(np.ldexp(every, bits)))


def _keys(table: Table, tree: PublicTree) -> tuple[Key, ...]:
    """The columns of a tree over their public values, which are those that its children stand for."""
    keys = []
    for name, branches in zip(tree.names, tree.branches, strict=True):
        key = key_of_column(Column(name), table) if name in table.domains else None
        if key is None or len(key.values) != branches:
            raise refuse("ValueError", f"`{name}` is no column of this table with as many values as the tree has")
        keys.append(key)
    return tuple(keys)


def _weights(
    reader: Reader, table: Table, tree: PublicTree, keys: tuple[Key, ...], label: tuple[Key, ...], nodes: Ints
) -> list[int]:  # fmt: skip
    """The counts of leaves as parts of parts, each asked for by itself."""
    plans: dict[int, Plan] = {0: table.plan}
    for node in (tree.asks >= 0).nonzero()[0].tolist():
        key = keys[tree.asks[node]]
        for place, value in enumerate(key.values):
            plans[int(tree.first[node]) + place] = Filter(plans[node], holds(key, value))
    term = Count(weighted=table.weighted)
    return [int(n) for node in nodes.tolist() for n in reader.group(plans[node], label, (term,))[0].ravel()]
