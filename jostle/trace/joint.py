"""What a trace and a plan tell of a `jointly` block: what was measured for all its selects, and what that saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jostle.trace.text import UNITS, align, number, plural

MOST = 8  # blocks that are shown


def joint_text(fields: Mapping[str, Any]) -> str:
    """In one line, of the fields of a query; nothing for any other query."""
    told = fields.get("of_alone")
    if not isinstance(told, Mapping) or not told:
        return ""
    unit = "rho" if "rho" in fields else "epsilon"
    spent, apart = (f"{UNITS[unit]} {number(fields.get(name, 0))}" for name in (unit, "apart"))
    head = f"{plural(fields.get('selects', 0), 'select')} by one measurement"
    wanted = fields.get("wanted")
    if wanted and fields.get("selects") == 1:
        return f"every answer within {number(wanted[0])}: {spent}"
    if wanted:
        return f"{head}, every answer within {' or '.join(map(number, wanted))}: {spent}, one by one about {apart}"
    mean, largest = (number(told.get(name, 0)) for name in ("mean", "largest"))
    errors = f"errors {mean} of what each would have with its part of {spent}, {largest} at most"
    least = ", none negative" if fields.get("nonnegative") else ""
    return f"{head}{least}, {errors}; one by one they would take about {apart}"


def joint_table(fields: Mapping[str, Any]) -> str:
    """The strategy: what is measured, and the share of the amount that each part has."""
    blocks = list(fields.get("strategy") or ())
    rows = [["share", "measured", "by"]]
    rows += [[number(block["share"]), block.get("of", "rows"), ", ".join(block["by"])] for block in blocks[:MOST]]
    more = int(fields.get("blocks", 0)) - len(rows) + 1
    return "\n".join([*align(rows, [True, False, False]), *([f"and {more} more"] if more > 0 else [])])
