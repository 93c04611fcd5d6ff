"""Whether the arguments of a call fit its parameters, and the parameter that is meant by another name.

Amounts that are wrong as they are written: zero, negative, infinite, below the quantum, words, booleans.

Only literals and arithmetic over literals are looked at; what depends on a name is settled when it is spent.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from jostle.accounting.amounts import QUANTA
from jostle.check.scopes import Report
from jostle.check.warnings import of_epsilon
from jostle.diagnostics import did_you_mean
from jostle.language.facts import Parameter
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
