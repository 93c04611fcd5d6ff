"""The shared conformance programs, all in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from chunks import Chunk, chunks_of, run_chunk

SHARED = Path(__file__).resolve().parents[3] / "shared" / "conformance"
CHUNKS = [chunk for path in sorted(SHARED.glob("*.jst")) for chunk in chunks_of(path)]


@pytest.mark.skipif(not CHUNKS, reason="the shared conformance programs are not beside this checkout")
@pytest.mark.parametrize("chunk", CHUNKS or [None], ids=lambda c: c.title if c is not None else "none")
def test_a_conformance_chunk(chunk: Chunk, tmp_path: Path) -> None:
    assert run_chunk(chunk, SHARED, tmp_path) is None
