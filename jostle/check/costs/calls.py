"""Calls before the run: functions are followed, measurements charged, everything else gives what is known of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, cast

from jostle.accounting.amounts import QUANTA
from jostle.check.costs import numbers, rows, selects
from jostle.check.costs.ledger import NEVER, SOURCE, Opened
from jostle.check.costs.values import (
    ANY_NUMBER,
    EACH,
    PUBLIC,
    TOP,
    Handle,
    Items,
    Maker,
    Most,
    NumberInterval,
    OneOf,
    ReachedSources,
    cannot_charge,
    each_way,
    in_quanta,
    is_definite,
    is_known,
    items_in,
    join_all,
    leaves,
    reached_sources,
    uniform,
    walked,
    widened,
)  # fmt: skip
from jostle.check.costs.walk import NO_SOURCES, Bounds, Walk
from jostle.language import facts
from jostle.language.builtins import BUILTINS, SLOW
from jostle.language.facts import Effect, Gives, Reads
from jostle.records import replace
from jostle.run.expressions import attribute
from jostle.run.externals import KERNELS
from jostle.run.scope import Scope
from jostle.run.sequences import Period
from jostle.run.values import REQUIRED, Builtin, Function, Interval, Module, Part, RowForm
from jostle.syntax import nodes as n
from jostle.syntax.walk import every

if TYPE_CHECKING:
    from jostle.run.evaluator import Evaluator


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
        return w.allotted(node.spend, scope, ReachedSources(()), lambda: w.eval(node.value, scope), lambda: TOP)
    function, args, keywords = _prepared(w, called, scope)
    reached = reached_sources(*args, *keywords.values())
    return w.allotted(
        node.spend, scope, reached, lambda: _finished(w, called, function, args, keywords, scope),
        lambda: _kind_given(w, function),
    )  # fmt: skip


def _kind_given(w: Walk, function: object, deepest: int = 4) -> object:
    """What a call gives that took too long to follow: `PUBLIC` where all its ways end with a call of a kernel."""
    if not (isinstance(function, Function) and deepest):
        return PUBLIC if isinstance(function, Builtin) and function.name in KERNELS else TOP
    body = function.body
    ends = [node.value for node in every(body) if isinstance(node, n.Return)] if isinstance(body, n.Block) else [body]
    own = {name for name, _ in function.params} | (w.assigned(body) if isinstance(body, n.Block) else set())
    for end in ends:
        name = end.function.id if isinstance(end, n.Call) and isinstance(end.function, n.Name) else ""
        called = None if name in own else w.look_up(function.scope, name)
        if end is not None and _kind_given(w, called, deepest - 1) is TOP:
            return TOP
    return PUBLIC


def transfer_apply(
    w: Walk, function: object, args: Sequence[object], keywords: dict[str, object], node: n.Expr
) -> object:
    """Calls any callable value."""
    match function:
        case Function(params=params):
            local = dict(zip((name for name, _ in params), args, strict=False)) | keywords
            return w.enter(function, {n: PUBLIC if v is REQUIRED else v for n, v in params} | local, node)
        case Part():
            return transfer_apply(w, function.run, args, keywords, node)
        case Builtin(name=name) | RowForm(name=name) if name in BUILTINS:
            return _transfer_builtin(w, function, Arguments(BUILTINS[name], args, keywords), node)
        case Maker():
            return _choose_option(w, function, [*args, *keywords.values()], node)
        case OneOf():
            ways = [partial(transfer_apply, w, one, args, keywords, node) for one in function.values]
            return w.paths(ways)
    if function is TOP or (isinstance(function, Builtin | RowForm) and function.name not in KERNELS):
        why = "a function that is not known here is called"
        w.charge(ReachedSources((), open=True), (0, math.inf, math.inf), node.span, why)
        return TOP
    return PUBLIC


def _choose_option(w: Walk, maker: Maker, args: Sequence[object], node: n.Expr) -> object:
    """Any of the features, each in an allotment of its own, then one of the options with what is left."""
    if maker.call is not None:
        return transfer_apply(w, maker.call, [Maker(maker.options, maker.features), *args], {}, node)
    data = args[0] if args else PUBLIC
    reached = reached_sources(data)
    private = bool(reached.exposures) or reached.open
    opened = w.allotment
    if private and opened is None:
        return PUBLIC  # refused
    most = math.inf
    if private and opened is not None and not opened.boundless:
        most = w.left_of(opened, reached)[1]

    def followed(part: object, apart: bool) -> Callable[[], object]:
        inner = Opened(0, most, 0, node.span, reached if private else NO_SOURCES, boundless=not private)
        call = lambda: transfer_apply(w, part, [data], {}, node)  # noqa: E731
        return (lambda: w.follow_inside(inner, call, lambda: TOP)) if apart or not private else call

    if maker.score is not None:
        return _validated(w, maker, data, [followed(one, True) for one in leaves(maker.options)], reached, node)
    for feature in leaves(maker.features):
        if private and _is_refused(w, followed(feature, False), most, reached, node):
            return TOP  # whatever it is given is not enough, also where the choice is trained
        w.optionally(followed(feature, True))
        if private:  # one that looks at public facts runs in the allotment itself
            w.optionally(followed(feature, False))
    if maker.picks:
        return join_all(list(leaves(maker.options)))
    return w.paths([followed(option, False) for option in leaves(maker.options)])


def _is_refused(
    w: Walk, call: Callable[[], object], most: Most, reached: ReachedSources, node: n.Expr
) -> bool:  # fmt: skip
    """Whether a call is sure to ask for more than `most`: then no way goes on."""
    back, charged = w.here(), {source: dict(places) for source, places in w.charged.items()}
    if most < math.inf:
        w.follow_inside(Opened(int(most), most, 0, node.span, reached), call, lambda: TOP)
    if any(w.ledger.tally(SOURCE, e.source).total[0] >= NEVER for e in reached.exposures):
        return True
    back()
    w.charged = charged
    return False


def _validated(
    w: Walk, maker: Maker, data: object, options: Sequence[Callable[[], object]], reached: ReachedSources, node: n.Expr
) -> object:  # fmt: skip
    """Each of the options in an allotment of its own, and its score; then a selection with all that is left."""
    answers, scores = [], []
    for option in options:
        answers.append(option())
        scores.append(transfer_apply(w, maker.score, [data, answers[-1]], {}, node))
    if len(answers) > 1 and (reached.exposures or reached.open):
        measured = reached_sources([data, *scores])
        w.charge(measured, w.bare(measured, 1), node.span)
    return join_all(answers)


# Builtins ----------------------------------------------------------------------------------------


class Arguments:
    """What a built-in is called with, by the names that its row gives them."""

    def __init__(self, row: facts.Builtin, args: Sequence[object], keywords: dict[str, object]) -> None:
        self.row, self.args, self.keywords = row, list(args), keywords

    def named(self, name: str, default: object = PUBLIC) -> object:
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
        return self.named(self.row.exposed.name) if self.row.exposed is not None else PUBLIC


def _transfer_builtin(w: Walk, function: object, call: Arguments, node: n.Expr) -> object:
    """The value of a built-in on values; a form of rows under another name is not followed."""
    if call.row.effect is Effect.MEASURES:
        most = _measure(w, call, node)
        if call.row.name == "best_run":
            _runs_of_best(w, call, most, node)
    if isinstance(function, Builtin) and _is_asked(function, call):
        return numbers.of_builtin(function, call.args, call.keywords, (cast("Evaluator", w), node.span))
    return _RESULTS[call.row.gives](w, call, node)


_ORDERLY = frozenset({
    Gives.LENGTH, Gives.ITEMS, Gives.FIELDS, Gives.REVERSED, Gives.NUMBERED, Gives.ZIPPED, Gives.APPENDED, Gives.RECORD,
})  # fmt: skip
"""What functions give that look at containers, and not at what is in them."""


def _is_asked(function: Builtin, call: Arguments) -> bool:
    """Whether what a function gives of these values is computed as a run does, at no cost to speak of."""
    if call.row.gives in _ORDERLY:
        containers = call.args if call.row.gives is Gives.ZIPPED else call.args[:1]
        return all(map(is_definite, containers)) and bool(containers) and not call.keywords
    is_public = call.row.effect is Effect.PURE and call.row.reads in (Reads.PUBLIC, Reads.CONTAINERS)
    if not is_public or call.row.name in SLOW or (function.wants_call and call.row.gives is not Gives.SORTED):
        return False
    return is_known(*call.args, *call.keywords.values())


def _one_item(value: object) -> object:
    domain = walked(value)
    return domain.item if isinstance(domain, Items) else join_all(domain)


def _advisor(w: Walk, call: Arguments, node: n.Expr) -> object:
    advisor, around = call.first, call.named("call", None)
    if isinstance(advisor, Maker) and around is not None:
        return Maker(advisor.options, advisor.features, call=around)
    return advisor


def _runs_of_best(w: Walk, call: Arguments, most: Most, node: n.Expr) -> None:
    """Its runs have a third of the amount each, or half: where that is not enough, all fail."""
    parts = 3 if call.named("good", None) is None and call.named("law", "geometric") == "geometric" else 2
    data, run, one = call.first, call.named("run"), _one_item(call.named("candidates"))
    called = lambda: transfer_apply(w, run, [data, one], {}, node)  # noqa: E731
    _is_refused(w, called, most if most == math.inf else most // parts, reached_sources(data), node)


def _measure(w: Walk, call: Arguments, node: n.Expr) -> Most:
    """Charges an amount as it is given, or all that is left; gives the most that it may be."""
    reached = reached_sources(call.exposed)
    if not (reached.exposures or reached.open):
        return math.inf
    epsilon, delta = call.named("epsilon", None), call.named("delta", None)
    needed = call.named("paid", None) is None  # or `prepaid` was charged for it
    amount: Bounds = (0, math.inf, 0)
    if epsilon is None:
        amount = w.bare(reached, 1, needed=needed)
    elif not (isinstance(epsilon, OneOf) or epsilon is TOP):
        amount = *in_quanta(epsilon), 0
    least, most = amount[0] if needed else 0, amount[1]
    most_delta = amount[2] if delta is None else in_quanta(delta)[1]
    w.charge(reached, (least, most, most_delta if most else 0), node.span)  # of nothing no δ either
    return most


def _score(value: Handle, name: str) -> object:
    return Handle("score", value.exposures, name=name) if value.exposures else PUBLIC


def _shares(table: Handle, many: object) -> object:
    """The parts of a partition of its own; of how many, where that is known."""
    label, whole = object(), Handle(table.kind, table.exposures, table.schema)
    if isinstance(many, float) and many.is_integer() and 1 <= many <= 1000:
        return [rows.extended(whole, label, float(i)) for i in range(int(many))]
    return Items(rows.extended(whole, label, EACH), 1)


def _union_handle(args: Sequence[object]) -> object:
    """Of tables one that reads them all; of workloads, which are public, nothing that could charge."""
    parts = args[0] if args and isinstance(args[0], list) else args
    tables = [part for part in parts if isinstance(part, Handle)]
    if any(table.kind == "records" for table in tables):
        return selects.weighted_records("union", parts)
    if len(tables) < len(parts) or not tables:
        return selects.some_table(*args)
    return Handle("table", reduce(selects.joined_handles, tables).exposures)


def _limited_handle(w: Walk, handle: object, amount: object) -> object:
    """An agent: charges through it add up to no more than its amount."""
    if not isinstance(handle, Handle):
        return widened(handle)
    cap = in_quanta(amount)[1]
    if cap == math.inf:
        return handle
    w.agents += 1
    exposures = tuple(replace(e, agents=(*e.agents, (w.agents, int(cap)))) for e in handle.exposures)
    return replace(handle, exposures=exposures)


def _balance(value: object) -> object:
    """`spent` and `left`: a number up to the limit."""
    reached = reached_sources(value)
    limits = [e.source.limit for e in reached.exposures]
    amounts = [limit for limit in limits if limit is not None]
    plain = len(amounts) == 1 and len(limits) == 1 and reached.exposures[0].source.delta is None
    return NumberInterval(0.0, amounts[0] / QUANTA) if plain else PUBLIC


def _sorted_items(w: Walk, call: Arguments, node: n.Expr) -> object:
    """The items in some order; `by` is called with each."""
    items, by = walked(call.first), call.named("by", None)
    if by is not None and not isinstance(by, str):

        def each(item: object) -> bool:
            transfer_apply(w, by, [item], {}, node)
            return True

        w.loop(Scope(None), node.span, items, set(), each)
    return uniform(items) if isinstance(items, list) else items


def _items_like(value: object) -> object:
    """The items of a container in any order."""
    items = walked(value)
    return Items(items.item, items.least, items.most) if isinstance(items, Items) else uniform(items)


def _pairs(w: Walk, call: Arguments, node: n.Expr) -> object:
    items = _items_like(call.first)
    return replace(items, item=[PUBLIC, items.item]) if isinstance(items, Items) else items


def _appended(w: Walk, call: Arguments, node: n.Expr) -> object:
    value = call.first
    items = value if isinstance(value, (list, Items)) else Items(widened(value))
    return numbers.transfer_binary("+", items, [call.named("item")])


def _zipped(w: Walk, call: Arguments, node: n.Expr) -> object:
    columns = [walked(arg) for arg in call.args]
    if all(isinstance(c, list) for c in columns):
        return [list(row) for row in zip(*columns, strict=False)]
    return Items([c.item if isinstance(c, Items) else join_all(c) for c in columns])


def _length(value: object) -> object:
    if isinstance(value, Handle):
        keys = transfer_attribute(value, "categories")
        return float(len(keys)) if isinstance(keys, list) else ANY_NUMBER
    if isinstance(value, Items) and value.most is not None:
        return float(value.most) if value.least == value.most else NumberInterval(float(value.least), float(value.most))
    return ANY_NUMBER


# Fields ------------------------------------------------------------------------------------------


def transfer_attribute(value: object, name: str) -> object:
    match value:
        case dict():
            return value.get(name, PUBLIC)
        case Module():
            return value.names.get(name, PUBLIC)
        case OneOf():
            return join_all([transfer_attribute(one, name) for one in value.values])
        case Maker() if name == "pick":
            return Maker(value.options, value.features, picks=True)
        case Interval() | Period():
            return numbers.outcome(attribute, value, name)
        case Handle():
            return _of_handle(value, name)
    return TOP if value is TOP else PUBLIC


def _of_handle(value: Handle, name: str) -> object:
    match value.kind, name:
        case "cube", "database":
            return value
        case "column", "name":
            return value.name
        case "column", "categories" if value.schema is not None:
            keys = rows.keys_of(value.schema.get(value.name))
            return PUBLIC if keys is None else keys
        case "table", "columns" if value.schema is not None:
            return list(value.schema)
    return PUBLIC


_RESULTS: Mapping[Gives, Callable[[Walk, Arguments, n.Expr], object]] = {
    **dict.fromkeys((Gives.RELEASED, Gives.CONSTANT, Gives.DOMAIN, Gives.WORKLOAD), lambda w, call, node: PUBLIC),
    **dict.fromkeys((
        Gives.CUBE, Gives.VECTORS, Gives.FILTERED, Gives.DERIVED, Gives.EXPLODED, Gives.PICKED, Gives.PARTS,
        Gives.COLUMNS,
    ), lambda w, call, node: widened([*call.args, *call.keywords.values()])),
    Gives.NUMBER: lambda w, call, node: (
        numbers.function(call.row.name, call.args) if cannot_charge(call.args) else PUBLIC
    ),
    Gives.BALANCE: lambda w, call, node: _balance(call.first),
    Gives.ITEM: lambda w, call, node: _one_item(call.first),
    Gives.SCORE: lambda w, call, node: each_way(call.exposed, lambda of: _score(of, call.row.name)),
    Gives.SHARES: lambda w, call, node: each_way(call.exposed, lambda of: _shares(of, call.named("parts"))),
    Gives.BINNED: lambda w, call, node: each_way(call.exposed, lambda of: Handle(of.kind, of.exposures)),
    Gives.MOMENTS: lambda w, call, node: each_way(
        call.exposed, lambda of: replace(selects.on_whole(of), schema=None)
    ),
    Gives.UNION: lambda w, call, node: _union_handle(call.args),
    Gives.RECORDS: lambda w, call, node: selects.weighted_records(
        call.row.name, [*call.args, *call.keywords.values()]
    ),
    Gives.LIMITED: lambda w, call, node: _limited_handle(w, call.exposed, call.named("amount")),
    Gives.CHOICE: lambda w, call, node: Maker(call.named("ops"), call.named("feats")),
    Gives.ADVISOR: _advisor,
    Gives.OPTION: lambda w, call, node: Part("Option", call.first),
    Gives.UTILITY: lambda w, call, node: Part("Utility", call.first),
    Gives.FEATURES: lambda w, call, node: call.first,
    Gives.SORTED: _sorted_items,
    Gives.LENGTH: lambda w, call, node: _length(call.first),
    Gives.APPENDED: _appended,
    Gives.ZIPPED: _zipped,
    Gives.RECORD: lambda w, call, node: widened(call.first),
    Gives.NUMBERED: _pairs,
    Gives.DISTINCT: lambda w, call, node: (
        numbers.distinct(items) if isinstance(items := walked(call.first), list) else _items_like(items)
    ),
    **dict.fromkeys((Gives.REVERSED, Gives.ITEMS), lambda w, call, node: _items_like(call.first)),
    Gives.FIELDS: lambda w, call, node: _items_like(items_in(call.first) or call.first),
}  # fmt: skip
"""What a built-in gives, by what its row says of it."""
