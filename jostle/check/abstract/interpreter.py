"""The one walk over statements and expressions before a run: what each form does to what is known of values.

It goes the ways of `run.interpreter`. How far ways are told apart is for its two explorers: `cost.explorer` follows
paths, rounds of loops and charges; `check.exploration` looks at every place once, for labels. Nothing is opened and
no data are read.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Sequence
from datetime import date
from typing import Any, assert_never

from jostle.check.abstract import calls, kinds, numbers, rows
from jostle.check.abstract import declarations as declared
from jostle.check.abstract.joins import join_all, walked
from jostle.check.abstract.values import (
    MISSING,
    PUBLIC,
    TOP,
    Closure,
    External,
    Items,
    Maker,
    Most,
    Part,
    Range,
    ReachedSources,
    Scope,
    SourceFact,
    in_quanta,
    reached_sources,
    widened,
)  # fmt: skip
from jostle.check.labels import Labels
from jostle.check.scopes import bound_in, returns_inside
from jostle.language.forms import bare_selects, is_real
from jostle.source import Span
from jostle.syntax import nodes as n

NO_SOURCES = ReachedSources(())
Bounds = tuple[int, Most, Most]
"""The least and the most of an amount, and the most of its delta."""


class Interpreter(ABC):
    """Evaluates expressions and follows statements."""

    most_parts = 400  # of one partition that are told apart

    def __init__(self, world: declared.World, labels: Labels) -> None:
        self.world, self.labels = world, labels
        self.sources: list[SourceFact] = []
        self.identities: list[tuple[SourceFact, Hashable]] = []
        self.agents = 0
        self.measured: set[int] = set()  # the aggregates of a select, where its outputs are calculated
        self.bare_left = 0
        self.joint = False  # whether this stands in a `jointly` block

    # Exploration ---------------------------------------------------------------------------------

    @abstractmethod
    def step(self, span: Span | None) -> None:
        """Counts a step."""

    @abstractmethod
    def look_up(self, scope: Scope, name: str) -> Any:
        """The value of a name, or `MISSING`."""

    @abstractmethod
    def decided(self, test: Any) -> bool | None:
        """Whether a condition holds, where only that way is followed."""

    @abstractmethod
    def paths(self, thunks: Sequence[Callable[[], Any]], certain: bool = True) -> Any:
        """Follows each of these from here, and goes on where they meet. Not `certain`: perhaps none of them is run."""

    @abstractmethod
    def branches(self, scope: Scope, bodies: Sequence[Sequence[n.Stmt]]) -> bool:
        """The same for statements; whether any of these ways goes on."""

    @abstractmethod
    def loop(self, scope: Scope, span: Span, value: Any, own: Collection[str], each: Callable[[Any], bool]) -> bool:
        """Goes round with each item; whether the way goes on after. `own`: names of `scope` that a round may set."""

    @abstractmethod
    def cheaply(self, scope: Scope, node: n.Node, value: Any, thunk: Callable[[], Any]) -> Any:
        """The value of a part of the program that works on `value`; `PUBLIC` where it is inert and takes long."""

    @abstractmethod
    def returned(self, value: Any) -> None:
        """A way ends here."""

    @abstractmethod
    def enter(self, function: Closure, local: dict[str, Any], node: n.Expr) -> Any:
        """The value of a function's body, with its parameters in `local`."""

    @abstractmethod
    def choose_option(self, maker: Maker, args: Sequence[Any], node: n.Expr) -> Any:
        """The value of a call of a ChoiceMaker."""

    @abstractmethod
    def allotted(self, spend: n.Spend, scope: Scope, reached: ReachedSources, body: Callable[[], Any],
                 ruined: Callable[[], Any]) -> Any:  # fmt: skip
        """Follows what stands in an allotment; `ruined` says what comes of it where that takes too long."""

    @abstractmethod
    def until_budget(self, reached: ReachedSources, span: Span, body: Callable[[], Any]) -> None:
        """Follows what spends no more than is left of the budgets of these sources, and of the allotment around."""

    @abstractmethod
    def left_amount(self, scope: Scope, unit: str, reached: ReachedSources) -> Any:
        """What the name of a unit stands for where no variable has it, or `MISSING`."""

    @abstractmethod
    def share_bounds(self, share: Any, reached: ReachedSources) -> Bounds:
        """A share of what the allotment around held when it opened, or of the budget where there is none."""

    @abstractmethod
    def bare(self, reached: ReachedSources, shares: int, needed: bool = True) -> Bounds:
        """An equal share of what is left; where that is nothing, what is `needed` is refused."""

    @abstractmethod
    def charge(self, reached: ReachedSources, amount: Bounds, span: Span, why: str = "an amount is not known") -> None:
        """A measurement on what is reached; `why` there is no bound, where there is none."""

    @abstractmethod
    def too_long(self, reason: str, span: Span) -> None:
        """What comes here is not followed."""

    @abstractmethod
    def rows(self, node: n.Expr, schema: dict[str, Any] | None, scope: Scope, how: str = "expression",
             tables: Sequence[str] = (), over: n.Expr | None = None) -> None:  # fmt: skip
        """An expression on rows; `how` it is meant: `expression`, `condition`, `position` of a column, or `axis`, whose
        keys may be listed by `over`."""

    def calculated(self, node: n.Expr, schema: dict[str, Any] | None, scope: Scope) -> Any:
        """What is known of the values of a column that is made by an expression on rows."""
        return PUBLIC

    @abstractmethod
    def use_module(self, node: n.Use, scope: Scope) -> None:
        """Binds the names of a module."""

    def created(self, function: Closure) -> Closure:
        """A function of the program came to be."""
        return function

    def select_query(self, node: n.Select, scope: Scope) -> Any:
        return rows.transfer_select(self, node, scope)

    # Statements ----------------------------------------------------------------------------------

    def block(self, body: Sequence[n.Stmt], scope: Scope) -> bool:
        """Follows statements; whether the way can go on after them."""
        return all(self.statement(statement, scope) for statement in body)

    def statement(self, node: n.Stmt, scope: Scope) -> bool:
        self.step(node.span)
        match node:
            case n.Assign(name=name, value=expr):
                value = self.eval(expr, scope)
                if not (isinstance(expr, n.Name) and expr.id == name):
                    value = self.labels.passed(value, node.span, f"`{name}` is made from it here")
                scope.names[name] = value
                scope.released.discard(name)
            case n.Bare(value=expr):
                self.eval(expr, scope)
            case n.Return(value=result):
                self.returned(self.eval(result, scope) if result is not None else None)
                return False
            case n.Def(name=name, params=params, body=body):
                scope.names[name] = self.closure(name, params, body, scope)
            case n.If(test=test, then=then, other=other):
                holds = self.condition(test, scope)
                blocks = [then.body, other.body if other is not None else ()]
                return self.branches(scope, blocks) if holds is None else self.block(blocks[not holds], scope)
            case n.For():
                return self._for(node, scope)
            case n.With(spend=spend, body=body, jointly=jointly):
                if jointly:
                    self.labels.jointly(node)
                inside = (lambda: self._jointly(body, scope)) if jointly else (lambda: self.block(body.body, scope))
                ruined = lambda: self.give_up(body, scope, TOP)  # noqa: E731
                return bool(self.allotted(spend, scope, NO_SOURCES, inside, ruined))
            case n.Run():
                self._run(node, scope)
            case n.Release(name=name, value=result):
                shown = result if result is not None else n.Name(name, span=node.span)
                value = self.eval(shown, scope)
                self.labels.shown_to_people(value, shown, "released")
                if result is not None and (name in scope.released or self.look_up(scope, name) is MISSING):
                    scope.names[name] = value
                    scope.released.add(name)
            case n.Assert(value=test, message=message):
                if self.condition(test, scope) is not True and message is not None:
                    self.optionally(lambda: self._message(message, scope))  # a run that ends here has paid for it
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

        def each(_: Any) -> bool:
            body = lambda: self.block(node.body.body, scope)  # noqa: E731
            goes_on = self.allotted(node.spend, scope, reached, body, lambda: self.give_up(node.body, scope, TOP))
            if goes_on and node.done is not None:
                self.condition(node.done, scope)
            return bool(goes_on)

        own = self.assigned(node.body)
        self.until_budget(reached, node.span, lambda: self.loop(scope, node.span, Items(PUBLIC), own, each))

    def _message(self, message: n.Expr, scope: Scope) -> None:
        self.labels.shown_to_people(self.eval(message, scope), message, "shown")

    def _for(self, node: n.For, scope: Scope) -> bool:
        source = self.iterated(node.source, scope)

        def each(item: Any) -> bool:
            self.bind_items(node.names, item, scope)
            return self.block(node.body.body, scope)

        own = self.assigned(node.body) | set(node.names)
        went = self.cheaply(scope, node, source, lambda: self.loop(scope, node.span, source, own, each))
        return self.give_up(node.body, scope, PUBLIC, node.names) if went is PUBLIC else bool(went)

    def give_up(self, body: n.Block, scope: Scope, value: Any, names: Collection[str] = ()) -> bool:
        """After a block that is not followed, in which any name that it binds may come to be `value`."""
        scope.names |= dict.fromkeys(self.assigned(body) | set(names), value)
        if any(map(returns_inside, body.body)):
            self.returned(value)
        return True

    def assigned(self, body: n.Block) -> set[str]:
        """The names that running a block may set in its own scope."""
        return set(bound_in(body.body, self.world.names))

    def bind_items(self, names: tuple[str, ...], item: Any, scope: Scope) -> None:
        if len(names) == 1:
            scope.names[names[0]] = item
            return
        fits = isinstance(item, list) and len(item) == len(names)
        values = item if fits else [item.item if isinstance(item, Items) else widened(item)] * len(names)
        scope.names.update(zip(names, values, strict=True))

    def optionally(self, thunk: Callable[[], Any]) -> Any:
        return self.paths([lambda: MISSING, thunk])

    # Functions and amounts -----------------------------------------------------------------------

    def closure(self, name: str, params: tuple[n.Param, ...] | tuple[str, ...], body: n.Block | n.Expr,
                scope: Scope) -> Closure:  # fmt: skip
        pairs = [(p, None) if isinstance(p, str) else (p.name, p.default) for p in params]
        values = tuple((p, self.eval(d, scope) if d is not None else MISSING) for p, d in pairs)
        return self.created(Closure(name, values, body, scope))

    def amount_bounds(self, node: n.Amount, scope: Scope, reached: ReachedSources) -> Bounds:
        """Bounds of an amount that is written in the program."""
        if node.unit == "share":
            value = self.eval(node.value, scope)
            self.labels.amount(node, value, None)
            return self.share_bounds(value, reached)
        if node.is_wish:
            return self._wished(node, scope)
        left = self.left_amount(scope, node.unit, reached)
        inner = scope if left is MISSING else Scope(scope, {node.unit: left})
        value = self.eval(node.value, inner)
        delta = self.eval(node.delta, inner) if node.delta is not None else 0.0
        self.labels.amount(node, value, delta)
        return *in_quanta(value), in_quanta(delta)[1] if node.delta is not None else 0

    def _wished(self, node: n.Amount, scope: Scope) -> Bounds:
        """What buys a wanted error, where that was found before."""
        delta = self.eval(node.delta, scope) if node.delta is not None else 0.0
        self.labels.amount(node, self.eval(node.value, scope), delta)
        planned = self.world.planned.get(node.span)
        least, most = (0, math.inf) if planned is None else (planned, planned)
        return least, most, in_quanta(delta)[1] if node.delta is not None else 0

    # Expressions ---------------------------------------------------------------------------------

    def eval(self, node: n.Expr, scope: Scope) -> Any:
        self.step(node.span)
        match node:
            case n.Name(id=name):
                value = self.look_up(scope, name)
                if value is MISSING and name in ("epsilon", "rho"):
                    value = self.left_amount(scope, name, NO_SOURCES)
                return PUBLIC if value is MISSING else value
            case n.Variable(id=name):
                value = self.look_up(scope, name)
                return PUBLIC if value is MISSING else value
            case n.Number() | n.String():
                return node.value
            case n.Constant():
                return PUBLIC if isinstance(node.value, date) else node.value
            case n.Binary():
                return self._chain(node, scope)
            case n.Call():
                return PUBLIC if id(node) in self.measured else calls.transfer_call(self, node, scope)
            case n.Attribute(value=inner, name=name):
                value = self.eval(inner, scope)
                self.labels.field(value, node)
                return calls.transfer_attribute(value, name)
            case n.Index():
                return rows.transfer_index(self, node, scope)
            case n.ListOf(items=items):
                return [self.eval(item, scope) for item in items]
            case n.SetOf(items=items):
                return numbers.distinct([self.eval(item, scope) for item in items]) if items else {}
            case n.RecordOf(items=pairs):
                return {name: self.eval(item, scope) for name, item in pairs}
            case n.Range(low=n.Constant(value=date() as low), high=n.Constant(value=date() as high)):
                return Range(low, high, False)
            case n.Range(low=low, high=high):
                return Range(self.eval(low, scope), self.eval(high, scope), is_real(low) or is_real(high))
            case n.Unary(op="not", operand=operand):
                holds = self.condition(operand, scope)
                return PUBLIC if holds is None else not holds
            case n.Unary(op=op, operand=operand):
                value = self.eval(operand, scope)
                self.labels.misused(kinds.of_sign(op, value), node)
                return numbers.transfer_unary(op, value)
            case n.Logic():
                return self._operands(node, 0, scope)
            case n.Conditional(test=test, then=then, other=other):
                holds = self.condition(test, scope)
                if holds is not None:
                    return self.eval(then if holds else other, scope)
                return self.paths([lambda: self.eval(then, scope), lambda: self.eval(other, scope)])
            case n.Comprehension():
                source = self.iterated(node.source, scope)
                return self.cheaply(scope, node, source, lambda: self._comprehended(node, source, scope))
            case n.Over():
                return self._over_items(node, scope)
            case n.Lambda(params=names, body=body):
                return self.closure("this lambda", names, body, scope)
            case n.Part(kind=kind, params=params, body=block, predict=predict):
                if predict is not None and node.predict_params is not None:
                    self.closure("predict", node.predict_params, predict, scope)
                return Part(kind, self.closure(kind, params, block, scope))
            case n.Choice():
                clauses = (node.among, node.informed, node.trained, node.wrt)
                among, informed, trained, wrt = (
                    self.eval(clause, scope) if clause is not None else [] for clause in clauses
                )
                if node.using is not None:
                    self.eval(node.using, scope)
                share = self.eval(node.spending, scope) if node.spending is not None else PUBLIC
                self.labels.choice(node, among, informed, trained, wrt, share)
                return Maker(among, informed, score=wrt if node.way != n.FEATURES else None)
            case n.Spending():
                return calls.transfer_spending(self, node, scope)
            case n.Query(body=query):
                outer, self.bare_left = self.bare_left, bare_selects(query)
                result = self.eval(query, scope)
                self.bare_left = outer
                return result
            case n.Select():
                return self.select_query(node, scope)
            case n.Described():
                return declared.public(self, node, scope)
            case n.Star() | n.Distinct():
                return PUBLIC  # arguments of aggregates, which a select looks at
            case unknown:
                assert_never(unknown)

    def condition(self, test: n.Expr, scope: Scope) -> bool | None:
        """Whether a condition holds, where only that way is followed."""
        value = self.eval(test, scope)
        self.labels.branched(value, test)
        return self.decided(value)

    def iterated(self, source: n.Expr, scope: Scope) -> Any:
        value = self.eval(source, scope)
        self.labels.iterated(value, source)
        return value

    def _chain(self, node: n.Binary, scope: Scope) -> Any:
        chain: list[n.Binary] = []
        at: n.Expr = node
        while isinstance(at, n.Binary):
            chain.append(at)
            at = at.left
        value = self.eval(at, scope)
        for link in reversed(chain):
            right = self.eval(link.right, scope)
            self.labels.compared(link, value, right)
            value = numbers.transfer_binary(link.op, value, right)
        return value

    def _operands(self, node: n.Logic, at: int, scope: Scope) -> Any:
        decided, before = node.op == "or", len(self.labels.report)
        holds = self.condition(node.operands[at], scope)
        if len(self.labels.report) > before:  # what is wrong with one is with the others, as a rule
            return PUBLIC
        if at + 1 == len(node.operands) or holds is decided:
            return PUBLIC if holds is None else holds
        if holds is (not decided):
            return self._operands(node, at + 1, scope)
        self.optionally(lambda: self._operands(node, at + 1, scope))
        return PUBLIC

    def _comprehended(self, node: n.Comprehension, source: Any, scope: Scope) -> Any:
        inner = Scope(scope)
        result: list[Any] = [[]]
        walk = walked(source)

        def item() -> list[Any] | Items:
            value = self.eval(node.item, Scope(inner))
            return walked(value) if node.flat else [value]

        def each(value: Any) -> bool:
            self.bind_items(node.names, value, inner)
            test = self.condition(node.condition, inner) if node.condition is not None else True
            if test is not False:
                more = item() if test else self._perhaps(item)
                result[0] = numbers.transfer_binary("+", [] if isinstance(walk, Items) else result[0], more)
            return True

        self.loop(inner, node.span, walk, set(node.names), each)
        answer: Any = result[0]
        if isinstance(walk, Items):
            once = walked(answer)
            one = once.item if isinstance(once, Items) else join_all(once)
            sure = isinstance(once, list) and len(once) == 1 and node.condition is None
            answer = Items(self.settled(one), walk.least if sure else 0, walk.most if sure else None)
        return numbers.distinct(answer) if node.kind == "set" and isinstance(answer, list) else answer

    def _perhaps(self, item: Callable[[], Any]) -> Any:
        result = self.optionally(item)
        return Items(join_all(result) if isinstance(result, list) and result else widened(result))

    def _over_items(self, node: n.Over, scope: Scope) -> Any:
        self.labels.fold(node)
        source = walked(self.iterated(node.source, scope))
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
            return self.settled(join_all(items)) if node.fold.startswith("arg") else PUBLIC
        return numbers.transfer_fold(node.fold, items, values)

    def settled(self, value: Any) -> Any:
        """A value as it is once the loops that are not active are over."""
        return value
