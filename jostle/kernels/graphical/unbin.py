"""Turns bins of synthetic rows back into values: each is drawn uniformly from its bin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats, Ints
from jostle.kernels.errors import KernelError
from jostle.kernels.graphical.domain import MOST_VALUES, Domain
from jostle.kernels.graphical.rows import SyntheticRows


def unbinned_rows(rows: Any, cuts: Mapping[str, Any], columns: Mapping[str, Any], seed: int = 0) -> SyntheticRows:
    """`rows`, synthetic, with the columns of `cuts` as numbers again.

    `cuts`: for each cut column the edges of its bins, of which value b says how many a number reaches. `columns`: for
    each of these its public bounds and whether it holds whole numbers, [low, high, whole]. A bin is a range from an
    edge to below the next, within the bounds; one that holds no number of the column stands for the nearest bound or
    edge. Seeded: the rows are a model's, and nothing private is left to hide.
    """
    if not isinstance(rows, SyntheticRows):
        raise KernelError("only synthetic rows, as a model samples them, can be spread over their bins")
    rng = np.random.default_rng(int(seed))
    values, codes = list(rows.domain.values), rows.codes.copy()
    for name, edges in cuts.items():
        if name not in columns:
            raise KernelError(f"there is no numeric column `{name}` in the table")
        place = rows.domain.place(name)
        bins = np.array(rows.domain.values[place], dtype=float)[codes[:, place]].astype(np.int64)
        low, high, whole = columns[name]
        numbers = _uniform_in_bins(
            bins, np.unique(np.asarray(list(edges), dtype=float)), float(low), float(high), bool(whole), rng
        )
        values[place], codes[:, place] = _encode(numbers, float(low), float(high), bool(whole))
    return SyntheticRows(Domain(rows.domain.names, tuple(values)), codes)


def _uniform_in_bins(
    bins: Ints, edges: Floats, low: float, high: float, whole: bool, rng: np.random.Generator
) -> Floats:
    """One number for each bin number, evenly from its bin within the bounds."""
    first = np.concatenate([[low], edges])[bins]
    last = np.concatenate([edges, [high]])[bins]
    if not whole:
        first, last = np.clip(first, low, high), np.clip(last, low, high)
        return np.asarray(first + rng.random(len(bins)) * (last - first))
    ends = bins == len(edges)  # the last bin ends with the bound, the others before an edge
    first = np.clip(np.ceil(first), low, high)
    last = np.clip(np.where(ends, np.floor(last), np.ceil(last) - 1), first, high)
    return np.asarray(first + np.floor(rng.random(len(bins)) * (last - first + 1)))


def _encode(numbers: Floats, low: float, high: float, whole: bool) -> tuple[tuple[float, ...], Ints]:
    """The values of a column and a code for each row; a range that is too wide to list has those that were drawn."""
    if whole and high - low < MOST_VALUES:
        return tuple(low + i for i in range(int(high - low) + 1)), (numbers - low).astype(np.int64)
    distinct, codes = np.unique(numbers, return_inverse=True)
    return tuple(float(v) for v in distinct), codes.astype(np.int64).ravel()
