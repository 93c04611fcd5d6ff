"""Simulated rows of numbers to train choices on: seeded draws of points within [−1, 1] from many kinds of shapes.

Real columns of numbers hold groups (few or many, even or not, round or long), skewed amounts, curves, planes and
leftovers between them; their described bounds are often far wider than where rows lie, and many are whole numbers. A
draw takes a kind at random, and then some of these habits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jostle.kernels.arrays import Floats

Rng = np.random.Generator

FEWEST, MOST = 300, 30_000
"""Rows, drawn evenly on the log scale."""
TEST = 2000
"""Further rows of the same law, to judge by."""
WIDEST = 12
"""Columns at most; half of the draws have two to four."""


def simulated_points(seed: int, number: int) -> dict[str, object]:
    """Points `number` of a seed: `rows` (n, d) and `test` (`TEST`, d) of the same law, and `groups`, a number to ask
    for, from 2 to 20."""
    rng = np.random.default_rng([int(seed), int(number)])
    n = int(np.exp(rng.uniform(np.log(FEWEST), np.log(MOST))))
    d = int(rng.integers(2, 5)) if rng.random() < 0.5 else int(rng.integers(1, WIDEST + 1))
    points = _KINDS[int(rng.integers(len(_KINDS)))](n + TEST, d, rng)
    points = _habits(points, rng)
    groups = int(np.rint(np.exp(rng.uniform(np.log(2), np.log(20)))))
    return {"rows": points[:n], "test": points[n:], "groups": groups}


# Kinds -------------------------------------------------------------------------------------------


def _groups(n: int, d: int, rng: Rng) -> Floats:
    """Groups of shapes of their own: like a mixture of Gaussians, or with edges, or with tails."""
    many = int(np.rint(np.exp(rng.uniform(0, np.log(40)))))
    shares = rng.dirichlet(np.full(many, 3.0)) if rng.random() < 0.5 else _zipf(many, rng.uniform(0.5, 1.5))
    of = rng.choice(many, n, p=shares)
    middles = rng.normal(size=(many, d)) * np.exp(rng.uniform(np.log(0.5), np.log(6)))
    widths, uneven = np.exp(rng.normal(0, rng.uniform(0, 1), many)), rng.uniform(0, 1)
    noise = _noise(n, d, rng)
    if rng.random() < 0.5:
        return np.asarray(middles[of] + widths[of, None] * noise)
    shapes = np.stack([_turn(d, rng) * np.exp(rng.normal(0, uneven, d)) for _ in range(many)])
    points: Floats = middles[of] + widths[of, None] * np.einsum("nij,nj->ni", shapes[of], noise)
    return points


def _factors(n: int, d: int, rng: Rng) -> Floats:
    """Columns that go together: few hidden numbers, a map, and noise."""
    inner = int(rng.integers(1, d + 1))
    hidden, turn = _noise(n, inner, rng), rng.normal(size=(inner, d))
    return np.asarray(hidden @ turn + rng.uniform(0.05, 1) * rng.normal(size=(n, d)))


def _amounts(n: int, d: int, rng: Rng) -> Floats:
    """Skewed amounts: log-normal, of columns that go together."""
    points = np.exp(rng.uniform(0.3, 1.5) * _factors(n, d, rng) / np.sqrt(d))
    return np.asarray(np.minimum(points, np.quantile(points, 0.999)))


def _curve(n: int, d: int, rng: Rng) -> Floats:
    """Along a closed curve, with noise."""
    turns = rng.normal(size=(3, 2, d)) / np.arange(1, 4)[:, None, None]
    at = 2 * np.pi * rng.random(n)[:, None] * np.arange(1, 4)
    points: Floats = np.einsum("nk,kd->nd", np.cos(at), turns[:, 0]) + np.einsum("nk,kd->nd", np.sin(at), turns[:, 1])
    return points + rng.uniform(0.01, 0.4) * rng.normal(size=(n, d))


def _places(n: int, d: int, rng: Rng) -> Floats:
    """Towns: many tight groups about fewer regions, of sizes that fall as a power, and rows anywhere."""
    many = int(rng.integers(10, 80))
    regions = rng.uniform(-1, 1, size=(max(2, many // 8), d))
    towns = regions[rng.integers(len(regions), size=many)] + 0.2 * rng.normal(size=(many, d))
    of = rng.choice(many, n, p=_zipf(many, rng.uniform(0.6, 1.4)))
    points = towns[of] + np.exp(rng.uniform(np.log(0.01), np.log(0.15))) * rng.normal(size=(n, d))
    anywhere = rng.random(n) < rng.uniform(0, 0.3)
    return np.where(anywhere[:, None], rng.uniform(-1.2, 1.2, size=(n, d)), points)


_KINDS: tuple[Callable[[int, int, Rng], Floats], ...] = (_groups, _groups, _factors, _amounts, _curve, _places)


# Parts -------------------------------------------------------------------------------------------


def _zipf(many: int, power: float) -> Floats:
    shares = np.arange(1, many + 1) ** -power
    return np.asarray(shares / shares.sum())


def _noise(n: int, d: int, rng: Rng) -> Floats:
    """Normal, uniform, or with tails."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.uniform(-1.7, 1.7, size=(n, d))
    return np.asarray(rng.standard_t(4, size=(n, d)) / np.sqrt(2) if kind == 1 else rng.normal(size=(n, d)))


def _turn(d: int, rng: Rng) -> Floats:
    return np.asarray(np.linalg.qr(rng.normal(size=(d, d)))[0])


def _habits(points: Floats, rng: Rng) -> Floats:
    """Brings points within [−1, 1] as described bounds would: tightly, or with room; some are rounded."""
    low, high = points.min(axis=0), points.max(axis=0)
    wide = np.maximum(high - low, 1e-9)
    room = np.exp(rng.uniform(0, np.log(8))) if rng.random() < 0.4 else rng.uniform(1, 1.3)
    part = np.minimum(1.0, room ** -rng.uniform(0.5, 1, size=points.shape[1]))
    start = rng.uniform(-1, 1 - 2 * part) if rng.random() < 0.7 else np.full(len(part), -1.0)
    points = np.asarray(start + 2 * part * (points - low) / wide)
    if rng.random() < 0.3:
        steps = float(np.rint(np.exp(rng.uniform(np.log(8), np.log(200)))))
        points = np.asarray(np.rint((points + 1) / 2 * steps) / steps * 2 - 1)
    return np.asarray(np.clip(points, -1.0, 1.0))
