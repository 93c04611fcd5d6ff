"""Renders what a run gave for a terminal: released values, budgets and choices.

Small tables, vectors as a line of blocks, numbers in few digits.
Works on plain values (numbers, texts, lists, records: what `Result.released_json()` gives), so that it needs neither
NumPy nor pandas and sees nothing private.

Shows pictures in terminals that speak one of two image protocols; elsewhere a line names the picture.

Kitty's protocol (kitty, Ghostty, WezTerm, Konsole) and iTerm2's (iTerm2, WezTerm, mintty).
"""

from __future__ import annotations

import base64
import io
import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from jostle.diagnostics import Refusal
from jostle.events import Event
from jostle.formulas import (
    BY_NOISE,
    DOUBT,
    DOUBTFUL,
    NOISE_ONLY,
    UNKNOWN,
    cuts_in,
    error_text,
    margin_text,
    rests_on_misfits,
    with_margin,
)
from jostle.tools.render import clean
from jostle.trace.pictures import Picture
from jostle.trace.text import align, measured, number, sparkline

ROWS = 20  # rows of a table that are shown
_ROW = 10  # numbers of a vector that are shown one by one
_SHADES = " ░▒▓█"
_WHOLE = 2  # choices that are shown as whole trees after a run
_SHOWN = 5  # calls of one choice whose trace is printed after a run


def released(name: str, value: object, width: int = 100, margins: object = None) -> str:
    """`name = value`, on one line where it fits, otherwise the name and an indented block below it.

    `margins`: the errors of what is known of it (`run.margins`), which stand beside the numbers.
    """
    lines = show(value, width - 4, margins)
    if len(lines) == 1:
        return f"{clean(name)} = {lines[0]}"
    return "\n".join([clean(name), *("  " + line for line in lines)])


def show(value: Any, width: int = 100, margins: Any = None) -> list[str]:
    """A plain value as lines of text; long vectors and tables are summarised."""
    if isinstance(value, str):
        return [f'"{clean(value)}"']
    if isinstance(value, Mapping):
        return _record(value, width, margins or {})
    if isinstance(value, list | tuple):
        if value and all(_number(v) for v in value):
            return _vector(value, width, margins)
        if _table(value):
            return _rows(value, width, margins)
        if _matrix(value):
            return _grid(value, width)
        return _mixed(value, width)
    return [f"{measured(value, margins)} {_beside(value, margins)}".rstrip()]


def _beside(value: object, margin: object) -> str:
    """`± 30` of a margin, with a mark where the error exceeds the value."""
    alone = isinstance(margin, Mapping) and list(margin) == ["value", "cut"]  # of an error itself
    return BY_NOISE.strip() if alone else with_margin("", margin_text(value, margin)).strip()


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _table(value: Sequence[Any]) -> bool:
    """Whether this is a grouped result: records with the same simple fields."""
    if not value or not all(isinstance(v, Mapping) for v in value):
        return False
    keys = list(value[0])
    return all(list(v) == keys and not any(isinstance(x, list | tuple | Mapping) for x in v.values()) for v in value)


def _matrix(value: Sequence[Any]) -> bool:
    if not value or not all(isinstance(v, list | tuple) and v for v in value):
        return False
    return len({len(v) for v in value}) == 1 and all(_number(x) for v in value for x in v)


def _vector(value: Sequence[float], width: int, margins: Any) -> list[str]:
    line = f"[{', '.join(number(v, 5) for v in value)}]"
    errors = [m["error"] for m in margins or () if isinstance(m, Mapping) and m.get("error") is not None]
    notes = [_range(min(errors), max(errors), NOISE_ONLY if cuts_in(margins) else "")] if errors else []
    notes = [f"± {UNKNOWN} each"] if rests_on_misfits(cuts_in(margins)) else notes
    if len(value) <= _ROW or len(line) <= width - 10:
        return [line, *notes] if len(line) > width // 2 else [" ".join([line, *notes])]
    finite = [v for v in value if math.isfinite(v)]
    ends = f", {number(min(finite), 5)} to {number(max(finite), 5)}" if finite else ""
    first = ", ".join(number(v, 5) for v in value[:6])
    return [f"{len(value)} values{ends}", sparkline(value, min(width, 64)), f"[{first}, …]", *notes]


def _range(least: float, most: float, mark: str) -> str:
    texts = dict.fromkeys(error_text(math.inf, error, mark) for error in (least, most))
    return f"± {' to '.join(texts)}{' each' if len(texts) == 1 else ''}"


def _grid(value: Sequence[Sequence[float]], width: int) -> list[str]:
    """A matrix: in full where it is small, else shaded cells, each the mean of a rectangle."""
    if len(value) <= 8 and len(value[0]) <= 8:
        return align([[number(x, 5) for x in row] for row in value], [True] * len(value[0]))
    high, wide = min(len(value), 16), min(len(value[0]), 48, width)
    means = []
    for i in range(high):
        rows = value[len(value) * i // high : len(value) * (i + 1) // high]
        for j in range(wide):
            a, b = len(value[0]) * j // wide, len(value[0]) * (j + 1) // wide
            cells = [x for row in rows for x in row[a:b] if math.isfinite(x)]
            means.append(math.fsum(cells) / len(cells) if cells else 0.0)
    low, top = min(means), max(means)
    shades = [_SHADES[round((m - low) / (top - low) * 4)] if top > low else _SHADES[0] for m in means]
    lines = ["".join(shades[i * wide : (i + 1) * wide]).rstrip() for i in range(high)]
    return [f"{len(value)} × {len(value[0])} values, cells from {number(low, 5)} to {number(top, 5)}", *lines]


def _rows(value: Sequence[Mapping[str, Any]], width: int, margins: object) -> list[str]:
    row_margins = margins[:ROWS] if isinstance(margins, list) else []
    beside = [m if isinstance(m, Mapping) else {} for m in row_margins]
    beside += [{}] * (len(value[:ROWS]) - len(beside))
    columns, numeric = [], []
    for name in value[0]:
        cells = [(row[name], m.get(name)) for row, m in zip(value[:ROWS], beside, strict=False)]
        columns.append([clean(str(name)), *(clean(measured(*cell)).replace("\n", " ") for cell in cells)])
        numeric.append(all(_number(row[name]) or row[name] is None for row in value))
        if any(margin for _, margin in cells):
            columns.append(["", *(_beside(*cell) for cell in cells)])
            numeric.append(False)
    table = [list(row) for row in zip(*columns, strict=True)]
    lines = [line if len(line) <= width else line[: width - 1] + "…" for line in align(table, numeric)]
    lines += [f"… {len(value) - ROWS} more rows"] if len(value) > ROWS else []
    doubtful = any(cell.endswith(DOUBTFUL) or cell == DOUBTFUL.strip() for row in table for cell in row)
    return lines + ([DOUBT] if doubtful else [])


def _record(value: Mapping[Any, Any], width: int, margins: Mapping[Any, Any]) -> list[str]:
    if not value:
        return ["{}"]
    if list(value)[:3] == ["title", "rows", "notes"] and _table(
        value["rows"]
    ):  # a report, whose other fields are of it
        return [clean(value["title"]), *_rows(value["rows"], width, None), *map(clean, value["notes"])]
    parts = {clean(str(k)): show(v, width - 4, margins.get(k)) for k, v in value.items()}
    line = "{" + ", ".join(f"{k}: {v[0]}" for k, v in parts.items()) + "}"
    if all(len(v) == 1 for v in parts.values()) and len(line) <= width:
        return [line]
    out = []
    for name, lines in parts.items():
        if len(lines) == 1:
            out.append(f"{name}: {lines[0]}")
        else:
            out += [f"{name}:", *("  " + line for line in lines)]
    return out


def _mixed(value: Sequence[Any], width: int) -> list[str]:
    items = [show(v, width - 4) for v in value[:ROWS]]
    more = f"… {len(value) - ROWS} more" if len(value) > ROWS else ""
    line = "[" + ", ".join([*(lines[0] for lines in items), *([more] if more else [])]) + "]"
    if all(len(lines) == 1 for lines in items) and len(line) <= width:
        return [line]
    return [line for lines in items for line in lines] + ([more] if more else [])


def budget_text(budget: Mapping[str, Mapping[str, Mapping[str, str]]]) -> str:
    """One line a source: a bar, what was spent, what is left."""
    from jostle.trace.budget import line

    indent = max((len(name) for name in budget), default=0)
    return "\n".join(line(name, amounts, indent) for name, amounts in budget.items())


def choices_text(events: Sequence[Event]) -> str:
    """The choices of a run: one or two as whole trees, more in a few lines each; of one made often, the first calls."""
    from jostle.trace import decisions
    from jostle.trace.costs import Costs, Forest
    from jostle.trace.tree import brief, choices

    calls: dict[str, int] = {}
    lines: list[str] = []
    forest = Forest.of(events)
    costs = Costs.of(forest)
    outermost = forest.outermost("choice")
    inside = decisions.text(events)
    if inside:
        return inside
    if 0 < len(outermost) <= _WHOLE:
        return choices(events).rstrip()
    for event in outermost:
        calls[event.name] = calls.get(event.name, 0) + 1
        if calls[event.name] <= _SHOWN:
            lines += brief(event, costs.text(event))
    lines += [f"… {name} was called {n - _SHOWN} times more" for name, n in calls.items() if n > _SHOWN]
    return "\n".join(lines)


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


def show_picture(event: Event) -> None:
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
