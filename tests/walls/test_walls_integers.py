"""Conversions of numbers to integers of a fixed width: in the trusted rooms none but those of `jostle/integers.py`."""

from __future__ import annotations

import ast
from pathlib import Path

from package_code import files, nodes, shown

INTEGERS = {"int", "int8", "int16", "int32", "int64", "intp"}  # unsigned ones are words of noise and of hashes
BUILDERS = {"array", "asarray", "fromiter", "ascontiguousarray", "asanyarray"}
TRUSTED = ("privacy", "engine", "readers", "speed", "backends", "optional.py")


def is_integer(node: ast.AST) -> bool:
    """Whether an expression names an integer type of NumPy: `np.int64`, `int`, `"int64"`, `"<i8"`."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value.lstrip("<>=").rstrip("0123456789") in ("i", "int")
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in INTEGERS


def converts(node: ast.AST) -> bool:
    """Whether a call makes integers of a fixed width of something that is no literal."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    kinds = [keyword.value for keyword in node.keywords if keyword.arg == "dtype"]
    if node.func.attr == "astype":
        return any(map(is_integer, kinds + node.args[:1]))
    if node.func.attr in BUILDERS:
        return any(map(is_integer, kinds + node.args[1:2]))
    bare = node.func.attr in INTEGERS and ast.unparse(node.func.value) in ("np", "numpy")
    return bare and bool(node.args) and not isinstance(node.args[0], ast.Constant | ast.BinOp)  # `np.int64(x)`


def conversions(path: Path) -> list[str]:
    return [f"{shown(path)}:{node.lineno}" for node in nodes(path) if converts(node)]  # type: ignore[attr-defined]


def test_exact_numbers_get_their_width_in_one_place() -> None:
    assert [place for path in files(*TRUSTED) for place in conversions(path)] == []


def test_the_wall_sees_conversions() -> None:
    seen = (
        "x.astype(np.int64)", "x.astype('int32')", "x.astype(int)", "np.asarray(x, dtype=np.int64)",
        "np.array(x, np.int64)", "np.fromiter(x, dtype=int)", "np.int64(x)", "x.astype(dtype=np.intp)",
    )  # fmt: skip
    for line in (*seen, "np.int64(0)", "np.zeros(3, dtype=np.int64)", "x.astype(float)", "np.asarray(x, dtype=object)"):
        tree = ast.parse(line)
        found = [n for n in ast.walk(tree) if converts(n)]
        assert bool(found) == (line in seen), line
