"""`jostle evaluate` and `jostle.evaluate`: choices judged on data sets left out, with nothing private opened."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import jostle
from jostle import Refusal
from jostle.tools.entry import main

PROGRAM = """\
use histograms
use features
param many = 3
Flat = Option (data) { return flat(data.database, data.queries) }
Even = Option (data) { return uniform(data.database, data.queries) }
close = Utility (data, answers) { return -rmse(answers, exact(data.queries, data.database)) }
shapes = {"even": [25, 25, 25, 25], "steep": [90, 8, 1, 1], "pair": [50, 0, 0, 50]}
asked = prefixes(counts(shapes["even"]))
pick = MkChoiceMaker among {Flat, Even} informed by {strength}
    trained on { {database: counts(shapes[n]), queries: asked, sizes: [100, 10000], name: n} for n in shapes }
    using regret_tree(depth = 1) wrt close
private people = table("nowhere.csv") described by {age: 0..9} protecting rows budget epsilon 1
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "p.jst"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def test_a_choice_that_is_never_called_is_judged_at_a_named_amount(program: Path) -> None:
    (found,) = jostle.evaluate(program, epsilon=1.0)
    assert (found.name, found.unit, found.amount) == ("pick", "epsilon", 1.0)
    everywhere, few, many = found.report.lines
    assert (everywhere.rows, few.scale, many.scale) == (6, 100.0, 10000.0)
    assert found.report.by == "rows" and everywhere.choice >= 1.0 and everywhere.single >= 1.0
    assert everywhere.options.keys() == {"Flat", "Even"}
    assert many.options["Even"] > 2 * many.options["Flat"]  # 10,000 uneven rows are not spread evenly


def test_only_some_data_sets_are_left_out(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(program), "--epsilon", "1", "--data", "steep", "--format", "json"]) == 0
    (said,) = json.loads(capsys.readouterr().out)["choices"]
    assert (said["choice"], said["databases"], said["trained"], said["virtual_best"]) == ("pick", 1, 3, 1.0)
    assert main(["evaluate", str(program), "--epsilon", "1", "--choice", "pick"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("pick, epsilon 1: mean regret") and "leaving out one of 3 data sets" in text


@pytest.mark.parametrize(("words", "kind"), [(["--choice", "pock"], "NameError"), (["--data", "stepe"], "NameError")])
def test_what_is_not_there_is_refused(program: Path, words: list[str], kind: str) -> None:
    with pytest.raises(Refusal) as refusal:
        asked = dict(zip(words[::2], words[1::2], strict=True))
        jostle.evaluate(program, epsilon=1.0, choice=asked.get("--choice"), only=[*filter(None, [asked.get("--data")])])
    assert refusal.value.first.kind == kind


def test_a_program_without_a_choice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.jst"
    path.write_text("print(1)\n", encoding="utf-8")
    with pytest.raises(Refusal, match="no choice"):
        jostle.evaluate(path)


def test_a_choice_that_ships_is_judged_by_what_it_was_trained_on(tmp_path: Path) -> None:
    path = tmp_path / "p.jst"
    text = "use best\nprivate cube = counts([4, 4]) protecting rows budget epsilon 3\n"
    calls = "".join(f"n{e} = best_histogram(cube, identity(cube)) with epsilon {e}\n" for e in (1, 2))
    path.write_text(text + calls, encoding="utf-8")
    (found,) = jostle.evaluate(path, only=["simulated 5"])
    assert (found.name, found.amount, found.report.databases) == ("best_histogram", 1.0, 1)
    assert found.report.lines[0].options.keys() == {"BySignal", "Shrinkage", "Boxes"}


def test_the_fields_of_a_choice_tell_the_same(program: Path) -> None:
    session = jostle.Session(simulate=1)
    asked = (
        "judged = pick.evaluate(epsilon = 1)\n"
        "release lines = [line.choice for line in judged.lines]\n"
        'release rows = [r.rows for r in pick.runs(epsilon = 1) if r.data == "even" and r.option == "Flat"]\n'
    )
    program.write_text(PROGRAM.rpartition("private")[0] + asked, encoding="utf-8")
    result = session.run(program)
    (found,) = jostle.evaluate(program, epsilon=1.0)
    assert list(result["lines"]) == [line.choice for line in found.report.lines[1:]]
    assert list(result["rows"]) == [100.0, 10000.0]
