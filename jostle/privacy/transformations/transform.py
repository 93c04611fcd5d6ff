"""Transformations of handles, each with its stability (docs/privacy/transformations.md).

Facts about a plan are derived again at every step from the plan's own schema. Let k be the stability of the input:

* `where`, `derive`, `pick`: k, since one row becomes at most one row.
* `partition` and `D[a = v]`: k in each part. The parts form one partition of the budget tree, in which their charges
  count as the maximum.
* `histogram`: k, since a row changes one cell by 1.
* `with_place`: k, since a row matches at most one combination of a public list. So groups by the place in the list
  cost as much as groups by one key.
* For rows with weights, all of these keep the bound on the changed weight, beside the number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from jostle.accounting.amounts import Amount
from jostle.diagnostics import did_you_mean, refuse
from jostle.engine.base import plain
from jostle.language.moments import kind_of_moment, moment_of, number_of
from jostle.lazy import Bools, Ints, np
from jostle.plan import plan as p
from jostle.plan import schemas
from jostle.plan.kinds import as_number, kind_of, mixed, value_kind
from jostle.privacy.kernel.exposures import Allotment, Handle, extended
from jostle.privacy.kernel.handles import ColumnHandle, Cube, Restricted, Table, Tallied, partition_label
from jostle.privacy.kernel.kernel import check_unit
from jostle.privacy.reading.public_data import PublicData
from jostle.records import replace

MOST_CELLS = 2**26
Over = schemas.Values | None


def where(table: Table, condition: p.RowExpr) -> Table:
    """The rows for which the condition is true."""
    if kind_of(condition, table.domains) != "boolean":
        raise refuse("TypeError", "a condition must be true or false", help="compare: `where age > 40`")
    return replace(table, plan=p.Filter(table.plan, condition))


def cells_where(cube: Cube, condition: p.RowExpr, mask: Bools) -> Cube:
    """The cells that a public mask keeps. `condition` is what the mask was computed from."""
    if np.broadcast_shapes(mask.shape, cube.shape) != cube.shape:
        raise refuse("ValueError", f"an array of {mask.shape} is of no cube of {cube.shape}")
    return replace(cube, cells=Restricted(cube.cells, condition, mask))


def derive(table: Table, columns: Sequence[tuple[str, p.RowExpr]]) -> Table:
    """The table with columns added or redefined, with the bounds of their expressions. Merged with a `Derive` before it
    if the expressions use only columns that the latter does not change."""
    domains, plan = dict(table.domains), table.plan
    exprs: dict[str, p.RowExpr] = {name: p.Column(name) for name in domains}
    if isinstance(plan, p.Derive):
        before = dict(plan.columns)
        alike = all(before.get(name) == p.Column(name) for name in p.names_in(expr for _, expr in columns))
        if alike and before.keys() == exprs.keys():
            exprs, plan = before, plan.source
    for name, expr in columns:
        exprs[name] = expr
        domains[name] = schemas.derived_domain(expr, table.domains, table.facts)
    return Table(table.exposures, p.Derive(plan, tuple(exprs.items())), tuple(domains.items()), facts=table.facts)


def pick(table: Table, names: Sequence[str]) -> Table:
    """Only the named columns."""
    domains = table.domains
    for name in names:
        need_column(table.domains, name)
    plan = p.Derive(table.plan, tuple((name, p.Column(name)) for name in names))
    return Table(table.exposures, plan, tuple((name, domains[name]) for name in names), facts=table.facts)


def partition(data: PublicData, table: Table, expr: p.RowExpr, name: str, over: Over) -> list[tuple[object, Table]]:
    """(key, part) for every public key, in order. A bare column of an unaltered table names its own partition."""
    key = table.key_of(expr, over, schemas.MOST_KEYS)
    if key is None:
        if table.private:
            raise schemas.open_keys(name)
        keys, _ = data.exact(table, (expr,), (p.Exact("count"),))
        key = p.Key(expr, tuple(keys[0]))
    label = partition_label(table, expr, exact=not schemas.floors(key))
    return [(_plain(value), _rows_part(table, label, schemas.holds(key, value), _plain(value))) for value in key.values]


def split(table: Table, parts: int, salt: int, columns: Sequence[str] = ()) -> list[Table]:
    """Disjoint parts by a hash of some columns or, by default, of the rows before columns were derived, so that rows
    that have become equal are separated. The part of a row depends on the row alone; its hash is a hidden column."""
    steps, plan = list[p.Derive | p.Filter](), table.plan
    while not columns and isinstance(plan, p.Derive | p.Filter):
        steps.append(plan)
        plan = plan.source
    own = tuple([(name, p.Column(name)) for name in schemas.schema_of(plan, table.facts)])
    hashed = [p.Column(name) for name in columns] or [column for _, column in own]
    place: p.RowExpr = p.Apply("bucket", (p.Constant(float(parts)), p.Constant(float(salt)), *hashed))
    if any(isinstance(step, p.Derive) for step in steps):
        carried, of_rows = p.Column(f"{HASH}{len(steps)}"), place
        plan, place = p.Derive(plan, (*own, (carried.name, of_rows))), carried
        for step in reversed(steps):
            plan = replace(step, source=plan)
            if isinstance(plan, p.Derive):
                plan = replace(plan, columns=(*plan.columns, (carried.name, carried)))
        table = replace(table, plan=plan)
    label, values = object(), map(float, range(parts))
    return [_rows_part(table, label, p.Apply("==", (place, p.Constant(value))), value) for value in values]


def cube_parts(
    cube: Cube, expr: p.RowExpr, name: str, over: Over, codes: Callable[[p.Key], Ints], facts: schemas.Facts
) -> list[tuple[object, Cube]]:  # fmt: skip
    """The parts of a cube. `codes` returns the index of each cell among the values of a key, a public array, so parts
    by it are always disjoint. Parts by a dimension, which may be created elsewhere too, are by its positions."""
    key = schemas.key_of(expr, over, dict(cube.schema), schemas.MOST_KEYS, facts)
    if key is None:
        raise schemas.open_keys(name)
    if isinstance(expr, p.Column):
        return [(_plain(value), _at(cube, expr.name, _plain(value))) for value in key.values]
    label, at = object(), codes(key)
    return [
        (_plain(value), _cells_part(cube, label, schemas.holds(key, value), _plain(value), at == place))
        for place, value in enumerate(key.values)
    ]


def rows_where(handle: Table | Cube, column: str, value: Any) -> Table | Cube:
    """`D[a = v]`: the part of D where the column equals a public value."""
    if isinstance(handle, Table):
        need_column(handle.domains, column)
    elif column not in handle.names:
        raise refuse("NameError", f"the cube has no dimension `{column}`", help=did_you_mean(column, handle.names))
    schemas.need_unicode(value)
    condition = p.Apply("==", (p.Column(column), p.Constant(value)))
    kind_of(condition, dict(handle.schema))
    if isinstance(handle, Cube):
        return _at(handle, column, _plain(value))
    return _rows_part(handle, partition_label(handle, p.Column(column), exact=True), condition, _plain(value))


def histogram(table: Table, dims: Sequence[tuple[str, p.RowExpr, Any]]) -> Cube:
    """Counts of rows over public keys, one dimension per expression."""
    keys, names, shape = schemas.dimensions(dims, table.domains, MOST_CELLS, table.facts)
    if (cells := math.prod(shape)) > MOST_CELLS:
        raise too_large(cells)
    return Cube(table.exposures, Tallied(table.plan, keys), names, shape)


def axis(table: Table, column: p.Column, over: schemas.Values | None) -> p.Key:
    """The dimension of a column in a histogram."""
    return schemas.dimensions([(column.name, column, over)], table.domains, MOST_CELLS, table.facts)[0][0]


def too_large(cells: int) -> Exception:
    return refuse(
        "ValueError", f"a histogram of {cells:,} cells is too large to hold",
        help=f"at most {MOST_CELLS:,}: group the values, as `x = age / 10` does, or use fewer columns",
    )  # fmt: skip


def limited(handle: Handle, amount: Amount) -> Handle:
    """An agent: the same handle with an additional smaller budget, which every charge on it must fit."""
    for exposure in handle.exposures:
        check_unit(amount, exposure.source)
    agent = Allotment(amount, None)
    return replace(handle, exposures=tuple(replace(e, agents=(*e.agents, agent)) for e in handle.exposures))


def columns(table: Table) -> list[ColumnHandle]:
    return [ColumnHandle(table.exposures, table, name) for name in table.domains]


def need_column(domains: Mapping[str, p.Domain], name: str, of: str = "the described columns") -> None:
    if name not in domains:
        help = did_you_mean(name, domains) or f"{of} are {', '.join(domains)}"
        raise refuse("NameError", f"no column `{name}`", help=help)


def _rows_part(table: Table, label: object, condition: p.RowExpr, key: object) -> Table:
    plan = p.Filter(table.plan, condition)
    return replace(table, exposures=extended(table.exposures, label, key, plan), plan=plan)


def _cells_part(cube: Cube, label: object, condition: p.RowExpr, key: object, mask: Bools) -> Cube:
    return replace(cells_where(cube, condition, mask), exposures=extended(cube.exposures, label, key))


def _at(cube: Cube, name: str, number: float) -> Cube:
    """The cells at one position of a dimension."""
    axis, expr = cube.names.index(name), p.Column(name)
    positions = np.arange(cube.shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(cube.shape))])
    label = partition_label(cube, expr, exact=False)
    return _cells_part(cube, label, p.Apply("==", (expr, p.Constant(number))), number, positions == number)


def _plain(value: Any) -> Any:
    """A key in the form that engines compare: numbers as doubles, times in whole microseconds without an offset."""
    if isinstance(value, date):
        return moment_of(kind_of_moment(value), number_of(value))
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


PLACE, HASH = "\0place", "\0hash"
"""The names of the columns of places and, with a number, of hashes. Programs cannot write these names."""
_STORED = {"text": "text", "date": "date", "time": "time"}


def with_place(table: Table, exprs: Sequence[p.RowExpr], rows: Sequence[tuple[Any, ...]], how: str = "inner") -> Table:
    """The rows whose values of the expressions are in the list `rows`, with their index in it as a further column.

    Values are compared without rounding. A `left` join keeps all rows. The stability is that of the table, since
    duplicates in `rows`, as an engine compares values, are refused.
    """
    there = [row for row in (tuple(map(plain, row)) for row in rows) if None not in row]  # None equals nothing
    if len(set(there)) < len(there):
        raise refuse("ValueError", "a combination of keys stands twice in the list of them", help="list each once")
    for i, expr in enumerate(exprs):
        for value in {type(row[i]): row[i] for row in rows}.values():
            kind = value_kind(value)
            if kind != kind_of(expr, table.domains):
                raise mixed("`over`", kind_of(expr, table.domains), kind)
    names = tuple(f"\0key{i}" for i in range(len(exprs)))
    own: list[tuple[str, p.RowExpr]] = [(name, p.Column(name)) for name in table.domains]
    keys = [(name, as_number(expr, table.domains)) for name, expr in zip(names, exprs, strict=True)]
    kinds: list[p.Domain] = [p.Open(_STORED.get(kind_of(expr, table.domains), "real")) for expr in exprs]
    cells = tuple((*map(_cell, row), float(place)) for place, row in enumerate(rows))
    columns = (*zip(names, kinds, strict=True), (PLACE, p.Integer(0, max(0, len(rows) - 1))))
    plan = p.Join(p.Derive(table.plan, (*own, *keys)), p.Listed(columns, cells), names, kind=how)
    return replace(table, plan=plan, schema=tuple(schemas.schema_of(plan, table.facts).items()), origin=None)


def _cell(value: Any) -> Any:
    schemas.need_unicode(value)
    return float(value) if isinstance(value, bool) else value
