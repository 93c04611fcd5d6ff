"""A session's side of the ledger: for each registered source, what it is in the ledger and which charges were its own.

`settle` is the one call that a charge makes. It hands in by how much each registered source's tree grows at the root,
and returns when that is on disk. Whatever other programs spent meanwhile is brought into the session's own meters,
so that `left` and `spent` speak of all of it. It reads no data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jostle.accounting.budget_tree import Cost, Meter
from jostle.accounting.definitions import ChargePurpose, Price
from jostle.diagnostics import refuse
from jostle.privacy.handles import Exposures
from jostle.privacy.ledger import history
from jostle.privacy.ledger.ledger import Growth, Ledger, Receipt
from jostle.privacy.ledger.plan_digest import plan_digest
from jostle.privacy.ledger.rows import Dataset
from jostle.privacy.sources import Source
from jostle.source import Source as Text
from jostle.source import Span


@dataclass(slots=True, eq=False)
class Account:
    """A registered dataset as one session has opened it. `data` is the engine's key of its file."""

    ledger: Ledger
    dataset: Dataset
    data: str = ""
    receipts: list[Receipt] = field(default_factory=list)
    asked: dict[str, int] = field(default_factory=dict)  # how often a request was made in this run

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


def settle(
    exposures: Exposures, price: Price, what: str, span: Span | None, program: Text | None, purpose: ChargePurpose
) -> Source | None:
    """Writes a charge into the ledger for every registered source it meets, or for none.

    Gives the source whose budget it does not fit, and `None` when all is on disk. Raises `LedgerError` otherwise.
    """
    kept = [(e.source, e.source.account, e.path) for e in exposures if e.source.account is not None]
    if not kept:
        return None
    plan = plan_digest(purpose.plan, {account.data: account.name for _, account, _ in kept})
    content = {
        "program": Path(program.name).name if program is not None else "",
        "digest": history.digest(program.text) if program is not None else "",
        "line": span.line if span is not None and program is not None and span.source == program else 0,
        "plan": plan.digest, "mechanism": purpose.mechanism, "asked": what, "amount": str(price.amount),
    }  # fmt: skip
    growths = []
    for source, account, path in kept:
        grown = tuple(
            after - before
            for after, before in zip(
                source.meter.after(path, source.measure.cost(price)), source.meter.spent, strict=True
            )
        )
        growths.append(Growth(account.name, account.version, grown, {**content, "protects": str(source.unit)}))
        account.ledger.same_file(account.dataset)
    outcome = kept[0][1].ledger.charge(growths)
    for (source, account, _), before in zip(kept, outcome.before, strict=True):
        catch_up(source.meter, before, account.name)
    if outcome.refused is not None:
        return kept[outcome.refused][0]
    for (_, account, _), receipt in zip(kept, outcome.receipts, strict=True):
        account.receipts.append(receipt)
    return None


def catch_up(meter: Meter, total: Cost, name: str) -> None:
    """Adds at the root what others have spent since; a total that went back is that of an older ledger."""
    behind = tuple(there - here for there, here in zip(total, meter.spent, strict=True))
    if min(behind) < 0:
        raise refuse(
            "LedgerError", f"the ledger knows less of `{name}` than this program has spent",
            help="was an older copy put in its place? Its owner looks at it: jostle data history --verify",
        )  # fmt: skip
    if any(behind):
        meter.add((), behind)


def receipts_of(sources: Sequence[Source]) -> Mapping[str, Any]:
    """For the event of a run: where its charges stand in the history of each registered dataset."""
    told: dict[str, Any] = {}
    for source in sources:
        if source.account is not None:
            told[source.account.name] = [[r.number, r.hash] for r in source.account.receipts]
    return told
