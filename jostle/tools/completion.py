"""Completes a text: with what the place asks for, and with words that the parser accepts there.

The REPL knows names, columns and fields from its session, an editor from the text. Nothing is run, and no file is
opened: of paths the names of files are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from jostle.language.aggregates import AGGREGATES
from jostle.language.builtins import BUILTINS
from jostle.language.facts import Effect
from jostle.language.operations import ROW_FUNCTIONS
from jostle.syntax.expected import expected
from jostle.tools.places import Place, place

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
        from jostle.tools.documentation.library import names

        return here.typed, _begun(here.typed, (Completion(name, "module") for name in names()))
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
    from jostle.diagnostics import KINDS
    from jostle.tools.documentation import documented

    name, space, rest = text[1:].partition(" ")
    if not space:
        return name, _begun(name, (Completion(one, "command") for one in COMMANDS))
    rest = rest.lstrip()
    offered: Mapping[str, Callable[[], Iterable[Completion]]] = {
        "load": lambda: (p for p in paths(rest, vocabulary.folder) if p.word.endswith((".jst", "/"))),
        "explain": lambda: (Completion(kind, "kind of error") for kind in KINDS),
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
        given = {*here.given}
        for parameter in _parameters(here.call, vocabulary):
            name = parameter.partition(" = ")[0]
            if not name.startswith("*") and name not in given:
                yield Completion(f"{name} = ", "argument")
    yield from (Completion(name, "column") for name in here.results)
    if here.kind in ("select", "rows", "value"):
        known = [vocabulary.columns[table] for table in here.tables if table in vocabulary.columns]
        for columns in known or vocabulary.columns.values():
            yield from (Completion(column, "column") for column in columns)
    if here.kind == "select":
        yield from (Completion(name, "aggregate") for name in AGGREGATES)


def _names(here: Place, vocabulary: Vocabulary) -> Iterator[Completion]:
    """The names that may stand at a place: tables where one is asked for, in rows no others' functions."""
    for name, kind in vocabulary.names.items():
        row = BUILTINS.get(name)
        is_table = any(word in kind for word in _TABLES)
        if here.kind == "table":
            fits = is_table or (bool(here.typed or name not in BUILTINS) and row is not None and _gives_table(name))
        elif here.kind == "result":
            fits = not is_table and row is None
        elif here.kind in ("rows", "select", "value"):
            fits = not is_table and (row is None or name in ROW_FUNCTIONS or kind != "a function")
        else:
            fits = True
        if fits:
            yield Completion(name, kind)


def _gives_table(name: str) -> bool:
    return BUILTINS[name].effect in (Effect.TRANSFORMS, Effect.DECLARES)


def _parameters(function: str, vocabulary: Vocabulary) -> tuple[str, ...]:
    from jostle.tools.documentation import documentation

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


def vocabulary_of(scope: Mapping[str, Any], builtins: Iterable[str]) -> Vocabulary:
    """The vocabulary of a session: the kind of each name, the columns of its tables, the fields of its values."""
    from jostle.plan.domains import Categories
    from jostle.privacy.kernel.handles import Table
    from jostle.run.attributes import fields_of
    from jostle.run.values import Function, Grouped, Record, kind_name

    names = {name: kind_name(value) for name, value in scope.items()}
    tables = {name: value for name, value in scope.items() if isinstance(value, Table)}
    columns = {name: tuple(table.domains) for name, table in tables.items()}
    values = {
        column: tuple(domain.values)
        for table in tables.values() for column, domain in table.schema if isinstance(domain, Categories)
    }  # fmt: skip
    fields = {name: tuple(names_of_fields) for name, value in scope.items() if (names_of_fields := fields_of(value))}
    elements = {name: tuple(value.columns) for name, value in scope.items() if isinstance(value, Grouped)}
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
