"""Functions that select: `largest`, `margin_max`, and a watch for a threshold, `above_threshold` and `above`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

from jostle.diagnostics import refuse
from jostle.formulas import Noised
from jostle.privacy.kernel.exposures import handles_in
from jostle.privacy.kernel.handles import Cube, Table, Vectors
from jostle.privacy.measurements.choices import NoisyScore
from jostle.privacy.measurements.largest import LargestScores, Ranking
from jostle.privacy.measurements.margin import MarginMax
from jostle.privacy.measurements.watch import Opening, Question, Watch, check_watch, used_up
from jostle.privacy.scores.cells import size
from jostle.privacy.scores.rule import Score, Scores
from jostle.run.arguments import amount_for, items
from jostle.run.evaluator import Evaluator
from jostle.run.faults import private_value
from jostle.run.registry import builtin
from jostle.run.values import Record, is_number, kind_name


@builtin
def _largest(utilities: Any, count: Any = 1.0, leads: Any = False, *, epsilon: Any = None, at: Any) -> Any:
    """The places of the largest scores, in order; with `leads` a record of them and of what each leads the next by."""
    interp, span = at
    for handle in handles_in([count, leads]):
        raise private_value(handle, "cannot say what to select")
    if not is_number(count) or not float(count).is_integer() or not isinstance(leads, bool):
        raise refuse("TypeError", "`count` is a whole number, and `leads` is true or false")
    listed: list[Any] = [utilities] if isinstance(utilities, Scores) else items(utilities)
    if not listed:
        raise refuse("ValueError", "there is nothing to choose from")
    if all(is_number(u) for u in listed):
        ranking = _public(listed, int(count))
    elif all(isinstance(u, Score) for u in listed):
        with amount_for(interp, listed, span, epsilon) as amount:
            ranking = interp.kernel.measure(LargestScores.of(listed, int(count), leads, amount), span)
    else:
        raise refuse("TypeError", "utilities are all public numbers or all scores")
    places = [float(place) for place in ranking.places]
    return Record(places=places, leads=ranking.leads, within=ranking.within) if leads else places


@builtin
def _margin_max(utilities: Any, *, epsilon: Any = None, delta: Any = None, at: Any) -> float:
    """The place of one score, by the large margin mechanism; of public numbers that of the largest."""
    interp, span = at
    listed: list[Any] = [utilities] if isinstance(utilities, Scores) else items(utilities)
    if listed and all(is_number(u) for u in listed):
        return float(listed.index(max(listed)))
    if not all(isinstance(u, Score) for u in listed):
        raise refuse("TypeError", "utilities are all public numbers or all scores")
    with amount_for(interp, listed, span, epsilon, delta) as amount:
        return float(interp.kernel.measure(MarginMax.of(listed, amount), span).place)


def _public(utilities: list[float], count: int) -> Ranking:
    """Of public numbers, exactly and for nothing."""
    if not 1 <= count <= len(utilities):
        raise refuse("ValueError", f"of {len(utilities)} numbers the largest {count} were asked")
    order = sorted(range(len(utilities)), key=lambda i: -utilities[i])
    leads = [utilities[a] - utilities[b] for a, b in pairwise(order)]
    return Ranking(order[:count], leads[:count], 0.0)


class OpenWatch:
    """What a program holds of a watch; without a `watch`, of public data, it compares exactly."""

    jostle_kind = "a watch for a threshold"

    def __init__(self, watch: Watch | None, threshold: float, most: int, tells: str) -> None:
        self.watch, self.threshold, self.most, self.tells = watch, threshold, most, tells
        self._publicly_left = most

    @property
    def left(self) -> int:
        return self._publicly_left if self.watch is None else self.watch.left

    @property
    def jostle_fields(self) -> dict[str, Any]:
        """`left`: answers above that it still gives; `within`: how far from the threshold 95 % of answers are right."""
        return {
            "threshold": self.threshold, "most": float(self.most), "left": float(self.left), "tells": self.tells,
            "within": 0.0 if self.watch is None else self.watch.law.half_width(),
        }  # fmt: skip

    def as_json(self) -> Any:
        return self.jostle_fields

    def __str__(self) -> str:
        return f"a watch for {self.threshold:g}, {self.left} of {self.most} answers above left"

    def publicly(self, number: float) -> Any:
        """The answer on a public number."""
        if self.watch is not None:
            raise refuse("TypeError", "a public number needs no watch", help=f"compare it: `x >= {self.threshold:g}`")
        if not self.left:
            raise used_up(self.most)
        if number < self.threshold:
            return False if self.tells == "answer" else None
        self._publicly_left -= 1
        return {"answer": True, "gap": number - self.threshold, "number": number}[self.tells]


@builtin
def _above_threshold(
    value: Any, threshold: Any, most: Any = 1.0, *, tells: Any = "answer", epsilon: Any = None, at: Any
) -> OpenWatch:
    """A watch that is asked scores like `value`, or counts of its rows, until `most` of them were above `threshold`."""
    interp, span = at
    for handle in handles_in([threshold, most, tells]):
        raise private_value(handle, "cannot say what to watch for")
    if not is_number(threshold) or not is_number(most) or not isinstance(tells, str):
        raise refuse("TypeError", "a watch takes a threshold and `most`, numbers, and what it `tells`, a text")
    check_watch(threshold, most, tells)
    score = _score(interp, value, span)
    facts = (float(threshold), int(most), tells)
    with amount_for(interp, [score] if isinstance(score, Score) else (), span, epsilon) as amount:
        opening = Opening.of(score, *facts, amount) if isinstance(score, Score) else None
        return OpenWatch(None if opening is None else interp.kernel.measure(opening, span), *facts)


@builtin
def _above(value: Any, watch: Any, *, at: Any) -> Any:
    """Whether a score, or the number of rows, is above the watch's threshold: paid for when it was opened."""
    interp, span = at
    if not isinstance(watch, OpenWatch):
        help = "`watch = above_threshold(people, 500)`"
        raise refuse("TypeError", f"`above` asks a watch, not {kind_name(watch)}", help=help)
    score = _score(interp, value, span)
    if not isinstance(score, Score):
        return watch.publicly(score)
    if watch.watch is None:
        raise refuse("TypeError", "this watch was opened for public data, and pays for nothing private")
    answer = interp.kernel.measure(Question.of(watch.watch, score), span)
    number = watch.watch.tells == "number" and answer is not None
    return Noised(float(answer), watch.watch.number_law) if number else answer


def _score(interp: Evaluator, value: Any, span: Any) -> Score | float:
    """A private score, that of counting rows among them; or a public number."""
    score = size(value) if isinstance(value, (Table, Cube, Vectors)) else value
    if isinstance(score, Score):
        return score if score.private else cast("float", interp.kernel.measure(NoisyScore.of(score, None, None), span))
    if not is_number(score):
        help = "`size(where(people, …))`"
        raise refuse("TypeError", f"a watch is asked a score or a table, not {kind_name(score)}", help=help)
    return float(score)
