"""Neighbouring inputs under blind noise: nothing that can be seen of a run may differ by one byte.

What noise answers is fixed, so whatever differs between two runs has flowed past the measurements. The inputs are
not just neighbours: rows that somebody wrote to break the reader come and go together, and one by one.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from arena import Arena, table
from hostile import DESCRIBED, PEOPLE, ROWS, people, versions

from jostle.documentation.entries import programs as examples_of
from programs import PROGRAMS

pytestmark = pytest.mark.attack("neighbouring inputs, compared byte for byte")

CITIES = table("city", "region", rows=["Ames,north", "Cork,south", "Cork,north", "Delft,north", "Nowhere,none"])
NAMES = list(PROGRAMS)


def same(one: str, other: str, what: str) -> None:
    if one != other:
        shown = "\n".join(list(difflib.unified_diff(one.split("\n"), other.split("\n"), lineterm="", n=1))[:40])
        pytest.fail(f"{what} shows:\n{shown}")


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_row_is_hidden(arena: Arena, name: str) -> None:
    arena.write({"cities.csv": CITIES, "t.csv": people()})
    expected = arena.see(PROGRAMS[name])
    stops = name.startswith(("stopped", "mistakes"))
    assert expected.result.ok != stops, expected.text[-3000:]
    assert expected.draws or expected.kinds == ["UnboundedSum"]
    for what, content in versions().items():
        arena.write({"t.csv": content})
        same(expected.text, arena.see(PROGRAMS[name]).text, what)
    for i, (what, row) in enumerate(ROWS.items()):
        if i % len(NAMES) % 11 == NAMES.index(name) % 11:
            arena.write({"t.csv": people(row)})
            same(expected.text, arena.see(PROGRAMS[name]).text, what)


DATA = Path(__file__).resolve().parents[2] / "programs" / "data"
HOSTILE = ("nan", "", "1e400", "-inf", "9" * 30, "-0.0", "\0", '"', "x" * 70_000, "2024-02-30", "true", "'); --")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*examples_of()} - {"language", "words"}))
def test_examples_of_the_library_hide_a_row(arena: Arena, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every function of the library, by its example, on 120 rows of each file, with and without a hostile row and one
    of others' cells; of people, under a pure epsilon, no more is lost than was charged."""
    monkeypatch.chdir(arena.folder)
    lines = {file.name: file.read_bytes().split(b"\n")[:121] for file in DATA.glob("*.csv")}
    (arena.folder / "data").mkdir()
    for file, rows in (lines | {"people_too.csv": lines["village.csv"]}).items():
        (arena.folder / "data" / file).write_bytes(b"\n".join(rows) + b"\n")
    (arena.folder / "visits.csv").write_text("who,floors,cost,day,seen\nAnn,2,1.5,2024-05-17,2024-05-17T14:30\n")
    bound = {"notes": {"writer": ["Ann", "Ben"], "text": ["one two three", "one two"]}}
    program = examples_of()[name]
    expected = arena.see(program, bound=bound)
    draws = [draw for draw in expected.draws if draw.kind not in ("sample", "walk")]
    for file in sorted({*re.findall(r'private \w+ = table\("data/(\w+\.csv)"', program)} & {*lines}):
        cells = [line.decode().split(",") for line in lines[file][1:] if line]
        own = [cells[(7 * k) % len(cells)][k] for k in range(len(cells[0]))]
        for row in ([HOSTILE[k % len(HOSTILE)] for k in range(len(own))], own):
            content = b"\n".join(lines[file]) + b"\n" + ",".join(row).encode() + b"\n"
            (arena.folder / "data" / file).write_bytes(content)
            seen = arena.see(program, bound=bound)
            if name != "gradual":  # what is refined adds noise to what it released before
                same(expected.text, seen.text, f"{file} with {row}")
            if file == "people.csv" and name not in ("gradual", "selection"):
                pairs = zip(draws, (draw for draw in seen.draws if draw.kind not in ("sample", "walk")), strict=True)
                assert sum(one.loss(two) for one, two in pairs) <= seen.spent("people") * (1 + 1e-9), (file, row)
        (arena.folder / "data" / file).write_bytes(b"\n".join(lines[file]) + b"\n")


@pytest.mark.parametrize("row", ROWS)
def test_a_row_by_itself(arena: Arena, row: str) -> None:
    program = PROGRAMS["texts"] + PROGRAMS["groups"].split("\n", 1)[1]
    arena.write({"t.csv": people()})
    expected = arena.see(program)
    assert expected.draws
    arena.write({"t.csv": people(ROWS[row])})
    same(expected.text, arena.see(program).text, row)


def test_a_row_that_is_replaced_where_the_size_is_public(arena: Arena) -> None:
    program = f"""
private t = table("t.csv") described by {DESCRIBED} protecting rows, public size budget epsilon 9
print({{{{ select count(*) from t }}}}, spent(t))
print({{{{ select count(*) as n, avg(age) as a, median(hours) as h from t groupby sex with epsilon 3 }}}})
print(noisy_max([size(p[1]) for p in partition(t, city)]) with epsilon 1)
"""
    arena.write({"t.csv": people()})
    expected = arena.see(program)
    assert expected.result.output[0] == "60 0"
    for what, row in ROWS.items():
        lines = len([line for line in row.split(b"\n") if line.strip(b"\r")])
        arena.write({"t.csv": people(row, rows=PEOPLE[lines:])})
        same(expected.text, arena.see(program).text, what)


FRAME = """
private t = bound("people") described by {age: 0..99, income: real, city: {"Ames", "Cork"}, born: text, any: text}
    protecting rows budget epsilon 20
n = {{ select count(age) as a, count(income) as b, count(city) as c, count(distinct born) as d, count(any) as e,
       sum(clamp(income, 0, 9)) as f, avg(age) as g, count(distinct born, any, income) as h from t with epsilon 5 }}
print(n)
print({{ select count(*) as n from t groupby city, age / 50 as half with epsilon 5 }})
print({{ select median(age) from t where born > "1970" with epsilon 5 }})
"""


def frame(*more: tuple[object, ...]) -> pd.DataFrame:
    rows = [(float(k % 90), float(k), "AC"[k % 2], f"19{50 + k}-01-01", k) for k in range(20)]
    columns = zip(("age", "income", "city", "born", "any"), zip(*rows, *more, strict=True), strict=True)
    kinds = {"age": float, "income": float}
    return pd.DataFrame({name: pd.Series(list(cells), dtype=kinds.get(name, object)) for name, cells in columns})


ODD_OBJECTS: list[tuple[object, ...]] = [
    (float("nan"), float("inf"), None, float("nan"), 10**400),
    (-0.0, 5e-324, 7, b"\xff\xfe", {"a": [1]}),
    (1e308, -1e308, "", "\udc80", object()),
    (-1e308, 1e308, True, pd.NaT, np.float64("nan")),
    (1.0, 1.0, "Ames\0", pd.Timestamp("2262-04-11"), (1, 2)),
]


def test_frames_in_memory(arena: Arena) -> None:
    expected = arena.see(FRAME, bound={"people": frame()})
    assert expected.result.ok, expected.text
    for row in ODD_OBJECTS:
        same(expected.text, arena.see(FRAME, bound={"people": frame(row)}).text, repr(row))
    same(expected.text, arena.see(FRAME, bound={"people": frame(*ODD_OBJECTS)}).text, "all of them")


def test_parquet_files(arena: Arena) -> None:
    import datetime
    import decimal

    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [("age", pa.float64()), ("income", pa.decimal128(38, 2)), ("city", pa.string()), ("born", pa.timestamp("us")),
         ("any", pa.list_(pa.int32()))]
    )  # fmt: skip
    plain = [(1.0, decimal.Decimal("2.00"), "Ames", datetime.datetime(1970, 1, 1), [1])] * 9
    odd = [
        (float("nan"), None, None, None, None),
        (float("inf"), decimal.Decimal("9" * 36 + ".99"), "", datetime.datetime.max, []),
        (-0.0, decimal.Decimal("-" + "9" * 36), "Ames\0", datetime.datetime.min, [None] * 1000),
        (1e308, decimal.Decimal("0"), "\u202e", datetime.datetime(1, 1, 1), [2**31 - 1]),
    ]

    def write(rows: list[tuple[object, ...]]) -> None:
        columns = list(zip(*rows, strict=True))
        made = [pa.array(c, type=f.type) for c, f in zip(columns, schema, strict=True)]
        pq.write_table(pa.table(made, schema=schema), arena.folder / "t.parquet")

    program = FRAME.replace('bound("people")', 'table("t.parquet")').replace(", any: text", "")
    program = program.replace("count(any) as e,\n       ", "").replace("distinct born, any,", "distinct born,")
    write(plain)
    expected = arena.see(program)
    assert expected.result.ok, expected.text
    for more in ([row] for row in odd):
        write([*plain, *more])
        same(expected.text, arena.see(program).text, repr(more))
    write([*plain, *odd])
    same(expected.text, arena.see(program).text, "all of them")


def test_text_in_parquet_that_is_no_utf_8(arena: Arena) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def write(*born: bytes) -> None:
        texts = pa.array(list(born), type=pa.binary()).cast(pa.string(), safe=False) if b"\xff" not in born else None
        if texts is None:
            raw = pa.array(list(born), type=pa.binary())
            texts = pa.Array.from_buffers(pa.string(), len(born), raw.buffers())
        pq.write_table(pa.table({"age": pa.array([float(k) for k in range(len(born))]), "born": texts}), path)

    path = arena.folder / "t.parquet"
    program = (
        'private t = table("t.parquet") described by {age: 0..9, born: text} protecting rows budget epsilon 3\n'
        'n = {{ select count(*) as a, count(born) as b from t where born > "0" or age >= 0 with epsilon 1 }}\n'
        "print(n)\nprint({{ select median(age) from t with epsilon 1 }})\n"
    )
    write(b"1970", b"1971")
    expected = arena.see(program)
    assert expected.result.ok, expected.text
    write(b"1970", b"1971", b"\xff")
    same(expected.text, arena.see(program).text, "a text that is no UTF-8")


def test_counts(arena: Arena) -> None:
    program = """
use histograms
private c = counts("c.npy") protecting rows budget epsilon 20
print(laplace(c) with epsilon 1)
print(hb(c, prefixes(c)) with epsilon 1)
print({{ select sum(values) as s, max(values) as m from c groupby x / 2 with epsilon 1 }})
print({{ select count(values) from c where values >= 3 with epsilon 1 }})
print(noisy_max([size(c), largest_cell(c), nonzero(c), l1_to_uniform(c), l2(c)]) with epsilon 1)
print(mwem(c, ranges(c, 5), 2) with epsilon 1)
"""
    plain = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0])
    np.save(arena.folder / "c.npy", plain)
    expected = arena.see(program)
    assert expected.result.ok, expected.text
    for odd in (np.nan, np.inf, -np.inf, -1.0, 0.5, 1e300, -0.0, 5e-324, 2.0**53 + 2):
        np.save(arena.folder / "c.npy", np.where(plain == 9, odd, plain))
        same(expected.text, arena.see(program).text, repr(odd))


def test_the_harness_sees_a_flow_past_the_noise(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were noise left out of one kind of measurement, or its scale made to fit the data, two runs would differ."""
    from jostle.privacy.mechanisms.additive import Linear
    from jostle.records import replace

    drawn = Linear.release
    for broken in (
        lambda vector, exact, *rest: np.asarray(exact, float) + 0 * drawn(vector, exact, *rest),
        lambda vector, exact, *rest: drawn(replace(vector, l1=vector.l1 + abs(int(np.sum(exact)))), exact, *rest),
    ):
        monkeypatch.setattr(Linear, "release", broken)
        arena.write({"t.csv": people()})
        expected = arena.see(PROGRAMS["groups"])
        arena.write({"t.csv": people(b"1,2,Male,Ames,3,4,5,6")})
        assert expected.text != arena.see(PROGRAMS["groups"]).text
        monkeypatch.undo()
        arena = Arena(arena.folder, monkeypatch)


CLI = ("a choice", "stopped by the budget", "stopped by an assertion", "groups", "keys that are found", "joins",
       "stopped by arithmetic", "mistakes after looking")  # fmt: skip


@pytest.mark.parametrize(("name", "form"), [*((name, "text") for name in CLI), ("groups", "json"), (CLI[1], "json")])
def test_the_command_line_and_its_trace(arena: Arena, cli: object, name: str, form: str) -> None:
    """Standard output, standard error, exit status, the trace file, and its renderings."""

    def told(content: bytes) -> str:
        arena.noise.draws = []
        arena.write({"t.csv": content, "cities.csv": CITIES, "p.jst": PROGRAMS[name].encode()})
        run = cli(arena.folder, "run", "p.jst", "--trace", "r.jsonl", "--format", form)  # type: ignore[operator]
        pages = [cli(arena.folder, "trace", "r.jsonl", *more) for more in ((), ("--budget",))]  # type: ignore[operator]
        files = sorted(str(p.relative_to(arena.folder)) for p in Path(arena.folder).rglob("*") if p.is_file())
        seen = "\n".join(map(str, (run, (arena.folder / "r.jsonl").read_text(), pages, files)))
        return re.sub(r"\d+-\d+\.json; `jostle again`", "RUN.json; `jostle again`", seen)  # named by the clock

    told(people())  # trains, where there is something to train
    expected = told(people())
    assert '"kind": "measure"' in expected or "UnboundedSum" in expected
    for what, content in versions().items():
        same(expected, told(content), what)


def test_the_repl(arena: Arena, cli: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an interactive session shows of names, mistakes and budgets."""
    import io
    import sys

    typed = (
        PROGRAMS["counts of every kind"]
        + "t\n[t, 1]\nt.columns\nhistogram(t, x = age)\ntotal(histogram(t, x = age))\nprint(t)\nt == t\nlen(t)\n"
        "{{ select count(*) from t with epsilon 1 }}\n{{ select age from t with epsilon 1 }}\n:budget\n"
    )

    def told(content: bytes) -> object:
        arena.noise.draws = []
        arena.write({"t.csv": content})
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        return cli(arena.folder, "repl")  # type: ignore[operator]

    expected = told(people())
    for what, content in versions().items():
        same(str(expected), str(told(content)), what)
