"""Operations on texts: what the engine gives is what their plain meaning says, on every pair of nasty texts."""

from __future__ import annotations

import itertools
import math
import random
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine_expressions import on_rows

from jostle.diagnostics import Refusal
from jostle.language import patterns
from jostle.language.operations import LONGEST
from jostle.language.row_functions import OPERATIONS, TEXTS, lower, upper
from jostle.plan.facts import listed_values
from jostle.plan.plan import Apply, Categories, Column, Constant, Count, Domain, Filter, Open, RowExpr, Scan
from jostle.readers.duckdb import LocalDuckDb
from jostle.records import replace
from jostle.run.operators import applied, as_pattern
from jostle.run.positions import evaluate

NASTY = [
    None, "", " ", "a", "A", "b", "aa", "aaa", "ab", "ba", "a b", " a ", "a,b", ",a,,b,", ",", ",,", "é", "e\u0301",
    "\u0301", "É",
    "ß", "\u1e9e", "İ", "i\u0307", "I", "ı", "Σ", "σ", "ς", "ΑΣ", "ﬁ", "ǆ", "ǅ", "\u1f80", "\u1f88", "日本", "👩‍👩‍👧",
    "\U0001f1ee", "\0", "a\0b",
    "\n", "a\n", "\na", "a\nb", "\r\n", "\t a \t", "\xa0a\u3000", "\u200b", "\ufeff", "\u2028", "\x85", "'", '"',
    "\\", "%", "_", "{0}", "}", "it's; --",
    "1", "1.5", "-0", "+1", " 1 ", "1e3", "1e400", "1e-400", "inf", "nan", "0x10", "1_0", "١", "1,5", ".", ".5",
    "5.", "1 1", "\n1", "1\n",
    "9007199254740993", "0.1", "x" * 300, "\uffff", "\U0010ffff", "\ud7ff", "\ue000",
]  # fmt: skip
NUMBERS = [
    None, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 0.1, 1 / 3, 2.5e-7, -2.5e-7, 5e-7, 1e-6, -1e-6, 999999999.999999, 1e9,
    1e9 + 0.5, -123.456, 2.0**53, 2.0**53 + 2,
    -(2.0**53), 1e300, -1e300, 5e-324, 1234567.8901234, 0.9999995, 0.99999949, 99.9999999, math.nan, math.inf,
    -math.inf,
]  # fmt: skip
PATTERNS = [
    "a", "^a", "a$", "^a$", "^$", ".", "^.$", "^..$", "[a-z]+", "^[^a]+$", r"\d", r"^\s*\d+\s*$", r"\W", r"^\w+$",
    "a|b", "^(a|b)*$", "(a|ab)(b|a)?$", "a{2}", "^a{1,2}$",
    "^(a{2,})?b?$", "é", "[à-ü]", r"\.", r"[\]\-]", r"[-a]", r"^(.|\n)*a$", r"\n", "'", '"', r"\\", r"\{", "[{}]",
    "%", "(a|b|,)+,", "^(a?){20}a{20}$", "日", "[\U0001f000-\U0001ffff]",
    "^((a|b)*,?)*$", "b^a", "$a", "(^|,)a", "a(,|$)",
]  # fmt: skip
NO_PATTERNS = [
    "", "(", ")", "a)", "(a", "()", "(|a)", "a||b", "*", "+a", "a**", "a*?", "a{1,", "a{2,1}", "a{101}", "a{0}",
    "{", "[", "[]", "[a", "[z-a]", r"[\d-z]", r"[\W]", "[[:alpha:]]",
    r"\1", r"\b", r"\pL", r"\x41", "(?i)a", "(?=a)", "(?:a)", "(?P<x>a)", "^*", "$+", "\\", "\ud800",
    "(a{100}){11}", "(" * 60 + "a" + ")" * 60, "a{,3}", "a{١}",
]  # fmt: skip


@pytest.fixture(scope="module")
def engine() -> Iterator[LocalDuckDb]:
    engine = LocalDuckDb()
    yield engine
    engine.close()


def on_sql(engine: LocalDuckDb, columns: dict[str, list[Any]], domains: dict[str, Domain], expr: RowExpr) -> list[Any]:
    """The value of an expression on each row, in the order of the rows."""
    return on_rows(engine, {name: _array(values) for name, values in columns.items()}, domains, [expr])[0]


def _array(values: list[Any]) -> Any:
    if all(value is None or isinstance(value, float) for value in values):
        return np.array([math.nan if value is None else value for value in values])
    return np.array(values, dtype=object)


def meaning(name: str, *operands: Any) -> Any:
    """What the table says of one row; an empty cell is none."""
    numbers = (isinstance(operand, float) and not math.isfinite(operand) for operand in operands)
    if any(operand is None for operand in operands) or any(numbers):
        return None
    operation = OPERATIONS[name]
    assert operation.value is not None
    return operation.value(*operands)


def cell(text: Any) -> Any:
    return None if text == "" else text


@pytest.mark.parametrize("name", [op.name for op in TEXTS if op.kinds == ("text",)])
def test_functions_of_one_text(engine: LocalDuckDb, name: str) -> None:
    values = on_sql(engine, {"t": NASTY}, {"t": Open("text")}, Apply(name, (Column("t"),)))
    assert values == [meaning(name, cell(text)) for text in NASTY]


@pytest.mark.parametrize("name", [op.name for op in TEXTS if op.kinds == ("text", "text") and not op.constants])
def test_functions_of_two_texts(engine: LocalDuckDb, name: str) -> None:
    pairs = list(itertools.product(NASTY, NASTY))
    columns = {"t": [a for a, _ in pairs], "u": [b for _, b in pairs]}
    values = on_sql(engine, columns, {"t": Open("text"), "u": Open("text")}, Apply(name, (Column("t"), Column("u"))))
    assert values == [meaning(name, cell(a), cell(b)) for a, b in pairs]
    for text in ("", "a", "\0", "'", "{0}"):  # as a constant, also the empty one
        expr = Apply(name, (Column("t"), Constant(text)))
        assert on_sql(engine, {"t": NASTY}, {"t": Open("text")}, expr) == [meaning(name, cell(a), text) for a in NASTY]


def test_replacing(engine: LocalDuckDb) -> None:
    few = [None, "", "a", "aa", "aaa", "aba", "ab", "b", "é", "\0", "a\0a", "'", "x" * 300]
    rows = list(itertools.product(NASTY, few, few))
    columns = {"t": [a for a, _, _ in rows], "u": [b for _, b, _ in rows], "v": [c for _, _, c in rows]}
    expr = Apply("replace", (Column("t"), Column("u"), Column("v")))
    values = on_sql(engine, columns, dict.fromkeys("tuv", Open("text")), expr)
    assert values == [meaning("replace", cell(a), cell(b), cell(c)) for a, b, c in rows]
    for old, new in itertools.product(["", "a", ",", "{0}", "é"], ["", "b", "aa"]):
        expr = Apply("replace", (Column("t"), Constant(old), Constant(new)))
        got = on_sql(engine, {"t": NASTY}, {"t": Open("text")}, expr)
        assert got == [meaning("replace", cell(text), old, new) for text in NASTY]


@pytest.mark.parametrize(("start", "count"), list(itertools.product([1.0, 2.0, 3.0, 10.0, 1e6], [0.0, 1.0, 2.0, 1e6])))
def test_parts_of_a_text_by_place(engine: LocalDuckDb, start: float, count: float) -> None:
    for name, places in (("substring of count", (start, count)), ("substring", (start,))):
        expr = Apply(name, (Column("t"), *map(Constant, places)))
        expected = [meaning(name, cell(text), *places) for text in NASTY]
        assert on_sql(engine, {"t": NASTY}, {"t": Open("text")}, expr) == expected


def test_a_pair_is_told_from_every_other(engine: LocalDuckDb) -> None:
    """Also where one text ends as the other begins, and where both say lengths themselves."""
    near = [*NASTY, "1:", "1:a", "2:", "a1:", "1:1:a", ":", "1", "11:"]
    pairs = list(itertools.product(near, near))
    columns = {"t": [a for a, _ in pairs], "u": [b for _, b in pairs]}
    expr = Apply("pair", (Column("t"), Column("u")))
    values = on_sql(engine, columns, {"t": Open("text"), "u": Open("text")}, expr)
    assert values == [meaning("pair", cell(a), cell(b)) for a, b in pairs]
    there = {(a, b) for a, b in pairs if cell(a) is not None and cell(b) is not None}
    assert len({value for value in values if value is not None}) == len(there)


@pytest.mark.parametrize("separator", [",", "a", "aa", ",,", "\0", "é", "'", "{0}", "e\u0301", " "])
def test_parts_of_a_text_by_separator(engine: LocalDuckDb, separator: str) -> None:
    for place in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1e6):
        expr = Apply("part", (Column("t"), Constant(separator), Constant(place)))
        expected = [meaning("part", cell(text), separator, place) for text in NASTY]
        assert on_sql(engine, {"t": NASTY}, {"t": Open("text")}, expr) == expected


def test_patterns(engine: LocalDuckDb) -> None:
    rng = random.Random(5)
    texts = [*NASTY, *("".join(rng.choices("ab,\né", k=rng.randrange(7))) for _ in range(300))]
    for pattern in PATTERNS:
        expr = Apply("matches", (Column("t"), Constant(pattern)))
        expected = [meaning("matches", cell(text), pattern) for text in texts]
        assert on_sql(engine, {"t": texts}, {"t": Open("text")}, expr) == expected, pattern


def test_random_patterns(engine: LocalDuckDb) -> None:
    rng = random.Random(6)

    def made(depth: int) -> str:
        if depth == 0 or rng.random() < 0.2:
            return rng.choice(["a", "b", ",", ".", "[ab]", "[^a]", r"\w", r"\s", "^", "$", r"\n", "é"])
        way = rng.randrange(4)
        if way == 0:
            return f"({made(depth - 1)}|{made(depth - 1)})"
        if way == 1:
            return f"({made(depth - 1)}){rng.choice(['*', '+', '?', '{2}', '{1,3}', '{2,}'])}"
        return made(depth - 1) + made(depth - 1)

    texts = ["".join(rng.choices("ab,\né", k=rng.randrange(6))) for _ in range(200)]
    for _ in range(150):
        pattern = made(4)
        try:
            patterns.parse(pattern)
        except ValueError:
            continue
        expr = Apply("matches", (Column("t"), Constant(pattern)))
        expected = [meaning("matches", cell(text), pattern) for text in texts]
        assert on_sql(engine, {"t": texts}, {"t": Open("text")}, expr) == expected, pattern


@pytest.mark.parametrize("pattern", NO_PATTERNS)
def test_what_is_no_pattern_is_refused_before_anything_runs(pattern: str) -> None:
    with pytest.raises(Refusal) as refusal:
        applied("matches", (Column("t"), Constant(pattern)), {"t": Open("text")})
    assert refusal.value.first.kind == "ValueError"


WRONG = (
    "", "a", "(?i)x", "(?P<n>a)", "'", "''; DROP TABLE t; --", '"', "{0}", "\\", "(", ")", "[", "a{2000}",
    "(((a{99}){99}){99}", "(?=a)", r"(a)\1", "\0", "\ud800", r"\x{110000}", r"\C", r"\pN", "*", "é", "^(.)(.)?$",
)  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_privacy_rests_on_no_reader_of_patterns(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an engine is handed for a pattern or a format: a row is in the answer or not by that row alone, and
    what cannot be read is refused in the same words, whatever rows there are, also where there are none."""
    readers = {"pattern": lambda pattern: text, "format": lambda form, kind: (f"^{text}$", ("Y", "m", "d"))}
    monkeypatch.setattr(LocalDuckDb, "dialect", replace(LocalDuckDb.dialect, **readers))
    rows = ["", "a", "x", "2024-03-01", "'", "{0}", "\\", "é", "\0"]
    day, time = (Apply(f"{kind} by format", (Column("t"), Constant("%Y"))) for kind in ("date", "time"))
    read = (Apply("date of text", (day,)), Apply("time of text", (time,)))
    tests = [
        Apply("matches", (Column("t"), Constant("a"))), Apply("<", (day, Constant("2"))),
        *(Apply("not", (Apply("missing", (one,)),)) for one in read),
    ]  # fmt: skip
    engine, scans = LocalDuckDb(), []
    for at, some in enumerate([rows, [], *([row] for row in rows)]):
        path = tmp_path / f"{at}.parquet"
        pq.write_table(pa.table({"t": pa.array(some, pa.string())}), path)
        scans.append(Scan(engine.open(path, public=False).key, (("t", Open("text")),)))
    for test in tests:
        outcomes = []
        for scan in scans:
            try:
                (counted,) = engine.group(Filter(scan, test), (), (Count(),))
                outcomes.append(int(counted))
            except Refusal as refusal:
                outcomes.append(str(refusal))
        whole, none, *each = outcomes
        assert set(map(type, outcomes)) == {type(whole)}
        assert {whole, none, *each} == {whole} if isinstance(whole, str) else (none, whole) == (0, sum(each))
    engine.close()


def test_the_longest_patterns_run(engine: LocalDuckDb) -> None:
    for pattern in ("(a{60}){8}", "((a|b)*,){60}", "^(a?){100}(a{100})$", "[\U00010000-\U0010ffff]{99}", "a" * 1000):
        expr = Apply("matches", (Column("t"), Constant(pattern)))
        texts = ["a" * 1000, "ab," * 70, "a" * 100 + "b"]
        assert on_sql(engine, {"t": texts}, {"t": Open("text")}, expr) == [patterns.matches(t, pattern) for t in texts]


def test_like() -> None:
    rows = [("a%", "abc", True), ("a%", "ba", False), ("_", "é", True), ("_", "ab", False), ("%.x", "a\n.x", True)]
    rows += [("a.c", "abc", False), ("%", "", True), ("[a]", "[a]", True), ("\\", "\\", True)]
    for pattern, text, expected in rows:
        assert patterns.matches(text, as_pattern(pattern)) is expected


def test_letters_are_mapped_one_by_one_as_the_engine_maps_them(engine: LocalDuckDb) -> None:
    """All code points that this Python and the engine both know as letters or not."""
    points = "i::INT FROM range(1, 1114112) r(i) WHERE i < 55296 OR i > 57343"
    rows = engine.fetch(f"SELECT i::INT, lower(chr(i::INT)), upper(chr(i::INT)), {points}")
    for code, small, capital, _ in rows:
        if unicodedata.category(chr(code)) != "Cn":
            assert (lower(chr(code)), upper(chr(code))) == (small, capital), hex(code)


def test_numbers_as_texts(engine: LocalDuckDb) -> None:
    rng = random.Random(7)
    more = [rng.choice([1, -1]) * rng.random() * 10.0 ** rng.randrange(-8, 12) for _ in range(3000)]
    more += [rng.randrange(10**9) + rng.randrange(128) / 128 for _ in range(1000)] + [k * 5e-7 for k in range(2000)]
    numbers = [*NUMBERS, *more]
    values = on_sql(engine, {"x": numbers}, {"x": Open("real")}, Apply("text", (Column("x"),)))
    assert values == [meaning("text", number) for number in numbers]


def test_nothing_grows_without_end(engine: LocalDuckDb) -> None:
    texts = ["a", "a" * LONGEST, "b", "a" * (LONGEST + 5)]
    doubled = Apply("concat", (Column("t"), Column("t")))
    assert on_sql(engine, {"t": texts}, {"t": Open("text")}, doubled) == ["aa", None, "bb", None]
    swollen = Apply("replace", (Column("t"), Constant("a"), Constant("x" * LONGEST)))
    assert on_sql(engine, {"t": texts}, {"t": Open("text")}, swollen) == ["x" * LONGEST, None, "b", None]
    same = Apply("replace", (Column("t"), Constant("a"), Constant("b")))
    assert on_sql(engine, {"t": texts}, {"t": Open("text")}, same) == ["b", "b" * LONGEST, "b", None]


def test_the_first_that_is_not_missing(engine: LocalDuckDb) -> None:
    rows = list(itertools.product([None, "", "a"], [None, "b"]))
    columns = {"t": [a for a, _ in rows], "u": [b for _, b in rows], "x": [math.nan, 1.0, 2.0] * 2}
    domains: dict[str, Domain] = {"t": Open("text"), "u": Open("text"), "x": Open("real")}
    expr = Apply("coalesce", (Column("t"), Column("u"), Constant("none")))
    assert on_sql(engine, columns, domains, expr) == [cell(a) or b or "none" for a, b in rows]
    expr = Apply("coalesce", (Apply("/", (Constant(1.0), Apply("-", (Column("x"), Constant(1.0))))), Constant(7.0)))
    assert on_sql(engine, columns, domains, expr) == [7.0, 7.0, 1.0] * 2
    expr = Apply("missing", (Apply("/", (Column("x"), Constant(0.0))),))
    assert on_sql(engine, columns, domains, expr) == [True] * 6


def test_what_they_can_be_is_listed_by_their_meaning(engine: LocalDuckDb) -> None:
    cities = tuple(text for text in NASTY if text)
    domains: dict[str, Domain] = {"t": Categories(cities), "u": Categories(("x", "y"))}
    columns = {"t": [*cities, "unlisted"], "u": ["x", "y"] * ((len(cities) + 1) // 2) + ["x"] * ((len(cities) + 1) % 2)}
    one = Column("t")
    exprs: list[RowExpr] = [Apply(op.name, (one,)) for op in TEXTS if op.kinds == ("text",)]
    exprs += [Apply("concat", (one, Column("u"))), Apply("substring of count", (one, Constant(2.0), Constant(1.0)))]
    exprs += [Apply("part", (one, Constant(","), Constant(2.0))), Apply("coalesce", (one, Column("u")))]
    for expr in exprs:
        listed = listed_values(expr, domains)
        seen = set(on_sql(engine, columns, domains, expr)) - {None}
        assert listed is not None and seen <= set(listed) and len(set(listed)) == len(listed), expr


def test_cubes_read_the_same(engine: LocalDuckDb) -> None:
    column = np.array(NASTY, dtype=object)
    one = Column("t")
    exprs: list[RowExpr] = [Apply(op.name, (one,)) for op in TEXTS if op.kinds == ("text",)]
    exprs += [Apply("matches", (one, Constant("^a|b$"))), Apply("contains", (one, Constant("a")))]
    exprs += [Apply("coalesce", (one, Constant("?"))), Apply("coalesce", (Apply("number", (one,)), Constant(-1.0)))]
    for expr in exprs:
        values, valid = evaluate(expr, {"t": np.array([cell(text) for text in NASTY], dtype=object)})
        got = [value if known else None for value, known in zip(values.tolist(), valid.tolist(), strict=True)]
        assert got == on_sql(engine, {"t": column.tolist()}, {"t": Open("text")}, expr), expr
