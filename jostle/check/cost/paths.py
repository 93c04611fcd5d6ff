"""Ways through a program: where they part and meet, loops, allotments, and how far anything is followed.

The state of one way is a ledger and the names of a scope. A loop whose rounds are not known is followed once, from
names that hold before every round: a first guess is widened until one more round adds nothing to it. Everything is
counted in steps, so that following ends by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from jostle.check.cost.ledger import Ledger, Opened, Spending, current, settled
from jostle.check.cost.purity import Purity
from jostle.check.cost.tree import Generic, Why
from jostle.check.cost.values import (
    MISSING,
    PUBLIC,
    TOP,
    Exposure,
    Handle,
    Items,
    LoopVariable,
    Module,
    NumberInterval,
    OneOf,
    Range,
    ReachedSources,
    Scope,
    Set,
    SourceFact,
    alike,
    cannot_charge,
    ends,
    join_all,
    join_values,
    reached_sources,
    widened,
)  # fmt: skip
from jostle.source import Span

FUEL = 60_000  # steps
MOST_CALLS = 200  # open at once; a run allows more, which are then not followed
MOST_ROUNDS = 2_000  # of one loop that are followed one by one
TRIALS, TRIAL = 6_000, 1_500  # steps on values that cannot cost anything: in all, and on one of them
NO_SOURCES = ReachedSources(())
MOST_GUESSES = 8
FEW_ROUNDS = 20  # that are followed one by one at any price
T = TypeVar("T")


class TooLong(Exception):
    """What is being followed takes too many steps or calls."""

    def __init__(self, why: Why) -> None:
        super().__init__(why.reason)
        self.why = why


class PathExplorer(Spending):
    """The ways of one program. `world` answers for modules, sources and settings."""

    def __init__(self, world: Any, base: Scope) -> None:
        super().__init__()
        self.world = world
        self.base = base
        self.purity = Purity()
        self.fuel, self.trials = FUEL, TRIALS
        self.trying = False
        self.depth = 0
        self.returns: list[tuple[Any, Ledger]] = []
        self.reads: set[tuple[str, int]] = set()
        self.measured: set[int] = set()
        self.bare_left = 0
        self.identities: list[tuple[SourceFact, Hashable]] = []
        self.modules: dict[tuple[str, ...], Module] = {}
        self.module_names: dict[tuple[str, ...], set[str]] = {}

    # Ways ----------------------------------------------------------------------------------------

    def paths(self, thunks: Sequence[Callable[[], Any]]) -> Any:
        """Follows each of these from here, and goes on where they meet."""
        before, after, values = self.ledger, None, []
        for thunk in thunks:
            self.ledger = before.copy()
            values.append(thunk())
            after = self.ledger if after is None else after.join(self.ledger)
        self.ledger = after if after is not None else before
        return join_all(values)

    def optionally(self, thunk: Callable[[], Any]) -> Any:
        return self.paths([lambda: MISSING, thunk])

    def here(self) -> Callable[[], None]:
        """Gives a function that comes back to this point of the way, from wherever following it broke off."""
        ledger, returns, mark = self.ledger.copy(), self.returns, len(self.returns)
        stack, active, depth = list(self.stack), set(self.active), self.depth
        measured, bare_left = self.measured, self.bare_left

        def back() -> None:
            self.ledger, self.returns, self.stack, self.active = ledger.copy(), returns, list(stack), set(active)
            self.depth, self.measured, self.bare_left = depth, measured, bare_left
            del returns[mark:]

        return back

    def allotted(self, opened: Opened, body: Callable[[], T], ruined: Callable[[], T]) -> T:
        """Follows what stands in an allotment; where that takes too long, it may spend all of it on any source."""
        back, returns, mark = self.here(), self.returns, len(self.returns)
        self.open(opened)
        reserve = self.fuel - self.fuel // 2
        self.fuel -= reserve
        try:
            result = body()
        except TooLong as too_long:
            back()
            most = math.inf if opened.boundless else opened.most
            self.charge_everything(most, opened.delta, too_long.why)
            return ruined()
        finally:
            self.fuel += reserve
        self.close(opened, [ledger for _, ledger in returns[mark:]])
        return result

    def trial(self, thunk: Callable[[], Any]) -> Any:
        """The value of something inert, or `PUBLIC` where it takes long."""
        outer, back = self.fuel, self.here()
        allowed = min(outer, max(100, min(TRIAL, self.trials // 4)))
        self.fuel, self.trying = allowed, True
        try:
            return thunk()
        except TooLong:
            back()
            return PUBLIC
        finally:
            used = allowed - max(0, self.fuel)
            self.trials -= used
            self.fuel, self.trying = outer - used, False

    def step(self, span: Span | None) -> None:
        self.fuel -= 1
        if self.fuel < 0:
            raise TooLong(Why("it is too long to follow", span))

    # Names ---------------------------------------------------------------------------------------

    def find(self, scope: Scope, name: str) -> Any:
        at: Scope | None = scope
        while at is not None:
            if name in at.names:
                self.reads.add((name, id(at)))
                value = at.names[name]
                if isinstance(value, LoopVariable):
                    for mark in value.marks:
                        mark.add(name)
                    return value.value
                return value
            at = at.parent
        self.reads.add((name, 0))
        return MISSING

    # Loops ---------------------------------------------------------------------------------------

    def bind(self, names: tuple[str, ...], item: Any, scope: Scope) -> None:
        if len(names) == 1:
            scope.names[names[0]] = item
            return
        fits = isinstance(item, list) and len(item) == len(names)
        values = item if fits else [item.item if isinstance(item, Items) else widened(item)] * len(names)
        scope.names.update(zip(names, values, strict=True))

    def loop(self, scope: Scope, span: Span, value: Any, own: set[str], each: Callable[[Any], bool]) -> bool:
        """Goes round with each item; whether the way goes on after. `own`: names of `scope` that a round may set."""
        source = walked(value)
        if isinstance(source, Items):
            return self._rounds(scope, span, source, own, each)
        if len(source) <= FEW_ROUNDS:
            return all(each(item) for item in source)
        names, back, reserve = dict(scope.names), self.here(), self.fuel - self.fuel // 2
        self.fuel -= reserve
        try:
            return all(each(item) for item in source)
        except TooLong:
            back()
            scope.names = names
        finally:
            self.fuel += reserve
        return self._rounds(scope, span, Items(join_all(source), len(source), len(source)), own, each)

    def _rounds(self, scope: Scope, span: Span, source: Items, own: set[str], each: Callable[[Any], bool]) -> bool:
        start = names = dict(scope.names)
        before, mark = self.ledger, len(self.returns)
        wide: list[SourceFact] = []
        for attempt in range(MOST_GUESSES):
            read: set[str] = set()
            scope.names = names | {k: _loop_variable(names[k], read) for k in own if k in names}
            self.ledger = before.copy()
            del self.returns[mark:]
            once = Generic() if source.part_of is not None else None
            recorder = self.open(Opened(0, math.inf, 0, "", span, NO_SOURCES, recorder=True))
            for charged in wide:
                self.widen(charged)
            if once is not None:
                self.active.add(once)
                for e in reached_sources(source.item).exposures:  # rounds before may have charged other parts
                    self.widen(e.source, (*current(e.path[:-1], self.active), (source.part_of, None)))
            goes_on = each(part_item(source, once))
            if once is not None:
                self.active.discard(once)
            after = {name: self._settled(_without_mark(v, read)) for name, v in scope.names.items()}
            outside = self.outside(recorder, once)
            changed = [k for k in read if not alike(join_values(_bare(names[k]), _bare(after[k])), _bare(names[k]))]
            new = [k for k in after if k not in names and any(r == k and at != id(scope) for r, at in self.reads)]
            if (not goes_on and not attempt) or not (changed or new or any(s not in wide for s in outside)):
                break
            wide = [*wide, *(s for s in outside if s not in wide)]
            joined = joined_names(names, after)
            if attempt >= 2:
                joined |= {k: TOP if attempt >= 5 else widened(_bare(joined[k])) for k in (*changed, *new)}
            names = joined
            self.stack.remove(recorder)
        else:
            raise TooLong(Why("a loop that does not settle", span))
        if not goes_on and not attempt:
            self.stack.remove(recorder)
            scope.names, self.ledger = start, before
            return not source.least
        rounds = f"a loop of {source.most:,} rounds" if source.most is not None else "a loop of unknown length"
        ended = [ledger for _, ledger in self.returns[mark:]]
        ended = self.repeat(recorder, ended, once, source.least, source.most, Why(f"{rounds} charges it", span))
        scope.names = after if source.least else joined_names(start, after)
        self.returns[mark:] = [(value, ledger) for (value, _), ledger in zip(self.returns[mark:], ended, strict=True)]
        return True

    def _settled(self, value: Any) -> Any:
        if isinstance(value, LoopVariable):
            return LoopVariable(self._settled(value.value), value.marks)
        if isinstance(value, Handle):
            return settled(value, self.active)
        if isinstance(value, list):
            return [self._settled(v) for v in value]
        if isinstance(value, dict):
            return {k: self._settled(v) for k, v in value.items()}
        if isinstance(value, Set):
            return Set([self._settled(v) for v in value.items])
        if isinstance(value, Items):
            return Items(self._settled(value.item), value.least, value.most)
        if isinstance(value, OneOf):
            return join_all([self._settled(v) for v in value.values])
        return value


# Helpers -----------------------------------------------------------------------------------------


def _loop_variable(value: Any, mark: set[str]) -> LoopVariable:
    return (
        LoopVariable(value.value, (*value.marks, mark))
        if isinstance(value, LoopVariable)
        else LoopVariable(value, (mark,))
    )


def _without_mark(value: Any, mark: set[str]) -> Any:
    if not isinstance(value, LoopVariable):
        return value
    marks = tuple(m for m in value.marks if m is not mark)
    return LoopVariable(value.value, marks) if marks else value.value


def _bare(value: Any) -> Any:
    return value.value if isinstance(value, LoopVariable) else value


def walked(value: Any) -> list[Any] | Items:
    """The items of a container, or what they all are like."""
    if isinstance(value, list):
        return value if len(value) <= MOST_ROUNDS else Items(join_all(value), len(value), len(value))
    if isinstance(value, dict):
        return list(value)
    if isinstance(value, Set):
        return value.items
    if isinstance(value, Items):
        return value
    if isinstance(value, Range):
        return _whole_range(value)
    return Items(widened(value) if isinstance(value, (list, OneOf)) or cannot_charge(value) else TOP)


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


def part_item(source: Items, once: Generic | None) -> Any:
    """An item of a loop; of a partition's, the part that stands for all of them."""
    if once is None:
        return source.item
    key, part = source.item
    reserve = tuple(Exposure(e.source, (*e.path[:-1], (source.part_of, once)), e.agents) for e in part.exposures)
    return [key, Handle(part.kind, reserve, part.schema, part.origin, False, part.name)]


def joined_names(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    return {name: join_values(a.get(name, MISSING), b.get(name, MISSING)) for name in dict.fromkeys((*a, *b))}
