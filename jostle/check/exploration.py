"""The walk that looks at every place of a program once, for labels.

Both branches of a condition are followed, a loop goes round once with what is true of each item, and functions are
walked where they are called and once more with unknown arguments. Nothing is guessed: what cannot be followed may be
any value; a branch inside a called function is listened to only where it must be taken; and a budget of steps bounds
the walk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from jostle.check.abstract.interpreter import Interpreter
from jostle.check.abstract.kinds import of_select
from jostle.check.abstract.rows import columns_of
from jostle.check.abstract.selects import grouped_rows, joined_tables, limited
from jostle.check.abstract.values import (
    MISSING,
    PUBLIC,
    TOP,
    Closure,
    Domain,
    Handle,
    Items,
    Maker,
    Module,
    Range,
    ReachedSources,
    Scope,
    Signature,
    ends,
    private_handle,
    protected,
    reached_sources,
)  # fmt: skip
from jostle.check.abstract.walk import World, join, join_all, joined_names, uniform, universe, walked
from jostle.check.labels import Labels, source_text
from jostle.check.modules import Modules
from jostle.check.scopes import Report, UseNames, returns_inside, times_bound
from jostle.check.warnings import RowKinds, Warnings
from jostle.language.forms import is_smooth, joins_freely, keys_by_alias, no_free_join, persons_by_column
from jostle.records import replace
from jostle.source import Span
from jostle.syntax import nodes as n

MOST_STEPS = 200_000  # expressions looked at in calls
DEEPEST = 2_000  # expressions inside each other, calls included
MOST_CALLS = 30  # calls inside each other that are followed


class AnyWorld(World):
    """Every setting and every module may be anything; each declaration is of a source of its own."""

    def __init__(self, names: UseNames) -> None:
        super().__init__(lambda path: None, lambda kind, args: object())
        self.use_names = names

    def names(self, use: n.Use) -> Collection[str]:
        return self.use_names(use)

    def parameter(self, name: str, default: object) -> Any:
        return PUBLIC


def _same_builtin(value: object, other: object) -> bool:
    """Whether a name that two modules bring is of one built-in, or of functions that are called alike."""
    if isinstance(value, Signature) and isinstance(other, Signature):
        return value.alike == other.alike
    return value is other or (isinstance(value, Module) and other is TOP)  # a module that the other uses too


def _known_by_rows(side: object) -> object:
    """One side of a join: what a public table leaves open is known from its rows, which nobody looks at here."""
    if not isinstance(side, Handle) or side.exposures or side.schema is None:
        return side
    schema = {name: PUBLIC if isinstance(domain, Domain) else domain for name, domain in side.schema.items()}
    return replace(side, schema=schema)


class Exploration(Interpreter):
    """The walk over one program."""

    most_parts = 0

    def __init__(self, report: Report, builtins: Collection[str], predefined: Collection[str], used: Modules) -> None:
        super().__init__(AnyWorld(used.names), Labels(report))
        self._built_in, self._signatures = used.built_in, used.signatures
        self.base = universe(builtins)
        self.top = Scope(Scope(self.base, dict.fromkeys(predefined, TOP)))
        self.called: list[n.Node] = []  # bodies of the functions that are being walked because they were called
        self.paid = self.delta = 0  # allotments open, and those with delta
        self.defining = False  # inside a function that nobody called, with unknown arguments
        self.uncalled: list[Closure] = []
        self.registered: set[int] = set()
        self.results: list[Any] = []
        self.steps = self.depth = 0
        self.times: dict[int, Counter[str]] = {}  # how often each name is bound, by body
        self.returning: dict[int, bool] = {}  # whether a `return` stands in it, by statement

    def program(self, program: n.Program) -> None:
        self.top.times = times_bound(program.body, self.world.names)
        self.block(program.body, self.top)
        self.defining = True
        self.delta = 1  # who calls may have given delta
        while self.uncalled:
            function = self.uncalled.pop()
            self.function_body(function, dict.fromkeys((name for name, _ in function.params), TOP))

    # Paths ---------------------------------------------------------------------------------------

    @contextmanager
    def perhaps(self, certain: bool = True) -> Iterator[None]:
        """Inside a called function, what is in a branch or a loop may never be reached with these arguments."""
        was, self.labels.sure = self.labels.sure, self.labels.sure and certain and not self.called
        yield
        self.labels.sure = was

    def block(self, body: Sequence[n.Stmt], scope: Scope) -> bool:
        was, goes_on = self.labels.sure, True
        for stmt in body:
            goes_on = self.statement(stmt, scope) and goes_on
            if self.called and not isinstance(stmt, n.Return):
                if id(stmt) not in self.returning:
                    self.returning[id(stmt)] = returns_inside(stmt)
                self.labels.sure = self.labels.sure and not self.returning[id(stmt)]
        self.labels.sure = was
        return goes_on

    def paths(self, thunks: Sequence[Callable[[], Any]], certain: bool = True) -> Any:
        with self.perhaps(certain):
            return join_all([thunk() for thunk in thunks])

    def branches(self, scope: Scope, bodies: Sequence[Sequence[n.Stmt]]) -> bool:
        before, ends = scope.names, []
        with self.perhaps():
            for body in bodies:
                scope.names = dict(before)
                if self.block(body, scope):
                    ends.append(scope.names)
        for names in ends[1:]:
            ends[0] = joined_names(ends[0], names)
        scope.names = ends[0] if ends else scope.names
        return bool(ends)

    def loop(self, scope: Scope, span: Span, value: object, own: Collection[str], each: Callable[[Any], bool]) -> bool:
        items, before = walked(value), scope.names
        scope.names = before | {name: TOP for name in own if name in before}  # of some round, not known which
        with self.perhaps():
            each(items.item if isinstance(items, Items) else join_all(items))
        changed = {k: join(before[k], v) for k, v in scope.names.items() if k in own and k in before}
        scope.names |= {k: v for k, v in changed.items() if not isinstance(scope.names[k], Handle)}
        return True

    def iterated(self, source: n.Expr, scope: Scope) -> object:
        value = super().iterated(source, scope)
        if isinstance(value, Range):
            return Items(PUBLIC, int(isinstance(value.low, float) and ends(value.high)[0] >= value.low))
        items = walked(value)
        return items if isinstance(items, Items) else uniform(items)

    def step(self, span: Span | None) -> None:
        self.steps += bool(self.called)

    def eval(self, node: n.Expr, scope: Scope) -> Any:
        if self.depth > DEEPEST or self.steps > MOST_STEPS:
            return TOP
        self.depth += 1
        result = super().eval(node, scope)
        self.depth -= 1
        return result

    # Names and functions -------------------------------------------------------------------------

    def look_up(self, scope: Scope, name: str) -> object:
        home = scope.home(name)
        if home is None:
            return MISSING
        some_moment = self.defining and home is not scope and home.times is not None and home.times[name] > 1
        return TOP if some_moment else home.names[name]

    def use_module(self, node: n.Use, scope: Scope) -> None:
        of_language = {name: self.look_up(self.base, name) for name in self._built_in(node)}
        module = dict.fromkeys(self.world.names(node), TOP) | of_language
        module |= {k: v for k, v in self._signatures(node).items() if module.get(k) is TOP}
        there = {name: scope.names[name] for name in module if name in scope.names}
        own = {name: value if _same_builtin(value, module[name]) else TOP for name, value in there.items()}
        scope.names |= module | own | {node.path[-1]: Module(module)}

    def created(self, function: Closure) -> Closure:
        """It is walked with unknown arguments at the end."""
        if not self.called and id(function.body) not in self.registered:
            self.registered.add(id(function.body))
            self.uncalled.append(function)
        return function

    def enter(self, function: Closure, local: dict[str, object], node: n.Expr) -> object:
        if any(function.body is body for body in self.called) or len(self.called) >= MOST_CALLS:
            return TOP
        text = source_text(node)
        local = {k: self.labels.passed(v, node.span, f"passed on as `{k}` of `{text}`") for k, v in local.items()}
        self.called.append(function.body)
        result = self.function_body(function, local)
        self.called.pop()
        return result

    def function_body(self, function: Closure, local: dict[str, object]) -> object:
        body = function.body
        if not isinstance(body, n.Block):
            return self.eval(body, Scope(function.scope, local))
        if id(body) not in self.times:
            self.times[id(body)] = times_bound(body.body, self.world.names)
        was, self.results = self.results, []
        if self.block(body.body, Scope(function.scope, local, self.times[id(body)])):
            self.results.append(None)
        results, self.results = self.results, was
        return join_all(results)

    def returned(self, value: object) -> None:
        self.results.append(value)

    def choose_option(self, maker: Maker, args: Sequence[Any], node: n.Expr) -> object:
        """On private data a choice needs an allotment, whatever it has learnt."""
        table = next(filter(None, map(private_handle, args)), None)
        if table is not None and not (self.paid or self.called or self.defining):
            message = f"this choice reads `{table.declared.name}`, which is private, and nothing pays for it"
            help = f"write `{source_text(node)}(…) with epsilon 0.5`"
            self.labels.report.add("NoEpsilon", message, node.span, label="no epsilon", help=help, notes=table.trail)
        return TOP

    # Allotments and queries ----------------------------------------------------------------------

    def allotted(self, spend: n.Spend, scope: Scope, reached: ReachedSources, body: Callable[[], Any],
                 ruined: Callable[[], object]) -> object:  # fmt: skip
        self.amount_bounds(spend.amount, scope, reached)
        with_delta = spend.amount.delta is not None or spend.amount.unit == "share"
        self.paid += 1
        self.delta += with_delta
        result = body()
        self.paid -= 1
        self.delta -= with_delta
        return result

    def program_variable(self, scope: Scope) -> Callable[[str], Any]:
        """What the program's own variable of a name holds, or `MISSING`: not what is built in."""

        def value(name: str) -> Any:
            home = scope.home(name)
            mine = home is not None and home.parent is not None and name not in home.released
            return self.look_up(scope, name) if mine else MISSING

        return value

    def rows(self, node: n.Expr, schema: dict[str, Any] | None, scope: Scope, how: str = "expression",
             tables: Sequence[str] = (), over: n.Expr | None = None) -> None:  # fmt: skip
        if schema is None or not self.labels.sure:
            return
        warnings = Warnings(schema, self.program_variable(scope), self.labels.report)
        warnings.expression(node)
        if how == "axis":
            warnings.check_axis(node, over)

    def calculated(self, node: n.Expr, schema: dict[str, Any] | None, scope: Scope) -> Any:
        """A domain that lists no values, where that is sure."""
        if schema is None or not self.labels.sure:
            return PUBLIC
        open_kind = RowKinds(schema, self.program_variable(scope)).open_kind(node)
        return PUBLIC if open_kind is None else Domain(open_kind)

    def select_query(self, node: n.Select, scope: Scope) -> object:
        sides = self._sides(node, scope)
        table, *others = map(_known_by_rows, sides) if len(sides) > 1 else sides
        for side in others:
            table = joined_tables(table, side)
        self.labels.table(table, node.table, self.top.names)
        owner = next((side for side in sides if isinstance(side, Handle) and side.trail), None)
        sure, table = self.labels.sure, limited(self, table, node, scope)
        columns = columns_of(table)
        node = persons_by_column(keys_by_alias(node, columns or ()), columns or (), protected(table))
        if sure and owner is not None and columns is not None:
            Warnings(columns, self.program_variable(scope), self.labels.report).check_select(node)
        if node.per is not None:
            return grouped_rows(table, node)
        if node.spend is not None:
            self.labels.unit(node.spend.amount, owner)
            self.amount_bounds(node.spend.amount, scope, ReachedSources(()))
        elif owner is not None:
            self._need_paid(node, owner)
        return of_select(node, columns or ())

    def _sides(self, node: n.Select, scope: Scope) -> list[object]:
        """The table of a select and those that it is joined with."""
        self.paid += node.spend is not None
        sides = [self.eval(table, scope) for table in (node.table, *(joined.table for joined in node.joins))]
        self.paid -= node.spend is not None
        reached = map(reached_sources, sides)
        may_be = [bool(one.exposures) or one.open for one in reached]  # private
        private = any(isinstance(side, Handle) and side.exposures for side in sides)
        if self.labels.sure and private and is_smooth(node) and not joins_freely(node.joins, may_be):
            self.labels.report.extend([no_free_join(node)])
        return sides

    def _need_paid(self, node: n.Select, owner: Handle) -> None:
        """Nothing pays for a select of private data: but a count of a public size may be free, and the kernel knows."""
        private = owner.declared
        sized = private.protecting is not None and private.protecting.public_size
        if sized or self.paid or self.called or self.defining:
            return
        help = "write `with epsilon 0.1` at the end of the select, or put it into `with epsilon 0.1 { … }`"
        message = f"this query reads `{private.name}`, which is private, and nothing pays for it"
        self.labels.report.add("NoEpsilon", message, node.span, label="no epsilon", help=help, notes=owner.trail)
