"""What an expression can be before the run: known constants and containers, handles, functions, and two unknowns.

`PUBLIC` is a value of which only this is known: nothing that is done with it alone can charge a source. `TOP`
may hold handles and functions too. Everything else keeps what cost depends on: paths, schemas, bodies, numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from jostle.check.cost.tree import Most, Path, common_prefix, quanta
from jostle.language import facts
from jostle.syntax import nodes as n

MOST_ALTERNATIVES = 6
DEEPEST = 8  # of handles in containers, as in a run


class _Word:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


PUBLIC = _Word("PUBLIC")
TOP = _Word("ANYTHING")
MISSING = _Word("MISSING")


@dataclass(slots=True, eq=False)
class SourceFact:
    """A private source: its names, and its limit where that is known. `vague`: no lower bound may be claimed.

    `single`: what it protects is one row, added or removed.
    """

    name: str
    names: list[str]
    unit: str
    limit: int | None
    delta: int | None
    public_size: bool
    counted_by: str
    inexact: bool = False
    single: bool = False


@dataclass(frozen=True, slots=True)
class Exposure:
    """`agents` are (key, cap) pairs. `joined`: several of its rows may come from one."""

    source: SourceFact
    path: Path = ()
    agents: tuple[tuple[int, int], ...] = ()
    joined: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Handle:
    """A table, cube, column or score. `schema` is None where the columns are not known."""

    kind: str  # "table" | "cube" | "column" | "score"
    exposures: tuple[Exposure, ...]
    schema: dict[str, Any] | None = None
    origin: Hashable | None = None
    whole: bool = False
    name: str = ""  # of a column


@dataclass(frozen=True, slots=True)
class NumberInterval:
    """A number between two others."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Range:
    low: Any
    high: Any
    real: bool


@dataclass(slots=True, eq=False)
class Items:
    """A list or set of items that are all like `item`, from `least` to `most` of them (None: not known)."""

    item: Any
    least: int = 0
    most: int | None = None
    part_of: object | None = None  # the partition, where the items are its [key, part] pairs


@dataclass(slots=True, eq=False)
class Set:
    items: list[Any]


@dataclass(slots=True, eq=False)
class OneOf:
    """One of several values; which one is not known."""

    values: tuple[Any, ...]


@dataclass(slots=True, eq=False)
class LoopVariable:
    """A name's value from before a round of a loop; who reads it is written down in every one of `marks`."""

    value: Any
    marks: tuple[set[str], ...]


@dataclass(slots=True, eq=False)
class Scope:
    parent: Scope | None
    names: dict[str, Any] = field(default_factory=dict)

    def find(self, name: str) -> Any:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return MISSING


@dataclass(slots=True, eq=False)
class Closure:
    name: str
    params: tuple[tuple[str, Any], ...]  # (name, default or MISSING)
    body: n.Block | n.Expr
    scope: Scope


@dataclass(slots=True, eq=False)
class Builtin:
    row: facts.Builtin


@dataclass(slots=True, eq=False)
class External:
    """A kernel of the standard library: it is given no private data, and gives public values."""

    name: str


@dataclass(slots=True, eq=False)
class Part:
    """A Feature, Option or Utility."""

    kind: str
    run: Any


@dataclass(slots=True, eq=False)
class Maker:
    """A ChoiceMaker, or its `pick`."""

    options: Any
    features: Any
    picks: bool = False


@dataclass(slots=True, eq=False)
class Module:
    names: dict[str, Any]


def is_constant(value: Any) -> bool:
    return value is None or isinstance(value, (bool, float, str))


def parts_of(value: Any) -> Sequence[Any] | None:
    """The items of a container of any kind, or None."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, Set):
        return value.items
    if isinstance(value, Items):
        return [value.item]
    if isinstance(value, OneOf):
        return value.values
    return None


def leaves(value: Any) -> Iterator[Any]:
    """All that is in a value, containers opened."""
    waiting = [value]
    while waiting:
        here = waiting.pop()
        inside = parts_of(here)
        if inside is None:
            yield here
        else:
            waiting.extend(inside)


def cannot_charge(value: Any, purity: Callable[[Any], bool] = lambda function: False) -> bool:
    """Whether nothing that is done with this value alone can charge a source."""
    for leaf in leaves(value):
        if is_constant(leaf) or leaf is PUBLIC or isinstance(leaf, (NumberInterval, Range)):
            continue
        if isinstance(leaf, Handle) and not leaf.exposures:
            continue
        if not (isinstance(leaf, (Closure, Builtin, Part)) and purity(leaf)):
            return False
    return True


def widened(value: Any) -> Any:
    return PUBLIC if cannot_charge(value) else TOP


# Handles in values -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReachedSources:
    """The sources that a value reaches, one exposure each. `certain`: just these; `open`: perhaps any source."""

    exposures: tuple[Exposure, ...]
    certain: bool = True
    open: bool = False


def reached_sources(*values: Any) -> ReachedSources:
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
            waiting = [*((v, depth) for v in parts_of(value) or ()), *waiting]
        elif depth > 0:
            waiting = [*((v, depth - 1) for v in parts_of(value) or ()), *waiting]
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
                agents = tuple(dict.fromkeys((*old.agents, *new.agents)))
                result[id(new.source)] = Exposure(new.source, common_prefix([old.path, new.path]), agents)
    return tuple(result.values())


# One of two --------------------------------------------------------------------------------------


def alike(a: Any, b: Any) -> bool:
    """Whether two values are certainly described alike."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if is_constant(a) or isinstance(a, (NumberInterval, Range)):
        return bool(a == b) or (isinstance(a, float) and math.isnan(a) and math.isnan(b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(alike(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(alike(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, Items):
        return (a.least, a.most, a.part_of) == (b.least, b.most, b.part_of) and alike(a.item, b.item)
    if isinstance(a, OneOf):
        return all(any(alike(x, y) for y in b.values) for x in a.values) and len(a.values) == len(b.values)
    if isinstance(a, Set):
        return len(a.items) == len(b.items) and all(alike(x, y) for x, y in zip(a.items, b.items, strict=True))
    if isinstance(a, Handle):
        same = (a.kind, a.exposures, a.origin, a.whole, a.name) == (b.kind, b.exposures, b.origin, b.whole, b.name)
        return same and a.schema == b.schema
    if isinstance(a, Closure):
        return a.body is b.body and a.scope is b.scope
    return isinstance(a, Part) and alike(a.run, b.run)


def join_values(a: Any, b: Any) -> Any:
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
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return {k: join_values(a[k], b[k]) for k in a}
    if isinstance(a, (list, Items)) and isinstance(b, (list, Items)):
        if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            return [join_values(x, y) for x, y in zip(a, b, strict=True)]
        return _joined_items(a, b)
    return _one_of(a, b)


def _joined_loop_variable(a: Any, b: Any) -> LoopVariable:
    marks = [m for x in (a, b) if isinstance(x, LoopVariable) for m in x.marks]
    bare = [x.value if isinstance(x, LoopVariable) else x for x in (a, b)]
    return LoopVariable(join_values(*bare), tuple({id(m): m for m in marks}.values()))


def join_all(values: Sequence[Any]) -> Any:
    result = values[0] if values else PUBLIC
    for value in values[1:]:
        result = join_values(result, value)
    return result


def _joined_items(a: list[Any] | Items, b: list[Any] | Items) -> Items:
    one, two = (x if isinstance(x, Items) else Items(join_all(x) if x else MISSING, len(x), len(x)) for x in (a, b))
    item = join_values(one.item, two.item)
    most = None if one.most is None or two.most is None else max(one.most, two.most)
    return Items(PUBLIC if item is MISSING else item, min(one.least, two.least), most)


def _one_of(a: Any, b: Any) -> Any:
    handles: list[Any] = []
    for value in (a, b):
        for one in value.values if isinstance(value, OneOf) else (value,):
            if not any(alike(one, old) for old in handles):
                handles.append(one)
    return OneOf(tuple(handles)) if len(handles) <= MOST_ALTERNATIVES else TOP


def _is_number(value: Any) -> bool:
    return isinstance(value, (float, NumberInterval))


def ends(value: Any) -> tuple[float, float]:
    """The bounds of a number; of what is not known, all numbers."""
    if isinstance(value, NumberInterval):
        return value.low, value.high
    return (value, value) if isinstance(value, float) else (-math.inf, math.inf)


def in_quanta(value: Any) -> tuple[int, Most]:
    """The bounds of an amount; of what is no number, all amounts."""
    if not isinstance(value, (float, NumberInterval)):
        return 0, math.inf
    low, high = ends(value)
    most: Most = math.inf if high == math.inf else quanta(high) or 0
    return (quanta(low) or 0 if low < math.inf else 0), most
