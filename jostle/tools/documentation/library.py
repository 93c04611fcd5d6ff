"""The entries of the library: its modules, and what they define, from their comments and their trees.

A function costs something where it measures, or calls what measures: that is read off the tree, not stated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import takewhile

from msgspec import Struct

from jostle import resources
from jostle.language.builtins import BUILTINS
from jostle.language.facts import Effect
from jostle.source import Source, Span
from jostle.syntax import nodes as n
from jostle.syntax import parse
from jostle.syntax.walk import every
from jostle.tools.documentation.entry import Documentation
from jostle.tools.documentation.examples import examples

# The end of the first sentence: a point before a capital, or before nothing.
_SENTENCE = re.compile(r"\.(?=\s+[A-Z`0-9]|\s*$)")
_RULE = re.compile(r" -{5,}$")  # a comment that heads a section of its file


def modules() -> Iterator[Documentation]:
    """An entry for each module, and for each name that it defines and a program may use."""
    for name in names():
        tree = _tree(name)
        source = tree.span.source
        about, more = _told(source.text, 0)
        start = Span(source, 1, 1, 1, 1)
        yield Documentation(name, "module", f"use {name}", about, "free", f"use {name}", more=more, span=start)
        for definition in tree.body:
            if isinstance(definition, n.Def | n.Assign) and not definition.name.startswith("_"):
                yield _entry(name, definition)


@cache
def names() -> tuple[str, ...]:
    """The modules of the library."""
    return tuple(sorted(path.stem for path in resources.folder("stdlib").glob("*.jst")))


def _entry(module: str, definition: n.Def | n.Assign) -> Documentation:
    source = definition.span.source
    about, more = _told(source.text, definition.span.line - 1)
    parameters: tuple[str, ...] = ()
    kind = "value"
    if isinstance(definition, n.Def):
        kind = "function"
        parameters = tuple(
            param.name if param.default is None else f"{param.name} = {_written(param.default)}"
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


def _told(text: str, line: int) -> tuple[str, str]:
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


def _written(node: n.Expr) -> str:
    return node.span.source.line(node.span.line)[node.span.column - 1 : node.span.end_column - 1]


@cache
def _charging() -> frozenset[tuple[str, str]]:
    """The definitions of the library, by module and name, in which something is measured."""
    bodies = {(m, d.name): d for m in names() for d in _tree(m).body if isinstance(d, n.Def | n.Assign)}
    homes = {m: _homes(m) for m in names()}
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
    found: dict[str, tuple[str, str]] = {}
    body = _tree(module).body if module not in around else ()
    for statement in body:
        if isinstance(statement, n.Use) and ".".join(statement.path) in names():
            found = _homes(".".join(statement.path), (*around, module)) | found
    for statement in body:
        if isinstance(statement, n.Def | n.Assign):
            found[statement.name] = (module, statement.name)
    return found
