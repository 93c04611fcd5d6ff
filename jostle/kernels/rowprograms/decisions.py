"""What a classifier decides of a row, and what a stage of a regression leaves of its target, as row programs.

A model is a public value and predicts in doubles. Over private rows its class scores are rounded once to a grid that is
as fine as is exact. A cell that is not among an attribute's values adds nothing to a sum and stays at the node of a
tree that asks for it.

For regressions a row is its columns and its target, each within ±1. A stage is public: `steps` (s, 4), of which each is
a coordinate, a place, whether to be there (1) or from there on (0), and what it adds where that holds; `lines` (l, 2),
of which each is a coordinate and what it is multiplied by, and added; and `scale`, the base, the least and the largest
of the target, and the reach. What it leaves is (target − base − Σ added)/reach, the target kept within its bounds, the
whole within ±1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jostle.kernels import KernelError
from jostle.kernels.arrays import Floats, Ints
from jostle.kernels.classifiers.codes import Value, plain, plain_values
from jostle.kernels.rowprograms.contributions import columns_of, holding
from jostle.kernels.rowprograms.mixtures import TABLE_BITS, cell_of, normalised, shares_of
from jostle.kernels.rowprograms.scales import numbers, row
from jostle.privacy.rows import expressions as xp
from jostle.privacy.rows.norms import GRID, GRID_BITS, Contributions, RowCount
from jostle.privacy.rows.program import program

LARGEST = 2.0**32
"""Scores are clipped to it."""

FINEST = 20
"""Bits of a score below one, at most."""

SHARE_BITS, LOSS_BITS = 16, 16
LEAST_SHARE = 0.001
"""A class that is called less probable counts as this probable."""

ODDS = np.concatenate([np.arange(-28, -8) / 4, np.arange(-20, 21) / 10, np.arange(9, 29) / 4])
"""The edges of the bins of `ranked_counts`, in logarithms of odds."""


class Cell(NamedTuple):
    """A column of a row: its public values, plain (`codes.plain`), and the row's place among them, −1 for none."""

    values: tuple[Value | None, ...]
    place: xp.Expression

    def looked_up(self, table: Floats, absent: Floats | float) -> xp.Expression:
        """`table[..., i]` for value i of this cell, `absent` where the row has none."""
        extended = np.empty((*table.shape[:-1], table.shape[-1] + 1))
        extended[..., 0], extended[..., 1:] = absent, table
        return xp.lookup(extended, self.place + 1)

    def place_in(self, values: Sequence[Value]) -> xp.Expression:
        """The row's place in another list of values, −1 where it is not there."""
        places = {plain(value): place for place, value in enumerate(values)}
        return self.looked_up(np.array([places.get(v, -1) for v in self.values], dtype=float), -1)

    def table_of(self, values: Sequence[Value], table: Floats) -> Floats:
        """A table over `values` (…, values) as one over the cell's own; 0 for what is not there."""
        entries = plain_values(values)
        places = dict(zip(entries, range(len(entries)), strict=True))
        if entries == self.values and len(places) == len(entries):
            return table
        picks = [places.get(v, -1) for v in self.values]
        return np.concatenate([table, np.zeros((*table.shape[:-1], 1))], axis=-1)[..., picks]


Cells = Mapping[str, Cell]


def right_count(
    scores: Callable[[Cells], xp.Expression],
    classes: Sequence[Value],
    values: Mapping[str, Sequence[Value]],
    label: str,
) -> RowCount:
    """1 where the class with the largest score, the first of equals, is the row's own, else 0.

    The program's inputs are the places of `values` in their order, −1 for none; `label` is the class's column.
    """
    places, cells, truth = _read(classes, values, label)
    right = xp.comparison(xp.first_largest(scores(cells)), "==", truth)
    return RowCount("correct_count", program(places, right))


def _read(
    classes: Sequence[Value], values: Mapping[str, Sequence[Value]], label: str
) -> tuple[list[xp.Expression], Cells, xp.Expression]:
    """The inputs of such a program, the cells of the other columns, and the place of the row's class, −1 for none."""
    places = {name: xp.columns((), -1, len(domain) - 1) for name, domain in values.items()}
    cells = {name: Cell(plain_values(values[name]), place) for name, place in places.items()}
    return list(places.values()), cells, cells.pop(label).place_in(classes)


Logs = Callable[[Cells], tuple[xp.Expression, int]]
"""Of a row the logarithms of the classes' probabilities, less the same for all, (C,), and the bits of their units."""


def _shares(logs: Logs, cells: Cells) -> xp.Expression:
    """The probabilities of the classes, (C,), in units of 2^-SHARE_BITS, rounded down."""
    return xp.clamp(normalised(*logs(cells), TABLE_BITS, 2**SHARE_BITS), 0, 2**SHARE_BITS)


def surprise_count(logs: Logs, classes: Sequence[Value], values: Mapping[str, Sequence[Value]], label: str) -> RowCount:
    """−ln of the probability of a row's class, of LEAST_SHARE where that is less, and where the row has no class."""
    places, cells, truth = _read(classes, values, label)
    shares = (np.arange(2**SHARE_BITS + 1) + 0.5) / 2**SHARE_BITS
    losses = np.rint(np.ldexp(-np.log(np.clip(shares, LEAST_SHARE, 1)), LOSS_BITS)) + 0.0
    own = xp.gather(_shares(logs, cells), xp.clamp(truth, 0, len(classes) - 1))
    loss = xp.lookup(losses, xp.select(xp.comparison(truth, "<", 0), 0, own))
    return RowCount("surprise_count", program(places, loss), bits=LOSS_BITS)


def ranked_counts(
    logs: Logs, classes: Sequence[Value], values: Mapping[str, Sequence[Value]], label: str, of: Value
) -> RowCount:
    """The bin of the probability that a row is given of class `of`, and whether that is its class: bin by bin the rows
    of other classes and those of this one. Rows without a class are at no place."""
    places, cells, truth = _read(classes, values, label)
    at, many = list(classes).index(of), len(ODDS)
    edges = xp.constant(np.ceil(2.0**SHARE_BITS / (1 + np.exp(-ODDS))))
    reached = xp.comparison(edges, "<=", xp.part(_shares(logs, cells), [at] * many))
    place = xp.select(xp.comparison(truth, "<", 0), -1, xp.total(reached) * 2 + xp.comparison(truth, "==", at))
    return RowCount("ranked_counts", program(places, place), 2 * many + 2)


ROW_COUNTS: Mapping[str, Callable[..., RowCount]] = {
    "correct_count": right_count, "surprise_count": surprise_count, "ranked_counts": ranked_counts
}  # fmt: skip


def sums(base: Floats, tables: Iterable[tuple[Cell, Floats]]) -> xp.Expression:
    """base (C,) plus of each table (C, values of its cell) the column that the row is in; 0 where it is in none."""
    return scaled_sums(base, tables)[0]


def scaled_sums(base: Floats, tables: Iterable[tuple[Cell, Floats]]) -> tuple[xp.Expression, int]:
    """The same, and the bits of its units."""
    pairs = [(cell, _finite(table)) for cell, table in tables]
    start = _finite(base)
    reach = np.abs(start).max() + sum(float(np.abs(table).max(initial=0.0)) for _, table in pairs)
    bits = min(FINEST, 51 - math.frexp(reach + 1)[1])
    total: xp.Expression = xp.constant(np.rint(np.ldexp(start, bits)))
    for cell, table in pairs:
        total = total + cell.looked_up(np.rint(np.ldexp(table, bits)), 0.0)
    return total, bits


def tables_by_place(
    place: xp.Expression, shares: Floats, base: Floats, tables: Iterable[tuple[Cell, Floats]]
) -> list[tuple[Cell, Floats]]:
    """What such sums add up of several: base (L, C) and tables (L, C, values of a cell), mixed by the line of `shares`
    (P, L) that stands at the row's `place`."""
    pairs = [(node_cell(place), (shares @ _finite(base)).T)]
    for cell, table in tables:
        mixed = np.tensordot(shares, _finite(table), axes=1)
        rows = np.concatenate([np.zeros((*mixed.shape[:2], 1)), mixed], axis=-1).swapaxes(0, 1)
        pairs.append((node_cell(place * rows.shape[-1] + cell.place + 1), rows.reshape(base.shape[1], -1)))
    return pairs


def branch_place(place: xp.Expression | None, places: Sequence[xp.Expression], sizes: Sequence[int]) -> xp.Expression:
    """Where a row ends: in the branch that its `place` names, at one of its `sizes` places, which stand one branch
    after the other; behind all of them where it names none."""
    starts = np.cumsum([0, *sizes])
    ends = [each + start for start, each in zip(starts[:-1].tolist(), places, strict=True)]
    if place is None:
        return xp.constant(int(starts[-1]))
    rows = xp.concatenate([xp.reshape(end, (1,)) for end in (*ends, xp.constant(int(starts[-1])))])
    return xp.gather(rows, xp.clamp(xp.select(xp.comparison(place, "<", 0), len(ends), place), 0, len(ends)))


def votes(scores: Sequence[xp.Expression]) -> xp.Expression:
    """How many of several lists of scores are largest at each class."""
    total, *others = (xp.one_hot(xp.first_largest(each), each.shape[0]) for each in scores)
    for other in others:
        total = total + other
    return total


def branch_scores(place: xp.Expression | None, scores: Sequence[xp.Expression]) -> xp.Expression:
    """The scores of the branch that the row's place names; the votes of all where it names none."""
    together = votes(scores)
    if place is None:
        return together
    rows = xp.concatenate([xp.reshape(each, (1, *each.shape)) for each in (*scores, together)])
    branch = xp.select(xp.comparison(place, "<", 0), len(scores), place)
    return xp.gather(rows, xp.clamp(branch, 0, len(scores)))


def node_cell(node: xp.Expression) -> Cell:
    """The node of a tree as a cell, to be looked up by."""
    return Cell((), node)


def tree_end(asks: Ints, first: Ints, depth: int, cells: Sequence[xp.Expression | None]) -> xp.Expression:
    """The node of a tree where a row ends: node i asks cell `asks[i]`, and its children stand from `first[i]` on.

    A row moves on while its node has children (first ≥ 0) and its place in the cell is one of them (≥ 0).
    """
    places = xp.concatenate([xp.reshape(xp.constant(-1) if c is None else c, (1,)) for c in (*cells, xp.constant(-1))])
    tests = np.where(first >= 0, asks, len(cells))
    node: xp.Expression = xp.constant(0)
    for _ in range(depth):
        place = xp.gather(places, xp.lookup(tests, node))
        onward = xp.clamp(xp.lookup(np.maximum(first, 0), node) + place, 0, len(asks) - 1)
        node = xp.select(xp.comparison(place, "<", 0), node, onward)
    return node


def _finite(scores: Floats) -> Floats:
    """Scores within ±LARGEST; what is no number is 0."""
    numbers = np.asarray(scores, dtype=float)
    if np.abs(numbers).max(initial=0.0) <= LARGEST:  # which no NaN is
        return numbers
    return np.asarray(np.clip(np.nan_to_num(numbers), -LARGEST, LARGEST))


FINER_BITS = 6
"""What is left is added up in units so much finer than those of the grid."""
LINE_BITS = 14
SLOPE_BITS = 12
LEAST_REACH = 2.0**-9


def rest_apart(
    d: int, *, columns: object, at: object, same: object, steps: object, scale: object, lines: object = None
) -> Contributions:
    """Half of what is left where a test holds, as of `told_apart`, and 0 elsewhere. Shape (tests, n), within ±1/2."""
    units = row(d)
    rest = _rest(units, d, steps, scale, lines)
    return Contributions("rest_apart", program([units], holding(units, d, columns, at, same) * rest), GRID_BITS + 1)


def rest_shares(
    d: int, *, column: object, edges: object, values: object, steps: object, scale: object, lines: object = None
) -> Contributions:
    """The three shares of what is left, in the cell of one column that the row is in: of `values` as many evenly spread
    places, or where these are 0 the number of `edges` that it reaches. Shape (cells · 3, n), adding up to 1."""
    units = row(d)
    rest = _rest(units, d, steps, scale, lines)
    place = int(columns_of([column], d)[0])
    many = int(numbers(values, (), "values"))
    if many > 0:
        cell = cell_of(xp.part(units, [place]), many)
    else:
        ends = np.rint(numbers(edges, (None,), "edges") * GRID)
        reached = xp.constant(np.ones(len(ends))) - xp.comparison(
            xp.part(units, [place] * len(ends)), "<", xp.constant(ends)
        )
        cell, many = xp.total(reached), len(ends) + 1
    shares, bits = shares_of(rest + GRID, GRID_BITS + 1, True)
    own = xp.reshape(xp.one_hot(cell, many), (many, 1))
    return Contributions(
        "rest_shares", program([units], xp.reshape(own * xp.reshape(shares, (1, 3)), (many * 3,))), bits
    )


def _rest(units: xp.Expression, d: int, steps: object, scale: object, lines: object) -> xp.Expression:
    """What is left, (1,), in units of the grid within ±GRID."""
    fine = float(GRID * 2**FINER_BITS)
    reads, places, alike, adds = numbers(steps, (None, 4), "steps").T
    base, low, high, reach = numbers(scale, (4,), "scale").tolist()
    if low > high:
        raise KernelError("the least of `scale` is at most the largest")
    ends = np.clip(np.rint(np.array([low, high]) * GRID), -GRID, GRID)
    holds = holding(units, d, reads, places, alike)
    added = np.rint(np.clip(adds, -4.0, 4.0) * fine)
    start = float(np.rint(np.clip(base, -4.0, 4.0) * fine))
    slope = float(np.rint(2**SLOPE_BITS / max(reach, LEAST_REACH)))
    target = xp.clamp(xp.part(units, [d - 1]), int(ends[0]), int(ends[1])) * 2**FINER_BITS
    added_up = xp.matrix_product(added[None, :], holds) + xp.constant([start])
    if lines is not None:
        ways, rates = numbers(lines, (None, 2), "lines").T
        slopes = np.rint(np.clip(rates, -4.0, 4.0) * 2**LINE_BITS)
        along = xp.matrix_product(slopes[None, :], xp.part(units, columns_of(ways, d).tolist()))
        added_up = added_up + xp.shift(along + 2 ** (LINE_BITS - FINER_BITS - 1), LINE_BITS - FINER_BITS)
    off = xp.clamp(target - added_up, int(-8 * fine), int(8 * fine))
    places_off = FINER_BITS + SLOPE_BITS
    return xp.clamp(xp.shift(off * xp.constant([slope]) + 2 ** (places_off - 1), places_off), -GRID, GRID)
