"""Pictures of a run, drawn from their events by matplotlib, which is asked for only here and only when one is drawn.

A picture is a `picture` event: a shape, axes, and series by name. Ink takes the colour of the page it stands on
(`currentColor` in SVG), so that one drawing suits light and dark.
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, TypedDict, cast

from msgspec import Struct

from jostle.diagnostics import need_package, refuse, unwritable
from jostle.events import Event
from jostle.trace.text import clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which colour-blind readers can tell apart; and lines that differ without colour too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A8A00", "#7F7F7F")
DASHES: tuple[object, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKS = "osD^vP*X"
_INK = "#010203"  # stands for the page's own colour until the SVG is written
FORMATS = ("svg", "png", "pdf")
_LONGEST, _MANY = 120, 1000  # characters of a text, and bars that are drawn one by one


class Plot(TypedDict, total=False):
    """What an event of kind `picture` holds."""

    shape: str
    x: Sequence[float | str] | Mapping[str, Sequence[float | str]]
    series: Mapping[str, Sequence[float | None]]
    low: Mapping[str, Sequence[float | None]]
    high: Mapping[str, Sequence[float | None]]
    x_label: str
    y_label: str
    log_x: bool
    log_y: bool


class Picture(Struct, frozen=True):
    """One picture: its title and what `plot` was given."""

    title: str
    fields: Plot

    def figure(self) -> Figure:
        """A matplotlib figure, 6.4 by 4 inches."""
        return _figure(self.title, self.fields, ink="black")

    def svg(self) -> str:
        """The picture as an `<svg>` element, its ink in `currentColor`, without an XML head."""
        with _reproducible():
            out = io.StringIO()
            _figure(self.title, self.fields, ink=_INK).savefig(
                out, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
            )
        text = out.getvalue()
        markup = re.sub(r"\s*<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
        own = f"p{zlib.crc32(markup.encode()):08x}-"  # two pictures of one page share no names
        prefixed = re.sub(r'(\bid="|url\(#|href="#)', lambda match: match[1] + own, markup)
        return prefixed.replace(_INK, "currentColor").strip()

    def save(self, path: str | Path) -> None:
        """Writes the picture in the format that the ending names: svg, png or pdf."""
        path = Path(path)
        kind = path.suffix.removeprefix(".").lower()
        if kind not in FORMATS:
            raise refuse("DataError", f"a picture is written as {', '.join(FORMATS)}, not as `{kind}`")
        with _reproducible():
            none = {"Creator": None, "Date": None} if kind == "svg" else None
            image = io.BytesIO()
            self.figure().savefig(image, format=kind, dpi=150, metadata=none)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(image.getvalue())
        except OSError as fault:
            raise unwritable(f"`{path}`", fault) from fault

    def _repr_svg_(self) -> str:
        return self.svg()


def pictures(events: Iterable[Event]) -> list[Picture]:
    return [Picture(e.name, cast("Plot", e.fields)) for e in events if e.kind == "picture"]


def file_names(images: Sequence[Picture]) -> list[str]:
    """A file name for each picture, made from its title; of equal ones the later are numbered."""
    out: list[str] = []
    for one in images:
        stem = re.sub(r"[^\w]+", "_", one.title, flags=re.ASCII).strip("_").lower()[:60] or "picture"
        name, again = f"{stem}.svg", 1
        while name in out:
            again += 1
            name = f"{stem}_{again}.svg"
        out.append(name)
    return out


def _reproducible() -> AbstractContextManager[None]:
    """One picture gives one file, byte by byte; text stays text."""
    need_to_draw()
    import matplotlib

    return matplotlib.rc_context({"svg.hashsalt": "jostle", "svg.fonttype": "none", "text.parse_math": False})


def need_to_draw() -> None:
    """Refuses where nothing can be drawn."""
    need_package("matplotlib", "plots", "pictures are drawn by")


def _figure(title: str, fields: Plot, ink: str) -> Figure:
    need_to_draw()
    from matplotlib.figure import Figure

    title, fields = str(_legible(title)), cast("Plot", _legible(dict(fields)))
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot()
    _DRAWN.get(str(fields.get("shape")), _lines)(axes, fields, ink)
    _lay_out(axes, fields)
    axes.set_title(title, color=ink, fontsize=11, loc="left")
    axes.set_xlabel(str(fields.get("x_label") or ""), color=ink)
    axes.set_ylabel(str(fields.get("y_label") or ""), color=ink)
    axes.tick_params(colors=ink, labelcolor=ink)
    for name, edge in axes.spines.items():
        edge.set_color(ink)
        edge.set_visible(name in ("left", "bottom"))
    for other in figure.axes[1:]:  # the scale of a heat map
        other.tick_params(colors=ink, labelcolor=ink)
    if len(fields.get("series") or ()) > 1 and fields.get("shape") != "heat":
        axes.legend(frameon=False, labelcolor=ink, fontsize=9)
    return figure


def _lay_out(axes: Axes, fields: Plot) -> None:
    """Both axes: names, dates or numbers along x, and logarithms where they are asked for."""
    from matplotlib.dates import ConciseDateFormatter
    from matplotlib.ticker import LogFormatter, MaxNLocator

    along = [_places(fields, name) for name in fields["series"]]
    places = [place for some, _ in along for place in some]
    if fields.get("shape") not in ("bars", "heat"):
        if any(isinstance(place, str) for place in places):
            _name_places(axes, list(dict.fromkeys(map(str, places))))
        elif all(dates for _, dates in along):
            axes.xaxis_date()
            axes.xaxis.set_major_formatter(ConciseDateFormatter(axes.xaxis.get_major_locator()))  # type: ignore[no-untyped-call]
        elif not fields.get("log_x") and all(float(place).is_integer() for place in _numbers(places)):
            axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))
    if fields.get("log_x") and not any(isinstance(place, str) or dates for some, dates in along for place in some):
        axes.set_xscale("log")
    if fields.get("log_y"):
        axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":  # numbers as they are written, not as formulas
            axis.set(major_formatter=LogFormatter(), minor_formatter=LogFormatter())


def _legible(value: object) -> object:
    """What is drawn, its texts as they may be shown: their signs plain, and as long as there is room for."""
    if isinstance(value, str):
        return clean(value[:_LONGEST] + "…" * (len(value) > _LONGEST)).replace("\n", " ")
    if isinstance(value, Mapping):
        return {_legible(key): _legible(item) for key, item in value.items()}
    return [_legible(item) for item in value] if isinstance(value, list) else value


def _numbers(values: Sequence[object]) -> list[float]:
    return [float(v) if isinstance(v, int | float) else float("nan") for v in values]


def as_dates(places: Sequence[object]) -> list[datetime] | None:
    """ISO's dates and times, where all of these texts are."""
    texts = [v for v in places if isinstance(v, str) and re.match(r"\d{4}-\d\d-", v)]
    try:
        return [datetime.fromisoformat(v) for v in texts] if len(texts) == len(places) else None
    except ValueError:
        return None


def _places(fields: Plot, name: str) -> tuple[list[float | str], bool]:
    """Where one series stands: numbers, texts and, but below bars, the numbers of dates, and whether they are these."""
    from matplotlib.dates import date2num

    x = fields.get("x") or []
    places = list(x[name] if isinstance(x, Mapping) else x)
    dates = None if fields.get("shape") in ("bars", "heat") else as_dates(places)
    return ([float(date2num(date)) for date in dates], True) if dates else (places, False)  # type: ignore[no-untyped-call]


def _band(fields: Plot, name: str, values: list[float]) -> tuple[list[float], list[float]] | None:
    """The lower and the upper edge around one series; a missing edge is the series itself."""
    edges = [(fields.get("low") or {}).get(name), (fields.get("high") or {}).get(name)]
    if edges == [None, None]:
        return None
    low, high = (values if e is None else _numbers(e) for e in edges)
    return low, high


def _whiskers(values: list[float], band: tuple[list[float], list[float]]) -> list[list[float]]:
    return [[max(0.0, v - e) for v, e in zip(values, band[0], strict=True)],
            [max(0.0, e - v) for v, e in zip(values, band[1], strict=True)]]  # fmt: skip


def _lines(axes: Axes, fields: Plot, _: str) -> None:
    steps = fields.get("shape") == "steps"
    for i, (name, numbers) in enumerate(fields["series"].items()):
        values, places, colour = _numbers(numbers), _places(fields, name)[0], COLOURS[i % len(COLOURS)]
        few = len(values) <= 25 and not steps
        axes.plot(
            places, values, color=colour, label=name, linestyle=DASHES[i % len(DASHES)] if not steps else "-",
            drawstyle="steps-mid" if steps else "default", linewidth=1.6, marker=MARKS[i % 8] if few else None,
            markersize=4,
        )  # fmt: skip
        band = _band(fields, name, values)
        if band is not None:
            axes.fill_between(places, *band, color=colour, alpha=0.2, step="mid" if steps else None, linewidth=0)


def _points(axes: Axes, fields: Plot, _: str) -> None:
    for i, (name, numbers) in enumerate(fields["series"].items()):
        values, places, colour = _numbers(numbers), _places(fields, name)[0], COLOURS[i % len(COLOURS)]
        size = 18 if len(values) <= 200 else 4
        axes.scatter(places, values, s=size, color=colour, label=name, marker=MARKS[i % 8], alpha=0.8, linewidths=0)
        band = _band(fields, name, values)
        if band is not None:
            axes.errorbar(places, values, _whiskers(values, band), fmt="none", ecolor=colour, elinewidth=1)


def _bars(axes: Axes, fields: Plot, ink: str) -> None:
    names = list(fields["series"])
    wide = 0.8 / max(1, len(names))
    labels, _ = _places(fields, names[0])
    for i, name in enumerate(names):
        values = _numbers(fields["series"][name])
        if len(values) * len(names) > _MANY:  # narrower than the lines of their outlines
            axes.fill_between(range(len(values)), values, step="mid", color=COLOURS[i % len(COLOURS)], label=name)
            continue
        middle = [k + (i - (len(names) - 1) / 2) * wide for k in range(len(values))]
        band = _band(fields, name, values)
        axes.bar(middle, values, wide, color=COLOURS[i % len(COLOURS)], label=name,
                 yerr=None if band is None else _whiskers(values, band), ecolor=ink,
                 error_kw={"elinewidth": min(1.5, 100 / max(1, len(values) * len(names)))})  # fmt: skip
    _name_places(axes, [f"{v:g}" if isinstance(v, float) else str(v) for v in labels])


_ACROSS, _BESIDE, _WIDE = 75, 25, 22  # characters side by side, names side by side, characters of a line of a name


def _name_places(axes: Axes, names: list[str]) -> None:
    """Names below the places 0, 1, …, long ones in lines: aslant or upright where they have no room side by side, and
    not all where they are many."""
    names = [fill(name, _WIDE) for name in names]
    longest = max((len(line) for name in names for line in name.splitlines()), default=0)
    level = min(len(names), _BESIDE) * (longest + 2) <= _ACROSS or (len(names) > _BESIDE and longest <= 4)
    most = max(1, _ACROSS // (longest + 2)) if level else _BESIDE if len(names) <= _BESIDE else 15
    places = slice(None, None, -(-len(names) // most))
    upright = not level and longest > _WIDE // 2
    if upright:
        figure = cast("Figure", axes.figure)
        figure.set_figheight(figure.get_figheight() + 0.06 * longest)
    axes.set_xticks(
        range(len(names))[places], names[places], rotation=90 if upright else 0 if level else 30,
        ha="center" if level or upright else "right",
    )  # fmt: skip


def _heat(axes: Axes, fields: Plot, _: str) -> None:
    rows = {name: _numbers(values) for name, values in fields["series"].items()}
    table = list(rows.values())
    image = axes.imshow(table, aspect="auto", cmap="viridis", interpolation="nearest")
    bar = axes.figure.colorbar(image, ax=axes)
    bar.outline.set_visible(False)
    places = [f"{v:g}" if isinstance(v, float) else str(v) for v in _places(fields, next(iter(rows)))[0]]
    for set_ticks, names in ((axes.set_xticks, places), (axes.set_yticks, list(rows))):
        every = max(1, len(names) // 16)
        set_ticks(range(0, len(names), every), names[::every])
    if len(table) * len(table[0]) <= 150:
        finite = [v for row in table for v in row if v == v] or [0.0]
        middle = (min(finite) + max(finite)) / 2
        for i, row in enumerate(table):
            for j, v in enumerate(row):
                axes.text(j, i, f"{v:.3g}", ha="center", va="center", fontsize=8,
                          color="white" if v < middle else "black")  # fmt: skip


_DRAWN = {"line": _lines, "steps": _lines, "points": _points, "bars": _bars, "heat": _heat}
