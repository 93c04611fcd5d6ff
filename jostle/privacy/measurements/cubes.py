"""A select on a cube of counts: sums of `values`, counts of cells, the largest cell.

Adding or removing one row changes one cell by one, so each of these, over any disjoint groups of cells, changes by at
most 1 in ℓ₁: a sum by exactly 1, a number of cells (whose condition may use `values`) and a maximum by at most 1. Other
uses of `values` are refused: a sum under a condition on `values` has no bound.

If rows have weights, those of one person change cells by a weight of 1 in all. Sums and maxima are 1-Lipschitz in the
cells in ℓ₁ and change by at most 1. The number of cells that satisfy a condition is not Lipschitz, and is refused.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec import Struct

from jostle.accounting.amounts import Amount
from jostle.accounting.definitions import Price
from jostle.diagnostics import refuse
from jostle.lazy import Bools, Floats, Ints, np
from jostle.plan.plan import Column, Key, RowExpr
from jostle.plan.schemas import MOST_KEYS, Facts, key_of, open_keys
from jostle.privacy.kernel.handles import UNWEIGHTED, VALUES, Cube
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.kernel.measurement import LinearMeasurement, Measured, needed, weighted_stability_of
from jostle.privacy.measurements.aggregates.aggregate import Aggregate
from jostle.privacy.measurements.selects import Answer, GroupKey, key_columns
from jostle.privacy.mechanisms.additive import Additive, Linear, share, sum_prices
from jostle.privacy.reading.public_data import PublicData
from jostle.privacy.reading.vault import Reader


class Stated(Struct, frozen=True, eq=False):
    """A condition on the positions of cells, as public arrays of where it is true and where it is false."""

    true: Bools
    false: Bools

    def of(self, counts: Ints) -> tuple[Bools, Bools]:
        return self.true, self.false


class Compared(Struct, frozen=True, eq=False):
    """A comparison of a cell's count with a public number; NaN is a missing number."""

    op: str
    number: Floats

    def of(self, counts: Ints) -> tuple[Bools, Bools]:
        holds, valid = _COMPARISONS[self.op](counts, self.number), ~np.isnan(self.number)
        return holds & valid, ~holds & valid


class Together(Struct, frozen=True, eq=False):
    """`and`, `or` or `not` of conditions, three-valued as in SQL."""

    op: str
    parts: tuple[CellTest, ...]

    def of(self, counts: Ints) -> tuple[Bools, Bools]:
        """Where the condition is true for the cells, and where it is false."""
        parts = [part.of(counts) for part in self.parts]
        true, false = parts[0]
        for more, less in parts[1:]:
            true, false = (true & more, false | less) if self.op == "and" else (true | more, false & less)
        return (false, true) if self.op == "not" else (true, false)


CellTest = Stated | Compared | Together
_COMPARISONS = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class CubeRequest(Struct, frozen=True, eq=False):
    """A prepared select on a cube. `test` is the condition on a cell, and `codes` has for each key the index of each
    cell among its values, public arrays that broadcast to the cube's shape."""

    cube: Cube
    where: RowExpr | None
    keys: tuple[Key, ...]
    aggregates: tuple[Aggregate, ...]
    test: CellTest | None
    codes: tuple[Ints, ...]

    @property
    def digest_facts(self) -> tuple[object, ...]:
        return "CubeRequest", self.cube, self.where, self.keys, self.aggregates

    @property
    def title(self) -> str:
        return ", ".join(a.name for a in self.aggregates)

    def exact(self, kernel: Kernel, data: PublicData) -> Answer:
        """The answer for a public cube."""
        return kernel.measure(self.measurement(None, None))

    def measurement(self, amount: Amount | None, via: str | None) -> CubeSelect:
        how, many = None, len(self.aggregates)
        if amount is not None:
            how = Additive.fitted(share(amount, many), via, self.cube.measures)
        reach = weighted_stability_of(self.cube) << self.cube.bits
        linear = (Linear.of(how, reach, reach, self.cube.bits),) * many
        return CubeSelect(self.cube.exposures, self.title, how, linear, self, amount, subject=self)

    def integers(self, units: Ints) -> list[Ints]:
        """The exact aggregates of the cells, one array over the groups each."""
        group, size = np.zeros([1] * units.ndim, dtype=np.int64), 1
        for key, code in zip(self.keys, self.codes, strict=True):
            group = np.where((group >= 0) & (code >= 0), group * len(key.values) + code, -1)
            size *= len(key.values)
        if self.test is not None:
            group = np.where(self.test.of(units)[0], group, -1)
        group = np.broadcast_to(group, units.shape)
        inside = (group >= 0) & (group < size)
        answers = [a.of_cells(units[inside], group[inside], size) for a in self.aggregates]
        return [column for column in answers if column is not None]


@dataclass(frozen=True, eq=False)
class CubeSelect(LinearMeasurement[Answer]):
    """A prepared select at an amount, which is divided equally among the aggregates."""

    request: CubeRequest
    amount: Amount | None

    @property
    def price(self) -> Price:
        return sum_prices(needed(self.amount), [self.how.price] * len(self.linear) if self.how else [])

    def read(self, reader: Reader) -> list[Ints]:
        return self.request.integers(reader.units(self.request.cube))

    def measured(self) -> tuple[Measured, ...]:
        stability, law = weighted_stability_of(self.request.cube), self.linear[0].law
        return tuple(Measured(a.name, law, self.how, 1, stability, direct=True) for a in self.request.aggregates)

    def finish(self, released: list[Floats]) -> Answer:
        keys, law = key_columns([list(k.values) for k in self.request.keys]), self.linear[0].law
        return Answer(keys, [column.tolist() for column in released], law if self.how is not None else None)


def prepare_cube(
    cube: Cube, where: RowExpr | None, test: CellTest | None, group_keys: Sequence[GroupKey],
    aggregates: Sequence[Aggregate], codes: Callable[[Key], Ints], facts: Facts,
) -> CubeRequest:  # fmt: skip
    """Checks that counts of cells are used only where their sensitivity is known, and derives keys from the dimensions.

    `test` is the condition `where`, and `codes` returns the indices of cells among the values of a key. A wrong one
    asks another question at the same price.
    """
    none = np.zeros(0, dtype=np.int64)
    for aggregate in aggregates:
        if aggregate.of_cells(none, none, 1) is None or aggregate.expressions != (Column(VALUES),):
            raise refuse(
                "TypeError", f"a cube has `sum(values)`, `count(values) where …` and `max(values)`, not this "
                f"`{aggregate.name}`", help="dimensions are positions: group by them",
            )  # fmt: skip
        if aggregate.name == "count" and cube.bits:
            raise refuse(
                "TypeError", "cells are counted of counts of rows, and these rows have weights", help=UNWEIGHTED
            )  # fmt: skip
        if aggregate.name != "count" and not isinstance(test, Stated | None):
            raise refuse(
                "TypeError", f"a condition on `values` is only for `count(values)`, not for `{aggregate.name}`",
                help="one row could bring a whole cell in or out",
            )  # fmt: skip
    keys = []
    for group_key in group_keys:
        key = key_of(group_key.expr, group_key.over, dict(cube.schema), MOST_KEYS, facts)
        if key is None:
            raise open_keys(group_key.name)
        keys.append(key)
    return CubeRequest(cube, where, tuple(keys), tuple(aggregates), test, tuple(map(codes, keys)))
