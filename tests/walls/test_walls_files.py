"""Habits that a reader relies on: short files that say what they are for, and no clause that swallows everything."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from package_code import ROOT, files, nodes, shown, tree

LONGEST, WIDEST = 500, 120  # lines of a file, characters of a line
# The last wall before a person: a fault is named by its class alone, since its message may hold private values.
# And what one thread raises is raised again in the one that waits for it.
MAY_CATCH_ALL = {"jostle/tools/outlet.py", "jostle/tools/repl.py", "jostle/readers/limits.py"}
MARKS = ("TO" + "DO", "FIX" + "ME", "X" * 3)


def written() -> list[Path]:
    """Every file that a person wrote."""
    found = [*files(), *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "docs").rglob("*.md"))]
    for folder, ending in (("stdlib", "*.jst"), ("programs", "*.jst"), ("grammar", "*.*"), ("tests", "*.jst")):
        found += sorted((ROOT / folder).rglob(ending))
    return [path for path in found if "__pycache__" not in path.parts]


def test_no_file_is_long_or_unfinished() -> None:
    texts = {shown(path): path.read_text(encoding="utf-8") for path in written()}
    assert [name for name, text in texts.items() if len(text.splitlines()) > LONGEST] == []
    assert [(name, mark) for name, text in texts.items() for mark in MARKS if mark in text] == []


def test_no_line_of_the_library_is_wide() -> None:
    lines = [(path.name, line) for path in sorted((ROOT / "stdlib").glob("*.jst"))
             for line in path.read_text(encoding="utf-8").splitlines()]  # fmt: skip
    assert len(lines) > 2000 and [where for where in lines if len(where[1]) > WIDEST] == []


def test_a_module_opens_with_what_it_is_for() -> None:
    mute = [path for path in files() if not ast.get_docstring(tree(path))]
    assert [shown(path) for path in mute if path.read_text(encoding="utf-8").strip()] == []


def test_no_clause_swallows_everything() -> None:
    handlers = [(path, n) for path in files() for n in nodes(path) if isinstance(n, ast.ExceptHandler)]
    caught = [(f"{shown(p)}:{n.lineno}", ast.unparse(n.type) if n.type is not None else "everything")
              for p, n in handlers if shown(p) not in MAY_CATCH_ALL]  # fmt: skip
    all_of_them = {"Exception", "BaseException", "everything"}
    assert [(place, names) for place, names in caught if all_of_them & set(names.strip("()").split(", "))] == []


def test_no_check_is_an_assert() -> None:
    asserts = [(path, n) for path in files() for n in nodes(path) if isinstance(n, ast.Assert)]
    assert [f"{shown(path)}:{n.lineno}" for path, n in asserts] == []


def test_a_constant_of_a_module_has_one_value() -> None:
    """A second limit of the same name would stand for the first, in every function of the file."""
    again = []
    for path in files():
        values = [node for node in tree(path).body if isinstance(node, ast.Assign)]
        names = [n.id for one in values for target in one.targets for n in ast.walk(target) if isinstance(n, ast.Name)]
        again += [(shown(path), name) for name in set(names) if names.count(name) > 1]
    assert again == []


def test_a_check_loads_nothing_heavy() -> None:
    """NumPy alone takes as long as the check of a program."""
    code = "import sys; from jostle.tools.entry import main; main(['check', 'programs/first.jst']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    heavy = {"numpy", "scipy", "sklearn", "pandas", "pyarrow", "duckdb", "opendp"}
    assert "no errors" in done.stdout and heavy.isdisjoint(done.stdout.split())
