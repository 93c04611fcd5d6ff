"""Tables in memory (pandas, polars, Arrow, NumPy) as columns of NumPy or Arrow that DuckDB can scan.

Nothing a cell holds is an error here: types are taken from the columns' declared types, never guessed from their
cells. A column of Python objects becomes text, cell by cell (dates in ISO order, booleans as `true` and `false`,
what has no plain text as none).
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from jostle.diagnostics import need_package, refuse
from jostle.engine.duckdb.engine import in_unicode, table_of
from jostle.engine.sql.cells import NONE
from jostle.lazy import Array, Bools, Ints, np, pa
from jostle.readers.arrays import MOST_BYTES, Arrays, cells, kind_of, text_of_decimal
from jostle.readers.textfile import ReadRaw

if TYPE_CHECKING:
    import pandas as pd

Register = Callable[[str, object], object]


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
        columns = [_array(column) for column in arrays]
        kinds = [_kind(column) for column in columns]
        stored = [column if isinstance(column, np.ndarray) else cells(column) for column in columns]
        if len({len(column) for column in stored}) > 1:
            raise refuse("DataError", "the arrays of the table differ in length", help="give arrays of one length")
        super().__init__(names, tuple(kinds), label)
        self.typed = True
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
            columns = {f"c{i}": column for i, column in enumerate(self._stored)}
            self._register(self._name, table_of(columns | {"n": np.arange(self.size or 0)}))
            self._register = None  # until a forked process opens it again, which hands the rows to its own database
        return self._name

    def stale(self) -> bool:
        return False


_KINDS = {
    "i1": "TINYINT", "i2": "SMALLINT", "i4": "INTEGER", "i8": "BIGINT",
    "u1": "UTINYINT", "u2": "USMALLINT", "u4": "UINTEGER", "u8": "UBIGINT",
    "f4": "FLOAT", "f8": "DOUBLE", "b1": "BOOLEAN",
}  # fmt: skip
_UNITS: dict[str, Literal["D", "m"]] = {"Y": "D", "M": "D", "h": "m"}  # for those whose own texts are no dates
_NO_UNIT = "datetime64"
_LARGEST = 0x10FFFF  # of all characters
_EXACT = 2**53


def _kind(column: pa.Array) -> str:
    if not isinstance(column, np.ndarray):
        return kind_of(column.type)
    return _KINDS.get(column.dtype.str[1:], "VARCHAR")


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

    need_package("pyarrow", "arrow", f"a {type(origin).__name__} of {_home(origin)} is read by")
    if isinstance(origin, pa.Table):
        return origin
    try:
        return pa.RecordBatchReader.from_stream(origin).read_all()
    except (pa.ArrowException, duckdb.Error, OSError, ValueError, TypeError, RuntimeError):
        message = f"this {type(origin).__name__} cannot be read as a table"
        raise refuse("DataError", message, help="give a frame whose rows are there, or a query that runs") from None


def _array(column: Any) -> pa.Array:
    """A column of its declared type, as it was handed over: of Arrow, or an array of NumPy of numbers, truths or texts.
    What is of another type becomes texts."""
    if _home(column) == "pyarrow":
        return column
    if _home(column) == "pandas":
        if not hasattr(column, "iloc"):  # an index, or an array of pandas' own
            import pandas as pd

            column = pd.Series(column, dtype=column.dtype)  # without it a type is guessed
        if not isinstance(column.dtype, np.dtype):
            return _extended(column)
        column = column.to_numpy()
    elif hasattr(column, "__arrow_c_stream__"):  # a series of polars
        return _series(column)
    elif not hasattr(column, "__array__"):
        return _texts(list(column))  # a list declares no type, and none is guessed from what stands in it
    return _of_numpy(column)


def _of_numpy(column: object) -> Array:
    """A copy of NumPy's cells, of which what is masked is none."""

    if isinstance(column, np.ma.MaskedArray):
        return _masked(_of_numpy(np.ma.getdata(column)), np.ma.getmaskarray(column))
    values = np.asarray(column)
    if values.ndim != 1:
        raise refuse("DataError", "every column of a table is an array of one dimension")
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind not in "OTV":
        values = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("=")))
    if kind in "iub" or (kind == "f" and size in (4, 8)):
        return values
    if kind == "f":
        with np.errstate(all="ignore"):
            return values.astype(np.float32 if size == 2 else np.float64)
    if kind == "M" and str(values.dtype) != _NO_UNIT:
        texts = np.datetime_as_string(values, unit=_UNITS.get(np.datetime_data(values.dtype)[0]))
        return _texts([None if text == "NaT" else text for text in texts.tolist()])
    if kind == "m":
        return np.ma.masked_array(values.view(np.int64), np.isnat(values))
    if kind == "U" and size:
        codes = values.view(np.uint32)
        codes[codes > _LARGEST] = 0xFFFD  # a buffer may hold anything as a character
        return values
    return _texts(values.tolist())


def _unread(column: object, kind: str) -> str:
    """The type of a column that is none throughout, whatever stands in it; empty where cells are read, or are none."""
    declared = getattr(column, "dtype", None) or getattr(column, "type", None)
    none = type(declared).__name__ in ("PeriodDtype", "IntervalDtype") or getattr(declared, "kind", "") in ("c", "V")
    if none or str(declared) == _NO_UNIT or (kind == NONE and str(declared) not in ("null", "object")):
        return str(declared)
    return ""


def _series(column: object) -> pa.ChunkedArray:
    """A column that hands itself over as an Arrow stream; refused where Arrow does not have its type."""
    need_package("pyarrow", "arrow", f"a {type(column).__name__} of {_home(column)} is read by")
    try:
        return pa.chunked_array(column)
    except (pa.ArrowException, TypeError, ValueError):
        message = f"a column of type {getattr(column, 'dtype', type(column).__name__)} cannot be read"
        raise refuse("DataError", message, help="cast it to numbers, texts or dates before") from None


_INSIDE = ("_ndarray", "_pa_array", "_data", "_sparse_values", "_left")  # where pandas' arrays have their memory


def _memory(columns: list[object]) -> list[object]:
    """The arrays of NumPy or Arrow, and the lists, in which columns lie as they were handed over. Refuses with
    `DataError` what lies where nothing is known, by its types."""
    lying = list(map(_lies_in, columns))
    nulls = [_home(one) == "pyarrow" and pa.types.is_null(one.type) for one in lying]
    if any(one is None for one in lying) or all(nulls):
        raise refuse(
            "DataError", "it is not known where these columns lie in memory, and whether others have their rows",
            help="hand them over as a table of Arrow or as arrays of NumPy",
        )  # fmt: skip
    return lying


def _lies_in(column: Any) -> Any:
    if _home(column) == "pyarrow" or isinstance(column, list | tuple):
        return column
    if _home(column) == "pandas":
        part = getattr(column, "array", column)
        while part is not None and not isinstance(part, np.ndarray) and _home(part) != "pyarrow":
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
        return _of_categories(column.cat.codes.to_numpy(), _array(column.cat.categories))
    if isinstance(dtype, pd.DatetimeTZDtype):
        return _texts([_zoned(column.array, i) for i in range(len(column))])
    if getattr(dtype, "kind", "O") in "biuf" and not isinstance(dtype, pd.SparseDtype):
        missing = column.isna().to_numpy()
        values = column.array.to_numpy(dtype.numpy_dtype, na_value=np.zeros(1, dtype.numpy_dtype)[0])
        return np.ma.masked_array(values, missing, copy=True)
    if isinstance(dtype, pd.PeriodDtype | pd.IntervalDtype):
        return _texts([None] * len(column))
    return _texts(column.tolist())


def _of_categories(codes: Ints, categories: pa.Array) -> pa.Array:
    """The cells that codes of pandas stand for, of which −1 and what stands for none are none."""
    if not isinstance(categories, np.ndarray):
        return pa.DictionaryArray.from_arrays(pa.array(codes), categories, safe=False)
    outside = (codes < 0) | (codes >= len(categories))
    values = categories if len(categories) else np.zeros(1, categories.dtype)
    return _masked(values[np.where(outside, 0, codes)], outside)


def _masked(cells: Array, missing: Bools) -> Array:
    """Cells of their own, of which some are none."""
    if cells.dtype.kind in "OU":
        cells = in_unicode(cells) if cells.dtype.kind == "U" else cells.copy()
        cells[missing] = None
        return cells
    return np.ma.masked_array(cells, np.ma.getmaskarray(cells) | missing)


def _zoned(moments: Sequence[object], place: int) -> str | None:
    """One time of a zone, or None where the zone's clock cannot show it."""
    try:
        return text_of(moments[place])
    except (ValueError, OverflowError, NotImplementedError):
        return None


def _texts(values: list[object]) -> Array:
    return np.fromiter(map(text_of, values), dtype=object, count=len(values))


def text_of(value: Any) -> str | None:
    """The text of a Python object in a table, or None: the one that a column of its type has. Never fails: what an
    object is its type alone says, and of types that are not Python's, NumPy's or pandas' no method is called."""
    if issubclass(type(value), np.generic):
        value = np.generic.item(value)
    kind = type(value)
    if issubclass(kind, str | bytes):
        text = str.encode(value, "utf-8", "replace") if issubclass(kind, str) else value
        return bytes.decode(text, "utf-8", "replace") if bytes.__len__(text) <= MOST_BYTES else None
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
