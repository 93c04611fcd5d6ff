"""Fills the table of runs: every option on every training data set, with the noise it would have.

Every draw is seeded from the table's key, the data set, the scale, epsilon and what is drawn, so that the table is the
same however many processes fill it. Workers are forked, so what they compute with needs no pickling; results do. They
end with their parent, also at Ctrl-C. Where there is no `fork`, one core, or little work, everything happens here.
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
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from jostle.choice.table import HALF, OTHERS, Bench, Run, RunTable, Setting, finite, scale_of
from jostle.diagnostics import Diagnostic, Refusal, refuse
from jostle.kernels.linear_algebra import on_one_thread
from jostle.lazy import np
from jostle.records import replace

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
    `FIRST` times with half of it, from which the scores after a look are read off; and once with twice as much, by the
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
