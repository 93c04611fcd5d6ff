"""What an editor asks about a program: faults, hovers, definitions, completions. Nothing is run and no data are read.

Lines and columns count from 0, as editors count them. While a text does not parse, what was known of its last good
version still serves hovers and completions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from jostle.diagnostics import Diagnostic, Refusal
from jostle.language.builtins import BUILTINS
from jostle.language.facts import Effect
from jostle.source import Source, Span
from jostle.syntax import nodes as n
from jostle.syntax import parse
from jostle.syntax.walk import every
from jostle.tools.completion import Completion, Known, complete
from jostle.tools.session import Session

_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Definition:
    """Where a name gets its value at the top level, and what it is in a word."""

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
    _session: Session = field(default_factory=Session, repr=False)

    def change(self, text: str) -> list[Diagnostic]:
        """Takes a new text; gives every fault in it."""
        self.text = text
        source = Source(self.name, text)
        self._faults = self._session.check(source)
        try:
            self._tree = parse(source)
            self._definitions = dict(_definitions(self._tree))
        except Refusal:
            pass  # the last good tree still serves
        return self._faults

    def word(self, line: int, column: int) -> str:
        """The name at a place, or nothing."""
        lines = self.text.split("\n")
        if not 0 <= line < len(lines):
            return ""
        return next((w[0] for w in _WORD.finditer(lines[line]) if w.start() <= column <= w.end()), "")

    def definition(self, line: int, column: int) -> Span | None:
        """Where the name at a place gets its value."""
        found = self._definitions.get(self.word(line, column))
        return found.span if found is not None else None

    def hover(self, line: int, column: int) -> str:
        """What the name at a place is, its label, and for a private source what the program can cost it; Markdown."""
        name = self.word(line, column)
        found = self._definitions.get(name)
        if found is None:
            row = BUILTINS.get(name)
            return f"`{row.usage}`: {row.about}" if row is not None else ""
        said = f"`{name}`: {found.kind}"
        if found.columns:
            said += "\n\ncolumns: " + ", ".join(found.columns)
        if found.kind == "a private source":
            said += "".join(f"\n\n{cost}" for cost in self._costs() if cost.startswith(name))
        return said

    def completions(self, line: int, column: int) -> tuple[str, list[Completion]]:
        """The word begun at a place, and what it can become."""
        lines = self.text.split("\n")[: line + 1]
        lines[-1:] = [lines[-1][:column]] if lines else [""]
        names = {name: made.kind for name, made in self._definitions.items()}
        columns = {name: made.columns for name, made in self._definitions.items() if made.columns}
        known = Known({**names, **{b: "a function" for b in BUILTINS if b not in names}}, columns)
        return complete("\n".join(lines), known)

    def formatted(self) -> str | None:
        """The text as `jostle fmt` writes it; None where it does not parse."""
        from jostle.syntax.format import formatted

        try:
            return formatted(Source(self.name, self.text))
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
    seen: set[str] = set()
    for statement in tree.body:
        match statement:
            case n.Private(name=name, described=described):
                made = Definition(statement.span, "a private source", _columns(described))
            case n.Def(name=name, params=params):
                made = Definition(statement.span, f"a function of ({', '.join(p.name for p in params)})")
            case n.ParamDecl(name=name):
                made = Definition(statement.span, "a setting of the program")
            case n.Assign(name=name, value=value):
                made = Definition(statement.span, *_kind(value))
            case _:
                continue
        if name not in seen:
            seen.add(name)
            yield name, made


def _kind(value: n.Expr) -> tuple[str, tuple[str, ...]]:
    """What an expression gives, as far as its form tells."""
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
