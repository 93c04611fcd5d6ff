"""What rows are grouped by: the values of keys as SQL, and the tests that listed ones pass.

The terms that an engine adds up, as SQL of one row: exact whole numbers.
"""

from __future__ import annotations

import math

from jostle.diagnostics import refuse
from jostle.engine.sql.cells import FLOATS
from jostle.engine.sql.dialect import subquery
from jostle.engine.sql.rows import GRID, NEAR, RowSql
from jostle.plan.kinds import Schema, kind_of
from jostle.plan.plan import WEIGHT_BITS, Apply, Column, Constant, Count, FixedSum, Integer, Key, RowExpr
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
    ends = term.low, term.high
    nearest: tuple[str, ...] = (dialect.nearest,) if largest < 2**62 else (dialect.even, dialect.whole_wide)
    if dialect.near_nearest and largest < NEAR:
        nearest = (dialect.near_nearest,)
    if dialect.grid and largest < NEAR and largest * most_rows < _EXACT and _LEAST <= factor <= 1 / _LEAST:
        nearest, unit = (), factor
        if (cell := _raw_number(rows, term)) and (within := rows.within(term.expr)):
            low, high = (min(max(end, term.low), term.high) for end in within)
            return rows.on_grid(cell, GRID / factor, (low, high)), largest, unit
    value = rows.fixed(term.expr, ends, factor, square=term.square, weighted=term.weighted, nearest=nearest)
    return value, largest, unit


def _raw_number(rows: RowSql, term: FixedSum) -> str:
    """The raw cell of what is summed, if it is a column of reals that are stored as such, less a constant or not."""
    return "" if term.square or term.weighted else _raw_cell(rows, term.expr)


def _raw_cell(rows: RowSql, expr: RowExpr) -> str:
    if isinstance(expr, Column):
        raw = rows.columns[expr.name].raw
        if raw is None or raw.kind not in FLOATS or isinstance(raw.domain, Integer):
            return ""
        return rows.dialect.as_double(raw.alias)
    if not (isinstance(expr, Apply) and expr.op in ("+", "-") and isinstance(expr.args[1], Constant)):
        return ""
    inner, shift = _raw_cell(rows, expr.args[0]), expr.args[1].value
    if not inner or not isinstance(shift, float | int) or abs(shift) > 1 / _LEAST:
        return ""
    return f"({inner} {expr.op} {rows.dialect.number(float(shift))})"


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
