"""Cross tables whose totals are those of their cells, and summaries of one column."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jostle.error_laws import sum_quantile
from jostle.kernels.accuracy import standard_errors
from jostle.kernels.arrays import Floats
from jostle.kernels.noisy_array import noise_of
from jostle.kernels.statistics.comparison import mean_of
from jostle.kernels.statistics.moments import quantile_of
from jostle.kernels.statistics.report import Report, text


def cross_table(names: Sequence[str], rows: Sequence[Any], columns: Sequence[Any], answers: Floats) -> Report:
    """Cells, margins and the total, as a workload [cells, first margin, second margin, total] answers them."""
    a, b = len(rows), len(columns)
    wide = _half_widths(answers)
    cells, first, second, total = _parts(np.asarray(answers, dtype=float), a, b)
    unsure, unsure_first, unsure_second, unsure_total = _parts(np.asarray(wide), a, b)
    lines = []
    for i, key in enumerate([*rows, "all"]):
        values = cells[i] if i < a else second
        whole = first[i] if i < a else total
        line: dict[str, Any] = {names[0]: text(key)}
        line |= {_heading(names, column): round(float(v), 2) for column, v in zip(columns, values, strict=True)}
        lines.append(line | {"all": round(float(whole), 2)})
    note = (
        f"± {text(float(unsure.mean()))} a cell, ± {text(float(unsure_first.mean()))} a row's total, "
        f"± {text(float(unsure_second.mean()))} a column's, ± {text(float(unsure_total))} all of it"
    )
    facts = {
        "cells": cells, "row_totals": first, "column_totals": second, "total": float(total), "errors": unsure,
        "row_errors": unsure_first, "column_errors": unsure_second, "total_error": float(unsure_total),
        "row_keys": list(rows), "column_keys": list(columns),
    }  # fmt: skip
    return Report(f"rows by {names[0]} and {names[1]}", lines, [note], facts)


def _heading(names: Sequence[str], column: object) -> str:
    """A column's value as a heading, apart from the two other headings."""
    said = text(column)
    return f"{names[1]} {said}" if said in (names[0], "all") else said


def _parts(answers: Floats, a: int, b: int) -> tuple[Floats, Floats, Floats, Any]:
    return answers[: a * b].reshape(a, b), answers[a * b : a * b + a], answers[a * b + a : -1], answers[-1]


def _half_widths(answers: Floats) -> Floats:
    """Of each number, half of its 95 % interval: half a step more where noise is a few whole numbers."""
    noise = noise_of(answers)
    if noise is None:
        return np.zeros(np.shape(answers))
    return np.asarray(
        standard_errors(answers) * sum_quantile(type(noise.law)) + (noise.law.step / 2 if noise.law.coarse else 0)
    )


# One column --------------------------------------------------------------------------------------

HEAP = 0.01
"""Of the rows, from which on a heap at an end of the described range is said."""

QUANTILES = {"lowest": 0.0, "5 %": 0.05, "lower quartile": 0.25, "median": 0.5, "upper quartile": 0.75, "95 %": 0.95,
             "highest": 1.0}  # fmt: skip


def describe(
    name: str, gone: Floats, seen: Mapping[str, Any], below: Floats, starts: Sequence[float], high: float,
    middle: float, half: float, whole: bool,
) -> Report:  # fmt: skip
    """A summary of one column.

    `gone` (2,): noisy numbers of rows that have a value, and that have none. `seen`: the shares of (x − middle)/half.
    `below` (k,): noisy numbers of rows up to the end of each bin, as a workload of prefixes answers them; `starts` are
    the bins' lower ends. A quantile's interval is made of the bins in which as many rows may lie below.
    """
    z, quantile = mean_of(seen), quantile_of(seen["mechanism"])
    unsure = _half_widths(gone)
    lines = [
        _stated("rows", float(np.sum(gone)), math.hypot(*unsure)),
        _stated("missing", float(gone[1]), float(unsure[1])),
        _stated("mean", middle + half * z.mean, half * quantile * z.noise),
        _stated("deviation", half * z.deviation, half * quantile * z.deviation_noise),
    ]  # fmt: skip
    wide = _half_widths(below)
    counts = rising(np.asarray(below, dtype=float))
    ends = np.append(np.asarray(starts, dtype=float)[1:], high)
    places = np.asarray(starts, dtype=float)
    for said, share in QUANTILES.items():
        rank = share * counts[-1]
        doubt = float(np.sqrt(wide.max() ** 2 + (share * wide[-1]) ** 2))
        rank = min(max(rank, doubt), counts[-1] - doubt) if share in (0.0, 1.0) and doubt < counts[-1] / 2 else rank
        at = _at(counts, places, ends, rank, whole)
        low, high_ = (
            float(places[_bin(counts, rank - doubt)]),
            float((places if whole else ends)[_bin(counts, rank + doubt)]),
        )
        if share in (0.0, 1.0):
            low, high_ = (float(places[0]), high_) if share == 0.0 else (low, float(ends[-1]))
        lines.append({"": said, "value": at, "low": low, "high": high_})
    lines[4]["value"] = min(line["value"] for line in lines[4:])  # the lowest and highest are aimed at from inside
    lines[-1]["value"] = max(line["value"] for line in lines[4:])
    notes = ["the noise hides how many rows there are; spend more"] if z.hidden else []
    heaped = _at_ends(counts, math.sqrt(2) * float(wide.max()))
    if heaped:
        notes.append(f"{100 * heaped:.0f} % of the rows lie at an end of the described range, where numbers beyond it "
                     "are counted too: all this is of the clamped numbers")  # fmt: skip
    return Report(name, lines, notes, {_field(line[""]): line["value"] for line in lines})


def rising(noisy: Floats) -> Floats:
    """Numbers (k,) that do not fall: half-way from the largest so far, which noise lifts, to the smallest to come."""
    largest, smallest = np.maximum.accumulate(noisy), np.minimum.accumulate(noisy[::-1])[::-1]
    middle: Floats = (largest + smallest) / 2
    return middle


def _at_ends(counts: Floats, doubt: float) -> float:
    """The share of the rows in the first and the last bin, if either is a heap beside the next one, and no noise."""
    if len(counts) < 20:
        return 0.0
    bins = np.diff(counts, prepend=0.0)
    heaps = [float(end) for end, beside in ((bins[0], bins[1]), (bins[-1], bins[-2]))
             if end - 4 * max(float(beside), 0.0) > max(2 * doubt, HEAP * counts[-1])]  # fmt: skip
    return sum(heaps) / float(counts[-1]) if heaps else 0.0


def _field(said: str) -> str:
    return {"5 %": "p5", "95 %": "p95"}.get(said, said.replace(" ", "_"))


def _stated(said: str, value: float, error: float) -> dict[str, Any]:
    least = 0.0 if said in ("rows", "missing", "deviation") else -math.inf
    return {"": said, "value": max(value, least), "low": max(value - error, least), "high": max(value + error, least)}


def _bin(counts: Floats, rank: float) -> int:
    return min(int(np.searchsorted(counts, rank, side="left")), len(counts) - 1)


def _at(counts: Floats, starts: Floats, ends: Floats, rank: float, whole: bool) -> float:
    """The number below which so many rows lie: within its bin, where as many of the bin's rows do."""
    place = _bin(counts, rank)
    if whole:
        return float(starts[place])
    before = counts[place - 1] if place else 0.0
    share = min(max((rank - before) / max(counts[place] - before, 1e-9), 0.0), 1.0)
    return float(starts[place] + share * (ends[place] - starts[place]))
