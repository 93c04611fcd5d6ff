"""Noisy sums over private rows as vectors: moments under the weights of a row program, and clipped contributions.

One row more or less, a vector x with ‖x‖₂ ≤ r (in units of the ball; r = 1, or √d where only the largest coordinate is
bounded), moves Σ γ_k by at most 1, Σ γ_k x by r (in ℓ₁ √d·r) and Σ γ_k xxᵀ by r² (its upper triangle in ℓ₁ by (d +
1)·r²/2), for **all components together**: docs/privacy/vectors.md, also for replaced rows and k rows of a person.
Blocks are one joint release, each with its share of the amount.

Second moments are kept to 2^-42 and taken down to 2^-30, which moves each of the m released numbers by less than one
more step. Contributions have a norm of at most the public bound, whatever the program gives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jostle.diagnostics import refuse
from jostle.lazy import Floats, Ints, NDArray, np
from jostle.privacy.kernel.handles import Vectors
from jostle.privacy.kernel.measurement import (
    LinearMeasurement,
    Measured,
    Payment,
    common_noise,
    needed,
    stability_of,
)
from jostle.privacy.kernel.prepaid import WHOLE, Prepaid
from jostle.privacy.measurements.subsampled_batches import Sampled, need_single_rows
from jostle.privacy.mechanisms.additive import Linear
from jostle.privacy.mechanisms.noise import needed_noise
from jostle.privacy.reading.vault import Reader
from jostle.privacy.rows.norms import BITS, Contributions, Weights
from jostle.privacy.scores import vectorsums

MOST_SUMS = 2**22
MOST_VIEWS = 2**14
"""Components times columns: so many numbers are held for each row of a batch."""

UNIT: float = 2.0**BITS


@dataclass(frozen=True, eq=False)
class _OfVectors(LinearMeasurement["dict[str, object]"]):
    """What both measurements share: rows, and the part of a prepaid amount that pays (none for public rows)."""

    rows: Vectors
    paid: Prepaid | None
    payment: Payment | None

    @property
    def mechanism(self) -> str:
        return self.how.mechanism if self.how is not None else "none"

    def paid_by(self) -> Payment | None:
        return self.payment

    def measured(self) -> tuple[Measured, ...]:
        """The amount is that of a measurement that was paid for alone; else the event of `prepaid` has it."""
        if self.paid is None or self.payment is None:
            return ()
        part = None if self.paid.single else self.payment.units / WHOLE
        least = min(linear.law.scale for linear in self.linear) * self.unit
        return (Measured(self.title, self.how.kind(least), self.paid.how, 1.0, stability_of(self.rows), part),)

    @property
    def unit(self) -> float:
        """Of what is released, in units of the sums."""
        return 1.0


@dataclass(frozen=True, eq=False)
class Moments(_OfVectors):
    """Σγ, Σγx, Σγxxᵀ (as many as there are shares, but those that are 0), in units of the ball, and the deviation of
    each block's noise."""

    weights: Weights
    shares: tuple[float, ...]

    @classmethod
    def of(cls, rows: Vectors, weights: Weights, shares: Sequence[float], paid: Prepaid | None, part: float) -> Moments:
        """`paid` is None for public rows, which are summed exactly; `part` of it is spent."""
        check_moments(rows, weights, len(shares))
        _check_paid(rows, paid)
        d, count, payment = len(rows.names), weights.size, None
        blocks = zip(shares, sensitivities(rows, weights, len(shares)), strict=True)
        linear = [_linear(paid, part, *sides).part(share / math.fsum(shares)) for share, sides in blocks if share]
        if paid is not None:
            sizes = (count, count * d, count * d * (d + 1) // 2)
            counts = [size for share, size in zip(shares, sizes, strict=False) if share]
            narrowest = [one.scale / math.sqrt(2) for one in linear]
            payment = paid.payment(part, math.fsum(map(paid.room, narrowest, counts)))
        how = None if paid is None else paid.how
        return cls(rows.exposures, weights.name, how, tuple(linear), rows, paid, payment, weights, tuple(shares))

    def read(self, reader: Reader) -> list[Ints]:
        """Of symmetric matrices the upper triangle."""
        blocks = vectorsums.moments(reader, self.rows, self.weights, len(self.shares) - 1)
        if len(blocks) > 2:
            blocks[2] = blocks[2][:, *self._triangle]
        return [block for block, share in zip(blocks, self.shares, strict=True) if share]

    def widths(self) -> list[Floats | None]:
        sideways = np.where(np.equal(*self._triangle), 1.0, math.sqrt(0.5) * (1 + 2.0**-40))
        gaussian = self.paid is not None and self.paid.gaussian
        wide = [None, None, np.tile(sideways, (self.weights.size, 1)) if gaussian else None]
        return [widths for widths, share in zip(wide, self.shares, strict=False) if share]

    @property
    def _triangle(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        return np.triu_indices(len(self.rows.names))

    def finish(self, released: list[Floats]) -> dict[str, object]:
        record: dict[str, object] = {"mechanism": self.mechanism}
        names = [name for name, share in zip(("count", "first", "second"), self.shares, strict=False) if share]
        for name, numbers, linear in zip(names, released, self.linear, strict=True):
            record[name] = self._mirrored(numbers) if name == "second" else numbers
            record[f"{name}_noise"] = linear.law.smooth.deviation
        return record

    def _mirrored(self, numbers: Floats) -> Floats:
        d, (above, beyond) = len(self.rows.names), self._triangle
        matrices = np.empty((len(numbers), d, d))
        matrices[:, above, beyond] = numbers
        matrices[:, beyond, above] = numbers
        return matrices


@dataclass(frozen=True, eq=False)
class VectorSum(_OfVectors):
    """The sum of a program's contributions, each clipped to a norm of `bound`, and the deviation of its noise."""

    function: Contributions
    bound: float
    norm: str

    @classmethod
    def of(
        cls, rows: Vectors, function: Contributions, bound: float, norm: str, paid: Prepaid | None, part: float
    ) -> VectorSum:
        vectorsums.check_bound(bound, norm)
        vectorsums.check_columns(rows, function)
        _check_paid(rows, paid)
        l1, l2 = (math.ceil(side * stability_of(rows) * UNIT) * (1 + 2.0**-40) for side in reaches(function.size, norm))
        if isinstance(paid, Sampled):
            need_single_rows(rows)
            linear = Linear(paid.how.kind, paid.strength, l1, l2, BITS)
        else:
            linear = _linear(paid, part, l1, l2)
        payment = None if paid is None else paid.payment(part, paid.room(linear.scale, function.size))
        how, facts = None if paid is None else paid.how, (rows, paid, payment, function, bound, norm)
        return cls(rows.exposures, function.name, how, (linear,), *facts)

    def read(self, reader: Reader) -> list[Ints]:
        """Of a secret sample where samples are what was paid for."""
        sampled = None
        if isinstance(self.paid, Sampled):
            sampled = needed_noise(common_noise(self.exposures)), self.paid.share
        return [vectorsums.contributions(reader, self.rows, self.function, self.bound, self.norm, sampled)]

    @property
    def unit(self) -> float:
        return self.bound

    def finish(self, released: list[Floats]) -> dict[str, object]:
        noise = self.linear[0].law.smooth.deviation * self.bound
        return {"sum": released[0] * self.bound, "noise": noise, "mechanism": self.mechanism}


def _linear(paid: Prepaid | None, part: float, l1: float, l2: float) -> Linear:
    """A vector of sums with a part of what was paid; exact for public rows."""
    return Linear.of(None, l1, l2, BITS) if paid is None else Linear(paid.how.kind, paid.part(part), l1, l2, BITS)


def check_moments(rows: Vectors, weights: Weights, blocks: int) -> None:
    """Refuses more sums than there is room for; before anything is charged."""
    vectorsums.check_columns(rows, weights)
    d, count = len(rows.names), weights.size
    if count * d ** (blocks - 1) > MOST_SUMS or count * d > MOST_VIEWS:
        raise refuse("ValueError", f"{count} components of {d} columns are too many to sum", help="use fewer columns")


def reaches(size: int, norm: str) -> tuple[float, float]:
    """ℓ₁ and ℓ₂ sensitivities of so many sums, where no row is longer than 1 in this norm."""
    return {"l1": (1.0, 1.0), "l2": (math.sqrt(size), 1.0), "sup": (float(size), math.sqrt(size))}[norm]


def sensitivities(rows: Vectors, weights: Weights, blocks: int) -> list[tuple[float, float]]:
    """ℓ₁ and ℓ₂ sensitivities of each block, in steps of 2^-BITS, for the stability of `rows`."""
    d, count, k = len(rows.names), weights.size, stability_of(rows)
    replaced = k == 2 and all(e.unit.public_size and e.stability == 2 for e in rows.exposures)
    r = 1.0 if rows.norm == "l2" or weights.framed else math.sqrt(d)
    many = (math.sqrt(2), 2.0, math.sqrt(2)) if replaced else (float(k),) * 3
    upper = count * d * (d + 1) // 2
    steps = [
        (k * UNIT, many[0] * UNIT),
        (k * math.sqrt(d) * r * UNIT, many[1] * r * UNIT),
        (k * (d + 1) / 2 * r * r * UNIT + upper, many[2] * r * r * UNIT + d * math.sqrt(count)),
    ]
    return [(math.ceil(l1), l2 * (1 + 2.0**-40)) for l1, l2 in steps[:blocks]]


def _check_paid(rows: Vectors, paid: Prepaid | None) -> None:
    if rows.private and paid is None:
        needed(None)
