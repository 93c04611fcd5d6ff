"""Strategies, also hostile ones: the norms against unit vectors, and sums that would wrap if they could."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest

from jostle.diagnostics import Refusal
from jostle.privacy.mechanisms.linear import MOST_COUNT, Strategy, checked, every_cell

SHAPE = (3, 4)
CELLS = 12


def random_block(rng: random.Random) -> dict[str, Any]:
    kind = rng.choice(["groups", "matrix", "boxes"])
    if kind == "boxes":
        lows = [[rng.randrange(s) for s in SHAPE] for _ in range(rng.randrange(1, 5))]
        highs = [[rng.randrange(low, s) for low, s in zip(some, SHAPE, strict=True)] for some in lows]
        return {"kind": kind, "lows": lows, "highs": highs, "weight": rng.choice([1, 0.3, -2.5, 1e-9, 1e12])}
    size = rng.randrange(1, 6)
    labels = [rng.randrange(-1, size) for _ in range(CELLS)]
    if kind == "groups":
        weight = rng.choice([1, [rng.uniform(-3, 3) for _ in range(size)]])
        return {"kind": kind, "labels": labels, "size": size, "weight": weight}
    return {"kind": kind, "labels": labels, "matrix": [[rng.gauss(0, 1) for _ in range(size)] for _ in range(3)]}


def flat(strategy: Strategy, counts: np.ndarray) -> np.ndarray:
    return np.concatenate(strategy.answers(counts)).astype(object)


def test_the_norms_are_those_of_the_columns() -> None:
    rng = random.Random(5)
    for _ in range(150):
        strategy = Strategy([random_block(rng) for _ in range(rng.randrange(1, 4))], SHAPE)
        l1, l2 = strategy.norms
        base = np.array([rng.choice([0, 1, 7, 10**6]) for _ in range(CELLS)]).reshape(SHAPE)
        columns = []
        for at in itertools.product(*(range(s) for s in SHAPE)):
            more = base.copy()
            more[at] += 1
            columns.append([int(g) for g in flat(strategy, more) - flat(strategy, base)])
        assert l1 == max(sum(abs(g) for g in column) for column in columns)
        assert l2**2 >= max(sum(g * g for g in column) for column in columns) * (1 - 2**-45)
        assert l2 <= math.sqrt(max(sum(g * g for g in column) for column in columns)) * (1 + 2**-30)


def test_the_largest_counts_do_not_wrap() -> None:
    rng = random.Random(6)
    counts = np.full(SHAPE, 2**62)
    for _ in range(50):
        block = random_block(rng)
        strategy = Strategy([block], SHAPE)
        clamped = [MOST_COUNT] * CELLS
        for answer, exact in zip(flat(strategy, counts), by_hand(strategy.blocks[0], clamped), strict=True):
            assert int(answer) == exact and abs(exact) < 2**62


def by_hand(block: dict[str, Any], cells: list[int]) -> list[int]:
    """The answers in Python's whole numbers, which do not wrap."""
    if block["kind"] == "boxes":
        sizes = [
            math.prod(int(v) for v in high - low + 1) for low, high in zip(block["lows"], block["highs"], strict=True)
        ]
        return [block["weight"] * size * cells[0] for size in sizes]
    width = block["size"] if block["kind"] == "groups" else block["matrix"].shape[1]
    sums = [sum(c for c, g in zip(cells, block["labels"], strict=True) if g == k) for k in range(width)]
    if block["kind"] == "groups":
        return [int(w) * s for w, s in zip(block["weight"], sums, strict=True)]
    return [sum(int(w) * min(s, MOST_COUNT) for w, s in zip(row, sums, strict=True)) for row in block["matrix"]]


NAN, INF = math.nan, math.inf
GOOD = {"kind": "groups", "labels": [0] * CELLS, "size": 1, "weight": 1}


@pytest.mark.parametrize(
    "bad",
    [
        GOOD | {"weight": NAN},
        GOOD | {"weight": [INF]},
        GOOD | {"weight": -INF},
        GOOD | {"labels": [1] * CELLS},
        GOOD | {"labels": [-2] * CELLS},
        GOOD | {"labels": [NAN] * CELLS},
        GOOD | {"labels": [0]},
        GOOD | {"size": -1},
        GOOD | {"kind": "anything"},
        {"kind": "matrix", "labels": [0] * CELLS, "matrix": [[1.0], [NAN]]},
        {"kind": "matrix", "labels": [0] * CELLS, "matrix": [1.0]},
        {"kind": "boxes", "lows": [[0, 0]], "highs": [[3, 3]]},
        {"kind": "boxes", "lows": [[-1, 0]], "highs": [[2, 3]]},
        {"kind": "boxes", "lows": [[2, 2]], "highs": [[1, 3]]},
        {"kind": "boxes", "lows": [[0, 0]], "highs": [[1, 1]], "weight": NAN},
        {"kind": "boxes"},
    ],
)
def test_a_hostile_block_is_refused_wherever_it_stands(bad: dict[str, Any]) -> None:
    for blocks in ([bad], [GOOD, bad], [bad, GOOD]):
        with pytest.raises(Refusal):
            Strategy(blocks, SHAPE)


@pytest.mark.parametrize("weight", [1e-300, 1e300])
def test_weights_beyond_the_grid_are_refused(weight: float) -> None:
    with pytest.raises(Refusal):
        Strategy([GOOD | {"weight": weight}], SHAPE)


def test_every_cell_by_itself_is_checked_once_and_cannot_be_written_to() -> None:
    blocks = every_cell(CELLS)
    strategy = checked(blocks, SHAPE)
    assert checked(blocks, SHAPE) is strategy and checked(blocks, (CELLS,)) is not strategy
    counts = np.arange(CELLS).reshape(SHAPE)
    assert strategy.norms[0] == 1 and strategy.bits == 0
    assert flat(strategy, counts).tolist() == list(range(CELLS))
    with pytest.raises(ValueError, match="read-only"):
        blocks[0]["labels"][0] = 1
    weighted = [dict(blocks[0], weight=[3.0, *[1.0] * (CELLS - 1)])]
    assert checked(weighted, SHAPE).norms[0] == 3 << checked(weighted, SHAPE).bits
