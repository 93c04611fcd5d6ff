"""Exact whole numbers as 64-bit arrays: the one place where a number of private rows gets a fixed width.

A conversion that fails, wraps or saturates somewhere else would move an answer by more than a row may. Here each number
is brought into ±`limit`, which moves no two numbers further apart (it is 1-Lipschitz, number by number). So the
sensitivity that was proved before the conversion holds after it. Until then sums are as wide as they need: DuckDB's
128 bits, PostgreSQL's numeric, Python's integers. `tests/walls` finds conversions to integers elsewhere in the trusted
rooms.
"""

from __future__ import annotations

import math
from typing import Any

from jostle.lazy import Array, Ints, np

LIMIT = 2**62
"""The largest magnitude of an exact number that noise is added to: two of them still add up within 64 bits."""
_EXACT = 2.0**53


def fixed_width(values: object, limit: int = LIMIT) -> Ints:
    """`values` as int64, each within ±`limit` (at most 2^62), in their shape. It cannot fail, whatever the numbers are.

    Takes integers of any width, also Python's in an array of objects, truth values, and doubles, which are rounded (a
    half to the even one; NaN is 0). An int64 array within the limit is given back as it is: do not write to it.
    """
    array = np.asarray(values)
    if array.dtype.kind == "f" and not isinstance(values, np.ndarray | np.generic):
        array = np.asarray(values, dtype=object)  # NumPy makes doubles of some lists of large integers
    if array.dtype.kind == "f":
        return _of_doubles(np.rint(array), limit)
    if array.dtype.kind == "O":
        within = [_whole(value, limit) for value in array.ravel().tolist()]
        return np.array(within, dtype=np.int64).reshape(array.shape)
    if array.dtype.kind == "u" and array.dtype.itemsize == 8:
        small: Ints = np.minimum(array, np.uint64(limit)).astype(np.int64)
        return small
    whole: Ints = array.astype(np.int64, copy=False)
    if array.dtype.itemsize < 8 and limit >= 2**32:
        return whole
    return whole if _within(whole, limit) else np.clip(whole, -limit, limit)


def truncated(values: object, limit: int = LIMIT) -> Ints:
    """Doubles as int64, rounded toward zero, each within ±`limit`; NaN is 0. It cannot fail."""
    return _of_doubles(np.asarray(values, dtype=np.float64), limit)


def shifted(values: Ints, bits: int) -> Ints:
    """`values`·2^`bits` (`bits` of at least 0), each brought into ±2^62 before it could wrap."""
    if not bits:
        return values
    room = LIMIT >> bits
    return np.left_shift(np.clip(values, -room, room), bits)


def narrowed(values: object, kind: type[np.signedinteger[Any]]) -> Array:
    """Integers or doubles (rounded toward zero) as a given kind of integer, clamped to its ends; NaN is 0. For places
    among public values, and for whole multiples of a public grid."""
    array, ends = np.asarray(values), np.iinfo(kind)
    if array.size and not (ends.min <= array.min() and array.max() <= ends.max):
        array = np.clip(truncated(array) if array.dtype.kind == "f" else fixed_width(array), ends.min, ends.max)
    return array.astype(kind, copy=False)


def same_bits(values: Array) -> Ints:
    """Integers as int64 with the same lowest 64 bits: for hashes and words of noise, which are no exact numbers."""
    return values.astype(np.int64, copy=False)


def _whole(value: Any, limit: int) -> int:
    if isinstance(value, float):
        value = 0 if math.isnan(value) else round(max(-float(LIMIT), min(float(LIMIT), value)))
    return max(-limit, min(limit, int(value)))


def _of_doubles(numbers: Array, limit: int) -> Ints:
    if not _within(numbers, min(float(limit), _EXACT)):  # false where there is a NaN
        # the limit may be no double: what is next to it is clipped once more as a whole number
        wide = np.clip(np.where(np.isnan(numbers), 0.0, numbers), -float(LIMIT), float(LIMIT))
        return np.clip(wide.astype(np.int64), -limit, limit)
    return numbers.astype(np.int64)


def _within(numbers: Array, limit: float) -> bool:
    return not numbers.size or bool(-limit <= numbers.min() and numbers.max() <= limit)
