"""The classifiers of the standard library: what they cost, what they say, and what they refuse."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from audit_classifiers import at_once
from harness import Case, audit

from jostle.privacy.kernel import exposures
from jostle.simulate import SeededNoise
from jostle.source import Source
from jostle.tools.session import Result, Session

DECLARED = """
use classifiers
use classify
private t = bound("t") described by {{c: {{"no", "yes"}}, a: {{"p", "q", "r"}}, b: 0..3, x: 0.0..10.0}}
    protecting rows budget {}
u = bound("u") described by {{c: {{"no", "yes"}}, a: {{"p", "q", "r"}}, b: 0..3, x: 0.0..10.0}}
cuts = equal_cuts(t, "c", 5)
D = in_bins(t, cuts)
P = in_bins(u, cuts)
"""
OPTIONS = (
    "majority(D, k)", "naive_bayes(D, k)", "tempered_bayes(D, k)", "shrunk_bayes(D, k)", "adaptive_classifier(D, k)",
    "selected_bayes(D, k, 1)", "class_means(D, k)",
    "bayes_tree(D, k, 2)",
    "linear(D, k)",
)  # fmt: skip


def rows(many: int, seed: int) -> dict[str, Any]:
    """`a` decides, nearly always; `x` says a little."""
    rng = np.random.default_rng(seed)
    a = rng.choice(["p", "q", "r"], many)
    c = np.where((a == "r") ^ (rng.random(many) < 0.1), "yes", "no")
    x = np.clip(rng.normal(5 + (c == "yes"), 2, many), 0, 10)
    return {"c": c, "a": a, "b": rng.integers(0, 4, many), "x": x}


def attempt(program: str, budget: str = "epsilon 100", many: int = 3000) -> Result:
    session = Session()
    session.bind("t", rows(many, 1))
    session.bind("u", rows(2000, 2))
    return session.attempt(Source("p.jst", DECLARED.format(budget) + 'k = "c"\n' + program))


@pytest.mark.parametrize("option", OPTIONS)
def test_each_spends_its_allotment_and_is_right(option: str) -> None:
    program = f"m = {option} with epsilon 2\nrelease right = accuracy(P, m, k)\nrelease m"
    result = attempt(program)
    assert result.ok, result.diagnostics
    assert result.budget["t"]["epsilon"]["spent"] == "2"
    right = result["right"]
    assert abs(right - 0.64) < 0.05 if option.startswith("majority") else right > 0.85, right
    assert {"classes", "branches", "models"} & result.released_json()["m"].keys()
    assert str(result["m"])


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize(("budget", "amount"), [("rho 4", "rho 2"), ("epsilon 8, delta 1e-5", "epsilon 4 delta 1e-6")])
def test_each_runs_under_every_budget(option: str, budget: str, amount: str) -> None:
    result = attempt(f"m = {option} with {amount}\nrelease right = accuracy(P, m, k)", budget)
    assert result.ok, result.diagnostics
    assert abs(result["right"] - 0.64) < 0.05 if option.startswith("majority") else result["right"] > 0.85
    if budget.startswith("rho"):
        assert 1.999 < float(result.budget["t"]["rho"]["spent"]) <= 2


@pytest.mark.parametrize("option", OPTIONS)
def test_on_public_rows_each_is_exact(option: str) -> None:
    program = f"m = {option.replace('(D', '(P')}\nrelease m"
    first, second = (attempt(f"with epsilon 1 {{\n{program}\n}}") for _ in range(2))
    assert first.ok, first.diagnostics
    assert first.budget["t"]["epsilon"]["spent"] == "0"
    if not option.startswith(
        ("adaptive", "selected", "bayes_tree")
    ):  # an exponential mechanism mixes among public numbers too
        assert first.released_json() == second.released_json()


@pytest.mark.parametrize(
    ("budget", "amount"), [("rho 2", "rho 0.5"), ("epsilon 4, delta 1e-5", "epsilon 1 delta 1e-6")]
)
def test_gaussian_forms_come_with_the_budget(budget: str, amount: str) -> None:
    program = (
        f"m = naive_bayes(D, k) with {amount}\nl = linear(D, k) with {amount}\ns = shrunk_bayes(D, k) with {amount}\n"
        "release r = min([accuracy(P, m, k), accuracy(P, s, k)])"
    )
    result = attempt(program, budget)
    assert result.ok, result.diagnostics
    assert result["r"] > 0.85
    assert {e.fields["mechanism"] for e in result.trace if e.kind == "measure"} == {"gaussian"}


def test_a_model_over_raw_columns_is_the_one_over_bins() -> None:
    program = """
m = naive_bayes(D, k) with epsilon 1
raw = on_raw(m, cuts)
release both = [accuracy(P, m, k), accuracy(u, raw, k)]
release said = raw.predict({a: "r", b: 1, x: 6.2})
release sure = raw.probabilities({a: "r", b: 1, x: 6.2})
release kinds = [[c.name, c.kind] for c in columns(t)]
release cut = keys(cuts)
"""
    result = attempt(program)
    assert result.ok, result.diagnostics
    assert result["both"][0] == result["both"][1]
    assert result["said"] == "yes"
    assert result["sure"].sum() == pytest.approx(1)
    assert result["kinds"] == [["c", "listed"], ["a", "listed"], ["b", "integer"], ["x", "real"]]
    assert result["cut"] == ["x"]


def test_rows_right_of_a_model_over_raw_columns_are_counted_in_bins() -> None:
    """Real columns, and whole numbers of more values than can be listed, are cut where the model cuts them."""
    program = """
wide = derive(t, x = floor(1000000 * x))
m = naive_bayes(in_bins(wide, equal_cuts(wide, k)), k) with epsilon 1
raw = on_raw(m, equal_cuts(wide, k))
release raw_right = noisy_accuracy(wide, raw, k) with epsilon 25
release bins_right = noisy_accuracy(in_bins(wide, equal_cuts(wide, k)), m, k) with epsilon 25
real = on_raw(naive_bayes(D, k) with epsilon 1, cuts)
release real_right = noisy_accuracy(t, real, k) with epsilon 10
"""
    result = attempt(program)
    assert result.ok, result.diagnostics
    assert abs(result["raw_right"]["accuracy"] - result["bins_right"]["accuracy"]) < 0.005  # 15 rows
    assert result["real_right"]["accuracy"] > 0.85


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        ("m = majority(P, k)\nx = accuracy(D, m, k)", "PrivateValue"),
        ("m = majority(P, k)\nx = accuracy(u, m, \"z\")", "NameError"),
        ("x = accuracy(u, 3, k)", "TypeError"),
        ("x = accuracy(3, majority(P, k), k)", "TypeError"),
        ("m = naive_bayes(P, k)\nx = accuracy(pick(P, c, a), m, k)", "NameError"),
        ("x = laplace([histogram(t, a), histogram(u, a)]) with epsilon 1", "TypeError"),
        ("x = laplace([]) with epsilon 1", "TypeError"),
        ("x = laplace([histogram(D, a), t]) with epsilon 1", "TypeError"),
        ("x = simulated_tables(0)", "ValueError"),
        ("x = simulated_tables(2, rows = 4..10)", "ValueError"),
    ],
)  # fmt: skip
def test_refusals(program: str, kind: str) -> None:
    result = attempt(program)
    assert not result.ok
    assert result.diagnostics[0].kind == kind, result.diagnostics[0]
    assert all(budget["epsilon"]["spent"] == "0" for budget in result.budget.values())


def test_simulated_tables_are_public_and_the_same_each_time() -> None:
    program = """
use classify
made = simulated_tables(5, 3, rows = 100..300)
release sizes = [{{ select count(*) from d.database }} for d in made]
release tests = [{{ select count(*) from d.test }} for d in made]
with epsilon 1 { release right = [right_on_test(d, naive_bayes(d.database, d.class)) for d in made] }
release facts = [[f(made[0]) for f in [cells_of]][0], len(columns(made[0].database))]
"""
    one, other = attempt(program), attempt(program)
    assert one.ok, one.diagnostics
    assert one.released_json() == other.released_json()
    assert all(100 <= s <= 300 for s in one["sizes"]) and set(one["tests"]) == {2000}


def test_a_choice_by_auc_takes_what_ranks() -> None:
    """Nine rows in ten are 0 whatever x is, so that accuracy sees no difference; their ranking follows x."""
    x = [v for v in range(4) for _ in range(500)]
    ill = [int(i % 500 < 20 + 25 * v) for i, v in enumerate(x)]
    session = Session()
    session.bind("seen", {"x": x, "ill": ill})
    program = """
use classify
D = bound("seen") described by {x: 0..3, ill: 0..1}
data = {database: D, class: "ill", test: D}
which = MkChoiceMaker among {Majority, NaiveBayes} informed by {} trained on [data, data] wrt ranked_on_test
release chosen = str(which.pick(data) with epsilon 1)
release areas = [ranked_on_test(data, f(data.database, data.class)) for f in [majority, naive_bayes]]
"""
    result = session.attempt(Source("p", program))
    assert result.ok, result.diagnostics
    wins = sum(
        (a > b) + (a == b) / 2 for a, i in zip(x, ill, strict=True) for b, j in zip(x, ill, strict=True) if i > j
    )
    assert list(result["areas"]) == [0.5, pytest.approx(wins / (sum(ill) * (2000 - sum(ill))), abs=1e-6)]
    assert "NaiveBayes" in result["chosen"]


def test_a_loss_is_that_of_the_rows_within_its_error() -> None:
    """Of few values of a probability all rows are rounded alike: it was off by 0.0004 beside a ± of next to nothing."""
    seen = [int(i % 100 < 47) for i in range(3300)]
    session = Session()
    session.bind("seen", {"x": [0] * len(seen), "ill": seen})
    program = """use classifiers
private D = bound("seen") described by {x: 0..3, ill: 0..1} protecting rows budget epsilon 1e9
m = majority(D, "ill") with epsilon 1e6
release p = m.probabilities({x: 0})
release loss = noisy_log_loss(D, m, "ill") with epsilon 1e6
"""
    result = session.attempt(Source("p", program))
    assert result.ok, result.diagnostics
    share, told = sum(seen) / len(seen), result["loss"]
    exact = -share * np.log(result["p"][1]) - (1 - share) * np.log(result["p"][0])
    assert abs(told["log_loss"] - exact) <= told["error"] < 0.0002


@pytest.mark.parametrize("case", at_once(("naive_bayes",), runs=200_000), ids=lambda c: c.name)
def test_naive_bayes_shows_no_more_than_it_charges(case: Case) -> None:
    """The whole is `python -m tests.stdlib.audit_classifiers`."""
    finding = audit(case)
    assert finding.bound <= case.epsilon, finding
    assert audit(Case(case.name, 0.5, case.draw, case.runs, broken=True)).convicted


def test_columns_of_few_whole_numbers_are_not_cut() -> None:
    """Twelve months and 24 hours are not ten bins; ages are cut between whole numbers, amounts where they fall."""
    session = Session()
    session.bind("w", {"month": [1, 12], "hour": [0, 23], "age": [20, 60], "paid": [0.5, 2.5], "c": ["no", "yes"]})
    schema = 'month: 1..12, hour: 0..23, age: 16..79, paid: 0.0..5.0, c: {"no", "yes"}'
    text = f'use classifiers\nprivate w = bound("w") described by {{{schema}}} protecting rows budget epsilon 1\n'
    result = session.attempt(Source("p.jst", text + 'release cuts = equal_cuts(w, "c")'))
    assert result.ok, result.diagnostics
    assert list(result["cuts"]) == ["age", "paid"]
    assert list(result["cuts"]["age"]) == [23, 29, 36, 42, 48, 55, 61, 68, 74]
    assert list(result["cuts"]["paid"]) == [0.5 * i for i in range(1, 10)]


def test_how_right_a_model_is_can_be_measured() -> None:
    """Within twenty deviations of the public share; its error is that of two counts of scale 2/0.5 of 3,000 rows."""
    program = "m = naive_bayes(D, k) with epsilon 50\nrelease right = accuracy(P, m, k)\n"
    result = attempt(program + "release seen = noisy_accuracy(D, m, k) with epsilon 0.5")
    assert result.ok, result.diagnostics
    assert abs(result["seen"]["accuracy"] - result["right"]) < 0.06
    assert 0.003 < result["seen"]["error"] < 0.008
    assert result.budget["t"]["epsilon"]["spent"] == "50.5"


# What adapts ------------------------------------------------------------------------------------------


def fitted(rows: int, epsilon: float, classes: int = 20, values: int = 100, ranked: bool = False) -> Any:
    """`adaptive_classifier` of 30 attributes, each of which tells the class of three rows in ten."""
    rng = np.random.default_rng(rows)
    labels = rng.integers(0, classes, rows)
    names = np.array([f"v{i}" for i in range(values)])
    data = {"c": names[labels]}
    for i in range(30):
        data[f"a{i}"] = names[np.where(rng.random(rows) < 0.3, labels, rng.integers(0, values, rows))]
    listed = [f'"v{i}"' for i in range(values)]
    domains = ", ".join(f"a{i}: {{{', '.join(listed)}}}" for i in range(30))
    session = Session(allow=["large-epsilon"])
    session.bind("t", data)
    session.execute(Source("p.jst", (
        f'use classify\nprivate t = bound("t") described by {{c: {{{", ".join(listed[:classes])}}}, {domains}}} '
        "protecting rows budget epsilon 1000\n"
        f'm = adaptive_classifier(t, "c", {str(ranked).lower()}) with epsilon {epsilon}\n'
    )))  # fmt: skip
    return session.names()["m"]


@pytest.mark.parametrize(("signal", "attributes"), [(300, 2), (2000, 3)])
def test_where_rows_are_to_be_ranked_no_tree_has_a_part_of_little(signal: int, attributes: int) -> None:
    (alone,) = fitted(signal // 4, 4, ranked=True).parts
    assert len(alone.attributes) == attributes


@pytest.mark.parametrize(("rows", "others"), [(1400, 40), (2800, 20)])
def test_a_rare_class_that_one_attribute_tells_is_named(rows: int, others: int) -> None:
    """Beside so many attributes that say nothing. Bayes of eight or sixteen named none of its rows in most runs."""
    rng = np.random.default_rng(5)
    rare = rng.random(rows) < 0.15
    data = {f"a{i}": rng.integers(0, 10, rows) for i in range(others)} | {"b": rare.astype(int)}
    domains = ", ".join(f"a{i}: 0..9" for i in range(others))
    session = Session()
    session.bind("t", data | {"c": np.where(rare, "ill", "well")})
    with mock.patch.object(exposures, "SecureNoise", lambda: SeededNoise(5)):
        session.execute(Source("p.jst", (
            f'use classify\nprivate t = bound("t") described by {{{domains}, b: 0..1, c: {{"ill", "well"}}}} '
            'protecting rows budget epsilon 9\nm = [adaptive_classifier(t, "c") with epsilon 0.8 for i in 1..7]\n'
        )))  # fmt: skip
    right = [np.mean((model.probabilities(data)[:, 0] > 0.5) == rare) for model in session.names()["m"]]
    assert min(right) > 0.97


@pytest.mark.parametrize(("classes", "ranked"), [(2, "false"), (2, "true"), (3, "false")])
def test_of_two_classes_and_few_rows_contrasts_rank_beside_the_tree(classes: int, ranked: str) -> None:
    session = Session()
    session.bind("t", {"a": np.arange(200) // 10, "b": np.arange(200) % 20, "c": np.arange(200) % classes})
    with mock.patch.object(exposures, "SecureNoise", lambda: SeededNoise(5)):
        session.execute(Source("p.jst", (
            f'use classify\nprivate t = bound("t") described by {{a: 0..19, b: 0..19, c: 0..{classes - 1}}} '
            f'protecting rows budget epsilon 1\nm = adaptive_classifier(t, "c", {ranked}) with epsilon 0.1\n'
        )))  # fmt: skip
    model = session.names()["m"]
    if classes > 2:
        assert type(model).__name__ == "Trees"
    else:
        tree, beside, *shares = model.parts
        assert type(tree).__name__ == "Trees" and beside.kind == "contrasts" and len(beside.attributes) == 2
        assert len(shares) == (ranked == "true")


@pytest.mark.parametrize(
    ("amount", "least"), [("epsilon 0.1", 0.7), ("epsilon 0.1 delta 1e-6", 0.63), ("rho 0.003", 0.7)]
)
def test_contrasts_rank_where_each_of_many_attributes_says_little(amount: str, least: float) -> None:
    """Twelve numbers whose means are a bin apart, and 1,900 rows: the noise is of ten seeds, so that it is the same."""
    rng = np.random.default_rng(3)
    ill = rng.random(3800) < 0.5
    levels = np.clip(np.rint(rng.normal(4 + ill[:, None], 2, (3800, 12))), 0, 9).astype(int)
    domains = ", ".join(f"a{i}: 0..9" for i in range(12))
    unit = {"r": "rho 1", "e": "epsilon 9, delta 1e-3" if "delta" in amount else "epsilon 9"}[amount[0]]
    areas = []
    for seed in range(10):
        session = Session()
        session.bind("t", {f"a{i}": levels[:1900, i] for i in range(12)} | {"c": np.where(ill[:1900], "ill", "well")})
        with mock.patch.object(exposures, "SecureNoise", lambda seed=seed: SeededNoise(seed)):
            session.execute(Source("p.jst", (
                f'use classify\nprivate t = bound("t") described by {{{domains}, c: {{"ill", "well"}}}} '
                f'protecting rows budget {unit}\nm = adaptive_classifier(t, "c") with {amount}\n'
            )))  # fmt: skip
        shares = session.names()["m"].probabilities({f"a{i}": levels[1900:, i] for i in range(12)})[:, 0]
        own, other = shares[ill[1900:]][:, None], shares[~ill[1900:]]
        areas.append(((own > other).mean() + (own >= other).mean()) / 2)
    assert np.mean(areas) > least, areas  # by tables of attributes 0.65, 0.60 and 0.67


@pytest.mark.parametrize(("classes", "numbers", "epsilon", "least"), [(10, 40, 1, 0.6), (2, 20, 0.8, 0.93)])
def test_of_many_numbers_all_tell_the_class(classes: int, numbers: int, epsilon: float, least: float) -> None:
    """Numbers each of which says little: before, 25 to 30 % were right of ten classes, and 82 to 85 % of two."""
    rng = np.random.default_rng(4)
    labels, size = rng.integers(0, classes, 4000), (4000, numbers)
    apart = rng.normal(size=(classes, numbers)) if classes > 2 else np.outer([-0.8, 0.8], np.ones(numbers))
    levels = np.clip(np.rint(4.5 + apart[labels] + rng.normal(0, 2, size)), 0, 9).astype(int)
    model = _seeded(levels[:2000].T, labels[:2000], "0..9", f"0..{classes - 1}", epsilon)
    right = np.mean(model.places({f"a{i}": levels[2000:, i] for i in range(numbers)}) == labels[2000:])
    assert right > least, right


def test_where_one_number_tells_every_class_a_tree_names_them() -> None:
    """Beside eleven numbers that say nothing. Class means alone get half of the rows right."""
    rng = np.random.default_rng(9)
    labels = rng.integers(0, 12, 600)
    cells = np.vstack([labels, rng.integers(0, 12, (11, 600))])
    there = {f"a{i}": cell for i, cell in enumerate(cells)}
    right = [np.mean(_seeded(cells, labels, "0..11", "0..11", 2, seed).places(there) == labels) for seed in range(3)]
    assert np.mean(right) > 0.85, right


def test_words_of_many_values_rank_beside_the_tree() -> None:
    """They have no contrasts, and tables."""
    ill = np.arange(400) % 5 == 0
    cells = [np.arange(400) * (i + 3) % 7 for i in range(9)]
    classes = np.where(ill, "ill", "well")
    tree, beside = _seeded(cells, classes, "{0, 1, 2, 3, 4, 5, 6}", '{"ill", "well"}', 0.1).parts
    assert type(tree).__name__ == "Trees" and len(beside.attributes) == 9


@pytest.mark.parametrize(("many", "words", "epsilon", "tree"), [
    (20, 0, 1, False), (20, 3, 1, True), (20, 20, 1, True), (3, 3, 1, False), (3, 3, 12, True),
])  # fmt: skip
def test_where_attributes_are_numbers_or_few_bayes_is_alone_sooner(
    many: int, words: int, epsilon: float, tree: bool
) -> None:
    """Along numbers neighbours are drawn together; three of twenty columns of words are enough for a tree. Few columns
    are clear of noise each, and a tree comes where pairs are too. What decides is 13 times the scale of the noise away.
    """
    rng = np.random.default_rng(6)
    labels, listed = rng.integers(0, 5, 600), ", ".join(f'"{i}"' for i in range(10))
    levels = np.clip(rng.normal(labels + 2, 2, (many, 600)).astype(int), 0, 9)
    cells = {f"a{i}": a.astype(str) if i < words else a for i, a in enumerate(levels)}
    session = Session(allow=["large-epsilon"])
    session.bind("t", cells | {"c": labels})
    domains = ", ".join(f"a{i}: {{{listed}}}" if i < words else f"a{i}: 0..9" for i in range(many))
    session.execute(Source("p.jst", (
        f'use classify\nprivate t = bound("t") described by {{{domains}, c: 0..4}} protecting rows budget epsilon 12\n'
        f'm = adaptive_classifier(t, "c") with epsilon {epsilon}\n'
    )))  # fmt: skip
    assert (type(session.names()["m"].parts[0]).__name__ == "Trees") == tree


@pytest.mark.parametrize(("epsilon", "least"), [(0.4, 0.5), (1, 0.8), (4, 0.8)])
def test_where_two_tests_have_leaves_for_few_of_the_classes_bayes_is_alone(epsilon: float, least: float) -> None:
    """Sixteen classes by eight columns of two values: a tree of two tests names four of them, a quarter of the rows."""
    rng = np.random.default_rng(8)
    labels = rng.integers(0, 16, 920)
    cells = np.array([[c >> (i % 4) & 1 for i in range(8)] for c in range(16)])[labels] ^ (rng.random((920, 8)) < 0.05)
    (alone,) = _seeded(cells.T, labels, "0..1", "0..15", epsilon).parts
    assert len(alone.attributes) == 8
    assert np.mean(alone.places({f"a{i}": cells[:, i] for i in range(8)}) == labels) > least


def test_of_three_classes_the_share_of_the_largest_counts_only_where_it_helps() -> None:
    """Three rows in four are of one class. Where that always weighed beside what attributes say, 83 % were right."""
    rng = np.random.default_rng(4)
    labels = rng.choice(3, 4000, p=[0.75, 0.2, 0.05])
    cells = np.where(rng.random((3, 4000)) < 0.45, labels, rng.integers(0, 4, (3, 4000)))
    there = {f"a{i}": cells[i, 2000:] for i in range(3)}
    models = [_seeded(cells[:, :2000], labels[:2000], "{0, 1, 2, 3}", "0..2", 0.8, seed) for seed in range(6)]
    assert np.mean([model.places(there) == labels[2000:] for model in models]) > 0.845


def _seeded(cells: Any, labels: Any, values: str, classes: str, epsilon: float, seed: int = 5) -> Any:
    session = Session()
    session.bind("t", {f"a{i}": cell for i, cell in enumerate(cells)} | {"c": labels})
    domains = ", ".join(f"a{i}: {values}" for i in range(len(cells)))
    with mock.patch.object(exposures, "SecureNoise", lambda: SeededNoise(seed)):
        session.execute(Source("p.jst", (
            f'use classify\nprivate t = bound("t") described by {{{domains}, c: {classes}}} '
            f'protecting rows budget epsilon 9\nm = adaptive_classifier(t, "c") with epsilon {epsilon}\n'
        )))  # fmt: skip
    return session.names()["m"]


@pytest.mark.parametrize(
    ("signal", "attributes"), [(300, 0), (2600, 1), (4100, 2), (6400, 8), (16_000, 8), (40_000, 16)]
)
def test_how_many_attributes_stand_beside_a_tree_depends_on_rows_times_epsilon(signal: int, attributes: int) -> None:
    """Fewer rows at a larger ε, and more at a smaller one, are the same problem. Thresholds are 12 times the scale of
    the noise away, or more."""
    for epsilon in (4, 16):
        model = fitted(signal // epsilon, epsilon)
        tree, *beside = getattr(model, "parts", (model,))
        assert type(tree).__name__ == "Trees"
        assert [len(one.attributes) for one in beside] == [attributes] * (attributes > 0)


@pytest.mark.parametrize("signal", [2600, 16_000])
def test_a_tree_and_what_stands_beside_it_are_no_surer_together_than_one_of_them(signal: int) -> None:
    """Both speak of the same rows, so that their weights are not those of two independent witnesses."""
    assert sum(fitted(signal // 4, 4).weights) <= 1


def test_a_blend_of_a_model_with_itself_is_no_surer_than_the_model() -> None:
    result = attempt(
        "m = naive_bayes(D, k) with epsilon 1\n"
        'r = {a: "r", b: 1, x: 3}\n'
        "release alone = m.probabilities(r)\nrelease sure = [b.probabilities(r) for b in blends(m, m)]"
    )
    assert result.ok, result.diagnostics
    for blend in result["sure"]:
        assert max(result["alone"]) - 0.1 < max(blend) < max(result["alone"]) + 1e-9


def test_where_pairs_of_attributes_can_be_heard_all_of_them_decide() -> None:
    """Ten classes that no tree of few leaves can tell apart, told apart by eight attributes together."""
    for rows, epsilon in ((20_000, 1), (2000, 10)):
        model = fitted(rows, epsilon, 10, 20)
        assert type(model).__name__ == "Blended" and len(model.attributes) >= 8
        row = {f"a{i}": "v4" for i in range(30)}
        assert model.jostle_fields["predict"](row) == "v4"


def test_where_pairs_of_attributes_are_loud_bayes_stands_in_the_leaves_of_a_tree() -> None:
    """Three classes by three values: of one level from 628 to 2,059 rows times ε, of two levels above."""
    for rows, epsilon, levels in ((1300, 1, 1), (325, 4, 1), (4000, 1, 2), (1000, 4, 2)):
        _, beside = fitted(rows, epsilon, 3, 3).parts
        assert type(beside).__name__ == "Branched"
        assert (type(beside.branches[0]).__name__ == "Branched") == (levels == 2)


def test_what_two_attributes_say_together_is_seen_by_bayes_in_leaves() -> None:
    """The class is the exclusive or of two attributes: by one alone it is right in seven rows of ten."""
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 2, (2000, 6))
    cells[:, 2] = rng.random(2000) < 0.3
    data = {f"a{i}": cells[:, i] for i in range(6)} | {"c": cells[:, 1] ^ cells[:, 2]}
    session = Session()
    session.bind("t", data)
    domains = ", ".join(f"{name}: 0..1" for name in data)
    session.execute(Source("p.jst", (
        f'use classifiers\nprivate t = bound("t") described by {{{domains}}} protecting rows budget epsilon 100\n'
        'flat = shrunk_bayes(t, "c") with epsilon 8\ndeep = bayes_tree(t, "c") with epsilon 8\n'
        'f = laplace(correct_count(t, flat, "c")) with epsilon 5\n'
        'd = laplace(correct_count(t, deep, "c")) with epsilon 5\n'
    )))  # fmt: skip
    assert session.names()["f"] < 1500 < 1900 < session.names()["d"]


def test_on_a_public_table_the_best_classifier_is_exact_and_free() -> None:
    result = attempt("use best\nm = best_classifier(P, k)\nn = best_classifier(P, k)\nrelease m\nrelease n")
    assert result.ok, result.diagnostics
    released = result.released_json()
    assert released["m"]["parts"] == released["n"]["parts"], "which blend of two that get as many right is by chance"
    assert result.budget["t"]["epsilon"]["spent"] == "0"
    refused = attempt("use best\nm = best_classifier(D, k)")
    assert not refused.ok and refused.diagnostics[0].kind == "NoEpsilon" and not refused.budget
