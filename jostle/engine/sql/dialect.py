"""What databases spell differently in the SQL that is emitted here. Standard SQL has the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Dialect:
    """Templates of expressions, `{0}` and `{1}` their operands. None of them may fail on a row."""

    finite: str  # whether a double is neither NaN nor infinite
    cast: str  # {0} as a value of the type {1}, NULL where it has none
    place: str  # where {0} stands in the list of the values {1}, from 1; 0 or NULL where it does not
    quotient: str  # of whole numbers, taken down
    xor: str  # of the bits of two integers
    right: str  # the integer {0} shifted to the right by {1} bits
    wide: str  # an integer type of at least 127 bits
    sha256: str  # 64 hexadecimal digits of a text's UTF-8
    bytes: str  # how many bytes a text's UTF-8 has
    hexadecimal: str  # 12 hexadecimal digits as a whole number
    operations: Mapping[str, str] = field(default_factory=dict)  # row operations that it spells in its own way


DUCKDB = Dialect(
    finite="isfinite({0})", cast="TRY_CAST({0} AS {1})",
    place="list_position([{1}], {0})", quotient="({0}) // {1}", xor="xor({0}, {1})", right="({0} >> {1})",
    wide="HUGEINT",
    sha256="sha256({0})", bytes="strlen({0})", hexadecimal="CAST('0x' || {0} AS BIGINT)",
)  # fmt: skip
