"""Types of the arrays that kernels work on, helpers for axes and groups, and a minimum over nonnegative arrays.

That is found by L-BFGS on the entries that are free (those at 0 whose gradient holds them there are not). Each step
is projected onto z ≥ 0 and shortened until the function falls. SciPy's L-BFGS-B spends most of its time on bookkeeping
at the sizes met here (10⁴ to 10⁵ unknowns, ten steps) and half a second on being imported.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from jostle.kernels import KernelError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Rows(TypedDict):
    """The public facts of `vectors(…)`: columns, and the centre and scale of each, in units of which a row has at most
    the length `radius` in a `norm`."""

    columns: Sequence[str]
    centres: Sequence[float]
    scales: Sequence[float]
    radius: float
    norm: str


class Moments(TypedDict):
    """Noisy numbers of rows, sums and sums of products, (k,), (k, d) and (k, d, d), and the noise of each."""

    count: Floats
    count_noise: float
    first: Floats
    first_noise: float
    second: Floats
    second_noise: float
    mechanism: str


class Sums(TypedDict):
    """Noisy sums, with noise of this deviation by a mechanism."""

    sum: Floats
    noise: float
    mechanism: NotRequired[str]


class Column(TypedDict, total=False):
    """A column: `edges` or `values` of its cells; in vectors its `place`, and (x − centre)/scale of a number."""

    name: str
    place: float
    edges: Sequence[float]
    values: Sequence[str | float | bool]
    value: str | float | bool
    text: str
    number: bool
    centre: float
    scale: float
    step: float
    at: str | float
    same: bool


Strategy = list[dict[str, Any]]
"""Linear queries to measure, as plain data: a list of blocks, each with its `kind` and what that kind needs."""


def axes_of(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    """The lengths of a cube's axes; a single number is a line of so many cells."""
    return (int(shape),) if isinstance(shape, int | np.integer) else tuple(int(side) for side in shape)


def along(values: Any, axis: int, axes: int) -> Any:
    """A vector as an array of `axes` dimensions that varies along one of them."""
    return values.reshape([-1 if a == axis else 1 for a in range(axes)])


def labels_of(places: Sequence[Ints]) -> Ints:
    """The group of every flat cell of a cube, in C order of the groups along its axes.

    `places[a]` says in which group, 0 … g − 1, each place of axis a lies.
    """
    label: Any = np.zeros((1,) * len(places), dtype=np.int64)
    for axis, place in enumerate(places):
        label = label * (int(place.max()) + 1) + along(place, axis, len(places))
    return np.ascontiguousarray(label).ravel()


def groups(labels: Ints, weight: object) -> dict[str, object]:
    """The block of a strategy that measures each group of `labels`, 0 … g − 1, once."""
    labels = np.asarray(labels, dtype=np.int64).ravel()
    return {"kind": "groups", "labels": labels, "size": int(labels.max()) + 1, "weight": weight}


Pair = tuple[Floats, Floats, float]


def minimise(
    function: Callable[[Floats], tuple[float, Floats]], start: Floats, iterations: int, tolerance: float = 1e-4
) -> tuple[Floats, float]:
    """The point after at most `iterations` steps from `start` (any shape, ≥ 0), and the value there.

    `function` gives a value and its gradient, of the shape of `start`. Stops when the value falls by less than
    `tolerance` of itself over five steps, or no more at all.
    """

    def at(flat: Floats) -> tuple[float, Floats]:
        value, gradient = function(flat.reshape(start.shape))
        return value, gradient.ravel()

    point = start.ravel().copy()  # flat: products of one dimension are thrice as quick as those of two
    value, gradient = at(point)
    memory: deque[Pair] = deque(maxlen=8)
    values = [value]
    for _ in range(iterations):
        free = (point > 0) | (gradient < 0)
        direction = np.where(free, _two_loop(np.where(free, gradient, 0.0), memory), 0.0)
        if direction.dot(gradient) >= 0:
            memory.clear()
            direction = np.where(free, -gradient, 0.0)
        step = 1.0 if memory else 0.3 / max(float(np.abs(direction).max()), 1e-300)
        for _ in range(20):
            candidate = np.maximum(point + step * direction, 0.0)
            new_value, new_gradient = at(candidate)
            if new_value <= value + 1e-4 * gradient.dot(candidate - point):
                break
            step /= 3
        else:
            break
        change, bend = candidate - point, new_gradient - gradient
        curvature = float(change.dot(bend))
        if curvature > 1e-12 * (math.sqrt(change.dot(change)) * math.sqrt(bend.dot(bend))):
            memory.append((change, bend, curvature))
        point, value, gradient = candidate, new_value, new_gradient
        values.append(value)
        if len(values) > 5 and values[-6] - value < tolerance * abs(value):
            break
    return point.reshape(start.shape), value


def _two_loop(gradient: Floats, memory: deque[Pair]) -> Floats:
    """The L-BFGS direction (Nocedal and Wright, *Numerical Optimization*, algorithm 7.4)."""
    q = gradient.copy()
    alphas: list[float] = []
    for change, bend, curvature in reversed(memory):
        alphas.append(float(change.dot(q)) / curvature)
        q -= alphas[-1] * bend
    if memory:
        _, bend, curvature = memory[-1]
        q *= curvature / float(bend.dot(bend))
    for change, bend, curvature in memory:
        q += (alphas.pop() - float(bend.dot(q)) / curvature) * change
    return -q


def whole_number(value: object, least: int, most: int, what: str) -> None:
    """Refuses what is no whole number from `least` to `most`; `what` names what is counted, in the plural."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        text = f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)
        raise KernelError(f"{what} are a whole number from {least:,} to {most:,}, not {text}")


def with_sum(z0: Floats, sizes: Floats, total: float) -> Floats:
    """The nearest z ≥ 0 to `z0`, both (b,), of buckets of so many cells, that adds up to `total`, or to 0 if less.

    It takes the same density from all buckets that stay above 0: of cells it is a projection onto a simplex
    (Michelot 1986; Duchi and others 2008).
    """
    left, cells, less = z0, sizes, 0.0
    while total > 0 and len(left):
        less = float(left.sum() - total) / float(cells.sum())
        stays = left > less * cells
        if stays.all():
            return np.asarray(np.maximum(z0 - less * sizes, 0.0))
        left, cells = left[stays], cells[stays]
    return np.zeros_like(z0)
