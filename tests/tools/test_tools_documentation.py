"""What is documented: every name of the language and of the library, with a sentence, a price and examples that run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from jostle.documentation import documentation, documented
from jostle.documentation.entries import examples, programs
from jostle.language.aggregates import AGGREGATES
from jostle.language.builtins import BUILTINS
from jostle.source import Source
from jostle.syntax.parser import lexicon
from jostle.tools.session import Session

DATA = Path(__file__).resolve().parents[2] / "programs" / "data"


def test_every_name_and_word_has_a_sentence_and_an_example() -> None:
    words = lexicon()
    spoken = {entry.name for entry in documented() if entry.kind == "word"}
    assert spoken >= {*words.reserved, *words.opening, *words.clause}
    without = [e.name for e in documented() if e.span is None and not (e.about and e.example)]
    assert without == ["postgres", "spark", "external"]  # which need a server, or are for the library alone
    assert {e.name for e in documented() if e.kind == "aggregate"} == {*AGGREGATES, "count_distinct"}
    assert all(documentation(name)[0].price for name, row in BUILTINS.items() if row.signature is not None)


def test_an_example_is_of_a_name_that_there_is() -> None:
    for file in programs():
        kinds = {"queries": ["aggregate"], "words": ["word"]}.get(file)
        module = "" if kinds or file == "language" else file
        known = {e.name for e in documented() if e.module == module and (kinds is None or e.kind in kinds)}
        assert examples(file) and set(examples(file)) <= known, file


def test_prices_follow_from_what_a_function_calls() -> None:
    assert "allotment" in documentation("dawa")[0].price and documentation("rounds_for")[0].price == "free"
    assert documentation("floor")[0].program == "floor(2.7)  # 2"
    assert [e.module for e in documentation("noisyCount")] == ["pinq", "trees"]
    assert documentation("friedman_schuster")[0].about.startswith("A1: Friedman and Schuster")
    assert documentation("nothing") == ()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data that the examples name, and a dataset `people` in a ledger."""
    import numpy as np

    from jostle.tools.entry import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JOSTLE_LEDGER", str(tmp_path / "ledger.db"))
    shutil.copytree(DATA, "data")
    for name in ("data/people_too.csv", "registered.csv"):
        shutil.copy("data/village.csv", name)
    Path("visits.csv").write_text("who,floors,cost,day,seen\nAnn,2,1.5,2024-05-17,2024-05-17T14:30\n")
    Path("arrays").mkdir()
    np.save("arrays/one.npy", np.zeros(3))
    terms = ("--schema", "{age: 16..79}", "--protecting", "rows", "--budget", "epsilon 3")
    assert main(["data", "register", "people", "registered.csv", *terms]) == 0
    return tmp_path


@pytest.mark.parametrize("name", sorted(programs()))
def test_the_examples_run(name: str, folder: Path) -> None:
    session = Session(cwd=folder)
    session.bind("survey", {"age": [20, 30]})
    session.bind("notes", {"writer": ["Ann", "Ben"], "text": ["one two three", "one two"]})
    result = session.attempt(Source(f"{name}.jst", programs()[name]))
    assert result.ok, [str(fault) for fault in result.diagnostics]
