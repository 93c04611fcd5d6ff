"""Parameters of row kernels: shapes, kinds and magnitudes, checked against public facts before anything is charged.

A kernel runs over private rows, where nothing may fail. So what a program gives is brought to arrays of exact shapes
here: a letter of a shape is a length, `d` the number of columns, `k` any length from 1 on, the same in all parameters
of a kernel. No parameter is fitted by trying a kernel on some rows, since what broadcasts over a few rows fails on
another number of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.kernels.errors import KernelError

MOST = 2.0**40
"""The largest magnitude of a parameter: the sums of an exact product and all squares stay far from overflow."""

SHAPES: Mapping[str, Mapping[str, str]] = {
    "one": {},
    "responsibilities": {"means": "kd", "factors": "kdd", "offsets": "k"},
    "framed": {"means": "kd", "factors": "kdd", "offsets": "k", "radius": ""},
    "nearest": {"centres": "kd"},
    "nearest_from": {"centres": "kd", "radius": ""},
    "within": {"radii": "k"},
    "coordinates": {},
    "indicators": {"values": "d"},
    "logistic_gradient": {"target": "", "weights": "d"},
    "pair_products": {},
}
"""The parameters of each kernel. `indicators` may have `pairs` besides."""

LOGARITHMS = ("offsets",)  # minus infinity is the logarithm of nothing, and is kept as −MOST


def fitted(name: str, columns: int, parameters: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """The parameters of kernel `name` as arrays for rows of so many columns, and how many numbers it gives a row.

    `ValueError` where they do not fit: a name too many or too few, another shape, an entry that is no number or beyond
    MOST, a radius that is not positive, a target that is no column.
    """
    shapes = SHAPES[name]
    optional = {"pairs"} if name == "indicators" else set()
    if not set(shapes) <= set(parameters) <= set(shapes) | optional:
        raise KernelError(f"`{name}` takes {', '.join(shapes) or 'no parameters'}")
    lengths = {"d": columns}
    arrays: dict[str, Any] = {}
    for key, shape in shapes.items():
        arrays[key] = _array(parameters[key], shape, lengths, key in LOGARITHMS)
    if "radius" in arrays:
        arrays["radius"] = float(arrays["radius"])
        if not arrays["radius"] >= 1 / MOST:
            raise KernelError("a radius is positive")
    if "target" in arrays:
        arrays["target"] = int(_whole(arrays["target"], 0, columns - 1))
    if name == "indicators":
        arrays["values"] = _whole(arrays["values"], 1, 2**20)
        arrays["pairs"] = parameters.get("pairs", True)
        if not isinstance(arrays["pairs"], bool):
            raise KernelError("`pairs` is true or false")
    return arrays, _size(name, columns, lengths.get("k", 1), arrays)


def _size(name: str, columns: int, components: int, arrays: Mapping[str, Any]) -> int:
    if name == "pair_products":
        return 1 + columns + columns * (columns - 1) // 2
    if name in ("coordinates", "logistic_gradient"):
        return columns
    if name == "indicators":
        values = [int(v) for v in arrays["values"]]
        pairs = (sum(values) ** 2 - sum(v * v for v in values)) // 2 if arrays["pairs"] else 0
        return 1 + sum(values) + pairs
    return components


def _array(value: Any, shape: str, lengths: dict[str, int], logarithms: bool) -> NDArray[np.float64]:
    array = numbers(value, len(shape), -MOST if logarithms else -math.inf)
    for letter, length in zip(shape, array.shape, strict=True):
        if lengths.setdefault(letter, length) != length or not length:
            raise KernelError("a parameter has another shape")
    return array


def numbers(value: Any, dimensions: int, least: float = -math.inf) -> NDArray[np.float64]:
    """A copy of `value` as numbers within ±MOST in so many dimensions; those below `least` become it."""
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise KernelError("parameters are numbers") from None
    if array.ndim != dimensions:
        raise KernelError("a parameter has another shape")
    array = np.asarray(np.maximum(array, least))  # keeps what is no number
    if not (np.abs(array) <= MOST).all():
        raise KernelError(f"parameters are numbers of at most {MOST:g}")
    return array


def whole_number(value: Any) -> int:
    """A whole number from 0 on."""
    return int(_whole(numbers(value, 0), 0, int(MOST)))


def _whole(array: NDArray[np.float64], low: int, high: int) -> NDArray[np.int64]:
    if not ((array == np.rint(array)) & (array >= low) & (array <= high)).all():
        raise KernelError(f"whole numbers from {low} to {high} are needed")
    return array.astype(np.int64)
