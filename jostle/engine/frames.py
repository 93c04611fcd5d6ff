"""Tables in memory (pandas, Arrow, NumPy) as Arrow tables that DuckDB can scan.

Nothing a cell holds is an error here: types are taken from the columns' declared types, never guessed from their
cells, and a column of Python objects becomes text, cell by cell (dates in ISO order, booleans as `true` and `false`,
what has no plain text as none).
"""

from __future__ import annotations

import datetime
import math
from typing import Any

from jostle.diagnostics import refuse


def is_frame(origin: object) -> bool:
    """Whether this is a pandas DataFrame, an Arrow Table, a dict of arrays or a structured NumPy array."""
    home = type(origin).__module__.partition(".")[0]
    return isinstance(origin, dict) or (home, type(origin).__name__) in {
        ("pandas", "DataFrame"), ("pyarrow", "Table"), ("numpy", "ndarray"), ("numpy", "recarray"),
    }  # fmt: skip


def as_arrow(origin: Any) -> tuple[tuple[str, ...], Any]:
    """The column names, and a `pyarrow.Table` with columns `c0`, `c1`, … in their order."""
    import pyarrow as pa

    names, columns = _columns(origin)
    if not names:
        raise refuse("DataError", "the table has no columns")
    if len(set(names)) < len(names):
        raise refuse("DataError", "the table has two columns of one name", help="rename one of them")
    arrays = [_array(column) for column in columns]
    if len({len(array) for array in arrays}) > 1:
        raise refuse("DataError", "the arrays of the table differ in length", help="give arrays of one length")
    return names, pa.table(arrays, names=[f"c{i}" for i in range(len(arrays))])


def _columns(origin: Any) -> tuple[tuple[str, ...], list[Any]]:
    if isinstance(origin, dict):
        return tuple(str(name) for name in origin), list(origin.values())
    if type(origin).__module__.startswith("pandas"):
        return tuple(str(name) for name in origin.columns), [origin.iloc[:, i] for i in range(origin.shape[1])]
    if type(origin).__module__.startswith("pyarrow"):
        return tuple(origin.column_names), list(origin.columns)
    if origin.dtype.names is None or origin.ndim != 1:
        raise refuse("DataError", "an array is no table", help="give a dict of arrays, or a structured array")
    return tuple(origin.dtype.names), [origin[name] for name in origin.dtype.names]


def _array(column: Any) -> Any:
    import numpy as np
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray | pa.Array):
        return _arrow_array(column)
    if type(column).__module__.startswith("pandas"):
        if isinstance(column.dtype, np.dtype):
            column = column.to_numpy()
        else:  # extension types: nullable numbers, strings, categories, dates with a zone
            kind = getattr(column.dtype, "kind", "O")
            return pa.array(column, from_pandas=True) if kind in "biuf" else _texts(column.tolist())
    values = np.asarray(column)
    if values.ndim != 1:
        raise refuse("DataError", "every column of a table is an array of one dimension")
    if values.dtype.kind in "biu" or (values.dtype.kind == "f" and values.dtype.itemsize in (4, 8)):
        return pa.array(np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="))))
    if values.dtype.kind == "f":
        return pa.array(values.astype(np.float64))
    if values.dtype.kind == "M":
        texts = np.datetime_as_string(values)
        return _texts([None if text == "NaT" else text for text in texts.tolist()])
    return _texts(values.tolist())


def _arrow_array(column: Any) -> Any:
    """Arrow's own types that DuckDB reads are kept; dictionaries are unpacked; the rest becomes text."""
    import pyarrow as pa

    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    plain = (types.is_integer, types.is_float32, types.is_float64, types.is_boolean, types.is_string,
             types.is_large_string, types.is_date, types.is_decimal128)  # fmt: skip
    if any(test(kind) for test in plain):
        return as_utf8(column)
    if types.is_floating(kind):
        return column.cast(pa.float64())
    return _texts(column.to_pylist())


def as_utf8(column: Any) -> Any:
    """The same Arrow column where it is not text or is valid; else a new one in which bad bytes are U+FFFD.

    Arrow's files and buffers may hold anything as text, and DuckDB either refuses the lot or misreads the cell.
    """
    import pyarrow as pa

    kind, types = column.type, pa.types
    texts = column.cast(kind.value_type) if types.is_dictionary(kind) else column
    if not (types.is_string(texts.type) or types.is_large_string(texts.type)):
        return column
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        cells = texts.cast(pa.binary() if types.is_string(texts.type) else pa.large_binary()).to_pylist()
        return _texts(cells)
    return column


def _texts(values: list[Any]) -> Any:
    import pyarrow as pa

    return pa.array([text_of(value) for value in values], type=pa.string())


def text_of(value: object) -> str | None:
    """The text of a Python object in a table, or None."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value.bit_length() < 1100 else None
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else None
    return str(value) if type(value).__name__ in ("Decimal", "UUID") else None
