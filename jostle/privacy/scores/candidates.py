"""Vectors of scores that options of the standard library select by: where to cut, how many frequencies to keep.

All are costs below 0, so that the largest score is the least cost, and come from `mechanisms.least_cost`; their
sensitivities are argued in docs/privacy/cuts.md. Candidates are public and checked here; what a program
adds to a cost (`penalty`, `costs`) is public too and moves no sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.lazy import Floats, Ints
from jostle.privacy.kernel.handles import Cube
from jostle.privacy.mechanisms import least_cost
from jostle.privacy.mechanisms.least_cost import MOST_BLOCKS, MOST_KEPT, Line, block_sums, reach, residuals
from jostle.privacy.reading.vault import Reader
from jostle.privacy.scores import Rule, Score, Scores
from jostle.privacy.scores.cells import BITS, cube_of

MOST_BINS = 200


@dataclass(frozen=True, eq=False)
class LineScores(Rule):
    """Costs computed of a line's blocks, each the sum of `grain` cells, which is the last argument."""

    def scores(
        self, cube: Cube, sensitivity: int, bits: int, arguments: tuple[object, ...], length: int,
        groups: tuple[int, ...] = (),
    ) -> Scores:  # fmt: skip
        if cube.bits:
            raise refuse("TypeError", f"`{self.name}` takes counts of rows, and these are sums of weights")
        return Scores(
            cube.exposures, self, cube, sensitivity, monotone=False, bits=bits, arguments=arguments, length=length,
            groups=groups,
        )  # fmt: skip

    def blocks(self, reader: Reader, score: Score) -> Ints:
        return block_sums(reader.cells(cube_of(score)), score.arguments[-1])


class Bisections(LineScores):
    def exact(self, reader: Reader, score: Score) -> list[int]:
        starts, positions, penalty, _ = score.arguments
        places = [fixed_width(p) for p in positions]
        costs = least_cost.bisection_costs(self.blocks(reader, score), list(starts), places)
        return [
            -(int(v) << BITS) - (penalty if place > start else 0)
            for start, some, at in zip(starts, costs, positions, strict=True)
            for v, place in zip(some, at, strict=True)
        ]


class Boundaries(LineScores):
    def exact(self, reader: Reader, score: Score) -> list[int]:
        bins, end, grain = score.arguments
        lines, key = reader.lines, (cube_of(score).cells, grain)
        line = lines.get(key)
        if line is None:
            blocks = self.blocks(reader, score)
            line = lines.put(key, Line(blocks), 16 * len(blocks) ** 2)
        return [-int(v) for v in line.boundary_costs(bins, end)]


class Leftover(LineScores):
    def exact(self, reader: Reader, score: Score) -> list[int]:
        frequencies, costs, weights, _ = score.arguments
        energies = residuals(self.blocks(reader, score), fixed_width(frequencies), weights)
        return [-int(v) - cost for v, cost in zip(energies, costs, strict=True)]


BISECTIONS, BOUNDARIES = Bisections("bisection_costs", False), Boundaries("boundaries", False)
LEFTOVER = Leftover("tail_energy", False)


def bisection_costs(
    cube: Cube, starts: Sequence[float], places: Sequence[Sequence[float]], penalty: float = 0.0, grain: int = 1
) -> Scores:
    """For each segment of a line, the cost of a cut at each of its `places`; its own start leaves it whole.

    `starts` and `places` count blocks of `grain` cells. A cut costs `penalty` rows more than none. One group a segment.
    """
    blocks = _line(cube, grain)
    edges = [*_whole(starts), blocks]
    positions = [_whole(p) for p in places]
    if edges[0] != 0 or any(a >= b for a, b in pairwise(edges)):
        raise refuse("ValueError", "segments start at 0 and rise, within the cube")
    if len(positions) != len(edges) - 1 or not all(
        p and min(p) >= low and max(p) < high for p, (low, high) in zip(positions, pairwise(edges), strict=True)
    ):
        raise refuse("ValueError", "each segment needs places for a cut, all within it")
    arguments = (tuple(edges[:-1]), tuple(map(tuple, positions)), _grid(penalty), grain)
    groups = tuple(map(len, positions))
    return BISECTIONS.scores(cube, 2**BITS, BITS, arguments, sum(groups), groups)


def boundaries(cube: Cube, bins: int, end: int, grain: int = 1) -> Scores:
    """For q = bins − 1 … end − 1, the least cost of the blocks before `end` in `bins` bins, the last from q on."""
    blocks = _line(cube, grain)
    if blocks > MOST_BLOCKS:
        raise refuse("ValueError", f"boundaries among {blocks} blocks are too many", help=f"at most {MOST_BLOCKS}")
    if not 2 <= bins <= MOST_BINS or not bins <= end <= blocks:
        raise refuse("ValueError", f"{end} of {blocks} blocks cannot be cut into {bins} bins")
    return BOUNDARIES.scores(cube, 1, 0, (bins, end, grain), end - bins + 1)


def tail_energy(cube: Cube, kept: Sequence[float], costs: Sequence[float], weights: Floats, grain: int = 1) -> Scores:
    """For each number of frequencies in `kept`, what is left out when only these are kept, and `costs` rows more.

    `weights`, in [0, 1] and no larger than the cube of blocks, say how much a frequency counts.
    """
    numbers = _whole(kept)
    blocks = tuple(_blocks(cube, grain))
    if (
        weights.ndim != len(blocks)
        or not weights.size
        or any(a > b for a, b in zip(weights.shape, blocks, strict=True))
    ):
        raise refuse("ValueError", "weights of frequencies have the axes of the cube, and are no longer")
    if not 1 <= len(numbers) <= MOST_KEPT or numbers[0] < 1 or any(a >= b for a, b in pairwise(numbers)):
        raise refuse("ValueError", f"numbers of frequencies rise from 1; there are at most {MOST_KEPT}")
    if len(costs) != len(numbers):
        raise refuse("ValueError", f"{len(costs)} costs for {len(numbers)} numbers of frequencies")
    arguments = (tuple(numbers), tuple(_grid(cost, least_cost.BITS) for cost in costs), weights.copy(), grain)
    return LEFTOVER.scores(cube, reach(blocks, numbers[0], weights), least_cost.BITS, arguments, len(numbers))


def _blocks(cube: Cube, grain: int) -> list[int]:
    if grain < 1:
        raise refuse("ValueError", "a block has at least one cell")
    return [-(-side // grain) for side in cube.shape]


def _line(cube: Cube, grain: int) -> int:
    blocks = _blocks(cube, grain)
    if len(blocks) != 1:
        raise refuse("ValueError", f"cuts are made along a line, and this cube has {len(blocks)} dimensions")
    return blocks[0]


def _whole(values: Any) -> list[int]:
    numbers = [float(v) for v in values]
    if not numbers or not all(v.is_integer() and abs(v) < 2**53 for v in numbers):
        raise refuse("ValueError", "places are whole numbers, one at least")
    return [int(v) for v in numbers]


def _grid(value: float, bits: int = BITS) -> int:
    if math.isnan(value):
        raise refuse("ValueError", "a public cost is a number")
    return round(max(-1e12, min(1e12, value)) * (1 << bits))
