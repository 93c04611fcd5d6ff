"""Chunks of programs: read from `.jst` files and run in one process.

A file holds chunks split by a line of `---`; each is a program of its own. One passes when it runs to its end with
its `assert`s true, or, where it has a comment `### Kind`, when it is refused by a diagnostic of that kind on that
line (`### Kind anywhere`: on any line). Nothing may be released by a refused chunk that says `### Kind …` with
`nothing` after it.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

EXPECT = re.compile(r"###\s*(\w+)(\s+anywhere)?(\s+nothing)?")


@dataclass(frozen=True)
class Expected:
    """What refuses a chunk: the kind, the line where that is fixed, and whether nothing may have been released."""

    kind: str
    line: int | None
    nothing: bool


@dataclass(frozen=True)
class Chunk:
    """One program of a file, with the line it starts at."""

    file: str
    line: int
    text: str

    @property
    def title(self) -> str:
        first = next((line.strip("#/ ") for line in self.text.splitlines() if line.strip()), "")
        return f"{self.file}:{self.line}: {first}"

    @property
    def expected(self) -> Expected | None:
        for number, line in enumerate(self.text.splitlines(), 1):
            found = EXPECT.search(line)
            if found:
                return Expected(found.group(1), None if found.group(2) else number, bool(found.group(3)))
        return None


def chunks_of(path: Path) -> list[Chunk]:
    """The chunks of one file, in order."""
    made: list[Chunk] = []
    lines: list[str] = []
    start = 1
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), "---"], 1):
        if line.strip() != "---":
            lines.append(line)
            continue
        if any(one.strip() for one in lines):
            made.append(Chunk(path.name, start, "\n".join(lines) + "\n"))
        lines, start = [], number + 1
    return made


def run_chunk(chunk: Chunk, data: Path, folder: Path, engine: str | None = None) -> str | None:
    """What is wrong with how the chunk ran, or None. `data` holds the CSV files that it may read, `engine` is a URL."""
    from jostle.source import Source
    from jostle.tools.session import Session

    for file in data.glob("*.*"):
        if file.suffix in (".csv", ".npy"):
            shutil.copy(file, folder)
    with Session(cwd=folder, engine=engine) as session:
        result = session.attempt(Source(str(folder / "chunk.jst"), chunk.text))
    want = chunk.expected
    if want is None:
        return None if result.ok else f"refused: {result.diagnostics[0]}"
    if result.ok:
        return f"ran to its end; expected {want.kind}"
    said = result.diagnostics[0]
    if said.kind != want.kind:
        return f"expected {want.kind}, got {said}"
    if want.line is not None:
        if said.span is None:
            return f"expected line {want.line}, got no place: {said.message}"
        if not said.span.line <= want.line <= said.span.end_line:
            return f"expected line {want.line}, got {said.span.line}: {said.message}"
    if want.nothing and (result.released or result.output):
        return f"refused, yet it gave {result.released or result.output}"
    return None
