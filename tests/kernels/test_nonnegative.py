"""Joint answers from 0 on: the nearest ones, found here from matrices over all cells, and they agree."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from jostle.kernels import KernelError
from jostle.kernels.workloads import joint_answers as answers
from jostle.kernels.workloads.joint_answers import Estimates, Nonnegative
from jostle.kernels.workloads.joint_axes import Axis, Factor
from jostle.kernels.workloads.joint_strategy import Levels, Query, Strategy, strategy_for
from jostle.kernels.workloads.public_answers import from_zero, nearest_from_zero
from tests.kernels.test_joint import TOWNS, every, exact, flat, marginals, measured, workloads


def seen(strategy: Strategy, cells: tuple[int, ...], family: int) -> tuple[np.ndarray, np.ndarray, list[list[int]]]:
    """Of one cell more at a time: what every residual gets, its precision, and where each block's residual stands."""
    rows, precisions, places = [], [], []
    units = np.eye(int(np.prod(cells))).reshape(-1, *cells)
    numbers = [measured(strategy, unit) for unit in units]
    for (of, levels), sources in strategy.sources.items():
        if of != family:
            continue
        told = np.array([Estimates(strategy, one)._of[of, levels].ravel() for one in numbers]).T
        own = np.prod([strategy.axes[axis].sizes[level] for axis, level in levels])
        variance = 0.0
        for at, weight in sources:
            block = strategy.blocks[at]
            finer = np.prod([strategy.axes[axis].sizes[level] for axis, level in block.levels]) / own
            variance += weight**2 * block.variance * finer
        places.append(list(range(sum(map(len, rows)), sum(map(len, rows)) + len(told))))
        rows.append(told)
        precisions += [1 / variance] * len(told)
    return np.concatenate(rows), np.array(precisions), places


def groups_of(strategy: Strategy, levels: Levels, cells: tuple[int, ...]) -> np.ndarray:
    """Which cells are in each group at these levels: (groups, cells)."""
    at = dict(levels)
    parts = [np.asarray(axis.labels[at.get(i, 0)]) for i, axis in enumerate(strategy.axes)]
    every_cell = list(product(*(range(size) for size in cells)))
    labels = [tuple(int(part[c]) for part, c in zip(parts, cell, strict=True)) for cell in every_cell]
    return np.array([[label == group for label in labels] for group in sorted(set(labels))], dtype=float)


@pytest.mark.parametrize("gaussian", [True, False])
def test_the_nearest_answers_that_are_not_negative(gaussian: bool) -> None:
    """By Karush, Kuhn and Tucker over all cells: what pulls at the answers is a sum of groups that are 0, with prices.

    The cells themselves may be negative; the groups that selects need, with those that no value fits, are not.
    """
    from scipy.optimize import nnls

    rng, moved = np.random.default_rng(3), 0
    for axes, queries in workloads(gaussian):
        strategy = strategy_for(axes, queries, gaussian)
        cells = tuple(len(axis.labels[0]) for axis in axes)
        families = sorted({query.family for query in queries})
        x = np.floor(rng.exponential(0.4, cells))
        numbers = [y + rng.normal(0, 1.5, y.shape) for y in measured(strategy, x)]
        for block, y in zip(strategy.blocks, numbers, strict=True):
            for dimension, (axis, level) in enumerate(block.levels if block.residual else ()):
                y[:] = axes[axis].residual(y, level, dimension)
        before = Estimates(strategy, numbers)
        after = before.projected([Nonnegative(strategy, queries, family) for family in families])
        for family in families:
            own = [query for query in queries if query.family == family]
            matrix, precisions, _ = seen(strategy, cells, family)
            keys = [levels for of, levels in strategy.sources if of == family]
            first, last = (np.concatenate([e._of[family, levels].ravel() for levels in keys]) for e in (before, after))
            groups = np.concatenate([groups_of(strategy, query.top, cells) for query in own])
            known = np.linalg.lstsq(matrix, last, rcond=None)[0]
            assert np.allclose(matrix @ known, last, atol=1e-8)  # some cells have just these residuals
            values = groups @ known
            assert values.min() > -1e-8
            pull = matrix.T @ (precisions * (last - first))  # of half the squared distance, by cell
            tight = groups[values < 1e-7]
            prices, off = nnls(tight.T, pull) if len(tight) else (np.zeros(0), float(np.linalg.norm(pull)))
            assert off < 1e-6
            moved += bool(len(tight) and prices.max() > 0)
            for query in own:
                assert after.answers(query).min() >= 0
                assert np.allclose(after.answers(query), exact(query, known.reshape(cells)), atol=1e-7)
    assert moved >= 4


def test_answers_that_are_not_negative_stay_as_they_are() -> None:
    axes = [TOWNS, flat(3)]
    queries = [Query(0, {0: every(TOWNS), 1: every(axes[1])}, 1.0), Query(0, {}, 1.0)]
    strategy = strategy_for(axes, queries, True)
    before = Estimates(strategy, measured(strategy, np.full((6, 3), 4.0)))
    after = before.projected([Nonnegative(strategy, queries, 0)])
    assert all(np.array_equal(before.answers(query), after.answers(query)) for query in queries)


def test_a_query_that_skips_a_level_is_held_by_its_answers() -> None:
    """One town of each of two regions: nothing is measured that tells the regions apart."""
    axis = Axis([np.array([0, 0, 1, 1]), np.arange(4)])
    across = Factor(axis, np.array([0, 1, 0, 1]), 2)
    queries = [Query(0, {0: across}, 1.0)]
    assert across.levels == [0, 2]
    strategy = strategy_for([axis], queries, True)
    cone = Nonnegative(strategy, queries, 0)
    assert cone.groups.shape[0] == 2
    before = Estimates(strategy, measured(strategy, np.array([-9.0, 4, -1, 8])))
    assert before.answers(queries[0]).tolist() == pytest.approx([-10, 12])
    first, second = before.projected([cone]).answers(queries[0])
    assert first == 0 and second == pytest.approx(12, rel=1e-3)


def test_whatever_the_steps_came_to_nothing_is_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "STEPS", 2)
    monkeypatch.setattr(answers, "ROUNDS", 1)
    axes = [flat(5), flat(6), flat(7)]
    queries = marginals(axes, [(0, 1), (1, 2), (0, 2), (0,)], True)
    strategy = strategy_for(axes, queries, True)
    rng = np.random.default_rng(4)
    numbers = [rng.normal(0, 5, y.shape) for y in measured(strategy, np.zeros((5, 6, 7)))]
    for block, y in zip(strategy.blocks, numbers, strict=True):
        for dimension, (axis, level) in enumerate(block.levels):
            y[:] = axes[axis].residual(y, level, dimension)
    after = Estimates(strategy, numbers).projected([Nonnegative(strategy, queries, 0)])
    both, first = after.answers(queries[0]), after.answers(queries[3])
    assert both.min() >= 0 and np.allclose(both.sum(axis=1), first)


def test_groups_that_are_too_many_are_refused() -> None:
    axes = [flat(900), flat(900)]
    queries = marginals(axes, [(0, 1)], True)
    strategy = strategy_for(axes, queries, True)
    with pytest.raises(KernelError, match="too many"):
        Nonnegative(strategy, queries, 0)


@pytest.mark.parametrize("given", [False, True])
def test_the_nearest_cells_that_all_answers_are_sums_of(given: bool) -> None:
    """A country of 3 states, 12 counties and 60 blocks by 4 kinds: by Karush, Kuhn and Tucker over all cells."""
    from scipy.optimize import nnls

    rng, blocks = np.random.default_rng(5), np.arange(60)
    axes, top = [Axis([blocks // 20, blocks // 5, blocks]), Axis([np.arange(4)])], ((0, 3), (1, 1))
    seen_cells = rng.poisson(0.3, (60, 4)) + rng.normal(0, 1, (60, 4))
    ratios: dict[Levels, float] = {((0, 1),): 9.0, ((0, 2),): 4.0, ((0, 3),): 2.0, ((0, 2), (1, 1)): 3.0}
    totals = np.array([40.0, 0.0, 25.0])
    margins = [(at, ratio, totals if given and at == ((0, 1),) else None) for at, ratio in ratios.items()]
    cells = nearest_from_zero(axes, top, seen_cells, margins)
    assert cells.min() == 0 and np.isclose(cells, 0).sum() > 60
    strategy = SimpleNamespace(axes=axes)
    matrices = {at: groups_of(strategy, at, (60, 4)) for at in ratios}  # type: ignore[arg-type]
    x, e = cells.ravel(), seen_cells.ravel()
    pull = x - e  # of half the squared distances, by cell
    for at, _, exact_sums in margins:
        if exact_sums is None:
            pull = pull + matrices[at].T @ (matrices[at] @ (x - e)) / ratios[at]
    free = []
    if given:
        assert np.allclose(matrices[((0, 1),)] @ x, totals, atol=1e-9) and not x[80:160].any()
        free = [*matrices[((0, 1),)], *-matrices[((0, 1),)]]
    tight = np.array([*np.eye(len(x))[x < 1e-7], *free])
    off = nnls(tight.T, pull)[1]
    assert off < 1e-3 * np.linalg.norm(e)


def test_cells_go_from_coarse_to_fine() -> None:
    """Each level is the nearest from 0 on that adds up to the one above; a margin across the levels draws cells too."""
    rng, blocks = np.random.default_rng(6), np.arange(60)
    axes, top = [Axis([blocks // 20, blocks // 5, blocks]), Axis([np.arange(4)])], ((0, 3), (1, 1))
    noisy = rng.poisson(0.3, (60, 4)) + rng.normal(0, 1, (60, 4))
    nested: list[Any] = [(((0, 1),), 4.0, None), (((0, 2),), 3.0, None), (((0, 3),), 2.0, None)]
    cells = from_zero(axes, top, noisy, nested)
    above, total = np.array([max(noisy.sum(), 0.0)]), cells.sum()
    for size in (3, 12, 60, 240):
        here = cells.reshape(size, -1).sum(axis=1)
        for group, lines, of in zip(
            here.reshape(len(above), -1),
            noisy.reshape(size, -1).sum(axis=1).reshape(len(above), -1),
            above,
            strict=True,
        ):
            price = brentq(lambda p, lines=lines, of=of: np.maximum(lines - p, 0).sum() - of, -1e3, 1e3)
            assert np.allclose(group, np.maximum(lines - price, 0), atol=1e-3)
        above = here
    assert cells.min() >= 0 and np.isclose(total, noisy.sum())
    kinds = (((1, 1),), 0.01, None)
    drawn = from_zero(axes, top, noisy, [*nested, kinds]).sum(axis=0)
    assert np.abs(drawn - noisy.sum(axis=0)).max() < 0.1 < np.abs(cells.sum(axis=0) - noisy.sum(axis=0)).max()
    public = (((1, 1),), 0.0, np.array([20.0, 20.0, 0.0, 40.0]))
    given = from_zero(axes, top, noisy, [*nested, public])
    assert np.allclose(given, nearest_from_zero(axes, top, noisy, [*nested, public]))
    assert np.allclose(given.sum(axis=0), public[2])


def test_states_of_many_cells_keep_their_counts() -> None:
    """All at once, the nearest cells from 0 on leave states what their empty cells have too much."""
    rng, blocks = np.random.default_rng(7), np.arange(400)
    axes, top = [Axis([blocks // 100, blocks // 10, blocks]), Axis([np.arange(50)])], ((0, 3), (1, 1))
    exact = rng.multinomial(4_000, np.outer(rng.dirichlet(np.full(400, 0.5)), rng.dirichlet(np.full(50, 0.1))).ravel())
    noisy = exact.reshape(400, 50) + rng.normal(0, 1.4, (400, 50))
    for sizes in ((400, 50), (40, 500), (4, 5000)):  # as if all groups were measured with the same noise
        lines = noisy.reshape(sizes)
        lines += ((exact.reshape(sizes).sum(axis=1) + rng.normal(0, 1, sizes[0]) - lines.sum(axis=1)) / sizes[1])[
            :, None
        ]
    margins: list[Any] = [(((0, level),), 0.5, None) for level in (1, 2, 3)]
    off = {
        way: np.square(
            way(axes, top, noisy, margins).reshape(4, -1).sum(axis=1) - exact.reshape(4, -1).sum(axis=1)
        ).mean()
        for way in (from_zero, nearest_from_zero)
    }
    assert off[from_zero] < 1 < 8 < off[nearest_from_zero]


def test_a_level_of_a_large_axis_is_no_finer_one() -> None:
    """The last bits of sums over 100,000 groups are no residual of them."""
    blocks = np.arange(100_000)
    axis = Axis([blocks // 2000, blocks // 40, blocks])
    for level, size in ((1, 50), (2, 2500), (3, 100_000)):
        assert max(Factor(axis, axis.labels[level], size).levels) == level
