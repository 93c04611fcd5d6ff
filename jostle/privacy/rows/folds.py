"""Sums over rows as data: worked out where the rows are, in parts that add up.

A fold takes rows as whole numbers in units of a ball and gives arrays of whole numbers; of rows in two parts it gives
two lists of arrays that add up to those of all, to the last bit: nothing but whole numbers is added (`sums`,
`factored`). So it may run beside rows that are stored here (`speed.rowstore`), or go to the partitions of
a cluster as it is, pickled, and meet them there (`AtRows`).

*Leaves.* A tree is public, and where a row ends is a function of that row alone, so that a row is at one leaf or at
none. A fold counts rows of codes (`engine.base.Work`): how many of each class end at each leaf, in one pass.
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
"""Rows that are counted at a time."""

MOST_NUMBERS, CACHED = 2**24, 2**18
"""That contributions of some rows are at once, and that a processor's cache holds of them: memory goes by public facts,
and not by the number of rows."""


class BallRows:
    """Rows in whole numbers, in blocks (d, n): read once, one block after the other."""

    def __init__(self, blocks: Callable[[], Iterator[Block]]) -> None:
        self.blocks = blocks

    def batches(self) -> Iterator[Floats]:
        """Rows (d, at most `BATCH`)."""
        for block in self.blocks():
            for start in range(0, block.shape[1], factored.BATCH):
                yield block[:, start : start + factored.BATCH].astype(float)

    def tallied(self) -> Iterator[tuple[Floats, Ints]]:
        """The same, and how many rows each column stands for."""
        for units in self.batches():
            yield units, np.ones(units.shape[1], dtype=np.int64)

    def coded(self, values: tuple[int, ...]) -> factored.CodedRows:
        """The different rows as codes, column j one of `values[j]` numbers evenly spread over ±1."""
        return factored.coded((block.astype(float) for block in self.blocks()), values)


class Ball(Protocol):
    """A ball of a norm that rows are brought into."""

    @property
    def radius(self) -> float: ...

    @property
    def norm(self) -> str: ...


class Sampler(Protocol):
    """The noise of a source, which draws samples too."""

    def sample(self, size: int, share: int) -> Bools: ...


class Fold(Protocol):
    """A sum over rows."""

    def over(self, rows: BallRows) -> list[Any]:
        """Arrays of whole numbers, of 64 bits or of Python's, that add up over rows in parts."""


@dataclass(frozen=True, slots=True)
class AtRows:
    """A fold over rows of doubles (n, d) as an engine gives them, which are first brought into the ball."""

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
    """Sums of whole numbers of each row, or rows at each place, of rows of codes (n, d) as an engine gives them: one
    for each of several `counts` of the same columns."""

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
                        totals[place] += int(numbers.sum())  # BLOCK numbers below 2^53 / BLOCK: exact
        return [np.array(total, dtype=object) for total in totals]


@dataclass(frozen=True, slots=True)
class RowsOf:
    """How many rows there are."""

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
    """The sum of what a program gives for each row, clipped to a norm of `bound`."""

    function: norms.Contributions
    bound: float
    norm: str

    def over(self, rows: BallRows) -> list[Any]:
        total: Any = np.zeros(self.function.size, dtype=object)
        cached = max(64, CACHED // self.function.size)  # of fewer rows a sum takes longer than what it adds up
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
    """A sum over a secret sample of the rows, each kept with `share` of 2^-16: drawn as they are read, for this sum."""

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
    """Tests of columns. Node i asks column `asks[i]`, −1 where it is a leaf, and has a child for each of the column's
    `branches`, the nodes from `first[i]` on; nodes stand after the one they are below. `level` are the leaves, rising,
    that may be split next. Raises `ValueError` where these are no such tree.
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
        """For each leaf of the level and each column whether no node on the way there asks it."""
        left = np.ones((len(self.asks), len(self.names)), dtype=bool)
        for node in np.flatnonzero(self.asks >= 0):
            asks, below = self.asks[node], self.first[node]
            left[below : below + self.branches[asks]] = left[node]
            left[below : below + self.branches[asks], asks] = False
        return left[self.level]


def walked(asks: Ints, first: Ints, at: Array) -> Ints:
    """The node of a tree where each row ends; `at` (columns, rows) are codes of its values, −1 for none, of which a row
    stays at the node that asks for it."""
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
    """A tree of columns with so many values that asks none of them."""
    none, root = np.full(1, -1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return PublicTree(tuple(map(str, range(len(branches)))), branches, none, none, root)


def blocks_of(read: Iterable[Array]) -> Iterator[Array]:
    """Codes of rows (n, columns) as blocks (columns, some rows), whose columns lie together."""
    for rows in read:
        for start in range(0, len(rows), BLOCK):
            block = rows[start : start + BLOCK].T
            yield np.ascontiguousarray(block, dtype=np.int32 if block.dtype.kind == "f" else None)


@dataclass(frozen=True, slots=True, eq=False)
class LeafFold:
    """Counts of rows (n, columns of the tree and one of classes) of codes: (nodes counted, classes), or, where columns
    are to be `crossed`, for each (nodes counted, its branches, classes); if `whole`, the former after these.

    `nodes` are leaves. Without `classes` there is no column of them, and all rows are of one. A row without a class, or
    without a value of a column that it is asked, is in no count; one without a value of a crossed column is in none of
    that column's.
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
                if self.crossed:  # what has no value stands before the values
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
    """What several folds give of the same rows, one after the other."""

    parts: tuple[LeafFold, ...]

    def __call__(self, read: Iterable[Array]) -> list[Any]:
        totals = [count for part in self.parts for count in part(())]
        for block in blocks_of(read):
            for total, count in zip(totals, (n for part in self.parts for n in part([block.T])), strict=True):
                total += count
        return totals
