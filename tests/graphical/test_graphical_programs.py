"""The programs of graphical models run as they say, at small sizes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.tools.session import Result, Session

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"


def run(name: str, folder: Path, **settings: Any) -> Result:
    return Session(cwd=folder).run(PROGRAMS / name, **settings)


def pictures(result: Result) -> list[str]:
    return [event.name for event in result.trace if event.kind == "picture"]


def test_figure_1(tmp_path: Path) -> None:
    result = run("figure_1_cgm.jst", tmp_path, values=2, variables=4, largest=1000)
    assert [name[:3] for name in pictures(result)] == ["(a)", "(b)", "(c)"]
    assert result.output[-1].startswith("uniform")


@pytest.mark.parametrize("graph", ["chain", "random"])
def test_figure_2(tmp_path: Path, graph: str) -> None:
    result = run("figure_2_cgm.jst", tmp_path, graph=graph, values=2, variables=4, largest=1000)
    assert len(pictures(result)) == 3
    series = next(e for e in result.trace if e.kind == "picture").fields["series"]
    assert list(series) == ["uniform", "fixed_ridge", "cgm", "naive", "without_noise"]


@pytest.mark.slow
def test_figure_3(tmp_path: Path) -> None:
    result = run("figure_3_cgm.jst", tmp_path, values=2, variables=4, rows=2000, psgd_steps=20)
    assert len(pictures(result)) == 2
    # 2,000 people, one row's worth each: at ε = 10 an hour is told better by far than by the uniform chain, whose score
    # is 6·log 1/12 = −14.9; with all there is to know it is −8.05
    told = next(line for line in result.output if line.startswith("epsilon 10")).split()
    assert [told[i] for i in (2, 4, 6)] == ["naive", "cgm", "psgd"]
    assert all(float(told[i]) > -9 for i in (3, 5, 7))


def test_synthetic_data(tmp_path: Path) -> None:
    result = run("synthetic_data.jst", tmp_path, how_many=500, bins=6)
    assert float(result.budget["people"]["epsilon"]["spent"]) <= 1
    frame = result["people_made_up"].frame()
    assert frame.shape == (500, 5)
    assert list(frame["city"].cat.categories) == ["Ames", "Bergen", "Cork", "Delft"]
    assert 0.35 < (frame["city"] == "Ames").mean() < 0.55  # 0.45; noise and rounding come to a few hundredths
    assert frame["age"].between(16, 79).all() and frame["income"].nunique() > 200  # spread over their bins
    assert pictures(result) == ["age", "sex", "city", "hours", "income"]
    assert {line["column"] for line in result["report"]} == set(frame.columns)


@pytest.mark.slow
def test_a_skewed_column_keeps_its_mean(tmp_path: Path) -> None:
    """Incomes have a mean of 30,148: as measured, within 20 deviations. As made up, the mean is that within sampling
    and noise: where the noise of the whole and of its bins disagree, it lies between. Drawn evenly it is 5 errors off.
    """
    result = run("skewed_column.jst", tmp_path)
    measured = result["means"]["income"]
    assert abs(measured["mean"] - 30_148) < 10 * measured["error"]
    made_up = np.array(result["made_up"].column("income"))
    assert abs(made_up.mean() - measured["mean"]) < 6 * made_up.std() / np.sqrt(4000) + 2 * measured["error"]
    assert result.budget["people"]["epsilon"]["spent"] == "0.9" and pictures(result) == ["Incomes made up"]


def test_synthetic_data_from_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A private CSV of one's own in, a synthetic one out, and the report."""
    from jostle.tools.entry import main

    own = (PROGRAMS / "data" / "people.csv").read_text().splitlines()[:1500]
    (tmp_path / "mine.csv").write_text("\n".join(own) + "\n")
    out, report = tmp_path / "synthetic.csv", tmp_path / "report.csv"
    status = main([
        "run", str(PROGRAMS / "synthetic_data.jst"), "--set", f"file={tmp_path / 'mine.csv'}", "--set", "how_many=300",
        "--set", "bins=6", "--save", f"people_made_up={out}", "--save", f"report={report}",
    ])  # fmt: skip
    told = capsys.readouterr()
    assert (status, told.err) == (0, "") and f"saved  {out}  (300 rows, 5 columns)" in told.out
    lines = out.read_text().splitlines()
    assert lines[0] == "age,sex,city,hours,income" and len(lines) == 301
    assert all(16 <= int(line.split(",")[0]) <= 79 for line in lines[1:])
    header = "column,value,measured,measured_low,measured_high,made_up,within"
    assert report.read_text().startswith(f"{header}\nage,from 16,")


def test_the_trips_are_made_as_is_said(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("make_trips", PROGRAMS / "data" / "make_trips.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.write(tmp_path / "trips.csv", 2000, 1)
    assert (tmp_path / "trips.csv").read_bytes() == (PROGRAMS / "data" / "trips.csv").read_bytes()


def test_choose_model(tmp_path: Path) -> None:
    """Of fifteen synthetic tables one has five columns: little is learned from it, but all of the way is gone."""
    result = run("choose_model.jst", tmp_path, tables_to_learn_from=15, widest=5)
    (choice,) = [event.fields for event in result.trace if event.kind == "choice"]
    assert set(choice["predictions"]) == {"Apart", "Tree", "Tables"}
    assert float(result.budget["people"]["epsilon"]["spent"]) <= 1
    assert result["people_made_up"].codes.shape == (1000, 5)
