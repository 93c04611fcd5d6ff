"""Lines as other languages have them, and the same line as it should be.

`grammar/lines.toml`, and of declarations `clauses.toml`, list them by pattern. They are tried on the line at which a
text stops to parse, and only one that covers the place is meant.
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from jostle.diagnostics import Diagnostic
from jostle.resources import folder
from jostle.source import Source, Span
from jostle.syntax.messages import ErrorPlace, as_line

_END_OF_SELECT = r"(?=\s+with\b|\s*\}\})"


class ForeignLine(Struct, frozen=True):
    """A pattern, why what it matches is not the language, and the way out: the line anew, or a text with its groups."""

    pattern: re.Pattern[str]
    message: str
    write: str = ""
    say: str = ""


@cache
def foreign_lines() -> tuple[ForeignLine, ...]:
    """The tables, in their order."""
    import tomllib

    texts = ((folder("grammar") / name).read_text(encoding="utf-8") for name in ("clauses.toml", "lines.toml"))
    return tuple(
        ForeignLine(re.compile(entry.pop("pattern").replace("<end>", _END_OF_SELECT)), **entry)
        for text in texts
        for entry in tomllib.loads(text)["line"]
    )


def by_line(place: ErrorPlace) -> Diagnostic | None:
    """What is said of a line of another language at a place where a text does not parse."""
    return at_line(place.source, place.span)


def at_line(source: Source, place: Span) -> Diagnostic | None:
    """What is said of a line of another language at this place."""
    text = source.line(place.line)
    line, indented = text.strip(), len(text) - len(text.lstrip())
    at = place.column - 1 - indented
    for foreign in foreign_lines():
        for match in foreign.pattern.finditer(line):
            if match.start() <= at <= match.end():
                group: int | str = "at" if "at" in foreign.pattern.groupindex else 0
                first, last = (indented + end + 1 for end in match.span(group))
                span = Span(source, place.line, first, place.line, max(last, first + 1))
                return Diagnostic("SyntaxError", foreign.message, span, help=_way_out(foreign, match, line))
    return None


def _way_out(foreign: ForeignLine, match: re.Match[str], line: str) -> str:
    if foreign.say:
        return match.expand(foreign.say)
    return as_line(foreign.pattern.sub(foreign.write, line), match.expand(foreign.write))
