"""Statements of other languages: selects of SQL, commands of Stata, and what `habits` reads, as lines of Jostle."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from jostle.diagnostics import Diagnostic
from jostle.language.row_functions import ROW_FUNCTIONS
from jostle.records import replace
from jostle.tools.foreign import (
    MEASURES,
    Answer,
    Nothing,
    Report,
    Rows,
    Unread,
    Value,
    arguments_named,
    dotted,
    every_argument,
    means,
    parsed,
    parts_in,
    parts_of,
    plain,
    unparsed,
    unread,
    word_of,
    words,
)  # fmt: skip
from jostle.tools.habits import Verbs

_GIVEN = re.compile(r"(?P<release>release +)?(?:(?P<name>\w+) *(?:=(?!=)|<-)\s*)?(?P<value>.+)")
_COLUMN = re.compile(r"(\w+)(?:\.|\$|\[\[?[\"'])(\w+)(?:[\"']\]?\])? *(?:=(?!=)|<-) *(.+)")
_AMOUNT = re.compile(r" with (?:epsilon|rho) [\d.e-]+(?: delta [\d.e-]+)?(?= *(?:\}\})?$)")
_IN_TEXT = re.compile(
    r"(?:[\w.]+\.)?(?:sql|query|execute|read_sql\w*|sqldf|dbGetQuery)\((?:\w+, *)?([\"'])(select .*)\1(?:, *\w+)?\)"
)
_SQL = re.compile(r"(?is)(?:\{\{ *)?((?:select|with \w+ as) .*?)(?:\}\})?$")
_CLAUSES = (
    r"\b(?:select|from|(?:left |right |full |inner |natural )?(?:outer )?join|where|if|group ?by|having|qualify|"
    r"order by|limit)\b(?! *\((?!select\b))"
)


class Reader(Verbs):
    """Reads expressions into what they mean."""

    def __init__(
        self, tables: Mapping[str, Sequence[str]], answers: Mapping[str, Sequence[str]], names: Sequence[str]
    ) -> None:
        super().__init__(tables, answers, names)
        self.read = self.argument

    def value(self, node: ast.expr) -> Value:
        """What an expression is; one of public values is an `Answer` without columns."""
        if isinstance(node, ast.Name):
            known = self.it.get(node.id) or self.tables.get(node.id) or self.answers.get(node.id)
            return known if known is not None else Answer(self.term(node))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.RShift):
            call = node.right if isinstance(node.right, ast.Call) else ast.Call(node.right, [], [])
            return self.verb(dotted(call.func), self.value(node.left), call)
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

    def table_of(self, node: ast.expr) -> Rows | None:
        """The table whose column an expression has somewhere, with the rows that are meant of it."""
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute | ast.Subscript) or (isinstance(part, ast.Name) and part.id in self.it):
                try:
                    of = self.value(part)
                except (Unread, Nothing):
                    continue
                if isinstance(of, Rows) and of.taken and not of.asked:
                    return replace(of, taken=(), picks=False)
        return None

    def call(self, node: ast.Call) -> Value:
        word = dotted(node.func)
        if isinstance(node.func, ast.Attribute) and not self.is_module(node.func.value):
            of = self.value(node.func.value)
            if not isinstance(of, Answer) or of.columns:
                return self.verb(node.func.attr, of, node)
        if word.rpartition(".")[2] in ("Pipeline", "make_pipeline") and node.args:
            return self.value(parts_in(parts_of(node.args)[-1])[-1])
        first = [keyword.value for keyword in node.keywords if keyword.arg in ("data", "x", "X", "df")]
        every = [*node.args, *first]
        if means("library", word) and (not every or means("library", word).split()[2] != "one"):
            return self.report(word, None, node)
        if every and not re.fullmatch(r"\w+\.where|(?:\w+\.)?(?:if\w*|case\w*|paste0?|cut|and_|or_)", word.lower()):
            at = next((i for i, arg in enumerate(every) if isinstance(arg, ast.Name) and arg.id in self.tables), 0)
            if plain(word) == "aggregate" and isinstance(every[0], ast.BinOp):
                return self.by_formula(every, arguments_named(node))
            of = self.value(every[at])
            if not isinstance(of, Answer) or of.columns:
                named = [keyword for keyword in node.keywords if keyword.value not in first]
                return self.verb(word, of, ast.Call(node.func, [*every[:at], *every[at + 1 :]], named))
        table = self.table_of(node) if not word.startswith("paste") else None
        return replace(table, taken=(self.term(node, table),)) if table else Answer(self.term(node))

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
            elif named and set(named) <= set(of.columns) and not of.asked:
                whole = isinstance(part, ast.List | ast.Call) and not (of.keys and len(named) == 1)
                of = replace(of, taken=tuple(named), picks=whole)
            elif of.asked:
                of = of if isinstance(part, ast.Constant) and not of.keys else unread()
            else:
                of = replace(of, where=(*of.where, self.term(part, replace(of, taken=()))))
        return of

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
            texts = [
                side.query if isinstance(side, Rows) else side.text for side in sides if not isinstance(side, Report)
            ]
            return Answer(unparsed(ast.BinOp(ast.Name(texts[0]), node.op, ast.Name(texts[1]))))
        texts = [
            side.asked[0][0] if isinstance(side, Rows) else side.text for side in sides if not isinstance(side, Report)
        ]
        if any(replace(one, asked=(), taken=()) != replace(asked[0], asked=(), taken=()) for one in asked):
            texts = [side.query if isinstance(side, Rows) else text for side, text in zip(sides, texts, strict=True)]
        text = unparsed(
            ast.BinOp(
                ast.Name(f"({texts[0]})" if " " in texts[0].partition("(")[0] else texts[0]),
                node.op,
                ast.Name(texts[1]),
            )
        )
        return Answer(text) if "{{" in text else replace(asked[0], asked=((text, ""),), taken=())

    def verb(self, word: str, of: Value, call: ast.Call) -> Value:
        """What a word does with a value; the arguments are not read yet."""
        if isinstance(of, Answer):
            return self.of_answer(word, of, call)
        if isinstance(of, Report) and not (of.call or plain(word) != "fit"):
            return self.report(of.form, None, call)
        if isinstance(of, Report):
            return of if of.call and means("verbs", word) == "same" else unread(word)
        if of.asked and not of.keys and len(of.asked) == 1 and means("rows", word):
            return Answer(self.term(ast.Call(ast.Name(word), [ast.Name(of.query), *call.args], [])))
        if plain(word).endswith("crosstab") and not of.taken:
            return self.report("stat.crosstab", of, call)
        does = means("verbs", word)
        if does and not (
            does in ("summarise", "count") and means("aggregates", word) and (of.taken or of.keys) and not call.args
        ):
            return self.table_verb(does, of, call) or self.group_verb(does, of, call) or unread()
        if words("measures").get(plain(word)):
            return self.under(words("measures")[plain(word)], of, call)
        several = means("aggregates", word) == "quantile" and any(
            len(parts_in(arg)) > 1 for arg in every_argument(call)
        )
        if (means("library", word) or several) and not of.asked:
            return self.report("quantiles" if several else word, of, call)
        if means("aggregates", word):
            return self.aggregated(word, of, call)
        if of.taken and not of.asked and not of.picks and (means("rows", word) or plain(word) in ROW_FUNCTIONS):
            whole = ast.Call(ast.Name(word), [parsed(of.taken[0]), *call.args], call.keywords)
            return replace(of, taken=(self.term(whole, replace(of, taken=())),))
        return unread(word)

    def do_within(self, of: Rows, call: ast.Call) -> Value:
        """`with(t, mean(x))`."""
        text = self.term(call.args[0], of, measures=True)
        return replace(of, asked=((text, ""),)) if MEASURES.search(text) else replace(of, taken=(text,))

    def argument(self, node: ast.expr) -> Value | None:
        try:
            return self.value(node)
        except Unread:
            return None


# Statements ---------------------------------------------------------------------------------


def lines_of(text: str, reader: Reader) -> list[str]:
    """The lines of Jostle that mean what a statement of another language does."""
    text = text.strip().rstrip(";")
    if match := _AMOUNT.search(text):
        text = text[: match.start()] + text[match.end() :]
        reader.tables = {name: replace(table, amount=match[0]) for name, table in reader.tables.items()}
    if view := re.fullmatch(
        r"(?i)create (?:or replace )?(?:temp |temporary )?(?:view|table) (\w+) as \(?(.*?)\)?", text
    ):
        return [f"{view[1]} = {select(view[2], reader).table}"]
    if walk := re.fullmatch(
        r"for (?:\w+, *)?(\w+) in (\w+)\.(?:iterrows|itertuples|to_dicts|iter_rows|collect)\(.*?\):(.*)", text
    ):
        return [f"for {walk[1]} in {walk[2]}:" + re.sub(rf"\b{walk[1]}\[[\"'](\w+)[\"']\]", rf"{walk[1]}.\1", walk[3])]
    if (column := _COLUMN.fullmatch(text)) and column[1] in reader.tables:
        given = ast.Call(ast.Name("mutate"), [], [ast.keyword(column[2], parsed(column[3]))])
        return [f"{column[1]} = {reader.derived(reader.tables[column[1]], given).table}"]
    text = commanded(text, reader)
    given_to = _GIVEN.fullmatch(text) or unread()
    shown = re.fullmatch(r"print\((.*)\)", given_to["value"]) if not given_to["name"] else None
    if several := re.match(r"\w+(?:, *\w+)+ *= *", text):
        reader.value(parsed(text[several.end() :]))  # which nothing may do
        raise Unread
    if given_to["release"] and not given_to["name"]:
        raise Unread
    inner = shown[1] if shown else given_to["value"]
    inner = quoted[2] if (quoted := _IN_TEXT.fullmatch(inner)) else inner
    inner = re.sub(r"\{\{ *(?!select\b|with\b)(\w+) +(\w+) +(?=(?:if|from|where)\b)", r"{{ select \1(\2) ", inner)
    sql = _SQL.fullmatch(re.sub(r"(?i)\b(and|or)\((?=(?:[^(),]|\([^()]*\))*,)", r"\1_(", inner))
    value = select(sql[1], reader) if sql else reader.value(parsed(inner))
    if isinstance(value, Rows) and value.taken and not value.asked and " if " in value.taken[0] and given_to["name"]:
        value = reader.with_column(value, given_to["name"], value.taken[0]) if "cut" not in inner else unread()
    if isinstance(value, Rows) and not value.asked and (match or value.table in reader.tables):
        raise Unread  # nothing is asked
    if isinstance(value, Answer) and value.text in (*reader.answers, *reader.names):
        raise Unread
    *before, last = written(value)
    last = f"print({last})" if shown else last
    return [*before, f"{given_to['release'] or ''}{given_to['name']} = {last}" if given_to["name"] else last]


def with_later(lines: Sequence[str], reader: Reader) -> tuple[list[str], int]:
    """The lines that the first of some lines means, and how far below it is the one that says what it is called with:
    `m = LinearRegression()`, and `m.fit(X, y)`."""
    model = re.fullmatch(r" *(\w+) *= *(\w+\([^()]*\))", lines[0])
    below = next((at for at, line in enumerate(lines) if model and line.strip().startswith(f"{model[1]}.fit(")), 0)
    if not model or not below:
        return lines_of(lines[0], reader), 0
    return lines_of(f"{model[1]} = {model[2]}{lines[below].strip()[len(model[1]) :]}", reader), below


def written(value: Value) -> list[str]:
    """A value as lines of Jostle, the last of which is an expression."""
    if isinstance(value, Rows):
        if value.shares:
            return [f"counts = {value.query}", "counts.n / sum(counts.n)"]
        if value.taken and not (value.asked or value.picks or value.keys or set(value.taken) <= set(value.columns)):
            raise Unread
        return [value.query if value.asked else re.sub(r"^\((select \*.*)\)$", r"{{ \1 }}", value.table)]
    if isinstance(value, Report):
        return [f"use {value.form}", f"{value.call}{value.amount}"] if value.call else unread()
    return [value.text]


def told(fault: Diagnostic, word: str) -> Diagnostic:
    """A fault at a word that nothing here does, with the reason and what comes nearest."""
    reason, _, nearest = means("nothing", word).partition(" | ")
    old = re.match(r"(?:write )?(`[^`]*[({ ][^`]*`)", fault.help)
    return replace(fault, help=f"nothing here does `{word}`: {reason}; {nearest}{f', as {old[1]}' if old else ''}")


# Selects -----------------------------------------------------------------------------------------


def split(text: str, by: str) -> list[tuple[str, str]]:
    """The parts of a text between the places outside of brackets and quotes where a pattern is, each with what stands
    before it."""
    depth, start, word, parts = 0, 0, "", []
    for match in re.finditer(rf"(?i)\"[^\"]*\"|'[^']*'|[(\[{{]|[)\]}}]|{by}", text):
        if match[0] in "([{" or match[0] in ")]}":
            depth += 1 if match[0] in "([{" else -1
        elif match[0][0] not in "\"'" and depth == 0:
            parts.append((word, text[start : match.start()].strip()))
            word, start = " ".join(match[0].lower().split()), match.end()
    return [*parts, (word, text[start:].strip())]


def listed(text: str) -> list[str]:
    return [part for _, part in split(text, ",")]


def expression(text: str) -> ast.expr:
    """An expression of SQL."""
    text = re.sub(r"(?<![<>=!])=(?!=)", "==", text)
    while case := re.search(r"(?i)\bcase\b((?:(?!\bcase\b).)*?)\bend\b", text):
        of, *whens = re.split(r"(?i)\bwhen\b", case[1])
        parts = [re.split(r"(?i)\bthen\b|\belse\b", when) for when in whens]
        inside = [
            (f"{of.strip()} == {p.strip()}" if of.strip() and at == 0 else p.strip())
            for part in parts
            for at, p in enumerate(part)
        ]
        text = f"{text[: case.start()]}ifs({', '.join(inside)}){text[case.end() :]}"
    text = re.sub(r"(?i)\bis (not )?null\b", r"is \1missing", text)
    text = re.sub(
        r"(?i)\bcount\(distinct ([^()]*)\)", r"nunique(\1)", re.sub(r"(?i)\bcount\( *(?:\*|1) *\)", "count()", text)
    )
    text = re.sub(r"(?i)([\w.]+(?:\([^()]*\))?) between (\S+) and ([^\s)]+)", r"between(\1, \2, \3)", text)
    text = re.sub(r"(?i)([\w.]+(?:\([^()]*\))?) (not )?(i?)like (\"[^\"]*\"|'[^']*')", r"\2\3like(\1, \4)", text)
    text = re.sub(r"(?i)(\w+)\(([^()]*)\) within group \(order by ([^()]*)\)", r"\1(\3, \2)", text)
    text = re.sub(r"(?i)\b(and|or|not|in|is|if|else)\b(?! *\(.*,.*\).*$)", lambda m: m[0].lower(), text)
    return parsed(re.sub(r"(?i)\)\[(?:safe_)?(?:offset|ordinal)\(\d+\)\]", ")", text))


def select(text: str, reader: Reader) -> Rows:
    """A select, with those that it names or reads from."""
    text = text.strip()
    if shared := re.match(r"(?is)with (\w+) as \((.*?)\)(?:, *|\s+)(?=select|\w+ as)(.*)", text):
        inner = select(shared[2], reader)
        reader.tables[shared[1]] = replace(inner, source=inner.table, where=(), joins="")
        return select(shared[3] if shared[3][:6].lower() == "select" else f"with {shared[3]}", reader)
    (_, before), *found = split(text, _CLAUSES if not re.search(r"(?i)\belse\b", text) else _CLAUSES.replace("if|", ""))
    said = {"groupby" if word.startswith("group") else "where" if word == "if" else word: body for word, body in found}
    if before or "from" not in said or "select" not in said or len(said) < len(found):
        raise Unread
    first, *others = listed(said["from"])
    of = source(first, reader)
    tests = [test or unread() for _, test in split(said["where"], r"\band\b")] if "where" in said else []
    for other in others:
        keyed = next((t for t in tests if re.fullmatch(r"(\w+)\.(\w+) *= *(\w+)\.(\w+)", t)), "") or unread()
        tests.remove(keyed)
        of = joined(of, "join", f"{other} on {keyed}", reader)
    for word, body in found:
        of = joined(of, word, body, reader) if "join" in word else of
    of = replace(of, where=tuple(reader.term(expression(test), of) for test in [" and ".join(tests)] if test))
    return asked_of(of, said, reader)


def source(text: str, reader: Reader) -> Rows:
    """What stands after `from` or `join`: a table, or a select in brackets, with the name that it is given."""
    match = re.fullmatch(r"(?is)(\(select .*\)|[\w.]+)(?: +(?:as +)?(\w+))?", text) or unread()
    of = select(match[1][1:-1], reader) if match[1][0] == "(" else reader.tables.get(match[1]) or unread()
    of = replace(of, source=of.table, where=(), joins="") if of.where or of.joins else of
    reader.it[match[2] or match[1]] = of
    return of


def joined(of: Rows, word: str, body: str, reader: Reader) -> Rows:
    name, *rest = re.split(r"(?i) +(?:on|using) +", body)
    other = source(name, reader)
    kind = next((f"{one} " for one in ("left", "right", "full", "inner") if one in word), "")
    keys = [c for c in of.columns if c in other.columns and ("natural" in word or not rest)]
    for each in re.split(r"(?i) and |,", rest[0].strip("() ")) if rest else ():
        sides = {side.strip().rpartition(".")[2] for side in each.split("=")}
        keys.append(sides.pop() if len(sides) == 1 else each.strip())
    return reader.with_join(of, kind, other, ", ".join(keys) or unread())


def asked_of(of: Rows, said: dict[str, str], reader: Reader) -> Rows:
    """What a select asks of rows: its columns, keys, and the order of its result."""
    start = re.match(r"(?i)(distinct +(?!on\b)|all +)?(?:top +\(?(\d+)\)? +)?", said["select"]) or unread()
    asked: list[tuple[str, str]] = []
    columns: list[tuple[str, str]] = []
    keys, order, limit = list[tuple[str, str]](), said.get("order by", ""), said.get("limit", start[2] or "")
    for item in listed(said["select"][start.end() :]):
        named = re.fullmatch(r"(?is)(.*?)\s+as\s+[\"'`]?(\w+)[\"'`]?|(.*[\w)\]'\"*])\s+(?!end\b)(\w+)", item)
        text, name = (named[1] or named[3], named[2] or named[4]) if named else (item, "")
        if name.lower() in ("filter", "over", "within", "where", "from", "as", "clamp"):
            raise Unread
        if window := re.fullmatch(r"(?is)(\w+)(\(.*?\)) over *\((?:partition by (.*?))?(?:order by (.*?))?\)", text):
            if not words("aggregates").get(window[1].lower()):
                order = order or (
                    window[4] if "groupby" in said and window[1].lower().endswith(("rank", "number")) else ""
                )
                if order:
                    continue
                raise Nothing(window[1].lower()) if window[1].lower() in words("nothing") else Unread
            if window[4] or "groupby" in said or not window[3]:
                raise Unread
            keys += [(reader.term(expression(key), of), "") for key in listed(window[3])]
            text = window[1] + window[2]
        if text == "*" or text.endswith(".*"):
            continue
        term = reader.term(expression(text), of, measures=True)
        (asked if MEASURES.search(re.sub(r"\b(?:min|max)\([^()]*,[^()]*\)", "", term)) else columns).append(
            (term, name)
        )
    for key in listed(said.get("groupby", "")):
        if re.match(r"(?i)(rollup|cube|grouping)\b", key):
            raise Nothing("rollup")
        term = columns[int(key) - 1][0] if key.isdigit() else next((text for text, name in columns if name == key), "")
        keys += [(term or reader.term(expression(key), of), "")] if key else []
    names = dict(columns)
    keys = [(f"({key})" if re.search(r" if | and | or |[<>=]", key) else key, names.get(key, "")) for key, _ in keys]
    if start[1] and asked:
        raise Unread
    if start[1]:
        keys, asked = columns, [("count(*)", "n")]
    if not asked:
        plain = tuple(text for text, _ in columns)
        return replace(of, taken=plain, picks=bool(plain)) if set(plain) <= set(of.columns) and not keys else unread()
    if {text for text, _ in columns} - {key.strip("()") if " " in key else key for key, _ in keys}:
        raise Unread
    if (
        chosen := re.fullmatch(r"(?i)\w+\(\) over *\(order by (.*)\) *(?:=|<=) *(\d+)", said.get("qualify", ""))
    ) is None and "qualify" in said:
        raise Unread
    if chosen:
        order, limit = chosen[1], chosen[2]
    results = replace(of, columns=(*of.columns, *(name for _, name in [*asked, *columns])))
    having, order = (
        _of_result(said.get("having", ""), results, asked, reader),
        _of_result(order, results, asked, reader),
    )
    return replace(
        of, keys=tuple(keys), asked=tuple(asked), having=(having,) if having else (), order=order, limit=limit
    )


def _of_result(text: str, of: Rows, asked: list[tuple[str, str]], reader: Reader) -> str:
    """A condition or an order of what is asked, by its names; what it asks besides gets one."""
    if not text:
        return ""
    text, down = re.subn(r"(?i) +desc$", "", text)
    term = reader.term(expression(re.sub(r"(?i) asc$", "", text)), of, measures=True)
    for call in re.findall(r"\b(?:avg|sum|count|median|stddev|var|min|max|quantile)\([^()]*\)", term):
        at = next((i for i, (one, _) in enumerate(asked) if one == call), len(asked))
        asked += [(call, "")] if at == len(asked) else []
        asked[at] = (call, asked[at][1] or ("n" if call == "count(*)" else call.partition("(")[0]))
        term = term.replace(call, asked[at][1])
    return term + " desc" * down


def commanded(text: str, reader: Reader) -> str:
    """A command of Stata as a pipe from the one table that has the most of its columns: `regress y x`, `keep if c`."""
    for pattern, pipe in words("commands").items():
        if match := re.fullmatch(pattern, text):
            return _piped(match.groupdict(""), pipe, reader)
    return text


def _piped(said: dict[str, str], pipe: str, reader: Reader) -> str:
    used = set(re.findall(r"\w+", " ".join(said.values())))
    many = {name: len(used & set(of.columns)) for name, of in reader.tables.items()}
    most = [name for name in many if many[name] == max(many.values()) > 0]
    table = said.get("of") or (most[0] if len(most) == 1 else unread())
    said |= {"table": table, "rows": f"{table} %>% filter({said['test']})" if said.get("test") else table}
    return re.sub(r"\{(\w+)(,?)\}", lambda m: ", ".join(said[m[1]].split()) if m[2] else said[m[1]], pipe)


# What a program has above a line -----------------------------------------------------------------

_MADE = re.compile(
    r"(?m)^ *(?:private +)?(\w+) *= *(?:(where|derive|pick|union|limited)\((\w+)|(table|bound|dataset|postgres|spark)\(|"
    r"(\{\{))?"
)


def reader_of(above: str) -> Reader:
    """A reader that knows the tables, results and names of a program above a line."""
    tables: dict[str, Sequence[str]] = {}
    answers: dict[str, Sequence[str]] = {}
    names: list[str] = []
    found = list(_MADE.finditer(above))
    for at, match in enumerate(found):
        text = above[match.end() : found[at + 1].start() if at + 1 < len(found) else None]
        if match[2] and match[3] in tables:
            more = re.findall(r"(\w+) *=(?!=)", text) if match[2] == "derive" else []
            tables[match[1]] = (*tables[match[3]], *more)
        elif match[4]:
            inner = re.search(r"described\s+by\s*\{(.*)", text, re.DOTALL)
            parts = f"{{{inner[1]}" if inner else text
            tables[match[1]] = tuple(dict.fromkeys(re.findall(r"[{,\s]`?(\w+)`? *:", parts)))
        elif match[5] and (
            made := re.search(
                r"select (.*?) from .*?\b(?:groupby|group by) (.*?)(?: having| order| limit| with| over|\}\})",
                text,
                re.I,
            )
        ):
            keys = [key.split()[-1].strip("()") for _, key in split(made[2], ",")]
            answers[match[1]] = (*keys, *re.findall(r"\bas (\w+)", made[1]))
        else:
            names.append(match[1])
    for key, part, of in re.findall(r"\bfor (\w+), *(\w+) in partition\((\w+)", above):
        tables[part] = tables.get(of, ())
        names.append(key)
    names += re.findall(r"\b(?:for|param) (\w+)", above)
    reader = Reader(tables, answers, names)
    reader.truths = set(re.findall(r"(\w+) *: *\{(?:true, *false|false, *true)\}", above))
    return reader
