"""The documentation of every name and word of the language: one table for the shell, notebooks, editors and pages.

`documentation("floor")` gives the meanings of a name: a built-in function, an aggregate of a select, a word, what a
module of the library defines, a module. Each says how it is written (`usage`), what it costs (`price`), what it is in a
sentence (`about`), a module that `use` must name (`module`, empty where none), and an `example` of a line or few.
`documented()` is all of them, `given()` the declarations that every example stands below. The rows come from where they
are needed anyway: `language.builtins`, `language.aggregates`, the comments of `stdlib/*.jst`; words from `words`. The
examples are programs, `examples/*.jst`, which the tests run; where one asserts what it gives, `shown` has that as a
comment. `entry.text()` is for terminals, `entry.markdown` for editors and pages.

Nothing private is opened and nothing runs here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from jostle.tools.documentation.entries import Documentation, aggregates, builtins, given, modules, words

__all__ = ["Documentation", "documentation", "documented", "given"]


def documentation(name: str) -> tuple[Documentation, ...]:
    """The meanings of a name; a function of the language comes first, then its other meanings, by module."""
    return _by_name().get(name, ())


@cache
def documented() -> tuple[Documentation, ...]:
    """All entries: built-ins, aggregates, words, modules and what these define."""
    return tuple(_entries())


@cache
def _by_name() -> dict[str, tuple[Documentation, ...]]:
    groups: dict[str, list[Documentation]] = {}
    for entry in documented():
        groups.setdefault(entry.name, []).append(entry)
    return {name: tuple(entries) for name, entries in groups.items()}


def _entries() -> Iterator[Documentation]:
    yield from builtins()
    yield from aggregates()
    yield from words()
    yield from modules()
