"""Repeated requests: a select on a registered table that was answered before is answered again, free.

Two requests are the same when plan, aggregates, keys, amount, mechanism and data version are. Within one run the
k-th time a request is made it gets the k-th stored answer, so a program that asks twice for two independent draws
gets two and pays for two, while a program that is run again pays nothing. The answer given is the one that was
released and paid for, so this is post-processing. Allotments are charged as if it were new: a program spends its
epsilon the same way in every run.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from jostle.diagnostics import Refusal
from jostle.privacy import history
from jostle.privacy.account import Account
from jostle.privacy.kernel import Kernel
from jostle.privacy.measures import Amount
from jostle.privacy.plandigest import plan_digest
from jostle.privacy.query import Answer, Request
from jostle.privacy.released import Noised
from jostle.source import Span


def run(kernel: Kernel, request: Any, amount: Amount, via: str | None, span: Span | None) -> tuple[Answer, bool]:
    """The answer to a private select, and whether it was given before."""
    account = _account(request)
    if account is None:
        return request.run(kernel, amount, via, span), False
    plan = plan_digest(request, {account.data: account.name})
    if not plan.closed:
        return request.run(kernel, amount, via, span), False
    wish = [plan.digest, str(amount), via or "", account.version]
    same = history.digest(wish)
    account.asked[same] = account.asked.get(same, 0) + 1
    digest = history.digest([*wish, account.asked[same]])
    found = account.ledger.answer(account.name, digest)
    if found is not None:
        stored, receipt = found
        answer = _from_json(stored)
        kernel.charge_again(request.table.exposures, amount, "select", span)
        account.receipts.append(receipt)
        return answer, True
    answer = request.run(kernel, amount, via, span)
    # Where it cannot be stored it is paid for all the same, and may be shown; it cannot be given again, that is all.
    with suppress(Refusal):
        account.ledger.remember(account.receipts[-1], digest, _as_json(answer))
    return answer, False


def _account(request: Any) -> Account | None:
    if not isinstance(request, Request) or len(request.table.exposures) != 1:
        return None
    return request.table.exposures[0].source.account


# Answers as JSON: a noised number keeps its mechanism and scale --------------------------------------


def _as_json(answer: Answer) -> Any:
    return {"keys": answer.keys, "values": [[_cell(v) for v in column] for column in answer.values]}


def _cell(value: Any) -> Any:
    return [float(value), value.mechanism, value.scale, value.candidates] if isinstance(value, Noised) else value


def _from_json(said: Any) -> Answer:
    columns = [[Noised(*v) if isinstance(v, list) else v for v in column] for column in said["values"]]
    return Answer(said["keys"], columns)
