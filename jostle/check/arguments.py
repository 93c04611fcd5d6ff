"""Amounts that are wrong as they are written: zero, negative, infinite, below the quantum, words, booleans.

Only literals and arithmetic over literals are looked at; what depends on a name is settled when it is spent.
"""

from __future__ import annotations

import math

from jostle.accounting.amounts import QUANTA
from jostle.check.scopes import Report
from jostle.check.warnings import of_epsilon
from jostle.doubles import arithmetic
from jostle.syntax import nodes as n
from jostle.syntax.walk import every


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
        case n.Unary(op="-" | "+" as op, operand=operand) if (inner := literal(operand)) is not None:
            return -inner if op == "-" else inner
        case n.Binary(op="+" | "-" | "*" | "/" as op, left=left, right=right):
            one, two = literal(left), literal(right)
            both = one is not None and two is not None and not (op == "/" and two == 0)
            return arithmetic(op, one, two) if both else None  # type: ignore[arg-type]
    return None
