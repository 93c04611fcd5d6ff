"""A few crossed programs, and specimens that they convict. `python -m tests.crosses` runs as many as wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from cross_oracle import opened

from jostle.privacy.mechanisms.additive import Additive
from jostle.readers import arrowcells
from jostle.readers.duckdb import LocalDuckDb


def test_crossed_programs_hold() -> None:
    with opened() as crosses:
        runs = [crosses.run(seed) for seed in range(24)]
    assert [(one.what, one.detail, one.seed) for run in runs for one in run.breaks] == []
    assert sum(run.how == "ran" for run in runs) >= 8


def half_of_the_noise(patch: pytest.MonkeyPatch) -> None:
    """Noise for half of what a row can move."""
    law = Additive.law
    patch.setattr(Additive, "law", lambda self, l1, l2: law(self, l1 / 2, l2 / 2))


def types_of_rows(patch: pytest.MonkeyPatch) -> None:
    """Columns without rows are texts, whatever they are described as."""
    import pyarrow as pa

    whole = arrowcells.cells

    def of_rows(column: Any) -> Any:
        return whole(column) if len(column) else pa.chunked_array([pa.nulls(0, pa.string())])

    patch.setattr(arrowcells, "cells", of_rows)


def a_row_that_fails(patch: pytest.MonkeyPatch) -> None:
    """An engine that cannot add up more than a few rows."""
    group = LocalDuckDb.group

    def failing(self: LocalDuckDb, *arguments: Any) -> Any:
        numbers = group(self, *arguments)
        if any(abs(int(n)) > 6 for array in numbers for n in array.ravel().tolist()):
            raise ValueError("too many")
        return numbers

    patch.setattr(LocalDuckDb, "group", failing)


SPECIMENS: tuple[tuple[Callable[[pytest.MonkeyPatch], None], str, int], ...] = (
    (half_of_the_noise, "more is lost than is charged", 0), (types_of_rows, "neighbours look different", 1000),
    (a_row_that_fails, "a fault after a charge", 0),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.plants_faults
@pytest.mark.parametrize(("specimen", "what", "first"), SPECIMENS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_specimen_is_convicted(
    specimen: Callable[[pytest.MonkeyPatch], None], what: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    specimen(monkeypatch)
    with opened() as crosses:
        assert any(what in one.what for seed in range(first, first + 200) for one in crosses.run(seed).breaks)
