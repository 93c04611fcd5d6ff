"""A session's side of the ledger: for each registered source, what it is in the ledger and which charges were its own.

`Account.settle` is the one call that a charge makes. It hands in by how much each registered source's tree grows at the
root, and returns when that is on disk. Whatever other programs spent meanwhile is brought into the session's own
meters, so that `left` and `spent` speak of all of it. It reads no data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from msgspec import Struct, field

from jostle.accounting.accounts import Charge
from jostle.accounting.budget_tree import Cost, Meter
from jostle.accounting.definitions import ChargePurpose, Price
from jostle.diagnostics import refuse
from jostle.jsontext import digest
from jostle.plan.digest import plan_digest
from jostle.privacy.ledger.ledger import Growth, Ledger, Receipt
from jostle.privacy.ledger.rows import Dataset
from jostle.source import Source as Text
from jostle.source import Span


class Account(Struct, eq=False):
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

    @property
    def spent(self) -> Cost:
        return self.dataset.state.spent

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

    def settle(
        self, charges: Sequence[Charge], price: Price, what: str, span: Span | None, program: Text | None,
        purpose: ChargePurpose,
    ) -> int | None:  # fmt: skip
        """Writes every charge into the ledger, or none (`accounting.accounts`). All accounts are of one ledger."""
        mine = [(charge, account) for charge in charges if isinstance(account := charge.account, Account)]
        plan = plan_digest(purpose.plan, {account.data: account.name for _, account in mine})
        content = {
            "program": PurePath(program.name).name if program is not None else "",
            "digest": digest(program.text) if program is not None else "",
            "line": span.line if span is not None and program is not None and span.source == program else 0,
            "plan": plan.digest, "mechanism": purpose.mechanism, "asked": what, "amount": str(price.amount),
        }  # fmt: skip
        growths = []
        for charge, account in mine:
            meter = charge.meter
            growth = tuple(a - b for a, b in zip(meter.after(charge.path, charge.cost), meter.spent, strict=True))
            growths.append(Growth(account.name, account.version, growth, {**content, "protects": charge.protects}))
            for dataset in (account.dataset, *account.linked.values()):
                self.ledger.same_file(dataset)
        outcome = self.ledger.charge(growths)
        for (charge, account), before in zip(mine, outcome.before, strict=True):
            account.catch_up(charge.meter, before)
        if outcome.refused is None:
            for (_, account), receipt in zip(mine, outcome.receipts, strict=True):
                account.receipts.append(receipt)
        return outcome.refused


def receipts_of(accounts: Iterable[object]) -> Mapping[str, Any]:
    """For the event of a run: where its charges stand in the history of each registered dataset."""
    mine = [account for account in accounts if isinstance(account, Account)]
    return {account.name: [[r.number, r.hash] for r in account.receipts] for account in mine}
