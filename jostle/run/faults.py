"""Refusals that the interpreter raises in several places, and where they are placed."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from jostle.diagnostics import Diagnostic, Note, Refusal, refuse
from jostle.privacy.kernel.exposures import Exposures, Handle
from jostle.privacy.kernel.exposures import Source as PrivateSource
from jostle.privacy.kernel.handles import Cube, Table
from jostle.privacy.scores import Score
from jostle.privacy.transformations.joins import join_exposures
from jostle.privacy.transformations.records import WeightedRecords
from jostle.run.values import Pending, handles_in
from jostle.source import Span
from jostle.syntax import nodes as n
from jostle.syntax import parse
from jostle.syntax.walk import every_of

LIBRARY = "stdlib/"  # sources of the standard library are named by this
MOST_NOTES = 5
_NAME = re.compile(r"[^\W\d]\w*")


def exposures_of(values: Sequence[object]) -> Exposures:
    """One exposure a source over all private handles in these values."""
    handles = handles_in(list(values))
    return join_exposures([h.exposures for h in handles], [1] * len(handles))


class PrivateValue(Refusal):
    """A private value where only a public one may stand; it is reported when its place is known.

    `cannot`: what it cannot be, after "is private and"; `help`: the way out where it is not to measure the value.
    """

    def __init__(self, handle: Handle, cannot: str, help: str = "") -> None:
        self.handle, self.cannot, self._help = handle, cannot, help
        super().__init__(Diagnostic("PrivateValue", f"this value is private and {cannot}", None, "", self._way("")))

    def at(self, span: Span | None) -> Refusal:
        return self if span is None else self.of(span)

    def of(self, span: Span, value: object = None, name: str = "") -> Refusal:
        """The refusal of what stands at `span`, which is or holds the handle (`value`), and has a `name`."""
        source, text = self.handle.exposures[0].source, span.text
        name = name or (text if text.isidentifier() else "")
        it = f"`{name}`" if name else "this value"
        inside = value is not None and not isinstance(value, Handle)
        state = f"holds private data of `{source.name}` and" if inside else "is private and"
        label = f"private since line {source.span.line}" if source.span is not None else ""
        message, notes = f"{it} {state} {self.cannot}", trail(name or text, span, source)
        way = ("" if self._help else self._of_value(value, text)) or self._way(text)
        own = _measured_of(text, span) if isinstance(value, Table) and not self._help else ""
        help = f"what is measured of it is `{own}`; or {way}" if own else way
        return refuse("PrivateValue", message, span, label=label, help=help, notes=notes)

    def _of_value(self, value: object, text: str) -> str:
        """How a list of private values, or a table that is an element of one, is measured; else nothing."""
        several = isinstance(value, list) and all(isinstance(item, Handle) for item in value)
        if several and isinstance(self.handle, Score) and re.search("`(?:max|idxmax)`", self.cannot):
            return f"the place of the largest is `noisy_max({text}) with epsilon 0.1`"
        if isinstance(value, Table) and re.fullmatch(r"\w[\w.]*\[[^\[\]<>=]*\]", text):
            return f"measure how many rows it has: `{self._measure(text)}`"
        return f"measure each of them: `[{self._measure('x')} for x in {text}]`" if several else ""

    def _measure(self, it: str) -> str:
        """The call that measures what is named so."""
        return f"laplace({it if isinstance(self.handle, Cube | Score) else f'size({it})'}) with epsilon 0.1"

    def _way(self, text: str) -> str:
        """The query that measures it, of the rows that are chosen in `text`."""
        if self._help:
            return self._help.replace("<it>", text)
        if isinstance(self.handle, WeightedRecords):
            return "measure it: `laplace(histogram(records, x = a)) with epsilon 0.1`"
        source, rows = self.handle.exposures[0].source, _ROWS.search(text)
        called = re.match(r"[A-Za-z_][\w.]*(?=\[|$)", text)
        if isinstance(self.handle, Cube) and called and called[0] != source.name:
            return f"measure its cells: `{self._measure(called[0])}`"
        more = isinstance(self.handle, Score) and "compared" in self.cannot
        largest = "; the largest of several is `noisy_max([…]) with epsilon 0.1`" if more else ""
        called_here = isinstance(self.handle, Score | Table) and re.match(r"[\w.]+\(.*\)$", text)
        if called_here or (isinstance(self.handle, Score) and called):
            inner = re.search("compared|calculated", self.cannot)  # an amount reaches no further than its brackets
            return f"measure it: `{'(' if inner else ''}{self._measure(text)}{')' if inner else ''}`{largest}"
        where = f" where {rows[2].replace(f'{rows[1]}.', '')}" if rows else ""
        counts = source.span is not None and "= counts(" in source.span.text
        name, of = source.name, "sum(values)" if counts else "count(*)"
        name = called[0] if called and isinstance(self.handle, Table) and not rows else name
        return f"measure it: {{{{ select {of} from {name}{where} with epsilon 0.1 }}}}{largest}"


_ROWS = re.compile(r"^(\w+)\[([^][]*[<>=]=?[^][]*?),? ?\]")
"""Rows that are chosen by a condition: `t[t.age > 40]`."""


def _measured_of(name: str, span: Span) -> str:
    """What a program calls a query of this table above a place, or an empty text."""
    above = "\n".join(span.source.text.split("\n")[: span.line - 1])
    every = re.findall(rf"(?m)^(?:release )?(\w+) *= *\{{\{{.* from {re.escape(name)} .*\bwith\b.*\}}\}}", above)
    return every[-1] if name.isidentifier() and every else ""


def private_value(handle: Handle, cannot: str, help: str = "") -> Refusal:
    """The refusal of a private value where only a public one may stand."""
    if isinstance(handle, Pending):
        return refuse(
            "PrivateValue", f"an answer of this `jointly` block {cannot} inside it",
            help="all answers are there after the block: move this there",
        )  # fmt: skip
    return PrivateValue(handle, cannot, help)


def refuse_private(value: object, cannot: str, span: Span | None = None, *, help: str = "") -> None:
    """Refuses a value that is private, or holds what is, where only a public one may stand."""
    for handle in handles_in(value):
        raise private_value(handle, cannot, help).at(span)


def no_rows(table: Handle) -> Refusal:
    """Of private rows that are walked through."""
    refusal = private_value(table, "cannot be iterated")
    parts = "`partition(…)` gives parts that can be iterated, under public keys"
    return private_value(table, "cannot be iterated", f"{refusal.first.help}; {parts}")


def trail(text: str, span: Span, source: PrivateSource) -> tuple[Note, ...]:
    """How the names in `text`, which stands at `span`, came from a private source, as the program is written."""
    if source.span is None:
        return ()
    notes = () if span.source.name.startswith(LIBRARY) else _trail(parse(span.source, interactive=True), text, span)
    return (Note(source.span, f"`{source.name}` is declared private here"), *notes[:MOST_NOTES])


def _trail(tree: n.Program, text: str, span: Span) -> tuple[Note, ...]:
    """A note for each name on the way from a declaration to what stands at `span`."""
    functions: list[n.Node] = [*every_of(tree, n.Def), *every_of(tree, n.Lambda), *every_of(tree, n.Part)]
    bindings: list[n.Assign | n.For | n.Comprehension]
    bindings = [*every_of(tree, n.Assign), *every_of(tree, n.For), *every_of(tree, n.Comprehension)]
    around = {id(one) for one in functions if span.within(one.span)}
    for name in _NAME.findall(text):
        before = None
        for one in bindings:
            names = (one.name,) if isinstance(one, n.Assign) else one.names
            is_before = (one.span.line, one.span.column) < (span.line, span.column) and one.span != span
            if name in names and is_before and all(id(f) in around for f in functions if one.span.within(f.span)):
                before = one if before is None or one.span.line >= before.span.line else before
        if before is not None:
            origin = before.value if isinstance(before, n.Assign) else before.source
            how = "is made from it here" if isinstance(before, n.Assign) else "is one of its parts"
            own = () if origin.span.text == name else (Note(before.span, f"`{name}` {how}"),)
            return (*_trail(tree, origin.span.text, before.span), *own)
    return ()


def in_the_users_program(refusal: Refusal, span: Span, function: object) -> Refusal:
    """A refusal inside the standard library is placed at the line of the program that called it."""
    first = refusal.first
    at = first.span
    if at is None or not at.source.name.startswith(LIBRARY) or span.source.name.startswith(LIBRARY):
        return refusal
    notes = (*first.notes, Note(at, f"in `{getattr(function, 'name', 'this call')}`, {at}"))
    return Refusal(
        Diagnostic(first.kind, first.message, span, first.label, first.help, notes), *refusal.diagnostics[1:]
    )


# Nesting ----------------------------------------------------------------------------------------

P = ParamSpec("P")
R = TypeVar("R")

DEEP = 60_000  # frames: 1,000 nested calls of a program take 10 to 30 each
FRAME = 2**16  # words of one frame

_lock = threading.Lock()
_limits: list[int] = []  # for each open `deep`, of any thread, Python's limit before the first one


@contextmanager
def deep() -> Iterator[None]:
    """Room for 1,000 nested calls of a program; what is deeper still is refused, and Python's own limit restored."""
    with _lock:
        _limits.append(_limits[0] if _limits else sys.getrecursionlimit())
        sys.setrecursionlimit(max(_limits[0], DEEP))
    try:
        yield
    except RecursionError:
        raise refuse("RecursionLimit", "the program is nested too deeply", help="does the recursion end?") from None
    finally:
        with _lock:
            before = _limits.pop()
            if not _limits:  # it is one for all threads
                sys.setrecursionlimit(before)


def with_room(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, with half a megabyte for the frames of what it calls.

    Python puts frames into chunks of 16 KB, asks the system for the next at the call that crosses an edge, and gives
    it back at the return. An interpreter that walks a tree goes to and fro over such edges: a training of six tables
    did so 190,000 times, for a third of its time in forked processes. A frame that is too large for a chunk gets a
    large one, and what it does not fill is for the calls below.
    """

    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(*args, **kwargs)

    run.__code__ = run.__code__.replace(co_stacksize=FRAME)
    return wraps(function)(run)
