"""Standard output as it may be: full, closed, or without a sign for ε; and what could not be handed over there.

A sign that an output cannot show becomes one that it can. What a run released and could not print has been paid for:
it is kept in a file of this user's own, `jostle again` prints it, and it is removed when that went well.
"""

from __future__ import annotations

import codecs
import errno
import io
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

_SIGNS = {
    "ε": "e", "δ": "d", "ρ": "r", "±": "+/-", "×": "x", "–": "-", "−": "-", "…": "...", "▶": ">", "─": "-", "│": "|",
    "┌": "+", "├": "+", "└": "+", "·": ".", "█": "#", "▓": "#", "▒": "=", "░": ".", "“": '"', "”": '"', "’": "'",
}  # fmt: skip
_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EPIPE, errno.EBADF, errno.EIO, errno.EFBIG)


class _Closed(io.TextIOBase):
    """An output that was closed before this process began."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "it is closed")

    def flush(self) -> None:
        """There is nothing to write."""


def prepare() -> None:
    """Makes standard output and standard error fit for every text; one that is closed fails when it is written to."""
    codecs.register_error("jostle.plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="jostle.plain")
    sys.stdout = sys.stdout or _Closed()
    sys.stderr = sys.stderr or io.StringIO()


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_SIGNS.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


def is_of_output(fault: OSError) -> bool:
    """Whether a fault is of writing to standard output: that of a file names it, or became a refusal."""
    return fault.filename is None and fault.errno in _FAULTS


def give_up() -> None:
    """Lets go of what waits for an output that cannot be written, so that Python does not complain at its end."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def reason_of(fault: OSError) -> str:
    """What the system says, for a person."""
    return (fault.strerror or "the system refused").lower()


# What is kept ------------------------------------------------------------------------------------------


def keep(program: str, document: str) -> None:
    """Keeps the answers of a run, one JSON object, and says on standard error how to have them; prints them there
    where no file takes them."""
    named = {"program": program, "time": time.strftime("%Y-%m-%d %H:%M:%S")}
    document = json.dumps(named | json.loads(document), ensure_ascii=False)
    try:
        folder = _folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"{time.time_ns()}-{os.getpid()}.json"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(document + "\n")
    except (OSError, RuntimeError):
        sys.stderr.write(f"jostle: what this run paid for:\n{document}\n")
        return
    with suppress(OSError):  # a terminal that was closed
        sys.stderr.write(f"jostle: what this run paid for is kept in {path}; `jostle again` prints it\n")


def kept() -> Iterator[tuple[Path, dict[str, Any]]]:
    """What is kept, the oldest first."""
    try:
        places = sorted(_folder().glob("*.json"))
    except (OSError, RuntimeError):
        return
    for path in places:
        try:
            yield path, json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue


def _folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "jostle"
