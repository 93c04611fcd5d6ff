"""Edits of a mistaken line, what they leave out, and what is said where none of them is a way out.

A message about another question misleads more than none. So a suggestion that does not check at its place is not
made, `t` of a general help is the program's own table, and where a query stops to parse, its form is shown with
columns that the program describes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from jostle.diagnostics import Diagnostic
from jostle.language.builtins import BUILTINS
from jostle.records import replace
from jostle.syntax.parser import lexicon
from jostle.tools import slips
from jostle.tools.foreign import Rows, means

Edit = tuple[float, str, str]
"""How far an edit is from what stands there, the line as it is then, and what is left out."""

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
        spoilt = re.search(r"\}\}\(|\]\(|\"\(|\b(\w+) \1\b|(?<!\w)\d+\(|\breturn +print\b", new) or BY_ITSELF.search(
            new
        )
        if (PRIVATE.match(line) and not DECLARED.match(new)) or (out and came) or spoilt:
            return False
        return all(one[:1].isdigit() or one in line for one in came) and self._has_all(old - now - gone, new)

    def _has_all(self, texts: set[str], new: str) -> bool:
        """Whether a line has all words of some texts, and all numbers, also as shares; formats are no words."""
        values = _values(new)
        texts = {one for one in texts if not re.fullmatch(r"\d*[.,%:]+\d*[a-z%]?", one)}
        words = {word for one in texts for word in (re.findall(r"\w+", one) if " " in one else [one])}
        words = {word for word in words if not _number_in(word, values)}
        return all(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", new) for word in words)

    def lost(self, old: str, new: str) -> list[str]:
        """What of a person's own is in some lines, and not in those that are written for them."""
        values = _values(new)
        gone = [one for one in sorted(self.of(old)) if one.lower() not in new.lower()]
        return [one for one in gone if not (_number_in(one, values, ends=True) or self._named_in(one, new))]

    def _named_in(self, text: str, new: str) -> bool:
        if text[:1].isdigit():
            return False
        words = [word for word in re.findall(r"[A-Za-z_]\w+", text) if not any(means(of, word) for of in _SECTIONS)]
        return not words or "/" in text or any(re.search(rf"(?<!\w){word}", new) for word in words)


BY_ITSELF = re.compile(r"\b(\w+\([^()]*\)) / \1(?![\w(])")  # which is 1
PRIVATE, DECLARED = re.compile(r" *private\b"), re.compile(r" *private +\w+ *=")
_UNKNOWN = re.compile(r"[A-Za-z_][\w.]{2,}[\w \"',.()=]*$")  # what may be left out
_SECTIONS = ("aggregates", "verbs", "rows", "kinds", "ignored")


_UNITS = {"k": 1e3, "m": 1e6}


def _values(text: str) -> set[float]:
    """The numbers of a text, with `50k` as 50,000."""
    parts = re.findall(r"(?<![\w.])(\d+(?:[.,]\d+)?)([km]?)", text)
    return {float(number.replace(",", ".")) * _UNITS.get(unit, 1) for number, unit in parts}


def _number_in(text: str, values: set[float], ends: bool = False) -> bool:
    """Whether the number that a text begins with is among others, also as a share of 100, or as the end of a range."""
    number = re.match(r"(\d+(?:\.\d+)?)([km]?)", text)
    one = float(number[1]) * _UNITS.get(number[2], 1) if number else math.nan
    near = {one - 1, one + 1} if ends else set[float]()
    return bool({one, one / 100, one * 1000, *near} & values) or text == "000"


def honest(fault: Diagnostic, own: Own, old: str) -> Diagnostic:
    """A fault with lines to write, which says what of a person's own these leave out."""
    pieces = QUOTED.findall(fault.help)
    if not re.match("write `", fault.help) or "leave" in fault.help or not pieces:
        return fault
    lost = [one for one in own.lost(old, "\n".join(pieces)) if not re.search(rf"[`\"]{re.escape(one)}", fault.message)]
    without = " and ".join(f"`{one}`" for one in lost[:3])
    return replace(fault, help=f"{fault.help}, which leaves out {without}") if lost else fault


def doubted(fault: Diagnostic, line: str, first_fault: Callable[[str], Diagnostic | None], above: str) -> Diagnostic:
    """A fault that has no line that works says that what it shows is an example, or which name is not there."""
    if (general := _in_general(fault, line, first_fault, above)) is not None:
        return general
    if re.match(r"a record does not unpack", fault.message):
        return replace(fault, help="each row of a result is a record: `for row in g`, and `row.n` for its column `n`")
    bare = re.search(r"(?i)\bselect +(\w+)(?:, *\w+)* from\b", line)
    if bare and fault.message.startswith("`having`, `order by` and `limit` are of groups"):
        message = "rows are not handed out, and have no order: an answer is an aggregate of them"
        return replace(fault, message=message, help=f"measure them: `count(*)`, `avg({bare[1]})`")
    if fault.help.startswith("did you mean") and _is_far(fault, line, first_fault, above):
        fault = replace(fault, help="")
    fault = in_own_names(fault, line, above)
    usage = re.fullmatch(r"write `(\w+)\(([\w, ]+)\)`", fault.help)
    if usage and any(not re.search(rf"\b{name}\b", above) for name in re.findall(r"[a-zA-Z_]\w*", usage[2])):
        return replace(fault, help=f"it is called as in {fault.help[6:]}")
    shown = re.fullmatch(r"write `([^`…]+)`", fault.help)
    pipe = first_fault(shown[1]) if shown is not None and "no pipes" in fault.message else None
    if pipe is not None and pipe.message.endswith("is not defined") and pipe.message not in fault.help:
        return replace(fault, help=f"{fault.help}, where {pipe.message}; {pipe.help}")
    if re.match(r"write `[^`…]*[ (\[{][^`…]*`", fault.help) and not _GENERIC.search(fault.help):
        return replace(fault, help=f"as in {fault.help[6:]}")
    if re.match(r"write `\w+\(t, ", fault.help) and "where t is" not in fault.help:
        return replace(fault, help=f"in names of your own, write {fault.help[6:]}")
    return fault


_A_DOMAIN = 'a column is a range, `0..99`, listed values, `{"a", "b"}`, or `text`, `integer`, `real`, `date`, `time`'
_OF_A_CHOICE = "the clauses of a choice are `informed by {…}`, `trained on …`, `using …`, `spending …` and `wrt U`"
_OPENS = "a statement gives a name a value, `x = 1`, calls a function, or begins with `for`, `if`, `def`, `with`, `use`"


def _in_general(
    fault: Diagnostic, line: str, first_fault: Callable[[str], Diagnostic | None], above: str
) -> Diagnostic | None:
    """A fault of which a help is for another question with what may stand at its place; None of others."""
    row = fault.span.line if fault.span is not None else 1
    begins = next((one for one in above.split("\n")[row - 1 :: -1] if one[:1].strip()), "")
    if begins.startswith("private") and fault.message.endswith("is not defined") and "described by" in line:
        return replace(fault, help=_A_DOMAIN)
    if re.match(r"\w+ *= *MkChoice", begins) and fault.message == "unexpected indentation":
        return replace(fault, help=_OF_A_CHOICE)
    called = re.match(r"a call needs parentheses: `(\w+)\(", fault.help)
    if called and called[1] not in BUILTINS and not re.search(rf"\bdef {called[1]}\b", above):
        return replace(fault, help=_OPENS)
    if module := re.match(r"write `(use \w+)` above", fault.help):
        first = first_fault(f"{module[1]}\n{line}")
        return replace(fault, help=f"{fault.help}; then {first.message}") if first is not None else None
    word = re.fullmatch(r"write `([\w.]+|[=<>!]+)`.*", fault.help)
    if word and fault.span is not None and not _is_nearer(replace(fault, help=f"`{word[1]}`"), line, first_fault):
        return replace(fault, help="")
    return None


def _is_far(fault: Diagnostic, line: str, first_fault: Callable[[str], Diagnostic | None], above: str) -> bool:
    """Whether a name that is suggested for a short one, or for a column, is refused there too."""
    word = fault.span.text if fault.span is not None else ""
    doubtful = len(word) < 4 or re.search(rf"\b{re.escape(word)}`? *:", above) is not None
    return doubtful and not _is_nearer(fault, line, first_fault)


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
    if not tables or re.search(r"(?<![\w.\"'])t(?![\w\"'])", above):
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


def plain_words(fault: Diagnostic, word: str, query: str) -> Diagnostic:
    """A fault at a word that nothing here does, with the reason, and what comes nearest or the query without it."""
    reason, _, nearest = means("nothing", word).partition(" | ")
    old = re.match(r"(?:write )?(`(?!\w+\(\w+\)`)[^`]*[({ ][^`]*`)", fault.help)
    what = f"`{word}`" if fault.span and word in fault.span.source.text else "so"
    nearest = f"without it, `{query}`" if query else f"{nearest}{f', as {old[1]}' if old else ''}"
    return replace(fault, help=f"nothing here does {what}: {reason}; {nearest}")


# Edits ------------------------------------------------------------------------------------------

_CHAIN = re.compile(r"(?:\.\w+|\((?:[^()]|\([^()]*\))*\)|\[[^\[\]]*\])*")  # calls and fields after a name
_ARGUMENT = re.compile(r"(, *)?(\w+ *= *)(?:\([^()]*\)|\[[^\[\]]*\]|\"[^\"]*\"|[^,()\[\]=]+)(?=[,)])")
_AMOUNT, _EXAMPLE = re.compile(r"with (?:epsilon|rho) [\d.e-]+(?: delta [\d.e-]+)?"), "with epsilon 0.1 }}"
_UNDEFINED = r"`(\w+)` is not defined"
_NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_ENDS = r"(?= (?:having|order by|limit|up to|with)\b| *\}\})"


def in_query(line: str, fault: Diagnostic) -> Iterator[str]:
    """A query with the clause that a help says to add, in its place there: keys of groups, or an amount."""
    if keys := re.match(r"add it to the keys: `(groupby [^`]+)`", fault.help):
        own = re.search(r"group ?by ([^{}]+?)" + _ENDS, line)
        more = f"groupby {own[1]}, {keys[1][8:]}" if own else f" {keys[1]}"
        yield f"{line[: own.start()]}{more}{line[own.end() :]}" if own else re.sub(_ENDS, more, line, count=1)
    call = re.search(r"\b(\w+)\(((?:[^()]|\([^()]*\))*), *(0?\.\d+)\)$", line)
    if call and re.search(r"takes .* arguments, but|takes a strategy of the library, not a number", fault.message):
        yield f"{line[: call.start()]}{call[1]}({call[2]}) with epsilon {call[3]}"
    if re.search(r"workload, not a function$", fault.message):
        yield re.sub(r"\((\w+), *(\w+)(?=[,)])", r"(\1, \2(\1)", line)
    if (many := re.search(r"(?i)\b(?:up to|limit|at most) (\w+)\b", line)) and many[1].lower() in _NUMBERS:
        yield line[: many.start(1)] + str(_NUMBERS.index(many[1].lower()) + 1) + line[many.end(1) :]
    function, name = re.match(r"(?:as in|write) `(\w+)\(", fault.help), re.fullmatch(_UNDEFINED, fault.message)
    inside = next(iter(QUOTED.findall(fault.help)), "")[len(function[1]) + 1 : -1] if function else ""
    if function and name and (len(inside) == 1 or inside in line):
        yield re.sub(rf"\b{name[1]}\(", f"{function[1]}(", line)
    if "hand out private rows" in fault.message:
        new = line
        for aggregate, alias in re.findall(r"(\w+\([^()]*\)) as (\w+)", line):
            new = re.sub(rf"(?<=[-+*/] ){alias}\b(?=[^{{}}]* from )|\b{alias}\b(?= [-+*/])", aggregate, new)
        yield new
    if paid := re.match(r"write `\w+\(…\) (with epsilon [\d.]+)`", fault.help):
        yield f"{line} {paid[1]}"
    if amount := re.match(r"write `(with epsilon [\d.]+)`", fault.help):
        yield re.sub(r"(\{\{(?:(?!\bwith\b)[^{}])*?) *\}\}", rf"\1 {amount[1]} }}}}", line, count=1)
    measure = re.match(r"measure it first, `m = \{\{ select (\w+\(\w+\)) from \w+ (.*?) \}\}`", fault.help)
    table = re.search(r"\bfrom (\w+)", line)
    if measure and table:
        indent = line[: len(line) - len(line.lstrip())]
        first = f"{indent}m = {{{{ select {measure[1]} from {table[1]} {measure[2]} }}}}"
        yield f"{first}\n{line.replace(measure[1], 'm')}"


def own_amount(line: str, new: str) -> str:
    """A new line in which a query costs what the person wrote after a call, in place of an amount of an example."""
    amounts = _AMOUNT.findall(line)
    if len(amounts) != 1 or re.search(re.escape(amounts[0]) + r" *\}\}", line) or new.count(_EXAMPLE) != 1:
        return new
    query, _, rest = new.partition(_EXAMPLE)
    return f"{query}{amounts[0]} }}}}{rest.replace(' ' + amounts[0], '', 1)}"


def swapped(line: str, fault: Diagnostic, _again: bool) -> Iterator[Edit]:
    """A line with two neighbours swapped among the arguments of a call that a fault is of."""
    start = fault.span.column - 1 if fault.span else 0
    end = fault.span.end_column - 1 if fault.span and fault.span.end_line == fault.span.line else len(line)
    for call in slips.CALL.finditer(line):
        parts = [part[0].strip() for part in slips.PART.finditer(call[1])]
        if start <= call.end(1) and call.start() < end and ", ".join(parts) == call[1]:
            for at in range(len(parts) - 1):
                new = [*parts[:at], parts[at + 1], parts[at], *parts[at + 2 :]]
                yield 2.1, f"{line[: call.start(1)]}{', '.join(new)}{line[call.end(1) :]}", ""


def at_place(line: str, text: str, start: int, end: int) -> Iterator[str]:
    """A line with a text in place of what it is about: a word, a call, the rest of the line, all of it."""
    chain = _CHAIN.match(line, end)
    if text.isidentifier() and (field := re.search(r"\.\w+$", line[start:end])):
        yield line[: start + field.start() + 1] + text + line[end:]
    for stop in sorted({end, chain.end() if chain else end, len(line)}):
        rest = line[stop:].strip(" )")
        if not rest or rest not in text:  # it would stand there twice
            yield line[:start] + text + line[stop:]
    yield line[: len(line) - len(line.lstrip())] + text
    if text.startswith("with "):
        yield f"{line[:end]} {text}{line[end:]}"


def without(line: str, start: int, end: int) -> Iterator[Edit]:
    """The line without a name of an argument, or all of it; or without what begins at a place and ends before the next
    clause or bracket."""
    for match in _ARGUMENT.finditer(line):
        if match.start(2) <= start < match.end() or start <= match.start() < end:
            yield 3.2, line[: match.start(2)] + line[match.end(2) :], ""
            if match[1]:
                yield 3, line[: match.start()] + line[match.end() :], match[0].strip(", ")
    clause, close = slips.CLAUSE.search(line, max(end, start + 1)), re.compile(r" *(?:\}\}|$)").search(line, end)
    stops = {end, *(match.start() for match in (clause, close) if match)}
    before = re.search(r"(?<=[\w)}] )\w+ *$", line[:start])
    for begin in (start, before.start() if before else start):
        for stop in sorted(stops):
            out, rest = line[begin:stop].strip(), line[stop:].lstrip()
            if out and len(out) < len(line.strip()) / 2 and line[stop : stop + 1] != "(":
                rest = rest if rest[:1] in ("}", "]", ")", ",", "") else f" {rest}"
                yield 3 + (begin != start), line[:begin].rstrip() + rest, out


def of_tables(fault: Diagnostic, line: str, above: str) -> Iterator[str]:
    """A line with the table, or the cube, that a call lacks."""
    if column := re.match(r"`(\w+)` is a column of `(\w+)`", fault.help):
        yield re.sub(rf"\((?:{column[2]}, *)?{column[1]}(?=[,)])", f"({column[2]}, x = {column[1]}", line)
        yield re.sub(rf"\((?={column[1]}\b)", f"({column[2]}, ", line)
    for table in re.findall(r"(?m)^private +(\w+) *=", above) if " takes a table first" in fault.message else ():
        yield re.sub(r"\b(\w+)\((?=\w+ *= *)", rf"\1({table}, ", line, count=1)
    if counts := re.match(r"`(\w+)` takes a cube of counts, not a number", fault.message):
        for cube in re.findall(r"(?m)^ *(\w+) *= *histogram\(", above):
            yield re.sub(rf"\b{counts[1]}\([\d.]+\)", f"{counts[1]}({cube})", line)
