"""What an expression can be before the run: constants, containers, handles, functions, and what is not known.

`PUBLIC` is a value of which only this is known: nothing that is done with it alone can charge a source. `TOP`
may hold handles and functions too. Everything else keeps what costs depend on: paths, schemas, bodies and numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from datetime import date
from enum import Enum
from typing import Any

from msgspec import Struct

from jostle.accounting import composition
from jostle.accounting.amounts import Path
from jostle.diagnostics import Refusal
from jostle.plan.plan import Open
from jostle.privacy.transformations.joins import common_prefix
from jostle.run.scope import MISSING
from jostle.run.sequences import Period
from jostle.run.values import Function, Interval, JSet, Part, Record, is_vector, same
from jostle.syntax import nodes as n

DEEPEST = 8  # of handles in containers, as in a run

Most = int | float  # quanta, or infinity


class Unknown(Enum):
    """Values of which little is known."""

    PUBLIC = "a public value"
    TOP = "any value"


PUBLIC, TOP = Unknown


class Generic:
    """A part that stands for each part of its partition: what is spent on it, any part may have."""


EACH = Generic()  # of every partition; others stand for the part that a loop is at


# Handles -----------------------------------------------------------------------------------------


class SourceFact(Struct, eq=False):
    """A private source: its names, and its limit where that is known. `inexact`: no lower bound may be claimed.

    `single`: what it protects is one row, added or removed. `persons` are the columns that tell whose a row is.
    """

    declared: n.Private
    names: list[str]
    unit: str
    limit: int | None
    delta: int | None
    public_size: bool
    counted_by: str
    inexact: bool = False
    single: bool = False
    persons: tuple[str, ...] = ()


class Exposure(Struct, frozen=True):
    """`agents` are (key, cap) pairs. `joined`: several of its rows may come from one."""

    source: SourceFact
    path: Path = ()
    agents: tuple[tuple[int, int], ...] = ()
    joined: bool = False


class Handle(Struct, frozen=True, eq=False):
    """A table, cube, vectors, column or score. `schema` is None where the columns are not known."""

    kind: str  # "table" | "records" | "cube" | "vectors" | "column" | "score"
    exposures: tuple[Exposure, ...]
    schema: dict[str, object] | None = None
    origin: Hashable | None = None
    whole: bool = False
    name: str = ""  # of a column


# Numbers and containers --------------------------------------------------------------------------


class NumberInterval(Struct, frozen=True):
    low: float
    high: float


ANY_NUMBER = NumberInterval(-math.inf, math.inf)


class Items(Struct, eq=False):
    """A list or set of items that are all like `item`, from `least` to `most` of them (None: not known)."""

    item: object
    least: int = 0
    most: int | None = None
    part_of: object | None = None  # the partition, where the items are its [key, part] pairs


class OneOf(Struct, eq=False):
    """One of several values; which one is not known."""

    values: tuple[object, ...]


# Choices -----------------------------------------------------------------------------------------


class Maker(Struct, eq=False):
    """A ChoiceMaker, or its `pick`; an advisor has the function that is called with it and the arguments."""

    options: object
    features: object
    picks: bool = False
    call: object = None
    score: object = None
    """Of one that runs all options, the Utility that scores their answers."""


# What is in a value ------------------------------------------------------------------------------

MOST_HELD = 20_000
"""The items of a list, or the letters of a text, that are followed one by one."""


def is_constant(value: object) -> bool:
    """Whether this is a value of a run that holds no others."""
    return value is None or isinstance(value, (bool, float, str, date, Interval, Period, Open)) or is_vector(value)


def is_known(*values: object) -> bool:
    """Whether all of these are what they are in a run, public throughout, and not too large to go through."""
    if all(map(is_constant, values)):  # nearly always
        return True
    return all(map(is_definite, values)) and _all_are(is_constant, values)


def are_single(*values: object) -> bool:
    """Whether these are containers of which it is known what is in them, by value or, of handles, by identity."""
    return all(isinstance(value, (list, JSet)) for value in values) and _all_are(_is_single, values)


def _is_single(value: object) -> bool:
    if isinstance(value, Handle):
        return not any(isinstance(part, Generic) for e in value.exposures for _, part in e.path)
    return is_constant(value) or isinstance(value, (Function, Part))


def _all_are(test: Callable[[object], bool], values: Sequence[object]) -> bool:
    return all(many < MOST_HELD and test(leaf) for many, leaf in enumerate(leaves(list(values))))


def is_definite(value: object) -> bool:
    """Whether this is a public value of a run, but perhaps for what is in it."""
    return isinstance(value, (list, dict, JSet)) or is_constant(value)


def items_in(value: object) -> Sequence[object] | None:
    """The items of a container of any kind, or None."""
    if not isinstance(value, (list, dict, JSet, Items, OneOf)):  # nearly always
        return None
    match value:
        case list():
            return value
        case dict():
            return list(value.values())
        case JSet():
            return value.items
        case Items():
            return [value.item]
        case OneOf():
            return value.values


def leaves(value: object) -> Iterator[object]:
    """All that is in a value, containers opened, each once."""
    inside = items_in(value)
    if inside is None:
        yield value
        return
    waiting, opened = list(inside), {id(value)}
    while waiting:
        here = waiting.pop()
        inside = items_in(here)
        if inside is None:
            yield here
        elif id(here) not in opened:
            opened.add(id(here))
            waiting.extend(inside)


def cannot_charge(value: object) -> bool:
    """Whether nothing that is done with this value alone can charge a source."""
    for leaf in leaves(value):
        if is_constant(leaf) or leaf is PUBLIC or isinstance(leaf, NumberInterval):
            continue
        if not (isinstance(leaf, Handle) and not leaf.exposures):
            return False
    return True


def widened(value: object) -> Unknown:
    return PUBLIC if cannot_charge(value) else TOP


class ReachedSources(Struct, frozen=True):
    """The sources that a value reaches, one exposure each. `certain`: just these; `open`: perhaps any source."""

    exposures: tuple[Exposure, ...]
    certain: bool = True
    open: bool = False


def reached_sources(*values: object) -> ReachedSources:
    handles: list[Handle] = []
    certain, any_source = True, False
    waiting = [(value, DEEPEST + 1) for value in values]
    while waiting:
        value, depth = waiting.pop(0)
        if isinstance(value, Handle):
            handles.append(value)
        elif value is TOP:
            any_source = True
        elif isinstance(value, (OneOf, Items)) and not cannot_charge(value):
            certain = False
            waiting = [*((v, depth) for v in items_in(value) or ()), *waiting]
        elif depth > 0:
            waiting = [*((v, depth - 1) for v in items_in(value) or ()), *waiting]
    return ReachedSources(joined_exposures(handles), certain and not any_source, any_source)


def joined_exposures(handles: Sequence[Handle]) -> tuple[Exposure, ...]:
    """One exposure a source, at the common prefix of its paths."""
    result: dict[int, Exposure] = {}
    for handle in handles:
        for new in handle.exposures:
            old = result.get(id(new.source))
            if old is None:
                result[id(new.source)] = new
            else:
                path, agents = common_prefix(old.path, new.path), tuple(dict.fromkeys((*old.agents, *new.agents)))
                result[id(new.source)] = Exposure(new.source, path, agents, old.joined or new.joined)
    return tuple(result.values())


# Amounts -----------------------------------------------------------------------------------------


def quanta(value: float) -> int | None:
    """An amount in quanta; None where a run would refuse it."""
    try:
        return composition.quanta(value)
    except Refusal:
        return None


def ends(value: object) -> tuple[float, float]:
    """The bounds of a number; of what is not known, all numbers."""
    if isinstance(value, NumberInterval):
        return value.low, value.high
    return (value, value) if isinstance(value, float) else (-math.inf, math.inf)


def in_quanta(value: object) -> tuple[int, Most]:
    """The bounds of an amount; of what is no number, all amounts."""
    if not isinstance(value, (float, NumberInterval)):
        return 0, math.inf
    low, high = ends(value)
    most: Most = math.inf if high == math.inf else quanta(high) or 0
    return (quanta(low) or 0 if low < math.inf else 0), most


def protected(table: object) -> list[str]:
    """The columns by which the declarations of a table tell its persons apart, where each has one."""
    exposures = table.exposures if isinstance(table, Handle) else ()
    units = [e.source.declared.protecting for e in exposures]
    return [one.columns[0] for one in units if one is not None and len(one.columns) == 1]


# One value that stands for several -----------------------------------------------------------------

MOST_ALTERNATIVES = 6
MOST_ROUNDS = 2_000  # of one loop that are followed one by one


def alike(a: object, b: object) -> bool:
    """Whether two values are certainly described alike."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, NumberInterval):
        return a == b
    if is_constant(a):
        return same(a, b) or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))
    parts = _ALIKE.get(type(a))
    return parts is not None and parts(a, b)


def _same_alternatives(a: OneOf, b: OneOf) -> bool:
    return len(a.values) == len(b.values) and all(any(alike(x, y) for y in b.values) for x in a.values)


def _same_handles(a: Handle, b: Handle) -> bool:
    same = (a.kind, a.exposures, a.origin, a.whole, a.name) == (b.kind, b.exposures, b.origin, b.whole, b.name)
    return same and a.schema == b.schema


_ALIKE: dict[type, Callable[[Any, Any], bool]] = {
    Record: lambda a, b: a.keys() == b.keys() and all(alike(a[k], b[k]) for k in a),
    list: lambda a, b: len(a) == len(b) and all(map(alike, a, b)),
    JSet: lambda a, b: alike(a.items, b.items),
    Items: lambda a, b: (a.least, a.most, a.part_of) == (b.least, b.most, b.part_of) and alike(a.item, b.item),
    OneOf: _same_alternatives,
    Handle: _same_handles,
    Function: lambda a, b: a.body is b.body and a.scope is b.scope,
    Part: lambda a, b: alike(a.run, b.run),
}
"""Of kinds of values whose parts are compared."""


def join(a: object, b: object) -> object:
    """A value that stands for both."""
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


def _joined_parts(a: object, b: object) -> object:
    """The same of containers, part by part, and of handles."""
    match a, b:
        case dict(), dict() if a.keys() == b.keys():
            return Record({k: join(a[k], b[k]) for k in a})
        case list(), list() if len(a) == len(b):
            return list(map(join, a, b))
        case ((list() | Items()), (list() | Items())):
            return _joined_items(a, b)
    return _one_of(a, b)


def join_all(values: Sequence[object]) -> object:
    result = values[0] if values else PUBLIC
    for value in values[1:]:
        result = join(result, value)
    return result


def each_way(value: object, make: Callable[[Handle], object]) -> object:
    """What is made of a handle, of which it may not be known which one it is."""
    if isinstance(value, OneOf):
        return join_all([each_way(one, make) for one in value.values])
    return make(value) if isinstance(value, Handle) else widened(value)


def joined_names(a: dict[str, object], b: dict[str, object]) -> dict[str, object]:
    return {name: join(a.get(name, MISSING), b.get(name, MISSING)) for name in dict.fromkeys((*a, *b))}


def _joined_items(a: list[object] | Items, b: list[object] | Items) -> Items:
    one, two = (x if isinstance(x, Items) else Items(join_all(x) if x else MISSING, len(x), len(x)) for x in (a, b))
    item = join(one.item, two.item)
    most = None if one.most is None or two.most is None else max(one.most, two.most)
    return Items(PUBLIC if item is MISSING else item, min(one.least, two.least), most)


def _one_of(a: object, b: object) -> object:
    alternatives: list[object] = []
    for value in (a, b):
        for one in value.values if isinstance(value, OneOf) else (value,):
            if not any(alike(one, old) for old in alternatives):
                alternatives.append(one)
    return OneOf(tuple(alternatives)) if len(alternatives) <= MOST_ALTERNATIVES else TOP


def _is_number(value: object) -> bool:
    return isinstance(value, (float, NumberInterval))


# Containers that are walked through --------------------------------------------------------------


def walked(value: object) -> list[object] | Items:
    """The items of a container, or what they all are like."""
    match value:
        case list():
            return value if len(value) <= MOST_ROUNDS else uniform(value)
        case dict():
            return list(value)
        case JSet():
            return value.items
        case Items():
            return value
        case Period() if value.count <= MOST_ROUNDS:
            return list(value)
        case Interval(real=False) if value.low.is_integer() and value.high.is_integer():
            many = int(value.count)
            return list(value) if many <= MOST_ROUNDS else numbers_between(value.low, value.high, many)
        case OneOf():
            return Items(widened(value))
    return Items(widened(value) if cannot_charge(value) else TOP)


def uniform(items: list[object]) -> Items:
    """As many items, of which only what is true of each is known."""
    return Items(join_all(items), len(items), len(items))


def numbers_between(low: float, high: float, least: int = 0) -> Items:
    """The whole numbers between two ends, which may be bounds themselves."""
    most = max(0, math.floor(high) - math.floor(low) + 1) if math.isfinite(low) and math.isfinite(high) else None
    return Items(NumberInterval(low, high), least, most)
