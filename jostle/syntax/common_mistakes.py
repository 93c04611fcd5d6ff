"""Mistakes that are recognised by what surrounds a place: each is one small function from a place to a message.

`COMMON_MISTAKES` is the order in which they are tried. `after_parsing` refuses what the grammar accepts and nobody
means: a statement that does nothing, a `return` outside a function, `select distinct a`, `in (select …)`.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

from lark import Token

from jostle.diagnostics import Diagnostic, did_you_mean, refuse
from jostle.source import Span
from jostle.syntax import messages
from jostle.syntax import nodes as n
from jostle.syntax.layout import ENDS_AN_EXPRESSION, unclosed
from jostle.syntax.querybuilder import IN_LIST
from jostle.syntax.walk import children, every, returns_inside

OPENING = {"LPAR", "LSQB", "LBRACE", "_LQUERY"}
CLOSING = {"RPAR", "RSQB", "_RBRACE", "_RQUERY"}
STATEMENT_WORDS = ("assert", "def", "external", "for", "if", "param", "private", "release", "return", "use", "with")
CLAUSES = {
    "_JOIN": 1, "_WHERE": 2, "_PER": 3, "_GROUPBY": 4, "_GROUP": 4, "_UPTO": 5, "_HAVING": 6, "_ORDER": 7, "_LIMIT": 8,
    "_WITH": 9,
}  # fmt: skip
RESERVED = {
    "_DEF", "_RETURN", "_ASSERT", "_IF", "_ELSE", "_FOR", "_IN", "_AND", "_OR", "_NOT", "_LAMBDA", "CONST", "KIND",
    "MKCHOICE", "_SELECT",
}  # fmt: skip

_UNFILLED = re.compile(r"""(\w+|"(?:[^"\\\n]|\\.)*")\s*:\s*(?:[-+.\w]*\.\.)?\?""")
_MOST_NAMED = 12


def same_level(place: messages.ErrorPlace) -> list[Token]:
    """The tokens of the statement inside the innermost open bracket, nested brackets left out, last one first."""
    level: list[Token] = []
    depth = 0
    for token in reversed(place.statement):
        if token.type in CLOSING:
            depth += 1
        elif token.type in OPENING:
            depth -= 1
            if depth < 0:
                break
        elif depth == 0:
            level.append(token)
    return level


def open_bracket(place: messages.ErrorPlace) -> Diagnostic | None:
    """A line begins although a bracket of an earlier line is open."""
    opener, previous = place.frame.opener, place.previous
    if place.frame.kind == "block" or opener is None or previous is None or not place.text:
        return None
    if _lacks_comma(place):
        return None
    begins_a_line = place.span.line > (previous.end_line or 0)
    if not begins_a_line or place.text in (")", "]", "}", "}}", ",") or place.type == "EQUAL":
        return None
    return messages.from_layout(unclosed(opener, Token("NAME", place.text, 0, place.span.line)), place.source)


STARTS = ("NAME", "NUMBER", "DATE", "STRING", "CONST")


def _lacks_comma(place: messages.ErrorPlace) -> bool:
    """Whether two values stand side by side in a bracket that is closed before the next statement."""
    opener, previous = place.frame.opener, place.previous
    if opener is None or previous is None or previous.type not in ENDS_AN_EXPRESSION or place.type not in STARTS:
        return False
    if opener == "{" and re.match(r"""(?:\w+|"[^"\n]*") *:""", place.source.text[place.position :]):
        return True  # the next field of a record, or column of a description
    closer = {"(": ")", "[": "]", "{": "}"}.get(opener)
    rest = re.match(r"[^=()\[\]{}]*(.)", place.source.text[place.position :], re.DOTALL)
    return closer is not None and (rest is None or rest[1] == closer)


def missing_comma(place: messages.ErrorPlace) -> Diagnostic | None:
    """`[1 2]`, also over two lines."""
    previous = place.previous
    if previous is None or not _lacks_comma(place):
        return None
    at = messages.token_span(previous, place.source)
    if previous in ("integer", "real", "int", "float") and place.type in ("NUMBER", "DATE"):
        help = "whole numbers are `0..99`, and numbers with fractions `0.0..99.0`"
        return place.error(f"a range stands alone, without `{previous}`", span=at.to(place.span), help=help)
    message = f"{messages.LACKS_A_COMMA} `{previous}` and `{place.text}`"
    return place.error(message, span=at.to(place.span), help=f"write `{previous}, {place.text}`")


def equal_sign(place: messages.ErrorPlace) -> Diagnostic | None:
    """`=` where a comparison, an element or a field stands."""
    if place.text != "=":
        return None
    first, previous = place.first, place.previous
    level = {token.type for token in same_level(place)}
    if place.frame.kind == "set" and previous is not None and previous.type in ("NAME", "STRING"):
        help = place.rewritten(r"([{,]\s*\w+)\s*=\s*", r"\1: ") or "write `{name: value}`"
        return place.error("a record is written with `:`", label="`=` here", help=help)
    plain = place.frame.kind == "block" and first is not None and first.type == "NAME"
    if plain and not level & {"CMP", "_IF", "_AND", "_OR", "_IN"} and previous is not None:
        if previous.type == "RSQB":
            help = "make a new list or record, such as `[f(x) for x in xs]`"
            return place.error("an element cannot be given a new value: values do not change", help=help)
        if previous.type == "RPAR":
            return place.error("a call cannot be given a value", help="define a function with `def f(x): …`")
        if previous.type == "NAME" and "DOT" in level:
            help = "make a new record: `{a: r.a, b: 2}`"
            return place.error("a field cannot be given a new value: values do not change", help=help)
        if "EQUAL" in level:
            return place.error("a second `=` in one statement", help="write a line for each name, or `==` to compare")
    help = place.rewritten(r"^((?:if|else if|assert|while)\b[^=]*[^=<>!\s])\s*=\s*(?!=)", r"\1 == ")
    return place.error(
        "`=` gives a name its value; it does not compare", label="`=` in a condition",
        help=help or "write `==` to compare",
    )  # fmt: skip


def foreign_letter(place: messages.ErrorPlace) -> Diagnostic | None:
    """`größe = 3`: the name ends before the letter, and would look like a word of its own."""
    if place.type or not place.text.isalpha():
        return None
    line, before = place.source.line(place.span.line), place.span.column - 1
    word = next(match for match in re.finditer(r"\w+", line) if match.start() <= before < match.end())
    at = Span(place.source, place.span.line, word.start() + 1, place.span.line, word.end() + 1)
    plain = unicodedata.normalize("NFKD", word[0].replace("ß", "ss")).encode("ascii", "ignore").decode()
    help = "names are written with a–z, A–Z, 0–9 and _" + (f": `{plain}`" if plain.isidentifier() else "")
    if not re.match(r"\s*=(?!=)", line[word.end() :]):
        help += f"; a column that a file calls so stands in backquotes: `{word[0]}`"
    return place.error(f"`{place.text}` cannot be part of a name", span=at, help=help)


def number_with_commas(place: messages.ErrorPlace) -> Diagnostic | None:
    """`x = 1,000`."""
    previous = place.previous
    if place.text != "," or place.frame.kind != "block" or previous is None:
        return None
    help = "numbers have no commas, `1000`; a list stands in brackets, `[1, 2]`"
    help = messages.form_of(place) or help
    return place.error("a comma outside brackets", label="no list is open here", help=help)


def formatted_text(place: messages.ErrorPlace) -> Diagnostic | None:
    """`f"{x}"`."""
    previous = place.previous
    if place.type != "STRING" or previous is None or previous not in ("f", "r", "b"):
        return None
    if previous.end_pos != place.position:
        return None
    help = 'write `"n is " + str(n)`'
    return place.error("there are no formatted strings", span=messages.token_span(previous, place.source), help=help)


def clause_of_a_select(place: messages.ErrorPlace) -> Diagnostic | None:
    """A clause of a select in the wrong place, or one that lacks something."""
    words = {token.type for token in same_level(place)}
    if not place.in_query or "_SELECT" not in words:
        return None
    if place.type == "_WITH" and "_FROM" not in words and "from" in same_level(place):
        return messages.in_general(place)
    if place.type == "_WITH" and "_FROM" not in words:
        help = "write `select count(*) from people with epsilon 0.1`"
        return place.error("a select names its table before it says what it spends", help=help)
    if place.type == "_WITH" and "_JOIN" in words and "_ON" not in words:
        help = f"write `join {place.previous} on KEY`, where `KEY` is a column of both"
        return place.error("a join says on which columns", help=help)
    late = [word for word in CLAUSES if CLAUSES.get(place.type, 10) < CLAUSES[word] and word in words]
    if late:
        help = "write `select … from … where … per … groupby … up to … having … order by … limit … with epsilon …`"
        after = "up to" if late[-1] == "_UPTO" else late[-1].strip("_").lower()
        return place.error(f"`{place.word}` stands before `{after}`", help=help)
    if place.previous == "with" and place.previous.type == "NAME":
        at = messages.token_span(place.previous, place.source)
        return place.error("the select ends too early", span=at, label="something is missing before it",
                           help="write `groupby city with epsilon 0.1`")  # fmt: skip
    return None


def misspelt_clause(place: messages.ErrorPlace) -> Diagnostic | None:
    """`from people whre age > 3`: the word was taken as another name of the table."""
    previous = place.previous
    if not place.in_query or previous is None or previous.type != "NAME" or len(place.statement) < 2:
        return None
    if place.type not in ("NAME", "NUMBER", "STRING") or place.statement[-2].type not in ENDS_AN_EXPRESSION:
        return None
    at, words = (
        messages.token_span(previous, place.source),
        ("from", "where", "groupby", "join", "having", "order by", "with"),
    )
    help = did_you_mean(previous, words, 0.7) or "clauses begin with `join where groupby having order limit with`"
    return place.error(f"`{previous}` begins no clause of a select", span=at, label="unknown here", help=help)


def chained(place: messages.ErrorPlace) -> Diagnostic | None:
    """`1 < x < 5`, and `x == 1 || y == 2`."""
    if place.type not in ("CMP", "_IN"):
        return None
    help = place.rewritten(r"([\w.]+) *([<>]=?) *([\w.]+) *([<>]=?) *([\w.]+)", r"\1 \2 \3 and \3 \4 \5")
    for token in same_level(place):
        if token.type in ("_AND", "_OR", "COMMA", "_IF", "_ELSE", "EQUAL", "_WHERE", "_ASSERT", "COLON"):
            return None
        if token.type == "JOINED":
            help = "`||` joins texts: write `or` between conditions"
        if token.type in ("CMP", "_IN"):
            return place.error("comparisons do not chain", help=help or "write `1 < x and x < 5`")
    return None


def _as_list(piece: re.Match[str]) -> str:
    """`xs[1:]`, `xs[:2]` and `xs[1:2]` as lists of the elements at these places."""
    last = f"{piece[3] or f'len({piece[1]})'} - 1"
    return f"[{piece[1]}[i] for i in {piece[2] or 0}..({last})]"


def colon(place: messages.ErrorPlace) -> Diagnostic | None:
    """A slice, an argument or a parameter with `:`."""
    if place.text != ":" or place.frame.opener is None:
        return None
    opener, first = str(place.frame.opener), place.first
    before = next((a for a, b in pairwise(place.statement) if b is place.frame.opener), None)
    if opener == "[" and (before is None or before.type not in ENDS_AN_EXPRESSION):
        return place.error("a list has no names", label="`:` here", help="write a record, `{name: value}`")
    if opener == "[":
        line = place.source.line(place.span.line).strip()
        new = re.sub(r"([\w.]+)\[(\w*) *: *(\w*)\]", _as_list, line)
        help = f"write `{new}`" if new != line else "write `[xs[i] for i in 1..3]`"
        return place.error("there are no slices", help=help)
    if opener == "{{":
        help = "write `{ {` with a space for a set of sets or records"
        return place.error("`{{` opens a query", label="a query has no `:`", help=help)
    if opener == "(" and first is not None and first.type == "_DEF":
        help = place.rewritten(r"(\w+) *: *\w+(?=[,)])", r"\1") or "write `def f(x)`"
        return place.error("parameters have no types", help=help)
    if opener == "(":
        line, at = place.source.line(place.span.line), place.span.column - 1
        help = messages.as_line(f"{line[:at].rstrip()} ={line[at + 1 :]}".strip()) if len(place.frames) == 2 else ""
        return place.error("an argument is named with `=`", help=help or "write `f(name = value)`")
    return None


def spend_after_sum(place: messages.ErrorPlace) -> Diagnostic | None:
    """`a + f(x) with epsilon 1`."""
    if place.type != "_WITH":
        return None
    return place.error(
        "`with epsilon` goes with one call or one query",
        label="it is not clear how far it reaches back",
        help="put parentheses round what it pays for: `a + (f(x) with epsilon 0.1)`",
    )


def loose_select(place: messages.ErrorPlace) -> Diagnostic | None:
    """A select inside an expression of a query, without parentheses."""
    if place.type != "_SELECT":
        return None
    if not place.in_query:
        if place.previous == ".":
            return place.error("a table has no methods: it is measured in a query", help="write `{{ select … }}`")
        help = "write `{{ select … from … }}`"
        return place.error("a `select` stands outside a query", label="not in `{{ }}`", help=help)
    return place.error("a `select` inside an expression needs parentheses", help="write `f(select … from …)`")


def lonely_else(place: messages.ErrorPlace) -> Diagnostic | None:
    """`else` where no `if` waits for it."""
    if place.type != "_ELSE" or (place.previous is not None and place.frame.kind != "block"):
        return None
    if place.previous is None or (place.previous.end_line or 0) < place.span.line:
        return place.error("an `else` without its `if`", help="it stands right after the block of an `if`")
    return None


def missing_block(place: messages.ErrorPlace) -> Diagnostic | None:
    """`if x > 1` and nothing behind it."""
    first = place.first
    headed = first is not None and first.type in ("_IF", "_FOR", "_DEF", "_WITH", "_RUN", "_ELSE")
    if place.text or not headed or place.frame.kind != "block" or first is None:
        return None
    if place.previous is None or place.previous.type not in ENDS_AN_EXPRESSION:
        return None
    message = f"the block of this `{first.lower()}` is missing"
    help = messages.as_line(place.source.line(place.span.line).strip() + ":") + " and an indented block"
    return place.error(message, label="expected `:` or `{`", help=help)


_DECLARATION = "`private NAME = table(…) described by {…} protecting rows budget epsilon 1`"


def unknown_statement(place: messages.ErrorPlace) -> Diagnostic | None:
    """Two words side by side at the start of a line: `relase x`."""
    first = place.first
    if first is None or len(place.statement) != 1 or first.type != "NAME" or place.frame.kind != "block":
        return None
    if place.type not in ("NAME", "NUMBER", "DATE", "STRING", "CONST") and not place.text[:1].isalpha():
        return None
    forms = {"release": "release NAME", "use": "use MODULE", "param": "param NAME = default"}
    if first in STATEMENT_WORDS:
        help = f"write `{forms.get(first, str(first))}`"
        if first == "private":
            help = f"write {_DECLARATION}"
        if first == "use" and place.type == "STRING":
            help = "`use` brings a module; a file is opened by `table(…)` where data are declared"
        return place.error(f"this `{first}` statement does not parse", help=help)
    help = did_you_mean(first, STATEMENT_WORDS, 0.75) or f"a call needs parentheses: `{first}(…)`"
    if first in ("budget", "protecting", "described"):
        help = f"it stands where data are declared, {_DECLARATION}"
    span = messages.token_span(first, place.source)
    return place.error(f"`{first}` opens no statement", span=span, label="unknown here", help=help)


def reserved(place: messages.ErrorPlace) -> Diagnostic | None:
    """A word of the language used as a name, or before what only a name stands before."""
    previous, word = place.previous, place.text
    after = previous is not None and previous.type in RESERVED and place.type in ("RPAR", "COMMA", "COLON", "_RBRACE")
    if after and previous is not None:
        word = str(previous)
    elif place.type not in RESERVED or ("NAME" not in place.expected and place.expected):
        return None
    span = messages.token_span(previous, place.source) if after and previous is not None else None
    help = f"names need another word; a column stands in backquotes, `{word}`"
    return place.error(f"`{word}` is a word of the language and cannot stand here", span=span, label="not a name",
                       help=help)  # fmt: skip


def unfilled(place: messages.ErrorPlace) -> Diagnostic | None:
    """A `?` of a drafted description: which columns it stands for."""
    previous = place.previous
    if place.text != "?" or previous is None:
        return None
    if previous.type in ("_PROTECTING", "_BUDGET"):
        help = "`rows`, or `person up to 5 rows`" if previous.type == "_PROTECTING" else "`epsilon 1`"
        return place.error(f"`{previous} ?` is to be filled in", label="what is not known", help=f"write {help}")
    if previous.type not in ("COLON", "_DOTS") or place.frame.opener is None:
        return None
    text = place.source.text[place.frame.opener.end_pos or 0 :]
    names = [name.strip('"') for name in _UNFILLED.findall(re.sub(r"#[^\n]*", "", text).partition("protecting")[0])]
    names_text = ", ".join(f"`{name}`" for name in names[:_MOST_NAMED])
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return place.error(
        f"the description is to be filled in: {names_text}{more}", label="what is not known",
        help="a range `0..99`, categories `{\"a\", \"b\"}`, or `text`, `integer`, `real`",
    )  # fmt: skip


COMMON_MISTAKES = (
    open_bracket, missing_comma, foreign_letter, formatted_text, clause_of_a_select, misspelt_clause,
    messages.of_a_source, equal_sign, number_with_commas,
    chained, colon, spend_after_sum, loose_select, lonely_else,
    missing_block, unknown_statement, reserved,
)  # fmt: skip


def explain(place: messages.ErrorPlace) -> Diagnostic:
    """The diagnostic of a place where the parser stopped."""
    for look in (unfilled, messages.by_phrase, messages.by_line, messages.by_sign, messages.by_word, *COMMON_MISTAKES):
        diagnostic = look(place)
        if diagnostic is not None:
            return diagnostic
    return messages.in_general(place)


def after_parsing(program: n.Program, *, interactive: bool) -> None:
    """Refuses a statement that does nothing (unless `interactive`), a stray `return`, and what SQL alone means."""
    of_functions: set[int] = set()  # the nodes in functions
    for node in every(program):
        if type(node) not in _MISTAKABLE:
            continue
        if isinstance(node, n.Return) and id(node) not in of_functions:
            repair = f"`release {node.value.id}`" if isinstance(node.value, n.Name) else "`release x = …`"
            raise refuse("SyntaxError", "a `return` outside a function", node.span, help=f"write {repair}")
        if isinstance(node, n.Bare) and not (interactive and id(node) not in of_functions):
            _does_something(node.value, id(node) in of_functions)
        elif isinstance(node, n.Def | n.Part) and id(node) not in of_functions:
            of_functions |= set(map(id, every(node)))
        _means_what_it_says(node)


_MISTAKABLE = frozenset({n.Return, n.Bare, n.Def, n.Part, n.Range, n.Assert, n.Assign, n.Column, n.Binary, n.GroupKey})
"""The forms that may be a mistake although they parse."""
_TAKES = {"Feature": 1, "Option": 1, "Utility": 2}
_A = {"Feature": "a Feature", "Option": "an Option", "Utility": "a Utility"}


def _means_what_it_says(node: n.Node) -> None:
    """Refuses what is well formed, and means something else in Python or in SQL."""
    match node:
        case n.Assert(value=n.ListOf(items=[_, _] as items, span=span)):
            help = f"write `assert {', '.join(item.span.text for item in items)}`"
            raise refuse("SyntaxError", "`assert` is no function: these brackets make a list", span, help=help)
        case n.Assert(message=n.Binary() | n.Logic() as other) if getattr(other, "op", "") not in ("+", "||"):
            help = f"write `assert {node.value.span.text} and {other.span.text}`"
            raise refuse("SyntaxError", "what stands after the comma of `assert` is its message", other.span, help=help)
        case n.Part(kind=kind, body=body, span=span) if not any(map(returns_inside, body.body)):
            last = body.body[-1].span.text if body.body and isinstance(body.body[-1], n.Bare) else "print("
            last = "…" if last.startswith("print(") else last
            raise refuse("SyntaxError", f"this {kind} returns nothing", span, help=f"write `return {last}`")
        case n.Part(kind=kind, params=params, span=span) if sum(one.default is None for one in params) != _TAKES[kind]:
            what = ("the data alone", "the data and the answers")[_TAKES[kind] - 1]
            form = f"`{kind} ({', '.join(('data', 'answers')[: _TAKES[kind]])})`"
            help = f"it begins {form}; names above it are seen inside" + ", as is `epsilon`" * (kind == "Option")
            raise refuse("TypeError", f"{_A[kind]} takes {what}", span, help=help)
        case n.Range(low=n.String(), high=n.String()):
            pass  # which may be dates
        case n.Range(low=n.String() as text) | n.Range(high=n.String() as text):
            raise refuse("SyntaxError", "a range is of numbers", text.span, help="texts are joined by `+`")
        case n.Def() | n.Part():
            _appends_to_its_own(node)
        case n.Column(value=n.Name(id=name, span=span)) if name.lower() == "distinct":
            word = messages.entries()["after"]["distinct"]
            help = word["help"].replace("city", node.name) if node.name else word["help"]
            raise refuse("SyntaxError", word["message"], span, help=help)
        case n.Binary(op="in" | "not in", right=n.Select(span=span)):
            raise refuse("SyntaxError", "a value is looked up in a list, and a select gives none", span, help=IN_LIST)
        case n.GroupKey(value=n.Call(function=n.Name(id=name), span=span)) if name in ("avg", "count", "sum"):
            message = f"`{span.text}` is measured of groups, and so none of their keys"
            raise refuse("TypeError", message, span, help="write the column by which rows are grouped")
        case n.Assign(value=n.String(value=text, span=span)) if re.match(r"(?is)\s*select\s.*\sfrom\s", text):
            help = f"write `{{{{ {text.strip().rstrip(';')} }}}}`"
            raise refuse("SyntaxError", "a query in quotes is a text, and asks nothing", span, help=help)
        case n.GroupKey(value=n.Call() as call):
            _no_rollup(call)


def _appends_to_its_own(function: n.Def | n.Part) -> None:
    """Refuses `xs.append(x)` in a function that has no `xs`: only there would the list be longer."""
    own = {param.name for param in function.params}
    appended: list[n.Assign] = []
    waiting: list[n.Node] = [function.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, n.Assign) and node.span == node.value.span and isinstance(node.value, n.Call):
            appended.append(node)
        elif isinstance(node, n.Assign):
            own.add(node.name)
        elif isinstance(node, n.For):
            own.update(node.names)
        waiting.extend(child for child in children(node) if not isinstance(child, n.Def | n.Part))
    for node in appended:
        if node.name not in own:
            message = f"`{node.name}` is not of this function, and values of outside do not change"
            help = f"return the longer list, `return append({node.name}, x)`, and give it the name outside"
            raise refuse("SyntaxError", message, node.span, help=help)


def _no_rollup(call: n.Call) -> None:
    """`group by rollup (a, b)`."""
    if isinstance(call.function, n.Name) and call.function.id.lower() in ("rollup", "cube") and len(call.args) > 1:
        word = messages.entries()["word"]["sets"]
        raise refuse("SyntaxError", word["message"], call.span, help=word["help"])


def _does_something(value: n.Expr, in_function: bool) -> None:
    while isinstance(value, n.Spending):
        value = value.value
    if isinstance(value, n.Call | n.Query):
        return
    if isinstance(value, n.Variable):
        word = messages.entries()["sign"]["@"]
        raise refuse("SyntaxError", word["message"], value.span, help=word["help"])
    entry = messages.entries()["alone"].get(value.id) if isinstance(value, n.Name) else None
    if entry is not None:
        word = entry
        raise refuse("SyntaxError", word["message"], value.span, help=word["help"])
    help = f"give it a name, `x = …`, or show it: `print({value.span.text})`"
    if in_function:
        help = f"write `return {value.span.text}`, or give it a name"
    if isinstance(value, n.Index) and not any(isinstance(arg, n.Number) for arg in value.args):
        query = f"{{{{ select count(*) from {value.value.span.text} with epsilon 0.1 }}}}"
        help += f"; rows are measured in a query: `{query}`"
    if isinstance(value, n.Binary) and value.op == "<" and re.fullmatch(r"\w+ *<- *.+", value.span.text):
        help = "write `" + re.sub(r" *<- *", " = ", value.span.text, count=1) + "`"
        raise refuse("SyntaxError", "a value is given by `=`, and `<-` compares with a negative", value.span, help=help)
    if isinstance(value, n.Binary) and value.op == "==":
        help = "`=` gives a name its value; `==` only compares"
    if isinstance(value, n.Comprehension):
        help = "write a `for` loop"
    raise refuse("SyntaxError", "this statement does nothing", value.span, label="its value is lost", help=help)
