"""Well-known analyses of other systems, each said as one would wish, run on synthetic data and compared with pandas."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from answers import faults
from generated import write
from listing import HERE, analyses, programs, table

from jostle.source import Source
from jostle.tools.session import Session

SYSTEMS = sorted(path.stem for path in HERE.glob("exact_*.py"))
EXACT = {name: function for system in SYSTEMS for name, function in vars(importlib.import_module(system)).items()}


@pytest.fixture(scope="session")
def frames(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, pd.DataFrame]]:
    folder = tmp_path_factory.mktemp("ports")
    return folder, write(folder)


@pytest.mark.parametrize("path", programs(), ids=lambda path: path.stem)
def test_a_program_of_another_system(path: Path, frames: tuple[Path, dict[str, pd.DataFrame]]) -> None:
    folder, tables = frames
    source = Source(str(folder / path.name), path.read_text("utf-8"))
    session = Session(cwd=folder)
    assert not session.check(source)
    result = session.attempt(source)
    assert result.ok, [str(fault) for fault in result.diagnostics]
    listed = {one.name: one for one in analyses(path)}
    expected: dict[str, Any] = EXACT[path.stem](tables)
    assert set(listed) == set(expected) == set(result.released), "an analysis is not released, or not expected"
    wrong = [f"{name}: {fault}" for name in expected for fault in faults(expected[name], result.released[name])]
    wrong += [
        f"{name}: {stability} rows were charged, and {listed[name].rows} are said"
        for name, stability in charged(result.events).items()
        if stability != listed[name].rows
    ]
    assert not wrong, "\n".join(wrong)


def charged(events: list[Any]) -> dict[str, int]:
    """The rows of one person that each release was charged for: the most of the measurements before it."""
    rows: dict[str, int] = {}
    waiting = [0]
    for event in events:
        if event.kind == "measure" and "stability" in event.fields:
            waiting.append(event.fields["stability"])
        elif event.kind == "release":
            rows[event.name], waiting = max(waiting), [0]
    return rows


def test_the_table_says_what_the_programs_say() -> None:
    assert (HERE / "README.md").read_text("utf-8") == table()
    everything = [one for path in programs() for one in analyses(path)]
    assert len(everything) >= 150
    assert len({(one.program, one.name) for one in everything}) == len(everything)
