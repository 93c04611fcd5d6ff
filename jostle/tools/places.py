"""What a place of a text asks for: a module, a path, a value of a column, a table, an argument of a call, a command.

By shape alone, from the last statement up to the place: the parser says elsewhere which words may come next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from msgspec import Struct

from jostle.language.aggregates import AGGREGATES
from jostle.language.builtins import BUILTINS
from jostle.syntax.expected import last_statement

_NAME = r"[A-Za-z_]\w*"
_OPENS_FILE = re.compile(r'\b(?:table|counts|vectors_in)\s*\(\s*(?:\[\s*(?:"[^"]*"\s*,\s*)*)?$')
# `city == `, `city in {"Ames", `, `groupby city over {`, `people[city = `
_COMPARED = re.compile(
    rf"(?:({_NAME})\s*[!=]=|({_NAME})\s+(?:not\s+)?in\s*[\[{{(][^\]}})]*|by\s+({_NAME})\s+over\s*[\[{{][^\]}}]*"
    rf"|[\[,]\s*({_NAME})\s*=)\s*$",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"\b(select|from|join|on|where|having|per|over|group\s*by|order\s+by|up\s+to|limit|with|via)\b", re.IGNORECASE
)
_COLUMNS_ONLY = ("where", "per", "groupby", "on")


class Place(Struct, frozen=True):
    """What is asked for: `kind`, what was typed of it, and what it is of.

    Kinds: "module", "path", "value" (of the column `of`; `quoted` inside a text), "text" (nothing is offered), "table",
    "rows" (an expression on rows: no aggregate), "select" (a column of a select), "result" (of released groups), "" for
    anything. `tables`: what the query around asks, as far as it is written; `results`: the names of what it gives.
    `call`: the function of which an argument begins here, with the names already `given`.
    """

    kind: str = ""
    typed: str = ""
    of: str = ""
    quoted: bool = False
    tables: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    call: str = ""
    given: tuple[str, ...] = ()


def place(text: str) -> Place:
    """What the end of a text asks for."""
    statement = last_statement(text)
    line = statement.rpartition("\n")[2]
    if module := re.match(r"\s*use +([\w.]*)$", line):
        return Place("module", module[1])
    scan = _Scan(statement)
    if scan.comment:
        return Place("text")
    if scan.text is not None:
        return _inside_text(statement[: scan.text], statement[scan.text + 1 :])
    word = re.search(rf"(?:{_NAME})?$", statement)
    typed = word[0] if word else ""
    before = statement[: len(statement) - len(typed)]
    call, given = _call(before, scan)
    query = _query(before, scan)
    tables = tuple(re.findall(rf"\b(?:from|join)\s+({_NAME})", query, re.IGNORECASE))
    compared = _COMPARED.search(before) if query or before.rstrip().endswith("=") else None
    if compared and (any(compared.groups()[:3]) or scan.brackets[-1:] == [("[", scan.last)]):
        return Place("value", typed, next(filter(None, compared.groups())), False, tables)
    kind = _kind(query) if query else ""
    around = argument(before)
    if around is not None and around[0] in AGGREGATES and kind == "select":
        kind, call = "rows", ""
    elif around is not None and around[1] and (row := BUILTINS.get(around[0])) is not None and row.over_rows:
        first = re.search(rf"{around[0]}\s*\(\s*({_NAME})[^()]*(?:\([^()]*)*$", before)
        kind, tables = "rows", (first[1],) if first else ()
    results = tuple(re.findall(rf"\bas\s+({_NAME})|group\s*by\s+({_NAME})", query, re.IGNORECASE))
    names = tuple(filter(None, chain(*results)))
    return Place(kind, typed, "", False, tables, names if kind == "result" else (), call, given)


def _inside_text(before: str, typed: str) -> Place:
    """What a text that is not closed yet asks for: a file, a value of the column that is compared, or nothing."""
    if _OPENS_FILE.search(before):
        return Place("path", typed)
    compared = _COMPARED.search(before)
    column = next(filter(None, compared.groups()), "") if compared else ""
    return Place("value" if column else "text", typed, column, quoted=True)


def argument(text: str) -> tuple[str, int, str] | None:
    """The function in whose call a text ends, which argument that is (from 0), and its name where it has one."""
    statement = last_statement(text)
    scan = _Scan(statement)
    for bracket, at in reversed(scan.brackets):
        name = re.search(rf"({_NAME})\s*$", statement[:at])
        if bracket == "(" and name and name[1] not in ("in", "and", "or", "not", "if", "return"):
            parts = list(_parts(statement[at + 1 :]))
            own = re.match(rf"\s*({_NAME})\s*=(?!=)", parts[-1])
            return name[1], len(parts) - 1, own[1] if own else ""
        if bracket == "{{":
            return None
    return None


class _Scan:
    """The open brackets of a text, and whether it ends in a comment or a text (which begins at `text`)."""

    def __init__(self, statement: str) -> None:
        self.brackets: list[tuple[str, int]] = []
        self.text: int | None = None
        self.comment = False
        i = 0
        while i < len(statement):
            char = statement[i]
            if self.comment:
                self.comment = char != "\n"
            elif self.text is not None:
                if char == "\\":
                    i += 1
                elif char == statement[self.text] or char == "\n":
                    self.text = None
            elif char in "\"'":
                self.text = i
            elif char == "#":
                self.comment = True
            elif statement[i : i + 2] == "{{":
                self.brackets.append(("{{", i))
                i += 1
            elif char in "([{":
                self.brackets.append((char, i))
            elif char in ")]}" and self.brackets:
                i += self.brackets.pop()[0] == "{{"
            i += 1

    @property
    def last(self) -> int:
        """Where the innermost open bracket stands."""
        return self.brackets[-1][1] if self.brackets else -1


def _query(before: str, scan: _Scan) -> str:
    """The select in which a text ends, without the calls and sub-selects that are closed; empty outside a query."""
    starts = [at for bracket, at in scan.brackets if bracket == "{{"]
    if not starts:
        return ""
    inside = [at for bracket, at in scan.brackets if at > starts[-1]]
    start = next((at for at in reversed(inside) if re.match(r"\(\s*select\b", before[at:])), starts[-1])
    text = before[start:]
    while (shorter := re.sub(r"\([^()]*\)", "", text)) != text:
        text = shorter
    return text


def _kind(query: str) -> str:
    *_, clause = [None, *_CLAUSE.finditer(query)]
    if clause is None:
        return ""
    word = re.sub(r"\s", "", clause[1].lower())
    rest = query[clause.end() :]
    if word in ("from", "join"):
        return "table" if not rest.strip() else ""
    if word in _COLUMNS_ONLY:
        return "rows"
    return {"select": "select", "having": "result", "orderby": "result"}.get(word, "")


def _call(before: str, scan: _Scan) -> tuple[str, tuple[str, ...]]:
    """The function whose next argument begins where a text ends, and the names of those that it was given."""
    if not scan.brackets or scan.brackets[-1][0] != "(":
        return "", ()
    at = scan.brackets[-1][1]
    name = re.search(rf"({_NAME})\s*$", before[:at])
    parts = list(_parts(before[at + 1 :]))
    if name is None or parts[-1].strip():
        return "", ()
    named = (re.match(rf"\s*({_NAME})\s*=(?!=)", part) for part in parts)
    return name[1], tuple(match[1] for match in named if match)


def _parts(text: str) -> Iterator[str]:
    """The arguments that a text holds: its pieces between commas that stand in no bracket and no text."""
    depth, start, quote = 0, 0, ""
    for i, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and depth == 0:
            yield text[start:i]
            start = i + 1
    yield text[start:]
