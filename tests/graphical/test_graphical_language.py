"""`use graphical`: what it spends, what neighbours can see of it, models as values, and what is refused."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "privacy"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "audit"))

from graphs import graphs
from harness import Case, audit
from recording import Bench, worst_losses

from jostle.accounting.definitions import rho_of
from jostle.kernels.graphical import adaptive
from jostle.kernels.graphical.model import GraphicalModel
from jostle.kernels.noisy_array import law_of
from jostle.source import Source
from jostle.tools.session import Result, Session

SCHEMA = 'described by {v: 0..2, w: 0..1, c: {"x", "y"}} protecting rows'


def frame(rows: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    v = rng.integers(0, 3, rows)
    c = np.where(rng.random(rows) < 0.2 + 0.3 * v, "x", "y")
    return pd.DataFrame({"v": v, "w": rng.integers(0, 2, rows), "c": c})


def attempt(program: str, budget: str = "epsilon 1000", data: Any = None) -> Result:
    session = Session()
    session.bind("t", frame() if data is None else data)
    text = f'use graphical\nprivate t = bound("t") {SCHEMA} budget {budget}\n' + program
    return session.attempt(Source("g.jst", text))


def refused(program: str, budget: str = "epsilon 10") -> tuple[str, str]:
    result = attempt(program, budget)
    assert not result.ok
    (unit,) = (u for u in result.budget.get("t", {"epsilon": {}}) if u != "delta")
    assert result.budget.get("t", {unit: {"spent": "0"}})[unit]["spent"] == "0", "something was spent"
    return result.diagnostics[0].kind, result.diagnostics[0].message


M = 'm = model(domain_of(t), [["v", "c"], ["w"]])\n'
LEARNING = {
    "naive_mle": "a = naive_mle(t, m) with {a}",
    "cgm": "a = cgm(t, m, 3000) with {a}",
    "learn_tree": "a = learn_tree(t) with {a}",
    "learn_tables": "a = learn_tables(t) with {a}",
}


@pytest.mark.parametrize("name", ["learn_tree", "learn_tables"])
def test_pairs_are_chosen_under_epsilon_and_delta(name: str) -> None:
    result = attempt(f"release a = {name}(t) with epsilon 200 delta 1e-6", "epsilon 300, delta 1e-5")
    assert result.ok, result.diagnostics
    assert result["a"].probability({"c": "x"}, {"v": 2}) == pytest.approx(
        (frame()["c"][frame()["v"] == 2] == "x").mean(), abs=0.02
    )


def test_rounds_under_epsilon_and_delta_are_paid_at_once() -> None:
    """So that their ρ add up, and tables have the noise of all that (1, δ) means."""
    result = attempt("release a = learn_tables(t) with epsilon 1 delta 1e-6", "epsilon 1, delta 1e-6")
    paid, *rest = [e.fields for e in result.events if e.kind == "measure"]
    assert (paid["epsilon"], paid["delta"]) == (1, 1e-6) and len(rest) > 2
    assert all("epsilon" not in e and e["prepaid"] > 0 for e in rest)
    assert 0.99 < sum(e["prepaid"] for e in rest) <= 1


@pytest.mark.parametrize("unit", ["epsilon", "rho"])
@pytest.mark.parametrize("name", LEARNING)
def test_learning_spends_its_allotment_and_finds_the_truth(name: str, unit: str) -> None:
    """At ε = 200 (or ρ) there is next to no noise: the share of x given v is what it is in the data."""
    program = LEARNING[name].replace("{a}", f"{unit} 200")
    result = attempt(f'{M}{program}\nrelease p = a.probability({{c: "x"}}, {{v: 2}})\nrelease a', f"{unit} 1000")
    assert result.ok, result.diagnostics
    spent = float(result.budget["t"][unit]["spent"])
    assert 199.999 < spent <= 200
    data = frame()
    assert result["p"] == pytest.approx((data["c"][data["v"] == 2] == "x").mean(), abs=0.02)
    assert result["a"].frame(10).shape == (10, 3)


@pytest.mark.parametrize("amount", ["epsilon 9", "rho 1"])
def test_columns_measured_again_spend_what_pairs_would_have(amount: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive, "WORTH", -1.0)  # so that they always are
    rng = np.random.default_rng(3)
    session = Session()
    session.bind("t", pd.DataFrame({f"c{i}": rng.integers(0, 2, 2000) for i in range(7)}))
    schema = ", ".join(f"c{i}: 0..1" for i in range(7))
    text = f'use graphical\nprivate t = bound("t") described by {{{schema}}} protecting rows budget {amount}\n'
    result = session.attempt(Source("g.jst", f"{text}m = learn_tables(t) with {amount}\nrelease m"))
    assert result.ok, result.diagnostics
    unit, most = amount.split()
    assert 0.99999 * float(most) < float(result.budget["t"][unit]["spent"]) <= float(most)
    assert all(len(c) == 1 for c in result["m"].jostle_fields["cliques"])


def test_of_persons_with_many_rows_pairs_are_measured_where_their_noise_allows() -> None:
    """3,000 rows are 500 times the noise of one of 30 columns, and half of it where a person may have 1,000 of them."""
    rng = np.random.default_rng(3)
    names, widest = [f"c{i}" for i in range(30)], []
    rows = {"who": [f"p{i // 20}" for i in range(3000)]} | {name: rng.integers(0, 2, 3000) for name in names}
    schema = ", ".join(f"{name}: 0..1" for name in names)
    for protecting in ("rows", "who up to 1000 rows"):
        declared = (
            f'private t = bound("t") described by {{who: text, {schema}}} protecting {protecting} budget epsilon 5'
        )
        body = f"m = learn_tables(pick(t, {', '.join(names)})) with epsilon 5\nrelease m"
        session = Session()
        session.bind("t", pd.DataFrame(rows))
        result = session.attempt(Source("g.jst", f"use graphical\n{declared}\n{body}"))
        assert result.ok, result.diagnostics
        widest.append(max(map(len, result["m"].jostle_fields["cliques"])))
    assert widest[0] > 1 and widest[1] == 1


def test_a_tree_scores_every_pair_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that many columns take no longer than their pairs: 7 columns have 21."""
    asked = []
    marginal = GraphicalModel.marginal

    def counted(model: GraphicalModel, *names: Any) -> Any:
        asked.append(names)
        return marginal(model, *names)

    monkeypatch.setattr(GraphicalModel, "marginal", counted)
    rng = np.random.default_rng(3)
    session = Session()
    session.bind("t", pd.DataFrame({f"c{i}": rng.integers(0, 2, 200) for i in range(7)}))
    schema = ", ".join(f"c{i}: 0..1" for i in range(7))
    text = f'use graphical\nprivate t = bound("t") described by {{{schema}}} protecting rows budget epsilon 9\n'
    result = session.attempt(Source("g.jst", text + "m = learn_tree(t) with epsilon 9\nrelease c = m.cliques"))
    assert result.ok, result.diagnostics
    assert len(asked) == 21 and len([c for c in result["c"] if len(c) == 2]) == 6


def test_all_cliques_are_one_measurement() -> None:
    """E tables cost scale E/ε in ℓ₁ and √E in ℓ₂: what composing E measurements under zCDP gives as well."""
    program = M + "a = naive_mle(t, m) with {}\nrelease s = a.noise"
    assert attempt(program.format("epsilon 0.5"))["s"] == pytest.approx(2 / 0.5)
    assert attempt(program.format("rho 0.5"), "rho 1")["s"] == pytest.approx(math.sqrt(2 / (2 * 0.5)) / math.sqrt(2))
    one = attempt("x = laplace(histogram(t, v)) with rho 0.25\nrelease s = standard_error(x)[0]", "rho 1")
    assert one["s"] == pytest.approx(math.sqrt(1 / (2 * 0.25)))  # two of these are ρ = 0.5 and have this σ = √2
    both = attempt(program.format("epsilon 0.5 delta 0.000001"), "epsilon 1, delta 0.00001")
    assert both["s"] == pytest.approx(math.sqrt(2 / (2 * rho_of(0.5, 1e-6 / 3))) / math.sqrt(2), rel=1e-6)


def test_a_model_is_a_value() -> None:
    result = attempt(
        M + "a = naive_mle(t, m) with epsilon 900\nprint(a)\nprint(m.cells, m.treewidth, len(a.cliques), a.learned)\n"
        's = a.sample(30, 2)\nrelease s\nprint(s, len(s), s.size)\nprint(sum(s.table("v")), len(s.column("c")))\n'
        'print(a.conditional(["c"], {v: {1, 2}}))\nprint(a.kl(m) > 0, a.log_likelihood(s) < 0, m.log_partition)\n'
        'print(a.marginal("c", "v")[0])\nprint(rows_in([[3, 4]], 8))\n'
    )
    assert result.ok, result.diagnostics
    told = result.output
    assert told[0] == "graphical model of 3 variables and 2 cliques"
    assert told[1] == "8 1 2 naive"
    assert told[2].startswith("30 synthetic rows of v, w, c 30 30")
    assert told[3] == "30 30"
    assert told[5] == "true true 2.48491"
    assert len(result.released_json()["s"]) == 30
    assert set(result["s"].frame()["c"].cat.categories) == {"x", "y"}
    assert result.frame("s").equals(result["s"].frame()) and result.frame("s", "arrow").num_rows == 30


BAD = [
    ('m = model(domain_of(t), [["v", "z"]])', "ValueError", "there is no variable `z`"),
    ('m = model({a: 0..2}, [["a"]])\na = naive_mle(t, m) with epsilon 1', "NameError", "no column `a`"),
    ('m = model(domain_of(t), [["v", "v"]])', "ValueError", "each variable once"),
    ("m = model(t, [])", "ValueError", "a domain is a record"),
    (M + "a = naive_mle(t, m) with epsilon 11", "BudgetExceeded", "11"),
    (M + "a = naive_mle(t, m)", "NoEpsilon", ""),
    (M + "x = noisy_max([distance(histogram(t, v), [1, 2])]) with epsilon 1", "ValueError", "2 expected counts"),
    (M + "x = distance(histogram(t, v), histogram(t, v))", "PrivateValue", ""),
    (M + "print(distance(histogram(t, v), [1, 2, 3]))", "PrivateValue", ""),
    (M + 'x = distances(t, [["v"]], [[1, 2]], [0])', "ValueError", "2 expected counts"),
    (M + 'x = distances(t, [["v", "v"]], [[1, 2]], [0])', "NameError", "one name"),
    (M + 'x = distances(t, [["v"]], [[1, 2, 3]], [])', "ValueError", "equally long"),
    (M + 'x = distances(t, [["u"]], [[1, 2, 3]], [0])', "NameError", "no column `u`"),
    (M + 'x = distances(t, [columns(t)], [[1, 2, 3]], [0])', "PrivateValue", ""),
    (M + 'x = distances(t, [["v"]], [histogram(t, v)], [0])', "PrivateValue", ""),
    ("m = model(record([[str(i), 0..9] for i in 1..12]), [[str(i), str(j)] for i in 1..11 for j in 1..12])", "", ""),
]


@pytest.mark.parametrize(("program", "kind", "message"), BAD[:-1], ids=[b[0][-40:] for b in BAD[:-1]])
def test_refusals_spend_nothing(program: str, kind: str, message: str) -> None:
    found = refused(program)
    assert found[0] == kind and message in found[1]


def test_a_width_that_cannot_fit_is_refused_before_anything_is_spent() -> None:
    pairs = ", ".join(f'["c{i}", "c{j}"]' for i in range(10) for j in range(i))
    names = ", ".join(f"c{i}: 0..9" for i in range(10))
    program = f"n = laplace(size(histogram(t, v))) with epsilon 0\nm = model({{{names}}}, [{pairs}])"
    kind, message = refused(program.split("\n")[1])
    assert kind == "ValueError" and "10,000,000,000 cells" in message


def test_a_column_to_predict_that_the_table_has_not_is_refused_before_anything_is_spent() -> None:
    kind, message = refused('m = learn_tables(t, predict = "nope") with epsilon 1')
    assert kind == "AssertionFailed" and "the table has no column nope" in message


PAIR = 'table("old.csv") described by {{a: {{"x", "y"}}, b: {second}{more}}}'
ALIKE = "use best\nold = " + PAIR + '\nprivate t = bound("t") described by {{a: {{"x", "y"}}, b: 0..1{more}}} '


def with_prior(tmp_path: Path, program: str, second: str = "0..1", unit: str = "epsilon 1", more: int = 0) -> Any:
    """1,000 public rows and 300 private ones in which b says a, but for one in ten; `more` columns say nothing."""
    rng = np.random.default_rng(4)
    b = rng.integers(0, 2, 1300)
    data = pd.DataFrame({"a": np.where(b ^ (rng.random(1300) < 0.1), "y", "x"), "b": b})
    for i in range(more):
        data[f"c{i}"] = rng.integers(0, 2, 1300)
    data[:1000].to_csv(tmp_path / "old.csv", index=False)
    session = Session(cwd=tmp_path)
    session.bind("t", data[1000:])
    header = (
        ALIKE.format(second=second, more="".join(f", c{i}: 0..1" for i in range(more)))
        + f"protecting rows budget {unit}\n"
    )
    return session.attempt(Source("g.jst", header + program))


@pytest.mark.slow
def test_what_a_prior_of_public_rows_says_is_kept_where_noise_is_all_there_is(tmp_path: Path) -> None:
    """No pair is measured at so small an amount, so that the odds ratio is the prior's, about 81, or 1 without one.

    Of twenty columns a pair is measured where the count of the rows is five deviations too high.
    """
    odds = []
    for prior in ("", ", prior = old"):
        result = with_prior(tmp_path, f"m = best_model(t{prior}) with rho 1e-6\nrelease m", unit="rho 1", more=18)
        assert result.ok, result.diagnostics
        assert float(result.budget["t"]["rho"]["spent"]) <= 1e-6
        (xx, xy), (yx, yy) = result["m"].marginal("a", "b")
        odds.append(xx * yy / (xy * yx))
    assert odds[0] == pytest.approx(1) and odds[1] > 20
    rows = with_prior(tmp_path, "release made = best_synthetic(t, 50, prior = old) with epsilon 0.5")
    assert rows.ok and rows["made"].codes.shape == (50, 2), rows.diagnostics


def test_a_prior_with_other_values_is_refused(tmp_path: Path) -> None:
    result = with_prior(tmp_path, "m = best_model(t, prior = old) with epsilon 1", second="0..2")
    assert not result.ok and "a prior has the columns and the values of the table" in result.diagnostics[0].message
    assert result.budget.get("t", {"epsilon": {"spent": "0"}})["epsilon"]["spent"] == "0"


def test_drowned_in_noise_a_warning_is_printed() -> None:
    result = attempt(M + 'a = naive_mle(t, m, 3000) with epsilon 0.00001\nrelease p = a.marginal("v")')
    assert result.output == ["warning: the noise is as large as the tables: this model is near uniform"]
    assert np.abs(result["p"] - 1 / 3).max() < 0.01  # whatever the noise: the ridge holds it


# What neighbours can see ---------------------------------------------------------------------------

KINDS = (("0", "1", "x"), ("2", "0", "y"), ("9", "1", ""), ("1", "", "x"))
STEPS = """
a = naive_mle(t, m) with epsilon 1.5
b = cgm(t, m) with epsilon 0.3
c = learn_tree(t) with epsilon 3
d = learn_tables(t) with epsilon 2
e = noisy_max([distance(histogram(t, v), [0.4, 2, 7], 1.5),
               distance(histogram(t, c, v), [1, 1, 0, 0, 2, -1])]) with epsilon 1
h = noisy_max(distances(t, [["v"], ["c", "v"]], [[0.4, 2, 7], [1, 1, 0, 0, 2, -1]], [1.5, 0])) with epsilon 1
f = (laplace(distance(histogram(t, w), [100, 0.3])) with epsilon 1)
g = laplace([histogram(t, v), histogram(t, v, w), histogram(t, c)]) with epsilon 1
"""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def recorded(bench: Bench, unit: str, contents: list[tuple[int, ...]], budget: str = "epsilon 1000") -> dict[Any, Any]:
    header = f'use graphical\nprivate t = table("t.csv") {SCHEMA}{unit} budget {budget}\n{M}'
    found = {}
    for some in contents:
        bench.table((KINDS[i] for i in some), ("v", "w", "c"))
        found[some] = bench.run(header + STEPS)
    return found


@pytest.mark.slow
def test_no_step_loses_more_than_it_charges(bench: Bench) -> None:
    """Brute force: what the noise is given on neighbouring tables, against each charge; E cliques use theirs up."""
    contents = [(), *((i,) for i in range(4)), (0, 0), (0, 1), (0, 2), (1, 3), (2, 3)]
    found = recorded(bench, "", contents)
    tight = set()
    for some in contents:
        for i in range(4):
            more = tuple(sorted((*some, i)))
            if more not in found:
                continue
            total = 0.0
            for title, lost, charged in worst_losses(found[some], found[more]):
                assert lost <= charged * (1 + 1e-9), title
                total += lost
                if lost > 0.99 * charged:
                    tight.add(title)
            assert total <= found[some].spent * (1 + 1e-9)
    assert {"vector", "distance"} <= tight


def test_a_replaced_row_is_priced_as_two(bench: Bench) -> None:
    contents = [(0, 0), (0, 1), (0, 2), (1, 1)]
    found = recorded(bench, ", public size", contents)
    for one, other in [((0, 0), (0, 1)), ((0, 1), (1, 1)), ((0, 0), (0, 2))]:
        for title, lost, charged in worst_losses(found[one], found[other]):
            assert lost <= charged * (1 + 1e-9), title


# Audit: the cases are in `tests/audit/graphs.py`, and audited with all others ------------------------


def test_the_audit_sees_tables_together() -> None:
    case = next(c for c in graphs() if c.name == "three tables together")
    assert audit(Case(case.name, 0.5, case.draw, case.runs, broken=True), share=0.05).convicted


@pytest.mark.parametrize(("unit", "amount", "times"), [("rho", 0.02, 2.0), ("epsilon", 0.5, 4.0)])
def test_a_table_that_stands_in_a_list_four_times_is_paid_for_four_times(
    unit: str, amount: float, times: float
) -> None:
    session = Session()
    session.bind("rows", {"a": np.arange(50) % 3})
    text = f"""private t = bound("rows") described by {{a: 0..2}} protecting rows budget {unit} {2 * amount}
h = histogram(t, a)
one = laplace([h]) with {unit} {amount}
four = laplace([h, h, h, h]) with {unit} {amount}
release one
release four
"""
    result = session.attempt(Source("g.jst", text))
    assert result.ok, result.diagnostics
    one, four = (law_of(result[name][0]).scale for name in ("one", "four"))
    assert four == pytest.approx(times * one, rel=1e-2)
