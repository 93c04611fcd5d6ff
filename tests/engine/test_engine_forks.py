"""Asked in forked processes, the engine answers what it answers in its own; so choices over tables train in several."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jostle.choice.table import workers_for
from jostle.choice.training import run_all
from jostle.events import Stream
from jostle.plan.plan import Column, Count, Integer, Key, Scan
from jostle.privacy.reading.vault import kernel_over
from jostle.readers.duckdb import LocalDuckDb
from jostle.records import replace
from jostle.source import Source
from jostle.tools.session import Session


@pytest.mark.parametrize("before", [False, True], ids=["first", "after its own process"])
def test_a_forked_process_opens_frames_and_files_again(tmp_path: Path, before: bool) -> None:
    ages = np.arange(1000) * 7 % 100
    pq.write_table(pa.table({"age": ages}), tmp_path / "people.parquet")
    (tmp_path / "people.csv").write_text("age\n" + "\n".join(map(str, ages)) + "\n")
    engine = LocalDuckDb()
    origins = [{"age": ages}, tmp_path / "people.parquet", tmp_path / "people.csv"]
    schema = (("age", Integer(0, 99)),)
    plans = 2 * [Scan(engine.open(origin, public=True).key, schema) for origin in origins]
    key = Key(Column("age"), range(100))

    def counted(place: int) -> list[int]:
        (counts,) = engine.group(plans[place], (key,), (Count(),))
        rows = np.concatenate(list(engine.vectors(plans[place], (Column("age"),), 64)))  # of tables by the database too
        assert sorted(rows[:, 0].tolist()) == sorted(ages.tolist())
        return [int(count) for count in counts]

    if before:
        counted(0)
    assert run_all(counted, len(plans), None, workers=3) == [np.bincount(ages, minlength=100).tolist()] * len(plans)
    assert counted(1) == counted(0)  # and its own process goes on


CHOICE = """
rows = Feature (data) { return log(max(1, laplace(size(data.database)))) }
Count = Option (data) { return laplace(size(data.database)) }
Sum   = Option (data) { return {{ select sum(x) from data.database }} + 30 }
close = Utility (data, answer) { return -abs(answer - {{ select count(*) from data.database }}) - 1 }
tables = [bound(t) described by {x: 0..1} for t in ["a", "b", "c"]]
choose = MkChoiceMaker among {Count, Sum} informed by {rows} trained on [{database: t} for t in tables]
    using regret_tree(depth = 1) wrt close
runs = choose.runs(epsilon = 1)
"""


def test_a_choice_over_tables_learns_the_same_in_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    learned = []
    for workers in (1, 3):
        monkeypatch.setattr("jostle.choice.table.workers_for", lambda databases, engine, many=workers: many)
        monkeypatch.setattr("jostle.choice.policy.default_folder", lambda: None)
        session = Session()
        for name, many in (("a", 4), ("b", 200), ("c", 1000)):
            session.bind(name, {"x": np.arange(many) % 2})
        session.execute(Source("p.jst", CHOICE))
        learned.append(session.names()["runs"])
    assert learned[0] == learned[1] and len(learned[0]) == 6


def test_tables_train_in_one_process_where_an_engine_does_not_fork() -> None:
    session = Session()
    session.bind("a", {"x": np.arange(9)})
    session.execute(Source("p.jst", 't = bound("a")\n'))
    data = [{"database": session.names()["t"]}]
    assert workers_for(data, kernel_over(LocalDuckDb(), Stream())[1]) is None
    engine = LocalDuckDb()
    engine.capabilities = replace(engine.capabilities, forks=False)  # type: ignore[misc]
    other = kernel_over(engine, Stream())[1]
    assert workers_for(data, other) == 1 and workers_for([{"database": 1}], other) is None
