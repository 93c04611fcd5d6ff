"""Figures of the house: lines, import closures, circles with typing imports, `Any` and complexity.

`python tests/walls/rings.py` prints them, and the files of the core. With `--write` it writes the reviewer's list of
files anew (`docs/privacy/review.md`).
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable

from package_code import HERE, ROOT, files, imports, nodes, shown

CORE = ("jostle.privacy.kernel.kernel",)
TRUSTED = ("jostle.privacy", "jostle.engine")
EVERYDAY = (
    "kernel.kernel", "reading.vault", "reading.minting", "transformations.transform", "measurements.selects",
    "measurements.cubes", *(f"measurements.aggregates.{name}" for name in ("sums", "quantile")),
)  # fmt: skip
"""Of `privacy`, with the plain engine: what counts, sums, means, quantiles and histograms begin with."""
BRANCHES = (
    ast.If, ast.For, ast.While, ast.ExceptHandler, ast.With, ast.IfExp, ast.comprehension, ast.Assert, ast.match_case,
)  # fmt: skip


def loads(typing: bool) -> dict[str, set[str]]:
    """The modules of the package that each module imports, also inside functions; with `typing`, for types too."""
    found: dict[str, set[str]] = {}
    for path in files():
        mine = set()
        for one in imports(path):
            if typing or not one.typing_only:
                mine |= {name for name in (one.name, one.name.rpartition(".")[0]) if name in HERE.trees}
        module = ".".join(path.relative_to(HERE.root).with_suffix("").parts).removesuffix(".__init__")
        found[module] = mine - {module}
    return found


def closure(starts: Iterable[str], graph: dict[str, set[str]]) -> set[str]:
    waiting, reached = list(starts), set[str]()
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += graph[module]
    return reached


def under(*parts: str) -> list[str]:
    return [m for m in HERE.trees if any(m == part or m.startswith(f"{part}.") for part in parts)]


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Sets of files that import one another; a package's `__init__` is none of its own."""
    packages = {m for m in graph if HERE.path(m).name == "__init__.py"}
    below = {m: closure(graph[m] - packages, {k: v - packages for k, v in graph.items()}) for m in graph}
    return [set(c) for c in {frozenset(o for o in below[m] if m in below[o]) for m in graph} if len(c) > 1]


def complexity(function: ast.AST) -> int:
    return 1 + sum(
        len(n.values) - 1 if isinstance(n, ast.BoolOp) else isinstance(n, BRANCHES) for n in ast.walk(function)
    )


def lines_with_names_for_any() -> int:
    """Lines that say `Any` by another name, such as `Value = Any`: of these a type checker knows no more."""
    given = {}
    for path in files():
        module = ".".join(path.relative_to(HERE.root).with_suffix("").parts).removesuffix(".__init__")
        given[module] = set(re.findall(r"^(\w+) = Any$", path.read_text(encoding="utf-8"), re.MULTILINE))
    many = 0
    for path in files():
        module = ".".join(path.relative_to(HERE.root).with_suffix("").parts).removesuffix(".__init__")
        brought = [n for n in nodes(path) if isinstance(n, ast.ImportFrom)]
        names = given[module] | {a.name for n in brought for a in n.names if a.name in given.get(n.module or "", ())}
        word = re.compile(rf"\b({'|'.join(names)})\b") if names else None
        for line in path.read_text(encoding="utf-8").splitlines() if word else ():
            plain = line.lstrip().startswith(("from", "import")) or line.endswith(" = Any")
            many += bool(word and word.search(line)) and not plain
    return many


def figures() -> dict[str, int]:
    graph = loads(typing=False)
    texts = [path.read_text(encoding="utf-8").splitlines() for path in files()]
    functions = [n for path in files() for n in nodes(path) if isinstance(n, ast.FunctionDef)]
    return {
        "lines": sum(map(len, texts)),
        "files": len(texts),
        "lines that the kernel imports": HERE.lines(closure(CORE, graph)),
        "lines that privacy and engine import": HERE.lines(closure(under(*TRUSTED), graph)),
        "lines that everyday queries import": HERE.lines(
            closure([*(f"jostle.privacy.{name}" for name in EVERYDAY), "jostle.engine.duckdb.engine"], graph)
        ),
        "circles of files, imports for types counted": len(circles(loads(typing=True))),
        "lines with Any": sum(
            bool(re.search(r"\bAny\b", line)) and not line.lstrip().startswith(("from", "import"))
            for text in texts for line in text
        ),
        "lines with a name for Any": lines_with_names_for_any(),
        "complexity of a function": max(map(complexity, functions)),
        "participle names": sum(HERE.participles().values()),
        "functions of one name in run and check": len(HERE.mirrored()),
    }  # fmt: skip


# What a reviewer reads ---------------------------------------------------------------------------

REVIEW = ROOT / "docs" / "privacy" / "review.md"
PARTS = (
    ("The core", ("privacy.kernel", "accounting", "privacy.mechanisms", "")),
    ("What is publicly known of a question", ("plan", "language", "")),
    ("The engine", ("engine",)),
    ("What reads, and what is opened", ("privacy.kernel", "privacy.reading")),
    ("Transformations, with their stability", ("privacy.transformations",)),
    ("Mechanisms beside the core's", ("privacy.mechanisms", "accounting")),
    ("Functions of one private row", ("privacy.rows",)),
    ("Scores, with their sensitivity", ("privacy.scores",)),
    ("Measurements", ("privacy.measurements",)),
    ("Registered data", ("privacy.ledger",)),
)
"""The parts of the list in order, and the rooms that each takes in; of the first only what the kernel imports."""
_ROW = re.compile(r"^\| `(\S+)` \| ([\d,]+) \|", re.MULTILINE)


def reading_order() -> list[tuple[str, list[str]]]:
    """All trusted files in parts; in each a file stands after those that it imports, where it can."""
    graph = loads(typing=False)
    left = {m for m in closure(under(*TRUSTED), graph) if HERE.path(m).read_text(encoding="utf-8").strip()}
    core, parts = closure(CORE, graph), []
    for title, rooms in PARTS:
        names = {m for m in left if any(_is_in(m, room) for room in rooms) and (title != PARTS[0][0] or m in core)}
        parts.append((title, sorted(names, key=lambda m: (len(closure([m], graph) & names), m))))
        left -= names
    assert not left, left
    return parts


def _is_in(module: str, room: str) -> bool:
    return module.startswith(f"jostle.{room}.") or module == f"jostle.{room}" or (not room and module.count(".") == 1)


def review() -> str:
    """The list as it stands in the page."""
    lines = []
    for title, modules in reading_order():
        lines += [f"### {title}: {HERE.lines(modules):,} lines", "", "| file | lines | |", "|---|---|---|"]
        for module in modules:
            about = (ast.get_docstring(HERE.trees[module]) or "").partition("\n")[0]
            lines.append(
                f"| `{shown(HERE.path(module))}` | {HERE.lines([module]):,} | {about.replace('|', chr(92) + '|')} |"
            )
        lines.append("")
    return "\n".join(lines)


def listed() -> dict[str, int]:
    """The files that the page names, with their lines."""
    rows = _ROW.findall(REVIEW.read_text(encoding="utf-8"))
    return {file: int(many.replace(",", "")) for file, many in rows}


def main() -> None:
    if "--write" in sys.argv:
        before, mark, _ = REVIEW.read_text(encoding="utf-8").partition("## The files\n")
        REVIEW.write_text(f"{before}{mark}\n{review()}", encoding="utf-8")
        return
    for name, figure in figures().items():
        print(f"{figure:7,}  {name}")
    for module in sorted(closure(CORE, loads(typing=False))):
        print(f"{HERE.lines([module]):7,}  {shown(HERE.path(module))}")


if __name__ == "__main__":
    main()
