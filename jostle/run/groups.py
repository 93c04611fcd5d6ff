"""`having`, `order by` and `limit`: what is done with the groups of a select once they are released.

They read released values alone, so they cost nothing and need no argument: which groups are left out, and in which
order the others come, follows from what was published about all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

from msgspec import Struct

from jostle.diagnostics import Refusal, refuse
from jostle.language.forms import aggregates
from jostle.language.moments import number_of
from jostle.language.row_mistakes import not_measured, not_released
from jostle.privacy.kernel.handles import Cube, Table
from jostle.run.evaluator import Evaluator
from jostle.run.inlined import calculates as built_in
from jostle.run.scope import MISSING, Scope
from jostle.run.select_forms import Output
from jostle.run.values import is_number, kind_name
from jostle.syntax import nodes as n
from jostle.syntax.walk import every


class Arrangement(Struct, frozen=True):
    """Which groups are shown, and in which order; checked before anything is measured."""

    node: n.Select
    most: int | None
    scope: Scope

    @staticmethod
    def of(
        interp: Evaluator,
        node: n.Select,
        keys: Sequence[str],
        outputs: Sequence[Output],
        table: Table | Cube,
        scope: Scope,
    ) -> Arrangement:
        for expr in _expressions(node):
            names = [*keys, *(output.name for output in outputs)]
            measured = [call for output in outputs for call in output.calls]
            rows = f"of rows write `where {expr.span.text}` before the groups" if expr is node.having else ""
            _need_released(expr, names, measured, [name for name, _ in table.schema], rows, scope)
        most = None
        if node.first is not None:
            value = interp.eval(node.first, scope)
            if not is_number(value) or value < 0 or not float(value).is_integer():
                raise refuse("ValueError", "`limit` takes a whole number of groups", node.first.span)
            most = int(value)
        return Arrangement(node, most, scope)

    def arranged(
        self, interp: Evaluator, columns: dict[str, list[Any]], calls: Sequence[n.Call], values: Sequence[Sequence[Any]]
    ) -> dict[str, list[Any]]:
        """The columns of a result, with some of their rows in some order."""
        many = len(next(iter(columns.values()), []))
        places = list(range(many))

        def value(expr: n.Expr, row: int) -> Any:
            given = {id(call): values[_place(call, calls)][row] for call in aggregates(expr)}
            outer, interp.given = interp.given, {**interp.given, **given}
            inner = Scope(self.scope, {name: column[row] for name, column in columns.items()})
            inner.groups = True
            try:
                return interp.eval(expr, inner)
            finally:
                interp.given = outer

        having = self.node.having
        if having is not None:
            places = [row for row in places if interp.truth(value(having, row), having)]
        for rank in reversed(self.node.ranking):
            order = [(_order(value(rank.value, row), rank.value), row) for row in places]
            valued = [(of, row) for of, row in order if of is not None]
            valued.sort(key=lambda pair: pair[0], reverse=rank.descending)
            places = [row for _, row in valued] + [row for of, row in order if of is None]
        places = places[: self.most]
        return {name: [column[row] for row in places] for name, column in columns.items()}


def _expressions(node: n.Select) -> list[n.Expr]:
    having = [] if node.having is None else [node.having]
    return [*having, *[rank.value for rank in node.ranking]] if node.ranking else having


def _order(value: Any, node: n.Expr) -> tuple[int, Any] | None:
    """What a value is ordered by; `none` comes last either way."""
    if value is None:
        return None
    if isinstance(value, str):
        return (1, value)
    if isinstance(value, bool) or is_number(value):
        return (0, float(value))
    if isinstance(value, date):
        return (0, number_of(value))
    raise refuse("TypeError", f"groups are ordered by numbers, texts or dates, not {kind_name(value)}", node.span)


def _place(call: n.Call, calls: Sequence[n.Call]) -> int:
    return next(i for i, other in enumerate(calls) if other == call)


def _need_released(
    expr: n.Expr, names: Sequence[str], measured: Sequence[n.Call], columns: Sequence[str], rows: str, scope: Scope
) -> None:
    """Refuses what would need a measurement, and names that are nothing here."""
    for call in aggregates(expr):
        if call not in measured:
            raise Refusal(not_measured(call))
    for part in _outside_aggregates(expr):
        if isinstance(part, n.Name) and part.id not in names and scope.find(part.id) is MISSING:
            raise Refusal(not_released(part, names, columns, rows))
        calculates = not isinstance(part, n.Query | n.Select | n.Spending | n.Call | n.Choice)
        if not calculates and not (isinstance(part, n.Call) and built_in(part, scope)):
            raise refuse(
                "TypeError", "`having` and `order by` only calculate with what is released", part.span,
                help="work this out before the query, and give it a name",
            )  # fmt: skip


def _outside_aggregates(node: n.Expr) -> Iterator[n.Node]:
    measured = {id(part) for call in aggregates(node) for part in every(call)}
    return (part for part in every(node) if id(part) not in measured)
