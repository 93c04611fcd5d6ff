"""What a program has spent so far, on every source and in every allotment that is open: bounds of it.

Mirrors `privacy.kernel.kernel`: a charge goes to each open allotment and to the source, at the handle's path. When an
allotment closes, what was spent inside is no more than it held, for a run refuses what does not fit. A recorder is
opened around the body of a loop to see what one round adds, and around each statement. What that adds to a source is no
more than what was charged in it, and no more than the whole after it less the least before it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from jostle.accounting.amounts import QUANTA, Path
from jostle.check.costs import values as val
from jostle.check.costs.tally import BOUNDLESS, NOTHING, Own, Place, Tally, Tree, Why, joined_trees
from jostle.records import replace
from jostle.source import Span

SOURCE, DELTA = 0, 1  # the meters of a source itself; others are numbered from 2
MOST_PLACES = 6  # of charges, that are reported
NEVER = BOUNDLESS  # the least of a way that no run comes to the end of: above every budget
_keys = itertools.count(2)


class Opened(Struct, eq=False):
    """An open allotment of between `least` and `most`, or a recorder (no amount)."""

    least: int
    most: val.Most
    delta: val.Most
    span: Span | None
    reached: val.ReachedSources
    recorder: bool = False
    boundless: bool = False  # around calls on public data: no amount at all
    key: int = field(default_factory=lambda: next(_keys))
    before: Ledger | None = None
    agents: int = 0  # how many there were when it opened
    charges: int = 0  # and how many charges
    only: frozenset[int] = frozenset()  # of a recorder, the sources that cannot be charged more than its `most`


class Overdrawn(Struct, frozen=True):
    """Where an allotment or a budget of `limit` quanta is exceeded: `least` are asked of it, here and `before`."""

    span: Span
    before: tuple[Span, ...]
    least: int
    limit: int
    allotment: Span | None = None


Key = tuple[int, int]  # (meter, source)
Whole = tuple[int, val.Most, val.Most]  # an amount of at least, at most; its delta at most


class Ledger:
    """Tallies by meter and source; and of allotments, what shares of them are of, where one was asked for."""

    __slots__ = ("shared_out", "tallies")

    def __init__(self, tallies: dict[Key, Tally] | None = None, shared_out: dict[int, Whole] | None = None) -> None:
        self.tallies: dict[Key, Tally] = {} if tallies is None else tallies
        self.shared_out: dict[int, Whole] = {} if shared_out is None else shared_out

    def copy(self) -> Ledger:
        return Ledger(dict(self.tallies), dict(self.shared_out))

    def tally(self, meter: int, source: val.SourceFact) -> Tally:
        return self.tallies.get((meter, id(source)), EMPTY)

    def join(self, other: Ledger) -> Ledger:
        if other is self or (other.tallies == self.tallies and other.shared_out == self.shared_out):
            return self
        both = {key: whole for key, whole in self.shared_out.items() if other.shared_out.get(key) == whole}
        keys = dict.fromkeys((*self.tallies, *other.tallies))
        return Ledger({k: self.tallies.get(k, EMPTY).join(other.tallies.get(k, EMPTY)) for k in keys}, both)

    def add(self, stack: Iterable[Opened], source: val.SourceFact, place: Place, own: Own, delta: val.Most) -> None:
        for meter in (SOURCE, *(opened.key for opened in stack)):
            self.tallies[meter, id(source)] = self.tally(meter, source).plus(place, own)
        if delta:
            self.tallies[DELTA, id(source)] = self.tally(DELTA, source).plus(place, Own(0, delta, own.why))


EMPTY = Tally()


class Spending:
    """The ledger of the way that is being followed, and the allotments open on it."""

    def __init__(self, sources: list[val.SourceFact]) -> None:
        self.sources = sources
        self.ledger = Ledger()
        self.stack: list[Opened] = []
        self.active: set[val.Generic] = set()
        self.agents = 0
        self.charges = 0
        self.charged: dict[int, dict[Span, int]] = {}  # where each source was charged when, the last place last
        self.overdrawn: dict[int, Overdrawn] = {}  # the first allotment that cannot pay for what stands in it

    # Charges -------------------------------------------------------------------------------------

    def spend(
        self, reached: val.ReachedSources, least: int, most: val.Most, delta: val.Most = 0, why: Why | None = None,
        in_part: bool = False,
    ) -> None:  # fmt: skip
        """A measurement of between `least` and `most` on what is met; `in_part`: no δ of it counts for the whole."""
        whole = why if most == math.inf else None
        for exposure in reached.exposures:
            place = self._place_of(exposure)
            sure = reached.certain and all(part is not val.EACH for _, part in place.path)
            own = Own(least if sure else 0, most, whole)
            if delta and not in_part and place.path and (exposure.joined or not exposure.source.single):
                # what has a δ may count for the source as a whole (`kernel._charged_path`), and not for a part
                self.ledger.add(self.stack, exposure.source, place, Own(own.least, 0), 0)
                place, own = replace(place, path=()), Own(0, most, whole)
            self.ledger.add(self.stack, exposure.source, place, own, delta)
        if reached.open:
            self.charge_everything(most, delta, why)

    def charge_everything(self, most: val.Most, delta: val.Most = 0, why: Why | None = None) -> None:
        """At most so much on every source, where it is not known which."""
        for source in self.sources:
            self.ledger.add(self.stack, source, Place(), Own(0, most, why if most == math.inf else None), delta)

    def _place_of(self, exposure: val.Exposure) -> Place:
        path = current(exposure.path, self.active)
        exposure.source.inexact = exposure.source.inexact or any(part is val.EACH for _, part in path)
        cap = min((cap for _, cap in exposure.agents), default=math.inf)
        return Place(path, tuple(key for key, _ in exposure.agents), cap)

    def charged_at(self, exposures: Iterable[val.Exposure], span: Span) -> None:
        for exposure in exposures:
            places = self.charged.setdefault(id(exposure.source), {})
            places.pop(span, None)
            self.charges += 1
            places[span] = self.charges

    def places(self, source: val.SourceFact, whole: Span, since: int = 0) -> tuple[Span, tuple[Span, ...]]:
        """Where a source was charged last, as far as that stands in the program at hand, and where before.

        Of an allotment only what was charged `since` it opened.
        """
        charged = self.charged.get(id(source), {}).items()
        places = [span for span, at in charged if at > since and span.source is whole.source] or [whole]
        return places[-1], tuple(places[:-1][-MOST_PLACES:])

    # Allotments ----------------------------------------------------------------------------------

    @property
    def allotment(self) -> Opened | None:
        return next((opened for opened in reversed(self.stack) if not opened.recorder), None)

    def open(self, opened: Opened) -> Opened:
        opened.before, opened.agents, opened.charges = self.ledger.copy(), self.agents, self.charges
        self.stack.append(opened)
        return opened

    def close(self, opened: Opened, ledgers: Iterable[Ledger]) -> None:
        """Ends an allotment, on the way at hand and on those (`ledgers`) that ended inside it."""
        self.stack.remove(opened)
        outer = self.allotment
        if outer is not None and opened.span is not None and opened.least > outer.most:
            self.charged_at(opened.reached.exposures or [val.Exposure(s) for s in self.sources], opened.span)
        for ledger in (self.ledger, *ledgers):
            for source in self.sources:
                if (not opened.recorder and not opened.boundless) or id(source) in opened.only:
                    self._cap(opened, ledger, source)
                ledger.tallies.pop((opened.key, id(source)), None)

    def _cap(self, opened: Opened, ledger: Ledger, source: val.SourceFact) -> None:
        inside = ledger.tally(opened.key, source)
        if inside.total[1] <= opened.most:
            return
        least = inside.total[0]
        if least > opened.most and opened.span is not None:
            places = self.places(source, opened.span, opened.charges)
            self.overdrawn.setdefault(id(source), Overdrawn(*places, least, int(opened.most), opened.span))
        place, own = Place(inside.common_prefix()), Own(NEVER if least > opened.most else 0, opened.most)
        before = opened.before or Ledger()
        for meter in (SOURCE, *(o.key for o in self.stack)):
            ledger.tallies[meter, id(source)] = before.tally(meter, source).plus(place, own)
        if opened.only and source.limit is not None:  # with what was spent before, no more than the budget
            room = max(0, source.limit - before.tally(SOURCE, source).total[1])
            if room < opened.most:
                whole = before.tally(SOURCE, source).plus(Place(), Own(0, room))
                ledger.tallies[SOURCE, id(source)] = whole

    def left_of(self, opened: Opened, reached: val.ReachedSources) -> tuple[int, val.Most]:
        """Between what amounts are left in an allotment on the paths of what is met."""
        exposures = reached.exposures or opened.reached.exposures
        if not exposures:
            exposures = tuple(val.Exposure(s) for s in self.sources if (opened.key, id(s)) in self.ledger.tallies)
        low, high = opened.least, opened.most
        for exposure in exposures:
            least, most = self.ledger.tally(opened.key, exposure.source).load_at(self._place_of(exposure).path)
            low = min(low, int(max(0, opened.least - most)) if most < math.inf else 0)
            high = min(high, max(0, opened.most - (0 if exposure.source.inexact else least)))
        return (low, high) if reached.certain and opened.reached.certain else (0, opened.most)

    def left_of_budgets(self, reached: val.ReachedSources) -> val.Most:
        """The most that is left of the budgets of what is met, and of the allotment around."""
        high: val.Most = math.inf if reached.open or not reached.exposures else 0
        for exposure in reached.exposures:
            source = exposure.source
            if (
                source.limit is None
                or (source.delta is not None and source.counted_by != "basic")
                or not reached.certain
            ):
                high = math.inf
                continue
            least = self.ledger.tally(SOURCE, source).load_at(self._place_of(exposure).path)[0]
            high = max(high, max(0, source.limit - (0 if source.inexact else least)))
        opened = self.allotment
        if opened is not None and not opened.boundless:
            high = min(high, self.left_of(opened, reached)[1])
        return high

    def whole_of(self, reached: val.ReachedSources) -> Whole:
        """What a share is of: what the allotment around had at the first of them, or the budgets met outside any."""
        opened = self.allotment
        if opened is not None:
            if opened.boundless:
                return 0, math.inf, math.inf
            if opened.key not in self.ledger.shared_out:
                whole = (opened.least, opened.most, opened.delta)
                if any(meter == opened.key for meter, _ in self.ledger.tallies):  # it was spent from: now, or before
                    least, most = self.left_of(opened, reached)
                    whole = (least if most else NEVER, opened.most, opened.delta)
                self.ledger.shared_out[opened.key] = whole
            return self.ledger.shared_out[opened.key]
        limits = [e.source.limit for e in reached.exposures]
        bounds = [limit for limit in limits if limit is not None]
        if reached.open or len(bounds) < len(limits) or not limits:
            return 0, math.inf, math.inf
        certain = reached.certain and not any(e.agents for e in reached.exposures)
        deltas = [e.source.delta or 0 for e in reached.exposures]
        return min(bounds) if certain else 0, max(bounds), max(deltas)

    def bare(self, reached: val.ReachedSources, shares: int, needed: bool = True) -> tuple[int, val.Most, val.Most]:
        """What a measurement without an amount spends: an equal share of what is left.

        `NEVER` where that is nothing and an amount is `needed`: a run refuses it.
        """
        opened = self.allotment
        if opened is None or opened.boundless:
            return 0, 0, 0  # refused
        least, most = self.left_of(opened, reached)
        if reached.open:
            least, most = 0, opened.most
        if needed and most < shares <= opened.most:
            return NEVER, NEVER, opened.delta
        return least // shares, most if most == math.inf else most // shares, opened.delta

    # Loops ---------------------------------------------------------------------------------------

    def widen(self, source: val.SourceFact, path: Path = ()) -> None:
        """As if rounds before had charged any amount there: for what is left in the allotments around a loop."""
        for opened in self.stack:
            if not opened.recorder:
                tally = self.ledger.tally(opened.key, source)
                self.ledger.tallies[opened.key, id(source)] = tally.plus(Place(path), Own(0, math.inf))

    def repeat(
        self, recorder: Opened, ended: list[Ledger], once: val.Generic | None, least: int, most: int | None, why: Why
    ) -> list[Ledger]:
        """After one round, seen by `recorder`: as if there had been between `least` and `most` of them.

        What was charged in the part that the round stands for (`once`) counts once, as the largest part does. Gives
        the ledgers of the ways that `ended` in a round: that round comes after any number of the others.
        """
        before = recorder.before or Ledger()
        result = self._after(recorder, before, self.ledger, once, (least, most), why)
        self.stack.remove(recorder)
        self.ledger = result
        return [
            self._after(recorder, before, last, once, (0, 1), why).join(
                self._after(recorder, result, last, once, (0, 1), why)
            )
            for last in ended
        ]

    def _after(
        self, recorder: Opened, before: Ledger, last: Ledger, once: val.Generic | None, times: tuple[int, int | None],
        why: Why,
    ) -> Ledger:  # fmt: skip
        """`before` with the charges of a round, so many times."""
        result, start = before.copy(), recorder.before or Ledger()
        for source in self.sources:
            added = self._all_rounds(last.tally(recorder.key, source), recorder, once, *times, why)
            for meter in (SOURCE, *(o.key for o in self.stack if o is not recorder)):
                if added:
                    result.tallies[meter, id(source)] = before.tally(meter, source).plus_tree(added)
            if last.tally(DELTA, source).total[1] > start.tally(DELTA, source).total[1]:
                unknown = before.tally(DELTA, source).plus(Place(), Own(0, math.inf, why))
                result.tallies[DELTA, id(source)] = unknown
        return result

    def outside(self, recorder: Opened, once: val.Generic | None) -> list[val.SourceFact]:
        """The sources that a round charges elsewhere than in the part that it stands for."""
        return [
            source for source in self.sources
            if any(
                own.most and all(part is not once for _, part in place.path)
                for tree in self.ledger.tally(recorder.key, source).trees for place, own in tree.items()
            )
        ]  # fmt: skip

    def _all_rounds(
        self, tally: Tally, recorder: Opened, once: val.Generic | None, least: int, most: int | None, why: Why
    ) -> Tree:
        result: Tree = {}
        for place, own in joined_trees(tally.trees).items():
            path = tuple((label, val.EACH if part is once else part) for label, part in place.path)
            here = Place(path, place.agents, place.cap)
            if any(agent > recorder.agents for agent in place.agents):  # each round makes its own
                here, own = Place(path), Own(own.least, min(own.most, place.cap), own.why)
            if once is not None and any(part is once for _, part in place.path):
                grown = own if least else Own(0, own.most, own.why)
            else:
                grown = own.times(least, math.inf if most is None else most, why)
            result[here] = result.get(here, NOTHING).plus(grown)
        return result


def current(path: Path, active: set[val.Generic]) -> Path:
    """A path on which parts of loops that are over stand for any part."""
    return tuple(
        (label, val.EACH if isinstance(part, val.Generic) and part not in active else part) for label, part in path
    )


def looks_text(looked: int, columns: Sequence[str]) -> str:
    """`, 0.02 of it counts cells of x, y that do not fit`; nothing, where no charge looks."""
    return f", {looked / QUANTA:.4g} of it counts cells of {', '.join(columns)} that do not fit" if looked else ""


class Charge(Struct, frozen=True):
    """At most `most` quanta of one source's budget (infinite: no bound but the budget); `exact`: just that.

    `left` quanta at least stay of the budget after it, exactly so many where `left_exact`; None where only the owner
    of a registered dataset knows the budget. Of a budget with a delta, amounts are plain sums.
    """

    span: Span
    source: str
    unit: str
    most: val.Most
    exact: bool
    left: int | None
    left_exact: bool
    looked: int = 0
    """What of the amount counts cells of `columns` that do not fit, in quanta, as far as it is known."""
    columns: tuple[str, ...] = ()


class Step(Struct, frozen=True):
    """A statement, the recorder around it, and the ledger at its end; without them, it was not followed."""

    span: Span
    recorder: Opened | None = None
    after: Ledger | None = None

    def charge(self, source: val.SourceFact, name: str) -> Charge | None:
        """What it can cost a source; None where that is nothing."""
        if self.recorder is None or self.after is None:
            return Charge(self.span, name, source.unit, math.inf, False, None if source.limit is None else 0, False)
        inside = self.after.tally(self.recorder.key, source)
        least_inside, most = inside.total
        if not most:
            return None
        before = self.recorder.before or Ledger()
        least_before, most_before = before.tally(SOURCE, source).total
        least_after, most_after = self.after.tally(SOURCE, source).total
        least = least_after - most_before
        if not any(place.path or place.agents for tree in inside.trees for place in tree):
            least = max(least, least_inside)  # charged to the whole, it adds just that
        if not source.inexact and most_after < math.inf:
            most = min(most, max(0, most_after - least_before))
        exact, left_exact = least == most, least_after == most_after
        left = None if source.limit is None else int(max(0, source.limit - most_after))
        sure = not source.inexact
        return Charge(self.span, name, source.unit, most, sure and exact, left, sure and left_exact) if most else None
