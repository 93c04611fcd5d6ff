"""Measurements of scores: a noisy score, the index of the largest of several, and the largest several.

To select k scores with exponential noise, noise is added to all scores once, at k times the scale of a single
selection, and the leads are free. If sources are counted in zCDP and no leads are requested, Gumbel noise costs less.
Then scores are selected one after the other by the exponential mechanism, which has the same law as one draw of Gumbel
noise for all (Durfee & Rogers 2019). A selection by margin is among the fewest scores that clearly exceed the others.
The arguments are in docs/privacy/selection.md.

`sum_of`, the sum of an expression as a score, has the sensitivity of the aggregate `sum`. If all terms have the same
sign it is monotone. Its grid has 2^20 steps within the bounds, since scores are first measured with wide noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct

from jostle.accounting.amounts import Amount
from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.lazy import Floats, Ints, np
from jostle.noise_laws import DrawnLaw, Selected
from jostle.plan.kinds import grid_bits, is_integral
from jostle.plan.plan import Derive, Filter, FixedSum, GroupRows, Join, Plan, RowExpr, inputs
from jostle.privacy.kernel.exposures import Exposures, Handle
from jostle.privacy.kernel.handles import Cube, Restricted, Table, Tallied
from jostle.privacy.kernel.measurement import LinearMeasurement, Measured, Measurement, Release, common_noise, needed
from jostle.privacy.measurements.aggregates.aggregate import grid_of, public_bounds, sensitivity_of
from jostle.privacy.mechanisms.additive import Additive, Linear
from jostle.privacy.mechanisms.margin import CLAMP, LargeMargin, check_scale, clear, geometric, ranked
from jostle.privacy.mechanisms.noise import Noise, SecureNoise
from jostle.privacy.mechanisms.selection import Selection
from jostle.privacy.reading.vault import Reader
from jostle.privacy.scores import Rule, Score, Scores, check_weights, stability_of_score, values_of
from jostle.privacy.scores.cells import table_of
from jostle.privacy.scores.splits import LARGEST, SUBTREES, TreeCounts, drawn_tree, trees_at_most
from jostle.privacy.transformations.joins import join_exposures

R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class OfScores(Measurement["Ints", R]):
    """The base of all selections among scores, also of several handles."""

    scores: tuple[Score, ...]
    called = "noisy max"

    def read(self, reader: Reader) -> Ints:
        return values_of(reader, self.scores)


@dataclass(frozen=True, eq=False)
class NoisyScore(LinearMeasurement["float | list[float]"]):
    """A score with additive noise, or a vector of scores of which a row changes only one."""

    score: Score

    @classmethod
    def of(cls, score: Score, amount: Amount | None, via: str | None) -> NoisyScore:
        if isinstance(score, Scores) and score.groups != (1,) * score.length:
            raise refuse("TypeError", "a vector of scores can only be selected from", help="use `noisy_max`")
        how = Additive.fitted(needed(amount), via, score.measures) if score.private else None
        if how is not None:
            check_weights([score])
        reach = score.sensitivity * (stability_of_score(score) if how is not None else 0)
        linear = (Linear.of(how, reach, reach, score.bits),)
        return cls(score.exposures, score.rule.name, how, linear, score, subject=score)

    def read(self, reader: Reader) -> list[Ints]:
        return [values_of(reader, [self.score])]

    def measured(self) -> tuple[Measured, ...]:
        score, law, sensitivity = self.score, self.linear[0].law, self.score.sensitivity / 2.0**self.score.bits
        return (Measured(self.title, law, self.how, sensitivity, stability_of_score(score), direct=True),)

    def finish(self, released: list[Floats]) -> float | list[float]:
        values: list[float] = released[0].tolist()
        return values if isinstance(self.score, Scores) else values[0]


def joined(scores: Sequence[Score], grouped: bool = True) -> Exposures:
    """The exposures of a selection among scores, empty if all are public. Refuses scores that cannot be compared."""
    if not scores:
        raise refuse("ValueError", "there is nothing to choose from")
    if not grouped and any(isinstance(s, Scores) and s.groups for s in scores):
        raise refuse("TypeError", "scores in groups have a largest each", help="use `noisy_max`")
    exposures = join_exposures([s.exposures for s in scores], [1] * len(scores))
    if exposures:
        check_weights(scores)
        common_noise(exposures)
    return exposures


@dataclass(frozen=True, eq=False)
class NoisyArgmax(OfScores["list[int]"]):
    """The index of the largest score (`mechanisms.selection`), or of the largest in every group of `Scores`.

    Monotone scores need half the noise if neighbours only add or only remove rows (`_range`). A row changes the scores
    of one group only. So the cost of k rows is divided among the groups that they are in, and the total is at most that
    of one group that contains all of them.
    """

    @classmethod
    def of(cls, scores: Sequence[Score], amount: Amount | None) -> NoisyArgmax:
        exposures = joined(scores)
        how = Selection.of(needed(amount), [e.source.measure for e in exposures]) if exposures else None
        return cls(exposures, "selection", how, tuple(scores), subject=tuple(scores))

    def release(self, exact: Ints, noise: Noise | None) -> Release[list[int]]:
        groups = _groups(self.scores, exact)
        if noise is None or self.how is None:
            return Release([int(group.argmax()) for group in groups])
        bits = max(s.bits for s in self.scores)
        scale = self.how.scale(separation(self.scores, self.exposures), True)
        places = [self.how.choose(noise, group, scale) if group.size > 1 else 0 for group in groups]
        law = Selected(scale / 2.0**bits, max(group.size for group in groups), "score")
        return Release(places, (measured_by(self.scores, law.name, law, self.how),))


@dataclass(frozen=True, eq=False)
class DrawnTree(OfScores["list[int]"]):
    """A tree of at most two tests, in one selection (`scores.splits.drawn_tree`)."""

    @classmethod
    def of(cls, score: Scores, amount: Amount | None) -> DrawnTree:
        exposures = joined([score])
        how = Selection.of(needed(amount), [e.source.measure for e in exposures]) if exposures else None
        if how is not None and how.scale(separation([score], exposures), True) > LARGEST:
            raise refuse("BadAmount", "too little to draw a tree by")
        return cls(exposures, "selection", how, (score,), subject=(score,))

    def read(self, reader: Reader) -> TreeCounts:  # type: ignore[override]
        return SUBTREES.counted(reader, self.scores[0])

    def release(self, exact: TreeCounts, noise: Noise | None) -> Release[list[int]]:  # type: ignore[override]
        if noise is None or self.how is None:
            return Release(drawn_tree(exact, 0, lambda scores: int(scores.argmax())))
        scale = self.how.scale(separation(self.scores, self.exposures), True)
        first = partial(self.how.choose, noise, scale=scale)
        tree = drawn_tree(exact, scale, first, lambda some: noise.gumbel_max(some, scale) if some.size > 1 else 0)
        many = trees_at_most([len(one) for one in exact.ones], len(exact.whole))
        law = Selected(scale / 2.0 ** self.scores[0].bits, many, "score")
        return Release(tree, (measured_by(self.scores, law.name, law, self.how),))


def measured_by(
    scores: Sequence[Score], what: str, law: DrawnLaw, how: Selection, part: float | None = None
) -> Measured:
    """The trace record of a measurement of scores: the largest sensitivity, and the stability."""
    stability = max(map(stability_of_score, scores))
    shift = max(s.sensitivity / 2.0**s.bits * stability_of_score(s) for s in scores)
    return Measured(what, law, how, shift / stability, stability, part)


def separation(scores: Sequence[Score], exposures: Exposures) -> int:
    """R of the arguments: the largest change of the difference of two scores by one unit, in steps of the finest grid.

    With public size the larger bound, for scores that are not monotone, is used.
    """
    bits = max(s.bits for s in scores)
    shifts = [(s.sensitivity << (bits - s.bits)) * stability_of_score(s) for s in scores]
    one_way = all(s.monotone for s in scores) and len({s.falls for s in scores}) == 1
    if any(e.unit.public_size for e in exposures):
        one_way = False
    return _range(scores, shifts) if one_way else 2 * max(shifts)


def _range(scores: Sequence[Score], shifts: Sequence[int]) -> int:
    """The largest change of the difference of two monotone scores, each of which one unit changes by at most `shifts`.

    For scores of one table, k changed rows are a added and r removed ones, a + r ≤ k. Every score changes by −rΔ to aΔ,
    and a difference by at most kΔ. Filters, derived columns, and functions of each person's rows do not affect this. A
    join `up to m` and groups of several persons' rows do: a row may be added to one and displace a row of another. So
    the difference of scores of two tables, one of which has such a step, changes by at most the sum of both shifts.
    """
    if len({s.base for s in scores}) == 1:
        return max(shifts)
    tables = [_undivided(s.base) for s in scores]
    if len(set(tables)) == 1 or not any(_pushes_out(table) for table in tables):
        return max(shifts)
    largest: dict[object, int] = {}
    for table, most in zip(tables, shifts, strict=True):
        largest[table] = max(largest.get(table, 0), most)
    return sum(sorted(largest.values())[-2:])


def _undivided(base: Handle) -> object:
    """The origin of a handle's rows: its plan without filters and derived columns, or its array of counts."""
    at: Any = base.cells if isinstance(base, Cube) else getattr(base, "plan", base)
    while isinstance(at, (Restricted, Tallied, Filter, Derive)):
        at = at.base if isinstance(at, Restricted) else at.plan if isinstance(at, Tallied) else at.source
    return at


def _pushes_out(plan: Any) -> bool:
    """Whether adding a row to a data set may remove or change a row of the plan's result."""
    if not isinstance(plan, Plan):
        return False
    if isinstance(plan, GroupRows) and not plan.person:  # an added row changes the row of its group
        return True
    if isinstance(plan, Join) and (plan.most is not None or plan.kind != "inner"):
        return True
    return any(map(_pushes_out, inputs(plan)))


def _groups(scores: Sequence[Score], values: Ints) -> list[Ints]:
    """The scores of each selection: all together, or the groups of one vector of scores."""
    if len(scores) == 1 and isinstance(scores[0], Scores) and scores[0].groups:
        return np.split(values, np.cumsum(scores[0].groups)[:-1])
    return [values]


def choose_publicly(utilities: Sequence[float], epsilon: float | None) -> int:
    """The exponential mechanism over public utilities. It is free, but still random among nearly best ones."""
    if not utilities:
        raise refuse("ValueError", "there is nothing to choose from")
    scaled = np.array([max(-4e15, min(4e15, u)) for u in utilities]) * 2**10
    scale = 2 * 2**10 / epsilon if epsilon else 1e-3
    return SecureNoise().noisy_max(fixed_width(np.rint(scaled)), scale)


class Ranking(Struct, frozen=True):
    """The indices of the largest scores, the largest first, and their `leads` over the next, if requested.

    The last lead is over the best score that is left out. With probability 95 % every lead is within `within` of the
    exact one, since no lead is off by more than the largest noise and one step of the grid.
    """

    places: list[int]
    leads: list[float]
    within: float


@dataclass(frozen=True, eq=False)
class LargestScores(OfScores[Ranking]):
    """The `count` largest of the scores, in order, with their `leads` or without."""

    count: int
    leads: bool

    @classmethod
    def of(cls, scores: Sequence[Score], count: int, leads: bool, amount: Amount | None) -> LargestScores:
        many = sum(s.length if isinstance(s, Scores) else 1 for s in scores)
        if not 1 <= count <= many:
            raise refuse("ValueError", f"of {many} scores the largest {count} were asked", help=f"1 to {many}")
        exposures = joined(scores, grouped=False)
        how = None
        if exposures:
            how = Selection.of(needed(amount), [e.source.measure for e in exposures], count, leads)
        if how is not None and not how.gumbel:
            check_scale(how.scale(separation(scores, exposures), True))
        return cls(exposures, "selection", how, tuple(scores), count, leads, subject=tuple(scores))

    def release(self, exact: Ints, noise: Noise | None) -> Release[Ranking]:
        bits = max(s.bits for s in self.scores)
        values = np.clip(exact, -CLAMP, CLAMP)
        if noise is None or self.how is None:
            places, leads = ranked(values, self.count)
            return Release(Ranking(places, [lead / 2.0**bits for lead in leads], 0.0))
        scale = self.how.scale(separation(self.scores, self.exposures), True)
        law = Selected(scale / 2.0**bits, values.size, "score")
        events = (measured_by(self.scores, law.name, law, self.how),)
        if self.how.gumbel:
            return Release(Ranking(self._one_by_one(self.how, values, noise, scale), [], 0.0), events)
        places, leads = ranked(values + geometric(noise, values.size, scale), self.count)
        gaps = [lead / 2.0**bits for lead in leads] if self.leads else []
        return Release(Ranking(places, gaps, law.half_width() + 2.0**-bits if self.leads else 0.0), events)

    def _one_by_one(self, how: Selection, values: Ints, noise: Noise, scale: float) -> list[int]:
        left, places = np.arange(values.size), []
        for _ in range(self.count):
            at = how.choose(noise, values[left], scale) if left.size > 1 else 0
            places.append(int(left[at]))
            left = np.delete(left, at)
        return places


class Picked(Struct, frozen=True):
    """The index of the selected score, and the number of scores that it was selected `among`."""

    place: int
    among: int


@dataclass(frozen=True, eq=False)
class MarginMax(OfScores[Picked]):
    """One of the scores, by `mechanisms.margin`."""

    @classmethod
    def of(cls, scores: Sequence[Score], amount: Amount | None) -> MarginMax:
        exposures = joined(scores, grouped=False)
        how = None
        if exposures:
            how = LargeMargin.within(needed(amount), [e.source.measure for e in exposures])
            check_scale(how.scales(separation(scores, exposures)).widest)
        return cls(exposures, "selection by margin", how, tuple(scores), subject=tuple(scores))

    def release(self, exact: Ints, noise: Noise | None) -> Release[Picked]:
        values = np.clip(exact, -CLAMP, CLAMP)
        if noise is None or self.how is None:
            return Release(Picked(int(values.argmax()), 1))
        scales = self.how.scales(separation(self.scores, self.exposures))
        among = clear(values, scales, noise) if values.size > 1 else np.zeros(1, dtype=np.int64)
        at = noise.gumbel_max(values[among], scales.selection) if among.size > 1 else 0
        law = Selected(scales.selection / 2.0 ** max(s.bits for s in self.scores), int(among.size), "score")
        event = measured_by(self.scores, "margin", law, self.how)
        return Release(Picked(int(among[at]), int(among.size)), (event,))


BITS = 20
"""The bits of the grid of a sum of reals, for terms of up to 1."""


@dataclass(frozen=True, eq=False)
class RowSum(Rule):
    """Σ E over the rows of a table."""

    def __call__(self, table: Table, expr: RowExpr) -> Score:
        low, high = public_bounds(expr, table, "sum")
        whole = is_integral(expr, table.domains) and not table.weighted
        bits = 0 if whole else grid_bits(max(abs(low), abs(high)), BITS)
        term = FixedSum(expr, low, high, bits, weighted=table.weighted)
        change, falls = max(1, sensitivity_of(term, table)), low < 0 and high <= 0
        return Score(table.exposures, self, table, change, low >= 0 or falls, grid_of(term), (term,), falls)

    def exact(self, reader: Reader, score: Score) -> list[int]:
        (total,) = reader.answers.group(table_of(score).plan, (), score.arguments)
        return [int(total)]


sum_of = RowSum("sum_of", True)
