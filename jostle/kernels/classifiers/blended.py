"""Several classifiers as one: the product of their probabilities, each to the power of a weight.

A tree says what a few attributes show together, and sums of one number an attribute what each shows by itself. Their
product ranks rows within a leaf, and trusts each as far as its weight goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.classifiers.codes import Cuts, Value
from jostle.kernels.classifiers.models import AdditiveClassifier, Classifier, Columns, Words, rows_of
from jostle.kernels.classifiers.treemodel import Trees
from jostle.kernels.errors import KernelError
from jostle.kernels.rowprograms.decisions import Cell, Cells, sums
from jostle.privacy.rows.expressions import Expression

LEAST = 1e-6
"""The least share of a class in a leaf that counts, of which there is a logarithm."""


@dataclass(frozen=True, eq=False)
class Blended(Classifier):
    """`parts`: sums of logarithms, or single trees, of the same classes; `weights`: a number from 0 for each."""

    parts: tuple[Classifier, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.parts or len(self.parts) != len(self.weights) or not all(0 <= w <= 100 for w in self.weights):
            raise KernelError("a blend has a weight of 0 to 100 for each of its classifiers")
        if len({tuple(part.classes) for part in self.parts}) != 1:
            raise KernelError("the classifiers of a blend have the same classes")
        for part in self.parts:
            additive = isinstance(part, AdditiveClassifier) and part.link == "softmax"
            if not additive and not (isinstance(part, Trees) and len(part.roots) == 1 and part.votes == "shares"):
                raise KernelError("a blend is of naive Bayes, or the like, and of single trees")

    @property
    def classes(self) -> tuple[Value, ...]:  # type: ignore[override]
        return self.parts[0].classes

    @property
    def attributes(self) -> dict[str, tuple[Value, ...] | Cuts]:  # type: ignore[override]
        union: dict[str, tuple[Value, ...] | Cuts] = {}
        for part in self.parts:
            union |= part.attributes
        return union

    def probabilities(self, columns: Columns) -> Floats:
        total = np.zeros((rows_of(columns), len(self.classes)))
        for part, weight in zip(self.parts, self.weights, strict=True):
            least = LEAST if isinstance(part, Trees) else np.finfo(float).tiny
            total += weight * np.log(np.maximum(part.probabilities(columns), least))
        shares = np.exp(total - total.max(axis=1, keepdims=True))
        result: Floats = shares / shares.sum(axis=1, keepdims=True)
        return result

    def scores(self, cells: Cells) -> Expression:
        base, tables = np.zeros(len(self.classes)), list[tuple[Cell, Floats]]()
        for part, weight in zip(self.parts, self.weights, strict=True):
            if isinstance(part, AdditiveClassifier):
                base = base + weight * part.base
                tables += [
                    (cells[name], weight * cells[name].table_of(values, table))
                    for name, (values, table) in part.weights.items() if name in cells
                ]  # fmt: skip
            elif isinstance(part, Trees):
                tables += [(end, weight * np.log(np.maximum(said, LEAST)).T) for end, said in part.ends(cells)]
        return sums(base, tables)

    def as_json(self) -> dict[str, Any]:
        parts = [part.as_json() for part in self.parts]
        return {"model": "blended", "classes": list(self.classes), "weights": list(self.weights), "parts": parts}

    def told(self, words: Words) -> str:
        lines = [f"a blend of {len(self.parts)} classifiers"]
        for part, weight in zip(self.parts, self.weights, strict=True):
            first, *rest = part.told(words).splitlines()
            lines += [f"    weight {weight:g}: {first}", *(f"    {line}" for line in rest)]
        return "\n".join(lines)


def blended_model(models: Sequence[Classifier], weights: Sequence[float]) -> Blended:
    """The classifier whose class probabilities are the product of those of `models`, each to the power of a weight."""
    return Blended(tuple(models), tuple(map(float, weights)))


def blended_from_json(data: Mapping[str, Any], read: Any) -> Blended:
    """What `as_json` wrote; `read` makes a classifier of the JSON of one."""
    return blended_model([read(part) for part in data["parts"]], data["weights"])
