"""Fills the table of runs, every option on every training data set with its noise; and gives a bench its policy.

Every draw is seeded from the table's key, the data set, the scale, epsilon and what is drawn, so that the table is the
same however many processes fill it. Workers are forked, so what they compute with needs no pickling; results do. They
end with their parent, also at Ctrl-C. Where there is no `fork`, one core, or little work, everything happens here.

A policy is a stored one, or one that is trained, selected and stored. What training saw of each feature, and of
epsilon, are public ranges in its table; a call beyond them gets the single best option, and the trace says so.
"""

from __future__ import annotations

import gc
import hashlib
import math
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from jostle.choice.models import AnyModel, UserModel
from jostle.choice.policy import SINGLE_BEST, Policy, Store
from jostle.choice.table import (
    EPSILON,
    HALF,
    OTHERS,
    UNIT_EPSILON,
    Bench,
    Run,
    RunTable,
    Setting,
    exchanged,
    finite,
    scale_of,
)
from jostle.diagnostics import Diagnostic, Refusal, refuse
from jostle.kernels.linear_algebra import on_one_thread
from jostle.lazy import np
from jostle.plan.digest import digest
from jostle.records import replace
from jostle.version import __version__

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

T = TypeVar("T")
Progress = Callable[[int, int], None]

WORTH_FORKING = 1.5
"""Seconds of work left, by the first piece, from which on processes are started."""


def run_all(task: Callable[[int], T], count: int, progress: Progress | None, workers: int | None) -> list[T]:
    """`[task(0), …, task(count − 1)]`. `workers` None: as many as there are cores, if it is worth it.

    Raises the `Refusal` of the first piece that is refused, whatever the number of workers.
    """
    report = progress or (lambda done, total: None)
    report(0, count)
    results: list[Any] = []
    start = time.perf_counter()
    while len(results) < min(count, 1):
        results.append(task(0))
        report(1, count)
    left = (count - 1) * (time.perf_counter() - start)
    many = min(workers or (_cores() if left > WORTH_FORKING else 1), count - 1)
    if many > 1 and hasattr(os, "fork"):
        return results + _forked(task, count, report, many)
    while len(results) < count:
        results.append(task(len(results)))
        report(len(results), count)
    return results


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _forked(task: Callable[[int], T], count: int, report: Progress, many: int) -> list[T]:
    """The results of pieces 1, 2, …, in order."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("fork")
    theirs, ours = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(many, context, _begin, (task, theirs, ours))
    results: list[T] = []
    try:
        with warnings.catch_warnings():
            # Python 3.12 warns of threads at any fork; the workers use no thread of their parent.
            warnings.simplefilter("ignore", DeprecationWarning)
            futures = [pool.submit(_piece, piece) for piece in range(1, count)]
        for future in futures:
            diagnostics, result = future.result()
            if diagnostics is not None:
                raise Refusal(*diagnostics)
            results.append(result)
            report(1 + len(results), count)
    except BrokenProcessPool:
        raise refuse(
            "DataError",
            "training stopped: the system ended one of its processes",
            help="most often memory was short: train on smaller data sets, or on fewer at a time",
        ) from None
    finally:
        ours.close()
        pool.shutdown(cancel_futures=True)
        theirs.close()
    return results


_task: Callable[[int], Any]
"""What a worker does."""


def _begin(task: Callable[[int], object], theirs: Connection, ours: Connection) -> None:
    """The start of a worker, which ends as soon as no other process has `ours`: the parent closed it, or is gone. What
    the parent made is never collected here, since an embedded database may not be closed in another process than its
    own."""
    global _task
    _task = task
    gc.freeze()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    ours.close()
    threading.Thread(target=_end_with, args=(theirs,), daemon=True).start()


def _end_with(theirs: Connection) -> None:
    theirs.poll(None)
    os._exit(0)


def _piece(number: int) -> tuple[tuple[Diagnostic, ...] | None, Any]:
    """The result of a piece of a worker's task, or why it is refused. A fault is raised, and met by the parent."""
    try:
        return None, _task(number)
    except Refusal as refusal:
        return refusal.diagnostics, None


SHARES = (0.001, 0.003, 0.01, 0.03, 0.1)
"""The shares of epsilon for features that compete when the program names none.

A thousandth is enough for a number of rows that matters: at epsilon 0.1 its noise has scale 10,000, where options cross
between 100,000 and a million rows."""

REPEATS = 6
"""Runs of every option on every instance: with three, the least of many noisy means is often not the best option's."""

RUNS = 216
"""Runs of every option on all instances together, where these are many: what is learned are means over them, so that
more instances take fewer runs of each, and two at least (`docs/experiments/choice.md`, what training costs). A program
of 12 data sets at 3 sizes has six on each: with three, eleven trainings in twenty took for chance what rows decide."""

LEAST = 8
"""Runs of all options together on an instance, at least: of three options two runs each did not show what a look gains,
and three did (`docs/experiments/nodes.md`, the program, judged)."""

FIRST = 3
BEHIND = 3.0
"""After `FIRST` runs an option whose score is behind the leader's by more than `BEHIND` standard errors of their paired
differences is not run again: how far behind it is need not be known as well."""
DRAWS = 3


def tenth_of_a_decade(epsilon: float) -> float:
    """The nearest amount 10^(k/10), at most 12 % away: calls with about as much share a model, and it never reads the
    amount. Trained at the half-decades around a call, trees spent their tests on telling these apart."""
    return float(f"{10 ** (round(10 * math.log10(epsilon)) / 10):.12g}")


def train(
    bench: Bench,
    epsilon: float | None,
    share: float | None = None,
    progress: Progress | None = None,
    *,
    key: str = "",
    repeats: int = REPEATS,
    draws: int = DRAWS,
    workers: int | None = None,
    epsilons: tuple[float, ...] = (),
    thorough: bool = False,
) -> RunTable:
    """The table of runs for calls with about `epsilon`, and of what options would do with `OTHERS` times it, or for the
    amounts `epsilons`; None: on public data, everything exact.

    `share`: of epsilon for the private features, in (0, 1); None tries `SHARES`. Options run with all of epsilon,
    `FIRST` times with half of it, from which the scores after a look are read off, and once with twice as much, by the
    same seeds. `repeats` runs of an option that is with the leader are averaged, features are measured `draws` times an
    instance. Of many instances each has fewer runs (`RUNS`), unless training is `thorough`, as that of what ships.
    `progress(done, total)` counts instances. `workers`: processes; None lets the amount of work decide.
    """
    settings = settings_of(bench, share, epsilon is None)
    paid = any(s.share for s in settings)
    others = tuple(OTHERS.values()) if not epsilons and epsilon is not None else (HALF,) if paid else ()
    table = RunTable(
        options=bench.option_names,
        features=bench.feature_names,
        public=bench.feature_is_public,
        databases=bench.database_names,
        epsilons=epsilons or (() if epsilon is None else (tenth_of_a_decade(epsilon),)),
        levels=(1.0, *others),
        settings=settings,
        repeats=1 if epsilon is None else repeats,
        draws=draws if paid else 1,
        key=key or bench.key,
        runs=(),
        rows=bench.database_rows,
    )
    pieces = [(d, scale) for d in range(len(bench.database_names)) for scale in bench.scales(d)]
    if not thorough:
        enough = max(2, math.ceil(LEAST / len(table.options)), math.ceil(RUNS / max(1, len(pieces))))
        table = replace(table, repeats=min(table.repeats, enough))

    @on_one_thread
    def piece(number: int) -> list[Run]:
        return _runs(bench, table, *pieces[number])

    runs = [run for group in run_all(piece, len(pieces), progress, workers) for run in group]
    return replace(table, runs=_finite_runs(runs))


def settings_of(bench: Bench, share: float | None, exact: bool) -> tuple[Setting, ...]:
    """The ways to measure features that compete.

    One where the program names the share. Else all private features, and where no option reads them itself each
    alone, at each of `SHARES`.
    """
    private = tuple(n for n, free in zip(bench.feature_names, bench.feature_is_public, strict=True) if not free)
    if exact or not private:
        return (Setting(0.0, ()),)
    if share is not None:
        return (Setting(share, private),)
    alone = len(private) > 1 and not any(bench.predicts)
    subsets = [(name,) for name in private if alone] + [private]
    return tuple(Setting(s, paid) for s in SHARES for paid in subsets)


def seed(*parts: object) -> int:
    """53 bits (a whole number that a double holds) from what names a draw."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 11


def _runs(bench: Bench, table: RunTable, database: int, scale: float) -> list[Run]:
    """One data set at one scale, at every amount."""
    place = (table.key, database, bench.database_names[database], repr(scale))
    instance = bench.instance(database, scale, seed(*place, "instance"))
    runs = []
    several = len(table.epsilons) > 1
    amounts = bench.epsilons(database, table.epsilons) if several else table.epsilons or (None,)
    for epsilon in amounts:
        here = (*place, repr(epsilon))
        utilities = _utilities(bench, table, instance, epsilon, here)
        features = tuple(_feature_samples(bench, table, instance, epsilon, s, here) for s in table.settings)
        runs.append(Run(database, scale, epsilon, utilities, features))
    return runs


def _utilities(
    bench: Bench, table: RunTable, instance: object, epsilon: float | None, place: tuple[object, ...]
) -> tuple[tuple[float, ...], ...]:
    """The mean utility of every option at every level; of those that fall behind, over the first runs alone."""

    def runs(option: int, level: float, trials: range) -> list[float]:
        """The seeds are those of the other levels, so that levels differ by epsilon alone."""
        name, amount = table.options[option], _times(epsilon, level)
        answers = (bench.answer(option, instance, amount, seed(*place, "option", name, trial)) for trial in trials)
        return [float(bench.utility(instance, answer)) for answer in answers]

    options = range(len(table.options))
    first = range(min(FIRST, table.repeats))
    whole = [runs(option, 1.0, first) for option in options]
    means = [[_mean(values) for values in whole]]
    staying = with_the_leader(whole) if len(first) < table.repeats else []
    for option in staying:
        means[0][option] = _mean(whole[option] + runs(option, 1.0, range(len(first), table.repeats)))
    for level in table.levels[1:]:
        trials = first if level < 1 else first[:1]
        less = [_mean(runs(option, level, trials)) for option in options]
        means.append([_carried(means[0][o], _mean(whole[o][: len(trials)]), less[o]) for o in options])
    return tuple(map(tuple, means))


def with_the_leader(runs: list[list[float]]) -> list[int]:
    """The options that are not behind the one with the best mean score, by their paired runs; all where some failed."""
    utilities = np.array(runs)
    if not np.isfinite(utilities).all():
        return list(range(len(runs)))
    scale = scale_of(utilities.ravel().tolist())
    scores = np.array([[scale.score(u) for u in values] for values in runs])
    gaps = scores[scores.mean(axis=1).argmax()] - scores
    errors = gaps.std(axis=1, ddof=1) / math.sqrt(gaps.shape[1])
    return [int(option) for option in np.flatnonzero(gaps.mean(axis=1) <= BEHIND * errors)]


def _carried(whole: float, first: float, less: float) -> float:
    """The mean at a lower level: what the first runs lost there, as a factor of errors, taken from the mean of all."""
    if not (math.isfinite(whole) and math.isfinite(first)):
        return less
    if whole < 0 and first < 0 and less < 0:
        return whole * (less / first)
    there = whole + (less - first)
    return min(there, 0.0) if max(whole, first, less) <= 0 else there  # an error stays one


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _feature_samples(
    bench: Bench, table: RunTable, instance: object, epsilon: float | None, setting: Setting, place: tuple[object, ...]
) -> tuple[tuple[float, ...], ...]:
    """The features of one setting, drawn `table.draws` times. Those that it leaves out, which no model reads, are 0."""
    amount, read = _times(epsilon, setting.share) if setting.paid else epsilon, table.read(setting)
    samples = []
    for draw in range(table.draws):
        values = bench.features(instance, amount, seed(*place, "features", setting.share, setting.paid, draw), read)
        samples.append(tuple(finite(values.get(name, 0.0)) for name in table.features))
    return tuple(samples)


def _times(epsilon: float | None, factor: float) -> float | None:
    return None if epsilon is None else epsilon * factor


def _finite_runs(runs: list[Run]) -> tuple[Run, ...]:
    """The runs with every utility finite: without a value it counts as the worst of all, ∞ as the best."""
    utilities = [u for run in runs for level in run.utilities for u in level]
    good: Callable[[float], bool] = math.isfinite
    if all(map(good, utilities)):
        return tuple(runs)
    if not any(map(good, utilities)):
        raise refuse(
            "ValueError",
            "the utility has no finite value on any of the training data",
            help="a Utility returns a number, larger where the answers are better",
        )
    worst, best = min(filter(good, utilities)), max(filter(good, utilities))
    return tuple(
        replace(run, utilities=tuple(
            tuple(u if good(u) else best if u == math.inf else worst for u in level) for level in run.utilities
        ))
        for run in runs
    )  # fmt: skip


def within(policy: Policy, values: Mapping[str, float], epsilon: float | None, unit: str = EPSILON) -> Policy:
    """`policy` where it was trained for a call with these `values` of features and this amount, else `single_best`.
    `epsilon`: the amount for a row, None on public data. What decides is public or was released."""
    why = _outside(policy.table, values, epsilon, unit)
    return policy if not why else single_best(policy, f"outside of what it was trained on: {why}")


def single_best(policy: Policy, why: str) -> Policy:
    """The policy that takes the option with the best mean over all training data, for the reason `why`."""
    from jostle.choice.policies import Candidate, best_on_average, view_of

    scale = policy.table.scale
    predictor = best_on_average(view_of(policy.table, Candidate(SINGLE_BEST, 0.0, 0, ()), scale), scale)
    return replace(
        policy, name=SINGLE_BEST, model=SINGLE_BEST, needs=(), columns=(), predictor=predictor, why=why, others={}
    )  # fmt: skip


def rounded(value: float) -> float:
    """Five digits, which a policy that ships has of each number: more than six runs of an option tell."""
    return float(f"{value:.5g}")


def _outside(table: RunTable, values: Mapping[str, float], epsilon: float | None, unit: str) -> str:
    if epsilon is None:
        return "public data have no noise"
    if unit != EPSILON:
        return f"it knows amounts in epsilon, and this one is in {unit}"
    if len(table.epsilons) > 1 and not min(table.epsilons) <= epsilon <= max(table.epsilons):
        return f"epsilon is {epsilon:.4g} for a row, and was {min(table.epsilons):g} to {max(table.epsilons):g}"
    for name, value in values.items():
        place = table.features.index(name)
        draws = [draw[place] for run in table.runs for draw in run.features[0]]
        if not min(draws) <= rounded(value) <= max(draws):
            return f"{name} is {value:.4g}, and was {min(draws):.4g} to {max(draws):.4g}"
    return ""


VERSION = 7
"""The version of what training computes: a change makes stored models be trained anew."""

SCALE = 3
"""The version of what is fitted to the runs: a change makes stored models be fitted anew, to the runs that are kept."""


def key_of(bench: Bench, model: AnyModel, share: float | None, epsilon: float | None) -> str:
    """The content key of a policy: those that are nearly equal have the same."""
    return digest([runs_key(bench, share, epsilon), str(model), SCALE])


def runs_key(bench: Bench, share: float | None, epsilon: float | None) -> str:
    """The part of the key that the runs depend on, and are seeded from: models are compared on the same runs."""
    grid = [tenth_of_a_decade(epsilon)] if epsilon is not None else []
    shares = [share] if share is not None else list(SHARES)
    return digest([VERSION, __version__, bench.key, grid, shares, REPEATS, DRAWS])


def learn(
    bench: Bench,
    *,
    model: AnyModel,
    share: float | None,
    epsilon: float | None,
    store: Store | None,
    progress: Progress | None = None,
    workers: int | None = None,
) -> Policy:
    """The policy for calls with about `epsilon` (None: on public data, exact and free).

    `share`: of epsilon for the private features, in (0, 1); None: cross-validation finds it, and may find none. With
    a `store` a policy is trained once. Raises `ValueError` without options or training data, `BadAmount` for a share
    outside (0, 1), `DataError` for a damaged stored model, and what the program's own features and options raise.
    """
    _check(bench, share)
    if len(bench.option_names) == 1:
        return _only(bench)
    bench, epsilon = training_setting(bench, model, epsilon)
    key = key_of(bench, model, share, epsilon)
    entry = f"{key} {model.serial}" if isinstance(model, UserModel) else key
    stored = store.load(entry, (bench.option_names, bench.feature_names)) if store is not None else None
    if store is not None and stored is not None:
        return store.remember(entry, stored.with_predicts(bench.predicts))
    table = runs_of(bench, share, epsilon, store, progress, workers)
    from jostle.choice.policies import decide

    policy = decide(table, model, bench.predicts)
    if store is not None:
        store.save(entry, policy, on_disk=not isinstance(model, UserModel))
    return policy


def training_setting(bench: Bench, model: AnyModel, epsilon: float | None) -> tuple[Bench, float | None]:
    """The bench and epsilon that a model is trained at, for calls with this epsilon."""
    if isinstance(model, UserModel) or not model.exchange or epsilon is None:
        return bench, epsilon
    return exchanged(bench), UNIT_EPSILON


def runs_of(
    bench: Bench,
    share: float | None,
    epsilon: float | None,
    store: Store | None,
    progress: Progress | None = None,
    workers: int | None = None,
) -> RunTable:
    """The whole table of runs that policies for about `epsilon` are learned and judged from; kept in the `store`."""
    key = runs_key(bench, share, epsilon)
    stored = store.load_runs(key, (bench.option_names, bench.feature_names)) if store is not None else None
    if stored is not None:
        return stored
    table = train(bench, epsilon, share, progress, key=key, workers=workers)
    if store is not None:
        store.save_runs(key, table)
    return table


def _check(bench: Bench, share: float | None) -> None:
    if share is not None and not 0 < share < 1:
        raise refuse(
            "BadAmount",
            f"the share for features is a number between 0 and 1, not {share:g}",
            help="`spending 0.05` gives the features a twentieth of a call's epsilon",
        )
    if not bench.option_names:
        raise refuse("ValueError", "there is nothing to choose from", help="name at least one Option in `among {…}`")
    if not bench.database_names:
        raise refuse("ValueError", "there is nothing to train on", help="name public data sets in `trained on {…}`")


def _only(bench: Bench) -> Policy:
    """With one option there is nothing to learn, and nothing is run."""
    table = RunTable(
        bench.option_names, bench.feature_names, bench.feature_is_public, bench.database_names,
        (), (1.0,), settings_of(bench, None, True), 0, 0, bench.key, (),
    )  # fmt: skip
    return Policy(SINGLE_BEST, SINGLE_BEST, 0.0, (), (), None, table, (), "there is only one option")
