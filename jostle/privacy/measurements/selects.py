"""Selects on a table: noisy aggregates and selections in groups of public keys, or of keys that are measured first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostle.accounting.amounts import Amount
from jostle.accounting.definitions import ChargePurpose, Price, stability_price
from jostle.plan.keys import holds, open_keys
from jostle.plan.plan import Count, Filter, Key, RowExpr
from jostle.privacy.kernel.handles import Exposures
from jostle.privacy.kernel.measurement import Measured, Measurement, Release, needed_noise, reach_of, stability_of
from jostle.privacy.measurements.query import Answer, Request, Want, grid_of, key_columns, need_expr
from jostle.privacy.mechanisms.additive import Additive, share, sum_prices
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.mechanisms.quantile import candidates_of, choose_mode, choose_quantile
from jostle.privacy.mechanisms.released import Noised
from jostle.privacy.mechanisms.selection import Selection
from jostle.privacy.mechanisms.stability import select_keys

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.privacy.kernel.reader import Reader


def select(request: Request, amount: Amount, via: str | None) -> Select | OpenSelect:
    """A prepared select at an amount, of which each aggregate has an equal share."""
    if request.open_key is not None:
        return OpenSelect.of(request, amount, via)
    hows = tuple(request.how_for(want, share(amount, len(request.wants)), via) for want in request.wants)
    prices = [request.price_of(how, want) for how, want in zip(hows, request.wants, strict=True)]
    return Select(request, request.keys, hows, sum_prices(amount, prices))


@dataclass(frozen=True, eq=False)
class Select(Measurement["list[Any]", Answer]):
    """A select with public keys: for each aggregate its exact terms over the groups, or what it selects from."""

    request: Request
    keys: tuple[Key, ...]
    hows: tuple[Additive | Selection, ...]
    total: Price

    @property
    def title(self) -> str:  # type: ignore[override]
        return self.request.title

    @property
    def price(self) -> Price:
        return self.total

    @property
    def exposures(self) -> Exposures:
        return self.request.table.exposures

    @property
    def purpose(self) -> ChargePurpose:
        return self.request.asked(self.hows)

    @property
    def groups(self) -> list[tuple[Any, ...]]:
        """The keys of every group, in order; one group without keys."""
        return list(zip(*key_columns([list(k.values) for k in self.keys]), strict=True)) if self.keys else [()]

    def read(self, reader: Reader) -> list[Any]:
        plan, wants = self.request.table.plan, self.request.wants
        terms = [self.request.terms(want) for want in wants]
        exact = reader.group(plan, self.keys, tuple(term for some in terms for term in some))
        numbers: list[Any] = []
        for want, some in zip(wants, terms, strict=True):
            numbers.append(exact[: len(some)] if some else [self._candidates(reader, want, g) for g in self.groups])
            exact = exact[len(some) :]
        return numbers

    def _candidates(self, reader: Reader, want: Want, group: tuple[Any, ...]) -> Any:
        table, plan = self.request.table, self.request.table.plan
        for key, value in zip(self.keys, group, strict=True):
            plan = Filter(plan, holds(key, value))
        expr = need_expr(want.expr)
        if want.function == "mode":
            key = Key(expr, candidates_of(table, expr, "mode"))
            return reader.group(plan, (key,), (Count(weighted=table.weighted),))[0]
        return reader.tally(plan, expr, weighted=table.weighted)

    def empty(self) -> list[Any]:
        import numpy as np

        none = np.zeros(len(self.groups), dtype=np.int64)
        numbers: list[Any] = []
        for want in self.request.wants:
            if want.function == "mode":
                listed = candidates_of(self.request.table, need_expr(want.expr), "mode")
                numbers.append([np.zeros(len(listed), dtype=np.int64)] * len(none))
            else:
                terms = self.request.terms(want)
                numbers.append([none] * len(terms) if terms else [([], [])] * len(none))
        return numbers

    def release(self, exact: list[Any], noise: Noise | None) -> Release[Answer]:
        columns, events = [], []
        for want, how, numbers in zip(self.request.wants, self.hows, exact, strict=True):
            if isinstance(how, Additive):
                column, measured = self._additive(want, how, numbers, needed_noise(noise))
            else:
                column, measured = self._selected(want, how, numbers, needed_noise(noise))
            columns.append(column)
            events += measured
        return Release(Answer(key_columns([list(k.values) for k in self.keys]), columns), tuple(events))

    def _additive(
        self, want: Want, how: Additive, exact: Sequence[NDArray[np.int64]], noise: Noise
    ) -> tuple[list[Any], list[Measured]]:
        import numpy as np

        noisy, scales, events = [], [], []
        for term, numbers in zip(self.request.terms(want), exact, strict=True):
            sensitivity, stability = self.request.sensitivity(term), self.request.stability(term)
            bits, reach = grid_of(term), sensitivity * stability
            drawn = how.draw(noise, np.asarray(numbers), reach, reach) if sensitivity else np.asarray(numbers)
            noisy.append(np.ldexp(drawn.astype(float).ravel(), -bits))
            scales.append(math.ldexp(how.scale(reach, reach), -bits))
            events.append(Measured(want.function, how, sensitivity / 2.0**bits, scales[-1], stability))
        if want.function in ("count", "count_distinct", "sum"):
            return [Noised(v, how.mechanism, scales[0]) for v in noisy[0]], events
        return self.request.moments(want, noisy), events

    def _selected(
        self, want: Want, how: Selection, exact: Sequence[Any], noise: Noise
    ) -> tuple[list[Any], list[Measured]]:
        table, answers, scale = self.request.table, [], 0.0
        reach = reach_of(table)
        for numbers in exact:
            if want.function == "mode":
                chosen, scale = choose_mode(table, need_expr(want.expr), how, noise, reach, numbers)
            else:
                q = {"median": 0.5, "min": 0.0, "max": 1.0}.get(want.function, want.argument)
                expr, rank = need_expr(want.expr), float(q or 0.0)
                chosen, scale = choose_quantile(table, expr, rank, how, noise, reach, numbers)
            answers.append(chosen)
        return answers, [Measured(want.function, how, 1, scale, reach)]


@dataclass(frozen=True, eq=False)
class OpenSelect(Measurement["tuple[Any, Any]", Answer]):
    """A select by a key whose values are private: first the keys (`mechanisms.stability`), then the aggregates of them.

    One price covers both.
    """

    request: Request
    key: RowExpr
    finding: Additive
    hows: tuple[Additive | Selection, ...]
    total: Price

    @classmethod
    def of(cls, request: Request, amount: Amount, via: str | None) -> OpenSelect:
        if not amount.delta:
            raise open_keys(request.wishes[0].name)
        # keys are found by rows, of which a person has k; where rows have weights, their count is another number
        alone = len(request.wants) == 1 and request.wants[0] == Want("count") and not request.table.weighted
        mine = amount if alone else Amount(amount.unit, amount.value // 2, amount.delta // 2)
        rest = share(Amount(amount.unit, amount.value - mine.value, 0), max(1, len(request.wants)))
        hows = () if alone else tuple(request.how_for(want, rest, via) for want in request.wants)
        prices = [request.price_of(h, w) for h, w in zip(hows, request.wants, strict=False)]
        price = sum_prices(amount, [stability_price(mine), *prices])
        return cls(request, need_expr(request.open_key), Additive(mine, "laplace"), hows, price)

    @property
    def title(self) -> str:  # type: ignore[override]
        return self.request.title

    @property
    def price(self) -> Price:
        return self.total

    @property
    def exposures(self) -> Exposures:
        return self.request.table.exposures

    @property
    def purpose(self) -> ChargePurpose:
        return self.request.asked([self.finding, *self.hows])

    def read(self, reader: Reader) -> tuple[Any, Any]:
        return reader.tally(self.request.table.plan, self.key)

    def empty(self) -> tuple[Any, Any]:
        return [], []

    def release(self, exact: tuple[Any, Any], noise: Noise | None) -> Release[Answer]:
        stability = stability_of(self.request.table)
        keys, counts, scale = select_keys(exact, self.finding.amount, needed_noise(noise), stability)
        events = (Measured("keys", self.finding, 1, scale, stability),)
        if not self.hows:
            return Release(Answer([keys], [counts]), events)
        if not keys:
            return Release(Answer([[]], [[] for _ in self.hows]), events)
        rest = Select(self.request, (Key(self.key, tuple(keys)),), self.hows, self.total)
        return Release(Answer([keys], []), events, rest)
