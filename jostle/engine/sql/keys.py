"""What rows are grouped by, and the terms that an engine adds up, as SQL of one row: exact whole numbers."""

from __future__ import annotations

import math

from jostle.diagnostics import refuse
from jostle.engine.sql.dialect import subquery
from jostle.engine.sql.rows import RowSql
from jostle.plan.kinds import Schema, kind_of
from jostle.plan.plan import WEIGHT_BITS, Column, Count, FixedSum, Integer, Key, RowExpr
from jostle.plan.schemas import text_values


def aggregate(keys: list[str], outer: list[str], inner: list[str], tests: list[str], source: str) -> str:
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    values = subquery(f"SELECT {', '.join(inner)} FROM {subquery(source)}" if inner else source)
    return f"SELECT {', '.join(keys + outer)} FROM {values}{where}{by}"


def floors(key: Key) -> bool:
    """Whether a numeric key is taken down to its integer part: unless its listed values are not whole themselves."""
    return isinstance(key.values, range) or all(
        isinstance(value, float | int) and float(value).is_integer() for value in key.values
    )


def key_value(rows: RowSql, key: Key, schema: Schema) -> str:
    kind = kind_of(key.expr, schema)
    if kind != "number":
        return rows.value(key.expr)
    if not isinstance(key.values, range):
        return rows.floor(key.expr) if floors(key) else rows.value(key.expr)
    return rows.whole_column(key.expr) or rows.whole_floor(key.expr)


def key_test(rows: RowSql, name: str, key: Key, schema: Schema) -> str | None:
    """What holds of the listed values of a key alone; None where it has no others: a test for NULL costs as much as a
    group for it."""
    if not key.values:
        return "FALSE"
    domain = schema[key.expr.name] if isinstance(key.expr, Column) else None
    if isinstance(key.values, range):
        if isinstance(domain, Integer) and key.values[0] <= domain.low and domain.high <= key.values[-1]:
            return None
        return f"{name} BETWEEN {key.values[0]} AND {key.values[-1]}"
    kind = kind_of(key.expr, schema)
    if kind == "text" and set(text_values(key.expr, schema) or (None,)) <= set(key.values):
        return None
    return rows.dialect.among(name, [rows.dialect.constant(value, kind) for value in key.values], kind)


_WIDEST_SUM = 2**80  # of one row's term: 2^46 rows of it still fit 126 bits


def fixed_term(rows: RowSql, term: FixedSum, schema: Schema, most_rows: float = math.inf) -> tuple[str, int, float]:
    """One row's term as an integer (halves to the even one), the largest that it can be in size, and 1; from a faster
    emitter as that integer over a power of two, which is given in place of 1."""
    check_number("sum", term.expr, schema)
    if not (math.isfinite(term.low) and math.isfinite(term.high) and term.low <= term.high):
        raise refuse("ValueError", "a sum needs finite bounds, the lower one first")
    reach = max(abs(term.low), abs(term.high)) ** (2 if term.square else 1)
    largest = math.ceil(math.ldexp(reach, term.bits)) + 1 if reach < 2.0**120 and term.bits < 900 else _WIDEST_SUM
    if largest >= _WIDEST_SUM:
        raise refuse("ValueError", "the bounds of this sum are too wide to add exactly", help="clamp(x, low, high)")
    # one product with a weight is rounded, to at most (1 + 2^-53) times what it is; a power of two rounds nothing
    factor = math.ldexp(1.0, term.bits - (WEIGHT_BITS if term.weighted else 0))
    if (quick := rows.quick_sum(term, factor, largest, most_rows)) is not None:
        return quick[0], largest, quick[1]
    nearest = (rows.dialect.nearest,) if largest < 2**62 else (rows.dialect.even, rows.dialect.whole_wide)
    return rows.fixed(term, factor, nearest), largest, 1.0


def counted(rows: RowSql, term: Count, name: str) -> tuple[str, str]:
    """What of a row is counted, none where that is the row itself, and the count of the column `name` that holds it."""
    if term.expr is None:
        return "", "count(*)"
    whole = rows.whole_column(term.expr)
    value = whole or rows.value(term.expr)
    if term.distinct and not whole and kind_of(term.expr, rows.schema) == "number":
        value = rows.dialect.unsigned.format(value)
    return value, f"count({'DISTINCT ' if term.distinct else ''}{name})"


def check_number(what: str, expr: RowExpr, schema: Schema) -> None:
    kind = kind_of(expr, schema)
    if kind != "number":
        raise refuse("TypeError", f"`{what}` needs a number, and this is {kind}")
