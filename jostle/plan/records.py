"""Plans of weighted records: what weights an engine is to work out, in whole numbers.

Records are combinations of values without a missing one; each has a weight of at least 0, a whole multiple of 2^-bits,
where the bits follow from the plan alone (`bits_of`). So no weight is ever rounded. The transformations and their
stability are argued in docs/privacy/weighted.md (Proserpio, Goldberg and McSherry 2014).
"""

from __future__ import annotations

from functools import lru_cache
from typing import assert_never

from msgspec import Struct

from jostle.plan.plan import Apply, Column, Derive, Domain, Filter, Integer, Key, Plan, RowExpr
from jostle.plan.schemas import BY_KINDS, Facts, derived_domain, united_schema

Schema = tuple[tuple[str, Domain], ...]


class Rows(Struct, frozen=True, cache_hash=True):
    """The rows of a table, by these columns: each weighs 1, and equal ones weigh as many. Rows with a missing cell in
    one of the columns are left out."""

    table: Plan
    columns: Schema


class Kept(Struct, frozen=True, cache_hash=True):
    """The records for which a condition is true, with their weights."""

    source: Records
    condition: RowExpr


class Mapped(Struct, frozen=True, cache_hash=True):
    """Of each record another one, calculated from it; the weights of those that become equal add up. Where an
    expression has no value the record is left out."""

    source: Records
    columns: tuple[tuple[str, RowExpr], ...]


class Shaved(Struct, frozen=True, cache_hash=True):
    """Of each record of weight w the records with a place 0, 1, … below `most`, in the column `name`: of min(s, w),
    then min(s, w − s), and so on while something is left. The step s is `step` units of 2^-`bits`."""

    source: Records
    name: str
    step: int
    bits: int
    most: int


class Sized(Struct, frozen=True, cache_hash=True):
    """For each value of the columns `by`, whose records weigh w₁ ≥ w₂ ≥ …, the size i of each prefix of these, in the
    column `name`, at most `most`; the record weighs (w_i − w_{i+1}) / 2, the last one half of its weight."""

    source: Records
    by: tuple[str, ...]
    name: str
    most: int


class Reduced(Struct, frozen=True, cache_hash=True):
    """The same prefixes, in the place of the size what `reducer` (`max`, `min` or `sum`) makes of the numbers that a
    prefix has in the column `of`, between `low` and `high`."""

    source: Records
    by: tuple[str, ...]
    name: str
    reducer: str
    of: str
    low: float
    high: float


class Joined(Struct, frozen=True, cache_hash=True):
    """Pairs of records that are equal in the columns `on`, of weight a·b / s, where s is what all records of that
    value weigh, on both sides together (`engine.records`). Up to s = 2^`most`; from there on it falls, to
    nothing at twice as much."""

    left: Records
    right: Records
    on: tuple[str, ...]
    most: int


class Combined(Struct, frozen=True, cache_hash=True):
    """Of each record in either of two the larger weight (`union`), the smaller one (`intersect`), both (`concat`), or
    what the left has more than the right (`without`)."""

    how: str
    left: Records
    right: Records


Records = Rows | Kept | Mapped | Shaved | Sized | Reduced | Joined | Combined


def sources_of(plan: Records) -> tuple[Records, ...]:
    """The records that others are made from; none of the rows of a table."""
    match plan:
        case Rows():
            return ()
        case Joined() | Combined():
            return (plan.left, plan.right)
        case _:
            return (plan.source,)


@lru_cache(maxsize=2**12)
def size_of(plan: Records) -> tuple[int, int]:
    """How many steps, one after the other, lead from rows to these records, and how many there are in all."""
    below = [*map(size_of, sources_of(plan)), (0, 0)]
    return 1 + max(steps for steps, _ in below), 1 + sum(parts for _, parts in below)


@lru_cache(maxsize=2**12)
def record_schema(plan: Records, facts: Facts = BY_KINDS) -> Schema:
    """The columns of a plan with what is publicly known of each: a function of the plan, whatever rows there are."""
    match plan:
        case Rows():
            return plan.columns
        case Kept():
            return record_schema(plan.source, facts)
        case Mapped():
            inner = dict(record_schema(plan.source, facts))
            return tuple((name, derived_domain(expr, inner, facts)) for name, expr in plan.columns)
        case Shaved():
            return (*record_schema(plan.source, facts), (plan.name, Integer(0, plan.most - 1)))
        case Sized():
            return (*_keys(plan, facts), (plan.name, Integer(1, plan.most)))
        case Reduced():
            of = dict(record_schema(plan.source, facts))[plan.of]
            domain = Integer(int(plan.low), int(plan.high)) if plan.reducer == "sum" else of
            return (*_keys(plan, facts), (plan.name, domain))
        case Joined():
            more = [column for column in record_schema(plan.right, facts) if column[0] not in plan.on]
            return (*record_schema(plan.left, facts), *more)
        case Combined():
            sides = [dict(record_schema(side, facts)) for side in (plan.left, plan.right)]
            return tuple(united_schema(sides, facts).items())
    assert_never(plan)


def _keys(plan: Sized | Reduced, facts: Facts) -> Schema:
    inner = dict(record_schema(plan.source, facts))
    return tuple((name, inner[name]) for name in plan.by)


def last_steps(plan: Records) -> tuple[Records, tuple[Kept | Mapped, ...]]:
    """What records are made of by conditions and calculated columns, and these, the first one first."""
    steps: list[Kept | Mapped] = []
    while isinstance(plan, Kept | Mapped):
        steps.append(plan)
        plan = plan.source
    return plan, tuple(reversed(steps))


def on_rows(plan: Plan, steps: tuple[Kept | Mapped, ...]) -> Plan:
    """The rows that conditions and calculated columns make of those of a plan of which no cell is missing."""
    for step in steps:
        if isinstance(step, Kept):
            plan = Filter(plan, step.condition)
        else:
            plan = whole(Derive(plan, step.columns), [name for name, e in step.columns if not isinstance(e, Column)])
    return plan


def whole(plan: Plan, names: list[str]) -> Plan:
    """The rows in which none of these columns is missing."""
    tests = tuple(Apply("not", (Apply("missing", (Column(name),)),)) for name in names)
    return Filter(plan, Apply("and", tests)) if tests else plan


@lru_cache(maxsize=2**12)
def bits_of(plan: Records) -> int:
    """The weights of a plan are whole multiples of 2^-bits."""
    match plan:
        case Rows():
            return 0
        case Kept() | Mapped():
            return bits_of(plan.source)
        case Shaved():
            return max(bits_of(plan.source), plan.bits)
        case Sized() | Reduced():
            return bits_of(plan.source) + 1
        case Joined():
            sides = max(bits_of(plan.left), bits_of(plan.right))
            return sides + share_bits(sides + plan.most)
        case Combined():
            return max(bits_of(plan.left), bits_of(plan.right))
    assert_never(plan)


def share_bits(height: int) -> int:
    """The bits of the shares of a join whose keys weigh up to 2^`height` units: two and a half times as many, so that
    rounding a share down moves all pairs together by less than the join has to spare."""
    return (5 * height + 1) // 2


# What is asked of records ---------------------------------------------------------------------------

CELL_BITS = 24


class Weights(Struct, frozen=True, cache_hash=True):
    """The sum of weights for every combination of the keys' values, in units of 2^-CELL_BITS."""

    records: Records
    keys: tuple[Key, ...]
