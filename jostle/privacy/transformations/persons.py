"""Transformations of the rows of persons, each with its stability.

A person is a value of the protected column, in every table of the source; neighbours differ by all rows of one person
in all tables. Each transformation below is made of a function that is applied to every person's rows apart. So the
stability is how many rows the result has of one person (docs/privacy/transformations.md, "Persons apart").

* `truncate`: of each person at most `groups` groups and `rows` rows in each: groups · rows, and no more than before.
* `group_rows` by person: one row of each person and key. Without keys 1; with keys as many as a person has groups: at
  most the number of public keys, and no more than the rows before.
* `join_own_rows`: each person's rows of one table meet the same person's rows of the other: k·k′. A row that meets
  none may stay, once, which is no more where a person may have a row on the other side.
* `group_rows` by keys alone mixes persons. A changed row takes a group's row away and may put another in its place:
  2k, and whose a row is cannot be told any more.
* a row for each item of m lists that stand in the program: m·k, a union of m tables.

What is spent on parts of a partition counts as the largest for a k of the whole table alone. So where a transformation
bounds a person's rows anew, the result lies on the path of the whole table, and charges on parts add up.

Sums of a person's or a group's rows are of whole numbers on a public grid, each summand clamped to its bounds: the same
in any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.language.aggregates import of_no_numbers
from jostle.plan.bounds import bounds_of, grid_bits, is_integral
from jostle.plan.kinds import kind_of
from jostle.plan.plan import (
    Apply,
    Column,
    Constant,
    Count,
    Extreme,
    Filter,
    FixedSum,
    GroupRows,
    GroupTerm,
    Join,
    Key,
    Plan,
    RowExpr,
    Truncate,
    has_persons,
    person_columns,
)
from jostle.plan.schemas import group_key_value, schema_of, text_values
from jostle.privacy.kernel.exposures import Exposure, join_exposures
from jostle.privacy.kernel.handles import Table
from jostle.privacy.transformations.joins import check_keys
from jostle.privacy.transformations.transform import derive, where
from jostle.privacy.transformations.union import union
from jostle.records import replace


def truncate(
    table: Table,
    keys: Sequence[Key | RowExpr],
    groups: int | None,
    rows: int | None,
    order: RowExpr | None = None,
    descending: bool = False,
    *,
    in_all: bool = False,
) -> Table:
    """Of each person at most `groups` of the groups by the keys, and `rows` rows in each, or else `in_all`.

    Rows that are in no group of public keys are left out first, so that none of them takes the place of another. A
    bare expression is a key whose values are not public.
    """
    _need_persons(table, "contributions are bounded")
    plan, exprs = _in_listed(table, keys), tuple(map(_expr, keys))
    if order is not None and kind_of(order, table.domains) == "boolean":
        raise refuse("TypeError", "rows are put in order by numbers or texts", help="`up to 1 row by date`")
    if in_all:
        exprs, groups = (), None
    sizes = [len(key.values) for key in keys if isinstance(key, Key)]
    count = math.prod(sizes) if len(sizes) == len(keys) else None
    there = 1 if in_all else _least(groups, count)
    most = None if there is None or rows is None else there * rows
    exposures = tuple(_bounded(e, most, rows) for e in table.exposures)
    plan = Truncate(plan, exprs, groups if exprs else None, rows, order, descending)
    return replace(table, exposures=exposures, plan=plan, origin=None)


def group_rows(
    table: Table, person: bool, keys: Sequence[tuple[str, Key | RowExpr]], terms: Sequence[tuple[str, GroupTerm]]
) -> Table:
    """A row for each group of rows, of each person where `person` is true.

    Rows that are in no group of public keys are left out.
    """
    if person and table.private:
        _need_persons(table, "rows are grouped by person")
    if table.weighted:
        raise refuse("TypeError", "rows that have weights are not grouped into rows", help="declare without `weighted`")
    groups = _most_groups(table, [key for _, key in keys])
    exposures = tuple(replace(_bounded(e, groups, None), each=None) for e in table.exposures)
    if not person:
        exposures = tuple(replace(e, rows=None if e.rows is None else 2 * e.rows, each=None) for e in table.exposures)
    most = max((e.rows for e in table.exposures if e.rows is not None), default=None) if person else None
    exprs = tuple((name, _expr(key)) for name, key in keys)
    plan = GroupRows(_in_listed(table, [key for _, key in keys]), person, exprs, tuple(terms), most)
    return Table(exposures, plan, tuple(schema_of(plan).items()))


def persons_of_groups(table: Table, keys: Sequence[tuple[str, Key | RowExpr]]) -> Table:
    """A row for each person and group, to be counted by the same keys: in a group a person has one."""
    grouped = group_rows(table, True, keys, ())
    return replace(grouped, exposures=tuple(replace(e, each=1) for e in grouped.exposures))


def _expr(key: Key | RowExpr) -> RowExpr:
    return key.expr if isinstance(key, Key) else key


def _in_listed(table: Table, keys: Sequence[Key | RowExpr]) -> Plan:
    """The rows that are in a group of every key whose values are public."""
    plan = table.plan
    for key in keys:
        plan = Filter(plan, _listed(key, table)) if isinstance(key, Key) else plan
    return plan


def _most_groups(table: Table, keys: Sequence[Key | RowExpr]) -> int | None:
    """In how many groups by these keys a person can have rows: of public values, or as many as were left."""
    own, plan = person_columns(table.plan), table.plan
    shared = [key for key in keys if not (isinstance((expr := _expr(key)), Column) and expr.name in own)]
    sizes = [len(key.values) for key in shared if isinstance(key, Key)]
    count = math.prod(sizes) if len(sizes) == len(shared) else None
    left = isinstance(plan, Truncate) and plan.keys and set(map(_expr, shared)) <= set(plan.keys)
    return _least(count, plan.groups if left else None)  # type: ignore[union-attr]


def join_own_rows(left: Table, right: Table, on: Sequence[tuple[str, str]], kind: str = "inner") -> Table:
    """Rows of two tables of the same persons that are one person's, and agree on pairs of columns.

    `kind` is `inner`, or `left` where rows of the left side stay that meet none.
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
    plan = Join(left.plan, right.plan, mine, person=True, theirs=names, kind=kind)
    schema = tuple(schema_of(plan).items())
    (joined,) = join_exposures([left.exposures, right.exposures], [1, 1])
    rows = [side.exposures[0].rows for side in (left, right)]
    product = None if None in rows else math.prod(many for many in rows if many is not None)
    return Table((replace(joined, rows=product),), plan, schema)


def _bounded(exposure: Exposure, rows: int | None, each: int | None) -> Exposure:
    """An exposure after a person's rows were bounded; where that made them fewer, on the path of the whole."""
    if rows is None or (exposure.rows is not None and exposure.rows <= rows):
        return replace(exposure, each=_least(each, exposure.rows))
    return replace(exposure, rows=rows, each=each, path=())


def _least(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)


def _need_persons(table: Table, what: str) -> None:
    if table.weighted:
        raise refuse("TypeError", f"{what} where rows have no weights", help="declare without `weighted`")
    if not table.private:
        raise refuse("TypeError", "a public table has no persons to protect", help="group it by a column: `per id`")
    if has_persons(table.plan) and len(table.exposures) == 1:
        return
    if not any(e.unit.columns for e in table.exposures):
        raise refuse(
            "TypeError", "each row is protected by itself here, and nothing says whose it is",
            help="declare `protecting id` with the column that says whose a row is",
        )  # fmt: skip
    raise refuse(
        "TypeError", "whose a row is cannot be told any more, since rows of several persons met in it",
        help=f"{what} before the join, or join `on person`",
    )  # fmt: skip


def _listed(key: Key, table: Table) -> RowExpr:
    """Whether a row is in one of the groups of a key."""
    value = group_key_value(key.expr, table.domains)
    if isinstance(key.values, range):
        first, last = (key.values[0], key.values[-1]) if key.values else (1, 0)
        return Apply("and", (Apply(">=", (value, Constant(float(first)))), Apply("<=", (value, Constant(float(last))))))
    whole = all(isinstance(v, float | int) and float(v).is_integer() for v in key.values)
    values = [Constant(float(v) if isinstance(v, int) and not isinstance(v, bool) else v) for v in key.values]
    return Apply("in", (value if whole else key.expr, *values))


GRID = 40  # steps of a sum are 2^-40 of its largest summand, or finer


class Summary(Struct, frozen=True):
    """The terms of an aggregate over a group of rows, and its value from theirs."""

    terms: tuple[GroupTerm, ...]
    value: Callable[[tuple[RowExpr, ...]], RowExpr]


def summary(name: str, expr: RowExpr | None, distinct: bool, table: Table) -> Summary:
    """An aggregate of the language over the rows of a group: `count sum avg min max`."""
    if name == "count":
        return Summary((Count(expr, distinct),), lambda terms: terms[0])
    if expr is None or name not in ("sum", "avg", "min", "max"):
        raise refuse(
            "TypeError", f"`{name}` is not taken of each person or group",
            help="there are `count(*)`, `count(E)`, `count(distinct E)`, `sum`, `avg`, `min` and `max`",
        )  # fmt: skip
    if kind_of(expr, table.domains) != "number":
        raise of_no_numbers(name, kind_of(expr, table.domains))
    if name in ("min", "max"):
        return Summary((Extreme(expr, name == "max"),), lambda terms: terms[0])
    total = _sum(name, expr, table)
    if name == "sum":
        return Summary((total,), lambda terms: terms[0])
    ends = Constant(total.low), Constant(total.high)  # which a mean keeps but for its rounding
    return Summary((total, Count(expr)), lambda terms: Apply("clamp", (Apply("/", terms), *ends)))


def _sum(name: str, expr: RowExpr, table: Table) -> FixedSum:
    bounds = bounds_of(expr, table.domains)
    if bounds is None or max(map(abs, bounds)) >= 2.0**60:
        raise refuse(
            "UnboundedSum", f"the terms of this {name} have no known bound",
            help="describe the column with a range, or bound them: `clamp(E, low, high)`",
        )  # fmt: skip
    low, high = bounds
    most = max(abs(low), abs(high))
    bits = 0 if is_integral(expr, table.domains) else grid_bits(most, GRID)
    return FixedSum(expr, low, high, bits)


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
        values = text_values(item, table.domains)
        if values is None or not all(map(str.strip, values)):
            conditions.append(Apply("!=", (Apply("trim", (item,)), Constant(""))))
    return conditions
