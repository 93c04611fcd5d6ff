"""Classifiers as public values: they are fitted on released tables, predict, print and convert to JSON.

Each gives, for rows of public values, a probability for every class. `Additive` covers the majority, naive Bayes and
the linear ones: a score for each class that is a sum of one number an attribute. `Branched` asks one attribute and
hands over to the classifier of that branch. `Binned` takes raw numbers and hands on their public bins. A missing or
undescribed cell adds nothing to a sum, and is answered by `otherwise` at a branch.

Nothing here has seen a row: all is post-processing of measurements. How they are fitted is in `fits`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jostle.kernels import KernelError, Model, Row, columns_of_row, members
from jostle.kernels.arrays import Floats
from jostle.kernels.classifiers.codes import Coded, Cuts, Positions, Value, coded, cut, plain, positions
from jostle.kernels.rowprograms.decisions import Cell, Cells, branch_place, branch_scores, sums, tables_by_place
from jostle.privacy.rows.expressions import Expression, constant

Columns = Mapping[str, Any]
Words = Mapping[str, Callable[[Value], str]]
"""By attribute, how a value of it is called: a bin by the numbers that are in it."""

CLEAR = 3.5
"""Deviations of its noise that a value has to speak by to be named, the loudest of many as it is."""


class Classifier(Model, ABC):
    """The face that all have, in a program, in Python and to `jostle.tools.estimators`.

    `classes`: the public class values, in the order of every row of probabilities. `attributes`: by name, the values
    (or `Cuts`) that a cell is looked up among.
    """

    jostle_kind = "a classifier"
    jostle_members = members("classes", attributes="reads", predict="of_row", probabilities="shares_of_row")
    classes: tuple[Value, ...]
    attributes: dict[str, tuple[Value, ...] | Cuts]

    @abstractmethod
    def probabilities(self, columns: Columns) -> Floats:
        """Shape (rows, classes), each row summing to 1; `columns` holds one sequence of cells an attribute."""

    @abstractmethod
    def as_json(self) -> dict[str, object]:
        """All of it as plain JSON; `from_json` of its class reads it again."""

    @abstractmethod
    def scores(self, cells: Cells) -> Expression:
        """Class scores (C,) of a row in whole numbers, of which the largest decides: see `rowprograms.decisions`."""

    @abstractmethod
    def summary(self, words: Words) -> str:
        """What people read; the values of an attribute in `words` are called so."""

    def __str__(self) -> str:
        return self.summary({})

    def places(self, columns: Columns) -> Positions:
        """The position in `classes` of the most probable class, the first of equals, for each row."""
        result: Positions = np.argmax(self.probabilities(columns), axis=1)
        return result

    def predict(self, columns: Columns) -> list[Value]:
        """The class of each row."""
        return [self.classes[place] for place in self.places(columns)]

    @property
    def reads(self) -> list[str]:
        """The names of its attributes."""
        return list(self.attributes)

    def of_row(self, row: Row) -> Value:
        """`model.predict({age: 40, sex: "Female"})`: the class of one row."""
        return self.predict(columns_of_row(row, self.reads))[0]

    def shares_of_row(self, row: Row) -> list[float]:
        """Returns the probabilities of one row, in the order of `model.classes`."""
        return [float(p) for p in self.probabilities(columns_of_row(row, self.reads))[0]]


def rows_of(columns: Columns) -> int:
    """Returns the number of rows, which all columns share."""
    lengths = {len(c.codes) if isinstance(c, Coded) else len(c) for c in columns.values()}
    if len(lengths) != 1:
        raise KernelError("columns of one length are needed, at least one")
    return lengths.pop()


@dataclass(frozen=True, eq=False)
class AdditiveClassifier(Classifier):
    """Class scores `base` (C,) plus, for each attribute, a column of `weights[name]` (C, values).

    `link` turns scores into probabilities: `softmax` where they are logarithms, `share` where they already are
    shares that may have left [0, 1]. `unsure` gives, where it is known, the deviation of the noise in each weight less
    the mean of its value's, (C, values); `bins`: the edges of attributes whose values number bins; both for `summary`
    alone.
    """

    kind: str
    classes: tuple[Value, ...]
    base: Floats
    weights: dict[str, tuple[tuple[Value, ...], Floats]]
    link: str = "softmax"
    unsure: Callable[[], Mapping[str, Floats]] = dict
    bins: Mapping[str, Cuts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        classes = len(self.classes)
        if not classes or self.base.shape != (classes,):
            raise KernelError("a classifier has a base score for each of its classes")
        for values, table in self.weights.values():
            if table.shape != (classes, len(values)):
                raise KernelError("a table has a row for each class and a column for each value")

    @property
    def attributes(self) -> dict[str, tuple[Value, ...] | Cuts]:  # type: ignore[override]
        return {name: values for name, (values, _) in self.weights.items()}

    def probabilities(self, columns: Columns) -> Floats:
        scores = np.repeat(self.base[None, :], rows_of(columns), axis=0)
        for name, (values, weights) in self.weights.items():
            if name in columns:
                padded = np.hstack([weights, np.zeros((len(self.base), 1))])  # position −1: nothing
                scores += padded.T[positions(columns[name], values)]
        if self.link == "softmax":
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        else:
            scores = np.clip(scores, 1e-3, None)
        shares: Floats = scores / scores.sum(axis=1, keepdims=True)
        return shares

    def scores(self, cells: Cells) -> Expression:
        tables = ((cells[name], values, table) for name, (values, table) in self.weights.items() if name in cells)
        return sums(self.base, [(cell, cell.table_of(values, table)) for cell, values, table in tables])

    def as_json(self) -> dict[str, object]:
        return {
            "model": "additive", "kind": self.kind, "link": self.link, "classes": list(self.classes),
            "base": _rounded(self.base),
            "weights": [
                {"attribute": n, "values": list(v), "weights": [_rounded(row) for row in w]}
                for n, (v, w) in self.weights.items()
            ],
            **_bins_as_json(self.bins),
        }  # fmt: skip

    def summary(self, words: Words) -> str:
        words = {**_words(self.bins), **words}
        if not self.weights:
            return f"{self.kind}: always {text_of(self.classes[int(np.argmax(self.base))])}"
        lines, silent, unsure = [], [], self.unsure()
        for name, (values, weights) in self.weights.items():
            away = weights - weights.mean(axis=0)
            clear = away > CLEAR * unsure[name] if name in unsure else np.ones(away.shape, dtype=bool)
            if not clear.any():
                silent.append(name)
                continue
            c, v = np.unravel_index(int(np.argmax(np.where(clear, away, -np.inf))), away.shape)
            label = words.get(name, text_of)(values[v])
            lines.append(f"    {name}: {label} speaks most, for {text_of(self.classes[c])} ({away[c, v]:+.2f})")
        head = f"{self.kind}: {len(self.classes)} classes by {len(self.weights)} attributes"
        if not lines:
            most = text_of(self.classes[int(np.argmax(self.base))])
            return f"{head}, which say nothing beyond the noise; most are {most}"
        if silent:
            lines.append(f"    nothing beyond the noise: {', '.join(silent)}")
        return "\n".join([head, *lines])


@dataclass(frozen=True, eq=False)
class Branched(Classifier):
    """One attribute decides which classifier answers; all have the same classes. `bins`: as of `AdditiveClassifier`."""

    attribute: str
    values: tuple[Value, ...]
    branches: tuple[Classifier, ...]
    bins: Mapping[str, Cuts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.branches or len(self.branches) != len(self.values):
            raise KernelError("there is a branch for each value")
        if len({tuple(branch.classes) for branch in self.branches}) != 1:
            raise KernelError("all branches have the same classes")

    @property
    def classes(self) -> tuple[Value, ...]:  # type: ignore[override]
        return self.branches[0].classes

    @property
    def attributes(self) -> dict[str, tuple[Value, ...] | Cuts]:  # type: ignore[override]
        union: dict[str, tuple[Value, ...] | Cuts] = {self.attribute: self.values}
        for branch in self.branches:
            union |= branch.attributes
        return union

    def probabilities(self, columns: Columns) -> Floats:
        coded_columns = {name: coded(column) for name, column in columns.items()}
        many = rows_of(columns)
        at = (
            positions(coded_columns[self.attribute], self.values)
            if self.attribute in coded_columns
            else np.full(many, -1)
        )
        result = np.zeros((many, len(self.classes)))
        for place, branch in enumerate(self.branches):
            rows = np.flatnonzero(at == place)
            if len(rows):
                result[rows] = branch.probabilities(
                    {n: Coded(c.values, c.codes[rows]) for n, c in coded_columns.items()}
                )
        orphans = np.flatnonzero(at < 0)
        if len(orphans):  # no branch is theirs: all of them, evenly
            some = {n: Coded(c.values, c.codes[orphans]) for n, c in coded_columns.items()}
            result[orphans] = np.mean([branch.probabilities(some) for branch in self.branches], axis=0)
        return result

    def scores(self, cells: Cells) -> Expression:
        """Where all branches end in sums, one sum of tables read at the row's end; a row that no branch is for has the
        mean of all. Elsewhere those of the row's branch, or the votes of all."""
        place, ends = ends_of(self, cells)
        if ends:
            return sums(np.zeros(len(self.classes)), tables_at(place, ends, cells))
        cell = cells.get(self.attribute)
        return branch_scores(cell and cell.place_in(self.values), [each.scores(cells) for each in self.branches])

    def as_json(self) -> dict[str, object]:
        branches = [branch.as_json() for branch in self.branches]
        data = {"model": "branched", "attribute": self.attribute, "values": list(self.values), "branches": branches}
        return data | _bins_as_json(self.bins)

    def summary(self, words: Words) -> str:
        words, lines = {**_words(self.bins), **words}, []
        for value, branch in zip(self.values, self.branches, strict=True):
            first, *rest = branch.summary(words).splitlines()
            label = f" {words[self.attribute](value)}" if self.attribute in words else f" = {text_of(value)}"
            lines += [f"{self.attribute}{label}: {first}", *(f"    {line}" for line in rest)]
        return "\n".join(lines)


Ends = list[tuple[AdditiveClassifier, ...]]
"""Where a row can end: sums, of which the mean decides."""


def ends_of(classifier: Classifier, cells: Cells) -> tuple[Expression, Ends]:
    """The place of a row among the ends of a classifier, and these; none where some branch is no sum."""
    if isinstance(classifier, AdditiveClassifier):
        return constant(0), [(classifier,)]
    below = [ends_of(branch, cells) for branch in classifier.branches] if isinstance(classifier, Branched) else []
    if not isinstance(classifier, Branched) or not all(ends for _, ends in below):
        return constant(0), []
    cell = cells.get(classifier.attribute)
    place = branch_place(
        cell and cell.place_in(classifier.values), [place for place, _ in below], [len(ends) for _, ends in below]
    )
    ends = [end for _, group in below for end in group]
    return place, [*ends, tuple(end[0] for end in ends if len(end) == 1)]


def tables_at(place: Expression, ends: Ends, cells: Cells) -> list[tuple[Cell, Floats]]:
    """What the class scores of the end at `place` are sums of."""
    leaves = {id(one): one for end in ends for one in end}
    at = {key: row for row, key in enumerate(leaves)}
    shares = np.zeros((len(ends), len(leaves)))
    for row, end in enumerate(ends):
        for one in end:
            shares[row, at[id(one)]] += 1 / len(end)
    tables = []
    for name in dict.fromkeys(name for one in leaves.values() for name in one.weights if name in cells):
        cell, alike = cells[name], dict[tuple[Value, ...], list[AdditiveClassifier]]()
        for one in leaves.values():
            if name in one.weights:
                alike.setdefault(one.weights[name][0], []).append(one)
        table = np.zeros((len(leaves), len(ends[0][0].classes), len(cell.values)))
        for values, some in alike.items():
            rows = [at[id(one)] for one in some]
            table[rows] = cell.table_of(values, np.stack([one.weights[name][1] for one in some]))
        tables.append((cell, table))
    return tables_by_place(place, shares, np.stack([one.base for one in leaves.values()]), tables)


@dataclass(frozen=True, eq=False)
class Binned(Classifier):
    """A classifier of binned columns that takes raw numbers: `cuts` says how each was binned."""

    inner: Any
    cuts: dict[str, Cuts]

    jostle_members = Classifier.jostle_members | members("dot")

    @property
    def classes(self) -> tuple[Value, ...]:  # type: ignore[override]
        return tuple(self.inner.classes)

    @property
    def attributes(self) -> dict[str, tuple[Value, ...] | Cuts]:  # type: ignore[override]
        return dict(self.inner.attributes) | {n: c for n, c in self.cuts.items() if n in self.inner.attributes}

    def probabilities(self, columns: Columns) -> Floats:
        result: Floats = self.inner.probabilities(
            {name: cut(column, self.cuts[name]) if name in self.cuts else column for name, column in columns.items()}
        )
        return result

    def scores(self, cells: Cells) -> Expression:
        binned = dict(cells)
        for name in self.cuts.keys() & cells.keys():
            values, place = cells[name]
            binned[name] = Cell(tuple(map(self.cuts[name].place, values)), place)
        scores: Expression = self.inner.scores(binned)
        return scores

    def as_json(self) -> dict[str, object]:
        return {
            "model": "binned",
            "cuts": {n: list(c.edges) for n, c in self.cuts.items()},
            "inner": self.inner.as_json(),
        }

    def dot(self) -> str:
        """The trees of what is inside as a drawing, with the bins that they ask for in words."""
        dot = getattr(self.inner, "dot", None)
        if dot is None:
            raise KernelError("only trees are drawn, and this model has none")
        return str(dot(_words(self.cuts)))

    def summary(self, words: Words) -> str:
        inner: str = self.inner.summary({**words, **_words(self.cuts)})
        edges = ", ".join(f"{n} cut at {' '.join(f'{e:g}' for e in c.edges)}" for n, c in self.cuts.items())
        return f"{inner}\nwith {edges}" if edges else inner


def _words(bins: Mapping[str, Cuts]) -> Words:
    """How the bins of attributes are called."""
    return {name: cuts.called for name, cuts in bins.items()}


def _bins_as_json(bins: Mapping[str, Cuts]) -> dict[str, object]:
    return {"bins": {name: list(cuts.edges) for name, cuts in bins.items()}} if bins else {}


def text_of(value: Value) -> str:
    scalar = plain(value)
    return f"{scalar:g}" if isinstance(scalar, float) else str(scalar)


def _rounded(row: Sequence[float] | Floats) -> list[float]:
    return [round(float(x), 6) for x in row]
