"""Raw cells as values of their described domain, row by row (language.md, section 3), in SQL.

Text is a number when it is written as a finite decimal, with blanks around it at most; anything else (`inf`, `nan`,
`1e400`, `0x10`, `1_0`) is none, and so is an empty cell. Numbers are clamped to their domain, an integer floored
first; text matches a category exactly, a number matches a category by value; the rest is none. No cell can make this
fail, and no cell's fate depends on another's.

The kind of a cell is a type of DuckDB whose values it can hold all, or a date or time as a whole number (`DATE ms`,
`TIME us`, `TIMESTAMP ns UTC`), which becomes text where it lies in the years 1 to 9999. Other kinds are none.
"""

from __future__ import annotations

from jostle.engine.sql.dialect import DUCKDB
from jostle.engine.sql.rows import Physical, among, clamped, number_literal, text_literal
from jostle.language.operations import OPERATIONS
from jostle.language.operations.moments import known_time, truncation
from jostle.plan.bounds import as_double
from jostle.plan.domains import Categories, Domain, Integer, Moments, Open

WHOLE = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"})
NONE = "NONE"  # the kind of cells that have no value whatever stands in the file
NATIVE = WHOLE | {"UBIGINT", "FLOAT", "DOUBLE", "BOOLEAN", "VARCHAR", "DATE"}
FLOATS = frozenset({"FLOAT", "DOUBLE"})
_NUMBER = r"^[ \t]*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?[ \t]*$"
_EXACT = 2**53
_PLACES = 128  # categories among which a text's place is as soon found as it is looked up in a table of them
_TRUTHS = ((("true", "t", "yes", "y"), 1), (("false", "f", "no", "n"), 0))


def number(cell: str, kind: str) -> str:
    """A finite DOUBLE or NULL; dates and times are no numbers."""
    if kind in WHOLE or kind == "UBIGINT":
        return f"CAST({cell} AS DOUBLE)"
    if kind in FLOATS:
        return f"CASE WHEN isfinite({cell}) THEN CAST({cell} AS DOUBLE) END"
    if kind == "BOOLEAN":
        return f"CAST(CASE WHEN {cell} THEN 1 WHEN NOT {cell} THEN 0 END AS DOUBLE)"
    if kind == "VARCHAR":
        value = f"TRY_CAST(trim({cell}, ' \t') AS DOUBLE)"
        return f"CASE WHEN regexp_matches({cell}, '{_NUMBER}') AND isfinite({value}) THEN {value} END"
    return "CAST(NULL AS DOUBLE)"


def text(cell: str, kind: str) -> str:
    """A VARCHAR that is not empty, or NULL: dates in ISO order, booleans as `true` and `false`."""
    if kind in FLOATS:
        return f"CASE WHEN isfinite({cell}) THEN CAST({cell} AS VARCHAR) END"
    if kind == "VARCHAR":
        return f"CASE WHEN {cell} <> '' THEN {cell} END"
    if kind in NATIVE - {"DATE"}:
        return f"CAST({cell} AS VARCHAR)"
    return f"CAST({_moment(cell, kind)} AS VARCHAR)" + (" || '+00'" if kind.endswith(" UTC") else "")


def identity(cell: str, kind: str) -> str:
    """The text that tells whose a row is, in every table alike: of a float that is whole that of the whole number."""
    if kind not in FLOATS:
        return text(cell, kind)
    whole = f"{cell} = floor({cell}) AND abs({cell}) < {_EXACT}"
    return f"CASE WHEN {whole} THEN CAST(TRY_CAST({cell} AS BIGINT) AS VARCHAR) ELSE {text(cell, kind)} END"


def moment(cell: str, kind: str, wanted: str) -> str:
    """The number of a `date` or a `time` as a DOUBLE, or NULL: of a text that spells one, or of a date or time."""
    if kind == "VARCHAR":
        return f"({str(OPERATIONS[f'{wanted} of text'].sql).format(cell)})"
    if not kind.startswith(("DATE", "TIMESTAMP")):
        return "CAST(NULL AS DOUBLE)"
    value = _moment(cell, kind)
    if wanted == "date":
        return f"CAST(CAST({value} AS DATE) - DATE '1970-01-01' AS DOUBLE)"
    return known_time(f"epoch_us(CAST({value} AS TIMESTAMP))")


def whole_or_text(cell: str, kind: str) -> Physical:
    """What the cell is hashed by: a whole number that the column stores, or the cell's text."""
    return Physical(cell, True) if kind in WHOLE else Physical(text(cell, kind))


_DAY = 86_400
_FIRST, _LAST = -62_135_596_800, 253_402_300_799  # seconds from 1970 to the years 1 and 9999
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _moment(cell: str, kind: str) -> str:
    """A DATE, TIME or TIMESTAMP, or NULL where the cell is out of range (nanoseconds: of 64 bits)."""
    sort, unit, *_ = [*kind.split(), ""]
    if kind == "DATE":
        return f"CASE WHEN {cell} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {cell} END"
    if sort not in ("DATE", "TIME", "TIMESTAMP") or unit not in _PER_SECOND:
        return "CAST(NULL AS VARCHAR)"
    many = _PER_SECOND[unit]
    first, last = (0, _DAY * many - 1) if sort == "TIME" else (_FIRST * many, _LAST * many + many - 1)
    if unit == "ns":
        first, last = max(first, -(2**63) + 2 * _DAY * many), min(last, 2**63 - 2 * _DAY * many)
    inside = f"CASE WHEN {cell} BETWEEN {first} AND {last} THEN CAST({cell} AS BIGINT) END"
    moment = f"make_timestamp_ns({inside})" if unit == "ns" else f"make_timestamp(({inside}) * {10**6 // many})"
    return moment if sort == "TIMESTAMP" else f"CAST({moment} AS {sort})"


def truth(cell: str, kind: str) -> str:
    """A BOOLEAN or NULL: `true t yes y` and 1, `false f no n` and 0, in any case."""
    if kind == "BOOLEAN":
        return cell
    value = number(cell, kind)
    if kind != "VARCHAR":
        return f"CASE {value} WHEN 1 THEN TRUE WHEN 0 THEN FALSE END"
    word = f"lower(trim({cell}, ' \t'))"
    true, false = (f"{word} IN ({', '.join(map(text_literal, words))}) OR {value} = {n}" for words, n in _TRUTHS)
    return f"CASE WHEN {true} THEN TRUE WHEN {false} THEN FALSE END"


def clean(cell: str, kind: str, domain: Domain) -> Physical:
    """The cell as a value of its domain: an integer, else a DOUBLE, VARCHAR or BOOLEAN."""
    if isinstance(domain, Categories):
        return Physical(_category(cell, kind, domain))
    if isinstance(domain, Open):
        return Physical(_open(cell, kind, domain.kind))
    if isinstance(domain, Moments):
        value = moment(cell, kind, domain.kind)
        inside = f"greatest({number_literal(domain.low)}, least({number_literal(domain.high)}, {value}))"
        unit = truncation(domain.kind, domain.unit, inside) if domain.unit else inside
        return Physical(f"CAST(CASE WHEN {value} IS NOT NULL THEN {unit} END AS BIGINT)", True)
    ends = as_double(domain.low), as_double(domain.high)
    if isinstance(domain, Integer) and max(abs(domain.low), abs(domain.high)) <= _EXACT:
        return Physical(_integer(cell, kind, domain), True, ends)
    low, high = map(number_literal, ends)
    if kind in FLOATS and not isinstance(domain, Integer):
        return Physical(clamped(f"CAST({cell} AS DOUBLE)", low, high, f"isfinite({cell})"), within=ends)
    value = number(cell, kind)
    rounded = f"floor({value})" if isinstance(domain, Integer) else value
    return Physical(f"CASE WHEN {value} IS NOT NULL THEN greatest({low}, least({high}, {rounded})) END", within=ends)


def _open(cell: str, kind: str, wanted: str) -> str:
    if wanted == "text":
        return text(cell, kind)
    if wanted == "boolean":
        return truth(cell, kind)
    if wanted in ("date", "time"):
        return moment(cell, kind, wanted)
    return f"floor({number(cell, kind)})" if wanted == "integer" and kind not in WHOLE else number(cell, kind)


def _integer(cell: str, kind: str, domain: Integer) -> str:
    # `greatest` and `least` pass over NULL, and are faster than a CASE of comparisons.
    if kind in WHOLE:
        return f"CASE WHEN {cell} IS NOT NULL THEN greatest({domain.low}, least({domain.high}, {cell})) END"
    value = number(cell, kind)
    low, high = number_literal(domain.low), number_literal(domain.high)
    inside = f"greatest({low}, least({high}, floor({value})))"
    return f"TRY_CAST(CASE WHEN {value} IS NOT NULL THEN {inside} END AS BIGINT)"


def _category(cell: str, kind: str, domain: Categories) -> str:
    if not domain.values:
        return "CAST(NULL AS VARCHAR)"
    if isinstance(domain.values[0], str):
        value = cell if kind == "VARCHAR" else text(cell, kind)
        literals = [text_literal(v) for v in domain.values if isinstance(v, str) and v]  # no cell is the empty text
        if 0 < len(literals) <= _PLACES:  # a reader of dictionaries looks a place up once for each different text
            return f"CASE WHEN {DUCKDB.place.format(value, ', '.join(literals))} > 0 THEN {value} END"
    else:
        value = number(cell, kind)
        literals = [number_literal(v) for v in domain.values if not isinstance(v, str)]
    return f"CASE WHEN {among(value, literals or ['NULL'])} THEN {value} END"
