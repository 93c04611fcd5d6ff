"""Improves how a choice values its Options, `improved(choice)`: formulas of the features that predict what training
showed.

For each option the best formula of each complexity is judged on data sets that were left out of finding it, and the
complexity that explains most there is proposed. What values the option now stays unless it is beaten by more than one
standard error of the paired difference; and all stays where the new formulas choose worse. Reads the table of runs
alone. `block` writes a formula as a `predict`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from jostle.choice import USUAL, policies
from jostle.choice.formula_fits import Formula, Pool, front, pool_of, range_of
from jostle.choice.maker import ChoiceMaker
from jostle.choice.models import AnyModel, Array
from jostle.choice.policy import SINGLE_BEST
from jostle.choice.table import RunTable, UtilityScale
from jostle.diagnostics import refuse
from jostle.lazy import NDArray, np
from jostle.records import replace
from jostle.run.evaluator import At, Evaluator, builtin
from jostle.run.scope import Scope
from jostle.run.values import Function, Part, is_number, kind_name
from jostle.source import Source
from jostle.syntax import nodes as n
from jostle.syntax.parser import parse

SIZE = 5
"""The largest complexity of one term of a formula."""

Progress = Callable[[int, int], None]


class Judged(Struct, frozen=True):
    """A formula, and on data sets left out the variance that formulas of its complexity explain; `error`: the standard
    error of that over data sets. `explained` may be below 0: worse than the mean."""

    formula: Formula
    explained: float
    error: float


class OptionImprovement(Struct, frozen=True):
    """The formulas for one option by complexity, the simplest first, and what cross-validation prefers.

    `before` names what values the option now (`predict`, or the model), `explained` the variance that this explains as
    it stands; `shape` what it would on the best line through its values, and `model` what the program's model explains.
    `proposed`: the formula of the complexity that explains most on data sets left out. `gain` (`error`): how much more
    variance formulas explain on each data set, of the complexity that the others speak for, paired. `better`: whether
    it replaces `before`.
    """

    option: str
    before: str
    explained: float
    shape: float
    model: float
    formulas: tuple[Judged, ...]
    proposed: Judged
    gain: float
    error: float
    better: bool


class Regrets(Struct, frozen=True):
    """Mean regrets over data sets left out: with what values the options now, with the formulas that are kept (`after`)
    and with the program's model for all options; `single` of the single best option. `gain` (`error`): before − after,
    paired. `relative`: logarithms of error ÷ least error."""

    before: float
    after: float
    model: float
    single: float
    gain: float
    error: float
    relative: bool


class Improvement(Struct, frozen=True):
    """The outcome for one choice: each option, the regrets, the policy whose look was taken, and why nothing changes.

    `databases`: how many data sets, or groups of them, were left out in turn; `logarithmic`: utilities are errors, and
    formulas say the logarithm of the error. `stays`: "" where a formula is kept.
    """

    options: tuple[OptionImprovement, ...]
    regrets: Regrets
    policy: str
    databases: int
    logarithmic: bool
    stays: str


def improve(
    table: RunTable, model: AnyModel, predicts: policies.Predicts, progress: Progress | None = None, most: int = USUAL
) -> Improvement:
    """Formulas up to the complexity `most` for the options of a table of runs; `predicts` are the program's own.

    Raises `ValueError` where no feature is looked at, or fewer than two data sets were run.
    """
    if len({run.database for run in table.runs}) < 2:
        raise refuse("ValueError", "formulas are judged on data sets left out: a choice needs two or more to train on")
    scale = table.scale
    learner = policies.Learner(model, predicts, scale)
    candidate = _look(table, learner)
    view = policies.view_of(table, candidate, scale)
    columns = {n: view.x[:, k] for k, n in enumerate(candidate.columns) if n in table.features}
    columns = {name: values for name, values in columns.items() if np.ptp(values) > 0}
    if not columns:
        raise refuse("ValueError", "no feature varies over the training data: there is nothing to predict by",
                     help="name Features in `informed by {…}`")  # fmt: skip
    search = _Search(view, columns, scale, progress, most)
    alone = tuple(None for _ in table.options)
    now, learned = (_values(candidate, view, replace(learner, predicts=own)) for own in (predicts, alone))
    results = [search.option(k, name, "predict" if predicts[k] else str(model), now[:, k], learned[:, k])
             for k, name in enumerate(table.options)]  # fmt: skip
    after = np.column_stack([values for _, values in results])
    single = learner.cross_validate(policies.Candidate(SINGLE_BEST, 0.0, 0, ()), table)
    regret, stays = _compared(view, now, after, learned, policies.by_database(*single), scale), ""
    improved = [one for one, _ in results]
    if not any(one.better for one in improved):
        stays = "no formula explains more beyond one standard error"
    elif regret.gain < -regret.error:
        stays = "the formulas explain more, and choose worse"
        improved = [replace(one, better=False) for one in improved]
    return Improvement(tuple(improved), regret, candidate.name, len(policies.folds_of(view)), scale.logarithmic, stays)


def _look(table: RunTable, learner: policies.Learner) -> policies.Candidate:
    """The policy that looks at features with the least regret by cross-validation, as the choice is now."""
    learned = [one for one in policies.candidates(table, learner.predicts) if one.learned]
    if not learned:
        raise refuse("ValueError", "this choice looks at nothing, so there is nothing to predict by",
                     help="name Features in `informed by {…}`")  # fmt: skip
    if len(learned) == 1:
        return learned[0]
    losses = [policies.by_database(*learner.cross_validate(one, table)).mean() for one in learned]
    return learned[int(np.argmin(losses))]


def _values(candidate: policies.Candidate, view: policies.View, learner: policies.Learner) -> Array:
    """The value that is predicted of each option on the data sets left out: shape (n, options)."""
    values = np.zeros(view.y.shape)
    for mine in policies.folds_of(view):
        predictor, _ = learner.fit(candidate, view[~mine])
        values[mine] = learner.valued(candidate, predictor, view[mine])
    return values


def _scores(values: Array, scale: UtilityScale) -> Array:
    return -np.log(np.maximum(-values, scale.floor)) if scale.logarithmic else values


class _Search(Struct, dict=True):
    """The search for formulas over the rows of a view, with each data set left out in turn."""

    view: policies.View
    columns: dict[str, Array]
    scale: UtilityScale
    progress: Progress | None
    most: int
    done: int = 0

    def __post_init__(self) -> None:
        self.folds = policies.folds_of(self.view)
        self.ranges = {name: range_of(values) for name, values in self.columns.items()}
        inside = {name: np.clip(values, *self.ranges[name]) for name, values in self.columns.items()}
        self.pool: Pool = pool_of(inside, self.ranges, min(SIZE, self.most))

    def option(self, k: int, name: str, before: str, now: Array, model: Array) -> tuple[OptionImprovement, Array]:
        """The option's formulas, and its value on data sets left out by what would give it then.

        `now` are its values by what gives them at present, called `before`; `model` those by the program's model.
        """
        truth = self.view.y[:, k]
        target = -truth if self.scale.logarithmic else truth
        everywhere = np.ones(len(target), dtype=bool)
        fronts = [self._front(target, ~mine) for mine in self.folds]
        whole = self._front(target, everywhere)
        guesses = np.zeros((len(target), self.most + 1))
        for mine, formulas in zip(self.folds, fronts, strict=True):
            here = {column: values[mine] for column, values in self.columns.items()}
            for complexity in range(self.most + 1):
                guesses[mine, complexity] = formulas[_simpler(formulas, complexity)].values(here)
        values = -np.exp(np.minimum(guesses, 690.0)) if self.scale.logarithmic else guesses
        losses, old = self._losses(values, truth), self._losses(now[:, None], truth)[:, 0]
        new, after = np.array(old), np.array(now)
        for d, mine in enumerate(self.folds):  # what the other data sets speak for
            others, without = np.delete(losses, d, axis=0), np.delete(old, d)
            complexity = int(np.argmin(others.mean(axis=0)))
            new[d] = losses[d, complexity]
            if _gain(without, others[:, complexity])[2]:
                after[mine] = values[mine, complexity]
        variance = _variance(truth)
        judged = {c: self._judged(formula, losses[:, c], variance) for c, formula in whole.items()}
        best = int(np.argmin(losses.mean(axis=0)))
        gain, error, better = _gain(old, new)
        return OptionImprovement(
            name, before, 1 - float(old.mean()) / variance, self._shape(now, truth),
            1 - float(self._losses(model[:, None], truth).mean()) / variance, tuple(judged.values()),
            judged[_simpler(whole, best)], gain / variance, error / variance, better,
        ), after if better else now  # fmt: skip

    def _front(self, target: Array, rows: NDArray[np.bool_]) -> dict[int, Formula]:
        formulas = front(self.pool, self.columns, target, rows, self.ranges, self.most)
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.view.y.shape[1] * (len(self.folds) + 1))
        return formulas

    def _losses(self, values: Array, truth: Array) -> Array:
        """The mean squared error of scores on each group of data sets left out; `values` (n, many): (folds, many)."""
        wrong = (_scores(values, self.scale) - truth[:, None]) ** 2
        return np.array([wrong[mine].mean(axis=0) for mine in self.folds])

    def _judged(self, formula: Formula, losses: Array, variance: float) -> Judged:
        error = float(losses.std(ddof=1) / math.sqrt(len(losses)))
        return Judged(formula, 1 - float(losses.mean()) / variance, error / variance)

    def _shape(self, now: Array, truth: Array) -> float:
        """The variance that the best line through these values explains, the line of other data sets."""
        wrong = np.zeros(len(truth))
        for mine in self.folds:
            x, y = now[~mine] - now[~mine].mean(), truth[~mine]
            slope = float(x @ y) / max(float(x @ x), 1e-300)
            wrong[mine] = truth[mine] - y.mean() - slope * (now[mine] - now[~mine].mean())
        return 1 - float(np.mean([(wrong[mine] ** 2).mean() for mine in self.folds])) / _variance(truth)


def _variance(truth: Array) -> float:
    """The variance of scores; where that is nothing but rounding, a number which that is nothing beside."""
    return max(float(truth.var()), 1e-12 * max(1.0, float((truth**2).mean())))


def _simpler(formulas: dict[int, Formula], complexity: int) -> int:
    """The complexity of the best formula that is no more complex."""
    return max(c for c in formulas if c <= complexity)


def _gain(before: Array, after: Array) -> tuple[float, float, bool]:
    """The mean of before − after over data sets, its standard error, and whether it is beyond that."""
    gap = before - after
    error = float(gap.std(ddof=1) / math.sqrt(len(gap))) if len(gap) > 1 else math.inf
    return float(gap.mean()), error, bool(gap.mean() > error + 1e-12)


def _compared(
    view: policies.View, now: Array, after: Array, model: Array, single: Array, scale: UtilityScale
) -> Regrets:
    old, new, learned = (policies.by_database(view, policies.losses_of(view, values)) for values in (now, after, model))
    gain, error, _ = _gain(old, new)
    return Regrets(
        float(old.mean()), float(new.mean()), float(learned.mean()), float(single.mean()), gain, error,
        scale.logarithmic,
    )  # fmt: skip


FUNCTIONS = ("clamp", "exp", "log", "sqrt", "min", "max")
"""The built-in functions that such a block may call."""


def block(formula: Formula, logarithmic: bool, parameter: str = "F", indent: str = "") -> str:
    """A block with braces that gives the utility; `indent` is that of the line on which it begins.

    Where utilities are errors the formula says the logarithm of the error, and the block its negative exponential.
    Features stay within the ranges that they had in training, so that the block has a value whatever they are.
    """
    lines = [f"{name} = clamp({parameter}.{name}, {low:.6g}, {high:.6g})"
             for name, (low, high) in ((name, formula.ranges[name]) for name in formula.features)]  # fmt: skip
    lines.append(f"return -exp({formula.text()})" if logarithmic else f"return {formula.text()}")
    return "{\n" + "".join(f"{indent}    {line}\n" for line in lines) + indent + "}"


@builtin
def _improved(choice: Any, *, epsilon: object = None, at: At) -> ChoiceMaker:
    """The choice itself where its Options are valued well as they are. All is from public training data, and free."""
    interp, _ = at
    if not isinstance(choice, ChoiceMaker):
        raise refuse("TypeError", f"`improved` takes a ChoiceMaker, not {kind_name(choice)}")
    if choice.way != n.FEATURES:
        raise refuse("ValueError", f"a choice by {choice.way} predicts nothing by features")
    if not is_number(epsilon) or not 0 < epsilon <= 1e6:
        raise refuse("BadAmount", "an amount is a positive number", help="such as `improved(choice, epsilon = 0.1)`")

    table = choice.table(interp, "epsilon", float(epsilon))
    improvement = improve(table, choice.model, choice.bench(interp).predicts)
    options: list[Any] = []
    for option, one in zip(choice.parts.options, improvement.options, strict=True):
        run = option.run if isinstance(option, Part) else option
        text = block(one.proposed.formula, improvement.logarithmic)
        options.append(Part("Option", run, _predict(interp, text), one.option) if one.better else option)
    return choice.valued_by(interp, options) if not improvement.stays else choice


def _predict(interp: Evaluator, text: str) -> Function:
    """The `predict` of a block, which knows the built-in functions and nothing of the program."""
    (statement,) = parse(Source("a formula", f"made = Option (data) {{ return data }}\npredict (F) {text}\n")).body
    if not isinstance(statement, n.Assign):
        raise TypeError("the text of a formula is one assignment")
    function: Function = interp.eval(statement.value, Scope(interp.base)).predict
    return function
