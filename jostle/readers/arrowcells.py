"""Columns of Arrow as cells that the database reads without a failure, whatever one row holds.

A column's kind is decided by its type alone. The values are then converted row by row, and totally: numbers and
validated texts stay, what the database would have to convert (times, durations) is handed over as whole numbers, for
`clean` to read, decimals become texts, and bytes that are no UTF-8 are replaced in the cell where they stand. What has
no cells of its own (lists, structs, maps, unknown types) is none in every row.

The one text of a decimal number, which every engine gives it: without an exponent, and without zeros at its end.

So `2.500` and `2.5` name one person, as they do in PostgreSQL, and `2.00` names the same as `2`.
"""

from __future__ import annotations

import codecs
from decimal import Decimal

from jostle.engine.sql.cells import NONE
from jostle.lazy import pa

_MOST_DIGITS = 1000  # before or after the point that are written out


def text_of_decimal(value: Decimal) -> str:
    """What is not finite, or too long, is written as Python has it."""
    if not value.is_finite() or abs(value.adjusted()) > _MOST_DIGITS:
        return str(value)
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def texts_of_decimals(chunk: pa.Array) -> pa.Array:
    """The texts of an Arrow array of decimals."""
    import pyarrow.compute as pc

    texts = chunk.cast(pa.string())
    if pc.any(pc.match_substring(texts, "E")).as_py():  # small ones, and those of types that end before the point
        return pa.array([cell and text_of_decimal(Decimal(cell)) for cell in texts.to_pylist()], pa.string())
    return pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".") if chunk.type.scale > 0 else texts


_SLICE = 1 << 16  # rows of text that are validated at a time


def kind_of(type_: pa.DataType) -> str:
    """The kind of the cells, as `clean` has it; `NONE` for what is none in every row."""
    types = pa.types
    if isinstance(type_, pa.BaseExtensionType):
        return "VARCHAR" if type_.extension_name == "arrow.uuid" else kind_of(type_.storage_type)
    if types.is_dictionary(type_):
        return kind_of(type_.value_type)
    if types.is_boolean(type_):
        return "BOOLEAN"
    if types.is_integer(type_):
        return ("U" if types.is_unsigned_integer(type_) else "") + _INTEGERS[type_.bit_width]
    if types.is_floating(type_):
        return "DOUBLE" if types.is_float64(type_) else "FLOAT"
    if types.is_date32(type_):
        return "DATE"
    if types.is_date64(type_):
        return "DATE ms"
    if types.is_time(type_):
        return f"TIME {type_.unit}"
    if types.is_timestamp(type_):
        return f"TIMESTAMP {type_.unit}" + (" UTC" if type_.tz is not None else "")
    if types.is_duration(type_):
        return "BIGINT"
    return "VARCHAR" if types.is_decimal(type_) or _is_bytes(type_) else NONE


_INTEGERS = {8: "TINYINT", 16: "SMALLINT", 32: "INTEGER", 64: "BIGINT"}


def _is_bytes(type_: pa.DataType) -> bool:
    """Whether the cells are texts or bytes, of any layout."""
    types = pa.types
    tests = (types.is_string, types.is_large_string, types.is_string_view, types.is_binary, types.is_large_binary,
             types.is_binary_view, types.is_fixed_size_binary)  # fmt: skip
    return any(test(type_) for test in tests)


def cells(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray:
    """The column as its kind is stored."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    if not chunks:  # a table without rows may have none: the type of its cells is that of any other
        chunks = [column.combine_chunks()]
    stored = [piece for chunk in chunks for piece in _cells(chunk)]
    return pa.chunked_array(stored) if stored else pa.chunked_array([pa.nulls(0, pa.string())])


def _cells(chunk: pa.Array) -> list[pa.Array]:
    kind, types = chunk.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.uuid":
            return [_uuids(chunk.storage)]
        return _cells(chunk.storage)
    if types.is_dictionary(kind):
        return _unpacked(chunk)
    if kind_of(kind) == NONE:
        return [pa.nulls(len(chunk), pa.string())]
    if types.is_float16(kind):
        return [chunk.cast(pa.float32())]
    if types.is_date64(kind) or types.is_time64(kind) or types.is_timestamp(kind) or types.is_duration(kind):
        return [chunk.view(pa.int64())]
    if types.is_time32(kind):
        return [chunk.view(pa.int32())]
    if types.is_decimal(kind):
        return [texts_of_decimals(chunk)]
    return _texts(chunk) if _is_bytes(kind) else [chunk]


def _unpacked(chunk: pa.DictionaryArray) -> list[pa.Array]:
    """The cells that the codes stand for; a code that stands for none is none."""
    import pyarrow.compute as pc

    values = pa.concat_arrays(_cells(chunk.dictionary) or [pa.nulls(0, pa.string())])
    if pa.types.is_string(values.type):
        values = values.cast(pa.large_string())  # of which many rows may have one that is long
    inside = pc.and_(pc.greater_equal(chunk.indices, 0), pc.less(chunk.indices, len(values)))
    return [values.take(pc.if_else(inside, chunk.indices, pa.scalar(None, chunk.indices.type)))]


def _texts(chunk: pa.Array) -> list[pa.Array]:
    """Texts in UTF-8, slice by slice; where a slice has bytes that are none, each of them becomes `?`."""
    if not (pa.types.is_string(chunk.type) or pa.types.is_large_string(chunk.type)):
        chunk = chunk.cast(pa.large_binary()).view(pa.large_string())
    codecs.register_error("jostle.replace", _replaced)
    texts = []
    for start in range(0, len(chunk), _SLICE):
        part = chunk.slice(start, _SLICE)
        try:
            part.validate(full=True)
        except pa.ArrowInvalid:
            raw = part.cast(pa.binary() if pa.types.is_string(part.type) else pa.large_binary()).to_pylist()
            part = pa.array(
                [cell if cell is None else cell.decode("utf-8", "jostle.replace") for cell in raw], part.type
            )
        texts.append(part)
    return texts


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """One `?` a byte, as DuckDB has it."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "?" * (error.end - error.start), error.end


def _uuids(chunk: pa.Array) -> pa.Array:
    return pa.array([cell if cell is None else _hyphened(cell.hex()) for cell in chunk.to_pylist()], pa.string())


def _hyphened(digits: str) -> str:
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
