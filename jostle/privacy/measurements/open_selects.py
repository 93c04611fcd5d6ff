"""Selects by open keys, whose values are private and measured first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jostle.accounting.amounts import ANY_ROWS, BOUNDS, Amount
from jostle.diagnostics import refuse
from jostle.lazy import Floats, np
from jostle.plan.kinds import check_depth, is_integral
from jostle.plan.plan import Apply, Column, Constant, Key
from jostle.plan.schemas import check_steps, floors, open_keys
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.measurement import Measured, Measurement, Release, stability_of
from jostle.privacy.measurements import selects
from jostle.privacy.measurements.aggregates.aggregate import rows_in_one
from jostle.privacy.measurements.aggregates.sums import Count
from jostle.privacy.mechanisms.additive import Additive, sum_prices
from jostle.privacy.mechanisms.noise import Noise, needed_noise
from jostle.privacy.mechanisms.stability import (
    BUCKETS,
    MOST_LARGEST,
    KeyLook,
    KeyRound,
    LargestKeys,
    key_mechanism,
    key_rounds,
    largest_keys,
    select_keys,
    threshold,
)
from jostle.privacy.reading.vault import Reader
from jostle.privacy.transformations.persons import (
    BUCKET,
    GROUPS,
    bucket_of,
    groups_of_person,
    of_persons,
    persons_by_buckets,
    persons_by_groups,
)
from jostle.privacy.transformations.transform import PLACE, with_place
from jostle.records import replace

ROOM = 8
"""Plan steps and row operations that are reserved for the statements after the charge."""


def rows_by_key(table: Table) -> tuple[int, int]:
    """The bounds on a protected unit's rows, and on its rows in one group of the select."""
    stability = stability_of(table)
    return stability, rows_in_one(table, stability)


class Largest(selects.Request, frozen=True):
    """A request for the `most` groups with the most rows."""

    most: int

    @classmethod
    def of(cls, request: selects.Request, most: int) -> Largest:
        r = request
        return cls(r.table, r.keys, r.open_keys, r.group_keys, r.aggregates, most=most)


@dataclass(frozen=True, eq=False)
class OpenSelect(Measurement["tuple[Any, Any]", "selects.Answer | selects.Numbers"]):
    """A select by open keys: first the keys (`mechanisms.stability`), then the aggregates of their groups.

    With several keys, their combinations are selected: a person with k rows has at most k of them, which is all that
    the argument needs. One price covers both steps. Without further aggregates, the noisy counts of the keys are the
    answer. If counts are not requested and rows belong to persons, keys are searched in rounds (`KeyRounds`). If only
    the keys with the most rows are requested, they may be selected one by one (`LargestKeys`).
    """

    request: selects.Request
    purchases: selects.Purchases | None
    key_mechanism: Additive | LargestKeys

    @classmethod
    def of(cls, request: selects.Request, amount: Amount, via: str | None) -> OpenSelect | KeyRounds:
        if not amount.delta:
            raise open_keys(request.group_keys[0].name)
        check_steps(request.table.plan, room=ROOM)
        for key in request.open_keys:
            check_depth(key, ROOM)
        if isinstance(request, Largest) and (largest := cls._largest(request, amount, via)) is not None:
            return largest
        table, part, purchases = request.table, amount, None
        counted = request.aggregates == (Count(),) and not table.weighted
        if request.aggregates and not counted:
            part = Amount(amount.unit, amount.value // 2, amount.delta)
            purchases = selects.shared_purchases(request, Amount(amount.unit, amount.value - part.value, 0), via)
        mechanisms, prices = ((), ()) if purchases is None else (purchases.mechanisms, purchases.prices)
        groups = None if counted else groups_of_person(table, request.open_keys)
        if groups is not None:
            look, rounds, cost = key_rounds(part, table.measures, groups)
            how = selects.Several.of([look.how, *mechanisms], sum_prices(amount, [cost, *prices]))
            # where a person's rows have no bound but that of groups, one in each counts
            exposures = tuple([replace(e, rows=groups) if e.rows is None else e for e in table.exposures])
            return KeyRounds(exposures, request.title, how, request, purchases, look, rounds, subject=request)
        whole = of_persons(table)
        if whole is not None and whole.rows is None and whole.each is not None:
            message, help = ANY_ROWS.format(f"of `{whole.source.name}`"), "or ask for the largest groups alone"
            raise refuse("UnboundedSum", message, help=f"{BOUNDS}; {help}: `order by n desc limit 10`")
        # keys are counted by rows, of which a person has k; where rows have weights, their count is another number
        of_keys, cost = key_mechanism(part, table.measures, *rows_by_key(table))
        how = selects.Several.of([of_keys, *mechanisms], sum_prices(amount, [cost, *prices]))
        return cls(table.exposures, request.title, how, request, purchases, of_keys, subject=request)

    @classmethod
    def _largest(cls, request: Largest, amount: Amount, via: str | None) -> OpenSelect | None:
        """The selection of the keys with the most rows, with half of the amount. None if rows do not belong to persons,
        or if a person has so few rows (a public bound) that counts of all keys are as good."""
        table, most, exposure = request.table, request.most, of_persons(request.table)
        each = None if exposure is None else exposure.each or exposure.rows
        if exposure is None or each is None or not 1 <= most <= MOST_LARGEST:
            return None
        how, rest = largest_keys(amount, table.measures, most, each)
        rows = exposure.rows
        if rows is not None:
            of_all, _ = key_mechanism(amount, table.measures, rows, each)
            if rows < 2 * most * each or threshold(of_all, rows, each) < how.threshold:
                return None
        rows = most * each if rows is None else min(rows, most * each)
        chosen = replace(request, table=replace(table, exposures=(replace(exposure, rows=rows, each=each),)))
        purchases = selects.shared_purchases(chosen, rest, via)
        price = replace(sum_prices(amount, [how.price, *purchases.prices]), delta0=amount.delta)
        mechanisms = selects.Several.of([how, *purchases.mechanisms], price)
        return cls(chosen.table.exposures, request.title, mechanisms, chosen, purchases, how, subject=request)

    def read(self, reader: Reader) -> tuple[Any, Any]:
        plan, keys = self.request.table.plan, self.request.open_keys
        return reader.answers.tally(plan, keys[0]) if len(keys) == 1 else reader.answers.tuples(plan, keys)

    def release(self, exact: tuple[Any, Any], noise: Noise | None) -> Release[selects.Answer | selects.Numbers]:
        stability, each = rows_by_key(self.request.table)
        if isinstance(self.key_mechanism, LargestKeys):
            keys = sorted(self.key_mechanism.select(exact, needed_noise(noise)))
            amount, whole = self.how.price.amount, self.key_mechanism.amount
            half = Amount(amount.unit, amount.value // 2, amount.delta)
            event = Measured("keys", self.key_mechanism.law, replace(self.key_mechanism, amount=half), 1, each)
            release = _aggregates_of(self, self._tuples(keys), (event,))
            s: Any = release.rest
            facts = () if s is None else (s.exposures, s.title, s.how, s.request, s.purchases, s.keys, (whole, half))
            return replace(release, rest=HalfSelect(*facts)) if facts else release
        keys, counts, law = select_keys(exact, self.key_mechanism, needed_noise(noise), stability, each)
        counted = self.purchases is None and bool(self.request.aggregates)
        events = (Measured("keys", law, self.key_mechanism, 1, stability, direct=counted),)
        if counted and keys:
            columns = [list(column) for column in zip(*self._tuples(keys), strict=True)]
            return Release(selects.Answer(columns, [counts], law), events)
        return _aggregates_of(self, self._tuples(keys), events)

    def _tuples(self, keys: list[Any]) -> list[tuple[Any, ...]]:
        return [(key,) for key in keys] if len(self.request.open_keys) == 1 else keys


@dataclass(frozen=True, eq=False)
class HalfSelect(selects.Select):
    """The select of the largest keys' groups. Trace events show its shares of `shares[0]` as those of `shares[1]`."""

    shares: tuple[Amount, Amount]

    def release(
        self, exact: tuple[list[Any], list[Any]], noise: Noise | None
    ) -> Release[selects.Answer | selects.Numbers]:
        release, (whole, half) = super().release(exact, noise), self.shares
        ratio = half.value / whole.value

        def of_half(one: Measured) -> Measured:
            part = Amount(half.unit, min(half.value, round(one.how.amount.value * ratio)))
            uses = {name: value * ratio for name, value in one.uses.items()}
            return replace(one, how=replace(one.how, amount=part), uses=uses)

        return replace(release, measured=tuple(map(of_half, release.measured)))


@dataclass(frozen=True, eq=False)
class KeyRounds(Measurement["tuple[Any, Any]", "selects.Answer | selects.Numbers"]):
    """Searches open keys in rounds (`mechanisms.stability.KeyRound`), then measures the aggregates of their groups.

    First come noisy weights of public buckets of keys (`scores`, which are private releases). Each round reads a
    person's groups in buckets of large noisy weight again, without the keys released `earlier`, so that others take
    their place. The number of statements does not depend on the rows.
    """

    request: selects.Request
    purchases: selects.Purchases | None
    look: KeyLook
    rounds: tuple[KeyRound, ...]
    scores: Floats | None = None
    earlier: tuple[tuple[Any, ...], ...] = ()

    def read(self, reader: Reader) -> tuple[Any, Any]:
        table, keys, this = self.request.table, self.request.open_keys, self.rounds[0]
        if self.scores is None:
            return reader.answers.tuples(persons_by_buckets(table, keys, BUCKETS), (BUCKET, GROUPS))
        buckets = [-1.0, *np.flatnonzero(self.scores > this.level).tolist()]  # a list may not be empty
        likely = Apply("in", (bucket_of(keys, BUCKETS), *[Constant(float(bucket)) for bucket in buckets]))
        plan = persons_by_groups(table, keys, this.groups, self.earlier, likely)
        return reader.answers.tuples(plan, (*keys, GROUPS))

    def release(self, exact: tuple[Any, Any], noise: Noise | None) -> Release[selects.Answer | selects.Numbers]:
        if self.scores is None:
            scores = self.look.scores(exact, needed_noise(noise))
            return Release(selects.Answer([], []), (), replace(self, scores=scores))
        this, *later = self.rounds
        keys = (*self.earlier, *this.select(exact, needed_noise(noise), self.earlier))
        if later:
            return Release(selects.Answer([], []), (), replace(self, rounds=tuple(later), earlier=keys))
        return _aggregates_of(self, sorted(keys), (Measured("keys", this.linear.law, this.how, 1, 1),))


def _aggregates_of(
    of: OpenSelect | KeyRounds, keys: list[tuple[Any, ...]], events: tuple[Measured, ...]
) -> Release[selects.Answer | selects.Numbers]:
    """The release of keys, followed by the aggregates of their groups, if there are any."""
    request, exprs = of.request, of.request.open_keys
    columns: list[list[Any]] = [[key[i] for key in keys] for i in range(len(exprs))]
    if not keys or of.purchases is None:
        return Release(selects.Answer(columns, [[] for _ in request.aggregates]), events)
    place = Key(exprs[0], tuple(columns[0]))
    # the group of a released key has the rows of exactly this value: 1.5 is not in the group of 1
    if len(exprs) > 1 or (floors(place) and not is_integral(exprs[0], request.table.domains)):
        place = Key(Column(PLACE), range(len(keys)))
        names = tuple(key.name for key in request.group_keys)
        group_key = selects.GroupKey(", ".join(names), place.expr, place.values, names, tuple(keys))
        request = replace(request, table=with_place(request.table, exprs, keys), group_keys=(group_key,))
    rest = selects.Select(of.exposures, of.title, of.how, request, of.purchases, (place,))
    return Release(selects.Answer(columns, []), events, rest)
