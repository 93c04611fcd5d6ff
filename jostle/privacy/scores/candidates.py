"""Vectors of scores that options of the standard library select by: where to cut, how many frequencies to keep.

All are costs below 0, so that the largest score is the least cost, and come from `mechanisms.cuts` and
`mechanisms.residuals`, where their sensitivities are argued. Candidates are public and checked here; what a program
adds to a cost (`penalty`, `costs`) is public too and moves no sensitivity.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from jostle.diagnostics import refuse
from jostle.privacy.kernel.handles import Cube, Scores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.privacy.kernel.vault import Vault

    Ints = NDArray[np.int64]

BITS = 10
MOST_BINS = 200


def bisection_costs(cube: Cube, starts: Any, places: Any, penalty: float, grain: int) -> Scores:
    """For each segment of a line, the cost of a cut at each of its `places`; its own start leaves it whole.

    `starts` and `places` count blocks of `grain` cells. A cut costs `penalty` rows more than none. One group a segment.
    """
    blocks = _line(cube, grain)
    edges = [*_whole(starts), blocks]
    listed = [_whole(p) for p in places]
    if edges[0] != 0 or any(a >= b for a, b in pairwise(edges)):
        raise refuse("ValueError", "segments start at 0 and rise, within the cube")
    if len(listed) != len(edges) - 1 or not all(
        p and min(p) >= low and max(p) < high for p, (low, high) in zip(listed, pairwise(edges), strict=True)
    ):
        raise refuse("ValueError", "each segment needs places for a cut, all within it")
    arguments = (tuple(edges[:-1]), tuple(map(tuple, listed)), _grid(penalty), grain)
    groups = tuple(map(len, listed))
    return _scores(cube, "bisection_costs", 2**BITS, BITS, arguments, sum(groups), groups)


def boundaries(cube: Cube, bins: int, end: int, grain: int) -> Scores:
    """For q = bins − 1 … end − 1, the least cost of the blocks before `end` in `bins` bins, the last from q on."""
    from jostle.privacy.mechanisms.cuts import MOST_BLOCKS

    blocks = _line(cube, grain)
    if blocks > MOST_BLOCKS:
        raise refuse("ValueError", f"boundaries among {blocks} blocks are too many", help=f"at most {MOST_BLOCKS}")
    if not 2 <= bins <= MOST_BINS or not bins <= end <= blocks:
        raise refuse("ValueError", f"{end} of {blocks} blocks cannot be cut into {bins} bins")
    return _scores(cube, "boundaries", 1, 0, (bins, end, grain), end - bins + 1)


def tail_energy(cube: Cube, kept: Any, costs: Any, weights: NDArray[np.float64], grain: int) -> Scores:
    """For each number of frequencies in `kept`, what is left out when only these are kept, and `costs` rows more.

    `weights`, in [0, 1] and no larger than the cube of blocks, say how much a frequency counts.
    """
    from jostle.privacy.mechanisms.residuals import BITS, MOST_KEPT, reach

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
    arguments = (tuple(numbers), tuple(_grid(cost, BITS) for cost in costs), weights.copy(), grain)
    return _scores(cube, "tail_energy", reach(blocks, numbers[0], weights), BITS, arguments, len(numbers))


def exact(one: Scores, vault: Vault) -> list[int]:
    """The exact scores, in units of 2^-bits: for mechanisms only, after they have charged."""
    import numpy as np

    from jostle.privacy.mechanisms import cuts, residuals

    cube: Any = one.base
    y = cuts.block_sums(vault.cells(cube), one.arguments[-1])
    if one.of == "boundaries":
        bins, end, grain = one.arguments
        line = vault.lines.get((cube.cells, grain))
        if line is None:
            line = vault.lines.put((cube.cells, grain), cuts.Line(y), 16 * len(y) ** 2)
        return [-int(v) for v in line.boundary_costs(bins, end)]
    if one.of == "tail_energy":
        kept, costs, weights, _ = one.arguments
        found = residuals.residuals(y, np.array(kept, dtype=np.int64), weights)
        return [-int(v) - cost for v, cost in zip(found, costs, strict=True)]
    starts, listed, penalty, _ = one.arguments
    places = [np.array(p, dtype=np.int64) for p in listed]
    return [
        -(int(v) << BITS) - (penalty if place > start else 0)
        for start, some, at in zip(starts, cuts.bisection_costs(y, list(starts), places), listed, strict=True)
        for v, place in zip(some, at, strict=True)
    ]


def _scores(
    cube: Cube, of: str, sensitivity: int, bits: int, arguments: tuple[Any, ...], length: int,
    groups: tuple[int, ...] = (),
) -> Scores:  # fmt: skip
    if cube.bits:
        raise refuse("TypeError", f"`{of}` takes counts of rows, and these are sums of weights")
    return Scores(
        cube.exposures, of, cube, sensitivity, monotone=False, bits=bits, arguments=arguments, length=length,
        groups=groups,
    )  # fmt: skip


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
    found = [float(v) for v in values]
    if not found or not all(v.is_integer() and abs(v) < 2**53 for v in found):
        raise refuse("ValueError", "places are whole numbers, one at least")
    return [int(v) for v in found]


def _grid(value: float, bits: int = BITS) -> int:
    if math.isnan(value):
        raise refuse("ValueError", "a public cost is a number")
    return round(max(-1e12, min(1e12, value)) * (1 << bits))
