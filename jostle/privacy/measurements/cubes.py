"""A select on a cube of counts: sums of `values`, counts of cells, the largest cell.

One row more or less moves one cell by one, so each of these, over any disjoint groups of cells, moves by at most 1
in ℓ₁: a sum by exactly 1, a number of cells (where a condition may look at `values`) by at most 1, a maximum by at
most 1. `values` may stand nowhere else: a sum under a condition on `values` would have no bound.

Where rows have weights, those of one person move cells by a weight of 1 in all. Sums and maxima are 1-Lipschitz in
the cells in ℓ₁ and move by at most 1; the number of cells that pass a condition is not, and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from msgspec import Struct

from jostle.accounting.amounts import Amount
from jostle.accounting.definitions import Price
from jostle.diagnostics import refuse
from jostle.engine.sql.persons import names_in
from jostle.integers import fixed_width
from jostle.language.moments import number_of
from jostle.lazy import Array, Floats, Ints, np
from jostle.plan.plan import Apply, Column, Key, RowExpr
from jostle.plan.schemas import MOST_KEYS, key_of, open_keys
from jostle.privacy.kernel.handles import UNWEIGHTED, VALUES, Cube
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.kernel.measurement import LinearMeasurement, Measured, needed, weighted_stability_of
from jostle.privacy.measurements.aggregates.aggregate import Aggregate
from jostle.privacy.measurements.query import Answer, GroupKey, key_columns
from jostle.privacy.mechanisms.additive import Additive, Linear, share, sum_prices
from jostle.privacy.reading.public_data import PublicData
from jostle.privacy.reading.vault import Reader, on_cells


class CubeRequest(Struct, frozen=True):
    """A prepared select on a cube."""

    cube: Cube
    where: RowExpr | None
    keys: tuple[Key, ...]
    aggregates: tuple[Aggregate, ...]

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
        """The exact aggregates, an array over the groups each, from the cells."""
        counts = units.ravel()
        group, size = self._groups()
        if self.where is not None:
            holding, valid = on_cells(self.cube, self.where, counts)
            group = np.where(holding.astype(bool) & valid, group, -1)
        group = np.broadcast_to(group, self.cube.shape).ravel()
        inside = group >= 0
        answers = [a.of_cells(counts[inside], group[inside], size) for a in self.aggregates]
        return [column for column in answers if column is not None]

    def _groups(self) -> tuple[Ints, int]:
        """The group of every cell, or −1, in a shape that broadcasts to the cube's, and the number of groups."""
        group, size = np.zeros([1] * len(self.cube.shape), dtype=np.int64), 1
        for key in self.keys:
            values, valid = on_cells(self.cube, key.expr)
            place = _places(values, key)
            group = np.where((group >= 0) & (place >= 0) & valid, group * len(key.values) + place, -1)
            size *= len(key.values)
        return group, size


@dataclass(frozen=True, eq=False)
class CubeSelect(LinearMeasurement[Answer]):
    """A prepared select at an amount, of which each aggregate has an equal share."""

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
    cube: Cube, where: RowExpr | None, group_keys: Sequence[GroupKey], aggregates: Sequence[Aggregate]
) -> CubeRequest:
    """Checks that `values` stands only where its sensitivity is known, and takes the keys from the dimensions."""
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
        if aggregate.name != "count" and where is not None and VALUES in names_in([where]):
            raise refuse(
                "TypeError", f"a condition on `values` is only for `count(values)`, not for `{aggregate.name}`",
                help="one row could bring a whole cell in or out",
            )  # fmt: skip
    keys = []
    for group_key in group_keys:
        if VALUES in names_in([group_key.expr]):
            raise refuse("TypeError", "`values` cannot be grouped by", help="group by a dimension")
        key = key_of(group_key.expr, group_key.over, dict(cube.schema), MOST_KEYS)
        if key is None:
            raise open_keys(group_key.name)
        keys.append(key)
    if where is not None:
        _only_compared(where)
    return CubeRequest(cube, where, tuple(keys), tuple(aggregates))


def _only_compared(expr: RowExpr) -> None:
    """`values` may be compared with a constant, not calculated with."""
    if not isinstance(expr, Apply):
        return
    logic = expr.op in ("and", "or", "not")
    compared = expr.op in ("==", "!=", "<", "<=", ">", ">=", "in")
    for arg in expr.args:
        if arg == Column(VALUES) and not compared:
            raise refuse("TypeError", "`values` cannot be calculated with", help="compare it: `where values > 0`")
        if logic or compared:
            _only_compared(arg)
        elif VALUES in names_in([arg]):
            raise refuse("TypeError", "`values` cannot be calculated with", help="compare it: `where values > 0`")


def _places(values: Array, key: Key) -> Ints:
    if isinstance(key.values, range):
        place = np.floor(np.nan_to_num(values.astype(float), nan=-1e18)) - key.values.start
        return fixed_width(np.where((place >= 0) & (place < len(key.values)), place, -1))
    place = np.full(values.shape, -1, dtype=np.int64)
    floored = np.floor(values) if values.dtype.kind == "f" else values
    for i, value in enumerate(key.values):
        place[floored == (number_of(value) if isinstance(value, date) else value)] = i
    return place
