"""Words and expressions of other languages: pandas, polars, Spark, R, dplyr, Excel, Stata and SQL.

A text is spelt as Python has it and parsed by `ast`; `expressions` writes an expression of it as Jostle has it, by the
words of `grammar/foreign.toml`. `Rows` is what a chain of calls means. What is not understood is `Unread`, what nothing
here does `Nothing`.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NoReturn

from msgspec import Struct

from jostle.resources import folder

_AMOUNT = " with epsilon 0.1"
MEASURES = re.compile(r"\b(?:avg|sum|count|median|stddev|var|min|max|quantile|mode|covariance)\(")
_SPELLINGS = (  # of operators, brackets and names, as Python has them
    (r"(?<=[\w)\]\"]) *(?:%>%|\|>)\s*", " >> "), (r" *%in% *", " in "), (r"%%", "%"), (r"%/%", "//"), (r"\^", "**"),
    (r" *& *(?=\"§)|(?<=§) *& *", " + "), (r"&&?", " and "), (r"\|\|?", " or "), (r"(?<=[\w)\]\"]) *~ *", " | "),
    (r"(?<=\w)\$|(?<=\w)!(?=\w)", "."), (r"(?<![\w)\]\"]) *!(?!=)", " not "), (r"\b\w+::(?=\w+\()|::\w+", ""),
    (r"\bfunction *\((\w+)\)|\\\\\((\w+)\)", r"lambda \1\2:"), (r"\[ *,", "[:,"), (r"`(\w+)`", r"\1"), (r"<>", "!="),
    (r"(?<=\w\[)(\w+) *=(?!=)", r"\1 =="),
    (r"\b(is|as)\.(?=\w)", r"\1_"), (r"(?i)\b(if|and|or|with|in)\(", r"\1_("),
    (r"(?<=[(,]) *\.?(\w+)\.(\w+) *=(?!=)", r"\1_\2="),
    (r"(?<=[(,]) *\.(\w+) *=(?!=)", r"\1="), (r"(?<![\w)\]\"])\.(?=[A-Za-z.])", "_it."), (r"\b(\d+)[Ll]\b", r"\1"),
)  # fmt: skip


class Unread(Exception):
    """What the grammar, or the meaning, does not know."""


class Nothing(Exception):
    """A word that nothing here does: the word, the reason, and what comes nearest."""


class Rows(Struct, frozen=True):
    """Rows of a table as far as a chain of calls goes: with `keys` their groups, with `taken` expressions of each of
    them, with `asked` what a query asks of them. Expressions are texts of Jostle, pairs are of one and its name."""

    source: str
    columns: tuple[str, ...]
    amount: str = _AMOUNT
    where: tuple[str, ...] = ()
    joins: str = ""
    keys: tuple[tuple[str, str], ...] = ()
    takes: tuple[str, ...] = ()
    asks: tuple[tuple[str, str], ...] = ()
    having: tuple[str, ...] = ()
    order: str = ""
    limit: str = ""
    most: str = ""  # of each person
    picks: bool = False  # whether a table of the takes columns is meant
    shares: bool = False  # whether each count is divided by their sum

    @property
    def table(self) -> str:
        """The rows as a table: `where(t, c)`, `pick(t, x)`."""
        if self.keys or self.asks or (self.takes and not self.picks):
            raise Unread
        text = f"(select * from {self.source}{self.joins}{self._where})" if self.joins else self.source
        text = f"where({text}, {_all(self.where)})" if self.where and not self.joins else text
        return f"pick({text}, {', '.join(self.takes)})" if self.picks else text

    @property
    def _where(self) -> str:
        return f" where {_all(self.where)}" if self.where else ""

    @property
    def query(self) -> str:
        """What is asked of the rows, as a query."""
        if not self.asks:
            raise Unread
        text = f"select {_named(self.asks)} from {self.source}{self.joins}{self._where}"
        text += f" groupby {_named(self.keys)}" if self.keys else ""
        text += f" up to {self.most}" if self.most else ""
        text += f" having {_all(self.having)}" if self.having else ""
        text += f" order by {self.order}" if self.order else ""
        return f"{{{{ {text}{f' limit {self.limit}' if self.limit else ''}{self.amount} }}}}"


class Answer(Struct, frozen=True):
    """A result that the program has, or a value query of it, as text; with the names of its columns."""

    text: str
    columns: tuple[str, ...] = ()

    def at(self, column: str) -> Answer:
        """The column `g.n` of the row of a key."""
        return Answer(f"{self.text}.{column.partition('.')[2]}") if "for r in" not in self.text else unread()


class Report(Struct, frozen=True):
    """A call of the library, or the name of a function that is not called yet: `LinearRegression()`."""

    form: str
    call: str = ""
    amount: str = _AMOUNT


Value = Rows | Answer | Report


def _all(conditions: Sequence[str]) -> str:
    return " and ".join(f"({c})" if len(conditions) > 1 and re.search(" or | if ", c) else c for c in conditions)


def _named(pairs: Sequence[tuple[str, str]]) -> str:
    return ", ".join(text if name in ("", text) else f"{text} as {name}" for text, name in pairs)


@cache
def words(section: str) -> dict[str, str]:
    """The words of a section of `foreign.toml`, in small letters and without `_`, each with what it means."""
    import tomllib

    table = tomllib.loads((folder("grammar") / "foreign.toml").read_text(encoding="utf-8"))[section]
    if section in ("commands", "spoken", "kinds"):
        return table  # type: ignore[no-any-return]
    return {plain(word): form for form, several in table.items() for word in several.split()}


def plain(word: str) -> str:
    return word.lower().replace("_", "")


def means(section: str, word: str) -> str:
    """What a word, or its part after the last point, is in a section; empty where it is not there."""
    return words(section).get(plain(word)) or words(section).get(plain(word.rpartition(".")[2])) or ""


def python_of(text: str) -> str:
    """A text of another language, as Python would spell it."""
    texts: list[str] = []

    def out(match: re.Match[str]) -> str:
        texts.append(match[0])
        return f'"§{len(texts) - 1}§"'

    text = re.sub(r"\"[^\"\n]*\"|'[^'\n]*'", out, text)
    text = re.sub(
        r"\bcase_when\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", lambda match: re.sub(" *~ *", ", ", match[0]), text
    )
    text = re.sub(r"(\$\w+)\[(\d+)\]", lambda place: f"{place[1]}[{int(place[2]) - 1}]", text)  # from 1 on
    for old, new in _SPELLINGS:
        text = re.sub(old, new, text)
    return re.sub(r"\"§(\d+)§\"", lambda match: texts[int(match[1])], text).strip().rstrip(";")


def parsed(text: str) -> list[ast.stmt]:
    """The statements of a text of Python; `Unread` where it is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the spelling of numbers, which nobody compiles
            return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Unread from None


def parse(text: str) -> ast.expr:
    """An expression of another language."""
    match parsed(python_of(text)):
        case [ast.Expr(value=value)] if not isinstance(value, ast.Tuple):
            return value
    raise Unread


_OF_COLUMNS = ("col", "desc", "asc", "column", "factor")
_LISTS = ("c", "list", "vars", "by", "array", "namedagg", "pd.namedagg")


def point(node: ast.expr) -> str:
    """`np.mean` of a name or a field of names, else nothing."""
    if isinstance(node, ast.Attribute):
        return f"{of}.{node.attr}" if (of := point(node.value)) else ""
    return node.id if isinstance(node, ast.Name) else ""


def unparse(node: ast.expr) -> str:
    """An expression as Jostle has it."""
    return ast.unparse(ast.fix_missing_locations(node)).replace(" ** ", "^")


def parts_in(node: ast.expr) -> Sequence[ast.expr]:
    """The parts of a list in any spelling: `[x, y]`, `c(x, y)`, `list(x)`, `x + y` of a formula, or one thing."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return node.elts
    if isinstance(node, ast.Call) and plain(point(node.func)) in _LISTS:
        return node.args
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*parts_in(node.left), *parts_in(node.right)]
    return [node]


def place_in(node: ast.Subscript) -> ast.expr:
    """What stands in the brackets of an index, from 0 on also where R counts from 1: `c(3, 4)[1]`."""
    match node:
        case ast.Subscript(value=ast.Call(func=ast.Name(id="c")), slice=ast.Constant(value=int(at))):
            return ast.Constant(at - 1)
    return node.slice


def word_of(node: ast.expr) -> str:
    """A name, a text or a column that is spelt `F.col("x")`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Call) and node.args:
        return word_of(node.args[0]) if point(node.func).rpartition(".")[2] in _OF_COLUMNS else ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return word_of(node.func.value) if node.func.attr in _OF_COLUMNS else ""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.UnaryOp):
        return word_of(node.operand)
    if isinstance(node, ast.Subscript):
        return word_of(node.slice)
    return node.id if isinstance(node, ast.Name) else ""


def share_in(args: Sequence[ast.expr]) -> str:
    shares = [arg.value for arg in args if isinstance(arg, ast.Constant) and isinstance(arg.value, float | int)]
    return f"{shares[0] / 100 if shares[0] > 1 else shares[0]:g}" if shares else "0.5"


def measure(word: str, of: str, args: Sequence[ast.expr] = ()) -> str:
    """An aggregate of an expression; Unread where the word is none."""
    aggregate = means("aggregates", word)
    if not aggregate:
        raise Unread
    if (aggregate, of) == ("sum", "1"):
        return "count(*)"
    if aggregate == "count" and (not of or plain(word) in ("n", "size", "len", "nrow")):  # of rows, and not of values
        return "count(*)"
    more = f", {share_in(args)}" if aggregate == "quantile" else ""
    return f"count(distinct {of})" if aggregate == "distinct" else f"{aggregate}({of}{more})"


def unread(word: str = "") -> NoReturn:
    raise Nothing(word) if means("nothing", word) else Unread


def parts_of(nodes: Sequence[ast.expr]) -> list[ast.expr]:
    return [part for node in nodes for part in parts_in(node)]


def arguments_named(call: ast.Call) -> dict[str, ast.expr]:
    """The arguments with a name, but those that only say how a result is shown."""
    own = {(k.arg or ""): k.value for k in call.keywords}
    return {name: node for name, node in own.items() if plain(name) not in words("ignored")} | {
        plain(name): node for name, node in own.items() if plain(name) in ("lefton", "righton", "fun")
    }


def columns_in(call: ast.Call, of: Rows) -> tuple[str, ...]:
    """The columns that the arguments of a call name."""
    return tuple(name for part in parts_of(every_argument(call)) if (name := word_of(part)) in of.columns)


def alias_of(node: ast.expr) -> tuple[str, ast.expr]:
    """The name that `e.alias("n")` has, and what has it; no name where none is gives."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("alias", "label", "name")
    ):
        return word_of(node.args[0]), node.func.value
    return "", node


def every_argument(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def descends(call: ast.Call) -> bool:
    """Whether an order goes down: `ascending = False`, `desc(n)`, `-n`, `n.desc()`."""
    own = {k.arg: k.value for k in call.keywords}
    down = any(re.match(r"-|.*\bdesc\(", unparse(arg)) for arg in call.args)
    return (
        down
        or "false" in unparse(own.get("ascending", ast.Name(""))).lower()
        or any(
            re.search("(?i)true", unparse(own.get(name, ast.Name(""))))
            for name in ("descending", "decreasing", "reverse")
        )
    )


# A line with other words, by patterns of `words.toml` and `meanings.toml` -------------------------------


@cache
def _patterns(parses: bool) -> tuple[tuple[re.Pattern[str], str], ...]:
    import tomllib

    tables = tomllib.loads((folder("grammar") / "words.toml").read_text(encoding="utf-8"))
    table = tables["any"] if parses else tables["syntax"] | tables["any"]
    return tuple((re.compile(f"(?i){key}"), write) for key, forms in table.items() for write in forms.split("\n"))


def other_words(line: str, parses: bool) -> Iterator[str]:
    """A line with one word of another language written anew, outside of texts, wherever it holds one."""
    texts = [match.span() for match in re.finditer(r"\"[^\"]*\"|'[^']*'", line)]
    for pattern, write in _patterns(parses):
        places = [at for at in pattern.finditer(line) if not any(a < at.start() < b - 1 for a, b in texts)]
        for match in places:
            yield line[: match.start()] + match.expand(write) + line[match.end() :]
        if 1 < len(places) < 5:
            yield pattern.sub(write, line)


@cache
def meanings(of: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    import tomllib

    tables = tomllib.loads((folder("grammar") / "meanings.toml").read_text(encoding="utf-8"))
    parts = re.compile("|".join(map(re.escape, tables["part"])))
    texts = ((parts.sub(lambda name: tables["part"][name[0]], old), new) for old, new in tables[of])
    return tuple((re.compile(old, re.IGNORECASE), parts.sub(r"\\g\g<0>", new)) for old, new in texts)


def as_one(line: str) -> str:
    """The line with what other tools say in several calls or clauses as the query, or the call, that means the same."""
    for _ in range(20):
        rules = ((pattern, write) for pattern, write in meanings("rules") if pattern.search(line))
        line, last = next((new for a, b in rules if (new := a.sub(b, line, count=1)) != line), line), line
        if line == last:
            break
    return line
