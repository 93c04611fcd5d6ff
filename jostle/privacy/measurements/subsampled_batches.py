"""Noisy counts, and sums of vectors, over secret Poisson samples of the rows, for stochastic gradients.

`batches` releases all cells of E cubes of one table `steps` times, with Gaussian noise. Each step counts a new secret
sample that keeps each protected unit with probability q. `prepaid(rows, steps = T, rate = q)` pays for T noisy sums,
each over a new sample of rows of which a unit has at most one (`Sampled`), clipped to integers of norm at most 1. Each
sum may depend on all earlier ones, since Rényi divergences add up.

A unit that is kept in a step changes the cells of all E cubes by at most w√E in ℓ₂ (w: 1 for a row; k for a person of
up to k rows, which are kept together; 1 for a person whose rows have weights). Replaced rows, and rows that a join has
multiplied, are refused from public facts. Persons are distinguished by 120 bits of the SHA-256 of their column
(`bucket`), which must still exist and be described as text. The price is the requested (ε, δ), by
`accounting.subsampled_gaussian`; in zCDP it is that of any (ε, δ)-DP mechanism. The arguments are in
docs/privacy/graphical.md and vectors.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec import Struct

from jostle.accounting.amounts import Amount, as_float
from jostle.accounting.definitions import Price, used_delta
from jostle.accounting.subsampled_gaussian import noise_for
from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.lazy import Array, Bools, Floats, Ints, NDArray, np
from jostle.noise_laws import Gaussian
from jostle.plan.plan import WEIGHT_BITS, Apply, Bound, Column, Constant, Derive, Filter, Key, Open, Plan, Sample, Scan
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.handles import Cube, Tallied
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.kernel.measurement import Measured, Measurement, Payment, Release, weighted_stability_of
from jostle.privacy.kernel.prepaid import WHOLE, Prepaid, Prepayment
from jostle.privacy.measurements.answers import JointCells
from jostle.privacy.mechanisms.additive import Additive
from jostle.privacy.mechanisms.margin import stability_price
from jostle.privacy.mechanisms.noise import SHARES, Noise, needed_noise
from jostle.privacy.reading.vault import Reader
from jostle.privacy.transformations.joins import join_exposures
from jostle.source import Span

MOST_STEPS = 10_000
MOST_NUMBERS = 2**24
"""The largest number of released numbers, steps times cells."""

_HASHES, _BUCKETS = 5, 2**24

Rate = float | Callable[[float, float, int], float]
"""The probability of keeping a unit, or a function of ε, δ and the number of steps that returns it. It is rounded up to
a multiple of 2^-16 and limited to 1."""


class Batches(Struct, frozen=True):
    """`sums` (steps, cells) are the noisy counts of each batch, cube after cube, or exact ones of public cubes.

    `rate` is the probability of keeping a unit, and `noise` the deviation of each number, in rows.
    """

    sums: Floats
    rate: float
    noise: float


@dataclass(frozen=True, eq=False)
class PoissonBatches(Sample, Measurement["Rows", Batches]):
    """Noisy batches. For public cubes every step has all rows, at no cost."""

    cubes: tuple[Cube, ...]
    together: Handle
    plan: Plan
    columns: tuple[str, ...]
    steps: int
    share: int
    """The probability of keeping a unit, in units of 2^-16."""
    sigma: float
    called = "subsampled gaussian"

    @classmethod
    def of(cls, cubes: Sequence[Cube], rate: Rate, steps: int, amount: Amount | None) -> PoissonBatches:
        together, plan, columns = _units(cubes)
        how, share, sigma = _sampled(amount, together, rate, steps)
        facts = (tuple(cubes), together, plan, columns, steps, share, sigma)
        return cls(together.exposures, "batches", how, *facts, subject=(facts[0], share, steps))

    @property
    def price(self) -> Price:
        return stability_price(self.how.amount)

    def read(self, reader: Reader) -> Rows:
        return _rows(reader, self)

    def release(self, exact: Rows, noise: Noise | None) -> Release[Batches]:
        reach = weighted_stability_of(self.together)
        deviation = self.sigma * (reach << exact.bits) * math.sqrt(len(self.cubes)) * (1 + 2.0**-40)
        scale = math.ldexp(deviation, -exact.bits)
        sums = released(needed_noise(noise), exact, self.share, self.steps, deviation)
        batches = Batches(np.ldexp(sums.astype(float), -exact.bits), self.share / SHARES, scale)
        return Release(batches, (Measured("batches", Gaussian(scale), self.how, 1, reach),))


class Sampled(Prepaid, frozen=True):
    """A balance for `steps` noisy sums, each over a new secret sample that keeps a row with probability share/2^16."""

    steps: int
    share: int

    @property
    def rate(self) -> float:
        return self.share / SHARES

    def part(self, share: float) -> float:
        raise refuse("TypeError", "this was paid for sums of samples", help="`noisy_sum` takes it, a sample at a time")

    def payment(self, share: float, room: float) -> Payment:
        """The payment of one step, which `strength` refers to."""
        if share != 1:
            raise refuse("TypeError", "a sum of a sample takes no part: there are `steps` of them", help="leave it out")
        return Payment(self, WHOLE // self.steps, 0.0)


@dataclass(frozen=True, eq=False)
class PrepaidSamples(Prepayment):
    """The measurement that buys noisy sums over secret samples of a handle's rows, of which a unit has one."""

    steps: int
    share: int
    sigma: float
    called = "subsampled gaussian"

    @classmethod
    def sampled(cls, rows: Handle, rate: Rate, steps: int, amount: Amount | None) -> PrepaidSamples:
        need_single_rows(rows)
        how, share, sigma = _sampled(amount, rows, rate, steps)
        return cls(rows.exposures, "samples", how, rows, False, steps, share, sigma, subject=(rows, share, steps))

    @property
    def price(self) -> Price:
        return stability_price(self.how.amount)

    @property
    def bought(self) -> tuple[float, float]:
        return 1 / self.sigma, math.inf

    def release(self, exact: None, noise: Noise | None) -> Release[Prepaid]:
        strength, _ = self.bought
        paid = Sampled(self.exposures, self.how.amount, self.how, strength, False, False, self.steps, self.share)
        return Release(paid, (Measured("prepaid", Gaussian(self.sigma), self.how, 1, 1),))


def need_single_rows(rows: Handle) -> None:
    """Refuses units of several rows, which would be sampled one by one, and replaced rows."""
    if len(rows.exposures) != 1 or rows.exposures[0].unit.public_size or rows.exposures[0].stability != 1:
        raise refuse(
            "TypeError", "secret samples are of rows of which each person has one, added or removed",
            help="make one row of each person, `select … per person`, or say `up to 1 row`",
        )  # fmt: skip


def _sampled(amount: Amount | None, handle: Handle, rate: Rate, steps: int) -> tuple[Additive, int, float]:
    """The noise of `steps` steps within an amount, its deviation in sensitivities, and the rate in 2^-16."""
    _check(rate, steps)
    total = _need(amount)
    epsilon, delta = as_float(total.value), used_delta(total, handle.measures)
    share = math.ceil((rate(epsilon, delta, steps) if callable(rate) else rate) * SHARES)
    sigma = noise_for(epsilon, delta, share / SHARES, steps)
    if not math.isfinite(sigma):
        raise refuse("BadAmount", "no noise keeps so many steps within this amount", help="take fewer steps")
    how = Additive(total, Gaussian, f"{steps} secret samples of {share / SHARES:.3g} of all", delta)
    return how, share, sigma


def _check(rate: Rate, steps: int) -> None:
    if not (callable(rate) or 0 < rate <= 1) or not 1 <= steps <= MOST_STEPS:
        raise refuse("ValueError", f"a rate is in (0, 1], and there are 1 to {MOST_STEPS:,} steps")


def batches(
    kernel: Kernel, cubes: Sequence[Cube], rate: Rate, steps: int, amount: Amount | None, span: Span | None
) -> Batches:
    """Releases noisy batches. For public cubes every step has all rows, at no cost."""
    _check(rate, steps)
    cells = sum(c.size for c in cubes)
    if steps * cells > MOST_NUMBERS:
        raise refuse("ValueError", f"{steps:,} batches of {cells:,} cells are too many", help="take fewer steps")
    if any(c.private for c in cubes):
        return kernel.measure(PoissonBatches.of(cubes, rate, steps, amount), span)
    exact, _ = kernel.measure(JointCells.of(cubes, None, None), span)
    return Batches(np.tile(np.concatenate([c.ravel() for c in exact]), (steps, 1)), 1.0, 0.0)


class Rows(Struct, frozen=True):
    """Private: `places` (rows, E) is the cell of each row in every cube, or `cells` (the number of all) for none.

    `owners` is the unit of each row, 0 … `units` − 1, or None if each row is a unit. `weights` are in units of
    2^-`bits`, or None.
    """

    places: NDArray[np.int32]
    cells: int
    units: int
    owners: Ints | None = None
    weights: Ints | None = None
    bits: int = 0


def released(noise: Noise, rows: Rows, share: int, steps: int, deviation: float) -> Ints:
    """The noisy counts (steps, cells), with a new sample and new noise for each step, in units of 2^-bits."""
    out = np.empty((steps, rows.cells), dtype=np.int64)
    for step in range(steps):
        out[step] = noise.gaussian(counted(rows, noise.sample(rows.units, share)), deviation)
    return out


def counted(rows: Rows, mask: Bools) -> Ints:
    """The exact cells of the rows of the sampled units."""
    mine = mask if rows.owners is None else mask[rows.owners]
    places = rows.places[mine]
    if rows.weights is None:
        counts = np.bincount(places.ravel(), minlength=rows.cells + 1)
    else:  # integers below 2^53 are exact in doubles
        weights = np.repeat(rows.weights[mine].astype(float), places.shape[1])
        counts = np.bincount(places.ravel(), weights=weights, minlength=rows.cells + 1)
    return fixed_width(counts[: rows.cells])


# Public ------------------------------------------------------------------------------------------------


def _need(amount: Amount | None) -> Amount:
    if amount is None:
        raise refuse("NoEpsilon", "this reads private data and says no epsilon", help="add `with epsilon 1 delta 1e-6`")
    if amount.unit != "epsilon" or not amount.delta:
        raise refuse(
            "TypeError", "secret samples are priced in epsilon and delta",
            help="declare `budget epsilon e, delta d`, and spend `with epsilon 0.5 delta 1e-6`",
        )  # fmt: skip
    if amount.value == 0:
        raise refuse("BadAmount", "too little epsilon for any noise")
    return amount


def _source(plan: Plan, names: Sequence[str]) -> tuple[Plan, set[str]]:
    """The plan below filters and derived columns, and those of its columns that these do not change."""
    columns = set(names)
    while isinstance(plan, Filter | Derive):
        if isinstance(plan, Derive):
            columns &= {name for name, expr in plan.columns if expr == Column(name)}
        plan = plan.source
    return plan, columns


def _units(cubes: Sequence[Cube]) -> tuple[Handle, Plan, tuple[str, ...]]:
    """The plan of the table that all cubes count, and the columns of a row's person (none if each row is a unit)."""
    plans = [c.cells.plan for c in cubes if isinstance(c.cells, Tallied)]
    together = Handle(join_exposures([c.exposures for c in cubes[:1]], [1]))
    same = len(plans) == len(cubes) and all(plan == plans[0] for plan in plans)
    if not same or any(c.exposures != cubes[0].exposures for c in cubes):
        raise refuse(
            "TypeError", "samples are of the rows of one table", help="make all cubes with `histogram(table, …)`"
        )
    (exposure, *others), plan = together.exposures, plans[0]
    unit = exposure.unit
    if unit.public_size:
        raise refuse("TypeError", "samples are of rows that are added or removed", help="declare without `public size`")
    at, columns = _source(plan, unit.columns)
    scan = at.scan if isinstance(at, Bound) else at
    whole = (set(at.by) if isinstance(at, Bound) else set()) == set(unit.columns)
    once = exposure.stability == unit.rows and exposure.weighted_stability in (1, unit.rows)
    if others or not isinstance(scan, Scan) or not whole or not once:
        raise refuse(
            "TypeError", "rows that were joined cannot be sampled", help="sample the rows of one private table"
        )
    if columns != set(unit.columns) or any(dict(scan.columns).get(c) != Open("text") for c in unit.columns):
        names = ", ".join(unit.columns)
        raise refuse(
            "TypeError", f"a sample keeps all rows of a person or none, and `{names}` does not tell whose they are",
            help=f"describe it as text and leave it in the table: `described by {{{unit.columns[0]}: text, …}}`",
        )  # fmt: skip
    return together, plan, unit.columns


# Private -----------------------------------------------------------------------------------------------


def _rows(reader: Reader, batches: PoissonBatches) -> Rows:
    plan, columns, cubes, together = batches.plan, batches.columns, batches.cubes, batches.together
    tallied = [c.cells for c in cubes if isinstance(c.cells, Tallied)]
    keys = tuple(dict.fromkeys(key for cells in tallied for key in cells.keys))
    units = tuple(Column(name) for name in columns)
    salts = range(_HASHES if columns else 0)
    hashes = tuple(
        Key(Apply("bucket", (Constant(float(_BUCKETS)), Constant(float(salt)), *units)), range(_BUCKETS))
        for salt in salts
    )
    arrays = reader.answers.codes(plan, keys + hashes)
    codes: dict[Key, Array] = dict(zip(keys, arrays, strict=False))
    many, cells = len(arrays[0]), sum(c.size for c in cubes)
    places = np.empty((many, len(cubes)), dtype=np.int32)
    start = 0
    for i, (cube, cell) in enumerate(zip(cubes, tallied, strict=True)):
        at, inside = np.zeros(many, dtype=np.int64), np.ones(many, dtype=bool)
        for key in cell.keys:
            inside &= codes[key] >= 0
            at = at * len(key.values) + codes[key]
        places[:, i] = np.where(inside, at + start, cells)
        start += cube.size
    if not columns:
        return Rows(places, cells, many)
    identities = np.stack(arrays[len(keys) :], axis=1)
    persons, owners, shares = np.unique(identities, axis=0, return_inverse=True, return_counts=True)
    owners = owners.ravel()
    if together.exposures[0].weight is None:
        return Rows(places, cells, len(persons), owners)
    return Rows(places, cells, len(persons), owners, 2**WEIGHT_BITS // shares[owners], WEIGHT_BITS)
