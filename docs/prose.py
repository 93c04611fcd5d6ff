"""Comments of programs and modules as Markdown, for the pages that are made from them."""

from __future__ import annotations

import itertools
import re


def comment(block: str) -> list[str]:
    """The lines of the comment that a block begins with, without `#` and one blank."""
    lines = []
    for line in block.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line[1:].removeprefix(" ").rstrip())
    return lines


def markdown(lines: list[str]) -> str:
    """Lines of a comment as Markdown: commands, which are indented, become a block of their own."""
    out = []
    for commands, group in itertools.groupby(lines, lambda line: line.startswith("    ")):
        words = list(group)
        if commands:
            out.append("\n".join(["```sh", *(line.removeprefix("    ") for line in words), "```"]))
        else:
            out.append("\n".join(plain(line.strip()) for line in words).strip())
    return "\n\n".join(filter(None, out))


def plain(words: str) -> str:
    """Words of a comment as Markdown: stars and angles that mean themselves are kept from meaning something."""
    return re.sub(r"(?<![\w*])\*(?![\w*])|[<>]", lambda m: {"<": "&lt;", ">": "&gt;"}.get(m[0], r"\*"), words)
