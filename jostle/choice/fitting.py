"""Fitting a named model to rows of features and scores.

Rows come in groups (one instance: its epsilons and draws), of which a leaf keeps a least number, counted in rows,
and which a bootstrap takes whole. Bootstraps are drawn by hashing, so that fitting is a function of its arguments.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from jostle.choice.bench import Predict
from jostle.choice.grow import Array, grow
from jostle.choice.models import AnyModel, Functions, Predictor, TreeEnsembles, UserModel
from jostle.choice.scale import UtilityScale

Groups = npt.NDArray[np.intp]


def fit(
    model: AnyModel,
    columns: tuple[str, ...],
    scale: UtilityScale,
    x: Array,
    y: Array,
    groups: Groups,
    predicts: tuple[Predict | None, ...],
) -> Predictor:
    """A predictor of every option's utility from `x` (n, columns), with scores `y` (n, options).

    `groups`: the instance of each row. Options with a function in `predicts` are not learned.
    """
    if isinstance(model, UserModel):
        return _users(model, columns, scale, x, y, predicts)
    instances = max(len(np.unique(groups)), 1)
    least = max(1, round(model.least(instances) * len(x) / instances))
    if model.kind == "tree":
        alone = (() if p else (grow(x, y[:, k : k + 1], model.depth, least),) for k, p in enumerate(predicts))
        return TreeEnsembles(scale, columns, y.shape[1], tuple(alone), False)
    samples = [np.arange(len(x))]
    if model.kind == "forest":
        samples = _bootstraps(groups, model.trees)
    trees = tuple(grow(x[rows], y[rows], model.depth, least, model.by) for rows in samples)
    return TreeEnsembles(scale, columns, y.shape[1], (trees,), True)


def _users(
    model: UserModel,
    columns: tuple[str, ...],
    scale: UtilityScale,
    x: Array,
    y: Array,
    predicts: tuple[Predict | None, ...],
) -> Functions:
    records = [dict(zip(columns, row.tolist(), strict=True)) for row in x]
    functions: list[Predict | None] = []
    for k, predict in enumerate(predicts):
        pairs = [(features, scale.utility(float(score))) for features, score in zip(records, y[:, k], strict=True)]
        functions.append(None if predict else model.fit(pairs))
    return Functions(columns, tuple(functions))


def _bootstraps(groups: Groups, count: int) -> list[npt.NDArray[np.intp]]:
    """The rows of as many groups as there are, drawn with replacement, so many times."""
    names, many = np.unique(groups, return_counts=True)
    order, begins = np.argsort(groups, kind="stable"), np.cumsum(many) - many
    samples = []
    for number in range(count):
        bytes_ = hashlib.shake_256(f"bootstrap {number}".encode()).digest(8 * len(names))
        sample = np.frombuffer(bytes_, dtype="<u8") % np.uint64(len(names))
        drawn = many[sample]
        places = np.arange(drawn.sum()) + np.repeat(begins[sample] - (np.cumsum(drawn) - drawn), drawn)
        samples.append(order[places])
    return samples
