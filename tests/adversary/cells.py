"""Columns of every type with hostile cells, for files and for tables in memory."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

NAN = float("nan")
ENDS = {8: (2**7 - 1, -(2**7)), 16: (2**15 - 1, -(2**15)), 32: (2**31 - 1, -(2**31)), 64: (2**63 - 1, -(2**63))}
BYTES = (b"\xff", b"ab\xff\xfecd", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"a\0b", b"", b"\xe2\x82",
         b"x" * 300_000, b"\xff" * 300_000, b"'; --\"\n\r,", "\u202e\U0010ffff".encode())  # fmt: skip


def _bits(kind: pa.DataType, *more: int, width: int = 64) -> tuple[pa.Array, list[pa.Array]]:
    """A type that is a whole number inside, whose numbers may be any."""
    stored = pa.int64() if width == 64 else pa.int32()
    plain = pa.array([0, 1, 86_399, 77, 5, 3], stored).view(kind)
    odd = [*ENDS[width], ENDS[width][0] - 1, ENDS[width][1] + 1, ENDS[width][0] // 2, ENDS[width][1] // 2, -1, *more]
    return plain, [pa.array([v], stored).view(kind) for v in odd]


def _whole(kind: pa.DataType) -> tuple[pa.Array, list[pa.Array]]:
    high, low = ENDS[kind.bit_width]
    if pa.types.is_unsigned_integer(kind):
        high, low = 2 * high + 1, 0
    return pa.array([0, 1, 2, 77, 5, 3], kind), [pa.array([v], kind) for v in (high, low, high - 1)]


def _floats(kind: pa.DataType) -> tuple[pa.Array, list[pa.Array]]:
    with np.errstate(all="ignore"):
        numbers = [np.array([v]).astype(kind.to_pandas_dtype()) for v in (NAN, np.inf, -np.inf, -0.0, 5e-324, 1.7e308)]
    return pa.array([0.0, 1.5, 2.0, -3.25, 5.0, 3.0]).cast(kind), [pa.array(v) for v in numbers]


def _decimals(kind: Any) -> tuple[pa.Array, list[pa.Array]]:
    """Also those that have more digits than the type says."""
    size = kind.bit_width // 8
    odd = [b"\xff" * (size - 1) + b"\x7f", b"\0" * (size - 1) + b"\x80", b"\xff" * size]
    raw = [pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(v)]) for v in odd]
    return pa.array([Decimal(v) / 10**kind.scale for v in (0, 1, 2, 77, 5, 3)], kind), raw


def _text(kind: pa.DataType) -> tuple[pa.Array, list[pa.Array]]:
    offset = "<i8" if kind == pa.large_string() else "<i4"
    plain = pa.array(["a", "b", "", "7", "é", "2024-02-29"], kind)
    odd = [pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(np.array([0, len(v)], offset)), pa.py_buffer(v)])
           for v in BYTES]  # fmt: skip
    return plain, odd


def _same(kind: pa.DataType, plain: list[Any], odd: list[Any]) -> tuple[pa.Array, list[pa.Array]]:
    return pa.array(plain, kind), [pa.array([v], kind) for v in odd]


def _arrow() -> dict[str, tuple[pa.Array, list[pa.Array]]]:
    moments = {f"timestamp {u}{z}": _bits(pa.timestamp(u, tz=z or None), 253_402_300_800, -62_135_596_801)
               for u in ("ms", "us", "ns") for z in ("", "UTC", "Europe/Berlin")}  # fmt: skip
    whole = {str(k): _whole(k) for k in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(),
                                         pa.uint32(), pa.uint64())}  # fmt: skip
    broken = pa.DictionaryArray.from_arrays(
        pa.array([0], pa.int8()), pa.Array.from_buffers(
            pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], "<i4")), pa.py_buffer(b"\xffa")]))  # fmt: skip
    coded = pa.array(["a", "b", "a", None, "b", "a"]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))
    return whole | moments | {
        "bool": _same(pa.bool_(), [True, False, None, True, True, False], [True, None]),
        "float16": _floats(pa.float16()), "float32": _floats(pa.float32()), "float64": _floats(pa.float64()),
        "date32": _bits(pa.date32(), width=32), "date64": _bits(pa.date64()),
        "time32 s": _bits(pa.time32("s"), width=32), "time32 ms": _bits(pa.time32("ms"), 86_400_000, width=32),
        "time64 us": _bits(pa.time64("us"), 86_400_000_000), "time64 ns": _bits(pa.time64("ns"), 86_400 * 10**9),
        "duration s": _bits(pa.duration("s")), "duration ns": _bits(pa.duration("ns")),
        "decimal128": _decimals(pa.decimal128(4, 2)), "decimal128 wide": _decimals(pa.decimal128(38, 30)),
        "decimal256": _decimals(pa.decimal256(76, 10)), "decimal256 narrow": _decimals(pa.decimal256(5, 2)),
        "string": _text(pa.string()), "large string": _text(pa.large_string()),
        "binary": _same(pa.binary(), [b"a", b"7", b"", None, b"b", b"c"], list(BYTES)),
        "large binary": _same(pa.large_binary(), [b"a", b"7", b"", None, b"b", b"c"], list(BYTES)),
        "string view": _same(pa.string_view(), ["a", "7", "", None, "b", "c"], ["x" * 10_000, "", None]),
        "binary view": _same(pa.binary_view(), [b"a", b"7", b"", None, b"b", b"c"], list(BYTES)),
        "fixed binary": _same(pa.binary(2), [b"ab", b"cd", None, b"77", b"ef", b"gh"], [b"\xff\xfe", b"\0\0", None]),
        "null": (pa.nulls(6), [pa.nulls(1)]), "coded": (coded, [broken]),
        "list": _same(pa.list_(pa.int64()), [[1], [], None, [2, 3], [4], [5]], [[2**63 - 1] * 10_000, None]),
        "struct": _same(pa.struct([("a", pa.timestamp("us"))]), [{"a": v} for v in range(6)], [{"a": 2**63 - 1}, None]),
        "map": _same(pa.map_(pa.string(), pa.int64()), [[("a", v)] for v in range(6)], [[("a", 1), ("a", 2)], []]),
        "fixed list": _same(pa.list_(pa.float64(), 2), [[1.0, 2.0]] * 6, [[NAN, np.inf], None]),
        "uuid": _extended(pa.uuid(), [bytes([v] * 16) for v in range(6)], [b"\xff" * 16]),
        "json": _extended(pa.json_(), ["{}", "1", "[]", "2", "3", "4"], ["{", "\0", "[" * 100_000]),
    }  # fmt: skip


def _extended(kind: Any, plain: list[Any], odd: list[Any]) -> tuple[pa.Array, list[pa.Array]]:
    made = [pa.ExtensionArray.from_storage(kind, pa.array(v, kind.storage_type)) for v in (plain, *([v] for v in odd))]
    return made[0], made[1:]


ARROW = _arrow()
NOT_IN_PARQUET = {  # what only a table in memory can hold
    "timestamp s": _bits(pa.timestamp("s"), 253_402_300_800, -62_135_596_801),
    "months": _same(pa.month_day_nano_interval(), [(1, 2, 3)] * 6, [(2**31 - 1, -(2**31), 2**63 - 1), None]),
    "union": (pa.UnionArray.from_sparse(pa.array([0] * 6, pa.int8()), [pa.array(range(6))]),
              [pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([2**63 - 1])])]),
    "coded beyond": (pa.array(["a", "b", "a", None, "b", "a"]).dictionary_encode(),
                     [pa.DictionaryArray.from_arrays(pa.array([v], pa.int32()), pa.array(["a", "b"]), safe=False)
                      for v in (2, -1, 2**31 - 1)]),
}  # fmt: skip


class Loud:
    """An object whose methods all fail."""

    def __str__(self) -> str:
        raise RuntimeError("called")

    __repr__ = __str__


class Decimal_(Loud):
    pass


Decimal_.__name__ = "Decimal"


class Nowhere(datetime.tzinfo):
    def utcoffset(self, at: datetime.datetime | None) -> datetime.timedelta:
        raise ValueError("no")


class Stranger(datetime.tzinfo):
    def utcoffset(self, at: datetime.datetime | None) -> datetime.timedelta:
        raise ZeroDivisionError


class Liar(Loud):
    """Says that it is of another type, or fails when it is asked."""

    def __init__(self, kind: type | None) -> None:
        self.kind = kind

    @property
    def __class__(self) -> Any:
        return self.kind or 1 / 0

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("called")

    __hash__ = None  # type: ignore[assignment]


def _loud(kind: type, *names: str) -> type:
    def fail(*_: object, **__: object) -> Any:
        raise RuntimeError("called")

    return type(kind.__name__, (kind,), dict.fromkeys(names, fail))


class Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("called")


SUBTYPES = [
    Liar(None), *map(Liar, (str, bytes, float, datetime.datetime, np.generic)), Nameless("x", (), {})(),
    type("Odd", (), {"__module__": 5})(), _loud(str, "encode", "__str__", "__eq__")("a"),
    _loud(bytes, "decode", "__eq__")(b"a"), _loud(int, "__repr__", "bit_length", "__lt__", "__eq__")(7),
    _loud(float, "__abs__", "is_integer", "__int__", "__repr__", "__add__", "__float__")(7.5),
    _loud(np.float64, "item", "__repr__")(7.5), _loud(datetime.date, "isoformat", "__str__")(2024, 2, 29),
    _loud(datetime.datetime, "isoformat", "utcoffset", "time")(2024, 2, 29), _loud(Decimal, "is_finite", "__str__")(1),
    datetime.datetime(2024, 1, 1, tzinfo=Stranger()), datetime.time(1, tzinfo=Stranger()),
]  # fmt: skip
OBJECTS = [
    *SUBTYPES, Loud(), Decimal_(), object(), "\ud800", "a\0b", b"\xff", 10**5000, -(10**400), 10**400, NAN, np.inf,
    Decimal("sNaN"), Decimal("1e999999"), datetime.datetime.max, datetime.datetime(1, 1, 1, tzinfo=Nowhere()),
    datetime.timedelta.max, 1 + 2j, pd.NaT, pd.NA, None, [1] * 1000, {"a": 1}, np.datetime64(2**63 - 1, "s"),
    np.float64(NAN), np.int64(-(2**63)),
    uuid.UUID(int=2**128 - 1), np.longdouble("1e4000"), memoryview(b"a"), np.array([1, 2]),
]  # fmt: skip


def numpy_columns() -> dict[str, tuple[np.ndarray, list[np.ndarray]]]:
    """Arrays by name: six plain cells, and hostile ones."""

    def bits(kind: str) -> tuple[np.ndarray, list[np.ndarray]]:
        odd = (2**63 - 1, -(2**63), -(2**63) + 1, 2**62)
        return np.arange(6).view(kind), [np.array([v], "i8").view(kind) for v in odd]

    one = np.empty(1, object)
    boxes = [one.copy() for _ in OBJECTS]
    for box, value in zip(boxes, OBJECTS, strict=True):
        box[0] = value
    plain = np.array(["a", 7, 2.5, None, b"c", datetime.date(2024, 2, 29)], object)
    wild = np.array(["ab"])
    wild.view(np.uint32)[0] = 0x7FFFFFFF
    return {f"{k}[{u}]": bits(f"{k}[{u}]") for k in ("M8", "m8") for u in ("Y", "D", "s", "ms", "us", "ns", "as")} | {
        "objects": (plain, boxes),
        "text": (np.array(list("abc7ef")), [wild, np.array(["\ud800"]), np.array(["x" * 9999])]),
        "bytes": (np.array([b"a", b"b", b"7", b"", b"e", b"f"]), [np.array([v]) for v in BYTES[:8]]),
        "long": (np.arange(6).astype(np.longdouble), [np.array([v], np.longdouble) for v in ("1e4000", "nan", "-inf")]),
        "complex": (np.arange(6) + 1j, [np.array([complex(NAN, np.inf)])]),
        "big-endian": (np.arange(6).astype(">i4"), [np.array([2**31 - 1], ">i4")]),
        "structured": (np.zeros(6, "i4,f8"), [np.array([(1, NAN)], "i4,f8")]),
    }  # fmt: skip


LABELS = pd.Index(["a", "b", "c", "\ud800", Loud()], dtype=object)


def _coded(codes: list[int]) -> pd.Series:
    """A category of objects, of which one is no text that can be encoded, and one fails at everything."""
    return pd.Series(pd.Categorical.from_codes(codes, LABELS))


def pandas_columns() -> dict[str, tuple[pd.Series, list[pd.Series]]]:
    """Series by name: six plain cells, and hostile ones."""
    ends = np.array([2**63 - 1, -(2**63) + 1, -(2**63), 2**62])
    text, odd = ARROW["string"]
    times, strange = ARROW["timestamp us"]

    def zoned(numbers: np.ndarray, zone: str, unit: str) -> pd.Series:
        return pd.Series(numbers.view(f"M8[{unit}]")).dt.tz_localize("UTC").dt.tz_convert(zone)

    zones = {f"{z} {u}": (zoned(np.arange(6), z, u), [zoned(ends[i : i + 1], z, u) for i in range(4)])
             for z in ("UTC", "Europe/Berlin", "America/New_York") for u in ("ns", "s")}  # fmt: skip
    kinds = {
        "Int64": [2**63 - 1, None],
        "Float64": [NAN, np.inf, None],
        "boolean": [True, None],
        "string": ["\0", None],
    }
    plain = {"Int64": [1, 2, None, 3, 4, 5], "Float64": [1.5, 2, None, 3, 4, 5],
             "boolean": [True, False, None, True, True, False], "string": ["a", "b", None, "7", "", "c"]}  # fmt: skip
    typed = {k: (pd.Series(plain[k], dtype=k), [pd.Series([v], dtype=k) for v in odd]) for k, odd in kinds.items()}

    def arrow(array: pa.Array) -> pd.Series:
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([array])))

    return zones | typed | {
        "arrow text": (arrow(text), [arrow(v) for v in odd]), "arrow time": (arrow(times), [arrow(v) for v in strange]),
        "category": (_coded([0, 1, 2, 0, 1, -1]), [_coded([3]), _coded([4])]),
        "period": (pd.Series(pd.period_range("2020", periods=6, freq="D")),
                   [pd.Series([pd.Period(ordinal=2**62, freq="D")])]),
        "sparse": (pd.Series(pd.arrays.SparseArray([0.0, 1, 0, 2, 3, 4])), [pd.Series(pd.arrays.SparseArray([NAN]))]),
    }  # fmt: skip
