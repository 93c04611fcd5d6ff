"""The numbers that tell what shape the package has, each by the same rule before and after a change.

`python -m tests.walls.counts [CHECKOUT …]` prints one column for each checkout (this one, where none is named).
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

HANDLES = ("Table", "Cube", "Vectors", "Score", "Scores", "ColumnHandle", "Exposure")
PARTICIPLES = [
    "found", "made", "known", "said", "kept", "given", "asked", "held", "told", "met", "seen", "drawn", "taken",
    "wanted", "shown", "written",
]  # fmt: skip
GROUND = (
    "source", "resources", "noise_laws", "error_laws", "formulas", "diagnostics", "doubles", "events",
    "syntax", "language", "accounting", "plan", "privacy", "engine",
)  # fmt: skip
EMITS = ("emit", "emit_measure")


@dataclass(eq=False)
class Checkout:
    """One checkout's package, read as code."""

    root: Path

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        """The files of the package by module name, such as `jostle.privacy.kernel`."""
        found = {}
        for path in sorted((self.root / "jostle").rglob("*.py")):
            parts = path.relative_to(self.root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = ast.parse(path.read_text(encoding="utf-8"))
        return found

    def path(self, module: str) -> Path:
        base = self.root / Path(*module.split("."))
        inside = base / "__init__.py"
        return inside if inside.is_file() else base.with_suffix(".py")

    def lines(self, modules: Iterator[str] | set[str] | list[str]) -> int:
        return sum(len(self.path(module).read_text(encoding="utf-8").splitlines()) for module in modules)

    def under(self, *parts: str) -> list[str]:
        inside = tuple(f"jostle.{part}." for part in parts)
        return [m for m in self.trees if m.startswith(inside) or m in {f"jostle.{part}" for part in parts}]

    @cache  # noqa: B019 (a checkout lives as long as the walls)
    def imports(self, module: str) -> set[str]:
        """The modules of the package that a module loads, now or when one of its functions runs."""
        nodes = list(ast.walk(self.trees[module]))
        typing = {
            id(node)
            for branch in nodes
            if isinstance(branch, ast.If) and "TYPE_CHECKING" in ast.unparse(branch.test)
            for node in ast.walk(branch)
        }
        targets: set[str] = set()
        for node in nodes:
            if id(node) in typing:
                continue
            if isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                targets |= {node.module if f"{node.module}.{a.name}" not in self.trees else f"{node.module}.{a.name}"
                            for a in node.names}  # fmt: skip
        return {t for t in targets if t in self.trees and t != module}

    # The counts ------------------------------------------------------------------------------------

    def kernel_lines(self) -> int:
        return self.lines(self.under("privacy.kernel"))

    def privacy_lines(self) -> int:
        return self.lines(self.under("privacy"))

    def trusted_outside(self) -> int:
        """Lines of what `privacy` and `engine` load from above the ground, and of files that mint handles."""
        waiting, reached = self.under("privacy", "engine"), set()
        while waiting:
            for target in self.imports(waiting.pop()):
                part = target.split(".")[1] if "." in target else ""
                if part and part not in GROUND and target not in reached and self.trees[target].body:
                    reached.add(target)
                    waiting.append(target)
        minting = {module for module, _ in self.minting()}
        return self.lines(reached | minting)

    def minting(self) -> list[tuple[str, int]]:
        """Calls outside `privacy` of what makes a handle."""
        sites = []
        inside = set(self.under("privacy"))
        for module, tree in self.trees.items():
            handles = {
                alias.asname or alias.name for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jostle.privacy")
                for alias in node.names if alias.name in HANDLES
            }  # fmt: skip
            sites += [
                (module, node.lineno) for node in ast.walk(tree)
                if module not in inside and isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name) and node.func.id in handles
            ]  # fmt: skip
        return sites

    def charges(self) -> int:
        """Calls in `privacy` of a method that charges a meter of the kernel."""
        return sum(
            isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in ("charge", "_charge")
            and (ast.unparse(n.func.value).endswith("kernel") or n.func.attr == "_charge")
            for module in self.trees if module.startswith("jostle.privacy") for n in ast.walk(self.trees[module])
        )  # fmt: skip

    def emits(self) -> int:
        """Calls in `privacy` that emit an event."""
        calls = [n for module in self.trees if module.startswith("jostle.privacy") for n in ast.walk(self.trees[module])
                 if isinstance(n, ast.Call)]  # fmt: skip
        return sum(getattr(call.func, "attr", getattr(call.func, "id", "")) in EMITS for call in calls)

    def builtin_lists(self) -> list[tuple[str, int]]:
        """Collections and chains of comparisons that name built-ins: where a new one would have to be added."""
        names = self.builtins()
        elsewhere = self.under("kernels", "syntax", "trace", "privacy", "engine", "plan")
        return [(m, line) for m, tree in self.trees.items() if m not in elsewhere for line in _lists(tree, names)]

    def builtins(self) -> set[str]:
        """The names that every program knows, read from where the checkout has them."""
        if "jostle.language.builtins" in self.trees:
            tree = self.trees["jostle.language.builtins"]
            return {str(row.args[0].value) for row in _rows(tree) if isinstance(row.args[0], ast.Constant)}
        words = [n.value.value for n in self.trees["jostle.run.names"].body if isinstance(n, ast.Assign)
                 and isinstance(n.value, ast.Constant)]  # fmt: skip
        return set(str(words[0]).split())

    def mirrored(self) -> set[str]:
        """Functions of one name in `run` and in `check` that are longer than two statements; `check.dry` is the run's
        own interpreter, whose methods it overrides."""
        return self._functions("run") & self._functions("check", but="check.dry")

    def _functions(self, part: str, but: str = "none") -> set[str]:
        modules = {*self.under(part)} - {*self.under(but)}
        return {
            node.name.strip("_") for module in modules for node in ast.walk(self.trees[module])
            if isinstance(node, ast.FunctionDef) and len(node.body) > 2 and not node.name.startswith("__")
        }  # fmt: skip

    def rooms(self) -> int:
        """What stands directly under `privacy`."""
        return len({m.split(".")[2] for m in self.under("privacy") if m.count(".") >= 2})

    def floors(self) -> int:
        """The longest way down from room to room of `privacy`."""
        below: dict[str, set[str]] = {}
        for module in self.under("privacy"):
            if module.count(".") >= 2:
                room = module.split(".")[2]
                targets = {t.split(".")[2] for t in self.imports(module) if t.startswith("jostle.privacy.")}
                below.setdefault(room, set()).update(targets - {room})
        depth: dict[str, int] = {}

        def deep(room: str, above: tuple[str, ...]) -> int:
            if room not in depth:
                under = [deep(b, (*above, room)) for b in below.get(room, ()) if b not in above]
                depth[room] = 1 + max(under, default=0)
            return depth[room]

        return max((deep(room, ()) for room in below), default=0)

    def circles(self) -> list[set[str]]:
        """Sets of modules that load one another."""
        reach = {module: self.imports(module) for module in self.trees}
        closed: dict[str, set[str]] = {}
        for module in reach:
            seen, waiting = set(), [module]
            while waiting:
                for target in reach[waiting.pop()]:
                    if target not in seen:
                        seen.add(target)
                        waiting.append(target)
            closed[module] = seen
        circles = {frozenset(o for o in closed[m] if m in closed[o]) for m in closed if m in closed[m]}
        return [set(circle) for circle in circles]

    def participles(self) -> Counter[str]:
        """How often each participle is bound: as a variable, a parameter, a function or a loop's name."""
        bound: Counter[str] = Counter()
        for tree in self.trees.values():
            for node in ast.walk(tree):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    bound[node.id.strip("_")] += 1
                elif isinstance(node, ast.arg):
                    bound[node.arg.strip("_")] += 1
                elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                    bound[node.name.strip("_")] += 1
        return Counter({word: many for word, many in bound.items() if word in PARTICIPLES})

    def total(self) -> int:
        return self.lines(list(self.trees))


def _lists(tree: ast.Module, names: set[str]) -> Iterator[int]:
    """Lines of collections of texts, mostly of built-ins, and of tables written as one text."""
    inside: set[int] = set()
    for node in ast.walk(tree):
        if id(node) in inside:
            continue
        texts: list[str] = []
        if isinstance(node, ast.Dict):
            texts = [k.value for k in node.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
        elif isinstance(node, ast.List | ast.Tuple | ast.Set):
            texts = [e.value for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(" ") >= 20:
            texts = node.value.split() if sum(w in names for w in node.value.split()) > 50 else []
        if len(texts) >= 3 and 2 * sum(text in names for text in texts) > len(texts):
            inside |= {id(n) for n in ast.walk(node)}
            yield getattr(node, "lineno", 0)
    if _rows(tree):
        yield 1


def _rows(tree: ast.Module) -> list[ast.Call]:
    """The rows of the table of built-ins: calls of `row` at the top of a file."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "row"]


COUNTS: dict[str, Callable[[Checkout], object]] = {
    "lines of the privacy kernel": Checkout.kernel_lines,
    "lines of privacy": Checkout.privacy_lines,
    "lines that privacy rests on outside privacy and engine": Checkout.trusted_outside,
    "charge sites": Checkout.charges,
    "emit sites": Checkout.emits,
    "minting sites outside privacy": lambda c: len(c.minting()),
    "lists that name a built-in": lambda c: len(c.builtin_lists()),
    "mirrored pairs of run and check": lambda c: len(c.mirrored()),
    "rooms of privacy": Checkout.rooms,
    "floors of privacy": Checkout.floors,
    "import circles": lambda c: len(c.circles()),
    "participle names": lambda c: sum(c.participles().values()),
    "lines of jostle": Checkout.total,
}


def main(folders: list[str]) -> None:
    checkouts = [Checkout(Path(folder).resolve()) for folder in folders or [Path(__file__).parents[2]]]
    width = max(map(len, COUNTS))
    for name, count in COUNTS.items():
        print(f"{name:<{width}}  " + "  ".join(f"{count(checkout):>7}" for checkout in checkouts))


if __name__ == "__main__":
    main(sys.argv[1:])
