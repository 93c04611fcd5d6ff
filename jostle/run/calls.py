"""Calls of functions, built-ins, parts of a choice, and ChoiceMakers, with and without an allotment.

*On rows* a function of the program is an expression that replaces the call. Its names refer to the scope in which it
was defined, never to columns of the table; its parameters are the arguments. It may not measure, or call what rows
cannot. Parts without a column are evaluated once, when the query is compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from msgspec import Struct

from jostle.diagnostics import Diagnostic, Note, Refusal, refuse
from jostle.formulas import UNKNOWN, cut_text
from jostle.kernels.statistics import Report
from jostle.language.builtins import BUILTINS
from jostle.language.facts import Effect
from jostle.language.row_functions import ROW_FUNCTIONS
from jostle.language.row_mistakes import no_call, no_fit, usage
from jostle.plan.plan import Apply, Column, Constant, Open, RowExpr
from jostle.privacy.kernel.exposures import Handle
from jostle.records import replace
from jostle.run import arguments, operators
from jostle.run.evaluator import Evaluator
from jostle.run.faults import LIBRARY, PrivateValue, exposures_of, in_the_users_program, private_value, trail
from jostle.run.fitting import no_argument, row_of
from jostle.run.operators import apply
from jostle.run.scope import MISSING, Scope
from jostle.run.values import Builtin, Function, Part, RowForm, handles_in, kind_name
from jostle.source import Span
from jostle.syntax import nodes as n
from jostle.syntax.walk import every

MOST_CALLS = 1000
ROOM = 5000  # frames that a call must leave, since running out of them in a measurement would come after the charge

_REASONS = {"print": "cannot be printed", "plot": "cannot be drawn"}


def need_public(function: Builtin, arguments: Sequence[object]) -> None:
    """Refuses private arguments, also inside lists and records, for a function that takes none."""
    if not function.sees_handles:
        for handle in handles_in(list(arguments)):
            raise private_value(handle, _REASONS.get(function.name, f"cannot be passed to `{function.name}`"))


def call(
    interp: Evaluator,
    function: object,
    args: Sequence[object],
    keywords: dict[str, object] | None = None,
    span: Span | None = None,
) -> Any:
    keywords = keywords or {}
    if interp.joint is not None:
        _check_call(function, args)
    if isinstance(function, Function):
        return _call_function(interp, function, args, keywords)
    if isinstance(function, Builtin):
        need_public(function, [*args, *keywords.values()])
        extra = {"at": (interp, span)} if function.wants_call else {}
        return operators.guarded(
            function.name, function.body, args, {**keywords, **extra}, quote=not function.sees_handles
        )
    if isinstance(function, Part):
        if function.kind == "Utility" and handles_in(list(args)):
            raise private_value(
                handles_in(list(args))[0],
                f"cannot be given to the Utility `{getattr(function, 'name', '') or 'u'}`",
                "a Utility is evaluated on public data only",
            )
        if function.kind == "Option" and interp.kernel.allotment is None and not handles_in(list(args)):
            with interp.kernel.allot(None, span):  # on public data: exact and free
                return interp.call(function.run, args, keywords, span)
        return interp.call(function.run, args, keywords, span)
    if isinstance(function, Open) and function.kind in ROW_FUNCTIONS and not handles_in(list(args)):
        return apply(function.kind, args)  # `date("2024-03-01")`: a domain also converts values
    called = getattr(function, "jostle_call", None)
    if called is not None:
        return called(interp, args, keywords, span)
    raise Refusal(no_call(kind_name(function)))


def _call_function(
    interp: Evaluator, function: Function, args: Sequence[object], keywords: dict[str, object]
) -> object:
    local = operators.bound(function.name, function.params, args, keywords)
    if interp.depth >= MOST_CALLS:
        raise refuse(
            "RecursionLimit",
            f"more than {MOST_CALLS:,} calls are open, the last of `{function.name}`",
            help="a function that calls itself returns without a call in some case: `if n == 0: return 0`",
        )
    if _is_deep():
        raise RecursionError
    library = function.body.span.source.name.startswith(LIBRARY)
    if library and interp.kernel.allotment is None and _on_public_data([*args, *keywords.values()]):
        with interp.kernel.allot(None, None):  # without an allotment public data have no noise, and shares no limit
            return _call_function(interp, function, args, keywords)
    interp.depth += 1
    scope, measured = Scope(function.scope, interp.names(local)), len(interp.looks.cuts)
    try:
        if not isinstance(function.body, n.Block):
            return interp.eval(function.body, scope)
        ended = interp.block(function.body.body, scope)
        value = ended.value if ended is not None else None
        cut = tuple(dict.fromkeys(interp.looks.cuts[measured:]))
        if cut and library and isinstance(value, Report) and not value.mark:
            return value.without_errors(UNKNOWN, cut_text(cut))
        return value
    except (Refusal, KeyboardInterrupt):
        if not interp.quiet and not library:
            interp.left.append((function, scope))
        raise
    finally:
        interp.depth -= 1


def _is_deep() -> bool:
    try:
        sys._getframe(max(ROOM, sys.getrecursionlimit() - ROOM))
    except ValueError:
        return False
    return True


def _on_public_data(values: list[object]) -> bool:
    """Whether some of the values are data, and none is private."""
    return any(isinstance(value, Handle) for value in values) and not handles_in(values)


def _call(interp: Evaluator, node: n.Call, scope: Scope) -> object:
    if id(node) in interp.aggregates:
        return interp.aggregates[id(node)]
    function, args, keywords = _prepare_call(interp, node, scope)
    return _finish_call(interp, node, function, args, keywords, scope)


def _prepare_call(interp: Evaluator, node: n.Call, scope: Scope) -> tuple[object, list[object], dict[str, object]]:
    function = interp.eval(node.function, scope)
    if isinstance(function, RowForm):
        return function, [], {}
    args = [interp.argument(a, scope) for a in node.args]
    keywords: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.name in keywords:
            raise refuse("TypeError", f"`{keyword.name}` is given twice", keyword.span)
        keywords[keyword.name] = interp.argument(keyword.value, scope)
    return function, args, keywords


def _finish_call(
    interp: Evaluator, node: n.Call, function: object, args: list[object], keywords: dict[str, object], scope: Scope
) -> object:
    if isinstance(function, RowForm):
        return operators.guarded(function.name, lambda: function.body(interp, node, scope), (), {}, quote=False)
    try:
        return interp.call(function, args, keywords, node.span)
    except Refusal as refusal:
        raise _of_call(refusal, function, node, args, keywords) from None


def _of_call(
    refusal: Refusal, function: object, node: n.Call, args: Sequence[object], keywords: Mapping[str, object]
) -> Refusal:
    """The reported refusal of a call: that of its arguments, if they do not fit."""
    fault = _no_fit(function, node) or no_argument(function, node, args, keywords)
    if fault is not None:
        return Refusal(fault)
    call = f"`{function.name}(…" if isinstance(function, Builtin) and node.args else "no call"
    if call in refusal.first.help:
        help = refusal.first.help.replace(call, f"{call[:-1]}{node.args[0].span.text}")
        refusal = Refusal(replace(refusal.first, help=help))
    pairs = list(zip((*node.args, *node.keywords), (*args, *keywords.values()), strict=False))
    if isinstance(refusal, PrivateValue):
        for arg, value in pairs:
            if any(handle is refusal.handle for handle in handles_in(value)):
                return refusal.of((arg.value if isinstance(arg, n.Keyword) else arg).span, value)
    refusal = in_the_users_program(refusal, node.span, function)
    first, params = refusal.first, function.params if isinstance(function, Function) else ()
    if first.kind == "PrivateValue" and first.span is not None and not first.span.source.name.startswith(LIBRARY):
        for (name, _), (arg, value) in zip(params, pairs, strict=False):
            for handle in handles_in(value)[:1]:
                note = Note(node.span, f"passed on as `{name}` of `{node.function.span.text}`")
                before = trail(arg.span.text, node.span, handle.exposures[0].source)
                return Refusal(replace(first, notes=(*before, note, *first.notes[1:])), *refusal.diagnostics[1:])
    return refusal


def _no_fit(function: object, node: n.Call) -> Diagnostic | None:
    """The reason why the arguments of a call do not fit its function, or None."""
    if isinstance(function, Part):
        return _no_fit(function.run, node)
    if isinstance(function, Function):
        params = operators.parameters(function.params)
        return no_fit(function.name, params, node, usage(function.name, params))
    row = row_of(function)
    return no_fit(row.name, row.parameters, node, row.usage) if row is not None else None


def _spending(interp: Evaluator, node: n.Spending, scope: Scope) -> object:
    """`f(x) with epsilon e`: callee, arguments and amount are evaluated before the allotment opens."""
    call = node.call
    if call is None:
        amount = arguments.amount_of(interp, node.spend.amount, scope, ())
        with interp.allotted(amount, node.spend.span, ()):
            return interp.eval(node.value, scope)
    function, args, keywords = _prepare_call(interp, call, scope)
    values = [*args, *keywords.values()]
    exposures, free = exposures_of(values), interp.kernel.allotment is None and _on_public_data(values)
    with interp.kernel.allot(None, None) if free and node.spend.amount.unit == "share" else nullcontext():
        amount = arguments.amount_of(interp, node.spend.amount, scope, exposures)
    if node.spend.via is not None:
        keywords["via"] = arguments.mechanism_of(interp, node.spend)
    with interp.allotted(amount, node.spend.span, exposures):
        try:
            return _finish_call(interp, call, function, args, keywords, scope)
        except Refusal as refusal:
            raise refusal.at(call.span) from None


CALLS: dict[type, Callable[..., object]] = {n.Call: _call, n.Spending: _spending}


def _check_call(function: object, args: Sequence[object]) -> None:
    """Refuses calls that measure in a `jointly` block, whose answers are those of its selects."""
    row = BUILTINS.get(getattr(function, "name", ""))
    measures = row is not None and (row.effect is Effect.MEASURES or row.name == "above")  # `above` is prepaid
    if measures or (hasattr(function, "jostle_call") and handles_in(list(args))):
        name = getattr(function, "name", "") or "this"
        raise refuse(
            "TypeError", f"`{name}` measures by itself, and cannot be answered together with others",
            help="put it before or after the `jointly` block, with an amount of its own",
        )  # fmt: skip


# Calls on rows -------------------------------------------------------------------------------------


LARGEST = 2_000  # the largest number of operations of an inlined call
QUIET = (n.Name, n.Variable, n.Number, n.String, n.Constant, n.ListOf, n.SetOf, n.Range, n.Unary, n.Binary, n.Logic,
         n.Conditional, n.Over, n.Attribute, n.Index)  # fmt: skip


class Body(Struct, frozen=True):
    """The expression of a function that is being inlined. `bound` are its parameters that read columns."""

    name: str
    value: n.Expr
    bound: Mapping[str, RowExpr]
    scope: Scope
    outer: Body | None

    def need_quiet(self, node: n.Expr) -> None:
        """Refuses expressions with effects, which would occur whenever the query is compiled."""
        for part in every(node):
            if isinstance(part, n.Call) and calculates(part, self.scope):
                continue
            if isinstance(part, n.Name) and part.id in self.bound:
                raise refuse("TypeError", "columns cannot stand in a list or range", part.span)
            if isinstance(part, n.Expression) and not isinstance(part, QUIET):
                raise refuse(
                    "TypeError", f"`{self.name}` does more than calculate, and cannot be called on rows", part.span,
                    help="work this out before the query, and pass it on as an argument",
                )  # fmt: skip


def inlined(
    function: Function, args: Sequence[object], keywords: dict[str, object], node: n.Call, outer: Body | None
) -> tuple[Body, Scope]:
    """The body of an inlined call, and the scope of its names. Arguments are row expressions or public values."""
    value = _expression(function)
    if value is None:
        raise refuse(
            "TypeError", f"`{function.name}` is more than one expression, and cannot be called on rows", node.span,
            help=f"write `def {function.name}(…) = …`, with `a if c else b` for a branch",
        )  # fmt: skip
    around = outer
    while around is not None:
        if around.value is value:
            raise refuse("TypeError", f"`{function.name}` calls itself, and rows have no recursion", node.span)
        around = around.outer
    try:
        arguments = operators.bound(function.name, function.params, args, keywords)
    except Refusal as refusal:
        raise refusal.at(node.span) from None
    bound = {name: value for name, value in arguments.items() if isinstance(value, Apply | Column | Constant)}
    uses = sum(isinstance(part, n.Name) and part.id in bound for part in every(value))
    if uses * max((_size(expr) for expr in bound.values()), default=0) > LARGEST:
        message = f"`{function.name}` makes an expression of more than {LARGEST:,} operations here"
        raise refuse("RecursionLimit", message, node.span, help="`derive` columns in several steps")
    public = {name: value for name, value in arguments.items() if name not in bound}
    scope = Scope(function.scope, public)
    return Body(function.name, value, bound, scope, outer), scope


def calculates(call: n.Call, scope: Scope) -> bool:
    """Whether a call is of a built-in row function, and not of a program's function with its name."""
    if not (isinstance(call.function, n.Name) and call.function.id in ROW_FUNCTIONS):
        return False
    value = scope.find(call.function.id)
    return value is MISSING or isinstance(value, Builtin)


def _expression(function: Function) -> n.Expr | None:
    """A function as one expression, if its body is `return` or a chain of `if` with one in each branch; else None."""
    return _returned(function.body.body) if isinstance(function.body, n.Block) else function.body


def _returned(body: Sequence[n.Stmt]) -> n.Expr | None:
    match body:
        case [n.Return(value=value)]:
            return value
        case [n.If(test=test, then=then, other=other), *rest]:
            first = _returned(then.body)
            second = _returned(other.body if other is not None and not rest else rest if other is None else ())
            if first is not None and second is not None:
                return n.Conditional(test, first, second, span=body[0].span)
    return None


def _size(expr: RowExpr) -> int:
    """The number of operations of an expression, at most one more than allowed."""
    waiting, size = [expr], 0
    while waiting and size <= LARGEST:
        here = waiting.pop()
        size += 1
        waiting.extend(here.args if isinstance(here, Apply) else ())
    return size
