"""The operations on texts, which are sequences of code points: no engine's locale or normal form has a say.

What grows a text is none beyond `LONGEST` code points, so that no row can fill the memory by being repeated.
"""

from __future__ import annotations

import re
from functools import partial

from jostle.language import patterns
from jostle.language.operations.operation import ANY, BOOLEAN, NUMBER, TEXT, Operation, Whole, unbounded

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
