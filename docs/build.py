"""The documents as static pages: `python -m docs.build [FOLDER]` (needs `pip install mkdocs-material`).

Beside the pages of this folder, and made anew each time: the reference (`docs/reference.py`) and the gallery of
programs (`docs/gallery.py`), which run for their pictures where `--gallery FOLDER` does not hold them already. MkDocs
reads this file as its hook (`.ci/mkdocs.yml`, which has the order of the pages); a link that leads nowhere fails the
build.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # MkDocs loads this file by its path

from docs import gallery, reference  # noqa: E402

DRAWN = "JOSTLE_DOCS_GALLERY"  # the folder of the programs' output and pictures
# Pages whose text stands elsewhere in the repository, and the folder that their links start from.
ELSEWHERE = {"changelog.md": ROOT / "CHANGELOG.md"}
# What a reader looks for comes before why it is so: weights of a folder or a page in the search.
WEIGHTS = {
    "howto/": 12.0, "start.md": 3.0, "tutorial.md": 3.0, "reference/": 3.0, "gallery/": 1.0, "privacy/": 0.2,
    "decisions/": 0.2, "experiments/": 0.2, "contributing/": 0.3, "changelog.md": 0.1, "architecture.md": 0.3, "": 2.0,
}  # fmt: skip


@cache
def runs() -> dict[str, gallery.Run]:
    """What the programs printed and drew, where they were run."""
    folder = os.environ.get(DRAWN)
    return gallery.load(Path(folder) if folder else None)


def made_pages() -> dict[str, Callable[[], str]]:
    """The pages that are made, by place, each with what makes it."""
    pages: dict[str, Callable[[], str]] = {
        "howto/index.md": questions_page,
        "reference/builtins.md": reference.builtins_page,
        "reference/aggregates.md": reference.aggregates_page,
        "reference/words.md": reference.words_page,
        "reference/commands.md": reference.commands_page,
        "reference/python.md": reference.python_page,
        "reference/messages.md": reference.messages_page,
        "gallery/index.md": lambda: gallery.index_page(runs()),
    }
    for path in sorted((ROOT / "stdlib").glob("*.jst")):
        pages[f"reference/library/{path.stem}.md"] = lambda path=path: reference.library_page(path)
    for path in gallery.programs():
        pages[f"gallery/{path.stem}.md"] = lambda path=path: gallery.program_page(path, runs())
    pages["changelog.md"] = lambda: (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return pages


def questions_page() -> str:
    """The questions of the how-to pages, in their order."""
    opening = "Each answer is a program that runs as it stands, on the synthetic data of `programs/data`."
    out = ["# How do I …?", "", opening, ""]
    for name in ("numbers", "rows", "tables", "statistics", "training", "histograms", "budgets", "streams", "results"):
        text = (ROOT / "docs" / "howto" / f"{name}.md").read_text(encoding="utf-8")
        out += [f"## [{re.search(r'^# (.+)$', text, re.MULTILINE)[1]}]({name}.md)", ""]  # type: ignore[index]
        heads = re.findall(r"^## (.+)$", text, re.MULTILINE)
        out += [f"- [{head}]({name}.md#{reference.anchor(head)})" for head in heads] + [""]
    return "\n".join(out)


# What MkDocs calls --------------------------------------------------------------------------------


def on_config(config: Any) -> Any:
    """A line of the order that ends in `/` becomes the pages of that folder which no other line names."""
    written = sorted((ROOT / "docs").rglob("*.md"))
    pages = [*made_pages(), *(path.relative_to(ROOT / "docs").as_posix() for path in written)]
    named = set(_named(config.nav))
    config.nav = _whole(config.nav, [page for page in pages if page not in named])
    return config


def _named(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for item in nav.values() if isinstance(nav, dict) else nav:
            yield from _named(item)


def _whole(nav: Any, others: list[str]) -> Any:
    if isinstance(nav, dict):
        return {title: _whole(item, others) for title, item in nav.items()}
    if isinstance(nav, list):
        items = [[p for p in others if p.startswith(i)] if isinstance(i, str) and i.endswith("/") else [i] for i in nav]
        return [_whole(item, others) for some in items for item in some]
    return nav


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that are made, and the pictures of the programs."""
    from mkdocs.structure.files import File

    for place, page in made_pages().items():
        files.append(File.generated(config, place, content=page()))
    for run in runs().values():
        for name in run.pictures:
            picture = Path(os.environ[DRAWN], name).read_text(encoding="utf-8")
            files.append(File.generated(config, f"pictures/{name}", content=picture))
    return files


def on_page_markdown(text: str, page: Any, config: Any, files: Any) -> str:
    """Weighs the page; makes the table of aggregates anew; leads links to where a file stands on these pages."""
    place = page.file.src_uri
    page.meta["search"] = {"boost": next(weight for start, weight in WEIGHTS.items() if place.startswith(start))}
    if place == "privacy/aggregates.md":
        table = reference.aggregates_table()
        text = re.sub(r"^\| aggregate \| what.*?\n(?=\n)", lambda _: table, text, flags=re.M | re.S)
    if place == "index.md":
        page.meta["hide"] = ["navigation", "toc"]
    if place == "gallery/index.md":
        page.meta["hide"] = ["toc"]
    here = ELSEWHERE.get(place, ROOT / "docs" / place).parent
    pages = {file.src_uri for file in files}

    def replaced(link: re.Match[str]) -> str:
        words, target = link[1], link[2]
        if "://" in target or target.startswith("#"):
            return link[0]
        name, _, anchor = target.partition("#")
        path = Path(os.path.normpath(here / name))
        shown = _shown(path)
        if shown in pages:
            way = os.path.relpath(shown, os.path.dirname(place) or ".")
            return f"[{words}]({way}{'#' + anchor if anchor else ''})"
        return words if path.exists() else link[0]  # MkDocs finds what leads nowhere

    return re.sub(r"(?<!!)\[([^\]\n]+)\]\(([^)\s]+)\)", replaced, text)


def _shown(path: Path) -> str:
    """The place of the page that shows a file of the repository; empty for a file outside it."""
    if not path.is_relative_to(ROOT):
        return ""
    inside = path.relative_to(ROOT)
    if inside.parts[:1] == ("programs",) and path.suffix == ".jst":
        return f"gallery/{path.stem}.md"
    if inside.parts[:1] == ("stdlib",) and path.suffix == ".jst":
        return f"reference/library/{path.stem}.md"
    return next((place for place, text in ELSEWHERE.items() if text == path), inside.as_posix().removeprefix("docs/"))


def on_page_content(text: str, page: Any, config: Any, files: Any) -> str:
    """Drawings take their places; a stroke in the code of a table is escaped for others, and plain here."""
    text = re.sub(r"<code>([^<]*)\\\|", r"<code>\1|", text)
    folder = os.environ.get(DRAWN, "")
    return re.sub(r"@picture (\S+)@", lambda mark: Path(folder, mark[1]).read_text(encoding="utf-8"), text)


def main() -> int:
    """Builds the pages; the status of MkDocs."""
    words = argparse.ArgumentParser(prog="python -m docs.build", description="The documents as static pages.")
    words.add_argument("folder", nargs="?", default="build/site", help="where the pages go (build/site)")
    words.add_argument("--no-gallery", action="store_true", help="neither run the programs nor show pictures of them")
    words.add_argument("--gallery", metavar="FOLDER", help="what `python -m docs.gallery FOLDER` wrote")
    asked = words.parse_args()
    try:
        from mkdocs.commands.build import build
        from mkdocs.config import load_config
        from mkdocs.exceptions import Abort
    except ImportError:
        print("the pages are built by Material for MkDocs: pip install mkdocs-material", file=sys.stderr)
        return 1
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    with tempfile.TemporaryDirectory() as name:
        if asked.gallery or not asked.no_gallery:
            if not asked.gallery:
                gallery.draw(Path(name))
            os.environ[DRAWN] = str(Path(asked.gallery or name).resolve())
        config = load_config(str(ROOT / ".ci" / "mkdocs.yml"), site_dir=str(Path(asked.folder).resolve()), strict=True)
        try:
            build(config)
        except Abort:
            return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
