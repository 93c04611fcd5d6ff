r"""Texts of a program that say how values are read: patterns, formats and units of time. An engine is handed what
`READERS` make of the first two.

*Patterns* are a small regular language whose meaning no engine decides, matched in linear time:

`a|b`, `(…)`, `* + ? {m} {m,n} {m,}`, `.` (any character but a line feed), classes `[a-z_]` and `[^…]`, `^` and `$`
(the start and the end of the text, nowhere else); the escapes `\d \w \s \D \W \S \n \t \r`, and a backslash before what
is no letter or digit. Letters, digits and blanks of classes are those of ASCII. There are no references back, no
looking around and no modes; what is not in this list is refused.

`parse` gives the pattern as a tree, `spelling` the same in the syntax of RE2, which spells out every character as a
number, and `matches` is what a pattern means: whether it matches somewhere in a text.

*Formats* are a small part of what strptime reads: `%Y %m %d %H %I %M %S %p %y %b %B %f %%`, blanks for any number of
them, all else for itself. Numbers may lack their first zero, `%y` is a year from 1969 to 2068; `%b` and `%B` are
English names, and a time without a day is one of 1 January 1970. A text is rewritten as ISO writes it, so that nothing
else knows of formats.

Privacy does not rest on this file: whatever an engine is handed is a literal, and tells of a row by that row alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from jostle.language import moments
from jostle.language.moments import INITIALS, PLACES

MOST = 1000
"""Steps of a pattern, with its repetitions written out."""
_REPEATS = 100
_LAST = 0x10FFFF
_CLASSES = {
    "d": ((0x30, 0x39),),
    "w": ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)),
    "s": ((0x09, 0x0D), (0x20, 0x20)),
}
_ESCAPES = {"n": 0x0A, "t": 0x09, "r": 0x0D}

Ranges = tuple[tuple[int, int], ...]


class Characters(Struct, frozen=True):
    """One character of these ranges, or with `outside` one that is in none of them."""

    ranges: Ranges
    outside: bool = False

    def holds(self, code: int) -> bool:
        return any(first <= code <= last for first, last in self.ranges) != self.outside


class Edge(Struct, frozen=True):
    """The start or the end of the text."""

    start: bool


class Sequence(Struct, frozen=True):
    parts: tuple[Pattern, ...]


class Either(Struct, frozen=True):
    ways: tuple[Pattern, ...]


class Repeat(Struct, frozen=True):
    """From `least` to `most` times; without an end where `most` is None."""

    part: Pattern
    least: int
    most: int | None


Pattern = Characters | Edge | Sequence | Either | Repeat


@lru_cache(256)
def parse(text: str) -> Pattern:
    """The tree of a pattern; `ValueError` with what is wrong where it is none."""
    reader = _Reader(text)
    pattern = reader.either(0)
    if reader.at < len(text):
        raise ValueError("a `)` closes nothing")
    if _steps(pattern) > MOST:
        raise ValueError(f"it is too long: more than {MOST} steps with its repetitions written out")
    return pattern


class _Reader(Struct):
    text: str
    at: int = 0

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        character = self.peek()
        if not character:
            raise ValueError("it ends too early")
        self.at += 1
        return character

    def either(self, depth: int) -> Pattern:
        if depth > 50:
            raise ValueError("its brackets are nested too deeply")
        ways = [self.sequence(depth)]
        while self.peek() == "|":
            self.at += 1
            ways.append(self.sequence(depth))
        return _either(tuple(ways))

    def sequence(self, depth: int) -> Pattern:
        parts: list[Pattern] = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self.repeated(depth))
        if not parts:
            raise ValueError("a part of it is empty: write `(a)?` for what may be missing")
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def repeated(self, depth: int) -> Pattern:
        part = self.single(depth)
        sign = self.peek()
        if sign not in ("*", "+", "?", "{"):
            return part
        if isinstance(part, Edge):
            raise ValueError("`^` and `$` are not repeated")
        least, most = self.counts()
        if self.peek() in ("*", "+", "?", "{"):
            raise ValueError("a repetition is repeated: put brackets around it (there are no lazy repetitions)")
        return Repeat(part, least, most)

    def counts(self) -> tuple[int, int | None]:
        sign = self.take()
        if sign != "{":
            return (1 if sign == "+" else 0), (1 if sign == "?" else None)
        end = self.text.find("}", self.at)
        first, comma, last = self.text[self.at : max(end, self.at)].partition(",")
        if end < 0 or not _whole(first) or (last and not _whole(last)):
            raise ValueError("`{` repeats, `{3}`, `{1,3}` or `{2,}`: write `\\{` for the character")
        self.at = end + 1
        least = int(first)
        most = int(last) if last else None if comma else least
        if max(least, most or 0) > _REPEATS or (most is not None and most < max(least, 1)):
            raise ValueError(f"it repeats 1 to {_REPEATS} times, the smaller number first")
        return least, most

    def single(self, depth: int) -> Pattern:
        character = self.take()
        if character == "(":
            if self.peek() == "?":
                raise ValueError("`(?` starts a mode or looks around, which patterns cannot")
            inner = self.either(depth + 1)
            if self.peek() != ")":
                raise ValueError("a `(` is not closed")
            self.at += 1
            return inner
        if character in "*+?{":
            raise ValueError(f"`{character}` repeats nothing: write `\\{character}` for the character")
        if character == "[":
            return self.bracket()
        if character == ".":
            return Characters(((0x0A, 0x0A),), outside=True)
        if character in "^$":
            return Edge(character == "^")
        if character == "\\":
            return self.escape()
        return Characters((_point(character),))

    def escape(self) -> Characters:
        character = self.take()
        if character.lower() in _CLASSES:
            return Characters(_CLASSES[character.lower()], character.isupper())
        if character in _ESCAPES:
            return Characters(((_ESCAPES[character],) * 2,))
        if character.isalnum():
            raise ValueError(f"`\\{character}` is not known: there are `\\d \\w \\s \\D \\W \\S \\n \\t \\r`")
        return Characters((_point(character),))

    def bracket(self) -> Characters:
        outside = self.peek() == "^"
        self.at += outside
        ranges: list[tuple[int, int]] = []
        while self.peek() != "]":
            first = self.member()
            if self.peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                last = self.member()
                several = len(first) > 1 or len(last) > 1 or last[0][0] != last[0][1]
                if several or first[0][0] != first[0][1] or first[0][0] > last[0][0]:
                    raise ValueError("a range of characters goes from a smaller to a larger one: `[a-z]`")
                first = ((first[0][0], last[0][1]),)
            ranges.extend(first)
        self.at += 1
        if not ranges:
            raise ValueError("`[]` holds no character")
        return Characters(tuple(sorted(set(ranges))), outside)

    def member(self) -> Ranges:
        character = self.take()
        if character == "[":
            raise ValueError("a `[` stands in brackets: write `\\[` for the character")
        if character != "\\":
            return (_point(character),)
        escaped = self.escape()
        if escaped.outside:
            raise ValueError("`\\D \\W \\S` cannot stand in brackets: write `[^…]`")
        return escaped.ranges


def _either(ways: tuple[Pattern, ...]) -> Pattern:
    """Of several characters one class, so that a repetition of these is one of single characters."""
    classes = [way for way in ways if isinstance(way, Characters)]
    if len(ways) == 1 or len(classes) < len(ways):
        return ways[0] if len(ways) == 1 else Either(ways)
    if not any(way.outside for way in classes):
        return Characters(tuple(sorted({one for way in classes for one in way.ranges})))
    cuts = sorted({0, _LAST + 1, *(cut for way in classes for a, b in way.ranges for cut in (a, b + 1))})
    gaps = [(a, b - 1) for a, b in pairwise(cuts) if not any(way.holds(a) for way in classes)]
    return Characters(tuple(gaps), outside=True)


def _whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6


def _point(character: str) -> tuple[int, int]:
    if 0xD800 <= ord(character) <= 0xDFFF:
        raise ValueError("it has a character that no text can have")
    return ord(character), ord(character)


def _steps(pattern: Pattern) -> int:
    match pattern:
        case Sequence(parts=parts):
            return sum(map(_steps, parts))
        case Either(ways=ways):
            return len(ways) + sum(map(_steps, ways))
        case Repeat(part=part, least=least, most=most):
            return (_steps(part) + 1) * max(least + 1 if most is None else most, 1)
    return 1


# RE2 ---------------------------------------------------------------------------------------------------


def spelled(pattern: str) -> str:
    """A pattern in the syntax of RE2."""
    return spelling(parse(pattern))


def spelling(pattern: Pattern) -> str:
    """The pattern in the syntax of RE2, in letters, digits and signs of ASCII that need no quotes."""
    match pattern:
        case Characters(ranges=(), outside=True):
            return "(?:[^\\x{A}]|\\x{A})"
        case Characters(ranges=ranges, outside=outside):
            inner = "".join(f"\\x{{{a:X}}}" if a == b else f"\\x{{{a:X}}}-\\x{{{b:X}}}" for a, b in ranges)
            return f"[{'^' if outside else ''}{inner}]"
        case Edge(start=start):
            return "\\A" if start else "\\z"
        case Sequence(parts=parts):
            return "".join(map(spelling, parts))
        case Either(ways=ways):
            return "(?:" + "|".join(map(spelling, ways)) + ")"
        case Repeat(part=part, least=least, most=most):
            signs = {(0, None): "*", (1, None): "+", (0, 1): "?"}
            many = f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
            return f"(?:{spelling(part)}){signs.get((least, most), many)}"


# Meaning -----------------------------------------------------------------------------------------------

_Step = tuple[str, Characters | None, tuple[int, ...]]  # what it does, what it reads, where it goes on


def matches(text: str, pattern: str) -> bool:
    """Whether a pattern matches somewhere in a text: all ways at once, a step a character."""
    program = program_of(pattern)
    here: set[int] = set()
    for at in range(len(text) + 1):
        edges = (at == 0, at == len(text))
        here = reached_of(program, here | {0}, edges)
        if len(program) in here:
            return True
        if at < len(text):
            code = ord(text[at])
            read = [program[i] for i in here if i < len(program)]
            here = {then[0] for _, characters, then in read if characters is not None and characters.holds(code)}
    return False


def reached_of(program: tuple[_Step, ...], starts: set[int], edges: tuple[bool, bool]) -> set[int]:
    """The steps that can be reached without reading a character."""
    reached: set[int] = set()
    waiting = list(starts)
    while waiting:
        at = waiting.pop()
        if at in reached:
            continue
        reached.add(at)
        if at < len(program):
            kind, characters, then = program[at]
            if characters is None and (kind == "go" or edges[kind == "end"]):
                waiting.extend(then)
    return reached


@lru_cache(256)
def program_of(text: str) -> tuple[_Step, ...]:
    program: list[_Step] = []
    _write(parse(text), program)
    return tuple(program)


def _write(pattern: Pattern, program: list[_Step]) -> None:
    match pattern:
        case Characters():
            program.append(("read", pattern, (len(program) + 1,)))
        case Edge(start=start):
            program.append(("start" if start else "end", None, (len(program) + 1,)))
        case Sequence(parts=parts):
            for part in parts:
                _write(part, program)
        case Either(ways=ways):
            jumps = []
            for i, way in enumerate(ways):
                fork = len(program)
                program.append(("go", None, ()))
                _write(way, program)
                jumps.append(len(program))
                program.append(("go", None, ()))
                later = (len(program),) if i < len(ways) - 1 else ()
                program[fork] = ("go", None, (fork + 1, *later))
            for jump in jumps:
                program[jump] = ("go", None, (len(program),))
        case Repeat(part=part, least=least, most=most):
            for _ in range(least):
                _write(part, program)
            forks = []
            for _ in range(1 if most is None else most - least):
                forks.append(len(program))
                program.append(("go", None, ()))
                _write(part, program)
            if most is None:
                program.append(("go", None, (forks[0],)))
            for fork in forks:
                program[fork] = ("go", None, (fork + 1, len(program)))


# Formats -----------------------------------------------------------------------------------------------

MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
          "november", "december")  # fmt: skip
_NUMBERS = {  # of two digits first: whether an engine takes the first that fits or the longest, it takes the same
    "Y": "[0-9]{4}", "y": "[0-9]{2}", "m": "1[0-2]|0?[1-9]", "d": "[12][0-9]|3[01]|0?[1-9]",
    "H": "2[0-3]|[01]?[0-9]", "I": "1[0-2]|0?[1-9]", "M": "[0-5]?[0-9]", "S": "[0-5]?[0-9]", "f": "[0-9]{1,6}",
    "p": "[AaPp][Mm]",
}  # fmt: skip
_BLANKS = "[ \t\\x{A0}\\x{202F}]"


class Format(NamedTuple):
    """`pattern`: in the syntax of RE2, with a group for each of `fields`, the letters of the format in their order."""

    pattern: str
    fields: tuple[str, ...]


@lru_cache(256)
def parse_format(text: str, kind: str) -> Format:
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
            there = " ".join(f"%{c}" for c in PLACES)
            raise ValueError(f"`{directive}` is not known in a format: there are {there}")
    _check_format({PLACES[field] for field in fields}, len(fields), fields, kind)
    return Format(f"^{_BLANKS}*{''.join(parts)}{_BLANKS}*$", tuple(fields))


def _check_format(places: set[str], many: int, fields: list[str], kind: str) -> None:
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


def as_iso(text: str, form: str, kind: str) -> str | None:
    """A text as ISO writes it; None where it is not written so. That there is such a day is not looked at."""
    layout = parse_format(form, kind)
    pattern = re.sub(r"\\x\{([0-9A-F]+)\}", lambda code: re.escape(chr(int(code[1], 16))), layout.pattern)
    match = re.fullmatch(pattern[1:-1], text)
    if match is None:
        return None
    of = {PLACES[field]: _value(field, value) for field, value in zip(layout.fields, match.groups(), strict=True)}
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


def read_moment(text: str, kind: str) -> date | None:
    """The date or time that a text spells: `2024-03-01`, with `T12:30:00.5` or ` 12:30` after it, and a `Z`, or an
    offset such as `+02:00`, `+0200` or `+02`, by which it is taken back to UTC."""
    if not re.fullmatch(moments.TEXT[1:-1], text):
        return None
    bare, ahead = text.strip(" \t"), 0
    if offset := re.search(f"{moments.AHEAD}$", bare):
        many = int(offset[2][1:3]) * 60 + int(offset[2][3:].strip(":") or 0)
        ahead = many * (60_000_000 if offset[2][0] == "+" else -60_000_000)
        bare = bare[: offset.start(2)]
    day, _, rest = bare.rstrip("Z").replace("T", " ").partition(" ")
    try:
        read_day = date.fromisoformat(day)
    except ValueError:
        return None
    hours, minutes, seconds, *_ = [*(rest or "0:0").split(":"), "0"]
    whole, _, fraction = seconds.partition(".")
    clock = (int(hours) * 60 + int(minutes)) * 60 + int(whole)
    micros = moments.number_of(read_day) * moments.DAY + clock * 1_000_000 + int((fraction + "000000")[:6]) - ahead
    if not moments.FIRST_TIME <= micros < moments.LAST_TIME + 1_000_000:
        return None
    return moments.moment_of(kind, micros // moments.DAY if kind == "date" else moments.rounded_time(micros))


READERS: dict[str, Callable[..., str | Format]] = {"pattern": spelled, "format": parse_format}
"""What a dialect is handed."""


# Units -------------------------------------------------------------------------------------------------


def truncated(kind: str, number: int, unit: str) -> int:
    """The first day or microsecond of the year, quarter, month, week (from Monday), `9 days`, … a moment lies in."""
    if unit in moments.SPANS:
        return number // moments.SPANS[unit] * moments.SPANS[unit]
    if kind == "time":
        return truncated("date", number // moments.DAY, unit) * moments.DAY
    if days := moments.days_in(unit):
        return number - (number - moments.FIRST_DAY) % days  # the year 1 began with a Monday
    day = moments.moment_of("date", number)
    months = {"year": 1, "quarter": day.month - (day.month - 1) % 3, "month": day.month}
    return number if unit == "day" else moments.number_of(day.replace(month=months[unit], day=1))


def starts(kind: str, low: int, high: int, unit: str) -> list[int]:
    """The first moments of all units that overlap with low to high, in order."""
    at, places = truncated(kind, low, unit), []
    step = moments.SPANS.get(unit) or (1 if kind == "date" else moments.DAY)
    reach = step * ({"year": 366, "quarter": 92, "month": 31}.get(unit) or moments.days_in(unit) or 1)
    last = moments.LAST_DAY if kind == "date" else moments.LAST_TIME
    while at <= high:
        places.append(at)
        at = truncated(kind, at + reach, unit) if at + reach <= last else high + 1  # of the last one there is no next
    return places
