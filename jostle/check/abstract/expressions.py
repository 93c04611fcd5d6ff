"""Expressions before the run, one function a form: what is known of each. Calls are in `calls`, rows in `rows`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from jostle.check.abstract import calls, numbers, rows
from jostle.check.abstract import declarations as declared
from jostle.check.abstract.values import MISSING, PUBLIC, Items, Maker, Part, Range, Scope, widened
from jostle.check.abstract.walk import NO_SOURCES, Walk, join_all, walked
from jostle.language.forms import bare_selects, is_real
from jostle.syntax import nodes as n


def _name(w: Walk, node: n.Name | n.Variable, scope: Scope) -> Any:
    value = w.look_up(scope, node.id)
    if value is MISSING and isinstance(node, n.Name) and node.id in ("epsilon", "rho"):
        value = w.left_amount(scope, node.id, NO_SOURCES)
    return PUBLIC if value is MISSING else value


def _literal(w: Walk, node: n.Number | n.String | n.Constant, scope: Scope) -> Any:
    return PUBLIC if isinstance(node.value, date) else node.value


def _called(w: Walk, node: n.Call, scope: Scope) -> Any:
    return PUBLIC if id(node) in w.measured else calls.transfer_call(w, node, scope)


def _field(w: Walk, node: n.Attribute, scope: Scope) -> Any:
    return calls.transfer_attribute(w.eval(node.value, scope), node.name)


def _item_values(w: Walk, node: n.ListOf | n.SetOf, scope: Scope) -> Any:
    items = [w.eval(item, scope) for item in node.items]
    if isinstance(node, n.ListOf):
        return items
    return numbers.distinct(items) if items else {}


def _fields(w: Walk, node: n.RecordOf, scope: Scope) -> Any:
    return {name: w.eval(item, scope) for name, item in node.items}


def _ends(w: Walk, node: n.Range, scope: Scope) -> Any:
    match node.low, node.high:
        case n.Constant(value=date() as low), n.Constant(value=date() as high):
            return Range(low, high, False)
    return Range(w.eval(node.low, scope), w.eval(node.high, scope), is_real(node.low) or is_real(node.high))


def _sign(w: Walk, node: n.Unary, scope: Scope) -> Any:
    if node.op == "not":
        holds = w.condition(node.operand, scope)
        return PUBLIC if holds is None else not holds
    return numbers.transfer_unary(node.op, w.eval(node.operand, scope))


def _conditional(w: Walk, node: n.Conditional, scope: Scope) -> Any:
    holds = w.condition(node.test, scope)
    if holds is not None:
        return w.eval(node.then if holds else node.other, scope)
    return w.paths([lambda: w.eval(node.then, scope), lambda: w.eval(node.other, scope)])


def _comprehension(w: Walk, node: n.Comprehension, scope: Scope) -> Any:
    source = w.iterated(node.source, scope)
    return w.cheaply(scope, node, source, lambda: _comprehended(w, node, source, scope))


def _lambda(w: Walk, node: n.Lambda, scope: Scope) -> Any:
    return w.closure("this lambda", node.params, node.body, scope)


def _part(w: Walk, node: n.Part, scope: Scope) -> Any:
    if node.predict is not None and node.predict_params is not None:
        w.closure("predict", node.predict_params, node.predict, scope)
    return Part(node.kind, w.closure(node.kind, node.params, node.body, scope))


def _choice(w: Walk, node: n.Choice, scope: Scope) -> Any:
    clauses = (node.among, node.informed, node.trained, node.wrt)
    among, informed, _, wrt = (w.eval(clause, scope) if clause is not None else [] for clause in clauses)
    if node.using is not None:
        w.eval(node.using, scope)
    if node.spending is not None:
        w.eval(node.spending, scope)
    return Maker(among, informed, score=wrt if node.way != n.FEATURES else None)


def _query(w: Walk, node: n.Query, scope: Scope) -> Any:
    outer, w.bare_left = w.bare_left, bare_selects(node)
    result = w.eval(node.body, scope)
    w.bare_left = outer
    return result


def _select(w: Walk, node: n.Select, scope: Scope) -> Any:
    return w.select_query(node, scope)


def _star(w: Walk, node: n.Expr, scope: Scope) -> Any:
    return PUBLIC  # arguments of aggregates, which a select looks at


def _chain(w: Walk, node: n.Binary, scope: Scope) -> Any:
    chain: list[n.Binary] = []
    at: n.Expr = node
    while isinstance(at, n.Binary):
        chain.append(at)
        at = at.left
    value = w.eval(at, scope)
    for link in reversed(chain):
        value = numbers.transfer_binary(link.op, value, w.eval(link.right, scope))
    return value


def _operands(w: Walk, node: n.Logic, scope: Scope, at: int = 0) -> Any:
    decided = node.op == "or"
    holds = w.condition(node.operands[at], scope)
    if at + 1 == len(node.operands) or holds is decided:
        return PUBLIC if holds is None else holds
    if holds is (not decided):
        return _operands(w, node, scope, at + 1)
    w.optionally(lambda: _operands(w, node, scope, at + 1))
    return PUBLIC


def _comprehended(w: Walk, node: n.Comprehension, source: object, scope: Scope) -> Any:
    inner = Scope(scope)
    result: list[Any] = [[]]
    walk = walked(source)

    def item() -> list[Any] | Items:
        value = w.eval(node.item, Scope(inner))
        return walked(value) if node.flat else [value]

    def each(value: object) -> bool:
        w.bind_items(node.names, value, inner)
        test = w.condition(node.condition, inner) if node.condition is not None else True
        if test is not False:
            more = item() if test else _perhaps(w, item)
            result[0] = numbers.transfer_binary("+", [] if isinstance(walk, Items) else result[0], more)
        return True

    w.loop(inner, node.span, walk, set(node.names), each)
    answer: Any = result[0]
    if isinstance(walk, Items):
        once = walked(answer)
        one = once.item if isinstance(once, Items) else join_all(once)
        sure = isinstance(once, list) and len(once) == 1 and node.condition is None
        answer = Items(w.settled(one), walk.least if sure else 0, walk.most if sure else None)
    return numbers.distinct(answer) if node.kind == "set" and isinstance(answer, list) else answer


def _perhaps(w: Walk, item: Callable[[], Any]) -> Any:
    result = w.optionally(item)
    return Items(join_all(result) if isinstance(result, list) and result else widened(result))


def _over_items(w: Walk, node: n.Over, scope: Scope) -> Any:
    source = walked(w.iterated(node.source, scope))
    inner = Scope(scope)
    items: list[Any] = []
    values: list[Any] = []

    def each(item: object) -> bool:
        inner.names[node.name] = item
        items.append(item)
        values.append(w.eval(node.body, Scope(inner)))
        return True

    w.loop(inner, node.span, source, {node.name}, each)
    if isinstance(source, Items):
        return w.settled(join_all(items)) if node.fold.startswith("arg") else PUBLIC
    return numbers.transfer_fold(node.fold, items, values)


EXPRESSIONS: Mapping[type, Callable[[Walk, Any, Scope], Any]] = {
    n.Name: _name, n.Variable: _name, n.Number: _literal, n.String: _literal, n.Constant: _literal, n.Binary: _chain,
    n.Call: _called, n.Attribute: _field, n.Index: rows.transfer_index, n.ListOf: _item_values, n.SetOf: _item_values,
    n.RecordOf: _fields, n.Range: _ends, n.Unary: _sign, n.Logic: _operands, n.Conditional: _conditional,
    n.Comprehension: _comprehension, n.Over: _over_items, n.Lambda: _lambda, n.Part: _part, n.Choice: _choice,
    n.Spending: calls.transfer_spending, n.Query: _query, n.Select: _select, n.Described: declared.public,
    n.Star: _star, n.Distinct: _star,
}  # fmt: skip
