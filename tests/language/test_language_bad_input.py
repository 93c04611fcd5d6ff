"""Bad input that is made rather than written: each ends in one clear diagnostic, and nothing of it is released."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jostle.source import Source
from jostle.tools.session import Result, Session

CHOICE = """
A = Option (data) { return 1 }
B = Option (data) { return 2 }
better = Utility (data, answers) { return answers }
choose = MkChoiceMaker among {A, B} informed by {}
    trained on { {database: counts([1, 2])}, {database: counts([2, 1])} } wrt better
private seen = counts([3, 4]) protecting rows budget epsilon 1
x = choose({database: seen}) with epsilon 1
release x
"""


def attempt(text: str, folder: Path) -> Result:
    return Session(cwd=folder).attempt(Source(str(folder / "program.jst"), text))


def one_refusal(result: Result, kind: str) -> str:
    assert not result.ok
    assert [d.kind for d in result.diagnostics] == [kind]
    assert result.released == {}
    assert result.output == []
    return result.diagnostics[0].message


@pytest.mark.parametrize(("opening", "closing"), [("(", ")"), ("[", "]"), ("{a: ", "}")])
def test_ten_thousand_nested_brackets(opening: str, closing: str, tmp_path: Path) -> None:
    text = "x = " + opening * 10_000 + "1" + closing * 10_000 + "\nrelease x\n"
    one_refusal(attempt(text, tmp_path), "RecursionLimit")


def test_ten_thousand_nested_blocks(tmp_path: Path) -> None:
    text = "if 1 == 1 { " * 10_000 + "x = 1" + " }" * 10_000 + "\n"
    one_refusal(attempt(text, tmp_path), "RecursionLimit")


@pytest.mark.parametrize(
    "step", ["t = derive(t, a = a + 1)", "t = where(derive(t, b = a), b > 0)", "r = derive(r, a = a + 1)",
             "r = union(r, r)", 'r = pick(grouped(r, "a"), a)'],
)  # fmt: skip
def test_tables_and_records_of_too_many_steps_cost_nothing(step: str, tmp_path: Path) -> None:
    refused_unpaid(step, 250, tmp_path)


@pytest.mark.parametrize("step", ["t = union(t, t)", "r = concat(r, r)", "r = intersect(r, where(r, a > 1))"])
def test_what_is_made_of_itself_again_and_again_has_an_end(step: str, tmp_path: Path) -> None:
    """Each time there is twice as much to read."""
    refused_unpaid(step, 30, tmp_path)


def refused_unpaid(step: str, times: int, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n2\n")
    text = f"""use weighted
private t = table("t.csv") described by {{a: 0..9}} protecting rows budget epsilon 9
r = weighted(t)
for i in 1..{times} {{ {step} }}
n = {{{{ select count(*) from t with epsilon 1 }}}}
q = laplace(histogram(r, x = clamp(a, 0, 9))) with epsilon 1
"""
    result = attempt(text, tmp_path)
    assert "steps" in one_refusal(result, "RecursionLimit")
    assert float(result.budget["t"]["epsilon"]["spent"]) == 0


def test_two_functions_that_call_each_other_for_ever(tmp_path: Path) -> None:
    text = "def ping(n): return pong(n + 1)\ndef pong(n): return ping(n + 1)\nrelease x = ping(0)\n"
    one_refusal(attempt(text, tmp_path), "RecursionLimit")


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a trained model."""
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path / "cache"))
    result = attempt(CHOICE, tmp_path)
    assert result.ok, result.diagnostics
    assert result.released == {"x": 2.0}
    (model,) = (tmp_path / "cache" / "models").glob("*.json")
    return model


def test_a_stored_model_is_read_again(stored: Path, tmp_path: Path) -> None:
    before = stored.stat().st_mtime_ns
    assert attempt(CHOICE, tmp_path).released == {"x": 2.0}
    assert stored.stat().st_mtime_ns == before


def test_a_stored_model_that_was_edited(stored: Path, tmp_path: Path) -> None:
    document = json.loads(stored.read_text(encoding="utf-8"))
    document["policy"]["table"]["options"] = ["B", "A"]
    stored.write_text(json.dumps(document), encoding="utf-8")
    assert "damaged" in one_refusal(attempt(CHOICE, tmp_path), "DataError")


def test_a_stored_model_that_was_cut_short(stored: Path, tmp_path: Path) -> None:
    stored.write_bytes(stored.read_bytes()[: stored.stat().st_size // 2])
    assert "damaged" in one_refusal(attempt(CHOICE, tmp_path), "DataError")


def test_a_stored_model_that_is_empty(stored: Path, tmp_path: Path) -> None:
    stored.write_bytes(b"")
    assert "damaged" in one_refusal(attempt(CHOICE, tmp_path), "DataError")


def test_rows_that_do_not_fit_decide_nothing(tmp_path: Path) -> None:
    """A private file is refused or not by its header alone, whatever its rows hold."""
    text = (
        'private t = table("t.csv") described by {age: 0..99} protecting rows budget epsilon 100\n'
        "release n = {{ select count(*) from t with epsilon 100 }}\n"
    )
    for rows in (b"", b"1\n2\n", b"\xff\xfe\x00\n,,,,\n", b'"\n"open\nnan\ninf\n-1e400\n', b"1,2,3\n" * 50):
        (tmp_path / "t.csv").write_bytes(b"age,sex\n" + rows)
        result = attempt(text, tmp_path)
        assert result.ok, result.diagnostics
        lines = [line for line in rows.split(b"\n") if line]
        assert abs(result.released["n"] - len(lines)) <= 1


def test_the_count_of_a_cell_alone_is_no_condition(tmp_path: Path) -> None:
    text = "private c = counts([3, 4]) protecting rows budget epsilon 1\n"
    text += "n = {{ select count(values) from c where values with epsilon 0.1 }}\n"
    assert "calculated" in one_refusal(attempt(text, tmp_path), "TypeError")


def test_what_is_looked_for_among_arrays_is_none_of_them(tmp_path: Path) -> None:
    text = "a = exact(identity(counts([[1, 2], [3, 4]])), counts([[1, 2], [3, 4]]))\n"
    text += 'cells = laplace(counts([[1, 2], [3, 4]]))\nrelease there = [none in [cells], "a" in [a], cells == none]\n'
    result = attempt(text, tmp_path)
    assert result.ok and result.released_json()["there"] == [False, False, False], result.diagnostics
