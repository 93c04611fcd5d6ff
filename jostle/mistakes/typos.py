"""One slip of a hand in a statement, and the statement without it.

A letter too many, a bracket that is not closed, a comma for a point, two words in each other's place: each candidate
differs in one token from what stands there. The likeliest that parses, and of which the check finds nothing, is what
was meant. Candidates are tried in the order of how likely they are, a few hundred by the parser and few by the check.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import starmap

from jostle.check.names import names_in
from jostle.diagnostics import Diagnostic
from jostle.language.aggregates import AGGREGATES
from jostle.language.builtins import BUILTINS
from jostle.language.row_functions import ROW_FUNCTIONS
from jostle.mistakes import edits
from jostle.mistakes.edits import (
    CALL,
    USAGE,
    Slip,
    Token,
    arguments,
    completed,
    measured,
    misreads,
    own_values,
    tokens,
)
from jostle.mistakes.foreign.selects import in_order
from jostle.records import replace
from jostle.syntax.parser import lexicon, parses

_PARSED, _CHECKED, _BEFORE = 400, 8, 40  # candidates that are parsed, that are checked; tokens before the fault
_CLOSE = {"(": ")", "[": "]", "{": "}", "{{": "}}"}
_QUERY = ("select", "from", "where", "groupby", "as", "with", "and", "over", "on", "is", "by", "join", "order by", "to",
          "row", "rows", "end", "epsilon")  # fmt: skip
_OTHERS = ("for", "in", "if", "and", "or", "by", "on", "of", "with", "epsilon", "described by", "protecting",
           "budget", "rows", "never", "up to", "release", "assert", "use", "else", "return", "end")  # fmt: skip
_WHERE_IT_STOPS = re.compile(  # of messages that say no more than where the parser stopped
    "cannot stand|is missing|too early|opens no|begins no|is not closed|closes nothing|outside brackets|indentation|"
    "no meaning|outside a query|second `=`|names its unit|named with|does nothing|begins with|it does not compare|"
    "expected|does not parse|names its table|is given a value at a time|opens a query|has no names"
)
_NO_MORE = rf"{USAGE}|it takes|the path|a budget|$"  # says what is taken, and no more
_ARTICLES, _JOINING = frozenset({"a", "all", "an", "my", "the"}), frozenset({"is", "of", "to"})
_MEANS = re.compile(r"\b(?:minimi[sz]e|maximi[sz]e|not?|without|except|never|distinct|weight\w*)\b")  # is not left out
_OF_VALUES = frozenset({"AssertionFailed", "TypeError", "ValueError", "PrivateValue"})  # kinds of refused arguments
SURE = 0.95  # a slip that costs less is tried before what a message says to write


def likely(text: str, at: int, names: Sequence[str], fault: Diagnostic) -> list[Slip]:
    """The slips of a statement with a fault at a place, the likeliest first; `names`: what the program calls things.
    Of one that is parsed words and numbers are looked at, and what its message is about."""
    every = tokens(text)
    here = next((i for i, token in enumerate(every) if token.end > at), len(every))
    near = range(max(0, here - _BEFORE), min(len(every), here + _BEFORE))
    of_names = fault.kind in ("SyntaxError", "NameError", "DataError") or "hand out" in fault.message
    slips = [*_words(every, near, here if of_names else -9, names), *_divided(every, near, here, names)]
    slips += [*_numbers(every, near), *_pairs(every, near, fault)]
    if fault.kind == "NameError":  # a function of the language may only look like a name of the program's own
        far = [one.cost + 0.06 * (one.new in vocabulary() and one.cost > 0.4) for one in slips]
        spoken = {*lexicon().reserved, *lexicon().clause} - {"true", "false", *names, *BUILTINS}
        slips = [replace(one, cost=cost) for one, cost in zip(slips, far, strict=True) if one.new not in spoken]
    if here < len(every):
        slips += [*_beside(text, every, here, fault), *_chains(text, every[here], fault)]
        slips += [*_undefined(text, every[here], fault), *_calls(text, every[here], fault), *_of_report(text, fault)]
    if fault.kind in ("NameError", "SyntaxError"):
        slips += _quotes(text, fault)
    if fault.kind == "SyntaxError":
        stops = _WHERE_IT_STOPS.search(fault.message) is not None
        slips += [*starmap(Slip, in_order(text)), *_brackets(every), *_indented(text, at)]
        slips += _signs(text, every, here, stops=stops)
        if stops:
            slips += [*_openings(text, every, at, fault), *_lacking(every, here), *_clauses(text, every, here, names)]
    return sorted(slips, key=lambda slip: slip.cost + abs(slip.start - at) / 10_000)


# Words ------------------------------------------------------------------------------------------


@cache
def vocabulary() -> frozenset[str]:
    words = lexicon()
    spoken = (*words.reserved, *words.opening, *words.clause, "running", "jointly")
    return frozenset((*spoken, *BUILTINS, *AGGREGATES, *ROW_FUNCTIONS))


def distance(one: str, other: str) -> int:
    """How many letters are left out, put in, replaced or swapped with the next, up to 3; case does not count."""
    one, other = one.lower(), other.lower()
    if abs(len(one) - len(other)) > 2:
        return 3
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            least = min(last[j] + 1, row[-1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                least = min(least, before[j - 2] + 1)
            row.append(least)
        before, last = last, row
    return min(last[-1], 3)


def alike(word: str, names: Sequence[str]) -> Iterator[tuple[float, str]]:
    """The names that a word may have been meant for, and how far they are."""
    for name in names:
        most = 2 if len(word) > 5 or (len(word) > 3 and name.startswith(word)) else 1
        far = distance(word, name) if name != word and len(word) > 1 else 3
        if far <= most and len(name) > 1:
            yield 0.4 * far, name


def _words(every: Sequence[Token], near: range, here: int, names: Sequence[str]) -> Iterator[Slip]:
    """Words that are like another, or stand twice; of words that are names, those beside the fault alone."""
    every_name = {*names, *vocabulary()}
    for i in near:
        token = every[i]
        if not token.text[0].isalpha() or (token.text in every_name and abs(i - here) > 1):
            continue
        called = every[i + 1 : i + 2] and every[i + 1].text == "("
        for far, name in alike(token.text, sorted(every_name)):
            if not called and name in BUILTINS and name not in {*names, *lexicon().clause}:
                continue  # a function is called
            yield Slip(0.4 + far + (0.6 if token.text in every_name else 0), token.start, token.end, name)
        if i and every[i - 1].text == token.text:
            yield Slip(0.5, token.start, token.end, "")


def _divided(every: Sequence[Token], near: range, here: int, names: Sequence[str]) -> Iterator[Slip]:
    """A word that is two words, of which a sign between them is missing: `avgage)`, `gcolumns`, `xs0]`."""
    every_name = {*names, *vocabulary()}
    for i in near:
        token = every[i]
        if not token.text[0].isalpha() or token.text in every_name:
            continue
        for cut in range(1, len(token.text)):
            one, other = token.text[:cut], token.text[cut:]
            calls = one in BUILTINS or one in AGGREGATES
            if one in every_name and (other in every_name or other.isdigit() or i == here or calls):
                both = {one, other} <= every_name or other.isdigit()
                for sign in ("(", "[", ".", " ", " = ") if len(other) > 1 or other.isdigit() else (".",):
                    cost = 0.78 if both and sign == "." else 0.94 if both else 1.1
                    yield Slip(cost, token.start, token.end, f"{one}{sign}{other}")


# Numbers, quotes and arguments ------------------------------------------------------------------


def _numbers(every: Sequence[Token], near: range) -> Iterator[Slip]:
    """`5%`, `"5"`, `099`."""
    for i in near:
        token = every[i]
        if token.text[:1].isdigit() and token.text.endswith("%") and (i == 0 or every[i - 1].text not in ("*", "/")):
            yield Slip(0.6, token.start, token.end, f"{float(token.text[:-1]) / 100:g}")
        if re.fullmatch(r"([\"'])\d+(\.\d+)?\1", token.text):
            yield Slip(0.42, token.start, token.end, token.text[1:-1])
        domain = token.text.isdigit() and len(token.text) > 2 and every[i - 1].text == ":"
        for cut in range(1, len(token.text)) if domain else ():
            far = 0 if token.text[0] == "0" and cut == 1 else abs(cut - len(token.text) / 2) / 10
            yield Slip(1.0 + far, token.start, token.end, f"{token.text[:cut]}..{token.text[cut:]}")


def _pairs(every: Sequence[Token], near: range, fault: Diagnostic) -> Iterator[Slip]:
    """`0,5`, `1,000`, `16-79`."""
    for i in near[:-2]:
        one, sign, two = every[i : i + 3]
        if one.end < sign.start or sign.end < two.start or not (one.text.isdigit() and two.text.isdigit()):
            continue
        if sign.text == "-" and re.search("walked|domain", fault.message):
            yield Slip(0.42, sign.start, sign.end, "..")
        if sign.text == ",":
            thousands = two.text == "000" and one.text[0] != "0"
            yield Slip(0.7, sign.start, sign.end, "" if thousands else ".")
            yield Slip(0.9, sign.start, sign.end, "..")


def _quotes(text: str, fault: Diagnostic) -> Iterator[Slip]:
    """A quote that is missing before or after some words of one line, or around a path."""
    for match in re.finditer(r"(?<=[(\[, ])[\w-]*[./][\w./*-]+(?=[)\], ])", text):
        if "/" in match[0] or re.search(r"\.(?:[ct]sv|xlsx?|parquet|jsonl?|npy|db|arrow|txt)$", match[0]):
            yield Slip(0.9, match.start(), match.end(), f'"{match[0]}"')
    program = fault.span.source.text if fault.span else ""
    for name in {one for one in re.findall(r"`(\w+ [^`\n]*)`", program) if one in text}:
        yield from (
            Slip(0.4, at.start(), at.end(), f"`{name}`")
            for at in re.finditer(rf"(?<!`)\b{re.escape(name)}\b(?!`)", text)
        )
    for line in re.finditer(r"[^\n]+", text):
        marks = [line.start() + m.start() for m in re.finditer(r"(?<!\\)\"", line[0])]
        for mark in marks if len(marks) % 2 else ():
            for before in re.finditer(r"(?:[(\[{,:=+] *| )(?=[^ ])", text[line.start() : mark]):
                at = line.start() + before.end()
                yield Slip((0.8 if before[0] == " " else 0.7) + (mark - at) / 1000, at, at, '"')
            after = re.match(r"[^\"(){}\[\],]+", text[mark + 1 : line.end()])
            if after is not None:
                stop = mark + 1 + len(after[0].rstrip())
                yield Slip(0.6, stop, stop, '"')
            yield Slip(1.2, mark, mark + 1, "")


def _beside(text: str, every: Sequence[Token], here: int, fault: Diagnostic) -> Iterator[Slip]:
    """`and` for a comma, `==` for `=`, `..` for a point, a minus and a missing `in`, near what a message is about."""
    for i in range(max(0, here - 3), min(len(every), here + 5)):
        token = every[i]
        if token.text == "and":
            names = re.match(r" *\w+ *=(?!=)", text[token.end :])
            yield Slip(0.9 if names else 1.0, token.start - (text[token.start - 1] == " "), token.end, ",")
        if token.text == "[" and "no fields or elements" in fault.message:
            yield Slip(1.0, token.start, token.start, "in ")
        if token.text == ".." and i == here - 1 and fault.kind == "NameError":
            yield Slip(0.9, token.start, token.end, ".")
        if token.text == "==" and fault.kind != "SyntaxError":
            yield Slip(1.0, token.start, token.end, "=")
        if token.text == "-" and "above zero" in fault.message:
            yield Slip(1.0, token.start, token.end, "")


def _chains(text: str, at: Token, fault: Diagnostic) -> Iterator[Slip]:
    """What is called, indexed or asked of a value that has no such thing."""
    if fault.help == "it is the value itself" or (fault.kind == "SyntaxError" and at.text == "."):
        for match in re.finditer(r"\.\w+(?:\((?:[^()]|\([^()]*\))*\))?", text):
            if at.start <= match.start() <= at.end + 1:
                yield Slip(1.2, match.start(), match.end(), "")
    key = re.search(r"the row of a key is `g\[\"(\w+)\"\]", fault.help)
    if key and fault.span and f'"{key[1]}"' in fault.span.source.text:
        for match in re.finditer(rf"\.{key[1]}\b(?!\()", text):
            yield Slip(0.9, match.start(), match.end(), f'["{key[1]}"]')
    if of := re.search(r"cannot be called|number cannot be indexed", fault.message):
        signs = re.compile(r"\(\)" if "called" in of[0] else r"\[[^\[\]]*\]")
        for match in signs.finditer(text, at.start):
            yield Slip(1.0 + (match.start() - at.start) / 1000, match.start(), match.end(), "")
    unit = re.search(r"protecting (\w+)", fault.span.source.text) if fault.span else None
    if unit and "no column" in fault.message and at.text == unit[1]:
        yield from (Slip(0.3, call.start(), call.end(), "count(distinct person)")
                    for call in re.finditer(rf"count\((?:distinct )?{unit[1]}\)", text))  # fmt: skip
    if "no column" in fault.message and (prefix := re.compile(r"[A-Za-z]\w*\.").match(text, at.start)):
        yield Slip(1.3, prefix.start(), prefix.end(), "")


def _undefined(text: str, word: Token, fault: Diagnostic) -> Iterator[Slip]:
    """A word that nothing has: left out between others, or in quotes, as a column or one text among others."""
    if not re.search("is not defined$|^unknown name", fault.message):
        return
    measured = re.search(rf"(?:\{{\{{[^{{}}]*|\b(?:{'|'.join(AGGREGATES)})\( *)$", text[: word.start])
    program = fault.span.source.text if fault.span and not measured else ""
    for of, select in re.findall(r"(?m)^ *(\w+) *= *\{\{ *(select\b[^{}]*\bgroup ?by\b[^{}]*)", program):
        columns = re.findall(r"(?:\bas|\bgroup ?by|,) (\w+)\b(?!\()", select)
        rest = text[word.start :].partition("\n")[0]
        new = re.sub(rf"(?<![\w.\"'])({'|'.join(columns)})\b(?! *[=(\"'])", rf"{of}.\1", rest)
        if word.text in columns:
            yield Slip(0.85, word.start, word.start + len(rest), new)
    if each := re.compile(r"[^\[\]]*?(?= in \w+(?:\([^()]*\))?\])").match(text, word.start):
        yield Slip(0.8, each.end(), each.end(), f" for {word.text}")
    for call in re.finditer(r"\b\w+\(\"\s*(select [^\"]*?);?\s*\"\)", text):
        yield Slip(0.9, call.start(), call.end(), f"{{{{ {call[1]} }}}}")
    table = re.match(rf"`{re.escape(word.text)}` is a column of `(\w+)`", fault.help)
    if table and text[: word.start].endswith("("):
        yield from (Slip(0.9 + len(more) / 100, word.start, word.start, f"{table[1]}, {more}") for more in ("x = ", ""))
    if re.search(r"\w = $", text[: word.start]) and re.match(" *[,)]", text[word.end :]):
        yield Slip(1.35, word.start, word.end, f'"{word.text}"')
    if re.search(r"\w +$", text[: word.start]) and re.match(r" +\w", text[word.end :]):
        yield Slip(1.4, word.start, word.end, "")
    of_texts = re.search(r"[{\[](?: *\"[^\"]*\",)* *$", text[: word.start]) and '"' in text
    if of_texts or f"`{word.text}` is a column" in fault.help:
        yield Slip(0.9 if of_texts else 1.0, word.start, word.end, f'"{word.text}"')


def _calls(text: str, at: Token, fault: Diagnostic) -> Iterator[Slip]:
    """A call with more or fewer arguments, or with two of them swapped."""
    if fault.kind == "SyntaxError" or fault.span is None:
        return
    for call in CALL.finditer(text):
        defines = text[: call.start()].endswith("def ")
        clear = not fault.help.startswith("in another order")  # of which there are several
        about = clear and at.start < call.end(1) and (call.start() <= at.start or fault.kind == "AssertionFailed")
        of_values = fault.kind in _OF_VALUES or fault.message.startswith("unknown name")
        if "has no `" in fault.message if defines else about and of_values:
            yield from arguments(call, 0.44, less=False)  # two of them in each other's place
        inside = call.start() <= at.start < call.end(1) and f"def {call[0]}" not in fault.span.source.text
        if wrong := re.search(r"has no parameter `(\w+)`", fault.message) if inside else None:
            yield from _renamed(text, call, wrong[1])
        if " is missing" in fault.message and inside:
            yield from completed(call, own_values(fault.span))
        if inside and re.search(r"takes \d.* are given|not a (?:number|function)$", fault.message):
            yield from measured(call)
        if re.search(r"has no (?:argument|parameter)|takes \d|needs", fault.message):
            yield from arguments(call, 1.3, less=re.match(_NO_MORE, fault.help) is not None)


def _of_report(text: str, fault: Diagnostic) -> Iterator[Slip]:
    """A field of a report as a function of it, `median(curve)`, or as an element, `curve["median"]`."""
    for match in re.finditer(r"\b(\w+)\((\w+)\)|\b(\w+)\[\"(\w+)\"\]", text if "a report" in fault.message else ""):
        yield Slip(0.9, match.start(), match.end(), f"{match[2] or match[3]}.{match[1] or match[4]}")


def _renamed(text: str, call: re.Match[str], wrong: str) -> Iterator[Slip]:
    """A list, a text or a function that is given by another name than the function of the library has for it."""
    for match in re.finditer(rf"\b{wrong}(?= *= *[\[\"l])", text):
        for own in re.findall(r"\b(\w+) = ", edits.calls_shown().get(call[0][:-1], "")):
            yield Slip(0.9, match.start(), match.end(), own)


# Brackets, signs and clauses --------------------------------------------------------------------


def _brackets(every: Sequence[Token]) -> Iterator[Slip]:
    """Brackets that are missing, too many, or others than they should be."""
    stack: list[int] = []
    lone: list[int] = []
    unclosed: list[tuple[int, int]] = []  # where it is opened, and before what it should be closed
    for i, token in enumerate(every):
        if token.text in _CLOSE:
            stack.append(i)
        elif token.text in _CLOSE.values():
            if not any(_CLOSE[every[j].text] == token.text for j in stack):
                lone.append(i)
                continue
            while _CLOSE[every[stack[-1]].text] != token.text:
                unclosed.append((stack.pop(), i))
            stack.pop()
    for i, before in [*unclosed, *((i, len(every)) for i in stack[::-1])][:3]:
        yield from _unclosed(every, i, before)
    for i in lone[:2]:
        token = every[i]
        doubled = every[i - 1].text == token.text and every[i - 1].end == token.start
        yield Slip(0.6 if doubled else 1.0, token.start, token.end, "")
        if token.text in ("}}", "}"):
            yield Slip(0.7, token.start, token.end, "}" if token.text == "}}" else "}}")
        opener = next(one for one, close in _CLOSE.items() if close == token.text)
        for j in range(max(0, i - _BEFORE), i):
            functions = {*BUILTINS, *AGGREGATES, *ROW_FUNCTIONS, "table"} - {*lexicon().clause}
            called = opener == "(" and every[j - 1].text in functions
            after = 0.0 if called or every[j - 1].text in ("=", ":", "by", "in") else 0.35
            yield Slip(0.7 + after, every[j].start, every[j].start, opener + " " * (opener == "{{"))


def _unclosed(every: Sequence[Token], i: int, before: int) -> Iterator[Slip]:
    token = every[i]
    close = _CLOSE[token.text]
    doubled = i + 1 < len(every) and every[i + 1].text == token.text and every[i + 1].start == token.end
    yield Slip((0.5 if close == ")" else 0.85) if doubled else 1.1, token.start, token.end, "")
    if token.text == "{":
        yield Slip(0.65, token.start, token.end, "{{")
    if before < len(every):
        yield Slip(0.9, every[before].start, every[before].end, close)
    for j in range(before - 1, max(i, before - 2 * _BEFORE), -1):
        if every[j].text == "," and every[j + 1 : j + 2] and every[j + 1].text in _QUERY:
            yield Slip(0.75, every[j].start, every[j].end, close)
        last = every[j].text in ("with", "described", "protecting", "budget", ",", "(", "[", "{", "{{", "=")
        late = (before - 1 - j) / 500
        yield Slip(0.8 + late + last / 10, every[j].end, every[j].end, " " * (close == "}}") + close)


def _signs(text: str, every: Sequence[Token], here: int, *, stops: bool) -> Iterator[Slip]:
    """A sign that is too much or another than it should be, at the fault or just before it; a word where it `stops`."""
    for i in range(max(0, here - 2), min(len(every), here + 2)):
        token = every[i]
        if not token.text[0].isalnum() and token.text[0] not in "\"'":
            doubled = every[i - 1].text == token.text
            if not re.search(
                r"[-+*/%^]{3}", text[max(0, token.start - 2) : token.end + 2]
            ):  # of three none is too much
                yield Slip(0.4 if doubled else 1.0, token.start, token.end, "")
        elif (token.text not in vocabulary() or token.text in _JOINING) and stops and i and not token.text[0].isdigit():
            yield Slip(0.9 if token.text in _ARTICLES else 1.35, token.start, token.end, "")
        if token.text == "," and (inner := re.compile(r"[^()]*(?=\))").match(text, token.start)):
            yield Slip(1.3, token.start, inner.end(), "")
        if set(token.text) <= {"."} and token.text != "..":
            yield Slip(1.05 if token.text == "." else 0.6, token.start, token.end, "..")
        if token.text in ("==", ";"):
            yield Slip(0.6, token.start, token.end, {"==": "=", ";": ","}[token.text])
        if token.text == ":" and text.rfind("{{", 0, token.start) > text.rfind("}}", 0, token.start):
            yield Slip(0.9, token.start, token.end, " as")


def _lacking(every: Sequence[Token], here: int) -> Iterator[Slip]:
    """A sign that is missing at the fault or just before it, or two words there in each other's place."""
    words = lexicon()
    for i in range(max(1, here - 2), min(len(every), here + 2)):
        before, token = every[i - 1], every[i]
        apart, late = before.end < token.start, (i > here) / 20
        for sign in ("..", ".") if not apart else ():
            yield Slip(0.96 + (sign != ".") / 50 + late, before.end, before.end, sign)
        for sign in (",", ":"):
            yield Slip(0.98 + late, before.end, before.end, sign + " " * (not apart))
        spoken = before.text in words.reserved + words.opening or before.text in BUILTINS
        named = i > 1 or i + 1 < len(every)
        if apart and not spoken and named and (token.text[0].isalnum() or token.text[0] in "([{\"'"):
            yield Slip(0.98 + late, before.end, token.start, " = ")
        if apart and all(one.text in vocabulary() or one.text[0].isdigit() for one in (before, token)):
            yield Slip(1.0, before.start, token.end, f"{token.text} {before.text}")


def _openings(text: str, every: Sequence[Token], at: int, fault: Diagnostic) -> Iterator[Slip]:
    """The first word of a statement, the braces of a query, or what the parser says that may stand there."""
    if every and re.search(r"\b(?:protecting|budget)\b", text) and not text.lstrip().startswith("private"):
        yield Slip(0.9, every[0].start, every[0].start, "private ")
    first = next((one.start for one in every if one.start >= text.rfind("\n", 0, at) + 1), 0)
    for word in ("for", "if", "def", "with", *(["assert"] if re.search("[<>=!]=|[<>]", text) else [])):
        yield Slip(1.1, first, first, f"{word} ")
    if "outside a query" in fault.message and "{" not in text:
        yield Slip(0.9, at, len(text.rstrip()), f"{{{{ {text[at:].rstrip()} }}}}")
    end = next((one.end for one in every if one.start <= at < one.end), at)
    for word in re.findall("`([^`]+)`", fault.help) if fault.help.startswith("expected ") and end > at else ():
        word = word if text[at - 1 : at] in ("", " ") or not re.match(r"\w|=", word) else f" {word}"
        yield from (Slip(1.1, at, end, word), Slip(1.15, at, at, f"{word} "))


def _clauses(text: str, every: Sequence[Token], here: int, names: Sequence[str]) -> Iterator[Slip]:
    """A word of a clause that is missing at the fault or before, or stands there in other words."""
    for i in range(max(0, here - 2), min(len(every), here + 3)):
        token, before = every[i], every[i - 1] if i else Token(" ", -1, -1)
        in_query = text.rfind("{{", 0, token.start) > text.rfind("}}", 0, token.start)
        stray = before.text[0].isalpha() and before.text not in {*vocabulary(), *names}
        spoken = token.text in vocabulary()
        other = token.text[0].isalpha() and (not spoken or token.text in ("in", "of", "to", "for", "is"))
        if other and not spoken:
            yield Slip(1.3, token.start, token.end, "==")
        for word in _QUERY if in_query else _OTHERS:
            if word == "described by" and token.text != "{":
                continue
            if word == "end":
                yield Slip(1.2, token.start, token.start, " end ")
            elif not stray and before.end < token.start:
                yield Slip(1.2, token.start, token.start, f"{word} ")
            if other and word not in ("in", "release", "assert", "return", "use", "else"):
                yield Slip(1.3 if spoken else 1.25, token.start, token.end, word)
    yield Slip(1.2, len(text.rstrip()), len(text.rstrip()), " end")


def _indented(text: str, at: int) -> Iterator[Slip]:
    """The line of a fault as far in as one above it."""
    start = text.rfind("\n", 0, at) + 1
    mine = len(text[start:]) - len(text[start:].lstrip(" "))
    for other in sorted({0, *(len(one[0]) for one in re.finditer(r"(?m)^ *(?=\S)", text[:start]))}, reverse=True):
        if other != mine:
            yield Slip(0.7, start, start + mine, " " * other)


def without(
    text: str, at: int, names: Sequence[str], clean: Callable[[str], bool], fault: Diagnostic, most: float
) -> Slip | None:
    """The likeliest slip without which `clean` finds nothing wrong with a statement, if it costs less than `most`."""
    texts, checked, own = {text}, 0, re.match(r"\s*(\w+) *=(?!=)", text)
    for slip in likely(text, at, names, fault):
        if own and slip.new == own[1] and slip.start > own.end():
            continue  # what is defined does not call itself
        apart = text[slip.start - 1 : slip.start] == " " and text[slip.end : slip.end + 1] in (*" )]},:\n", "")
        slip = replace(slip, start=slip.start - 1) if not slip.new and slip.end > slip.start and apart else slip
        new = text[: slip.start] + slip.new + text[slip.end :]
        if slip.cost >= most or len(texts) > _PARSED or checked > _CHECKED:
            return None
        begins = re.search(r"(?:^|\n) *$", text[: slip.start]) and re.match(r" *=(?!=)", text[slip.end :])
        misleads = misreads(text, new) or _loses(text, slip, new, names) or (begins and slip.new.isidentifier())
        if new not in texts and not misleads:
            texts.add(new)
            checked += (is_whole := parses(new))
            if is_whole and clean(new):
                return slip
    return None


def _loses(text: str, slip: Slip, new: str, names: Sequence[str]) -> bool:
    """Whether a slip leaves out a name of the program, or a word that says what is meant, or takes a level for an
    amount."""
    if slip.new in ("epsilon", "rho", "") and re.match("(?i) ?(?:alpha|conf|level|sig)", text[slip.start : slip.end]):
        return True
    lost = {*re.findall(r"\w+", text[slip.start : slip.end])} - {*re.findall(r"\w+", re.sub('"[^"\n]*"', "", new))}
    return not slip.new and bool(_MEANS.search(" ".join(lost)) or lost & {*names} - vocabulary())


def names_of(program: str, fault: Diagnostic) -> list[str]:
    """What a program calls things, what its modules bring, and what the message on it suggests."""
    words = re.findall(r"[A-Za-z_]\w*", re.sub(r"\"[^\"\n]*\"|#[^\n]*", "", program))
    names = set(re.findall(r"\b([A-Za-z_]\w*) *(?:=(?!=)|:(?! *\n))", program))
    names |= set(re.findall(r"\b(?:for|as|def|private|param) ([A-Za-z_]\w*)", program))
    params = re.findall(r"(?:\bdef \w+|\bOption|\bFeature|\bUtility) *\(([^()]*)\)|\blambda ([\w, ]+):", program)
    names |= set(re.findall(r"[A-Za-z_]\w*", " ".join(map(" ".join, params))))
    names.update(word for word in words if words.count(word) > 1)
    if of := re.search(r"`(\w+)` has no (?:parameter|argument)", fault.message):
        names |= {param.name for param in BUILTINS[of[1]].parameters} if of[1] in BUILTINS else set()
    modules = re.findall(r"(?m)^use (\w+)", program)
    names |= {name for module in modules for name in (module, *names_in(module)) if name[0] != "_"}
    message = " ".join(re.findall(r"`([^`]+)`", f"{fault.message} {fault.help}"))
    here = re.findall(r"\w+", fault.span.text) if fault.span is not None else []
    once = {word for word in here if words.count(word) == 1}
    return sorted((names | {name for name in re.findall(r"[A-Za-z_]\w*", message) if name not in here}) - once)
