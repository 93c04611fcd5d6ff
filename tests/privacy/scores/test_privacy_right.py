"""`correct_count` and its kin: brute force over tiny tables, from a program's text to noise; and what they count."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from recording import Bench, Record, worst_losses

from jostle.diagnostics import Refusal
from jostle.kernels.rowprograms.decisions import ODDS
from jostle.source import Source
from jostle.tools.session import Session

HEADER = ("who", "a", "b", "c")
KINDS = (("Ann", "x", "0", "no"), ("Ann", "y", "1", "yes"), ("Bob", "x", "3", "yes"), ("Cem", "", "2", "no"),
         ("Dee", "y", "", "other"))  # fmt: skip
"""Two attributes and a class, with missing and unlisted cells; one person has two rows."""

MODELS = """
use trees
use classifiers
classes = ["no", "yes"]
always = tree_model(classes, Leaf([1, 2]))
asked  = tree_model(classes, tree_node("a", ["x", "y"], [Leaf([3, 1]), Leaf([1, 3])]))
summed = naive_bayes_model(classes, [{name: "b", values: list(0..3)}], [[[9, 4, 1, 0], [0, 2, 3, 8]]], 1)
linear = linear_model(classes, [{name: "b", values: list(0..3)}], [[[9, 4, 1, 0], [0, 2, 3, 8]]])
branched = branched_model({name: "a", values: ["x", "y"]}, [summed, majority_model(classes, [1, 5])])
models = [always, asked, summed, branched]
"""
SCORES = """
r = exp_mech(models, [correct_count(t, m, "c") for m in models]) with epsilon 1
n = laplace(correct_count(t, branched, "c")) with epsilon 1
x = noisy_max([correct_count(t, asked, "c"), gini(t, b, c)]) with epsilon 1
for k, p in partition(t, a) { z = noisy_max([correct_count(p, m, "c") for m in models]) with epsilon 0.5 }
y = noisy_max([correct_count(t[a = "x"], asked, "c"), correct_count(t[a = "y"], asked, "c")]) with epsilon 1
s = [laplace(surprise_count(t, m, "c")) with epsilon 1 for m in models]
k = [laplace(ranked_counts(t, m, "c", "yes")) with epsilon 1 for m in models]
o = noisy_max([surprise_count(t, summed, "c"), surprise_count(t, asked, "c")]) with epsilon 1
"""


def source(unit: str) -> str:
    return f"""
private t = table("t.csv") described by {{who: text, a: {{"x", "y"}}, b: 0..3, c: {{"no", "yes"}}}}
    protecting {unit} budget epsilon 1000
"""


def recorded(bench: Bench, unit: str, rows: list[tuple[str, ...]]) -> Record:
    bench.table(rows, HEADER)
    return bench.run(MODELS + source(unit) + SCORES)


def compared(one: Record, other: Record) -> int:
    total, tight = 0.0, 0
    for title, lost, charged in worst_losses(one, other):
        assert lost <= charged * (1 + 1e-9), title
        total += lost
        tight += lost > 0.9 * charged
    assert total <= one.spent * (1 + 1e-9)
    return tight


@pytest.mark.slow
def test_one_row_more(bench: Bench) -> None:
    contents = [some for size in range(3) for some in itertools.combinations_with_replacement(range(5), size)]
    found = {some: recorded(bench, "rows", [KINDS[i] for i in some]) for some in contents}
    pairs = [(some, tuple(sorted((*some, more)))) for some in contents for more in range(5) if len(some) < 2]
    assert sum(compared(found[one], found[other]) for one, other in pairs) > 20


def test_one_row_replaced(bench: Bench) -> None:
    for one, other, third in (KINDS[:3], KINDS[1:4], KINDS[2:]):
        compared(*(recorded(bench, "rows, public size", [one, x]) for x in (other, third)))


def test_all_rows_of_a_person(bench: Bench) -> None:
    for others in ([], [KINDS[2]], [KINDS[2], KINDS[4]]):
        compared(*(recorded(bench, "who up to 2 rows", [*others, *more]) for more in ([], KINDS[:2])))


def run(folder: Path, program: str, rows: list[tuple[str, ...]]) -> Session:
    (folder / "t.csv").write_text("\n".join(",".join(row) for row in [HEADER, *rows]) + "\n")
    session = Session(cwd=folder)
    session.execute(Source("p.jst", program))
    return session


def test_it_counts_the_rows_that_the_model_names(tmp_path: Path) -> None:
    """Rows without a described class count nowhere; those without a cell as the model answers them."""
    rng = np.random.default_rng(3)
    rows = [KINDS[i] for i in rng.integers(0, 5, 3_000)]
    program = (
        MODELS
        + source("rows").replace("1000\n", "1000000\n")
        + """
right = [laplace(correct_count(t, m, "c")) with epsilon 10000 for m in models]
surprises = [laplace(surprise_count(t, m, "c")) with epsilon 100000 for m in models]
ranked = [laplace(ranked_counts(t, m, "c", "yes")) with epsilon 10000 for m in models]
joined = laplace(correct_count(where(derive(t, d = b), d >= 1 or d < 1), asked, "c")) with epsilon 10000
"""
    )
    names = run(tmp_path, program, rows).names()
    surprises, ranked = list(names["surprises"]), [list(map(int, counts)) for counts in names["ranked"]]
    for model, counted in zip(names["models"], names["right"], strict=True):
        known = [row for row in rows if row[3] in ("no", "yes")]
        cells = {"a": [r[1] or None for r in known], "b": [float(r[2]) if r[2] else None for r in known]}
        said = np.array(model.predict(cells))
        assert counted == (said == np.array([r[3] for r in known])).sum()
        own, shares = np.array([row[3] == "yes" for row in known]), model.probabilities(cells)
        lost = -np.log(np.maximum(np.where(own, shares[:, 1], shares[:, 0]), 0.001)).sum()
        assert surprises.pop(0) == pytest.approx(lost + (len(rows) - len(known)) * math.log(1000), rel=2e-3)
        places = 2 * np.searchsorted(1 / (1 + np.exp(-ODDS)), shares[:, 1], side="right") + own
        assert ranked.pop(0) == np.bincount(places, minlength=2 * len(ODDS) + 2).tolist()
    described = [row for row in rows if row[2]]
    said = {"x": "no", "y": "yes", "": "no"}
    assert names["joined"] == sum(said[r[1]] == r[3] for r in described)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ('correct_count(t, 3, "c")', "takes a classifier, not a number"),
        ('correct_count(t, t, "c")', "is no classifier"),
        ('correct_count(3, always, "c")', "takes a table, not a number"),
        ('correct_count(t, always, "nothing")', "takes the class as a column"),
        ('correct_count(pick(t, b, c), asked, "c")', "has no column `a`"),
        ('correct_count(t, always, "who")', "are not public"),
        ('print(correct_count(t, always, "c"))', "cannot be printed"),
        ('1 if correct_count(t, always, "c") > 3 else 2', "cannot"),
        ('correct_count(t, always, "c") + 1', "cannot"),
        ('models[correct_count(t, always, "c")]', "cannot"),
        ('correct_count(t, [always, t], "c")', "takes a classifier, not a list"),
        ('surprise_count(t, tree_model(classes, [always.roots[0], asked.roots[0]]), "c")', "cannot work with this"),
        ('ranked_counts(t, linear, "c", "yes")', "cannot work with this classifier"),
        ('ranked_counts(t, always, "c", "perhaps")', "takes a class of the classifier"),
        ('ranked_counts(t, always, "c", t)', "takes a class of the classifier"),
        ('surprise_count(always, t, "c")', "takes a table, not a tree model"),
    ],
)
def test_what_it_refuses(tmp_path: Path, call: str, said: str) -> None:
    program = MODELS + source("rows") + f"u = {call}\n"
    with pytest.raises(Refusal) as found:
        run(tmp_path, program, list(KINDS))
    assert said in found.value.first.message
