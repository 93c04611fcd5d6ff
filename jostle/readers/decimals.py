"""The one text of a decimal number, which every engine gives it: without an exponent, and without zeros at its end.

So `2.500` and `2.5` name one person, as they do in PostgreSQL, and `2.00` names the same as `2`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

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
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = chunk.cast(pa.string())
    if pc.any(pc.match_substring(texts, "E")).as_py():  # small ones, and those of types that end before the point
        return pa.array([cell and text_of_decimal(Decimal(cell)) for cell in texts.to_pylist()], pa.string())
    return pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".") if chunk.type.scale > 0 else texts
