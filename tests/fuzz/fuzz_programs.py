# ruff: noqa: E501 (a form or a program stands on one line)
"""Programs that nobody would write, from a seed: mostly well formed, over all forms of the language.

A `Writer` fills in the forms of the grammar and keeps the names that it has bound, by the kind of value that they
hold; now and then it takes a name of another kind. It decides nothing about what should happen: the oracle does.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from fuzz_grammar import FORMS

HOLE = re.compile(r"<([a-z][a-z0-9 ]*)>")
FLAT = {kind: [f for f in forms if not HOLE.search(f)] or forms for kind, forms in FORMS.items()}
SHORT = ("spend", "spending", "amount", "base", "cubes", "table", "cube", "name", "edge", "protecting", "budget", "row",
         "select", "columns", "column", "call", "where", "groupby", "key", "condition", "on", "most", "mechanism")  # fmt: skip
WRONG = 0.02


class Writer:
    """Writes one program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names: dict[str, list[str]] = {}
        self.fresh = 0
        self.indent = 0
        self.lines: list[str] = []

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def new(self, kind: str) -> str:
        """A new name that will hold a value of this kind."""
        self.fresh += 1
        made = f"{kind[0]}{self.fresh}"
        self.names.setdefault(kind, []).append(made)
        return made

    def known(self, kind: str) -> str:
        if self.chance(WRONG):
            kind = self.random.choice(list(self.names) or [kind])
        return self.random.choice(self.names.get(kind) or self.names.get(kind.removeprefix("public ")) or ["n"])

    def make(self, kind: str, depth: int = 3) -> str:
        """An expression, or another piece, of this kind."""
        forms = FORMS[kind] if depth > 0 or (kind in SHORT and depth > -4) else FLAT[kind]
        return self.fill(self.random.choice(forms), depth)

    def fill(self, form: str, depth: int = 3) -> str:
        def piece(found: re.Match[str]) -> str:
            word = found.group(1)
            if word == "nothing":
                return ""
            if word == "fresh":
                return str(self.random.randrange(4))
            if word.startswith("known "):
                return self.known(word[6:])
            if word.startswith("new "):
                return self.new(word[4:])
            return self.make(word, depth - 1)

        return HOLE.sub(piece, form)

    def line(self, form: str, depth: int = 3) -> None:
        self.lines.append("    " * self.indent + re.sub(r"\s+", " ", self.fill(form, depth)).strip())

    # Statements ------------------------------------------------------------------------------------

    def statement(self, depth: int = 2) -> None:
        forms: list[tuple[float, Callable[[], None]]] = [
            (5, self._assign), (9, self._measure), (2, lambda: self.line("print(<anything>, <name>)")),
            (2, lambda: self.line(f"release r{self.random.randrange(9)} = <anything>")), (1, lambda: self.line("print(<name>)")),
            (1, lambda: self.line("assert <truth>")),
        ]  # fmt: skip
        if depth > 0:
            forms += [
                (1, lambda: self._block("if <truth>", depth)), (1.5, lambda: self._loop(depth)), (1.5, lambda: self._function(depth)),
                (2, lambda: self._block("<spending>", depth)), (0.5, self._choice),
            ]  # fmt: skip
        self.random.choices([f for _, f in forms], [w for w, _ in forms])[0]()

    def _bind(self, kind: str, form: str) -> None:
        value = self.fill(form)
        self.line(f"{self.new(kind)} = {value}")

    def _assign(self) -> None:
        kinds = ("number", "text", "items", "record", "table", "cube", "function", "any")
        kind = self.random.choice(kinds)
        self._bind(kind, "<anything>" if kind == "any" else f"<{kind}>")

    def _measure(self) -> None:
        self._bind("noisy", "<query>" if self.chance(0.6) else "<measured>")

    def _block(self, head: str, depth: int) -> None:
        braces = self.chance(0.5)
        self.line(head + (" {" if braces else ":"))
        self.indent += 1
        for _ in range(self.random.choice((1, 1, 2))):
            self.statement(depth - 1)
        self.indent -= 1
        if braces:
            self.line("}")

    def _loop(self, depth: int) -> None:
        over = self.fill(self.random.choice(("<items>", "1..3", "partition(<table>, <part>)", "<name>")))
        if "1e12" in over or "1e9" in over:
            over = "1..5"  # a loop without end is the user's own business
        self._block(f"for {self.random.choice(('i', 'i', 'key, part', 'a, b'))} in {over}", depth)

    def _function(self, depth: int) -> None:
        name = self.new("function")
        if self.chance(0.3):
            ends = " if i > 0 else i" if self.chance(0.7) else ""
            self.line(f"def {name}(i): return {name}(i {self.random.choice('+-')} 1){ends}")
            return
        outer, self.names = self.names, {kind: list(names) for kind, names in self.names.items()}
        self.names.setdefault("number", []).append("i")
        self._block(f"def {name}(i{self.random.choice(('', ', j = 2', ', epsilon = 1'))})", depth)
        self.names = outer

    def _choice(self) -> None:
        a, b, f, u, c = (self.new(kind) for kind in ("option", "option", "feature", "utility", "choice"))
        self.line(f"{a} = Option (data) {{ return <option> }}")
        self.line(f"{b} = Option (data) {{ return <option> }}")
        self.line(f"{f} = Feature (data) {{ return <featured> }}")
        way = self.random.choice(("", "", "by features", "by validation", "by margin"))
        scored = way in ("by validation", "by margin") and self.chance(0.8)
        self.line(f"{u} = Utility (data, answers) {{ return {'size(data.database)' if scored else '<utility>'} }}")
        informed = self.random.choice((f"{{{f}}}", "{}", f"{{{f}, {f}}}"))
        clauses = "" if scored and self.chance(0.5) else f"informed by {informed} trained on {{ <trained> }}"
        self.line(f"{c} = MkChoiceMaker among {{{a}, {b}}} {way} {clauses} <share> wrt {u}")
        self._bind("noisy", f"{c}({{database: <cubes>}}) <spend>")
        after = (
            "",
            "",
            f"print(explain({c}))",
            f"print({c})",
            f"p = {c}.pick({{database: <cubes>}})",
            f"print({a}, {c}.name)",
        )
        self.line(self.random.choice(after))

    def entries(self, statements: int) -> list[str]:
        """The program, a top-level statement at a time."""
        begins: list[int] = []
        for module in ("histograms", "pinq", "features"):
            if self.chance(0.6):
                self.line(f"use {module}")
        for source in ("<private table>", "<private cube>", *["<source>"] * self.random.choice((0, 1, 1))):
            if self.chance(0.9):
                self.line(source)
        for line in (
            "n = 3",
            's = "sex"',
            "<new items> = [1, 2, 3]",
            "<new function> = lambda i: i + 1",
            "t = <known table>",
            '<new record> = {a: 1, b: "x"}',
            "<new noisy> = {{ select count(*) as n from <base> with epsilon 0.01 }}",
        ):
            self.line(line)  # fmt: skip
        begins.extend(range(len(self.lines)))
        for _ in range(statements):
            begins.append(len(self.lines))
            self.statement()
        ends = [*begins[1:], len(self.lines)]
        return ["\n".join(self.lines[a:b]) + "\n" for a, b in zip(begins, ends, strict=True)]


def program(seed: int) -> str:
    """The program of this seed."""
    writer = Writer(seed)
    return "".join(writer.entries(writer.random.choice((1, 2, 3, 5))))


def conversation(seed: int) -> list[str]:
    """The entries of this seed, for a session that goes on after a refusal."""
    return Writer(seed).entries(12)
