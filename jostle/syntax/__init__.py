"""From text to tree: the layout, the parser and its messages, and the frozen nodes.

Importing this package is cheap; Lark is imported with the first parse. It knows no meanings: names, labels and
amounts are for `check` and `run`.
"""

from __future__ import annotations

from jostle.source import Source
from jostle.syntax import nodes

__all__ = ["incomplete", "nodes", "parse", "parse_module"]


def parse(source: Source, *, interactive: bool = False) -> nodes.Program:
    """The tree of a program; see `jostle.syntax.parser.parse`. Raises Refusal (SyntaxError, RecursionLimit)."""
    from jostle.syntax import parser

    return parser.parse(source, interactive=interactive)


def parse_module(source: Source) -> nodes.Program:
    """The tree of a module of the library; see `jostle.syntax.parser.parse_module`."""
    from jostle.syntax import parser

    return parser.parse_module(source)


def incomplete(text: str) -> bool:
    """Whether `text` is a good beginning that needs more lines; see `jostle.syntax.parser.incomplete`."""
    from jostle.syntax import parser

    return parser.incomplete(text)
