"""The one walk over statements and expressions before a run: what each form does to what is known of values.

It goes the ways of `run.interpreter`, as `walk` follows paths, rounds of loops and charges. Nothing is opened and no
data are read. Calls are in `calls`, rows in `rows`, selects in `selects`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, assert_never, cast

from jostle.check.costs import calls, numbers, rows, selects
from jostle.check.costs import values as val
from jostle.check.costs.tally import Why
from jostle.check.costs.walk import NO_SOURCES, TooLong, Walk
from jostle.diagnostics import Refusal
from jostle.language.forms import is_real
from jostle.run.declare import setting
from jostle.run.expressions import EXPRESSIONS as RUN
from jostle.run.externals import external
from jostle.run.scope import MISSING, Scope
from jostle.run.sequences import period
from jostle.run.values import Interval, Part, Record, is_number
from jostle.syntax import nodes as n
from jostle.syntax.walk import links, returns_inside


class Interpreter(Walk):
    def block(self, body: Sequence[n.Stmt], scope: Scope) -> bool:
        """Follows statements; whether the way can go on after them."""
        return all(self.statement(statement, scope) for statement in body)

    def statement(self, node: n.Stmt, scope: Scope) -> bool:
        match node:
            case n.Assign():
                scope.set(node.name, self.eval(node.value, scope))
            case n.Bare(value=expr):
                self.eval(expr, scope)
            case n.Return(value=result):
                self.returned(self.eval(result, scope) if result is not None else None)
                return False
            case n.Def(name=name, params=params, body=body):
                scope.names[name] = self.closure(name, params, body, scope)
            case n.If():
                return self._if(node, scope)
            case n.For():
                return self._for(node, scope)
            case n.With():
                return self._with(node, scope)
            case n.Run():
                self._run(node, scope)
            case n.Release():
                self._release(node, scope)
            case n.Assert():
                self._assert(node, scope)
            case n.Private():
                scope.names[node.name] = rows.declared_source(self, node, scope)
            case n.Use():
                self.use_module(node, scope)
            case n.ParamDecl(name=name, default=default):
                scope.names[name] = self._parameter(name, self.eval(default, scope))
            case n.External(name=name):
                scope.names[name] = external(node)
            case unknown:
                assert_never(unknown)
        return True

    def _if(self, node: n.If, scope: Scope) -> bool:
        holds = _truth(self.eval(node.test, scope))
        blocks = [node.then.body, node.other.body if node.other is not None else ()]
        return self.branches(scope, blocks) if holds is None else self.block(blocks[not holds], scope)

    def _with(self, node: n.With, scope: Scope) -> bool:
        body = node.body
        inside = (lambda: self._jointly(body, scope)) if node.jointly else (lambda: self.block(body.body, scope))
        return bool(self.allotted(node.spend, scope, NO_SOURCES, inside, lambda: self.give_up(body, scope)))

    def _release(self, node: n.Release, scope: Scope) -> None:
        expr = node.value if node.value is not None else n.Name(node.name, span=node.span)
        value = self.eval(expr, scope)
        self.look_up(scope, node.name)
        if node.value is not None:
            scope.release(node.name, value)

    def _assert(self, node: n.Assert, scope: Scope) -> None:
        message = node.message
        if self.eval(node.value, scope) is not True and message is not None:
            self.optionally(lambda: self.eval(message, scope))  # a run that ends here has paid for it

    def _jointly(self, body: n.Block, scope: Scope) -> bool:
        """A block whose first select spends all that the allotment holds, and the others nothing."""
        outer, self.joint = self.joint, True
        try:
            return self.block(body.body, scope)
        finally:
            self.joint = outer

    def _run(self, node: n.Run, scope: Scope) -> None:
        """Rounds, of which it is not known how many there are, but that they end within the budgets of these data."""
        reached = val.reached_sources(self.eval(node.data, scope))

        def each(_: object) -> bool:
            body = lambda: self.block(node.body.body, scope)  # noqa: E731
            goes_on = self.allotted(node.spend, scope, reached, body, lambda: self.give_up(node.body, scope))
            if goes_on and node.done is not None:
                self.eval(node.done, scope)
            return bool(goes_on)

        own = self.assigned(node.body)
        self.until_budget(reached, node.span, lambda: self.loop(scope, node.span, val.Items(val.PUBLIC), own, each))

    def _for(self, node: n.For, scope: Scope) -> bool:
        source = self.eval(node.source, scope)

        def each(item: object) -> bool:
            self.bind_items(node.names, item, scope)
            return self.block(node.body.body, scope)

        own = self.assigned(node.body) | set(node.names)
        return self.loop(scope, node.span, source, own, each)

    def give_up(self, body: n.Block, scope: Scope) -> bool:
        """After a block that is not followed, in which any name that it binds may come to be anything."""
        scope.names |= dict.fromkeys(self.assigned(body), val.TOP)
        if any(map(returns_inside, body.body)):
            self.returned(val.TOP)
        return True

    def _parameter(self, name: str, default: object) -> object:
        try:
            value = setting(self.settings.get(name), default, name)
        except Refusal:
            return val.PUBLIC
        if is_number(value):
            return float(value)
        return value if value is default or val.is_constant(value) else val.PUBLIC

    def eval(self, node: n.Expr, scope: Scope) -> object:
        self.fuel -= 1
        if self.fuel < 0:
            raise TooLong(Why("it is too long to follow", node.span))
        return EXPRESSIONS[type(node)](self, node, scope)


# Expressions ---------------------------------------------------------------------------------------


def _truth(value: object) -> bool | None:
    """Whether a condition holds, where only that way is followed."""
    return value if isinstance(value, bool) else None


def _name(w: Walk, node: n.Name | n.Variable, scope: Scope) -> object:
    value = w.look_up(scope, node.id)
    if value is MISSING and isinstance(node, n.Name) and node.id in ("epsilon", "rho"):
        value = w.left_amount(scope, node.id, NO_SOURCES)
    return val.PUBLIC if value is MISSING else value


def _set(w: Walk, node: n.SetOf, scope: Scope) -> object:
    return numbers.distinct([w.eval(item, scope) for item in node.items]) if node.items else Record()


def _ends(w: Walk, node: n.Range, scope: Scope) -> object:
    low, high = w.eval(node.low, scope), w.eval(node.high, scope)
    if not val.is_known(low, high):
        return val.numbers_between(val.ends(low)[0], val.ends(high)[1])
    if not (isinstance(low, float) and isinstance(high, float)):
        return numbers.outcome(period, low, high, node.unit)
    real = is_real(node.low) or is_real(node.high) or not (low.is_integer() and high.is_integer())
    return Interval(low, high, real)


def _sign(w: Walk, node: n.Unary, scope: Scope) -> object:
    if node.op == "not":
        holds = w.eval(node.operand, scope)
        return not holds if isinstance(holds, bool) else val.PUBLIC
    return numbers.transfer_unary(node.op, w.eval(node.operand, scope))


def _conditional(w: Walk, node: n.Conditional, scope: Scope) -> object:
    holds = _truth(w.eval(node.test, scope))
    if holds is not None:
        return w.eval(node.then if holds else node.other, scope)
    return w.paths([lambda: w.eval(node.then, scope), lambda: w.eval(node.other, scope)])


def _part(w: Walk, node: n.Part, scope: Scope) -> object:
    if node.predict is not None and node.predict_params is not None:
        w.closure("predict", node.predict_params, node.predict, scope)
    return Part(node.kind, w.closure(node.kind, node.params, node.body, scope))


def _choice(w: Walk, node: n.Choice, scope: Scope) -> object:
    clauses = (node.among, node.informed, node.trained, node.wrt)
    among, informed, _, wrt = (w.eval(clause, scope) if clause is not None else [] for clause in clauses)
    if node.using is not None:
        w.eval(node.using, scope)
    if node.spending is not None:
        w.eval(node.spending, scope)
    return val.Maker(among, informed, score=wrt if node.way != n.FEATURES else None)


def _chain(w: Walk, node: n.Binary, scope: Scope) -> object:
    first, chain = links(node)
    value = w.eval(first, scope)
    for link in chain:
        value = numbers.transfer_binary(link.op, value, w.eval(link.right, scope))
    return value


def _operands(w: Walk, node: n.Logic, scope: Scope, at: int = 0) -> object:
    decided = node.op == "or"
    holds = _truth(w.eval(node.operands[at], scope))
    if at + 1 == len(node.operands) or holds is decided:
        return val.PUBLIC if holds is None else holds
    if holds is (not decided):
        return _operands(w, node, scope, at + 1)
    w.optionally(lambda: _operands(w, node, scope, at + 1))
    return val.PUBLIC


def _comprehension(w: Walk, node: n.Comprehension, scope: Scope) -> object:
    walk, inner, answer = val.walked(w.eval(node.source, scope)), Scope(scope), cast("object", [])

    def restart(items: list[object] | val.Items) -> None:
        nonlocal walk, answer
        walk, answer = items, []

    def item() -> list[object] | val.Items:
        value = w.eval(node.item, Scope(inner))
        return val.walked(value) if node.flat else [value]

    def each(value: object) -> bool:
        nonlocal answer
        w.bind_items(node.names, value, inner)
        test = w.eval(node.condition, inner) if node.condition is not None else True
        if test is not False:
            more = item() if test is True else _perhaps(w, item)
            answer = numbers.transfer_binary("+", [] if isinstance(walk, val.Items) else answer, more)
        return True

    w.loop(inner, node.span, walk, set(node.names), each, restart)
    if isinstance(walk, val.Items):
        once = val.walked(answer)
        one = once.item if isinstance(once, val.Items) else val.join_all(once)
        sure = isinstance(once, list) and len(once) == 1 and node.condition is None
        answer = val.Items(w.settled(one), walk.least if sure else 0, walk.most if sure else None)
    return numbers.distinct(answer) if node.kind == "set" and isinstance(answer, list) else answer


def _perhaps(w: Walk, item: Callable[[], object]) -> object:
    result = w.optionally(item)
    return val.Items(val.join_all(result) if isinstance(result, list) and result else val.widened(result))


def _over_items(w: Walk, node: n.Over, scope: Scope) -> object:
    source = val.walked(w.eval(node.source, scope))
    inner = Scope(scope)
    items: list[object] = []
    values: list[object] = []

    def restart(every: list[object] | val.Items) -> None:
        nonlocal source
        source = every
        items.clear()
        values.clear()

    def each(item: object) -> bool:
        inner.names[node.name] = item
        items.append(item)
        values.append(w.eval(node.body, Scope(inner)))
        return True

    w.loop(inner, node.span, source, {node.name}, each, restart)
    if isinstance(source, val.Items):
        return w.settled(val.join_all(items)) if node.fold.startswith("arg") else val.PUBLIC
    return numbers.transfer_fold(node.fold, items, values)


EXPRESSIONS: Mapping[type, Callable[[Walk, Any, Scope], object]] = {
    **{form: RUN[form] for form in (n.Number, n.String, n.Constant, n.ListOf, n.RecordOf, n.Lambda, n.Query)},
    n.Name: _name, n.Variable: _name, n.Binary: _chain,
    n.Call: lambda w, node, scope: val.PUBLIC if id(node) in w.measured else calls.transfer_call(w, node, scope),
    n.Attribute: lambda w, node, scope: calls.transfer_attribute(w.eval(node.value, scope), node.name),
    **dict.fromkeys((n.Star, n.Distinct), lambda w, node, scope: val.PUBLIC),  # a select looks at these
    n.Index: rows.transfer_index, n.SetOf: _set, n.Range: _ends, n.Unary: _sign,
    n.Logic: _operands, n.Conditional: _conditional, n.Comprehension: _comprehension, n.Over: _over_items,
    n.Part: _part, n.Choice: _choice, n.Spending: calls.transfer_spending,
    n.Select: selects.transfer_select, n.Described: rows.public_table,
}  # fmt: skip
