"""A Pygments lexer, from the words of the grammar: `pip install jostle` is enough for tools that use Pygments.

A TextMate grammar, for VS Code and other editors, made from the words of ours: `jostle textmate`.
"""

from __future__ import annotations

import json
from typing import ClassVar

from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, Text, Whitespace

from jostle.syntax.parser import shapes

_TOKENS = {
    "comment": Comment.Single, "string": String, "number": Number, "constant": Keyword.Constant,
    "declaration": Keyword.Declaration, "keyword": Keyword, "clause": Keyword.Pseudo, "function": Name.Function,
    "name": Name, "operator": Operator,
}  # fmt: skip


class JostleLexer(RegexLexer):
    name = "Jostle"
    aliases: ClassVar[list[str]] = ["jostle", "jst"]
    filenames: ClassVar[list[str]] = ["*.jst"]
    mimetypes: ClassVar[list[str]] = ["text/x-jostle"]
    tokens: ClassVar[dict[str, list[object]]] = {
        "root": [(r"\s+", Whitespace), *((pattern, _TOKENS[colour]) for colour, pattern in shapes()), (r".", Text)]
    }


_SCOPES = {
    "comment": "comment.line", "string": "string.quoted", "number": "constant.numeric",
    "constant": "constant.language", "declaration": "storage.type", "keyword": "keyword.control",
    "clause": "keyword.other", "function": "entity.name.function", "name": "variable.other",
    "operator": "keyword.operator",
}  # fmt: skip


def command(_: object) -> int:
    """`jostle textmate`: prints the grammar as JSON."""
    patterns = [
        {"name": f"{_SCOPES[colour]}.jostle", "match": pattern.replace("(?m:^[ ]*", "(?:^[ ]*")}
        for colour, pattern in shapes()
    ]
    grammar = {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "Jostle", "scopeName": "source.jostle", "fileTypes": ["jst"], "patterns": patterns,
    }  # fmt: skip
    print(json.dumps(grammar, indent=2, ensure_ascii=False))
    return 0
