"""Cuts: rows and values that an answer leaves out, a function of the plan alone and so public; row expressions as text.

Noise is the difference to the exact answer on the rows and values that are read. If a bound drops rows, or the program
clamps values, that is not the answer for all data. Each such cut is described here by a noun phrase, which marks the
error of the number (`formulas.Noised`). Clamping by a description is not a cut, since it defines the column.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import assert_never

from jostle.diagnostics import Refusal
from jostle.language.operations import COMPARISONS
from jostle.plan import plan as p
from jostle.plan.facts import bounds_of, key_values, schema_of
from jostle.plan.schemas import MOST_KEYS

BEYOND = "rows of a person beyond "
"""The beginning of the phrase for rows that a bound drops."""

_BETWEEN = frozenset({"+", "-", "*", "/", "%", "^", "==", "!=", "<", "<=", ">", ">=", "and", "or"})


def expression(expr: p.RowExpr, inside: bool = False) -> str:
    """A row expression as program text; with `inside`, in parentheses if it needs them."""
    match expr:
        case p.Column(name=name):
            return name if name.isascii() and name.isidentifier() else f"`{name}`"
        case p.Constant():
            return constant(expr.value)
        case p.Apply(op=op, args=(left, right)) if op in _BETWEEN:
            text = f"{expression(left, True)} {op} {expression(right, True)}"
        case p.Apply(op="in", args=(value, *others)):
            text = f"{expression(value, True)} in [{', '.join(map(expression, others))}]"
        case p.Apply(op="if", args=(test, then, other)):
            text = f"{expression(then, True)} if {expression(test, True)} else {expression(other, True)}"
        case p.Apply(op="not", args=(value,)):
            text = f"not {expression(value, True)}"
        case p.Apply(op="neg", args=(value,)):
            return f"-{expression(value, True)}"
        case p.Apply(op=op, args=args):
            if op.endswith(" of text") and isinstance(args[0], p.Apply) and args[0].op.endswith(" by format"):
                args = args[0].args
            return f"{op.partition(' ')[0]}({', '.join(map(expression, args))})"
        case _:
            assert_never(expr)
    return f"({text})" if inside else text


def constant(value: float | str | bool | date | None) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime | date):
        return value.isoformat()
    return '"' + value.replace('"', '\\"') + '"' if isinstance(value, str) else _number(value)


def _number(value: float) -> str:
    """A number in full, without a point for integers."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))


_CLAMPS = frozenset({"clamp", "clamp date", "clamp time"})
_TESTS = COMPARISONS | {"in", "and", "or", "not", "missing"}


def cuts(plan: p.Plan, values: Sequence[p.RowExpr] = (), stated: bool = False) -> tuple[str, ...]:
    """The distinct cuts of an answer that is computed from these expressions on the rows of a plan. `stated`: the owner
    states that nobody has more rows than the declaration keeps."""
    visited: set[tuple[p.RowExpr, int]] = set()
    clamped = [cut for value in values for cut in _clamped(value, plan, visited)] if values else ()
    return tuple(dict.fromkeys((*_rows(plan, stated), *clamped)))


def _rows(plan: p.Plan, stated: bool) -> Iterator[str]:
    plan = p.rows_below(plan, (p.Filter,))
    match plan:
        case p.Bound(most=int(most)) if not stated:
            yield f"{BEYOND}`{_limit(None, most, False)}`"
        case p.Join(most=int(most)):
            yield f"matches beyond `up to {most}`"
        case p.Truncate() if _truncates(plan):
            yield f"{BEYOND}`{_limit(plan.groups, plan.rows, bool(plan.keys))}`"
    for source in (plan.scan,) if isinstance(plan, p.Bound) else p.inputs(plan):
        yield from _rows(source, stated)


def _truncates(plan: p.Truncate) -> bool:
    """Whether a person can have more rows or groups than are kept."""
    rows = _most_rows(plan.source)
    if plan.rows is not None and (rows is None or rows > plan.rows):
        return True
    if plan.groups is None or (rows is not None and rows <= plan.groups):
        return False
    many = [_values_of(key, plan.source) for key in plan.keys]
    return None in many or math.prod(number for number in many if number is not None) > plan.groups


def _values_of(key: p.RowExpr, plan: p.Plan) -> int | None:
    """The number of values of a key, by a list or by its description; None if it is not known."""
    try:
        sizes_of = key_values(key, schema_of(plan), MOST_KEYS)
    except Refusal:  # too many to list
        sizes_of = None
    sizes = [] if sizes_of is None else [len(sizes_of)]
    while isinstance(plan, p.Filter):
        match plan.condition:
            case p.Apply(op="in", args=(value, *values)) if value == key:
                sizes.append(len(values))
        plan = plan.source
    return min(sizes, default=None)


def _most_rows(plan: p.Plan) -> int | None:
    """The largest number of a person's rows, if the plan shows it."""
    plan = p.rows_below(plan)
    match plan:
        case p.Bound() | p.GroupRows(person=True):
            return plan.most
        case p.Truncate(keys=()):
            return plan.rows
    return None


def _limit(groups: int | None, rows: int | None, each: bool) -> str:
    """A bound as program text."""
    parts = [f"{groups} group{'s' * (groups != 1)}"] if groups is not None else []
    parts += [f"{rows} row{'s' * (rows != 1)}{' each' * each}"] if rows is not None else []
    return f"up to {', '.join(parts)}"


def _clamped(expr: p.RowExpr, plan: p.Plan, visited: set[tuple[p.RowExpr, int]]) -> Iterator[str]:
    """The ranges to which a program clamps the inputs of a number, back to the columns of a source."""
    if isinstance(expr, p.Constant) or (expr, id(plan)) in visited:
        return
    visited.add((expr, id(plan)))
    if isinstance(expr, p.Column):
        for inner, source in _definitions(expr, plan):
            yield from _clamped(inner, source, visited)
        return
    if expr.op in _TESTS:
        return
    if expr.op in _CLAMPS and not _within(expr, plan):
        yield f"values clamped to {'..'.join(map(_end, expr.args[1:]))}"
    for arg in expr.args[expr.op == "if" :]:
        yield from _clamped(arg, plan, visited)


def _definitions(column: p.Column, plan: p.Plan) -> Iterator[tuple[p.RowExpr, p.Plan]]:
    """The definitions of a column, each with the plan of its rows."""
    match plan:
        case p.Derive():
            yield from ((expr, plan.source) for name, expr in plan.columns if name == column.name)
        case p.GroupRows():
            terms = [(name, term.expr) for name, term in plan.terms if term.expr is not None]
            yield from ((expr, plan.source) for name, expr in (*plan.keys, *terms) if name == column.name)
        case p.Join():
            yield column, plan.left if column.name in schema_of(plan.left) else plan.right
        case p.Filter() | p.Truncate() | p.Known() | p.Union():
            yield from ((column, source) for source in p.inputs(plan))


def _within(clamp: p.Apply, plan: p.Plan) -> bool:
    """Whether a clamp changes nothing: by the description, or for the mean of a person's rows."""
    if any(column.startswith("\u00b7") for column in p.names_in(clamp.args[:1])):
        return True
    schema = schema_of(plan)
    bounds, ends = bounds_of(clamp.args[0], schema), [bounds_of(arg, schema) for arg in clamp.args[1:]]
    if bounds is None or None in ends:
        return False
    (_, low), (high, _) = ends  # type: ignore[misc]
    return low <= bounds[0] and bounds[1] <= high


def _end(expr: p.RowExpr) -> str:
    return constant(expr.value) if isinstance(expr, p.Constant) else "an end"
