"""A row for each item of a list: what others call flat map, explode or unnest.

*Argument.* The table is the union of as many tables as the lists have items: the i-th is each row with the i-th item
of every list as a column, where none of these is missing. Adding a column and leaving out rows by themselves give at
most a row for a row, and stabilities of a union add up (`union`): a list of m items gives m·k rows for k. m stands in
the program, so that no row decides how many rows it may give. What a row gives depends on that row alone, and it is of
the same person.
"""

from __future__ import annotations

from collections.abc import Sequence

from jostle.diagnostics import refuse
from jostle.plan.kinds import kind_of
from jostle.plan.plan import Apply, Column, Constant, RowExpr
from jostle.plan.schemas import text_values
from jostle.privacy.kernel.handles import Table
from jostle.privacy.transformations.transform import derive, where
from jostle.privacy.transformations.union import union

MOST_ITEMS = 1000


def explode(table: Table, columns: Sequence[tuple[str, Sequence[RowExpr]]]) -> Table:
    """A row for each place of lists of one length, with the items there as columns, where none of them is missing.

    A text without a character other than blanks is missing too, as the parts of `a;;b; ` are: what is left out is
    decided row by row, and a row of the table still gives at most one for each place.
    """
    lengths = {len(items) for _, items in columns}
    if len(lengths) != 1 or not 1 <= max(lengths) <= MOST_ITEMS:
        raise refuse(
            "ValueError", f"`explode` takes lists of one length, 1 to {MOST_ITEMS:,} items",
            help="`explode(t, item = [first, second, third])`",
        )  # fmt: skip
    for name, items in columns:
        kinds = {kind_of(item, table.domains) for item in items if item != Constant(None)}
        if "text" in kinds and len(kinds) > 1:
            raise refuse("TypeError", f"the items of `{name}` are numbers and texts", help="give all of one kind")
    parts = []
    for i in range(max(lengths)):
        part: Table = derive(table, [(name, items[i]) for name, items in columns])
        for name, _ in columns:
            for condition in _there(name, part):
                left = where(part, condition)
                part = left if isinstance(left, Table) else part
        parts.append(part)
    return union(parts)


def _there(name: str, table: Table) -> list[RowExpr]:
    """Whether there is an item: no missing one, and no text that is empty or blank, where one can be."""
    item = Column(name)
    conditions: list[RowExpr] = [Apply("not", (Apply("missing", (item,)),))]
    if kind_of(item, table.domains) == "text":
        listed = text_values(item, table.domains)
        if listed is None or not all(map(str.strip, listed)):
            conditions.append(Apply("!=", (Apply("trim", (item,)), Constant(""))))
    return conditions
