"""Selects before the run: what one charges, and what is known of its answer. Follows `run.selects`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeGuard

from jostle.check.costs.rows import columns_of, keys_of, of_rows
from jostle.check.costs.values import (
    PUBLIC,
    TOP,
    Handle,
    Items,
    OneOf,
    ReachedSources,
    ends,
    joined_exposures,
    protected,
    reached_sources,
    walked,
)  # fmt: skip
from jostle.check.costs.walk import Bounds, Walk
from jostle.language.aggregates import AGGREGATES
from jostle.language.forms import PERSON, aggregates, keys_by_alias, persons_by_column
from jostle.records import replace
from jostle.run.scope import Scope
from jostle.run.values import Interval
from jostle.syntax import nodes as n
from jostle.syntax.walk import own_name


def transfer_select(w: Walk, node: n.Select, scope: Scope) -> object:
    table = w.eval(node.table, scope)
    whole = isinstance(table, Handle) and table.whole and not node.joins and node.where is None
    for joined in node.joins:
        other = w.eval(joined.table, scope)
        if joined.up_to is not None:
            w.eval(joined.up_to, scope)
        table = joined_tables(table, other)
    schema = (table.schema if isinstance(table, Handle) else None) or {}
    node = persons_by_column(keys_by_alias(node, schema), schema, protected(table))
    outputs = [(column.value, aggregates(column.value)) for column in node.columns]
    calls = [call for _, inside in outputs for call in inside]
    table, least, most = _row_clauses(w, node, table, calls, scope)
    if node.per is not None:
        return grouped_rows(table, node)
    free = whole and len(calls) == len(node.columns) == 1 and _is_count_all(calls[0])
    if most != 0:  # else no group is asked for, and nothing is charged
        _charged(w, node, reached_sources(table), schema, free, least > 0, scope)
    for value, inside in outputs:
        if not (len(inside) == 1 and value is inside[0]):
            _after(w, value, inside, bool(node.keys), scope)
    return PUBLIC


def _row_clauses(
    w: Walk, node: n.Select, table: object, calls: list[n.Call], scope: Scope
) -> tuple[object, float, float | None]:
    """Looks at what is read row by row: the condition, the keys and the aggregates; gives the table within limits, and
    how many keys are listed and groups shown, at least and at most."""
    if node.where is not None:
        of_rows(w, node.where, columns_of(table), scope)
    schema = table.schema if isinstance(table, Handle) else None
    groups: list[tuple[float, float | None]] = [] if node.first is None else [ends(w.eval(node.first, scope))]
    for key in (*(node.per or ()), *node.keys):
        of_rows(w, key.value, schema, scope)
        if key.running and isinstance(table, Handle):  # a stream of registered data counts on the whole
            some = (replace(e, path=()) if e.source.inexact else e for e in table.exposures)
            table = replace(table, exposures=tuple(some))
        if key.over is not None:
            listed = walked(w.eval(key.over, scope))
            groups.append((listed.least, listed.most) if isinstance(listed, Items) else (len(listed), len(listed)))
    table = on_whole(table) if node.per is None and _asks_for_persons(table, calls) else limited(w, table, node, scope)
    for call in calls:
        _arguments(w, call, schema, scope)
    if not groups:
        return table, 1, None
    return table, min(least for least, _ in groups), min(math.inf if most is None else most for _, most in groups)


def _charged(
    w: Walk, node: n.Select, reached: ReachedSources, schema: dict[str, object], counts_all: bool, sure: bool,
    scope: Scope,
) -> None:  # fmt: skip
    """Charges a select: its own amount, or its share of what is left. A count of a public size may be free."""
    wished = w.joint and node.spend is not None and node.spend.amount.is_wish
    own = w.amount_bounds(node.spend.amount, scope, reached) if node.spend is not None else None
    own = None if wished else own
    free = counts_all and bool(reached.exposures) and all(e.source.public_size for e in reached.exposures)
    if not (reached.exposures or reached.open) or (
        free and all(_is_public_group(key, schema, reached) for key in node.keys)
    ):
        return
    if w.joint and own is None:
        reached, own = _of_block(w, reached)
    if own is None:
        own = w.bare(reached, max(1, w.bare_left), needed=not free)
        w.bare_left = max(0, w.bare_left - 1)
    w.charge(reached, own if sure and not free else (0, *own[1:]), node.span, in_part=_in_part(node, schema))


def _of_block(w: Walk, reached: ReachedSources) -> tuple[ReachedSources, Bounds]:
    """What the first select of a block spends, and where: all that is left; of parts, at most on the whole."""
    whole = replace(reached, exposures=tuple(replace(e, path=(), joined=True) for e in reached.exposures))
    least, most, delta = w.bare(whole, 1, needed=False)
    return whole, (0 if any(e.path for e in reached.exposures) else least, most, delta if most else 0)


def _in_part(node: n.Select, schema: dict[str, object]) -> bool:
    """Whether all keys are certainly described or listed and no noise is named, so that no δ counts for the whole."""
    for key in node.keys:
        domain = schema.get(key.value.id) if isinstance(key.value, n.Name) else None
        if key.over is None and not isinstance(domain, Interval) and keys_of(domain) is None:
            return False
    return node.spend is None or node.spend.via is None


def _is_public_group(key: n.GroupKey, schema: dict[str, object], reached: ReachedSources) -> bool:
    """Whether a key is certainly a listed column by which the sizes of groups are public."""
    if not isinstance(key.value, n.Name) or keys_of(schema.get(key.value.id)) is None:
        return False
    sources = [e.source for e in reached.exposures]
    protecting = [None if source.inexact else source.declared.protecting for source in sources]
    return all(p is not None and key.value.id in p.groups for p in protecting)


def limited(w: Walk, table: object, node: n.Select, scope: Scope) -> object:
    """The table that a select reads within its `up to`; what is bounded anew by person is charged to the whole."""
    if node.limit is None and node.per is None:
        return table
    for number in () if node.limit is None else (node.limit.groups, node.limit.rows):
        if number is not None:
            w.eval(number, scope)
    if not isinstance(table, Handle):
        return table
    return on_whole(table, node.limit is None and all(own_name(key.value) != PERSON for key in node.per or ()))


def on_whole(table: Handle, by_value: bool = False) -> Handle:
    """A table in which persons' rows are bounded anew, or grouped `by_value`: then a row moves a group of its part."""
    exposures = []
    for e in table.exposures:
        path = e.path if by_value and e.source.single else ()
        e.source.inexact = e.source.inexact or path != e.path
        exposures.append(replace(e, path=path, joined=True))
    return Handle("table", tuple(exposures), table.schema)


def _asks_for_persons(table: object, calls: list[n.Call]) -> TypeGuard[Handle]:
    """Whether `count(distinct COLUMN)` stands alone, and may be of persons: they are rows of a table of their own."""
    match calls:
        case [n.Call(function=n.Name(id="count"), args=(n.Distinct(value=n.Name(id=name)),))] if isinstance(
            table, Handle
        ):
            columns = {column for e in table.exposures for column in e.source.persons}
            described = table.schema is not None and table.schema.get(name, PUBLIC) is not PUBLIC
            return bool(columns) and (name in columns or not described)
    return False


def grouped_rows(table: object, node: n.Select) -> object:
    """`per person`: a table that is as private, with a row for each person or group."""
    if not isinstance(table, Handle):
        return TOP if table is TOP else PUBLIC
    key_nodes = [key for key in (*(node.per or ()), *node.keys) if own_name(key.value) != PERSON]
    keys = [key.name or key.value.id for key in key_nodes if isinstance(key.value, n.Name)]
    names = [column.name or own_name(column.value) for column in node.columns]
    certain = all(names) and len(keys) == len(key_nodes)
    columns: dict[str, object] = dict.fromkeys([name for name in (*keys, *names) if name], PUBLIC)
    if table.schema is not None:
        columns |= {key: table.schema[key] for key in keys if key in table.schema}
    return Handle("table", table.exposures, columns if certain else None)


def _after(w: Walk, value: n.Expr, inside: list[n.Call], grouped: bool, scope: Scope) -> None:
    """An output that is calculated from aggregates, once a group."""
    exposures, w.measured = w.measured, w.measured | {id(call) for call in inside}

    def each(_: object) -> bool:
        w.eval(value, scope)
        return True

    w.loop(scope, value.span, Items(PUBLIC) if grouped else [PUBLIC], set(), each)
    w.measured = exposures


def _is_count_all(call: n.Call) -> bool:
    is_count = isinstance(call.function, n.Name) and call.function.id == "count"
    return is_count and len(call.args) == 1 and isinstance(call.args[0], n.Star)


def _arguments(w: Walk, call: n.Call, schema: dict[str, object] | None, scope: Scope) -> None:
    expressions = AGGREGATES[call.function.id].expressions if isinstance(call.function, n.Name) else 0
    for at, arg in enumerate(call.args):
        if at >= expressions:
            w.eval(arg, scope)
        else:
            of_rows(w, arg, schema, scope)


def joined_tables(left: object, right: object) -> object:
    if not (isinstance(left, Handle) and isinstance(right, Handle)):
        return some_table(left, right)
    return joined_handles(left, right)


def some_table(*values: object, kind: str = "table") -> object:
    """What may be made of any handles that are in these."""
    reached = reached_sources(*values)
    if reached.open or not reached.exposures:
        return TOP if reached.open else PUBLIC
    exposures = tuple(replace(e, joined=True) for e in reached.exposures)
    return OneOf((Handle(kind, exposures), PUBLIC)) if not reached.certain else Handle(kind, exposures)


def joined_handles(left: Handle, right: Handle) -> Handle:
    schema = {**right.schema, **left.schema} if left.schema is not None and right.schema is not None else None
    exposures = tuple(replace(e, joined=True) for e in joined_exposures([left, right]))
    return Handle("table", exposures, schema)


# Weighted records ---------------------------------------------------------------------------------


def weighted_records(function: str, args: Sequence[object]) -> object:
    """What a built-in makes of its arguments, records or a table."""
    handles = [arg for arg in args if isinstance(arg, Handle)]
    if len(handles) != 1 or not reached_sources(*args).certain:
        return some_table(*args, kind="records")
    exposures = tuple(replace(e, joined=True) for e in handles[0].exposures)
    return Handle("records", exposures, handles[0].schema if function == "weighted" else None)
