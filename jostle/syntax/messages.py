"""Diagnostics of texts that do not parse.

The parser says only where it stopped. This module turns that place into a diagnostic in the user's words: first by the
sign or word that stands there (`grammar/messages.toml`), then by its surroundings (`common_mistakes`), at last in
general. It looks at the text and at the tokens of the statement so far, never at a tree.

Lines as other languages have them, and the same line as it should be.

`clauses.toml`, `desks.toml` and `lines.toml` of `grammar` list them by pattern. They are tried on the line at which a
text stops to parse, and only one that covers the place is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from msgspec import Struct

from jostle.diagnostics import Diagnostic, Note
from jostle.resources import folder
from jostle.source import Source, Span
from jostle.syntax.layout import ENDS_AN_EXPRESSION, Frame, Layout, LayoutError

_MOST = 110  # characters of a line that is written out
Entry = dict[str, str]
Entries = dict[str, dict[str, Entry]]


@cache
def entries() -> Entries:
    """The table of words and signs, by section; `pattern` and `write` make the line that an entry's help is then."""
    import tomllib

    tables = tomllib.loads((folder("grammar") / "messages.toml").read_text(encoding="utf-8"))
    return {"phrase": tables.pop("phrase")} | {of: _by_name(table) for of, table in tables.items()}


def _by_name(table: dict[str, Entry]) -> dict[str, Entry]:
    every = [(name, entry) for names, entry in table.items() for name in names.split(" ")]
    return {name: {of: text.replace("<it>", name) for of, text in entry.items()} for name, entry in every}


class ErrorPlace(Struct, frozen=True):
    """The place where the parser stopped: its text, the tokens before it, open brackets, and the expected tokens."""

    source: Source
    position: int
    span: Span
    text: str  # as written; empty at the end of the text
    type: str  # the token's type, or "" for a sign that is no token
    statement: tuple[Token, ...]  # of the innermost statement, up to what was found
    frames: tuple[Frame, ...]
    expected: frozenset[str]

    @classmethod
    def of_token(cls, error: UnexpectedToken, layout: Layout, source: Source) -> ErrorPlace:
        token = error.token
        statement = tuple(layout.statement)
        if statement and statement[-1] is token:
            statement = statement[:-1]
        newline = token.type in ("_NL", "_NL_ELSE", "_NL_WITH", "$END", "_DEDENT")
        span = token_span(token, source)
        if newline and statement:
            last = token_span(statement[-1], source)
            span = Span(source, last.end_line, last.end_column, last.end_line, last.end_column + 1)
        elif newline:
            span = Span(source, span.line, span.column, span.line, span.column + 1)
        text = "" if newline else str(token)
        expected = frozenset(error.expected or ())
        return cls(source, token.start_pos or 0, span, text, token.type, statement, tuple(layout.frames), expected)

    @classmethod
    def of_character(cls, error: UnexpectedCharacters, layout: Layout, source: Source) -> ErrorPlace:
        span = Span(source, error.line, error.column, error.line, error.column + 1)
        position = error.pos_in_stream or 0
        text = source.text[position : position + 1]
        return cls(source, position, span, text, "", tuple(layout.statement), tuple(layout.frames), frozenset())

    @property
    def word(self) -> str:
        return self.text.lower()

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    @property
    def in_query(self) -> bool:
        return any(frame.kind == "query" for frame in self.frames)

    @property
    def previous(self) -> Token | None:
        return self.statement[-1] if self.statement else None

    @property
    def first(self) -> Token | None:
        return self.statement[0] if self.statement else None

    def rewritten(self, pattern: str, write: str) -> str:
        """The way out that is the line of this place with what a pattern matches written anew, or an empty text."""
        return rewritten(self.source.line(self.span.line), pattern, write)

    def error(self, message: str, *, label: str = "", help: str = "", span: Span | None = None) -> Diagnostic:
        return Diagnostic("SyntaxError", message, span or self.span, label, help)


def token_span(token: Token, source: Source) -> Span:
    line, column = token.line or 1, token.column or 1
    return Span(source, line, column, token.end_line or line, token.end_column or column)


def from_layout(error: LayoutError, source: Source) -> Diagnostic:
    """The diagnostic of what the layout saw."""
    span = token_span(error.token, source)
    end = error.token.end_pos or 0
    if error.token.type.startswith("_NL") and source.text[end : end + 1] == "\t":
        tab = Span(source, span.end_line, span.end_column, span.end_line, span.end_column + 1)
        return _entry_diagnostic(entries()["sign"]["\t"], tab)
    if error.token.type.startswith("_NL"):  # of an indentation: its line is the one that begins there
        column = len(error.token) - error.token.rfind("\n")
        span = Span(source, span.end_line, column, span.end_line, column + 1)
    notes: tuple[Note, ...] = ()
    if error.opener is not None and error.opener is not error.token:
        notes = (Note(token_span(error.opener, source), f"`{error.opener}` was opened here"),)
    help = error.help
    if error.label.endswith("at the end of its line"):
        help = as_line(source.line(span.line).strip() + ":") + " and an indented block"
    return Diagnostic(error.kind, error.message, span, error.label, help, notes)


def by_sign(place: ErrorPlace) -> Diagnostic | None:
    """A sign of another language, such as `**`, that covers the place."""
    if not place.text or place.type in ("STRING", "NAME", "NUMBER", "DATE"):
        return None
    for sign, entry in entries()["sign"].items():
        for start in range(place.position - len(sign) + 1, place.position + 1):
            if start >= 0 and place.source.text.startswith(sign, start):
                line, column = place.span.line, place.span.column - (place.position - start)
                if column >= 1:
                    span = Span(place.source, line, column, line, column + len(sign))
                    return _entry_diagnostic(entry, span)
    return None


def by_phrase(place: ErrorPlace) -> Diagnostic | None:
    """A phrase of SQL that begins at the place, at one of the five tokens before it, or before the open bracket."""
    if not (place.in_query or place.type == "_RQUERY"):
        return None
    outside = [token for token, then in pairwise(place.statement) if then is place.frame.opener]
    reach = place.previous.start_pos or 0 if place.previous is not None else place.position
    starts = [place.position, *((token.start_pos or 0) for token in (*reversed(place.statement[-5:]), *outside))]
    for pattern, entry in entries()["phrase"].items():
        for start in starts:
            match = _phrase(pattern).match(place.source.text, start)
            if match is not None and match.end() > reach:
                help = entry["help"].format(*(group for group in match.groups() if group is not None))
                before = place.source.text[:start]
                line, column = before.count("\n") + 1, start - before.rfind("\n")
                span = Span(place.source, line, column, line, column + len(match[0].partition("\n")[0]))
                return _entry_diagnostic(entry | {"help": help}, span)
    return None


@cache
def _phrase(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def by_word(place: ErrorPlace) -> Diagnostic | None:
    """A word of another language: at the start of the statement, here, or just before."""
    first, previous = place.first, place.previous
    statement, word, after = (entries()[section] for section in ("statement", "word", "after"))
    # `print(1 < x < 5)` is a call in which something else is wrong, `let = 3 4` a statement that gives `let` a value.
    second = place.statement[1].type if len(place.statement) > 1 else ""
    as_a_name = second == "EQUAL" or (second == "LPAR" and first == "print")
    if first is not None and first.type == "NAME" and first.lower() in statement and not as_a_name:
        return _entry_diagnostic(statement[first.lower()], token_span(first, place.source))
    if first is None and place.word in statement:
        return _entry_diagnostic(statement[place.word], place.span)
    if previous is None:
        return None
    if place.type not in ("STRING", "_WITH") and place.word in word:
        return _entry_diagnostic(word[place.word], place.span)
    if previous.type == "NAME" and place.in_query and previous.lower() in word:
        return _entry_diagnostic(word[previous.lower()], token_span(previous, place.source))
    if previous.type == "NAME" and previous.lower() in after:
        return _entry_diagnostic(after[previous.lower()], token_span(previous, place.source))
    return None


def _entry_diagnostic(entry: Entry, span: Span) -> Diagnostic:
    help = rewritten(span.source.line(span.line), entry["pattern"], entry["write"]) if "pattern" in entry else ""
    return Diagnostic("SyntaxError", entry["message"], span, entry.get("label", ""), help or entry.get("help", ""))


def rewritten(line: str, pattern: str, write: str) -> str:
    """The way out that is a line with all that a pattern matches written anew; empty where it matches nothing."""
    new, times = re.subn(pattern, write, line.strip())
    return as_line(new) if times else ""


def as_line(line: str, part: str = "") -> str:
    """The way out that is a line to write, of which a long one is shown by the `part` that is new."""
    return f"write `{line}`" if len(line) <= _MOST or not part else f"write `{part.strip()}` in it"


LACKS_A_COMMA = "a comma is missing between"


_CHOICE = "among {A, B} informed by {f} trained on examples using tree() spending 0.05 wrt u"
_FORMS = {  # of what a statement opened last, how it reads
    "select": "a query reads `select count(*) as n from t where c groupby k having n > 10 order by n desc limit 3 with "
    "epsilon 0.1`, each part where it is needed and in this order",
    "mkchoicemaker": f"the clauses of a choice are `{_CHOICE}`, in this order",
    "protecting": "whom it protects reads `protecting rows`, `protecting id up to 5 rows`, `protecting id, day up to 3 "
    "rows` or, of another table's persons, `protecting people.id on customer`",
    "budget": "a budget reads `budget epsilon 1`, `budget epsilon 1, delta 1e-6`, `budget rho 0.5` or `budget rho 2 "
    "each week of day`",
}


def form_of(place: ErrorPlace) -> str:
    """How the query, the choice or the clause of a declaration reads in which a parser stopped; else nothing."""
    words = [str(token).lower() for token in place.statement]
    last = next((word for word in reversed(words) if word in _FORMS), "")
    inside = place.frame.kind == ("query" if last == "select" else "block")
    return _FORMS[last] if last and inside and (last in ("select", "mkchoicemaker") or words[0] == "private") else ""


def in_general(place: ErrorPlace) -> Diagnostic:
    """The message where no other fits: what was found and, where that is short, what could follow."""
    help = ""
    could = readable(place.expected)
    if "$END" in place.expected and place.text and place.frame.kind == "block":
        help = "the statement is complete before it: start a new line, or put an operator between them"
    elif 0 < len(could) <= 6:
        help = "expected " + (could[0] if len(could) == 1 else ", ".join(could[:-1]) + " or " + could[-1])
    if "_WRT" in place.expected and any(str(token).lower() == "among" for token in place.statement):
        help = "write `wrt U` after it, where U is a Utility"
    if not place.text:
        return place.error("the line ends too early", label="something is missing here", help=help)
    if place.type == "" and place.text.isalpha():
        help = "names are written with a–z, A–Z, 0–9 and _"
    if place.type == "":
        return place.error(f"`{place.text}` has no meaning here", label="unexpected", help=help)
    previous = place.previous
    if not help and previous is not None and previous.type in ENDS_AN_EXPRESSION:
        lacks = "an operator, a comma or a new line" if place.frame.kind == "block" else "an operator or a comma"
        help = f"{lacks} may be missing before it"
    help = help if help.startswith("expected ") or not place.text[0].isalpha() else form_of(place) or help
    return place.error(f"`{place.text}` cannot stand here", label="unexpected", help=help)


SIGNS = {
    "LPAR": "`(`", "RPAR": "`)`", "LSQB": "`[`", "RSQB": "`]`", "LBRACE": "`{`", "_RBRACE": "`}`", "_LQUERY": "`{{`",
    "_RQUERY": "`}}`", "COMMA": "`,`", "COLON": "`:`", "EQUAL": "`=`", "DOT": "`.`", "_DOTS": "`..`", "NAME": "a name",
    "_NL": "a new line", "_INDENT": "an indented block", "CMP": "a comparison", "ADD": "`+`", "STAR": "`*`",
    "SLASH": "`/`", "CARET": "`^`", "NUMBER": "a number", "DATE": "a date", "STRING": "a string", "KIND": "`Feature`",
    "$END": "the end of the program",
}  # fmt: skip
STARTS_AN_EXPRESSION = {"NAME", "NUMBER", "DATE", "STRING", "CONST", "LPAR", "LSQB", "LBRACE", "MKCHOICE"}


def readable(expected: frozenset[str]) -> list[str]:
    """The tokens that could follow, in a person's words."""
    left = set(expected) - {*Layout.always_accept, "_DEDENT"} or set(expected) & {"EQUAL"}
    words: list[str] = []
    if left >= STARTS_AN_EXPRESSION:
        words = ["an expression"]
        left -= STARTS_AN_EXPRESSION | {"ADD", "_NOT", "KIND", "_LAMBDA", "_SELECT", "MARK", "_CASE"}
    return words + [SIGNS.get(name) or f"`{name.strip('_').lower()}`" for name in sorted(left)]


_END_OF_SELECT = r"(?=\s+with\b|\s*\}\})"


class ForeignLine(Struct, frozen=True):
    """A pattern, why what it matches is not the language, and the way out: the line anew, or a text with its groups."""

    pattern: re.Pattern[str]
    message: str
    write: str = ""
    say: str = ""


_LINES = ("clauses.toml", "desks.toml", "lines.toml")


@cache
def foreign_lines() -> tuple[ForeignLine, ...]:
    """The tables, in their order."""
    import tomllib

    texts = ((folder("grammar") / name).read_text(encoding="utf-8") for name in _LINES)
    return tuple(
        ForeignLine(re.compile(entry.pop("pattern").replace("<end>", _END_OF_SELECT)), **entry)
        for text in texts
        for entry in tomllib.loads(text)["line"]
    )


def rewritings(line: str) -> Iterator[str]:
    """A line with one thing written anew that other languages have, for each that it holds."""
    for foreign in foreign_lines():
        if foreign.write and foreign.pattern.search(line):
            yield foreign.pattern.sub(foreign.write, line)
    for entry in (entry for section in entries().values() for entry in section.values() if "pattern" in entry):
        if re.search(entry["pattern"], line):
            yield re.sub(entry["pattern"], entry["write"], line)


def by_line(place: ErrorPlace) -> Diagnostic | None:
    """What is said of a line of another language at a place where a text does not parse."""
    return at_line(place.source, place.span)


_CODE = re.compile(r"(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^#])*")  # of a line, up to its comment


def at_line(source: Source, place: Span) -> Diagnostic | None:
    """What is said of a line of another language at this place."""
    text = _CODE.match(source.line(place.line))[0]  # type: ignore[index]
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


# Words that begin no clause of a private source: `budgte epsilon 1`, `protect rows` ----------------

_WORD = re.compile(r"[A-Za-z_]\w*")


def of_a_source(place: ErrorPlace) -> Diagnostic | None:
    """A word at a place outside brackets, where a clause could begin."""
    return None if place.frame.opener is not None else misspelt(place.source, place.span)


def indented(source: Source, place: Span) -> Diagnostic | None:
    """A line of a declaration that is no clause of it, and so not a part of the line above."""
    return (at_line(source, place) or misspelt(source, place)) if _is_declared_above(source, place) else None


def misspelt(source: Source, place: Span) -> Diagnostic | None:
    """A word of a declaration that begins no clause."""
    word = _WORD.match(source.line(place.line), place.column - 1)
    if word is None or not _is_in_declaration(source, place):
        return None
    span = Span(source, place.line, place.column, place.line, place.column + len(word[0]))
    help = "its clauses are `described by {…}`, `protecting rows`, or `protecting id up to 5 rows` with the column "
    help += "that says whose a row is, and `budget epsilon 1`"
    if f"`{word[0]} " in help:
        above = source.line(place.line - 1).rstrip() if place.line > 1 else ""
        at = Span(source, place.line - 1, len(above) + 1, place.line - 1, len(above) + 2)
        if not source.line(place.line)[: place.column - 1].strip() and (before := at_line(source, at)) is not None:
            return before
        return Diagnostic("SyntaxError", f"this `{word[0]}` clause does not parse", span, "", help)
    message = f"`{word[0]}` begins no clause of a private source"
    return Diagnostic("SyntaxError", message, span, "unknown here", help)


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
