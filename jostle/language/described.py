"""What the public description of a column rules out: a constant that no row can equal or exceed.

Such a comparison is answered by noise about nothing, so it is told before anything runs. Only constants that stand in
the program's text are looked at: a number that a program works out may well lie beyond a bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from jostle.diagnostics import did_you_mean
from jostle.language.operations import COMPARISONS
from jostle.syntax import nodes as n

MOST_LISTED = 8
DOMAINS_ARE = 'a range `0..99`, categories `{"a", "b"}`, `{true, false}`, or `text integer real date time`'
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Listed(Struct, frozen=True):
    """A description by values, all texts or all numbers."""

    values: Sequence[str | float]


class Bounded(Struct, frozen=True):
    """A description by two ends; `whole`: of whole numbers alone."""

    low: float
    high: float
    whole: bool


def literal(node: n.Expr) -> str | float | None:
    """The text or number that is written here, or None."""
    if isinstance(node, n.Unary) and node.op == "-" and isinstance(node.operand, n.Number):
        return -node.operand.value
    return node.value if isinstance(node, (n.Number, n.String)) else None


def literals(node: n.Expr) -> list[tuple[n.Expr, str | float]]:
    """Those of a list or set, each with its place."""
    items = node.items if isinstance(node, (n.ListOf, n.SetOf)) else (node,)
    pairs = ((item, literal(item)) for item in items)
    return [(item, value) for item, value in pairs if value is not None]


def compared(node: n.Binary) -> list[tuple[n.Expr, str, n.Expr, str | float]]:
    """(expression, operator, constant's place, constant) of a comparison with constants that are written there."""
    if node.op in ("in", "not in"):
        if isinstance(node.right, n.Range):
            return []
        return [(node.left, "==", item, value) for item, value in literals(node.right)]
    if node.op == "between" and isinstance(node.right, n.ListOf):
        return [
            (node.left, op, end, value)
            for op, end in zip((">=", "<="), node.right.items, strict=True)
            if (value := literal(end)) is not None
        ]
    if node.op not in COMPARISONS:
        return []
    left, right = literal(node.left), literal(node.right)
    pairs: list[tuple[n.Expr, str, n.Expr, str | float]] = []
    if right is not None and left is None:
        pairs.append((node.left, node.op, node.right, right))
    if left is not None and right is None:
        pairs.append((node.right, FLIPPED.get(node.op, node.op), node.left, left))
    return pairs


def ruled_out(name: str, op: str, value: str | float, known: Listed | Bounded) -> tuple[str, str] | None:
    """Why `name OP value` can hold for no row (or for all, of `!=`), and the way out; None where it may."""
    if isinstance(known, Listed):
        if op not in ("==", "!=") or not known.values or isinstance(value, str) != isinstance(known.values[0], str):
            return None
        if value in known.values:
            return None
        listed = ", ".join(map(shown, known.values[:MOST_LISTED]))
        more = ", …" if len(known.values) > MOST_LISTED else ""
        return f"`{name}` is never {shown(value)}: its description does not list it", _close(value, known.values) or (
            f"it is one of {listed}{more}"
        )
    if isinstance(value, str):
        return None
    beyond = value > known.high and op in ("==", "!=", ">", ">=")
    beneath = value < known.low and op in ("==", "!=", "<", "<=")
    if beyond or beneath:
        side = "above" if beyond else "below"
        is_it = f"is never {shown(value)}" if op in ("==", "!=") else f"is never {side} {shown(value)}"
        return f"`{name}` {is_it}", f"it is described as {shown(known.low)}..{shown(known.high)}"
    if known.whole and op in ("==", "!=") and not float(value).is_integer():
        return f"`{name}` is never {shown(value)}", "its description has whole numbers alone"
    return None


def ways(name: str, table: str | None) -> str:
    """How to say which is meant of a column and a variable of one name; `table`: what the column's is called."""
    column = f"`{table}.{name}`" if table else f"`t.{name}` after `from … as t`"
    return f"write {column} for the column, `@{name}` for the variable"


def shown(value: str | float) -> str:
    return f'"{value}"' if isinstance(value, str) else f"{value:.12g}"


def _close(value: str | float, values: Sequence[str | float]) -> str:
    if not isinstance(value, str):
        return ""
    texts = [text for text in values if isinstance(text, str)]
    same = [text for text in texts if text.strip().casefold() == value.strip().casefold()]
    hint = f"did you mean `{same[0]}`?" if same else did_you_mean(value, texts)
    return hint.replace("`", '"')
