"""What a measurement may sum over private rows: row programs with a declared meaning of what they give.

Making one checks that its program has the outputs that are declared, in units and intervals on which the norms rest
(`norms`). Builders make them (`jostle.kernels.rowprograms`), and privacy rests on none of these.
"""

from __future__ import annotations

from dataclasses import dataclass

from jostle.privacy.rows.arrays import Total
from jostle.privacy.rows.expressions import EXACT, Expression, Product, RowProgramError
from jostle.privacy.rows.norms import GRID, LARGEST_SQUARE
from jostle.privacy.rows.program import RowProgram

MOST_COMPONENTS = 64
LARGEST_COUNT = 2**30


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Weights (K,) of a row in units of 1/GRID, from 0 on, and perhaps K frames: the row as each sum is to see it.

    `program` takes a row in units of the ball, (d,), and gives the weights, or the weights, frames (K, d) and their
    squared lengths (K,). Frames are in units of 1/`radius` of the ball of radius 1.
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
    """Numbers (m,) of a row in units of 2^-`bits`, to be clipped to a norm and summed; `program` takes a row (d,)."""

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
    """A whole number of a row, of its codes in `program.inputs`, each of shape (): summed over rows it is a score."""

    name: str
    program: RowProgram

    def __post_init__(self) -> None:
        (number,) = self.program.outputs
        if number.shape or any(i.shape for i in self.program.inputs) or self.sensitivity > LARGEST_COUNT:
            raise RowProgramError("one number of each row, of at most 2^30")

    @property
    def sensitivity(self) -> int:
        (number,) = self.program.outputs
        return max(abs(number.low), abs(number.high))


def _row(program: RowProgram) -> tuple[int]:
    (units,) = program.inputs
    if len(units.shape) != 1 or (units.low, units.high) != (-GRID, GRID):
        raise RowProgramError("a program over rows in units of the ball")
    return (units.shape[0],)


def _is_squared_length(squared: Expression, vectors: Expression) -> bool:
    """Whether `squared` is made as `squared_length(vectors)`."""
    if not isinstance(squared, Total) or squared.axis != 1 or not isinstance(squared.argument, Product):
        return False
    return squared.argument.left is vectors and squared.argument.right is vectors
