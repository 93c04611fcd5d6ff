"""Schemas of plans, and group keys: their kinds, and whether they are integers.

All are functions of expressions and schemas alone, so results and refusals are public. They are derived again for every
plan: a redefined column has only the facts of its new definition.

Other public knowledge, bounds and listed values, is in `Facts`, which hold no rows. It determines where sums clamp, the
candidates of selections, and the groups. A wrong fact asks another question at the same price: summands are clamped
before they are added, and rows with an unlisted key are in no group. Kinds and integrality, by which cells are read, do
not come from there.
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
    """No further fact."""


class Facts(Struct, frozen=True, eq=False):
    """Public knowledge beside kinds: by default none, and in `plan.facts` what follows from descriptions.

    `bounds`: the smallest and largest finite value of a number expression. `domain`: the domain of a derived column of
    a kind. `union`: a domain for the values of several domains of one kind. `key`: a group key over the possible
    values, refused if they exceed a limit. `check_values` refuses values of a key that no row can have.
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
    """A domain for the values of several domains of one kind. `TypeError` if kinds differ."""
    kind, *others = map(domain_kind, domains)
    for other in others:
        if other != kind:
            raise mixed(f"the column `{name}` of this union", kind, other)
    whole = all(is_integral(p.Column(name), {name: domain}) for domain in domains)
    plain = p.Open(kind if kind != "number" else "integer" if whole else "real")
    return _agreeing(facts.union(kind, domains), plain)


def _agreeing(domain: p.Domain | None, plain: p.Open) -> p.Domain:
    """A known domain if it has the kind of the plain one, and integers only if that has; else the plain one."""
    if domain is None:
        return plain
    whole = plain.kind == "real" and is_integral(p.Column(""), {"": domain})
    if domain_kind(domain) != domain_kind(plain) or whole:
        raise ValueError(f"what is known of a column, {domain}, is not of its kind")
    return domain


def with_period(
    plan: p.Plan, schema: Columns, column: str, unit: str, facts: Facts = BY_KINDS
) -> tuple[p.Plan, Columns]:  # fmt: skip
    """Rows with a further column, the first day of the unit of a date or time."""
    day = p.Column(column)
    start = p.Apply(
        "trunc", (day if kind_of(day, dict(schema)) == "date" else p.Apply("date", (day,)), p.Constant(unit))
    )
    own: tuple[tuple[str, p.RowExpr], ...] = tuple([(name, p.Column(name)) for name, _ in schema])
    return p.Derive(plan, (*own, (PERIOD, start))), (*schema, (PERIOD, derived_domain(start, dict(schema), facts)))


def schema_of(plan: p.Plan, facts: Facts = BY_KINDS) -> dict[str, p.Domain]:
    """The schema of a plan, derived from its definition."""
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
    """The columns of a plan that contain the only protected column as described, under any name.

    This includes exploded tables, whose rows come from one table in which a person has one value. The tables of a union
    may each describe the column differently, so it has none.
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
        case p.Join(right=right) if p.has_persons(plan):  # columns that only the right side has, and shared keys
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
"""The largest depth and size of a table's plan: an engine accepts `DEPTH`, and questions add some steps."""


def check_steps(plan: p.Plan, most: int = MOST_STEPS, room: int = 0) -> None:
    """Refuses a plan of too many steps, with `room` for later ones, before anything is read."""
    steps, parts = plan_size(plan)
    check_plan_depth(steps + room, most)
    check_plan_depth(parts + room, MOST_PARTS)


@lru_cache(maxsize=2**12)
def plan_size(plan: p.Plan) -> tuple[int, int]:
    """The depth of a plan in steps, and the number of all its steps. Consecutive conditions are one step, as for
    engines."""
    if isinstance(plan, p.Filter) and isinstance(plan.source, p.Filter):
        return plan_size(plan.source)
    steps = parts = 0
    for deeper, more in map(plan_size, p.inputs(plan)):
        steps, parts = max(steps, deeper), parts + more
    return 1 + steps, 1 + parts


def join_schema(plan: p.Join, left: Schema, right: Schema, facts: Facts = BY_KINDS) -> dict[str, p.Domain]:
    """The schema of a join. Both sides must have the key columns, with the same kinds."""
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
    """The schema of a union: the columns of the first schema, with the values of all of them."""
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
    """Whether a numeric key is rounded down to integers: not if its listed values are not all integers."""
    return isinstance(key.values, range) or all(
        isinstance(value, float | int) and float(value).is_integer() for value in key.values
    )


def grouped_by(key: p.Key | p.RowExpr, schema: Schema) -> p.RowExpr:
    """The expression that rows are grouped by: a number is rounded down if all public keys are integers."""
    if not isinstance(key, p.Key):
        return key
    whole = not floors(key) or kind_of(key.expr, schema) != "number" or is_integral(key.expr, schema)
    return key.expr if whole else p.Apply("floor", (key.expr,))


def group_rows_schema(plan: p.GroupRows, inner: Schema, facts: Facts = BY_KINDS) -> dict[str, p.Domain]:
    """The schema of groups of rows over a source with the schema `inner`."""
    keys = {name: derived_domain(expr, inner, facts) for name, expr in plan.keys}
    return keys | {name: _term_domain(term, plan.most, inner, facts) for name, term in plan.terms}


def _term_domain(term: p.GroupTerm, most: int | None, schema: Schema, facts: Facts) -> p.Domain:
    """The domain of a term in groups of at most `most` rows."""
    if isinstance(term, p.Extreme | p.Beside) and term.expr is not None:
        return derived_domain(term.expr, schema, facts)
    if isinstance(term, p.Count | p.Beside):
        return p.Open("integer") if most is None else p.Integer(int(term.expr is None), most)
    if most is None:
        return p.Open("real" if term.bits else "integer")
    low, high = min(0.0, term.low * most), max(0.0, term.high * most)
    return p.Integer(math.floor(low), math.ceil(high)) if not term.bits else p.Real(low, high)


MOST_KEYS, MOST_GROUPS = 2**20, 2**25
"""The largest number of values of one group key or partition, and of combinations of keys."""


def key_of(expr: p.RowExpr, over: Values | None, schema: Schema, limit: int, facts: Facts = BY_KINDS) -> p.Key | None:
    """A group key over the values that a program lists, or over the known values; None for an open key.

    `TypeError` for listed values of another kind than the expression, `ValueError` for those that no row can have.
    """
    if over is None:
        return facts.key(expr, schema, limit)
    kind = kind_of(expr, schema)
    for value in () if isinstance(over, range) else over[:1]:  # all values are of one kind
        if value_kind(value) != kind:
            raise mixed("`over`", kind, value_kind(value))
    facts.check_values(expr, over, schema)
    return p.Key(expr, over)


def dimensions(
    axes: Sequence[tuple[str, p.RowExpr, Values | None]], schema: Schema, limit: int, facts: Facts = BY_KINDS
) -> tuple[tuple[p.Key, ...], tuple[str, ...], tuple[int, ...]]:
    """The keys of a histogram's dimensions, their names, and their numbers of values. Refuses open keys."""
    keys = []
    for name, expr, over in axes:
        key = key_of(expr, over, schema, limit, facts)
        if key is None:
            raise open_keys(name)
        keys.append(key)
    return tuple(keys), tuple(name for name, _, _ in axes), tuple(len(key.values) for key in keys)


def need_unicode(value: object) -> None:
    """Refuses a text key with half a surrogate pair, which has no encoding. In SQL every half becomes the same
    replacement character, so parts by such keys would not be disjoint.
    """
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise refuse("ValueError", "a key has a character that no text can have") from None


def holds(key: p.Key, value: Any) -> p.RowExpr:
    """The condition of one group, where numeric keys are rounded down to integers first."""
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
