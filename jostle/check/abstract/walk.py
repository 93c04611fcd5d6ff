"""What is asked of a walk before a run: names, paths, loops, allotments and charges, and what lies outside a program.

`cost.explorer` follows paths, rounds of loops and charges. What each form does to what is known of values is in
`interpreter`, `expressions`, `calls` and `rows`. Nothing is opened and no data are read.

One value that stands for several, and what a container is walked through as.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jostle.check.abstract.values import (
    MISSING,
    PUBLIC,
    TOP,
    Builtin,
    Closure,
    Domain,
    Handle,
    Items,
    LoopVariable,
    Maker,
    Most,
    NumberInterval,
    OneOf,
    Part,
    Range,
    ReachedSources,
    Scope,
    Set,
    SourceFact,
    cannot_charge,
    ends,
    is_constant,
    widened,
)
from jostle.check.scopes import bound_in
from jostle.language.builtins import BUILTINS, brought
from jostle.language.facts import Gives
from jostle.source import Span
from jostle.syntax import nodes as n

NO_SOURCES = ReachedSources(())
Bounds = tuple[int, Most, Most]
"""The least and the most of an amount, and the most of its delta."""
Identity = Callable[[str, list[Any]], Hashable]


def literal_identity(kind: str, args: list[Any]) -> Hashable:
    """The identity of a source as it is written: None where it is not known."""
    if len(args) == 1 and isinstance(args[0], str):
        return (kind, args[0])
    rows = args and isinstance(args[0], list) and not any(isinstance(item, str) for item in args[0])
    return object() if rows else None


@dataclass(slots=True)
class World:
    """What lies outside a program: modules, files by identity, settings. It opens no data."""

    load_module: Callable[[tuple[str, ...]], n.Program | None]
    identity: Identity = literal_identity
    settings: Mapping[str, Any] = field(default_factory=dict)
    planned: Mapping[Span, int] = field(default_factory=dict)
    """What wanted errors of `jointly` blocks take, in quanta, by where they are written; as far as it is known."""
    _names: dict[tuple[str, ...], set[str]] = field(default_factory=dict)

    def names(self, use: n.Use) -> Collection[str]:
        """The names that a `use` binds."""
        if use.path not in self._names:
            self._names[use.path] = {use.path[-1], *brought(use.path)}  # for modules that use each other
            tree = self.load_module(use.path)
            if tree is not None:
                self._names[use.path] |= set(bound_in(tree.body, self.names))
        return self._names[use.path]

    def parameter(self, name: str, default: object) -> Any:
        """The value of a `param`."""
        value = self.settings.get(name)
        if value is None or (isinstance(value, str) and isinstance(default, str)):
            return default if value is None else value
        if isinstance(value, str) and isinstance(default, bool):
            return value == "true"
        try:
            return float(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else PUBLIC
        except ValueError:
            return PUBLIC


def universe(builtins: Collection[str]) -> Scope:
    """The names that every program knows; one that the table does not have may do anything."""
    return Scope(None, {name: _meaning(name) for name in builtins})


def _meaning(name: str) -> Any:
    row = BUILTINS.get(name)
    if row is None:
        return TOP
    if row.gives is Gives.CONSTANT:
        return float(getattr(math, name))
    return Domain(name) if row.gives is Gives.DOMAIN else Builtin(row)


class Walk(ABC):
    """Evaluates expressions and follows statements. Nothing is charged, and all conditions may hold or not, unless a
    walk says more."""

    most_parts = 400  # of one partition that are told apart

    def __init__(self, world: World) -> None:
        self.world = world
        self.sources: list[SourceFact] = []
        self.identities: list[tuple[SourceFact, Hashable]] = []
        self.agents = 0
        self.measured: set[int] = set()  # the aggregates of a select, where its outputs are calculated
        self.bare_left = 0
        self.joint = False  # whether this stands in a `jointly` block

    @abstractmethod
    def step(self, span: Span | None) -> None:
        """Counts a step."""

    @abstractmethod
    def look_up(self, scope: Scope, name: str) -> Any:
        """The value of a name, or `MISSING`."""

    @abstractmethod
    def decided(self, test: object) -> bool | None:
        """Whether a condition holds, where only that way is followed."""

    @abstractmethod
    def paths(self, thunks: Sequence[Callable[[], Any]], certain: bool = True) -> Any:
        """Follows each of these from here, and goes on where they meet. Not `certain`: perhaps none of them is run."""

    @abstractmethod
    def branches(self, scope: Scope, bodies: Sequence[Sequence[n.Stmt]]) -> bool:
        """The same for statements; whether any of these ways goes on."""

    @abstractmethod
    def loop(self, scope: Scope, span: Span, value: object, own: Collection[str], each: Callable[[Any], bool]) -> bool:
        """Goes round with each item; whether the way goes on after. `own`: names of `scope` that a round may set."""

    @abstractmethod
    def cheaply(self, scope: Scope, node: n.Node, value: object, thunk: Callable[[], Any]) -> Any:
        """The value of a part of the program that works on `value`; `PUBLIC` where it is inert and takes long."""

    @abstractmethod
    def returned(self, value: object) -> None:
        """A way ends here."""

    @abstractmethod
    def enter(self, function: Closure, local: dict[str, Any], node: n.Expr) -> Any:
        """The value of a function's body, with its parameters in `local`."""

    @abstractmethod
    def choose_option(self, maker: Maker, args: Sequence[Any], node: n.Expr) -> Any:
        """The value of a call of a ChoiceMaker."""

    @abstractmethod
    def allotted(self, spend: n.Spend, scope: Scope, reached: ReachedSources, body: Callable[[], Any],
                 ruined: Callable[[], Any]) -> Any:  # fmt: skip
        """Follows what stands in an allotment; `ruined` says what comes of it where that takes too long."""

    @abstractmethod
    def until_budget(self, reached: ReachedSources, span: Span, body: Callable[[], Any]) -> None:
        """Follows what spends no more than is left of the budgets of these sources, and of the allotment around."""

    @abstractmethod
    def left_amount(self, scope: Scope, unit: str, reached: ReachedSources) -> Any:
        """What the name of a unit stands for where no variable has it, or `MISSING`."""

    @abstractmethod
    def share_bounds(self, share: object, reached: ReachedSources) -> Bounds:
        """A share of what the allotment around held when it opened, or of the budget where there is none."""

    @abstractmethod
    def bare(self, reached: ReachedSources, shares: int, needed: bool = True) -> Bounds:
        """An equal share of what is left; where that is nothing, what is `needed` is refused."""

    @abstractmethod
    def charge(self, reached: ReachedSources, amount: Bounds, span: Span, why: str = "an amount is not known") -> None:
        """A measurement on what is reached; `why` there is no bound, where there is none."""

    @abstractmethod
    def too_long(self, reason: str, span: Span) -> None:
        """What comes here is not followed."""

    @abstractmethod
    def rows(self, node: n.Expr, schema: dict[str, Any] | None, scope: Scope) -> None:
        """An expression on rows."""

    @abstractmethod
    def use_module(self, node: n.Use, scope: Scope) -> None:
        """Binds the names of a module."""

    @abstractmethod
    def eval(self, node: n.Expr, scope: Scope) -> Any:
        """What is known of the value of an expression."""

    @abstractmethod
    def condition(self, test: n.Expr, scope: Scope) -> bool | None:
        """Whether a condition holds, where only that way is followed."""

    @abstractmethod
    def iterated(self, source: n.Expr, scope: Scope) -> Any:
        """What is walked through."""

    @abstractmethod
    def amount_bounds(self, node: n.Amount, scope: Scope, reached: ReachedSources) -> Bounds:
        """Bounds of an amount that is written in the program."""

    @abstractmethod
    def closure(
        self, name: str, params: tuple[n.Param, ...] | tuple[str, ...], body: n.Block | n.Expr, scope: Scope
    ) -> Closure:
        """A function of the program."""

    @abstractmethod
    def select_query(self, node: n.Select, scope: Scope) -> Any:
        """The value of a select."""

    def bind_items(self, names: tuple[str, ...], item: Any, scope: Scope) -> None:
        if len(names) == 1:
            scope.names[names[0]] = item
            return
        fits = isinstance(item, list) and len(item) == len(names)
        values = item if fits else [item.item if isinstance(item, Items) else widened(item)] * len(names)
        scope.names.update(zip(names, values, strict=True))

    def optionally(self, thunk: Callable[[], Any]) -> Any:
        return self.paths([lambda: MISSING, thunk])

    @abstractmethod
    def settled(self, value: object) -> Any:
        """A value as it is once the loops that are not active are over."""


MOST_ALTERNATIVES = 6
MOST_ROUNDS = 2_000  # of one loop that are followed one by one


def alike(a: Any, b: Any) -> bool:
    """Whether two values are certainly described alike."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if is_constant(a) or isinstance(a, (NumberInterval, Range, Domain)):
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
