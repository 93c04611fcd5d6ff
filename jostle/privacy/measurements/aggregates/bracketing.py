"""An interval for a quantile: a part of the amount counts the rows around the answer with noise, the rest chooses it.

The part is a quarter, or a half with `via interval`.

Public places stand on both sides of the chosen interval, at 1, 2, 4, … intervals from it, and cut the bounds into
parts. The rows of each part are counted with noise; from these counts follows, at each place, by how much the rows
below it are more or fewer than the quantile has below it, with noise of a known law (`noise_laws.Bracketed`).

*Argument.* A selection and then counts, one after the other on the same rows: the second is chosen by the output of the
first, and their prices add up (adaptive composition, in ε and in ρ). Parts are disjoint, so that a row is in one part
of one group, and all counts of all groups together move by what the count of a group does (`terms.reach_of`).

*Coverage.* Where the quantile lies below a place, at least its share of the rows do, so that the noise alone has to
make that place look clearly too low. The places are looked at from the outside in and the first that is not clear
ends it, so that only one of them, the first beyond the quantile, can fail: no level is divided among them. What is
said holds with at least the level that it claims, at any data; the interval ends at places, and is the wider for it.
A place that is clear beyond the answer is taken for unclear, so that an interval always holds its own answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from jostle.accounting.amounts import Amount
from jostle.accounting.definitions import Price
from jostle.noise_laws import Bracketed
from jostle.plan.plan import Count
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.measurement import Measured
from jostle.privacy.measurements.aggregates.terms import grid_of, reach_of, stability_of_term
from jostle.privacy.mechanisms.additive import Additive, Linear, sum_prices
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.mechanisms.selection import Selection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


class Bracketing(Struct, frozen=True):
    """A selection and noisy counts of the rows of a table, within an amount; a delta is all of these'."""

    amount: Amount
    selection: Selection
    counts: Additive
    rows: Count
    table: Table

    @classmethod
    def of(cls, amount: Amount, table: Table, parts: int) -> Bracketing:
        """One of so many parts of an amount is for the counts."""
        rows, of_counts = Count(weighted=table.weighted), amount.value // parts
        selection = Selection.of(Amount(amount.unit, amount.value - of_counts, amount.delta), table.measures)
        part = Amount(amount.unit, of_counts, amount.delta)
        counts = Additive.fitted(part, None, table.measures, *reach_of(rows, table, undivided=False))
        return cls(amount, selection, counts, rows, table)

    @property
    def mechanism(self) -> str:
        return Bracketed.name

    @property
    def price(self) -> Price:
        return sum_prices(self.amount, [self.selection.price, self.counts.price])

    @property
    def measured(self) -> Measured:
        """What a trace tells of the counts."""
        stability = stability_of_term(self.rows, self.table, undivided=False)
        return Measured("rows around", self._linear.law, self.counts, 1, stability)

    def around(self, place: int, below: Ints, starts: Floats, part: float, noise: Noise) -> tuple[Floats, Floats]:
        """Of one group, places around the chosen of the intervals that begin at `starts`, and how clear each is.

        `below`: how many rows, in units of their grid, lie below each start, and last of all how many there are. `part`
        is the quantile. Clear is what `Bracketed` says.
        """
        import numpy as np

        at = _places(place, len(starts))
        rows = np.diff(below[[*at, -1]], prepend=0)
        linear = self._linear
        noisy = linear.release(rows, noise)
        many = np.arange(1, len(rows))
        more = (1 - part) * noisy.cumsum()[:-1] - part * noisy[::-1].cumsum()[::-1][1:]
        sizes = np.sqrt(many * (1 - part) ** 2 + many[::-1] * part**2)
        clear = more / (linear.law.smooth.deviation * sizes)
        return starts[at], np.where(np.array(at) <= place, np.minimum(clear, 0), np.maximum(clear, 0))

    @property
    def _linear(self) -> Linear:
        return Linear.of(self.counts, *reach_of(self.rows, self.table, undivided=False), grid_of(self.rows))


def _places(chosen: int, many: int) -> list[int]:
    """The intervals, of `many`, at whose start there is a place: around the chosen one, and twice as far each time."""
    steps = [2**i for i in range(many.bit_length())]
    around = {chosen, chosen + 1, *(chosen - step for step in steps), *(chosen + 1 + step for step in steps)}
    return sorted(place for place in around if 0 < place < many)
