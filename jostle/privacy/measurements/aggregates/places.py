"""Aggregates from counts of rows at public places: the mode, and bounds that contain nearly all values.

*Bounds* are round numbers from a noisy histogram over the orders of magnitude. Its bins lie within the public bounds of
the expression, or within ±10^18 without any; values beyond are counted in the outer bins. The answer spans the
outermost bins whose noisy counts exceed the level that noise reaches in any bin with probability `BY_CHANCE`. It is
extended while the next bin exceeds the level that noise reaches in one bin with probability `ONE_MORE`. If no bin does,
it is the bin with the largest noisy count, so that no data can make it fail. k rows may be in k bins or in one, so they
change the counts by at most k in ℓ₁ and ℓ₂. If rows have weights, weights are counted, in whole units.

*The mode.* Monotone scores that change by at most k need noise of scale k/ε (Dwork & Roth 2014, 3.3; one-sided
exponential noise: McKenna & Sheldon 2020). If rows have weights, counts are of weights in whole units, and k is the
weight of a person.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from jostle.accounting.amounts import Amount
from jostle.accounting.definitions import Price
from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.lazy import Floats, Ints
from jostle.noise_laws import Selected
from jostle.plan.kinds import is_integral
from jostle.plan.plan import WEIGHT_BITS, Apply, Constant, Count, Exact, Key, RowExpr
from jostle.plan.schemas import Values
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.measurement import Measured, weighted_stability_of
from jostle.privacy.measurements.aggregates import aggregate as agg
from jostle.privacy.mechanisms.additive import Additive, Linear
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.mechanisms.selection import Selection

BY_CHANCE, ONE_MORE = 1e-4, 0.05
SMALLEST, LARGEST = -9, 18  # powers of ten


class Cut(Struct, frozen=True):
    """A boundary between two bins. If `closed`, it belongs to the upper one."""

    value: float
    closed: bool

    def holds(self, expr: RowExpr) -> RowExpr:
        """The condition that a value is above the boundary."""
        return Apply(">=" if self.closed else ">", (expr, Constant(self.value)))


class Bins(Struct, frozen=True):
    """Bins by the cuts between them. Bin i lies between the ends i and i + 1."""

    ends: tuple[float, ...]
    cuts: tuple[Cut, ...]

    def place(self, expr: RowExpr) -> RowExpr:
        """The bin of a row, by comparisons alone, so that all engines agree; missing for a missing value."""
        return Apply("if", (Apply("==", (expr, expr)), self._place(expr, 0, len(self.cuts)), Constant(None)))

    def _place(self, expr: RowExpr, first: int, last: int) -> RowExpr:
        if first == last:
            return Constant(float(first))
        middle = (first + last) // 2
        upper, lower = self._place(expr, middle + 1, last), self._place(expr, first, middle)
        return Apply("if", (self.cuts[middle].holds(expr), upper, lower))


@lru_cache(64)
def bins(low: float | None, high: float | None, integral: bool) -> Bins:
    """The bins within public bounds, or for a column without bounds."""
    largest = 10.0**LARGEST
    low, high = -largest if low is None else low, largest if high is None else high
    places = range(0 if integral else SMALLEST, LARGEST)
    ends = [float(f"{digit}e{place}") for place in places for digit in (1, 2, 5)]
    upper = [Cut(end, False) for end in ([0.0] if integral else []) + ends if low <= end < high]
    lower = [Cut(-end, True) for end in reversed([0.0, *ends]) if low < -end <= high]
    cuts = (*lower, *upper)
    return Bins((low, *(cut.value for cut in cuts), high), cuts)


class Bounds(agg.GroupAggregate):
    """Round bounds that contain nearly all values, from a noisy histogram over the orders of magnitude.

    *Measures* The number of rows in each public bin; bins end at 0 and at ±1, ±2 and ±5 times powers of ten.
    *Sensitivity* 1.
    *Mechanism* Additive.
    *Why* A row is in one bin at most; the rest is post-processing of the noisy counts.
    """

    name = "bounds"

    def statistics(self) -> tuple[Exact, ...]:
        return Exact("min", self.expr), Exact("max", self.expr)

    def of_statistics(self, values: Sequence[Any]) -> Any:
        return {"low": values[0], "high": values[1]}

    def candidates(self, table: Table) -> Bins:
        public = table.bounds_of(self.expr)
        return bins(*(public if public is not None else (None, None)), is_integral(self.expr, table.domains))

    def mechanism(self, amount: Amount, via: str | None, table: Table) -> Additive:
        return Additive.fitted(amount, via, table.measures)

    def price(self, mechanism: Additive, table: Table) -> Price:
        return mechanism.price

    def places(self, table: Table) -> Key:
        candidates = self.candidates(table)
        return Key(candidates.place(self.expr), range(len(candidates.cuts) + 1))

    def release(
        self, mechanism: Additive, exact: Sequence[Ints], noise: Noise, table: Table, undivided: bool
    ) -> tuple[list[agg.Chosen], list[Measured]]:
        term, candidates = Count(weighted=table.weighted), self.candidates(table)
        stability = agg.stability_of_term(term, table, undivided)
        reach = agg.sensitivity_of(term, table) * stability
        linear = Linear.of(mechanism, reach, reach, agg.grid_of(term))
        chances = (BY_CHANCE / (len(candidates.cuts) + 1), ONE_MORE)
        surely, likely = (linear.law.half_width(1 - 2 * chance) for chance in chances)
        answers: list[agg.Chosen] = []
        for counts in exact:
            first, last = outermost(linear.release(counts, noise), surely, likely)
            answers.append(({"low": candidates.ends[first], "high": candidates.ends[last + 1]}, None))
        return answers, [Measured(self.name, linear.law, mechanism, 1, stability, direct=False)]


def outermost(noisy: Floats, surely: float, likely: float) -> tuple[int, int]:
    """The first and the last bin with rows, judged by noisy counts."""
    full = [i for i, count in enumerate(noisy) if count > surely] or [int(noisy.argmax())]
    first, last = full[0], full[-1]
    while first > 0 and noisy[first - 1] > likely:
        first -= 1
    while last + 1 < len(noisy) and noisy[last + 1] > likely:
        last += 1
    return first, last


MOST = 2**20  # candidates


class Mode(agg.SelectionAggregate):
    """The most frequent value of an expression.

    *Measures* The public key of E with the largest count.
    *Sensitivity* 1, monotone.
    *Mechanism* Noisy max at k/ε, or at 2k/ε with public size.
    *Why* An added row raises one count and lowers none; a replaced row does both.
    """

    name = "mode"
    any_kind = True

    def candidates(self, table: Table) -> Values:
        key = table.key_of(self.expr, None, MOST)
        if key is None:
            raise refuse(
                "OpenKeys", "the values that this mode is chosen from are not public",
                help="describe the column with its categories or bounds",
            )  # fmt: skip
        return key.values

    def places(self, table: Table) -> Key:
        return Key(self.expr, self.candidates(table))

    def choose(self, mechanism: Selection, exact: Ints, noise: Noise, table: Table) -> tuple[Any, Selected]:
        monotone = not any(e.unit.public_size for e in table.exposures)
        unit = 1 << (WEIGHT_BITS if table.weighted else 0)
        scale = mechanism.scale(weighted_stability_of(table) * unit, monotone)
        candidates = self.candidates(table)
        answer: object = candidates[mechanism.choose(noise, fixed_width(exact), scale)]
        return answer, Selected(scale / unit, len(candidates), "rows")
