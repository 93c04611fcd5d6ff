"""Prunes leaves that depart from the single best option without a significant gain.

A leaf of a regret tree holds few data sets, and of several options one is always the best among them by chance. So what
a leaf says is kept if its best option is better there than the single best one beyond one standard error, over data
sets; else it says what holds for all data, and the single best option is taken.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from jostle.choice.grow import Array, leaves
from jostle.choice.models import TreeEnsembles
from jostle.choice.trees import Tree

Groups = npt.NDArray[np.intp]


def prune_leaves(fitted: TreeEnsembles, x: Array, y: Array, database: Groups) -> TreeEnsembles:
    """The fitted trees, with leaves that do not convince saying what the root says.

    `x` (n, columns) and `y` (n, options) are what they were fitted on, `database` (n,) the data set of each row. Trees
    of one option each are left as they are: their leaves compare nothing.
    """
    if not fitted.together:
        return fitted
    single = int(np.argmax(_by_database(y, database)[1].mean(axis=0)))
    trees = tuple(_pruned(tree, x, y, database, single) for tree in fitted.ensembles[0])
    return replace(fitted, ensembles=(trees,))


def _pruned(tree: Tree, x: Array, y: Array, database: Groups, single: int) -> Tree:
    at, value = leaves(tree, x), list(tree.value)
    for leaf in np.unique(at):
        best = int(np.argmax(value[leaf]))
        if best == single:
            continue
        here = at == leaf
        names, means = _by_database(y[here], database[here])
        gain = means[:, best] - means[:, single]
        if len(names) > 1 and gain.mean() <= gain.std(ddof=1) / np.sqrt(len(names)):
            value[leaf] = value[0]
    return replace(tree, value=tuple(value))


def _by_database(y: Array, database: Groups) -> tuple[Groups, Array]:
    """The data sets, and each one's mean scores, (data sets, options)."""
    names, at, many = np.unique(database, return_inverse=True, return_counts=True)
    sums = [np.bincount(at, weights=scores, minlength=len(names)) for scores in y.T]
    return names, np.stack(sums, axis=1) / many[:, None]
