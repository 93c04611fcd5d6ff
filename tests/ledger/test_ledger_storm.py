"""A small storm: processes that spend at once, some of them killed. The large one is a command, see `storm`."""

from __future__ import annotations

from pathlib import Path

import pytest
from storm import one_round


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_lost_in_a_small_storm(tmp_path: Path, seed: int) -> None:
    made = one_round(tmp_path, processes=4, spends=25, seed=seed)
    assert 0 < made.shown <= made.charges <= 100
    assert made.spent <= made.limit
