"""Decision trees and forests as public values, which programs grow from noisy counts; here they are pruned and applied.

A program makes `tree_leaf`s and `tree_node`s as it recurses, and a `Trees` of the roots. Counts are as they were
measured, also below zero; those of an inner node are the sums of what is below it, negative ones taken as nothing.
Nothing here has seen a row: all is post-processing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle.kernels import KernelError, Model, members
from jostle.kernels.arrays import Floats
from jostle.kernels.classifiers.codes import Cuts, Positions, Value, positions, value_tuple
from jostle.kernels.classifiers.models import Classifier, Columns, Words, rows_of, text_of
from jostle.kernels.rowprograms.decisions import Cell, Cells, node_cell, sums, tree_end
from jostle.privacy.rows.expressions import Expression, clamp
from jostle.privacy.rows.folds import walked

ANSWERS = ("leaf", "margin", "confident")
VOTES = ("counts", "votes", "shares")
SHOWN = 60  # lines of a printed tree


@dataclass(frozen=True, eq=False, slots=True)
class TreeNode(Model):
    """A node: noisy counts of the classes, and below an inner one a child for each value of its attribute.

    `leaves` measured counts add up to `counts`, which are weights where there are none. `size` is the noisy size where
    one was measured; `cuts` are the edges of the bins that the values number.
    """

    counts: Floats
    attribute: str = ""
    values: tuple[Value, ...] = ()
    children: tuple[TreeNode, ...] = ()
    size: float | None = None
    leaves: int = 1
    cuts: Cuts | None = None

    jostle_kind = "a tree"
    jostle_members = members("counts attribute children size")

    def called(self, value: Value, words: Words) -> str:
        """What people read of a value of the attribute: of a bin the numbers in it."""
        own = self.cuts.called if self.cuts is not None else text_of
        return words.get(self.attribute, own)(value)

    def as_json(self) -> dict[str, object]:
        data: dict[str, object] = {"counts": [round(float(c), 6) for c in self.counts]}
        if self.size is not None:
            data["size"] = round(float(self.size), 6)
        if self.leaves != 1 and not self.children:
            data["leaves"] = self.leaves
        if self.children:
            data |= {"attribute": self.attribute, "children": [child.as_json() for child in self.children]}
            data |= {} if self.cuts is None else {"edges": list(self.cuts.edges)}
        return data

    def __str__(self) -> str:
        return "\n".join(_lines(self, [str(i) for i in range(len(self.counts))], SHOWN, {}))


def tree_leaf(counts: object, size: float | None = None) -> TreeNode:
    """A leaf with noisy class counts."""
    totals = np.asarray(counts, dtype=float).reshape(-1)
    if not len(totals) or not np.isfinite(totals).all():
        raise KernelError("a leaf has a count for each class")
    return TreeNode(totals, size=size)


def tree_node(
    attribute: str, values: Any, children: Any, size: float | None = None, edges: Sequence[float] = ()
) -> TreeNode:
    """A node that asks an attribute and has a child for each of its public values, which are bins between `edges`."""
    names, below = value_tuple(values), tuple(children)
    if not below or len(names) != len(below) or not all(isinstance(child, TreeNode) for child in below):
        raise KernelError("a node has a child for each value of its attribute")
    if len({len(child.counts) for child in below}) != 1:
        raise KernelError("the nodes of a tree count the same classes")
    if not isinstance(attribute, str):
        raise KernelError("a node names its attribute")
    return _inner(attribute, names, below, size, Cuts(tuple(map(float, edges))) if len(edges) else None)


def _inner(
    attribute: str, values: tuple[Value, ...], below: tuple[TreeNode, ...], size: float | None, cuts: Cuts | None
) -> TreeNode:
    counts = np.sum([np.maximum(child.counts, 0.0) for child in below], axis=0)
    return TreeNode(counts, attribute, values, below, size, sum(child.leaves for child in below), cuts)


# Pruning (C4.5) ------------------------------------------------------------------------------------


def pessimistic_error(errors: float, rows: float) -> float:
    """U(E, N), C4.5's error rate: the upper end at confidence 1/4 of a share seen E times in N (0 ≤ E ≤ N)."""
    from scipy.special import betaincinv

    if not 0 <= errors <= rows or rows <= 0:
        raise KernelError("errors are between none and all of the rows")
    return 1.0 if errors >= rows else float(betaincinv(errors + 1, rows - errors, 0.75))


def c45_prune(root: TreeNode) -> TreeNode:
    """The tree with every subtree replaced by a leaf where that is estimated to err no more often (Quinlan 1993).

    Noisy counts below zero are taken as nothing, and a node's are the sums of its children's.
    """
    return _pruned(root)[0]


def _pruned(node: TreeNode) -> tuple[TreeNode, float]:
    """The pruned node, and how many of its rows are estimated to be wrong."""
    counts = np.maximum(node.counts, 0.0)
    if node.children:
        branches = [_pruned(child) for child in node.children]
        children = tuple(child for child, _ in branches)
        below = sum(errors for _, errors in branches)
        node = _inner(node.attribute, node.values, children, node.size, node.cuts)
        counts = node.counts
    rows = float(counts.sum())
    errors = rows * pessimistic_error(rows - float(counts.max()), rows) if rows > 0 else 0.0
    if not node.children:
        return node, errors
    if errors <= below:
        return replace(node, attribute="", values=(), children=(), cuts=None), errors
    return node, below


# Growing by noisy counts (SuLQ) --------------------------------------------------------------------


def noisy_gain(counts: object) -> float:
    """Minus the conditional entropy, in rows, of a noisy table (classes, values): what SuLQ's C4.5 splits by."""
    table = np.maximum(np.asarray(counts, dtype=float), 0.0)
    rows = table.sum(axis=0)
    with np.errstate(all="ignore"):
        logs = np.where(table > 0, np.log2(table / np.maximum(rows, 1e-300)), 0.0)
    return float((table * logs).sum())


# Models --------------------------------------------------------------------------------------------


def tree_model(classes: Any, roots: Any, answer: str = "leaf", noise: float = 0.0, votes: str = "shares") -> Trees:
    """A model of one tree or of several.

    `answer`: which node on a row's path speaks. `leaf`: the last one that has any rows; `margin`: the last one whose
    two most frequent classes are further apart than their noise, of `noise` a measured count; `confident`: the one
    with the largest share of a class, after shares are drawn together by as many rows as the noise is wide. `votes`:
    whether trees add up their `counts`, have one vote each, or add up their `shares`.
    """
    trees = [roots] if isinstance(roots, TreeNode) else list(roots)
    return Trees(value_tuple(classes), tuple(trees), answer, float(noise), votes)


class Trees(Classifier):
    """One tree or a forest."""

    jostle_kind = "a tree model"
    jostle_members = Classifier.jostle_members | members("trees nodes depth roots dot")

    def __init__(
        self, classes: tuple[Value, ...], roots: tuple[TreeNode, ...], answer: str, noise: float, votes: str
    ) -> None:
        if not roots or not all(isinstance(r, TreeNode) and len(r.counts) == len(classes) for r in roots):
            raise KernelError("a tree model is made of trees that count its classes")
        if answer not in ANSWERS or votes not in VOTES:
            raise KernelError(f"a tree answers by {', '.join(ANSWERS)}, and votes by {', '.join(VOTES)}")
        self.classes, self.roots, self.answer, self.noise, self.votes = classes, roots, answer, noise, votes
        values: dict[str, tuple[Value, ...]] = {}
        for root in roots:
            for node in _walk(root):
                if node.children and values.setdefault(node.attribute, node.values) != node.values:
                    raise KernelError(f"`{node.attribute}` has other values in another node")
        self._values = values
        self._flat = [_Flat(root, list(values), answer, noise) for root in roots]

    @property
    def attributes(self) -> dict[str, tuple[Value, ...] | Cuts]:  # type: ignore[override]
        return dict(self._values)

    @property
    def trees(self) -> int:
        return len(self.roots)

    @property
    def nodes(self) -> int:
        return sum(len(flat.first) for flat in self._flat)

    @property
    def depth(self) -> int:
        """The depth of the deepest tree: the number of tests from its root to a leaf."""
        return max(flat.depth for flat in self._flat)

    def predict_counts(self, columns: Columns) -> Floats:
        """Sums the counts, votes or shares of the trees for each class, shape (rows, classes)."""
        many = rows_of(columns)
        at = placed(tuple(self._values.items()), columns, many)
        total = np.zeros((many, len(self.classes)))
        for flat, answers in zip(self._flat, self._answers, strict=True):
            total += answers[walked(flat.asks, flat.first, at)]
        return total

    def probabilities(self, columns: Columns) -> Floats:
        return _shares(self.predict_counts(columns))

    def scores(self, cells: Cells) -> Expression:
        total = sums(np.zeros(len(self.classes)), [(end, answers.T) for end, answers in self.ends(cells)])
        return clamp(total, 0, max(0, total.high)) if self.votes == "counts" else total

    def ends(self, cells: Cells) -> Iterator[tuple[Cell, Floats]]:
        """Of each tree the node where a row ends, as a cell, and what each of its nodes says (nodes, classes)."""
        places = [cells[name].place_in(values) if name in cells else None for name, values in self._values.items()]
        for flat, answers in zip(self._flat, self._answers, strict=True):
            yield node_cell(tree_end(flat.asks, flat.first, flat.depth, places)), answers

    @property
    def _answers(self) -> Iterator[Floats]:
        """What each node of each tree says, (nodes, classes): counts, shares or one vote."""
        for flat in self._flat:
            answers = flat.answers if self.votes == "counts" else _shares(flat.answers)
            yield np.eye(len(self.classes))[np.argmax(answers, axis=1)] if self.votes == "votes" else answers

    def as_json(self) -> dict[str, object]:
        return {
            "model": "trees", "classes": list(self.classes), "answer": self.answer, "noise": self.noise,
            "votes": self.votes, "attributes": [{"attribute": n, "values": list(v)} for n, v in self._values.items()],
            "trees": [root.as_json() for root in self.roots],
        }  # fmt: skip

    def dot(self, words: Words | None = None) -> str:
        """The trees as a drawing in Graphviz's language: a box a node, an arrow a value, called as in `words`."""
        words = words or {}
        lines, many = ["digraph trees {", "    node [shape = box];"], 0
        names = [text_of(c) for c in self.classes]
        waiting: list[tuple[TreeNode, int, str]] = [(root, -1, "") for root in self.roots]
        while waiting:
            node, above, value = waiting.pop()
            label = f"{node.attribute}?" if node.children else names[int(np.argmax(node.counts))]
            lines.append(f"    n{many} [label = {_quoted(label)}];")
            lines += [f"    n{above} -> n{many} [label = {_quoted(value)}];"] if above >= 0 else []
            below = [(c, many, node.called(v, words)) for v, c in zip(node.values, node.children, strict=True)]
            waiting.extend(reversed(below))
            many += 1
        return "\n".join([*lines, "}"])

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Trees:
        values = {str(a["attribute"]): tuple(a["values"]) for a in data["attributes"]}
        roots = tuple(_read(root, values) for root in data["trees"])
        return cls(tuple(data["classes"]), roots, data["answer"], float(data["noise"]), data["votes"])

    def summary(self, words: Words) -> str:
        nodes, leaves = sum(len(f.first) for f in self._flat), sum(int((f.first < 0).sum()) for f in self._flat)
        what = "a tree" if len(self.roots) == 1 else f"{len(self.roots)} trees"
        head = f"{what} of depth {self.depth}, {nodes} nodes, {leaves} of them leaves, {len(self.classes)} classes"
        names = [text_of(c) for c in self.classes]
        each = max(6, SHOWN // len(self.roots))
        lines = [line for root in self.roots for line in _lines(root, names, each, words)]
        return "\n".join([head, *lines])


def _read(data: Mapping[str, Any], values: Mapping[str, tuple[Value, ...]]) -> TreeNode:
    size = data.get("size")
    if "children" not in data:
        return TreeNode(np.array(data["counts"], dtype=float), size=size, leaves=int(data.get("leaves", 1)))
    below = tuple(_read(child, values) for child in data["children"])
    cuts = Cuts(tuple(map(float, data["edges"]))) if "edges" in data else None
    return _inner(data["attribute"], values[data["attribute"]], below, size, cuts)


class _Flat:
    """A tree as arrays: `asks[i]` is the attribute that node i asks (−1 at a leaf); its children stand from
    `first[i]` on, and `answers[i]` are the counts that speak for a row that ends there."""

    def __init__(self, root: TreeNode, names: Sequence[str], answer: str, noise: float) -> None:
        place = {name: i for i, name in enumerate(names)}
        nodes, answers, depths = [root], [root.counts], [0]
        confidence = [_confidence(root, noise)]
        asks: list[int] = []
        first: list[int] = []
        for i, node in enumerate(nodes):  # grows while it is walked: breadth first
            asks.append(place[node.attribute] if node.children else -1)
            first.append(len(nodes) if node.children else -1)
            for child in node.children:
                nodes.append(child)
                depths.append(depths[i] + 1)
                speaking, certainty = answers[i], confidence[i]
                if answer == "leaf":
                    speaking = child.counts if (child.counts > 0).any() else speaking
                elif answer == "margin":
                    speaking = child.counts if _margin(child) > 2 * noise * math.sqrt(child.leaves) else speaking
                elif _confidence(child, noise) > certainty:
                    speaking, certainty = child.counts, _confidence(child, noise)
                answers.append(speaking)
                confidence.append(certainty)
        self.asks, self.first = np.array(asks), np.array(first)
        self.answers: Floats = np.array(answers)
        self.depth = max(depths)


def _margin(node: TreeNode) -> float:
    two = np.sort(node.counts)[-2:]
    return float(two[-1] - two[0]) if len(node.counts) > 1 else math.inf


def _confidence(node: TreeNode, noise: float) -> float:
    counts, prior = np.maximum(node.counts, 0.0), max(1.0, noise * math.sqrt(node.leaves))
    return float((counts.max() + prior) / (counts.sum() + prior * len(counts)))


def _shares(counts: Floats) -> Floats:
    positive = np.maximum(counts, 0.0)
    total = positive.sum(axis=1, keepdims=True)
    shares: Floats = np.where(total > 0, positive / np.where(total > 0, total, 1.0), 1.0 / counts.shape[1])
    return shares


def _walk(root: TreeNode) -> Iterator[TreeNode]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def _lines(root: TreeNode, classes: Sequence[str], most: int, words: Words) -> list[str]:
    """The tree line by line, an indentation a level, cut after `most` lines. Where nothing was counted, as in a drawn
    tree, no shares are shown."""
    lines: list[str] = []
    waiting: list[tuple[int, str, TreeNode]] = [(0, "", root)]
    while waiting:
        if len(lines) == most:
            return [*lines, f"… and {sum(1 for _, _, node in waiting for _ in _walk(node))} nodes more"]
        level, prefix, node = waiting.pop()
        best = int(np.argmax(node.counts))
        ends = f"{node.attribute}?" if node.children else classes[best]
        counts = np.maximum(node.counts, 0.0)
        share = f"{counts[best] / counts.sum():.0%} {classes[best]}".replace("%", " %") if counts.any() else "no rows"
        lines.append(f"{'    ' * level}{prefix}{ends}" + (f"  ({share})" if node.leaves else ""))
        called = (f"{node.called(value, words)}: " for value in node.values)
        below = [(level + 1, text, child) for text, child in zip(called, node.children, strict=True)]
        waiting.extend(reversed(below))
    return lines


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def placed(attributes: Sequence[tuple[str, tuple[Value, ...]]], columns: Columns, rows: int) -> Positions:
    """Where each cell stands among its attribute's values, −1 where it is none: (attributes, at least 1; rows)."""
    at = np.full((max(1, len(attributes)), rows), -1, dtype=np.int64)
    for i, (name, values) in enumerate(attributes):
        if name in columns:
            at[i] = positions(columns[name], values)
    return at
