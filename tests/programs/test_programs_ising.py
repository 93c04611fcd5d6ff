"""The program of Ising models runs as it says, and its data are made as is said."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from jostle.tools.session import Session

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
EDGES = [
    ["x1", "x2"], ["x1", "x4"], ["x1", "x6"], ["x2", "x3"], ["x3", "x4"], ["x3", "x6"], ["x4", "x5"], ["x5", "x6"],
]  # fmt: skip


def test_ising(tmp_path: Path) -> None:
    result = Session(cwd=tmp_path).run(PROGRAMS / "ising.jst", most=15)
    assert result["edges"] == EDGES
    (picture,) = [event for event in result.trace if event.kind == "picture"]
    series = picture.fields["series"]
    assert len(series) == 7
    assert result.output[0].startswith("without noise:") and result.output[-1].endswith("0.022179")


def test_choose_ising(tmp_path: Path) -> None:
    result = Session(cwd=tmp_path).run(PROGRAMS / "choose_ising.jst", most=8, rho_in_all=2)
    (choice,) = [event.fields for event in result.trace if event.kind == "choice"]
    assert set(choice["predictions"]) == {"Apart", "Moments", "FrankWolfe"}
    assert 0 < float(result.budget["answers"]["rho"]["spent"]) <= 2
    assert choice["predictions"]["Moments"] > choice["predictions"]["Apart"] - 0.1  # nats a variable
    assert list(result["model"].names) == [f"x{i}" for i in range(1, 7)]


def test_the_answers_are_made_as_is_said(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("make_answers", PROGRAMS / "data" / "make_answers.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.write(tmp_path / "answers.csv", 10_000, 1)
    assert (tmp_path / "answers.csv").read_bytes() == (PROGRAMS / "data" / "answers.csv").read_bytes()
    assert [[f"x{i + 1}", f"x{j + 1}"] for i, j in sorted(module.COUPLINGS)] == EDGES
