"""The tables of all pairs of a calibrated model's variables, exactly.

Within a bag of the junction tree a pair's table is a margin of the bag's. From there the joint table of a variable and
a separator goes on to every other bag: P(a, U) = Σ_S P(a, S)·P(U | S), once for each variable and edge.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.graphical.calibrate import Calibrated
from jostle.kernels.graphical.domain import Clique


class PairTables:
    """`table(clique)`: the probabilities over a variable, a pair, or a clique that lies within one bag."""

    def __init__(self, calibrated: Calibrated) -> None:
        self._bags = [bag.variables for bag in calibrated.plan.bags]
        self._joints = calibrated.joints()
        self._edges: list[list[tuple[int, Clique]]] = [[] for _ in self._bags]
        for i, bag in enumerate(calibrated.plan.bags):
            if bag.above is not None:
                shared = bag.variables[bag.own :]
                self._edges[i].append((bag.above.bag, shared))
                self._edges[bag.above.bag].append((i, shared))
        self._within: dict[int, list[int]] = {}
        for i in sorted(range(len(self._bags)), key=lambda i: self._joints[i].size):
            for v in self._bags[i]:
                self._within.setdefault(v, []).append(i)
        self._margins: dict[tuple[int, Clique], Floats] = {}
        self._conditionals: dict[tuple[int, Clique, Clique], tuple[Clique, Floats]] = {}
        self._pairs: dict[Clique, Floats] = {}
        for v in sorted(self._within):
            self._spread(v)

    def table(self, clique: Clique) -> Floats:
        """Of a clique in the order of its variables."""
        if len(clique) == 2 and clique not in self._pairs:
            return np.multiply.outer(self.table(clique[:1]), self.table(clique[1:]))
        if len(clique) == 2:
            return self._pairs[clique]
        bag = next(i for i in self._within[clique[0]] if set(clique) <= set(self._bags[i]))
        return self._margin(bag, clique)

    def _margin(self, bag: int, clique: Clique) -> Floats:
        at = (bag, clique)
        if at not in self._margins:
            axes = [self._bags[bag].index(v) for v in clique]
            self._margins[at] = _einsum([self._joints[bag]], [list(range(len(self._bags[bag])))], axes)
        return self._margins[at]

    def _conditional(self, bag: int, given: Clique, of: Clique) -> tuple[Clique, Floats]:
        """(its variables, `given` first; P(of | given))."""
        at = (bag, given, of)
        if at not in self._conditionals:
            both = given + tuple(v for v in of if v not in given)
            joint, below = self._margin(bag, both), self._margin(bag, given)
            self._conditionals[at] = (
                both, joint / np.maximum(below, 1e-300).reshape(below.shape + (1,) * (joint.ndim - below.ndim))
            )  # fmt: skip
        return self._conditionals[at]

    def _spread(self, a: int) -> None:
        """The tables of `a` with every later variable that it is connected with."""
        seen, paired = set(self._within[a]), {a}
        waiting: list[tuple[int, Clique, Floats]] = []
        for i in self._within[a]:
            for b in self._bags[i]:
                if b not in paired:
                    paired.add(b)
                    if a < b:
                        self._pairs[a, b] = self._margin(i, (a, b))
            for j, shared in self._edges[i]:
                if j not in seen:
                    seen.add(j)
                    waiting.append((j, shared, self._margin(i, (a, *shared))))
        while waiting:
            i, given, joint = waiting.pop()
            for b in self._bags[i]:
                if b not in paired:
                    paired.add(b)
                    if a < b:
                        self._pairs[a, b] = self._carried(i, given, joint, (b,))
            for j, shared in self._edges[i]:
                if j not in seen:
                    seen.add(j)
                    waiting.append((j, shared, self._carried(i, given, joint, shared)))

    def _carried(self, bag: int, given: Clique, joint: Floats, of: Clique) -> Floats:
        """P(a, of) of P(a, given), `a` being outside of the bag and first."""
        both, conditional = self._conditional(bag, given, of)
        place = {v: i + 1 for i, v in enumerate(both)}
        return _einsum(
            [joint, conditional], [[0, *(place[v] for v in given)], [place[v] for v in both]],
            [0, *(place[v] for v in of)],
        )  # fmt: skip


def _einsum(tables: list[Floats], axes: list[list[int]], out: list[int]) -> Floats:
    operands: list[Any] = [part for pair in zip(tables, axes, strict=True) for part in pair]
    result: Floats = np.einsum(*operands, out)
    return result
