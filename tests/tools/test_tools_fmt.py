"""`jostle fmt` as a person calls it: files, folders, standard input, `--check`, and files it must not touch."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from jostle.tools.entry import main

UGLY, NEAT = "x=1\nif x==1 { y=2 }\n", "x = 1\nif x == 1: y = 2\n"


def test_a_file_is_rewritten_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.jst"
    path.write_text(UGLY)
    path.chmod(0o640)
    assert main(["fmt", str(path)]) == 0
    assert path.read_text() == NEAT and path.stat().st_mode & 0o777 == 0o640
    assert capsys.readouterr().out == f"{path}: formatted\n"
    assert main(["fmt", str(path)]) == 0
    assert capsys.readouterr().out == ""


def test_check_changes_nothing_and_says_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jst").write_text(UGLY)
    (tmp_path / "b.jst").write_text(NEAT)
    assert main(["fmt", "--check", str(tmp_path)]) == 1
    assert capsys.readouterr().out == f"{tmp_path / 'a.jst'}: would be formatted, lines 1 to 2\n"
    assert (tmp_path / "a.jst").read_text() == UGLY
    (tmp_path / "a.jst").write_text("x = 1\ny=2\n")
    assert main(["fmt", "--check", str(tmp_path / "a.jst")]) == 1
    assert capsys.readouterr().out.endswith("would be formatted, line 2\n")
    assert main(["fmt", "--check", str(tmp_path / "b.jst")]) == 0


def test_a_file_that_does_not_parse_is_left_and_the_others_are_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.jst").write_text("x = (1\n")
    (tmp_path / "b.jst").write_text(UGLY)
    assert main(["fmt", str(tmp_path)]) == 1
    assert (tmp_path / "a.jst").read_text() == "x = (1\n" and (tmp_path / "b.jst").read_text() == NEAT
    assert "SyntaxError" in capsys.readouterr().err


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "a.jst").write_text(UGLY)
    (tmp_path / "link.jst").symlink_to(tmp_path / "a.jst")
    assert main(["fmt", str(tmp_path / "link.jst")]) == 0
    assert (tmp_path / "link.jst").is_symlink() and (tmp_path / "a.jst").read_text() == NEAT
    assert sorted(os.listdir(tmp_path)) == ["a.jst", "link.jst"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(UGLY))
    assert main(["fmt", "-"]) == 0
    assert capsys.readouterr().out == NEAT
