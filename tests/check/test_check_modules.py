"""Built-ins that serve one module of the library: known without `use`, and a program may have their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from jostle.source import Source
from jostle.tools.session import Session


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("v,c\n" + "1,x\n2,y\n" * 20)


BY_ROWS = '\nprivate t = table("t.csv") described by {v: 0..3, c: {"x", "y"}} protecting rows budget epsilon 9\n'
PROGRAMS = [
    "x = identity(counts([1]))\ny = prefixes(counts([1]))\nz = identity(counts([2]))\n",
    "use workloads\nx = identity(counts([1]))\ny = workloads.prefixes(counts([1]))\n",
    "use clusters\nx = identity(counts([1]))\n",  # by way of `histograms`
    "identity = 3\ndef gini(x): return x\nx = gini(identity) + 1\n",
    "def gini(t, age): return age\nage = 4\nx = gini(1, age)\n",  # it takes values, whatever the built-in takes
    "use trees\ndef gini(t, age): return age\nage = 4\nx = gini(1, age)\n",
    "use trees\ngini = 3" + BY_ROWS + "x = laplace(trees.gini(t, v, c)) with epsilon 1\n",
    "use trees" + BY_ROWS + "def best(gini): return laplace(gini(t, v, c)) with epsilon 1\nx = best(gini)\n",
    "n = lambda cube: len(marginals(cube))\nx = n(counts([1]))\n",
    "use features\nx = exact(identity(counts([1])), counts([1]))\n",
]


@pytest.mark.parametrize("text", PROGRAMS, ids=[text.split("\n")[0] for text in PROGRAMS])
def test_names_of_a_module_are_known_without_it(text: str) -> None:
    session = Session(allow=["large-epsilon"])
    session.run(Source("test.jst", text))
    assert session.warnings == []


def test_what_is_of_a_module_is_checked_and_priced_by_either_name() -> None:
    for word in ("noisy_moments", "row_vectors.noisy_moments"):
        text = f"use row_vectors{BY_ROWS}m = {word}(vectors(t, v)) with epsilon 2\n"
        assert [cost.bound for cost in Session(allow=["large-epsilon"]).costs(Source("test.jst", text))] == [
            2 * 10**12
        ], word
    for word in ("vectors", "row_vectors.vectors"):
        text = f"use row_vectors{BY_ROWS}print({word}(t, v))\n"
        assert [d.kind for d in Session(allow=["large-epsilon"]).check(Source("test.jst", text))] == ["PrivateValue"], (
            word
        )


def test_a_module_of_the_program_may_have_its_words() -> None:
    Path("mine.jst").write_text("def gini(x): return x + 1\n")
    session = Session(allow=["large-epsilon"])
    assert session.run(Source("test.jst", "use mine\nrelease y = gini(1)\n"))["y"] == 2 and session.warnings == []
    (fault,) = Session(allow=["large-epsilon"]).check(Source("test.jst", "use mine\nuse trees\ny = gini(1)\n"))
    assert fault.kind == "NameError" and {"`mine.gini`", "`trees.gini`"} <= {*str(fault.help).split()}


def test_an_entry_knows_what_an_earlier_one_brought() -> None:
    session = Session(allow=["large-epsilon"])
    session.execute(Source("entry 1", "use workloads\n"))
    assert session.execute(Source("entry 2", "len(identity(counts([1, 2])))\n")) == 2 and session.warnings == []
