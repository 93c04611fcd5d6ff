"""`jostle again`: prints what earlier runs released and could not hand over, or measured before they failed."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from jostle.tools.outlet import kept
from jostle.tools.render import clean, width_of
from jostle.tools.show import budget_text, released


def command(_: Namespace) -> int:
    """Each kept run in turn; it is removed when it was written to its end."""
    runs = 0
    for path, document in kept():
        sys.stdout.write(_text(document))
        sys.stdout.flush()
        path.unlink(missing_ok=True)
        runs += 1
    if not runs:
        print("nothing is kept: every run handed over what it released")
    return 0


def _text(document: dict[str, Any]) -> str:
    lines = [f"{document.get('program', '')}, {document.get('time', '')}", *document.get("output", ())]
    margins = document.get("margins") or {}
    for title in ("released", "measured"):
        values = document.get(title) or {}
        lines += ["", title if title == "released" else "measured, not released"] if values else []
        for name, value in values.items():
            shown = released(name, value, width_of(sys.stdout) - 2, margins.get(name))
            lines += ["  " + line for line in shown.split("\n")]
    if document.get("budget"):
        lines += ["", "budget", *("  " + line for line in budget_text(document["budget"]).split("\n"))]
    return "".join(clean(line).rstrip() + "\n" for line in [*lines, ""])
