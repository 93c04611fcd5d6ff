"""Rows of persons as SQL: the kept rows of each person, and one row for each group of rows.

Everything here is a function of one person's rows: other rows do not affect which rows are kept, and rows that tie are
equal in all columns that a program can see. Rows are chosen by a portable hash, so that every engine keeps the same.

*The hash* of a row's cells uses integer arithmetic that every database has, and is not secret. It has 62 bits, in two
halves of 31 so that no product exceeds 64 bits: a Feistel network with one round per cell and three at the end. A cell
that is a 64-bit integer counts as that number, also if a file stores it as a text; other texts count by 48 bits of
their SHA-256, and doubles by their bits, where −0 has those of 0. Different rows may have the same hash, so cells break
ties.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from jostle.engine.sql.cells import WHOLE, clean, text
from jostle.engine.sql.dialect import Dialect, subquery
from jostle.engine.sql.functions import truncation
from jostle.engine.sql.rows import Physical, RowSql, check_number, counted, fixed_term
from jostle.plan import plan as p
from jostle.plan.kinds import domain_kind, is_integral, kind_of
from jostle.records import replace


def rows_per_key(
    items: str, source: str, by: list[str], cells: list[Physical], most: int, *, weighted: bool = False,
    dialect: Dialect,
) -> str:  # fmt: skip
    """`items` of the `most` rows of each `by` with the smallest hashes of their cells, integers or texts.

    Cells break ties, so that rows that still tie are equal in all of them. With `weighted` also `w`, the shares of
    2^WEIGHT_BITS.
    """
    aliases = [cell if cell.alias.isidentifier() else replace(cell, alias=f"y{i}") for i, cell in enumerate(cells)]
    more = [f"{cell.alias} AS {name.alias}" for cell, name in zip(cells, aliases, strict=True) if cell is not name]
    source, cells = f"SELECT {', '.join(['*', *more])} FROM {subquery(source)}{not_null(by)}", aliases
    group = f"PARTITION BY {', '.join(by)}"
    order = ", ".join(["h", *(f"{cell.alias} NULLS LAST" for cell in cells)])
    added = f"row_number() OVER ({group} ORDER BY {order}) AS place"
    if weighted:
        added += f", least(count(*) OVER ({group}), {int(most)}) AS many"
        last, first = (f"({place} * {2**p.WEIGHT_BITS})" for place in ("place", "(place - 1)"))
        items += f", {dialect.quotient.format(last, 'many')} - {dialect.quotient.format(first, 'many')} AS w"
    rows = hashed(source, cells, dialect)
    placed = subquery(f"SELECT *, {added} FROM {subquery(rows)}")
    return f"SELECT {items} FROM {placed} WHERE place <= {int(most)}"


def not_null(values: list[str]) -> str:
    """The condition that none of the values is missing."""
    return f" WHERE {' AND '.join(f'{value} IS NOT NULL' for value in values)}" if values else ""


def owner(plan: p.Bound, cell: Callable[[str], tuple[str, str]], dialect: Dialect) -> str:
    """The person of a row from raw cells and their kinds: an integer, or a text for other or several cells."""
    cells, columns = [cell(one) for one in plan.by if isinstance(one, str)], dict(plan.scan.columns)
    for name, unit in [one for one in plan.by if not isinstance(one, str)]:
        day = clean(dialect, *cell(name), columns[name]).alias
        start = truncation(dialect, domain_kind(columns[name]), unit, day)
        cells.append((f"CAST({start} AS BIGINT)", "BIGINT"))
    if len(cells) == 1 and cells[0][1] in WHOLE:
        return cells[0][0]
    texts = [text(dialect, *cell) for cell in cells]
    there = " AND ".join(f"{text} IS NOT NULL" for text in texts)
    return f"CASE WHEN {there} THEN {person(texts, dialect)} END"


def person(by: list[str], dialect: Dialect) -> str:
    """One text for the values that identify a person."""
    return by[0] if len(by) == 1 else dialect.canonical(by)


def truncated(plan: p.Truncate, rows: RowSql, source: str, hidden: list[str]) -> str:
    """The kept rows of a relation. Its columns are those that a program can see; `hidden` are the others."""
    columns = [physical.alias for physical in rows.columns.values()]
    outputs, keys = [*columns, *hidden], [f"k{i}" for i in range(len(plan.keys))]
    items = [*outputs, *(f"{_key(rows, expr)} AS k{i}" for i, expr in enumerate(plan.keys))]
    first = []
    if plan.order is not None:
        items.append(f"{rows.value(plan.order)} AS o")
        first = [f"o{' DESC' if plan.descending else ''} NULLS LAST"]
    inner = subquery(f"SELECT {', '.join(items)} FROM {subquery(rows.over(source))}")
    query = f"SELECT * FROM {inner}{not_null(keys)}"
    group = f"PARTITION BY {', '.join(['p', *keys])}"
    if plan.rows is not None:
        query = hashed(query, cells_of(rows), rows.dialect)
        last = [f"{column} NULLS LAST" for column in columns]
        order = ", ".join([*first, "h", *last, *(["n"] if "n" in hidden else [])])
        query = f"SELECT *, row_number() OVER ({group} ORDER BY {order}) AS place FROM {subquery(query)}"
        names = ", ".join([*outputs, *keys, *["o"] * bool(first)])
        query = f"SELECT {names} FROM {subquery(query)} WHERE place <= {plan.rows}"
    if plan.groups is not None and keys:
        if first:
            query = f"SELECT *, {'max' if plan.descending else 'min'}(o) OVER ({group}) AS best FROM {subquery(query)}"
            first = [first[0].replace("o", "best", 1)]
        query = hashed(query, [Physical("p"), *_as_cells(plan.keys, rows)], rows.dialect)
        order = ", ".join([*first, "h", *keys])
        query = f"SELECT *, dense_rank() OVER (PARTITION BY p ORDER BY {order}) AS row_group FROM {subquery(query)}"
        query = f"SELECT * FROM {subquery(query)} WHERE row_group <= {plan.groups}"
    return f"SELECT {', '.join(outputs)} FROM {subquery(query)}"


def _as_cells(keys: tuple[p.RowExpr, ...], rows: RowSql) -> list[Physical]:
    """The keys `k0` … as integers and texts."""
    return [
        Physical(rows.dialect.whole.format(f"k{i}"), True) if kind == "number" and is_integral(expr, rows.schema)
        else _cell(f"k{i}", kind, rows.dialect)
        for i, (expr, kind) in enumerate([(expr, kind_of(expr, rows.schema)) for expr in keys])
    ]  # fmt: skip


def _cell(name: str, kind: str, dialect: Dialect) -> Physical:
    if kind == "text":
        return Physical(name)
    return Physical(dialect.as_text(name)) if kind == "boolean" else Physical(dialect.bits.format(name), True)


def cells_of(rows: RowSql) -> list[Physical]:
    """The columns of a relation as integers and texts, for hashing."""
    return [
        column if column.whole else _cell(column.alias, domain_kind(rows.schema[name]), rows.dialect)
        for name, column in rows.columns.items()
    ]  # fmt: skip


def grouped(plan: p.GroupRows, rows: RowSql, source: str, most_rows: int) -> tuple[str, list[bool]]:
    """The SQL of groups of at most `most_rows` rows, and which of its columns are integers."""
    inner, names, outer, whole = ["p"] * plan.person, ["p"] * plan.person, [], []
    for i, (_, expr) in enumerate(plan.keys):
        inner.append(f"{_key(rows, expr)} AS k{i}")
        names.append(f"k{i}")
        outer.append(f"k{i} AS c{i}")
        whole.append(False)
    for i, (_, term) in enumerate(plan.terms):
        value, summary, exact = _term(rows, term, f"v{i}", most_rows, names)
        inner += [f"{value} AS v{i}"] if value else []
        outer.append(f"{summary} AS c{len(plan.keys) + i}")
        whole.append(exact)
    query = f"SELECT {', '.join(inner) or '1 AS one'} FROM {subquery(rows.over(source))}"
    items, groups = ", ".join([*outer, *["p"] * plan.person]), ", ".join(names)
    return f"SELECT {items} FROM {subquery(query)}{not_null(names)}{f' GROUP BY {groups}' if groups else ''}", whole


_BEFORE = "OVER ({1} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
_BESIDE = {
    "previous": "lag(min({0})) OVER ({1})", "next": "lead(min({0})) OVER ({1})", "place": "row_number() OVER ({1})",
    "largest": f"max(max({{0}})) {_BEFORE}", "smallest": f"min(min({{0}})) {_BEFORE}",
}  # fmt: skip


def _term(rows: RowSql, term: p.GroupTerm, name: str, most_rows: int, keys: list[str]) -> tuple[str, str, bool]:
    """The value of a row, the aggregate of a group, and whether that is an integer."""
    if isinstance(term, p.Count):
        return *counted(rows, term, name), True
    if term.expr is not None:
        check_number("a summary of a group", term.expr, rows.schema)
    if isinstance(term, p.Beside):
        over = f"PARTITION BY {', '.join(keys[:-1])} ORDER BY {keys[-1]}"
        value = rows.value(term.expr) if term.expr is not None else ""
        return value, _BESIDE[term.where].format(name, over), term.expr is None
    if isinstance(term, p.Extreme):
        return rows.value(term.expr), f"{'max' if term.largest else 'min'}({name})", False
    value, largest, _ = fixed_term(rows, term, rows.schema)
    name = f"CAST({name} AS {rows.dialect.wide})" if largest * most_rows >= 2**63 else name  # a sum may overflow
    total = rows.dialect.as_double(f"coalesce(sum({name}), 0)")
    return value, f"({total} * {rows.dialect.number(math.ldexp(1.0, -term.bits))})" if term.bits else total, False


def _key(rows: RowSql, expr: p.RowExpr) -> str:
    unsigned = kind_of(expr, rows.schema) == "number"
    return rows.dialect.unsigned.format(rows.value(expr)) if unsigned else rows.value(expr)


def narrowed(plan: p.Plan, requested: Iterable[p.RowExpr]) -> p.Plan:
    """The same rows with the columns that `requested` uses; for a join, with all columns of its right side."""
    if isinstance(plan, p.Filter):
        return p.Filter(narrowed(plan.source, (*requested, plan.condition)), plan.condition)
    if isinstance(plan, p.Join) and plan.most is None and not plan.person:
        return replace(plan, left=narrowed(plan.left, (*requested, *map(p.Column, plan.on))))
    names = p.names_in(requested)
    if isinstance(plan, p.Derive):
        columns = tuple([column for column in plan.columns if column[0] in names])
        return p.Derive(narrowed(plan.source, [expr for _, expr in columns]), columns)
    return (
        p.Scan(plan.data, tuple([one for one in plan.columns if one[0] in names])) if isinstance(plan, p.Scan) else plan
    )


BITS = 62
HALF = 2**31 - 1
START = (0x2545F491, 0x1B873593)
_FACTORS = (0x5BD1E995, 0x6C8E9CF5, 0x27D4EB2F, 0x165667B1, 0x2C1B3C6D)
ROUNDS = 3
MISSING = 0x3C6EF372FE94F82B


def hashed(source: str, cells: list[Physical], dialect: Dialect) -> str:
    """The rows of `source` with their hash `h`, a BIGINT from 0 to 2^62 − 1. A cell is an integer, a text or NULL."""
    xor, right = dialect.xor.format, dialect.right.format
    query = f"SELECT *, {', '.join(f'{counted_as(cell, dialect)} AS x{i}' for i, cell in enumerate(cells)) or '0 AS x'}"
    query += f" FROM {subquery(source)}{dialect.fence}"
    low, high = (f"CAST({start} AS BIGINT)" for start in START)
    for i in range(len(cells) + ROUNDS):
        if i < len(cells):
            low = xor(low, f"(x{i} & {HALF})")
            high = xor(high, f"({right(f'x{i}', 31)} & {HALF})")
        query = f"SELECT *, ({low}) * {factor(i)} AS u{i}, {high} AS v{i} FROM {subquery(query)}{dialect.fence}"
        low, high = xor(f"v{i}", right(f"u{i}", 31)), f"(u{i} & {HALF})"
    return f"SELECT *, {xor(f'({low}) * {HALF + 1}', high)} AS h FROM {subquery(query)}{dialect.fence}"


def counted_as(cell: Physical, dialect: Dialect) -> str:
    """The 64-bit integer of a cell in the hash."""
    if cell.whole:
        return f"coalesce(CAST({cell.alias} AS BIGINT), {MISSING})"
    text, whole = cell.alias, dialect.whole_of.format(cell.alias)
    cases = f"WHEN {dialect.as_text(whole)} = {text} THEN {whole}"
    return f"CASE {cases} WHEN {text} IS NULL THEN {MISSING} ELSE {dialect.digest.format(text)} END"


def factor(turn: int) -> int:
    return _FACTORS[turn % len(_FACTORS)] & HALF | 1
