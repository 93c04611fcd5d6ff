"""What slips and ways out are made of: tokens, calls with other arguments, and what of a line is a person's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise

from msgspec import Struct

from jostle.diagnostics import Diagnostic
from jostle.language.builtins import BUILTINS
from jostle.language.facts import MISSING_WORDS, Effect
from jostle.records import replace
from jostle.source import Span
from jostle.syntax.parser import lexicon

_TOKEN = re.compile(
    r"#[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|\d{4}-\d\d-\d\d|\d+(?:\.\d+)?(?:e[+-]?\d+)?%?|[A-Za-z_]\w*"
    r"|\{\{|\}\}|\.\.+|[=!<>]=|\S"
)
_NO_CELL = re.compile(rf"(?i)\b(\w+) *(==|!=) *([\"'])(?:{'|'.join(map(re.escape, ('', *MISSING_WORDS)))})\3")


class Slip(Struct, frozen=True):
    """What is changed: from `start` to `end` of the text stands `new`. `cost` is small for what happens often."""

    cost: float
    start: int
    end: int
    new: str


class Token(Struct, frozen=True):
    text: str
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """The words, numbers, texts and signs of a text, comments left out."""
    every: list[Token] = []
    braces: list[str] = []
    for match in _TOKEN.finditer(text):
        if match[0].startswith("#"):
            continue
        if match[0] == "}}" and braces[-1:] == ["{"]:
            every += [Token("}", at, at + 1) for at in (match.start(), match.start() + 1)]
            del braces[-2:]
            continue
        every.append(Token(match[0], match.start(), match.end()))
        if match[0] in ("{", "{{"):
            braces.append(match[0])
        elif match[0] in ("}", "}}"):
            del braces[-1:]
    return every


CALL = re.compile(r"\b\w+\((?=((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\))")
USAGE = r"(?:write )?`?\w+\([A-Za-z_0-9, =*…]*\)`?$|as in `\w+\([\w., =*…]*\)`$"  # of a help that is a usage
GROUP = re.compile(r"[(\[{](?=((?:[^()\[\]{}]|[(\[{](?:[^()\[\]{}]|[(\[{][^()\[\]{}]*[)\]}])*[)\]}])*)[)\]}])")
PART = re.compile(r"(?:[^,()\[\]{}\"]|\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}|\"[^\"]*\")+")


def measured(call: re.Match[str]) -> Iterator[Slip]:
    """A call whose last argument is the amount that it spends, or a function of what stands before it."""
    row, parts, start = BUILTINS.get(call[0].rstrip("(")), list(PART.finditer(call[1])), call.start(1)
    last = parts[-1][0].strip() if len(parts) > 1 else ""
    if re.fullmatch(r"0?\.\d+", last) and (row is None or row.effect is Effect.MEASURES):
        yield Slip(1.0, start + parts[-2].end(), call.end(1) + 1, f") with epsilon {last}")
    if last.isidentifier():
        end = start + parts[-1].end()
        yield Slip(0.9, end, end, f"({parts[0][0].strip()})")


def completed(call: re.Match[str], own: Sequence[str]) -> Iterator[Slip]:
    """A call with one more of its arguments, which is what the program has: private data, or a column by name."""
    parts = [part.start() for part in PART.finditer(call[1])]
    for many, value in enumerate(own):
        for at in (0, len(call[1])):
            if value not in call[1] and (value.startswith('"') or not parts or (not many and not at)):
                before, after = ", " * (at > 0), ", " * (at == 0 and bool(parts))
                place = call.start(1) + at
                yield Slip(1.1 + many / 100 + at / 10_000, place, place, f"{before}{value}{after}")


def own_values(place: Span) -> list[str]:
    """The private data that a program has declared above a place, and its columns, as texts."""
    above = "\n".join(place.source.text.split("\n")[: place.line - 1])
    values = re.findall(r"(?m)^private +(\w+) *=", above)
    columns = re.findall(r"(?<=[{ ,])(\w+): ", " ".join(re.findall(r"described\s+by\s+(\{.*)", above)))
    return [*dict.fromkeys(values), *(f'"{column}"' for column in dict.fromkeys(columns))][:16]


def arguments(call: re.Match[str], cost: float, *, less: bool) -> Iterator[Slip]:
    """A call with two neighbours swapped, or without one of its arguments."""
    parts, start = list(PART.finditer(call[1])), call.start(1)
    for one, other in pairwise(parts):
        swapped = f"{other[0].strip()}, {one[0].strip()}"
        yield Slip(cost, start + one.start() + (one[0][0] == " "), start + other.end(), swapped)
        if less:
            yield Slip(1.15, start + one.end(), start + other.end(), "")
    if len(parts) > 1 and less:
        yield Slip(1.25, start, start + parts[1].start() + 1, "")


_WORDS = frozenset((*lexicon().reserved, *lexicon().opening, *lexicon().clause))
_UNKNOWN = re.compile(r"[A-Za-z_][\w.]{2,}[\w \"',.()=]*$")  # what may be left out


_SAYS = re.compile(r"(?i)\b(?:weighted by|minimi[sz]e|maximi[sz]e|except|never)\b")


def misreads(line: str, new: str) -> bool:
    """Whether a new line has words that are no columns where it says whom it protects; whether it returns what it
    shows, or lacks a word that says what is meant, which nothing stands for."""
    if len(_SAYS.findall(new)) < len(_SAYS.findall(line)) and not re.search(r"select \* |\w \* \w", line + new):
        return True
    units = [len(re.findall(r"\bprotecting [\w, ]*, (?:rows?|each|level|one|records?)\b", one)) for one in (line, new)]
    return units[1] > units[0] or "return print(" in new


class Own:
    """What is a person's own in a line: the names of columns and values, texts and numbers.

    An edit keeps all of it but what it says that it leaves out, and brings no other; a number only where nothing is
    left out.
    """

    def __init__(self, lines: Sequence[str], at: int) -> None:
        before = re.match(r" *(?:\w+ +|private: *)?(\w+) *=(?!=)", lines[at])
        others = "\n".join([*lines[:at], *lines[at + 1 :], before[0] if before else ""])
        self.names = frozenset(re.findall(r"\b([A-Za-z_]\w*)`? *[:=](?!=)", others)) - _WORDS

    def of(self, line: str) -> set[str]:
        tokens = re.findall(r"\"[^\"]*\"|'[^']*'|[A-Za-z_]\w*|\d[\w.]*(?<!\.)", line.partition("#")[0])
        return {token.strip("\"'") for token in tokens if token in self.names or not token[0].isalpha()}

    def __call__(self, line: str, new: str, out: str, whole: bool) -> bool:
        old, now, gone = self.of(line), self.of(new), self.of(out)
        old = old & self.names | old & now if whole else old
        word = "" if "=" in out else re.split(r"\W", out.lower())[0]
        if misreads(line.replace(out, ""), new) or ("protecting" in line and re.search(r"\brows?\b|\d", out)):
            return False  # a bound on what a person adds stays
        if out and (gone & self.names or not _UNKNOWN.match(out) or word in _WORDS):
            return False
        came = now - old
        if (
            (out and came)
            or re.search(r"\}\}\(|\]\(|\"\(|\b(\w+) \1\b", new)
            or not all(one[:1].isdigit() or one in line for one in came)
        ):
            return False
        words = {word for one in old - now - gone for word in (re.findall(r"\w+", one) if " " in one else [one])}
        return all(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", new) for word in words)


_AMOUNT, _EXAMPLE = re.compile(r"with (?:epsilon|rho) [\d.e-]+(?: delta [\d.e-]+)?"), "with epsilon 0.1 }}"


def own_amount(line: str, new: str) -> str:
    """A new line in which a query costs what the person wrote after a call, in place of an amount of an example."""
    amounts = _AMOUNT.findall(line)
    if len(amounts) != 1 or re.search(re.escape(amounts[0]) + r" *\}\}", line) or new.count(_EXAMPLE) != 1:
        return new
    query, _, rest = new.partition(_EXAMPLE)
    return f"{query}{amounts[0]} }}}}{rest.replace(' ' + amounts[0], '', 1)}"


_EXAMPLES = {  # names of messages, what a program has in their place, and where they stand in what a help quotes
    "t": (r"(?m)^private +(\w+) *=", r"(?<=from )t\b|(?<=\w\()t(?=, )"),
    "g": (r"(?m)^ *(\w+) *= *\{\{ *select\b[^{}]*\bgroup ?by\b", r"(?<![\w.])g(?=[.\[=])|(?<=release )g\b"),
}


_CHOSEN = re.compile(r"\[.*\]|lambda\b.*")


def with_missing(fault: Diagnostic, line: str) -> str:
    """The line with `x is missing` for the test `x == ""` or `x == "n/a"` that a fault is about; empty without one."""
    if fault.span is None or not re.search(r"mixes a number with text$| is never \"", fault.message):
        return ""
    for test in _NO_CELL.finditer(line):
        if test.start() < fault.span.column <= test.end():
            return f"{line[: test.start()]}{test[1]} is {'not ' * (test[2] == '!=')}missing{line[test.end() :]}"
    return ""


@cache
def calls_shown() -> dict[str, str]:
    """The arguments of the first call of each function in its example in the documentation."""
    from jostle.documentation.entries import examples, programs

    every = (pair for stem in programs() for pair in examples(stem).items())
    calls = [(name, call) for name, lines in every for call in CALL.finditer(lines)]
    return {name: call[1] for name, call in reversed(calls) if call[0] == f"{name}("}


def as_documented(fault: Diagnostic, line: str, first_fault: Callable[[str], Diagnostic | None]) -> Diagnostic:
    """The fault with the call of its line in which a list or a function is that of the documentation, where
    one such checks; the listed values that a message names stand for those of the documentation."""
    if fault.kind not in ("AssertionFailed", "TypeError", "ValueError") or not re.match(r"as in `\w+\(|$", fault.help):
        return fault
    listed = re.search(r"\[(\"[^\[\]]*\")\]", fault.message)
    for call in CALL.finditer(line):
        own = [part[0].strip() for part in PART.finditer(call[1])]
        for at, part in enumerate(PART.findall(calls_shown().get(call[0][:-1], ""))):
            name, _, value = part.strip().rpartition(" = ")
            values = iter(re.findall('"[^"]*"', listed[1]) if listed and name else [])
            new = re.sub('"[^"]*"', lambda text: next(values, text[0]), part.strip())  # noqa: B023
            named = [i for i, one in enumerate(own) if name and one.startswith(f"{name} =")]
            place = next(iter(named), len(own) if name else at)
            fits = place < len(own) + bool(name) and new not in own and (name or "=" not in own[at])
            if not fits or not _CHOSEN.fullmatch(value):
                continue
            args = ", ".join([*own[:place], new, *own[place + 1 :]])
            if first_fault(f"{line[: call.end()]}{args}{line[call.end(1) :]}") is None:
                return replace(fault, help=f"as in `{call[0]}{args})`")
    return fault


_END = r"-?\d+(?:\.\d+)?|\d{4}-\d\d-\d\d(?:T[\d:]+)?"
_ENDS = re.compile(rf"(?:clamp\([^`]*?, |(?:: |over )(?=[^ ]+\.\.))({_END})(?:, |\.\.)({_END})(?=[`)}},])")


def with_ends_to_know(fault: Diagnostic) -> Diagnostic:
    """The fault which says of ends of a range that nobody wrote that they are an example, and whose to know."""
    line = fault.span.source.line(fault.span.line) if fault.span is not None else ""
    for low, high in _ENDS.findall(fault.help if " in place of line" not in fault.help else ""):
        if re.search(rf"(?<!\d)(?<!\d\.){re.escape(high)}(?![\d.]|,\d)", line) is None and "you know" not in fault.help:
            return replace(fault, help=f"{fault.help}; {low} and {high} are an example: write the ends that you know")
    return fault


_IN_A_PART = re.compile(r"\b(?:Option|Feature|Utility) *\([^()]*\) *\{(?:[^{}]|\{[^{}]*\})*$")


def _offset(place: Span) -> int:
    return sum(len(line) + 1 for line in place.source.text.split("\n")[: place.line - 1]) + place.column - 1


def in_own_names(fault: Diagnostic) -> Diagnostic:
    """The fault with the program's own table, and its result, in the examples of its help; `where t is …` stays."""
    if fault.span is not None and _IN_A_PART.search(fault.span.source.text[: _offset(fault.span)]):
        help = re.sub(r"(?<=\)) with epsilon 0\.1(?=`)", "", fault.help)  # its amount is that of the call
        fault = replace(fault, help=help)
    text, line = ("", "") if fault.span is None else (fault.span.source.text, fault.span.source.line(fault.span.line))
    for example, (pattern, place) in _EXAMPLES.items():
        names = {*re.findall(pattern, text)}
        here = [name for name in names if re.search(rf"\b{re.escape(name)}\b", line)] or [*names]
        if len(here) == 1 and not re.search(rf"\b{example}\b", text) and f" {example} is" not in fault.help:
            pieces = re.split("(`[^`]*`)", fault.help)
            new = (re.sub(place, here[0], one) if one[:1] == "`" and " u " not in one else one for one in pieces)
            fault = replace(fault, help="".join(new))
    return fault
