"""Columns of a frame, from its types alone: no cell is looked at."""

from __future__ import annotations

from typing import Any

from jostle.diagnostics import refuse
from jostle.tools.draft.columns import Column, clause

LEVELS = "the levels of its type: keep those that are public"
BOUNDED = "between public ends, 2020-01-01..2024-12-31, it can be grouped by"
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
    import pyarrow as pa

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
        columns.append(typed(field.name, kind, "" if kind else f"of type {type_}"))
    return columns


def typed(name: str, kind: str, note: str = "") -> Column:
    """A column of which the type is known: `date`, `time`, `clock` (a time of day, as text), …"""
    if kind in ("date", "time"):
        return Column(name, kind, note or BOUNDED)
    if kind == "clock":
        return Column.of(name, "text", note="a time of day, as text")
    return Column.of(name, kind, note=note)


def _of_dtype(name: str, dtype: object) -> Column:
    import pandas as pd

    if isinstance(dtype, pd.CategoricalDtype) and dtype.categories is not None:
        levels = dtype.categories.tolist()
        if levels and all(isinstance(level, str | int | float) for level in levels):
            return Column.of(name, values=levels, note=LEVELS)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return typed(name, "time")
    kind = _KINDS.get(getattr(dtype, "kind", "O"), "")
    if not kind and (isinstance(dtype, pd.StringDtype) or str(dtype) == "str"):
        kind = "text"
    return typed(name, kind, "" if kind else f"of type {dtype}")
