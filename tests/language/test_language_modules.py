"""Modules, parameters and paths: what a program finds beside it, and what it is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from jostle.diagnostics import Refusal
from jostle.source import Source
from jostle.tools.session import Result, Session

DATA = Path(__file__).resolve().parent / "data"


def attempt(folder: Path, text: str, cwd: Path | None = None, **settings: object) -> Result:
    source = Source(str(folder / "program.jst"), text)
    return Session(cwd=cwd or folder).attempt(source, settings)


def kinds(result: Result) -> list[str]:
    return [d.kind for d in result.diagnostics]


def test_a_module_beside_the_program(tmp_path: Path) -> None:
    (tmp_path / "mine.jst").write_text("def double(x): return 2 * x\n_hidden = 1\nseven = 7\n", encoding="utf-8")
    result = attempt(tmp_path, "use mine\nrelease a = double(seven)\nrelease b = mine.double(2)\n")
    assert result.released == {"a": 14.0, "b": 4.0}
    assert kinds(attempt(tmp_path, "use mine\nx = _hidden\n")) == ["NameError"]


def test_a_module_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "mine.jst").write_text("seven = 7\n", encoding="utf-8")
    assert attempt(tmp_path, "use tools.mine\nrelease a = mine.seven\n").released == {"a": 7.0}


def test_a_module_in_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "mine.jst").write_text("seven = 7\n", encoding="utf-8")
    result = attempt(tmp_path / "elsewhere", "use mine\nrelease a = seven\n", cwd=tmp_path)
    assert result.released == {"a": 7.0}


def test_the_library_comes_before_a_file_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "pinq.jst").write_text("def noisyCount(t, e): return 0\n", encoding="utf-8")
    result = attempt(tmp_path, "use pinq\nrelease a = noisyCount(counts([1]), 1)\n")
    assert kinds(result) == ["TypeError"]  # the library's own: a cube has no rows to count


def test_a_module_that_does_not_parse(tmp_path: Path) -> None:
    (tmp_path / "mine.jst").write_text("x = = 1\n", encoding="utf-8")
    result = attempt(tmp_path, "use mine\nprint(y)\n")
    assert kinds(result) == ["SyntaxError"]
    span = result.diagnostics[0].span
    assert span is not None and span.source.name.endswith("mine.jst")


def test_a_module_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "mine.jst").write_bytes(b"x = 1  # caf\xe9\n")
    result = attempt(tmp_path, "use mine\n")
    assert kinds(result) == ["ImportError"] and "is not UTF-8" in result.diagnostics[0].message
    (tmp_path / "mine.jst").write_bytes(b"\xef\xbb\xbfseven = 7\n")
    assert attempt(tmp_path, "use mine\nrelease a = seven\n").released == {"a": 7.0}


def test_modules_that_use_each_other(tmp_path: Path) -> None:
    (tmp_path / "one.jst").write_text("use two\na = 1\n", encoding="utf-8")
    (tmp_path / "two.jst").write_text("use one\nb = 2\n", encoding="utf-8")
    assert "ImportError" in kinds(attempt(tmp_path, "use one\n"))


def test_kernels_are_not_for_programs(tmp_path: Path) -> None:
    (tmp_path / "mine.jst").write_text("external average(estimates)\n", encoding="utf-8")
    assert len(kinds(attempt(tmp_path, "use mine\n"))) == 1


def test_parameters_are_read_as_their_defaults_are(tmp_path: Path) -> None:
    text = 'param n = 2\nparam name = "a"\nparam sure = false\nrelease out = [n, name, sure]\n'
    assert attempt(tmp_path, text).released == {"out": [2.0, "a", False]}
    given = attempt(tmp_path, text, n="1e3", name="7", sure="true")
    assert given.released == {"out": [1000.0, "7", True]}
    assert kinds(attempt(tmp_path, text, n="many")) == ["TypeError"]
    assert kinds(attempt(tmp_path, text, m="1")) == ["NameError"]
    assert kinds(attempt(tmp_path, "param xs = [1]\n", xs="2")) == ["TypeError"]


def test_files_are_found_beside_the_program_first(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    (home / "t.csv").write_text("a\n1\n2\n", encoding="utf-8")
    (work / "t.csv").write_text("a\n1\n", encoding="utf-8")
    (work / "u.csv").write_text("a\n1\n2\n3\n", encoding="utf-8")
    text = (
        'release n = {{ select count(*) from table("t.csv") }}\nrelease m = {{ select count(*) from table("u.csv") }}'
    )
    assert attempt(home, text, cwd=work).released == {"n": 2.0, "m": 3.0}


def test_bound_data(tmp_path: Path) -> None:
    session = Session(cwd=tmp_path)
    session.bind("people", DATA / "people.csv")
    text = (
        'private people = bound("people") described by {age: 0..99} protecting rows budget epsilon 60\n'
        "release n = {{ select count(*) from people with epsilon 60 }}\n"
    )
    assert session.attempt(Source("program.jst", text)).released == {"n": 300.0}


def test_what_was_released_before_a_refusal_stays(tmp_path: Path) -> None:
    result = attempt(tmp_path, "release a = 1\nprint(2)\nt = table([{a: 0}])\nx = 1 / t[0].a\nrelease b = 3\n")
    assert kinds(result) == ["ValueError"]
    assert result.released == {"a": 1.0}
    assert result.output == ["2"]


def test_a_refused_program_spends_what_it_had_spent(tmp_path: Path) -> None:
    text = (
        "private c = counts([3, 4]) protecting rows budget epsilon 1\n"
        "n = {{ select sum(values) from c with epsilon 0.75 }}\n"
        "m = {{ select sum(values) from c with epsilon (0.75 if n > -1e6 else 0.1) }}\n"
    )
    result = attempt(tmp_path, text)
    assert kinds(result) == ["BudgetExceeded"]
    assert result.budget == {"c": {"epsilon": {"total": "1", "spent": "0.75"}}}


def test_every_error_of_a_program_is_told_at_once(tmp_path: Path) -> None:
    text = (
        "private c = counts([3, 4]) protecting rows budget epsilon 1\n"
        "print(c)\n"
        "x = nowhere\n"
        "n = {{ select sum(values) from c with epsilon 0 }}\n"
    )
    assert sorted(kinds(attempt(tmp_path, text))) == ["BadAmount", "NameError", "PrivateValue"]


def test_run_raises_what_attempt_tells(tmp_path: Path) -> None:
    program = tmp_path / "p.jst"
    program.write_text("x = 1 / 0\n", encoding="utf-8")
    with pytest.raises(Refusal) as caught:
        Session(cwd=tmp_path).run(program)
    assert caught.value.first.kind == "ValueError"
