"""Boxes from the sums along axes, the tree over them, and blocks that are drawn together."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dense_core import matrix_of, sensitivity

from jostle.kernels.histograms import smoothing, strategies
from jostle.kernels.histograms.partitions import MOST_BOXES, axis_sums, box_tree
from jostle.kernels.workloads import boxes as workloads
from jostle.privacy.mechanisms.least_cost import public_tree

SHAPES = [(1,), (2,), (9,), (1, 6), (8, 8), (5, 12), (3, 4, 5)]


def exact(x: np.ndarray) -> list[np.ndarray]:
    """The answers to `axis_sums` without noise."""
    return [x.sum(axis=tuple(a for a in range(x.ndim) if a != axis)) / x.ndim for axis in range(x.ndim)]


def first_boxes(order: np.ndarray, levels: np.ndarray) -> list[set[int]]:
    """The runs of cells that are split whatever the data are."""
    return [set(part.tolist()) for part in np.split(order, np.flatnonzero(levels[1:] < 0) + 1)]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_sums_along_axes_have_sensitivity_one(shape: tuple[int, ...]) -> None:
    blocks, cells = axis_sums(shape), math.prod(shape)
    np.testing.assert_allclose(np.abs(matrix_of(blocks, cells)).sum(axis=0), 1)
    x = np.random.default_rng(1).integers(0, 9, shape)
    for block, sums in zip(blocks, exact(x), strict=True):
        held = np.bincount(block["labels"], weights=x.ravel(), minlength=block["size"])
        np.testing.assert_allclose(block["weight"] * held, sums)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("noise", [0.0, 40.0])
def test_the_tree_has_every_cell_and_comes_down_to_each(shape: tuple[int, ...], noise: float) -> None:
    draw = np.random.default_rng(7)
    x = draw.integers(0, 2, shape) * draw.integers(0, 4000, shape)
    answers = [a + noise * draw.laplace(size=a.shape) for a in exact(x)]
    order, levels = public_tree(*box_tree(shape, answers, noise, 0.1), math.prod(shape))
    assert sorted(order) == list(range(math.prod(shape)))
    blocks = {tuple(order)}
    for depth in range(int(levels.max()) + 2):
        cut = np.flatnonzero(levels[1:] < depth) + 1
        blocks = {tuple(part.tolist()) for part in np.split(order, cut)}
        for block in blocks:
            corners = np.array(np.unravel_index(block, shape))
            assert len(block) == np.prod(np.ptp(corners, axis=1) + 1)
    assert len(blocks) == math.prod(shape)
    assert len(first_boxes(order, levels)) <= MOST_BOXES * 2 ** len(shape)


def test_a_line_is_a_box_and_evenness_is_none() -> None:
    x = np.ones((16, 16), dtype=np.int64)
    x[:, 3] = 2000
    order, levels = box_tree(x.shape, exact(x), 10.0, 0.1)
    line = {16 * row + 3 for row in range(16)}
    found = first_boxes(order, levels)
    assert set().union(*(box for box in found if box <= line)) == line
    order, levels = box_tree((16, 16), exact(np.full((16, 16), 1)), 10.0, 0.1)
    assert (levels[1:] < 0).sum() == (256 * 0.1 > 20) * 3


def test_a_box_with_many_rows_is_halved_at_once() -> None:
    for rows, parts in ((1, 1), (100, 4)):
        order, levels = box_tree((4, 4), exact(np.full((4, 4), rows)), 0.0, 0.1)
        assert len(first_boxes(order, levels)) == parts


def seen_by(x: np.ndarray, labels: np.ndarray, scale: float, seed: int) -> tuple[list[dict], list[np.ndarray]]:
    """A strategy on blocks for random rectangles, and what it measures."""
    asked = workloads.rectangles(x.shape, 200)
    strategy = strategies.bucket_strategy(labels, asked)
    noise = np.random.default_rng(seed)
    answers = [
        matrix_of([block], x.size) @ x.ravel() + scale * noise.laplace(size=len(matrix_of([block], x.size)))
        for block in strategy
    ]
    assert sensitivity(strategy, x.size) == pytest.approx(1)
    return strategy, answers


SQUARES = (np.arange(16)[:, None] // 2 * 8 + np.arange(16)[None, :] // 2).ravel()


@pytest.mark.parametrize("labels", [SQUARES, np.arange(256) // 3, np.arange(256) // 128])
def test_variances_and_the_posterior_are_those_of_dense_algebra(labels: np.ndarray) -> None:
    x = np.random.default_rng(2).integers(0, 30, (16, 16))
    strategy, answers = seen_by(x, labels, 3.0, 4)
    seen, blocks = smoothing.block_estimate(strategy, answers, 3.0), int(labels.max()) + 1
    a = np.diag(np.broadcast_to(strategy[0]["weight"], (blocks,)))
    if len(strategy) > 1:
        a = np.concatenate([a, strategy[1]["matrix"]])
    covariance = 2 * 3.0**2 * np.linalg.inv(a.T @ a)
    np.testing.assert_allclose(seen.diagonal(), np.diag(covariance))
    n, share = np.bincount(labels).astype(float), np.arange(1, 16) / 16
    inside = [np.bincount(labels[: 16 * side], minlength=blocks) for side in range(1, 16)]
    rows = (np.array(inside) - share[:, None] * n) / n
    one, sums = 1 / (n**2 * seen.own), seen.half / (n * seen.own)
    variances = 2 * 3.0**2 * smoothing._variances(labels.reshape(x.shape), share, one, sums)
    np.testing.assert_allclose(variances, np.diag(rows @ covariance @ rows.T), atol=1e-9)
    np.testing.assert_allclose(seen.z, np.linalg.lstsq(a, np.concatenate(answers), rcond=None)[0])

    boxes = (np.arange(256) // 64).astype(np.int64)
    own, n = smoothing._owners(labels, boxes), np.bincount(labels).astype(float)
    found = smoothing.shrunk_counts(seen, labels, boxes)
    gap = seen.z - n * (np.bincount(own, seen.z) / np.bincount(own, n))[own]
    noise = np.bincount(own, np.diag(covariance) * (1 - n / np.bincount(own, n)[own]) / n)
    tau = np.maximum(np.bincount(own, gap**2 / n) - noise, 0) / np.maximum(np.bincount(own) - 1, 1)
    prior = np.diag(np.where(np.bincount(own)[own] > 1, 1 / np.maximum(tau[own] * n, 1e-4 * np.diag(covariance)), 0))
    member = np.eye(int(own.max()) + 1)[own] * n[:, None]  # counts = member @ densities + what differs
    inner = np.linalg.pinv(member.T @ prior @ member)
    dense = np.linalg.inv(covariance) + prior - prior @ member @ inner @ member.T @ prior
    np.testing.assert_allclose(found, np.linalg.solve(dense, np.linalg.solve(covariance, seen.z)), rtol=1e-5, atol=1e-5)


def test_what_is_alike_is_drawn_together_and_what_differs_stays() -> None:
    x = np.full((16, 16), 300)
    x[:2, :2] = 5000
    errors = []
    for seed in range(4):
        strategy, answers = seen_by(x, SQUARES, 20.0, seed)
        asked = workloads.rectangles(x.shape, 200)
        plain, smooth = (
            strategies.estimate(strategy, answers, asked),
            smoothing.smoothed(strategy, answers, 20.0, asked),
        )
        errors.append([np.linalg.norm(asked.answers(x) - asked.answers(cells)) for cells in (plain, smooth)])
        assert smooth[:2, :2].sum() == pytest.approx(20000, rel=0.05)
    plain_error, smooth_error = np.mean(errors, axis=0)
    assert smooth_error < 0.8 * plain_error


def test_a_cut_is_made_where_it_is_more_than_noise() -> None:
    x = np.zeros((16, 16))
    x[:, 8:] = 100
    for scale, most in ((1.0, 16), (1e6, 2)):
        strategy, answers = seen_by(x, SQUARES, scale, 3)
        found = smoothing.boxes_of(smoothing.block_estimate(strategy, answers, scale), SQUARES, x.shape).reshape(
            x.shape
        )
        assert len(np.unique(found)) <= most
        assert scale > 1 or not set(found[:, :8].ravel()) & set(found[:, 8:].ravel())


def test_exact_answers_and_hierarchies_are_only_estimated() -> None:
    x = np.random.default_rng(0).integers(0, 9, (16, 16))
    asked = workloads.rectangles(x.shape, 50)
    strategy, answers = seen_by(x, np.arange(256), 0.0, 1)
    np.testing.assert_allclose(smoothing.smoothed(strategy, answers, 0.0, asked), x, atol=1e-6)
    from jostle.kernels.histograms.grids import bucket_tree

    tree = bucket_tree(SQUARES)
    held = [block["weight"] * np.bincount(block["labels"], x.ravel()) for block in tree]
    np.testing.assert_allclose(
        smoothing.smoothed(tree, held, 1.0, asked), strategies.estimate(tree, held, asked), atol=1e-6
    )
