"""An engine that notes what it is asked, so that a rehearsal can say which questions a program asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from jostle.engine.base import Capabilities
from jostle.plan.plan import Key, Plan, RowExpr, Term
from jostle.readers.duckdb import LocalDuckDb

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Question(Struct, frozen=True):
    """What was asked of the rows of a plan: groups by `keys` with `terms`, or where neither is there the values of
    `exprs`: row by row, or with `tallied` the different ones and how many rows have each."""

    plan: Plan
    keys: tuple[Key, ...] = ()
    terms: tuple[Term, ...] = ()
    exprs: tuple[RowExpr, ...] = ()
    tallied: bool = False


class QuestionLog(LocalDuckDb):
    """Rows have no numbers, so that nothing is counted from columns that are kept: each count is a question here."""

    capabilities = Capabilities()

    def __init__(self) -> None:
        super().__init__()
        self.questions: list[Question] = []

    def group(self, plan: Plan, keys: tuple[Key, ...], terms: tuple[Term, ...]) -> list[NDArray[Any]]:
        self.questions.append(Question(plan, keys, terms))
        return super().group(plan, keys, terms)

    def vectors(self, plan: Plan, exprs: tuple[RowExpr, ...], size: int) -> Iterator[NDArray[Any]]:
        self.questions.append(Question(plan, exprs=exprs))
        return super().vectors(plan, exprs, size)

    def tally(self, plan: Plan, expr: RowExpr) -> tuple[NDArray[Any], NDArray[Any]]:
        self.questions.append(Question(plan, exprs=(expr,), tallied=True))
        return super().tally(plan, expr)

    def tuples(self, plan: Plan, exprs: tuple[RowExpr, ...]) -> tuple[list[tuple[Any, ...]], NDArray[Any]]:
        self.questions.append(Question(plan, exprs=exprs, tallied=True))
        return super().tuples(plan, exprs)
