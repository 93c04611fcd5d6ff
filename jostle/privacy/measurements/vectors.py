"""Noisy sums over private rows as vectors: moments under the weights of a row program, and clipped contributions.

*Sensitivity.* One row more or less, a vector x with ‖x‖₂ ≤ r (in units of the ball; r = 1, or √d where only the
largest coordinate is bounded), moves the exact sums by its own terms and no others (`privacy.rows`):

    Σ γ_k        by γ,        ‖γ‖₂ ≤ ‖γ‖₁ ≤ 1
    Σ γ_k x      by γ ⊗ x,    ‖·‖₂ = ‖γ‖₂‖x‖₂ ≤ r,    ‖·‖₁ ≤ √d·r
    Σ γ_k xxᵀ    by γ ⊗ xxᵀ,  ‖·‖_F ≤ r²; of the upper triangle ‖·‖₁ ≤ (‖x‖₁² + ‖x‖₂²)/2 ≤ (d + 1)·r²/2

for **all components together**, since the weights of a row sum to at most one. Replacing a row (`public size`, k = 2)
moves them by √2, 2r and √2·r², as γ ⊗ xxᵀ and γ' ⊗ x'x'ᵀ have a scalar product of at least 0; k rows by k times the
above. A symmetric matrix is released by its upper triangle; in its Frobenius norm an entry off the diagonal
counts twice, so its deviation is that of the diagonal over √2.

*One joint release.* Block b gets a share s_b, Σ s_b = 1: Gaussian noise of deviation Δ_b/(μ√s_b) in each. What a row
can lose is Σ_b Δ_b²/σ_b² = μ² in all (weights w_b of a joint vector are s_b = w_b²/Σw²). For Laplace noise ε·s_b.

Second moments are kept to 2^-42 and taken down to 2^-30, which moves each of the m released numbers by less than one
more step. Contributions have a norm of at most the public bound, whatever the program gives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostle.diagnostics import refuse
from jostle.noise_laws import Gaussian, Laplace
from jostle.privacy.kernel.exposures import Exposures
from jostle.privacy.kernel.handles import Vectors
from jostle.privacy.kernel.measurement import Measured, Measurement, Payment, Release, needed, stability_of
from jostle.privacy.kernel.prepaid import WHOLE, Prepaid
from jostle.privacy.mechanisms.additive import drawn_by
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.rows.functions import Contributions, Weights
from jostle.privacy.rows.norms import BITS
from jostle.privacy.scores import vectorsums

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.privacy.reading.reader import Reader

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

MOST_SUMS = 2**22
MOST_VIEWS = 2**14
"""Components times columns: so many numbers are held for each row of a batch."""

UNIT: float = 2.0**BITS


@dataclass(frozen=True, eq=False)
class _OfVectors:
    """What both measurements share: rows, and the part of a prepaid amount that pays (none for public rows)."""

    rows: Vectors
    paid: Prepaid | None
    payment: Payment | None

    @property
    def exposures(self) -> Exposures:
        return self.rows.exposures

    @property
    def how(self) -> Any:
        return self.paid.how if self.paid is not None else None

    @property
    def mechanism(self) -> str:
        return self.paid.how.mechanism if self.paid is not None else "none"

    def paid_by(self) -> Payment | None:
        return self.payment

    def law(self, scale: float) -> Laplace | Gaussian:
        """The noise of this scale, 0 for public rows."""
        return Gaussian(scale) if self.paid is None else self.paid.how.kind(scale)

    def measured(self, what: str, law: Laplace | Gaussian) -> tuple[Measured, ...]:
        """The amount is that of a measurement that was paid for alone; else the event of `prepaid` has it."""
        if self.paid is None or self.payment is None:
            return ()
        part = None if self.paid.single else self.payment.units / WHOLE
        return (Measured(what, law, self.paid.how, 1.0, stability_of(self.rows), part),)


@dataclass(frozen=True, eq=False)
class Moments(_OfVectors, Measurement["list[Ints]", "dict[str, Any]"]):
    """Σγ, Σγx, Σγxxᵀ (as many as there are shares), in units of the ball, and the deviation of each block's noise."""

    weights: Weights
    shares: tuple[float, ...]
    scales: tuple[float, ...]

    @property
    def title(self) -> str:  # type: ignore[override]
        return self.weights.name

    @classmethod
    def of(cls, rows: Vectors, weights: Weights, shares: Sequence[float], paid: Prepaid | None, part: float) -> Moments:
        """`paid` is None for public rows, which are summed exactly; `part` of it is spent."""
        check_moments(rows, weights, len(shares))
        _check_paid(rows, paid)
        if paid is None:
            return cls(rows, None, None, weights, tuple(shares), (0.0,) * len(shares))
        d, count = len(rows.names), weights.size
        strength, room, whole = paid.part(part), 0.0, math.fsum(shares)
        sizes = [count, count * d, count * d * (d + 1) // 2]
        scales = []
        for share, (l1, l2), size in zip(shares, sensitivities(rows, weights, len(shares)), sizes, strict=False):
            if not share:
                scales.append(0.0)
            elif paid.gaussian:
                scales.append(l2 / (strength * math.sqrt(share / whole)))
                room += paid.room(scales[-1] / math.sqrt(2), size)
            else:
                scales.append(l1 / (strength * share / whole))
        return cls(rows, paid, paid.payment(part, room), weights, tuple(shares), tuple(scales))

    def read(self, reader: Reader) -> list[Ints]:
        return vectorsums.moments(reader, self.rows, self.weights, len(self.shares) - 1)

    def release(self, exact: list[Ints], noise: Noise | None) -> Release[dict[str, Any]]:
        record: dict[str, Any] = {"mechanism": self.mechanism}
        blocks = zip(("count", "first", "second"), exact, self.scales, self.shares, strict=False)
        for name, total, scale, share in blocks:
            if share:
                noisy = _noisy_triangles if name == "second" else _noisy
                record[name] = noisy(noise, self.paid, total, scale) / UNIT
                record[f"{name}_noise"] = self.law(scale / UNIT).deviation
        least = min(scale for scale, share in zip(self.scales, self.shares, strict=True) if share)
        return Release(record, self.measured(self.weights.name, self.law(least / UNIT)))


@dataclass(frozen=True, eq=False)
class VectorSum(_OfVectors, Measurement["Ints", "dict[str, Any]"]):
    """The sum of a program's contributions, each clipped to a norm of `bound`, and the deviation of its noise."""

    function: Contributions
    bound: float
    norm: str
    scale: float

    @property
    def title(self) -> str:  # type: ignore[override]
        return self.function.name

    @classmethod
    def of(
        cls, rows: Vectors, function: Contributions, bound: float, norm: str, paid: Prepaid | None, part: float
    ) -> VectorSum:
        vectorsums.check_bound(bound, norm)
        vectorsums.check_columns(rows, function)
        _check_paid(rows, paid)
        if paid is None:
            return cls(rows, None, None, function, bound, norm, 0.0)
        m = function.size
        l1, l2 = reaches(m, norm)
        reach = math.ceil((l2 if paid.gaussian else l1) * stability_of(rows) * UNIT)
        scale = reach * (1 + 2.0**-40) / paid.part(part)
        return cls(rows, paid, paid.payment(part, paid.room(scale, m)), function, bound, norm, scale)

    def read(self, reader: Reader) -> Ints:
        return vectorsums.contributions(reader, self.rows, self.function, self.bound, self.norm)

    def release(self, exact: Ints, noise: Noise | None) -> Release[dict[str, Any]]:
        total = _noisy(noise, self.paid, exact, self.scale) * (self.bound / UNIT)
        law = self.law(self.scale / UNIT * self.bound)
        record = {"sum": total, "noise": law.deviation, "mechanism": self.mechanism}
        return Release(record, self.measured(self.function.name, law))


def check_moments(rows: Vectors, weights: Weights, blocks: int) -> None:
    """Refuses more sums than there is room for; before anything is charged."""
    vectorsums.check_columns(rows, weights)
    d, count = len(rows.names), weights.size
    if count * d ** (blocks - 1) > MOST_SUMS or count * d > MOST_VIEWS:
        raise refuse("ValueError", f"{count} components of {d} columns are too many to sum", help="use fewer columns")


def reaches(size: int, norm: str) -> tuple[float, float]:
    """ℓ₁ and ℓ₂ sensitivities of so many sums, where no row is longer than 1 in this norm."""
    return {"l1": (1.0, 1.0), "l2": (math.sqrt(size), 1.0), "sup": (float(size), math.sqrt(size))}[norm]


def whole_of(rows: Vectors, weights: Weights, shares: Sequence[float]) -> tuple[float, float]:
    """ℓ₁ and ℓ₂ sensitivities by which one noise is chosen for all blocks: geometric means of those of each alone."""
    if not rows.private:
        return 1.0, 1.0
    blocks = zip(shares, sensitivities(rows, weights, len(shares)), strict=True)
    asked = [(share / math.fsum(shares), l1, l2) for share, (l1, l2) in blocks if share]
    logs = [(math.log(l1 / share), math.log(l2) - math.log(share) / 2) for share, l1, l2 in asked]
    first, second = (math.exp(math.fsum(column) / len(logs)) for column in zip(*logs, strict=True))
    return first, second


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


def _noisy(noise: Noise | None, paid: Prepaid | None, exact: Ints, scale: float) -> Floats:
    import numpy as np

    if noise is None or paid is None:
        return exact.astype(float)
    return np.asarray(drawn_by(noise, paid.how.kind)(np.ascontiguousarray(exact), scale), dtype=float)


def _noisy_triangles(noise: Noise | None, paid: Prepaid | None, exact: Ints, scale: float) -> Floats:
    """Symmetric matrices (K, d, d), of which the upper triangle is drawn, and mirrored."""
    import numpy as np

    if noise is None or paid is None:
        return exact.astype(float)
    matrices = exact.astype(float)
    inside = np.arange(exact.shape[1])
    above, beyond = np.triu_indices(exact.shape[1], 1)
    matrices[:, inside, inside] = _noisy(noise, paid, exact[:, inside, inside], scale)
    if exact.shape[1] > 1:
        sideways = scale / math.sqrt(2) * (1 + 2.0**-40) if paid.gaussian else scale
        matrices[:, above, beyond] = _noisy(noise, paid, exact[:, above, beyond], sideways)
        matrices[:, beyond, above] = matrices[:, above, beyond]
    return matrices
