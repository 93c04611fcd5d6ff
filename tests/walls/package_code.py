"""The package's files, read as code: what each imports, wherever in the file it does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from counts import Checkout

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "jostle"
HERE = Checkout(ROOT)


@dataclass(frozen=True)
class Import:
    """One imported name, in full (`jostle.privacy.kernel.kernel.Kernel`), and where."""

    name: str
    place: str
    typing_only: bool


@cache
def tree(path: Path) -> ast.Module:
    return HERE.trees[".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")]


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All of a file's nodes, walked once for the walls together."""
    return tuple(ast.walk(tree(path)))


def files(*under: str) -> list[Path]:
    """Python files of the package, in the given parts of it (all of it, without)."""
    if not under:
        return sorted(PACKAGE.rglob("*.py"))
    found: list[Path] = []
    for part in under:
        path = PACKAGE / part
        found += [path] if path.is_file() else sorted(path.rglob("*.py"))
    assert found, f"nothing under {under}"
    return found


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def imports(path: Path) -> tuple[Import, ...]:
    """Every import of a file, also inside functions and under TYPE_CHECKING."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[Import]:
    typing = {id(n) for branch in nodes(path) if _for_typing(branch) for n in ast.walk(branch)}
    file = shown(path)
    for node in nodes(path):
        if not isinstance(node, ast.Import | ast.ImportFrom | ast.Call):
            continue
        place = f"{file}:{node.lineno}"
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, place, id(node) in typing)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(path, node)
            for alias in node.names:
                yield Import(f"{base}.{alias.name}", place, id(node) in typing)
        elif isinstance(node, ast.Call) and _named(node.func) in ("__import__", "import_module"):
            first = node.args[0]
            if isinstance(first, ast.Constant):
                yield Import(str(first.value), place, False)
            elif isinstance(first, ast.JoinedStr) and isinstance(first.values[0], ast.Constant):
                yield Import(str(first.values[0].value).rstrip("."), place, False)
            else:
                yield Import("?", place, False)


def _absolute(path: Path, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = path.relative_to(ROOT).with_suffix("").parts
    base = parts[: len(parts) - node.level + (path.name == "__init__.py" and node.level > 1)]
    return ".".join([*base, *([node.module] if node.module else [])])


def _for_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and _named(node.test) == "TYPE_CHECKING"


def _named(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
