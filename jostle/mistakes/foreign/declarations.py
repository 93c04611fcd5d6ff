"""Declarations in other words, read anew: of private tables, of choices, and of the parts of a choice.

`{age: number between 0 and 100, sex: "F" or "M"}`, `described_by={"age": (0, 100)}`, `protecting each row`, `budget 1`;
`among A, B wrt near by validation`, `Option Flat(data) => flat(data.cube)`. What is not understood ends the reading.
"""

from __future__ import annotations

import re

from jostle.mistakes.foreign import Nothing, Unread, unread, words
from jostle.mistakes.foreign.selects import listed

_DAY = r"\d{4}-\d\d-\d\d[\dT:]*"
_AS_IT_STANDS = re.compile(
    rf"(?:from )?{_DAY}(?:\.\.| to ){_DAY}(?: by [\w ]+)?|"
    r"-?[\d.]+\.\.-?[\d.]+|\{.*\}|(?:clamp|date|time|number)\(.*\)|text|integer|real|date|time"
)
_NUMBER = r"-?\d[\d_]*(?:\.\d+)?"
_RANGE = re.compile(
    rf"(?i)(?:(?:whole |integer |int|float|real|number|numeric|decimal|range|bounded)"
    rf"[a-z]*\d{{0,2}}\b\s*)?(?:numbers?\s*)?(?:from|between|in|min(?:imum)?|range)?[\s=:]*[(\[]?\s*(?:min|low|lower|from)?[\s=]*(?P<low>{_NUMBER})\s*"
    r"(?:\.\.\.?|[-–,;:]|to|and|until|max|up to|<=? *\w+ *<=?)\s*(?:max|high|upper|to)?[\s=]*"
    rf"(?P<high>{_NUMBER})\s*[)\]]?"
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
    r"(?i)(?:\b(?:with|spending|using|max\w*|total|privacy|an?|the|of)\s+)*(?:\bbudget\w*|\b(?=(?:epsilon|eps|rho)\b))"
    r"[\s=:(\"']*(?:of\s+)?(?:delta[\s=:]*(?P<first>[\d.e-]+)[,\s]*)?(?:(?P<unit>epsilon|eps|ε|rho)[\s=:]*)?"
    r"(?:(?P<amount>\d[\d.]*)|unlimited|none|unbounded|inf\w*)?[\"')]*"
    r"(?: *(?P<then>epsilon|eps|ε|rho)\b)?(?:[,\s]*(?:and\s+)?delta[\s=:]*(?P<delta>[\d.e-]+))?"
    r"(?:\s+(?:in total|in all|overall|per (?:run|session)))?"
)
_UNIT = re.compile(
    r"(?i)\b(?:protecting|protects?|unit|per)\b[\s=:\"']*(?:each|every|all|the|one)?\s*(?P<unit>\w+)[\"']?"
    r"(?:(?P<most>,? (?:at most|up to) \d+ rows)|[ -]level\b"
    r"|,? \(?(?:with |of )?(?:up to |limit(?:ed to)? |max\w* )?(?P<many>\d+|one)(?: rows?)?(?: each)?\)?"
    r"|(?:\.(?P<key>\w+))? (?:on|by|via|using) (?:\w+\.)?(?:\w+ *==? *)?(?P<on>\w+)(?P<rows>(?: up to \d+ rows?)?))?"
)
_COLUMN = re.compile(
    r"(?P<name>[\"']?\w+[\"']?|`[^`]+`)"
    r"(?:\s*[:=]|\s+(?:in|is|as)\b|(?=\s+(?:between|from|int|float|varchar|text|bool|real|date|[-\d{\[(])))\s*(?P<of>.*)"
)
_OF_ALL = ("row", "people", "persons", "individuals", "records", "columns")
_REFERS: tuple[tuple[str, str], ...] = (  # another table of persons: what it says of them, and how that is written
    (r"\b(\w+) of (\w+)(?= on )", r"\2.\1"), (r"\.(?:persons?|people)(?= on )", ".id"),
    (r"\b(\w+) references (\w+)[(.](\w+)\)?", r"\2.\3 on \1"), (r"\b(\w+)\((\w+)\) on\b", r"\1.\2 on"),
    (r"\bprotect(?:ing|s)? (?:rows?|persons?|people) (?:by|of) (\w+)(?= up to\b)", r"protecting \1"),
    (r"(?<=protecting )(\w+) of (\w+)$", r"\2.id on \1"), (r"(?<=protecting )(\w+\.\w+) *==? *(\w+)", r"\1 on \2"),
)  # fmt: skip


def domain(text: str) -> str:
    """What a column may hold, as a description says it."""
    text, filled = re.subn(r"(?i)[ ,]+(?:never (?:missing|null|empty)|not null|required)\s*$", "", text)
    if filled:
        return f"{domain(text)} never missing"
    text = re.sub(r"^\s*\{\s*(-?[\d.]+\.\.-?[\d.]+)\s*\}\s*$", r"\1", text)
    text = text.strip().strip("\"'") if re.fullmatch(r"\s*[\"'][^\"']*\.\.[^\"']*[\"']\s*", text) else text.strip()
    if _AS_IT_STANDS.fullmatch(text):
        return _quoted(text)
    if months := re.fullmatch(r"(\d{4}-\d\d)(?:\.\.| to )(\d{4}-\d\d)", text):
        return f"from {months[1]}-01 to {months[2]}-01 by month"
    if kind := next((kind for pattern, kind in words("kinds").items() if re.fullmatch(f"(?i){pattern}", text)), ""):
        return kind
    return _range(text) or _date(text) or _list(text)


def _range(text: str) -> str:
    if match := _RANGE.fullmatch(text):
        low, high = match["low"].replace("_", ""), match["high"].replace("_", "")
        ends = (1,) if float(low) else (0, 1)  # where Python's ranges end before it: `range(0, 100)`, `range(1, 101)`
        if text.lower().startswith("range") and high.isdigit() and int(high) % 5 in ends:
            high = str(int(high) - 1)
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
    bare = re.search(r"'|(?<![\w\"])(?!true\b|false\b)[A-Za-z]\w*(?![\w\"])|\" *[|/;]", inner[1]) if inner else None
    if inner is None or bare is None:
        return text
    return domain(inner[1] if re.search(r"[,|/;]| or ", inner[1]) else unread())


def columns(text: str) -> list[tuple[str, str]]:
    """The columns of a description, with what they may hold. What has no name goes on with the list before it."""
    parts = list[str]()
    for part in listed(text):
        if one := re.match(r"\w+\s*([<>]=?)\s*-?\d", part):
            raise Nothing(one[1])
        named = _COLUMN.fullmatch(part) is not None
        parts[len(parts) if named else -1 :] = [part if named or not parts else f"{parts[-1]}, {part}"]
    pairs = [_COLUMN.fullmatch(part) or unread() for part in parts]
    return [(re.sub(r"[\"']|^`(\w+)`$", r"\1", pair["name"]), domain(pair["of"])) for pair in pairs]


def declaration(line: str, wide: bool = False) -> list[str]:
    """The declaration that a line means; `wide`: whatever words are around its unit and its amount."""
    of = _DECLARED.fullmatch(line.strip()) or unread()
    begin = re.search(r"[{(](?=\s*(?:[\"'`]?\w+[\"'`]?|`[^`]+`)[\s:=])", of["rest"]) or unread()
    depth, end = 0, len(of["rest"])
    for at in range(begin.start(), len(of["rest"])):
        depth += (of["rest"][at] in "{([") - (of["rest"][at] in "})]")
        if depth == 0:
            end = at
            break
    before, inner, after = of["rest"][: begin.start()], of["rest"][begin.start() + 1 : end], of["rest"][end + 1 :]
    described, others = columns(re.sub(r";(?= *[\"'`]?\w+[\"'`]? *[:=])", ",", inner)), f"{before} {after}"
    text = ", ".join(f"{name}: {kind}" for name, kind in described)
    if wide:
        others = re.sub(rf"\bprotecting {of['name']}\.(?=\w)", "protecting ", others)
        for pattern, form in _REFERS:
            others = re.sub(pattern, form, others.strip())
    clauses = _unit_and_budget(others, dict(described), wide)
    if not clauses:
        return [f"{line.strip().removesuffix(of['rest'])}{before}{{{text}}}{after}"]  # it says more than is understood
    return [f'private {of["name"]} = table("{of["file"]}") described by {{{text}}} {clauses}']


def _unit_and_budget(others: str, described: dict[str, str], wide: bool) -> str:
    """The unit and the budget of what a declaration says besides its columns; empty where it says more."""
    unit, budget = _UNIT.search(others), _BUDGET.search(others)
    rest = others.replace(unit[0] if unit else "", "").replace(budget[0] if budget else "", "")
    rest = re.sub(r"(?i)\bdescribed?[\W_]?by\b|\bschema\b" + r"|\bdescri\w*\b" * wide, "", rest)
    if unit is None or (not wide and _is_loose(unit, budget)) or re.search(r"\w", rest):
        return ""
    who = "rows" if unit["unit"].lower() in _OF_ALL and unit["unit"] not in described else unit["unit"]
    clauses = f"protecting {who}{unit['most'] or ''}"
    if unit["many"]:
        many = unread() if who == "rows" else 1 if unit["many"] == "one" else int(unit["many"])
        clauses += f" up to {many} row{'s' * (many > 1)}"
    if unit["on"]:
        return f"{clauses}.{unit['key'] or 'id'} on {unit['on']}{unit['rows']}"
    budget = budget or unread()
    small = budget["delta"] or budget["first"]
    kind = "rho" if "rho" in (budget["unit"], budget["then"]) else "epsilon"
    return f"{clauses} budget {kind} {budget['amount'] or 1}{f', delta {small}' if small else ''}"


def _is_loose(unit: re.Match[str], budget: re.Match[str] | None) -> bool:
    """Whether a unit, or a budget, has other words around it."""
    others = unit["many"] or "level" in unit[0]
    return bool(others) or (budget is not None and budget[0][:6].lower() != "budget")


# Choices and their parts -------------------------------------------------------------------------

_CLAUSES = {
    "among": r"among|from|options", "by": r"by(?= +(?:cross[- ]?)?(?:validation|margin)\b)",
    "informed by": r"informed[ _]+by|features",
    "trained on": r"trained?[ _]+on|training", "using": r"using|model", "spending": r"spending",
    "wrt": r"wrt|with +respect +to|scored +by|utility",
}  # fmt: skip
"""The clauses of a choice in their order, and the words that they begin with."""
_CLAUSE = re.compile("|".join(rf"\b(?P<c{at}>{words})\b" for at, words in enumerate(_CLAUSES.values())))
_CHOICE = re.compile(r"(?s)(?P<name>\w+) *(?:= *(?:(?:Mk)?Choice(?:Maker)?\b)?|(?=among\b)) *(?P<rest>.+)")
_PART = re.compile(
    r"(?s)(?:def +)?(?:(?P<name>\w+) *(?::?=|<-) *)?(?P<kind>Option|Feature|Utility|Score)\b *(?P<own>\w+)? *"
    r"(?P<params>\([^()]*\))? *"
    r"(?:=>|->|=|:|(?=\{)) *(?:return\b)? *(?P<body>.+)"
)
_ALL_OF = {"among": "Option", "informed by": "Feature", "wrt": "Utility"}
_NAME = r"[\"']?([A-Za-z_]\w*)[\"']?(?: *\([^()]*\))?"
DECLARES = re.compile(
    r" *(?:(?P<table>private\s)|(?P<choice>\w+ *= *(?:(?:Mk)?Choice(?:Maker)?|among)\b|\w+ +among\b)"
    r"|(?P<part>(?:def +)?(?:\w+ *(?::?=|<-) *)?(?:Option|Feature|Utility|Score)\b *[\w({]))"
)


def declared(line: str, what: str, text: str, wide: bool = False) -> list[str]:
    """The declaration that a line means: of a table, a choice or a part of one, in a program with this text."""
    if what != "table":
        return choice(line, text, wide) if what == "choice" else part(line)
    own = dict(re.findall(r"(?ms)^private (\w+) *=(?:(?!^\S).)*?\bprotecting (\w+)", text))
    key = lambda match: f"protecting {match[1]}.{own.get(match[1], 'id')} on "  # noqa: E731
    return [re.sub(r"protecting (\w+)\.id on ", key, new) for new in declaration(line, wide)]


def choice(line: str, text: str, wide: bool = False) -> list[str]:
    """The choice that a line means, of a program with this text; `wide`: whatever words its clauses begin with."""
    of = _CHOICE.fullmatch(line.strip()) or unread()
    rest, values = re.sub(r"^\((\s*among\b[^()]*)\)", r"\1", of["rest"].strip()), dict[str, str]()
    starts = [match for match in _CLAUSE.finditer(rest) if _is_outside(rest[: match.start()])]
    if wide:
        starts, values = [], _by_operands(rest, text)
    elif not starts or rest[: starts[0].start()].strip("( "):
        raise Unread
    for match, end in zip(starts, [*(one.start() for one in starts[1:]), len(rest)][: len(starts)], strict=True):
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


_OPERAND = re.compile(r"(?:\{(?:[^{}]|\{[^{}]*\})*\}|\[(?:[^\[\]]|\[[^\[\]]*\])*\]|[\w.]+)(?: *, *(?=\w))?")
_JOINING = re.compile(
    "(?i)an?|and|at|by|data|features?|for|from|in|judged|looking|maximising|measured|of|on|options?|over|scored?|the|"
    "to|train|trained|training|using|utility|with|wrt|among|informed|spending"
)


def _by_operands(rest: str, text: str) -> dict[str, str]:
    """The clauses of a choice by what stands in them, whatever words are around: Options, Features, the Utility, data
    to learn from, a share."""
    kinds, values = dict(re.findall(r"(?m)^(\w+) *= *(Option|Feature|Utility)\b", text)), dict[str, str]()
    for part in _OPERAND.findall(rest.strip("(). ")):
        it = part.rstrip(", ")
        of = {kinds.get(name, "") for name in re.findall(r"[A-Za-z_]\w*", it)}
        if it[0] in "{[":
            options, names = of == {"Option"}, re.fullmatch(r"[{\[][\w, ]*[}\]]", it)
            word = "among" if options else "informed by" if names else "trained on"
        elif of in ({"Option"}, {"Feature"}, {"Utility"}):
            word = {"Option": "among", "Feature": "informed by", "Utility": "wrt"}[of.pop()]
        elif re.fullmatch(r"0?\.\d+", it):
            word = "spending"
        elif _JOINING.fullmatch(it):
            continue
        else:
            raise Unread
        if word in values and (word not in ("among", "informed by") or it[0] in "{["):
            raise Unread
        values[word] = f"{values[word]}, {it}" if word in values else it
    return values if "among" in values else unread()


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
    inner = re.sub(r" +(?:or|and) +| *[/|] *", ", ", inner)
    names = [(re.fullmatch(_NAME, part.strip()) or [None, None])[1] for part in listed(inner)]
    if None in names or (one and len(names) != 1):
        return value
    return str(names[0]) if one else f"{{{', '.join(map(str, names))}}}"


def part(line: str) -> list[str]:
    """The Option, Feature or Utility that a line means."""
    of = _PART.fullmatch(line.strip()) or unread()
    kind, name = "Utility" if of["kind"] == "Score" else of["kind"], of["name"] or of["own"] or unread()
    params = re.findall(r"\w+", of["params"] or "")
    body, many = of["body"].strip(), 2 if kind == "Utility" else 1
    if len(params) > many:
        raise Unread
    params = ["data", "answers"][:many] if params in ([], ["answers"]) else [*params, "answers"][:many]
    body = body if body.startswith("{") else f"{{ return {body} }}"
    return [f"{name} = {kind} ({', '.join(params)}) {body}"]
