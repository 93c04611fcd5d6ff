"""Choice points: ChoiceMakers that are called in the course of an algorithm, on the part of the data at hand.

`MkChoiceMaker among {…} informed by {…} trained on whole(algorithm, data) wrt U`. A call runs the Option it picks
within whatever allotment is open there; its Features look at what the record holds, and measure nothing. All points of
one `whole` are trained together. What the clauses of any choice take stands here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field, to_builtins

from jostle.choice import table as tab
from jostle.choice.explain import tree_records, ways
from jostle.choice.learning import VERSION
from jostle.choice.models import Model, TreeEnsembles, UserModel, constant
from jostle.choice.policy import SINGLE_BEST, Policy, Store
from jostle.choice.program import ProgramBench, public_only
from jostle.choice.training import tenth_of_a_decade
from jostle.diagnostics import Note, Refusal, refuse
from jostle.plan.digest import digest
from jostle.plan.plan import Apply, Column, Constant, Filter
from jostle.privacy.kernel.exposures import Exposures, Handle
from jostle.privacy.kernel.handles import Table
from jostle.run.arguments import private_amount
from jostle.run.evaluator import Evaluator
from jostle.run.faults import PrivateValue, refuse_private
from jostle.run.values import Builtin, Function, JSet, Part, Record, handles_in, is_number, is_sequence, kind_name
from jostle.source import Span
from jostle.syntax import nodes as n

LEARNED = "learned from whole runs"

if TYPE_CHECKING:
    from jostle.choice.rollouts import Chooser, PointCall, StudyResult


class Whole(Struct, eq=False):
    """`whole(algorithm, data)`: what is run, on what, and the points that stand in it."""

    algorithm: object
    databases: tuple[object, ...]
    points: list[ChoicePoint] = field(default_factory=list)
    chooser: Chooser | None = None  # while the algorithm is run to learn from
    calls: list[PointCall] = field(default_factory=list)

    @property
    def jostle_parts(self) -> list[object]:
        return [self.algorithm, *self.databases]


class ChoicePoint:
    """The value of a `MkChoiceMaker` that is trained on `whole(…)`."""

    def __init__(
        self, whole: Whole, parts: tab.ChoiceParts, model: Model, span: Span | None,
        progress: Callable[[str, int, int], None] | None,
    ) -> None:  # fmt: skip
        self.name = ""
        self._whole, self._parts, self._model, self._span, self._progress = whole, parts, model, span, progress
        self._number = len(whole.points)
        self._policies: dict[tuple[object, ...], Policy] = {}
        self._store = Store()
        whole.points.append(self)

    def jostle_call(
        self, interp: Evaluator, args: Sequence[object], keywords: dict[str, object], span: Span | None
    ) -> object:
        """`choice(node)`: features, prediction, and what the chosen Option answers."""
        data = tab.only_record([*args, *keywords.values()], self._parts.reads, self._parts.databases)
        values = self._look(interp, data)
        if self._whole.chooser is not None:
            x = tuple(values[name] for name in self._parts.feature_names)
            option = self._whole.chooser(self._number, x)
            from jostle.choice.rollouts import PointCall

            self._whole.calls.append(PointCall(self._number, x, option))
            return tab.run(interp, self._parts.options[option], data)
        policy = self._policy(interp, data)
        with interp.kernel.events.within("choice", self.name or "choice", span) as event:
            decision = policy.choose(values, None)
            event.update(
                features=[{"name": k, "value": v, "epsilon": 0.0} for k, v in values.items()],
                **decision.as_json(), model=policy.model, policy=policy.name, why=policy.why,
                trees=tree_records(policy), context=_context(data),
            )  # fmt: skip
            return tab.public_answers(
                interp, self._parts.options[decision.index], decision.chosen, data, span,
                help="answer with a name, such as `best.name` of a column",
            )  # fmt: skip

    def _look(self, interp: Evaluator, data: object) -> dict[str, float]:
        """The features of what is at hand. They stand outside every allotment, so that none can measure."""
        values = {}
        with public_only(interp):
            for name, feature in zip(self._parts.feature_names, self._parts.features, strict=True):
                try:
                    value = interp.call(feature, [data])
                except Refusal as refusal:
                    raise _measured(refusal, name) from None
                values[name] = tab.number_from(value, f"the Feature `{name}`")
        return values

    @property
    def jostle_fields(self) -> dict[str, object]:
        return {"options": list(self._parts.option_names), "features": list(self._parts.feature_names)}

    @property
    def jostle_parts(self) -> list[object]:
        return [*self._parts.options, *self._parts.features, self._parts.utility]

    def jostle_explain(self) -> str:
        """Renders the comparison of the fixed ways with the learned one, and the trees of this point."""
        if not self._policies:
            return "nothing was learned yet: a choice point is trained when its algorithm first runs"
        return "\n\n".join(ways(policy) for policy in dict.fromkeys(self._policies.values()))

    # Learning ----------------------------------------------------------------------------------------

    def _policy(self, interp: Evaluator, data: object) -> Policy:
        """Returns the policy for calls with about the amount of the outermost allotment (public data: no noise)."""
        handles = handles_in(data)  # a node holds its rows and columns of them: the largest counts, they do not add up
        amount = next((one for one, _ in interp.kernel.amounts()), None) if handles else None
        unit = amount.unit if amount is not None else "epsilon"
        epsilon = float(amount.value) * 1e-12 if amount is not None else None
        grid = (tenth_of_a_decade(epsilon),) if epsilon else ()
        reach = max((e.weighted_stability for handle in handles for e in handle.exposures), default=1)
        place = (unit, reach, grid)
        if place not in self._policies:
            for point, policy in zip(self._whole.points, self._learned(interp, unit, reach, grid), strict=True):
                point._policies[place] = policy
                interp.kernel.events.emit(
                    "train", point.name or "choice", point._span, options=list(policy.table.options),
                    features=list(policy.table.features), databases=list(policy.table.databases),
                    epsilons=list(grid), standings=[*map(to_builtins, policy.standings)], policy=policy.name,
                )  # fmt: skip
        return self._policies[place]

    def _learned(self, interp: Evaluator, unit: str, reach: int, grid: tuple[float, ...]) -> list[Policy]:
        from jostle.choice.rollouts import Point, Study

        whole = self._whole
        parts = tab.ChoiceParts((whole.algorithm,), ("run",), (), (), self._parts.utility, whole.databases)
        bench = ProgramBench(interp, parts, unit, reach)
        shapes = [[p._parts.option_names, p._parts.feature_names, str(p._model)] for p in whole.points]
        key = digest(["whole runs", VERSION, bench.key, shapes, list(grid)])
        stored = [
            self._store.load(f"{key}-{number}", (p._parts.option_names, p._parts.feature_names))
            for number, p in enumerate(whole.points)
        ]
        if all(policy is not None for policy in stored):
            return [policy for policy in stored if policy is not None]
        study = Study(
            [Point(p._parts.option_names, p._parts.feature_names, p._model) for p in whole.points],
            bench, grid or (None,), key, self._runner(bench), self._teller(),
            tab.workers_for(whole.databases, interp.data),
        )  # fmt: skip
        outcome = study.learn()
        policies = [
            self._as_policy(bench, point, number, outcome, grid, key) for number, point in enumerate(whole.points)
        ]
        for number, policy in enumerate(policies):
            self._store.save(f"{key}-{number}", policy, on_disk=True)
        return policies

    def _runner(
        self, bench: ProgramBench
    ) -> Callable[[object, float | None, int, Chooser], tuple[list[PointCall], float]]:
        whole = self._whole

        def rollout(
            instance: object, epsilon: float | None, seed: int, chooser: Chooser
        ) -> tuple[list[PointCall], float]:
            before, whole.chooser, whole.calls = whole.chooser, chooser, []
            try:
                answers = bench.answer(0, instance, epsilon, seed)
            finally:
                whole.chooser = before
            calls, whole.calls = whole.calls, []
            return calls, bench.utility(instance, answers)

        return rollout

    def _as_policy(
        self,
        bench: ProgramBench,
        point: ChoicePoint,
        number: int,
        outcome: StudyResult,
        grid: tuple[float, ...],
        key: str,
    ) -> Policy:
        parts = point._parts
        table = tab.RunTable(
            parts.option_names, parts.feature_names, (True,) * len(parts.features), bench.database_names, grid, (1.0,),
            (tab.Setting(0.0, ()),), 0, 1, key, (),
        )  # fmt: skip
        if outcome.predictors is not None:
            predictor: TreeEnsembles = outcome.predictors[number]
            return Policy(
                LEARNED, str(point._model), 0.0, parts.feature_names, parts.feature_names, predictor, table,
                outcome.standings, outcome.why,
            )  # fmt: skip
        means, spreads = zip(*outcome.always[number], strict=True)
        always = constant(tab.UtilityScale("utility"), means, spreads, len(bench.database_names))
        return Policy(SINGLE_BEST, SINGLE_BEST, 0.0, (), (), always, table, outcome.standings, outcome.why)

    def _teller(self) -> Callable[[int, int], None] | None:
        tell = self._progress
        names = ", ".join(p.name or "choice" for p in self._whole.points)
        return (lambda done, total: tell(f"training {names}", done, total)) if tell is not None else None


def _context(data: object) -> list[list[object]]:
    """The keys of the part of the data that the record of a call holds."""
    handles = handles_in(data)
    return [list(key) for key in _part_keys(handles[0])] if handles else []


def _part_keys(handle: Handle) -> list[tuple[str, object]]:
    """Of a part of a table, the columns it was divided by and its keys, the outermost first: public facts."""
    keys: list[tuple[str, object]] = []
    plan = handle.plan if isinstance(handle, Table) else None
    while isinstance(plan, Filter):
        match plan.condition:
            case Apply("==", (Column(name) | Apply("floor", (Column(name),)), Constant(value))):
                keys.append((name, value))
        plan = plan.source
    return keys[::-1]


def _measured(refusal: Refusal, name: str) -> Refusal:
    """A Feature that measured, with what it may do instead; any other refusal as it is."""
    if refusal.first.kind not in ("NoEpsilon", "PrivateValue"):
        return refusal
    return refuse(
        refusal.first.kind, f"the Feature `{name}` measures, and a choice inside an algorithm looks at what is known",
        refusal.first.span, help="measure before the choice, and put what was found into its record",
    )  # fmt: skip


def whole(algorithm: object, data: Any) -> Whole:
    """`whole(algorithm, data)`: an Option or function of one record, and the public records to run it on."""
    if not isinstance(algorithm, (Part, Function)) or (isinstance(algorithm, Part) and algorithm.kind != "Option"):
        raise refuse("TypeError", f"`whole` takes an Option or a function to run, not {kind_name(algorithm)}")
    databases = tuple(data) if not isinstance(data, dict) else (data,)
    refuse_private(list(databases), "cannot be trained on", help="train on public data of the same kind")
    if not databases:
        raise refuse("ValueError", "there is nothing to run on", help="name public data sets")
    return Whole(algorithm, databases)


# Clauses ---------------------------------------------------------------------------------------


def clauses_of(node: n.Choice) -> dict[str, n.Expr | None]:
    """The expressions of a choice, by the words of their clauses."""
    return {"among": node.among, "informed by": node.informed, "trained on": node.trained, "using": node.using,
            "spending": node.spending, "wrt": node.wrt}  # fmt: skip


def need_clauses(
    values: Mapping[str, object], node: n.Choice | None = None
) -> tuple[list[object], list[object], tuple[object, ...]]:
    """The Options, the Features and the training data of a choice; refused where a clause takes no such value.

    A clause whose value is not known before a run is left out of `values`.
    """
    exprs = clauses_of(node) if node is not None else {}
    with _placed(exprs.get("among")):
        options = members_of(values.get("among", []), "among", "Option")
        if "among" in values and not options:
            raise refuse("ValueError", "a choice among nothing", label="no Option", help="name at least one Option")
    with _placed(exprs.get("informed by")):
        features = members_of(values.get("informed by", []), "informed by", "Feature")
    trained = values.get("trained on")
    databases: tuple[object, ...] = ()
    with _placed(exprs.get("trained on"), trained):
        if isinstance(trained, Whole) and node is not None and node.way != n.FEATURES:
            message = "a choice inside an algorithm is made by features"
            raise refuse("TypeError", message, help=f"leave out `by {node.way}`")
        if trained is not None and not isinstance(trained, Whole | Function):
            databases = training_data(trained)
        for data in databases[:1]:
            tab.need_fields(tab.fields_read([*options, *features, values.get("wrt")]), data)
    _need_settings(values, exprs)
    return options, features, databases


def _need_settings(values: Mapping[str, object], exprs: Mapping[str, n.Expr | None]) -> None:
    """The model, the share and the Utility of a choice."""
    with _placed(exprs.get("using")):
        model = values.get("using")
        if "using" in values and not isinstance(model, Function | Builtin | Model | UserModel):
            help = "write `using tree(depth = 3)`, `using regret_tree()` or `using forest()`"
            raise refuse("TypeError", f"`using` takes a model, not {kind_name(model)}", help=help)
    with _placed(exprs.get("spending")):
        share = values.get("spending")
        for handle in handles_in(share):
            raise private_amount(handle)
        if share is not None and (not is_number(share) or not 0 < share < 1):
            message = "the share that the features may spend lies between 0 and 1"
            raise refuse("BadAmount", message, label="outside 0 to 1", help="write `spending 0.05`")
    with _placed(exprs.get("wrt")):
        wrt = values.get("wrt")
        is_other = isinstance(wrt, Part) and wrt.kind != "Utility"
        if "wrt" in values and (is_other or not isinstance(wrt, Part | Function | Builtin)):
            raise refuse("TypeError", f"`wrt` takes a Utility, not {kind_name(wrt)}", label="no Utility")


@contextmanager
def _placed(expr: n.Expr | None, value: object = None) -> Iterator[None]:
    try:
        yield
    except PrivateValue as refusal:
        raise (refusal.of(expr.span, value) if expr is not None else refusal) from None
    except Refusal as refusal:
        raise refusal.at(expr.span if expr is not None else None) from None


def training_data(value: object) -> tuple[object, ...]:
    databases = tuple(members_of(value, "trained on", None))
    if not databases:
        raise refuse("ValueError", "there is nothing to train on", help="name public data sets in `trained on {…}`")
    help = "train on public or generated data; the choice is then called on private data `with epsilon`"
    refuse_private(databases, "cannot be trained on", help=help)
    return databases


def members_of(value: Any, clause: str, kind: str | None) -> list[object]:
    if isinstance(value, Record) and not value:
        return []
    if not (isinstance(value, JSet) or is_sequence(value)):
        value = [value]
    members = list(value)
    for member in members if kind is not None else ():
        if (isinstance(member, Part) and member.kind != kind) or not isinstance(member, (Part, Function, Builtin)):
            by_name = all(isinstance(one, str) and one.isidentifier() for one in members)
            help = f"write `{clause} {{{', '.join(map(str, members))}}}`" if by_name else ""
            article = "an" if getattr(member, "kind", "") == "Option" else "a"
            named = f"`{member.name}` is {article} {member.kind}" if isinstance(member, Part) else ""
            message = f"`{clause}` takes {kind}s, and {named or f'this is {kind_name(member)}'}"
            raise refuse("TypeError", message, help=help)
    return members


def need_allotment(interp: Evaluator, exposures: Exposures, name: str = "") -> None:
    """On private data a choice needs an allotment, whatever it has learned."""
    if exposures and interp.kernel.allotment is None:
        source = exposures[0].source
        message = f"this choice reads `{source.name}`, which is private, and nothing pays for it"
        notes = (Note(source.span, f"`{source.name}` is declared private here"),) if source.span is not None else ()
        help = f"write `{name or 'choice'}(…) with epsilon 0.5`"
        raise refuse("NoEpsilon", message, label="unpaid", help=help, notes=notes)


def make_point(
    whole: Whole, options: Sequence[object], names: tuple[str, ...], features: Sequence[object],
    feature_names: tuple[str, ...], utility: object, model: object, span: Span | None,
    progress: Callable[[str, int, int], None] | None,
) -> ChoicePoint:  # fmt: skip
    """A point of `whole`, from what a MkChoiceMaker was given."""
    if not isinstance(model, Model) or model.kind != "tree":
        raise refuse(
            "TypeError", "a choice inside an algorithm is learned by `tree`: a run tells of one option only",
            help="`using tree(depth = 3)`, or no `using`",
        )  # fmt: skip
    if not features:
        raise refuse("ValueError", "a choice inside an algorithm needs features of what is at hand")
    parts = tab.ChoiceParts(tuple(options), names, tuple(features), feature_names, utility, ())
    return ChoicePoint(whole, parts, model, span, progress)
