"""The page of each kind of diagnostic, error or warning: what it means, a program that meets it, and the way out.

The pages themselves stand in `pages.py`; this lays them out. The tests run every example and every mended program.
"""

from __future__ import annotations

import textwrap

from jostle.diagnostics import KINDS, WARNINGS
from jostle.tools.pages import PAGES
from jostle.tools.warning_pages import WARNING_PAGES

ALL = PAGES | WARNING_PAGES

_WIDTH = 88


def page(kind: str) -> str:
    """The page of a kind, as text. Raises `KeyError` for a word that is no kind."""
    this = ALL[kind]
    parts = [kind, "=" * len(kind), "", *_paragraphs(this.meaning), "For example:", "", _program(this.example), ""]
    parts += _paragraphs(this.way_out)
    if this.mended:
        parts += ["Mended:", "", _program(this.mended), ""]
    if kind in WARNINGS:
        parts += _paragraphs(f"It stops nothing. `# jostle: allow {kind}` on a line of its own switches it off in a "
                             f"program, at the end of a line there, and `--allow {kind}` in a run.")  # fmt: skip
    return "\n".join(parts).rstrip() + "\n"


def index() -> str:
    """All kinds of errors and all warnings, a line each."""
    wide = max(map(len, ALL))
    errors, warnings = ([f"  {kind.ljust(wide)}  {ALL[kind].brief}" for kind in of] for of in (KINDS, WARNINGS))
    return "\n".join(["jostle explain KIND shows the page of one of", *errors, "and of the warnings", *warnings]) + "\n"


def _paragraphs(text: str) -> list[str]:
    out = []
    for part in text.strip().split("\n\n"):
        out += [textwrap.fill(" ".join(part.split()), _WIDTH), ""]
    return out


def _program(text: str) -> str:
    return textwrap.indent(text.strip("\n"), "    ")
