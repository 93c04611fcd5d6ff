"""The documents as static pages: `python -m docs.build [FOLDER] [--no-gallery]` (needs `pip install mkdocs Pygments`).

Beside the pages of this folder, and made anew each time: a reference of the standard library from the comments of its
modules, an index of the built-in functions, and a gallery of `programs/` with the pictures that they draw (a few
minutes, since each program runs). MkDocs reads this file as its hook (`.ci/mkdocs.yml`); a link that leads nowhere
fails the build.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
QUICK = "JOSTLE_DOCS_QUICK"  # set: the gallery shows programs without running them
# Smaller settings than a program's own, for pictures in a minute.
SETTINGS: dict[str, dict[str, str]] = {
    "dpcomp": {"cells_in_all": "64", "many": "100"},
    "figure_1_cgm": {"largest": "10000", "variables": "6", "values": "5"},
    "figure_2_cgm": {"largest": "10000", "variables": "6", "values": "5"},
    "figure_2_dpem": {"epsilons": "two"},
    "figure_3_cgm": {"rows": "5000", "variables": "5", "values": "5"},
    "figure_4_4": {"repeats": "1", "steps": "2"},
    "pythia": {"cells_in_all": "64"},
}
# A definition at the start of a line, with what stands between its parentheses; or a name that is given a value.
DEFINED = re.compile(r"^def (\w+)\(((?:[^()]|\([^()]*\))*)\)|^([A-Za-z_]\w*) = ", re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """Definitions of a module that one comment is about: `signatures` as written, `words` the comment as a text."""

    signatures: tuple[str, ...]
    words: str


def module_parts(text: str) -> tuple[str, list[Part]]:
    """The opening comment of a module, and its definitions; those right below one another share their comment."""
    blocks = [block for block in re.split(r"\n{2,}", text.strip()) if not block.startswith("external ")]
    opening = _comment(blocks[0]) if blocks else ""
    parts = []
    for block in blocks[1:] if opening else blocks:
        found = [_signature(match) for match in DEFINED.finditer(block)]
        if found:
            parts.append(Part(tuple(found), _comment(block)))
    return opening, parts


def _signature(match: re.Match[str]) -> str:
    return match[3] or f"{match[1]}({re.sub(chr(92) + 's+', ' ', match[2])})"


def _comment(block: str) -> str:
    """The comment that a block begins with; an empty line of it parts paragraphs."""
    lines = []
    for line in block.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("#").strip())
    return "\n".join(lines)


def library_page(path: Path) -> str:
    """The reference of one module."""
    from jostle.language.builtins import BUILTINS, brought

    opening, parts = module_parts(path.read_text(encoding="utf-8"))
    out = [f"# `use {path.stem}`", "", _plain(opening), ""]
    for part in parts:
        out += ["```jostle", *part.signatures, "```", "", _plain(part.words), ""]
    of_language = [BUILTINS[name] for name in brought((path.stem,))]
    if of_language:
        out += ["## Built-ins that `use` brings", "", "| | |", "|---|---|"]
        out += [f"| `{row.usage}` | {row.about} |" for row in of_language]
    return "\n".join(out)


def _plain(words: str) -> str:
    """Words of a comment as Markdown: stars and angles that mean themselves are kept from meaning something."""
    return re.sub(r"(?<![\w*])\*(?![\w*])|[<>]", lambda m: {"<": "&lt;", ">": "&gt;"}.get(m[0], r"\*"), words)


def builtins_page() -> str:
    """Each built-in by its row of the table, with the section of the guides that tells of it."""
    from jostle.language.aggregates import AGGREGATES, DISTINCT
    from jostle.language.builtins import BUILTINS

    opening = "Known without `use`, but for those of a module; the last column is where they are explained."
    out = ["# Built-in functions", "", opening, "", "| | | effect | `use` | |", "|---|---|---|---|---|"]
    sections = [*_sections("language.md"), *_sections("stdlib.md")]
    for name in sorted(BUILTINS, key=str.lower):
        row = BUILTINS[name]
        said = next(((page, head) for page, head, text in sections if re.search(rf"`[^`\n]*\b{name}\b", text)), None)
        where = f"[{said[1]}](../{said[0]}#{_anchor(said[1])})" if said else f"`jostle/privacy/{row.file}`"
        module = f"`{row.module}`" if row.module else ""
        out.append(f"| `{row.usage}` | {row.about} | {row.effect.value} | {module} | {where} |")
    out += ["", "## Aggregates of a select", "", "| | | |", "|---|---|---|"]
    for entry in (*AGGREGATES.values(), *DISTINCT.values()):
        out.append(f"| `{entry.usage}` | {entry.about} | [measured](../privacy/aggregates.md) |")
    return "\n".join([*out, ""])


def aggregates_table() -> str:
    """A line an aggregate: what it measures and why its sensitivity is what it is, from the words of its file."""
    from jostle.privacy.measurements.aggregates.registry import AGGREGATES

    out = ["| aggregate | what is measured | sensitivity | mechanism | why |", "|---|---|---|---|---|"]
    for aggregate in AGGREGATES.values():
        words = sys.modules[aggregate.__module__].__doc__ or ""
        cells = dict(re.findall(r"^\*(\w+)\* (.+?)\.$", words, re.MULTILINE))
        argument = " | ".join(cells[name] for name in ("Measures", "Sensitivity", "Mechanism", "Why"))
        out.append(f"| `{aggregate.row.usage}` | {argument} |")
    return "\n".join(out) + "\n"


def _sections(page: str) -> Iterator[tuple[str, str, str]]:
    """Page, heading and text of each section."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for section in re.split(r"^#{2,3} ", text, flags=re.MULTILINE)[1:]:
        head, _, rest = section.partition("\n")
        yield page, head.strip(), rest


def _anchor(heading: str) -> str:
    from markdown.extensions.toc import slugify

    return slugify(re.sub(r"[`*]", "", heading), "-")


def gallery_page(pictures: dict[str, list[str]]) -> str:
    """The programs, each with its opening words, its pictures and its text."""
    opening = (
        "Each runs as it stands, `jostle run programs/NAME.jst --pictures FOLDER`; the pictures here were drawn when "
        "these pages were built, some with smaller settings."
    )
    out = ["# Programs", "", opening, ""]
    for path in sorted((ROOT / "programs").glob("*.jst")):
        text = path.read_text(encoding="utf-8")
        out += [f"## {path.stem}", "", _plain(_comment(text)), ""]
        out += [f"![{name}](pictures/{name})" for name in pictures.get(path.stem, [])]
        out += ["", f"```jostle\n{text.rstrip()}\n```", ""]
    return "\n".join(out)


def draw(folder: Path) -> dict[str, list[str]]:
    """Runs every program that plots, and draws into a folder; the names of the files by program."""
    from jostle.tools.session import Session
    from jostle.trace.pictures import file_names

    drawn = {}
    for path in sorted((ROOT / "programs").glob("*.jst")):
        text = path.read_text(encoding="utf-8")
        unwritten = "data/packages/" in text and not (ROOT / "programs" / "data" / "packages").exists()
        if "plot(" not in text or unwritten:  # see programs/data/README.md
            continue
        print(f"  {path.name}", file=sys.stderr, flush=True)
        pictures = Session(cwd=ROOT).run(path, **SETTINGS.get(path.stem, {})).pictures
        drawn[path.stem] = [f"{path.stem}_{name}" for name in file_names(pictures)]
        for picture, name in zip(pictures, drawn[path.stem], strict=True):
            picture.save(folder / name)
    return drawn


# What MkDocs calls --------------------------------------------------------------------------------


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that are made, and the colours of programs."""
    from mkdocs.structure.files import File
    from pygments.formatters import HtmlFormatter

    def add(place: str, content: str | bytes) -> None:
        files.append(File.generated(config, place, content=content))

    for path in sorted((ROOT / "stdlib").glob("*.jst")):
        add(f"reference/{path.stem}.md", library_page(path))
    add("reference/builtins.md", builtins_page())
    add("index.md", (ROOT / "README.md").read_text(encoding="utf-8").replace("](docs/", "]("))
    add("changelog.md", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        drawn = {} if os.environ.get(QUICK) else draw(Path(name))
        for picture in sorted(Path(name).iterdir()):
            add(f"pictures/{picture.name}", picture.read_bytes())
    add("gallery.md", gallery_page(drawn))
    add("colours.css", HtmlFormatter(style="default").get_style_defs(".codehilite"))
    return files


def on_page_markdown(text: str, page: Any, config: Any, files: Any) -> str:
    """A link to a file of the repository that is no page becomes its name; the table of aggregates is made anew."""
    if page.file.src_uri == "privacy/aggregates.md":
        text = re.sub(r"^\| aggregate \| what.*?\n(?=\n)", lambda _: aggregates_table(), text, flags=re.M | re.S)
    here = (ROOT / "docs" / page.file.src_uri).parent
    pages = {file.src_uri for file in files}

    def replaced(link: re.Match[str]) -> str:
        words, target = link[1], link[2]
        if "://" in target or target.startswith("#"):
            return link[0]
        path = Path(os.path.normpath(here / target.partition("#")[0]))
        base = ROOT if page.file.src_uri == "index.md" else ROOT / "docs"
        inside = path.is_relative_to(ROOT / "docs") and path.relative_to(ROOT / "docs").as_posix() in pages
        exists = path.exists() or (base / target).exists()
        if inside or not exists:
            return link[0]  # a page, or a link that leads nowhere, which MkDocs shall find
        return words

    return re.sub(r"(?<!!)\[([^\]\n]+)\]\(([^)\s]+)\)", replaced, text)


def main() -> int:
    """Builds the pages; the status of MkDocs."""
    words = argparse.ArgumentParser(prog="python -m docs.build", description="The documents as static pages.")
    words.add_argument("folder", nargs="?", default="build/site", help="where the pages go (build/site)")
    words.add_argument("--no-gallery", action="store_true", help="do not run the programs for their pictures")
    asked = words.parse_args()
    if asked.no_gallery:
        os.environ[QUICK] = "1"
    try:
        from mkdocs.commands.build import build
        from mkdocs.config import load_config
    except ImportError:
        print("the pages are built by MkDocs: pip install mkdocs Pygments", file=sys.stderr)
        return 1
    from mkdocs.exceptions import Abort

    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    config = load_config(str(ROOT / ".ci" / "mkdocs.yml"), site_dir=str(Path(asked.folder).resolve()), strict=True)
    try:
        build(config)
    except Abort:
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
