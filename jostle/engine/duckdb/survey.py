"""What an owner should know of a file before registering it: how many of its cells are not as described.

The counts are exact and private: they are for the owner of the data (`jostle data check`), and for nobody else. No
program can reach this.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from jostle.diagnostics import refuse
from jostle.engine.duckdb.dialect import DUCKDB
from jostle.engine.duckdb.engine import DuckDb
from jostle.engine.files import OpenFile
from jostle.engine.filesets import FileSet
from jostle.engine.sql.cells import moment, number, text, truth
from jostle.engine.sql.functions import truncation
from jostle.plan.bounds import as_double
from jostle.plan.domains import Categories, Domain, Integer, Moments, Open, Real
from jostle.plan.kinds import domain_kind


@dataclass(frozen=True, slots=True)
class ColumnSurvey:
    """Cells of a described column: `empty` ones, those that are `unreadable` as the number, date or time that is
    described, those `outside` the domain (which are clamped) or `not_whole` where whole ones are described (which are
    taken down), values that are not in the list of categories (`unlisted`), and those of them that differ from a listed
    text in their case or in blanks around them alone (`respelt`)."""

    name: str
    empty: int
    unreadable: int
    outside: int
    not_whole: int
    unlisted: int
    respelt: int


@dataclass(frozen=True, slots=True)
class Survey:
    """Records of a file, those with too few or too many cells, lines with bytes that are no UTF-8, and its columns."""

    rows: int
    ragged: int
    undecodable: int
    columns: tuple[ColumnSurvey, ...]


def survey(file: FileSet | OpenFile | str | os.PathLike[str], schema: Sequence[tuple[str, Domain]]) -> Survey:
    """Counts over the rows of files; a `DataError` where they cannot be read or lack a described column."""
    engine = DuckDb()
    try:
        opened = engine.open(file, public=False, names=tuple(name for name, _ in schema))
        for name, _ in schema:
            if name not in opened.columns:
                raise refuse("DataError", f"{engine.raw(opened.key)[0].label} has no column `{name}`")
        raw, table = engine.raw(opened.key, look=True)
        tests = [test for name, domain in schema for test in _tests(*raw.cell(name), domain)]
        counts = ", ".join(["count(*)", *(f"count(*) FILTER (WHERE {test})" for test in tests)])
        (row,) = engine.fetch(f"SELECT {counts} FROM {table}", raw.label)
    finally:
        engine.close()
    parts = [tuple(int(n) for n in row[1 + 6 * i : 7 + 6 * i]) for i in range(len(schema))]
    columns = tuple(ColumnSurvey(name, *part) for (name, _), part in zip(schema, parts, strict=True))
    return Survey(int(row[0]), raw.irregular.ragged, raw.irregular.undecodable, columns)


def most_rows(file: FileSet, column: str) -> int:
    """The most rows that one value of a column has; 0 of a file without one."""
    engine = DuckDb()
    try:
        raw, table = engine.raw(engine.open(file, public=False, names=(column,)).key, look=True)
        value = text(DUCKDB, *raw.cell(column))
        counts = f"SELECT count(*) AS many FROM {table} WHERE {value} IS NOT NULL GROUP BY {value}"
        ((most,),) = engine.fetch(f"SELECT coalesce(max(many), 0) FROM ({counts})", raw.label)
    finally:
        engine.close()
    return int(most)


def _tests(cell: str, kind: str, domain: Domain) -> tuple[str, str, str, str, str, str]:
    """Conditions on a raw cell for the six counts of a column."""
    wanted = domain_kind(domain)
    numeric, temporal = wanted == "number", wanted in ("date", "time")
    empty = f"{text(DUCKDB, cell, kind)} IS NULL"
    value = moment(DUCKDB, cell, kind, wanted) if temporal else number(DUCKDB, cell, kind)
    read = truth(DUCKDB, cell, kind) if wanted == "boolean" else value
    unreadable = f"{text(DUCKDB, cell, kind)} IS NOT NULL AND {read} IS NULL" if wanted != "text" else "FALSE"
    outside = fraction = unlisted = respelt = "FALSE"
    if isinstance(domain, Integer) or domain == Open("integer"):
        fraction = f"floor({value}) <> {value}"
    if isinstance(domain, Integer | Real | Moments):
        low, high = DUCKDB.number(as_double(domain.low)), DUCKDB.number(as_double(domain.high))
        compared = f"floor({value})" if isinstance(domain, Integer) else value
        if isinstance(domain, Moments) and domain.unit:
            compared = truncation(DUCKDB, domain.kind, domain.unit, value)
        outside = f"{compared} < {low} OR {compared} > {high}"
    if isinstance(domain, Categories):
        literals = [DUCKDB.literal(v) if isinstance(v, str) else DUCKDB.number(v) for v in domain.values]
        reading = value if numeric else text(DUCKDB, cell, kind)
        unlisted = f"{reading} NOT IN ({', '.join(literals)})" if literals else "TRUE"
        if literals and not numeric:
            plain = ", ".join(f"lower(trim({literal}))" for literal in literals)
            respelt = f"{unlisted} AND lower(trim({reading})) IN ({plain})"
    return empty, unreadable, outside, fraction, unlisted, respelt
