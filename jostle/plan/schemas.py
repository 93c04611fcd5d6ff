"""The columns of a plan, and group keys: of what kinds they are, and whether they are whole numbers.

All are functions of expressions and schemas alone, so answers and refusals may be shown. They are worked out anew for
every plan: a column that is redefined has the facts of its new definition and no others.

What else is publicly known, bounds and listed values, is in `Facts`, which hold no rows. It decides where a sum clamps,
what a selection chooses among and which groups there are. A wrong fact is another question, at the same price: summands
are clamped before they are added, and a row whose key is not listed is in no group. Kinds are not taken from there, nor
that a number is whole: by these cells are read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date
from functools import lru_cache
from typing import Any

from msgspec import Struct

from jostle.diagnostics import Refusal, refuse
from jostle.language.moments import PERIOD
from jostle.plan import plan as p
from jostle.plan.kinds import DEPTH, Schema, domain_kind, domain_of, is_integral, kind_of, mixed, value_kind

KeyValue = str | float | bool | date
Values = range | tuple[KeyValue, ...]
Columns = tuple[tuple[str, p.Domain], ...]


def _nothing(*_: object) -> None:
    """What kinds alone tell."""


class Facts(Struct, frozen=True, eq=False):
    """What is publicly known beside kinds: nothing here, and in `plan.facts` what follows from descriptions.

    `bounds`: the smallest and the largest finite value of a number expression. `domain`: that of a column which is
    calculated so, of a kind; `union`: one that holds the values of several, all of a kind. `key`: a group key over the
    values that it can have, of which more than a limit are refused. `check_values` refuses values of a key that no row
    can have.
    """

    bounds: Callable[[p.RowExpr, Schema], tuple[float, float] | None] = _nothing
    domain: Callable[[p.RowExpr, str, Schema], p.Domain | None] = _nothing
    union: Callable[[str, Sequence[p.Domain]], p.Domain | None] = _nothing
    key: Callable[[p.RowExpr, Schema, int], p.Key | None] = _nothing
    check_values: Callable[[p.RowExpr, Values, Schema], None] = _nothing


BY_KINDS = Facts()


def derived_domain(expr: p.RowExpr, schema: Schema, facts: Facts = BY_KINDS) -> p.Domain:
    """The domain of a derived column: a bare column keeps its own."""
    kind = kind_of(expr, schema)
    if isinstance(expr, p.Column):
        return schema[expr.name]
    plain = p.Open(kind if kind != "number" else "integer" if is_integral(expr, schema) else "real")
    return _agreeing(facts.domain(expr, kind, schema), plain)


def united_domain(name: str, domains: Sequence[p.Domain], facts: Facts = BY_KINDS) -> p.Domain:
    """A domain that holds the values of several, which are of one kind; a `TypeError` where they are not."""
    kind, *others = map(domain_kind, domains)
    for other in others:
        if other != kind:
            raise mixed(f"the column `{name}` of this union", kind, other)
    whole = all(is_integral(p.Column(name), {name: domain}) for domain in domains)
    plain = p.Open(kind if kind != "number" else "integer" if whole else "real")
    return _agreeing(facts.union(kind, domains), plain)


def _agreeing(domain: p.Domain | None, plain: p.Open) -> p.Domain:
    """A domain that is known, of the kind of the plain one, and of whole numbers only where that is."""
    if domain is None:
        return plain
    whole = plain.kind == "real" and is_integral(p.Column(""), {"": domain})
    if domain_kind(domain) != domain_kind(plain) or whole:
        raise ValueError(f"what is known of a column, {domain}, is not of its kind")
    return domain


def with_period(
    plan: p.Plan, schema: Columns, column: str, unit: str, facts: Facts = BY_KINDS
) -> tuple[p.Plan, Columns]:  # fmt: skip
    """Rows with a further column, the first day of the unit in which a date or time lies."""
    day = p.Column(column)
    start = p.Apply(
        "trunc", (day if kind_of(day, dict(schema)) == "date" else p.Apply("date", (day,)), p.Constant(unit))
    )
    own: tuple[tuple[str, p.RowExpr], ...] = tuple([(name, p.Column(name)) for name, _ in schema])
    return p.Derive(plan, (*own, (PERIOD, start))), (*schema, (PERIOD, derived_domain(start, dict(schema), facts)))


def schema_of(plan: p.Plan, facts: Facts = BY_KINDS) -> dict[str, p.Domain]:
    """The columns of a plan with what is publicly known of each, recomputed from its definition."""
    return _schema(plan, facts, 0)


def _schema(plan: p.Plan, facts: Facts, depth: int) -> dict[str, p.Domain]:
    check_plan_depth(depth)
    while isinstance(plan, p.Filter | p.Truncate):
        plan = plan.source
    if isinstance(plan, p.GroupRows):
        return group_rows_schema(plan, _schema(plan.source, facts, depth + 1), facts)
    if isinstance(plan, p.Bound):
        plan = plan.scan
    if isinstance(plan, p.Scan):
        return dict(plan.columns)
    if isinstance(plan, p.Derive):
        inner = _schema(plan.source, facts, depth + 1)
        return {name: derived_domain(expr, inner, facts) for name, expr in plan.columns}
    if isinstance(plan, p.Union):
        return united_schema([_schema(source, facts, depth + 1) for source in plan.sources], facts)
    if isinstance(plan, p.Known | p.Listed):
        return dict(plan.columns)
    return join_schema(plan, _schema(plan.left, facts, depth + 1), _schema(plan.right, facts, depth + 1), facts)


def person_columns(plan: p.Plan) -> frozenset[str]:
    """The columns of a plan that hold the one protected column as it was described, under whatever name.

    Those of an exploded table too: all its rows are of the rows of one table, in which a person has one value of them.
    Where a union is of several tables, each may describe its column in its own way.
    """
    match plan:
        case p.Filter() | p.Truncate():
            return person_columns(plan.source)
        case p.Derive(columns=columns) | p.GroupRows(person=True, keys=columns):
            inner = person_columns(plan.source)
            return frozenset(name for name, expr in columns if isinstance(expr, p.Column) and expr.name in inner)
        case p.Bound():
            return frozenset({name for name, _ in plan.scan.columns if (name,) == plan.by})
        case p.Join() if p.has_persons(plan.left):
            return person_columns(plan.left) if p.has_persons(plan) else frozenset()
        case p.Join(right=right) if p.has_persons(plan):  # the columns that the left side has not, and keys of one name
            return frozenset(n for n in person_columns(right) if (n, n) in plan.keys or n not in schema_of(plan.left))
        case p.Union(sources=sources) if (
            len({p.rows_below(one, (p.Filter, p.Derive, p.Truncate)) for one in sources}) == 1
        ):
            return frozenset.intersection(*map(person_columns, sources))
    return frozenset()


def check_plan_depth(depth: int, most: int = DEPTH) -> None:
    if depth > most:
        raise refuse("RecursionLimit", f"a table made in more than {most} steps", help="make it in fewer steps")


MOST_STEPS, MOST_PARTS = DEPTH - 20, 2**15
"""Of a table that a program makes: an engine reads `DEPTH`, and what is asked of it adds some."""


def check_steps(plan: p.Plan, most: int = MOST_STEPS, room: int = 0) -> None:
    """Refuses a table of too many steps, before anything is asked of it; with `room` for those that come later."""
    steps, parts = plan_size(plan)
    check_plan_depth(steps + room, most)
    check_plan_depth(parts + room, MOST_PARTS)


@lru_cache(maxsize=2**12)
def plan_size(plan: p.Plan) -> tuple[int, int]:
    """How many steps, one after the other, lead from data to the rows of a plan, and how many it has in all; conditions
    that follow each other are one, as an engine reads them."""
    if isinstance(plan, p.Filter) and isinstance(plan.source, p.Filter):
        return plan_size(plan.source)
    steps = parts = 0
    for deeper, more in map(plan_size, p.inputs(plan)):
        steps, parts = max(steps, deeper), parts + more
    return 1 + steps, 1 + parts


def join_schema(plan: p.Join, left: Schema, right: Schema, facts: Facts = BY_KINDS) -> dict[str, p.Domain]:
    """The columns of a join; both sides have the key columns, of one kind."""
    columns = dict(left) | {name: domain for name, domain in right.items() if name not in left}
    for name, theirs in plan.keys:
        mine, other = domain_of(name, left), domain_of(theirs, right)
        if domain_kind(mine) != domain_kind(other):
            raise mixed(f"the join on `{name}`", domain_kind(mine), domain_kind(other))
        if name == theirs and plan.kind in ("right", "full"):
            columns[name] = other if plan.kind == "right" else united_domain(name, [mine, other], facts)
    if plan.person and not (p.has_persons(plan.left) and p.has_persons(plan.right)):
        raise refuse("TypeError", "whose the rows of a side are is not known")
    if not plan.on and not plan.person:
        raise refuse("TypeError", "a join needs a column to join on", help="join U on key")
    return columns


def united_schema(schemas: Sequence[Schema], facts: Facts = BY_KINDS) -> dict[str, p.Domain]:
    """The columns of a union: those of the first schema, each with all the values that it has in any of them."""
    if not schemas:
        raise refuse("TypeError", "a union needs a table")
    first = schemas[0]
    for other in schemas[1:]:
        for name in (*first, *other):
            if name not in first or name not in other:
                raise refuse(
                    "NameError", f"only one of the tables of this union has a column `{name}`",
                    help="give all tables the same columns: `pick(t, a, b)` leaves others out, "
                    f"`derive(t, {name} = none)` adds one",
                )  # fmt: skip
    return {name: united_domain(name, [schema[name] for schema in schemas], facts) for name in first}


def floors(key: p.Key) -> bool:
    """Whether a numeric key is taken down to its integer part: unless its listed values are not whole themselves."""
    return isinstance(key.values, range) or all(
        isinstance(value, float | int) and float(value).is_integer() for value in key.values
    )


def grouped_by(key: p.Key | p.RowExpr, schema: Schema) -> p.RowExpr:
    """What rows are grouped by: a number is taken down to an integer where the public keys are all whole."""
    if not isinstance(key, p.Key):
        return key
    whole = not floors(key) or kind_of(key.expr, schema) != "number" or is_integral(key.expr, schema)
    return key.expr if whole else p.Apply("floor", (key.expr,))


def group_rows_schema(plan: p.GroupRows, inner: Schema, facts: Facts = BY_KINDS) -> dict[str, p.Domain]:
    """The columns of groups of rows over a source with the schema `inner`."""
    keys = {name: derived_domain(expr, inner, facts) for name, expr in plan.keys}
    return keys | {name: _term_domain(term, plan.most, inner, facts) for name, term in plan.terms}


def _term_domain(term: p.GroupTerm, most: int | None, schema: Schema, facts: Facts) -> p.Domain:
    """What a group of at most `most` rows can have."""
    if isinstance(term, p.Extreme | p.Beside) and term.expr is not None:
        return derived_domain(term.expr, schema, facts)
    if isinstance(term, p.Count | p.Beside):
        return p.Open("integer") if most is None else p.Integer(int(term.expr is None), most)
    if most is None:
        return p.Open("real" if term.bits else "integer")
    low, high = min(0.0, term.low * most), max(0.0, term.high * most)
    return p.Integer(math.floor(low), math.ceil(high)) if not term.bits else p.Real(low, high)


MOST_KEYS, MOST_GROUPS = 2**20, 2**25
"""Values that one group key of a select, or the parts of a table, have at most, and combinations of keys."""


def key_of(expr: p.RowExpr, over: Values | None, schema: Schema, limit: int, facts: Facts = BY_KINDS) -> p.Key | None:
    """A group key over the values that a program lists, or else over those that are known; None for an open one.

    Listed values of another kind than the expression are a `TypeError`, and those that no row can have a `ValueError`.
    """
    if over is None:
        return facts.key(expr, schema, limit)
    kind = kind_of(expr, schema)
    for value in () if isinstance(over, range) else over[:1]:  # they are all of one kind
        if value_kind(value) != kind:
            raise mixed("`over`", kind, value_kind(value))
    facts.check_values(expr, over, schema)
    return p.Key(expr, over)


def dimensions(
    axes: Sequence[tuple[str, p.RowExpr, Values | None]], schema: Schema, limit: int, facts: Facts = BY_KINDS
) -> tuple[tuple[p.Key, ...], tuple[str, ...], tuple[int, ...]]:
    """The keys of a histogram's dimensions, their names, and how many values each has; refuses an open one."""
    keys = []
    for name, expr, over in axes:
        key = key_of(expr, over, schema, limit, facts)
        if key is None:
            raise open_keys(name)
        keys.append(key)
    return tuple(keys), tuple(name for name, _, _ in axes), tuple(len(key.values) for key in keys)


def need_unicode(value: object) -> None:
    """Refuses a text key that the engine could not tell from another: half a surrogate pair has no encoding, and
    stands in SQL for the same replacement character as every other half, so that parts by them would not be disjoint.
    """
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise refuse("ValueError", "a key has a character that no text can have") from None


def holds(key: p.Key, value: Any) -> p.RowExpr:
    """The condition of one group: numeric keys are taken down to integers first."""
    need_unicode(value)
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    left = p.Apply("floor", (key.expr,)) if numeric and floors(key) else key.expr
    return p.Apply("==", (left, p.Constant(float(value) if numeric else value)))


def open_keys(name: str) -> Refusal:
    return refuse(
        "OpenKeys", f"the values that the key `{name}` can have are not public",
        help="describe its column with a range or categories; a select may also list them, `groupby E over {…}`, "
        "or be given a delta, `with epsilon 1 delta 1e-9`",
    )  # fmt: skip
