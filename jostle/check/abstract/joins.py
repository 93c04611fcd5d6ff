"""One value that stands for several, and what a container is walked through as."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from jostle.check.abstract.values import (
    MISSING,
    PUBLIC,
    TOP,
    Closure,
    Domain,
    Handle,
    Items,
    Kind,
    LoopVariable,
    NumberInterval,
    OneOf,
    Part,
    Range,
    Set,
    cannot_charge,
    ends,
    is_constant,
    widened,
)  # fmt: skip
from jostle.records import replace

MOST_ALTERNATIVES = 6
MOST_ROUNDS = 2_000  # of one loop that are followed one by one


def alike(a: Any, b: Any) -> bool:
    """Whether two values are certainly described alike."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if is_constant(a) or isinstance(a, (NumberInterval, Range, Domain, Kind)):
        return bool(a == b) or (isinstance(a, float) and math.isnan(a) and math.isnan(b))
    same = _ALIKE.get(type(a))
    return same is not None and same(a, b)


def _same_alternatives(a: OneOf, b: OneOf) -> bool:
    return len(a.values) == len(b.values) and all(any(alike(x, y) for y in b.values) for x in a.values)


def _same_handles(a: Handle, b: Handle) -> bool:
    same = (a.kind, a.exposures, a.origin, a.whole, a.name) == (b.kind, b.exposures, b.origin, b.whole, b.name)
    return same and a.schema == b.schema


_ALIKE: dict[type, Callable[[Any, Any], bool]] = {
    dict: lambda a, b: a.keys() == b.keys() and all(alike(a[k], b[k]) for k in a),
    list: lambda a, b: len(a) == len(b) and all(map(alike, a, b)),
    Set: lambda a, b: alike(a.items, b.items),
    Items: lambda a, b: (a.least, a.most, a.part_of) == (b.least, b.most, b.part_of) and alike(a.item, b.item),
    OneOf: _same_alternatives,
    Handle: _same_handles,
    Closure: lambda a, b: a.body is b.body and a.scope is b.scope,
    Part: lambda a, b: alike(a.run, b.run),
}
"""Of kinds of values whose parts are compared."""


def join(a: object, b: object) -> Any:
    """A value that stands for both."""
    if isinstance(a, LoopVariable) or isinstance(b, LoopVariable):
        return _joined_loop_variable(a, b)
    if a is MISSING or alike(a, b):
        return b
    if b is MISSING:
        return a
    if a is TOP or b is TOP:
        return TOP
    if _is_number(a) and _is_number(b):
        (low, high), (least, most) = ends(a), ends(b)
        return PUBLIC if math.isnan(low + high + least + most) else NumberInterval(min(low, least), max(high, most))
    if cannot_charge(a) and cannot_charge(b) and not (isinstance(a, (list, dict, Items)) and isinstance(b, type(a))):
        return PUBLIC
    return _joined_parts(a, b)


def _joined_parts(a: object, b: object) -> Any:
    """The same of containers, part by part, and of handles."""
    match a, b:
        case dict(), dict() if a.keys() == b.keys():
            return {k: join(a[k], b[k]) for k in a}
        case list(), list() if len(a) == len(b):
            return list(map(join, a, b))
        case ((list() | Items()), (list() | Items())):
            return _joined_items(a, b)
        case Handle(), Handle() if a.trail and b.trail:
            return replace(a, schema=None)  # followed for its label alone
    return _one_of(a, b)


def _joined_loop_variable(a: object, b: object) -> LoopVariable:
    marks = [m for x in (a, b) if isinstance(x, LoopVariable) for m in x.marks]
    return LoopVariable(join(bare(a), bare(b)), tuple({id(m): m for m in marks}.values()))


def bare(value: object) -> Any:
    """A value without the marks of loops."""
    return value.value if isinstance(value, LoopVariable) else value


def join_all(values: Sequence[Any]) -> Any:
    result = values[0] if values else PUBLIC
    for value in values[1:]:
        result = join(result, value)
    return result


def joined_names(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    return {name: join(a.get(name, MISSING), b.get(name, MISSING)) for name in dict.fromkeys((*a, *b))}


def _joined_items(a: list[Any] | Items, b: list[Any] | Items) -> Items:
    one, two = (x if isinstance(x, Items) else Items(join_all(x) if x else MISSING, len(x), len(x)) for x in (a, b))
    item = join(one.item, two.item)
    most = None if one.most is None or two.most is None else max(one.most, two.most)
    return Items(PUBLIC if item is MISSING else item, min(one.least, two.least), most)


def _one_of(a: object, b: object) -> Any:
    alternatives: list[Any] = []
    for value in (a, b):
        for one in value.values if isinstance(value, OneOf) else (value,):
            if not any(alike(one, old) for old in alternatives):
                alternatives.append(one)
    return OneOf(tuple(alternatives)) if len(alternatives) <= MOST_ALTERNATIVES else TOP


def _is_number(value: object) -> bool:
    return isinstance(value, (float, NumberInterval))


# Containers that are walked through --------------------------------------------------------------


def walked(value: Any) -> list[Any] | Items:
    """The items of a container, or what they all are like."""
    match value:
        case list():
            return value if len(value) <= MOST_ROUNDS else uniform(value)
        case dict():
            return list(value)
        case Set():
            return value.items
        case Items():
            return value
        case Range():
            return _whole_range(value)
        case OneOf():
            return Items(widened(value))
    return Items(widened(value) if cannot_charge(value) else TOP)


def uniform(items: list[Any]) -> Items:
    """As many items, of which only what is true of each is known."""
    return Items(join_all(items), len(items), len(items))


def _whole_range(value: Range) -> list[Any] | Items:
    (low, _), (_, high) = ends(value.low), ends(value.high)
    if not (math.isfinite(low) and math.isfinite(high)):
        return Items(PUBLIC)
    count = max(0, math.floor(high) - math.floor(low) + 1)
    if isinstance(value.low, float) and isinstance(value.high, float):
        if count <= MOST_ROUNDS:
            return [float(i) for i in range(int(low), int(high) + 1)]
        return Items(NumberInterval(low, high), count, count)
    return Items(NumberInterval(low, high), 0, count)
