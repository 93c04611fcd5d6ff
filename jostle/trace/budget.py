"""A run on one page, and its spending as an indented tree with bars: which allotment, choice and query took how much.

A bar's length is the share of the source's budget. Pure functions of events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal

from msgspec import Struct

from jostle.events import Event
from jostle.trace.costs import Costs, Forest, place
from jostle.trace.text import UNITS, Twig, amount, bar, exact, number, plural
from jostle.trace.tree import choices, fold, hang_children, one_line

_WIDTH = 20
_DEEPEST = 8
_PARALLEL = "parts measured in parallel count as their maximum"
_TOGETHER = "with a delta all steps are counted together, and do not add up"


class Account(Struct, frozen=True):
    """What a trace shows of the budget of one private source: its `total`, and what was spent `before` and in the run.

    `steps` is the sum of what the steps of the run (`roots`) cost. They are counted `together` where the budget has a
    delta; elsewhere shares of an amount are rounded down, and add up to it but for that.
    """

    name: str
    sign: str
    total: Decimal
    before: Decimal
    run: Decimal
    steps: Decimal
    roots: tuple[Event, ...]
    together: bool

    @staticmethod
    def all_of(forest: Forest, costs: Costs) -> list[Account]:
        """Of every private source, in the order they were declared; two names of one source are one."""
        sources = [e for e in forest.walk() if e.kind == "source" and "same_as" not in e.fields]
        return [Account._of(forest, costs, event) for event in sources]

    @staticmethod
    def _of(forest: Forest, costs: Costs, event: Event) -> Account:
        run = next((e for e in forest.roots if e.kind == "run" and e.id == event.parent), None)
        roots = forest.children(run) if run is not None else forest.roots
        steps = sum((costs.spent[e.id].get(event.name, Decimal(0)) for e in roots), Decimal(0))
        spent = steps if run is None else costs.spent[run.id].get(event.name, Decimal(0))
        budget = event.fields["budget"]
        unit, _, total = budget.split(",")[0].partition(" ")
        before = exact(event.fields.get("before")) or Decimal(0)
        most = exact(total) or Decimal(0)
        return Account(event.name, UNITS[unit], most, before, spent, steps, roots, "delta" in budget)

    @property
    def spent(self) -> Decimal:
        return self.before + self.run

    @property
    def head(self) -> str:
        """`ε 0.3 of 1 spent`, with what of it was spent before the run."""
        before = f", {amount(self.before)} of it before this run" if self.before else ""
        return f"{self.sign} {amount(self.spent)} of {amount(self.total)} spent{before}"

    @property
    def note(self) -> str:
        """Why the steps do not add up to the whole; empty where they do."""
        return _PARALLEL if self.run < self.steps else _TOGETHER if self.together and self.run > self.steps else ""


def spending(events: Sequence[Event]) -> str:
    """One tree a source; `no private source was declared` where there is none."""
    forest = Forest.of(events)
    costs = Costs.of(forest)
    accounts = Account.all_of(forest, costs)
    if not accounts:
        return "no private source was declared\n"
    return "\n\n".join(_source(forest, costs, account) for account in accounts) + "\n"


def line(name: str, amounts: Mapping[str, Mapping[str, str]], indent: int = 0) -> str:
    """`people  ███░░  ε 0.3 of 1 spent, 0.7 left`, from the budget of one source as a session gives it."""
    parts: list[str] = []
    for unit, figures in amounts.items():
        total, used = Decimal(figures["total"]), Decimal(figures["spent"])
        share = f"{bar(float(used / total) if total else 0.0, _WIDTH)}  " if not parts else ""
        left, ever, added = total - used, Decimal(figures.get("for_ever", 0)), Decimal(figures.get("all_periods", 0))
        more = f", {amount(added)} of {amount(ever)} for ever" if ever else ""
        left = min(left, ever - added) if ever else left
        parts.append(f"{share}{UNITS[unit]} {amount(used)} of {amount(total)} spent{more}, {amount(left)} left")
    return f"{name.ljust(indent)}  " + "; ".join(parts)


def _source(forest: Forest, costs: Costs, account: Account) -> str:
    share = float(account.spent / account.total) if account.total else 0.0
    twig = Twig(f"{account.name}  {bar(share, _WIDTH)}  {account.head}")
    for event in account.roots:
        _node(forest, costs, twig, event, account, 0)
    if account.note:
        twig.add(account.note)
    twig.twigs = fold(twig.twigs)
    return "\n".join(twig.lines())


def _node(forest: Forest, costs: Costs, twig: Twig, event: Event, account: Account, depth: int) -> None:
    cost = costs.spent[event.id].get(account.name)
    if not cost:
        return
    share = bar(float(cost / account.total) if account.total else 0.0, _WIDTH)
    price = f"{share}  {account.sign} {amount(cost)}"
    under = twig.add("  ".join(p for p in (price, _title(event), place(event)) if p))
    if depth < _DEEPEST:
        below = forest.children(event)
        # A query with its one measurement is one line, not two.
        if not (len(below) == 1 and below[0].kind == "measure"):
            for child in below:
                _node(forest, costs, under, child, account, depth + 1)
        if cost < costs.summed[event.id][account.name]:
            under.add(_PARALLEL)
        under.twigs = fold(under.twigs)


def _title(event: Event) -> str:
    if event.kind == "measure":
        return " ".join(dict.fromkeys(str(p) for p in (event.fields.get("mechanism"), event.name) if p))
    if event.kind == "choice" and event.fields.get("chosen"):
        return f"choice {event.name} → {event.fields['chosen']}"
    return f"{event.kind} {event.name}".strip()


_ORDER = (
    "param", "source", "allotment", "query", "measure", "choice", "option", "feature", "train", "picture", "release",
    "error",
)  # fmt: skip
_NESTED = 5


def page(events: Sequence[Event]) -> str:
    """The summary, then each choice as a tree where there was one, then the spending."""
    parts = [summary(events)]
    if any(e.kind == "choice" for e in events):
        parts.append(choices(events))
    if any(e.kind == "source" for e in events):
        parts.append(spending(events))
    return "\n".join(parts)


def summary(events: Sequence[Event]) -> str:
    """Counts of each kind, and the events as an indented tree, like ones together, cut at a depth."""
    forest = Forest.of(events)
    counted = Counter(e.kind for e in events)
    counts = [plural(counted[kind], kind) for kind in _ORDER if counted[kind]]
    costs = Costs.of(forest)
    top = Twig(", ".join(counts) if counts else "nothing happened")
    for root in forest.roots:
        _hang(forest, costs, top, root, 0)
    top.twigs = fold(top.twigs)
    head = (
        "simulated: nothing private was opened\n" if any(e.fields.get("simulated") is not None for e in events) else ""
    )
    return head + "\n".join(top.lines()) + "\n"


def _hang(forest: Forest, costs: Costs, twig: Twig, event: Event, depth: int) -> None:
    under = twig.add(_line(costs, event))
    if event.kind == "choice":
        return  # it has a tree of its own
    hang_children(forest, under, event, depth >= _NESTED, lambda child: _hang(forest, costs, under, child, depth + 1))


def _line(costs: Costs, event: Event) -> str:
    fields = event.fields
    head = f"{event.kind} {event.name}".strip()
    if event.kind == "release":
        return f"release {event.name} = {short(fields.get('value'))}  {place(event)}".rstrip()
    if event.kind == "source":
        return _declared(event)
    if event.kind == "error":
        return "  ".join(p for p in (f"error {event.name}", str(fields.get("message") or ""), place(event)) if p)
    price = costs.text(event)
    if event.kind == "choice":
        return "  ".join(p for p in (f"{head} → {fields.get('chosen', 'nothing')}", price, place(event)) if p)
    return one_line(event, "", price)


def _declared(event: Event) -> str:
    """`source adult  protecting rows  budget ε 1`."""
    fields = event.fields
    budget = "budget " + " ".join(UNITS.get(word, word) for word in fields["budget"].split())
    if "same_as" in fields:
        budget = f"the same data as {fields['same_as']}"
    return "  ".join(p for p in (f"source {event.name}", f"protecting {fields['unit']}", budget, place(event)) if p)


def short(value: object) -> str:
    """A released value in a few words: `1234.5`, `[1, 2, 3, … 1024 values]`, `3 rows of sex, n`."""
    if isinstance(value, list | tuple):
        if value and all(isinstance(v, Mapping) for v in value):
            return f"{plural(len(value), 'row')} of {', '.join(map(str, value[0]))}"
        head = ", ".join(short(v) for v in value[:4])
        return f"[{head}]" if len(value) <= 4 else f"[{head}, … {len(value)} values]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k}: {short(v)}" for k, v in value.items()) + "}"
    return number(value, 6)
