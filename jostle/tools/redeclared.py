"""What a person is told who declares a file again with another budget: the first one stands."""

from __future__ import annotations

from jostle.accounting.amounts import Amount
from jostle.diagnostics import Diagnostic
from jostle.privacy.kernel.sources import Source
from jostle.syntax import nodes as n

KIND = "FirstBudget"
"""The kind of this hint, which stops nothing."""


def hint(statement: n.Private, source: Source, asked: Amount) -> Diagnostic | None:
    """The hint for a declaration that asks for another budget than its source has; None for one that is as before."""
    limit = source.measure.limit
    if source.span is statement.span or asked == limit or statement.budget is None:
        return None
    return Diagnostic(
        KIND, f"the budget of these data is {limit}, as they were declared first, and not {asked}",
        statement.budget.span,
        help="a file has one budget in a session, which a second declaration does not change: begin a new session",
    )  # fmt: skip
