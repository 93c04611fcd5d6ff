"""Puts a new `predict` into the text of an Option, and leaves everything else as it is written."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from jostle.choice.synthesis.formulas import Formula
from jostle.choice.synthesis.texts import block
from jostle.run.values import Function, Part
from jostle.source import Source, Span
from jostle.syntax import nodes as n
from jostle.syntax.walk import every


class Edit(Struct, frozen=True):
    """`text` for what stands from `start` to `end`, as places in the source's text."""

    start: int
    end: int
    text: str


def written(program: n.Program, source: Source, option: object) -> n.Part | None:
    """The expression of the program that made this Option; None where it was made elsewhere, as in a module."""
    run = option.run if isinstance(option, Part) else option
    if not isinstance(run, Function) or run.body.span is None or run.body.span.source != source:
        return None
    parts = (node for node in every(program) if isinstance(node, n.Part) and node.kind == "Option")
    return next((part for part in parts if part.body.span == run.body.span), None)


def edit(part: n.Part, formula: Formula, logarithmic: bool) -> Edit:
    """The edit that gives an Option this formula for its `predict`, in the place of one that it has."""
    old, body = part.predict, part.body
    if old is not None:
        parameter = part.predict_params[0].name if part.predict_params else "F"
        start, end = _place(old.span, False), _place(old.span, True)
        space = "" if part.span.source.text[start - 1] == " " else " "
        return Edit(start, end, space + block(formula, logarithmic, parameter, _indent(old.span)))
    parameter = next(name for name in ("F", "features") if name not in formula.features)
    indent, place = _indent(body.span), _place(body.span, True)
    word = "def predict" if _is_class(part) else "predict"
    return Edit(place, place, f"\n{indent}{word} ({parameter}) {block(formula, logarithmic, parameter, indent)}")


def edited(text: str, edits: Mapping[int, Edit]) -> str:
    """The text after all edits, none of which overlap."""
    for one in sorted(edits.values(), key=lambda e: e.start, reverse=True):
        text = text[: one.start] + one.text + text[one.end :]
    return text


def shown(part: n.Part, change: Edit) -> str:
    """The Option's new text, from the beginning of its line."""
    text, start, end = part.span.source.text, _place(part.span, False), _place(part.span, True)
    return text[text.rfind("\n", 0, start) + 1 : change.start] + change.text + text[change.end : end]


def _is_class(part: n.Part) -> bool:
    return part.span.text.startswith("class ")


def _indent(span: Span) -> str:
    """The indentation of the line on which something begins."""
    line = span.source.line(span.line)
    return line[: len(line) - len(line.lstrip())]


def _place(span: Span, end: bool) -> int:
    """The place in the source's text at which a span begins or ends."""
    line, column = (span.end_line, span.end_column) if end else (span.line, span.column)
    lines = span.source.text.split("\n")
    return sum(len(one) + 1 for one in lines[: line - 1]) + column - 1
