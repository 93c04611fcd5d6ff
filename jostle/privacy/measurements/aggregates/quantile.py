"""Quantiles of an expression, including the extremes, by report noisy max over public intervals.

*Intervals* cover the public bounds of the expression: one for each integer if there are at most 4,096, else about 4,096
of equal width, with finer ones near 0. An interval is selected, and the answer is the number in it with the fewest
decimal digits, as most values of data have few (`run.answers`). Ends are integer multiples of powers of two, so a row's
interval is an exact product, rounded down: one integer key, the same on every engine. Only the number of rows in each
interval is read. The last interval has no end: #{< b} is N there. An exact minimum or maximum would select the edge of
the domain at any noise. So it aims, by a public shift, at the rank that the noise can resolve, or at the first or last
row if that is finer. If rows have weights, counts are of weights, in whole units, and k is the weight of a person.

*An error in values* costs a quarter of the amount (half of it `via interval`; nothing `via selection`, or for a
minimum or maximum): `Bracketing`. Public places on both sides of the selected interval, at 1, 2, 4, … intervals from
it, divide the bounds into parts, whose rows are counted with noise.

*Argument.* The counts depend on the output of the selection, and both prices add up (adaptive composition, in ε and in
ρ). Parts are disjoint, so a row is in one part of one group. All counts of all groups together change by at most what
the count of groups does (`aggregate.reach_of`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

from msgspec import Struct

from jostle.accounting.amounts import Amount, as_float
from jostle.accounting.definitions import Price
from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.lazy import Floats, Ints, np
from jostle.noise_laws import Bracketed, Selected
from jostle.plan.kinds import is_integral
from jostle.plan.plan import WEIGHT_BITS, Apply, Constant, Count, Exact, Key, RowExpr
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.measurement import Measured, weighted_stability_of
from jostle.privacy.measurements.aggregates import aggregate as agg
from jostle.privacy.mechanisms.additive import Additive, Linear, sum_prices
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.mechanisms.selection import Selection
from jostle.records import replace

EVEN = 4096  # intervals of equal width, within a factor of √2
OCTAVES, STEPS = 40, 64  # halvings of the largest magnitude towards 0, and the intervals in each
_FINEST = -1021  # the exponent of the narrowest interval: its inverse is a double


class Intervals(Struct, frozen=True, eq=False, dict=True):
    """The intervals between two ends, with codes from `first` to `last`.

    Their width is 2^`exponent` for values of at least `STEPS` times that. Towards 0 it is halved `halvings` times.
    Without an exponent each integer is an interval.
    """

    low: float
    high: float
    first: int
    last: int
    exponent: int | None = None
    halvings: int = 0

    @cached_property
    def starts(self) -> Floats:
        """The start of each interval; it ends where the next one starts."""
        codes = np.arange(self.first, self.last + 1)
        if self.exponent is None:
            return codes.astype(float)
        starts = _starts(codes, self.exponent, self.halvings)
        starts[0] = self.low
        return starts

    def key(self, expr: RowExpr) -> Key:
        """The intervals as a group key of rows; a missing value is in no group."""
        return Key(self._code(expr), range(self.first, self.last + 1))

    def _code(self, expr: RowExpr) -> RowExpr:
        if self.exponent is None:
            return expr
        sides = [self._side(expr, 0, self.halvings, negative) for negative in (False, True)]
        if self.low >= 0 or not self.halvings:
            return sides[0]
        return Apply("if", (Apply(">=", (expr, Constant(0.0))), *sides))

    def _side(self, expr: RowExpr, first: int, last: int, negative: bool) -> RowExpr:
        """The code of a value on one side of 0, where the width is halved `first` to `last` times. Fewer halvings are
        tested first, since most values are far from 0."""
        if first == last:
            scaled = Apply("*", (expr, Constant(math.ldexp(1.0, first - (self.exponent or 0)))))
            shift = _shift(first, self.halvings, negative)
            return Apply("+", (Apply("floor", (scaled,)), Constant(float(shift)))) if shift else scaled
        middle = 2 * first if 2 * first < last else (first + last) // 2
        least = math.ldexp(STEPS, (self.exponent or 0) - middle)
        wide = Apply("<=", (expr, Constant(-least))) if negative else Apply(">=", (expr, Constant(least)))
        few, many = self._side(expr, first, middle, negative), self._side(expr, middle + 1, last, negative)
        return Apply("if", (wide, few, many))


def _shift(halved: int, halvings: int, negative: bool) -> int:
    """The number that is added to a value's position on the grid with `halved` halvings, so that codes continue from
    grid to grid: each has `STEPS` positions up to the next, on either side of 0."""
    return STEPS * (halved - 2 * halvings if negative else -halved)


@lru_cache(64)
def intervals(low: float, high: float, integral: bool) -> Intervals:
    """The intervals between two finite ends, which are in the first and the last one.

    Each integer is an interval if there are at most `EVEN`.
    """
    if integral and high - low < EVEN:
        return Intervals(low, high, math.floor(low), math.floor(high))
    largest, nearest = max(abs(low), abs(high)), max(low, -high, 0.0)
    width, power = math.frexp(high / EVEN - low / EVEN)
    nearest_power = power - (width < math.sqrt(0.5)) if width else _FINEST
    exponent = max(nearest_power, math.frexp(largest)[1] - 53, _FINEST)  # the distance of doubles
    least = max(math.frexp(largest)[1] - OCTAVES - STEPS.bit_length(), 0 if integral else _FINEST)
    if nearest:
        least = max(least, math.frexp(nearest)[1] - STEPS.bit_length())
    halvings = max(0, exponent - least)
    first, last = (_code_of(end, exponent, halvings) for end in (low, high))
    return Intervals(low, high, first, last, exponent, halvings)


def _code_of(value: float, exponent: int, halvings: int) -> int:
    """The code of a number, as `Intervals.key` computes it for a row."""
    halved = 0
    while halved < halvings and abs(value) < math.ldexp(STEPS, exponent - halved):
        halved += 1
    place = math.floor(math.ldexp(value, halved - exponent))
    return place if not halvings else place + _shift(halved, halvings, value < 0)


def _starts(codes: Ints, exponent: int, halvings: int) -> Floats:
    """The starts of the intervals with these codes."""
    centred = codes + STEPS * halvings  # positions on the finest grid, continued on coarser ones
    coarser = (np.maximum(centred, ~centred) // STEPS - 1).clip(0, halvings)
    places = centred - np.sign(centred) * STEPS * coarser
    starts: Floats = np.ldexp(places.astype(float), exponent - halvings + coarser)
    return starts


class Bracketing(Struct, frozen=True):
    """A selection and noisy counts of a table's rows, within one amount. The counts have all of a delta."""

    amount: Amount
    selection: Selection
    counts: Additive
    rows: Count
    table: Table

    @classmethod
    def of(cls, amount: Amount, table: Table, parts: int) -> Bracketing:
        """The mechanisms for an amount, of which one of `parts` parts is for the counts."""
        rows, of_counts = Count(weighted=table.weighted), amount.value // parts
        selection = Selection.of(Amount(amount.unit, amount.value - of_counts, amount.delta), table.measures)
        part = Amount(amount.unit, of_counts, amount.delta)
        counts = Additive.fitted(part, None, table.measures, *agg.reach_of(rows, table, undivided=False))
        return cls(amount, selection, counts, rows, table)

    @property
    def mechanism(self) -> str:
        return Bracketed.name

    @property
    def price(self) -> Price:
        return sum_prices(self.amount, [self.selection.price, self.counts.price])

    @property
    def measured(self) -> Measured:
        """The trace record of the counts."""
        stability = agg.stability_of_term(self.rows, self.table, undivided=False)
        return Measured("rows around", self._linear.law, self.counts, 1, stability)

    def around(
        self, chosen: Sequence[int], exact: Sequence[Ints], starts: Floats, part: float, noise: Noise
    ) -> Iterator[tuple[Floats, Floats]]:
        """For each group, places around the selected interval, and how clear it is which side of the quantile each is.

        `exact` has the rows of each interval, in units of their grid, and `starts` where intervals start. `part` is the
        quantile. Clearness is defined by `Bracketed`.
        """
        linear, places = self._linear, [_places(place, len(starts)) for place in chosen]
        rows = [np.diff(_rows_below(counts)[[*at, -1]], prepend=0) for counts, at in zip(exact, places, strict=True)]
        noisy, first = linear.release(np.concatenate([np.zeros(0, dtype=np.int64), *rows]), noise), 0
        for place, at in zip(chosen, places, strict=True):
            of, many, first = noisy[first : first + len(at) + 1], np.arange(1, len(at) + 1), first + len(at) + 1
            more = (1 - part) * of.cumsum()[:-1] - part * of[::-1].cumsum()[::-1][1:]
            sizes = np.sqrt(many * (1 - part) ** 2 + many[::-1] * part**2)
            clear = more / (linear.law.smooth.deviation * sizes)
            yield starts[at], np.where(np.array(at) <= place, np.minimum(clear, 0), np.maximum(clear, 0))

    @property
    def _linear(self) -> Linear:
        return Linear.of(self.counts, *agg.reach_of(self.rows, self.table, undivided=False), agg.grid_of(self.rows))


def _places(chosen: int, many: int) -> list[int]:
    """The intervals whose starts are places: around the selected one of `many`, at doubling distances."""
    steps = [2**i for i in range(many.bit_length())]
    around = {chosen, chosen + 1, *(chosen - step for step in steps), *(chosen + 1 + step for step in steps)}
    return sorted(place for place in around if 0 < place < many)


PARTS = 4
"""One of this many parts of a quantile's amount buys its error in values."""


class Quantile(agg.SelectionAggregate):
    """A quantile of an expression: report noisy max over public intervals.

    *Measures* A public interval [a, b), by minus the distance of 0 from [d·#{< a} − c·N, d·#{< b} − c·N], q = c/d.
    *Sensitivity* max(c, d − c), either way.
    *Mechanism* Noisy max at 2·max(c, d − c)·k/ε.
    *Why* A row changes each end by −c or by d − c, and a distance is 1-Lipschitz in the ends.
    """

    name = "quantile"

    def rank(self) -> float:
        """The quantile q to aim at."""
        return self.numbers[0]

    def check(self, table: Table) -> None:
        super().check(table)
        if not 0 <= self.rank() <= 1:
            share = self.rank() / 100 if 1 < self.rank() <= 100 else 0.25
            raise refuse("ValueError", "a quantile lies between 0 and 1", help=f"write `quantile(x, {share:g})`")

    def candidates(self, table: Table) -> tuple[float, float]:
        bounds = table.bounds_of(self.expr)
        if bounds is None:
            raise refuse(
                "UnboundedSum", f"this {self.name} has no known bounds to search between",
                help="describe the column with a range, or bound it: `clamp(E, low, high)`; `bounds(E)` buys them",
            )  # fmt: skip
        return bounds

    def places(self, table: Table) -> Key:
        return self.intervals(table).key(self.expr)

    def mechanism(self, amount: Amount, via: str | None, table: Table) -> Selection | Bracketing:  # type: ignore[override]
        if via == Selected.name or (via is None and self.rank() in (0, 1)):
            return super().mechanism(amount, None, table)
        parts = {None: PARTS, Bracketed.name: 2}.get(via)
        return super().mechanism(amount, via, table) if parts is None else Bracketing.of(amount, table, parts)

    def choose(self, mechanism: Selection, exact: Ints, noise: Noise, table: Table) -> tuple[float, Selected]:
        """The start of the selected interval. `run.answers` picks the number in it."""
        starts, below = self.intervals(table).starts, _rows_below(exact)
        part = Fraction(self.rank()).limit_denominator(1000)
        c, d = part.numerator, part.denominator
        unit = 1 << (WEIGHT_BITS if table.weighted else 0)  # a row in the counts
        scale = mechanism.scale(max(c, d - c) * weighted_stability_of(table) * unit, monotone=False)
        least, most = d * below[:-1] - c * below[-1], d * below[1:] - c * below[-1]
        inside = max(unit, math.ceil(min(scale * math.log(len(starts)) / 2, 2.0**61))) if c in (0, d) else 0
        shift = inside if c == 0 else -inside
        least, most = least - shift, most - shift
        scores = -np.maximum(0, np.maximum(least, -most))
        law = Selected(scale / (d * unit), len(starts), inside=inside / (d * unit))  # in ranks
        return float(starts[mechanism.choose(noise, scores, scale)]), law

    def release(
        self, mechanism: Any, exact: Sequence[Ints], noise: Noise, table: Table, undivided: bool
    ) -> tuple[list[agg.Chosen], list[Measured]]:
        if not isinstance(mechanism, Bracketing):
            return super().release(mechanism, exact, noise, table, undivided)
        answers, (event,) = super().release(mechanism.selection, exact, noise, table, undivided)
        events = [replace(event, uses={self.name: as_float(mechanism.amount.value)})]
        low, high = self.candidates(table)
        starts, whole = self.intervals(table).starts, is_integral(self.expr, table.domains)
        bracketed: list[agg.Chosen] = []
        chosen = [int(starts.searchsorted(answer, side="right")) - 1 for answer, _ in answers]
        around = mechanism.around(chosen, exact, starts, self.rank(), noise)
        for (answer, _), pair in zip(answers, around, strict=True):
            places, clear = (tuple(array.tolist()) for array in pair)
            law = Bracketed(low, high, places, clear, mechanism.counts.mechanism, whole)
            bracketed.append((answer, law))
        return bracketed, [*events, mechanism.measured]

    def intervals(self, table: Table) -> Intervals:
        """The candidate intervals."""
        return intervals(*self.candidates(table), is_integral(self.expr, table.domains))


class Median(Quantile):
    """The median of an expression.

    *Measures* The same as a quantile, with q = 1/2.
    *Sensitivity* 1, either way.
    *Mechanism* Noisy max at 2k/ε.
    *Why* As for a quantile.
    """

    name = "median"

    def rank(self) -> float:
        return 0.5

    def statistics(self) -> tuple[Exact, ...]:
        return (Exact("quantile", self.expr, 0.5),)


class Min(Quantile):
    """The smallest value of an expression, or of texts of a public table the first.

    *Measures* The same as a quantile, with q = 0, aimed a little inside.
    *Sensitivity* 1, either way.
    *Mechanism* Noisy max at 2k/ε.
    *Why* As for a quantile; the shift is public.
    """

    name = "min"

    def rank(self) -> float:
        return 0.0


class Max(Quantile):
    """The largest value of an expression, or of texts of a public table the last.

    *Measures* The same as a quantile, with q = 1, aimed a little inside.
    *Sensitivity* 1, either way.
    *Mechanism* Noisy max at 2k/ε.
    *Why* As for a quantile; the shift is public.

    Of a cube: the largest cell, with additive noise. The largest cell of a group changes by at most what its cells do.
    """

    name = "max"

    def of_cells(self, cells: Ints, group: Ints, groups: int) -> Ints:
        answers = np.zeros(groups, dtype=cells.dtype)
        np.maximum.at(answers, group, cells)
        return answers

    def rank(self) -> float:
        return 1.0


def _rows_below(exact: Ints) -> Ints:
    """The number of rows below each start and, last, the number of all rows."""
    return np.concatenate([[0], fixed_width(exact).cumsum()])
