"""Follows a program before it runs, for what it can spend: values as far as they are known, charges as bounds.

Goes the ways of `run.interpreter`. Where the way is not known, all are followed and joined; a loop whose rounds are
not known, or are too many, is followed once, in a state that holds in every round. Nothing is opened and no data are
read. Following ends by itself: each step and each open call is counted, and what takes too long has no bound but the
allotment it stands in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, assert_never

from jostle.accounting.amounts import QUANTA
from jostle.check.cost import calls, numbers, queries
from jostle.check.cost import sources as declared
from jostle.check.cost.ledger import Ledger, Opened
from jostle.check.cost.paths import NO_SOURCES, PathExplorer, joined_names, walked
from jostle.check.cost.tree import Most
from jostle.check.cost.values import (
    MISSING,
    PUBLIC,
    TOP,
    Closure,
    External,
    Items,
    Maker,
    NumberInterval,
    Part,
    Range,
    ReachedSources,
    Scope,
    in_quanta,
    join_all,
    widened,
)  # fmt: skip
from jostle.check.scopes import bound_in, returns_inside
from jostle.language.forms import bare_selects, is_real
from jostle.syntax import nodes as n


class Walker(PathExplorer):
    """Evaluates expressions and follows statements."""

    # Statements ----------------------------------------------------------------------------------

    def block(self, body: Sequence[n.Stmt], scope: Scope) -> bool:
        """Follows statements; whether the way can go on after them."""
        return all(self.statement(statement, scope) for statement in body)

    def statement(self, node: n.Stmt, scope: Scope) -> bool:
        self.step(node.span)
        match node:
            case n.Assign():
                scope.names[node.name] = self.eval(node.value, scope)
            case n.Bare():
                self.eval(node.value, scope)
            case n.Return():
                value = self.eval(node.value, scope) if node.value is not None else None
                self.returns.append((value, self.ledger))
                self.ledger = self.ledger.copy()
                return False
            case n.Def():
                scope.names[node.name] = Closure(node.name, self.params(node.params, scope), node.body, scope)
            case n.If():
                return self._if(node, scope)
            case n.For():
                return self._for(node, scope)
            case n.With():
                return self._with(node, scope)
            case n.Release(value=value):
                if value is not None:
                    self.eval(value, scope)
            case n.Assert(value=value, message=message):
                if self.eval(value, scope) is not True and message is not None:
                    self.optionally(lambda: self.eval(message, scope))  # a run that ends here has paid for it
            case n.Private():
                scope.names[node.name] = declared.private(self, node, scope)
            case n.Use():
                declared.use(self, node, scope)
            case n.ParamDecl():
                default = self.eval(node.default, scope)
                scope.names[node.name] = self.world.setting(node.name, default)
            case n.External():
                scope.names[node.name] = External(node.name)
            case unknown:
                assert_never(unknown)
        return True

    def assigned(self, body: n.Block) -> set[str]:
        """The names that running a block may set in its own scope."""
        return set(bound_in(body.body, self._names_of))

    def _names_of(self, use: n.Use) -> set[str]:
        """The names that a `use` binds."""
        if use.path not in self.module_names:
            self.module_names[use.path] = {use.path[-1]}  # for modules that use each other
            tree = self.world.module(use.path)
            if tree is not None:
                self.module_names[use.path] |= set(bound_in(tree.body, self._names_of))
        return self.module_names[use.path]

    def params(self, params: tuple[n.Param, ...], scope: Scope) -> tuple[tuple[str, Any], ...]:
        return tuple((p.name, self.eval(p.default, scope) if p.default is not None else MISSING) for p in params)

    def _if(self, node: n.If, scope: Scope) -> bool:
        test = self.eval(node.test, scope)
        blocks = [node.then.body, node.other.body if node.other is not None else ()]
        if isinstance(test, bool):
            return self.block(blocks[0 if test else 1], scope)
        names, before = scope.names, self.ledger
        ends: list[tuple[dict[str, Any], Ledger]] = []
        for body in blocks:
            scope.names, self.ledger = dict(names), before.copy()
            if self.block(body, scope):
                ends.append((scope.names, self.ledger))
        for other_names, other in ends[1:]:
            ends[0] = joined_names(ends[0][0], other_names), ends[0][1].join(other)
        if ends:
            scope.names, self.ledger = ends[0]
        return bool(ends)

    def _for(self, node: n.For, scope: Scope) -> bool:
        value = self.eval(node.source, scope)
        own = self.assigned(node.body) | set(node.names)

        def each(item: Any) -> bool:
            self.bind(node.names, item, scope)
            return self.block(node.body.body, scope)

        if not self.trying and self.purity.value(value) and self.purity.node(node, scope):
            names, self_returns = dict(scope.names), len(self.returns)
            went = self.trial(lambda: self.loop(scope, node.span, value, own, each))
            if went is not PUBLIC:
                return bool(went)
            del self.returns[self_returns:]
            scope.names = {**names, **dict.fromkeys(own, PUBLIC)}
            if any(map(returns_inside, node.body.body)):
                self.returns.append((PUBLIC, self.ledger.copy()))
            return True
        return self.loop(scope, node.span, value, own, each)

    def _with(self, node: n.With, scope: Scope) -> bool:
        opened = self.opening(node.spend, scope, NO_SOURCES)
        names = dict(scope.names)

        def ruined() -> bool:
            scope.names = {**names, **dict.fromkeys(self.assigned(node.body), TOP)}
            if any(map(returns_inside, node.body.body)):
                self.returns.append((TOP, self.ledger.copy()))
            return True

        return self.allotted(opened, lambda: self.block(node.body.body, scope), ruined)

    # Amounts -------------------------------------------------------------------------------------

    def opening(self, spend: n.Spend, scope: Scope, reached: ReachedSources) -> Opened:
        least, most, delta = self.amount(spend.amount, scope, reached)
        return Opened(least, most, delta, spend.amount.unit, spend.span, reached)

    def amount(self, node: n.Amount, scope: Scope, reached: ReachedSources) -> tuple[int, Most, Most]:
        """Bounds of an amount written in the program, and the most of its delta."""
        inner, opened = Scope(scope), self.allotment
        if opened is not None and self.find(scope, node.unit) is MISSING:
            inner.names[node.unit] = self.left_as_number(opened, reached)
        least, most = in_quanta(self.eval(node.value, inner))
        delta: Most = in_quanta(self.eval(node.delta, inner))[1] if node.delta is not None else 0
        return least, most, delta

    def left_as_number(self, opened: Opened, reached: ReachedSources) -> Any:
        if opened.boundless:
            return math.inf
        least, most = self.left(opened, reached)
        low, high = least / QUANTA, (most / QUANTA if most < math.inf else math.inf)
        return low if low == high else NumberInterval(low, high)

    # Expressions ---------------------------------------------------------------------------------

    def eval(self, node: n.Expr, scope: Scope) -> Any:
        self.step(node.span)
        match node:
            case n.Name():
                return self._name(node, scope)
            case n.Number() | n.String() | n.Constant():
                return node.value
            case n.Binary():
                return self._binary(node, scope)
            case n.Call():
                return PUBLIC if id(node) in self.measured else calls.call(self, node, scope)
            case n.Attribute():
                return calls.attribute(self.eval(node.value, scope), node.name)
            case n.Index():
                return queries.index(self, node, scope)
            case n.ListOf():
                return [self.eval(item, scope) for item in node.items]
            case n.SetOf():
                return numbers.distinct([self.eval(i, scope) for i in node.items]) if node.items else {}
            case n.RecordOf():
                return {name: self.eval(item, scope) for name, item in node.items}
            case n.Range():
                return Range(
                    self.eval(node.low, scope), self.eval(node.high, scope), is_real(node.low) or is_real(node.high)
                )
            case n.Unary():
                value = self.eval(node.operand, scope)
                if node.op == "not":
                    return not value if isinstance(value, bool) else PUBLIC
                return numbers.unary(node.op, value)
            case n.Logic():
                return self._logic(node, 0, scope)
            case n.Conditional():
                test = self.eval(node.test, scope)
                if isinstance(test, bool):
                    return self.eval(node.then if test else node.other, scope)
                return self.paths([lambda: self.eval(node.then, scope), lambda: self.eval(node.other, scope)])
            case n.Comprehension():
                return self.comprehension(node, scope)
            case n.Over():
                return self._over(node, scope)
            case n.Lambda():
                return Closure("this lambda", tuple((p, MISSING) for p in node.params), node.body, scope)
            case n.Part():
                return Part(node.kind, Closure(node.kind, self.params(node.params, scope), node.body, scope))
            case n.Choice():
                result = Maker(self.eval(node.among, scope), self.eval(node.informed, scope))
                for clause in (node.trained, node.using, node.spending, node.wrt):
                    if clause is not None:
                        self.eval(clause, scope)
                return result
            case n.Spending():
                return calls.spending(self, node, scope)
            case n.Query():
                outer, self.bare_left = self.bare_left, bare_selects(node.body)
                result = self.eval(node.body, scope)
                self.bare_left = outer
                return result
            case n.Select():
                return queries.select(self, node, scope)
            case n.Described():
                return declared.public(self, node, scope)
            case n.Star() | n.Distinct():
                return PUBLIC  # arguments of aggregates, which a select looks at
            case unknown:
                assert_never(unknown)

    def _name(self, node: n.Name, scope: Scope) -> Any:
        answer = self.find(scope, node.id)
        if answer is not MISSING:
            return answer
        opened = self.allotment
        if node.id in ("epsilon", "rho") and opened is not None:
            return self.left_as_number(opened, NO_SOURCES)
        return PUBLIC

    def _binary(self, node: n.Binary, scope: Scope) -> Any:
        chain: list[n.Binary] = []
        at: n.Expr = node
        while isinstance(at, n.Binary):
            chain.append(at)
            at = at.left
        value = self.eval(at, scope)
        for link in reversed(chain):
            value = numbers.binary(link.op, value, self.eval(link.right, scope))
        return value

    def _logic(self, node: n.Logic, at: int, scope: Scope) -> Any:
        decided = node.op == "or"
        value = self.eval(node.operands[at], scope)
        if at + 1 == len(node.operands) or value is decided:
            return value if isinstance(value, bool) else PUBLIC
        if value is (not decided):
            return self._logic(node, at + 1, scope)
        self.optionally(lambda: self._logic(node, at + 1, scope))
        return PUBLIC

    def comprehension(self, node: n.Comprehension, scope: Scope) -> Any:
        source = self.eval(node.source, scope)
        if not self.trying and self.purity.value(source) and self.purity.node(node, scope):
            return self.trial(lambda: self._comprehension(node, source, scope))
        return self._comprehension(node, source, scope)

    def _comprehension(self, node: n.Comprehension, source: Any, scope: Scope) -> Any:
        inner = Scope(scope)
        out: list[Any] = [[]]
        walk = walked(source)

        def item() -> list[Any] | Items:
            result = self.eval(node.item, Scope(inner))
            return walked(result) if node.flat else [result]

        def each(value: Any) -> bool:
            self.bind(node.names, value, inner)
            test = self.eval(node.condition, inner) if node.condition is not None else True
            if test is not False:
                result = item() if test is True else self._perhaps(item)
                out[0] = numbers.binary("+", [] if isinstance(walk, Items) else out[0], result)
            return True

        self.loop(inner, node.span, walk, set(node.names), each)
        answer: Any = out[0]
        if isinstance(walk, Items):
            once = walked(answer)
            one = once.item if isinstance(once, Items) else join_all(once)
            sure = isinstance(once, list) and len(once) == 1 and node.condition is None
            answer = Items(self._settled(one), walk.least if sure else 0, walk.most if sure else None)
        if node.kind == "set":
            return numbers.distinct(answer) if isinstance(answer, list) else answer
        return answer

    def _perhaps(self, item: Callable[[], Any]) -> Any:
        result = self.optionally(lambda: item())
        return Items(join_all(result) if isinstance(result, list) and result else widened(result))

    def _over(self, node: n.Over, scope: Scope) -> Any:
        source = walked(self.eval(node.source, scope))
        inner = Scope(scope)
        items: list[Any] = []
        values: list[Any] = []

        def each(item: Any) -> bool:
            inner.names[node.name] = item
            items.append(item)
            values.append(self.eval(node.body, Scope(inner)))
            return True

        self.loop(inner, node.span, source, {node.name}, each)
        if isinstance(source, Items):
            return self._settled(join_all(items)) if node.fold.startswith("arg") else PUBLIC
        return numbers.fold(node.fold, items, values)


# Helpers -----------------------------------------------------------------------------------------
