"""Public tables as values: from records and released results, walked through, listed, sampled."""

from __future__ import annotations

import hashlib
import math
from datetime import date
from typing import Any

from jostle.diagnostics import Refusal, refuse
from jostle.privacy.kernel.handles import Table
from jostle.privacy.transformations.literal import literal_table
from jostle.run.evaluator import Evaluator
from jostle.run.faults import private_value
from jostle.run.registry import builtin
from jostle.run.values import Grouped, JSet, Record, is_number, is_sequence, kind_name, need_room
from jostle.source import Span


def is_rows(value: Any) -> bool:
    """Whether a table can be made of a value: of a list of records, or of a released result."""
    return isinstance(value, Grouped) or (is_sequence(value) and all(isinstance(item, Record) for item in value))


def table_of_rows(value: Any, span: Span | None) -> Table:
    """`table([{a: 1, b: "x"}, …])` and `table(g)`, of a released result: a public table."""
    rows = list(value)
    if not rows or not rows[0]:
        raise refuse("DataError", "a table of no rows has no columns", span, help='`table([{city: "Ames", size: 10}])`')
    names = list(rows[0])
    for at, row in enumerate(rows):
        if list(row) != names and set(row) != set(names):
            other = next(iter(set(row) ^ set(names)))
            raise refuse("DataError", f"record {at + 1} and the first differ in `{other}`", span,
                         help="give all records the same fields; `none` is a missing value")  # fmt: skip
    try:
        return literal_table(names, [[_cell(row[name], name) for row in rows] for name in names])
    except Refusal as refusal:
        raise refusal.at(span) from None


def _cell(value: Any, name: str) -> Any:
    if value is None or isinstance(value, (str, bool, date)):
        return value
    if not is_number(value):
        raise refuse("TypeError", f"a cell is a number, a text, a date or a truth, and `{name}` has {kind_name(value)}")
    return float(value) if math.isfinite(value) else None


def records(interp: Evaluator, table: Table, span: Span | None) -> list[Record]:
    """The rows of a public table as records, in their order."""
    if table.private:
        raise private_value(table, "cannot be walked through row by row").at(span)
    need_room(interp.data.size(table), "the rows of a table")
    names = list(table.domains)
    return [Record(zip(names, row, strict=True)) for row in interp.data.records(table)]


@builtin
def _sample(items: Any, count: Any, seed: Any = 0.0, *, at: Any) -> list[Any]:
    """`sample(t, 100)`: so many different items of a list or rows of a public table, in their order.

    Which these are is decided by a hash of the seed and the place: public, and the same on every machine.
    """
    interp, span = at
    if isinstance(items, Table):
        items = records(interp, items, span)
    if not (is_sequence(items) or isinstance(items, (JSet, Grouped))):
        raise refuse("TypeError", f"`sample` takes a list or a public table, not {kind_name(items)}")
    listed = list(items)
    if not is_number(count) or not float(count).is_integer() or not 0 <= count <= len(listed):
        raise refuse("ValueError", f"a sample of these has 0 to {len(listed):,} items")
    if not is_number(seed):
        raise refuse("TypeError", "a seed is a number")
    ranks = [hashlib.sha256(f"{float(seed)!r}:{place}".encode()).digest() for place in range(len(listed))]
    chosen = sorted(sorted(range(len(listed)), key=ranks.__getitem__)[: int(count)])
    return [listed[place] for place in chosen]
