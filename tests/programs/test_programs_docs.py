"""Every block of Jostle in README.md and docs/ is a program that runs, or is refused where it says so.

The files that blocks may read are those of `programs/data` (as `data/…`) and of the language's own tests.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from chunks import Chunk, run_chunk

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```jostle\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FOLDERS = ("", "howto", "ideas", "decisions")
OURS = [ROOT / "README.md", *(page for name in FOLDERS for page in sorted((ROOT / "docs" / name).glob("*.md")))]


def blocks() -> list[Chunk]:
    found = []
    for path in OURS:
        text = path.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 2
            found.append(Chunk(path.relative_to(ROOT).as_posix(), line, match.group(1)))
    return found


@pytest.mark.parametrize("block", blocks(), ids=lambda c: f"{c.file}:{c.line}")
def test_a_block(block: Chunk, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "programs" / "data", tmp_path / "data")
    assert run_chunk(block, ROOT / "tests" / "language" / "data", tmp_path) is None


def test_links_lead_somewhere() -> None:
    """To a file, or to a page of the site that is made from the code."""
    from docs.build import made_pages

    made = {(ROOT / "docs" / place) for place in made_pages()}
    for path in OURS:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
            place = Path(os.path.normpath(path.parent / target))
            assert place.exists() or place in made, f"{path.name}: {target}"


def test_the_list_of_builtins_is_whole() -> None:
    """Every built-in stands in the reference of the language or of its module, or where its argument stands."""
    from docs.reference import builtins_page, library_page
    from jostle.language.builtins import BUILTINS

    words = {
        page: set(re.findall(r"\w+", (ROOT / "docs" / page).read_text(encoding="utf-8")))
        for page in ("language.md", "stdlib.md", "models.md")
    }
    library = words["stdlib.md"] | words["models.md"]
    told = {name: library if row.module else words["language.md"] for name, row in BUILTINS.items()}
    assert [name for name, row in BUILTINS.items() if name not in told[name] and not row.function] == []
    page = builtins_page() + "".join(library_page(path) for path in sorted((ROOT / "stdlib").glob("*.jst")))
    assert [name for name, row in BUILTINS.items() if f"### `{row.usage}` {{ #{name} " not in page] == []


def test_programs_and_modules_are_formatted() -> None:
    from jostle.source import Source
    from jostle.syntax.format import format_source

    paths = [*ROOT.glob("programs/*.jst"), *ROOT.glob("stdlib/*.jst")]
    texts = {path.name: path.read_text(encoding="utf-8") for path in paths}
    assert [name for name, text in texts.items() if format_source(Source(name, text)) != text] == []
