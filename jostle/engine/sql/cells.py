"""Cleaning of raw cells to their described domain, row by row (language.md, section 3), in SQL.

A text is a number if it is a finite decimal, with blanks around it at most; anything else (`inf`, `nan`, `1e400`,
`0x10`, `1_0`) is none, and so is an empty cell. Numbers are clamped to their domain, for integers after flooring. A
text matches a category exactly, a number by value; other values are none. No cell can make this fail, and the result of
a cell does not depend on others. A text of more than `LONGEST` characters is none, however it is described.

The kind of a cell is the kind of its column, from a short list: integers by their width, `FLOAT` and `DOUBLE`,
`BOOLEAN`, `VARCHAR` for texts, `DATE` for those of the database, or a date or time as an integer (`DATE ms`, `TIME us`,
`TIMESTAMP us`, `TIMESTAMP us UTC`), which must be in the years 1 to 9999. Cells of other kinds are none.
"""

from __future__ import annotations

import math

from jostle.diagnostics import refuse
from jostle.engine.sql import functions
from jostle.engine.sql.dialect import PLACES, Dialect, clamped
from jostle.engine.sql.rows import Physical
from jostle.language.moments import DAY, FIRST_DAY, LAST_DAY
from jostle.language.operations import LONGEST
from jostle.plan.kinds import as_double, domain_kind
from jostle.plan.plan import Categories, Domain, Integer, Moments, Open

WHOLE = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"})
NONE = "NONE"  # the kind of cells without a value, whatever the file has
MOMENT = "MOMENT"  # the kind of parsed dates and times: doubles
NATIVE = WHOLE | {"UBIGINT", "FLOAT", "DOUBLE", "BOOLEAN", "VARCHAR", "DATE"}
FLOATS = frozenset({"FLOAT", "DOUBLE"})
_EXACT = 2**53
TRUTHS = ((("true", "t", "yes", "y"), 1), (("false", "f", "no", "n"), 0))


def number(d: Dialect, cell: str, kind: str) -> str:
    """A finite double, or NULL, also for dates and times."""
    if kind in WHOLE or kind == "UBIGINT":
        return d.as_double(cell)
    if kind in FLOATS:
        return f"CASE WHEN {d.finite.format(cell)} THEN {d.as_double(cell)} END"
    if kind == "BOOLEAN":
        return d.as_double(f"CASE WHEN {cell} THEN 1 WHEN NOT {cell} THEN 0 END")
    return functions.decimal(d).format(cell) if kind == "VARCHAR" else d.number(math.nan)


def text(d: Dialect, cell: str, kind: str) -> str:
    """A text that is not empty, or NULL. Dates are in ISO order, booleans `true` and `false`, and floats that are
    integers below 2^53 are written as such. So a number has one text in every table, and 0 and −0 have the same. An
    infinite number is `inf` or `-inf`, which is not read as a number, and so shows as a misfit.

    It is the value of columns described as text or by listed texts, and the identity of persons. Cells with the same
    text have the same value under any other description (number, boolean, date).
    """
    if kind in FLOATS:
        if not d.spelled:
            message = f"{d.name} cannot write a number that may not be whole as the other engines do"
            raise refuse("DataError", message, help="describe it as a number; persons are identified by whole numbers")
        whole = f"{cell} = {d.floor.format(cell)} AND abs({cell}) < {_EXACT}"
        other = _of_double(d, cell, d.spelled.format(cell), "'-inf'", "'inf'")
        return d.ordered.format(f"CASE WHEN {whole} THEN {d.as_text(d.whole.format(cell))} ELSE {other} END")
    if kind == "VARCHAR":
        if not d.short:
            return d.ordered.format(f"CASE WHEN {cell} <> '' THEN {cell} END")
        few = f"{d.size.format(cell)} BETWEEN 1 AND {LONGEST}"  # the size in bytes is faster than the length
        return d.ordered.format(
            f"CASE WHEN {few} THEN {cell} WHEN {cell} <> '' AND {d.short.format(cell)} THEN {cell} END"
        )
    if kind in NATIVE - {"DATE"}:
        return d.ordered.format(d.as_text(cell))
    return d.ordered.format(d.as_text(_moment(d, cell, kind)) + (" || '+00:00'" if kind.endswith(" UTC") else ""))


def _of_double(d: Dialect, cell: str, finite: str, low: str, high: str) -> str:
    """A value for finite numbers, and for negative and positive infinity; NULL for NaN."""
    infinite = f"lower(left({d.as_text(f'abs({cell})')}, 1)) = 'i'"  # engines order NaN differently
    ends = f"WHEN {infinite} THEN CASE WHEN {cell} < 0 THEN {low} ELSE {high} END"
    return f"CASE WHEN {d.finite.format(cell)} THEN {finite} {ends} END"


def moment(d: Dialect, cell: str, kind: str, target: str) -> str:
    """The number of a `date` or `time` as a double, or NULL, from a text, date or time."""
    if kind == MOMENT:
        return cell
    if kind == "VARCHAR":
        spelled = functions.template(d, f"{target} of text", ())
        return f"({short(d, cell, spelled.format(cell))})"
    if not kind.startswith(("DATE", "TIMESTAMP")):
        return d.number(math.nan)
    micros = _micros(d, cell, kind)
    if kind.startswith("TIMESTAMP") and target == "time":
        return functions.known_time(d, micros)
    days = d.as_double(d.days.format(_moment(d, cell, kind))) if kind == "DATE" else functions.day_of(d, micros)
    return days if target == "date" else f"({days} * {d.number(DAY)})"


def whole_or_text(d: Dialect, cell: str, kind: str) -> Physical:
    """The value that a cell is hashed by: its integer, the bits of its double, or its text. It distinguishes all cells
    that a description does; otherwise the choice between two rows would not follow from these rows alone."""
    if kind in FLOATS:
        bits = d.bits.format(d.as_double(cell))
        return Physical(_of_double(d, cell, bits, f"{-(2**52)}", f"{0x7FF << 52}"), True)
    if kind == "BOOLEAN":
        return Physical(f"CASE WHEN {cell} THEN {TRUE} WHEN NOT {cell} THEN {FALSE} END", True)
    return Physical(cell, True) if kind in WHOLE else Physical(text(d, cell, kind))


TRUE, FALSE = 199830401674338, 277888434016397
"""The numbers of the texts of booleans in a row's hash (`persons.counted_as`)."""


_SECONDS = 86_400
_FIRST, _LAST = FIRST_DAY * _SECONDS, (LAST_DAY + 1) * _SECONDS - 1
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _inside(cell: str, sort: str, unit: str) -> str:
    """A BIGINT of units, NULL if it is out of range (for nanoseconds, of 64 bits)."""
    many = _PER_SECOND[unit]
    first, last = (0, _SECONDS * many - 1) if sort == "TIME" else (_FIRST * many, _LAST * many + many - 1)
    if unit == "ns":
        first, last = max(first, -(2**63) + 2 * _SECONDS * many), min(last, 2**63 - 2 * _SECONDS * many)
    return f"CASE WHEN {cell} BETWEEN {first} AND {last} THEN CAST({cell} AS BIGINT) END"


def _micros(d: Dialect, cell: str, kind: str) -> str:
    """The microseconds of a date or time that is an integer, rounded down."""
    sort, unit, *_ = [*kind.split(), ""]
    if unit not in _PER_SECOND:
        return "CAST(NULL AS BIGINT)"
    inside, many = f"({_inside(cell, sort, unit)})", _PER_SECOND[unit]
    if unit != "ns":
        return f"({inside} * {10**6 // many})"
    return d.quotient.format(f"({inside} - ({inside} % 1000 + 1000) % 1000)", 1000)


def _moment(d: Dialect, cell: str, kind: str) -> str:
    """A DATE, TIME or TIMESTAMP, or NULL if the cell is out of range."""
    sort, unit, *_ = [*kind.split(), ""]
    if kind == "DATE":
        return f"CASE WHEN {cell} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {cell} END"
    if sort not in ("DATE", "TIME", "TIMESTAMP") or unit not in _PER_SECOND:
        return d.constant(None, "text")
    nanoseconds = unit == "ns" and d.nanoseconds
    stamp = d.nanoseconds.format(_inside(cell, sort, unit)) if nanoseconds else d.stamp.format(_micros(d, cell, kind))
    return stamp if sort == "TIMESTAMP" else f"CAST({stamp} AS {sort})"


def truth(d: Dialect, cell: str, kind: str) -> str:
    """A BOOLEAN or NULL: `true t yes y` and 1, `false f no n` and 0, in any case."""
    if kind == "BOOLEAN":
        return cell
    value = number(d, cell, kind)
    if kind != "VARCHAR":
        return f"CASE {value} WHEN 1 THEN TRUE WHEN 0 THEN FALSE END"
    word = f"lower(trim(BOTH ' \t' FROM {cell}))"
    true, false = (f"{word} IN ({', '.join(map(d.literal, words))}) OR {value} = {n}" for words, n in TRUTHS)
    return short(d, cell, f"CASE WHEN {true} THEN TRUE WHEN {false} THEN FALSE END")


def short(d: Dialect, cell: str, value: str) -> str:
    """A value of a text, or NULL if the text is longer than `LONGEST`."""
    return f"CASE WHEN {d.short.format(cell)} THEN {value} END" if d.short else value


def read(d: Dialect, cell: str, kind: str, domain: Domain) -> tuple[str, str]:
    """The parsed cell and its kind. A text that is described as a number, date or time is parsed here, once, however
    often cleaning uses it."""
    target = domain_kind(domain)
    if kind == "VARCHAR" and target == "number":
        return number(d, cell, kind), "DOUBLE"
    return (moment(d, cell, kind, target), MOMENT) if kind == "VARCHAR" and target in ("date", "time") else (cell, kind)


def clean(d: Dialect, cell: str, kind: str, domain: Domain) -> Physical:
    """The cell as a value of its domain: an integer, a double, a text or a boolean."""
    if isinstance(domain, Categories):
        return Physical(_category(d, cell, kind, domain))
    if isinstance(domain, Open):
        return Physical(_open(d, cell, kind, domain.kind))
    if isinstance(domain, Moments):
        value = moment(d, cell, kind, domain.kind)
        inside = f"greatest({d.number(domain.low)}, least({d.number(domain.high)}, {value}))"
        unit = functions.truncation(d, domain.kind, domain.unit, inside) if domain.unit else inside
        return Physical(f"CAST(CASE WHEN {value} IS NOT NULL THEN {unit} END AS BIGINT)", True)
    ends = as_double(domain.low), as_double(domain.high)
    if isinstance(domain, Integer) and max(abs(domain.low), abs(domain.high)) <= _EXACT:
        return Physical(_integer(d, cell, kind, domain), True, ends)
    low, high = map(d.number, ends)
    if kind in FLOATS and not isinstance(domain, Integer):
        return Physical(clamped(d, d.as_double(cell), low, high, d.finite.format(cell)), within=ends)
    value = number(d, cell, kind)
    rounded = d.floor.format(value) if isinstance(domain, Integer) else value
    return Physical(f"CASE WHEN {value} IS NOT NULL THEN greatest({low}, least({high}, {rounded})) END", within=ends)


def _open(d: Dialect, cell: str, kind: str, target: str) -> str:
    if target == "text":
        return text(d, cell, kind)
    if target == "boolean":
        return truth(d, cell, kind)
    if target in ("date", "time"):
        return moment(d, cell, kind, target)
    value = number(d, cell, kind)
    return d.floor.format(value) if target == "integer" and kind not in WHOLE else value


def _integer(d: Dialect, cell: str, kind: str, domain: Integer) -> str:
    # `greatest` and `least` ignore NULL, and are faster than a CASE of comparisons.
    if kind in WHOLE:
        return f"CASE WHEN {cell} IS NOT NULL THEN greatest({domain.low}, least({domain.high}, {cell})) END"
    value = number(d, cell, kind)
    low, high = d.number(domain.low), d.number(domain.high)
    inside = f"greatest({low}, least({high}, {d.floor.format(value)}))"
    return f"CAST(CASE WHEN {value} IS NOT NULL THEN {inside} END AS BIGINT)"


def _category(d: Dialect, cell: str, kind: str, domain: Categories) -> str:
    if not domain.values:
        return d.constant(None, "text")
    if isinstance(domain.values[0], str):
        value = cell if kind == "VARCHAR" else text(d, cell, kind)
        output = d.ordered.format(value)
        literals = [d.literal(v) for v in domain.values if isinstance(v, str) and v]  # empty cells are missing
        if 0 < len(literals) <= PLACES:  # evaluated once for each distinct text of a dictionary
            return f"CASE WHEN {d.place.format(value, ', '.join(literals))} > 0 THEN {output} END"
    else:
        output = value = number(d, cell, kind)
        literals = [d.number(v) for v in domain.values if not isinstance(v, str)]
    return f"CASE WHEN {d.among(value, literals or ['NULL'], domain_kind(domain))} THEN {output} END"
