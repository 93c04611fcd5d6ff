"""What a released number was calculated from: formulas over numbers that were measured, with the laws of their noise.

A number that was measured is what it would be without noise, and noise of a public law: a `Source`. A `Formula` is a
function of such numbers, of other formulas and of constants. All of it is public, and from it follows how far off the
number may be (`run.propagation`), also where two numbers share a source. Nothing is calculated here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from typing import Any

from jostle.error_laws import NoiseLaw, Widening
from jostle.noise_laws import Laplace, Selected

MOST_STEPS = 10_000
"""The longest chain of calculations that is remembered: what comes after it is a number of which nothing is known."""


DOUBTFUL = " ?"
DOUBT = "?: the error is as large as the value, or as the count of the rows"
"""The mark of a number that may as well be 0 or of no rows, and what it means."""


def error_text(value: float, error: float, mark: str = "", hidden: bool = False) -> str:
    """An error for a person, to two significant digits, rounded up: `5700`, with a mark if it is of the noise alone,
    and `5700 ?` where it is as large as the value, or noise hides how many rows it is of."""
    rounded = rounded_up(error)
    whole = rounded.is_integer() and rounded < 1e15
    doubt = DOUBTFUL if hidden or 0 < error >= abs(value) else ""
    return (str(int(rounded)) if whole else f"{rounded:.2g}") + mark + doubt


def rounded_up(error: float) -> float:
    """The least number of two significant digits that is no smaller, as far as nine digits tell."""
    rounded = float(f"{error:.2g}")
    if rounded >= error * (1 - 1e-9) or not 0 < error < math.inf:
        return rounded
    return float(f"{error + 10.0 ** (math.floor(math.log10(error)) - 1) / 2:.2g}")


def digits_beside(value: float, error: object) -> int:
    """Six, or the significant digits of a number by which what is left out of it is small beside its error."""
    if not (isinstance(error, int | float) and 0 < error < math.inf and 0 < abs(value) < math.inf):
        return 6
    return min(max(6, math.floor(math.log10(abs(value))) - math.floor(math.log10(error)) + 2), 15)


def show_number(value: float, error: object = None) -> str:
    """A number for a person, to six significant digits, or as many as its error asks for."""
    if not math.isfinite(value):
        return {math.inf: "inf", -math.inf: "-inf"}.get(value, "nan")
    text = f"{value:.{digits_beside(value, error)}g}"
    near = float(text) if error else value
    return str(int(near)) if near.is_integer() and abs(near) < 1e15 else text


IN_RANKS, IN_ROWS, IN_DAYS, IN_SECONDS = "ranks", "rows", "days", "seconds"


def ranks_text(ranks: float, of: str = IN_RANKS) -> str:
    """The error of a number that was chosen: `37 ranks` of a quantile, `37 rows` (fewer than the most) of a mode; of a
    date `4 days`."""
    if of == IN_SECONDS and ranks > 2 * 86_400:
        ranks, of = ranks / 86_400, IN_DAYS
    return f"{math.ceil(ranks)} {of[:-1] if math.ceil(ranks) == 1 else of}"


NOISE_ONLY, BY_NOISE = "*", " (noise only)"
"""The marks of an error, behind ± and alone, where more than noise may lie between a number and the answer."""

MISFIT, UNKNOWN = "the misfit of ", "?*"
"""How what was cut begins where cells do not fit their description, and the error of what rests on them."""


def cut_text(cut: Sequence[str]) -> list[str]:
    """The line below numbers that says what the mark means, from what was cut: noun phrases; none, if nothing was."""
    if rests_on_misfits(cut):
        return [f"{NOISE_ONLY}: how far it is off is not known, because of {', '.join(cut)}"]
    return [f"{NOISE_ONLY}: ± covers the noise only, not {', '.join(cut)}"] if cut else []


def rests_on_misfits(cut: Sequence[str] | None) -> bool:
    """Whether cells do not fit among what was cut, so that the error of noise says nothing."""
    return any(one.startswith(MISFIT) for one in cut or ())


def cuts_in(margins: object) -> tuple[str, ...]:
    """What was cut from any number of a value, by its margins (`run.margins`)."""
    if isinstance(margins, list | tuple):
        return tuple(dict.fromkeys(cut for one in margins for cut in cuts_in(one)))
    if not isinstance(margins, Mapping):
        return ()
    cut = margins.get("cut")
    if isinstance(cut, list | tuple) and cut and all(isinstance(one, str) for one in cut):
        return tuple(cut)
    return cuts_in(list(margins.values()))


def margin_text(value: object, margin: object) -> str:
    """What stands beside a value of this margin (`run.margins`), after ±; nothing, where there is none, and the bare
    mark of doubt where there is nothing else."""
    if not isinstance(margin, Mapping):
        return ""
    if rests_on_misfits(margin.get("cut")):
        return UNKNOWN
    mark, hidden = NOISE_ONLY if margin.get("cut") else "", bool(margin.get("hidden"))
    for of in (IN_RANKS, IN_ROWS, IN_DAYS, IN_SECONDS):
        ranks = margin.get(of)
        if isinstance(ranks, int | float) and math.isfinite(ranks):
            return ranks_text(ranks, of) + mark + (DOUBTFUL if hidden else "")
    error = margin.get("error")
    if isinstance(value, int | float) and isinstance(error, int | float) and not isinstance(value, bool):
        return error_text(value, error, mark, hidden)
    return DOUBTFUL.strip() if hidden else ""


def with_margin(text: str, beside: str) -> str:
    return f"{text} ± {beside}" if beside.strip(DOUBTFUL) else f"{text} {beside}".rstrip()


class Source:
    """A measured number and the law of its noise, which is independent of that of every other source."""

    __slots__ = ("law", "value")
    steps = 0

    def __init__(self, value: float, law: NoiseLaw) -> None:
        self.value, self.law = value, law


class Formula:
    """A calculation of sources, formulas and numbers, its `inputs`.

    `function` is an operator or a function of the language by name, or one that takes arrays as it takes numbers.
    """

    __slots__ = ("function", "inputs", "steps")

    def __init__(self, function: str | Callable[..., Any], inputs: tuple[Any, ...], steps: int) -> None:
        self.function, self.inputs, self.steps = function, inputs, steps


class Vector(Formula):
    """A vector of measured numbers with independent noise of one law: its inputs are the sources of its elements."""

    __slots__ = ("_parts", "law", "values")

    def __init__(self, values: Any, law: NoiseLaw) -> None:
        self.function, self.steps, self.values, self.law = "vector", 0, values, law
        self._parts: dict[int, Source] = {}

    def element(self, place: int) -> Source:
        """The source of one element, always the same."""
        if place not in self._parts:
            self._parts[place] = Source(float(self.values[place]), self.law)
        return self._parts[place]

    @property
    def inputs(self) -> tuple[Source, ...]:  # type: ignore[override]
        return tuple([self.element(place) for place in range(len(self.values))])


class Joint(Formula):
    """A weighted sum of measured numbers that other numbers are made of too, and a constant; of its own noise the `law`
    is known.

    `noises` gives for its `place` pairs of vectors and weights, one weight an element; it is asked only where this is
    calculated with.
    """

    __slots__ = ("_noises", "_pairs", "_place", "constant", "law")

    def __init__(
        self, law: NoiseLaw, place: int, noises: Callable[[int], list[tuple[Vector, Any]]], constant: float = 0.0
    ) -> None:  # fmt: skip
        self.function, self.steps, self.law, self.constant = self._sum, 0, law, constant
        self._place, self._noises = place, noises
        self._pairs: list[tuple[Source, float]] | None = None

    @property
    def pairs(self) -> list[tuple[Source, float]]:
        """The measured numbers and their weights."""
        if self._pairs is None:
            self._pairs = [
                (vector.element(at), float(weight))
                for vector, weights in self._noises(self._place)
                for at, weight in enumerate(weights)
                if weight
            ]
        return self._pairs

    @property
    def inputs(self) -> tuple[Source, ...]:  # type: ignore[override]
        return tuple([source for source, _ in self.pairs])

    @property
    def weights(self) -> list[float]:
        return [weight for _, weight in self.pairs]

    def _sum(self, *values: Any) -> Any:
        return self.constant + sum(weight * value for weight, value in zip(self.weights, values, strict=True))


class OfTwo(Joint):
    """A weighted sum of two measured numbers, and its value, which may be the integer next to it.

    `rounding` is the value less the sum. It is known, and moves what is calculated from the value.
    """

    __slots__ = ("rounding", "value")

    def __init__(self, value: float, law: NoiseLaw, pairs: Sequence[tuple[Any, float]]) -> None:
        self.function, self.steps, self.law, self._pairs, self.constant = self._sum, 0, law, list(pairs), 0.0
        self.value, self.rounding = value, value - self._sum(*(source.value for source, _ in pairs))


class Projected(Formula):
    """An answer from `low` on in place of a measured one, its `inputs`: so that several agree, it may lie elsewhere.

    What is calculated from it is as far off as what is calculated from the measured one. `whole`: the exact answer is a
    whole number.
    """

    __slots__ = ("law", "low", "measured", "whole")

    def __init__(self, measured: Noised, low: float = 0.0, whole: bool = False) -> None:
        super().__init__(_itself, (measured.origin,), 1)
        self.measured, self.law, self.low, self.whole = float(measured), measured.law, low, whole

    def ends(self, low: float, high: float) -> tuple[float, float]:
        """Those of an interval that holds the exact answer, but for the last bits of a sum."""
        least = math.ceil(low - 1e-6) if self.whole else low
        return least, max(least, math.floor(high + 1e-6)) if self.whole else high


class Widened(Formula):
    """A number as it was measured, of which rows were left out that move it to `low` at least and `high` at most, sums
    of measured numbers too. `cut` is what the error of whatever is calculated from it does not cover."""

    __slots__ = ("cut", "high", "low")
    weights = (1.0,)
    low: Noised
    high: Noised

    def __init__(self, measured: Noised, ends: tuple[float, float]) -> None:
        super().__init__(_itself, (measured.origin,), measured.origin.steps + 1)
        (self.low, self.high), self.cut = ends, measured.cut  # type: ignore[assignment]


def _itself(value: object) -> object:
    return value


class Refinements:
    """The answers to one question: the noise of each is a part of that of the one before.

    So an answer has the noise of the last one, and of all that the steps between took away: `Widening` noises, which
    are independent of it and of each other. Which one is the last is looked up whenever something is calculated.
    """

    def __init__(self) -> None:
        self._answers: list[tuple[Vector, Laplace]] = []
        self._widenings: list[Vector] = []

    def append(self, values: Any, law: Laplace) -> Vector:
        """The origin of a further answer, an array."""
        if self._answers:
            before, wide = self._answers[-1]
            self._widenings.append(Vector(before.values - values, Widening(wide.scale, wide.step, law.scale)))
        self._answers.append((Vector(values, law), law))
        return OfStep(self, len(self._answers) - 1, values, law)

    def sources(self, step: int, place: int) -> list[Source]:
        """The independent noises of an element after a step (from 0)."""
        last, _ = self._answers[-1]
        return [last.element(place), *(widening.element(place) for widening in self._widenings[step:])]


class Refined(Joint):
    """An element of an answer that may be refined further."""

    __slots__ = ("_sources",)

    def __init__(self, law: NoiseLaw, sources: Callable[[], list[Source]]) -> None:
        self.function, self.steps, self.law, self.constant, self._sources = self._sum, 0, law, 0.0, sources

    @property
    def pairs(self) -> list[tuple[Source, float]]:
        return [(source, 1.0) for source in self._sources()]


class OfStep(Vector):
    """An answer that may be refined further."""

    __slots__ = ("_refined", "_refinements", "_step")

    def __init__(self, refinements: Refinements, step: int, values: Any, law: NoiseLaw) -> None:
        super().__init__(values, law)
        self._refinements, self._step = refinements, step
        self._refined: dict[int, Refined] = {}

    def element(self, place: int) -> Any:
        if place not in self._refined:
            self._refined[place] = Refined(self.law, partial(self._refinements.sources, self._step, place))
        return self._refined[place]


class OfElements(Formula):
    """A function of a list of numbers, of all elements of a vector."""

    __slots__ = ("vector",)

    def __init__(self, function: str, vector: Vector) -> None:
        self.function, self.steps, self.vector = function, 1, vector

    @property
    def inputs(self) -> tuple[Source, ...]:  # type: ignore[override]
        return self.vector.inputs


Origin = Source | Formula


class Marked(float):
    """An error or an end of an interval that is of the noise alone; `cut` as of a `Noised` number."""

    __slots__ = ("cut",)
    cut: tuple[str, ...]

    @classmethod
    def of(cls, value: float, cut: tuple[str, ...]) -> float:
        """The number with its mark; the bare number where nothing was cut."""
        if not cut:
            return value
        number = float.__new__(cls, value)
        number.cut = cut
        return number

    def __reduce__(self) -> tuple[object, ...]:
        return (Marked.of, (float(self), self.cut))


class Exact(float):
    __slots__ = ()


class Noised(float):
    """A number that was measured, or calculated from such numbers; for all else a float like any other.

    `cut` names, as noun phrases, what its error does not cover, since more than noise was taken from the exact answer:
    rows beyond a bound, values that were clamped. It is public, and marks the error wherever it is shown. `hidden` are
    numbers of a group whose count of rows is no larger than its error.
    """

    __slots__ = ("cut", "hidden", "origin")
    origin: Origin
    cut: tuple[str, ...]
    hidden: bool

    def __new__(cls, value: float, law: NoiseLaw) -> Noised:
        return cls.of(value, Source(value, law))

    @classmethod
    def of(cls, value: float, origin: Origin, cut: tuple[str, ...] = (), hidden: bool = False) -> Noised:
        """A number of this origin."""
        number = float.__new__(cls, value)
        number.origin, number.cut, number.hidden = origin, cut, hidden
        return number

    def without(self, cut: Sequence[str], hidden: bool = False) -> Noised:
        """The same number, whose error does not cover this either."""
        return Noised.of(self, self.origin, tuple(dict.fromkeys((*self.cut, *cut))), self.hidden or hidden)

    @property
    def law(self) -> NoiseLaw | None:
        """The law of its noise, of a number straight from one mechanism."""
        return self.origin.law if isinstance(self.origin, Source | Joint) else None

    @property
    def ranks(self) -> tuple[float, str] | None:
        """Of a number that was chosen, how many ranks or rows it is off at most, with 95 %; None of any other."""
        return (self.law.half_width(), self.law.of) if isinstance(self.law, Selected) else None

    def __reduce__(self) -> tuple[object, ...]:
        if not isinstance(self.origin, Source):
            return (float, (float(self),))
        return (_measured, (float(self), self.law, self.cut, self.hidden))


class _Moment:
    """What a measured date or time has, as `Noised` does; `half_width` is its error in days, seconds or ranks."""

    half_width: Callable[[], tuple[float, str] | None] | None = None
    cut: tuple[str, ...] = ()
    hidden = False

    @property
    def ranks(self) -> tuple[float, str] | None:
        return None if self.half_width is None else self.half_width()


class NoisyDate(_Moment, date):
    def __repr__(self) -> str:
        return repr(date(self.year, self.month, self.day))


class NoisyTime(_Moment, datetime):
    """A time that was measured."""

    def __repr__(self) -> str:
        return repr(datetime.combine(self.date(), self.time()))


def _measured(value: float, law: NoiseLaw, cut: tuple[str, ...], hidden: bool) -> Noised:
    return Noised.of(value, Source(value, law), cut, hidden)


def cuts_of(*values: Any) -> tuple[str, ...]:
    """What was cut from any of these numbers or vectors, each once."""
    return tuple(dict.fromkeys(cut for value in values for cut in getattr(value, "cut", ())))


def calculated(value: float, function: str | Callable[..., object], inputs: Sequence[float]) -> float:
    """`value`, which is `function` of these numbers; where one of them is noised, it remembers from what it comes."""
    steps = 0
    for number in inputs:
        if type(number) is Noised:
            steps = max(steps, number.origin.steps + 1)
    if not 0 < steps <= MOST_STEPS:
        return float(value)
    origins = tuple([number.origin if type(number) is Noised else number for number in inputs])
    hidden = any(number.hidden for number in inputs if type(number) is Noised)
    return Noised.of(value, Formula(function, origins, steps), cuts_of(*inputs, *origins), hidden)
