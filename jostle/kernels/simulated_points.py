"""Simulated histograms and rows of numbers to train choices on: seeded draws from many kinds of shapes.

Real columns differ in where their rows lie (hills, long tails, plateaus, walks) and in the steps of their values.
They differ in how many rows there are, and in what people and machines do to numbers: a usual value, round numbers,
bounds wider than the values. A line is a kind drawn at random, and then all of this, as often as in 46 columns of
public tables (docs/experiments/choice.md). In two and more dimensions kinds are drawn along the axes, which speak
together or apart, or are of the plane: hills that lean, blocks, points, lines, cascades. Rows of numbers, within [−1,
1], hold groups (few or many, even or not, round or long), skewed amounts, curves, planes and leftovers between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from jostle.kernels.arrays import Floats

Rng = np.random.Generator

ROWS = 10**6
"""Of a simulated histogram: as many as resolve a shape; a training takes as many of it as it needs."""


def simulated_cells(shape: Sequence[float], seed: int, number: int) -> NDArray[np.int64]:
    """Counts of histogram `number` of a seed: about a million rows over `shape` cells, two or more along each axis."""
    sides = tuple(int(n) for n in shape)
    rng = np.random.default_rng([seed, number, *sides])
    density = _line(sides[0], rng) if len(sides) == 1 else _space(sides, rng)
    cells: NDArray[np.int64] = np.rint(ROWS * density / density.sum()).astype(np.int64)
    return cells


# Along a line ------------------------------------------------------------------------------------


def _line(n: int, rng: Rng) -> Floats:
    """A column in `n` cells, as tables have them: its values stand on a lattice of their own, which is finer or coarser
    than the cells, and so many rows of it are there."""
    steps = int(_log_uniform(24, 3000, rng)) if rng.random() < 0.7 else max(n, 500)
    density = _habits(_LINES[int(rng.integers(len(_LINES)))](steps, rng), rng)
    rows = rng.multinomial(int(_log_uniform(300, 60_000, rng)), density)
    used = np.flatnonzero(rows)
    low, high = (used[0], used[-1] + 1) if rng.random() < 0.5 else (0, steps)
    wide, start = n, 0
    if rng.random() < 0.1:  # bounds that are wider than where rows lie
        wide = max(1, int(n * rng.uniform(0.3, 0.9)))
        start = 0 if rng.random() < 0.5 else int(rng.integers(n - wide + 1))
    cells = start + np.arange(high - low) * wide // (high - low)
    line: Floats = np.bincount(cells, weights=rows[low:high], minlength=n) / rows.sum()
    return line


def _log_uniform(low: float, high: float, rng: Rng) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _bell(x: Floats, at: float, wide: float) -> Floats:
    bell: Floats = np.exp(-(((x - at) / wide) ** 2) / 2)
    return bell


def _hills(n: int, rng: Rng) -> Floats:
    x = np.arange(n) / n
    many = rng.integers(1, 5)
    hills = [rng.pareto(1.5) * _bell(x, rng.uniform(0.1, 0.9), _log_uniform(0.04, 0.3, rng)) for _ in range(many)]
    total: Floats = np.sum(hills, axis=0) + 1e-9
    return total


def _tail(n: int, rng: Rng) -> Floats:
    """Exponential, by a power, or log-normal; sometimes towards the other end."""
    i = np.arange(n)
    kind = rng.integers(3)
    if kind == 0:
        tail = np.exp(-i / (n * _log_uniform(0.06, 1, rng)))
    elif kind == 1:
        tail = (1 + i / n * _log_uniform(3, 30, rng)) ** -rng.uniform(0.7, 2.5)
    else:
        tail = _bell(np.log1p(i), np.log1p(n * _log_uniform(0.08, 0.6, rng)), rng.uniform(0.3, 1)) / (1 + i)
    return (tail if rng.random() < 0.8 else tail[::-1]) + 1e-12


def _plain(n: int, rng: Rng) -> Floats:
    """Even, or a slope."""
    return 1 + rng.uniform(-1, 1) * np.linspace(-1, 1, n) * (rng.random() < 0.5)


def _steps(n: int, rng: Rng) -> Floats:
    many = int(min(n, _log_uniform(2, 60, rng)))
    cuts = np.sort(rng.choice(n, many - 1, replace=False)) if many > 1 else np.array([], dtype=int)
    heights = rng.pareto(rng.uniform(0.7, 2.5), many) + 1e-3
    steps: Floats = heights[np.searchsorted(cuts, np.arange(n), side="right")]
    return steps


def _walk(n: int, rng: Rng) -> Floats:
    walk: Floats = np.exp(np.cumsum(rng.normal(0, _log_uniform(0.02, 0.5, rng), n)))
    return walk


_LINES: tuple[Callable[[int, Rng], Floats], ...] = (
    *(_hills,) * 6, *(_tail,) * 4, *(_plain,) * 2, _steps, *(_walk,) * 3,
)  # fmt: skip
"""The kinds, as often as columns of public tables are like them."""


# What people and machines do to numbers -------------------------------------------------------------


def _habits(density: Floats, rng: Rng) -> Floats:
    """Round numbers and a usual value, each now and then; the shares of the values, (n,), of what is in proportion."""
    n = len(density)
    if rng.random() < 0.25:
        every = int(rng.integers(2, 13))
        density = density * np.where(np.arange(n) % every == rng.integers(every), _log_uniform(1.5, 8, rng), 1)
    density = density / density.sum()
    if rng.random() < 0.15:
        usual = 0 if rng.random() < 0.6 else int(rng.integers(n))
        share = rng.uniform(0.03, 0.5)
        density = (1 - share) * density
        density[usual] += share
    return density


def _reciprocal(shape: float) -> tuple[float, float]:
    """The parameters of a gamma law of mean 1."""
    return shape, 1 / shape


# Along many lines at once ------------------------------------------------------------------------


@cache
def example_cubes(many: int, sides: tuple[int, ...]) -> Floats:
    """The shares of the cells of so many cubes, (many, cells): sums of products of lines in a plane."""
    if len(sides) == 1:
        return example_lines(many, sides[0], 1)
    rng, cubes = np.random.default_rng(2), np.zeros((many, 1))
    for present in (1.0, 0.45, 0.45):
        product = rng.pareto(1.2, (many, 1)) * (rng.random((many, 1)) < present) + 1e-3
        for side in sides:
            lines = example_lines(many, side, int(rng.integers(2**31)))
            product = (product[:, :, None] * lines[:, None]).reshape(many, -1)
        cubes = cubes + product
    return np.asarray(cubes / cubes.sum(axis=1, keepdims=True))


def example_lines(many: int, cells: int, seed: int) -> Floats:
    """The shares of the cells of so many columns, (many, cells): coarse shapes, to be weighed by noisy counts.

    Up to three hills that lean, an exponential tail, one by a power or a slope; rough as gamma laws are, and with a
    usual value now and then. Settled on the spread of 1,755 columns of public tables
    (docs/experiments/best_histogram.md).
    """
    rng = np.random.default_rng(seed)
    x = (np.arange(cells) + 0.5) / cells

    def between(low: float, high: float) -> Floats:
        return np.exp(rng.uniform(np.log(low), np.log(high), (many, 1)))

    def chance(share: float) -> NDArray[np.bool_]:
        return rng.random((many, 1)) < share

    def in_shares(lines: Floats) -> Floats:
        return np.asarray(lines / lines.sum(axis=1, keepdims=True))

    hills = np.zeros((many, cells))
    for present in (1.0, 0.35, 0.35):
        share = rng.pareto(1.2, (many, 1)) * chance(present) + 1e-3
        away = (x - rng.beta(1.3, 1.9, (many, 1))) / between(0.03, 0.4)
        above = np.where(chance(0.5), between(1, 6), 1)
        hills += share * in_shares(np.exp(-(np.where(away > 0, away / above, away) ** 2) / 2))
    tails = in_shares(np.exp(-x / between(0.03, 1.5)))
    powers = in_shares((1 + x / between(0.01, 0.3)) ** -rng.uniform(0.8, 3, (many, 1)))
    slopes = in_shares(1 + rng.uniform(-1, 1, (many, 1)) * chance(0.5) * (2 * x - 1))
    kind = rng.random((many, 1))
    lines = np.where(kind < 0.5, in_shares(hills), np.where(kind < 0.68, tails, np.where(kind < 0.85, powers, slopes)))
    lines = np.where(chance(0.12), lines[:, ::-1], lines)
    rough = rng.gamma(1 / between(0.01, 1), 1, (many, cells))
    lines = in_shares(lines * np.where(chance(0.7), rough / rough.mean(axis=1, keepdims=True), 1) + 1e-12)
    usual = rng.uniform(0.03, 0.9, (many, 1)) * chance(0.2)
    places = np.where(chance(0.6), 0, rng.integers(0, cells, (many, 1)))
    return np.asarray((1 - usual) * lines + usual * (np.arange(cells) == places))


# In two dimensions and more -------------------------------------------------------------------------


def _space(shape: tuple[int, ...], rng: Rng) -> Floats:
    density = _SPACES[int(rng.integers(len(_SPACES)))](shape, rng)
    if rng.random() < 0.4:
        density = density * rng.gamma(*_reciprocal(_log_uniform(0.2, 10, rng)), shape)
    if rng.random() < 0.15:
        density = density * (rng.random(shape) < rng.uniform(0.1, 0.7))
    return density if density.sum() > 0 else np.ones(shape)


def _apart(shape: tuple[int, ...], rng: Rng) -> Floats:
    """Two columns that know nothing of each other; sometimes a mixture of two such tables."""
    density = np.zeros(shape)
    for _ in range(1 if rng.random() < 0.5 else 2):
        product: Floats = np.ones(())
        for n in shape:
            product = np.multiply.outer(product, _line(n, rng))
        density = density + rng.pareto(1.5) * product / product.sum() + 1e-15
    return density


def _leaning(shape: tuple[int, ...], rng: Rng) -> Floats:
    """Hills whose axes lean: columns that rise or fall together; from one to forty of them."""
    x = np.stack(np.meshgrid(*(np.arange(n) / n for n in shape), indexing="ij"), axis=-1)
    density = np.zeros(shape)
    middle, reach = rng.random(len(shape)), rng.uniform(0.05, 0.5)
    for _ in range(int(_log_uniform(1, 40, rng))):
        turn = np.linalg.qr(rng.normal(size=(len(shape), len(shape))))[0]
        widths = [_log_uniform(0.008, 0.3, rng) for _ in shape]
        away = (x - middle - reach * rng.normal(size=len(shape))) @ turn / widths
        density += rng.pareto(1.2) * np.exp(-(away**2).sum(axis=-1) / 2)
    return density + 1e-12


def _blocks(shape: tuple[int, ...], rng: Rng) -> Floats:
    density = np.full(shape, 1e-4)
    for _ in range(int(_log_uniform(1, 30, rng))):
        place = tuple(slice(*sorted(rng.choice(n + 1, 2, replace=False))) for n in shape)
        density[place] += rng.pareto(1.2)
    return density


def _scattered(shape: tuple[int, ...], rng: Rng) -> Floats:
    density = np.zeros(shape)
    many = max(1, int(density.size * _log_uniform(0.003, 0.2, rng)))
    density.ravel()[rng.choice(density.size, many, replace=False)] = rng.pareto(rng.uniform(0.7, 2), many) + 0.02
    return density


def _lines(shape: tuple[int, ...], rng: Rng) -> Floats:
    """Rows that lie on a few lines along the axes, as where one value of a column is usual."""
    density = 1e-5 * _apart(shape, rng)
    for _ in range(int(rng.integers(1, 6))):
        axis = int(rng.integers(len(shape)))
        place: list[int | slice] = [0 if rng.random() < 0.5 else int(rng.integers(n)) for n in shape]
        place[axis] = slice(None)
        density[tuple(place)] += rng.pareto(1.5) * _line(shape[axis], rng)
    return density


def _cascade(shape: tuple[int, ...], rng: Rng) -> Floats:
    """Halves of halves, each with a share of its own: as uneven at every scale."""
    evenness = _log_uniform(0.5, 8, rng)
    density = np.ones((1,) * len(shape), dtype=np.float64)
    while any(have < n for have, n in zip(density.shape, shape, strict=True)):
        finer: Floats = np.kron(density, np.ones((2,) * len(shape))).astype(np.float64)
        density = finer * rng.gamma(*_reciprocal(evenness), finer.shape)
    return density[tuple(slice(n) for n in shape)]


_SPACES: tuple[Callable[[tuple[int, ...], Rng], Floats], ...] = (
    _apart, _apart, _leaning, _leaning, _blocks, _scattered, _lines, _lines, _cascade,
)  # fmt: skip


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
    points = _smudged(points, rng)
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


def _smudged(points: Floats, rng: Rng) -> Floats:
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
