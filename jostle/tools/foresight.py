"""What a run is sure to refuse: the program is walked as a run walks it, as far as nothing depends on an answer.

A run refuses from public facts, before it charges: names, kinds, columns, keys, bounds, amounts of noise. So what it
would refuse of a measurement is known by asking for it and turning back at the door. What that would have answered is
`Unknown`, and so is what depends on it, but for its form (`likes`): how long it is and which fields it has. Such a
statement is left, and the names that it gives a value are not known any more. Everything else is the run's own, so that
no rule of it is written twice. Nothing is opened: of a private source the description is known, of public files
nothing; nor is what choices and slow kernels give, and what was spent only as long as nothing was left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from jostle.check.scopes import blocks, bound_in, returns_inside, times_bound
from jostle.choice.advisors import Advisor
from jostle.choice.maker import ChoiceMaker
from jostle.diagnostics import Diagnostic, Refusal, refuse
from jostle.language.builtins import BUILTINS, SLOW
from jostle.language.facts import Effect, Gives
from jostle.language.forms import source_kind
from jostle.language.row_mistakes import arity_error
from jostle.plan.plan import Open
from jostle.privacy.kernel.kernel import Kernel, check_unit
from jostle.privacy.reading.assembly import assembled
from jostle.privacy.reading.minting import public_table
from jostle.privacy.reading.public_data import PublicData
from jostle.run.clauses import schema_of
from jostle.run.expressions import linked
from jostle.run.externals import KERNELS
from jostle.run.faults import LIBRARY
from jostle.run.interpreter import Interpreter
from jostle.run.looks import Looks, Planned
from jostle.run.margins import no_error
from jostle.run.scope import MISSING, Scope
from jostle.run.values import Builtin, Function, Interval, Part, Record, is_model, is_vector
from jostle.source import Span
from jostle.syntax import nodes as n
from jostle.tools import likes
from jostle.tools.faults import deep
from jostle.tools.likes import Left, Names, Nothing, NotKnown, TooLong, Unknown

if TYPE_CHECKING:
    from jostle.accounting.amounts import Amount
    from jostle.events import Stream
    from jostle.privacy.kernel.exposures import Exposures
    from jostle.privacy.kernel.measurement import Measurement
    from jostle.run.evaluator import Returned

Foreseen = tuple[list[Diagnostic], dict[Span, list[Planned]]]
MOST_STEPS = 30_000
"""The expressions that are looked at. After a statement of more, the next ones have a fourth of it again."""

ELSEWHERE = frozenset({"DataError", "LedgerError", "ImportError", "BudgetExceeded", "RecursionLimit"})
"""Kinds of refusals that rest on files or on what was spent, of which a run knows more."""

EVERYWHERE = frozenset({"NameError", "TypeError", "OpenKeys", "UnboundedSum", "PrivateValue"})
"""Kinds of refusals that are told of what a run may never come by."""

STRUCTURAL, MATRICES = (Gives.LENGTH, Gives.NUMBERED, Gives.REVERSED, Gives.ZIPPED), ("eigen", "svd", "transpose")
"""What functions give, and kernels, that fail on no number, only on what has another form."""
GIVERS = (n.Name, n.Variable, n.Query, n.Call, n.Spending)
"""Expressions that are what a part of them is, or what is called; of others the form is not that of a part."""
ARITHMETIC = frozenset({"+", "-", "*", "/", "%"})


class Door(Kernel):
    """A kernel that nothing passes: what is measured is refused as ever, or not known."""

    skipped = 0  # how often something was left out, which may have spent
    last: object = None  # the measurement that was asked for last

    def measure(self, measurement: Measurement[Any, Any], span: Span | None = None) -> Any:
        exposures = measurement.exposures
        if exposures and measurement.paid_by() is None:
            for exposure in exposures:
                check_unit(measurement.price.amount, exposure.source, span)
            self._need_fit_for_run(exposures, measurement.price, measurement.remembers, span)
        if measurement.each is not None:
            with suppress(Unknown), self._unseen(exposures, measurement.each):
                measurement.run(0)  # type: ignore[attr-defined]
        if measurement.title == "above_threshold":
            self.skipped += 1
            return Nothing()  # a watch is one whatever the data are
        self.last = measurement
        raise Unknown

    def left_of_allotment(self, exposures: Exposures, what: str = "epsilon") -> float:
        left = super().left_of_allotment(exposures, what)
        return Left(left) if self.skipped else left

    def left_of(self, exposure: Any) -> tuple[int, int]:
        if self.skipped:
            raise Unknown
        return super().left_of(exposure)

    def _test_opening(self, amount: Amount, span: Span | None, opened_for: Exposures) -> None:
        for exposure in opened_for:
            check_unit(amount, exposure.source)


class Foresight(Interpreter):
    """Walks a program up to the door of its kernel, statement by statement."""

    names = Names

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.steps, self.made_up_rows, self.most = 0, 0, MOST_STEPS
        self.refusals: list[Refusal] = []
        self.entered: set[int] = set()  # the bodies of functions that were called
        self.functions: dict[int, Function] = {}  # what the program itself defines, by body
        self.selecting = self.blurred = False  # in a select; whether its rows are read with what is not known
        self.unsure = False  # in what a run may leave out: a branch, a loop, a function that nothing calls
        self.parts: dict[int, Any] = {}  # of an expression that is looked at, the values of its parts, by node
        self.forms: dict[type, Callable[[Any, Scope], Any]] = {
            n.Index: self._index, n.Attribute: self._attribute, n.Binary: self._binary, n.RecordOf: self._record,
            n.ListOf: self._list, n.Comprehension: self._comprehension, n.Select: self._select, n.Call: self._call,
            n.Spending: self._spending,
        }  # fmt: skip

    def statement(self, node: n.Stmt, scope: Scope) -> Returned | None:
        skipped = self.kernel.skipped  # type: ignore[attr-defined]
        try:
            if isinstance(node, n.Run) and skipped:
                raise Unknown  # what is left, and so whether there is a round, is not known any more
            ended = super().statement(node, scope)
            if isinstance(node, n.Run) and self.kernel.skipped > skipped:  # type: ignore[attr-defined]
                self.forget(node, scope, NotKnown())  # there may be more rounds than these
            scope.names = Names(scope.names) if isinstance(node, n.Use) else scope.names
            return ended
        except Unknown as unknown:
            if isinstance(node, n.Return):
                unknown.returned = True
                raise
            self._look_inside(node, scope)
            if self.joint is not None or returns_inside(node):
                raise unknown if unknown.returned else Unknown() from None  # nothing is known of what it gives
            like = unknown.value.like if isinstance(node, n.Assign | n.Release) else None
            self.forget(node, scope, NotKnown(unknown.value.of if likes.is_of_call(node) else "", like))
            return None
        except Refusal as refusal:
            elsewhere = refusal.first.kind in ELSEWHERE
            if self.depth or self.joint is not None:
                raise (Unknown() if elsewhere else refusal) from None
            if not elsewhere and not (self.unsure and refusal.first.kind not in EVERYWHERE):
                self.refusals.append(refusal.at(node.span))
            self.forget(node, scope, NotKnown())
            return None

    def _look_inside(self, node: n.Stmt, scope: Scope) -> None:
        """Walks what a branch or a loop does, of which it is not known whether a run comes by."""
        if self.depth or self.joint is not None or not isinstance(node, n.If | n.For):
            return
        names, scope.names = scope.names, Names(scope.names)
        was, self.unsure = self.unsure, True
        try:
            for name in node.names if isinstance(node, n.For) else ():
                scope.set(name, NotKnown())
            for block in blocks(node):
                scope.names = Names(scope.names)
                self.block(block.body, scope)
        except Unknown:
            pass  # it returns
        finally:
            scope.names, self.unsure = names, was

    def uncalled(self) -> None:
        """Walks the functions, and parts of choices, that nothing called, of whose arguments nothing is known."""
        self.unsure = True
        while self.functions:
            _, function = self.functions.popitem()
            if id(function.body) not in self.entered:
                inner = Scope(function.scope, Names({name: NotKnown() for name, _ in function.params}))
                body = function.body
                with suppress(Unknown):
                    self.block(body.body if isinstance(body, n.Block) else (n.Return(body, span=body.span),), inner)

    def forget(self, node: n.Stmt, scope: Scope, value: NotKnown) -> None:
        """The names that a statement would have given a value."""
        self.kernel.skipped += 1  # type: ignore[attr-defined]
        scope.names = scope.names if isinstance(scope.names, Names) else Names(scope.names)
        for name in _bound(node):
            scope.set(name, value)

    def eval(self, node: n.Expr, scope: Scope) -> Any:
        if id(node) in self.parts:
            return self._value(self.parts[id(node)])
        self.steps += 1
        if self.steps > self.most:
            raise TooLong
        if isinstance(node, n.Described):
            return self._described(node, scope)
        if isinstance(node, n.Call) and self._opens(node, scope):
            for arg in node.args:
                self._part(arg, scope)
            raise Unknown
        looked_at = self.forms.get(type(node))
        try:
            value = super().eval(node, scope) if looked_at is None else looked_at(node, scope)
        except Unknown as unknown:
            of_part = looked_at is None and not isinstance(node, GIVERS)
            if of_part or (isinstance(node, n.Call | n.Spending) and not unknown.called):
                unknown.value = NotKnown(unknown.value.of)
            unknown.called = False
            raise
        if isinstance(value, Left):
            raise Unknown
        if isinstance(node, n.Lambda | n.Part):
            self.define(value)
        return value

    def define(self, function: Function | Part) -> None:
        run = function.run if isinstance(function, Part) else function
        if not self.depth and isinstance(run, Function):
            self.functions[id(run.body)] = run

    def argument(self, node: n.Expr, scope: Scope) -> Any:
        """What is not known may be passed to a function of a program, which may refuse the other arguments."""
        try:
            return super().argument(node, scope)
        except Unknown as unknown:
            of = unknown.value.of if isinstance(node, n.Name | n.Call | n.Spending) else ""
            return NotKnown(of, unknown.value.like)

    def operand(self, node: n.Expr, scope: Scope) -> object:
        """What is not known is `none` in rows, of any kind: names and private values are looked at all the same."""
        try:
            return self.eval(node, scope)
        except Unknown:
            if not self.selecting:
                raise
            self.blurred = True
            return None

    def call(
        self, function: object, args: Sequence[Any], keywords: dict[str, Any] | None = None, span: Span | None = None
    ) -> Any:
        try:
            return self._called(function, args, keywords, span)
        except Unknown as unknown:
            unknown.called = True
            raise

    def _called(
        self, function: Any, args: Sequence[Any], keywords: dict[str, Any] | None = None, span: Span | None = None
    ) -> Any:
        arguments = [*args, *(keywords or {}).values()]
        if isinstance(function, Function):
            self.entered.add(id(function.body))
        if isinstance(function, Builtin):
            row = BUILTINS.get(function.name)
            if row and (wrong := arity_error(row.name, row.parameters, len(args), list(keywords or {}))):
                raise refuse("TypeError", wrong)
            if _is_structural(function.name) and any(isinstance(value, NotKnown) for value in arguments):
                return self._structure(function, args, keywords, span)
            if function.name == "advisor" and len(args) > 1:
                return Advisor(args[0], args[1], 1, (), "", False)
        self._need_known(function, arguments)
        try:
            return super().call(function, args, keywords, span)
        except Unknown as unknown:
            like = None
            if isinstance(function, Function) and (unknown.returned or not isinstance(function.body, n.Block)):
                like = unknown.value.like
            elif isinstance(function, Builtin):
                like = likes.of_measurement(function.name, arguments)
            raise Unknown(function.name if _is_adaptive(function) else "", like) from None

    def _need_known(self, function: object, arguments: Sequence[object]) -> None:
        """Raises `Unknown` for a call that gives nothing known of these values, or would measure or learn."""
        if isinstance(function, ChoiceMaker):
            raise Unknown
        if isinstance(function, Builtin):
            if function.body.__module__ == no_error.__module__ and arguments and isinstance(arguments[0], NotKnown):
                raise no_error(arguments[0].of) if arguments[0].of else Unknown
            if _is_unknown(function.name, self.kernel):
                raise Unknown(like=likes.of_function(function.name, None))
        if not isinstance(function, Function) and any(isinstance(value, NotKnown) for value in arguments):
            single = arguments[0].like if len(arguments) == 1 and isinstance(arguments[0], NotKnown) else None
            raise Unknown(like=likes.of_function(function.name, single) if isinstance(function, Builtin) else None)

    # Forms -----------------------------------------------------------------------------------------

    def _value(self, value: object) -> Any:
        if isinstance(value, NotKnown):
            raise Unknown(value.of, value.like)
        return value

    def _part(self, node: n.Expr, scope: Scope) -> Any:
        """The value of a part of an expression, or that it is not known."""
        try:
            return self.eval(node, scope)
        except Unknown as unknown:
            return unknown.value

    def _evaluated(self, node: n.Expr, scope: Scope, *parts: tuple[n.Expr, Any]) -> object:
        """What a run makes of an expression whose parts have these values."""
        self.parts |= {id(part): value for part, value in parts}
        try:
            return super().eval(node, scope)
        except Unknown:
            raise Unknown from None  # what is like a part of it is not like the whole
        finally:
            for part, _ in parts:
                del self.parts[id(part)]

    def _index(self, node: n.Index, scope: Scope) -> Any:
        value = self._part(node.value, scope)
        if not isinstance(value, NotKnown):
            return self._evaluated(node, scope, (node.value, value))
        if value.like is None or value.like is likes.ONE or len(node.args) != 1:
            raise Unknown
        at = self._part(node.args[0], scope)
        if isinstance(at, NotKnown) or isinstance(value.like, likes.SomeGroups):
            raise Unknown
        raise Unknown(like=likes.form(self._evaluated(node, scope, (node.value, value.like), (node.args[0], at))))

    def _attribute(self, node: n.Attribute, scope: Scope) -> Any:
        value = self._part(node.value, scope)
        if not isinstance(value, NotKnown):
            return self._evaluated(node, scope, (node.value, value))
        if value.like is None or value.like is likes.ONE:
            raise Unknown
        field = self._evaluated(node, scope, (node.value, value.like))
        names_alone = is_model(value.like) or isinstance(value.like, likes.SomeGroups)
        raise Unknown(like=None if names_alone else likes.form(field))

    def _binary(self, node: n.Binary, scope: Scope) -> Any:
        left, right = self._part(node.left, scope), self._part(node.right, scope)
        if not isinstance(left, NotKnown) and not isinstance(right, NotKnown):
            return self._operated(node, left, right, scope)
        one, two = (side.like if isinstance(side, NotKnown) else side for side in (left, right))
        if node.op == "+" and type(one) is list and type(two) is list:
            raise Unknown(like=likes.form(one + two))
        same = isinstance(node.left, n.Name | n.Attribute) and node.left.span.text == node.right.span.text
        if node.op == "-" and same and (one is likes.ONE or isinstance(one, float) or is_vector(one)):
            return 0.0 if one is likes.ONE else one - two  # itself less itself is 0; what is no number is refused
        if node.op not in ARITHMETIC or not (likes.is_of_numbers(one) and likes.is_of_numbers(two)):
            raise Unknown
        raise Unknown(like=likes.form(self._operated(node, one, two, scope)))

    def _operated(self, node: n.Binary, left: object, right: object, scope: Scope) -> Any:
        """What a run makes of two values."""
        self.parts[id(node.right)] = right
        try:
            return linked(self, node, left, scope)
        finally:
            del self.parts[id(node.right)]

    def _record(self, node: n.RecordOf, scope: Scope) -> Any:
        parts = [(name, item, self._part(item, scope)) for name, item in node.items]
        if not any(isinstance(value, NotKnown) for _, _, value in parts):
            return self._evaluated(node, scope, *((item, value) for _, item, value in parts))
        raise Unknown(like=Record([(name, likes.inside(value)) for name, _, value in parts]))

    def _list(self, node: n.ListOf, scope: Scope) -> Any:
        parts = [(item, self._part(item, scope)) for item in node.items]
        if not any(isinstance(value, NotKnown) for _, value in parts):
            return self._evaluated(node, scope, *parts)
        raise Unknown(like=[likes.inside(value) for _, value in parts])

    def _comprehension(self, node: n.Comprehension, scope: Scope) -> Any:
        source = self._part(node.source, scope)
        items = source.like if isinstance(source, NotKnown) else source
        many = len(items) if is_vector(items) or isinstance(items, list) else None
        if isinstance(items, Interval) and not items.real and items.count <= likes.MOST:
            many = int(items.count)
        try:
            return self._evaluated(node, scope, (node.source, source))
        except Unknown:
            is_known = many is not None and node.condition is None and not node.flat and node.kind != "set"
            raise Unknown(like=[likes.ANY] * many if is_known and many is not None else None) from None

    def _call(self, node: n.Call, scope: Scope) -> Any:
        selecting, self.selecting = self.selecting, False
        try:
            return super().eval(node, scope)
        finally:
            self.selecting = selecting

    def _spending(self, node: n.Spending, scope: Scope) -> Any:
        try:
            return super().eval(node, scope)
        except Refusal as refusal:
            parts = [self._part(arg, scope) for arg in node.value.args] if isinstance(node.value, n.Call) else []
            if refusal.first.kind == "NoEpsilon" and any(isinstance(part, NotKnown) for part in parts):
                raise Unknown from None  # of public data, nothing has to pay
            raise

    def _select(self, node: n.Select, scope: Scope) -> Any:
        around = self.blurred, self.selecting
        self.kernel.last, self.blurred, self.selecting = None, False, True  # type: ignore[attr-defined]
        try:
            value = super().eval(node, scope)
            if self.blurred:
                raise Unknown
            return value
        except Refusal as refusal:
            if self.blurred and refusal.first.kind not in ("NameError", "PrivateValue"):
                raise Unknown from None
            raise
        except Unknown:
            like = None if self.joint is not None else likes.of_select(node, self.kernel.last)  # type: ignore[attr-defined]
            raise Unknown(like=like) from None
        finally:
            self.blurred, self.selecting = around

    def _structure(self, function: Builtin, args: Sequence[Any], keywords: Any, span: Span | None) -> Any:
        """What a function that looks at no numbers gives: `len` is known, where the length is."""
        values = [value.like if isinstance(value, NotKnown) else value for value in args]
        if function.name in KERNELS and not all(map(is_vector, values)):
            raise Unknown
        formless = any(value is None or value is likes.ONE or isinstance(value, likes.SomeGroups) for value in values)
        if formless or any(isinstance(v, NotKnown) for v in (keywords or {}).values()):
            raise Unknown
        result = super().call(function, values, keywords, span)
        if function.name == "len":
            return result
        raise Unknown(like=likes.form(result))

    def _described(self, node: n.Described, scope: Scope) -> Any:
        """A public table, of which the description is known, and no row."""
        if source_kind(node.source) not in ("table", "bound"):
            raise Unknown
        domains = self.eval(node.domains, scope)
        if isinstance(domains, dict):  # by the header of a file: what its columns hold is not known
            domains = Record((name, Open("text") if domain is None else domain) for name, domain in domains.items())
        schema = schema_of(domains, node.domains.span)
        return public_table(self.data, f"\u00b7{id(node)}", schema, object(), node.span)

    def _opens(self, node: n.Call, scope: Scope) -> bool:
        """Whether a call opens data; counts that are written in the program are none."""
        row = BUILTINS.get(node.function.id) if isinstance(node.function, n.Name) else None
        if row is None or row.effect is not Effect.DECLARES or scope.variable(row.name) is not MISSING:
            return False
        return row.name != "counts" or len(node.args) != 1 or isinstance(self.eval(node.args[0], scope), str)


def _is_adaptive(function: Any) -> bool:
    """Whether a function is an option of the library whose answers have no known error."""
    is_named_so = isinstance(function, Function) and function.name in likes.ADAPTIVE
    return is_named_so and function.body.span.source.name.startswith(LIBRARY)


def _is_unknown(name: str, kernel: Any) -> bool:
    """Whether what a function gives is not known, whatever it is given."""
    if name in KERNELS:
        return KERNELS[name] not in likes.QUICK
    row = BUILTINS.get(name)
    spends = row is not None and row.gives is Gives.BALANCE and bool(kernel.skipped)
    return name in SLOW or spends or (row is not None and row.gives in (Gives.CHOICE, Gives.ADVISOR))


def _is_structural(name: str) -> bool:
    row = BUILTINS.get(name)
    return name in MATRICES or (row is not None and row.gives in STRUCTURAL)


def _bound(node: n.Stmt) -> set[str]:
    """The names that a statement may give a value."""
    return {*bound_in([node], lambda use: (use.path[-1],)), *([node.name] if isinstance(node, n.Release) else [])}


def door(events: Stream) -> tuple[Door, PublicData]:
    """A kernel and public data over an engine of which nothing is known."""
    return assembled(cast("Any", Nothing()), events, Door)


def foreseen(
    tree: n.Program, factory: Callable[..., Foresight], events: Stream, settings: Mapping[str, object], look: bool
) -> Foreseen:
    """What a run of a program is sure to refuse, if it comes so far, and the looks that its statements pay for.

    `factory` makes an interpreter of a session, which the walk takes for its own.
    """
    interp = factory(Foresight, *door(events), lambda *_: Nothing())  # what a choice learns takes long
    interp.settings, planned, scope = dict(settings), {}, Scope(interp.base, Names())
    interp.looks = Looks((lambda *_: None) if look else None)
    interp.kernel.begin(tree.span.source)
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
        changed = [name for name, times in times_bound(tree.body, lambda use: ()).items() if times > 1]
        scope.names = Names(scope.names | dict.fromkeys(changed, NotKnown()))
        interp.uncalled()
    first = {(one.kind, one.span): one for refusal in reversed(interp.refusals) for one in refusal.diagnostics}
    return list(reversed(first.values())), planned
