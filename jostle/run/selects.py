"""Queries: from a `select` of the tree to a request of the kernel.

Checked in this order: names, types, labels, keys, bounds, amount, allotment. On public data a select is exact and
free, with the same rules of names and types.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from jostle.accounting.amounts import as_float
from jostle.diagnostics import Refusal, did_you_mean, refuse
from jostle.language.aggregates import AGGREGATES, DISTINCT, of_form
from jostle.language.forms import PERSON, aggregates, keys_by_alias, lone_column, persons_by_column
from jostle.language.freejoins import is_smooth, no_free_join
from jostle.language.other_languages import way
from jostle.plan.domains import Open
from jostle.plan.kinds import as_number
from jostle.plan.persons import person_columns
from jostle.plan.plan import Column, Constant
from jostle.privacy.kernel.handles import VALUES, ColumnHandle, Cube, Handle, Table, handles_in
from jostle.privacy.measurements import replay
from jostle.privacy.measurements.aggregates import registry
from jostle.privacy.measurements.aggregates.aggregate import Aggregate
from jostle.privacy.measurements.cubes import prepare_cube
from jostle.privacy.measurements.query import Answer, GroupKey, prepare
from jostle.privacy.transformations import transform
from jostle.privacy.transformations.elastic import FreeJoin, free_join
from jostle.privacy.transformations.joins import join
from jostle.privacy.transformations.persons import join_own_rows
from jostle.run import groups, persons
from jostle.run.amounts import amount_of, mechanism_of, wish_of
from jostle.run.clauses import whole
from jostle.run.cuts import cut_of, hidden_groups, marked
from jostle.run.joint import alone
from jostle.run.keysets import column_of_keys, public_keys, together
from jostle.run.ofmoments import Counted, counted, periods_of
from jostle.run.periods import Period
from jostle.run.qualifiers import Qualifiers
from jostle.run.rows import RowCompiler
from jostle.run.scope import Scope
from jostle.run.smooth import need_inner, placed, smooth_wish
from jostle.run.values import Grouped, Record, is_number, kind_name
from jostle.syntax import nodes as n
from jostle.syntax.walk import key_names


@dataclass(slots=True)
class Output:
    """A column of the result: its name, its expression, and the aggregates in it."""

    name: str
    value: n.Expr
    calls: list[n.Call]


def select(interp: Any, node: n.Select, scope: Scope) -> Any:
    table = interp.eval(node.table, scope)
    if isinstance(table, ColumnHandle) or not isinstance(table, (Table, Cube)):
        raise refuse("TypeError", f"a select reads a table or a cube, and this is {kind_name(table)}", node.table.span)
    tables = Qualifiers.of(node.table, dict(table.schema), node.alias)
    smooth = is_smooth(node)
    for joined in node.joins:
        table = _join(interp, table, joined, scope, tables, smooth)
    if smooth and table.private and not isinstance(table, FreeJoin):
        raise Refusal(no_free_join(node))
    schema = dict(table.schema)
    node = persons_by_column(keys_by_alias(node, schema), schema, persons.protected(table))
    compiler = RowCompiler(schema, interp.eval, scope, tables)
    where = None
    if node.where is not None:
        counts = {**schema, VALUES: Open("real")}
        inner = RowCompiler(counts, interp.eval, scope, tables) if _is_cube(table) else compiler
        where = inner.condition(node.where)
        if isinstance(table, Table):
            try:
                table = transform.where(table, where)
            except Refusal as refusal:
                raise refusal.at(node.where.span) from None
    if node.per is not None:
        return _stage(interp, node, table, compiler, scope)
    keys = []
    names = key_names([(key.value, key.name) for key in node.keys], node.columns)
    for name, key in zip(names, node.keys, strict=True):
        if isinstance(key.value, n.ListOf):
            table, group_key = together(interp, key, table, compiler, scope)
        else:
            group_key = _key(interp, key, name, compiler, scope)
        keys.append(group_key)
    if len([key for key in keys if key.names]) > 1:
        raise refuse("TypeError", "a select lists the combinations of its keys once", node.span)
    if node.limit is not None and isinstance(table, Cube):
        raise refuse("TypeError", "a cube has no rows of persons to limit", node.limit.span)
    table = persons.limited(interp, table, keys, node.limit, scope)
    outputs = [_output(c, table, node) for c in node.columns]
    named = [name for key in keys for name in key.names or (key.name,)]
    _distinct_names([*named, *(o.name for o in outputs)], node)
    calls = [call for o in outputs for call in o.calls]
    counted = [call for call in calls if isinstance(table, Table) and _counts_persons(call, table)]
    if counted and len(calls) > 1 and _names_person(counted[0]):
        raise refuse(
            "TypeError", "persons are counted apart from rows, by which they weigh differently", counted[0].span,
            help="give `count(distinct person)` a select of its own",
        )  # fmt: skip
    unbounded = any(exposure.rows is None for exposure in table.exposures)
    if counted and len(calls) == 1 and (keys or node.limit is not None or unbounded or _names_person(counted[0])):
        try:
            table, keys = persons.persons_in_groups(table, keys)
        except Refusal as refusal:
            raise refusal.at(counted[0].span) from None
        pairs: list[tuple[Aggregate, Counted | None]] = [(registry.AGGREGATES["count"](), None)]
    else:
        pairs = [_aggregate(interp, call, table, compiler, scope) for call in calls]
    measured = [aggregate for aggregate, _ in pairs]
    try:
        request: Any = (
            prepare_cube(table, where, keys, measured) if isinstance(table, Cube) else prepare(table, keys, measured)
        )
    except Refusal as refusal:
        raise _located(refusal, calls, node) from None
    arrangement = groups.Arrangement.of(interp, node, named, outputs, scope)
    own, wish = None, None
    paid = table.paid if isinstance(table, FreeJoin) else table.exposures
    if smooth and node.spend is not None and (interp.joint is not None or node.spend.amount.is_wish):
        raise smooth_wish(node.spend)
    if node.spend is not None and node.spend.amount.is_wish:
        wish = wish_of(interp, node.spend.amount, scope)
    elif node.spend is not None:
        own = amount_of(interp, node.spend.amount, scope, paid)
    via = mechanism_of(interp, node.spend) if node.spend is not None else None
    with interp.kernel.events.within("query", request.title, node.span) as event:
        if getattr(request, "free", False):
            answer = request.size(interp.kernel)
            event["public"] = True
        elif table.private and interp.joint is not None:
            answer = interp.joint.answer(request, node, wish)
            if isinstance(answer, Handle):
                return answer
        elif table.private and wish is not None:
            answer = alone(interp, request, node, wish, scope)
        elif table.private:
            amount = own
            if amount is None:
                amount = interp.kernel.bare_amount(paid, max(1, interp.bare_left))
                interp.bare_left = max(0, interp.bare_left - 1)
            if interp.looks is not None and not smooth:
                amount = interp.looks.before(interp.kernel, request, amount, node.span)
            try:
                answer, again = replay.run(interp.kernel, request, amount, via, node.span)
            except Refusal as refusal:
                raise (placed(refusal, node, calls) if smooth else refusal) from None
            event.update({"replayed": True} if again else {})
            event[amount.unit] = as_float(amount.value)
        else:
            answer = request.exact(interp.kernel)
            event["public"] = True
        event.update(aggregates=[a.name for a in measured], keys=named)
        unfit = interp.looks.cut_of(request) if interp.looks is not None else ()
        cuts = [(*cut_of(table, aggregate), *unfit) for aggregate in measured]
        if any(cuts):
            event["cut"] = {a.name: list(cut) for a, cut in zip(measured, cuts, strict=True) if cut}
    hidden = hidden_groups(table, measured, answer.values)
    values = [
        marked(column, cut, doubts) if moment is None else list(map(moment.moment, column))
        for column, cut, doubts, (_, moment) in zip(answer.values, cuts, hidden, pairs, strict=True)
    ]
    return _result(interp, named, outputs, calls, Answer(answer.keys, values), arrangement, scope)


def _stage(interp: Any, node: n.Select, table: Any, compiler: RowCompiler, scope: Scope) -> Table:
    """`per person`: a table, and nothing that is measured."""
    if not isinstance(table, Table):
        raise refuse("TypeError", "a cube has no rows to group", node.span)
    if node.spend is not None:
        raise refuse(
            "TypeError", "`per` gives rows, which cost nothing until they are measured", node.spend.span,
            help="select from it: `select avg(total) from (select … per person) with epsilon 0.1`",
        )  # fmt: skip
    written = (*(node.per or ()), *node.keys)
    own = [key for key in written if table.private and persons.is_person(key.value, table)]
    names = key_names([(key.value, key.name) for key in written], node.columns)
    groups_of = [
        (key, _key(interp, key, name, compiler, scope))
        for name, key in zip(names, written, strict=True) if _is_key(key, table)
    ]  # fmt: skip
    table = persons.limited(interp, table, [key for it, key in groups_of if it not in own], node.limit, scope)
    return persons.stage(interp, node, table, bool(own), [key for _, key in groups_of], scope)


def _is_key(key: n.GroupKey, table: Table) -> bool:
    """Whether it is more than the word `person`."""
    return not (isinstance(key.value, n.Name) and key.value.id == PERSON and key.value.id not in table.domains)


def _counts_persons(call: n.Call, table: Table) -> bool:
    """`count(distinct person)`."""
    if not (isinstance(call.function, n.Name) and call.function.id == "count" and len(call.args) == 1):
        return False
    (arg,) = call.args
    return table.private and isinstance(arg, n.Distinct) and persons.is_person(arg.value, table)


def _names_person(call: n.Call) -> bool:
    arg = call.args[0]
    return isinstance(arg, n.Distinct) and isinstance(arg.value, n.Name) and arg.value.id == PERSON


def _is_cube(table: Any) -> bool:
    return isinstance(table, Cube)


def _join(interp: Any, left: Any, joined: n.Join, scope: Scope, tables: Qualifiers, smooth: bool) -> Table:
    right = interp.eval(joined.table, scope)
    for side in (left, right):
        if not isinstance(side, Table):
            raise refuse("TypeError", f"a join takes tables, and this is {kind_name(side)}", joined.span)
    most = whole(interp, joined.up_to, scope) if joined.up_to is not None else None
    shared = [match.column for match in joined.on if match.column == match.theirs]
    tables.add(joined.table, dict(right.schema), joined.alias, shared)
    on = [(match.column, match.theirs) for match in joined.on if not _is_word(match.column, left, right)]
    own = len(on) < len(joined.on) or any(
        mine in person_columns(left.plan) and theirs in person_columns(right.plan) for mine, theirs in on
    )
    bounded = most is not None or own
    try:
        if isinstance(left, FreeJoin) or (smooth and not bounded and left.private and right.private):
            need_inner(joined, bounded)
            return free_join(interp.kernel, left, right, on)
        if own and most is None and left.private and right.private:
            return join_own_rows(left, right, on, joined.kind)
        return join(interp.kernel, left, right, on, most, joined.kind)
    except Refusal as refusal:
        raise refusal.at(joined.span) from None


def _is_word(name: str, left: Table, right: Table) -> bool:
    """Whether a name in `on` is `person`, and no column."""
    return name == PERSON and name not in left.domains and name not in right.domains


def _key(interp: Any, key: n.GroupKey, own: str, compiler: RowCompiler, scope: Scope) -> GroupKey:
    expr, column = compiler.column_position(key.value)
    name = key.name or column or own
    if key.over is None:
        return GroupKey(name, expr)
    listed = column_of_keys(interp, interp.eval(key.over, scope), name, key.over.span)
    if isinstance(listed, Period):
        listed, expr = periods_of(listed, expr, compiler.schema)
    return GroupKey(name, expr, public_keys(listed, key.over.span))


def _output(column: n.Column, table: Any, node: n.Select) -> Output:
    calls = list(aggregates(column.value))
    others = any(True for other in node.columns for _ in aggregates(other.value))
    if not calls and isinstance(column.value, n.Name) and others:
        message, help = lone_column(column.value, node.keys)
        raise refuse("TypeError", message, column.value.span, help=help)
    if not calls:
        if table.private:
            name, it = table.exposures[0].source.name, column.value.span.text
            raise refuse(
                "PrivateValue", f"a select gives aggregates, and this would give rows of `{name}`", column.value.span,
                help=way(it) or "count, sum, or average it: `select avg(age) from …`",
            )  # fmt: skip
        raise refuse("TypeError", "a select gives aggregates, not rows", column.value.span, help="such as `count(*)`")
    name = column.name
    if name is None and isinstance(column.value, n.Call) and isinstance(column.value.function, n.Name):
        name = column.value.function.id
    return Output(name or "value", column.value, calls)


def _distinct_names(names: list[str], node: n.Select) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise refuse(
                "NameError", f"two columns of this select are named `{name}`", node.span, help="name one: `… as n`"
            )


def _aggregate(
    interp: Any, call: n.Call, table: Any, compiler: RowCompiler, scope: Scope
) -> tuple[Aggregate, Counted | None]:
    """What a call measures; of dates and times also how its answers are one again."""
    row, args = AGGREGATES[call.function.id], call.args  # type: ignore[union-attr]
    if row.name == "count" and len(args) == 1 and isinstance(args[0], n.Star):
        if isinstance(table, Cube):
            raise refuse(
                "TypeError", "a cube has no rows to count", call.span, help="`sum(values)` is the number of rows"
            )
        return registry.AGGREGATES[row.name](), None
    if row.name not in DISTINCT and any(isinstance(arg, n.Star | n.Distinct) for arg in args):
        raise refuse("TypeError", "`*` and `distinct` stand only in `count`", call.span)
    numbers = [interp.eval(arg, scope) for arg in args[row.expressions :]]
    if len(args) != row.expressions + row.numbers or call.keywords or not all(map(is_number, numbers)):
        raise Refusal(of_form(row)).at(call.span)
    expressions = []
    for arg in args[: row.expressions]:
        if isinstance(arg, n.Distinct):
            expressions.append(compiler.counted_position(arg.value))
            row = DISTINCT[row.name]
            continue
        cells = isinstance(table, Cube) and isinstance(arg, n.Name) and arg.id == VALUES
        constant = isinstance(arg, n.Number)
        expr = Column(VALUES) if cells else compiler.column_position(arg, constant=constant)[0]
        expressions.append(as_number(expr, compiler.schema) if row.bounded and not cells else expr)
    one = isinstance(table, Table) and len(expressions) == 1
    moment = counted(row, expressions[0], compiler.schema) if one else None
    if moment is not None:
        expressions = [moment.expr]
    return registry.AGGREGATES[row.name](tuple(expressions), tuple(numbers)), moment


def _located(refusal: Refusal, calls: list[n.Call], node: n.Select) -> Refusal:
    if refusal.first.span is not None:
        return refusal
    if refusal.first.kind == "OpenKeys" and node.keys:
        return refusal.at(node.keys[0].value.span)
    return refusal.at(calls[0].span if len(calls) == 1 else node.span)


def _result(
    interp: Any, keys: list[str], outputs: list[Output], calls: list[n.Call], answer: Answer,
    arrangement: groups.Arrangement, scope: Scope,
) -> Any:  # fmt: skip
    many = len(answer.values[0]) if answer.values else 0
    columns: dict[str, list[Any]] = {
        key: [_plain_key(v) for v in values] for key, values in zip(keys, answer.keys, strict=True)
    }
    simple = {id(call): list(map(_plain, values)) for call, values in zip(calls, answer.values, strict=True)}
    for output in outputs:
        if isinstance(output.value, n.Call) and id(output.value) in simple:
            columns[output.name] = simple[id(output.value)]
            continue
        column, outer = [], interp.given
        for g in range(many):
            interp.given = {**outer, **{key: values[g] for key, values in simple.items()}}
            try:
                column.append(interp.eval(output.value, scope))
            finally:
                interp.given = outer
        columns[output.name] = column
    if keys:
        return Grouped(arrangement.arranged(interp, columns, calls, answer.values), len(keys))
    record = Record((name, values[0]) for name, values in columns.items())
    return next(iter(record.values())) if len(record) == 1 else record


def _plain(value: Any) -> Any:
    return Record(value) if isinstance(value, dict) else value


def _plain_key(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


# D[...] ------------------------------------------------------------------------------------------


def rows_of(interp: Any, handle: Handle, node: n.Index, scope: Scope) -> Handle:
    """`D[a = v, b = w]` and `D[E, ]`."""
    if not isinstance(handle, (Table, Cube)):
        raise refuse("TypeError", f"{kind_name(handle)} has no rows to select", node.span)
    rows: Any = handle
    for condition in node.args:
        compiler = _compiler(interp, rows, node, scope)
        expr = compiler.expression(condition)
        if isinstance(expr, Constant) or isinstance(condition, n.Number):
            raise _by_value(handle, condition)
        rows = transform.where(rows, expr)
    for keyword in node.keywords:
        name = _column_named(rows, keyword, scope)
        value = interp.eval(keyword.value, scope)
        if handles_in(value):
            message = "rows are selected by a public value, and this is private"
            raise refuse("PrivateValue", message, keyword.value.span, help="compare with a number or a text")
        if not (is_number(value) or isinstance(value, (str, bool, date))):
            raise refuse(
                "TypeError", f"a column is compared with a number or text, not {kind_name(value)}", keyword.span
            )
        _compiler(interp, rows, node, scope).need_described(name, keyword.value)
        try:
            rows = transform.rows_where(rows, name, value)
        except Refusal as refusal:
            raise refusal.at(keyword.span) from None
    return rows  # type: ignore[no-any-return]


def _compiler(interp: Any, rows: Any, node: n.Index, scope: Scope) -> RowCompiler:
    return RowCompiler(dict(rows.schema), interp.eval, scope, Qualifiers.of(node.value, dict(rows.schema)))


def _by_value(handle: Handle, node: n.Expr) -> Refusal:
    if handle.private:
        name = handle.exposures[0].source.name
        return refuse(
            "PrivateValue", f"`{name}` is private and cannot be indexed", node.span, help="select: `D[a = v]`"
        )
    return refuse("TypeError", "a table is not indexed by a value", node.span, help="select rows: `D[a = v]`")


def _columns(name: str, names: list[str]) -> str:
    return did_you_mean(name, names) or f"the columns are {', '.join(names)}"


def _column_named(handle: Any, keyword: n.Keyword, scope: Scope) -> str:
    names = [name for name, _ in handle.schema]
    if keyword.name in names:
        return keyword.name
    named = scope.find(keyword.name)
    if isinstance(named, ColumnHandle):
        named = named.name
    if isinstance(named, str) and named in names:
        return named
    raise refuse("NameError", f"no column `{keyword.name}`", keyword.span, help=_columns(keyword.name, names))
