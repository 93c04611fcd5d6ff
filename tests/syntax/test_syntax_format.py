"""`jostle fmt`: what it writes word for word, that it keeps trees and comments, and that twice is once.

All 10,000 generated programs: `python -m tests.syntax.format_property --programs 10000`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jostle.diagnostics import Refusal
from jostle.source import Source
from jostle.syntax.format import format_source
from jostle.syntax.parser import parse

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([*ROOT.glob("programs/*.jst"), *ROOT.glob("stdlib/*.jst"), *ROOT.glob("tests/language/*.jst")])


def fmt(text: str) -> str:
    return format_source(Source("p.jst", text))


CASES = {
    "blocks": (
        "def f(x) { return x }\nif a { b=1 }\nelse { b = 2 }\nfor i in 1 .. 3 {\n  g( i )\n}\n",
        "def f(x): return x\nif a: b = 1\nelse: b = 2\nfor i in 1..3:\n    g(i)\n",
    ),
    "parts": (
        "o = Option (data): \n  x = 1\n  return x\nu=Utility(d,a){return -a}\n",
        "o = Option (data) {\n    x = 1\n    return x\n}\nu = Utility (d, a) { return -a }\n",
    ),
    "predict": (
        "o = Option (d) { return d }\n  predict (F) { return F.x }\n",
        "o = Option (d) { return d } predict (F) { return F.x }\n",
    ),
    "an empty block keeps its braces": ("def f() {}\nf()\n", "def f() { }\nf()\n"),
    "a compound statement has lines of its own": (
        "def f(x) { if x { return 1 } }\n", "def f(x):\n    if x: return 1\n",
    ),
    "signs": ("x = - 1 - -y ^ - 2 * ( a+b )%c\n", "x = -1 - -y^-2 * (a + b) % c\n"),
    "braces": ("a = { {k:1},{ } }\nb = {1,2}\nq = {{select count( * ) from t}}\n",
               "a = { {k: 1}, {} }\nb = {1, 2}\nq = {{ select count(*) from t }}\n"),
    "ranges": ("a = 0 .. .5\nb = D[x = 1,]\nc = (a,)\n", "a = 0.. .5\nb = D[x = 1, ]\nc = (a,)\n"),
    "clauses hang by one step": (
        "private p = table('x')\n      protecting rows\n           budget epsilon 1\n",
        "private p = table('x')\n    protecting rows\n    budget epsilon 1\n",
    ),
    "a column that is never missing": (
        "t = table('x') described by {a:1 .. 2  never   missing,b:{1}never missing}\n",
        "t = table('x') described by {a: 1..2 never missing, b: {1} never missing}\n",
    ),
    "brackets": (
        "x = f([\n1,\n      2], {\n  a: 3\n })\ny = 1 +\n2\n",
        "x = f([\n    1,\n    2], {\n        a: 3\n    })\ny = 1 +\n    2\n",
    ),
    "a block goes by the first line of its statement": (
        "def f(a,\n    b):\n    x = a\n    return x\n"
        "if (a or\n b) {\n  y = 2\n  z = Option (d) {\n    x = f(1,\n2)\n    return x }\n}\n",
        "def f(a,\n    b):\n    x = a\n    return x\n"
        "if (a or\n    b):\n    y = 2\n    z = Option (d) {\n"
        "        x = f(1,\n            2)\n        return x\n    }\n",
    ),
    "comments": (
        "#a\n\n\n\nx = 1 # b\nlong = 2 # c\nif x == 1:\n  y = 2\n  # d\n# e\nz = [ # f\n1 # g\n# h\n]\n// i",
        "#a\n\nx = 1     # b\nlong = 2  # c\nif x == 1:\n    y = 2\n    # d\n# e\nz = [  # f\n"
        "    1  # g\n    # h\n]\n// i\n",
    ),
    "lined up equals stay": ("a  = 1\nbc = 2\nd = 3\n", "a  = 1\nbc = 2\nd = 3\n"),
    "others do not": ("a   = 1\nbc = 2\n", "a = 1\nbc = 2\n"),
    "comments of a brace that goes": (
        "def f(x) { # one\n  return x # two\n} # three\n", "def f(x):  # one\n    return x  # two\n# three\n",
    ),
    "the spellings of SQL": (
        "g = {{ SELECT sex,COUNT( * ) AS n FROM t o WHERE NOT a=1 AND o.b<>2 AND c IS NULL\nGROUP BY sex\n"
        "ORDER BY n DESC LIMIT 3 }}\nx = {{ select avg(CASE WHEN a IS NOT NONE THEN @b ELSE 0 END) from t }}\n",
        'g = {{ select sex, count(*) as n from t o where not a == 1 and o.b != 2 and c is missing\n    groupby sex\n'
        "    order by n desc limit 3 }}\nx = {{ select avg(case when a is not missing then @b else 0 end) from t }}\n",
    ),
    "words of SQL that are others here": (
        "g = {{ select sum(IFNULL(a,0)) as s from t join u using ( `c`,d ) where extract( YEAR from e )=2024 }}\n",
        "g = {{ select sum(coalesce(a, 0)) as s from t join u on `c`, d where year(e) == 2024 }}\n",
    ),
    "a share, and what is none": (
        "with 1 / 4:\n    f()\nx = f() with 1/5/n\ny = f() with 1/(n)\nz = - -1\n",
        "with 1/4:\n    f()\nx = f() with 1 / 5 / n\ny = f() with 1/(n)\nz = - -1\n",
    ),
    "names in backquotes": ("a = t.`City Name`+ `b`\n", "a = t.`City Name` + `b`\n"),
    "nothing": ("", ""),
    "only a comment": ("  # hello", "# hello\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_word_for_word(name: str) -> None:
    given, wanted = CASES[name]
    assert fmt(given) == wanted
    assert fmt(wanted) == wanted


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_files_keep_their_tree_and_their_comments(path: Path) -> None:
    for chunk in re.split(r"^---\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
        try:
            tree = parse(Source("p", chunk), interactive=True)
        except Refusal:
            continue
        text = fmt(chunk)
        assert parse(Source("p", text), interactive=True) == tree
        assert fmt(text) == text
        assert sorted(re.findall(r"#.*", text)) == sorted(c.rstrip() for c in re.findall(r"#.*", chunk))


def test_a_text_that_does_not_parse_is_refused() -> None:
    with pytest.raises(Refusal):
        fmt("x = (1\n")


def test_generated_programs_keep_their_trees() -> None:
    from format_property import tried

    found = {tried(seed) for seed in range(60)}
    assert "kept" in found and found <= {"kept", "no program"}
