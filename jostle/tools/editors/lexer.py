"""A Pygments lexer, from the words of the grammar: `pip install jostle` is enough for tools that use Pygments."""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, Text, Whitespace

from jostle.syntax.lexicon import shapes

_TOKENS = {
    "comment": Comment.Single, "string": String, "number": Number, "constant": Keyword.Constant,
    "declaration": Keyword.Declaration, "keyword": Keyword, "clause": Keyword.Pseudo, "function": Name.Function,
    "name": Name, "operator": Operator,
}  # fmt: skip


class JostleLexer(RegexLexer):
    """Colours Jostle programs."""

    name = "Jostle"
    aliases: ClassVar[list[str]] = ["jostle", "jst"]
    filenames: ClassVar[list[str]] = ["*.jst"]
    mimetypes: ClassVar[list[str]] = ["text/x-jostle"]
    tokens: ClassVar[dict[str, list[object]]] = {
        "root": [
            (r"\s+", Whitespace),
            *((pattern, _TOKENS[colour]) for colour, pattern in shapes()),
            (r".", Text),
        ]
    }
