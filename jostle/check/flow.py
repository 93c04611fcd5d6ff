"""One walk over a program in the order it would run, with what is certain of each value.

It follows private tables through names, containers and calls of the program's own functions, and asks `labels`,
`queries` and `amounts` at each place where something can be wrong. Functions are walked where they are called, with
what is known of their arguments, and once more with unknown ones. It runs nothing and guesses nothing: what it cannot
follow is UNKNOWN, a branch inside a called function is only listened to where it must be taken, and a budget of steps
bounds the walk.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import contextmanager
from typing import TYPE_CHECKING, assert_never

from jostle.check import amounts, queries
from jostle.check.calls import Calls
from jostle.check.labels import Labels
from jostle.check.scopes import UseNames, bound_in, returns_inside, times_bound
from jostle.check.values import (
    UNKNOWN,
    Builtin,
    Chooser,
    Env,
    Function,
    Many,
    Parts,
    Record,
    Table,
    Value,
    after_branches,
    element,
    join,
    many,
    record,
)  # fmt: skip
from jostle.diagnostics import Note
from jostle.language.forms import source_kind
from jostle.language.operations import COMPARISONS, FOLDS
from jostle.syntax import nodes as n
from jostle.syntax.walk import children, expressions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jostle.check.report import Report

MOST_STEPS = 200_000  # expressions looked at in calls
DEEPEST = 2_000  # expressions inside each other, calls included


class Flow(Calls):
    """The walk over statements and expressions; `Calls` holds what happens at a call."""

    def __init__(self, report: Report, builtins: Collection[str], use_names: UseNames) -> None:
        self.report, self.labels = report, Labels(report)
        self.builtins, self.use_names = builtins, use_names
        self.top = Env()
        self.calls: list[n.Node] = []  # functions being walked because they were called
        self.paid = self.delta = 0  # allotments open, and those with delta
        self.defining = False  # inside a function that nobody called, with unknown arguments
        self.waiting: list[Function] = []
        self.registered: set[int] = set()
        self.returned: list[Value] = []
        self.steps = self.depth = 0

    def program(self, program: n.Program) -> None:
        self.top.times = times_bound(program.body, self.use_names)
        self.block(program.body, self.top)
        self.defining = True
        self.delta = 1  # who calls may have given delta
        while self.waiting:
            self.uncalled(self.waiting.pop())

    # Statements --------------------------------------------------------------------------------

    def block(self, body: tuple[n.Stmt, ...], env: Env) -> None:
        was = self.labels.sure
        for stmt in body:
            self.statement(stmt, env)
            if self.calls and not isinstance(stmt, n.Return) and returns_inside(stmt):
                self.labels.sure = False
        self.labels.sure = was

    def statement(self, stmt: n.Stmt, env: Env) -> None:
        match stmt:
            case n.Assign(name=name, value=value):
                result = self.value(value, env)
                alias = not (isinstance(value, n.Name) and value.id == name)
                if isinstance(result, Table) and alias:
                    result = result.passed(stmt.span, f"`{name}` is made from it here")
                env.values[name] = result
            case n.Private():
                self.private(stmt, env)
            case n.Bare(value=value):
                self.value(value, env)
            case n.Return(value=value):
                self.returned.append(self.value(value, env) if value is not None else UNKNOWN)
            case n.Release(name=name, value=value):
                self.release(stmt, name, value, env)
            case n.Assert(value=value, message=message):
                self.labels.branched(self.value(value, env), value)
                if message is not None:
                    self.labels.shown_to_people(self.value(message, env), message, message.span, "shown")
            case n.Def(name=name):
                env.values[name] = self.register(Function(stmt, env, name))
            case n.If():
                self.branches(stmt, env)
            case n.For(names=names, source=source, body=body):
                item = self.item(self.value(source, env), source)
                for name in bound_in(body.body, self.use_names):
                    if name in env.values:
                        env.values[name] = UNKNOWN  # of some turn, not known which
                self.bind(names, item, env)
                with self.perhaps():
                    self.block(body.body, env)
            case n.With(spend=spend, body=body):
                self.spend(spend, env)
                with self.allotted(spend):
                    self.block(body.body, env)
            case n.ParamDecl(name=name, default=default):
                self.value(default, env)
                env.values[name] = UNKNOWN
            case n.Use():
                env.values.update(dict.fromkeys(self.use_names(stmt), UNKNOWN))
            case n.External(name=name):
                env.values[name] = UNKNOWN
            case unknown:
                assert_never(unknown)

    def private(self, stmt: n.Private, env: Env) -> None:
        if not source_kind(stmt.source):
            source = self.value(stmt.source, env)
            if not (source is UNKNOWN or (isinstance(source, Table) and not source.private)):
                self.report.add(
                    "TypeError",
                    f"the source of `{stmt.name}` is a value of the program",
                    stmt.source.span,
                    label="no source",
                    help="a private source is `table(…)`, `counts(…)`, `dataset(…)` or `bound(…)`",
                )
        if stmt.budget is not None:
            self.amount(stmt.budget.amount, env)
        columns = _columns(stmt.described)
        note = Note(stmt.span, f"`{stmt.name}` is declared private here")
        env.values[stmt.name] = Table(stmt, columns, (note,))

    def release(self, stmt: n.Release, name: str, value: n.Expr | None, env: Env) -> None:
        if value is None:
            self.labels.shown_to_people(self.lookup(name, env), n.Name(name, span=stmt.span), stmt.span, "released")
            return
        result = self.value(value, env)
        self.labels.shown_to_people(result, value, value.span, "released")

    def branches(self, stmt: n.If, env: Env) -> None:
        self.labels.branched(self.value(stmt.test, env), stmt.test)
        before = dict(env.values)
        with self.perhaps():
            self.block(stmt.then.body, env)
            one, env.values = env.values, dict(before)
            if stmt.other is not None:
                self.block(stmt.other.body, env)
        env.values = after_branches(before, one, env.values)

    # Expressions -------------------------------------------------------------------------------

    def value(self, expr: n.Expr, env: Env) -> Value:
        """What is certain of the value of `expr`."""
        if self.depth > DEEPEST or self.steps > MOST_STEPS:
            return UNKNOWN
        self.depth += 1
        self.steps += bool(self.calls)
        result = self._value(expr, env)
        self.depth -= 1
        return result

    def _value(self, expr: n.Expr, env: Env) -> Value:
        match expr:
            case n.Name(id=name):
                return self.lookup(name, env)
            case n.ListOf(items=items) | n.SetOf(items=items):
                return many(tuple([self.value(item, env) for item in items]))
            case n.RecordOf(items=pairs):
                return record({name: self.value(item, env) for name, item in pairs})
            case n.Comprehension():
                return self.comprehension(expr, env)
            case n.Over():
                return self.over(expr, env)
            case n.Binary(op=op, left=left, right=right):
                for side in (left, right):
                    result = self.value(side, env)
                    if op in COMPARISONS:
                        self.labels.compared(result, side)
                return UNKNOWN
            case n.Logic(operands=operands):
                for operand in operands:
                    self.labels.branched(self.value(operand, env), operand)
                return UNKNOWN
            case n.Unary(op=op, operand=operand):
                result = self.value(operand, env)
                if op == "not":
                    self.labels.branched(result, operand)
                return UNKNOWN
            case n.Conditional(test=test, then=then, other=other):
                self.labels.branched(self.value(test, env), test)
                with self.perhaps():
                    return join(self.value(then, env), self.value(other, env))
            case n.Lambda():
                return self.register(Function(expr, env, "the lambda"))
            case n.Part():
                return self.register(Function(expr, env, f"the {expr.kind}"))
            case n.Choice():
                return self.choice(expr, env)
            case n.Call():
                return self.call(expr, env)
            case n.Attribute(value=inner, name=name):
                result = self.value(inner, env)
                return result.fields.get(name, UNKNOWN) if isinstance(result, Record) else UNKNOWN
            case n.Index():
                return self.index(expr, env)
            case n.Spending(value=inner, spend=spend):
                self.spend(spend, env)
                with self.allotted(spend):
                    return self.value(inner, env)
            case n.Query(body=body):
                self.query(body, env)
                return UNKNOWN
            case n.Described(source=source, domains=domains):
                self.value(source, env)
                return Table(None, _columns(domains))
            case _:
                for child in expressions(expr):
                    self.value(child, env)
                return UNKNOWN

    def is_variable(self, env: Env) -> Callable[[str], bool]:
        """Whether a name is a variable where rows are read."""
        return lambda name: env.find(name) is not None or name in self.builtins or self.top.times[name] > 0

    def lookup(self, name: str, env: Env) -> Value:
        result = env.find(name)
        if result is None:
            return Builtin(name) if name in self.builtins else UNKNOWN
        home, value = result
        if self.defining and home is not env and home.times[name] > 1:
            return UNKNOWN  # of some moment, not known which
        return value

    def comprehension(self, expr: n.Comprehension, env: Env) -> Value:
        item = self.item(self.value(expr.source, env), expr.source)
        inner = Env(env)
        self.bind(expr.names, item, inner)
        with self.perhaps():
            if expr.condition is not None:
                self.labels.branched(self.value(expr.condition, inner), expr.condition)
            item_value = self.value(expr.item, inner)
            return item_value if expr.flat else many((item_value,), uniform=True)

    def over(self, expr: n.Over, env: Env) -> Value:
        if expr.fold not in FOLDS:
            help = "there are " + ", ".join(f"`{fold} over`" for fold in FOLDS)
            self.report.add("TypeError", f"there is no `{expr.fold} over`", expr.span, help=help)
        item = self.item(self.value(expr.source, env), expr.source)
        inner = Env(env)
        self.bind((expr.name,), item, inner)
        with self.perhaps():
            self.value(expr.body, inner)
        return item if expr.fold.startswith("arg") else UNKNOWN

    def item(self, source: Value, expr: n.Expr) -> Value:
        """One element of what is iterated."""
        self.labels.iterated(source, expr)
        match source:
            case Parts():
                return source
            case Many(items=items):
                return element(items)
        return UNKNOWN

    def bind(self, names: tuple[str, ...], item: Value, env: Env) -> None:
        for place, name in enumerate(names):
            value: Value = UNKNOWN
            if len(names) == 1:
                value = many((UNKNOWN, item.part)) if isinstance(item, Parts) else item
            elif isinstance(item, Parts):
                value = item.part if place == 1 else UNKNOWN
            elif isinstance(item, Many) and not item.uniform and len(item.items) == len(names):
                value = item.items[place]
            env.values[name] = value

    def index(self, expr: n.Index, env: Env) -> Value:
        result = self.value(expr.value, env)
        if expr.keywords or expr.trailing_comma:
            for keyword in expr.keywords:
                self.value(keyword.value, env)
            if isinstance(result, Table):
                return result
            return UNKNOWN
        at = expr.args[0] if len(expr.args) == 1 else None
        if not isinstance(result, Table):
            for arg in expr.args:
                self.value(arg, env)
        match result, at:
            case Table(), n.Number():
                self.labels.picked(result, expr)
            case Record(fields=fields), n.String(value=name):
                return fields.get(name, UNKNOWN)
            case Many(items=items, uniform=False), n.Number(value=place) if place in range(len(items)):
                return items[int(place)]
            case Many(items=items), _:
                return element(items)
        return UNKNOWN

    # Queries and allotments ----------------------------------------------------------------------

    def query(self, body: n.Node, env: Env) -> None:
        """An expression over selects: only the selects matter here."""
        if isinstance(body, n.Select):
            self.select(body, env)
            return
        for child in children(body):
            self.query(child, env)

    def select(self, select: n.Select, env: Env) -> None:
        paying = self.paid + (select.spend is not None)
        self.paid, before = paying, self.paid
        table = self.table(select.table, env)
        others = [self.table(join_.table, env) for join_ in select.joins]
        self.paid = before
        owner = next((side for side in (table, *others) if isinstance(side, Table) and side.private), None)
        columns: dict[str, n.Expr] | None = {}
        for side in (table, *others):
            side_columns = side.columns if isinstance(side, Table) else None
            columns = None if side_columns is None or columns is None else {**columns, **side_columns}
        whole = Table(owner.declared if owner is not None else None, columns, owner.trail if owner is not None else ())
        wrong = self.labels.sure and self.wrong_select(select, whole, env)
        if select.spend is not None:
            self.spend(select.spend, env, quiet=wrong)
        elif not wrong and whole.declared is not None and not (self.paid or self.calls or self.defining):
            if whole.declared.protecting is not None and whole.declared.protecting.public_size:
                return  # its undivided count is free, and the kernel knows which that is
            help = "write `with epsilon 0.1` at the end of the select, or put it into `with epsilon 0.1 { … }`"
            message = f"this query reads `{whole.declared.name}`, which is private, and nothing pays for it"
            self.report.add("NoEpsilon", message, select.span, label="no epsilon", help=help, notes=whole.trail)

    def wrong_select(self, select: n.Select, table: Table, env: Env) -> bool:
        if table.columns is not None and queries.check_columns(
            select, table.columns, self.is_variable(env), self.report
        ):
            return True
        return (
            queries.check_result_names(select, self.report)
            or queries.check_bare(select, table, self.report)
            or queries.check_keys(select, table, self.delta > 0, self.report)
            or queries.check_bounds(select, table, self.report)
        )

    def table(self, expr: n.Expr, env: Env) -> Value:
        if isinstance(expr, n.Select):
            self.select(expr, env)
            return UNKNOWN
        return self.value(expr, env)

    def spend(self, spend: n.Spend, env: Env, quiet: bool = False) -> None:
        if not quiet:
            self.amount(spend.amount, env)

    def amount(self, amount: n.Amount, env: Env) -> None:
        for part in (amount.value, amount.delta):
            if part is not None and self.labels.spent(self.value(part, env), part):
                return
        if self.labels.sure:
            amounts.check_amount(amount, self.report)

    @contextmanager
    def allotted(self, spend: n.Spend) -> Iterator[None]:
        with_delta = spend.amount.delta is not None
        self.paid += 1
        self.delta += with_delta
        yield
        self.paid -= 1
        self.delta -= with_delta

    @contextmanager
    def perhaps(self) -> Iterator[None]:
        """Inside a called function, what is in a branch or a loop may never be reached with these arguments."""
        was, self.labels.sure = self.labels.sure, self.labels.sure and not self.calls
        yield
        self.labels.sure = was

    def choice(self, expr: n.Choice, env: Env) -> Value:
        self.check_choice(expr, env)
        return Chooser()


def _columns(described: n.Expr | None) -> dict[str, n.Expr] | None:
    """The columns of a description that is written out."""
    return dict(described.items) if isinstance(described, n.RecordOf) else None
