"""Refusals that the interpreter raises in several places, and where they are placed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jostle.diagnostics import Diagnostic, Note, Refusal, refuse
from jostle.privacy.kernel.exposures import Exposures, Handle, handles_in, join_exposures
from jostle.privacy.kernel.handles import ColumnHandle, Table
from jostle.privacy.transformations.records import WeightedRecords
from jostle.run.values import Pending
from jostle.source import Span

LIBRARY = "stdlib/"  # sources of the standard library are named by this


def exposures_of(values: Sequence[Any]) -> Exposures:
    """One exposure a source over all private handles in these values."""
    handles = handles_in(list(values))
    return join_exposures([h.exposures for h in handles], [1] * len(handles))


def private_value(handle: Handle, cannot: str) -> Refusal:
    """The refusal of a private value where only a public one may stand; tells where it became private."""
    source = handle.exposures[0].source
    if isinstance(handle, Pending):
        return refuse(
            "PrivateValue", f"an answer of this `jointly` block {cannot} inside it",
            help="all answers are there after the block: move this there",
        )  # fmt: skip
    what = {
        "Table": "rows",
        "Vectors": "rows",
        "Cube": "counts",
        "ColumnHandle": "a column",
        "Score": "a score",
        "WeightedRecords": "records",
    }.get(type(handle).__name__)
    notes = (Note(source.span, f"`{source.name}` is private since here"),) if source.span is not None else ()
    measured = "count(*)" if isinstance(handle, (Table, ColumnHandle)) else "sum(values)"
    way = f"`{{{{ select {measured} from … with epsilon 0.1 }}}}`"
    if isinstance(handle, WeightedRecords):
        way = "`laplace(histogram(records, x = a)) with epsilon 0.1`"
    return refuse(
        "PrivateValue", f"{what or 'this'} of `{source.name}` {cannot}", notes=notes, help=f"measure it: {way}"
    )  # fmt: skip


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
