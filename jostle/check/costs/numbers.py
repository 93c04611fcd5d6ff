"""Operators and functions on values known before the run: what a run computes, or bounds of it, or `PUBLIC`.

Of values that are known the run's own functions are asked. A wrong use, which ends a run, gives `PUBLIC`: nothing after
it is reached. Of numbers between bounds the ends are taken: each operation rounds monotonically, so that a result lies
between the rounded ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from jostle.check.costs import values as val
from jostle.diagnostics import Refusal
from jostle.doubles import arithmetic
from jostle.language.row_functions import ROW_FUNCTIONS, Function
from jostle.run import operators
from jostle.run.evaluator import At
from jostle.run.values import Builtin, JSet


def outcome(work: Callable[..., object], *args: object, **keywords: object) -> object:
    """What a function of the run makes of these values, or what is known of it; `PUBLIC` where it refuses them."""
    try:
        result = work(*args, **keywords)
    except Refusal:
        return val.widened([*args, *keywords.values()])
    if isinstance(result, int) and not isinstance(result, bool):
        return float(result)
    if isinstance(result, (list, dict, JSet)):
        return result if len(result) <= val.MOST_HELD else val.uniform(list(result))
    return (
        result
        if val.is_constant(result) and not (isinstance(result, str) and len(result) > val.MOST_HELD)
        else val.PUBLIC
    )


def of_builtin(function: Builtin, args: Sequence[object], keywords: Mapping[str, object], at: At) -> object:
    """The same of a built-in."""
    more = {"at": at} if function.wants_call else {}

    def work(*args: object, **keywords: object) -> object:
        return operators.guarded(function.name, function.body, args, {**keywords, **more})

    return outcome(work, *args, **keywords)


def transfer_unary(op: str, value: object) -> object:
    if isinstance(value, val.NumberInterval):
        return val.NumberInterval(-value.high, -value.low) if op == "-" else value
    return outcome(operators.unary, op, value) if val.is_known(value) else val.PUBLIC


def transfer_binary(op: str, left: object, right: object) -> object:
    right = list(right) if op in ("in", "not in") and isinstance(right, dict) else right
    if val.is_known(left, right) or (op in "+-" and val.are_single(left, right)):
        return outcome(operators.binary, op, left, right)
    if op not in "+-*/%^":
        return val.PUBLIC  # also where bounds would decide: a number between bounds may be none (NaN)
    if isinstance(left, (float, val.NumberInterval)) and isinstance(right, (float, val.NumberInterval)):
        return _arithmetic(op, left, right)
    if isinstance(left, (list, val.Items)) and op in "+-":
        return _lists(op, left, right)
    return val.widened([left, right])


def _lists(op: str, left: list[object] | val.Items, right: object) -> object:
    """Two lists as one, or a list without some of its items."""
    if op == "+" and isinstance(left, list) and isinstance(right, list):
        return outcome(operators.binary, op, left, right)
    if not isinstance(right, (list, val.Items)):
        return val.widened([left, right])
    sides = (left, right) if op == "+" else (left,)
    items = val.join_all([x for side in sides for x in (side if isinstance(side, list) else [side.item])])
    least, most = zip(*[(len(s), len(s)) if isinstance(s, list) else (s.least, s.most) for s in sides], strict=True)
    return val.Items(items, sum(least) if op == "+" else 0, None if None in most else sum(map(int, most)))


def distinct(items: Sequence[object]) -> object:
    """The set of these items; where they may be equal, between one and all of them."""
    return (
        JSet(items) if val.are_single(list(items)) else val.Items(val.join_all(items), min(1, len(items)), len(items))
    )


def _arithmetic(op: str, left: object, right: object) -> object:
    (a, b), (c, d) = val.ends(left), val.ends(right)
    if op not in "+-*/" or (op == "/" and c <= 0 <= d):
        return val.ANY_NUMBER
    try:
        corners = [arithmetic(op, x, y) for x in (a, b) for y in (c, d)]
    except Refusal:
        return val.ANY_NUMBER
    return val.ANY_NUMBER if any(map(math.isnan, corners)) else val.NumberInterval(min(corners), max(corners))


def function(name: str, args: Sequence[object]) -> object:
    """A function of numbers, of which some are known by bounds."""
    operation = ROW_FUNCTIONS.get(name)
    rises = operation is not None and operation.rises and operation.number is not None
    if operation is None or not rises:
        return val.ANY_NUMBER if _are_numbers(args) else val.PUBLIC
    if operation.many and len(args) == 1 and isinstance(args[0], list):
        args = args[0]
    bounds = [val.ANY_NUMBER if v is val.PUBLIC and len(args) > 1 else v for v in args]
    exact = operation.many or all(isinstance(v, float) for v in args[operation.arity :])
    return _between_ends(operation, bounds) if exact and _are_numbers(bounds) else val.PUBLIC


def _between_ends(operation: Function, args: Sequence[object]) -> object:
    """What a function that rises with each of its operands gives between their ends."""
    try:
        low, high = (float(operation.number(*[val.ends(v)[side] for v in args])) for side in (0, 1))  # type: ignore[misc]
    except (ValueError, OverflowError, TypeError):
        return val.ANY_NUMBER
    return val.ANY_NUMBER if math.isnan(low) or math.isnan(high) else val.NumberInterval(low, high)


def _are_numbers(args: Sequence[object]) -> bool:
    return bool(args) and all(isinstance(v, (float, val.NumberInterval)) for v in args)


def transfer_fold(name: str, items: Sequence[object], values: Sequence[object]) -> object:
    """`max over` and its kin."""
    if val.is_known(values):
        return outcome(operators.fold, name, items, values)
    if name.startswith("arg"):
        return val.join_all(items)
    return val.PUBLIC if name == "sum" else function(name, values)
