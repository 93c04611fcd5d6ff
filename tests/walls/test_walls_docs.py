"""The pages name files, folders and functions that exist; `NAME` in a path stands for any."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from package_code import PACKAGE, ROOT, files, nodes, shown, tree

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FILE = re.compile(r"`((?:[\w.]+/)*\w+\.py)`")
FOLDER = re.compile(r"`((?:\w+/)+)`|`((?:jostle|tests|docs)/[\w/]+)`")
PLACED = re.compile(r"`(jostle/[\w/]+\.py)` `(\w+)`")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
ENGINES = "backends|engine|readers|speed"
PARTS = f"accounting|check|choice|kernels|language|optional|plan|privacy|run|syntax|tools|trace|{ENGINES}"
DOTTED = re.compile(rf"`(?:jostle\.)?((?:{PARTS})(?:\.[a-z]\w*)+)`")


def endings() -> tuple[set[str], set[str]]:
    """Files and folders of the checkout by every ending of their path that begins with a whole name."""
    folders = ("jostle", "stdlib", "programs", "tests", "docs", "grammar")
    paths = [p.relative_to(ROOT) for top in folders for p in (ROOT / top).rglob("*") if "__pycache__" not in p.parts]
    ends = [("/".join(p.parts[i:]), (ROOT / p).is_dir()) for p in paths for i in range(len(p.parts))]
    return {end for end, folder in ends if not folder}, {end for end, folder in ends if folder} | set(folders)


FILES, FOLDERS = endings()


def test_the_files_of_the_pages_exist() -> None:
    unknown: set[tuple[str, str]] = set()
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        names = {name for name in FILE.findall(text) if name not in FILES and "NAME" not in name}
        names |= {name for pair in FOLDER.findall(text) for name in pair if name and name.rstrip("/") not in FOLDERS}
        unknown |= {(shown(page), name) for name in names}
    assert unknown == set()


def names_of(path: Path) -> set[str]:
    """What a file defines at its top; nothing where there is none."""
    if not path.exists():
        return set()
    names: set[str] = set()
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


@pytest.mark.parametrize("page", ["one-query", "glossary"])
def test_what_stands_in_a_file_is_defined_there(page: str) -> None:
    placed = PLACED.findall((ROOT / "docs" / "contributing" / f"{page}.md").read_text(encoding="utf-8"))
    assert len(placed) > 12
    assert [(file, name) for file, name in placed if name not in names_of(ROOT / file)] == []


def test_the_tests_of_the_pages_exist() -> None:
    """What a page says of a fault or a promise is held by a test that it names."""
    named = [(shown(page), *test) for page in PAGES for test in TEST.findall(page.read_text(encoding="utf-8"))]
    assert len([page for page, *_ in named if page == "docs/experiments/faults.md"]) > 60
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for _, file, _ in named if (ROOT / file).exists()}
    assert [one for one in named if f"\ndef {one[2]}(" not in texts.get(one[1], "")] == []


def test_the_modules_of_the_docstrings_exist() -> None:
    """`privacy.rows.program` and `kernels.rowprograms` in docstrings are modules, or names in modules."""
    constants = [(p, n.value) for p in files() for n in nodes(p) if isinstance(n, ast.Constant)]
    dotted = {(shown(p), name) for p, text in constants if isinstance(text, str) for name in DOTTED.findall(text)}
    assert {(path, name) for path, name in dotted if not exists(name)} == set()


def exists(dotted: str) -> bool:
    place = PACKAGE.joinpath(*dotted.split("."))
    module = place.parent.with_suffix(".py")
    return place.is_dir() or place.with_suffix(".py").exists() or (module.exists() and place.name in names_of(module))


def test_it_would_see_what_is_gone() -> None:
    assert exists("privacy.rows.program") and exists("privacy.kernel.kernel.Kernel") and exists("kernels.rowprograms")
    assert not exists("kernels.rowkernels") and not exists("privacy.kernel.kernel.charge")
    assert "privacy/kernel/kernel.py" in FILES and "privacy/measure.py" not in FILES


def long_sentences(text: str, most: int = 30) -> list[str]:
    """The sentences of a page with more than `most` words; code, tables and headings aside; code is a word."""
    for pattern, by in (
        (r"(?ms)^```.*?^```", ""), (r"(?m)^(\||    |\t).*$", ""), (r"(?m)^#.*$", "."), (r"(?m)^\s*([-*]|\d+\.) ", ". "),
        (r"`[^`]*`", "X"), (r"\]\([^)]*\)", "]"), (r"\n\n", ".\n"),
    ):  # fmt: skip
        text = re.sub(pattern, by, text)
    sentences = re.split(r"[.!?:;](?=[\s*)\]\"]|$)", text)
    return [s.strip() for s in sentences if len([word for word in s.split() if re.search(r"\w", word)]) > most]


def test_sentences_of_the_manual_are_short() -> None:
    """Proofs, decisions and figures aside."""
    manual = [page for page in PAGES if page.parent.name not in ("privacy", "decisions", "experiments", "ideas")]
    assert len(manual) > 40
    assert {shown(page): long for page in manual if (long := long_sentences(page.read_text(encoding="utf-8")))} == {}
    assert long_sentences("A page. " + "word " * 31 + ".\n\n" + "word " * 30)
