"""Kinds and bounds of row expressions before the run, as far as a description tells them, for what is warned of.

The expression is made as a run makes it, and judged by the same rules. What names anything but columns that are
described in the text is not looked at.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from jostle.check.abstract.values import MISSING, Domain, Range, Set
from jostle.diagnostics import Refusal
from jostle.language.moments import kind_of_moment, number_of
from jostle.language.operations import COMPARISONS, ROW_FUNCTIONS
from jostle.plan.bounds import bounds_of
from jostle.plan.domains import Categories, Integer, Moments, Open, Real
from jostle.plan.domains import Domain as PlanDomain
from jostle.plan.keys import key_values
from jostle.plan.kinds import applied, kind_of
from jostle.plan.plan import Apply, Column, Constant, RowExpr
from jostle.syntax import nodes as n
from jostle.syntax.walk import children

_ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "^"})
_MOMENTS = ("date", "time")
_PLACED = ("number", *_MOMENTS)
OPEN_KINDS = ("text", *_MOMENTS)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?)?")
_APART = (n.Attribute, n.Query, n.Select, n.Lambda, n.Comprehension, n.Over)  # whose parts are no rows' own


Variable = Callable[[str], Any]
"""What the program's variable of a name holds, or `MISSING`."""


class RowKinds:
    """Looks at the row expressions over some columns, of which those whose kind is not known are left out."""

    def __init__(self, columns: Mapping[str, Any], variable: Variable) -> None:
        domains = {name: _domain(domain) for name, domain in columns.items()}
        self.schema = {name: domain for name, domain in domains.items() if domain is not None}
        self._variable = variable

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


def inside(node: n.Expr) -> list[n.Node]:
    """The parts of a row expression, without names of functions and what is evaluated outside of it."""
    parts: list[n.Node] = []
    waiting: list[n.Node] = [node]
    while waiting:
        part = waiting.pop()
        parts.append(part)
        match part:
            case n.Call(function=n.Name(id="column")):
                continue
            case n.Call(function=n.Name(), args=args, keywords=keywords):
                waiting.extend((*args, *keywords))
            case n.Attribute(value=n.Name()):
                continue
            case n.Query() | n.Select() | n.Lambda() | n.Comprehension() | n.Over():
                continue
            case n.Binary(op="in" | "not in", left=left):
                waiting.append(left)
            case n.Name() | n.Number() | n.String():
                continue
            case _:
                waiting.extend(children(part))
    return parts


def _domain(described: object) -> PlanDomain | None:
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
