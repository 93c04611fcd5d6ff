"""A plan without the columns of data sets that a question does not ask for: each is SQL that a server has to read.

Only what filters and derived columns are made of is left out. Which rows of a person stay is decided by all columns.
"""

from __future__ import annotations

from collections.abc import Iterable

from jostle.plan.plan import Apply, Column, Derive, Filter, Plan, RowExpr, Scan
from jostle.records import replace


def narrowed(plan: Plan, asked: Iterable[RowExpr]) -> Plan:
    """The same rows, with the columns that `asked` has in it."""
    return _narrowed(plan, names_in(asked))


def _narrowed(plan: Plan, names: set[str]) -> Plan:
    if isinstance(plan, Filter):
        return replace(plan, source=_narrowed(plan.source, names | names_in([plan.condition])))
    if isinstance(plan, Derive):
        kept = tuple(column for column in plan.columns if column[0] in names)
        return replace(plan, source=_narrowed(plan.source, names_in(expr for _, expr in kept)), columns=kept)
    if isinstance(plan, Scan):
        return replace(plan, columns=tuple(column for column in plan.columns if column[0] in names))
    return plan


def names_in(exprs: Iterable[RowExpr]) -> set[str]:
    """The columns that expressions are made of."""
    waiting, names = list(exprs), set[str]()
    while waiting:
        expr = waiting.pop()
        if isinstance(expr, Column):
            names.add(expr.name)
        elif isinstance(expr, Apply):
            waiting += expr.args
    return names
