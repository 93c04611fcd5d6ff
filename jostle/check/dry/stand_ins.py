"""What stands for the kernel, for choices and for opened data in the walk before a run: nothing is measured, trained or
read. Beside it what selects, amounts and calls need of their parts whatever these hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, cast

from jostle.check.dry import forms
from jostle.check.dry.forms import EVERYWHERE, Nothing, NotKnown, Unknown
from jostle.choice.point import Whole, clauses_of, need_allotment, need_clauses
from jostle.choice.table import all_handles, fields_read, number_from, only_record, score_from
from jostle.diagnostics import Refusal, refuse
from jostle.language.aggregates import AGGREGATES
from jostle.language.builtins import BUILTINS, SLOW
from jostle.language.facts import Effect, Gives
from jostle.language.forms import joins_freely, keys_by_alias, no_free_join, source_kind
from jostle.lazy import np
from jostle.plan.facts import FACTS
from jostle.plan.plan import Column, Domain, Exact, GroupRows, Known, Listed, Open, Plan, Scan, inputs
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.handles import Cube, Table, Vectors
from jostle.privacy.kernel.kernel import Kernel, check_unit
from jostle.privacy.measurements.gradual import Refinable
from jostle.privacy.reading.minting import public_table
from jostle.privacy.reading.vault import assembled
from jostle.privacy.scores import Score, Scores
from jostle.records import replace
from jostle.run.arguments import exact_amount
from jostle.run.clauses import schema_of
from jostle.run.evaluator import Evaluator
from jostle.run.externals import KERNELS
from jostle.run.faults import LIBRARY, exposures_of
from jostle.run.groups import column_of_keys, public_keys
from jostle.run.interpreter import Interpreter
from jostle.run.margins import EXAMPLES
from jostle.run.origins import is_paths, origin_of
from jostle.run.publictables import is_rows, table_of_rows
from jostle.run.scope import MISSING, Scope
from jostle.run.select_forms import Output
from jostle.run.selection import A_SCORE, score_and_record
from jostle.run.values import Builtin, Function, Grouped, Part, Record, is_number, is_vector, kind_name
from jostle.source import Span
from jostle.syntax import nodes as n
from jostle.syntax.walk import bound_in, children, every, own_name, returns_inside

if TYPE_CHECKING:
    from jostle.accounting.amounts import Amount
    from jostle.events import Stream
    from jostle.privacy.kernel.exposures import Exposure, Exposures
    from jostle.privacy.kernel.measurement import Measurement
    from jostle.privacy.reading.public_data import PublicData

SURE = EVERYWHERE | {"ValueError"}
"""Kinds of refusals that are reported where all parts are sure to run, as they are in training."""


class TooLong(Exception):
    """The walk ends here."""


class LowerBound(float):
    """What is left of an allotment in which something may have been spent: at least this is not more than it."""


STRUCTURAL = (Gives.LENGTH, Gives.NUMBERED, Gives.REVERSED, Gives.ZIPPED)
MATRICES = ("answer", "eigen", "svd", "transpose")
"""What functions give, and functions of numbers, that fail on no number, only on what has another form."""


class Door(Kernel):
    """A kernel that nothing passes: what is measured is refused as ever, or not known."""

    skipped = 0  # how often something was left out, which may have spent
    last: Measurement[object, object] | None = None  # what was asked for last, at a place
    place: Span | None = None

    def measure(self, measurement: Measurement[Any, Any], span: Span | None = None) -> Any:
        exposures = measurement.exposures
        if exposures and measurement.paid_by() is None:
            for exposure in exposures:
                check_unit(measurement.price.amount, exposure.source, span)
                exposure.bounded(span)
            if self._paid is not None:
                self._paid.need_fit(measurement, span)
        if measurement.each is not None:
            with self._unseen(measurement.each):
                try:
                    measurement.run(0)  # type: ignore[attr-defined]
                except Unknown as unknown:
                    of = forms.like_of(unknown.value)  # of a record, fields whose kind is not known say nothing
                    value = NotKnown(like=of["score"]) if isinstance(of, Record) and "score" in of else unknown.value
                    if isinstance(value, NotKnown) and value.like is forms.A_SCORE:
                        help = "measure it, `{score: laplace(s), model: m}`"
                        raise refuse("TypeError", f"{A_SCORE}, and this is a private score", help=help) from None
                    by_kind = forms.kind(value) != "a record"  # which may have a score
                    forms.tried(lambda value: score_and_record(value, None), value, by_kind=by_kind)
        if measurement.title == "above_threshold":
            self.skipped += 1
            watch = measurement.release(None, None).value  # which is one whatever the data are, but for what is left
            return replace(watch, state=SimpleNamespace(left=NotKnown(like=forms.PLAIN)))
        self.last, self.place = measurement, span
        raise Unknown

    def left_of(self, exposure: Exposure) -> tuple[int, int]:
        if self.skipped:
            raise Unknown
        return super().left_of(exposure)

    def _test_opening(self, amount: Amount, span: Span | None, opened_for: Exposures) -> None:
        for exposure in opened_for:
            check_unit(amount, exposure.source)


class Unread(Nothing):
    """An engine that reads nothing. Of rows that stand in a program it knows how many have one key, as a join asks."""

    def exact(self, plan: Plan, keys: object, terms: object) -> tuple[list[object], list[list[int]]]:
        match plan, terms:
            case GroupRows(source=Listed() | Known(source=Listed()) as of, keys=by), (Exact(function="max"),):
                listed = cast("Listed", of.source if isinstance(of, Known) else of)
                names = [name for name, _ in listed.columns]
                at = [names.index(expr.name) for _, expr in by if isinstance(expr, Column)]
                many = Counter(key for row in listed.rows if None not in (key := tuple(row[i] for i in at)))
                return [], [[max(many.values(), default=1)]]
        raise Unknown


def door(events: Stream) -> tuple[Door, PublicData]:
    """A kernel and public data over an engine of which nothing is known."""
    return assembled(cast("Any", Unread()), events, Door)


def form_of(function: object, arguments: Sequence[object], unknown: Unknown) -> object:
    """What is known of what a call gives that came to something which is not known."""
    if not isinstance(function, Builtin):
        passes_on = unknown.returned or not isinstance(function, Function) or not isinstance(function.body, n.Block)
        return unknown.value.like if passes_on else None
    if function.name == "in_rho" and unknown.called:
        return unknown.value.like
    like = of_measurement(function.name, arguments)
    return forms.of_function(function) if like is None else like


def of_measurement(name: str, values: Sequence[object]) -> object:
    """What a function that measures gives of these arguments, where its form is known."""
    if name == "noisy_moments" and len(values) == 1 and isinstance(values[0], Vectors):
        many = len(values[0].exprs)
        shapes = {"count": (1,), "first": (1, many), "second": (1, many, many)}
        noise = {f"{name}_noise": 1.0 for name in shapes} | {"mechanism": "laplace"}
        return Record([*((name, np.ones(shape)) for name, shape in shapes.items()), *noise.items()])
    if name in ("laplace", "gaussian"):
        is_of_cells = values and all(is_number(forms.like_of(value)) for value in values[1:])
        return _of_noise(forms.like_of(values[0])) if is_of_cells else None  # of a strategy there are its answers
    return _of_choice(name, values) if values else None


def _of_choice(name: str, values: Sequence[object]) -> object:
    """Of what is chosen among: an item, its place, or places; of cells, where each belongs."""
    if name == "exp_mech" and isinstance(values[0], list):
        return forms.common([NotKnown(like=forms.form(forms.plain(forms.like_of(one)))) for one in values[0]])
    if name == "noisy_max" and not isinstance(values[0], NotKnown):
        scores = values[0] if isinstance(values[0], Scores) else None
        return forms.PLACES if scores and (scores.groups or scores.rule.name == "subtrees") else forms.PLAIN
    if name == "largest":
        leads = len(values) > 2 and values[2] is not False
        return Record(places=forms.PLACES, leads=forms.NUMBER_LIST, within=1.0) if leads else forms.PLACES
    if name == "refine" and isinstance(values[0], Refinable):
        return _of_noise(values[0].base)
    return forms.NUMBERS if name in ("least_cost_partition", "count_partition") else None


def _of_noise(exposed: object) -> object:
    """Of a cube its cells, of a list of cubes a list, of a score a number."""
    if exposed is forms.SCORES or isinstance(exposed, Scores):
        return forms.NUMBER_LIST
    if exposed is forms.A_SCORE or isinstance(exposed, Score):
        return forms.NOISED
    if isinstance(exposed, Cube):
        return np.ones(exposed.shape) if exposed.size <= forms.MOST else None
    if isinstance(exposed, Sequence) and exposed and all(isinstance(one, Cube) for one in exposed):
        return [_of_noise(one) for one in exposed] if sum(one.size for one in exposed) <= forms.MOST else None
    return None


def declared_choice(interp: Interpreter, node: n.Choice, scope: Scope) -> Untrained:
    """A choice of which the clauses are looked at, and what its parts give of the first of its training data."""
    values = {}
    for word, expr in clauses_of(node).items():
        if expr is not None:
            with suppress(Unknown):
                values[word] = interp.eval(expr, scope)
    choice = Untrained(*need_clauses(values, node), values, node.way)
    trains = node.way == n.FEATURES and len(choice.options) > 1  # of one Option nothing is learned
    if trains and choice.databases and not isinstance(choice.databases[0], NotKnown):
        with interp.kernel.allot(None, None):
            choice.look(interp, choice.databases[0], node.span, number_from, SURE)
    return choice


class Untrained(forms.SomeChoice):
    """A choice that has learned nothing: of what it gives only the kind is known, which is that of any Option."""

    def __init__(
        self, options: Sequence[object], features: Sequence[object], databases: Sequence[object],
        clauses: Mapping[str, object], way: str,
    ) -> None:  # fmt: skip
        self.options, self.features, self.databases, self.way = options, features, databases, way
        self.utility, self.inside = clauses.get("wrt"), isinstance(clauses.get("trained on"), Whole)

    @property
    def jostle_fields(self) -> dict[str, object]:
        own = {} if self.inside else super().jostle_fields
        return own | {"options": _names(self.options), "features": _names(self.features)}

    def jostle_call(
        self, interp: Evaluator, args: Sequence[object], keywords: dict[str, object], span: Span | None
    ) -> NoReturn:  # fmt: skip
        need_allotment(interp, exposures_of([*args, *keywords.values()]), self.name)
        data = only_record([*args, *keywords.values()], fields_read([*self.options, *self.features]), self.databases)
        all_run = self.way != n.FEATURES
        like = self.look(interp, data, span, score_from if all_run else None, SURE if all_run else EVERYWHERE)
        raise Unknown(like=None if like is None else forms.kind_alone(like))

    def look(
        self, interp: Evaluator, data: object, span: Span | None, judged: Callable[[object, str], object] | None,
        sure: frozenset[str],
    ) -> object:  # fmt: skip
        """What the first Option gives of these data. Refuses what is no answer, no feature or no utility; `judged`
        refuses what the Utility gives."""
        gives = partial(_gives, interp, sure, span)
        answers = [gives(option, data) for option in self.options]
        for option, answer in zip(self.options, answers, strict=True):
            _need(partial(_need_released, all_handles(data)), option, answer, f"the answers of `{_name(option)}`")
        for feature in self.features:
            _need(number_from, feature, gives(feature, data), f"the Feature `{_name(feature)}`")
        if judged is not None and self.utility is not None and answers:
            utility = self.utility.run if isinstance(self.utility, Part) else self.utility
            way = "the Utility" if self.way == n.FEATURES else self.way
            _need(judged, self.utility, gives(utility, data, answers[0]), way)
        return forms.example(answers[0]) if answers else None


def _gives(interp: Evaluator, sure: frozenset[str], span: Span | None, part: object, *data: object) -> object:
    """What a part of a choice gives, as far as it is known."""
    try:
        return interp.call(part, data, {}, span)
    except Refusal as refusal:
        if refusal.first.kind in sure:
            raise
    except Unknown as unknown:
        return unknown.value
    return NotKnown()


def _need(judged: Callable[[object, str], object], part: object, value: object, what: str) -> None:
    """Refuses a value of the wrong kind where a part of a choice gives it."""
    like = forms.example(value)
    if like is not None:
        run = part.run if isinstance(part, Part) else part
        ends = run.body.body[-1:] if isinstance(run, Function) and isinstance(run.body, n.Block) else ()
        try:
            judged(list(like) if is_vector(like) else like, what)
        except Refusal as refusal:
            raise refusal.at(ends[0].span if ends else None) from None


def _need_released(own: Sequence[Handle], answers: object, what: str) -> None:
    """Refuses answers that hold private data, or in training what is private in a call."""
    for handle in all_handles(answers):
        if handle.private or any(handle is one for one in own):
            help = "answer with what is measured of it, such as `laplace(data.database)` of a cube"
            raise refuse("PrivateValue", f"{what} hold private data", help=help)


def _name(part: object) -> str:
    return str(getattr(part, "name", ""))


def _names(parts: Sequence[object]) -> list[object]:
    return [_name(part) for part in parts]


UNITS = ("epsilon", "rho")
_KINDS = {kind_name(cell): kind for kind, cell in EXAMPLES.items() if kind not in ("number", "boolean")}


def need_amount(interp: Interpreter, node: n.Amount, scope: Scope) -> None:
    """Refuses an amount of which the kind is known, and which is no number."""
    if node.unit in UNITS and isinstance(node.value, n.Name | n.Attribute | n.Index):
        value = interp.argument(node.value, scope)
        if isinstance(value, NotKnown) and forms.kind(value) not in (None, "a number"):
            exact_amount(node, forms.example(value), None)


def need_keys(interp: Interpreter, node: n.Select, scope: Scope) -> Sequence[n.GroupKey]:
    """The keys of a select of which the values are not known; refuses what lists none."""

    def keys_of(key: n.GroupKey, span: Span, value: object) -> object:
        return public_keys(column_of_keys(interp, value, key.name or own_name(key.value) or "", span), span)

    unlisted = []
    for key in node.keys:
        value = None if key.over is None else interp.argument(key.over, scope)
        if key.over is not None and isinstance(value, NotKnown):
            forms.tried(partial(keys_of, key, key.over.span), value, by_kind=True)
            unlisted.append(key)
    return unlisted


def need_tables(interp: Interpreter, node: n.Select, scope: Scope) -> None:
    """Refuses to select from what is no table, whatever it holds; an answer by groups is a table of its columns."""
    for table, span in ((node.table, node.table.span), *((joined.table, joined.span) for joined in node.joins)):
        of = interp.argument(table, scope) if isinstance(table, n.Name) else None
        like = forms.example(of) if isinstance(of, NotKnown) else None
        if not (like is None or is_rows(like) or isinstance(like, Handle)):
            word = "a select reads a table or a cube" if table is node.table else "a join takes tables"
            raise refuse("TypeError", f"{word}, and this is {forms.kind(of)}", span)
        if isinstance(like, Grouped) and len(like):
            own, cells = f"\u00b7{id(table)}", [(name, forms.example(like.column(name)[0])) for name in like.parts]
            columns = tuple((name, Open(_KINDS.get(kind_name(cell), "real"))) for name, cell in cells)
            described = public_table(interp.data, own, columns, object(), table.span, facts=FACTS)
            interp.parts[id(table)] = described  # type: ignore[attr-defined]


def need_smooth(interp: Interpreter, node: n.Select, scope: Scope) -> None:
    """Refuses a join without a bound where its sides are known, and do not join freely."""
    sides = [interp.argument(table, scope) for table in (node.table, *(joined.table for joined in node.joins))]
    own = [isinstance(side, Handle) and side.private for side in sides]
    unsure = [isinstance(side, NotKnown) and side.like is not forms.A_SOURCE for side in sides]
    if any(own) and not joins_freely(node.joins, [a or b for a, b in zip(own, unsure, strict=True)]):
        raise Refusal(no_free_join(node))


def of_unread(interp: Interpreter, node: n.Select, scope: Scope) -> object:
    """What a select gives of a table of which nothing is known: what its text alone says."""
    outputs, keys = list(map(Output.of, node.columns)), [key.name or own_name(key.value) or "" for key in node.keys]
    names = [*keys, *(output.name for output in outputs)]
    if not all(names) or len(set(names)) < len(names) or keys_by_alias(node, ()).per is not None:
        return None
    around, cells = interp.aggregates, dict[str, object](dict.fromkeys(keys, forms.ANY))
    interp.aggregates = around | {id(call): _of_aggregate(call) for output in outputs for call in output.calls}
    try:
        for output in outputs:
            cells[output.name] = forms.ANY
            with suppress(Refusal):
                cells[output.name] = forms.inside(interp.argument(output.value, scope))
    finally:
        interp.aggregates = around
    if keys:
        return forms.SomeGroups({name: [cell] for name, cell in cells.items()}, len(keys))
    return forms.form(next(iter(cells.values())) if len(cells) == 1 else Record(cells))


def _of_aggregate(call: n.Call) -> NotKnown:
    """What an aggregate gives of whatever it is of."""
    row = AGGREGATES[call.function.id]  # type: ignore[union-attr]
    if row.name == "bounds":
        return NotKnown(like=Record(low=forms.ANY, high=forms.ANY))
    return NotKnown(like=1.0 if row.name == "count" or (row.bounded and not row.gives_moments) else None)


def opens(part: Callable[[n.Expr, Scope], object], node: n.Call, scope: Scope) -> bool:
    """Whether a call opens data; counts that are written in the program are none. `part` gives an argument's value."""
    row = BUILTINS.get(node.function.id) if isinstance(node.function, n.Name) else None
    if row is None or row.effect is not Effect.DECLARES or scope.variable(row.name) is not MISSING:
        return False
    return row.name != "counts" or len(node.args) != 1 or isinstance(part(node.args[0], scope), str)


def table_of(interp: Interpreter, node: n.Call, values: Sequence[object], scope: Scope) -> Table | None:
    """The public table of rows that a program gives; refuses what is known to be neither a path nor rows."""
    value, name = next(iter(values), None), node.function.id if isinstance(node.function, n.Name) else ""
    origin = forms.example(value) if isinstance(value, NotKnown) else None
    if origin is not None and not is_paths(origin):
        interp.parts[id(node.args[0])] = origin  # type: ignore[attr-defined]
        origin_of(interp, node, scope)
    alone = name == "table" and len(values) == 1 and not node.keywords
    return table_of_rows(value, node.span) if alone and is_rows(value) else None


def wishes_of(statement: n.Stmt) -> list[n.Spend]:
    """The errors that a block, or the selects of a statement without a block, are wanted with: once each in a run."""
    if isinstance(statement, n.With):
        return [statement.spend] if statement.jointly else []
    nodes = every(statement)
    if not {n.Block, n.Lambda, n.Comprehension}.isdisjoint(map(type, nodes)):
        return []
    return [node.spend for node in nodes if isinstance(node, n.Select) and node.spend is not None]


def source_columns(handle: object) -> Iterator[tuple[str, Domain]]:
    """The columns of the sources of a table's rows, as they are described."""
    plans: list[Plan] = [handle.plan] if isinstance(handle, Table) else []
    for plan in plans:
        plans.extend(inputs(plan))
        if isinstance(plan, Scan):
            yield from plan.columns


def described_table(interp: Interpreter, node: n.Described, scope: Scope) -> Table:
    """A public table, of which the description is known, and no row."""
    if source_kind(node.source) not in ("table", "bound"):
        raise Unknown
    domains = interp.argument(node.domains, scope)
    if isinstance(domains, NotKnown):
        raise Unknown(like=forms.A_SOURCE)
    if isinstance(domains, dict):  # by the header of a file: what its columns hold is not known
        domains = Record((name, Open("text") if domain is None else domain) for name, domain in domains.items())
    schema = schema_of(domains, node.domains.span)
    return public_table(interp.data, f"\u00b7{id(node)}", schema, object(), node.span, facts=FACTS)


def adaptive_name(function: object) -> str:
    """The name of an option of the library whose answers have no known error; empty of what is none."""
    if isinstance(function, Function) and function.name in forms.ADAPTIVE:
        return function.name if function.body.span.source.name.startswith(LIBRARY) else ""
    return ""


def is_unknown(name: str, kernel: Any) -> bool:
    """Whether what a function gives is not known, whatever it is given."""
    if name in KERNELS:
        return KERNELS[name] not in forms.QUICK
    row = BUILTINS.get(name)
    spends = row is not None and row.gives is Gives.BALANCE and bool(kernel.skipped)
    return name in SLOW or spends or (row is not None and row.gives in (Gives.CHOICE, Gives.ADVISOR))


def need_places(interp: Interpreter, node: n.For | n.Comprehension, scope: Scope) -> None:
    """Refuses `x[i]`, or `x.column[i]` of groups, in `for i in 0..len(x)`, whose last round `x` lacks however long it
    is. What a round may leave out is not looked at, nor what comes after another value of `x` or `i`."""
    of, (name, *more) = _counted(node.source), node.names
    if of is None or more or scope.variable("len") is not MISSING or (isinstance(node, n.For) and returns_inside(node)):
        return
    x, groups = of.span.text, isinstance(forms.example(interp.argument(of, scope)), Grouped)
    for part in node.body.body if isinstance(node, n.For) else (node.item,) * (node.condition is None):
        for one in _always(part):
            if isinstance(one, n.Index) and [arg.span.text for arg in one.args] == [name]:
                column = groups and isinstance(one.value, n.Attribute) and one.value.value.span.text == x
                if column or one.value.span.text == x:
                    message = f"`{one.span.text}` is outside of `{x}` in the last round, since a range has both ends"
                    raise refuse("ValueError", message, one.span, help=f"write `0..len({x}) - 1`")
        if isinstance(part, n.Statement) and {name, x.partition(".")[0]} & {*bound_in([part], lambda use: ())}:
            return


def _counted(ends: n.Expr) -> n.Expr | None:
    """The `x` of `0..len(x)`."""
    high = ends.high if isinstance(ends, n.Range) and ends.low.span.text == "0" else None
    if isinstance(high, n.Call) and high.function.span.text == "len" and len(high.args) == 1:
        return high.args[0] if isinstance(high.args[0], n.Name | n.Attribute) else None
    return None


def _always(node: n.Node) -> Iterator[n.Node]:
    """The expressions that are evaluated whenever this is."""
    yield node
    if isinstance(node, n.If | n.Conditional):
        parts: Sequence[n.Node] = (node.test,)
    elif isinstance(node, n.For | n.Comprehension | n.Over):
        parts = (node.source,)
    elif isinstance(node, n.Logic):
        parts = node.operands[:1]
    else:
        parts = () if isinstance(node, n.Lambda | n.Part | n.Def | n.Query | n.Block) else children(node)
    for part in parts:
        yield from _always(part)


def is_structural(name: str) -> bool:
    row = BUILTINS.get(name)
    return name in MATRICES or (row is not None and row.gives in STRUCTURAL)
