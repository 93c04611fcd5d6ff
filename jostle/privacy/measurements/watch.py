"""The sparse vector technique (a watch), which is paid for once, and the best of many runs of a program.

*Watch.* Opening it charges the whole price. Negative answers are free, and after `most` positive answers it is closed.
The first question draws the noise of the threshold, which stays with the reader. Every question takes from the balance
through `Kernel.measure`, as every measurement does. Its score must be as stable as the score that the watch was opened
for: no larger sensitivity, no finer grid, and the same direction if monotone. This is checked before anything is read.

*Best of many* (`BestRun`). The number of runs is random, each run uses a uniformly drawn candidate, and only the run
with the largest score is released. No meter, ledger, trace or balance outside of a run changes. The arguments are in
docs/privacy/selection.md.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, cast

from msgspec import Struct, field

from jostle.accounting.amounts import Amount, as_float
from jostle.accounting.definitions import pure_epsilon
from jostle.diagnostics import Refusal, refuse
from jostle.integers import fixed_width
from jostle.lazy import Ints
from jostle.noise_laws import Laplace
from jostle.privacy.kernel.exposures import Exposures
from jostle.privacy.kernel.measurement import Bought, Measured, Measurement, Payment, Release, common_noise, needed
from jostle.privacy.measurements.choices import OfScores, measured_by, separation
from jostle.privacy.mechanisms.margin import CLAMP, Compared, Stopping, WatchScales, below, check_scale, geometric
from jostle.privacy.mechanisms.noise import Noise, needed_noise
from jostle.privacy.mechanisms.selection import Selection
from jostle.privacy.reading.vault import Reader
from jostle.privacy.scores import Score, Scores, check_weights, stability_of_score
from jostle.source import Span

TELLS = ("answer", "gap", "number")
QUESTIONS = 2**40
"""The largest number of questions. It only makes the balance an integer; privacy does not depend on it."""
MOST = 2**20
"""The largest number of positive answers of one watch."""


class _State(Struct, eq=False, weakref=True):
    """The public state of a watch: how many positive answers are left. It is the reader's key of the threshold."""

    left: int


class Threshold(Struct, eq=False):
    """The private noise of a watch's threshold, for the next `left` positive answers. Only the reader holds it."""

    noise: int = 0
    fresh: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class Watch(Bought, frozen=True):
    """An open watch. `score` is the one that it was opened for, and `threshold` is in its units.

    `tells` is what a positive answer releases beside itself: nothing, the gap, or a noisy number.
    """

    score: Score
    threshold: float
    most: int
    tells: str
    how: Selection
    scales: WatchScales
    state: _State

    @property
    def left(self) -> int:
        """The number of positive answers that are left, which is public."""
        return self.state.left

    @property
    def law(self) -> Compared:
        """The noise of one comparison, in the units of the score."""
        step = 2.0**-self.score.bits
        return Compared(self.scales.question * step, self.scales.threshold * step)

    @property
    def number_law(self) -> Laplace:
        """The noise of a released number."""
        return Laplace(self.scales.number, step=1.0).times(2.0**-self.score.bits)

    def compared(self, over: int, noise: Noise, threshold: Threshold) -> int | None:
        """The noisy difference to the threshold, in steps of the grid, from the exact difference `over`; None if below.

        If two questions are asked at once and one takes the last positive answer, the other is below.
        """
        state = self.state
        with threshold.lock:
            if threshold.fresh < 1:
                threshold.noise = int(geometric(noise, 1, self.scales.threshold)[0])
                threshold.fresh = self.scales.each
            gap = over + int(geometric(noise, 1, self.scales.question)[0]) - threshold.noise - self.scales.excess
            if gap < 0 or state.left < 1:
                return None
            state.left -= 1
            threshold.fresh -= 1
            return gap


@dataclass(frozen=True, eq=False)
class Opening(Measurement[None, Watch]):
    """The measurement that buys a watch. It reads nothing."""

    score: Score
    threshold: float
    most: int
    tells: str
    scales: WatchScales
    called = Compared.name

    @classmethod
    def of(cls, score: Score, threshold: float, most: int, tells: str, amount: Amount | None) -> Opening:
        """A watch for questions as stable as `score`, with at most `most` positive answers."""
        check_watch(threshold, most, tells)
        if isinstance(score, Scores):
            raise refuse("TypeError", "a watch is asked one score after the other", help="use `noisy_max`")
        check_weights([score])
        needed_noise(common_noise(score.exposures))
        how = Selection.of(needed(amount), score.measures, exponential=True)
        scales = scales_of(how, score, most, tells == "number")
        check_scale(scales.widest)
        facts = (score, threshold, most, tells)
        return cls(score.exposures, "above_threshold", how, *facts, scales, subject=facts)

    def buys(self) -> tuple[int, float]:
        return QUESTIONS, 0.0

    def read(self, reader: object) -> None:
        return None

    def release(self, exact: None, noise: Noise | None) -> Release[Watch]:
        state = _State(self.most)
        terms = self.score, self.threshold, self.most, self.tells, self.how, self.scales
        watch = Watch(self.exposures, self.how.amount, *terms, state)
        return Release(watch, (measured_by([self.score], Compared.name, watch.law, self.how),))


def check_watch(threshold: float, most: float, tells: str) -> None:
    """Refuses invalid arguments of a watch."""
    if not math.isfinite(threshold):
        raise refuse("ValueError", "a threshold is a finite number")
    if most not in range(1, MOST + 1):
        raise refuse("ValueError", f"a watch gives 1 to {MOST:,} answers above", help="`most = 3`")
    if tells not in TELLS:
        raise refuse("ValueError", f"a watch does not tell `{tells}`", help='`tells = "answer"`, "gap" or "number"')


def used_up(most: int) -> Refusal:
    """The refusal of a watch without answers left."""
    return refuse(
        "BudgetExceeded", f"this watch was for {most} answers above, and has given them",
        help="open another one, or one with a larger `most`",
    )  # fmt: skip


def scales_of(how: Selection, score: Score, most: int, numbers: bool) -> WatchScales:
    """The noise for `most` positive answers within one amount: with one threshold for all in ε, and one for each in ρ.

    Amounts in ρ add up by squares of ε, so that one part for each positive answer gives less noise there.
    """
    reach, apart = score.sensitivity * stability_of_score(score), separation([score], score.exposures)
    if how.amount.unit == "rho":
        return WatchScales.of(pure_epsilon(as_float(how.amount.value) / most), reach, apart, 1, numbers)
    return WatchScales.of(how.epsilon, reach, apart, most, numbers)


Answer = float | bool | None


@dataclass(frozen=True, eq=False)
class Question(OfScores[Answer]):
    """A question to a watch, answered by false or true, or by None or the gap or number that the watch tells."""

    watch: Watch

    @classmethod
    def of(cls, watch: Watch, score: Score) -> Question:
        _check(watch, score)
        return cls(score.exposures, "above", watch.how, (score,), watch)

    def paid_by(self) -> Payment:
        return Payment(self.watch, 1, 0.0)

    def read(self, reader: Reader) -> tuple[Ints, Threshold]:  # type: ignore[override]
        return super().read(reader), cast(Threshold, reader.steps.setdefault(self.watch.state, Threshold()))

    def release(self, exact: tuple[Ints, Threshold], noise: Noise | None) -> Release[Answer]:  # type: ignore[override]
        watch, source, (values, threshold) = self.watch, needed_noise(noise), exact
        bits = watch.score.bits
        value = max(-CLAMP, min(CLAMP, int(values[0]) << (bits - self.scores[0].bits)))
        least = math.ceil(max(-float(CLAMP), min(float(CLAMP), watch.threshold * 2.0**bits)))
        gap = watch.compared(value - least, source, threshold)
        event = measured_by(self.scores, self.title, watch.law, watch.how, part=0.0)
        if gap is None:
            return Release(False if watch.tells == "answer" else None, (event,))
        if watch.tells != "number":
            return Release(gap / 2.0**bits if watch.tells == "gap" else True, (event,))
        noisy = int(source.laplace(fixed_width([value]), watch.scales.number)[0])
        number = Measured("number", watch.number_law, watch.how, event.sensitivity, event.stability, 0.0, direct=True)
        return Release(noisy / 2.0**bits, (event, number))


def _check(watch: Watch, score: Score) -> None:
    """Refuses scores that are less stable than that of the watch, from public facts."""
    like = f"a watch for such scores: `above_threshold({score.rule.name}(…), {watch.threshold:g})`"
    if isinstance(score, Scores):
        raise refuse("TypeError", "a watch is asked one score after the other")
    if not watch.left:
        raise used_up(watch.most)
    if not score.private or not watch.covers(score.exposures):
        raise refuse("TypeError", "this watch was paid for on other data", help=like)
    check_weights([score])
    own = watch.score
    if score.bits > own.bits:
        raise refuse("TypeError", "this score is on a finer grid than the watch", help=like)
    change = (score.sensitivity << (own.bits - score.bits)) * stability_of_score(score)
    if change > (reach := own.sensitivity * stability_of_score(own)):
        by, most = change / 2.0**own.bits, reach / 2.0**own.bits
        raise refuse("TypeError", f"one row moves this score by up to {by:g}, and the watch is for {most:g}", help=like)
    if separation([own, score], watch.exposures) > separation([own], watch.exposures):
        raise refuse("TypeError", "this score may move another way than those that the watch is for", help=like)


Room = Callable[[], AbstractContextManager[None]]
Run = tuple[float, object]
"""A score, and the value that is released with it."""


class OneRun(Bought, frozen=True):
    """A balance for one run of `best_run`: pure ε, and only for measurements that keep no state."""

    def need_fit(self, measurement: Measurement[Any, Any], span: Span | None) -> None:
        if measurement.remembers or not self.covers(measurement.exposures):
            help = "measure data that `best_run` was given, or what the run makes of them"
            raise refuse("TypeError", "a run of `best_run` measures what is not its own", span, help=help)
        price = measurement.price
        if price.amount.unit != "epsilon" or price.amount.delta or price.delta0 or not price.pure:
            help = "only of pure epsilon is it proved that runs which are not shown cost nothing"
            raise refuse("BadAmount", "a run of `best_run` measures in epsilon alone, without a delta", span, help=help)


@dataclass(frozen=True, eq=False)
class BestRun(Measurement[Room, Run | None]):
    """The best of many runs, or None if all failed or none was good.

    `run` is called with the index of a candidate and returns a score. A `Refusal` is a failed run.
    """

    stopping: Stopping
    candidates: int
    run: Callable[[int], Run]
    called = Stopping.name

    @classmethod
    def of(
        cls, paid: Exposures, amount: Amount | None, stopping: Stopping, candidates: int, run: Callable[[int], Run]
    ) -> BestRun:
        """Raises `BadAmount` for amounts other than pure ε, for which alone the price is proved."""
        whole = needed(amount)
        if whole.unit != "epsilon" or whole.delta:
            raise refuse(
                "BadAmount", f"`best_run` is priced in epsilon alone, and {whole} was given",
                help="only for pure epsilon is it proved that runs which are not shown cost nothing",
            )  # fmt: skip
        each = Amount("epsilon", whole.value // stopping.parts)
        if not each.value:
            raise refuse("BadAmount", "too little to share among the parts of this measurement")
        how = Selection.of(whole, [e.source.measure for e in paid], exponential=True)
        return cls(
            paid, "best_run", how, stopping, candidates, run, subject=(stopping, candidates), each=OneRun(paid, each)
        )

    def read(self, reader: object) -> Room:
        raise TypeError("the kernel opens runs")

    def release(self, exact: Room, noise: Noise | None) -> Release[Run | None]:
        source, best = needed_noise(noise), None
        for _ in range(self.stopping.draw(source)):
            run = self._one(exact, below(source, self.candidates))
            good = self.stopping.good
            if run is not None and (run[0] >= good if good is not None else best is None or run[0] > best[0]):
                best = run
                if good is not None:
                    break
        stability = max(e.stability for e in self.exposures)
        return Release(best, (Measured(self.title, self.stopping, self.how, 0, stability),))

    def _one(self, open_run: Room, place: int) -> Run | None:
        """The result of a run; None if it failed or its score is NaN. Failures of an engine are raised."""
        outages = [e.source.outages for e in self.exposures]
        try:
            with open_run():
                score, value = self.run(place)
        except Refusal:
            if outages != [e.source.outages for e in self.exposures]:
                raise
            return None
        return None if math.isnan(score) else (score, value)
