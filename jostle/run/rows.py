"""From an expression of the program to an expression on rows.

Columns come before variables. A part of the expression that names no column is evaluated once, outside, and enters
as a constant; every name is resolved on the way, also in a branch that no row will take. The row language is total
and closed: user functions and anything that could loop or fail do not enter it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jostle.diagnostics import did_you_mean, refuse
from jostle.language.operations import ROW_FUNCTIONS
from jostle.plan.domains import Domain
from jostle.plan.kinds import applied
from jostle.plan.plan import Apply, Column, Constant, RowExpr
from jostle.privacy.kernel.handles import ColumnHandle, handles_in
from jostle.run.scope import MISSING, Scope
from jostle.run.values import Builtin, Interval, JSet, is_number, is_sequence, kind_name
from jostle.syntax import nodes as n

MEASURE = "measure it first, with an amount of its own, and use the number"
Evaluate = Callable[[n.Expr, Scope], Any]


class RowCompiler:
    """Compiles expressions over the columns of one table or the dimensions of one cube."""

    def __init__(
        self, schema: Mapping[str, Domain], evaluate: Evaluate, scope: Scope, given: Mapping[int, RowExpr] | None = None
    ) -> None:
        """`given` are the values of some nodes, by their ids: of aggregates over groups of rows."""
        self._schema = schema
        self._evaluate = evaluate
        self._scope = scope
        self._given = given or {}

    def expression(self, node: n.Expr) -> RowExpr:
        return self._compile(node) or self._outside(node)

    def column_position(self, node: n.Expr) -> tuple[RowExpr, str | None]:
        """Where a column is expected: a variable that holds a column's name stands for it. Also the column's name."""
        if isinstance(node, n.Name):
            if node.id in self._schema:
                return Column(node.id), node.id
            named = self._scope.find(node.id)
            if isinstance(named, ColumnHandle):
                named = named.name
            if isinstance(named, str):
                self._need(named, node)
                return Column(named), named
            if named is MISSING:
                raise self._unknown(node)
        expr = self.expression(node)
        if isinstance(expr, Constant) and expr.value in self._schema and not isinstance(node, n.String):
            named = str(expr.value)  # `data.class` where that is a text that names a column
            return Column(named), named
        return expr, None

    def _need(self, name: str, node: n.Expr) -> None:
        if name not in self._schema:
            help = did_you_mean(name, self._schema) or self._listed
            raise refuse("NameError", f"no column `{name}`", node.span, help=help)

    def _unknown(self, node: n.Name) -> Exception:
        names = [*self._schema, *self._scope.visible()]
        help = did_you_mean(node.id, names) or self._listed
        return refuse("NameError", f"no column `{node.id}`", node.span, help=help)

    @property
    def _listed(self) -> str:
        return f"the columns are {', '.join(self._schema)}"

    # Returns None for an expression without columns: it is public, and its parent decides what to do with it.
    def _compile(self, node: n.Expr) -> RowExpr | None:
        if id(node) in self._given:
            return self._given[id(node)]
        match node:
            case n.Name():
                if node.id in self._schema:
                    return Column(node.id)
                value = self._scope.find(node.id)
                if value is MISSING:
                    raise self._unknown(node)
                if node.id == "values" and isinstance(value, Builtin):
                    raise refuse(
                        "TypeError", "`values` cannot be grouped by or calculated with", node.span,
                        help="counts are summed, `sum(values)`, counted, `count(values) where values > 5`, or measured",
                    )  # fmt: skip
                return None
            case n.Unary():
                operand = self._compile(node.operand)
                if operand is None or node.op == "+":
                    return operand
                return Apply("neg" if node.op == "-" else "not", (operand,))
            case n.Binary() if node.op in ("in", "not in"):
                return self._member(node)
            case n.Binary():
                return self._apply(node.op, (node.left, node.right))
            case n.Logic():
                parts = [self._compile(o) for o in node.operands]
                if all(p is None for p in parts):
                    return None
                filled = [p or self._outside(o) for p, o in zip(parts, node.operands, strict=True)]
                result = filled[0]
                for part in filled[1:]:
                    result = Apply(node.op, (result, part))
                return result
            case n.Conditional():
                return self._apply("if", (node.test, node.then, node.other))
            case n.Call():
                return self._call(node)
            case n.Attribute() | n.Index():
                if self._compile(node.value) is not None:
                    raise refuse("TypeError", "a column has no fields or elements in a query", node.span)
                return None
            case n.Range() | n.ListOf() | n.SetOf() if any(self._compile(c) is not None for c in _children(node)):
                raise refuse("TypeError", "columns cannot stand in a list or range", node.span)
        return None

    def _apply(self, op: str, nodes: tuple[n.Expr, ...]) -> RowExpr | None:
        parts = [self._compile(o) for o in nodes]
        if all(p is None for p in parts):
            return None
        return applied(op, tuple(p or self._outside(o) for p, o in zip(parts, nodes, strict=True)), self._schema)

    def _member(self, node: n.Binary) -> RowExpr | None:
        left = self._compile(node.left)
        if left is None:
            return None
        value = self._evaluate(node.right, self._scope)
        if isinstance(value, Interval):
            inside = Apply("and", (Apply(">=", (left, Constant(value.low))), Apply("<=", (left, Constant(value.high)))))
        elif isinstance(value, JSet) or is_sequence(value):
            inside = Apply("in", (left, *(self._constant(v, node.right) for v in value)))
        else:
            raise refuse("TypeError", f"`in` takes a set, a list or a range, not {kind_name(value)}", node.right.span)
        return Apply("not", (inside,)) if node.op == "not in" else inside

    def _call(self, node: n.Call) -> RowExpr | None:
        args = [self._compile(a) for a in node.args]
        args += [self._compile(k.value) for k in node.keywords]
        if all(a is None for a in args):
            return None
        name = node.function.id if isinstance(node.function, n.Name) else ""
        value = self._scope.find(name)
        own = kind_name(value) == "a function" and not isinstance(value, Builtin)
        if name not in ROW_FUNCTIONS or own:
            names = ", ".join(ROW_FUNCTIONS)
            raise refuse(
                "TypeError", f"`{name or 'this function'}` cannot be called on rows", node.span,
                help=f"the functions of rows are {names}, and `a if c else b`",
            )  # fmt: skip
        row = ROW_FUNCTIONS[name]
        several = row.name == "coalesce" and bool(node.args)
        if (len(node.args) != row.arity and not several) or node.keywords:
            many = f"{row.arity} argument{'s' if row.arity > 1 else ''}"
            raise refuse("TypeError", f"`{name}` takes {many} here", node.span, help=f"{name}({row.signature})")
        filled = tuple(p or self._outside(o) for p, o in zip(args, node.args, strict=True))
        return applied(name, filled, self._schema)

    def _outside(self, node: n.Expr) -> RowExpr:
        return self._constant(self._evaluate(node, self._scope), node)

    def _constant(self, value: Any, node: n.Expr) -> RowExpr:
        if isinstance(value, ColumnHandle):
            self._need(value.name, node)
            return Column(value.name)
        if handles_in(value):
            message = "a private value cannot stand in a condition or a key"
            raise refuse("PrivateValue", message, node.span, help=MEASURE)
        if value is None or isinstance(value, (bool, str)):
            return Constant(value)
        if is_number(value):
            return Constant(float(value))
        raise refuse("TypeError", f"{kind_name(value)} cannot stand in an expression on rows", node.span)


def _children(node: n.Expr) -> tuple[n.Expr, ...]:
    if isinstance(node, n.Range):
        return (node.low, node.high)
    return node.items if isinstance(node, (n.ListOf, n.SetOf)) else ()
