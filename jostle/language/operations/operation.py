"""What a row of the table of operations says, and the operations on numbers and on missing values.

Everything that any pass needs stands in the row. Operations are total on rows: what has no value is missing there, and
a refusal in a program. All but those on missing values pass them on.

The operations on texts, which are sequences of code points: no engine's locale or normal form has a say.

What grows a text is none beyond `LONGEST` code points, so that no row can fill the memory by being repeated.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any

from msgspec import Struct

from jostle.language import intervals, patterns
from jostle.language.intervals import Interval

NUMBER, TEXT, BOOLEAN, DATE, TIME, ANY = "number", "text", "boolean", "date", "time", "any"
"""The kinds of values in a row; `ANY` is any of them."""


class Whole(Enum):
    """When a result is a whole number."""

    ALWAYS = "always"
    FROM_WHOLE = "where all operands are"
    NEVER = "not known to be"


class Operation(Struct, frozen=True, eq=False):
    """An operation on the values of a row.

    `takes`: the kinds of its operands, numbers where nothing is said; `gives`: the kind of what it gives. The last
    `constants` operands are public constants, which `check` may refuse before anything runs. What it is: for numbers
    `columns`, on columns of doubles, given NumPy first, and in a program `number`, which may raise ValueError or
    OverflowError; for other kinds `value`, on values that are not missing, where None is missing. `bounds`: of numbers
    that it gives for operands within bounds; None where there are none. `rises`: it grows with each operand. `about` is
    for people, and only functions have it: what a program calls by name.
    """

    name: str
    arity: int
    bounds: Callable[..., Interval | None]
    columns: Callable[..., Any] | None = None
    whole: Whole = Whole.NEVER
    number: Callable[..., float] | None = None
    rises: bool = False
    about: str = ""
    signature: str = "value"
    each: bool = False  # a program may apply it to each number of a list
    many: bool = False  # a program may apply it to several numbers, or to a list
    takes: tuple[str, ...] = ()
    gives: str = NUMBER
    constants: int = 0
    optional: int = 0  # further operands that a program may give, which make it another operation
    check: Callable[..., None] | None = None  # raises ValueError with what is wrong
    value: Callable[..., Any] | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its operands."""
        return self.takes or (NUMBER,) * self.arity


def unbounded(*_: object) -> None:
    """No bounds, whatever the operands are."""


NUMBERS = (
    Operation("+", 2, intervals.add, lambda np, x, y: np.add(x, y), whole=Whole.FROM_WHOLE),
    Operation("-", 2, intervals.subtract, lambda np, x, y: np.subtract(x, y), whole=Whole.FROM_WHOLE),
    Operation("*", 2, intervals.multiply, lambda np, x, y: np.multiply(x, y), whole=Whole.FROM_WHOLE),
    Operation("/", 2, intervals.divide, lambda np, x, y: np.divide(x, y)),
    Operation("%", 2, intervals.remainder, lambda np, x, y: _remainder(np, x, y), whole=Whole.FROM_WHOLE),
    Operation("^", 2, intervals.power, lambda np, x, y: np.float_power(x, y)),
    Operation("neg", 1, intervals.negative, lambda np, x: np.negative(x), whole=Whole.FROM_WHOLE),
    Operation("abs", 1, intervals.absolute, lambda np, x: np.abs(x), whole=Whole.FROM_WHOLE, number=abs,
              about="The absolute value, also of each of a list.", each=True),
    Operation("floor", 1, intervals.rounded(math.floor), lambda np, x: np.floor(x), whole=Whole.ALWAYS,
              number=math.floor, rises=True, about="The largest whole number below, also of each of a list.",
              each=True),
    Operation("ceil", 1, intervals.rounded(math.ceil), lambda np, x: np.ceil(x), whole=Whole.ALWAYS,
              number=math.ceil, rises=True, about="The smallest whole number above, also of each of a list.",
              each=True),
    Operation("sqrt", 1, intervals.root, lambda np, x: np.sqrt(x), number=math.sqrt, rises=True,
              about="The square root, also of each of a list.", each=True),
    Operation("log", 1, intervals.logarithm, lambda np, x: np.log(x), number=math.log, rises=True,
              about="The natural logarithm, also of each of a list.", each=True),
    Operation("exp", 1, intervals.exponential, lambda np, x: np.exp(x), number=math.exp, rises=True,
              about="The exponential, also of each of a list.", each=True),
    Operation("round", 1, intervals.rounded(round), lambda np, x: np.rint(x),
              whole=Whole.ALWAYS, number=lambda x, digits=0.0: float(round(x, int(digits))), rises=True,
              about="Rounded to so many digits.", signature="value, digits = 0"),
    Operation("clamp", 3, intervals.clamped, lambda np, x, low, high: np.maximum(low, np.minimum(high, x)),
              Whole.FROM_WHOLE, number=lambda x, low, high: max(low, min(high, x)), rises=True,
              about="The nearest number between `low` and `high`.", signature="value, low, high"),
    Operation("min", 2, intervals.smaller, lambda np, x, y: np.minimum(x, y), Whole.FROM_WHOLE,
              number=lambda *numbers: min(numbers), rises=True,
              about="The smallest of a list, or of several numbers.", signature="*values", many=True),
    Operation("max", 2, intervals.larger, lambda np, x, y: np.maximum(x, y), Whole.FROM_WHOLE,
              number=lambda *numbers: max(numbers), rises=True,
              about="The largest of a list, or of several numbers.", signature="*values", many=True),
)  # fmt: skip


def _remainder(np: Any, x: Any, y: Any) -> object:
    """With the sign of the divisor."""
    rest = np.fmod(x, y)
    return np.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)


def first(*values: object) -> object:
    """The first of several values that is not missing."""
    return next((value for value in values if value is not None), None)


ABSENCE = (
    Operation("missing", 1, unbounded, takes=(ANY,), gives=BOOLEAN,
              value=lambda value: value is None),
    Operation("coalesce", 1, unbounded, takes=(ANY,), gives=ANY, value=first, signature="value, *others",
              about="The first of several values that is not none."),
)  # fmt: skip


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


def lower(text: str) -> str:
    """Each letter by its one small letter, so that the length stays: Unicode's simple mapping."""
    return "".join(map(_small, text))


def upper(text: str) -> str:
    """Each letter by its one capital letter, so that the length stays."""
    return "".join(map(_capital, text))


def _small(letter: str) -> str:
    small = letter.lower()
    return small if len(small) == 1 else "i"  # the dotted I alone has two


def _capital(letter: str) -> str:
    capital = letter.upper()
    if len(capital) == 1:
        return capital
    title = letter.title()  # Greek letters with a subscript have one sign as a title's, and several as capitals
    return "\u1e9e" if letter == "\xdf" else title if len(title) == 1 else letter


def replace(text: str, old: str, new: str) -> str | None:
    """All places of `old`, from the left, none of them twice; of an empty `old` there is none."""
    if not old:
        return text
    many = text.count(old)
    return text.replace(old, new) if len(text) + many * (len(new) - len(old)) <= max(LONGEST, len(text)) else None


def part(text: str, separator: str, place: float) -> str | None:
    parts = text.split(separator)
    return parts[int(place) - 1] if place <= len(parts) else None


def number(text: str) -> float | None:
    """A finite decimal with blanks around it at most."""
    if not re.fullmatch(DECIMAL[1:-1], text):
        return None
    value = float(text)
    return value if abs(value) != float("inf") else None


def spelled(value: float) -> str | None:
    """A number as a text: all digits of a whole one up to 2^53, else six decimals at most, below 10^9."""
    if value == int(value):
        return str(int(value)) if abs(value) <= EXACT else None
    if abs(value) >= MOST_PART:
        return None
    many = round(abs(value) * 10**6)
    digits = f"{many // 10**6}.{many % 10**6:06d}".rstrip("0").rstrip(".")
    return ("-" if value < 0 and many else "") + digits


def joined(left: str, right: str) -> str | None:
    return left + right if len(left) + len(right) <= LONGEST else None


def pair(first: object, second: object) -> str:
    """A text for two values, which no other two have: it says first how long the first one is."""
    start = str(first)
    return f"{len(start)}:{start}{second}"


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


def _check_pattern(pattern: str) -> None:
    try:
        patterns.parse(pattern)
    except ValueError as error:
        raise ValueError(f"this is no pattern: {error}") from None


TEXTS = (
    Operation("lower", 1, unbounded, takes=(TEXT,), gives=TEXT, value=lower,
              about="The text with each letter as its small letter."),
    Operation("upper", 1, unbounded, takes=(TEXT,), gives=TEXT, value=upper,
              about="The text with each letter as its capital letter."),
    Operation("trim", 1, unbounded, takes=(TEXT,), gives=TEXT, value=lambda text: text.strip(BLANKS),
              about="The text without blanks at its ends."),
    Operation("length", 1, unbounded, takes=(TEXT,), whole=Whole.ALWAYS, value=lambda text: float(len(text)),
              about="How many characters a text has (Unicode's code points)."),
    Operation("contains", 2, unbounded, takes=(TEXT, TEXT), gives=BOOLEAN, value=lambda text, inside: inside in text,
              signature="value, inside", about="Whether a text stands in another."),
    Operation("starts_with", 2, unbounded, takes=(TEXT, TEXT), gives=BOOLEAN,
              value=lambda text, start: text.startswith(start), signature="value, start",
              about="Whether a text begins with another."),
    Operation("ends_with", 2, unbounded, takes=(TEXT, TEXT), gives=BOOLEAN,
              value=lambda text, end: text.endswith(end), signature="value, end",
              about="Whether a text ends with another."),
    Operation("replace", 3, unbounded, takes=(TEXT, TEXT, TEXT), gives=TEXT, value=replace,
              signature="value, old, new", about="The text with another one in each place where `old` stands."),
    Operation("substring", 2, unbounded, takes=(TEXT, NUMBER), gives=TEXT,
              constants=1, optional=1, check=partial(_check_place, "substring"),
              value=lambda text, start: text[int(start) - 1 :], signature="value, start, count = none",
              about="A text from a place on, the first one is 1; only so many characters with `count`."),
    Operation("substring of count", 3, unbounded, takes=(TEXT, NUMBER, NUMBER), gives=TEXT, constants=2,
              check=_check_substring,
              value=lambda text, start, count: text[int(start) - 1 : int(start) - 1 + int(count)],
              signature="value, start, count"),
    Operation("position", 2, unbounded, takes=(TEXT, TEXT), whole=Whole.ALWAYS,
              value=lambda text, inside: text.find(inside) + 1.0, signature="value, inside",
              about="The place, from 1, at which a text first stands in another; 0 where it does not."),
    Operation("part", 3, unbounded, takes=(TEXT, TEXT, NUMBER), gives=TEXT, constants=2, check=_check_part, value=part,
              signature="value, separator, place",
              about="A part of a text that a separator divides; the first one's place is 1."),
    Operation("matches", 2, unbounded, takes=(TEXT, TEXT), gives=BOOLEAN, constants=1,
              check=_check_pattern, value=patterns.matches, signature="value, pattern",
              about="Whether a pattern matches somewhere in a text: `^` and `$` hold it at the ends."),
    Operation("number", 1, unbounded, takes=(TEXT,), value=number, about="The number that a text spells."),
    Operation("text", 1, unbounded, takes=(NUMBER,), gives=TEXT, value=spelled,
              about="The number as a text, with six decimals at most."),
    Operation("concat", 2, unbounded, takes=(TEXT, TEXT), gives=TEXT, value=joined),
    Operation("pair", 2, unbounded, takes=(ANY, ANY), gives=TEXT, value=pair),
)  # fmt: skip
