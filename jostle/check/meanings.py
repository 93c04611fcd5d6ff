"""What a row expression cannot mean: a name with two meanings, a value that no row has, a condition on nothing.

Each of these would run, and be answered with noise about another question than the one that was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from jostle.check.abstract.values import (
    PUBLIC,
    Handle,
    Items,
    Kind,
    NumberInterval,
    Range,
    Set,
)  # fmt: skip
from jostle.check.report import Report
from jostle.diagnostics import did_you_mean
from jostle.language import described
from jostle.language.aggregates import AGGREGATES
from jostle.syntax import nodes as n
from jostle.syntax.walk import children

Variable = Callable[[str], Any]
"""What the program's variable of a name holds, or `MISSING`."""

VALUES = (float, str, bool, list, dict, Items, Set, Range, NumberInterval, Kind)


class Meanings:
    """Looks at the row expressions of one table; `tables`: what it is called there."""

    def __init__(
        self, columns: Mapping[str, Any], variable: Variable, tables: Collection[str], report: Report,
        results: Collection[str] = (),
    ) -> None:  # fmt: skip
        """`results`: what a select calls what it measures, which no condition on rows can look at."""
        self._columns, self._variable, self._tables, self._report = columns, variable, tables, report
        self._results = results

    def expression(self, node: n.Expr) -> bool:
        """What is wrong with an expression on rows; whether anything is."""
        wrong = False
        for part in inside(node):
            if isinstance(part, n.Name) and part.id in self._columns and self._means_a_value(part.id):
                wrong = self._two_meanings(part)
            elif isinstance(part, n.Binary):
                wrong = self._ruled_out(part) or wrong
        return wrong

    def position(self, node: n.Expr) -> bool:
        """The same where a column is expected: there a variable means a column only where it holds the name of one."""
        if isinstance(node, n.ListOf):
            return any(self.position(item) for item in node.items)
        if isinstance(node, n.String):
            return node.value not in self._columns and self._no_column(node.value, node)
        if not isinstance(node, n.Name):
            return self.expression(node)
        named = self._variable(node.id)
        named = named.name if isinstance(named, Handle) and named.kind == "column" else named
        other = isinstance(named, str) and named in self._columns and named != node.id
        return node.id in self._columns and other and self._two_meanings(node)

    def axis(self, node: n.Expr) -> bool:
        """The same of what parts or the cells of a cube are by."""
        return self.position(node)

    def condition(self, node: n.Expr) -> bool:
        """The same of a condition, which reads a column."""
        if self.expression(node):
            return True
        if not isinstance(node, n.Binary | n.Logic) or any(self._may_read(part) for part in inside(node)):
            return False
        named = [part.id for part in inside(node) if isinstance(part, n.Name | n.Variable) and self._holds(part.id)]
        help = f"`{named[0]}` holds the name of a column: write `column({named[0]})`" if named else self._listed
        for part in inside(node):
            if isinstance(part, n.String) and part.value in self._columns:
                plain = part.value.isidentifier() and part.value.isascii()
                column = part.value if plain else f"`{part.value}`"
                written = node.span.text.replace(part.span.text, column, 1)
                help = f"a text in quotes is a value; the column is written {column if plain else f'`` {column} ``'}"
                help = f"a column has no quotes: write `{written}`" if plain else help
            elif isinstance(part, n.Name) and part.id in self._results:
                help = f"`{part.id}` is measured of groups: write `having {node.span.text}` after them"
        message = "this condition reads no column of the table"
        self._report.add("TypeError", message, node.span, label="no column", help=help)
        return True

    def described(self, node: n.Expr) -> bool:
        """The same of `D[a = v]`, of which only the constant can be wrong."""
        return isinstance(node, n.Binary) and self._ruled_out(node)

    # ---------------------------------------------------------------------------------------------

    def _means_a_value(self, name: str) -> bool:
        value = self._variable(name)
        return value is PUBLIC or value is None or isinstance(value, VALUES) or (
            isinstance(value, Handle) and value.kind == "column"
        )  # fmt: skip

    def _holds(self, name: str) -> bool:
        value = self._variable(name)
        return isinstance(value, str) and value in self._columns

    def _may_read(self, part: n.Node) -> bool:
        if isinstance(part, n.Name):
            return part.id in self._columns
        return isinstance(part, n.Call | n.Attribute | n.Index | n.Comprehension | n.Lambda | n.Over)

    def _two_meanings(self, node: n.Name) -> bool:
        table = next(iter(self._tables), None)
        help = described.ways(node.id, table)
        message = f"`{node.id}` is a column and a variable"
        self._report.add("NameError", message, node.span, label="which one is meant?", help=help)
        return True

    def _no_column(self, name: str, node: n.Expr) -> bool:
        help = did_you_mean(name, self._columns) or self._listed
        self._report.add("NameError", f"there is no column `{name}`", node.span, label="no such column", help=help)
        return True

    @property
    def _listed(self) -> str:
        return "the columns are " + ", ".join(f"`{column}`" for column in self._columns)

    def _ruled_out(self, node: n.Binary) -> bool:
        for side, op, place, value in described.compared(node):
            name = self._column(side)
            known = known_of(self._columns[name]) if name is not None else None
            fault = described.ruled_out(name, op, value, known) if name is not None and known else None
            if fault:
                label = "holds for no row" if op != "!=" else "holds for every row"
                self._report.add("ValueError", fault[0], place.span, label=label, help=fault[1])
                return True
        return False

    def _column(self, node: n.Expr) -> str | None:
        match node:
            case n.Name(id=name) if name in self._columns:
                return name
            case n.Attribute(value=n.Name(id=table), name=name) if table in self._tables and name in self._columns:
                return name
        return None


def inside(node: n.Expr) -> Iterator[n.Node]:
    """The parts of a row expression, without names of functions and what is evaluated outside of it."""
    waiting: list[n.Node] = [node]
    while waiting:
        part = waiting.pop()
        yield part
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
            case _:
                waiting.extend(children(part))


def aggregated(node: n.Expr) -> Iterator[tuple[n.Expr, bool]]:
    """The row expressions in an output of a select, with whether a column is expected there."""
    for part in inside(node):
        if isinstance(part, n.Call) and isinstance(part.function, n.Name) and part.function.id in AGGREGATES:
            for arg in part.args[: AGGREGATES[part.function.id].expressions]:
                if not isinstance(arg, n.Star):
                    yield (arg.value if isinstance(arg, n.Distinct) else arg), True


def known_of(domain: Any) -> described.Listed | described.Bounded | None:
    """What is described of a column, where that is written out."""
    if isinstance(domain, Range):
        low, high = domain.low, domain.high
        if isinstance(low, float) and isinstance(high, float) and low <= high:
            whole = not domain.real and low.is_integer() and high.is_integer()
            return described.Bounded(low, high, whole)
        return None
    items = domain.items if isinstance(domain, Set) else domain
    listed = isinstance(items, list) and bool(items)
    if listed and (all(isinstance(item, str) for item in items) or all(isinstance(item, float) for item in items)):
        return described.Listed(items)
    return None
