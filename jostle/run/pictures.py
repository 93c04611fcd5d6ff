"""`plot("title", x = …, y = …)`: a picture of public numbers, as an event that tools draw.

A picture is data: a kind, axes, and series by name. Nothing is drawn here, and nothing private can be shown: what a
program hands over has been paid for, or it is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from typing import Any

from jostle.diagnostics import did_you_mean, refuse
from jostle.run.evaluator import At, builtin
from jostle.run.sequences import Period
from jostle.run.values import Grouped, Interval, JSet, is_number, is_sequence, is_vector, kind_name, need_room, show

KINDS = ("line", "points", "bars", "steps", "heat")
_KINDS_ELSEWHERE = {"scatter": "points", "hist": "bars", "histogram": "bars", "column": "bars"}


@builtin
def _plot(
    title: Any, x: Any = None, y: Any = None, *, kind: Any = None, x_label: Any = "", y_label: Any = "",
    low: Any = None, high: Any = None, log_x: Any = False, log_y: Any = False, at: At,
) -> None:  # fmt: skip
    """One picture. `y` is a list, a record of lists by name, or a grouped result, whose keys are `x` where no other is
    given; `x` is shared, or a record with the same names. `plot(y)` and `plot(x, y)` have no title of their own.

    `kind`: `line`, `points`, `bars` (of a grouped result, where none is given), `steps` (histograms), `heat` (`y`: a
    row of numbers for each name, `x`: the columns). `low` and `high`, shaped as `y`, draw a band or whiskers.
    """
    interp, span = at
    title, x, y = _parts_of(title, x, y)
    if kind is None:
        kind = "bars" if isinstance(y, Grouped) else "line"
    if kind not in KINDS:
        hint = did_you_mean(_KINDS_ELSEWHERE.get(kind, kind), KINDS) if isinstance(kind, str) else ""
        raise refuse("TypeError", f"`plot` draws {', '.join(KINDS)}", help=hint)
    series = _by_name(y, "y", title)
    if not series:
        raise refuse("TypeError", "`plot` needs `y`: a list of numbers, or a record of lists by name")
    along = _along(x, series)
    band: dict[str, dict[str, Sequence[float | None]]] = {
        name: {**_by_name(lists, name, title)} for name, lists in (("low", low), ("high", high)) if lists is not None
    }
    if not band and kind != "heat":
        band = _margins(y, title)
    _check(series, along, band)
    fields: dict[str, Any] = {"shape": kind, "x": along, "series": series, "x_label": str(x_label),
                             "y_label": str(y_label), "log_x": bool(log_x), "log_y": bool(log_y), **band}  # fmt: skip
    if not interp.quiet:
        interp.kernel.events.emit("picture", title, span, **fields)


def _parts_of(title: Any, x: Any, y: Any) -> tuple[str, Any, Any]:
    """What is drawn, of `plot("title", y)`, `plot("title", x, y)`, `plot(y)` and `plot(x, y)`."""
    if isinstance(title, str):
        x, y = (None, x) if y is None else (x, y)
    elif y is None:
        title, x, y = (None, None, title) if x is None else (None, title, x)
    else:
        raise refuse("TypeError", f"a picture has a title, not {kind_name(title)}", help='`plot("counts", x, y)`')
    if isinstance(y, Grouped):
        names = list(y.columns)
        x = _keys_along(y) if x is None else x
        title = title or " by ".join(", ".join(part) for part in (names[y.keys :], names[: y.keys]) if part)
    return title or "values", x, y


def _keys_along(result: Grouped) -> list[object]:
    """A place on the axis for each group: its key, or the texts of its keys."""
    keys = list(zip(*list(result.columns.values())[: result.keys], strict=True))
    if all(len(key) == 1 and is_number(key[0]) for key in keys):
        return [key[0] for key in keys]
    return [", ".join(map(show, key)) for key in keys]


def _by_name(value: object, what: str, title: str) -> dict[str, list[float | None]]:
    if isinstance(value, Grouped):
        columns = list(value.columns)[value.keys :]
        return {name: _numbers(value.columns[name], name) for name in columns}
    if isinstance(value, dict):
        return {name: _numbers(items, f"{what}.{name}") for name, items in value.items()}
    if is_vector(value) and value.ndim == 2:
        return {str(i): _numbers(row, what) for i, row in enumerate(value)}
    return {} if value is None else {title: _numbers(value, what)}


def _margins(value: object, title: str) -> dict[str, dict[str, Sequence[float | None]]]:
    """The ends of what is noisy, where the program gives none of its own."""
    from jostle.run.margins import bars

    if is_vector(value) and value.ndim == 2:  # its rows, as `_by_name` has them
        ends, many = bars(value), value.shape[1]
        return {} if ends is None else {
            which: {str(i): end[i * many : (i + 1) * many] for i in range(len(value))}
            for which, end in zip(("low", "high"), ends, strict=True)
        }  # fmt: skip
    if isinstance(value, Grouped):
        lists: dict[str, object] = {name: value.columns[name] for name in list(value.columns)[value.keys :]}
    else:
        lists = dict(value) if isinstance(value, dict) else {title: value}
    bounds = {name: bars(items) for name, items in lists.items() if isinstance(items, list) or is_vector(items)}
    pairs = {name: both for name, both in bounds.items() if both is not None}
    return {which: {name: both[i] for name, both in pairs.items()} for i, which in enumerate(("low", "high")) if pairs}


def _along(x: object, series: dict[str, list[float | None]]) -> object:
    """The places on the axis: numbers, texts or dates, shared or by series; positions from 0 where none are given."""
    if x is None:
        return [float(i) for i in range(max(len(v) for v in series.values()))]
    if isinstance(x, dict):
        for name in series:
            if name not in x:
                raise refuse("NameError", f"`x` has no places for `{name}`", help=f"it has {', '.join(x)}")
        return {name: _positions(x[name]) for name in series}
    return _positions(x)


def _positions(value: object) -> list[object]:
    items = _items(value, "x")
    for kinds in (str, bool, date):
        if all(isinstance(v, kinds) for v in items):
            return [show(v) for v in items]
    if not all(is_number(v) for v in items):
        raise refuse("TypeError", "`x` takes all numbers, all texts or all dates")
    return [float(v) for v in items]


def _numbers(value: object, what: str) -> list[float | None]:
    out: list[float | None] = []
    for v in _items(value, what):
        if not (v is None or is_number(v) or type(v).__module__ == "numpy"):
            raise refuse("TypeError", f"`{what}` takes numbers, and here is {kind_name(v)}")
        out.append(None if v is None or not math.isfinite(float(v)) else float(v))
    return out


_FIELDS = 'a field of its lines is one: `plot(r.column("value"), low = r.column("low"), high = r.column("high"))`'


def _items(value: Any, what: str) -> list[Any]:
    if isinstance(value, Interval | Period):
        need_room(value.count)
        return list(value)
    if not (isinstance(value, JSet) or is_sequence(value)):
        kind = kind_name(value)
        raise refuse("TypeError", f"`{what}` takes a list, not {kind}", help=_FIELDS if kind == "a report" else "")
    need_room(len(value))
    return list(value)


def _check(series: dict[str, Any], along: Any, band: dict[str, dict[str, Any]]) -> None:
    for name, values in series.items():
        places = along[name] if isinstance(along, dict) else along
        if len(places) != len(values):
            raise refuse("ValueError", f"`{name}` has {len(values)} values for {len(places)} places of `x`")
        for which, edges in band.items():
            if name in edges and len(edges[name]) != len(values):
                raise refuse("ValueError", f"`{which}` of `{name}` has {len(edges[name])} values for {len(values)}")
    for which, edges in band.items():
        for name in edges:
            if name not in series:
                raise refuse("NameError", f"`{which}` names `{name}`, which `y` has not")
