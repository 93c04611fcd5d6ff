"""The intervals that quantiles choose among, and that a value which many rows share is met exactly."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from jostle.accounting.amounts import QUANTA, Amount
from jostle.plan.plan import WEIGHT_BITS, Bound, Column, Count, Integer, Key, Open, Real, Scan
from jostle.privacy.kernel import exposures
from jostle.privacy.measurements.aggregates.quantile import EVEN, Intervals, Quantile, intervals
from jostle.readers.duckdb import LocalDuckDb
from jostle.run.answers import numbers_of_intervals, shortest
from jostle.simulate import SeededNoise
from jostle.source import Source
from jostle.tools.session import Session

BOUNDS = [
    (17.0, 45.0), (0.0, 60.0), (-3.0, 1e9), (-1e-5, 3e7), (0.0, 0.0), (5e-324, 1e-323), (0.0, 1e-300),
    (-2.0**62, 2.0**62), (-1.7e308, 1.7e308), (1e15, 1e15 + 5000), (-9.5, -9.25), (0.1, 0.1 + 2**-50),
]  # fmt: skip


def numbers_in(cut: Intervals) -> np.ndarray:
    """What is answered where each of the intervals is chosen."""
    numbers = numbers_of_intervals(cut)
    return np.array([numbers.get(start, start) for start in cut.starts.tolist()])


@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_real_intervals_cover_the_bounds_and_hold_their_numbers(low: float, high: float) -> None:
    cut = intervals(low, high, False)
    starts, numbers = cut.starts, numbers_in(cut)
    ends = np.append(starts[1:], math.inf)
    assert starts[0] == low and (np.diff(starts) > 0).all()
    assert ((starts <= numbers) & (numbers < ends) & (numbers <= high)).all()
    widest = max(Fraction(float(b)) - Fraction(float(a)) for a, b in zip(starts, [*starts[1:], high], strict=True))
    rounded = 4 * Fraction(math.ulp(max(abs(low), abs(high))))
    assert widest <= (Fraction(high) - Fraction(low)) * Fraction(2**0.5) / EVEN + rounded


@pytest.mark.parametrize(
    ("low", "high"), [(0, 5), (-4, 4091), (0, 4095), (0, 4096), (-7, 10**6), (10**9, 10**9 + 5000)]
)
def test_intervals_of_whole_numbers_lose_none(low: int, high: int) -> None:
    cut = intervals(float(low), float(high), True)
    starts, numbers = cut.starts, numbers_in(cut)
    assert starts[0] == low and (starts == np.floor(starts)).all() and (numbers == np.floor(numbers)).all()
    assert ((starts <= numbers) & (numbers < np.append(starts[1:], high + 1))).all()
    if high - low < EVEN:
        assert list(starts) == list(range(low, high + 1)) and (numbers == starts).all()
    assert {0, 1, 2} <= set(starts) or low > 0


@pytest.mark.parametrize(("low", "high"), [*BOUNDS, (-7.0, 1e6), (3.0, 9.0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_engine_counts_the_rows_between_two_ends(low: float, high: float, weighted: bool) -> None:
    """Rows at the ends of intervals and beside them, heaps, gaps and none, in two groups: by comparison with ends."""
    rng, whole = np.random.default_rng(5), not low % 1 and not high % 1 and (low, high) in ((-7.0, 1e6), (3.0, 9.0))
    cut = intervals(low, high, whole)
    ends = rng.choice(cut.starts, 300)
    some = [ends, np.nextafter(ends, -math.inf), np.nextafter(ends, math.inf), ends * 2.0 ** -rng.integers(0, 60, 300)]
    values = np.concatenate([*some, [low, high] * 9, rng.uniform(0, 1, 300) * (high / 2 - low / 2) + low / 2])
    values = np.clip(np.floor(values) if whole else values, low, high)
    if low <= 0 <= high:
        values[np.abs(values) < 2.0**-1000] = 0.0  # too small to tell from it
    engine, group = LocalDuckDb(), rng.integers(0, 2, len(values))
    data = pd.DataFrame({"g": group, "x": values, "who": np.arange(len(values))})
    data = pd.concat([data, pd.DataFrame({"g": [0, 1], "x": [np.nan, np.nan], "who": [-1, -2]})])
    engine.objects.bind(data, "data")
    domain = Integer(int(low), int(high)) if whole else Real(low, high)
    columns = (("g", Integer(0, 1)), ("x", domain), ("who", Open("integer")))
    scan: Scan | Bound = Scan(engine.open(data, public=False).key, columns)
    scan = Bound(scan, ("who",), 1, weighted=True) if weighted else scan
    keys = (Key(Column("g"), range(2)), cut.key(Column("x")))
    (counts,) = engine.group(scan, keys, (Count(weighted=weighted),))
    unit = 2**WEIGHT_BITS if weighted else 1
    for one in (0, 1):
        below = np.searchsorted(np.sort(values[group == one]), cut.starts)
        assert counts[one].tolist() == (unit * np.diff(below, append=sum(group == one))).tolist()
    engine.close()


def test_scores_are_the_distances_of_ranks() -> None:
    """What a quantile hands to its selection, from the rows themselves, in two groups."""
    rng = np.random.default_rng(8)
    values = np.concatenate([rng.normal(20, 5, 200), [27.0] * 60, [0.0, 60.0] * 20]).clip(0, 60)
    session, noise = Session(), _Scores()
    session.bind("t", pd.DataFrame({"x": [*values, np.nan]}))
    text = 'private t = bound("t") described by {x: 0.0..60.0} protecting rows budget epsilon 9\n'
    session.execute(Source("p", text))
    table = session.names()["t"]
    for part in (Fraction(1, 2), Fraction(3, 10), Fraction(1)):
        aggregate = Quantile((Column("x"),), (float(part),))
        (counts,) = session._interp.data._engine.group(table.plan, (aggregate.places(table),), (Count(),))
        mechanism: Any = aggregate.mechanism(Amount("epsilon", QUANTA), "selection", table)
        aggregate.choose(mechanism, counts, noise, table)  # type: ignore[arg-type]
        starts, c, d = intervals(0.0, 60.0, False).starts, part.numerator, part.denominator
        shift = math.ceil(2 * max(c, d - c) * math.log(len(starts)) / 2) if part == 1 else 0
        rows, expected = len(values), []
        for below, through in itertools.pairwise([*np.searchsorted(np.sort(values), starts).tolist(), rows]):
            least, most = (d * many - c * rows + shift for many in (below, through))
            expected.append(-max(0, least, -most))
        assert noise.scores == expected


class _Scores:
    """Noise that keeps what is to be chosen from."""

    def __init__(self) -> None:
        self.scores: list[int] = []

    def noisy_max(self, scores: Any, scale: float) -> int:
        self.scores = scores.tolist()
        return 0


def test_the_number_has_the_fewest_digits() -> None:
    """Against every decimal of up to six places."""
    rng = np.random.default_rng(3)
    starts = np.round(rng.normal(0, 30, 60), 4)
    ends = starts + 10.0 ** rng.uniform(-3, 2, 60)
    for a, b, number in zip(starts, ends, shortest(starts, ends), strict=True):
        places = next(p for p in range(-3, 7) if math.ceil(Fraction(a) * 10**p) < Fraction(b) * 10**p)
        digits = Fraction(str(number)) * Fraction(10) ** places
        assert a <= number < b and (digits.denominator == 1 or number == 0), (a, b, number)


@pytest.mark.slow(but=["0.0..25.0-values1-quantile(x, 0.3)-2.5"])
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
    monkeypatch.setattr(exposures, "SecureNoise", lambda: SeededNoise(7))
    session = Session()
    session.bind("t", pd.DataFrame({"x": values * 100}))
    text = f'private t = bound("t") described by {{x: {described}}} protecting rows budget epsilon 100\n'
    text += f"xs = [{{{{ select {call} from t with epsilon 1 }}}} for i in 1..20]\nrelease xs\n"
    assert session.attempt(Source("q.jst", text)).released["xs"] == pytest.approx([answer] * 20, abs=1e-12)
