"""The clauses of a declaration, understood: the schema, the protected unit, the budget.

They are the same for a program that declares a source and for an owner who registers a dataset.
"""

from __future__ import annotations

import math
from typing import Any, cast

from msgspec import Struct

from jostle.accounting.amounts import Unit
from jostle.accounting.definitions import Measure
from jostle.diagnostics import refuse
from jostle.language.builtins import DOMAINS
from jostle.language.facts import DOMAINS_ARE, NO_FILLING
from jostle.language.forms import source_kind
from jostle.language.operations import LONGEST
from jostle.plan.plan import Categories, Domain, Integer, Open, Real, filling
from jostle.run import arguments
from jostle.run.evaluator import Evaluator
from jostle.run.scope import MISSING, Scope
from jostle.run.sequences import Period
from jostle.run.values import Interval, JSet, handles_in, is_number, is_sequence, kind_name
from jostle.source import Span
from jostle.syntax import nodes as n
from jostle.syntax.walk import every


class Clauses(Struct, frozen=True):
    """What follows a source in a declaration, understood. Counts have no schema, and linked tables no budget."""

    schema: tuple[tuple[str, Domain], ...]
    unit: Unit
    measure: Measure | None
    filled: tuple[str, ...] = ()  # the columns that are never missing
    forms: tuple[tuple[str, str], ...] = ()  # columns that are read by a format


def clauses(interp: Evaluator, node: n.Private, scope: Scope) -> Clauses:
    """What a declaration's clauses say, for an owner who registers a dataset with them."""
    if node.protecting is None or (node.budget is None and not node.protecting.linked):
        raise refuse("DataError", "a dataset needs `protecting` and `budget`", node.span)
    is_counts = source_kind(node.source) == "counts"
    measure = measure_of(interp, node.budget, scope) if node.budget is not None else None
    unit = unit_of(interp, node.protecting, scope)
    if is_counts != (node.described is None):
        raise refuse(
            "DataError", "tables are described, and counts are not", node.span, help="add --schema, or leave it"
        )
    if node.described is None:
        if unit.columns:
            raise refuse("DataError", "counts have no columns to protect", node.span, help="write `protecting rows`")
        return Clauses((), unit, measure)
    schema = described_schema(interp, node.described, scope)
    return Clauses(schema, unit, measure, never_missing(node.described, schema))


_WRITTEN_OUT = {n.RecordOf, n.SetOf, n.ListOf, n.Range, n.Unary, n.Number, n.String, n.Constant, n.Name}


def described_schema(interp: Evaluator, node: n.Expr, scope: Scope) -> tuple[tuple[str, Domain], ...]:
    """The schema that a description says; one that is written out keeps it."""
    memo = getattr(node, "__dict__", {})
    if "words" not in memo:
        names = {part.id for part in every(node) if isinstance(part, n.Name)}
        memo["words"] = names if _WRITTEN_OUT.issuperset(map(type, every(node))) and names <= DOMAINS else None
    if memo["words"] is None or not {MISSING}.issuperset(map(scope.variable, memo["words"])):
        memo = {}
    if "schema" not in memo:
        memo["schema"] = schema_of(interp.eval(node, scope), node.span)
    return cast("tuple[tuple[str, Domain], ...]", memo["schema"])


def never_missing(node: n.Expr | None, schema: tuple[tuple[str, Domain], ...]) -> tuple[str, ...]:
    """The columns that a description says are never missing. Refused where one has no value to put there."""
    filled = node.filled if isinstance(node, n.RecordOf) else ()
    for name, domain in schema:
        if name in filled and filling(domain) is None:
            raise refuse("DataError", NO_FILLING[0].format(name=name), node.span if node else None, help=NO_FILLING[1])
    return filled


def schema_of(value: object, span: Span | None) -> tuple[tuple[str, Domain], ...]:
    """The schema that a record of domains says."""
    if not isinstance(value, dict) or not value:
        raise refuse("DataError", "a description is a record of columns", span, help="`described by {age: 0..99}`")
    return tuple((name, _domain(name, wish, span)) for name, wish in value.items())


def _domain(name: str, wish: Any, span: Span | None) -> Domain:
    if isinstance(wish, Open):
        return wish
    if isinstance(wish, Period):
        domain = wish.domain()
        if domain.low > domain.high:
            raise refuse("DataError", f"`{name}` has no values: the earlier date comes first", span)
        return domain
    if isinstance(wish, Interval):
        if not (math.isfinite(wish.low) and math.isfinite(wish.high)) or wish.low > wish.high:
            help = f"the lower end comes first: `{name}: {wish.high:g}..{wish.low:g}`" if wish.low > wish.high else ""
            message = f"`{name}` has no values between {wish.low:g} and {wish.high:g}"
            raise refuse("DataError", message, span, help=help)
        return Real(wish.low, wish.high) if wish.real else Integer(int(wish.low), int(wish.high))
    listed = _list_domain(name, list(wish), span) if isinstance(wish, JSet) or is_sequence(wish) else None
    if listed is None:
        message = f"`{name}` needs a domain, and this is {kind_name(wish)}"
        raise refuse("DataError", message, span, help=DOMAINS_ARE)
    return listed


def _list_domain(name: str, values: list[Any], span: Span | None) -> Domain | None:
    """The domain of the values that a description lists; None where these are no texts, numbers or truths."""
    if any(isinstance(v, str) and len(v) > LONGEST for v in values):
        raise refuse("DataError", f"`{name}` lists a text of more than {LONGEST:,} characters", span,
                     help="leave it out: no cell is so long")  # fmt: skip
    if values and all(isinstance(v, str) for v in values):
        return Categories(tuple(values))
    if {*map(repr, values)} == {"True", "False"}:
        return Open("boolean")
    return Categories(tuple(float(v) for v in values)) if values and all(map(is_number, values)) else None


def measure_of(interp: Evaluator, budget: n.Budget, scope: Scope) -> Measure:
    node = budget.amount
    value = interp.eval(node.value, scope)
    delta = interp.eval(node.delta, scope) if node.delta is not None else None
    for handle in handles_in([value, delta]):
        raise arguments.private_amount(handle).at(node.value.span)
    limit = arguments.exact_amount(node, value, delta)
    if limit.delta >= 10**12:
        raise refuse("BadAmount", "delta must be less than 1", node.span, help="something like `delta 1e-6`")
    if budget.counted_by not in (None, "basic", "zcdp"):
        raise refuse(
            "NameError", f"budgets are not counted by `{budget.counted_by}`", budget.span, help="`basic` or `zcdp`"
        )
    if node.unit == "rho":
        return Measure("zcdp", limit)
    if not limit.delta:
        return Measure("pure", limit)
    return Measure("basic" if budget.counted_by == "basic" else "approximate", limit)


def unit_of(interp: Evaluator, node: n.Protecting, scope: Scope) -> Unit:
    rows = whole(interp, node.up_to, scope) if node.up_to is not None else None if node.columns else 1
    most = whole(interp, node.at_most, scope) if node.at_most is not None else None
    linked = f"{node.linked}.{node.key}" if node.linked else ""
    return Unit(node.columns, rows, node.public_size, most, node.weighted, linked, node.groups)


def whole(interp: Evaluator, node: n.Expr, scope: Scope) -> int:
    """How many rows or groups an expression says, at least one."""
    value = interp.eval(node, scope)
    if not is_number(value) or not 1 <= value < math.inf or value != int(value):
        raise refuse("ValueError", "a number of rows or groups is whole, and at least 1", node.span)
    return int(value)
