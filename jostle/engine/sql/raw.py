"""What is asked of raw cells instead of cleaned ones: fewer rows are cleaned, or none.

A cleaned cell is a function of the raw one that keeps order, so within the described ends both compare alike with a
constant; and rows whose raw cells are equal are cleaned to equal ones, so groups of raw cells can be cleaned instead.
"""

from __future__ import annotations

import math

from jostle.engine.sql.cells import FLOATS, PLACES, WHOLE, clean
from jostle.engine.sql.dialect import Dialect, subquery
from jostle.engine.sql.keys import aggregate, key_test, key_value
from jostle.engine.sql.rows import Physical, Raw, RowSql
from jostle.language.operations import COMPARISONS
from jostle.plan.domains import Categories, Integer, Real
from jostle.plan.plan import Apply, Column, Constant, Key, RowExpr

_LARGEST = 1.7976931348623157e308
_GROUPED = WHOLE | {"BOOLEAN", "VARCHAR"}
_FEW = 2**12  # listed groups: raw cells that are as described have about as many values
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}


def condition(rows: RowSql, expr: RowExpr) -> str:
    """A condition that is TRUE where a boolean expression is, and FALSE or NULL elsewhere."""
    if isinstance(expr, Apply) and expr.op in ("and", "or"):
        return "(" + f" {expr.op.upper()} ".join(condition(rows, arg) for arg in expr.args) + ")"
    return (isinstance(expr, Apply) and _test(rows, expr)) or rows.value(expr)


def _test(rows: RowSql, expr: Apply) -> str:
    """A test of a raw cell in place of that of a column against a constant; empty where there is none."""
    if expr.op not in COMPARISONS or len(expr.args) != 2:
        return ""
    (left, right), op = expr.args, expr.op
    if isinstance(left, Constant):
        left, right, op = right, left, _FLIPPED.get(op, "")
    raw = rows.columns[left.name].raw if isinstance(left, Column) and left.name in rows.columns else None
    if raw is None or not isinstance(right, Constant) or op not in _FLIPPED:
        return ""
    if isinstance(right.value, str):
        return _word(rows.dialect, raw, right.value) if op == "==" else ""
    if isinstance(right.value, bool) or not isinstance(right.value, float | int):
        return ""
    return _number(rows.dialect, raw, op, float(right.value))


def _word(d: Dialect, raw: Raw, word: str) -> str:
    """Whether a text is one of the described categories."""
    listed = isinstance(raw.domain, Categories) and word in raw.domain.values
    return f"({d.ordered.format(raw.alias)} = {d.literal(word)})" if listed and word and raw.kind == "VARCHAR" else ""


def _number(d: Dialect, raw: Raw, op: str, value: float) -> str:
    """How a number compares with one that lies between the described ends: beyond them it does as the end does.

    What is not finite is none. NaN is larger than all numbers, so of each comparison one end is left to be tested.
    """
    if not isinstance(raw.domain, Integer | Real) or not math.isfinite(value):
        return ""
    low, high = raw.domain.low, raw.domain.high
    inside = {">": low <= value < high, "<": low < value <= high}
    inside |= {"<=": inside[">"], ">=": inside["<"], "==": low < value < high}
    if not inside[op]:
        return ""
    sign = "=" if op == "==" else op
    if raw.kind in WHOLE and value.is_integer() and abs(value) < 2**53:
        return f"({raw.alias} {sign} ({int(value)}))"
    if raw.kind not in FLOATS or isinstance(raw.domain, Integer):
        return ""
    test = f"{raw.alias} {sign} {d.number(value)}"
    if op == "==":
        return f"({test})"
    end = f"<= {d.number(_LARGEST)}" if op[0] == ">" else f">= {d.number(-_LARGEST)}"
    return f"({test} AND {d.known_finite.format(raw.alias) or f'{raw.alias} {end}'})"


def word_places(rows: RowSql, key: Key, name: str) -> tuple[str, str] | None:
    """Of a bare column of texts: where a row's stands among those that are described, and the text at the place `name`.

    None where the database groups texts as soon as places, which it finds once for each different text.
    """
    d, raw = rows.dialect, rows.columns[key.expr.name].raw if isinstance(key.expr, Column) else None
    if not d.listed or raw is None or raw.kind != "VARCHAR" or not isinstance(raw.domain, Categories):
        return None
    words = [d.literal(word) for word in raw.domain.values if isinstance(word, str) and word]
    listed = ", ".join(words)
    return (d.place.format(raw.alias, listed), d.listed.format(name, listed)) if 0 < len(words) <= PLACES else None


def raw_keys(rows: RowSql, keys: tuple[Key, ...]) -> list[Raw]:
    """The raw cells of keys that are bare columns, of which few groups are listed; else none."""
    columns = [rows.columns[key.expr.name].raw for key in keys if isinstance(key.expr, Column)]
    raws = [raw for raw in columns if raw is not None and raw.kind in _GROUPED]
    few = rows.dialect.groups_cells and math.prod(len(key.values) for key in keys) <= _FEW
    return raws if few and len(raws) == len(keys) else []


def group_raw(
    rows: RowSql,
    source: str,
    keys: tuple[Key, ...],
    raws: list[Raw],
    values: list[str],
    parts: list[str],
    totals: list[str],
) -> str:
    """The groups of a relation by keys, of groups of their raw cells: `parts` are aggregates of the rows' `values`,
    `totals` those of the parts, which they know as `p0`, …."""
    d, places = rows.dialect, range(len(raws))
    cells = [f"{raw.alias} AS x{i}" for i, raw in enumerate(raws)]
    named = [f"{part} AS p{i}" for i, part in enumerate(parts)]
    few = aggregate([f"x{i}" for i in places], named, [*cells, *values], [], rows.over(source))
    cleaned = [clean(d, f"x{i}", raw.kind, raw.domain) for i, raw in enumerate(raws)]
    names = [key.expr.name if isinstance(key.expr, Column) else "" for key in keys]
    columns = {name: Physical(f"c{i}", cleaned[i].whole) for i, name in enumerate(names)}
    after = RowSql(columns, rows.schema, d)
    items = [f"{key_value(after, key, rows.schema)} AS k{i}" for i, key in enumerate(keys)]
    tests = [key_test(after, f"k{i}", key, rows.schema) for i, key in enumerate(keys)]
    sums = [f"p{i}" for i in range(len(parts))]
    shown = ", ".join([*(f"{cell.alias} AS c{i}" for i, cell in enumerate(cleaned)), *sums])
    query = after.over(f"SELECT {shown} FROM {subquery(few)}")
    return aggregate([f"k{i}" for i in places], totals, [*items, *sums], [test for test in tests if test], query)
