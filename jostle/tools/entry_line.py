"""The line that a person types in, coloured and completed: `prompt_toolkit`'s faces of `lexicon` and `completion`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.lexers import Lexer
    from prompt_toolkit.styles import Style

    from jostle.tools.completion import Vocabulary

_COLOURS = {
    "comment": "ansibrightblack italic", "string": "ansigreen", "number": "ansiyellow", "constant": "ansiyellow",
    "declaration": "ansimagenta bold", "keyword": "ansiblue bold", "clause": "ansicyan", "function": "ansiblue",
}  # fmt: skip


def style() -> Style:
    from prompt_toolkit.styles import Style

    return Style.from_dict({f"jst.{colour}": look for colour, look in _COLOURS.items()})


def highlighter() -> Lexer:
    """Colours what is typed, by shape."""
    from prompt_toolkit.document import Document
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.lexers import Lexer

    from jostle.syntax.lexicon import colour_tokens

    class Highlighter(Lexer):
        def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
            lines = document.lines

            def line(number: int) -> StyleAndTextTuples:
                text = lines[number] if number < len(lines) else ""
                return [(f"class:jst.{c}" if c in _COLOURS else "", piece) for c, piece in colour_tokens(text)]

            return line

    return Highlighter()


def completer(vocabulary: Callable[[], Vocabulary]) -> Completer:
    """Completes names, columns, fields and the words that may come next; commands after a colon."""
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document

    from jostle.tools.completion import command, complete

    class Words(Completer):
        def get_completions(self, document: Document, _event: CompleteEvent) -> Iterable[Completion]:
            text = document.text_before_cursor
            is_command = text.lstrip().startswith(":")
            typed, candidates = command(text.lstrip(), vocabulary()) if is_command else complete(text, vocabulary())
            for one in candidates:
                yield Completion(one.word, start_position=-len(typed), display_meta=one.kind)

    return Words()
