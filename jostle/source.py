"""Program text and places in it.

Everything that can be wrong in a program is said about a place, so every tree node and every event carries a
`Span`. This module knows nothing else of the language.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec import Struct


@dataclass(frozen=True, slots=True)
class Source:
    """A named text: a file, a REPL entry, or a module of the standard library."""

    name: str
    text: str = field(repr=False)

    def line(self, number: int) -> str:
        """The `number`-th line (from 1) without its end, or an empty string beyond the text."""
        lines = self.text.split("\n")
        return lines[number - 1].rstrip("\r") if 1 <= number <= len(lines) else ""


class Span(Struct, frozen=True):
    """A stretch of a source; lines and columns count from 1, `end_column` is one past the last character."""

    source: Source
    line: int
    column: int
    end_line: int
    end_column: int

    def to(self, other: Span) -> Span:
        """From the start of this one to the end of `other`."""
        return Span(self.source, self.line, self.column, other.end_line, other.end_column)

    def within(self, other: Span) -> bool:
        start, end = (self.line, self.column), (self.end_line, self.end_column)
        return self.source == other.source and (other.line, other.column) <= start and end <= (
            other.end_line, other.end_column
        )  # fmt: skip

    @property
    def text(self) -> str:
        """What stands there, in one line."""
        lines = self.source.text.split("\n")[self.line - 1 : self.end_line]
        if lines:
            lines[-1] = lines[-1][: self.end_column - 1]
            lines[0] = lines[0][self.column - 1 :]
        return " ".join(" ".join(lines).split())

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"
