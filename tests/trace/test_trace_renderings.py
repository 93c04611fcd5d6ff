"""What the renderings of a trace say beside the goldens: choices in three lines, cuts, parts, odd parents, amounts."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jostle.choice.explain import meaning
from jostle.events import Event
from jostle.source import Source, Span
from jostle.tools.session import Session
from jostle.trace import budget, tree
from jostle.trace.costs import Costs, Forest
from jostle.trace.text import align, amount, bar, folded, number, sparkline

sys.path.insert(0, str(Path(__file__).parent))
import real_runs

COUNTS = "private c = counts([5, 6, 7]) protecting rows budget epsilon 4\n"


def ran(program: str) -> list[Event]:
    result = Session().attempt(Source("p.jst", program))
    assert result.ok, result.diagnostics
    return result.events


def test_a_choice_in_three_lines() -> None:
    inner, outer = (e for e in real_runs.events() if e.kind == "choice")
    why = "no way of looking has less"
    first, because, spent = tree.brief(outer, "ε 1")
    assert first == "noisy_hist_choice chose Either over Uniform" and spent == "  spent ε 1, 0.1 of it on features"
    assert because.startswith(f"  because: policy: features at 10 %; top = {number(43.0)} > ")
    assert "the error of Uniform is 16 times as large" in because and why in str(inner.fields)
    assert tree.brief(inner, "ε 1")[1].startswith("  because: policy: single best; the error of Hb")


def test_why_along_the_feature_that_decided() -> None:
    along = {"feature": "rows", "value": 5.0, "places": [1.0, 2.0, 5.0, 9.0, 10.0],
             "options": {"A": [-1.0, -1.0, -2.0, -2.0, -2.0], "B": [-3.0, -3.0, -1.0, -1.0, -1.0]}}  # fmt: skip
    fields = {"chosen": "B", "errors": True, "along": along, "otherwise": {"half": "A", "twice": "B"},
              "features": [{"name": "rows", "value": 5.0, "epsilon": 0.1, "means": "how many rows"}]}  # fmt: skip
    told, rows, here = tree.sweep(fields)
    assert told == along and here == 1 and [row[0] for row in rows] == ["1", "5"]
    assert [row[-1] for row in rows] == ["A", "B"] and rows[1][1:3] == ["2", "1"]
    said = tree.choices([Event(1, None, "choice", "which", None, fields)])
    assert "predicted error, by rows, the feature that decided" in said and "◀ these data" in said
    assert "with the same features: A at half the amount, B at twice the amount" in said
    assert "ε 0.1  how many rows" in said
    assert tree.sweep({}) == ({}, [], -1) and tree.at_other_amounts({}) == ""


def test_what_a_feature_is_stands_at_its_declaration() -> None:
    text = (
        "# How many rows there are. More of it.\nmany = Feature (d) { return d.n }\n\n"
        "few = Feature (d) {  # fewer\n    return 1\n}\n"
    )

    def at(line: int) -> Any:
        body = SimpleNamespace(span=Span(Source("p.jst", text), line, 1, line, 9))
        return meaning(SimpleNamespace(run=SimpleNamespace(body=body)))

    assert [at(2), at(4), at(5), meaning(None)] == ["How many rows there are", "fewer", "", ""]


def test_an_option_costs_no_more_than_its_choice() -> None:
    """Parts of a partition are measured in parallel: two at 0.5 cost 0.5, in the option as in the choice."""
    session = Session()
    session.bind("people", {"sex": ["F", "M", "F"]})
    result = session.attempt(Source("p.jst", """
private people = bound("people") described by {sex: {"F", "M"}} protecting rows budget epsilon 1
Each = Option (data) { return [laplace(size(part)) for sex, part in partition(data.rows, sex)] }
near = Utility (data, answers) { return 1 }
one = MkChoiceMaker among {Each} informed by {} trained on [{rows: counts([1])}] wrt near
sizes = one({rows: people}) with epsilon 0.5
"""))  # fmt: skip
    assert result.ok, result.diagnostics
    said = tree.choices(result.events)
    assert "ran Each  ε 0.5  p.jst" in said and "spent ε 0.5 of 0.5" in said


def test_a_choice_by_name() -> None:
    events = real_runs.events()
    said = tree.choices(events)
    assert said.startswith("noisy_hist_choice chose Either") and "     └─ flat_or_hb chose Flat" in said
    assert tree.choices(events, "flat_or_hb").startswith("flat_or_hb chose Flat")
    assert tree.choices(events, "other") == "no choice named `other` was made\n"
    assert tree.choices(real_runs.events("noise")) == "no choice was made\n"


def test_deep_and_long_traces_are_cut() -> None:
    program, lead = COUNTS, ""
    for _ in range(12):
        program += f"{lead}with epsilon 1 {{\n"
        lead += "    "
    program += f"{lead}x = laplace(c)\n" + "".join(f"{'    ' * k}}}\n" for k in reversed(range(12)))
    said = budget.summary(ran(program))
    assert "below" in said and said.count("─ allotment") == 5
    assert budget.spending(ran(program)).count("allotment epsilon 1") == 9
    said = budget.summary(ran("".join(f"release r{k} = {k}\n" for k in range(200))))
    assert said.count("\n") < 40 and "more" in said
    calls = [Event(10 * k, 1, "choice", e.name, e.span, e.fields) for k in range(1, 51) for e in real_runs.events()
             if e.name == "flat_or_hb" and e.kind == "choice"]  # fmt: skip
    assert tree.choices(calls).count(" chose ") == 20 and "30 more choices" in tree.choices(calls)


def test_parallel_parts_count_as_their_maximum() -> None:
    forest = Forest.of(real_runs.events())
    costs = Costs.of(forest)
    (run,) = [root for root in forest.roots if root.kind == "run"]
    assert costs.spent[run.id] == {"people": Decimal("1.4375"), "visits": Decimal("0.375")}
    assert abs(costs.summed[run.id]["people"] - Decimal("1.5")) < Decimal("1e-9")
    assert costs.text(run) == "ε 1.4375 on people, ρ 0.375 on visits"


@pytest.mark.parametrize("amount, together", [("epsilon 4", 0), ("epsilon 4, delta 1e-6", 1)])
def test_a_note_says_that_steps_do_not_add_up_where_they_are_counted_together(amount: str, together: int) -> None:
    session = Session()
    session.bind("c", real_runs.tables()["visits"])
    program = (
        f'private c = bound("c") described by {{hour: 0..23}} protecting rows budget {amount}\n'
        "n = {{ select count(*) as n, sum(hour) as s, avg(hour) as a from c with epsilon 0.1 }}\n"  # a third is rounded
    )
    text = budget.spending(session.run(Source("p.jst", program)).events)
    assert "query count, sum, avg" in text and text.count("counted together") == together


def test_what_a_session_spent_before_is_not_spent_again() -> None:
    session = Session()
    session.bind("c", real_runs.tables()["visits"])
    program = (
        'private c = bound("c") described by {hour: 0..23} protecting rows budget epsilon 4\n'
        'private d = bound("c") described by {hour: 0..23} protecting rows budget epsilon 4\n'
        "n = {{ select count(*) from d with epsilon 1 }}\n"
    )
    for before in ("", ", 1 of it before this run"):
        events = session.run(Source("p.jst", program)).events
        spent = 2 if before else 1
        bars = "█" * 5 * spent + "░" * 5 * (4 - spent)
        assert budget.spending(events).splitlines()[:2] == [
            f"c  {bars}  ε {spent} of 4 spent{before}", "└─ █████░░░░░░░░░░░░░░░  ε 1  query count  p.jst:3:8",
        ]  # fmt: skip
        assert "source d  protecting rows  the same data as c" in budget.summary(events)


def test_damaged_parents_make_no_circle() -> None:
    odd = [
        Event(1, 2, "query", "a", None, {}),
        Event(2, 1, "query", "b", None, {}),
        Event(3, 3, "query", "c", None, {}),
    ]
    assert sorted(e.name for e in Forest.of(odd).walk()) == ["a", "b", "c"]


def test_text_helpers() -> None:
    assert [number(v) for v in (3.0, 3.14159, True, None, float("inf"), 1e20, "")] == [
        "3", "3.142", "true", "none", "inf", "1e+20", '""',
    ]  # fmt: skip
    assert [amount(v) for v in ("0.10", 1, "1e-7", Decimal(1) / 3, 0)] == ["0.1", "1", "1e-07", "0.333333", "0"]
    assert [bar(s, 4) for s in (0, 0.01, 0.5, 1, 7)] == ["░░░░", "█░░░", "██░░", "████", "████"]
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█" and sparkline([1, float("inf"), 1]) == "▁ ▁"
    assert align([["a", "10"], ["bbb", "2"]], [False, True]) == ["a    10", "bbb   2"]


def test_long_lines_of_a_tree_go_on_under_their_own_twig() -> None:
    tree = "choose chose Each\n\n├─ one two  three four\n│  └─ five six seven-eight\n└─ nine ten eleven twelve"
    assert folded(tree, 99) == tree
    assert folded(tree, 17).split("\n") == [
        "choose chose Each", "", "├─ one two  three", "│    four", "│  └─ five six", "│       seven-eight",
        "└─ nine ten", "     eleven", "     twelve",
    ]  # fmt: skip
