"""Selects of SQL, as the rows that they mean."""

from __future__ import annotations

import ast
import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import date, timedelta

from jostle.mistakes.foreign import MEASURES, Nothing, Rows, Unread, parse, unread, words
from jostle.mistakes.foreign.tables import Verbs
from jostle.records import replace

_CLAUSES = (
    r"\b(?:select|from|(?:left |right |full |inner |natural )?(?:outer )?join|where|if|group ?by|having|qualify|"
    r"order by|limit|up to)\b(?! *\((?!select\b))"
)
_OVER = re.compile(r"(?is)(\w+)(\(.*?\)) over *\((?:partition by (.*?))?(?:order by (.*?))?\)")
_NO_NAMES = ("filter", "over", "within", "where", "from", "as", "clamp")


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


_INTERVAL = re.compile(
    r"(?i)(?:\b(?:date|timestamp) *)?['\"](\d{4})-(\d\d)-(\d\d)['\"](?:::date)? *([+-]) *"
    r"interval *['\"]?(\d+)['\"]? *(day|week|month|year)s?['\"]?"
)


def _later(match: re.Match[str]) -> str:
    """A constant date some days or months after or before another, as SQL counts them."""
    year, month, day, many = (int(match[i]) for i in (1, 2, 3, 5))
    many, unit = many if match[4] == "+" else -many, match[6].lower()
    if unit in ("day", "week"):
        return f"'{date(year, month, day) + timedelta(many * (7 if unit == 'week' else 1))}'"
    years, months = divmod(year * 12 + month - 1 + many * (12 if unit == "year" else 1), 12)
    return f"'{date(years, months + 1, min(day, monthrange(years, months + 1)[1]))}'"


def expression(text: str) -> ast.expr:
    """An expression of SQL."""
    text = re.sub(r"(?<![<>=!])=(?!=)", "==", _INTERVAL.sub(_later, text))
    text = re.sub(r"(?i)\bdate(?:part|_part)\(['\"]?month['\"]?, *", "month(", text)
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
    return parse(re.sub(r"(?i)\)\[(?:safe_)?(?:offset|ordinal)\(\d+\)\]", ")", text))


def select(text: str, reader: Verbs) -> Rows:
    """A select, with those that it names or reads from."""
    text = text.strip()
    if shared := re.match(r"(?is)with (\w+) as \((.*?)\)(?:, *|\s+)(?=select|\w+ as)(.*)", text):
        inner = select(shared[2], reader)
        reader.tables[shared[1]] = replace(inner, source=inner.table, where=(), joins="")
        return select(shared[3] if shared[3][:6].lower() == "select" else f"with {shared[3]}", reader)
    if len(parts := split(text, r"\bunion all\b")) > 1:
        tables = [select(part, reader).table for _, part in parts]
        return Rows(f"union({', '.join(tables)})", select(parts[0][1], reader).columns)
    (_, before), *clauses = split(
        text, _CLAUSES if not re.search(r"(?i)\belse\b", text) else _CLAUSES.replace("if|", "")
    )
    own = {"groupby" if word.startswith("group") else "where" if word == "if" else word: body for word, body in clauses}
    bounded_join = "up to" in own and any("join" in word for word in own)
    if before or bounded_join or not {"from", "select"} <= own.keys() or len(own) < len(clauses):
        raise Unread
    return _select(clauses, own, reader)


def _select(clauses: list[tuple[str, str]], own: dict[str, str], reader: Verbs) -> Rows:
    """A select by its clauses."""
    first, *others = listed(own["from"])
    of = source(first, reader)
    tests = [test or unread() for _, test in split(own["where"], r"\band\b")] if "where" in own else []
    for other in others:
        keyed = next((t for t in tests if re.fullmatch(r"(\w+)\.(\w+) *= *(\w+)\.(\w+)", t)), "") or unread()
        tests.remove(keyed)
        of = joined(of, "join", f"{other} on {keyed}", reader)
    for word, body in clauses:
        of = joined(of, word, body, reader) if "join" in word else of
    of = replace(of, where=tuple(reader.term(expression(test), of) for test in [" and ".join(tests)] if test))
    return asked_of(of, own, reader)


def source(text: str, reader: Verbs) -> Rows:
    """What stands after `from` or `join`: a table, or a select in brackets, with the name that it is gives."""
    text = re.sub(r"^[\"']([^\"']*)[\"']", lambda match: reader.files.get(match[1], match[0]), text)
    match = re.fullmatch(r"(?is)(\(select .*\)|[\w.]+)(?: +(?:as +)?(\w+))?", text) or unread()
    of = select(match[1][1:-1], reader) if match[1][0] == "(" else reader.tables.get(match[1]) or unread()
    of = replace(of, source=of.table, where=(), joins="") if of.where or of.joins else of
    reader.it[match[2] or match[1]] = of
    return of


def joined(of: Rows, word: str, body: str, reader: Verbs) -> Rows:
    name, *rest = re.split(r"(?i) +(?:on|using) +", body)
    other = source(name, reader)
    kind = next((f"{one} " for one in ("left", "right", "full", "inner") if one in word), "")
    keys = [c for c in of.columns if c in other.columns and ("natural" in word or not rest)]
    for each in re.split(r"(?i) and |,", rest[0].strip("() ")) if rest else ():
        sides = {side.strip().rpartition(".")[2] for side in each.split("=")}
        keys.append(sides.pop() if len(sides) == 1 else each.strip())
    return reader.with_join(of, kind, other, ", ".join(keys) or unread())


class _Asking:
    """What a select asks, as it is read: aggregates, other columns, keys, the order of the result."""

    def __init__(self, of: Rows, own: dict[str, str], reader: Verbs) -> None:
        self.of, self.own, self.reader, self.order = of, own, reader, own.get("order by", "")
        self.asks, self.columns, self.keys = list[tuple[str, str]](), list[tuple[str, str]](), list[str]()

    def term(self, text: str) -> str:
        return self.reader.term(expression(text), self.of, measures=True)

    def item(self, item: str) -> None:
        """One of what is selected."""
        named = re.fullmatch(r"(?is)(.*?)\s+as\s+[\"'`]?(\w+)[\"'`]?|(.*[\w)\]'\"*])\s+(?!end\b)(\w+)", item)
        text, name = (named[1] or named[3], named[2] or named[4]) if named else (item, "")
        if name.lower() in _NO_NAMES:
            raise Unread
        if window := _OVER.fullmatch(text):
            text = self.over(window)
        if text in ("", "*") or text.endswith(".*"):
            return
        term = self.term(text)
        measures = MEASURES.search(re.sub(r"\b(?:min|max)\([^()]*,[^()]*\)", "", term))
        (self.asks if measures else self.columns).append((term, name))

    def name(self) -> None:
        """Gives each of two averages the name of its column."""
        functions = [text.partition("(")[0] for text, name in self.asks if not name]
        for at, (text, name) in enumerate(self.asks):
            inner = re.fullmatch(r"(\w+)\((\w+)\)", text)
            if inner and not name and functions.count(inner[1]) > 1:
                self.asks[at] = (text, inner[2])

    def qualify(self, limit: str) -> str:
        """The order of `qualify row_number() over (order by x) <= 3`, and its limit."""
        if "qualify" not in self.own:
            return limit
        first = re.fullmatch(r"(?i)\w+\(\) over *\(order by (.*)\) *(?:=|<=) *(\d+)", self.own["qualify"]) or unread()
        self.order = first[1]
        return first[2]

    def over(self, window: re.Match[str]) -> str:
        """A window of keys as an aggregate by them; a rank of groups is their order."""
        word = window[1].lower()
        if not words("aggregates").get(word):
            ranks = "groupby" in self.own and word.endswith(("rank", "number")) and window[4]
            self.order = self.order or (window[4] if ranks else "")
            return "" if self.order else unread(word)
        if window[4] or "groupby" in self.own or not window[3]:
            raise Unread
        self.keys += [self.term(key) for key in listed(window[3])]
        return f"{window[1]}{window[2]}"

    def key(self, key: str) -> None:
        if re.match(r"(?i)(rollup|cube|grouping)\b", key):
            raise Nothing("rollup")
        if named := re.fullmatch(r"(.*\W.*) as (\w+)", key):
            self.columns.append((self.term(named[1]), named[2]))
            key = named[2]
        term = next((text for text, name in self.columns if name == key), "")
        self.keys.append(self.columns[int(key) - 1][0] if key.isdigit() else term or self.term(key))

    def of_result(self, text: str) -> str:
        """A condition or an order of what is asked, by its names; what it asks besides gets one."""
        if not text:
            return ""
        text, down = re.subn(r"(?i) +desc$", "", text)
        of = replace(self.of, columns=(*self.of.columns, *(name for _, name in [*self.asks, *self.columns])))
        term = self.reader.term(expression(re.sub(r"(?i) asc$", "", text)), of, measures=True)
        for call in re.findall(r"\b(?:avg|sum|count|median|stddev|var|min|max|quantile)\([^()]*\)", term):
            at = next((i for i, (one, _) in enumerate(self.asks) if one == call), len(self.asks))
            self.asks += [(call, "")] if at == len(self.asks) else []
            name = self.asks[at][1] or ("n" if call == "count(*)" else call.partition("(")[0])
            self.asks[at] = (call, name)
            term = term.replace(call, name)
        return term + " desc" * down


def asked_of(of: Rows, own: dict[str, str], reader: Verbs) -> Rows:
    """Rows with what a select asks of them."""
    start = re.match(r"(?i)(distinct +(?!on\b)|all +)?(?:top +\(?(\d+)\)? +)?", own["select"]) or unread()
    asking, limit = _Asking(of, own, reader), own.get("limit", start[2] or "")
    for item in listed(own["select"][start.end() :]):
        asking.item(item)
    for key in listed(own["groupby"]) if "groupby" in own else ():
        asking.key(key)
    columns, names = asking.columns, dict(asking.columns)
    keys = [(f"({k})" if re.search(r" if | and | or |[<>=]", k) else k, names.get(k, "")) for k in asking.keys]
    if start[1]:
        keys, asking.asks = columns, [("count(*)", "n")] if not asking.asks else unread()
    limit = asking.qualify(limit)
    asking.name()
    having, order = asking.of_result(own.get("having", "")), asking.of_result(asking.order)
    if not asking.asks:
        return (
            replace(of, takes=tuple(names), picks=bool(names)) if {*names} <= {*of.columns} and not keys else unread()
        )
    if names.keys() - {key.strip("()") if " " in key else key for key, _ in keys}:
        raise Unread
    having_all = (having,) if having else ()
    most = own.get("up to", "")
    of = replace(of, keys=tuple(keys), asks=tuple(asking.asks), having=having_all, order=order, limit=limit, most=most)
    return _counted(of) if re.match(r"(?i)\w*count_?if\(", own["select"]) else of


def _counted(of: Rows) -> Rows:
    """`countif(c)` alone, as the count of the rows for which it holds."""
    alone = re.fullmatch(r"sum\((.*)\)", of.asks[0][0]) if len(of.asks) == 1 and not of.keys else None
    return replace(of, where=(*of.where, alone[1]), asks=(("count(*)", of.asks[0][1]),)) if alone else of


_AMOUNT = r"(?:epsilon|eps|ε|rho)\b"
_SPENDS = re.compile(
    r"(?i)(?:\b(?:and(?! +with\b)|with|at|using|spend|spending|costing|paying|for|under|privacy|budget|of|an?)\s+)*"
    rf"(?<!\w){_AMOUNT}[\s:=]*(?:of )?(?=[\d.])"
)
_SPOKEN = {
    "select": "select|^(?:get|show|compute|calculate|find|report)", "from": "from",
    "where": "where|such that|(?:filter(?:ed)?(?: by| on)?|with)"
             rf"(?= +(?!{_AMOUNT}|error|weight|delta)\w+ *(?:[<>=!]|in\b))",
    "per": "per", "groupby": r"group(?:ed|ing)?[ _-]?by|split by|broken down by|partition(?:ed)? by",
    "up to": r"up to|(?:at most|no more than|max(?:imum)?(?: of)?|limit(?:ed)?(?: to)?)(?= +\w+ (?:rows?|groups?)\b)",
    "having": "having", "order by": r"(?:order|sort|rank)(?:ed)?[ _-]?by", "limit": "limit|top", "with": "with",
}  # fmt: skip
"""The clauses of a query in their order, and the words that they begin with, here and elsewhere."""
CLAUSE = re.compile(rf"(?i)\b(?:{'|'.join(_SPOKEN)}|group by)\b")
_DIGITS = {"one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "ten": "10"}


def in_order(text: str) -> Iterator[tuple[float, int, int, str]]:
    """A query with the clauses of its one select in their order and in the words that they have here, as a slip."""
    for query in re.finditer(r"\{\{\s*((?:[^{}]|\{[^{}]*\})*?)\s*\}\}", text):
        clauses = {word: words for word, words in _SPOKEN.items() if word != "up to" or " join " not in query[1]}
        own = dict[str, str]()
        spoken = _SPENDS.sub(lambda one: f"with {'rho' if 'rho' in one[0] else 'epsilon'} ", query[1])
        (_, before), *parts = split(spoken, rf"\b(?:{'|'.join(clauses.values())})(?!\w)")
        for opening, body in parts:
            word = next(word for word, words in clauses.items() if re.match(f"(?i)(?:{words})", f"{opening} {body}"))
            body = body.strip(" ,\n")
            if word == "up to":
                body = re.sub(r"[a-z]+", lambda one: _DIGITS.get(one[0], one[0]), body)
            both = f"{own.get('where')} and {body}"
            own[word] = body if word not in own else both if word == "where" and " or " not in both.lower() else ""
        if before or not {"select", "from"} <= own.keys() or not all(own.values()):
            continue
        yield 1.5, query.start(1), query.end(1), " ".join(f"{word} {own[word]}" for word in clauses if word in own)


CHANGES = re.compile(
    r"(?is)(?:(?P<name>\w+) *(?:=|<-) *)?(?:update (?P<t>\w+) set (?P<x>\w+) *= *(?P<e>.*?)|delete from (?P<of>\w+))"
    r"(?: where (?P<test>.*))?"
)


def changes(match: re.Match[str], reader: Verbs) -> list[str]:
    """`update t set x = e where c` and `delete from t where c` as other tables: what is read is not changed."""
    of, test = reader.tables.get(match["t"] or match["of"]) or unread(), match["test"]
    name, rows = match["name"] or of.source, replace(of, takes=())
    sure = reader.term(expression(test), rows) if test else ""
    if match["of"]:
        others = reader.term(ast.UnaryOp(ast.Not(), expression(test)), rows) if test else unread()
        return [f"{name} = where({of.table}, {others})"]
    column, value = match["x"], reader.term(expression(match["e"]), rows)
    value = f"{value} if {sure} else {column}" if sure else value
    return [f"{name} = derive({of.table}, {column} = {value})"]
