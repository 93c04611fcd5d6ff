"""The partition walk against brute force: the score's sensitivity, exact privacy losses, and two broken walks.

Losses are computed from the tails of the discrete Laplace law, written here again from its definition.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from jostle.diagnostics import Refusal
from jostle.privacy.mechanisms import least_cost
from jostle.privacy.mechanisms.least_cost import GRID, constants, loss_bound, walk

LN2 = math.log(2)


def score(values):
    """min over c of Σ|x − c|, by trying every c that could be best."""
    return min(sum(abs(x - c) for x in values) for c in values)


def log_tails(u, theta, scale):
    """(log P(split), log P(stop)) where u, theta and scale are in rows; sums of the geometric tails."""
    q, t = math.exp(-GRID / scale), round((u - theta) / GRID)
    log_small = (t if t >= 0 else 1 - t) * (-GRID / scale) - math.log1p(q)
    log_large = math.log1p(-math.exp(log_small))
    return (log_large, log_small) if t >= 0 else (log_small, log_large)


def path_loss(path, other, scale, delta, theta, absolute=False):
    """The worst log ratio of outcomes that stop anywhere along one path of scores, or its sum of absolute values."""
    worst = total = 0.0
    for depth, (s, t) in enumerate(zip(path, other, strict=True)):
        here, there = (log_tails(max(theta - delta, v - depth * delta), theta, scale) for v in (s, t))
        gaps = [a - b for a, b in zip(here, there, strict=True)]
        if absolute:
            gaps = [abs(gap) for gap in gaps]
        worst = max(worst, abs(total + gaps[1]))
        total += gaps[0]
        worst = max(worst, abs(total))
    return worst


def rounded(scale, decay):
    return math.ceil(decay * scale / GRID) * GRID


def constructed_paths(delta, theta, levels=24):
    """Pairs of falling paths at most 1 apart: constant, falling with δ, and changing sides half way."""
    tops = sorted({max(0, round(theta + k * delta / 4)) for k in range(-4, 60)} | set(range(12)))
    for top, length in itertools.product(tops, (1, 2, 3, 6, levels)):
        flat = [top] * length
        yield flat, [top + 1] * length
        if top:
            for cut in {0, 1, length // 2}:
                yield flat, flat[:cut] + [top - 1] * (length - cut)
                yield flat, [top + 1] * cut + [top - 1] * (length - cut)
        falling = [max(0, round(top - k * delta / 3)) for k in range(length)]
        yield falling, [s + 1 for s in falling]


def worst_over_paths(scale, delta, theta):
    return max(path_loss(a, b, scale, delta, theta, absolute=True) for a, b in constructed_paths(delta, theta))


@pytest.mark.parametrize("epsilon", [0.02, 0.3, 1.0, 2.5])
@pytest.mark.parametrize("theta_share", [0.0, 1.0, 5.0])
def test_no_constructed_path_loses_more_than_epsilon(epsilon, theta_share):
    made = constants(epsilon)
    scale, delta = made.scale * GRID, made.decay * GRID
    theta = round(theta_share * made.scale) * GRID
    assert worst_over_paths(scale, delta, theta) <= epsilon * (1 + 1e-6)


def test_the_bound_is_nearly_reached():
    made = constants(0.02)
    worst = worst_over_paths(made.scale * GRID, made.decay * GRID, round(5 * made.scale) * GRID)
    assert worst > 0.95 * 0.02


@pytest.mark.parametrize("epsilon", [0.02, 0.3, 1.0])
def test_broken_constants_are_caught(epsilon):
    scale = constants(epsilon).scale * GRID
    theta = round(5 * scale)
    assert worst_over_paths(scale, 0.0, theta) > 1.5 * epsilon
    assert worst_over_paths(1 / epsilon, rounded(1 / epsilon, LN2), theta) > 1.5 * epsilon


def blocks_of(shape):
    """The asked tree as nested (flat cells, children), read off the order and the levels of its places."""
    order, levels = least_cost.halving_tree(shape)

    def grow(low, high, depth):
        edges = [low, *(at for at in range(low + 1, high) if levels[at] == depth), high]
        children = [grow(*pair, depth + 1) for pair in itertools.pairwise(edges)] if high - low > 1 else []
        return [int(cell) for cell in order[low:high]], children

    return grow(0, len(order), 0)


def vector_loss(x, y, shape, made, theta, public, score=score):
    """The worst log ratio over every partition, for two vectors that differ in one cell."""
    changed = int(np.flatnonzero(x != y)[0])
    held, children = blocks_of(shape)
    first, second, depth = [], [], 0
    while len(held) > 1:
        if depth >= public:
            first.append(score(x[held]))
            second.append(score(y[held]))
        depth += 1
        held, children = next(child for child in children if changed in child[0])
    return path_loss(first, second, made.scale * GRID, made.decay * GRID, theta)


def test_exact_losses_of_neighbouring_vectors():
    rng = np.random.default_rng(5)
    for shape, public in (((4,), 0), ((5,), 1), ((8,), 0), ((16,), 3), ((4, 4), 0), ((3, 5), 1)):
        n = math.prod(shape)
        for trial in range(60):
            epsilon = float(rng.choice([0.1, 1.0, 3.0]))
            made = constants(epsilon)
            theta = round(float(rng.choice([0.0, 1.0])) * made.scale) * GRID
            x = rng.integers(0, int(rng.choice([2, 5, 60])), n)
            y = x.copy()
            y[trial % n] += 1
            assert vector_loss(x, y, shape, made, theta, public) <= epsilon * (1 + 1e-6)
            assert vector_loss(x, y, shape, made, theta, public, score=sum) <= epsilon * (1 + 1e-6)


def test_score_moves_by_one_and_never_grows_to_a_part():
    for x in itertools.product(range(4), repeat=4):
        whole = score(x)
        assert all(score(part) <= whole for part in (x[:2], x[2:], x[:1], x[1:3]))
        for i in range(4):
            assert abs(score((*x[:i], x[i] + 1, *x[i + 1 :])) - whole) <= 1


def test_deviations_are_the_scores():
    rng = np.random.default_rng(0)
    sizes = rng.integers(0, 9, 200)
    values = rng.integers(0, 9, int(sizes.sum()))
    blocks = np.split(values, np.cumsum(sizes)[:-1])
    assert least_cost.deviations(values, sizes).tolist() == [score(block) if len(block) else 0 for block in blocks]


def test_the_walk_follows_the_exact_law():
    """Frequencies of every partition of four cells against the product of the decisions' probabilities."""
    rng, x, epsilon, runs = np.random.default_rng(1), np.array([0, 3, 1, 1]), 1.5, 12000
    made = constants(epsilon)

    def draw(scale, size):
        p = -math.expm1(-1 / scale)
        return rng.geometric(p, size) - rng.geometric(p, size)

    seen: dict[tuple[int, ...], int] = {}
    for _ in range(runs):
        labels = tuple(walk(x, epsilon, draw, public_splits=0).tolist())
        seen[labels] = seen.get(labels, 0) + 1

    def probability(cells, depth):
        u = max(-made.decay * GRID, score(x[cells]) - depth * made.decay * GRID)
        split, _ = log_tails(u, 0.0, made.scale * GRID)
        return math.exp(split)

    top, left, right = probability([0, 1, 2, 3], 0), probability([0, 1], 1), probability([2, 3], 1)
    expected = {
        (0, 0, 0, 0): 1 - top,
        (0, 0, 1, 1): top * (1 - left) * (1 - right),
        (0, 1, 2, 2): top * left * (1 - right),
        (0, 0, 1, 2): top * (1 - left) * right,
        (0, 1, 2, 3): top * left * right,
    }
    assert set(seen) == set(expected)
    for labels, p in expected.items():
        assert abs(seen[labels] / runs - p) < 5.5 * math.sqrt(p * (1 - p) / runs)


def silent(scale, size):
    return np.zeros(size, dtype=np.int64)


def test_without_noise_the_blocks_are_those_that_differ():
    x = np.zeros(16, dtype=np.int64)
    x[5] = 10**6
    assert walk(x, 1.0, silent, public_splits=0).tolist() == [0] * 4 + [1, 2, 3, 3] + [4] * 8
    assert walk(x, 1.0, silent, public_splits=2).tolist() == [0] * 4 + [1, 2, 3, 3] + [4] * 4 + [5] * 4
    assert walk(x, 1.0, silent, theta=1e9).tolist() == np.repeat(np.arange(8), 2).tolist()


def test_counts_split_where_rows_are():
    """Even cells stay together for the deviation, and are split for the count as long as they hold rows."""
    x = np.repeat([0, 50], 8)
    assert len(set(walk(x, 1.0, silent, public_splits=1).tolist())) == 2
    assert walk(x, 1.0, silent, public_splits=0, by="count").tolist() == [0] * 8 + list(range(1, 9))
    assert walk(np.array([900, 0, 0, 0]), 1.0, silent, public_splits=0, by="count").tolist() == [0, 1, 2, 2]


def test_two_axes_are_halved_together():
    x = np.zeros((8, 8), dtype=np.int64)
    x[1, 6] = 10**6
    labels = walk(x, 1.0, silent, public_splits=0)
    assert labels.shape == (8, 8) and labels.max() + 1 == 10
    assert len(np.unique(labels[:2, 6:])) == 4 and len(np.unique(labels[4:, :4])) == 1


@pytest.mark.parametrize("shape", [(1,), (2,), (5,), (1000,), (1025,), (1, 1), (3, 50), (17, 9), (2, 3, 4)])
def test_any_shape_gives_a_partition_with_one_draw_a_level(shape):
    rng, asked = np.random.default_rng(3), []

    def draw(scale, size):
        asked.append(size)
        return np.rint(rng.laplace(0, scale, size)).astype(np.int64)

    x = rng.integers(0, 200, shape)
    labels = walk(x, 0.5, draw)
    assert labels.shape == shape
    assert sorted(set(labels.ravel().tolist())) == list(range(int(labels.max()) + 1))
    assert len(asked) <= max(n - 1 for n in shape).bit_length() + 1 and all(asked)
    if len(shape) == 1:
        assert (np.diff(labels) >= 0).all() and (np.diff(labels) <= 1).all()


def test_the_walk_depends_on_nothing_but_counts_and_noise():
    x = np.arange(300) % 7
    runs = []
    for _ in range(2):
        rng = np.random.default_rng(9)
        noise = lambda scale, size, rng=rng: np.rint(rng.laplace(0, scale, size)).astype(np.int64)  # noqa: E731
        runs.append(walk(x, 0.3, noise).tolist())
    assert runs[0] == runs[1]


def test_constants_are_the_root_and_round_upwards():
    for epsilon in (1e-6, 0.025, 0.1, 1.0, 10.0, 1000.0):
        for decay in (0.25, LN2, 1.5):
            made = constants(epsilon, decay)
            assert loss_bound(made.scale * GRID, decay) <= epsilon
            assert loss_bound(made.scale * GRID * 0.999, decay) > epsilon
            assert made.decay >= decay * made.scale
    assert constants(1e-4).scale * GRID * 1e-4 == pytest.approx(2.607, abs=1e-3)


def test_an_amount_below_exact_integers_is_refused():
    with pytest.raises(Refusal) as refused:
        constants(1e-11)
    assert refused.value.first.kind == "BadAmount"


def test_huge_counts_do_not_overflow():
    x = np.array([2**61, 0, 0, 2**61, 5, 5, 5, 5])
    assert walk(x, 1e-8, silent, public_splits=0).tolist() == [0, 1, 2, 3, 4, 4, 4, 4]
