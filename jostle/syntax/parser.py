"""Text to tree: `parse`, and `incomplete` for whoever reads a program line by line.

Whatever is wrong with a text leaves here as one `Refusal` with a place and a way out; no exception of the parser
generator, and no Python RecursionError, is ever seen outside.
"""

from __future__ import annotations

import threading
from functools import cache, lru_cache

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from jostle.diagnostics import Refusal, refuse
from jostle.source import Source
from jostle.syntax import nodes as n
from jostle.syntax.builder import Builder
from jostle.syntax.common_mistakes import after_parsing, explain
from jostle.syntax.foreign_lines import at_line
from jostle.syntax.layout import Layout, LayoutError, NoBlock, unclosed
from jostle.syntax.messages import ErrorPlace, from_layout, token_span
from jostle.syntax.sourceclauses import indented
from jostle.syntax.tables import load
from jostle.syntax.walk import too_deep

DEEPEST = 500  # nodes above a node
_TREES = 64  # are kept; nobody can change one

_lock = threading.Lock()  # one text at a time: the builder and the layout hold its state


@cache
def _parser(layout: Layout | None) -> tuple[Lark, Builder, Layout]:
    """The parser that lays out with this layout (one of its own, without), which each text begins anew."""
    builder, layout = Builder(), layout or Layout()
    return load(builder, layout), builder, layout


@lru_cache(maxsize=_TREES)
def parse(source: Source, *, interactive: bool = False) -> n.Program:
    """The tree of a program: of the last texts, which sessions share with their modules, the tree that was made before.

    `interactive` allows a statement that is only an expression (`x + 1`), whose value a REPL shows; elsewhere such a
    statement does nothing and is refused. Raises a Refusal of kind SyntaxError, or RecursionLimit for more than 200
    nested brackets and blocks or a tree of more than 500 levels.
    """
    with _lock:
        program = _parse(source)
    if (deep := too_deep(program, DEEPEST)) is not None:
        help = "give the inner parts names of their own, or write a list with `sum(…)`"
        raise refuse("RecursionLimit", "an expression with too many levels", deep.span, help=help)
    after_parsing(program, interactive=interactive)
    return program


def incomplete(text: str) -> bool:
    """Whether `text` is a good beginning that needs more lines.

    True while a bracket, a block or an expression is open at the end. A block by indentation and the clauses of
    `private` go on until an empty line: `"if x:\\n    f(x)"` is incomplete, with a newline after it it is whole.
    """
    source = Source("", text)
    with _lock:
        try:
            program = _parse(source)
        except Refusal as refusal:
            return isinstance(refusal, _Unfinished)
        open_block = len(_parser(None)[2].frames[0].columns) > 1
    if text.endswith("\n"):
        return False
    last = program.body[-1] if program.body else None
    return open_block or (isinstance(last, n.Private) and last.budget is None)


def parse_with(source: Source, layout: Layout) -> n.Program:
    """The tree of a program, its tokens laid out by a layout of the caller's own, which sees each of them.

    The parser of a layout is kept, so a caller has one layout for all texts.
    """
    with _lock:
        return _parse(source, layout)


class _Unfinished(Refusal):
    """The text ended where something had to follow."""


def _parse(source: Source, own: Layout | None = None) -> n.Program:
    lark, builder, layout = _parser(own)
    builder.source = source
    return _run(lark, layout, source)


def _run(lark: Lark, layout: Layout, source: Source) -> n.Program:
    try:
        program: n.Program = lark.parse(source.text)  # type: ignore[assignment]
    except LayoutError as error:
        foreign = at_line(source, token_span(error.token, source)) if error.token.startswith("{{") else None
        diagnostic = from_layout(error, source)
        foreign = foreign or (indented(source, diagnostic.span) if diagnostic.span is not None else None)
        if foreign is not None:
            raise Refusal(foreign) from None
        at_end = isinstance(error, NoBlock) and (error.token.end_pos or 0) >= len(source.text)
        raise (_Unfinished if at_end else Refusal)(diagnostic) from None
    except UnexpectedToken as error:
        at_end = error.token.type == "$END" or (error.token.type == "_NL" and not error.token)
        opener = layout.frames[-1].opener
        if at_end and opener is not None:
            raise _Unfinished(from_layout(unclosed(opener, None), source)) from None
        raise (_Unfinished if at_end else Refusal)(explain(ErrorPlace.of_token(error, layout, source))) from None
    except UnexpectedCharacters as error:
        raise Refusal(explain(ErrorPlace.of_character(error, layout, source))) from None
    except UnexpectedInput:
        raise refuse("SyntaxError", "the text does not parse") from None
    return program
