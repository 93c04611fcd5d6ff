"""Fixtures of the ledger's tests: a folder with or without a registered dataset, and a watch on the engine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jostle.privacy.mechanisms.additive import Linear

sys.path.insert(0, str(Path(__file__).parent))

from ledger_place import Place


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("JOSTLE_LEDGER", str(tmp_path / "elsewhere.db"))
    return Place(tmp_path, capsys)


@pytest.fixture
def owned(place: Place) -> Place:
    """With `people` registered under ε = 3."""
    place.register()
    return place


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Linear, np.ndarray]]:
    """The exact numbers of all that gets noise from here on, each with its measurement."""
    seen: list[tuple[Linear, np.ndarray]] = []
    release = Linear.release

    def recorded(linear: Linear, exact: np.ndarray, noise: object, widths: object = None) -> np.ndarray:
        seen.append((linear, exact.astype(float).ravel()))
        return release(linear, exact, noise, widths)  # type: ignore[arg-type]

    monkeypatch.setattr(Linear, "release", recorded)
    return seen


@pytest.fixture
def never_read(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Fails the test if anything asks the engine for numbers of rows."""
    from jostle.readers.duckdb import LocalDuckDb

    read: list[str] = []
    for name in ("group", "tally", "exact", "rows"):
        monkeypatch.setattr(LocalDuckDb, name, lambda self, *a, **k: read.append("read"))
    return lambda: None if not read else pytest.fail("data were read")


@pytest.fixture(autouse=True)
def unpriced(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program is refused for its price before it runs: it is the kernel that is under test."""
    monkeypatch.setattr("jostle.tools.session.Session._affordable", lambda *_: None)
