"""What an owner should know of a file before registering it: how many of its cells are not as described.

The counts are exact and private: they are for the owner of the data (`jostle data check`), and for nobody else. No
program can reach this.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.engine.files import OpenFile
from jostle.engine.sql.cells import moment, number, text, truth
from jostle.engine.sql.dialect import Dialect, subquery
from jostle.engine.sql.functions import of_text, template, truncation
from jostle.language.facts import MISSING_WORDS
from jostle.plan.kinds import as_double, domain_kind
from jostle.plan.plan import Categories, Domain, Integer, Moments, Open, Real
from jostle.readers.duckdb import LocalDuckDb
from jostle.readers.filesets import FileSet, check_read
from jostle.readers.textfile import Irregular
from jostle.speed.quicksql import QUICK_DUCKDB

FORMATS = {
    "date": ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y%m%d", "%d.%m.%y", "%d %b %Y",
             "%d/%m/%y", "%m/%d/%y", "%b %d, %Y", "%B %d, %Y"),
    "time": ("%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%m/%d/%Y %I:%M %p",
             "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S", "%H:%M", "%H:%M:%S", "%I:%M %p"),
}
"""How dates and times are often written, other than as 2024-12-31."""
_POINT, _COMMA = (",", ".", ((",", ""),)), (".", ",", ((".", ""), (",", ".")))
_BLANK, _QUOTE = " \u00a0\u202f", ("'", ".", (("'", ""),))
_SPACED = tuple((one, "") for one in _BLANK)
_SIGNS = ("", *"€$£%")
_UNITS = (
    "kg", "g", "mg", "lb", "lbs", "oz", "km", "cm", "mm", " m", "mi", "ft", "in", "l", "ml", "h", "hrs", "min", "s",
    "ms", "°C", "°F", "kWh", "kW", "W", "hp", "mpg", "cc", "bpm", "mmHg", "years", "yrs", "days", "USD", "EUR", "GBP",
    "CHF", "cu in", "sq ft", "bn", "mn", "Mio", "Mrd", "km/h", "mph", "ha",
)  # fmt: skip
_STYLES = (("1,234.5", _POINT), ("1.234,5", _COMMA), ("1'234.5", _QUOTE),
           ("1 234,5", (_BLANK, ",", (*_SPACED, (",", ".")))), ("1 234.5", (_BLANK, ".", _SPACED)))  # fmt: skip
NUMBERS = {
    f"{example} {sign.strip()}".strip(): (sign, *style)
    for sign in _SIGNS + _UNITS
    for example, style in (_STYLES if sign in _SIGNS else _STYLES[:2])
} | {
    f"({example}) {sign}".strip(): (sign, between, point, (*edits, ("(", "-"), (")", "")))
    for sign in _SIGNS
    for example, (between, point, edits) in _STYLES[:2]
}
"""How numbers are often written, other than as 1234.5, by an example: the sign or the unit beside them, what stands
between thousands, what before the fraction, and what is replaced to read them. `(1,234.5)` is below zero.

No number is read by another's unit: of `5 mm` without ` m`, or of `5 kg` without `g`, the rest is none. So a column of
two units is not read as one."""
_STAND_INS = (-1, -9, -99, -999, -9999, -99999, 99, 999, 9999, 99999)
"""Numbers that often stand for what is missing."""

Forms = Mapping[str, str]
NO_FORMS: Forms = MappingProxyType({})
Fetch = Callable[[str], list[tuple[int, ...]]]


class ColumnSurvey(Struct, frozen=True):
    """Cells of a described column: `empty` ones, words for what is missing among them, those that are `unreadable` as
    the number, date or time that is described, those `outside` the domain (which are clamped) or `not_whole` where
    whole ones are described (which are taken down), values that are not in the list of categories (`unlisted`), and
    those of them that differ from a listed text in their case or in blanks around them alone (`respelt`). `form` is the
    one of `FORMATS` or `NUMBERS` in which most cells of dates, times or numbers are written, where more are than as
    described, and `also` others of dates and times, with their cells; `stand_in` is the number that most often stands
    for what is missing among those outside, in `standing_in` cells; `twin` has the month first, and reads as many."""

    name: str
    empty: int
    unreadable: int
    outside: int
    not_whole: int
    unlisted: int
    respelt: int
    form: str = ""
    stand_in: int = 0
    standing_in: int = 0
    also: tuple[tuple[str, int], ...] = ()
    twin: str = ""


class Survey(Struct, frozen=True):
    """Records of a file, those with too few or too many cells, lines with bytes that are no UTF-8, and its columns."""

    rows: int
    ragged: int
    undecodable: int
    columns: tuple[ColumnSurvey, ...]


def survey(
    file: FileSet | OpenFile | str | os.PathLike[str], schema: Sequence[tuple[str, Domain]], forms: Forms = NO_FORMS
) -> Survey:
    """Counts over the rows of files; a `DataError` where they cannot be read or lack a described column."""
    engine = LocalDuckDb()
    try:
        opened = engine.open(file, public=False, names=tuple(name for name, _ in schema))
        for name, _ in schema:
            check_read(name, opened.unread)
            if name not in opened.columns:
                help = f"its header has {', '.join(f'`{one}`' for one in opened.columns[:12] if one)}"
                help += "; where titles stand above it, `--header 3` says which line it is"
                raise refuse("DataError", f"{engine.raw(opened.key)[0].label} has no column `{name}`", help=help)
        raw, table = engine.raw(opened.key, look=True)
        cells = [raw.cell(name) for name, _ in schema]
        fetch = partial(engine.fetch, label=raw.label)
        return surveyed(QUICK_DUCKDB, fetch, table, cells, schema, forms, raw.irregular)
    finally:
        engine.close()


def _twin(form: str, most: int, others: Mapping[str, int]) -> str:
    """A form with the day first, read with the month first, where this reads as many cells; else empty."""
    twin = form.replace("%d/%m", "%m/%d")
    return twin if twin != form and others.get(twin) == most else ""


def surveyed(
    dialect: Dialect, fetch: Fetch, table: str, cells: Sequence[tuple[str, str]],
    schema: Sequence[tuple[str, Domain]], forms: Forms = NO_FORMS, lines: Irregular | None = None,
) -> Survey:  # fmt: skip
    """Counts over the rows of a table that an engine names so, whose raw cells and their kinds are `cells`; those of
    some columns are read by formats."""
    pairs = [(*cell, domain) for cell, (_, domain) in zip(cells, schema, strict=True)]
    readings = {}
    for at, (name, domain) in enumerate(schema):
        if form := forms.get(name):
            readings[f"jostle_read_{at}"] = _read(dialect, *cells[at], domain_kind(domain), form)
            pairs[at] = (f"jostle_read_{at}", "VARCHAR", domain)
    if readings:
        more = ", ".join(f"{sql} AS {name}" for name, sql in readings.items())
        table = subquery(f"SELECT *, {more} FROM {table}")
    tests = [
        [*_tests(dialect, *pair), *_stand_ins(dialect, *pair), *([] if name in forms else _forms(dialect, *pair))]
        for pair, (name, _) in zip(pairs, schema, strict=True)
    ]
    counts = ", ".join(["count(*)", *(f"count(*) FILTER (WHERE {test})" for of in tests for test in of)])
    (row,) = fetch(f"SELECT {counts} FROM {table}")
    rows, *numbers = map(int, row)
    columns = []
    for (name, domain), of in zip(schema, tests, strict=True):
        counted, alike, numbers = numbers[:6], numbers[6 : len(of)], numbers[len(of) :]
        outsiders = _outsiders(domain)
        standing_in, stand_in = max([(n, one) for n, one in zip(alike, outsiders, strict=False) if n], default=(0, 0))
        alike = alike[len(outsiders) :]
        most, readable = max(alike, default=0), rows - counted[0] - counted[1]
        form = list(_forms_of(domain))[alike.index(most)] if most > readable else ""
        empty, unreadable, outside, not_whole, unlisted, respelt = counted
        others = dict(zip(FORMATS.get(domain_kind(domain), ()), alike, strict=False))
        also = [one for one in others.items() if 20 * one[1] > unreadable > 0 and one[0] != form]
        twin = _twin(form, most, others)
        columns.append(ColumnSurvey(
            name, empty, unreadable, outside, not_whole, unlisted, respelt, form, stand_in, standing_in,
            tuple(sorted(also, key=lambda one: -one[1])[: 3 * (not twin)]), twin,
        ))  # fmt: skip
    lines = lines or Irregular()
    return Survey(rows, lines.ragged, lines.undecodable, tuple(columns))


def _read(d: Dialect, cell: str, kind: str, target: str, form: str) -> str:
    """A cell that a format reads, as ISO writes it; of others the text, unless that would be read in its place."""
    own = text(d, cell, kind)
    if form in NUMBERS:
        return with_edits(form, own, lambda text, old, new: f"replace({text}, {d.literal(old)}, {d.literal(new)})")
    read = template(d, f"{target} by format", (form,)).format(own)
    other = f"CASE WHEN {of_text(target)(d).format(own)} IS NULL THEN {own} ELSE 'other' END"
    return f"coalesce({read}, {other})"


def with_edits(form: str, text: str, put: Callable[[str, str, str], str]) -> str:
    """The expression of a text that is written as a number is, by that of what is replaced in one."""
    sign, _, _, edits = NUMBERS[form]
    for old, new in ((sign, ""), *edits):
        text = put(text, old, new) if old else text
    return text


def _forms_of(domain: Domain) -> Collection[str]:
    if isinstance(domain, Categories):
        return ()
    kind = domain_kind(domain)
    return NUMBERS if kind == "number" else FORMATS.get(kind, ())


def _forms(d: Dialect, cell: str, kind: str, domain: Domain) -> list[str]:
    """Conditions on a raw cell that it is written in each of the forms of its kind; none of what is no text."""
    target = domain_kind(domain)
    if kind != "VARCHAR":
        return []
    if target == "number":
        return [_spells(d, *NUMBERS[form]).format(cell) for form in _forms_of(domain)]
    read = [template(d, f"{target} by format", (form,)).format(cell) for form in _forms_of(domain)]
    return [f"({of_text(target)(d).format(iso)}) IS NOT NULL" for iso in read]


def _outsiders(domain: Domain) -> list[int]:
    """The numbers that may stand for what is missing, as far as they are outside of a domain."""
    if not isinstance(domain, Integer | Real):
        return []
    return [value for value in _STAND_INS if not domain.low <= value <= domain.high]


def _stand_ins(d: Dialect, cell: str, kind: str, domain: Domain) -> list[str]:
    """Conditions on a raw cell that it is each of `_outsiders`."""
    return [f"{number(d, cell, kind)} = {d.number(as_double(value))}" for value in _outsiders(domain)]


def _spells(d: Dialect, sign: str, group: str, point: str, edits: Sequence[tuple[str, str]]) -> str:
    """The condition that a text is a number with a sign before or behind it, or a unit behind it; in groups of
    thousands or in none, or in brackets where they are replaced."""
    whole = rf"([0-9]+|[1-9][0-9]?[0-9]?([{group}][0-9][0-9][0-9])+)(\{point}[0-9]+)?"
    below = rf"|\({whole} ?\)" if (")", "") in edits else ""
    pattern = rf"^[ \t]*([+-]?{whole}{below})[ \t]*$"
    bare = f"replace({{0}}, {d.literal(sign)}, '')" if sign else "{0}"
    spelt = template(d, "matches", (pattern,)).replace("{0}", bare)
    return f"({bare} <> {{0}} AND {spelt})" if sign in _UNITS else spelt


def most_rows(file: FileSet, column: str) -> int:
    """The most rows that one value of a column has; 0 of a file without one."""
    engine = LocalDuckDb()
    try:
        raw, table = engine.raw(engine.open(file, public=False, names=(column,)).key, look=True)
        return most_alike(QUICK_DUCKDB, partial(engine.fetch, label=raw.label), table, raw.cell(column))
    finally:
        engine.close()


def most_alike(dialect: Dialect, fetch: Fetch, table: str, cell: tuple[str, str]) -> int:
    """In how many rows of a table the most frequent value of a raw cell stands; 0 where it has none."""
    value = text(dialect, *cell)
    counts = f"SELECT count(*) AS many FROM {table} WHERE {value} IS NOT NULL GROUP BY {value}"
    ((most,),) = fetch(f"SELECT coalesce(max(many), 0) AS most FROM {subquery(counts)}")
    return int(most)


def _tests(d: Dialect, cell: str, kind: str, domain: Domain) -> tuple[str, str, str, str, str, str]:
    """Conditions on a raw cell for the six counts of a column."""
    target = domain_kind(domain)
    numeric, temporal = target == "number", target in ("date", "time")
    spelled, words = text(d, cell, kind), ", ".join(map(d.literal, MISSING_WORDS))
    value = moment(d, cell, kind, target) if temporal else number(d, cell, kind)
    read = truth(d, cell, kind) if target == "boolean" else value
    some = f"{spelled} IS NOT NULL"
    if kind == "VARCHAR" and domain != Open("text"):
        some += f" AND {spelled} NOT IN ({words})"
    unreadable = f"{some} AND {read} IS NULL" if target != "text" else "FALSE"
    outside = fraction = unlisted = respelt = "FALSE"
    if isinstance(domain, Integer) or domain == Open("integer"):
        fraction = f"floor({value}) <> {value}"
    if isinstance(domain, Integer | Real | Moments):
        low, high = d.number(as_double(domain.low)), d.number(as_double(domain.high))
        compared = f"floor({value})" if isinstance(domain, Integer) else value
        if isinstance(domain, Moments) and domain.unit:
            compared = truncation(d, domain.kind, domain.unit, value)
        outside = f"{compared} < {low} OR {compared} > {high}"
    if isinstance(domain, Categories):
        literals = [d.literal(v) if isinstance(v, str) else d.number(v) for v in domain.values]
        reading = value if numeric else spelled
        unlisted = f"{reading} NOT IN ({', '.join(literals)})" if literals else "TRUE"
        unlisted, some = f"{some} AND {unlisted}", f"({some} OR {spelled} IS NOT NULL AND NOT ({unlisted}))"
        if literals and not numeric:
            plain = ", ".join(f"lower(trim({literal}))" for literal in literals)
            respelt = f"{unlisted} AND lower(trim({reading})) IN ({plain})"
    return f"NOT ({some})", unreadable, outside, fraction, unlisted, respelt
