"""A function of the library has its amount from whoever calls it: without one it spends nothing, and is refused.

Its variables are its own: what the columns of a table are called does not matter to it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from jostle import Session, resources
from jostle.language.builtins import BUILTINS
from jostle.source import Source
from jostle.syntax import parse
from jostle.syntax.walk import every

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


def words() -> list[str]:
    """What the library calls its variables, but for words that the language itself has."""
    own: set[str] = set()
    for file in sorted(resources.folder("stdlib").glob("*.jst")):
        for node in every(parse(Source(file.name, file.read_text()))):
            names = [*getattr(node, "binds", ()), *getattr(node, "params", ()), *getattr(node, "names", ())]
            own |= {str(getattr(one, "name", one)) for one in names} | {getattr(node, "name", None) or "x"}
    return sorted(own - {*TABLE, *BUILTINS, "words", "person"} - {word for word in own if not word.isidentifier()})


WORDS = TABLE.assign(words=ROWS.choice(["to be or", "not to be", "be"], 300), sex=ROWS.choice(["F", "M"], 300))
ASKED = {
    "statistics": [
        'crosstab(t, "c", "sex")', 'independence(t, "c", "sex")', 'compare(t, "y", "sex")', 'anova(t, "y", "c")',
        'describe_numeric(t, "y")', 'correlation(t, "a", "y")', 'linear_regression(t, "y", ["b", "sex"])',
        'logistic_regression(t, "sex", ["b", "c"])', 'poisson_regression(t, "a", ["sex", "c"])', 'top_k(t, "c", 2)',
        'quantiles(t, "y", [0.2, 0.5])', 'quantile_among(t, "y", 0.5, [10, 20, 30])',
    ],
    "effects": ['ate_stratified(t, "sex", "y", ["c"])', 'ate_weighted(t, "sex", "y", ["c"])'],
    "sequences": ['{{ select count(*) as n from ngrams(t, "words", 2, 3) groupby gram over {"to be", "be or"} }}'],
}  # fmt: skip


@pytest.mark.parametrize(("module", "call"), [(m, call) for m, calls in ASKED.items() for call in calls])
def test_a_column_may_have_the_name_of_a_variable_of_the_library(module: str, call: str) -> None:
    described = '{a: 0..9, b: 0.0..9.0, y: 0.0..50.0, c: {"p", "q", "r"}, words: text, sex: {"F", "M"}'
    others = words()
    assert {"by", "i", "many", "the_one"} <= {*others}
    answers = []
    for names in ([], others):
        session = Session()
        session.bind("rows", pd.concat([WORDS, pd.DataFrame(1, index=WORDS.index, columns=names)], axis=1))
        columns = "".join(f", {name}: 0..1" for name in names)
        text = f'use {module}\nt = bound("rows") described by {described}{columns}}}\nrelease asked = {call}\n'
        answers.append(session.run(Source("p.jst", text)).released_json())
    assert answers[0] == answers[1]
