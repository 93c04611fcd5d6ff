"""What a run is sure to refuse is refused before it pays: nothing is opened, and what depends on an answer passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from jostle.check.dry.interpreter import DryInterpreter
from jostle.source import Source
from jostle.tools.session import Session

BEFORE = (
    "use selection\nuse statistics\nuse trees\nuse classifiers\nuse workloads\nuse best\n"
    "use mixtures\nuse graphical\nuse linear_algebra\nuse ising\n"
    'private t = table("nowhere.csv") described by {age: 16..79, sex: {"F", "M"}, city: {"Ames", "Cork"}, note: text, '
    "weight: 0.0..99.0} protecting rows budget epsilon 9\n"
    'private visits = table("visits.csv") described by {city: {"Ames", "Cork"}} protecting id up to 3 rows '
    "budget epsilon 9\n"
    "n = {{ select count(*) from t with epsilon 0.1 }}\n"
    "ages = histogram(t, x = age)\n"
    "both = histogram(t, x = age / 8, y = city)\n"
    "v = vectors(t, age, weight, radius = 1)\n"
    "w = above_threshold(t, 100) with epsilon 0.1\n"
    "few = pick(t, sex, city)\n"
)
GIVEN = (  # totals that stand in a file
    'private p = table("p.csv") described by {city: {"Ames", "Cork"} never missing, age: 0..9 never missing, '
    "sex: 0..1 never missing} protecting rows budget epsilon 1\n"
    'cities = {{ select sum(n) as n from table("cities.csv") groupby city }}\n'
    'sexes = {{ select sum(n) as n from table("sexes.csv") groupby sex }}\n'
    "jointly nonnegative whole with epsilon 1:\n    a = {{ select count(*) as n from p groupby city given cities }}\n"
    "    b = {{ select count(*) as n from p groupby "
)
SURE = {
    "x = largest([size(t), size(t)], 3) with epsilon 1": ("ValueError", "of 2 scores the largest 3"),
    "x = above_threshold(t, 100, most = 0) with epsilon 1": ("ValueError", "1 to 1,048,576 answers"),
    'x = above_threshold(t, 100, tells = "foo") with epsilon 1': ("ValueError", "does not tell `foo`"),
    "x = above(t, 3)": ("TypeError", "`above` takes a watch, not a number"),
    'x = frequent(t, "note", 50) with epsilon 1': ("AssertionFailed", "`frequent` needs"),
    'x = frequent(t, "nope", 50) with epsilon 1': ("AssertionFailed", "no column nope"),
    "d = pick(t, sex, city)\nT = one_leaf(columns(d))\nx = noisy_max(entropy(d, T, sex)) with epsilon 1": (
        "UnboundedSum", "without a public bound on its rows"
    ),
    "x = {{ select quantile(age, 1.5) from t with epsilon 1 }}": ("ValueError", "between 0 and 1"),
    "x = {{ select count(*) from t with epsilon 1 via foo }}": ("NameError", "unknown mechanism `foo`"),
    "x = {{ select median(age) from t with epsilon 1 via laplace }}": ("TypeError", "is a selection"),
    "x = {{ select count(*) from t join visits on city with epsilon 1 }}": ("TypeError", "needs a bound"),
    "x = {{ select count(*) as n from t groupby city limit 2.5 with epsilon 1 }}": ("ValueError", "whole number"),
    "x = {{ select count(*) from t groupby city over [1, 2] with epsilon 1 }}": ("TypeError", "mixes text"),
    "x = limited(t, -1)": ("BadAmount", "above zero"),
    "x = laplace([ages, 3]) with epsilon 1": ("TypeError", "a list of cubes"),
    "jointly with epsilon 1:\n    a = {{ select count(*) from t }}\n    b = {{ select count(*) from visits }}": (
        "TypeError", "different ones"
    ),
    "jointly with epsilon 1:\n    a = {{ select count(*) from t where age < 20 and age > 50 }}\n"
    "    b = {{ select count(*) as n from t where age > 30 groupby sex }}": ("ValueError", "holds for no row"),
    GIVEN + "sex given sexes }}\n    c = {{ select count(*) as n from p groupby city, sex, age }}": (
        "TypeError", "divide one another crosswise"
    ),
    GIVEN + "city, age }}\n    c = {{ select count(*) as n from p groupby sex, age }}": (
        "TypeError", "no select of this block has the groups that all its counts are sums of"
    ),
    "jointly with error 50:\n    a = {{ select sum(weight) from t where age == 20 and age == 30 }}\n"
    "    b = {{ select count(*) from t where age > 30 }}": ("ValueError", "holds for no row"),
    "def f(k): return largest([size(t)], k)\nfor i in [1, 2]: x = f(i) with epsilon 1": ("ValueError", "the largest 2"),
    "x = best_clusters(vectors(t, age), 2.5) with epsilon 1": ("ValueError", "clusters are a whole number"),
    'x = best_clusters(vectors(t, age, norm = "sup"), 2) with epsilon 1': ("AssertionFailed", "a Euclidean length"),
    "x = best_mixture(vectors(t, age), 65) with epsilon 1": ("ValueError", "groups of rows"),
    "x = best_synthetic(pick(t, age, sex), 0) with epsilon 1": ("ValueError", "rows are a whole number"),
    "x = best_clusters(t, 2) with epsilon 1": ("NameError", "has no `norm`"),
    "if n > 3: y = 1\nassert 1 == 2": ("AssertionFailed", "this does not hold"),
    "s = 0\nfor i in 1..100000: s = i\nassert false": ("AssertionFailed", "this does not hold"),
    "x = above(3, w)": ("TypeError", "a public number needs no watch"),
    "def f(d, k) = {score: {{ select count(*) as n from d groupby sex }}}\nx = best_run(t, f, [1], 9) with epsilon 1": (
        "TypeError", "a number, and this is a grouped result"
    ),
    "x = w.lft": ("NameError", "a watch for a threshold has no `lft`"),
    'x = w.left + "a"': ("TypeError", "a number and a text"),
    "x = above(visits, w)": ("TypeError", "paid for on other data"),
    'x = [compare(t, y, "sex") with epsilon 1 for y in ["age", "aeg"]]': ("NameError", "there is no column `aeg`"),
    "x = above(w, t)": ("TypeError", "`above` asks a watch, not a private table"),
    "x = w + 1": ("TypeError", "a watch for a threshold and a number"),
    "x = dawa(ages, prefixes(ages)) with epsilon 1\nprint(error(x))": ("TypeError", "the error of `dawa` depends"),
    "print(band(mwem(ages, prefixes(ages)) with epsilon 1))": ("TypeError", "the error of `mwem` depends"),
    "x = hb(ages, prefixes(both)) with epsilon 1": ("ValueError", "8 × 2 cells, and the cube has 64 cells"),
    "x = dawa(ages, prefixes(both)) with epsilon 1": ("ValueError", "8 × 2 cells, and the cube has 64 cells"),
    "x = best_histogram(ages, prefixes(both)) with epsilon 1": ("ValueError", "and the cube has 64 cells"),
    "x = best_histogram() with epsilon 1": ("TypeError", "takes 1 to 2 arguments: `cube` is missing"),
    "x = best_histogram(t, prefixes(ages)) with epsilon 1": ("TypeError", "takes a cube of counts, not a table"),
    'x = best_classifier(few, "nope") with epsilon 1': ("NameError", "there is no column `nope`"),
    'x = best_classifier(t, "sex") with epsilon 1': ("OpenKeys", "the values of `note` are not public"),
    'x = best_regression(few, "nope") with epsilon 1': ("AssertionFailed", "the table has no column nope"),
    'x = best_regression(few, "sex") with epsilon 1': ("AssertionFailed", "sex is no number with a described range"),
    'x = best_regression(t, "age") with epsilon 1': ("AssertionFailed", "note needs a described range"),
    'x = best_regression(few) with epsilon 1': ("TypeError", "`best_regression` takes 2 arguments: `y` is missing"),
    'x = friedman_schuster(t, "sex") with epsilon 1': ("OpenKeys", "the values of `note` are not public"),
    'x = friedman_schuster(few, "sex", -1) with epsilon 1': ("ValueError", "levels are a whole number from 0"),
    'x = jagannathan(few, "sex", 2.5) with epsilon 1': ("ValueError", "trees are a whole number from 1 to 1,000"),
    'x = quantile_cuts(t, "age", 1) with epsilon 1': ("ValueError", "bins are a whole number from 2 to 100, not 1"),
    'x = kmeans(v, "2") with epsilon 1': ("ValueError", 'clusters are a whole number from 1 to 64, not "2"'),
    "x = factor_analysis(v, 2) with epsilon 1": ("ValueError", "factors of 2 columns are a whole number from 1 to 1"),
    "x = grid_kmeans(v, ages, 2) with epsilon 1": ("AssertionFailed", "a dimension for each column"),
    "x = ising_moments(v) with epsilon 1": ("ValueError", 'rows are `vectors(…, norm = "sup")` here'),
    "x = learn_tree(t) with epsilon 1": ("OpenKeys", "the values of `note` are not public"),
    "x = learn_tree(pick(t, sex, weight)) with epsilon 1": ("TypeError", "`weight` is real, and has no list of values"),
    "x = marginals(both, 5)": ("ValueError", "a cube of 2 dimensions has no marginals over 5 of them"),
    'x = marginals(both, [["x"], ["x"]])': ("ValueError", "different lists, each of which names a dimension once"),
    'x = marginals(both, [["nope"]])': ("NameError", "the cube has no dimension `nope`"),
    "x = union([prefixes(ages), prefixes(both)])": ("ValueError", "these are for 64 cells, 8 × 2 cells"),
    "x = union([prefixes(ages), prefixes(ages)], [1])": ("ValueError", "2 workloads takes 2 weights, not 1"),
    "x = ranges(ages, 1e9)": ("ValueError", "a whole number of queries, 1 to 1,048,576"),
    'x = rectangles(both, "10")': ("ValueError", "a whole number of queries, 1 to 1,048,576"),
    "x = predicates(ages, [x == v for v in 1..1e9])": ("ValueError", "1,000,000,000 predicates are too many"),
    "x = {{ select median(age) as m from t groupby floor(weight * 1000), age with epsilon 1 }}": (
        "ValueError", "a median in each of 6,336,064 groups is too much to choose"
    ),
    "x = {{ select count(*) as n from t groupby floor(weight * 9999), age with epsilon 1 }}": (
        "ValueError", "63,353,728 groups are too many"
    ),
    "x = histogram(t, floor(weight * 9999), floor(weight * 9999))": ("ValueError", "is too large to hold"),
    "jointly nonnegative with epsilon 1:\n    x = {{ select count(*) as n from t groupby floor(weight * 9000) }}\n"
    "    y = {{ select count(*) as n from t groupby age, sex, city }}": (
        "ValueError", "too many for none of them to be negative"
    ),
    "x = synthetic_mixture(1e9, 2)": ("ValueError", "a mixture has 1 to 256 columns"),
    'x = noisy_sum(v, "coordinates", norm = {a: 1}) with epsilon 1': ("TypeError", "`norm` is a text, not a record"),
    'x = friedman_schuster(few, "sex", 3, "gini") with epsilon 1': ("TypeError", "takes a function, not a text"),
    'x = naive_bayes(few, "sex", 0) with epsilon 1': ("AssertionFailed", "a weight is above 0"),
    'x = frequent(t, "weight", 50) with epsilon 1': ("AssertionFailed", "listed values or whole numbers of weight"),
    'x = equal_cuts(few, "nope")': ("NameError", "there is no column `nope`"),
    'x = noisy_moments(v) with epsilon 1\ny = regression(v, x, "nope")': ("AssertionFailed", "have no column nope"),
}  # fmt: skip


@pytest.mark.parametrize("line", SURE)
def test_sure(line: str) -> None:
    (fault,) = Session().checked(Source("p.jst", BEFORE + line + "\n"), tries=False)[0]
    kind, words = SURE[line]
    assert fault.kind == kind and words in fault.message
    assert fault.span is not None and fault.span.source.name == "p.jst" and fault.span.line > BEFORE.count("\n")


PASSED = (
    "def f(d, k):\n    m = {{ select count(*) from d with 1/2 }}\n    if m > k: return {score: m, more: k}\n"
    "    return {score: {{ select count(*) from d }}}\nx = best_run(t, f, [1, 2], 5) with epsilon 1",
    "def f(d, k):\n    m = learn_tree(d).sample(50, seed = k) with 1/2\n"
    "    return {score: {{ select count(*) from d }}, rows: m}\nx = best_run(few, f, [1, 2], 5) with epsilon 1",
    GIVEN + "sex }}\n    c = {{ select count(*) as n from p groupby city, sex, age }}",
    "def f(d, k) = {score: {{ select count(*) from d where age > k }}}\nx = best_run(t, f, [1, 2], 5) with epsilon 1",
    'x = [compare(t, y, "sex") with epsilon 1 for y in ["age", "aeg"] if y == "age"]',
    "x = [above(t, w) for i in 1..3 if w.left > 0]\nassert w.left == 0 and len(x) == 1",
    "if n > 100: assert n < 10",
    "assert n > 10 and left(t) == 3",
    "with epsilon 1:\n    a = {{ select count(*) from t with 1/2 }}\n    b = {{ select count(*) from t }}",
    "def f(k):\n    if k > 3: return 1\n    assert false\nx = f(n)",
    "for i in 1..n: assert false",
    'x = {{ select count(*) from table("towns.csv") }}\nassert x == 3',
    'towns = table("towns.csv")\nassert len(towns) == 3',
    "x = best_histogram(ages, prefixes(ages)) with epsilon 1\nassert x[0] > 3",
    "x = best_clusters(vectors(t, age), 3) with epsilon 1\nassert x.size > 3",
    "print(explain(best_mixture))\nagain = retrained(best_mixture, on = [])\nsaid = best_mixture.evaluate()",
    'private d = dataset("nowhere")\nx = {{ select count(*) from d with epsilon 1 }}',
    'private c = counts("nowhere.npy") protecting rows budget epsilon 1\nx = laplace(c) with epsilon 1',
    'private b = bound("nothing") described by {age: 0..9} protecting rows budget epsilon 1\nassert spent(b) == 0',
)


@pytest.mark.parametrize("line", PASSED)
def test_what_depends_on_answers_or_files_passes(line: str) -> None:
    assert [fault.message for fault in Session().check(Source("p.jst", BEFORE + line + "\n"))] == []


def test_a_run_pays_nothing_before_it(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age\n3\n", encoding="utf-8")
    session = Session(cwd=tmp_path)
    private = 'private t = table("t.csv") described by {age: 0..9} protecting rows budget epsilon 1\n'
    paid = "n = {{ select count(*) from t with epsilon 0.5 }}\n"
    result = session.attempt(Source("p.jst", private + paid + "x = limited(t, -1)\n"))
    assert [fault.kind for fault in result.diagnostics] == ["BadAmount"] and result.budget == {}
    assert session.attempt(Source("p.jst", private + paid)).budget["t"]["epsilon"]["spent"] == "0.5"


def test_parts_of_the_library_that_nothing_calls_are_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[str] = []
    uncalled = DryInterpreter.uncalled

    def note(self: DryInterpreter) -> None:
        walked.extend(function.body.span.source.name for function in self.functions.values())
        uncalled(self)

    monkeypatch.setattr(DryInterpreter, "uncalled", note)
    assert Session().check(Source("p.jst", "use best\nf = lambda x: x + 1\n")) == []
    assert walked == ["p.jst"]
