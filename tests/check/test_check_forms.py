"""Forms of answers are known before they are paid for: what a run is sure to refuse of them, `check` says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.check.dry import forms
from jostle.check.dry.stand_ins import of_measurement
from jostle.run.externals import KERNELS, kernel_of
from jostle.source import Source
from jostle.tools.session import Session

BEFORE = (
    "use statistics\nuse linear_algebra\nuse histograms\nuse trees\n"
    'private t = table("t.csv") described by {age: 0..99, sex: {"F", "M"}, w: 0.0..1.0} protecting rows '
    "budget epsilon 300\n"
    "private c = counts([5, 7, 3, 9, 1, 2, 8, 6, 4, 3, 2, 1]) protecting rows budget epsilon 10\n"
    "ages = histogram(t, x = age)\nboth = histogram(t, x = age / 8, y = sex)\nv = vectors(t, age, w, radius = 1)\n"
    "n = {{ select count(*) from t with epsilon 1 }}\n"
    "b = {{ select count(*) as n, avg(age) as a from t groupby sex with epsilon 1 }}\n"
    "r = {{ select count(*) as n, sum(age) as s from t with epsilon 1 }}\n"
    "q = {{ select bounds(age) from t with epsilon 1 }}\no = {{ select mode(sex) from t with epsilon 1 }}\n"
    "many = {{ select count(*) as n from t groupby sex having n > 0 order by n desc limit 1 with epsilon 1 }}\n"
    "a = {{ select avg(age) from t with epsilon 1 }}\n"
    "e = {{ select sum(age) / count(*) as r from t groupby sex with epsilon 1 }}\n"
    "h = laplace(c) with epsilon 1\nx = laplace(ages) with epsilon 1\ny = laplace(both) with epsilon 1\n"
)
REFUSED = (
    "h[0..2]", "h[12]", "h[-13]", "h[1.5]", "h.first", "b[2]", "b.n[2]", "b[50].n", "b[0].nn", "b.nn", "r.nn", "n[0]",
    "n.first", "x[100]", "y[13]", "y[3][2]", "x + y", "x + h", "100 / (n - n)", "n / 0", "h / (n - n)", "n % 0",
    "100 / (r.n - r.n)", "b[0].n / (r.s - r.s)", "[n, n][2]", "{a: n, b: h}.c", "{a: n, b: h}.b[12]", "zip(h, x)[12]",
    "enumerate(b)[2]", "reversed(h)[12]", "[k / 2 for k in h][12]", "[n * i for i in 0..4][5]", "sum(h)[0]",
    "(h * 2 + 1)[12]", "len(h) / (len(h) - 12)", "laplace([c, ages])[2] with epsilon 1",
    "eigen(noisy_moments(v).second) with epsilon 1",
    # of all values of a kind, whatever function takes them
    "round(b)", "sqrt(r)", "min(h, b)", "clamp(r, 0, 1)", "sorted(n)", 'sorted(b, "z")', "keys(n)", "upper(n)",
    "max(n)", "[k.z for k in b]", "[k + 1 for k in b]", "[k for k in n]", "[k for k, l in b]",
    "[k.z for k in b if k.n > 3]", "n(1)", "b(1)", '[1, 2][b]', 'b["F", "n"]', 'b["Q"]', 'b["F"].z', "b.sex + 1",
    "str(n) + 1", "q + r", "sqrt(q)", "many + 1", "many.zz", "not q", "o.low", "o[\"c\"]", "a[0]", "a.n", "a and true",
    "-o", "o(1)",
    "{{ select sum(zz) from b }}", "{{ select count(*) from n }}", "{{ select count(*) from r }}",
    "{{ select count(*) as c from t join n on sex with epsilon 1 }}", "{{ select avg(sex) from b }}",
    "{{ select count(*) as c, avg(age) as m from t groupby sex having m > 1 and c with epsilon 1 }}",
    'q["low"].z', "[1 if c.n else 2 for c in b]", "e.n + \"x\"", "e + 1", "[k + 1 for k in e]", 'e["F"].q',
    "{{ select count(*) as c, (1 if avg(age) > 5 else \"x\" + 1) as m from t with epsilon 1 }}",
    "none < n", "n + none", 'max(error("zz"))', '[k + "zz" for k in 0..floor(n)]', "[k.n for k in b][2]",
    "[k for k in 0..floor(n)][0].z", "[{u: k} for k in 0..floor(n)][0].z",
    "bootstrap(ages, dawa, identity(ages), epsilon = 0.5, runs = 10)",
)  # fmt: skip
LINES = {
    "plot(n)": "`y` takes a list, not a number",
    'plot(b, "z")': "`y` takes a list, not a text",
    "m = noisy_moments(v) with epsilon 1\nprint(eigen(m.second))": "a matrix is a list of rows",
    "m = {{ select median(age) as a from t with epsilon 1 }}\nprint(m, m.a)": "a number has no fields",
    "m = noisy_moments(v) with epsilon 1\nprint(m.secnd)": "has no `secnd`",
    'f = linear_regression(t, "age", ["w"]) with epsilon 1\nprint(f.slopes[0])': "a report has no `slopes`",
    'f = logistic_regression(t, "sex", ["w"]) with epsilon 1\nprint(f.slopes)': "a report has no `slopes`",
    'f = correlation_matrix(t, ["age", "w"]) with epsilon 1\nprint(f.pairs)': "a report has no `pairs`",
    "def f(k): return laplace(k)\nz = f(c) with epsilon 1\nprint(z[12])": "index 12 is outside a list of 12",
    "def f(k) { return {cells: laplace(k)} }\nz = f(c) with epsilon 1\nprint(z.cells[12])":
        "index 12 is outside a list of 12",
    "for i in 0..12:\n    print(h[i])": "index 12 is outside a list of 12",
    "assert len(h) == 13": "this does not hold",
    "for k in b:\n    print(k.nn)": "a record has no `nn`",
    "for k in n:\n    print(k)": "a number cannot be walked through",
    "m = {{ select avg(age) from t with epsilon 1 }}\nprint(1 / (m - m))": "division by zero",
    "m = {{ select avg(age) as a, mode(sex) as s from t with epsilon 1 }}\nprint(h / (m.a - m.a))": "division by zero",
    "for k in 0..floor(n):\n    print(k.zz)": "a number has no fields",
    "jointly with epsilon 1:\n    m = {{ select count(*) from t with weight 8 }}\n"
    "    g = {{ select count(*) as n from t groupby sex }}\nprint(g.zz, m)": "a grouped result has no `zz`",
    "xs = []\nfor i in 0..3:\n    k = laplace(size(t)) with epsilon 0.1\n    xs = xs + [k]\nprint(xs[4])":
        "index 4 is outside a list of 4",
}  # fmt: skip
BEYOND = (
    "m = [k for k in 0..floor(n)]\nfor i in 0..len(m):\n    k = i + 1\n    print(k, m[i])",
    "for i in 0..len(many): print(many.sex[i])",
    "print([many.n[i] for i in 0..len(many)])",
)
FINE = (
    "use gradual\nages = refinable(sum_of(t, age))\nyears = refine(ages) with epsilon 0.1\n"
    "assert ages.paid == 0.1\nif ages.paid < 0.05: assert false\nprint(1 / ages.paid)",
    "print([none, n][1] + 1, none == n, b.n + none)\nlast = none\nfor k in b:\n    if last != none: print(k.n - last)\n"
    "    last = k.n",
    "last = none\nprint(n - last if n > 0 and last != none else 0)",
    "m = [{u: k, v: n} for k in 0..floor(n)]\nprint(m[0].u + 1, sum([k.v for k in m]), [k.n for k in b][1])\n"
    "for k in 0..floor(n) - 1: print(m[k].v, k + 0.5)",
    "for i in 0..len(many) - 1: print(many.n[i])\nfor i in 0..len(many):\n    if i < len(many): print(many.n[i])\n"
    "def f(m):\n    for i in 0..len(m):\n        if m[i] > -1000: return m[i]\n    return 0\nprint(f(many.n))\n"
    "w = {a: [n, n, n], b: [n, n, n]}\nfor i in 0..len(w): print(w.a[i])\n"
    "for i in 0..len(many):\n    many = [1, 2, 3]\n    print(many[i])",
    "d = {{ select mode(upper(sex)) as s, median(age + 1) as a from t with epsilon 1 }}\n"
    "print(substring(d.s, 1, clamp(d.a, 1, 1)), [d.s, d.a][0])",
    'plot(b)\nplot("by sex", b.sex, b.n)\nplot(e)\nplot(h)\nplot(many)',
    'z = table("u.csv")\nprint({{ select count(*) from z[sex = "F"] }})',
    'print(zip(b, table("u.csv"))[0][1].w, zip(h, table("u.csv"))[11][0])',

    'print(b["F"].n, b["M"]["a"], b.sex[0] + "x", [k.n for k in b if k.sex == "F"], sorted(b, "n")[0].a, sorted(b.n))',
    "print([k + \" \" + str(l) for k, l in zip(b.sex, b.n)], record([[k.sex, k.n] for k in b]), keys(r), values(r))",
    "print(sorted(e, \"r\"), sum([k.r for k in e]), round(e.r[0]), max(e.r), e[\"M\"].r, [k.r > 3 for k in e])",
    "print([k.n for k in many], sum(many.n), [k.sex + \"!\" for k in many], upper(o), o + \"x\", len(o), round(a, 2))",
    "print({{ select sex, sum(n) as s from b groupby sex }}, {{ select max(a) as m from b where sex == \"F\" }})",
    "print({{ select sum(w) as s, count(*) as c from t join b on sex groupby sex with epsilon 1 }})",
    "print(q.high - q.low, clamp(q.low, 0, 1), str(q), [k for k in q], keys(q), [n, a, r.n][0], 1 if a > 3 else 2)",
    "for k in b:\n    if k.n > 2: print(k.sex, k.a + 1)\nfor k in e: print(k.r)\nfor k in many: print(k.n + 1)",
    "print({{ select count(*) as c, avg(age) as m from t groupby sex having m > 1 and c > 0 with epsilon 1 }})",
    "d = derive(t, d = 2024-01-01 + age)\nd = {{ select min(d) as low, avg(d) as m from d with epsilon 1 }}"
    "\nprint(d.low > 2024-01-05 or d.m < 2024-01-01, days_between(d.low, d.m))",
    "print(b.n / sum(b.n), b.n + b.a, b.n * 2, b.n - h[0], 1 / (b.n - b.n + 3), len(b.n) - 2, [k for k in b.n][1])",
    "print(b.n + b.n[0], b.n + [1, 2], max(b.n))",
    'f = linear_regression(t, "age", ["w"]) with epsilon 1\nprint(f.rows[1].value, f.columns[0], f.notes, f.title)',
    "print(h[11], h[-12], x[99], y[12][1], b[1].n / 2, b.n[1], b[1].sex + \"x\", r.s / r.n, r.s / (r.n - n + 0.5))",
    "def f(k) {\n    if n > 3: return [1]\n    return [1, 2]\n}\nz = f(1)\nif len(z) > 1: print(z[1])",
    "print([k / 2 for k in h][11], [n * i for i in 0..4][4], [k for k in h if k > 1000])",
    "d = {{ select bounds(age) from t with epsilon 1 }}\nprint(d.low, d.high)",
    "d = {{ select {a: avg(age)} as r from t with epsilon 1 }}\nprint(d.a)",
    "d = {{ select max(age) as high, mode(sex) as often from t with epsilon 1 }}\nprint(d.often + \"x\")",
    "z = table([{a: 1}, {a: 2}])\nfor one, other in zip(b, z): print(one.n, other.a)\n"
    "print(enumerate(z)[1][1].a, reversed(z)[0].a)",
    "k = laplace(size(t)) with epsilon 0.1\nz = laplace(c) with epsilon 1 / (2 + (k - k))\nprint(z[0])",
    "m = {{ select avg(age) from t with epsilon 1 }}\nprint(1 / (m - m + 1), 1 / (m - n), m - m + m)",
    "s = {{ select mode(sex) from t with epsilon 1 }}\nprint(len(s), s[0], upper(s), [s, s][1])",
    "w = 0\nif n > 1000000: w = h[0] / 0 + h[50]",
    "k = n - {{ select count(*) from t with epsilon 1 }}\nprint(100 / (k + 1e9))",
    'f = linear_regression(t, "age", ["w"]) with epsilon 1\nprint(f.coefficients.w, f.count, f.column("term"))',
    "m = noisy_moments(v) with epsilon 1\nprint(eigen(m.second[0]), m.first[0][1], m.count[0], m.count_noise)",
    "q = quantile_cuts(t, \"age\", 4) with epsilon 1\nprint(q[2])",
    "s = {{ select count(*) as n from t groupby age having n > 1000 with epsilon 1 }}\nprint(len(s))",
    'f = [compare(t, k, "sex") with epsilon 1 for k in ["age", "w"]]\nprint(f[0].difference)',
    'f = [describe_numeric(t, k.name) with epsilon 1 for k in columns(t) if k.name != "sex"]\nprint(f[0])',
    'f = [correlation_matrix(t, [k, "w"]) with epsilon 1 for k in ["age"]]\nprint(f[0].matrix)',
)  # fmt: skip


@pytest.fixture
def session(tmp_path: Path) -> Session:
    rows = "".join(f"{20 + k % 50},{'FM'[k % 2]},{k % 10 / 10}\n" for k in range(400))
    for name in ("t.csv", "u.csv"):
        (tmp_path / name).write_text("age,sex,w\n" + rows, encoding="utf-8")
    return Session(cwd=tmp_path)


def program(text: str) -> Source:
    return Source("p.jst", BEFORE + text + "\n")


@pytest.mark.parametrize("line", [*(f"print({it})" for it in REFUSED), *LINES])
def test_what_no_answer_has_is_refused_before_it_is_paid_for(
    line: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fault,) = session.check(program(line))
    assert LINES.get(line, "") in fault.message and fault.span is not None
    before = session.attempt(program(line))
    assert before.diagnostics == (fault,) and before.budget == {}
    monkeypatch.setattr("jostle.tools.session.Session._affordable", lambda *_: None)
    monkeypatch.setattr("jostle.tools.session.Session._check", lambda *_: [])
    late = session.attempt(program(line))  # a run says the same, after it has paid
    (said,) = late.diagnostics
    assert (said.kind, said.message, said.span) == (fault.kind, fault.message, fault.span)
    assert late.budget["t"]["epsilon"]["spent"] != "0" and "n" in late.measured


@pytest.mark.parametrize("line", BEYOND)
def test_the_last_round_of_a_range_up_to_a_length_is_beyond_whatever_the_length_is(line: str, session: Session) -> None:
    (fault,) = session.check(program(line))
    assert fault.kind == "ValueError" and "in the last round, since a range has both ends" in fault.message
    assert "- 1`" in fault.help and session.attempt(program(line)).budget == {}


@pytest.mark.parametrize("line", FINE)
def test_what_an_answer_has_or_may_have_passes(line: str, session: Session) -> None:
    assert [fault.message for fault in session.check(program(line))] == []
    assert session.attempt(program(line)).diagnostics == ()


def facts(kernel: str) -> list[str]:
    """The fields of its own that a kernel's report has, as its annotation says."""
    report: Any = forms.example(forms.given_by(kernel_of(kernel)))
    return [name for name in report.facts if name not in report.jostle_members]


def test_reports_have_the_fields_that_are_known_of_them(session: Session) -> None:
    calls = {
        "linear_fit": 'linear_regression(t, "age", ["w"])', "logistic_fit": 'logistic_regression(t, "sex", ["w"])',
        "correlations": 'correlation_matrix(t, ["age", "w"])', "group_means": 'anova(t, "age", "sex")',
        "rate_model": 'poisson_regression(t, "age", ["sex"])', "survival_curve": 'kaplan_meier(d, "age", "died")',
        "weighted_values": 'weighted_quantiles(t, "age", "w", [0.5])',
        "independence_test": 'independence(d, "sex", "died")',
        "log_rank_test": 'log_rank(d, "age", "died", "sex")',
        "hazard_model": 'hazard_ratios(d, "age", "died", ["sex"])',
        "cross_table": 'crosstab(d, "sex", "died")', "group_difference": 'compare(t, "age", "sex")',
        "describe": 'describe_numeric(t, "age")', "effect_of_strata": 'ate_stratified(d, "died", "age", ["sex"])',
        "effect_of_model": 'ate_smoothed(d, "died", "age", ["sex"])',
        "effect_of_scores": 'ate_weighted(d, "died", "age", ["sex"])',
    }  # fmt: skip
    reports = {name for name in KERNELS if getattr(forms.example(forms.given_by(kernel_of(name))), "facts", None)}
    assert reports - {*calls} == {"softmax_fit"}
    for kernel, call in calls.items():
        line = f"use effects\nd = derive(t, died = w > 0.5)\nrelease report = {call} with epsilon 4"
        report = session.attempt(program(line)).values["report"]
        assert {*report.facts} - report.jostle_members.keys() == {*facts(kernel)}, kernel


def test_moments_have_the_shapes_that_are_known_of_them(session: Session) -> None:
    from jostle.privacy.kernel.handles import Vectors

    session.execute(program("m = noisy_moments(v) with epsilon 1"))
    names = session.names()
    assert isinstance(names["v"], Vectors)
    like = of_measurement("noisy_moments", [names["v"]])
    shapes = [{name: getattr(value, "shape", ()) for name, value in moments.items()} for moments in (like, names["m"])]
    assert shapes[0] == shapes[1]


def test_the_fields_of_a_report_that_takes_a_delta(tmp_path: Path) -> None:
    session = Session(cwd=tmp_path)
    session.bind("t", {"age": [20, 30], "sex": ["F", "M"]})
    report = session.attempt(Source("p.jst", """use statistics
private t = bound("t") described by {age: 0..99, sex: {"F", "M"}} protecting rows
    budget epsilon 4, delta 1e-4 counted by basic
release report = softmax_regression(t, "sex", ["age"], 3, 0.5) with epsilon 4 delta 1e-4
""")).values["report"]  # fmt: skip
    assert [*report.facts] == facts("softmax_fit")


def test_counts_that_a_program_calculates_are_a_cube(session: Session) -> None:
    """Counts of what is not known before a run were taken for the list that they are of."""
    source = Source("p.jst", """use histograms
cells = example_histogram([8], 1)
release answers = exact(prefixes(cells), cells)
""")  # fmt: skip
    assert session.check(source) == []
    answers = session.attempt(source).values["answers"]
    assert len(answers) == 8 and (np.diff(answers) >= 0).all() and answers[-1] > 0
