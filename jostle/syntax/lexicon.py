"""The words of the language as its grammar has them, and the colours of a text: for pages, editors and terminals.

Everything is read from the terminals of the grammar, so that a word that is added there is coloured everywhere. A
colour is by shape alone: a clause word is coloured as a name (`row`, `rows`, `size`) where only a name may stand, after
an operator or an opening bracket, or before an operator.

The words that may come next at a place of a text, from the parser itself, for editors and the REPL.

Only the statement in which the text ends is parsed, so that an answer does not take longer in a long program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from lark import Lark
from lark.exceptions import LarkError
from msgspec import Struct

from jostle.diagnostics import Refusal
from jostle.resources import folder
from jostle.syntax.builder import Builder
from jostle.syntax.layout import Layout, LayoutError
from jostle.syntax.parser import load

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


_WORD_BEFORE = re.compile(r"[A-Za-z_]\w*$")
_GOES_ON = re.compile(r"[\s)\]}#]|else\b|predict\b|//|$")
# Terminals that are words, by what they are called in the grammar.
_SPELLED = {"_DOTS": "", "KIND": "Feature Option Utility", "MKCHOICE": "MkChoiceMaker", "CONST": "true false none",
            "_ROWS": "rows", "_GROUPBY": "groupby", "_GROUP": "", "_UPTO": "up", "_GROUPS": "groups",
            "DIRECTION": "asc desc"}  # fmt: skip
# Those with which a statement goes on in a new line.
_CLAUSES = frozenset({
    "_DESCRIBED", "_PROTECTING", "_BUDGET", "_COUNTED", "_AMONG", "_INFORMED", "_TRAINED", "_USING", "_SPENDING",
    "_WRT", "_PREDICT", "_ELSE",
})  # fmt: skip


class Expected(Struct, frozen=True):
    """The possible continuations of a text: `words` of the language, and whether a `name` may follow `typed`.

    `after_dot`: the name before the dot, where a field is wanted; `in_query`: whether the place is inside `{{ }}`.
    """

    words: tuple[str, ...]
    name: bool
    typed: str
    after_dot: str = ""
    in_query: bool = False


class _OpenLayout(Layout):
    """A layout that leaves the last statement open."""

    finishes = False


@cache
def _parser() -> tuple[Lark, Layout]:
    layout = _OpenLayout()
    return load(Builder(), layout), layout


def expected(text: str) -> Expected:
    """Returns the possible continuations of `text`."""
    word = _WORD_BEFORE.search(text)
    typed = word[0] if word else ""
    before = text[: len(text) - len(typed)]
    dot = re.search(r"([A-Za-z_]\w*)\.$", before)
    if dot:
        return Expected((), True, typed, after_dot=dot[1])
    line = before[before.rfind("\n") + 1 :]
    if "#" in line or line.count('"') % 2 or line.count("'") % 2:
        return Expected((), False, typed)
    if re.search(r"\bwith +$", line):  # `with` is a word of the language only before one of these
        return Expected(("epsilon", "error", "rho", "weight"), False, typed)
    statement = last_statement(before)
    accepted, in_query = _accepted(statement)
    if statement.strip() and not line.strip():  # on a new line a statement may begin, or the last one go on
        accepted = accepted | (_accepted(statement.rstrip())[0] & _CLAUSES)
    words = {word for terminal in accepted for word in _spelled(terminal)} - {"external"}
    if not in_query:
        words.discard("select")
    return Expected(tuple(sorted(words)), not accepted or "NAME" in accepted, typed, in_query=in_query)


def _accepted(text: str) -> tuple[set[str], bool]:
    """The terminals that may follow, none where the text is wrong before; and whether it ends within a query."""
    lark, layout = _parser()
    try:
        parser = lark.parse_interactive(text)
        parser.exhaust_lexer()
        terminals: set[str] = parser.accepts()  # type: ignore[no-untyped-call]
        return terminals, any(frame.kind == "query" for frame in layout.frames)
    except (LayoutError, LarkError, Refusal):
        return set(), any(frame.kind == "query" for frame in layout.frames)


def last_statement(text: str) -> str:
    """The text from the beginning of its last top-level statement."""
    lines = text.split("\n")
    start = len(lines) - 1
    while start > 0 and (_GOES_ON.match(lines[start]) or _clause(lines[start])):
        start -= 1
    return "\n".join(lines[start:])


def _clause(line: str) -> bool:
    """Whether a line at the margin goes on with the statement before it."""
    first = re.match(r"[A-Za-z]+ ", line)
    return bool(first) and first is not None and first[0].strip() in (
        "informed", "described", "counted", "trained", "protecting", "among", "using", "spending", "wrt"
    )  # fmt: skip


def _spelled(terminal: str) -> list[str]:
    if terminal in _SPELLED:
        return _SPELLED[terminal].split()
    word = terminal.removeprefix("_").lower()
    words = lexicon()
    return [word] if word in words.reserved + words.opening + words.clause else []
