"""Operators and functions on values known before the run: what a run computes, or bounds of it, or `PUBLIC`.

Follows `run.operators`. A wrong use, which ends a run, gives `PUBLIC`: nothing after it is reached. Bounds are taken
at the ends: each operation rounds monotonically, so that a result lies between the rounded ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from jostle.diagnostics import Refusal
from jostle.doubles import arithmetic, folded, ordered, total
from jostle.language.operations import ROW_FUNCTIONS
from jostle.run.values import Function, Part
from jostle.tools.costs.values import (
    ANY_NUMBER,
    PUBLIC,
    Handle,
    Items,
    NumberInterval,
    Range,
    Set,
    ends,
    is_constant,
    join_all,
    widened,
)  # fmt: skip

MOST_COMPARED = 200
MOST_HELD = 20_000
"""The items of a list, or the letters of a text, that are followed one by one."""


def certainly_same(a: object, b: object) -> bool | None:
    """`==`, or None where it is not known."""
    if not (is_constant(a) and is_constant(b)):
        return None
    return type(a) is type(b) and bool(a == b)


def transfer_unary(op: str, value: object) -> object:
    if isinstance(value, NumberInterval):
        return NumberInterval(-value.high, -value.low) if op == "-" else value
    if isinstance(value, float):
        return -value if op == "-" else value
    return PUBLIC


def transfer_binary(op: str, left: object, right: object) -> object:
    test = _TESTS.get(op)
    if test is not None:
        return test(op, left, right)
    if isinstance(left, (float, NumberInterval)) and isinstance(right, (float, NumberInterval)):
        return _arithmetic(op, left, right)
    if op == "+" and isinstance(left, str) and isinstance(right, str):
        return left + right if len(left) + len(right) <= MOST_HELD else PUBLIC
    if isinstance(left, Set):
        return _sets(op, left, right)
    if isinstance(left, (list, Items)) and op in "+-":
        return _lists(op, left, right)
    return widened([left, right])


def _equality(op: str, left: object, right: object) -> object:
    equal = certainly_same(left, right)
    return PUBLIC if equal is None else equal == (op == "==")


def _contained(op: str, left: object, right: object) -> object:
    answer = _membership(right, left)
    return PUBLIC if answer is None else answer == (op == "in")


def _lists(op: str, left: list[object] | Items, right: object) -> object:
    """Two lists as one, or a list without the items of another."""
    gone = right.items if isinstance(right, Set) else right
    if isinstance(left, list) and isinstance(gone, list) and op == "-":
        return _without(left, gone)
    if not isinstance(right, (list, Items)):
        return widened([left, right])
    if isinstance(left, list) and isinstance(right, list):
        both = [*left, *right]
        return both if len(both) <= MOST_HELD else Items(join_all(both), len(both), len(both))
    return Items(join_all([x for side in ((left, right) if op == "+" else (left,)) for x in _items(side)]))


def _items(value: list[object] | Items) -> list[object]:
    return value if isinstance(value, list) else [value.item]


def distinct(items: Sequence[object]) -> Set | Items:
    """The set of these items; where they may be equal, between one and all of them."""
    if all(is_constant(item) for item in items):
        return Set(list({(type(item), item): item for item in items}.values()))
    result: list[object] = []
    for item in items:
        if any(item is old or certainly_same(item, old) for old in result):
            continue
        result.append(item)
        if len(result) > MOST_COMPARED or any(
            certainly_same(item, old) is None and not _by_identity(item, old) for old in result[:-1]
        ):
            return Items(join_all(items), 1, len(items))
    return Set(result)


def _sets(op: str, left: Set, right: object) -> object:
    other = right.items if isinstance(right, Set) else right
    if not isinstance(other, list) or op not in "+-":
        return widened([left, right])
    if op == "+":
        return distinct([*left.items, *other])
    rest = _without(left.items, other)
    return Set(rest) if isinstance(rest, list) else rest


def _without(items: list[object], gone: list[object]) -> object:
    rest, unsure = [], False
    for item in items:
        if any(item is g or certainly_same(item, g) for g in gone):
            continue
        unsure = unsure or any(certainly_same(item, g) is None and not _by_identity(item, g) for g in gone)
        rest.append(item)
    return Items(join_all(rest), 0, len(rest)) if unsure else rest


def _by_identity(a: object, b: object) -> bool:
    """Two things that a run tells apart by identity: different here, different there."""
    kinds = (Handle, Function, Part)
    return (isinstance(a, kinds) or is_constant(a)) and (isinstance(b, kinds) or is_constant(b))


def _membership(container: object, item: object) -> bool | None:
    if isinstance(container, Set):
        container = container.items
    if isinstance(container, dict):
        return item in container if isinstance(item, str) else None
    if isinstance(container, str) and isinstance(item, str):
        return item in container
    if isinstance(container, Range) and isinstance(container.low, float) and isinstance(container.high, float):
        return container.low <= item <= container.high if isinstance(item, float) else None
    if not isinstance(container, list):
        return None
    answer = [certainly_same(x, item) for x in container]
    return True if True in answer else None if None in answer else False


def _ordered(op: str, left: object, right: object) -> object:
    if isinstance(left, str | float) and type(left) is type(right):
        return ordered(op, left, right)
    return PUBLIC  # also where bounds would decide: a number between bounds may be none (NaN)


def _arithmetic(op: str, left: object, right: object) -> object:
    if isinstance(left, float) and isinstance(right, float):
        result = _exact(op, left, right)
        return ANY_NUMBER if result is None else result
    (a, b), (c, d) = ends(left), ends(right)
    if op not in "+-*/" or (op == "/" and c <= 0 <= d):
        return ANY_NUMBER
    corners = [_exact(op, x, y) for x in (a, b) for y in (c, d)]
    values_at_corners = [x for x in corners if x is not None and not math.isnan(x)]
    return NumberInterval(min(values_at_corners), max(values_at_corners)) if len(values_at_corners) == 4 else ANY_NUMBER


def _exact(op: str, a: float, b: float) -> float | None:
    """None where a run would refuse it."""
    try:
        return arithmetic(op, a, b)
    except Refusal:
        return None


# Functions ---------------------------------------------------------------------------------------


def function(name: str, args: list[object]) -> object:
    """A builtin on numbers; where it is not followed, `PUBLIC`, or any number."""
    result = _function(name, args)
    return ANY_NUMBER if result is PUBLIC and _are_numbers(args) else result


def _function(name: str, args: list[object]) -> object:
    if name == "sum" and len(args) == 1 and isinstance(args[0], list) and _are_exact(args[0]):
        return total(args[0])
    operation = ROW_FUNCTIONS.get(name)
    if operation is None or operation.number is None or not operation.rises:
        return PUBLIC
    if operation.many and len(args) == 1 and isinstance(args[0], list):
        args = args[0]
    if len(args) > 1:
        args = [ANY_NUMBER if v is PUBLIC else v for v in args]
    if not _are_numbers(args) or not (operation.many or _are_exact(args[operation.arity :])):
        return PUBLIC
    low, high = _at_ends(operation.number, args, 0), _at_ends(operation.number, args, 1)
    if math.isnan(low) or math.isnan(high):
        return PUBLIC
    return low if _are_exact(args) else NumberInterval(low, high)


def _are_exact(args: list[object]) -> bool:
    return all(isinstance(v, float) for v in args)


def _are_numbers(args: list[object]) -> bool:
    return bool(args) and all(isinstance(v, (float, NumberInterval)) for v in args)


def _at_ends(function: Callable[..., float], args: list[object], side: int) -> float:
    """A function of the lower or of the upper ends; no number where it gives none."""
    try:
        return float(function(*[ends(v)[side] for v in args]))
    except (ValueError, OverflowError, TypeError):
        return math.nan


def transfer_fold(name: str, items: list[object], values: list[object]) -> object:
    """`max over` and its kin."""
    if not values:
        return 0.0 if name == "sum" else PUBLIC
    doubles = [v for v in values if isinstance(v, float)]
    if len(doubles) == len(values):
        return folded(name, items, doubles)
    if name.startswith("arg"):
        return join_all(items)
    return PUBLIC if name == "sum" else function(name, values)


_TESTS: dict[str, Callable[[str, object, object], object]] = {
    "==": _equality, "!=": _equality, "in": _contained, "not in": _contained,
    **dict.fromkeys(("<", "<=", ">", ">="), _ordered),
    **dict.fromkeys(("between", "not between", "like", "not like"), lambda op, left, right: PUBLIC),
}  # fmt: skip
