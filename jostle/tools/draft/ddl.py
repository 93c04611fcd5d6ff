"""Columns from a `CREATE TABLE` statement: types, and what `CHECK`, `ENUM` and the digits of decimals say of values."""

from __future__ import annotations

import re

from msgspec import Struct, field

from jostle.diagnostics import refuse
from jostle.tools.draft.columns import Column, as_number
from jostle.tools.draft.frames import typed

_TOKEN = re.compile(
    r"""--[^\n]*|/\*.*?\*/|(?P<text>'(?:[^']|'')*')|(?P<name>"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\])"""
    r"""|(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|(?P<word>[^\W\d]\w*)|(?P<sign><=|>=|<>|\S)""",
    re.DOTALL | re.VERBOSE,
)
_INTEGERS = re.compile(r"(TINY|SMALL|MEDIUM|BIG|HUGE)?INT(EGER|\d+)?|U?INT\d+|(SMALL|BIG)?SERIAL|LONG|YEAR", re.I)
_REALS = {"REAL", "FLOAT", "FLOAT4", "FLOAT8", "DOUBLE", "NUMERIC", "DECIMAL", "NUMBER", "MONEY"}
_TEXTS = {"CHAR", "VARCHAR", "VARCHAR2", "NVARCHAR", "NCHAR", "TEXT", "CLOB", "STRING", "CHARACTER", "UUID", "CITEXT"}
_MOMENTS = {"DATE": "date", "TIMESTAMP": "time", "TIMESTAMPTZ": "time", "DATETIME": "time", "TIME": "clock"}
_CONSTRAINTS = {"PRIMARY", "FOREIGN", "UNIQUE", "CHECK", "CONSTRAINT", "KEY", "INDEX", "EXCLUDE", "LIKE"}


class Token(Struct, frozen=True):
    """A word in capitals, a sign, a number, or a name or text without its quotes."""

    kind: str
    text: str
    own: str

    @property
    def sign(self) -> str:
        """What it is as a word or a sign; nothing for quoted names and for texts."""
        return self.text if self.kind in ("word", "sign") else ""


class Facts(Struct):
    """What is known of the values of a column."""

    kind: str = ""
    low: float | None = None
    high: float | None = None
    values: list[str] = field(default_factory=list)
    note: str = ""


def columns_of_sql(text: str) -> list[Column]:
    """The columns of the one table that a statement creates. Raises `Refusal(DataError)` where there is none."""
    tokens = _tokens(text)
    starts = [i for i, t in enumerate(tokens) if t.sign == "CREATE" and "TABLE" in [u.sign for u in tokens[i : i + 4]]]
    if len(starts) != 1:
        what = f"{len(starts)} tables are created here" if starts else "no table is created here"
        raise refuse("DataError", what, help="give one statement: CREATE TABLE people (age INTEGER, …)")
    opening = next((i for i in range(starts[0], len(tokens)) if tokens[i].sign == "("), None)
    if opening is None:
        raise refuse("DataError", "this table has no columns in brackets", help="CREATE TABLE people (age INTEGER, …)")
    columns: dict[str, Facts] = {}
    checks: list[list[Token]] = []
    for part in _parts(_inside(tokens, opening)):
        if part[0].sign not in _CONSTRAINTS:
            columns.setdefault(part[0].own, _type(part[1:]))
        checks += [
            _inside(part, i + 1) for i, t in enumerate(part[:-1]) if t.sign == "CHECK" and part[i + 1].sign == "("
        ]
    for check in checks:
        _learn(check, columns)
    return [_column(name, facts) for name, facts in columns.items()]


def _column(name: str, facts: Facts) -> Column:
    if facts.kind in _MOMENTS.values():
        return typed(name, facts.kind)
    return Column.of(name, facts.kind, facts.low, facts.high, facts.values, facts.note)


def _tokens(text: str) -> list[Token]:
    tokens = []
    for match in _TOKEN.finditer(text):
        kind, own = match.lastgroup, match.group()
        if kind in ("text", "name"):
            quote = own[-1]
            tokens.append(Token(kind, own[1:-1].replace(quote * 2, quote), own[1:-1].replace(quote * 2, quote)))
        elif kind is not None:
            tokens.append(Token(kind, own.upper(), own))
    return tokens


def _inside(tokens: list[Token], opening: int) -> list[Token]:
    """What stands between the bracket at `opening` and its partner, or the end."""
    depth = 0
    for at in range(opening, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[at].sign, 0)
        if depth == 0:
            return tokens[opening + 1 : at]
    return tokens[opening + 1 :]


def _parts(tokens: list[Token], by: str = ",") -> list[list[Token]]:
    """Tokens divided at the commas (or another word) outside of brackets; empty parts are left out."""
    parts: list[list[Token]] = [[]]
    depth = between = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.sign, 0)
        between += token.sign == "BETWEEN"
        if token.sign == by and not depth and not (by == "AND" and between):
            parts.append([])
            continue
        between -= token.sign == "AND" and bool(between)
        parts[-1].append(token)
    return [part for part in parts if part]


def _type(tokens: list[Token]) -> Facts:
    name = tokens[0].sign if tokens else ""
    listed = _inside(tokens, 1) if len(tokens) > 1 and tokens[1].sign == "(" else []
    if name in ("ENUM", "SET") and listed:
        return Facts("text", values=[t.text for t in listed if t.kind == "text"])
    if name in ("BOOL", "BOOLEAN", "BIT"):
        return Facts("boolean")
    if _INTEGERS.fullmatch(name):
        return Facts("integer")
    if name in _REALS:
        digits = [int(t.text) for t in listed if t.kind == "number" and t.text.isdigit()]
        places = digits[1] if len(digits) > 1 else 0
        if not digits or name == "FLOAT" or digits[0] > 15:
            return Facts("real")
        most = round(10.0 ** (digits[0] - places) - 10.0**-places, places)
        return Facts("real" if places else "integer", -most, most, note="what its digits can hold")
    if name in _TEXTS:
        return Facts("text")
    return Facts(_MOMENTS[name]) if name in _MOMENTS else Facts(note=f"of type {name}" if name else "")


def _learn(check: list[Token], columns: dict[str, Facts]) -> None:
    """What a condition that every row meets says of single columns; what is not understood says nothing."""
    while check and check[0].sign == "(" and len(_inside(check, 0)) == len(check) - 2:
        check = check[1:-1]
    if len(_parts(check, "OR")) > 1:
        return
    parts = _parts(check, "AND")
    if len(parts) > 1:
        for part in parts:
            _learn(part, columns)
        return
    if len(check) < 3 or check[0].own not in columns:
        return
    facts = columns[check[0].own]
    match [t.sign for t in check]:
        case [_, "BETWEEN", _, "AND", _]:
            _bound(facts, as_number(check[2].text), as_number(check[4].text))
        case [_, "IN", "(", *_]:
            facts.values = [t.text for t in _inside(check, 2) if t.kind in ("text", "number")]
        case [_, "<" | "<=" | ">" | ">=" as sign, _]:
            value = as_number(check[2].text)
            if value is not None:
                step = int(facts.kind == "integer" and sign in "<>")
                _bound(facts, value + step, None) if sign[0] == ">" else _bound(facts, None, value - step)


def _bound(facts: Facts, low: float | None, high: float | None) -> None:
    if low is not None:
        facts.low, facts.note = low, ""
    if high is not None:
        facts.high, facts.note = high, ""
