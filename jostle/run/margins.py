"""The errors of released values as plain data: for listings, pages, files, frames and pictures.

A margin is what JSON has of a number: `value`, its `error` at 95 %, and `low` and `high`. Those of a value have its
form, with `None` where nothing is known. Of a number that was chosen it is its `value`, and its error in `ranks`, or of
a mode in `rows`. Where the error is of the noise alone, `cut` lists what it does not cover; where cells did not fit, so
that no error is known, it is None. `hidden` is true in all
columns of a group whose count of rows is no larger than its error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jostle.formulas import Marked, Noised, cuts_of, rests_on_misfits
from jostle.run.propagation import Uncertainties, Uncertainty, of_numbers, vector_uncertainties
from jostle.run.values import Grouped, JSet, is_sequence, is_vector

MOST_SHOWN = 2000
"""Elements and rows whose margins go into traces and listings; files and frames have all of them."""


def ends(values: Any) -> tuple[list[float | None], list[float | None]] | None:
    """The lower and the upper ends of the numbers of a column; None where no error is known."""
    if is_vector(values):
        vector = None if rests_on_misfits(cuts_of(values)) else _of_vector(values)
        return None if vector is None else ([*vector.low.ravel().tolist()], [*vector.high.ravel().tolist()])
    told = [None if rests_on_misfits(cuts_of(v)) else one for v, one in zip(values, of_numbers(values), strict=True)]
    if not any(told):
        return None
    return [one.low if one else None for one in told], [one.high if one else None for one in told]


def with_ends(columns: dict[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """Columns of a table, of noisy numbers each followed by `NAME_low` and `NAME_high`, of chosen ones `NAME_ranks`.

    `NAME_cut` says what an error does not cover, where it does not cover all.
    """
    out: dict[str, Sequence[Any]] = {}
    for name, values in columns.items():
        out[name] = values
        told = ends(values)
        names = [f"{name}_low", f"{name}_high"]
        if told is None:
            chosen = {f"{name}_{of}": column for of, column in _chosen(values).items()}
            out.update({other: column for other, column in chosen.items() if other not in columns})
        elif not any(other in columns for other in names):
            out.update(zip(names, told, strict=True))
        if cuts_of(values, *values) and f"{name}_cut" not in columns:
            out[f"{name}_cut"] = ["; ".join(cuts_of(values, value)) for value in values]
    return out


def _chosen(values: Sequence[Any]) -> dict[str, list[float | None]]:
    """The ranks or rows that the numbers of a column are off at most, where they were chosen."""
    ranks = [value.ranks if type(value) is Noised else None for value in values]
    kinds = {one[1] for one in ranks if one is not None}
    return {of: [one[0] if one is not None and one[1] == of else None for one in ranks] for of in sorted(kinds)}


def _margins_of_groups(value: Grouped) -> list[dict[str, Any]] | None:
    """For each group that is shown, the margins by column."""
    hidden = value.hidden(MOST_SHOWN)
    columns = {name: _margins_of(values, hidden) for name, values in list(value.columns.items())[value.keys :]}
    told = {name: column for name, column in columns.items() if column is not None}
    many = min(len(value), MOST_SHOWN)
    return [{name: column[row] for name, column in told.items()} for row in range(many)] if told else None


def margins(value: Any) -> Any:
    """The margins of a value in its form; None where there are none."""
    if type(value) in (Noised, Marked):
        return _margin(value, of_numbers([value])[0])
    if isinstance(value, Grouped):
        return _margins_of_groups(value)
    if isinstance(value, dict):
        fields = {name: margins(item) for name, item in value.items()}
        return {name: item for name, item in fields.items() if item is not None} or None
    if is_vector(value):
        return _margins_of_vector(value)
    if isinstance(value, JSet) or is_sequence(value):
        items = list(value)[:MOST_SHOWN]
        if any(type(item) in (Noised, Marked) for item in items):
            return _margins_of(items)
        inner = [margins(item) for item in items if not isinstance(item, (float, str))]
        return inner if any(item is not None for item in inner) and len(inner) == len(items) else None
    return None


def _margins_of(values: Sequence[Any], hidden: Sequence[bool] = ()) -> list[Any] | None:
    """The margins of a column; where noise hides the rows of a group, of what is no number too."""
    shown = values[:MOST_SHOWN]
    told = [_margin(value, one) for value, one in zip(shown, of_numbers(shown), strict=True)]
    for row, doubt in enumerate(hidden):
        told[row] = {**(told[row] or {}), "hidden": True} if doubt else told[row]
    return told if any(told) else None


def _margins_of_vector(value: Any) -> list[Any] | None:
    told = _of_vector(value) if value.ndim == 1 and len(value) else None
    if told is None:
        return None
    columns = (value, told.error, told.low, told.high)
    rows = zip(*(column[:MOST_SHOWN].tolist() for column in columns), strict=True)
    return [_finite(*row) | _cut(value) for row in rows]


def _of_vector(value: object) -> Uncertainties | None:
    """What is known of a vector; None of what is exact, and of what only a smaller question would tell."""
    from jostle.kernels.noisy_array import law_of, noise_of

    if noise_of(value) is not None and not law_of(value).scale:
        return None
    try:
        return vector_uncertainties(value)
    except (OverflowError, ValueError):
        return None


def _margin(value: Any, one: Uncertainty | None) -> dict[str, Any] | None:
    if one is not None:
        return _finite(float(value), one.error, one.low, one.high) | _cut(value)
    ranks = value.ranks if type(value) is Noised else None
    if ranks is not None:
        return {"value": float(value), ranks[1]: ranks[0]} | _cut(value)
    return {"value": float(value)} | _cut(value) if type(value) is Marked else None


def _cut(value: object) -> dict[str, Any]:
    cut, hidden = cuts_of(value), type(value) is Noised and value.hidden
    unknown = dict.fromkeys(("error", "low", "high")) if rests_on_misfits(cut) else {}
    return unknown | ({"cut": list(cut)} if cut else {}) | ({"hidden": True} if hidden else {})


def _finite(*numbers: float) -> dict[str, Any]:
    names = ("value", "error", "low", "high")
    return {name: end if math.isfinite(end) else None for name, end in zip(names, numbers, strict=True)}
