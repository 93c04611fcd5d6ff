"""A bench that records what noise was given, and a session in a folder of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from changed_rows import Tables
from recording import Bench

from jostle.events import Stream
from jostle.privacy.reading.vault import kernel_over
from jostle.readers.duckdb import LocalDuckDb
from jostle.source import Source
from jostle.tools.session import Result, Session


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


@pytest.fixture
def attempt(tmp_path: Path) -> Callable[..., Result]:
    """Runs a program in an empty folder; keywords are files to write there first."""

    def call(program: str, **files: str) -> Result:
        for name, text in files.items():
            (tmp_path / f"{name}.csv").write_text(text)
        return Session(cwd=tmp_path).attempt(Source("p.jst", program))

    return call


@pytest.fixture
def tables() -> Iterator[Tables]:
    """Small tables of an engine, to compare what transformations make of neighbours."""
    engine = LocalDuckDb()
    yield Tables(*kernel_over(engine, Stream([])), engine)
    engine.close()


@pytest.fixture(autouse=True)
def unpriced(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program is refused for its price before it runs: it is the kernel that is under test."""
    monkeypatch.setattr("jostle.tools.session.Session._affordable", lambda *_: None)
