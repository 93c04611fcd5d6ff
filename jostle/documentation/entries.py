"""What is said of a name: entries of what is built in, of the words of the language, and of the library.

Examples are programs in the folder `examples`, a comment of names above the lines that show them: `language`, `queries`
and `words`, and one of each module. A function of the library costs something where it measures, or calls what
measures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path

from msgspec import Struct

from jostle import resources
from jostle.language.aggregates import AGGREGATES, DISTINCT
from jostle.language.builtins import BUILTINS
from jostle.language.facts import Builtin, Effect, Gives
from jostle.language.row_functions import ROW_FUNCTIONS
from jostle.source import Source, Span
from jostle.syntax import nodes as n
from jostle.syntax import parse
from jostle.syntax.walk import every


class Documentation(Struct, frozen=True):
    """One meaning of a name.

    `kind`: "function", "constant", "domain", "aggregate", "word", "module", or what a module defines ("function",
    "Option", "value"); `usage`: how it is written; `parameters`: those of a function, as they are written; `price`:
    what it costs, in words; `about`: one sentence; `more`: the rest of what its author says; `example`: lines of a
    program, below `given()` and, for a name of a module, below its `use`; `module`: the module that brings it; `span`:
    where a module defines it.
    """

    name: str
    kind: str
    usage: str
    about: str
    price: str = ""
    example: str = ""
    module: str = ""
    more: str = ""
    parameters: tuple[str, ...] = ()
    span: Span | None = None

    @property
    def program(self) -> str:
        """The example for people: `assert f(x) == y` is written as `f(x)  # y`."""
        return re.sub(r"^assert (.+) == (.+)$", r"\1  # \2", self.example, flags=re.MULTILINE)

    def text(self, width: int = 100) -> str:
        """The entry for a terminal: usage, sentence, what kind it is, price, example."""
        from textwrap import fill

        home = f", of `use {self.module}`" if self.module else ""
        kind = f"{self.kind}{home}" + (f"; {self.price}" if self.price else "")
        lines = [fill(self.usage, width, subsequent_indent="    ")]
        parts = filter(None, (self.about, kind))
        lines += [fill(words, width, initial_indent="  ", subsequent_indent="  ") for words in parts]
        return "\n".join([*lines, *(f"    {line}" for line in self.program.splitlines())])

    @property
    def markdown(self) -> str:
        """The entry as Markdown, for editors and notebooks."""
        home = f", of `use {self.module}`" if self.module else ""
        parts = [f"```jostle\n{self.usage}\n```", f"{self.about}", f"*{self.kind}{home}*" + f"; {self.price}"]
        parts[2] = parts[2] if self.price else parts[2].removesuffix("; ")
        parts += [f"```jostle\n{self.program}\n```"] if self.example else []
        return "\n\n".join(filter(None, parts))


_FOLDER = Path(__file__).with_name("examples")
_BLOCK = re.compile(r"# ([\w ]+)\n((?:.+\n)+)")


def given() -> str:
    """The declarations that every example stands below."""
    return (_FOLDER / "given.jst").read_text(encoding="utf-8")


def programs() -> dict[str, str]:
    """The programs of all examples, whole, by the names of their files."""
    files = sorted(path for path in _FOLDER.glob("*.jst") if path.stem != "given")
    return {path.stem: given() + path.read_text(encoding="utf-8") for path in files}


@cache
def examples(file: str) -> dict[str, str]:
    """The examples of one file by name; none where there is no such file."""
    path = _FOLDER / f"{file}.jst"
    blocks = _BLOCK.findall(path.read_text(encoding="utf-8")) if path.is_file() else []
    return {name: lines.rstrip("\n") for names, lines in blocks for name in names.split()}


_PRICES = {
    Effect.PURE: "free",
    Effect.MEASURES: "costs its `epsilon`, else what is left of the allotment; free on public data",
    Effect.TRANSFORMS: "free; what is measured of it is charged to its source",
    Effect.SCORES: "free until `laplace`, `noisy_max` or `exp_mech` measures it",
    Effect.DECLARES: "free; opens a source",
}
_OF_ITS_OWN = {
    Gives.EXPLODED: "free; what is measured of it costs as many times as the lists are long",
    Gives.UNION: "free; what is measured of it costs as often as its source is in it",
    Gives.CHOICE: "free; a call costs what its allotment says, features included",
    Gives.ADVISOR: "free; a call costs what its allotment says, features included",
}


def builtins() -> Iterator[Documentation]:
    for name, row in BUILTINS.items():
        example = examples(row.module or "language").get(name, "")
        rows = " Rows have it too." if name in ROW_FUNCTIONS else ""
        within = row.usage[len(name) + 1 : -1]
        parameters = tuple(p for p in re.split(r", (?![^\[]*\])", within) if p not in ("", "*"))
        yield Documentation(
            name, _kind(row), row.usage, row.about + rows, _price(row), example, row.module, parameters=parameters
        )  # fmt: skip


def aggregates() -> Iterator[Documentation]:
    for row in (*AGGREGATES.values(), *DISTINCT.values()):
        bounded = " What it is of needs public bounds." if row.bounded else ""
        parameters = tuple(re.sub(r"^.*\(|\)$", "", row.usage).split(", "))
        yield Documentation(
            row.name, "aggregate", row.usage, row.about + bounded, "costs an equal part of its select's amount",
            examples("queries").get(row.name, ""), parameters=parameters,
        )  # fmt: skip


def _kind(row: Builtin) -> str:
    if row.signature is None:
        return "constant" if row.gives is Gives.CONSTANT else "domain"
    return {Effect.MEASURES: "measurement", Effect.TRANSFORMS: "transformation", Effect.SCORES: "score"}.get(
        row.effect, "function"
    )


def _price(row: Builtin) -> str:
    return "" if row.signature is None else _OF_ITS_OWN.get(row.gives, _PRICES[row.effect])


def words() -> Iterator[Documentation]:
    """An entry for each word, by `words.toml`."""
    programs = examples("words")
    for name, row in table("words").items():
        price = row.get("price", "")
        yield Documentation(name, "word", row["usage"], row["about"], price, programs.get(name, ""))


@cache
def table(name: str) -> dict[str, dict[str, str]]:
    """A table of texts that stands beside this file, by its sections."""
    import tomllib

    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))


# The end of the first sentence: a point before a capital, or before nothing.
_SENTENCE = re.compile(r"\.(?=\s+[A-Z`0-9]|\s*$)")
_RULE = re.compile(r" -{5,}$")  # a comment that heads a section of its file


def modules() -> Iterator[Documentation]:
    """An entry for each module, and for each name that it defines and a program may use."""
    for name in resources.library():
        tree = _tree(name)
        source = tree.span.source
        about, more = _about(source.text, 0)
        start = Span(source, 1, 1, 1, 1)
        yield Documentation(name, "module", f"use {name}", about, "free", f"use {name}", more=more, span=start)
        for definition in tree.body:
            if isinstance(definition, n.Def | n.Assign) and not definition.name.startswith("_"):
                yield _entry(name, definition)


def _entry(module: str, definition: n.Def | n.Assign) -> Documentation:
    source = definition.span.source
    about, more = _about(source.text, definition.span.line - 1)
    parameters: tuple[str, ...] = ()
    kind = "value"
    if isinstance(definition, n.Def):
        kind = "function"
        parameters = tuple(
            param.name if param.default is None else f"{param.name} = {param.default.span.text}"
            for param in definition.params
        )
    elif isinstance(definition.value, n.Part):
        kind = definition.value.kind
    usage = f"{definition.name}({', '.join(parameters)})" if kind == "function" else definition.name
    price = "free"
    if (module, definition.name) in _charging():
        own = "epsilon" in parameters
        price = "costs its `epsilon`" if own else "costs what is left of the allotment that it is called in"
        price += "; free on public data"
    return Documentation(
        definition.name, kind, usage, about, price if kind != "value" else "",
        examples(module).get(definition.name, ""), module, more, parameters, definition.span,
    )  # fmt: skip


@cache
def _tree(module: str) -> n.Program:
    path = resources.folder("stdlib") / f"{module}.jst"
    return parse(Source(str(path), path.read_text(encoding="utf-8")))


def _about(text: str, line: int) -> tuple[str, str]:
    """The first sentence, and the rest, of the comment on the block in which a line stands.

    A block without one belongs to the last comment before it that heads no definitions of its own.
    """
    *_, block = (block for block in _blocks(text) if block.line <= line)
    words = block.words if block.commented else block.heading
    end = _SENTENCE.search(words)
    return (words[: end.end()], words[end.end() :].strip()) if end else (words, "")


class _Block(Struct, frozen=True):
    """Lines between empty ones: the first of them, the words of the comment that they open with, what heads them."""

    line: int
    commented: bool
    words: str
    heading: str


@cache
def _blocks(text: str) -> tuple[_Block, ...]:
    blocks: list[_Block] = []
    heading = ""
    for block in re.finditer(r"(?:.*\S.*\n?)+", text):
        lines = block[0].rstrip("\n").split("\n")
        comment = list(takewhile(lambda line: line.startswith("#"), lines))
        words = " ".join(_RULE.sub("", line.lstrip("# ")) for line in comment if ":" in line or not _RULE.search(line))
        blocks.append(_Block(text.count("\n", 0, block.start()), bool(comment), words.strip(), heading))
        if comment and blocks[1:]:
            defines = any(not line.startswith("external ") for line in lines[len(comment) :])
            heading = "" if defines else words.strip()
    return tuple(blocks)


@cache
def _charging() -> frozenset[tuple[str, str]]:
    """The definitions of the library, by module and name, in which something is measured."""
    bodies = {(m, d.name): d for m in resources.library() for d in _tree(m).body if isinstance(d, n.Def | n.Assign)}
    homes = {m: _homes(m) for m in resources.library()}
    calls: dict[tuple[str, str], set[tuple[str, str]]] = {}
    charging: set[tuple[str, str]] = set()
    for key, body in bodies.items():
        used = [node.id for node in every(body) if isinstance(node, n.Name)]
        calls[key] = {homes[key[0]][name] for name in used if name in homes[key[0]]}
        own = {name for name in used if name in BUILTINS and name not in homes[key[0]]}
        if any(isinstance(node, n.Query) for node in every(body)) or any(
            BUILTINS[name].effect is Effect.MEASURES for name in own
        ):
            charging.add(key)
    while more := {key for key, called in calls.items() if key not in charging and called & charging}:
        charging |= more
    return frozenset(charging)


def _homes(module: str, around: tuple[str, ...] = ()) -> dict[str, tuple[str, str]]:
    """The definitions that names mean in a module: its own, and those of the modules that it uses."""
    homes: dict[str, tuple[str, str]] = {}
    body = _tree(module).body if module not in around else ()
    for statement in body:
        if isinstance(statement, n.Use) and ".".join(statement.path) in resources.library():
            homes = _homes(".".join(statement.path), (*around, module)) | homes
    for statement in body:
        if isinstance(statement, n.Def | n.Assign):
            homes[statement.name] = (module, statement.name)
    return homes
