"""From raw tokens to laid-out tokens: newlines, indentation and closing braces.

Stands between the lexer and the parser (Lark calls it a postlex). It drops newlines inside brackets, turns
indentation after `:` into _INDENT and _DEDENT, and splits a run of `}` by what each one closes. Names lose their
backquotes here; in a query, names of functions lose their capitals, and `=` compares in a condition. It also counts
what is open. So too many nested brackets, an unclosed bracket, a query without a `select` and a `select`
outside a query are found here, with the place where the bracket was opened. It knows no grammar and builds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter

from lark import Token
from lark.lark import PostLex
from msgspec import Struct

MOST_NESTED = 200  # brackets and indented blocks, together

ENDS_AN_EXPRESSION = {"NAME", "MKCHOICE", "NUMBER", "DATE", "STRING", "CONST", "RPAR", "RSQB", "_RBRACE",
                      "_RQUERY", "_END", "NULL"}  # fmt: skip
ENDS_A_LINE = ENDS_AN_EXPRESSION | {"_RETURN", "COLON", "LBRACE", "_ROWS", "_SIZE", "_WEIGHTED", "_EVER"}
STARTS_A_STATEMENT = {None, "_NL", "_INDENT", "_DEDENT", "LBRACE"}
OPENS_A_BLOCK = {"_CLASS", "_IF", "_ELSE", "_FOR", "_DEF", "_WITH", "_JOINTLY", "_RUN"}
SPELLED = {
    "nvl": "coalesce", "ifnull": "coalesce", "substr": "substring", "char_length": "length",
    "character_length": "length", "ucase": "upper", "lcase": "lower", "ceiling": "ceil", "strpos": "position",
    "instr": "position", "stddev_samp": "stddev", "var_samp": "var", "covar_samp": "covariance",
    "dayofyear": "day_of_year", "dayofmonth": "day", "weekofyear": "week", "isoweek": "week", "isoyear": "week_year",
}  # fmt: skip
"""Functions of SQL that mean the same under another name, in queries."""
SPECIAL = frozenset({
    "NAME", "CAPITALS", "SPELLED", "_NL", "_NL_ELSE", "_NL_WITH", "_BRACES", "LBRACE", "LPAR", "RPAR", "LSQB", "RSQB",
    "_LQUERY", "_SELECT", "ADD", "EQUAL", "_IF", "_ASSERT", "COMMA", "_CASE", "_WHERE", "_HAVING", "_WHEN", "_END",
    "_LAMBDA", "_ELSE", "COLON",
})  # fmt: skip
"""What is looked at; the other tokens go on as they are."""
OPENERS = {"LPAR": "bracket", "LSQB": "bracket", "_LQUERY": "query"}
PAIRS = {"LPAR": "RPAR", "LSQB": "RSQB"}


class LayoutError(Exception):
    """Something wrong that the layout sees before the parser does; `opener` is the bracket it is about."""

    def __init__(self, message: str, token: Token, *, help: str = "", label: str = "", opener: Token | None = None):
        super().__init__(message)
        self.message, self.token, self.help, self.label, self.opener = message, token, help, label, opener
        self.kind = "SyntaxError"


class NoBlock(LayoutError):
    """A `:` at the end of a line, and nothing indented below it."""


class TooDeep(LayoutError):
    """More nested brackets than anyone writes."""

    def __init__(self, token: Token):
        super().__init__(
            f"more than {MOST_NESTED} brackets or blocks inside each other",
            token,
            help="give the inner parts names of their own, or move them into functions",
        )
        self.kind = "RecursionLimit"


class Frame(Struct):
    """An open block (newlines count), set, bracket or query (they do not)."""

    kind: str
    opener: Token | None
    columns: list[int]  # of the blocks indented in it
    selects: int = 0  # in a query
    ifs: int = 0  # conditional expressions that wait for their `else`
    lambdas: int = 0  # lambdas that wait for their `:`
    lambda_colon: bool = False  # was the last `:` of a lambda?
    conditional_else: bool = False  # was the last `else` of an expression?
    condition: bool = False  # is it in `where`, `having` or `when`?
    test: bool = False  # is it in `if` or `assert`?
    grouped: bool = False  # is it in brackets in a test, where `=` can only compare?

    def fresh(self) -> None:
        self.ifs = self.lambdas = 0
        self.condition = self.test = self.grouped = False


_KIND, _COLUMNS = attrgetter("kind"), attrgetter("columns")


class Layout(PostLex):
    """One text at a time: `frames`, `statement` and `before` describe how far it got, for messages."""

    finishes = True  # whether the end of the text ends a statement
    always_accept = ("_NL", "_NL_ELSE", "_NL_WITH", "_BRACES", "_LQUERY", "CAPITALS", "SPELLED", "EQUAL")

    def __init__(self) -> None:
        self.frames: list[Frame] = [Frame("block", None, [0])]
        self.statement: list[Token] = []  # the laid-out tokens of the innermost statement so far
        self.before: str | None = None
        self._functions: set[str] = set()  # that the text defines so far

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        self.frames, self.statement, self.before, self._functions = [Frame("block", None, [0])], [], None, set()
        last: Token | None = None
        for raw in stream:
            if last is None and not raw.type.startswith("_NL"):
                self.frames[0].columns[0] = (raw.column or 1) - 1
            plain = raw.type not in SPECIAL or (raw.type == "NAME" and self.before != "_DEF" and raw[0] != "`")
            plain = plain and self.before != "LBRACE"
            for token in (raw,) if plain else self._lay_out(raw):
                if token.type in STARTS_A_STATEMENT and self.frames[-1].kind == "block":
                    self.statement = []
                else:
                    self.statement.append(token)
                self.before, last = token.type, token
                yield token
        if self.finishes and last is not None and len(self.frames) == 1:
            if self.before != "_NL":
                yield Token.new_borrow_pos("_NL", "", last)
            for _ in self.frames[0].columns[1:]:
                yield Token.new_borrow_pos("_DEDENT", "", last)
                yield Token.new_borrow_pos("_NL", "", last)

    def depth(self) -> int:
        """The number of open brackets and indented blocks."""
        return sum(map(len, map(_COLUMNS, self.frames))) - 1

    def _lay_out(self, token: Token) -> Iterable[Token]:
        """What stands for a token of the lexer."""
        frame = self.frames[-1]
        if self.before == "LBRACE" and frame.kind == "block" and not token.type.startswith("_NL"):
            frame.columns[0] = (token.column or 1) - 1
        if token.type in ("NAME", "CAPITALS", "SPELLED"):
            token = self._name(token)
        match token.type:
            case "_NL" | "_NL_ELSE" | "_NL_WITH":
                return self._newline(token, frame)
            case "_BRACES":
                return self._close(token)
            case "LBRACE":
                is_block = self.before in ENDS_AN_EXPRESSION or (self.before == "_ELSE" and not frame.conditional_else)
                self._open("block" if is_block else "set", token)
            case opener if opener in OPENERS:
                self._open(OPENERS[opener], token)
            case "RPAR" | "RSQB":
                self._pair(token, frame)
            case "_SELECT":
                self._select(token)
            case "ADD" if self.before == "ADD" and token == "-":
                self._two_signs(token)
            case "EQUAL" if frame.condition or frame.grouped:
                token = _typed("CMP", token)
            case kind if kind != "NAME":
                self._expect(token, frame)
        return (token,)

    def _expect(self, token: Token, frame: Frame) -> None:
        """Notes what a word opens or ends, as far as the meaning of a later `=`, `:`, `else` or `{` depends on it."""
        match token.type:
            case "_IF":
                frame.test = True
                frame.ifs += self.before not in STARTS_A_STATEMENT | {"_ELSE"}
            case "_ASSERT":
                frame.test = True
            case "COMMA":
                frame.test = frame.grouped = False
            case "_CASE":
                frame.ifs += 1
            case "_WHERE" | "_HAVING" | "_WHEN":
                frame.condition = True
            case "_END":
                frame.condition = False
            case "_LAMBDA":
                frame.lambdas += 1
                if len(self.statement) == 2 and self.before == "EQUAL":
                    _need_own(self.statement[0])
            case "_ELSE":
                frame.conditional_else = frame.ifs > 0
                frame.ifs = max(0, frame.ifs - 1)
                frame.test = False
            case "COLON":
                frame.lambda_colon = frame.lambdas > 0
                frame.lambdas = max(0, frame.lambdas - 1)
                frame.test = frame.test and frame.lambda_colon

    def _name(self, token: Token) -> Token:
        """A name without its backquotes; SQL's functions in small letters, unless the text defines such a name."""
        if self.before == "_DEF":
            _need_own(token)
            self._functions.add(str(token))
        if token.startswith("`"):
            return Token.new_borrow_pos("NAME", token[1:-1], token)
        if token.type == "NAME" or "query" not in map(_KIND, self.frames) or str(token) in self._functions:
            return Token.new_borrow_pos("NAME", str(token), token)
        return Token.new_borrow_pos("NAME", SPELLED.get(token.lower(), token.lower()), token)

    def _open(self, kind: str, token: Token) -> None:
        group = token.type == "LPAR" and self.before not in ENDS_AN_EXPRESSION
        around = self.frames[-1]
        grouped = group and (around.test or around.grouped)
        self.frames.append(Frame(kind, token, [0], condition=group and around.condition, grouped=grouped))
        if self.depth() > MOST_NESTED:
            raise TooDeep(token)

    def _pair(self, token: Token, frame: Frame) -> None:
        if frame.kind == "bracket" and frame.opener is not None and PAIRS[frame.opener.type] == token.type:
            self.frames.pop()
            return
        if frame.opener is None:
            raise LayoutError(f"`{token}` closes nothing", token, label="no bracket is open here", help="remove it")
        raise unclosed(frame.opener, token)

    def _select(self, token: Token) -> None:
        for frame in reversed(self.frames):
            if frame.kind == "query":
                frame.selects += 1
                return
            if frame.kind == "block":
                break
        raise LayoutError(
            "a `select` stands outside a query", token, label="not in `{{ }}`", help="write `{{ select … from … }}`"
        )

    def _two_signs(self, token: Token) -> None:
        """`a -- b` would be a number less a negative one, where SQL has a comment."""
        sign = self.statement[-1]
        if sign == "-" and sign.end_pos == token.start_pos:
            raise LayoutError(
                "`--` opens a comment only at the start of a line",
                Token("ADD", "--", sign.start_pos, sign.line, sign.column, token.end_line, token.end_column),
                help="write `# …`; a number less a negative one is `a - -b`",
            )

    def _newline(self, token: Token, frame: Frame) -> Iterator[Token]:
        if frame.kind != "block" or self.before not in ENDS_A_LINE:
            return
        columns = frame.columns
        column = len(token) - token.rfind("\n") - 1
        if self.before == "LBRACE":
            columns[0] = column
            return
        if self.before == "COLON" and frame.lambda_colon:
            return
        if self.before == "COLON":
            frame.fresh()
            if column <= columns[-1]:
                raise NoBlock("expected an indented block after `:`", token, help="indent the block by four spaces")
            columns.append(column)
            if self.depth() > MOST_NESTED:
                raise TooDeep(token)
            yield Token.new_borrow_pos("_NL", token, token)
            yield Token.new_borrow_pos("_INDENT", "", token)
            return
        if token.type == "_NL_WITH" and column > columns[-1]:
            return
        closed = 0
        while len(columns) > 1 and column < columns[-1]:
            columns.pop()
            closed += 1
        if token.type == "_NL_ELSE" and not closed:
            return
        if column > columns[-1]:
            raise self._unexpected_indent(token, closed)
        frame.fresh()
        yield Token.new_borrow_pos("_NL", token, token)
        for left in reversed(range(closed)):
            yield Token.new_borrow_pos("_DEDENT", "", token)
            if left or token.type != "_NL_ELSE":
                yield Token.new_borrow_pos("_NL", "", token)

    def _unexpected_indent(self, token: Token, closed: int) -> LayoutError:
        """The error of a line that is deeper than its block, after `closed` blocks have ended."""
        first = self.statement[0] if self.statement else token
        if first.type in OPENS_A_BLOCK:
            return LayoutError(
                f"the block of this `{first.lower()}` is missing",
                first,
                label="expected `:` or `{` at the end of its line",
                help="write `:` and an indented block, or `{ … }`",
            )
        if closed:
            return LayoutError(
                "this line is indented like no line above it",
                token,
                label="between two levels",
                help="indent it as the statements of its block, four spaces a level",
            )
        return LayoutError(
            "unexpected indentation",
            token,
            label="deeper than the line above, which opened no block",
            help="a statement goes on in the next line after an operator, a comma or inside brackets",
        )

    def _close(self, token: Token) -> Iterator[Token]:
        left = len(token)
        while left:
            frame, at = self.frames[-1], _part(token, len(token) - left, 2 if left >= 2 else 1)
            if frame.opener is None:
                raise LayoutError("`}` closes nothing", at, label="no brace is open here", help="remove it")
            if frame.kind == "bracket":
                raise unclosed(frame.opener, at)
            if frame.kind == "query":
                if left < 2:
                    raise LayoutError(
                        "a query ends with `}}`", at, label="only one `}`", help="write `}}`", opener=frame.opener
                    )
                if not frame.selects:
                    raise LayoutError(
                        "a query without a `select`",
                        frame.opener,
                        label="`{{` opens a query",
                        help="write `{{ select … from … }}`, or `{ {` with a space for a set of sets or records",
                    )
                left -= 2
                self.frames.pop()
                yield _typed("_RQUERY", at)
                continue
            at = _part(token, len(token) - left, 1)
            left -= 1
            for _ in frame.columns[1:]:
                yield Token.new_borrow_pos("_NL", "", at)
                yield Token.new_borrow_pos("_DEDENT", "", at)
            self.frames.pop()
            yield _typed("_RBRACE", at)


def _need_own(name: Token) -> None:
    """Refuses a function whose name queries take for another: one of a module or a cell before, too."""
    if name.lower() in SPELLED:
        message = f"`{name}` is the word of SQL for `{SPELLED[name.lower()]}`, which it means in every query"
        raise LayoutError(message, name, label="a function of another meaning", help="give the function another name")


def unclosed(opener: Token, at: Token | None) -> LayoutError:
    """The error of a bracket that is not closed before `at` (or before the end of the text)."""
    closer = {"(": ")", "[": "]", "{": "}", "{{": "}}"}[str(opener)]
    return LayoutError(
        f"`{opener}` is not closed",
        opener,
        label="opened here",
        help=f"close it with `{closer}`" + (f" before `{at}` in line {at.line}" if at else ""),
        opener=opener,
    )


def _part(token: Token, start: int, length: int) -> Token:
    """`length` characters of a run of braces, with their own place."""
    column, position = (token.column or 1) + start, (token.start_pos or 0) + start
    return Token("_BRACES", token[start : start + length], position, token.line, column, token.line, column + length)


def _typed(kind: str, token: Token) -> Token:
    return Token.new_borrow_pos(kind, token, token)
