"""What the door takes: a measurement, complete before anything is charged.

A measurement is made from public facts. It knows its exposures, its price and what it is for; how to `read` exact
whole numbers, how to `release` them with noise, and how to `finish` what was released. `Kernel.measure` does the
rest, in one order: price, admit, commit, read, release, event, finish. A reader exists inside the door only.
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
    """What a trace shows of one release: the law of its noise, its amount, and how far a row can move it.

    `sensitivity` is per changed row, in the units of what is released. `stability` is how many rows, or how much
    weight, a protected unit can change.
    """

    what: str
    law: DrawnLaw
    how: Additive | Selection
    sensitivity: float
    stability: int
    part: float | None = None
    """The share of a prepaid amount that paid for it."""
    direct: bool = False
    """Whether what is released is the noisy number itself, so that its noise is its error."""
    uses: Mapping[str, float] = struct_field(default_factory=dict)
    """Of a number that several aggregates are made of, the amount that each of them has."""

    def fields(self, exposures: Exposures, whole: Amount | None = None) -> dict[str, Any]:
        """`whole`: what was paid ahead, of which this has a part."""
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
    """What leaves: a value, and what a trace shows of it. `rest` is measured next, within the same price."""

    value: R
    measured: tuple[Measured, ...] = ()
    rest: Measurement[Any, R] | None = None


class Bought(Struct, frozen=True, eq=False, weakref=True):
    """What one charge bought: the name of a balance, which the kernel keeps. It holds nothing that can be spent."""

    exposures: Exposures
    amount: Amount
    """Of what pays for whatever is measured: what all of that may spend together."""

    def need_fit(self, measurement: Measurement[Any, Any], span: Span | None) -> None:
        """Refuses what it does not pay for."""
        raise NotImplementedError

    def covers(self, exposures: Exposures) -> bool:
        """Whether this was paid on every source of `exposures`, on their paths or above, with no agent left out."""
        return all(
            any(
                p.source is e.source and p.path == e.path[: len(p.path)] and set(e.agents) <= set(p.agents)
                for p in self.exposures
            )
            for e in exposures
        )


class Payment(Struct, frozen=True):
    """A part of a prepaid amount: `units` of its whole, and `room` in δ."""

    prepaid: Bought
    units: int
    room: float


@dataclass(frozen=True, eq=False)
class Measurement(ABC, Generic[E, R]):
    """A question to private data, or to public data, which are answered exactly and for nothing (`noise` is None)."""

    exposures: Exposures
    """The private sources that it is charged to; none where the data are public."""

    title: str
    """What a history calls it."""

    how: Any
    """The law of its noise at its amount; none where the data are public."""

    subject: object = field(default=None, kw_only=True)
    """Everything public that decides the answer, as a ledger writes it down."""

    each: Bought | None = field(default=None, kw_only=True)
    """Of one that stands for runs of a program, of which one is shown: what pays for each. What it reads is how to open
    one, a context in which measurements are charged to this and reported nowhere."""

    remembers = False
    """Whether what is measured remembers it, so that a run that may leave no trace is refused."""

    called = ""
    """What a ledger calls its mechanism, where that is not what its noise is called."""

    @property
    def price(self) -> Price:
        """What it costs each of them."""
        if self.how is None:
            raise refuse("NoEpsilon", "public data have no price")
        price: Price = self.how.price
        return price

    def paid_by(self) -> Payment | None:
        """The part of a prepaid amount that pays for it, in place of a charge."""
        return None

    def was_paid(self) -> bool:
        """Whether its price was charged before, as the ledger of its source says: then only allotments are charged."""
        return False

    def buys(self) -> tuple[int, float] | None:
        """Of one that pays for others: the units, and the room in δ, that its result stands for."""
        return None

    @property
    def purpose(self) -> ChargePurpose:
        """The mechanism, and what it measures, as a ledger writes them down."""
        return ChargePurpose(self.called or (self.how.mechanism if self.how is not None else ""), self.subject)

    @abstractmethod
    def read(self, reader: Any) -> E:
        """The exact whole numbers, from a `privacy.reading.vault.Reader`."""

    @abstractmethod
    def release(self, exact: E, noise: Noise | None) -> Release[R]:
        """What leaves, with noise of this measurement's scale; a function of `exact`, of public facts and of noise."""

    def finish(self, released: Any) -> R:
        """The answer, calculated of released numbers and public facts alone; here they are the answer."""
        answer: R = released
        return answer


@dataclass(frozen=True, eq=False)
class LinearMeasurement(Measurement["Sequence[Ints]", R]):
    """Vectors of exact integers with noise: counts, sums, pairs, histograms, strategies, blocks, cubes and scores.

    An instance says what is read, a vector each of `linear`, and calculates its answer of the noisy numbers (`finish`).
    """

    linear: tuple[Linear, ...]

    def widths(self) -> Sequence[NDArray[np.generic] | None]:
        """For each vector how wide the noise of its numbers is (`Linear.release`); none where all have one width."""
        return (None,) * len(self.linear)

    @abstractmethod
    def measured(self) -> tuple[Measured, ...]:
        """What a trace reports, of private data."""

    def release(self, exact: Sequence[Ints], noise: Noise | None) -> Release[Any]:
        vectors = zip(self.linear, exact, self.widths(), strict=True)
        numbers = [linear.release(integers, noise, widths) for linear, integers, widths in vectors]
        return Release(numbers, self.measured() if self.exposures else ())


def needed(amount: Amount | None) -> Amount:
    """The amount of a private measurement."""
    if amount is None:
        raise refuse("NoEpsilon", "this reads private data and says no epsilon", help="add `with epsilon 0.1`")
    return amount


def common_noise(exposures: Exposures) -> Noise | None:
    """The noise of a measurement of these sources, which are all private or all simulated; none of public data."""
    if not exposures:
        return None
    if len(exposures) > 1 and len({e.source.simulated for e in exposures}) != 1:
        raise refuse("PrivateValue", "simulated and private data cannot be measured together")
    noise: Noise = exposures[0].source.noise
    return noise


def stability_of(handle: Handle) -> int:
    """The largest number of rows of a protected unit: noise is scaled for the source that needs most."""
    return max(map(attrgetter("stability"), handle.exposures), default=0)


def weighted_stability_of(handle: Handle) -> int:
    """The same for what counts rows by their weights; where they have none, by 1 each."""
    return max(map(attrgetter("weighted_stability"), handle.exposures), default=0)
