"""Programs over weighted records: on small tables and their neighbours no charge loses more than it says, and what is
refused is refused before a charge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from recording import Bench, worst_losses

from jostle.source import Source
from jostle.tools.session import Result, Session

HEADER = ("a", "b", "c")
SOURCE = 'private t = table("t.csv") described by {a: 0..3, b: 0..3, c: {"x", "y"}} protecting '
PROGRAM = """
use weighted
e = weighted(t)
q = [laplace(histogram(e, a)) with epsilon 1]
total = total_weight(where(e, a != b)) with epsilon 1
sizes = grouped(e, "a", "n", most = 4)
q = [laplace(histogram(sizes, n)) with epsilon 1]
tops = [grouped(e, "a", "m", reducer = how, of = "b") for how in ["min", "max", "sum"]]
q = [laplace(histogram(top, m)) with epsilon 1 for top in tops]
two = joined(e, pick(derive(e, d = b, b = a), b, d), "b", most = 2)
q = [laplace(histogram(two, a, d)) with epsilon 1]
all = joined(e, pick(derive(e, d = b, b = a), b, d), "b")
q = [laplace(histogram(all, a, d)) with epsilon 1]
q = [laplace(histogram(joined(two, sizes, "a"), n, x = d)) with epsilon 1]
q = [laplace(histogram(shave(pick(e, c), 0.75), place)) with epsilon 1]
q = [laplace(histogram(union(pick(e, a), pick(derive(e, a = b), a)), a)) with epsilon 1]
q = [laplace(histogram(intersect(pick(all, a), pick(derive(sizes, a = n - 1), a)), a)) with epsilon 1]
q = [laplace(histogram(concat(pick(e, a), pick(sizes, a)), a)) with epsilon 1]
q = [laplace(histogram(without(pick(e, a), pick(sizes, a)), a)) with epsilon 1]
h = histogram(all, a, d)
q = noisy_max([size(h), largest_cell(h), size(histogram(sizes, n))]) with epsilon 1
s = laplace(size(h)) with epsilon 1
s = {{ select sum(values) as s from h where a > 0 groupby d with epsilon 1 }}
q = laplace(h, [{kind: "boxes", lows: [[0, 0], [1, 1]], highs: [[2, 1], [3, 3]], weight: 0.7}]) with epsilon 1
k = laplace([histogram(e, a), histogram(all, b)]) with epsilon 1
"""
ROWS = [("0", "1", "x"), ("1", "0", "y"), ("1", "2", "x"), ("", "1", "x"), ("9", "3", "z"), ("1", "1", "y")]
OTHERS = [[], [0, 1], [1, 1, 2, 5]]


@pytest.mark.parametrize("unit", ["rows", "c up to 2 rows"])
def test_neighbours(bench: Bench, unit: str) -> None:
    """A row more or less; and a person with two."""
    tight: set[str] = set()
    declared = SOURCE + unit + " budget epsilon 1000\n"
    for others in OTHERS:
        base = [ROWS[i] if unit == "rows" else (*ROWS[i][:2], "y") for i in others]
        bench.table(base, HEADER)
        without = bench.run(declared + PROGRAM)
        for mine in ([0], [2], [3]) if unit == "rows" else ([0, 2], [5]):
            bench.table([*base, *(ROWS[i] if unit == "rows" else (*ROWS[i][:2], "x") for i in mine)], HEADER)
            losses = worst_losses(without, bench.run(declared + PROGRAM))
            for at, (title, lost, charged) in enumerate(losses):
                assert lost <= charged * (1 + 1e-9), (at, title)
                tight |= {f"{at}"} if lost > 0.99 * charged else set()
    assert tight >= {"0", "1", "2", "5", "9"}


KINDS = {
    "text": ("text", "p", 'upper(v) == "P"'), "category": ('{"p", "q"}', "p", "v"), "integer": ("0..9", "2", "v"),
    "number": ("real", "2.5", "clamp(floor(v), 0, 9)"), "boolean": ("{true, false}", "true", "v"),
    "listed number": ("{0, 2.5}", "2.5", "v"), "spelled number": ("text", "2", "clamp(floor(number(v)), 0, 9)"),
}  # fmt: skip
OF_EMPTY = {
    "concat": "concat(m, f)", "union": "union(f, m)", "intersect": "intersect(m, concat(f, m))",
    "without": "without(m, f)", "joined": 'concat(pick(joined(m, f, "v"), v), m)',
    "shaved": "concat(pick(shave(f, 1), v), m)", "grouped": 'concat(pick(grouped(f, "v", "n"), v), m)',
    "largest": 'concat(pick(grouped(few, "v", "n", reducer = "max", of = "a"), v), m)',
    "nothing else": "concat(where(f, false), where(concat(f, f), false))",
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_side_without_rows(bench: Bench, kind: str) -> None:
    """Whether a row is there does not decide whether others are counted, of whatever kind its columns are."""
    described, cell, key = KINDS[kind]
    program = f"""
use weighted
private t = table("t.csv") described by {{a: 0..9, v: {described}}} protecting rows budget epsilon 1000
few = weighted(where(t, a == 9))
m = weighted(pick(t, v))
f = weighted(pick(where(t, a == 9), v))
""" + "\n".join(f"q = [laplace(histogram({records}, v = {key})) with epsilon 1]" for records in OF_EMPTY.values())
    others = [("1", cell)] * 50
    bench.table(others, ("a", "v"))
    without = bench.run(program)
    bench.table([*others, ("9", cell)], ("a", "v"))
    losses = worst_losses(without, bench.run(program))
    for how, (_, lost, charged), charge in zip(OF_EMPTY, losses, without.charges, strict=True):
        assert lost <= charged * (1 + 1e-9), how
        assert how == "nothing else" or sum(draw.values.sum() for draw in charge.draws) > 0, how


DATES = """
use weighted
private t = table("t.csv") described by {name: text, sick: {"yes", "no"}, city: {"x", "y"}}
    protecting rows budget epsilon 1000
r = derive(weighted(t), z = coalesce(day(date("2020-01-01") if name == "Ann" and sick == "yes" else none), 0))
q = [laplace(histogram(r, city = city)) with epsilon 1]
s = derive(union(r, r), y = coalesce(year(date(name)) + z, 1))
q = [laplace(histogram(s, x = clamp(y % 2, 0, 1))) with epsilon 1]
"""


@pytest.mark.parametrize("cell", ["Ann", "2020-02-29", "2020-02-30", "9999-12-31", "0001-01-01"])
def test_dates_in_expressions_of_records(bench: Bench, cell: str) -> None:
    others = [(f"p{i}", "no", "xy"[i % 2]) for i in range(50)]
    header = ("name", "sick", "city")
    bench.table(others, header)
    without = bench.run(DATES)
    bench.table([*others, (cell, "yes", "x")], header)
    for (title, lost, charged), charge in zip(worst_losses(without, bench.run(DATES)), without.charges, strict=True):
        assert lost <= charged * (1 + 1e-9), title
        assert sum(draw.values.sum() for draw in charge.draws) > 0


def run(
    tmp_path: Path, program: str, rows: str = "1,0,x\n", declared: str = SOURCE + "rows budget epsilon 9\n"
) -> Result:
    (tmp_path / "t.csv").write_text("a,b,c\n" + rows)
    return Session(cwd=tmp_path).attempt(Source("p.jst", declared + "use weighted\n" + program))


MISUSES = {
    "e = weighted(5)": "TypeError",
    "e = weighted(histogram(t, a))": "TypeError",
    "e = shave(t, 1)": "TypeError",
    "e = shave(weighted(t), 0)": "ValueError",
    "e = shave(weighted(t), 1, most = 0.5)": "ValueError",
    "e = shave(weighted(t), 1, most = 10001)": "ValueError",
    'e = shave(shave(weighted(t), 1, most = 10000), 1, name = "a")': "NameError",
    'e = shave(weighted(t), 1, name = "a")': "NameError",
    'e = grouped(weighted(t), "d")': "NameError",
    'e = grouped(weighted(t), "a", "a")': "NameError",
    'e = grouped(weighted(t), "a", "n", most = 0)': "ValueError",
    "e = grouped(weighted(t), 4)": "TypeError",
    'e = grouped(weighted(t), "a", "m", reducer = "mean", of = "b")': "ValueError",
    'e = grouped(weighted(t), "a", "m", reducer = "max")': "TypeError",
    'e = grouped(weighted(t), "a", "m", reducer = "max", of = "c")': "TypeError",
    'e = grouped(weighted(t), "a", "m", reducer = "max", of = "z")': "NameError",
    'e = grouped(weighted(t), "a", "m", reducer = "sum", of = ["a", "b"])': "TypeError",
    'e = grouped(weighted(t), "a", "m", of = "b")': "TypeError",
    'e = grouped(derive(weighted(t), b = b / 2), "a", "m", reducer = "sum", of = "b")': "TypeError",
    'e = joined(weighted(t), weighted(t), "a")': "NameError",
    'e = joined(weighted(t), pick(derive(weighted(t), a = "z"), a), "a")': "TypeError",
    'e = joined(weighted(t), t, "a")': "TypeError",
    'e = joined(weighted(t), weighted(t), ["a", "b", "c"], most = 1)': "ValueError",
    "e = joined(weighted(t), weighted(t), [])": "TypeError",
    "e = intersect(weighted(t), pick(weighted(t), a))": "NameError",
    "e = union(weighted(t), t)": "TypeError",
    "e = pick(weighted(t), z)": "NameError",
    "e = where(weighted(t), a + 1)": "TypeError",
    "e = derive(weighted(t), day = 2024-01-01 + a)": "TypeError",
    "e = weighted(derive(t, day = 2024-01-01 + a))": "TypeError",
    "e = partition(weighted(t), a)": "TypeError",
    "e = limited(weighted(t), 1)": "TypeError",
    "e = laplace(weighted(t)) with epsilon 1": "TypeError",
    "e = histogram(weighted(t), x = a / 0.0000001)": "ValueError",
    "q = {{ select count(*) from weighted(t) with epsilon 1 }}": "TypeError",
    "use histograms\ne = nonzero(histogram(weighted(t), a))\nn = laplace(e) with epsilon 1": "TypeError",
    "use histograms\ne = dawa(histogram(weighted(t), a), prefixes(histogram(t, a))) with epsilon 1": "TypeError",
    "print(weighted(t))": "PrivateValue",
    "release e = weighted(t)": "PrivateValue",
    "e = len(weighted(t))": "PrivateValue",
}


@pytest.mark.parametrize("program", MISUSES)
def test_misuse_is_refused_before_a_charge(tmp_path: Path, program: str) -> None:
    result = run(tmp_path, "use workloads\n" + program)
    assert not result.ok and result.diagnostics[0].kind == MISUSES[program], result.diagnostics
    assert not result.budget or float(result.budget["t"]["epsilon"]["spent"]) == 0


def test_weights_of_weights_are_refused(tmp_path: Path) -> None:
    result = run(tmp_path, "e = weighted(t)", declared=SOURCE + "c up to 2 rows weighted budget epsilon 9\n")
    assert not result.ok and "have weights" in result.diagnostics[0].message


def test_too_many_joins_are_refused(tmp_path: Path) -> None:
    program = 'e = weighted(t)\nfor i in 1..6 { e = pick(joined(e, pick(e, a), "a"), a) }\n'
    result = run(tmp_path, program)
    assert not result.ok and "4,096 bits" in result.diagnostics[0].message


def test_public_records_are_measured_exactly(tmp_path: Path) -> None:
    """In halves, thirds and shares of a join, as cells, as a total and in a select."""
    program = """
e = weighted(t)
h = histogram(grouped(e, "a", "n", most = 3), n)
release n = list(laplace(h))
release s = {{ select sum(values) as s from h groupby n }}.s
p = joined(e, pick(derive(e, d = b, b = a), b, d), "b")
release p = total_weight(p)
release z = laplace(size(histogram(p, a)))
"""
    result = run(
        tmp_path, program, "1,0,x\n1,2,x\n0,1,y\n", SOURCE.replace("private t", "t").split(" protecting")[0] + "\n"
    )
    assert result.ok, result.diagnostics
    assert result.values["n"] == [0.5, 0.5, 0] and result.values["s"] == [0.5, 0.5, 0]
    assert result.values["p"] == pytest.approx(1 / 2 + 2 / 3, abs=1e-6)
    assert result.values["z"] == pytest.approx(1 / 2 + 2 / 3, abs=1e-6)


@pytest.mark.slow
def test_a_large_join_is_counted_without_holding_its_pairs(tmp_path: Path) -> None:
    """Four million pairs of one key, in blocks."""
    session = Session(cwd=tmp_path)
    session.bind("rows", {"a": np.arange(2000), "k": np.zeros(2000)})
    result = session.attempt(Source("p.jst", """use weighted
private t = bound("rows") described by {a: 0..1999, k: 0..0} protecting rows budget epsilon 1e6
e = weighted(t)
p = joined(e, pick(derive(e, b = a), b, k), "k")
release n = total_weight(where(p, a < b)) with epsilon 1e6
"""))  # fmt: skip
    assert result.ok, result.diagnostics
    assert result.values["n"] == pytest.approx(2000 * 1999 / 2 / 4000, abs=1e-3)


def test_truths_and_numbers_that_python_calls_equal_are_columns_of_their_own(tmp_path: Path) -> None:
    program = """
r = weighted(t)
truths = derive(r, z = true if a > 2 else false)
x = laplace(histogram(truths, z)) with epsilon 1
numbers = derive(derive(r, z = 1 if a > 2 else 0), y = z + 1)
y = laplace(histogram(numbers, y = clamp(y, 0, 2))) with epsilon 1
"""
    result = run(tmp_path, program)
    assert result.ok, result.diagnostics
