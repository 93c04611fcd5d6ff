"""Our own chunks: what the shared programs leave out, and the places where implementing the language left a choice."""

from __future__ import annotations

from pathlib import Path

import pytest
from chunks import Chunk, chunks_of, run_chunk

HERE = Path(__file__).resolve().parent
FILES = [*sorted(HERE.glob("*.jst")), *sorted(HERE.glob("paper/*.jst"))]
CHUNKS = [chunk for path in FILES for chunk in chunks_of(path)]


@pytest.mark.parametrize("chunk", CHUNKS, ids=lambda c: c.title)
def test_a_chunk(chunk: Chunk, tmp_path: Path) -> None:
    assert run_chunk(chunk, HERE / "data", tmp_path) is None


def test_there_are_chunks() -> None:
    assert len(CHUNKS) >= 80
