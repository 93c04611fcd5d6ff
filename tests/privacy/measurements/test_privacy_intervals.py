"""The intervals that quantiles choose among, and that a value which many rows share is met exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from jostle.privacy.kernel import sources
from jostle.privacy.measurements.aggregates.intervals import EVEN, intervals, shortest
from jostle.simulate import SeededNoise
from jostle.source import Source
from jostle.tools.session import Session

BOUNDS = [
    (17.0, 45.0), (0.0, 60.0), (-3.0, 1e9), (-1e-5, 3e7), (0.0, 0.0), (5e-324, 1e-323), (0.0, 1e-300),
    (-2.0**62, 2.0**62), (-1.7e308, 1.7e308), (1e15, 1e15 + 5000), (-9.5, -9.25), (0.1, 0.1 + 2**-50),
]  # fmt: skip


@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_real_intervals_cover_the_bounds_and_hold_their_numbers(low: float, high: float) -> None:
    starts, numbers = intervals(low, high, False)
    ends = np.append(starts[1:], math.inf)
    assert starts[0] == low and (np.diff(starts) > 0).all()
    assert ((starts <= numbers) & (numbers < ends) & (numbers <= high)).all()
    widest = max(Fraction(float(b)) - Fraction(float(a)) for a, b in zip(starts, [*starts[1:], high], strict=True))
    rounded = 4 * Fraction(math.ulp(max(abs(low), abs(high))))
    assert widest <= (Fraction(high) - Fraction(low)) / EVEN + rounded


@pytest.mark.parametrize(
    ("low", "high"), [(0, 5), (-4, 4091), (0, 4095), (0, 4096), (-7, 10**6), (10**9, 10**9 + 5000)]
)
def test_intervals_of_whole_numbers_lose_none(low: int, high: int) -> None:
    starts, numbers = intervals(float(low), float(high), True)
    assert starts[0] == low and (starts == np.floor(starts)).all() and (numbers == np.floor(numbers)).all()
    assert ((starts <= numbers) & (numbers < np.append(starts[1:], high + 1))).all()
    if high - low < EVEN:
        assert list(starts) == list(range(low, high + 1)) and numbers is starts
    assert {0, 1, 2} <= set(starts) or low > 0


def test_the_number_has_the_fewest_digits() -> None:
    """Against every decimal of up to six places."""
    rng = np.random.default_rng(3)
    starts = np.round(rng.normal(0, 30, 60), 4)
    ends = starts + 10.0 ** rng.uniform(-3, 2, 60)
    for a, b, number in zip(starts, ends, shortest(starts, ends), strict=True):
        places = next(p for p in range(-3, 7) if math.ceil(Fraction(a) * 10**p) < Fraction(b) * 10**p)
        digits = Fraction(str(number)) * Fraction(10) ** places
        assert a <= number < b and (digits.denominator == 1 or number == 0), (a, b, number)


@pytest.mark.parametrize(
    ("described", "values", "call", "answer"),
    [
        ("17.0..45.0", [17.5, 22, 27, 27, 27, 32, 42], "median(x)", 27),
        ("0.0..25.0", [0.5, 2.5, 2.5, 2.5, 6, 6, 9], "quantile(x, 0.3)", 2.5),
        ("0..1000000", [0, 9, 30_000, 30_000, 30_000, 31_000, 900_000], "median(x)", 30_000),
        ("0.0..100000000.0", [1, 2, 12.5, 12.5, 12.5, 80, 9e7], "median(x)", 12.5),
        ("-50.0..50.0", [-50, -0.1, 0, 0, 0, 0.1, 50], "median(x)", 0),
    ],
)
def test_values_that_rows_share_are_met_exactly(
    monkeypatch: pytest.MonkeyPatch, described: str, values: list[float], call: str, answer: float
) -> None:
    monkeypatch.setattr(sources, "SecureNoise", lambda: SeededNoise(7))
    session = Session()
    session.bind("t", pd.DataFrame({"x": values * 100}))
    text = f'private t = bound("t") described by {{x: {described}}} protecting rows budget epsilon 100\n'
    text += f"xs = [{{{{ select {call} from t with epsilon 1 }}}} for i in 1..20]\nrelease xs\n"
    assert session.attempt(Source("q.jst", text)).released["xs"] == pytest.approx([answer] * 20, abs=1e-12)
