"""A relational plan, and what is asked of it, in words: a line a step, from the answer down to the sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, assert_never

from jostle.plan.plan import (
    Bound,
    Column,
    Count,
    Derive,
    Extreme,
    Filter,
    GroupRows,
    GroupTerm,
    Join,
    Key,
    Known,
    Listed,
    Plan,
    Scan,
    Truncate,
    Union,
)  # fmt: skip
from jostle.plan.texts import constant, expression
from jostle.tools.datacheck import domain_text

if TYPE_CHECKING:
    from jostle.backends.questions import Question

_FEW = 3  # listed values that are written out
_CUT = 160  # characters of a line


def steps(plan: Plan, names: Mapping[str, str], depth: int = 0) -> list[str]:
    """The lines of a plan; `names` has what its data sets are called."""
    line, sources = _step(plan, names)
    told = [f"{'  ' * depth}{_cut(line)}"]
    for source in sources:
        told += steps(source, names, depth + 1)
    return told


def key_text(key: Key) -> str:
    """A group key with its public values."""
    if isinstance(key.values, range):
        return f"{expression(key.expr)} from {key.values[0]} to {key.values[-1]}" if key.values else "no key"
    shown = ", ".join(map(constant, key.values[:_FEW]))
    more = f", … {len(key.values)} in all" if len(key.values) > _FEW else ""
    return f"{expression(key.expr)} of {{{shown}{more}}}"


def term_text(term: GroupTerm) -> str:
    """What is summed up of a group."""
    if isinstance(term, Extreme):
        return f"the {'largest' if term.largest else 'smallest'} {expression(term.expr)}"
    weights = ", by weights" if term.weighted else ""
    if isinstance(term, Count):
        what = "rows" if term.expr is None else expression(term.expr)
        return f"number of {'different ' if term.distinct else ''}{what}{weights}"
    square = "squares of " if term.square else ""
    steps = f"steps of 2^-{term.bits}" if term.bits else "whole steps"
    bounds = f"clamped to {constant(term.low)}..{constant(term.high)}, in {steps}"
    return f"sum of {square}{expression(term.expr)} {bounds}{weights}"


def question_text(question: Question) -> str:
    """What is asked of the rows of a plan."""
    if question.terms:
        by = f" by {', '.join(map(key_text, question.keys))}" if question.keys else ""
        return _cut(f"{'; '.join(map(term_text, question.terms))}{by}")
    values = ", ".join(map(expression, question.exprs))
    if not question.tallied:
        return _cut(f"{values} of every row")
    return _cut(f"number of rows of each value of {values}")


def _step(plan: Plan, names: Mapping[str, str]) -> tuple[str, tuple[Plan, ...]]:
    """The line of one step, and what it is made of."""
    match plan:
        case Scan():
            cleaned = ", ".join(f"{name}: {domain_text(domain)}" for name, domain in plan.columns)
            return f"rows of {names.get(plan.data, 'a public table')}, cleaned to {{{cleaned}}}", ()
        case Bound():
            return _persons(plan, names), (plan.scan,)
        case Filter():
            return f"where {expression(plan.condition)}", (plan.source,)
        case Derive():
            columns = (name if expr == Column(name) else f"{name} = {expression(expr)}" for name, expr in plan.columns)
            return f"columns {', '.join(columns)}", (plan.source,)
        case Join():
            on = [left if left == right else f"{left} = {right}" for left, right in plan.keys]
            on += ["person"] * plan.person
            most = f", at most {plan.most} rows of each side a key, by a hash" if plan.most is not None else ""
            return f"{plan.kind} join on {' and '.join(on)}{most}", (plan.left, plan.right)
        case Truncate():
            return _truncated(plan), (plan.source,)
        case GroupRows():
            by = ["person"] * plan.person + [f"{name} = {expression(expr)}" for name, expr in plan.keys]
            terms = [f"{name} = {term_text(term)}" for name, term in plan.terms]
            return f"a row for each {', '.join(by)}: {'; '.join(terms) or 'no columns'}", (plan.source,)
        case Union():
            return f"all rows of {len(plan.sources)} tables", plan.sources
        case Listed():
            return f"{len(plan.rows)} public rows", ()
        case Known():
            return _step(plan.source, names)
    assert_never(plan)


def _persons(plan: Bound, names: Mapping[str, str]) -> str:
    if plan.owners is None:
        told = f"told by {', '.join(plan.by)}"
    else:
        table = names.get(plan.owners.table.scan.data, "another table")
        told = f"who have {plan.owners.on} as {plan.owners.key} in {table}"
    most = "all rows" if plan.most is None else f"at most {plan.most} rows of each, by a hash of the row"
    return f"of persons {told}: {most}{', which weigh 1 together' if plan.weighted else ''}"


def _truncated(plan: Truncate) -> str:
    order = ", by a hash"
    if plan.order is not None:
        order = f", by {expression(plan.order)}{' desc' if plan.descending else ''}"
    amounts = [f"{plan.groups} groups of {', '.join(map(expression, plan.keys))}"] if plan.groups is not None else []
    if plan.rows is not None:
        each = f" in each of {', '.join(map(expression, plan.keys))}" if plan.keys else ""
        amounts.append(f"{plan.rows} rows{each}")
    return f"of each person at most {', and '.join(amounts) or 'all rows'}{order}"


def _cut(line: str) -> str:
    return line if len(line) <= _CUT else f"{line[: _CUT - 1].rstrip()}…"
