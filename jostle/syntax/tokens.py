"""The tokens of a text as the parser reads them, each with what it opens; the formatter writes from them.

The layout's marks (a statement ends, a block is indented) are kept with the token that follows them. Spaces and
comments are no tokens: they are what stands in the text between two of them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

from lark import Token
from msgspec import Struct, field

from jostle.source import Source
from jostle.syntax.builder import PARTS
from jostle.syntax.layout import ENDS_AN_EXPRESSION, Layout
from jostle.syntax.parser import parse_with

SPELLED = {"_GROUP": "groupby", "NULL": "missing", "JOINED": "+"}
OPERATORS = ("SLASH", "STAR", "ADD", "CARET")
MARKS = ("_NL", "_INDENT", "_DEDENT")
# Where a `{` belongs to a Feature, an Option or a Utility, this word stands before the bracket before it.
_PARTS = ("KIND", "_PREDICT")


class Piece(Struct):
    """A token of the text, from `start` to `end`, with the marks before it; without a `text` it is left out.

    `opens` is `block`, `set`, `bracket` or `query`; `part`: the block (in braces or indented after this colon) is that
    of a Feature, Option or Utility. `conditional`: an `else` that belongs to an expression.
    """

    kind: str
    text: str
    start: int
    end: int
    column: int
    marks: list[str] = field(default_factory=list)
    opens: str = ""
    closes: str = ""
    part: bool = False
    conditional: bool = False
    unary: bool = False  # a sign
    share: bool = False  # the bar of a share, `with 1/4`
    mate: int = -1  # the place of the bracket that closes or opens this one


class _Recorder(Layout):
    """A layout that remembers what went through it."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.pieces: list[Piece] = []
        self.tail: list[str] = []
        self._waiting: list[int] = []

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        self.pieces, self.tail, self._waiting = [], [], []
        for token in super().process(stream):
            self._record(token)
            yield token

    def _record(self, token: Token) -> None:
        if token.type in MARKS:
            self.tail.append(token.type)
            return
        start, at = token.start_pos or 0, len(self.pieces)
        end = token.end_pos if token.type == "NAME" and token.end_pos is not None else start + len(token)
        piece = Piece(token.type, self._spelling(token), start, end, (token.column or 1) - 1, self.tail)
        self.tail = []
        if token.type in ("LPAR", "LSQB", "LBRACE", "_LQUERY"):
            piece.opens = self.frames[-1].kind
            piece.part = piece.opens == "block" and self._is_part(at)
            self._waiting.append(at)
        elif token.type in ("RPAR", "RSQB", "_RBRACE", "_RQUERY"):
            piece.mate = self._waiting.pop()
            opener = self.pieces[piece.mate]
            opener.mate, piece.closes, piece.part = at, opener.opens, opener.part
            piece.text = piece.text if opener.text else ""
        elif token.type == "COLON":
            piece.part = self._is_part(at)
        elif token.type == "_ELSE":
            piece.conditional = self.frames[-1].conditional_else
        elif token.type == "ADD":
            piece.unary = not at or self.pieces[-1].kind not in ENDS_AN_EXPRESSION
        piece.share = token == "/" and [one.kind for one in self.pieces[-2:]] == ["_WITH", "NUMBER"]
        if token.type in OPERATORS and at > 1 and self.pieces[-2].share:
            self.pieces[-2].share = False  # `with 1 / 5 / n` calculates
        self.pieces.append(piece)

    def _spelling(self, token: Token) -> str:
        """How a token is written here: in its one spelling; empty where another token already says it."""
        before = (self.pieces[-1].kind, self.pieces[-1].text) if self.pieces else ("", "")
        match token.type:
            case "NAME" if token.end_pos is not None and self.text.startswith("`", token.start_pos or 0):
                return f"`{token}`"
            case "CONST" if self._in_missing_test():
                return "missing"
            case "_BY" if before[0] == "_GROUP":
                return ""  # `groupby` says it
            case "_USING" if any(frame.kind == "query" for frame in self.frames):
                return "on"
            case "LPAR" if before == ("_USING", "on"):
                return ""
            case "_FROM" if self._extracts():
                return ""
        return _canonical(token)

    def _extracts(self) -> bool:
        """Whether `extract(year` stands before, which is then written `year(`."""
        if [one.kind for one in self.pieces[-3:]] != ["NAME", "LPAR", "NAME"]:
            return False
        function, _, part = self.pieces[-3:]
        known = PARTS.get(part.text.lower()) if function.text.lower() == "extract" else None
        if known is not None:
            function.text, part.text = known, ""
        return known is not None

    def _in_missing_test(self) -> bool:
        """Whether `is` or `is not` stands right before."""
        kinds = [piece.kind for piece in self.pieces[-2:]]
        return kinds[-1:] == ["_IS"] or kinds == ["_IS", "_NOT"]

    def _is_part(self, at: int) -> bool:
        before = self.pieces[at - 1] if at else None
        if before is None or before.kind != "RPAR" or before.mate < 1:
            return False
        return self.pieces[before.mate - 1].kind in _PARTS


def _canonical(token: Token) -> str:
    """The one spelling of what may be written in several ways."""
    if token.type in SPELLED:
        return SPELLED[token.type]
    if token.type == "CMP":
        return {"=": "==", "<>": "!="}.get(token, str(token))
    word = token.type.startswith("_") or token.type in ("CONST", "DIRECTION", "DISTINCT")
    return token.lower() if word else str(token)


def pieces(source: Source) -> tuple[list[Piece], list[str]]:
    """The tokens of a text that parses, and the marks after the last one. Raises `Refusal` where it does not."""
    with _lock:
        _recorder.text = source.text
        parse_with(source, _recorder)
        return _recorder.pieces, _recorder.tail


_recorder, _lock = _Recorder(), threading.Lock()  # one text at a time
