"""`misfit` and `closeness` of boxes, marginals, predicates and unions: how far one row moves them, by brute force."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.events import Stream
from jostle.kernels.workloads import boxes as workloads
from jostle.kernels.workloads import marginals
from jostle.kernels.workloads.boxes import Workload
from jostle.privacy.kernel.handles import Cube
from jostle.privacy.reading.vault import kernel_over
from jostle.privacy.scores import values_of
from jostle.privacy.scores.cells import closeness, misfit
from jostle.readers.duckdb import LocalDuckDb

SHAPE = (3, 2, 2)
FLAGS = list(np.random.default_rng(0).random((6, *SHAPE)) < 0.5)
QUERIES: list[Workload] = [
    workloads.rectangles(SHAPE, 15, 1),
    workloads.prefixes(SHAPE),
    marginals.marginals(SHAPE, 1),
    marginals.marginals(SHAPE, [(0, 2), ()]),
    marginals.predicates(SHAPE, FLAGS),
    marginals.union([marginals.predicates(SHAPE, FLAGS), marginals.marginals(SHAPE, 2)], [5, 0.1]),
]


@pytest.mark.parametrize("queries", QUERIES, ids=lambda w: w.kind)
def test_one_row_moves_a_score_by_at_most_one(queries: Workload) -> None:
    (kernel, data), rng = kernel_over(LocalDuckDb(), Stream()), np.random.default_rng(1)
    for _ in range(4):
        counts, estimate = rng.integers(0, 4, SHAPE), rng.normal(2, 3, SHAPE)
        found = []
        for moved in (None, *np.ndindex(*SHAPE)):
            cells = counts.copy()
            if moved is not None:
                cells[moved] += 1
            cube = Cube((), data.keep(cells), ("x", "y", "z"), SHAPE)
            made = misfit(cube, queries.sums(), estimate)
            assert made.length == queries.size and made.sensitivity == 1
            values = values_of(kernel._reader, [made])
            assert np.abs(values - np.abs(queries.answers(cells) - queries.answers(estimate))).max() <= 0.5
            found.append(values)
        assert max(np.abs(other - found[0]).max() for other in found) <= 1


@pytest.mark.parametrize("queries", QUERIES, ids=lambda w: w.kind)
def test_one_row_moves_closeness_by_the_root_of_the_share_of_queries_that_count_it(queries: Workload) -> None:
    (kernel, data), rng = kernel_over(LocalDuckDb(), Stream()), np.random.default_rng(2)
    largest = 0.0
    for spread in (0.0, 3.0, 1e9):
        counts = rng.integers(0, 4, SHAPE)
        answers = queries.answers(counts) + spread * rng.normal(size=queries.size)
        found = []
        for moved in (None, *np.ndindex(*SHAPE)):
            cells = counts.copy()
            if moved is not None:
                cells[moved] += 1
            cube = Cube((), data.keep(cells), ("x", "y", "z"), SHAPE)
            made = closeness(cube, queries.sums(), answers)
            (value,) = values_of(kernel._reader, [made]).tolist()
            exact = -float(np.sqrt(np.mean((queries.answers(cells) - answers) ** 2)))
            assert abs(value / 2**made.bits - exact) <= 2.0**-made.bits * (2 + abs(exact) * 1e-9)
            found.append(value)
        moved_by = max(abs(value - found[0]) for value in found)
        assert moved_by <= made.sensitivity
        largest = max(largest, moved_by / made.sensitivity)
    assert largest > 0.99  # near the truth a row moves it by all of that


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "boxes", "lows": [[0, 0, 0]], "highs": [[3, 0, 0]]},
        {"kind": "groups", "labels": [0] * 11, "size": 1},
        {"kind": "groups", "labels": [1] * 12, "size": 1},
        {"kind": "groups", "labels": [-1] * 12, "size": 1},
        {"kind": "sets", "labels": [0] * 11 + [2], "inside": [[True, False]]},
    ],
    ids=str,
)
def test_queries_that_do_not_fit_are_refused(wrong: dict[str, object]) -> None:
    _, data = kernel_over(LocalDuckDb(), Stream())
    cube = Cube((), data.keep(np.zeros(SHAPE, dtype=np.int64)), ("x", "y", "z"), SHAPE)
    with pytest.raises(Exception, match="quer"):
        misfit(cube, [wrong], np.zeros(SHAPE))
    with pytest.raises(Exception, match="quer"):
        closeness(cube, [wrong], np.zeros(SHAPE))


def test_weights_of_a_query_count_once() -> None:
    """`inside` is read as true or false: no number in it makes a row count twice."""
    kernel, data = kernel_over(LocalDuckDb(), Stream())
    cube = Cube((), data.keep(np.array([3, 1, 0, 2])), ("x",), (4,))
    said = {"kind": "sets", "labels": [0, 0, 1, 1], "inside": np.array([[7, 0], [2, 3]])}
    assert values_of(kernel._reader, [misfit(cube, [said], np.zeros(4))]).tolist() == [4, 6]
