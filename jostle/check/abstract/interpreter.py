"""The one walk over statements and expressions before a run: what each form does to what is known of values.

It goes the ways of `run.interpreter`, as `cost.explorer` follows paths, rounds of loops and charges. Nothing is opened
and no data are read.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, assert_never

from jostle.check.abstract import declarations as declared
from jostle.check.abstract import selects
from jostle.check.abstract.expressions import EXPRESSIONS
from jostle.check.abstract.values import (
    MISSING,
    PUBLIC,
    TOP,
    Closure,
    External,
    Items,
    ReachedSources,
    Scope,
    in_quanta,
    reached_sources,
)  # fmt: skip
from jostle.check.abstract.walk import NO_SOURCES, Bounds, Walk
from jostle.check.scopes import bound_in, returns_inside
from jostle.syntax import nodes as n


class Interpreter(Walk):
    """Evaluates expressions and follows statements."""

    def select_query(self, node: n.Select, scope: Scope) -> object:
        return selects.transfer_select(self, node, scope)

    # Statements ----------------------------------------------------------------------------------

    def block(self, body: Sequence[n.Stmt], scope: Scope) -> bool:
        """Follows statements; whether the way can go on after them."""
        return all(self.statement(statement, scope) for statement in body)

    def statement(self, node: n.Stmt, scope: Scope) -> bool:
        self.step(node.span)
        match node:
            case n.Assign():
                self._assign(node, scope)
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
                scope.names[node.name] = declared.declared_source(self, node, scope)
            case n.Use():
                self.use_module(node, scope)
            case n.ParamDecl(name=name, default=default):
                scope.names[name] = self.world.parameter(name, self.eval(default, scope))
            case n.External(name=name):
                scope.names[name] = External(name)
            case unknown:
                assert_never(unknown)
        return True

    def _assign(self, node: n.Assign, scope: Scope) -> None:
        scope.names[node.name] = self.eval(node.value, scope)
        scope.released.discard(node.name)

    def _if(self, node: n.If, scope: Scope) -> bool:
        holds = self.condition(node.test, scope)
        blocks = [node.then.body, node.other.body if node.other is not None else ()]
        return self.branches(scope, blocks) if holds is None else self.block(blocks[not holds], scope)

    def _with(self, node: n.With, scope: Scope) -> bool:
        body = node.body
        inside = (lambda: self._jointly(body, scope)) if node.jointly else (lambda: self.block(body.body, scope))
        return bool(self.allotted(node.spend, scope, NO_SOURCES, inside, lambda: self.give_up(body, scope, TOP)))

    def _release(self, node: n.Release, scope: Scope) -> None:
        expr = node.value if node.value is not None else n.Name(node.name, span=node.span)
        value = self.eval(expr, scope)
        free = node.name in scope.released or self.look_up(scope, node.name) is MISSING
        if node.value is not None and free:
            scope.names[node.name] = value
            scope.released.add(node.name)

    def _assert(self, node: n.Assert, scope: Scope) -> None:
        message = node.message
        if self.condition(node.value, scope) is not True and message is not None:
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
        reached = reached_sources(self.eval(node.data, scope))

        def each(_: object) -> bool:
            body = lambda: self.block(node.body.body, scope)  # noqa: E731
            goes_on = self.allotted(node.spend, scope, reached, body, lambda: self.give_up(node.body, scope, TOP))
            if goes_on and node.done is not None:
                self.condition(node.done, scope)
            return bool(goes_on)

        own = self.assigned(node.body)
        self.until_budget(reached, node.span, lambda: self.loop(scope, node.span, Items(PUBLIC), own, each))

    def _for(self, node: n.For, scope: Scope) -> bool:
        source = self.iterated(node.source, scope)

        def each(item: object) -> bool:
            self.bind_items(node.names, item, scope)
            return self.block(node.body.body, scope)

        own = self.assigned(node.body) | set(node.names)
        went = self.cheaply(scope, node, source, lambda: self.loop(scope, node.span, source, own, each))
        return self.give_up(node.body, scope, PUBLIC, node.names) if went is PUBLIC else bool(went)

    def give_up(self, body: n.Block, scope: Scope, value: object, names: Collection[str] = ()) -> bool:
        """After a block that is not followed, in which any name that it binds may come to be `value`."""
        scope.names |= dict.fromkeys(self.assigned(body) | set(names), value)
        if any(map(returns_inside, body.body)):
            self.returned(value)
        return True

    def assigned(self, body: n.Block) -> set[str]:
        """The names that running a block may set in its own scope."""
        return set(bound_in(body.body, self.world.names))

    # Functions and amounts -----------------------------------------------------------------------

    def closure(self, name: str, params: tuple[n.Param, ...] | tuple[str, ...], body: n.Block | n.Expr,
                scope: Scope) -> Closure:  # fmt: skip
        pairs = [(p, None) if isinstance(p, str) else (p.name, p.default) for p in params]
        values = tuple((p, self.eval(d, scope) if d is not None else MISSING) for p, d in pairs)
        return Closure(name, values, body, scope)

    def amount_bounds(self, node: n.Amount, scope: Scope, reached: ReachedSources) -> Bounds:
        """Bounds of an amount that is written in the program."""
        if node.unit == "share":
            return self.share_bounds(self.eval(node.value, scope), reached)
        if node.is_wish:
            return self._wished(node, scope)
        left = self.left_amount(scope, node.unit, reached)
        inner = scope if left is MISSING else Scope(scope, {node.unit: left})
        value = self.eval(node.value, inner)
        delta = self.eval(node.delta, inner) if node.delta is not None else 0.0
        return *in_quanta(value), in_quanta(delta)[1] if node.delta is not None else 0

    def _wished(self, node: n.Amount, scope: Scope) -> Bounds:
        """What buys a wanted error, where that was found before."""
        delta = self.eval(node.delta, scope) if node.delta is not None else 0.0
        self.eval(node.value, scope)
        planned = self.world.planned.get(node.span)
        least, most = (0, math.inf) if planned is None else (planned, planned)
        return least, most, in_quanta(delta)[1] if node.delta is not None else 0

    # Expressions ---------------------------------------------------------------------------------

    def eval(self, node: n.Expr, scope: Scope) -> Any:
        self.step(node.span)
        return EXPRESSIONS[type(node)](self, node, scope)

    def condition(self, test: n.Expr, scope: Scope) -> bool | None:
        """Whether a condition holds, where only that way is followed."""
        return self.decided(self.eval(test, scope))

    def iterated(self, source: n.Expr, scope: Scope) -> object:
        return self.eval(source, scope)
