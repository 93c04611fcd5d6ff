# ruff: noqa: E501 (a form or a program stands on one line)
"""The rules of the language, a small program for each: what it must compute, or the kind that must refuse it.

A rule is named by the section that it stands in (`budget`, `parts`, `sources`, `rows`, `labels`, `choice` are the finer
rules; numbers are sections of the language's description). Where `assert` lines are enough, they are the test.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from jostle.source import Source
from jostle.tools.session import Session

T = (
    'private t = table("t.csv") described by {age: 0..99, sex: {"F", "M"}, pay: 0.0..10.0, note: text, free: real} '
    "protecting rows budget epsilon 10\n"
)
U = 'private u = table("u.csv") described by {age: 0..99} protecting rows budget epsilon 10\n'
C = "private c = counts([5, 6, 7, 8]) protecting rows budget epsilon 10\n"
P = 'p = table("p.csv")\n'
COUNT = "{{ select count(*) from t with epsilon %s }}\n"

HOLDS: dict[str, str] = {
    "budget 1: an amount is cut after the twelfth place": T + "x = " + COUNT % "0.1000000000009" + "assert spent(t) == 0.1",
    "budget 1: thirds": T + "for i in 1..3: x = " + COUNT % "10 / 3" + "assert left(t) < 1e-9",
    "budget 2: allotments are dynamic": T + "f = lambda: {{ select count(*) from t }}\nwith epsilon 0.5 { x = f() }\nassert spent(t) == 0.5",
    "budget 2: only what was spent is charged": T + "with epsilon 5 { x = " + COUNT.strip() % "1" + " }\nassert spent(t) == 1",
    "budget 3: epsilon is what is left": T + "with epsilon 1 {\n x = " + COUNT % "0.25" + " assert epsilon == 0.75\n}",
    "budget 3: half of what is left": T + "with epsilon 1 {\n x = " + COUNT % "epsilon / 2" + " assert spent(t) == 0.5\n}",
    "budget 3: left is the most on the path": T + "x = {{ select count(*) from t[sex = \"F\"] with epsilon 4 }}\n"
    'assert left(t) == 6 and left(t[sex = "M"]) == 10 and left(t[sex = "F"]) == 6',
    "budget 4: a parameter hides the name": T + "def f(epsilon): return epsilon + 1\nassert f(2) == 3",
    "budget 5: bare selects share": T + "with epsilon 1 { x = {{ (select count(*) from t) + (select sum(age) from t) }} }\nassert spent(t) == 1",
    "budget 5: aggregates share": T + "x = {{ select count(*) as n, sum(age) as s from t with epsilon 1 }}\nassert spent(t) == 1",
    "budget 7: public measurements are free": P + "x = {{ select count(*) from p with epsilon 1 }}\nassert x == 3",
    "budget 8: rho": 'private t = table("t.csv") described by {age: 0..99} protecting rows budget rho 1\n'
    "x = {{ select count(*) from t with rho 0.5 }}\nassert spent(t) == 0.5",
    "budget 9: the largest part": T + 'for key, part in partition(t, sex) { x = {{ select count(*) from part with epsilon 2 }} }\nassert spent(t) == 2',
    "parts 1: parts of a bare column are one partition": T + 'x = {{ select count(*) from t[sex = "F"] with epsilon 2 }}\n'
    'y = {{ select count(*) from where(t, age > 3)[sex = "M"] with epsilon 2 }}\nassert spent(t) == 2',
    "parts 1: another partition adds": T + "for i in 1..2 { for key, part in partition(t, age / 50) { x = {{ select count(*) from part with epsilon 1 }} } }\n"
    "assert spent(t) == 2",
    "parts 2: two conditions are one in the other": T + 'x = {{ select count(*) from t[sex = "F", age = 3] with epsilon 1 }}\nassert spent(t) == 1',
    "parts 2: a row expression filters": P + "assert {{ select count(*) from where(p, age > 20) }} == 2",
    "parts 3: keys are made distinct": T + "g = {{ select count(*) as n from t groupby age over {1, 1.0, 2} with epsilon 1 }}\nassert len(g) == 2",
    "parts 4: every integer between the bounds": T + "g = {{ select count(*) as n from t groupby age / 10 with epsilon 1 }}\nassert len(g) == 10",
    "sources 2: two declarations share one budget": T + T.replace("private t", "private again")
    + "x = " + COUNT % "4" + "assert left(again) == 6",
    "sources 4: what is no number is none": P.replace('p.csv")', 'odd.csv") described by {age: 0..99}')
    + "assert {{ select count(age) from p }} == 1 and {{ select count(*) from p }} == 3",
    "rows 1: columns come before variables": P + "age = 1000\nassert {{ select max(age) from p }} == 40",
    "rows 3: dimensions are positions": C + "assert c.x_range == 4",
    "rows 4: unnamed aggregates": P + "r = {{ select count(*), avg(age) from p }}\nassert r.count == 3 and r.avg == 25",
    "labels 1: containers are public": T + "xs = [t, 1]\nassert len(xs) == 2 and xs[1] == 1\nys = append(xs, t)\nassert len(ys) == 3",
    "labels 5: overflow is infinite": "x = 1e308 * 10\nassert x > 1e308 and -x < 0 and (-10) ^ 999 < 0",
    "labels 6: a number straight from a mechanism": T + "x = " + COUNT % "1" + "assert error(x) > 2.9 and error(x) < 3.1",
    "labels 7: use binds the module and its names": "use pinq\nassert noisyCount == pinq.noisyCount",
    "labels 7: the program's own names win": "def noisyCount(x): return 7\nuse pinq\nassert noisyCount(1) == 7",
    "2: comments": "// a line\nx = 1 # the rest\nassert x == 1",
    "2: sets keep their order": "s = {3, 1, 3, 2}\nassert len(s) == 3 and list(s) == [3, 1, 2]",
    "2: ranges hold both ends": "assert len(2..5) == 4 and sum(2..5) == 14 and len(1..0) == 0",
    "2: the empty braces": "assert len({}) == 0 and keys({}) == []",
    "2: over": "assert (max over a in [1, 3, 2] of a * 2) == 6 and (argmax over a in [1, 3, 2] of -a) == 1",
    "2: numbers beyond a double": "assert 1e400 > 1e308",
    "2: powers": "assert 2 ^ 3 ^ 2 == 512 and -2 ^ 2 == -4",
    "2: a range binds looser than sums": "assert list(1..1 + 2) == [1, 2, 3]",
    "2: a column by a variable": T + 'best = "sex"\nassert len(partition(t, best)) == 2',
    "2: param": "param k = 3\nassert k == 3",
    "2: SQL words in any case": P + "assert {{ SELECT count(*) FROM p WHERE age > 20 }} == 2",
    "4: a column's facts are public": T + "a = columns(t)[1]\nassert a.name == \"sex\" and len(a) == 2 and a.categories == [\"F\", \"M\"]",
    "4: scores are noised": C + "x = laplace(size(c)) with epsilon 1\nassert spent(c) == 1",
    "5: a charge is per source": T + C + "with epsilon 1 { x = {{ select count(*) from t }}\n y = laplace(c) }\nassert spent(t) == 1 and spent(c) == 1",
    "7: stddev is the sample's": P + "assert abs({{ select stddev(age) from p }} - 15) < 1e-9",
    "7: none is skipped": P + "assert {{ select avg(age / (age - 40)) from p }} < 0",
    "7: several aggregates give a record": P + "r = {{ select min(age) as a, max(age) as b from p }}\nassert r == {a: 10, b: 40}",
    "7: a grouped select is walked through": P + "for row in {{ select count(*) as n from p groupby age }}: assert row.n == 1",
    "7: an aggregate over a sub-select": P + "assert {{ max(select count(*) as n from p groupby age) }} == 1",
    "8: a choice on public data is exact": "A = Option (d) { return 1 }\nB = Option (d) { return 2 }\nu = Utility (d, a) { return a }\n"
    "c = MkChoiceMaker among {A, B} informed by {} trained on { {database: counts([1, 2])}, {database: counts([3, 2])} } wrt u\n"
    "assert c({database: counts([1, 1])}) == 2",
    "lists: a set is quick": "s = set(1..100000)\nassert len(s) == 100000 and 5 in s and not (0 in s)",
    "lists: sets compare by value": "assert {[1, 2], {a: 1}} == { {a: 1}, [1, 2]} and len({1, true, 1.0}) == 2",
    "lists: record of pairs": 'assert record([["a", 1], ["b", 2]]) == {a: 1, b: 2}',
}  # fmt: skip

REFUSED: dict[str, tuple[str, str]] = {
    "budget 2: a refused allotment": ("BudgetExceeded", T + "with epsilon 1 {\n with epsilon 2 { x = 1 }\n}"),
    "budget 4: epsilon outside": ("NoEpsilon", "x = epsilon"),
    "budget 5: nothing is left": ("BudgetExceeded", T + "with epsilon 1 {\n x = {{ select count(*) from t }}\n y = {{ select count(*) from t }}\n}"),
    "budget 7: the wrong unit": ("TypeError", T + "x = {{ select count(*) from t with rho 1 }}"),
    "budget 7: public amounts are validated": ("BadAmount", P + "x = {{ select count(*) from p with epsilon -1 }}"),
    "budget: zero": ("BadAmount", T + "x = " + COUNT % "0"),
    "budget: below the quantum": ("BadAmount", T + "x = " + COUNT % "1e-13"),
    "budget: infinite": ("BadAmount", T + "x = " + COUNT % "1e400"),
    "budget: a text": ("BadAmount", T + "x = " + COUNT % '"1"'),
    "budget: a private value": ("PrivateValue", T + "x = " + COUNT % "t"),
    "budget: more than there is": ("BudgetExceeded", T + "x = " + COUNT % "11"),
    "sources 1: top level only": ("TypeError SyntaxError", "def f() {\n " + T + " return 1\n}\nx = f()"),
    "sources 1: once a name": ("TypeError", T + T),
    "sources 1: never a handle": ("TypeError", T + "private v = where(t, age > 3) protecting rows budget epsilon 1"),
    "sources 2: one protecting clause": ("DataError", T + T.replace("private t", "private v").replace("rows budget", "note up to 2 rows budget")),
    "sources 3: public before private": ("PrivateValue", P + 'private v = table("p.csv") described by {age: 0..9} protecting rows budget epsilon 1'),
    "sources 3: private before public": ("PrivateValue", T + 'v = table("t.csv")'),
    "rows 1: a name in a branch never taken": ("NameError", P + "x = {{ select sum(age if age > 0 else nowhere) from p }}"),
    "rows 2: a function of rows only calculates": ("TypeError", P + "def f(a): return f(a)\nx = {{ select sum(f(age)) from p }}"),
    "rows 3: calculating with values": ("TypeError", C + "x = {{ select sum(values * 2) from c with epsilon 1 }}"),
    "rows 3: grouping by values": ("TypeError", C + "x = {{ select count(values) from c groupby values with epsilon 1 }}"),
    "rows 3: count of a cube": ("TypeError", C + "x = {{ select count(*) from c with epsilon 1 }}"),
    "rows 4: two of one name": ("NameError", T + "x = {{ select count(*), count(age) from t with epsilon 1 }}"),
    "rows 5: keys before amounts": ("OpenKeys", T + "x = {{ select count(*) from t groupby note with epsilon -1 }}"),
    "labels 1: comparing a container of a handle": ("PrivateValue", T + "x = [t] == [t]"),
    "labels 1: printing one": ("PrivateValue", T + "print({a: [t]})"),
    "labels 1: releasing one": ("PrivateValue", T + "release x = [1, t]"),
    "labels 1: one deep inside": ("PrivateValue", T + "print([[[[[[[[[[[[t]]]]]]]]]]]])"),
    "labels 2: unknown names in functions never called": ("NameError", "def f(): return nowhere\nprint(1)"),
    "labels 4: brackets": ("RecursionLimit", "x = " + "(" * 300 + "1" + ")" * 300),
    "labels 4: calls": ("RecursionLimit", "def f(n): return f(n + 1)\nx = f(0)"),
    "labels 5: booleans are no numbers": ("TypeError", "x = true + 1"),
    "labels 5: numbers are no conditions": ("TypeError", "if 1: x = 2"),
    "labels 6: no number from a mechanism": ("TypeError", T + "x = error(len([1]))"),
    "choice 3: training reaches a private source": ("PrivateValue", C + "A = Option (d) { return laplace(c) with epsilon 1 }\nB = Option (d) { return 2 }\n"
     "u = Utility (d, a) { return 1 }\nm = MkChoiceMaker among {A, B} informed by {} trained on { {database: counts([1])}, {database: counts([2])} } wrt u\n"
     "x = m({database: c}) with epsilon 1"),
    "choice 4: a share outside": ("BadAmount", "A = Option (d) { return 1 }\nu = Utility (d, a) { return 1 }\n"
     "m = MkChoiceMaker among {A} informed by {} trained on { {database: counts([1])} } spending 2 wrt u"),
    "choice 5: answers that hold a handle": ("PrivateValue", C + "A = Option (d) { return d.database }\nu = Utility (d, a) { return 1 }\n"
     "m = MkChoiceMaker among {A} informed by {} trained on { {database: counts([1])}, {database: counts([2])} } wrt u\nx = m({database: c}) with epsilon 1"),
    "2: a query without a select": ("SyntaxError", "x = {{ 1 }}"),
    "2: a select outside": ("SyntaxError", P + "x = select count(*) from p"),
    "2: one equals sign outside a query": ("SyntaxError", "if 1 = 1: x = 1"),
    "2: tabs": ("SyntaxError", "if true:\n\tx = 1"),
    "2: integer division": ("SyntaxError", "x = 7 // 2"),
    "2: chained comparison": ("SyntaxError", "x = 1 < 2 < 3"),
    "2: assignment to an element": ("SyntaxError", "x = [1]\nx[0] = 2"),
    "2: a statement that does nothing": ("SyntaxError", "x = 1\nx + 1"),
    "3: only described columns exist": ("NameError", T + "x = {{ select sum(height) from t with epsilon 1 }}"),
    "4: a handle is not walked through": ("PrivateValue", T + "for row in t: x = 1"),
    "4: a handle decides nothing": ("PrivateValue", T + "if t: x = 1"),
    "4: a handle is not converted": ("PrivateValue", T + "x = str(t)"),
    "4: a handle has no length": ("PrivateValue", T + "x = len(t)"),
    "4: no rows come out of a select": ("PrivateValue", T + "x = {{ select age from t with epsilon 1 }}"),
    "4: no public function takes a handle": ("PrivateValue", T + "x = sqrt(t)"),
    "5: nobody said epsilon": ("NoEpsilon", T + "x = {{ select count(*) from t }}"),
    "7: a sum without bounds": ("UnboundedSum", T + "x = {{ select sum(free) from t with epsilon 1 }}"),
    "7: a private join without a bound": ("TypeError", T + U + "x = {{ select count(*) from t join u on age with epsilon 1 }}"),
    "lists: a range too large to list": ("ValueError", "x = list(1..1e12)"),
    "lists: doubling without end": ("ValueError", "x = [1]\nfor i in 1..60: x = x + x"),
    "lists: sharing without end": ("ValueError", "x = [1]\nfor i in 1..60: x = [x, x]\nrelease x"),
    "lists: nested without end": ("RecursionLimit", "x = [1]\nfor i in 1..3000: x = [x]\nrelease x"),
    "lists: a text without end": ("ValueError", 'x = "ab"\nfor i in 1..60: x = x + x'),
    "lists: a name of a record": ("TypeError", "x = record([[1, 2]])"),
    "numbers: division by zero": ("ValueError", "x = 1 / 0"),
    "numbers: digits": ("ValueError", "x = round(1.5, 1e400)"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path / "cache"))
    rows = "\n".join(f"{i % 90},{'FM'[i % 2]},{i % 10},n{i},{i}" for i in range(60))
    (tmp_path / "t.csv").write_text(f"age,sex,pay,note,free\n{rows}\n")
    (tmp_path / "u.csv").write_text("age\n1\n2\n")
    (tmp_path / "p.csv").write_text("age\n10\n25\n40\n")
    (tmp_path / "odd.csv").write_text("age\nabc\n5\nnan\n\n")
    return tmp_path


@pytest.mark.parametrize("rule", HOLDS)
def test_holds(rule: str, folder: Path) -> None:
    result = Session(cwd=folder).attempt(Source(str(folder / "p.jst"), HOLDS[rule] + "\n"))
    assert result.ok, result.diagnostics


@pytest.mark.parametrize("rule", REFUSED)
def test_refused(rule: str, folder: Path) -> None:
    kinds, text = REFUSED[rule]
    result = Session(cwd=folder).attempt(Source(str(folder / "p.jst"), text + "\n"))
    assert not result.ok
    said = result.diagnostics[0]
    assert said.kind in kinds.split(), said
    assert said.span is not None
    assert result.released == {}
    assert result.output == []
