"""How much memory a database may take for its tables and queries, and the folder that it spills the rest into.

The folders of all processes of one user stand in `jostle-spill-UID` in the system's temporary folder; each has a file
`lock` that its process keeps locked while it lives, and what a dead process left behind is removed when an engine
starts. The rows stand there in plain, but no program reads these files as a table.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jostle.diagnostics import Refusal, refuse
from jostle.engine.files import spill_root

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT]i?B|%)", re.IGNORECASE)
_QUARTER = "25%"


def memory_limit(size: str | None) -> str:
    """A size such as `2GB`, `500 MB` or `10%` of the machine's or the container's memory, in DuckDB's own spelling.

    Where `size` is None `$JOSTLE_MEMORY` holds, else a quarter. What is no size is a `ValueError`.
    """
    text = size or os.environ.get("JOSTLE_MEMORY") or _QUARTER
    parts = _SIZE.fullmatch(text.strip())
    if parts is None or not 0 < float(parts[1]) <= (100 if parts[2] == "%" else 2**40):
        help = "write it as `2GB`, `500MB` or `10%`, of the machine's memory"
        raise refuse("ValueError", f"{text!r} is no size of memory", help=help)
    return f"{parts[1]}{parts[2]}"


class SpillFolder:
    """A folder to spill into. `close` removes it; after a process that could not, the next engine does."""

    def __init__(self) -> None:
        above = spill_root()
        try:
            above.mkdir(mode=0o700, exist_ok=True)
            status = above.lstat()
        except OSError:
            raise _unusable(above) from None
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise _unusable(above)
        try:
            with _alone(above):
                _clear(above)
                self.path = tempfile.mkdtemp(dir=above)
                self._lock = _locked(Path(self.path) / "lock")
        except OSError:
            raise _unusable(above) from None

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)


@contextmanager
def _alone(above: Path) -> Iterator[None]:
    """No other process makes or removes folders meanwhile."""
    descriptor = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _locked(path: Path) -> int | None:
    """The descriptor of a lock, which lives with this process and its children; None where another has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _clear(above: Path) -> None:
    """Removes the folders that nobody holds."""
    for left in above.iterdir():
        with suppress(OSError):
            lock = _locked(left / "lock")
            if lock is not None:
                shutil.rmtree(left, ignore_errors=True)
                os.close(lock)


def _unusable(above: Path) -> Refusal:
    help = "make it yours alone (`chmod 700`), or set TMPDIR to another folder"
    return refuse("DataError", f"the folder `{above}`, for what does not fit in memory, cannot be used", help=help)
