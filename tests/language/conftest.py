"""Trained models and ledgers of these tests stay away from the user's own."""

from __future__ import annotations

import pytest
from chunks import shared_cache


@pytest.fixture(autouse=True, scope="session")
def own_files(tmp_path_factory: pytest.TempPathFactory) -> object:
    """One store for this run of the tests, and no ledger."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JOSTLE_CACHE", str(shared_cache(tmp_path_factory)))
        patch.setenv("JOSTLE_LEDGER", str(tmp_path_factory.mktemp("jostle-ledger") / "ledger"))
        yield
