"""The extension of VS Code: its parts fit each other and the language. A real core opens it in `npm run session`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from jostle.source import Source
from jostle.tools.session import Session
from jostle.version import __version__

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "editors" / "vscode"
PACKAGE: dict[str, Any] = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
SNIPPETS: dict[str, Any] = json.loads((FOLDER / "snippets" / "jostle.json").read_text(encoding="utf-8"))
DECLARED = 'private people = table("p.csv") described by {age: 0..9, city: {"A"}} protecting rows budget epsilon 1\n'
DECLARED += "public_data = [counts([1, 2])]\n"


def test_the_extension_is_of_this_version_and_whole() -> None:
    assert PACKAGE["version"] == __version__
    commands = {one["command"] for one in PACKAGE["contributes"]["commands"]}
    script = (FOLDER / "extension.js").read_text(encoding="utf-8")
    assert commands == set(re.findall(r'"(jostle\.\w+)": ', script))
    paths = [one["path"] for kind in ("grammars", "snippets") for one in PACKAGE["contributes"][kind]]
    made = [path for path in (*paths, PACKAGE["main"]) if not (FOLDER / path).exists() or "/dist/" in path]
    assert all(path in PACKAGE["scripts"]["build"] for path in (path.removeprefix("./") for path in made))
    assert "jostle textmate > dist/jostle.tmLanguage.json" in PACKAGE["scripts"]["build"]
    json.loads((FOLDER / "language-configuration.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(SNIPPETS))
def test_a_snippet_is_a_program_with_its_first_words(name: str, tmp_path: Path) -> None:
    text = "\n".join(SNIPPETS[name]["body"])
    text = re.sub(r"\$\{\d+\|([^,|]*)[^}]*\}", r"\1", text)
    text = re.sub(r"\$\{\d+:((?:[^{}]|\{[^{}]*\})*)\}", r"\1", text)
    text = re.sub(r"\$0", "x = 1" if text.rstrip().endswith(":\n    $0") else "", text)
    given = "" if name == "Private table" else DECLARED
    if text.startswith("{{"):
        text = f"n = {text}"
    program = Source(str(tmp_path / "p.jst"), f"{given}{text}\n")
    assert [str(fault) for fault in Session(cwd=tmp_path).check(program)] == []
