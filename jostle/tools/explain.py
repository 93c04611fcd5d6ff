"""The page of each kind of diagnostic: what it means, a program that meets it, and the way out.

The pages themselves stand in `pages.py`; this lays them out. The tests run every example and every mended program.
"""

from __future__ import annotations

import textwrap

from jostle.diagnostics import KINDS
from jostle.tools.pages import PAGES

_WIDTH = 88


def page(kind: str) -> str:
    """The page of a kind, as text. Raises `KeyError` for a word that is no kind."""
    this = PAGES[kind]
    parts = [kind, "=" * len(kind), "", *_paragraphs(this.meaning), "For example:", "", _program(this.example), ""]
    parts += _paragraphs(this.way_out)
    if this.mended:
        parts += ["Mended:", "", _program(this.mended), ""]
    return "\n".join(parts).rstrip() + "\n"


def index() -> str:
    """All kinds, a line each."""
    wide = max(map(len, KINDS))
    lines = [f"  {kind.ljust(wide)}  {PAGES[kind].brief}" for kind in KINDS]
    return "\n".join(["jostle explain KIND shows the page of one of", *lines]) + "\n"


def _paragraphs(text: str) -> list[str]:
    out = []
    for part in text.strip().split("\n\n"):
        out += [textwrap.fill(" ".join(part.split()), _WIDTH), ""]
    return out


def _program(text: str) -> str:
    return textwrap.indent(text.strip("\n"), "    ")
