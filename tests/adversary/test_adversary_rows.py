"""Nulls, NaN, casts, division, dates, odd bytes; private keys, schemas and headers.

A row settles what it is by itself: no cell makes a program fail, and no line decides where another begins. What is
known of keys and columns comes from the description; a file without a header does not show its first row.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from arena import Arena, lost, table
from hostile import LONG, ROWS

from jostle.source import Source
from jostle.tools.render import render_all
from jostle.tools.session import Result, Session

Attempt = Callable[..., Result]

T = (
    'private t = table("t.csv") described by {a: 0..9, r: real, c: {"x", "y"}, d: text} protecting rows '
    "budget epsilon 90\n"
)
PLAIN = [f"{k % 10},{k / 3!r},{'xy'[k % 2]},20{10 + k}-01-01" for k in range(30)]


@pytest.mark.attack("nulls, NaN, casts, dates, odd bytes")
@pytest.mark.parametrize("name", ROWS)
def test_a_line_is_worth_a_line(arena: Arena, name: str) -> None:
    """Whatever it holds, a line moves a count by one for every line it is, and the other lines not at all."""
    row = ROWS[name]
    program = T + (
        "x = {{ select count(*) as n from t with epsilon 1 }}\n"
        'y = {{ select count(*) as n from t where d >= "2010" and d < "2040" and r < 10 with epsilon 1 }}\n'
        "z = {{ select sum(a) as s, count(r) as m, count(distinct d) as e from t groupby c with epsilon 3 }}\n"
    )
    for place in (0, 7, 30):
        plain = [p.encode() for p in PLAIN]
        arena.write({"t.csv": table("a", "r", "c", "d", rows=[*plain[:place], row, *plain[place:]])})
        one = arena.see(program)
        arena.write({"t.csv": table("a", "r", "c", "d", rows=PLAIN)})
        other = arena.see(program)
        assert one.result.ok and one.text == other.text
        lines = len([line for line in row.split(b"\n") if line.strip(b"\r")])
        assert int(one.draws[0].values.item()) - int(other.draws[0].values.item()) == lines
        assert lost(one, other) <= 5 * lines * (1 + 1e-9)


@pytest.mark.attack("nulls, NaN, casts, dates, odd bytes")
def test_a_quote_swallows_no_other_row(arena: Arena) -> None:
    """An open quote on the first line, and as many lines after it as there are: each is still one row."""
    for first in (b'"', b'1,"2,x,y', b'"""', b'",",",', b'1,2,x,"2010\r', b'"\\"'):
        arena.write({"t.csv": table("a", "r", "c", "d", rows=[first, *(p.encode() for p in PLAIN)])})
        seen = arena.see(T + "x = {{ select count(*) from t with epsilon 1 }}")
        assert [int(d.values.item()) for d in seen.draws] == [31], first


@pytest.mark.attack("nulls, NaN, casts, dates, odd bytes")
def test_values_are_settled_by_the_description(arena: Arena) -> None:
    """Numbers are clamped, what is none is none, and none is skipped: in the exact values that noise is given."""
    cells = {"-5": 0, "12": 9, "1e400": None, "nan": None, "inf": None, "": None, " 7 ": 7, "3.99": 3, "0x3": None,
             "1e1": 9, "-0": 0, "1_0": None, "٣": None, "7e-400": 0, "9007199254740993": 9, "+4": 4,
             ".5": 0}  # fmt: skip
    for cell, value in cells.items():
        arena.write({"t.csv": table("a", "r", "c", "d", rows=[f"{cell},1,x,y"])})
        seen = arena.see(T + "x = {{ select sum(a) as s, count(a) as n from t with epsilon 1 }}")
        assert [int(d.values.item()) for d in seen.draws] == [value or 0, value is not None], cell


@pytest.mark.attack("nulls, NaN, casts, dates, odd bytes")
def test_text_of_the_program_is_no_sql(attempt: Attempt) -> None:
    rows = "a,r,c,d\n" + "1,1,x,o'clock\n" * 9
    for word in (
        "o'clock",
        "'); DROP TABLE raw0; --",
        "' OR '1'='1",
        "\\'",
        "%",
        "_'_",
        "'' UNION SELECT 1",
        "$1",
        "{c0}",
    ):
        for query in (
            f'select count(*) from t where d == "{word}" with epsilon 9',
            f'select count(*) as n from t groupby d over {{"{word}"}} with epsilon 9',
            f'select count(*) from t[d = "{word}"] with epsilon 9',
        ):
            result = attempt(T + f"n = {{{{ {query} }}}}\nrelease n", t=rows)
            if "\\" in word and not result.ok:
                assert [d.kind for d in result.diagnostics] == ["SyntaxError"]
                continue
            assert result.ok, (word, result.diagnostics)
            found = result.released_json()["n"]
            found = found[0]["n"] if isinstance(found, list) else found
            assert abs(found - (9 if word == "o'clock" else 0)) <= 4, (word, found)


@pytest.mark.attack("nulls, NaN, casts, dates, odd bytes")
def test_an_endless_line_is_a_line(arena: Arena) -> None:
    """Longer than what is read at a time, so that a record comes in parts."""
    arena.write({"t.csv": table("a", "r", "c", "d", rows=[PLAIN[0].encode(), LONG * 45, PLAIN[1].encode()])})
    seen = arena.see(T + "x = {{ select count(*) as n, count(c) as m from t with epsilon 2 }}")
    assert [int(d.values.item()) for d in seen.draws] == [3, 2]


KEYS = {
    "keys that only the data know": "g = {{ select count(*) as n from t groupby d with epsilon 1 }}",
    "a number without a range": "g = {{ select count(*) as n from t groupby r with epsilon 1 }}",
    "a derived text": 'g = {{ select count(*) as n from t groupby (d if a > 3 else "x") as k with epsilon 1 }}',
    "parts by an open column": "for k, p in partition(t, d) { print(k) }",
    "a histogram of an open column": "h = histogram(t, x = d)",
    "a mode among open texts": "m = {{ select mode(d) from t with epsilon 1 }}",
    "categories of an open column": "for c in columns(t) { print(c.categories) }",
    "the number of values of an open column": "print(len(columns(t)[3]))",
    "quantiles without a range": "m = {{ select median(r) from t with epsilon 1 }}",
}


@pytest.mark.attack("private keys, schema and header")
@pytest.mark.parametrize("name", KEYS)
def test_open_keys_are_refused(attempt: Attempt, name: str) -> None:
    result = attempt(T + KEYS[name] + "\nrelease y = 1\n", t="a,r,c,d\n" + "\n".join(PLAIN) + "\n")
    assert len(result.diagnostics) == 1 and result.values == {}
    assert result.diagnostics[0].kind in ("OpenKeys", "TypeError", "NameError", "UnboundedSum")
    assert not [line for line in result.output if "20" in line]
    assert not result.budget or result.budget["t"]["epsilon"]["spent"] == "0"


@pytest.mark.attack("private keys, schema and header")
def test_every_key_is_reported_and_none_from_the_data(arena: Arena) -> None:
    for rows in ([], PLAIN, ["1,1,z,2010"] * 50):
        arena.write({"t.csv": table("a", "r", "c", "d", rows=rows)})
        seen = arena.see(
            T + 'g = {{ select count(*) as n from t groupby c, d over {"nobody"} with epsilon 1 }}\nprint(g.c, g.d)'
        )
        assert seen.result.output == ['["x", "y"] ["nobody", "nobody"]']


@pytest.mark.attack("private keys, schema and header")
def test_keys_of_one_person_stay_below_the_threshold(arena: Arena) -> None:
    """Under δ a key is found by its noisy count, at a threshold that k rows of one person do not reach."""
    for unit, k in (("rows", 1), ("a up to 5 rows", 5)):
        declared = T.replace("protecting rows budget epsilon 90", f"protecting {unit} budget epsilon 20, delta 1e-5")
        arena.write({"t.csv": table("a", "r", "c", "d", rows=[*PLAIN, *["7,1,x,secret"] * k])})
        seen = arena.see(
            declared + "g = {{ select count(*) as n from t groupby d with epsilon 1 delta 1e-6 }}\nprint(g.d)"
        )
        assert seen.result.ok and seen.result.output == ["[]"], seen.text
        (draw,) = seen.draws
        assert draw.scale >= k


SECRET = "Ann Xaver"
HEADERLESS = {
    "a row of texts": f"{SECRET},42,HIV\nBob,17,none\n",
    "a row of numbers": "8675309,42\n1,2\n",
    "a row with an empty cell": f"{SECRET},,HIV\nBob,17,none\n",
    "a row with two equal cells": f"{SECRET},{SECRET},1\n",
    "no UTF-8": "\udcff\udcfe" + f"{SECRET}\n",
    "an open quote": f'"{SECRET},42\nmore\n',
    "nothing": "\n",
}


@pytest.mark.attack("private keys, schema and header")
@pytest.mark.parametrize("file", ["t.csv", "t.db", "t.sqlite", "t.duckdb", "t.arrow", "t.feather", "t.parquet", "t.pq"])
@pytest.mark.parametrize("name", HEADERLESS)
def test_a_file_without_a_header_shows_nothing_of_its_first_row(tmp_path: Path, name: str, file: str) -> None:
    """Whatever its ending says: this is what stands in it that decides whether types have the names."""
    (tmp_path / file).write_bytes(HEADERLESS[name].encode("utf-8", "surrogateescape"))
    for clause in ("described by {name: text} protecting rows", "described by {Ann: text, age: 0..9} protecting rows",
                   "described by {age: 0..9} protecting who up to 3 rows",
                   "described by {xaver: text} protecting rows"):  # fmt: skip
        program = (
            f'private t = table("{file}") {clause} budget epsilon 1\n'
            f"x = {{{{ select count(*) from t with epsilon 1 }}}}\n"
        )
        result = Session(cwd=tmp_path).attempt(Source("p.jst", program + "print(t.columns)\n"))
        told = render_all(result.diagnostics, colour=False, width=200) + str(result.output) + str(result.events)
        assert [d.kind for d in result.diagnostics] == ["DataError"]
        for part in (SECRET, "Xaver", "8675309", "42", "HIV", "Bob"):
            assert part not in told.replace(str(tmp_path), ""), told  # its number may be 42


def test_names_that_types_have_are_listed_and_those_of_a_first_line_are_not(tmp_path: Path) -> None:
    frame, helps = pd.DataFrame({"xaver": [42], "town": ["Ames"]}), {}
    frame.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_bytes((tmp_path / "a.parquet").read_bytes())
    frame.to_csv(tmp_path / "c.db", index=False)
    for file in ("a.parquet", "b.csv", "c.db"):
        program = f'private t = table("{file}") described by {{age: 0..9}} protecting rows budget epsilon 1\n'
        (fault,) = Session(cwd=tmp_path).attempt(Source("p.jst", program)).diagnostics
        helps[file] = fault.help
    assert helps["a.parquet"] == helps["b.csv"] == "the columns are xaver, town" and "xaver" not in helps["c.db"]


@pytest.mark.attack("private keys, schema and header")
@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_a_line_that_a_program_takes_for_the_header_is_not_shown(tmp_path: Path, ending: str) -> None:
    """By a check and a run: the message told the cells of any row, line by line, for nothing."""
    frame = pd.DataFrame({"name": ["Ann", "Ben"], "town": ["Ames", "Cork"]})
    (frame.to_csv if ending == "csv" else frame.to_excel)(tmp_path / f"t.{ending}", index=False)
    for line in (2, 3):
        program = f'private t = table("t.{ending}", header = {line}) described by {{nam: text, Anna: text}} '
        source = Source(str(tmp_path / "p.jst"), f"{program}protecting rows budget epsilon 1\n")
        for faults in (Session(cwd=tmp_path).check(source), Session(cwd=tmp_path).attempt(source).diagnostics):
            told = "".join(f"{fault.message}{fault.help}" for fault in faults).replace("`Anna`", "")
            assert not [cell for cell in ("Ann", "Ben", "Ames", "Cork") if cell in told], told
    far = Source("p.jst", program.replace("header = 3", "header = 101") + "protecting rows budget epsilon 1\n")
    assert "from 1 to 100" in Session(cwd=tmp_path).attempt(far).diagnostics[0].message


@pytest.mark.attack("private keys, schema and header")
def test_columns_that_are_not_described_do_not_exist(attempt: Attempt) -> None:
    rows = "a,r,c,d,salary\n1,1,x,2010,123456\n"
    for program in (
        "x = {{ select sum(salary) from t with epsilon 1 }}",
        "x = {{ select count(*) from t where salry > 1 with epsilon 1 }}",
        'x = t[salary = 1]', 'for k, p in partition(t, salary, over = {1}) { print(k) }',
        "h = histogram(t, x = salary)",
        "d = pick(t, salary)", "d = derive(t, e = salary)",
        'n = "salary"\nx = {{ select sum(n) from t with epsilon 1 }}',
    ):  # fmt: skip
        result = attempt(T + program, t=rows)
        told = render_all(result.diagnostics, colour=False, width=200).replace(program, "")
        assert [d.kind for d in result.diagnostics][:1] == ["NameError"], program
        assert "123456" not in told and "did you mean `salary`" not in told


@pytest.mark.attack("private keys, schema and header")
def test_a_domain_too_large_to_hold_is_refused_before_memory_is_taken(attempt: Attempt) -> None:
    declared = T.replace("a: 0..9", "a: 0..1000000000000")
    for program in ("x = {{ select count(*) as n from t groupby a with epsilon 1 }}", "h = histogram(t, x = a)",
                    "for k, p in partition(t, a) { print(k) }", "g = histogram(t, x = a / 1e6, y = a / 1e6)",
                    "x = {{ select mode(a) from t with epsilon 1 }}"):  # fmt: skip
        result = attempt(declared + program, t="a,r,c,d\n")
        assert [d.kind for d in result.diagnostics] == ["ValueError"], (program, result.diagnostics)
