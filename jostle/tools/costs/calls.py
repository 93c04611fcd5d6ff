"""Calls before the run: functions are followed, measurements charged, everything else gives what is known of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, cast

from jostle.accounting.amounts import QUANTA
from jostle.diagnostics import Refusal
from jostle.doubles import arithmetic
from jostle.language import facts
from jostle.language.builtins import BUILTINS, SLOW
from jostle.language.facts import Effect, Gives, Reads
from jostle.language.row_functions import ROW_FUNCTIONS
from jostle.language.row_functions import Function as RowFunction
from jostle.records import replace
from jostle.run import operators
from jostle.run.evaluator import At
from jostle.run.expressions import attribute
from jostle.run.externals import KERNELS
from jostle.run.scope import Scope
from jostle.run.sequences import Period
from jostle.run.values import REQUIRED, Builtin, Function, Interval, JSet, Module, Part, RowForm
from jostle.syntax import nodes as n
from jostle.tools.costs import rows, selects
from jostle.tools.costs import values as val
from jostle.tools.costs.ledger import Opened
from jostle.tools.costs.walk import NO_SOURCES, Bounds, Walk

if TYPE_CHECKING:
    from jostle.run.evaluator import Evaluator


def outcome(work: Callable[..., object], *args: object, **keywords: object) -> object:
    """What a function of the run makes of these values, or what is known of it; `PUBLIC` where it refuses them."""
    try:
        result = work(*args, **keywords)
    except Refusal:
        return val.widened([*args, *keywords.values()])
    if isinstance(result, int) and not isinstance(result, bool):
        return float(result)
    if isinstance(result, (list, dict, JSet)):
        return result if len(result) <= val.MOST_HELD else val.uniform(list(result))
    return (
        result
        if val.is_constant(result) and not (isinstance(result, str) and len(result) > val.MOST_HELD)
        else val.PUBLIC
    )


def of_builtin(function: Builtin, args: Sequence[object], keywords: Mapping[str, object], at: At) -> object:
    """The same of a built-in."""
    more = {"at": at} if function.wants_call else {}

    def work(*args: object, **keywords: object) -> object:
        return operators.guarded(function.name, function.body, args, {**keywords, **more})

    return outcome(work, *args, **keywords)


def transfer_unary(op: str, value: object) -> object:
    if isinstance(value, val.NumberInterval):
        return val.NumberInterval(-value.high, -value.low) if op == "-" else value
    return outcome(operators.unary, op, value) if val.is_known(value) else val.PUBLIC


def transfer_binary(op: str, left: object, right: object) -> object:
    right = list(right) if op in ("in", "not in") and isinstance(right, dict) else right
    if val.is_known(left, right) or (op in "+-" and val.are_single(left, right)):
        return outcome(operators.binary, op, left, right)
    if op not in "+-*/%^":
        return val.PUBLIC  # also where bounds would decide: a number between bounds may be none (NaN)
    if isinstance(left, (float, val.NumberInterval)) and isinstance(right, (float, val.NumberInterval)):
        return _arithmetic(op, left, right)
    if isinstance(left, (list, val.Items)) and op in "+-":
        return _lists(op, left, right)
    return val.widened([left, right])


def _lists(op: str, left: list[object] | val.Items, right: object) -> object:
    """Two lists as one, or a list without some of its items."""
    if op == "+" and isinstance(left, list) and isinstance(right, list):
        return outcome(operators.binary, op, left, right)
    if not isinstance(right, (list, val.Items)):
        return val.widened([left, right])
    sides = (left, right) if op == "+" else (left,)
    items = val.join_all([x for side in sides for x in (side if isinstance(side, list) else [side.item])])
    least, most = zip(*[(len(s), len(s)) if isinstance(s, list) else (s.least, s.most) for s in sides], strict=True)
    return val.Items(items, sum(least) if op == "+" else 0, None if None in most else sum(map(int, most)))


def distinct(items: Sequence[object]) -> object:
    """The set of these items; where they may be equal, between one and all of them."""
    return (
        JSet(items) if val.are_single(list(items)) else val.Items(val.join_all(items), min(1, len(items)), len(items))
    )


def _arithmetic(op: str, left: object, right: object) -> object:
    (a, b), (c, d) = val.ends(left), val.ends(right)
    if op not in "+-*/" or (op == "/" and c <= 0 <= d):
        return val.ANY_NUMBER
    try:
        corners = [arithmetic(op, x, y) for x in (a, b) for y in (c, d)]
    except Refusal:
        return val.ANY_NUMBER
    return val.ANY_NUMBER if any(map(math.isnan, corners)) else val.NumberInterval(min(corners), max(corners))


def function_of_numbers(name: str, args: Sequence[object]) -> object:
    """A function of numbers, of which some are known by bounds."""
    operation = ROW_FUNCTIONS.get(name)
    rises = operation is not None and operation.rises and operation.number is not None
    if operation is None or not rises:
        return val.ANY_NUMBER if _are_numbers(args) else val.PUBLIC
    if operation.many and len(args) == 1 and isinstance(args[0], list):
        args = args[0]
    bounds = [val.ANY_NUMBER if v is val.PUBLIC and len(args) > 1 else v for v in args]
    exact = operation.many or all(isinstance(v, float) for v in args[operation.arity :])
    return _between_ends(operation, bounds) if exact and _are_numbers(bounds) else val.PUBLIC


def _between_ends(operation: RowFunction, args: Sequence[object]) -> object:
    """What a function that rises with each of its operands gives between their ends."""
    try:
        low, high = (float(operation.number(*[val.ends(v)[side] for v in args])) for side in (0, 1))  # type: ignore[misc]
    except (ValueError, OverflowError, TypeError):
        return val.ANY_NUMBER
    return val.ANY_NUMBER if math.isnan(low) or math.isnan(high) else val.NumberInterval(low, high)


def _are_numbers(args: Sequence[object]) -> bool:
    return bool(args) and all(isinstance(v, (float, val.NumberInterval)) for v in args)


def transfer_fold(name: str, items: Sequence[object], values: Sequence[object]) -> object:
    """`max over` and its kin."""
    if val.is_known(values):
        return outcome(operators.fold, name, items, values)
    if name.startswith("arg"):
        return val.join_all(items)
    return val.PUBLIC if name == "sum" else function_of_numbers(name, values)


def transfer_call(w: Walk, node: n.Call, scope: Scope) -> object:
    return _finished(w, node, *_prepared(w, node, scope), scope)


def _prepared(w: Walk, node: n.Call, scope: Scope) -> tuple[object, list[object], dict[str, object]]:
    function = w.eval(node.function, scope)
    if isinstance(function, RowForm):
        return function, [], {}
    args = [w.eval(arg, scope) for arg in node.args]
    return function, args, {keyword.name: w.eval(keyword.value, scope) for keyword in node.keywords}


def _finished(
    w: Walk, node: n.Call, function: object, args: list[object], keywords: dict[str, object], scope: Scope
) -> object:
    if isinstance(function, RowForm) and function.name in BUILTINS:
        return rows.row_form(w, BUILTINS[function.name], node, scope)
    return transfer_apply(w, function, args, keywords, node)


def transfer_spending(w: Walk, node: n.Spending, scope: Scope) -> object:
    """`f(x) with epsilon e`: callee, arguments and amount come before the allotment opens."""
    called = node.call
    if called is None:
        return w.allotted(node.spend, scope, val.ReachedSources(()), lambda: w.eval(node.value, scope), lambda: val.TOP)
    function, args, keywords = _prepared(w, called, scope)
    reached = val.reached_sources(*args, *keywords.values())
    return w.allotted(
        node.spend, scope, reached, lambda: _finished(w, called, function, args, keywords, scope), lambda: val.TOP
    )


def transfer_apply(
    w: Walk, function: object, args: Sequence[object], keywords: dict[str, object], node: n.Expr
) -> object:
    w.step(node.span)
    match function:
        case Function(params=params):
            local = dict(zip((name for name, _ in params), args, strict=False)) | keywords
            return w.enter(function, {n: val.PUBLIC if v is REQUIRED else v for n, v in params} | local, node)
        case Part():
            return transfer_apply(w, function.run, args, keywords, node)
        case Builtin(name=name) | RowForm(name=name) if name in BUILTINS:
            return _transfer_builtin(w, function, Arguments(BUILTINS[name], args, keywords), node)
        case val.Maker():
            return _choose_option(w, function, [*args, *keywords.values()], node)
        case val.OneOf():
            ways = [partial(transfer_apply, w, one, args, keywords, node) for one in function.values]
            return w.paths(ways)
    if function is val.TOP or (isinstance(function, Builtin | RowForm) and function.name not in KERNELS):
        why = "a function that is not known here is called"
        w.charge(val.ReachedSources((), open=True), (0, math.inf, math.inf), node.span, why)
        return val.TOP
    return val.PUBLIC


def _choose_option(w: Walk, maker: val.Maker, args: Sequence[object], node: n.Expr) -> object:
    """Any of the features, each in an allotment of its own, then one of the options with what is left."""
    if maker.call is not None:
        return transfer_apply(w, maker.call, [val.Maker(maker.options, maker.features), *args], {}, node)
    data = args[0] if args else val.PUBLIC
    reached = val.reached_sources(data)
    private = bool(reached.exposures) or reached.open
    opened = w.allotment
    if private and opened is None:
        return val.PUBLIC  # refused
    most = math.inf
    if private and opened is not None and not opened.boundless:
        most = w.left_of(opened, reached)[1]

    def followed(part: object, apart: bool) -> Callable[[], object]:
        inner = Opened(0, most, 0, node.span, reached if private else NO_SOURCES, boundless=not private)
        call = lambda: transfer_apply(w, part, [data], {}, node)  # noqa: E731
        return (lambda: w.follow_inside(inner, call, lambda: val.TOP)) if apart or not private else call

    if maker.score is not None:
        return _validated(w, maker, data, [followed(one, True) for one in val.leaves(maker.options)], reached, node)
    for feature in val.leaves(maker.features):
        w.optionally(followed(feature, True))
        if private:  # one that looks at public facts runs in the allotment itself
            w.optionally(followed(feature, False))
    if maker.picks:
        return val.join_all(list(val.leaves(maker.options)))
    return w.paths([followed(option, False) for option in val.leaves(maker.options)])


def _validated(
    w: Walk,
    maker: val.Maker,
    data: object,
    options: Sequence[Callable[[], object]],
    reached: val.ReachedSources,
    node: n.Expr,
) -> object:
    """Each of the options in an allotment of its own, and its score; then a selection with all that is left."""
    answers, scores = [], []
    for option in options:
        answers.append(option())
        scores.append(transfer_apply(w, maker.score, [data, answers[-1]], {}, node))
    if len(answers) > 1 and (reached.exposures or reached.open):
        measured = val.reached_sources([data, *scores])
        w.charge(measured, w.bare(measured, 1), node.span)
    return val.join_all(answers)


# Builtins ----------------------------------------------------------------------------------------


class Arguments:
    """What a built-in is called with, by the names that its row gives them."""

    def __init__(self, row: facts.Builtin, args: Sequence[object], keywords: dict[str, object]) -> None:
        self.row, self.args, self.keywords = row, list(args), keywords

    def named(self, name: str, default: object = val.PUBLIC) -> object:
        """An argument by place or by name; `default` where it is left out."""
        place = self.row.place(name)
        if place is not None and place < len(self.args):
            return self.args[place]
        return self.keywords.get(name, default)

    @property
    def first(self) -> object:
        return self.named(self.row.parameters[0].name)

    @property
    def exposed(self) -> object:
        """What is measured, scored or transformed."""
        return self.named(self.row.exposed.name) if self.row.exposed is not None else val.PUBLIC


def _transfer_builtin(w: Walk, function: object, call: Arguments, node: n.Expr) -> object:
    """The value of a built-in on values; a form of rows under another name is not followed."""
    if call.row.effect is Effect.MEASURES:
        _measure(w, call, node)
    if isinstance(function, Builtin) and _is_asked(function, call):
        return of_builtin(function, call.args, call.keywords, (cast("Evaluator", w), node.span))
    return _RESULTS[call.row.gives](w, call, node)


_ORDERLY = frozenset({
    Gives.LENGTH, Gives.ITEMS, Gives.FIELDS, Gives.REVERSED, Gives.NUMBERED, Gives.ZIPPED, Gives.APPENDED, Gives.RECORD,
})  # fmt: skip
"""What functions give that look at containers, and not at what is in them."""


def _is_asked(function: Builtin, call: Arguments) -> bool:
    """Whether what a function gives of these values is computed as a run does, at no cost to speak of."""
    if call.row.gives in _ORDERLY:
        containers = call.args if call.row.gives is Gives.ZIPPED else call.args[:1]
        return all(map(val.is_definite, containers)) and bool(containers) and not call.keywords
    is_public = call.row.effect is Effect.PURE and call.row.reads in (Reads.PUBLIC, Reads.CONTAINERS)
    if not is_public or call.row.name in SLOW or (function.wants_call and call.row.gives is not Gives.SORTED):
        return False
    return val.is_known(*call.args, *call.keywords.values())


def _one_item(w: Walk, call: Arguments, node: n.Expr) -> object:
    domain = val.walked(call.first)
    return domain.item if isinstance(domain, val.Items) else val.join_all(domain)


def _advisor(w: Walk, call: Arguments, node: n.Expr) -> object:
    advisor, around = call.first, call.named("call", None)
    if isinstance(advisor, val.Maker) and around is not None:
        return val.Maker(advisor.options, advisor.features, call=around)
    return advisor


def _measure(w: Walk, call: Arguments, node: n.Expr) -> None:
    """Charges an amount as it is given, or all that is left."""
    reached = val.reached_sources(call.exposed)
    if not (reached.exposures or reached.open):
        return
    epsilon, delta = call.named("epsilon", None), call.named("delta", None)
    needed = call.named("paid", None) is None  # or `prepaid` was charged for it
    amount: Bounds = (0, math.inf, 0)
    if epsilon is None:
        amount = w.bare(reached, 1, needed=needed)
    elif not (isinstance(epsilon, val.OneOf) or epsilon is val.TOP):
        amount = *val.in_quanta(epsilon), 0
    least, most = amount[0] if needed else 0, amount[1]
    most_delta = amount[2] if delta is None else val.in_quanta(delta)[1]
    w.charge(reached, (least, most, most_delta if most else 0), node.span)  # of nothing no δ either


def _score(value: val.Handle, name: str) -> object:
    return val.Handle("score", value.exposures, name=name) if value.exposures else val.PUBLIC


def _shares(table: val.Handle, many: object) -> object:
    """The parts of a partition of its own; of how many, where that is known."""
    label, whole = object(), val.Handle(table.kind, table.exposures, table.schema)
    if isinstance(many, float) and many.is_integer() and 1 <= many <= 1000:
        return [rows.extended(whole, label, float(i)) for i in range(int(many))]
    return val.Items(rows.extended(whole, label, val.EACH), 1)


def _union_handle(args: Sequence[object]) -> object:
    """Of tables one that reads them all; of workloads, which are public, nothing that could charge."""
    parts = args[0] if args and isinstance(args[0], list) else args
    tables = [part for part in parts if isinstance(part, val.Handle)]
    if any(table.kind == "records" for table in tables):
        return selects.weighted_records("union", parts)
    if len(tables) < len(parts) or not tables:
        return selects.some_table(*args)
    return val.Handle("table", reduce(selects.joined_handles, tables).exposures)


def _limited_handle(w: Walk, handle: object, amount: object) -> object:
    """An agent: charges through it add up to no more than its amount."""
    if not isinstance(handle, val.Handle):
        return val.widened(handle)
    cap = val.in_quanta(amount)[1]
    if cap == math.inf:
        return handle
    w.agents += 1
    exposures = tuple(replace(e, agents=(*e.agents, (w.agents, int(cap)))) for e in handle.exposures)
    return replace(handle, exposures=exposures)


def _balance(value: object) -> object:
    """`spent` and `left`: a number up to the limit."""
    reached = val.reached_sources(value)
    limits = [e.source.limit for e in reached.exposures]
    amounts = [limit for limit in limits if limit is not None]
    plain = len(amounts) == 1 and len(limits) == 1 and reached.exposures[0].source.delta is None
    return val.NumberInterval(0.0, amounts[0] / QUANTA) if plain else val.PUBLIC


def _sorted_items(w: Walk, call: Arguments, node: n.Expr) -> object:
    """The items in some order; `by` is called with each."""
    items, by = val.walked(call.first), call.named("by", None)
    if by is not None and not isinstance(by, str):

        def each(item: object) -> bool:
            transfer_apply(w, by, [item], {}, node)
            return True

        w.loop(Scope(None), node.span, items, set(), each)
    return val.uniform(items) if isinstance(items, list) else items


def _items_like(value: object) -> object:
    """The items of a container in any order."""
    items = val.walked(value)
    return val.Items(items.item, items.least, items.most) if isinstance(items, val.Items) else val.uniform(items)


def _pairs(w: Walk, call: Arguments, node: n.Expr) -> object:
    items = _items_like(call.first)
    return replace(items, item=[val.PUBLIC, items.item]) if isinstance(items, val.Items) else items


def _appended(w: Walk, call: Arguments, node: n.Expr) -> object:
    value = call.first
    items = value if isinstance(value, (list, val.Items)) else val.Items(val.widened(value))
    return transfer_binary("+", items, [call.named("item")])


def _zipped(w: Walk, call: Arguments, node: n.Expr) -> object:
    columns = [val.walked(arg) for arg in call.args]
    if all(isinstance(c, list) for c in columns):
        return [list(row) for row in zip(*columns, strict=False)]
    return val.Items([c.item if isinstance(c, val.Items) else val.join_all(c) for c in columns])


def _length(value: object) -> object:
    if isinstance(value, val.Handle):
        keys = transfer_attribute(value, "categories")
        return float(len(keys)) if isinstance(keys, list) else val.ANY_NUMBER
    if isinstance(value, val.Items) and value.most is not None:
        return (
            float(value.most)
            if value.least == value.most
            else val.NumberInterval(float(value.least), float(value.most))
        )
    return val.ANY_NUMBER


# Fields ------------------------------------------------------------------------------------------


def transfer_attribute(value: object, name: str) -> object:
    match value:
        case dict():
            return value.get(name, val.PUBLIC)
        case Module():
            return value.names.get(name, val.PUBLIC)
        case val.OneOf():
            return val.join_all([transfer_attribute(one, name) for one in value.values])
        case val.Maker() if name == "pick":
            return val.Maker(value.options, value.features, picks=True)
        case Interval() | Period():
            return outcome(attribute, value, name)
        case val.Handle():
            return _of_handle(value, name)
    return val.TOP if value is val.TOP else val.PUBLIC


def _of_handle(value: val.Handle, name: str) -> object:
    match value.kind, name:
        case "cube", "database":
            return value
        case "column", "name":
            return value.name
        case "column", "categories" if value.schema is not None:
            keys = rows.keys_of(value.schema.get(value.name))
            return val.PUBLIC if keys is None else keys
        case "table", "columns" if value.schema is not None:
            return list(value.schema)
    return val.PUBLIC


_RESULTS: Mapping[Gives, Callable[[Walk, Arguments, n.Expr], object]] = {
    **dict.fromkeys((Gives.RELEASED, Gives.CONSTANT, Gives.DOMAIN, Gives.WORKLOAD), lambda w, call, node: val.PUBLIC),
    **dict.fromkeys((
        Gives.CUBE, Gives.VECTORS, Gives.FILTERED, Gives.DERIVED, Gives.EXPLODED, Gives.PICKED, Gives.PARTS,
        Gives.COLUMNS,
    ), lambda w, call, node: val.widened([*call.args, *call.keywords.values()])),
    Gives.NUMBER: lambda w, call, node: (
        function_of_numbers(call.row.name, call.args) if val.cannot_charge(call.args) else val.PUBLIC
    ),
    Gives.BALANCE: lambda w, call, node: _balance(call.first),
    Gives.ITEM: _one_item,
    Gives.SCORE: lambda w, call, node: val.each_way(call.exposed, lambda of: _score(of, call.row.name)),
    Gives.SHARES: lambda w, call, node: val.each_way(call.exposed, lambda of: _shares(of, call.named("parts"))),
    **dict.fromkeys(
        (Gives.BINNED, Gives.MOMENTS),
        lambda w, call, node: val.each_way(call.exposed, lambda of: val.Handle(of.kind, of.exposures)),
    ),
    Gives.UNION: lambda w, call, node: _union_handle(call.args),
    Gives.RECORDS: lambda w, call, node: selects.weighted_records(
        call.row.name, [*call.args, *call.keywords.values()]
    ),
    Gives.LIMITED: lambda w, call, node: _limited_handle(w, call.exposed, call.named("amount")),
    Gives.CHOICE: lambda w, call, node: val.Maker(call.named("ops"), call.named("feats")),
    Gives.ADVISOR: _advisor,
    Gives.OPTION: lambda w, call, node: Part("Option", call.first),
    Gives.UTILITY: lambda w, call, node: Part("Utility", call.first),
    Gives.FEATURES: lambda w, call, node: call.first,
    Gives.SORTED: _sorted_items,
    Gives.LENGTH: lambda w, call, node: _length(call.first),
    Gives.APPENDED: _appended,
    Gives.ZIPPED: _zipped,
    Gives.RECORD: lambda w, call, node: val.widened(call.first),
    Gives.NUMBERED: _pairs,
    Gives.DISTINCT: lambda w, call, node: (
        distinct(items) if isinstance(items := val.walked(call.first), list) else _items_like(items)
    ),
    **dict.fromkeys((Gives.REVERSED, Gives.ITEMS), lambda w, call, node: _items_like(call.first)),
    Gives.FIELDS: lambda w, call, node: _items_like(val.items_in(call.first) or call.first),
}  # fmt: skip
"""What a built-in gives, by what its row says of it."""
