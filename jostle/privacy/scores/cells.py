"""Scores of a cube's cells, and how many rows there are.

For one row more or less in one cell (x_c ± 1, N ± 1), on a grid of 2^-bits (rounding adds one step):

* `size`: N. 1, monotone.
* `nonzero`: number of non-empty cells. 1, monotone.
* `largest_cell`: the largest cell. 1, monotone.
* `largest_marginal`: the most rows that share one value of one dimension: the largest cell of any marginal. A row is
  counted once in each marginal, so none of those sums moves by more than 1, nor does their maximum; monotone. In 1D it
  is `largest_cell`.
* `l2`: √Σx². |‖x + e_c‖₂ − ‖x‖₂| ≤ 1 by the triangle inequality; monotone.
* `l1_to_uniform`: ½Σ|x_i − N/n|, N times the distance to uniform. Cell c moves by 1 − 1/n, the n − 1 others by 1/n
  each: ½(2 − 2/n) < 1; not monotone.
* `total_variation`: Σ|x_i − x_{i+1}|. A cell has two neighbours: 2; not monotone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.lazy import Ints, np
from jostle.plan.plan import WEIGHT_BITS, Count
from jostle.plan.records import CELL_BITS
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.handles import Cube, Table, Vectors
from jostle.privacy.reading.vault import Reader
from jostle.privacy.rows.folds import AtRows, RowsOf
from jostle.privacy.scores.rule import Rule, Score

BITS = 10  # scores that are not whole are kept to a thousandth of a row


@dataclass(frozen=True, eq=False)
class CellScore(Rule):
    """A number computed of a cube's exact cells in units of 2^-bits, with how far one row moves it in these units.

    Called with a cube, it gives the score.
    """

    compute: Callable[[Ints], int]
    sensitivity: int = 1
    monotone: bool = False
    bits: int = 0

    def __call__(self, value: Cube) -> Score:
        sensitivity, monotone = self.sensitivity << value.bits, self.monotone and _adds_alone(value)
        return Score(value.exposures, self, value, sensitivity, monotone, self.bits + value.bits)

    def exact(self, reader: Reader, score: Score) -> list[int]:
        return [self.compute(reader.units(cube_of(score)))]


@dataclass(frozen=True, eq=False)
class Size(Rule):
    """How many rows a handle has."""

    def __call__(self, value: Handle) -> Score:
        if isinstance(value, Vectors):
            return Score(value.exposures, self, value, 1, True)
        if not isinstance(value, Table | Cube):
            raise refuse("TypeError", "`size` takes a table, a cube of counts or vectors")
        bits = value.bits if isinstance(value, Cube) else WEIGHT_BITS if value.weighted else 0
        return Score(value.exposures, self, value, 1 << bits, _adds_alone(value), bits)

    def exact(self, reader: Reader, score: Score) -> list[int]:
        if isinstance(score.base, Vectors):
            (rows,) = reader.answers.fold(score.base.plan, score.base.exprs, AtRows.of(RowsOf(), score.base))
            return [int(fixed_width(rows))]
        if isinstance(score.base, Table):
            (count,) = reader.answers.group(score.base.plan, (), (Count(weighted=score.base.weighted),))
            return [int(count)]
        return [int(reader.units(cube_of(score)).sum())]


def _adds_alone(value: Handle) -> bool:
    """Whether a row that comes takes nothing away; of weighted records (`plan.records`) it may take weight."""
    return not (isinstance(value, Cube) and value.bits == CELL_BITS)


def cube_of(score: Score) -> Cube:
    """The cube that a score is of."""
    if not isinstance(score.base, Cube):
        raise refuse("TypeError", f"`{score.rule.name}` takes a cube of counts")
    return score.base


def _l1_to_uniform(x: Ints) -> int:
    """⌊2^BITS · ½Σ|x − N/n|⌋, by exact integers: Σ|n·x_i − N| / 2n."""
    total = int(x.sum())
    fits = 2 * total * x.size < 2**62
    cells = x.ravel() if fits else x.ravel().astype(object)
    return int(int(np.abs(cells * x.size - total).sum()) * 2**BITS // (2 * x.size))


def _total_variation(x: Ints) -> int:
    return int(np.abs(np.diff(x.ravel())).sum())


def _largest_marginal(x: Ints) -> int:
    if not x.size:
        return 0
    axes = range(x.ndim)
    return max(int(x.sum(axis=tuple(a for a in axes if a != one)).max()) for one in axes)


def _l2(x: Ints) -> int:
    fits = int(x.sum()) < 2**31
    cells = x.ravel() if fits else x.ravel().astype(object)
    return math.isqrt(int((cells**2).sum()) * 4**BITS)


size = Size("size", True)
nonzero = CellScore("nonzero", False, lambda x: int((x > 0).sum()), monotone=True)
largest_cell = CellScore("largest_cell", True, lambda x: int(x.max(initial=0)), monotone=True)
largest_marginal = CellScore("largest_marginal", True, _largest_marginal, monotone=True)
l2 = CellScore("l2", True, _l2, 2**BITS + 1, True, BITS)
l1_to_uniform = CellScore("l1_to_uniform", True, _l1_to_uniform, 2**BITS + 1, False, BITS)
total_variation = CellScore("total_variation", True, _total_variation, 2)
