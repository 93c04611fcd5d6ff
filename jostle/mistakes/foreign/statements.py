"""Statements of other languages: selects of SQL, commands of Stata, and what `tables` reads, as lines of Jostle."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from jostle.diagnostics import Diagnostic
from jostle.language.row_functions import ROW_FUNCTIONS
from jostle.mistakes.foreign import (
    Answer,
    Nothing,
    Report,
    Rows,
    Unread,
    Value,
    arguments_named,
    every_argument,
    means,
    parse,
    parts_in,
    parts_of,
    place_in,
    plain,
    point,
    unparse,
    unread,
    word_of,
    words,
)  # fmt: skip
from jostle.mistakes.foreign.declarations import DECLARES, declared
from jostle.mistakes.foreign.expressions import is_text, pieces, together
from jostle.mistakes.foreign.selects import CHANGES, changes, select, split
from jostle.mistakes.foreign.tables import Verbs
from jostle.records import replace

_GIVEN = re.compile(r"(?P<release>(?:release|return) +)?(?:(?P<name>\w+) *(?:=(?!=)|<-)\s*)?(?P<value>.+)")
_COLUMN = re.compile(r"(\w+)(?:\.|\$|\[\[?[\"'])(\w+)(?:[\"']\]?\])? *(?:=(?!=)|<-) *(.+)")
_EXISTS = re.compile(
    r"(?i)\b(not +)?exists *\(select [^()]*? from (\w+)(?: (?:as )?(?!where)(\w+))?"
    r" where (?:\w+\.)?(\w+) *==? *(?:(\w+)\.)?(\w+)(?: and ([^()]*))?\)"
)
_INNER = re.compile(r"(?i)(?<=[<>=]) *\((select (?:[^()]|\([^()]*\))*)\)")
_SKIPS = re.compile(r"(?i)\blimit (\d+) offset (\d+)")
_INTO = re.compile(r"(?is)(select .*?) into (\w+) (from .*)")
_LABEL = re.compile(r"(?i)^select ([\"'])[^\"']*\1(?: as \w+)?, *")
_SQL_IN = re.compile(r"^\w+ *(?:=|<-) *|^\{\{ *|^\w+ *= *\{\{ *| *\}\}$")
_ONE = re.compile(
    r"(?i)(\w+ *= *)?(?:\{\{ *)?select (\w+) from (\w+) where (\w+) *==? *(\"[^\"]*\"|'[^']*'|\d+) *(?:\}\})?"
)
_AMOUNT = re.compile(r" with (?:epsilon|rho) [\d.e-]+(?: delta [\d.e-]+)?(?= *(?:\}\}|\))?$)")
_IN_TEXT = re.compile(
    r"(?:[\w.]+\.)?(?:sql|query|execute|read_sql\w*|sqldf|dbGetQuery)\((?:\w+, *)?([\"'])(select .*)\1(?:, *\w+)?\)"
)
_VIEW = re.compile(r"(?i)create (?:or replace )?(?:temp |temporary )?(?:view|table) (\w+) as \(?(.*?)\)?")
_WALKS = ("iterrows", "itertuples", "to_dict", "to_dicts", "iter_rows", "collect", "rows", "values")
_WALK = re.compile(r"for (?:\w+, *)?(\w+) in (\w+)\.(?:iterrows|itertuples|to_dicts|iter_rows|collect)\(.*?\):(.*)")
_SQL = re.compile(r"(?is)(?:\{\{ *)?((?:select|with \w+ as) .*?)(?:\}\})?$")


class Meanings(Verbs):
    """Reads expressions into what they mean."""

    def __init__(
        self, tables: Mapping[str, Sequence[str]], answers: Mapping[str, Sequence[str]], names: Sequence[str]
    ) -> None:
        super().__init__(tables, answers, names)
        self.read, self.text = self.argument, ""

    def value(self, node: ast.expr) -> Value:
        """What an expression is; one of public values is an `Answer` without columns."""
        match node:
            case ast.Name(id=name):
                return self.it.get(name) or self.tables.get(name) or self.answers.get(name) or Answer(self.term(node))
            case ast.BinOp(op=ast.RShift(), left=left, right=right):
                call = right if isinstance(right, ast.Call) else ast.Call(right, [], [])
                return self.verb(point(call.func), self.value(left), call)
            case ast.Call():
                return self.call(node)
            case ast.Attribute():
                return self.field(self.value(node.value), node)
            case ast.Subscript():
                return self.indexed(self.value(node.value), place_in(node))
            case ast.BinOp() if (both := self.both(node)) is not None:
                return both
            case ast.ListComp(elt=elt, generators=[walk]) | ast.GeneratorExp(elt=elt, generators=[walk]):
                of = self.walked(walk.iter)
                return self.of_rows(node) if of is None else self.of_each(of, walk.target, walk.ifs, elt)
        return self.of_rows(node)

    def walked(self, node: ast.expr) -> Rows | None:
        """The rows that a loop of Python goes through, `t`, `t.iterrows()`, `enumerate(t)`; None of public values."""
        if isinstance(node, ast.Call) and point(node.func) == "enumerate" and node.args:
            return self.walked(node.args[0])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _WALKS:
            return self.walked(node.func.value)
        of = self.argument(node)
        return of if isinstance(of, Rows) and not (of.asks or of.keys) else None

    def of_each(self, of: Rows, target: ast.expr, tests: Sequence[ast.expr], value: ast.expr) -> Rows:
        """The rows with what is taken of each in a loop of Python, `p.age for p in t if p.smoker`."""
        name = target.elts[-1] if isinstance(target, ast.Tuple) else target
        if not isinstance(name, ast.Name):
            raise Unread
        self.it[name.id] = of
        whole = replace(of, takes=(), picks=False)
        of = replace(of, where=(*of.where, *(self.term(test, whole) for test in tests)))
        if isinstance(value, ast.Name) and value.id == name.id:
            return of
        return replace(of, takes=(self.term(value, whole),), picks=False)

    def of_rows(self, node: ast.expr) -> Value:
        """An expression of the rows of a table, or of public values alone."""
        table = self.table_of(node)
        return replace(table, takes=(self.term(node, table),)) if table else Answer(self.term(node))

    def field(self, of: Value, node: ast.Attribute) -> Value:
        if isinstance(of, Answer) and node.attr in ("loc", "iloc", "at", "iat", "values", "item"):
            return of
        if isinstance(of, Rows) and node.attr in of.columns and not (of.asks or of.takes):
            return replace(of, takes=(node.attr,))
        if isinstance(of, Answer) and (node.attr in of.columns or not of.columns):
            each = re.sub(r"^\[r (?=for r in )", f"[r.{node.attr} ", of.text)
            return Answer(each if each != of.text else f"{of.text}.{node.attr}")
        if isinstance(of, Answer) and of.text in self.answers and node.attr in self.listed:
            return Answer(f'{of.text}["{node.attr}"]', of.columns)
        return self.verb(node.attr, of, ast.Call(node, [], []))

    def table_of(self, node: ast.expr) -> Rows | None:
        """The table whose column an expression has somewhere, with the rows that are meant of it."""
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute | ast.Subscript) or (isinstance(part, ast.Name) and part.id in self.it):
                try:
                    of = self.value(part)
                except (Unread, Nothing):
                    continue
                if isinstance(of, Rows) and of.takes and not of.asks:
                    return replace(of, takes=(), picks=False)
        return None

    def call(self, node: ast.Call) -> Value:
        word = point(node.func)
        if plain(word) == "vlookup" and isinstance(of := self.value(node.args[1]), Answer) and of.columns:
            return Answer(f"{of.text}[{self.term(node.args[0])}].{of.columns[int(unparse(node.args[2])) - 1]}")
        if isinstance(node.func, ast.Attribute) and not self.is_module(node.func.value):
            of = self.value(node.func.value)
            if not isinstance(of, Answer) or of.columns:
                return self.verb(node.func.attr, of, node)
        if word.rpartition(".")[2] in ("Pipeline", "make_pipeline") and node.args:
            return self.value(parts_in(parts_of(node.args)[-1])[-1])
        takes = (means("library", word) or "  ").split(" ")[2]
        if takes and (takes != "one" or not (node.args or node.keywords)):
            return self.report(word, None, node)
        return self.applied(word, node) or (Answer(self.term(node)) if word.startswith("paste") else self.of_rows(node))

    def applied(self, word: str, node: ast.Call) -> Value | None:
        """A function of a table or a column, as its method; None of other functions."""
        first = [keyword.value for keyword in node.keywords if keyword.arg in ("data", "x", "X", "df")]
        every = [*node.args, *first]
        if not every or re.fullmatch(r"\w+\.where|(?:\w+\.)?(?:if\w*|case\w*|paste0?|cut|and_|or_)", word.lower()):
            return None
        at = next((i for i, arg in enumerate(every) if isinstance(arg, ast.Name) and arg.id in self.tables), 0)
        if plain(word) == "aggregate" and isinstance(every[0], ast.BinOp):
            return self.by_formula(every, arguments_named(node))
        of = self.value(every[at])
        if isinstance(of, Answer) and not of.columns:
            return None
        named = [keyword for keyword in node.keywords if keyword.value not in first]
        return self.verb(word, of, ast.Call(node.func, [*every[:at], *every[at + 1 :]], named))

    def indexed(self, of: Value, node: ast.expr) -> Value:
        """`t["x"]`, `t[["x", "y"]]`, `t[t.x > 1]`, `t[c, "x"]`, `g["x"]`, `g[g.n > 3]`."""
        if isinstance(of, Report):
            return of
        for part in node.elts if isinstance(node, ast.Tuple) else [node]:
            named = [word_of(one) for one in parts_in(part)]
            if isinstance(part, ast.Slice) and part.lower is part.upper is None:
                continue
            if isinstance(of, Answer):
                of = self.of_answer_at(of, part, named)
            elif named and set(named) <= set(of.columns) and not of.asks:
                whole = isinstance(part, ast.List | ast.Call) and not (of.keys and len(named) == 1)
                of = replace(of, takes=tuple(named), picks=whole)
            elif of.asks:
                of = of if isinstance(part, ast.Constant) and not of.keys else unread()
            else:
                of = replace(of, where=(*of.where, self.term(part, replace(of, takes=()))))
        return of

    def both(self, node: ast.BinOp) -> Value | None:
        """Two answers of the same rows as one query, or an answer and a number; None of other values."""
        sides = [self.argument(part) for part in (node.left, node.right)]
        asks = [side for side in sides if isinstance(side, Rows) and len(side.asks) == 1 and not side.keys]
        if not asks or any(not isinstance(side, Answer) and side not in asks for side in sides):
            return None
        of = replace(asks[0], asks=(), takes=())
        alike = len(asks) == 2 and replace(asks[1], asks=(), takes=()) == of
        texts = [_part(side, alike) for side in sides if side is not None]
        texts[0] = f"({texts[0]})" if alike and " " in texts[0].partition("(")[0] else texts[0]
        text = unparse(ast.BinOp(ast.Name(texts[0]), node.op, ast.Name(texts[1])))
        text = re.sub(r"^\(?sum\(([^()]*)\)\)? / count\((?:\*|\1)\)$", r"avg(\1)", text)
        return replace(of, asks=((text, ""),)) if alike else Answer(text)

    def verb(self, word: str, of: Value, call: ast.Call) -> Value:
        """What a word does with a value; the arguments are not read yet."""
        if isinstance(of, Answer):
            return self.of_answer(word, of, call)
        if isinstance(of, Report) and not of.call:
            return self.report(of.form, None, call) if plain(word) == "fit" else unread(word)
        if isinstance(of, Report):
            return of if means("verbs", word) == "same" else unread(word)
        if of.asks and not of.keys and len(of.asks) == 1 and means("rows", word):
            return Answer(self.term(ast.Call(ast.Name(word), [ast.Name(of.query), *call.args], [])))
        if plain(word).endswith("crosstab") and not of.takes:
            return self.report("stat.crosstab", of, call)
        does, measures = means("verbs", word), means("aggregates", word)
        if does and not (measures and does in ("summarise", "count") and (of.takes or of.keys) and not call.args):
            result: Value = getattr(self, f"do_{does}")(of, call)
            return result
        return self.of_columns(word, measures, of, call)

    def of_columns(self, word: str, measures: str, of: Rows, call: ast.Call) -> Value:
        """An aggregate, a function of the library or one of rows, of the columns that are meant."""
        if words("measures").get(plain(word)):
            return self.under(words("measures")[plain(word)], of, call)
        several = measures == "quantile" and any(len(parts_in(arg)) > 1 for arg in every_argument(call))
        if (means("library", word) or several) and not of.asks:
            return self.report("quantiles" if several else word, of, call)
        if measures:
            return self.aggregate(word, of, call)
        if of.takes and not of.asks and not of.picks and (means("rows", word) or plain(word) in ROW_FUNCTIONS):
            whole = ast.Call(ast.Name(word), [parse(of.takes[0]), *call.args], call.keywords)
            return replace(of, takes=(self.term(whole, replace(of, takes=())),))
        return unread(word)

    def argument(self, node: ast.expr) -> Value | None:
        try:
            return self.value(node)
        except Unread:
            return None


def _part(value: Value, alike: bool) -> str:
    """A value as a part of a calculation, of one query where its parts are `alike`."""
    if isinstance(value, Rows):
        return value.asks[0][0] if alike else value.query
    return value.text if isinstance(value, Answer) else unread()


# Statements ---------------------------------------------------------------------------------


def lines_of(text: str, reader: Meanings) -> list[str]:
    """The lines of Jostle that mean what a statement of another language does."""
    if (declares := DECLARES.match(text)) is not None:
        return declared(text, str(declares.lastgroup), reader.text, reader.wide)
    new = spoken(text.strip().rstrip(";"), reader)
    try:
        return _lines_of(new, reader)
    except Unread:
        return [new] if new != text.strip() else unread()  # right as it stands, or not shown


def spoken(text: str, reader: Meanings) -> str:
    """A text with what it says in words as SQL has it; what stands in quotes is left alone."""
    tables, texts = "|".join(reader.tables) or "-", re.findall(r"\"[^\"]*\"|'[^']*'", text)
    text = re.sub(r"\"[^\"]*\"|'[^']*'", '""', text)
    for pattern, form in words("spoken").items():
        text = re.sub(f"(?i){pattern.replace('<T>', tables)}", form, text)
    parts = text.split('""')
    return "".join(part + after for part, after in zip(parts, [*texts, ""], strict=True)) if texts else text


def _lines_of(text: str, reader: Meanings) -> list[str]:
    whole = text
    if amount := _AMOUNT.search(text):
        text = text[: amount.start()] + text[amount.end() :]
        reader.tables = {name: replace(table, amount=amount[0]) for name, table in reader.tables.items()}
    if parts := _taken_apart(whole, reader) or _of_sql(text, reader):
        return parts
    return _of_line(text, amount, reader)


def _of_sql(text: str, reader: Meanings) -> list[str]:
    """The lines of a statement of SQL that is no query of one line; none of others."""
    if view := _VIEW.fullmatch(text):
        return [f"{view[1]} = {select(view[2], reader).table}"]
    if into := _INTO.fullmatch(text):
        return _of_line(f"{into[2]} = {into[1]} {into[3]}", None, reader)
    if change := CHANGES.fullmatch(text):
        return changes(change, reader)
    if len(parts := split(_SQL_IN.sub("", text), r"\bunion all\b")) > 1 and "(select" not in text.lower():
        return _several([part for _, part in parts], text, reader)
    return []


def _of_line(text: str, amount: re.Match[str] | None, reader: Meanings) -> list[str]:
    if walk := _WALK.fullmatch(text):
        return [f"for {walk[1]} in {walk[2]}:" + re.sub(rf"\b{walk[1]}\[[\"'](\w+)[\"']\]", rf"{walk[1]}.\1", walk[3])]
    if one := _ONE.fullmatch(text):
        text = f"{one[1] or ''}{one[3]}[{one[3]}.{one[4]} == {one[5]}].{one[2]}"
    if (column := _COLUMN.fullmatch(text)) and column[1] in reader.answers:
        return [f"{column[2]} = {line}" for line in lines_for(reader.value(parse(column[3])))]
    if (column := _COLUMN.fullmatch(text)) and column[1] in reader.tables:
        derive = ast.Call(ast.Name("mutate"), [], [ast.keyword(column[2], parse(column[3]))])
        return [f"{column[1]} = {reader.do_derive(reader.tables[column[1]], derive).table}"]
    text = commanded(text, reader)
    if several := re.match(r"\w+(?:, *\w+)+ *= *", text):
        reader.value(parse(text[several.end() :]))  # which nothing may do
        raise Unread
    gives = _GIVEN.fullmatch(text) or unread()
    if (gives["release"] or "").startswith("release") and not gives["name"]:
        raise Unread
    before = f"{gives['release'] or ''}{gives['name'] + ' = ' if gives['name'] else ''}"
    return _lines(gives["value"], before, amount, reader)


def _taken_apart(text: str, reader: Meanings) -> list[str]:
    """A select in parts: `exists` as `in`, a select that is compared with and an offset in lines of their own."""
    if exists := _EXISTS.search(text):
        more = re.sub(rf"\b{exists[3] or exists[2]}\.", "", exists[7] or "")
        inner, outer = (exists[6], exists[4]) if exists[5] in (exists[2], exists[3]) else (exists[4], exists[6])
        test = f"{outer} {exists[1] or ''}in (select {inner} from {exists[2]}{f' where {more}' if more else ''})"
        return [f"{text[: exists.start()]}{test}{text[exists.end() :]}"]
    if (inner := _INNER.search(text)) and (of := select(inner[1], reader)).asks and not of.keys:
        name = "_".join(re.findall(r"\w+", of.asks[0][0])[:2])
        reader.names.append(name)
        rest = _lines_of(f"{text[: inner.start(1) - 1]}{name}{text[inner.end(1) + 1 :]}", reader)
        return [f"{name} = {of.query}", *rest]
    if (skips := _SKIPS.search(text)) and (before := re.match(r"(\w+) *(?:=|<-) *", text)):
        first, many = int(skips[2]), int(skips[1])
        line = f"every = {text[before.end() : skips.start()]}limit {first + many}{text[skips.end() :]}"
        last = f"every[{first}]" if many == 1 else f"[every[i] for i in {first}..{first + many - 1}]"
        return [*_lines_of(line, reader), f"{before[1]} = {last}"]
    return []


def _several(parts: Sequence[str], text: str, reader: Meanings) -> list[str]:
    """Selects of one row each, one under the other, as a list of them."""
    name = f"{before[1]} = " if (before := re.match(r"(\w+) *(?:=|<-)", text)) else ""
    queries = [select(_LABEL.sub("select ", part), reader).query for part in parts]
    return [f"{name}[{', '.join(queries)}]"] if name else queries


def _lines(text: str, before: str, amount: re.Match[str] | None, reader: Meanings) -> list[str]:
    """The lines that a value means, the last of which begins so."""
    prints = re.fullmatch(r"(?:print|cat|message|display)\((.*)\)", text) if not before else None
    inner = prints[1] if prints else text
    if prints and not _IN_TEXT.fullmatch(inner) and not _SQL.fullmatch(inner):
        return printed(text, reader)
    inner = quoted[2] if (quoted := _IN_TEXT.fullmatch(inner)) else inner
    inner = re.sub(r"\{\{ *(?!select\b|with\b)(\w+) +(\w+) +(?=(?:if|from|where)\b)", r"{{ select \1(\2) ", inner)
    sql = _SQL.fullmatch(re.sub(r"(?i)\b(and|or)\((?=(?:[^(),]|\([^()]*\))*,)", r"\1_(", inner))
    if sql and inner.startswith("{{") and not amount:  # of what is left of an allotment
        reader.tables = {name: replace(table, amount="") for name, table in reader.tables.items()}
    value = select(sql[1], reader) if sql else reader.value(parse(inner))
    if isinstance(value, Rows) and not value.asks:
        value = _table(value, before, inner, reader)
        if amount or value.table in reader.tables:
            raise Unread  # nothing is asked
    if isinstance(value, Answer) and value.text in (*reader.answers, *reader.names):
        raise Unread
    *above, last = lines_for(value)
    return [*above, before + (f"print({last})" if prints else last)]


def printed(text: str, reader: Meanings) -> list[str]:
    """`print` of what other languages put together as one text: of the parts, where a space stands between each two."""
    node = parse(text)
    if not isinstance(node, ast.Call) or any(keyword.arg not in ("sep", "end") for keyword in node.keywords):
        raise Unread
    args, lines = list[str](), list[str]()
    for arg in node.args:
        parts = together(_sum_of(arg))
        spaced = all(
            (is_text(one) and str(one.value)[-1] in " \n") or (is_text(two) and str(two.value)[0] in " \n")
            for one, two in pairwise(parts)
        )
        for part in parts if spaced else [arg]:
            part = ast.Constant(str(part.value).strip()) if is_text(part) and spaced else part
            if is_text(part) and not part.value:
                continue
            own = lines_for(reader.value(part))
            lines, args = [*lines, *own[:-1]], [*args, own[-1]]
    return [*lines, f"print({', '.join(args)})"]


def _sum_of(node: ast.expr) -> list[ast.expr]:
    """The parts of a text that is put together, also by `+`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [*_sum_of(node.left), *_sum_of(node.right)]
        return parts if any(map(is_text, parts)) else [node]
    if isinstance(node, ast.Call) and point(node.func) in ("str", "as_character") and len(node.args) == 1:
        return node.args
    return pieces(node) or [node]


def _table(of: Rows, before: str, text: str, reader: Meanings) -> Rows:
    """Rows as a table; what is worked out by conditions is a column of it, under the name that it is given."""
    if not of.takes or " if " not in of.takes[0] or not before:
        return of
    return reader.with_column(of, before.split()[-2], of.takes[0]) if "cut" not in text else unread()


def with_later(lines: Sequence[str], reader: Meanings) -> tuple[list[str], int]:
    """The lines that the first of some lines means, and how far below it is the one that says what it is called with:
    `m = LinearRegression()`, and `m.fit(X, y)`."""
    model = re.fullmatch(r" *(\w+) *= *(\w+\([^()]*\))", lines[0])
    below = next((at for at, line in enumerate(lines) if model and line.strip().startswith(f"{model[1]}.fit(")), 0)
    if not model or not below:
        return lines_of(lines[0], reader), 0
    return lines_of(f"{model[1]} = {model[2]}{lines[below].strip()[len(model[1]) :]}", reader), below


def lines_for(value: Value) -> list[str]:
    """A value as lines of Jostle, the last of which is an expression."""
    if isinstance(value, Rows):
        if value.shares:
            return [f"counts = {value.query}", "counts.n / sum(counts.n)"]
        if value.takes and not (value.asks or value.picks or value.keys or set(value.takes) <= set(value.columns)):
            raise Unread
        return [value.query if value.asks else re.sub(r"^\((select \*.*)\)$", r"{{ \1 }}", value.table)]
    if isinstance(value, Report):
        return [f"use {value.form}", f"{value.call}{value.amount}"] if value.call else unread()
    return [value.text]


def plain_words(fault: Diagnostic, word: str) -> Diagnostic:
    """A fault at a word that nothing here does, with the reason and what comes nearest."""
    reason, _, nearest = means("nothing", word).partition(" | ")
    old = re.match(r"(?:write |as in )?(`(?!\w+\(\w+\)`)[^`]*[({ ][^`]*`)", fault.help)
    what = f"`{word}`" if fault.span and word in fault.span.source.text else "so"
    return replace(fault, help=f"nothing here does {what}: {reason}; {nearest}{f', as {old[1]}' if old else ''}")


def commanded(text: str, reader: Meanings) -> str:
    """A command of Stata as a pipe from the one table that has the most of its columns: `regress y x`, `keep if c`."""
    for pattern, pipe in words("commands").items():
        if match := re.fullmatch(pattern, text):
            return _piped(match.groupdict(""), pipe, reader)
    return text


def _piped(own: dict[str, str], pipe: str, reader: Meanings) -> str:
    used = set(re.findall(r"\w+", " ".join(own.values())))
    many = {name: len(used & set(of.columns)) for name, of in reader.tables.items()}
    most = [name for name in many if many[name] == max(many.values()) > 0]
    table = own.get("of") or (most[0] if len(most) == 1 else unread())
    own |= {"table": table, "rows": f"{table} %>% filter({own['test']})" if own.get("test") else table}
    return re.sub(r"\{(\w+)(,?)\}", lambda m: ", ".join(own[m[1]].split()) if m[2] else own[m[1]], pipe)


# What a program has above a line -----------------------------------------------------------------

_MADE = re.compile(
    r"(?m)^ *(?:private +)?(\w+) *= *(?:(where|derive|pick|union|limited)\((\w+)|"
    r"(table|bound|dataset|postgres|spark)\(|(\{\{)|(\w+)$)?"
)


def reader_of(above: str, text: str = "") -> Meanings:
    """A reader that knows the tables, results and names of a program above a line, and the `text` of all of it."""
    tables: dict[str, Sequence[str]] = {}
    answers: dict[str, Sequence[str]] = {}
    names: list[str] = []
    clauses = list(_MADE.finditer(above))
    for at, match in enumerate(clauses):
        own = above[match.end() : clauses[at + 1].start() if at + 1 < len(clauses) else None]
        if match[2] and match[3] in tables:
            more = re.findall(r"(\w+) *=(?!=)", own) if match[2] == "derive" else []
            tables[match[1]] = (*tables[match[3]], *more)
        elif match[6] in tables:
            tables[match[1]] = tables[match[6]]
        elif match[4]:
            inner = re.search(r"described\s+by\s*\{(.*)", own, re.DOTALL)
            parts = f"{{{inner[1]}" if inner else own
            tables[match[1]] = tuple(dict.fromkeys(re.findall(r"[{,\s]`?(\w+)`? *:", parts)))
        elif match[5] and (
            query := re.search(
                r"select (.*?) from .*?\b(?:groupby|group by) (.*?)(?: having| order| limit| with| over|\}\})",
                own,
                re.I,
            )
        ):
            keys = [key.split()[-1].strip("()") for _, key in split(query[2], ",")]
            answers[match[1]] = (*keys, *re.findall(r"\bas (\w+)", query[1]))
        else:
            names.append(match[1])
    for key, part, of in re.findall(r"\bfor (\w+), *(\w+) in partition\((\w+)", above):
        tables[part] = tables.get(of, ())
        names.append(key)
    names += re.findall(r"\b(?:for|param) (\w+)", above)
    reader = Meanings(tables, answers, names)
    reader.text = text
    reader.truths = set(re.findall(r"(\w+) *: *\{(?:true, *false|false, *true)\}", above))
    reader.listed = frozenset(re.findall(r"[{,] *\"([^\"]*)\"(?= *[,}])", above))
    reader.files = {file: name for name, file in re.findall(r"(\w+) *= *table\(\"([^\"]*)\"", above)}
    return reader
