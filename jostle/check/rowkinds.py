"""Kinds of row expressions before the run, as far as a description tells them: a text that is added to a number.

The expression is made as a run makes it, and judged by the same rules. What names anything but columns that are
described in the text is not looked at.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from jostle.check.abstract.values import MISSING, Domain, Range, Set
from jostle.check.meanings import Variable
from jostle.check.report import Report
from jostle.diagnostics import Refusal
from jostle.language.aggregates import AGGREGATES, Kinds, of_no_numbers
from jostle.language.forms import aggregates
from jostle.language.moments import kind_of_moment, number_of
from jostle.language.operations import COMPARISONS, ROW_FUNCTIONS
from jostle.plan.bounds import bounds_of
from jostle.plan.domains import Categories, Integer, Moments, Open, Real
from jostle.plan.domains import Domain as PlanDomain
from jostle.plan.keys import key_values
from jostle.plan.kinds import applied, kind_of
from jostle.plan.plan import Apply, Column, Constant, RowExpr
from jostle.records import replace
from jostle.syntax import nodes as n
from jostle.syntax.walk import children

_ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "^"})
_MOMENTS = ("date", "time")
_PLACED = ("number", *_MOMENTS)
OPEN_KINDS = ("text", *_MOMENTS)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?)?")
_APART = (n.Attribute, n.Query, n.Select, n.Lambda, n.Comprehension, n.Over)  # whose parts are no rows' own


class RowKinds:
    """Looks at the row expressions over some columns, of which those whose kind is not known are left out."""

    def __init__(self, columns: Mapping[str, Any], variable: Variable, report: Report) -> None:
        domains = {name: _domain(domain) for name, domain in columns.items()}
        self.schema = {name: domain for name, domain in domains.items() if domain is not None}
        self._variable, self._report = variable, report

    def select(self, node: n.Select) -> bool:
        """Whether the condition, a key or an aggregate of a select mixes kinds; the first that does is reported."""
        keys = [key.value for key in node.keys]
        calls = [call for column in node.columns for call in aggregates(column.value)]
        return any(map(self._wrong, [*([] if node.where is None else [node.where]), *keys])) or any(
            map(self._wrong_aggregate, calls)
        )

    def open_kind(self, node: n.Expr) -> str | None:
        """The word for the domain of an expression that has no listed values and, of a number, no bounds; else None."""
        expr = self._made(node)
        try:
            kind = None if expr is None else kind_of(expr, self.schema)
            is_open = expr is not None and kind in OPEN_KINDS and key_values(expr, self.schema, 1 << 62) is None
        except Refusal:
            return None
        return kind if is_open else "real" if self.unbounded(node) == "number" else None

    def bounds(self, node: n.Expr) -> tuple[float, float] | None:
        """The finite bounds of a number, or None."""
        expr = self._made(node)
        try:
            number = expr is not None and kind_of(expr, self.schema) == "number"
            bounds = bounds_of(expr, self.schema) if expr is not None and number else None
        except Refusal:
            return None
        return bounds if bounds is not None and all(map(math.isfinite, bounds)) else None

    def unbounded(self, node: n.Expr) -> str | None:
        """The kind of a number, date or time that certainly has no bounds, or None."""
        expr = self._made(node)
        try:
            kind = None if expr is None else kind_of(expr, self.schema)
            bounds = bounds_of(expr, self.schema) if expr is not None and kind in _PLACED else (0.0, 0.0)
        except Refusal:
            return None
        return None if bounds is not None and all(map(math.isfinite, bounds)) else kind

    def _wrong(self, node: n.Expr) -> bool:
        try:
            self._kind(node)
        except Refusal as refusal:
            first = refusal.first
            self._report.add(first.kind, first.message, first.span or node.span, help=first.help)
            return True
        return False

    def _wrong_aggregate(self, call: n.Call) -> bool:
        row = AGGREGATES[call.function.id]  # type: ignore[union-attr]
        for arg in call.args[: row.expressions]:
            if isinstance(arg, n.Star | n.Distinct):
                continue
            if self._wrong(arg):
                return True
            kind = self._kind(arg)
            ordered = row.kinds is Kinds.ORDERED and kind == "text"  # of public tables
            if kind is None or row.kinds is Kinds.ANY or kind in row.takes or ordered:
                continue
            refusal = of_no_numbers(row.name, kind, arg.span.text).first
            self._report.add(refusal.kind, refusal.message, call.span, help=refusal.help)
            return True
        return False

    def _kind(self, node: n.Expr) -> str | None:
        """The kind of an expression, None where it is not known; a `Refusal` placed at the part that mixes kinds."""
        expr = self._made(node)
        for part in () if isinstance(node, _APART) else children(node):
            if isinstance(part, n.Expression):
                self._kind(part)  # type: ignore[arg-type]
        try:
            return None if expr is None else kind_of(expr, self.schema)
        except Refusal as refusal:
            help = self._way_out(node)
            first = refusal.first
            raise (Refusal(replace(first, help=help)) if help else refusal).at(node.span) from None

    def _way_out(self, node: n.Expr) -> str:
        """What to write in place of a column and a constant of two kinds, or of a text that is calculated with."""
        match node:
            case n.Logic(op="or", operands=(n.Binary(op="==", left=left, right=n.String() as first), *others)):
                if all(isinstance(other, n.String) for other in others):
                    texts = [one.span.text for one in (first, *others)]
                    each = " or ".join(f"{left.span.text} == {text}" for text in texts)
                    return f"write `{left.span.text} in [{', '.join(texts)}]`, or `{each}`"
        if not isinstance(node, n.Binary):
            return ""
        op, left, right = node.op, node.left, node.right
        if op in COMPARISONS and isinstance(right, n.String) and _MOMENT.fullmatch(right.value) and (
            self._kind(left) in _MOMENTS
        ):  # fmt: skip
            return f"a date has no quotes: write `{left.span.text} {op} {right.value.replace(' ', 'T')}`"
        if op in COMPARISONS and isinstance(right, n.String) and _is_number(right.value):
            return f"write `{left.span.text} {op} {right.value}`"
        kinds = [(side, self._kind(side)) for side in (left, right)]
        text = next((side for side, kind in kinds if kind == "text"), None)
        if text is None or isinstance(text, n.String) or any(kind in _MOMENTS for _, kind in kinds):
            return ""
        listed = self.schema.get(text.id) if isinstance(text, n.Name) else None
        if op in COMPARISONS and isinstance(listed, Categories):
            return f'`{text.span.text}` is a text: write `{text.span.text} == "{listed.values[0]}"`'
        return f"write `number({text.span.text})` where the text spells a number"

    def _made(self, node: n.Expr) -> RowExpr | None:
        match node:
            case n.Name(id=name):
                return Column(name) if name in self.schema else None
            case n.Number(value=value) | n.String(value=value) | n.Constant(value=value):
                return Constant(value)
            case n.Unary(op="-" | "not" as op, operand=operand):
                return self._operation("neg" if op == "-" else op, [operand])
            case n.Binary(op=op, left=left, right=right) if op in COMPARISONS or op in _ARITHMETIC:
                return self._operation(op, [left, right])
            case n.Logic(op=op, operands=operands):
                return self._operation(op, list(operands))
            case n.Conditional(test=test, then=then, other=other):
                return self._operation("if", [test, then, other])
            case n.Call(function=n.Name(id=name), args=args, keywords=()) if self._is_of_rows(name, len(args)):
                return self._operation(name, list(args))
        return None

    def _is_of_rows(self, name: str, many: int) -> bool:
        row = ROW_FUNCTIONS.get(name)
        fits = row is not None and row.arity <= many <= row.arity + row.optional
        return fits and self._variable(name) is MISSING

    def _operation(self, op: str, nodes: list[n.Expr]) -> RowExpr | None:
        parts = [self._made(node) for node in nodes]
        known = tuple(part for part in parts if part is not None)
        return applied(op, known, self.schema) if len(known) == len(parts) and _reads(known) else None


def _reads(parts: tuple[RowExpr, ...]) -> bool:
    """Whether a column is among them: what reads none is evaluated outside, by other rules."""
    return any(isinstance(part, Column) or (isinstance(part, Apply) and _reads(part.args)) for part in parts)


def _is_number(text: str) -> bool:
    try:
        return bool(text.strip()) and float(text) == float(text)
    except ValueError:
        return False


def _domain(described: Any) -> PlanDomain | None:
    """A domain of the same kind as a described column has."""
    if isinstance(described, Domain):
        return Open("boolean" if described.name == "boolean" else described.name)
    if isinstance(described, Range):
        low, high = described.low, described.high
        if isinstance(low, date) and isinstance(high, date):
            return Moments(kind_of_moment(low), number_of(low), number_of(high))
        if not (isinstance(low, float) and isinstance(high, float)):
            return None
        whole = not described.real and low.is_integer() and high.is_integer()
        return Integer(int(low), int(high)) if whole else Real(low, high)
    items = described.items if isinstance(described, Set) else described
    if isinstance(items, list) and items and all(isinstance(item, str) for item in items):
        return Categories(tuple(items))
    if isinstance(items, list) and items and all(isinstance(item, float) for item in items):
        return Categories(tuple(items))
    return None
