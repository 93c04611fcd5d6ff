"""Columns in memory as cells: small tables as arrays, and columns of Arrow for the database.

Small tables are counted from their arrays: training reads hundreds of them, and a statement for each costs a database
more than its rows do. Columns of integers, described as such, and of texts that are described by a list are read here
as the database reads them (`sql.cells`), which a suite compares; what else there is stays the database's.

Columns of Arrow become cells that the database reads without a failure, whatever one row holds. A column's kind is
decided by its type alone. The values are then converted row by row, and totally: numbers and validated texts stay, what
the database would have to convert (times, durations) is handed over as integers, for `clean` to read. Decimals become
texts, and bytes that are no UTF-8 are replaced in the cell where they stand. What has no cells of its own (lists,
structs, maps, unknown types) is none in every row. A decimal has one text on every engine, without an exponent and
without zeros at its end: `2.500` and `2.5` name one person, as they do in PostgreSQL, and `2.00` names the same as `2`.
"""

from __future__ import annotations

import codecs
import hashlib
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from jostle.engine.sql.cells import NONE, WHOLE
from jostle.integers import fixed_width, same_bits
from jostle.language.operations import LONGEST
from jostle.lazy import Array, Ints, NDArray, np, pa
from jostle.plan.plan import Categories, Column, Domain, Integer, Key, Plan, Scan

MOST_ROWS = 2**20
_EXACT = 2**53
_LONG = 2**30  # bytes of texts that are one dictionary
_CELLS = 2**62  # combinations of values that a number of 64 bits tells apart


class Arrays:
    """The columns of a table in memory, `stored` as Arrow has them or as plain arrays, of these names and kinds."""

    def __init__(self, names: Sequence[str], kinds: Sequence[str], stored: Sequence[Any], size: int) -> None:
        self.size = size
        some = stored if size <= MOST_ROWS else [None] * len(stored)  # others are the database's alone
        self._stored = dict(zip(names, zip(kinds, some, strict=True), strict=True))
        self._read: dict[str, tuple[Array, tuple[str, ...] | None] | None] = {}

    def codes(self, plan: Plan, keys: Sequence[Key]) -> list[Array] | None:
        """What the engine's `codes` gives of a scan; None where it is not to be had of the arrays."""
        domains = _described(plan)
        arrays = [self._codes(key, domains) for key in keys]
        return None if any(codes is None for codes in arrays) else [codes for codes in arrays if codes is not None]

    def counts(self, plan: Plan, keys: Sequence[Key], shape: tuple[int, ...]) -> Ints | None:
        """How many rows there are of each combination of the keys' values, in their shape; or None."""
        if not keys:
            return np.array(self.size) if self._stored.keys() >= _described(plan).keys() else None
        codes = self.codes(plan, keys)
        if codes is None:
            return None
        place, inside = np.zeros(self.size, dtype=np.int64), np.ones(self.size, dtype=bool)
        for column, many in zip(codes, shape, strict=True):
            inside &= column >= 0
            place = place * many + column
        return np.bincount(place[inside], minlength=math.prod(shape)).reshape(shape)

    def different(self, plan: Plan, names: Sequence[str]) -> tuple[list[list[object]], list[float]] | None:
        """The different rows of these columns, in order, a list a column, and how often each occurs; or None."""
        domains = _described(plan)
        columns = [self._values(name, domains) for name in names]
        pairs = [column for column in columns if column is not None]
        if len(pairs) < len(columns) or not pairs or any((codes < 0).any() for codes, _ in pairs):
            return None
        sizes = [len(values) for _, values in pairs]
        if math.prod(sizes) > _CELLS:
            return None
        places = np.zeros(self.size, dtype=np.int64)
        for codes, values in pairs:
            places = places * len(values) + codes
        different, counts = np.unique(places, return_counts=True)
        at = np.unravel_index(different, sizes)
        lists = [_listed(values, codes) for (_, values), codes in zip(pairs, at, strict=True)]
        return lists, counts.astype(np.float64).tolist()

    def stamp(self) -> str | None:
        """A text that changes when the cells do, whatever the order of rows; or None."""
        columns = []
        for name in self._stored:
            column = self._column(name)
            if column is None:
                return None
            cells, texts = column
            if texts is not None:
                numbers = [int.from_bytes(hashlib.blake2b(t.encode(), digest_size=8).digest(), "big") for t in texts]
                cells = np.array([*numbers, 0], dtype=np.uint64)[cells]
            columns.append(cells.astype(np.uint64))
        rows = np.stack(columns)[:, np.lexsort(columns)]
        return f"{self.size}:{hashlib.blake2b(rows.tobytes(), digest_size=16).hexdigest()}"

    # Inside ----------------------------------------------------------------------------------------

    def _codes(self, key: Key, domains: dict[str, Domain]) -> Array | None:
        if not isinstance(key.expr, Column):
            return None
        pair = self._values(key.expr.name, domains)
        if pair is None:
            return None
        codes, values = pair
        size = len(key.values)
        width = np.int8 if size < 2**7 else np.int16 if size < 2**15 else np.int32
        if isinstance(values, range) and isinstance(key.values, range):
            first = key.values.start
            place = codes if first == values.start else codes + (values.start - first)
            outside = (place < 0) | (place >= size)
            return np.where(outside, -1, place).astype(width)
        if isinstance(values, range) or isinstance(key.values, range):
            return None
        where = {value: at for at, value in reversed([*enumerate(key.values)])}
        return np.array([*(where.get(value, -1) for value in values), -1], dtype=width)[codes]

    def _values(self, name: str, domains: dict[str, Domain]) -> tuple[Ints, range | tuple[str, ...]] | None:
        """For each row the place of its cleaned cell among the values of its domain, in order; −1 for none."""
        domain, column = domains.get(name), self._column(name)
        if column is None:
            return None
        cells, texts = column
        if isinstance(domain, Integer) and texts is None and max(abs(domain.low), abs(domain.high)) <= _EXACT:
            return np.clip(cells, domain.low, domain.high) - domain.low, range(domain.low, domain.high + 1)
        if isinstance(domain, Categories) and texts is not None:
            values = sorted({value for value in domain.values if isinstance(value, str) and value})
            if len(values) < len(domain.values):
                return None
            where = {value: at for at, value in enumerate(values)}
            places = fixed_width([*(where.get(text, -1) for text in texts), -1])
            return places[cells], tuple(values)
        return None

    def _column(self, name: str) -> tuple[Array, tuple[str, ...] | None] | None:
        """Whole numbers; or for each row the place of its text among the different ones, −1 for none."""
        if name not in self._read:
            self._read[name] = self._decoded(name)
        return self._read[name]

    def _decoded(self, name: str) -> tuple[Array, tuple[str, ...] | None] | None:
        kind, column = self._stored.get(name, ("", None))
        if column is None:
            return None
        if isinstance(column, np.ndarray):
            if kind in WHOLE and not isinstance(column, np.ma.MaskedArray):
                return same_bits(column), None
            return _texts(column) if kind == "VARCHAR" else None
        if kind in WHOLE and not column.null_count:
            return same_bits(column.to_numpy()), None
        if kind != "VARCHAR" or not self.size or column.nbytes > _LONG:
            return None
        coded = column.dictionary_encode().chunks  # of one dictionary
        places = [chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False) for chunk in coded]
        return np.concatenate(places), tuple(coded[-1].dictionary.to_pylist())


def _texts(column: Array) -> tuple[Ints, tuple[str, ...]] | None:
    """For each row the place of its text among the different ones, −1 for none; None where one cannot be written."""

    places: dict[str, int] = {}
    texts = column.tolist()
    codes = fixed_width([-1 if text is None else places.setdefault(text, len(places)) for text in texts])
    try:
        "".join(places).encode()
    except UnicodeEncodeError:
        return None
    return codes, tuple(places)


def _described(plan: Plan) -> dict[str, Domain]:
    return dict(plan.columns) if isinstance(plan, Scan) else {}


def _listed(values: range | tuple[str, ...], codes: NDArray[np.intp]) -> list[object]:
    if isinstance(values, range):
        numbers: list[object] = (codes + values.start).astype(float).tolist()
        return numbers
    return [values[at] for at in codes.tolist()]


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
MOST_BYTES = 4 * LONGEST  # of a text


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
        chunks = [pa.nulls(0, column.type)]
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
    return _text_cells(chunk) if _is_bytes(kind) else [chunk]


def _unpacked(chunk: pa.DictionaryArray) -> list[pa.Array]:
    """The cells that the codes stand for; a code that stands for none is none."""
    import pyarrow.compute as pc

    values = pa.concat_arrays(_cells(chunk.dictionary) or [pa.nulls(0, pa.string())])
    if pa.types.is_string(values.type):
        values = values.cast(pa.large_string())  # of which many rows may have one that is long
    inside = pc.and_(pc.greater_equal(chunk.indices, 0), pc.less(chunk.indices, len(values)))
    return [values.take(pc.if_else(inside, chunk.indices, pa.scalar(None, chunk.indices.type)))]


def _text_cells(chunk: pa.Array) -> list[pa.Array]:
    """Texts in UTF-8, slice by slice; where a slice has bytes that are none, each of them becomes `?`. One that is too
    long is none, as it is whatever it is read as: a database takes no text of 4 GB."""
    import pyarrow.compute as pc

    if not (pa.types.is_string(chunk.type) or pa.types.is_large_string(chunk.type)):
        chunk = chunk.cast(pa.large_binary()).view(pa.large_string())
    codecs.register_error("jostle.replace", _replaced)
    texts = []
    for start in range(0, len(chunk), _SLICE):
        part = chunk.slice(start, _SLICE)
        sizes = pc.binary_length(part)
        if (pc.max(sizes).as_py() or 0) > MOST_BYTES:
            part = pc.if_else(pc.less_equal(sizes, MOST_BYTES), part, pa.scalar(None, part.type))
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
