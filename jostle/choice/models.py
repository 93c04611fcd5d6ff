"""The models that a program may name, and the predictors that fitting one gives.

A fitted model is data: one ensemble of trees for each option, or one for all. It predicts the utility of every
option from the features and knows nothing of databases, epsilon or cost. NumPy is needed to fit, not to predict.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field

from jostle.choice.bench import Predict
from jostle.choice.table import UtilityScale
from jostle.choice.trees import Step, Tree
from jostle.diagnostics import refuse
from jostle.lazy import np
from jostle.records import as_dict

if TYPE_CHECKING:
    from jostle.choice.trees import Array

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
    return Model("tree", _whole("depth", depth, 12), _leaf(min_leaf), exchange=_flag(exchange))


def regret_tree(depth: float = 3, min_leaf: float | None = None, exchange: bool = False) -> Model:
    """One tree for all options, whose splits lower the summed regret (after Pythia, SIGMOD 2017)."""
    return Model("regret_tree", _whole("depth", depth, 12), _leaf(min_leaf), exchange=_flag(exchange))


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
    return Model("forest", _whole("depth", depth, 12), leaf, many, _flag(exchange), by)


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


class Predictor(Protocol):
    """A fitted model. `x` and the columns of `rows` follow the columns it was fitted on."""

    def predict(self, x: Sequence[float]) -> list[tuple[float, float]]:
        """For each option the utility and its standard deviation among like training runs."""
        ...

    def rows(self, x: Array) -> Array:
        """The utilities for rows of features: shape (n, options)."""
        ...

    def path(self, option: int, x: Sequence[float]) -> tuple[Step, ...]: ...


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
        from jostle.choice.trees import rows

        outputs = [np.mean([rows(t, x) for t in trees], axis=0) if trees else np.zeros((len(x), 1))
                   for trees in self.ensembles]  # fmt: skip
        scores = outputs[0] if self.together else np.hstack(outputs)
        utilities: Array = -np.exp(np.minimum(-scores, 690.0)) if self.scale.logarithmic else scores
        return utilities

    def path(self, option: int, x: Sequence[float]) -> tuple[Step, ...]:
        """The tests on the way to what is said of an option; none for a forest, whose trees differ."""
        trees, _ = self._place(option)
        return trees[0].path(x, self.columns) if len(trees) == 1 else ()

    def as_json(self) -> dict[str, object]:
        return as_dict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> TreeEnsembles:
        ensembles = tuple(tuple(Tree.from_json(t) for t in trees) for trees in data["ensembles"])
        scale = UtilityScale.from_json(data["scale"])
        return TreeEnsembles(scale, tuple(data["columns"]), data["options"], ensembles, data["together"])


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


def constant(scale: UtilityScale, scores: Sequence[float], spreads: Sequence[float], n: int) -> TreeEnsembles:
    """The predictor of the single best option: the same scores for all features."""
    leaf = Tree((-1,), (0.0,), (-1,), (-1,), (tuple(scores),), (n,), (tuple(spreads),))
    return TreeEnsembles(scale, (), len(scores), ((leaf,),), True)
