"""What a program can cost each of its private sources, said before anything runs.

`costs` gives for every source the least and the most that a run can spend which comes to its end; one that is cut short
spends no more. A source never loses more than its budget; where a program has no other bound, the place that causes it
is reported. A program whose least is above the budget never comes to its end: `overspent` refuses it. Amounts are exact
decimals in the unit of the source; for budgets with a delta they are plain sums of what is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence

from msgspec import Struct

from jostle.accounting.amounts import as_text
from jostle.check.costs.interpreter import Interpreter
from jostle.check.costs.ledger import DELTA, NEVER, SOURCE, Charge, Opened, Overdrawn, Step, looks_text
from jostle.check.costs.tally import Why
from jostle.check.costs.values import TOP, Most, SourceFact
from jostle.check.costs.walk import NO_SOURCES, Identity, TooLong
from jostle.diagnostics import Diagnostic, Note
from jostle.run.scope import Scope
from jostle.source import Span
from jostle.syntax import nodes as n

__all__ = ["Charge", "Cost", "costs", "literal_identity", "overspent", "table"]


class Cost(Struct, frozen=True):
    """What one source can lose: `bound` is infinite where there is no bound but the budget."""

    name: str
    unit: str
    limit: int | None
    least: int
    bound: Most
    delta: Most | None  # of what is asked, where the budget has a delta
    exact: bool
    why: Why | None
    plain_sum: bool
    declared: Span
    charges: tuple[Charge, ...]  # of each statement that can cost it something
    overdrawn: Overdrawn | None = None  # where no run comes to its end

    @property
    def most(self) -> Most:
        """No run spends more. Not of budgets counted by zCDP, for which only the limit is in their own words."""
        return self.bound if self.limit is None else min(self.bound, self.limit)

    @property
    def looks(self) -> tuple[int, tuple[str, ...]]:
        """What of it looks take, in quanta, and the columns that they are at."""
        columns = dict.fromkeys(column for charge in self.charges for column in charge.columns)
        return sum(charge.looked for charge in self.charges), tuple(columns)

    @property
    def fits(self) -> bool:
        return self.limit is None or self.bound <= self.limit

    def __str__(self) -> str:
        whole = f" of {as_text(self.limit)}" if self.limit is not None else ""
        if self.bound == math.inf:
            bound = f"its budget of {as_text(self.limit)} is the only bound" if self.limit is not None else "no bound"
            return f"{bound}: {self.why.reason} ({self.why.span})" if self.why is not None else bound
        much = near_text(int(self.bound))
        amount = f"{self.unit} {much}" if self.unit else f"{much}, in the unit that its owner gave"
        if self.bound == 0:
            line = f"nothing{whole}"
        elif self.exact and self.fits:
            line = f"exactly {amount}{whole}"
        elif self.fits:
            line = f"at most {amount}{whole}"
        elif self.overdrawn is not None:
            much = "more than it allots" if self.overdrawn.least >= NEVER else as_text(self.overdrawn.least)
            line = f"refused before its end: it asks for {self.unit} {much}{whole}"
        else:
            line = f"may be refused: it asks for up to {amount}{whole}"
        line += looks_text(*self.looks)
        if self.plain_sum and self.bound:
            tail = f" and delta {as_text(int(self.delta))}" if self.delta and self.delta < math.inf else ""
            line += f"{tail}, as a plain sum; zCDP may say less"
        return line

    def as_json(self) -> dict[str, object]:
        """Amounts as exact decimals, null where there is no bound."""
        place, (looked, columns) = self.why.span if self.why is not None else None, self.looks
        return {
            "source": self.name, "unit": self.unit, "budget": None if self.limit is None else as_text(self.limit),
            "asks": None if self.bound == math.inf else as_text(int(self.bound)),
            "exact": self.exact and self.fits, "fits": self.fits, "plain_sum": self.plain_sum,
            "looks": as_text(looked), "looks_at": list(columns),
            "why": self.why.reason if self.why is not None else "", "at": str(place) if place is not None else "",
        }  # fmt: skip


def near_text(amount: int) -> str:
    """An amount as a person means it: shares are rounded down, so that three thirds of 5 are 4.999999999998."""
    near = as_text(round(amount, 10 - len(str(amount))))
    return near if len(near) < 9 else as_text(amount)


def literal_identity(kind: str, args: list[object]) -> Hashable:
    """The identity of a source as it is written: None where it is not known."""
    if len(args) == 1 and isinstance(args[0], str):
        return (kind, args[0])
    rows = args and isinstance(args[0], list) and not any(isinstance(item, str) for item in args[0])
    return object() if rows else None


def costs(
    program: n.Program,
    *,
    base: Scope,
    load_module: Callable[[tuple[str, ...]], n.Program | None],
    identity: Identity = literal_identity,
    settings: Mapping[str, object] | None = None,
    planned: Mapping[Span, int] | None = None,
    charges: bool = True,
) -> list[Cost]:
    """The cost of every private source of a program that has passed the check, by declared name.

    `base` has the names that every program knows. `planned` is what wanted errors take, in quanta, by their place, as
    far as it is known. `charges`: also of each statement.
    """
    walker = Interpreter(base, load_module, identity, settings or {}, planned or {})
    scope = Scope(base)
    places: dict[int, tuple[Span, tuple[Span, ...]]] = {}
    steps: list[Step] = []
    for at, statement in enumerate(program.body):
        try:
            opened = Opened(0, math.inf, 0, statement.span, NO_SOURCES, recorder=True) if charges else None
            recorder = walker.open(opened) if opened is not None else None
            goes_on = walker.statement(statement, scope)
            if recorder is not None:
                steps.append(Step(statement.span, recorder, walker.ledger.copy()))
                walker.close(recorder, ())
            for source in walker.sources:
                if source.limit is not None and walker.ledger.tally(SOURCE, source).total[0] > source.limit:
                    last, before = walker.places(source, statement.span)
                    last = last if last.within(statement.span) else statement.span  # not in a function that it calls
                    places.setdefault(id(source), (last, before))
            if not goes_on:
                break
        except (TooLong, RecursionError) as fault:
            why = fault.why if isinstance(fault, TooLong) else Why("it is nested too deeply to follow", statement.span)
            _give_up(walker, program.body[at:], scope, why)
            steps.append(Step(statement.span.to(program.body[-1].span)))
            break
    for _, ledger in walker.returns:
        walker.ledger = walker.ledger.join(ledger)
    return [
        _cost(walker, source, name, places.get(id(source)), steps)
        for source in walker.sources for name in source.names
    ]  # fmt: skip


def overspent(all_costs: Sequence[Cost]) -> list[Diagnostic]:
    """The refusals of a program that no run can pay for to its end, one a source."""
    diagnostics: dict[Overdrawn, Diagnostic] = {}
    for cost in all_costs:
        over = cost.overdrawn
        if over is None:
            continue
        notes = [Note(cost.declared, f"`{cost.name}` is declared here")]
        whose = f"of `{cost.name}`, whose budget is"
        help = "ask for less, or declare a larger budget; nothing was spent"
        if " with error " in over.span.text:
            help = "allow a larger error, which is in units of the answer and no share of it; nothing was spent"
        if over.allotment is not None:
            whose, help = "in an allotment of", "ask for less, or for a share of it, `with 1/4`"
            notes = [Note(over.allotment, "the allotment")]
        notes += [Note(span, "charged here") for span in over.before]
        message = f"at least {cost.unit} {as_text(over.least)} is asked {whose} {as_text(over.limit)}"
        label = f"with this, more than {as_text(over.limit)}"
        if over.least >= NEVER:
            message, label = f"nothing is left of the allotment of {cost.unit} {as_text(over.limit)}", "for this"
            help = "allot more, or give what stands before it a part: `with 1/4`"
        diagnostics.setdefault(over, Diagnostic("BudgetExceeded", message, over.span, label, help, tuple(notes)))
    return list(diagnostics.values())


def _give_up(walker: Interpreter, rest: tuple[n.Stmt, ...], scope: Scope, why: Why) -> None:
    """From here on any source may be charged anything; those still to be declared are looked at for their limits."""
    walker.stack.clear()
    for statement in rest:
        if isinstance(statement, n.Private):
            walker.fuel = 1_000
            try:
                walker.statement(statement, scope)
            except TooLong:
                walker.sources.append(SourceFact(statement, [statement.name], "epsilon", None, None, False, ""))
        elif isinstance(statement, n.Assign):
            scope.names[statement.name] = TOP
        elif isinstance(statement, n.Release):
            scope.names.setdefault(statement.name, TOP)
    walker.charge_everything(math.inf, math.inf, why)


def _cost(
    walker: Interpreter, source: SourceFact, name: str, places: tuple[Span, tuple[Span, ...]] | None,
    steps: Sequence[Step],
) -> Cost:  # fmt: skip
    tally = walker.ledger.tally(SOURCE, source)
    least, most = tally.total
    least = 0 if source.inexact else least
    delta = walker.ledger.tally(DELTA, source).total[1] if source.delta is not None else None
    why = tally.why if most == math.inf else None
    plain = source.delta is not None and source.counted_by != "basic"
    overdrawn = None
    if least >= NEVER:
        overdrawn = walker.overdrawn.get(id(source))
    elif places is not None and source.limit is not None and least > source.limit and not plain:
        overdrawn = Overdrawn(*places, least, source.limit)
    exact = least == most and not source.inexact
    span = source.declared.span
    charges = tuple(charge for step in steps if (charge := step.charge(source, name)) is not None)
    return Cost(name, source.unit, source.limit, least, most, delta, exact, why, plain, span, charges, overdrawn)


def table(all_costs: list[Cost]) -> str:
    """A line a source; of one with several names, which have one budget, the others say so."""
    width = max((len(cost.name) for cost in all_costs), default=0)
    first: dict[Span, str] = {}
    for cost in all_costs:
        first.setdefault(cost.declared, cost.name)
    same = [first[cost.declared] for cost in all_costs]
    return "\n".join(
        f"  {cost.name:<{width}}  {cost if cost.name == of else f'the same budget as {of}'}"
        for cost, of in zip(all_costs, same, strict=True)
    )
