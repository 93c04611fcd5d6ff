"""Refinable answers (gradual release): the same answer with less noise, at the price of the difference.

A `Refinable` stands for a score or the cells of a cube, and is free. Each `Refinement` is charged its own amount, and
releases the same numbers with the noise of all amounts together. The noise of a number is the difference of two
one-sided draws, each the smallest of all steps. Only the first step reads the data, and its numbers stay with the
reader. Steps add up only in pure ε; sources with another measure are refused. A row changes a score by its sensitivity
and a cube by 1 in ℓ₁. The arguments, also for steps that depend on answers, are in docs/privacy/gradual.md.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from msgspec import Struct, field

from jostle.accounting.amounts import Amount, as_float
from jostle.diagnostics import refuse
from jostle.lazy import Floats, Ints, np
from jostle.noise_laws import Laplace
from jostle.privacy.kernel import measurement as meas
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.handles import Cube
from jostle.privacy.mechanisms.additive import Additive
from jostle.privacy.mechanisms.margin import CLAMP, check_scale, geometric
from jostle.privacy.mechanisms.noise import Noise, needed_noise
from jostle.privacy.reading.vault import Reader
from jostle.privacy.scores import Score, Scores, check_weights, stability_of_score, values_of


class _State(Struct, eq=False, weakref=True):
    """The public state of a refinable: the cost of its steps, in quanta. It is the reader's key of the private state.

    `on_step` is called with the released numbers of each step and their law, and returns their origin.
    """

    on_step: Callable[[Floats, Laplace], object]
    paid: int = 0


class Memory(Struct, eq=False):
    """The exact numbers of a refinable and, after the first step, its draws. Private: only the reader holds it."""

    exact: Ints
    sealed: Sealed | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True, eq=False)
class Refinable(Handle):
    """A score, or the cells of a cube, which can be released repeatedly, each time with less noise."""

    base: Score | Cube
    state: _State

    @classmethod
    def of(cls, base: Score | Cube, on_step: Callable[[Floats, Laplace], object]) -> Refinable:
        """Refuses sources that are not counted in plain ε, and vectors of scores."""
        if isinstance(base, Scores):
            raise refuse("TypeError", "a vector of scores can only be selected from", help="use `noisy_max`")
        for exposure in base.exposures:
            if exposure.source.measure.kind != "pure":
                raise refuse(
                    "TypeError", f"what is refined is paid for in plain epsilon, and `{exposure.source.name}` has a "
                    f"budget of {exposure.source.measure.limit}", help="measure it anew, with all of the amount",
                )  # fmt: skip
        if isinstance(base, Score):
            check_weights([base])
        meas.common_noise(base.exposures)
        return cls(base.exposures, base, _State(on_step))

    @property
    def title(self) -> str:
        """The title of its next step."""
        name = self.base.rule.name if isinstance(self.base, Score) else "vector"
        return f"{name}, refined" if self.state.paid else name

    @property
    def stability(self) -> int:
        """The rows, or the weight, that one protected unit can change."""
        return stability_of_score(self.base) if isinstance(self.base, Score) else meas.weighted_stability_of(self.base)

    @property
    def sensitivity(self) -> int:
        """The ℓ₁ sensitivity of all numbers to one row, in steps of the grid."""
        return self.base.sensitivity if isinstance(self.base, Score) else 1 << self.base.bits

    @property
    def paid(self) -> float:
        """The cost of all answers so far."""
        return as_float(self.state.paid)

    def law(self, quanta: int) -> Laplace:
        """The noise of each number after a total payment, in the units of the numbers."""
        step = 2.0**-self.base.bits
        return Laplace(self.sensitivity * self.stability / as_float(quanta), step=1.0).times(step)

    @property
    def jostle_fields(self) -> dict[str, float]:
        """`paid`: the ε of all answers so far."""
        return {"paid": self.paid}


class Step(Struct, frozen=True):
    """The numbers after a step, their origin, the law of their noise, and the cost of all steps so far.

    For public data there are only the numbers.
    """

    values: Floats
    origin: Any = None
    law: Laplace | None = None
    paid: Amount | None = None


@dataclass(frozen=True, eq=False)
class Refinement(meas.Measurement[Memory, Step]):
    """One step: the numbers of a `Refinable`, with the noise of the total payment."""

    refinable: Refinable
    remembers = True

    @classmethod
    def of(cls, refinable: Refinable, amount: Amount | None) -> Refinement:
        how = Additive.of(meas.needed(amount), Laplace.name, refinable.measures) if refinable.private else None
        step = cls(refinable.exposures, refinable.title, how, refinable, subject=refinable.base)
        check_scale(step._scale)
        return step

    @property
    def _scale(self) -> float:
        """The scale of this step's draws, in steps of the grid."""
        if self.how is None:
            return 0.0
        reach = self.refinable.sensitivity * self.refinable.stability
        scale: float = self.how.law(reach, reach).scale
        return scale

    def read(self, reader: Reader) -> Memory:
        """The private state; the data are read only the first time."""
        base, state = self.refinable.base, self.refinable.state
        if state not in reader.steps:
            exact = values_of(reader, [base]) if isinstance(base, Score) else reader.units(base)
            reader.steps.setdefault(state, Memory(exact))
        return cast(Memory, reader.steps[state])

    def release(self, memory: Memory, noise: Noise | None) -> meas.Release[Step]:
        refinable, how = self.refinable, self.how
        bits = refinable.base.bits
        if how is None:
            return meas.Release(Step(np.ldexp(memory.exact.astype(float), -bits)))
        state, change = refinable.state, refinable.sensitivity / 2.0**bits
        with memory.lock:
            sealed = refined(memory.sealed, memory.exact, needed_noise(noise), self._scale, how.amount.value)
            values, law = np.ldexp(sealed.noisy.astype(float), -bits), refinable.law(sealed.paid)
            single = isinstance(refinable.base, Score)
            event = meas.Measured(self.title, law, how, change, refinable.stability, direct=single)
            paid = Amount(how.amount.unit, sealed.paid)
            release = meas.Release(Step(values, state.on_step(values, law), law, paid), (event,))
            memory.sealed, state.paid = sealed, sealed.paid  # last, so that a failure leaves the state unchanged
        return release


# The mechanism -------------------------------------------------------------------------------------


class Sealed(Struct, frozen=True, eq=False):
    """Exact numbers and the smallest draws of all steps so far, which are private.

    `paid` is the sum of the amounts of the steps, in quanta.
    """

    exact: Ints
    first: Ints
    second: Ints
    paid: int

    @property
    def noisy(self) -> Ints:
        """The released numbers, with the noise of all steps."""
        return self.exact + (self.first - self.second)


def refined(before: Sealed | None, exact: Ints, noise: Noise, scale: float, amount: int) -> Sealed:
    """The state after one more step, which costs `amount`. The state `before` is not modified.

    `exact` is used by the first step only. `scale` is in the units of the numbers, and at most `WIDEST`.
    """
    first, second = (geometric(noise, exact.size, scale).reshape(exact.shape) for _ in range(2))
    if before is None:
        return Sealed(np.clip(exact, -CLAMP, CLAMP), first, second, amount)
    first, second = np.minimum(before.first, first), np.minimum(before.second, second)
    return Sealed(before.exact, first, second, before.paid + amount)
