"""The command line in this process, in front of a stand-in session."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import fake_session

Told = tuple[int, str, str]


@pytest.fixture
def faked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`jostle.tools.session` is the stand-in."""
    monkeypatch.setitem(sys.modules, "jostle.tools.session", fake_session)
    with warnings.catch_warnings():
        yield


@pytest.fixture
def jostle(
    faked: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Told]:
    """Runs a command line in an empty folder; `program` is written to `p.jst` first."""
    from jostle.tools.entry import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JOSTLE_DEBUG", raising=False)

    def call(*words: str, program: str | None = None) -> Told:
        if program is not None:
            Path("p.jst").write_text(program, encoding="utf-8")
        status = main(list(words))
        told = capsys.readouterr()
        return status, told.out, told.err

    return call
