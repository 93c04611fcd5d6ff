"""Functions of the program in row expressions: one expression, put in the place of the call.

The names of a function mean what they mean where it was written, never a column of the table at hand; its parameters
mean what the call gives. Nothing in it may measure or call further than rows can: what has no column in it is evaluated
where the query is compiled, once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from jostle.diagnostics import Refusal, refuse
from jostle.language.operations import ROW_FUNCTIONS
from jostle.plan.plan import Apply, Column, Constant, RowExpr
from jostle.run import operators
from jostle.run.scope import MISSING, Scope
from jostle.run.values import Builtin, Function
from jostle.syntax import nodes as n
from jostle.syntax.walk import every

LARGEST = 2_000  # operations that one call may stand for
QUIET = (n.Name, n.Variable, n.Number, n.String, n.Constant, n.ListOf, n.SetOf, n.Range, n.Unary, n.Binary, n.Logic,
         n.Conditional, n.Over, n.Attribute, n.Index)  # fmt: skip


class Body(Struct, frozen=True):
    """The expression of a function that is being inlined; `bound`: its parameters that read columns."""

    name: str
    value: n.Expr
    bound: Mapping[str, RowExpr]
    scope: Scope
    outer: Body | None

    def need_quiet(self, node: n.Expr) -> None:
        """Refuses what does more than calculate: it would be done as often as the query is compiled."""
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
    """The body of a call, and the scope of its names; an argument is an expression on rows or a public value."""
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
    """Whether a call is of a function of rows that is built in, and not of one that a program calls like it."""
    if not (isinstance(call.function, n.Name) and call.function.id in ROW_FUNCTIONS):
        return False
    value = scope.find(call.function.id)
    return value is MISSING or isinstance(value, Builtin)


def _expression(function: Function) -> n.Expr | None:
    """A function as one expression, where its body is `return` or a chain of `if` with one in each branch."""
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
    """How many operations an expression has, up to one more than are allowed."""
    waiting, size = [expr], 0
    while waiting and size <= LARGEST:
        here = waiting.pop()
        size += 1
        waiting.extend(here.args if isinstance(here, Apply) else ())
    return size
