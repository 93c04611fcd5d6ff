"""`via smooth` in programs: what is counted, by which scale, what it costs, and what is told and refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from recording import Bench

from jostle.error_laws import SmoothLaplaceErrors
from jostle.privacy.measurements.smooth import largest_beta, peak
from jostle.source import Source
from jostle.tools.session import Result, Session

BUDGET = "protecting rows budget epsilon 9, delta 0.1 counted by basic"
DECLARED = f"""
private c = table("c.csv") described by {{id: 0..9, city: {{"A", "B"}}, name: text}} {BUDGET}
private t = table("t.csv") described by {{id: 0..9, cost: 0..9}} {BUDGET}
"""
AMOUNT = "with epsilon 1 delta 1e-3 via smooth"
CUSTOMERS = "id,city,name\n1,A,x\n2,B,y\n3,A,z\n"
ORDERS = "id,cost\n" + "1,5\n" * 40 + "2,9\n" * 3 + "7,9\n"
BETA = {groups: largest_beta(1.0, 1e-3, groups) for groups in (1, 2)}


def scale(smooth: float) -> float:
    return smooth / 0.5


def drawn(bench: Bench, query: str, orders: str = ORDERS, customers: str = CUSTOMERS) -> tuple[Any, Any]:
    """The draw that tells the scale, and that of the counts."""
    (bench.folder / "c.csv").write_text(customers)
    (bench.folder / "t.csv").write_text(orders)
    record = bench.run(DECLARED + query)
    assert record.result.ok, record.result.diagnostics
    (charge,) = {id(c): c for c in record.charges if c.draws}.values()
    told, counts = charge.draws
    return told, counts


def test_two_tables_count_by_the_more_frequent_key(bench: Bench) -> None:
    told, counts = drawn(bench, f"n = {{{{ select count(*) from t join c on id {AMOUNT} }}}}")
    assert counts.values.tolist() == [43]
    assert counts.scale == pytest.approx(scale(peak([(40, 1)], BETA[1])))
    assert told.values.tolist() == [math.ceil(math.log(counts.scale) / (BETA[1] / 64))]


def test_groups_have_one_scale_and_a_smaller_beta(bench: Bench) -> None:
    _, counts = drawn(bench, f"g = {{{{ select count(*) as n from t join c on id groupby city {AMOUNT} }}}}")
    assert counts.values.tolist() == [40, 3] and BETA[2] < BETA[1]
    assert counts.scale == pytest.approx(scale(peak([(40, 1)], BETA[2])))


def test_a_filter_of_the_pairs_leaves_the_scale_and_one_of_a_table_does_not(bench: Bench) -> None:
    _, counts = drawn(bench, f"n = {{{{ select count(*) from t join c on id where cost > 6 {AMOUNT} }}}}")
    assert counts.values.tolist() == [3] and counts.scale == pytest.approx(scale(peak([(40, 1)], BETA[1])))
    _, counts = drawn(bench, f"n = {{{{ select count(*) from where(t, cost > 6) join c on id {AMOUNT} }}}}")
    assert counts.values.tolist() == [3] and counts.scale == pytest.approx(scale(peak([(3, 1)], BETA[1])))


def test_a_table_with_itself_counts_its_keys_twice_and_the_row_itself(bench: Bench) -> None:
    query = f"n = {{{{ select count(*) from t as a join where(t, cost > 6) as b on a.id = b.id {AMOUNT} }}}}"
    _, counts = drawn(bench, query)
    assert counts.values.tolist() == [10]
    assert counts.scale == pytest.approx(scale(peak([(40, 1)], BETA[1]) + peak([(3, 1)], BETA[1]) + 1))


def test_keys_that_are_missing_meet_nothing(bench: Bench) -> None:
    orders = ORDERS + ",1\n" * 500
    _, counts = drawn(bench, f"n = {{{{ select count(*) from t join c on id {AMOUNT} }}}}", orders)
    assert counts.values.tolist() == [43] and counts.scale == pytest.approx(scale(peak([(40, 1)], BETA[1])))


def test_a_public_table_in_between(bench: Bench) -> None:
    (bench.folder / "p.csv").write_text("id,size\n1,4\n1,5\n2,6\n")
    public = 'p = table("p.csv") described by {id: 0..9, size: 0..9}\n'
    query = f"{public}n = {{{{ select count(*) from t join c on id join p on id {AMOUNT} }}}}"
    _, counts = drawn(bench, query)
    assert counts.values.tolist() == [83] and counts.scale == pytest.approx(scale(2 * peak([(40, 1)], BETA[1])))


def test_persons_count_with_all_their_rows(bench: Bench) -> None:
    """A person of two rows takes a frequency by two."""
    (bench.folder / "v.csv").write_text("who,id\n" + "".join(f"{i // 2},1\n" for i in range(20)))
    query = (
        'private v = table("v.csv") described by {who: integer, id: 0..9} protecting who up to 2 rows '
        "budget epsilon 9, delta 0.1 counted by basic\n"
        f"n = {{{{ select count(*) from v join c on id {AMOUNT} }}}}"
    )
    _, counts = drawn(bench, query)
    of_persons, of_customers = 2 * peak([(1, 1)], BETA[1]), peak([(20, 2)], BETA[1])
    assert counts.values.tolist() == [20] and counts.scale == pytest.approx(scale(max(of_persons, of_customers)))


def test_nothing_but_the_noisy_numbers_differs(bench: Bench) -> None:
    """The scales do; with noise that shows nothing, what a run tells is the same to the last field."""
    shown = []
    for orders in (ORDERS, "id,cost\n", ORDERS + "1,3\n" * 400):
        (bench.folder / "c.csv").write_text(CUSTOMERS)
        (bench.folder / "t.csv").write_text(orders)
        result = bench.run(
            DECLARED + f"n = {{{{ select count(*) from t join c on id {AMOUNT} }}}}\nprint(n, error(n))"
        ).result
        events = [(event.kind, event.name, dict(event.fields)) for event in result.trace]
        shown.append((result.output, result.budget, events))
    assert shown[0] == shown[1] == shown[2]


def test_what_a_run_tells(attempt: Callable[..., Result]) -> None:
    query = f"n = {{{{ select count(*) from t join c on id {AMOUNT} }}}}\nprint(n, error(n), band(n, 0.5))\nrelease n"
    result = attempt(DECLARED + query, t=ORDERS, c=CUSTOMERS)
    assert result.ok, result.diagnostics
    (event,) = [event.fields for event in result.trace if event.kind == "measure"]
    assert event["mechanism"] == "smooth" and sorted(event["sources"]) == ["c", "t"] and event["stability"] == 1
    assert event["scale"] >= 1 and event["sensitivity"] == pytest.approx(event["scale"] / 2)
    assert result.margins()["n"]["error"] == SmoothLaplaceErrors(event["scale"], 1.0).half_width()
    for name in ("c", "t"):
        spent = {unit: float(told["spent"]) for unit, told in result.budget[name].items()}
        assert spent == {"epsilon": 1, "delta": 1e-3}


def test_public_tables_are_counted_exactly(attempt: Callable[..., Result]) -> None:
    tables = 'a = table("t.csv") described by {id: 0..9}\nb = table("c.csv") described by {id: 0..9}\n'
    result = attempt(
        tables + f"n = {{{{ select count(*) from a join b on id {AMOUNT} }}}}\nrelease n", t=ORDERS, c=CUSTOMERS
    )
    assert result.ok and result["n"] == 43


@pytest.mark.parametrize(
    ("query", "kind", "message"),
    [
        ("select count(*) from t join c on id with epsilon 1 via smooth", "BadAmount", "needs a delta"),
        (f"select count(*) from t {AMOUNT}", "TypeError", "joins of private tables without"),
        (f"select count(*) from t join c on id up to 3 {AMOUNT}", "TypeError", "joins of private tables without"),
        (f"select count(*) from t join c on id join t as p on id up to 3 {AMOUNT}", "TypeError", "one that has one"),
        (f"select sum(cost) from t join c on id {AMOUNT}", "TypeError", "counts rows, and nothing else"),
        (f"select count(distinct cost) from t join c on id {AMOUNT}", "TypeError", "counts rows, and nothing else"),
        (f"select count(*) as n, count(cost) as m from t join c on id {AMOUNT}", "TypeError", "counts rows"),
        (f"select count(*) from t left join c on id {AMOUNT}", "TypeError", "a left join of private tables"),
        (f"select count(*) from t join c on id groupby name {AMOUNT}", "OpenKeys", "finds none"),
        ("select count(*) from t join c on id with error 30 delta 1e-6 via smooth", "TypeError", "cannot be asked for"),
        (f"select cost from t join c on id per cost {AMOUNT}", "TypeError", "cost nothing until"),
        ("select count(*) from t join c on id with epsilon 1", "TypeError", "needs a bound"),
        (f"select count(*) from t join e on id {AMOUNT}", "TypeError", "has no delta"),
        (f"select count(*) from w join c on id {AMOUNT}", "TypeError", "weights"),
        (f"select count(*) from v join c on id up to 1 rows {AMOUNT}", "TypeError", "no longer known whose a row is"),
        (f"select count(distinct person) from v join c on id {AMOUNT}", "TypeError", "person"),
    ],
)  # fmt: skip
def test_what_is_refused(attempt: Callable[..., Result], query: str, kind: str, message: str) -> None:
    """Before anything is charged."""
    more = """
private e = table("e.csv") described by {id: 0..9} protecting rows budget epsilon 9
private w = table("w.csv") described by {id: 0..9} protecting id up to 2 rows weighted budget epsilon 9, delta 0.1
private v = table("v.csv") described by {who: integer, id: 0..9} protecting who up to 2 rows budget epsilon 9, delta 0.1
"""
    files = {"t": ORDERS, "c": CUSTOMERS, "e": ORDERS, "w": ORDERS + "4,4\n", "v": "who,id\n1,1\n"}
    result = attempt(DECLARED + more + f"n = {{{{ {query} }}}}", **files)
    (first, *_) = result.diagnostics
    assert (first.kind, message in first.message) == (kind, True), first
    assert not any(float(spent["epsilon"]["spent"]) for spent in result.budget.values())


def test_one_in_a_jointly_block_is_refused(attempt: Callable[..., Result]) -> None:
    block = (
        "jointly with epsilon 1 delta 1e-3:\n    n = {{ select count(*) from t join c on id with weight 2 via smooth }}"
    )
    result = attempt(DECLARED + block, t=ORDERS, c=CUSTOMERS)
    assert "cannot be asked for, nor shared" in result.diagnostics[0].message


@pytest.mark.parametrize(
    ("select", "spent"),
    [("part join c on id", 1), ("part as a join part as b on a.id = b.id", 10)],
)
def test_parts_of_a_table(attempt: Callable[..., Result], select: str, spent: float) -> None:
    """One row is in one part; where it may change two rows of what is joined, δ and all is charged to the whole."""
    loop = f"for value, part in partition(t, cost):\n    n = {{{{ select count(*) from {select} {AMOUNT} }}}}"
    result = attempt(DECLARED.replace("epsilon 9", "epsilon 20") + loop, t=ORDERS, c=CUSTOMERS)
    assert result.ok, result.diagnostics
    assert float(result.budget["t"]["epsilon"]["spent"]) == spent


@pytest.mark.parametrize(
    ("joins", "refused"),
    [("join p on id", True), ("join c on id up to 2 join p on id", True), ("join p on id join c on id", False),
     ("join c on id join p on id", False)],
)  # fmt: skip
def test_a_check_knows_it_beside_a_public_file(joins: str, refused: bool) -> None:
    """Which nobody opens before a run."""
    text = f'{DECLARED}p = table("p.csv")\nn = {{{{ select count(*) from t {joins} {AMOUNT} }}}}\n'
    found = [one.message for one in Session().check(Source("program", text))]
    assert found == (["`via smooth` is for joins of private tables without `up to`"] if refused else [])
