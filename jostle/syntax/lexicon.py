"""The words of the language as its grammar has them, and the colours of a text: for pages, editors and terminals.

Everything is read from the terminals of the grammar, so that a word that is added there is coloured everywhere. A
colour is by shape alone: a clause word is coloured as a name (`row`, `rows`, `size`) where only a name may stand, after
an operator or an opening bracket, or before an operator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from jostle.resources import folder

# `_SELECT.2: /select(?!\w)/i`, `CONST.2: /(?:true|false|none)(?!\w)/i`
_WORD = re.compile(r"^_?[A-Z]+(?:\.\d)?: /(?:\(\?:)?([A-Za-z?|]+)\)?\(\?!\\w\)")
_SECTIONS = {"// Reserved everywhere": "reserved", "// Words that open": "opening", "// Words only where": "clause",
             "NAME:": ""}  # fmt: skip


class Lexicon(Struct, frozen=True):
    """`reserved` words are names nowhere, `opening` ones begin a statement, `clause` ones belong to a form."""

    reserved: tuple[str, ...]
    opening: tuple[str, ...]
    clause: tuple[str, ...]

    @property
    def constants(self) -> tuple[str, ...]:
        return ("true", "false", "none")

    @property
    def declarations(self) -> tuple[str, ...]:
        return ("Feature", "Option", "Utility", "MkChoiceMaker")

    @property
    def keywords(self) -> tuple[str, ...]:
        """The reserved words that are neither constants nor declarations."""
        return tuple(w for w in self.reserved if w not in self.constants + self.declarations)


@cache
def lexicon() -> Lexicon:
    """The words of `grammar/jostle.lark`."""
    text = (folder("grammar") / "jostle.lark").read_text(encoding="utf-8")
    sections: dict[str, list[str]] = {"reserved": [], "opening": [], "clause": []}
    section = ""
    for line in text.splitlines():
        section = next((name for start, name in _SECTIONS.items() if line.startswith(start)), section)
        word = _WORD.match(line)
        if section and word:
            for spelling in word[1].split("|"):
                stem = spelling.replace("s?", "s").replace("?", "")
                sections[section].append(stem)
                if spelling.endswith("s?"):
                    sections[section].append(stem[:-1])
    return Lexicon(*(tuple(dict.fromkeys(sections[name])) for name in ("reserved", "opening", "clause")))


def _words(words: tuple[str, ...]) -> str:
    return r"\b(?:" + "|".join(sorted(words, key=len, reverse=True)) + r")\b"


# Clause words that programs use as names: they are none after these, nor before an operator.
_NOUNS = (
    "row", "rows", "size", "group", "groups", "order", "limit", "left", "right", "full", "inner", "outer", "most",
    "each",
)  # fmt: skip
_BEFORE_NAMES = [rf"\b{word} " for word in ("for", "in", "if", "not", "and", "or", "return")]
_BEFORE_NAMES += [r"[-+*/%^<>=(\[{,] ", r"[-+*/%^<>=(\[.]"]


@cache
def shapes() -> tuple[tuple[str, str], ...]:
    """(colour, pattern), first match first. Colours: comment string number constant declaration keyword clause
    function operator."""
    words = lexicon()
    nouns, others = _words(_NOUNS), _words(tuple(word for word in words.clause if word not in _NOUNS))
    before = "".join(f"(?<!{one})" for one in _BEFORE_NAMES)
    return (
        ("comment", r"#[^\n]*|(?m:^[ ]*//[^\n]*)"),
        ("string", r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''),
        ("number", r"\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|(?<![\w.])\.\d+(?:[eE][+-]?\d+)?"),
        ("constant", _words(words.constants)),
        ("declaration", _words(words.declarations)),
        ("keyword", _words(words.keywords + words.opening)),
        (
            "clause",
            rf"(?<=\bprotecting )rows\b|{others}(?!\s*[=(.,)\]])|{before}{nouns}(?!\s*(?:[-+*/%^<>=!(.,:)\[\]]|in\b))",
        ),
        ("function", r"[A-Za-z_]\w*(?=[ ]*\()"),
        ("name", r"[A-Za-z_]\w*"),
        ("operator", r"\{\{|\}\}|\.\.|[-+*/%^<>=!]+"),
    )


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<{colour}>{pattern})" for colour, pattern in shapes()))


def colour_tokens(text: str) -> Iterator[tuple[str, str]]:
    """The text in pieces, each with its colour (`""` for what has none); put together they are the text."""
    at = 0
    for match in _pattern().finditer(text):
        if match.start() > at:
            yield "", text[at : match.start()]
        colour = match.lastgroup or ""
        yield ("" if colour == "name" else colour), match[0]
        at = match.end()
    if at < len(text):
        yield "", text[at:]
