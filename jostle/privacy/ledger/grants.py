"""Grants: parts of the budget of a registered dataset, each for one analyst, in the same ledger and by the same rules.

A grant is a row of the ledger with its own history and seal, `dataset@analyst`, in the dataset's unit. A session that
is opened for an analyst counts in the grant. Each charge is written to the grant and to its dataset in one transaction,
with the same amount, or to neither.

The rest of all grants is *reserved*: new grants, and charges on the dataset itself, must fit beside it. For an (ε, δ)
budget that is counted in zCDP each grant is a separate budget: limits add up to the dataset's, a charge is tested
against the grant alone, and a grant that ends frees nothing unless nothing was charged. Charges on the dataset itself
are counted by plain sums there, and refused after the first grant. The argument is in docs/privacy/server.md.

A grant may limit what one program, and all programs of seven days, take of it. Such refusals come before a charge, and
nothing is refunded. A grant on a linked table has no amount: it opens the table to analysts with a grant on its
persons, which is charged. It can be frozen, closed and expire separately; then charges of programs that opened the
table are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime, timedelta

from jostle.accounting.amounts import Amount, Cost
from jostle.accounting.definitions import Measure
from jostle.diagnostics import Refusal, refuse
from jostle.plan.digest import digest
from jostle.privacy.ledger import store
from jostle.privacy.ledger.registered import State, TableMark, Terms
from jostle.privacy.ledger.store import MINUTE, Dataset, Entry, Rows, now, plus
from jostle.records import replace

ANALYST = re.compile(r"[a-z][a-z0-9_.-]{0,39}")
"""Names of analysts. They contain no `@`, so that names of grants are unique."""
OPEN, FROZEN, CLOSED = "", "frozen", "closed"
WEEK, LONGEST = timedelta(days=7), timedelta(minutes=10)
"""`LONGEST` exceeds the time of any analyst's run: so long after its last day a grant may still be charged."""


def grant_name(dataset: str, analyst: str) -> str:
    return f"{dataset}@{analyst}"


def live(grant: Dataset) -> bool:
    """Whether a grant can still be charged, now or, if it is frozen, after it is thawed."""
    return grant.state.status != CLOSED and not is_past(grant, now(LONGEST))


def is_past(grant: Dataset, at: str) -> bool:
    """Whether a grant has expired (`until`, in UTC) at the start `at` of a run: times of charges depend on rows."""
    return bool(grant.terms.until) and at[:10] > grant.terms.until


def limits_of(measure: Measure) -> Measure:
    """The measure by which the grants of a budget add up."""
    return Measure("basic", measure.limit) if measure.kind == "approximate" else measure


def granted_total(rows: Iterable[Dataset], dataset: Dataset) -> Cost | None:
    """For an (ε, δ) budget that is counted in zCDP: the total of grants that are open or were charged (an expired one
    is live again if a clock is set back), with the plain sums of the dataset's own charges. None without grants."""
    if dataset.terms.measure.kind != "approximate" or dataset.terms.within:
        return None
    mine = (g for g in rows if g.terms.within == dataset.terms.name)
    grants = [g for g in mine if g.state.status != CLOSED or any(g.state.spent)]
    own = dataset.state.spent
    for grant in grants:
        own = tuple(a - b for a, b in zip(own, grant.state.spent, strict=True))
    limits = [(g.terms.measure.limit.value, g.terms.measure.limit.delta) for g in grants]
    return (own[2] + sum(e for e, _ in limits), own[3] + sum(d for _, d in limits)) if grants else None


def reserve(rows: Rows, dataset: Dataset) -> Cost:
    """The rest of a dataset's grants, place by place."""
    return _sum(dataset.terms.measure, (g for g in rows.all() if g.terms.within == dataset.terms.name and live(g)))


def _sum(measure: Measure, grants: Iterable[Dataset]) -> Cost:
    total = (0,) * measure.width
    for grant in grants:
        limit, spent = _places(grant.terms.measure), grant.state.spent
        total = plus(total, tuple(max(0, a - b) for a, b in zip(limit, spent, strict=True)))
    return total


def _places(measure: Measure) -> Cost:
    return (measure.limit.value, measure.limit.delta)[: measure.width]


def add_grant(
    rows: Rows, dataset: Dataset, analyst: str, amount: Amount | None, until: str, per_program: Amount | None = None,
    per_week: Amount | None = None,
) -> Dataset:  # fmt: skip
    """Writes a new grant; that of a linked table has no `amount`. `DataError` if there is one already, the name is
    invalid, or its persons are not granted; `BadAmount` if it exceeds what is neither spent nor reserved."""
    terms = dataset.terms
    if not ANALYST.fullmatch(analyst):
        raise refuse("DataError", f"`{analyst}` is no name of an analyst", help="letters from a to z, digits, `._-`")
    why = _no_part(terms)
    if why:
        help = "data with a budget for all time are granted; a grant says how much it takes in seven days at most"
        raise refuse("DataError", f"`{terms.name}` {why}", help=help)
    need_open(dataset, now())
    name, others = grant_name(terms.name, analyst), [other.terms.name for other in rows.all()]
    if name in others:
        help = "one that has ended stays so: make another account"
        raise refuse("DataError", f"`{analyst}` has a grant on `{terms.name}` already", help=help)
    if terms.persons and grant_name(terms.persons, analyst) not in others:
        help = f"grant `{terms.persons}` first: its budget pays"
        raise refuse("DataError", f"`{analyst}` has no grant on `{terms.persons}`, whose persons these are", help=help)
    if terms.persons and (amount or per_program or per_week):
        help = f"leave the amounts out; those of the grant on `{terms.persons}` count"
        raise refuse("BadAmount", f"`{terms.name}` has the budget of `{terms.persons}`", help=help)
    if amount is None:
        if not terms.persons:
            raise refuse("BadAmount", f"a grant on `{terms.name}` has an amount", help=f"`{terms.measure.unit} 0.5`")
        amount = Amount(terms.measure.unit, 0)
    else:
        _need_room(rows, dataset, amount)
    if until:
        _need_date(until)
    limits = []
    for one in (per_program, per_week):
        if one is not None and (one.unit != amount.unit or one.delta or one.value > amount.value):
            raise refuse("BadAmount", f"{one} is no part of {amount}", help=f"such as `{amount.unit} 0.1`")
        limits.append(0 if one is None else one.value)
    measure = Measure(terms.measure.kind, amount)
    own = Terms(
        name, terms.kind, "", (), terms.unit, measure, within=terms.name, until=until, per_program=limits[0],
        per_week=limits[1],
    )  # fmt: skip
    content = {"did": "granted", "time": now(), "terms": digest(own.as_json())}
    entry = Entry.after(1, store.FIRST, content)
    state = State(TableMark(frozenset(), frozenset()), 1, "", (0,) * measure.width, 1, entry.hash)
    return rows.add(own, state, store.new_key(), entry)


def _need_room(rows: Rows, dataset: Dataset, amount: Amount) -> None:
    """Refuses an amount that exceeds what is neither spent nor reserved."""
    terms = dataset.terms
    if amount.unit != terms.measure.unit or (amount.delta and terms.measure.width == 1):
        raise refuse("BadAmount", f"`{terms.name}` is counted in {terms.measure.unit}, and {amount} was given")
    if terms.measure.kind == "approximate":
        if not amount.delta:
            help = f"{amount}, delta 1e-7"
            raise refuse("BadAmount", f"`{terms.name}` has a delta, and {amount} has none", help=help)
        total = granted_total(rows.all(), dataset) or dataset.state.spent[2:]
    else:
        total = plus(dataset.state.spent, reserve(rows, dataset))
    if not limits_of(terms.measure).admits(plus(total, (amount.value, amount.delta)[: len(total)])):
        left = Amount(amount.unit, max(0, terms.measure.limit.value - total[0]))
        help = f"{left} is neither spent nor granted; close a grant to have more"
        raise refuse("BadAmount", f"{amount} does not fit into what is left of {terms.measure.limit}", help=help)


def _no_part(terms: Terms) -> str:
    """The reason why a dataset's budget cannot be granted; empty if it can."""
    if terms.within:
        return "is a grant"
    if terms.each:
        return f"has its budget each {terms.each}"
    return ""


def set_status(rows: Rows, dataset: Dataset, status: str, who: str) -> None:
    """Freezes or thaws a dataset or a grant, or closes a grant for good, as an entry of its history. Frozen grants stay
    reserved."""
    if dataset.state.status == CLOSED or (status == CLOSED and not dataset.terms.within):
        help = "a grant that has ended stays so"
        raise refuse("DataError", f"`{dataset.terms.name}` cannot be {status or 'opened'}", help=help)
    content = {"did": status or "opened", "time": now(), "by": who}
    rows.move(replace(dataset, state=replace(dataset.state, status=status)), content)


def need_open(dataset: Dataset, at: str) -> None:
    """Refuses a dataset or grant that is frozen, closed or, for a run that began `at`, expired."""
    if why := "expired" if is_past(dataset, at) else dataset.state.status:
        name = f"your grant on `{dataset.terms.within}`" if dataset.terms.within else f"`{dataset.terms.name}`"
        raise refuse("LedgerError", f"{name} is {why}", help="its owner knows why; nothing was charged")


def within_limits(rows: Rows, grant: Dataset, growth: Cost, so_far: int, at: str) -> None:
    """Refuses a charge beyond the limit of one program, which has taken `so_far`, or beyond the limit of the seven days
    before its run began."""
    terms, place = grant.terms, asked_place(grant.terms.measure)
    if terms.per_program and so_far + growth[place] > terms.per_program:
        raise _beyond(terms, terms.per_program, "one program")
    if terms.per_week:
        since = (datetime.strptime(at, MINUTE) - WEEK).strftime("%Y-%m-%dT%H:%M")
        lately = (
            one.growth[place] for one in rows.entries(terms.name) if one.growth and str(one.content["time"]) > since
        )
        if sum(lately) + growth[place] > terms.per_week:
            raise _beyond(terms, terms.per_week, "seven days")


def asked_place(measure: Measure) -> int:
    """The index of the requested amounts in a total."""
    return 2 if measure.kind == "approximate" else 0


def _beyond(terms: Terms, most: int, what: str) -> Refusal:
    limit = Amount(terms.measure.unit, most)
    message = f"your grant on `{terms.within}` gives at most {limit} in {what}, and this would be more"
    return refuse("BudgetExceeded", message, help="ask for less, or later; what was answered before is free")


def with_grant(dataset: Dataset, grant: Dataset) -> Dataset:
    """A dataset for an analyst's session: its data and version, with the limit and total of the grant."""
    terms = replace(dataset.terms, name=grant.terms.name, measure=grant.terms.measure, within=dataset.terms.name)
    state = replace(dataset.state, spent=grant.state.spent, entries=grant.state.entries, head=grant.state.head)
    return Dataset(terms, state, grant.key)


def no_grant(name: str) -> Refusal:
    """The refusal without a grant, the same if there is no such dataset or if the grant is newer than the run."""
    return refuse("LedgerError", f"you have no grant on `{name}`", help="ask the owner of the data for one")


def beside_grants(rows: Rows, dataset: Dataset, growth: Cost) -> None:
    """Refuses a charge on a dataset itself that exceeds what is not reserved."""
    if granted_total(rows.all(), dataset) is not None:
        help = "give yourself a grant too: of (epsilon, delta) in zCDP only grants are charged, once there is one"
        raise refuse("BudgetExceeded", f"the budget of `{dataset.terms.name}` is granted", help=help)
    if dataset.terms.measure.kind == "approximate":
        return
    rest = reserve(rows, dataset)
    if any(rest) and not dataset.terms.measure.admits(plus(plus(dataset.state.spent, growth), rest)):
        help = "ask for less, or close a grant; nothing of this was spent"
        raise refuse("BudgetExceeded", f"the rest of the budget of `{dataset.terms.name}` is granted", help=help)


def _need_date(text: str) -> None:
    try:
        good = date.fromisoformat(text).isoformat() == text
    except ValueError:
        good = False
    if not good:
        raise refuse("DataError", f"`{text}` is no date", help="year, month and day: 2027-01-31")
