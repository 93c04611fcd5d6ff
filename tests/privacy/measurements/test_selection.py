"""`largest`, `above_threshold` and `above` in programs: what they charge, answer and refuse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jostle.accounting.amounts import Amount
from jostle.accounting.definitions import Measure
from jostle.diagnostics import Refusal
from jostle.privacy.mechanisms.selection import Selection
from jostle.source import Source
from jostle.tools.session import Session
from jostle.trace.tree import one_line

OPENING = "use selection\nuse features\nuse row_vectors\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f"{'a' if i % 10 < 7 else 'b'},{i % 8}" for i in range(1000)]
    (tmp_path / "t.csv").write_text("\n".join(["k,v", *rows, "c,0"]) + "\n")
    (tmp_path / "u.csv").write_text("k,w\na,1\na,2\nb,3\n")
    return tmp_path


def run(
    folder: Path, program: str, budget: str = "epsilon 100", unit: str = "rows", private: str = "private "
) -> Session:
    session = Session(cwd=folder)
    described = 'described by {k: {"a", "b", "c"}, v: 0..7}'
    clauses = f" protecting {unit} budget {budget}" if private else ""
    declared = f'{OPENING}{private}t = table("t.csv") {described}{clauses}\n'
    session.execute(Source("p.jst", declared + program))
    return session


def refusal(session: Session, text: str) -> tuple[str, str]:
    """The kind and the message of what an expression is refused with."""
    with pytest.raises(Refusal) as refused:
        session.execute(Source("q.jst", f"x = {text}"))
    return refused.value.first.kind, refused.value.first.message


PARTS = '[size(where(t, k == @c)) for c in ["c", "a", "b"]]'


@pytest.mark.slow
def test_the_largest_are_in_order_and_their_leads_near(folder: Path) -> None:
    names = run(
        folder,
        f"""
two = largest({PARTS}, 2) with epsilon 50
told = largest({PARTS}, 2, leads = true) with epsilon 40
all = largest({PARTS}, 3, leads = true, epsilon = 10)
assert spent(t) == 100
public = largest([3, 1, 3, 7], 2, leads = true)
""",
    ).names()
    assert names["two"] == names["told"]["places"] == [1, 2] and names["all"]["places"] == [1, 2, 0]
    assert [abs(a - b) <= names["told"]["within"] for a, b in zip(names["told"]["leads"], [400, 299], strict=True)]
    assert len(names["all"]["leads"]) == 2 and names["told"]["within"] == pytest.approx(2 / 40 * np.log(3 / 0.05) + 1)
    assert names["public"] == {"places": [3, 0], "leads": [4, 0], "within": 0}


@pytest.mark.parametrize(("budget", "leads", "kind", "epsilon"), [
    (Amount("epsilon", 10**12), False, "pure", 0.25), (Amount("rho", 10**12), False, "zcdp", np.sqrt(8 / 4)),
    (Amount("rho", 10**12), True, "zcdp", None), (Amount("epsilon", 10**12, 10**6), False, "approximate", 0.25),
])  # fmt: skip
def test_a_selection_of_four_costs_what_four_would(
    budget: Amount, leads: bool, kind: str, epsilon: float | None
) -> None:
    """Each of four has the ε of a fourth of the price, in ε, in ρ, and of both kinds of noise."""
    measures = [Measure(kind, budget)]
    four, one = (Selection.of(budget, measures, count, leads) for count in (4, 1))
    expected = one.epsilon / 4 if epsilon is None else epsilon
    assert four.epsilon == pytest.approx(expected) and four.price.amount.value == budget.value
    if kind == "approximate":
        assert four.price.rho == pytest.approx(10**12 / 8 / 4, abs=1) and four.price.pure


def test_a_watch_is_paid_for_once_and_closes(folder: Path) -> None:
    session = run(
        folder,
        """
w = above_threshold(t, 250, most = 2) with epsilon 60
found = [c for c in ["c", "a", "c", "b", "c"] if w.left > 0 and above(where(t, k == @c), w)]
assert spent(t) == 60 and w.left == 0 and w.most == 2 and w.within < 1
g = above_threshold(size(t), 250, tells = "gap", epsilon = 20)
low = above(where(t, k == "c"), g)
gap = above(t[k = "a"], g)
m = above_threshold(t, 250, tells = "number") with epsilon 4
number = above(t, m)
off = error(number)
""",
    )
    names = session.names()
    assert names["found"] == ["a", "b"]
    assert names["low"] is None and abs(names["gap"] - 450) < 10 and abs(names["number"] - 1001) < 10
    assert 1 <= names["off"] < 3
    assert refusal(session, "above(t, w)") == (
        "BudgetExceeded",
        "this watch was for 2 answers above, and has given them",
    )


def test_public_data_are_watched_exactly(folder: Path) -> None:
    names = run(folder, """
w = above_threshold(t, 300, most = 2)
a = [above(where(t, k == "b"), w), above(size(t), w), w.left]
g = above_threshold(size(t), 300.5, tells = "gap")
b = above(where(t, k == "a"), g)
n = above_threshold(t, 300, tells = "number")
c = [above(299, n), above(301, n)]
""", private="").names()  # fmt: skip
    assert names["a"] == [True, True, 0] and names["b"] == 399.5 and names["c"] == [None, 301]


def test_under_rho_every_answer_above_has_a_threshold(folder: Path) -> None:
    """Its noise grows as the root of how many answers above it gives, not as their number."""
    names = run(
        folder,
        """
with rho 0.1: one = above_threshold(t, 5)
with rho 0.1: many = above_threshold(t, 5, most = 100)
found = [i for i in 0..7 if above(where(t, v == @i), many)]
""",
        "rho 1",
    ).names()
    assert names["many"].watch.scales.each == 1 and names["many"].left == 100 - len(names["found"])
    assert names["many"].watch.law.half_width() == pytest.approx(10 * names["one"].watch.law.half_width(), rel=0.01)


REFUSED = {
    "a score that a row moves further": ("total_variation(histogram(t, v))", "moves this score by up to 2"),
    "a score on a finer grid": ("l1_to_uniform(histogram(t, v))", "a finer grid"),
    "a public number": ("7", "needs no watch"),
    "other data": ("size(s)", "paid for on other data"),
    "a watch": ("w", "a score or a table"),
    "a vector of scores": ('coordinate_scores(vectors(t, v), "coordinates")', "one score after the other"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_watch_refuses_what_it_is_not_for(folder: Path, name: str) -> None:
    text, message = REFUSED[name]
    (folder / "s.csv").write_text("k\na\n")
    session = run(folder, 'private s = table("s.csv") described by {k: text} protecting rows budget epsilon 1\n'
                  "w = above_threshold(t, 250, most = 2) with epsilon 1\n")  # fmt: skip
    kind, said = refusal(session, f"above({text}, w)")
    assert kind == "TypeError" and message in said and session.names()["w"].left == 2


def test_a_watch_is_asked_outside_of_a_block_which_asked_it_twice(folder: Path) -> None:
    session = run(folder, "w = above_threshold(t, 250, most = 2) with epsilon 1\n")
    block = "jointly with epsilon 1:\n    a = above(t, w)\n    n = {{ select count(*) from t }}\n"
    with pytest.raises(Refusal, match="`above` measures by itself"):
        session.execute(Source("q.jst", block))
    assert session.names()["w"].left == 2


def test_a_watch_for_scores_that_rise_takes_none_that_falls_or_may_do_both(folder: Path) -> None:
    session = run(
        folder,
        """
use trees
use classifiers
h = histogram(t, v)
falls = above_threshold(gini(t, k, v), -5, most = 9) with epsilon 1
rises = above_threshold(l2(h), 5, most = 9) with epsilon 1
both = above_threshold(l1_to_uniform(h), 5, most = 9) with epsilon 1
""",
    )
    for watch, score, right in (
        ("falls", "gini(t, v, k)", True), ("falls", "size(t)", False), ("rises", "size(t)", True),
        ("rises", "l1_to_uniform(h)", False), ("both", "l1_to_uniform(h)", True), ("both", "size(t)", True),
    ):  # fmt: skip
        if right:
            session.execute(Source("q.jst", f"x = above({score}, {watch})"))
        else:
            assert "another way" in refusal(session, f"above({score}, {watch})")[1]


def test_a_person_with_several_rows_widens_a_watch_and_a_row_more_is_refused(folder: Path) -> None:
    program = "w = above_threshold(t, 250) with epsilon 1\nx = above({}, w)"
    one = run(folder, program.format("where(t, v > 2)"), unit="k up to 1 rows").names()["w"]
    three = run(folder, program.format("where(t, v > 2)"), unit="k up to 3 rows").names()["w"]
    assert three.watch.scales.question == pytest.approx(3 * one.watch.scales.question)
    with pytest.raises(Refusal, match="moves this score by up to 2, and the watch is for 1"):
        run(folder, program.format("union(t, t)"), unit="k up to 1 rows")


@pytest.mark.parametrize(("text", "kind"), [
    ("above_threshold(t, 1 / 0) with epsilon 1", "ValueError"),
    ("above_threshold(t, 5, most = 0) with epsilon 1", "ValueError"),
    ('above_threshold(t, 5, tells = "all") with epsilon 1', "ValueError"), ("above_threshold(t, 5)", "NoEpsilon"),
    ('above_threshold(t, "5") with epsilon 1', "TypeError"), ("above(t, 5)", "TypeError"),
    ("above_threshold(t, size(t)) with epsilon 1", "PrivateValue"),
    ("above_threshold(t, 5) with epsilon 101", "BudgetExceeded"),
    ("above_threshold(t, 5, most = 100000) with epsilon 0.000000001", "BadAmount"),
    ("largest([size(t), size(t)], 2, leads = true) with epsilon 0.000000000001", "BadAmount"),
    ("largest([size(t)], 2) with epsilon 1", "ValueError"), ("largest([]) with epsilon 1", "ValueError"),
    ("largest([size(t), 1]) with epsilon 1", "TypeError"), ("largest([1, 2], 0.5)", "TypeError"),
    ("largest([size(t)], size(t)) with epsilon 1", "PrivateValue"),
    ("margin_max([size(t), size(t)]) with epsilon 1", "BadAmount"), ("margin_max([]) with epsilon 1", "ValueError"),
    ("margin_max([size(t), size(t)]) with epsilon 1 delta 1e-6", "TypeError"),
    ("margin_max([size(t), 1]) with epsilon 1", "TypeError"), ("margin_max([size(t), size(t)])", "NoEpsilon"),
])  # fmt: skip
def test_bad_input_is_refused_before_a_charge(folder: Path, text: str, kind: str) -> None:
    session = run(folder, "")
    assert refusal(session, text)[0] == kind
    assert session.budget()["t"]["epsilon"]["spent"] == "0"


def test_a_trace_says_that_a_question_was_paid_for_before(folder: Path) -> None:
    session = run(
        folder, "w = above_threshold(t, 250) with epsilon 1\nx = [above(t, w), above_threshold(t, 3) with epsilon 1]"
    )
    lines = [one_line(event) for event in session.events if event.kind == "measure"]
    assert len(lines) == 3 and "paid for before" in lines[1] and "of the threshold (95 %)" in lines[0]
    assert [event.fields.get("epsilon") for event in session.events if event.kind == "measure"] == [1, None, 1]
