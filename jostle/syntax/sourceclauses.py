"""Words in a declaration of a private source that begin no clause of it: `budgte epsilon 1`, `protect rows`."""

from __future__ import annotations

import difflib
import re

from jostle.diagnostics import Diagnostic
from jostle.source import Source, Span
from jostle.syntax.messages import ErrorPlace, as_line, at_line

_CLAUSES = {"described": "described by", "protecting": "protecting", "budget": "budget"}
_OTHERS = {
    "describe": "described by", "describing": "described by", "schema": "described by", "columns": "described by",
    "protect": "protecting", "protects": "protecting", "protected": "protecting", "unit": "protecting",
    "epsilon": "budget epsilon", "eps": "budget epsilon", "rho": "budget rho", "spending": "budget",
    "limit": "budget", "with": "budget",
}  # fmt: skip
_WORD = re.compile(r"([A-Za-z_]\w*)(\s*by\b|\s*[:=])?\s*")
_WORDS = re.compile(r"\b(?:described by|protecting|budget|rows|epsilon|rho|delta|up to)\b", re.IGNORECASE)
_NEXT = re.compile(r"\s*\b(?:described by|protecting|budget)\b|\s*#|$")


def of_a_source(place: ErrorPlace) -> Diagnostic | None:
    """A word at a place outside brackets, where a clause could begin."""
    return None if place.frame.opener is not None else misspelt(place.source, place.span)


def indented(source: Source, place: Span) -> Diagnostic | None:
    """A line of a declaration that is no clause of it, and so not a part of the line above."""
    return (at_line(source, place) or misspelt(source, place)) if _is_declared_above(source, place) else None


def misspelt(source: Source, place: Span) -> Diagnostic | None:
    """A word of a declaration that is like one that begins a clause, or means one."""
    line = source.line(place.line)
    word = _WORD.match(line, place.column - 1)
    if word is None or not _is_in_declaration(source, place):
        return None
    name = word[1].lower()
    close = difflib.get_close_matches(name, _CLAUSES, n=1, cutoff=0.6)
    clause = _OTHERS.get(name) or (_CLAUSES[close[0]] if close else "")
    if not clause:
        return None
    if name in _CLAUSES and name != word[1]:
        line = line[: place.column - 1] + _WORDS.sub(lambda one: one[0].lower(), line[place.column - 1 :])
    end = _NEXT.search(line, word.end())
    rest = line[word.end() : end.start() if end is not None else len(line)].strip()
    right = f"{clause} {rest}".strip()
    after = line[end.start() :].strip() if end is not None else ""
    repair = f"{line[: place.column - 1].strip()} {right} {after}".strip()
    span = Span(source, place.line, place.column, place.line, place.column + len(word[1]))
    message = f"`{word[1]}` begins no clause of a private source"
    return Diagnostic("SyntaxError", message, span, "unknown here", as_line(repair, right))


def _is_in_declaration(source: Source, place: Span) -> bool:
    """Whether a place stands behind the source of a declaration, in its line or below it."""
    if re.match(r"private\s+\w+\s*=.*\S", source.line(place.line)[: place.column - 1]):
        return True
    return _is_declared_above(source, place)


def _is_declared_above(source: Source, place: Span) -> bool:
    """Whether the last line above that is not indented declares a private source."""
    if source.line(place.line)[: place.column - 1].strip() or place.column == 1:
        return False
    above = (source.line(number) for number in range(place.line - 1, 0, -1))
    first = next((line for line in above if line[:1].strip()), "")
    return re.match(r"private\s+\w+\s*=", first) is not None
