"""What stands in a `with` clause: amounts, shares of an allotment, and errors and weights that answers are to have."""

from __future__ import annotations

import math
from typing import Any

from jostle.accounting.amounts import QUANTA, Amount, as_float, quanta, share_of
from jostle.diagnostics import Refusal, refuse
from jostle.privacy.kernel.exposures import Allotment, Exposures, Handle, handles_in
from jostle.privacy.kernel.kernel import Kernel, check_unit
from jostle.run.evaluator import Evaluator
from jostle.run.faults import private_value
from jostle.run.scope import MISSING, Scope
from jostle.run.values import is_number
from jostle.source import Span
from jostle.syntax import nodes as n


class Allotted:
    """`kernel.allot` as a context whose refusal is placed at its `with`."""

    def __init__(self, kernel: Kernel, amount: Amount | None, span: Span, exposures: Exposures) -> None:
        self._kernel, self._amount, self._span, self._exposures = kernel, amount, span, exposures

    def __enter__(self) -> Allotment:
        amount = self._amount
        price = {amount.unit: as_float(amount.value)} if amount is not None else {}
        self._event = self._kernel.events.within("allotment", str(amount or "without limit"), self._span, **price)
        self._opened = self._kernel.allot(self._amount, self._span, self._exposures)
        try:
            self._allotment = self._opened.__enter__()
        except Refusal as refusal:
            raise refusal.at(self._span) from None
        self._fields = self._event.__enter__()
        return self._allotment

    def __exit__(self, *error: Any) -> None:
        meters = self._allotment.meters.values()
        self._fields["spent"] = {source.name: as_float(meter.spent[0]) for source, meter in meters}
        self._event.__exit__(None, None, None)
        self._opened.__exit__(None, None, None)


def amount_of(interp: Evaluator, node: n.Amount, scope: Scope, exposures: Exposures) -> Amount | None:
    """The amount written, with `epsilon` in it as what is left on the paths of `exposures`.

    In a choice called on public data ε is infinite, and a part of it is without limit too: `None`.
    """
    if node.unit == "share":
        return _share_of(interp, node, scope, exposures)
    inner, opened = Scope(scope), interp.kernel.allotment
    if opened is not None and scope.find(node.unit) is MISSING and opened.unit in (None, node.unit):
        inner.set(node.unit, interp.kernel.left_of_allotment(exposures, node.unit))
    value = interp.eval(node.value, inner)
    for handle in handles_in(value):
        raise _private_amount(handle, node)
    if opened is not None and opened.amount is None and not exposures and value == math.inf:
        return None
    delta = interp.eval(node.delta, inner) if node.delta is not None else None
    try:
        return Amount(node.unit, quanta(value, node.unit), quanta(delta, "delta") if delta is not None else 0)
    except Refusal as refusal:
        raise refusal.at(node.span) from None


def _share_of(interp: Evaluator, node: n.Amount, scope: Scope, exposures: Exposures) -> Amount | None:
    """A share of the innermost allotment; outside any, of the budget of what is measured."""
    share = interp.eval(node.value, scope)
    for handle in handles_in(share):
        raise _private_amount(handle, node)
    try:
        whole = _whole_amount(interp.kernel, exposures)
        part = share_of(whole if whole is not None else Amount("epsilon", QUANTA), share)  # checked on public data too
    except Refusal as refusal:
        raise refusal.at(node.span) from None
    return part if whole is not None else None


def _whole_amount(kernel: Kernel, exposures: Exposures) -> Amount | None:
    """What a share is of: what the innermost allotment had when the first share of it was asked for.

    Outside any, the budget of what is measured. Without limit (`None`) in a call on public data.
    """
    inner = kernel.allotment
    if inner is not None:
        if inner.amount is not None and inner.shared_out is None:
            value = kernel.left_of_allotment(exposures, inner.amount.unit)
            if value == 0:
                message = f"nothing is left of the allotment of {inner.amount} to share"
                raise refuse("BudgetExceeded", message, help="give what was measured before a share too, `with 1/2`")
            deltas = [inner.amount.delta - meter.spent[1] for _, meter in inner.meters.values()]
            inner.shared_out = Amount(inner.amount.unit, quanta(value), max(0, min(deltas, default=inner.amount.delta)))
        return inner.shared_out
    if not exposures:
        raise refuse(
            "NoEpsilon", "a share without a unit stands outside any allotment",
            help="name a unit, `with epsilon 0.5`, or put it in a `with epsilon … { }` block",
        )  # fmt: skip
    limits = [e.source.measure.limit for e in exposures]
    limits += [agent.amount for e in exposures for agent in e.agents if agent.amount is not None]
    for exposure in exposures:
        check_unit(Amount(limits[0].unit, limits[0].value), exposure.source)
    deltas = [limit.delta for limit in limits if limit.delta]
    return Amount(limits[0].unit, min(limit.value for limit in limits), min(deltas, default=0))


def _private_amount(handle: Handle, node: n.Amount) -> Refusal:
    name = handle.exposures[0].source.name
    return refuse("PrivateValue", f"an amount is public, and this comes from `{name}`", node.value.span)


def mechanism_of(interp: Evaluator, spend: n.Spend) -> str | None:
    if spend.via is None:
        return None
    if isinstance(spend.via, n.Name):
        return spend.via.id
    raise refuse("TypeError", "`via` takes the name of a mechanism", spend.via.span, help="write `via gaussian`")


def wish_of(interp: Evaluator, node: n.Amount, scope: Scope) -> float:
    """The error or the weight that is written: a public number above 0."""
    value = interp.eval(node.value, scope)
    for handle in handles_in(value):
        raise private_value(handle, f"cannot be the {node.unit} of an answer").at(node.value.span)
    if not is_number(value) or not 0 < value < math.inf:
        raise refuse("BadAmount", f"{node.unit} is a number above 0", node.value.span, help=f"write `{node.unit} 4`")
    return float(value)


def no_error(node: n.Select) -> Refusal:
    """Of a select outside of such a block that has a weight."""
    span = node.spend.span if node.spend is not None else node.span
    return refuse(
        "TypeError", "a weight is no amount that is spent", span,
        help="write `with epsilon 0.1` or `with error 30`, or put the select into a `jointly` block",
    )  # fmt: skip
