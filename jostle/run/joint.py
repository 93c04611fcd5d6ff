"""`jointly with epsilon e { … }`: many linear selects of one table, one measurement, answers that agree; and one select
`with error e`.

The block is walked twice. The first time its selects are gathered: each gives a `Pending` answer, which can be named
and kept and nothing else, so that no statement can depend on it. Then one strategy is chosen for all of them, from
public facts, and measured once through the kernel's door. The second time each select gives its answer, in this order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

from msgspec import Struct, field

from jostle.accounting.amounts import QUANTA, Amount, as_float
from jostle.accounting.composition import quanta
from jostle.diagnostics import Refusal, refuse
from jostle.formulas import Noised
from jostle.language.forms import aggregates
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.aggregates.aggregate import AdditiveAggregate, Estimate
from jostle.privacy.measurements.selects import Answer, Request, key_columns, with_common_terms
from jostle.records import replace
from jostle.run import answers
from jostle.run.arguments import amount_of, mechanism_of, no_error, wish_of
from jostle.run.evaluator import Evaluator, PlacedAt
from jostle.run.faults import refuse_private
from jostle.run.jointplan import PLAIN, JointPlan, JointQuery, Shape, is_from_zero
from jostle.run.jointworkload import JointWorkload, adds_up, check_together, joint_workload, public_sizes, terms_of
from jostle.run.margins import exact
from jostle.run.scope import Scope
from jostle.run.values import Grouped, Pending, is_number, is_sequence, kind_name
from jostle.source import Span
from jostle.syntax import nodes as n


class JointBlock(Struct):
    """The selects of a block as they come, and then their answers; `target` is its error where it has no amount."""

    target: float | None = None
    shape: Shape = PLAIN
    selects: list[JointQuery] = field(default_factory=list)
    answers: Iterator[tuple[JointQuery, Answer]] | None = None

    def answer(
        self, request: object, node: n.Select, wish: float | None, given: tuple[float, ...] | None = None
    ) -> Answer | Pending:  # fmt: skip
        """What a select is answered with."""
        if not isinstance(request, Request):
            raise refuse(
                "TypeError", "a `jointly` block answers selects of tables, and this reads a cube", node.span,
                help="measure cubes together by `laplace([cube, …])`, outside the block",
            )  # fmt: skip
        query = self._joint_query(request, node, wish) if given is None else self._given(request, node, given)
        if self.answers is not None:
            same, answer = next(self.answers, (None, Answer([], [])))
            if same is None or _facts(same) != _facts(query):
                raise refuse(
                    "TypeError", "what a `jointly` block selects depends on what it spends", node.span,
                    help="ask for `left`, `spent` and `epsilon` before the block",
                )  # fmt: skip
            return answer if given is None else exact(answer)
        with PlacedAt(node.span):
            check_together([*(one.request for one in self.selects[:1]), request])
        self.selects.append(query)
        return Pending(request.table.exposures)

    def _given(self, request: Request, node: n.Select, given: tuple[float, ...]) -> JointQuery:
        """A select whose answers are public; refused where they are not what it can be answered with."""
        span = node.spend.span if node.spend is not None else node.span
        (aggregate, *others) = request.aggregates
        if others or isinstance(aggregate, Estimate) or not isinstance(aggregate, AdditiveAggregate):
            raise refuse("TypeError", "what is given is the count or the sum of a select of one aggregate", span,
                         help="give `select count(*) from …` by itself")  # fmt: skip
        of_counts = aggregate.name == "count"
        if self.shape.nonnegative and min(given, default=0.0) < 0 and all(map(is_from_zero, terms_of(request))):
            raise refuse("DataError", "a number that is given is below 0, and what it is of is not", span,
                         help="leave `nonnegative` out, or correct the number")  # fmt: skip
        if self.shape.whole and of_counts and not all(value.is_integer() for value in given):
            raise refuse(
                "DataError", "a count that is given is no integer", span, help="leave `whole` out, or round it"
            )
        return JointQuery(request, span=span, given=given)

    def _joint_query(self, request: Request, node: n.Select, wish: float | None) -> JointQuery:
        """A select and what it wishes for; refused where that is not what the block is about."""
        if node.spend is None:
            wish, unit = self.target, "error"
        else:
            unit = node.spend.amount.unit
        takes = "weight" if self.target is None else "error"
        if node.spend is not None and unit != takes:
            helps = {
                "weight": "leave it out: the block's amount pays for all; `with weight 4` gives a select more of it",
                "error": "leave it out, or write the error that its answers may have, `with error 10`",
            }
            what = "error" if unit == "error" else "weight" if unit == "weight" else "amount"
            message = f"a select in this `jointly` block has no {what} of its own"
            raise refuse("TypeError", message, node.spend.span, help=helps[takes])
        if self.target is None:
            if not self.shape.nonnegative:  # where a sum has to stand for itself
                request = replace(request, aggregates=with_common_terms(request.aggregates))
            return JointQuery(request, 1.0 if wish is None else wish, span=node.span)
        for aggregate in request.aggregates:
            if isinstance(aggregate, Estimate) or not isinstance(aggregate, AdditiveAggregate):
                parts = "ask for its parts, `sum(x)` and `count(*)`, or " if isinstance(aggregate, Estimate) else ""
                raise refuse(
                    "TypeError", f"the error of `{aggregate.name}` depends on the rows, and cannot be asked for",
                    node.span, help=f"{parts}write an amount, `with epsilon 0.1`",
                )  # fmt: skip
        for column in node.columns:
            if [column.value] != aggregates(column.value):
                raise refuse(
                    "TypeError", "the error of what is calculated cannot be asked for, only that of an aggregate",
                    column.value.span, help="ask for the aggregates, and calculate with the answers",
                )  # fmt: skip
        return JointQuery(request, target=wish, span=node.span)


def given_answers(
    interp: Evaluator, node: n.Amount, scope: Scope, request: object, names: Sequence[str], output: str
) -> tuple[float, ...]:  # fmt: skip
    """The answers of a select that a program gives: a number for each of its groups, in their order.

    `node.value` is a number, a list of them, or a table of results with the keys of the select, called `names`, and
    its `output`.
    """
    span = node.value.span
    if not isinstance(request, Request) or request.open_keys:
        raise refuse("TypeError", "answers are given of a table whose keys are public", span)
    groups = list(product(*(key.values for key in request.keys)))
    value = interp.public_answers(node.value, scope, len(groups))
    refuse_private(value, "cannot be what is given", span)
    if isinstance(value, Grouped):
        value = _by_keys(value, request, names, output, span)
    numbers = [value] if is_number(value) else [*value] if isinstance(value, Iterable) and is_sequence(value) else None
    if numbers is None or not all(is_number(one) and math.isfinite(one) for one in numbers):
        help = "give a number, a list with a number for each group, or a table with the select's keys"
        raise refuse("TypeError", f"what is given is numbers, and this is {kind_name(value)}", span, help=help)
    if any(isinstance(one, Noised) for one in numbers):
        raise refuse("TypeError", "what is given is exact, and this was measured with noise", span,
                     help="put both selects into one `jointly` block: their answers agree")  # fmt: skip
    if len(numbers) != len(groups):
        raise refuse("DataError", f"{len(numbers)} numbers are given, and the select has {len(groups)} groups", span,
                     help="give one number for each group, in the order of the keys")  # fmt: skip
    return tuple(float(one) for one in numbers)


def _by_keys(table: Grouped, request: Request, names: Sequence[str], output: str, span: Span) -> list[object]:
    """The numbers of a table of results in the order of a select's groups."""
    lacking = [name for name in names if name not in table.columns]
    if lacking:
        raise refuse("DataError", f"what is given has no column `{lacking[0]}`, a key of the select", span)
    column = table.columns[output] if output in table.columns else table.only()
    rows = zip(*(table.columns[name] for name in names), strict=True)
    of = dict(zip(rows, column, strict=True))
    columns = request.key_columns(key_columns([list(key.values) for key in request.keys]))
    groups = list(zip(*columns, strict=True))
    for group in groups:
        if group not in of:
            raise refuse("DataError", f"what is given has no number for {_named(names, group)}", span)
    for group in of:
        if group not in set(groups):
            raise refuse(
                "DataError", f"what is given has {_named(names, group)}, which is no group of the select", span
            )
    return [of[group] for group in groups]


def _named(names: Sequence[str], group: Sequence[object]) -> str:
    return ", ".join(f"{name} = {value:g}" if is_number(value) else f"{name} = {value}"
                     for name, value in zip(names, group, strict=True))  # fmt: skip


def alone(interp: Evaluator, request: object, node: n.Select, wish: float | None, scope: Scope) -> Answer:
    """The answer of a select `with error e` that stands in no block: as if it stood alone in one."""
    if node.spend is None or node.spend.amount.unit != "error":
        raise no_error(node)
    block = JointBlock(wish)
    block.answer(request, node, wish)
    return _answers(interp, block.selects, None, node.spend, scope)[0]


def _facts(query: JointQuery) -> tuple[object, ...]:
    """What a select asks, to tell it from another."""
    request = query.request
    return request.table.plan, request.keys, request.aggregates, query.weight, query.target, query.given


def jointly(interp: Evaluator, node: n.With, scope: Scope) -> Any:
    """Runs a block; gives what a `return` inside it gives."""
    if interp.joint is not None:
        raise refuse(
            "TypeError", "a `jointly` block stands inside another", node.span, help="leave the inner `jointly` out"
        )
    spend = node.spend
    if not spend.amount.is_wish:
        amount = amount_of(interp, spend.amount, scope, ())
        with interp.allotted(amount, spend.span, ()):
            return _block_value(interp, node, scope, amount, None)
    target = wish_of(interp, spend.amount, scope)
    return _block_value(interp, node, scope, None, target)


def _block_value(interp: Evaluator, node: n.With, scope: Scope, amount: Amount | None, target: float | None) -> object:
    names = dict(scope.names)
    interp.joint = block = JointBlock(target, Shape(node.nonnegative, node.whole))
    interp.quiet += 1
    try:
        with interp.kernel.events.silent():
            interp.block(node.body.body, scope)
    finally:
        interp.quiet -= 1
        interp.joint = None
        scope.names.clear()
        scope.names.update(names)
    if block.selects:
        answers = _answers(interp, block.selects, amount, node.spend, scope, node.total, block.shape)
        block.answers = iter(list(zip(block.selects, answers, strict=False)))
    interp.joint = block
    try:
        return interp.block(node.body.body, scope)
    finally:
        interp.joint = None


def with_sizes(
    interp: Evaluator, request: object, amount: Amount, via: str | None, span: Span | None
) -> tuple[Answer, bool] | None:
    """The answer of a select alone that adds up to numbers of rows that are public, and that it is no other's; None
    where there are none that it would add up to, or it asks for more than a block can answer."""
    if not isinstance(request, Request) or request.running:
        return None
    try:
        check_together([request])
    except Refusal:
        return None
    sizes = public_sizes([request])
    if not any(adds_up(request, one) for one in sizes):
        return None
    request = replace(request, aggregates=with_common_terms(request.aggregates))
    workload, block = _workload(interp, [JointQuery(request, span=span)], sizes)
    try:
        plan = JointPlan.of(workload, block, amount, via, shape=Shape(whole=True))
    except Refusal:
        return None
    return _planned(interp, plan, workload, via, span)[0], False


def _workload(
    interp: Evaluator, selects: Sequence[JointQuery], sizes: Sequence[Request]
) -> tuple[JointWorkload, list[JointQuery]]:
    """What selects ask together, with the sizes that are public given beside them; in a walk before a run, which reads
    nothing and ends before an answer, these are 0."""
    block = list(selects)
    for one in sizes:
        groups = math.prod(len(key.values) for key in one.keys)
        numbers = [0.0] * groups if interp.walks else one.size(interp.data).values[0]
        block.append(JointQuery(one, given=tuple(numbers)))
    return joint_workload([one.request for one in block]), block


def _answers(
    interp: Evaluator, selects: Sequence[JointQuery], amount: Amount | None, spend: n.Spend, scope: Scope,
    total: bool = False, shape: Shape = PLAIN,
) -> list[Answer]:  # fmt: skip
    workload, block = _workload(interp, selects, public_sizes([one.request for one in selects]))
    for one, sums_of in zip(selects, workload.selects, strict=False):
        if any(not factor.levels for sums in sums_of for factor in sums.factors.values()):
            help = "its answer is 0: leave it out, or mend the condition"
            raise refuse("ValueError", "the condition of this select holds for no row", one.span, help=help)
    via, requests = mechanism_of(interp, spend), [one.request for one in selects]
    if spend.amount.is_wish:
        plan = JointPlan.within(workload, block, _least_unit(interp, workload.table, spend.amount, scope), via)
        try:
            return _planned(interp, plan, workload, via, spend.span)
        except Refusal as refusal:
            raise _too_close(refusal, plan) from None
    if amount is None:
        raise refuse("NoEpsilon", "a private source was met in a call on public data", spend.span)
    with interp.looks.looking(interp.kernel, requests, workload.table.exposures, amount, spend.span) as left:
        plan = JointPlan.of(workload, block, left, via, total, shape)
        return _planned(interp, plan, workload, via, spend.span)


def _planned(
    interp: Evaluator, plan: JointPlan, workload: JointWorkload, via: str | None, span: Span | None
) -> list[Answer]:  # fmt: skip
    least = plan.measurement.how.amount
    with interp.kernel.events.within("query", "jointly", span) as event:
        event[least.unit] = as_float(least.value)
        event.update(plan.trace_fields(workload))
        measured, again = answers.joint(interp.kernel, plan.measurement, via, span)
        event.update({"replayed": True} if again else {})
        return plan.answers(workload, measured)


def _least_unit(interp: Evaluator, table: Table, node: n.Amount, scope: Scope) -> Amount:
    """One of what the table is counted in, with the delta that is written."""
    measure = table.exposures[0].source.measure
    delta = interp.eval(node.delta, scope) if node.delta is not None else None
    with PlacedAt(node.span):
        return Amount(measure.unit, QUANTA, 0 if delta is None else quanta(delta, "delta"))


def _too_close(refusal: Refusal, plan: JointPlan) -> Refusal:
    """What is refused for its price says that its error is the reason."""
    first = refusal.first
    if first.kind != "BudgetExceeded":
        return refusal
    least = plan.measurement.how.amount
    help = f"the errors that are wanted take {least}: allow larger ones; {first.help}"
    return Refusal(replace(first, help=help), *refusal.diagnostics[1:])
