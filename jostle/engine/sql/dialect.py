"""What databases spell differently in the SQL that is emitted here. Standard SQL has the rest.

A dialect is a list of templates; `{0}`, `{1}`, … are their operands, and what a template says more than once is given a
name before. **Every template is total**: no value of a row may make it fail. Where the database would raise (overflow,
underflow, NaN, a text that is no number, a day that is not there), the template tests first, and gives what its
sentence says. It is exact too: engines are compared by whole numbers, to the last one.

Of the database itself it is expected that

- a comparison with NULL is NULL, and a test that is NULL does not hold; `greatest` and `least` pass over NULL;
- NaN equals itself and is larger than all other numbers, and −0 equals 0, in comparisons, joins and groups;
- doubles are rounded as IEEE 754 has it, whole numbers divide and compare exactly;
- `left`, `right`, `length`, `replace`, `lpad`, `position(… IN …)`, `||`, `trim(BOTH … FROM …)` count code points and
  know no language; texts are equal when their UTF-8 is.

Where one of these does not hold, `operations` says otherwise, or `refused` names the operation. What a server cannot do
is found in a question before anything is charged (`backends.server`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, NoReturn

from msgspec import Struct, field

from jostle.diagnostics import refuse
from jostle.language.moments import number_of
from jostle.plan.schemas import BY_KINDS, Facts

LONG = 500  # characters of a value that is calculated once, whatever a planner would do
PLACES = 128  # listed values among which a text's place is as soon found as it is looked up in a table of them


def doubled_quotes(text: str) -> str:
    """A text as a literal of standard SQL, which knows one escape; NUL cannot stand in a query's text."""
    parts = ["'" + part.replace("'", "''") + "'" for part in text.split("\0")]
    return parts[0] if len(parts) == 1 else "(" + " || chr(0) || ".join(parts) + ")"


def _unread(*_: str) -> NoReturn:
    """Patterns and formats are the language's, and what reads them is handed in: a text, which is a literal in SQL, so
    that a wrong one is another question about each row."""
    raise refuse("DataError", "this engine is handed nothing that reads patterns or formats")


class Dialect(Struct, frozen=True, eq=False, kw_only=True):
    """The primitives of a database. `name` is what messages call it."""

    name: str

    # Types
    double: str  # the type of doubles
    text: str  # the type of texts
    wide: str  # an integer type of at least 126 bits
    tiny: str  # an integer type that has −1 to 127

    # Literals
    digits: str  # a double from its digits, `1.5e0`, `-0.0e0`, `5e-324`: the one that Python reads in them
    quoted: Callable[[str], str] = doubled_quotes  # a text as a literal of the type of texts, also with NUL in it

    # Doubles. An operand may be NaN or infinite where nothing is said, and so may a result.
    finite: str  # whether a double is neither NaN nor infinite; NULL or FALSE for NULL
    known_finite: str = ""  # the same of what is not NULL; empty where two doubles are compared as fast
    between: str = "{0} BETWEEN {1} AND {2}"  # whether a double is, the lower end first; NaN is not
    whole: str  # a whole double as a BIGINT, NULL where it is beyond 64 bits
    whole_wide: str  # the same in the wide type, of whole doubles below 2^81 in size
    floor: str  # the largest whole double below, however large; what is not finite stays or becomes NULL
    even: str  # the nearest whole double, halves to the even one, however large
    nearest: str  # the same as a BIGINT, of finite doubles below 2^62 in size
    grid: str = ""  # {0} + {1} − {1}, each rounded once; empty where doubles add up no faster than whole numbers
    near_floor: str = ""  # `floor` of finite doubles below 2^51; empty where it is the same, as below
    near_whole: str = ""  # `whole` of such
    near_nearest: str = ""  # `nearest` of such
    add: str = "({0} + {1})"  # rounded once: beyond the doubles infinite or NULL, below them 0, or a denormal one
    multiply: str = "({0} * {1})"  # the same
    divide: str = "({0} / {1})"  # the same, where {1} is not 0; NULL where it is NULL
    remainder: str  # of finite doubles, exactly, with the sign of {0}, where {1} is not 0; NULL where it is NULL
    power: str = "pow({0}, {1})"  # of finite doubles, where it is a number; NULL where one is NULL
    exp: str = "exp({0})"  # of finite doubles below 710, 0 where it is below the doubles
    unsigned: str = "{0}"  # the same double, and 0 for −0 where the database tells them apart, as in DISTINCT or IN
    bits: str  # the 64 bits of a finite double, as a BIGINT; those of 0 for −0
    spelled: str = ""  # the shortest text that reads back as a finite double, as `1.0`, `1e+16`; empty where it cannot

    # Whole numbers
    quotient: str  # of integers, where they are not negative taken down, where nothing is left exactly; NULL of NULL
    xor: str  # of the bits of two BIGINTs
    right: str  # the BIGINT {0}, not negative or of both signs, shifted to the right by {1} bits, keeping its sign
    total: str  # the sum of a column of BIGINTs or wide integers, however many rows have one, as a text; 0 of none

    # Texts
    double_of: str  # a text that is written as a decimal with blanks around it, as a double, infinite or NULL beyond
    decimal: str = ""  # a quick test that holds only of texts so written, where `double_of` gives a finite double
    whole_of: str  # a text that is written as a whole number as a BIGINT, and NULL of what is not one, or beyond
    digest: str  # the first 48 bits of the SHA-256 of a text's UTF-8, as a BIGINT
    size: str  # how many bytes a text's UTF-8 has
    short: str = ""  # whether a text has at most `LONGEST` code points; empty where tables are read without longer ones
    place: str  # where {0} stands in the list of the constants {1}, from 1; 0 or NULL where it does not
    among_texts: str = ""  # whether {0} is one of the texts {1}, where that is sooner known than by comparing each
    ordered: str = "{0}"  # the text, which is from then on compared and ordered by its UTF-8
    pattern: Callable[[str], str] = _unread  # a pattern of a program in the syntax of RE2; refused where it cannot
    format: Callable[[str, str], tuple[str, Sequence[str]]] = _unread  # a format: such a pattern, the parts in groups
    matches: str  # whether the pattern {1}, a literal, matches somewhere in the text {0}
    part: str  # what the group {2} of the pattern {1} matches in the text {0}, where the pattern does
    character: str = "\\x{{{0:X}}}"  # a character in a pattern, by its code point
    start: str = "\\A"  # the start of the text in a pattern, and nowhere else
    end: str = "\\z"  # its end, and nowhere else

    # Dates and times
    day: str  # the DATE that is {0} days after 1 January 1970, of the years 1 to 9999
    days: str  # the days from 1 January 1970 to a DATE, as an integer
    extract: str = "EXTRACT({1} FROM {0})"  # year quarter month week day isodow doy isoyear of a DATE
    first_day: str  # the first DATE of the year, quarter or month {1} of a DATE
    stamp: str  # the TIMESTAMP without a zone of microseconds since 1970, of the years 1 to 9999
    nanoseconds: str = ""  # the same of nanoseconds, where the database has such; else they are taken down
    micros: str  # of a text in digits, `2024-03-01`, ` 12:30`, `:05`, `.5` after it: microseconds; NULL of no such day

    # Queries
    shared: str = "WITH {0} AS MATERIALIZED ({1}) {2}"  # the query {2}, which reads the query {1} as {0}
    fence: str = ""  # after a subquery: its columns are calculated once, and not again wherever they are mentioned
    once: str = "{0}"  # a value of a subquery's column, which is calculated there, wherever its name stands
    split: Mapping[str, str] = {}  # by kind, the rows that the pieces of the text {0} between {1} are
    lists: bool = False  # whether a long list of constants is compared as fast as they are looked up in a table
    orders: bool = True  # whether the rows of any relation may be asked for in order
    quantile: str  # of a column of doubles, linear between two: public tables only

    facts: Facts = BY_KINDS  # what is known of the columns of relations, by which an emitter may be faster
    emitter: Callable[..., Any] | None = None  # of row expressions, in place of the plain one (`rows.RowSql`)
    looked_up: Callable[..., str] | None = None  # whether {0} is among many constants; empty for a plain comparison
    united: Callable[..., Any] | None = None  # a union, in place of its tables one by one, or none (`relations`)
    operations: Mapping[str, str] = field(default_factory=dict)  # row operations that it spells in its own way
    refused: frozenset[str] = frozenset()  # row operations that it cannot do as the others do

    def number(self, value: float) -> str:
        """A double as a literal; NULL for what is not finite."""
        if not math.isfinite(value):
            return f"CAST(NULL AS {self.double})"
        text = repr(float(value))
        return self.digits.format(text if "e" in text else text + "e0")

    def literal(self, value: str) -> str:
        """A text as a literal, what has no UTF-8 in it replaced."""
        return self.quoted(value.encode("utf-8", "surrogatepass").decode("utf-8", "replace"))

    def constant(self, value: float | str | bool | date | None, kind: str) -> str:
        """A constant of a kind of the plan's."""
        if isinstance(value, date):
            return self.number(number_of(value))
        if value is None:
            types = {"text": self.text, "boolean": "BOOLEAN"}
            return f"CAST(NULL AS {types.get(kind, self.double)})"
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        return self.literal(value) if isinstance(value, str) else self.number(value)

    def as_double(self, value: str) -> str:
        """An integer as the nearest double."""
        return f"CAST({value} AS {self.double})"

    def as_text(self, value: str) -> str:
        """An integer, a text, or a boolean (`true`, `false`) as a text."""
        return f"CAST({value} AS {self.text})"

    def named(self, value: str, name: str) -> str:
        """A value as a column of a subquery; what is long is calculated once."""
        return f"{self.once.format(value) if len(value) > LONG else value} AS {name}"

    def among(self, value: str, literals: Sequence[str], kind: str) -> str:
        """Whether a value is one of several constants, NULL where it is missing."""
        sooner = "" if self.looked_up is None else self.looked_up(self, value, literals, kind)
        return sooner or f"{value} IN ({', '.join(literals)})"

    def canonical(self, cells: Sequence[str]) -> str:
        """One text for a row, from the text of its cells: for each its length in bytes, `:`, the cell; `-` for none.

        No two different rows have the same text, and no other row has a part in it.
        """
        sizes = [self.as_text(self.size.format(cell)) for cell in cells]
        parts = [
            f"CASE WHEN {cell} IS NULL THEN '-' ELSE {size} || ':' || {cell} END"
            for cell, size in zip(cells, sizes, strict=True)
        ]  # fmt: skip
        return "(" + " || ".join(parts) + ")" if parts else "''"


def subquery(query: str) -> str:
    """A query as a table of another one; every table has a name, which some databases insist on."""
    return f"({query}) AS s"


def clamped(d: Dialect, value: str, low: str, high: str, condition: str) -> str:
    """A number brought between two ends; NULL unless `condition` holds. What lies between them takes the short way."""
    outside = f"greatest({low}, least({high}, {value}))"
    return f"CASE WHEN {d.between.format(value, low, high)} THEN {value} WHEN {condition} THEN {outside} END"


def need(operation: str, dialect: Dialect) -> None:
    """Refuses an operation that the database cannot do as the others do."""
    if operation in dialect.refused:
        message = f"{dialect.name} cannot do `{operation}` as the other engines do"
        raise refuse("DataError", message, help="calculate it in the data before, or use another engine")
