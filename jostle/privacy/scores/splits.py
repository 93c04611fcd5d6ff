"""Scores of splits: how well a column distinguishes the classes of a table's rows. Larger is better.

For an added row `max_class` rises by at most 1, `gini` falls by less than 2, and `entropy` by at most g(N), where N is
a public bound on rows that need not be correct (`steepest`). Rounding to the grid of 2^-BITS adds at most 5 steps.
Scores that fall must not be mixed with scores that rise (`Score.falls`).

A row is at one leaf of a public tree, or at none, as a function of that row alone (`privacy.rows.folds`). So the
numbers of all leaves are one vector: `leaf_counts` and `level_sizes` (a row changes one number by 1), `level_splits` (a
row changes the scores of one group), and `subtrees`, from which `drawn_tree` draws a tree of at most two tests (a row
adds 1 or 0 to the score of a tree). The arguments are in docs/privacy/splits.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jostle.diagnostics import refuse
from jostle.engine.base import CELLS
from jostle.integers import fixed_width
from jostle.lazy import Floats, Ints, np
from jostle.plan.plan import WEIGHT_BITS, Column, Count, Filter, Key, Plan, RowExpr, Scan, Summands, rows_below
from jostle.plan.schemas import MOST_KEYS, holds, open_keys
from jostle.privacy.kernel.handles import Table
from jostle.privacy.reading.public_data import PublicData
from jostle.privacy.reading.vault import Reader
from jostle.privacy.rows.folds import Folds, LeafFold, PublicTree
from jostle.privacy.scores import Rule, Score, Scores
from jostle.privacy.scores.cells import BITS, table_of

EXACT_SQUARES = 2**26  # up to this number of rows, squares on the grid fit 64 bits
MOST = 2**31  # the largest public bound on rows: below it x·log₂x is exact to a small part of a step


@dataclass(frozen=True, eq=False)
class Split(Rule):
    """`value` maps counts (…, values, classes) and a public N to scores (…), in steps of the grid."""

    value: Callable[[Ints, int], Ints]

    def exact_each(self, reader: Reader, scores: Sequence[Score]) -> list[list[int]]:
        """The scores. Splits of one table are counted in one pass over its rows, without those that are cached."""
        requests = [(self.name, table_of(one).plan, *one.arguments) for one in scores]
        splits, values = reader.split_scores, dict[int, int]()
        together: dict[tuple[int, Key], list[int]] = {}
        for i, one in enumerate(scores):
            if (score := splits.get(requests[i])) is not None:
                values[i] = score
            else:
                together.setdefault((id(one.base), one.arguments[1]), []).append(i)
        for (_, classes), places in together.items():
            keys = [scores[i].arguments[0] for i in places]
            tables = reader.answers.crossed(table_of(scores[places[0]]).plan, keys, classes)
            for i, counts in zip(places, tables, strict=True):
                values[i] = splits.put(requests[i], int(self.value(counts, scores[i].arguments[2])))
        return [[values[i]] for i in range(len(scores))]


def split_score(
    data: PublicData, of: str, table: Table, by: tuple[str, RowExpr], label: tuple[str, RowExpr], most: int | None
) -> Score:
    """The score `of` splitting a table by an expression with public values, for the classes of the expression `label`.

    `most` is the public N of `entropy`. By default it is the bound of the source (`at most N rows`), and refused
    without one.
    """
    key, classes = (split_key(name, expr, table) for name, expr in (by, label))
    if (len(key.values) + 1) * (len(classes.values) + 1) > MOST_KEYS:
        raise refuse("ValueError", "this split has too many values to count", help="group them: `age / 10`")
    bits, sensitivity, falls, bound = moved_by(data, of, table, most)
    return Score(table.exposures, SPLITS[of], table, sensitivity, True, bits, (key, classes, bound), falls)


def moved_by(data: PublicData, of: str, table: Table, most: int | None) -> tuple[int, int, bool, int]:
    """The bits of the grid of the score `of`, its sensitivity, whether it falls, and the public N."""
    if of == "max_class":
        return 0, 1, False, 0
    if of == "gini":
        return BITS, 2 ** (BITS + 1) + 2, True, 0
    bound = most if most is not None else _bound(data, table)
    return BITS, steepest(bound) + 5, True, bound


def split_key(name: str, expr: RowExpr, table: Table) -> Key:
    """The key of an expression over its public values."""
    if isinstance(expr, Column):
        return key_of_column(expr, table)
    key = table.key_of(expr, None, MOST_KEYS)
    if key is None:
        raise open_keys(name)
    return key


def key_of_column(column: Column, table: Table) -> Key:
    """The key of a bare column over its public values."""
    key = table.key_of(column, None, MOST_KEYS) if column.name in table.domains else None
    if key is None:
        raise open_keys(column.name)
    return key


def promised_rows(table: Table) -> int | None:
    """The bound of the source (`at most N rows`), if each row of the table comes from one of its rows; else None."""
    units = [e.unit for e in table.exposures]
    return units[0].at_most if isinstance(rows_below(table.plan), Scan) and len(units) == 1 else None


def _bound(data: PublicData, table: Table) -> int:
    """A public bound on the rows of a table."""
    promised, plan = promised_rows(table), rows_below(table.plan)
    if promised is not None:
        return min(promised, MOST)
    if isinstance(plan, Scan) and all(e.unit.public_size for e in table.exposures):
        rows = data.rows_of_scan(table, plan)
        return max(1, min(rows, MOST))
    raise refuse(
        "UnboundedSum", "the entropy of a table has no known sensitivity without a public bound on its rows",
        help="declare `protecting rows, at most 50000 rows`, or give the bound here: `entropy(D, a, c, most = 50000)`; "
        "`gini` and `max_class` need none",
    )  # fmt: skip


def steepest(most: int) -> int:
    """g(N), the slope of h from N on, in steps of the grid, rounded up."""
    if most <= 1:
        return 0
    slope = most * math.log2(most) - (most - 1) * math.log2(most - 1)
    return math.ceil(slope * 2.0**BITS + 2.0**-5)


def _gini(counts: Ints, most: int) -> Ints:
    """−Σ_v ⌈2^BITS · (n_v − Σ_c n_vc²/n_v)⌉ in integers; in Python integers if squares could overflow."""
    rows = counts.sum(axis=-1)
    if rows.max(initial=0) > EXACT_SQUARES:
        counts, rows = counts.astype(object), rows.astype(object)
    squares = ((counts * counts).sum(axis=-1) << BITS) // np.maximum(rows, 1)
    impurities: Ints = (squares - (rows << BITS)).sum(axis=-1)
    return impurities


def _entropy(counts: Ints, most: int) -> Ints:
    entropies: Ints = _h(counts, most).sum(axis=(-2, -1)) - _h(counts.sum(axis=-1), most).sum(axis=-1)
    return entropies


def _h(counts: Ints, most: int) -> Any:
    inside = np.minimum(counts, most)
    x = inside.astype(float)
    curve = fixed_width(np.rint(x * np.log2(np.maximum(x, 1.0)) * 2.0**BITS))
    return curve + (counts - inside) * steepest(most)


SPLITS = {
    "entropy": Split("entropy", False, _entropy),
    "gini": Split("gini", False, _gini),
    "max_class": Split("max_class", False, lambda counts, most: counts.max(axis=-1, initial=0).sum(axis=-1)),
}


HIGHEST = 2**40
TOGETHER = 2**24  # the largest number of counts of a level in memory; with more, rows are read several times

STEPS = 2**24
"""Steps per row of the grid of logarithms."""
TESTS, STAYS = (1, 3), 0.9
"""Prior weights: of trees with tests relative to a single class (two classes, more), and of leaves below a test."""
WIDEST = 2**12
"""The largest number of leaves of a tree. A column is not tested below another if there would be more."""
LARGEST = 2.0**42
"""The largest scale: logarithms in doubles are then accurate to one step."""


@dataclass(frozen=True, eq=False)
class LeafCounts(Rule, Summands):
    """The number of rows, or their weight, at each leaf by class."""

    def exact(self, reader: Reader, score: Score) -> list[int]:
        tree, keys, label, nodes = score.arguments
        table = table_of(score)
        if table.weighted or not (keys or label):
            counts = _weights(reader, table, tree, keys, label, nodes)
        else:
            fold = LeafFold(tree, nodes, len(label[0].values) if label else 0)
            counts = fixed_width(reader.answers.fold_codes(table.plan, (*keys, *label), fold)[0]).ravel().tolist()
        return counts


@dataclass(frozen=True, eq=False)
class LevelSplits(Rule, Summands):
    """Scores of splitting each leaf of a level by each column that may be tested there, as in `split`."""

    split: Split

    def exact(self, reader: Reader, score: Score) -> list[int]:
        tree, keys, bound, prices = score.arguments
        unasked, classes = tree.unasked, len(keys[-1].values)
        stays = np.array(score.groups if isinstance(score, Scores) else ()) > unasked.sum(axis=1)
        crossed = tuple(np.flatnonzero(unasked.any(axis=0)).tolist())
        step = max(1, TOGETHER // sum((tree.branches[column] + 1) * classes for column in crossed))
        values = np.zeros((len(unasked), unasked.shape[1] + 1), dtype=np.int64)
        for start in range(0, len(tree.level), step):
            some = slice(start, start + step)
            fold = LeafFold(tree, tree.level[some], classes, crossed, bool(stays.any()))
            tables = reader.answers.fold_codes(table_of(score).plan, keys, fold)
            for column, counts in zip((*crossed, -1), tables, strict=False):
                split = fixed_width(counts)
                values[some, column] = self.split.value(split[:, None] if column < 0 else split, bound)
        scores: list[int] = (values[np.column_stack([unasked, stays])] - prices).tolist()
        return scores


@dataclass(frozen=True, eq=False)
class TreeCounts:
    """Counts of rows by class: of all rows (C,), by the values of a column (V, C), and of two columns (V, W, C)."""

    whole: Ints
    ones: tuple[Ints, ...]
    pairs: dict[tuple[int, int], Ints]


def tree_sensitivity(values: Sequence[int]) -> int:
    """The largest change of the difference of two trees' log probabilities by a row, in steps over the scale, for
    columns with these numbers of values: one row, and the rounding at leaves and nodes before and after."""
    wide = max(values, default=1)
    return STEPS + 8 * (max(wide, min(WIDEST, wide * wide)) + wide + 2)


def trees_at_most(values: Sequence[int], classes: int) -> int:
    """A bound on 1/prior of any tree, which replaces the number of trees in the error of the drawn one."""
    wide, many = max(values, default=1), len(values) + 2
    return int((10 * many) ** (wide + 1) * classes ** (1 + max(wide, min(WIDEST, wide * wide))))


def drawn_tree(counts: TreeCounts, scale: float, *draws: Callable[[Ints], int]) -> list[int]:
    """A tree of at most two tests per leaf, drawn with nearly P ∝ prior · exp(correct rows · `STEPS`/scale).

    `draws` draw the index of an integer. The first, of the column tested first or a single class, is by
    permute-and-flip or P ∝ exp(number/scale); the others are by the latter, and by the maximum if `scale` is 0. The
    result is the column tested first, or the number of columns for none; for each of its values the column tested
    next, as an index among the others, or their number; then the class of each leaf, leaves below one test first.
    """
    many, tests, first, choose = len(counts.ones), TESTS[len(counts.whole) > 2], draws[0], draws[-1]

    def together(scores: Ints) -> Ints:
        """log Σ exp over the last axis, in steps."""
        top: Ints = scores.max(axis=-1)
        if not scale:
            return top
        more = np.log(np.exp((scores - top[..., None]) / scale).sum(axis=-1))
        return top + fixed_width(more * scale)

    def prior(share: float) -> int:
        return round(float(np.log(share)) * scale)

    def leaf(rows: Ints) -> Ints:
        return together(rows * STEPS) + prior(1 / len(counts.whole))

    below = [[i for i in range(many) if (j, i) in counts.pairs] for j in range(many)]
    nodes = [  # for each value of each column: a leaf, or a further test of each column
        np.stack([leaf(rows) + (prior(STAYS) if below[j] else 0), *(
            leaf(counts.pairs[j, i]).sum(axis=-1) + prior((1 - STAYS) / len(below[j])) for i in below[j]
        )], axis=-1)
        for j, rows in enumerate(counts.ones)
    ]  # fmt: skip
    roots = [int(together(scores).sum()) + prior(tests / many) for scores in nodes]
    root = first(fixed_width([*roots, *(counts.whole * STEPS).tolist()]))
    if root >= many:
        return [many, root - many]
    places, ended, further = list[int](), list[int](), list[int]()
    for value, scores in enumerate(nodes[root]):
        at = choose(scores)
        if at == 0:
            places.append(many - 1)
            ended.append(choose(counts.ones[root][value] * STEPS))
        else:
            column = below[root][at - 1]
            places.append(column - (column > root))
            further += [choose(rows * STEPS) for rows in counts.pairs[root, column][value]]
    return [root, *places, *ended, *further]


@dataclass(frozen=True, eq=False)
class Subtrees(Rule):
    """Scores of trees of one or two tests, from which one is drawn. `counted` reads them."""

    def exact(self, reader: Reader, score: Score) -> list[int]:
        raise refuse("TypeError", "these scores are not listed", help="`noisy_max` draws a tree by them")

    def counted(self, reader: Reader, score: Score) -> TreeCounts:
        (keys,) = score.arguments
        wide, classes = tuple(len(key.values) for key in keys[:-1]), len(keys[-1].values)
        most = WIDEST
        while sum(v * w * classes for v in wide for w in wide if v * w <= most) > TOGETHER:
            most //= 2
        below = [tuple(i for i, w in enumerate(wide) if i > j and v * w <= most) for j, v in enumerate(wide)]
        names = tuple(str(i) for i in range(len(wide)))
        folds = []
        for j, v in enumerate(wide):
            at = np.arange(1, v + 1)
            alone = np.full(v, -1)
            tree = PublicTree(names, wide, np.append(j, alone), np.append(1, alone), at)
            folds.append(LeafFold(tree, at, classes, below[j], bool(below[j])))
        root = PublicTree(names, wide, np.full(1, -1), np.full(1, -1), np.zeros(1, dtype=int))
        read = iter(
            reader.answers.fold_codes(table_of(score).plan, keys, Folds((*folds, LeafFold(root, root.level, classes))))
        )
        ones: list[Ints] = []
        pairs: dict[tuple[int, int], Ints] = {}
        for j in range(len(wide)):
            for i in below[j]:  # the same table with both columns exchanged
                pairs[j, i] = fixed_width(next(read))
                pairs[i, j] = pairs[j, i].swapaxes(0, 1)
            ones.append(fixed_width(next(read)))
        return TreeCounts(fixed_width(next(read))[0], tuple(ones), pairs)


LEAF_COUNTS, LEVEL_SIZES = LeafCounts("leaf_counts", True), LeafCounts("level_sizes", True)
SUBTREES = Subtrees("subtrees", False)
LEVEL_SPLITS = {name: LevelSplits(f"{name} of a level", False, split) for name, split in SPLITS.items()}


def leaf_counts(table: Table, tree: PublicTree, label: str) -> Scores:
    """The number of rows of each class at each leaf of a tree, leaf after leaf."""
    classes = key_of_column(Column(label), table)
    return _counts(LEAF_COUNTS, table, tree, (classes,), tree.leaves)


def level_sizes(table: Table, tree: PublicTree) -> Scores:
    """The number of rows at each leaf of a tree's level."""
    return _counts(LEVEL_SIZES, table, tree, (), tree.level)


def subtrees(table: Table, tree: PublicTree, label: str) -> Scores:
    """The correct rows of each tree of at most two tests by the columns of `tree`, which has one leaf."""
    if len(tree.asks) != 1:
        raise refuse("ValueError", "a tree is drawn from its root on", help="`tree_start(…)`")
    keys = (*_keys(table, tree), key_of_column(Column(label), table))
    moved = tree_sensitivity(tree.branches)
    return Scores(table.exposures, SUBTREES, table, moved, True, STEPS.bit_length() - 1, (keys,), groups=(1,))


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
    """For each leaf of the level a group of scores `of` splitting it by each column not tested above it, in order.

    `prices`, one number per score for each leaf, are subtracted, rounded to the grid. A leaf with one more price may
    remain a leaf: its group has one more score, the last.
    """
    groups = tuple(tree.unasked.sum(axis=1).tolist())
    if not groups or not all(groups):
        raise refuse(
            "ValueError", "nothing can be asked at a leaf of this tree's level, or the level has no leaf",
            help="end such leaves by `tree_end(tree, …)`, and stop where `len(tree.level)` is 0",
        )  # fmt: skip
    bits, sensitivity, falls, bound = moved_by(data, of, table, most)
    penalties: Ints | int = 0
    if prices is not None:
        groups, penalties = _priced(groups, prices, bits)
    arguments = (tree, (*_keys(table, tree), label), bound, penalties)
    return Scores(
        table.exposures, LEVEL_SPLITS[of], table, sensitivity, True, bits, arguments, falls, sum(groups), groups
    )  # fmt: skip


def _priced(groups: tuple[int, ...], prices: Sequence[Floats], bits: int) -> tuple[tuple[int, ...], Ints]:
    """The size of each group of scores, and what is subtracted from each score, in steps of 2^-bits."""
    every = np.concatenate([np.zeros(0), *prices])
    longer = [len(some) - many for many, some in zip(groups, prices, strict=False)]
    if len(prices) != len(groups) or not {0, 1}.issuperset(longer) or not np.all(np.abs(every) <= HIGHEST):
        raise refuse(
            "ValueError", "prices are a list for each leaf of the level, of a number for each of its splits",
            help=f"as many as its `attributes`, or one more, for no split; none beyond {HIGHEST:,}",
        )  # fmt: skip
    return tuple(map(len, prices)), fixed_width(np.rint(np.ldexp(every, bits)))


def _keys(table: Table, tree: PublicTree) -> tuple[Key, ...]:
    """The keys of a tree's columns, whose public values are the branches of its tests."""
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
    """The weights at leaves, each read as a part of a part."""
    plans: dict[int, Plan] = {0: table.plan}
    for node in (tree.asks >= 0).nonzero()[0].tolist():
        key = keys[tree.asks[node]]
        for place, value in enumerate(key.values):
            plans[int(tree.first[node]) + place] = Filter(plans[node], holds(key, value))
    term = Count(weighted=table.weighted)
    return [int(n) for node in nodes.tolist() for n in reader.answers.group(plans[node], label, (term,))[0].ravel()]
