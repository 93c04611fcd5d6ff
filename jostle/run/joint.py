"""`jointly with epsilon e { … }`: many linear selects of one table, one measurement, answers that agree.

The block is walked twice. The first time its selects are gathered: each gives a `Pending` answer, which can be named
and kept and nothing else, so that no statement can depend on it. Then one strategy is chosen for all of them, from
public facts, and measured once through the kernel's door. The second time each select gives its answer, in this order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jostle.accounting.amounts import Amount, as_float
from jostle.diagnostics import Refusal, refuse
from jostle.formulas import Joint, Noised, Vector
from jostle.kernels.errors import KernelError
from jostle.kernels.joint.answers import Estimates
from jostle.kernels.joint.strategy import Query, Strategy, strategy_for
from jostle.language.builtins import BUILTINS
from jostle.language.facts import Effect
from jostle.noise_laws import Gaussian, Laplace
from jostle.plan.plan import Term
from jostle.privacy.kernel.handles import Table, handles_in
from jostle.privacy.kernel.measurement import stability_of
from jostle.privacy.measurements.aggregates.aggregate import Estimate
from jostle.privacy.measurements.aggregates.terms import grid_of, sensitivity_of
from jostle.privacy.measurements.joint import MOST_SPREAD, Block, JointBlocks
from jostle.privacy.measurements.query import Answer, Request, key_columns
from jostle.privacy.mechanisms.additive import Additive, share
from jostle.run.jointworkload import JointWorkload, Sums, check_together, coarser, joint_workload
from jostle.run.values import Pending
from jostle.source import Span
from jostle.syntax import nodes as n

if TYPE_CHECKING:
    from jostle.run.interpreter import Interpreter
    from jostle.run.scope import Scope


@dataclass(slots=True)
class JointBlock:
    """The selects of a block as they come, and then their answers."""

    requests: list[Request] = field(default_factory=list)
    answers: Iterator[tuple[Request, Answer]] | None = None

    def answer(self, request: Any, node: n.Select) -> Answer | Pending:
        """What a select is answered with."""
        if node.spend is not None:
            raise refuse(
                "TypeError", "a select in a `jointly` block has no amount of its own", node.spend.span,
                help="leave it out: the block's amount pays for all; or put the select before or after the block",
            )  # fmt: skip
        if not isinstance(request, Request):
            raise refuse(
                "TypeError", "a `jointly` block answers selects of tables, and this reads a cube", node.span,
                help="measure cubes together by `laplace([cube, …])`, outside the block",
            )  # fmt: skip
        if self.answers is not None:
            asked, answer = next(self.answers, (None, Answer([], [])))
            if asked is None or _facts(asked) != _facts(request):
                raise refuse(
                    "TypeError", "what a `jointly` block selects depends on what it spends", node.span,
                    help="ask for `left`, `spent` and `epsilon` before the block",
                )  # fmt: skip
            return answer
        try:
            check_together([*self.requests[:1], request])
        except Refusal as refusal:
            raise refusal.at(node.span) from None
        self.requests.append(request)
        return Pending(request.table.exposures)


def _facts(request: Request) -> tuple[Any, ...]:
    """What a select asks, to tell it from another."""
    return request.table.plan, request.keys, request.aggregates


def check_call(function: Any, args: Sequence[Any]) -> None:
    """Refuses calls that measure by themselves: the answers of a block are those of its selects."""
    row = BUILTINS.get(getattr(function, "name", ""))
    measures = row is not None and row.effect is Effect.MEASURES
    if measures or (hasattr(function, "jostle_call") and handles_in(list(args))):
        name = getattr(function, "name", "") or "this"
        raise refuse(
            "TypeError", f"`{name}` measures by itself, and cannot be answered together with others",
            help="put it before or after the `jointly` block, with an amount of its own",
        )  # fmt: skip


def jointly(interp: Interpreter, node: n.With, amount: Amount | None, scope: Scope) -> Any:
    """Runs a block whose allotment is open; gives what a `return` inside it gives."""
    from jostle.run.selects import mechanism_of

    if interp.joint is not None:
        raise refuse(
            "TypeError", "a `jointly` block stands inside another", node.span, help="leave the inner `jointly` out"
        )
    names = dict(scope.names)
    interp.joint = block = JointBlock()
    interp.quiet += 1
    try:
        with interp.kernel.events.silent():
            interp.block(node.body.body, scope)
    finally:
        interp.quiet -= 1
        interp.joint = None
        scope.names.clear()
        scope.names.update(names)
    if block.requests:
        if amount is None:
            raise refuse("NoEpsilon", "a private source was met in a call on public data", node.span)
        via = mechanism_of(interp, node.spend)
        answers = _answers(interp, block.requests, amount, via, node.spend.span)
        block.answers = iter(list(zip(block.requests, answers, strict=True)))
    interp.joint = block
    try:
        return interp.block(node.body.body, scope)
    finally:
        interp.joint = None


def _answers(
    interp: Interpreter, requests: Sequence[Request], amount: Amount, via: str | None, span: Span
) -> list[Answer]:
    workload = joint_workload(requests)
    plan = JointPlan.of(workload, requests, amount, via)
    with interp.kernel.events.within("query", "jointly", span) as event:
        event[amount.unit] = as_float(amount.value)
        event.update(plan.told(workload))
        measured = interp.kernel.measure(plan.measurement, span)
        return plan.answers(workload, requests, measured)


@dataclass(frozen=True, eq=False)
class JointPlan:
    """The strategy of a block, what of it is measured, and every select's queries with the standard errors."""

    strategy: Strategy
    measurement: JointBlocks
    queries: tuple[tuple[Query, ...], ...]
    deviations: tuple[tuple[Any, ...], ...]
    alone: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, workload: JointWorkload, requests: Sequence[Request], amount: Amount, via: str | None) -> JointPlan:
        """From public facts alone. Refuses what is too large."""
        import numpy as np

        table, how = workload.table, Additive.of(amount, via, workload.table.measures)
        gaussian = how.kind is Gaussian
        terms = list(dict.fromkeys(sums.term for sums_of in workload.selects for sums in sums_of))
        grids = {term: coarser(term) if gaussian else term for term in terms}
        units = {term: _deviation(how, grids[term], table) for term in terms}
        alone = tuple(
            _alone(request, [sums.term for sums in sums_of], share(amount, len(requests)), via, table)
            for request, sums_of in zip(requests, workload.selects, strict=True)
        )
        queries = tuple(
            tuple(
                Query(terms.index(sums.term), sums.factors, (other / (units[sums.term] or other or 1.0)) ** 2 or 1.0)
                for sums, other in zip(sums_of, others, strict=True)
            )
            for sums_of, others in zip(workload.selects, alone, strict=True)
        )
        most = [MOST_SPREAD / max(1, sensitivity_of(grids[term], table)) for term in terms]
        try:
            strategy = strategy_for(workload.trees, [query for some in queries for query in some], gaussian, most)
        except KernelError as fault:
            raise refuse("DataError", str(fault), help="group more coarsely, or divide the block in two") from None
        blocks = [
            Block(grids[terms[block.family]], block.levels, block.residual, block.share) for block in strategy.blocks
        ]
        deviations = tuple(
            tuple(
                sums.in_order(np.sqrt(strategy.variances(query)) * units[sums.term])
                for query, sums in zip(some, sums_of, strict=True)
            )
            for some, sums_of in zip(queries, workload.selects, strict=True)
        )
        measurement = JointBlocks.of(table, workload.axes, blocks, amount, via)
        return cls(strategy, measurement, queries, deviations, alone)

    def told(self, workload: JointWorkload) -> dict[str, Any]:
        """What a trace tells: what is measured, and the largest error of each select over what it has alone."""
        blocks = sorted(self.strategy.blocks, key=lambda block: -block.share)[:20]
        ratios = [
            float(deviation.max() / alone)
            for some, others in zip(self.deviations, self.alone, strict=True)
            for deviation, alone in zip(some, others, strict=True)
            if alone and deviation.size
        ]
        by = [[_level_name(workload, axis, level) for axis, level in block.levels] for block in blocks]
        shares = [{"by": names, "share": block.share} for names, block in zip(by, blocks, strict=True)]
        told = {"largest": max(ratios), "mean": math.fsum(ratios) / len(ratios)} if ratios else {}
        return {"selects": len(self.queries), "blocks": len(self.strategy.blocks), "strategy": shares, "of_alone": told}

    def answers(self, workload: JointWorkload, requests: Sequence[Request], measured: list[Any]) -> list[Answer]:
        """The answers of all selects, numbers that know their noise."""
        estimates, kind = Estimates(self.strategy, measured), self.measurement.how.kind
        vectors = [Vector(values.ravel(), kind(scale)) for values, scale in zip(measured, self._scales(), strict=True)]
        result = []
        for request, queries, sums_of, deviations in zip(
            requests, self.queries, workload.selects, self.deviations, strict=True
        ):
            columns = [
                self._noised(vectors, query, sums, sums.in_order(estimates.answers(query)), errors, kind)
                for query, sums, errors in zip(queries, sums_of, deviations, strict=True)
            ]
            keys = request.shown(key_columns([list(key.values) for key in request.keys]))
            result.append(Answer(keys, _aggregated(request, columns)))
        return result

    def _scales(self) -> list[float]:
        return [self.measurement.scale(block) * 2.0 ** -grid_of(block.term) for block in self.measurement.blocks]

    def _noised(
        self, vectors: Sequence[Vector], query: Query, sums: Sums, values: Any, errors: Any,
        kind: type[Laplace | Gaussian],
    ) -> list[Noised]:  # fmt: skip
        """The answers of a query, each with the law of its own noise and the noises that it is made of."""
        import numpy as np

        places = sums.in_order(np.arange(values.size))

        def noises(place: int) -> list[tuple[Vector, Any]]:
            return [(vectors[at], weights) for at, weights in self.strategy.coefficients(query, place)]

        return [
            Noised.of(value, Joint(kind(error if kind is Gaussian else error / math.sqrt(2)), int(place), noises))
            for value, error, place in zip(values.tolist(), errors.tolist(), places, strict=True)
        ]


def _deviation(how: Additive, term: Term, table: Table) -> float:
    """The standard deviation of a term that has the whole amount, in the units of what is asked."""
    reach = sensitivity_of(term, table) * stability_of(table)
    return how.law(reach, reach).smooth.deviation * 2.0 ** -grid_of(term)


def _alone(request: Request, terms: Sequence[Term], part: Amount, via: str | None, table: Table) -> tuple[float, ...]:
    """The same of each term of a select that has a part of the amount for itself."""
    parts = [
        share(share(part, len(request.aggregates)), len(own))
        for own in (aggregate.terms(request.table) for aggregate in request.aggregates)
        for _ in own
    ]
    pairs = zip(terms, parts, strict=True)
    return tuple(_deviation(Additive.fitted(one, via, table.measures), term, table) for term, one in pairs)


def _aggregated(request: Request, columns: list[list[Noised]]) -> list[list[Any]]:
    """The aggregates of a select from the sums that each is made of."""
    terms = iter(columns)
    values: list[list[Any]] = []
    for aggregate in request.aggregates:
        own = [next(terms) for _ in aggregate.terms(request.table)]
        if isinstance(aggregate, Estimate):
            values.append(aggregate.of_terms(request.table, list(zip(*own, strict=True))))
        else:
            values.append(list(own[0]))
    return values


def _level_name(workload: JointWorkload, axis: int, level: int) -> str:
    many = len(workload.trees[axis].labels)
    return workload.names[axis] if many <= 2 else f"{workload.names[axis]} ({workload.trees[axis].sizes[level]} groups)"
