"""Choices inside an algorithm, learned from whole runs of it (the thesis's NoisyConditionals, Figure 4.5).

`whole(algorithm, data)` names an algorithm in whose course choices are made, and public data to run it on. Training
runs it with options tried at the *choice points*, gives each call the utility of its run, less the mean over the runs
on the same data. It fits a regression tree for each option of each point; then again around what was learned. The best
fixed way (one option at each point, always) wins unless the learned one convinces on data sets that were left out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct, field

from jostle.choice.models import Model, TreeEnsembles, grow
from jostle.choice.policies import is_significant_gain
from jostle.choice.policy import Standing
from jostle.choice.table import Bench, UtilityScale, finite
from jostle.choice.training import Progress, run_all, seed
from jostle.lazy import Floats, np

Array = Floats

TRIALS = 10  # runs of a data set at an epsilon with options tried freely, and again around what was learned
CHECKS = 2  # runs of each fixed way, and of the learned one, by which they are compared
MOST_WAYS = 24  # fixed ways that compete: of more, those that differ least from the first
KEPT = 40  # calls of one point in one run that are learned from
STRAY = 0.2  # how often a call takes an option at random while the algorithm is run around what was learned

Chooser = Callable[[int, Sequence[float]], int]
"""Maps the number of a point and its features to the number of an option."""


Means = tuple[tuple[tuple[float, float], ...], ...]
"""For each option of each point a mean and a deviation."""


class PointCall(Struct, frozen=True):
    point: int
    features: tuple[float, ...]
    option: int


class WholeRun(Struct, frozen=True):
    """One run of the algorithm: on which data set at which epsilon, its calls and its utility."""

    database: int
    epsilon: float | None
    way: int  # of the fixed ways; −1: none of them
    calls: tuple[PointCall, ...]
    utility: float


class Point(Struct, frozen=True):
    """The parts of a choice point that learning sees."""

    options: tuple[str, ...]
    features: tuple[str, ...]
    model: Model


class StudyResult(Struct, frozen=True):
    """The outcome: predictors of the advantage of each option (None: the fixed way is taken), and how they compared.

    `always`: for each option of each point the mean utility of the best fixed way that takes it, and the deviation of
    that over data sets.
    """

    always: Means
    predictors: tuple[TreeEnsembles, ...] | None
    standings: tuple[Standing, ...]
    why: str


class Study(Struct):
    """Trains the points of one algorithm. `rollout` runs it once with a chooser and gives its calls and its utility."""

    points: Sequence[Point]
    bench: Bench
    epsilons: Sequence[float | None]
    key: str
    rollout: Callable[[Any, float | None, int, Chooser], tuple[list[PointCall], float]]
    progress: Progress | None = None
    workers: int | None = None
    _runs: list[WholeRun] = field(default_factory=list)
    _stage: int = 0
    _stages: int = 3

    def learn(self) -> StudyResult:
        """Runs, fits, runs again, fits again, and compares."""
        ways = fixed_ways([len(p.options) for p in self.points])
        places = [(d, e) for d in range(len(self.bench.database_names)) for e in self.epsilons]
        self._stage = 0
        self._gather(places, lambda d: [*((w, self._fixed(ways[w])) for w in range(len(ways)) for _ in range(CHECKS)),
                                        *((-1, self._mixed(ways)) for _ in range(TRIALS))])  # fmt: skip
        first = {d: self._fit(without=d) for d in self._databases()}
        self._gather(places, lambda d: [(-1, self._straying(first[d])) for _ in range(TRIALS)])
        second = {d: self._fit(without=d) for d in self._databases()}
        checked = self._gather(places, lambda d: [(-2, self._greedy(second[d])) for _ in range(CHECKS)])
        return self._decide(ways, checked)

    def _databases(self) -> range:
        return range(len(self.bench.database_names))

    # Running -----------------------------------------------------------------------------------------

    def _gather(
        self, places: Sequence[tuple[int, float | None]], behaviours: Callable[[int], list[tuple[int, Any]]]
    ) -> list[WholeRun]:
        """Every behaviour on every data set at every epsilon; kept, unless they are only to be judged."""
        stage = self._stage
        self._stage += 1

        def piece(number: int) -> list[WholeRun]:
            database, epsilon = places[number]
            instance = self.bench.instance(database, 1.0, 0)
            runs = []
            for trial, (way, behave) in enumerate(behaviours(database)):
                run_seed = seed(self.key, stage, database, repr(epsilon), trial)
                calls, utility = self.rollout(instance, epsilon, run_seed, behave(run_seed))
                runs.append(WholeRun(database, epsilon, way, _thinned(calls, run_seed), finite(utility)))
            return runs

        tell, many = self.progress, self._stages * len(places)
        report = (lambda done, total: tell(stage * len(places) + done, many)) if tell is not None else None
        runs = [run for group in run_all(piece, len(places), report, self.workers) for run in group]
        if all(run.way != -2 for run in runs):
            self._runs += runs
        return runs

    def _fixed(self, way: tuple[int, ...]) -> Callable[[int], Chooser]:
        return lambda run_seed: lambda point, x: way[point]

    def _mixed(self, ways: Sequence[tuple[int, ...]]) -> Callable[[int], Chooser]:
        """Options tried: at each point one that this run prefers, or any."""
        many = [len(p.options) for p in self.points]

        def behave(run_seed: int) -> Chooser:
            count = itertools.count()
            preferred = [seed(run_seed, "prefers", p) % many[p] for p in range(len(many))]
            faithful = seed(run_seed, "faithful") % 3  # never, half of the time, mostly

            def choose(point: int, x: Sequence[float]) -> int:
                call = next(count)
                if seed(run_seed, "stay", call) % 4 < (0, 2, 3)[faithful]:
                    return preferred[point]
                return seed(run_seed, "any", call) % many[point]

            return choose

        return behave

    def _greedy(self, predictors: tuple[TreeEnsembles, ...]) -> Callable[[int], Chooser]:
        return lambda run_seed: lambda point, x: best_of(predictors[point], x)

    def _straying(self, predictors: tuple[TreeEnsembles, ...]) -> Callable[[int], Chooser]:
        def behave(run_seed: int) -> Chooser:
            count = itertools.count()

            def choose(point: int, x: Sequence[float]) -> int:
                call = next(count)
                if seed(run_seed, "stray", call) % 1000 < STRAY * 1000:
                    return seed(run_seed, "any", call) % len(self.points[point].options)
                return best_of(predictors[point], x)

            return choose

        return behave

    # Learning ----------------------------------------------------------------------------------------

    def _fit(self, without: int | None = None) -> tuple[TreeEnsembles, ...]:
        """For each point a tree for each option: what its runs gained over the mean of their data set."""
        runs = [r for r in self._runs if r.database != without] or self._runs
        means: dict[tuple[int, float | None], float] = {}
        for place in {(r.database, r.epsilon) for r in runs}:
            means[place] = float(np.mean([r.utility for r in runs if (r.database, r.epsilon) == place]))
        return tuple(self._fit_point(number, point, runs, means) for number, point in enumerate(self.points))

    def _fit_point(
        self, number: int, point: Point, runs: Sequence[WholeRun], means: dict[tuple[int, float | None], float]
    ) -> TreeEnsembles:
        x: list[list[tuple[float, ...]]] = [[] for _ in point.options]
        y: list[list[float]] = [[] for _ in point.options]
        for run in runs:
            gained = run.utility - means[run.database, run.epsilon]
            for call in run.calls:
                if call.point == number:
                    x[call.option].append(call.features)
                    y[call.option].append(gained)
        ensembles = []
        instances = max(1, len(means))
        for rows, gains in zip(x, y, strict=True):
            if not rows:  # never tried: no better than anything
                rows, gains = [tuple(0.0 for _ in point.features)], [-1e9]
            least = max(1, round(point.model.least(instances) * len(rows) / instances))
            columns = np.array(rows, dtype=np.float64).reshape(len(rows), len(point.features))
            ensembles.append((grow(columns, np.array(gains)[:, None], point.model.depth, least),))
        return TreeEnsembles(UtilityScale("utility"), point.features, len(point.options), tuple(ensembles), False)

    def _decide(self, ways: Sequence[tuple[int, ...]], checked: Sequence[WholeRun]) -> StudyResult:
        """The learned way against the best fixed one, by mean utility of data sets; on each, learned without it."""
        fixed = [self._by_database([r for r in self._runs if r.way == w]) for w in range(len(ways))]
        learned = self._by_database(checked)
        top = np.max(np.vstack([*fixed, learned]), axis=0)
        names = [self._name_of(way) for way in ways] + ["learned, node by node"]
        lost = [top - one for one in (*fixed, learned)]
        root = math.sqrt(len(learned))
        standings = tuple(
            Standing(name, 0.0, float(one.mean()), float(one.std(ddof=1) / root) if len(one) > 1 else 0.0)
            for name, one in zip(names, lost, strict=True)
        )
        best = min(range(len(ways)), key=lambda w: float(lost[w].mean()))
        always = self._always(ways, fixed, best)
        if len(learned) > 1 and is_significant_gain(lost[best], lost[-1]):
            gain = f"a regret of {lost[-1].mean():.3g} on data sets left out"
            why = f"{gain}; the best fixed way has {lost[best].mean():.3g}, which is more than chance"
            return StudyResult(always, self._fit(), standings, why)
        gain = f"always {self._name_of(ways[best])}: a regret of {lost[best].mean():.3g}"
        why = f"{gain}; the learned way has {lost[-1].mean():.3g}, no less beyond chance"
        return StudyResult(always, None, standings, why)

    def _always(self, ways: Sequence[tuple[int, ...]], fixed: Sequence[Array], best: int) -> Means:
        """What `StudyResult.always` says. An option that does as well as the best way's stands just below it, and one
        that no way takes has what the worst way had."""
        figures = [(float(one.mean()), float(one.std())) for one in fixed]
        below = math.nextafter(figures[best][0], -math.inf)

        def figure(number: int, option: int) -> tuple[float, float]:
            if ways[best][number] == option:
                return figures[best]
            taking = (figures[w] for w, way in enumerate(ways) if way[number] == option)
            mean, deviation = max(taking, default=min(figures))
            return min(mean, below), deviation

        return tuple(tuple(figure(n, k) for k in range(len(p.options))) for n, p in enumerate(self.points))

    def _by_database(self, runs: Sequence[WholeRun]) -> Array:
        return np.array([np.mean([r.utility for r in runs if r.database == d]) for d in self._databases()])

    def _name_of(self, way: tuple[int, ...]) -> str:
        return ", ".join(p.options[k] for p, k in zip(self.points, way, strict=True))


def fixed_ways(many: Sequence[int]) -> list[tuple[int, ...]]:
    """One option at each point, always: all combinations, or those that leave the first ones least."""
    every = sorted(itertools.product(*(range(m) for m in many)), key=lambda way: (sum(k > 0 for k in way), way))
    return every[:MOST_WAYS]


def best_of(predictor: TreeEnsembles, x: Sequence[float]) -> int:
    """The option with the largest predicted advantage; the first of equals."""
    predictions = predictor.predict(x)
    return max(range(len(predictions)), key=lambda k: (predictions[k][0], -k))


def _thinned(calls: Sequence[PointCall], run_seed: int) -> tuple[PointCall, ...]:
    """At most `KEPT` calls of each point, drawn by hash, so that a run of many nodes weighs no more than others."""
    sample: list[PointCall] = []
    for point in {c.point for c in calls}:
        mine = [c for c in calls if c.point == point]
        if len(mine) > KEPT:
            order = sorted(range(len(mine)), key=lambda i: seed(run_seed, "keep", point, i))
            mine = [mine[i] for i in sorted(order[:KEPT])]
        sample += mine
    return tuple(sample)
