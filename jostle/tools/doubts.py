"""What is said where no way out is sure: a way out that leaves something out says so, and an example has own names.

A message about another question misleads more than none. So a suggestion that does not check at its place is not
made, `t` of a general help is the program's own table, and where a query stops to parse, its form is shown with
columns that the program describes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from jostle.diagnostics import Diagnostic
from jostle.records import replace
from jostle.syntax.parser import lexicon
from jostle.tools.foreign import Rows, means

QUOTED = re.compile(r"`([^`…]+)`")
_WORDS = frozenset((*lexicon().reserved, *lexicon().opening, *lexicon().clause))
_GENERIC = re.compile(  # of helps that say that they are of names, or lines, that are no part of the program
    r"write `use \w+`|write `\w+\([a-z](?:, [a-z])*\)`|write `\w+\([\w, =*\"]*\)`$|` (?:and,? )|, where `"
)
_OF_T = re.compile(r"(?<=\bfrom )t\b|(?<=\()t(?=[,)])|(?<=\bjoin )t\b")
_RANGE = re.compile(r"[{,] *`?(\w+)`? *: *(-?[\d.]+)\.\.(-?[\d.]+)")
_LISTED = re.compile(r"[{,] *`?(\w+)`? *: *\{ *[\"\d]")


class Own:
    """What is a person's own in a line: the names of columns and values, texts and numbers.

    An edit keeps all of it but what it says that it leaves out, and brings no other; a number only where nothing is
    left out.
    """

    def __init__(self, lines: Sequence[str], at: int) -> None:
        before = re.match(r" *(?:\w+ +)?(\w+) *=(?!=)", lines[at])
        others = "\n".join([*lines[:at], *lines[at + 1 :], before[0] if before else ""])
        self.names = frozenset(re.findall(r"\b([A-Za-z_]\w*)`? *[:=](?!=)", others)) - _WORDS

    def of(self, line: str) -> set[str]:
        tokens = re.findall(r"\"[^\"]*\"|'[^']*'|[A-Za-z_]\w*|\d[\w.]*(?<!\.)", line.partition("#")[0])
        return {token.strip("\"'") for token in tokens if token in self.names or not token[0].isalpha()}

    def keeps(self, line: str, new: str, out: str, whole: bool) -> bool:
        old, now, gone = self.of(line), self.of(new), self.of(out)
        old = old & self.names | old & now if whole else old
        word = "" if "=" in out else re.split(r"\W", out.lower())[0]
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

    def lost(self, old: str, new: str) -> list[str]:
        """What of a person's own is in some lines, and not in those that are written for them."""
        digits = {_digits(number) for number in re.findall(r"\d[\d.,_]*", new)}
        return [one for one in sorted(self.of(old)) if not (_number_in(one, digits) or self._named_in(one, new))]

    def _named_in(self, text: str, new: str) -> bool:
        if text[:1].isdigit():
            return False
        words = [word for word in re.findall(r"[A-Za-z_]\w+", text) if not any(means(of, word) for of in _SECTIONS)]
        return not words or "/" in text or any(re.search(rf"(?<!\w){word}", new) for word in words)


_UNKNOWN = re.compile(r"[A-Za-z_][\w.]{2,}[\w \"',.()=]*$")  # what may be left out
_SECTIONS = ("aggregates", "verbs", "rows", "kinds", "ignored")


def _digits(number: str) -> str:
    return re.sub(r"[^\d]", "", number).strip("0")


def _number_in(text: str, digits: set[str]) -> bool:
    """Whether a number is among others, also as a share of 100, in another unit, or as the end of a range."""
    if not re.match(r"\d", text):
        return False
    near = {str(int(text) + step) for step in (-1, 1)} if text.isdigit() else set[str]()
    return not _digits(text) or bool(({_digits(one) for one in near} | {_digits(text)}) & digits)


def honest(fault: Diagnostic, own: Own, old: str) -> Diagnostic:
    """A fault with lines to write, which says what of a person's own these leave out."""
    pieces = QUOTED.findall(fault.help)
    if not re.match("write `", fault.help) or "leave" in fault.help or not pieces:
        return fault
    lost = [one for one in own.lost(old, "\n".join(pieces)) if f"`{one}" not in fault.message]
    without = " and ".join(f"`{one}`" for one in lost[:3])
    return replace(fault, help=f"{fault.help}, which leaves out {without}") if lost else fault


def doubted(fault: Diagnostic, line: str, first_fault: Callable[[str], Diagnostic | None], above: str) -> Diagnostic:
    """A fault that has no line that works says that what it shows is an example, or which name is not there."""
    if fault.help.startswith("did you mean") and not _is_nearer(fault, line, first_fault):
        fault = replace(fault, help="")
    fault = in_own_names(fault, line, above)
    shown = re.fullmatch(r"write `([^`…]+)`", fault.help)
    pipe = first_fault(shown[1]) if shown is not None and "no pipes" in fault.message else None
    if pipe is not None and pipe.message.endswith("is not defined") and pipe.message not in fault.help:
        return replace(fault, help=f"{fault.help}, where {pipe.message}; {pipe.help}")
    if re.match(r"write `[^`…]*[ (\[{][^`…]*`", fault.help) and not _GENERIC.search(fault.help):
        return replace(fault, help=f"as in {fault.help[6:]}")
    if re.match(r"write `\w+\(t, ", fault.help) and "where t is" not in fault.help:
        return replace(fault, help=f"in names of your own, write {fault.help[6:]}")
    return fault


def _is_nearer(fault: Diagnostic, line: str, first_fault: Callable[[str], Diagnostic | None]) -> bool:
    """Whether the name that a help suggests is no mistake itself at its place: what is wrong then stands elsewhere."""
    name = QUOTED.findall(fault.help)[:1]
    if (
        not name
        or (fault.span is not None and not fault.span.text.isidentifier())
        or fault.span is None
        or fault.kind not in ("NameError", "TypeError")
    ):
        return True
    start, end = fault.span.column - 1, fault.span.end_column - 1
    new = first_fault(f"{line[:start]}{name[0]}{line[end:]}")
    if new is None or new.span is None:
        return True
    call = re.compile(r"\w*(?:\([^()]*\))?").match(line[:start] + name[0] + line[end:], start)
    return not (new.span.line == fault.span.line and call and start <= new.span.column - 1 < call.end())


def in_own_names(fault: Diagnostic, line: str, above: str) -> Diagnostic:
    """A fault whose help says the program's own table in place of `t`, and its result in place of `g`."""
    start = fault.span.column - 1 if fault.span is not None else 0
    result = re.compile(r"(\w+)[.\[]").match(line, start) if fault.message.startswith("a grouped result") else None
    if result is not None:
        return replace(fault, help=re.sub(r"(?<=`)g(?=[.\[])", result[1], fault.help))
    tables = re.findall(r"(?m)^ *private +(\w+) *=", above)
    if "t" in tables or not tables or re.search(r"(?m)^ *t *=", above):
        return fault
    named = [name for name in tables if re.search(rf"\b{name}\b", line)]
    return replace(fault, help=_OF_T.sub((named or tables)[0], fault.help))


def query_of(above: str, tables: Mapping[str, Rows], line: str) -> str:
    """A query of the table that a line names, or of the first, with a column to average, one to compare and a key."""
    named = [name for name in tables if re.search(rf"\b{name}\b", line)] or [*tables]
    if not named:
        return ""
    of = tables[named[0]]
    ranges = [(name, float(low), float(high)) for name, low, high in _RANGE.findall(above) if name in of.columns]
    keys = [name for name in _LISTED.findall(above) if name in of.columns]
    aggregate = f"avg({ranges[-1][0]}) as {ranges[-1][0]}" if ranges else "count(*) as n"
    where = f" where {ranges[0][0]} > {(ranges[0][1] + ranges[0][2]) / 2:.0f}" if ranges else ""
    groups = f" groupby {keys[0]}" if keys else ""
    return f"{{{{ select {aggregate} from {named[0]}{where}{groups} with epsilon 0.1 }}}}"
