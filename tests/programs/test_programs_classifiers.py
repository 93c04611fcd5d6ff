"""The programs about classifiers, with small settings."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from jostle import PrivateClassifier
from jostle.tools.session import Result, Session

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"


def run(name: str, cwd: Path, **settings: Any) -> Result:
    return Session(cwd=cwd).run(PROGRAMS / name, **settings)


def test_classify(tmp_path: Path) -> None:
    result = run("classify.jst", tmp_path, training_tables=5, most_rows=400)
    (choice,) = [event.fields for event in result.trace if event.kind == "choice"]
    assert choice["chosen"] in choice["predictions"] and len(choice["predictions"]) == 5
    assert 0.1 < float(result.budget["people"]["epsilon"]["spent"]) <= 1.1  # a tenth says how right the model is
    classifier = PrivateClassifier(result["model"])
    assert set(classifier.classes_) == {"little", "some", "much"}
    row = {"age": [44], "sex": ["Male"], "city": ["Cork"], "hours": [40]}
    columns = [row.get(str(name), [None])[0] for name in classifier.feature_names_in_]
    assert not columns or classifier.predict([columns])[0] in classifier.classes_


def test_figure_4_4(tmp_path: Path) -> None:
    result = run("figure_4_4.jst", tmp_path, steps=1, repeats=1)
    assert list(result["means"]) == ["A1", "A2", "A3", "A4", "A5", "majority"]
    assert all(0 <= each[0] <= 100 for each in result["means"].values())
    assert [event.name for event in result.trace if event.kind == "picture"] == ["Accuracy on applications"]


@pytest.mark.slow
def test_figure_4_5(tmp_path: Path) -> None:
    result = run("figure_4_5.jst", tmp_path, tables=5, rows=200)
    choices = [event.fields for event in result.trace if event.kind == "choice"]
    assert [set(choice["predictions"]) for choice in choices] == [{"Counts", "Bayes", "Both"}] * 2
    for name in ("city", "island"):
        assert 1 - 1e-9 < float(result.budget[name]["epsilon"]["spent"]) <= 1
    for name in ("city_model", "island_model"):
        assert set(PrivateClassifier(result[name]).classes_) == {"no", "later", "soon", "at once"}


def test_the_applications_are_made_as_is_said(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("make_applications", PROGRAMS / "data" / "make_applications.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, (rows, seed) in module.FILES.items():
        module.write(tmp_path / f"{name}.csv", rows, seed)
        assert (tmp_path / f"{name}.csv").read_bytes() == (PROGRAMS / "data" / f"{name}.csv").read_bytes()
