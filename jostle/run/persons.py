"""Selects and persons: what is read of each person, `per person`, which makes a table with one row of each; and dates.

Aggregates of dates and times are of days and seconds since 1 January 1970, with noise in these units. Where a column
has a unit (`by month`), the first day or moment of one is given, as the column has no others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from typing import Any

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.formulas import IN_DAYS, IN_SECONDS, Noised, NoisyDate, NoisyTime
from jostle.language.aggregates import AGGREGATES, AggregateRow, of_no_numbers
from jostle.language.forms import PERSON, aggregates
from jostle.language.moments import DAY, FIRST_DAY, FIRST_TIME, LAST_DAY, LAST_TIME, SPANS, moment_of, number_of
from jostle.language.patterns import truncated
from jostle.plan import plan as p
from jostle.plan.facts import bounds_of, divides, key_of, unit_of
from jostle.plan.kinds import as_number, grid_bits, is_integral, kind_of
from jostle.plan.schemas import MOST_KEYS, person_columns
from jostle.privacy.kernel.handles import ColumnHandle, Table
from jostle.privacy.measurements.selects import GroupKey
from jostle.privacy.transformations import persons, transform
from jostle.records import replace
from jostle.run.arguments import need_table
from jostle.run.clauses import whole
from jostle.run.evaluator import Evaluator, PlacedAt, builtin
from jostle.run.operators import applied
from jostle.run.propagation import of_numbers
from jostle.run.rows import RowCompiler
from jostle.run.scope import Scope
from jostle.run.sequences import Period
from jostle.run.values import is_number, kind_name
from jostle.syntax import nodes as n
from jostle.syntax.walk import own_name

_SECOND = SPANS["second"]


class Counted(Struct, frozen=True):
    """The number that stands for a date or time in an aggregate: `expr`, in steps of `step` days or microseconds."""

    kind: str
    expr: p.RowExpr
    step: int
    unit: str

    def moment(self, value: Any) -> date | None:
        """The date or time that an answer stands for: the day or moment in which it lies."""
        if value is None:
            return None
        first, last = (FIRST_DAY, LAST_DAY) if self.kind == "date" else (FIRST_TIME, LAST_TIME)
        number = min(max(math.floor(float(value) * self.step), first), last)
        number = truncated(self.kind, number, self.unit) if self.unit else number
        plain = moment_of(self.kind, number)
        return self._with_error(plain, value, float(value) * self.step - number) if type(value) is Noised else plain

    def _with_error(self, plain: date, value: Noised, lost: float) -> date:
        noisy: NoisyDate | NoisyTime = NoisyDate.fromordinal(plain.toordinal())
        if isinstance(plain, datetime):
            noisy = NoisyTime.combine(plain, plain.time())
        noisy.cut, noisy.hidden, noisy.half_width = value.cut, value.hidden, partial(self._error, value, lost)
        return noisy

    def _error(self, value: Noised, lost: float) -> tuple[float, str] | None:
        """How far off the moment is, in days or seconds where that is known, else as the number has it."""
        (one,) = of_numbers([value])
        if one is None:
            return value.ranks
        error = one.error * self.step + lost
        return (error, IN_DAYS) if self.kind == "date" else (error / _SECOND, IN_SECONDS)

    def shifted(self, number: p.RowExpr) -> p.RowExpr:
        """The same of a number in a row."""
        if self.kind == "number":
            return number
        if self.kind == "date":
            return p.Apply("shift", (_beginning("date"), number))
        days = p.Apply("/", (number, p.Constant(86_400e6 / self.step)))
        return p.Apply("shift time", (_beginning("time"), days))


def counted(row: AggregateRow, expr: p.RowExpr, schema: Mapping[str, p.Domain]) -> Counted | None:
    """What an aggregate is taken of for a date or a time; None for other kinds, and where it takes no such thing."""
    kind = kind_of(expr, schema) if row.gives_moments else ""
    if kind not in ("date", "time"):
        return None
    unit = "" if row.name == "avg" else unit_of(expr, schema)
    if kind == "date":
        return Counted(kind, p.Apply("days_between", (_beginning(kind), expr)), 1, unit)
    seconds = p.Apply("seconds_between", (_beginning(kind), expr))
    if unit not in SPANS:
        return Counted(kind, seconds, _SECOND, unit)
    whole = p.Apply("floor", (p.Apply("/", (seconds, p.Constant(SPANS[unit] / _SECOND))),))
    return Counted(kind, whole, SPANS[unit], unit)


def periods_of(keys: Period, expr: p.RowExpr, schema: Mapping[str, p.Domain]) -> tuple[Period, p.RowExpr]:
    """The keys `from … to … by month`, and what of a row is compared with them: the first day of its month.

    Keys of an expression that is by month already, `trunc(day, "month")`, are by month, also where they are said to be
    by day.
    """
    kind = kind_of(expr, schema)
    own = unit_of(expr, schema) if kind in ("date", "time") else ""
    if not keys.unit or divides(own, keys.unit):
        keys = Period(keys.low, keys.high, own)
    if kind == "time" and keys.kind == "date":
        last = number_of(keys.high) * DAY + (DAY - _SECOND if keys.unit in SPANS else 0)
        keys = Period(moment_of(kind, number_of(keys.low) * DAY), moment_of(kind, last), keys.step)
    by_unit = keys.unit and kind in ("date", "time")
    return keys, applied("trunc", (expr, p.Constant(keys.unit)), schema) if by_unit else expr


def _beginning(kind: str) -> p.Constant:
    return p.Constant(date(1970, 1, 1) if kind == "date" else datetime(1970, 1, 1))


def is_person(node: n.Expr, table: Table) -> bool:
    """Whether an expression stands for whose a row is: `person`, or the protected column."""
    if not isinstance(node, n.Name):
        return False
    return (node.id == PERSON and PERSON not in table.domains) or node.id in person_columns(table.plan)


def columns_alone(table: Any) -> list[str]:
    """The columns, described or not, of which each alone tells persons apart by the declarations of a table: none where
    a person is one of a period, or is looked up by the column."""
    units = [e.unit for e in table.exposures if len(e.unit.columns) == 1 and not e.unit.each]
    own = _told_by(table.plan) if isinstance(table, Table) and any(unit.linked for unit in units) else None
    return [unit.columns[0] for unit in units if own is None or unit.columns in own]


def _told_by(plan: p.Plan) -> set[tuple[object, ...]]:
    """By which columns the tables below a plan tell whose a row is."""
    waiting, plans = [plan], {plan}
    while waiting:
        inner = () if isinstance(here := waiting.pop(), p.Bound) else p.inputs(here)
        waiting += set(inner) - plans
        plans.update(inner)
    return {one.by for one in plans if isinstance(one, p.Bound)}


def tell_persons(left: Table, right: Table, on: Collection[tuple[str, str]]) -> bool:
    """Whether columns that are joined on tell apart the persons of both sides."""
    return any(mine in person_columns(left.plan) and theirs in person_columns(right.plan) for mine, theirs in on)


def is_word(match: n.Match, left: Table, right: Table) -> bool:
    """Whether a join is on `person`, or on columns of persons of which one at least is not described.

    The key of `in (select …)` has a name with a backquote; where that key is the persons' column, the right side has no
    column of this name.
    """
    sides = [(match.column, left), (match.theirs, right)]
    words = [(name, side) for name, side in sides if name not in side.domains]
    if not all(name == PERSON or "`" in name or name in columns_alone(side) for name, side in words):
        return False
    return bool(words) and all(side in words or side[0] in person_columns(side[1].plan) for side in sides)


def limited(interp: Evaluator, table: Table, keys: Sequence[GroupKey], limit: n.Limit | None, scope: Scope) -> Table:
    """The rows of a table within a select's `up to 5 groups, 2 rows each`."""
    if limit is None:
        return table
    groups, rows = (None if value is None else whole(interp, value, scope) for value in (limit.groups, limit.rows))
    if groups is not None and not keys:
        raise refuse(
            "TypeError", "this select has no groups", limit.span, help="write `up to 5 rows`, or add `groupby …`"
        )
    order = None
    if limit.order is not None:
        order = RowCompiler(table.domains, interp, scope).column_position(limit.order)[0]
    exprs = [key for _, key in _key_pairs(keys, table)]
    with PlacedAt(limit.span):
        return persons.truncate(table, exprs, groups, rows, order, limit.descending, in_all=not limit.each)


def stage(
    interp: Evaluator, node: n.Select, table: Table, person: bool, keys: Sequence[GroupKey], scope: Scope
) -> Table:
    """`select sum(amount) as total from orders per person groupby month`: a table with a row for each, as private."""
    compiler = RowCompiler(table.domains, interp, scope)
    terms: list[tuple[str, p.GroupTerm]] = []
    values: dict[int, p.RowExpr] = {}
    calculated = [*(column.value for column in node.columns), *([] if node.having is None else [node.having])]
    for call in (call for expr in calculated for call in aggregates(expr)):
        expr, distinct = _argument(call, compiler)
        name = call.function.id  # type: ignore[union-attr]
        with PlacedAt(call.span):
            moment = counted(AGGREGATES[name], expr, table.domains) if expr is not None else None
            aggregate = summary(name, moment.expr if moment is not None else expr, distinct, table)
        names = [f"\u00b7{len(terms) + i}" for i in range(len(aggregate.terms))]
        terms += zip(names, aggregate.terms, strict=True)
        value = aggregate.value(tuple(p.Column(name) for name in names))
        values[id(call)] = value if moment is None else moment.shifted(value)
    with PlacedAt(node.span):
        grouped = persons.group_rows(table, person, _key_pairs(keys, table), terms)
    columns = _results(node, keys, RowCompiler(grouped.domains, interp, scope, aggregates=values))
    with PlacedAt(node.span):
        rows = transform.derive(grouped, tuple(columns.items()))
        if node.having is None:
            return transform.pick(rows, tuple(columns))
        having_rows = RowCompiler(rows.domains, interp, scope, aggregates=values)
        rows_left = transform.where(rows, having_rows.condition(node.having))
        return transform.pick(rows_left, tuple(columns))


def projection(node: n.Select, table: Table, compiler: RowCompiler) -> Table:
    """`select amount as a, item from orders where amount > 10`, after `from`: a table of these columns, as private."""
    total = next((call for column in node.columns for call in aggregates(column.value)), None)
    if total is not None:
        message = f"`{total.span.text}` is of all rows, and a table has a row for each person or group"
        help = "write `per person` or `groupby …` after it; or give this select an amount and a name of its own"
        raise refuse("TypeError", message, total.span, help=help)
    columns = _results(node, (), compiler)
    with PlacedAt(node.span):
        return transform.pick(transform.derive(table, tuple(columns.items())), tuple(columns))


def _results(node: n.Select, keys: Sequence[GroupKey], compiler: RowCompiler) -> dict[str, p.RowExpr]:
    """The columns of the new table: its keys and what is calculated of each person or group."""
    columns: dict[str, p.RowExpr] = {key.name: p.Column(key.name) for key in keys}
    for i, column in enumerate(node.columns):
        if isinstance(column.value, n.Star):
            columns |= {name: p.Column(name) for name in compiler.schema if "`" not in name}  # which are its own
            continue
        name = column.name or own_name(column.value) or f"value{i + 1}"
        if name in columns and not (keys and isinstance(column.value, n.Name)):
            message = f"two columns of this select are named `{name}`"
            raise refuse("NameError", message, column.span, help="name one: `… as n`")
        columns[name] = compiler.expression(column.value)
    return columns


def _argument(call: n.Call, compiler: RowCompiler) -> tuple[p.RowExpr | None, bool]:
    """The expression that is summed up, and whether different values of it are."""
    name = call.function.id  # type: ignore[union-attr]
    row = AGGREGATES[name]
    if name == "count" and len(call.args) == 1 and isinstance(call.args[0], n.Star):
        return None, False
    if len(call.args) != 1 or call.keywords or row.numbers or row.expressions != 1:
        raise refuse(
            "TypeError", f"`{name}` is not taken of each person or group", call.span,
            help="there are `count(*)`, `count(E)`, `count(distinct E)`, `sum`, `avg`, `min` and `max`",
        )  # fmt: skip
    (arg,) = call.args
    if isinstance(arg, n.Distinct):
        if name != "count":
            raise refuse("TypeError", "`distinct` stands only in `count`", call.span)
        return compiler.counted_position(arg.value), True
    if isinstance(arg, n.Star):
        raise refuse("TypeError", "`*` stands only in `count`", call.span)
    expr = compiler.column_position(arg, constant=isinstance(arg, n.Number))[0]
    return as_number(expr, compiler.schema) if row.bounded else expr, False


MOST_MOMENTS = 10_000


@builtin
def _in_order(table: object, by: object, most: object, within: object = None, what: object = None) -> Table:
    """`in_order(t, "day", 5)`: a row for each moment of a person, also within each value of another column."""
    table = need_table(table, "in_order")
    if not is_number(most) or not float(most).is_integer() or not 1 <= most <= MOST_MOMENTS:
        raise refuse("ValueError", f"rows of a person are a whole number from 1 to {MOST_MOMENTS:,}")
    at, *other = [_column(table, one) for one in (by, within, what) if one is not None]
    terms: dict[str, tuple[p.GroupTerm, Counted]] = {}
    moment = _number(at, table)
    for name, where in (("before", "previous"), ("next", "next")):
        terms[name] = p.Beside(moment.expr, where), moment
    if what is not None:
        value = _number(other[-1], table)
        terms["value"] = p.Extreme(value.expr, largest=False), value
        for name in ("previous", "largest", "smallest"):
            terms[name] = p.Beside(value.expr, name), value
    keys = [("side", other[0])] if within is not None else []
    summaries = [("place", p.Beside(None)), *((name, term) for name, (term, _) in terms.items())]
    rows = persons.group_rows(table, True, [*keys, ("at", at)], summaries)
    if any(e.rows is None or e.rows > most for e in rows.exposures):
        rows = persons.truncate(rows, (), None, int(most))
    columns: list[tuple[str, p.RowExpr]] = [] if within is not None else [("side", p.Constant(0.0))]
    columns.append(("place", p.Apply("min", (p.Column("place"), p.Constant(float(most))))))
    columns += [(name, number.shifted(p.Column(name))) for name, (_, number) in terms.items()]
    return transform.derive(rows, columns)


def _column(table: Table, one: object) -> p.Column:
    name = one.name if isinstance(one, ColumnHandle) else one
    if not isinstance(name, str):
        raise refuse("TypeError", f"`in_order` takes a column or its name, not {kind_name(name)}")
    transform.need_column(table.domains, name)
    return p.Column(name)


def _number(column: p.Column, table: Table) -> Counted:
    """The number that stands for a number, a date or a time in an order."""
    expr = as_number(column, table.domains)
    if kind_of(expr, table.domains) == "text":
        raise refuse("TypeError", "rows of a person are put in order by numbers, dates or times, and not by texts")
    return counted(AGGREGATES["min"], expr, table.domains) or Counted("number", expr, 1, "")


def persons_in_groups(table: Table, keys: Sequence[GroupKey]) -> tuple[Table, list[GroupKey]]:
    """A table whose rows are the persons of each group, once each, and the keys of its groups."""
    for name in [key.name for key in keys if key.running is not None]:
        message = "a person who is at several steps of a running key would count at each of them"
        help = f"count the rows of `(select min({name}) as {name} from … per person)`: each person's first step"
        raise refuse("TypeError", message, help=help)
    grouped = persons.persons_of_groups(table, _key_pairs(keys, table))
    return grouped, [replace(key, expr=p.Column(key.name)) for key in keys]


def _key_pairs(keys: Sequence[GroupKey], table: Table) -> list[tuple[str, p.Key | p.RowExpr]]:
    """The names of keys, and their public values where they have some."""
    return [(key.name, key_of(key.expr, key.over, table.domains, MOST_KEYS) or key.expr) for key in keys]


GRID = 40  # steps of a sum are 2^-40 of its largest summand, or finer


class Summary(Struct, frozen=True):
    """The terms of an aggregate over a group of rows, and its value from theirs."""

    terms: tuple[p.GroupTerm, ...]
    value: Callable[[tuple[p.RowExpr, ...]], p.RowExpr]


def summary(name: str, expr: p.RowExpr | None, distinct: bool, table: Table) -> Summary:
    """An aggregate of the language over the rows of a group: `count sum avg min max`."""
    if name == "count":
        return Summary((p.Count(expr, distinct),), lambda terms: terms[0])
    if expr is None or name not in ("sum", "avg", "min", "max"):
        raise refuse(
            "TypeError", f"`{name}` is not taken of each person or group",
            help="there are `count(*)`, `count(E)`, `count(distinct E)`, `sum`, `avg`, `min` and `max`",
        )  # fmt: skip
    if kind_of(expr, table.domains) != "number":
        raise of_no_numbers(name, kind_of(expr, table.domains))
    if name in ("min", "max"):
        return Summary((p.Extreme(expr, name == "max"),), lambda terms: terms[0])
    total = _sum(name, expr, table)
    if name == "sum":
        return Summary((total,), lambda terms: terms[0])
    ends = p.Constant(total.low), p.Constant(total.high)  # which a mean keeps but for its rounding
    return Summary((total, p.Count(expr)), lambda terms: p.Apply("clamp", (p.Apply("/", terms), *ends)))


def _sum(name: str, expr: p.RowExpr, table: Table) -> p.FixedSum:
    bounds = bounds_of(expr, table.domains)
    if bounds is None or max(map(abs, bounds)) >= 2.0**60:
        raise refuse(
            "UnboundedSum", f"the terms of this {name} have no known bound",
            help="describe the column with a range, or bound them: `clamp(E, low, high)`",
        )  # fmt: skip
    low, high = bounds
    most = max(abs(low), abs(high))
    bits = 0 if is_integral(expr, table.domains) else grid_bits(most, GRID)
    return p.FixedSum(expr, low, high, bits)
