"""The clauses of a declaration: the schema, the protected unit, and the budget.

They are the same in a program that declares a source and for an owner who registers a dataset.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from msgspec import Struct

from jostle.accounting.amounts import Unit
from jostle.accounting.definitions import Measure
from jostle.diagnostics import Refusal, refuse
from jostle.language.builtins import DOMAINS, REMOTE
from jostle.language.facts import DOMAINS_ARE, NO_FILLING
from jostle.language.forms import source_kind
from jostle.language.moments import DAYS, PERIOD, days_in
from jostle.language.operations import LONGEST
from jostle.plan.facts import divides
from jostle.plan.facts import unit_of as unit_of_moments
from jostle.plan.kinds import kind_of
from jostle.plan.plan import Categories, Column, Domain, Integer, Open, Real, filling
from jostle.run import arguments
from jostle.run.evaluator import Evaluator
from jostle.run.scope import MISSING, Scope
from jostle.run.sequences import Period
from jostle.run.values import Interval, JSet, handles_in, is_number, is_sequence, kind_name
from jostle.source import Span
from jostle.syntax import nodes as n
from jostle.syntax.walk import every

MOST_DAYS = 3_660


class Clauses(Struct, frozen=True):
    """The evaluated clauses of a declaration. Counts have no schema, and linked tables no budget."""

    schema: tuple[tuple[str, Domain], ...]
    unit: Unit
    measure: Measure | None
    filled: tuple[str, ...] = ()  # columns that are never missing
    forms: tuple[tuple[str, str], ...] = ()  # columns with a format
    each: str = ""  # the column, or its periods, for each value of which there is a budget


def clauses(interp: Evaluator, node: n.Private, scope: Scope) -> Clauses:
    """The clauses of a declaration, for an owner who registers a dataset."""
    if (source_kind(node.source) == "counts") != (node.described is None):
        raise refuse(
            "DataError", "tables are described, and counts are not", node.span, help="add --schema, or leave it"
        )
    need_clauses(node, source_kind(node.source))
    if node.protecting is None:
        raise lacking(node, ["protecting"])
    measure = measure_of(interp, node.budget, scope) if node.budget is not None else None
    unit = unit_of(interp, node.protecting, scope, node.budget)
    if node.described is None:
        return Clauses((), unit, measure)
    schema = described_schema(interp, node.described, scope)
    need_parts(node.budget, dict(schema), unit)
    each = node.budget.each if node.budget is not None else ""
    return Clauses(schema, unit, measure, never_missing(node.described, schema), each=each)


_WRITTEN_OUT = {n.RecordOf, n.SetOf, n.ListOf, n.Range, n.Unary, n.Number, n.String, n.Constant, n.Name}


_EXAMPLES = {
    "described by": "described by {age: 0..99}", "protecting": "protecting rows", "budget": "budget epsilon 1",
}  # fmt: skip


def lacking(node: n.Private, clauses: Sequence[str]) -> Refusal:
    """The refusal of a declaration that lacks these clauses."""
    message = f"the private source `{node.name}` has no " + " and no ".join(f"`{clause}`" for clause in clauses)
    help = "add " + ", ".join(f"`{_EXAMPLES[clause]}`" for clause in clauses)
    help += "; a list that anybody may see is declared without `private`" if len(clauses) > 1 else ""
    return refuse("DataError", message, node.span, help=help)


def need_clauses(node: n.Private, kind: str) -> None:
    """Refuses a declaration without the clauses of its kind of source. Linked tables have the budget of another table,
    and the clauses of datasets come from their owner."""
    there = {"described by": node.described, "protecting": node.protecting, "budget": node.budget}
    if kind == "dataset":
        if spans := {what: clause.span for what, clause in there.items() if clause is not None}:
            clauses, verb = ", ".join(f"`{what}`" for what in spans), "says" if len(spans) == 1 else "say"
            message = f"a dataset is registered, and its owner has said what {clauses} {verb}"
            help = f"leave the clauses out: `private {node.name} = {node.source.span.text}`"
            raise refuse("DataError", message, next(iter(spans.values())), help=help)
        return
    if kind not in ("table", *REMOTE):
        del there["described by"]
    if node.protecting is not None and node.protecting.linked:
        if node.budget is not None:
            message = f"`{node.name}` has the budget of `{node.protecting.linked}`, whose persons it is of"
            raise refuse("DataError", message, node.budget.span, help="leave the `budget` clause out")
        del there["budget"]
    if missing := [clause for clause, part in there.items() if part is None]:
        raise lacking(node, missing)
    if kind == "counts" and node.protecting is not None and node.protecting.columns:
        raise refuse("DataError", "counts have no columns to protect", node.protecting.span,
                     help="write `protecting rows`")  # fmt: skip


def domains_in(interp: Evaluator, node: n.Expr, scope: Scope) -> object:
    """The value of a description whose columns are written as domains, each once."""
    names: set[str] = set()
    for name, domain in node.items if isinstance(node, n.RecordOf) else ():
        if name in names:
            help = "leave one of them out: a column has one domain"
            raise refuse("DataError", f"`{name}` is described twice", domain.span, label="again", help=help)
        names.add(name)
        what, help = _no_domain(name, domain)
        if help:
            message = f"`{name}` {what or 'needs a domain, and this is a number'}"
            raise refuse("DataError", message, domain.span, label="no domain", help=help)
    return interp.eval(node, scope)


def _no_domain(name: str, node: n.Expr) -> tuple[str, str]:
    """The error in a domain that is written otherwise, and the help; empty if its value decides."""
    match node:
        case n.Binary(op="-", left=n.Number() as low, right=n.Number() as high):
            return "", f"a range has two dots: `{name}: {low.value:g}..{high.value:g}`"
        case n.String(value=form) if "%" in form:
            help = f'a format is of a date or a time: write `{name}: date("{form}")`'
            return "needs a domain, and this is a text", help
        case n.ListOf(items=(n.Range(low=n.Number(value=low), high=n.Number(value=high)),)):
            return "needs a domain, and this is a list with one", f"a range stands alone: `{name}: {low:g}..{high:g}`"
        case n.Call(function=n.Name(id="integer" | "real"), args=(n.Number(value=low), n.Number(value=high))):
            help = f"a range says that its numbers are whole, or real: `{name}: {low:g}..{high:g}`"
            return "needs a domain, and this is a call", help
        case n.ListOf(items=(n.Number(value=low), n.Number(value=high))) if high > low + 1:
            help = f"write `{name}: {low:g}..{high:g}` for the range, `{{{low:g}, {high:g}}}` for the two"
            return f"is described by two numbers alone, {low:g} and {high:g}", help
    return "", ""


def described_schema(interp: Evaluator, node: n.Expr, scope: Scope) -> tuple[tuple[str, Domain], ...]:
    """The schema of a description, cached if it is a literal."""
    memo = getattr(node, "__dict__", {})
    if "words" not in memo:
        names = {part.id for part in every(node) if isinstance(part, n.Name)}
        memo["words"] = names if _WRITTEN_OUT.issuperset(map(type, every(node))) and names <= DOMAINS else None
    if memo["words"] is None or not {MISSING}.issuperset(map(scope.variable, memo["words"])):
        memo = {}
    if "schema" not in memo:
        memo["schema"] = schema_of(domains_in(interp, node, scope), node.span, node)
    return cast("tuple[tuple[str, Domain], ...]", memo["schema"])


def never_missing(node: n.Expr | None, schema: tuple[tuple[str, Domain], ...]) -> tuple[str, ...]:
    """The columns that a description declares never missing. Refused if one has no public value for missing cells."""
    filled = node.filled if isinstance(node, n.RecordOf) else ()
    for name, domain in schema:
        if name in filled and filling(domain) is None:
            span = _places(node).get(name, node.span if node else None)
            raise refuse("DataError", NO_FILLING[0].format(name=name), span, label="no domain", help=NO_FILLING[1])
    return filled


def _places(described: n.Expr | None) -> dict[str, Span]:
    return {name: item.span for name, item in described.items} if isinstance(described, n.RecordOf) else {}


def schema_of(value: object, span: Span | None, described: n.Expr | None = None) -> tuple[tuple[str, Domain], ...]:
    """The schema of a record of domains, which is `described` in a program."""
    if not isinstance(value, dict) or not value:
        raise refuse("DataError", "a description is a record of columns", span, help="`described by {age: 0..99}`")
    places = _places(described)
    return tuple((name, _domain(name, wish, places.get(name, span))) for name, wish in value.items())


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
            raise refuse("DataError", message, span, label="no domain", help=help)
        return Real(wish.low, wish.high) if wish.real else Integer(int(wish.low), int(wish.high))
    listed = _list_domain(name, list(wish), span) if isinstance(wish, JSet) or is_sequence(wish) else None
    if listed is None:
        message = f"`{name}` needs a domain, and this is {kind_name(wish)}"
        raise refuse("DataError", message, span, label="no domain", help=DOMAINS_ARE)
    return listed


def _list_domain(name: str, values: list[Any], span: Span | None) -> Domain | None:
    """The domain of listed values; None if they are not texts, numbers or booleans."""
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
        raise refuse("NameError", f"budgets are not counted by `{budget.counted_by}`", budget.span,
                     help="`basic` or `zcdp`")  # fmt: skip
    for_ever = budget.for_ever
    most = arguments.exact_amount(for_ever, interp.eval(for_ever.value, scope), None) if for_ever is not None else None
    if most is not None and (limit.delta or most.unit != limit.unit or for_ever is None or for_ever.delta is not None):
        raise refuse("TypeError", "an amount for ever is in the unit of the other, and has no delta", budget.span,
                     help="as in `budget rho 1 each week of day, rho 20 for ever`")  # fmt: skip
    if not limit.delta:
        kind = "zcdp" if node.unit == "rho" else "pure"
        return Measure(kind, limit, most.value if most is not None else 0)
    return Measure("basic" if budget.counted_by == "basic" else "approximate", limit)


def unit_of(interp: Evaluator, node: n.Protecting, scope: Scope, budget: n.Budget | None = None) -> Unit:
    rows = whole(interp, node.up_to, scope) if node.up_to is not None else None if node.columns else 1
    most = whole(interp, node.at_most, scope) if node.at_most is not None else None
    linked = f"{node.linked}.{node.key}" if node.linked else ""
    each = budget.each if budget is not None and " of " in budget.each else ""
    return Unit(node.columns, rows, node.public_size, most, node.weighted, linked, node.groups, each)


def need_parts(budget: n.Budget | None, schema: dict[str, Domain], unit: Unit) -> None:
    """Refuses a budget for each period or value of a column that does not separate the protected units."""
    if budget is None or not budget.each:
        return
    each, span = budget.each, budget.span
    period, _, column = each.partition(" of ")
    if not unit.each:
        if not isinstance(schema.get(each), Integer | Categories):
            help = f"describe it: `{{{each}: 1..52}}`; of a column of dates write `each {each} of day`"
            raise refuse("DataError", f"`{each}` has no listed values", span, help=help)
        if unit.columns and each not in unit.columns:
            raise refuse(
                "DataError", f"a person may have rows of several `{each}`, whose budgets would add up", span,
                help=f"protect what a person does in one: `{', '.join([*unit.columns, each])} up to 3 rows`",
            )  # fmt: skip
    elif period not in DAYS and not 1 <= days_in(period) <= MOST_DAYS:
        help = f"{', '.join(DAYS)}, or `7 days`: up to {MOST_DAYS:,}"
        raise refuse("DataError", f"there is no period `{period}`", span, help=help)
    elif column not in schema:
        raise refuse("DataError", f"`{column}` is not described", span, help=f"describe it: `{{{column}: date}}`")
    elif PERIOD in schema:
        raise refuse("DataError", f"`{PERIOD}` is the first day of a row's period, and is described", span,
                     help="leave it out of the description")  # fmt: skip
    elif kind_of(Column(column), schema) not in ("date", "time"):
        raise refuse("DataError", "periods are of a column of dates or times", span,
                     help=f"describe it: `{{{column}: date}}`")  # fmt: skip
    elif unit.public_size:
        raise refuse("DataError", "a row that takes another's place may be in another period", span,
                     help="protect `rows`")  # fmt: skip
    else:
        need_whole_periods(schema, unit, span)
    if budget.for_ever is not None and not (unit.each and unit.columns and column not in unit.columns):
        raise refuse("DataError", "an amount for ever is of persons, each with rows in many periods", span,
                     help="`protecting user up to 3 rows budget rho 1 each week of day, rho 20 for ever`")  # fmt: skip


def need_whole_periods(schema: dict[str, Domain], unit: Unit, span: Span) -> None:
    """Refuses a column with units that do not match the periods: rows are in the period of their unit's first day, so
    that a person's rows of one week could be in two periods."""
    period, _, column = unit.each.partition(" of ")
    own = unit_of_moments(Column(column), schema) if unit.columns and column in {*schema} - {*unit.columns} else ""
    if own and not (divides(period, own) or divides(own, period)):
        message = f"`{column}` is by {own}: what a person does in one {period} may count in two of them"
        raise refuse("DataError", message, span, help=f"describe `{column}` by day, or give each {own} a budget")


def whole(interp: Evaluator, node: n.Expr, scope: Scope) -> int:
    """The number of rows or groups in a clause, at least one."""
    value = interp.eval(node, scope)
    if not is_number(value) or not 1 <= value < math.inf or value != int(value):
        raise refuse("ValueError", "a number of rows or groups is whole, and at least 1", node.span)
    return int(value)
