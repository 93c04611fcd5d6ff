"""Parts of the page of a run: the tree of events, the budget as an icicle, released values, the program's text.

Each block of the icicle is as wide as what it cost its source, parallel parts drawn as their maximum. HTML is made of
values, `tag("p", "a < b", id="x")`: what is no `Html` is escaped, and is shown as `trace.text.clean` has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from html import escape
from itertools import groupby, zip_longest

from jostle.diagnostics import Refusal
from jostle.events import Event
from jostle.formulas import cut_text, cuts_in, margin_text, with_margin
from jostle.resources import Json
from jostle.source import Span
from jostle.syntax.parser import colour_tokens
from jostle.trace.budget import Account
from jostle.trace.costs import Costs, Forest
from jostle.trace.pictures import Picture, need_to_draw, pictures
from jostle.trace.released import Figure, is_matrix, pictures_of
from jostle.trace.text import amount, clean, measured, number, sparkline
from jostle.trace.tree import WORDS

_LIT = ("param", "source", "allotment", "query", "measure", "choice", "train", "option", "picture", "release", "error")
_SHOWN = 4  # links beside a line


def program(events: Sequence[Event], forest: Forest, costs: Costs) -> Html | None:
    """The text of the run, or None where the trace does not hold it."""
    run = next((e for e in events if e.kind == "run" and isinstance(e.fields.get("text"), str)), None)
    if run is None:
        return None
    marks = _marks(run.name, forest)
    rows = []
    for place, line in enumerate(_lines(str(run.fields["text"])), 1):
        here = marks.get(place, [])
        lit = "lit " + " ".join(dict.fromkeys(f"k-{e.kind}" for e in here)) if here else None
        rows.append(
            tag("tr", tag("td", str(place), class_="no"), tag("td", _notes(here, costs), class_="notes"),
                tag("td", tag("code", line)), id=f"l{place}", class_=lit)
        )  # fmt: skip
    return tag("table", rows, class_="program")


def place_of(span: Span | None, text_of: str | None) -> Html | None:
    """A place in words: a link where its line stands on the page."""
    if span is None:
        return None
    words = str(span).rsplit("/", 1)[-1]
    if span.source.name != text_of:
        return tag("span", words, class_="place")
    return tag("a", words, href=f"#l{span.line}", class_="place")


def text_of(events: Sequence[Event]) -> str | None:
    """The name of the file whose text the trace holds."""
    return next((e.name for e in events if e.kind == "run" and isinstance(e.fields.get("text"), str)), None)


def _marks(name: str, forest: Forest) -> dict[int, list[Event]]:
    """The outermost events of each line; an event inside another of its own line is left to that one."""
    marks: dict[int, list[Event]] = {}
    waiting: list[tuple[Event, int]] = [(e, 0) for e in reversed(forest.roots)]
    while waiting:
        event, above = waiting.pop()
        line = event.span.line if event.span is not None and event.span.source.name == name else 0
        if line and line != above and event.kind in _LIT:
            marks.setdefault(line, []).append(event)
        waiting.extend((child, line or above) for child in reversed(forest.children(event)))
    return marks


def _notes(here: list[Event], costs: Costs) -> Html:
    if not here:
        return Html("")
    spent = costs.text(*here)
    price = tag("b", spent, class_="price") if spent else None
    links = [tag("a", e.kind, href=f"#e{e.id}", class_=f"k-{e.kind}") for e in here[:_SHOWN]]
    more = f"+{len(here) - _SHOWN}" if len(here) > _SHOWN else None
    return join(price, links, more)


def _lines(text: str) -> list[Html]:
    lines: list[list[Html]] = [[]]
    for colour, piece in colour_tokens(text):
        for i, part in enumerate(piece.split("\n")):
            if i:
                lines.append([])
            if part:
                lines[-1].append(tag("span", part, class_=f"c-{colour}") if colour else join(part))
    if not lines[-1]:
        lines.pop()
    return [join(line) for line in lines]


# What has a place of its own on the page.
_QUIET = frozenset({
    "epsilon", "rho", "spent", "sources", "budget", "text", "rows", "value", "paths", "series", "x", "low", "high",
    "trees", "context", "direct", "printed", "version", "date", "margins", "keys", "step", "within", "of",
})  # fmt: skip
_ALIKE = 12  # of more neighbours that look alike, the first and the last few are shown
_OPEN = 2  # levels that are open when the page is


def event_tree(forest: Forest, costs: Costs, text_of: str | None) -> Html:
    """Every event, once; places in the file `text_of`, whose text stands on the page, are links."""
    return tag("div", _branch(forest, costs, text_of, forest.roots, 0), class_="tree")


def _branch(forest: Forest, costs: Costs, text_of: str | None, events: Iterable[Event], depth: int) -> list[Html]:
    out: list[Html] = []
    for _, alike in groupby(events, key=lambda e: (e.kind, e.name, e.span.line if e.span is not None else None)):
        group = list(alike)
        if len(group) > _ALIKE and not any(forest.children(e) for e in group):
            middle = group[4:-4]
            nodes = [_node(forest, costs, text_of, e, depth) for e in (*group[:4], *group[-4:])]
            folded = tag("details", tag("summary", f"… {len(middle)} more like these"),
                         [_node(forest, costs, text_of, e, depth) for e in middle])  # fmt: skip
            out += [*nodes[:4], folded, *nodes[4:]]
        else:
            out += [_node(forest, costs, text_of, e, depth) for e in group]
    return out


def _node(forest: Forest, costs: Costs, text_of: str | None, event: Event, depth: int) -> Html:
    below = forest.children(event)
    spent = costs.text(event)
    line = join(
        tag("a", event.kind, href=f"#e{event.id}", title="the address of this event", class_=f"kind k-{event.kind}"),
        " ", event.name, " ",
        tag("b", spent, class_="price") if spent else None,
        place_of(event.span, text_of), " ", _details(event),
    )  # fmt: skip
    if not below:
        return tag("div", line, id=f"e{event.id}", class_="leaf")
    return tag(
        "details", tag("summary", line), tag("div", _branch(forest, costs, text_of, below, depth + 1)),
        id=f"e{event.id}", open=depth < _OPEN,
    )  # fmt: skip


def _details(event: Event) -> Html | None:
    """The rest of what an event says, in a few words."""
    if event.kind == "error":
        return join(" ", str(event.fields.get("message") or ""))
    if event.kind == "param":
        return join("= ", number(event.fields.get("value")))
    if event.kind == "choice":
        return join(" → ", tag("b", str(event.fields.get("chosen", "nothing"))))
    words = []
    for key, value in event.fields.items():
        if key in _QUIET or value in (None, "", [], {}):
            continue
        if key in WORDS:
            words.append(WORDS[key])
        elif isinstance(value, int | float | str):
            words.append(f"{key.replace('_', ' ')} {number(value)}")
        elif (
            isinstance(value, list | tuple) and len(value) <= 8 and all(isinstance(v, int | float | str) for v in value)
        ):
            words.append(f"{key.replace('_', ' ')} {', '.join(map(str, value))}")
        elif (
            isinstance(value, Mapping)
            and len(value) <= 4
            and not any(isinstance(v, Mapping | list) for v in value.values())
        ):
            words.append(f"{key} " + ", ".join(f"{k}: {number(v)}" for k, v in value.items()))
    return tag("span", " · ".join(words), class_="said") if words else None


_DEEPEST = 7
_MOST = 40  # blocks side by side


def budget(forest: Forest, costs: Costs) -> Html | None:
    accounts = Account.all_of(forest, costs)
    return join(_icicle(forest, costs, account) for account in accounts) if accounts else None


def _icicle(forest: Forest, costs: Costs, account: Account) -> Html:
    head = f"{account.name}: {account.head}"
    if not account.total:
        return tag("p", head)
    before = _bar("before", account.before / account.total, f"{account.sign} {amount(account.before)}", "rest")
    blocks = [before] if account.before else []
    blocks += _blocks(forest, costs, account, account.roots, account.run, account.total, 0)
    left = account.total - account.spent
    if left > 0:
        blocks.append(_bar("left", left / account.total, f"{account.sign} {amount(left)}", "left"))
    note = tag("p", account.note, class_="note") if account.note else None
    return tag(
        "section", tag("h3", head), tag("div", blocks, class_="icicle", role="group", aria_label=head), note
    )  # fmt: skip


def _blocks(
    forest: Forest, costs: Costs, account: Account, events: Sequence[Event], whole: Decimal, width: Decimal, depth: int
) -> list[Html]:
    """Blocks of steps that cost `whole` together, within `width`; each is narrower where their costs add up to more."""
    prices = [(e, costs.spent[e.id].get(account.name, Decimal(0))) for e in events]
    paid = [(e, price) for e, price in prices if price]
    summed = sum((price for _, price in paid), Decimal(0))
    scale = whole / summed / width if summed else Decimal(0)
    blocks = []
    for event, price in paid[:_MOST]:
        below = forest.children(event)
        inner = _blocks(forest, costs, account, below, price, price, depth + 1) if depth < _DEEPEST else []
        parallel = sum((costs.spent[e.id].get(account.name, Decimal(0)) for e in below), Decimal(0)) > price
        row = tag("div", inner, class_="row", title="in parallel" if parallel else None) if inner else None
        label, name = f"{account.sign} {amount(price)}", event.name or event.kind
        blocks.append(_bar(name, price * scale, label, f"k-{event.kind}", row, f"#e{event.id}"))
    if rest := sum((price for _, price in paid[_MOST:]), Decimal(0)):
        blocks.append(_bar(f"{len(paid) - _MOST} more", rest * scale, f"{account.sign} {amount(rest)}", "rest"))
    return blocks


def _bar(
    name: str, share: Decimal, price: str, class_: str, inner: Html | None = None, href: str | None = None
) -> Html:
    label = tag("a" if href else "span", name, tag("small", price), href=href, title=f"{name}: {price}", class_="label")
    return tag("div", label, inner, class_=f"block {class_}", style=f"width:{float(share) * 100:.4g}%")


_ROWS = 50
_CELLS = 16  # of a row of a matrix
_DRAWN = 16  # pictures of one page
_COLUMNS = 3  # pictures of one table
_NUMBER = re.compile(r"[+-]?\d[\d.]*(e[+-]?\d+)?\*?( \?| ± .*)?|none|–|[+-]?inf|nan")


def releases_section(events: Sequence[Event]) -> Html | None:
    """The released values of the run, by name: pictures of vectors and of the columns of tables, then the values."""
    releases = [e for e in events if e.kind == "release"]
    if not releases:
        return None
    room, text, draws, out = _DRAWN, text_of(events), _undrawable() is None, []
    for event in releases:
        pictures = pictures_of(event)[: min(room, _COLUMNS)] if draws else []
        room -= len(pictures)
        place = place_of(event.span, text)
        body = _value_html(event.fields.get("value"), event.fields.get("margins"))
        pictured = tag("div", [draw(p) for p in pictures], class_="pictures") if pictures else None
        out.append(tag("section", tag("h3", event.name, " ", place), body, pictured, class_="released"))
    return join(out)


def pictures_section(events: Sequence[Event]) -> Html | None:
    images = pictures(events)
    if not images:
        return None
    more = tag("p", f"… {len(images) - _DRAWN} more") if len(images) > _DRAWN else None
    return tag("div", [draw(p) for p in images[:_DRAWN]], more, class_="pictures")


_UNDRAWN = "missing"


def draw(picture: Picture) -> Html:
    """A picture as SVG, or a table of its numbers where none can be drawn; `undrawn` says once what is missing."""
    if _undrawable() is None:
        return tag("figure", Html(picture.svg()), role="img", aria_label=picture.title)
    fields = picture.fields
    x, rows = fields.get("x") or [], dict[object, dict[str, object]]()
    for columns, ending in ((fields["series"], ""), (fields.get("low"), " low"), (fields.get("high"), " high")):
        for name, values in (columns or {}).items():
            heading = ("" if name == picture.title else name) + ending
            for place, value in zip(x[name] if isinstance(x, Mapping) else x, values, strict=False):
                cell = round(value, 1 if abs(value) >= 10 else 3) if ending and isinstance(value, float) else value
                rows.setdefault(place, {fields.get("x_label") or "x": place})[heading.strip() or "value"] = cell
    numbers = _value_html([{**dict.fromkeys(next(iter(rows.values()))), **row} for row in rows.values()])
    return tag("figure", tag("figcaption", picture.title, class_=_UNDRAWN), numbers)


def _undrawable() -> Refusal | None:
    try:
        need_to_draw()
    except Refusal as refusal:
        return refusal
    return None


def undrawn(*parts: Html | None) -> Html | None:
    """What is missing to draw the pictures in whose place these parts of a page have tables."""
    refusal = _undrawable()
    if refusal is not None and any(part and f'class="{_UNDRAWN}"' in part for part in parts):
        return tag("p", f"{refusal.diagnostics[0].message}; {refusal.diagnostics[0].help}", class_="few")
    return None


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


def _vector(value: object) -> bool:
    return isinstance(value, list) and len(value) > 4 and all(
        isinstance(v, int | float) and not isinstance(v, bool) for v in value
    )  # fmt: skip


def _field(margin: object, name: str) -> object:
    return margin.get(name) if isinstance(margin, Mapping) else None


def _value_html(value: Json, margins: object = None) -> Html:
    notes = [tag("p", line, class_="few") for line in cut_text(cuts_in(margins))]
    if isinstance(value, Mapping) and list(value)[:3] == ["title", "rows", "notes"]:  # a report
        notes += [tag("p", note, class_="few") for note in value["notes"]]
        return join(tag("p", value["title"]), _value_html(value["rows"]), *notes)
    if isinstance(value, Mapping) and value and not any(isinstance(item, Mapping | list) for item in value.values()):
        value, margins = [value], [margins]
    if isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
        return join(_rows_html(value, margins if isinstance(margins, list) else []), *notes)
    if is_matrix(value):
        return join(_matrix_html(value, margins if isinstance(margins, list) else []), *notes)
    if _vector(value):
        return join(_vector_html(value, margins if isinstance(margins, list) else []), *notes)
    if isinstance(value, int | float):
        beside = margin_text(value, margins)
        return join(tag("p", with_margin(measured(value, margins, 8), beside), class_="big"), *notes)
    return join(tag("pre", _text(value)), *notes)


def _matrix_html(value: Sequence[Sequence[float]], margins: Sequence[Sequence[object] | None]) -> Html:
    head = [str(place) for place in range(min(len(value[0]), _CELLS))]
    cells = [[number(cell, 5) for cell in row[:_CELLS]] for row in value[:_ROWS]]
    beside = _at_most(value[0], margins[0] or () if margins else ())
    size = tag("p", f"{len(value)} × {len(value[0])} values{beside}", class_="few")
    return join(tag("div", table(head, cells, class_="data"), class_="wide"), size)


def _rows_html(rows: Sequence[Mapping[str, object]], margins: Sequence[object]) -> Html:
    noisy = {name for margin in margins if isinstance(margin, Mapping) for name in margin}
    pairs = [pair for pair in zip_longest(rows[:_ROWS], margins[:_ROWS]) if pair[0] is not None]
    head: list[str] = []
    cells: list[list[str]] = []
    for name in map(str, rows[0]):
        head += [name, "±"] if name in noisy else [name]
        cells.append([measured(row.get(name), _field(margin, name)) for row, margin in pairs])
        if name in noisy:
            cells.append([margin_text(row.get(name), _field(margin, name)) for row, margin in pairs])
    more = tag("p", f"… {len(rows) - _ROWS} more rows") if len(rows) > _ROWS else None
    return join(tag("div", table(head, list(zip(*cells, strict=True)), class_="data"), class_="wide"), more)


def _at_most(value: Sequence[float], margins: Sequence[object]) -> str:
    errors = [e for v, m in zip(value, margins, strict=False) if (e := Figure.of(v, m).error) is not None]
    return f", ± {number(max(errors), 2)} at most" if errors else ""


def _vector_html(value: Sequence[float], margins: Sequence[object]) -> Html:
    first = ", ".join(number(v, 6) for v in value[:12])
    beside = _at_most(value, margins)
    return tag("p", tag("code", f"[{first}{', …' if len(value) > 12 else ''}]"), f" {len(value)} values{beside}",
               class_="few", title=sparkline(value, 40))  # fmt: skip


def _text(value: object, depth: int = 0) -> str:
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


class Html(str):
    """Markup that is safe to stand in a page as it is."""

    __slots__ = ()


_VOID = frozenset({"br", "hr", "input", "meta", "wbr"})


def tag(element: str, *children: str | Html | Iterable[str | Html | None] | None, **attributes: object) -> Html:
    """An element. `class_` loses its underscore, inner ones turn to `-`; None and False leave an attribute out."""
    words = [element]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        words.append(attribute if value is True else f'{attribute}="{escape(clean(str(value)))}"')
    opened = f"<{' '.join(words)}>"
    return Html(opened if element in _VOID else f"{opened}{join(*children)}</{element}>")


def join(*children: str | Html | Iterable[str | Html | None] | None) -> Html:
    """Children one after the other, escaped where they are plain text."""
    out: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            out.append(child)
        elif isinstance(child, str):
            out.append(escape(clean(child), quote=False))
        else:
            out.append(join(*child))
    return Html("".join(out))
