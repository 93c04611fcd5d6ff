"""Declarations in other words, read anew: of private tables, of choices, and of the parts of a choice.

`{age: number between 0 and 100, sex: "F" or "M"}`, `described_by={"age": (0, 100)}`, `protecting each row`, `budget 1`;
`among A, B wrt near by validation`, `Option Flat(data) => flat(data.cube)`. What is not understood ends the reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jostle.tools.foreign import Nothing, Unread, unread, words
from jostle.tools.selects import listed

_NUMBER = r"-?\d[\d_]*(?:\.\d+)?"
_RANGE = re.compile(
    rf"(?i)(?:(?:whole |integer |int|float|real|number|numeric|decimal|range|bounded)\w*\s*)?(?:numbers?\s*)?"
    rf"(?:from|between|in|min(?:imum)?|range)?[\s=:]*[(\[]?\s*(?:min|low|lower|from)?[\s=]*(?P<low>{_NUMBER})\s*"
    rf"(?:\.\.\.?|-|–|,|;|:|to|and|until|max|up to)\s*(?:max|high|upper|to)?[\s=]*(?P<high>{_NUMBER})\s*[)\]]?"
)
_PARTS = {"dd": "%d", "mm": "%m", "yyyy": "%Y", "yy": "%y"}
_LISTED = re.compile(
    r"(?i)(?:enum|category|(?:\w+\.)?categorical|factor|c|list|set|literal|choice|one of|any of|either|in|pl\.enum)?"
    r"\s*[(\[{]*\s*(?P<items>[^()\[\]{}]+?)\s*[)\]}]*"
)
_DECLARED = re.compile(
    r"(?i)private\s+(?:table\s+)?(?P<name>(?!table\b)\w+)(?:\s*:\s*\w+)?\s*(?:=|<-|:=|from|is)?\s*"
    r"(?:(?:\w+\.)?(?:table|\w*read\w*|load|file|csv)\s*|select \* from )?\(?\s*"
    r"[\"']?(?P<file>[\w./-]+\.\w+)[\"']?\s*(?P<rest>.*)"
)
_BUDGET = re.compile(
    r"(?i)\bbudget\w*[\s=:(\"']*(?:of\s+)?(?:delta[\s=:]*(?P<first>[\d.e-]+)[,\s]*)?(?:(?P<unit>epsilon|eps|ε|rho)[\s=:]*)?"
    r"(?:(?P<amount>\d[\d.]*)|unlimited|none|unbounded|inf\w*)?[\"')]*(?:[,\s]*(?:and\s+)?delta[\s=:]*(?P<delta>[\d.e-]+))?"
)
_UNIT = re.compile(
    r"(?i)\b(?:protecting|protects?|unit|per)\b[\s=:\"']*(?:each|every|all|the|one)?\s*(?P<unit>\w+)[\"']?"
    r"(?:(?P<most>,? (?:at most|up to) \d+ rows)"
    r"|(?:\.(?P<key>\w+))? (?:on|by|via|using) (?:\w+\.)?(?:\w+ *==? *)?(?P<on>\w+))?"
)
_COLUMN = re.compile(
    r"[\"'`]?(?P<name>\w+)[\"'`]?"
    r"(?:\s*[:=]|\s+(?:in|is|as)\b|(?=\s+(?:between|from|int|float|varchar|text|bool|real|date)))\s*(?P<of>.*)"
)
_OF_ALL = ("row", "people", "persons", "individuals", "records")


def domain(text: str) -> str:
    """What a column may hold, as a description says it."""
    text = re.sub(r"^\{ *(-?[\d.]+\.\.-?[\d.]+) *\}$", r"\1", text.strip())
    text = text.strip().strip("\"'") if re.fullmatch(r"\s*[\"'][^\"']*\.\.[^\"']*[\"']\s*", text) else text.strip()
    if re.fullmatch(r"-?[\d.]+\.\.-?[\d.]+|\{.*\}|(?:clamp|date|time|number)\(.*\)|text|integer|real|date|time", text):
        return _quoted(text)
    if kind := next((kind for pattern, kind in words("kinds").items() if re.fullmatch(f"(?i){pattern}", text)), ""):
        return kind
    return _range(text) or _date(text) or _list(text)


def _range(text: str) -> str:
    if match := _RANGE.fullmatch(text):
        low, high = match["low"].replace("_", ""), match["high"].replace("_", "")
        high = str(int(high) - 1) if text.lower().startswith("range") and high.isdigit() else high
        if re.match("(?i)real|float|double|decimal", text) and "." not in low + high:
            low, high = f"{low}.0", f"{high}.0"
        return f"{low}..{high}" if float(low) < float(high) else unread()
    return ""


def _date(text: str) -> str:
    if re.fullmatch(r"[\"']?(?:dd|mm|yyyy|yy)(?:([./-])(?:dd|mm|yyyy|yy)){2}[\"']?", text.lower()):
        form = re.sub("dd|mm|yyyy|yy", lambda part: _PARTS[part[0]], text.lower().strip("\"'"))
        return "date" if form == "%Y-%m-%d" else f'date("{form}")'
    return ""


def _list(text: str) -> str:
    if re.match(rf"[<>]=?\s*{_NUMBER}$", text):
        raise Nothing(text[:2].strip())
    inside = (_LISTED.fullmatch(text) or unread())["items"]
    items = [part.strip() for part in re.split(r",|/|\||;|\bor\b|\band\b", inside)]
    items = [item for item in items if not re.fullmatch("(?i)na|nan|none|null|missing", item)]  # which is not listed
    if len(items) < 2 or not all(re.fullmatch(r"\"[^\"]*\"|'[^']*'|\w+", item) for item in items):
        raise Unread
    numbers = all(re.fullmatch(_NUMBER, item) for item in items)
    return f"{{{', '.join(item if numbers else _text(item) for item in items)}}}"


def _text(item: str) -> str:
    inner = item.strip("\"'")
    return f'"{inner}"'


def _quoted(text: str) -> str:
    """A list of categories with quotes around its texts."""
    inner = re.fullmatch(r"\{(.*)\}", text)
    if inner and re.fullmatch(r"[^,]*\"[^\",]*\" *(?:[|/;]|or\b)[^,]*", inner[1]):
        return domain(inner[1])
    bare = re.search(r"'|(?<![\w\"])(?!true\b|false\b)[A-Za-z]\w*(?![\w\"])", inner[1]) if inner else None
    if inner is None or bare is None:
        return text
    return domain(inner[1] if "," in inner[1] else unread())


def columns(text: str) -> list[tuple[str, str]]:
    """The columns of a description, with what they may hold. What has no name goes on with the list before it."""
    parts = list[str]()
    for part in listed(text):
        if one := re.match(r"\w+\s*([<>]=?)\s*-?\d", part):
            raise Nothing(one[1])
        named = _COLUMN.fullmatch(part) is not None
        parts[len(parts) if named else -1 :] = [part if named or not parts else f"{parts[-1]}, {part}"]
    pairs = [_COLUMN.fullmatch(part) or unread() for part in parts]
    return [(pair["name"], domain(pair["of"])) for pair in pairs]


def declaration(line: str) -> list[str]:
    """The declaration that a line means."""
    of = _DECLARED.fullmatch(line.strip()) or unread()
    begin = re.search(r"[{(](?=\s*[\"'`]?\w+[\"'`]?[\s:=])", of["rest"]) or unread()
    depth, end = 0, len(of["rest"])
    for at in range(begin.start(), len(of["rest"])):
        depth += (of["rest"][at] in "{([") - (of["rest"][at] in "})]")
        if depth == 0:
            end = at
            break
    before, inner, after = of["rest"][: begin.start()], of["rest"][begin.start() + 1 : end], of["rest"][end + 1 :]
    described, others = columns(inner), f"{before} {after}"
    text = ", ".join(f"{name}: {kind}" for name, kind in described)
    unit, budget = _UNIT.search(others), _BUDGET.search(others)
    rest = others.replace(unit[0] if unit else "", "").replace(budget[0] if budget else "", "")
    if not unit or re.search(r"\w", re.sub(r"(?i)\bdescribed?[\W_]?by\b|\bschema\b", "", rest)):
        return [f"{line.strip().removesuffix(of['rest'])}{before}{{{text}}}{after}"]  # it says more than is understood
    who = "rows" if unit["unit"].lower() in _OF_ALL and unit["unit"] not in dict(described) else unit["unit"]
    clauses = f'private {of["name"]} = table("{of["file"]}") described by {{{text}}} protecting {who}'
    clauses += unit["most"] or ""
    if unit["on"]:
        return [f"{clauses}.{unit['key'] or 'id'} on {unit['on']}"]
    budget = budget or unread()
    small = budget["delta"] or budget["first"]
    kind = "rho" if budget["unit"] == "rho" else "epsilon"
    return [f"{clauses} budget {kind} {budget['amount'] or 1}{f', delta {small}' if small else ''}"]


# Choices and their parts -------------------------------------------------------------------------

_CLAUSES = {
    "among": r"among|between|from|options", "by": r"by(?= +(?:cross[- ]?)?(?:validation|margin)\b)",
    "informed by": r"informed +by|looking +at|(?:with +)?features",
    "trained on": r"trained +(?:on|with|by)|training(?: +(?:data|sets?))?", "using": r"using|model",
    "spending": r"spending",
    "wrt": r"wrt|maximi[sz]ing|judged +by|(?:with +)?utility|with +respect +to|scored +by|utility",
}  # fmt: skip
"""The clauses of a choice in their order, and the words that they begin with."""
_CLAUSE = re.compile("|".join(rf"\b(?P<c{at}>{words})\b" for at, words in enumerate(_CLAUSES.values())))
_CHOICE = re.compile(r"(?s)(?P<name>\w+) *(?:= *(?:Mk)?[Cc]hoice(?:[Mm]aker)?\b|(?=among\b)) *(?P<rest>.+)")
_PART = re.compile(
    r"(?s)(?:(?P<name>\w+) *:?= *)?(?P<kind>Option|Feature|Utility|Score|Loss|Cost)\b *(?P<own>\w+)? *"
    r"(?P<params>\([^()]*\))? *"
    r"(?:=>|->|=|:|(?=\{)) *(?:return\b)? *(?P<body>.+)"
)
_ALL_OF = {"among": "Option", "informed by": "Feature", "wrt": "Utility"}
_NAME = r"[\"']?([A-Za-z_]\w*)[\"']?(?: *\([^()]*\))?"
DECLARES = re.compile(
    r" *(?:(?P<table>private\s)|(?P<choice>\w+ *(?:= *(?:Mk)?[Cc]hoice(?:[Mm]aker)?\b|among\b))"
    r"|(?P<part>(?:\w+ *:?= *)?(?:Option|Feature|Utility|Score|Loss|Cost)\b *[\w({]))"
)


def declared(line: str, what: str, text: str) -> list[str]:
    """The declaration that a line means: of a table, a choice or a part of one, in a program with this text."""
    return declaration(line) if what == "table" else choice(line, text) if what == "choice" else part(line)


def choice(line: str, text: str) -> list[str]:
    """The choice that a line means, of a program with this text."""
    of = _CHOICE.fullmatch(line.strip()) or unread()
    rest, values = (
        re.sub(r"^(?:\.?with *|\.)?[({]([\w, ]+)[)}]", r"among {\1} ", of["rest"].strip().lstrip(".")),
        dict[str, str](),
    )
    starts = [match for match in _CLAUSE.finditer(rest) if _is_outside(rest[: match.start()])]
    if not starts or rest[: starts[0].start()].strip("( "):
        raise Unread
    for match, end in zip(starts, [*(one.start() for one in starts[1:]), len(rest)], strict=True):
        word = [*_CLAUSES][int(str(match.lastgroup)[1:])]
        values[word] = unread() if word in values else rest[match.end() : end].strip(" ,=:")
    if rest.startswith("("):
        values = {word: value[: -1 if value.count(")") > value.count("(") else None] for word, value in values.items()}
    for word, kind in _ALL_OF.items():
        own = re.findall(rf"(?m)^(\w+) *= *{kind}\b", text)
        if word in values:
            values[word] = _parts(values[word], one=word == "wrt")
        elif word == "wrt" and len(own) == 1:
            values[word] = own[0]
    if "by" in values:
        values["by"] = "margin" if "margin" in values["by"] else "validation"
    _in_hundredths(values)
    if re.fullmatch(r"[\"']\w+[\"']", values.get("using", "")):
        values["using"] = values["using"][1:-1]
    clauses = [f"{word} {values[word]}" for word in _CLAUSES if word in values]
    return [f"{of['name']} = MkChoiceMaker {' '.join(clauses)}"]


def _in_hundredths(values: dict[str, str]) -> None:
    """Writes a share that is given in percent, where clauses have another order; in theirs it has its own way out."""
    share = re.fullmatch(r"([\d.]+) ?%", values.get("spending", ""))
    if share and [*values] != [word for word in _CLAUSES if word in values]:
        values["spending"] = f"{float(share[1]) / 100:g}"


def _is_outside(text: str) -> bool:
    """Whether no bracket and no quote is open at the end of a text."""
    return all(text.count(one) == text.count(other) for one, other in ("()", "[]", "{}")) and text.count('"') % 2 == 0


def _parts(value: str, *, one: bool) -> str:
    """The names of parts, in braces; the `one` that judges stands without."""
    inner = value.strip()[1:-1] if re.fullmatch(r"(?s)\{.*\}|\[.*\]|\(.*\)", value.strip()) else value
    names = [
        (re.fullmatch(_NAME, part.strip()) or [None, None])[1]
        for one_of in listed(inner)
        for part in re.split(r"\bor\b|\band\b|\|", one_of)
    ]
    if None in names or (one and len(names) != 1):
        return value
    return str(names[0]) if one else f"{{{', '.join(map(str, names))}}}"


def part(line: str) -> list[str]:
    """The Option, Feature or Utility that a line means."""
    of = _PART.fullmatch(line.strip()) or unread()
    kind, name = of["kind"], of["name"] or of["own"] or unread()
    if kind in ("Score", "Loss", "Cost"):  # of which the last two are small where answers are good
        returned = re.fullmatch(r"\{ *return +(?!-)(.*?) *\}", of["body"].strip())
        body_of = f"{{ return -({returned[1]}) }}" if returned and kind != "Score" else of["body"]
        kind = "Utility" if returned or kind == "Score" else unread()
    else:
        body_of = of["body"]
    params = re.findall(r"\w+", of["params"] or "")
    body, many = body_of.strip(), 2 if kind == "Utility" else 1
    if len(params) > many:
        raise Unread
    params = ["data", "answers"][:many] if params in ([], ["answers"]) else [*params, "answers"][:many]
    body = body if body.startswith("{") else f"{{ return {body} }}"
    return [f"{name} = {kind} ({', '.join(params)}) {body}"]


# Whom a table protects ---------------------------------------------------------------------------

_PROTECTS = re.compile(
    r"\b(?:protecting|protects?|protected|(?:privacy )?unit)\b[ =:]*(.*?)(?= +(?:budget|described)\b|$)"
)
_DECLARATION = re.compile(r"(?m)^ *private +(\w+) *=|\bprotecting +(\w+)")
_SPOKEN = frozenset({
    "a", "all", "and", "any", "at", "by", "column", "contributing", "each", "every", "for", "from", "has", "have",
    "having", "in", "is", "key", "max", "maximum", "more", "most", "no", "of", "on", "one", "only", "owner", "per",
    "references", "row", "rows", "records", "record", "than", "the", "through", "to", "unique", "unit", "up", "using",
    "via", "who", "with",
})  # fmt: skip
_PERSONS = frozenset({"individual", "individuals", "people", "person", "persons", "user", "users"})


def protected(line: str, above: str) -> str:
    """A line of a declaration with its `protecting` clause as its words are: a column and how many rows of each, a
    column of another table on one of this, or rows."""
    clause, keys, own = _PROTECTS.search(line), dict[str, str](), ""
    for table, key in _DECLARATION.findall(f"{above}\n{line[: clause.start()] if clause else line}"):
        own, keys = (table, keys) if table else (own, keys | {own: key})
    if clause is None or not own or "public" in clause[1]:
        raise Unread
    keys.pop(own, None)
    names = [word for word in re.findall(r"[A-Za-z_]\w*", clause[1]) if word.lower() not in _SPOKEN]
    rest = [word for word in names if word not in (*keys, own, *_PERSONS)]
    table = next((word for word in names if word in keys), "")
    whom = _key_of(table, keys[table], rest, clause[1]) if table else _column_of(rest, clause[1])
    return f"{line[: clause.start()]}protecting {whom}{line[clause.end() :]}"


def _key_of(table: str, known: str, rest: Sequence[str], text: str) -> str:
    """A column of another table on one of this: `customers.id on customer`."""
    attached = re.search(rf"\b{table} *[.(] *(\w+)", text)
    key = attached[1] if attached else known
    on = [word for word in rest if word != key] or [key] * (rest.count(key) > 1)
    return f"{table}.{key}{f' on {on[0]}' if on else ''}" if len(on) < 2 else unread()


def _column_of(rest: Sequence[str], text: str) -> str:
    """A column and how many rows of each; rows where none is named."""
    many = re.search(r"\d+|\bone\b", text)
    if len(rest) != 1:
        return unread() if rest else "rows"
    most = {"one": "1"}.get(many[0], many[0]) if many else ""
    return f"{rest[0]} up to {most} row{'s' * (most != '1')}" if most else rest[0]


# Amounts -----------------------------------------------------------------------------------------

_AMOUNT_WORDS = "epsilon|eps|ε|rho|ρ|zcdp|delta|δ|privacy|via"
_AMOUNT_TAIL = re.compile(
    rf"(?i)(?:[,;]|\b(?:with|using|at|for|costing|spending)\b|\b(?:{_AMOUNT_WORDS})\b)"
    rf"(?=[^{{}}]*(?:\b(?:{_AMOUNT_WORDS})\b|\( *[\d.]+ *, *[\d.e-]+ *\)))"
    r"(?:(?!\b(?:select|from|where|group ?by|order|having|limit|up to|as|on|join|and \w+ *[<>=])\b)[^{}])*?(?= *\}\})"
)
_TOTAL = re.compile(
    rf"(?i)\b(?:total )?(?:privacy )?budget\b.*?(?=\bprotecting\b|\bdescribed\b|$)|(?<=^    )(?:{_AMOUNT_WORDS})\b.*$"
)
_AMOUNT_PART = re.compile(
    r"(?i)(?P<word>[a-zεδρ]+)|(?P<power>10 *(?:\^|\*\*) *-\d+)|(?P<number>\d+,\d+|[\d.]+(?:e-?\d+)?)|[=:(),;&+]|<=|\s+"
)
_MECHANISMS = {"laplace": "laplace", "gaussian": "gaussian", "normal": "gaussian", "gauss": "gaussian"}
_UNITS = {
    "eps": "epsilon",
    "epsilon": "epsilon",
    "ε": "epsilon",
    "rho": "rho",
    "ρ": "rho",
    "zcdp": "rho",
    "delta": "delta",
    "δ": "delta",
}
_SAYS_LITTLE = frozenset({
    "a", "all", "an", "and", "as", "at", "budget", "cost", "costing", "equal", "equals", "for", "in", "is", "loss",
    "max", "maximum", "mechanism", "most", "noise", "of", "per", "privacy", "program", "queries", "query", "run",
    "spend", "spending", "the", "this", "to", "total", "up", "using", "via", "whole", "with",
})  # fmt: skip


def paid(text: str, *, total: bool) -> str:
    """An amount in any words, as a query or a budget has it: `with epsilon 1 delta 1e-6 via gaussian`."""
    words_of = [*_amount_words(text)]
    values, left = dict[str, str](), list[str]()
    for at, word in enumerate(words_of):
        before = words_of[at - 1] if at else ""
        if word in _UNITS.values():
            follows = words_of[at + 1 : at + 2]
            after = not follows or not follows[0][0].isdigit()
            values[word] = unread() if word in values or (after and not left) else left.pop() if after else follows[0]
        elif word[0].isdigit() and before not in _UNITS.values():
            left.append(word)
    names = [name for name in ("epsilon", "delta") if not values.keys() & {name, "rho"}]
    values |= dict(zip(names, left, strict=False))
    first = [f"{name} {values[name]}" for name in ("epsilon", "rho") if name in values]
    if len(left) > len(names) or len(first) != 1:
        raise Unread
    small = f"{',' * total} delta {values['delta']}" if "delta" in values else ""
    via = "".join(f" via {word}" for word in words_of if word in _MECHANISMS.values())
    return f"{'budget' if total else 'with'} {first[0]}{small}{via}"


def _amount_words(text: str) -> Iterator[str]:
    """The units, numbers and mechanisms of an amount; `Unread` where it says more than is understood."""
    at = 0
    while at < len(text):
        part = _AMOUNT_PART.match(text, at) or unread()
        at = part.end()
        word = (part["word"] or "").lower()
        if part["power"]:
            yield "1e" + part["power"][part["power"].index("-") :]
        elif part["number"]:
            yield part["number"].replace(",", ".")
        elif word in _UNITS or word in _MECHANISMS:
            yield _UNITS.get(word) or _MECHANISMS[word]
        elif word and word not in _SAYS_LITTLE:
            raise Unread


def amounts(line: str, _above: str) -> str:
    """A line with the amount of its query, or the budget of its declaration, as the words of that are."""
    total = "{{" not in line
    own = (_TOTAL if total else _AMOUNT_TAIL).search(line) or unread()
    before = line[: own.start()] if total else f"{line[: own.start()].rstrip(' ,')} "
    return f"{before}{paid(own[0], total=total)}{line[own.end() :]}"
