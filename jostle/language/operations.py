"""The operations on the values of a row: what each takes and gives, and which of its operands are public constants.

What an operation does to rows stands in SQL (`engine.sql.functions`), and what it does to public values in
`language.row_functions`, with its bounds and its spelling. Operations are total on rows: what has no value is missing
there. All but those on missing values pass them on. Texts are sequences of code points: no engine's locale or normal
form has a say, and what grows a text is none beyond `LONGEST`, so that no row can fill the memory. Dates and times are
integers in rows; what an engine knows of the calendar is tested on every day of 1 to 9999.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial

from msgspec import Struct

from jostle.language import moments
from jostle.language.moments import zone_of

NUMBER, TEXT, BOOLEAN, DATE, TIME, ANY = "number", "text", "boolean", "date", "time", "any"
"""The kinds of values in a row; `ANY` is any of them."""


class Whole(Enum):
    """When a result is a whole number."""

    ALWAYS = "always"
    FROM_WHOLE = "where all operands are"
    NEVER = "not known to be"


class Operation(Struct, frozen=True, eq=False):
    """An operation on the values of a row.

    `kinds`: those of its operands; `gives`: the kind of what it gives. The last operands are public `constants`, by
    their names, which `check` may refuse before anything runs: it raises ValueError with what is wrong. Patterns and
    formats are checked where a program is compiled (`row_functions`).
    """

    name: str
    kinds: tuple[str, ...]
    gives: str = NUMBER
    whole: Whole = Whole.NEVER
    constants: tuple[str, ...] = ()
    check: Callable[..., object] | None = None

    @property
    def arity(self) -> int:
        return len(self.kinds)


LONGEST = 2**16
"""Code points of a text that was made by joining or replacing."""
FARTHEST = 10**6
"""The last place in a text, or part of one, that can be asked for."""

BLANKS = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
"""The white space of Unicode, which is cut from the ends of texts."""
DECIMAL = r"^[ \t]*[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?[ \t]*$"
EXACT = 2**53
"""Whole numbers up to it have all their digits."""
MOST_PART = 10**9
"""Below it numbers that are not whole have six decimals."""


def _check_part(separator: str, place: float) -> None:
    if not separator:
        raise ValueError("`part` cuts at a text that is not empty")
    _check_place("part", place)


def _check_substring(start: float, count: float) -> None:
    _check_place("substring", start)
    if not (0 <= count <= FARTHEST and float(count).is_integer()):
        raise ValueError(f"`substring` takes a whole number of characters, up to {FARTHEST:,}")


def _check_place(name: str, place: float) -> None:
    if not (1 <= place <= FARTHEST and float(place).is_integer()):
        raise ValueError(f"`{name}` counts whole places from 1, as SQL does, up to {FARTHEST:,}")


def _check_unit(unit: str, units: tuple[str, ...]) -> None:
    if unit not in units and not moments.days_in(unit):
        raise ValueError(f"`trunc` takes down to one of {', '.join(units)}")


def _several(names: str, kinds: tuple[str, ...], gives: str = NUMBER, whole: Whole = Whole.NEVER) -> list[Operation]:
    """Operations without constants that take and give the same kinds."""
    return [Operation(name, kinds, gives, whole) for name in names.split()]


_FROM_WHOLE, _ALWAYS = Whole.FROM_WHOLE, Whole.ALWAYS

OPERATIONS = {
    one.name: one
    for one in (
        *_several("+ - * % min max", (NUMBER, NUMBER), whole=_FROM_WHOLE),
        *_several("/ ^", (NUMBER, NUMBER)),
        *_several("neg abs", (NUMBER,), whole=_FROM_WHOLE),
        *_several("floor ceil round", (NUMBER,), whole=_ALWAYS),
        *_several("sqrt log exp", (NUMBER,)),
        *_several("clamp", (NUMBER,) * 3, whole=_FROM_WHOLE),
        *_several("missing", (ANY,), BOOLEAN),
        *_several("coalesce", (ANY,), ANY),
        *_several("lower upper trim", (TEXT,), TEXT),
        *_several("length", (TEXT,), whole=_ALWAYS),
        *_several("contains starts_with ends_with", (TEXT, TEXT), BOOLEAN),
        *_several("replace", (TEXT,) * 3, TEXT),
        Operation("substring", (TEXT, NUMBER), TEXT, constants=("start",), check=partial(_check_place, "substring")),
        Operation(
            "substring of count", (TEXT, NUMBER, NUMBER), TEXT, constants=("start", "count"), check=_check_substring
        ),
        *_several("position", (TEXT, TEXT), whole=_ALWAYS),
        Operation("part", (TEXT, TEXT, NUMBER), TEXT, constants=("separator", "place"), check=_check_part),
        Operation("matches", (TEXT, TEXT), BOOLEAN, constants=("pattern",)),
        *_several("number", (TEXT,)),
        *_several("text", (NUMBER,), TEXT),
        *_several("concat", (TEXT, TEXT), TEXT),
        *_several("pair", (ANY, ANY), TEXT),
        *_several("year quarter month week day weekday day_of_year week_year", (DATE,), whole=_ALWAYS),
        *_several("hour minute second", (TIME,), whole=_ALWAYS),
        *_several("date", (TIME,), DATE, _ALWAYS),
        *_several("time", (DATE,), TIME, _ALWAYS),
        Operation("date of text", (TEXT,), DATE, _ALWAYS),
        Operation("time of text", (TEXT,), TIME, _ALWAYS),
        *(Operation(f"{kind} by format", (TEXT, TEXT), TEXT, constants=("format",)) for kind in (DATE, TIME)),
        Operation("in_zone", (TIME, TEXT), TIME, _ALWAYS, ("zone",), zone_of),
        Operation("trunc", (DATE, TEXT), DATE, _ALWAYS, ("unit",), lambda unit: _check_unit(unit, moments.DAYS)),
        Operation(
            "trunc time", (TIME, TEXT), TIME, _ALWAYS, ("unit",),
            lambda unit: _check_unit(unit, (*moments.DAYS, *moments.SPANS)),
        ),
        Operation("shift", (DATE, NUMBER), DATE, _ALWAYS),
        Operation("shift time", (TIME, NUMBER), TIME, _ALWAYS),
        *_several("apart days_between", (DATE, DATE), whole=_ALWAYS),
        Operation("time apart", (TIME, TIME)),
        *_several("seconds_between", (TIME, TIME)),
        *(Operation(f"clamp {kind}", (kind,) * 3, kind, _ALWAYS) for kind in (DATE, TIME)),
        *(Operation(f"{name} {kind}", (kind,) * 2, kind, _ALWAYS) for name in ("min", "max") for kind in (DATE, TIME)),
    )
}  # fmt: skip

COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
LOGIC = frozenset({"and", "or", "not"})
