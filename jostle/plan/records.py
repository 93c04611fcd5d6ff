"""Plans of weighted records, whose weights engines compute in integers.

Records are combinations of values without a missing one. Each has a weight of at least 0, an integer multiple of
2^-bits, where the bits follow from the plan alone (`bits_of`), so no weight is rounded. The transformations and their
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
    """The rows of a table by these columns, each with weight 1; weights of equal rows add up. Rows with a missing cell
    in one of the columns are dropped."""

    table: Plan
    columns: Schema


class Kept(Struct, frozen=True, cache_hash=True):
    """The records for which a condition is true, with their weights."""

    source: Records
    condition: RowExpr


class Mapped(Struct, frozen=True, cache_hash=True):
    """Records computed from each record. Weights of records that become equal add up. Records with a missing value are
    dropped."""

    source: Records
    columns: tuple[tuple[str, RowExpr], ...]


class Shaved(Struct, frozen=True, cache_hash=True):
    """Divides each record of weight w into records numbered 0, 1, … below `most` in the column `name`, of weight
    min(s, w), then min(s, w − s), and so on while weight is left. The step s is `step` units of 2^-`bits`."""

    source: Records
    name: str
    step: int
    bits: int
    most: int


class Sized(Struct, frozen=True, cache_hash=True):
    """For each value of the columns `by`, whose records have weights w₁ ≥ w₂ ≥ …, the size i of each prefix, at most
    `most`, in the column `name`, with weight (w_i − w_{i+1}) / 2; the last has half of its weight."""

    source: Records
    by: tuple[str, ...]
    name: str
    most: int


class Reduced(Struct, frozen=True, cache_hash=True):
    """The same prefixes with `reducer` (`max`, `min` or `sum`) of their numbers in the column `of`, between `low` and
    `high`, in place of the size."""

    source: Records
    by: tuple[str, ...]
    name: str
    reducer: str
    of: str
    low: float
    high: float


class Joined(Struct, frozen=True, cache_hash=True):
    """Pairs of records that are equal in the columns `on`, with weight a·b / s, where s is the total weight of the
    records with that value on both sides (`engine.records`). Beyond s = 2^`most` it falls, to 0 at twice as much."""

    left: Records
    right: Records
    on: tuple[str, ...]
    most: int


class Combined(Struct, frozen=True, cache_hash=True):
    """The records of two collections with the larger weight (`union`), the smaller one (`intersect`), the sum
    (`concat`), or the excess of the left over the right (`without`)."""

    how: str
    left: Records
    right: Records


Records = Rows | Kept | Mapped | Shaved | Sized | Reduced | Joined | Combined


def sources_of(plan: Records) -> tuple[Records, ...]:
    """The direct inputs of records; empty for the rows of a table."""
    match plan:
        case Rows():
            return ()
        case Joined() | Combined():
            return (plan.left, plan.right)
        case _:
            return (plan.source,)


@lru_cache(maxsize=2**12)
def size_of(plan: Records) -> tuple[int, int]:
    """The depth of a plan in steps, and the number of all its steps."""
    below = [*map(size_of, sources_of(plan)), (0, 0)]
    return 1 + max(steps for steps, _ in below), 1 + sum(parts for _, parts in below)


@lru_cache(maxsize=2**12)
def record_schema(plan: Records, facts: Facts = BY_KINDS) -> Schema:
    """The schema of a plan, a function of the plan alone."""
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
    """The plan below conditions and computed columns, and these steps, the first one first."""
    steps: list[Kept | Mapped] = []
    while isinstance(plan, Kept | Mapped):
        steps.append(plan)
        plan = plan.source
    return plan, tuple(reversed(steps))


def on_rows(plan: Plan, steps: tuple[Kept | Mapped, ...]) -> Plan:
    """The rows of a plan without missing cells, after conditions and computed columns."""
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
    """The bits of a plan: its weights are integer multiples of 2^-bits."""
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
    """The bits of the shares of a join for keys of up to 2^`height` units: 2.5 times as many, so that rounding shares
    down changes all pairs together by less than the slack of the join."""
    return (5 * height + 1) // 2


# What is asked of records ---------------------------------------------------------------------------

CELL_BITS = 24


class Weights(Struct, frozen=True, cache_hash=True):
    """The sum of weights for every combination of the keys' values, in units of 2^-CELL_BITS."""

    records: Records
    keys: tuple[Key, ...]
