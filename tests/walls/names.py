"""Counts names that say what happened to a thing instead of what it is.

`python tests/walls/names.py` prints them by file. A name counts when it is one of `NAMES`, with or without
underscores around it. Two figures are printed: the names bound by assignment (also by `for`, `with`, `:=` and
comprehensions), and all bindings, which adds parameters, attributes, definitions, modules, exceptions and patterns.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from counts import PARTICIPLES

NAMES = frozenset([*PARTICIPLES, "named", "listed", "chosen", "moved"])
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
OPTIONAL = (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)
PACKAGE = Path(__file__).resolve().parents[2] / "jostle"


def bindings(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Every name that the code of a file binds, and whether by assignment."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, True
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, False
        elif isinstance(node, ast.arg):
            yield node.arg, False
        elif isinstance(node, DEFINITIONS) or (isinstance(node, OPTIONAL) and node.name):
            yield str(node.name), False
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname, False


def participles(path: Path) -> Counter[str]:
    """How often the file binds each kind: `assigned` and `all`."""
    counts: Counter[str] = Counter(all=path.stem.strip("_") in NAMES)
    for name, by_assignment in bindings(ast.parse(path.read_text(encoding="utf-8"))):
        if name.strip("_") in NAMES:
            counts["all"] += 1
            counts["assigned"] += by_assignment
    return counts


def main(package: Path) -> None:
    total: Counter[str] = Counter()
    for path in sorted(package.rglob("*.py")):
        counts = participles(path)
        total += counts
        if counts["all"]:
            print(f"{counts['assigned']:5d} {counts['all']:5d}  {path.relative_to(package).as_posix()}")
    print(f"{total['assigned']:5d} {total['all']:5d}  in total: assigned, all")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE)
