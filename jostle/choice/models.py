"""The models that a program may name, the predictors that fitting gives, and regression trees as arrays.

A fitted model is data: one ensemble of trees for each option, or one for all, that predicts the utility of every option
from the features. Nothing numerical is loaded to choose with a stored one. Training sets are small (hundreds of rows),
where sorting each feature at each node and reading all splits off cumulative sums is faster than a library.

Split by variance: Breiman et al., Classification and Regression Trees (1984). By regret: the tree of Pythia
(Kotsogiannis et al., SIGMOD 2017), whose splits ask what the best single option on either side would lose.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from jostle.choice.table import Predict, UtilityScale
from jostle.diagnostics import refuse
from jostle.lazy import Floats, NDArray, np
from jostle.records import replace

if TYPE_CHECKING:
    Groups = NDArray[np.intp]
else:
    Groups = object

LEAF = -1
DEEPEST = 12
"""The most tests of a tree, one below another."""


class Step(Struct, frozen=True):
    """One test on the way down: `went` is `<=` or `>`."""

    feature: str
    threshold: float
    value: float
    went: str


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

    def need_sound(self, columns: int, outputs: int) -> None:
        """Raises `ValueError` where a row of so many columns may come to no leaf, or to one without all outputs."""
        depths = [0] * len(self.feature)
        for at, (feature, left, right) in enumerate(zip(self.feature, self.left, self.right, strict=True)):
            if feature != LEAF:
                if not (0 <= feature < columns and at < min(left, right)) or depths[at] >= DEEPEST:
                    raise ValueError("no tree")
                depths[left] = depths[right] = depths[at] + 1
        nodes = zip(self.threshold, self.value, self.spread, self.n, strict=True)
        widths = {len(numbers) for _, value, spread, _ in nodes for numbers in (value, spread)}
        if len(depths) != len(self.value) or widths != {outputs}:
            raise ValueError("no tree")


Array = Floats

REGRET_GAIN = 0.01
"""A split must save this much of the regret of the whole (else the tree follows noise)."""

VARIANCE_GAIN = 1e-4
"""A split must save this much of the squared error: little, since the options' common scale is most of it."""


def grow(x: Array, y: Array, depth: int, min_rows: int, by: str = "variance") -> Tree:
    """The tree over rows `x` (n, features) with outputs `y` (n, outputs), of at most `depth` tests.

    Every leaf keeps at least `min_rows` rows. By "variance" the splits lower the squared error of `y`. Where y holds
    a score for each option, those by "regret" lower Σ (best score − score of the leaf's best option). Those by
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


REGRET, LOSSES = "regret", "losses"
"""What the splits of a tree for all options may lower."""

Fit = Callable[[list[tuple[dict[str, float], float]]], Predict]


class Model(Struct, frozen=True):
    """A model by name. `min_leaf` counts training instances (a data set at a scale), not rows.

    None: a tenth of the instances, and at least two (fewer follow the noise of single runs). `exchange`: trained once
    for all epsilons (`choice.table`). `by`: what the splits of a forest lower (`forest`).
    """

    kind: str
    depth: int
    min_leaf: int | None
    trees: int = 1
    exchange: bool = False
    by: str = REGRET

    def least(self, instances: int) -> int:
        """The instances that a leaf must keep, of so many."""
        return self.min_leaf if self.min_leaf is not None else max(2, instances // 10)

    def __str__(self) -> str:
        leaf = f", min_leaf = {self.min_leaf}" if self.min_leaf is not None else ""
        trees = f", trees = {self.trees}" if self.kind == "forest" else ""
        exchange = ", exchange = true" if self.exchange else ""
        by = "" if self.by == REGRET else f', by = "{self.by}"'
        return f"{self.kind}(depth = {self.depth}{leaf}{trees}{exchange}{by})"


class UserModel(Struct, frozen=True):
    """The program's own model: from pairs of (features, utility) to a function that predicts one from the other.

    One is fitted for each option. It lives in memory only: nothing of it is stored, and no two are the same.
    """

    name: str
    fit: Fit
    serial: int = field(default_factory=itertools.count(1).__next__)

    def __str__(self) -> str:
        return self.name


AnyModel = Model | UserModel


def tree(depth: float = 3, min_leaf: float | None = None, exchange: bool = False) -> Model:
    """One regression tree for each option, as in the thesis (section 3.1). `depth`: 1 to 12 tests."""
    return Model("tree", _whole("depth", depth, DEEPEST), _leaf(min_leaf), exchange=_flag(exchange))


def regret_tree(depth: float = 3, min_leaf: float | None = None, exchange: bool = False) -> Model:
    """One tree for all options, whose splits lower the summed regret (after Pythia, SIGMOD 2017)."""
    return Model("regret_tree", _whole("depth", depth, DEEPEST), _leaf(min_leaf), exchange=_flag(exchange))


def forest(
    depth: float = 4, min_leaf: float | None = None, trees: float = 15, exchange: bool = False, by: str = REGRET
) -> Model:  # fmt: skip
    """The mean of `trees` (1 to 500) trees for all options, each on a bootstrap of the training instances.

    `by`: "regret", splits lower the summed regret, as those of `regret_tree`, or "losses", they lower the variance of
    what every option loses to the best. A split by regret must change which option is best on one side; where two
    splits together would, and neither alone, only losses find them.
    """
    if by not in (REGRET, LOSSES):
        raise refuse("ValueError", f'a forest splits by "{REGRET}" or by "{LOSSES}"', help=f'write by = "{LOSSES}"')
    leaf, many = _leaf(min_leaf), _whole("trees", trees, 500)
    return Model("forest", _whole("depth", depth, DEEPEST), leaf, many, _flag(exchange), by)


def _leaf(min_leaf: float | None) -> int | None:
    return None if min_leaf is None else _whole("min_leaf", min_leaf, 10**6)


def _flag(value: bool) -> bool:
    if not isinstance(value, bool):
        raise refuse("TypeError", "`exchange` of a model is true or false")
    return value


def _whole(name: str, value: float, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refuse("TypeError", f"`{name}` of a model is a number", help=f"write a whole number from 1 to {most}")
    if not 1 <= value <= most or value != int(value):
        raise refuse("ValueError", f"`{name}` of a model is a whole number from 1 to {most}, not {value:g}")
    return int(value)


class TreeEnsembles(Struct, frozen=True):
    """Ensembles of trees over scores: one for each option (empty if it is not learned), or one for all `together`."""

    scale: UtilityScale
    columns: tuple[str, ...]
    options: int
    ensembles: tuple[tuple[Tree, ...], ...]
    together: bool

    def _place(self, option: int) -> tuple[tuple[Tree, ...], int]:
        """The trees that speak of an option, and which of their outputs."""
        return (self.ensembles[0], option) if self.together else (self.ensembles[option], 0)

    def predict(self, x: Sequence[float]) -> list[tuple[float, float]]:
        """For each option the utility and its standard deviation among like training runs, at features `x`."""
        predictions = []
        for option in range(self.options):
            trees, output = self._place(option)
            leaves = [(t, t.leaf(x)) for t in trees]
            many = max(len(leaves), 1)
            score = sum(t.value[leaf][output] for t, leaf in leaves) / many
            spread = sum(t.spread[leaf][output] for t, leaf in leaves) / many
            utility = self.scale.utility(score)
            predictions.append((utility, self.scale.width(utility, spread)))
        return predictions

    def rows(self, x: Array) -> Array:
        """The utilities for rows of features: shape (n, options)."""
        outputs = [np.mean([rows(t, x) for t in trees], axis=0) if trees else np.zeros((len(x), 1))
                   for trees in self.ensembles]  # fmt: skip
        scores = outputs[0] if self.together else np.hstack(outputs)
        utilities: Array = -np.exp(np.minimum(-scores, 690.0)) if self.scale.logarithmic else scores
        return utilities

    def path(self, option: int, x: Sequence[float]) -> tuple[Step, ...]:
        """The tests on the way to what is said of an option; none for a forest, whose trees differ."""
        trees, _ = self._place(option)
        return trees[0].path(x, self.columns) if len(trees) == 1 else ()

    def need_sound(self, columns: tuple[str, ...], options: int) -> None:
        """Raises `ValueError` where this predicts nothing for these columns and so many options."""
        if (self.columns, self.options, len(self.ensembles)) != (columns, options, 1 if self.together else options):
            raise ValueError("no predictor")
        for tree in itertools.chain(*self.ensembles):
            tree.need_sound(len(columns), options if self.together else 1)


class Functions(Struct, frozen=True):
    """The predictors that a user's model returned, one for each option (None where an option predicts itself)."""

    columns: tuple[str, ...]
    functions: tuple[Predict | None, ...]

    def predict(self, x: Sequence[float]) -> list[tuple[float, float]]:
        features = dict(zip(self.columns, x, strict=True))
        return [(f(features) if f else 0.0, 0.0) for f in self.functions]

    def rows(self, x: Array) -> Array:
        return np.array([[u for u, _ in self.predict(row.tolist())] for row in x], dtype=np.float64)

    def path(self, option: int, x: Sequence[float]) -> tuple[Step, ...]:
        return ()


Predictor = TreeEnsembles | Functions
"""A fitted model, by features in the order of its `columns`."""


def constant(scale: UtilityScale, scores: Sequence[float], spreads: Sequence[float], n: int) -> TreeEnsembles:
    """The predictor of the single best option: the same scores for all features."""
    leaf = Tree((-1,), (0.0,), (-1,), (-1,), (tuple(scores),), (n,), (tuple(spreads),))
    return TreeEnsembles(scale, (), len(scores), ((leaf,),), True)


def prune_leaves(fitted: TreeEnsembles, x: Array, y: Array, database: Groups) -> TreeEnsembles:
    """The fitted trees for all options together, with leaves that do not convince saying what the root says.

    A leaf of a regret tree holds few data sets, and of several options one is always the best among them by chance. So
    what a leaf says is kept if its best option is better there than the single best one beyond one standard error, over
    data sets; else it says what holds for all data, and the single best option is taken.

    `x` (n, columns) and `y` (n, options) are what they were fitted on, `database` (n,) the data set of each row.
    """
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
    sums: dict[int, Array] = {}  # of an option, in each leaf over each data set
    for leaf in np.flatnonzero(rows.any(axis=1)).tolist():
        best = int(np.argmax(value[leaf]))
        if best == single:
            continue
        for option in {best, single} - sums.keys():
            totals = np.bincount(place, weights=y[:, option], minlength=size)
            sums[option] = totals.astype(np.float64).reshape(-1, many)
        here = np.flatnonzero(rows[leaf])
        counts = rows[leaf, here]
        gain = sums[best][leaf, here] / counts - sums[single][leaf, here] / counts
        if len(gain) > 1 and gain.mean() <= gain.std(ddof=1) / np.sqrt(len(gain)):
            value[leaf] = value[0]
    return replace(tree, value=tuple(value))
