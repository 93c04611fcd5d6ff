"""The programs of DP-EM run as they say: each figure of the paper, and the choice of how many Gaussians."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from jostle.tools.session import Result, Session

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"


def run(name: str, cwd: Path, **settings: Any) -> Result:
    return Session(cwd=cwd).run(PROGRAMS / name, **settings)


def pictures(result: Result) -> list[str]:
    return [event.name for event in result.trace if event.kind == "picture"]


def test_figure_2(tmp_path: Path) -> None:
    result = run("figure_2_dpem.jst", tmp_path, epsilons="two", rounds="4")
    assert len(result["ours"]) == 2 and len(pictures(result)) == 1
    assert result["ours"][1] > 1.0  # a Gaussian alone has −0.3, and six clouds 3.0 and more


def test_figure_4(tmp_path: Path) -> None:
    result = run("figure_4_kmeans.jst", tmp_path)
    assert result["ours"].cluster_centers_.shape == (8, 2)
    assert len(pictures(result)) == 3


def test_figure_5(tmp_path: Path) -> None:
    result = run("figure_5_factors.jst", tmp_path)
    assert result["angles"][-1] < 15 and len(pictures(result)) == 1


def test_choose_mixture(tmp_path: Path) -> None:
    result = run("choose_mixture.jst", tmp_path)
    (choice,) = [event.fields for event in result.trace if event.kind == "choice"]
    assert set(choice["predictions"]) == {"One", "Four"}
    assert float(result.budget["points"]["rho"]["spent"]) <= 0.05


def test_the_clouds_are_made_as_is_said(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("make_clouds", PROGRAMS / "data" / "make_clouds.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, rows in (("clouds.csv", module.clouds(5000, 1)), ("places.csv", module.places())):
        written = (PROGRAMS / "data" / name).read_text(encoding="utf-8").splitlines()[1:]
        assert written == [",".join(row) for row in rows]


@pytest.mark.parametrize("name", ["figure_2_dpem", "figure_4_kmeans", "figure_5_factors", "choose_mixture"])
def test_a_program_says_where_it_comes_from(name: str) -> None:
    assert (PROGRAMS / f"{name}.jst").read_text(encoding="utf-8").startswith("# ")
