"""Completes a text: with what the place asks for, and with words that the parser accepts there.

The REPL knows names, columns and fields from its session, an editor from the text. What a place asks for is told by
shape alone, from the last statement up to it. Nothing is run, and no file is opened: of paths the names of files are
looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, pairwise
from pathlib import Path

from msgspec import Struct, field

from jostle.language.aggregates import AGGREGATES
from jostle.language.builtins import BUILTINS
from jostle.language.facts import Effect
from jostle.language.row_functions import ROW_FUNCTIONS
from jostle.resources import library
from jostle.syntax.parser import expected, last_statement

_NAME = r"[A-Za-z_]\w*"
_OPENS_FILE = re.compile(r'\b(?:table|counts|vectors_in)\s*\(\s*(?:\[\s*(?:"[^"]*"\s*,\s*)*)?$')
# `city == `, `city in {"Ames", `, `groupby city over {`, `people[city = `
_COMPARED = re.compile(
    rf"(?:({_NAME})\s*[!=]=|({_NAME})\s+(?:not\s+)?in\s*[\[{{(][^\]}})]*|by\s+({_NAME})\s+over\s*[\[{{][^\]}}]*"
    rf"|[\[,]\s*({_NAME})\s*=)\s*$",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"\b(select|from|join|on|where|having|per|over|group\s*by|order\s+by|up\s+to|limit|with|via)\b", re.IGNORECASE
)
_COLUMNS_ONLY = ("where", "per", "groupby", "on")


class Place(Struct, frozen=True):
    """What is asked for: `kind`, what was typed of it, and what it is of.

    Kinds: "module", "path", "value" (of the column `of`; `quoted` inside a text), "text" (nothing is offered), "table",
    "rows" (an expression on rows: no aggregate), "select" (a column of a select), "result" (of released groups), "" for
    anything. `tables`: what the query around asks, as far as it is written; `results`: the names of what it gives.
    `call`: the function of which an argument begins here, with the names already `keywords`.
    """

    kind: str = ""
    typed: str = ""
    of: str = ""
    quoted: bool = False
    tables: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    call: str = ""
    keywords: tuple[str, ...] = ()


def place(text: str) -> Place:
    """What the end of a text asks for."""
    statement = last_statement(text)
    line = statement.rpartition("\n")[2]
    if module := re.match(r"\s*use +([\w.]*)$", line):
        return Place("module", module[1])
    scan = _Scan(statement)
    if scan.comment:
        return Place("text")
    if scan.text is not None:
        return _inside_text(statement[: scan.text], statement[scan.text + 1 :])
    word = re.search(rf"(?:{_NAME})?$", statement)
    typed = word[0] if word else ""
    before = statement[: len(statement) - len(typed)]
    around, query = _around(before, scan), _query(before, scan)
    call, keywords = _beginning(around, scan)
    tables = tuple(re.findall(rf"\b(?:from|join)\s+({_NAME})", query, re.IGNORECASE))
    compared = _COMPARED.search(before) if query or before.rstrip().endswith("=") else None
    if compared and (any(compared.groups()[:3]) or scan.innermost == "["):
        return Place("value", typed, next(filter(None, compared.groups())), False, tables)
    kind = _kind(query) if query else ""
    if around is not None and around.name in AGGREGATES and kind == "select":
        kind, call = "rows", ""
    elif around is not None and around.parts[1:] and (row := BUILTINS.get(around.name)) is not None and row.over_rows:
        first = re.search(rf"{around.name}\s*\(\s*({_NAME})[^()]*(?:\([^()]*)*$", before)
        kind, tables = "rows", (first[1],) if first else ()
    results = tuple(re.findall(rf"\bas\s+({_NAME})|group\s*by\s+({_NAME})", query, re.IGNORECASE))
    names = tuple(filter(None, chain(*results)))
    return Place(kind, typed, "", False, tables, names if kind == "result" else (), call, keywords)


def _inside_text(before: str, typed: str) -> Place:
    """What a text that is not closed yet asks for: a file, a value of the column that is compared, or nothing."""
    if _OPENS_FILE.search(before):
        return Place("path", typed)
    compared = _COMPARED.search(before)
    column = next(filter(None, compared.groups()), "") if compared else ""
    return Place("value" if column else "text", typed, column, quoted=True)


class _Around(Struct, frozen=True):
    """The function in whose call a text ends, where its bracket stands, and what is written of its arguments."""

    name: str
    at: int
    parts: tuple[str, ...]


def _keyword(part: str) -> str:
    own = re.match(rf"\s*({_NAME})\s*=(?!=)", part)
    return own[1] if own else ""


def argument(text: str) -> tuple[str, int, str] | None:
    """The function in whose call a text ends, which argument that is (from 0), and its name where it has one."""
    statement = last_statement(text)
    around = _around(statement, _Scan(statement))
    return None if around is None else (around.name, len(around.parts) - 1, _keyword(around.parts[-1]))


def _around(statement: str, scan: _Scan) -> _Around | None:
    for bracket, at, commas in reversed(scan.brackets):
        name = re.search(rf"({_NAME})\s*$", statement[:at])
        if bracket == "(" and name and name[1] not in ("in", "and", "or", "not", "if", "return"):
            ends = pairwise([at, *commas, len(statement)])
            return _Around(name[1], at, tuple(statement[start + 1 : end] for start, end in ends))
        if bracket == "{{":
            return None
    return None


def _beginning(around: _Around | None, scan: _Scan) -> tuple[str, tuple[str, ...]]:
    """The function whose next argument begins where a text ends, and the names of those that it was given."""
    if around is None or around.at != scan.last or around.parts[-1].strip():
        return "", ()
    return around.name, tuple(name for name in map(_keyword, around.parts) if name)


class _Scan:
    """The open brackets of a text with the commas in each, and whether it ends in a comment or a text (which begins at
    `text`)."""

    def __init__(self, statement: str) -> None:
        self.brackets: list[tuple[str, int, list[int]]] = []
        self.text: int | None = None
        self.comment = False
        i = 0
        while i < len(statement):
            char = statement[i]
            if self.comment:
                self.comment = char != "\n"
            elif self.text is not None:
                if char == "\\":
                    i += 1
                elif char == statement[self.text] or char == "\n":
                    self.text = None
            elif char in "\"'":
                self.text = i
            elif char == "#":
                self.comment = True
            elif statement[i : i + 2] == "{{":
                self.brackets.append(("{{", i, []))
                i += 1
            elif char in "([{":
                self.brackets.append((char, i, []))
            elif char in ")]}" and self.brackets:
                i += self.brackets.pop()[0] == "{{"
            elif char == "," and self.brackets:
                self.brackets[-1][2].append(i)
            i += 1

    @property
    def last(self) -> int:
        """Where the innermost open bracket stands."""
        return self.brackets[-1][1] if self.brackets else -1

    @property
    def innermost(self) -> str:
        return self.brackets[-1][0] if self.brackets else ""


def _query(before: str, scan: _Scan) -> str:
    """The select in which a text ends, without the calls and sub-selects that are closed; empty outside a query."""
    starts = [at for bracket, at, _ in scan.brackets if bracket == "{{"]
    if not starts:
        return ""
    inside = [at for _, at, _ in scan.brackets if at > starts[-1]]
    start = next((at for at in reversed(inside) if re.match(r"\(\s*select\b", before[at:])), starts[-1])
    text = before[start:]
    while (shorter := re.sub(r"\([^()]*\)", "", text)) != text:
        text = shorter
    return text


def _kind(query: str) -> str:
    *_, clause = [None, *_CLAUSE.finditer(query)]
    if clause is None:
        return ""
    word = re.sub(r"\s", "", clause[1].lower())
    rest = query[clause.end() :]
    if word in ("from", "join"):
        return "table" if not rest.strip() else ""
    if word in _COLUMNS_ONLY:
        return "rows"
    return {"select": "select", "having": "result", "orderby": "result"}.get(word, "")


_OPEN = frozenset({"true", "false", "none", "not", "lambda", "case", "Feature", "Option", "Utility", "MkChoiceMaker"})
COMMANDS = ("help", "budget", "trace", "names", "type", "cost", "why", "explain", "load", "time", "quit")
"""The commands of the shell, after a colon."""

_TABLES = ("table", "source", "cube", "counts")


class Vocabulary(Struct, frozen=True):
    """Names by what they are ("a private table"), columns by the table they are of, fields by name.

    `values`: the listed values of a column, which are public; `elements`: the fields of what a list or a result holds;
    `parameters`: those of functions that the documentation does not know; `folder`: where paths begin.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    values: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    elements: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    folder: Path | None = None


class Completion(Struct, frozen=True):
    word: str
    kind: str  # "word", "column", "field", "aggregate", "value", "path", "module", "argument", or what the name is


def complete(text: str, vocabulary: Vocabulary) -> tuple[str, list[Completion]]:
    """The word begun at the end of `text`, and what it can become: what the place asks for, then names, then words."""
    here = place(text)
    if here.kind == "text":
        return here.typed, []
    if here.kind == "module":
        return here.typed, _begun(here.typed, (Completion(name, "module") for name in library()))
    if here.kind == "path":
        data = (one for one in paths(here.typed, vocabulary.folder) if not one.word.endswith(".jst"))
        return here.typed, _begun(here.typed, data)
    if here.kind == "value" and here.quoted:
        texts = [value for value in vocabulary.values.get(here.of, ()) if isinstance(value, str)]
        return here.typed, _begun(here.typed, (Completion(value, "value") for value in texts))
    if element := re.search(r"([A-Za-z_]\w*)\[[^\[\]]*\]\.(\w*)$", text):
        fields = vocabulary.elements.get(element[1], ())
        return element[2], _begun(element[2], (Completion(f, "field") for f in fields))
    context = expected(text)
    if context.after_dot:
        fields = vocabulary.fields.get(context.after_dot, ()) or vocabulary.columns.get(context.after_dot, ())
        return context.typed, _begun(context.typed, (Completion(f, "field") for f in fields))
    candidates = [*_of_place(here, vocabulary)]
    words: Iterable[str] = context.words
    if context.name:
        candidates += _names(here, vocabulary)
        if not context.typed:
            # With nothing typed, where a name may stand all of them may: the words that only begin a value say little.
            words = () if here.kind == "table" else (word for word in words if word not in _OPEN)
    candidates += [Completion(word, "word") for word in words]
    return context.typed, _begun(context.typed, candidates)


def paths(typed: str, folder: Path | None) -> Iterator[Completion]:
    """The files and folders that a path begun can become, as it was begun; hidden ones where a point was typed."""
    begun, slash, last = typed.rpartition("/")
    place = (folder or Path()) / Path(begun + slash).expanduser()
    try:
        entries = sorted(place.iterdir())
    except OSError:
        return
    for entry in entries:
        if not entry.name.startswith(".") or last.startswith("."):
            yield Completion(f"{begun}{slash}{entry.name}{'/' if entry.is_dir() else ''}", "path")


def command(text: str, vocabulary: Vocabulary) -> tuple[str, list[Completion]]:
    """The same for a command of the shell, a text that begins with a colon."""
    from jostle.documentation import ALL, documented

    name, space, rest = text[1:].partition(" ")
    if not space:
        return name, _begun(name, (Completion(one, "command") for one in COMMANDS))
    rest = rest.lstrip()
    offered: Mapping[str, Callable[[], Iterable[Completion]]] = {
        "load": lambda: (p for p in paths(rest, vocabulary.folder) if p.word.endswith((".jst", "/"))),
        "explain": lambda: (Completion(kind, "kind of error") for kind in ALL),
        "why": lambda: (Completion(n, kind) for n, kind in vocabulary.names.items() if n not in BUILTINS),
        "type": lambda: (Completion(n, kind) for n, kind in vocabulary.names.items()),
        "help": lambda: (Completion(entry.name, entry.kind) for entry in documented()),
    }
    if name == "cost":
        return complete(rest, vocabulary)
    return rest, _begun(rest, offered[name]()) if name in offered else []


def _of_place(here: Place, vocabulary: Vocabulary) -> Iterator[Completion]:
    """What the place asks for before all else."""
    if here.kind == "value":
        values = vocabulary.values.get(here.of, ())
        yield from (Completion(f'"{value}"' if isinstance(value, str) else str(value), "value") for value in values)
    if here.call:
        keywords = {*here.keywords}
        for parameter in _parameters(here.call, vocabulary):
            name = parameter.partition(" = ")[0]
            if not name.startswith("*") and name not in keywords:
                yield Completion(f"{name} = ", "argument")
    yield from (Completion(name, "column") for name in here.results)
    if here.kind in ("select", "rows", "value"):
        tables = [vocabulary.columns[table] for table in here.tables if table in vocabulary.columns]
        for columns in tables or vocabulary.columns.values():
            yield from (Completion(column, "column") for column in columns)
    if here.kind == "select":
        yield from (Completion(name, "aggregate") for name in AGGREGATES)


def _names(here: Place, vocabulary: Vocabulary) -> Iterator[Completion]:
    """The names that may stand at a place: tables where one is asked for, in rows no others' functions."""
    for name, kind in vocabulary.names.items():
        row = BUILTINS.get(name)
        is_table = any(word in kind for word in _TABLES)
        if here.kind == "table":
            gives_table = row is not None and row.effect in (Effect.TRANSFORMS, Effect.DECLARES)
            fits = is_table or (bool(here.typed) and gives_table)
        elif here.kind == "result":
            fits = not is_table and row is None
        elif here.kind in ("rows", "select", "value"):
            fits = not is_table and (row is None or name in ROW_FUNCTIONS or kind != "a function")
        else:
            fits = True
        if fits:
            yield Completion(name, kind)


def _parameters(function: str, vocabulary: Vocabulary) -> tuple[str, ...]:
    from jostle.documentation import documentation

    if function in vocabulary.parameters:
        return vocabulary.parameters[function]
    return next((entry.parameters for entry in documentation(function) if entry.kind != "aggregate"), ())


def _begun(typed: str, candidates: Iterable[Completion]) -> list[Completion]:
    """Those that go on from what was typed, each once."""
    unique: dict[str, Completion] = {}
    for one in candidates:
        if one.word.startswith(typed) and one.word != typed:
            unique.setdefault(one.word, one)
    return list(unique.values())


def vocabulary_of(scope: Mapping[str, object], builtins: Iterable[str]) -> Vocabulary:
    """The vocabulary of a session: the kind of each name, the columns of its tables, the fields of its values."""
    from jostle.plan.plan import Categories
    from jostle.privacy.kernel.handles import Table
    from jostle.run.expressions import fields_of
    from jostle.run.values import Function, Grouped, Record, kind_name

    names = {name: kind_name(value) for name, value in scope.items()}
    tables = {name: value for name, value in scope.items() if isinstance(value, Table)}
    columns = {name: tuple(table.domains) for name, table in tables.items()}
    values = {
        column: tuple(domain.values)
        for table in tables.values() for column, domain in table.schema if isinstance(domain, Categories)
    }  # fmt: skip
    fields = {name: tuple(names_of_fields) for name, value in scope.items() if (names_of_fields := fields_of(value))}
    elements = {name: tuple(value.parts) for name, value in scope.items() if isinstance(value, Grouped)}
    elements |= {
        name: tuple(value[0])
        for name, value in scope.items() if isinstance(value, list) and value and isinstance(value[0], Record)
    }  # fmt: skip
    parameters = {
        name: tuple(parameter for parameter, _ in value.params)
        for name, value in scope.items() if isinstance(value, Function)
    }  # fmt: skip
    kinds = {**names, **{b: "a function" for b in builtins if b not in names}}
    return Vocabulary(kinds, columns, fields, values, elements, parameters, Path.cwd())
