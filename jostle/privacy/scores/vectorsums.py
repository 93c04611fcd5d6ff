"""Exact sums of row programs over rows as vectors, and the coordinates of such sums as scores.

A row count is the sum over rows of an integer within a public interval (`privacy.rows`): `correct_count`, the rows that
a public classifier predicts correctly, and `surprise_count`, their negative log likelihood. Adding or removing a row
changes it by at most the largest absolute value of the interval. It is monotone if no number is negative.
`ranked_counts` counts the rows at each of several places, of which a row has at most one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.lazy import Ints, np
from jostle.plan.plan import Column, Key, Summands
from jostle.privacy.kernel.handles import Table, Vectors
from jostle.privacy.reading.vault import Reader
from jostle.privacy.rows import folds
from jostle.privacy.rows.factored import FactoredGradient, moments_of
from jostle.privacy.rows.norms import BITS, Contributions, RowCount, Weights
from jostle.privacy.scores import Rule, Score, Scores
from jostle.privacy.scores.cells import table_of
from jostle.privacy.scores.splits import key_of_column


@dataclass(frozen=True, eq=False)
class Coordinates(Rule):
    def exact(self, reader: Reader, score: Score) -> list[int]:
        rows: Any = score.base
        function, bound = score.arguments
        if isinstance(function, FactoredGradient):
            sums = fixed_width(_folded(reader, rows, folds.GradientFold(function, bound))[0])
        else:
            sums = contributions(reader, rows, function, bound, "sup")
        coordinates = [int(v) for v in sums]
        return [*coordinates, *(-v for v in coordinates)]


@dataclass(frozen=True, eq=False)
class RowTotal(Rule):
    def exact(self, reader: Reader, score: Score) -> list[int]:
        rows: Any = score.base
        function, bound = score.arguments
        return [int(v) for v in contributions(reader, rows, function, bound, "sup")]


COORDINATES, ROW_TOTAL = Coordinates("coordinates", False), RowTotal("row_total", False)


def check_columns(rows: Vectors, function: Weights | Contributions | FactoredGradient) -> None:
    """Refuses a function for rows of another form, which could fail on some rows only."""
    if function.columns != len(rows.names):
        raise refuse("ValueError", f"`{function.name}` is for {function.columns} columns, not for {len(rows.names)}")


def _folded(reader: Reader, rows: Vectors, fold: folds.Fold) -> list[Any]:
    return reader.answers.fold(rows.plan, rows.exprs, folds.AtRows.of(fold, rows))


def moments(reader: Reader, rows: Vectors, weights: Weights, degree: int) -> list[Ints]:
    """Σ γ_k, Σ γ_k x and Σ γ_k xxᵀ up to a degree of 2, in units of 2^-BITS."""
    return moments_of(_folded(reader, rows, folds.MomentFold(weights, len(rows.names), degree)))


def contributions(
    reader: Reader, rows: Vectors, function: Contributions, bound: float, norm: str,
    sampled: tuple[folds.Sampler, int] | None = None,
) -> Ints:  # fmt: skip
    """The sum of a program's output for each row, clipped to norm `bound`, in units of 2^-BITS of it. `sampled` is the
    noise and the share of a secret sample, if only that is summed."""
    fold: folds.Fold = folds.ContributionFold(function, bound, norm)
    return fixed_width(_folded(reader, rows, fold if sampled is None else folds.SampledFold(fold, *sampled))[0])


def coordinate_scores(rows: Vectors, function: Contributions | FactoredGradient, bound: float) -> Scores:
    """The coordinates of a sum as scores, followed by their negatives. Each contribution is within ±bound.

    One row changes each score by at most the bound; not monotone.
    """
    check_bound(bound, "sup")
    check_columns(rows, function)
    if isinstance(function, FactoredGradient) and (rows.norm != "sup" or rows.radius != 1):
        raise refuse(
            "ValueError", f"`{function.name}` goes by columns of a few values each",
            help='`vectors(people, age, sex, norm = "sup")`',
        )  # fmt: skip
    arguments = (function, bound)
    return Scores(rows.exposures, COORDINATES, rows, 2**BITS, False, BITS, arguments, length=2 * function.size)


def row_total(rows: Vectors, function: Contributions, bound: float) -> Score:
    """The sum over rows of a program's single output, clipped to ±bound, in multiples of the bound.

    One row changes it by at most 1; monotone if no number is negative.
    """
    check_bound(bound, "sup")
    check_columns(rows, function)
    (numbers,) = function.program.outputs
    if function.size != 1:
        raise refuse("ValueError", f"`{function.name}` gives {function.size} numbers of a row, and a score sums one")
    return Score(rows.exposures, ROW_TOTAL, rows, 2**BITS, numbers.low >= 0, BITS, (function, bound))


def check_bound(bound: float, norm: str) -> None:
    """Refuses a bound that is not a positive number, and an unknown norm."""
    if not 1e-100 < bound < 1e100:
        raise refuse("ValueError", "a bound is a positive number", help="`bound = 1`")
    if norm not in ("l1", "l2", "sup"):
        raise refuse("NameError", f"there is no norm `{norm}`", help="`l1`, `l2` or `sup`")


@dataclass(frozen=True, eq=False)
class RowCountRule(Rule, Summands):
    def exact_each(self, reader: Reader, scores: Sequence[Score]) -> list[list[int]]:
        """The counts. Those of the same columns of one table are computed in one pass over its rows."""
        totals: dict[int, list[int]] = {}
        together: dict[tuple[int, tuple[Key, ...]], list[int]] = {}
        for i, one in enumerate(scores):
            together.setdefault((id(one.base), one.arguments[1]), []).append(i)
        for (_, keys), places in together.items():
            fold = folds.CountFold(tuple(scores[i].arguments[0] for i in places))
            sums = reader.answers.fold_codes(table_of(scores[places[0]]).plan, keys, fold)
            totals.update(
                (i, [int(number) for number in np.asarray(some).ravel()]) for i, some in zip(places, sums, strict=True)
            )
        return [totals[i] for i in range(len(scores))]


ROW_COUNTS = {name: RowCountRule(name, False) for name in ("correct_count", "surprise_count", "ranked_counts")}


def row_count(table: Table, names: tuple[str, ...], build: Callable[[Mapping[str, Any]], RowCount]) -> Score:
    """The sum over the rows of `table` of a program's output for the columns `names`, which have public values, or the
    number of rows at each of its cells.

    `build` returns the program for the columns' values. Its inputs are indices of the values, −1 for none.
    """
    keys = tuple(key_of_column(Column(name), table) for name in names)
    count = build({name: key.values for name, key in zip(names, keys, strict=True)})
    intervals = [(i.low, i.high) for i in count.program.inputs]
    if intervals != [(-1, len(key.values) - 1) for key in keys]:
        raise ValueError("a program's inputs are the places of its columns' values")
    rule, arguments = ROW_COUNTS[count.name], (count, keys)
    if count.cells:
        many = count.cells
        return Scores(table.exposures, rule, table, 1, True, 0, arguments, length=many, groups=(1,) * many)
    (number,) = count.program.outputs
    return Score(table.exposures, rule, table, max(1, count.sensitivity), number.low >= 0, count.bits, arguments)
