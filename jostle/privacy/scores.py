"""Scores: private scalars whose sensitivity the kernel knows, because it makes them itself.

For one row more or less in one cell (x_c ± 1, N ± 1), on a grid of 2^-bits (rounding adds one step):

* `size`, `total`: N. 1, monotone.
* `nonzero`: number of non-empty cells. 1, monotone.
* `peak`: the largest cell. 1, monotone.
* `l2`: √Σx². |‖x + e_c‖₂ − ‖x‖₂| ≤ 1 by the triangle inequality; monotone.
* `spread`: ½Σ|x_i − N/n|, N times the distance to uniform. Cell c moves by 1 − 1/n, the n − 1 others by 1/n each:
  ½(2 − 2/n) < 1; not monotone.
* `roughness`: Σ|x_i − x_{i+1}|. A cell has two neighbours: 2; not monotone.
* `misfit`: for every query q of a workload, |q·x − q·x̂| against a public x̂. A query counts cells: 1; not monotone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostle.diagnostics import refuse
from jostle.engine.plan import Count
from jostle.privacy.handles import Cube, Handle, Score, Scores, Table
from jostle.privacy.mechanisms.linear import box_sums

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.privacy.kernel import Kernel

BITS = 10  # scores that are not whole are kept to a thousandth of a row


@dataclass(frozen=True, slots=True)
class Kind:
    """How a score of a cube is computed, in units of 2^-bits, and how far one row can move it."""

    compute: Callable[[NDArray[np.int64]], int]
    sensitivity: int
    monotone: bool
    bits: int = 0


def _spread(x: NDArray[np.int64]) -> int:
    """⌊2^BITS · ½Σ|x − N/n|⌋, by exact integers: Σ|n·x_i − N| / 2n."""
    import numpy as np

    total = int(x.sum())
    fits = 2 * total * x.size < 2**62
    cells = x.ravel() if fits else x.ravel().astype(object)
    return int(int(np.abs(cells * x.size - total).sum()) * 2**BITS // (2 * x.size))


def _roughness(x: NDArray[np.int64]) -> int:
    import numpy as np

    return int(np.abs(np.diff(x.ravel())).sum())


def _l2(x: NDArray[np.int64]) -> int:
    fits = int(x.sum()) < 2**31
    cells = x.ravel() if fits else x.ravel().astype(object)
    return math.isqrt(int((cells**2).sum()) * 4**BITS)


KINDS: dict[str, Kind] = {
    "total": Kind(lambda x: int(x.sum()), 1, True),
    "nonzero": Kind(lambda x: int((x > 0).sum()), 1, True),
    "peak": Kind(lambda x: int(x.max(initial=0)), 1, True),
    "l2": Kind(_l2, 2**BITS + 1, True, BITS),
    "spread": Kind(_spread, 2**BITS + 1, False, BITS),
    "roughness": Kind(_roughness, 2, False),
}


def score(of: str, handle: Handle) -> Score:
    """The score named `of` of a cube; `size` of a table or a cube."""
    if of == "size" and isinstance(handle, (Table, Cube)):
        return Score(handle.exposures, "size", handle, 1, True)
    if not isinstance(handle, Cube):
        raise refuse("TypeError", f"`{of}` takes a cube of counts", help="make one: `histogram(people, x = age)`")
    kind = KINDS[of]
    return Score(handle.exposures, of, handle, kind.sensitivity, kind.monotone, kind.bits)


def misfit(cube: Cube, lows: NDArray[Any], highs: NDArray[Any], estimate: NDArray[np.float64]) -> Scores:
    """For each box query, how far a public estimate is from the truth: what MWEM selects by."""
    import numpy as np

    size = int(np.prod(cube.shape))
    if estimate.size != size:
        raise refuse("ValueError", f"an estimate of {estimate.size} cells for a cube of {size}")
    lows, highs = (np.asarray(a, dtype=np.int64).reshape(-1, len(cube.shape)) for a in (lows, highs))
    if (lows < 0).any() or (highs >= np.array(cube.shape)).any() or (lows > highs).any():
        raise refuse("ValueError", "a query lies outside the cube")
    public = np.rint(np.clip(np.nan_to_num(box_sums(estimate.reshape(cube.shape), lows, highs)), -4e18, 4e18))
    return Scores(cube.exposures, "misfit", cube, 1, False, 0, (lows, highs, public.astype(np.int64)), length=len(lows))


def values_of(kernel: Kernel, scores: Sequence[Score]) -> NDArray[np.int64]:
    """The exact scores, on the common grid of the finest: for mechanisms only, after they have charged."""
    import numpy as np

    bits = max(s.bits for s in scores)
    out: list[int] = []
    for one in scores:
        out.extend(v << (bits - one.bits) for v in _exact(kernel, one))
    most = 2**62
    return np.array([max(-most, min(most, v)) for v in out], dtype=np.int64)


def _exact(kernel: Kernel, one: Score) -> list[int]:
    import numpy as np

    if isinstance(one, Scores) and isinstance(one.base, Cube):
        lows, highs, public = one.arguments
        return [int(v) for v in np.abs(box_sums(kernel.vault.cells(one.base), lows, highs) - public)]
    if isinstance(one.base, Table):
        (count,) = kernel.engine.group(one.base.plan, (), (Count(),))
        return [int(count)]
    if isinstance(one.base, Cube):
        cells = kernel.vault.cells(one.base)
        return [int(cells.sum()) if one.of == "size" else KINDS[one.of].compute(cells)]
    raise refuse("TypeError", f"`{one.of}` has nothing to measure")
