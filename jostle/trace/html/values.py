"""Released values as HTML: numbers in large type, rows as tables, vectors as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from jostle.diagnostics import Refusal
from jostle.events import Event
from jostle.formulas import error_text
from jostle.trace.html.markup import Html, join, tag
from jostle.trace.html.program import place_of, text_of
from jostle.trace.pictures import Picture, pictures
from jostle.trace.text import number, sparkline

_ROWS = 50
_DRAWN = 16  # pictures of one page


def releases_section(events: Sequence[Event]) -> Html | None:
    """The released values of the run, by name."""
    releases = [e for e in events if e.kind == "release"]
    if not releases:
        return None
    room = _DRAWN
    out = []
    for event in releases:
        value = event.fields.get("value")
        picture = None
        if isinstance(value, list) and _vector(value) and room:
            picture, room = draw(_steps(event.name, value)), room - 1
        place = place_of(event.span, text_of(events))
        shown = _value_html(value, event.fields.get("margins"))
        out.append(tag("section", tag("h3", event.name, " ", place), picture, shown, class_="released"))
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


def table(head: Sequence[str], rows: Sequence[Sequence[str | Html]], **attributes: object) -> Html:
    """A table with a head."""
    return tag(
        "table", tag("thead", tag("tr", [tag("th", h, scope="col") for h in head])),
        tag("tbody", [tag("tr", [tag("td", cell) for cell in row]) for row in rows]), **attributes,
    )  # fmt: skip


def _vector(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 4 and all(
        isinstance(v, int | float) and not isinstance(v, bool) for v in value
    )  # fmt: skip


def _steps(name: str, value: list[float]) -> Picture:
    cells = [float(i) for i in range(len(value))]
    return Picture(name, {"shape": "steps", "x": cells, "series": {name: value}, "x_label": "cell"})


def _beside(value: Any, margin: Any) -> str:
    """` ± 30` of a margin, marked where the error is as large as the value."""
    error = margin.get("error") if isinstance(margin, Mapping) else None
    if not isinstance(error, int | float) or not isinstance(value, int | float):
        return ""
    return f" ± {error_text(value, error)}"


def _field(margin: Any, name: str) -> Any:
    return margin.get(name) if isinstance(margin, Mapping) else None


def _value_html(value: Any, margins: Any = None) -> Html:
    if isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
        head = [str(k) for k in value[0]]
        told = margins if isinstance(margins, list) else []
        rows: list[list[str | Html]] = [
            [number(row.get(name), 6) + _beside(row.get(name), _field(margin, name)) for name in head]
            for row, margin in zip_longest(value[:_ROWS], told[:_ROWS])
            if row is not None
        ]
        more = tag("p", f"… {len(value) - _ROWS} more rows") if len(value) > _ROWS else None
        return join(tag("div", table(head, rows, class_="data"), class_="wide"), more)
    if _vector(value):
        first = ", ".join(number(v, 6) for v in value[:12])
        return tag("p", tag("code", f"[{first}{', …' if len(value) > 12 else ''}]"), f" {len(value)} values",
                   class_="few", title=sparkline(value, 40))  # fmt: skip
    if isinstance(value, int | float):
        return tag("p", number(value, 8) + _beside(value, margins), class_="big")
    return tag("pre", _text(value))


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
