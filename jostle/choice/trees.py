"""A regression tree as arrays: data that can be read and used without the code that grew it.

Plain Python; no numerical library is needed to choose with a stored tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from jostle.records import as_dict

LEAF = -1


class Step(Struct, frozen=True):
    """One test on the way down: `went` is `<=` or `>`."""

    feature: str
    threshold: float
    value: float
    went: str

    def as_json(self) -> dict[str, object]:
        return as_dict(self)


class Tree(Struct, frozen=True):
    """Node i sends x to `left[i]` when x[feature[i]] <= threshold[i], else to `right[i]`; node 0 is the root.

    `feature[i]` is −1 at a leaf. `value[i][k]` is the mean of output k over the `n[i]` training rows of the node,
    `spread[i][k]` their standard deviation (0 for a single row).
    """

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    value: tuple[tuple[float, ...], ...]
    n: tuple[int, ...]
    spread: tuple[tuple[float, ...], ...]

    def leaf(self, x: Sequence[float]) -> int:
        at = 0
        while self.feature[at] != LEAF:
            at = self.left[at] if x[self.feature[at]] <= self.threshold[at] else self.right[at]
        return at

    def path(self, x: Sequence[float], names: Sequence[str]) -> tuple[Step, ...]:
        """The tests that `x` meets, in the order of `names`."""
        steps, at = [], 0
        while (f := self.feature[at]) != LEAF:
            down = x[f] <= self.threshold[at]
            steps.append(Step(names[f], self.threshold[at], x[f], "<=" if down else ">"))
            at = self.left[at] if down else self.right[at]
        return tuple(steps)

    def lines(self, names: Sequence[str], leaf: Callable[[int], str], at: int = 0, indent: str = "") -> list[str]:
        """The tree as text, a line for each branch; `leaf` says what stands at a leaf."""
        if self.feature[at] == LEAF:
            return [f"{indent}{leaf(at)}"]
        lines = []
        for sign, child in (("<=", self.left[at]), (">", self.right[at])):
            test = f"{indent}{names[self.feature[at]]} {sign} {self.threshold[at]:.4g}"
            if self.feature[child] == LEAF:
                lines.append(f"{test}: {leaf(child)}")
            else:
                lines += [test, *self.lines(names, leaf, child, indent + "    ")]
        return lines

    def as_json(self) -> dict[str, object]:
        return as_dict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Tree:
        return Tree(**{name: tuple(map(tuple, v) if v and isinstance(v[0], list) else v) for name, v in data.items()})
