"""Trained models of these tests stay out of the user's own store."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> object:
    """One store a process, in a temporary folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JOSTLE_CACHE", str(tmp_path_factory.mktemp("jostle-cache")))
        yield
