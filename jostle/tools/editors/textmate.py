"""A TextMate grammar, for VS Code and other editors, made from the words of ours: `jostle textmate`."""

from __future__ import annotations

import json

from jostle.syntax.lexicon import shapes

_SCOPES = {
    "comment": "comment.line", "string": "string.quoted", "number": "constant.numeric",
    "constant": "constant.language", "declaration": "storage.type", "keyword": "keyword.control",
    "clause": "keyword.other", "function": "entity.name.function", "name": "variable.other",
    "operator": "keyword.operator",
}  # fmt: skip


def textmate() -> str:
    """The grammar as JSON."""
    patterns = [
        {"name": f"{_SCOPES[colour]}.jostle", "match": pattern.replace("(?m:^[ ]*", "(?:^[ ]*")}
        for colour, pattern in shapes()
    ]
    grammar = {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "Jostle", "scopeName": "source.jostle", "fileTypes": ["jst"], "patterns": patterns,
    }  # fmt: skip
    return json.dumps(grammar, indent=2, ensure_ascii=False) + "\n"
