"""What rows are grouped by: the values of keys as SQL, and the tests that listed ones pass."""

from __future__ import annotations

from jostle.engine.sql.dialect import subquery
from jostle.engine.sql.rows import RowSql
from jostle.plan.domains import Categories, Integer
from jostle.plan.kinds import Schema, kind_of
from jostle.plan.plan import Column, Key


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
    """What holds of the listed values of a key alone; None where a column has no others: a test for NULL costs as much
    as a group for it."""
    if not key.values:
        return "FALSE"
    domain = schema[key.expr.name] if isinstance(key.expr, Column) else None
    if isinstance(key.values, range):
        if isinstance(domain, Integer) and key.values[0] <= domain.low and domain.high <= key.values[-1]:
            return None
        return f"{name} BETWEEN {key.values[0]} AND {key.values[-1]}"
    kind = kind_of(key.expr, schema)
    if kind == "text" and isinstance(domain, Categories) and set(domain.values) <= set(key.values):
        return None
    return rows.dialect.among(name, [rows.dialect.constant(value, kind) for value in key.values])
