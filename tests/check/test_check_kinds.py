"""What `check` says of kinds of values: every pair and every place, held against the run.

A program that it refuses for a kind is run all the same, without a check, and must be refused there too.
"""

from __future__ import annotations

import itertools
import tracemalloc

import pytest

from jostle.diagnostics import Diagnostic, Refusal
from jostle.language.builtins import BUILTINS
from jostle.run.fitting import OF_DATA, TAKEN
from jostle.source import Source
from jostle.tools.session import Session

TABLES = (
    "use histograms\nuse workloads\nuse features\nuse row_vectors\nuse trees\nuse classifiers\nuse cuts\n"
    'private people = table("people.csv") described by {age: 0..99, city: {"Ames", "Cork"}} '
    "protecting rows budget epsilon 9\n"
    'towns = table([{city: "Ames", size: 10}, {city: "Cork", size: 30}])\n'
    "n = {{ select count(*) from towns }}\n"
    "g = {{ select count(*) as m from towns groupby city }}\n"
    "cube = histogram(people, x = age)\n"
)
VALUES = {
    "a number": "3", "a measured number": "n", "a text": '"a"', "a made text": "str(3)", "a boolean": "true",
    "a comparison": "(n > 3)", "numbers": "[1, 2]",
    "texts": '["a", "b"]', "lists": "[[1, 2], [2, 3]]", "a set": "{1, 2}",
    "a record": "{a: 1}", "a range": "(1..3)", "a function": "(lambda x: x)", "groups": "g", "a column": "g.m",
    "none": "none",
}  # fmt: skip
OPERATORS = ("+", "-", "*", "/", "^", "<", ">=", "in", "not in", "like", "==")
DATA = {"a table": "people", "a cube": "cube", "a workload": "identity(cube)", "a score": "size(cube)"}
FILLED = {"number": "1", "text": '"a"', "numbers": "[1, 2]", "each": "1", "items": "[1, 2]", "sized": "[1]", "": "1",
          "table": "people", "cube": "cube", "rows": "cube", "queries": "identity(cube)", "measured": "cube",
          "strategy": "hb_strategy(cube)"}  # fmt: skip


def refused(program: str) -> str:
    """The kind of what `check` finds; empty where it finds nothing."""
    return next((fault.kind for fault in faults_of(program)), "")


def faults_of(program: str) -> list[Diagnostic]:
    """What `check` finds, before ways out are looked for."""
    return Session().checked(Source("p.jst", TABLES + program), tries=False)[0]


@pytest.fixture(scope="module")
def session() -> Session:
    """One in which the tables are declared, and which checks nothing."""
    session = Session(simulate=1)
    session._check = lambda *_: []  # type: ignore[method-assign]
    session._ahead = lambda *_: ([], {}, [])  # type: ignore[method-assign]
    session.execute(Source("tables", TABLES))
    return session


def runs(line: str, session: Session) -> bool:
    try:
        session.execute(Source("line", line))
    except Refusal:
        return False
    return True


def held(lines: list[str], session: Session) -> int:
    """How many of these lines are refused; each of them is refused by the run too."""
    faults = faults_of("\n".join(lines) + "\n")
    first = TABLES.count("\n") + 1
    wrong = sorted({lines[fault.span.line - first] for fault in faults if fault.span is not None})
    assert [line for line in wrong if runs(line, session)] == []
    return len(wrong)


@pytest.mark.parametrize("op", OPERATORS)
def test_operators(op: str, session: Session) -> None:
    programs = [f"x = {a} {op} {b}" for a, b in itertools.product(VALUES.values(), repeat=2)]
    many = held(programs, session)
    assert many == 0 if op == "==" else many >= 60


PLACES = ["if {}: x = 1", "x = -{}", "for i in {}: x = i", "x = {}.foo", "x = {}[0]", "x = {}(1)", "x = not {}"]


def test_places(session: Session) -> None:
    programs = [place.format(value) for place in PLACES for value in VALUES.values()]
    assert held(programs, session) >= 60


NOISY = ("laplace", "gaussian")
OTHERS = ("joined",)  # `classifiers` has a function of this name
TAKING = [row.name for row in BUILTINS.values() if any(p.takes for p in row.parameters) and row.name not in OTHERS]


@pytest.mark.parametrize("name", TAKING)
def test_arguments(name: str, session: Session) -> None:
    row = BUILTINS[name]
    placed = [param for param in row.parameters if param.kind in ("", "*")]
    last = max(at for at, param in enumerate(placed) if param.default is None or param.takes)
    needed = placed[: last + 1]  # a call that leaves one out, or has one more, is refused by the run alone
    programs = []
    for at, param in enumerate(needed):
        assert not param.takes or param.takes in TAKEN
        data = DATA.values() if param.takes in OF_DATA else ()
        for value in (*VALUES.values(), *data) if param.takes else ():
            args = [value if i == at else FILLED.get(other.takes, "1") for i, other in enumerate(needed)]
            programs.append(f"x = {name}({', '.join(args)})" + (" with epsilon 1" if name in NOISY else ""))
    assert held(programs, session) >= 3


OPEN = (
    'private q = table("q.csv") described by {x: real, day: text, late: 0..9} protecting rows budget epsilon 9\n'
    'r = derive(q, twice = x * 2, on = date(day, "%d.%m.%Y"), short = clamp(x, 0, 1))\n'
)
SEEN = {
    **{
        f"no bounds of {what}": (OPEN + f"m = {{{{ select {what} from r with epsilon 1 }}}}", "UnboundedSum")
        for what in ("median(x)", "avg(x * 2)", "sum(twice)", "max(on)", "quantile(number(day), 0.9)")
    },
    "a result named as its key": (
        "m = {{ select count(*) as age from people groupby age with epsilon 1 }}",
        "NameError",
    ),
    "an error where an amount pays": (
        "jointly with epsilon 1:\n    a = {{ select count(*) from people with error 3 }}",
        "TypeError",
    ),
    "text and number": ('x = "n: " + n', "TypeError"),
    "rounded": ('x = "n: " + round(n * 2, 1)', "TypeError"),
    "a field of a number": ("x = n.foo", "TypeError"),
    "a field that a record lacks": ("r = {{ select count(*) as a, sum(size) as b from towns }}\nx = r.c", "NameError"),
    "no argument": ("x = round()", "TypeError"),
    "an argument of the library": ("x = hb(n)", "TypeError"),
    "a wrong name": ("x = hb(cube, query = 3)", "TypeError"),
    "one too many": ("x = histograms.dawa(cube, 2, 3)", "TypeError"),
    "lists in order": ("x = sorted([[1, 2], [2, 3]])", "TypeError"),
    "noise for public numbers": ("x = laplace([1, 2]) with epsilon 1", "TypeError"),
    "a noisy score": ('x = "n: " + (laplace(size(cube)) with epsilon 1)', "TypeError"),
    "in a function that is called": ('def f(a) = "n: " + a\nx = f(n)', "TypeError"),
}


@pytest.mark.parametrize("case", SEEN)
def test_seen(case: str) -> None:
    program, kind = SEEN[case]
    assert refused(program + "\n") == kind


PASSED = {
    "bounds from the rows of a public table": (
        'sizes = table("towns.csv") described by {city: text, size: real}\n'
        "m = {{ select avg(age * size) from people join sizes on city with epsilon 1 }}\n"
    ),
    "bounds by the way": OPEN + "m = {{ select avg(short) as a, median(clamp(twice, 0, 9)) as b, avg(late > 3) as c, "
    "max(late) as d, sum(1 if x > 3 else 0) as e, count(x) as f from r with epsilon 1 }}\n",
    "another kind in each branch": 'x = 1\nif n > 1: x = "a"\ny = x + 1\n',
    "another kind after a loop": 'x = "a"\nfor i in 1..n: x = 1\ny = "s" + x\n',
    "tested for none": "x = none\nif x != none: y = x + 1\n",
    "cubes together": "x = laplace([cube, cube]) with epsilon 1\n",
    "a column of groups": "x = g.m + 1\n",
    "a parameter": 'def f(a): return a + 1\ndef h(a): return a + "s"\n',
    "a name of its own": "def hb(a): return a\nx = hb(3)\n",
    "a branch inside a function": 'def f(a): return a + 1 if a != "a" else a\nx = f("a")\n',
}


@pytest.mark.parametrize("case", PASSED)
def test_passed(case: str) -> None:
    assert refused(PASSED[case]) == ""


PEOPLE = (
    'private p = table("others.csv") described by {{{}, hours: 0..60, sex: {{"Female", "Male"}}}} protecting rows '
    "budget epsilon 99\n"
)
COLUMNS = {
    "age": "0..99", "height": "0.0..2.5", "city": '{"Ames", "Cork"}', "note": "text", "size": "real", "nowhere": "",
}  # fmt: skip
OF_STATISTICS = (
    'crosstab(p, "{}", "sex")', 'top_k(p, "{}", 1)', 'describe_numeric(p, "{}")', 'correlation(p, "{}", "hours")',
    'linear_regression(p, "{}", ["hours"])', 'linear_regression(p, "hours", ["sex", "{}"])',
    'logistic_regression(p, "sex", ["{}"])', 'compare(p, "{}", "sex")',
)  # fmt: skip


@pytest.mark.parametrize("call", OF_STATISTICS)
def test_columns_of_the_library(call: str, session: Session) -> None:
    """A column is refused by the check where it is by the run, and nowhere else."""
    described = ", ".join(f"{name}: {domain}" for name, domain in COLUMNS.items() if domain)
    session.execute(Source("p", "use statistics\n" + PEOPLE.format(described)))
    for name in COLUMNS:
        line = f"x = {call.format(name)} with epsilon 1\n"
        said = Session().check(Source("p.jst", "use statistics\n" + PEOPLE.format(described) + line))
        assert bool(said) != runs(line, session), line


def test_a_wide_column_is_not_listed() -> None:
    """Whole numbers up to a million millions were listed, each as a double."""
    wide = TABLES.replace("age: 0..99", "age: 0..3000000, year: 0..3000000")
    program = Source("p.jst", wide + 'use statistics\nprint(correlation(people, "age", "year") with epsilon 1)\n')
    tracemalloc.start()
    try:
        assert not Session().check(program)
        assert tracemalloc.get_traced_memory()[1] < 30 * 2**20
    finally:
        tracemalloc.stop()
