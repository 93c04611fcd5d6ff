"""Every score of the language, and every Utility of the library, is what NumPy calculates of the same real rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from jostle.language.builtins import BUILTINS, Effect
from jostle.run.values import Part, Record
from jostle.source import Source
from jostle.tools.session import Session
from tests.stdlib.test_utilities_by_hand import FRAME, SCHEMA, C, X, Z

USES = (
    "best", "cuts", "trees", "workloads", "graphical", "gradual", "features", "row_vectors", "mixtures", "classifiers",
    "regressions",
)  # fmt: skip
BINS = np.floor(4 * X).astype(int)
CELLS = np.array([(b == BINS).sum() for b in range(-4, 5)])
SUMS = np.cumsum(CELLS)
CUBE = "histogram(t, k = floor(4 * x))"
GUESS = np.arange(9) * 30 + 100


def asked(text: str, private: bool) -> Any:
    session = Session()
    session.bind("t", FRAME)
    given = "protecting rows budget epsilon 1e9" if private else ""
    result = session.attempt(Source("s.jst", "".join(f"use {name}\n" for name in USES) + f"""
{"private " if private else ""}t = bound("t") described by {SCHEMA} {given}
h = {CUBE}
release a = {text} {"with epsilon 1e6" if private else ""}
"""))  # fmt: skip
    assert result.ok, result.diagnostics
    return result["a"]


def by_bins(loss: Any) -> float:
    """Minus the sum over bins of x of rows times a function of the shares of c."""
    parts = [C[b == BINS] for b in np.unique(BINS)]
    return -sum(len(part) * loss([(part == v).mean() for v in "pq"]) for part in parts)


def entropy(shares: list[float]) -> float:
    return -sum(p * math.log2(p) for p in shares if p > 0)


def nearest(rows: np.ndarray) -> int:
    return int(np.argmax(rows))


RADIUS = math.sqrt(2)
COORDINATES = np.array([X.sum(), (2 * Z - 1).sum()]) / RADIUS

BY_HAND = {
    "size": ("laplace(size(t))", len(X)),
    "nonzero": ("laplace(nonzero(h))", (CELLS > 0).sum()),
    "largest_cell": ("laplace(largest_cell(h))", CELLS.max()),
    "largest_marginal": (
        "laplace(largest_marginal(histogram(t, k = floor(4 * x), l = floor(5 * z))))",
        max(CELLS.max(), *(np.floor(5 * Z) == b for b in range(5)), key=np.sum).sum(),
    ),
    "l2": ("laplace(l2(h))", np.linalg.norm(CELLS)),
    "l1_to_uniform": ("laplace(l1_to_uniform(h))", np.abs(CELLS - CELLS.mean()).sum() / 2),
    "total_variation": ("laplace(total_variation(h))", np.abs(np.diff(CELLS)).sum()),
    "misfit": (f"noisy_max(misfit(h, prefixes(h), {GUESS.tolist()}))", nearest(np.abs(SUMS - np.cumsum(GUESS)))),
    "distance": (f"laplace(distance(h, {GUESS.tolist()}, 3))", np.abs(CELLS - GUESS).sum() - 3),
    "distances": (
        f"noisy_max(distances(derive(t, k = floor(4 * x)), [[\"c\"], [\"k\"]], [[0, 0], {GUESS.tolist()}], [0, 3]))",
        nearest(np.array([len(X), np.abs(CELLS - GUESS).sum() - 3])),
    ),
    "closeness": (
        f"laplace(closeness(h, prefixes(h), {GUESS.tolist()}))", -math.sqrt(((SUMS - GUESS) ** 2).mean())
    ),
    "coordinate_scores": (
        'noisy_max(coordinate_scores(vectors(t, x, z), "coordinates"))',
        nearest(np.concatenate([COORDINATES, -COORDINATES])),
    ),
    "row_score": (
        'laplace(row_score(vectors(t, x), "log_density", '
        "{means: [[0]], factors: [[[1]]], offsets: [0], low: -3, high: 3}, bound = 6))",
        (norm.logpdf(X) + 3).sum() / 6,
    ),
    "correct_count": None, "surprise_count": None, "ranked_counts": None,
    "refinable": ("refine(refinable(sum_of(t, x)))", X.sum()),
    "sum_of": ("laplace(sum_of(t, x))", X.sum()),
    "leaf_counts": (
        'laplace(leaf_counts(t, one_leaf(columns(pick(t, c))), columns(pick(t, c))[0]))',
        [(C == "p").sum(), (C == "q").sum()],
    ),
    "subtrees": (
        'noisy_max(subtrees(t, one_leaf([]), columns(pick(t, c))[0]))', [0, (C == "q").sum() > (C == "p").sum()],
    ),
    "level_sizes": ('laplace(level_sizes(t, one_leaf(columns(pick(t, c)))))', [len(X)]),
    "entropy": ("laplace(entropy(t, floor(4 * x), c, most = 5000))", by_bins(entropy)),
    "gini": ("laplace(gini(t, floor(4 * x), c))", by_bins(lambda p: 2 * p[0] * p[1])),
    "max_class": ("laplace(max_class(t, floor(4 * x), c))", by_bins(lambda p: -max(p))),
}  # fmt: skip
"""What is asked of each score and what it has to be; `correct_count` and its kin stand in `test_utilities_by_hand`."""


def test_the_table_has_every_score() -> None:
    assert set(BY_HAND) == {name for name, b in BUILTINS.items() if b.effect is Effect.SCORES}


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("name", [name for name, told in BY_HAND.items() if told])
def test_a_score_of_real_columns_is_what_a_calculation_says(name: str, private: bool) -> None:
    text, expected = BY_HAND[name]
    np.testing.assert_allclose(np.ravel(asked(text, private)).astype(float), np.ravel(expected), atol=0.02)


UTILITIES = {
    "answers_near": "closeness of test_utilities_by_hand",
    "ranked_on_test": "noisy_auc of test_stdlib_classifiers",
    "right_on_test": "accuracy", "likely_rows": "log_likelihood", "sure_and_right": "below",
}  # fmt: skip
"""The Utilities of the library, and what each is made of, which `test_utilities_by_hand` calculates."""


def test_the_table_has_every_utility() -> None:
    session = Session()
    session.execute(Source("u", "".join(f"use {name}\n" for name in USES)))
    known = {name for name, value in session.names().items() if isinstance(value, Part) and value.kind == "Utility"}
    assert known == set(UTILITIES)


def test_the_score_of_an_interval_is_its_width_and_what_it_misses_by() -> None:
    session = Session()
    session.execute(Source("u", "use best\n"))
    score = session.names()["sure_and_right"].run
    told = [
        session._interp.call(score, [Record(effect=e), Record(low=1.0, high=3.0)], {}, None) for e in (0.5, 2, 3.25)
    ]
    assert told == pytest.approx([-2 - 40 * 0.5, -2, -2 - 40 * 0.25])
