"""Clipping of rows and of program outputs to a norm, in integers. Sensitivities depend on it.

Doubles are used for speed, but no bound depends on them: each function ends with numbers whose norm is checked, or
follows, in integers. All functions are total, and map each column (one row) independently of the others, exactly.

* `within_ball` takes rows of doubles from the engine, clips them, and rounds them to multiples of 1/GRID.
* `whole_weights` keeps weights with a total of at most GRID; a row with more does not take part.
* `whole_frames` scales frames to the ball of radius GRID by one division that rounds toward zero.
* `clipped` clips contributions to norm 2^BITS, `whole_slopes` slopes to ℓ₁ norm 2^BITS.

`Weights`, `Contributions` and `RowCount` define what is summed: row programs whose outputs, units and intervals, on
which the norms depend, are checked on construction. They are built by `jostle.kernels.rowprograms`, which need not be
trusted. `tests/privacy/rows` has hostile rows and programs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jostle.integers import narrowed, truncated
from jostle.lazy import Floats, Ints, NDArray, np
from jostle.privacy.rows.expressions import EXACT, Expression, RowProgramError
from jostle.privacy.rows.program import RowProgram

GRID_BITS = 14
GRID: int = 2**GRID_BITS
"""Units of a coordinate: rows are integer multiples of 1/GRID within the unit ball."""

BITS = 30
"""Sums over rows are in units of 2^-BITS."""

LARGEST_SQUARE = 2**50
"""Roots of squared lengths below it are accurate enough in doubles to be rounded up."""


def within_ball(rows: Floats, radius: float, norm: str) -> NDArray[np.int16]:
    """Rows (n, d) as units (d, n) in the ball of the norm `l2` or `sup`. Rows with a missing value are dropped."""
    complete = np.asarray(rows, dtype=float)[np.isfinite(rows).all(axis=1)]
    with np.errstate(all="ignore"):
        x = np.ascontiguousarray(complete.T) / radius
        if norm == "sup":
            return narrowed(np.rint(np.clip(x, -1.0, 1.0) * GRID), np.int16)
        largest = np.maximum(np.abs(x).max(axis=0, initial=0.0), 1.0)
        x /= largest
        squared = np.zeros(x.shape[1])
        for row in x:
            squared += row * row
        # rows beyond the ball are divided by their length, which is √squared times the factor divided out before
        length = np.sqrt(squared)
        x *= np.where(length * largest > 1.0, 1.0 / np.where(length > 0, length, 1.0), largest)
        scaled = np.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0) * GRID
    units = np.clip(np.rint(scaled), -GRID, GRID)
    for shorter in (1.0, 1 - 2.0**-10, 0.0):  # toward zero if the nearest point is outside, and then further in
        outside = (units * units).sum(axis=0) > GRID * GRID  # exact: integers below 2^53
        if not outside.any():
            break
        units[:, outside] = np.trunc(scaled[:, outside] * shorter)
    return narrowed(units, np.int16)


def whole_weights(weights: Floats) -> Floats:
    """Weights (K, n), integers from 0 on, set to 0 in rows with a total above GRID."""
    total = weights.sum(axis=0)  # exact: below 2^53 by the declared intervals
    return weights if total.max(initial=0.0) <= GRID else np.where(total > GRID, 0.0, weights)


def whole_frames(frames: Floats, squared: Floats, radius: int) -> Floats:
    """Integer frames (K, d, n), multiplied by GRID and divided by the larger of `radius` and their length.

    `squared` (K, n) are their squared lengths, at most LARGEST_SQUARE. Let m be an integer, at least the length and at
    least the radius. |v·GRID| ≤ 2^52, so v·GRID/m is rounded toward zero exactly (`expressions`), and
    Σ (v·GRID/m)² ≤ GRID²·|v|²/m² ≤ GRID².
    """
    divisor = np.sqrt(squared)
    np.floor(divisor, out=divisor)
    divisor += squared > divisor * divisor  # the root rounded up
    np.maximum(divisor, float(radius), out=divisor)
    scaled = frames * float(GRID)
    scaled /= divisor[:, None, :]
    return np.trunc(scaled, out=scaled)


def exact_sizes(numbers: Floats, largest: int, norm: str, scale: float) -> Floats | None:
    """The ℓ₁ or ℓ₂ norm of each column of integers (m, n) times `scale`; None if the sum may not be exact."""
    m = len(numbers)
    if norm == "l1" and m * largest < 2**53:
        return np.asarray(np.abs(numbers).sum(axis=0) * scale)
    if norm == "l2" and m * largest**2 < 2**53:
        return np.asarray(np.sqrt(np.einsum("mn,mn->n", numbers, numbers)) * scale)
    return None


def clipped(contributions: Floats, norm: str, sizes: Floats | None = None) -> Ints:
    """Columns (m, n), in multiples of the bound, clipped to the unit ball of `l1`, `l2` or `sup`, in steps of 2^-BITS.

    Rounded toward zero. A row that is still outside the ball, which is checked in integers, counts as zero. `sizes` are
    the columns' norms, if they are known.
    """
    unit = 2.0**BITS
    with np.errstate(all="ignore"):
        x = np.array(contributions, dtype=float)
        if not np.isfinite(x.sum()):
            x = np.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0)
        if norm == "sup":
            return truncated(np.clip(x, -1.0, 1.0, out=x) * unit)
        if sizes is None:
            np.clip(x, -1.0, 1.0, out=x)  # such coordinates are outside anyway; keeps squares finite
            sizes = np.zeros(x.shape[1])
            for row in x:
                sizes += np.abs(row) if norm == "l1" else row * row
            sizes = sizes if norm == "l1" else np.sqrt(sizes)
        # smaller than the ball by one part in 2^28, so that rounding cannot leave it
        x *= unit * (1 - 2.0**-28) / np.maximum(sizes, 1.0)
    units = truncated(x)
    if norm == "l1":
        units[:, np.abs(units).sum(axis=0) > 2**BITS] = 0
    else:
        # first in doubles, where no square overflows, then exactly
        far = np.einsum("mn,mn->n", x, x) > 2.0 ** (2 * BITS + 1)
        units[:, far] = 0
        units[:, np.einsum("mn,mn->n", units, units) > 2 ** (2 * BITS)] = 0
    return units


def whole_slopes(slopes: Floats) -> Floats:
    """Slopes (k, n) as integers in doubles, in units of 2^-BITS, whose absolute values sum to at most 2^BITS."""
    unit = 2.0**BITS
    x: Any = np.clip(slopes, -1.0, 1.0)
    if len(x) > 1:
        size = np.abs(x[0])
        for row in x[1:]:
            size += np.abs(row)
        # smaller than the bound by one part in 2^28, so that rounding cannot exceed it
        x *= (1 - 2.0**-28) / np.maximum(size, 1.0)
    x *= unit
    np.trunc(x, out=x)
    if len(x) > 1:
        x[:, np.abs(x).sum(axis=0) > unit] = 0.0  # exact: integers
    return np.asarray(x)


MOST_COMPONENTS = 64
LARGEST_COUNT = 2**30


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Weights (K,) of a row in units of 1/GRID, from 0 on, and optionally K frames, the row as each sum uses it.

    `program` maps a row in units of the ball, (d,), to the weights, or to the weights, frames (K, d) and their squared
    lengths (K,). Frames are in units of 1/`radius` of the ball of radius 1.
    """

    name: str
    program: RowProgram
    radius: int = 1

    def __post_init__(self) -> None:
        weights, *frames = self.program.outputs
        (d,) = _row(self.program)
        if len(weights.shape) != 1 or weights.low < 0 or self.size * weights.high >= EXACT:
            raise RowProgramError("weights are one list of numbers from 0 on, with an exact sum")
        if self.size > MOST_COMPONENTS:
            raise RowProgramError(f"at most {MOST_COMPONENTS} components")
        if frames:
            vectors, squared = frames
            reach = d * max(abs(vectors.low), abs(vectors.high)) ** 2
            if vectors.shape != (self.size, d) or reach > LARGEST_SQUARE or not 1 <= self.radius**2 <= LARGEST_SQUARE:
                raise RowProgramError("a frame for each weight, of a length that can be squared exactly")
            if not _is_squared_length(squared, vectors):
                raise RowProgramError("the squared lengths are not those of the frames")

    @property
    def size(self) -> int:
        return self.program.outputs[0].shape[0]

    @property
    def columns(self) -> int:
        return _row(self.program)[0]

    @property
    def framed(self) -> bool:
        return len(self.program.outputs) > 1


@dataclass(frozen=True, slots=True, eq=False)
class Contributions:
    """Numbers (m,) of a row (d,) in units of 2^-`bits`, computed by `program`, to be clipped to a norm and summed."""

    name: str
    program: RowProgram
    bits: int

    def __post_init__(self) -> None:
        (numbers,) = self.program.outputs
        _row(self.program)
        if len(numbers.shape) != 1 or not 0 <= self.bits <= 60:
            raise RowProgramError("contributions are one list of numbers")

    @property
    def columns(self) -> int:
        return _row(self.program)[0]

    @property
    def size(self) -> int:
        return self.program.outputs[0].shape[0]

    @property
    def largest(self) -> int:
        """The largest absolute value of any number."""
        (numbers,) = self.program.outputs
        return max(abs(numbers.low), abs(numbers.high))


@dataclass(frozen=True, slots=True, eq=False)
class RowCount:
    """An integer of a row, computed from its codes in `program.inputs`, each of shape (). Its sum over rows is a score
    in units of 2^-bits. With `cells` it is the row's place among so many, −1 for none, and the rows at each place are
    counted."""

    name: str
    program: RowProgram
    cells: int = 0
    bits: int = 0

    def __post_init__(self) -> None:
        (number,) = self.program.outputs
        if number.shape or any(i.shape for i in self.program.inputs) or self.sensitivity > LARGEST_COUNT:
            raise RowProgramError("one number of each row, of at most 2^30")
        if self.cells and (number.low, number.high) != (-1, self.cells - 1):
            raise RowProgramError("a place among the cells, or −1")

    @property
    def sensitivity(self) -> int:
        (number,) = self.program.outputs
        return 1 if self.cells else max(abs(number.low), abs(number.high))


def _row(program: RowProgram) -> tuple[int]:
    (units,) = program.inputs
    if len(units.shape) != 1 or (units.low, units.high) != (-GRID, GRID):
        raise RowProgramError("a program over rows in units of the ball")
    return (units.shape[0],)


def _is_squared_length(squared: Expression, vectors: Expression) -> bool:
    """Whether `squared` was built as `squared_length(vectors)`."""
    if (squared.operation, squared.numbers) != ("total", (1,)):
        return False
    (product,) = squared.operands
    return product.operation == "*" and all(operand is vectors for operand in product.operands)
