"""Columns from a file: which kind of file it is, and what each kind says of columns. Of data, no row is read.

Columns from a `CREATE TABLE` statement: types, and what `CHECK`, `ENUM` and the digits of decimals say of values.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from contextlib import closing
from io import StringIO
from pathlib import Path

from msgspec import Struct, field

from jostle.backends import server_at
from jostle.backends.remote import RemoteData, remote_data
from jostle.diagnostics import need_package, refuse
from jostle.engine.files import open_file
from jostle.lazy import pa
from jostle.readers.filesets import Reading, reader_of
from jostle.records import replace
from jostle.resources import Json, loads
from jostle.tools.draft.columns import Column, as_number, columns_of_arrow

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
    return [Column.of(name, f.kind, f.low, f.high, f.values, f.note) for name, f in columns.items()]


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
    inner = _inside(tokens, 1) if len(tokens) > 1 and tokens[1].sign == "(" else []
    if name in ("ENUM", "SET") and inner:
        return Facts("text", values=[t.text for t in inner if t.kind == "text"])
    if name in ("BOOL", "BOOLEAN", "BIT"):
        return Facts("boolean")
    if _INTEGERS.fullmatch(name):
        return Facts("integer")
    if name in _REALS:
        digits = [int(t.text) for t in inner if t.kind == "number" and t.text.isdigit()]
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
        case [_, "IN", "(", *_] if facts.kind not in _MOMENTS.values():
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


_NAMES = ("name", "variable", "column", "field")
_WORDS = {
    "type": ("type", "kind", "dtype"), "low": ("min", "minimum", "low", "lower"),
    "high": ("max", "maximum", "high", "upper"), "values": ("values", "categories", "levels", "codes", "enum"),
    "note": ("label", "description", "note", "unit", "units", "title", "comment"),
}  # fmt: skip
_KINDS = {
    "integer": "integer", "int": "integer", "int32": "integer", "int64": "integer", "whole": "integer",
    "number": "real", "real": "real", "float": "real", "float64": "real", "double": "real", "numeric": "real",
    "decimal": "real", "continuous": "real", "text": "text", "string": "text", "str": "text", "char": "text",
    "character": "text", "object": "text", "boolean": "boolean", "bool": "boolean", "date": "date", "datetime": "time",
    "time": "clock", "timestamp": "time", "year": "integer", "category": "", "categorical": "", "factor": "", "": "",
}  # fmt: skip
_MOST = 1 << 24  # bytes of a codebook or schema


_CAST = r"""::(?:"[^"]+"|[a-z_][a-z0-9_. ]*)(?:\(\d+(?:,\d+)?\))?(?:\[\])?"""
_AS_SERVERS_SAY = (  # outside of texts: casts, names in brackets, and lists
    (rf"('(?:[^']|'')*')|{_CAST}", r"\1"), (r"('(?:[^']|'')*')|\(([a-z_]\w*)\)", r"\1\2"),
    (r"= ANY \(\(?ARRAY\[((?:'(?:[^']|'')*'|[^\]'])*)\]\)?\)", r" IN (\1)"),
)  # fmt: skip


def columns_of_server(data: RemoteData, engine: str | None) -> list[Column]:
    """The columns of a server's table, with what its catalog says of types and values. Reads no row."""
    with closing(server_at(data, engine)) as server:
        text, comments = server.definition(data)
    for written_so, plain in _AS_SERVERS_SAY:
        text = re.sub(written_so, plain, text)
    return [replace(column, note=comments.get(column.name, column.note)) for column in columns_of_sql(text)]


def columns_of(
    source: str, table: str | None = None, reading: Reading | None = None, engine: str | None = None
) -> list[Column]:
    """The columns that a file, a `CREATE TABLE` statement or the catalog of a server at the URL `engine` tells of.

    A codebook (a CSV file whose columns are `name`, `type`, `min`, `max`, `values` and notes), a Parquet or Arrow file,
    SQL, a Table Schema or data package in JSON (`table` names one of several), or a CSV file or a `sheet` of a
    workbook, of which only the header counts. Raises `Refusal(DataError)`.
    """
    data = remote_data(source)
    if data is not None:
        return columns_of_server(data, engine)
    if "create" in source.lower() and "(" in source and not Path(source[:255]).exists():
        return columns_of_sql(source)
    suffix, reading = Path(source).suffix.lower(), reading or Reading()
    if suffix in (".xlsx", ".xlsm"):
        return _workbook(source, reading)
    if reading.sheet is not None:
        raise refuse("DataError", f"`{source}` is no workbook, and has no sheets", help="leave --sheet out")
    if suffix in _OF_ARROW:
        return _arrow(source, _OF_ARROW[suffix])
    if suffix == ".json":
        return _json(_text(source), table)
    if suffix in (".sql", ".ddl"):
        return columns_of_sql(_text(source))
    return _csv(source, reading)


def _text(path: str) -> str:
    with reader_of(open_file(path)) as reader:
        data = reader.read(_MOST + 1)
    if len(data) > _MOST:
        raise refuse("DataError", f"`{path}` is too long for a schema or a codebook")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise refuse("DataError", f"`{path}` is not UTF-8 text", help="save it as UTF-8") from None


_OF_ARROW = {".parquet": "Parquet", ".pq": "Parquet", ".arrow": "Arrow", ".feather": "Arrow"}


def _arrow(path: str, kind: str) -> list[Column]:
    """The columns of a file with a schema of Arrow's."""
    need_package("pyarrow", "arrow", f"`{path}` is read by")
    import pyarrow.parquet as pq

    try:
        with reader_of(open_file(path)) as reader:
            if kind == "Parquet":
                return columns_of_arrow(pq.read_schema(reader))
            return columns_of_arrow(pa.ipc.open_file(pa.PythonFile(reader, mode="r")).schema)
    except (pa.ArrowException, OSError):
        raise refuse("DataError", f"`{path}` is no {kind} file that can be read") from None


def _workbook(path: str, reading: Reading) -> list[Column]:
    from jostle.readers.workbook import header

    return [Column.of(name) for name in header(open_file(path), f"`{path}`", reading)]


_TITLE = "if this is a title, `--header 3` says which line has the names"


def _csv(path: str, reading: Reading) -> list[Column]:
    """The header alone, unless every column of the file is one of a codebook."""
    from jostle.readers.csvfile import header
    from jostle.readers.formats import format_of

    file = open_file(path)
    if (kind := format_of(file)) != "csv":
        message = f"what columns `{path}` has stands in no header of its own"
        help = f'of a table of a database write `table("{path}", "TABLE") described by {{age: 0..99}}` into a program'
        help = f"`jostle init {path}` reads the names in its rows" if kind == "json" else help
        raise refuse("DataError", message, help=f"{help}; or write a codebook")
    head = header(file, f"`{path}`", reading)
    places = _codebook(head.names) if reading.header is None else None
    if places is None:
        alone = reading.header is None and len(head.readable) == 1 and " " in head.readable[0]
        return [Column(name, note=_TITLE * alone) for name in head.readable]
    rows = list(csv.reader(StringIO(_text(path), newline="")))[1:]
    return [
        _of_row({what: row[at].strip() for what, at in places.items() if at < len(row)}) for row in rows if any(row)
    ]


def _codebook(names: tuple[str, ...]) -> dict[str, int] | None:
    """Where a codebook says what; None for the header of anything that might be data, whose rows are not to be read.

    It has names, types, and ranges or values, each once, and nothing else but a note.
    """
    meanings = {word: what for what, words in _WORDS.items() for word in words} | dict.fromkeys(_NAMES, "name")
    kinds = [meanings.get(name.lower()) for name in names]
    ranges = {"low", "high"} <= set(kinds) or "values" in kinds
    if None in kinds or len(set(kinds)) < len(kinds) or not ({"name", "type"} <= set(kinds) and ranges):
        return None
    return {what: at for at, what in enumerate(kinds) if what is not None}


def _of_row(cells: Mapping[str, str]) -> Column:
    kind = _kind(cells.get("type", ""))
    values = [v.partition("=")[0].strip() for v in cells.get("values", "").replace("|", ";").split(";") if v.strip()]
    low, high = as_number(cells.get("low", "")), as_number(cells.get("high", ""))
    return Column.of(cells.get("name", ""), kind, low, high, values, cells.get("note", ""))


def _kind(word: object) -> str:
    kind = _KINDS.get(str(word or "").strip().lower().partition("(")[0].strip())
    if kind is None:
        raise refuse(
            "DataError", "a type of this codebook is not known", help="integer, number, text, boolean, date or category"
        )
    return kind


# Table Schema and data packages ------------------------------------------------------------------------


def _json(text: str, table: str | None) -> list[Column]:
    try:
        document = loads(text)
    except ValueError:
        raise refuse("DataError", "this is no JSON") from None
    fields = _schema(document, table).get("fields")
    if not isinstance(fields, list) or not all(
        isinstance(f, Mapping) and isinstance(f.get("name"), str) for f in fields
    ):
        raise refuse(
            "DataError", "a Table Schema has `fields`, each with a `name`", help='{"fields": [{"name": "age"}]}'
        )
    return [_of_field(field) for field in fields]


def _schema(document: object, table: str | None) -> Mapping[str, object]:
    if isinstance(document, Mapping) and isinstance(document.get("resources"), list):
        tables = {str(r.get("name", "")): r.get("schema") for r in document["resources"] if isinstance(r, Mapping)}
        if table is None and len(tables) == 1:
            table = next(iter(tables))
        if table not in tables:
            raise refuse("DataError", "say which table of the package", help=f"--table {' or '.join(tables)}")
        document = tables[table]
    if isinstance(document, Mapping) and isinstance(document.get("schema"), Mapping):
        document = document["schema"]
    if not isinstance(document, Mapping):
        lines = 'a table is read as JSON lines: in pandas to_json("t.jsonl", orient = "records", lines = True)'
        help = lines if isinstance(document, list) else ""
        raise refuse("DataError", "this is neither a Table Schema nor a data package", help=help)
    return document


def _of_field(field: Mapping[str, Json]) -> Column:
    constraints = field.get("constraints")
    limits: Mapping[str, object] = constraints if isinstance(constraints, Mapping) else {}
    levels = limits.get("enum", field.get("categories"))
    values = [v.get("value") if isinstance(v, Mapping) else v for v in levels] if isinstance(levels, list) else []
    word = str(field.get("type", "")).lower()
    kind = _KINDS.get(word, "")
    low, high = as_number(limits.get("minimum")), as_number(limits.get("maximum"))
    note = field.get("title") or field.get("description") or ("" if kind or word in _KINDS else f"of type {word}")
    return Column.of(field["name"], kind, low, high, values, str(note))
