"""The elements of vectors, and what is calculated with vectors, with what they come from (`formulas`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jostle.formulas import MOST_STEPS, Formula, Noised, OfElements, Vector, calculated, cuts_of
from jostle.lazy import np
from jostle.run.values import is_vector


def origin_of_vector(value: object) -> Formula | None:
    """What a vector was calculated from; None where that is not known."""
    if not hasattr(type(value), "jostle_vector"):
        return None
    from jostle.kernels.noisy_array import origin_of

    return origin_of(value)


def element(value: Any, place: int) -> Any:
    """One element of a vector: a number, or a row of a matrix."""
    one = value[place]
    if one.ndim:
        return one
    origin = origin_of_vector(value)
    if origin is None:
        return float(one)
    at = place % len(value)
    if isinstance(origin, Vector):
        return Noised.of(float(one), origin.element(at), cuts_of(value))
    return Noised.of(float(one), Formula("element", (origin, float(at)), origin.steps + 1), cuts_of(value))


def elements(value: Any) -> list[Any]:
    """All elements of a vector."""
    if origin_of_vector(value) is None:
        return [float(v) for v in value]
    return [element(value, place) for place in range(len(value))]


def of_all(name: str, result: float, value: object, numbers: Sequence[float]) -> float:
    """The result of a function of a list of numbers; where these are noised, it remembers from what it comes."""
    if not is_vector(value):
        return calculated(result, name, numbers) if Noised in set(map(type, numbers)) else result
    origin = origin_of_vector(value)
    if origin is None:
        return result
    if isinstance(origin, Vector):
        return Noised.of(result, OfElements(name, origin), cuts_of(value))
    return Noised.of(result, Formula(f"{name} of elements", (origin,), origin.steps + 1), cuts_of(value))


def calculated_vector(result: Any, op: str, left: Any, right: Any) -> Any:
    """A vector that was calculated of two sides, which remembers from what."""
    one, other = _side(left), _side(right)
    if result.ndim != 1 or one is None or other is None:
        return result
    steps = max(getattr(one, "steps", -1), getattr(other, "steps", -1)) + 1
    if not 0 < steps <= MOST_STEPS:
        return result
    from jostle.kernels.noisy_array import with_origin

    return with_origin(result, Formula(op, (one, other), steps), cuts_of(left, right))


def _side(value: Any) -> Any:
    """What a side comes from, or the constant that it is, with a row for each element; None where it is neither."""
    if type(value) is Noised:
        return value.origin
    if isinstance(value, list):
        value = None if Noised in set(map(type, value)) else _array(value)
    origin = origin_of_vector(value)
    if origin is not None or getattr(value, "noise", None) is not None:
        return origin
    return value[:, None] if getattr(value, "ndim", 0) == 1 else value


def _array(numbers: list[object]) -> Any:
    return np.asarray(numbers, dtype=float)
