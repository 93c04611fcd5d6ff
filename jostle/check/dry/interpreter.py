"""What a run is sure to refuse: the program is walked as a run walks it, as far as nothing depends on an answer.

A run refuses from public facts, before it charges: names, kinds, columns, keys, bounds, amounts of noise. So what it
would refuse of a measurement is known by asking for it and turning back at the door. What that would have answered is
`Unknown`, and so is what depends on it, but for its form (`forms`): how long it is and which fields it has. Of such a
statement that alone is known: of a branch or a loop, what all ways through it have in common. Everything else is the
run's own, so that no rule of it is written twice. Nothing is opened: of a private source the description is known, of
public files nothing; nor is what choices and slow kernels give, and what was spent only where nothing was left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from jostle.check.dry import forms
from jostle.check.dry.expressions import DryExpressions
from jostle.check.dry.forms import Names, NotKnown, Unknown
from jostle.check.dry.stand_ins import (
    LowerBound,
    TooLong,
    Untrained,
    adaptive_name,
    declared_choice,
    described_table,
    door,
    form_of,
    is_structural,
    is_unknown,
    need_amount,
    need_places,
    opens,
    source_columns,
    table_of,
    wishes_of,
)
from jostle.check.warnings import Report, Warnings, taken_down
from jostle.choice.advisors import Advisor
from jostle.choice.maker import ChoiceMaker
from jostle.diagnostics import Diagnostic, Refusal, refuse
from jostle.formulas import Noised
from jostle.language.builtins import BUILTINS, SLOW
from jostle.language.facts import Effect, Gives, Reads
from jostle.language.forms import source_kind
from jostle.language.row_mistakes import arity_error, no_condition
from jostle.noise_laws import Laplace
from jostle.plan.facts import bounds_of
from jostle.plan.kinds import kind_of
from jostle.plan.plan import Open
from jostle.privacy.kernel.handles import Table
from jostle.records import replace
from jostle.run.calls import need_public
from jostle.run.clauses import described_schema, need_clauses
from jostle.run.faults import LIBRARY, deep
from jostle.run.fitting import no_argument, row_of
from jostle.run.groups import own_keys, public_keys
from jostle.run.looks import Looks, Planned
from jostle.run.margins import no_error
from jostle.run.rows import RowCompiler
from jostle.run.scope import MISSING, Scope
from jostle.run.values import Builtin, Function, Part
from jostle.source import Source, Span
from jostle.syntax import nodes as n
from jostle.syntax.walk import blocks, bound_in, rebuilt, returns_inside, times_bound

if TYPE_CHECKING:
    from jostle.events import Stream
    from jostle.run.evaluator import Returned

Foreseen = tuple[list[Diagnostic], dict[Span, list[Planned]], list[Diagnostic], dict[Span, int]]
"""Refusals, looks by the statements that pay for them, warnings, and what wanted errors take, in quanta, by place."""
MOST_STEPS = 30_000
"""The expressions that are looked at. After a statement of more, the next ones have a fourth of it again."""

ELSEWHERE = frozenset({"DataError", "LedgerError", "ImportError", "BudgetExceeded", "RecursionLimit"})
"""Kinds of refusals that rest on files or on what was spent, of which a run knows more."""

_QUIETLY = (Reads.PUBLIC, Reads.CONTAINERS, Reads.DRAWS)
"""How functions read that may be tried with examples: nobody sees what the walk draws."""
GIVERS = (n.Name, n.Variable, n.Query, n.Call, n.Spending)
"""Expressions that are what a part of them is, or what is called; of others the form is not that of a part."""


class DryInterpreter(DryExpressions):
    """Walks a program up to the door of its kernel, statement by statement."""

    def __init__(self, *args: object, **keywords: object) -> None:
        super().__init__(*args, **keywords)
        self.steps, self.made_up_rows, self.most = 0, 0, MOST_STEPS
        self.walks = True
        self.refusals: list[Refusal] = []
        self.entered: set[int] = set()  # the bodies of functions that were called
        self.functions: dict[int, Function] = {}  # what the program and its own modules define, by body
        self.returned: list[object] | None = None  # what the function at hand may have returned before
        self.body, self.open = 0, set[int]()  # the function at hand, and those that may have returned
        self.report = Report()  # warnings
        self.source: Source | None = None  # the program that they are of

    def at_least(self, amount: float) -> float:
        return LowerBound(amount) if self.kernel.skipped else amount  # type: ignore[attr-defined]

    def statement(self, node: n.Stmt, scope: Scope) -> Returned | None:
        skipped = self.kernel.skipped  # type: ignore[attr-defined]
        try:
            if isinstance(node, n.Run) and skipped:
                raise Unknown  # what is left, and so whether there is a round, is not known any more
            if isinstance(node, n.Private):
                self._check_declaration(node, scope)
            if isinstance(node, n.With):
                need_amount(self, node.spend.amount, scope)
            if isinstance(node, n.If | n.Assert | n.For):
                self._condition(node, scope)
            ended = super().statement(node, scope)
            if isinstance(node, n.Run) and self.kernel.skipped > skipped:  # type: ignore[attr-defined]
                self.forget(node, scope, NotKnown())  # there may be more rounds than these
            scope.names = Names(scope.names) if isinstance(node, n.Use) else scope.names
            return ended
        except Unknown as unknown:
            unknown.returned |= isinstance(node, n.Return)
            if unknown.returned:
                raise
            if isinstance(node, n.With):
                self.note_wish(node.spend)
            after = self._one_by_one(node, scope) or self._look_inside(node, scope)
            if self.joint is not None or (returns_inside(node) and self.returned is None):
                raise Unknown from None  # nothing is known of what it gives
            like = unknown.value.like if isinstance(node, n.Assign | n.Release) else None
            self.forget(node, scope, NotKnown(unknown.value.of if forms.is_of_call(node) else "", like), after)
            return None
        except Refusal as refusal:
            self._refused(refusal, node, scope)
            return None

    def _refused(self, refusal: Refusal, node: n.Stmt, scope: Scope) -> None:
        """Notes what a run refuses for sure, and goes on without the statement; inside a call, the call is refused."""
        elsewhere = refusal.first.kind in ELSEWHERE
        if self.depth or self.joint is not None:
            raise (Unknown() if elsewhere else refusal) from None
        if not elsewhere and not (self.unsure and refusal.first.kind not in self.everywhere):
            self.refusals.append(refusal.at(node.span))
        self.forget(node, scope, NotKnown())

    def _check_declaration(self, node: n.Private, scope: Scope) -> None:
        """Notes what is wrong with a declaration whatever its file holds."""
        try:
            if kind := source_kind(node.source):
                need_clauses(node, kind)
            if node.described is not None:
                described_schema(self, node.described, scope)
        except Refusal as refusal:
            self.refusals.append(refusal.at(node.span))

    def _condition(self, node: n.If | n.Assert | n.For, scope: Scope) -> None:
        """Evaluates the condition of a statement, which is refused where its kind is known to be another; of a loop the
        places of its rounds."""
        if isinstance(node, n.For):
            return need_places(self, node, scope)
        test = node.test if isinstance(node, n.If) else node.value
        value = self.part(test, scope)
        self.parts[id(test)] = value
        if forms.kind(value) not in (None, "a boolean"):
            del self.parts[id(test)]
            if isinstance(value, NotKnown):
                raise Refusal(no_condition(str(forms.kind(value)), test.span.text)).at(test.span)
            self.truth(value, test)

    def _one_by_one(self, node: n.Stmt, scope: Scope) -> dict[str, NotKnown]:
        """What is known of the answers of a joint block: they have the forms that they have one by one."""
        if not isinstance(node, n.With) or not node.jointly or self.joint is not None:
            return {}
        names, before, looks = scope.names, len(self.refusals), self.looks
        scope.names, self.looks = Names(names), Looks()  # what a joint block looks at, it looks at once
        with suppress(Unknown, Refusal):
            self.block((rebuilt(replace(node, jointly=False), _without_wish),), scope)
        after, scope.names, self.looks = scope.names, names, looks
        del self.refusals[before:]
        return {name: value for name in _bound(node) if isinstance(value := dict.get(after, name), NotKnown)}

    def _look_inside(self, node: n.Stmt, scope: Scope) -> dict[str, NotKnown]:
        """Walks what a branch or a loop does, of which it is not known whether a run comes by, and gives what is known
        of its names after it."""
        if self.joint is not None or not isinstance(node, n.If | n.For):
            return {}
        if self.depth and returns_inside(node):
            self.returned, self.open = self.returned or [], {*self.open, self.body}
        if self.depth and self.steps > self.most // 2:
            self.returned = None
            return {}
        names, ways, around = scope.names, list[dict[str, object]](), (self.unsure, self.looks)
        begun, sure, self.unsure, self.looks = Names(names), False, True, Looks() if self.depth else self.looks
        try:
            if isinstance(node, n.For):
                source = self.part(node.source, scope)
                begun |= self.item_names(node.names, self.item(source, node.source.span), node.source.span, scope)
                sure = self.returned is None and forms.has_items(source)
            for block in blocks(node):
                scope.names = Names(begun)
                if self._goes_on(block, scope, sure):
                    ways.append(scope.names)
        except Refusal as refusal:
            self._refused(refusal, node, scope)  # in a function the call is refused
        finally:
            scope.names, (self.unsure, self.looks) = names, around
        self.looks = self.looks if self.returned is None else Looks()  # of what a run may not come by
        ways += [names] if isinstance(node, n.For) or node.other is None else []
        after = {name: [dict.get(way, name, NotKnown()) for way in ways] for name in _bound(node)}
        return {name: NotKnown(like=forms.common(values)) for name, values in after.items()}

    def _goes_on(self, block: n.Block, scope: Scope, sure: bool) -> bool:
        """Walks a branch, notes what it returns, and whether what follows may come; `sure`: a run comes by."""
        try:
            ended = self.block(block.body, scope)
            if ended is not None and self.returned is not None:
                self.returned.append(ended.value)
            return ended is None
        except Unknown as unknown:
            if self.returned is not None and unknown.returned:
                self.returned.append(unknown.value)
            else:
                self.returned = None
        except Refusal as refusal:
            if not self.depth or (sure and refusal.first.kind in self.everywhere):
                raise
        return False

    def uncalled(self) -> None:
        """Walks the functions, and parts of choices, that nothing called, of whose arguments nothing is known."""
        self.unsure, self.unpaid = True, frozenset()
        while self.functions:
            _, function = self.functions.popitem()
            if id(function.body) not in self.entered:
                inner = Scope(function.scope, Names({name: NotKnown() for name, _ in function.params}))
                body = function.body
                with suppress(Unknown):
                    self.block(body.body if isinstance(body, n.Block) else (n.Return(body, span=body.span),), inner)

    def forget(self, node: n.Stmt, scope: Scope, value: NotKnown, after: Mapping[str, NotKnown] = {}) -> None:
        """The names that a statement would have given a value, and what is known of them `after` it."""
        self.kernel.skipped += 1  # type: ignore[attr-defined]
        scope.names = scope.names if isinstance(scope.names, Names) else Names(scope.names)
        keep = scope.release if isinstance(node, n.Release) else scope.set
        for name in _bound(node):
            with suppress(Unknown):  # a name that a release does not take: it has a value, which is not known
                keep(name, after.get(name, value))

    def eval(self, node: n.Expr, scope: Scope) -> object:
        if id(node) in self.parts:
            return self.value_of(self.parts.pop(id(node)))
        self.steps += 1
        if self.steps > self.most:
            raise TooLong
        if isinstance(node, n.Described):
            return described_table(self, node, scope)
        if isinstance(node, n.Call) and opens(self.part, node, scope):
            table = table_of(self, node, [self.part(arg, scope) for arg in node.args], scope)
            if table is not None:
                return table
            raise Unknown(like=forms.A_SOURCE)
        looked_at = self.forms.get(type(node))
        try:
            value = super().eval(node, scope) if looked_at is None else looked_at(node, scope)
        except Unknown as unknown:
            of_part = looked_at is None and not isinstance(node, GIVERS)
            if of_part or (isinstance(node, n.Call | n.Spending) and not unknown.called):
                unknown.value = NotKnown(unknown.value.of)
            unknown.called = False
            raise
        if isinstance(value, LowerBound):
            raise Unknown
        if isinstance(node, n.Lambda | n.Part) and isinstance(value, Function | Part):
            self.define(value)
        return value

    def define(self, function: Function | Part) -> None:
        run = function.run if isinstance(function, Part) else function
        if not self.depth and isinstance(run, Function) and not run.body.span.source.name.startswith(LIBRARY):
            self.functions[id(run.body)] = run

    def argument(self, node: n.Expr, scope: Scope) -> object:
        """What is not known may be passed to a function of a program, which may refuse the other arguments."""
        try:
            return super().argument(node, scope)
        except Unknown as unknown:
            of = unknown.value.of if isinstance(node, n.Name | n.Call | n.Spending) else ""
            return NotKnown(of, unknown.value.like)

    def reads_rows(self, handle: Any, node: n.Expr, scope: Scope) -> None:
        """Warns of what reads rows of a private table in the program itself and does not fit their description."""
        if not handle.private or node.span.source is not self.source:
            return
        schema = dict(handle.schema)
        compiler = RowCompiler(schema, self, scope)

        def bounds(expr: n.Expr) -> tuple[float, float] | None:
            with suppress(Refusal, Unknown):
                row = compiler.part(expr)
                ends = bounds_of(row, schema) if row is not None and kind_of(row, schema) == "number" else None
                return ends if ends is not None and all(map(math.isfinite, ends)) else None
            return None

        def floored(expr: n.Expr, over: n.Expr | None) -> bool:
            with suppress(Refusal, Unknown):
                row = compiler.part(expr)
                if row is not None and own_keys(handle, row) is None:
                    return taken_down(row, schema, isinstance(expr, n.Name), lambda: (
                        () if over is None else public_keys(self.eval(over, scope), over.span)))  # fmt: skip
            return False

        def of_source(column: str) -> bool:
            return any(name == column and schema.get(name) == domain for name, domain in source_columns(handle))

        def means_own(name: str) -> bool:
            return scope.variable(name) is not MISSING

        warnings = Warnings(schema, of_source, means_own, bounds, floored, self.report)
        if isinstance(node, n.Select):
            warnings.check_select(node)
        elif isinstance(node, n.Call):
            row = BUILTINS.get(node.function.id) if isinstance(node.function, n.Name) else None
            warnings.check_form(node, row is not None and row.gives in (Gives.CUBE, Gives.PARTS))

    def operand(self, node: n.Expr, scope: Scope) -> object:
        """What is not known is `none` in rows, of any kind: names and private values are looked at all the same."""
        try:
            return self.eval(node, scope)
        except Unknown as unknown:
            if not self.selecting:
                raise
            if self.cell is None:
                self.blurred = True
                return None
            groups = isinstance(unknown.value.like, forms.SomeGroups)
            like = forms.example(unknown.value) if groups else forms.operand(unknown.value)
            if like is None:
                self.places.add(id(node))
            return self.cell if like is None else like

    def call(
        self, function: object, args: Sequence[object], keywords: dict[str, object] | None = None,
        span: Span | None = None,
    ) -> object:  # fmt: skip
        try:
            return self._called(function, args, keywords, span)
        except Unknown as unknown:
            unknown.called = True
            raise

    def _called(
        self, function: Any, args: Sequence[Any], keywords: dict[str, Any] | None = None, span: Span | None = None
    ) -> object:
        arguments = [*args, *(keywords or {}).values()]
        if isinstance(function, Function):
            self.entered.add(id(function.body))
        self._need_fit(function, self.calling, args, keywords or {}, span)
        if isinstance(function, forms.Method):  # which says what it gives, whatever it is given
            by_name = {name: forms.example(value) for name, value in (keywords or {}).items()}
            return function.body(*map(forms.example, args), **by_name)
        if isinstance(function, Builtin):
            need_public(function, arguments)
            if is_structural(function.name) and any(isinstance(value, NotKnown) for value in arguments):
                return self.structure(function, args, keywords, span)
            if function.name == "advisor" and len(args) > 1 and isinstance(args[0], Untrained | ChoiceMaker):
                return Advisor(cast("ChoiceMaker", args[0]), args[1], 1, (), "", False)
        self._need_known(function, args, keywords or {})
        called = super().call
        return self._given_by(function, arguments, lambda: called(function, args, keywords, span))

    def _given_by(self, function: object, arguments: Sequence[object], called: Callable[[], object]) -> object:
        """What a call gives; of a function that may return at several places what all of these have in common."""
        body = id(function.body) if isinstance(function, Function) else 0
        if body in self.open:
            raise Unknown  # it calls itself, and may have returned
        around, self.returned, self.body = (self.returned, self.body, self.open, self.looks), None, body
        try:
            value = called()
            if self.returned is None:
                return value
            like = forms.common([*self.returned, value])
        except Unknown as unknown:
            like = form_of(function, arguments, unknown)
            if self.returned is not None:
                like = forms.common([*self.returned, NotKnown(like=like)]) if unknown.returned else None
        except Refusal:
            if self.returned is None:
                raise
            like = forms.common(self.returned)
        finally:
            self.returned, self.body, self.open, self.looks = around
        raise Unknown(adaptive_name(function), like)

    def _need_fit(
        self, function: Any, node: n.Call | None, args: Sequence[Any], keywords: Mapping[str, Any], span: Span | None
    ) -> None:
        """Refuses arguments that do not fit, also those of which only the kind is known."""
        row = row_of(function)
        if row and (wrong := arity_error(row.name, row.parameters, len(args), list(keywords))):
            raise refuse("TypeError", wrong)
        if node is None or node.span is not span:
            return
        if row is None or function.name in SLOW or any(isinstance(v, NotKnown) for v in (*args, *keywords.values())):
            places, named = map(forms.stand_in, args), {name: forms.stand_in(value) for name, value in keywords.items()}
            fault = no_argument(function, node, [*places], named, forms.kind)
            if fault is not None:
                raise Refusal(fault)

    def _need_known(self, function: object, args: Sequence[object], keywords: Mapping[str, object]) -> None:
        """Raises `Unknown` for a call that gives nothing known of these values, or would measure or learn."""
        arguments = [*args, *keywords.values()]
        if isinstance(function, ChoiceMaker):
            raise Unknown
        if isinstance(function, Builtin):
            if function.body.__module__ == no_error.__module__ and arguments:
                of = arguments[0].of if isinstance(arguments[0], NotKnown) else ""
                if of:
                    raise no_error(of)
                number, like = forms.measured(arguments[0]), forms.of_function(function)
                if not any(isinstance(value, NotKnown) for value in arguments[1:]):  # which may be refused
                    of_data = isinstance(arguments[0], Table | str)
                    example = arguments[0] if of_data else Noised(1.0, Laplace(1.0)) if number is None else number
                    own = super().call(function, [example, *args[1:]], dict(keywords))
                    formed = forms.kind_alone if forms.is_open(arguments[0]) else forms.form
                    like = like if number is None else formed(own)
                if self.kernel.last is not None or isinstance(arguments[0], NotKnown):  # type: ignore[attr-defined]
                    raise Unknown(like=like)
            if is_unknown(function.name, self.kernel):
                self._need_source(function, arguments)
                raise Unknown(like=forms.of_function(function))
        if not isinstance(function, Function) and any(isinstance(value, NotKnown) for value in arguments):
            like = self._by_examples(function, args, keywords)
            raise Unknown(like=form_of(function, arguments, Unknown()) if like is None else like)

    def _need_source(self, function: Builtin, arguments: Sequence[object]) -> None:
        """Refuses to ask for the balance of what is no source."""
        row = row_of(function)
        if row is not None and row.gives is Gives.BALANCE and NotKnown not in map(type, arguments):
            super().call(function, [*arguments], {})

    def _by_examples(self, function: object, args: Sequence[object], keywords: Mapping[str, object]) -> object:
        """What a function gives of values of these kinds, where all of them are known; refuses what it refuses of
        each of these."""
        row = BUILTINS.get(function.name) if isinstance(function, Builtin) else None
        quiet = row is not None and row.effect is Effect.PURE and row.reads in _QUIETLY
        if not quiet and not isinstance(function, Open):
            return None
        work = super().call

        def of(*values: object) -> object:
            return work(function, values[: len(args)], dict(zip(keywords, values[len(args) :], strict=True)))

        return forms.tried(of, *args, *keywords.values(), by_kind=row is None or row.reads is not Reads.DRAWS)


def _without_wish(node: n.Node) -> n.Node:
    """A select of a joint block without what only such a block takes: its weight, or the answers that are given."""
    wishes = isinstance(node, n.Select) and node.spend is not None and node.spend.amount.is_wish
    return replace(node, spend=None) if wishes else node


def _bound(node: n.Stmt) -> set[str]:
    """The names that a statement may give a value."""
    return {*bound_in([node], lambda use: (use.path[-1],)), *([node.name] if isinstance(node, n.Release) else [])}


def foreseen(
    tree: n.Program, factory: Callable[..., DryInterpreter], events: Stream, settings: Mapping[str, object], look: bool,
    names: Mapping[str, object],
) -> Foreseen:  # fmt: skip
    """What a run of a program is sure to refuse, if it comes so far, and more that is known of it.

    `factory` makes an interpreter of a session, which the walk takes for its own; `names` are those that an interactive
    session has.
    """
    interp = factory(DryInterpreter, *door(events), declared_choice)  # what a choice learns takes long
    interp.settings, planned, scope = dict(settings), {}, Scope(interp.base, Names(names))
    interp.looks = Looks((lambda *_: None) if look else None)
    interp.kernel.begin(tree.span.source)
    interp.source = tree.span.source
    with deep(), suppress(TooLong, Unknown):
        for statement in tree.body:
            planned[statement.span] = interp.looks.planned = []
            try:
                if interp.block((statement,), scope) is not None:
                    break
            except TooLong:
                interp.most = interp.steps + MOST_STEPS // 4
                interp.forget(statement, scope, NotKnown())
        for value in scope.names.values():
            if isinstance(value, Function) and value.body.span.source is tree.span.source:
                interp.define(value)
        if interp.functions:
            times = times_bound(tree.body, lambda use: ())
            scope.names = Names(scope.names | {name: NotKnown() for name in times if times[name] > 1})
            interp.uncalled()
    first = {(one.kind, one.span): one for refusal in reversed(interp.refusals) for one in refusal.diagnostics}
    wishes = {spend.amount.span for statement in tree.body if interp.wishes for spend in wishes_of(statement)}
    prices = {place: price for place, price in interp.wishes.items() if place in wishes}
    return list(reversed(first.values())), planned, interp.report.in_order(), prices
