"""The tree of a text: two spellings of one program, each form of the grammar, spans."""

from __future__ import annotations

import math

import pytest

from jostle.source import Source
from jostle.syntax import nodes as n
from jostle.syntax import parse
from jostle.syntax.walk import children, every


def tree(text: str) -> n.Program:
    return parse(Source("test.jst", text))


def value(text: str) -> n.Expr:
    (stmt,) = tree(f"x = {text}").body
    assert isinstance(stmt, n.Assign)
    return stmt.value


SPELLINGS = [
    ("def f(x):\n    return x\n", "def f(x) { return x }"),
    ("def f(x): return x", "def f(x) {\n    return x\n}\n"),
    ("if a:\n    f()\nelse:\n    g()", "if a { f() } else { g() }"),
    ("if a:\n    f()\nelse if b:\n    g()\nelse:\n    h()", "if a { f() }\nelse if b { g() }\nelse { h() }"),
    ("for i in xs:\n    for j in ys:\n        f(i, j)\ng()", "for i in xs { for j in ys { f(i, j) } }\ng()"),
    ("with epsilon 0.5:\n    f()", "with epsilon 0.5 { f() }"),
    ("def f():\n    if a:\n        return 1\n    return 2", "def f() {\n  if a { return 1 }\n  return 2\n}"),
    ("x = (a,\n     b)", "x = [a, b]"),
    ("x = 1 +\n    2", "x = 1 + 2"),
    (
        "private p = counts([1])\n    protecting rows\n    budget rho 1",
        "private p = counts([1]) protecting rows budget rho 1",
    ),
    ("x = {{ SELECT count(*) AS n FROM t GROUP BY a }}", "x = {{ select count(*) as n from t groupby a }}"),
    (
        "x = {{ SELECT sex, AVG(age) a FROM t AS p WHERE (a = 1 OR b <> 2) AND c IS NOT NULL GROUP BY sex "
        "HAVING a > 1 ORDER BY a DESC LIMIT 3 }}",
        "x = {{ select avg(age) as a from t p where (a == 1 or b != 2) and c is not missing groupby sex "
        "having a > 1 order by a desc limit 3 }}",
    ),
    ("x = {{ select sex as s, count(*) from t group by sex }}", "x = {{ select count(*) from t groupby sex as s }}"),
    ("x = CASE WHEN a = 1 THEN 2 WHEN b THEN 3 ELSE 4 END", "x = 2 if a == 1 else (3 if b else 4)"),
    ("x = case a when 1 then 2 end\ny = 3", "x = 2 if a == 1 else none\ny = 3"),
    ("x = {{ select count(*) from t join u using (a, b) }}", "x = {{ select count(*) from t join u on a, b }}"),
    ("x = {{ select count(*) from t where EXTRACT(doy FROM d) = 1 }}",
     "x = {{ select count(*) from t where day_of_year(d) == 1 }}"),
    ("x = {{ select count(*) filter (where a = 1), sum(b) FILTER (WHERE c), count(distinct d) filter (where c) "
     "from t }}",
     "x = {{ select count(1 if a == 1 else none), sum(b if c else none), count(distinct (d if c else none)) from t }}"),
    ("x = {{ select sum(NVL(a, 0)), count(distinct substr(b, 1, 2), position('x' in b)) from t }}",
     "x = {{ select sum(coalesce(a, 0)), count(distinct (substring(b, 1, 2), position(b, 'x'))) from t }}"),
    ("x = a is none and b is not missing", "x = a == none and b != none"),
    ("def f(a) = a + 1\nx = 2", "def f(a): return a + 1\nx = 2"),
    ("x = `age` + r.`size`", "x = age + r.size"),
    ("def MIN(x) = x\nx = {{ select SUM(MIN(a)) from t }}", "def MIN(x) = x\nx = {{ select sum(MIN(a)) from t }}"),
    ("// one\n-- two\nx = 1  # two", "x = 1"),
    ("x = not (a AND b)", "x = NOT (a and b)"),
    ("f(x)\n    with epsilon 1", "f(x) with epsilon 1"),
    ("o = Option (d) { return 1 }\npredict (F) { return 2 }", "o = Option(d) {\n  return 1\n} predict(F) { return 2 }"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SPELLINGS)
def test_two_spellings_are_one_tree(one: str, other: str) -> None:
    assert tree(one) == tree(other)


def test_trees_of_different_programs_differ() -> None:
    assert tree("x = 1") != tree("x = 2")
    assert tree("if a { f() }\ng()") != tree("if a { f()\ng() }")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("1 + 2 * 3 ^ 2 ^ 2", "1 + (2 * (3 ^ (2 ^ 2)))"),
        ("-2 ^ 2", "-(2 ^ 2)"),
        ("2 ^ -1", "2 ^ (-1)"),
        ("a or b and not c == d", "a or (b and (not (c == d)))"),
        ("1 .. n - 1", "(1)..(n - 1)"),
        ("1..4", "1 .. 4"),
        ("a - b - c", "(a - b) - c"),
        ("a if b else c if d else e", "a if b else (c if d else e)"),
        ("lambda f: lambda x: f(x)", "lambda f: (lambda x: f(x))"),
    ],
)
def test_precedence(text: str, same: str) -> None:
    assert value(text) == value(same)


def test_literals() -> None:
    at = tree("x = 1").span
    assert value("1e400") == n.Number(math.inf, span=at)
    assert value(".5") == n.Number(0.5, span=at)
    assert value(r'"a\"b\n\u00e9\q"') == n.String('a"b\né\\q', span=at)
    assert [value(word) for word in ("true", "False", "NONE")] == [n.Constant(v, span=at) for v in (True, False, None)]
    assert value("{}") == n.SetOf((), span=at)
    assert value("{a: 1, 'b c': 2,}") == n.RecordOf(
        (("a", n.Number(1.0, span=at)), ("b c", n.Number(2.0, span=at))), span=at
    )


def test_an_index_may_end_with_a_comma() -> None:
    rows, plain = value("D[a = c, ]"), value("D[i]")
    assert isinstance(rows, n.Index) and isinstance(plain, n.Index)
    assert [k.name for k in rows.keywords] == ["a"] and not rows.args
    assert len(plain.args) == 1 and not plain.keywords


def test_calls_of_queries() -> None:
    query = value("{{ stddev(select count(distinct a) as n, sum(b) from t join u on k, l up to 3 where c > 1 "
                  "groupby d / 2 as half over 0..3 with epsilon 1 delta 1e-6 via gaussian) }}")  # fmt: skip
    select = next(node for node in every(query) if isinstance(node, n.Select))
    assert [column.name for column in select.columns] == ["n", None]
    assert [(m.column, m.theirs) for m in select.joins[0].on] == [("k", "k"), ("l", "l")]
    assert isinstance(select.joins[0].up_to, n.Number)
    assert select.keys[0].name == "half" and isinstance(select.keys[0].over, n.Range)
    assert isinstance(select.where, n.Binary)
    assert select.spend is not None and select.spend.amount.unit == "epsilon"
    assert isinstance(select.spend.amount.delta, n.Number) and isinstance(select.spend.via, n.Name)
    assert any(isinstance(node, n.Distinct) for node in every(select))


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("rows", {"rows": True}),
        ("rows, public size", {"rows": True, "public_size": True}),
        ("rows, public size by a, b", {"rows": True, "public_size": True, "groups": ("a", "b")}),
        ("rows, at most 100 rows", {"rows": True, "at_most": 100.0}),
        ("person up to 2 rows", {"rows": False, "columns": ("person",), "up_to": 2.0}),
        ("person, day up to 1 row weighted", {"columns": ("person", "day"), "up_to": 1.0, "weighted": True}),
    ],
)
def test_protecting(clause: str, expected: dict[str, object]) -> None:
    text = f'private p = table("p.csv")\n    described by {{a: 0..9}}\n    protecting {clause}\n    budget epsilon 1\n'
    (private,) = tree(text).body
    assert isinstance(private, n.Private) and private.protecting is not None
    for name, wanted in expected.items():
        found = getattr(private.protecting, name)
        assert (found.value if isinstance(found, n.Number) else found) == wanted
    assert private.budget is not None and private.described is not None


@pytest.mark.parametrize(
    ("each", "ever"),
    [("each week", ""), ("each week of day", ""), ("each 9 days of d", ""), ("each month of day", ", rho 2 for ever")],
)
def test_budgets_of_periods(each: str, ever: str) -> None:
    """Also where the next line begins at once, and a column or variable may be called `ever` or `each`."""
    (private, after) = tree(f"private p = dataset('p') budget rho 1 {each}{ever}\never = each").body
    assert isinstance(private, n.Private) and private.budget is not None and isinstance(after, n.Assign)
    assert private.budget.each == each.removeprefix("each ")
    most = private.budget.for_ever
    assert (most is not None) == bool(ever) and (most is None or isinstance(most.value, n.Number))


def test_budgets() -> None:
    (private,) = tree("private p = dataset('p') budget epsilon 3, delta 1e-6 counted by basic").body
    assert isinstance(private, n.Private) and private.budget is not None
    assert private.budget.counted_by == "basic" and isinstance(private.budget.amount.delta, n.Number)


def test_choice() -> None:
    choice = value("MkChoiceMaker among {A} informed by {f} trained on ts using tree(depth = 2) spending 0.1 wrt u")
    assert isinstance(choice, n.Choice)
    assert isinstance(choice.using, n.Call) and isinstance(choice.spending, n.Number)
    bare = value("MkChoiceMaker([A], f, ts, tree(), u)")
    assert isinstance(bare, n.Call) and isinstance(bare.function, n.Name)


def test_statements() -> None:
    text = 'use a.b\nparam e = 1\nexternal svd(x, k = 2)\nrelease y = e\nrelease y\nassert y == 1, "no"\nprint(y)\n'
    use, param, external, release, again, check, bare = tree(text).body
    assert isinstance(use, n.Use) and use.path == ("a", "b")
    assert isinstance(param, n.ParamDecl) and param.name == "e"
    assert isinstance(external, n.External) and [p.name for p in external.params] == ["x", "k"]
    assert isinstance(release, n.Release) and release.value is not None
    assert isinstance(again, n.Release) and again.value is None
    assert isinstance(check, n.Assert) and isinstance(check.message, n.String)
    assert isinstance(bare, n.Bare)


def test_clause_words_are_names_elsewhere() -> None:
    words = "among on by where group to up rows of over as at most use param release private with external weighted"
    for word in words.split():
        assert isinstance(tree(f"{word} = 1\ny = {word} + 1").body[0], n.Assign)


def test_spans() -> None:
    program = tree("x = 1\ntotal = f(a,\n          b + c)\n")
    assign = program.body[1]
    assert isinstance(assign, n.Assign) and isinstance(assign.value, n.Call)
    found = assign.value.args[1].span
    assert (found.line, found.column, found.end_line, found.end_column) == (3, 11, 3, 16)
    whole = assign.span
    assert (whole.line, whole.column, whole.end_line, whole.end_column) == (2, 1, 3, 17)


def test_every_span_lies_inside_its_parent() -> None:
    text = "def f(a, b = 2):\n    for i in 1..3:\n        if a { return (b + i) * 2 }\n"
    text += "    return {r: [x for x in a if x > 1]}\n"
    waiting: list[n.Node] = [tree(text)]
    while waiting:
        node = waiting.pop()
        for child in children(node):
            inner, outer = child.span, node.span
            assert (outer.line, outer.column) <= (inner.line, inner.column), child
            assert (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column), child
            waiting.append(child)


def test_the_empty_program() -> None:
    assert tree("").body == tree("\n\n# nothing\n").body == ()
