"""Sums over rows as data: worked out where the rows are, in parts that add up.

A fold takes rows as whole numbers in units of a ball and gives arrays of whole numbers; of rows in two parts it gives
two lists of arrays that add up to those of all, to the last bit, since nothing but whole numbers is added (`sums`,
`factored`). So it may run beside rows that are stored here (`speed.rowstore`), or go to the partitions of
a cluster as it is, pickled, and meet them there (`AtRows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from jostle.integers import fixed_width
from jostle.lazy import Array, Bools, Floats, Ints, NDArray, np
from jostle.privacy.rows.factored import (
    BATCH,
    CodedRows,
    ContributionSums,
    FactoredGradient,
    MomentSums,
    coded,
    gradient_scores,
)
from jostle.privacy.rows.norms import (
    Contributions,
    RowCount,
    Weights,
    exact_sizes,
    whole_frames,
    whole_weights,
    within_ball,
)

if TYPE_CHECKING:
    Block = NDArray[np.int16]

BLOCK = 2**15
"""Rows that are counted at a time."""

MOST_NUMBERS = 2**24
"""That contributions of some rows are at once: memory goes by public facts, and not by the number of rows."""


class BallRows:
    """Rows in whole numbers, in blocks (d, n): read once, one block after the other."""

    def __init__(self, blocks: Callable[[], Iterator[Block]]) -> None:
        self.blocks = blocks

    def batches(self) -> Iterator[Floats]:
        """Rows (d, at most `BATCH`)."""
        for block in self.blocks():
            for start in range(0, block.shape[1], BATCH):
                yield block[:, start : start + BATCH].astype(float)

    def tallied(self) -> Iterator[tuple[Floats, Ints]]:
        """The same, and how many rows each column stands for."""
        for units in self.batches():
            yield units, np.ones(units.shape[1], dtype=np.int64)

    def coded(self, values: tuple[int, ...]) -> CodedRows:
        """The different rows as codes, column j one of `values[j]` numbers evenly spread over ±1."""
        return coded((block.astype(float) for block in self.blocks()), values)


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
        return self.fold.over(BallRows(lambda: (within_ball(rows, self.radius, self.norm) for rows in read)))


@dataclass(frozen=True, slots=True)
class CountFold:
    """Sums of whole numbers of each row, or rows at each place, of rows of codes (n, d) as an engine gives them: one
    for each of several `counts` of the same columns."""

    counts: tuple[RowCount, ...]

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

    weights: Weights
    columns: int
    degree: int

    def over(self, rows: BallRows) -> list[Any]:
        sums = MomentSums(self.weights.size, self.columns, self.degree)
        for units in rows.batches():
            gamma, *frames = self.weights.program(units)
            views = whole_frames(frames[0], frames[1], self.weights.radius) if frames else units
            sums.add(views, whole_weights(gamma))
        return sums.whole()


@dataclass(frozen=True, slots=True)
class ContributionFold:
    """The sum of what a program gives for each row, clipped to a norm of `bound`."""

    function: Contributions
    bound: float
    norm: str

    def over(self, rows: BallRows) -> list[Any]:
        total = ContributionSums(self.function.size, self.norm)
        most = max(1, min(BATCH, MOST_NUMBERS // self.function.size))
        scale = 2.0**-self.function.bits / self.bound
        for units, times in rows.tallied():
            for start in range(0, len(times), most):
                part = slice(start, start + most)
                (numbers,) = self.function.program(units[:, part])
                sizes = exact_sizes(numbers, self.function.largest, self.norm, scale)
                total.add(numbers * scale, times[part], sizes)
        return [total.whole]


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

    function: FactoredGradient
    bound: float

    def over(self, rows: BallRows) -> list[Any]:
        return [gradient_scores(rows.coded(self.function.values), self.function, self.bound)]
