"""The budget as an icicle: each block as wide as what it cost its source, parallel parts drawn as their maximum."""

from __future__ import annotations

from decimal import Decimal

from jostle.events import Event
from jostle.trace.costs import Costs, budget_total
from jostle.trace.forest import Forest
from jostle.trace.html.markup import Html, join, tag
from jostle.trace.text import amount

_DEEPEST = 7
_MOST = 40  # blocks side by side


def budget(forest: Forest) -> Html | None:
    """An icicle for each private source."""
    sources = {e.name: e for e in forest.walk() if e.kind == "source" and e.fields.get("budget") is not None}
    return join(_icicle(forest, name, event) for name, event in sources.items()) if sources else None


def _icicle(forest: Forest, name: str, source: Event) -> Html:
    sign, total = budget_total(source.fields.get("budget"))
    costs = Costs.of(forest, name)
    spent = sum((costs.spent[e.id] for e in forest.roots), Decimal(0))
    whole = total if total else spent
    if not whole:
        return tag("p", f"{name}: nothing was spent")
    paid = [e for root in forest.roots for e in forest.children(root) if costs.spent[e.id]]
    blocks = [_block(forest, costs, e, whole, Decimal(1), sign, 0) for e in paid[:_MOST]]
    rest = sum((costs.spent[e.id] for e in paid[_MOST:]), Decimal(0))
    if rest:
        blocks.append(_bar(f"{len(paid) - _MOST} more", rest / whole, f"{sign} {amount(rest)}", "rest"))
    left = whole - spent
    if left > 0:
        blocks.append(_bar("left", left / whole, f"{sign} {amount(left)}", "left"))
    head = f"{name}: {sign} {amount(spent)} of {amount(whole)} spent"
    return tag("section", tag("h3", head), tag("div", blocks, class_="icicle", role="group", aria_label=head))


def _block(forest: Forest, costs: Costs, event: Event, parent: Decimal, scale: Decimal, sign: str, depth: int) -> Html:
    """A block of `event`, `scale` narrower than its cost, where its neighbours were measured in parallel."""
    mine = costs.spent[event.id]
    below = [e for e in forest.children(event) if costs.spent[e.id]]
    inner = None
    if below and depth < _DEEPEST:
        summed = sum((costs.spent[e.id] for e in below), Decimal(0))
        narrower = min(Decimal(1), mine / summed)
        parts = [_block(forest, costs, e, mine, narrower, sign, depth + 1) for e in below[:_MOST]]
        inner = tag("div", parts, class_="row", title="in parallel" if summed > mine else None)
    price = f"{sign} {amount(mine)}"
    return _bar(event.name or event.kind, mine / parent * scale, price, f"k-{event.kind}", inner, f"#e{event.id}")


def _bar(
    name: str, share: Decimal, price: str, class_: str, inner: Html | None = None, href: str | None = None
) -> Html:
    label = tag("a" if href else "span", name, tag("small", price), href=href, title=f"{name}: {price}", class_="label")
    return tag("div", label, inner, class_=f"block {class_}", style=f"width:{float(share) * 100:.4g}%")
