"""The most frequent value of an expression.

Monotone scores that move by at most k need noise of scale k/ε (Dwork & Roth 2014, 3.3; one-sided exponential noise:
McKenna & Sheldon 2020). Where rows have weights, counts are of weights in whole units, and k is the weight of a person.
"""

from __future__ import annotations

from typing import Any

from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.language.aggregates import AGGREGATES
from jostle.lazy import Ints
from jostle.noise_laws import Selected
from jostle.plan.plan import WEIGHT_BITS, Key
from jostle.plan.schemas import KeyValue, key_values
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.measurement import weighted_stability_of
from jostle.privacy.measurements.aggregates.aggregate import SelectionAggregate
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.mechanisms.selection import Selection

MOST = 2**20  # candidates


class Mode(SelectionAggregate):
    """The most frequent value of an expression.

    *Measures* The public key of E with the largest count.
    *Sensitivity* 1, monotone.
    *Mechanism* Noisy max at k/ε, or at 2k/ε with public size.
    *Why* One more row raises one count and lowers none; a row that is replaced does both.
    """

    row = AGGREGATES["mode"]

    def candidates(self, table: Table) -> range | tuple[KeyValue, ...]:
        values = key_values(self.expr, table.domains, MOST)
        if values is None:
            raise refuse(
                "OpenKeys", "the values that this mode is chosen from are not public",
                help="describe the column with its categories or bounds",
            )  # fmt: skip
        return values

    def places(self, table: Table) -> Key:
        return Key(self.expr, self.candidates(table))

    def choose(self, mechanism: Selection, exact: Ints, noise: Noise, table: Table) -> tuple[Any, Selected]:

        monotone = not any(e.unit.public_size for e in table.exposures)
        unit = 1 << (WEIGHT_BITS if table.weighted else 0)
        scale = mechanism.scale(weighted_stability_of(table) * unit, monotone)
        candidates = self.candidates(table)
        answer: object = candidates[mechanism.choose(noise, fixed_width(exact), scale)]
        return answer, Selected(scale / unit, len(candidates), "rows")
