"""Transformations of persons' rows, each with its stability (docs/privacy/transformations.md, "Persons apart").

The stability of a function that is applied to each person's rows separately is the number of rows that it leaves one
person:

* `truncate`: groups · rows, and at most the stability before.
* `group_rows` by person: 1, or with keys the number of a person's groups, which is at most the number of public keys
  and at most the rows before. By keys alone, which mixes persons: 2k, and rows no longer belong to a person.
* `join_own_rows`: k·k′, also if unmatched rows are kept.

Charges on parts count as their maximum only if k bounds the rows of the whole table. So after a new bound on a person's
rows the path is that of the whole table, or of the period if a person's rows in one are protected, and charges add up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jostle.diagnostics import refuse
from jostle.plan import plan as p
from jostle.plan.kinds import kind_of
from jostle.plan.schemas import grouped_by, person_columns, schema_of
from jostle.privacy.kernel.exposures import Exposure
from jostle.privacy.kernel.handles import Table
from jostle.privacy.transformations.joins import check_keys, join_exposures
from jostle.privacy.transformations.transform import PLACE, with_place
from jostle.records import replace


def truncate(
    table: Table, keys: Sequence[p.Key | p.RowExpr], groups: int | None, rows: int | None,
    order: p.RowExpr | None = None, descending: bool = False, *, in_all: bool = False,
) -> Table:  # fmt: skip
    """Keeps at most `groups` groups of each person and `rows` rows in each, or `rows` rows of a person `in_all`.

    Rows outside the groups of public keys are dropped first, so that they do not displace others; but not for the first
    rows `in_all` by an order, which are of any group. A bare expression is a key whose values are not public.
    """
    _need_persons(table, "contributions are bounded")
    plan = table.plan if in_all and order is not None else _in_listed(table, keys)
    exprs = tuple([grouped_by(key, table.domains) for key in keys])
    if order is not None and kind_of(order, table.domains) == "boolean":
        raise refuse("TypeError", "rows are put in order by numbers or texts", help="`up to 1 row by date`")
    if in_all:
        exprs, groups = (), None
    sizes = [len(key.values) for key in keys if isinstance(key, p.Key)]
    count = math.prod(sizes) if len(sizes) == len(keys) else None
    there = 1 if in_all else _least(groups, count)
    most = None if there is None or rows is None else there * rows
    exposures = tuple(_bounded(e, most, rows) for e in table.exposures)
    plan = p.Truncate(plan, exprs, groups if exprs else None, rows, order, descending)
    return replace(table, exposures=exposures, plan=plan, origin=None)


def group_rows(
    table: Table, person: bool, keys: Sequence[tuple[str, p.Key | p.RowExpr]], terms: Sequence[tuple[str, p.GroupTerm]]
) -> Table:
    """One row for each group of rows, or of each person's rows if `person` is true.

    Rows outside the groups of public keys are dropped.
    """
    if person and table.private:
        _need_persons(table, "rows are grouped by person")
    if table.weighted:
        raise refuse("TypeError", "rows that have weights are not grouped into rows", help="declare without `weighted`")
    if not (person and keys) and any(isinstance(term, p.Beside) for _, term in terms):
        raise refuse("TypeError", "rows of several persons have no order")  # one row would change its neighbours
    groups = _most_groups(table, [key for _, key in keys])
    exposures = tuple(replace(_bounded(e, groups, None), each=None) for e in table.exposures)
    if not person:
        exposures = tuple(replace(e, rows=None if e.rows is None else 2 * e.rows, each=None) for e in table.exposures)
    most = max((e.rows for e in table.exposures if e.rows is not None), default=None) if person else None
    exprs = tuple((name, grouped_by(key, table.domains)) for name, key in keys)
    plan = p.GroupRows(_in_listed(table, [key for _, key in keys]), person, exprs, tuple(terms), most)
    return Table(exposures, plan, tuple(schema_of(plan, table.facts).items()), facts=table.facts)


def persons_of_groups(table: Table, keys: Sequence[tuple[str, p.Key | p.RowExpr]]) -> Table:
    """One row for each person and group, to be counted by the same keys: a person has one row in a group."""
    grouped = group_rows(table, True, keys, ())
    return replace(grouped, exposures=tuple(replace(e, each=1) for e in grouped.exposures))


GROUPS = p.Column("\0groups")
"""The number of groups of a row's person. Programs cannot write this name."""


def of_persons(table: Table) -> Exposure | None:
    """The exposure of a table whose rows belong to known persons; None for others. Also None for a part, since a person
    may have rows, and a weight of 1, in each of several parts."""
    plan, exposures = table.plan, table.exposures
    if table.weighted or len(exposures) != 1 or exposures[0].path or not exposures[0].unit.columns:
        return None
    return exposures[0] if p.has_persons(plan) else None


def groups_of_person(table: Table, keys: Sequence[p.RowExpr]) -> int | None:
    """The largest number of groups by open keys that a person can be in; None if it is not bounded."""
    plan, exposure = table.plan, of_persons(table)
    if exposure is None:
        return None
    return _least(plan.groups if isinstance(plan, p.Truncate) and plan.keys == tuple(keys) else None, exposure.rows)


def bucket_of(keys: Sequence[p.RowExpr], buckets: int) -> p.RowExpr:
    """The public bucket of the values of keys, from 0: a hash of them."""
    return p.Apply("bucket", (p.Constant(float(buckets)), p.Constant(0.0), *keys))


BUCKET = p.Column("\0bucket")


def persons_by_buckets(table: Table, keys: Sequence[p.RowExpr], buckets: int) -> p.Plan:
    """One row for each person and bucket of the keys (`BUCKET`), from all rows before any truncation, with the number
    of the person's buckets (`GROUPS`)."""
    rows = table.plan.source if isinstance(table.plan, p.Truncate) else table.plan
    for key in keys:
        rows = p.Filter(rows, p.Apply("not", (p.Apply("missing", (key,)),)))
    plan = p.GroupRows(rows, True, ((BUCKET.name, bucket_of(keys, buckets)),), ())
    each = p.GroupRows(plan, True, (), ((GROUPS.name, p.Count()),), buckets)
    return p.Join(plan, each, (), person=True)


def persons_by_groups(
    table: Table, keys: Sequence[p.RowExpr], groups: int, earlier: Sequence[tuple[Any, ...]], among: p.RowExpr
) -> p.Plan:
    """One row for each person and group, at most `groups` of each person, with the number that it has (`GROUPS`).

    Rows that do not satisfy the condition `among`, and those of `earlier` keys, are dropped before groups are chosen
    and before any truncation.
    """
    limit = table.plan if isinstance(table.plan, p.Truncate) else None
    rows = replace(table, plan=p.Filter(table.plan if limit is None else limit.source, among))
    plan = _without(rows, keys, earlier) if earlier else rows.plan
    if limit is not None and limit.keys == tuple(keys):
        plan = replace(limit, source=plan, groups=groups, rows=1)
    else:
        plan = p.Truncate(plan if limit is None else replace(limit, source=plan), tuple(keys), groups, 1)
    each = p.GroupRows(plan, True, (), ((GROUPS.name, p.Count()),), groups)
    return p.Join(plan, each, (), person=True)


def _without(table: Table, exprs: Sequence[p.RowExpr], rows: Sequence[tuple[Any, ...]]) -> p.Plan:
    """The rows whose values of the expressions are not in the list `rows`, which has no duplicates."""
    placed = with_place(table, exprs, rows, "left").plan
    own: tuple[tuple[str, p.RowExpr], ...] = tuple([(name, p.Column(name)) for name in table.domains])
    return p.Derive(p.Filter(placed, p.Apply("missing", (p.Column(PLACE),))), own)


def _in_listed(table: Table, keys: Sequence[p.Key | p.RowExpr]) -> p.Plan:
    """The rows that are in a group of every key with public values."""
    plan = table.plan
    for key in keys:
        plan = p.Filter(plan, _listed(key, table)) if isinstance(key, p.Key) else plan
    return plan


def _most_groups(table: Table, keys: Sequence[p.Key | p.RowExpr]) -> int | None:
    """The largest number of groups by these keys that a person can have: by public values, or by a truncation."""
    own, plan = person_columns(table.plan), table.plan
    shared = [
        key for key in keys if not (isinstance((expr := grouped_by(key, table.domains)), p.Column) and expr.name in own)
    ]
    sizes = [len(key.values) for key in shared if isinstance(key, p.Key)]
    count = math.prod(sizes) if len(sizes) == len(shared) else None
    left = (
        isinstance(plan, p.Truncate)
        and plan.keys
        and {grouped_by(key, table.domains) for key in shared} <= set(plan.keys)
    )
    return _least(count, plan.groups if left else None)  # type: ignore[union-attr]


def join_own_rows(left: Table, right: Table, on: Sequence[tuple[str, str]], kind: str = "inner") -> Table:
    """Pairs of rows of two tables that belong to the same person and agree on `on`, pairs of columns.

    `kind` is `inner`, or `left`, which keeps unmatched rows of the left side.
    """
    if kind not in ("inner", "left"):
        raise refuse(
            "TypeError", f"persons' own rows are not joined by a {kind} join",
            help="put the table whose rows all stay first: `left join`",
        )  # fmt: skip
    check_keys(left, right, on)
    for side in (left, right):
        _need_persons(side, "rows are joined person by person")
    if left.exposures[0].source is not right.exposures[0].source:
        raise refuse(
            "TypeError", "these tables are not declared to be of the same persons",
            help=f"declare the second one `protecting {left.exposures[0].source.name}.…`, "
            "or join them on a column `up to 3`",
        )  # fmt: skip
    mine, theirs = tuple(name for name, _ in on), tuple(name for _, name in on)
    names = () if mine == theirs else theirs
    plan = p.Join(left.plan, right.plan, mine, person=True, theirs=names, kind=kind)
    schema = tuple(schema_of(plan, left.facts).items())
    (joined,) = join_exposures([left.exposures, right.exposures], [1, 1])
    rows = [side.exposures[0].rows for side in (left, right)]
    product = None if None in rows else math.prod(many for many in rows if many is not None)
    return Table((replace(joined, rows=product),), plan, schema, facts=left.facts)


def _bounded(exposure: Exposure, rows: int | None, each: int | None) -> Exposure:
    """The exposure after a person's rows were bounded. If that reduced them, it is on the path of the whole."""
    if rows is None or (exposure.rows is not None and exposure.rows <= rows):
        return replace(exposure, each=_least(each, exposure.rows))
    return replace(exposure, rows=max(1, rows), each=each, path=exposure.whole_path)


def _least(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)


def _need_persons(table: Table, what: str) -> None:
    if table.weighted:
        raise refuse("TypeError", f"{what} where rows have no weights", help="declare without `weighted`")
    if not table.private:
        raise refuse("TypeError", "a public table has no persons to protect", help="group it by a column: `per id`")
    if p.has_persons(table.plan) and len(table.exposures) == 1:
        return
    if not any(e.unit.columns for e in table.exposures):
        raise refuse(
            "TypeError", "each row is protected by itself here, and nothing says whose it is",
            help="declare `protecting id` with the column that says whose a row is",
        )  # fmt: skip
    raise refuse(
        "TypeError", "it is no longer known whose a row is, since rows of several persons met in it",
        help=f"{what} before the join, or join `on person`",
    )  # fmt: skip


def _listed(key: p.Key, table: Table) -> p.RowExpr:
    """The condition that a row is in one of the groups of a key."""
    value = grouped_by(key, table.domains)
    if isinstance(key.values, range):
        first, last = (key.values[0], key.values[-1]) if key.values else (1, 0)
        return p.Apply(
            "and", (p.Apply(">=", (value, p.Constant(float(first)))), p.Apply("<=", (value, p.Constant(float(last)))))
        )
    values = [p.Constant(float(v) if isinstance(v, int) and not isinstance(v, bool) else v) for v in key.values]
    return p.Apply("in", (value, *values))
