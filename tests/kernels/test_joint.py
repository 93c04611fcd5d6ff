"""Strategies and answers of joint workloads: exact without noise, and with the errors that they say."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import nnls

from jostle.error_laws import quantiles
from jostle.kernels import KernelError
from jostle.kernels.workloads.joint_answers import (
    Estimates,
    Nonnegative,
    Wish,
    allowed_noise,
    grid_step,
    laplace_half_width,
    whole_width,
)
from jostle.kernels.workloads.joint_axes import Axis, Factor
from jostle.kernels.workloads.joint_strategy import (
    Levels,
    Query,
    Strategy,
    _Workload,
    below,
    even_residuals,
    strategy_for,
)
from jostle.kernels.workloads.public_answers import KnownGroups, integers, known_residuals, path
from jostle.noise_laws import Gaussian, Laplace

TOWNS = Axis([np.array([0, 0, 0, 1, 1, 2]), np.arange(6)])  # regions of three, two and one towns


def flat(cells: int) -> Axis:
    return Axis([np.arange(cells)])


def every(axis: Axis) -> Factor:
    return Factor(axis, np.arange(len(axis.labels[0])), len(axis.labels[0]))


def marginals(axes: list[Axis], sets: list[tuple[int, ...]], gaussian: bool) -> list[Query]:
    alone = float(len(sets) if gaussian else len(sets) ** 2)
    factors = [every(axis) for axis in axes]
    return [Query(0, {i: factors[i] for i in one}, alone) for one in sets]


def workloads(gaussian: bool) -> list[tuple[list[Axis], list[Query]]]:
    three = [flat(2), flat(3), flat(4)]
    two = [TOWNS, flat(3)]
    regions = Factor(TOWNS, TOWNS.labels[1], 3)
    some = Factor(TOWNS, np.array([0, -1, 1, 1, 0, -1]), 2)
    alone = 4.0 if gaussian else 16.0
    nested = [Query(0, {0: regions}, alone), Query(0, {0: every(TOWNS)}, alone), Query(0, {0: some}, alone),
              Query(1, {0: regions, 1: every(two[1])}, alone)]  # fmt: skip
    by = [{}, {0: every(two[1])}, {0: every(two[1])}, {1: every(three[2])}, {}]
    power = -1 if gaussian else -2
    uneven = [
        Query(family, {axis + 1: factor for axis, factor in factors.items()}, share**power)
        for family, factors, share in zip([0, 0, 1, 0, 2], by, [1 / 4, 1 / 8, 1 / 8, 1 / 4, 1 / 4], strict=True)
    ]
    first = [flat(2), two[1], three[2]], uneven
    return [first, (three, marginals(three, [*combinations(range(3), 1), *combinations(range(3), 2)], gaussian)),
            (two, nested), ([flat(2)], [Query(0, {}, 1.0)])]  # fmt: skip


def summed(x: np.ndarray, labels: np.ndarray, size: int, axis: int) -> np.ndarray:
    lines = np.moveaxis(x, axis, 0)
    sums = np.zeros((size, *lines.shape[1:]))
    np.add.at(sums, labels[labels >= 0], lines[labels >= 0])
    return np.moveaxis(sums, 0, axis)


def measured(strategy: Strategy, x: np.ndarray) -> list[np.ndarray]:
    """What the blocks say of these cells, without noise."""
    result = []
    for block in strategy.blocks:
        y, levels = x, dict(block.levels)
        for i, axis in enumerate(strategy.axes):
            y = summed(y, axis.labels[levels.get(i, 0)], axis.sizes[levels.get(i, 0)], i)
        y = y.reshape([strategy.axes[i].sizes[level] for i, level in block.levels])
        for dimension, (i, level) in enumerate(block.levels if block.residual else ()):
            y = strategy.axes[i].residual(y, level, dimension)
        result.append(y)
    return result


def exact(query: Query, x: np.ndarray) -> np.ndarray:
    for i in reversed(range(x.ndim)):
        factor = query.factors.get(i)
        x = x.sum(axis=i) if factor is None else summed(x, factor.groups, factor.size, i)
    return x


@pytest.mark.parametrize("gaussian", [True, False])
def test_answers_are_exact_without_noise_and_errors_are_what_is_said(gaussian: bool) -> None:
    for axes, queries in workloads(gaussian):
        strategy = strategy_for(axes, queries, gaussian)
        x = np.arange(np.prod([len(a.labels[0]) for a in axes]), dtype=float).reshape([len(a.labels[0]) for a in axes])
        numbers = measured(strategy, x**1.5)
        estimates = Estimates(strategy, numbers)
        assert sum(block.share for block in strategy.blocks) == pytest.approx(1)
        for query in queries:
            assert np.allclose(estimates.answers(query), exact(query, x**1.5))
            variances = strategy.variances(query).ravel()
            for place, variance in enumerate(variances):
                rows = strategy.coefficients(query, place)
                told = sum(strategy.blocks[at].variance * (weights**2).sum() for at, weights in rows)
                assert told == pytest.approx(variance)
                value = sum((weights * numbers[at].ravel()).sum() for at, weights in rows)
                assert value == pytest.approx(estimates.answers(query).ravel()[place])
            assert variances.max() <= query.alone * (1 + 1e-9)


def test_gaussian_shares_are_the_optimum_in_closed_form() -> None:
    """Of marginals that gain all of it: (Σ √(v·c))², v and c written out from the sizes."""
    sizes = [3, 4, 5]
    sets = [*combinations(range(3), 1), *combinations(range(3), 2)]
    axes = [flat(n) for n in sizes]
    queries = [Query(0, query.factors, 1e9) for query in marginals(axes, sets, True)]
    strategy = strategy_for(axes, queries, True)
    errors: dict[tuple[int, ...], float] = {}
    for one in sets:
        for k in range(len(one) + 1):
            for inside in combinations(one, k):
                parts = [(1 - 1 / sizes[i]) if i in inside else 1 / sizes[i] ** 2 for i in one]
                errors[inside] = errors.get(inside, 0) + np.prod([sizes[i] for i in one]) * np.prod(parts)
    roots = [np.sqrt(v * np.prod([1 - 1 / sizes[i] for i in inside])) for inside, v in errors.items()]
    assert sum(strategy.variances(query).sum() for query in queries) == pytest.approx(sum(roots) ** 2)


def test_for_the_least_total_no_query_keeps_what_it_has_alone() -> None:
    """Of two tables of which one is small: all is done for the total, in closed form, and the small one pays."""
    axes = [flat(2), flat(50)]
    queries = marginals(axes, [(0,), (1,)], True)
    kept, least = (strategy_for(axes, queries, True, fair=keeps) for keeps in (True, False))
    free = strategy_for(axes, [Query(0, one.factors, 1e9) for one in queries], True)
    totals = [sum(s.variances(query).sum() / query.alone for query in queries) for s in (kept, least, free)]
    assert totals[1] == pytest.approx(totals[2]) and totals[1] < 0.99 * totals[0]
    assert least.variances(queries[0]).max() > queries[0].alone >= kept.variances(queries[0]).max() * (1 - 1e-9)
    laplace = [Query(0, one.factors, 4.0) for one in queries]
    kept, least = (strategy_for(axes, laplace, False, fair=keeps) for keeps in (True, False))
    total, other = (sum(s.variances(query).sum() for query in laplace) for s in (least, kept))
    assert total <= other


def test_runs_of_a_number_serve_ranges_better() -> None:
    """All 64 ranges from the start, from cells alone and from runs of 4 and 16 of them."""
    cells = np.arange(64)

    def total(levels: list[np.ndarray], gaussian: bool) -> float:
        axis = Axis(levels)
        queries = [Query(0, {0: Factor(axis, np.where(cells <= i, 0, -1), 1)}, 1e9) for i in range(0, 64, 3)]
        strategy = strategy_for([axis], queries, gaussian)
        return sum(float(strategy.variances(query).sum()) for query in queries)

    assert total([cells // 16, cells // 4, cells], True) < 0.5 * total([cells], True)
    assert total([cells // 16, cells // 4, cells], False) < 0.8 * total([cells], False)


def test_twenty_attributes_are_planned() -> None:
    """All marginals of one and two of twenty attributes, in closed form."""
    axes = [flat(n) for n in [2, 3, 5, 10] * 5]
    sets = [*combinations(range(20), 1), *combinations(range(20), 2)]
    strategy = strategy_for(axes, marginals(axes, sets, True), True)
    assert len(strategy.blocks) == 211


# Wanted errors ---------------------------------------------------------------------------------------


def test_the_half_width_of_a_sum_of_laplace_noises_is_its_own() -> None:
    """Of one, of two of a scale, where P(|sum| > h) = (1 + h/2)·exp(−h), and of very many, which are Gaussian."""
    assert laplace_half_width(np.array([3.0])) == pytest.approx(-3 * np.log(0.05) / np.sqrt(2), rel=1e-5)
    wide = laplace_half_width(np.full(2, np.sqrt(2)))
    assert (1 + wide / 2) * np.exp(-wide) == pytest.approx(0.05, rel=1e-4)
    assert laplace_half_width(np.full(5000, 0.01)) == pytest.approx(1.959964 * 0.01 * np.sqrt(5000), rel=1e-3)


def test_on_a_grid_a_half_width_is_that_of_its_last_place() -> None:
    assert grid_step(np.array([1 / 3, -2 / 3, 1.0])) == pytest.approx(1 / 3)
    assert grid_step(np.array([1.0, np.pi / 4])) == 0.0
    assert whole_width(25.9, 1.0) == 25.5 and whole_width(25.9, 0.0) == 25.9 and whole_width(0.3, 1.0) == 0.5


@pytest.mark.slow(only=["False"])
@pytest.mark.parametrize("gaussian", [True, False])
def test_the_worst_answer_is_as_good_as_can_be(gaussian: bool) -> None:
    """Of Gaussian noise within 0.2 % of the bound; of Laplace noise no shares near by are better."""
    rng = np.random.default_rng(5)
    for axes, queries in workloads(gaussian):
        queries = [Query(one.family, one.factors, float(rng.uniform(1, 5))) for one in queries]
        strategy = strategy_for(axes, queries, gaussian, minimax=True)
        worst = max(float((strategy.variances(query) / query.alone).max()) for query in queries)
        if gaussian:
            places: dict[tuple[int, Levels], int] = {}
            for query in queries:
                for residual in query.residuals:
                    places.setdefault((query.family, residual), len(places))
            costs = np.array([np.prod([axes[a].costs[level] for a, level in one]) for _, one in places])
            _, bound = even_residuals(_Workload(queries, places).rows, costs)
            assert bound <= worst * (1 + 1e-9) and worst <= bound * 1.0021
        else:
            equal = strategy_for(axes, queries, gaussian)
            assert worst <= max(float((equal.variances(query) / query.alone).max()) for query in queries) * (1 + 1e-9)


@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_with_the_noise_that_is_allowed_the_worst_answer_just_keeps_its_wish(
    kind: type[Laplace | Gaussian],
) -> None:
    """Against 50,000 draws of the noise of its numbers: P(|error| ≤ wish) is 0.95, up to 7 deviations of that."""
    rng, draws = np.random.default_rng(7), 50_000
    for axes, queries in workloads(kind is Gaussian)[1:3]:
        wishes = [Wish(query, 40.0 + 20 * i, 0.0) for i, query in enumerate(queries)]
        strategy = strategy_for(axes, [Query(w.query.family, w.query.factors, w.half_width**2) for w in wishes],
                                kind is Gaussian, minimax=True)  # fmt: skip
        allowed, inside = allowed_noise(strategy, wishes, kind), []
        for wish in wishes:
            worst = int(strategy.variances(wish.query).argmax())
            noise = np.zeros(draws)
            for at, weights in strategy.coefficients(wish.query, worst):
                law = kind(allowed * strategy.blocks[at].variance ** 0.5 / kind(1.0).deviation)
                for weight in weights[weights != 0]:
                    noise += weight * quantiles(law, rng.uniform(size=draws))
            inside.append((np.abs(noise) <= wish.half_width).mean())
        slack = 7 * (0.95 * 0.05 / draws) ** 0.5
        assert 0.95 - slack <= min(inside) <= 0.95 + slack


def known_and_measured(gaussian: bool, seed: int) -> tuple[Strategy, list[Query], list[KnownGroups], list[np.ndarray]]:
    """A block over three keys, of which the counts by the first two are public; and noisy numbers of its strategy."""
    axes, rng = [flat(2), flat(3), flat(4)], np.random.default_rng(seed)
    factors = [every(axis) for axis in axes]
    public = frozenset(below(((0, 1), (1, 1))))
    queries = [Query(0, {i: factors[i] for i in one}, 9.0, public) for one in [(0, 1), (), (2,), (1, 2), (0, 1, 2)]]
    strategy = strategy_for(axes, [query for query in queries if query.residuals], gaussian)
    x = rng.integers(0, 9, (2, 3, 4)).astype(float)
    known = [KnownGroups(axes, queries[0], x.sum(axis=2))]
    numbers = [
        one + rng.normal(0, block.variance**0.5, one.shape)
        for one, block in zip(measured(strategy, x), strategy.blocks, strict=True)
    ]
    return strategy, queries, known, numbers


def squares(strategy: Strategy, numbers: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The least-squares problem over cells that the numbers of a strategy pose: a matrix and a vector."""
    cells = np.eye(24).reshape(24, 2, 3, 4)
    columns = [measured(strategy, cell) for cell in cells]
    weights = [block.variance**-0.5 for block in strategy.blocks]
    rows = [
        np.array([column[at].ravel() * weight for column in columns]).T for at, weight in enumerate(weights)
    ]  # fmt: skip
    return np.concatenate(rows), np.concatenate([w * y.ravel() for w, y in zip(weights, numbers, strict=True)])


@pytest.mark.parametrize("gaussian", [True, False])
def test_given_what_is_public_all_answers_are_the_best_that_agree_with_it(gaussian: bool) -> None:
    strategy, queries, known, numbers = known_and_measured(gaussian, 5)
    axes = strategy.axes
    assert not {(0, one) for one in below(((0, 1), (1, 1)))} & {*strategy.sources}  # nothing is spent on it
    estimates = Estimates(strategy, numbers, known_residuals(axes, known))
    matrix, vector = squares(strategy, numbers)
    equal, public = np.kron(np.eye(6), np.ones((1, 4))), known[0].values.ravel()
    system = np.block([[matrix.T @ matrix, equal.T], [equal, np.zeros((6, 6))]])
    best = np.linalg.lstsq(system, np.concatenate([matrix.T @ vector, public]), rcond=None)[0][:24].reshape(2, 3, 4)
    for query in queries:
        assert np.allclose(estimates.answers(query), exact(query, best), atol=1e-6)
    assert np.allclose(strategy.variances(queries[0]), 0) and strategy.variances(queries[-1]).min() > 0
    assert np.allclose(estimates.public(queries[0]), known[0].values)


@pytest.mark.parametrize("seed", range(4))
def test_from_zero_on_and_in_integers_the_public_answers_hold(seed: int) -> None:
    strategy, queries, known, numbers = known_and_measured(True, seed)
    known[0].values[0, 0] = 0.0  # so that cells have nothing but to be 0
    estimates = Estimates(strategy, numbers, known_residuals(strategy.axes, known))
    cone = Nonnegative(strategy, queries, 0, known)
    projected = estimates.projected([cone])
    finest = projected.answers(queries[-1])
    assert finest.min() == 0 and not finest[0, 0].any()
    assert np.allclose(finest.sum(axis=2), known[0].values, atol=1e-6)
    matrix, vector = squares(strategy, numbers)
    heavy = np.concatenate([matrix, 1e5 * np.kron(np.eye(6), np.ones((1, 4)))])
    best, _ = nnls(heavy, np.concatenate([vector, 1e5 * known[0].values.ravel()]))
    assert np.allclose(finest.ravel(), best, atol=1e-3)
    integers = projected.rounded(0, path(queries[-1].top, [known[0].top]), known)
    answers = [integers.answers(query) for query in queries]
    assert all((one == np.rint(one)).all() and one.min() >= 0 for one in answers)
    assert (answers[0] == known[0].values).all() and np.abs(answers[-1] - finest).max() < 1
    assert all((one == exact(query, answers[-1])).all() for one, query in zip(answers, queries, strict=True))


def test_public_answers_that_disagree_or_leave_rows_out_are_refused() -> None:
    axes = [TOWNS, flat(3)]
    regions = Query(0, {0: Factor(TOWNS, TOWNS.labels[1], 3)}, 1.0)
    total = Query(0, {}, 1.0)
    known = [KnownGroups(axes, regions, np.array([3.0, 2.0, 1.0])), KnownGroups(axes, total, np.array(6.0))]
    assert np.allclose(known_residuals(axes, known)[0, ()], 6.0)
    with pytest.raises(KernelError, match="disagree"):
        known_residuals(axes, [known[0], KnownGroups(axes, total, np.array(7.0))])
    with pytest.raises(KernelError, match="in none"):
        KnownGroups(axes, Query(0, {0: Factor(TOWNS, np.array([0, 0, 0, 1, 1, -1]), 2)}, 1.0), np.ones(2))
    with pytest.raises(KernelError, match="divide those"):
        KnownGroups(axes, Query(0, {0: Factor(TOWNS, np.array([0, 1, 1, 1, 2, 2]), 3)}, 1.0), np.ones(3))
    with pytest.raises(KernelError, match="crosswise"):
        path(((0, 2), (1, 1)), [((0, 1),), ((1, 1),)])


def test_integers_add_up_from_coarse_to_fine_and_are_next_to_their_shares() -> None:
    rng, axes, top = np.random.default_rng(3), [TOWNS, flat(3)], ((0, 2), (1, 1))
    for _ in range(50):
        cells = rng.exponential(2.0, (6, 3)) * (rng.random((6, 3)) < 0.6)
        steps = path(top, [()])
        total = float(np.rint(cells.sum()))
        for nonnegative in (True, False):
            at = cells if nonnegative else cells - 1.0
            known = {(): np.asarray(total)} if nonnegative else {}
            result = integers(axes, at, top, steps, known, nonnegative)
            assert (result == np.rint(result)).all() and (result.min() >= 0 or not nonnegative)
            assert result.sum() == np.rint(at.sum())
            assert np.abs(result.sum(axis=1) - at.sum(axis=1)).max() < 3 and np.abs(result - at).max() < 4
