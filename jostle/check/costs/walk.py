"""The walk that follows what a program can spend: where ways part and meet, loops, and how far anything is followed.

The state of one way is a ledger and the names of a scope. A loop whose rounds are not known is followed once, from
names that hold before every round: a first guess is widened until one more round adds nothing to it. Everything is
counted in steps, so that following ends by itself; what takes too long has no bound but the allotment it stands in.
What each form does to what is known of values is in `interpreter`, `calls`, `rows` and `selects`. Nothing is opened
and no data are read.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

from jostle.accounting.amounts import QUANTA
from jostle.accounting.composition import part_of
from jostle.check.costs.ledger import NEVER, Ledger, Opened, Spending, current
from jostle.check.costs.tally import Why
from jostle.check.costs.values import (
    TOP,
    Generic,
    Handle,
    Items,
    Most,
    NumberInterval,
    OneOf,
    ReachedSources,
    SourceFact,
    alike,
    ends,
    in_quanta,
    join,
    join_all,
    joined_names,
    reached_sources,
    uniform,
    walked,
    widened,
)  # fmt: skip
from jostle.language.builtins import brought
from jostle.records import replace
from jostle.run.scope import MISSING, Scope
from jostle.run.values import REQUIRED, Function, JSet, Module, Record
from jostle.source import Span
from jostle.syntax import nodes as n
from jostle.syntax.walk import bound_in

NO_SOURCES = ReachedSources(())
Bounds = tuple[int, Most, Most]
"""The least and the most of an amount, and the most of its delta."""
Identity = Callable[[str, list[object]], Hashable]

FUEL = 60_000  # steps
MOST_CALLS = 200  # open at once; a run allows more, which are then not followed
TRIALS, TRIAL = 6_000, 1_500  # steps in loops that cost nothing: in all, and in one of them
MOST_GUESSES = 8
FEW_ROUNDS = 20  # that are followed one by one at any price


class TooLong(Exception):
    """What is being followed takes too many steps or calls."""

    def __init__(self, why: Why) -> None:
        super().__init__(why.reason)
        self.why = why


class Walk(Spending, ABC):
    """The ways of one program. It opens no data: `identity` says of what a source is declared whether it is another's.

    `planned`: what wanted errors of `jointly` blocks take, in quanta, by where they are written; as far as it is known.
    """

    def __init__(
        self, base: Scope, load_module: Callable[[tuple[str, ...]], n.Program | None], identity: Identity,
        settings: Mapping[str, object], planned: Mapping[Span, int],
    ) -> None:  # fmt: skip
        Spending.__init__(self, [])
        self.base, self.load_module, self.identity, self.settings, self.planned = (
            base, load_module, identity, settings, planned
        )  # fmt: skip
        self.identities: list[tuple[SourceFact, Hashable]] = []
        self.measured: set[int] = set()  # the aggregates of a select, where its outputs are calculated
        self.bare_left = 0
        self.joint = False  # whether this stands in a `jointly` block
        self.fuel, self.trials = FUEL, TRIALS
        self.depth = 0
        self.returns: list[tuple[object, Ledger]] = []
        self.reads: dict[str, set[int]] = {}  # names that were read, and the scopes that they are of
        self.modules: dict[tuple[str, ...], Module] = {}
        self._names: dict[tuple[str, ...], set[str]] = {}

    @abstractmethod
    def eval(self, node: n.Expr, scope: Scope) -> object:
        """What is known of the value of an expression."""

    @abstractmethod
    def block(self, body: Sequence[n.Stmt], scope: Scope) -> bool:
        """Follows statements; whether the way can go on after them."""

    # Ways ----------------------------------------------------------------------------------------

    def paths(self, thunks: Sequence[Callable[[], object]]) -> object:
        """Follows each of these from here, and goes on where they meet."""
        before, after, values = self.ledger, None, []
        for thunk in thunks:
            self.ledger = before.copy()
            values.append(thunk())
            after = self.ledger if after is None else after.join(self.ledger)
        self.ledger = after if after is not None else before
        return join_all(values)

    def optionally(self, thunk: Callable[[], object]) -> object:
        return self.paths([lambda: MISSING, thunk])

    def branches(self, scope: Scope, bodies: Sequence[Sequence[n.Stmt]]) -> bool:
        """The same for statements; whether any of these ways goes on."""
        names, before = scope.names, self.ledger
        ends: list[tuple[dict[str, object], Ledger]] = []
        for body in bodies:
            scope.names, self.ledger = dict(names), before.copy()
            if self.block(body, scope):
                ends.append((scope.names, self.ledger))
        for other_names, other in ends[1:]:
            ends[0] = joined_names(ends[0][0], other_names), ends[0][1].join(other)
        if ends:
            scope.names, self.ledger = ends[0]
        return bool(ends)

    def returned(self, value: object) -> None:
        """A way ends here."""
        self.returns.append((value, self.ledger))
        self.ledger = self.ledger.copy()

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

    # Names ---------------------------------------------------------------------------------------

    def look_up(self, scope: Scope, name: str) -> object:
        """The value of a name, or `MISSING`."""
        home = scope.home(name)
        self.reads.setdefault(name, set()).add(0 if home is None else id(home))
        return MISSING if home is None else home.names[name]

    def use_module(self, node: n.Use, scope: Scope) -> None:
        """A module is followed once, in a scope of its own."""
        before, sources = dict(self.ledger.tallies), len(self.sources)
        if node.path not in self.modules:
            self.modules[node.path] = Module(node.path[-1])
            tree = self.load_module(node.path)
            if tree is not None:
                inner = Scope(self.base)
                self.block(tree.body, inner)
                names = {k: v for k, v in inner.names.items() if not k.startswith("_") and not isinstance(v, Module)}
                of_language = {name: self.base.find(name) for name in brought(node.path)}
                self.modules[node.path] = Module(node.path[-1], of_language | names)
        module = self.modules[node.path]
        if self.ledger.tallies != before or len(self.sources) != sources:
            del self.modules[node.path]  # it spends: on another way it would spend again
        scope.names[node.path[-1]] = module
        for name, value in module.names.items():
            if name not in scope.names or isinstance(scope.names[name], Module):
                scope.names[name] = value

    def module_names(self, use: n.Use) -> Collection[str]:
        if use.path not in self._names:
            self._names[use.path] = {use.path[-1], *brought(use.path)}  # for modules that use each other
            tree = self.load_module(use.path)
            if tree is not None:
                self._names[use.path] |= set(bound_in(tree.body, self.module_names))
        return self._names[use.path]

    def assigned(self, body: n.Block) -> set[str]:
        """The names that running a block may set in its own scope."""
        return set(bound_in(body.body, self.module_names))

    def bind_items(self, names: tuple[str, ...], item: object, scope: Scope) -> None:
        if len(names) == 1:
            scope.names[names[0]] = item
            return
        if not (isinstance(item, list) and len(item) == len(names)):
            item = [item.item if isinstance(item, Items) else widened(item)] * len(names)
        scope.names.update(zip(names, item, strict=True))

    # Functions -----------------------------------------------------------------------------------

    def enter(self, function: Function, local: dict[str, object], node: n.Expr) -> object:
        """The value of a function's body, with its parameters in `local`."""
        if self.depth >= MOST_CALLS:
            raise TooLong(Why(f"`{function.name}` calls itself more than {MOST_CALLS} deep, or without end", node.span))
        scope = Scope(function.scope, local)
        self.depth += 1
        if not isinstance(function.body, n.Block):
            result = self.eval(function.body, scope)
            self.depth -= 1
            return result
        outer, self.returns = self.returns, []
        if self.block(function.body.body, scope):
            self.returns.append((None, self.ledger))
        ends, self.returns = self.returns, outer
        self.depth -= 1
        self.ledger = ends[0][1]
        for _, ledger in ends[1:]:
            self.ledger = self.ledger.join(ledger)
        return join_all([value for value, _ in ends])

    def closure(self, name: str, params: tuple[n.Param, ...] | tuple[str, ...], body: n.Block | n.Expr,
                scope: Scope) -> Function:  # fmt: skip
        pairs = [(p, None) if isinstance(p, str) else (p.name, p.default) for p in params]
        values = tuple((p, self.eval(d, scope) if d is not None else REQUIRED) for p, d in pairs)
        return Function(name, values, body, scope)

    # Amounts -------------------------------------------------------------------------------------

    def charge(
        self, reached: ReachedSources, amount: Bounds, span: Span, why: str = "an amount is not known",
        in_part: bool = False,
    ) -> None:  # fmt: skip
        """A measurement on what is reached; `why` there is no bound, where there is none."""
        self.charged_at(reached.exposures, span)
        self.spend(reached, *amount, Why(why, span), in_part)

    def left_amount(self, scope: Scope, unit: str, reached: ReachedSources) -> object:
        """What the name of a unit stands for where no variable has it, or `MISSING`."""
        opened = self.allotment
        if opened is None or self.look_up(scope, unit) is not MISSING:
            return MISSING
        if opened.boundless:
            return math.inf
        least, most = self.left_of(opened, reached)
        low, high = least / QUANTA, (most / QUANTA if most < math.inf else math.inf)
        return low if low == high else NumberInterval(low, high)

    def amount_bounds(self, node: n.Amount, scope: Scope, reached: ReachedSources) -> Bounds:
        if node.unit == "share":
            return self.share_bounds(self.eval(node.value, scope), reached)
        if node.is_wish:
            return self._wished(node, scope)
        left = self.left_amount(scope, node.unit, reached)
        inner = scope if left is MISSING else Scope(scope, {node.unit: left})
        value = self.eval(node.value, inner)
        delta = self.eval(node.delta, inner) if node.delta is not None else 0.0
        return *in_quanta(value), in_quanta(delta)[1] if node.delta is not None else 0

    def _wished(self, node: n.Amount, scope: Scope) -> Bounds:
        """What buys a wanted error, where that was found before."""
        delta = self.eval(node.delta, scope) if node.delta is not None else 0.0
        self.eval(node.value, scope)
        planned = self.planned.get(node.span)
        least, most = (0, math.inf) if planned is None else (planned, planned)
        return least, most, in_quanta(delta)[1] if node.delta is not None else 0

    def allotted(self, spend: n.Spend, scope: Scope, reached: ReachedSources, body: Callable[[], object],
                 ruined: Callable[[], object]) -> object:  # fmt: skip
        """Follows what stands in an allotment; `ruined` says what comes of it where that takes too long."""
        least, most, delta = self.amount_bounds(spend.amount, scope, reached)
        least = int(min(least, most))  # of a share where nothing is left
        return self.follow_inside(Opened(least, most, delta, spend.span, reached), body, ruined)

    def until_budget(self, reached: ReachedSources, span: Span, body: Callable[[], object]) -> None:
        """Follows what spends no more than is left of the budgets of these sources, and of the allotment around."""
        only, mark = frozenset(id(exposure.source) for exposure in reached.exposures), len(self.returns)
        most = self.left_of_budgets(reached)
        whole = self.open(Opened(0, most, 0, span, reached, recorder=True, only=only))
        body()
        self.close(whole, [ledger for _, ledger in self.returns[mark:]])

    def share_bounds(self, share: object, reached: ReachedSources) -> Bounds:
        """A share of what the allotment around held when it opened, or of the budget where there is none."""
        least, most, delta = self.whole_of(reached)
        low, high = (min(max(end, 0.0), 1.0) for end in ends(share))
        parts = [math.inf if whole == math.inf else part_of(int(whole), high) for whole in (most, delta)]
        return part_of(least, low) if least < NEVER else NEVER, parts[0], parts[1]

    def follow_inside(self, opened: Opened, body: Callable[[], object], ruined: Callable[[], object]) -> object:
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

    # Loops ---------------------------------------------------------------------------------------

    def loop(
        self, scope: Scope, span: Span, value: object, own: Collection[str], each: Callable[[object], bool],
        restart: Callable[[list[object] | Items], None] = lambda items: None,
    ) -> bool:  # fmt: skip
        """Goes round with each item; whether the way goes on after. `own`: names of `scope` that a round may set.

        One round stands for all where rounds cost nothing and take long. `restart` is told of items that are begun with
        anew; rounds before do not count.
        """
        source = walked(value)
        if isinstance(source, Items):
            return self._rounds(scope, span, source, own, each)
        names, back, before = dict(scope.names), self.here(), dict(self.ledger.tallies)
        reserve = self.fuel - self.fuel // 2 if len(source) > FEW_ROUNDS else 0

        def anew(items: list[object] | Items) -> bool | None:
            back()
            scope.names = dict(names)
            restart(items)
            return self._rounds(scope, span, items, own, each) if isinstance(items, Items) else None

        self.fuel -= reserve
        start, free = self.fuel, max(100, min(TRIAL, self.trials // 4))
        try:
            for item in source:
                if not each(item):
                    return False
                if start - self.fuel > free and self.ledger.tallies == before:
                    break
            else:
                return True
            self.trials -= start - self.fuel
            went = anew(uniform(source))
            if self.ledger.tallies == before:
                return bool(went)
            anew(source)  # other rounds do cost something
            return all(each(item) for item in source)
        except TooLong:
            if not reserve:
                raise
        finally:
            self.fuel += reserve
        return bool(anew(uniform(source)))

    def _one_round(self, source: Items, once: Generic | None, each: Callable[[object], bool]) -> bool:
        """One round, in which `once` stands for the part at hand; whether the way goes on."""
        if once is None:
            return each(part_item(source, None))
        self.active.add(once)
        for e in reached_sources(source.item).exposures:  # rounds before may have charged other parts
            self.widen(e.source, (*current(e.path[:-1], self.active), (source.part_of, None)))
        goes_on = each(part_item(source, once))
        self.active.discard(once)
        return goes_on

    def _unsettled(
        self, names: dict[str, object], after: dict[str, object], own: Collection[str], scope: Scope
    ) -> list[str]:  # fmt: skip
        """Names that a round leaves as something else, and those that it binds first and others read."""
        changed = [k for k in own if k in names and not alike(join(names[k], after[k]), names[k])]
        return [*changed, *(k for k in after if k not in names and self.reads.get(k, set()) - {id(scope)})]

    def _rounds(
        self, scope: Scope, span: Span, source: Items, own: Collection[str], each: Callable[[object], bool]
    ) -> bool:
        start = names = dict(scope.names)
        before, mark = self.ledger, len(self.returns)
        wide: list[SourceFact] = []
        for attempt in range(MOST_GUESSES):
            scope.names = dict(names)
            self.ledger = before.copy()
            del self.returns[mark:]
            once = Generic() if source.part_of is not None else None
            recorder = self.open(Opened(0, math.inf, 0, span, NO_SOURCES, recorder=True))
            for charged in wide:
                self.widen(charged)
            goes_on = self._one_round(source, once, each)
            after = {name: self.settled(v) for name, v in scope.names.items()}
            outside = self.outside(recorder, once)
            unsettled = self._unsettled(names, after, own, scope)
            if (not goes_on and not attempt) or not (unsettled or any(s not in wide for s in outside)):
                break
            wide = [*wide, *(s for s in outside if s not in wide)]
            names = _guessed(joined_names(names, after), unsettled, attempt)
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

    def settled(self, value: object) -> object:
        """A value as it is once the loops that are not active are over."""
        if isinstance(value, Handle):
            exposures = tuple(replace(e, path=current(e.path, self.active)) for e in value.exposures)
            return value if exposures == value.exposures else replace(value, exposures=exposures)
        if isinstance(value, list):
            return [self.settled(v) for v in value]
        if isinstance(value, dict):
            return Record({k: self.settled(v) for k, v in value.items()})
        if isinstance(value, JSet):
            return JSet([self.settled(v) for v in value.items])
        if isinstance(value, Items):
            return Items(self.settled(value.item), value.least, value.most)
        if isinstance(value, OneOf):
            return join_all([self.settled(v) for v in value.values])
        return value


def part_item(source: Items, once: Generic | None) -> object:
    """An item of a loop; of a partition's, the part that stands for all of them."""
    match source.item:
        case [key, Handle() as part] if once is not None:
            of = source.part_of
            exposures = tuple(replace(e, path=(*e.path[:-1], (of, once))) for e in part.exposures)
            return [key, replace(part, exposures=exposures)]
    return source.item


def _guessed(names: dict[str, object], unsettled: Sequence[str], attempt: int) -> dict[str, object]:
    """What names may be in any round, where some did not settle in so many attempts: less is said of those."""
    if attempt < 2:
        return names
    return names | {name: TOP if attempt >= 5 else widened(names[name]) for name in unsettled}
