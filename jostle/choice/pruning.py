"""Prunes leaves that depart from the single best option without a significant gain.

A leaf of a regret tree holds few data sets, and of several options one is always the best among them by chance. So what
a leaf says is kept if its best option is better there than the single best one beyond one standard error, over data
sets; else it says what holds for all data, and the single best option is taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.choice.grow import Array, leaves
from jostle.choice.models import TreeEnsembles
from jostle.choice.trees import Tree
from jostle.records import replace

Groups = npt.NDArray[np.intp]


def prune_leaves(fitted: TreeEnsembles, x: Array, y: Array, database: Groups) -> TreeEnsembles:
    """The fitted trees, with leaves that do not convince saying what the root says.

    `x` (n, columns) and `y` (n, options) are what they were fitted on, `database` (n,) the data set of each row. Trees
    of one option each are left as they are: their leaves compare nothing.
    """
    if not fitted.together:
        return fitted
    names, database, many = np.unique(database, return_inverse=True, return_counts=True)
    sums = [np.bincount(database, weights=scores, minlength=len(names)) for scores in y.T]
    single = int(np.argmax((np.stack(sums, axis=1) / many[:, None]).mean(axis=0)))
    trees = tuple(_pruned(tree, x, y, database, len(names), single) for tree in fitted.ensembles[0])
    return replace(fitted, ensembles=(trees,))


def _pruned(tree: Tree, x: Array, y: Array, database: Groups, many: int, single: int) -> Tree:
    """`database` (n,): the numbers of `many` data sets."""
    at, value = leaves(tree, x), list(tree.value)
    place, size = at * many + database, len(value) * many
    rows = np.bincount(place, minlength=size).reshape(-1, many)
    sums: dict[int, npt.NDArray[Any]] = {}  # of an option, in each leaf over each data set
    for leaf in np.flatnonzero(rows.any(axis=1)).tolist():
        best = int(np.argmax(value[leaf]))
        if best == single:
            continue
        for option in {best, single} - sums.keys():
            sums[option] = np.bincount(place, weights=y[:, option], minlength=size).reshape(-1, many)
        here = np.flatnonzero(rows[leaf])
        seen = rows[leaf, here]
        gain = sums[best][leaf, here] / seen - sums[single][leaf, here] / seen
        if len(gain) > 1 and gain.mean() <= gain.std(ddof=1) / np.sqrt(len(gain)):
            value[leaf] = value[0]
    return replace(tree, value=tuple(value))
