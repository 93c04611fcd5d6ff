"""Answers an editor's questions about a program: faults, hovers, definitions, completions. Nothing is run or opened.

Lines and columns count from 0, as editors count them. While a text does not parse, what was known of its last good
version still serves hovers and completions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from jostle.diagnostics import Diagnostic, Refusal
from jostle.language.aggregates import AGGREGATES
from jostle.language.builtins import BUILTINS, EVERYWHERE
from jostle.language.facts import Builtin, Effect
from jostle.source import Source, Span
from jostle.syntax import nodes as n
from jostle.syntax import parse
from jostle.syntax.walk import every
from jostle.tools.completion import Completion, Vocabulary, complete
from jostle.tools.session import Session

_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a name at the top level: its place and its kind."""

    span: Span
    kind: str
    columns: tuple[str, ...] = ()


@dataclass
class Document:
    """One open program, by the name of its file."""

    name: str
    text: str = ""
    _tree: n.Program | None = field(default=None, repr=False)
    _faults: list[Diagnostic] = field(default_factory=list, repr=False)
    _definitions: dict[str, Definition] = field(default_factory=dict, repr=False)
    _brought: list[str] = field(default_factory=list, repr=False)
    _session: Session = field(default_factory=Session, repr=False)

    def change(self, text: str) -> list[Diagnostic]:
        """Takes a new text; gives every fault in it, and every hint."""
        self.text = text
        source = Source(self.name, text)
        self._session.hints.clear()
        self._faults = self._session.check(source)
        try:
            self._tree = parse(source)
            self._definitions = dict(_definitions(self._tree))
            self._brought = self._session.brought(self._tree)
        except Refusal:
            pass  # the last good tree still serves
        return [*self._faults, *self._session.hints]

    def word(self, line: int, column: int) -> str:
        """The name at a place, or nothing."""
        lines = self.text.split("\n")
        if not 0 <= line < len(lines):
            return ""
        return next((w[0] for w in _WORD.finditer(lines[line]) if w.start() <= column <= w.end()), "")

    def definition(self, line: int, column: int) -> Span | None:
        """Returns the place where the name at a position is defined."""
        target = self._definitions.get(self.word(line, column))
        return target.span if target is not None else None

    def hover(self, line: int, column: int) -> str:
        """Describes the name at a position in Markdown: its kind, its columns, and the cost of a private source."""
        name = self.word(line, column)
        target = self._definitions.get(name)
        if target is None:
            row = BUILTINS.get(name) or AGGREGATES.get(name)
            home = f" Of the module `{row.module}`." if isinstance(row, Builtin) and row.module else ""
            return f"`{row.usage}`: {row.about}{home}" if row is not None else ""
        text = f"`{name}`: {target.kind}"
        if target.columns:
            text += "\n\ncolumns: " + ", ".join(target.columns)
        if target.kind == "a private source":
            text += "".join(f"\n\n{cost}" for cost in self._costs() if cost.startswith(name))
        return text

    def completions(self, line: int, column: int) -> tuple[str, list[Completion]]:
        """The word begun at a place, and what it can become."""
        lines = self.text.split("\n")[: line + 1]
        lines[-1:] = [lines[-1][:column]] if lines else [""]
        names = {name: definition.kind for name, definition in self._definitions.items()}
        columns = {name: definition.columns for name, definition in self._definitions.items() if definition.columns}
        known = dict.fromkeys([*EVERYWHERE, *self._brought], "a function")
        vocabulary = Vocabulary({**names, **{name: kind for name, kind in known.items() if name not in names}}, columns)
        return complete("\n".join(lines), vocabulary)

    def format(self) -> str | None:
        """The text as `jostle fmt` writes it; None where it does not parse."""
        from jostle.syntax.format import format_source

        try:
            return format_source(Source(self.name, self.text))
        except Refusal:
            return None

    def _costs(self) -> list[str]:
        if self._faults:
            return []
        try:
            costs = self._session.costs(Source(self.name, self.text))
        except Refusal:
            return []
        return [f"{c.name}: a run costs it {'an unknown amount' if math.isinf(c.asked) else c}" for c in costs]


def _definitions(tree: n.Program) -> Iterator[tuple[str, Definition]]:
    """The names of a program's top level, first definition first."""
    names: set[str] = set()
    for statement in tree.body:
        match statement:
            case n.Private(name=name, described=described):
                definition = Definition(statement.span, "a private source", _columns(described))
            case n.Def(name=name, params=params):
                definition = Definition(statement.span, f"a function of ({', '.join(p.name for p in params)})")
            case n.ParamDecl(name=name):
                definition = Definition(statement.span, "a setting of the program")
            case n.Assign(name=name, value=value):
                definition = Definition(statement.span, *_kind(value))
            case _:
                continue
        if name not in names:
            names.add(name)
            yield name, definition


def _kind(value: n.Expr) -> tuple[str, tuple[str, ...]]:
    """The kind of an expression's value, as far as its form tells."""
    match value:
        case n.Part(kind=kind):
            return f"{'an' if kind == 'Option' else 'a'} {kind}", ()
        case n.Choice():
            return "a ChoiceMaker", ()
        case n.Query():
            return "the answer of a query: public, once paid for", ()
        case n.Spending():
            return "a public value, once paid for", ()
        case n.Described(domains=domains):
            return "a public table", _columns(domains)
        case n.Lambda(params=params):
            return f"a function of ({', '.join(params)})", ()
        case n.Call(function=n.Name(id=name)) if name in BUILTINS and BUILTINS[name].effect is Effect.TRANSFORMS:
            return f"what `{name}` makes: as private as its table", ()
    return "a value", ()


def _columns(described: n.Expr | None) -> tuple[str, ...]:
    if described is None:
        return ()
    return tuple(name for node in every(described) if isinstance(node, n.RecordOf) for name, _ in node.items)
