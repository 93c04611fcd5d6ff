"""How much memory a database may take for its tables and queries, before it spills to the disk."""

from __future__ import annotations

import os
import re

from jostle.diagnostics import refuse

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
