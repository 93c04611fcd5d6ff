"""What a trace and a plan tell of a `jointly` block: what was measured for all its selects, and what that saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jostle.trace.text import align, number, plural

MOST = 8  # blocks that are shown


def joint_text(fields: Mapping[str, Any]) -> str:
    """In one line, of the fields of a query; nothing for any other query."""
    told = fields.get("of_alone")
    if not isinstance(told, Mapping) or not told:
        return ""
    mean, largest = (number(told.get(name, 0)) for name in ("mean", "largest"))
    selects, blocks = (plural(fields.get(f"{what}s", 0), what) for what in ("select", "block"))
    return f"{selects} from {blocks}, errors {mean} of those with equal parts ({largest} at most)"


def joint_table(fields: Mapping[str, Any]) -> str:
    """The strategy: what is measured, and the share of the amount that each part has."""
    blocks = list(fields.get("strategy") or ())
    rows = [["share", "groups by"]]
    rows += [[number(block["share"]), ", ".join(block["by"]) or "nothing: all rows"] for block in blocks[:MOST]]
    more = int(fields.get("blocks", 0)) - len(rows) + 1
    return "\n".join([*align(rows, [True, False]), *([f"and {more} more"] if more > 0 else [])])
