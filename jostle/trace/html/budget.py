"""The budget as an icicle: each block as wide as what it cost its source, parallel parts drawn as their maximum."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from jostle.events import Event
from jostle.trace.budget import Account
from jostle.trace.costs import Costs
from jostle.trace.forest import Forest
from jostle.trace.html.markup import Html, join, tag
from jostle.trace.text import amount

_DEEPEST = 7
_MOST = 40  # blocks side by side


def budget(forest: Forest, costs: Costs) -> Html | None:
    """An icicle for each private source."""
    accounts = Account.all_of(forest, costs)
    return join(_icicle(forest, costs, account) for account in accounts) if accounts else None


def _icicle(forest: Forest, costs: Costs, account: Account) -> Html:
    head = f"{account.name}: {account.head}"
    if not account.total:
        return tag("p", head)
    before = _bar("before", account.before / account.total, f"{account.sign} {amount(account.before)}", "rest")
    blocks = [before] if account.before else []
    blocks += _blocks(forest, costs, account, account.roots, account.run, account.total, 0)
    left = account.total - account.spent
    if left > 0:
        blocks.append(_bar("left", left / account.total, f"{account.sign} {amount(left)}", "left"))
    note = tag("p", account.note, class_="note") if account.note else None
    return tag(
        "section", tag("h3", head), tag("div", blocks, class_="icicle", role="group", aria_label=head), note
    )  # fmt: skip


def _blocks(
    forest: Forest, costs: Costs, account: Account, events: Sequence[Event], whole: Decimal, width: Decimal, depth: int
) -> list[Html]:
    """Blocks of steps that cost `whole` together, within `width`; each is narrower where their costs add up to more."""
    prices = [(e, costs.spent[e.id].get(account.name, Decimal(0))) for e in events]
    paid = [(e, price) for e, price in prices if price]
    summed = sum((price for _, price in paid), Decimal(0))
    scale = whole / summed / width if summed else Decimal(0)
    blocks = []
    for event, price in paid[:_MOST]:
        below = forest.children(event)
        inner = _blocks(forest, costs, account, below, price, price, depth + 1) if depth < _DEEPEST else []
        parallel = sum((costs.spent[e.id].get(account.name, Decimal(0)) for e in below), Decimal(0)) > price
        row = tag("div", inner, class_="row", title="in parallel" if parallel else None) if inner else None
        label, name = f"{account.sign} {amount(price)}", event.name or event.kind
        blocks.append(_bar(name, price * scale, label, f"k-{event.kind}", row, f"#e{event.id}"))
    if rest := sum((price for _, price in paid[_MOST:]), Decimal(0)):
        blocks.append(_bar(f"{len(paid) - _MOST} more", rest * scale, f"{account.sign} {amount(rest)}", "rest"))
    return blocks


def _bar(
    name: str, share: Decimal, price: str, class_: str, inner: Html | None = None, href: str | None = None
) -> Html:
    label = tag("a" if href else "span", name, tag("small", price), href=href, title=f"{name}: {price}", class_="label")
    return tag("div", label, inner, class_=f"block {class_}", style=f"width:{float(share) * 100:.4g}%")
