"""Partitions along an axis and down public trees: the tree, the walk against its definition, exact losses, refusals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from test_least_cost import path_loss, score

from jostle.diagnostics import Refusal
from jostle.privacy.mechanisms.least_cost import GRID, along, constants, public_tree, walk_tree
from jostle.source import Source
from jostle.tools.session import Session

SIX = (list(range(6)), [-1, 0, 2, 1, 0, -3])


def quiet(scale: float, size: int) -> np.ndarray:
    return np.zeros(size, dtype=np.int64)


def nested(order: np.ndarray, levels: np.ndarray, depth: int = 0) -> list[list[int]]:
    """Blocks of one depth, by the definition: runs of cells with no level below the depth inside."""
    found: list[list[int]] = []
    for place, (cell, level) in enumerate(zip(order, levels, strict=True)):
        if place == 0 or level < depth:
            found.append([])
        found[-1].append(int(cell))
    return found


def test_a_row_moves_one_sum_along_an_axis_by_one() -> None:
    for counts in itertools.product(range(2), repeat=6):
        for cell, axis in itertools.product(range(6), range(2)):
            more = np.array(counts)
            more[cell] += 1
            before, after = (along(np.asarray(x).reshape(2, 3), axis) for x in (counts, more))
            assert np.abs(after - before).sum() == 1


def test_exact_losses_down_any_tree() -> None:
    draw = np.random.default_rng(8)
    for trial in range(150):
        cells, epsilon = int(draw.integers(2, 17)), float(draw.choice([0.1, 1.0, 3.0]))
        order, levels = public_tree(draw.permutation(cells), draw.integers(-2, 7, cells), cells)
        x = draw.integers(0, int(draw.choice([2, 5, 60])), cells)
        y = x.copy()
        y[trial % cells] += 1
        paths: tuple[list[int], list[int]] = ([], [])
        for depth in range(int(levels.max()) + 1):
            block = next(b for b in nested(order, levels, depth) if trial % cells in b)
            if len(block) > 1:
                for path, counts in zip(paths, (x, y), strict=True):
                    path.append(score(counts[block]))
        made = constants(epsilon)
        assert path_loss(*paths, made.scale * GRID, made.decay * GRID, 0) <= epsilon * (1 + 1e-6)


def test_the_walk_asks_the_scores_of_the_definition() -> None:
    """With a given draw, blocks split where their deviation from the median, less the decay, and the draw say so."""
    made, draw = constants(0.5), np.random.default_rng(1)
    for _ in range(40):
        cells = int(draw.integers(2, 30))
        order, levels = public_tree(draw.permutation(cells), draw.integers(-1, 5, cells), cells)
        x, noise = draw.integers(0, 40, cells), draw.integers(-20, 20, cells) << 20
        want = [b for b in nested(order, levels) if len(b) == 1]
        live = [b for b in nested(order, levels) if len(b) > 1]
        for depth in range(int(levels.max()) + 1):
            split = []
            for block, drawn in zip(live, noise, strict=False):
                height = max(-made.decay, (int(score(x[block])) << 20) - depth * made.decay) + int(drawn)
                parts = [b for b in nested(order, levels, depth + 1) if set(b) <= set(block)] if height > 0 else [block]
                (want if height <= 0 else split).extend(parts)
            want += [b for b in split if len(b) == 1]
            live = [b for b in split if len(b) > 1]
        labels = walk_tree(x, 0.5, lambda scale, size, given=noise: given[:size], order, levels)
        found = {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}
        assert found == {frozenset(block) for block in want + live}


@pytest.mark.parametrize(
    ("order", "levels"),
    [
        ([0, 1, 2, 3, 4, 4], SIX[1]), (SIX[0][:5], SIX[1][:5]), (SIX[0], SIX[1][:5]), ([0.5, 1, 2, 3, 4, 5], SIX[1]),
        (SIX[0], [float("nan")] * 6), (SIX[0], [[0]] * 6), (["a"] * 6, SIX[1]), ([-1, 0, 1, 2, 3, 4], SIX[1]),
    ],
)  # fmt: skip
def test_what_is_no_tree_is_refused(order: list[object], levels: list[object]) -> None:
    public_tree(*SIX, 6)
    with pytest.raises(Refusal):
        public_tree(order, levels, 6)


@pytest.mark.parametrize(
    "tuned",
    [
        "along = 2", "along = -1", "along = 0.5", "tree = [[0], [0]]", "tree = [[c, c, c, c], [0, 0, 0, 0]]",
        "tree = [[0, 1, 2, 3], [0, 0, 0, 0]], theta = 1",
    ],
)  # fmt: skip
def test_a_refused_partition_costs_nothing(tuned: str) -> None:
    session = Session()
    session.bind("x", np.ones((2, 2), dtype=np.int64))
    session.execute(Source("c", 'private c = bound("x") protecting rows budget epsilon 1\n'))
    with pytest.raises(Refusal):
        session.execute(Source("p", f"p = least_cost_partition(c, {tuned}) with epsilon 0.5\n"))
    session.execute(Source("s", "s = spent(c)\n"))
    assert session.names()["s"] == 0
