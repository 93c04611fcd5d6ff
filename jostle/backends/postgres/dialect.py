"""PostgreSQL's dialect (15 to 18). It raises where others give an infinity or nothing, so each template tests first.

Each operation that raises stands in a branch of a CASE whose conditions are made of the operation's own operands. The
conditions of a CASE are evaluated in their order, a branch only where its condition holds; what the planner knows
already, since it is made of constants, it leaves out in the same way. AND and OR promise no order, so each side of them
is total alone.

Doubles: a sum, a product or a quotient raises where it is infinite for finite operands, a product or a quotient also
where it is 0 for operands that are not. Both are decided on operands that are scaled by powers of two, which is exact:

- x + y is rounded as x/2 + y/2 is, unless one of them is below 2^900, beside which the other does not overflow;
- of |x|, |y| ≥ 1 the product is rounded as (x/2^512)(y/2^512) is, unless that is below 2^-1022, far from overflowing;
- of |x|, |y| < 1 the product is 0 where it is at most 2^-1075, which (x 2^512)(y 2^512) tells. (A product above 2^-1075
  by less than its 2^53rd part is taken for 0 too.) If one is at least 1 and the other is not, it does neither;
- x/y is infinite where |x| ≥ 2^1024 |y|, since no quotient of doubles lies within half a unit below 2^1024, and 0 where
  |x| ≤ 2^-1075 |y|.

Where bounds that are known of the operands exclude both, they are left out (`RowSql`).

A remainder is one of whole numbers: x = m 2^j and y = n 2^k by their bits, and where |x| ≥ |y|, j is at least k.
No template has a brace but those of its operands, since some are put together of others.
A text becomes a number where its first digit's place and its digits say that it is a double. They are compared with the
digits of the largest double, and of the smallest, and half a unit.

A subquery is copied into the query around it, and its columns into each of their mentions: `OFFSET 0` keeps it apart.
Names are looked up in the catalog of the system alone (`search_path` of the session), so that no function of a user's
is called. Texts are compared by their UTF-8, in the collation "C", from the scan on.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal

from jostle.diagnostics import refuse
from jostle.engine.sql.dialect import Dialect, doubled_quotes
from jostle.language.moments import FIRST_DAY, FIRST_TIME, LAST_DAY, LAST_TIME
from jostle.language.operations import DECIMAL
from jostle.language.row_functions import lower, upper
from jostle.speed.quicksql import QUICK

_LAST_LETTER = 0x1F000  # no letter beyond has a capital


def _power(exponent: int) -> str:
    """A power of two as a literal."""
    return _double(2.0**exponent)


def _double(value: float) -> str:
    return f"'{value!r}'::float8"


def _add() -> str:
    small = f"abs({{0}}) < {_power(900)} OR abs({{1}}) < {_power(900)}"
    halves = f"abs({{0}} * {_power(-1)} + {{1}} * {_power(-1)}) < {_power(1023)}"
    return f"(CASE WHEN {small} THEN {{0}} + {{1}} WHEN {halves} THEN {{0}} + {{1}} END)"


def _multiply() -> str:
    x, y = "abs({0})", "abs({1})"
    below = f"({x} * {_power(-512)}) * ({y} * {_power(-512)}) < 1"
    above = f"({x} * {_power(512)}) * ({y} * {_power(512)}) > {_power(-51)}"
    tiny = f"{x} < {_power(-500)} AND {y} < {_power(-600)}"
    return (
        f"(CASE WHEN {x} >= 1 AND {y} >= 1 THEN CASE WHEN {below} THEN {{0}} * {{1}} END "
        f"WHEN {x} < 1 AND {y} < 1 THEN CASE WHEN {tiny} THEN 0 WHEN {{0}} = 0 OR {{1}} = 0 THEN 0 "
        f"WHEN {above} THEN {{0}} * {{1}} ELSE 0 END ELSE {{0}} * {{1}} END)"
    )


def _divide() -> str:
    x, y = "abs({0})", "abs({1})"
    return (
        f"(CASE WHEN {x} < 1 AND {y} > 1 AND {y} < 'Infinity'::float8 "
        f"THEN CASE WHEN {x} * {_power(1000)} <= {y} * {_power(-75)} THEN 0 ELSE {{0}} / {{1}} END "
        f"WHEN {x} >= {_power(-100)} AND {y} < 1 "
        f"THEN CASE WHEN {x} * {_power(-512)} < {y} * {_power(512)} THEN {{0}} / {{1}} END ELSE {{0}} / {{1}} END)"
    )


_BITS = "('x' || encode(float8send({0}), 'hex'))::bit(64)::bigint"


def _remainder() -> str:
    x, y = _BITS.format("abs({0})"), _BITS.format("abs({1})")
    j, k = (f"greatest(({bits} >> 52) & 2047, 1)" for bits in (x, y))
    m, n = (
        f"(({bits} & {2**52 - 1}) + CASE WHEN {bits} >> 52 > 0 THEN {2**52} ELSE 0 END)" for bits in (x, y)
    )  # fmt: skip
    short = f"({m} << CAST({j} - {k} AS INTEGER)) % {n}"
    long = f"CAST(mod({m} * power(2::numeric, {j} - {k}), {n}) AS BIGINT)"
    rest = f"(CASE WHEN {j} - {k} <= 10 THEN {short} ELSE {long} END)::float8 * pow(2::float8, ({k} - 1075)::float8)"
    larger = f"WHEN abs({{0}}) >= abs({{1}}) AND {{1}} <> 0 THEN CASE WHEN {{0}} < 0 THEN -1 ELSE 1 END * {rest}"
    return f"(CASE WHEN abs({{0}}) < abs({{1}}) THEN {{0}} {larger} END)"


def _pow() -> str:
    """An exponent times a logarithm tells how large a power is, to some 2^-40. Within 4·10⁻¹⁰ of the largest double it
    is none, and below 2^-1074.9 it is 0."""
    large = f"{_double(1e20)}"
    logarithm = "{1} * ln(abs({0}))"
    return (
        "(CASE WHEN {0} = 0 THEN CASE WHEN {1} > 0 THEN 0 WHEN {1} = 0 THEN 1 END "
        "WHEN {0} < 0 AND {1} <> floor({1}) THEN NULL WHEN {1} = 1 THEN {0} WHEN abs({0}) = 1 THEN pow({0}, {1}) "
        f"WHEN abs({{1}}) < {_double(1e-20)} THEN abs({{0}}) / abs({{0}}) "
        f"WHEN abs({{1}}) > {large} THEN CASE WHEN (abs({{0}}) > 1) = ({{1}} < 0) THEN 0 END "
        f"WHEN {logarithm} > {_double(709.782712893)} THEN NULL "
        f"WHEN {logarithm} < {_double(-745.133)} THEN 0 ELSE pow({{0}}, {{1}}) END)"
    )


def _exp() -> str:
    """Between the two last bounds it is the smallest double, of which a library may make 0."""
    return (
        f"(CASE WHEN {{0}} > {_double(709.782712893384)} THEN NULL WHEN {{0}} < {_double(-745.1332191019411)} THEN 0 "
        f"WHEN {{0}} < {_double(-745.13)} THEN {_double(5e-324)} ELSE exp({{0}}) END)"
    )


def _whole() -> str:
    inside = f"{{0}} >= {_power(63).replace(chr(39), chr(39) + '-', 1)} AND {{0}} < {_power(63)}"
    return f"(CASE WHEN {inside} THEN CAST({{0}} AS BIGINT) END)"


def _whole_wide() -> str:
    """A cast of a double keeps 15 digits: its upper and its lower bits are cast apart."""
    upper = f"trunc({{0}} * {_power(-41)})"
    rest = f"CAST({{0}} - {upper} * {_power(41)} AS BIGINT)"
    parts = f"CAST(CAST({upper} AS BIGINT) AS NUMERIC) * {2**41} + {rest}"
    return f"(CASE WHEN abs({{0}}) < {_power(81)} THEN {parts} END)"


def _spelled() -> str:
    """The server writes a number of 16 digits before the point with an exponent."""
    plain = "CAST({0} AS TEXT)"
    long = f"CAST(CAST({plain} AS NUMERIC) AS TEXT)"
    return (
        f"(CASE WHEN abs({{0}}) >= {_double(1e15)} AND abs({{0}}) < {_double(1e16)} "
        f"THEN {long} || CASE WHEN strpos({long}, '.') > 0 THEN '' ELSE '.0' END "
        f"ELSE {plain} || CASE WHEN {plain} ~ '[.eIN]' THEN '' ELSE '.0' END END)"
    )


def _digits(value: Decimal) -> str:
    return "".join(map(str, value.as_tuple().digits)).rstrip("0")


def _double_of() -> str:
    """A short text without a large exponent is a double; of others the digits and the place of the first one decide."""
    exactly = Context(prec=2000)
    beyond = _digits(exactly.subtract(exactly.power(Decimal(2), 1024), exactly.power(Decimal(2), 970)))
    nothing = _digits(exactly.divide(Decimal(1), exactly.power(Decimal(2), 1075)))
    few = DECIMAL.replace("[0-9]+)?[ ", "[0-9][0-9]?)?[ ")
    text = "btrim({0}, ' \t')"
    split = (
        f"SELECT split_part(of_m, '.', 1) AS of_a, split_part(of_m, '.', 2) AS of_b, ltrim(of_x, '+-0') AS of_z, "
        "left(of_x, 1) = '-' AS of_down "
        f"FROM (SELECT ltrim(regexp_replace({text}, '[eE].*$', ''), '+-') AS of_m, "
        f"coalesce((regexp_match({text}, '[eE](.*)$'))[1], '') AS of_x OFFSET 0) AS t OFFSET 0"
    )
    placed = (
        "SELECT rtrim(ltrim(of_a || of_b, '0'), '0') AS of_d, length(ltrim(of_a || of_b, '0')) - length(of_b) - 1 + "
        "CASE WHEN length(of_z) > 12 THEN 1000000000000 WHEN of_z = '' THEN 0 ELSE CAST(of_z AS BIGINT) END "
        f"* CASE WHEN of_down THEN -1 ELSE 1 END AS of_e FROM ({split}) AS u OFFSET 0"
    )
    long = (
        f"SELECT CASE WHEN of_d = '' THEN 0 "
        f"WHEN of_e > 308 OR (of_e = 308 AND of_d COLLATE \"C\" >= '{beyond}') THEN NULL "
        f"WHEN of_e < -324 OR (of_e = -324 AND of_d COLLATE \"C\" <= '{nothing}') THEN 0 "
        f"ELSE CAST({text} AS float8) END FROM ({placed}) AS v"
    )
    return (
        f"(CASE WHEN {{0}} ~ '{few}' AND length({{0}}) <= 200 THEN CAST({text} AS float8) "
        f"WHEN {{0}} ~ '{DECIMAL}' THEN ({long}) END)"
    )


def _whole_of() -> str:
    digits = "ltrim(btrim({0}, ' \t'), '+-0')"
    large = f"CAST({digits} AS NUMERIC) <= {2**63 - 1}::numeric + CASE WHEN strpos({{0}}, '-') > 0 THEN 1 ELSE 0 END"
    read = "CAST(btrim({0}, ' \t') AS BIGINT)"
    return (
        f"(CASE WHEN {{0}} ~ '^[ \t]*[+-]?[0-9]+[ \t]*$' THEN CASE WHEN length({digits}) < 19 THEN {read} "
        f"WHEN length({digits}) > 19 THEN NULL WHEN {large} THEN {read} END END)"
    )


def _micros() -> str:
    year, month, day = (f"CAST(substr({{0}}, {at}, {many}) AS INTEGER)" for at, many in ((1, 4), (6, 2), (9, 2)))
    clock = [f"coalesce(CAST(nullif(substr({{0}}, {at}, 2), '') AS BIGINT), 0)" for at in (12, 15, 18)]
    fraction = "CAST(rpad(substr({0}, 21, 6), 6, '0') AS INTEGER)"
    pattern = (
        "^[0-9][0-9][0-9][0-9]-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
        "( ([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]+)?)?)?$"
    )
    leap = f"{year} % 4 = 0 AND ({year} % 100 <> 0 OR {year} % 400 = 0)"
    last = f"CASE WHEN {month} IN (4, 6, 9, 11) THEN 30 WHEN {month} <> 2 THEN 31 WHEN {leap} THEN 29 ELSE 28 END"
    days = f"CAST(make_date({year}, {month}, {day}) - DATE '1970-01-01' AS BIGINT)"
    seconds = f"(({days} * 24 + {clock[0]}) * 60 + {clock[1]}) * 60 + {clock[2]}"
    return (
        f"(CASE WHEN {{0}} ~ '{pattern}' THEN CASE WHEN {year} > 0 AND {day} <= {last} "
        f"THEN ({seconds}) * 1000000 + {fraction} END END)"
    )


def _stamp() -> str:
    since, day = f"({{0}} - ({FIRST_TIME}))", 86_400_000_000
    days = f"DATE '0001-01-01' + CAST({since} / {day} AS INTEGER)"
    inside = f"{{0}} BETWEEN {FIRST_TIME} AND {LAST_TIME + 999_999}"
    return f"(CASE WHEN {inside} THEN {days} + INTERVAL '1 microsecond' * ({since} % {day}) END)"


def bare(text: str) -> str:
    """A text as a literal of no type yet."""
    if "\0" in text:
        raise refuse("DataError", "PostgreSQL has no texts with the character NUL in them")
    return doubled_quotes(text)


def _quoted(text: str) -> str:
    return f'({bare(text)}::text COLLATE "C")'


def _letters(change: Callable[[str], str], name: str) -> str:
    """Each letter by its one small or capital letter; the server's own depends on where the database was made."""
    cased = (letter for letter in map(chr, range(128, _LAST_LETTER)) if letter.lower() != letter.upper())
    pairs = [(letter, change(letter)) for letter in cased if change(letter) != letter]
    before, after = ("".join(column) for column in zip(*pairs, strict=True))
    plain = f'{name}({{0}} COLLATE "C")'
    every = f"translate({plain}, '{before}', '{after}')"
    return f"(CASE WHEN octet_length({{0}}) = length({{0}}) THEN {plain} ELSE {every} END)"


def _dialect() -> Dialect:
    inside = f"{{0}} BETWEEN {FIRST_DAY} AND {LAST_DAY}"
    return Dialect(
        **QUICK,
        name="PostgreSQL",
        double="DOUBLE PRECISION", text="TEXT", wide="NUMERIC", tiny="SMALLINT",
        digits="'{0}'::float8", quoted=_quoted,
        finite="(abs({0}) < 'Infinity'::float8)", whole=_whole(), whole_wide=_whole_wide(),
        floor="floor({0})", even="round({0})", nearest="CAST({0} AS BIGINT)", near_whole="CAST({0} AS BIGINT)",
        add=_add(), multiply=_multiply(), divide=_divide(), remainder=_remainder(), power=_pow(), exp=_exp(),
        bits=f"({_BITS.format('CASE WHEN {0} = 0 THEN 0 ELSE {0} END')})", spelled=_spelled(),
        quotient="({0} / {1})", xor="({0} # {1})", right="({0} >> {1})",
        total="CAST(coalesce(sum({0}), 0) AS TEXT)",
        double_of=_double_of(), whole_of=_whole_of(),
        digest="('x' || left(encode(sha256(convert_to({0}, 'UTF8')), 'hex'), 12))::bit(48)::bigint",
        size="octet_length({0})", place="array_position(ARRAY[{1}], {0})", ordered='({0} COLLATE "C")',
        matches="({0} ~ {1})", part="(regexp_match({0}, {1}))[{2}]",
        character="\\U{0:08X}", end="\\Z",
        day=f"(CASE WHEN {inside} THEN DATE '1970-01-01' + CAST({{0}} AS INTEGER) END)",
        days="({0} - DATE '1970-01-01')",
        first_day="CAST(date_trunc('{1}', CAST({0} AS TIMESTAMP)) AS DATE)",
        stamp=_stamp(), micros=_micros(),
        fence=" OFFSET 0", quantile="percentile_cont({1}) WITHIN GROUP (ORDER BY {0})",
        operations={"lower": _letters(lower, "lower"), "upper": _letters(upper, "upper")},
    )  # fmt: skip


POSTGRES = _dialect()
