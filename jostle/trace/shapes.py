"""The shapes of the fields of each kind of event, as far as a rendering takes them apart.

A trace is a file, and a file may have been altered. What is read by shape here needs no guard in the renderings;
fields without a row may be anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from jostle.trace.text import UNITS, exact

Shape = Callable[[Any], bool]


def damage(kind: str, fields: Mapping[str, Any]) -> str | None:
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


def _number(value: object) -> bool:
    """A finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _figure(value: object) -> bool:
    """A number, or the text that JSON has for one that is not finite."""
    return _number(value) or value in ("inf", "-inf", "nan")


def _amount(value: object) -> bool:
    """An amount of a budget, as a number or a text."""
    decimal = exact(value) if _text(value) or _number(value) else None
    return decimal is not None and (decimal == 0 or Decimal("1e-30") < decimal < Decimal("1e30"))


def _budget(value: Any) -> bool:
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
        elif not _by_name(_number)(node["says"]):
            return False
    return True


_UTILITIES = _record(utilities=_by_name(_number), epsilon=_maybe(_number), scale=_maybe(_number))
_FIGURES = _record(total=_amount, spent=_amount)


def _unit_amounts(value: object) -> bool:
    """What one source may lose and has lost, by unit."""
    units = set(value) if isinstance(value, Mapping) else set()
    return units <= set(UNITS) and bool(units & {"epsilon", "rho"}) and _by_name(_FIGURES)(value)


def _training(fields: Mapping[str, Any]) -> str | None:
    """Every run of a training knows the utility of every option."""
    options, rows = fields.get("options") or (), fields.get("rows") or ()
    return "rows" if any(option not in row["utilities"] for row in rows for option in options) else None


def _picture(fields: Mapping[str, Any]) -> str | None:
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


_PLACES = _list(_either(_number, _text))
_STEPS = _list(_record(feature=_text, value=_figure, went=_text, threshold=_figure))
_PRICE = {"epsilon": _maybe(_amount), "rho": _maybe(_amount)}
_SHAPES: dict[str, dict[str, Shape]] = {
    "run": {"text": _text, "printed": _list(_text), "version": _text, "date": _text, "budget": _by_name(_unit_amounts)},
    "source": {"unit": _text, "budget": _budget, "schema": _list(_text), "before": _amount, "same_as": _text},
    "allotment": {**_PRICE, "spent": _either(_amount, _by_name(_amount))},
    "query": {
        **_PRICE, "aggregates": _list(_text), "keys": _list(_text), "selects": _number, "blocks": _number,
        "strategy": _list(_record(by=_list(_text), share=_number)), "of_alone": _by_name(_number),
    },
    "measure": {**_PRICE, "sources": _list(_text), "mechanism": _text, "scale": _figure, "prepaid": _figure,
                "within": _figure, "of": _text},
    "feature": {**_PRICE, "value": _figure, "error": _maybe(_figure)},
    "choice": {
        **_PRICE, "spent": _number, "chosen": _text, "policy": _text, "way": _text, "margin": _maybe(_number),
        "features": _list(_record(name=_text, value=_figure)), "predictions": _by_name(_number),
        "spread": _by_name(_number), "path": _STEPS, "paths": _by_name(_STEPS), "trees": _by_name(_node),
    },
    "train": {
        "options": _list(_text), "features": _list(_text), "databases": _list(_text), "rows": _list(_UTILITIES),
        "standings": _list(_record(policy=_text, regret=_number, error=_number)),
    },
    "picture": {
        "shape": _text, "x": _either(_PLACES, _by_name(_PLACES)), "series": _by_name(_list(_maybe(_number))),
        "low": _by_name(_list(_maybe(_number))), "high": _by_name(_list(_maybe(_number))),
    },
    "error": {"message": _text},
}  # fmt: skip
_NEEDED = {"source": ("unit", "budget"), "measure": ("sources",), "picture": ("shape", "x", "series")}
_TOGETHER = {"train": _training, "picture": _picture}
