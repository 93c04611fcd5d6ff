"""Warnings: what runs and does not fit the data that are described, from what stands in the program alone.

The walk before a run calls these where a select or a form reads private rows; a program switches one off by its name,
`# jostle: allow narrow-range`. A `Report` has errors and warnings in source order, each kind once a place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from jostle.diagnostics import WARNINGS, Diagnostic, Note, did_you_mean
from jostle.doubles import arithmetic
from jostle.language.aggregates import AGGREGATES
from jostle.language.facts import MOST_LISTED, literal, literals, quote
from jostle.language.forms import aggregates
from jostle.language.moments import SPANS
from jostle.plan.facts import bounds_of, listed_values
from jostle.plan.kinds import is_integral, kind_of
from jostle.plan.plan import Categories, Domain, Integer, Moments, Open, Real, RowExpr
from jostle.source import Source, Span
from jostle.syntax import nodes as n
from jostle.syntax.walk import children, every_of


class Report:
    """Findings of one program."""

    def __init__(self) -> None:
        self._diagnostics: dict[tuple[str, Span | None], Diagnostic] = {}

    def __len__(self) -> int:
        return sum(not one.is_warning for one in self._diagnostics.values())

    def has(self, kind: str) -> bool:
        return any(other == kind for other, _ in self._diagnostics)

    def add(
        self, kind: str, message: str, span: Span, *, label: str = "", help: str = "", notes: tuple[Note, ...] = ()
    ) -> None:
        self._diagnostics.setdefault((kind, span), Diagnostic(kind, message, span, label, help, notes))

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        for diagnostic in diagnostics:
            self._diagnostics.setdefault((diagnostic.kind, diagnostic.span), diagnostic)

    def in_order(self) -> list[Diagnostic]:
        """All findings by place, those without one first."""
        return sorted(self._diagnostics.values(), key=_position)


def _position(diagnostic: Diagnostic) -> tuple[int, int]:
    return (diagnostic.span.line, diagnostic.span.column) if diagnostic.span is not None else (0, 0)


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


NARROW = 10
"""An average of integers from a range below this width is likely one of shares, grades or rates with fractions."""
LARGE_EPSILON = 10
_ARITHMETIC = frozenset({"+", "-", "*", "/"})
_ALLOW = re.compile(r"(?:#|^[ \t]*(?://|--))[ \t]*jostle:[ \t]*allow[ \t]+([^\n#]*)")


class Warnings:
    """Looks at the row expressions over the described columns of a private table.

    `of_source`: whether a column is as a file describes it; `means_own`: whether a name has a meaning of the
    program's own; `bounds`: those of a number of rows, or None; `floored`: whether a key is a number that is taken
    down, to those that are listed or to its own.
    """

    def __init__(
        self, schema: Mapping[str, Domain], of_source: Callable[[str], bool], means_own: Callable[[str], bool],
        bounds: Callable[[n.Expr], tuple[float, float] | None], floored: Callable[[n.Expr, n.Expr | None], bool],
        report: Report,
    ) -> None:  # fmt: skip
        self._schema, self._of_source, self._report = schema, of_source, report
        self._means_own, self._bounds, self._floored = means_own, bounds, floored

    def check_form(self, node: n.Call, axes: bool) -> None:
        """A form of rows, `where(t, C)`; `axes`: what it is given are keys."""
        over = next((keyword.value for keyword in node.keywords if keyword.name == "over"), None)
        values = [*listed_items(node.args[1:]), *(one.value for one in node.keywords if one.name != "over")]
        for value in values:
            self.expression(value)
            if axes:
                self.check_axis(value, over)

    def check_select(self, node: n.Select) -> None:
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
                    if not self._means_own("clamp"):
                        self._check_clamp(part, value, low, high)
                case n.Call(function=n.Name(id=word), args=(n.Name() as column,)) if word in SPANS:
                    self._check_clock(part, column)

    def check_axis(self, node: n.Expr, over: n.Expr | None = None) -> None:
        """A key of groups, a dimension of a cube or what parts are by: a number that is taken down to an integer; and
        the keys that are listed, of which a description may rule some out."""
        if over is not None:
            self._check_keys(node, over)
        if self._floored(node, over):
            text, domain = node.span.text, self._schema.get(node.id) if isinstance(node, n.Name) else None
            sample = _example_between(domain) if isinstance(domain, Real) else 0.7
            tenfold = text if isinstance(node, n.Name) else f"({text})"
            self._report.add(
                "floored-key",
                f"`{text}` has fractions, and is taken down to whole keys",
                node.span,
                label=f"{sample} counts as {math.floor(sample)}",
                help=f"write `floor({text})` if this is meant; `floor({tenfold} * 10) / 10` is by tenths",
            )

    def _check_keys(self, node: n.Expr, over: n.Expr) -> None:
        domain = self._schema.get(node.id) if isinstance(node, n.Name) else None
        if domain is None:
            bounds = self._bounds(node)
            if bounds is None or isinstance(node, n.Name):
                return
            domain = Real(*bounds)
        ends = (over.low, over.high) if isinstance(over, n.Range) else ()
        pairs = [(end, literal(end)) for end in ends] if ends else literals(over)
        for place, value in pairs:
            why = None if value is None else _never(value, domain)
            if why is not None and value is not None:
                fault = f"`{node.span.text}` is never {quote(value)}: {why}"
                self._report.add(
                    "unlisted-key", fault, place.span, label="a group without rows", help=_help(value, domain)
                )
                return

    def _narrow(self, name: n.Name) -> None:
        domain = self._schema.get(name.id)
        if isinstance(domain, Integer) and 0 < domain.high - domain.low < NARROW and self._of_source(name.id):
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

    def _check_clock(self, call: n.Call, column: n.Name) -> None:
        domain = self._schema.get(column.id)
        dates = isinstance(domain, Moments | Open) and domain.kind == "date"
        if dates and not self._means_own(call.function.span.text):
            self._report.add(
                "clock-of-date", f"`{column.id}` is described as dates, which have no clock", call.span,
                label="the same for every row", help=f"describe it as `{column.id}: time` if its cells have hours",
            )  # fmt: skip

    def _check_clamp(self, call: n.Call, value: n.Expr, least: n.Expr, most: n.Expr) -> None:
        bounds, text, low, high = self._bounds(value), value.span.text.strip("`"), literal(least), literal(most)
        dates = isinstance(least, n.Constant) and isinstance(most, n.Constant) and least.span.text > most.span.text
        if dates or (isinstance(low, float) and isinstance(high, float) and low > high):
            message = f"all of `{call.span.text}` is one value, since its ends are swapped"
            help = f"write `clamp({text}, {most.span.text}, {least.span.text})`"
            self._report.add("cutting-clamp", message, call.span, label="one value", help=help)
            return
        if bounds is None or not isinstance(low, float) or not isinstance(high, float):
            return
        if low <= bounds[0] and bounds[1] <= high:
            message = f"`{text}` is within {quote(bounds[0])}..{quote(bounds[1])} by its description"
            help = f"leave the clamp out: `{text}`"
            self._report.add("idle-clamp", message, call.span, label="changes nothing", help=help)
        elif isinstance(value, n.Name):
            message = f"`{text}` is described as {quote(bounds[0])}..{quote(bounds[1])}, and cut here"
            help = "what lies beyond counts as the nearest end, which no ± covers"
            self._report.add("cutting-clamp", message, call.span, label="cuts values", help=help)


def listed_items(args: Sequence[n.Expr]) -> list[n.Expr]:
    """What is given one by one or in a list."""
    return [item for arg in args for item in (listed_items(arg.items) if isinstance(arg, n.ListOf) else [arg])]


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


def of_epsilon(program: n.Program, report: Report) -> None:
    """An amount that protects next to nothing; said once in a program, of its budget or the first amount."""
    amounts = (one.value for one in every_of(program, n.Amount) if one.unit == "epsilon")
    span, value = next(((one.span, v) for one in amounts if (v := number_in(one) or 0) > LARGE_EPSILON), (None, 0.0))
    if span is not None:
        message = f"at epsilon {value:g} an answer may be e^{value:g} times as likely with a person's data as without"
        help = "amounts of 0.1 to 3 are usual; what is above 10 promises next to nothing"
        report.add("large-epsilon", message, span, label="more than 10", help=help)


def of_utilities(program: n.Program, report: Report) -> None:
    """A Utility that gives an error as it is, of which the largest would be the best."""
    for part in every_of(program, n.Part):
        last = part.body.body[-1] if part.kind == "Utility" and part.body.body else None
        match last:
            case n.Return(value=n.Call(function=n.Name(id="rmse" | "scaled_error" as name)) as call):
                help = f"write `return -{call.span.text}`"
                report.add("praised-error", f"`{name}` is an error, and of a Utility the largest value is the best",
                           call.span, label="the worst answers have the largest", help=help)  # fmt: skip


def of_texts(program: n.Program, report: Report) -> None:
    """Reports a name of the program that stands in braces in a printed text."""
    names = {node.name for node in every_of(program, n.Assign)}
    for call in every_of(program, n.Call):
        for text in call.args if isinstance(call.function, n.Name) and call.function.id == "print" else ():
            parts = re.split(r"\{(\w+)\}", text.value) if isinstance(text, n.String) else []
            if len(parts) > 1 and {*parts[1::2]} <= names:
                new = [part if at % 2 else quote(part.strip()) for at, part in enumerate(parts) if part.strip()]
                report.add("plain-braces", f"`{{{parts[1]}}}` is printed as it stands, without its value", text.span,
                           label="a text", help=f"write `print({', '.join(new)})`")  # fmt: skip


def number_in(expr: n.Expr) -> float | None:
    """The value of an expression of numbers alone, or None."""
    match expr:
        case n.Number(value=value):
            return value
        case n.Unary(op="-" | "+" as op, operand=operand) if (inner := number_in(operand)) is not None:
            return -inner if op == "-" else inner
        case n.Binary(op="+" | "-" | "*" | "/" as op, left=left, right=right):
            one, two = number_in(left), number_in(right)
            both = one is not None and two is not None and not (op == "/" and two == 0)
            return arithmetic(op, one, two) if both else None  # type: ignore[arg-type]
    return None


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


def taken_down(row: RowExpr, schema: Mapping[str, Domain], column: bool, keys: Callable[[], Sequence[object]]) -> bool:
    """Whether a number with fractions is a key by what is below it, as of listed `keys` without fractions, which may be
    many; and of a `column`, or has two keys at most."""
    if kind_of(row, schema) != "number" or is_integral(row, schema) or listed_values(row, schema) is not None:
        return False
    low, high = bounds_of(row, schema) or (0, math.inf)
    few = column or high - low < 2
    return few and not any(isinstance(key, float) and key % 1 for key in keys())


class Warned(list[Diagnostic]):
    """A list of warnings; those of the names in `allowed` do not come into it."""

    def __init__(self, allowed: Collection[str] = ()) -> None:
        super().__init__()
        self._allowed = frozenset(allowed)

    def add(self, source: Source, warnings: Sequence[Diagnostic]) -> None:
        """Takes those of a program's warnings that its comments do not switch off."""
        for one in unallowed(source, warnings, self._allowed):
            if one not in self:
                self.append(one)
