"""The numbers in a released value, each with its interval, by column and label; and the shapes of events' fields.

A number has one place, a vector one for each element, a table a column for each measure and a label for each row, made
of its keys. So two runs can be compared number by number, and one run can be drawn. A trace is a file, and a file may
have been altered: what is read by shape here needs no guard in the renderings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal

from msgspec import Struct

from jostle.events import Event
from jostle.formulas import digits_beside, margin_text, with_margin
from jostle.resources import Json
from jostle.trace.pictures import Picture, Plot, as_dates
from jostle.trace.text import UNITS, exact, number

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_BARS = 40  # labels that fit side by side under bars


class Figure(Struct, frozen=True):
    """One cell of a released value: what was released, the half-width of its noise at 95 %, and the interval's ends
    (None where they are not known)."""

    value: Json
    error: float | None = None
    low: float | None = None
    high: float | None = None
    beside: str = ""  # the error in words

    @staticmethod
    def of(value: object, margin: object) -> Figure:
        """The figure of a value and its margin, as a `release` event has them."""
        part = margin if isinstance(margin, Mapping) and is_number(value) else {}
        error, low, high = (part.get(name) if is_number(part.get(name)) else None for name in ("error", "low", "high"))
        return Figure(value, error, low, high, margin_text(value, margin))

    def __str__(self) -> str:
        digits = digits_beside(self.value, self.error) if is_number(self.value) else 6
        return with_margin(number(self.value, digits), self.beside)

    def ends(self) -> tuple[float, float] | None:
        """The interval: its ends, or what the error gives for those that are not known."""
        if self.error is None:
            return None
        low = self.value - self.error if self.low is None else self.low
        high = self.value + self.error if self.high is None else self.high
        return low, high


Columns = dict[str, dict[str, Figure]]


def is_number(value: object) -> bool:
    """A finite number, no truth."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def columns(event: Event) -> Columns:
    """The figures of a `release` event, by column and label; a column and a label without a name are empty texts.

    Of many rows without keys or errors, which are a sample and no table, it has the mean of each column.
    """
    keys = event.fields.get("keys")
    out: Columns = {}
    key_names = [str(k) for k in keys] if isinstance(keys, list) else []
    for column, label, figure in _figures(event.fields.get("value"), event.fields.get("margins"), key_names):
        out.setdefault(column, {})[label] = figure
    return out


def _figures(value: object, margins: object, keys: Sequence[str]) -> Iterator[tuple[str, str, Figure]]:
    if isinstance(value, Mapping):
        yield from _of_record(value, margins)
    elif isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
        yield from _of_rows(value, margins, keys)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            for column, label, figure in _figures(item, _item(margins, place), ()):
                yield column, f"{place}, {label}" if label else str(place), figure
    else:
        yield "", "", Figure.of(value, margins)


def _of_record(value: Mapping[str, object], margins: object) -> Iterator[tuple[str, str, Figure]]:
    for name, item in value.items():
        inner = _figures(item, margins.get(name) if isinstance(margins, Mapping) else None, ())
        for column, label, figure in inner:
            if isinstance(item, Mapping | list):
                yield f"{name}.{column}" if column else str(name), label, figure
            else:
                yield "", str(name), figure


def _of_rows(
    rows: Sequence[Mapping[str, Json]], margins: object, keys: Sequence[str]
) -> Iterator[tuple[str, str, Figure]]:
    """A table: rows are known by their keys, or by their number where they have none, or two have the same."""
    if not keys and not isinstance(margins, list) and len(rows) > _BARS:
        for name in rows[0]:
            cells = [float(row[name]) for row in rows if is_number(row.get(name))]
            if len(cells) == len(rows):
                yield "mean", str(name), Figure(math.fsum(cells) / len(cells))
        return
    labels = [", ".join(number(row.get(key)) for key in keys) for row in rows]
    if not keys or len(set(labels)) < len(rows):
        labels = [str(place) for place in range(1, len(rows) + 1)]
    for place, (row, label) in enumerate(zip(rows, labels, strict=True)):
        entry = _item(margins, place)
        for name, cell in row.items():
            if name not in keys:
                yield str(name), label, Figure.of(cell, entry.get(name) if isinstance(entry, Mapping) else None)


def _item(margins: object, place: int) -> object:
    return margins[place] if isinstance(margins, list) and place < len(margins) else None


def pictures_of(event: Event) -> list[Picture]:
    """A picture for each column of a table whose rows have keys or errors, and for a vector of more than 4 numbers."""
    value = event.fields.get("value")
    if not isinstance(value, list) or not value:
        return []
    if is_matrix(value):
        rows = {str(place): row for place, row in enumerate(value)}
        return [Picture(event.name, {"shape": "heat", "x": list(map(str, range(len(value[0])))), "series": rows})]
    has_margins = isinstance(event.fields.get("margins"), list)
    if not (has_margins or (isinstance(value[0], Mapping) and event.fields.get("keys")) or
            (len(value) > 4 and all(is_number(v) for v in value))):  # fmt: skip
        return []
    titled = ((f"{event.name}: {name}" if name else event.name, figures) for name, figures in columns(event).items())
    keys = ", ".join(map(str, event.fields.get("keys") or ()))
    return [picture for title, figures in titled if (picture := plot(title, {title: figures}, keys)) is not None]


def is_matrix(value: object) -> bool:
    """Several lists of as many numbers each."""
    rows = value if isinstance(value, list) and len(value) > 1 else [None]
    if not all(isinstance(row, list) and row and all(map(is_number, row)) for row in rows):
        return False
    return len(set(map(len, rows))) == 1


def plot(title: str, series: Mapping[str, Mapping[str, Figure]], keys: str = "") -> Picture | None:
    """Columns with the same labels, of these keys, in one picture, with their intervals: bars for few labels, steps for
    many; None where fewer than two of them are numbers."""
    labels = list(dict.fromkeys(label for figures in series.values() for label in figures))
    tall = {name: [figures.get(label, Figure(None)) for label in labels] for name, figures in series.items()}
    if any(sum(is_number(f.value) for f in figures) < 2 for figures in tall.values()) or not tall:
        return None
    fields: Plot = {
        "series": {name: [f.value if is_number(f.value) else None for f in figures] for name, figures in tall.items()}
    }
    low, high = (
        {name: [_end(f, which) for f in figures] for name, figures in tall.items()
         if any(f.error is not None for f in figures)}
        for which in (0, 1)
    )  # fmt: skip
    if low:
        fields["low"], fields["high"] = low, high
    if len(labels) <= _BARS:
        return Picture(title, {**fields, "shape": "bars", "x": labels, "x_label": keys})
    return Picture(title, {**fields, "shape": "steps", **_steps(labels, keys)})


def _steps(labels: list[str], keys: str) -> Plot:
    """Where many labels stand: at their numbers or dates, else at 0, 1, 2, …"""
    if keys and as_dates(labels):
        return {"x": labels, "x_label": keys}
    if keys and all(map(_NUMBER.fullmatch, labels)):
        return {"x": list(map(float, labels)), "x_label": keys}
    return {"x": list(map(float, range(len(labels)))), "x_label": "cell"}


def _end(figure: Figure, which: int) -> float | None:
    ends = figure.ends()
    value: float | None = figure.value if is_number(figure.value) else None
    return value if ends is None else ends[which]


Shape = Callable[[object], bool]


def damage(kind: str, fields: Mapping[str, object]) -> str | None:
    """The first field of an event that is missing or that no run writes so; `None` where all are right."""
    for name, shape in _SHAPES.get(kind, {}).items():
        if name in fields:
            if not shape(fields[name]):
                return name
        elif name in _NEEDED.get(kind, ()):
            return name
    together = _TOGETHER.get(kind)
    return together(fields) if together is not None else None


def _text(value: object) -> bool:
    return isinstance(value, str)


def _figure(value: object) -> bool:
    """A number, or the text that JSON has for one that is not finite."""
    return is_number(value) or value in ("inf", "-inf", "nan")


def _amount(value: object) -> bool:
    """An amount of a budget, as a number or a text."""
    decimal = exact(value) if _text(value) or is_number(value) else None
    return decimal is not None and (decimal == 0 or Decimal("1e-30") < decimal < Decimal("1e30"))


def _budget(value: Json) -> bool:
    """`epsilon 1`, `rho 0.5`, `epsilon 1, delta 1e-06`."""
    parts = [part.split() for part in value.split(",")] if _text(value) else []
    return bool(parts) and all(len(p) == 2 and p[0] in UNITS and _amount(p[1]) for p in parts)


def _maybe(shape: Shape) -> Shape:
    return lambda value: value is None or shape(value)


def _either(one: Shape, other: Shape) -> Shape:
    return lambda value: one(value) or other(value)


def _list(of: Shape) -> Shape:
    return lambda value: isinstance(value, list) and all(map(of, value))


def _by_name(of: Shape) -> Shape:
    return lambda value: isinstance(value, Mapping) and all(map(of, value.values()))


def _record(**shapes: Shape) -> Shape:
    """A record that has all these fields, and perhaps others."""
    return lambda value: isinstance(value, Mapping) and all(k in value and of(value[k]) for k, of in shapes.items())


def _node(value: object) -> bool:
    """A node of a decision tree: a leaf `says` utilities by option, another has a branch on both sides."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Mapping):
            return False
        if "says" not in node:
            if "low" not in node or "high" not in node:
                return False
            waiting += [node["low"], node["high"]]
        elif not _by_name(is_number)(node["says"]):
            return False
    return True


_UTILITIES = _record(utilities=_by_name(is_number), epsilon=_maybe(is_number), scale=_maybe(is_number))
_FIGURES = _record(total=_amount, spent=_amount)


def _unit_amounts(value: object) -> bool:
    """What one source may lose and has lost, by unit."""
    units = set(value) if isinstance(value, Mapping) else set()
    return units <= set(UNITS) and bool(units & {"epsilon", "rho"}) and _by_name(_FIGURES)(value)


def _training(fields: Mapping[str, Json]) -> str | None:
    """Every run of a training knows the utility of every option."""
    options, rows = fields.get("options") or (), fields.get("rows") or ()
    return "rows" if any(option not in row["utilities"] for row in rows for option in options) else None


def _picture(fields: Mapping[str, Json]) -> str | None:
    """Every series has as many places on the axis, and as many edges, as it has values."""
    series, along = fields["series"], fields.get("x")
    ragged = len(set(map(len, series.values()))) > 1
    if not series or (ragged and fields.get("shape") == "heat"):
        return "series"
    for name, values in series.items():
        places = along.get(name) if isinstance(along, Mapping) else along
        if places is None or len(places) != len(values) or len({isinstance(v, str) for v in places}) > 1:
            return "x"
        for edge in ("low", "high"):
            if len((fields.get(edge) or {}).get(name, values)) != len(values):
                return edge
    return None


_PLACES = _list(_either(is_number, _text))
_STEPS = _list(_record(feature=_text, value=_figure, went=_text, threshold=_figure))
_PRICE = {"epsilon": _maybe(_amount), "rho": _maybe(_amount)}
_SHAPES: dict[str, dict[str, Shape]] = {
    "run": {"text": _text, "printed": _list(_text), "version": _text, "date": _text, "budget": _by_name(_unit_amounts)},
    "source": {"unit": _text, "budget": _budget, "schema": _list(_text), "before": _amount, "same_as": _text},
    "allotment": {**_PRICE, "spent": _either(_amount, _by_name(_amount))},
    "query": {
        **_PRICE, "aggregates": _list(_text), "keys": _list(_text), "selects": is_number, "blocks": is_number,
        "strategy": _list(_record(by=_list(_text), share=is_number)), "of_alone": _by_name(is_number),
    },
    "measure": {**_PRICE, "sources": _list(_text), "mechanism": _text, "scale": _figure, "prepaid": _figure,
                "within": _figure, "of": _text},
    "feature": {**_PRICE, "value": _figure, "error": _maybe(_figure)},
    "choice": {
        **_PRICE, "spent": is_number, "chosen": _text, "policy": _text, "way": _text, "margin": _maybe(is_number),
        "features": _list(_record(name=_text, value=_figure)), "predictions": _by_name(is_number),
        "spread": _by_name(is_number), "path": _STEPS, "paths": _by_name(_STEPS), "trees": _by_name(_node),
    },
    "train": {
        "options": _list(_text), "features": _list(_text), "databases": _list(_text), "rows": _list(_UTILITIES),
        "standings": _list(_record(policy=_text, regret=is_number, error=is_number)),
    },
    "picture": {
        "shape": _text, "x": _either(_PLACES, _by_name(_PLACES)), "series": _by_name(_list(_maybe(is_number))),
        "low": _by_name(_list(_maybe(is_number))), "high": _by_name(_list(_maybe(is_number))),
    },
    "error": {"message": _text},
}  # fmt: skip
_NEEDED = {"source": ("unit", "budget"), "measure": ("sources",), "picture": ("shape", "x", "series")}
_TOGETHER = {"train": _training, "picture": _picture}
