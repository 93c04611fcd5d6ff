"""Habits that a reader relies on: short files that say what they are for, and no clause that swallows everything."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from package_code import ROOT, files, shown, tree

LONGEST = 500
# The last wall before a person: a fault is named by its class alone, since its message may hold private values.
MAY_CATCH_ALL = {"jostle/tools/faults.py", "jostle/tools/repl.py"}
MARKS = ("TO" + "DO", "FIX" + "ME", "X" * 3)


def written() -> list[Path]:
    """Every file that a person wrote."""
    found = [*files(), *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "docs").rglob("*.md"))]
    for folder, ending in (("stdlib", "*.jst"), ("programs", "*.jst"), ("grammar", "*.*"), ("tests", "*.jst")):
        found += sorted((ROOT / folder).rglob(ending))
    return [path for path in found if "__pycache__" not in path.parts]


@pytest.mark.parametrize("path", written(), ids=shown)
def test_no_file_is_long_or_unfinished(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    assert [mark for mark in MARKS if mark in text] == []


@pytest.mark.parametrize("path", files(), ids=shown)
def test_a_module_opens_with_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(tree(path)) or not path.read_text(encoding="utf-8").strip()


@pytest.mark.parametrize("path", files(), ids=shown)
def test_no_clause_swallows_everything(path: Path) -> None:
    if shown(path) in MAY_CATCH_ALL:
        return
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ExceptHandler):
            caught = ast.unparse(node.type) if node.type is not None else "everything"
            assert not {"Exception", "BaseException", "everything"} & set(caught.strip("()").split(", ")), (
                f"{shown(path)}:{node.lineno} catches {caught}"
            )


@pytest.mark.parametrize("path", files(), ids=shown)
def test_no_check_is_an_assert(path: Path) -> None:
    assert [n.lineno for n in ast.walk(tree(path)) if isinstance(n, ast.Assert)] == []
