"""What a value has is declared once: a member that no model or report has is refused before anything is paid for it."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from jostle.check.dry import forms
from jostle.kernels import Model
from jostle.run.externals import KERNELS, kernel_of
from jostle.source import Source
from jostle.tools.session import Session

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fuzz"))

BEFORE = (
    "use best\nuse statistics\nuse trees\nuse mixtures\nuse graphical\nuse ising\nuse effects\nuse regressions\n"
    'private t = table("t.csv") described by {age: 0..99, sex: {"F", "M"}, w: 0.0..1.0, high: {0, 1}} protecting rows '
    "budget epsilon 300\nv = vectors(t, age, w)\nmany = {{ select count(*) as n from t groupby age having n > 3 "
    "with epsilon 1 }}\nn = {{ select count(*) from t with epsilon 1 }}\n"
)
CALLS = (
    'best_classifier(pick(t, age, sex), "sex")', "best_mixture(v, 2)",
    'linear_regression(t, "age", ["w"])', 'anova(t, "age", "sex")',
    'logistic_regression(t, "sex", ["w"])', 'describe_numeric(t, "age")',
    'ate_stratified(t, "high", "age", ["sex"])', 'crosstab(t, "sex", "high")',
)  # fmt: skip
WRONG = (
    "{}.predict_proba({{age: 3}})", "{}.p_value", "{} > 1", "{} + 1", "max({}, 1)", "round({})", "{}(1)",
    "[one for one in {}]", "error({})", "upper({})", "where({}, n > 3)", "date({})", "[{}][0].p_value", "-{}",
)  # fmt: skip
OTHERS = {
    "band(n, level = 90)": "the level of a band", "many.sex": "has no `sex`",
    "where(n, n > 3)": "takes a table or a cube, not a number",
    "histogram(n, age)": "takes a table, not a number", "keys(n)": "a record", "date(many)": "a grouped result",
}  # fmt: skip
FINE = (
    "{}.title", "str({})", "[{}, 1]", "{{a: {}}}.a", "{} == 3",
)  # fmt: skip


def check(text: str) -> list[str]:
    return [fault.message for fault in Session().check(Source("p.jst", BEFORE + text + "\n"))]


@pytest.mark.parametrize("call", CALLS)
def test_what_no_model_and_no_report_has_is_refused_before_it_is_paid_for(call: str) -> None:
    fine = [form.format("m") for form in FINE[call.startswith("best_") :]]
    assert check(f"m = {call} with epsilon 1\n" + "\n".join(f"print({line})" for line in fine)) == []
    told = {form: check(f"m = {call} with epsilon 1\nprint({form.format('m')})") for form in WRONG}
    assert [form for form, messages in told.items() if len(messages) != 1] == []


ROWS = {
    'best_classifier(pick(t, age, sex), "sex")': ("[{age: 3}]", "3", '"F"'),
    'best_regression(t, "age")': ("[{w: 0.5}]", "3"), "best_clusters(v, 2)": ("3", '"F"'),
    "best_mixture(v, 2)": ("3", '["F"]'),
}  # fmt: skip


@pytest.mark.parametrize("call", ROWS)
def test_what_is_no_row_of_a_model_is_refused_before_it_is_paid_for(call: str) -> None:
    told = {row: check(f"m = {call} with epsilon 1\nprint(m.predict({row}))") for row in ROWS[call]}
    assert [row for row, (message, *_) in told.items() if "a row is a" not in message] == []
    right = "{age: 40, w: 0.5}"
    assert check(f"m = {call} with epsilon 1\nprint(m.predict({right}))") == []


@pytest.mark.parametrize("line", OTHERS)
def test_what_no_answer_can_be_asked(line: str) -> None:
    (message,) = check(f"print({line})")
    assert OTHERS[line] in message


def test_members_are_attributes_and_a_kernel_says_which_model_it_gives() -> None:
    models = []
    for name in KERNELS:
        like = forms.example(forms.given_by(kernel_of(name)))
        if isinstance(like, Model):
            models.append(name)
            assert all(hasattr(like, at) for at in like.jostle_members.values()), name
    assert len(models) >= 60


LIBRARY = {
    "h = hb(histogram(t, age), prefixes(histogram(t, age))) with epsilon 1": ("h.zz", "h(1)", "laplace(h)"),
    "h = dawa(histogram(t, age), prefixes(histogram(t, age))) with epsilon 1": ("h.zz", "upper(h)", "h[0.5]"),
    "h = laplace(correct_count(t, majority(t, \"sex\") with epsilon 1, \"sex\")) with epsilon 1": ("h.zz", "h[0]"),
    "h = exp_mech([\"a\", \"b\"], [size(t), size(t)]) with epsilon 1": ("h.zz", "h > 1"),
    "h = map_kmeans(v, 2) with epsilon 1": ("h.zz", "h > 1", "upper(h)"),
    "h = regression_tree(pick(t, age, w), \"age\", 1) with epsilon 1": ("h.zz", "h > 1"),
    "h = refined(refinable(t), lambda n: true) with epsilon 1": ("band(h, level = 90)",),
    "h = best_model(pick(t, age, sex)) with epsilon 1": ("h.zz", "h.table([\"age\"])", "h + 1"),
    "jointly with epsilon 1:\n    h = {{ select count(*) as n from t groupby sex }}": ("h.zz", "h.n(1)", "max(h.n, 1)"),
    "def f(a):\n    if a > 3: return 1\n    return a\nh = f(n)": ("h.zz", "upper(h)"),
    "def f(a):\n    if a > 3: return f(a - 1)\n    return [a]\nh = f(n)": (),
    "h = 1\nif n > 3: h = 2": ("h.zz", "h(1)"),
    "h = 1\nif n > 3: h = \"a\"": (),
    "h = {{ select bounds(w) from t with epsilon 1 }}": ("h.low(1)", "t(h)"),
}  # fmt: skip


@pytest.mark.parametrize("given", LIBRARY)
def test_what_a_function_gives_is_known_by_its_kind(given: str) -> None:
    before = f"use histograms\nuse regressions\nuse classifiers\nuse gradual\n{given}\n"
    assert check(before + "print(h)") == []
    said = {wrong: check(f"{before}print({wrong})") for wrong in LIBRARY[given]}
    assert [wrong for wrong, messages in said.items() if len(messages) != 1] == []


def test_a_method_that_is_called_as_a_built_in_is_refused_as_itself(tmp_path: Path) -> None:
    """`made.table(…)` was told what `table("file.csv")` takes."""
    (tmp_path / "t.csv").write_text("a\n" + "1\n3\n" * 40)
    session = Session(cwd=tmp_path)
    given = 'use best\nt = table("t.csv") described by {a: 0..3}\nmade = best_synthetic(t)\n'
    assert session.attempt(Source("p.jst", f'{given}release n = made.table(["a"])\n')).ok
    (fault,) = session.attempt(Source("p.jst", f'{given}release n = made.table(["b"])\n')).diagnostics
    assert fault.message == "there is no variable `b`: the variables are a"


@pytest.mark.slow
def test_few_of_many_mistakes_are_refused_late(tmp_path: Path) -> None:
    """A seed of `tests/fuzz/fuzz_mutants.py`; more of it takes longer (docs/experiments/checks.md)."""
    from fuzz_mutants import Judge, bases, mutants

    draw = random.Random(7)
    chosen = [mutant for base in bases() if base.title.startswith("examples/") for mutant in mutants(base, draw)]
    judge, verdicts = Judge(tmp_path), []
    for mutant in draw.sample(chosen, 60):
        verdicts.append(judge.judge(mutant).verdict)
    assert verdicts.count("early") >= 20 and verdicts.count("late") <= 4, verdicts


def test_a_list_of_numbers_is_no_table_whatever_its_length(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    given = 'use histograms\nprivate t = table("t.csv") described by {a: 0..31} protecting rows budget epsilon 1\n'
    given += "h = histogram(t, x = a)\nx = hdmm(h, prefixes(h)) with epsilon 1\n"
    (fault,) = Session(cwd=tmp_path).check(Source("p.jst", f"{given}print({{{{ select count(*) as m from x }}}})\n"))
    assert fault.message == "a select reads a table or a cube, and this is a list"
