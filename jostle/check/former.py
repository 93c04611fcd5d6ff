"""Words of the version before: a program may write them for one version more, and a warning names today's.

A former word is put into today's before anything else looks at the tree, so that every pass knows one word. Of a
built-in the row of its name says it, of the library the tables here. A name that a program has defined, or a column,
is its own. What has gone into a module of the library is still known without `use`, with a hint.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from jostle.diagnostics import Diagnostic
from jostle.language.builtins import BUILTINS, TURNED
from jostle.language.forms import selects_rows
from jostle.records import replace
from jostle.source import Span
from jostle.syntax import nodes as n
from jostle.syntax.walk import every, rebuilt

KIND = "former-name"
"""The kind of these hints, which stop nothing."""

LIBRARY = {
    "most_right": "most_accurate", "made_mixture": "synthetic_mixture",
    "uncut_rows": "unbinned_rows", "ising_apart_fit": "ising_independent_fit",
    "pairwise_apart_fit": "pairwise_independent_fit",
}  # fmt: skip
"""Names of the standard library's modules."""

PARAMETERS = {
    ("cut", "chosen"): "selection", ("fw_step", "chosen"): "vertex", ("node_step", "chosen"): "vertex",
    ("grid_strategy", "wanted"): "cells", ("mwem_learn", "asked"): "query_numbers",
}  # fmt: skip
"""Parameters of its functions."""

OF_MODULES = {row.name for row in BUILTINS.values() if row.module}
"""Built-ins that a program has by `use` of their module, and had without in the version before."""

NAMES = LIBRARY | {row.former: row.name for row in BUILTINS.values() if row.former}
PARAMETERS |= {(row.name, p.former): p.name for row in BUILTINS.values() for p in row.parameters if p.former}
_PARAMETERS = {former for _, former in PARAMETERS}
_WORDS = re.compile(rf"\b(?:{'|'.join({*NAMES, *_PARAMETERS, *OF_MODULES, *TURNED})})\b")


_INDEX = re.compile(r"[\w`)\]]\[")


def may_be_in(program: n.Program) -> bool:
    """Whether a program has a word or a form that may be a former one."""
    text = program.span.source.text
    return (_WORDS.search(text) is not None or _INDEX.search(text) is not None) and any(map(_may_be, every(program)))


def _may_be(node: n.Node) -> bool:
    match node:
        case n.Name(id=name) | n.Attribute(name=name):
            return name in NAMES or name in OF_MODULES or name in TURNED
        case n.Keyword(name=name):
            return name in _PARAMETERS
        case n.Index():
            return selects_rows(node)
    return False


def hint(span: Span, former: str, today: str) -> Diagnostic:
    """The warning about a former word that works."""
    help = f"write `{today}`; the next version will not know `{former}`"
    return Diagnostic(KIND, f"`{former}` is called `{today}` now", span, "a former name", help)


def module_hint(span: Span, name: str) -> Diagnostic:
    """The warning about a built-in whose module the program does not use."""
    module = BUILTINS[name].module
    help = f"write `use {module}` above; the next version will not know `{name}` without"
    return Diagnostic(KIND, f"`{name}` is of the module `{module}`", span, "without its module", help)


def selection_hint(node: n.Index) -> Diagnostic:
    """The warning about rows that are chosen as `t[C]`."""
    help = "`t[C]` is for one version more; `t[a = v]`, a part of the partition by `a`, stays"
    return Diagnostic(KIND, f"write `where({_text(node.value)}, {_text(node.args[0])})`", node.span, "rows where", help)


def order(node: n.Call) -> tuple[str, str]:
    """The warning about a call whose first two arguments stand the other way round, and the way out."""
    first, second, *rest = map(_text, (*node.args, *node.keywords))
    name = _text(node.function)
    today = f"{name}({', '.join([second, first, *rest])})"
    return f"`{name}` takes what it reads first, here `{second}`", f"write `{today}`"


def _text(node: n.Node) -> str:
    """An expression as it is written, on one line and not at length."""
    span = node.span
    line = span.source.text.split("\n")[span.line - 1]
    return line[span.column - 1 : span.end_column - 1] if span.end_line == span.line else "…"


def renamed(tree: n.Program, words: Mapping[Span, tuple[str, str]]) -> n.Program:
    """A program with other words for the names, fields and parameters at these places."""

    def today(node: n.Node) -> n.Node:
        match node:
            case n.Name() if node.span in words:
                return replace(node, id=words[node.span][1])
            case n.Attribute() | n.Keyword() if node.span in words:
                return replace(node, name=words[node.span][1])
        return node

    return rebuilt(tree, today)
