"""`jostle improve`: formulas for a program's Options, shown and written, and everything else left as it is."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from jostle import Refusal
from jostle.choice.formula_fits import FEATURE, Expression, Formula
from jostle.source import Source
from jostle.syntax import nodes as n
from jostle.syntax.parser import parse
from jostle.tools.entry import main
from jostle.tools.evaluation import edit, edited, part_text
from jostle.tools.session import Session

PROGRAM = """\
# The programmer has it the wrong way round: noise of about 2 is taken for an error of thousands, and zeros win.
people_in_all = Feature (data) { return log(max(1, laplace(size(data.database)))) }
Zeros = Option (data) { return [0, 0, 0, 0] }
class Each(Option):
    def answer(db, queries):
        return laplace(db)   # one by one
    def predict(X):
        return -1000 * X.people_in_all
near = Utility (data, answers) { return -rmse(answers, exact(data.queries, data.database)) }
choose = MkChoiceMaker among {Zeros, Each} informed by {people_in_all}
    trained on { {database: counts([a, b, a, a + b]), queries: identity(counts([a, b, a, a + b])), sizes: [1000, 3000]}
                 for a, b in zip([9, 20, 30], [1, 5, 40]) }
    spending 0.2 wrt near
private mine = counts([40, 2, 10, 60]) protecting rows budget epsilon 1
answers = choose({database: mine, queries: identity(mine)}) with epsilon 1
release answers
"""
SCORED = {
    "among {Zeros, Each}": "among {Zeros, Each} by validation",
    "-rmse(answers, exact(data.queries, data.database))": "closeness(data.database, data.queries, answers)",
}
LAST_LINES = PROGRAM.index("private mine")
LAST = PROGRAM.index("near =")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "p.jst"
    path.write_text("use workloads\n" + PROGRAM, encoding="utf-8")
    return path


def test_formulas_are_shown_and_written(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = program.read_text(encoding="utf-8")
    assert main(["improve", str(program), "--choice", "choose", "--most", "3", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (told,) = document["choices"]
    assert document["written"] is False and program.read_text(encoding="utf-8") == before
    zeros, each = told["options"]
    assert (told["choice"], told["amount"], told["databases"]) == ("choose", 1.0, 3)
    assert zeros["before"] == "regret_tree(depth = 3)"
    assert each["before"] == "predict" and each["explained"] < 0 < each["gain"] and each["kept"]
    assert told["regret"]["after"] < 2 < 50 < told["regret"]["before"]

    assert main(["improve", str(program), "--most", "3", "--write"]) == 0
    out = capsys.readouterr().out
    assert "Each: `predict` is on another scale" in out and "regret (error ÷ least error)" in out
    after = program.read_text(encoding="utf-8")
    assert out.rstrip().endswith("`predict` written")
    assert told["texts"]["Each"] in out and told["texts"]["Each"] in after
    assert after.endswith(PROGRAM[LAST:]) and "return laplace(db)   # one by one\n    def predict(X) {\n" in after
    result = jostle.Session().run(program)
    (choice,) = (event.fields for event in result.trace if event.kind == "choice")
    assert len(result["answers"]) == 4 and choice["predictions"].keys() == {"Zeros", "Each"}


def test_python_says_the_same(program: Path) -> None:
    found = jostle.improve(program, most=3)
    (choice,) = found.choices
    assert choice.improvement.options[1].better and choice.texts["Each"] in found.program
    assert found == jostle.improve(program, most=3)
    names, _, interp = Session(simulate=1).rehearse(Source("p.jst", found.program), {})
    predict, formula = names["choose"].bench(interp).predicts[1], choice.improvement.options[1].proposed.formula
    for value in (-50.0, 0.0, 2.5, 6.8, 900.0):
        said = -math.exp(formula.values({"people_in_all": np.array([value])})[0])
        assert predict({"people_in_all": value}) == pytest.approx(said, rel=1e-9)


SPELLINGS = {
    "A = Option (data) { return 1 }  # one": "A = Option (data) { return 1 }\npredict (F) BLOCK  # one",
    "A = Option (data):\n    return 1\nx = 2": "A = Option (data):\n    return 1\npredict (F) BLOCK\nx = 2",
    "A = Option (data) { return 1 } predict (G) { return G.f }": "A = Option (data) { return 1 } predict (G) BLOCK",
    "A = Option (data):\n    return 1\npredict (F):\n    y = F.f\n    return y\nx = 2":
        "A = Option (data):\n    return 1\npredict (F) BLOCK\nx = 2",
    "class A(Option):\n    def answer(data):\n        return 1\nx = 2":
        "class A(Option):\n    def answer(data):\n        return 1\n    def predict (F) BLOCK\nx = 2",
    "class A(Option):\n  def predict(F):\n    return 3\n  def answer(data) { return 1 }":
        "class A(Option):\n  def predict(F) BLOCK\n  def answer(data) { return 1 }",
    "def f():\n    return [Option (data) { return 1 }, 2]":
        "def f():\n    return [Option (data) { return 1 }\n    predict (F) BLOCK, 2]",
}  # fmt: skip


@pytest.mark.parametrize("text", SPELLINGS)
def test_every_spelling_of_an_option_takes_a_formula(text: str) -> None:
    """The block stands where it should, with the indentation of its line, and the program parses again."""
    formula = Formula(0.5, (2.0,), (Expression(FEATURE, name="f"),), {"f": (0.0, 1.0)})
    source = Source("p.jst", text)
    (part,) = (node for node in every_part(source))
    change = edit(part, formula, True)
    after = edited(text, {change.start: change})
    (again,) = every_part(Source("p.jst", after))
    assert again.predict is not None and part_text(part, change) in after
    start, end = after.index("{\n"), after.index("2 * f)\n")
    block = after[start : after.index("}", end) + 1]
    assert after.replace(block, "BLOCK") == SPELLINGS[text]
    parameter = again.predict_params[0].name if again.predict_params else ""
    assert [line.strip() for line in block.splitlines()] == [
        "{", f"f = clamp({parameter}.f, 0, 1)", "return -exp(0.5 + 2 * f)", "}"
    ]  # fmt: skip


def every_part(source: Source) -> list[n.Part]:
    from jostle.syntax.walk import every

    return [node for node in every(parse(source)) if isinstance(node, n.Part)]


@pytest.mark.parametrize(
    ("changes", "asked", "kind", "words"),
    [
        ({}, {"choice": "chose"}, "NameError", "no choice named `chose`"),
        ({}, {"epsilon": -1.0}, "BadAmount", "above 0"),
        ({}, {"most": 0}, "ValueError", "from 1 to"),
        ({"{people_in_all}": "{}", "-1000 * X.people_in_all": "1"}, {}, "ValueError", "no feature varies"),
        ({"zip([9, 20, 30], [1, 5, 40])": "[[9, 1]]"}, {}, "ValueError", "two or more"),
        ({PROGRAM: "use best\nc = counts([4])\na = best_histogram(c, identity(c))\n"}, {}, "ValueError", "of its own"),
        ({"use workloads": "use workloads\ndef sqrt(x) = 2"}, {}, "NameError", "a `sqrt` of its own"),
        (SCORED, {"choice": "choose"}, "ValueError", "by validation"),
    ],
)  # fmt: skip
def test_what_cannot_be_improved_is_refused(
    program: Path, changes: dict[str, str], asked: dict[str, Any], kind: str, words: str
) -> None:
    text = program.read_text(encoding="utf-8")
    for old, new in changes.items():
        text = text.replace(old, new)
    program.write_text(text, encoding="utf-8")
    with pytest.raises(Refusal) as refusal:
        jostle.improve(program, **asked)
    assert refusal.value.first.kind == kind and words in refusal.value.first.message


def test_an_option_from_elsewhere_is_shown_and_not_written(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = program.read_text(encoding="utf-8")
    start, end = text.index("class Each"), text.index("near =")
    elsewhere = text[start:end] + "Other = Option (data) { return Each }\n"
    (program.parent / "elsewhere.jst").write_text("use workloads\n" + elsewhere, encoding="utf-8")
    text = "use elsewhere\n" + text[:start] + text[end:]
    program.write_text(text, encoding="utf-8")
    assert main(["improve", str(program), "--most", "3"]) == 0
    assert "# Each\npredict (F) {" in capsys.readouterr().out
    assert main(["improve", str(program), "--most", "3", "--write"]) == 1
    assert "`Each` cannot be written" in capsys.readouterr().err
    assert program.read_text(encoding="utf-8") == text
    assert main(["improve", "-", "--write"]) == 2


def test_a_program_may_improve_its_own_choice(program: Path) -> None:
    """The new choice is called as the old one, and values `Each` by noise in place of thousands."""
    call = "better = improved(choose, epsilon = 1)\nanswers = better("
    text = program.read_text(encoding="utf-8").replace("answers = choose(", call)
    names, _, interp = Session(simulate=1).rehearse(Source("p.jst", text), {})
    (old, new) = (names[name].bench(interp).predicts[1]({"people_in_all": 7.0}) for name in ("choose", "better"))
    assert old == -7000 and -20 < new < 0 and names["better"].name == "better"
    for wrong, kind in (("improved(3, epsilon = 1)", "TypeError"), ("improved(choose)", "BadAmount")):
        source = Source("p.jst", f"use workloads\n{PROGRAM[:LAST_LINES]}wrong = {wrong}\n")
        assert Session().attempt(source).diagnostics[0].kind == kind
