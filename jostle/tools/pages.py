"""The pages of `jostle explain`: what each kind of error or warning means, a program that meets it, and the way out.

The words stand in `documentation/diagnostics.md`, a section a kind, in the order of `diagnostics.KINDS` and `WARNINGS`.
The tests run every example and every mended program, given a file `people.csv` with the columns
`person, age, sex, city, hours, gain`, and `german.csv`, whose header is `age;score`.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from msgspec import Struct

from jostle.diagnostics import KINDS, WARNINGS


class Page(Struct, frozen=True):
    """`brief` is one line; `mended` is the example put right, or empty where the way out is not a program."""

    brief: str
    meaning: str
    example: str
    way_out: str
    mended: str = ""


_PROGRAM = "```jostle\n(.+?)```\n"
_SECTION = rf"^## (\S+)\n\n\*([^\n]+)\*\n\n(.+?)\n\n{_PROGRAM}\n(.+?)\n(?:\n{_PROGRAM})?(?=\n## |\Z)"
_TEXT = Path(__file__).with_name("documentation").joinpath("diagnostics.md").read_text(encoding="utf-8")
ALL = {kind: Page(*parts) for kind, *parts in re.findall(_SECTION, _TEXT, re.MULTILINE | re.DOTALL)}
PAGES, WARNING_PAGES = ({kind: page for kind, page in ALL.items() if kind in of} for of in (KINDS, WARNINGS))
_WIDTH = 88


def page(kind: str) -> str:
    """The page of a kind, as text. Raises `KeyError` for a word that is no kind."""
    this = ALL[kind]
    parts = [kind, "=" * len(kind), "", *_paragraph(this.meaning), "For example:", "", _program(this.example), ""]
    parts += _paragraph(this.way_out)
    if this.mended:
        parts += ["Mended:", "", _program(this.mended), ""]
    if kind in WARNINGS:
        parts += _paragraph(f"It stops nothing. `# jostle: allow {kind}` on a line of its own switches it off in a "
                            f"program, at the end of a line there, and `--allow {kind}` in a run.")  # fmt: skip
    return "\n".join(parts).rstrip() + "\n"


def index() -> str:
    """All kinds of errors and all warnings, a line each."""
    wide = max(map(len, ALL))
    errors, warnings = ([f"  {kind.ljust(wide)}  {ALL[kind].brief}" for kind in of] for of in (KINDS, WARNINGS))
    return "\n".join(["jostle explain KIND shows the page of one of", *errors, "and of the warnings", *warnings]) + "\n"


def _paragraph(text: str) -> list[str]:
    return [textwrap.fill(" ".join(text.split()), _WIDTH), ""]


def _program(text: str) -> str:
    return textwrap.indent(text.strip("\n"), "    ")
