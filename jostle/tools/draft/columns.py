"""A column as it is drafted, and the text of a description: one column a line, with what is known of it beside.

Columns of a frame, from its types alone: no cell is looked at.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from jostle.backends.remote import remote_data
from jostle.diagnostics import refuse
from jostle.language.moments import moment_of
from jostle.lazy import pa
from jostle.plan.plan import Domain, Integer, Moments, Open, Real
from jostle.readers.filesets import Reading
from jostle.records import as_dict
from jostle.trace.text import clean

UNKNOWN = "?"
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_WORDS = frozenset({
    "def", "return", "assert", "if", "else", "for", "lambda", "in", "and", "or", "not", "true", "false", "none",
    "select", "feature", "option", "utility", "mkchoicemaker",
})  # fmt: skip
BOUNDED = "between public ends, 2020-01-01..2024-12-31, it can be grouped by"
HINTS = {
    "integer": "whole numbers: a range such as 0..99, or integer",
    "real": "numbers: a range such as 0.0..99.0, or real",
}


class Column(Struct, frozen=True):
    """A column's name, its domain as a program writes it or `?`, and what is known of it otherwise."""

    name: str
    domain: str = UNKNOWN
    note: str = ""

    @classmethod
    def of(
        cls, name: str, kind: str = "", low: float | None = None, high: float | None = None,
        values: Sequence[object] = (), note: str = "",
    ) -> Column:  # fmt: skip
        """A column of a `kind` (integer, real, text, boolean, date, time, `clock`, a time of day, or nothing), with its
        range or its categories."""
        if values:
            return cls(name, categories(values, kind), note)
        if kind == "boolean":
            return cls(name, "{true, false}", note)
        if kind in ("date", "time"):
            return cls(name, kind, BOUNDED)
        if kind == "clock":
            return cls(name, "text", "a time of day, as text")
        if kind == "text":
            return cls(name, "text", note or "categories, where they are public, can be grouped by")
        if low is None or high is None or not low <= high:
            ends = [
                f"from {number(low)}" if low is not None else "",
                f"up to {number(high)}" if high is not None else "",
            ]
            bounds = " ".join(end for end in ends if end)
            return cls(name, UNKNOWN, "; ".join(part for part in (note, bounds, HINTS.get(kind, "")) if part))
        whole = kind in ("", "integer") and float(low).is_integer() and float(high).is_integer()
        return cls(name, f"{number(low, whole)}..{number(high, whole)}", note)


def number(value: float, whole: bool = True) -> str:
    """A number as a program writes it: without a point where it is whole, unless a real is wanted."""
    if not math.isfinite(value):
        raise refuse("DataError", "an end of a range is a finite number")
    if float(value).is_integer() and abs(value) < 2**53:
        return str(int(value)) if whole else f"{int(value)}.0"
    text = repr(float(value))
    return text if "e" not in text or "." in text else text.replace("e", ".0e")


def categories(values: Sequence[object], kind: str = "") -> str:
    """Public values in braces, each once: numbers where all are, or are written so for a number."""
    parsed = [as_number(value) for value in values]
    numeric = kind in ("integer", "real") or all(isinstance(v, int | float) for v in values)
    if numeric and all(v is not None for v in parsed):
        return "{" + ", ".join(dict.fromkeys(number(v) for v in parsed if v is not None)) + "}"
    return "{" + ", ".join(dict.fromkeys(quoted(str(v)) for v in values)) + "}"


def domain_text(domain: Domain, *, whole: bool = False) -> str:
    """A domain as a program writes it; of many categories the first ones, unless the `whole` of it is wanted."""
    if isinstance(domain, Integer):
        return f"{domain.low}..{domain.high}"
    if isinstance(domain, Real):
        return f"{domain.low!r}..{domain.high!r}"
    if isinstance(domain, Moments):
        low, high = (moment_of(domain.kind, end).isoformat() for end in (domain.low, domain.high))
        return f"from {low} to {high} by {domain.unit}" if domain.unit else f"{low}..{high}"
    if isinstance(domain, Open):
        return "{true, false}" if domain.kind == "boolean" else domain.kind
    if whole:
        return categories(domain.values)
    examples = [f'"{clean(v)}"' if isinstance(v, str) else number(v) for v in domain.values[:3]]
    more = f", … {len(domain.values)} in all" if len(domain.values) > 3 else ""
    return "{" + ", ".join(examples) + more + "}"


def as_number(value: object) -> float | None:
    """The finite number that a cell of a codebook says."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        parsed = float(value)
    except (ValueError, OverflowError):
        return None
    return parsed if math.isfinite(parsed) else None


_ESCAPED = {'"': '\\"', "\\": "\\\\", "\t": "\\t"}


def quoted(text: str) -> str:
    escaped = (
        _ESCAPED[c] if c in _ESCAPED else c if c.isprintable() else f"\\u{ord(c):04x}" if ord(c) < 0x10000 else "\ufffd"
        for c in text
    )
    return '"' + "".join(escaped) + '"'


def name_of(column: str) -> str:
    """A column's name as a description writes it."""
    return column if _PLAIN.fullmatch(column) and column.lower() not in _WORDS else quoted(column)


def column_word(name: str) -> str:
    """A column's name as a query writes it."""
    plain = name_of(name)
    return plain if plain == name else f"`{name}`"


def clause(columns: Iterable[Column]) -> str:
    """`described by {…}`, ready to paste, with notes as comments."""
    entries = list(columns)
    if not entries:
        raise refuse("DataError", "there are no columns to describe")
    names = [column.name for column in entries]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise refuse("DataError", f"two columns are named {quoted(twice)}", help="give each a name of its own")
    lines = []
    for at, column in enumerate(entries):
        note = "".join(c if c.isprintable() else " " for c in column.note)
        text = f"    {name_of(column.name)}: {column.domain}" + ("," if at < len(entries) - 1 else "")
        lines.append(f"{text.ljust(32)}  # {note}" if note else text)
    return "described by {\n" + "\n".join(lines) + "\n}\n"


def table_of(path: str, reading: Reading | None = None) -> str:
    """A file, or a sheet of a workbook, as a program names it."""
    if remote_data(path) is not None:  # data of a server
        return path.strip()
    items = as_dict(reading or Reading()).items()
    options = (f", {word} = {quoted(one) if isinstance(one, str) else one}" for word, one in items if one is not None)
    return f"table({quoted(path)}{''.join(options)})"


def program(
    columns: Iterable[Column], path: str, protecting: str = UNKNOWN, budget: str = UNKNOWN,
    reading: Reading | None = None,
) -> str:  # fmt: skip
    """A whole program: the declaration of `data`, and a first count."""
    described = "".join(f"    {line}\n" for line in clause(columns).splitlines()).rstrip()
    count = "{{ select count(*) from data with epsilon 0.1 }}"
    return (
        f"private data = {table_of(path, reading)}\n{described} protecting {protecting} budget {budget}\n\n"
        f"release rows = {count}\n"
    )


LEVELS = "the levels of its type: keep those that are public"
_KINDS = {"b": "boolean", "i": "integer", "u": "integer", "f": "real", "U": "text", "S": "text", "M": "time", "m": ""}


def describe(frame: object) -> str:
    """The draft of a description of a pandas frame or an Arrow table: `described by {…}`, with `?` for what is unknown.

    From the types of its columns and the levels of categorical ones; no row is read. Levels that pandas found in the
    rows (`astype("category")`) are no public facts, so look at them. Raises `Refusal(TypeError)` for anything else.
    """
    return clause(columns_of_frame(frame))


def columns_of_frame(frame: object) -> list[Column]:
    home = type(frame).__module__.partition(".")[0]
    if home == "pandas" and hasattr(frame, "dtypes") and hasattr(frame, "columns"):
        return [_of_dtype(str(name), dtype) for name, dtype in zip(frame.columns, frame.dtypes, strict=True)]
    if home == "pyarrow" and hasattr(frame, "schema"):
        return columns_of_arrow(frame.schema)
    raise refuse("TypeError", f"a {type(frame).__name__} is no table", help="give a pandas frame or an Arrow table")


def columns_of_arrow(schema: Any) -> list[Column]:
    """Columns from an Arrow schema, which is a Parquet file's too."""
    columns = []
    for field in schema:
        type_ = field.type
        if pa.types.is_boolean(type_):
            kind = "boolean"
        elif pa.types.is_integer(type_):
            kind = "integer"
        elif pa.types.is_floating(type_):
            kind = "real"
        elif pa.types.is_temporal(type_):
            kind = "date" if pa.types.is_date(type_) else "time" if pa.types.is_timestamp(type_) else ""
            kind = "clock" if pa.types.is_time(type_) else kind
        else:
            texts = pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_dictionary(type_)
            kind = "text" if texts else ""
        columns.append(Column.of(field.name, kind, note="" if kind else f"of type {type_}"))
    return columns


def _of_dtype(name: str, dtype: object) -> Column:
    import pandas as pd

    if isinstance(dtype, pd.CategoricalDtype) and dtype.categories is not None:
        levels = dtype.categories.tolist()
        if levels and all(isinstance(level, str | int | float) for level in levels):
            return Column.of(name, values=levels, note=LEVELS)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return Column.of(name, "time")
    kind = _KINDS.get(getattr(dtype, "kind", "O"), "")
    if not kind and (isinstance(dtype, pd.StringDtype) or str(dtype) == "str"):
        kind = "text"
    return Column.of(name, kind, note="" if kind else f"of type {dtype}")
