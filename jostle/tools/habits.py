"""What a line of another language means, written as Jostle.

A line of pandas, polars, Spark, R, dplyr, Excel or SQL is spelt as Python has it, parsed by `ast`, and read into one small
meaning, `Rows`: of which table, which rows, keys, aggregates, order and limit. That is written as a query, a table or a call
of the library. `grammar/foreign.toml` has the words. What is not known is `Unread`, what nothing here does `Nothing`. A
caller checks what is written before it is shown.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from msgspec import Struct

from jostle.language.row_functions import ROW_FUNCTIONS
from jostle.records import replace
from jostle.resources import folder

_AMOUNT = " with epsilon 0.1"
MEASURES = re.compile(r"\b(?:avg|sum|count|median|stddev|var|min|max|quantile|mode|covariance)\(")
_SPELLINGS = (  # of operators, brackets and names, as Python has them
    (r"(?<=[\w)\]\"]) *(?:%>%|\|>)\s*", " >> "), (r" *%in% *", " in "), (r"%%", "%"), (r"%/%", "//"), (r"\^", "**"),
    (r" *& *(?=\"§)|(?<=§) *& *", " + "), (r"&&?", " and "), (r"\|\|?", " or "), (r"(?<=[\w)\]\"]) *~ *", " | "),
    (r"(?<=\w)\$|(?<=\w)!(?=\w)", "."), (r"(?<![\w)\]\"]) *!(?!=)", " not "), (r"\b(\w+)::(?=\w+\()", ""), (r"::\w+", ""),
    (r"\bfunction *\((\w+)\)|\\\\\((\w+)\)", r"lambda \1\2:"), (r"\[ *,", "[:,"), (r"`(\w+)`", r"\1"), (r"<>", "!="),
    (r"\b(is|as)\.(?=\w)", r"\1_"), (r"(?i)\b(if|and|or|with|in)\(", r"\1_("), (r"(?<=[(,]) *\.?(\w+)\.(\w+) *=(?!=)", r"\1_\2="),
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
    taken: tuple[str, ...] = ()
    asked: tuple[tuple[str, str], ...] = ()
    having: tuple[str, ...] = ()
    order: str = ""
    limit: str = ""
    picks: bool = False  # whether a table of the taken columns is meant
    shares: bool = False  # whether each count is divided by their sum

    @property
    def table(self) -> str:
        """The rows as a table: `where(t, c)`, `pick(t, x)`."""
        if self.keys or self.asked or (self.taken and not self.picks):
            raise Unread
        text = f"(select * from {self.source}{self.joins}{self._where})" if self.joins else self.source
        text = f"where({text}, {_all(self.where)})" if self.where and not self.joins else text
        return f"pick({text}, {', '.join(self.taken)})" if self.picks else text

    @property
    def _where(self) -> str:
        return f" where {_all(self.where)}" if self.where else ""

    @property
    def query(self) -> str:
        """What is asked of the rows, as a query."""
        if not self.asked:
            raise Unread
        text = f"select {_named(self.asked)} from {self.source}{self.joins}{self._where}"
        text += f" groupby {_named(self.keys)}" if self.keys else ""
        text += f" having {_all(self.having)}" if self.having else ""
        text += f" order by {self.order}" if self.order else ""
        return f"{{{{ {text}{f' limit {self.limit}' if self.limit else ''}{self.amount} }}}}"


class Answer(Struct, frozen=True):
    """A result that the program has, or a value made of it, as text; with the names of its columns."""

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
    return {_plain(word): form for form, several in table.items() for word in several.split()}


def _plain(word: str) -> str:
    return word.lower().replace("_", "")


def means(section: str, word: str) -> str:
    """What a word, or its part after the last point, is in a section; empty where it is not there."""
    return words(section).get(_plain(word)) or words(section).get(_plain(word.rpartition(".")[2])) or ""


def spelt(text: str) -> str:
    """A text of another language, as Python would spell it."""
    texts: list[str] = []

    def out(match: re.Match[str]) -> str:
        texts.append(match[0])
        return f'"§{len(texts) - 1}§"'

    text = re.sub(r"\"[^\"\n]*\"|'[^'\n]*'", out, text)
    text = re.sub(r"\bcase_when\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", lambda match: re.sub(" *~ *", ", ", match[0]), text)
    for old, new in _SPELLINGS:
        text = re.sub(old, new, text)
    return re.sub(r"\"§(\d+)§\"", lambda match: texts[int(match[1])], text).strip().rstrip(";")


def parsed(text: str) -> ast.expr:
    try:
        node = ast.parse(spelt(text), mode="eval").body
        return unread() if isinstance(node, ast.Tuple) else node
    except (SyntaxError, ValueError, RecursionError):
        raise Unread from None


def _dotted(node: ast.expr) -> str:
    """`np.mean` of a name or a field of names, else nothing."""
    if isinstance(node, ast.Attribute):
        return f"{of}.{node.attr}" if (of := _dotted(node.value)) else ""
    return node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.expr) -> str:
    """An expression as Jostle has it."""
    return ast.unparse(ast.fix_missing_locations(node)).replace(" ** ", "^")


def _parts(node: ast.expr) -> Sequence[ast.expr]:
    """The parts of a list in any spelling: `[x, y]`, `c(x, y)`, `list(x)`, `x + y` of a formula, or one thing."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return node.elts
    if isinstance(node, ast.Call) and _plain(_dotted(node.func)) in ("c", "list", "vars", "by", "array", "NamedAgg", "pd.NamedAgg"):
        return node.args
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_parts(node.left), *_parts(node.right)]
    return [node]


def _word(node: ast.expr) -> str:
    """A name, a text or a column that is spelt `F.col("x")`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Call) and node.args and _dotted(node.func).rpartition(".")[2] in ("col", "desc", "asc", "column", "factor"):
        return _word(node.args[0])
    if isinstance(node, ast.Attribute) or (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        of = node if isinstance(node, ast.Attribute) else node.func
        return _word(of.value) if of.attr in ("desc", "asc") else of.attr if isinstance(node, ast.Attribute) else ""  # type: ignore[attr-defined]
    if isinstance(node, ast.UnaryOp):
        return _word(node.operand)
    if isinstance(node, ast.Subscript):
        return _word(node.slice)
    return node.id if isinstance(node, ast.Name) else ""


def _share(args: Sequence[ast.expr]) -> str:
    shares = [arg.value for arg in args if isinstance(arg, ast.Constant) and isinstance(arg.value, float | int)]
    return f"{shares[0] / 100 if shares[0] > 1 else shares[0]:g}" if shares else "0.5"


def measure(word: str, of: str, args: Sequence[ast.expr] = ()) -> str:
    """An aggregate of an expression; Unread where the word is none."""
    aggregate = means("aggregates", word)
    if not aggregate:
        raise Unread
    if aggregate == "count" and not of:
        return "count(*)"
    more = f", {_share(args)}" if aggregate == "quantile" else ""
    return f"count(distinct {of})" if aggregate == "distinct" else f"{aggregate}({of}{more})"


class Reader:
    """Reads statements of a program that has these tables and results, each with its columns, and other names."""

    def __init__(self, tables: Mapping[str, Sequence[str]], answers: Mapping[str, Sequence[str]], names: Sequence[str]) -> None:
        self.tables = {name: Rows(name, tuple(columns)) for name, columns in tables.items()}
        self.answers = {name: Answer(name, tuple(columns)) for name, columns in answers.items()}
        self.names, self.it, self.truths = names, dict[str, Value](), set[str]()
        self.busy: list[ast.AST] = []

    def value(self, node: ast.expr) -> Value:
        """What an expression is; one of public values is an `Answer` without columns."""
        if isinstance(node, ast.Name):
            known = self.it.get(node.id) or self.tables.get(node.id) or self.answers.get(node.id)
            return known if known is not None else Answer(self.term(node))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.RShift):
            call = node.right if isinstance(node.right, ast.Call) else ast.Call(node.right, [], [])
            return self.verb(_dotted(call.func), self.value(node.left), call)
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.Attribute):
            of = self.value(node.value)
            if isinstance(of, Rows) and node.attr in of.columns and not (of.asked or of.taken):
                return replace(of, taken=(node.attr,))
            if isinstance(of, Answer) and (node.attr in of.columns or not of.columns):
                return Answer(f"{of.text}.{node.attr}")
            return self.verb(node.attr, of, ast.Call(node, [], []))
        if isinstance(node, ast.Subscript):
            return self.indexed(self.value(node.value), node.slice)
        if isinstance(node, ast.BinOp) and (of_both := self.calculated(node)):
            return of_both
        table = self.table_of(node)
        return replace(table, taken=(self.term(node, table),)) if table else Answer(self.term(node))

    def term(self, node: ast.expr, rows: Rows | Answer | None = None, measures: bool = False) -> str:
        return _text(Terms(self, rows, measures).visit(node))

    def table_of(self, node: ast.expr) -> Rows | None:
        """The table whose column an expression has somewhere, with the rows that are meant of it."""
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute | ast.Subscript):
                try:
                    of = self.value(part)
                except (Unread, Nothing):
                    continue
                if isinstance(of, Rows) and of.taken and not of.asked:
                    return replace(of, taken=(), picks=False)
        return None

    def call(self, node: ast.Call) -> Value:
        word = _dotted(node.func)
        if isinstance(node.func, ast.Attribute) and not self.is_module(node.func.value):
            of = self.value(node.func.value)
            if not isinstance(of, Answer) or of.columns:
                return self.verb(node.func.attr, of, node)
        if word.rpartition(".")[2] in ("Pipeline", "make_pipeline") and node.args:
            return self.value(_parts(_parts_of(node.args)[-1])[-1])
        first = [keyword.value for keyword in node.keywords if keyword.arg in ("data", "x", "X", "df")]
        every = [*node.args, *first]
        if means("library", word) and (not every or means("library", word).split()[2] != "one"):
            return self.report(word, None, node)
        if every and not (re.fullmatch(r"(?:\w+\.)?(?:if\w*|iff?|where|case\w*|paste0?|cut|and_|or_)", word.lower()) and word != "where"):
            at = next((i for i, arg in enumerate(every) if isinstance(arg, ast.Name) and arg.id in self.tables), 0)
            if _plain(word) == "aggregate" and isinstance(every[0], ast.BinOp):
                return self.by_formula(every, _said(node))
            of = self.value(every[at])
            if not isinstance(of, Answer) or of.columns:
                return self.verb(word, of, ast.Call(node.func, [*every[:at], *every[at + 1 :]], [k for k in node.keywords if k.value not in first]))
        table = self.table_of(node)
        return replace(table, taken=(self.term(node, table),)) if table else Answer(self.term(node))

    def is_module(self, node: ast.expr) -> bool:
        name = _dotted(node)
        return bool(name) and name.partition(".")[0] not in {*self.tables, *self.answers, *self.it, *self.names}

    def indexed(self, of: Value, node: ast.expr) -> Value:
        """`t["x"]`, `t[["x", "y"]]`, `t[t.x > 1]`, `t[c, "x"]`, `g["x"]`, `g[g.n > 3]`."""
        if isinstance(of, Report):
            return of
        for part in node.elts if isinstance(node, ast.Tuple) else [node]:
            named = [_word(one) for one in _parts(part)]
            if isinstance(part, ast.Slice) and part.lower is part.upper is None:
                continue
            if isinstance(of, Answer):
                of = self.of_answer_at(of, part, named)
            elif named and set(named) <= set(of.columns) and not of.asked:
                whole = isinstance(part, ast.List | ast.Call) and not (of.keys and len(named) == 1)
                of = replace(of, taken=tuple(named), picks=whole)
            elif of.asked:
                of = of if isinstance(part, ast.Constant) else unread()
            else:
                of = replace(of, where=(*of.where, self.term(part, replace(of, taken=()))))
        return of

    def of_answer_at(self, of: Answer, part: ast.expr, named: Sequence[str]) -> Answer:
        if len(named) == 1 and named[0] in of.columns and not isinstance(part, ast.Call):
            return Answer(f"{of.text}.{named[0]}")
        if isinstance(part, ast.Call) and _dotted(part.func) == "order":
            return self.of_answer("arrange", of, part)
        if of.columns and not isinstance(part, ast.Constant):
            return self.of_answer("filter", of, ast.Call(part, [part], []))
        inner = re.fullmatch(r"reversed\((sorted\(.*\))\)", of.text)
        at = self.term(part)
        return Answer(f"{inner[1]}[-1]" if inner and at in ("0", "1") else f"{of.text}[{at}]", of.columns)

    def calculated(self, node: ast.BinOp) -> Value | None:
        """Two answers of the same rows, or an answer and a number, as one query; None of other values."""
        sides: list[Value] = []
        for part in (node.left, node.right):
            try:
                sides.append(self.value(part))
            except Unread:
                return None
        asked = [side for side in sides if isinstance(side, Rows) and len(side.asked) == 1 and not side.keys]
        if not asked or any(isinstance(side, Report) or (isinstance(side, Rows) and not side.asked) for side in sides):
            return None
        if len(asked) == 1:
            texts = [side.query if isinstance(side, Rows) else side.text for side in sides if not isinstance(side, Report)]
            return Answer(_text(ast.BinOp(ast.Name(texts[0]), node.op, ast.Name(texts[1]))))
        texts = [side.asked[0][0] if isinstance(side, Rows) else side.text for side in sides if not isinstance(side, Report)]
        if any(replace(one, asked=(), taken=()) != replace(asked[0], asked=(), taken=()) for one in asked):
            texts = [side.query if isinstance(side, Rows) else text for side, text in zip(sides, texts, strict=True)]
        text = _text(ast.BinOp(ast.Name(f"({texts[0]})" if " " in texts[0].partition("(")[0] else texts[0]), node.op, ast.Name(texts[1])))
        return Answer(text) if "{{" in text else replace(asked[0], asked=((text, ""),), taken=())

    def verb(self, word: str, of: Value, call: ast.Call) -> Value:
        """What a word does with a value; the arguments are not read yet."""
        if isinstance(of, Answer):
            return self.of_answer(word, of, call)
        if isinstance(of, Report) and not (of.call or _plain(word) != "fit"):
            return self.report(of.form, None, call)
        if isinstance(of, Report):
            return of if of.call and means("verbs", word) == "same" else unread(word)
        if of.asked and not of.keys and len(of.asked) == 1 and means("rows", word):
            return Answer(self.term(ast.Call(ast.Name(word), [ast.Name(of.query), *call.args], [])))
        if _plain(word).endswith("crosstab") and not of.taken:
            return self.report("stat.crosstab", of, call)
        does = means("verbs", word)
        if does and not (does in ("summarise", "count") and means("aggregates", word) and (of.taken or of.keys) and not call.args):
            return self.table_verb(does, of, call) or self.group_verb(does, of, call) or unread()
        if words("measures").get(_plain(word)):
            return self.under(words("measures")[_plain(word)], of, call)
        several = means("aggregates", word) == "quantile" and any(len(_parts(arg)) > 1 for arg in _arguments(call))
        if (means("library", word) or several) and not of.asked:
            return self.report("quantiles" if several else word, of, call)
        if means("aggregates", word):
            return self.aggregated(word, of, call)
        if of.taken and not of.asked and not of.picks and (means("rows", word) or _plain(word) in ROW_FUNCTIONS):
            whole = ast.Call(ast.Name(word), [parsed(of.taken[0]), *call.args], call.keywords)
            return replace(of, taken=(self.term(whole, replace(of, taken=())),))
        return unread(word)

    def under(self, aggregate: str, of: Rows, call: ast.Call) -> Value:
        """`COUNTIF(x, ">3")`, `SUMIFS(x, a, "p", b, "q")`, `AVERAGEIF(a, "p", x)`: what is measured, and columns with criteria."""
        args: list[ast.expr] = [ast.Name(column) for column in of.taken]
        args += [ast.Name(got.taken[0]) if isinstance(got := self.argument(arg), Rows) and got.taken else arg for arg in call.args]
        several, measured = _dotted(call.func).lower().endswith("s"), of.taken[0] if of.taken else unread()
        if aggregate != "count" and len(args) == 3 and not several:
            measured, args = _text(args.pop()), args
        elif aggregate != "count" and several:
            args = args[1:]
        tests = []
        for column, test in zip(args[::2], args[1::2], strict=True):
            sign = re.fullmatch(r"([<>=]+)(.*)", str(getattr(test, "value", "")))
            value = f"{'==' if sign[1] == '=' else '!=' if sign[1] == '<>' else sign[1]} {sign[2]}" if sign else f"== {_text(test)}"
            tests.append(self.term(parsed(f"{_text(column)} {value}"), replace(of, taken=())))
        text = "count(*)" if aggregate == "count" else f"{aggregate}({measured})"
        return replace(of, where=(*of.where, *tests), asked=((text, ""),), taken=())

    def do_within(self, of: Rows, call: ast.Call) -> Value:
        """`with(t, mean(x))`."""
        text = self.term(call.args[0], of, measures=True)
        return replace(of, asked=((text, ""),)) if MEASURES.search(text) else replace(of, taken=(text,))

    def aggregated(self, word: str, of: Rows, call: ast.Call) -> Value:
        if of.asked and of.keys and of.asked[0][0] == "count(*)" and means("aggregates", word) == "count":
            return replace(of, asked=((f"count(distinct {', '.join(key for key, _ in of.keys)})", ""),), keys=())
        if of.asked:
            return of if len(of.asked) == 1 and not of.keys else unread()
        columns = [*of.taken] or [name for arg in call.args for part in _parts(arg) if (name := _word(part)) in of.columns]
        if not columns and means("aggregates", word) != "count":
            raise Unread
        several = bool(of.keys) or len(columns) > 1
        asked = [(measure(word, c, call.args), (c if c in of.columns else "x") if several else "") for c in columns]
        return replace(of, asked=tuple(asked) or (("count(*)", "n" if of.keys else ""),), taken=(), picks=False)

    # Verbs, by the names of `foreign.toml` -----------------------------------------------------

    def table_verb(self, does: str, of: Rows, call: ast.Call) -> Value | None:
        """What makes another table: some rows or columns, more columns, rows of others."""
        args, said, columns = _parts_of(call.args), _said(call), _columns_in(call, of)
        match does:
            case "same":
                return of
            case "filter":
                return self.filtered(of, call)
            case "derive":
                return self.derived(of, call)
            case "rename":
                pairs = [(name, _word(node)) for name, node in said.items() if not isinstance(node, ast.Dict)]
                for one in [node for node in _arguments(call) if isinstance(node, ast.Dict)]:
                    pairs += [(_word(new), _word(old)) for old, new in zip(one.keys, one.values, strict=True) if old]
                pairs += [(_word(args[1]), _word(args[0]))] if len(args) == 2 else []
                for new, old in pairs:
                    of = self.with_column(of, new, old if old in of.columns else unread())
                return of
            case "pick" if columns and len(columns) == len(args) and not of.asked:
                return replace(of, taken=columns, picks=True, columns=columns)
            case "drop" if columns and not of.asked and not of.taken:
                return replace(of, taken=tuple(c for c in of.columns if c not in columns), picks=True)
            case "pull":
                return of if of.asked else replace(of, taken=columns[:1] or unread())
            case "missing":
                tests = [f"{column} is not missing" for column in of.taken or columns]
                return of if of.asked else replace(of, where=(*of.where, *tests)) if tests else unread()
            case "union":
                others = [other.table for arg in args if isinstance(other := self.value(arg), Rows)]
                return replace(of, source=f"union({', '.join([of.table, *others])})", where=(), joins="")
            case "join":
                return self.joined(of, call)
        return None

    def group_verb(self, does: str, of: Rows, call: ast.Call) -> Value | None:
        """What makes groups, and what is asked of rows or groups."""
        args, said = _parts_of(call.args), _said(call)
        rows = replace(of, taken=(), picks=False)
        match does:
            case "group":
                keys = [self.key(part, of) for part in args]
                for name, node in said.items():
                    keys += [self.key(part, of, "" if name == "by" else name) for part in _parts(node)]
                return replace(rows, keys=(*of.keys, *keys))
            case "by":  # `tapply(x, k, f)`, `split(x, k)`
                of = replace(of, keys=tuple(self.key(part, rows) for part in _parts(call.args[0])))
                return self.aggregated(_dotted(call.args[1]), of, ast.Call(call.func, [], [])) if len(call.args) > 1 else of
            case "apply" if of.keys and isinstance(call.args[0], ast.Lambda):
                return self.value(self.with_it(call.args[0], of))
            case "apply" if of.keys:
                return self.aggregated(_word(call.args[0]), of, ast.Call(call.func, call.args[1:], []))
            case "apply" if isinstance(call.args[0], ast.Lambda):
                return self.value(self.with_it(call.args[0], of))
            case "reduce" if isinstance(call.args[0], ast.Lambda) and isinstance(call.args[0].body, ast.BinOp):
                return self.aggregated("sum", of, ast.Call(call.func, [], [])) if isinstance(call.args[0].body.op, ast.Add) else None
            case "product" if len(of.taken) == 1:
                columns = [of.taken[0], *(c for arg in args if isinstance(got := self.value(arg), Rows) for c in got.taken)]
                return replace(rows, asked=((f"sum({' * '.join(columns)})", ""),))
            case "within":  # `with(t, mean(x))`
                text = self.term(call.args[0], of, measures=True)
                return replace(of, asked=((text, ""),)) if MEASURES.search(text) else replace(of, taken=(text,))
            case "summarise" if args and not said and not of.taken and all(_word(part) in of.columns for part in args):
                return self.table_verb("pick", of, call)
            case "summarise":
                asked = [pair for arg in call.args for pair in self.asked_by("", arg, of)]
                asked += [pair for name, node in said.items() for pair in self.asked_by(name, node, of)]
                return replace(rows, asked=tuple(asked) or unread())
            case "count":  # `value_counts`, `count(t, k, sort = TRUE)`, `table(x, y)`, `crosstab(x, y)`
                taken = [parsed(column) for column in of.taken]
                counted = [part for part in args if not isinstance(part, ast.Constant) or part.value in of.columns]
                keys = [*of.keys, *(self.key(part, rows) for part in (*taken, *counted))]
                flags = {_plain(k.arg or "") for k in call.keywords}
                order = "n desc" if keys and "sort" in flags else ""
                asked = [("count(*)", "n" if keys else "")]
                return replace(rows, keys=tuple(keys), asked=tuple(asked), order=order, shares="normalize" in flags)
            case "shares":
                return replace(of, shares=True) if of.asked else unread()
            case "pivot" if of.keys and args:
                return replace(of, keys=(*of.keys, *(self.key(part, rows) for part in args[:1])))
            case "pivot" if "aggfunc" not in said and "pivot_table" not in _text(call.func):
                raise Nothing("pivot")
            case "pivot":
                keys = [(_word(part), "") for name in ("index", "columns") if name in said for part in _parts(said[name])]
                word, values = _word(said.get("aggfunc", ast.Name("mean"))), said.get("values")
                asked = [(measure(word, c), c) for part in (_parts(values) if values else ()) if (c := _word(part))]
                return replace(of, keys=tuple(keys), asked=tuple(asked) or (("count(*)", "n"),))
            case "sort" | "head" if not of.asked:
                raise Nothing(does)
            case "sort":
                names = [name for _, name in (*of.asked, *of.keys)]
                by = next((w for arg in _arguments(call) for p in _parts(arg) if (w := _word(p)) in names), of.asked[0][1])
                return replace(of, order=f"{by or unread()}{' desc' * _descends(call)}")
            case "head":
                number = next((str(arg.value) for arg in _arguments(call) if isinstance(arg, ast.Constant)), "1")
                return replace(of, limit=number) if of.order else of if not of.keys else unread()
        return None

    def filtered(self, of: Rows, call: ast.Call) -> Rows:
        if of.keys and not of.asked:
            raise Nothing("filter_of_groups")
        texts = [re.sub("(?<![<>=!])=(?!=)", "==", _word(arg)) if isinstance(arg, ast.Constant) else "" for arg in call.args]
        tests = [parsed(text) if text else self.with_it(arg, of) for text, arg in zip(texts, call.args, strict=True)]
        tests += [ast.Compare(ast.Name(name), [ast.Eq()], [node]) for name, node in _said(call).items() if name in of.columns]
        if of.asked:
            names = tuple(name for _, name in (*of.asked, *of.keys))
            return replace(of, having=(*of.having, *(self.term(test, Rows("", names)) for test in tests)))
        of = replace(of, where=(*of.where, *(self.term(test, replace(of, taken=())) for test in tests)))
        picked = tuple(_word(one) for one in _parts(_said(call)["select"])) if "select" in _said(call) else ()
        return replace(of, taken=picked, picks=True) if picked else of

    def with_it(self, node: ast.expr, of: Value) -> ast.expr:
        """The body of a function of rows; its parameter is the rows then."""
        self.it[node.args.args[0].arg if isinstance(node, ast.Lambda) else "_it"] = of
        return node.body if isinstance(node, ast.Lambda) else node

    def derived(self, of: Rows, call: ast.Call) -> Rows:
        pairs = list(_said(call).items())
        if len(call.args) == 2 and isinstance(call.args[0], ast.Constant):
            pairs.append((_word(call.args[0]), call.args[1]))
        else:
            pairs += [_alias(arg) for arg in _parts_of(call.args)]
        for name, node in pairs:
            text = self.term(self.with_it(node, of), replace(of, taken=()), measures=True)
            if of.keys or MEASURES.search(re.sub(r"\b(?:min|max)\([^()]*,[^()]*\)", "", text)):
                raise Nothing("derive_by_group")
            of = self.with_column(of, name or unread(), text) if not of.asked else unread()
        return of

    def with_column(self, of: Rows, name: str, text: str) -> Rows:
        of = replace(of, taken=(), picks=False)
        return replace(of, source=f"derive({of.table}, {name} = {text})", where=(), joins="", columns=(*of.columns, name))

    def key(self, node: ast.expr, of: Rows, name: str = "") -> tuple[str, str]:
        alias, node = _alias(node)
        word = _word(node)
        text = word if word in of.columns and not isinstance(node, ast.Call) else self.term(node, replace(of, taken=()))
        used = next((column for column in of.columns if re.search(rf"\b{column}\b", text)), "") or unread()
        return (f"({text})" if re.search(" if | and | or | [<>=]", text) else text), name or alias or used

    def asked_by(self, name: str, node: ast.expr, of: Rows) -> Iterator[tuple[str, str]]:
        """What one argument of `agg` asks for: `n = n()`, `x = ("a", "mean")`, `{"a": "mean"}`, `["mean", "std"]`, `F.avg("a")`."""
        alias, node = _alias(node)
        parts, name = _parts(node), name or alias
        if isinstance(node, ast.Dict):
            for column, of_it in zip(node.keys, node.values, strict=True):
                for one in _parts(of_it):
                    several = isinstance(of_it, ast.List) and len(of_it.elts) > 1
                    yield measure(_word(one), _word(column or node)), _word(one) if several else _word(column or node)
        elif len(parts) == 2 and _word(parts[0]) in of.columns and not isinstance(node, ast.List):
            yield measure(_word(parts[1]), _word(parts[0])), name
        elif of.taken and all(means("aggregates", _word(part)) for part in parts):
            yield from ((measure(_word(part), c), name or _word(part)) for c in of.taken for part in parts)
        elif isinstance(node, ast.List):
            yield from (pair for part in parts for pair in self.asked_by("", part, of))
        elif isinstance(node, ast.Call) and _dotted(node.func) == "across":
            yield from ((measure(_dotted(node.args[1]), _word(c)), _word(c)) for c in _parts(node.args[0]))
        else:
            text = self.term(node, replace(of, taken=()), measures=True)
            used = next((c for c in of.columns if re.search(rf"\b{c}\b", text)), "n" if text == "count(*)" else "")
            yield text if MEASURES.search(text) else unread(), name or (used if of.keys else "")

    def joined(self, of: Rows, call: ast.Call) -> Rows:
        other, said = self.value(call.args[0]), _said(call)
        how = _word(said.get("how", ast.Name(""))) or (_dotted(call.func) or getattr(call.func, "attr", "")).partition("_")[0]
        kinds = {"left": "left ", "right": "right ", "full": "full ", "outer": "full "}
        on = said.get("on") or said.get("by") or (call.args[1] if len(call.args) > 1 else None)
        if not isinstance(other, Rows) or how not in (*kinds, "inner", "join", "merge", "pd.merge") or isinstance(on, ast.Compare):
            raise Unread
        keys = [_word(part) for part in _parts(on)] if on is not None else [c for c in of.columns if c in other.columns]
        if "lefton" in said and "righton" in said:
            keys = [f"{_word(said['lefton'])} = {_word(said['righton'])}"]
        return self.with_join(of, kinds.get(how, ""), other, ", ".join(keys) or unread())

    def with_join(self, of: Rows, kind: str, other: Rows, on: str) -> Rows:
        of = replace(of, source=of.table, where=(), joins="") if of.where else of
        columns = tuple(dict.fromkeys((*of.columns, *other.columns)))
        return replace(of, joins=f"{of.joins} {kind}join {other.table} on {on}", columns=columns)

    def by_formula(self, args: Sequence[ast.expr], said: Mapping[str, ast.expr]) -> Value:
        """`aggregate(x ~ a + b, data = t, FUN = mean)`."""
        formula, table, function = args[0], self.value(args[1]), _word(said.get("fun", args[-1]))
        if not isinstance(formula, ast.BinOp) or not isinstance(table, Rows):
            raise Unread
        asked = tuple((measure(function, _word(c)), _word(c)) for c in _parts(formula.left))
        return replace(table, keys=tuple(self.key(part, table) for part in _parts(formula.right)), asked=asked)

    # The library, and results --------------------------------------------------------------------

    def report(self, word: str, of: Rows | None, call: ast.Call) -> Value:
        """A call of the library, of the columns that stand somewhere in the arguments, a formula or `fit(X, y)`."""
        form = means("library", word) or word
        module, function, takes = form.split()
        tables, columns, target, rest = [of] if of else [], [*of.taken] if of else [], "", list[ast.expr]()
        for name, arg in [*(("", arg) for arg in call.args), *((k.arg or "", k.value) for k in call.keywords)]:
            if isinstance(arg, ast.Constant) and isinstance(arg.value, str) and "~" in arg.value:
                arg = parsed(arg.value)
            if isinstance(arg, ast.BinOp) and isinstance(arg.op, ast.BitOr):
                columns = [_word(part) for part in (arg.left, *_parts(arg.right))]
            elif name == "family":
                function = f"{'poisson' if 'poisson' in _text(arg) else 'logistic'}_regression"
            elif isinstance(got := self.argument(arg), Rows):
                tables.append(got)
                target = got.taken[0] if len(got.taken) == 1 and (len(tables) > 1 or name == "y") and not got.picks else target
                columns += got.taken or [key for key, _ in got.keys]
            else:
                rest.append(arg)
        if not tables:
            return Report(form) if not call.args or takes in ("model", "class") else unread()
        table = replace(tables[0], taken=(), picks=False, keys=(), asked=())
        columns += [name for arg in rest for part in _parts(arg) if (name := _word(part)) in table.columns]
        columns = list(dict.fromkeys([target, *columns] if target and takes in ("model", "class") else columns))
        if takes == "by" and len(columns) == 1:
            split = {match[1] for one in tables for c in one.where if (match := re.match(r"(\w+) == ", c))}
            columns, table = [*columns, *split], replace(table, where=())
        others = any(one.source != table.source for one in tables)
        if others or not columns or not set(columns) <= set(table.columns):
            raise Unread
        quoted = [f'"{column}"' for column in columns]
        function = "correlation_matrix" if function == "correlation" and len(columns) > 2 else function
        if takes == "class":
            whole = set(columns) == set(table.columns) or len(columns) == 1
            table, inside = table if whole else replace(table, taken=(*columns[1:], columns[0]), picks=True), quoted[0]
        elif takes == "shares":
            shares = next((self.term(arg) for arg in rest if len(_parts(arg)) > 1), "") or unread()
            inside = f"{quoted[0]}, {shares}"
        elif takes == "model" or function == "correlation_matrix":
            inside = f"[{', '.join(quoted)}]" if takes != "model" else f"{quoted[0]}, [{', '.join(quoted[1:])}]"
        else:
            inside = ", ".join(quoted)
        if len(columns) != {"one": 1, "shares": 1, "pair": max(2, len(columns)), "by": 2}.get(takes, max(len(columns), 1 + (takes == "model"))):
            raise Unread
        return Report(module, f"{function}({table.table}, {inside})", table.amount)

    def argument(self, node: ast.expr) -> Value | None:
        try:
            return self.value(node)
        except Unread:
            return None

    def of_answer(self, word: str, of: Answer, call: ast.Call) -> Answer:
        """What a word does with a result, or with a value of it."""
        does, args = means("verbs", word), _arguments(call)
        if does == "same":
            return of
        if of.columns and does == "filter":
            text = args[0].value if isinstance(args[0], ast.Constant) else ""
            test = self.with_it(parsed(str(text)) if text else args[0], of)
            return Answer(f"[r for r in {of.text} if {self.term(test, of)}]", of.columns)
        if of.columns and does == "sort":
            by = next((w for arg in args for part in _parts(arg) if (w := _word(part)) in of.columns), "") or unread()
            ordered = f'sorted({of.text}, "{by}")'
            return Answer(f"reversed({ordered})" if _descends(call) else ordered, of.columns)
        if of.columns and does == "head":
            many = next((int(arg.value) for arg in args if isinstance(arg, ast.Constant)), 1)
            if many > 1 or _plain(word) == "head":
                return Answer(f"[{of.text}[i] for i in 0..{many - 1}]")
            return self.of_answer_at(of, ast.Constant(0), [])
        if does == "pull":
            return Answer(f"{of.text}.{_word(args[0])}")
        aggregate = means("aggregates", word)
        if aggregate == "count" and not args:
            return Answer(f"len({of.text})")
        if aggregate in ("sum", "min", "max", "avg", "median", "stddev") and not of.columns and not args:
            return Answer(f"{aggregate}({of.text})")
        if means("nothing", word) or not args:
            raise Unread
        return Answer(self.term(ast.Call(ast.Name(word), [ast.Name(of.text), *call.args], call.keywords)))


def unread(word: str = "") -> Any:
    raise Nothing(word) if means("nothing", word) else Unread


def _parts_of(nodes: Sequence[ast.expr]) -> list[ast.expr]:
    return [part for node in nodes for part in _parts(node)]


def _said(call: ast.Call) -> dict[str, ast.expr]:
    """The arguments with a name, but those that only say how a result is shown."""
    said = {(k.arg or ""): k.value for k in call.keywords}
    return {name: node for name, node in said.items() if _plain(name) not in words("ignored")} | {
        _plain(name): node for name, node in said.items() if _plain(name) in ("lefton", "righton", "fun")
    }


def _columns_in(call: ast.Call, of: Rows) -> tuple[str, ...]:
    """The columns that the arguments of a call name."""
    return tuple(name for part in _parts_of(_arguments(call)) if (name := _word(part)) in of.columns)


def _alias(node: ast.expr) -> tuple[str, ast.expr]:
    """The name that `e.alias("n")` has, and what has it; no name where none is given."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("alias", "label", "name"):
        return _word(node.args[0]), node.func.value
    return "", node


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _descends(call: ast.Call) -> bool:
    """Whether an order goes down: `ascending = False`, `desc(n)`, `-n`, `n.desc()`."""
    said = {k.arg: k.value for k in call.keywords}
    down = any(re.match(r"-|.*\bdesc\(", _text(arg)) for arg in call.args)
    return down or "False" in _text(said.get("ascending", ast.Name(""))) or any(
        re.search("True|TRUE", _text(said.get(name, ast.Name("")))) for name in ("descending", "decreasing", "reverse")
    )


class Terms(ast.NodeTransformer):
    """An expression of rows, of a result's lines, or of public values, as Jostle has it; where it `measures`, the words
    of aggregates are meant."""

    def __init__(self, reader: Reader, rows: Rows | Answer | None, measures: bool) -> None:
        self.reader, self.rows, self.measures = reader, rows, measures

    def visit(self, node: ast.AST) -> Any:
        if self.rows is None and isinstance(node, ast.Call | ast.Attribute) and node not in self.reader.busy:
            self.reader.busy.append(node)  # a query may be a part of an expression
            got = self.reader.argument(node) if any(isinstance(n, ast.Name) and n.id in self.reader.tables for n in ast.walk(node)) else None
            if isinstance(got, Rows):
                return ast.Name(got.query)
        known = (ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.List, ast.Tuple, ast.Set, ast.IfExp, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)  # fmt: skip
        return super().visit(node) if isinstance(node, known) else unread()

    def visit_Name(self, node: ast.Name) -> ast.expr:
        constants = {"true": "true", "false": "false", "null": "none", "na": "none", "none": "none"}
        if self.rows is not None and node.id in self.rows.columns:
            return ast.Name(node.id if isinstance(self.rows, Rows) else f"r.{node.id}")
        if node.id.lower() in constants or "." in node.id or node.id in ("missing", *self.reader.names, *self.reader.answers):
            return ast.Name(constants.get(node.id.lower(), node.id))
        raise Unread

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if isinstance(node.value, str) and not re.fullmatch(r"\d{4}-\d\d-\d\d", node.value):
            return ast.Name('"' + node.value.replace('"', '\\"') + '"')
        return ast.Name(str(node.value).lower() if isinstance(node.value, bool) else "none" if node.value is None else str(node.value))

    def _is_rows(self, node: ast.expr) -> bool:
        """Whether this is the table, a result or a pronoun whose columns are meant."""
        if isinstance(node, ast.Name) and (node.id in self.reader.it or node.id == "_it"):
            return True
        got = self.reader.argument(node)
        return isinstance(got, Rows) and not got.asked and not got.taken or isinstance(got, Answer) and bool(got.columns) and self.rows is not None

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if self.rows is not None and self._is_rows(node.value):
            return self.visit(ast.Name(node.attr))  # type: ignore[no-any-return]
        if node.attr in ("str", "dt"):
            return self.visit(node.value)  # type: ignore[no-any-return]
        form = means("rows", node.attr)
        return self._filled(form, [self.visit(node.value)]) if form else ast.Attribute(self.visit(node.value), node.attr)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if self.rows is not None and (name := _word(node.slice)) in self.rows.columns and self._is_rows(node.value):
            return self.visit(ast.Name(name))  # type: ignore[no-any-return]
        if self.rows is not None:
            raise Unread
        return ast.Subscript(self.visit(node.value), self.visit(node.slice))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        return ast.UnaryOp(ast.Not() if isinstance(node.op, ast.Invert) else node.op, self.visit(node.operand))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        sides = [self.visit(one) for one in (node.left, *node.comparators)]
        if isinstance(sides[0], ast.Name) and sides[0].id in self.reader.truths and len(sides) == 2 and isinstance(node.ops[0], ast.Eq):
            said = _text(sides[1]).strip('"').lower()
            if said in ("1", "0", "true", "false", "yes", "no"):
                return sides[0] if said in ("1", "true", "yes") else ast.UnaryOp(ast.Not(), sides[0])
        pairs = [ast.Compare(sides[i], [op], [sides[i + 1]]) for i, op in enumerate(node.ops)]
        return pairs[0] if len(pairs) == 1 else ast.BoolOp(ast.And(), pairs)

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        return ast.List([self.visit(one) for one in node.elts])

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if isinstance(node.op, ast.Add) and self.rows is None and any(isinstance(s, ast.Constant) and isinstance(s.value, str) for s in (node.left, node.right)):
            sides = [self.visit(s) if isinstance(s, ast.Constant) else ast.Call(ast.Name("str"), [self.visit(s)], []) for s in (node.left, node.right)]
            return ast.BinOp(sides[0], node.op, sides[1])
        if isinstance(node.op, ast.BitOr | ast.RShift | ast.BitAnd):
            raise Unread
        return ast.BinOp(self.visit(node.left), node.op, self.visit(node.right))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        function, args = node.func, [*node.args]
        word = _dotted(function)
        last = word.rpartition(".")[2] or getattr(function, "attr", "")
        if means("nothing", last) and not means("aggregates", last):
            raise Nothing(last)
        if _said(node).keys() - {"bins", "breaks", "labels", "right", "default", "include_lowest"}:
            raise Unread  # it says more than is known
        if _plain(last) in ("col", "column", "lit") and args:
            return self.visit(ast.Name(_word(args[0])) if last != "lit" else args[0])  # type: ignore[no-any-return]
        if _plain(last) in ("casewhen", "ifs", "cut", "when", "otherwise"):
            return self._cases(last, node)
        if last in ("and_", "or_"):
            return ast.BoolOp(ast.And() if last == "and_" else ast.Or(), [self.visit(arg) for arg in args])
        if last in ("c", "list", "array"):
            return ast.List([self.visit(arg) for arg in args])
        if isinstance(function, ast.Attribute) and not self.reader.is_module(function.value):
            args.insert(0, function.value)
        if self.measures and (form := words("measures").get(_plain(f"{last}{len(args)}"))):
            return self._filled(form, [self.visit(arg) for arg in args])
        if self.measures and means("aggregates", word or last) and (len(args) < 2 or means("aggregates", last) == "quantile"):
            of = args[0] if args and not (isinstance(args[0], ast.Constant) and args[0].value in ("*", 1)) else None
            name = _word(of) if of is not None and isinstance(of, ast.Constant) else ""
            return ast.Name(measure(word or last, _text(self.visit(ast.Name(name) if name else of)) if of is not None else "", args[1:]))
        if last == "paste" or last == "paste0":
            return self._joined(args)
        form = words("rows").get(_plain(f"{last}{len(args)}")) or words("rows").get(_plain(word)) or means("rows", last)
        form = "round({0})" if form == "round({0}, {1})" and (len(args) == 1 or _text(args[1]) == "0") else form
        if form == "{0} in {1}" and len(args) > 2:
            args = [args[0], ast.List(args[1:])]
        form = "{0} == none" if form == "{0} is missing" and self.rows is None else form
        if form:
            used = [int(at) for at in re.findall(r"\{(\d)\}", form)]
            if max(used) >= len(args) or (len(args) > 1 + max(used) and last != "datediff" and "(" in form):
                raise Unread
            return self._filled(form, [self.visit(arg) if at in used else arg for at, arg in enumerate(args)])
        if last in ROW_FUNCTIONS or last in self.reader.names:
            return ast.Call(ast.Name(last), [self.visit(arg) for arg in args], [])
        raise Unread

    def _filled(self, form: str, args: Sequence[ast.expr]) -> ast.expr:
        given = {f"_{at}": arg for at, arg in enumerate(args)}

        class Put(ast.NodeTransformer):
            def visit_Name(self, node: ast.Name) -> ast.expr:
                return given.get(node.id, node)

        return Put().visit(ast.parse(re.sub(r"\{(\d)\}", r"_\1", form), mode="eval").body)  # type: ignore[no-any-return]

    def _joined(self, args: Sequence[ast.expr]) -> ast.expr:
        """`paste("n:", n)`, with a space between."""
        parts = [self.visit(a) if isinstance(a, ast.Constant) else ast.Call(ast.Name("str"), [self.visit(a)], []) for a in args]
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
                if isinstance(inner.func, ast.Attribute) and inner.func.attr == "then" and isinstance(inner.func.value, ast.Call):
                    inner = ast.Call(inner.func.value.func, [inner.func.value.args[0], inner.args[0]], [])
                pairs.insert(0, (inner.args[0], inner.args[1]))
                inner = inner.func.value if isinstance(inner.func, ast.Attribute) else inner.func
        elif word == "when":
            raise Unread
        else:
            node.args += [k.value for k in node.keywords if k.arg == "default"]
            pairs = list(zip(node.args[::2], node.args[1::2], strict=False))
            pairs += [(ast.Name("True"), node.args[-1])] if len(node.args) % 2 else []
        for condition, value in reversed(pairs):
            if _text(condition).lower() in ("true", "t"):
                last = self.visit(value)
            else:
                last = ast.IfExp(self.visit(condition), self.visit(value), last)
        return last

    def _cut(self, node: ast.Call) -> ast.expr:
        said = {k.arg: k.value for k in node.keywords}
        edges = said.get("bins") or said.get("breaks") or (node.args[-1] if len(node.args) > 1 else None)
        column, edges_of = self.visit(node.args[0]), _parts(edges) if edges is not None else []
        right = "alse" not in _text(said.get("right", ast.Name(""))).lower()
        names = [_text(self.visit(n)) for n in _parts(said["labels"])] if "labels" in said else []
        names = names or [f'"{_text(a)} to {_text(b)}"' for a, b in zip(edges_of, edges_of[1:], strict=False)]
        if len(edges_of) < 3 or len(names) != len(edges_of) - 1:
            raise Unread
        last: ast.expr = ast.Name(names[-1])
        for edge, name in reversed(list(zip(edges_of[1:-1], names, strict=False))):
            last = ast.IfExp(ast.Compare(column, [ast.LtE() if right else ast.Lt()], [self.visit(edge)]), ast.Name(name), last)
        return last
