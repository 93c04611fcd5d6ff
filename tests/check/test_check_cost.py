"""What `jostle check` says a program can cost: by programs, each with the line that is said of its source."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import pytest
from cost_property import failures
from hypothesis import given
from hypothesis import strategies as st

from jostle.accounting.amounts import Meter
from jostle.check.costs import Cost
from jostle.check.costs.tally import Own, Place, Tally
from jostle.check.costs.values import EACH
from jostle.source import Source
from jostle.tools.session import Session

PEOPLE = (
    'private people = table("people.csv") described by {age: 0..99, sex: {"Female", "Male"}, '
    'city: {"Ames", "Bergen", "Cork"}, pay: 0.0..9.5, part: 0..3} protecting rows budget epsilon 1\n'
)


def about_people(program: str) -> str:
    """`[[people, 0.1]]` stands for a count of them with epsilon 0.1."""
    return PEOPLE + re.sub(
        r"\[\[(\w+(?:\[.+?\])*), (.+?)\]\]", r"{{ select count(*) from \1 with epsilon \2 }}", program
    )


def cost_of(program: str, **settings: object) -> Cost:
    return Session().costs(Source("p.jst", about_people(program)), settings)[0]


def said(program: str) -> str:
    return str(cost_of(program))


# Exactly -----------------------------------------------------------------------------------------

EXACT = {
    "nothing": ("x = 1", "0"),
    "one query": ("n = [[people, 0.1]]", "0.1"),
    "no group is shown": ("g = {{ select count(*) as n from people groupby sex limit 0 with epsilon 0.1 }}", "0"),
    "no key is listed": ("g = {{ select avg(pay) as a from people groupby (sex, age) over [] with epsilon 0.1 }}", "0"),
    "a third is cut after the twelfth place": (
        "n = [[people, 1 / 3]]", "0.333333333333"
    ),
    "a constant loop": ("for i in 1..8: n = [[people, 0.1 * i / 8]]", "0.45"),
    "groups are one charge": (
        "g = {{ select count(*) as n, avg(age) as a from people groupby sex with epsilon 0.2 }}", "0.2"
    ),
    "parts count as their largest": (
        "for key, part in partition(people, city):\n    e = 0.3 if key == \"Cork\" else 0.2\n"
        "    n = [[part, e]]", "0.3",
    ),
    "nested parts": (
        "for k, a in partition(people, sex):\n    for l, b in partition(a, city):\n"
        "        n = [[b, 0.2]]\n    m = [[a, 0.1]]",
        "0.3",
    ),
    "parts of one column are one partition": (
        'a = {{ select count(*) from people[city = "Ames"] with epsilon 0.4 }}\n'
        'b = {{ select count(*) from where(people, age > 40)[city = "Cork"] with epsilon 0.3 }}', "0.4",
    ),
    "of two columns they are two": (
        'a = {{ select count(*) from people[city = "Ames"] with epsilon 0.4 }}\n'
        'b = {{ select count(*) from people[sex = "Male"] with epsilon 0.3 }}', "0.7",
    ),
    "keys that are not known beforehand": (
        "for k, a in partition(people, age / 10): n = [[a, 0.2]]", "0.2"
    ),
    "both branches alike": (
        "n = [[people, 0.1]]\n"
        "if n > 5 { m = [[people, 0.2]] }\n"
        "else { m = {{ select sum(age) from people with epsilon 0.2 }} }", "0.3",
    ),
    "what is left of an allotment": (
        "with epsilon 0.4:\n    a = [[people, epsilon / 4]]\n"
        "    b = {{ (select count(*) from people) / (select sum(age) from people) }}", "0.4",
    ),
    "recursion of a public depth": (
        "def f(t, d):\n    if d == 0: return 0\n    n = [[t, 0.1]]\n"
        "    return sum([f(part, d - 1) for k, part in partition(t, sex)])\nf(people, 4)", "0.4",
    ),
    "a module of the library": ("use pinq\nn = noisyCount(people, 0.1) + noisyAvg(people, age, 0.2)", "0.3"),
    "closures use the allotment they are called in": (
        "def later(t): return lambda: {{ select count(*) from t }}\nwith epsilon 0.2 { f = later(people) }\n"
        "with epsilon 0.3 { n = f() }", "0.3",
    ),
    "mechanisms": (
        "cells = histogram(people, x = age)\na = laplace(cells, epsilon = 0.1)\n"
        "b = noisy_max([size(cells), largest_cell(cells)], epsilon = 0.2)\n"
        "c = least_cost_partition(cells) with epsilon 0.3", "0.6",
    ),
    "a join of a table with itself": (
        "n = {{ select count(*) from people join people on age up to 2 with epsilon 0.5 }}", "0.5"
    ),
    "a row for each value, in parts": (
        "for k, a in partition(people, city):\n    ages = {{ select age, count(*) as n from a per age }}\n"
        "    n = [[ages, 0.2]]", "0.2"
    ),
    "public choices are free": ("b = exp_mech(domain = [1, 2], utilities = [1, 2], epsilon = 5)", "0"),
    "two hundred thousand rounds": ("for i in 1..2000:\n    for j in 1..100: n = [[people, 1e-6]]", "0.2"),
    "dates, texts and sets as a run knows them": (
        "for d in 2024-02-28..2024-03-01:\n    if not (str(d) in {\"2024-02-29\"}):\n"
        "        n = [[people, 0.1 * len(keys({a: 1, b: 2})) * avg([1, 2])]]", "0.6",
    ),
    "the last of many rounds": (
        "for i in 1..1500:\n    if i == 1400 { n = [[people, 0.1]] }\nxs = [i for i in 1..100 if i * i > 30]\n"
        "e = 0.1 if len(xs) == 95 else 0.2\nm = [[people, e]]", "0.2",
    ),
    "a branch whose test is known": (
        "if 1 > 2 { n = [[people, 0.9]] }", "0"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", EXACT)
def test_exact(case: str) -> None:
    program, asked = EXACT[case]
    cost = cost_of(program)
    assert cost.exact
    assert cost.bound == Decimal(asked) * 10**12


# At most -----------------------------------------------------------------------------------------

N = "n = [[people, 0.1]]\n"
BOUNDED = {
    "a model that takes long to follow, which is used": (
        'use best\nm = best_classifier(pick(people, age, sex), "sex") with epsilon 0.5\nprint(m.predict({age: 40}))',
        "at most epsilon 0.5 of 1",
    ),
    "keys that may be none": (
        "k = [c.sex for c in {{ select count(*) as n from people groupby sex with epsilon 0.1 }} if c.n > 5]\n"
        "g = {{ select count(*) as n from people groupby sex over k with epsilon 0.2 }}", "at most epsilon 0.3 of 1",
    ),
    "the dearer branch": (
        N + "if n > 5 { m = [[people, 0.2]] }", "at most epsilon 0.3 of 1"
    ),
    "branches in different places": (
        N + "if n > 5 { m = [[people, 0.2]] }\n"
        'else { m = {{ select count(*) from people[city = "Ames"] with epsilon 0.3 }} }', "at most epsilon 0.4 of 1",
    ),
    "one operand or both": (
        N + "def f(): return [[people, 0.2]] > 3\nb = n > 5 and f()",
        "at most epsilon 0.3 of 1",
    ),
    "rounds between two numbers": (
        N + "for i in 1..clamp(round(n), 1, 4): m = [[people, 0.1]]",
        "at most epsilon 0.5 of 1",
    ),
    "an amount between two numbers": (
        N + "m = [[people, clamp(1 / max(n, 1), 0.1, 0.2)]]", "at most epsilon 0.3 of 1"
    ),
    "an allotment bounds what is in it": (
        N + "with epsilon 0.5:\n    for i in 1..n: m = [[people, 0.01]]",
        "at most epsilon 0.6 of 1",
    ),
    "around a call, too": (
        N + "def f(t, k): return 0 if k > n else [[t, 0.01]] + f(t, k + 1)\n"
        "m = f(people, 0) with epsilon 0.5", "at most epsilon 0.6 of 1",
    ),
    "in each part": (
        N + "for k, a in partition(people, sex):\n    with epsilon 0.5:\n"
        "        for i in 1..n: m = [[a, 0.01]]", "at most epsilon 0.6 of 1",
    ),
    "an agent bounds what goes through it": (
        N + "mine = limited(people, 0.25)\nfor i in 1..n: m = [[mine, 0.01]]",
        "at most epsilon 0.35 of 1",
    ),
    "agents made in a loop are as many": (
        N + "for i in 1..clamp(n, 3, 4):\n    mine = limited(people, 0.1)\n"
        "    for j in 1..n: m = [[mine, 0.01]]", "at most epsilon 0.5 of 1",
    ),
    "a part that noise has chosen": (
        N + 'a = {{ select count(*) from people[city = "Ames"] with epsilon 0.2 }}\n'
        "p = [q for k, q in partition(people, city)][clamp(round(n), 0, 2)]\n"
        "b = [[p, 0.3]]", "at most epsilon 0.6 of 1",
    ),
    "a source named twice": (
        'private again = table("people.csv") described by {age: 0..99} protecting rows budget epsilon 1\n'
        "a = [[people, 0.3]]\nb = [[again, 0.3]]",
        "at most epsilon 0.6 of 1",
    ),
    "more than there is": (
        N + "if n > 5 { m = [[people, 1.1]] }", "may be refused: it asks for up to epsilon 1.2 of 1"
    ),
    "much more than there is": (N * 12, "refused before its end: it asks for epsilon 1.2 of 1"),
    "parts of parts are parts of their own": (
        'a = [[people[city = "Ames"], 0.3]]\nn = 0\n'
        'for k, p in partition(people, pay): n = [[p[city = "Cork"], 0.3]]', "at most epsilon 0.6 of 1",
    ),
    "what is left after other parts": (
        "with epsilon 0.8:\n    for k, p in partition(people, pay):\n        n = [[p, epsilon / 2]]\n"
        "    m = {{ select count(*) from people }}", "at most epsilon 0.8 of 1",
    ),
    "a form that is not known": (
        N + "f = partition if n > 5 else columns\np = f(people, city)\nm = [[p[0][1], 0.2]]", "at most epsilon 0.3 of 1"
    ),
    "a long constant loop": (
        "for i in 1..1000000: n = [[people, 1e-9]]", "exactly epsilon 0.001 of 1"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BOUNDED)
def test_bounded(case: str) -> None:
    program, line = BOUNDED[case]
    assert said(program) == line


# No bound ----------------------------------------------------------------------------------------

BOUNDLESS = {
    "a function that takes long and gives a name": (
        "use best\ndef f(t): return g(t)\ndef g(t):\n    m = best_classifier(pick(t, age, sex), \"sex\")\n"
        "    if 1 > 2: return m\n    return m\nm = f(people) with epsilon 0.5\nprint(m.predict({age: 40}))",
        "its budget of 1 is the only bound: a function that is not known here is called (p.jst:9:7)",
    ),
    "a loop of unknown length": (
        N + "for i in 1..n: m = [[people, 0.01]]",
        "its budget of 1 is the only bound: a loop of unknown length charges it (p.jst:3:1)",
    ),
    "an amount that is not known": (
        N + "m = [[people, abs(n)]]",
        "its budget of 1 is the only bound: an amount is not known (p.jst:3:8)",
    ),
    "a recursion that noise ends": (
        N + "def f(k): return 0 if k > n else [[people, 0.001]] + f(k + 1)\nm = f(0)",
        "its budget of 1 is the only bound: `f` calls itself more than 200 deep, or without end (p.jst:3:89)",
    ),
    "a tree of calls": (
        "def f(d): return [[people, 1e-9]] if d == 0 else f(d - 1) + f(d - 1)\nm = f(30)",
        "its budget of 1 is the only bound: it is too long to follow",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BOUNDLESS)
def test_no_bound_and_why(case: str) -> None:
    program, line = BOUNDLESS[case]
    started = time.process_time()
    assert said(program).startswith(line)
    assert cost_of(program).most == 10**12
    assert time.process_time() - started < 10


def test_after_what_is_too_long_every_source_is_without_bound() -> None:
    late = 'private late = table("late.csv") described by {age: 0..99} protecting rows budget epsilon 2\n'
    program = "def f(d): return d if d == 0 else f(d - 1) + f(d - 1) + len([people])\nm = f(40)\n" + late
    costs = Session().costs(Source("p.jst", PEOPLE + program))
    assert [(c.name, c.bound, c.limit) for c in costs] == [("people", math.inf, 10**12), ("late", math.inf, 2 * 10**12)]


# Other units, parameters, faces ------------------------------------------------------------------


def test_rho_adds_plainly() -> None:
    program = (
        'private p = table("p.csv") described by {age: 0..99} protecting rows budget rho 1\n'
        "with rho 0.5:\n    n = {{ select count(*) from p with rho rho / 2 }}\n    m = {{ select count(*) from p }}\n"
    )
    assert str(Session().costs(Source("p.jst", program))[0]) == "exactly rho 0.5 of 1"


def test_with_a_delta_it_is_the_plain_sum_and_says_so() -> None:
    program = (
        'private p = table("p.csv") described by {age: 0..99} protecting rows budget epsilon 2, delta 1e-6\n'
        "n = {{ select count(*) from p with epsilon 0.5 delta 1e-7 }}\n"
        "m = {{ select count(*) from p with epsilon 0.25 }}\n"
    )
    assert str(Session().costs(Source("p.jst", program))[0]) == (
        "exactly epsilon 0.75 of 2 and delta 0.0000001, as a plain sum; zCDP may say less"
    )


@pytest.mark.parametrize(
    "via, bound, delta", [("", "exactly epsilon 1 of 20", 0), (" via gaussian", "at most epsilon 2 of 20", 2e-4)]
)
def test_gaussian_noise_on_parts_of_limited_rows_counts_as_a_whole_as_it_does_in_a_run(
    via: str, bound: str, delta: float
) -> None:
    program = (
        'private t = bound("t") described by {v: 0..2, s: {"F", "M"}} protecting rows '
        "budget epsilon 20, delta 0.01 counted by basic\n"
        "mine = {{ select s, v, count(*) as m from t per s, v }}\nfor key, part in partition(mine, s):\n"
        f"    n = {{{{ select count(*) from part groupby v with epsilon 1 delta 1e-4{via} }}}}\n"
    )
    session, source = Session(), Source("p.jst", program)
    session.bind("t", {"v": [0, 1, 2, 1], "s": ["F", "M", "F", "M"]})
    assert str(session.costs(source)[0]) == bound
    spent = session.attempt(source).budget["t"]
    assert float(spent["epsilon"]["spent"]) == (2 if via else 1) and float(spent["delta"]["spent"]) == delta


def test_the_undivided_count_of_a_public_size_is_free() -> None:
    program = (
        'private p = table("p.csv") described by {age: 0..99} protecting rows, public size budget epsilon 1\n'
        "n = {{ select count(*) from p with epsilon 0.1 }}\n"
        "m = {{ select count(*) from p where age > 3 with epsilon 0.1 }}\n"
    )
    assert str(Session().costs(Source("p.jst", program))[0]) == "exactly epsilon 0.1 of 1"


def test_parameters_are_at_their_defaults_unless_set() -> None:
    program = "param rounds = 2\nfor i in 1..rounds: n = {{ select count(*) from people with epsilon 0.1 }}"
    assert cost_of(program).bound == 2 * 10**11
    assert cost_of(program, rounds="5").bound == 5 * 10**11


def test_a_choice_costs_its_allotment_at_most() -> None:
    path = Path(__file__).resolve().parents[2] / "programs" / "figure_1_2.jst"
    costs = Session().costs(Source(str(path), path.read_text(encoding="utf-8")))
    assert [(cost.bound, cost.limit) for cost in costs] == [(10**11, 10**12)] * 2


def test_it_opens_nothing(tmp_path: Path) -> None:
    """The files of these programs are not there."""
    program = 'private p = table("none.csv") described by {a: 0..9} protecting rows budget epsilon 1\nuse pinq\n'
    source = Source(str(tmp_path / "p.jst"), program + "n = noisyCount(p, 0.5)")
    assert str(Session(cwd=tmp_path).costs(source)[0]) == "exactly epsilon 0.5 of 1"


def test_the_command_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from jostle.tools.entry import main

    path = tmp_path / "p.jst"
    path.write_text(about_people(N), encoding="utf-8")
    assert main(["check", str(path)]) == 0
    assert "  people  exactly epsilon 0.1 of 1\n" in capsys.readouterr().out
    assert main(["check", str(path), "--format", "json"]) == 0
    (cost,) = json.loads(capsys.readouterr().out)["cost"]
    assert (cost["source"], cost["asks"], cost["budget"], cost["exact"]) == ("people", "0.1", "1", True)


TOO_MUCH = {
    "two counts": ("a = [[people, 0.7]]\nb = [[people, 0.7]]\n", 3),
    "a loop": (N + "for i in 1..10:\n    m = [[people, 0.1]]\n", 4),
    "both branches": (N + "if n > 5 { m = [[people, 1]] }\nelse { for i in 1..3: m = [[people, 0.5]] }\n", 4),
    "a call": ("def f(t): return [[t, 0.6]]\na = f(people)\nb = f(people)\n", 4),
    "an allotment": (N + "with epsilon 0.2:\n    a = [[people, 0.1]]\n    b = [[people, 0.15]]\n", 5),
    "a spent allotment": (N + "with epsilon 0.2:\n    for i in 1..2: a = {{ select count(*) from people }}\n", 4),
    "a share of it": (
        "with epsilon 0.2:\n    a = laplace(size(people))\n    b = {{ select count(*) from people with 1/2 }}\n",
        4,
    ),
}


@pytest.mark.parametrize("case", TOO_MUCH)
def test_what_no_run_can_pay_for_is_refused_before_it_pays(case: str) -> None:
    program, line = TOO_MUCH[case]
    source, session = Source("p.jst", about_people(program)), Session(simulate=1)
    (fault,) = session.check(source)
    assert (fault.kind, fault.span.line if fault.span else 0) == ("BudgetExceeded", line)
    result = session.attempt(source)
    assert result.diagnostics == (fault,) and result.budget == {}


POSSIBLE = {
    "parts in one allotment": "with epsilon 1:\n    for k, part in partition(people, city): n = laplace(size(part))\n",
    "selects of one measurement": "jointly with epsilon 1:\n    for i in 1..3: n = {{ select count(*) from people }}\n",
    "one branch": N + "if n > 5 { m = [[people, 1]] }\n",
    "an allotment in a branch": N + "if n > 5 { with epsilon 0.1: m = [[people, 0.2]] }\n",
    "a loop of unknown length": N + "for i in 1..n: m = [[people, 0.1]]\n",
    "block a part": "for k, p in partition(people, city):\n jointly with epsilon 1: n = {{ select count(*) from p }}",
    "parts that count as their largest": "for k, part in partition(people, city): n = [[part, 0.7]]\n",
    "a lower bound by zCDP": PEOPLE.replace("people", "folk").replace("epsilon 1", "epsilon 1, delta 1e-6")
    + "for i in 1..30: n = [[folk, 0.05]]\n",
}


@pytest.mark.parametrize("case", POSSIBLE)
def test_what_is_only_possible_is_no_refusal(case: str) -> None:
    assert Session().check(Source("p.jst", about_people(POSSIBLE[case]))) == []


def test_what_a_session_has_declared_before_decides() -> None:
    session = Session(simulate=1)
    program = about_people("n = [[people, 0.7]]\nm = [[people, 0.7]]\n")
    assert session.attempt(Source("p.jst", PEOPLE.replace("epsilon 1", "epsilon 2"))).ok
    assert session.attempt(Source("q.jst", program)).ok


def test_the_command_refuses_what_no_run_can_pay_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from jostle.tools.entry import main

    path = tmp_path / "p.jst"
    path.write_text(about_people(N * 12), encoding="utf-8")
    assert main(["check", str(path)]) == 1
    said = capsys.readouterr()
    assert "refused before its end: it asks for epsilon 1.2 of 1" in said.out
    assert "BudgetExceeded: at least epsilon 1.2 is asked of `people`" in said.err
    assert main(["check", str(path), "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["error"]["kind"] == "BudgetExceeded" and not document["cost"][0]["fits"]


# Against the run ---------------------------------------------------------------------------------


@pytest.mark.slow(but=["from 0"])
@pytest.mark.parametrize("seeds", [range(i, i + 50) for i in range(0, 250, 50)], ids=lambda s: f"from {s[0]}")
def test_random_programs_never_cost_more(seeds: range) -> None:
    """All 10,000: `python -m tests.check.cost_property`."""
    wrong = {seed: found for seed in seeds if (found := failures(seed)[0])}
    assert wrong == {}


steps = st.tuples(st.sampled_from("ab"), st.integers(0, 1))
charges = st.lists(st.tuples(st.lists(steps, max_size=3).map(tuple), st.integers(1, 9)), max_size=12)


@given(charges, st.lists(steps, max_size=3).map(tuple))
def test_a_tally_of_known_charges_is_the_meter_of_a_run(spent: list[tuple[tuple, int]], path: tuple) -> None:
    meter, tally = Meter(1, lambda total: True), Tally()
    for at, amount in spent:
        meter.add(at, (amount,))
        tally = tally.plus(Place(at), Own(amount, amount))
    assert tally.total == (meter.spent[0], meter.spent[0])
    load = meter.spent[0] - meter.slack(path)[0]
    assert tally.load_at(path) == (load, load)


@given(charges, charges, charges)
def test_ways_that_meet_again_bound_both(before: list, one: list, other: list) -> None:
    def grown(tally: Tally, spent: list) -> Tally:
        for at, amount in spent:
            tally = tally.plus(Place(at), Own(amount, amount))
        return tally

    start = grown(Tally(), before)
    ways = [grown(start, one), grown(start, other)]
    low, high = ways[0].join(ways[1]).total
    assert high >= max(way.total[1] for way in ways)
    assert low <= min(way.total[0] for way in ways)


def test_each_part_and_one_of_them_are_added() -> None:
    tally = Tally().plus(Place((("k", EACH),)), Own(3, 3)).plus(Place((("k", EACH),)), Own(2, 2))
    assert tally.total == (5, 5)


@pytest.mark.parametrize("sum_", ["sum([1e308, 1e308])", "sum over i in [1e308, 1e308] of i", "sum([1e400, -1e400])"])
def test_sums_beyond_what_doubles_hold(sum_: str) -> None:
    """An infinite sum is above zero, and an undefined one is not."""
    program = f"x = {sum_}\nn = laplace(size(people), epsilon = 0.1 if x > 0 else 0.2)\n"
    assert cost_of(program).bound == (2 if "-1e400" in sum_ else 1) * 10**11


def test_a_cost_is_bounded_first_of_all_and_opens_no_engine() -> None:
    """In a process that has run nothing and loaded no built-in."""
    code = (
        "import sys\nfrom jostle.source import Source\nfrom jostle.tools.session import Session\n"
        f"print(Session().costs(Source('p.jst', {about_people('n = [[people, 0.1]]')!r}))[0], 'duckdb' in sys.modules)"
    )
    said_there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said_there == "exactly epsilon 0.1 of 1 False\n"


@pytest.mark.parametrize(("second", "law", "fault"), [
    ("", "", "nothing is left of the allotment of epsilon 0.3"), (" with epsilon 0.3", "", "at least epsilon 0.35"),
    (" with epsilon 0.3", ', law = "logarithmic"', ""), (" with epsilon 0.3", ", good = 9", ""),
])  # fmt: skip
def test_runs_of_which_none_can_pay_are_refused(second: str, law: str, fault: str) -> None:
    """They all failed, the answer was none, and the amount was gone."""
    first = " with epsilon 0.05" if second else ""
    run = f"def f(d, k):\n    a = {{{{ select count(*) from d where age > k{first} }}}}\n"
    run += f"    return {{score: a + {{{{ select sum(part) from d{second} }}}}}}\n"
    faults = Session().check(about_people(f"{run}x = best_run(people, f, [20, 30], 5{law}) with epsilon 0.9\n"))
    assert [one.kind for one in faults] == ["BudgetExceeded"] * bool(fault)
    assert not fault or faults[0].message.startswith(fault)


def test_a_feature_that_leaves_nothing_for_its_second_question_is_refused() -> None:
    """Its two counts share what a call gives it, and the first one takes all of that, in training too."""
    program = """private c = counts([5, 7, 3, 9]) protecting rows budget epsilon 9
Twice = Feature (data) {{
    n = laplace(size(data.cube)){}
    return n + laplace(size(data.cube))
}}
A = Option (data) {{ return laplace(data.cube) }}
B = Option (data) {{ return laplace(data.cube) }}
near = Utility (data, answers) {{ return -rmse(answers, exact(identity(data.cube), data.cube)) }}
choose = MkChoiceMaker among {{A, B}} informed by {{Twice}} trained on {{ {{cube: counts([1, 2, 3, 4])}} }} wrt near
x = choose({{cube: c}}) with epsilon 1
"""
    (fault,) = Session().check(Source("p.jst", program.format("")))
    assert fault.kind == "BudgetExceeded" and fault.span is not None and fault.span.line == 4
    assert Session().check(Source("p.jst", program.format(" with 1/2"))) == []
