"""The way out of a method, or of a column taken out of a table, as a program of Python or pandas has it.

Looks at what stands around the place: `people.age.mean()` wants a mean, and `people.age > 40` the rows of a condition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jostle.check.abstract.values import Handle, Range, Set
from jostle.diagnostics import Diagnostic
from jostle.language.methods import (
    OF_COLUMNS,
    OF_TABLES,
    Written,
    of_column,
    of_function,
    of_groups,
    of_table,
    of_value,
)  # fmt: skip
from jostle.language.operations import COMPARISONS
from jostle.records import replace
from jostle.syntax import nodes as n

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
    written = next(iter(_called(around[:1], it)), None) or _indexed(around[:1], it) or Written(it)
    help = _of_groups(name, written, around) or of_table(name, written, number, key)
    help = help or f"rows are measured in a query: `{{{{ select count(*) from {it} with epsilon 0.1 }}}}`"
    return Diagnostic(kind, f"`{it}` is a table and has no `{name}`", help=help)


def _of_groups(name: str, written: Written, around: Sequence[n.Node]) -> str:
    """The way out of `t.groupby("city")["hours"].mean()` and `t.groupby("city").hours.mean()`, or an empty text."""
    if name not in ("groupby", "group_by") or not written.args:
        return ""
    match around[1:3]:
        case [n.Index(args=(n.String(value=column),)) | n.Attribute(name=column), n.Attribute(name=method)]:
            return of_groups(written, column, method)
    return ""


def of_method(kind: str, node: n.Attribute, around: Sequence[n.Node], fields: Sequence[str] = ()) -> str:
    """The way out of `it.name(…)` on a public value of a kind, or an empty text."""
    it = node.value.span.text
    written = next(iter(_called(around[:1], it)), None) or _indexed(around[:1], it) or Written(it)
    return of_value(kind, node.name, written, fields[-1] if fields else "", fields[0] if fields else "")


def of_call(name: str, call: n.Call | None, columns: Mapping[str, str]) -> str:
    """The way out of a function of another language, as it is called, or an empty text.

    `columns` are those of private tables, each with the name of one that has it.
    """
    written = next(iter(_called([call], "")), Written("")) if call is not None else Written("")
    if name in OF_TABLES or name in OF_COLUMNS:
        match call.args[:1] if call is not None else ():
            case (n.Name(id=it),) if it in columns.values():
                return of_table(name, replace(written, it=it, args=written.args[1:]), "", "")
            case (n.Attribute(value=n.Name(id=it), name=column),) if column in columns:
                return _of_argument(name, written, it, column)
            case (n.Index(value=n.Name(id=it), args=(n.String(value=column),)),) if column in columns:
                return _of_argument(name, written, it, column)
    return of_function(name, written)


def _of_argument(name: str, written: Written, it: str, column: str) -> str:
    """The way out of `mean(t.column)` and the like; `crosstab(t.column, t.other)` names another."""
    rest = replace(written, it=it, args=written.args[1:])
    return of_column(column, name, rest, numeric=True, other=_column_named(rest))


def _column_named(written: Written) -> str:
    """The column that the first argument names, as `t.hours` or `hours`; empty where there is none."""
    return written.args[0].rpartition(".")[2] if written.args else ""


def _of_column(column: str, it: str, columns: Mapping[str, Any], around: Sequence[n.Node]) -> str:
    match around:
        case [n.Binary(op=op, right=right) as test, *_] if op in COMPARISONS and right is not None:
            bare = test.span.text.replace(f"{it}.", "").replace(f'{it}["{column}"]', column)
            return f"write `where({it}, {bare})`"
        case [n.Call(function=n.Name(id=name), args=[_]), *_] if name in ("avg", "sum", "min", "max", "median", "mean"):
            return of_column(column, name, Written(it), numeric=True)
    method = around[0].name if around and isinstance(around[0], n.Attribute) else ""
    inner = around[1].name if len(around) > 1 and isinstance(around[1], n.Attribute) else ""
    written = next(iter(_called(around[1:2], it)), Written(it))
    numeric, other = not _is_listed(columns[column]), _column_named(written)
    return of_column(column, method, written, numeric=numeric, inner=inner, other=other)


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
