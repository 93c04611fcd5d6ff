"""The tables that a select reads: what stands after `from`, and its joins.

Of two sides that have a column of one name the first has it; the other's is copied under its full name where the
select names it, as `b.x`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from jostle.diagnostics import Refusal, refuse
from jostle.language.forms import PERSON, is_smooth, no_free_join, qualified_names
from jostle.plan.plan import Column, person_columns
from jostle.privacy.kernel.handles import Cube, Table
from jostle.privacy.transformations import transform
from jostle.privacy.transformations.joins import FreeJoin, free_join, join
from jostle.privacy.transformations.persons import join_own_rows
from jostle.run import publictables
from jostle.run.clauses import whole
from jostle.run.evaluator import Evaluator, PlacedAt
from jostle.run.scope import Qualifiers, Scope, full_name
from jostle.run.select_forms import need_inner
from jostle.run.values import kind_name
from jostle.syntax import nodes as n


def _readable(interp: Evaluator, node: n.Expr, scope: Scope) -> Any:
    """What stands after `from` or `join`: records, a released result and synthetic rows are a public table there."""
    value: Any = interp.eval(node, scope)
    return publictables.table_of_rows(value, node.span) if publictables.is_rows(value) else value


def select_tables(interp: Evaluator, node: n.Select, scope: Scope) -> tuple[Table | Cube, Qualifiers]:
    """The table that a select reads, its joins included, and what its columns are called."""
    table = _readable(interp, node.table, scope)
    if not isinstance(table, (Table, Cube)):
        message, text = f"a select reads a table or a cube, and this is {kind_name(table)}", node.table.span.text
        help = 'write `from table("people.csv")`, or a name that a table has'
        if isinstance(table, list):
            help = "a part stands beside its key: write `for key, part in partition(…)`"
        if isinstance(table, str):
            help = f"write `from {table}`" if scope.holds(table) else f"write `from table({text})`"
        raise refuse("TypeError", message, node.table.span, help=help)
    tables, smooth = Qualifiers.of(node.table, dict(table.schema), node.alias), is_smooth(node)
    used = qualified_names(node) if node.joins else frozenset()
    for joined in node.joins:
        table = _joined(interp, table, joined, scope, tables, smooth, used)
    if smooth and table.private and not isinstance(table, FreeJoin):
        raise Refusal(no_free_join(node))
    return table, tables


def _joined(
    interp: Evaluator, left: Any, joined: n.Join, scope: Scope, tables: Qualifiers, smooth: bool,
    used: Collection[tuple[str, str]],
) -> Table:  # fmt: skip
    right = _readable(interp, joined.table, scope)
    for side in (left, right):
        if not isinstance(side, Table):
            raise refuse("TypeError", f"a join takes tables, and this is {kind_name(side)}", joined.span)
    most = whole(interp, joined.up_to, scope) if joined.up_to is not None else None
    shared = [match.column for match in joined.on if match.column == match.theirs]
    name = tables.add(joined.table, dict(right.schema), joined.alias, shared, joined.kind)
    left, right = (left, right) if smooth else _with_full_names(left, right, name, tables.apart(used))
    on = [(match.column, match.theirs) for match in joined.on if not _is_word(match.column, left, right)]
    own = len(on) < len(joined.on) or _tell_persons(left, right, on)
    bounded, sides = most is not None or own, publictables.known_sides(interp.data, left, right)
    with PlacedAt(joined.span):
        if isinstance(left, FreeJoin) or (smooth and not bounded and left.private and right.private):
            need_inner(joined, bounded)
            return free_join(*sides, on)
        if own and most is None and left.private and right.private:
            return join_own_rows(left, right, on, joined.kind)
        return join(interp.data, *sides, on, most, joined.kind)


def _with_full_names(left: Table, right: Table, name: str, hidden: Mapping[str, list[str]]) -> tuple[Table, Table]:
    """Both sides with copies of their hidden columns under their full names; `name` is what the right one is called."""
    for table, columns in hidden.items():
        copies = [(full_name(table, column), Column(column)) for column in columns]
        if table == name:
            right = transform.derive(right, copies)
        else:
            left = transform.derive(left, copies)
    return left, right


def _tell_persons(left: Table, right: Table, on: Collection[tuple[str, str]]) -> bool:
    """Whether columns that are joined on tell apart the persons of both sides."""
    return any(mine in person_columns(left.plan) and theirs in person_columns(right.plan) for mine, theirs in on)


def _is_word(name: str, left: Table, right: Table) -> bool:
    """Whether a name in `on` is `person`, and no column."""
    return name == PERSON and name not in left.domains and name not in right.domains
