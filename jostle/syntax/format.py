"""One way to write a program: `format_source(source)` gives the text that `jostle fmt` leaves in a file.

Line breaks inside brackets, literals and comments stay as they were written. Spaces, indentation, empty lines and the
spelling of blocks do not: braces for Feature, Option and Utility, colons for `def`, `if`, `for` and `with`. Columns of
`=` that were lined up stay lined up, and comments of neighbouring lines are. What comes out parses to the same tree,
which is checked each time, and formatting it again changes nothing. What SQL spells in other
ways becomes the language's: small letters in queries, `groupby`, `==`, `!=`, `is missing`.

The tokens of a text as the parser reads them, each with what it opens; the formatter writes from them.

The layout's marks (a statement ends, a block is indented) are kept with the token that follows them. Spaces and
comments are no tokens: they are what stands in the text between two of them.

Decides where a space stands between two tokens of one line.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

from lark import Token
from msgspec import Struct, field

from jostle.diagnostics import refuse
from jostle.source import Source
from jostle.syntax.builder import PARTS
from jostle.syntax.layout import ENDS_AN_EXPRESSION, Layout
from jostle.syntax.parser import parse, parse_with

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
        name = PARTS.get(part.text.lower()) if function.text.lower() == "extract" else None
        if name is not None:
            function.text, part.text = name, ""
        return name is not None

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


_TIGHT = {"DOT", "CARET"}  # with neither side
_CLOSES_TIGHT = {"COMMA", "RPAR", "COLON"}
_OPENS_TIGHT = {"LPAR", "LSQB"}


def space_between(left: Piece, right: Piece, every: Sequence[Piece]) -> bool:
    """Whether `left` and `right` are apart. `every`: all tokens, in which `mate` is a place."""
    if left.share or right.share:
        return False
    if left.unary and right.text == "-" == left.text:
        return True  # `--` is no sign
    if left.opens == "block" or left.unary or left.kind == "MARK" or left.kind in _TIGHT or right.kind in _TIGHT:
        return False
    if right.kind == "RSQB":
        return left.kind == "COMMA"  # the comma of `D[a = v, ]` is seen
    if right.kind in _CLOSES_TIGHT or left.kind in _OPENS_TIGHT:
        return False
    if "_DOTS" in (left.kind, right.kind):
        return right.text.startswith(".") and left.kind == "_DOTS"  # `0.. .5`
    if right.kind in _OPENS_TIGHT:
        return left.kind not in ENDS_AN_EXPRESSION
    if left.opens == "set":
        return right.text.startswith("{")  # `{{` would open a query
    if right.closes == "set":
        return every[right.mate + 1].text.startswith("{")
    return True


STEP = "    "
WIDTH = 120  # comments are not lined up beyond it
_COMPOUND = ("_DEF", "_IF", "_FOR", "_WITH", "_JOINTLY", "_RUN")


def format_source(source: Source) -> str:
    """The text, formatted. Raises `Refusal` where it does not parse."""
    tokens, tail = pieces(source)
    text = _Writer(source.text, tokens, tail).write()
    if parse(Source(source.name, text), interactive=True) != parse(source, interactive=True):
        raise refuse(
            "SyntaxError", "this text cannot be formatted without changing what it means",
            help="it was left as it is; put long expressions in brackets and try again",
        )  # fmt: skip
    return text


class _Line(Struct):
    """A line of output; `column` is where its `=` stood before."""

    indent: int
    text: str = ""
    comment: str = ""
    blank: bool = False  # an empty line before it
    equal: int = -1  # the place of the `=` in `text`
    column: int = -1


class _Frame(Struct):
    """An open block or bracket. Lines in it are indented by `inside`, its closer by `outside`.

    `shown`: how a block is written: `braces`, `colon`, or `line` (on the line that opens it).
    """

    kind: str
    outside: int
    inside: int
    style: str = ""
    column: int = 0  # of a block's first statement, in the text as it was

    @property
    def further(self) -> int:
        """The indentation of a line that goes on with what stands in it."""
        return self.inside + 1 if self.kind == "block" else self.inside


class _Comment(Struct):
    text: str
    column: int
    blank: bool  # an empty line before it


class _Gap(Struct):
    """The comments and line breaks between two tokens."""

    trailing: _Comment | None = None  # at the end of the line
    own: list[_Comment] = field(default_factory=list)  # on lines of their own
    broken: bool = False  # whether the next token stands on another line
    blank: bool = False  # an empty line right before that


class _Writer:
    """Writes tokens one by one; `_line` is the line that is being written, None where the next token begins one."""

    def __init__(self, text: str, tokens: list[Piece], tail: list[str]) -> None:
        self._text, self._pieces, self._tail = text, tokens, tail
        self._lines: list[_Line] = []
        self._stack = [_Frame("block", 0, 0, "colon")]
        self._line: _Line | None = None
        self._last: Piece | None = None  # that was written

    def write(self) -> str:
        before: Piece | None = None
        for at, piece in enumerate(self._pieces):
            self._between(before, piece, self._gap(before, piece.start))
            self._token(at, before, piece)
            before, self._last = piece, piece if piece.text else self._last
        self._comments(self._gap(before, None), self._tail.count("_DEDENT"), starts=True)
        return _joined(self._lines)

    # Between two tokens ----------------------------------------------------------------------------

    def _gap(self, before: Piece | None, end: int | None) -> _Gap:
        gap = _Gap()
        start = before.end if before is not None else 0
        parts = self._text[start:end].split("\n")
        if before is not None:
            first = parts.pop(0)
            gap.broken = bool(parts)
            if first.strip():
                column = start - self._text.rfind("\n", 0, start) - 1 + len(first) - len(first.lstrip())
                gap.trailing = _Comment(first.strip(), column, False)
        for part in parts if end is None else parts[:-1]:
            if part.strip():
                gap.own.append(_Comment(part.strip(), len(part) - len(part.lstrip()), gap.blank))
            gap.blank = not part.strip()
        return gap

    def _between(self, before: Piece | None, piece: Piece, gap: _Gap) -> None:
        """Ends lines, closes indented blocks and writes comments, up to the place of `piece`."""
        within_line = self._stack[-1].style == "line"
        opened = before is None or (before.opens == "block" or "_INDENT" in piece.marks)
        starts = (opened or "_NL" in piece.marks) and not within_line and piece.closes != "block"
        if opened:
            self._stack[-1].column = piece.column
        self._comments(gap, piece.marks.count("_DEDENT"), starts=starts or piece.closes == "block")
        top = self._stack[-1]
        if starts or (piece.kind == "_ELSE" and not piece.conditional):
            self._begin(top.inside, gap.blank and starts)
        elif gap.broken and not (piece.opens == "block" or piece.closes == "block" or piece.kind == "_PREDICT"):
            self._begin(top.outside if piece.closes else top.further)

    def _comments(self, gap: _Gap, dedents: int, *, starts: bool) -> None:
        """Comments before the next token; one that is indented less than a block that ends here comes after it."""
        if gap.trailing is not None:
            self._trail(gap.trailing)
        for comment in gap.own:
            while dedents and comment.column < self._stack[-1].column:
                self._dedent()
                dedents -= 1
            top = self._stack[-1]
            self._begin(top.inside if starts else top.further, comment.blank).text = comment.text
            self._line = None
        for _ in range(dedents):
            self._dedent()

    def _trail(self, comment: _Comment) -> None:
        line = self._line or self._lines[-1]
        if line.comment:
            self._begin(self._stack[-1].inside).text = comment.text
            self._line = None
        else:
            line.comment = comment.text

    def _dedent(self) -> None:
        top = self._stack.pop()
        if top.style == "braces":
            self._begin(top.outside).text = "}"

    def _begin(self, indent: int, blank: bool = False) -> _Line:
        opened = not self._lines or (self._lines[-1].text.endswith((":", "{")) and self._lines[-1].text[0] not in "#/")
        self._line = _Line(indent, blank=blank and not opened)
        self._lines.append(self._line)
        return self._line

    # Tokens ------------------------------------------------------------------------------------------

    def _token(self, at: int, before: Piece | None, piece: Piece) -> None:
        line = self._line or self._begin(self._stack[-1].further)
        if piece.closes == "block":
            self._close_block(before, piece, line)
        elif piece.opens == "block":
            self._open_block(at, piece, line)
        elif piece.kind == "COLON" and at + 1 < len(self._pieces) and "_INDENT" in self._pieces[at + 1].marks:
            line.text += " {" if piece.part else ":"
            style = "braces" if piece.part else "colon"
            self._stack.append(self._block(line, style))
        else:
            if piece.closes:
                self._stack.pop()
            if piece.text and line.text and self._last is not None and space_between(self._last, piece, self._pieces):
                line.text += " "
            if piece.kind == "EQUAL" and line.equal < 0 and self._stack[-1].kind == "block":
                line.equal, line.column = len(line.text), piece.column
            line.text += piece.text
            if piece.opens:
                self._stack.append(_Frame(piece.opens, line.indent, line.indent + 1))

    def _open_block(self, at: int, piece: Piece, line: _Line) -> None:
        """The `{` of a block: kept for a Part, else a colon; on one line where it was and holds one plain statement."""
        inner = self._pieces[at + 1 : piece.mate]
        whole = self._text[piece.start : self._pieces[piece.mate].end]
        short = bool(inner) and "\n" not in whole and inner[0].kind not in _COMPOUND
        braces = piece.part or not inner
        line.text += (" {" if braces else ":") + (" " if short else "")
        style = "line" if short else "braces" if braces else "colon"
        self._stack.append(self._block(line, style))

    def _block(self, line: _Line, style: str) -> _Frame:
        """A block that opens at the end of a line; of a statement in several lines it goes by the first."""
        top = self._stack[-1]
        indent = min(line.indent, top.inside) if top.kind == "block" else line.indent
        return _Frame("block", indent, indent + 1, style)

    def _close_block(self, before: Piece | None, piece: Piece, line: _Line) -> None:
        top = self._stack.pop()
        empty = before is not None and before.opens == "block" and line.text.endswith("{")
        if empty or (top.style == "line" and piece.part):
            line.text += " }"
        elif top.style == "braces":
            self._begin(top.outside).text = "}"


def _joined(lines: list[_Line]) -> str:
    """The text, with comments of neighbouring lines below each other."""
    _line_up_equals(lines)
    out = []
    texts = [STEP * line.indent + line.text.rstrip() for line in lines]
    for group in _runs(lines, lambda line: 0 if line.comment else -1):
        wide = max(len(texts[i]) for i in group)
        apart = max(wide + 2 + len(lines[i].comment) for i in group) > WIDTH
        for i in group:
            if lines[i].comment:
                texts[i] = f"{texts[i] if apart else texts[i].ljust(wide)}  {lines[i].comment}"
    for line, text in zip(lines, texts, strict=True):
        out += ["", text] if line.blank else [text]
    return "\n".join(out) + "\n" if out else ""


def _line_up_equals(lines: list[_Line]) -> None:
    for group in _runs(lines, lambda line: line.column if line.equal >= 0 else -1):
        wide = max(lines[i].equal for i in group)
        for i in group:
            line = lines[i]
            if line.equal >= 0:
                line.text = line.text[: line.equal].ljust(wide) + line.text[line.equal :]


def _runs(lines: list[_Line], column: Callable[[_Line], int]) -> Iterator[list[int]]:
    """Neighbouring lines of one indentation whose `column` is the same, none of them after an empty line."""
    run: list[int] = []
    for i, line in enumerate(lines):
        last = lines[run[-1]] if run else None
        if last is None or line.blank or line.indent != last.indent or column(line) != column(last):
            if run:
                yield run
            run = []
        run.append(i)
    if run:
        yield run
