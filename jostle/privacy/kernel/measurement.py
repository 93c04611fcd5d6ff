"""Measurements: the argument of `Kernel.measure`, complete before anything is charged.

A measurement is built from public facts. It states its exposures, its price and its purpose, and implements `read`
(exact integers), `release` (the same with noise) and `finish` (the answer from released numbers). `Kernel.measure`
calls them in a fixed order: price, admit, commit, read, release, event, finish. Only the kernel holds a reader.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec import field as struct_field

from jostle.accounting.amounts import Amount, as_float
from jostle.accounting.definitions import ChargePurpose, Price
from jostle.diagnostics import refuse
from jostle.lazy import Ints, NDArray, np
from jostle.noise_laws import DrawnLaw
from jostle.privacy.kernel.exposures import Exposures, Handle
from jostle.privacy.mechanisms.additive import Additive, Linear
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.mechanisms.selection import Selection
from jostle.source import Span

E = TypeVar("E")
R = TypeVar("R")


class Measured(Struct, frozen=True):
    """The trace record of one release: the law of its noise, its amount, its sensitivity and its stability.

    `sensitivity` is per changed row, in the units of the released number. `stability` is the number of rows, or the
    weight, that one protected unit can change.
    """

    what: str
    law: DrawnLaw
    how: Additive | Selection
    sensitivity: float
    stability: int
    part: float | None = None
    """The share of a prepaid amount that paid for it."""
    direct: bool = False
    """Whether the noisy number itself is released, so that its noise is its error."""
    uses: Mapping[str, float] = struct_field(default_factory=dict)
    """The amount of each aggregate, if several are computed from this number."""

    def fields(self, exposures: Exposures, whole: Amount | None = None) -> dict[str, Any]:
        """The fields of the trace event. `whole` is the prepaid amount that this is a part of."""
        because = {"because": self.how.because} if isinstance(self.how, Additive) and self.how.because else {}
        amount = self.how.amount
        price = {amount.unit: as_float(amount.value)} | ({"delta": as_float(amount.delta)} if amount.delta else {})
        part = amount.value / whole.value if whole is not None and self.part is None else self.part
        return {
            "mechanism": self.law.name, **because, **(price if part is None else {"prepaid": part}),
            "sources": [e.source.name for e in exposures], "sensitivity": self.sensitivity,
            "stability": self.stability, "scale": self.law.scale, **self.law.trace_fields,
            **({"direct": True} if self.direct else {}), **({"uses": dict(self.uses)} if self.uses else {}),
        }  # fmt: skip


class Release(Struct, Generic[R], frozen=True):
    """A released value with its trace records. `rest` is measured next, at no further price."""

    value: R
    measured: tuple[Measured, ...] = ()
    rest: Measurement[Any, R] | None = None


class Bought(Struct, frozen=True, eq=False, weakref=True):
    """The key of a balance that one charge bought. The kernel keeps the balance; this object cannot be spent."""

    exposures: Exposures
    amount: Amount
    """The limit on everything that is measured inside, if it pays for arbitrary measurements."""

    def need_fit(self, measurement: Measurement[Any, Any], span: Span | None) -> None:
        """Refuses a measurement that this does not pay for."""
        raise NotImplementedError

    def covers(self, exposures: Exposures) -> bool:
        """Whether this was charged to every source of `exposures`, on the same or a shorter path, with all agents."""
        return all(
            any(
                p.source is e.source and p.path == e.path[: len(p.path)] and set(e.agents) <= set(p.agents)
                for p in self.exposures
            )
            for e in exposures
        )


class Payment(Struct, frozen=True):
    """A part of a prepaid amount: `units` of the whole, and `room`, the δ that it takes."""

    prepaid: Bought
    units: int
    room: float


@dataclass(frozen=True, eq=False)
class Measurement(ABC, Generic[E, R]):
    """A measurement of private data, or of public data, which is exact and costs nothing (`noise` is None)."""

    exposures: Exposures
    """The private sources that are charged; empty for public data."""

    title: str
    """The name in histories."""

    how: Any
    """The law of the noise at the given amount; None for public data."""

    subject: object = field(default=None, kw_only=True)
    """All public facts that determine the answer, as the ledger records them."""

    each: Bought | None = field(default=None, kw_only=True)
    """For a set of runs of which one is released: what pays for each run. `release` then receives a factory of contexts
    in which measurements are charged to this balance and emit no events."""

    remembers = False
    """Whether the measured object keeps state, so that runs that must leave no trace may not measure it."""

    called = ""
    """The name of the mechanism in the ledger, if it differs from the name of the noise."""

    @property
    def price(self) -> Price:
        """The price, which each exposed source is charged."""
        if self.how is None:
            raise refuse("NoEpsilon", "public data have no price")
        price: Price = self.how.price
        return price

    def paid_by(self) -> Payment | None:
        """The part of a prepaid amount that pays for this instead of a charge; None without one."""
        return None

    def was_paid(self) -> bool:
        """Whether the ledger shows that the price was charged earlier. Then only the allotments are charged."""
        return False

    def buys(self) -> tuple[int, float] | None:
        """The units and the room in δ of the balance that this opens; None if it opens none."""
        return None

    @property
    def purpose(self) -> ChargePurpose:
        """The mechanism and the subject, as the ledger records them."""
        return ChargePurpose(self.called or (self.how.mechanism if self.how is not None else ""), self.subject)

    @abstractmethod
    def read(self, reader: Any) -> E:
        """The exact integers, from a `privacy.reading.vault.Reader`."""

    @abstractmethod
    def release(self, exact: E, noise: Noise | None) -> Release[R]:
        """The release, a function of `exact`, of public facts and of the noise that it draws."""

    def finish(self, released: Any) -> R:
        """The answer, computed from released numbers and public facts only; by default the released value itself."""
        answer: R = released
        return answer


@dataclass(frozen=True, eq=False)
class LinearMeasurement(Measurement["Sequence[Ints]", R]):
    """Vectors of exact integers with noise: counts, sums, pairs, histograms, strategies, blocks, cubes and scores.

    A subclass implements `read`, which returns one vector for each of `linear`, and `finish`.
    """

    linear: tuple[Linear, ...]

    def widths(self) -> Sequence[NDArray[np.generic] | None]:
        """For each vector the noise widths of its numbers (`Linear.release`); None if all have the same width."""
        return (None,) * len(self.linear)

    @abstractmethod
    def measured(self) -> tuple[Measured, ...]:
        """The trace records for private data."""

    def release(self, exact: Sequence[Ints], noise: Noise | None) -> Release[Any]:
        vectors = zip(self.linear, exact, self.widths(), strict=True)
        numbers = [linear.release(integers, noise, widths) for linear, integers, widths in vectors]
        return Release(numbers, self.measured() if self.exposures else ())


def needed(amount: Amount | None) -> Amount:
    """`amount`; refused with `NoEpsilon` if it is None."""
    if amount is None:
        raise refuse("NoEpsilon", "this reads private data and says no epsilon", help="add `with epsilon 0.1`")
    return amount


def common_noise(exposures: Exposures) -> Noise | None:
    """The noise generator of these sources, which must be all private or all simulated; None for public data."""
    if not exposures:
        return None
    if len(exposures) > 1 and len({e.source.simulated for e in exposures}) != 1:
        raise refuse("PrivateValue", "simulated and private data cannot be measured together")
    noise: Noise = exposures[0].source.noise
    return noise


def stability_of(handle: Handle) -> int:
    """The largest number of rows that a protected unit of any source can change. Noise is scaled by it."""
    return max(map(attrgetter("stability"), handle.exposures), default=0)


def weighted_stability_of(handle: Handle) -> int:
    """The same for measurements that add up weights; a row without a weight counts as 1."""
    return max(map(attrgetter("weighted_stability"), handle.exposures), default=0)
