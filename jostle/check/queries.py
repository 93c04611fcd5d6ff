"""What can be wrong with a select, once it is known which table it reads.

In the order of the rules: names, labels, keys, bounds; amount and allotment follow in `exploration`. Each function says
whether it reports something, since what comes later would only repeat it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from jostle.accounting.units import ANY_ROWS, BOUNDS
from jostle.check.abstract.values import Domain, Handle
from jostle.check.meanings import Meanings, Variable, aggregated, known_of
from jostle.check.report import Report
from jostle.check.rowkinds import RowKinds
from jostle.diagnostics import Note, did_you_mean
from jostle.language.aggregates import AGGREGATES, of_form
from jostle.language.described import Listed
from jostle.language.forms import PERSON, aggregates, lone_column
from jostle.language.operations import ROW_FUNCTIONS
from jostle.language.other_languages import way
from jostle.syntax import nodes as n
from jostle.syntax.walk import children, every, key_names, own_name


def check_select(
    select: n.Select, columns: Mapping[str, Any] | None, owner: Handle | None, has_delta: bool,
    is_variable: Callable[[str], bool], variable: Variable, report: Report,
) -> bool:  # fmt: skip
    """All that is wrong with a select over `columns` (None where they are not known) of the private `owner`."""
    return (
        (columns is not None and _check_columns(select, columns, is_variable, report))
        or (columns is not None and _check_meanings(select, columns, variable, report))
        or (columns is not None and RowKinds(columns, variable, report).select(select))
        or _check_result_names(select, report)
        or select.per is not None  # rows that cost nothing
        or _check_forms(select, columns or {}, report)
        or _check_released(select, columns or {}, is_variable, report)
        or _check_keys_of_columns(select, report)
        or (owner is not None and _check_bare(select, owner, report))
        or (owner is not None and not has_delta and _check_keys(select, owner, columns or {}, variable, report))
        or (owner is not None and _check_bounds(select, owner, RowKinds(columns or {}, variable, report), report))
    )


def check_rows_of_persons(select: n.Select, table: Any, report: Report) -> bool:
    """A select of rows of which a person may have any number."""
    if select.per is not None or not isinstance(table, Handle) or not any(e.unbounded for e in table.exposures):
        return False
    counted = [call for column in select.columns for call in every(column.value) if isinstance(call, n.Distinct)]
    if counted:  # of persons, perhaps, each of whom counts once
        return False
    report.add("UnboundedSum", ANY_ROWS.format(f"of `{table.declared.name}`"), select.span, help=BOUNDS)
    return True


def _row_expressions(select: n.Select) -> Iterator[n.Expr]:
    """The expressions that are evaluated row by row."""
    yield from (column.value for column in select.columns)
    if select.where is not None:
        yield select.where
    yield from (key.value for key in (*(select.per or ()), *select.keys))
    if select.limit is not None and select.limit.order is not None:
        yield select.limit.order


def _row_names(expr: n.Expr, tables: Collection[str] = ()) -> Iterator[n.Name]:
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
            case n.Attribute(value=n.Name(id=table)) if table in tables:
                continue
            case n.Query() | n.Select() | n.Lambda() | n.Comprehension() | n.Over():
                continue
            case _:
                waiting.extend(children(node))


def _check_columns(
    select: n.Select, columns: Mapping[str, Any], is_variable: Callable[[str], bool], report: Report
) -> bool:
    """Names that are neither a column nor a variable."""
    per = {key.value.id for key in select.per or () if isinstance(key.value, n.Name)}
    listed = {**columns, **dict.fromkeys(per & {PERSON})}
    wrong = check_rows(_row_expressions(select), listed, is_variable, report, _tables(select))
    for join in select.joins:
        for name in (name for match in join.on for name in (match.column, match.theirs)):
            if name not in columns and name != PERSON:
                wrong = True
                report.add("NameError", f"there is no column `{name}` to join on", join.span, help=_columns(columns))
                break
    return wrong


def check_rows(
    rows: Iterable[n.Expr], columns: Mapping[str, Any], is_variable: Callable[[str], bool], report: Report,
    tables: Collection[str] = (),
) -> bool:  # fmt: skip
    """Names in row expressions that are neither a column nor a variable."""
    wrong = False
    for expr in rows:
        for name in _row_names(expr, tables):
            if name.id not in columns and not is_variable(name.id):
                wrong = True
                clock = way(name.id) if name.id.lower().startswith("current_") else ""
                help = clock or _value_of(name.id, columns) or did_you_mean(name.id, columns)
                message, label = f"there is no column `{name.id}`: only described columns exist", "no such column"
                if name.id.lower() in NOTHING:
                    message, label, help = f"a missing value is not called `{name.id}`", "no value", "write `none`"
                help = help or f"{_columns(columns)}; others are described first: `{name.id}: 0..100`"
                report.add("NameError", message, name.span, label=label, help=help)
    return wrong


NOTHING = frozenset({"null", "nil", "nan", "na", "undefined"})
"""What other languages call a missing value."""


def _value_of(name: str, columns: Mapping[str, Any]) -> str:
    """The way out where a text was written without its quotes."""
    for column, domain in columns.items():
        known = known_of(domain)
        if isinstance(known, Listed) and name in known.values:
            return f'it is a value of `{column}`: write `"{name}"`'
    return ""


def _tables(select: n.Select) -> list[str]:
    """What the tables of a select are called in it."""
    pairs = [(select.alias, select.table), *((joined.alias, joined.table) for joined in select.joins)]
    named = (alias or (table.id if isinstance(table, n.Name) else None) for alias, table in pairs)
    return [name for name in named if name is not None]


def _check_meanings(select: n.Select, columns: Mapping[str, Any], variable: Variable, report: Report) -> bool:
    results = [column.name for column in select.columns if column.name]
    meanings = Meanings(columns, variable, _tables(select), report, results)
    wrong = select.where is not None and meanings.condition(select.where)
    for key in select.keys:
        wrong = meanings.position(key.value) or wrong
    for column in select.columns:
        for expr, _ in aggregated(column.value):
            wrong = meanings.position(expr) or wrong
    return wrong


def _check_forms(select: n.Select, columns: Mapping[str, Any], report: Report) -> bool:
    """An aggregate that is not called as it is written, and a select inside that gives no aggregate."""
    of = next(iter(columns), "")
    for call in (call for column in select.columns for call in aggregates(column.value)):
        row = AGGREGATES[call.function.id]  # type: ignore[union-attr]
        of_groups = next((part for arg in call.args for part in aggregates(arg)), None)
        if of_groups is not None:
            one, keys = of_groups.span.text, ", ".join(key.span.text for key in select.keys) or "city"
            written = f"{row.name}(select {one} from {select.table.span.text} groupby {keys} with epsilon 0.1)"
            message = f"`{row.name}` is of rows, and `{one}` is measured of groups"
            report.add("TypeError", message, of_groups.span, help=f"write `{{{{ {written} }}}}`")
            return True
        if len(call.args) != row.expressions + row.numbers or call.keywords:
            fault = of_form(row, of)
            report.add(fault.kind, fault.message, call.span, help=fault.help)
            return True
    parts = list(every(select.where)) if select.where is not None else []
    for inner in () if any(map(_is_exists, parts)) else parts:
        if isinstance(inner, n.Select) and not any(_has_aggregate(column.value) for column in inner.columns):
            key = inner.columns[0].value.span.text
            help = f"join the tables: `from {select.table.span.text} join {inner.table.span.text} on {key}`"
            report.add("TypeError", "a select gives aggregates, not rows", inner.span, label="no aggregate", help=help)
            return True
    return False


def _is_exists(node: n.Node) -> bool:
    """Whether this is `exists (select …)`, whose name is told."""
    return isinstance(node, n.Call) and isinstance(node.function, n.Name) and node.function.id.lower() == "exists"


def _check_released(
    select: n.Select, columns: Mapping[str, Any], is_variable: Callable[[str], bool], report: Report
) -> bool:
    """What `having` and `order by` look at, which is what the select releases."""
    keys = [part for key in select.keys for part in _parts(key)]
    named = key_names(keys, select.columns)
    named += [column.name or own_name(column.value) or "value" for column in select.columns]
    measured = [call for column in select.columns for call in aggregates(column.value)]
    having = (select.having,) if select.having is not None else ()
    for expr in (*having, *(rank.value for rank in select.ranking)):
        calls = list(aggregates(expr))
        for call in calls:
            if call not in measured:
                help = "`having` and `order by` look at what is released: add it to the columns, `… as n`, and use `n`"
                report.add("NameError", "this aggregate is not measured by the select", call.span, help=help)
                return True
        of_calls = {id(node) for call in calls for node in every(call)}
        for name in _row_names(expr):
            if id(name) not in of_calls and name.id not in named and not is_variable(name.id):
                help = did_you_mean(name.id, named) or f"the select releases {', '.join(named)}"
                if name.id in columns:
                    help = f"release it, `avg({name.id}) as {name.id}`"
                    if having and expr is having[0]:
                        help = f"of rows write `where {expr.span.text}` before the groups"
                report.add("NameError", f"there is no `{name.id}` in what is released", name.span, help=help)
                return True
    return False


def _parts(key: n.GroupKey) -> list[tuple[n.Expr, str | None]]:
    """The columns of a key, of which `(sex, city) over …` has several."""
    return [(item, None) for item in key.value.items] if isinstance(key.value, n.ListOf) else [(key.value, key.name)]


def _check_keys_of_columns(select: n.Select, report: Report) -> bool:
    """A bare column beside aggregates, by which the groups are not."""
    if not any(_has_aggregate(column.value) for column in select.columns):
        return False
    for column in select.columns:
        if isinstance(column.value, n.Name):
            message, help = lone_column(column.value, select.keys)
            report.add("TypeError", message, column.value.span, help=help)
            return True
    return False


def _columns(columns: Collection[str]) -> str:
    return "the columns are " + ", ".join(f"`{column}`" for column in columns) if columns else ""


def _check_result_names(select: n.Select, report: Report) -> bool:
    """Two results of one name, or a result with the name of a key."""
    keys = {key.name or key.value.id for key in select.keys if isinstance(key.value, n.Name)}
    for column in select.columns:
        if column.name in keys and _has_aggregate(column.value):
            message = f"a key and a result of this select are named `{column.name}`"
            help = f"name one of them: `{column.value.span.text} as many`"
            report.add("NameError", message, column.span, help=help)
            return True
    first_of: dict[str, n.Column] = {}
    for column in select.columns:
        name = column.name or own_name(column.value)
        if name is None:
            continue
        if name in first_of:
            notes = (Note(first_of[name].span, f"the first `{name}`"),)
            message = f"two results of this select are named `{name}`"
            call = column.value
            of = call.args[0].id if isinstance(call, n.Call) and call.args and isinstance(call.args[0], n.Name) else "n"
            help = f"name one of them: `{call.span.text} as {of}`"
            report.add("NameError", message, column.span, help=help, notes=notes)
            return True
        first_of[name] = column
    return False


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
    inner = select.table
    help = f"measure them: `count(*)`, `avg({select.columns[0].value.span.text})`"
    if isinstance(inner, n.Select) and re.search(r"(?i)\bgroup ?by\b", inner.span.text):
        answers = inner.span.text.removeprefix("(").removesuffix(")")
        help = f"the groups of the inner select are answers: write `{{{{ {answers} with epsilon 0.1 }}}}`"
    report.add(
        "PrivateValue",
        "this select would hand out private rows",
        select.columns[0].span,
        label=f"no aggregate, and private since line {owner.declared.span.line}",
        help=help,
        notes=owner.trail,
    )
    return True


def _check_keys(
    select: n.Select, owner: Handle, columns: Mapping[str, Any], variable: Variable, report: Report
) -> bool:
    """Group keys of an open domain, without `over` and without delta; a registered source may have one."""
    budget = owner.declared.budget
    if budget is None or budget.amount.delta is not None:
        return False
    if select.spend is not None and select.spend.amount.delta is not None:
        return False
    for call in (call for column in select.columns for call in aggregates(column.value)):
        of = call.args[0] if call.function == n.Name("mode", span=call.function.span) and call.args else None
        if isinstance(of, n.Name) and isinstance(columns.get(of.id), Domain):
            message = f"the values of `{of.id}` are not public, so its most frequent one is not either"
            help = f'describe them: `{of.id}: {{"a", "b"}}`, or `{of.id}: 0..99`'
            report.add("OpenKeys", message, of.span, label="an open domain", help=help)
            return True
    for key in select.keys:
        if key.over is not None:
            continue
        text = key.value.span.text
        if isinstance(key.value, n.Name):
            domain = columns.get(text)
            kind = domain.name if isinstance(domain, Domain) else None
        else:
            kind = RowKinds(columns, variable, report).open_kind(key.value)
        if kind is not None:
            whole = kind in ("integer", "real")
            such = "0..99" if whole else '{"a", "b"}' if kind == "text" else "2024-01-01..2024-12-31"
            describe = f"describe them, `{text}: {such}`" if text in columns else "describe the column that it reads"
            message = f"the values of `{text}` are not public, so its groups are not either"
            help = f"list them, `groupby {text} over {such}`, or {describe}, or give a delta"
            report.add("OpenKeys", message, key.span, label="an open domain", help=help)
            return True
    return False


def _check_bounds(select: n.Select, owner: Handle, kinds: RowKinds, report: Report) -> bool:
    """Sums of an expression without bounds, and quantiles, which are searched for between them."""
    columns = owner.declared.described
    described = [name for name, _ in columns.items] if isinstance(columns, n.RecordOf) else []
    for call in (call for column in select.columns for call in aggregates(column.value)):
        row = AGGREGATES[call.function.id]  # type: ignore[union-attr]
        for arg in call.args[: row.expressions] if row.needs_bounds else ():
            kind = kinds.unbounded(arg)
            if kind is None:
                continue
            low, high = _ends(kind)
            name, text, at = arg.span.text, call.span.text, arg.span.column - call.span.column
            bounded = f"{text[:at]}clamp({name}, {low}, {high}){text[at + len(name) :]}"
            is_described = isinstance(arg, n.Name) and arg.id in described
            why = "is described without one" if is_described else "has none by its columns"
            report.add(
                "UnboundedSum", f"`{text}` has no bound: `{name}` {why}", call.span,
                label="one row could change it by any amount" if row.bounded else "no bounds to search between",
                help=f"write `{bounded}`" + (f", or describe `{name}: {low}..{high}`" if is_described else ""),
            )  # fmt: skip
            return True
    return False


def _ends(kind: str) -> tuple[str, str]:
    """Bounds of a kind, as an example."""
    if kind == "number":
        return "0", "100"
    return ("2024-01-01", "2024-12-31") if kind == "date" else ("2024-01-01T00:00", "2024-12-31T23:59")
