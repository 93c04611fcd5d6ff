"""A registered table of a Spark cluster: known by its name, its location and its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jostle.privacy.ledger.ledger import Ledger
from jostle.source import Source
from jostle.tools.data import spent
from jostle.tools.entry import main
from jostle.tools.session import Session

COUNT = 'private f = dataset("flights")\nrelease n = {{ select count(*) from f where delay < %d with epsilon 0.5 }}\n'


@pytest.mark.slow
def test_what_is_spent_on_files_of_a_cluster_stays_spent(
    tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, ledger = tmp_path / "flights", tmp_path / "ledger.db"
    folder.mkdir()
    pq.write_table(pa.table({"delay": list(range(100)) * 3}), folder / "a.parquet")
    source = f'spark("{folder}/*.parquet")'
    words = ["--schema", "{delay: 0..99}", "--protecting", "rows", "--budget", "epsilon 3"]
    at = ["--engine", url, "--ledger", str(ledger)]

    def run(program: str) -> Any:
        with Session(engine=url, ledger=ledger, cwd=tmp_path) as session:
            return session.attempt(Source("p", program))

    def left() -> str:
        return spent(Ledger(ledger).dataset("flights"))

    assert main(["data", "register", "flights", source, *words, *at]) == 0
    first, again = run(COUNT % 50), run(COUNT % 50)
    assert first.ok and abs(first.values["n"] - 150) < 60, first.diagnostics
    assert again.values == first.values and left() == "epsilon 0.5"
    other = run(f"private f = {source} described by {{delay: 0..99}} protecting rows budget epsilon 9\n")
    assert "these data are registered as the dataset `flights`" in other.diagnostics[0].message
    assert main(["data", "register", "others", source, *words, *at]) == 1
    (folder / "a.parquet").rename(tmp_path / "copy.parquet")
    assert main(["data", "register", "copied", f'spark("{tmp_path}/copy.parquet")', *words, *at]) == 1
    pq.write_table(pa.table({"delay": list(range(100)) * 3 + [7]}), folder / "b.parquet")
    refused = run(COUNT % 50)
    assert (
        "other files" in refused.diagnostics[0].message and "jostle data update flights" in refused.diagnostics[0].help
    )
    assert main(["data", "update", "flights", *at]) == 0 and left() == "epsilon 0.5"
    assert run(COUNT % 50).ok and left() == "epsilon 1"
    capsys.readouterr()
