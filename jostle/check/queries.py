"""What can be wrong with a select, once it is known which table it reads.

In the order of the rules: names, labels, keys, bounds; amount and allotment follow in `exploration`. Each function says
whether it reports something, since what comes later would only repeat it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from jostle.check.abstract.values import Domain, Handle
from jostle.check.report import Report
from jostle.diagnostics import Note, did_you_mean
from jostle.language.aggregates import AGGREGATES, BOUNDED
from jostle.language.forms import PERSON
from jostle.language.operations import ROW_FUNCTIONS
from jostle.syntax import nodes as n
from jostle.syntax.walk import children, every


def check_select(
    select: n.Select, columns: Mapping[str, Any] | None, owner: Handle | None, has_delta: bool,
    is_variable: Callable[[str], bool], report: Report,
) -> bool:  # fmt: skip
    """All that is wrong with a select over `columns` (None where they are not known) of the private `owner`."""
    return (
        (columns is not None and _check_columns(select, columns, is_variable, report))
        or _check_result_names(select, report)
        or select.per is not None  # rows that cost nothing
        or (owner is not None and _check_bare(select, owner, report))
        or (owner is not None and not has_delta and _check_keys(select, owner, columns or {}, report))
        or (owner is not None and _check_bounds(select, columns or {}, report))
    )


def _row_expressions(select: n.Select) -> Iterator[n.Expr]:
    """The expressions that are evaluated row by row."""
    yield from (column.value for column in select.columns)
    if select.where is not None:
        yield select.where
    yield from (key.value for key in (*(select.per or ()), *select.keys))
    if select.limit is not None and select.limit.order is not None:
        yield select.limit.order


def _row_names(expr: n.Expr) -> Iterator[n.Name]:
    """The names in a row expression that may be columns: not those of functions, not those of inner queries."""
    waiting: list[n.Node] = [expr]
    while waiting:
        node = waiting.pop()
        match node:
            case n.Name():
                yield node
            case n.Call(function=n.Name(id="count"), args=(n.Distinct(value=n.Name(id=name)),)) if name == PERSON:
                continue
            case n.Call(function=n.Name(), args=args, keywords=keywords):
                waiting.extend((*args, *keywords))
            case n.Query() | n.Select() | n.Lambda() | n.Comprehension() | n.Over():
                continue
            case _:
                waiting.extend(children(node))


def _check_columns(
    select: n.Select, columns: Collection[str], is_variable: Callable[[str], bool], report: Report
) -> bool:
    """Names that are neither a column nor a variable."""
    per = {key.value.id for key in select.per or () if isinstance(key.value, n.Name)}
    wrong = check_rows(_row_expressions(select), {*columns, *(per & {PERSON})}, is_variable, report)
    for join in select.joins:
        for name in (name for match in join.on for name in (match.column, match.theirs)):
            if name not in columns and name != PERSON:
                wrong = True
                report.add("NameError", f"there is no column `{name}` to join on", join.span, help=_columns(columns))
                break
    return wrong


def check_rows(
    rows: Iterable[n.Expr], columns: Collection[str], is_variable: Callable[[str], bool], report: Report
) -> bool:
    """Names in row expressions that are neither a column nor a variable."""
    wrong = False
    for expr in rows:
        for name in _row_names(expr):
            if name.id not in columns and not is_variable(name.id):
                wrong = True
                help = did_you_mean(name.id, columns) or _columns(columns)
                message = f"there is no column `{name.id}`: only described columns exist"
                report.add("NameError", message, name.span, label="no such column", help=help)
    return wrong


def _columns(columns: Collection[str]) -> str:
    return "the columns are " + ", ".join(f"`{column}`" for column in columns) if columns else ""


def _check_result_names(select: n.Select, report: Report) -> bool:
    """Two results of one name."""
    first_of: dict[str, n.Column] = {}
    for column in select.columns:
        name = column.name or _own_name(column.value)
        if name is None:
            continue
        if name in first_of:
            notes = (Note(first_of[name].span, f"the first `{name}`"),)
            message = f"two results of this select are named `{name}`"
            report.add("NameError", message, column.span, help="name one of them with `as`", notes=notes)
            return True
        first_of[name] = column
    return False


def _own_name(value: n.Expr) -> str | None:
    match value:
        case n.Name(id=name) | n.Call(function=n.Name(id=name)):
            return name
    return None


def _has_aggregate(expr: n.Expr) -> bool:
    """Whether an aggregate, or something that might be one, stands in a row expression."""
    for node in every(expr):
        match node:
            case n.Star() | n.Distinct() | n.Select() | n.Query() | n.Attribute() | n.Index():
                return True
            case n.Call(function=n.Name(id=name)) if name not in ROW_FUNCTIONS or name in AGGREGATES:
                return True
            case n.Call(function=function) if not isinstance(function, n.Name):
                return True
    return False


def _check_bare(select: n.Select, owner: Handle, report: Report) -> bool:
    """A select of columns only would hand out rows."""
    if any(_has_aggregate(column.value) for column in select.columns):
        return False
    report.add(
        "PrivateValue",
        "this select would hand out private rows",
        select.columns[0].span,
        label=f"no aggregate, and private since line {owner.declared.span.line}",
        help="measure them: `count(*)`, `avg(…)`, `median(…)`",
        notes=owner.trail,
    )
    return True


def _check_keys(select: n.Select, owner: Handle, columns: Mapping[str, Any], report: Report) -> bool:
    """Group keys of an open domain, without `over` and without delta; a registered source may have one."""
    budget = owner.declared.budget
    if budget is None or budget.amount.delta is not None:
        return False
    if select.spend is not None and select.spend.amount.delta is not None:
        return False
    for key in select.keys:
        if key.over is None and isinstance(key.value, n.Name) and isinstance(columns.get(key.value.id), Domain):
            report.add(
                "OpenKeys",
                f"the values of `{key.value.id}` are not public, so its groups are not either",
                key.span,
                label="an open domain",
                help=f'list them, `groupby {key.value.id} over {{"a", "b"}}`, or describe them, '
                f'`{key.value.id}: {{"a", "b"}}`, or give a delta',
            )
            return True
    return False


def _check_bounds(select: n.Select, columns: Mapping[str, Any], report: Report) -> bool:
    """Sums over a bare column of an open domain of numbers."""
    for column in select.columns:
        for node in every(column.value):
            match node:
                case n.Call(function=n.Name(id=aggregate), args=args) if aggregate in BOUNDED:
                    names = [arg.id if isinstance(arg, n.Name) else "…" for arg in args]
                    for name in names:
                        domain = columns.get(name)
                        if not isinstance(domain, Domain) or domain.name == "text":
                            continue
                        clamped = [f"clamp({name}, 0, 100)" if other == name else other for other in names]
                        report.add(
                            "UnboundedSum",
                            f"`{aggregate}({', '.join(names)})` has no bound: `{name}` is described without one",
                            node.span,
                            label="one row could change it by any amount",
                            help=f"write `{aggregate}({', '.join(clamped)})`, or describe `{name}: 0..100`",
                        )
                        return True
    return False
