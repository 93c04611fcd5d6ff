"""Words of the version before: each still works, and a person is told once a place what it is called now."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

import pytest

from jostle.check.warnings import LIBRARY, NAMES, PARAMETERS
from jostle.diagnostics import Refusal
from jostle.language.builtins import BUILTINS, TURNED, TURNED_IN_LIBRARY
from jostle.source import Source
from jostle.tools.entry import main
from jostle.tools.session import Session

ROOT = Path(__file__).resolve().parents[2]
PEOPLE = """
private t = table("t.csv") described by {v: 0..3, c: {"x", "y"}} protecting rows budget epsilon 100
h = histogram(t, v)
"""
SCORES = {
    "total": "total(h)", "peak": "peak(h)", "spread": "spread(h)", "roughness": "roughness(h)",
    "rows_right": 'rows_right(majority(t, "c") with epsilon 1, t, "c")',
}  # fmt: skip
VECTORS = {"bisections": "bisections(h, [0], [[0, 1]])", "leftover": "leftover(h, [1, 2], [0, 1], [1, 1])"}


def told(text: str) -> list[tuple[str, str, int]]:
    """Runs a program; its hints by former name, today's and line."""
    session = Session(allow=["large-epsilon"])
    session.attempt(Source("test.jst", text))
    for hint in session.warnings:
        assert hint.kind == "former-name" and hint.span is not None
    words = [(*re.findall("`(.*?)`", h.message), h.span.line) for h in session.warnings if h.span]
    return words  # type: ignore[return-value]


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("v,c\n" + "1,x\n2,y\n" * 20)


def test_every_former_built_in_works() -> None:
    assert {row.former for row in BUILTINS.values()} - {""} == {*SCORES, *VECTORS}
    for word, call in {**SCORES, **VECTORS}.items():
        measured = f"laplace({call})" if word in SCORES else f"noisy_max({call})"
        before = f"use classifiers{PEOPLE}x = {measured} with epsilon 1\nrelease x\n"
        session = Session(allow=["large-epsilon"])
        result = session.run(Source("before.jst", before))
        assert "x" in result.values and {h.span.line for h in session.warnings if h.span} == {4}, word
        today = Session(allow=["large-epsilon"]).run(Source("today.jst", before.replace(word, NAMES[word])))
        assert today.budget == result.budget


def test_every_former_name_of_the_library_is_today_s() -> None:
    modules = {path.stem: path.read_text() for path in ROOT.glob("stdlib/*.jst")}
    for former, today in LIBRARY.items():
        (module,) = (m for m, text in modules.items() if re.search(rf"^(?:def |external )?{today}\b", text, re.M))
        text = f"use {module}\nx = {former}\ny = {module}.{former}\nassert x == {today} and y == x\n"
        session = Session(allow=["large-epsilon"])
        session.run(Source("test.jst", text))
        assert [h.span.line for h in session.warnings if h.span] == [2, 3], former


@pytest.mark.parametrize("parameter", PARAMETERS, ids=" ".join)
def test_every_former_parameter_works(parameter: tuple[str, str]) -> None:
    calls = {
        "cut": "cut([0], [[0, 1]], chosen = [1])", "grid_strategy": "grid_strategy([4, 4], wanted = 4)",
        "mwem_learn": "mwem_learn(cells(c), identity(c), asked = [0], answers = [1], total = 3)",
        "fw_step": "fw_step([0, 0], chosen = 1, radius = 1, step = 1)",
        "node_step": "node_step([[0, 0], [0, 0]], chosen = 1, radius = 1, step = 1)",
    }  # fmt: skip
    function, former = parameter
    call = calls.get(function, f"{function}({former} = {'{a: 1}' if function == 'values' else '[1, 2]'})")
    modules = ("cuts", "grids", "histograms", "ising", "classifiers", "trees")
    text = "".join(f"use {module}\n" for module in modules) + f"c = counts([1, 2])\nx = {call}\n"
    assert told(text) == [(former, PARAMETERS[parameter], 8)]
    for name in (former, PARAMETERS[parameter]):
        session = Session(allow=["large-epsilon"])
        result = session.attempt(Source("test.jst", text.replace(f"{former} =", f"{name} =")))
        assert not any("has no parameter" in d.message or "takes no" in d.message for d in result.diagnostics)


BY_ROWS = '\nprivate t = table("t.csv") described by {v: 0..3, c: {"x", "y"}} protecting rows budget epsilon 9\n'
MODULES = [  # a program, and the built-ins that it is told the module of
    ("x = identity(counts([1]))\ny = prefixes(counts([1]))\nz = identity(counts([2]))\n", ["identity", "prefixes"]),
    ("use workloads\nx = identity(counts([1]))\ny = workloads.prefixes(counts([1]))\n", []),
    ("use clusters\nx = identity(counts([1]))\n", []),  # by way of `histograms`
    ("identity = 3\ndef gini(x): return x\nx = gini(identity) + 1\n", []),
    ("def gini(t, age): return age\nage = 4\nx = gini(1, age)\n", []),  # it takes values, whatever the built-in takes
    ("use trees\ndef gini(t, age): return age\nage = 4\nx = gini(1, age)\n", []),
    ("use trees\ngini = 3" + BY_ROWS + "x = laplace(trees.gini(t, v, c)) with epsilon 1\n", []),
    ("use trees" + BY_ROWS + "def best(gini): return laplace(gini(t, v, c)) with epsilon 1\nx = best(gini)\n", []),
    ("n = lambda cube: len(marginals(cube))\nx = n(counts([1]))\n", ["marginals"]),
    ("use features\nx = exact(identity(counts([1])), counts([1]))\n", ["exact", "identity"]),
]


@pytest.mark.parametrize(("text", "names"), MODULES, ids=[text.split("\n")[0] for text, _ in MODULES])
def test_what_is_of_a_module_is_known_without_it_for_one_version(text: str, names: list[str]) -> None:
    session = Session(allow=["large-epsilon"])
    session.run(Source("test.jst", text))
    homes = [f"`{name}` is of the module `{BUILTINS[name].module}`" for name in names]
    assert sorted(h.message for h in session.warnings) == sorted(homes)
    assert all(f"`use {BUILTINS[n].module}`" in str(h.help) for n, h in zip(names, session.warnings, strict=True))


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


OWN = [
    ("spread = 1\ny = spread + 1\n", []),
    ("def f(peak): return peak + 1\nx = f(1)\n", []),
    ("x = [peak for peak in [1, 2]]\n", []),
    ("def sum(v): return v\nx = sum(v = 3)\n", []),
    ("use classifiers\ndef most_right(x): return x\ny = most_right(1)\n", []),
    ("def f(h): return peak(h)\nx = f(counts([1, 2]))\n", [("peak", "largest_cell", 1)]),
    ("def f(spread): return spread\nx = spread(counts([1, 2]))\n", [("spread", "l1_to_uniform", 2)]),
    ("x = [peak(counts([a])) for a in [1, 2]]\n", [("peak", "largest_cell", 1)]),  # once a place, not once a turn
]


@pytest.mark.parametrize(("text", "hints"), OWN, ids=[text.split("\n")[0] for text, _ in OWN])
def test_a_name_of_the_program_is_its_own(text: str, hints: list[tuple[str, str, int]]) -> None:
    assert Session(allow=["large-epsilon"]).run(Source("test.jst", text)).ok
    assert told(text) == hints


def test_a_column_is_its_own() -> None:
    text = 'private t = table("t.csv") described by {peak: 0..3} protecting rows budget epsilon 9\n'
    Path("t.csv").write_text("peak\n1\n2\n")
    text += "n = {{ select sum(peak) from t where peak > 1 with epsilon 1 }}\nh = histogram(t, peak)\n"
    assert told(text) == []


def test_a_module_beside_the_program_and_a_session() -> None:
    Path("mine.jst").write_text("use other\ndef f(h): return peak(h)\n")
    Path("other.jst").write_text("use mine\ndef g(h): return spread(h)\n")
    Session(allow=["large-epsilon"]).check(
        Source("test.jst", "use mine\nx = f(1)\n")
    )  # modules that use each other are refused at run time
    Path("other.jst").write_text("\ndef g(h): return spread(h)\n")
    session = Session(allow=["large-epsilon"])
    assert session.run(Source("test.jst", "use mine\nx = f(counts([1, 2]))\nrelease x\n"))["x"] == 2
    assert sorted(str(h.span) for h in session.warnings) == sorted(
        [f"{Path('mine.jst').resolve()}:2:18", f"{Path('other.jst').resolve()}:2:18"]
    )
    session = Session(allow=["large-epsilon"])
    session.execute(Source("entry 1", "peak = 3\n"))
    assert session.execute(Source("entry 2", "peak\n")) == 3 and session.warnings == []
    assert session.execute(Source("entry 3", "roughness(counts([1, 5]))\n")) == 4 and len(session.warnings) == 1


def test_check_and_run_say_it_and_succeed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.jst").write_text("x = peak(counts([1, 2]))\nrelease x\n")
    for command in ("check", "run"):
        assert main([command, "p.jst"]) == 0
        out, err = capsys.readouterr()
        assert err == (
            "warning (former-name): `peak` is called `largest_cell` now\n"
            "  ┌─ p.jst:1:5\n1 │ x = peak(counts([1, 2]))\n  │     ^^^^ a former name\n"
            "  = help: write `largest_cell`; the next version will not know `peak`\n"
        )
        assert "error" not in out.replace("no errors", "")
        assert main([command, "p.jst", "--format", "json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["ok"] and [h["line"] for h in document["warnings"]] == [1]


def test_pages_and_programs_have_today_s_words_only() -> None:
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    programs = [(path, path.read_text(encoding="utf-8")) for path in ROOT.glob("programs/*.jst")]
    for page in pages:
        programs += [(page, b) for b in re.findall(r"```jostle\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)]
    for path, text in programs:
        session = Session(allow=["large-epsilon"])
        with suppress(Refusal):  # blocks that show a mistake
            session._parsed(Source(str(path) if path.suffix == ".jst" else "block.jst", text))
        assert session.warnings == [], path
    for page in [*pages, *ROOT.glob("stdlib/*.jst")]:
        words = set(re.findall(r"\b\w+\b(?=\()", text := page.read_text(encoding="utf-8")))
        assert not words & set(NAMES), page
        assert not re.search(rf"\b(?:{'|'.join(LIBRARY)})\b", text), page
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for former, today in NAMES.items():
        assert f"`{former}`" in changes and f"`{today}`" in changes, former


ORDERS = {
    "correct_count": ('laplace(correct_count(m, t, "c")) with epsilon 1', 'correct_count(t, m, "c")'),
    "accuracy": ('accuracy(m, table("u.csv") described by {v: 0..3, c: {"x", "y"}}, "c")', 'accuracy(table("u.csv") '
                 'described by {v: 0..3, c: {"x", "y"}}, m, "c")'),
    "bootstrap": ("bootstrap(flat, cells(counts([4, 5])), identity(counts([4, 5])), epsilon = 1, runs = 2)",
                  "bootstrap(cells(counts([4, 5])), flat, identity(counts([4, 5])), epsilon = 1, runs = 2)"),
    "noisy_accuracy": ('noisy_accuracy(m, t, "c") with epsilon 1', 'noisy_accuracy(t, m, "c")'),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(TURNED))
def test_a_call_in_the_order_of_the_version_before_is_told_today_s(name: str) -> None:
    """A built-in understands it for one version more; a function of the library is refused before anything is paid."""
    before, today = ORDERS[name]
    Path("u.csv").write_text("v,c\n1,x\n2,y\n")
    program = f'use classifiers\nuse histograms{PEOPLE}m = majority(t, "c") with epsilon 1\nx = {before}\n'
    session = Session(allow=["large-epsilon"])
    result = session.attempt(Source("test.jst", program))
    assert result.ok == (name not in TURNED_IN_LIBRARY) and (result.ok or result.budget == {})
    told = [*session.warnings, *result.diagnostics]
    assert [(d.span.line, d.help) for d in told if d.span] == [(6, f"write `{today}`")] and len(told) == 1
    assert name in told[0].message and "reads first" in told[0].message
    inner = before.partition(" with ")[0].removeprefix("laplace(")
    inner = inner[:-1] if before.startswith("laplace(") else inner
    session = Session(allow=["large-epsilon"])
    assert session.attempt(Source("test.jst", program.replace(inner, today))).ok and session.warnings == []
