"""Folds: sums over rows represented as data, computed where the rows are, in parts that add up.

A fold maps rows, as integers in units of a ball, to arrays of integers. The arrays of two parts of the rows add up to
those of all rows exactly, since only integers are added (`factored`). So it can run on rows that are stored here
(`speed.rowstore`), or be pickled and sent to the partitions of a cluster (`AtRows`).

*Leaves.* A tree is public, and the leaf of a row is a function of that row alone, so a row is at one leaf or at none. A
fold counts rows of codes (`engine.base.Work`): the rows of each class at each leaf, in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from jostle.integers import fixed_width
from jostle.lazy import Array, Bools, Floats, Ints, NDArray, np
from jostle.privacy.rows import factored, norms

if TYPE_CHECKING:
    Block = NDArray[np.int16]

BLOCK = 2**16
"""The number of rows that are counted at a time."""

MOST_NUMBERS, CACHED = 2**24, 2**18
"""The largest number of contributions in memory, and in a processor's cache. Memory depends on public facts, and not on
the number of rows."""


class BallRows:
    """Rows as integers, in blocks (d, n), which are read once, one after the other."""

    def __init__(self, blocks: Callable[[], Iterator[Block]]) -> None:
        self.blocks = blocks

    def batches(self) -> Iterator[Floats]:
        """Batches of rows (d, at most `BATCH`)."""
        for block in self.blocks():
            for start in range(0, block.shape[1], factored.BATCH):
                yield block[:, start : start + factored.BATCH].astype(float)

    def tallied(self) -> Iterator[tuple[Floats, Ints]]:
        """Batches of rows with the multiplicity of each column."""
        for units in self.batches():
            yield units, np.ones(units.shape[1], dtype=np.int64)

    def coded(self, values: tuple[int, ...]) -> factored.CodedRows:
        """The distinct rows as codes; column j has `values[j]` numbers evenly spread over ±1."""
        return factored.coded((block.astype(float) for block in self.blocks()), values)


class Ball(Protocol):
    """The ball of a norm that rows are clipped to."""

    @property
    def radius(self) -> float: ...

    @property
    def norm(self) -> str: ...


class Sampler(Protocol):
    """The noise generator of a source, which also draws samples."""

    def sample(self, size: int, share: int) -> Bools: ...


class Fold(Protocol):
    """A sum over rows."""

    def over(self, rows: BallRows) -> list[Any]:
        """Arrays of integers (64 bits, or Python's) that add up over parts of the rows."""


@dataclass(frozen=True, slots=True)
class AtRows:
    """A fold over rows of doubles (n, d) from an engine, which are first clipped to the ball."""

    fold: Fold
    radius: float
    norm: str

    @classmethod
    def of(cls, fold: Fold, rows: Ball) -> AtRows:
        return cls(fold, rows.radius, rows.norm)

    def __call__(self, read: Iterable[Floats]) -> list[object]:
        return self.fold.over(BallRows(lambda: (norms.within_ball(rows, self.radius, self.norm) for rows in read)))


@dataclass(frozen=True, slots=True)
class CountFold:
    """Sums of an integer of each row, or counts of rows at each place, from an engine's rows of codes (n, d); one for
    each of several `counts` of the same columns."""

    counts: tuple[norms.RowCount, ...]

    def __call__(self, read: Iterable[Array]) -> list[object]:
        totals = [np.zeros(count.cells, dtype=object) if count.cells else 0 for count in self.counts]
        inputs = self.counts[0].program.inputs
        low, high = (np.array([[getattr(i, end)] for i in inputs], dtype=float) for end in ("low", "high"))
        for rows in read:
            for start in range(0, len(rows), BLOCK):
                columns = np.clip(np.ascontiguousarray(rows[start : start + BLOCK].T), low, high)
                for place, count in enumerate(self.counts):
                    (numbers,) = count.program(*columns)
                    if count.cells:
                        totals[place] += np.bincount(fixed_width(numbers + 1), minlength=count.cells + 1)[1:]
                    else:
                        totals[place] += int(numbers.sum())  # exact: BLOCK numbers below 2^53 / BLOCK
        return [np.array(total, dtype=object) for total in totals]


@dataclass(frozen=True, slots=True)
class RowsOf:
    """The number of rows."""

    def over(self, rows: BallRows) -> list[Any]:
        return [fixed_width(sum(block.shape[1] for block in rows.blocks()))]


@dataclass(frozen=True, slots=True)
class MomentFold:
    """Σ γ_k, Σ γ_k x and Σ γ_k xxᵀ up to a degree of 2 (`sums.MomentSums`)."""

    weights: norms.Weights
    columns: int
    degree: int

    def over(self, rows: BallRows) -> list[Any]:
        sums = factored.MomentSums(self.weights.size, self.columns, self.degree)
        for units in rows.batches():
            gamma, *frames = self.weights.program(units)
            views = norms.whole_frames(frames[0], frames[1], self.weights.radius) if frames else units
            sums.add(views, norms.whole_weights(gamma))
        return sums.whole()


@dataclass(frozen=True, slots=True)
class ContributionFold:
    """The sum of a program's output for each row, clipped to norm `bound`."""

    function: norms.Contributions
    bound: float
    norm: str

    def over(self, rows: BallRows) -> list[Any]:
        total: Any = np.zeros(self.function.size, dtype=object)
        cached = max(64, CACHED // self.function.size)  # with fewer rows the overhead of a sum dominates
        most = max(1, min(factored.BATCH, MOST_NUMBERS // self.function.size, cached))
        scale = 2.0**-self.function.bits / self.bound
        for units, times in rows.tallied():
            for start in range(0, len(times), most):
                part = slice(start, start + most)
                (numbers,) = self.function.program(units[:, part])
                sizes = norms.exact_sizes(numbers, self.function.largest, self.norm, scale)
                total = total + factored.total_of(norms.clipped(numbers * scale, self.norm, sizes), times[part])
        return [total]


@dataclass(frozen=True, slots=True)
class SampledFold:
    """A sum over a secret sample, which keeps each row with probability share/2^16. It is drawn while rows are read."""

    fold: Fold
    noise: Sampler
    share: int

    def over(self, rows: BallRows) -> list[Any]:
        def blocks() -> Iterator[Block]:
            for block in rows.blocks():
                yield block[:, np.flatnonzero(self.noise.sample(block.shape[1], self.share))]

        return self.fold.over(BallRows(blocks))


@dataclass(frozen=True, slots=True)
class GradientFold:
    """The scores of a factored gradient."""

    function: factored.FactoredGradient
    bound: float

    def over(self, rows: BallRows) -> list[Any]:
        return [factored.gradient_scores(rows.coded(self.function.values), self.function, self.bound)]


# Leaves of a public tree ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class PublicTree:
    """A tree of tests of columns. Node i tests column `asks[i]`, −1 for a leaf, and has one child for each of the
    column's `branches`, the nodes from `first[i]` on. Children have larger numbers than their parent. `level` are the
    leaves, rising, that may be split next. Raises `ValueError` for an invalid tree.
    """

    names: tuple[str, ...]
    branches: tuple[int, ...]
    asks: Ints
    first: Ints
    level: Ints

    def __post_init__(self) -> None:
        inner, nodes = np.flatnonzero(self.asks >= 0), np.arange(len(self.asks))
        wide = np.array([*self.branches, 0])[self.asks]
        begin, end = self.first[inner], (self.first + wide)[inner]
        right = len(self.names) == len(self.branches) and self.asks.shape == self.first.shape == (len(nodes),)
        right = right and bool(np.all(self.asks < len(self.names)) and np.all(wide[inner] > 0))
        right = right and bool(np.all(begin > inner) and np.all(begin[1:] >= end[:-1]) and np.all(end <= len(nodes)))
        if not right or not np.isin(self.level, self.leaves).all() or np.any(self.level[1:] <= self.level[:-1]):
            raise ValueError("this is no tree of tests")

    @property
    def leaves(self) -> Ints:
        """The numbers of all leaves, rising."""
        return np.flatnonzero(self.asks < 0)

    @property
    def unasked(self) -> Bools:
        """For each leaf of the level and each column whether no node above the leaf tests it."""
        left = np.ones((len(self.asks), len(self.names)), dtype=bool)
        for node in np.flatnonzero(self.asks >= 0):
            asks, below = self.asks[node], self.first[node]
            left[below : below + self.branches[asks]] = left[node]
            left[below : below + self.branches[asks], asks] = False
        return left[self.level]


def walked(asks: Ints, first: Ints, at: Array) -> Ints:
    """The node of a tree that each row reaches. `at` (columns, rows) are codes of values; a row with code −1 stays at
    the node that tests the column."""
    many, codes = at.shape[1], at.reshape(-1)
    here = np.zeros(many, dtype=np.int64)
    rows = np.arange(many if asks[0] >= 0 else 0)
    node = here[rows]
    while len(rows):
        value = codes.take(asks.take(node) * many + rows)
        if value.min() < 0:
            rows, node, value = (array[value >= 0] for array in (rows, node, value))
        node = first.take(node) + value
        here[rows] = node
        going = asks.take(node) >= 0
        rows, node = (rows, node) if going.all() else (rows[going], node[going])
    return here


@lru_cache(maxsize=2**8)
def one_leaf(branches: tuple[int, ...]) -> PublicTree:
    """The tree without tests, for columns with these numbers of values."""
    none, root = np.full(1, -1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return PublicTree(tuple(map(str, range(len(branches)))), branches, none, none, root)


def blocks_of(read: Iterable[Array]) -> Iterator[Array]:
    """Codes of rows (n, columns) as blocks (columns, rows) that are contiguous by column."""
    for rows in read:
        for start in range(0, len(rows), BLOCK):
            block = rows[start : start + BLOCK].T
            yield np.ascontiguousarray(block, dtype=np.int32 if block.dtype.kind == "f" else None)


@dataclass(frozen=True, slots=True, eq=False)
class LeafFold:
    """Counts of rows of codes (n, columns of the tree and the class): (nodes, classes), or for each of the `crossed`
    columns (nodes, its branches, classes); if `whole`, the former after these.

    `nodes` are leaves. Without `classes` there is no class column, and all rows are of one class. A row without a
    class, or without a value of a tested column, is in no count; a row without a value of a crossed column is in none
    of that column's counts.
    """

    tree: PublicTree
    nodes: Ints
    classes: int
    crossed: tuple[int, ...] = ()
    whole: bool = False

    def __call__(self, read: Iterable[Array]) -> list[Any]:
        place = np.full(len(self.tree.asks), -1, dtype=np.int64)
        place[self.nodes] = np.arange(len(self.nodes))
        classes, wide = max(1, self.classes), [self.tree.branches[column] for column in self.crossed] or [0]
        many = len(self.nodes) * classes
        totals = [np.zeros((w + 1) * many, dtype=np.int64) for w in wide]
        for block in blocks_of(read):
            at = place.take(walked(self.tree.asks, self.tree.first, block))
            inside = np.flatnonzero((at >= 0) & (block[-1] >= 0) if self.classes else at >= 0)
            at = at[inside] * classes + (block[-1][inside] if self.classes else 0)
            for total, column in zip(totals, self.crossed or (-1,), strict=True):
                if self.crossed:  # missing values come before the values
                    cell = np.multiply(block[column][inside], many, dtype=np.int64)
                    cell += at
                    cell += many
                    total += np.bincount(cell, minlength=len(total))
                else:
                    total += np.bincount(at, minlength=len(total))
        shaped = [t.reshape(w + 1, -1, classes).swapaxes(0, 1) for t, w in zip(totals, wide, strict=True)]
        if not self.crossed:
            return [shaped[0][:, 0]]
        return [t[:, 1:] for t in shaped] + ([shaped[0].sum(axis=1)] if self.whole else [])


@dataclass(frozen=True, slots=True, eq=False)
class Folds:
    """The results of several folds over the same rows, concatenated."""

    parts: tuple[LeafFold, ...]

    def __call__(self, read: Iterable[Array]) -> list[Any]:
        totals = [count for part in self.parts for count in part(())]
        for block in blocks_of(read):
            for total, count in zip(totals, (n for part in self.parts for n in part([block.T])), strict=True):
                total += count
        return totals
