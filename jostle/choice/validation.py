"""Choices by validation and by margin: every Option runs with an equal part of the amount, and a score picks answers.

The Utility gives, of the data and of answers, a score: a private number whose sensitivity the kernel knows. All that
happens is measurements through the one door, each paid for: those of every Option, and one selection among the scores.
So a call loses at most its amount, by adding up (docs/privacy/selection.md); nothing hangs on answers being hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from jostle.accounting.amounts import Amount
from jostle.choice.bench import ChoiceParts, number_from, public_answers
from jostle.diagnostics import Refusal, refuse
from jostle.formulas import error_text
from jostle.privacy.kernel.exposures import join_exposures
from jostle.privacy.measurements.choices import LargestScores, MarginMax
from jostle.privacy.mechanisms.selection import COUNTED_IN_ZCDP
from jostle.privacy.scores.rule import Score, Scores
from jostle.run.evaluator import Evaluator
from jostle.run.faults import exposures_of
from jostle.run.values import Part, kind_name
from jostle.source import Span
from jostle.syntax.nodes import MARGIN


class Validated(Struct, frozen=True):
    """The Option whose answers a score picked, and what is reported of it; `share` of the amount went to the
    selection."""

    index: int
    answers: Any
    share: float
    why: str


def validated(
    interp: Evaluator, parts: ChoiceParts, way: str, share: float | None, data: object, span: Span | None
) -> Validated:
    """Runs every Option of `parts` on `data`, and picks by the score that the Utility gives of its answers.

    Each Option has an equal part of what is left of the allotment, but for `share` of it, an equal part too where it is
    None; the selection has what they leave. On public data everything is exact and free. Raises `TypeError` where the
    Utility gives no score, `BudgetExceeded`, and what the program's own parts raise.
    """
    exposures = exposures_of([data])
    many = len(parts.options)
    if share is None:
        share = 1 / (many + 1)
    if many == 1:
        share = 0.0
    whole = interp.kernel.bare_amount(exposures)
    if way == MARGIN and whole is not None and not whole.delta and many > 1:
        help = (
            "call it `with epsilon 1 delta 1e-6`, on a source with `budget epsilon e, delta d`; or choose by validation"
        )
        raise refuse("BadAmount", "a choice by margin needs a delta", help=help)
    parts_of_delta = many + (way == MARGIN)
    each = None
    if whole is not None:
        each = Amount(whole.unit, int(whole.value * (1 - share)) // many, whole.delta // parts_of_delta)
    answers, values = [], []
    for option, name in zip(parts.options, parts.option_names, strict=True):
        with interp.kernel.allot(each, span, exposures):
            answers.append(public_answers(interp, option, name, data, span))
        if many > 1:
            values.append(_score(interp, parts.utility, data, answers[-1], bool(exposures), way))
    if many == 1:
        return Validated(0, answers[0], share, "there is only one option")
    index, why = _best(interp, values, way, span) if exposures else _best_publicly(values)
    return Validated(index, answers[index], share, why)


def scores(interp: Evaluator, parts: ChoiceParts, data: object) -> bool:
    """Whether the Utility gives a score of what the first Option answers on these data, which are private."""
    answers = interp.call(parts.options[0], [data])
    try:
        _score(interp, parts.utility, data, answers, True, "")
    except Refusal:
        return False
    return True


def _score(interp: Evaluator, utility: object, data: object, answers: object, private: bool, way: str) -> Any:
    """The score that the Utility gives: a private one of private data, else a number."""
    function = utility.run if isinstance(utility, Part) else utility  # a Utility itself takes public data alone
    with interp.kernel.allot(None, None):
        value = interp.call(function, [data, answers])
    if not private:
        return number_from(value, "the Utility")
    if not isinstance(value, Score) or isinstance(value, Scores) or not value.private:
        raise refuse(
            "TypeError", f"by {way} the Utility gives a score of the private data, and this gives {kind_name(value)}",
            help="such as `closeness(data.database, data.queries, answers)` or `correct_count(data.rows, answers, c)`",
        )  # fmt: skip
    return value


def _best_publicly(utilities: list[float]) -> tuple[int, str]:
    return utilities.index(max(utilities)), "its utility is the largest"


def _best(interp: Evaluator, scores: Sequence[Score], way: str, span: Span | None) -> tuple[int, str]:
    """The place of the (nearly) largest score, for what is left; its lead is reported where that costs nothing more."""
    measured = join_exposures([score.exposures for score in scores], [1] * len(scores))
    amount = interp.kernel.bare_amount(measured)
    if way == MARGIN:
        picked = interp.kernel.measure(MarginMax.of(scores, amount), span)
        return picked.place, _clear(picked.among, len(scores))
    leads = any(e.source.measure.kind not in COUNTED_IN_ZCDP for e in measured)
    ranking = interp.kernel.measure(LargestScores.of(scores, 1, leads, amount), span)
    why = "its noisy score is the largest"
    if ranking.leads:
        lead = ranking.leads[0]
        why += f", {lead:.4g} ± {error_text(lead, ranking.within)} more than the next one's"
    return ranking.places[0], why


def _clear(among: int, many: int) -> str:
    if among == many:
        return "none stands clear of the others, and its noisy score is the largest"
    return "no other score is near" if among == 1 else f"it is one of {among} that stand clear of the others"
