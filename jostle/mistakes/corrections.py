"""Ways out of mistakes, which were tried.

A way out is found by small edits of a mistaken line, of which the first that checks clean is shown. Edits are what
the message says to write, at the place or for the line; the lines and words of other languages of `grammar/`; the
clauses of a select in their order; words that are like one; and, at last, leaving out what is not known.
Each is checked as a person's program is, so that what is shown works when it is pasted. Nothing is run, and no row is
read.
"""

from __future__ import annotations

import difflib
import heapq
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from html import unescape
from itertools import takewhile

from jostle.diagnostics import Diagnostic, Refusal
from jostle.mistakes import edits, typos
from jostle.mistakes.foreign import Nothing, Unread, as_one, other_words, programs, selects, statements
from jostle.mistakes.foreign.declarations import DECLARES
from jostle.records import replace
from jostle.source import Source, Span
from jostle.syntax.messages import LACKS_A_COMMA, rewritings
from jostle.syntax.parser import parse

Check = Callable[[Source], Sequence[Diagnostic]]
Edit = tuple[float, str, str]
"""How far an edit is from what stands there, the line as it is then, and what is left out."""

_UNREAD = (Unread, LookupError, ValueError, RecursionError)  # arguments that a call lacks, or that are no numbers
_LINES, _CHECKS, _STEPS, _LONGEST = 200, 12, 4, 200  # lines, those that parse, edits after each other, characters
_LONGEST_DECLARATION = 1_500
_FAR = 4.5  # from what stands there
_SLIP = 1.6  # what is tried before other slips than sure ones
_OF_WORDS = re.compile(  # of messages that know what is meant
    "there is no `|a number is written in full|in the unit of what|begins with a letter|cannot be given|a join says on|"
    "at the end$|has no delta|hands out one value"
)
_OTHERS = frozenset({"BudgetExceeded", "LedgerError", "ImportError", "RecursionLimit"})
_GENERAL = ("unexpected", "unknown here", "not a name", "deeper than the line above, which opened no block")
_GUESS = re.compile("`=` gives a name|an argument is|this `|an amount names its|a comma is missing|the line ends too")
_LACKS_KEYS = re.compile("is no aggregate, and the groups|of groups that are released, and this select has none")
_END_OF_KEYS = re.compile(r"\s+(?:having|order by|limit|up to|with)\b|\s*\}\}")
_GOES_ON = re.compile(r"[\s}\])\\]|el(?:se|if)\b|\.[a-z]|$")
_CHAIN = re.compile(r"(?:\.\w+|\((?:[^()]|\([^()]*\))*\)|\[[^\[\]]*\])*")  # calls and fields after a name
_SEVERAL = re.compile(r"^write[^;]*` (?:and,? |for the [^;]*`)")  # lines to write together, or each for a meaning
_JOINTS = "(?:and|as|between|by|from|group|having|in|join|limit|of|on|or|order|over|per|to|up|where|with)"
_AS_A_NAME = re.compile(rf"(?i), *{_JOINTS}\b(?! *[(.=[])|(?<![.\w]){_JOINTS} *,|\bprivate {_JOINTS}\b")
_ARGUMENT = re.compile(r"(, *)?(\w+ *= *)(?:\([^()]*\)|\[[^\[\]]*\]|\"[^\"]*\"|[^,()\[\]=]+)(?=[,)])")
_AMOUNTS = frozenset({"epsilon", "rho", "delta", "seed"})
_USAGE = re.compile(rf"{edits.USAGE}|$")
_GENERIC = re.compile(  # of helps that say that they are of names, or lines, that are no part of the program
    r"write `use \w+`|write `\w+\([a-z](?:, [a-z])*\)`|write `\w+\([\w, =*\"]*\)`$|` (?:and,? )|, where `"
)
_WHOLE = re.compile(
    r"(?:write|without `[^`]*`:|leave `[^`]*` out: write) (?:`[^`]*`(?: and, in a line of its own, )?)+"
)
_QUOTED = re.compile(r"`([^`…]+)`")


def mend(faults: Sequence[Diagnostic], source: Source, check: Check) -> list[Diagnostic]:
    """The faults, of which the first three have a way out that was tried, where one is found; those of the lines that
    it is in place of are gone with it."""
    every, rows = list[Diagnostic](), set[int]()
    for fault in faults:
        if _row(fault) not in rows:
            every.append(edits.in_own_names(_mend(fault, source, check)) if len(every) < 3 else fault)
            help = every[-1].help
            lines = re.search(r"in place of lines (\d+) to (\d+)$", help)
            if lines or (help != fault.help and _WHOLE.fullmatch(help)):
                rows |= {*range(int(lines[1]), int(lines[2]) + 1)} if lines else {_row(fault)}
    return list(map(edits.with_ends_to_know, every))


def _mend(fault: Diagnostic, source: Source, check: Check) -> Diagnostic:
    if fault.span is None or fault.span.source != source or fault.kind in _OTHERS:
        return fault
    if fault.kind == "AssertionFailed" and source.line(fault.span.line).lstrip().startswith("assert"):
        return fault  # of the program, and no call of the library
    if fault.message == "the line ends too early" and source.line(fault.span.line).rstrip()[-1:] in "-+*/%^":
        return fault  # what should stand there is not known, and leaving the sign out would mean something else
    search = _Search(fault, fault.span, check)
    if ordered := re.match(r"`(\w+)` takes .*", fault.message) and re.fullmatch(r"write `([\w.]+\(.*\))`", fault.help):
        for call in edits.CALL.finditer(search.line):  # of which the arguments stand in another order
            new = f"{search.line[: call.start()]}{ordered[1]}{search.line[call.end(1) + 1 :]}"
            same = sorted(re.findall(r"\w+", new)) == sorted(re.findall(r"\w+", search.line))
            if same and new != search.line and search.first_fault(new) is None:
                return _tell(fault, new.strip(), "")
    if (habit := _habit(fault, search) or _listed(fault, search) or _of_choice(fault, search)) is not None:
        return habit
    if (mended := _slip(fault, fault.span, search, _sure(fault))) is not None:
        return mended
    return _searched(fault, fault.span, search) or _habit(fault, search, wide=True) or _doubted(fault, search)


def _habit(fault: Diagnostic, search: _Search, wide: bool = False) -> Diagnostic | None:
    """The fault with what lines of another language mean, or with what nothing here does; `wide`: of declarations."""
    program = search.source.text.split("\n")
    if len(search.line) > (_LONGEST if DECLARES.match(search.line) is None else _LONGEST_DECLARATION):
        return None
    try:
        return (None if wide else _line_read(fault, search, program)) or _block_read(fault, search, program, wide)
    except Nothing as nothing:
        return None if wide else statements.plain_words(fault, nothing.args[0])


def _line_read(fault: Diagnostic, search: _Search, program: Sequence[str]) -> Diagnostic | None:
    try:
        reader = statements.reader_of("\n".join(search.before), search.source.text)
        lines, below = statements.with_later(program[search.row - 1 :], reader)
    except _UNREAD:
        return None
    used = {line for line in search.before if line.startswith("use ")}
    new = "\n".join(search.indent + line for line in lines if line not in used)
    if re.sub(r"[\s'\"]", "", new) == re.sub(r"[\s'\"]", "", search.line) or edits.misreads(search.line, new):
        return None
    if (first := search.first_fault(new)) is not None:
        column = re.fullmatch("there is no column `(.*)`", first.message)
        described = column is not None and DECLARES.match(new) is not None and f"{column[1]}: " in new
        where = "write" if described else "in a query it is" if first.kind == "UnboundedSum" else ""
        return replace(fault, help=f"{where} `{new.strip()}`, where {first.message}; {first.help}") if where else None
    mended = _tell(fault, new.strip(), "")
    return replace(mended, help=f"{mended.help}, and leave line {search.row + below} out") if below else mended


def _block_read(fault: Diagnostic, search: _Search, program: Sequence[str], wide: bool) -> Diagnostic | None:
    """The fault with the lines that a block of other lines means as a whole."""
    for begin, end in programs.blocks_at(program, search.row):
        if (end - begin < 2 and not wide) or (wide and DECLARES.match(program[begin]) is None):
            continue
        reader = statements.reader_of("\n".join(program[:begin]), search.source.text)
        reader.wide = wide
        try:
            new = programs.block(program[begin:end], reader, search.row - 1 - begin)
        except _UNREAD:
            continue
        if set(re.findall(r"[A-Za-z_]\w*", "\n".join(program[end:]))) & reader.it.keys():
            continue  # what only gives columns a name is used below
        whole = Source(search.source.name, "\n".join([*program[:begin], *new, *program[end:]]))
        if new == program[begin:end] or any(begin < _row(one) <= begin + len(new) for one in search.faults(whole)):
            continue
        while new and new[0] == program[begin]:
            begin, new = begin + 1, new[1:]
        while new and new[-1] == program[end - 1]:
            end, new = end - 1, new[:-1]
        old = f"lines {begin + 1} to {end}" if end > begin + 1 else f"line {end}"
        return replace(fault, help=f"write `{'`, then `'.join(new)}` in place of {old}" if new else f"leave {old} out")
    return None


def _listed(fault: Diagnostic, search: _Search) -> Diagnostic | None:
    """The fault with the listed value that its text is a form of, `F` of `female`, or with a test for missing cells."""
    if (tested := edits.with_missing(fault, search.line)) and search.first_fault(tested) is None:
        return _tell(fault, tested.strip(), "")
    if not (never := re.search(r"is never \"([^\"]+)\"", fault.message)):
        return None
    text, values = never[1].lower(), re.findall(r"\"([^\"]+)\"", fault.help)
    near = [one for one in values if one.lower().startswith(text) or text.startswith(one.lower())]
    new = re.sub(rf"([\"']){re.escape(never[1])}\1", lambda quoted: f'"{near[0]}"' if near else quoted[0], search.line)
    return _tell(fault, new.strip(), "") if len(near) == 1 and search.first_fault(new) is None else None


def _of_choice(fault: Diagnostic, search: _Search) -> Diagnostic | None:
    """The fault with the data of a choice as one record of the fields that are read, or with the choice called."""
    every, line = list[str](), search.line
    if names := re.match(r"write `(\w+):` for `(\w+)`", fault.help):
        every = [re.sub(rf"\b{names[2]} *:", f"{names[1]}:", line)]
    elif field := re.match(r"a ChoiceMaker has no `(\w+)`", fault.message):
        every = [re.sub(rf"\.{field[1]}(?=\()", "", line)]
    elif members := re.match(r"`(among|informed by)` takes (Option|Feature)s, and ", fault.message):
        own = re.findall(rf"(?m)^(\w+) *= *{members[2]}\b", search.source.text)
        named = re.compile(rf"(?s)\b{members[1]} *(\{{[\w, ]*\}}|\w+)").search(line)
        here = [name for name in own if named and re.search(rf"\b{name}\b", named[1])] or own
        new = f"{members[1]} {{{', '.join(here)}}}" if here else ""
        every = [" ".join(f"{line[: named.start()]}{new}{line[named.end() :]}".split()) if named else line]
    elif re.search(r"takes a workload, not a function$", fault.message):
        return _called_on(fault, search)
    elif fault.span and (record := re.match(r"its record is `\{(.*)\}`", fault.help)):
        fields = re.findall(r"(\w+):", record[1])
        for group in edits.GROUP.finditer(line, fault.span.column - 1):
            parts = [part[0].strip() for part in edits.PART.finditer(group[1])]
            if len(parts) == len(fields):
                own = [re.sub(rf"^({field}) *[=:](?!=) *", "", part) for field, part in zip(fields, parts, strict=True)]
                called = line[group.start() - 1 : group.start()].isidentifier()
                pairs = ", ".join(map("{}: {}".format, fields, own))
                every.append(f"{line[: group.start() + called]}{{{pairs}}}{line[group.end(1) + (not called) :]}")
    new = next((one for one in every if one != line and search.first_fault(one) is None), "")
    return _tell(fault, new.strip(), "") if new else None


def _called_on(fault: Diagnostic, search: _Search) -> Diagnostic | None:
    """The fault with a workload that a record of the program names and does not call, `queries: prefixes`."""
    for row, line in enumerate(search.source.text.split("\n"), 1):
        new = re.sub(r"(\{\w+: *(\w+), *\w+: *\w+)(?= *\})", r"\1(\2)", line)
        whole = Source(search.source.name, search.source.text.replace(line, new))
        if new != line and all(_row(one) > row for one in search.faults(whole)):
            return replace(fault, help=f"write `{new.strip()}` in place of line {row}")
    return None


def _knows(fault: Diagnostic) -> bool:
    """Whether a message says what is meant, so that a slip of a hand is not it."""
    says = fault.kind != "SyntaxError" and fault.help.startswith("write `") and not _USAGE.match(fault.help)
    return says or _OF_WORDS.search(fault.message) is not None


def _sure(fault: Diagnostic) -> float:
    """How much a slip costs at most that is tried before what the message says to write."""
    if _OF_WORDS.search(fault.message):
        return 0
    return typos.SURE if not _knows(fault) else 0.85 if fault.message.endswith("is not defined") else 0.45


def _slips_come(fault: Diagnostic, search: _Search) -> bool:
    """Whether slips are tried before edits that are farther from what stands there: the message has no line that is
    right, and none of a statement as a whole."""
    if fault.kind != "SyntaxError" or _OF_WORDS.search(fault.message):
        return False
    own = re.fullmatch(r"write `([^`…]+)`", fault.help)
    of_all = fault.message.endswith("opens no statement")
    return own is None or not (of_all or search.first_fault(search.indent + own[1]) is None)


def _searched(fault: Diagnostic, place: Span, search: _Search) -> Diagnostic | None:
    """The fault with a line that a few edits make, or as it stands where that works; None where nothing does."""
    slips_of = _slips_come(fault, search)
    while search.waiting:
        if slips_of and search.waiting[0][0] > _SLIP:
            slips_of = False
            if (mended := _slip(fault, place, search)) is not None:
                return mended
        cost, _, line, last, out, steps = heapq.heappop(search.waiting)
        if last is None:
            return _tell(fault, line.strip(), out)
        if search.full:
            continue
        edits = _whole_lines if _SEVERAL.search(fault.help) or fault.kind == "AssertionFailed" else _edits
        for more, new, without in edits(line, last, steps > 0):
            search.look(cost + more, (line, new), last, out or without, steps + 1)
        if search.works and (search.waiting[0][0] >= 1 or search.waiting[0][3]):
            return fault
    return _slip(fault, place, search) if slips_of or not (_knows(fault) or fault.kind == "SyntaxError") else None


def _doubted(fault: Diagnostic, search: _Search) -> Diagnostic:
    """A fault that has no line that works says that what it shows is an example, or which name is not there."""
    fault = edits.as_documented(fault, search.line, search.first_fault)
    line = re.fullmatch(r"write `([^`…]+)`", fault.help)
    if line and (
        difflib.SequenceMatcher(None, line[1], search.line.strip()).ratio() > 0.85 or "pipes" in fault.message
    ):
        first = search.first_fault(search.indent + line[1])
        if first and first.kind != "SyntaxError" and first.message not in fault.help:
            help = fault.help if "pipes" in fault.message else f"as in {fault.help[6:]}"
            return replace(fault, help=f"{help}, where {first.message}; {first.help}".removesuffix("; "))
    if re.match(r"write `[^`…]*[ (\[{][^`…]*`", fault.help) and not _GENERIC.search(fault.help):
        return replace(fault, help=f"as in {fault.help[6:]}")
    if re.match(r"write `\w+\(t?", fault.help) and _USAGE.match(fault.help) and "= …" in fault.help:
        return replace(fault, help=f"in names of your own, {fault.help}")
    return fault


def _slip(fault: Diagnostic, place: Span, search: _Search, most: float = 9) -> Diagnostic | None:
    """The fault with its line as it is without one slip of a hand, where there is one."""
    lines, begin = place.source.text.split("\n"), search.begin
    end = search.row + len(list(takewhile(_GOES_ON.match, lines[search.row :])))
    while begin and re.search(r"[-+*/%^,=(\[{] *$", lines[begin - 1]):
        begin -= 1
    text = "\n".join(lines[begin:end])
    row, column = place.line, place.column
    if before := re.search(r"before `([^`]+)` in line (\d+)$", fault.help):
        row = int(before[2])
        column = max(0, place.source.line(row).find(before[1])) + 1
    at = sum(len(line) + 1 for line in lines[begin : row - 1]) + column - 1

    opening = fault.message.endswith("opens no statement") and fault.help.startswith("did you mean")

    def clean(new: str) -> bool:
        if opening and re.match(rf"{re.escape(place.text)}\b", new[at:]):
            return False  # of an opening word that is nearly another, no later word is the slip
        whole = Source(place.source.name, "\n".join([*lines[:begin], new, *lines[end:]]))
        try:
            faults = search.check(whole)
        except Refusal as refusal:
            faults = refusal.diagnostics
        return not any(_row(one) > begin and (_row(one) <= end or one.kind == "SyntaxError") for one in faults)

    slip = typos.without(text, at, typos.names_of(place.source.text, fault), clean, fault, most)
    return None if slip is None else _tell_slip(fault, slip, text, begin)


def _tell_slip(fault: Diagnostic, slip: edits.Slip, text: str, begin: int) -> Diagnostic:
    """The fault with the line without a slip; a message that only said where the parser stopped is about the slip."""
    row, start = text.count("\n", 0, slip.start), slip.start - (text.rfind("\n", 0, slip.start) + 1)
    new, many = text[: slip.start] + slip.new + text[slip.end :], slip.new.count("\n") + 1
    line = " ".join([part.strip() if at else part for at, part in enumerate(new.split("\n")[row : row + many])])
    was, now = text[slip.start : slip.end].strip(), slip.new.strip()
    start += len(text[slip.start : slip.end]) - len(text[slip.start : slip.end].lstrip(" "))
    help = f"write `{line.strip()}`" if line.strip() else f"leave `{was}` out"
    if not was and not now:
        many = len(line) - len(line.lstrip())
        help = f"begin the line with {many} spaces" if many else "begin the line at the margin, without spaces"
    general = _guesses(fault, line)
    if fault.span is None or (not general and fault.span.line == begin + row + 1) or not (was or now):
        left_out = not now and was not in line and re.search(r"\w{4}|\d|\W\w", was) and line.strip()
        return replace(fault, help=f"without `{was}`: `{line.strip()}`" if left_out else help)
    if now and len(was) > 40 and fault.span.line == begin + row + 1:
        return _tell(fault, line.strip(), "")
    at = (begin + row + 1, start + 1, begin + row + 1, start + 1 + max(1, len(was)))
    return replace(fault, message=_difference(was, now), span=Span(fault.span.source, *at), help=help)


class _Search:
    """The lines that were looked at in place of one with a mistake, and those to go on from, the nearest first."""

    def __init__(self, fault: Diagnostic, span: Span, check: Check) -> None:
        self.source, self.check, self.fault, self.row = span.source, check, fault, span.line
        lines = span.source.text.split("\n")
        self.line, self.works = lines[self.row - 1], False
        self.indent = self.line[: len(self.line) - len(self.line.lstrip())]
        begin = self.row - 1
        while begin and _GOES_ON.match(lines[begin]):
            begin -= 1
        self.begin = begin
        self.before, self.rest = lines[: self.row - 1], list(takewhile(_GOES_ON.match, lines[self.row :]))
        self.statement = [*[""] * begin, *lines[begin : self.row - 1]]
        self.lines, self.checks, self.keeps = {self.line}, 0, edits.Own(lines, self.row - 1)
        self.waiting: list[tuple[float, int, str, Diagnostic | None, str, int]] = [(0, 0, self.line, fault, "", 0)]
        if fault.kind != "SyntaxError" and self.first_fault(self.line) is None:
            self.rest = lines[self.row :]  # what is wrong is seen where later lines call it

    def look(self, cost: float, lines: tuple[str, str], last: Diagnostic, out: str, steps: int) -> None:
        """Looks at a line that was made of another. It is waiting then, if it has no fault, or another than that."""
        line, new = lines[0], edits.own_amount(self.line, lines[1])
        of_message = steps == 1 and cost == 1
        if self.is_far(new, cost, steps) or new in self.lines or not self.keeps(line, new, out, cost < 1):
            return
        self.lines.add(new)
        first = self.first_fault(new, whole=cost > 1.8)
        if first is None:
            self.works = of_message and not self.fault.help.startswith("write `with ")  # as it stands
        elif out or "\n" in new or (first.kind == "SyntaxError") > (self.fault.kind == "SyntaxError"):
            return  # what is left out is the last step, and what parses goes on to parse
        elif (first.message, first.span and first.span.column) == (last.message, last.span and last.span.column):
            return
        heapq.heappush(self.waiting, (cost, len(self.lines), new, first, out, steps))

    def is_far(self, new: str, cost: float, steps: int) -> bool:
        """Whether a line is not looked at: it is far from what stands there, a comment, or has a word as a name."""
        as_a_name = _AS_A_NAME.search(new) and not _AS_A_NAME.search(self.line)
        too_far = steps > _STEPS or len(new) > _LONGEST or cost > _FAR
        return self.full or self.works or too_far or bool(as_a_name) or (steps > 1 and new.lstrip().startswith("--"))

    @property
    def full(self) -> bool:
        """Whether no more lines are looked at."""
        return len(self.lines) > _LINES or self.checks > _CHECKS

    def faults(self, program: Source) -> Sequence[Diagnostic]:
        """What is wrong with a program."""
        self.checks += 1
        try:
            return self.check(program)
        except Refusal as refusal:
            return refusal.diagnostics

    def first_fault(self, new: str, *, whole: bool = False) -> Diagnostic | None:
        """What is wrong with this line; its statement, which parses as a `whole`, is parsed before all is checked."""
        faults: Sequence[Diagnostic]
        try:
            parse(Source(self.source.name, "\n".join([*self.statement, new, *self.rest])))
            faults = self.faults(Source(self.source.name, "\n".join([*self.before, new, *self.rest])))
        except Refusal as refusal:
            faults = refusal.diagnostics
        end = self.row + new.count("\n")
        here = [one for one in faults if 0 < _row(one) <= end + len(self.rest) * (whole and one.kind == "SyntaxError")]
        return next((one for one in here if one.kind == "SyntaxError" or _row(one) >= self.row), None)


def _row(fault: Diagnostic) -> int:
    return fault.span.line if fault.span is not None else 0


def _tell(fault: Diagnostic, line: str, out: str) -> Diagnostic:
    """The fault with a line that works; a message that only said where the parser stopped says what was changed."""
    line, guesses = re.sub(r"\n *", "` and, in a line of its own, `", line), _guesses(fault, line)
    if guesses and fault.span is not None and not out and fault.label != "unknown here":
        fault = _change(fault, fault.span, line)
    if guesses:
        return replace(fault, help=f"leave `{out}` out: write `{line}`" if out else f"write `{line}`")
    if out and fault.message.startswith(LACKS_A_COMMA):
        fault = replace(fault, message=f"`{out}` cannot stand here", label="unexpected")
    return replace(fault, help=f"without `{out}`: `{line}`" if out else f"write `{line}`")


def _guesses(fault: Diagnostic, line: str) -> bool:
    """Whether a message only said where the parser stopped, or took what stands there for something else."""
    guess = _GUESS.match(fault.message) is not None and not any(one in line for one in _QUOTED.findall(fault.help))
    return guess or fault.label in _GENERAL


def _change(fault: Diagnostic, place: Span, new: str) -> Diagnostic:
    """The fault as what differs between its line and another, at its place, if that is short."""
    line = place.source.line(place.line)
    one, two = (re.findall(r"\w+|[^\w\s]|\s+", text) for text in (line.rstrip(), line[: -len(line.lstrip())] + new))
    changes = [c for c in difflib.SequenceMatcher(None, one, two, autojunk=False).get_opcodes() if c[0] != "equal"]
    (_, begin, _, since, _), (_, _, end, _, until) = changes[0], changes[-1]
    was, now = "".join(one[begin:end]), "".join(two[since:until]).strip()
    rest = was or "".join(one[begin:])
    column = len("".join(one[:begin])) + len(rest) - len(rest.lstrip()) + 1
    row, was = place.line, was.strip()
    if was and now and max(len(was), len(now)) > 60:
        return fault
    at = Span(place.source, row, column, row, column + max(1, len(was)))
    return replace(fault, message=_difference(was, now), span=at)


def _difference(was: str, now: str) -> str:
    only = "is missing" if now else "is too much"
    return f"`{was}` is written `{now}` here" if was and now else f"`{was or now}` {only}"


def _edits(line: str, fault: Diagnostic, again: bool) -> Iterator[Edit]:
    if fault.span is None:
        return
    start, indent = fault.span.column - 1, line[: len(line) - len(line.lstrip())]
    end = fault.span.end_column - 1 if fault.span.end_line == fault.span.line else len(line)
    yield from _whole_lines(line, fault, again)
    texts = _QUOTED.findall(fault.help.partition("; ")[0]) if re.match("write|did you mean", fault.help) else []
    texts = texts if not again or fault.help.startswith("write") else []
    yield from ((1, new, "") for text in texts for new in _at(line, text, start, end))
    for new in (*rewritings(line.strip()), *other_words(line.strip(), fault.kind != "SyntaxError")):
        yield 1.5, indent + new, ""
    if fault.help.startswith("add `"):
        yield 1, " ".join([line.rstrip(), *_QUOTED.findall(fault.help.partition(";")[0])]), ""
    if _LACKS_KEYS.search(fault.message):
        columns, keys = re.search(r"\bselect (.*?) from\b", line), re.search(r"\bgroup ?by (.*)", line)
        own = [part.strip() for part in columns[1].split(",")] if columns else []
        lacks = [one for one in own if one.isidentifier() and not re.search(rf"\b{one}\b", keys[1] if keys else "")]
        text = f"{', ' if keys else ' groupby '}{', '.join(lacks)}"
        yield from [(1.5, _END_OF_KEYS.sub(lambda end: text + end[0], line, count=1), "")] if lacks else []
    yield from ((2, line[:begin] + new + line[stop:], "") for _, begin, stop, new in selects.in_order(line))
    yield from _left_out(line, fault, again, start, end)


def _left_out(line: str, fault: Diagnostic, again: bool, start: int, end: int) -> Iterator[Edit]:
    """A line without what a message says nothing else of."""
    guess = fault.span.text.rpartition(" ")[2] if fault.span and fault.message.startswith(LACKS_A_COMMA) else ""
    lacks = _USAGE.match(fault.help) and re.search("has no (?:parameter|argument)", fault.message)
    if not again and not fault.help.startswith("did you") and (fault.label in _GENERAL or guess or lacks):
        yield from _without(line, end - len(guess) if guess else start, end)


def _whole_lines(line: str, fault: Diagnostic, _again: bool) -> Iterator[Edit]:
    """The line as one that means the same, unless that measures a result; or with the module above that it lacks."""
    text, indent = fault.span.source.text if fault.span else "", line[: len(line) - len(line.lstrip())]
    new, results = as_one(line.strip()), "|".join(["-", *re.findall(r"(?m)^ *(\w+) *= *\{\{", text)])
    if new != line.strip() and not re.search(rf"(?: from |where\(|derive\()(?:{results})\b", new):
        yield 0.5, indent + new.replace("\n", "\n" + indent), ""
    yield 0.9, unicodedata.normalize("NFKC", unescape(line)).replace("...", ".."), ""  # of a web page, or typeset
    if module := re.match("write `(use [a-z]+)` above", fault.help):
        yield 1, f"{module[1]}\n{line}", ""


def _at(line: str, text: str, start: int, end: int) -> Iterator[str]:
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


def _without(line: str, start: int, end: int) -> Iterator[Edit]:
    """The line without a name of an argument, or all of it; or without what begins at a place and ends before the next
    clause or bracket."""
    for match in _ARGUMENT.finditer(line):
        if match.start(2) <= start < match.end() or start <= match.start() < end:
            shows = re.search(r"\bprint\([^()]*$", line[: match.start()])  # which would show it
            yield 3.2 if shows else 2.9, line[: match.start(2)] + line[match.end(2) :], ""
            if match[1]:
                yield 3, line[: match.start()] + line[match.end() :], match[0].strip(", ")
    clause, close = selects.CLAUSE.search(line, max(end, start + 1)), re.compile(r" *(?:\}\}|$)").search(line, end)
    stops = {end, *(match.start() for match in (clause, close) if match)}
    before = re.search(r"(?<=[\w)}] )\w+ *$", line[:start])
    for begin in (start, before.start() if before else start):
        for stop in sorted(stops):
            out, rest = line[begin:stop].strip(), line[stop:].lstrip()
            if out and len(out) < len(line.strip()) / 2 and line[stop : stop + 1] != "(":
                rest = rest if rest[:1] in ("}", "]", ")", ",", "") else f" {rest}"
                yield 3 + (begin != start), line[:begin].rstrip() + rest, out
