"""Public shapes made by formulas and seeded chance, to train choices on beside DPBench's.

`plain` are those that any study has (hills, steps, powers, points, walks). `tabular` are of the kind that columns of
tables have: one usual value, round numbers, long tails, in two dimensions therefore lines along an axis. The second
kind was added after looking at which of DPBench's sets the first did not prepare for (docs/experiments/choice.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def made(dimension: int, shape: tuple[int, ...] | None = None) -> dict[str, NDArray[np.int64]]:
    """All of them, of a million rows: 1024 cells or 64×64, or as many along every axis as `shape` says."""
    if dimension == 1:
        n = shape[0] if shape else 1024
        shapes = plain_1d(n) | tabular_1d(n)
    else:
        n = shape[0] if shape else 64
        shapes = plain_2d(n) | tabular_2d(n)
    return {f"made {name}": np.rint(1e6 * p / p.sum()).astype(np.int64) for name, p in shapes.items()}


def _bell(x: Floats, at: float, wide: float) -> Floats:
    return np.asarray(np.exp(-(((x - at) / wide) ** 2) / 2))


def plain_1d(n: int = 1024) -> dict[str, Floats]:
    i = np.arange(n)
    x, draw = i * (1024 / n), np.random.default_rng(5)
    points, sparse, island = np.zeros(n), np.zeros(n), (x > 100) & (x < 180)
    permuted = draw.permutation(1 / (1.0 + i))
    points[draw.choice(n, 20, False)] = draw.dirichlet(np.full(20, 0.7))
    sparse[draw.choice(n, 150, False)] = draw.pareto(1.0, 150) + 0.05
    uneven = draw.dirichlet(np.full(n, 0.1))
    cuts = np.sort(draw.choice(n, 24, False))
    heaps = np.exp(-x / 250) * (x > 60) * np.where(i % 10 == 0, 6, 1) * np.where(i % 50 == 0, 4, 1)
    spike = _bell(x, 200, 10) * draw.gamma(1, 1, n)
    spike[700 * n // 1024] = spike.sum() * 0.4
    return {
        "bell": _bell(x, 300, 120), "two": _bell(x, 150, 25) + _bell(x, 700, 150) / 2, "tail": np.exp(-x / 80),
        "even": np.ones(n), "comb": np.where(i % 16 == 3, 1, 0.01), "step": np.where(x < 250, 5.0, 1.0),
        "zipf": 1 / (1 + x), "permuted": permuted, "gamma": x * np.exp(-x / 130), "points": points, "sparse": sparse,
        "uneven": uneven, "blocks": draw.pareto(1.2, 25)[np.searchsorted(cuts, i, side="right")], "heaps": heaps,
        "rough": _bell(x, 500, 250) * draw.gamma(3, 1, n), "walk": np.exp(np.cumsum(draw.normal(0, 0.15, n))),
        "spike": spike, "island": island * draw.gamma(0.4, 1, n),
    }  # fmt: skip


def tabular_1d(n: int = 1024) -> dict[str, Floats]:
    i, draw = np.arange(n), np.random.default_rng(12)
    x = i / n

    def lognormal(middle: float, wide: float) -> Floats:
        return _bell(np.log1p(i), float(np.log1p(middle * n)), wide) / (1 + i)

    gains, degrees = np.zeros(n), np.zeros(n)
    gains[0] = 0.93
    gains[draw.choice(np.arange(1, n // 3), 60, False)] = 0.07 * draw.dirichlet(np.full(60, 0.3))
    degrees[:40], degrees[40:90:3] = (1.0 + np.arange(40)) ** -1.5, 0.0005
    overtime = np.exp(-x / 0.02) * draw.gamma(1, 1, n) * (x < 0.25)
    overtime[0] += overtime.sum()
    prices = lognormal(0.05, 0.9) * np.where(i % 25 == 0, 20.2, 0.2)
    return {
        "salary": lognormal(0.12, 0.5) * np.where(i % 10 == 0, 5, 1) * draw.gamma(3, 1, n) * (x < 0.6),
        "gains": gains, "degrees": degrees, "overtime": overtime, "prices": prices,
        "ages": np.interp(x, [0, 0.2, 0.25, 0.6, 0.9, 1], [0, 0, 1, 0.9, 0.2, 0]) * draw.gamma(30, 1, n),
        "hours": 0.02 * _bell(x, 0.4, 0.1) + 30 * (i == int(0.4 * n)) + 1.0 * ((i % 51 == 0) & (x < 0.8)),
        "skew": lognormal(0.02, 0.6) * draw.gamma(0.8, 1, n) * (x < 0.15),
    }  # fmt: skip


def plain_2d(n: int = 64) -> dict[str, Floats]:
    y, x = np.mgrid[:n, :n] * (64 / n)
    draw = np.random.default_rng(6)

    def hill(a: float, b: float, wide: float, high: float) -> Floats:
        return _bell(x, a, wide) * _bell(y, b, high)

    hills = sum(draw.random() * hill(*(64 * draw.random(2)), *(1 + 4 * draw.random(2))) for _ in range(25))
    points = np.zeros(n * n)
    points[draw.choice(n * n, 60, False)] = draw.pareto(1, 60) + 0.1
    cities = sum(hill(*draw.normal(32, 10, 2), 0.7, 0.7) * draw.pareto(1.1) for _ in range(120))
    cascade = np.ones((1, 1))
    while len(cascade) < n:
        cascade = np.kron(cascade, np.ones((2, 2))) * draw.gamma(1, 1, (2 * len(cascade),) * 2)
    roads, along = np.zeros((n, n)), np.arange(n)
    for _ in range(14):
        roads[along, (draw.integers(n) + draw.normal(0, 0.6) * along).astype(int) % n] += draw.random()
    return {
        "hill": hill(20, 36, 12, 6), "hills": np.asarray(hills), "even": np.ones((n, n)),
        "corner": 1 / (1 + x + y) ** 2,
        "ridge": hill(24, 40, 14, 0.8) + 0.05 * hill(28, 20, 18, 12), "points": points.reshape(n, n),
        "step": np.where((x < 32) & (y > 16), 1, 0.1), "diagonal": np.exp(-np.abs(x - y) / 2),
        "uneven": draw.dirichlet(np.full(n * n, 0.05)).reshape(n, n), "cities": np.asarray(cities), "cascade": cascade,
        "roads": roads,
    }  # fmt: skip


def tabular_2d(n: int = 64) -> dict[str, Floats]:
    i, draw = np.arange(n), np.random.default_rng(8)
    usual = np.exp(-(((np.log1p(i) - 2.7) / 0.7) ** 2) / 2)
    zero = np.outer(usual * draw.gamma(2, 1, n), np.r_[0.9, 0.1 / i[1:] / (1 / i[1:]).sum()])
    gains = np.outer(*(np.r_[p, (1 - p) * draw.dirichlet(np.full(n - 1, 0.15))] for p in (0.92, 0.95)))
    gains[1:, 1:] *= 0.05
    flags, cross, grades = np.zeros((n, n)), np.full((n, n), 1e-5), np.zeros((n, n))
    bell = _bell(i, 25, 6.4) * np.where(i % 5 == 0, 4, 1)
    flags[:, 0], flags[:, 1], flags[:, 5] = bell * 0.7, bell * 0.2, np.roll(bell, 8) * 0.1
    cross[:, 0] += usual
    cross[10, :] += usual * 0.4
    for middle in (8, 14, 22, 31, 40):
        grades[:, 0] += draw.random() * _bell(i, middle, 0.85)
    grades[:, 1:] = np.outer(grades[:, 0], draw.dirichlet(np.full(n - 1, 0.1))) * 0.03
    return {
        "zero": zero, "gains": gains, "flags": flags, "cross": cross, "grades": grades,
        "steep": np.outer(np.where(i % 5 == 0, 3, 1) * np.exp(-i / 30), np.exp(-i / 0.6)),
        "row": zero.T * draw.gamma(1, 1, (n, n)),
    }  # fmt: skip
