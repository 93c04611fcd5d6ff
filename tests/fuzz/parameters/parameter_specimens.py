"""Faults of what runs over rows, put back one at a time: each must be convicted by the fuzzer.

The first four are of the kinds that were found in this package when functions of a batch ran over private rows: a table
one column short, parameters that fit for some numbers of rows only, a search that carries its place from row to row,
and a product that rounds by the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jostle.kernels import rowprograms
from jostle.kernels.rowprograms import scales
from jostle.privacy.rows import norms
from jostle.privacy.rows.expressions import (
    OPERATIONS,
    Expression,
    comparison,
    constant,
    one_hot,
    reshape,
    total,
)
from jostle.privacy.rows.norms import GRID, Weights
from jostle.privacy.rows.program import program
from jostle.privacy.scores import cells

Patch = pytest.MonkeyPatch


def tables_that_are_short(patch: Patch) -> None:
    """Looking up fails where a row has the last value of a table, and nowhere else."""
    patch.setitem(OPERATIONS, "look-up", lambda e, out, index: np.take(  # type: ignore[arg-type]
        e.array[..., : max(1, e.array.shape[-1] - 1)], index.astype(np.intp), axis=-1
    ))  # fmt: skip


def arrays_of_one_row(patch: Patch) -> None:
    """Constants are put beside numbers of rows: that fits for one number of rows only."""
    patch.setitem(OPERATIONS, "concatenate", lambda e, out, *arrays: np.concatenate(arrays))  # type: ignore[arg-type]


def a_search_among_edges(patch: Patch) -> None:
    """Shells are searched for among radii that nobody sorted."""

    def within(d: int, *, radii: Any) -> Weights:
        edges = (scales.numbers(radii, (None,), "radii") * GRID) ** 2
        units = scales.row(d)
        place = Expression("searched", (), 0, len(edges), (total(units * units),), edges)
        return Weights("within", program([units], one_hot(place, len(edges)) * GRID))

    def searched(e: Any, out: Any, number: Any) -> Any:
        """The place of a number among public ones, by a search that assumes that they rise."""
        return np.asarray(np.searchsorted(e.array, number), dtype=float)

    patch.setitem(OPERATIONS, "searched", searched)  # type: ignore[arg-type]
    patch.setitem(rowprograms.WEIGHTS, "within", within)  # type: ignore[arg-type]


def a_product_that_rounds(patch: Patch) -> None:
    """Partial sums of a product are rounded, in an order that goes by the number of rows."""

    def product(e: Any, out: Any, argument: Any) -> Any:
        columns, rows = argument.shape
        made = np.zeros((len(e.array), rows))
        for column in np.roll(np.arange(columns), rows):
            made = np.rint((made + e.array[:, column, None] * argument[column]) * 2.0**-38) * 2.0**38
        return made

    patch.setitem(OPERATIONS, "matrix", product)  # type: ignore[arg-type]


def frames_of_any_length(patch: Patch) -> None:
    """Frames are taken as a program gives them."""
    patch.setattr(norms, "whole_frames", lambda frames, squared, radius: np.trunc(frames * GRID / radius))


def weights_above_one(patch: Patch) -> None:
    """Weights of a row are each at most 1, and not all of them together."""
    patch.setattr(norms, "whole_weights", lambda weights: weights)

    def within(d: int, *, radii: Any) -> Weights:
        edges = scales.numbers(radii, (None,), "radii")
        units = scales.row(d)
        limits = constant(np.floor(np.minimum(edges * GRID, 2.0**25) ** 2))
        return Weights("within", program([units], comparison(reshape(total(units * units), (1,)), "<=", limits) * GRID))

    patch.setitem(rowprograms.WEIGHTS, "within", within)  # type: ignore[arg-type]


def sums_that_are_not_clipped(patch: Patch) -> None:
    """Contributions are rounded and not clipped to their norm."""
    patch.setattr(norms, "clipped", lambda given, *_: np.trunc(np.nan_to_num(given) * 2.0**30).astype(np.int64))


def the_mean_of_a_batch(patch: Patch) -> None:
    """A row is seen relative to the others of its batch."""

    def product(e: Any, out: Any, argument: Any) -> Any:
        middle = np.rint(argument.mean(axis=-1, keepdims=True)) if argument.size else 0.0
        return np.asarray(e.array @ (argument - middle))

    patch.setitem(OPERATIONS, "matrix", product)  # type: ignore[arg-type]


def a_number_written_over(patch: Patch) -> None:
    """The evaluator takes an array for its result that is needed again."""
    from jostle.privacy.rows.program import RowProgram

    right = RowProgram._steps.func  # type: ignore[attr-defined]

    def steps(self: RowProgram) -> list[Any]:
        held = [p for p, e in enumerate(self.order) if e.operation not in ("columns", "constant")]
        return [(p, apply, used, [s for s in used if s in held], *rest) for p, apply, used, _, *rest in right(self)]

    patch.setattr(RowProgram, "_steps", property(steps))


def a_count_of_two(patch: Patch) -> None:
    """A row counts twice, and a sensitivity of 1 is claimed."""
    patch.setattr(norms.RowCount, "sensitivity", property(lambda self: 0.5))
    from jostle.privacy.scores import vectorsums

    patch.setattr(vectorsums, "max", lambda *values: values[-1], raising=False)


def a_score_of_half_its_sensitivity(patch: Patch) -> None:
    """The cells' differences move by 2 for a row, and 1 is claimed."""
    patch.setattr(cells, "total_variation", cells.CellScore("total_variation", True, cells.total_variation.compute, 1))


def a_failure_on_few_rows(patch: Patch) -> None:
    """The largest cell is looked for among those above 1, and there may be none."""
    broken = cells.CellScore("largest_cell", True, lambda x: int(x[x > 1].max()), monotone=True)
    patch.setattr(cells, "largest_cell", broken)


SPECIMENS: dict[str, tuple[Callable[[Patch], None], str]] = {
    "tables that are short": (tables_that_are_short, "classifiers"),
    "arrays of one row": (arrays_of_one_row, "sums"),
    "a search among edges": (a_search_among_edges, "moments"),
    "a product that rounds": (a_product_that_rounds, "moments"),
    "frames of any length": (frames_of_any_length, "moments"),
    "weights above one": (weights_above_one, "moments"),
    "sums that are not clipped": (sums_that_are_not_clipped, "sums"),
    "the mean of a batch": (the_mean_of_a_batch, "moments"),
    "a number written over": (a_number_written_over, "moments"),
    "a count of two": (a_count_of_two, "classifiers"),
    "a score of half its sensitivity": (a_score_of_half_its_sensitivity, "scores"),
    "a failure on few rows": (a_failure_on_few_rows, "scores"),
}
"""Each with the family of calls that it is convicted by."""

ALONE = {
    "tables that are short": "classifiers", "arrays of one row": "sums", "a search among edges": "moments",
    "a product that rounds": "moments", "the mean of a batch": "moments", "a number written over": "moments",
    "a score of half its sensitivity": "selections",
}  # fmt: skip
"""Those that show where nothing but the exact part is run, each with its family of `parameter_cores`."""
