"""Tables in memory (pandas, polars, Arrow, NumPy) as Arrow tables that DuckDB can scan.

Nothing a cell holds is an error here: types are taken from the columns' declared types, never guessed from their
cells, and a column of Python objects becomes text, cell by cell (dates in ISO order, booleans as `true` and `false`,
what has no plain text as none).
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from jostle.diagnostics import refuse
from jostle.engine.sql.cells import NONE
from jostle.lazy import np, pa
from jostle.readers.arrays import MOST_ROWS, Arrays, cells, kind_of, text_of_decimal
from jostle.readers.textfile import ReadRaw

if TYPE_CHECKING:
    import pandas as pd

Register = Callable[[str, "pa.Table"], object]


class Frame(ReadRaw):
    """A table in memory, for a database to know by the name `name`. Its columns lie in the arrays `lies_in`: those of
    what was handed over, where they can be taken as they are."""

    __slots__ = ("_name", "_register", "_stored", "lies_in")

    def __init__(self, origin: Any, name: str, label: str = "the table") -> None:
        names, arrays = _columns(origin)
        if not names:
            raise refuse("DataError", f"{label} has no columns")
        if len(set(names)) < len(names):
            raise refuse("DataError", f"{label} has two columns of one name", help="rename one of them")
        copies = [_copy(column) for column in arrays]
        plain = all(copy is not None for copy in copies)
        kinds, stored = (
            ([_KINDS.get(copy.dtype.str[1:], "VARCHAR") for copy in copies], copies) if plain else _stored(arrays)
        )
        if len({len(column) for column in stored}) > 1:
            raise refuse("DataError", "the arrays of the table differ in length", help="give arrays of one length")
        super().__init__(names, tuple(kinds), label)
        self.typed = True
        if not plain:
            types = map(_unread, arrays, kinds)
            self.unread = tuple((column, kind) for column, kind in zip(names, types, strict=True) if kind)
        self._name = name
        self._stored = stored
        self.lies_in = _memory(origin.get_columns() if _home(origin) == "polars" else arrays)
        self.size = len(stored[0])
        self.arrays = Arrays(names, kinds, stored, self.size)
        self._register: Register | None = None

    def named_by(self, register: Register) -> Frame:
        """Itself, whose rows `register` gives the name to when a query first needs them."""
        self._register = register
        return self

    def table(self, needed: Collection[int]) -> str:
        if self._register is not None:
            if isinstance(self._stored[0], np.ndarray):
                self._stored = _stored(self._stored)[1]
            columns = {f"c{i}": column for i, column in enumerate(self._stored)}
            self._register(self._name, pa.table(columns | {"n": np.arange(self.size or 0)}))
            self._register = None
        return self._name

    def stale(self) -> bool:
        return False


_KINDS = {
    "i1": "TINYINT", "i2": "SMALLINT", "i4": "INTEGER", "i8": "BIGINT",
    "u1": "UTINYINT", "u2": "USMALLINT", "u4": "UINTEGER", "u8": "UBIGINT",
}  # fmt: skip
_LARGEST = 0x10FFFF  # of all characters
_EXACT = 2**53


def _copy(column: object) -> Any:
    """A copy of a small array of NumPy that holds whole numbers or texts as they are, for which no Arrow is needed
    before the database asks; else None."""
    if type(column) is not np.ndarray or column.ndim != 1 or not column.dtype.isnative or len(column) > MOST_ROWS:
        return None
    kind, size = column.dtype.kind, column.dtype.itemsize
    if kind in "iu":
        return np.array(column)
    if kind != "U" or not size:
        return None
    copy = np.array(column)
    return None if (copy.view(np.uint32) > _LARGEST).any() else copy


def _stored(columns: list[object]) -> tuple[list[str], list[pa.Array]]:
    """The kinds of columns, and their cells as Arrow has them."""
    arrays = [_array(column) for column in columns]
    return [kind_of(array.type) for array in arrays], [cells(array) for array in arrays]


def need_table(origin: Any) -> None:
    """Refuses with `DataError` what is no table, by its type. A table is a pandas frame, a dict of arrays, a structured
    NumPy array, or whatever hands itself over as an Arrow stream: Arrow tables, polars frames, relations of DuckDB."""
    home = _home(origin)
    if home == "numpy" and hasattr(origin, "dtype"):
        if origin.dtype.names is None or origin.ndim != 1:
            raise refuse("DataError", "an array is no table", help="give a dict of arrays, or a structured array")
    elif home == "pandas" and not hasattr(origin, "columns"):
        raise refuse("DataError", f"a {type(origin).__name__} is no table", help="give a frame, `s.to_frame()`")
    elif isinstance(origin, dict):
        if any(isinstance(column, str) or not hasattr(column, "__len__") for column in origin.values()):
            raise refuse("DataError", "every column of a table is an array", help='write `{"age": [20, 30]}`')
    elif not hasattr(origin, "__arrow_c_stream__") and home != "pandas":
        help = "give a path, a data frame (pandas, polars, Arrow, DuckDB), a dict of arrays, or a NumPy array of counts"
        raise refuse("DataError", f"what is of type {type(origin).__name__} is no table", help=help)


def _columns(origin: Any) -> tuple[tuple[str, ...], list[Any]]:
    """The names and the columns of a table."""
    need_table(origin)
    if isinstance(origin, dict):
        return tuple(str(name) for name in origin), list(origin.values())
    home = _home(origin)
    if home == "pandas":
        return tuple(str(name) for name in origin.columns), [origin.iloc[:, i] for i in range(origin.shape[1])]
    if home == "numpy":
        return tuple(origin.dtype.names), [origin[name] for name in origin.dtype.names]
    table = _streamed(origin)
    return tuple(table.column_names), list(table.columns)


def _streamed(origin: object) -> pa.Table:
    """The Arrow table of a stream. What runs in it is Python's own, such as a query; why it fails is reported nowhere,
    since its message may quote a cell."""
    import duckdb

    if isinstance(origin, pa.Table):
        return origin
    try:
        return pa.RecordBatchReader.from_stream(origin).read_all()
    except (pa.ArrowException, duckdb.Error, OSError, ValueError, TypeError, RuntimeError):
        message = f"this {type(origin).__name__} cannot be read as a table"
        raise refuse("DataError", message, help="give a frame whose rows are there, or a query that runs") from None


def _array(column: Any) -> pa.Array | pa.ChunkedArray:
    """An Arrow array of the column's declared type; of texts where Arrow has no such type."""

    if isinstance(column, pa.ChunkedArray | pa.Array):
        return column
    if _home(column) == "pandas":
        column = column.to_series() if hasattr(column, "to_series") else column
        if not isinstance(column.dtype, np.dtype):
            return _extended(column)
        column = column.to_numpy()
    elif hasattr(column, "__arrow_c_stream__"):  # a series of polars
        return _series(column)
    elif not hasattr(column, "__array__"):
        return _texts(list(column))  # a list declares no type, and none is guessed from what stands in it
    return _of_numpy(column)


def _of_numpy(column: object) -> pa.Array:
    """An Arrow array of NumPy's cells, of which what is masked is none."""

    values = np.ma.filled(column.astype(object), None) if isinstance(column, np.ma.MaskedArray) else np.asarray(column)
    if values.ndim != 1:
        raise refuse("DataError", "every column of a table is an array of one dimension")
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind not in "OV":
        values = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("=")))
    if kind in "iu" or (kind == "f" and size in (4, 8)):  # as `pa.array` has it, which would load pandas
        return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])
    if kind == "b":
        return pa.array(values)
    if kind == "f":
        with np.errstate(all="ignore"):
            return pa.array(values.astype(np.float32 if size == 2 else np.float64))
    if kind == "M":
        texts = np.datetime_as_string(values)
        return _texts([None if text == "NaT" else text for text in texts.tolist()])
    if kind == "m":
        return pa.array(values.view(np.int64), mask=np.isnat(values))
    if kind == "U" and size:
        codes = values.view(np.uint32)
        codes[codes > _LARGEST] = 0xFFFD  # a buffer may hold anything as a character
    return _texts(values.tolist())


def _unread(column: object, kind: str) -> str:
    """The type of a column that is none throughout, whatever stands in it; empty where cells are read, or are none."""
    declared = getattr(column, "dtype", None) or getattr(column, "type", None)
    if type(declared).__name__ in ("PeriodDtype", "IntervalDtype") or getattr(declared, "kind", "") in ("c", "V"):
        return str(declared)
    if kind == NONE and str(declared) not in ("null", "object"):
        return str(declared)
    return ""


def _series(column: object) -> pa.ChunkedArray:
    """A column that hands itself over as an Arrow stream; refused where Arrow does not have its type."""
    try:
        return pa.chunked_array(column)
    except (pa.ArrowException, TypeError, ValueError):
        message = f"a column of type {getattr(column, 'dtype', type(column).__name__)} cannot be read"
        raise refuse("DataError", message, help="cast it to numbers, texts or dates before") from None


_INSIDE = ("_ndarray", "_pa_array", "_data", "_sparse_values", "_left")  # where pandas' arrays have their memory


def _memory(columns: list[object]) -> list[object]:
    """The arrays of NumPy or Arrow, and the lists, in which columns lie as they were handed over. Refuses with
    `DataError` what lies where nothing can be told, by its types."""
    lying = list(map(_lies_in, columns))
    nulls = [isinstance(one, pa.ChunkedArray | pa.Array) and pa.types.is_null(one.type) for one in lying]
    if any(one is None for one in lying) or all(nulls):
        raise refuse(
            "DataError", "it cannot be told where these columns lie in memory, and whether others have their rows",
            help="hand them over as a table of Arrow or as arrays of NumPy",
        )  # fmt: skip
    return lying


def _lies_in(column: Any) -> Any:
    if isinstance(column, pa.ChunkedArray | pa.Array | list | tuple):
        return column
    if _home(column) == "pandas":
        part = column.array
        while part is not None and not isinstance(part, np.ndarray | pa.ChunkedArray | pa.Array):
            part = next((getattr(part, name) for name in _INSIDE if hasattr(part, name)), None)
        return part
    if hasattr(column, "__arrow_c_stream__"):  # a series of polars, which copies the codes of categories, and objects
        kind = str(getattr(column, "dtype", ""))
        return None if kind == "Object" else _series(column.to_physical() if kind == "Categorical" else column)
    return np.asarray(column) if hasattr(column, "__array__") else None


def _home(value: object) -> str:
    """The package that a value's type is of."""
    module = type(value).__module__
    return module.partition(".")[0] if type(module) is str else ""


def _extended(column: pd.Series) -> pa.Array:
    """pandas' own types: nullable numbers, strings, categories, dates with a zone; others are texts or none."""
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", "") == "pyarrow":
        return pa.array(column.array)
    if isinstance(dtype, pd.CategoricalDtype):
        codes = pa.array(column.cat.codes.to_numpy())
        return pa.DictionaryArray.from_arrays(codes, _array(column.cat.categories.to_series()), safe=False)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return _texts([_zoned(column.array, i) for i in range(len(column))])
    if getattr(dtype, "kind", "O") in "biuf" and not isinstance(dtype, pd.SparseDtype):
        return pa.array(column.array.copy(), from_pandas=True)  # which Arrow would share with who changes it later
    if isinstance(dtype, pd.PeriodDtype | pd.IntervalDtype):
        return pa.nulls(len(column), pa.string())
    return _texts(column.tolist())


def _zoned(moments: Sequence[object], place: int) -> str | None:
    """One time of a zone, or None where the zone's clock cannot show it."""
    try:
        return text_of(moments[place])
    except (ValueError, OverflowError, NotImplementedError):
        return None


def _texts(values: list[object]) -> pa.Array:
    return pa.array([text_of(value) for value in values], type=pa.string())


def text_of(value: Any) -> str | None:
    """The text of a Python object in a table, or None: the one that a column of its type has. Never fails: what an
    object is its type alone says, and of types that are not Python's, NumPy's or pandas' no method is called."""
    if issubclass(type(value), np.generic):
        value = np.generic.item(value)
    kind = type(value)
    if issubclass(kind, str):
        return str.encode(value, "utf-8", "replace").decode("utf-8")
    if issubclass(kind, bytes):
        return bytes.decode(value, "utf-8", "replace")
    if issubclass(kind, datetime.date | datetime.time):
        return _moment(value)
    if kind is bool:
        return "true" if value else "false"
    if issubclass(kind, int):
        return int.__repr__(value) if int.bit_length(value) < 1100 else None
    if issubclass(kind, float):
        number = float.__add__(value, 0.0)
        if number.is_integer() and abs(number) < _EXACT:
            return str(int(number))
        return None if math.isnan(number) else repr(number)
    if kind is Decimal:
        return text_of_decimal(value)
    return str(value) if _home(value) == "uuid" and kind.__name__ == "UUID" else None


_KNOWN = ("datetime", "zoneinfo", "pytz", "dateutil", "pandas")  # whose dates, times and zones are asked


def _moment(value: Any) -> str | None:
    """A date or time; none where its type or its zone is not of a known package, or the zone has no offset then."""
    parts = datetime.datetime if issubclass(type(value), datetime.datetime) else datetime.time
    zone = parts.tzinfo.__get__(value) if issubclass(type(value), parts) else None
    if _home(value) not in _KNOWN or (zone is not None and _home(zone) not in _KNOWN):
        return None
    try:
        text: str = value.isoformat(sep=" ") if parts is datetime.datetime else value.isoformat()
    except (ValueError, OverflowError, TypeError, NotImplementedError):
        return None
    return None if text == "NaT" else text
