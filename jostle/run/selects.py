"""Queries: from a `select` in the tree to a request for the kernel.

Tests are in this order: names, types, labels, keys, bounds, amount, allotment. On public data a select is exact and
free, with the same rules for names and types.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from msgspec import Struct

from jostle.accounting.amounts import Amount, as_float
from jostle.diagnostics import Diagnostic, Refusal, refuse
from jostle.doubles import NoValue
from jostle.language import row_mistakes
from jostle.language.aggregates import AGGREGATES, DISTINCT, AggregateRow, Kinds, of_no_numbers
from jostle.language.forms import PERSON
from jostle.plan.facts import need_starts
from jostle.plan.kinds import as_number, kind_of
from jostle.plan.plan import Column, Open, RowExpr
from jostle.privacy.kernel.exposures import Exposures, Handle
from jostle.privacy.kernel.handles import VALUES, Cube, Table
from jostle.privacy.measurements.aggregates.aggregate import Aggregate
from jostle.privacy.measurements.cubes import CubeRequest
from jostle.privacy.measurements.selects import Answer, GroupKey, Request, prepare
from jostle.privacy.transformations import transform
from jostle.privacy.transformations.joins import FreeJoin
from jostle.records import replace
from jostle.run import answers, groups, persons, positions
from jostle.run.arguments import amount_of, bare_amount, mechanism_of, wish_of
from jostle.run.evaluator import Evaluator, PlacedAt
from jostle.run.faults import refuse_private
from jostle.run.groups import as_filtered, by_value, column_of_keys, keys_left, own_keys, public_keys, together
from jostle.run.margins import cut_of, exact, expected_answer, hidden_groups, marked
from jostle.run.persons import Counted, counted, periods_of
from jostle.run.rows import RowCompiler
from jostle.run.scope import Qualifiers, Scope
from jostle.run.select_forms import (
    CLASSES,
    BoundRows,
    SelectForm,
    at_fault,
    names_person,
    placed,
    select_tables,
    smooth_wish,
)
from jostle.run.sequences import LongColumn, Period
from jostle.run.values import Grouped, Record, is_number
from jostle.syntax import nodes as n
from jostle.syntax.walk import key_names

_FIRST, _SECOND = itemgetter(0), itemgetter(1)


class BoundSelect(Struct):
    """A bound select: the request to its table, and the processing of the answer.

    `moments` convert answers back to dates. `amount`, `wish` and `via` are the select's own clauses on its price, and
    `given` are its answers if they are public.
    """

    form: SelectForm
    table: Table | Cube
    keys: list[str]
    aggregates: list[Aggregate]
    moments: list[Counted | None]
    request: Request | CubeRequest
    arrangement: groups.Arrangement
    exposures: Exposures
    """The exposures that its amount is spent on."""
    amount: Amount | None = None
    wish: float | None = None
    via: str | None = None
    given: tuple[float, ...] | None = None


def select(interp: Evaluator, node: n.Select, scope: Scope) -> object:
    table, tables = select_tables(interp, node, scope)
    form = SelectForm.of(node, table)
    interp.reads_rows(table, form.node, scope)
    if form.node.per is not None:
        compiler = RowCompiler(dict(table.schema), interp, scope, tables)
        return _stage(interp, form.node, _where(interp, form.node, table, tables, scope, None)[1], compiler, scope)
    bound = _bound(interp, form, table, tables, scope)
    result = partial(_result, interp, bound, scope=scope)
    tries = interp.walks or form.calculates(scope)
    expected = expected_answer(bound.request, bound.aggregates, bound.moments, bound.via) if tries else None
    if expected is not None:
        columns = partial(_columns, interp, bound, scope=scope)
        interp.expect(form.node, bound.request, bound.keys, expected, columns)
        form.try_out(interp, partial(result, expected), scope)
    with interp.kernel.events.within("query", bound.request.title, node.span) as event:
        answer = _answer(interp, bound, scope, event)
        if isinstance(answer, Handle):
            return answer
        event.update(aggregates=[a.name for a in bound.aggregates], keys=bound.keys)
        values = _marked(interp, bound, answer, event)
    return result(Answer(answer.keys, values))


# Binding -----------------------------------------------------------------------------------------


def _where(
    interp: Evaluator, node: n.Select, table: Table | Cube, tables: Qualifiers, scope: Scope, rows: BoundRows | None
) -> tuple[RowExpr | None, Table | Cube]:
    """The condition on rows, or on the cells of a cube and their counts, and the filtered table."""
    if node.where is None:
        return None, table
    condition = rows.condition if rows is not None else None
    if condition is None:
        counts = {VALUES: Open("real")} if isinstance(table, Cube) else {}
        results = [column.name for column in node.columns if column.name]
        compiler = RowCompiler({**dict(table.schema), **counts}, interp, scope, tables, results=results)
        condition = compiler.condition(node.where)
    try:
        if isinstance(table, Table):
            return condition, transform.where(table, condition)
        kind_of(condition, compiler.schema)
    except Refusal as refusal:
        raise (refusal.at(node.where.span) if rows is not None else at_fault(compiler, node.where, refusal)) from None
    return condition, table


def _bound(
    interp: Evaluator, form: SelectForm, table: Table | Cube, tables: Qualifiers, scope: Scope
) -> BoundSelect:  # fmt: skip
    """The select with its keys, aggregates and amount; whatever can be refused of it is refused here.

    Its expressions on rows are bound once, where no name in them has another meaning here. The table, the request and
    the amount are those of this time.
    """
    node, rows = form.node, form.rows_in(scope)
    compiler = partial(RowCompiler, dict(table.schema), interp, scope, tables)
    where, table = _where(interp, node, table, tables, scope, rows)
    listed: Sequence[GroupKey] = rows.keys if rows is not None else ()
    if rows is None:
        keyed = compiler(results=[output.name for output in form.outputs if not output.calls])
        table, listed = _written_keys(interp, form, table, keyed, scope)
    table, keys = _within_limits(interp, form, table, where, listed, scope)
    key_names = [name for key in keys for name in key.names or (key.name,)] if keys else []
    if rows is None:
        form.need_aggregates(table)
        form.need_distinct_names(key_names)
    form.need_values(table, key_names, scope)
    persons_of = form.counts_persons(table)
    if persons_of is not None and _in_groups(form, persons_of, table, keys):
        table, keys = _persons_in_groups(persons_of, table, keys)
        measured: Sequence[tuple[Aggregate, Counted | None]] = [(CLASSES["count"](), None)]
    elif rows is not None:
        measured = rows.measured
    else:
        over_rows = compiler()
        measured = [_aggregate(interp, call, node, table, over_rows, scope) for call in form.calls]
        if isinstance(table, Table):
            form.keep(BoundRows(where, tuple(listed), tuple(measured)), scope)
    of, moments = list(map(_FIRST, measured)), list(map(_SECOND, measured))
    try:
        request = (
            positions.ask(interp, table, where, keys, of)
            if isinstance(table, Cube)
            else prepare(as_filtered(table, keys, of), keys, of)
        )
    except Refusal as refusal:
        raise form.place(refusal, table, keys, of, compiler()) from None
    arrangement = groups.Arrangement.of(interp, node, key_names, form.outputs, table, scope)
    request = arrangement.largest(form.outputs, request) if arrangement.most else request
    paid = table.paid if isinstance(table, FreeJoin) else table.exposures
    bound = BoundSelect(form, table, key_names, of, moments, request, arrangement, paid)
    if node.spend is not None:
        _note_price(interp, node.spend, bound, scope)
    return bound


def _note_price(interp: Evaluator, spend: n.Spend, bound: BoundSelect, scope: Scope) -> None:
    """Notes what a select says of its price, or of its error."""
    form, node = bound.form, spend.amount
    if form.is_smooth and (node.is_wish or interp.joint is not None):
        raise smooth_wish(spend)
    if node.unit == "given":
        from jostle.run.joint import given_answers

        bound.given = given_answers(interp, node, scope, bound.request, bound.keys, form.outputs[0].name)
    elif node.is_wish:
        bound.wish = wish_of(interp, node, scope)
    else:
        bound.amount = amount_of(interp, node, scope, bound.exposures)
    bound.via = mechanism_of(interp, spend)


def _written_keys(
    interp: Evaluator, form: SelectForm, table: Table | Cube, compiler: RowCompiler, scope: Scope
) -> tuple[Table | Cube, Sequence[GroupKey]]:
    """The group keys as they are written, and the table with the places of keys listed together."""
    keys = []
    for name, key in zip(form.key_names, form.node.keys, strict=True):
        if isinstance(key.value, n.ListOf):
            table, group_key = together(interp, key, table, compiler, scope)
        else:
            group_key = _key(interp, key, name, table, compiler, scope)
        keys.append(group_key)
    return table, keys


def _within_limits(
    interp: Evaluator, form: SelectForm, table: Table | Cube, where: RowExpr | None, listed: Sequence[GroupKey],
    scope: Scope,
) -> tuple[Table | Cube, list[GroupKey]]:  # fmt: skip
    """The table within the limits of the select, and the keys with those values that plan and condition leave."""
    node, keys = form.node, list(listed)
    if len(keys) > 1 and len([key for key in keys if key.names]) > 1:
        raise refuse("TypeError", "a select lists the combinations of its keys once", node.span)
    if keys and isinstance(table, Table):
        keys = keys_left(keys, [key.over is None for key in node.keys], where, table.domains)
    if node.limit is None:
        return table, keys
    if isinstance(table, Cube):
        raise refuse("TypeError", "a cube has no rows of persons to limit", node.limit.span)
    return persons.limited(interp, table, keys, node.limit, scope), keys


def _in_groups(form: SelectForm, call: n.Call, table: Table | Cube, keys: list[GroupKey]) -> bool:
    """Whether persons are counted as the rows of a table that has each once in each group."""
    unbounded = any(exposure.rows is None for exposure in table.exposures)
    return bool(keys) or form.node.limit is not None or unbounded or names_person(call)


def _persons_in_groups(call: n.Call, table: Any, keys: list[GroupKey]) -> tuple[Table, list[GroupKey]]:
    with PlacedAt(call.span):
        return persons.persons_in_groups(table, keys)


# Answers -----------------------------------------------------------------------------------------


def _answer(interp: Evaluator, bound: BoundSelect, scope: Scope, event: dict[str, object]) -> Any:
    """The answer: of public data exact and free, of private data from a joint block, at a wanted error, or bought. No
    groups are free: where none is listed or shown, nothing is asked."""
    request, node = bound.request, bound.form.node
    if bound.keys and 0 in (bound.arrangement.most, *(len(key.values) for key in request.keys)):
        event["public"] = True
        return Answer([[] for _ in bound.keys], [[] for _ in bound.aggregates])
    if isinstance(request, Request) and request.free:
        event["public"] = True
        return exact(request.size(interp.data))
    if not bound.table.private:
        event["public"] = True
        return exact(answers.exactly(interp.kernel, interp.data, request))
    if isinstance(request, Request) and not request.aggregates and not request.open_keys:
        message = "these keys are public, and nothing else is asked"
        raise refuse("TypeError", message, node.span, help="add `count(*) as n`")
    apart = interp.joint is not None or bound.wish is not None or bound.given is not None
    if apart and isinstance(request, Request) and request.running:
        message = "running answers have an amount of their own"
        raise refuse("TypeError", message, node.span, help="write `with rho 1` after the select, outside of `jointly`")
    if interp.joint is not None:
        return interp.joint.answer(request, node, bound.wish, bound.given)
    if bound.wish is not None or bound.given is not None:
        from jostle.run.joint import alone

        return alone(interp, request, node, bound.wish, scope)
    return _bought(interp, bound, event)


def _bought(interp: Evaluator, bound: BoundSelect, event: dict[str, object]) -> Answer:
    """The answer for an amount: the select's own, or an equal share of what is left for the query."""
    amount, form, span = bound.amount, bound.form, bound.form.node.span
    if amount is None:
        amount = bare_amount(interp.kernel, bound.exposures, max(1, interp.bare_left))
        interp.bare_left = max(0, interp.bare_left - 1)
    if amount is None:
        raise refuse("NoEpsilon", "a private source was met in a call on public data", span)
    with interp.looks.looking(interp.kernel, bound.request, bound.exposures, amount, span) as left:
        try:
            question = interp.kernel, bound.request, left, bound.via, span
            answer, again = _in_public_sizes(interp, bound, left) or answers.run(*question)
        except Refusal as refusal:
            raise (placed(refusal, form.node, form.calls) if form.is_smooth else refusal) from None
        event.update({"replayed": True} if again else {})
        event[left.unit] = as_float(left.value)
    return answer


def _in_public_sizes(interp: Evaluator, bound: BoundSelect, amount: Amount) -> tuple[Answer, bool] | None:
    """As `answers.run`, of an answer that adds up to numbers of rows that are public; None where it would not."""
    if not all(exposure.unit.public_size for exposure in bound.exposures):
        return None
    from jostle.run.joint import with_sizes

    return with_sizes(interp, bound.request, amount, bound.via, bound.form.node.span)


def _marked(interp: Evaluator, bound: BoundSelect, answer: Answer, event: dict[str, object]) -> list[Sequence[Any]]:
    """The columns of the answer as dates where they are of dates, and marked by what their errors leave out."""
    cuts = [
        (*cut_of(bound.table, aggregate), *answers.apart(aggregate, bound.table, column),
         *interp.looks.cut_of(_read_for(bound.request, aggregate), bound.exposures))
        for aggregate, column in zip(bound.aggregates, answer.values, strict=True)
    ]  # fmt: skip
    if any(cuts):
        event["cut"] = {a.name: list(cut) for a, cut in zip(bound.aggregates, cuts, strict=True) if cut}
    hidden = hidden_groups(bound.table, bound.aggregates, answer.values)
    return [
        marks if moment is None else list(map(moment.moment, marks))
        for marks, moment in zip(map(marked, answer.values, cuts, hidden), bound.moments, strict=True)
    ]


def _read_for(request: Request | CubeRequest, aggregate: Aggregate) -> Request | CubeRequest:
    """What an aggregate of a select rests on: of `count(*)` no cell of the others' columns. What reads a column rests
    on all: where each row shows a misfit in one of them, a look does not see those of the others."""
    alone = isinstance(request, Request) and not aggregate.expressions
    return replace(request, aggregates=(aggregate,)) if alone else request


def _result(interp: Evaluator, bound: BoundSelect, answer: Answer, scope: Scope) -> Any:
    columns = _columns(interp, bound, answer, scope)
    if bound.keys:
        return Grouped(bound.arrangement.arranged(interp, columns, bound.form.calls, answer.values), len(bound.keys))
    record = Record(zip(columns, map(_FIRST, columns.values()), strict=True))
    return next(iter(record.values())) if len(record) == 1 else record


def _columns(interp: Evaluator, bound: BoundSelect, answer: Answer, scope: Scope) -> dict[str, Sequence[object]]:
    """The keys and the results, group by group."""
    calls, columns = bound.form.calls, dict[str, Sequence[object]]()
    for key, values in zip(bound.keys, answer.keys, strict=True):
        columns[key] = _plain_keys(values)
    simple: dict[int, Sequence[Any]] = {
        id(call): values if isinstance(values, LongColumn) else list(map(_plain, values))
        for call, values in zip(calls, answer.values, strict=True)
    }
    for output in bound.form.outputs:
        if isinstance(output.value, n.Call) and id(output.value) in simple:
            columns[output.name] = simple[id(output.value)]
        else:
            keys = {key: columns[key] for key in bound.keys if not scope.holds(key)}
            columns[output.name] = _result_column(interp, output.value, simple, keys, scope)
    return columns


def _result_column(
    interp: Evaluator, value: n.Expr, simple: dict[int, Sequence[object]], keys: dict[str, Sequence[object]],
    scope: Scope,
) -> list[Any]:  # fmt: skip
    """A result that is calculated from aggregates and keys, group by group; none where numbers that were released have
    none, as in a division by a count of 0: the others are not lost for it."""
    column, outer = [], interp.aggregates
    for group in range(len(next(iter(simple.values()), []))):
        interp.aggregates = {**outer, **{key: values[group] for key, values in simple.items()}}
        inner = Scope(scope, {key: values[group] for key, values in keys.items()}) if keys else scope
        try:
            column.append(interp.argument(value, inner))
        except NoValue:
            column.append(None)
        finally:
            interp.aggregates = outer
    return column


def _plain(value: object) -> Any:
    return Record(value) if isinstance(value, dict) else value


def _plain_keys(values: Sequence[object]) -> list[object]:
    """Whole numbers as numbers of the language; of many groups each key is once in memory."""
    distinct = set(values)
    if set(map(type, distinct)) == {int} and len(distinct) == len(values):
        return list(map(float, values))  # type: ignore[arg-type]
    plain = {value: float(value) if type(value) is int else value for value in distinct}
    return [plain[value] for value in values]


# Parts -------------------------------------------------------------------------------------------


def _stage(interp: Evaluator, node: n.Select, table: object, compiler: RowCompiler, scope: Scope) -> Table:
    """`per person`: a table, and nothing that is measured."""
    if not isinstance(table, Table):
        raise refuse("TypeError", "a cube has no rows to group", node.span)
    if node.spend is not None:
        raise refuse(
            "TypeError", "`per` gives rows, which cost nothing until they are measured", node.spend.span,
            help="select from it: `select avg(total) from (select … per person) with epsilon 0.1`",
        )  # fmt: skip
    if not node.per:
        return persons.projection(node, persons.limited(interp, table, [], node.limit, scope), compiler)
    key_nodes = (*node.per, *node.keys)
    own = [key for key in key_nodes if table.private and persons.is_person(key.value, table)]
    names = key_names([(key.value, key.name) for key in key_nodes], node.columns)
    groups_of = [
        (key, _key(interp, key, name, table, compiler, scope))
        for name, key in zip(names, key_nodes, strict=True) if _is_key(key, table)
    ]  # fmt: skip
    table = persons.limited(interp, table, [key for it, key in groups_of if it not in own], node.limit, scope)
    return persons.stage(interp, node, table, bool(own), [key for _, key in groups_of], scope)


def _is_key(key: n.GroupKey, table: Table) -> bool:
    """Whether it is more than the word `person`."""
    return not (isinstance(key.value, n.Name) and key.value.id == PERSON and key.value.id not in table.domains)


def _key(
    interp: Evaluator, key: n.GroupKey, own: str, table: Table | Cube, compiler: RowCompiler, scope: Scope
) -> GroupKey:
    expr, column = compiler.column_position(key.value)
    name = key.name or column or own
    running = _running_until(interp, key, scope) if key.running else None
    if key.over is None:
        return GroupKey(name, expr, own_keys(table, expr), running=running)
    listed = column_of_keys(interp, interp.eval(key.over, scope), name, key.over.span)
    if isinstance(listed, Period):
        listed, expr = periods_of(listed, expr, compiler.schema)
    keys = public_keys(listed, key.over.span)
    with PlacedAt(key.over.span):
        need_starts(expr, keys, compiler.schema)
    return GroupKey(name, by_value(expr, keys, table), keys, running=running)


def _running_until(interp: Evaluator, key: n.GroupKey, scope: Scope) -> Any:
    """The last value of a running key that is answered; `...` where nothing is said."""
    if key.until is None:
        return ...
    until = interp.eval(key.until, scope)
    refuse_private(until, "cannot say how far a stream is answered", key.until.span)
    return until


def _of_arguments(row: AggregateRow, call: n.Call, compiler: RowCompiler) -> Diagnostic:
    """Why a call of an aggregate has not the arguments of its row: a condition may be written with one `=`."""
    if not call.args and len(call.keywords) == 1 and call.keywords[0].name in compiler.schema:
        condition = call.keywords[0]
        return Diagnostic(
            "TypeError", f"`{row.name}` has no argument `{condition.name}`",
            help=f"a condition here has two equal signs: `{row.name}({condition.name} == {condition.value.span.text})`",
        )  # fmt: skip
    of = [arg.id for arg in call.args if isinstance(arg, n.Name) and arg.id in compiler.schema]
    form = row.usage.partition(", count")[0].replace("(E", f"({[*of, *compiler.schema, 'E'][0]}")
    help = row.instead.replace("(x,", f"({call.args[0].span.text},") if call.args else row.instead
    return Diagnostic("TypeError", f"`{row.name}` is written `{row.usage}`", help=help or f"write `{form}`")


def _aggregate(
    interp: Evaluator, call: n.Call, select: n.Select, table: Table | Cube, compiler: RowCompiler, scope: Scope
) -> tuple[Aggregate, Counted | None]:
    """What a call measures; of dates and times also how its answers are one again."""
    row, args = AGGREGATES[call.function.id], call.args  # type: ignore[union-attr]
    if row.name == "count" and len(args) == 1 and isinstance(args[0], n.Star):
        if isinstance(table, Cube):
            help = "`sum(values)` is the number of rows"
            raise refuse("TypeError", "a cube has no rows to count", call.span, help=help)
        return CLASSES[row.name](), None
    fault = row_mistakes.of_groups(call, select)
    if fault is not None:
        raise Refusal(fault)
    if row.name not in DISTINCT and any(isinstance(arg, n.Star | n.Distinct) for arg in args):
        raise refuse("TypeError", "`*` and `distinct` stand only in `count`", call.span)
    numbers = [interp.eval(arg, scope) for arg in args[row.expressions :]]
    if len(args) != row.expressions + row.numbers or call.keywords or not all(map(is_number, numbers)):
        raise Refusal(_of_arguments(row, call, compiler)).at(call.span)
    expressions = [_measured(arg, row, table, compiler) for arg in args[: row.expressions]]
    row = DISTINCT[row.name] if any(isinstance(arg, n.Distinct) for arg in args) else row
    one = isinstance(table, Table) and len(expressions) == 1
    moment = counted(row, expressions[0], compiler.schema) if one else None
    if moment is not None:
        expressions = [moment.expr]
    else:
        _need_kinds(row, call, expressions, table, compiler)
    return CLASSES[row.name](tuple(expressions), tuple(numbers)), moment


def _need_kinds(
    row: AggregateRow, call: n.Call, expressions: list[RowExpr], table: Table | Cube, compiler: RowCompiler
) -> None:  # fmt: skip
    """Refuses an expression that is no number; the smallest and largest text of a public table have an answer."""
    for arg, expr in zip(call.args, expressions, strict=False):
        if isinstance(table, Cube) or row.kinds is Kinds.ANY:
            return
        kind = kind_of(expr, compiler.schema)
        if kind != "number" and (table.private or kind != "text" or row.kinds is not Kinds.ORDERED):
            raise of_no_numbers(row.name, kind, arg.span.text).at(call.span)


def _measured(arg: n.Expr, row: AggregateRow, table: Table | Cube, compiler: RowCompiler) -> RowExpr:
    """What an aggregate is taken of in each row, or in each cell of a cube."""
    if isinstance(arg, n.Distinct):
        return compiler.counted_position(arg.value)
    if isinstance(table, Cube) and isinstance(arg, n.Name) and arg.id == VALUES:
        return Column(VALUES)
    expr = compiler.column_position(arg, constant=isinstance(arg, n.Number))[0]
    try:
        return as_number(expr, compiler.schema) if row.bounded else expr
    except Refusal as refusal:
        raise at_fault(compiler, arg, refusal) from None
