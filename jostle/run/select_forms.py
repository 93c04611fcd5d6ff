"""What the text of a select says, whatever its tables hold: its results, their aggregates and the names of its keys.

It is found once for each select and the columns that it reads, however often a program comes by. So are its expressions
on rows, where they hold columns and constants alone. A name that means anything else where the select stands is looked
up each time. Of two sides of a join that have a column of one name the first has it; the other's is copied under its
full name where the select names it, as `b.x`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from inspect import isabstract
from operator import attrgetter
from pkgutil import iter_modules
from typing import Any, cast

from msgspec import Struct

from jostle.diagnostics import Diagnostic, Refusal, refuse
from jostle.language import forms, row_mistakes
from jostle.language.aggregates import AGGREGATES, DISTINCT, AggregateRow
from jostle.language.row_functions import ROW_FUNCTIONS
from jostle.plan.facts import key_of
from jostle.plan.kinds import kind_of
from jostle.plan.plan import STATISTICS, Categories, Column, Filter, RowExpr, Truncate, rows_below
from jostle.plan.schemas import MOST_KEYS
from jostle.privacy.kernel.handles import Cube, Table
from jostle.privacy.measurements import aggregates as files_of_aggregates
from jostle.privacy.measurements.aggregates.aggregate import Aggregate
from jostle.privacy.measurements.selects import GroupKey
from jostle.privacy.transformations import transform
from jostle.privacy.transformations.joins import FreeJoin, free_join, join
from jostle.privacy.transformations.persons import join_own_rows
from jostle.records import replace
from jostle.run import persons, publictables
from jostle.run.clauses import whole
from jostle.run.evaluator import Evaluator, PlacedAt
from jostle.run.persons import Counted
from jostle.run.rows import RowCompiler
from jostle.run.scope import Qualifiers, Scope, full_name
from jostle.run.values import kind_name
from jostle.syntax import nodes as n
from jostle.syntax.walk import children, expressions, key_names

_UNIT = attrgetter("unit")
CLOSED = {
    n.Name, n.Number, n.String, n.Constant, n.Unary, n.Binary, n.Logic, n.Conditional, n.Call, n.Star, n.Distinct,
    n.ListOf, n.SetOf, n.Range,
}  # fmt: skip
"""Expressions that mean the same wherever they stand, as long as their names do."""

_BINDING = (n.Comprehension, n.Over, n.Lambda, n.Select)
"""In these a name may be another than around them."""

_CLASSES = {
    name: value for _, module, _ in iter_modules(files_of_aggregates.__path__)
    for name, value in vars(import_module(f"jostle.privacy.measurements.aggregates.{module}")).items()
    if isinstance(value, type) and issubclass(value, Aggregate)
}  # fmt: skip


def _class_of(row: AggregateRow) -> type[Aggregate]:
    kind = _CLASSES.get(row.name.title().replace("_", ""))
    if kind is None or isabstract(kind) or kind.name != row.name:
        raise ImportError(f"`{row.name}` has no class that is complete and has its name")
    if kind.statistics is Aggregate.statistics and row.name not in STATISTICS:
        raise ImportError(f"`{row.name}` does not say which statistics it is of a public table")
    return kind


CLASSES = {row.name: _class_of(row) for row in (*AGGREGATES.values(), *DISTINCT.values())}
"""The classes of aggregates by name. A row without a class, and a class with a part missing, are import errors."""


class BoundRows(Struct, frozen=True):
    """The expressions on rows of a select, of a schema: public facts, without a table, an amount or a variable."""

    condition: RowExpr | None
    keys: tuple[GroupKey, ...]
    measured: tuple[tuple[Aggregate, Counted | None], ...]


class Output(Struct, frozen=True):
    """A column of the result: its name, its expression, and the aggregates in it."""

    name: str
    value: n.Expr
    calls: tuple[n.Call, ...]

    @staticmethod
    def of(column: n.Column) -> Output:
        name, value = column.name, column.value
        if name is None and isinstance(value, n.Call) and isinstance(value.function, n.Name):
            name = value.function.id
        return Output(name or "value", value, tuple(forms.aggregates(value)))


@dataclass(eq=False)
class SelectForm:
    """`node` has its keys and persons written out: `group by decade` by what `decade` stands for.

    `rows` are its expressions as they were bound last, of the schema that the form is of.
    """

    node: n.Select
    outputs: tuple[Output, ...]
    rows: BoundRows | None = None

    @staticmethod
    def of(node: n.Select, table: Table | Cube) -> SelectForm:
        """The form of a select that reads this table, or joins that give it; the select keeps the last. Which keys
        there are may follow from how columns are calculated."""
        base = rows_below(table.plan, (Filter, Truncate)) if node.keys and isinstance(table, Table) else None
        facts = (table.schema, type(table), tuple(map(_UNIT, table.exposures)), base)
        of, form = vars(node).get("form", (None, None))
        if of != facts:
            columns = tuple([name for name, _ in table.schema])
            meant = forms.persons_by_column(forms.keys_by_alias(node, columns), columns, persons.columns_alone(table))
            form = SelectForm(meant, tuple(map(Output.of, meant.columns)))
            vars(node)["form"] = facts, form
        return cast("SelectForm", form)

    @cached_property
    def own_names(self) -> tuple[str, ...] | None:
        """The names in its expressions on rows, none of which a program may have given; None where one of these
        expressions depends on more than its names."""
        nodes: list[n.Node] = [*self.calls, *([] if self.node.where is None else [self.node.where])]
        for key in self.node.keys:
            if key.running or isinstance(key.value, n.ListOf):
                return None
            nodes += (key.value,) if key.over is None else (key.value, key.over)
        for part in tuple(nodes):
            nodes += children(part, deep=True)
        names: dict[str, None] = {}
        for node in nodes:
            if isinstance(node, n.Name):
                names[node.id] = None
            elif type(node) not in CLOSED or (isinstance(node, n.Call) and _is_open(node)):
                return None
        return tuple(names)

    def rows_in(self, scope: Scope) -> BoundRows | None:
        """Its expressions as they were bound before, where they mean the same in this scope."""
        return self.rows if self.rows is not None and not scope.gives(self.own_names or ()) else None

    def keep(self, rows: BoundRows, scope: Scope) -> None:
        """Keeps expressions that were bound in this scope, where they do not depend on it."""
        if self.own_names is not None and not scope.gives(self.own_names):
            self.rows = rows

    @cached_property
    def calls(self) -> tuple[n.Call, ...]:
        """The aggregates of all results."""
        return tuple([call for output in self.outputs for call in output.calls])

    @cached_property
    def tells_apart(self) -> bool:
        """Whether an aggregate is of something distinct."""
        return any(isinstance(arg, n.Distinct) for call in self.calls for arg in call.args)

    @cached_property
    def key_names(self) -> tuple[str, ...]:
        return tuple(key_names([(key.value, key.name) for key in self.node.keys], self.node.columns))

    @cached_property
    def beside(self) -> tuple[n.Name, ...]:
        """The names beside the aggregates of calculated results."""
        parts = forms.outside_aggregates([output.value for output in self.outputs if output.value not in output.calls])
        names = tuple([part for part in parts if isinstance(part, n.Name)])
        return () if any(isinstance(part, _BINDING) for part in parts) else names

    def need_values(self, table: Table | Cube, keys: Sequence[str], scope: Scope) -> None:
        """Refuses results that are calculated, beside aggregates, of what has no value in a group."""
        for name in self.beside:
            if name.id in keys or scope.holds(name.id):
                continue
            if name.id in dict(table.schema):
                message, help = forms.lone_column(name, self.node.keys)
                raise refuse("TypeError", message, name.span, help=help)
            span = next((output.value.span for output in self.outputs if output.name == name.id), None)
            help = "a result is calculated of aggregates, and of names outside of the select"
            help = help if span is None or name.span.within(span) else f"write `{span.text}` in its place"
            raise refuse("NameError", f"unknown name `{name.id}`", name.span, help=help)

    @cached_property
    def calculated_by(self) -> set[str] | None:
        """The functions by which results, conditions and orders are calculated of what is released; None where there
        are none of these, or something else may happen by it."""
        values = [output.value for output in self.outputs if output.value not in output.calls]
        values += [] if self.node.having is None else [self.node.having]
        parts = forms.outside_aggregates([*values, *(rank.value for rank in self.node.ranking)])
        calls = [part for part in parts if isinstance(part, n.Call)]
        if not parts or not {type(part) for part in parts} <= CLOSED or any(map(_is_open, calls)):
            return None
        return {call.function.id for call in calls if isinstance(call.function, n.Name)}

    def calculates(self, scope: Scope) -> bool:
        """Whether its results are calculated of what is released, by the language's own functions alone."""
        return self.calculated_by is not None and not scope.gives(self.calculated_by)

    def try_out(self, interp: Evaluator, result: Callable[[], object], scope: Scope) -> None:
        """Refuses, before it is paid for, what cannot be calculated of `examples` of the answers, as `result` does."""
        if not self.calculates(scope):
            return
        interp.trying = True
        try:
            result()
        except Refusal as refusal:
            if refusal.first.kind in ("TypeError", "NameError", "PrivateValue"):
                raise
        finally:
            interp.trying = False

    @cached_property
    def is_smooth(self) -> bool:
        return forms.is_smooth(self.node)

    def place(
        self, refusal: Refusal, table: Table | Cube, keys: Sequence[GroupKey], aggregates: Sequence[Aggregate],
        compiler: RowCompiler,
    ) -> Refusal:  # fmt: skip
        """A refusal of the request at the part of the select that it is about, with what to write there."""
        if refusal.first.span is not None:
            return refusal
        fault = None
        if isinstance(table, Table) and len(keys) == len(self.node.keys):
            fault = self._open_key(refusal, table, keys) or self._at_aggregate(refusal, table, aggregates, compiler)
        if fault is not None:
            return Refusal(fault)
        if refusal.first.kind == "OpenKeys" and self.node.keys:
            return refusal.at(self.node.keys[0].value.span)
        return refusal.at(self.calls[0].span if len(self.calls) == 1 else self.node.span)

    def _open_key(self, refusal: Refusal, table: Table, keys: Sequence[GroupKey]) -> Diagnostic | None:
        """The first key whose values are not public."""
        if refusal.first.kind != "OpenKeys" or len(self.node.keys) > len(keys):
            return None
        for key_node, key in zip(self.node.keys, keys, strict=True):
            if key_node.over is None and key_of(key.expr, key.over, table.domains, MOST_KEYS) is None:
                of_amount = self.node.spend is None or self.node.spend.amount.delta is None
                of_budget = not all(e.source.measure.limit.delta for e in table.exposures)
                if not of_amount and not of_budget:  # what is wrong is another key, which is listed
                    return None
                kind, described = kind_of(key.expr, table.domains), isinstance(key.expr, Column)
                name = key.expr.name if isinstance(key.expr, Column) else ""
                fault = row_mistakes.open_key(key_node, kind, described, of_budget)
                if any(name in exposure.unit.columns for exposure in table.exposures):
                    rows = f"one row for each person is `select … per {key_node.value.span.text}`"
                    fault = replace(fault, help=f"{rows}; {fault.help}")
                return fault
        return None

    def _at_aggregate(
        self, refusal: Refusal, table: Table, aggregates: Sequence[Aggregate], compiler: RowCompiler
    ) -> Diagnostic | None:
        """The first aggregate that is refused by itself."""
        for call, aggregate in zip(self.calls, aggregates, strict=False):
            try:
                aggregate.check(table)
                if table.private:
                    aggregate.check_private(table)
            except Refusal as own:
                if own.first.message != refusal.first.message or not call.args or not aggregate.expressions:
                    continue
                return _argument_fault(own.first, call, aggregate, compiler)
        return None

    def need_aggregates(self, table: Table | Cube) -> None:
        """Refuses a result that would hand out rows."""
        for output in self.outputs:
            if output.calls:
                continue
            span = output.value.span
            if isinstance(output.value, n.Name) and self.calls:
                if output.value.id not in dict(table.schema):
                    raise Refusal(row_mistakes.no_column(output.value.id, dict(table.schema), {}, span))
                message, help = forms.lone_column(output.value, self.node.keys)
                raise refuse("TypeError", message, span, help=help)
            if table.private:
                source = table.exposures[0].source
                raise Refusal(row_mistakes.hands_out_rows(self.node, output.value, source.name, source.span))
            raise refuse("TypeError", "a select gives aggregates, not rows", span, help="such as `count(*)`")

    def need_distinct_names(self, keys: list[str]) -> None:
        """Refuses two columns of one name among the keys and the results."""
        fault = row_mistakes.same_names(self.node, keys)
        if fault is not None:
            raise Refusal(fault)

    def counts_persons(self, table: Table | Cube) -> n.Call | None:
        """`count(distinct person)` among the aggregates, which stands alone where it is written by that word."""
        if not self.tells_apart:
            return None
        counted = [call for call in self.calls if isinstance(table, Table) and _is_of_persons(call, table)]
        if counted and len(self.calls) > 1 and names_person(counted[0]):
            raise refuse(
                "TypeError", "persons are counted apart from rows, by which they weigh differently", counted[0].span,
                help="give `count(distinct person)` a select of its own",
            )  # fmt: skip
        return counted[0] if len(self.calls) == 1 and counted else None


def _is_open(call: n.Call) -> bool:
    """Whether a call is of more than what rows and groups are calculated with."""
    function = call.function  # what another call gives is called, and refused
    named = isinstance(function, n.Name) and (function.id in ROW_FUNCTIONS or function.id in AGGREGATES)
    return not (named or isinstance(function, n.Call)) or bool(call.keywords)


_APART = (n.Attribute, n.Index, n.Query, n.Select, n.Lambda, n.Comprehension, n.Over)
"""Expressions whose parts are no rows' own."""


def at_fault(compiler: RowCompiler, node: n.Expr, refusal: Refusal) -> Refusal:
    """A refusal of the kinds in an expression on rows, at the part of it that mixes them, with what to write there."""
    try:
        _kind_of_expr(compiler, node)
    except Refusal as placed:
        return placed
    return refusal.at(node.span)


def _kind_of_expr(compiler: RowCompiler, node: n.Expr) -> str | None:
    """The kind of an expression; None where it reads no column or is not known."""
    kinds = [] if isinstance(node, _APART) else [_kind_of_expr(compiler, part) for part in expressions(node)]
    try:
        expr = compiler.part(node)
        return None if expr is None else kind_of(expr, compiler.schema)
    except Refusal as refusal:
        if refusal.first.span is not None:
            raise
        left, right = (*kinds, None, None)[:2]
        side = node.left if isinstance(node, n.Binary) and left == "text" else getattr(node, "right", None)
        domain = compiler.schema.get(side.id) if isinstance(side, n.Name) else None
        values = domain.values if isinstance(domain, Categories) else None
        help = row_mistakes.other_kind(node, left, right, values) or refusal.first.help
        raise Refusal(replace(refusal.first, span=node.span, help=help)) from None


def _argument_fault(fault: Diagnostic, call: n.Call, aggregate: Aggregate, compiler: RowCompiler) -> Diagnostic:
    """What is wrong with what an aggregate is taken of, and how to write it."""
    arg = next((arg for arg in call.args if not isinstance(arg, n.Star | n.Distinct)), None)
    if arg is None:
        return replace(fault, span=call.span)
    try:
        column = isinstance(arg, n.Name) and arg.id in compiler.schema  # of days an average is one of numbers
        kind = kind_of(Column(arg.span.text) if column else aggregate.expressions[0], compiler.schema)
    except Refusal as mixed:
        return at_fault(compiler, arg, mixed).first
    if fault.kind == "UnboundedSum":
        return row_mistakes.no_bounds(call, arg, kind, compiler.schema)
    if fault.kind == "OpenKeys":
        return row_mistakes.open_mode(arg)
    return replace(fault, span=call.span, help=fault.help.replace("(x,", f"({arg.span.text},"))


def _is_of_persons(call: n.Call, table: Table) -> bool:
    if not (isinstance(call.function, n.Name) and call.function.id == "count" and len(call.args) == 1):
        return False
    (arg,) = call.args
    return table.private and isinstance(arg, n.Distinct) and persons.is_person(arg.value, table)


def names_person(call: n.Call) -> bool:
    """Whether it counts what is written as `person`."""
    arg = call.args[0]
    return isinstance(arg, n.Distinct) and isinstance(arg.value, n.Name) and arg.value.id == forms.PERSON


# `via smooth`: counts of joins of private tables without a bound ---------------------------------


def need_inner(joined: n.Join, bounded: bool) -> None:
    """Refuses what is not a plain join beside, or after, one without a bound."""
    if joined.kind != "inner":
        raise refuse(
            "TypeError", f"a {joined.kind} join of private tables needs `up to`", joined.span,
            help="`via smooth` counts the pairs of a `join`",
        )  # fmt: skip
    if bounded:
        raise refuse(
            "TypeError", "after a join without a bound stands one that has one", joined.span,
            help="put the joins `up to …` and `on person` first",
        )  # fmt: skip


def placed(refusal: Refusal, node: n.Select, calls: Sequence[n.Call]) -> Refusal:
    """A refusal of such a select at the part of it that it is about."""
    if refusal.first.kind == "BadAmount" and node.spend is not None:
        return refusal.at(node.spend.span)
    if refusal.first.kind == "OpenKeys" and node.keys:
        return refusal.at(node.keys[0].span)
    return refusal.at(calls[-1].span if calls else node.span)


def smooth_wish(spend: n.Spend) -> Refusal:
    """Of one that says an error or a weight, or stands in a `jointly` block."""
    return refuse(
        "TypeError", "the noise of `via smooth` depends on the data: its error cannot be asked for, nor shared",
        spend.span, help="give the select an amount of its own, `with epsilon 1 delta 1e-6 via smooth`",
    )  # fmt: skip


# Tables: what stands after `from`, and its joins --------------------------------------------------


def _readable(interp: Evaluator, node: n.Expr, scope: Scope) -> Any:
    """What stands after `from` or `join`: records, a released result and synthetic rows are a public table there."""
    value: Any = interp.eval(node, scope)
    made_of_rows = not isinstance(value, (Table, Cube)) and publictables.is_rows(value)
    return publictables.table_of_rows(value, node.span) if made_of_rows else value


def select_tables(interp: Evaluator, node: n.Select, scope: Scope) -> tuple[Table | Cube, Qualifiers]:
    """The table that a select reads, its joins included, and what its columns are called."""
    table = _readable(interp, node.table, scope)
    if not isinstance(table, (Table, Cube)):
        message, text = f"a select reads a table or a cube, and this is {kind_name(table)}", node.table.span.text
        help = 'write `from table("people.csv")`, or a name that a table has'
        if isinstance(table, list):
            help = "a part stands beside its key: write `for key, part in partition(…)`"
        if isinstance(table, str):
            help = f"write `from {table}`" if scope.holds(table) else f"write `from table({text})`"
        raise refuse("TypeError", message, node.table.span, help=help)
    tables, smooth = Qualifiers(node.table, dict(table.schema), node.alias), forms.is_smooth(node)
    used = forms.qualified_names(node) if node.joins else frozenset()
    for joined in node.joins:
        table = _joined(interp, table, joined, scope, tables, smooth, used)
    if smooth and table.private and not isinstance(table, FreeJoin):
        raise Refusal(forms.no_free_join(node))
    return table, tables


def _joined(
    interp: Evaluator, left: Any, joined: n.Join, scope: Scope, tables: Qualifiers, smooth: bool,
    used: Collection[tuple[str, str]],
) -> Table:  # fmt: skip
    right = _readable(interp, joined.table, scope)
    for side in (left, right):
        if not isinstance(side, Table):
            raise refuse("TypeError", f"a join takes tables, and this is {kind_name(side)}", joined.span)
    most = whole(interp, joined.up_to, scope) if joined.up_to is not None else None
    shared = [match.column for match in joined.on if match.column == match.theirs]
    name = tables.add(joined.table, dict(right.schema), joined.alias, shared, joined.kind)
    left, right = (left, right) if smooth else _with_full_names(left, right, name, tables.apart(used))
    on = [(match.column, match.theirs) for match in joined.on if not persons.is_word(match, left, right)]
    own = len(on) < len(joined.on) or persons.tell_persons(left, right, on)
    if not own:
        _need_public(joined, left, right)
    bounded, sides = most is not None or own, publictables.known_sides(interp.data, left, right)
    with PlacedAt(joined.span):
        if isinstance(left, FreeJoin) or (smooth and not bounded and left.private and right.private):
            need_inner(joined, bounded)
            return free_join(*sides, on)
        if own and most is None and left.private and right.private:
            return join_own_rows(left, right, on, joined.kind)
        return join(interp.data, *sides, on, most, joined.kind)


def _need_public(joined: n.Join, left: Table, right: Table) -> None:
    """Refuses to look up in a private table what does not tell its persons apart."""
    if left.private and right.private and any("`" in match.theirs for match in joined.on):
        help = f"write `id in (select id from …)` of persons; or `join … on {joined.on[0].column} = … up to 3`"
        raise refuse("TypeError", "only persons are looked up in a private table", joined.span, help=help)


def _with_full_names(left: Table, right: Table, name: str, hidden: Mapping[str, list[str]]) -> tuple[Table, Table]:
    """Both sides with copies of their hidden columns under their full names; `name` is what the right one is called."""
    for table, columns in hidden.items():
        copies = [(full_name(table, column), Column(column)) for column in columns]
        if table == name:
            right = transform.derive(right, copies)
        else:
            left = transform.derive(left, copies)
    return left, right
