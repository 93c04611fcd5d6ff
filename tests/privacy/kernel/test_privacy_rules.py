"""The rules of budgets, parts, sources, rows, labels and choice, each as a small program."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.diagnostics import refuse
from jostle.privacy.reading.vault import Reader
from jostle.readers.duckdb import LocalDuckDb
from jostle.source import Source
from jostle.tools.session import Result, Session

Attempt = Callable[..., Result]

ROWS = "v,r,c\n" + "".join(f"{i % 4},{i / 2},{'xy'[i % 2]}\n" for i in range(40))
DECLARED = 'private t = table("t.csv") described by {v: 0..3, r: 0.0..20.0, c: {"x", "y"}} protecting rows budget '


def kinds(result: Result) -> list[str]:
    return [d.kind for d in result.diagnostics]


def spent(result: Result, name: str = "t", unit: str = "epsilon") -> str:
    return result.budget[name][unit]["spent"]


ACCEPTED = {
    # (budget, program, what is spent in the end)
    "amounts are exact decimals": (
        "epsilon 1",
        "for i in 1..10 { x = {{ select count(*) from t with epsilon 0.1 }} }",
        "1",
    ),
    "thirds fit": (
        "epsilon 1",
        "for i in 1..3 { x = {{ select count(*) from t with epsilon 1 / 3 }} }",
        "0.999999999999",
    ),
    "what is left of an allotment": (
        "epsilon 1",
        "with epsilon 0.6 { x = {{ select count(*) from t with epsilon 0.2 }}\ny = {{ select count(*) from t }} }",
        "0.6",
    ),
    "only what was spent is charged": (
        "epsilon 1",
        "with epsilon 0.9 { x = {{ select count(*) from t with epsilon 0.2 }} }",
        "0.2",
    ),
    "parts count as their maximum": (
        "epsilon 1",
        "for k, p in partition(t, v) { x = {{ select count(*) from p with epsilon 0.1 * (k + 1) }} }",
        "0.4",
    ),
    "nested parts": (
        "epsilon 1",
        "for k, p in partition(t, v) { for l, q in partition(p, c) {\n"
        "x = {{ select count(*) from q with epsilon 0.1 }} }\n"
        "  y = {{ select count(*) from p with epsilon 0.1 }} }",
        "0.2",
    ),
    "D[a = v] of one table is one partition": (
        "epsilon 1",
        "w = where(t, r > 3)\nx = {{ select count(*) from t[v = 1] with epsilon 0.3 }}\n"
        "y = {{ select count(*) from w[v = 2] with epsilon 0.5 }}",
        "0.5",
    ),
    "partition and D[a = v] meet": (
        "epsilon 1",
        "for k, p in partition(t, v) { x = {{ select count(*) from p with epsilon 0.3 }} }\n"
        "y = {{ select count(*) from t[v = 1] with epsilon 0.3 }}",
        "0.6",
    ),
    "the same words may mean another key": (
        "epsilon 1",
        "d = derive(t, v = v / 2)\nx = {{ select count(*) from t[v = 1] with epsilon 0.3 }}\n"
        "y = {{ select count(*) from d[v = 0] with epsilon 0.5 }}",
        "0.8",
    ),
    "two partitions by an expression": (
        "epsilon 1",
        "for k, p in partition(t, v / 2) { x = {{ select count(*) from p with epsilon 0.1 }} }\n"
        "for k, p in partition(t, v / 2) { x = {{ select count(*) from p with epsilon 0.1 }} }",
        "0.2",
    ),
    "parts of a self-join are charged where both are": (
        "epsilon 1",
        "a = t[v = 1]\nb = t[v = 2]\nx = {{ select count(*) from a join b on c up to 1 with epsilon 0.3 }}\n"
        "y = {{ select count(*) from a with epsilon 0.1 }}\nz = {{ select count(*) from b with epsilon 0.1 }}",
        "0.4",
    ),
    "groups are one charge": (
        "epsilon 1",
        "x = {{ select count(*), sum(r) from t groupby v, c with epsilon 0.5 }}",
        "0.5",
    ),
    "rho": ("rho 1", "x = {{ select count(*) from t with rho 0.25 }}\nn = noisy_max([size(t)]) with rho 0.25", "0.5"),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_spending(attempt: Attempt, name: str) -> None:
    budget, program, expected = ACCEPTED[name]
    result = attempt(DECLARED + budget + "\n" + program, t=ROWS)
    assert not result.diagnostics
    assert spent(result, unit=budget.split()[0]) == expected


REFUSED = {
    "an eleventh tenth": (
        "BudgetExceeded",
        "for i in 1..11 { x = {{ select count(*) from t with epsilon 0.1 }} }",
        "1",
    ),
    "an allotment inside a smaller one": ("BudgetExceeded", "with epsilon 0.1 { with epsilon 0.2 { print(1) } }", "0"),
    "more than the allotment": (
        "BudgetExceeded",
        "with epsilon 0.1 { x = {{ select count(*) from t with epsilon 0.2 }} }",
        "0",
    ),
    "nothing left": (
        "BudgetExceeded",
        "with epsilon 0.1 { x = {{ select count(*) from t }}\ny = {{ select count(*) from t }} }",
        "0.1",
    ),
    "epsilon outside an allotment": ("NoEpsilon", "print(epsilon)", "0"),
    "a select that nothing pays for": ("NoEpsilon", "x = {{ select count(*) from t }}", "0"),
    "the wrong unit": ("TypeError", "x = {{ select count(*) from t with rho 0.1 }}", "0"),
    "delta on a pure budget": ("TypeError", "x = {{ select count(*) from t with epsilon 0.1 delta 1e-6 }}", "0"),
    "no amount": ("BadAmount", "x = {{ select count(*) from t with epsilon 0 }}", "0"),
    "a negative amount": ("BadAmount", "x = {{ select count(*) from t with epsilon -1 }}", "0"),
    "an infinite amount": ("BadAmount", "x = {{ select count(*) from t with epsilon 1e999 }}", "0"),
    "an amount that is no number": ("BadAmount", "a = 1e999\nx = {{ select count(*) from t with epsilon a - a }}", "0"),
    "a smaller amount than is counted": ("BadAmount", "x = {{ select count(*) from t with epsilon 1e-13 }}", "0"),
    "too little to share": ("BadAmount", "x = {{ select stddev(r) from t with epsilon 2e-12 }}", "0"),
    "an unbounded sum": ("UnboundedSum", "x = {{ select sum(r / v) from t with epsilon 0.1 }}", "0"),
    "a private source of a handle": ("TypeError", "private u = t protecting rows budget epsilon 1", "0"),
    "a file that is private already": ("PrivateValue", 'u = table("t.csv")', "0"),
    "the same file by another path": ("PrivateValue", 'u = table("./t.csv")', "0"),
    "another unit for one file": (
        "DataError",
        'private u = table("t.csv") described by {v: 0..3} protecting rows, public size budget epsilon 1',
        "0",
    ),
    "another measure for one file": (
        "DataError",
        'private u = table("t.csv") described by {v: 0..3} protecting rows budget rho 1',
        "0",
    ),
    "two private sides without a bound": (
        "TypeError",
        "x = {{ select count(*) from t join t on c with epsilon 0.1 }}",
        "0",
    ),
    "a condition on values under a sum": (
        "TypeError",
        "h = histogram(t, x = v)\nx = {{ select sum(values) from h where values > 1 with epsilon 0.1 }}",
        "0",
    ),
    "grouping by values": (
        "TypeError",
        "h = histogram(t, x = v)\nx = {{ select sum(values) from h groupby values with epsilon 0.1 }}",
        "0",
    ),
    "rows of a table": ("PrivateValue", "x = {{ select v from t with epsilon 0.1 }}", "0"),
    "a score by itself": ("PrivateValue", "print(size(histogram(t, x = v)))", "0"),
    "a private condition": ("PrivateValue", "if size(histogram(t, x = v)) > 3 { print(1) }", "0"),
    "a private amount": (
        "PrivateValue",
        "s = size(t)\nx = {{ select count(*) from t with epsilon s }}",
        "0",
    ),
    "an agent has its own limit": (
        "BudgetExceeded",
        "u = limited(t, 0.2)\nx = {{ select count(*) from u with epsilon 0.2 }}\n"
        "y = {{ select count(*) from u with epsilon 0.1 }}",
        "0.2",
    ),
    "half a level": (
        "ValueError",
        "h = histogram(t, x = v)\np = least_cost_partition(h, public_splits = 0.5) with epsilon 0.1",
        "0",
    ),
    "a weight that is no number": (
        "ValueError",
        "a = 1e999\nh = histogram(t, x = v)\n"
        'x = laplace(h, [{kind: "groups", labels: [0, 0, -1, -1], size: 1, weight: 1},'
        ' {kind: "groups", labels: [-1, -1, 0, 0], size: 1, weight: a - a}]) with epsilon 0.1',
        "0",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(attempt: Attempt, name: str) -> None:
    kind, program, expected = REFUSED[name]
    result = attempt(DECLARED + "epsilon 1\n" + program, t=ROWS)
    assert kinds(result)[:1] == [kind], result.diagnostics
    if result.budget:
        assert spent(result) == expected


def test_parts_under_one_label_are_disjoint(attempt: Attempt) -> None:
    """1.5 is in the part of its floor and in the part of 1.5: these are two partitions, and add."""
    declared = 'private t = table("t.csv") described by {v: {1.5, 1.0, 3.0}} protecting rows budget epsilon 1\n'
    floors = "for k, p in partition(t, v, over = {1, 3}) { x = {{ select count(*) from p with epsilon 0.4 }} }\n"
    for other in ("t[v = 1.5]", "t[v = 1]"):
        program = declared + floors + f"y = {{{{ select count(*) from {other} with epsilon 0.5 }}}}"
        assert spent(attempt(program, t="v\n1.5\n1\n")) == "0.9"
    whole = declared + "for k, p in partition(t, v) { x = {{ select count(*) from p with epsilon 0.4 }} }\n"
    assert spent(attempt(whole + "y = {{ select count(*) from t[v = 1.5] with epsilon 0.5 }}", t="v\n1.5\n")) == "0.9"
    # what partition gives by default are the listed values themselves, so that a part may meet its namesake
    assert spent(attempt(whole + "y = {{ select count(*) from t[v = 3] with epsilon 0.4 }}", t="v\n1.5\n")) == "0.8"


def test_two_texts_that_sql_cannot_tell_apart(attempt: Attempt) -> None:
    """Every half of a surrogate pair would become the same replacement characters, in parts charged as disjoint."""
    text = "c,v\n\ufffd\ufffd\ufffd,1\n"
    declared = 'private t = table("t.csv") described by {c: DOMAIN, v: 0..3} protecting rows budget epsilon 1\n'
    halves = r'{"\ud800", "\ud801"}'
    for domain, program in [
        ("text", r'x = {{ select count(*) from t[c = "\ud800"] with epsilon 0.5 }}'),
        (
            "text",
            f"for k, p in partition(t, c, over = {halves}) {{ x = {{{{ select count(*) from p with epsilon 0.5 }}}} }}",
        ),
        (halves, "x = {{ select median(v) from t groupby c with epsilon 0.5 }}"),
    ]:
        result = attempt(declared.replace("DOMAIN", domain) + program, t=text)
        assert kinds(result) == ["ValueError"] and spent(result) == "0"


def test_bounds_do_not_outlive_a_column(attempt: Attempt) -> None:
    program = DECLARED + "epsilon 1\nd = derive(t, r = r * 100)\nx = {{ select sum(r) as s from d with epsilon 1 }}\n"
    (event,) = [e for e in attempt(program, t=ROWS).events if e.kind == "measure"]
    assert event.fields["sensitivity"] == 2000
    gone = attempt(
        DECLARED + "epsilon 1\nd = derive(t, r = r / v)\nx = {{ select sum(r) from d with epsilon 1 }}", t=ROWS
    )
    assert kinds(gone) == ["UnboundedSum"]


def test_two_declarations_share_one_budget(attempt: Attempt) -> None:
    program = DECLARED + "epsilon 1\n" + DECLARED.replace("private t", "private u").replace("t.csv", "./t.csv")
    program += "epsilon 5\nx = {{ select count(*) from u with epsilon 0.7 }}\n"
    assert spent(attempt(program, t=ROWS)) == "0.7"
    assert kinds(attempt(program + "y = {{ select count(*) from t with epsilon 0.7 }}", t=ROWS)) == ["BudgetExceeded"]


def test_counts_by_another_name_of_the_file(tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", np.array([3, 1, 0, 2]))
    os.link(tmp_path / "c.npy", tmp_path / "hard.npy")
    program = 'private c = counts("c.npy") protecting rows budget epsilon 1\nu = counts("hard.npy")\n'
    assert kinds(Session(cwd=tmp_path).attempt(Source("p.jst", program))) == ["PrivateValue"]


def test_training_may_not_touch_a_private_source(attempt: Attempt) -> None:
    program = """
peek = Feature (data) { return {{ select sum(values) from data.database }} }
one = Option (data) { return {{ select count(*) from t with epsilon 0.1 }} }
two = Option (data) { return 0 }
good = Utility (data, answers) { return answers }
shapes = { {database: counts([1])}, {database: counts([5])} }
m = MkChoiceMaker among {one, two} informed by {peek} trained on shapes wrt good
x = m({database: counts([1, 2, 3])})
"""
    result = attempt(DECLARED + "epsilon 1\n" + program, t=ROWS)
    assert kinds(result) == ["PrivateValue"] and spent(result) == "0"


# Charge, then look ------------------------------------------------------------------------------------


READERS = [(LocalDuckDb, "group"), (LocalDuckDb, "tally"), (LocalDuckDb, "exact"), (Reader, "cells")]
LOOKING = [
    "x = {{ select count(*) from t with epsilon E }}",
    "x = {{ select median(r), avg(r) from t groupby c with epsilon E }}",
    "x = laplace(histogram(t, x = v)) with epsilon E",
    "x = noisy_max([size(t), size(histogram(t, x = v))]) with epsilon E",
    "x = least_cost_partition(histogram(t, x = v)) with epsilon E",
    "x = laplace(l1_to_uniform(histogram(t, x = v))) with epsilon E",
    "h = histogram(t, x = v)\nx = {{ select max(values) from h with epsilon E }}",
    "x = {{ select count(*) from t join t on c up to 2 with epsilon E }}",
]


class Met(BaseException):
    """The engine was asked for private rows."""


@pytest.mark.parametrize("program", LOOKING)
def test_nothing_is_read_before_the_charge(attempt: Attempt, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    def read(*_: Any, **__: Any) -> None:
        raise Met

    for owner, name in READERS:
        monkeypatch.setattr(owner, name, read)
    refused = attempt(DECLARED + "epsilon 1\n" + program.replace("E", "1.5"), t=ROWS)
    assert kinds(refused) == ["BudgetExceeded"] and spent(refused) == "0"
    with pytest.raises(Met):
        attempt(DECLARED + "epsilon 1\n" + program.replace("E", "0.5"), t=ROWS)


@pytest.mark.parametrize("program", LOOKING)
def test_a_failure_after_the_charge_gives_nothing_back(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise refuse("DataError", "the disk is gone")

    for owner, name in READERS:
        monkeypatch.setattr(owner, name, fails)
    result = attempt(DECLARED + "epsilon 1\n" + program.replace("E", "0.5"), t=ROWS)
    assert kinds(result) == ["DataError"] and spent(result) == "0.5"


def test_a_charge_on_two_sources_is_made_on_both_or_on_none(attempt: Attempt) -> None:
    program = DECLARED + "epsilon 1\n" + DECLARED.replace("private t", "private u").replace("t.csv", "u.csv")
    program += "epsilon 0.2\nx = {{ select count(*) from t join u on c up to 1 with epsilon A }}\n"
    both = attempt(program.replace("A", "0.2"), t=ROWS, u=ROWS)
    assert (spent(both), spent(both, "u")) == ("0.2", "0.2")
    none = attempt(program.replace("A", "0.3"), t=ROWS, u=ROWS)
    assert kinds(none) == ["BudgetExceeded"] and (spent(none), spent(none, "u")) == ("0", "0")


def test_a_refusal_is_the_same_for_every_database(attempt: Attempt) -> None:
    program = DECLARED + "epsilon 1\nx = {{ select sum(r) from t groupby v with epsilon 0.9 }}\n"
    program += "y = {{ select count(*) from t with epsilon 0.2 }}\n"
    contents = ["v,r,c\n", ROWS, "v,r,c\n9999999999999999999,nan,\n,,\n-1,1e999,q\n"]
    told = [[(d.kind, d.message) for d in attempt(program, t=text).diagnostics] for text in contents]
    assert told[0] == told[1] == told[2] and told[0][0][0] == "BudgetExceeded"
