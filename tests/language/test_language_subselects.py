"""Tables that a query itself gives: selects of columns after `from` and `join`, `with big as (…)`, `select *`; and
columns of joined tables by their full names. What they mean is what DuckDB's SQL means, word for word."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from jostle.source import Source
from jostle.tools.session import Session

DECLARED = """
private x = table("x.parquet") described by {{id: text, k: 0..9, item: {{"a", "b", "c"}}, v: 0..99}}
    protecting {} budget epsilon 1e9
private own = table("own.parquet") described by {{id: text, k: 0..9, item: {{"a", "b", "c"}}, v: 0..99}}
    protecting {}
y = table("y.parquet") described by {{k: 0..9, item: {{"a", "b", "c"}}, w: 0..9}}
z = table("z.parquet") described by {{k: 0..9, v: 0..99}}
"""
FROM = [
    "(select v as a, item as i from x where v > 40) where i = 'b' and a < 90",
    "(select v * 2 as v, v as a from x) where v = a * 2 and v > 50",
    "(select * from x where v > 40) where item = 'b'",
    "(select *, v * 2 as d from x q where q.v > 40) as q where q.d < 150 and q.item <> 'a'",
    "(select a from (select v as a, item from x) where item = 'c') where a > 10",
    "(select y.item as theirs, x.item as mine from x join y on x.k = y.k) where theirs <> mine",
    "x join y on x.k = y.k where y.item = 'b' and x.item = 'a'",
    "x left join y on x.k = y.k where y.k is null",
    "x left join y on x.k = y.k where y.k is not null and y.item = x.item",
    "x left join y on x.k = y.k where y.item is null and x.item = 'a'",
    "y right join x on x.k = y.k where y.k is null",
    "x join y on x.k = y.k left join z on x.k = z.k where z.k is null and y.item = 'b'",
    "x join y on x.k = y.k join z on y.k = z.k where z.v > x.v and y.item = 'b'",
    "x join (select k as kk, item as i from y where w > 3) s on x.k = s.kk where s.i = x.item",
    "x left join (select k, item from y where w > 3) s on x.k = s.k where s.k is null",
    "x where k in (select k from y where w > 3)",
    "x where x.k not in (select k from y where w > 3) and v > 20",
    "x where v in (select distinct v from z) and item in (select item from y where w > 2) and k < 9",
    "y where k in (select k from z where v > 50)",
    "x join y on x.k = y.k where y.k in (select k from z where v > 9) and x.v not in (select v from z)",
    "(select * from x where k in (select k from z where v > 50)) where v not in (select v from z where k < 3)",
    "x where k in (select k from y group by k having count(*) > 2)",
    "x join (select k, w from y where k in (select k from z)) s on x.k = s.k where s.w > 2",
]
WITH = [
    "with big as (select * from x where v > 50) select count(*) as n from big",
    "with b as (select v as a, k from x), c as (select a, k from b where a > 20) select count(*) from c where k < 5",
    "with b as (select k, item from x where v > 9) select count(*) from b t join y on t.k = y.k where t.item = y.item",
    "with s as (select k from y where w > 3) select count(*) as n from x left join s on x.k = s.k where s.k is null",
    "with y as (select * from x where v > 90) select count(*) as n from y",
    "with s as (select k from y where w > 3) select count(*) as n from x where k in (select k from s where k > 1)",
]
OWN = [  # of a person's own rows
    "x join own on x.id = own.id where x.item = 'a' and own.item = 'b'",
    "x a join x b on a.id = b.id where a.item = 'a' and b.item = 'b' and a.v < b.v",
    "x left join own on x.id = own.id where own.id is null",
    "x join (select id, sum(v) as total from x group by id) s on x.id = s.id where s.total > 100 and x.item = 'a'",
    "x where id in (select id from own where item = 'b')",
    "x where item = 'a' and id not in (select id from own where v > 50) and id in (select id from x where v > 70)",
    "own where id in (select id from x group by id having sum(v) > 200)",
    "x where k in (select k from y where w > 3) and id in (select id from own)",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng, path = np.random.default_rng(5), tmp_path_factory.mktemp("tables")

    def table(rows: int, most: int = 10) -> pd.DataFrame:
        frame = pd.DataFrame({
            "id": [f"p{i}" for i in rng.integers(0, 60, rows)], "k": rng.integers(0, most, rows),
            "item": rng.choice(list("abc"), rows), "v": rng.integers(0, 100, rows), "w": rng.integers(0, 10, rows),
        })  # fmt: skip
        return frame

    table(200).drop(columns="w").to_parquet(path / "x.parquet")
    table(80).drop(columns="w").to_parquet(path / "own.parquet")
    table(12, 7)[["k", "item", "w"]].to_parquet(path / "y.parquet")
    table(6, 5)[["k", "v"]].to_parquet(path / "z.parquet")
    return path


def declared(protecting: str) -> str:
    """Both tables by rows, or by persons who are the same."""
    return DECLARED.format(protecting, "rows budget epsilon 1e9" if protecting == "rows" else "x.id up to 30 rows")


def asked(folder: Path, select: str, protecting: str) -> int:
    text = declared(protecting) + f"release n = {{{{ {select} with epsilon 1e6 }}}}\n"
    return round(Session(cwd=folder).run_text(text).released["n"])


def expected(folder: Path, select: str) -> int:
    with duckdb.connect() as database:
        for name in ("x", "own", "y", "z"):
            database.execute(f"create view {name} as from '{folder / name}.parquet'")
        return int(database.execute(select).fetchall()[0][0])


@pytest.mark.parametrize("source", FROM)
def test_rows_after_from_are_those_of_sql(source: str, folder: Path) -> None:
    select = f"select count(*) as n from {source}"
    truth = expected(folder, select)
    assert truth > 0 and asked(folder, select, "rows") == truth


@pytest.mark.parametrize("select", WITH)
def test_with_names_tables_of_a_query(select: str, folder: Path) -> None:
    truth = expected(folder, select)
    assert truth > 0 and asked(folder, select, "rows") == truth


@pytest.mark.parametrize("source", OWN)
def test_own_rows_of_a_person_are_told_apart_by_full_names(source: str, folder: Path) -> None:
    select = f"select count(*) as n from {source}"
    truth = expected(folder, select)
    assert truth > 0 and asked(folder, select, "id up to 30 rows") == truth


@pytest.mark.parametrize("column", ["", "id: text, "])
@pytest.mark.parametrize("select", [
    "select count(*) from people where id in (select customer from bought where v > 50)",
    "select count(*) from people where k = 1 and id in (select customer from bought where v > 3)",
    "select count(*) from people join (select customer, sum(v) as s from bought group by customer) on id = customer "
    "where s > 9",
])  # fmt: skip
def test_the_column_of_persons_need_not_be_described(select: str, column: str, folder: Path, tmp_path: Path) -> None:
    with duckdb.connect() as database:
        database.execute(f"create table bought as select id as customer, v from '{folder / 'own.parquet'}'")
        database.execute(f"create table people as select distinct id, 1 as k from '{folder / 'x.parquet'}'")
        for name in ("people", "bought"):
            database.execute(f"copy {name} to '{tmp_path / name}.csv'")
        (truth,) = database.execute(select).fetchall()[0]
    text = """
private people = table("people.csv") described by {COLUMN k: 0..1} protecting id up to 1 row budget epsilon 1e9
private bought = table("bought.csv") described by {v: 0..99} protecting people.id on customer
release n = {{ SELECT with epsilon 1e6 }}
""".replace("COLUMN", column).replace("SELECT", select)
    assert truth > 0 and round(Session(cwd=tmp_path).run_text(text).released["n"]) == truth


@pytest.mark.parametrize("column", ["", "who: text, "])
@pytest.mark.parametrize("who", ["who", "person"])
def test_whom_a_list_lacks_need_not_be_described_either(who: str, column: str, tmp_path: Path) -> None:
    """Rows of nobody are in no table of persons, and so neither in a list nor out of it."""
    (tmp_path / "t.csv").write_text("who,x\na,1\na,20\nb,2\nb,3\n,5\n,30\nc,40\nd,4\n")
    source = f'table("t.csv") described by {{{column}x: 0..50}} protecting who up to 5 rows budget epsilon 1e9'
    for condition, truth in ((who, 3), (f"{who} not", 3), (f"x < 4 and {who} not", 2)):
        select = f"select count(*) from t where {condition} in (select {who} from t where x > 10)"
        text = f"private t = {source}\nrelease n = {{{{ {select} with epsilon 1e6 }}}}\n"
        assert round(Session(cwd=tmp_path).run_text(text).released["n"]) == truth


def test_keys_by_full_names(folder: Path) -> None:
    text = declared("rows") + (
        "g = {{ select y.item, count(*) as n from x join y on x.k = y.k group by y.item with epsilon 1e6 }}\n"
        "release item = g.item\nrelease n = g.n\n"
    )
    released = Session(cwd=folder).run_text(text).released
    counts = [expected(folder, f"select count(*) from x join y on x.k = y.k where y.item = '{one}'") for one in "abc"]
    assert released["item"] == list("abc") and [round(n) for n in released["n"]] == counts


def test_a_column_may_be_called_as_a_full_name_is_written(tmp_path: Path) -> None:
    text = """
a = table([{k: 1, x: 5}, {k: 2, x: 6}])
b = table([{k: 1, x: 2, `b.x`: 7}, {k: 2, x: 3, `b.x`: 8}])
release one = {{ select sum(b.x) from a join b on k }}
release other = {{ select sum(`b.x`) from a join b on k }}
"""
    assert Session(cwd=tmp_path).run_text(text).released == {"one": 5, "other": 15}


@pytest.mark.parametrize(
    ("select", "kind", "words"),
    [
        ("select * from x", "PrivateValue", "would hand out rows"),
        ("select count(*) from (select sum(v) from x)", "TypeError", "is of all rows"),
        ("select count(*) from (select v, v from x)", "NameError", "are named `v`"),
        ("select count(*) from (select v as a, item as a from x)", "NameError", "are named `a`"),
        ("select count(*) from (select v as a from x) where v > 1", "NameError", "no column `v`"),
        ("with t as (select count(*) as n from x with epsilon 1) select sum(n) from t", "SyntaxError", "has no amount"),
        ("with t as (select nothing from x) select count(*) from t", "NameError", "nothing"),
        ("select count(*) from x a join y b on k where a.k = b.nothing", "NameError", "nothing"),
        ("select count(*) from x where k in (select nothing from y)", "NameError", "nothing"),
        ("select count(*) from x where k in (select k, w from y)", "SyntaxError", "is one column"),
        ("select count(*) from x where k in (select k from y) or v > 3", "SyntaxError", "looked up in a list"),
        ("select count(*) from x where not k in (select k from y)", "SyntaxError", "looked up in a list"),
        ("select count(*) from x where v in (select v from own)", "TypeError", "only persons are looked up"),
    ],
)
def test_mistakes_are_refused_before_anything_is_charged(select: str, kind: str, words: str, folder: Path) -> None:
    session = Session(cwd=folder)
    text = declared("rows") + f"n = {{{{ {select} with epsilon 1 }}}}\n"
    (one, *_) = session.attempt(Source("text", text)).diagnostics
    assert one.kind == kind and words in one.message
    assert {budget["epsilon"]["spent"] for budget in session.budget().values()} <= {"0"}


def test_a_select_of_rows_has_a_name_and_is_as_private(folder: Path) -> None:
    """Such as joined rows for a function of the library, which no other form names."""
    text = declared("rows") + (
        "own = {{ select item, v + 1 as more from x left join y on x.k = y.k where v > 2 }}\n"
        "all = {{ select * from own }}\n"
        "release n = {{ select count(*) from all where more > 3 with epsilon 1e6 }}\n"
    )
    session = Session(cwd=folder)
    n = session.run_text(text).released["n"]
    assert n == expected(folder, "select count(*) from x left join y on x.k = y.k where v > 2") > 0
    for use in ("print(own)", "release r = own", "a = [row for row in own]", "a = len(own)", "a = own == own"):
        (one, *_) = Session(cwd=folder).attempt(Source("text", f"{text}{use}\n")).diagnostics
        assert one.kind == "PrivateValue", use
    public = 'places = table("towns.csv")\nbig = {{ select town, people / 2 as half from places where people > 2 }}\n'
    (folder / "towns.csv").write_text("town,people\nAmes,2\nCork,4\nOslo,6\n")
    released = Session(cwd=folder).run_text(public + "release halves = [row.half for row in big]").released
    assert list(released["halves"]) == [2, 3]


@pytest.mark.parametrize("described", ["", ", nr: text"])
def test_protected_columns_join_the_rows_of_a_person_described_or_not(described: str, tmp_path: Path) -> None:
    pd.DataFrame({"nr": range(9), "town": ["a", "b", "c"] * 3}).to_csv(tmp_path / "p.csv", index=False)
    pd.DataFrame({"whose": [i % 9 for i in range(40)], "v": range(40)}).to_csv(tmp_path / "r.csv", index=False)
    text = f"""private p = table("p.csv") described by {{town: {{"a", "b", "c"}}{described}}} protecting nr up to 1 row
    budget epsilon 1e9
private r = table("r.csv") described by {{v: 0..99{described.replace("nr", "whose")}}} protecting p.nr on whose
release s = {{{{ select sum(v) from r join p on whose = nr where town = "b" up to 9 rows with epsilon 1e7 }}}}
"""
    truth = sum(v for v in range(40) if v % 3 == 1)
    assert Session(cwd=tmp_path).run_text(text).released["s"] == pytest.approx(truth, abs=0.1)


@pytest.mark.parametrize("query", [
    "select count(*) from (select count(*) as n from items per of_order)", "select count(distinct of_order) from items",
    "select count(*) from items join items on of_order",
    "select count(*) from items where of_order in (select of_order from items)",
    "select count(*) from days join days on whose", "select count(distinct whose) from days",
    "select count(*) from (select count(*) as n from days group by whose)",
])  # fmt: skip
def test_a_protected_column_is_not_that_of_persons_where_it_looks_them_up_or_periods_tell_them_apart(
    query: str, tmp_path: Path
) -> None:
    """Three numbers of two persons were counted as two, and one person of two weeks as two, without a word."""
    (tmp_path / "orders.csv").write_text("whose,order\na,1\na,2\nb,3\n")
    (tmp_path / "items.csv").write_text("of_order,v\n1,1\n1,2\n2,3\n3,4\n")
    (tmp_path / "days.csv").write_text("whose,d,v\na,2024-01-01,1\na,2024-01-09,2\n")
    text = """
private orders = table("orders.csv") described by {order: text} protecting whose up to 3 rows budget epsilon 9
private items = table("items.csv") described by {v: 0..9} protecting orders.order on of_order up to 9 rows
private days = table("days.csv") described by {d: date, v: 0..9} protecting whose up to 3 rows
    budget epsilon 9 each week of d
"""
    asked = Source("text", f"{text}n = {{{{ {query} with epsilon 1 }}}}\n")
    (one, *_) = Session(cwd=tmp_path).attempt(asked).diagnostics
    assert one.kind == "NameError" and "column `" in one.message
