"""How much memory the database may take: told, or from the environment, or a quarter of the machine's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jostle.__main__ import main
from jostle.diagnostics import Refusal
from jostle.plan.plan import Column, FixedSum, Real, Scan
from jostle.readers.duckdb import LocalDuckDb
from jostle.readers.limits import memory_limit
from jostle.tools.session import Session


def test_the_limit_is_what_is_told_before_the_environment_before_a_quarter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOSTLE_MEMORY", raising=False)
    assert memory_limit(None) == "25%"
    monkeypatch.setenv("JOSTLE_MEMORY", "1.5 GiB")
    assert memory_limit(None) == "1.5GiB" and memory_limit(" 300mb ") == "300mb"
    engine = LocalDuckDb()
    assert engine.fetch("SELECT current_setting('memory_limit')") == [("1.5 GiB",)]
    engine.close()


@pytest.mark.parametrize("size", ["2", "0GB", "-1GB", "101%", "lots", "1e9 B", "nan%"])
def test_what_is_no_size_is_refused(
    size: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Refusal, match="no size of memory"):
        Session(memory=size)
    assert main(["run", "p.jst", f"--memory={size}"]) == 2
    assert "no size of memory" in capsys.readouterr().err
    monkeypatch.setenv("JOSTLE_MEMORY", size)
    with pytest.raises(Refusal):
        Session()


def test_columns_of_reals_make_room_for_those_that_are_asked_about_now(tmp_path: Path) -> None:
    rows, path = 1000, tmp_path / "t.parquet"
    random = np.random.default_rng(1)
    cells = {name: random.uniform(-1.0, 2.0, rows).round(2) for name in "abc"}
    pq.write_table(pa.table(cells), path)
    engine = LocalDuckDb()
    engine._room = 8 * 2 * rows  # of one column and the numbers of its rows
    scan = Scan(engine.open(path, public=False).key, tuple((name, Real(0.0, 1.0)) for name in cells))

    def ask(*names: str) -> None:
        terms = tuple(FixedSum(Column(name), 0.0, 1.0, 7) for name in names)
        expected = [int(np.rint(np.clip(cells[name], 0.0, 1.0) * 2**7).sum()) for name in names]
        assert [int(total) for total in engine.group(scan, (), terms)] == expected

    def stored() -> set[str]:
        return {name for (name,) in engine.fetch("SELECT table_name FROM duckdb_tables()")}

    tables = []
    for name in "aba":
        for _ in range(3):
            ask(name)
            engine.rest()
        (table,) = stored()
        tables.append(table)
    assert len(set(tables)) == 3
    for _ in range(4):  # what does not fit alone takes no room from others, and what is in use stays meanwhile
        ask("a", "b", "c")
        ask("a")
        engine.rest()
    assert stored() == {tables[-1]}
    for _ in range(4):  # nothing is freed between two questions of a program
        ask("b")
    assert stored() == {tables[-1]}
    engine.close()
