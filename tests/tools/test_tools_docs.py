"""The pages that are made from the code are whole, and all pages are built without a warning."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs import build, gallery, reference
from docs.prose import comment, markdown, plain
from jostle.documentation import documented

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("path", sorted((ROOT / "stdlib").glob("*.jst")), ids=lambda p: p.stem)
def test_the_reference_of_a_module_is_whole(path: Path) -> None:
    """Every name has its heading, a price and an example; what a module defines is what its text defines."""
    entries = [entry for entry in documented() if entry.module == path.stem]
    defined = re.findall(r"^(?:def )?([A-Za-z]\w*)(?:\(| += )", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert {entry.name for entry in entries if entry.span is not None} == set(defined)
    page = reference.library_page(path)
    assert [e.name for e in entries if f"### `{e.usage}` {{ #{e.name} " not in page] == []
    assert [e.name for e in entries if not e.example or f"```jostle\n{e.program}\n```" not in page] == []
    assert [e.name for e in entries if not e.price and e.kind != "value"] == []


def test_every_built_in_name_leads_to_where_it_is_explained() -> None:
    sections = reference.builtins_page().split("\n### ")[1:]
    assert len(sections) > 80
    unexplained = [section.splitlines()[0] for section in sections if "See " not in section]
    assert unexplained == []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, as the command builds them; one program was run."""
    pytest.importorskip("material", reason="Material for MkDocs builds the pages: pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("pages")
    gallery.draw(folder / "gallery", ["first"])
    command = [sys.executable, "-m", "docs.build", str(folder / "site"), "--gallery", str(folder / "gallery")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def test_every_page_is_built_and_has_its_place(site: Path) -> None:
    page = (site / "tutorial.html").read_text(encoding="utf-8")
    assert '<span class="kd">private</span>' in page or '<span class="k">private</span>' in page
    paths = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    written = [path.as_posix() for path in paths if path.parts[0] != "editors"]  # that is the page of an extension
    places = [place.removesuffix(".md") for place in (*written, *build.made_pages())]
    assert [place for place in places if not (site / f"{place}.html").exists()] == []
    order = (site / "index.html").read_text(encoding="utf-8")
    assert [place for place in places if f'href="{place}.html"' not in order and place != "index"] == []


def test_no_page_asks_another_host(site: Path) -> None:
    """For a script, a style, a font or an image; a link that a reader may follow is none of them."""
    asks = re.compile(
        r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=[\"']?(?:https?:)?//|@import|url\(['\"]?(?:https?:)?//"
    )
    found = [page.name for page in site.rglob("*.html") if asks.search(page.read_text(encoding="utf-8"))]
    assert found == [] and asks.search('<script src="https://elsewhere/x.js">')
    assert not asks.search((ROOT / "docs" / "assets" / "site.css").read_text(encoding="utf-8"))


def test_a_program_has_a_card_and_a_page(site: Path) -> None:
    cards = (site / "gallery" / "index.html").read_text(encoding="utf-8")
    names = [path.stem for path in gallery.programs()]
    assert [name for name in names if f'class="card" href="{name}.html"' not in cards] == []
    page = (site / "gallery" / "first.html").read_text(encoding="utf-8")
    assert "What it prints" in page and "spent 0.8 left 0.2" in page


def test_commands_of_a_comment_stand_by_themselves() -> None:
    lines = comment("# A program.\n#\n#     jostle run a.jst\n#     jostle run b.jst\n#\n# And *more*.\nx = 1\n")
    assert markdown(lines) == "A program.\n\n```sh\njostle run a.jst\njostle run b.jst\n```\n\nAnd *more*."
    assert plain("a * b < c") == r"a \* b &lt; c"
