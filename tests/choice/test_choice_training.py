"""The table of runs: seeds, workers, errors in workers, odd utilities."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import time
from typing import Any

import numpy as np
import pytest
from choice_fakes import CROSSING, SIZES, FakeBench
from msgspec import convert, to_builtins

from jostle.choice.table import RunTable, train_event
from jostle.choice.training import LEAST, REPEATS, RUNS, seed, tenth_of_a_decade, train
from jostle.diagnostics import Refusal, refuse
from jostle.kernels.simulated_points import simulated_cells
from jostle.source import Source, Span


@pytest.mark.parametrize(
    ("epsilon", "near"),
    [(1.0, 1.0), (10, 10.0), (0.1, 0.1), (0.5, 0.501187233627), (0.52, 0.501187233627), (2000.0, 1995.26231497)],
)  # fmt: skip
def test_amounts_within_a_twentieth_of_a_decade_share_a_model(epsilon: float, near: float) -> None:
    assert tenth_of_a_decade(epsilon) == near
    assert abs(math.log10(near / epsilon)) <= 0.05


def test_seeds_differ_by_what_they_are_for_and_fit_a_double() -> None:
    drawn = {seed("k", d, s, o, t) for d in range(5) for s in (0.1, 1.0) for o in "ab" for t in range(5)}
    assert len(drawn) == 100
    assert all(0 <= s < 2**53 and float(s) == s for s in drawn)
    assert seed("k", 1, 2.0) == seed("k", 1, 2.0)
    assert seed("a", "bc") != seed("ab", "c")


def test_the_table_does_not_depend_on_the_number_of_workers() -> None:
    bench = FakeBench(SIZES[:5], CROSSING, multiples=(0.1, 1.0), others=("junk",))
    alone = train(bench, 0.5, workers=1)
    assert len(alone.runs) == 5 * 2
    assert train(bench, 0.5, workers=2) == alone
    assert train(bench, 0.5, workers=5) == alone
    assert train(bench, 0.5, key="another", workers=1) != alone


def test_an_option_that_is_far_behind_is_run_no_more() -> None:
    """Five times the error, with noise of a hundredth: three runs say enough. Equal options run to the end."""
    bench = FakeBench((5.0,), CROSSING)
    table = train(bench, 1.0, share=0.1, workers=1)
    assert sum(what == "answer" for what, _ in bench.calls) == (6 + 3) + (3 + 3) + 2
    assert table.runs[0].utilities[0] == pytest.approx((-1, -5), rel=0.05)
    same = {"One": CROSSING["Small"], "Other": CROSSING["Small"]}
    bench = FakeBench((5.0,), same)
    train(bench, 1.0, share=0.1, workers=1)
    assert sum(what == "answer" for what, _ in bench.calls) == 2 * (6 + 3) + 2


def test_what_less_epsilon_costs_is_carried_from_the_first_runs_to_all() -> None:
    options = {"One": lambda size, epsilon: 2 / epsilon, "Far": lambda size, epsilon: 100 / epsilon}
    run = train(FakeBench((5.0,), options), 1.0, share=0.1, workers=1).runs[0]
    for whole, half, twice in zip(*run.utilities, strict=True):
        assert (half, twice) == pytest.approx((whole / 0.5, whole * 0.5))


def test_progress_counts_instances() -> None:
    for workers in (1, 2):
        seen: list[tuple[int, int]] = []
        bench = FakeBench(SIZES[:3], CROSSING, multiples=(0.1, 1.0))
        train(bench, 1.0, progress=lambda done, total, to=seen: to.append((done, total)), workers=workers)
        assert seen == [(k, 6) for k in range(7)]


def test_options_run_with_what_features_leave() -> None:
    bench = FakeBench((5.0, 6.0), CROSSING)
    train(bench, 1.0, 0.2)
    assert {e for what, e in bench.calls if what == "answer"} == {1.0, 0.5, 2.0}
    assert {e and round(e, 12) for what, e in bench.calls if what == "features"} == {0.2}


class Refusing(FakeBench):
    """Its third and fourth data set are refused, each with its own words."""

    def utility(self, instance: float, answers: float) -> float:
        if instance in (8.0, 20.0):
            time.sleep(0.2 if instance == 8.0 else 0.0)
            source = Source("a.jst", "one\ntwo\n")
            raise refuse("TypeError", f"odd at {instance:g}", Span(source, 2, 1, 2, 4), help="mend it")
        return super().utility(instance, answers)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_refusal_in_a_worker_comes_through_as_it_is(workers: int) -> None:
    with pytest.raises(Refusal) as refusal:
        train(Refusing(SIZES, CROSSING), 1.0, workers=workers)
    first = refusal.value.first
    assert (first.kind, first.message, first.help) == ("TypeError", "odd at 8", "mend it")
    assert first.span is not None and first.span.source.line(2) == "two"
    assert not multiprocessing.active_children()


def test_an_interrupt_ends_the_workers() -> None:
    def stop(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(FakeBench(SIZES, CROSSING), 1.0, progress=stop, workers=2)
    assert not multiprocessing.active_children()


class Dying(FakeBench):
    def answer(self, option: int, instance: float, epsilon: float | None, seed: int) -> float:
        if instance == 8.0:
            if multiprocessing.parent_process() is not None and self.key == "killed":
                os.kill(os.getpid(), 9)
            raise ZeroDivisionError
        return super().answer(option, instance, epsilon, seed)


def test_a_worker_that_is_killed_is_told_of_and_a_fault_is_met_here() -> None:
    with pytest.raises(Refusal) as refusal:
        train(Dying(SIZES, CROSSING, key="killed"), 1.0, workers=2)
    assert refusal.value.first.kind == "DataError"
    with pytest.raises(ZeroDivisionError):
        train(Dying(SIZES, CROSSING), 1.0, workers=2)


def test_utilities_without_a_value_count_as_the_worst() -> None:
    odd = {"A": lambda n, e: 1.0, "B": lambda n, e: {2.0: math.nan, 4.0: math.inf, 8.0: 7.0}[n]}
    table = train(FakeBench((2.0, 4.0, 8.0), odd, jitter=0.0), 1.0)
    assert [r.utilities[0] for r in table.runs] == [(-1.0, -7.0)] * 3
    with pytest.raises(Refusal) as refusal:
        train(FakeBench((2.0,), {"A": lambda n, e: math.nan}), 1.0)
    assert refusal.value.first.kind == "ValueError"


def test_the_table_is_plain_json_and_comes_back() -> None:
    table = train(FakeBench(SIZES[:3], CROSSING, public={"hint": lambda n: n}), 0.5, 0.1)
    assert convert(json.loads(json.dumps(to_builtins(table))), RunTable) == table


def test_the_train_event_holds_every_run() -> None:
    bench = FakeBench(SIZES[:3], CROSSING, multiples=(0.5, 1.0), others=("junk",))
    event = json.loads(json.dumps(train_event(train(bench, 1.0))))
    assert len(event["rows"]) == 6 and event["models"] == "log error"
    row = event["rows"][1]
    assert (row["database"], row["scale"], row["epsilon"]) == ("data 2", 1.0, 1.0)
    assert set(row["utilities"]) == set(CROSSING) == set(row["less"]["0.5"])
    # Fifteen settings of three draws; a setting shows only what it paid for.
    assert len(row["features"]) == 45
    assert {frozenset(f["values"]) for f in row["features"]} == {
        frozenset({"size"}), frozenset({"junk"}), frozenset({"size", "junk"}),
    }  # fmt: skip


def test_of_many_instances_each_has_fewer_runs() -> None:
    power = {"One": lambda size, epsilon: size / epsilon**2, "Other": lambda size, epsilon: size / epsilon}
    bench = FakeBench(tuple(float(n) for n in range(1, 61)), power, jitter=0.0)
    table = train(bench, 1.0, share=0.1, workers=1)
    assert table.repeats == math.ceil(LEAST / 2) == 4
    assert [sum(call == ("answer", amount) for call in bench.calls) for amount in (0.5, 2.0)] == [60 * 2 * 3, 60 * 2]
    for run in table.runs:
        less = [math.exp(-s) for s in table.scores(run, 0.1, table.scale)]
        assert less == pytest.approx([-run.utilities[0][0] / 0.9**2, -run.utilities[0][1] / 0.9])
    assert train(bench, 1.0, share=0.1, workers=1, thorough=True).repeats == REPEATS
    assert train(bench, 1.0, share=0.1, workers=3) == table


@pytest.mark.parametrize(
    ("instances", "options", "runs"), [(128, 3, 3), (128, 5, 2), (54, 4, 4), (36, 4, 6), (16, 5, 6)]
)
def test_fewer_options_have_more_runs_of_each_instance(instances: int, options: int, runs: int) -> None:
    laws = {f"Option {k}": CROSSING["Small"] for k in range(options)}
    table = train(FakeBench(tuple(float(n) for n in range(1, instances + 1)), laws), None, workers=1)
    assert table.repeats == 1  # exact, once
    table = train(FakeBench(tuple(float(n) for n in range(1, instances + 1)), laws), 1.0, share=0.001, workers=1)
    assert table.repeats == runs == min(REPEATS, max(2, math.ceil(RUNS / instances), math.ceil(LEAST / options)))


def test_an_option_without_a_value_where_less_was_tried_costs_what_it_did_elsewhere() -> None:
    class Failing(FakeBench):
        def answer(self, option: int, instance: Any, epsilon: float | None, seed: int) -> float:
            value = super().answer(option, instance, epsilon, seed)
            return math.inf if instance in failing else value

    failing = {5.0 * n for n in range(8)}
    bench = Failing(tuple(float(n) for n in range(40)), {"A": lambda n, e: (n + 1) / e, "B": lambda n, e: 2 * n + 3})
    table = train(bench, 1.0, share=0.1, workers=1)
    good = [run for run in table.runs if run.database not in failing]
    assert len(good) == 32
    for run in good:
        assert run.utilities[1] == pytest.approx((run.utilities[0][0] / 0.5, run.utilities[0][1]), rel=0.05)


def test_example_histograms_are_like_columns_of_tables() -> None:
    """Of 46 columns of public tables in 48 cells half have no less than 0.92 of their cells in use, 0.08 of the rows in
    the fullest cell, and neighbours that correlate by 0.8. Those of before had 0.58, 0.34 and 0.08."""
    shares = [cells / cells.sum() for cells in (simulated_cells([48], 1, number) for number in range(1, 101))]
    assert np.median([np.mean(share > 0) for share in shares]) > 0.85
    assert 0.05 < np.median([share.max() for share in shares]) < 0.12
    assert np.median([np.corrcoef(share[1:], share[:-1])[0, 1] for share in shares]) > 0.7
    assert np.mean([np.mean(share > 0) < 0.6 for share in shares]) > 0.05  # of few values, which leave cells between
