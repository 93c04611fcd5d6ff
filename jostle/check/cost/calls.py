"""Calls before the run: functions are followed, measurements charged, everything else gives what is known of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from jostle.check.cost import numbers
from jostle.check.cost.inert import MEASURING
from jostle.check.cost.ledger import Opened
from jostle.check.cost.tree import EACH, Most, Why
from jostle.check.cost.values import (
    ANYTHING,
    MISSING,
    PUBLIC,
    Builtin,
    Closure,
    Exposure,
    Handle,
    Items,
    Maker,
    Met,
    Module,
    Part,
    Range,
    Scope,
    Set,
    Ways,
    Within,
    any_of,
    blurred,
    harmless,
    leaves,
    met_in,
)  # fmt: skip
from jostle.check.words import SPLITS
from jostle.syntax import nodes as n

if TYPE_CHECKING:
    from jostle.check.cost.walk import Walker

SCORES = frozenset({
    "size", "total", "nonzero", "peak", "ridge", "l2", "spread", "roughness", "misfit", "distance",
    "bisections", "boundaries", "leftover",
    "coordinate_scores",
})  # fmt: skip
ROW_FORMS = SPLITS | {"histogram", "partition", "where", "derive", "pick", "columns", "predicates", "vectors"}
SOURCES = frozenset({"table", "counts", "dataset", "bound"})
_PUBLIC_RESULT = frozenset({
    "print", "plot", "error", "standard_error", "band", "bootstrap", "str", "explain", "exact", "answer", "cells",
    "identity", "prefixes", "ranges", "marginals", "union", "rectangles", "MkModel", "tree", "regret_tree",
    "forest", "rmse", "scaled_error", "vectors_in", "keys", "number", "idxmax", "idxmin", "var", "stddev", "median",
    "quantile", "avg",
})  # fmt: skip


def call(w: Walker, node: n.Call, scope: Scope) -> Any:
    function, args, keywords = prepared(w, node, scope)
    return finished(w, node, function, args, keywords, scope)


def prepared(w: Walker, node: n.Call, scope: Scope) -> tuple[Any, list[Any], dict[str, Any]]:
    function = w.eval(node.function, scope)
    if isinstance(function, Builtin) and function.name in ROW_FORMS:
        return function, [], {}
    args = [w.eval(arg, scope) for arg in node.args]
    return function, args, {keyword.name: w.eval(keyword.value, scope) for keyword in node.keywords}


def finished(w: Walker, node: n.Call, function: Any, args: list[Any], keywords: dict[str, Any], scope: Scope) -> Any:
    if isinstance(function, Builtin) and function.name in ROW_FORMS:
        from jostle.check.cost.queries import row_form

        return row_form(w, function.name, node, scope)
    return apply(w, function, args, keywords, node)


def spending(w: Walker, node: n.Spending, scope: Scope) -> Any:
    """`f(x) with epsilon e`: callee, arguments and amount come before the allotment opens."""
    if not isinstance(node.value, n.Call):
        opened = w.opening(node.spend, scope, Met(()))
        return w.allotted(opened, lambda: w.eval(node.value, scope), lambda: ANYTHING)
    called = node.value
    function, args, keywords = prepared(w, called, scope)
    met = met_in(*args, *keywords.values())
    opened = w.opening(node.spend, scope, met)
    return w.allotted(opened, lambda: finished(w, called, function, args, keywords, scope), lambda: ANYTHING)


def apply(w: Walker, function: Any, args: Sequence[Any], keywords: dict[str, Any], node: n.Expr) -> Any:
    """Calls any callable value."""
    w.step(node.span)
    if isinstance(function, Closure):
        inert = not w.trying and w.inert.function(function) and all(map(w.inert.value, (*args, *keywords.values())))
        if inert:
            return w.trial(lambda: _closure(w, function, args, keywords, node))
        return _closure(w, function, args, keywords, node)
    if isinstance(function, Part):
        return apply(w, function.run, args, keywords, node)
    if isinstance(function, Builtin):
        return PUBLIC if function.kernel else _builtin(w, function.name, list(args), keywords, node)
    if isinstance(function, Maker):
        return _choose(w, function, args, node)
    if isinstance(function, Ways):
        return w.ways([_later(w, way, args, keywords, node) for way in function.values])
    if function is ANYTHING:
        w.charge_everything(math.inf, math.inf, Why("a function that is not known here is called", node.span))
        return ANYTHING
    return PUBLIC


def _later(w: Walker, function: Any, args: Sequence[Any], keywords: dict[str, Any], node: n.Expr) -> Callable[[], Any]:
    return lambda: apply(w, function, args, keywords, node)


def _closure(w: Walker, function: Closure, args: Sequence[Any], keywords: dict[str, Any], node: n.Expr) -> Any:
    from jostle.check.cost.ways import MOST_CALLS, TooLong

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
        ways, w.returns = w.returns, outer
        w.depth -= 1
        for _, ledger in ways[1:]:
            ways[0] = ways[0][0], ways[0][1].either(ledger)
        if ways:
            w.ledger = ways[0][1]
        return any_of([value for value, _ in ways])
    made = w.eval(function.body, scope)
    w.depth -= 1
    return made


# Builtins ----------------------------------------------------------------------------------------


def _builtin(w: Walker, name: str, args: list[Any], keywords: dict[str, Any], node: n.Expr) -> Any:
    if name in MEASURING:
        return _measure(w, name, args, keywords, node)
    if name in SCORES:
        return _score(name, args)
    if name in ("split_rows", "binned") and args:
        return _hashed(args) if name == "split_rows" else _rebuilt(args[0])
    if name == "limited" and len(args) == 2:
        return _limited(w, args[0], args[1])
    if name in ("spent", "left"):
        return _told(args)
    if name == "MkChoiceMaker":
        return Maker(args[0] if args else PUBLIC, args[1] if len(args) > 1 else PUBLIC)
    if name in ("MkOption", "MkScore") and len(args) == 1:
        return Part("Option" if name == "MkOption" else "Utility", args[0])
    if name == "MkFeatures" and len(args) == 1:
        return args[0]
    if name in _PUBLIC_RESULT or name in SOURCES:
        return PUBLIC
    found = _container(name, args)
    if found is not MISSING:
        return found
    if harmless([*args, *keywords.values()]):
        return numbers.function(name, args)
    return PUBLIC if w.inert.value([*args, *keywords.values()]) else ANYTHING


def _amount(w: Walker, met: Met, epsilon: Any) -> tuple[int, Most, Most]:
    """The amount of a measurement: as given, or all that is left."""
    from jostle.check.cost.walk import in_quanta

    if isinstance(epsilon, Ways) or epsilon is ANYTHING:
        return 0, math.inf, 0
    if epsilon is not None:
        least, most = in_quanta(epsilon)
        return least, most, 0
    return bare(w, met, 1)


def bare(w: Walker, met: Met, shares: int) -> tuple[int, Most, Most]:
    """What a measurement without an amount spends: an equal share of what is left."""
    opened = w.allotment
    if opened is None or opened.boundless:
        return 0, 0, 0  # refused
    least, most = w.left(opened, met)
    if met.open:
        least, most = 0, opened.most
    return least // shares, most if most == math.inf else most // shares, opened.delta


def _measure(w: Walker, name: str, args: list[Any], keywords: dict[str, Any], node: n.Expr) -> Any:
    what = {"exp_mech": "utilities", "noisy_max": "utilities"}.get(name)
    at = 1 if name == "exp_mech" else 0
    value = args[at] if len(args) > at else keywords.get(what or "", PUBLIC)
    place = {"exp_mech": 2, "noisy_max": 1}.get(name)
    given = args[place] if place is not None and len(args) > place else keywords.get("epsilon")
    met = met_in(value)
    if met.exposures or met.open:
        least, most, delta = _amount(w, met, given)
        if keywords.get("paid") is not None:
            least = 0  # `prepaid` was charged for it, where that is what it is
        if keywords.get("delta") is not None:
            from jostle.check.cost.walk import in_quanta

            delta = in_quanta(keywords["delta"])[1]
        w.charge(met, least, most, delta, Why("an amount is not known", node.span))
    if name == "exp_mech":
        from jostle.check.cost.ways import walked

        domain = walked(args[0] if args else keywords.get("domain", PUBLIC))
        return domain.item if isinstance(domain, Items) else any_of(domain)
    return PUBLIC


def _score(name: str, args: list[Any]) -> Any:
    if not args:
        return PUBLIC
    met = met_in(args[0])
    if met.certain and isinstance(args[0], Handle):
        return Handle("score", met.exposures) if met.exposures else PUBLIC
    if isinstance(args[0], Ways):
        return any_of([_score(name, [way, *args[1:]]) for way in args[0].values])
    return PUBLIC if harmless(args[0]) else ANYTHING


def _hashed(args: list[Any]) -> Any:
    """The parts of a partition of its own; of how many, where that is known."""
    table = args[0]
    if isinstance(table, Ways):
        return any_of([_hashed([way, *args[1:]]) for way in table.values])
    if not isinstance(table, Handle):
        return Items(blurred(table))
    many, label = args[1] if len(args) > 1 else PUBLIC, object()

    def part(at: object) -> Handle:
        kept = tuple(Exposure(e.source, (*e.path, (label, at)), e.agents) for e in table.exposures)
        return Handle(table.kind, kept, table.schema)

    if isinstance(many, float) and many.is_integer() and 1 <= many <= 1000:
        return [part(float(i)) for i in range(int(many))]
    return Items(part(EACH), 1)


def _rebuilt(table: Any) -> Any:
    if isinstance(table, Ways):
        return any_of([_rebuilt(way) for way in table.values])
    if not isinstance(table, Handle):
        return blurred(table)
    return Handle(table.kind, table.exposures, None)


def _limited(w: Walker, handle: Any, amount: Any) -> Any:
    """An agent: charges through it add up to no more than its amount."""
    from jostle.check.cost.walk import in_quanta

    if not isinstance(handle, Handle):
        return blurred(handle)
    cap = in_quanta(amount)[1]
    if cap == math.inf:
        return handle
    w.agents += 1
    kept = tuple(Exposure(e.source, e.path, (*e.agents, (w.agents, int(cap)))) for e in handle.exposures)
    return Handle(handle.kind, kept, handle.schema, handle.origin, handle.whole, handle.name)


def _told(args: list[Any]) -> Any:
    """`spent` and `left`: a number up to the limit."""
    from jostle.amounts import QUANTA

    met = met_in(*args)
    limits = [e.source.limit for e in met.exposures]
    known = [limit for limit in limits if limit is not None]
    plain = len(known) == 1 and len(limits) == 1 and met.exposures[0].source.delta is None
    return Within(0.0, known[0] / QUANTA) if plain else PUBLIC


def _container(name: str, args: list[Any]) -> Any:
    from jostle.check.cost.ways import walked

    if name == "len" and len(args) == 1:
        value = args[0]
        if isinstance(value, Handle) and value.kind == "column":
            return _length(attribute(value, "categories"))
        return _length(value)
    if name == "append" and len(args) == 2:
        return numbers.binary(
            "+", args[0] if isinstance(args[0], (list, Items)) else Items(blurred(args[0])), [args[1]]
        )
    if name in ("list", "values", "reversed", "set", "enumerate") and len(args) == 1:
        value = list(args[0].values()) if name == "values" and isinstance(args[0], dict) else args[0]
        items = walked(value)
        if isinstance(items, Items):
            return Items([PUBLIC, items.item], items.least, items.most) if name == "enumerate" else items
        if name == "enumerate":
            return [[float(i), item] for i, item in enumerate(items)]
        return numbers.distinct(items) if name == "set" else items[::-1] if name == "reversed" else list(items)
    if name == "zip":
        columns = [walked(arg) for arg in args]
        if all(isinstance(c, list) for c in columns):
            return [list(row) for row in zip(*columns, strict=False)]
        return Items([c.item if isinstance(c, Items) else any_of(c) for c in columns])
    if name == "sorted" and len(args) == 1 and isinstance(args[0], list):
        kinds = {type(v) for v in args[0]}
        return sorted(args[0]) if kinds in ({float}, {str}) else PUBLIC
    if name == "record" and len(args) == 1 and isinstance(args[0], list):
        pairs = [p for p in args[0] if isinstance(p, list) and len(p) == 2 and isinstance(p[0], str)]
        return {p[0]: p[1] for p in pairs} if len(pairs) == len(args[0]) else blurred(args[0])
    return MISSING


def _length(value: Any) -> Any:
    if isinstance(value, (list, dict, str)):
        return float(len(value))
    if isinstance(value, Set):
        return float(len(value.items))
    if isinstance(value, Items) and value.most is not None:
        return float(value.most) if value.least == value.most else Within(float(value.least), float(value.most))
    return PUBLIC


# Choices -----------------------------------------------------------------------------------------


def _choose(w: Walker, maker: Maker, args: Sequence[Any], node: n.Expr) -> Any:
    """Any of the features, each in an allotment of its own, then one of the options with what is left."""
    data = args[0] if args else PUBLIC
    met = met_in(data)
    private = bool(met.exposures) or met.open
    opened = w.allotment
    if private and opened is None:
        return PUBLIC  # refused
    most = math.inf
    if private and opened is not None and not opened.boundless:
        most = w.left(opened, met)[1]

    def held(part: Any, of_feature: bool) -> Callable[[], Any]:
        def follow() -> Any:
            if private and not of_feature:
                return apply(w, part, [data], {}, node)
            inner = Opened(0, most, 0, "", node.span, met if private else Met(()), boundless=not private)
            return w.allotted(inner, lambda: apply(w, part, [data], {}, node), lambda: ANYTHING)

        return follow

    for feature in _members(maker.features):
        w.maybe(held(feature, True))
        if private:  # one that looks at public facts runs in the allotment itself
            w.maybe(held(feature, False))
    if maker.picks:
        return any_of(_members(maker.options))
    return w.ways([held(option, False) for option in _members(maker.options)])


def _members(value: Any) -> list[Any]:
    return list(leaves(value)) if not isinstance(value, dict) or value else []


# Fields ------------------------------------------------------------------------------------------


def attribute(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return value.get(name, PUBLIC)
    if isinstance(value, Module):
        return value.names.get(name, PUBLIC)
    if isinstance(value, Ways):
        return any_of([attribute(way, name) for way in value.values])
    if value is ANYTHING:
        return ANYTHING
    if isinstance(value, Maker) and name == "pick":
        return Maker(value.options, value.features, picks=True)
    if isinstance(value, Range) and name in ("low", "high"):
        return value.low if name == "low" else value.high
    if isinstance(value, Handle):
        from jostle.check.cost.sources import keys_of

        if value.kind == "column" and name == "name":
            return value.name
        if value.kind == "column" and name == "categories" and value.schema is not None:
            found = keys_of(value.schema.get(value.name))
            return PUBLIC if found is None else found
        if value.kind == "table" and name == "columns" and value.schema is not None:
            return list(value.schema)
    return PUBLIC
