"""Public tables of rows that a program states: no source is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jostle.diagnostics import refuse
from jostle.language.moments import number_of
from jostle.plan.domains import Categories, Domain, Integer, Moments, Open, Real
from jostle.plan.kinds import value_kind
from jostle.plan.plan import Listed
from jostle.privacy.kernel.handles import Table

MOST_ROWS = 2**16
"""Rows that a program gives; more are a file, or what Python binds."""
MOST_LISTED = 4096
_PLURAL = {"number": "numbers", "text": "texts", "boolean": "truths", "date": "dates", "time": "times"}


def literal_table(names: Sequence[str], columns: Sequence[Sequence[Any]]) -> Table:
    """A public table of columns of one kind each, some cells missing; what is known of them are their values."""
    if columns and len(columns[0]) > MOST_ROWS:
        raise refuse(
            "DataError", f"a table of {len(columns[0]):,} rows is too long to be written out",
            help=f"at most {MOST_ROWS:,}: put them into a file, or bind a frame from Python",
        )  # fmt: skip
    schema = tuple((name, _domain(name, column)) for name, column in zip(names, columns, strict=True))
    return Table((), Listed(schema, tuple(zip(*columns, strict=True))), schema)


def _domain(name: str, column: Sequence[Any]) -> Domain:
    known = [cell for cell in column if cell is not None]
    kinds = list(dict.fromkeys(map(value_kind, known)))
    if len(kinds) > 1:
        raise refuse(
            "TypeError", f"the column `{name}` has {_PLURAL[kinds[0]]} and {_PLURAL[kinds[1]]}",
            help="`str(x)` makes a text of a number",
        )  # fmt: skip
    if kinds == ["text"]:
        different = tuple(dict.fromkeys(known))
        return Categories(different) if len(different) <= MOST_LISTED else Open("text")
    if kinds in (["date"], ["time"]):
        numbers = list(map(number_of, known))
        return Moments(kinds[0], min(numbers), max(numbers))
    if kinds != ["number"]:
        return Open("boolean" if kinds else "real")
    whole = all(float(cell).is_integer() for cell in known)
    return Integer(int(min(known)), int(max(known))) if whole else Real(float(min(known)), float(max(known)))
