"""Shows pictures in terminals that speak one of two image protocols; elsewhere a line names the picture.

Kitty's protocol (kitty, Ghostty, WezTerm, Konsole) and iTerm2's (iTerm2, WezTerm, mintty).
"""

from __future__ import annotations

import base64
import io
import os
import sys

from jostle.diagnostics import Refusal
from jostle.events import Event
from jostle.tools.render import clean
from jostle.trace.pictures import Picture

_CHUNK = 4096  # characters of one escape of kitty's protocol


def protocol(environment: dict[str, str] | None = None) -> str | None:
    """`kitty`, `iterm`, or None where the terminal shows no pictures as far as its environment tells."""
    variables = dict(os.environ) if environment is None else environment
    if variables.get("TMUX") or variables.get("STY"):
        return None
    program = variables.get("TERM_PROGRAM", "")
    if "kitty" in variables.get("TERM", "") or variables.get("KITTY_WINDOW_ID") or program in ("ghostty", "WezTerm"):
        return "kitty"
    return "iterm" if program in ("iTerm.app", "mintty") or variables.get("LC_TERMINAL") == "iTerm2" else None


def escape_sequence(png: bytes, how: str) -> str:
    """The bytes of a PNG as an escape sequence of the protocol."""
    text = base64.b64encode(png).decode("ascii")
    if how == "iterm":
        return f"\x1b]1337;File=inline=1;size={len(png)}:{text}\x07\n"
    parts = [text[i : i + _CHUNK] for i in range(0, len(text), _CHUNK)]
    out = []
    for i, part in enumerate(parts):
        first = "a=T,f=100," if i == 0 else ""
        out.append(f"\x1b_G{first}m={int(i < len(parts) - 1)};{part}\x1b\\")
    return "".join(out) + "\n"


def show(event: Event) -> None:
    """Draws a `picture` event on standard output, or says that there is one."""
    how = protocol()
    if how is not None:
        try:
            png = io.BytesIO()
            Picture(event.name, event.fields).figure().savefig(png, format="png", dpi=110)
            sys.stdout.write(escape_sequence(png.getvalue(), how))
            return
        except Refusal as refusal:
            print(clean(f"{refusal.diagnostics[0].message}; {refusal.diagnostics[0].help}"), flush=True)
            return
    print(clean(f"picture: {event.name} (this terminal shows none)"), flush=True)
