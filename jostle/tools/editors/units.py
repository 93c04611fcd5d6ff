"""Places as editors count them: lines from 0, columns in UTF-16 code units unless editor and server agreed on others.

Documents and spans count characters, of which some are two units long in UTF-16 and up to four in UTF-8.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from jostle.source import Span

_SIZES = {"utf-8": 1, "utf-16": 2, "utf-32": 4}  # bytes of a unit


class Units(Struct, frozen=True):
    """The units that one editor counts in; `lsp` is the module of the protocol's types."""

    lsp: Any
    encoding: str = "utf-16"

    def wide(self, text: str) -> int:
        """How many units a text has."""
        encoding = "utf-8" if self.encoding == "utf-8" else f"{self.encoding}-le"
        return len(text.encode(encoding, "surrogatepass")) // _SIZES[self.encoding]

    def characters(self, line: str, units: int) -> int:
        """How many characters of a line begin before its first `units`."""
        seen = 0
        for at, character in enumerate(line):
            if seen >= units:
                return at
            seen += self.wide(character)
        return len(line)

    def position(self, lines: list[str], line: int, column: int) -> Any:
        """A place in a text, from its line and character."""
        before = lines[line][:column] if line < len(lines) else ""
        return self.lsp.Position(line, self.wide(before))

    def range(self, span: Span | None) -> Any:
        """What a span covers; without one, the first character of the text."""
        if span is None:
            return self.lsp.Range(self.lsp.Position(0, 0), self.lsp.Position(0, 1))
        lines = span.source.text.split("\n")
        return self.lsp.Range(
            self.position(lines, span.line - 1, span.column - 1),
            self.position(lines, span.end_line - 1, span.end_column - 1),
        )
