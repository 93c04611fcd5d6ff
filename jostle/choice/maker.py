"""ChoiceMakers: values that pick an Option and run it, paying for what they look at.

On private data a call's allotment pays for the features that the policy needs and leaves the rest to the Option.
On public data a policy trained without noise chooses, and nothing is spent. Every call is an event with its choice,
features and context.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from jostle.accounting.amounts import Amount, as_float
from jostle.accounting.composition import quanta
from jostle.choice import point
from jostle.choice import table as tab
from jostle.choice.explain import explain, meaning, tree_records
from jostle.choice.learning import learn, runs_of, training_setting, within
from jostle.choice.models import AnyModel, Model, UserModel, forest, regret_tree, tree
from jostle.choice.policy import AGAIN, Decision, Policy, Store
from jostle.choice.program import ProgramBench, public_only, validated
from jostle.diagnostics import refuse
from jostle.privacy.kernel.exposures import Exposures
from jostle.records import replace
from jostle.resources import KEEPS
from jostle.run.arguments import left_of_allotment
from jostle.run.evaluator import At, Evaluator, builtin
from jostle.run.faults import exposures_of
from jostle.run.interpreter import Interpreter
from jostle.run.margins import margins
from jostle.run.scope import Scope
from jostle.run.values import REQUIRED, Builtin, Function, Part, Record, is_number, kind_name
from jostle.source import Span
from jostle.syntax import nodes as n

if TYPE_CHECKING:
    from jostle.choice.evaluation import ChoiceReport

Progress = Callable[[str, int, int], None]

FIRST_SETS, MOST_SETS = 24, 96
"""Training data sets that a function of their number makes at first, and at most, while what decides is chance."""


class ChoiceMaker:
    """The value of a `MkChoiceMaker`. Policies are trained when they are first needed, once for each bracket of ε."""

    def __init__(
        self,
        interp: Evaluator,
        parts: tab.ChoiceParts,
        model: AnyModel,
        share: float | None,
        span: Span | None,
        progress: Progress | None,
        data: Function | None = None,
        way: str = n.FEATURES,
    ) -> None:
        """`data`: a function that gives the training data when they are needed, in place of those of `parts`; one of a
        number gives that data set, and training makes as many as settle what is learned. `way`: what it chooses by;
        only by features there must be training data. `share`: of a call's amount for the private features; None where
        cross-validation finds it."""
        self.name, self.way = "", way
        self.parts, self.model, self.share, self._span = parts, model, share, span
        self._progress, self._data = progress, data
        self._store = Store()
        self._policies: list[Policy] = []
        self._benches: dict[tuple[str, int], ProgramBench] = {}
        self._kernel, self._public = interp.kernel, interp.data
        self.shipped: Callable[[], Policy | None] = lambda: None
        self.steady: tuple[int, float] | None = None
        self._steadied: dict[int, tuple[Policy, Policy]] = {}
        if parts.databases:
            self.bench(interp, "epsilon", 1)

    def jostle_call(
        self, interp: Evaluator, args: Sequence[object], keywords: dict[str, object], span: Span | None
    ) -> object:
        """`choice(data)`: features, prediction, and the chosen Option's answers."""
        args = [*args, *keywords.values()]
        if interp.planned is not None:
            interp.planned.append((self, list(args), self._whole(interp, exposures_of(args)), span))
        if self.way != n.FEATURES:
            return self._validate(interp, args, span)
        return self._decide(interp, args, span, self._run)

    def _validate(self, interp: Evaluator, args: Sequence[object], span: Span | None) -> object:
        """Runs every Option, and gives the answers that a score picks, all within one `choice` event."""
        data = tab.only_record(args, self.parts.reads, self.parts.databases)
        exposures = exposures_of([data])
        unit, whole = self._whole(interp, exposures)
        with interp.kernel.events.within("choice", self.name or "choice", span) as event:
            picked = validated(interp, self.parts, self.way, self.share, data, span)
            chosen = self.parts.option_names[picked.index]
            event.update({"chosen": chosen, "way": self.way, "why": picked.why, "share": picked.share, unit: whole})
            if whole is not None:
                event["spent"] = whole - left_of_allotment(interp, exposures, unit)
        return picked.answers

    def _run(self, interp: Evaluator, decision: Decision, data: object, span: Span | None) -> object:
        return tab.public_answers(interp, self.parts.options[decision.index], decision.chosen, data, span)

    @property
    def jostle_fields(self) -> dict[str, object]:
        def pick(data: object, *, at: At) -> object:
            interp, span = at
            if self.way != n.FEATURES:
                message = f"a choice by {self.way} runs every Option, and picks among their answers"
                raise refuse("TypeError", message, help="call it: `answers = choose(data) with epsilon 1`")
            return self._decide(interp, [data], span, lambda _, decision, *rest: self.parts.options[decision.index])

        def runs(epsilon: object = None, *, at: At) -> object:
            from jostle.choice import evaluation

            return evaluation.runs(self.table(at[0], "epsilon", self._amount(epsilon)))

        def evaluate(epsilon: Any = None, only: Any = None, *, delta: Any = None, at: At) -> Any:
            from jostle.choice import evaluation

            names = [str(name) for name in only] if only is not None else []
            return evaluation.as_record(self.report(at[0], "epsilon", self._amount(epsilon), names, delta))

        return {
            "pick": Builtin("pick", pick, sees_handles=True, wants_call=True),
            "runs": Builtin("runs", runs, wants_call=True), "evaluate": Builtin("evaluate", evaluate, wants_call=True),
            "options": list(self.parts.option_names), "features": list(self.parts.feature_names),
        }  # fmt: skip

    @property
    def jostle_parts(self) -> list[object]:
        parts, data = self.parts, self.parts.databases if self._data is None else [self._data]
        return [*parts.options, *parts.features, parts.utility, *data]

    def jostle_explain(self) -> str:
        shipped = self.shipped()
        if shipped is not None:
            return explain(shipped)
        if self.way != n.FEATURES:
            options = ", ".join(self.parts.option_names)
            return (
                f"by {self.way}: {options} all run with an equal part each, and a noisy score picks among their answers"
            )
        if not self._policies:
            return "nothing was learned yet: a ChoiceMaker is trained at its first call"
        return "\n\n".join(map(explain, self._policies))

    def _decide(
        self, interp: Evaluator, args: Sequence[object], span: Span | None, then: Callable[..., object]
    ) -> object:
        """Decides and goes on with `then`, all within one `choice` event."""
        data = tab.only_record(args, self.parts.reads, self.parts.databases)
        exposures = exposures_of([data])
        unit, whole = self._whole(interp, exposures)
        stability = max((e.weighted_stability for e in exposures), default=1)
        policy = self.policy(interp, unit, stability, whole)
        with interp.kernel.events.within("choice", self.name or "choice", span) as event:
            look = partial(self._look, interp, data, exposures, unit, whole, span)
            if policy is self.shipped():
                amount = whole / stability if whole is not None else None
                policy, features = _look_within(policy, partial(look, policy), amount, unit)
            else:
                amount, features = whole, look(policy, policy.needs)
            values, share = _values(features), policy.share
            decision = policy.choose(values, amount)
            if policy.further is not None and decision.chosen == AGAIN:
                policy = policy.further
                again = look(policy, _private_needs(policy))
                features, values, share = [*features, *again], values | _values(again), share + policy.share
                decision = policy.choose(values, amount)
            event.update(
                features=features, **decision.as_json(),
                model=policy.model, policy=policy.name, why=policy.why, share=share, trees=tree_records(policy),
                along=policy.along(values, amount, decision), otherwise=policy.at_other_amounts(values, amount),
            )  # fmt: skip
            event[unit] = whole
            outcome = then(interp, decision, data, span)
            if whole is not None:
                event["spent"] = whole - left_of_allotment(interp, exposures, unit)
        return outcome

    def _whole(self, interp: Evaluator, exposures: Exposures) -> tuple[str, float | None]:
        """The unit and amount of a call on private data; on public data there is no amount."""
        if not exposures:
            return "epsilon", None
        point.need_allotment(interp, exposures, self.name)
        unit = exposures[0].source.measure.unit
        whole = left_of_allotment(interp, exposures, unit)
        if whole <= 0:
            raise refuse("BudgetExceeded", "nothing is left of the allotment for this choice")
        return unit, whole

    def _look(
        self, interp: Evaluator, data: object, exposures: Exposures, unit: str, whole: float | None, span: Span | None,
        policy: Policy, names: Sequence[str],
    ) -> list[dict[str, object]]:  # fmt: skip
        """Features of these names: name, value, cost, and the `error` of their noise where it is known. The private
        ones among those that the policy needs share its part equally."""
        if whole is None:
            with interp.kernel.allot(None, None):
                return [self._feature(interp, name, data) | {unit: 0.0} for name in names]
        paying, out = _private_needs(policy), []
        for name in names:
            with interp.kernel.events.within("feature", name, span) as event:
                if name in paying:
                    each = Amount(unit, quanta(whole * policy.share / len(paying), unit))
                    with interp.kernel.allot(each, span, exposures):
                        feature = self._feature(interp, name, data) | {unit: as_float(each.value)}
                else:
                    feature = self._feature(interp, name, data) | {unit: 0.0}
                event.update({key: value for key, value in feature.items() if key not in ("name", "means")})
            out.append(feature)
        return out

    def _feature(self, interp: Evaluator, name: str, data: object) -> dict[str, object]:
        feature = self.parts.features[self.parts.feature_names.index(name)]
        value = interp.call(feature, [data])
        number, margin = tab.number_from(value, f"the Feature `{name}`"), margins(value)
        noise = {} if margin is None else {"error": margin["error"]}
        return {"name": name, "value": number, "means": meaning(feature), **noise}

    def policy(self, interp: Evaluator, unit: str, stability: int, epsilon: float | None) -> Policy:
        """The policy for calls with about this amount; it is trained where none is stored."""
        policy = self.shipped() or self._steady(self._settled(interp, unit, stability, epsilon))
        if all(policy is not other for other in self._policies) and not interp.quiet:  # nor in a run or a training
            self._policies.append(policy)
            interp.kernel.events.emit("train", self.name or "choice", self._span, **tab.train_event(policy.table))
        return policy

    def _settled(self, interp: Evaluator, unit: str, stability: int, epsilon: float | None) -> Policy:
        """The policy, learned from twice as many data sets while what decides is chance and a function makes them."""
        while True:
            policy = learn(
                self.bench(interp, unit, stability), model=self.model, share=self.share, epsilon=epsilon,
                store=self._store, progress=self._teller("training"), workers=self.workers,
            )  # fmt: skip
            many = len(self.parts.databases)
            if not (self._numbered and policy.unsettled and many < MOST_SETS):
                return policy
            self._make(interp, min(MOST_SETS, 2 * many))

    @property
    def _numbered(self) -> bool:
        """Whether the training data are made by a function of their number."""
        return self._data is not None and any(default is REQUIRED for _, default in self._data.params)

    def _make(self, interp: Evaluator, many: int) -> None:
        """Makes the training data: the first `many` by a function of their number, else all that the function gives."""
        with public_only(interp):
            if self._numbered:
                data = [interp.call(self._data, [number]) for number in range(1, many + 1)]
            else:
                data = interp.call(self._data, [])
        self.parts = replace(self.parts, databases=point.training_data(data))
        self._benches.clear()

    def _steady(self, policy: Policy) -> Policy:
        """A policy that was learned, under the rule by which an option stays; the same one each time."""
        if self.steady is None:
            return policy
        return self._steadied.setdefault(id(policy), (policy, replace(policy, steady=self.steady)))[1]

    @property
    def workers(self) -> int | None:
        """The number of processes that may train; None where the amount of work decides."""
        return tab.workers_for(self.parts.databases, self._public)

    def retrained(self, interp: Evaluator, on: object) -> ChoiceMaker:
        """The same choice, to be trained on other public data, as in `trained on`."""
        return self._like(interp, replace(self.parts, databases=point.training_data(on)), None)

    def valued_by(self, interp: Evaluator, options: Sequence[object]) -> ChoiceMaker:
        """The same choice among the same Options, valued otherwise."""
        return self._like(interp, replace(self.parts, options=tuple(options)), self._data)

    def _like(self, interp: Evaluator, parts: tab.ChoiceParts, data: Function | None) -> ChoiceMaker:
        return ChoiceMaker(interp, parts, self.model, self.share, self._span, self._progress, data, self.way)

    def report(
        self, interp: Evaluator, unit: str, epsilon: float, only: Sequence[str] = (), delta: object = None
    ) -> ChoiceReport:
        """Evaluates the choice for calls with about this amount, leaving out one training data set at a time.

        Where its Utility gives scores, by validation and, with a `delta`, by margin too.
        """
        from jostle.choice import evaluation
        from jostle.choice.evaluation import utilities_by_score

        shipped = self.shipped()
        predicts = self.bench(interp, unit).predicts if shipped is None else ()
        table, tell = self.table(interp, unit, epsilon), self._teller("evaluating")
        workers = 1 if isinstance(self.model, UserModel) else None
        settled = shipped.name if shipped is not None else ""
        ways = {}
        if shipped is None and not (isinstance(self.model, Model) and self.model.exchange):
            share = self.share if self.way != n.FEATURES else None
            ways = utilities_by_score(self.bench(interp, unit), table, unit, delta, share, self.workers)
        return evaluation.evaluate(
            table, self.model, predicts, only=only, progress=tell, workers=workers, settled=settled, ways=ways
        )

    def table(self, interp: Evaluator, unit: str, epsilon: float) -> tab.RunTable:
        """The training runs for calls with about this amount; of a policy that ships, those that it was trained on."""
        shipped = self.shipped()
        if shipped is not None:
            return shipped.table
        if self._numbered:
            self._settled(interp, unit, 1, epsilon)
        bench, at = training_setting(self.bench(interp, unit), self.model, epsilon)
        return runs_of(bench, self.share, at, self._store, self._teller("training"), workers=self.workers)

    def _amount(self, epsilon: object) -> float:
        """The amount that a report is asked for; what ships was trained for all amounts at once."""
        if epsilon is None and self.shipped() is not None:
            return 1.0
        if not is_number(epsilon) or not 0 < epsilon <= 1e6:
            raise refuse("BadAmount", "an amount is a positive number", help="such as `choice.runs(epsilon = 0.1)`")
        return float(epsilon)

    def _teller(self, what: str) -> Callable[[int, int], None] | None:
        tell, label = self._progress, self.name or "choice"
        return (lambda done, total: tell(f"{what} {label}", done, total)) if tell is not None and KEEPS.get() else None

    def bench(self, interp: Evaluator, unit: str = "epsilon", stability: int = 1) -> ProgramBench:
        """The bench that its policies are trained on, for data of which a row moves so many rows."""
        if self._data is not None and not self.parts.databases:
            self._make(interp, FIRST_SETS)
        if (unit, stability) not in self._benches:
            self._benches[unit, stability] = ProgramBench(interp, self.parts, unit, stability)
        return self._benches[unit, stability]


def _look_within(
    policy: Policy, look: Callable[[Sequence[str]], list[dict[str, object]]], amount: float | None, unit: str
) -> tuple[Policy, list[dict[str, object]]]:
    """A policy that ships, and the features it needs; what is public comes first: outside of the region that it was
    trained in nothing is paid for."""
    table = policy.table
    features = look([name for name, free in zip(table.features, table.public, strict=True) if free])
    policy = within(policy, _values(features), amount, unit)
    paid = look([name for name in policy.needs if name not in _values(features)])
    return within(policy, _values(paid), amount, unit) if paid else policy, [*features, *paid]


def _private_needs(policy: Policy) -> list[str]:
    """The private ones among the features that a policy needs."""
    free = dict(zip(policy.table.features, policy.table.public, strict=True))
    return [name for name in policy.needs if not free[name]]


def _values(features: list[dict[str, Any]]) -> dict[str, float]:
    return {feature["name"]: feature["value"] for feature in features}


def maker(progress: Progress | None) -> Callable[[Interpreter, n.Choice, Scope], ChoiceMaker | point.ChoicePoint]:
    """Returns the function that the interpreter calls at a `MkChoiceMaker among …`."""

    def choose(interp: Evaluator, node: n.Choice, scope: Scope) -> ChoiceMaker | point.ChoicePoint:
        values = {what: interp.eval(expr, scope) for what, expr in point.clauses_of(node).items() if expr is not None}
        return make(interp, values, node.span, progress, node)

    return choose


def make(
    interp: Evaluator,
    values: dict[str, Any],
    span: Span | None,
    progress: Progress | None,
    node: n.Choice | None = None,
) -> ChoiceMaker | point.ChoicePoint:
    options, features, databases = point.need_clauses(values, node)
    trained, share = values.get("trained on"), values.get("spending")
    model = values.get("using", tree() if isinstance(trained, point.Whole) else regret_tree())
    data = trained if isinstance(trained, Function) else None
    model = _MODELS[model.name]() if isinstance(model, Builtin) and model.name in _MODELS else model
    model = user_model(interp, model) if isinstance(model, Function | Builtin) else model
    names, looks = _names(options, "option"), _names(features, "feature")
    if isinstance(trained, point.Whole):
        with public_only(interp):  # not in a run of `best_run`, of which the algorithm would know
            return point.make_point(trained, options, names, features, looks, values["wrt"], model, span, progress)
    parts = tab.ChoiceParts(tuple(options), names, tuple(features), looks, values["wrt"], databases)
    return ChoiceMaker(interp, parts, model, share, span, progress, data, node.way if node is not None else n.FEATURES)


def user_model(interp: Evaluator, function: Any) -> UserModel:
    def fit(pairs: Any) -> Callable[[Any], float]:
        with public_only(interp):
            predictor = interp.call(function, [[[Record(x), y] for x, y in pairs]])

        def predict(x: Any) -> float:
            with public_only(interp):
                value = interp.call(predictor, [Record(x)])
            if not is_number(value):
                raise refuse("TypeError", f"a model predicts numbers, and this one gives {kind_name(value)}")
            return float(value)

        return predict

    return UserModel(getattr(function, "name", "") or "model", fit)


def _names(parts: list[object], what: str) -> tuple[str, ...]:
    names: list[str] = []
    for i, part in enumerate(parts):
        name = part.name if isinstance(part, Part) and part.name else ""
        names.append(name if name and name not in names else f"{what}{i + 1}")
    return tuple(names)


# The functional constructors of the thesis's table, and the models ------------------------------------


@builtin
def _MkChoiceMaker(
    ops: object, feats: object, dbs: object, model: object, score: object, *, at: At
) -> ChoiceMaker | point.ChoicePoint:
    interp, span = at
    values = {"among": ops, "informed by": feats, "trained on": dbs, "using": model, "wrt": score}
    return make(interp, values, span, interp.progress)


@builtin
def _MkOption(function: object) -> Part:
    return Part("Option", function)


@builtin
def _MkScore(function: object) -> Part:
    return Part("Utility", function)


@builtin
def _MkFeatures(functions: Any) -> list[Any]:
    return [f if isinstance(f, Part) else Part("Feature", f) for f in functions]


@builtin
def _MkModel(function: object, *, at: At) -> UserModel:
    return user_model(at[0], function)


@builtin
def _whole(algorithm: object, data: object) -> point.Whole:
    return point.whole(algorithm, point.members_of(data, "whole", None))


_MODELS: dict[str, Callable[[], Model]] = {}
for _model in (tree, regret_tree, forest):
    _MODELS[_model.__name__] = builtin(_model)
