"""Where a ledger is: a path of a file, or the URL of a PostgreSQL database."""

from __future__ import annotations

import os
from pathlib import Path

from jostle.privacy.ledger.file import LedgerFile
from jostle.privacy.ledger.postgres import SCHEMES, LedgerDatabase
from jostle.privacy.ledger.store import Store


def default_place() -> str | Path:
    """`$JOSTLE_LEDGER`, else `jostle/ledger.db` in `$XDG_DATA_HOME` or `~/.local/share`; who has no home has none."""
    own = os.environ.get("JOSTLE_LEDGER")
    if own:
        return own
    base = os.environ.get("XDG_DATA_HOME")
    try:
        return (Path(base) if base else Path.home() / ".local" / "share") / "jostle" / "ledger.db"
    except RuntimeError:
        return Path(os.devnull) / "ledger.db"


def store_at(place: str | Path, timeout: float) -> Store:
    """The ledger there; nothing is opened."""
    if isinstance(place, str) and place.startswith(SCHEMES):
        return LedgerDatabase(place, timeout)
    return LedgerFile(place, timeout)
