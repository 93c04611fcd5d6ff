"""The checker over every conformance program: silent on those that run, right where it speaks on the others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jostle.check import check
from jostle.diagnostics import Diagnostic, Refusal
from jostle.language.builtins import BUILTINS
from jostle.source import Source
from jostle.syntax import nodes, parse
from jostle.tools.session import Session

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "conformance"
EXPECT = re.compile(r"###\s*(\w+)(\s+anywhere)?")
CHUNKS = [
    pytest.param(chunk, id=f"{path.stem}-{place}")
    for path in sorted(FOLDER.glob("*.jst"))
    for place, chunk in enumerate(re.split(r"^---[ ]*\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE))
]
CAUGHT_AT_LEAST = 34  # of 46 programs that are refused, syntax errors included

LIBRARY = {
    "histograms": "external dawa(database, queries)\ndef mwem(a, b): return 1\ndef exact(a, b): return 1\n"
    "def rmse(a, b): return 1\ndef identity(a): return 1\ndef prefixes(a): return 1\n",
    "pinq": "def noisyCount(t, e): return 1\n",
}


def load(path: tuple[str, ...]) -> nodes.Program | None:
    text = LIBRARY.get(".".join(path))
    return parse(Source(path[-1], text)) if text is not None else None


def found(chunk: str) -> list[Diagnostic]:
    try:
        program = parse(Source("chunk.jst", chunk))
    except Refusal as refusal:
        return list(refusal.diagnostics)
    before = check(program, builtins=BUILTINS, load_module=load, modules=sorted(LIBRARY))
    return before or Session(cwd=FOLDER).check(Source("chunk.jst", chunk))


def expected(chunk: str) -> tuple[str, int | None] | None:
    for line, text in enumerate(chunk.splitlines(), 1):
        match = EXPECT.search(text)
        if match:
            return match.group(1), None if match.group(2) else line
    return None


@pytest.mark.skipif(not CHUNKS, reason="the shared conformance programs are not beside this checkout")
@pytest.mark.parametrize("chunk", CHUNKS)
def test_chunk(chunk: str) -> None:
    wanted, diagnostics = expected(chunk), found(chunk)
    if wanted is None:
        assert diagnostics == []
        return
    for said in diagnostics:
        assert said.kind == wanted[0], said
        assert said.span is not None
        if wanted[1] is not None:
            assert said.span.line <= wanted[1] <= said.span.end_line


@pytest.mark.skipif(not CHUNKS, reason="the shared conformance programs are not beside this checkout")
def test_most_faults_are_found_before_anything_runs() -> None:
    faulty = [str(chunk.values[0]) for chunk in CHUNKS if expected(str(chunk.values[0]))]
    assert sum(bool(found(chunk)) for chunk in faulty) >= CAUGHT_AT_LEAST
