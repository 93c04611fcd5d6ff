"""Scores: private scalars whose sensitivity the kernel knows, because it makes them itself.

For one row more or less in one cell (x_c ± 1, N ± 1), on a grid of 2^-bits (rounding adds one step):

* `size`, `total`: N. 1, monotone.
* `nonzero`: number of non-empty cells. 1, monotone.
* `largest_cell`: the largest cell. 1, monotone.
* `largest_marginal`: the most rows that share one value of one dimension: the largest cell of any marginal. A row is
  counted once in each marginal, so none of those sums moves by more than 1, nor does their maximum; monotone. In 1D it
  is `largest_cell`.
* `l2`: √Σx². |‖x + e_c‖₂ − ‖x‖₂| ≤ 1 by the triangle inequality; monotone.
* `l1_to_uniform`: ½Σ|x_i − N/n|, N times the distance to uniform. Cell c moves by 1 − 1/n, the n − 1 others by 1/n
  each: ½(2 − 2/n) < 1; not monotone.
* `total_variation`: Σ|x_i − x_{i+1}|. A cell has two neighbours: 2; not monotone.
* `distance`: Σ|x_i − e_i| − p against public e and p, ‖x − e‖₁: 1 by the triangle inequality; not monotone.
* `misfit`: for every query q of a workload, |q·x − q·x̂| against a public x̂. A query counts cells: 1; not monotone.

Of tables also the splits (`splits`) and row counts (`rowcounts`); more vectors of scores (`bisection_costs`,
`boundaries`, `tail_energy`) are in `candidates`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostle.diagnostics import refuse
from jostle.plan.plan import WEIGHT_BITS, Count
from jostle.privacy.kernel.handles import Cube, Handle, Score, Scores, Table, Vectors
from jostle.privacy.kernel.vault import UNWEIGHTED
from jostle.privacy.mechanisms.linear import box_sums
from jostle.privacy.scores import candidates, vectorsums
from jostle.privacy.scores.rowcounts import ROW_COUNT, exact_row_count
from jostle.privacy.scores.splits import values_of_splits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.privacy.kernel.reader import Reader

BITS = 10  # scores that are not whole are kept to a thousandth of a row


@dataclass(frozen=True, slots=True)
class Kind:
    """How a score of a cube is computed, in units of 2^-bits, and how far one row can move it."""

    compute: Callable[[NDArray[np.int64]], int]
    sensitivity: int
    monotone: bool
    bits: int = 0


def _l1_to_uniform(x: NDArray[np.int64]) -> int:
    """⌊2^BITS · ½Σ|x − N/n|⌋, by exact integers: Σ|n·x_i − N| / 2n."""
    import numpy as np

    total = int(x.sum())
    fits = 2 * total * x.size < 2**62
    cells = x.ravel() if fits else x.ravel().astype(object)
    return int(int(np.abs(cells * x.size - total).sum()) * 2**BITS // (2 * x.size))


def _total_variation(x: NDArray[np.int64]) -> int:
    import numpy as np

    return int(np.abs(np.diff(x.ravel())).sum())


def _largest_marginal(x: NDArray[np.int64]) -> int:
    if not x.size:
        return 0
    axes = range(x.ndim)
    return max(int(x.sum(axis=tuple(a for a in axes if a != kept)).max()) for kept in axes)


def _l2(x: NDArray[np.int64]) -> int:
    fits = int(x.sum()) < 2**31
    cells = x.ravel() if fits else x.ravel().astype(object)
    return math.isqrt(int((cells**2).sum()) * 4**BITS)


KINDS: dict[str, Kind] = {
    "total": Kind(lambda x: int(x.sum()), 1, True),
    "nonzero": Kind(lambda x: int((x > 0).sum()), 1, True),
    "largest_cell": Kind(lambda x: int(x.max(initial=0)), 1, True),
    "largest_marginal": Kind(_largest_marginal, 1, True),
    "l2": Kind(_l2, 2**BITS + 1, True, BITS),
    "l1_to_uniform": Kind(_l1_to_uniform, 2**BITS + 1, False, BITS),
    "total_variation": Kind(_total_variation, 2, False),
}


def score(of: str, handle: Handle) -> Score:
    """The score named `of` of a cube; `size` of a table or a cube."""
    if of == "size" and isinstance(handle, Vectors):
        return Score(handle.exposures, "size", handle, 1, True)
    if of == "size" and isinstance(handle, (Table, Cube)):
        bits = WEIGHT_BITS if handle.weighted else 0
        return Score(handle.exposures, "size", handle, 1 << bits, True, bits)
    if not isinstance(handle, Cube):
        raise refuse("TypeError", f"`{of}` takes a cube of counts", help="make one: `histogram(people, x = age)`")
    kind = KINDS[of]
    bits = kind.bits + handle.bits
    return Score(handle.exposures, of, handle, kind.sensitivity << handle.bits, kind.monotone, bits)


def distance(cube: Cube, expected: NDArray[np.float64], penalty: float = 0.0) -> Score:
    """How far a public table of expected counts is from the true one in ℓ₁, less a public `penalty`, in rows."""
    import numpy as np

    if expected.size != cube.size:
        raise refuse("ValueError", f"{expected.size} expected counts for a cube of {cube.size} cells")
    bits = max(BITS, cube.bits)
    most = math.ldexp(1.0, 60 - bits)
    public = np.rint(np.ldexp(np.clip(np.nan_to_num(expected), -most, most), bits)).astype(np.int64)
    less = round(math.ldexp(min(max(penalty, -most), most), bits))
    return Score(cube.exposures, "distance", cube, 1 << bits, False, bits, (public.reshape(cube.shape), less))


def _far(one: Score, cells: NDArray[np.int64], cell_bits: int) -> int:
    """The exact `distance`, in its units: whole numbers throughout, cells clamped so that none leaves 64 bits."""
    import numpy as np

    public, less = one.arguments
    shift = one.bits - cell_bits
    gaps = np.abs((np.minimum(cells, 2**60 >> shift) << shift) - public)
    fits = float(gaps.sum(dtype=float)) < 2.0**62
    return (int(gaps.sum()) if fits else sum(int(g) for g in gaps.ravel())) - int(less)


def misfit(cube: Cube, sums: Sequence[Mapping[str, Any]], estimate: NDArray[np.float64]) -> Scores:
    """For each query of a workload, how far a public estimate is from the truth: what MWEM selects by.

    `sums` are the queries as `boxes` (lows, highs), `groups` (labels, size) or `sets` (labels, inside: which regions
    each holds). Each of them is the sum of a set of cells, which is checked here and all that the sensitivity needs.
    """
    import numpy as np

    size = int(np.prod(cube.shape))
    if estimate.size != size:
        raise refuse("ValueError", f"an estimate of {estimate.size} cells for a cube of {size}")
    checked = tuple(_checked(said, cube.shape) for said in sums)
    told = [_summed(said, estimate.reshape(cube.shape)) for said in checked]
    most = math.ldexp(4e18, -cube.bits)
    public = np.rint(np.ldexp(np.clip(np.nan_to_num(np.concatenate(told)), -most, most), cube.bits)).astype(np.int64)
    unit = 1 << cube.bits
    return Scores(cube.exposures, "misfit", cube, unit, False, cube.bits, (checked, public), length=len(public))


def _checked(said: Mapping[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """The queries with arrays of the right kinds: each a set of cells of the cube, no cell twice."""
    import numpy as np

    if said["kind"] == "boxes":
        lows, highs = (np.asarray(said[k], dtype=np.int64).reshape(-1, len(shape)) for k in ("lows", "highs"))
        if lows.shape != highs.shape or (lows < 0).any() or (highs >= np.array(shape)).any() or (lows > highs).any():
            raise refuse("ValueError", "a query lies outside the cube")
        return {"kind": "boxes", "lows": lows, "highs": highs}
    labels = np.asarray(said["labels"], dtype=np.int64).ravel()
    inside = np.asarray(said["inside"], dtype=bool) if said["kind"] == "sets" else None
    size = int(said["size"]) if inside is None else inside.shape[-1]
    if labels.size != int(np.prod(shape)) or (labels < 0).any() or (labels >= size).any():
        raise refuse("ValueError", "a query does not fit the cube")
    return {"kind": "groups", "labels": labels, "size": size, "inside": inside}


def _summed(said: Mapping[str, Any], cells: NDArray[Any]) -> NDArray[Any]:
    """The queries' sums of `cells`, of their kind: exact where those are integers."""
    import numpy as np

    if said["kind"] == "boxes":
        return box_sums(cells, said["lows"], said["highs"])
    sums = np.zeros(said["size"], dtype=cells.dtype)
    np.add.at(sums, said["labels"], cells.ravel())
    if said["inside"] is None:
        return sums
    found = np.empty(len(said["inside"]), dtype=cells.dtype)
    for i, held in enumerate(said["inside"]):
        found[i] = sums[held].sum()
    return found


WEIGHTED = (
    "size", "total", "largest_cell", "largest_marginal", "l2", "l1_to_uniform", "total_variation", "misfit", "distance",
)  # fmt: skip
"""Scores that are as Lipschitz in sums of weights as in counts, in ℓ₁, and are measured of both."""


def check_weights(scores: Sequence[Score]) -> None:
    """Refuses scores that are made of counts of rows where rows have weights: before anything is charged."""
    for one in scores:
        if isinstance(one.base, Cube) and one.base.bits and one.of not in WEIGHTED:
            raise refuse("TypeError", f"`{one.of}` is made of counts of rows, and these have weights", help=UNWEIGHTED)


def reach_of_score(one: Score) -> int:
    """How many rows of a protected unit, or how much weight, a score can be moved by."""
    by_weight = one.of in WEIGHTED and isinstance(one.base, Table | Cube)  # vectors are rows, whatever they weigh
    return max(e.reach if by_weight else e.stability for e in one.exposures)


def values_of(reader: Reader, scores: Sequence[Score]) -> NDArray[np.int64]:
    """The exact scores, on the common grid of the finest; within ±2^62."""
    import numpy as np

    bits = max(s.bits for s in scores)
    splits = values_of_splits(reader, scores)
    numbers: list[int] = []
    for i, one in enumerate(scores):
        exact = [splits[i]] if i in splits else _exact(reader, one)
        numbers.extend(v << (bits - one.bits) for v in exact)
    most = 2**62
    return np.array([max(-most, min(most, v)) for v in numbers], dtype=np.int64)


def _exact(reader: Reader, one: Score) -> list[int]:
    import numpy as np

    base = one.base
    if isinstance(base, Vectors):
        return vectorsums.exact_scores(reader, one) if isinstance(one, Scores) else [vectorsums.size(reader, base)]
    if isinstance(one, Scores) and isinstance(base, Cube):
        if one.of != "misfit":
            return candidates.exact(one, reader.vault)
        sums, public = one.arguments
        cells = reader.units(base)
        return [int(v) for v in np.abs(np.concatenate([_summed(query, cells) for query in sums]) - public)]
    if one.of == ROW_COUNT:
        return [exact_row_count(reader, one)]
    if isinstance(base, Table):
        (count,) = reader.group(base.plan, (), (Count(weighted=base.weighted),))
        return [int(count)]
    if isinstance(base, Cube):
        cells = reader.units(base)
        if one.of == "distance":
            return [_far(one, cells, base.bits)]
        return [int(cells.sum()) if one.of == "size" else KINDS[one.of].compute(cells)]
    raise refuse("TypeError", f"`{one.of}` has nothing to measure")
