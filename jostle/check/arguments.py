"""Whether the arguments of a call fit its parameters, and the parameter that is meant by another name.

The way out of a method, or of a column taken out of a table, as a program of Python or pandas has it.

Looks at what stands around the place: `people.age.mean()` wants a mean, and `people.age > 40` the rows of a condition.

Amounts that are wrong as they are written: zero, negative, infinite, below the quantum, words, booleans.

Only literals and arithmetic over literals are looked at; what depends on a name is settled when it is spent.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from jostle.accounting.amounts import QUANTA
from jostle.check.abstract.values import Handle, Range, Set
from jostle.check.scopes import Report
from jostle.check.warnings import of_epsilon
from jostle.diagnostics import Diagnostic, did_you_mean
from jostle.language.facts import Parameter
from jostle.language.methods import (
    OF_COLUMNS,
    OF_TABLES,
    Written,
    of_column,
    of_function,
    of_groups,
    of_table,
    of_value,
)
from jostle.language.operations import COMPARISONS
from jostle.records import replace
from jostle.syntax import nodes as n
from jostle.syntax.walk import every

_CALLED = {
    "key": "by", "sep": "separator", "delimiter": "separator", "eps": "epsilon", "n": "count", "ndigits": "digits",
    "sheet_name": "part", "sheet": "part", "random_state": "seed", "max_depth": "depth", "headers": "header",
    "header_row": "header", "header_line": "header",
}  # fmt: skip
"""What Python calls a parameter, and what it is called here."""


def other_name(keyword: n.Keyword, function: str, names: Collection[str], call: n.Call) -> str:
    """The way out of an argument under a name that no parameter has, or an empty text."""
    if function == "sorted" and keyword.name == "reverse" and call.args:
        return f"write `reversed(sorted({call.args[0].span.text}))`"
    if function in ("table", "counts") and keyword.name in ("path", "file", "filename", "name", "source"):
        return f"the path stands alone: `{function}({keyword.value.span.text})`"
    if "header" in names and keyword.name in ("skip", "skiprows", "skip_rows", "startrow"):
        return "`header = 3` says which line has the names, from 1; what stands above it is not read"
    right = _CALLED.get(keyword.name, "")
    if right in names:
        return f"write `{right} = {keyword.value.span.text}`"
    return did_you_mean(keyword.name, names)


_WITH_MORE = {"error": "band({0}, level = {1})", "log": "log({0}) / log({1})"}
"""Functions of one argument that other languages call with two, and what is meant."""


def other_call(function: str, call: n.Call) -> str:
    """The way out of a call that has an argument more, or its amount in brackets, or an empty text."""
    amounts = [keyword.value.span.text for keyword in call.keywords if keyword.name in ("epsilon", "eps")]
    if amounts:
        return f"the amount comes after the call: `{function}(…) with epsilon {amounts[0]}`"
    form = _WITH_MORE.get(function, "") if len(call.args) == 2 else ""
    return form and "write `" + form.format(*(arg.span.text for arg in call.args)) + "`"


def arity_error(name: str, params: Sequence[Parameter], places: int, keywords: Sequence[str]) -> str:
    """Why the arguments of a call cannot fit, or an empty text."""
    kinds = {param.kind for param in params}
    by_place = [param.name for param in params if param.kind == ""]
    needed = [param.name for param in params if param.default is None and param.kind in ("", "name")]
    names = {param.name for param in params if param.kind in ("", "name")}
    least = sum(param in needed for param in by_place)
    count = f"{least} to {len(by_place)} arguments"
    if least == len(by_place):
        count = "no arguments" if not by_place else f"{least} argument" + ("s" if least > 1 else "")
    takes = f"`{name}` takes {count if '*' not in kinds else f'at least {least} argument' + 's' * (least != 1)}"
    if places > len(by_place) and "*" not in kinds:
        return f"{takes}, but {places} are given"
    bound = set(by_place[:places])
    for keyword in keywords:
        if keyword not in names and "**" not in kinds:
            return f"`{name}` has no parameter `{keyword}`"
        if keyword in bound:
            return f"the argument `{keyword}` of `{name}` is given twice"
        bound.add(keyword)
    missing = [param for param in needed if param not in bound]
    return f"{takes}: `{missing[0]}` is missing" if missing else ""


FIELDS_OF_TABLES = ("columns", "at_most")


def of_field_of_table(table: Handle, node: n.Attribute | n.Index, around: Sequence[n.Node]) -> Diagnostic | None:
    """Why a table has no field `t.age`, and no element `t["age"]` or `t[["age", "sex"]]`."""
    it, columns = node.value.span.text, table.schema or {}
    kind = "PrivateValue" if isinstance(node, n.Index) else "NameError"
    if isinstance(node.value, n.Index) and of_field_of_table(table, node.value, ()) is not None:
        return None  # what stands before the dot is told
    name = node.name if isinstance(node, n.Attribute) else ""
    if isinstance(node, n.Index):
        match node.args:
            case (n.String(value=name),):
                pass
            case (n.ListOf(items=items),) if all(isinstance(item, n.String) for item in items):
                picked = ", ".join(item.value for item in items if isinstance(item, n.String))
                message = f"columns of `{it}` are not taken out of it"
                return Diagnostic(kind, message, help=f"write `pick({it}, {picked})`")
            case _:
                return None
    elif name in FIELDS_OF_TABLES:
        return None
    if name in columns:
        message = f"`{name}` is a column of `{it}`, whose rows are read in a query alone"
        return Diagnostic(kind, message, help=_of_column(name, it, columns, around))
    number, key = _numeric(columns), _listed(columns)
    usage = next(iter(_called(around[:1], it)), None) or _indexed(around[:1], it) or Written(it)
    help = _of_groups(name, usage, around) or of_table(name, usage, number, key)
    help = help or f"rows are measured in a query: `{{{{ select count(*) from {it} with epsilon 0.1 }}}}`"
    return Diagnostic(kind, f"`{it}` is a table and has no `{name}`", help=help)


def _of_groups(name: str, usage: Written, around: Sequence[n.Node]) -> str:
    """The way out of `t.groupby("city")["hours"].mean()` and `t.groupby("city").hours.mean()`, or an empty text."""
    if name not in ("groupby", "group_by") or not usage.args:
        return ""
    match around[1:3]:
        case [n.Index(args=(n.String(value=column),)) | n.Attribute(name=column), n.Attribute(name=method)]:
            return of_groups(usage, column, method)
    return ""


def of_method(kind: str, node: n.Attribute, around: Sequence[n.Node], fields: Sequence[str] = ()) -> str:
    """The way out of `it.name(…)` on a public value of a kind, or an empty text."""
    it = node.value.span.text
    usage = next(iter(_called(around[:1], it)), None) or _indexed(around[:1], it) or Written(it)
    return of_value(kind, node.name, usage, fields[-1] if fields else "", fields[0] if fields else "")


def of_call(name: str, call: n.Call | None, columns: Mapping[str, str]) -> str:
    """The way out of a function of another language, as it is called, or an empty text.

    `columns` are those of private tables, each with the name of one that has it.
    """
    usage = next(iter(_called([call], "")), Written("")) if call is not None else Written("")
    if name in OF_TABLES or name in OF_COLUMNS:
        match call.args[:1] if call is not None else ():
            case (n.Name(id=it),) if it in columns.values():
                return of_table(name, replace(usage, it=it, args=usage.args[1:]), "", "")
            case (n.Attribute(value=n.Name(id=it), name=column),) if column in columns:
                return _of_argument(name, usage, it, column)
            case (n.Index(value=n.Name(id=it), args=(n.String(value=column),)),) if column in columns:
                return _of_argument(name, usage, it, column)
    return of_function(name, usage)


def _of_argument(name: str, usage: Written, it: str, column: str) -> str:
    """The way out of `mean(t.column)` and the like; `crosstab(t.column, t.other)` names another."""
    rest = replace(usage, it=it, args=usage.args[1:])
    return of_column(column, name, rest, numeric=True, other=_column_named(rest))


def _column_named(usage: Written) -> str:
    """The column that the first argument names, as `t.hours` or `hours`; empty where there is none."""
    return usage.args[0].rpartition(".")[2] if usage.args else ""


def _of_column(column: str, it: str, columns: Mapping[str, Any], around: Sequence[n.Node]) -> str:
    match around:
        case [n.Binary(op=op, right=right) as test, *_] if op in COMPARISONS and right is not None:
            bare = test.span.text.replace(f"{it}.", "").replace(f'{it}["{column}"]', column)
            return f"write `where({it}, {bare})`"
        case [n.Call(function=n.Name(id=name), args=[_]), *_] if name in ("avg", "sum", "min", "max", "median", "mean"):
            return of_column(column, name, Written(it), numeric=True)
    method = around[0].name if around and isinstance(around[0], n.Attribute) else ""
    inner = around[1].name if len(around) > 1 and isinstance(around[1], n.Attribute) else ""
    usage = next(iter(_called(around[1:2], it)), Written(it))
    numeric, other = not _is_listed(columns[column]), _column_named(usage)
    return of_column(column, method, usage, numeric=numeric, inner=inner, other=other)


def _called(nodes: Sequence[n.Node], it: str) -> list[Written]:
    return [
        Written(it, [arg.span.text for arg in call.args], [(k.name, k.value.span.text) for k in call.keywords])
        for call in nodes
        if isinstance(call, n.Call)
    ]


def _indexed(nodes: Sequence[n.Node], it: str) -> Written | None:
    """`t.loc[c]`, with the condition as an argument."""
    tests = [index.args[0].span.text for index in nodes if isinstance(index, n.Index) and index.args]
    return Written(it, [tests[0].replace(f"{it}.", "")]) if tests else None


def _numeric(columns: Mapping[str, Any]) -> str:
    return next((name for name, domain in columns.items() if isinstance(domain, Range)), "")


def _listed(columns: Mapping[str, Any]) -> str:
    return next((name for name, domain in columns.items() if _is_listed(domain)), "")


def _is_listed(domain: object) -> bool:
    items = domain.items if isinstance(domain, Set) else domain
    return isinstance(items, list) and any(isinstance(item, str) for item in items)


def check_amount(amount: n.Amount, report: Report) -> bool:
    """Reports a bad amount; whether it was one."""
    if amount.unit == "given":
        return False
    if amount.unit == "share":
        value = literal(amount.value)
        words = isinstance(amount.value, n.String | n.Constant | n.ListOf | n.SetOf | n.RecordOf | n.Range)
        if words or (value is not None and not 0 < value <= 1):
            message = "a share of an allotment lies above 0 and up to 1"
            help = "write `with 1/4`, or an amount with its unit: `with epsilon 0.1`"
            report.add("BadAmount", message, amount.value.span, label="no share", help=help)
            return True
        return False
    wrong = _wrong(amount.value, amount.unit, **({"least": 0.0} if amount.is_wish else {}))
    if wrong:
        help = f"write a positive number, such as `{amount.unit} {'25' if amount.is_wish else '0.1'}`"
        report.add("BadAmount", wrong, amount.value.span, label="no amount", help=help)
        return True
    if amount.delta is not None:
        wrong = _wrong(amount.delta, "delta", least=0.0)
        if wrong:
            report.add("BadAmount", wrong, amount.delta.span, label="no amount", help="write `delta 1e-6`")
            return True
    if amount.unit == "epsilon":
        of_epsilon(literal(amount.value) or 0.0, amount.value.span, report)
    return False


def check_wishes(block: n.With, report: Report) -> None:
    """Reports selects in a `jointly` block with an amount, an error or a weight where the block takes none."""
    takes = "error" if block.spend.amount.is_wish else "weight"
    nodes = every(block.body)
    if any(isinstance(node, n.Def | n.Lambda) for node in nodes):  # it may be called after the block
        return
    for node in nodes:
        if isinstance(node, n.Select) and node.spend is not None and node.spend.amount.unit not in (takes, "given"):
            unit = node.spend.amount.unit
            what = unit if node.spend.amount.is_wish else "amount"
            message = f"a select in this `jointly` block has no {what} of its own"
            report.add("TypeError", message, node.spend.span, help=f"leave it out, or write `with {takes} 4`")


def check_share(share: n.Expr, report: Report) -> None:
    """Reports a `spending` share that is written and not between 0 and 1."""
    value = literal(share)
    if isinstance(share, n.String | n.Constant) or (value is not None and not 0 < value < 1):
        message = "the share that the features may spend lies between 0 and 1"
        report.add("BadAmount", message, share.span, label="outside 0 to 1", help="write `spending 0.05`")


def _wrong(expr: n.Expr, unit: str, least: float = 1 / QUANTA) -> str:
    if isinstance(expr, n.String | n.Constant | n.ListOf | n.SetOf | n.RecordOf | n.Range):
        return f"an amount of {unit} is a number"
    value = literal(expr)
    if value is None:
        return ""
    if math.isnan(value):
        return f"an amount of {unit} is a number"
    if math.isinf(value):
        return f"an amount of {unit} is finite"
    if value <= 0:
        return f"an amount of {unit} is above zero, not {value:g}"
    if value < least:
        return f"{value:g} is too small an amount of {unit}: the smallest is {least:g}"
    return ""


def literal(expr: n.Expr) -> float | None:
    """The value of an expression of numbers alone, or None."""
    match expr:
        case n.Number(value=value):
            return value
        case n.Unary(op="-" | "+" as op, operand=operand):
            inner = literal(operand)
            return None if inner is None else (-inner if op == "-" else inner)
        case n.Binary(op="+" | "-" | "*" | "/" as op, left=left, right=right):
            one, two = literal(left), literal(right)
            if one is None or two is None or (op == "/" and two == 0):
                return None
            return {"+": one + two, "-": one - two, "*": one * two, "/": one / two if two else one}[op]
    return None
