"""Precision, rounding, overflow and order.

Mironov (2012) read exact values off the low-order bits of textbook Laplace noise; Haney et al. (2022) off grids that
follow the data; Casacuberta et al. (2022) off sums that overflow, round or depend on the order of rows. Here what is
summed are integers on a grid that public bounds fix, and what is released lies on that grid.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from arena import Arena, lost, table

from jostle.integers import fixed_width
from jostle.language.moments import DAY, LAST_DAY, LAST_TIME, SPANS
from jostle.language.patterns import starts, truncated
from jostle.privacy.kernel.handles import Cube, Summed
from jostle.privacy.measurements.aggregates.quantile import Max
from jostle.privacy.measurements.aggregates.sums import Sum
from jostle.privacy.measurements.cubes import CubeRequest, CubeSelect
from jostle.privacy.reading.vault import Reader
from jostle.privacy.scores import cells as scores
from jostle.privacy.scores import values_of
from jostle.source import Source
from jostle.tools.session import Result, Session

Attempt = Callable[..., Result]

T = 'private t = table("t.csv") described by {r: -1.0..1.0, v: 0..1000000, w: real, k: 0..3} protecting rows budget '


def rows(*more: str) -> bytes:
    rng = random.Random(5)
    made = [f"{rng.uniform(-1, 1)!r},{k * 37},{rng.uniform(-1e6, 1e6)!r},{k % 4}" for k in range(50)]
    return table("r", "v", "w", "k", rows=[*made, *more])


GRIDS = {
    # aggregate → the grid that its bounds fix: the step as a power of two
    "count(*)": 0,
    "count(distinct w)": 0,
    "sum(v)": 0,
    "sum(r)": -29,
    "sum(clamp(w, 0, 1e6))": -10,
    "sum(clamp(w, -1e-3, 1e-3))": -39,
    "sum(r / 3)": -31,
    "sum(clamp(w, 0, 1e12))": 10,
}


@pytest.mark.attack("precision and rounding")
@pytest.mark.parametrize("aggregate", GRIDS)
@pytest.mark.parametrize("epsilon", ["0.1", "1 / 3", "1e-6", "1e4"])
def test_every_released_value_is_on_its_public_grid(attempt: Attempt, aggregate: str, epsilon: str) -> None:
    """With real noise, and whatever the rows: the low-order bits are those of the grid."""
    step = Fraction(2) ** GRIDS[aggregate]
    program = (
        f"{T}epsilon 1e6\ng = "
        f"{{{{ select {aggregate} as s from t groupby k with epsilon {epsilon} }}}}\nrelease x = g.s\n"
    )
    for more in ((), ("1e-300,1,5e-324,1", "0.1234567890123456,1,1e308,2", "nan,1,nan,3")):
        result = attempt(program, t=rows(*more).decode())
        assert result.ok, result.diagnostics
        assert [Fraction(v) / step % 1 for v in result.values["x"]] == [0] * 4


@pytest.mark.attack("precision and rounding")
def test_scales_are_functions_of_public_facts(arena: Arena) -> None:
    """And at least what the charge asks for, as fractions: no rounding makes noise too small."""
    program = T + (
        "epsilon 9\nx = {{ select sum(r) as a, sum(v) as b, count(*) as c, sum(clamp(w, -0.1, 0.3)) as d from t "
        "with epsilon 1 / 3 }}"
    )
    arena.write({"t.csv": rows()})
    one = arena.see(program)
    arena.write({"t.csv": rows("1,1000000,1e300,0")})
    other = arena.see(program)
    assert one.text == other.text
    each = Fraction("0.333333333333") / 4
    for (a, b), most in zip(zip(one.draws, other.draws, strict=True), (2**29, 10**6, 1, None), strict=True):
        gap = abs(int(b.values.item()) - int(a.values.item()))
        assert Fraction(gap) / Fraction(a.scale) <= each * (1 + Fraction(1, 2**40))
        if most is not None:
            assert gap <= most <= Fraction(a.scale) * each * (1 + Fraction(1, 2**40))


@pytest.mark.attack("precision and rounding")
def test_the_last_bits_of_a_row_do_not_reach_the_noise(arena: Arena) -> None:
    """Mironov's attack tells 1 from 1 + 2⁻⁵²; on the grid they are one value."""
    seen = []
    for value in (0.5, 0.5 + 2.0**-40, float(np.nextafter(0.5, 1))):
        arena.write({"t.csv": table("r", "v", "w", "k", rows=[f"{value!r},1,1,1"])})
        seen.append(arena.see(T + "epsilon 9\nx = {{ select sum(r) from t with epsilon 1 }}"))
    assert [int(s.draws[0].values.item()) for s in seen] == [2**28] * 3


BOUNDED = {
    "one huge row": ["0,0,1e308,0"],
    "many huge rows": ["1e308,999999999999999999,1e308,0"] * 500,
    "huge rows of both signs": ["1e308,1,1e308,0", "-1e308,1,-1e308,0"] * 50,
    "infinities": ["inf,inf,inf,inf", "-inf,-inf,-inf,-inf"] * 3,
    "not a number": ["nan,nan,nan,nan"] * 3,
    "beyond 2^63": ["0,9223372036854775808,1,1", "0,18446744073709551616,1,1"],
    "subnormals": ["5e-324,0,5e-324,0"] * 5,
    "one row of everything": ["1,1000000,1e300,3"],
}


@pytest.mark.attack("overflow and order of sums")
@pytest.mark.parametrize("name", BOUNDED)
def test_one_row_moves_what_noise_is_given_by_no_more_than_was_charged(arena: Arena, name: str) -> None:
    """The exact values given to noise, with and without the last row, over the scale, against the charge."""
    program = T + (
        "epsilon 90\nx = {{ select sum(r) as a, sum(v) as b, avg(clamp(w, -1e9, 1e9)) as c, var(r) as d, "
        "stddev(v) as e, "
        "sum(clamp(w * w * w, -5, 7)) as f, sum(v * v) as g, sum(clamp(1 / r, 0, 9)) as h from t groupby "
        "k with epsilon 8 }}\n"
        "y = {{ select median(clamp(w, 0, 1e9)) as m, max(v) as n, min(r) as o, mode(k) as p from t with epsilon 4 }}\n"
    )
    arena.write({"t.csv": rows(*BOUNDED[name])})
    one = arena.see(program)
    assert one.result.ok, one.text
    arena.write({"t.csv": rows(*BOUNDED[name][:-1])})
    other = arena.see(program)
    assert one.text == other.text
    assert 0 < lost(one, other) <= 12 * (1 + 1e-9) or name in ("not a number", "infinities")


@pytest.mark.attack("overflow and order of sums")
def test_bounds_that_could_overflow_are_refused_by_the_bounds_alone(attempt: Attempt) -> None:
    for expr in ("clamp(w, 0, 1e300)", "clamp(w, 0, 2 ^ 60)", "v ^ 5", "w", "w - w", "exp(w)", "w / v", "0 * w"):
        for aggregate in ("sum", "avg", "var"):
            program = f"{T}epsilon 9\nx = {{{{ select {aggregate}({expr}) from t with epsilon 1 }}}}"
            result = attempt(program, t="r,v,w,k\n")
            assert [d.kind for d in result.diagnostics][:1] in (["UnboundedSum"], ["ValueError"]), (expr, aggregate)
            assert result.budget == {} or result.budget["t"]["epsilon"]["spent"] == "0"


@pytest.mark.attack("overflow and order of sums")
def test_many_rows_at_the_largest_bound_are_added_exactly(arena: Arena) -> None:
    """100,000 rows at bounds whose sum is beyond 2⁶³ would wrap or round; the exact integer is clamped to 2⁶²."""
    arena.write({"t.csv": table("r", "v", "w", "k", rows=["1,1,1e17,0"] * 100_000)})
    declared = T.replace("w: real", "w: 0..1000000000000000000")
    seen = arena.see(declared + "epsilon 9\nx = {{ select sum(w) from t with epsilon 1 }}")
    assert seen.result.ok, seen.text
    assert [int(d.values.item()) for d in seen.draws] == [2**62]
    seen = arena.see(declared + "epsilon 9\nx = {{ select sum(w / 1e6) from t with epsilon 1 }}")
    (draw,) = seen.draws
    assert Fraction(int(draw.values.item())) % 100_000 == 0


@pytest.mark.attack("overflow and order of sums")
@pytest.mark.parametrize("keys", ["", " groupby k"])
@pytest.mark.parametrize("rows", [4611, 9223])
def test_a_joint_sum_that_leaves_its_bits_moves_by_a_row(arena: Arena, rows: int, keys: str) -> None:
    """A row of 10¹⁵ more leaves 2⁶² or 2⁶³: the exact number fell from 2⁶² to 0 at the second."""
    cell = "clamp(floor(1e15) if w == 1 else floor(1e15 + 0 * k), 0, 1e15)"
    asked = f"jointly with epsilon 0.01:\n    s = {{{{ select sum({cell}) as s from t{keys} }}}}\n"
    seen = []
    for many in (rows, rows + 1):
        arena.write({"t.csv": table("r", "v", "w", "k", rows=["1,1,1,0"] * many)})
        seen.append(arena.see(T + "epsilon 9\n" + asked))
    assert seen[0].result.ok and seen[0].text == seen[1].text
    assert lost(*seen) <= 0.01 * (1 + 1e-9)
    assert [int(draw.values.max()) for each in seen for draw in each.draws] == [min(rows * 10**15, 2**62), 2**62]


@pytest.mark.attack("overflow and order of sums")
def test_counts_at_the_edge_of_what_is_held(arena: Arena) -> None:
    """Cells of 10³⁰⁰ are mended to a bound, so that totals of cubes stay exact."""
    np.save(arena.folder / "c.npy", np.array([1e300, 2.0**31, -5.0, np.inf]))
    seen = arena.see(
        'private c = counts("c.npy") protecting rows budget epsilon 9\n'
        "x = {{ select sum(values) from c with epsilon 1 }}\n"
        "y = laplace(size(c), epsilon = 1)\nz = laplace(l2(c), epsilon = 1)\n"
        "w = laplace(l1_to_uniform(c), epsilon = 1)\n"
    )
    assert seen.result.ok, seen.text
    assert [int(d.values.ravel()[0]) for d in seen.draws[:2]] == [3 * 2**31] * 2


ORDERED = (
    "epsilon 90\nx = {{ select sum(r) as a, avg(clamp(w, -1e6, 1e6)) as b, stddev(clamp(w, -1e6, 1e6)) "
    "as c, sum(clamp(w ^ 3, -1, 1)) as d, "
    "count(distinct r) as e from t groupby k with epsilon 9 }}\n"
    "y = {{ select median(r) as m, quantile(clamp(w, 0, 1), 0.9) as n from t with epsilon 2 }}\n"
    "z = {{ select count(*) from t join t on k up to 3 with epsilon 2 }}\n"
    "h = laplace(histogram(t, x = v / 1000, y = k), epsilon = 1)\n"
)


def given(arena: Arena, program: str, content: bytes) -> list[list[int]]:
    arena.write({"t.csv": content})
    seen = arena.see(program)
    assert seen.result.ok, seen.text
    return [[int(v) for v in np.ravel(d.values)] for d in seen.draws]


@pytest.mark.attack("overflow and order of sums")
def test_the_order_of_rows_does_not_show(arena: Arena) -> None:
    header, *lines = rows(*["1e-17,1,1e300,1", "1,1,-1e300,1", "-1e-17,1,1e-300,1"] * 5).split(b"\n")[:-1]
    expected = given(arena, T + ORDERED, b"\n".join([header, *lines]))
    for seed in range(3):
        mixed = lines[:]
        random.Random(seed).shuffle(mixed)
        assert given(arena, T + ORDERED, b"\n".join([header, *mixed])) == expected


@pytest.mark.attack("overflow and order of sums")
def test_the_number_of_threads_does_not_show(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    from jostle.engine.duckdb import engine

    content = table("r", "v", "w", "k", rows=[f"{k / 7e5!r},{k % 999},{1 / (k + 1)!r},{k % 4}" for k in range(30_000)])
    found = []
    for threads in ("1", "3"):
        monkeypatch.setitem(engine._SETTINGS, "threads", threads)
        found.append(given(arena, T + ORDERED, content))
    assert found[0] == found[1]


@pytest.mark.attack("overflow and order of sums")
def test_which_rows_a_person_keeps_does_not_depend_on_order_or_on_others(arena: Arena) -> None:
    declared = (
        'private t = table("t.csv") described by {who: text, v: 0..99} protecting who up to 2 rows budget epsilon 9\n'
    )
    asked = declared + "x = {{ select sum(v) as s, count(*) as n from t where v < 50 with epsilon 1 }}\n"
    mine = [f"ann,{v}" for v in (3, 17, 42, 60, 88)]
    others = [f"p{k},{k}" for k in range(40)]
    alone = given(arena, asked, table("who", "v", rows=mine))
    empty = given(arena, asked, table("who", "v", rows=others))
    for seed in range(3):
        mixed = [*mine, *others]
        random.Random(seed).shuffle(mixed)
        both = given(arena, asked, table("who", "v", rows=mixed))
        assert [b[0] - e[0] for b, e in zip(both, empty, strict=True)] == [a[0] for a in alone]


@pytest.mark.attack("precision and rounding")
def test_huge_noise_neither_wraps_nor_fails(attempt: Attempt, tmp_path: Path) -> None:
    """A quantum of ε, a sum with wide bounds: noise beyond 2⁶³ saturates, and the data show in no message."""
    wide = 'private t = table("t.csv") described by {w: 0..100000000000000000} protecting rows budget BUDGET\n'
    for budget, amount in (("epsilon 1", "epsilon 1e-12"), ("epsilon 1", "epsilon 1e-9"), ("rho 1", "rho 1e-12")):
        said = set()
        for content in ("w\n", "w\n1e17\n" * 1, "w\n" + "1e17\n" * 400):
            result = attempt(
                wide.replace("BUDGET", budget) + f"release x = {{{{ select sum(w) from t with {amount} }}}}\n",
                t=content,
            )
            said.add((result.ok, tuple((d.kind, d.message) for d in result.diagnostics)))
            assert not result.ok or abs(result.values["x"]) <= 2.0**64
        assert len(said) == 1, said
    assert Session(cwd=tmp_path).attempt(Source("p.jst", "x = 1\n")).ok


class Weights24(Summed, frozen=True):
    cells: tuple[int, ...]
    bits = 24

    def sums(self, answers: object) -> Any:
        return np.array(self.cells, dtype=object)


SUMS = {"size", "largest_marginal", "l2", "l1_to_uniform", "total_variation", "sum", "max", "misfit", "distance"}


@pytest.mark.parametrize("name", sorted(SUMS))
@pytest.mark.parametrize("shape", [(2,), (4,), (2, 2)])
def test_sums_of_weights_at_the_edge_of_64_bits_do_not_wrap(name: str, shape: tuple[int, ...]) -> None:
    """Cells that hold sums of weights may each be 2^62: rows by the list of an `explode`, records beside themselves."""
    size = int(np.prod(shape))
    step = 2**54  # what one unit moves the cells by, in units of 2^-24
    full, less = (2**62,) * size, (2**62, 2**62 - step) + (2**62,) * (size - 2)

    def exact(cells: tuple[int, ...]) -> int:
        reader = Reader(cast("Any", None))
        cube: Any = Cube((), Weights24(cells), ("x", "y")[: len(shape)], shape)
        if name in ("sum", "max"):
            request = CubeRequest(cube, None, (), ((Sum if name == "sum" else Max)(),), None, ())
            (numbers,) = CubeSelect((), "", None, (), request, None).read(reader)
            return int(fixed_width(numbers)[0])
        if name in ("misfit", "distance"):
            boxes = {"kind": "boxes", "lows": [[0] * len(shape)], "highs": [[side - 1 for side in shape]]}
            none = np.zeros(size)
            score: Any = scores.misfit(cube, [boxes], none) if name == "misfit" else scores.distance(cube, none)
        else:
            score = getattr(scores, name)(cube)
        return int(values_of(reader, [score])[0])

    moved = abs(exact(full) - exact(less))
    bits = 10 if name in ("l2", "l1_to_uniform") else 0
    assert moved <= (step << bits) * (2 if name == "total_variation" else 1) + 1


WIDE = 'private t = table("t.csv") described by {i: -2..9223372036854775807, r: -1e16..1e300} protecting rows budget '


@pytest.mark.attack("overflow and order of sums")
@pytest.mark.parametrize("query", [
    "select count(*) from t where i == 5", "select count(*) as n from t where floor(r) == 5 groupby i over [5]",
    "select bounds(r + i) from t", "select count(*) as n from t groupby floor(r) + i as k over [5]",
    "select max(r), min(-r), median(i) from t",
])  # fmt: skip
def test_ends_beyond_what_is_held_fail_nothing_after_the_charge(attempt: Attempt, tmp_path: Path, query: str) -> None:
    """Keys of more than 2^62 values were refused when rows were counted, and of more than 10^308 a fault."""
    (tmp_path / "t.csv").write_text("i,r\n5,5.5\n-1,1e300\n")
    result = attempt(WIDE + f"epsilon 9\nrelease x = {{{{ {query} with epsilon 1 }}}}\n")
    assert result.ok and not result.diagnostics


@pytest.mark.attack("overflow and order of sums")
@pytest.mark.parametrize("unit", ["day", "week", "9 days", "month", "quarter", "year", "hour", "minute"])
def test_units_end_with_the_calendar(unit: str) -> None:
    """A date that was described until 9999-12-31 failed after the charge, where it was compared or a key."""
    for kind, last, step in (("date", LAST_DAY, 1), ("time", LAST_TIME, DAY)):
        if kind == "date" and unit in SPANS:
            continue
        many = 1 if unit == "minute" else 800
        units = starts(kind, last - many * step, last, unit)
        assert units[-1] == truncated(kind, last, unit) and len(set(units)) == len(units) > many // 366


@pytest.mark.attack("overflow and order of sums")
@pytest.mark.parametrize("query", ['groupby trunc(d, "year") as y', "where d == 2024-02-29"])
def test_a_day_without_an_end_is_a_day(attempt: Attempt, tmp_path: Path, query: str) -> None:
    (tmp_path / "t.csv").write_text("d\n2024-02-29\n9999-12-31\n")
    declared = 'private t = table("t.csv") described by {d: 2024-01-01..9999-12-31} protecting rows budget epsilon 1\n'
    result = attempt(declared + f"x = {{{{ select count(*) as n from t {query} with epsilon 1 }}}}\n")
    assert result.ok, result.diagnostics
