"""A person of a table of PostgreSQL has one value of the column that tells persons apart, as in files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from one_value import ROWS, check_one_value_each

from jostle.tools.session import Session

KINDS: dict[str, list[Any]] = {
    "float8": [0.0, -0.0, 1.0, 7.0, 7.5, 0.1, 1e15, 1e16, 2.0**53, 1e22, 5e-324, float("nan"), float("inf"), None],
    "float4": [0.0, -0.0, 7.0, 7.5, 0.1, 16777216.0, None],
    "numeric": ["1.50", "1.5", "7.00", "7", "-0.0", "NaN", None],
    "text": ["7", "07", " 7", "7.0", "-0", "", "é", "e\u0301", "true", "2024-03-01", None],
    "bpchar": ["7", "7  ", " 7"],
    "boolean": [True, False, None], "smallint": [0, 7, -1, None],
    "date": ["2024-03-01", "0001-01-01", "infinity", None],
    "timestamp": ["2024-03-01 00:00", "2024-03-01 12:30:00.000001", "infinity", None],
    "timestamptz": ["2024-10-27 00:30+00", "2024-10-27 01:30+00", "2024-10-27 02:30+02", None],
}  # fmt: skip
QUICK = ("float8", "numeric")


@pytest.mark.parametrize("kind", [k if k in QUICK else pytest.param(k, marks=pytest.mark.slow) for k in KINDS])
def test_a_person_has_one_value_on_postgresql(
    load: Callable[..., None], session_at: Callable[[str], Session], url: str, kind: str
) -> None:
    cells = KINDS[kind] * ROWS
    load("persons_apart", {"id": (kind, cells), "v": ("int", [1] * len(cells))})
    check_one_value_each(session_at(url), 'postgres("persons_apart")')
