"""Answers an editor's questions about a program: faults and what mends them, hovers, signatures, definitions,
occurrences, completions. Nothing is run or opened.

Lines and columns count from 0, as editors count them. While a text does not parse, what was known of its last good
version still serves. *Quick fixes*: a help has its replacements in backquotes ("did you mean `age`?"). Each is tried,
in place of what is underlined, of its line, after it, or as a first line, and is offered where a check then finds fewer
faults.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from msgspec import Struct

from jostle.diagnostics import Diagnostic, Refusal
from jostle.documentation import Documentation, documentation
from jostle.language.builtins import BUILTINS, EVERYWHERE
from jostle.language.facts import Effect
from jostle.language.moments import PERIOD
from jostle.source import Source, Span
from jostle.syntax import nodes as n
from jostle.syntax import parse
from jostle.syntax.parser import lexicon
from jostle.syntax.walk import every
from jostle.tools.completion import Completion, Vocabulary, argument, complete
from jostle.tools.editors.occurrences import Occurrence, described, occurrences
from jostle.tools.session import Session

_QUOTED = re.compile(r"`([^`]+)`")
_MOST = 4  # replacements of one help that are tried


class Fix(Struct, frozen=True):
    """A change: what stands between two places (line and column, from 0) becomes `new`; `title` is for people."""

    title: str
    start: tuple[int, int]
    end: tuple[int, int]
    new: str


def fixes(text: str, fault: Diagnostic, faults: Sequence[Diagnostic], check: Callable[[str], int]) -> Iterator[Fix]:
    """The changes that a fault's help proposes and that leave fewer than `faults`; `check` counts those of a text."""
    if fault.span is None:
        return
    start = (fault.span.line - 1, fault.span.column - 1)
    end = (fault.span.end_line - 1, fault.span.end_column - 1)
    line = fault.span.source.line(fault.span.line)
    indented, ends = len(line) - len(line.lstrip()), len(line)
    for new in dict.fromkeys(_QUOTED.findall(fault.help)[:_MOST]):
        whole = Fix(f"change to `{new}`", (start[0], indented), (start[0], ends), new)
        of_line = re.findall(r"\w+", new)[:1] == re.findall(r"\w+", line)[:1]  # begins as the statement does
        part = Fix(f"change to `{new}`", start, end, new)
        tries = [whole, part] if of_line else [part, whole]
        tries.append(Fix(f"add `{new}`", end, end, f" {new}"))
        if new.startswith("use "):
            tries = [Fix(f"add `{new}`", (0, 0), (0, 0), f"{new}\n")]
        for fix in tries:
            if check(changed(text, fix)) < len(faults):
                yield fix
                break


def changed(text: str, fix: Fix) -> str:
    lines = text.split("\n")
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line) + 1)
    start, end = (offsets[line] + column for line, column in (fix.start, fix.end))
    return text[:start] + fix.new + text[end:]


_WORD = re.compile(r"[A-Za-z_]\w*")
_PRIVATE = ("a private source",)


class Definition(Struct, frozen=True):
    """The definition of a name at the top level: its place and its kind."""

    span: Span
    kind: str
    columns: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()


class Column(Struct, frozen=True):
    """A described column: where, of which table, its domain as it is written, and the values that it lists."""

    span: Span
    table: str
    domain: str
    values: tuple[object, ...] = ()


class Signature(Struct, frozen=True):
    """A function that is being called: how it is written, its parameters, which one is typed, words about it."""

    usage: str
    parameters: tuple[str, ...]
    active: int
    about: str


@dataclass
class Document:
    """One open program, by the name of its file."""

    name: str
    text: str = ""
    _tree: n.Program | None = field(default=None, repr=False)
    _faults: list[Diagnostic] | None = field(default=None, repr=False)
    _definitions: dict[str, Definition] = field(default_factory=dict, repr=False)
    _columns: dict[str, Column] = field(default_factory=dict, repr=False)
    _occurrences: list[Occurrence] = field(default_factory=list, repr=False)
    _brought: list[str] = field(default_factory=list, repr=False)
    _session: Session = field(default_factory=partial(Session, rehearse=False), repr=False)

    def change(self, text: str) -> list[Diagnostic]:
        """Takes a new text; gives every fault in it, and every hint."""
        self.take(text)
        return [*self.faults(), *self._session.warnings]

    def faults(self) -> list[Diagnostic]:
        """What is wrong with the text, looked for once."""
        if self._faults is None:
            self._session.warnings.clear()
            self._faults = self._session.check(Source(self.name, self.text))
        return self._faults

    def take(self, text: str) -> None:
        """Takes a new text, of which no faults are known yet."""
        source, self.text, self._faults = Source(self.name, text), text, None
        try:
            self._tree = parse(source)
            self._definitions = dict(_definitions(self._tree))
            self._columns = dict(_described(self._tree))
            self._occurrences = occurrences(self._tree, self._columns)
            self._brought = self._session.brought(self._tree)
        except Refusal:
            pass  # the last good tree still serves

    def word(self, line: int, column: int) -> str:
        """The name at a place, or nothing."""
        lines = self.text.split("\n")
        if not 0 <= line < len(lines):
            return ""
        return next((w[0] for w in _WORD.finditer(lines[line]) if w.start() <= column <= w.end()), "")

    def definition(self, line: int, column: int) -> Span | None:
        """The place where the name at a position is defined: in this program, its description, or the library."""
        name, here = self.word(line, column), self.occurrence(line, column)
        if here is not None and here.is_column:
            return self._columns[name].span
        if here is not None and here.is_local:
            return next((one.span for one in self._occurrences if one.binds and one.same(here)), None)
        target = self._definitions.get(name)
        if target is not None:
            return target.span
        return next((entry.span for entry in self._documented(name) if entry.span is not None), None)

    def hover(self, line: int, column: int) -> str:
        """Describes the name at a position in Markdown: what it is and its price, a private source with its cost."""
        name, here = self.word(line, column), self.occurrence(line, column)
        if here is not None and here.is_column:
            column_entry = self._columns[name]
            return f"`{name}`: a column of `{column_entry.table}`, described as `{column_entry.domain}`"
        if here is not None and here.is_local:
            return f"`{name}`: a local name"
        target = self._definitions.get(name)
        if target is None:
            return "\n\n---\n\n".join(entry.markdown for entry in self._documented(name))
        text = f"`{name}`: {target.kind}"
        if target.columns:
            text += "\n\ncolumns: " + ", ".join(target.columns)
        if target.kind == "a private source":
            text += "".join(f"\n\n{cost}" for cost in self._costs() if cost.startswith(name))
        return text

    def signature(self, line: int, column: int) -> Signature | None:
        """The function in whose call a position is."""
        called = argument(self._before(line, column))
        if called is None:
            return None
        name, place, keyword = called
        own = self._definitions.get(name)
        if own is not None:
            usage, parameters, about = f"{name}({', '.join(own.parameters)})", own.parameters, ""
        else:
            entry = next((e for e in self._documented(name) if e.parameters), None)
            if entry is None:
                return None
            usage, parameters, about = entry.usage, entry.parameters, f"{entry.about} {entry.price}".strip()
        names = [re.sub(r" = .*|^\*+", "", parameter) for parameter in parameters]
        active = names.index(keyword) if keyword in names else min(place, max(0, len(parameters) - 1))
        return Signature(usage, parameters, active, about) if parameters else None

    def occurrence(self, line: int, column: int) -> Occurrence | None:
        """The name at a position, with its scope."""
        for one in self._occurrences:
            at = one.span
            if at.line - 1 == line and at.column - 1 <= column <= at.end_column - 1:
                return one
        return None

    def references(self, line: int, column: int) -> list[Span]:
        """All places of what the name at a position means."""
        here = self.occurrence(line, column)
        if here is None:
            return []
        places = [one.span for one in self._occurrences if one.same(here)]
        return [self._columns[here.name].span, *places] if here.is_column else places

    def rename(self, line: int, column: int, new: str) -> list[Span]:
        """The places that change with the name at a position; none where it is not the program's, or `new` is taken."""
        here = self.occurrence(line, column)
        words = lexicon()
        free = _WORD.fullmatch(new) and new not in words.reserved and new not in EVERYWHERE
        exists = any(one.name == new and one.is_own for one in self._occurrences) or new in self._columns
        if here is None or not here.is_own or not free or exists:
            return []
        return list(dict.fromkeys(one.span for one in self._occurrences if one.same(here)))

    def symbols(self) -> list[tuple[str, Definition, list[tuple[str, Column]]]]:
        """The names of the top level in order, each with its described columns."""
        return [
            (name, one, [(c, entry) for c, entry in self._columns.items() if entry.table == name])
            for name, one in self._definitions.items()
        ]

    def meanings(self) -> list[tuple[Occurrence, str, bool]]:
        """Each name with what it is, "column", "parameter", "function", "variable", and whether it is private."""
        out = []
        for one in self._occurrences:
            definition = self._definitions.get(one.name)
            if one.is_column:
                kind = "column"
            elif one.is_local:
                kind = "parameter"
            elif definition is None:
                kind = "variable" if one.is_own or not documentation(one.name) else "builtin"
            else:
                kind = "function" if definition.kind.startswith("a function") else "variable"
            private = one.is_own and not one.is_local and definition is not None and definition.kind in _PRIVATE
            out.append((one, kind, private))
        return out

    def fixes(self, line: int) -> list[tuple[Diagnostic, Fix]]:
        """For the faults that begin in a line, the changes that mend them."""
        faults = self.faults()
        of_line = [fault for fault in faults if fault.span is not None and fault.span.line - 1 == line]
        count = lambda text: len(self._session.check(Source(self.name, text)))  # noqa: E731 (a name for what it does)
        return [(fault, fix) for fault in of_line for fix in fixes(self.text, fault, faults, count)]

    def completions(self, line: int, column: int) -> tuple[str, list[Completion]]:
        """The word begun at a place, and what it can become."""
        names = {name: definition.kind for name, definition in self._definitions.items()}
        columns = {name: definition.columns for name, definition in self._definitions.items() if definition.columns}
        functions = dict.fromkeys([*EVERYWHERE, *self._brought], "a function")
        vocabulary = Vocabulary(
            {**names, **{name: kind for name, kind in functions.items() if name not in names}}, columns,
            values={name: column.values for name, column in self._columns.items() if column.values},
            parameters={name: one.parameters for name, one in self._definitions.items() if one.parameters},
            folder=Path(self.name).parent,
        )  # fmt: skip
        return complete(self._before(line, column), vocabulary)

    def format(self) -> str | None:
        """The text as `jostle fmt` writes it; None where it does not parse."""
        from jostle.syntax.format import format_source

        try:
            return format_source(Source(self.name, self.text))
        except Refusal:
            return None

    def _before(self, line: int, column: int) -> str:
        lines = self.text.split("\n")[: line + 1]
        lines[-1:] = [lines[-1][:column]] if lines else [""]
        return "\n".join(lines)

    def _documented(self, name: str) -> list[Documentation]:
        """The meanings of a name here: of what the program uses where it uses one, else all."""
        entries = documentation(name)
        used = [e for e in entries if not e.module or name in self._brought or e.kind == "module"]
        return used or list(entries)

    def _costs(self) -> list[str]:
        if self.faults():
            return []
        try:
            costs = self._session.costs(Source(self.name, self.text))
        except Refusal:
            return []
        return [f"{c.name}: a run costs it {'an unknown amount' if math.isinf(c.bound) else c}" for c in costs]


def _definitions(tree: n.Program) -> Iterator[tuple[str, Definition]]:
    """The names of a program's top level, first definition first."""
    names: set[str] = set()
    for statement in tree.body:
        match statement:
            case n.Private(name=name, described=described):
                columns = (*_columns(described), *[PERIOD] * _has_periods(statement))
                definition = Definition(statement.span, "a private source", columns)
            case n.Def(name=name, params=params):
                names_of = tuple(p.name for p in params)
                definition = Definition(statement.span, f"a function of ({', '.join(names_of)})", (), names_of)
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
    """The kind of an expression's value, as far as its form says."""
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


def _columns(description: n.Expr | None) -> tuple[str, ...]:
    if description is None:
        return ()
    return tuple(name for node in every(description) if isinstance(node, n.RecordOf) for name, _ in node.items)


def _has_periods(statement: n.Stmt) -> bool:
    return isinstance(statement, n.Private) and statement.budget is not None and " of " in statement.budget.each


def _described(tree: n.Program) -> Iterator[tuple[str, Column]]:
    """The described columns of a program by name."""
    for statement in tree.body:
        match statement:
            case n.Private(name=name, described=n.RecordOf() as record):
                pass
            case n.Assign(name=name, value=n.Described(domains=n.RecordOf() as record)):
                pass
            case _:
                continue
        domains = dict(record.items)
        for column, span in described(record):
            domain = domains[column]
            values: tuple[object, ...] = ()
            if isinstance(domain, n.SetOf):
                values = tuple(item.value for item in domain.items if isinstance(item, n.String | n.Number))
            yield column, Column(span, name, domain.span.text, values)
        if _has_periods(statement):
            yield PERIOD, Column(statement.span, name, "the first day of a row's period")
