"""A few hundred synthetic programs, always the same: none may raise, hang, leak or overspend.

`python -m tests.fuzz` goes on with other seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from fuzz_oracle import Fault, Watch, databases, examine, watched
from fuzz_programs import conversation, program
from fuzz_soup import DEEP, soup

from jostle.privacy.kernel.exposures import Counter
from jostle.privacy.kernel.kernel import Kernel
from jostle.readers.duckdb import LocalDuckDb

PATIENT = 20.0  # seconds: the machine that runs the tests may be busy

PAID = """
private t = table("rows.csv") described by {age: 0..99} protecting rows budget epsilon 1
release n = {{ select count(*) from t with epsilon 0.5 }}
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return databases(tmp_path_factory.mktemp("fuzz"))


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Watch]:
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path / "cache"))
    yield watched(monkeypatch)


def faults(texts: list[Any], folders: tuple[Path, Path], watch: Watch) -> list[tuple[int, Fault]]:
    found = []
    for number, text in enumerate(texts):
        wrong, _ = examine(text, folders, watch, PATIENT, checked=number % 2 == 0)
        found.extend((number, fault) for fault in wrong)
    return found


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_programs(first: int, folders: tuple[Path, Path], watch: Watch) -> None:
    assert faults([program(seed) for seed in range(first, first + 20)], folders, watch) == []


@pytest.mark.parametrize("first", range(0, 30, 15))
def test_conversations(first: int, folders: tuple[Path, Path], watch: Watch) -> None:
    assert faults([conversation(seed) for seed in range(first, first + 15)], folders, watch) == []


@pytest.mark.parametrize("first", range(0, 100, 50))
def test_soup(first: int, folders: tuple[Path, Path], watch: Watch) -> None:
    assert faults([soup(seed) for seed in range(first, first + 50)], folders, watch) == []


@pytest.mark.parametrize("form", range(len(DEEP)))
def test_deep_and_large(form: int, folders: tuple[Path, Path], watch: Watch) -> None:
    assert faults([DEEP[form](300)], folders, watch) == []


# The oracle sees what it is for ------------------------------------------------------------------------


def one(text: str, folders: tuple[Path, Path], watch: Watch) -> str:
    found, _ = examine(text, folders, watch, PATIENT)
    assert found, "the fault was not seen"
    return found[0].signature


def test_a_paid_query_is_no_fault(folders: tuple[Path, Path], watch: Watch) -> None:
    found, result = examine(PAID, folders, watch, PATIENT)
    assert found == []
    assert result is not None
    assert result.ok


def test_noise_without_a_charge_is_seen(
    folders: tuple[Path, Path], watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Kernel, "_charge", lambda *_: None)
    assert one(PAID, folders, watch).startswith("unpaid")


def test_an_exact_answer_is_seen(folders: tuple[Path, Path], watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    def exactly(kernel: Kernel, select: Any, *_: object) -> Any:
        engine = kernel._reader.answers._engine  # type: ignore[attr-defined]
        inside = SimpleNamespace(exact=lambda table, *rest: engine.exact(table.plan, *rest))
        return select.request.exact(kernel, inside)

    monkeypatch.setattr(Kernel, "measure", exactly)
    text = PAID.replace("count(*)", "sum(age)")
    assert one(text, folders, watch).startswith("differs with the data: released")


def test_another_exception_is_seen(folders: tuple[Path, Path], watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise KeyError("nothing")

    monkeypatch.setattr(Kernel, "measure", broken)
    assert one(PAID, folders, watch).startswith("kind InternalError")


@pytest.mark.plants_faults
def test_a_fault_after_a_charge_is_seen(
    folders: tuple[Path, Path], watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise KeyError("nothing")

    monkeypatch.setattr(LocalDuckDb, "group", broken)
    faults = Counter.faults
    assert one(PAID, folders, watch) == "fault after a charge" and Counter.faults > faults


OPEN = """
private t = table("rows.csv") described by {age: 0..99, note: text} protecting rows budget epsilon 9, delta 1e-3
"""


@pytest.mark.parametrize("measured", [
    "{{ select count(*) as n from t groupby note with epsilon 1 delta 1e-9 }}",
    "{{ select count(distinct age) from t groupby note order by count limit 1 with epsilon 1 delta 1e-9 }}",
    "least_cost_partition(histogram(t, x = age)) with epsilon 1",
])  # fmt: skip
def test_how_many_random_numbers_a_measurement_draws_moves_no_other(
    measured: str, folders: tuple[Path, Path], watch: Watch
) -> None:
    """Of open keys as many as rows have, whether or not one is shown: what came after was taken for a difference."""
    text = f"{OPEN}use histograms\nx = {measured}\nrelease n = {{{{ select count(*) from t with epsilon 1 }}}}\n"
    found, result = examine(text, folders, watch, PATIENT)
    assert found == [] and result is not None and result.ok, (found, result and result.diagnostics)


def test_a_program_without_end_is_seen(folders: tuple[Path, Path], watch: Watch) -> None:
    found, _ = examine("for i in 1..1e12: x = i\n", folders, watch, 0.3)
    assert [fault.signature[:4] for fault in found] == ["slow"]
