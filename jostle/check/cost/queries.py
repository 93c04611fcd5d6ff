"""Queries and transformations before the run: what is charged by a select, and on which path a handle lies.

Follows `run.selects`, `run.forms` and `privacy.transform`. A part by a column or a key that is not known is counted as
one that overlaps with all others, so that what is spent on it adds to what is spent on them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jostle.check.cost.sources import keys_of, told_apart
from jostle.check.cost.tree import EACH, Why
from jostle.check.cost.values import (
    ANYTHING,
    MISSING,
    PUBLIC,
    Exposure,
    Handle,
    Items,
    Range,
    Scope,
    Set,
    Ways,
    any_of,
    blurred,
    harmless,
    joined_exposures,
    met_in,
)  # fmt: skip
from jostle.check.cost.ways import TooLong, walked
from jostle.language import facts
from jostle.language.aggregates import AGGREGATES
from jostle.language.facts import Effect, Gives
from jostle.syntax import nodes as n
from jostle.syntax.walk import children, every

if TYPE_CHECKING:
    from jostle.check.cost.walk import Walker

MOST_PARTS = 400  # of one partition that are told apart


def count_bare(node: n.Node) -> int:
    """How many selects of a query say no amount of their own."""
    own = 1 if isinstance(node, n.Select) and node.spend is None else 0
    return own + sum(count_bare(child) for child in children(node))


def select(w: Walker, node: n.Select, scope: Scope) -> Any:
    table = w.eval(node.table, scope)
    whole = isinstance(table, Handle) and table.whole and not node.joins and node.where is None
    for joined in node.joins:
        other = w.eval(joined.table, scope)
        if joined.up_to is not None:
            w.eval(joined.up_to, scope)
        table = _joined(table, other)
    schema = table.schema if isinstance(table, Handle) else None
    if node.where is not None:
        values = {"values": PUBLIC} if schema is not None and table.kind == "cube" else {}
        rows(w, node.where, schema | values if schema is not None else None, scope)
    for key in node.keys:
        rows(w, key.value, schema, scope)
        if key.over is not None:
            w.eval(key.over, scope)
    outputs = [(column.value, list(_aggregates(column.value))) for column in node.columns]
    found = [call for _, inside in outputs for call in inside]
    for call in found:
        _arguments(w, call, schema, scope)
    met = met_in(table)
    own = w.amount(node.spend.amount, scope, met) if node.spend is not None else None
    free = whole and not node.keys and len(found) == len(node.columns) == 1 and _is_count_all(found[0])
    free = free and bool(met.exposures) and all(e.source.public_size for e in met.exposures)
    if (met.exposures or met.open) and not free:
        if own is None:
            own = w.bare(met, max(1, w.bare_left))
            w.bare_left = max(0, w.bare_left - 1)
        w.charge(met, *own, Why("an amount is not known", node.span))
    for value, inside in outputs:
        if not (len(inside) == 1 and value is inside[0]):
            _after(w, value, inside, bool(node.keys), scope)
    return PUBLIC


def _after(w: Walker, value: n.Expr, inside: list[n.Call], grouped: bool, scope: Scope) -> None:
    """An output that is calculated from aggregates, once a group."""
    kept, w.given = w.given, w.given | {id(call) for call in inside}

    def each(_: Any) -> bool:
        w.eval(value, scope)
        return True

    w.loop(scope, value.span, Items(PUBLIC) if grouped else [PUBLIC], set(), each)
    w.given = kept


def _aggregates(node: n.Node) -> Iterator[n.Call]:
    if isinstance(node, n.Call) and isinstance(node.function, n.Name) and node.function.id in AGGREGATES:
        of_a_row = node.function.id in ("min", "max") and len(node.args) == 2
        if not of_a_row:
            yield node
            return
    if isinstance(node, n.Select):
        return
    for child in children(node):
        yield from _aggregates(child)


def _is_count_all(call: n.Call) -> bool:
    named = isinstance(call.function, n.Name) and call.function.id == "count"
    return named and len(call.args) == 1 and isinstance(call.args[0], n.Star)


def _arguments(w: Walker, call: n.Call, schema: dict[str, Any] | None, scope: Scope) -> None:
    for at, arg in enumerate(call.args):
        if at == 1:
            w.eval(arg, scope)
        elif isinstance(arg, n.Distinct):
            rows(w, arg.value, schema, scope)
        elif not isinstance(arg, n.Star):
            rows(w, arg, schema, scope)


def _joined(left: Any, right: Any) -> Any:
    if not (isinstance(left, Handle) and isinstance(right, Handle)):
        met = met_in(left, right)
        if met.open:
            return ANYTHING
        made = Handle("table", met.exposures)
        return made if met.certain else Ways((made, PUBLIC))
    schema = {**right.schema, **left.schema} if left.schema is not None and right.schema is not None else None
    exposures = tuple(replace(e, joined=True) for e in joined_exposures([left, right]))
    return Handle("table", exposures, schema)


# Expressions on rows -----------------------------------------------------------------------------


def rows(w: Walker, node: n.Expr, schema: dict[str, Any] | None, scope: Scope) -> None:
    """Evaluates the parts of an expression on rows that name no column, as a run does, once each."""
    if schema is None:
        w.maybe(lambda: _rows(w, node, None, scope))
    else:
        _rows(w, node, schema, scope)


def _rows(w: Walker, node: n.Expr, schema: dict[str, Any] | None, scope: Scope) -> None:
    if isinstance(node, n.Name):
        w.find(scope, node.id)
    elif not _names_column(w, node, schema, scope):
        w.eval(node, scope)
    elif isinstance(node, n.Binary) and node.op in ("in", "not in"):
        _rows(w, node.left, schema, scope)
        w.eval(node.right, scope)
    else:
        for part in _row_parts(node):
            _rows(w, part, schema, scope)


def _names_column(w: Walker, node: n.Expr, schema: dict[str, Any] | None, scope: Scope) -> bool:
    if isinstance(node, n.Name):
        return node.id in schema if schema is not None else w.find(scope, node.id) is MISSING
    if isinstance(node, n.Binary) and node.op in ("in", "not in"):
        return _names_column(w, node.left, schema, scope)
    return any(_names_column(w, part, schema, scope) for part in _row_parts(node))


def _row_parts(node: n.Expr) -> list[n.Expr]:
    match node:
        case n.Unary():
            return [node.operand]
        case n.Binary():
            return [node.left, node.right]
        case n.Logic():
            return list(node.operands)
        case n.Conditional():
            return [node.test, node.then, node.other]
        case n.Call():
            return [*node.args, *(k.value for k in node.keywords)]
    return []


def _column(w: Walker, node: n.Expr, handle: Handle, scope: Scope) -> str | None:
    """The column that an expression names, or None where it is none or not known."""
    if not isinstance(node, n.Name) or handle.schema is None:
        return None
    if node.id in handle.schema:
        return node.id
    named = w.find(scope, node.id)
    if isinstance(named, Handle) and named.kind == "column":
        named = named.name
    return named if isinstance(named, str) and named in handle.schema else None


# Forms -------------------------------------------------------------------------------------------


def row_form(w: Walker, row: facts.Builtin, node: n.Call, scope: Scope) -> Any:
    """A built-in whose arguments after the first are expressions on rows."""
    table = w.eval(node.args[0], scope) if node.args else PUBLIC
    schema = table.schema if isinstance(table, Handle) else None
    if row.effect is Effect.PURE:
        for arg in node.args[1:]:
            _conditions(w, arg, schema, scope)
        return PUBLIC
    for arg in node.args[1:]:
        rows(w, arg, schema, scope)
    over = MISSING
    for keyword in node.keywords:
        if keyword.name == "over":
            over = w.eval(keyword.value, scope)
        else:
            rows(w, keyword.value, schema, scope)
    return _formed(w, row, table, node, over, scope)


def _conditions(w: Walker, node: n.Expr, schema: dict[str, Any] | None, scope: Scope) -> None:
    """What is evaluated for `predicates`; a comprehension that calls anything is not followed."""
    if isinstance(node, n.ListOf):
        for item in node.items:
            _conditions(w, item, schema, scope)
    elif isinstance(node, n.Comprehension):
        w.eval(node.source, scope)
        if any(isinstance(inside, n.Call | n.Query) for inside in every(node.item)):
            raise TooLong(Why("it calls functions for each of many conditions", node.span))
    else:
        rows(w, node, schema, scope)


def _formed(w: Walker, row: facts.Builtin, table: Any, node: n.Call, over: Any, scope: Scope) -> Any:
    if isinstance(table, Ways):
        return any_of([_formed(w, row, way, node, over, scope) for way in table.values])
    if not isinstance(table, Handle):
        blank = ANYTHING if table is ANYTHING else PUBLIC
        pairs = row.gives is Gives.PARTS
        return Items([PUBLIC, blank]) if pairs else Items(blank) if row.gives is Gives.COLUMNS else blank
    exposures, schema = table.exposures, table.schema
    match row.gives:
        case Gives.PARTS:
            return _partition(w, table, node, over, scope)
        case Gives.FILTERED:
            return _filtered(table)
        case Gives.COLUMNS:
            if schema is None:
                return Items(Handle("column", exposures, None, None, False, ""))
            return [Handle("column", exposures, schema, None, False, column) for column in schema]
        case Gives.SCORE | Gives.VECTORS:
            return Handle("score" if row.gives is Gives.SCORE else "vectors", exposures) if exposures else PUBLIC
        case Gives.CUBE:
            named = [_column(w, arg, table, scope) or "xyz"[min(i, 2)] for i, arg in enumerate(node.args[1:])]
            unsure = any(isinstance(arg, n.Name) and _column(w, arg, table, scope) is None for arg in node.args[1:])
            dims = dict.fromkeys((*named, *(k.name for k in node.keywords)), PUBLIC)
            return Handle("cube", exposures, None if unsure else dims)
        case Gives.DERIVED:
            made = {k.name: PUBLIC for k in node.keywords}
            return Handle("table", exposures, {**schema, **made} if schema is not None else None)
        case Gives.PICKED:
            picked = [_column(w, arg, table, scope) for arg in node.args[1:]]
            known = [column for column in picked if column is not None]
            whole = schema is not None and len(known) == len(picked)
            return Handle("table", exposures, {c: schema[c] for c in known} if schema is not None and whole else None)
    return ANYTHING  # a form that is not followed


def _filtered(table: Handle) -> Handle:
    return Handle(table.kind, table.exposures, table.schema, table.origin)


def _partition(w: Walker, table: Handle, node: n.Call, over: Any, scope: Scope) -> Any:
    column = _column(w, node.args[1], table, scope) if len(node.args) > 1 else None
    keys = _listed(over) if over is not MISSING else None
    if over is MISSING and column is not None and table.schema is not None:
        keys = keys_of(table.schema[column])
    known = keys is not None and len(keys) <= MOST_PARTS
    label = _label(table, column, "floor") if known else None
    if label is None:
        label = object()
    if keys is None or not known:
        expr = node.args[1] if len(node.args) > 1 else None
        if isinstance(expr, n.Name) and table.origin is not None:  # other parts may belong to the same partition
            _vague(table)
        some = int(isinstance(expr, n.Binary) and over is MISSING)  # numbers between two bounds: at least one key
        least, most = (len(keys), len(keys)) if keys is not None else (some, None)
        return Items([PUBLIC, _extended(table, label, EACH)], least, most, part_of=label)
    return [[key, _extended(table, label, key)] for key in keys]


def _listed(value: Any) -> list[Any] | None:
    """Keys that a program lists: numbers are taken down, each stands once."""
    items = value.items if isinstance(value, Set) else value
    if isinstance(value, Range):
        items = walked(value)
    if not isinstance(items, list) or not all(isinstance(v, (float, str, bool)) for v in items):
        return None
    if any(isinstance(v, float) and not math.isfinite(v) for v in items):
        return None
    return list(dict.fromkeys(float(math.floor(v)) if isinstance(v, float) else v for v in items))


def _label(table: Handle, column: str | None, how: str) -> Hashable | None:
    """The partition that a part by a bare column of an unaltered table belongs to."""
    if table.origin is None or column is None or table.schema is None:
        return None
    if told_apart(table.schema[column]):
        _vague(table)
        return (table.origin, column, how)
    return (table.origin, column)


def _extended(table: Handle, label: Hashable, part: Hashable) -> Handle:
    kept = tuple(Exposure(e.source, (*e.path, (label, part)), e.agents) for e in table.exposures)
    return Handle(table.kind, kept, table.schema, table.origin)


def _vague(table: Handle) -> None:
    for exposure in table.exposures:
        exposure.source.vague = True


# Indexing ----------------------------------------------------------------------------------------


def index(w: Walker, node: n.Index, scope: Scope) -> Any:
    value = w.eval(node.value, scope)
    if isinstance(value, Handle) or (isinstance(value, Ways) and not harmless(value)):
        return _rows_of(w, value, node, scope)
    at = [w.eval(arg, scope) for arg in node.args]
    for keyword in node.keywords:
        w.eval(keyword.value, scope)
    return _element(value, at[0] if len(at) == 1 else PUBLIC)


def _element(value: Any, at: Any) -> Any:
    if isinstance(value, dict):
        return value.get(at, PUBLIC) if isinstance(at, str) else any_of(list(value.values()))
    if isinstance(value, (list, str)):
        if isinstance(at, float) and at.is_integer() and -len(value) <= at < len(value):
            return value[int(at)]
        return PUBLIC if isinstance(value, str) or isinstance(at, float) or not value else any_of(value)
    if isinstance(value, Items):
        return value.item
    return blurred(value)


def _rows_of(w: Walker, value: Any, node: n.Index, scope: Scope) -> Any:
    """`D[a = v, b = w]` and `D[E, ]`."""
    schema = value.schema if isinstance(value, Handle) else None
    for condition in node.args:
        rows(w, condition, schema, scope)
    given = [(keyword.name, w.eval(keyword.value, scope)) for keyword in node.keywords]
    if isinstance(value, Ways):
        # A list among the ways would be indexed by value; any of its items then.
        return any_of([
            _parts_where(w, way, given, bool(node.args), scope) if isinstance(way, Handle) else _element(way, PUBLIC)
            for way in value.values
        ])  # fmt: skip
    return _parts_where(w, value, given, bool(node.args), scope)


def _parts_where(w: Walker, table: Handle, given: list[tuple[str, Any]], filtered: bool, scope: Scope) -> Handle:
    made = _filtered(table)
    for name, value in given:
        column = _column_named(w, name, table, scope)
        known = column is not None and isinstance(value, (float, str, bool))
        label = _label(made, column, "exact") if known else None
        if label is not None:
            made = _extended(made, label, value)
        else:  # a part that is not known: counted as if it overlapped with all others
            _vague(made)
            made = _extended(made, object(), EACH)
    return made


def _column_named(w: Walker, name: str, table: Handle, scope: Scope) -> str | None:
    if table.schema is None:
        return None
    if name in table.schema:
        return name
    named = w.find(scope, name)
    if isinstance(named, Handle) and named.kind == "column":
        named = named.name
    return named if isinstance(named, str) and named in table.schema else None
