"""A bench that records what noise was given, and a session in a folder of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from recording import Bench

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
