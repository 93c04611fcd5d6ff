"""Plans of weighted records: what weights an engine is to work out, in whole numbers.

Records are combinations of values without a missing one; each has a weight of at least 0, a whole multiple of 2^-bits,
where the bits follow from the plan alone (`bits_of`). So no weight is ever rounded. The transformations and their
stability are argued in docs/privacy/weighted.md (Proserpio, Goldberg and McSherry 2014).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from jostle.plan.domains import Domain
from jostle.plan.hashing import Hashed, hashed_once
from jostle.plan.plan import Key, Plan, RowExpr

Schema = tuple[tuple[str, Domain], ...]


@hashed_once
@dataclass(frozen=True, slots=True)
class Rows(Hashed):
    """The rows of a table, by these columns: each weighs 1, and equal ones weigh as many. Rows with a missing cell in
    one of the columns are left out."""

    table: Plan
    columns: Schema


@hashed_once
@dataclass(frozen=True, slots=True)
class Kept(Hashed):
    """The records for which a condition is true, with their weights."""

    source: Records
    condition: RowExpr


@hashed_once
@dataclass(frozen=True, slots=True)
class Mapped(Hashed):
    """Of each record another one, calculated from it; the weights of those that become equal add up. Where an
    expression has no value the record is left out."""

    source: Records
    columns: tuple[tuple[str, RowExpr], ...]


@hashed_once
@dataclass(frozen=True, slots=True)
class Shaved(Hashed):
    """Of each record of weight w the records with a place 0, 1, … below `most`, in the column `name`: of min(s, w),
    then min(s, w − s), and so on while something is left. The step s is `step` units of 2^-`bits`."""

    source: Records
    name: str
    step: int
    bits: int
    most: int


@hashed_once
@dataclass(frozen=True, slots=True)
class Sized(Hashed):
    """For each value of the columns `by`, whose records weigh w₁ ≥ w₂ ≥ …, the size i of each prefix of these, in the
    column `name`, at most `most`; the record weighs (w_i − w_{i+1}) / 2, the last one half of its weight."""

    source: Records
    by: tuple[str, ...]
    name: str
    most: int


@hashed_once
@dataclass(frozen=True, slots=True)
class Reduced(Hashed):
    """The same prefixes, in the place of the size what `reducer` (`max`, `min` or `sum`) makes of the numbers that a
    prefix has in the column `of`, between `low` and `high`."""

    source: Records
    by: tuple[str, ...]
    name: str
    reducer: str
    of: str
    low: float
    high: float


@hashed_once
@dataclass(frozen=True, slots=True)
class Joined(Hashed):
    """Pairs of records that are equal in the columns `on`, of weight a·b / s, where s is what all records of that
    value weigh, on both sides together (`engine.records.shares`). Up to s = 2^`most`; from there on it falls, to
    nothing at twice as much."""

    left: Records
    right: Records
    on: tuple[str, ...]
    most: int


@hashed_once
@dataclass(frozen=True, slots=True)
class Combined(Hashed):
    """Of each record in either of two the larger weight (`union`), the smaller one (`intersect`), both (`concat`), or
    what the left has more than the right (`without`)."""

    how: str
    left: Records
    right: Records


Records = Rows | Kept | Mapped | Shaved | Sized | Reduced | Joined | Combined


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


@hashed_once
@dataclass(frozen=True, slots=True)
class Weights(Hashed):
    """The sum of weights for every combination of the keys' values, in units of 2^-CELL_BITS."""

    records: Records
    keys: tuple[Key, ...]
