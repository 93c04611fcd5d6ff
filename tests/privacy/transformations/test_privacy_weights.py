"""Units with weights: brute force over small databases, exact weights, and what is refused.

A person comes or goes with up to three rows, of which two are kept; nobody else's rows are affected. What each
charge really loses (see `recording`) has to be within what it says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from recorded_noise import Draw
from recording import Bench, worst_losses

from jostle.accounting.amounts import Amount, Unit
from jostle.accounting.definitions import Measure
from jostle.integers import fixed_width
from jostle.plan.plan import (
    WEIGHT_BITS,
    Bound,
    Categories,
    Column,
    Constant,
    Count,
    Derive,
    Filter,
    Integer,
    Join,
    Key,
    Real,
    Scan,
)  # fmt: skip
from jostle.privacy.kernel.exposures import Exposure, Source
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.aggregates.aggregate import Pair, fixed_sum, sensitivity_of
from jostle.privacy.mechanisms.linear import MOST_COUNT, Strategy
from jostle.readers.duckdb import LocalDuckDb
from jostle.tools.session import Result

PEOPLE = 'private t = table("t.csv") described by {who: text, v: -1..2, r: -0.7..2.0, c: {"x", "y"}}\n'
PEOPLE += "protecting who up to 2 rows weighted budget "
PURE = """
a = {{ select count(*) as n, sum(v) as s, count(r) as m, sum(r) as q from t with epsilon 2 }}
b = {{ select avg(v) as a, var(r) as w, stddev(v) as d from t groupby c with epsilon 1 }}
c = {{ select median(v) as m, quantile(r, 0.3) as q, min(v) as a, max(r) as b, mode(c) as o from t with epsilon 1 }}
d = {{ select count(distinct who) as p, count(distinct v) as e, count(distinct v, c) as f from t with epsilon 1 }}
e = {{ select count(distinct who) as p, median(v) as m, bounds(r) as b, mode(v) as o from t groupby c with epsilon 1 }}
for k, p in partition(t, v) { x = {{ select count(*) as n, sum(r) as s from p with epsilon 1 }} }
for k, p in partition(t, c) { x = {{ select count(distinct who) from p with epsilon 1 }} }
f = {{ select count(distinct who) from t where v > 0 with epsilon 1 }}
g = {{ select sum(w) as s, count(distinct who) as p from derive(t, w = v * 3, who = who) with epsilon 1 }}
public = table("u.csv") described by {c: {"x", "y"}, w: 0..9}
i = {{ select sum(w) as s, count(*) as n, median(w) as q from t join public on c with epsilon 1 }}
h = histogram(t, x = v)
k = histogram(t, x = v, y = c)
l = (laplace(k) with epsilon 1)
m = (laplace(h, [{kind: "boxes", lows: [[0], [1]], highs: [[2], [3]], weight: 0.7},
                 {kind: "matrix", labels: [0, 1, 1, -1], matrix: [[1, 0.5], [2, -1.3]]},
                 {kind: "groups", labels: [0, 0, 1, 1], size: 2, weight: [0.1, 3]}]) with epsilon 1)
n = [(laplace(s) with epsilon 0.5) for s in [size(h), largest_cell(k), l2(h), l2(k), l1_to_uniform(h)]]
n2 = [(laplace(s) with epsilon 0.5) for s in [total_variation(h), size(t)]]
o = noisy_max([size(h), largest_cell(h), l2(k), size(t)]) with epsilon 1
q = noisy_max([l1_to_uniform(h), total_variation(h)]) with epsilon 1
r = noisy_max(misfit(h, prefixes(h), [0.4, 1, 0, 2])) with epsilon 1
s = laplace(closeness(h, prefixes(h), [0.4, 1, 0, 2])) with epsilon 1
s = {{ select sum(values) as s, max(values) as m from k groupby x with epsilon 1 }}
u = {{ select sum(values) from k where k.x > 0 groupby y with epsilon 1 }}
z = (laplace(k[y = 0]) with epsilon 1)
"""
GAUSSIAN = """
a = {{ select count(*) as n, sum(r) as s from t groupby c with rho 0.3 }}
h = histogram(t, x = v, y = c)
b = (laplace(h) with rho 0.2)
c = noisy_max([size(h), largest_cell(h)]) with rho 0.1
"""
ROWS = (("-1", "", "x"), ("2", "9", "y"), ("0", "-5", "x"), ("2", "0.1", "x"))
MINE = [(0,), (1,), (2,), (3,), (0, 1), (0, 3), (2, 3), (0, 1, 3), (1, 1, 1)]
OTHERS: list[list[tuple[str, ...]]] = [
    [],
    [("Ann", "1", "0", "y"), ("Ann", "0", "1", "y"), ("Ann", "1", "1", "x"), ("Bob", "0", "", "x")],
]
HEADER = ("who", "v", "r", "c")


def neighbours(bench: Bench, program: str) -> list[tuple[list[tuple[str, float, float]], float, list[Draw]]]:
    (bench.folder / "u.csv").write_text("c,w\nx,1\nx,5\nx,5\ny,9\n")
    found = []
    for other in OTHERS:
        bench.table([*other, ("", "2", "2", "x")], HEADER)  # a row of nobody is dropped
        without = bench.run(program)
        for mine in MINE:
            bench.table([*other, *(("Cem", *ROWS[i]) for i in mine)], HEADER)
            there = bench.run(program)
            draws = [d for c in there.charges for d in c.draws]
            found.append((worst_losses(without, there), without.spent, draws))
    return found


def test_all_rows_of_a_person(bench: Bench) -> None:
    tight = set()
    for losses, spent, _ in neighbours(bench, PEOPLE + "epsilon 1000\n" + PURE):
        for title, lost, charged in losses:
            assert lost <= charged * (1 + 1e-9), title
            tight |= {title} if lost > 0.99 * charged else set()
        assert sum(lost for _, lost, _ in losses) <= spent * (1 + 1e-9)
    # a person with one row, of weight 1, uses these up
    assert tight >= {"count, sum, count, sum", "vector", "size", "selection", "sum, max", "sum"}


def test_gaussian_noise_and_gumbel_noise(bench: Bench) -> None:
    for losses, _, _ in neighbours(bench, PEOPLE + "rho 1000\n" + GAUSSIAN):
        for title, lost, charged in losses:
            assert lost <= charged * (1 + 1e-9), title


def test_the_noise_is_that_of_one_row(bench: Bench) -> None:
    """And not of two, but where values are told apart, which a person's two rows may bring two of."""
    scales = {}
    for unit in ("rows", "who up to 2 rows weighted"):
        bench.table([("Ann", "1", "1", "x")], HEADER)
        program = PEOPLE.replace("who up to 2 rows weighted", unit) + "epsilon 1000\n"
        program += "a = {{ select count(*) as n, sum(v) as s, count(distinct v) as d from t with epsilon 3 }}\n"
        events = [e for e in bench.run(program).result.events if e.kind == "measure"]
        scales[unit] = [e.fields["scale"] for e in events]
    assert scales["rows"] == [1.0, 2.0, 1.0]
    assert scales["who up to 2 rows weighted"] == pytest.approx([1.0, 2.0, 2.0], rel=1e-8)


# Weights in the engine ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[LocalDuckDb, Scan, dict[str, int]]:
    rng = np.random.default_rng(3)
    sizes = {f"p{i}": int(n) for i, n in enumerate([1, 2, 3, 5, 7, 40, 1, 4])}
    rows = [f"{who},{rng.integers(0, 4)},{'xy'[rng.integers(2)]}" for who, n in sizes.items() for _ in range(n)]
    path: Path = tmp_path_factory.mktemp("weights") / "t.csv"
    path.write_text("\n".join(["who,v,c", *rng.permutation(rows).tolist(), ",1,x"]) + "\n")
    engine = LocalDuckDb()
    opened = engine.open(str(path), public=False)
    return (
        engine,
        Scan(opened.key, (("who", Categories(tuple(sizes))), ("v", Integer(0, 3)), ("c", Categories(("x", "y"))))),
        sizes,
    )


@pytest.mark.parametrize("most", [1, 3, 6, 100])
def test_everybody_weighs_exactly_one(many: tuple[LocalDuckDb, Scan, dict[str, int]], most: int) -> None:
    engine, scan, sizes = many
    bound = Bound(scan, ("who",), most, weighted=True)
    keys = (Key(Column("who"), tuple(sizes)),)
    weights, rows = engine.group(bound, keys, (Count(weighted=True), Count()))
    assert weights.tolist() == [2**WEIGHT_BITS] * len(sizes)
    assert rows.tolist() == [min(n, most) for n in sizes.values()]


def test_weights_are_as_equal_as_they_can_be_and_go_with_their_rows(
    many: tuple[LocalDuckDb, Scan, dict[str, int]],
) -> None:
    engine, scan, _ = many
    bound = Bound(scan, ("who",), 6, weighted=True)
    by = (Key(Column("v"), range(4)), Key(Column("c"), ("x", "y")))
    weights, rows = engine.group(bound, by, (Count(weighted=True), Count()))
    derived = Derive(Filter(bound, Constant(True)), (("v", Column("v")), ("c", Column("c"))))
    assert engine.group(derived, by, (Count(weighted=True),))[0].tolist() == weights.tolist()
    least, most = 2**WEIGHT_BITS // 6, 2**WEIGHT_BITS
    assert (weights >= least * rows).all()
    assert (weights <= most * rows).all()


@pytest.mark.parametrize("most", [1, 3, 400, 5_000, 40_000, 70_000])
@pytest.mark.parametrize("half", [1.0, 0.7, math.ldexp(3000 * 2**16 + 45_535, -29)])
def test_a_mean_moves_by_what_it_says_also_where_each_row_is_in_a_group_of_its_own(most: int, half: float) -> None:
    """Each of a person's rows is rounded by itself, and none adds more to its sum than to its count."""
    unit = Unit(("id",), most, weighted=True)
    source = Source.declared("t", Measure("pure", Amount("epsilon", 10**12)), unit, None, None)
    columns = (("x", Real(-1.0, 1.0)),)
    table = Table((Exposure.of(source, unit),), Bound(Scan("d", columns), ("id",), most, True), columns)
    pair = Pair.of(fixed_sum(Column("x"), half, table), Count(Column("x"), weighted=True))
    whole = 2**WEIGHT_BITS
    for rows in {1, most // 2 + 1, most}:
        places = np.arange(rows + 1, dtype=np.int64) * whole // rows
        counts = np.diff(places)
        sums = fixed_width(np.rint(counts * half * math.ldexp(1.0, pair.total.bits - WEIGHT_BITS)))
        moved = sum(np.abs(np.array(pair.mixed(sums, counts, table))).sum(axis=0).tolist())
        assert counts.sum() == whole and moved <= sensitivity_of(pair, table)


def test_public_rows_that_are_joined_carry_the_weight(
    many: tuple[LocalDuckDb, Scan, dict[str, int]], tmp_path: Path
) -> None:
    engine, scan, _ = many
    (tmp_path / "u.csv").write_text("c,w\nx,1\nx,2\ny,3\n")
    opened = engine.open(str(tmp_path / "u.csv"), public=True)
    public = Scan(opened.key, (("c", Categories(("x", "y"))), ("w", Integer(0, 9))))
    bound = Bound(scan, ("who",), 6, weighted=True)
    keys = (Key(Column("c"), ("x", "y")),)
    (alone,) = engine.group(bound, keys, (Count(weighted=True),))
    for joined in (Join(bound, public, ("c",)), Join(public, bound, ("c",))):
        (weights,) = engine.group(joined, keys, (Count(weighted=True),))
        assert weights.tolist() == [2 * alone[0], alone[1]]


def test_rows_without_weights_have_none(many: tuple[LocalDuckDb, Scan, dict[str, int]]) -> None:
    engine, scan, _ = many
    with pytest.raises(Exception, match="have no weights"):
        engine.group(Bound(scan, ("who",), 2), (), (Count(weighted=True),))


def test_a_strategy_of_weights_is_exact_beyond_64_bits() -> None:
    """Cells as large as they get: the answers are those of Python's integers."""
    blocks = [
        {"kind": "boxes", "lows": [[0], [1]], "highs": [[2], [3]], "weight": 0.7},
        {"kind": "matrix", "labels": [0, 1, 1, -1], "matrix": [[1, 0.5], [2, -1.3]]},
        {"kind": "groups", "labels": [0, 0, 1, 1], "size": 2, "weight": [0.1, 3]},
        {"kind": "signed", "axes": [{"labels": [0, 0, 1, 1], "signs": [1, -1, 1, 1], "size": 2}], "weight": 0.3},
    ]
    strategy = Strategy(blocks, (4,), WEIGHT_BITS)
    for cells in ([5, 0, 2, 70], [2**61, 2**40, 2**50 + 1, 3]):
        x = [min(c, MOST_COUNT << WEIGHT_BITS) for c in cells]
        boxes, matrix, groups, signed = strategy.answers(np.array(cells, dtype=np.int64))
        a, m, g, s = strategy.blocks
        assert boxes.tolist() == [a["weight"] * sum(x[0:3]), a["weight"] * sum(x[1:4])]
        buckets = [x[0], min(x[1] + x[2], MOST_COUNT << WEIGHT_BITS)]
        assert matrix.tolist() == [sum(int(w) * b for w, b in zip(row, buckets, strict=True)) for row in m["matrix"]]
        assert groups.tolist() == [int(w) * b for w, b in zip(g["weight"], (x[0] + x[1], x[2] + x[3]), strict=True)]
        assert signed.tolist() == [s["weight"] * (x[0] - x[1]), s["weight"] * (x[2] + x[3])]


# What has no argument is refused, before anything is charged -------------------------------------------

SOURCE = PEOPLE + "epsilon 10\n"
REFUSED = {
    "a walk of the partition": "x = least_cost_partition(histogram(t, x = v)) with epsilon 1",
    "cells above a number": "x = {{ select count(values) from histogram(t, x = v) where values > 0 with epsilon 1 }}",
    "cells that are not empty": "x = laplace(nonzero(histogram(t, x = v))) with epsilon 1",
    "cells not empty, among others": "x = noisy_max([nonzero(histogram(t, x = v)), size(t)]) with epsilon 1",
    "rows as vectors": "x = laplace(size(vectors(t, v))) with epsilon 1",
    "a self-join": "x = {{ select count(*) from t join t on c up to 1 with epsilon 1 }}",
    "a bounded join with public rows": "x = {{ select count(*) from t join u on c up to 1 with epsilon 1 }}",
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_refused_and_not_charged(what: str, attempt: Callable[..., Result]) -> None:
    result = attempt(SOURCE + 'u = table("u.csv")\n' + REFUSED[what] + "\n", t="who,v,r,c\nAnn,1,1,x\n", u="c,w\nx,1\n")
    assert [d.kind for d in result.diagnostics] == ["TypeError"]
    assert result.budget["t"]["epsilon"]["spent"] == "0"


def test_options_that_add_up_run_on_weights(attempt: Callable[..., Result]) -> None:
    program = (
        SOURCE.replace("epsilon 10", "epsilon 400") + "use histograms\nh = histogram(t, x = v)\nq = prefixes(h)\n"
        "release a = flat(h, q) with epsilon 100\nrelease b = mwem(h, q, 2) with epsilon 100\n"
        "release c = hb(h, q) with epsilon 100\nrelease d = hdmm(h, q) with epsilon 100\n"
    )
    rows = "".join(f"p{i},{i % 3},1,x\np{i},{i % 2},1,x\n" for i in range(300))
    result = attempt(program, t="who,v,r,c\n" + rows)
    assert result.ok, result.diagnostics
    assert all(abs(list(result.released[name])[-1] - 300) < 60 for name in "abcd")
