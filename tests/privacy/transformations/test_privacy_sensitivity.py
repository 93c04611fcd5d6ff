"""Brute force: on every tiny database and each of its neighbours, no charge loses more than it says.

Programs run whole, from text to noise; what the noise was given is compared between neighbours (see `recording`).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter

import pytest
from recording import Bench, Record, worst_losses

HEADER = ("v", "r", "c")
KINDS = (("-1", "0.3", "x"), ("7", "-0.71", "neither"), ("0", "", "y"), ("1", "2.5", "x"))
"""Rows inside and outside their domains, and with a missing cell."""

SCHEMA = 'described by {v: -1..2, r: -0.7..2.0, c: {"x", "y"}}'


def source(unit: str = "rows", budget: str = "epsilon 1000") -> str:
    return f'private t = table("t.csv") {SCHEMA} protecting {unit} budget {budget}\n'


AGGREGATES = """
a = {{ select count(*) as n, count(r) as m, count(distinct v) as d, sum(v) as s from t with epsilon 1.2 }}
b = {{ select sum(r) from t with epsilon 0.7 }}
c = {{ select avg(r) as a, var(r) as v, stddev(v) as s from t with epsilon 1 }}
d = {{ select median(v) as a, quantile(r, 0.3) as b, min(v) as c, max(r) as d, bounds(r) as e from t with epsilon 2 }}
e = {{ select mode(c) as c, mode(v) as v from t with epsilon 1 }}
f = {{ select count(*) as n, avg(v) as a, median(v) as m, mode(v) as o from t groupby c with epsilon 1 }}
g = {{ select sum(r * v) from t where r > 0 and v != 1 groupby v / 2, c with epsilon 1 }}
h = {{ select sum(clamp(r * 1000, -3, 12)) as s, count(distinct c) as d from t
       groupby v over {2, 0, 2} with epsilon 1 }}
i = {{ select sum(v ^ 2) from t with epsilon 0.01 }}
"""

TRANSFORMED = """
d = derive(t, v = v * 100, w = r + v)
a = {{ select sum(v) as s, avg(w) as a, median(v) as m from d with epsilon 1 }}
b = {{ select count(*) from t where v in {0, 1} with epsilon 1 }}
for k, p in partition(t, v) { x = {{ select sum(r) from p with epsilon 0.5 }} }
for k, p in partition(d, w / 2) { x = {{ select sum(v) from p groupby c with epsilon 0.5 }} }
o = derive(t, high = r > 0)
for k, p in partition(o, high) { x = {{ select count(*) from p with epsilon 0.5 }} }
a = {{ select sum(high) as s, avg(high) as a, covariance(high, v) as c, mode(high) as m from o with epsilon 1 }}
b = {{ select count(*) as n, avg(not high) as a from o where high or v > 0 groupby high with epsilon 1 }}
a = laplace(histogram(o, high)) with epsilon 1
y = {{ select count(*) from t[c = "x"] with epsilon 0.4 }}
z = {{ select count(*) from t[c = "y"] with epsilon 0.6 }}
j = {{ select count(*) as n, sum(v) as s from t join t on c up to 1 with epsilon 1 }}
k = {{ select sum(r) from t join t on v up to 2 with epsilon 1 }}
public = table("u.csv") described by {c: {"x", "y"}, w: 0..9}
l = {{ select sum(w) as s, mode(w) as m, median(w) as q from t join public on c with epsilon 1 }}
"""

CUBES = """
use histograms
h = histogram(t, x = v)
k = histogram(t, x = v, y = c)
a = laplace(h) with epsilon 1
b = laplace(h, [{kind: "boxes", lows: [[0], [1]], highs: [[2], [3]], weight: 0.7},
                {kind: "matrix", labels: [0, 1, 1, -1], matrix: [[1, 0.5], [2, -1.3]]},
                {kind: "groups", labels: [0, 0, 1, 1], size: 2, weight: [0.1, 3]}]) with epsilon 1
c = laplace(k, [{kind: "boxes", lows: [[0, 0], [1, 1]], highs: [[2, 1], [3, 1]], weight: 1}]) with epsilon 1
d = [(laplace(s) with epsilon 0.5) for s in [size(h), nonzero(h), largest_cell(h), l2(h), l1_to_uniform(h)]]
d2 = [(laplace(s) with epsilon 0.5) for s in [total_variation(h), size(h)]]
e = noisy_max([size(h), nonzero(h), largest_cell(h), largest_marginal(k), l2(h)]) with epsilon 1
f = noisy_max([l1_to_uniform(h), total_variation(k), l2(h), size(t)]) with epsilon 1
g = noisy_max(misfit(h, prefixes(h), [0.4, 1, 0, 2])) with epsilon 1
ag = noisy_max([closeness(h, prefixes(h), [0.4, 1, 0, 2]), closeness(h, identity(h), [3, 1, 0, 0])]) with epsilon 1
i = {{ select max(values) as m, sum(values) as s from k groupby x / 2 with epsilon 1 }}
j = {{ select count(values) from k where values > 1 and x > 0 groupby y with epsilon 1 }}
n = {{ select sum(values) from k where x > 0 groupby y with epsilon 1 }}
m = (laplace(l1_to_uniform(h[x = 2])) with epsilon 1)
r = laplace(largest_marginal(k)) with epsilon 1
o = {{ stddev(select sum(values) from h groupby x / 2 with epsilon 1) }}
p = mwem(h, prefixes(h), 2) with epsilon 1
q = hb(h, prefixes(h)) with epsilon 1
r = hdmm(h, prefixes(h)) with epsilon 1
along = [{labels: [0, 0, 1, -1], signs: [1, -1, 1, 1], size: 2}, {labels: [0, 0], signs: [1, -1], size: 1}]
af = laplace(k, [{kind: "signed", weight: 0.4, axes: along}]) with epsilon 1
"""

RHO = """
a = {{ select count(*) as n, sum(r) as s from t groupby c with rho 0.3 }}
b = {{ select sum(r) from t with rho 0.3 via laplace }}
c = {{ select avg(r) from t groupby v with rho 0.2 }}
"""


def databases(kinds: int, most: int) -> list[tuple[int, ...]]:
    return [some for n in range(most + 1) for some in itertools.combinations_with_replacement(range(kinds), n)]


def records(bench: Bench, program: str, contents: list[tuple[int, ...]]) -> dict[tuple[int, ...], Record]:
    (bench.folder / "u.csv").write_text("c,w\nx,1\nx,5\nx,5\ny,9\n")
    found = {}
    for some in contents:
        bench.table((KINDS[i] for i in some), HEADER)
        found[some] = bench.run(program)
    return found


def check(a: Record, b: Record, *, rho: bool = False) -> Counter[str]:
    """Each charge within its price, and the whole within the source's own total; gives what came near its price."""
    total, tight = 0.0, Counter()
    for title, lost, charged in worst_losses(a, b):
        # a Laplace draw under rho has ε = √(2ρ)
        assert lost <= charged * (1 + 1e-9), title
        total += lost
        tight[title] += lost > 0.99 * charged
    assert total <= a.spent * (1 + 1e-9)
    return tight


def added(contents: list[tuple[int, ...]]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    known = set(contents)
    return [
        (some, more)
        for some in contents
        for i in range(len(KINDS))
        if (more := tuple(sorted((*some, i)))) in known
    ]  # fmt: skip


@pytest.mark.slow(only=["aggregates"])
@pytest.mark.parametrize("part", [AGGREGATES, TRANSFORMED, CUBES], ids=["aggregates", "transformed", "cubes"])
def test_one_row_more(bench: Bench, part: str) -> None:
    contents = databases(len(KINDS), 3)
    found = records(bench, source() + part, contents)
    tight: Counter[str] = Counter()
    for some, more in added(contents):
        tight += check(found[some], found[more])
    assert tight, "no charge was used up by any neighbour: the comparison compares nothing"


def test_one_row_replaced(bench: Bench) -> None:
    contents = list(itertools.combinations_with_replacement(range(len(KINDS)), 2))
    program = source("rows, public size") + AGGREGATES + CUBES
    found = records(bench, program, contents)
    tight: Counter[str] = Counter()
    for one, other in itertools.combinations(contents, 2):
        if len(set(one) & set(other)) >= 1:
            tight += check(found[one], found[other])
    assert tight


def test_transformed_tables_with_replaced_rows(bench: Bench) -> None:
    contents = list(itertools.combinations_with_replacement(range(len(KINDS)), 2))
    found = records(bench, source("rows, public size") + TRANSFORMED, contents)
    for one, other in itertools.combinations(contents, 2):
        if len(set(one) & set(other)) >= 1:
            check(found[one], found[other])


def test_gaussian_noise_under_rho(bench: Bench) -> None:
    contents = databases(len(KINDS), 2)
    found = records(bench, source(budget="rho 100") + RHO, contents)
    for some, more in added(contents):
        for one, other in zip(found[some].charges, found[more].charges, strict=True):
            pure = [x.loss(y) for x, y in zip(one.draws, other.draws, strict=True) if x.kind == "laplace"]
            rest = [x.loss(y) for x, y in zip(one.draws, other.draws, strict=True) if x.kind == "gaussian"]
            assert sum(e * math.tanh(e / 2) for e in pure) + sum(rest) <= one.value * (1 + 1e-9)


PEOPLE = 'private t = table("t.csv") described by {who: text, v: -1..2, c: {"x", "y"}}\n'
PEOPLE += "protecting who up to 2 rows budget epsilon 1000\n"
OF_PEOPLE = """
a = {{ select count(*) as n, sum(v) as s, count(distinct who) as d, count(distinct v) as e from t with epsilon 1 }}
b = {{ select avg(v) as a, median(v) as m, mode(v) as o from t groupby c with epsilon 1 }}
for k, p in partition(t, v) { x = {{ select count(*) from p with epsilon 1 }} }
c = {{ select sum(v) from t join t on c up to 1 with epsilon 1 }}
d = {{ select count(*) from t join t on who up to 2 with epsilon 1 }}
h = histogram(t, x = v)
e = (laplace(h) with epsilon 1)
f = noisy_max([l1_to_uniform(h), total_variation(h)]) with epsilon 1
g = {{ select sum(values) as s, max(values) as m from h groupby x with epsilon 1 }}
"""


@pytest.mark.slow
def test_all_rows_of_a_person(bench: Bench) -> None:
    """One person with up to three rows (two are kept) comes or goes; nobody else's rows are affected."""
    rows = [("-1", "x"), ("2", "y"), ("0", "x")]
    others = [[], [("Ann", "2", "x"), ("Ann", "2", "x")], [("Ann", "1", "y"), ("Ann", "0", "y"), ("Bob", "0", "x")]]
    for other in others:
        bench.table([*other, ("", "2", "x")], ("who", "v", "c"))  # a row of nobody is dropped
        without = bench.run(PEOPLE + OF_PEOPLE)
        for mine in databases(3, 3)[1:]:
            bench.table([*other, *(("Cem", *rows[i]) for i in mine)], ("who", "v", "c"))
            check(without, bench.run(PEOPLE + OF_PEOPLE))


PLAIN = """
a = {{ select count(*) from t with epsilon 0.5 }}
b = {{ select sum(v) from t with epsilon 0.5 }}
c = {{ select mode(v) from t with epsilon 0.5 }}
d = {{ select median(v) from t with epsilon 0.5 }}
e = laplace(histogram(t, x = v)) with epsilon 0.5
f = noisy_max([total_variation(histogram(t, x = v)), size(t)]) with epsilon 0.5
"""


def test_the_scale_is_the_sensitivity_over_the_charge(bench: Bench) -> None:
    """Where the sensitivity is plain to see, the scale is not larger than it has to be either."""
    bench.table([KINDS[0]], HEADER)
    scales = [draw.scale for charge in bench.run(source() + PLAIN).charges for draw in charge.draws]
    # a median chooses with three quarters of its amount, and finds its interval with the rest
    assert scales == pytest.approx([2.0, 4.0, 2.0, 2.0 / 0.375, 1.0 / 0.125, 2.0, 8.0])
