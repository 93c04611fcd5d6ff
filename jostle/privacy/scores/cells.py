"""Scores of a cube's cells, also in comparison with public numbers, and the number of rows.

Sensitivities to adding or removing one row (x_c ± 1, N ± 1), on a grid of 2^-bits (rounding adds one step):

* `size`: N. 1, monotone.
* `nonzero`: number of non-empty cells. 1, monotone.
* `largest_cell`: the largest cell. 1, monotone.
* `largest_marginal`: the largest cell of any one-way marginal. A row is counted once in each marginal, so none of the
  sums changes by more than 1, nor does their maximum; monotone. In 1D it is `largest_cell`.
* `l2`: √Σx². |‖x + e_c‖₂ − ‖x‖₂| ≤ 1 by the triangle inequality; monotone.
* `l1_to_uniform`: ½Σ|x_i − N/n|, N times the distance to uniform. Cell c changes by 1 − 1/n, the n − 1 others by 1/n
  each: ½(2 − 2/n) < 1; not monotone.
* `total_variation`: Σ|x_i − x_{i+1}|. A cell has two neighbours: 2; not monotone.
* `distance`: Σ|x_i − e_i| − p against public e and p, ‖x − e‖₁: 1 by the triangle inequality; not monotone.
* `distances`: the same for the counts over each of many sets of columns of one table: 1 each.
* `misfit`: for every query q of a workload, |q·x − q·x̂| against a public x̂. A query counts cells: 1; not monotone.
* `closeness`: −‖Wx − a‖₂/√m, minus the root mean square error of m public answers a of a workload W. A row in cell c
  changes Wx by column c, and so the norm by at most ‖W e_c‖₂ = √(number of queries that count c), by the triangle
  inequality: max_c √(that number ÷ m) ≤ 1; not monotone. On the grid of 2^-bits rounding adds one step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.lazy import Array, Floats, Ints, np
from jostle.plan.plan import WEIGHT_BITS, Count, Key
from jostle.plan.records import CELL_BITS
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.handles import Cube, Table, Tallied, Vectors
from jostle.privacy.mechanisms.linear import box_sums
from jostle.privacy.reading.vault import Reader
from jostle.privacy.rows.folds import AtRows, RowsOf
from jostle.privacy.scores import Rule, Score, Scores

BITS = 10  # scores that are not whole are kept to a thousandth of a row


@dataclass(frozen=True, eq=False)
class CellScore(Rule):
    """A number computed from a cube's exact cells in units of 2^-bits, with its sensitivity in these units.

    Calling it with a cube returns the score.
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
    """The number of rows of a handle."""

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
    """Whether adding a row removes nothing. It may reduce weights of weighted records (`plan.records`)."""
    return not (isinstance(value, Cube) and value.bits == CELL_BITS)


def cube_of(score: Score) -> Cube:
    """The cube of a score."""
    if not isinstance(score.base, Cube):
        raise refuse("TypeError", f"`{score.rule.name}` takes a cube of counts")
    return score.base


def table_of(score: Score) -> Table:
    """The table of a score."""
    if not isinstance(score.base, Table):
        raise refuse("TypeError", f"`{score.rule.name}` takes a table")
    return score.base


def _l1_to_uniform(x: Ints) -> int:
    """⌊2^BITS · ½Σ|x − N/n|⌋ in exact integers: Σ|n·x_i − N| / 2n."""
    total = int(x.sum())
    fits = 2 * total * x.size < 2**62
    cells = x.ravel() if fits else x.ravel().astype(object)
    return int(int(np.abs(cells * x.size - total).sum()) * 2**BITS // (2 * x.size))


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
total_variation = CellScore("total_variation", True, lambda x: int(np.abs(np.diff(x.ravel())).sum()), 2)


# Public numbers against the true counts ------------------------------------------------------------


Sums = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class Fit(Rule):
    """Integers computed from a score, the exact cells of its cube, and the bits of these."""

    compute: Callable[[Score, Ints, int], list[int]]

    def exact(self, reader: Reader, score: Score) -> list[int]:
        cube = cube_of(score)
        return self.compute(score, reader.units(cube), cube.bits)


DISTANCE = Fit("distance", True, lambda score, cells, bits: [distance_of(cells, score.bits - bits, *score.arguments)])
MISFIT = Fit("misfit", True, lambda score, cells, bits: misfits_of(score, cells))
CLOSENESS = Fit("closeness", True, lambda score, cells, bits: [closeness_of(score, cells, bits)])


def distance(cube: Cube, expected: Floats, penalty: float = 0.0) -> Score:
    """The ℓ₁ distance of public expected counts to the true ones, less a public `penalty`, in rows."""
    bits = max(BITS, cube.bits)
    return Score(cube.exposures, DISTANCE, cube, 1 << bits, False, bits, _expected(cube, expected, penalty, bits))


def _expected(cube: Cube, expected: Floats, penalty: float, bits: int) -> tuple[Ints, int]:
    if expected.size != cube.size:
        raise refuse("ValueError", f"{expected.size} expected counts for a cube of {cube.size} cells")
    most = math.ldexp(1.0, 60 - bits)
    public = fixed_width(np.rint(np.ldexp(_within(expected, bits), bits)))
    return public.reshape(cube.shape), round(math.ldexp(min(max(penalty, -most), most), bits))


def distance_of(cells: Ints, shift: int, public: Ints, less: int) -> int:
    """The exact `distance` in its units, in integers; cells are clamped so that none exceeds 64 bits."""
    gaps = np.abs((np.minimum(cells, 2**60 >> shift) << shift) - public)
    fits = float(gaps.sum(dtype=float)) < 2.0**62
    return (int(gaps.sum()) if fits else sum(int(g) for g in gaps.ravel())) - int(less)


@dataclass(frozen=True, eq=False)
class Distances(Rule):
    """The distances of many tables of counts, `TOGETHER` tables at a time."""

    def exact(self, reader: Reader, score: Score) -> list[int]:
        distances: list[int] = []
        for at in range(0, len(score.arguments), TOGETHER):
            some = score.arguments[at : at + TOGETHER]
            cubes = [_under(table_of(score), keys) for keys, _ in some]
            shift = score.bits - cubes[0].bits
            distances += [distance_of(c, shift, *e) for c, (_, e) in zip(reader.all_units(cubes), some, strict=True)]
        return distances


DISTANCES, TOGETHER = Distances("distance", True), 512


def _under(table: Table, keys: tuple[Key, ...]) -> Cube:
    shape = tuple([len(key.values) for key in keys])
    return Cube(table.exposures, Tallied(table.plan, keys), ("",) * len(shape), shape)


def distances(
    table: Table, tables: Sequence[tuple[Key, ...]], expected: Sequence[Floats], penalties: Sequence[float]
) -> Scores:
    """For each list of keys the `distance` of the counts of a table under them."""
    cubes, bits = [_under(table, keys) for keys in tables], max(BITS, WEIGHT_BITS if table.weighted else 0)
    if not len(cubes) == len(expected) == len(penalties) > 0:
        raise refuse("ValueError", "lists of columns, of expected counts and of penalties are equally long")
    if any(len(set(keys)) < len(keys) for keys in tables):
        raise refuse("NameError", "two dimensions have one name")
    each = [_expected(*one, bits) for one in zip(cubes, expected, penalties, strict=True)]
    arguments = tuple(zip(tables, each, strict=True))
    return Scores(table.exposures, DISTANCES, table, 1 << bits, False, bits, arguments, length=len(each))


def misfit(cube: Cube, queries: Sums, estimate: Floats) -> Scores:
    """The error of a public estimate for each query of a workload, the scores of MWEM.

    `queries` are the sums of a workload: `boxes` (lows, highs), `groups` (labels, size) or `sets` (labels, `inside`).
    Each is the sum of a set of cells, which is checked here. The sensitivity needs no more.
    """
    size = int(np.prod(cube.shape))
    if estimate.size != size:
        raise refuse("ValueError", f"an estimate of {estimate.size} cells for a cube of {size}")
    checked = tuple(_checked(query, cube.shape) for query in queries)
    answers = np.concatenate([_summed(query, estimate.reshape(cube.shape)) for query in checked])
    most = math.ldexp(4e18, -cube.bits)
    public = fixed_width(np.rint(np.ldexp(np.clip(np.nan_to_num(answers), -most, most), cube.bits)))
    unit = 1 << cube.bits
    return Scores(cube.exposures, MISFIT, cube, unit, False, cube.bits, (checked, public), length=len(public))


def misfits_of(one: Score, cells: Ints) -> list[int]:
    """The exact `misfit` of every query, in its units."""
    sums, public = one.arguments
    return [int(v) for v in np.abs(np.concatenate([_summed(query, cells) for query in sums]) - public)]


def closeness(cube: Cube, queries: Sums, answers: Floats) -> Score:
    """Minus the root mean square error of public answers of a workload, in rows."""
    checked = tuple(_checked(query, cube.shape) for query in queries)
    times, size = _times_counted(checked, cube.shape)
    if not size or answers.size != size:
        raise refuse("ValueError", f"{answers.size} answers for a workload of {size} queries")
    bits = max(BITS, cube.bits)
    public = fixed_width(np.rint(np.ldexp(_within(answers.ravel(), bits), bits)))
    # ⌈2^bits·√(times/size)⌉, and a step for the root that is rounded down
    sensitivity = math.isqrt(times * 4**bits // size) + 2
    return Score(cube.exposures, CLOSENESS, cube, sensitivity, False, bits, (checked, public))


def closeness_of(one: Score, cells: Ints, cell_bits: int) -> int:
    """The exact `closeness` in its units, in integers; cells are clamped so that no sum exceeds 62 bits."""
    sums, public = one.arguments
    shift = one.bits - cell_bits
    most = (2**60 >> shift) // max(1, cells.size)
    true = np.concatenate([_summed(query, np.minimum(cells, most)) for query in sums]) << shift
    gaps = np.abs(true - public)
    fits = float((gaps.astype(float) ** 2).sum()) < 2.0**62
    squares = int((gaps**2).sum()) if fits else sum(int(gap) ** 2 for gap in gaps.tolist())
    return -math.isqrt(squares // len(public))


def _within(values: Floats, bits: int) -> Floats:
    """Numbers clamped so that sums in units of 2^-bits do not overflow."""
    most = math.ldexp(1.0, 60 - bits)
    return np.clip(np.nan_to_num(values), -most, most)


def _times_counted(sums: Sums, shape: tuple[int, ...]) -> tuple[int, int]:
    """The largest number of queries that count one cell, and the number of all queries."""
    times, size = np.zeros(shape, dtype=np.int64), 0
    for query in sums:
        if query["kind"] == "boxes":
            ends = np.zeros([side + 1 for side in shape], dtype=np.int64)
            for corner in np.ndindex(*(2,) * len(shape)):  # a box is a sum of differences at its corners
                at = np.where(np.array(corner) == 1, query["highs"] + 1, query["lows"])
                np.add.at(ends, tuple(at.T), (-1) ** sum(corner))
            for axis in range(len(shape)):
                ends = np.cumsum(ends, axis=axis)
            times += ends[tuple(slice(0, side) for side in shape)]
            size += len(query["lows"])
        elif query["inside"] is None:
            times += 1
            size += query["size"]
        else:
            times += query["inside"].sum(axis=0, dtype=np.int64)[query["labels"]].reshape(shape)
            size += len(query["inside"])
    return int(times.max(initial=0)), size


def _checked(query: Mapping[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """The queries with checked arrays: each is a set of cells of the cube, without repetition."""
    if query["kind"] == "boxes":
        lows, highs = (fixed_width(query[k]).reshape(-1, len(shape)) for k in ("lows", "highs"))
        if lows.shape != highs.shape or (lows < 0).any() or (highs >= np.array(shape)).any() or (lows > highs).any():
            raise refuse("ValueError", "a query lies outside the cube")
        return {"kind": "boxes", "lows": lows, "highs": highs}
    labels = fixed_width(query["labels"]).ravel()
    inside = np.asarray(query["inside"], dtype=bool) if query["kind"] == "sets" else None
    size = int(query["size"]) if inside is None else inside.shape[-1]
    if labels.size != int(np.prod(shape)) or (labels < 0).any() or (labels >= size).any():
        raise refuse("ValueError", "a query does not fit the cube")
    return {"kind": "groups", "labels": labels, "size": size, "inside": inside}


def _summed(query: Mapping[str, Any], cells: Array) -> Array:
    """The queries' sums of `cells`, with their dtype: exact for integers."""
    if query["kind"] == "boxes":
        return box_sums(cells, query["lows"], query["highs"])
    sums = np.zeros(query["size"], dtype=cells.dtype)
    np.add.at(sums, query["labels"], cells.ravel())
    if query["inside"] is None:
        return sums
    sets = np.empty(len(query["inside"]), dtype=cells.dtype)
    for i, inside in enumerate(query["inside"]):
        sets[i] = sums[inside].sum()
    return sets
