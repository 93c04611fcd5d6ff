"""The fixture of the server's tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import argon2
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from serve_place import Place


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A server's home in a folder of its own. Passwords are hashed in a fraction of the usual time."""
    quick = partial(argon2.PasswordHasher, time_cost=1, memory_cost=64, parallelism=1)
    monkeypatch.setattr(argon2, "PasswordHasher", quick)
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    place = Place(tmp_path / "home")
    yield place
    place.home.close()
