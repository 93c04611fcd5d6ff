"""Completes a text: with words that the parser accepts there, and with names, columns and fields.

The REPL knows them from its session, an editor from the text (`known_from`). Nothing is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jostle.language.aggregates import AGGREGATES
from jostle.syntax.expected import expected

_OPEN = frozenset({"true", "false", "none", "not", "lambda", "Feature", "Option", "Utility"})


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Names by what they are ("a private table"), columns by the table they are of, fields by name."""

    names: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Completion:
    word: str
    kind: str  # "word", "column", "field", "aggregate", or what the name is


def complete(text: str, vocabulary: Vocabulary) -> tuple[str, list[Completion]]:
    """The word begun at the end of `text`, and what it can become: columns first in a query, then names, then words."""
    context = expected(text)
    candidates: list[Completion] = []
    if context.after_dot:
        fields = vocabulary.fields.get(context.after_dot, ())
        return context.typed, [Completion(f, "field") for f in fields if f.startswith(context.typed)]
    if context.name:
        if context.in_query:
            columns = dict.fromkeys(c for table in vocabulary.columns.values() for c in table)
            candidates += [Completion(c, "column") for c in columns]
            candidates += [Completion(a, "aggregate") for a in AGGREGATES]
        candidates += [Completion(n, kind) for n, kind in vocabulary.names.items()]
        if not context.typed:
            # With nothing typed, where a name may stand all of them may: the words that only begin a value say little.
            words: Iterable[str] = [w for w in context.words if w not in _OPEN]
        else:
            words = context.words
    else:
        words = context.words
    candidates += [Completion(w, "word") for w in words]
    unique: dict[str, Completion] = {}
    for one in candidates:
        if one.word.startswith(context.typed) and one.word != context.typed:
            unique.setdefault(one.word, one)
    return context.typed, list(unique.values())


def vocabulary_of(scope: Mapping[str, Any], builtins: Iterable[str]) -> Vocabulary:
    """The vocabulary of a session: the kind of each name, the columns of its tables, the fields of its values."""
    from jostle.privacy.kernel.handles import Table
    from jostle.run.attributes import fields_of
    from jostle.run.values import kind_name

    names = {name: kind_name(value) for name, value in scope.items()}
    columns = {name: tuple(value.domains) for name, value in scope.items() if isinstance(value, Table)}
    fields = {name: tuple(names_of_fields) for name, value in scope.items() if (names_of_fields := fields_of(value))}
    return Vocabulary({**names, **{b: "a function" for b in builtins if b not in names}}, columns, fields)
