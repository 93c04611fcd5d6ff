"""`jostle plan`: errors that are known before anything is spent, and that are what a run then has."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

from jostle.choice.plan import ChoicePlan, Curve, amounts_around
from jostle.kernels import accuracy
from jostle.kernels.histograms import grids
from jostle.kernels.workloads import boxes as workloads
from jostle.noise_laws import Laplace
from jostle.tools.entry import main

DIRECT = """\
use histograms
private people = table("people.csv") described by {age: 0..31} protecting rows budget epsilon 4
n = {{ select count(*) from people with epsilon 0.5 }}
ages = histogram(people, x = age)
answers = hb(ages, prefixes(ages)) with epsilon 0.25
cells = flat_cells(ages, identity(ages)) with epsilon 0.5
other = dawa(ages, prefixes(ages)) with epsilon 1
print("never shown")
"""

CHOICE = """\
use histograms
private people = table("people.csv") described by {age: 0..15} protecting rows budget epsilon 4
Flat = Option (data) { return flat(data.database, data.queries) }
Uniform = Option (data) { return uniform(data.database, data.queries) }
close = Utility (data, answers) { return -rmse(answers, exact(data.queries, data.database)) }
sets = [counts([500 if i == j else 20 for i in 0..15]) for j in 0..2]
pick_one = MkChoiceMaker among {Flat, Uniform} informed by {}
    trained on [{database: c, queries: identity(c)} for c in sets] wrt close
ages = histogram(people, x = age)
answers = pick_one({database: ages, queries: identity(ages)}) with epsilon 1
"""


def planned(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    (tmp_path / "p.jst").write_text(text)
    assert main(["plan", str(tmp_path / "p.jst"), *words]) == 0
    return capsys.readouterr().out


def test_a_joint_block_shows_its_strategy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is measured, and how large errors are beside those with equal parts."""
    body = "".join(f"    n{i} = {{{{ select count(*) as n from people groupby age / {i} }}}}\n" for i in (1, 4, 8))
    text = f"""{DIRECT.splitlines()[1]}\njointly with epsilon 1:\n{body}"""
    (one,) = json.loads(planned(text, tmp_path, capsys, "--format", "json"))["joint"]
    assert one["apart"] > 1 and one["selects"] == 3 and one["of_alone"]["mean"] <= one["of_alone"]["largest"] <= 1
    assert sum(block["share"] for block in one["strategy"]) == pytest.approx(1)
    out = planned(text, tmp_path, capsys)
    assert "3 selects by one measurement" in out and "one by one they would take about ε" in out
    assert "share  measured  by" in out and "rows      age / 1" in out
    assert "by one measurement, none negative, errors" in planned(
        text.replace("jointly", "jointly nonnegative"), tmp_path, capsys
    )


def test_what_is_measured_directly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is no file `people.csv`: nothing private is opened."""
    out = planned(DIRECT, tmp_path, capsys, "--error", "10", "--epsilon", "2", "--format", "json")
    made = {one["name"]: one for one in json.loads(out)["measured"]}
    assert set(made) == {"count", "answers", "cells"}  # the error of `dawa` depends on the data
    assert made["count"]["error"] == Laplace(2.0, step=1.0).half_width() == 6
    least = made["count"]["needs"]
    assert [Laplace(1 / (least * f), step=1.0).half_width() for f in (1, 0.99999)] == [10, 11]
    assert made["count"]["error_at"] == Laplace(0.5, step=1.0).half_width() == 1
    unit = accuracy.root_mean_square(grids.hb_strategy((32,)), workloads.prefixes(32), math.sqrt(2))
    assert made["answers"]["error"] == pytest.approx(unit / 0.25, rel=1e-6)
    assert made["answers"]["needs"] == pytest.approx(unit / 10, rel=1e-6)
    assert made["cells"]["error"] == pytest.approx(math.sqrt(2) / 0.5)
    text = planned(DIRECT, tmp_path, capsys, "--error", "10", "--bounds")
    assert text.endswith("no described range decides the error of a number on a line of this program\n")
    assert "for error 10" in text and "ε 0.284" in text and "never shown" not in text


OF_TWO = brentq(lambda t: (1 + t / 2) * math.exp(-t) - 0.05, 1, 9)  # a sum of two Laplace noises is beyond with 5 %
MEANS = """\
private people = table("people.csv") described by {age: 0..31, income: 0..1000} protecting rows budget epsilon 4
r = {{ select avg(income) as mean, median(age) as middle, count(*) as n from people with epsilon 1.5 via selection }}
g = {{ select min(age) as least from people groupby age / 16 with epsilon 1 }}
"""


def test_means_and_what_is_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A mean's error goes with the rows: its sum is half the difference of two numbers that a row moves by 1,000 in
    all."""
    out = planned(MEANS, tmp_path, capsys, "--error", "10", "--format", "json")
    mean, count, middle, least = json.loads(out)["measured"]
    assert mean["error"] == pytest.approx(OF_TWO / 2 * 1000 / 0.5, rel=1e-6) and mean["of"] == "rows"
    assert mean["needs_rows"] == math.ceil(mean["error"] / 10) and mean["amount"] == pytest.approx(0.5)
    assert middle["error"] == pytest.approx(math.log(32 / 0.05) / 0.5) and middle["of"] == "ranks"
    assert "of" not in count and (least["name"], least["of"]) == ("min", "ranks") and "needs" not in least
    text = planned(MEANS, tmp_path, capsys, "--error", "10")
    assert " / rows" in text and "412 rows" in text and "ranks: of a number that is chosen" in text


RANGES = """\
private people = table("people.csv") described by {id: text, age: 16..79, hours: -10..63, city: {"a", "b"}}
    protecting id up to 3 rows budget epsilon 10
n = {{ select sum(hours) as hours, avg(age) as age from people with epsilon 1 }}
g = {{ select avg(age) as age, avg(hours) as hours, count(*) as n from people groupby city with epsilon 1.5 }}
v = {{ select var(hours) as h, var(age) as a, stddev(age) as s from people with epsilon 1 }}
"""


def test_ranges_that_decide_errors_and_what_buys_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What half a range is said to give is what a program with that range has."""

    def ranges(text: str) -> dict[tuple[str, int], dict[str, object]]:
        made = json.loads(planned(text, tmp_path, capsys, "--format", "json"))["ranges"]
        return {(one["answer"], one["line"]): one for one in made}

    whole = ranges(RANGES)
    assert list(whole) == [("sum(hours)", 3), ("avg(age)", 3), ("avg(age)", 4), ("avg(hours)", 4),
                           ("var(hours)", 5), ("var(age)", 5), ("stddev(age)", 5)]  # fmt: skip
    assert whole["avg(hours)", 4]["half"] == [-5, 31.5] and whole["avg(age)", 3]["half"] == [16, 47.5]
    half = ranges(RANGES.replace("16..79", "16.0..47.5").replace("-10..63", "-5.0..31.5"))
    parts = {"var": 4, "stddev": 4}  # half the range: of a square a quarter of the error
    for at, one in whole.items():
        assert half[at]["error"] == pytest.approx(one["error"] / parts.get(at[0].split("(")[0], 2), rel=1e-3), at
    low, high = whole["var(hours)", 5]["half"]
    assert (high - low) ** 2 == pytest.approx(73**2 / 2) and whole["var(age)", 5]["half"][0] == 16
    made = json.loads(planned(RANGES, tmp_path, capsys, "--format", "json"))["measured"]
    errors = {(one["name"], one["line"]): one["error"] for one in made}
    assert all(errors[at] == whole[at]["error"] for at in (("avg(age)", 4), ("avg(hours)", 4), ("var(age)", 5)))
    functions = """use statistics
d = describe_numeric(people, "hours") with epsilon 1
c = correlation(people, "hours", "age") with epsilon 1
m = {{ select median(age) from people with epsilon 1 }}
"""
    out = planned(RANGES + functions, tmp_path, capsys, "--bounds")
    assert "line 7, describe_numeric: hours -10..63\nline 8, correlation: age 16..79, hours -10..63\nquantiles: " in out
    out = planned(RANGES, tmp_path, capsys, "--bounds", "--rows", "1000")
    (look,) = (line for line in out.splitlines() if "bounds(hours)" in line)
    assert "from people with epsilon 0.1 }}" in look and look.endswith("420 rows             3    0.9 of it")
    assert "seen = rows_to_read(people, 0.05, 3) with epsilon 0.1" in out
    bought = "".join(line.split("  ")[0] + "\n" for line in out.splitlines() if line.startswith(("b = ", "seen = ")))
    assert planned(RANGES + "use sequences\n" + bought, tmp_path, capsys)  # these lines are of the language


CALCULATED = """\
private people = table("people.csv") described by {age: 0..31, income: 0..1000, sex: {"f", "m"}}
    protecting rows budget epsilon 40
r = {{ select var(age) as v, stddev(age) as s, covariance(age, income) as both, count(*) as n from people
       with epsilon 4 }}
with epsilon 1:
    women = {{ select count(*) from people where sex == "f" with epsilon 0.2 }}
    men = {{ select count(*) from people where sex == "m" with epsilon 0.2 }}
share = women / (women + men)
away = women - men
middle = {{ select median(income) from people with epsilon 1 via interval }}
g = {{ select avg(income) as income from people groupby sex with epsilon 1 }}
gap = g.income[0] - g.income[1]
plain = {{ select median(income) from people with epsilon 1 via selection }} + 1
"""


def test_what_is_calculated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sums and differences have one error for all data; of all else it is that of so many simulated rows."""
    made = json.loads(planned(CALCULATED, tmp_path, capsys, "--format", "json"))
    over = {d["name"]: (d["error"] / math.log(20), d["of"]) for d in made["measured"] if "of" in d}
    one = pytest.approx
    assert over["var"] == (one(1.5 * 15.5**2), "rows") and over["stddev"] == (one(0.75 * 15.5**2), "stddev")
    assert over["covariance"] == (one(4 * 15.5 * 500), "rows") and over["avg"] == (
        one(OF_TWO / math.log(20) * 500),
        "rows",
    )
    errors = {d["name"]: d["error"] for d in made["calculated"]}
    assert errors.pop("away") == pytest.approx(1.96 * 10, rel=0.05)  # of two Laplace noises of scale 5
    unsure = ("r.v", "r.s", "r.both", "share", "middle", "g.income", "gap")  # nothing in ranks is said
    assert errors == dict.fromkeys(unsure)
    made = json.loads(planned(CALCULATED, tmp_path, capsys, "--rows", "40000", "--format", "json"))
    told = {d["name"]: d for d in made["calculated"]}
    assert made["data"] == "40,000 simulated rows" and told["away"]["value"] is None and len(told) == 8
    assert told["r.v"]["error"] == pytest.approx(over["var"][0] * math.log(20) / 40_000, rel=0.1)
    assert told["r.s"]["error"] == pytest.approx(told["r.v"]["error"] / 2 / told["r.s"]["value"], rel=0.1)
    assert told["share"]["error"] == pytest.approx(1.96 * 10 / 2 / 40_000, rel=0.1)
    text = planned(CALCULATED, tmp_path, capsys, "--rows", "40000")
    assert "40,000 simulated rows" in text and "by the data" not in text
    assert "by the data" in planned(CALCULATED, tmp_path, capsys)


def test_a_choice_and_its_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "drawn"
    out = planned(CHOICE, tmp_path, capsys, "--error", "8", "--format", "json", "--pictures", str(folder))
    (choice,) = json.loads(out)["choices"]
    assert choice["amounts"] == [0.1, 0.316228, 1, 3.16228, 10] and choice["asked"] == 1
    flat, uniform, chosen = choice["options"]
    assert [o["name"] for o in choice["options"]] == ["Flat", "Uniform", "the choice"]
    np.testing.assert_allclose(flat["exact"], [math.sqrt(2) / a for a in choice["amounts"]], rtol=1e-6)
    assert uniform["exact"] is None and min(uniform["errors"]) > 100
    # 96 cells a point, in two runs; and flat's counts are made nowhere negative, which 20 rows hardly ever are.
    np.testing.assert_allclose(flat["errors"][:3], flat["exact"][:3], rtol=0.6)
    assert flat["needs"] == pytest.approx(math.sqrt(2) / 8, rel=0.6) and flat["beyond"] is None
    assert (uniform["needs"], uniform["beyond"]) == (None, "above")
    assert chosen["errors"] == pytest.approx(flat["errors"], abs=1e-6)
    assert [p.suffix for p in folder.iterdir()] == [".svg"]
    text = planned(CHOICE, tmp_path, capsys, "--error", "8")
    assert "> 10" in text and "closed form here" in text


ADVISED = """\
use best
private people = table("nowhere.csv") described by {age: 0..99, hours: 0..99} protecting rows budget epsilon 1
ages = histogram(people, x = age)
n = best_histogram(ages, identity(ages)) with epsilon 0.5
points = best_mixture(vectors(people, age, hours), 2) with epsilon 0.5
"""


def test_a_choice_that_ships_is_told_of_and_not_tried(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    free, advice = json.loads(planned(ADVISED, tmp_path, capsys, "--format", "json"))["advised"]
    assert (free["name"], free["chosen"], free["policy"]) == ("best_histogram", "BySignal", "single best")
    assert (advice["name"], advice["amount"], advice["policy"]) == ("best_mixture", 0.5, advice["policy"])
    text = planned(ADVISED, tmp_path, capsys)
    said = f"pays for a look, which says what runs\n{advice['policy']}: {advice['why']}"
    assert f"best_mixture, given ε 0.5: {said}" in text
    assert f"best_histogram, given ε 0.5: runs BySignal\nsingle best: {free['why']}" in text


def test_amounts_between_those_tried() -> None:
    curve = Curve("a", ((8.0,), (4.0,), (2.0,)))
    made = ChoicePlan("c", "epsilon", 1.0, (0.5, 1.0, 2.0), (curve,), "single best")
    assert made.error(curve, 1.0) == pytest.approx(4) and made.error(curve, math.sqrt(2)) == pytest.approx(8**0.5)
    assert made.error(curve, 99) == pytest.approx(2) and made.error(curve, 0.01) == pytest.approx(8)
    assert made.needed(curve.typical(), 8**0.5) == pytest.approx(math.sqrt(2))
    assert made.needed(curve.typical(), 9) == 0 and made.needed(curve.typical(), 1) == math.inf
    assert made.needed([8.0, 4.0, 0.0], 1) == pytest.approx(1.07, abs=0.05)
    assert amounts_around(0.2) == (0.02, 0.0632456, 0.2, 0.632456, 2.0)


def test_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.jst").write_text('private c = bound("c") protecting rows budget epsilon 1\n')
    assert main(["plan", str(tmp_path / "p.jst"), "--error", "-1"]) == 1
    assert "positive" in capsys.readouterr().err
    assert main(["plan", str(tmp_path / "p.jst")]) == 1  # its shape is in what is bound, which is not opened
    assert main(["plan"]) == 2


def test_with_rows_every_error_is_a_number_and_narrower_ranges_come_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = """private p = table("p.csv") described by {age: 0..99, city: {"a", "b", "c", "d"}, pay: 0..200000}
    protecting rows budget epsilon 9
by = {{ select avg(pay) from p groupby city with epsilon 0.1 }}
print({{ select median(age), avg(age) from p with epsilon 0.2 }})
"""
    one, other = (
        json.loads(planned(program, tmp_path, capsys, "--rows", rows, "--error", "300", "--format", "json"))["measured"]
        for rows in ("10000", "40000")
    )
    mean, wider = (next(d for d in some if d["name"] == "avg" and d["line"] == 3) for some in (one, other))
    assert mean["on_rows"] == pytest.approx(mean["error"] / 2500) and wider["on_rows"] == mean["on_rows"] / 4
    text = planned(program, tmp_path, capsys, "--rows", "10000", "--error", "300")
    gain = mean["on_rows"] / 300
    assert f"this error at the same price: a factor of {gain:.2g}" in text and "/ rows" not in text
    assert f"ε {0.1 * gain:.3g}"[:6] in text and " % of the rows" in text
    assert "the same price" not in planned(program, tmp_path, capsys, "--rows", "10000000", "--error", "300")
    assert "half the range has half the error" in planned(program, tmp_path, capsys, "--rows", "100")
