"""Noisy sums over private rows as vectors: moments under the weights of a row program, and clipped contributions.

Adding or removing a row, a vector x with ‖x‖₂ ≤ r (in units of the ball; r = 1, or √d if only the largest coordinate is
bounded), changes Σ γ_k by at most 1, Σ γ_k x by r (√d·r in ℓ₁) and Σ γ_k xxᵀ by r² (its upper triangle by (d + 1)·r²/2
in ℓ₁). This holds for **all components together** (docs/privacy/vectors.md, also for replaced rows and k rows of a
person). Blocks are one joint release, each with its share of the amount.

Second moments are computed to 2^-42 and rounded down to 2^-30, which changes each of the m released numbers by less
than one more step. The norm of contributions is at most the public bound, whatever the program computes.

*Batches in turn, with noise that is correlated over the steps (DP-FTRL).*

`prepaid([rows of batch 1, …, of batch b], steps = T)` pays for T noisy sums. Step t, from 0, uses batch t mod b: the
order is public and fixed. Let G[t] be its exact sum, in steps of 2^-SUM_BITS of the bound, of a row program's outputs,
each clipped to norm 1. The release is y[t] = Σ_s M[t, s]·G[s] + noise, where M is the `Roots` with a band of b steps
(`running`): integers, lower triangular, 0 if t − s ≥ b. The noise of y is independent. Values computed from y, such as
the sum of a step, have noise M⁻¹z, whose errors largely cancel in sums over many steps (Denisov et al. 2022;
Choquette-Choo et al. 2023; Kalinin & Lampert 2024).

The sensitivity of all of y to a row (`reach`), also if steps depend on earlier y, is argued in docs/privacy/vectors.md
("Steps over batches"). Batches are parts of one partition, or one batch of all rows, and the band of M has as many
steps, so a row changes each step only by one M[t, s]·D[s]. Sums are rounded down to 2^-SUM_BITS at the end, which adds
less than 1 to each coordinate of D[s]. Steps of several threads have different numbers, and a missing sum reduces the
change of y. The kernel takes the next batch itself, and exact sums stay with the reader.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import cast

from jostle.accounting.amounts import Amount
from jostle.diagnostics import Refusal, refuse
from jostle.integers import fixed_width
from jostle.lazy import Floats, Ints, NDArray, np
from jostle.noise_laws import Laplace
from jostle.privacy.kernel.exposures import Exposures
from jostle.privacy.kernel.handles import Vectors
from jostle.privacy.kernel.measurement import (
    LinearMeasurement,
    Measured,
    Payment,
    Release,
    common_noise,
    needed,
    stability_of,
)
from jostle.privacy.kernel.prepaid import WHOLE, Prepaid, Prepayment
from jostle.privacy.measurements.running import Roots
from jostle.privacy.measurements.subsampled_batches import Sampled, need_single_rows
from jostle.privacy.mechanisms.additive import Additive, InCube, Linear
from jostle.privacy.mechanisms.noise import Noise, needed_noise
from jostle.privacy.reading.vault import Reader
from jostle.privacy.rows.norms import BITS, Contributions, Weights
from jostle.privacy.scores import vectorsums
from jostle.privacy.transformations.joins import join_exposures
from jostle.records import replace

WIDEST_CUBE, MOST_IN_CUBE = 2.0**44, 2**12
"""The largest scale, in steps, and number of coordinates of noise in a cube (`mechanisms.noise.in_cube`)."""
MOST_SUMS = 2**22
MOST_VIEWS = 2**14
"""The largest number of values per row of a batch, components times columns."""

UNIT: float = 2.0**BITS


@dataclass(frozen=True, eq=False)
class _OfVectors(LinearMeasurement["dict[str, object]"]):
    """The common part: rows, and the part of a prepaid amount that pays for them (none for public rows)."""

    rows: Vectors
    paid: Prepaid | None
    payment: Payment | None

    @property
    def mechanism(self) -> str:
        return self.how.mechanism if self.how is not None else "none"

    def paid_by(self) -> Payment | None:
        return self.payment

    def measured(self) -> tuple[Measured, ...]:
        """Events show the amount if it paid for this measurement alone; else the event of `prepaid` does."""
        if self.paid is None or self.payment is None:
            return ()
        part = None if self.paid.single else self.payment.units / WHOLE
        least = min(linear.law.scale for linear in self.linear) * self.unit
        return (Measured(self.title, self.how.kind(least), self.paid.how, 1.0, stability_of(self.rows), part),)

    @property
    def unit(self) -> float:
        """The unit of the released numbers, in units of the sums."""
        return 1.0


@dataclass(frozen=True, eq=False)
class Moments(_OfVectors):
    """Σγ, Σγx, Σγxxᵀ (one for each share that is not 0), in units of the ball, and the deviation of each block's
    noise."""

    weights: Weights
    shares: tuple[float, ...]

    @classmethod
    def of(cls, rows: Vectors, weights: Weights, shares: Sequence[float], paid: Prepaid | None, part: float) -> Moments:
        """`part` of `paid` is spent. `paid` is None for public rows, which are summed exactly."""
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
        """The exact blocks; symmetric matrices as their upper triangle."""
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
        rows = paid.batches[0] if isinstance(paid, Steps) else rows  # all batches have the same columns
        vectorsums.check_bound(bound, norm)
        vectorsums.check_columns(rows, function)
        _check_paid(rows, paid)
        l1, l2 = (math.ceil(side * stability_of(rows) * UNIT) * (1 + 2.0**-40) for side in reaches(function.size, norm))
        if isinstance(paid, Sampled):
            need_single_rows(rows)
            linear = Linear(paid.how.kind, paid.strength, l1, l2, BITS)
        elif isinstance(paid, Steps):
            linear = paid.linear(function.size, norm)
        else:
            linear = _linear(paid, part, l1, l2)
            if norm == "sup" and paid is not None and not paid.gaussian:
                linear = _in_cube(linear, rows, function.size)
        payment = None if paid is None else paid.payment(part, paid.room(linear.scale, function.size))
        how, facts = None if paid is None else paid.how, (rows, paid, payment, function, bound, norm)
        exposures = paid.exposures if isinstance(paid, Steps) else rows.exposures
        return cls(exposures, function.name, how, (linear,), *facts)

    def read(self, reader: Reader) -> list[Ints]:
        """The exact sum: over a secret sample, or of the next batch combined with earlier ones."""
        sampled, paid = None, self.paid
        if isinstance(paid, Steps):
            return [paid.product(reader.steps, lambda batch: self._total(reader, batch))]
        if isinstance(self.paid, Sampled):
            sampled = needed_noise(common_noise(self.exposures)), self.paid.share
        return [self._total(reader, self.rows, sampled)]

    def _total(self, reader: Reader, rows: Vectors, sampled: tuple[Noise, int] | None = None) -> Ints:
        return vectorsums.contributions(reader, rows, self.function, self.bound, self.norm, sampled)

    @property
    def mechanism(self) -> str:
        return "cube" if isinstance(self.linear[0], InCube) else super().mechanism

    def measured(self) -> tuple[Measured, ...]:
        cube = self.linear[0]
        return tuple(
            replace(one, law=cube.law.times(self.bound)) if isinstance(cube, InCube) else one
            for one in super().measured()
        )

    @property
    def unit(self) -> float:
        return self.bound

    def finish(self, released: list[Floats]) -> dict[str, object]:
        noise = self.linear[0].law.smooth.deviation * self.bound
        return {"sum": released[0] * self.bound, "noise": noise, "mechanism": self.mechanism}


def _linear(paid: Prepaid | None, part: float, l1: float, l2: float) -> Linear:
    """The linear measurement of sums with a part of a balance; exact for public rows."""
    return Linear.of(None, l1, l2, BITS) if paid is None else Linear(paid.how.kind, paid.part(part), l1, l2, BITS)


def _in_cube(linear: Linear, rows: Vectors, many: int) -> Linear:
    """The same sums with noise in a cube, if a unit changes each sum by at most its rows; unchanged if the scale or the
    number of sums is too large."""
    one = math.ceil(stability_of(rows) * UNIT) * (1 + 2.0**-40)
    cube = InCube(Laplace, linear.strength, one, linear.l2, BITS, many)
    return cube if cube.scale <= WIDEST_CUBE and many <= MOST_IN_CUBE else linear


def check_moments(rows: Vectors, weights: Weights, blocks: int) -> None:
    """Refuses too many sums, before anything is charged."""
    vectorsums.check_columns(rows, weights)
    d, count = len(rows.names), weights.size
    if count * d ** (blocks - 1) > MOST_SUMS or count * d > MOST_VIEWS:
        raise refuse("ValueError", f"{count} components of {d} columns are too many to sum", help="use fewer columns")


def reaches(size: int, norm: str) -> tuple[float, float]:
    """The ℓ₁ and ℓ₂ sensitivities of `size` sums of rows of norm at most 1."""
    return {"l1": (1.0, 1.0), "l2": (math.sqrt(size), 1.0), "sup": (float(size), math.sqrt(size))}[norm]


def sensitivities(rows: Vectors, weights: Weights, blocks: int) -> list[tuple[float, float]]:
    """The ℓ₁ and ℓ₂ sensitivities of each block, in steps of 2^-BITS, for the stability of `rows`."""
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


# Batches in turn -----------------------------------------------------------------------------------

SUM_BITS = 18
"""The bits of a step's sum, which leave room for the bits of the matrix."""
MOST_STEPS = 2**13

Earlier = tuple[Iterator[int], dict[int, Ints]]
"""The state of a balance: the numbers of the next steps, and the exact sums of earlier ones."""


class Steps(Prepaid, frozen=True):
    """A balance for `steps` noisy sums, each of the next of `batches`."""

    batches: tuple[Vectors, ...]
    steps: int

    @property
    def matrix(self) -> Roots:
        return Roots(self.steps, len(self.batches))

    def payment(self, share: float, room: float) -> Payment:
        if share != 1:
            raise refuse("TypeError", "a step takes no part: there are `steps` of them", help="leave it out")
        return Payment(self, WHOLE // self.steps, room)

    def part(self, share: float) -> float:
        raise refuse(
            "TypeError", "this was paid for the steps of batches", help="`noisy_sum(batches, …)` takes them in turn"
        )

    def linear(self, size: int, norm: str) -> Linear:
        """The linear measurement of y, the vector of all steps, for sums of `size` numbers."""
        if norm == "sup":
            raise refuse("TypeError", "a step clips rows to a Euclidean length", help='leave `norm = "sup"` out')
        matrix, root = self.matrix, math.sqrt(size)
        once = max(map(stability_of, self.batches))
        l2 = (2**SUM_BITS + root) * reach(matrix, len(self.batches)) * once * (1 + 2.0**-40)
        return Linear(self.how.kind, self.strength, root * math.sqrt(self.steps) * l2, l2, SUM_BITS + matrix.bits)

    def product(self, store: MutableMapping[object, object], summed: Callable[[Vectors], Ints]) -> Ints:
        """Σ_s M[t, s]·G[s] at the next step t, for the next batch. `store` has the earlier exact sums that the step
        needs. One that is missing, or has another size, counts as 0, which reduces the change of y."""
        turns, earlier = cast(Earlier, store.setdefault(self, (count(), {})))
        step, band = next(turns), len(self.batches)
        exact = earlier[step] = summed(self.batches[step % band]) >> (BITS - SUM_BITS)
        earlier.pop(step - band, None)
        total, weights = np.zeros(len(exact), dtype=object), self.matrix.matrix(step, step + 1)[0]
        for at in range(max(0, step + 1 - band), step + 1):
            sums = earlier.get(at, exact[:0])[: len(exact)]
            total[: len(sums)] += int(weights[at]) * sums.astype(object)
        return fixed_width(total)


def reach(matrix: Roots, batches: int) -> float:
    """The largest change of y by a row that changes each step of its batch by at most 1, over all batches."""
    squares = matrix.squares
    return math.sqrt(max(float(squares[p::batches].sum()) for p in range(min(batches, matrix.steps)))) * (1 + 2.0**-40)


@dataclass(frozen=True, eq=False)
class PrepaidSteps(Prepayment):
    """The measurement that buys noisy sums of batches in turn."""

    batches: tuple[Vectors, ...]
    steps: int
    called = "correlated gaussian"

    @classmethod
    def by_turns(cls, batches: Sequence[Vectors], steps: int, amount: Amount | None) -> PrepaidSteps:
        if amount is None:
            raise refuse("NoEpsilon", "this reads private data and says no amount", help="add `with rho 0.5`")
        if not 1 <= steps <= MOST_STEPS:
            raise refuse("ValueError", f"there are 1 to {MOST_STEPS:,} steps")
        first = replace(batches[0], exposures=apart(batches))
        how = Additive.of(amount, "gaussian", first.measures)
        facts = (tuple(batches), steps)
        return cls(first.exposures, "steps", how, first, False, *facts, subject=facts)

    def release(self, exact: None, noise: Noise | None) -> Release[Prepaid]:
        bought = super().release(exact, noise)
        paid = bought.value
        facts = (paid.exposures, paid.amount, paid.how, paid.strength, paid.discrete, False)
        steps = Steps(*facts, self.batches, self.steps)
        one = steps.linear(1, "l2")
        event = Measured("prepaid", one.law, self.how, 1, stability_of(self.handle))
        return Release(steps, (event,))


def apart(batches: Sequence[Vectors]) -> Exposures:
    """The exposures of disjoint batches: parts of one partition, or a single batch. Refuses others."""
    if any(batch.names != batches[0].names for batch in batches):
        raise refuse("TypeError", "batches are rows of the same columns")
    if len(batches) == 1:
        return batches[0].exposures
    if any(len(batch.exposures) != 1 for batch in batches):
        raise _not_apart()
    together = join_exposures([batch.exposures for batch in batches], [1] * len(batches))
    paths = [batch.exposures[0].path for batch in batches]
    depth = len(together[0].path) if len(together) == 1 else 0
    if len(together) > 1 or any(len(path) <= depth for path in paths):
        raise _not_apart()
    labels = {path[depth][0] for path in paths}
    parts = {path[depth] for path in paths}
    if len(labels) > 1 or len(parts) < len(paths):
        raise _not_apart()
    most = max(map(stability_of, batches))
    return (replace(together[0], rows=most),)


def _not_apart() -> Refusal:
    return refuse(
        "TypeError", "batches are different parts of one private table, of which a row is in one",
        help="make them: `[vectors(part, age, hours) for part in split_rows(people, 10)]`",
    )  # fmt: skip
