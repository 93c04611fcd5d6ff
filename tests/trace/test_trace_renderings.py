"""The renderings of a trace, word for word (`tests/golden/trace_*.txt`), and what they say of odd traces."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path

import pytest

from jostle.events import Event, Stream
from jostle.trace import budget, summary, tree
from jostle.trace.costs import Costs
from jostle.trace.forest import Forest
from jostle.trace.text import align, amount, bar, number, sparkline

sys.path.insert(0, str(Path(__file__).parent))
import sample_run

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("page", summary.page(sample_run.events())),
        ("choices", tree.choices(sample_run.events(), "noisyHistChoice")),
        ("budget", budget.spending(sample_run.events())),
    ],
)
def test_golden(name: str, text: str) -> None:
    assert text == (GOLDEN / f"trace_{name}.txt").read_text(encoding="utf-8")


def test_a_choice_in_three_lines() -> None:
    made = [e for e in sample_run.events() if e.kind == "choice"]
    assert tree.brief(made[0], Decimal("0.5")) == [
        "noisyHistChoice chose DAWA over MWEM",
        "  because: policy: paid features, share 0.1; uniformity = 12.38 > 3.2, sparsity = 0.3125 ≤ 0.5; "
        "margin 0.89 over MWEM",
        "  spent ε 0.5, 0.05 of it on features",
    ]


def choose(**fields: object) -> str:
    return tree.choices([Event(1, None, "choice", "c", None, fields)])


def test_a_choice_with_nothing_to_tell() -> None:
    assert choose(chosen="A", predictions={}, margin=0.0) == "c chose A\n└─ features: none were looked at\n"
    assert choose() == "c chose nothing\n└─ features: none were looked at\n"


def test_a_margin_inside_the_uncertainty_says_so() -> None:
    near = {"chosen": "A", "predictions": {"A": 1.0, "B": 0.9}, "margin": 0.1}
    assert "within the uncertainty" in choose(**near, spread={"A": 0.1, "B": 0.1})
    assert "within the uncertainty" not in choose(**near, spread={"A": 0.01, "B": 0.01})


def test_each_options_own_path_is_shown_where_they_differ() -> None:
    step = {"feature": "n", "threshold": 2, "value": 1, "went": "left"}
    said = choose(chosen="A", path=[step], paths={"A": [step], "B": []}, predictions={"A": 1, "B": 0})
    assert "path through the tree of A\n│  └─ n = 1 ≤ 2 → left" in said and "tree of B: no test" in said
    assert "tree of" not in choose(chosen="A", path=[step], paths={"A": [step], "B": [step]})


def test_numbers_that_json_cannot_hold_are_shown_as_they_are() -> None:
    said = choose(
        chosen="A", predictions={"A": "inf", "B": "-inf"}, margin="inf", features=[{"name": "f", "value": "nan"}]
    )
    assert "inf" in said and "f = nan  free" in said


def test_choices_inside_a_choice_stand_in_its_tree() -> None:
    stream = Stream(listeners=[(heard := []).append])
    with stream.within("choice", "outer", chosen="A"), stream.within("option", "A"):
        stream.emit("choice", "inner", chosen="B")
    said = tree.choices(heard)
    assert said.startswith("outer chose A") and "   └─ inner chose B" in said and said.count("inner") == 1
    assert tree.choices(heard, "inner").startswith("inner chose B")
    assert tree.choices(heard, "other") == "no choice named `other` was made\n"


def test_a_choice_told_beside_its_features_and_option_has_them_hung_under_it() -> None:
    stream = Stream(listeners=[(heard := []).append])
    with stream.within("allotment", "epsilon 1"):
        stream.emit("train", "c")
        for name in ("f", "g"):
            with stream.within("feature", name):
                stream.emit("measure", "sum", mechanism="laplace", epsilon=0.1, sources=["p"])
        stream.emit("choice", "c", chosen="A", epsilon=1.0)
        with stream.within("option", "A"):
            stream.emit("measure", "sum", mechanism="laplace", epsilon=0.8, sources=["p"])
        stream.emit("choice", "d", chosen="B")
        with stream.within("option", "other"):
            stream.emit("query", "q")
    first, second = tree.choices(heard).split("\n\n")
    assert "├─ ran A  ε 0.8\n" in first and first.endswith("└─ spent ε 1 of 1") and "ran" not in second
    assert [e.name for e in Forest.of(heard).children(Forest.of(heard).roots[0])] == ["c", "c", "d", "other"]


def test_deep_and_long_traces_are_cut() -> None:
    deep = [Event(k, k - 1 or None, "choice" if k % 2 else "option", f"n{k}", None, {}) for k in range(1, 3001)]
    assert "below" in tree.choices(deep) and len(summary.summary(deep)) < 2000
    many = [Event(k, None, "choice", "c", None, {"chosen": str(k)}) for k in range(1, 101)]
    assert tree.choices(many).count(" chose ") == 20 and "80 more choices" in tree.choices(many)
    long = [Event(k, None, "query", f"q{k}", None, {}) for k in range(1, 2001)]
    assert summary.summary(long).count("\n") < 40


def test_parallel_parts_count_as_their_maximum() -> None:
    forest = Forest.of(sample_run.events())
    costs = Costs.of(forest, "grid")
    assert costs.spent[forest.roots[0].id] == Decimal("0.65")
    assert Costs.of(forest, "other").spent[forest.roots[0].id] == 0


def test_rho_is_shown_as_rho() -> None:
    stream = Stream(listeners=[(heard := []).append])
    stream.emit("source", "p", unit="rows", budget={"rho": "2"})
    stream.emit("measure", "count", rho=0.5, sources=["p"], mechanism="gaussian")
    assert budget.spending(heard).startswith("p  █████░░░░░░░░░░░░░░░  ρ 0.5 of 2 spent")
    assert "gaussian  count  on p  ρ 0.5" in summary.summary(heard)


def test_damaged_parents_make_no_circle() -> None:
    odd = [
        Event(1, 2, "query", "a", None, {}),
        Event(2, 1, "query", "b", None, {}),
        Event(3, 3, "query", "c", None, {}),
    ]
    assert sorted(e.name for e in Forest.of(odd).walk()) == ["a", "b", "c"]


def test_text_helpers() -> None:
    assert [number(v) for v in (3.0, 3.14159, True, None, float("inf"), 1e20)] == [
        "3", "3.142", "true", "none", "inf", "1e+20",
    ]  # fmt: skip
    assert [amount(v) for v in ("0.10", 1, "1e-7", Decimal(1) / 3, 0)] == ["0.1", "1", "1e-07", "0.333333", "0"]
    assert [bar(s, 4) for s in (0, 0.01, 0.5, 1, 7)] == ["░░░░", "█░░░", "██░░", "████", "████"]
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█" and sparkline([1, float("inf"), 1]) == "▁ ▁"
    assert align([["a", "10"], ["bbb", "2"]], [False, True]) == ["a    10", "bbb   2"]


def test_amounts_as_the_interpreter_writes_them() -> None:
    stream = Stream(listeners=[(heard := []).append])
    stream.emit("source", "p", unit="rows", budget="epsilon 2, delta 1e-06", schema=["age"])
    with stream.within("allotment", "epsilon 1", epsilon=1.0) as given:
        with stream.within("query", "count, avg", aggregates=["count", "avg"], keys=["sex"], epsilon=0.5):
            stream.emit("measure", "count", mechanism="laplace", epsilon=0.25, sources=["p", "q"], scale=4.0)
            stream.emit("measure", "avg", mechanism="laplace", epsilon=0.25, sources=["p"], scale=4.0)
        given["spent"] = {"p": 0.5, "q": 0.25}
    said = summary.summary(heard)
    assert "source p  protecting rows  budget ε 2, δ 1e-06" in said
    assert "query count, avg  by sex  ε 0.5" in said and "allotment epsilon 1  ε 0.5" in said
    assert budget.spending(heard).startswith("p  █████░░░░░░░░░░░░░░░  ε 0.5 of 2 spent at most")
    assert Costs.of(Forest.of(heard), "q").spent[2] == Decimal("0.25")
