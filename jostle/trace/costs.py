"""What a run spent: the cost of each event, source by source, and its renderings as a tree with bars and on one page.

A measurement names its price. An allotment, a choice and a run say what was really spent in them, which is less than
the sum of what they hold where parts of a partition were measured in parallel, and nothing where an answer that was
paid for earlier is given again. The option of a choice spent what its features left. Sums are exact decimals.

Events arrive with children before the event that holds them; an id counts beginnings, so order by id is the order
in which things began. An event whose parent never arrived (a run that was killed) stands as a root.

The length of a bar is the share of the source's budget. Pure functions of events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from msgspec import Struct

from jostle.events import Event
from jostle.trace.text import UNITS, Twig, align, amount, bar, exact, number, plural
from jostle.trace.tree import choices, fold, hang_children, one_line


class Forest(Struct, frozen=True):
    """Events by id, and the children of each in the order they began."""

    roots: tuple[Event, ...]
    _children: Mapping[int, tuple[Event, ...]]

    @staticmethod
    def of(events: Iterable[Event]) -> Forest:
        ordered = sorted(events, key=lambda e: e.id)
        ids = {e.id for e in ordered}
        # A parent always began earlier: anything else is damage, and could make a circle.
        parents = {e.id: e.parent if e.parent in ids and e.parent < e.id else None for e in ordered}
        children: dict[int | None, list[Event]] = {}
        for event in ordered:
            children.setdefault(parents[event.id], []).append(event)
        roots = tuple(children.pop(None, ()))
        return Forest(roots, {k: tuple(v) for k, v in children.items() if k is not None})

    def children(self, event: Event) -> tuple[Event, ...]:
        return self._children.get(event.id, ())

    def walk(self, event: Event | None = None) -> Iterator[Event]:
        """The event and all below it, or all events, in the order they began."""
        waiting = list(reversed(self.roots)) if event is None else [event]
        while waiting:
            here = waiting.pop()
            yield here
            waiting.extend(reversed(self.children(here)))

    def outermost(self, kind: str) -> list[Event]:
        """The events of a kind that stand inside no other of that kind, in the order they began."""
        events, waiting = [], list(reversed(self.roots))
        while waiting:
            here = waiting.pop()
            if here.kind == kind:
                events.append(here)
            else:
                waiting.extend(reversed(self.children(here)))
        return events


def mapping(value: object) -> Mapping[str, Any]:
    """A field that holds a record; an empty one where it holds anything else."""
    return value if isinstance(value, Mapping) else {}


def records(value: object) -> list[Mapping[str, Any]]:
    """The records of a field that holds a list of them."""
    return [v for v in value if isinstance(v, Mapping)] if isinstance(value, list | tuple) else []


def place(event: Event) -> str:
    """`first.jst:7:7`, or nothing."""
    return str(event.span) if event.span is not None else ""


Amounts = Mapping[str, Decimal]
_ZERO = Decimal(0)


class Costs(Struct, frozen=True):
    """`spent`: by event id, what an event cost each source with all in it; `summed`: its children's sum alone."""

    signs: Mapping[str, str]  # ε or ρ, by source
    spent: Mapping[int, Amounts]
    summed: Mapping[int, Amounts]

    @staticmethod
    def of(forest: Forest) -> Costs:
        signs: dict[str, str] = {}
        spent: dict[int, Amounts] = {}
        summed: dict[int, Amounts] = {}
        # Children begin after their parent, so that going back through the ids meets them first.
        for event in reversed(list(forest.walk())):
            below = add(spent[child.id] for child in forest.children(event))
            parts = summed[event.id] = _price(event, signs) if event.kind == "measure" else below
            spent[event.id] = _run(forest, event, signs, parts) if event.kind == "run" else _stated(event, parts)
            if event.kind == "choice":
                spent |= _options(forest, event, spent)
        return Costs(signs, spent, summed)

    def text(self, *events: Event) -> str:
        """`ε 0.5`, or `ε 0.4 on people, ρ 0.1 on visits` where sources were charged differently; empty for nothing."""
        spent = {name: value for name, value in add(self.spent[e.id] for e in events).items() if value}
        prices = {name: f"{self.signs[name]} {amount(value)}" for name, value in spent.items()}
        if len(set(prices.values())) < 2:
            return next(iter(prices.values()), "")
        return ", ".join(f"{price} on {name}" for name, price in prices.items())


def add(parts: Iterable[Amounts]) -> dict[str, Decimal]:
    """The sum of amounts, source by source."""
    out: dict[str, Decimal] = {}
    for part in parts:
        for name, value in part.items():
            out[name] = out.get(name, _ZERO) + value
    return out


def price(fields: Mapping[str, object]) -> tuple[str, Decimal] | None:
    """The sign and the amount of ε or ρ that an event or a feature says; None where it says nothing, or zero."""
    prices = ((UNITS[unit], exact(fields.get(unit))) for unit in ("epsilon", "rho"))
    return next(((sign, value) for sign, value in prices if value), None)


def _price(event: Event, signs: dict[str, str]) -> Amounts:
    """The charge of a measurement to each of its sources; of one that was prepaid, nothing."""
    stated = price(event.fields)
    if stated is None:
        return {}
    names = event.fields.get("sources") or ()
    signs.update(dict.fromkeys(names, stated[0]))
    return dict.fromkeys(names, stated[1])


def _stated(event: Event, parts: Amounts) -> Amounts:
    """What an event says that it spent: of no source more than was measured in it."""
    stated = event.fields.get("spent")
    if stated is None:
        return parts
    amounts = {name: exact(stated.get(name) if isinstance(stated, Mapping) else stated) for name in parts}
    return {name: min(part, amounts[name] or _ZERO) for name, part in parts.items()}


def _options(forest: Forest, choice: Event, spent: Mapping[int, Amounts]) -> dict[int, Amounts]:
    """What a choice's option spent: no more than the choice, less what else is in it."""
    inside = {kind: [c for c in forest.children(choice) if (c.kind == "option") == kind] for kind in (True, False)}
    others = add(spent[child.id] for child in inside[False])
    left = {name: whole - others.get(name, _ZERO) for name, whole in spent[choice.id].items()}
    return {o.id: {name: min(part, left[name]) for name, part in spent[o.id].items()} for o in inside[True]}


def _run(forest: Forest, event: Event, signs: dict[str, str], parts: Amounts) -> Amounts:
    """What a run spent of its sources: what their budgets say at its end, less what was spent of them before it."""
    out = dict(parts)
    for source in forest.children(event):
        figures = mapping(event.fields.get("budget")).get(source.name)
        if source.kind == "source" and figures and "same_as" not in source.fields:
            unit = next(u for u in ("epsilon", "rho") if u in figures)
            signs[source.name] = UNITS[unit]
            spent, before = exact(figures[unit]["spent"]), exact(source.fields.get("before"))
            out[source.name] = (spent or _ZERO) - (before or _ZERO)
    return out


MOST = 8  # blocks that are shown


def joint_text(fields: Mapping[str, Any]) -> str:
    """In one line, of the fields of a query; nothing for any other query."""
    comparison = fields.get("of_alone")
    if not isinstance(comparison, Mapping) or not comparison:
        return ""
    unit = "rho" if "rho" in fields else "epsilon"
    spent, apart = (f"{UNITS[unit]} {number(fields.get(name, 0))}" for name in (unit, "apart"))
    head = f"{plural(fields.get('selects', 0), 'select')} by one measurement"
    targets = fields.get("wanted")
    if targets and fields.get("selects") == 1:
        return f"every answer within {number(targets[0])}: {spent}"
    if targets:
        return f"{head}, every answer within {' or '.join(map(number, targets))}: {spent}, one by one about {apart}"
    mean, largest = (number(comparison.get(name, 0)) for name in ("mean", "largest"))
    errors = f"errors {mean} of what each would have with its part of {spent}, {largest} at most"
    given = fields.get("given")
    head += f", {number(given)} of them given" if given else ""
    head += ", none negative" if fields.get("nonnegative") else ""
    head += ", integers" if fields.get("whole") else ""
    return f"{head}, {errors}; one by one they would take about {apart}"


def joint_table(fields: Mapping[str, Any]) -> str:
    """The strategy: what is measured, and the share of the amount that each part has."""
    blocks = list(fields.get("strategy") or ())
    rows = [["share", "measured", "by"]]
    rows += [[number(block["share"]), block.get("of", "rows"), ", ".join(block["by"])] for block in blocks[:MOST]]
    more = int(fields.get("blocks", 0)) - len(rows) + 1
    return "\n".join([*align(rows, [True, False, False]), *([f"and {more} more"] if more > 0 else [])])


_WIDTH = 20
_DEEPEST = 8
_PARALLEL = "parts measured in parallel count as their maximum"
_TOGETHER = "with a delta all steps are counted together, and do not add up"


class Account(Struct, frozen=True):
    """What a trace tells of the budget of one private source: its `total`, and what was spent `before` and in the run.

    `steps` is the sum of what the steps of the run (`roots`) cost; a budget with a delta has another total.
    """

    name: str
    sign: str
    total: Decimal
    before: Decimal
    run: Decimal
    steps: Decimal
    roots: tuple[Event, ...]

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
        unit, _, total = event.fields["budget"].split(",")[0].partition(" ")
        before = exact(event.fields.get("before")) or Decimal(0)
        return Account(event.name, UNITS[unit], exact(total) or Decimal(0), before, spent, steps, roots)

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
        return _PARALLEL if self.run < self.steps else _TOGETHER if self.run > self.steps else ""


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
        parts.append(f"{share}{UNITS[unit]} {amount(used)} of {amount(total)} spent, {amount(total - used)} left")
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
