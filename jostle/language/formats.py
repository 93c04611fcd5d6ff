"""How dates and times are written otherwise than by ISO: `%d/%m/%Y`, `%I:%M %p`, a small part of what strptime reads.

`%Y %m %d %H %I %M %S %p %y %b %B %f %%`, blanks for any number of them, all else for itself; numbers may lack their
first zero. `%y` is a year from 1969 to 2068, `%b` and `%B` are English names. A time without a day is one of
1 January 1970. A text is taken to the way in which ISO writes it, so that nothing else knows of formats.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
          "november", "december")  # fmt: skip
_NUMBERS = {  # of two digits first: whether an engine takes the first that fits or the longest, it takes the same
    "Y": "[0-9]{4}", "y": "[0-9]{2}", "m": "1[0-2]|0?[1-9]", "d": "[12][0-9]|3[01]|0?[1-9]",
    "H": "2[0-3]|[01]?[0-9]", "I": "1[0-2]|0?[1-9]", "M": "[0-5]?[0-9]", "S": "[0-5]?[0-9]", "f": "[0-9]{1,6}",
    "p": "[AaPp][Mm]",
}  # fmt: skip
PLACES = {"Y": "year", "y": "year", "m": "month", "b": "month", "B": "month", "d": "day", "H": "hour", "I": "hour",
           "M": "minute", "S": "second", "f": "fraction", "p": "half"}  # fmt: skip
_BLANKS = "[ \t\\x{A0}\\x{202F}]"
INITIALS = "".join(month[:3] for month in MONTHS)


class Format(Struct, frozen=True):
    """`pattern`: in the syntax of RE2, with a group for each of `fields`, the letters of the format in their order."""

    pattern: str
    fields: tuple[str, ...]


@lru_cache(256)
def parse(text: str, kind: str) -> Format:
    """What a format says; `ValueError` where it is none, or leaves open which date or time (`kind`) is meant."""
    parts, fields = [], []
    for directive, blank, plain in re.findall(r"(%.?)|([ \t]+)|(.)", text, re.DOTALL):
        letter = directive[1:]
        if blank:
            parts.append(f"{_BLANKS}+")
        elif plain or letter == "%":
            parts.append(f"\\x{{{ord(plain or letter):X}}}")
        elif letter in ("b", "B"):
            names = (month[:3] if letter == "b" else month for month in MONTHS)
            parts.append(f"({'|'.join(''.join(f'[{c.upper()}{c}]' for c in name) for name in names)})")
            fields.append(letter)
        elif letter in _NUMBERS:
            parts.append(f"({_NUMBERS[letter]})")
            fields.append(letter)
        else:
            raise ValueError(f"`{directive}` is not known in a format: there are {' '.join(f'%{c}' for c in PLACES)}")
    _check({PLACES[field] for field in fields}, len(fields), fields, kind)
    return Format(f"^{_BLANKS}*{''.join(parts)}{_BLANKS}*$", tuple(fields))


def _check(places: set[str], many: int, fields: list[str], kind: str) -> None:
    if len(places) < many:
        raise ValueError("a format names each part once: the year, month, day, hour, minute, second")
    day = {"year", "month", "day"} & places
    if len(day) < (3 if kind == "date" or day else 0):
        raise ValueError("a format of days has the year, the month and the day, as `%d/%m/%Y`")
    if kind == "time" and not day and "hour" not in places:
        raise ValueError("a format of times has an hour, as `%H:%M`")
    if ("I" in fields) != ("half" in places):
        raise ValueError("hours of half a day come with AM or PM, `%I:%M %p`; `%H` are those of a day")
    for finer, coarser in (("minute", "hour"), ("second", "minute"), ("fraction", "second")):
        if finer in places and coarser not in places:
            raise ValueError(f"a format with the {finer} has the {coarser} too")


def as_iso(text: str, written: str, kind: str) -> str | None:
    """A text as ISO writes it; None where it is not written so. That there is such a day is not looked at."""
    known = parse(written, kind)
    pattern = re.sub(r"\\x\{([0-9A-F]+)\}", lambda code: re.escape(chr(int(code[1], 16))), known.pattern)
    found = re.fullmatch(pattern[1:-1], text)
    if found is None:
        return None
    of = {PLACES[field]: _value(field, value) for field, value in zip(known.fields, found.groups(), strict=True)}
    hour = int(of.get("hour", "0"))
    if "half" in of:
        hour = hour % 12 + (12 if of["half"] == "PM" else 0)
    day = f"{of.get('year', '1970')}-{of.get('month', '01')}-{of.get('day', '01')}"
    clock = f"{hour:02d}:{of.get('minute', '00')}:{of.get('second', '00')}"
    return f"{day} {clock}" + (f".{of['fraction']}" if "fraction" in of else "")


def _value(field: str, text: str) -> str:
    if field == "y":
        return ("19" if text >= "69" else "20") + text
    if field in ("b", "B"):
        return f"{INITIALS.index(text[:3].lower()) // 3 + 1:02d}"
    return text.upper() if field == "p" else text if field in ("Y", "f") else text.zfill(2)
