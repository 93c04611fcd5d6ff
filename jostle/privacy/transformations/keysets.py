"""Groups by listed combinations of keys: each row beside the place of its combination in a public list.

*Argument.* The rows are joined with the list, in which a combination stands once: a row meets at most one, and k
changed rows stay k (`joins`). So groups by the place cost what groups by one key cost. The list is public: it stands in
the program, comes from a public table, or was measured and paid for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jostle.plan.domains import Domain, Integer, Open
from jostle.plan.keys import need_unicode
from jostle.plan.kinds import as_number, kind_of, mixed, value_kind
from jostle.plan.plan import Column, Derive, Join, Listed, RowExpr
from jostle.plan.schemas import schema_of
from jostle.privacy.kernel.handles import Table
from jostle.records import replace

PLACE = "\0place"
"""The column of places; no program can write its name."""
_STORED = {"text": "text", "date": "date", "time": "time"}


def with_place(table: Table, exprs: Sequence[RowExpr], rows: Sequence[tuple[Any, ...]]) -> Table:
    """The rows whose values of the expressions are listed, with the place of these in the list as a further column.

    `rows` are all different; values are compared as they are. Stability is the table's.
    """
    for i, expr in enumerate(exprs):
        for value in {type(row[i]): row[i] for row in rows}.values():
            kind = value_kind(value)
            if kind != kind_of(expr, table.domains):
                raise mixed("`over`", kind_of(expr, table.domains), kind)
    names = tuple(f"\0key{i}" for i in range(len(exprs)))
    own: list[tuple[str, RowExpr]] = [(name, Column(name)) for name in table.domains]
    keys = [(name, as_number(expr, table.domains)) for name, expr in zip(names, exprs, strict=True)]
    kinds: list[Domain] = [Open(_STORED.get(kind_of(expr, table.domains), "real")) for expr in exprs]
    cells = tuple((*map(_cell, row), float(place)) for place, row in enumerate(rows))
    columns = (*zip(names, kinds, strict=True), (PLACE, Integer(0, max(0, len(rows) - 1))))
    plan = Join(Derive(table.plan, (*own, *keys)), Listed(columns, cells), names)
    return replace(table, plan=plan, schema=tuple(schema_of(plan).items()), origin=None)


def _cell(value: Any) -> Any:
    need_unicode(value)
    return float(value) if isinstance(value, bool) else value
