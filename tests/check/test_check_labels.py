"""Labels, amounts, keys, bounds and declarations: what is caught, where, and what must be let through."""

from __future__ import annotations

import time

import pytest

from jostle.diagnostics import Diagnostic
from jostle.language.builtins import BUILTINS
from jostle.language.facts import Builtin
from jostle.source import Source
from jostle.tools.session import Session

PEOPLE = (
    'private people = table("p.csv") described by {age: 0..99, gain: real, city: text, sex: {"f", "m"}} '
    "protecting rows budget epsilon 1\n"
)


def said(text: str, private: str = PEOPLE) -> list[Diagnostic]:
    """What a session says before it runs anything."""
    return Session().check(Source("test.jst", private + text))


# what is wrong, its kind, its line (the declaration is line 1)
WRONG = [
    ("p = people\nq = p\nprint(q)", "PrivateValue", 4),
    ("print([1, {a: people}])", "PrivateValue", 2),
    ("release x = histogram(people, x = age)", "PrivateValue", 2),
    ("x = people < 3", "PrivateValue", 2),
    ("x = 1 if people else 2", "PrivateValue", 2),
    ("x = not people", "PrivateValue", 2),
    ("assert people", "PrivateValue", 2),
    ("x = [r for r in people]", "PrivateValue", 2),
    ("x = max over r in people of 1", "PrivateValue", 2),
    ("x = sum(people)", "PrivateValue", 2),
    ("x = people[0]", "PrivateValue", 2),
    ("x = len(people[sex = 'f'])", "PrivateValue", 2),
    ("for k, part in partition(people, sex): print(part)", "PrivateValue", 2),
    ("x = [print(part) for k, part in partition(people, sex)]", "PrivateValue", 2),
    ("def f(): print(people)", "PrivateValue", 2),
    ("def show(t) {\n    print(t)\n}\nshow(people)", "PrivateValue", 3),
    ("def id(t): return t\ndef id2(t): return id(t)\nx = len(id2(people))", "PrivateValue", 4),
    (
        "def pick(t, b):\n    if b:\n        return t\n    else:\n        return t\nprint(pick(people, true))",
        "PrivateValue",
        7,
    ),
    ("xs = append([], people)\nprint(xs)", "PrivateValue", 3),
    ("x = {{ select age, sex from people with epsilon 0.1 }}", "PrivateValue", 2),
    ("with epsilon people { f = 1 }", "PrivateValue", 2),
    ("public = table('./p.csv')", "PrivateValue", 2),
    ("n = {{ select count(*) from people }}", "NoEpsilon", 2),
    ("if 1 < 2 { n = {{ select count(*) from people }} }", "NoEpsilon", 2),
    ("n = {{ select count(*) from people with epsilon 0 }}", "BadAmount", 2),
    ("n = {{ select count(*) from people with epsilon 0.1 - 0.1 }}", "BadAmount", 2),
    ("n = {{ select count(*) from people with epsilon true }}", "BadAmount", 2),
    ("n = {{ select count(*) from people with epsilon 1e-300 }}", "BadAmount", 2),
    ("n = {{ select count(*) from people with epsilon 1 delta 0 }}", "BadAmount", 2),
    ("with epsilon -1 { x = 1 }", "BadAmount", 2),
    ("x = left(people) with epsilon 1e400", "BadAmount", 2),
    ("n = {{ select avg(gain) from people with epsilon 1 }}", "UnboundedSum", 2),
    ("n = {{ select 2 * stddev(gain) as s from people where age > 3 with epsilon 1 }}", "UnboundedSum", 2),
    ("n = {{ select count(*) from people groupby city with epsilon 1 }}", "OpenKeys", 2),
    ("with epsilon 1 {\n    n = {{ select count(*) from people groupby gain }}\n}", "OpenKeys", 3),
    ("n = {{ select count(*) from people groupby lower(city) with epsilon 1 }}", "OpenKeys", 2),
    ("x = derive(people, c = trim(city))\nn = {{ select count(*) from x groupby c with epsilon 1 }}", "OpenKeys", 3),
    ("n = {{ select count(*) from people groupby city with epsilon 1 delta 1e-6 }}", "OpenKeys", 2),
    ("with epsilon 1 delta 1e-6 { n = {{ select count(*) from people groupby city }} }", "OpenKeys", 2),
    ("def f(): return {{ select count(*) from people groupby city }}", "OpenKeys", 2),
    ("inf = 1e400\nn = {{ select count(*) from people with epsilon inf - inf }}", "BadAmount", 3),
    ("people2 = 3\nif 1 < 2 { people2 = people }\nprint(people2)", "PrivateValue", 4),
    ("x = [1]\nif 1 < 2 { x = [people] }\nprint(x)", "PrivateValue", 4),
    ("n = {{ select count(*) from people with rho 1 }}", "TypeError", 2),
    (
        "private x = table('q') described by {a: 0..9} protecting rows budget rho 1\n"
        "n = {{ select count(*) from x with epsilon 1 }}",
        "TypeError",
        3,
    ),
    ("n = {{ select sex, count(*) from people groupby sex in {'f'} with epsilon 1 }}", "TypeError", 2),
    ("def f(a, b = 2): return a\nx = f()", "TypeError", 3),
    ("def f(a, b = 2): return a\nx = f(1, 2, 3)", "TypeError", 3),
    ("def f(a, b = 2): return a\nx = f(1, c = 2)", "TypeError", 3),
    ("def f(a, b = 2): return a\nx = f(1, a = 2)", "TypeError", 3),
    ("f = lambda a: a\nx = f(1, 2)", "TypeError", 3),
    ("def f(a): return a\ndef g(): return f(1, 2)", "TypeError", 3),
    ("x = clamp(1)", "TypeError", 2),
    ("x = round(1, 2, 3)", "TypeError", 2),
    ("x = laplace(histogram(people, sex), epsilon = 0.1, rho = 1)", "TypeError", 2),
    ("x = sorted([1], value = 2)", "TypeError", 2),
    ("print([people] + [1])", "PrivateValue", 2),
    ("x = partition(people, sex)[0][1]\nprint(x)", "PrivateValue", 3),
    ("x = sum([people])", "PrivateValue", 2),
    ("x = pick(people, age)\nn = {{ select avg(gain) from x with epsilon 0.1 }}", "NameError", 3),
    ("d = {age: 0..9, city: text}\nx = table('q') described by d\nn = {{ select sum(pay) from x }}", "NameError", 4),
    ("x = derive(people, g = age)\nn = {{ select count(*) from x groupby city with epsilon 1 }}", "OpenKeys", 3),
    ("x = biggest over i in [1] of i", "TypeError", 2),
    ("private again = people protecting rows budget epsilon 1", "TypeError", 2),
    ("if 1 < 2 { private x = dataset('x') }", "TypeError", 2),
    ("private people = dataset('x')", "TypeError", 2),
    ("private x = table('x') described by {a: 0..1} protecting rows", "DataError", 2),
    ("private x = counts([1]) budget epsilon 1", "DataError", 2),
    ("private x = table('p.csv') described by {a: 0..1} protecting a up to 2 rows budget epsilon 1", "DataError", 2),
    ("private x = table('p.csv') described by {a: 0..1} protecting rows budget rho 1", "DataError", 2),
    ("private x = counts([1]) protecting rows budget epsilon 0", "BadAmount", 2),
    ("private x = dataset('x') budget epsilon 1", "DataError", 2),
    ("private x = dataset('x')\n    protecting who up to 2 rows weighted", "DataError", 3),
    ("private x = dataset('x') described by {a: 0..1}", "DataError", 2),
    ("private x = counts([1]) protecting who up to 2 rows budget epsilon 1", "DataError", 2),
]


@pytest.mark.parametrize(("text", "kind", "line"), WRONG, ids=[case[0][-45:] for case in WRONG])
def test_wrong(text: str, kind: str, line: int) -> None:
    (found,) = said(text)
    assert found.span is not None
    assert (found.kind, found.span.line) == (kind, line)
    assert found.message


FINE = [
    "x = {{ select count(*) from people with epsilon 0.1 }}\nprint(x)\nrelease x",
    "d = {database: people}\nprint(len(d))\nx = [1 for k in [d]]",
    "x = partition(people, sex)\nfor key, part in x: print(key)",
    "h = histogram(people, x = age)\nprint(h.x_range)",
    "print(spent(people), left(people))",
    "n = {{ select count(*) from people with epsilon 0.1 }}\np = 3\nif n < 2 { p = people }\nprint(p)",
    "x = people\nx = 4\nprint(x)",
    "x = people\nfor i in 1..2 {\n    x = 3\n}\nprint(x)",
    "def f(t, show):\n    if show:\n        print(t)\n    return 1\nx = f(people, false)",
    "def f(t, stop):\n    if stop:\n        return 1\n    print(t)\n    return 2\nx = f(people, true)",
    "def f(t): return {{ select count(*) from t with epsilon 0.1 }}\nprint(f(people))",
    "def f(t): return {{ select count(*) from t }}\nx = f(people) with epsilon 0.5",
    "with epsilon 0.5 { n = {{ select count(*) from people }} }",
    "n = {{ select count(*) from people }} with epsilon 0.5",
    "def f(): return {{ select count(*) from people }}",
    "n = {{ select sum(clamp(gain, 0, 10)) from people with epsilon 1 }}",
    "n = {{ select sum(age) from people with epsilon 1 }}",
    "n = {{ select median(clamp(gain, 0, 10)) from people with epsilon 1 }}",
    "n = {{ select count(*) from people groupby city over {'a'} with epsilon 1 }}",
    "private x = table('q') described by {city: text} protecting rows budget epsilon 1, delta 1e-5\n"
    "n = {{ select count(*) from x groupby city with epsilon 1 delta 1e-6 }}",
    "n = {{ select count(*) from people groupby month(2024-01-01 + age) as m order by m with epsilon 1 }}",
    "n = {{ select count(*) from people p groupby p.sex order by sex with epsilon 1 }}",
    "x = derive(people, c = 'a' if city == 'b' else 'c')\nn = {{ select count(*) from x groupby c with epsilon 1 }}",
    "n = {{ select sex, count(*) as n from people groupby sex with epsilon 1 }}",
    "def len(x): return 3\nx = len(people)",
    "f = [lambda a, b: a]\nx = f[0](1, 2)",
    "private x = dataset('x')",
    "private x = bound('x') protecting rows budget epsilon 1",
    "private x = counts('x.npy') protecting rows budget rho 1",
    "pub = table('q.csv') described by {a: real, b: text}\nn = {{ select sum(a) as s from pub groupby b }}",
    "def loop(t): return loop(t)\nx = loop(people)",
    "xs = [people for i in 1..0 if i > 3]\nprint(xs)",
    "n = {{ select count(*) from people with epsilon 0.1 }}\nx = [1]\nif n < 2 { x = [people] }\nprint(x)",
    "x = zip()\ny = print(1, 2, 3)\nz = max([1])",
    "h = histogram(people, x = age)\nn = {{ select sum(values) from h where x < 3 with epsilon 0.1 }}",
    "n = {{ select avg(y) as m from derive(people, y = age * 2) with epsilon 0.1 }}",
    "def f(g, t): return g(g, t)\nx = f(f, people)",
]


@pytest.mark.parametrize("text", FINE, ids=[text[-45:] for text in FINE])
def test_let_through(text: str) -> None:
    assert said(text) == []


def test_open_keys_need_a_delta_of_the_amount_and_of_the_budget() -> None:
    private = PEOPLE.replace("epsilon 1", "epsilon 1, delta 1e-6")
    query = "n = {{ select count(*) from people groupby city with epsilon 1 delta 1e-7 }}"
    assert said(query, private) == []
    (found,) = said(query.replace(" delta 1e-7", ""), private)
    assert found.kind == "OpenKeys" and found.help.endswith("`with epsilon 1 delta 1e-9`")
    (found,) = said(query)
    assert found.help.endswith("or declare a delta in the budget, `budget epsilon 1, delta 1e-6`")


def test_the_path_is_named() -> None:
    (found,) = said("h = histogram(people, x = age)\ndef show(t):\n    print(t)\nshow(h)")
    assert found.message == "`t` is private and cannot be printed"
    assert found.label == "private since line 1"
    assert found.help == "measure its cells: `laplace(t) with epsilon 0.1`"
    assert [note.span.line for note in found.notes] == [1, 2, 5]  # one line, one note
    assert "passed on as `t` of `show`" in found.notes[-1].text


CHOICE = (
    "A = Option (data) { return 1 }\nf = Feature (data) { return 1 }\nu = Utility (data, answers) { return 1 }\n"
    "pub = [{database: counts([1])}]\n"
)


@pytest.mark.parametrize(
    ("choice", "kind"),
    [
        ("among {A} informed by {f} trained on pub wrt u", None),
        ("among {A} informed by {} trained on pub using tree(depth = 2) spending 0.5 wrt u", None),
        ("among {A} informed by {f} trained on pub wrt lambda d, a: 1", None),
        ("among {} informed by {f} trained on pub wrt u", "ValueError"),
        ("among {f} informed by {f} trained on pub wrt u", "TypeError"),
        ("among {A} informed by {A} trained on pub wrt u", "TypeError"),
        ("among {A} informed by {f} trained on pub wrt f", "TypeError"),
        ("among {A} informed by {f} trained on pub wrt 3", "TypeError"),
        ("among {A} informed by {f} trained on pub using 3 wrt u", "TypeError"),
        ("among {A} informed by {f} trained on pub spending 1 wrt u", "BadAmount"),
        ("among {A} informed by {f} trained on pub spending people wrt u", "PrivateValue"),
        ("among {A} informed by {f} trained on [{database: people}] wrt u", "PrivateValue"),
        ("among {A} informed by {f} trained on [{database: d} for d in [people]] wrt u", "PrivateValue"),
    ],
)
def test_choice(choice: str, kind: str | None) -> None:
    assert [d.kind for d in said(CHOICE + "c = MkChoiceMaker " + choice)] == ([kind] if kind else [])


def test_calling_a_choice() -> None:
    made = CHOICE + "c = MkChoiceMaker among {A} informed by {f} trained on pub wrt u\n"
    assert [d.kind for d in said(made + "x = c({database: people})")] == ["NoEpsilon"]
    assert said(made + "x = c({database: people}) with epsilon 1") == []
    assert said(made + "x = c(pub[0])") == []
    assert [d.kind for d in said(CHOICE + "x = u({database: people}, 1)")] == ["PrivateValue"]


@pytest.mark.parametrize(
    "text",
    [
        "x = people\n" + "x = [x]\n" * 3_000 + "y = 1",
        "x = 1\n" + "x = [x, x]\n" * 60 + "print(x)",
        "def f0(x): return x\n"
        + "".join(f"def f{i}(x): return f{i - 1}(x) + f{i - 1}(x)\n" for i in range(1, 40))
        + "y = f39(people)",
        "def f(g): return lambda x: g(g(x))\nh = lambda x: x\n" + "h = f(h)\n" * 40 + "y = h(1)",
        "y = " + "(" * 199 + "people" + ")" * 199,
        "y = " + "- " * 480 + "people",
        "x = 1\n" + "if x > 1 { x = 2 }\n" * 1_500,
    ],
    ids=["deep list", "wide list", "calls", "towers", "brackets", "minus", "ifs"],
)
def test_the_walk_is_bounded(text: str) -> None:
    """Without a bound these take 2^40 steps, or a depth that no stack has."""
    start = time.process_time()
    assert {fault.kind for fault in said(text)} <= {"PrivateValue"}
    assert time.process_time() - start < 60


def test_a_container_that_grew_large_still_holds_what_it_holds() -> None:
    assert [d.kind for d in said("x = people\n" + "x = [x]\n" * 1_000 + "print(x)")] == ["PrivateValue"]


FUNCTIONS = [row for row in BUILTINS.values() if row.signature is not None]


@pytest.mark.parametrize("row", FUNCTIONS, ids=lambda row: row.name)
def test_the_table_says_what_a_built_in_takes(row: Builtin) -> None:
    """What the check refuses by the table, the implementation would refuse too."""
    import inspect

    from jostle.run.evaluator import _IMPLEMENTED
    from jostle.run.values import Builtin as Implemented

    Session().attempt(Source("p.jst", "x = 1\n"))
    implemented = _IMPLEMENTED[row.name]
    if not isinstance(implemented, Implemented):
        return
    kinds = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**",
             inspect.Parameter.KEYWORD_ONLY: "name"}  # fmt: skip
    parameters = [
        ("" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else parameter.name, kinds.get(parameter.kind, ""),
         parameter.default is inspect.Parameter.empty)
        for parameter in inspect.signature(implemented.body).parameters.values()
        if not (implemented.wants_call and parameter.name == "at")
    ]  # fmt: skip
    assert parameters == [("" if p.kind == "*" else p.name, p.kind, p.default is None) for p in row.parameters]


def test_a_setting_that_a_description_rules_out_is_refused() -> None:
    """It was noise about no row, without a word; as a text in the program it was refused."""
    text = PEOPLE + 'param sex_of = "f"\nx = {{ select count(*) from people where TEST with epsilon 0.1 }}\n'
    for test in ("sex == sex_of", "sex_of == sex", 'sex in [sex_of, "m"]', "sex != sex_of"):
        source = Source("test.jst", text.replace("TEST", test))
        assert Session().check(source) == Session().check(source, {"sex_of": "m"}) == []
        (fault,) = Session().check(source, {"sex_of": "d"})
        assert fault.message == '`sex` is never "d": its description does not list it' and fault.span is not None
        assert fault.help == '`sex_of` is set to it: it is one of "f", "m"' and fault.span.text == "sex_of"
    in_a_loop = Source("test.jst", text.replace("TEST", "sex == s").replace("x = ", "for s in [sex_of]: x = "))
    assert Session().check(in_a_loop, {"sex_of": "d"}) == [], "what is worked out may be any value"


@pytest.mark.parametrize(("call", "help"), [
    ('linear_regression(people, ["old"], "age")', 'linear_regression(people, "age", ["old"])'),
    ('log_rank(people, "sex", "age", "old")', "in another order, as in `log_rank(people, time, event, by"),
    ('hazard_ratios(people, "age", "old", "sex")', 'write `["sex"]`'),
])  # fmt: skip
def test_arguments_are_put_in_order_where_one_order_alone_fits(call: str, help: str) -> None:
    """`log_rank` was shown with the arm as the event, since the first order that fits was taken."""
    private = 'private people = table("p.csv") described by {age: 0..99, old: 0..1, sex: {"f", "m"}} protecting rows\n'
    private += "budget epsilon 1\nuse statistics\n"
    (fault,) = said(f"print({call} with epsilon 1)", private)
    assert help in fault.help, fault.help


LOANS = (
    'private loans = table("l.csv") described by {score: 300..850, amount: 0..60000, housing: {"own", "rent"}, '
    'joined: 2024-01-01..2024-12-31, bad: {"no", "yes"}} protecting rows budget epsilon 9\nuse selection\nuse trees\n'
)


@pytest.mark.parametrize(("line", "way"), [
    ("w = above_threshold(600, loans) with epsilon 1", "write `w = above_threshold(loans, 600) with epsilon 1`"),
    ("halves = split_rows(loans, 2)\nprint(len(halves[1]))", "laplace(size(halves[1]))"),
    ("x = {{ select avg(amount * score) as x from loans with epsilon 1 }}\nprint(loans)", "measured of it is `x`"),
    ("x = {{ select count(*) from loans where joined >= 2024 with epsilon 1 }}", "write `year(joined) >= 2024`"),
    ("def f(d, i): return {score: size(d)}\nb = best_run(loans, f, [1, 2], 3) with epsilon 1", "`laplace(size(d))`"),
    ("def f(d, i): return laplace(size(d))\nb = best_run(loans, f, 3, 3) with epsilon 1", "[20, 30, 40, 50], 3)"),
    ("x = {{ select count(*) from loans by housing if score > 500 with epsilon 1 }}", "where score > 500 group"),
    ("x = {{ select avg(1 / (score - 400)) from loans with epsilon 1 }}", "are an example: write the ends"),
    ("g = {{ select count(*) as n from loans groupby housing with epsilon 1 }}\nprint([r for r in g if r.n > 3].n)",
     "write `print([r.n for r in g if r.n > 3])`"),
])  # fmt: skip
def test_ways_out_by_what_a_mistake_is_of(line: str, way: str) -> None:
    (fault, *_) = said(line, LOANS)
    assert way in fault.help, fault


def test_a_setting_is_ruled_out_as_a_variable_too() -> None:
    text = LOANS + 'param kind = "own"\nx = {{ select count(*) from loans where housing == @kind with epsilon 1 }}\n'
    assert Session().check(Source("test.jst", text), {"kind": "rent"}) == []
    (fault,) = Session().check(Source("test.jst", text), {"kind": "house"})
    assert fault.message.startswith('`housing` is never "house"')
