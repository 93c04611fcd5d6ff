"""`jostle run --explain`: the plan, the price and the form of the SQL of each statement, and nothing of any row."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from jostle.diagnostics import Refusal
from jostle.plan.cuts import expression
from jostle.plan.plan import Apply, Column, Constant
from jostle.source import Source
from jostle.tools.statements import Explanation, explained

PROGRAM = """private people = table("people.csv")
    described by {age: 16..79, city: {"Ames", "Cork"}, w: 0.0..9.5, day: date}
    protecting who up to 2 rows budget epsilon 9
towns = table("towns.csv")
n = {{ select count(*) as n, avg(w) as m from people where age > 50 groupby city with epsilon 1 }}
with epsilon 2:
    m = {{ select median(age) from people }}
ages = histogram(people, x = age)
v = laplace(ages, epsilon = 0.5)
again = laplace(ages, epsilon = 0.5)
joined = {{ select sum(size) from people join towns on city where weekday(day) == 1 with epsilon 1 }}
each = {{ select count(*) from (select sum(w) as spent from people per person) groupby spent with epsilon 1 }}
"""
ROWS = {
    "few": ["1,20,Ames,0.5,2024-01-01", "1,20,Ames,0.5,2024-01-01", "1,60,Cork,1.5,"],
    "many": [f"p{i % 9},{i % 90},{'Cork' if i % 3 else ''},{i / 7},2024-01-0{i % 9 + 1}" for i in range(3000)],
    "hostile": ["1,nan,A,inf,x", "-0,1e400,Ames,-0,0000-00-00", '"', ",,,,"],
}
ENGINES = {"DuckDB": "", "Spark": "sc://nowhere:1", "PostgreSQL": "postgresql://nowhere/none"}


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What the command prints where `people.csv` has the rows of a name."""
    from jostle.tools.entry import main

    monkeypatch.chdir(tmp_path)
    Path("p.jst").write_text(PROGRAM)
    Path("towns.csv").write_text("city,size\nAmes,10\nCork,30\n")

    def call(rows: str, *words: str) -> str:
        Path("people.csv").write_text("\n".join(["who,age,city,w,day", *ROWS[rows]]) + "\n")
        assert main(["run", "p.jst", "--explain", *words]) == 0
        return capsys.readouterr().out

    return call


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_do_not_show(told: Callable[..., str], engine: str) -> None:
    words = ("--engine", ENGINES[engine]) if ENGINES[engine] else ()
    first = told("few", *words)
    assert f"it is for {engine}\n" in first and first.count("\nline ") == 6
    assert told("many", *words) == told("hostile", *words) == first
    assert json.loads(told("few", *words, "--format", "json"))["dialect"] == engine


def test_a_statement_has_its_price_its_plan_and_its_form(told: Callable[..., str]) -> None:
    lines = told("few").splitlines()
    first = lines.index(next(line for line in lines if line.startswith("line 5:")))
    assert lines[first + 1 : first + 8] == [
        "  count: ε 0.5 of people, laplace, noise of scale 4",
        "  avg: ε 0.5 of people, laplace, noise of scale 38",
        "  plan",
        '    number of rows; sum of w - 4.75 clamped to -4.75..4.75, in steps of 2^-25; number of w by city of {"Ames",'
        ' "Cork"}',
        "      where age > 50",
        "        of persons identified by who: at most 2 rows of each, by a hash of the row",
        "          rows of people, cleaned to "
        '{age: 16..79, city: {"Ames", "Cork"}, w: 0.0..9.5, day: date}',
    ]  # fmt: skip
    assert (
        "of people, r0 is age (BIGINT), r1 is city (VARCHAR), r2 is w (DOUBLE), r3 is day (DATE), r4 is who (VARCHAR)"
        in lines
    )
    again = next(i for i, line in enumerate(lines) if line.startswith("line 10:"))
    assert lines[again + 2] == "  nothing is read for it: what it needs was counted before"
    assert "inner join on city" in "\n".join(lines) and "a row for each person: ·0 = sum of w" in "\n".join(lines)


def test_forms_run_and_count_what_the_plan_says() -> None:
    known = explained(Source("p.jst", PROGRAM), {}, "")
    (view,) = known.views
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE people AS SELECT * FROM (VALUES (60, 'Ames', 1.5, DATE '2024-01-01', '1'), "
        "(99, 'Ames', 99.0, NULL, '2'), (20, 'Cork', 1.0, NULL, '3'), "
        "(61, 'Cork', 3.0, NULL, NULL)) AS v(r0, r1, r2, r3, r4)"
    )
    connection.execute(f"CREATE TABLE {view[0]} AS {view[1]}")
    (count,) = known.statements[0].queries
    steps = 2**25
    expected = [("Ames", 2, str(round((1.5 - 4.75) * steps) + round(4.75 * steps)), 2)]
    assert connection.execute(count.sql).fetchall() == expected
    (median,) = known.statements[1].queries
    assert sorted(connection.execute(median.sql).fetchall()) == [(20, 1), (60, 1), (79, 1)]


def test_what_an_engine_cannot_do_is_said_with_the_statement() -> None:
    text = PROGRAM.replace("protecting who", "protecting w")
    assert "refused" not in str(explained(Source("p.jst", text), {}, ""))
    known = explained(Source("p.jst", text), {}, "sc://nowhere:1")
    assert known.statements[0].queries[0].refused.startswith("Spark cannot write a number")
    assert "refused: Spark" in str(known) and "refused" in json.dumps(known.as_json())


def test_an_unknown_url_and_a_program_without_statements() -> None:
    with pytest.raises(Refusal, match="of no kind that is known"):
        explained(Source("p.jst", PROGRAM), {}, "mysql://x")
    empty: Explanation = explained(Source("p.jst", "print(1)\n"), {}, "")
    assert str(empty).endswith("no statement is known before it runs") and not empty.as_json()["statements"]


def test_the_command_refuses_what_a_check_refuses_and_other_ways_to_run(
    told: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    from jostle.tools.entry import main

    told("few")
    for other in (["--dry"], ["--simulate"], ["--trace", "t.jsonl"]):
        assert main(["run", "p.jst", "--explain", *other]) == 2
    Path("p.jst").write_text(PROGRAM.replace("where age", "where ages"))
    assert main(["run", "p.jst", "--explain"]) == 1
    assert "where age >" in capsys.readouterr().err.partition("help: write `")[2]
    assert main(["run", "p.jst", "--explain", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["ok"] is False


def test_expressions_are_written_as_programs_write_them() -> None:
    x, one = Column("x"), Constant(1.0)
    product = Apply("*", (Apply("+", (x, one)), Apply("neg", (x,))))
    assert expression(product) == "(x + 1) * -x"
    assert (
        expression(Apply("if", (Apply("not", (x,)), Constant(None), Constant('a"b')))) == 'none if (not x) else "a\\"b"'
    )
    assert expression(Apply("in", (x, one, Constant(True)))) == "x in [1, true]"
    assert expression(Apply("clamp", (x, Constant(0.5), one))) == "clamp(x, 0.5, 1)"


def test_of_a_long_list_some_values_are_shown() -> None:
    """Buckets of likely keys, a sixth of 16,384, were written out in each of three rounds."""
    text = 'private t = table("t.csv") described by {a: text, who: text} protecting who budget epsilon 9, delta 1e-6\n'
    text += "g = {{ select a from t groupby a up to 3 groups with epsilon 1 delta 1e-7 }}\n"
    shown = str(explained(Source("p.jst", text), {}, ""))
    assert re.search(r"in \[-1, (\d+, ){7}…", shown) and len(shown) < 30_000
    assert re.search(r"IN \(\(-1.0e0\), (\(\d+.0e0\), ){7}…", shown)
