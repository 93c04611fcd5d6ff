"""The terms that an engine adds up, as SQL of one row: exact whole numbers."""

from __future__ import annotations

import math

from jostle.diagnostics import refuse
from jostle.engine.sql.rows import NEAR, RowSql
from jostle.plan.kinds import Schema, kind_of
from jostle.plan.plan import WEIGHT_BITS, Count, FixedSum, RowExpr

_WIDEST_SUM = 2**80  # of one row's term: 2^46 rows of it still fit 126 bits
_EXACT = 2**53
_LEAST = 2.0**-900  # a factor that is neither smaller nor its inverse: far from what doubles cannot hold


def fixed_term(rows: RowSql, term: FixedSum, schema: Schema, most_rows: float = math.inf) -> tuple[str, int, float]:
    """One row's term as an integer (halves to the even one), the largest that it can be in size, and 1.

    Where the database adds up doubles faster, and no sum of `most_rows` of them is rounded, it is that integer over a
    power of two, which is given in place of 1.
    """
    check_number("sum", term.expr, schema)
    if not (math.isfinite(term.low) and math.isfinite(term.high) and term.low <= term.high):
        raise refuse("ValueError", "a sum needs finite bounds, the lower one first")
    reach = max(abs(term.low), abs(term.high)) ** (2 if term.square else 1)
    largest = math.ceil(math.ldexp(reach, term.bits)) + 1 if reach < 2.0**120 and term.bits < 900 else _WIDEST_SUM
    if largest >= _WIDEST_SUM:
        raise refuse("ValueError", "the bounds of this sum are too wide to add exactly", help="clamp(x, low, high)")
    # one product with a weight is rounded, to at most (1 + 2^-53) times what it is; a power of two rounds nothing
    factor = math.ldexp(1.0, term.bits - (WEIGHT_BITS if term.weighted else 0))
    dialect = rows.dialect
    unit = 1.0
    nearest: tuple[str, ...] = (dialect.nearest,) if largest < 2**62 else (dialect.even, dialect.whole_wide)
    if dialect.near_nearest and largest < NEAR:
        nearest = (dialect.near_nearest,)
    if dialect.grid and largest < NEAR and largest * most_rows < _EXACT and _LEAST <= factor <= 1 / _LEAST:
        nearest, unit = (), factor
    ends = term.low, term.high
    value = rows.fixed(term.expr, ends, factor, square=term.square, weighted=term.weighted, nearest=nearest)
    return value, largest, unit


def counted(rows: RowSql, term: Count, name: str) -> tuple[str, str]:
    """What of a row is counted, none where that is the row itself, and the count of the column `name` that holds it."""
    if term.expr is None:
        return "", "count(*)"
    value = rows.value(term.expr)
    if term.distinct and kind_of(term.expr, rows.schema) == "number":
        value = rows.dialect.unsigned.format(value)
    return value, f"count({'DISTINCT ' if term.distinct else ''}{name})"


def check_number(what: str, expr: RowExpr, schema: Schema) -> None:
    kind = kind_of(expr, schema)
    if kind != "number":
        raise refuse("TypeError", f"`{what}` needs a number, and this is {kind}")
