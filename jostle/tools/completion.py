"""What may be typed next: the words that the parser would take there, and the names, columns and fields known.

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
class Known:
    """Names by what they are ("a private table"), columns by the table they are of, fields by name."""

    names: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Completion:
    word: str
    kind: str  # "word", "column", "field", "aggregate", or what the name is


def complete(text: str, known: Known) -> tuple[str, list[Completion]]:
    """The word begun at the end of `text`, and what it can become: columns first in a query, then names, then words."""
    asked = expected(text)
    found: list[Completion] = []
    if asked.after_dot:
        fields = known.fields.get(asked.after_dot, ())
        return asked.typed, [Completion(f, "field") for f in fields if f.startswith(asked.typed)]
    if asked.name:
        if asked.in_query:
            columns = dict.fromkeys(c for table in known.columns.values() for c in table)
            found += [Completion(c, "column") for c in columns]
            found += [Completion(a, "aggregate") for a in AGGREGATES]
        found += [Completion(n, kind) for n, kind in known.names.items()]
        if not asked.typed:
            # With nothing typed, where a name may stand all of them may: the words that only begin a value say little.
            asked_words: Iterable[str] = [w for w in asked.words if w not in _OPEN]
        else:
            asked_words = asked.words
    else:
        asked_words = asked.words
    found += [Completion(w, "word") for w in asked_words]
    seen: dict[str, Completion] = {}
    for one in found:
        if one.word.startswith(asked.typed) and one.word != asked.typed:
            seen.setdefault(one.word, one)
    return asked.typed, list(seen.values())


def known_in(scope: Mapping[str, Any], builtins: Iterable[str]) -> Known:
    """What a session knows: the kind of each name, the columns of its tables, the fields of its values."""
    from jostle.privacy.handles import Table
    from jostle.run.attributes import fields_of
    from jostle.run.values import kind_name

    names = {name: kind_name(value) for name, value in scope.items()}
    columns = {name: tuple(value.domains) for name, value in scope.items() if isinstance(value, Table)}
    fields = {name: tuple(found) for name, value in scope.items() if (found := fields_of(value))}
    return Known({**names, **{b: "a function" for b in builtins if b not in names}}, columns, fields)
