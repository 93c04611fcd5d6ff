"""Released values as HTML: numbers in large type, rows as tables, vectors as pictures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from jostle.diagnostics import Refusal
from jostle.events import Event
from jostle.formulas import cut_text, cuts_in, margin_text, with_margin
from jostle.trace.html.markup import Html, join, tag
from jostle.trace.html.program import place_of, text_of
from jostle.trace.pictures import Picture, pictures
from jostle.trace.released import pictures_of
from jostle.trace.text import number, sparkline

_ROWS = 50
_DRAWN = 16  # pictures of one page
_COLUMNS = 3  # pictures of one table
_NUMBER = re.compile(r"[+-]?\d[\d.]*(e[+-]?\d+)?\*?( \?| ± .*)?|none|–|[+-]?inf|nan")


def releases_section(events: Sequence[Event]) -> Html | None:
    """The released values of the run, by name: pictures of vectors and of the columns of tables, then the values."""
    releases = [e for e in events if e.kind == "release"]
    if not releases:
        return None
    room = _DRAWN
    out = []
    for event in releases:
        pictures = pictures_of(event)[: min(room, _COLUMNS)]
        room -= len(pictures)
        place = place_of(event.span, text_of(events))
        shown = _value_html(event.fields.get("value"), event.fields.get("margins"))
        pictured = tag("div", [draw(p) for p in pictures], class_="pictures") if pictures else None
        out.append(tag("section", tag("h3", event.name, " ", place), shown, pictured, class_="released"))
    return join(out)


def pictures_section(events: Sequence[Event]) -> Html | None:
    """The pictures that the program drew."""
    images = pictures(events)
    if not images:
        return None
    more = tag("p", f"… {len(images) - _DRAWN} more") if len(images) > _DRAWN else None
    return tag("div", [draw(p) for p in images[:_DRAWN]], more, class_="pictures")


def draw(picture: Picture) -> Html:
    """A picture as SVG, or a line that says what is missing to draw it."""
    try:
        return tag("figure", Html(picture.svg()), role="img", aria_label=picture.title)
    except Refusal as refusal:
        diagnostic = refusal.diagnostics[0]
        return tag("p", f"{picture.title}: {diagnostic.message}; {diagnostic.help}", class_="missing")


def table(
    head: Sequence[str], rows: Sequence[Sequence[str | Html]], lit: Sequence[bool] = (), **attributes: object
) -> Html:
    """A table with a head: columns of numbers end flush, and a press on a head sorts by its column; `lit` rows stand
    out."""
    flush = [_numeric([row[place] for row in rows if place < len(row)]) for place in range(len(head))]
    body = [
        tag("tr", [tag("td", cell, class_="num" if number else None) for cell, number in zip(row, flush, strict=True)],
            class_="lit" if place < len(lit) and lit[place] else None)
        for place, row in enumerate(rows)
    ]  # fmt: skip
    heads = [tag("th", h, scope="col", class_="num" if number else None) for h, number in zip(head, flush, strict=True)]
    return tag("table", tag("thead", tag("tr", heads)), tag("tbody", body), **attributes)


def _numeric(cells: Sequence[str | Html]) -> bool:
    return any(cells) and all(not cell or _NUMBER.fullmatch(cell) for cell in cells)


def _vector(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 4 and all(
        isinstance(v, int | float) and not isinstance(v, bool) for v in value
    )  # fmt: skip


def _field(margin: Any, name: str) -> Any:
    return margin.get(name) if isinstance(margin, Mapping) else None


def _value_html(value: Any, margins: Any = None) -> Html:
    notes = [tag("p", line, class_="few") for line in cut_text(cuts_in(margins))]
    if isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
        told = margins if isinstance(margins, list) else []
        noisy = {name for margin in told if isinstance(margin, Mapping) for name in margin}
        pairs = [pair for pair in zip_longest(value[:_ROWS], told[:_ROWS]) if pair[0] is not None]
        head: list[str] = []
        cells: list[list[str]] = []
        for name in map(str, value[0]):
            head += [name, "±"] if name in noisy else [name]
            cells.append([number(row.get(name), 6) for row, _ in pairs])
            if name in noisy:
                cells.append([margin_text(row.get(name), _field(margin, name)) for row, margin in pairs])
        rows = list(zip(*cells, strict=True))
        more = tag("p", f"… {len(value) - _ROWS} more rows") if len(value) > _ROWS else None
        return join(tag("div", table(head, rows, class_="data"), class_="wide"), more, *notes)
    if _vector(value):
        first = ", ".join(number(v, 6) for v in value[:12])
        values = tag("p", tag("code", f"[{first}{', …' if len(value) > 12 else ''}]"), f" {len(value)} values",
                     class_="few", title=sparkline(value, 40))  # fmt: skip
        return join(values, *notes)
    if isinstance(value, int | float):
        beside = margin_text(value, margins)
        return join(tag("p", with_margin(number(value, 8), beside), class_="big"), *notes)
    return join(tag("pre", _text(value)), *notes)


def _text(value: Any, depth: int = 0) -> str:
    lead = "  " * depth
    if isinstance(value, Mapping):
        return "\n".join(
            f"{lead}{k}: {_text(v, depth + 1).lstrip()}" if not isinstance(v, Mapping) or not v
            else f"{lead}{k}:\n{_text(v, depth + 1)}"
            for k, v in list(value.items())[:_ROWS]
        ) or "{}"  # fmt: skip
    if isinstance(value, list):
        return f"{lead}[{', '.join(_text(v).strip() for v in value[:12])}{', …' if len(value) > 12 else ''}]"
    return lead + number(value, 6)
