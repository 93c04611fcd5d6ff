"""A function of the library has its amount from whoever calls it: without one it spends nothing, and is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from jostle import Session
from jostle.source import Source

ROWS = np.random.default_rng(5)
TABLE = pd.DataFrame({
    "a": ROWS.integers(0, 10, 300), "b": ROWS.uniform(0, 9, 300), "y": ROWS.uniform(0, 50, 300),
    "c": ROWS.choice(["p", "q", "r"], 300),
})  # fmt: skip
DECLARED = """private t = bound("t") described by {a: 0..9, b: 0.0..9.0, y: 0.0..50.0, c: {"p", "q", "r"}}
    protecting rows budget epsilon 1
h = histogram(t, x = a)
d = pick(t, a, c)
v = vectors(t, a, b)
"""
CALLS = {
    "regressions": ["ridge", "few_columns", "regression_tree", "best_column", "mean_only", "stagewise"],
    "classifiers": ["naive_bayes", "shrunk_bayes", "selected_bayes"],
    "classify": ["adaptive_classifier", "bayes_tree", "shrunk_tree"],
    "trees": ["jagannathan", "patil_singh", "disjoint_forest", "fletcher_islam"],
    "histograms": ["flat", "uniform", "hb", "dawa", "shrinkage", "mwem", "adaptive"],
    "mixtures": ["kmeans", "map_kmeans"],
    "best": ["best_histogram", "best_classifier", "best_regression", "best_clusters", "best_synthetic"],
}
ARGUMENTS = {
    "regressions": '(t, "y")', "classifiers": '(d, "c")', "classify": '(d, "c")', "trees": '(d, "c")',
    "histograms": "(h, identity(h))", "mixtures": "(v, 2)",
    "best_histogram": "(h, identity(h))", "best_classifier": '(t, "c")', "best_regression": '(t, "y")',
    "best_clusters": "(v, 2)", "best_synthetic": "(t)",
}  # fmt: skip


@pytest.mark.parametrize(("module", "name"), [(m, name) for m, names in CALLS.items() for name in names])
def test_a_call_without_an_amount_spends_nothing(module: str, name: str) -> None:
    session = Session()
    session.bind("t", TABLE)
    call = name + ARGUMENTS.get(name, ARGUMENTS.get(module, ""))
    result = session.attempt(Source("p.jst", f"use {module}\n{DECLARED}m = {call}\n"))
    assert not result.ok and {fault.kind for fault in result.diagnostics} == {"NoEpsilon"}, result.diagnostics
    spent = [amounts["epsilon"]["spent"] for amounts in session.budget().values()]
    assert spent in ([], ["0"])
