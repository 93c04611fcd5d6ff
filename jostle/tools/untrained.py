"""A choice in the walk before a run: its parts are called with what they would be given, and nothing is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NoReturn

from jostle.choice.point import Whole, clauses_of, need_allotment, need_clauses
from jostle.choice.table import fields_read, number_from, only_record, score_from
from jostle.diagnostics import Refusal
from jostle.run.evaluator import Evaluator
from jostle.run.faults import exposures_of
from jostle.run.interpreter import Interpreter
from jostle.run.scope import Scope
from jostle.run.values import Function, Part, is_vector
from jostle.source import Span
from jostle.syntax import nodes as n
from jostle.tools import likes
from jostle.tools.likes import EVERYWHERE, NotKnown, Unknown

SURE = EVERYWHERE | {"ValueError"}
"""Kinds of refusals that are reported where all parts are sure to run, as they are in training."""


def declared_choice(interp: Interpreter, node: n.Choice, scope: Scope) -> Untrained:
    """A choice of which the clauses are looked at, and what its parts give of the first of its training data."""
    values = {}
    for word, expr in clauses_of(node).items():
        if expr is not None:
            with suppress(Unknown):
                values[word] = interp.eval(expr, scope)
    choice = Untrained(*need_clauses(values, node), values, node.way)
    if choice.databases and not isinstance(choice.databases[0], NotKnown) and node.way == n.FEATURES:
        with interp.kernel.allot(None, None):
            choice.look(interp, choice.databases[0], node.span, number_from, SURE)
    return choice


class Untrained(likes.SomeChoice):
    """A choice that has learned nothing: of what it gives only the kind is known, which is that of any Option."""

    def __init__(
        self, options: Sequence[object], features: Sequence[object], databases: Sequence[object],
        clauses: Mapping[str, object], way: str,
    ) -> None:  # fmt: skip
        self.options, self.features, self.databases, self.way = options, features, databases, way
        self.utility, self.inside = clauses.get("wrt"), isinstance(clauses.get("trained on"), Whole)

    @property
    def jostle_fields(self) -> dict[str, object]:
        own = {} if self.inside else super().jostle_fields
        return own | {"options": _names(self.options), "features": _names(self.features)}

    def jostle_call(
        self, interp: Evaluator, args: Sequence[object], keywords: dict[str, object], span: Span | None
    ) -> NoReturn:
        need_allotment(interp, exposures_of([*args, *keywords.values()]), self.name)
        data = only_record([*args, *keywords.values()], fields_read([*self.options, *self.features]), self.databases)
        all_run = self.way != n.FEATURES
        like = self.look(interp, data, span, score_from if all_run else None, SURE if all_run else EVERYWHERE)
        raise Unknown(like=None if like is None else likes.kind_alone(like))

    def look(
        self, interp: Evaluator, data: object, span: Span | None, judged: Callable[[object, str], object] | None,
        sure: frozenset[str],
    ) -> object:  # fmt: skip
        """What the first Option gives of these data. Refuses what is no answer, no feature or no utility; `judged`
        refuses what the Utility gives."""
        given = partial(_given, interp, sure, span)
        answers = [given(option, data) for option in self.options]
        for feature in self.features:
            _need(number_from, feature, given(feature, data), f"the Feature `{_name(feature)}`")
        if judged is not None and self.utility is not None and answers:
            utility = self.utility.run if isinstance(self.utility, Part) else self.utility
            way = "the Utility" if self.way == n.FEATURES else self.way
            _need(judged, self.utility, given(utility, data, answers[0]), way)
        return likes.example(answers[0]) if answers else None


def _given(interp: Evaluator, sure: frozenset[str], span: Span | None, part: object, *data: object) -> object:
    """What a part of a choice gives, as far as it is known."""
    try:
        return interp.call(part, data, {}, span)
    except Refusal as refusal:
        if refusal.first.kind in sure:
            raise
    except Unknown as unknown:
        return unknown.value
    return NotKnown()


def _need(judged: Callable[[object, str], object], part: object, value: object, what: str) -> None:
    """Refuses a value of the wrong kind where a part of a choice gives it."""
    like = likes.example(value)
    if like is not None:
        run = part.run if isinstance(part, Part) else part
        ends = run.body.body[-1:] if isinstance(run, Function) and isinstance(run.body, n.Block) else ()
        try:
            judged(list(like) if is_vector(like) else like, what)
        except Refusal as refusal:
            raise refusal.at(ends[0].span if ends else None) from None


def _name(part: object) -> str:
    return str(getattr(part, "name", ""))


def _names(parts: Sequence[object]) -> list[object]:
    return [_name(part) for part in parts]
