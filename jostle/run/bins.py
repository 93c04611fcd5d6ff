"""Numbers in bins: the row expression that says how many edges a number reaches, and the edges of a column made so.

The edges stand in the program, so they are public, and a model of bins can print the numbers that they stand for.
"""

from __future__ import annotations

from collections.abc import Sequence

from jostle.plan.plan import Apply, Column, Constant, Derive, Filter, RowExpr
from jostle.privacy.kernel.handles import ColumnHandle

_ONE, _NONE_YET = Constant(1.0), Constant(0.0)


def bin_number(name: str, edges: Sequence[float]) -> RowExpr:
    """How many of the rising `edges` a column's number reaches; none where it is missing."""
    total: RowExpr = Apply("if", (Apply("missing", (Column(name),)), Constant(None), _NONE_YET))
    for edge in edges:
        reached = Apply("if", (Apply(">=", (Column(name), Constant(edge))), _ONE, _NONE_YET))
        total = Apply("+", (total, reached))
    return total


def edges_of(column: ColumnHandle) -> list[float]:
    """The edges of a column that is a `bin_number`, rising; empty for any other column."""
    name, plan = column.name, column.table.plan
    while isinstance(plan, Derive | Filter):
        made = dict(plan.columns).get(name) if isinstance(plan, Derive) else None
        if made is not None and not isinstance(made, Column):
            return _edges(made)
        name, plan = made.name if isinstance(made, Column) else name, plan.source
    return []


def _edges(expr: RowExpr) -> list[float]:
    """The edges of which `expr` is the `bin_number` of some column; empty where it is none."""
    edges: list[float] = []
    rest = expr
    while True:
        match rest:
            case Apply(op="+", args=(rest, Apply(args=(Apply(args=(Column(), Constant(value=float() as edge))), *_)))):
                edges.insert(0, edge)
            case Apply(op="if", args=(Apply(args=(Column(name=name),)), *_)):
                return edges if expr == bin_number(name, edges) else []
            case _:
                return []
