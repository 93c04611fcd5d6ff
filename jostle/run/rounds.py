"""`run with epsilon e until budget of DATA or C { … }`: rounds of a block, as long as a further one is sure to be paid.

Each round stands in an allotment of its own. Before it, and before anything in it is read, it is asked whether the
whole of that allotment fits: the one around, the budget of the data and its agents. So what the block does in a round
is within what there is, whatever it releases and however the next amount follows from it; the round that would not fit
does not begin. A round that spends nothing counts as if it had spent its amount: so rounds on public data are as many
as on private ones that spend all of it, and they end.
"""

from __future__ import annotations

from jostle.accounting.amounts import Amount
from jostle.accounting.budget_tree import Cost, Path
from jostle.accounting.definitions import gaussian_price, pure_price, used_delta
from jostle.diagnostics import refuse
from jostle.privacy.kernel.exposures import Allotment, Exposure, Exposures, Handle
from jostle.privacy.kernel.kernel import check_unit
from jostle.records import replace
from jostle.run.arguments import amount_of
from jostle.run.evaluator import Evaluator, Returned
from jostle.run.faults import exposures_of
from jostle.run.scope import Scope
from jostle.run.values import kind_name
from jostle.syntax import nodes as n


def run(interp: Evaluator, node: n.Run, scope: Scope) -> Returned | None:
    """Goes round; gives what a `return` in a round gives."""
    if interp.joint is not None:
        raise refuse(
            "TypeError", "a `jointly` block measures once, and a run measures in rounds", node.span,
            help="put the `jointly` block into the run, or the run before or after it",
        )  # fmt: skip
    exposures, around = _budgets(interp, node, scope)
    idle = 0  # what rounds that spent nothing count for
    while True:
        amount = amount_of(interp, node.spend.amount, scope, exposures)
        if amount is None or not _affordable(amount, idle, exposures, around):
            return None
        with interp.allotted(amount, node.spend.span, exposures) as allotment:
            ended = interp.block(node.body.body, scope)
        idle += 0 if any(any(meter.spent) for _, meter in allotment.meters.values()) else amount.value
        if ended is not None or (node.done is not None and interp.truth(interp.eval(node.done, scope), node.done)):
            return ended


def _budgets(interp: Evaluator, node: n.Run, scope: Scope) -> tuple[Exposures, Allotment | None]:
    """What a run may spend: the budgets of the data that it names, and the allotment that it stands in."""
    data = interp.eval(node.data, scope)
    exposures, around = exposures_of([data]), interp.kernel.allotment
    if not any(isinstance(one, Handle) for one in (data if isinstance(data, list) else [data])):
        raise refuse(
            "TypeError", f"a run spends the budget of data, and this is {kind_name(data)}", node.data.span,
            help="name a table, or a list of tables: `until budget of people`",
        )  # fmt: skip
    if not exposures and (around is None or around.amount is None):
        raise refuse(
            "NoEpsilon", "these data are public, and no allotment says when this run ends", node.data.span,
            help="put it into a `with epsilon … { }` block: a round on public data counts for its whole amount",
        )  # fmt: skip
    return exposures, around


def _affordable(amount: Amount, idle: int, exposures: Exposures, around: Allotment | None) -> bool:
    """Whether a round that may spend an amount, beside what `idle` rounds count for, is sure to be paid."""
    whole = replace(amount, value=amount.value + idle)
    for exposure in exposures:
        check_unit(amount, exposure.source)
        for holder in (around, *exposure.agents):
            if holder is not None and holder.amount is not None:
                plain = (whole.value, amount.delta)
                if not holder.meter(exposure.source).admits(exposure.path, plain):
                    return False
        path, cost = _most(whole, exposure)
        if not exposure.source.meter.admits(path, cost):
            return False
    return around is None or around.amount is None or whole.value <= around.amount.value


def _most(amount: Amount, exposure: Exposure) -> tuple[Path, Cost]:
    """The most that measurements within an amount can add to the total of a source, and where.

    Of a budget with a delta that is, in every place, the largest of pure noise, Gaussian noise and open keys: each is
    at least what several of them cost that add up to the amount. Where a person has rows in several parts, what has a
    delta counts as a whole, and Gaussian noise in no plain sum.
    """
    measure, path = exposure.source.measure, exposure.path
    if measure.kind != "approximate":
        return (() if amount.delta and exposure.stability > 1 else path), (amount.value, amount.delta)[: measure.width]
    rho, plain = pure_price(amount).rho, amount.value
    if amount.delta:
        rho = max(rho, gaussian_price(amount, used_delta(amount, [measure])).rho)
        if path and exposure.stability > 1:
            path, plain = (), measure.limit.value + 1
    return path, (rho, amount.delta, plain, amount.delta)
