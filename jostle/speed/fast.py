"""An engine's answers about private rows, faster: the same integers, from codes and rows that were read before.

It is asked in place of the engine, and what it does not know how to answer faster the engine answers. That both say
the same is tested for plans that are made at random (`tests/engine/test_engine_parts.py`).

A query for groups, of groups of raw cells: rows whose raw cells are equal are cleaned to equal ones, so that few
groups of cells are cleaned and calculated with, in place of many rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from jostle.engine.base import Engine, Here, Work, consecutive
from jostle.engine.sql import relations
from jostle.engine.sql.cells import WHOLE, clean
from jostle.engine.sql.dialect import subquery
from jostle.engine.sql.relations import Grouped, Relation
from jostle.engine.sql.rows import Physical, Raw, RowSql, aggregate, key_test, key_value
from jostle.lazy import Array
from jostle.plan import plan as p
from jostle.plan.kinds import domain_kind
from jostle.records import replace
from jostle.speed.parts import Parts

if TYPE_CHECKING:
    from jostle.speed.rowstore import RowStore


ROWS = {p.Count()}  # what is asked where rows are counted


class FastAnswers:
    """`engine.base.Answers` of an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.parts = Parts(engine)

    @property
    def here(self) -> Here:
        return self._engine.here

    def check(self, question: object) -> None:
        self._engine.check(question)

    def group(self, plan: p.Plan, keys: tuple[p.Key, ...], terms: tuple[p.Term, ...]) -> list[Array]:
        """Of a part that is only counted, from the codes of its rows."""
        if set(terms) == ROWS:
            counts = self.parts.counts(plan, keys)
            if counts is not None:
                return [counts] * len(terms)
        return self.parts.group(plan, keys, terms)

    def counts(self, plan: p.Plan, tables: Sequence[tuple[p.Key, ...]]) -> list[Array]:
        """In one pass over the rows, where their columns are coded."""
        together = self.parts.several(plan, tables) if len(tables) > 1 else None
        return [self.group(plan, keys, (p.Count(),))[0] for keys in tables] if together is None else list(together)

    def crossed(self, plan: p.Plan, keys: Sequence[p.Key], by: p.Key) -> list[Array]:
        """In one pass over the rows, where they are numbered."""
        from jostle.privacy.rows.folds import LeafFold, one_leaf

        tree = one_leaf(tuple(len(key.values) for key in keys))
        fold = LeafFold(tree, tree.level, len(by.values), tuple(range(len(keys))))
        together = self.parts.folded(plan, (*keys, by), fold)
        if together is not None:
            return [counts[0] for counts in together]
        return [self.group(plan, (key, by), (p.Count(),))[0] for key in keys]

    def codes(self, plan: p.Plan, keys: tuple[p.Key, ...]) -> list[Array]:
        coded = self.parts.codes(plan, keys)
        return self._engine.codes(plan, keys) if coded is None else coded

    def fold_codes(self, plan: p.Plan, keys: tuple[p.Key, ...], work: Work) -> list[object]:
        folded = self.parts.folded(plan, keys, work)
        return self._engine.fold_codes(plan, keys, work) if folded is None else folded

    def fold(self, plan: p.Plan, exprs: tuple[p.RowExpr, ...], work: Work) -> list[object]:
        """Of rows in a ball beside those that were read before, unless the rows are elsewhere."""
        from jostle.privacy.rows.folds import AtRows
        from jostle.speed.rowstore import StoredRows

        if self._engine.capabilities.folds or not isinstance(work, AtRows):
            return self._engine.fold(plan, exprs, work)
        return work.fold.over(StoredRows(self._store, (plan, exprs, work.radius, work.norm)))

    def tally(self, plan: p.Plan, expr: p.RowExpr) -> tuple[Array, Array]:
        return self._engine.tally(plan, expr)

    def tuples(self, plan: p.Plan, exprs: tuple[p.RowExpr, ...]) -> tuple[list[tuple[object, ...]], Array]:
        return self._engine.tuples(plan, exprs)

    @cached_property
    def _store(self) -> RowStore:
        from jostle.speed.rowstore import RowStore

        return RowStore(self._engine)


# Groups of raw cells -------------------------------------------------------------------------------

GROUPED = WHOLE | {"BOOLEAN", "DATE", "VARCHAR"}
FEW = 2**14  # groups of cells that are as described


def grouped(source: Relation, keys: tuple[p.Key, ...], terms: tuple[p.Term, ...]) -> Grouped:
    """What `relations.group` says, of groups of the cells that keys are made of, where these are few."""
    rows, d = source.rows(), source.dialect
    cells = cells_of_keys(rows, keys) if keys else {}
    if not cells or any(isinstance(term, p.Count) and term.distinct for term in terms):
        return relations.group(source, keys, terms)
    parts = relations.addends(source, rows, terms)
    values = [f"{one.value} AS v{i}" for i, one in enumerate(parts) if one.value]
    totals = [f"{one.total(d, f'p{i}')} AS a{i}" for i, one in enumerate(parts)]
    query = group_cells(rows, source.sql, keys, cells, values, [one.part for one in parts], totals)
    return Grouped(query, tuple(one.wide for one in parts))


def cells_of_keys(rows: RowSql, keys: tuple[p.Key, ...]) -> dict[str, Raw | None]:
    """The columns that keys are made of, where rows are sooner grouped by their cells, and few groups then cleaned and
    calculated with: by names, with their raw cells, where these are grouped. Else none."""
    cells: dict[str, Raw | None] = {}
    groups, bare = 1.0, True
    for key in keys:
        names = sorted(p.names_in([key.expr]))
        for name in names:
            raw = rows.columns[name].raw
            cells[name] = raw if raw is not None and raw.kind in GROUPED else None
        calculated = not isinstance(key.expr, p.Column)
        groups *= math.prod(groups_of(rows.schema[name]) for name in names) if calculated else len(key.values)
        bare = bare and not calculated
    return cells if groups <= FEW and (any(cells.values()) or not bare) else {}


def common_case(keys: tuple[p.Key, ...]) -> tuple[p.RowExpr, float, p.Key] | None:
    """Of rows of which a condition holds the one value of a key; the condition of the others, and the value for these
    as a key whose last value stands for none. None where a key is not made so, of constants."""
    match keys:
        case [p.Key(p.Apply("if", (test, p.Constant(float(value)), other)), values)] if value in values:
            rest = p.Apply("coalesce", (other, p.Constant(float(len(values)))))
            unless = p.Apply("coalesce", (p.Apply("not", (test,)), p.Constant(True)))
            return (unless, value, p.Key(rest, range(len(values) + 1))) if _says(other, values) else None
    return None


def uncommon(
    group: Callable[[p.Plan, tuple[p.Key, ...], tuple[p.Term, ...]], list[Array]], plan: p.Plan, keys: tuple[p.Key, ...]
) -> Array | None:
    """Counts of rows of which one condition holds of most, from those of the others, as `group` has them; else None."""
    case = common_case(tuple(map(consecutive, keys))) if isinstance(plan, p.Scan | p.Bound) else None
    if case is None:
        return None
    test, at, key = case
    (cells,) = group(p.Filter(plan, test), (key,), (p.Count(),))
    cells[int(at)] += group(plan, (), (p.Count(),))[0] - cells.sum()
    return cells[:-1]


def _says(expr: p.RowExpr, values: range | tuple[object, ...]) -> bool:
    """Whether an expression is one of the values, from 0, or none."""
    if isinstance(expr, p.Apply) and expr.op in ("if", "coalesce"):
        return all(_says(arg, values) for arg in expr.args[expr.op == "if" :])
    return (
        values == range(len(values)) and isinstance(expr, p.Constant) and (expr.value is None or expr.value in values)
    )


def groups_of(domain: p.Domain) -> float:
    """How many values a domain has, where these are few."""
    if isinstance(domain, p.Categories):
        return len(domain.values)
    if isinstance(domain, p.Integer) or (isinstance(domain, p.Moments) and domain.kind == "date"):
        return min(domain.high - domain.low + 1, 2.0**62)
    return 2 if domain_kind(domain) == "boolean" else math.inf


def group_cells(
    rows: RowSql,
    source: str,
    keys: tuple[p.Key, ...],
    cells: dict[str, Raw | None],
    values: list[str],
    parts: list[str],
    totals: list[str],
) -> str:
    """The groups of a relation by keys, of groups of the cells that these are made of: `parts` are aggregates of the
    rows' `values`, `totals` those of the parts, which they know as `p0`, …."""
    d, places = rows.dialect, range(len(cells))
    items = [f"{(raw or rows.columns[name]).alias} AS x{i}" for i, (name, raw) in enumerate(cells.items())]
    named = [f"{part} AS p{i}" for i, part in enumerate(parts)]
    few = aggregate([f"x{i}" for i in places], named, [*items, *values], [], rows.over(source))
    cleaned = [
        clean(d, f"x{i}", raw.kind, raw.domain) if raw else replace(rows.columns[name], alias=f"x{i}", raw=None)
        for i, (name, raw) in enumerate(cells.items())
    ]
    columns = {name: Physical(f"c{i}", cell.whole) for i, (name, cell) in enumerate(zip(cells, cleaned, strict=True))}
    after = type(rows)(columns, rows.schema, d)
    keyed = [f"{key_value(after, key, rows.schema)} AS k{i}" for i, key in enumerate(keys)]
    sums = [f"p{i}" for i in range(len(parts))]
    shown = ", ".join([*(f"{cell.alias} AS c{i}" for i, cell in enumerate(cleaned)), *sums])
    query = f"SELECT {', '.join([*keyed, *sums])} FROM {subquery(after.over(f'SELECT {shown} FROM {subquery(few)}'))}"
    # a long list costs some servers more to plan than few groups that are not in it
    ranges = [(i, key) for i, key in enumerate(keys) if isinstance(key.values, range)]
    tests = [key_test(after, f"k{i}", key, rows.schema) for i, key in ranges]
    return aggregate([f"k{i}" for i in range(len(keys))], totals, [], [test for test in tests if test], query)
