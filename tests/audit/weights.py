"""Weighted records: programs over neighbouring tables, and transformations that lose count of weight."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from harness import Case, Pair
from mechanisms import on_rows

START = "use weighted\nr = derive(pick(weighted(t), v), k = floor(v / 4))\n"
SIZES = START + 'm = laplace(histogram(grouped(r, "k", "n", most = 8), n)) with epsilon 1\n'
STAR = (
    START
    + "s = weighted(derive(table([{w: 0}, {w: 1}, {w: 2}, {w: 3}]), k = 0))\n"
    + 'n = laplace(histogram(joined(r, s, "k"), v, w)) with epsilon 1\n'
)
PAIRS = START + 'n = laplace(histogram(joined(r, pick(derive(r, w = v), k, w), "k"), v, w)) with epsilon 1\n'
SHAVED = START + "n = laplace(histogram(shave(pick(r, k), 0.5, 9), place)) with epsilon 1\n"
DEEP = (
    START
    + 'd = grouped(r, "k", "n", most = 8)\n'
    + 'n = laplace(histogram(union(pick(joined(r, d, "k"), v), pick(r, v)), v)) with epsilon 1\n'
)
LARGEST = START + 'm = laplace(histogram(grouped(r, "k", "m", reducer = "max", of = "v"), m)) with epsilon 1\n'
SUMMED = START + 'm = laplace(histogram(grouped(r, "k", "m", most = 9, reducer = "sum", of = "v"), m)) with epsilon 1\n'
TRIANGLES = """use graphs
pairs = derive(t, a = 0 if v < 3 else (1 if v < 5 else 2), b = v + 1 if v < 3 else (v - 1 if v < 5 else 3))
n = laplace(triangles_by_degree(undirected(where(pairs, v < 6)), 3)) with epsilon 18
"""


def weights() -> list[Case]:
    few, more = ["A,1", "A,2", "A,3"], ["A,1", "A,2", "A,3", "B,0"]
    low, high = ["A,0", "A,1", "A,2"], ["A,0", "A,1", "A,2", "B,3"]
    five = [f"A,{v}" for v in range(5)]  # of the six edges of four nodes
    return [
        on_rows("weights of sizes of groups", 1, SIZES, few, more),
        on_rows("weights of the largest of groups", 1, LARGEST, low, high),
        on_rows("weights of sums of groups", 1, SUMMED, low, high),
        on_rows("weights of triangles by degree", 18, TRIANGLES, five, [*five, "B,5"]),
        on_rows("weights of a join with a public star", 1, STAR, [], ["A,1"]),
        on_rows("weights of a join with itself", 1, PAIRS, ["A,3"], ["A,3", "B,2"]),
        on_rows("weights of shaved records", 1, SHAVED, few, more),
        on_rows("weights of a join with sizes, united", 1, DEEP, few, more),
    ]


# Broken ones -----------------------------------------------------------------------------------------

Cells = Callable[[int], np.ndarray]
"""The sums of weights where so many rows of weight 1 are there."""


def scaled_by_one_side(rows: int) -> np.ndarray:
    """Pairs with four public records of the key, scaled by what the private side weighs."""
    return np.full(4, float(rows > 0))


def whole_groups(rows: int) -> np.ndarray:
    """The size of the whole group at its whole weight, in place of prefixes at half of it."""
    return np.eye(9)[rows]


def largest_of_whole_groups(rows: int) -> np.ndarray:
    """The largest number of the whole group, at half of the group's weight, in place of those of prefixes."""
    return np.eye(9)[rows] * rows / 2


def sums_in_any_order(rows: int) -> np.ndarray:
    """Sums of prefixes in the order of the numbers, not of the weights: one that comes first shifts all others."""
    numbers = np.arange(5)[5 - rows :] if rows < 5 else np.arange(5)
    return np.bincount(np.cumsum(numbers), minlength=11)[:11] / 2


def unscaled_items(rows: int) -> np.ndarray:
    """Three records for a record, each with its weight."""
    return np.full(3, float(rows))


def parts_in_full(rows: int) -> np.ndarray:
    """Records of weight n, shaved into parts of which each keeps the whole weight."""
    return np.where(np.arange(8) < rows, rows, 0).astype(float)


def coarse_shares(rows: int) -> np.ndarray:
    """All pairs of a join with four public records, the weight of each rounded down to eighths: they fall at once."""
    return np.array([4 * rows * np.floor(8 / (rows + 4)) / 8])


def _broken(name: str, cells: Cells, x: int, y: int) -> Case:
    def draw(runs: int, rng: np.random.Generator) -> Pair:
        one, other = cells(x), cells(y)

        def ratio(exact: np.ndarray) -> np.ndarray:
            out = exact + rng.laplace(0, 1.0, (runs, exact.size))
            return np.round((np.abs(out - other) - np.abs(out - one)).sum(axis=1), 6)

        return ratio(one), ratio(other)

    return Case(name, 1, draw, 400_000, broken=True)


def broken_weights() -> list[Case]:
    """Each is charged ε = 1 for one row."""
    return [
        _broken("a join scaled by one side alone", scaled_by_one_side, 0, 1),
        _broken("groups at their whole weight, without prefixes", whole_groups, 3, 4),
        _broken("the largest of whole groups, without prefixes", largest_of_whole_groups, 3, 4),
        _broken("sums of prefixes in another order than that of weights", sums_in_any_order, 3, 4),
        _broken("several records for one, each of its weight", unscaled_items, 0, 1),
        _broken("shaving that keeps the whole weight in each part", parts_in_full, 3, 4),
        _broken("a join whose pairs are rounded one by one", coarse_shares, 4, 5),
    ]
