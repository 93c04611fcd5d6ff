"""Regression trees as arrays, and how they grow: by greedy splits that lower the variance or the summed regret.

A tree is data: nothing numerical is loaded to choose with a stored one. Training sets are small (hundreds of rows),
where sorting each feature at each node and reading all splits off cumulative sums is faster than a library.

Split by variance: Breiman et al., Classification and Regression Trees (1984). By regret: the tree of Pythia
(Kotsogiannis et al., SIGMOD 2017), whose splits ask what the best single option on either side would lose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct, field

from jostle.lazy import Floats, NDArray, np
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


Array = Floats

REGRET_GAIN = 0.01
"""A split must save this much of the regret of the whole (else the tree follows noise)."""

VARIANCE_GAIN = 1e-4
"""A split must save this much of the squared error: little, since the options' common scale is most of it."""


def grow(x: Array, y: Array, depth: int, min_rows: int, by: str = "variance") -> Tree:
    """The tree over rows `x` (n, features) with outputs `y` (n, outputs), of at most `depth` tests.

    Every leaf keeps at least `min_rows` rows. By "variance" the splits lower the squared error of `y`. Where y holds
    a score for each option, those by "regret" lower Σ (best score − score of the leaf's best option), and those by
    "losses" the squared error of what every option scores less than the best.
    """
    losses = y if by == "variance" else y.max(axis=1, keepdims=True) - y
    growth = _Growth(x, y, min_rows, losses, by == "regret")
    growth.node(np.arange(len(x)), depth)
    return growth.tree()


def rows(tree: Tree, x: Array) -> Array:
    """The tree's outputs for each row of `x`: shape (n, outputs)."""
    return np.array(tree.value)[leaves(tree, x)]


def leaves(tree: Tree, x: Array) -> NDArray[np.intp]:
    """The node that each row of `x` comes to: shape (n,)."""
    feature, threshold = np.array(tree.feature), np.array(tree.threshold)
    left, right = np.array(tree.left), np.array(tree.right)
    at = np.zeros(len(x), dtype=np.intp)
    while True:
        inner = np.flatnonzero(feature[at] != LEAF)
        if not len(inner):
            return at
        here = at[inner]
        at[inner] = np.where(x[inner, feature[here]] <= threshold[here], left[here], right[here])


class _Growth(Struct):
    """Nodes in the order of a walk, left first; `least`, set at the root, is the gain that a split must reach."""

    x: Array
    y: Array
    min_rows: int
    losses: Array
    by_regret: bool
    least: float = -1.0
    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    members: list[NDArray[np.intp]] = field(default_factory=list)

    def node(self, members: NDArray[np.intp], depth: int) -> int:
        """Adds the node of these rows and all below it; its number."""
        mine = len(self.feature)
        self.feature.append(LEAF)
        self.threshold.append(0.0)
        self.left.append(LEAF)
        self.right.append(LEAF)
        self.members.append(members)
        split = self.split(members) if depth > 0 else None
        if split is not None:
            self.feature[mine], self.threshold[mine] = split
            goes_left = self.x[members, split[0]] <= split[1]
            self.left[mine] = self.node(members[goes_left], depth - 1)
            self.right[mine] = self.node(members[~goes_left], depth - 1)
        return mine

    def split(self, members: NDArray[np.intp]) -> tuple[int, float] | None:
        """The feature and threshold that gain most (the first of equals), or None where nothing gains."""
        n, losses = len(members), self.losses[members]
        if n < 2 * self.min_rows:
            return None
        if not self.by_regret:
            losses = losses - losses.mean(axis=0)  # the same gains, and no cancellation between large numbers
        total = losses.sum(axis=0)
        whole = float(total.min()) if self.by_regret else float((losses**2).sum())
        if self.least < 0:
            self.least = abs(whole) * (REGRET_GAIN if self.by_regret else VARIANCE_GAIN) + 1e-12
        x, first, last = self.x[members].T, self.min_rows, n - self.min_rows
        order = x.argsort(axis=1, kind="stable")
        values = x[np.arange(len(x))[:, None], order]
        lows, highs = values[:, first - 1 : last], values[:, first : last + 1]  # around a split: (features, splits)
        sums = losses.T[:, order[:, :last]].cumsum(axis=2)[..., first - 1 :]  # (outputs, features, splits)
        others = total[:, None, None] - sums
        if self.by_regret:
            gains = whole - np.minimum.reduce(sums, axis=0) - np.minimum.reduce(others, axis=0)
        else:
            k = np.arange(first, last + 1)
            gains = (sums**2 / k + others**2 / (n - k)).sum(axis=0)
        gains = np.where(lows < highs, gains, -np.inf)
        best, best_split = self.least, None
        for f, top in enumerate(gains.argmax(axis=1).tolist()):
            if gains[f, top] > best * (1 + 1e-9):
                low, high = float(lows[f, top]), float(highs[f, top])
                middle = low + (high - low) / 2
                best, best_split = float(gains[f, top]), (f, middle if middle < high else low)
        return best_split

    def tree(self) -> Tree:
        groups = [self.y[m] for m in self.members]
        means = np.array([np.add.reduce(g, axis=0) / len(g) for g in groups])
        squares = [np.add.reduce((g - mean) ** 2, axis=0) / len(g) for g, mean in zip(groups, means, strict=True)]
        spreads = np.sqrt(np.array(squares))
        spreads = np.where(spreads > 1e-12 * np.abs(means), spreads, 0.0)  # what is only rounding is taken for 0
        return Tree(
            tuple(self.feature), tuple(self.threshold), tuple(self.left), tuple(self.right),
            tuple(map(tuple, means.tolist())), tuple(map(len, groups)), tuple(map(tuple, spreads.tolist())),
        )  # fmt: skip
