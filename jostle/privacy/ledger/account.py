"""A session's side of the ledger: for each registered source, what it is in the ledger and which charges were its own.

`settle` is the one call that a charge makes. It hands in by how much each registered source's tree grows at the root,
and returns when that is on disk. Whatever other programs spent meanwhile is brought into the session's own meters,
so that `left` and `spent` speak of all of it. It reads no data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from jostle.accounting.budget_tree import Cost, Meter, Path
from jostle.accounting.definitions import ChargePurpose, Price
from jostle.diagnostics import refuse
from jostle.jsontext import digest
from jostle.plan.digest import plan_digest
from jostle.privacy.ledger.ledger import Growth, Ledger, Receipt
from jostle.privacy.ledger.rows import Dataset
from jostle.source import Source as Text
from jostle.source import Span


@dataclass(slots=True, eq=False)
class Account:
    """A registered dataset as one session has opened it. `data` is the engine's key of its file.

    `linked` are the datasets of its persons that were opened too: no charge is made where the file of one has changed.
    """

    ledger: Ledger
    dataset: Dataset
    data: str = ""
    receipts: list[Receipt] = field(default_factory=list)
    asked: dict[str, int] = field(default_factory=dict)  # how often a request was made in this run
    linked: dict[str, Dataset] = field(default_factory=dict)

    def begin(self) -> None:
        """Another program of the session begins."""
        self.receipts.clear()
        self.asked.clear()

    @property
    def name(self) -> str:
        return self.dataset.terms.name

    @property
    def version(self) -> int:
        return self.dataset.state.version

    def catch_up(self, meter: Meter, total: Cost) -> None:
        """Adds at the root what others have spent since; a total that went back is that of an older ledger."""
        behind = tuple(there - here for there, here in zip(total, meter.spent, strict=True))
        if min(behind) < 0:
            raise refuse(
                "LedgerError", f"the ledger knows less of `{self.name}` than this program has spent",
                help="was an older copy put in its place? Its owner looks at it: jostle data history --verify",
            )  # fmt: skip
        if any(behind):
            meter.add((), behind)


@dataclass(frozen=True, slots=True)
class Charge:
    """What one measurement costs one registered source: on which path of its meter, and what a row protects."""

    account: Account
    meter: Meter
    path: Path
    cost: Cost
    protects: str


def settle(
    charges: Sequence[Charge], price: Price, what: str, span: Span | None, program: Text | None, purpose: ChargePurpose
) -> int | None:
    """Writes every charge into the ledger, or none; at least one.

    Gives the place of the charge that does not fit its budget, and `None` when all is on disk. Raises `LedgerError`
    otherwise.
    """
    plan = plan_digest(purpose.plan, {charge.account.data: charge.account.name for charge in charges})
    content = {
        "program": PurePath(program.name).name if program is not None else "",
        "digest": digest(program.text) if program is not None else "",
        "line": span.line if span is not None and program is not None and span.source == program else 0,
        "plan": plan.digest, "mechanism": purpose.mechanism, "asked": what, "amount": str(price.amount),
    }  # fmt: skip
    growths = []
    for charge in charges:
        account, meter = charge.account, charge.meter
        growth = tuple(a - b for a, b in zip(meter.after(charge.path, charge.cost), meter.spent, strict=True))
        growths.append(Growth(account.name, account.version, growth, {**content, "protects": charge.protects}))
        for dataset in (account.dataset, *account.linked.values()):
            account.ledger.same_file(dataset)
    outcome = charges[0].account.ledger.charge(growths)
    for charge, before in zip(charges, outcome.before, strict=True):
        charge.account.catch_up(charge.meter, before)
    if outcome.refused is None:
        for charge, receipt in zip(charges, outcome.receipts, strict=True):
            charge.account.receipts.append(receipt)
    return outcome.refused


def receipts_of(accounts: Sequence[Account]) -> Mapping[str, Any]:
    """For the event of a run: where its charges stand in the history of each registered dataset."""
    return {account.name: [[r.number, r.hash] for r in account.receipts] for account in accounts}
