"""What runs and does not fit the data that are described: averages of integers that may be shares, keys that are taken
down, patterns and keys that meet no listed value, clamps that change nothing or cut.

Each is a warning, from what stands in the program alone. The checker calls these where it walks; a program switches one
off by its name, `# jostle: allow narrow-range`.

Kinds and bounds of row expressions before the run, as far as a description tells them, for what is warned of.

The expression is made as a run makes it, and judged by the same rules. What names anything but columns that are
described in the text is not looked at.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date
from typing import Any

from jostle.check.abstract.values import MISSING, Domain, Range, Set
from jostle.check.scopes import Report
from jostle.diagnostics import WARNINGS, Diagnostic, Refusal, did_you_mean
from jostle.language.aggregates import AGGREGATES
from jostle.language.facts import MOST_LISTED, literal, literals, quote
from jostle.language.forms import aggregates
from jostle.language.moments import kind_of_moment, number_of
from jostle.language.operations import COMPARISONS, ROW_FUNCTIONS
from jostle.plan.bounds import bounds_of
from jostle.plan.kinds import applied, kind_of
from jostle.plan.plan import Apply, Categories, Column, Constant, Integer, Moments, Open, Real, RowExpr
from jostle.plan.plan import Domain as PlanDomain
from jostle.plan.schemas import key_values
from jostle.source import Source, Span
from jostle.syntax import nodes as n
from jostle.syntax.walk import children

_ROW_ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "^"})
_MOMENTS = ("date", "time")
_PLACED = ("number", *_MOMENTS)
OPEN_KINDS = ("text", *_MOMENTS)


Variable = Callable[[str], Any]
"""What the program's variable of a name holds, or `MISSING`."""


class RowKinds:
    """Looks at the row expressions over some columns, of which those whose kind is not known are left out."""

    def __init__(self, columns: Mapping[str, Any], variable: Variable) -> None:
        domains = {name: _example_domain(domain) for name, domain in columns.items()}
        self.schema = {name: domain for name, domain in domains.items() if domain is not None}
        self._variable = variable

    def open_kind(self, node: n.Expr) -> str | None:
        """The word for the domain of an expression that has no listed values and, of a number, no bounds; else None."""
        expr = self._row_expr(node)
        try:
            kind = None if expr is None else kind_of(expr, self.schema)
            is_open = expr is not None and kind in OPEN_KINDS and key_values(expr, self.schema, 1 << 62) is None
        except Refusal:
            return None
        return kind if is_open else "real" if self.unbounded(node) == "number" else None

    def finite_bounds(self, node: n.Expr) -> tuple[float, float] | None:
        """The finite bounds of a number, or None."""
        expr = self._row_expr(node)
        try:
            number = expr is not None and kind_of(expr, self.schema) == "number"
            bounds = bounds_of(expr, self.schema) if expr is not None and number else None
        except Refusal:
            return None
        return bounds if bounds is not None and all(map(math.isfinite, bounds)) else None

    def unbounded(self, node: n.Expr) -> str | None:
        """The kind of a number, date or time that certainly has no bounds, or None."""
        expr = self._row_expr(node)
        try:
            kind = None if expr is None else kind_of(expr, self.schema)
            bounds = bounds_of(expr, self.schema) if expr is not None and kind in _PLACED else (0.0, 0.0)
        except Refusal:
            return None
        return None if bounds is not None and all(map(math.isfinite, bounds)) else kind

    def _row_expr(self, node: n.Expr) -> RowExpr | None:
        match node:
            case n.Name(id=name):
                return Column(name) if name in self.schema else None
            case n.Number(value=value) | n.String(value=value) | n.Constant(value=value):
                return Constant(value)
            case n.Unary(op="-" | "not" as op, operand=operand):
                return self._operation("neg" if op == "-" else op, [operand])
            case n.Binary(op=op, left=left, right=right) if op in COMPARISONS or op in _ROW_ARITHMETIC:
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
        parts = [self._row_expr(node) for node in nodes]
        exprs = tuple(part for part in parts if part is not None)
        return applied(op, exprs, self.schema) if len(exprs) == len(parts) and _reads(exprs) else None


def _reads(parts: tuple[RowExpr, ...]) -> bool:
    """Whether a column is among them: what reads none is evaluated outside, by other rules."""
    return any(isinstance(part, Column) or (isinstance(part, Apply) and _reads(part.args)) for part in parts)


def row_parts(node: n.Expr) -> list[n.Node]:
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


def _example_domain(described: object) -> PlanDomain | None:
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


NARROW = 10
"""An average of integers from a range below this width is likely one of shares, grades or rates with fractions."""
LARGE_EPSILON = 10
_ARITHMETIC = frozenset({"+", "-", "*", "/"})
_ALLOW = re.compile(r"(?:#|^[ \t]*(?://|--))[ \t]*jostle:[ \t]*allow[ \t]+([^\n#]*)")


class Warnings:
    """Looks at the row expressions over the described columns of a private table."""

    def __init__(self, columns: Mapping[str, Any], variable: Variable, report: Report) -> None:
        self._kinds, self._variable, self._report = RowKinds(columns, variable), variable, report
        self._schema = self._kinds.schema

    def check_select(self, node: n.Select) -> None:
        """A select of private rows."""
        for column in node.columns:
            for call in aggregates(column.value):
                row = AGGREGATES[call.function.id]  # type: ignore[union-attr]
                if row.bounded and row.name != "sum":  # an average
                    for name in (name for arg in call.args[: row.expressions] for name in _added(arg)):
                        self._narrow(name)
                for arg in call.args:
                    self.expression(arg)
        for expr in (node.where,) if node.where is not None else ():
            self.expression(expr)
        for key in node.keys:
            self.expression(key.value)
            self.check_axis(key.value, key.over)

    def expression(self, node: n.Expr) -> None:
        """Patterns and clamps in an expression on rows."""
        for part in row_parts(node):
            match part:
                case n.Binary(op="like" | "not like", left=n.Name(id=name), right=n.String() as pattern):
                    self._pattern(name, pattern)
                case n.Call(function=n.Name(id="clamp"), args=(value, low, high)):
                    if self._variable("clamp") is MISSING:
                        self._check_clamp(part, value, literal(low), literal(high))

    def check_axis(self, node: n.Expr, over: n.Expr | None = None) -> None:
        """A key of groups, a dimension of a cube or what parts are by: a number that is taken down to an integer; and
        the keys that are listed, of which a description may rule some out."""
        if over is not None:
            self._check_keys(node, over)
        domain = self._schema.get(node.id) if isinstance(node, n.Name) else None
        if isinstance(node, n.Name) and isinstance(domain, Real):
            self._report.add(
                "floored-key", f"`{node.id}` is described with fractions, and a key is an integer", node.span,
                label=f"{_example_between(domain)} counts as {math.floor(_example_between(domain))}",
                help=f"write `floor({node.id})` if this is meant; `floor({node.id} * 10)` is by tenths",
            )  # fmt: skip

    def _check_keys(self, node: n.Expr, over: n.Expr) -> None:
        domain = self._schema.get(node.id) if isinstance(node, n.Name) else None
        if not isinstance(node, n.Name) or domain is None:
            return
        ends = (over.low, over.high) if isinstance(over, n.Range) else ()
        pairs = [(end, literal(end)) for end in ends] if ends else literals(over)
        for place, value in pairs:
            why = None if value is None else _never(value, domain)
            if why is not None and value is not None:
                fault = f"`{node.id}` is never {quote(value)}: {why}"
                self._report.add(
                    "unlisted-key", fault, place.span, label="a group without rows", help=_help(value, domain)
                )
                return

    def _narrow(self, name: n.Name) -> None:
        domain = self._schema.get(name.id)
        if isinstance(domain, Integer) and 0 < domain.high - domain.low < NARROW:
            values = ", ".join(map(str, range(domain.low, domain.high + 1)))
            self._report.add(
                "narrow-range", f"`{name.id}` is described by the integers {domain.low}..{domain.high}, and averaged",
                name.span, label=f"a cell {domain.low}.7 would count as {domain.low}",
                help=f"describe it as `{name.id}: {domain.low}.0..{domain.high}.0` if cells have fractions, as "
                f"`{name.id}: {{{values}}}` if they have none",
            )  # fmt: skip

    def _pattern(self, name: str, pattern: n.String) -> None:
        domain = self._schema.get(name)
        texts = [v for v in domain.values if isinstance(v, str)] if isinstance(domain, Categories) else []
        if not texts:
            return
        exact, loose = (_matches(pattern.value, texts, flags) for flags in (0, re.IGNORECASE))
        if exact == loose and exact:
            return
        more = ", ".join(map(quote, [text for text in loose if text not in exact][:MOST_LISTED]))
        label = "" if exact else "holds for no row"
        message = f"no value of `{name}` is like {quote(pattern.value)}"
        if exact:
            message = f"{quote(pattern.value)} is like some values of `{name}`, and like others but for their case"
        sample = ", ".join(map(quote, texts[:MOST_LISTED])) + ", …" * (len(texts) > MOST_LISTED)
        help = (
            f"{more}: write `lower({name}) like {quote(pattern.value.lower())}`" if more else f"it is one of {sample}"
        )
        self._report.add("unmatched-pattern", message, pattern.span, label=label, help=help)

    def _check_clamp(self, call: n.Call, value: n.Expr, low: object, high: object) -> None:
        bounds = self._kinds.finite_bounds(value)
        if bounds is None or not isinstance(low, float) or not isinstance(high, float) or low > high:
            return
        text = value.span.text
        if low <= bounds[0] and bounds[1] <= high:
            message = f"`{text}` is within {quote(bounds[0])}..{quote(bounds[1])} by its description"
            help = f"leave the clamp out: `{text}`"
            self._report.add("idle-clamp", message, call.span, label="changes nothing", help=help)
        elif isinstance(value, n.Name):
            message = f"`{text}` is described as {quote(bounds[0])}..{quote(bounds[1])}, and cut here"
            help = "what lies beyond counts as the nearest end, which no ± covers"
            self._report.add("cutting-clamp", message, call.span, label="cuts values", help=help)


def _added(node: n.Expr) -> Iterator[n.Name]:
    """The columns whose values, not tests of them, go into a sum."""
    match node:
        case n.Name():
            yield node
        case n.Unary(op="-" | "+", operand=operand):
            yield from _added(operand)
        case n.Binary(op=op, left=left, right=right) if op in _ARITHMETIC:
            yield from _added(left)
            yield from _added(right)


def _example_between(domain: Real) -> float:
    """A value of the domain that is no integer, as an example."""
    middle = math.floor((domain.low + domain.high) / 2)
    return middle + 0.7 if middle + 0.7 <= domain.high else (domain.low + domain.high) / 2


def _matches(pattern: str, texts: list[str], flags: int) -> list[str]:
    parts = ({"%": ".*", "_": "."}.get(c) or re.escape(c) for c in re.sub("%+", "%", pattern))
    compiled = re.compile("".join(parts), flags | re.DOTALL)
    return [text for text in texts if compiled.fullmatch(text)]


def _never(value: str | float, domain: object) -> str | None:
    """Why no row has a value, or None."""
    if isinstance(domain, Categories):
        alike = not domain.values or isinstance(domain.values[0], str) == isinstance(value, str)
        return "its description does not list it" if alike and value not in domain.values else None
    if isinstance(domain, Integer | Real) and isinstance(value, float):
        outside = value < math.floor(domain.low) or value > domain.high
        return f"it is described as {quote(domain.low)}..{quote(domain.high)}" if outside else None
    return None


def _help(value: str | float, domain: Any) -> str:
    if isinstance(domain, Categories):
        texts = [text for text in domain.values if isinstance(text, str)]
        hint = did_you_mean(value, texts) if isinstance(value, str) else ""
        sample = ", ".join(map(quote, domain.values[:MOST_LISTED])) + ", …" * (len(domain.values) > MOST_LISTED)
        return hint.replace("`", '"') or f"it is one of {sample}"
    return f"list keys within {quote(domain.low)}..{quote(domain.high)}"


# Descriptions and amounts ----------------------------------------------------------------------------------


def of_categories(name: str, domain: n.SetOf, report: Report) -> None:
    """Listed texts that have blanks around them, or that differ in their case alone."""
    plain: dict[str, str] = {}
    for item in domain.items:
        if not isinstance(item, n.String):
            continue
        text, same = item.value, plain.setdefault(item.value.strip().casefold(), item.value)
        if text != text.strip():
            message, help = f"{quote(text)} of `{name}` has blanks around it", f"write {quote(text.strip())}"
        elif same != text:
            message = f"{quote(same)} and {quote(text)} of `{name}` differ in their case alone"
            help = f"describe it as `text`, and group by `lower({name})`, if both mean the same"
        else:
            continue
        label = "only cells that are written so are counted"
        report.add(
            "category-spelling",
            message,
            item.span,
            label=label,
            help=f"{help}, if both mean the same" if same != text else help,
        )


def of_epsilon(value: float, span: Span, report: Report) -> None:
    """An amount that protects next to nothing; said once in a program, of its budget or the first amount."""
    if value > LARGE_EPSILON and not report.has("large-epsilon"):
        message = f"at epsilon {value:g} an answer may be e^{value:g} times as likely with a person's data as without"
        help = "amounts of 0.1 to 3 are usual; what is above 10 promises next to nothing"
        report.add("large-epsilon", message, span, label="more than 10", help=help)


# Switching off ---------------------------------------------------------------------------------------------


def unallowed(source: Source, warnings: Iterable[Diagnostic], allowed: Collection[str]) -> Iterator[Diagnostic]:
    """Those of `warnings` that neither `allowed` nor a comment of the program switches off, and one for each name in a
    comment that is no warning. A comment on a line of its own is for the whole program, another one for its line."""
    everywhere: set[str] = set(allowed)
    of_lines: dict[int, set[str]] = {}
    unknown: list[Diagnostic] = []
    for number, line in enumerate(source.text.split("\n"), 1):
        match = _ALLOW.search(line) if "jostle" in line else None
        if match is None:
            continue
        names = set(re.findall(r"[\w-]+", match[1]))
        (of_lines.setdefault(number, set()) if line[: match.start()].strip() else everywhere).update(names)
        for name in sorted(names - set(WARNINGS)):
            span = Span(source, number, match.start() + 1, number, match.end() + 1)
            help = did_you_mean(name, WARNINGS) or "`jostle explain` lists them"
            unknown.append(Diagnostic("unknown-warning", f"no warning is named `{name}`", span, help=help))
    for one in (*warnings, *unknown):
        if one.kind not in everywhere and (one.span is None or one.kind not in of_lines.get(one.span.line, ())):
            yield one
