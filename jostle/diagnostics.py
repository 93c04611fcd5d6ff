"""What is wrong, as one value: a kind, a message, a place, other places, and the way out.

Renderings live elsewhere (`tools.render`). A `Diagnostic` is a public output: its text is made of the program's
words and of public facts only, never of private data. `Refusal` is the one exception that carries diagnostics
from where they are found to where they are shown.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib.util import find_spec

from msgspec import Struct

from jostle.records import replace
from jostle.source import Span

WARNINGS = (
    "narrow-range", "floored-key", "unlisted-key", "unmatched-pattern", "idle-clamp", "cutting-clamp",
    "clock-of-date", "category-spelling", "csv-decimal", "unfit-cells", "large-epsilon", "plain-braces",
    "praised-error", "first-budget", "unknown-warning",
)  # fmt: skip
"""What stops nothing and is said all the same: names by which a program or a person switches each off."""


class Note(Struct, frozen=True):
    """Another place that explains a diagnostic, such as where a value became private."""

    span: Span
    text: str


class Diagnostic(Struct, frozen=True):
    """One thing that is wrong, or a warning. `label` is the short text under the caret; `help` says what to write."""

    kind: str
    message: str
    span: Span | None = None
    label: str = ""
    help: str = ""
    notes: tuple[Note, ...] = ()

    @property
    def is_warning(self) -> bool:
        return self.kind in WARNINGS

    def __str__(self) -> str:
        place = f"{self.span.source.name}:{self.span.line}:{self.span.column}: " if self.span is not None else ""
        return f"{place}{self.kind}: {self.message}" + (f"\n  help: {self.help}" if self.help else "")

    def as_json(self) -> dict[str, object]:
        """The rendering that `--format json` prints."""
        place: dict[str, object] = {}
        if self.span is not None:
            at = self.span
            place = {
                "file": at.source.name, "line": at.line, "column": at.column,
                "end_line": at.end_line, "end_column": at.end_column,
            }  # fmt: skip
        notes = [{"line": n.span.line, "column": n.span.column, "text": n.text} for n in self.notes]
        return {"kind": self.kind, "message": self.message, **place, "help": self.help, "notes": notes}


class Refusal(Exception):
    """A program, or a part of it, is refused; holds one diagnostic or more, the first one first.

    `result`, where `Session.run` raises it: what the run released, measured and spent before (`tools.result.Result`).
    """

    result: object = None

    def __init__(self, first: Diagnostic, *others: Diagnostic) -> None:
        super().__init__(first.message)
        self.diagnostics: tuple[Diagnostic, ...] = (first, *others)

    def __str__(self) -> str:
        """Each diagnostic with its place and its help."""
        return "\n".join(map(str, self.diagnostics))

    @property
    def first(self) -> Diagnostic:
        return self.diagnostics[0]

    def at(self, span: Span | None) -> Refusal:
        """This refusal, placed at `span` where it has no place yet (the innermost place wins)."""
        if span is None or self.first.span is not None:
            return self
        return type(self)(replace(self.first, span=span), *self.diagnostics[1:])


def refuse(
    kind: str, message: str, span: Span | None = None, *, label: str = "", help: str = "", notes: tuple[Note, ...] = ()
) -> Refusal:
    """The refusal to raise: `raise refuse("NameError", "…", node.span, help="…")`."""
    return Refusal(Diagnostic(kind, message, span, label, help, notes))


def unwritable(file: str, fault: OSError, help: str = "") -> Refusal:
    """The refusal to raise where a file, named as a person would, cannot be written."""
    reason = (fault.strerror or "the system refused").lower()
    return refuse("DataError", f"{file} cannot be written: {reason}", help=help)


def need_package(package: str, extra: str, what: str) -> None:
    """Refuses with `ImportError` where a package of an extra is not installed, before anything is spent for it."""
    if find_spec(package) is None:
        message = f"{what} {package}, which is not installed"
        raise refuse("ImportError", message, help=f'pip install "jostle[{extra}]"')


def did_you_mean(word: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    """`did you mean `x`?`, for the closest known word, or nothing; a short word, or another first letter, is closer."""
    every, like = list(names), difflib.get_close_matches
    near = [one for one in every if one.lower() == word.lower() or (word[3:] and one[:1].lower() == word[0].lower())]
    close = like(word, every, 1, max(cutoff, 0.75)) or like(word, near, 1, cutoff)
    return f"did you mean `{close[0]}`?" if close else ""
