"""Words and expressions of other languages: pandas, polars, Spark, R, dplyr, Excel, Stata and SQL.

A text is spelt as Python has it and parsed by `ast`. `Terms` writes an expression of it as Jostle has it, by the words
of `grammar/foreign.toml`; `Rows` is what a chain of calls means. What is not understood is `Unread`, what nothing here
does `Nothing`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import NoReturn

from msgspec import Struct

from jostle.language.row_functions import ROW_FUNCTIONS
from jostle.resources import folder

_AMOUNT = " with epsilon 0.1"
MEASURES = re.compile(r"\b(?:avg|sum|count|median|stddev|var|min|max|quantile|mode|covariance)\(")
_SPELLINGS = (  # of operators, brackets and names, as Python has them
    (r"(?<=[\w)\]\"]) *(?:%>%|\|>)\s*", " >> "), (r" *%in% *", " in "), (r"%%", "%"), (r"%/%", "//"), (r"\^", "**"),
    (r" *& *(?=\"§)|(?<=§) *& *", " + "), (r"&&?", " and "), (r"\|\|?", " or "), (r"(?<=[\w)\]\"]) *~ *", " | "),
    (r"(?<=\w)\$|(?<=\w)!(?=\w)", "."), (r"(?<![\w)\]\"]) *!(?!=)", " not "), (r"\b\w+::(?=\w+\()|::\w+", ""),
    (r"\bfunction *\((\w+)\)|\\\\\((\w+)\)", r"lambda \1\2:"), (r"\[ *,", "[:,"), (r"`(\w+)`", r"\1"), (r"<>", "!="),
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
        text += f" having {_all(self.having)}" if self.having else ""
        text += f" order by {self.order}" if self.order else ""
        return f"{{{{ {text}{f' limit {self.limit}' if self.limit else ''}{self.amount} }}}}"


class Answer(Struct, frozen=True):
    """A result that the program has, or a value query of it, as text; with the names of its columns."""

    text: str
    columns: tuple[str, ...] = ()


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
    if section == "commands":
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
    for old, new in _SPELLINGS:
        text = re.sub(old, new, text)
    return re.sub(r"\"§(\d+)§\"", lambda match: texts[int(match[1])], text).strip().rstrip(";")


def parse(text: str) -> ast.expr:
    try:
        node = ast.parse(python_of(text), mode="eval").body
        return unread() if isinstance(node, ast.Tuple) else node
    except (SyntaxError, ValueError, RecursionError):
        raise Unread from None


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
        or "False" in unparse(own.get("ascending", ast.Name("")))
        or any(
            re.search("True|TRUE", unparse(own.get(name, ast.Name(""))))
            for name in ("descending", "decreasing", "reverse")
        )
    )


class Known:
    """What a program has: tables and results with their columns, other names, truths among the columns; and what a name
    stands for in a function or a pipe. `read` gives the meaning of an expression, None where it has none."""

    def __init__(
        self, tables: Mapping[str, Sequence[str]], answers: Mapping[str, Sequence[str]], names: Sequence[str]
    ) -> None:
        self.tables = {name: Rows(name, tuple(columns)) for name, columns in tables.items()}
        self.answers = {name: Answer(name, tuple(columns)) for name, columns in answers.items()}
        self.names, self.it, self.truths = names, dict[str, Value](), set[str]()
        self.busy: list[ast.AST] = []
        self.read: Callable[[ast.expr], Value | None] = lambda node: None

    def term(self, node: ast.expr, rows: Rows | Answer | None = None, measures: bool = False) -> str:
        return unparse(Terms(self, rows, measures).visit(node))

    def is_module(self, node: ast.expr) -> bool:
        name = point(node)
        return bool(name) and name.partition(".")[0] not in {*self.tables, *self.answers, *self.it, *self.names}


_CASES = ("casewhen", "ifs", "cut", "when", "otherwise")
_TRUTHS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
_FORMS = (
    ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare,
    ast.List, ast.Tuple, ast.Set, ast.IfExp, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip


class Terms(ast.NodeTransformer):
    """An expression of rows, of a result's lines, or of public values, as Jostle has it; where it `measures`, the words
    of aggregates are meant."""

    def __init__(self, program: Known, rows: Rows | Answer | None, measures: bool) -> None:
        self.program, self.rows, self.measures = program, rows, measures

    def visit(self, node: ast.AST) -> ast.expr:
        if self.rows is None and isinstance(node, ast.Call | ast.Attribute) and node not in self.program.busy:
            self.program.busy.append(node)  # a query may be a part of an expression
            names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            if names & self.program.tables.keys() and isinstance(got := self.program.read(node), Rows):
                return ast.Name(got.query)
        return super().visit(node) if isinstance(node, _FORMS) else unread()  # type: ignore[no-any-return]

    def visit_Name(self, node: ast.Name) -> ast.expr:
        constants = {"true": "true", "false": "false", "null": "none", "na": "none", "none": "none"}
        of = self.program.it.get(node.id)
        if isinstance(of, Rows) and len(of.takes) == 1 and isinstance(self.rows, Rows):
            return ast.Name(of.takes[0])
        if self.rows is not None and node.id in self.rows.columns:
            return ast.Name(node.id if isinstance(self.rows, Rows) else f"r.{node.id}")
        is_own = node.id in ("missing", *self.program.names, *self.program.answers) or "." in node.id
        return ast.Name(constants.get(node.id.lower(), "") or (node.id if is_own else unread()))

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if isinstance(node.value, str) and not re.fullmatch(r"\d{4}-\d\d-\d\d", node.value):
            return ast.Name('"' + node.value.replace('"', '\\"') + '"')
        return ast.Name(str(node.value).lower())

    def _is_rows(self, node: ast.expr) -> bool:
        """Whether this is the table, a result or a pronoun whose columns are meant."""
        if isinstance(node, ast.Name) and (node.id in self.program.it or node.id == "_it"):
            return True
        got = self.program.read(node)
        if isinstance(got, Answer):
            return bool(got.columns) and self.rows is not None
        return isinstance(got, Rows) and not got.asks and not got.takes

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if self.rows is not None and self._is_rows(node.value):
            return self.visit(ast.Name(node.attr))
        if node.attr in ("str", "dt"):
            return self.visit(node.value)
        of, form = self.visit(node.value), means("rows", node.attr)
        return self._filled(form, [of]) if form else ast.Attribute(of, node.attr)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if self.rows is not None and (name := word_of(node.slice)) in self.rows.columns and self._is_rows(node.value):
            return self.visit(ast.Name(name))
        if self.rows is not None:
            raise Unread
        return ast.Subscript(self.visit(node.value), self.visit(node.slice))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        return ast.UnaryOp(ast.Not() if isinstance(node.op, ast.Invert) else node.op, self.visit(node.operand))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        sides = [self.visit(one) for one in (node.left, *node.comparators)]
        value = unparse(sides[1]).strip('"').lower()
        if unparse(sides[0]) in self.program.truths and isinstance(node.ops[0], ast.Eq) and value in _TRUTHS:
            return sides[0] if _TRUTHS[value] else ast.UnaryOp(ast.Not(), sides[0])
        pairs: list[ast.expr] = [ast.Compare(sides[i], [op], [sides[i + 1]]) for i, op in enumerate(node.ops)]
        return pairs[0] if len(pairs) == 1 else ast.BoolOp(ast.And(), pairs)

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        return ast.List([self.visit(one) for one in node.elts])

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        texts = any(isinstance(getattr(side, "value", None), str) for side in (node.left, node.right))
        if texts and isinstance(node.op, ast.Add) and self.rows is None:
            return ast.BinOp(self._as_text(node.left), node.op, self._as_text(node.right))
        if isinstance(node.op, ast.BitOr | ast.RShift | ast.BitAnd):
            raise Unread
        return ast.BinOp(self.visit(node.left), node.op, self.visit(node.right))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        function, args, word = node.func, [*node.args], point(node.func)
        last = word.rpartition(".")[2] or getattr(function, "attr", "")
        if means("nothing", last) and not means("aggregates", last):
            raise Nothing(last)
        named = arguments_named(node)
        args += [named.pop(name) for name in ("q", "probs", "prob") if name in named]
        if named.keys() - {"bins", "breaks", "labels", "right", "default", "include_lowest"}:
            raise Unread  # it says more than is understood
        if plain(last) in _CASES:
            return self._cases(last, node)
        if isinstance(function, ast.Attribute) and not self.program.is_module(function.value):
            args.insert(0, function.value)
        measures = means("aggregates", word or last)
        if self.rows is None and len(args) == 1 and measures in words("of_lists"):
            return ast.Call(ast.Name("len" if measures == "count" else measures), [self.visit(args[0])], [])
        measured = self._measured(word or last, measures, args) if self.measures else None
        return measured or self._spelling(last, args) or self._function(word, last, args)

    def _spelling(self, last: str, args: Sequence[ast.expr]) -> ast.expr | None:
        """A column, a list or a condition that is spelt as a call."""
        match "" if last in self.program.names else last, args:
            case (("col" | "Col" | "column"), [first, *_]):
                return self.visit(ast.Name(word_of(first)))
            case (("and_" | "or_"), _):
                return ast.BoolOp(ast.And() if last == "and_" else ast.Or(), [self.visit(arg) for arg in args])
            case (("c" | "list" | "array"), _):
                return ast.List([self.visit(arg) for arg in args])
            case (("paste" | "paste0"), _):
                return self._joined(args)
        return None

    def _function(self, word: str, last: str, args: Sequence[ast.expr]) -> ast.expr:
        """A function of rows or of values, by its form."""
        forms = words("rows")
        form = forms.get(plain(f"{last}{len(args)}")) or forms.get(plain(word)) or means("rows", last)
        if form == "round({0}, {1})" and (len(args) == 1 or unparse(args[1]) == "0"):
            form, args = "round({0})", args[:1]
        args = [args[0], ast.List([*args[1:]])] if form == "{0} in {1}" and len(args) > 2 else args
        form = "{0} == none" if form == "{0} is missing" and self.rows is None else form
        if not form:
            calls = last in ROW_FUNCTIONS or last in self.program.names
            return ast.Call(ast.Name(last), [self.visit(arg) for arg in args], []) if calls else unread()
        used = [int(at) for at in re.findall(r"\{(\d)\}", form)]
        if max(used) >= len(args) or (len(args) > 1 + max(used) and "(" in form):
            raise Unread
        return self._filled(form, [self.visit(arg) if at in used else arg for at, arg in enumerate(args)])

    def _measured(self, word: str, measures: str, args: Sequence[ast.expr]) -> ast.expr | None:
        """`mean(x)`, `F.avg("x")`, `count("*")`, `n()`, `countif(c)`; None of what does not aggregate."""
        if form := words("measures").get(plain(f"{word.rpartition('.')[2]}{len(args)}")):
            return self._filled(form, [self.visit(arg) for arg in args])
        if not measures or (len(args) > 1 and measures != "quantile"):
            return None
        if not args or (isinstance(args[0], ast.Constant) and args[0].value in ("*", 1)):
            return ast.Name(measure(word, ""))
        of = ast.Name(word_of(args[0])) if isinstance(args[0], ast.Constant) else args[0]
        return ast.Name(measure(word, unparse(self.visit(of)), args[1:]))

    def _filled(self, form: str, args: Sequence[ast.expr]) -> ast.expr:
        gives = {f"_{at}": arg for at, arg in enumerate(args)}

        class Put(ast.NodeTransformer):
            def visit_Name(self, node: ast.Name) -> ast.expr:
                return gives.get(node.id, node)

        return Put().visit(ast.parse(re.sub(r"\{(\d)\}", r"_\1", form), mode="eval").body)  # type: ignore[no-any-return]

    def _as_text(self, node: ast.expr) -> ast.expr:
        return self.visit(node) if isinstance(node, ast.Constant) else ast.Call(ast.Name("str"), [self.visit(node)], [])

    def _joined(self, args: Sequence[ast.expr]) -> ast.expr:
        """`paste("n:", n)`, with a space between."""
        parts = [self._as_text(arg) for arg in args]
        for at, part in enumerate(parts[:-1]):
            if isinstance(part, ast.Name) and part.id.endswith('"'):
                parts[at] = ast.Name(part.id[:-1] + ' "')
        whole = parts[0]
        for part in parts[1:]:
            whole = ast.BinOp(whole, ast.Add(), part)
        return whole

    def _cases(self, word: str, node: ast.Call) -> ast.expr:
        """`case_when(c ~ x, TRUE ~ y)`, `ifs(c, x, …)`, `when(c, x).otherwise(y)`, `cut(x, breaks, labels)`."""
        pairs: list[tuple[ast.expr, ast.expr]] = []
        if word == "cut":
            return self._cut(node)
        last: ast.expr = ast.Name("none")
        if word == "otherwise" and isinstance(node.func, ast.Attribute):
            last, inner = self.visit(node.args[0]), node.func.value
            while isinstance(inner, ast.Call):
                before = inner.func.value if isinstance(inner.func, ast.Attribute) else None
                if isinstance(before, ast.Call) and getattr(inner.func, "attr", "") == "then":
                    inner = ast.Call(before.func, [before.args[0], inner.args[0]], [])
                pairs.insert(0, (inner.args[0], inner.args[1]))
                inner = inner.func.value if isinstance(inner.func, ast.Attribute) else inner.func
        elif word == "when":
            raise Unread
        else:
            node.args += [k.value for k in node.keywords if k.arg == "default"]
            pairs = list(zip(node.args[::2], node.args[1::2], strict=False))
            pairs += [(ast.Name("True"), node.args[-1])] if len(node.args) % 2 else []
        for condition, value in reversed(pairs):
            if unparse(condition).lower() in ("true", "t"):
                last = self.visit(value)
            else:
                last = ast.IfExp(self.visit(condition), self.visit(value), last)
        return last

    def _cut(self, node: ast.Call) -> ast.expr:
        own = {k.arg: k.value for k in node.keywords}
        edges = own.get("bins") or own.get("breaks") or (node.args[-1] if len(node.args) > 1 else None)
        column, edges_of = self.visit(node.args[0]), parts_in(edges) if edges is not None else []
        right = "alse" not in unparse(own.get("right", ast.Name(""))).lower()
        names = [unparse(self.visit(n)) for n in parts_in(own["labels"])] if "labels" in own else []
        names = names or [f'"{unparse(a)} to {unparse(b)}"' for a, b in pairwise(edges_of)]
        if len(edges_of) < 3 or len(names) != len(edges_of) - 1:
            raise Unread
        last: ast.expr = ast.Name(names[-1])
        for edge, name in reversed(list(zip(edges_of[1:-1], names, strict=False))):
            below = ast.Compare(column, [ast.LtE() if right else ast.Lt()], [self.visit(edge)])
            last = ast.IfExp(below, ast.Name(name), last)
        above = ast.Compare(column, [ast.Gt() if right else ast.GtE()], [self.visit(edges_of[0])])
        below = ast.Compare(column, [ast.LtE() if right else ast.Lt()], [self.visit(edges_of[-1])])
        return ast.IfExp(ast.BoolOp(ast.And(), [above, below]), last, ast.Name("none"))
