"""Text to tree: `parse`, and `incomplete` for whoever reads a program line by line.

Whatever is wrong with a text leaves here as one `Refusal` with a place and a way out; no exception of the parser
generator, and no Python RecursionError, is ever seen outside.

Loads the parser: Lark's table for `grammar/jostle.lark`, cached on disk between runs.

Reading the grammar from its text costs about half a second, reading the finished table a tenth of that. The table is
kept in the user's own cache folder (`JOSTLE_CACHE`, else `XDG_CACHE_HOME/jostle`, else `~/.cache/jostle`). Its name
holds a hash of the grammar and of the versions it was made with. It is a pickle of lists, dicts, texts and numbers, and
read as nothing else: whoever can write to the folder runs no code here. Where it cannot be read or written, the parser
does without. The trees of the library's modules are kept there in the same way, as nodes and their places.

The words of the language as its grammar has them, and the colours of a text: for pages, editors and terminals.

Everything is read from the terminals of the grammar, so that a word that is added there is coloured everywhere. A
colour is by shape alone: a clause word is coloured as a name (`row`, `rows`, `size`) where only a name may stand, after
an operator or an opening bracket, or before an operator.

The words that may come next at a place of a text, from the parser itself, for editors and the REPL.

Only the statement in which the text ends is parsed, so that an answer does not take longer in a long program.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import IO

import lark
from lark import Lark
from lark.exceptions import LarkError, UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.lexer import BasicLexer, ContextualLexer, Scanner, _create_unless
from lark.parsers.lalr_interactive_parser import InteractiveParser
from msgspec import Struct
from msgspec._utils import rebuild  # type: ignore[attr-defined]

from jostle.diagnostics import Refusal, refuse
from jostle.resources import cache_folder, folder, replacing
from jostle.source import Source, Span
from jostle.syntax import nodes as n
from jostle.syntax.builder import Builder
from jostle.syntax.common_mistakes import after_parsing, explain
from jostle.syntax.layout import Layout, LayoutError, NoBlock, unclosed
from jostle.syntax.messages import ErrorPlace, at_line, from_layout, indented, token_span
from jostle.syntax.walk import too_deep

DAMAGED = (OSError, pickle.UnpicklingError, EOFError, AttributeError, ImportError, IndexError, KeyError, TypeError,
           ValueError, AssertionError)  # fmt: skip


def grammar_text() -> str:
    """The text of the grammar."""
    return (folder("grammar") / "jostle.lark").read_text(encoding="utf-8")


def load(builder: Builder, layout: Layout) -> lark.Lark:
    """A parser that lays out with `layout` and calls `builder` bottom-up while it reads."""
    text = grammar_text()
    path, own = _path("grammar", text), {"postlex": layout, "transformer": builder, "_plugins": _PLUGINS}
    table = _read(path, lambda file: lark.Lark._load_from_dict(**_Plain(file).load(), **own))  # type: ignore[no-untyped-call]
    if isinstance(table, lark.Lark):
        return table
    parser = _from_text(text, builder, layout)
    _write(path, lambda file: parser.save(file, exclude_options=tuple(own)))
    return parser


def _from_text(text: str, builder: Builder, layout: Layout) -> lark.Lark:
    """The parser of a grammar whose terminals the tests have compared, which Lark does again with `interegular`."""
    compares = lark.lexer.has_interegular
    lark.lexer.has_interegular = False
    try:
        return lark.Lark(
            text, parser="lalr", lexer="contextual", postlex=layout, transformer=builder, keep_all_tokens=True,
            _plugins=_PLUGINS,
        )  # fmt: skip
    finally:
        lark.lexer.has_interegular = compares


def _path(kind: str, *texts: str) -> Path | None:
    """Where what is made of texts is kept; None without a home folder."""
    text = "\n".join([f"{lark.__version__} {sys.version_info[:3]} {sys.implementation.name}", *texts])
    with suppress(RuntimeError):
        return cache_folder() / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:32]}.table"
    return None


class _Plain(pickle.Unpickler):
    """Reads what is built in and names nothing: no class, and no function that a pickle would call."""

    def find_class(self, module: str, name: str, /) -> object:
        raise pickle.UnpicklingError(f"{module}.{name}")


class _Tree(_Plain):
    """Reads nodes and places too."""

    def find_class(self, module: str, name: str, /) -> object:
        if (module, name) == (rebuild.__module__, rebuild.__name__):  # calls a class with its fields
            return rebuild
        one = getattr(n, name, None) if module == n.__name__ else {"Source": Source, "Span": Span}.get(name)
        return one if isinstance(one, type) and one.__module__ == module else super().find_class(module, name)


def _read(path: Path | None, read: Callable[[IO[bytes]], object]) -> object:
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            own = os.name != "posix" or os.fstat(file.fileno()).st_uid == os.getuid()
            return read(file) if own else None
    except DAMAGED:
        return None


def _write(path: Path | None, write: Callable[[IO[bytes]], object]) -> None:
    if path is not None:
        with suppress(OSError, pickle.PicklingError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with replacing(path, "wb") as file:
                write(file)


# Tokens, as Lark finds them, without what a short text does not need -----------------------------


@cache
def _alone(name: str, pattern: str, flags: int) -> re.Pattern[str]:
    return re.compile(f"(?P<{name}>{pattern})", flags)


class _Terminals(Scanner):
    """Tries one terminal after another, as Lark does with those that fit into no one pattern. To compile all that a
    state knows as alternatives of one takes as long as finding some hundred tokens."""

    def _build_mres(self, terminals: Collection[lark.lexer.TerminalDef], most: int) -> list[re.Pattern[str]]:
        return [_alone(one.name, one.pattern.to_regexp(), self.g_regex_flags) for one in terminals]


class _LexerOfState(BasicLexer):
    def _build_scanner(self) -> Scanner:
        terminals, self.callback = _create_unless(  # type: ignore[no-untyped-call]
            self.terminals, self.g_regex_flags, self.re, self.use_bytes
        )
        return _Terminals(terminals, self.g_regex_flags, self.re, self.use_bytes)  # type: ignore[no-untyped-call]


class _Contextual(ContextualLexer):
    BasicLexer = _LexerOfState


_PLUGINS = {"ContextualLexer": _Contextual}


DEEPEST = 500  # nodes above a node
_TREES = 512  # are kept; nobody can change one

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


@lru_cache(maxsize=_TREES)
def parse_module(source: Source) -> n.Program:
    """The tree of a module of the library, kept between runs: parsing twenty of them takes half a second."""
    path = _path("module", _makers(), source.name, source.text)
    tree = _read(path, lambda file: _Tree(file).load())
    if not isinstance(tree, n.Program):
        tree = parse(source)
        _write(path, partial(pickle.dump, tree))
    return tree


@cache
def _makers() -> str:
    """What makes a tree of a text."""
    files = {str(sys.modules[one.__module__].__file__) for one in (Builder, Layout, n.Node, Span)}
    return "\n".join([grammar_text(), *(Path(file).read_text(encoding="utf-8") for file in sorted(files))])


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


def parses(text: str) -> bool:
    """Whether a text is a program by its signs; nothing is said of one that is none."""
    with _lock, suppress(LayoutError, LarkError, Refusal):
        lark, builder, _ = _parser(None)
        builder.source = Source("", text)
        return bool(lark.parse(text))
    return False


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


# `_SELECT.2: /select(?!\w)/i`, `CONST.2: /(?:true|false|none)(?!\w)/i`
_WORD = re.compile(r"^_?[A-Z]+(?:\.\d)?: /(?:\(\?:)?([A-Za-z?|]+)\)?\(\?!\\w\)")
_SECTIONS = {"// Reserved everywhere": "reserved", "// Words that open": "opening", "// Words only where": "clause",
             "NAME:": ""}  # fmt: skip


class Lexicon(Struct, frozen=True):
    """`reserved` words are names nowhere, `opening` ones begin a statement, `clause` ones belong to a form."""

    reserved: tuple[str, ...]
    opening: tuple[str, ...]
    clause: tuple[str, ...]

    @property
    def constants(self) -> tuple[str, ...]:
        return ("true", "false", "none")

    @property
    def declarations(self) -> tuple[str, ...]:
        return ("Feature", "Option", "Utility", "MkChoiceMaker")

    @property
    def keywords(self) -> tuple[str, ...]:
        """The reserved words that are neither constants nor declarations."""
        return tuple(w for w in self.reserved if w not in self.constants + self.declarations)


@cache
def lexicon() -> Lexicon:
    """The words of `grammar/jostle.lark`."""
    text = (folder("grammar") / "jostle.lark").read_text(encoding="utf-8")
    sections: dict[str, list[str]] = {"reserved": [], "opening": [], "clause": []}
    section = ""
    for line in text.splitlines():
        section = next((name for start, name in _SECTIONS.items() if line.startswith(start)), section)
        word = _WORD.match(line)
        if section and word:
            for spelling in word[1].split("|"):
                stem = spelling.replace("s?", "s").replace("?", "")
                sections[section].append(stem)
                if spelling.endswith("s?"):
                    sections[section].append(stem[:-1])
    return Lexicon(*(tuple(dict.fromkeys(sections[name])) for name in ("reserved", "opening", "clause")))


def _words(words: tuple[str, ...]) -> str:
    return r"\b(?:" + "|".join(sorted(words, key=len, reverse=True)) + r")\b"


# Clause words that programs use as names: they are none after these, nor before an operator.
_NOUNS = (
    "row", "rows", "size", "group", "groups", "order", "limit", "left", "right", "full", "inner", "outer", "most",
    "each",
)  # fmt: skip
_BEFORE_NAMES = [rf"\b{word} " for word in ("for", "in", "if", "not", "and", "or", "return")]
_BEFORE_NAMES += [r"[-+*/%^<>=(\[{,] ", r"[-+*/%^<>=(\[.]"]


@cache
def shapes() -> tuple[tuple[str, str], ...]:
    """(colour, pattern), first match first. Colours: comment string number constant declaration keyword clause
    function operator."""
    words = lexicon()
    nouns, others = _words(_NOUNS), _words(tuple(word for word in words.clause if word not in _NOUNS))
    before = "".join(f"(?<!{one})" for one in _BEFORE_NAMES)
    return (
        ("comment", r"#[^\n]*|(?m:^[ ]*//[^\n]*)"),
        ("string", r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''),
        ("number", r"\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|(?<![\w.])\.\d+(?:[eE][+-]?\d+)?"),
        ("constant", _words(words.constants)),
        ("declaration", _words(words.declarations)),
        ("keyword", _words(words.keywords + words.opening)),
        (
            "clause",
            rf"(?<=\bprotecting )rows\b|{others}(?!\s*[=(.,)\]])|{before}{nouns}(?!\s*(?:[-+*/%^<>=!(.,:)\[\]]|in\b))",
        ),
        ("function", r"[A-Za-z_]\w*(?=[ ]*\()"),
        ("name", r"[A-Za-z_]\w*"),
        ("operator", r"\{\{|\}\}|\.\.|[-+*/%^<>=!]+"),
    )


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<{colour}>{pattern})" for colour, pattern in shapes()))


def colour_tokens(text: str) -> Iterator[tuple[str, str]]:
    """The text in pieces, each with its colour (`""` for what has none); put together they are the text."""
    at = 0
    for match in _pattern().finditer(text):
        if match.start() > at:
            yield "", text[at : match.start()]
        colour = match.lastgroup or ""
        yield ("" if colour == "name" else colour), match[0]
        at = match.end()
    if at < len(text):
        yield "", text[at:]


_WORD_BEFORE = re.compile(r"[A-Za-z_]\w*$")
_GOES_ON = re.compile(r"[\s)\]}#]|else\b|predict\b|//|$")
# Terminals that are words, by what they are called in the grammar.
_SPELLED = {"_DOTS": "", "KIND": "Feature Option Utility", "MKCHOICE": "MkChoiceMaker", "CONST": "true false none",
            "_ROWS": "rows", "_GROUPBY": "groupby", "_GROUP": "", "_UPTO": "up", "_GROUPS": "groups",
            "DIRECTION": "asc desc"}  # fmt: skip
# Those with which a statement goes on in a new line.
_CLAUSES = frozenset({
    "_DESCRIBED", "_PROTECTING", "_BUDGET", "_COUNTED", "_AMONG", "_INFORMED", "_TRAINED", "_USING", "_SPENDING",
    "_WRT", "_PREDICT", "_ELSE",
})  # fmt: skip


class Expected(Struct, frozen=True):
    """The possible continuations of a text: `words` of the language, and whether a `name` may follow `typed`.

    `after_dot`: the name before the dot, where a field is wanted; `in_query`: whether the place is inside `{{ }}`.
    """

    words: tuple[str, ...]
    name: bool
    typed: str
    after_dot: str = ""
    in_query: bool = False


@contextmanager
def _read_so_far(text: str) -> Iterator[tuple[InteractiveParser, Layout]]:
    """The parser before a text of which the last statement is left open, and its layout."""
    with _lock:
        lark, builder, layout = _parser(None)
        builder.source, layout.finishes = Source("", text), False
        try:
            yield lark.parse_interactive(text), layout
        finally:
            layout.finishes = True


def expected(text: str) -> Expected:
    """Returns the possible continuations of `text`."""
    word = _WORD_BEFORE.search(text)
    typed = word[0] if word else ""
    before = text[: len(text) - len(typed)]
    dot = re.search(r"([A-Za-z_]\w*)\.$", before)
    if dot:
        return Expected((), True, typed, after_dot=dot[1])
    line = before[before.rfind("\n") + 1 :]
    if "#" in line or line.count('"') % 2 or line.count("'") % 2:
        return Expected((), False, typed)
    if re.search(r"\bwith +$", line):  # `with` is a word of the language only before one of these
        return Expected(("epsilon", "error", "rho", "weight"), False, typed)
    statement = last_statement(before)
    accepted, in_query = _accepted(statement)
    if statement.strip() and not line.strip():  # on a new line a statement may begin, or the last one go on
        accepted = accepted | (_accepted(statement.rstrip())[0] & _CLAUSES)
    words = {word for terminal in accepted for word in _spelled(terminal)} - {"external"}
    if not in_query:
        words.discard("select")
    return Expected(tuple(sorted(words)), not accepted or "NAME" in accepted, typed, in_query=in_query)


def _accepted(text: str) -> tuple[set[str], bool]:
    """The terminals that may follow, none where the text is wrong before; and whether it ends within a query."""
    terminals: set[str] = set()
    with _read_so_far(text) as (parser, layout):
        with suppress(LayoutError, LarkError, Refusal):
            parser.exhaust_lexer()
            terminals = parser.accepts()  # type: ignore[no-untyped-call]
        return terminals, any(frame.kind == "query" for frame in layout.frames)


def last_statement(text: str) -> str:
    """The text from the beginning of its last top-level statement."""
    lines = text.split("\n")
    start = len(lines) - 1
    while start > 0 and (_GOES_ON.match(lines[start]) or _clause(lines[start])):
        start -= 1
    return "\n".join(lines[start:])


def _clause(line: str) -> bool:
    """Whether a line at the margin goes on with the statement before it."""
    first = re.match(r"[A-Za-z]+ ", line)
    return bool(first) and first is not None and first[0].strip() in (
        "informed", "described", "counted", "trained", "protecting", "among", "using", "spending", "wrt"
    )  # fmt: skip


def _spelled(terminal: str) -> list[str]:
    if terminal in _SPELLED:
        return _SPELLED[terminal].split()
    word = terminal.removeprefix("_").lower()
    words = lexicon()
    return [word] if word in words.reserved + words.opening + words.clause else []
