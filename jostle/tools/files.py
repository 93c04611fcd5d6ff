"""Reads a program's text, or refuses with one diagnostic."""

from __future__ import annotations

import sys
from pathlib import Path

from jostle.diagnostics import did_you_mean, refuse
from jostle.source import Source


def read_program(path: str | Path) -> Source:
    """The text of a program file, named as it was given; `-` is standard input. Raises `Refusal(DataError)` where it
    cannot be read."""
    try:
        if str(path) == "-":
            return Source("-", sys.stdin.read().removeprefix("\ufeff"))
        text = Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError as fault:
        raise refuse("DataError", f"there is no program `{path}`", help=_beside(Path(path))) from fault
    except UnicodeDecodeError as fault:
        raise refuse("DataError", f"`{path}` is not UTF-8 text", help="save the program as UTF-8") from fault
    except IsADirectoryError as fault:
        raise refuse("DataError", f"`{path}` is a folder, not a program") from fault
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or "the system refused"
        raise refuse("DataError", f"the program `{path}` cannot be read: {reason.lower()}") from fault
    return Source(str(path), text)


def _beside(path: Path) -> str:
    """The nearest program name in the same folder, as a hint."""
    names = [str(p) for p in path.parent.glob("*.jst")] if path.parent.is_dir() else []
    return did_you_mean(str(path), names) or "give the path of a .jst file"
