"""Group keys of a select, and `having`, `order by` and `limit`, which read released values alone and cost nothing.

Keys come each by itself, `groupby sex over {"F", "M"}`, or several together over a list of their combinations, `groupby
(sex, city) over [("F", "Cork"), ("M", "Ames")]`, and over the rows of a public table or of a released result, whose
columns are found by the keys' names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import lru_cache, reduce
from itertools import chain, islice
from operator import attrgetter, lt
from typing import Any, TypeVar

from msgspec import Struct

from jostle.diagnostics import Refusal, refuse
from jostle.doubles import NoValue
from jostle.language.forms import aggregates, outside_aggregates
from jostle.language.moments import number_of
from jostle.language.row_functions import OPERATIONS
from jostle.language.row_mistakes import not_measured, not_released
from jostle.lazy import Floats, np
from jostle.plan import plan as p
from jostle.plan.facts import bounds_of, conjuncts, key_values, listed_values, narrowed_by, schema_of
from jostle.plan.kinds import Schema, is_integral, kind_of, value_kind
from jostle.plan.schemas import MOST_KEYS
from jostle.privacy.kernel.handles import Cube, Table
from jostle.privacy.measurements.aggregates.aggregate import Aggregate
from jostle.privacy.measurements.aggregates.sums import Count
from jostle.privacy.measurements.open_selects import Largest
from jostle.privacy.measurements.selects import GroupKey, Request
from jostle.privacy.transformations.transform import PLACE, with_place
from jostle.records import replace
from jostle.run.calls import calculates as built_in
from jostle.run.evaluator import Evaluator, PlacedAt
from jostle.run.operators import as_moment
from jostle.run.publictables import records
from jostle.run.rows import RowCompiler
from jostle.run.scope import MISSING, Scope
from jostle.run.select_forms import Output
from jostle.run.sequences import Period
from jostle.run.values import Grouped, Interval, JSet, is_number, is_sequence, kind_name, need_room
from jostle.source import Span
from jostle.syntax import nodes as n

Asked = TypeVar("Asked", bound=object)


class Arrangement(Struct, frozen=True):
    """Which groups are shown, and in which order; checked before anything is measured."""

    node: n.Select
    most: int | None
    scope: Scope

    @staticmethod
    def of(
        interp: Evaluator,
        node: n.Select,
        keys: Sequence[str],
        outputs: Sequence[Output],
        table: Table | Cube,
        scope: Scope,
    ) -> Arrangement:
        for expr in _expressions(node) if node.ranking or node.having is not None else ():
            names = [*keys, *(output.name for output in outputs)]
            measured = [call for output in outputs for call in output.calls]
            rows = f"of rows write `where {expr.span.text}` before the groups" if expr is node.having else ""
            _need_released(expr, names, measured, [name for name, _ in table.schema], rows, scope)
        most = None
        if node.first is not None:
            value = interp.eval(node.first, scope)
            if not is_number(value) or value < 0 or not float(value).is_integer():
                raise refuse("ValueError", "`limit` takes a whole number of groups", node.first.span)
            most = int(value)
        return Arrangement(node, most, scope)

    def largest(self, outputs: Sequence[Output], request: Asked) -> Asked | Largest:
        """The request, of only the groups that are shown where these are those with the most rows."""
        first = self.node.ranking[0] if self.node.ranking else None
        if not self.most or self.node.having is not None or first is None or not first.descending:
            return request
        if not isinstance(request, Request) or not request.open_keys:
            return request
        by, calls = first.value, [call for output in outputs for call in output.calls]
        if isinstance(by, n.Name):
            by = next((output.value for output in outputs if output.name == by.id), by)
        counted = [one for call, one in zip(calls, request.aggregates, strict=True) if call == by and one == Count()]
        return Largest.of(request, self.most) if counted else request

    def arranged(
        self,
        interp: Evaluator,
        columns: dict[str, Sequence[object]],
        calls: Sequence[n.Call],
        values: Sequence[Sequence[object]],
    ) -> dict[str, Sequence[object]]:
        """The columns of a result, with some of their rows in some order."""
        if self.node.having is None and not self.node.ranking and self.most is None:
            return columns
        many = len(next(iter(columns.values()), []))
        places = list(range(many))

        def row_value(expr: n.Expr, row: int) -> object:
            results = {id(call): values[_place(call, calls)][row] for call in aggregates(expr)}
            return self._of_group(interp, expr, {name: column[row] for name, column in columns.items()}, results)

        having = self.node.having
        if having is not None:
            rows = [(row, row_value(having, row)) for row in places]
            places = [row for row, holds in rows if holds is not None and interp.truth(holds, having)]
        for rank in reversed(self.node.ranking):
            order = [(_sort_key(row_value(rank.value, row), rank.value), row) for row in places]
            valued = [(of, row) for of, row in order if of is not None]
            valued.sort(key=lambda pair: pair[0], reverse=rank.descending)
            places = [row for _, row in valued] + [row for of, row in order if of is None]
        places = places[: self.most]
        return {name: [column[row] for row in places] for name, column in columns.items()}

    def _of_group(
        self, interp: Evaluator, expr: n.Expr, columns: dict[str, object], results: dict[int, object]
    ) -> object:
        """An expression of what was released of a group; none where that has no value, as in rows."""
        outer, interp.aggregates = interp.aggregates, {**interp.aggregates, **results}
        inner = Scope(self.scope, columns)
        inner.groups = True
        try:
            return interp.eval(expr, inner)
        except NoValue:
            return None
        except Refusal as refusal:
            if refusal.first.kind == "TypeError" and None in (*results.values(), *columns.values()):
                return None  # `none` is calculated and compared with
            raise
        finally:
            interp.aggregates = outer


def _expressions(node: n.Select) -> list[n.Expr]:
    having = [] if node.having is None else [node.having]
    return [*having, *[rank.value for rank in node.ranking]] if node.ranking else having


def _sort_key(value: object, node: n.Expr) -> tuple[int, object] | None:
    """What a value is ordered by; `none` comes last either way."""
    if value is None:
        return None
    if isinstance(value, str):
        return (1, value)
    if isinstance(value, bool) or is_number(value):
        return (0, float(value))
    if isinstance(value, date):
        return (0, number_of(value))
    raise refuse("TypeError", f"groups are ordered by numbers, texts or dates, not {kind_name(value)}", node.span)


def _place(call: n.Call, calls: Sequence[n.Call]) -> int:
    return next(i for i, other in enumerate(calls) if other == call)


def _need_released(
    expr: n.Expr, names: Sequence[str], measured: Sequence[n.Call], columns: Sequence[str], rows: str, scope: Scope
) -> None:
    """Refuses what would need a measurement, and names that are nothing here."""
    for call in aggregates(expr):
        if call not in measured:
            raise Refusal(not_measured(call))
    for part in outside_aggregates([expr]):
        if isinstance(part, n.Name) and part.id not in names and scope.find(part.id) is MISSING:
            raise Refusal(not_released(part, names, columns, rows))
        calculates = not isinstance(part, n.Query | n.Select | n.Spending | n.Call | n.Choice)
        if not calculates and not (isinstance(part, n.Call) and built_in(part, scope)):
            raise refuse(
                "TypeError", "`having` and `order by` only calculate with what is released", part.span,
                help="work this out before the query, and give it a name",
            )  # fmt: skip


MOST_LISTED = 2**16
"""Combinations of keys that a program lists at most."""


def public_keys(value: Any, span: Span) -> tuple[Any, ...]:
    """The listed keys of one column, each once."""
    if isinstance(value, Interval | Period):
        need_room(value.count, "a list of keys")
    elif not (isinstance(value, JSet) or is_sequence(value)):
        raise refuse("TypeError", f"`over` takes a set of keys, not {kind_name(value)}", span)
    if isinstance(value, Interval) and max(-value.low, value.high) <= 2**53:  # each number once, as a double
        return tuple(value)
    items = list(value)
    if set(map(type, items)) <= {float} and all(map(math.isfinite, items)):  # nearly all keys of long lists
        numbers = [item + 0.0 for item in items]
        return tuple(numbers if all(map(lt, numbers, islice(numbers, 1, None))) else dict.fromkeys(numbers))
    keys = [item + 0.0 if _is_finite(item, span) else item for item in items]
    _need_one_kind(keys, "keys are", span)
    return tuple(dict.fromkeys(keys))


def own_keys(handle: object, expr: p.RowExpr) -> tuple[float, ...] | None:
    """The keys of an expression that goes in steps."""
    return multiples(expr, handle.plan) if isinstance(handle, Table) else None


def by_value(expr: p.RowExpr, keys: Sequence[object], handle: object) -> p.RowExpr:
    """What has the listed keys: rows are taken down to keys that are all whole, but where an expression goes in steps
    with fractions, of which whole keys are some; times are taken down to dates."""
    if keys and isinstance(keys[0], date) and isinstance(handle, Table):
        return as_moment(expr, kind_of(expr, handle.domains), value_kind(keys[0]))
    steps = own_keys(handle, expr)  # few expressions go in steps, and keys may be many
    if steps is None or all(map(float.is_integer, steps)):
        return expr
    if not all(is_number(key) and float(key).is_integer() for key in keys):
        return expr
    return p.Apply("if", (p.Apply("==", (expr, p.Apply("floor", (expr,)))), expr, p.Constant(None)))


@lru_cache(maxsize=2**12)
def multiples(expr: p.RowExpr, plan: p.Plan) -> tuple[float, ...] | None:
    """The keys of a number that goes in steps, as `10 * floor(age / 10)` and `floor(score * 4) / 4` do, in order; none
    of one that has every integer, and of one that is not rounded by itself, as `age / 10`, which is taken down."""
    below: tuple[p.RowExpr, p.Plan] | None = expr, plan
    while below is not None:
        expr, plan = below
        below = _calculated_from(expr, plan) if isinstance(expr, p.Column) else None
    if not isinstance(expr, p.Apply):
        return None
    schema = schema_of(plan)
    if kind_of(expr, schema) != "number" or (is_integral(expr, schema) and _steps(expr, schema)[0] < 2):
        return None
    values = _numbers(expr, schema, rounded=not is_integral(expr, schema))
    return None if values is None else tuple(float(value) + 0.0 for value in np.unique(values))


def _calculated_from(column: p.Column, plan: p.Plan) -> tuple[p.RowExpr, p.Plan] | None:
    """What a column has the values of, and in which rows; None where it is as it was read, or another summary."""
    if isinstance(plan, p.Filter | p.Truncate):
        return column, plan.source
    if isinstance(plan, p.Derive | p.GroupRows):
        columns = dict(plan.columns if isinstance(plan, p.Derive) else plan.keys)
        return (columns[column.name], plan.source) if column.name in columns else None
    if not isinstance(plan, p.Join):
        return None
    if column.name not in schema_of(plan.left):
        return column, plan.right
    return (column, plan.left) if plan.kind in ("inner", "left") else None


def _numbers(expr: p.RowExpr, schema: Schema, rounded: bool = True) -> Floats | None:
    """The values of a number that is calculated of constants and of what is rounded to whole ones alone; None where
    there are too many. Where it need not be `rounded`, also of whole ones."""
    if isinstance(expr, p.Constant):
        values = listed_values(expr, schema) or ()
        return np.array([value for value in values if is_number(value)], dtype=float)
    if is_integral(expr, schema) and (not rounded or (isinstance(expr, p.Apply) and expr.op in _ROUNDED)):
        return _whole_numbers(expr, schema)
    if isinstance(expr, p.Column):
        listed = listed_values(expr, schema) if isinstance(schema[expr.name], p.Categories) else None
        return np.array(listed, dtype=float) if listed and all(map(is_number, listed)) else None
    parts = [part for arg in expr.args[expr.op == "if" :] if (part := _numbers(arg, schema, rounded)) is not None]
    if len(parts) < len(expr.args) - (expr.op == "if"):
        return None
    if expr.op in ("if", "coalesce"):
        return np.concatenate(parts)
    columns = OPERATIONS[expr.op].columns if expr.op in _ALIKE else None
    if columns is None or math.prod(map(len, parts)) > MOST_LISTED:
        return None
    with np.errstate(all="ignore"):
        result: Floats = columns(np, *[grid.ravel() for grid in np.meshgrid(*parts, indexing="ij")])
    return result[np.isfinite(result)]


def _whole_numbers(expr: p.RowExpr, schema: Schema) -> Floats | None:
    """The values of a whole number between its bounds, in its steps."""
    bounds, (step, rest) = bounds_of(expr, schema), _steps(expr, schema)
    step = max(step, 1)
    if bounds is None or bounds[1] - bounds[0] >= step * MOST_LISTED or max(map(abs, bounds)) >= 2**53:
        return None
    first, last = math.floor(bounds[0]), math.floor(bounds[1])
    return np.arange(first + (rest - first) % step, last + 1, step, dtype=float)


_ROUNDED = frozenset({"floor", "ceil", "round"})
_ALIKE = frozenset({"+", "-", "*", "/", "neg", "abs", "clamp", "min", "max"})
"""Operations that give the same double on every engine, to the last bit."""


def keys_left(
    keys: list[GroupKey], own: Sequence[bool], condition: p.RowExpr | None, domains: Mapping[str, p.Domain]
) -> list[GroupKey]:
    """The keys of a select, those of the description (`own`) without what its condition rules out, as far as it
    compares the key's own column with constants. Where one of several keys is open their combinations are measured,
    and no key is listed but by the program."""
    if len(keys) > 1 and any(_open(key, domains) for key in keys):
        return [replace(key, over=None) if free else key for key, free in zip(keys, own, strict=True)]
    result, tests = [], [] if condition is None else conjuncts(condition)
    for key, free in zip(keys, own, strict=True) if tests else ():
        name, *others = p.names_in([key.expr]) or [""]
        one = free and not others and name in domains
        result.append(replace(key, over=_left(key, name, domains[name], tests)) if one else key)
    return result or keys


def as_filtered(table: Table, keys: Sequence[GroupKey], aggregates: Sequence[Aggregate]) -> Table:
    """The table with what is measured as narrow as conditions on its rows leave it: a sum of `x` where x < 9 is for
    values below 9. Columns that keys are of stay as they are described."""
    expressions, plan = list(chain.from_iterable(map(_EXPRESSIONS, aggregates))), table.plan
    tests = list[p.RowExpr]()
    while expressions and isinstance(plan, p.Filter):
        tests += conjuncts(plan.condition)
        plan = plan.source
    if not tests:
        return table
    names = p.names_in(expressions) - p.names_in([key.expr for key in keys])
    columns = [(name, narrowed_by(tests, name, one) if name in names else one) for name, one in table.schema]
    return replace(table, schema=tuple(columns))


_EXPRESSIONS = attrgetter("expressions")


def _left(key: GroupKey, name: str, domain: p.Domain, tests: Sequence[p.RowExpr]) -> tuple[object, ...] | range | None:
    narrow = narrowed_by(tests, name, domain)
    if narrow == domain:
        return key.over
    if key.over is None:
        try:
            return key_values(key.expr, {name: narrow}, MOST_KEYS)
        except Refusal:  # which the door says
            return None
    bounds = bounds_of(key.expr, {name: narrow})
    return key.over if bounds is None else tuple([one for one in key.over if bounds[0] <= one <= bounds[1]])


def _open(key: GroupKey, domains: Mapping[str, p.Domain]) -> bool:
    try:
        return key.over is None and key_values(key.expr, domains, MOST_KEYS) is None
    except Refusal:  # which the door says
        return False


def _steps(expr: p.RowExpr, schema: Schema) -> tuple[int, int]:
    """How far apart the values of a whole number are at least, and one of those that they are counted from: 0 apart
    where there is one value."""
    if isinstance(expr, p.Constant):
        value = expr.value
        return (0, int(value)) if isinstance(value, float | int) and float(value).is_integer() else (1, 0)
    joint = _JOINT.get(expr.op) if isinstance(expr, p.Apply) and is_integral(expr, schema) else None
    if joint is None or isinstance(expr, p.Column):
        return 1, 0
    parts = [_steps(arg, schema) for arg in expr.args[expr.op == "if" :]]
    return reduce(joint, [*parts, (0, -1)] if expr.op == "neg" else parts)


Steps = tuple[int, int]


def _either(a: Steps, b: Steps) -> Steps:
    return math.gcd(a[0], b[0], b[1] - a[1]), a[1]


def _times(a: Steps, b: Steps) -> Steps:
    return math.gcd(a[0] * b[0], a[0] * b[1], b[0] * a[1]), a[1] * b[1]


_JOINT: dict[str, Callable[[Steps, Steps], Steps]] = {
    "+": lambda a, b: (math.gcd(a[0], b[0]), a[1] + b[1]), "-": lambda a, b: (math.gcd(a[0], b[0]), a[1] - b[1]),
    "*": _times, "neg": _times, **dict.fromkeys(("if", "coalesce", "clamp", "min", "max"), _either),
}  # fmt: skip


def _is_finite(key: object, span: Span) -> bool:
    """Whether a key is a number; refuses what is no key."""
    if not (is_number(key) or isinstance(key, (str, bool, date))):
        raise refuse("TypeError", f"a key is a number, a text or a date, not {kind_name(key)}", span,
            help="of several keys at once each has a list of its own, `a over …, b over …`, or all have one in "
            "brackets, `(a, b) over [(1, 2), (3, 4)]`" if isinstance(key, list) else "")  # fmt: skip
    if is_number(key) and not math.isfinite(key):
        raise refuse("ValueError", "a key is a finite number", span)
    return is_number(key)


def _need_one_kind(keys: Sequence[Any], what: str, span: Span) -> None:
    if len({value_kind(key) for key in keys}) > 1:
        raise refuse("TypeError", f"{what} all numbers, all texts, all dates or all times", span)


def together(
    interp: Evaluator, key: n.GroupKey, table: Any, compiler: RowCompiler, scope: Scope
) -> tuple[Table, GroupKey]:
    """The table with the place of each row's combination among those that are listed, and the key of places."""
    if not isinstance(key.value, n.ListOf) or isinstance(table, Cube):
        raise refuse("TypeError", "several keys together are columns of a table", key.span)
    if key.over is None or key.name is not None:
        raise refuse(
            "TypeError", "keys in parentheses are listed together", key.span,
            help='write `groupby sex, city`, or list them: `groupby (sex, city) over [("F", "Cork")]`',
        )  # fmt: skip
    columns = [compiler.column_position(item) for item in key.value.items]
    names = tuple(column or f"key{i + 1}" for i, (_, column) in enumerate(columns))
    rows = _key_rows(interp, interp.eval(key.over, scope), names, key.over.span)
    whole = [all(not is_number(row[i]) or float(row[i]).is_integer() for row in rows) for i in range(len(names))]
    exprs = [by_value(expr, [row[i] for row in rows], table) for i, (expr, _) in enumerate(columns)]
    exprs = [
        p.Apply("floor", (expr,)) if rows and is_number(rows[0][i]) and whole[i] else expr
        for i, expr in enumerate(exprs)
    ]  # fmt: skip
    with PlacedAt(key.span):
        placed = with_place(table, exprs, rows)
    return placed, GroupKey(", ".join(names), p.Column(PLACE), range(len(rows)), names, rows)


def column_of_keys(interp: Evaluator, value: object, name: str, span: Span) -> object:
    """What `over` lists for one key: the column of its name, where that is a public table or a released result."""
    return [row[0] for row in _key_rows(interp, value, (name,), span)] if isinstance(value, Table | Grouped) else value


def _combination(item: Any, many: int, span: Span) -> tuple[Any, ...]:
    """One combination of so many keys."""
    row = tuple(item) if is_sequence(item) else (item,)
    if len(row) != many:
        raise refuse("ValueError", f"each combination has {many} keys, and one has {len(row)}", span)
    for cell in row:
        if cell is not None:
            _is_finite(cell, span)
    return row


def _of_records(items: list[Any], names: tuple[str, ...], span: Span) -> list[list[Any]]:
    """The fields of these names of each record."""
    for name in names:
        if any(not isinstance(item, dict) or name not in item for item in items):
            raise refuse("NameError", f"the keys have no column `{name}`", span, help="`derive` gives it that name")
    return [[item[name] for name in names] for item in items]


def _key_rows(interp: Evaluator, value: Any, names: tuple[str, ...], span: Span) -> tuple[tuple[Any, ...], ...]:
    if isinstance(value, Table):
        value = records(interp, value, span)
    if isinstance(value, Grouped) or (is_sequence(value) and value and isinstance(value[0], dict)):
        value = _of_records(list(value), names, span)
    if not (is_sequence(value) or isinstance(value, JSet)):
        raise refuse("TypeError", f"`over` takes a list of combinations, not {kind_name(value)}", span)
    rows = [_combination(item, len(names), span) for item in value]
    if len(rows) > MOST_LISTED:
        message = f"a list of {len(rows):,} combinations of keys is too long"
        raise refuse("ValueError", message, span, help=f"at most {MOST_LISTED:,}: group more coarsely")
    complete = [row for row in rows if None not in row]  # a row with a missing key is in no group
    for i, name in enumerate(names):
        _need_one_kind([row[i] for row in complete], f"the keys of `{name}` are", span)
    return tuple(dict.fromkeys(tuple(float(c) + 0.0 if is_number(c) else c for c in row) for row in complete))
