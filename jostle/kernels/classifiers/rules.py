"""What a classifier decides, in whole numbers: the row kernel under `rows_right`, which runs over private rows.

A model is a public value and predicts in doubles. Over private rows something more is asked (`kernels.rowkernels`):
**what a row adds is a function of that row alone, to the last bit**, wherever it stands in a batch. So a model gives
its `rule`: class scores rounded once to whole multiples of 1/UNIT. Rules are evaluated by looking up, adding and
comparing whole numbers, which is exact in any order. They are a closed list, and hold public numbers only.

A rule is `checked` before anything is charged: its tables fit its values, its branches too, and a tree's nodes stand
after their parents. So evaluating it cannot fail, and ends, whatever a row holds.

Columns come as `Coded`; a cell that is not among an attribute's values adds nothing to a sum, stays at the node of a
tree that asks for it, and is answered by all branches of an `Ask` together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.kernels.classifiers.codes import Coded, Cuts, Positions, Value, cut, positions
from jostle.kernels.errors import KernelError

Whole = NDArray[np.int64]
Columns = Mapping[str, Coded]

UNIT = 2**20
MOST = 2.0**32  # of a score: a thousand of them add up within 64 bits
MOST_DEPTH = 100  # of rules in rules


@dataclass(frozen=True, eq=False, slots=True)
class Sum:
    """`base` (C,) and for each attribute a table (C, values), of which a row's column is added."""

    base: Whole
    terms: tuple[tuple[str, tuple[Value, ...], Whole], ...]


@dataclass(frozen=True, eq=False, slots=True)
class Ask:
    """The rule of the branch that an attribute names."""

    attribute: str
    values: tuple[Value, ...]
    branches: tuple[Rule, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Walk:
    """A tree as arrays: node i asks attribute `asks[i]` (−1 at a leaf), its children stand from `first[i]` on, and
    `answers[i]` (C,) speak for a row that ends there."""

    attributes: tuple[tuple[str, tuple[Value, ...]], ...]
    asks: Whole
    first: Whole
    answers: Whole


@dataclass(frozen=True, eq=False, slots=True)
class Together:
    """Rules whose scores are added; with `vote` each gives 1 to its best class. With `counts` a sum is at least 0."""

    rules: tuple[Rule, ...]
    vote: bool = False
    counts: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Cut:
    """A rule over the bins of raw numbers."""

    inner: Rule
    cuts: tuple[tuple[str, Cuts], ...]


Rule = Sum | Ask | Walk | Together | Cut


def whole(scores: NDArray[np.float64]) -> Whole:
    """Scores as whole multiples of 1/UNIT, the nearest; what is no number is 0."""
    kept = np.clip(np.nan_to_num(np.asarray(scores, dtype=float)), -MOST, MOST)
    found: Whole = np.rint(kept * UNIT).astype(np.int64)
    return found


def checked(rule: Rule, classes: int, depth: int = 0) -> None:
    """`ValueError` unless the rule gives each row whole scores of so many classes, and could fail on none."""
    if depth > MOST_DEPTH:
        raise KernelError(f"rules are nested at most {MOST_DEPTH} deep")
    inner: tuple[Rule, ...] = ()
    match rule:
        case Sum():
            _shaped(rule.base, (classes,))
            for _, values, table in rule.terms:
                _shaped(table, (classes, len(values)))
        case Ask():
            if not rule.branches or len(rule.branches) != len(rule.values):
                raise KernelError("there is a branch for each value")
            inner = rule.branches
        case Walk():
            nodes = len(rule.asks)
            _shaped(rule.asks, (nodes,))
            _shaped(rule.first, (nodes,))
            _shaped(rule.answers, (nodes, classes))
            for node in np.flatnonzero(rule.first >= 0).tolist():
                ask, first = int(rule.asks[node]), int(rule.first[node])
                if not 0 <= ask < len(rule.attributes) or not node < first <= nodes - len(rule.attributes[ask][1]):
                    raise KernelError("a node has a child for each value, after it")
        case Together():
            if not rule.rules:
                raise KernelError("one rule at least decides")
            inner = rule.rules
        case Cut():
            inner = (rule.inner,)
        case _:
            raise KernelError("no rule")
    for one in inner:
        checked(one, classes, depth + 1)


def _shaped(array: Whole, shape: tuple[int, ...]) -> None:
    if not isinstance(array, np.ndarray) or array.dtype != np.int64 or array.shape != shape or not array.shape[0]:
        raise KernelError("a table has a row for each class and a column for each value")


def decided(rule: Rule, columns: Columns, rows: int) -> Positions:
    """The place of the class with the largest score, the first of equals, for each of so many rows: shape (rows,)."""
    found: Positions = np.argmax(scores(rule, columns, rows), axis=1).astype(np.int64)
    return found


def scores(rule: Rule, columns: Columns, rows: int) -> Whole:
    """Class scores in units of 1/UNIT, shape (rows, C)."""
    if isinstance(rule, Sum):
        return _summed(rule, columns, rows)
    if isinstance(rule, Ask):
        return _asked(rule, columns, rows)
    if isinstance(rule, Walk):
        ended: Whole = rule.answers[walked(rule.asks, rule.first, placed(rule.attributes, columns, rows))]
        return ended
    if isinstance(rule, Together):
        each = [scores(inner, columns, rows) for inner in rule.rules]
        if rule.vote:
            each = [np.eye(s.shape[1], dtype=np.int64)[np.argmax(s, axis=1)] for s in each]
        total: Whole = np.sum(each, axis=0, dtype=np.int64)
        return np.maximum(total, 0) if rule.counts else total
    if isinstance(rule, Cut):
        named = dict(rule.cuts)
        binned = {n: cut(c, named[n]) if n in named else c for n, c in columns.items()}
        return scores(rule.inner, binned, rows)
    raise TypeError("no rule")


def placed(attributes: Sequence[tuple[str, tuple[Value, ...]]], columns: Mapping[str, Any], rows: int) -> Positions:
    """Where each cell stands among its attribute's values, −1 where it is none: (attributes, at least 1; rows)."""
    at = np.full((max(1, len(attributes)), rows), -1, dtype=np.int64)
    for i, (name, values) in enumerate(attributes):
        if name in columns:
            at[i] = positions(columns[name], values)
    return at


def walked(asks: Positions, first: Positions, at: Positions) -> Positions:
    """The node of a tree where each row ends; `at` (attributes, rows) are positions of its values, −1 for none."""
    here = np.zeros(at.shape[1], dtype=np.int64)
    rows = np.flatnonzero(first[here] >= 0)
    while len(rows):
        value = at[asks[here[rows]], rows]
        rows, value = rows[value >= 0], value[value >= 0]
        here[rows] = first[here[rows]] + value
        rows = rows[first[here[rows]] >= 0]
    return here


def _summed(rule: Sum, columns: Columns, rows: int) -> Whole:
    total = np.repeat(rule.base[None, :], rows, axis=0)
    for name, values, table in rule.terms:
        if name in columns:
            padded = np.hstack([table, np.zeros((len(rule.base), 1), dtype=np.int64)])  # position −1: nothing
            total += padded.T[positions(columns[name], values)]
    return total


def _asked(rule: Ask, columns: Columns, rows: int) -> Whole:
    at = positions(columns[rule.attribute], rule.values) if rule.attribute in columns else np.full(rows, -1)
    met = np.unique(at).tolist()
    if not met:
        return scores(rule.branches[0], columns, 0)
    parts = []
    for place in met:
        mine = np.flatnonzero(at == place)
        inner = rule.branches[place] if place >= 0 else Together(rule.branches, vote=True)
        parts.append(scores(inner, {n: Coded(c.values, c.codes[mine]) for n, c in columns.items()}, len(mine)))
    found = np.concatenate(parts)  # in order of the branches, as a stable sort has the rows
    found[np.argsort(at, kind="stable")] = found.copy()
    return found
