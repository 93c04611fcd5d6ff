"""Exact numbers get 64 bits in one place, which cannot fail and moves no two numbers further apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.integers import LIMIT, fixed_width, shifted, truncated

WIDE = st.one_of(st.integers(-(2**200), 2**200), st.integers(-5, 5), st.sampled_from([2**62, -(2**62), 2**63, 2**64]))


@given(st.lists(WIDE, max_size=6))
def test_integers_of_any_width_are_clamped(values: list[int]) -> None:
    expected = [max(-LIMIT, min(LIMIT, value)) for value in values]
    for given_as in (values, np.array(values, dtype=object)):
        result = fixed_width(given_as)
        assert result.dtype == np.int64 and result.tolist() == expected


@given(WIDE, WIDE, st.integers(0, 62))
def test_no_two_are_moved_further_apart(a: int, b: int, bits: int) -> None:
    first, second = fixed_width([a, b]).tolist()
    assert abs(first - second) <= abs(a - b)
    left, right = shifted(fixed_width([a, b]), bits).tolist()
    assert abs(left - right) <= abs(a - b) << bits
    assert max(abs(left), abs(right)) <= LIMIT


@given(st.lists(st.floats(), max_size=6), st.sampled_from([LIMIT, 2**40, 2**53 + 1, 2**61 - 1]))
def test_doubles_are_rounded_and_clamped(values: list[float], limit: int) -> None:
    array = np.array(values, dtype=np.float64)
    for result, rule in ((fixed_width(array, limit), round), (truncated(array, limit), int)):
        for value, whole in zip(values, result.tolist(), strict=True):
            wide = 0 if value != value else limit if value > LIMIT else -limit if value < -LIMIT else rule(value)
            assert whole == max(-limit, min(limit, wide))


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_arrays_of_every_kind_keep_shape_and_numbers(kind: Any) -> None:
    ends = np.array([[np.iinfo(kind).min, 0], [1, np.iinfo(kind).max]], dtype=kind)
    expected = [[max(-LIMIT, min(LIMIT, int(v))) for v in row] for row in ends]
    assert fixed_width(ends).tolist() == expected
    assert fixed_width(ends[:0]).shape == (0, 2)


def test_truth_values_and_single_numbers() -> None:
    assert fixed_width(np.array([True, False])).tolist() == [1, 0]
    assert fixed_width(2**80).shape == () and int(fixed_width(2**80)) == LIMIT
    assert int(fixed_width(np.int64(7))) == 7
