"""What is said of a text that does not parse: kind, place, and a way out."""

from __future__ import annotations

import pytest

from jostle.diagnostics import Diagnostic, Refusal
from jostle.source import Source
from jostle.syntax import incomplete, parse


def refused(text: str) -> Diagnostic:
    with pytest.raises(Refusal) as caught:
        parse(Source("test.jst", text))
    return caught.value.first


# text, (line, column), part of the message, part of the help
COMMON_MISTAKES = [
    ("if x = 1:\n    f()", (1, 6), "does not compare", "if x == 1:"),
    ("assert x = 2", (1, 10), "does not compare", "assert x == 2"),
    ("x = 2 ** 3", (1, 7), "`**`", "x = 2^3"),
    ("if x:\n    f()\nelif y:\n    g()", (3, 1), "`elif`", "else if y:"),
    ("while x > 1:\n    f()", (1, 1), "`while`", "for i in 1..n"),
    ("x += 1", (1, 3), "`+=`", "x = x +"),
    ("y = 1 < x < 5", (1, 11), "do not chain", "1 < x and x < 5"),
    ("y = xs[1:3]", (1, 9), "no slices", "for i in"),
    ("x[0] = 1", (1, 6), "element", "1 if i == 0 else v"),
    ("r.a = 1", (1, 5), "field", "new record"),
    ("f(x) = 2", (1, 6), "call cannot be given", "def"),
    ("a, b = c", (1, 2), "one name", "line for each"),
    (
        "g = {{ select sum(a) from t having n > 3 groupby a }}",
        (1, 42),
        "`groupby` stands before `having`",
        "… groupby … up to … having …",
    ),
    ("g = {{ select count(*) from t groupby a where a = 1 }}", (1, 41), "`where` stands before `groupby`", "where"),
    ("g = {{ select count(*) from t whre a > 3 }}", (1, 31), "begins no clause", "`where`"),
    ("g = {{ select count(*) from t -- rows\n}}", (1, 31), "start of a line", "`# …`"),
    ("g = {{ select count(*) from t where `a b = 1 }}", (1, 37), "not closed", "`` `City Name` ``"),
    ("def ceiling(x):\n    return x", (1, 5), "the word of SQL for `ceil`", "another name"),
    ("NVL = lambda x: x", (1, 1), "the word of SQL for `coalesce`", "another name"),
    ("x = 7 // 2", (1, 7), "`//`", "floor"),
    ("x = select count(*) from t", (1, 5), "outside a query", "{{"),
    ("x = f(select a from b)", (1, 7), "outside a query", "{{"),
    ("x = {{ 1 + 2 }}", (1, 5), "without a `select`", "select"),
    ("x = {{ }}", (1, 5), "without a `select`", "select"),
    ("x = {{a: 1}, {a: 2}}", (1, 8), "opens a query", "`{ {`"),
    ("x = a + f(x) with epsilon 1", (1, 14), "one call or one query", "parentheses"),
    ("x = (1 + 2\ny = 3", (1, 5), "`(` is not closed", "before `y` in line 2"),
    ("x = [1,\n  2", (1, 5), "`[` is not closed", "`]`"),
    ("x = [1, 2)", (1, 5), "`[` is not closed", "`]`"),
    ("x = {{ select count(*) from t }", (1, 31), "ends with `}}`", "`}}`"),
    ("x = 1)", (1, 6), "closes nothing", "remove"),
    ("relase x", (1, 1), "opens no statement", "`release`"),
    ("privat p = table(1)", (1, 1), "opens no statement", "`private`"),
    ("print x", (1, 1), "`print` is a function", "print(x)"),
    ("if x > 1\n    f()", (1, 1), "block of this `if`", "if x > 1:"),
    ("else:\n    f()", (1, 1), "without its `if`", "right after"),
    ("x = 1\n    y = 2", (2, 5), "unexpected indentation", "next line"),
    ("if x:\ny = 2", (2, 1), "indented block", "four spaces"),
    ("\tx = 1", (1, 1), "tabs", "spaces"),
    ("if x:\n\tf()", (2, 1), "tabs", "spaces"),
    ("x = 1; y = 2", (1, 6), "semicolons", "`x = 1`"),
    ('x = t explode split(c, ";") as a', (1, 7), "`explode` cannot stand here", "operator"),
    ('x = "abc', (1, 5), "string is not closed", "close it"),
    ("x = a && b", (1, 7), "`&&`", "a and b"),
    ("x = !a", (1, 5), "`!`", "not a"),
    ("y = a is 5", (1, 10), "`5` cannot stand here", "`null`"),
    ("y = a is true", (1, 10), "missing value", "`==`"),
    ("import numpy", (1, 1), "`import`", "`use"),
    ("def f(x: int): return x", (1, 8), "no types", "def f(x)"),
    ("x = f(a: 1)", (1, 8), "named with `=`", "x = f(a = 1)"),
    ("x = {a = 1}", (1, 8), "written with `:`", "{a: 1}"),
    ("x = {{ select distinct a from t }}", (1, 15), "`distinct`", "group by"),
    ("x + 1", (1, 1), "does nothing", "print"),
    ("x == 1", (1, 1), "does nothing", "`=` gives"),
    ("break", (1, 1), "`break`", "return"),
    ("return 3", (1, 1), "outside a function", "release"),
    ("with x { f() }", (1, 1), "names its unit", "with epsilon"),
    ("f(x = 1, 2)", (1, 10), "without a name after", "first"),
    ("private p = table('a') protecting person, public size budget epsilon 1", (1, 24), "number of rows", "up to"),
    ("in = 3", (1, 1), "word of the language", ""),
    ("x = é", (1, 5), "cannot be part", "a–z"),
    ("x = 3 z", (1, 7), "cannot stand", "operator"),
    ("x = ", (1, 4), "too early", "expression"),
    ("def f(a, a): return 1", (1, 10), "named twice", ""),
    ("def f(a = 1, b): return 1", (1, 14), "no default", "last"),
]


@pytest.mark.parametrize(
    ("text", "place", "message", "help"), COMMON_MISTAKES, ids=[slip[0][:30] for slip in COMMON_MISTAKES]
)
def test_slips(text: str, place: tuple[int, int], message: str, help: str) -> None:
    said = refused(text)
    assert said.kind == "SyntaxError"
    assert message in said.message
    assert help in said.help
    assert said.span is not None and (said.span.line, said.span.column) == place


def test_brackets_name_where_they_were_opened() -> None:
    said = refused("x = {{ select count(*) from t\n      where a > 1 }\n")
    assert [(note.span.line, note.span.column) for note in said.notes] == [(1, 5)]


@pytest.mark.parametrize("bracket", ["(", "[", "{ ", "{ {a:", "f(", "{{ ("])
@pytest.mark.parametrize("times", [250, 10_000])
def test_nested_brackets_are_one_diagnostic(bracket: str, times: int) -> None:
    assert refused("x = " + bracket * times).kind == "RecursionLimit"


def test_two_hundred_brackets_are_fine() -> None:
    parse(Source("test.jst", "x = " + "(" * 200 + "1" + ")" * 200))
    assert refused("x = " + "(" * 201 + "1" + ")" * 201).kind == "RecursionLimit"


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "+".join(["1"] * 5_000),
        "x = " + "not " * 5_000 + "y",
        "x = f" + "()" * 5_000,
        "x = a" + ".b" * 5_000,
        "x = " + "- " * 5_000 + "1",
        "x = " + "a if b else " * 5_000 + "c",
        "x = " + "lambda: " * 5_000 + "c",
        "if a { f() }\n" + "else if a { f() }\n" * 5_000,
    ],
    ids=["sum", "not", "calls", "fields", "minus", "conditional", "lambda", "else if"],
)
def test_deep_trees_without_brackets(text: str) -> None:
    assert refused(text).kind == "RecursionLimit"


def test_deep_blocks() -> None:
    text = "\n".join(" " * i + "if a:" for i in range(300)) + "\n" + " " * 300 + "f()"
    assert refused(text).kind == "RecursionLimit"


def test_a_long_flat_program_is_fine() -> None:
    program = parse(Source("test.jst", "x = f(1, 2)\n" * 2_000))
    assert len(program.body) == 2_000


@pytest.mark.parametrize("text", ["x", "x + 1", "a.b", "[1]"])
def test_a_session_may_ask_for_a_value(text: str) -> None:
    assert len(parse(Source("entry", text), interactive=True).body) == 1
    assert "does nothing" in refused(text).message


@pytest.mark.parametrize(
    "text",
    [
        "x = 1 +", "x = (1", "if x:", "if x:\n", "if x:\n    f(x)", "def f(x) {", "x = {{ select count(*)",
        "x = MkChoiceMaker among {A}", 'private p = table("x")', "if x: f()\nelse:", "x = y if z", "assert", "for i in",
        "with epsilon 1", "f(a,\n  b,", "r = {a: 1,",
    ],
)  # fmt: skip
def test_unfinished(text: str) -> None:
    assert incomplete(text)


@pytest.mark.parametrize(
    "text",
    [
        "x = 1", "if x:\n    f(x)\n", 'private p = table("x")\n', "x = ) +", 'x = "abc', "for i in 1..3: f(i)", "",
        "# c", "x = {{ select count(*) from t }}", "elif", "x + 1", "while x:", "x = " + "(" * 300,
    ],
)  # fmt: skip
def test_whole_or_wrong(text: str) -> None:
    assert not incomplete(text)
