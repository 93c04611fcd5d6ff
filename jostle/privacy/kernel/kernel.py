"""The kernel: the only place that charges budgets.

A measurement is priced from its plan alone. The price is tested against every open meter (the allotments, then the
source) and added to all of them. Only then does the mechanism read data and draw noise. Charges are never refunded.
Refusals depend only on amounts, paths and names, which are public.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from msgspec import Struct

from jostle.accounting.amounts import Amount, Cost, Path, as_text
from jostle.accounting.definitions import Charge, Price
from jostle.diagnostics import Note, Refusal, refuse
from jostle.events import Stream
from jostle.privacy.kernel.exposures import Allotment, Exposure, Exposures, Guarded, Register, Source
from jostle.privacy.kernel.measurement import Bought, Measurement, Payment, common_noise
from jostle.source import Source as Text
from jostle.source import Span

R = TypeVar("R")
Question = Measurement[Any, Any]
A_RUN = "a run of `best_run`"


class Answering(Protocol):
    """The source of exact integers, which the kernel passes to `Measurement.read`."""

    def check(self, question: object) -> None:
        """Refuses a measurement that cannot be read. The decision uses public facts only."""


class Balance(Struct):
    """The rest of a prepaid amount: `units` of its `whole`, and `room`, the δ reserved for discrete noise."""

    whole: int
    units: int
    room: float


class Kernel:
    """The spending of one session: registered sources, the stack of open allotments, and prepaid balances.

    A kernel works only in the process that created it; a forked copy cannot measure private data. The reader of private
    rows is a private attribute, and the kernel has no reference to the engine. `owes` is set by every charge.
    """

    def __init__(self, register: Register, reader: Answering, events: Stream) -> None:
        """`reading.vault` creates a register together with its reader."""
        self.register, self.events, self.owes = register, events, False
        self.need_open = register.need_open
        self._reader = reader
        self._lock = threading.RLock()
        self._balances: WeakKeyDictionary[object, Balance] = WeakKeyDictionary()
        self._stack: list[Allotment] = []
        self._program: Text | None = None
        self._paid: Bought | None = None

    # Allotments ----------------------------------------------------------------------------------

    @contextmanager
    def allot(self, amount: Amount | None, span: Span | None, opened_for: Exposures = ()) -> Iterator[Allotment]:
        """Opens an allotment. Refused if it exceeds the enclosing one or what is left on the paths of `opened_for`."""
        if amount is not None:
            self._test_opening(amount, span, opened_for)
        allotment = Allotment(amount, span, opened_for)
        self._stack.append(allotment)
        try:
            yield allotment
        finally:
            self._stack.remove(allotment)

    @property
    def allotment(self) -> Allotment | None:
        return self._stack[-1] if self._stack else None

    def amounts(self) -> list[tuple[Amount, Span | None]]:
        """The amounts of the open allotments, outermost first, with the places that opened them."""
        return [(one.amount, one.span) for one in self._stack if one.amount is not None]

    @contextmanager
    def training(self) -> Iterator[None]:
        """A context in which no private source can be charged and the enclosing allotments do not apply."""
        if self.in_a_run:
            raise refuse("TypeError", f"{A_RUN} learns no choice", help="call the choice once before")
        around, self._stack, self._paid = (self._stack, self._paid), [], None
        try:
            with self.register.training(), self.events.silent():
                yield
        finally:
            self._stack, self._paid = around

    @property
    def in_a_run(self) -> bool:
        """Whether a run of `best_run` is in progress. Such a run must leave no trace except its result."""
        return not self.register.opens

    @contextmanager
    def _inside(self, bought: Bought, opens: bool) -> Iterator[None]:
        """A context in which `bought` pays for every measurement, limited by one allotment of its amount. Earlier
        balances cannot be used inside, and balances bought inside cannot be used afterwards."""
        around = self._stack, self._balances, self._paid, self.register.opens
        self._stack, self._balances = [Allotment(bought.amount, None, bought.exposures)], WeakKeyDictionary()
        self._paid, self.register.opens = bought, opens
        try:
            yield
        finally:
            self._stack, self._balances, self._paid, self.register.opens = around

    @contextmanager
    def pay_ahead(self, purchase: Question, span: Span | None) -> Iterator[None]:
        """Charges `purchase`, which pays for the measurements inside this context and for nothing else."""
        bought: Bought = self.measure(purchase, span)
        del self._balances[bought]
        with self._inside(bought, self.register.opens):
            yield

    @contextmanager
    def _unseen(self, each: Bought) -> Iterator[None]:
        """The context of one of several runs that were paid for together and of which one is released. No events."""
        with self._lock, self.events.silent(), self._inside(each, False):  # charges of other threads wait
            yield

    def _test_opening(self, amount: Amount, span: Span | None, opened_for: Exposures) -> None:
        outer = self.allotment
        if outer is not None and outer.amount is not None:
            if outer.amount.unit != amount.unit:
                raise refuse("TypeError", f"an allotment in {amount.unit} inside one in {outer.amount.unit}", span)
            left = min([outer.amount.value, *(outer.left(e.source, e.path) for e in opened_for)])
            if amount.value > left:
                raise self._exceeded(amount, left, f"the allotment of {outer.amount} around it", span)
        for exposure in opened_for if self._paid is None else ():
            check_unit(amount, exposure.source)
            left = self.left_of(exposure)[0]
            if amount.value > left and exposure.source.measure.kind != "approximate":
                raise self._exceeded(amount, left, f"the budget of `{exposure.source.name}`", span, exposure.source)

    # The door ------------------------------------------------------------------------------------

    def measure(self, measurement: Measurement[Any, R], span: Span | None = None) -> R:
        """Prices, admits, commits, reads, releases and reports a measurement, in this order, and returns its answer.

        All refusals come before the charge and depend on public facts only. Charges are never refunded. After the
        charge no outcome may depend on a row, so an exception there closes the source (`Guarded`). Public data are
        measured exactly and cost nothing.
        """
        exposures, noise = measurement.exposures, common_noise(measurement.exposures)
        if len(exposures) > 1 and len({id(e.source) for e in exposures}) < len(exposures):
            raise refuse("TypeError", "a measurement names each of its sources once", span)
        self._reader.check(measurement)
        if exposures:
            self._pay(measurement, span)
        step: Measurement[Any, R] | None = measurement
        while step is not None:
            with Guarded(exposures, span):
                each = step.each
                exact = step.read(self._reader) if each is None else partial(self._unseen, each)
                release = step.release(exact, noise)
            whole = self._paid.amount if self._paid is not None else None
            for measured in release.measured:
                self.events.emit("measure", measured.what, span, **measured.fields(exposures, whole))
            value = step.finish(release.value)
            step = release.rest
        bought = measurement.buys()
        if bought is not None:
            self._balances[value] = Balance(bought[0], *bought)
        return value

    def _pay(self, measurement: Question, span: Span | None) -> None:
        """Charges the price, or takes it from a prepaid amount. Refusals come before anything is read."""
        payment, exposures, self.owes = measurement.paid_by(), measurement.exposures, True
        self.need_open(exposures, span)
        with self._lock:
            if payment is not None:
                self._withdraw(payment, exposures, span)
            elif self._paid is not None:
                self._paid.need_fit(measurement, span)
                self._test_allotments(exposures, measurement.price, span)
                self._charge_allotments(exposures, measurement.price)
            else:
                self._charge(measurement, span)

    # Charges -------------------------------------------------------------------------------------

    def _charge(self, measurement: Question, span: Span | None) -> None:
        """Charges every source of the measurement or none: all meters are tested before anything is added. A
        measurement that was paid for earlier is recorded, but adds nothing to the sources."""
        exposures, price, paid = measurement.exposures, measurement.price, measurement.was_paid()
        for exposure in exposures:
            check_unit(price.amount, exposure.source, span)
        self._test_allotments(exposures, price, span)
        costs = [(exposure, *_cost(exposure, price)) for exposure in exposures]
        for exposure, path, cost in costs:
            if not paid and not exposure.source.meter.admits(path, cost):
                raise self._over_budget(exposure, price, span)
        self._settle(costs, measurement, paid, span)
        self._charge_allotments(exposures, price)
        for exposure, path, cost in costs:
            if not paid:
                exposure.source.meter.add(path, cost)
            exposure.source.charges.append((measurement.title, price.amount, "", span))

    def _holders(self, exposure: Exposure) -> tuple[Allotment, ...]:
        """The open allotments, and the agents of the exposure unless the measurement is prepaid."""
        return (*reversed(self._stack), *(exposure.agents if self._paid is None else ()))

    def _test_allotments(self, exposures: Exposures, price: Price, span: Span | None) -> None:
        """Refuses a price that exceeds an open allotment or an agent."""
        plain = (price.amount.value, price.amount.delta)
        for exposure in exposures:
            for allotment in self._holders(exposure):
                source, path = exposure.source, _charged_path(exposure, price)
                if allotment.amount is not None and not allotment.meter(source).admits(path, plain):
                    left = allotment.left(source, path)
                    whose = "agent" if allotment in exposure.agents else "allotment"
                    raise self._exceeded(price.amount, left, f"the {whose} of {allotment.amount}", span, source)

    def _charge_allotments(self, exposures: Exposures, price: Price) -> None:
        for exposure in exposures:
            for allotment in self._holders(exposure):
                meter = allotment.meter(exposure.source)
                meter.add(_charged_path(exposure, price), (price.amount.value, price.amount.delta))

    # Prepaid amounts -------------------------------------------------------------------------------

    def share_left(self, entry: object) -> float:
        balance = self._balance(entry, None)
        return balance.units / balance.whole

    def _balance(self, entry: object, span: Span | None) -> Balance:
        balance = self._balances.get(entry)
        if balance is None:
            raise refuse("TypeError", f"{A_RUN} uses what it paid for itself, and nothing else does", span)
        return balance

    def _withdraw(self, payment: Payment, exposures: Exposures, span: Span | None) -> None:
        """Takes a part of a prepaid amount. Refused unless it was paid for these data or for data that contain them."""
        if not payment.prepaid.covers(exposures):
            raise refuse("TypeError", "this was paid for other data", span, help="`prepaid(rows)` of the same rows")
        balance = self._balance(payment.prepaid, span)
        if not 0 < payment.units <= balance.units:
            share, left = (f"{units / balance.whole:g}" for units in (payment.units, balance.units))
            what = f"a share of {share} was asked, and {left} is left of what was paid"
            raise refuse("BudgetExceeded", what, span, help="the shares of all measurements add up to 1")
        if not 0 <= payment.room <= balance.room:
            what = "so little noise cannot be distinguished from Gaussian noise well enough"
            raise refuse("BadAmount", what, span, help="ask less")
        balance.units -= payment.units
        balance.room -= payment.room

    def _settle(self, costs: list[tuple[Exposure, Path, Cost]], of: Question, paid: bool, span: Span | None) -> None:
        """Writes the charges of registered sources to the ledger. If that fails, nothing was charged."""
        lost = [
            Charge(account, e.source.meter, path, (0,) * len(cost) if paid else cost, str(e.source.unit))
            for e, path, cost in costs if (account := e.source.account) is not None
        ]  # fmt: skip
        full = lost[0].account.settle(lost, of.price, of.title, span, self._program, of.purpose) if lost else None
        if full is not None:
            registered = [e for e, _, _ in costs if e.source.account is not None]
            raise self._over_budget(registered[full], of.price, span)

    def charge_again(self, exposures: Exposures, price: Price, what: str, span: Span | None) -> None:
        """Charges the allotments, and not the sources, for an answer that was released earlier."""
        self.need_open(exposures, span)
        with self._lock:
            self._test_allotments(exposures, price, span)
            self._charge_allotments(exposures, price)
            for exposure in exposures:
                exposure.source.charges.append((what, price.amount, ", given before", span))

    def begin(self, program: Text) -> None:
        """Records the program to which later charges of registered sources belong."""
        self._program = program
        for account in self.register.accounts():
            account.begin()

    def left_of(self, exposure: Exposure) -> tuple[int, int]:
        """What is left for a handle, in quanta of the unit and of δ: the least of its source's path and its agents.

        The figure of the source uses the same account as `spent`, so that both add up to the budget.
        """
        source, path = exposure.source, exposure.path
        value, delta = source.measure.left_exactly(source.meter.spent, source.meter.slack(path))
        for agent in exposure.agents:
            value = min(value, max(0, agent.left(source, path)))
            if agent.amount is not None and agent.amount.delta:
                delta = min(delta, max(0, agent.left(source, path, 1)))
        return value, delta

    def _over_budget(self, exposure: Exposure, price: Price, span: Span | None) -> Refusal:
        """The refusal of a price, which names the part of the budget that it exceeds."""
        source, path, amount = exposure.source, _charged_path(exposure, price), price.amount
        whose, measure, slack = f"the budget of `{source.name}`", source.measure, source.meter.slack(path)
        value, delta = measure.left_exactly(source.meter.spent, slack)
        if amount.value > value or not measure.has_delta:
            return self._exceeded(amount, value, whose, span, source)
        if amount.delta > delta or price.delta0 > delta:
            return self._exceeded(amount, value, whose, span, source, delta)
        left = as_text(max(0, measure.rho_limit - source.meter.spent[0] + slack[0]))
        return refuse(
            "BudgetExceeded", f"{amount} was asked for what is not Gaussian noise, which costs rho "
            f"{as_text(price.rho)}, and rho {left} is left of {whose}", span,
            help=f"give it a delta, for Gaussian noise: epsilon {as_text(value)} is left of that; or ask for less; "
            "nothing of this was spent", notes=_charges_of(source),
        )  # fmt: skip

    def _exceeded(
        self, amount: Amount, left: int, whose: str, span: Span | None, source: Source | None = None,
        delta: int | None = None,
    ) -> Refusal:  # fmt: skip
        larger = "allot more" if source is None else "ask its owner" if source.account else "declare a larger budget"
        tail = "" if delta is None else f", delta {as_text(delta)}"
        return refuse(
            "BudgetExceeded", f"{amount} was asked, and {as_text(max(0, left))}{tail} is left of {whose}", span,
            help=f"ask for less, or {larger}; nothing of this was spent", notes=_charges_of(source),
        )  # fmt: skip


def _charges_of(source: Source | None) -> tuple[Note, ...]:
    """Notes with the last eight places that charged a source."""
    earlier = source.charges if source is not None else []
    times = Counter((at, f"{what}: {amount}{tail}") for what, amount, tail, at in earlier if at is not None)
    return tuple(
        Note(at, f"charged here: {what}" + (f" ×{many}" if many > 1 else ""))
        for (at, what), many in list(times.items())[-8:]
    )


def _charged_path(exposure: Exposure, price: Price) -> Path:
    """The path of a charge. With a δ₀ it is the whole source, since δ is not linear in a unit's part."""
    measure = exposure.source.measure
    if not exposure.path:
        return ()
    has_delta = measure.has_delta and measure.cost(price, True)[1] > 0
    account = exposure.source.account
    path = exposure.whole_path if has_delta and exposure.in_parts else exposure.path
    return path if account is None or not path else account.counted(path)


def _cost(exposure: Exposure, price: Price) -> tuple[Path, Cost]:
    """The path of a charge and its cost there. Gaussian noise on some of a unit's rows is not counted in plain sums."""
    path = _charged_path(exposure, price)
    return path, exposure.source.measure.cost(price, bool(path) and exposure.in_parts)


def check_unit(amount: Amount, source: Source, span: Span | None = None, of_delta: Span | None = None) -> None:
    """Refuses an amount whose unit or delta the budget of the source does not have."""
    if amount.unit != source.measure.limit.unit:
        what = f"`{source.name}` is counted in {source.measure.unit}, and {amount.unit} was given"
        raise refuse("TypeError", what, span, help=f"write `with {source.measure.unit} 0.1`", notes=source.notes)
    if amount.delta and not source.measure.has_delta:
        help = "declare `budget epsilon 1, delta 1e-6`" if amount.unit == "epsilon" else "leave the delta out"
        message = f"the budget of `{source.name}` has no delta"
        raise refuse("TypeError", message, of_delta or span, help=help, notes=source.notes)
