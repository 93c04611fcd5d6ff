"""What a person is told who declares data again with another budget: the first one stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.diagnostics import Diagnostic
from jostle.syntax import nodes as n

if TYPE_CHECKING:
    from jostle.run.interpreter import Interpreter
    from jostle.run.scope import Scope

KIND = "first-budget"
"""The kind of this hint, which stops nothing."""


def first_budget(interp: Interpreter, statement: n.Private, scope: Scope) -> list[Diagnostic]:
    """The hint for a declaration, just carried out, that asks for another budget than its data have."""
    from jostle.run.clauses import measure_of

    source = interp.kernel.register.names[statement.name]
    if statement.budget is None or source.span is statement.span:
        return []
    limit, asked = source.measure.limit, measure_of(interp, statement.budget, scope).limit
    if asked == limit:
        return []
    return [Diagnostic(
        KIND, f"these data were declared before, with a budget of {limit}: it stands, and {asked} is not added",
        statement.budget.span, help="a file has one budget in a session; a new session begins with a new one",
    )]  # fmt: skip
