"""Renders what a run gave for a terminal: released values, budgets, choices, pictures; `jostle again`; a name's facts.

Works on plain values (numbers, texts, lists, records: what `Result.released_json()` gives), so that it needs neither
NumPy nor pandas and sees nothing private. Pictures are shown by Kitty's protocol (kitty, Ghostty, WezTerm, Konsole) and
iTerm2's (iTerm2, WezTerm, mintty); elsewhere a line names the picture.
"""

from __future__ import annotations

import base64
import io
import math
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from jostle import formulas
from jostle.diagnostics import Refusal
from jostle.events import Event
from jostle.resources import Json
from jostle.source import Source
from jostle.syntax import nodes as n
from jostle.syntax import parse
from jostle.syntax.walk import every
from jostle.tools.outlet import stored
from jostle.tools.render import width_of
from jostle.trace.pictures import Picture, Plot
from jostle.trace.text import align, clean, measured, number, sparkline

if TYPE_CHECKING:
    from jostle.run.interpreter import Interpreter
    from jostle.run.scope import Scope

ROWS = 20  # rows of a table that are shown


class Head(list[object]):
    """The first of the rows of a long table, as JSON."""

    def __init__(self, first: Sequence[object], rows: int) -> None:
        super().__init__(first)
        self.rows = rows


_LINES = 60  # of one value
_ROW = 10  # numbers of a vector that are shown one by one
_SHADES = " ░▒▓█"
_WHOLE = 2  # choices that are shown as whole trees after a run
_SHOWN = 5  # calls of one choice whose trace is printed after a run


def released(name: str, value: object, width: int = 100, margins: object = None, face: str = "") -> str:
    """`name = value`, on one line where it fits, otherwise the name and an indented block below it.

    `margins`: the errors of what is known of it (`run.margins`), which stand beside the numbers; `face`: what a model
    says of itself.
    """
    lines = face.splitlines() or show(value, width - 4, margins)
    if len(lines) == 1:
        return f"{clean(name)} = {lines[0]}"
    if len(lines) > _LINES:  # of a model
        lines = [*lines[:_LINES], f"… {len(lines) - _LINES} more lines; `--save {name}={name}.json` writes all"]
    return "\n".join([clean(name), *("  " + line for line in lines)])


def answer_lines(
    titled: Mapping[str, Mapping[str, object]], margins: Mapping[str, Json], width: int,
    face: Callable[[str], str] = lambda name: "",
) -> list[str]:  # fmt: skip
    """What was released, or measured, as lines under a title each, with what the errors do not cover."""
    lines: list[str] = []
    for title, values in titled.items():
        lines += ["", title] if values else []
        texts = [released(name, value, width - 2, margins.get(name), face(name)) for name, value in values.items()]
        texts += formulas.cut_text(formulas.cuts_in([margins.get(name) for name in values]))
        lines += ["  " + line for text in texts for line in text.split("\n")]
    return lines


def release_text(event: Event, width: int = 100) -> str:
    """A `release` event with its errors and what they do not cover."""
    value, margins = event.fields.get("value"), event.fields.get("margins")
    return "\n".join([released(event.name, value, width, margins), *formulas.cut_text(formulas.cuts_in(margins))])


def show(value: Any, width: int = 100, margins: Any = None) -> list[str]:
    """A plain value as lines of text; long vectors and tables are summarised."""
    if isinstance(value, str):
        return [f'"{clean(value)}" {_beside(value, margins)}'.rstrip()]
    if isinstance(value, Mapping):
        return _record(value, width, margins or {})
    if isinstance(value, list | tuple):
        if value and all(_number(v) for v in value):
            return _vector(value, width, margins)
        if _table(value):
            return _rows(value, width, margins)
        if _matrix(value):
            return [*_grid(value, width), *_each([margin for row in margins or () for margin in row or ()])]
        return _mixed(value, width)
    return [f"{measured(value, margins)} {_beside(value, margins)}".rstrip()]


def _beside(value: object, margin: object) -> str:
    """`± 30` of a margin, with a mark where the error exceeds the value."""
    alone = isinstance(margin, Mapping) and list(margin) == ["value", "cut"]  # of an error itself
    return formulas.BY_NOISE.strip() if alone else formulas.with_margin("", formulas.margin_text(value, margin)).strip()


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


def _each(margins: Sequence[object] | None) -> list[str]:
    """The errors of many numbers, in a line."""
    if formulas.rests_on_misfits(formulas.cuts_in(margins)):
        return [f"± {formulas.UNKNOWN} each"]
    errors = [m["error"] for m in margins or () if isinstance(m, Mapping) and m.get("error") is not None]
    return (
        [_range(min(errors), max(errors), formulas.NOISE_ONLY if formulas.cuts_in(margins) else "")] if errors else []
    )


def _vector(value: Sequence[float], width: int, margins: Any) -> list[str]:
    line = f"[{', '.join(number(v, 5) for v in value)}]"
    notes = _each(margins)
    if len(value) <= _ROW or len(line) <= width - 10:
        return [line, *notes] if len(line) > width // 2 else [" ".join([line, *notes])]
    finite = [v for v in value if math.isfinite(v)]
    ends = f", {number(min(finite), 5)} to {number(max(finite), 5)}" if finite else ""
    first = ", ".join(number(v, 5) for v in value[:6])
    return [f"{len(value)} values{ends}", sparkline(value, min(width, 64)), f"[{first}, …]", *notes]


def _range(least: float, most: float, mark: str) -> str:
    texts = dict.fromkeys(formulas.error_text(math.inf, error, mark) for error in (least, most))
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


def _rows(value: Sequence[Mapping[str, object]], width: int, margins: object) -> list[str]:
    row_margins = margins[:ROWS] if isinstance(margins, list) else []
    beside = [m if isinstance(m, Mapping) else {} for m in row_margins]
    beside += [{}] * (len(value[:ROWS]) - len(beside))
    columns, numeric = [], []
    for name in value[0]:
        cells = [(row[name], m.get(name)) for row, m in zip(value[:ROWS], beside, strict=False)]
        columns.append([clean(str(name)), *(clean(measured(*cell)).replace("\n", "␊") for cell in cells)])
        numeric.append(all(_number(row[name]) or row[name] is None for row in value))
        if any(margin for _, margin in cells):
            columns.append(["", *(_beside(*cell) for cell in cells)])
            numeric.append(False)
    table = [list(row) for row in zip(*columns, strict=True)]
    lines = [line if len(line) <= width else line[: width - 1] + "…" for line in align(table, numeric)]
    lines += [f"… {more} more rows"] if (more := getattr(value, "rows", len(value)) - ROWS) > 0 else []
    doubtful = any(
        cell.endswith(formulas.DOUBTFUL) or cell == formulas.DOUBTFUL.strip() for row in table for cell in row
    )
    return lines + ([formulas.DOUBT] if doubtful else [])


def _record(value: Mapping[Any, Any], width: int, margins: Mapping[object, object]) -> list[str]:
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


def _mixed(value: Sequence[object], width: int) -> list[str]:
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
    from jostle.trace.costs import Costs, Forest
    from jostle.trace.tree import brief, choices, decisions_text

    calls: dict[str, int] = {}
    lines: list[str] = []
    forest = Forest.of(events)
    costs = Costs.of(forest)
    outermost = forest.outermost("choice")
    inside = decisions_text(events)
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
    """`kitty`, `iterm`, or None where the terminal shows no pictures as far as its environment says."""
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
            Picture(event.name, cast("Plot", event.fields)).figure().savefig(png, format="png", dpi=110)
            sys.stdout.write(escape_sequence(png.getvalue(), how))
            return
        except Refusal as refusal:
            print(clean(f"{refusal.diagnostics[0].message}; {refusal.diagnostics[0].help}"), flush=True)
            return
    print(clean(f"picture: {event.name} (this terminal shows none)"), flush=True)


def measured_names(tree: n.Program, scope: Scope, interp: Interpreter) -> dict[str, object]:
    """The names of a program and, as `f.name`, of its functions that a failure left, with their values."""
    resting = _resting_on_private(tree)
    values = {name: value for name, value in scope.names.items() if name in resting}
    for function, local in reversed(interp.left):
        inside = {name for node in every(function.body) for name in _bound(node)}
        values |= {f"{function.name}.{name}": local.names[name] for name in local.names if name in inside}
    return {name: value for name, value in values.items() if name not in interp.released and _is_answer(value)}


def _resting_on_private(tree: n.Program) -> Collection[str]:
    """The names whose statements mention a private source, or another name that rests on one."""
    statements = [(set(_bound(node)), _mentioned(node)) for node in every(tree) if _bound(node)]
    names = {node.name for node in every(tree) if isinstance(node, n.Private)}
    size = -1
    while len(names) > size:
        size = len(names)
        for bound, mentioned in statements:
            if not mentioned.isdisjoint(names):
                names |= bound
    return names


def _bound(node: n.Node) -> tuple[str, ...]:
    """The names that a statement gives values; those of its blocks have statements of their own."""
    if isinstance(node, n.Release) and node.value is not None:
        return (node.name,)
    if not isinstance(node, n.Assign | n.For | n.Private | n.Def):
        return ()
    names: str | tuple[str, ...] = getattr(node, node.binds[0])
    return (names,) if isinstance(names, str) else names


def _mentioned(node: n.Node) -> set[str]:
    parts = every(node.source) if isinstance(node, n.For) else every(node)
    return {part.id for part in parts if isinstance(part, n.Name)}


def _is_answer(value: object) -> bool:
    """Whether a value can be shown as a released one is."""
    from jostle.run.values import Grouped, handles_in, is_model, is_number, is_sequence, plain

    if handles_in(value) or not (
        isinstance(value, bool | str | date | dict | Grouped)
        or is_number(value)
        or is_sequence(value)
        or is_model(value)
    ):
        return False
    if isinstance(value, Grouped):
        return True
    try:
        plain(value)
    except Refusal:  # it is too large to be shown
        return False
    return True


def again_command(_: Namespace) -> int:
    """Each kept run in turn; it is removed when it was written to its end."""
    runs = 0
    for path, document in stored():
        sys.stdout.write(_text(document))
        sys.stdout.flush()
        path.unlink(missing_ok=True)
        runs += 1
    if not runs:
        print("nothing is kept: every run handed over what it released")
    return 0


def _text(document: dict[str, Json]) -> str:
    head = f"{document.get('program', '')}, {document.get('time', '')}"
    lines = [head, *document_lines(document, width_of(sys.stdout)), ""]
    return "".join(clean(line).rstrip() + "\n" for line in lines)


def document_lines(document: Mapping[str, Any], width: int) -> list[str]:
    """What a run printed, gave and spent, of its JSON object."""
    titled = {"released": document.get("released") or {}, "measured, not released": document.get("measured") or {}}
    lines = [*document.get("output", ()), *answer_lines(titled, document.get("margins") or {}, width)]
    if document.get("budget"):
        lines += ["", "budget", *("  " + line for line in budget_text(document["budget"]).split("\n"))]
    return lines


class Provenance(Struct, frozen=True):
    """The entry that gave a name its value, and what happened in it."""

    source: Source
    events: Sequence[Event]


def assigned_names(source: Source) -> list[str]:
    """The names that a text gives values at its top level."""
    try:
        tree = parse(source, interactive=True)
    except Refusal:
        return []
    return [s.name for s in tree.body if isinstance(s, n.Assign | n.Private | n.Def | n.ParamDecl)]


def documented(name: str, names: Mapping[str, object], width: int = 100) -> str:
    """What the documentation says of a name, unless `names`, of a session, give it another value; else nothing."""
    from jostle.documentation import documentation
    from jostle.run.values import Module

    if name in names and not is_of_library(name, names):
        value = names[name]
        if not (isinstance(value, Module) and value.of_library):
            return ""
    return "\n\n".join(entry.text(width) for entry in documentation(name))


def is_of_library(name: str, names: Mapping[str, object]) -> bool:
    """Whether a name of a session is one that a module of the library brought."""
    from jostle.run.values import Module

    modules = [value for value in names.values() if isinstance(value, Module) and value.of_library]
    return any(names[name] is module.names.get(name) for module in modules)


def describe(name: str, value: object) -> str:
    """The kind of a value, its label, and the public facts of a handle."""
    from jostle.privacy.kernel.exposures import Handle
    from jostle.privacy.kernel.handles import Cube, Table
    from jostle.run.values import Function, is_vector, kind_name
    from jostle.tools.draft.columns import domain_text

    lines = [f"{name}: {kind_name(value)}"]
    if isinstance(value, Function):
        lines = [f"{name}({', '.join(parameter for parameter, _ in value.params)}): a function"]
    if isinstance(value, Handle):
        for exposure in value.exposures:
            source = exposure.source
            steps = f", on a part of {len(exposure.path)} partitions" if exposure.path else ""
            stability = "without bound" if exposure.rows is None else exposure.rows
            lines.append(f"  private to {source.name} (protecting {exposure.unit}), stability {stability}{steps}")
        if isinstance(value, Table):
            for column, domain in value.schema:
                lines.append(f"  {column}: {domain_text(domain)}")
        elif isinstance(value, Cube):
            lines.append("  " + " × ".join(f"{n} ({s})" for n, s in zip(value.names, value.shape, strict=True)))
    else:
        lines.append("  public" + (f", {value.shape[0]:,} values" if is_vector(value) else ""))
        if (law := getattr(value, "law", None)) is not None:
            lines.append(f"  measured by {law.name}, noise of scale {law.scale:.4g}")
    return "\n".join(lines)


def reasons(name: str, provenance: Provenance | None) -> str:
    """The choices that were made for a value; where there were none, the entry and what it measured."""
    from jostle.trace.budget import summary
    from jostle.trace.tree import choices

    if provenance is None:
        return f"{name} came with this session"
    head = f"{name} was made by {provenance.source.name}: {provenance.source.text.strip().splitlines()[0]}"
    if any(e.kind == "choice" for e in provenance.events):
        return head + "\n" + choices(provenance.events).rstrip()
    if any(e.kind in ("measure", "query") for e in provenance.events):
        return head + "\n" + summary(provenance.events).rstrip()
    return head + "\nit was computed from what was known; nothing was measured and nothing was chosen"


def display_text(value: object) -> str:
    """A value as text, with its ± where it is a number, or a record of numbers, whose error is known."""
    from jostle.privacy.kernel.exposures import Handle
    from jostle.run.margins import margins
    from jostle.run.values import Record, is_number, kind_name, show

    if isinstance(value, Handle) and value.private:
        return kind_name(value)
    errors = margins(value)

    def beside(item: object, margin: object) -> str:
        error = margin.get("error") if isinstance(margin, Mapping) else None
        text = formulas.show_number(item, error) if error and is_number(item) else show(item)
        return formulas.with_margin(text, formulas.margin_text(item, margin))

    def has_error(item: object) -> bool:
        return is_number(item) or isinstance(item, date)

    if isinstance(value, Record) and value and all(map(has_error, value.values())):
        items = [f"{name}: {beside(item, (errors or {}).get(name))}" for name, item in value.items()]
        return "\n".join(["{" + ", ".join(items) + "}", *formulas.cut_text(formulas.cuts_in(errors))])
    if not has_error(value):
        return show(value)
    return "\n".join([beside(value, errors), *formulas.cut_text(formulas.cuts_of(value))])
