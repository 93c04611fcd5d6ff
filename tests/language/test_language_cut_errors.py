"""Errors that are of the noise alone say so: beside answers of rows that a bound left out and of clamped values."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from jostle.formulas import Noised, cut_text, cuts_of, error_text, show_number
from jostle.noise_laws import Laplace
from jostle.run.externals import _vector
from jostle.source import Source
from jostle.tools.session import Session
from jostle.tools.show import released
from jostle.trace.text import measured

BEYOND = "rows of a person beyond `up to {}`"
DECLARED = (
    'private t = table("t.csv") described by {kind: {"a", "b"}, x: 0.0..10.0} protecting id%s budget epsilon 1e6\n'
)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    lines = [f"{i // 5},{'ab'[i % 2]},{i % 11}" for i in range(200)]
    (tmp_path / "t.csv").write_text("\n".join(["id,kind,x", *lines]) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cut_of(query: str, bound: str = "") -> set[str]:
    """What is cut from the one number `y` of a program."""
    session = Session()
    result = session.attempt(Source("t.jst", f"{DECLARED % bound}y = {query}\nrelease y\n"))
    assert result.ok, result.diagnostics
    margin = result.margins()["y"]
    return set((margin[0]["v"] if isinstance(margin, list) else margin).get("cut", ()))


SELECT = "{{ select %s as v from %s with epsilon 1000 }}"


@pytest.mark.parametrize("aggregate", ["count(*)", "sum(x)", "avg(x)", "var(x)", "stddev(x)", "median(x)", "mode(x)"])
@pytest.mark.parametrize(
    ("bound", "rest", "cut"),
    [
        ("", "t up to 3 rows", {BEYOND.format("3 rows")}),
        ("", "t groupby kind up to 1 group, 2 rows each", {BEYOND.format("1 group, 2 rows each")}),
        (" up to 3 rows", "t", {BEYOND.format("3 rows")}),
        (" up to 1 row", "where(t, kind == \"a\")", {BEYOND.format("1 row")}),
        (" up to 3 rows", "t up to 3 rows", {BEYOND.format("3 rows")}),
        (", at most 5 rows", "t", set()),
        (", at most 5 rows", "t up to 5 rows", set()),
        (", at most 5 rows", "t up to 2 rows", {BEYOND.format("2 rows")}),
    ],
)  # fmt: skip
def test_rows_that_a_bound_leaves_out_mark_every_aggregate(
    file: Path, aggregate: str, bound: str, rest: str, cut: set[str]
) -> None:
    assert cut_of(SELECT % (aggregate, rest), bound) == cut


@pytest.mark.parametrize(
    ("query", "cut"),
    [
        ("avg(clamp(x, 0, 3))", {"values clamped to 0..3"}),
        ("sum(2 * clamp(x, 1, 3) + 1)", {"values clamped to 1..3"}),
        ("median(clamp(x, 0, 3))", {"values clamped to 0..3"}),
        ("covariance(x, clamp(x, 0, 3))", {"values clamped to 0..3"}),
        ("count(clamp(x, 0, 3))", set()),
        ("avg(clamp(x, 0, 10))", set()),  # the description keeps them there
        ("avg(clamp(x, -5, 20))", set()),
        ("avg(x)", set()),
        ("avg(1 if clamp(x, 0, 3) > 1 else 0)", set()),  # a test of values, and no value
    ],
)
def test_values_that_a_program_clamps_mark_what_is_calculated_of_them(file: Path, query: str, cut: set[str]) -> None:
    assert cut_of(SELECT % (query, "t"), ", at most 5 rows") == cut


@pytest.mark.parametrize(
    ("query", "cut"),
    [
        (SELECT % ("sum(d)", "derive(t, d = clamp(x, 0, 3))"), {"values clamped to 0..3"}),
        (SELECT % ("avg(s)", "(select avg(clamp(x, 0, 3)) as s from t per person)"), {"values clamped to 0..3"}),
        (SELECT % ("avg(s)", "(select max(x) as s from t per person)"), set()),
        (SELECT % ("avg(s)", "(select avg(x) as s from t per person)"), set()),
        (SELECT % ("count(*)", "(select sum(x) as s from t per person) groupby clamp(s, 0, 3)"), set()),
        (SELECT % ("count(distinct person)", "t groupby kind"), set()),
        (SELECT % ("count(distinct person)", "t groupby kind up to 1 group"), {BEYOND.format("1 group")}),
        (SELECT % ("count(distinct person)", "t groupby kind up to 2 groups"), set()),  # there are two
    ],
)  # fmt: skip
def test_cuts_are_followed_through_derived_columns_and_stages(file: Path, query: str, cut: set[str]) -> None:
    assert cut_of(query, ", at most 5 rows") == cut


def test_what_is_calculated_is_marked_as_its_parts_are(file: Path) -> None:
    program = """g = {{ select sum(x) as s, count(*) as n from t groupby kind up to 3 rows with epsilon 1000 }}
m = g.s / g.n
total = sum(m) + 1
h = laplace(histogram(u, kind), epsilon = 100)
both = h / sum(h)
wide = error(g.s[0])
ends = band(g.s[0])
release g; release m; release total; release h; release both; release wide; release ends
""".replace("; ", "\n")
    second = DECLARED.replace("t = table", "u = table").replace("t.csv", "u.csv") % " up to 3 rows"
    (file / "u.csv").write_text((file / "t.csv").read_text() + "9,b,1\n")
    result = Session().attempt(Source("t.jst", DECLARED % "" + second + program))
    assert result.ok, result.diagnostics
    margins, cut = result.margins(), [BEYOND.format("3 rows")]
    assert all(row[name]["cut"] == cut for row in margins["g"] for name in ("s", "n"))
    assert [one["cut"] for name in ("m", "h", "both") for one in margins[name]] == [cut] * 6
    assert [margins[name]["cut"] for name in ("total", "wide")] == [cut] * 2
    assert {margins["ends"][name]["cut"][0] for name in ("low", "high")} == set(cut)
    assert list(result.released["g"]["s_cut"]) == cut * 2
    json.dumps(margins)


@pytest.mark.parametrize(
    ("query", "cut"),
    [
        ("laplace(size(t), epsilon = 1000)", {BEYOND.format("3 rows")}),
        ("laplace(largest_cell(histogram(t, kind)), epsilon = 1000)", {BEYOND.format("3 rows")}),
        ("laplace(size(vectors(t, x)), epsilon = 1000)", {BEYOND.format("3 rows")}),
        ("laplace(histogram(weighted(t), kind), epsilon = 1000)[0]", {BEYOND.format("3 rows")}),
        ("laplace(size(histogram(joined(weighted(t), weighted(pick(t, x)), [\"x\"]), kind)), epsilon = 1000)",
         {BEYOND.format("3 rows")}),
        ("laplace(sum_of(t, clamp(x, 0, 3)), epsilon = 1000)", {BEYOND.format("3 rows"), "values clamped to 0..3"}),
        ("above(t, above_threshold(t, 5, tells = \"number\", epsilon = 1000))", {BEYOND.format("3 rows")}),
        ("refine(refinable(t)) with epsilon 1000", {BEYOND.format("3 rows")}),
    ],
)  # fmt: skip
def test_scores_and_cells_of_weighted_records_are_marked(file: Path, query: str, cut: set[str]) -> None:
    assert cut_of(query, " up to 3 rows") == cut
    assert cut_of(query, ", at most 5 rows") == cut - {BEYOND.format("3 rows")}


@pytest.mark.parametrize("tables", ["t join u on person", "u join t on person", "union(pick(t, x), pick(u, x))"])
def test_an_owner_states_of_one_table_alone_that_nobody_has_more_rows(file: Path, tables: str) -> None:
    linked = 'private u = table("u.csv") described by {x: 0.0..10.0} protecting t.id on id up to 2 rows\n'
    (file / "u.csv").write_text((file / "t.csv").read_text() + "9,b,1\n")
    program = f"n = {{{{ select count(*) from {tables} with epsilon 1000 }}}}\nrelease n\n"
    result = Session().attempt(Source("t.jst", DECLARED % ", at most 5 rows" + linked + program))
    assert result.ok, result.diagnostics
    assert BEYOND.format("2 rows") in result.margins()["n"]["cut"]


def test_a_list_of_marked_numbers_is_an_array_that_is_marked() -> None:
    numbers = [Noised(3.0, Laplace(1.0)).without([cut]) for cut in ("matches beyond `up to 2`", "a", "a")]
    assert cuts_of(_vector([*numbers])) == ("matches beyond `up to 2`", "a")


def test_a_joint_block_and_an_answer_given_again_are_marked(file: Path) -> None:
    block = "jointly with epsilon 1000:\n    a = {{ select sum(x) as v, count(*) as n from t }}\nrelease a\n"
    result = Session().attempt(Source("t.jst", DECLARED % " up to 3 rows" + block))
    assert result.ok, result.diagnostics
    assert {name: one["cut"] for name, one in result.margins()["a"].items()} == {
        name: [BEYOND.format("3 rows")] for name in ("v", "n")
    }


def test_the_mark_is_shown_wherever_the_error_is(file: Path) -> None:
    session = Session()
    program = DECLARED % " up to 3 rows" + (
        "g = {{ select count(*) as n from t groupby kind with epsilon 1000 }}\n"
        "print(g)\nprint(error(g.n[0]))\nrelease g\n"
    )
    result = session.attempt(Source("t.jst", program))
    note = "*: ± covers the noise only, not rows of a person beyond `up to 3 rows`"
    table, error = result.output
    assert table.split("\n")[-1] == note and "  0*" in table and error == "0 (noise only)"
    assert "± 0*" in released("g", result.released_json()["g"], 80, result.margins()["g"])
    assert session.show(result.values["g"].columns["n"][0]).endswith(f" ± 0*\n{note}")
    (query,) = [event for event in result.events if event.kind == "query"]
    assert query.fields["cut"] == {"count": [BEYOND.format("3 rows")]}


def test_a_mark_can_be_given_to_a_number(file: Path) -> None:
    number = Noised(3.0, Laplace(1.0)).without(["8 % of the cells of `x`"]).without(["8 % of the cells of `x`"])
    assert number.cut == ("8 % of the cells of `x`",) and number.law == Laplace(1.0)
    assert cut_text(number.cut) == ["*: ± covers the noise only, not 8 % of the cells of `x`"]


@pytest.mark.parametrize("digits", range(-12, 15, 3))
@pytest.mark.parametrize("factor", [1.0, 1.0199, 5.2201, 9.949, 9.951, 9.9999, 1.05, 7.7, 99.4 / 10, 2 / 3])
def test_an_error_is_rounded_up(digits: int, factor: float) -> None:
    error = factor * 10.0**digits
    shown = float(error_text(1e99, error))
    assert error * (1 - 1e-9) <= shown <= error * 1.1 * (1 + 1e-9)


@pytest.mark.parametrize(("value", "error", "shown"), [
    (188671197.69, 90.0, "188671198"), (-35704.489129, 0.00057, "-35704.48913"),
    (0.001234567891, 2e-9, "0.0012345679"),
    (2.5e12 + 0.7, 3.0, "2500000000000.7"), (12.3456789, 5.0, "12.3457"), (12.3456789, None, "12.3457"),
    (7.0, 1e-30, "7"), (math.pi, 1e-30, "3.14159265358979"), (math.inf, 1.0, "inf"),
    (1.0, math.inf, "1"), (math.nan, 1.0, "nan"),
])  # fmt: skip
def test_a_number_has_the_digits_that_its_error_asks_for(value: float, error: float | None, shown: str) -> None:
    assert show_number(value, error) == shown
    if error is not None and math.isfinite(error) and math.isfinite(value):
        for text in (shown, measured(value, {"error": error})):
            assert abs(float(text) - value) <= max(error / 10, 1e-14 * abs(value))


@pytest.mark.parametrize("counted", ["count(*) as n, ", "count(x) as n, ", "avg(x) as n, ", "stddev(x) as n, ", ""])
def test_what_noise_hides_is_marked_in_every_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: str
) -> None:
    lines = [f"{'a' if i < 195 else 'b'},{i % 11},2020-03-0{1 + i % 9},{'uv'[i % 2]}" for i in range(196)]
    (tmp_path / "t.csv").write_text("\n".join(["kind,x,day,c", *lines]) + "\n")
    monkeypatch.chdir(tmp_path)
    session = Session(simulate=3)  # whose noise is seeded
    session.bind("t", str(tmp_path / "t.csv"))
    program = f"""private t = table("t.csv") protecting rows budget epsilon 100
    described by {{kind: {{"a", "b"}}, x: 0..10, day: 2020-03-01..2020-03-09, c: {{"u", "v"}}}}
g = {{{{ select {counted}median(x) as m, min(x) as l, mode(x) as o, mode(c) as c, max(day) as d, sum(x) as s from t
    groupby kind with epsilon 6 }}}}
release g
twice = 2 * g.s
release twice
print(g)
"""
    result = session.attempt(Source("t.jst", program))
    assert result.ok, result.diagnostics
    many, few = result.margins()["g"]
    columns = list(result.values["g"].columns)[1:]
    if "x" in counted:  # counts that are of values of x say nothing of other columns
        columns = [name for name in columns if name not in ("c", "d")]
    expected = {name for name in columns if counted}
    assert not any((margin or {}).get("hidden") for margin in many.values())
    assert {name for name, margin in few.items() if (margin or {}).get("hidden")} >= expected
    last = result.output[0].split("\n")[2]
    assert last.count("?") >= len(expected)
    if counted:
        assert result.margins()["twice"][1]["hidden"] and not result.margins()["twice"][0].get("hidden")


def test_a_clamp_between_columns_is_named(tmp_path: Path) -> None:
    """Its ends are no constants: what is cut is named all the same, and nothing fails after the charge."""
    (tmp_path / "t.csv").write_text("a,b,c\n1,2,3\n")
    program = """
private t = table("t.csv") described by {a: 0..9, b: 0..9, c: 0..99} protecting rows budget epsilon 1
n = {{ select sum(clamp(clamp(c, a, b), 0, 9)) as s from t with epsilon 1 }}
"""
    result = Session(cwd=tmp_path).attempt(Source("p.jst", program))
    assert result.ok, result.diagnostics


@pytest.mark.parametrize(("spread", "by"), [(300, "day"), (3, "day"), (300, 'trunc(day, "month")'), (300, "time(day)")])
def test_errors_of_dates_are_days_that_hold_the_right_one(spread: int, by: str) -> None:
    """95 % of them; more than 18 of 60 are wrong once in a hundred million."""
    rng = np.random.default_rng(5)
    days = np.clip(rng.normal(4000, spread, 2000).round(), 0, 8000).astype(int)
    column = pd.Timestamp("2004-01-01") + pd.to_timedelta(days, unit="D")
    session = Session(look=False)
    session.bind("t", pd.DataFrame({"day": column.strftime("%Y-%m-%d")}))
    result = session.attempt(Source("d.jst", f"""private t = bound("t")
    described by {{day: 2000-01-01..2026-12-31}} protecting rows budget epsilon 200
query = [{{{{ select median({by}) as m, avg({by}) as a, max({by}) as l from t with epsilon 0.2 }}}} for i in 1..60]
release asked = query
release first = error(query[0].m)
"""))  # fmt: skip
    assert result.ok, result.diagnostics
    if "month" in by:
        column = column.to_period("M").to_timestamp()
    exact = {"m": column.sort_values()[1000], "a": column.mean()}
    for name, value in exact.items():
        margins = [one[name] for one in result.margins()["asked"]]
        wide = [pd.Timedelta(**{unit: one[unit]}) for one in margins for unit in one if unit in ("days", "seconds")]
        off = [abs(pd.Timestamp(one["value"]) - value) for one in margins]
        assert len(wide) == 60 and sum(o > w for o, w in zip(off, wide, strict=True)) <= 18
        assert sorted(wide)[30] < pd.Timedelta(days=1500)  # of 27 years
    ranks = [one["l"]["ranks"] for one in result.margins()["asked"]]
    (unit,) = {"days", "seconds"} & {*result.margins()["asked"][0]["m"]}
    assert min(ranks) > 1 and result["first"] == result.margins()["asked"][0]["m"][unit]
