"""Selects by keys whose values are private: the keys are measured first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jostle.accounting.amounts import Amount
from jostle.plan.plan import Column, Key
from jostle.plan.schemas import open_keys
from jostle.privacy.kernel.measurement import Measured, Measurement, Release
from jostle.privacy.measurements.aggregates.count import Count
from jostle.privacy.measurements.aggregates.terms import rows_by_key
from jostle.privacy.measurements.purchases import Purchases
from jostle.privacy.measurements.query import Answer, GroupKey, Request
from jostle.privacy.measurements.selects import Numbers, Select, Several, shared_purchases
from jostle.privacy.mechanisms.additive import Additive, sum_prices
from jostle.privacy.mechanisms.noise import Noise, needed_noise
from jostle.privacy.mechanisms.stability import key_mechanism, select_keys
from jostle.privacy.reading.vault import Reader
from jostle.privacy.transformations.transform import PLACE, with_place
from jostle.records import replace


@dataclass(frozen=True, eq=False)
class OpenSelect(Measurement["tuple[Any, Any]", "Answer | Numbers"]):
    """A select by keys whose values are private: first the keys (`mechanisms.stability`), then the aggregates of them.

    Of several keys the combinations are what is shown or not: a person with k rows has at most k of them, which is all
    that the argument needs. One price covers both steps. Without mechanisms, the noisy counts of the keys are the
    answer.
    """

    request: Request
    purchases: Purchases | None
    key_mechanism: Additive

    @classmethod
    def of(cls, request: Request, amount: Amount, via: str | None) -> OpenSelect:
        if not amount.delta:
            raise open_keys(request.group_keys[0].name)
        # keys are counted by rows, of which a person has k; where rows have weights, their count is another number
        rows, part, purchases = rows_by_key(request.table), amount, None
        if request.aggregates != (Count(),) or request.table.weighted:
            part = Amount(amount.unit, amount.value // 2, amount.delta)
            purchases = shared_purchases(request, Amount(amount.unit, amount.value - part.value, 0), via)
        of_keys, cost = key_mechanism(part, request.table.measures, *rows)
        mechanisms, prices = ((), ()) if purchases is None else (purchases.mechanisms, purchases.prices)
        how = Several.of([of_keys, *mechanisms], sum_prices(amount, [cost, *prices]))
        return cls(request.table.exposures, request.title, how, request, purchases, of_keys, subject=request)

    def read(self, reader: Reader) -> tuple[Any, Any]:
        plan, keys = self.request.table.plan, self.request.open_keys
        return reader.answers.tally(plan, keys[0]) if len(keys) == 1 else reader.answers.tuples(plan, keys)

    def release(self, exact: tuple[Any, Any], noise: Noise | None) -> Release[Answer | Numbers]:
        stability, each = rows_by_key(self.request.table)
        keys, counts, law = select_keys(exact, self.key_mechanism, needed_noise(noise), stability, each)
        events = (Measured("keys", law, self.key_mechanism, 1, stability, direct=self.purchases is None),)
        if not keys:
            return Release(Answer([[] for _ in self.request.open_keys], [[] for _ in self.request.aggregates]), events)
        several = len(self.request.open_keys) > 1
        columns = [list(column) for column in zip(*keys, strict=True)] if several else [keys]
        if self.purchases is None:
            return Release(Answer(columns, [counts], law), events)
        return Release(Answer(columns, []), events, self._of_keys(keys, self.purchases))

    def _of_keys(self, keys: list[Any], purchases: Purchases) -> Select:
        """The aggregates of the groups of keys that are shown."""
        request, exprs = self.request, self.request.open_keys
        if len(exprs) == 1:
            return Select(self.exposures, self.title, self.how, request, purchases, (Key(exprs[0], tuple(keys)),))
        place = Key(Column(PLACE), range(len(keys)))
        names = tuple(key.name for key in request.group_keys)
        group_key = GroupKey(", ".join(names), place.expr, place.values, names, tuple(keys))
        placed = replace(request, table=with_place(request.table, exprs, keys), group_keys=(group_key,))
        return Select(self.exposures, self.title, self.how, placed, purchases, (place,))
