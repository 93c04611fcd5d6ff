"""Every conformance program parses, or is refused where and as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jostle.diagnostics import Refusal
from jostle.source import Source
from jostle.syntax import parse

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "conformance"
EXPECT = re.compile(r"###\s*(\w+)(\s+anywhere)?")
CHUNKS = [
    pytest.param(chunk, id=f"{path.stem}-{place}")
    for path in sorted(FOLDER.glob("*.jst"))
    for place, chunk in enumerate(re.split(r"^---[ ]*\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE))
]


@pytest.mark.skipif(not CHUNKS, reason="the shared conformance programs are not beside this checkout")
@pytest.mark.parametrize("chunk", CHUNKS)
def test_chunk(chunk: str) -> None:
    expected = next(
        ((m.group(1), None if m.group(2) else line) for line, text in enumerate(chunk.splitlines(), 1)
         if (m := EXPECT.search(text))),
        None,
    )  # fmt: skip
    if expected is None or expected[0] != "SyntaxError":
        parse(Source("chunk.jst", chunk))
        return
    with pytest.raises(Refusal) as caught:
        parse(Source("chunk.jst", chunk))
    said = caught.value.first
    assert said.kind == "SyntaxError" and said.span is not None
    if expected[1] is not None:
        assert said.span.line <= expected[1] <= said.span.end_line
