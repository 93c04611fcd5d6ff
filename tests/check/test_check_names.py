"""Unknown names and modules: where they are errors, and where a name may yet turn out to be known."""

from __future__ import annotations

import pytest

from jostle.check import check
from jostle.diagnostics import Diagnostic, refuse
from jostle.source import Source
from jostle.syntax import nodes, parse
from jostle.tools.session import Session

BUILTINS = ("print", "len", "table", "histogram", "partition", "pick", "derive", "sqrt", "counts", "where")
PEOPLE = 'private people = table("p.csv") described by {age: 0..99, sex: {"f", "m"}} protecting rows budget epsilon 1\n'


def load(path: tuple[str, ...]) -> nodes.Program | None:
    match path:
        case ("shapes",):
            return parse(Source("shapes", "use more\nside = 2\ndef area(x): return x\nexternal fast(x)"))
        case ("more",):
            return parse(Source("more", "use shapes\nthing = 3"))
        case ("broken",):
            raise refuse("SyntaxError", "the module does not parse")
    return None


def said(text: str, predefined: tuple[str, ...] = ()) -> list[Diagnostic]:
    program = parse(Source("test.jst", text), interactive=True)
    return check(program, builtins=BUILTINS, load_module=load, modules=("shapes", "more"), predefined=predefined)


def told(text: str) -> list[Diagnostic]:
    """What a session says before it runs anything: of the names in rows the walk before a run knows more."""
    return said(text) or Session().check(Source("test.jst", text))


def names(text: str) -> list[tuple[str, int]]:
    return [(d.message.split("`")[1], d.span.line) for d in said(text) if d.kind == "NameError" and d.span]


UNKNOWN = [
    ("total = 1\nprint(totl)", [("totl", 2)]),
    ("def f(x):\n    return y", [("y", 2)]),
    ("f = lambda x: z", [("z", 1)]),
    ("x = [a for b in [1]]", [("a", 1)]),
    ("x = [b for b in [1]]\ny = b", [("b", 2)]),
    ("print(x)\nx = 1", [("x", 1)]),
    ("x = x + 1", [("x", 1)]),
    ("release nothing", [("nothing", 1)]),
    ("print(y)\nrelease y = 1", [("y", 1)]),
    ("F = Feature (data) { return dta }", [("dta", 1)]),
    ("o = Option (d) { return 1 } predict (F) { return d }", [("d", 1)]),
    ("x = {{ select count(*) from nothing }}", [("nothing", 1)]),
    ("x = {{ select cuont(*) from table('a') }}", [("cuont", 1)]),
    ("x = {{ select count(*) from table('a') with epsilon eps }}", [("eps", 1)]),
    ("x = max over a in bs of a", [("bs", 1)]),
    ("a = unknown1\nb = unknown2", [("unknown1", 1), ("unknown2", 2)]),
    (PEOPLE + "n = {{ select count(agee) from people with epsilon 0.1 }}", [("agee", 2)]),
    (PEOPLE + "def f(): return {{ select count(agee) from people with epsilon 0.1 }}", [("agee", 2)]),
    (PEOPLE + "p = people\nn = {{ select count(*) from p where hight > 1 with epsilon 0.1 }}", [("hight", 3)]),
    (PEOPLE + "q = where(people, age > 3)\nn = {{ select count(*) from q groupby sax with epsilon 1 }}", [("sax", 3)]),
    (
        PEOPLE + "for k, part in partition(people, sex): n = {{ select count(b) from part with epsilon 0.1 }}",
        [("b", 2)],
    ),
    (PEOPLE + "h = histogram(people, x = ag)", [("ag", 2)]),
    (PEOPLE + "n = {{ select count(*), count(age) from people with epsilon 0.1 }}", [("count", 2)]),
    ("t = table('a') described by {a: 0..1}\nn = {{ select sum(b) from t }}", [("b", 2)]),
    ("use shapes\nx = are(2)", [("are", 2)]),
]


@pytest.mark.parametrize(("text", "wanted"), UNKNOWN, ids=[case[0][-40:] for case in UNKNOWN])
def test_unknown(text: str, wanted: list[tuple[str, int]]) -> None:
    found = [d for d in told(text) if d.kind == "NameError" and d.span is not None]
    assert [d.span.line for d in found if d.span] == [line for _, line in wanted]
    for diagnostic, (name, _) in zip(found, wanted, strict=True):
        assert f"`{name}`" in diagnostic.message


KNOWN = [
    "def f(): return g()\ndef g(): return 1\nx = f()",
    "def fact(n): return 1 if n < 2 else n * fact(n - 1)",
    "for i in 1..3 {\n    if i > 1 { print(last) }\n    last = i\n}",
    "if 1 < 2 { y = 1 } else { y = 2 }\nprint(y)",
    "def f(x):\n    def g(): return x + y\n    y = 1\n    return g",
    "f = lambda a, b: a + b\nx = f(1, 2)",
    "x = [a + b for a, b in [[1, 2]] if a > 0]",
    "x = epsilon",
    "def f(epsilon): return epsilon",
    "param k = 2\nprint(k)",
    "t = table('a')\nx = {{ select sum(anything) from t where other > 1 groupby more }}",
    "def f(t): return {{ select sum(anything) from t with epsilon 0.1 }}",
    "t = table('a')\nh = histogram(t, x = col / 10)\np = pick(t, a, b)\nq = where(t, col > 2)\nr = t[a = 1]",
    "use shapes\nx = area(side) + fast(1)\ny = shapes.area(2)",
    "use more\nx = thing",
    "c = 'sex'\n" + PEOPLE + "n = {{ select count(*) from people groupby c with epsilon 0.1 }}",
    PEOPLE + "n = {{ stddev(select count(*) from people groupby sex with epsilon 0.1) }}",
    PEOPLE + "n = {{ select count(*) as a, count(age) as b from people with epsilon 0.1 }}",
    "t = table('a') described by {a: text, b: integer, c: real}",
    "x = {{ select count(*) from table('a') with epsilon 0.1 via laplace }}",
]


@pytest.mark.parametrize("text", KNOWN, ids=[text[-40:] for text in KNOWN])
def test_known(text: str) -> None:
    assert said(text) == []


def test_did_you_mean() -> None:
    (found,) = said("total = 1\nprint(totl)")
    assert found.help == "did you mean `total`?" and found.label == "unknown name"
    (found,) = said("x = null")
    assert "`none`" in found.help
    (found,) = said("print(x)\nx = 1")
    assert "further down" in found.help
    (found,) = told(PEOPLE + "n = {{ select count(agee) from people with epsilon 0.1 }}")
    assert found.help == "write `n = {{ select count(age) from people with epsilon 0.1 }}`"


@pytest.mark.parametrize("argument", ["age", "x = age", "[age]", "old", "x = [1, old]"])
def test_a_column_for_a_function_of_the_library(argument: str) -> None:
    """Described or derived, alone, by keyword or in a list: it is named by a text there."""
    derived = 'q = derive(people, old = age > 60, f = sex == "f")\n'
    (found,) = said(f"use shapes\n{PEOPLE}{derived}y = area({argument})")
    name = "old" if "old" in argument else "age"
    assert found.help == f'a column is named by a text: write `"{name}"`'


def test_names_of_a_session_are_known() -> None:
    assert said("y = x + 1", predefined=("x",)) == []


def test_unknown_modules() -> None:
    (found,) = said("use shape\nx = area(2)")
    assert found.kind == "ImportError" and found.help == "did you mean `shapes`?"
    (found,) = said("use broken\nx = area(2)")
    assert found.kind == "SyntaxError"


def test_external_is_for_the_library() -> None:
    program = parse(Source("test.jst", "external f(x)\ny = f(2)"))
    (found,) = check(program, builtins=BUILTINS, load_module=load)
    assert found.kind == "SyntaxError" and "standard library" in found.message
    assert check(program, builtins=BUILTINS, load_module=load, library=True) == []


def test_everything_at_once_in_source_order() -> None:
    text = PEOPLE + "print(people)\nx = unknown\nn = {{ select count(*) from people }}\nuse nothing_here\nlen(people)"
    assert [d.kind for d in Session().check(Source("test.jst", text))] == [
        "PrivateValue",
        "NoEpsilon",
        "ImportError",
        "PrivateValue",
    ]
    text = text.replace("use nothing_here\n", "")
    assert [d.kind for d in Session().check(Source("test.jst", text))] == [
        "PrivateValue",
        "NameError",
        "NoEpsilon",
        "PrivateValue",
    ]
