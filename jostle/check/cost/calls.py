"""Calls before the run: functions are followed, measurements charged, everything else gives what is known of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, assert_never

from jostle.check.cost import numbers, queries
from jostle.check.cost.ledger import Opened
from jostle.check.cost.paths import MOST_CALLS, TooLong, walked
from jostle.check.cost.sources import keys_of
from jostle.check.cost.tree import EACH, Most, Why
from jostle.check.cost.values import (
    MISSING,
    PUBLIC,
    TOP,
    Builtin,
    Closure,
    Exposure,
    Handle,
    Items,
    Maker,
    Module,
    NumberInterval,
    OneOf,
    Part,
    Range,
    ReachedSources,
    Scope,
    Set,
    cannot_charge,
    in_quanta,
    join_all,
    leaves,
    reached_sources,
    widened,
)  # fmt: skip
from jostle.language import facts
from jostle.language.facts import Effect, Gives
from jostle.syntax import nodes as n

if TYPE_CHECKING:
    from jostle.check.cost.walk import Walker


def call(w: Walker, node: n.Call, scope: Scope) -> Any:
    function, args, keywords = prepared(w, node, scope)
    return finished(w, node, function, args, keywords, scope)


def prepared(w: Walker, node: n.Call, scope: Scope) -> tuple[Any, list[Any], dict[str, Any]]:
    function = w.eval(node.function, scope)
    if isinstance(function, Builtin) and function.row.over_rows:
        return function, [], {}
    args = [w.eval(arg, scope) for arg in node.args]
    return function, args, {keyword.name: w.eval(keyword.value, scope) for keyword in node.keywords}


def finished(w: Walker, node: n.Call, function: Any, args: list[Any], keywords: dict[str, Any], scope: Scope) -> Any:
    if isinstance(function, Builtin) and function.row.over_rows:
        return queries.row_form(w, function.row, node, scope)
    return apply(w, function, args, keywords, node)


def spending(w: Walker, node: n.Spending, scope: Scope) -> Any:
    """`f(x) with epsilon e`: callee, arguments and amount come before the allotment opens."""
    if not isinstance(node.value, n.Call):
        opened = w.opening(node.spend, scope, ReachedSources(()))
        return w.allotted(opened, lambda: w.eval(node.value, scope), lambda: TOP)
    called = node.value
    function, args, keywords = prepared(w, called, scope)
    reached = reached_sources(*args, *keywords.values())
    opened = w.opening(node.spend, scope, reached)
    return w.allotted(opened, lambda: finished(w, called, function, args, keywords, scope), lambda: TOP)


def apply(w: Walker, function: Any, args: Sequence[Any], keywords: dict[str, Any], node: n.Expr) -> Any:
    """Calls any callable value."""
    w.step(node.span)
    if isinstance(function, Closure):
        purity = not w.trying and w.purity.function(function) and all(map(w.purity.value, (*args, *keywords.values())))
        if purity:
            return w.trial(lambda: _closure(w, function, args, keywords, node))
        return _closure(w, function, args, keywords, node)
    if isinstance(function, Part):
        return apply(w, function.run, args, keywords, node)
    if isinstance(function, Builtin):
        return _builtin(w, Arguments(function.row, args, keywords), node)
    if isinstance(function, Maker):
        return _choose(w, function, args, node)
    if isinstance(function, OneOf):
        return w.paths([_later(w, one, args, keywords, node) for one in function.values])
    if function is TOP:
        w.charge_everything(math.inf, math.inf, Why("a function that is not known here is called", node.span))
        return TOP
    return PUBLIC


def _later(w: Walker, function: Any, args: Sequence[Any], keywords: dict[str, Any], node: n.Expr) -> Callable[[], Any]:
    return lambda: apply(w, function, args, keywords, node)


def _closure(w: Walker, function: Closure, args: Sequence[Any], keywords: dict[str, Any], node: n.Expr) -> Any:
    names = [name for name, _ in function.params]
    local = dict(zip(names, args, strict=False)) | keywords
    for name, default in function.params:
        local.setdefault(name, PUBLIC if default is MISSING else default)
    if w.depth >= MOST_CALLS:
        raise TooLong(Why(f"`{function.name}` calls itself more than {MOST_CALLS} deep, or without end", node.span))
    scope = Scope(function.scope, local)
    w.depth += 1
    if isinstance(function.body, n.Block):
        outer, w.returns = w.returns, []
        if w.block(function.body.body, scope):
            w.returns.append((None, w.ledger))
        paths, w.returns = w.returns, outer
        w.depth -= 1
        for _, ledger in paths[1:]:
            paths[0] = paths[0][0], paths[0][1].join(ledger)
        if paths:
            w.ledger = paths[0][1]
        return join_all([value for value, _ in paths])
    result = w.eval(function.body, scope)
    w.depth -= 1
    return result


# Builtins ----------------------------------------------------------------------------------------


class Arguments:
    """What a built-in is called with, by the names that its row gives them."""

    def __init__(self, row: facts.Builtin, args: Sequence[Any], keywords: dict[str, Any]) -> None:
        self.row, self.args, self.keywords = row, list(args), keywords

    def named(self, name: str, default: Any = PUBLIC) -> Any:
        """An argument by place or by name; `default` where it is left out."""
        place = self.row.place(name)
        if place is not None and place < len(self.args):
            return self.args[place]
        return self.keywords.get(name, default)

    @property
    def first(self) -> Any:
        return self.named(self.row.parameters[0].name)

    @property
    def exposed(self) -> Any:
        """What is measured, scored or transformed."""
        return self.named(self.row.exposed.name) if self.row.exposed is not None else PUBLIC


def _builtin(w: Walker, call: Arguments, node: n.Expr) -> Any:
    if call.row.effect is Effect.MEASURES:
        _measure(w, call, node)
    match call.row.gives:
        case Gives.RELEASED | Gives.CONSTANT | Gives.DOMAIN:
            return PUBLIC
        case Gives.NUMBER:
            return numbers.function(call.row.name, call.args) if cannot_charge(call.args) else PUBLIC
        case Gives.BALANCE:
            return _balance(call.first)
        case Gives.ITEM:
            domain = walked(call.first)
            return domain.item if isinstance(domain, Items) else join_all(domain)
        case Gives.SCORE:
            return _score(call.exposed)
        case Gives.SHARES:
            return _shares(call.exposed, call.named("parts"))
        case Gives.BINNED:
            return _binned(call.exposed)
        case Gives.LIMITED:
            return _limited(w, call.exposed, call.named("amount"))
        case Gives.CHOICE:
            return Maker(call.named("ops"), call.named("feats"))
        case Gives.OPTION:
            return Part("Option", call.first)
        case Gives.UTILITY:
            return Part("Utility", call.first)
        case Gives.FEATURES:
            return call.first
        case Gives.SORTED:
            return _sorted(w, call, node)
        case Gives.CUBE | Gives.VECTORS | Gives.FILTERED | Gives.DERIVED | Gives.PICKED | Gives.PARTS | Gives.COLUMNS:
            return widened([*call.args, *call.keywords.values()])  # a form of rows under another name
        case (
            Gives.LENGTH | Gives.ITEMS | Gives.FIELDS | Gives.REVERSED | Gives.DISTINCT | Gives.NUMBERED
            | Gives.ZIPPED | Gives.APPENDED | Gives.RECORD
        ):  # fmt: skip
            return _container(call.row.gives, call)
        case unknown:
            assert_never(unknown)


def _amount(w: Walker, reached: ReachedSources, epsilon: Any) -> tuple[int, Most, Most]:
    """The amount of a measurement: as given, or all that is left."""
    if isinstance(epsilon, OneOf) or epsilon is TOP:
        return 0, math.inf, 0
    if epsilon is not None:
        return *in_quanta(epsilon), 0
    return w.bare(reached, 1)


def _measure(w: Walker, call: Arguments, node: n.Expr) -> None:
    reached = reached_sources(call.exposed)
    if not (reached.exposures or reached.open):
        return
    least, most, delta = _amount(w, reached, call.named("epsilon", None))
    if call.named("paid", None) is not None:
        least = 0  # `prepaid` was charged for it, where that is what it is
    if call.named("delta", None) is not None:
        delta = in_quanta(call.named("delta"))[1]
    w.charge(reached, least, most, delta, Why("an amount is not known", node.span))


def _score(value: Any) -> Any:
    reached = reached_sources(value)
    if reached.certain and isinstance(value, Handle):
        return Handle("score", reached.exposures) if reached.exposures else PUBLIC
    if isinstance(value, OneOf):
        return join_all([_score(one) for one in value.values])
    return PUBLIC if cannot_charge(value) else TOP


def _shares(table: Any, many: Any) -> Any:
    """The parts of a partition of its own; of how many, where that is known."""
    if isinstance(table, OneOf):
        return join_all([_shares(one, many) for one in table.values])
    if not isinstance(table, Handle):
        return Items(widened(table))
    label = object()

    def part(at: object) -> Handle:
        exposures = tuple(Exposure(e.source, (*e.path, (label, at)), e.agents) for e in table.exposures)
        return Handle(table.kind, exposures, table.schema)

    if isinstance(many, float) and many.is_integer() and 1 <= many <= 1000:
        return [part(float(i)) for i in range(int(many))]
    return Items(part(EACH), 1)


def _binned(table: Any) -> Any:
    if isinstance(table, OneOf):
        return join_all([_binned(one) for one in table.values])
    if not isinstance(table, Handle):
        return widened(table)
    return Handle(table.kind, table.exposures, None)


def _limited(w: Walker, handle: Any, amount: Any) -> Any:
    """An agent: charges through it add up to no more than its amount."""
    if not isinstance(handle, Handle):
        return widened(handle)
    cap = in_quanta(amount)[1]
    if cap == math.inf:
        return handle
    w.agents += 1
    exposures = tuple(Exposure(e.source, e.path, (*e.agents, (w.agents, int(cap)))) for e in handle.exposures)
    return Handle(handle.kind, exposures, handle.schema, handle.origin, handle.whole, handle.name)


def _balance(value: Any) -> Any:
    """`spent` and `left`: a number up to the limit."""
    from jostle.accounting.amounts import QUANTA

    reached = reached_sources(value)
    limits = [e.source.limit for e in reached.exposures]
    amounts = [limit for limit in limits if limit is not None]
    plain = len(amounts) == 1 and len(limits) == 1 and reached.exposures[0].source.delta is None
    return NumberInterval(0.0, amounts[0] / QUANTA) if plain else PUBLIC


def _sorted(w: Walker, call: Arguments, node: n.Expr) -> Any:
    """The items in order, where that is known; `by` is called with each."""
    items, by = walked(call.first), call.named("by", None)
    if by is not None:

        def each(item: Any) -> bool:
            apply(w, by, [item], {}, node)
            return True

        w.loop(Scope(None), node.span, items, set(), each)
    elif isinstance(items, list) and {type(v) for v in items} in ({float}, {str}):
        return sorted(items)
    return Items(join_all(items), len(items), len(items)) if isinstance(items, list) else items


def _container(gives: Gives, call: Arguments) -> Any:
    value = call.first
    if gives is Gives.LENGTH:
        return _length(attribute(value, "categories") if isinstance(value, Handle) else value)
    if gives is Gives.APPENDED:
        items = value if isinstance(value, (list, Items)) else Items(widened(value))
        return numbers.binary("+", items, [call.named("item")])
    if gives is Gives.ZIPPED:
        columns = [walked(arg) for arg in call.args]
        if all(isinstance(c, list) for c in columns):
            return [list(row) for row in zip(*columns, strict=False)]
        return Items([c.item if isinstance(c, Items) else join_all(c) for c in columns])
    if gives is Gives.RECORD:
        if not isinstance(value, list):
            return widened(value)
        pairs = [p for p in value if isinstance(p, list) and len(p) == 2 and isinstance(p[0], str)]
        return {p[0]: p[1] for p in pairs} if len(pairs) == len(value) else widened(value)
    items = walked(list(value.values()) if gives is Gives.FIELDS and isinstance(value, dict) else value)
    if isinstance(items, Items):
        return Items([PUBLIC, items.item], items.least, items.most) if gives is Gives.NUMBERED else items
    match gives:
        case Gives.NUMBERED:
            return [[float(i), item] for i, item in enumerate(items)]
        case Gives.DISTINCT:
            return numbers.distinct(items)
        case Gives.REVERSED:
            return items[::-1]
    return list(items)


def _length(value: Any) -> Any:
    if isinstance(value, (list, dict, str)):
        return float(len(value))
    if isinstance(value, Set):
        return float(len(value.items))
    if isinstance(value, Items) and value.most is not None:
        return float(value.most) if value.least == value.most else NumberInterval(float(value.least), float(value.most))
    return PUBLIC


# Choices -----------------------------------------------------------------------------------------


def _choose(w: Walker, maker: Maker, args: Sequence[Any], node: n.Expr) -> Any:
    """Any of the features, each in an allotment of its own, then one of the options with what is left."""
    data = args[0] if args else PUBLIC
    reached = reached_sources(data)
    private = bool(reached.exposures) or reached.open
    opened = w.allotment
    if private and opened is None:
        return PUBLIC  # refused
    most = math.inf
    if private and opened is not None and not opened.boundless:
        most = w.left(opened, reached)[1]

    def followed(part: Any, of_feature: bool) -> Callable[[], Any]:
        def follow() -> Any:
            if private and not of_feature:
                return apply(w, part, [data], {}, node)
            inner = Opened(0, most, 0, "", node.span, reached if private else ReachedSources(()), boundless=not private)
            return w.allotted(inner, lambda: apply(w, part, [data], {}, node), lambda: TOP)

        return follow

    for feature in _members(maker.features):
        w.optionally(followed(feature, True))
        if private:  # one that looks at public facts runs in the allotment itself
            w.optionally(followed(feature, False))
    if maker.picks:
        return join_all(_members(maker.options))
    return w.paths([followed(option, False) for option in _members(maker.options)])


def _members(value: Any) -> list[Any]:
    return list(leaves(value)) if not isinstance(value, dict) or value else []


# Fields ------------------------------------------------------------------------------------------


def attribute(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return value.get(name, PUBLIC)
    if isinstance(value, Module):
        return value.names.get(name, PUBLIC)
    if isinstance(value, OneOf):
        return join_all([attribute(one, name) for one in value.values])
    if value is TOP:
        return TOP
    if isinstance(value, Maker) and name == "pick":
        return Maker(value.options, value.features, picks=True)
    if isinstance(value, Range) and name in ("low", "high"):
        return value.low if name == "low" else value.high
    if isinstance(value, Handle):
        if value.kind == "column" and name == "name":
            return value.name
        if value.kind == "column" and name == "categories" and value.schema is not None:
            keys = keys_of(value.schema.get(value.name))
            return PUBLIC if keys is None else keys
        if value.kind == "table" and name == "columns" and value.schema is not None:
            return list(value.schema)
    return PUBLIC
