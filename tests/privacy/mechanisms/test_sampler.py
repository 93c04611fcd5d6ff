"""The sampler for vectors: exact against the closed form and against OpenDP's own draws.

Tests at p = 1e-9 each: with about two dozen of them a false alarm has probability below 3e-8.
"""

import decimal
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from jostle.noise_laws import Cube
from jostle.privacy.mechanisms import noise

DRAWS = 300_000
ALARM = 1e-9


def _chi_square(seen: np.ndarray, expected: np.ndarray) -> float:
    return float(stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(expected) - 1))


def _cells(draws: np.ndarray, reach: int) -> np.ndarray:
    """Counts of −reach … reach, with both tails in the end cells."""
    return np.bincount(np.clip(draws, -reach, reach) + reach, minlength=2 * reach + 1)


def _law(scale: float, reach: int) -> np.ndarray:
    q = math.exp(-1 / scale)
    k = np.abs(np.arange(-reach, reach + 1))
    law = (1 - q) / (1 + q) * q**k
    law[[0, -1]] = q**reach / (1 + q)
    return law


@pytest.mark.parametrize("scale", [0.3, 0.5, 1.0, 3.7, 26.7, 1000.25])
def test_draws_follow_the_closed_form(scale: float) -> None:
    t, s = noise.fraction(scale)
    draws = noise.discrete_laplace(DRAWS, scale)
    width = max(1, round(scale / 8))
    binned = np.floor_divide(draws + width // 2, width)
    reach = max(1, int(5 * scale / width))
    fine = _law(t / s, (reach + 1) * width)
    k = np.arange(-(reach + 1) * width, (reach + 1) * width + 1)
    at = np.clip(np.floor_divide(k + width // 2, width), -reach, reach) + reach
    expected = np.bincount(at, weights=fine, minlength=2 * reach + 1) * DRAWS
    assert _chi_square(_cells(binned, reach), expected) > ALARM


@pytest.mark.parametrize("sigma", [0.3, 0.5, 1.0, 3.7, 26.7, 1000.25, 2.0**31.5])
def test_gaussian_draws_follow_the_closed_form(sigma: float) -> None:
    t, s = noise.fraction(sigma)
    draws, width = noise.discrete_gaussian(DRAWS, sigma), max(1, round(sigma / 8))
    edges = width * (np.arange(-40, 41) - 0.5 * (width % 2))  # between whole numbers, up to five deviations
    if sigma < 100:
        k = np.arange(-300, 301)
        law = np.exp(-k * k / (2 * (t / s) ** 2))
        below = np.array([law[k < edge].sum() for edge in edges]) / law.sum()
    else:
        below = stats.norm.cdf(edges / sigma)
    expected = np.diff([0, *below, 1]) * DRAWS
    seen = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=len(expected))
    often = expected > 10
    assert (
        seen[~often].sum() < 600
        and _chi_square(seen[often], expected[often] * seen[often].sum() / expected[often].sum()) > ALARM
    )


def test_the_chi_square_would_notice_a_deviation_that_is_two_per_cent_off() -> None:
    draws, k = noise.discrete_gaussian(DRAWS, 3.7), np.arange(-14, 15)
    law = np.exp(-k * k / (2 * (3.7 * 1.02) ** 2))
    inside = draws[np.abs(draws) <= 14]
    assert _chi_square(_cells(inside, 14), law / law.sum() * len(inside)) < ALARM


@pytest.mark.parametrize(("n", "d"), [(0, 7), (1, 7), (6, 7), (2**32, 2**33 - 1)])
def test_bernoulli_of_an_exponential_of_a_square(n: int, d: int) -> None:
    hits = int(noise._bernoulli_exp(np.full(200_000, n, dtype=np.uint64), d, squared=True).sum())
    assert stats.binomtest(hits, 200_000, math.exp(-((n / d) ** 2) / 2)).pvalue > ALARM


@pytest.mark.parametrize("number", [0, 1, 2, 5, 2**38])
def test_bernoulli_of_an_exponential_of_halves(number: int) -> None:
    hits = int(noise._bernoulli_halves(np.full(200_000, number)).sum())
    assert stats.binomtest(hits, 200_000, math.exp(-number / 2)).pvalue > ALARM


@pytest.mark.slow(but=["5.0-laplace"])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.7, 1.5, 2.0, 5.0])  # OpenDP before 0.14.2 was biased at the two in the middle
def test_draws_are_distributed_as_opendps(scale: float, kind: str) -> None:
    ours = getattr(noise, f"discrete_{kind}")(100_000, scale)
    theirs = noise._apply(getattr(noise, f"_{kind}")(scale), np.zeros(100_000, dtype=np.int64))
    reach = max(2, int(4 * scale))
    table = np.stack([_cells(ours, reach), _cells(theirs, reach)])
    assert stats.chi2_contingency(table).pvalue > ALARM


def test_the_chi_square_would_notice_a_scale_that_is_five_per_cent_off() -> None:
    draws = noise.discrete_laplace(DRAWS, 3.7)
    assert _chi_square(_cells(draws, 18), _law(3.7 * 1.05, 18) * DRAWS) < ALARM


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 2**33 - 1, 3 * 2**61])
def test_integers_below_a_bound_are_even(bound: int) -> None:
    draws = noise._below(60_000, bound)
    assert int(draws.max()) < bound
    cells = min(bound, 16)
    seen = np.bincount((draws.astype(float) / bound * cells).astype(int), minlength=cells)
    if cells > 1:
        edges = np.array([math.ceil(i * bound / cells) for i in range(cells + 1)], dtype=float)
        assert _chi_square(seen[:cells], np.diff(edges) / bound * 60_000) > ALARM


@pytest.mark.parametrize(("n", "d"), [(0, 7), (1, 7), (6, 7), (7, 7)])
def test_bernoulli_of_an_exponential(n: int, d: int) -> None:
    hits = int(noise._bernoulli_exp(np.full(200_000, n, dtype=np.uint64), d).sum())
    assert stats.binomtest(hits, 200_000, math.exp(-n / d)).pvalue > ALARM


def test_digits_are_those_of_powers() -> None:
    with decimal.localcontext(prec=150):
        for k in range(1, noise.MOST + 1):
            for bits in (noise.FIRST, 64, 128, 320):
                exact = (decimal.Decimal(-k).exp() * 2**bits).to_integral_value(decimal.ROUND_FLOOR)
                assert noise._digits(k, bits) == int(exact)


def test_successes_follow_the_closed_form() -> None:
    reach = 9
    seen = np.bincount(np.minimum(noise._geometric(DRAWS), reach), minlength=reach + 1)
    law = np.exp(-np.arange(reach + 1.0)) * (1 - math.exp(-1))
    law[-1] = math.exp(-reach)
    assert _chi_square(seen, law * DRAWS) > ALARM


@pytest.mark.parametrize("k", [1, 2, noise.MOST - 1])
@pytest.mark.parametrize(("after", "less"), [((-1,), True), ((1,), False), ((0, -1), True), ((0, 1), False)])
def test_a_word_that_is_a_power_is_settled_by_more_bits(
    monkeypatch: pytest.MonkeyPatch, k: int, after: tuple[int, ...], less: bool
) -> None:
    digits = [noise._digits(k, noise.FIRST + 64 * i) % 2**64 for i in (0, 1, 2)]
    words = iter([digits[0], *(word + more for word, more in zip(digits[1:], after, strict=False))])
    monkeypatch.setattr(noise, "_words", lambda size: np.array([next(words) for _ in range(size)], dtype=np.uint64))
    assert noise._geometric(1).tolist() == [k if less else k - 1]


def test_beyond_the_last_power_counting_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    words = iter([2**63, 0, 0, 2**32 - 1])  # two numbers each, the lower half first
    monkeypatch.setattr(noise, "_words", lambda size: np.array([next(words) for _ in range(size)], dtype=np.uint64))
    assert noise._geometric(2).tolist() == [2 * noise.MOST + noise.MOST, 0]


@pytest.mark.parametrize(
    ("gap", "scale"), [(0, 3.7), (1, 0.4), (2, 3.7), (11, 3.7), (5, 1.0), (10**12, 2.0**31), (2**62, 1.0)]
)
def test_a_candidate_is_let_through_by_what_it_lacks(gap: int, scale: float) -> None:
    through = int(noise._let_through(np.full(200_000, gap, dtype=np.uint64), scale).sum())
    assert stats.binomtest(through, 200_000, math.exp(-gap / scale)).pvalue > ALARM


@pytest.mark.slow(but=["exponential_mechanism"])
@pytest.mark.parametrize("choose", [noise.permute_and_flip, noise.exponential_mechanism])
def test_selections_follow_the_closed_form(choose: Callable[[np.ndarray, float], int]) -> None:
    """Three scores of many candidates each, the best at the end of what a score can be."""
    gaps, many, scale = np.array([0, 3, 8]), np.array([2, 60, 240]), 2.5
    scores = np.repeat(2**62 - gaps, many)
    chosen = [choose(np.append(scores, -(2**62)), scale) for _ in range(2000)]
    seen = np.bincount(np.searchsorted(np.cumsum(many), chosen, side="right"), minlength=3)
    through = np.exp(-gaps / scale)
    law = through * many / (through * many).sum()
    if choose is noise.permute_and_flip:
        law = many * through * [_one_of(through, many - np.eye(3, dtype=int)[i]) for i in range(3)]
    assert law.sum() == pytest.approx(1) and seen.sum() == 2000
    assert _chi_square(seen, law * 2000) > ALARM


def _one_of(through: np.ndarray, others: np.ndarray) -> float:
    """The chance to be taken of all that are let through: the mean of 1/(1 + their number) over the others."""
    law = np.ones(1)
    for p, many in zip(through, others, strict=True):
        law = np.convolve(law, stats.binom.pmf(np.arange(many + 1), many, p))
    return float((law / np.arange(1, len(law) + 1)).sum())


def test_many_candidates_go_through_it_and_few_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int, float]] = []
    for name in ("permute_and_flip", "exponential_mechanism"):
        chosen = lambda scores, scale, name=name: asked.append((name, scores.size, scale)) or 0  # noqa: E731
        monkeypatch.setattr(noise, name, chosen)
    for law in (noise.SecureNoise().noisy_max, noise.SecureNoise().gumbel_max):
        for size, scale in ((256, 2.0), (255, 2.0), (256, 2.0**33)):
            law(np.zeros(size, dtype=np.int64), scale)
    assert [one[:2] for one in asked] == [("permute_and_flip", 256), ("exponential_mechanism", 256)]
    assert all(scale >= 2.0 for *_, scale in asked)


@pytest.mark.parametrize("scale", [2.0**-16, 0.1, 1 / 3, 1.0, 7.0, 1e5 / 3, 2.0**32])
def test_a_scale_is_rounded_up_and_never_down(scale: float) -> None:
    t, s = noise.fraction(scale)
    assert t >= scale * s and t < 2**33
    assert scale < 1 or t / s <= scale * (1 + 2**-30)


def test_vectors_go_through_it_and_single_values_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(noise, "discrete_laplace", lambda size, scale: asked.append(size) or np.zeros(size, np.int64))
    noise.SecureNoise().laplace(np.zeros((8, 8), dtype=np.int64), 2.0)
    noise.SecureNoise().laplace(np.zeros(1, dtype=np.int64), 2.0)
    assert asked == [64]


@pytest.mark.parametrize(("many", "scale"), [(1, 3.7), (2, 0.7), (2, 5.0), (5, 26.7)])
def test_draws_in_a_cube_follow_their_law(many: int, scale: float) -> None:
    """max |z| is r with P ∝ ((2r + 1)^d − (2r − 1)^d)·exp(−r/scale); and all points of a shell are as probable."""
    draws = np.array([noise.in_cube(many, scale) for _ in range(20_000)])
    far = np.abs(draws).max(axis=1)
    r = np.arange(int(60 * scale + 30) * many)
    law = ((2.0 * r + 1) ** many - np.where(r, 2.0 * r - 1, 0) ** many) * np.exp(-r / scale)
    reach = int((law / law.sum()).cumsum().searchsorted(0.98))
    width = max(1, reach // 10)
    expected = np.bincount(np.minimum(r, reach) // width, weights=law / law.sum()) * len(far)
    assert _chi_square(np.bincount(np.minimum(far, reach) // width, minlength=len(expected)), expected) > ALARM
    for one in draws.T:
        assert stats.binomtest(int((one > 0).sum()), int((one != 0).sum())).pvalue > ALARM
        deviation = Cube(scale, 0, many).deviation
        if scale > 3:
            assert abs(one.std() / deviation - 1) < 0.08  # nine deviations
            assert abs((np.abs(one) <= Cube(scale, 0, many).half_width()).mean() - 0.95) < 0.02
    shell = draws[far == 1]
    if many == 2 and scale < 1:
        points = np.unique(shell, axis=0, return_counts=True)[1]
        assert len(points) == 8 and _chi_square(points, np.full(8, points.sum() / 8)) > ALARM


def test_a_scale_of_a_small_epsilon_is_drawn_in_a_cube() -> None:
    """2^40 steps, which Laplace noise of vectors does not take: half sides are a sum of 51 exponentials, ± 14 %."""
    draws = noise.in_cube(50, 2.0**40)
    assert 20 * 2.0**40 < np.abs(draws).max() < 120 * 2.0**40


def test_noise_in_a_cube_covers_what_a_row_moves() -> None:
    """Each of three sums moves by 1 at most, of persons with two rows by 2; the scale is that over epsilon."""
    from jostle.noise_laws import Laplace
    from jostle.privacy.mechanisms.additive import InCube

    cube = InCube(Laplace, 0.5, 2.0**30, 2.0**30, 30, 3)
    assert cube.scale == 2.0**31 and cube.law == Cube(2.0, 2.0**-30, 3)
    with pytest.raises(TypeError, match="at once"):
        cube.release(np.zeros(2, dtype=np.int64), noise.SecureNoise())
