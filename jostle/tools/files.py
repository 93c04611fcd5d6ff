"""Reads a program's text, or refuses with one diagnostic; and the file that a misspelt path means."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from jostle.diagnostics import did_you_mean, refuse
from jostle.source import Source

_DATA = (".csv", ".tsv", ".parquet", ".jsonl", ".arrow", ".feather", ".xlsx", ".db", ".csv.gz")


def read_program(path: str | Path) -> Source:
    """The text of a program file, named as it was given; `-` is standard input. Raises `Refusal(DataError)` where it
    cannot be read."""
    if str(path).endswith(_DATA) and Path(path).exists():
        help = f"write a program for it: `jostle init {path}`"
        raise refuse("DataError", f"`{path}` is a file of data, not a program", help=help)
    try:
        if str(path) == "-":
            return Source("-", sys.stdin.read().removeprefix("\ufeff"))
        text = Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError as fault:
        raise refuse("DataError", f"there is no program `{path}`", help=_program(str(path))) from fault
    except UnicodeDecodeError as fault:
        raise refuse("DataError", f"`{path}` is not UTF-8 text", help="save the program as UTF-8") from fault
    except IsADirectoryError as fault:
        raise refuse("DataError", f"`{path}` is a folder, not a program", help="name a .jst file in it") from fault
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or "the system refused"
        raise refuse("DataError", f"the program `{path}` cannot be read: {reason.lower()}") from fault
    return Source(str(path), text)


def _program(path: str) -> str:
    return misspelt(path, [Path()], "*.jst", 0.6) or "give the path of a .jst file"


def misspelt(path: str, folders: Sequence[Path], pattern: str = "*", cutoff: float = 0.8) -> str:
    """`did you mean `x`?`, for a file beside the one that a path would name in one of the folders, or an empty text."""
    if "\0" in path:
        return ""
    names = {file.name for folder in folders for file in (folder / path).parent.glob(pattern)}
    return did_you_mean(path, [str(Path(path).with_name(name)) for name in sorted(names)], cutoff)
